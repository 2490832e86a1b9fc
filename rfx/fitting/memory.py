"""Check before any allocation whether rows are too wide to become dense in memory."""

from __future__ import annotations

import scipy.sparse as sp

from rfx import env
from rfx.data.rows import Rows, RowsLike
from rfx.data.transforms.scaling import WIDE, keeps_sparse
from rfx.errors import DataError

# Bytes per input: of a vector while it is drawn in float64 (a few at a time for many inputs); of
# learning the scaling.
VECTOR, WIDE_VECTOR, SCALING = 24, 12, 64
# MiB that are always allowed.
LEAST = 64


def check(X: RowsLike, scaling: str, vectors: int, itemsize: int) -> None:
    """Raise an error for rows X (n, d), dense or CSR, that can't be scaled within memory, with
    `vectors` more vectors of length d.

    CSR rows stay sparse if they are not scaled, or wide and mostly zeros; others need itemsize
    bytes per input. Raises DataError.
    """
    # rows in parts need no memory here
    rows = 0 if stays_sparse(X, scaling) or isinstance(X, Rows) else X.shape[0]
    vector = VECTOR if X.shape[1] <= WIDE else WIDE_VECTOR
    needed = X.shape[1] * (SCALING + rows * itemsize + vector * vectors) / 2**20
    available = env.available_memory_mb()
    if needed > max(available, LEAST):
        sparser = (
            ", or --scaling none, which keeps sparse rows sparse" if rows and sp.issparse(X) else ""
        )
        raise DataError(
            f"the {X.shape[0]:,} rows have {X.shape[1]:,} columns, which need about {needed:,.0f}"
            f" MiB, but only {available:,.0f} MiB are free; check the largest column index, or use"
            f" fewer random features{sparser}"
        )


def stays_sparse(X: RowsLike, scaling: str) -> bool:
    """Whether the rows X are CSR and remain so after scaling."""
    return sp.issparse(X) and (scaling == "none" or keeps_sparse(X))
