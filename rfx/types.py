"""Names of types that several rooms speak of."""

from typing import Any, TypeAlias

import numpy as np

# which rows or columns are meant: a slice or an integer array
Index: TypeAlias = slice | np.ndarray
# rows (n, d) of inputs: an array, one of scipy's sparse matrices, which have no types, or
# `rfx.data.rows.Rows`
Inputs: TypeAlias = Any
