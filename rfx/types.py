"""Type aliases shared by several packages."""

from typing import Any, TypeAlias

import numpy as np

# selects rows or columns: a slice or an integer array
Index: TypeAlias = slice | np.ndarray
# rows (n, d) of inputs: an array, a scipy sparse matrix (untyped), or rows on the workers of a
# cluster
Inputs: TypeAlias = Any
