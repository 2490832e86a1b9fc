"""Rows and columns of square matrices of hundreds of megabytes: numpy's indexing takes several
times as long.
"""

from __future__ import annotations

import numpy as np

from rfx import parallel
from rfx.compiled import njit


def corner(M: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    """M[chosen][:, chosen] as a new array in C order, for M (n, n) in C order and chosen
    (k,) integers.
    """
    out = np.empty((len(chosen), len(chosen)), M.dtype)
    parallel.for_ranges(
        lambda start, stop: _pick(M, chosen[start:stop], chosen, out[start:stop]),
        len(chosen),
        16,
        work=out.size,
    )
    return out


def keep_corner(M: np.ndarray, chosen: np.ndarray) -> None:
    """M[:k, :k] <- M[chosen][:, chosen] for M (n, n) in C order and chosen (k,) ascending
    integers.
    """
    _pick(M, chosen, chosen, M[: len(chosen), : len(chosen)])


@njit(cache=True, nogil=True)
def _pick(M: np.ndarray, rows: np.ndarray, columns: np.ndarray, out: np.ndarray) -> None:
    # with both ascending, the source has not been overwritten yet if `out` is the corner of M
    for i in range(len(rows)):
        row, to = M[rows[i]], out[i]
        for k in range(len(columns)):
            to[k] = row[columns[k]]
