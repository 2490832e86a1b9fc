"""Exact kernels in blocks of rows; two-valued columns are compared as bits."""

import copy
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numba.extending import intrinsic

from rfx import device
from rfx.compiled import njit
from rfx.data.rows import keeps_sparse
from rfx.errors import DataError, UsageError
from rfx.kernels.base import (
    get_kernel,
    mend_close,
    squared_from_dot,
    squared_norms,
    sum_differences,
)
from rfx.parallel import DENSE, cached, for_ranges, matmul, one_blas_thread
from rfx.types import DeviceArray, Inputs

# ----------------------------------------------------------------------
# Two-valued columns, such as one-hot categories, as bits: the distance of two rows in them is a
# count of differing bits.

# Minimum number of two-valued columns with the same gap for bits to be faster, and rows that few
# other columns exceed.
_FEWEST, _HEAD = 8, 256
_WORD = 32


@dataclass(frozen=True, eq=False)
class Binary:
    """Two-valued columns whose values differ by `gap`: their numbers, these values (k,), and the
    numbers of all other columns.
    """

    columns: np.ndarray
    low: np.ndarray
    high: np.ndarray
    gap: float
    rest: np.ndarray

    @property
    def words(self) -> int:
        return -(-len(self.columns) // _WORD)

    def bits(self, X) -> np.ndarray | None:
        """(n, words) uint32 of the rows of X (n, d), dense or CSR: a bit is set for the upper
        value; None if there are other values.
        """
        out = np.zeros((X.shape[0], self.words), np.uint32)
        step = max(1, (1 << 20) // max(1, X.shape[1]))
        for start in range(0, X.shape[0], step):
            rows = X[start : start + step]
            dense = rows.toarray() if sp.issparse(rows) else np.asarray(rows)
            values = dense[:, self.columns]
            upper = values == self.high
            if not (upper | (values == self.low)).all():
                return None
            padded = np.zeros((len(upper), self.words * _WORD), bool)
            padded[:, : upper.shape[1]] = upper
            packed = np.packbits(padded, axis=1, bitorder="little")
            out[start : start + step] = packed.view(np.uint32)
        return out


def binary_columns(X) -> Binary | None:
    """The two-valued columns of X (n, d), dense or CSR, with the most frequent gap; None if they
    are few.
    """
    if X.shape[1] < _FEWEST or X.shape[0] < 2:
        return None
    low, high, two = _sparse_values(X) if sp.issparse(X) else _dense_values(X)
    gaps, counts = np.unique((high - low)[two], return_counts=True)
    if not len(counts) or counts.max() < _FEWEST:
        return None
    gap = gaps[np.argmax(counts)]
    chosen = two & (high - low == gap)
    columns = np.flatnonzero(chosen)
    rest = np.flatnonzero(~chosen)
    return Binary(columns, low[columns], high[columns], float(gap), rest)


def _dense_values(X):
    """(minimum, maximum, whether these are the only two values) of each column."""
    low = X.min(axis=0)
    high = X.max(axis=0)
    head = X[:_HEAD]
    at_ends = (head == low) | (head == high)
    two = (low < high) & at_ends.all(axis=0)
    for j in np.flatnonzero(two):
        column = X[:, j]
        two[j] = np.all((column == low[j]) | (column == high[j]))
    return low.astype(np.float64), high.astype(np.float64), two


def _sparse_values(X):
    n_rows, n_columns = X.shape
    low = X.min(axis=0).toarray().ravel()
    high = X.max(axis=0).toarray().ravel()
    other = (X.data != low[X.indices]) & (X.data != high[X.indices])
    strange = np.bincount(X.indices[other], minlength=n_columns) > 0
    has_implicit_zeros = np.bincount(X.indices, minlength=n_columns) < n_rows
    strange |= (low < 0) & (high > 0) & has_implicit_zeros
    return low.astype(np.float64), high.astype(np.float64), (low < high) & ~strange


@intrinsic
def count_bits(typing, word):
    """The number of bits set in an unsigned word."""

    def made(context, builder, signature, given):
        return builder.ctpop(given[0])

    return word(word), made


@njit(cache=True, nogil=True)
def add_differing(left, right, place, unit, out):
    """out[i, j] += unit[0] * (bits that differ between left[i] and right[:, place + j]); left (n,
    words), right (words, at least place + m), out (n, m)."""
    words, end = left.shape[1], place + out.shape[1]
    for i in range(out.shape[0]):
        sums = out[i]
        for w in range(0, words - 1, 2):
            a, b, A, B = left[i, w], left[i, w + 1], right[w, place:end], right[w + 1, place:end]
            for j in range(len(sums)):
                # numba passes the first argument
                sums[j] += unit[0] * np.int32(count_bits(a ^ A[j]) + count_bits(b ^ B[j]))  # type: ignore[call-arg]
        if words % 2:
            a, A = left[i, words - 1], right[words - 1, place:end]
            for j in range(len(sums)):
                # numba passes the first argument
                sums[j] += unit[0] * np.int32(count_bits(a ^ A[j]))  # type: ignore[call-arg]


# ----------------------------------------------------------------------
# Exact kernels in blocks: k(x, y) between rows of two arrays, in float32 or float64, with all
# threads.
#
# A kernel is a distance (or inner product) between scaled rows followed by an elementwise function.
# `prepare` does the scaling once, so that a solver that requests many blocks of the same rows only
# pays for the distances.

# A chunk of a block is finished (distance, then exponential) while it is still in its core's cache.
_CHUNK = 1 << 17
# Columns of a wider block processed at a time, read once for all rows of a chunk.
_WIDEST = _CHUNK // 8
# Maximum inputs for which a Gaussian's distances are sums of differences; above, inner products are
# used.
_THIN = 32
_COLUMN_TILE = 512
_LEAST_ROWS = 16
# Multiplications equivalent to a kernel value of a distance.
_FINISH = 16
# Squared distances below this fraction of ||x||^2 + ||y||^2, in float32, are recomputed from
# differences if their square root matters.
_CLOSE = 1 / 64
# Rows whose float32 values are multiplied in float64 at a time, in cache.
_SUM_ROWS = 256
# Float32 kernel values change a prediction by up to this factor times the Euclidean norm of the
# machine's coefficients, measured on ten tables.
_VALUE_ERROR = 4e-7
# CSR rows are stored dense if they need less than this, else made dense block by block.
_DENSE_BYTES = 1 << 30


class Prepared:
    """Rows prepared for a kernel's distance: shifted by a common centre, scaled, clipped, in one
    dtype.

    n_rows, shape: of the rows. `take(rows)` returns a part; `dense(rows)` an array of scaled rows.
    """

    def __init__(self, name: str, X, params: dict, dtype=None, centre=None):
        """X: (n, d), dense or CSR. centre: another Prepared with the shift to use, so that both can
        be compared in `block`.

        Raises UsageError for a kernel without exact values.
        """
        self.kernel = get_kernel(name)
        if not self.kernel.metric:
            raise UsageError(
                f"kernel {name!r} has no exact values, only random features; use method rf or"
                " sparse-rf"
            )
        self.name = name
        self.params = params
        self.dtype = np.dtype(dtype or (np.float32 if X.dtype == np.float32 else np.float64))
        self.shape = X.shape
        self._X: Inputs = X.tocsr() if sp.issparse(X) else None
        self._Z: np.ndarray | None = None
        self._norms: np.ndarray | None = None
        self._cast: Prepared | None = None
        self._bits: np.ndarray | None = None
        self._binary: Binary | None = None
        self.centre: np.ndarray | None = None
        few = X.shape[0] * X.shape[1] * self.dtype.itemsize <= _DENSE_BYTES
        if centre is None:
            self._decide_form(X, few)
        else:
            self.sparse = centre.sparse
            self.centre = centre.centre
            self._binary = centre._binary
        if self.sparse:
            unit = np.ones((1, 1))
            self.kernel.scale(unit, params)
            self._X = sp.csr_matrix(X, dtype=np.float64) * unit[0, 0]
            return
        if self._binary is not None:
            self._bits = self._binary.bits(X)
        if self._X is None:
            self._Z = self._scaled(X)
        elif few:
            self._Z = np.empty(X.shape, self.dtype)
            for rows in self._steps():
                self._Z[rows] = self._scaled(self._X[rows].toarray())
            self._X = None

    def _decide_form(self, X, few: bool) -> None:
        """Whether rows are compared as CSR, their shift, and the columns compared as bits; few:
        whether they can be stored dense.
        """
        kernel = self.kernel
        # text is compared as CSR, which is neither shifted nor made dense
        self.sparse = kernel.metric != "product" and not kernel.fixed and keeps_sparse(X)
        if self.sparse or not kernel.centred:
            return
        # Distances are invariant to a shift, but rounding is not: norms about the mean are
        # smallest.
        self.centre = np.zeros(X.shape[1])
        if X.shape[0]:
            self.centre = np.asarray(X.mean(axis=0, dtype=np.float64)).ravel()
        if kernel.metric != "product" and (few or self._X is None):
            self._binary = binary_columns(X)

    @property
    def n_rows(self) -> int:
        return self.shape[0]

    def _steps(self):
        step = max(1, (1 << 20) // max(1, self.shape[1]))
        return (slice(start, start + step) for start in range(0, self.n_rows, step))

    def _scaled(self, X) -> np.ndarray:
        Z = np.array(X, dtype=np.float64, order="C")
        if self.centre is not None:
            Z -= self.centre
        self.kernel.scale(Z, self.params)
        return np.ascontiguousarray(Z, self.dtype)

    def dense(self, rows=slice(None)) -> np.ndarray:
        """Scaled rows (len(rows), d) as an array; a view if possible."""
        if self.sparse:
            return self._X[rows].toarray().astype(self.dtype)
        return self._Z[rows] if self._Z is not None else self._scaled(self._X[rows].toarray())

    def take(self, rows) -> "Prepared":
        """The rows of an index array or slice, scaled as here."""
        part = copy.copy(self)
        part._cast = None
        for name in ("columns", "narrow_columns", "sparse_columns"):
            part.__dict__.pop(name, None)
        for name in ("_X", "_Z", "_norms", "_bits"):
            value = getattr(self, name)
            setattr(part, name, None if value is None else value[rows])
        part.shape = part._X.shape if part._Z is None else part._Z.shape
        return part

    def astype(self, dtype) -> "Prepared":
        """The same rows in float32 or float64; unchanged if possible, and the last copy is
        cached.
        """
        if np.dtype(dtype) == self.dtype:
            return self
        if self._cast is None:
            self._cast = self.take(slice(None))
            self._cast.dtype = np.dtype(dtype)
            self._cast._norms = None
            if self._Z is not None:
                self._cast._Z = self._Z.astype(dtype)
        return self._cast

    @cached
    def columns(self) -> np.ndarray:
        """The scaled rows as columns (d, n), contiguous."""
        return np.ascontiguousarray(self.dense().T)

    def sparse_rows(self) -> sp.csr_matrix:
        """The scaled rows (n, d) as CSR float64, if they are compared as such."""
        return self._X

    @cached
    def sparse_columns(self) -> sp.csc_matrix:
        """`sparse_rows` as CSC."""
        return self._X.tocsc()

    def narrow(self) -> tuple:
        """((n, d - k) scaled rows without the k columns compared as bits, (n, words) these
        bits).
        """
        assert self._binary is not None
        rest = self.dense()[:, self._binary.rest]
        return np.ascontiguousarray(rest), self._bits

    @cached
    def narrow_columns(self) -> tuple[np.ndarray, ...]:
        """`narrow` as columns, contiguous."""
        return tuple(np.ascontiguousarray(part.T) for part in self.narrow())

    def unit(self, dtype) -> np.ndarray:
        """(1,) the contribution of a differing bit to a distance."""
        assert self._binary is not None
        gap = np.full((1, 1), self._binary.gap)
        self.kernel.scale(gap, self.params)
        return (gap[0] if self.kernel.metric == "l1" else gap[0] ** 2).astype(dtype)

    def on_device(self) -> device.KernelRows | None:
        """The rows on the accelerator in use; None if there is none, or none for the kernel.

        Raises UsageError if the accelerator was asked for by name.
        """
        accelerator = device.current()
        kernel = self.kernel
        if accelerator is None:
            return None
        if kernel.metric not in device.COMPARED or kernel.lengths:
            if not accelerator.demanded:
                return None
            raise UsageError(f"kernel {kernel.name} has no values on a GPU; use --device cpu")
        rows = self.dense()
        finishing = accelerator.placed(kernel.finishing(self.params, rows))
        return device.KernelRows(accelerator, accelerator.put(rows), kernel.metric, finishing)

    def norms(self) -> np.ndarray:
        """(n,) squared lengths of the scaled rows, summed in float64, cached; for CSR rows and a
        1-norm, their lengths in it.
        """
        if self._norms is None and self.sparse:
            lengths = abs(self._X) if self.kernel.metric == "l1" else self._X.multiply(self._X)
            self._norms = np.asarray(lengths.sum(axis=1), np.float64).ravel()
        if self._norms is None:
            self._norms = np.empty(self.n_rows)
            for rows in self._steps():
                self._norms[rows] = squared_norms(self.dense(rows))
        return self._norms


def prepare(name: str, X, params: dict, dtype=None, like: Prepared | None = None) -> Prepared:
    """X (n, d), dense or CSR, scaled once for many calls of `block`.

    dtype: of the scaled rows and of the blocks: float32 or float64, by default X's. like: prepared
    rows with which these will be compared.
    """
    return Prepared(
        name, X, params, like.dtype if dtype is None and like is not None else dtype, like
    )


def block(name: str, X, Y, params: dict, out=None, dtype=None) -> np.ndarray:
    """K (n, m) with K[i, j] = k(X[i], Y[j]).

    X (n, d) and Y (m, d): dense, CSR, or Prepared (then Y's shift and dtype apply). out: array to
    write to, of the desired dtype. dtype: float32 or float64; by default out's, else Y's. Equal
    rows get exactly k(x, x). Block shape and thread count change values only within the rounding of
    a dot product.
    """
    dtype = dtype if out is None else out.dtype
    X, Y = _prepare_both(name, X, Y, params, dtype)
    if X.shape[1] != Y.shape[1]:
        raise DataError(
            f"rows with {X.shape[1]} columns can't be compared with rows with {Y.shape[1]}"
        )
    if out is None:
        out = np.empty((X.n_rows, Y.n_rows), dtype or Y.dtype)
    if X.n_rows == 0 or Y.n_rows == 0:
        return out
    if X.sparse:
        _fill_sparse(X, Y, out)
        return out
    # Rows of a large sparse array become dense a few at a time.
    step = max(64, _DENSE_BYTES // 4 // max(1, X.shape[1] * X.dtype.itemsize))
    is_large = X.n_rows > step or Y.n_rows > step
    if not is_large or (X._Z is not None and Y._Z is not None):
        _fill(X, Y, out)
        return out
    for i in range(0, X.n_rows, step):
        part = X.take(slice(i, i + step))
        for j in range(0, Y.n_rows, step):
            others = Y.take(slice(j, j + step))
            block(name, part, others, params, out=out[i : i + step, j : j + step])
    return out


def _prepare_both(name: str, X, Y, params: dict, dtype) -> tuple[Prepared, Prepared]:
    """X and Y with the same shift, scaled in this type, by default float32 if both are."""
    if not isinstance(Y, Prepared):
        dtype = dtype or (np.float32 if X.dtype == np.float32 == Y.dtype else np.float64)
        Y = Prepared(name, Y, params, dtype, X if isinstance(X, Prepared) else None)
    if not isinstance(X, Prepared):
        X = Prepared(name, X, params, Y.dtype, Y)
    return X, Y


def values(name: str, X, Y, params: dict) -> DeviceArray:
    """`block`, as `device.Values` on the accelerator in use: for matrices that are only multiplied
    and factored.
    """
    rows = None if device.current() is None else prepare(name, Y, params, np.float64)
    placed = None if rows is None else rows.on_device()
    if rows is None or placed is None:
        return block(name, X, Y, params)
    own = placed.rows if X is Y else prepare(name, X, params, like=rows).dense()
    return placed.values(own, np.float64 if placed.accelerator.double else np.float32)


def _fill(X: Prepared, Y: Prepared, out: np.ndarray) -> None:
    """Kernel values of dense rows, in chunks distributed over threads."""
    as_bits, by_product = _means(X, Y)
    exact = by_product and X.kernel.exact_in_float64
    work = np.dtype(np.float64) if exact else out.dtype
    X = X.astype(work)
    Y = Y.astype(work)
    tiles: _ByProduct | _ByDifferences = (
        _ByProduct(X, Y, work) if by_product else _ByDifferences(X, Y, work, as_bits)
    )
    # A product needs a squarish tile, because BLAS copies both factors first; differences need long
    # rows, but several of them.
    width = min(out.shape[1], 1024 if by_product else _WIDEST)
    height = max(1, _CHUNK // width)
    # The same chunks for any number of threads, because BLAS rounding depends on a product's shape.
    height = min(height, max(_LEAST_ROWS, -(-out.shape[0] // 16)))
    in_place = work == out.dtype and out.flags.c_contiguous and width == out.shape[1]

    def part(start, stop):
        scratch = np.empty(0 if in_place else height * width, work)
        for i in range(start * height, min(stop * height, out.shape[0]), height):
            rows = slice(i, min(i + height, out.shape[0]))
            for j in range(0, out.shape[1], width):
                target = out[rows, j : j + width]
                tile = target if in_place else scratch[: target.size].reshape(target.shape)
                lengths = tiles.compare(rows, j, tile)
                if X.kernel.metric == "l2":
                    np.sqrt(tile, out=tile)
                X.kernel.finish(tile, X.params, X.shape[1], lengths)
                if not in_place:
                    target[:] = tile

    # One BLAS thread in each of ours: BLAS's own would wait for one another at every chunk.
    with one_blas_thread() if by_product else nullcontext():
        entry = _FINISH + X.shape[1] / (DENSE if by_product else 1)
        least = 1 + 20000 // (out.shape[1] * height)
        for_ranges(part, -(-out.shape[0] // height), least, work=out.size * entry)


class _ByProduct:
    """Compares tiles of rows by inner products, and distances by these and the rows' lengths."""

    def __init__(self, X: Prepared, Y: Prepared, dtype: np.dtype):
        self.kernel = X.kernel
        self.dtype = dtype
        self.rows = X.dense()
        self.columns = Y.columns
        self.lengths: tuple[np.ndarray, np.ndarray] | None = None
        if self.kernel.metric != "dot" or self.kernel.lengths:
            self.lengths = X.norms().astype(dtype), Y.norms().astype(dtype)
        # For a difference of float32 numbers, the relative error of the square root grows as it
        # gets smaller.
        mended = self.kernel.metric == "l2" and dtype == np.float32
        self.others = Y.dense() if mended else None

    def compare(self, rows: slice, place: int, tile: np.ndarray) -> tuple | None:
        """tile <- the comparisons of some rows with columns from number `place` on; returns the
        lengths of both, None if the kernel needs none.
        """
        columns = slice(place, place + tile.shape[1])
        dtype = self.dtype
        np.matmul(self.rows[rows], self.columns[:, columns], out=tile)
        if self.lengths is None:
            return None
        lengths = self.lengths[0][rows], self.lengths[1][columns]
        if self.kernel.metric != "dot":
            squared_from_dot(tile, *lengths, np.array([0, 2, 8 * np.finfo(dtype).eps], dtype))
        if self.others is not None:
            close = np.array([_CLOSE], dtype)
            mend_close(tile, *lengths, self.rows[rows], self.others[columns], close)
        return lengths


class _ByDifferences:
    """Compares tiles of rows by the differences of their inputs, and by bits."""

    def __init__(self, X: Prepared, Y: Prepared, dtype: np.dtype, as_bits: bool):
        self.kernel = X.kernel
        self.as_bits = as_bits
        if as_bits:
            self.rows, self.row_bits = X.narrow()
            self.columns, self.column_bits = Y.narrow_columns
            self.unit = X.unit(dtype)
        else:
            self.rows = X.dense()
            self.columns = Y.columns

    def compare(self, rows: slice, place: int, tile: np.ndarray) -> None:
        """tile <- the comparisons of some rows with columns from number `place` on."""
        metric = self.kernel.metric
        if metric == "product":
            self.kernel.compare(self.rows[rows], self.columns, place, tile)
            return
        parts = self.rows[rows], self.columns, place, tile
        sum_differences(*parts, metric != "l1", _COLUMN_TILE)
        if self.as_bits:
            add_differing(self.row_bits[rows], self.column_bits, place, self.unit, tile)


def _fill_sparse(X: Prepared, Y: Prepared, out: np.ndarray) -> None:
    """Kernel values of CSR rows, by the entries that two rows share, in chunks distributed over
    threads.
    """
    kernel = X.kernel
    rows = X.sparse_rows()
    columns = Y.sparse_columns
    row_norms = X.norms()
    column_norms = Y.norms()
    height = max(1, _CHUNK // out.shape[1])

    def part(start: int, stop: int) -> None:
        for i in range(start, stop, height):
            end = min(i + height, stop)
            tile = np.zeros((end - i, out.shape[1]))
            lengths = (row_norms[i:end], column_norms)
            add_common(
                *(rows.indptr[i : end + 1], rows.indices, rows.data),
                *(columns.indptr, columns.indices, columns.data),
                kernel.metric == "l1",
                tile,
            )
            if kernel.metric != "dot":
                squared_from_dot(tile, *lengths, np.array([0, 2, 8 * np.finfo(float).eps]))
            if kernel.metric == "l2":
                np.sqrt(tile, out=tile)
            kernel.finish(tile, X.params, X.shape[1], lengths)
            out[i:end] = tile

    for_ranges(part, len(out), 16, work=out.size * _FINISH)


@njit(cache=True, nogil=True)
def add_common(starts, places, values, ends, numbers, others, absolute, out):
    """out[i, j] += sum over k of a b, where row i of a CSR matrix (starts, places, values) has a in
    column k and row j of a CSC matrix (ends, numbers, others) has b; absolute: of
    (|a| + |b| - |a - b|) / 2.
    """
    for i in range(out.shape[0]):
        for p in range(starts[i], starts[i + 1]):
            a = values[p]
            k = places[p]
            for q in range(ends[k], ends[k + 1]):
                b = others[q]
                if not absolute:
                    out[i, numbers[q]] += a * b
                elif a * b > 0:
                    out[i, numbers[q]] += min(abs(a), abs(b))


def _means(X: Prepared, Y: Prepared) -> tuple[bool, bool]:
    """(whether two-valued columns are compared as bits, whether the rows are compared by inner
    products).

    Differences are exact where norms cancel, and for few inputs they are also faster than a thin
    GEMM.
    """
    most = {"l1": np.inf, "product": np.inf, "l2": 64, "squared": _THIN, "dot": 0}[X.kernel.metric]
    binary = X._binary if X._bits is not None and Y._bits is not None else None
    if binary is None or binary is not Y._binary:
        return False, X.shape[1] > most
    by_product = len(binary.rest) > most
    return not by_product, by_product


def scaled_family(name: str, X, params: dict) -> Callable[[float], np.ndarray]:
    """A function from a factor to K (n, n) in float64 of the rows of X (n, d), dense or CSR, with
    the gamma of params times the factor.

    The rows are compared once: only the function of a distance or inner product depends on gamma,
    except for product kernels. The same array is overwritten every time. Raises like `prepare`.
    """
    kernel = get_kernel(name)
    n, d = X.shape

    def product(factor: float) -> np.ndarray:
        scaled = params | {"gamma": params["gamma"] * factor}
        return block(name, X, X, scaled, dtype=np.float64)

    if kernel.metric == "product":
        return product
    rows = prepare(name, X, params, np.float64)
    rows.kernel = copy.copy(kernel)
    rows.kernel.finish = lambda *_: None  # type: ignore[method-assign]  # of this copy alone
    compared = block(name, rows, rows, params)
    K = np.empty((n, n))

    def finished(factor: float) -> np.ndarray:
        np.multiply(compared, factor, out=K)
        kernel.finish(K, params, d, None)
        return K

    return finished


def diagonal(name: str, X, params: dict) -> np.ndarray:
    """(n,) float64 values k(x, x) of the rows of X (n, d), dense, CSR or Prepared."""
    kernel = get_kernel(name)

    def squares():
        return (X if isinstance(X, Prepared) else prepare(name, X, params, np.float64)).norms()

    return np.full(X.shape[0], kernel.diagonal(params, X.shape[1], squares))


def rounding_error(coef: np.ndarray, scale: float | np.ndarray) -> float:
    """The largest error of a prediction with float32 kernel values, relative to the targets.

    Parameters
    ----------
    coef : array, (m, k)
    scale : float or array (k,)
        The largest magnitude of each target.
    """
    errors = _VALUE_ERROR * np.linalg.norm(coef, axis=0)
    return float(np.max(errors / np.where(np.equal(scale, 0), 1.0, scale), initial=0.0))


def decision(name: str, params: dict, SV, coef, X, dtype=None) -> np.ndarray:
    """sum_j coef_j k(SV_j, x) for every row x of X, in blocks of kernel values.

    SV (m, d) and X (n, d): dense, CSR or Prepared; coef (m,) or (m, n_outputs). Returns float64
    (n,) or (n, n_outputs). dtype of the kernel values: float32 or float64, by default float32 if
    both X and SV are; their sums are float64.
    """
    coef = np.asarray(coef)
    X, SV = _prepare_both(name, X, SV, params, dtype)
    if (placed := SV.on_device()) is not None:
        return placed.times(X.dense(), coef)
    out = np.zeros((X.n_rows, *coef.shape[1:]))
    width, height = 2048, 4096
    buffer = np.empty(min(width, max(1, SV.n_rows)) * min(height, max(1, X.n_rows)), SV.dtype)
    for j in range(0, SV.n_rows, width):
        support = SV.take(slice(j, j + width))
        weights = np.asarray(coef[j : j + width], np.float64)
        for i in range(0, X.n_rows, height):
            rows = X.take(slice(i, i + height))
            K = buffer[: rows.n_rows * support.n_rows].reshape(rows.n_rows, support.n_rows)
            out[i : i + height] += _weighted_sums(
                block(name, rows, support, params, out=K), weights
            )
    return out


def _weighted_sums(K: np.ndarray, coef: np.ndarray) -> np.ndarray:
    """K @ coef in float64 for kernel values K (n, m) of either type, and coef (m,) or (m, k).

    With coefficients of 1e4, float32 sums of a row differed by .04 alone and in a batch, because
    BLAS adds in another order.
    """
    if K.dtype == np.float64:
        return matmul(K, coef)
    out = np.zeros((len(K), *coef.shape[1:]))

    def part(first: int, last: int) -> None:
        if coef.size == K.shape[1]:
            _add_sums(K[first:last], coef.ravel(), out[first:last].ravel())
            return
        for low in range(first, last, _SUM_ROWS):
            rows = slice(low, min(low + _SUM_ROWS, last))
            np.matmul(K[rows].astype(np.float64), coef, out=out[rows])

    with one_blas_thread():
        for_ranges(part, len(K), _SUM_ROWS, work=K.size * max(1, coef[:1].size))
    return out


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract", "nsz"})
def _add_sums(K: np.ndarray, coef: np.ndarray, out: np.ndarray) -> None:
    """out[i] += sum_j K[i, j] coef[j] in float64, for K (n, m) in float32."""
    for i in range(K.shape[0]):
        row = K[i]
        total = 0.0
        for j in range(len(row)):
            total += row[j] * coef[j]
        out[i] += total
