"""Cholesky factorisation in place by tiles, for matrices of several gigabytes.

OpenBLAS's own parallel factorisation crashes with a segmentation fault from about 16,000 float64
rows on (observed with 0.3.30); here every call of LAPACK or BLAS uses one tile and one thread, and
threads share the tiles.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike
from scipy import linalg
from scipy.linalg import blas, lapack

from rfx import device, parallel
from rfx.compiled import njit
from rfx.operators.triangular import solve_rows

_TILE = 768
# Maximum rows for which one thread is as fast as two with tiles.
_ALONE = 2048
# Maximum unknowns for which potrs and trsv take negligible time (0.02 and 0.04 ms at 300).
_SMALL = 512


class Factor:
    """L of A = L L' for A (n, n), Fortran order, float32 or float64, which it overwrites; on a
    device `device.CholeskyFactor`.

    Raises LinAlgError if A is not positive definite.
    """

    def __init__(self, A: np.ndarray) -> None:
        self.array = positive(A)

    @classmethod
    def of(cls, L: np.ndarray) -> Factor:
        """From L in the lower triangle of an array."""
        factor = cls.__new__(cls)
        factor.array = L
        return factor

    def solve(self, B: np.ndarray) -> np.ndarray:
        """A^-1 B in float64 for B (n,) or (n, k)."""
        return solve(self.array, B).reshape(B.shape).astype(np.float64)

    def inverse_diagonal(self, last: int | None = None) -> np.ndarray:
        """The `last` entries, by default all (n,), of the diagonal of A^-1, which depend on as many
        rows of L only; the factor is overwritten.
        """
        L = self.array if last is None else np.asfortranarray(self.array[-last:, -last:])
        invert = lapack.strtri if L.dtype == np.float32 else lapack.dtrtri
        return _squares(invert(L, lower=1, overwrite_c=1)[0])


def factored(
    K: np.ndarray | device.Values, shift: Any, dtype: DTypeLike
) -> Factor | device.CholeskyFactor:
    """The factor of K (n, n) plus shift, a number or (n,), on the diagonal: where K is.

    Raises LinAlgError if that is not positive definite in `dtype`.
    """
    if isinstance(K, device.Values):
        return K.factored(shift, dtype)
    # symmetric: in the order of memory, which takes a tenth of the time of transposing
    system: Any = np.array(K.T, dtype, order="F")
    system.flat[:: len(K) + 1] += shift
    return Factor(system)


@njit(cache=True, nogil=True)
def _squares(L: np.ndarray) -> np.ndarray:
    """The sums of squares of the columns of a lower triangle L (n, n)."""
    sums = np.zeros(len(L))
    for column in range(len(L)):
        for row in range(column, len(L)):
            sums[column] += L[row, column] ** 2
    return sums


def positive(A: np.ndarray) -> np.ndarray:
    """The factor, for `solve`, of A (n, n), Fortran order, float32 or float64, which it overwrites.

    Raises LinAlgError if A is not positive definite.
    """
    if len(A) <= _ALONE:
        return linalg.cho_factor(A, lower=True, overwrite_a=True, check_finite=False)[0]
    if info := factor_in_place(A):
        raise linalg.LinAlgError(f"the leading minor of order {info} is not positive definite")
    return A


def solve(factor: np.ndarray, b: np.ndarray) -> np.ndarray:
    """x with L L'x = b, for L in the lower triangle of `factor` (n, n), Fortran order, and b (n,)
    or (n, k), in the factor's type.

    One right-hand side of a large triangle uses trsv, which takes a quarter of the time of potrs (n
    = 4,096 and 7,812). Small systems use potrs, because with several minimisers rounding decides
    which one a solver reaches.
    """
    single = factor.dtype == np.float32
    if len(factor) > _SMALL and (b.ndim == 1 or b.shape[1] == 1):
        substitute = blas.strsv if single else blas.dtrsv
        x: np.ndarray = substitute(factor, b.ravel().astype(factor.dtype), lower=1, overwrite_x=1)
        x = substitute(factor, x, lower=1, trans=1, overwrite_x=1).reshape(b.shape)
        return x
    x = (lapack.spotrs if single else lapack.dpotrs)(
        factor, np.asfortranarray(b, dtype=factor.dtype), lower=1
    )[0]
    return x


def factor_in_place(A: np.ndarray) -> int:
    """L in the lower triangle of A (n, n), Fortran order, float32 or float64; entries above the
    diagonal are unchanged.

    Returns 0, or the order of the first leading minor that is not positive definite; A is then
    partly overwritten. The result does not depend on the number of threads.
    """
    potrf = lapack.spotrf if A.dtype == np.float32 else lapack.dpotrf
    n = len(A)
    tiles = [slice(start, min(start + _TILE, n)) for start in range(0, n, _TILE)]
    with parallel.one_blas_thread():
        for k, own in enumerate(tiles):
            factor, info = potrf(A[own, own], lower=1, clean=0)
            if info:
                return own.start + info
            A[own, own] = factor
            rest = tiles[k + 1 :]

            def panel(
                start: int,
                stop: int,
                own: slice = own,
                factor: np.ndarray = factor,
                rest: list[slice] = rest,
            ) -> None:
                for rows in rest[start:stop]:
                    tile = np.ascontiguousarray(A[rows, own])
                    solve_rows(factor, tile)
                    A[rows, own] = tile

            height = n - own.stop
            parallel.for_ranges(panel, len(rest), work=height * _TILE**2 / 2 / parallel.DENSE)
            pairs = [(rows, columns) for j, columns in enumerate(rest) for rows in rest[j:]]

            def trailing(
                start: int, stop: int, own: slice = own, pairs: list[tuple[slice, slice]] = pairs
            ) -> None:
                for rows, columns in pairs[start:stop]:
                    product = (A[columns, own] @ A[rows, own].T).T
                    tile = A[rows, columns]
                    # entries above the diagonal may be anything, such as a signalling nan
                    where = np.tri(len(tile), dtype=bool) if rows is columns else True
                    np.subtract(tile, product, out=tile, where=where)

            parallel.for_ranges(trailing, len(pairs), work=height**2 * _TILE / 2 / parallel.DENSE)
    return 0
