"""Rows in the domain of a kernel, from rows of any numbers."""

import numpy as np

from rfx import kernels


def suited(name, X):
    """X itself, its magnitudes for kernels of inputs of 0 or more, or codes of categories."""
    if name == "hamming":
        return np.rint(2 * X).astype(X.dtype)
    return np.abs(X) if kernels.get_kernel(name).scalings else X
