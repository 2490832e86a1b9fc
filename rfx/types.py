"""Type aliases shared by several packages."""

from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:  # `rfx --help` loads this file, but not numpy
    import numpy as np

# selects rows or columns: a slice or an integer array
Index: TypeAlias = "slice | np.ndarray"
# rows (n, d) of inputs: an array, a scipy sparse matrix (untyped), or rows on the workers of a
# cluster
Inputs: TypeAlias = Any
# arrays by name, as a model file or a checkpoint has them
Arrays: TypeAlias = "dict[str, np.ndarray]"
# an object of a JSON text: the header of a model file, a line of a results file, or a part of them
JsonObject: TypeAlias = dict[str, Any]
# the parameters of a kernel by name: numbers, and arrays of kernels that learn some from the rows
KernelParams: TypeAlias = dict[str, Any]
# an array of the array API standard (data-apis.org): of numpy, or of a library on its device
# (untyped)
DeviceArray: TypeAlias = Any
