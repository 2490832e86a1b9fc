"""Triangular systems solved by several threads.

scipy.linalg.blas holds the GIL while TRSM runs, so that threads calling it wait for each other;
numpy's products and compiled code release it.
"""

from __future__ import annotations

import numpy as np

from rfx.compiled import njit

# Columns solved by substitution, and rows processed together.
_TILE, _ROWS = 64, 64


def solve_rows(factor: np.ndarray, K: np.ndarray, start: int = 0, stop: int | None = None) -> None:
    """K (n, m) <- K L^-T in place, for C-contiguous K and the lower triangle L of `factor` (m, m)
    of the same type.

    start, stop: the columns to solve, as if there were no others.
    """
    stop = K.shape[1] if stop is None else stop
    if stop - start <= _TILE:
        _substitute(np.ascontiguousarray(factor[start:stop, start:stop]), K, start)
        return
    # the second half minus the contribution of the first: products of large matrices
    half = start + _TILE * -(-(stop - start) // (2 * _TILE))
    solve_rows(factor, K, start, half)
    K[:, half:stop] -= K[:, start:half] @ factor[half:stop, start:half].T
    solve_rows(factor, K, half, stop)


@njit(cache=True, nogil=True, fastmath={"contract"})
def _substitute(L: np.ndarray, K: np.ndarray, start: int) -> None:
    """K_j <- K_j L^-T for the columns j of K from `start` on, as many as L (b, b) has."""
    b, own = len(L), np.zeros((len(L), _ROWS), K.dtype)
    for i in range(0, len(K), _ROWS):
        count = min(_ROWS, len(K) - i)
        for r in range(count):
            for j in range(b):
                own[j, r] = K[i + r, start + j]
        for j in range(b):
            for t in range(j):
                factor = L[j, t]
                for r in range(_ROWS):
                    own[j, r] -= factor * own[t, r]
            for r in range(_ROWS):
                own[j, r] /= L[j, j]
        for r in range(count):
            for j in range(b):
                K[i + r, start + j] = own[j, r]
