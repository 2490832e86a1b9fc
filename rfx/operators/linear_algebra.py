"""Large dense systems: triangular systems, Cholesky factors, conjugate gradients."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from numpy.typing import DTypeLike
from scipy import linalg
from scipy.linalg import blas, lapack

from rfx import device, parallel
from rfx.compiled import njit
from rfx.operators.blocks import ranges
from rfx.parallel import Late

# ----------------------------------------------------------------------
# Triangular systems solved by several threads.
#
# scipy.linalg.blas holds the GIL while TRSM runs, so that threads calling it wait for each other;
# numpy's products and compiled code release it.

# Columns solved by substitution, and rows processed together.
_SMALL_TILE, _ROWS = 64, 64


def solve_rows(factor: np.ndarray, K: np.ndarray, start: int = 0, stop: int | None = None) -> None:
    """K (n, m) <- K L^-T in place, for C-contiguous K and the lower triangle L of `factor` (m, m)
    of the same type.

    start, stop: the columns to solve, as if there were no others.
    """
    stop = K.shape[1] if stop is None else stop
    if stop - start <= _SMALL_TILE:
        _substitute(np.ascontiguousarray(factor[start:stop, start:stop]), K, start)
        return
    # the second half minus the contribution of the first: products of large matrices
    half = start + _SMALL_TILE * -(-(stop - start) // (2 * _SMALL_TILE))
    solve_rows(factor, K, start, half)
    first = K[:, start:half]
    K[:, half:stop] -= first @ factor[half:stop, start:half].T
    solve_rows(factor, K, half, stop)


@njit(cache=True, nogil=True, fastmath={"contract"})
def _substitute(L: np.ndarray, K: np.ndarray, start: int) -> None:
    """K_j <- K_j L^-T for the columns j of K from `start` on, as many as L (b, b) has."""
    b = len(L)
    own = np.zeros((len(L), _ROWS), K.dtype)
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


# ----------------------------------------------------------------------
# Cholesky factorisation in place by tiles, for matrices of several gigabytes.
#
# OpenBLAS's own parallel factorisation crashes with a segmentation fault from about 16,000 float64
# rows on (observed with 0.3.30); here every call of LAPACK or BLAS uses one tile and one thread,
# and threads share the tiles.

_TILE = 768
# Maximum rows that are factored at once, by one thread, in 0.7 of the processor time of tiles.
_ALONE = 3072
# Maximum unknowns for which potrs and trsv take negligible time (0.02 and 0.04 ms at 300).
_SMALL = 512


class Factor:
    """L of A = L L', in the lower triangle of an array (n, n), Fortran order, float32 or float64;
    on a device `device.CholeskyFactor`.
    """

    def __init__(self, L: np.ndarray) -> None:
        self.array = L

    def solve(self, B: np.ndarray) -> np.ndarray:
        """A^-1 B in float64 for B (n,) or (n, k)."""
        return solve(self.array, B).reshape(B.shape).astype(np.float64)

    def inverse_diagonal(self, last: int | None = None) -> np.ndarray:
        """The `last` entries, by default all (n,), of the diagonal of A^-1, which depend on as many
        rows of L only; the factor is overwritten.
        """
        L = self.array
        if last is not None:
            L = np.asfortranarray(L[-last:, -last:])
        invert = lapack.strtri if L.dtype == np.float32 else lapack.dtrtri
        return _squares(invert(L, lower=1, overwrite_c=1)[0])


def factored(
    K: np.ndarray | device.Values, shift: float | np.ndarray, dtype: DTypeLike
) -> Factor | device.CholeskyFactor:
    """The factor of K (n, n) plus shift, a number or (n,), on the diagonal: where K is.

    Raises LinAlgError if that is not positive definite in `dtype`.
    """
    if isinstance(K, device.Values):
        return K.factored(shift, dtype)
    # symmetric: in the order of memory, which takes a tenth of the time of transposing
    system = np.array(K.T, dtype, order="F")
    system.flat[:: len(K) + 1] += shift
    return Factor(positive(system))


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
        x = substitute(factor, b.ravel().astype(factor.dtype), lower=1, overwrite_x=1)
        return substitute(factor, x, lower=1, trans=1, overwrite_x=1).reshape(b.shape)
    both = lapack.spotrs if single else lapack.dpotrs
    return both(factor, np.asfortranarray(b, dtype=factor.dtype), lower=1)[0]


def factor_in_place(A: np.ndarray, tile_rows: int = _TILE) -> int:
    """L in the lower triangle of A (n, n), Fortran order, float32 or float64; entries above the
    diagonal are unchanged.

    Returns 0, or the order of the first leading minor that is not positive definite; A is then
    partly overwritten. The result does not depend on the number of threads.
    """
    potrf = lapack.spotrf if A.dtype == np.float32 else lapack.dpotrf
    n = len(A)
    tiles = list(ranges(n, tile_rows))
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
            work = height * tile_rows * tile_rows / 2 / parallel.DENSE
            parallel.for_ranges(panel, len(rest), work=work)
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

            work = height**2 * tile_rows / 2 / parallel.DENSE
            parallel.for_ranges(trailing, len(pairs), work=work)
    return 0


# ----------------------------------------------------------------------
# Rows and columns of square matrices of hundreds of megabytes: numpy's indexing takes several times
# as long.


def corner(M: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    """M[chosen][:, chosen] as a new array in C order, for M (n, n) in C order and chosen
    (k,) integers.
    """
    out = np.empty((len(chosen), len(chosen)), M.dtype)

    def part(start: int, stop: int) -> None:
        _pick(M, chosen[start:stop], chosen, out[start:stop])

    parallel.for_ranges(part, len(chosen), 16, work=out.size)
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
        row = M[rows[i]]
        to = out[i]
        for k in range(len(columns)):
            to[k] = row[columns[k]]


# ----------------------------------------------------------------------
# Conjugate gradients for several right-hand sides at once.


def conjugate_gradients(
    product: Callable[[np.ndarray], np.ndarray],
    residual: np.ndarray,
    precondition: Callable[[np.ndarray], np.ndarray],
    enough: Callable[[np.ndarray, np.ndarray], bool | np.bool_],
    max_iter: int,
    deadline: float | None = None,
) -> tuple[np.ndarray, np.ndarray, int]:
    """x with H x close to `residual`, from x = 0, all columns at once (Polak-Ribiere form).

    product: p -> H p. precondition: r -> M^-1 r; the flexible form of beta keeps the directions
    conjugate when M^-1 is only symmetric up to float32 rounding (Notay 2000). enough(x, r): whether
    the residual (n,) or (n, k) is small enough. deadline: value of time.monotonic() after which no
    new step starts; a product that raises Late ends it too. Returns (x, residual, iterations).
    """
    r = residual.copy()
    x = np.zeros_like(r)
    z = precondition(r)
    p = z
    rz = dots(r, z)
    for iteration in range(1, max_iter + 1):
        try:
            q = product(p)
        except Late:
            return x, r, iteration - 1
        step = ratio(rz, dots(p, q))
        x += step * p
        before = r
        r = r - step * q
        late = deadline is not None and time.monotonic() >= deadline
        if enough(x, r) or not np.any(step) or late:
            return x, r, iteration
        z = precondition(r)
        beta = np.maximum(0.0, ratio(dots(r - before, z), rz))
        p = z + beta * p
        rz = dots(r, z)
    return x, r, max_iter


def dots(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """a.b, column by column."""
    return np.einsum("i...,i...->...", a, b)


def ratio(a: np.ndarray | float, b: np.ndarray | float) -> np.ndarray:
    """a / b, and 0 if b is not positive: a column that is solved, or dominated by rounding."""
    is_positive = b > 0
    return np.where(is_positive, a / np.where(is_positive, b, 1.0), 0.0)
