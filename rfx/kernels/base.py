"""Kernel classes, their registry, and compiled comparisons of rows."""

from __future__ import annotations

from types import ModuleType

import numpy as np
import scipy.sparse as sp

from rfx import steps as told
from rfx.compiled import njit
from rfx.errors import UsageError, or_near
from rfx.model import Array
from rfx.options import Option
from rfx.plugins import Registry
from rfx.types import DeviceArray

# ----------------------------------------------------------------------
# Compiled comparisons of many pairs of rows: distances, from differences or inner products, and
# functions of each input.

# The functions of each input of `compare_inputs`: factors up to SECH, terms from there on.
HAT, RATIONAL, ERLANG, SECH, CHI2, DIFFERING = range(6)
# Larger distances, in units of 1/gamma, are treated as this: avoids infinity times zero.
FAR = 500.0
_TILE = 512


@njit(cache=True, nogil=True)
def compare_inputs(
    rows: np.ndarray, columns: np.ndarray, place: int, out: np.ndarray, how: int, far: float
) -> None:
    """out (n, m) <- the product or sum over the inputs of a function of a and b, the inputs of rows
    (n, d) and columns (d, ...) from number `place` on; by tiles of columns that stay in cache.

    far: FAR in the arrays' type, because Python's numbers would make the loops float64.
    """
    zero = far - far
    one = far / far
    half = one / (one + one)
    for begin in range(0, out.shape[1], _TILE):
        end = min(begin + _TILE, out.shape[1])
        for i in range(out.shape[0]):
            values = out[i, begin:end]
            values[:] = one if how <= SECH else zero
            for k in range(rows.shape[1]):
                a = rows[i, k]
                A = columns[k, place + begin : place + end]
                twice = a + a
                square = a * a
                if how == HAT:
                    for j in range(end - begin):
                        values[j] *= max(zero, one - abs(a - A[j]))
                elif how == RATIONAL:
                    for j in range(end - begin):
                        values[j] /= one + abs(a - A[j])
                elif how == ERLANG:
                    for j in range(end - begin):
                        t = min(far, abs(a - A[j]))
                        values[j] *= (one + half * t) * np.exp(-t)
                elif how == SECH:
                    for j in range(end - begin):
                        values[j] *= twice * A[j] / (square + A[j] * A[j])
                elif how == DIFFERING:
                    for j in range(end - begin):
                        if A[j] != a:
                            values[j] += one
                elif square > 0:
                    for j in range(end - begin):
                        b = A[j] * A[j]
                        values[j] += (square + square) * (b / (square + b))


@njit(cache=True, nogil=True)
def _size(difference: float, squared: bool) -> float:
    return difference * difference if squared else abs(difference)


@njit(cache=True, nogil=True)
def sum_differences(
    rows: np.ndarray, columns: np.ndarray, place: int, out: np.ndarray, squared: bool, tile: int
) -> None:
    """out[i, j] = sum_k (rows[i, k] - columns[k, place + j])^2, or of absolute differences; by
    tiles of columns in cache.

    Two rows are processed together, so that columns are read once for both; for an odd number, the
    last is paired with itself.
    """
    n_rows, n_inputs = rows.shape
    whole = n_inputs - n_inputs % 4
    for begin in range(0, out.shape[1], tile):
        end = min(begin + tile, out.shape[1])
        left, right = place + begin, place + end
        for i in range(0, n_rows, 2):
            m = min(i + 1, n_rows - 1)
            first, second = out[i, begin:end], out[m, begin:end]
            first[:] = 0
            second[:] = 0
            for k in range(0, whole, 4):
                a, b, c, d = rows[i, k], rows[i, k + 1], rows[i, k + 2], rows[i, k + 3]
                e, f, g, h = rows[m, k], rows[m, k + 1], rows[m, k + 2], rows[m, k + 3]
                A, B = columns[k, left:right], columns[k + 1, left:right]
                C, D = columns[k + 2, left:right], columns[k + 3, left:right]
                for j in range(end - begin):
                    p, q = _size(a - A[j], squared), _size(b - B[j], squared)
                    r, s = _size(c - C[j], squared), _size(d - D[j], squared)
                    one = first[j] + ((p + q) + (r + s))
                    p, q = _size(e - A[j], squared), _size(f - B[j], squared)
                    r, s = _size(g - C[j], squared), _size(h - D[j], squared)
                    two = second[j] + ((p + q) + (r + s))
                    first[j] = one
                    second[j] = two
            for k in range(whole, n_inputs):
                a, e, A = rows[i, k], rows[m, k], columns[k, left:right]
                for j in range(end - begin):
                    one = first[j] + _size(a - A[j], squared)
                    two = second[j] + _size(e - A[j], squared)
                    first[j] = one
                    second[j] = two


@njit(cache=True, nogil=True)
def squared_from_dot(
    dots: np.ndarray, row_norms: np.ndarray, column_norms: np.ndarray, numbers: np.ndarray
) -> None:
    """Dot products to squared distances, ||x||^2 + ||y||^2 - 2 x.y; zero if only rounding errors
    remain.

    numbers: 0, 2 and the rounding of a squared distance of 1, in the type of all others, because
    Python's would make the loop float64.
    """
    zero, two, tolerance = numbers
    for i in range(dots.shape[0]):
        row = dots[i]
        norm = row_norms[i]
        for j in range(row.shape[0]):
            both = norm + column_norms[j]
            distance = both - two * row[j]
            row[j] = distance if distance > tolerance * both else zero


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract", "nsz"})
def mend_close(
    squared: np.ndarray,
    row_norms: np.ndarray,
    column_norms: np.ndarray,
    rows: np.ndarray,
    others: np.ndarray,
    close: np.ndarray,
) -> None:
    """Squared distances of rows (n, d) and others (m, d) recomputed from differences, if they are
    less than close[0] of the norms' sum.
    """
    for i in range(squared.shape[0]):
        found = squared[i]
        norm = row_norms[i]
        count = 0
        for j in range(len(found)):
            count += found[j] < close[0] * (norm + column_norms[j])
        if count == 0:
            continue
        for j in range(len(found)):
            if found[j] < close[0] * (norm + column_norms[j]):
                total = close[0] - close[0]
                for k in range(rows.shape[1]):
                    difference = rows[i, k] - others[j, k]
                    total += difference * difference
                found[j] = total


# ----------------------------------------------------------------------
# Kernel classes, which declare a name, a comparison of rows and parameters; and their registry.

_MEDIAN_PAIRS = 2000
WIDE = 1000  # columns above which CSR rows are compared as CSR


class Kernel:
    """A kernel k(x, y): a function of a comparison of two scaled rows.

    name, formula. metric: the comparison of scaled rows, `squared` (||x - y||_2^2), `l2` (||x -
    y||_2), `l1` (||x - y||_1), `dot` (x.y) or `product`, by `compare`; "" for a
    kernel without exact values, defined only by its feature map. parameters: those stored in a
    model file; optional: those that some models lack. options: its own options, added to methods
    that use it.

    has_gradient: its derivative is implemented (see `rfx.kernels.gradients`).

    fixed: not invariant to a shift of all rows, whatever the metric. scalings: those of the inputs
    that suit it, its default first; empty if all do. lengths: `finish` also needs ||x||^2 and
    ||y||^2. exact_in_float64: float32 would be too inaccurate.
    """

    name = ""
    formula = ""
    metric = ""
    of_inputs: int  # the function of each input of `compare`
    parameters: dict[str, Array] = {}
    optional: frozenset[str] = frozenset()
    options: tuple[Option, ...] = ()
    has_gradient = False
    fixed = False
    scalings: tuple[str, ...] = ()
    lengths = False
    exact_in_float64 = False

    @property
    def centred(self) -> bool:
        """Whether the kernel is invariant to a shift of all rows."""
        return self.metric in ("squared", "l2", "l1", "product") and not self.fixed

    @property
    def needs_rows(self) -> bool:
        """Whether it has parameters other than gamma and its options, learnt from all rows."""
        return bool(set(self.parameters) - {"gamma", *(option.name for option in self.options)})

    def learn(self, X, given: dict, seed: int) -> dict:
        """The parameters for scaled training rows X (n, d), dense or CSR; given: the options that
        were set, including gamma.

        Raises UsageError for a gamma if the kernel has none.
        """
        if given.get("gamma") is not None:
            having = ", ".join(
                name for name, kernel in KERNELS.items() if "gamma" in kernel.parameters
            )
            raise UsageError(
                f"gamma is {given['gamma']!r}, but kernel {self.name!r} has no gamma; kernels with"
                f" gamma: {having}"
            )
        return {}

    def scale(self, Z, params: dict) -> None:
        """Transform float64 rows Z (n, d) in place to those that the metric compares."""

    def finish(self, tile, params: dict, n_inputs: int, lengths) -> None:
        """Replace metric values by kernel values; lengths: of the tile's rows and columns, None if
        not needed.
        """

    def steps(self, rows, params: dict) -> told.Steps:
        """The computation steps from a row x (d,) to its kernel values with each of the rows (m,
        d), dense.

        Raises
        ------
        UsageError
            If the kernel does not define them.
        """
        Z = np.array(rows, np.float64)
        self.scale(Z, params)
        return *self.scaling(params, Z.shape[1]), *self.comparison(Z), *self.finishing(params, Z)

    def scaling(self, params: dict, n_inputs: int) -> told.Steps:
        """The steps of `scale` for a row."""
        return ()

    def comparison(self, rows) -> told.Steps:
        """The steps of the metric for a row and each of the rows, both scaled."""
        if self.metric == "dot":
            return (told.linear(rows.T),)
        if self.metric == "l2":
            return told.Compare(rows, "squared"), told.Function("sqrt")
        return (told.Compare(rows, self.metric),)

    def finishing(self, params: dict, rows) -> told.Steps:
        """The steps of `finish` for metric values of the scaled rows (m, d)."""
        if type(self).finish is not Kernel.finish:
            raise UsageError(f"kernel {self.name} can't be exported: there are no steps for it")
        return ()

    def slope(self, xp: ModuleType, s: DeviceArray) -> DeviceArray:
        """-k'(s) / s for metric values of scaled rows with distance s, arrays of the namespace xp;
        0 if there is no derivative at s = 0.
        """
        raise TypeError(f"{type(self).__name__} does not define slope")

    def compare(self, rows, columns, place: int, out) -> None:
        """For metric `product`: out (n, m) <- the kernel of rows (n, d) and m columns from number
        `place` on of (d, ...), both scaled.
        """
        compare_inputs(rows, columns, place, out, self.of_inputs, out.dtype.type(FAR))

    def diagonal(self, params: dict, n_inputs: int, squares):
        """k(x, x): a number, or (n,) from the squared lengths of the scaled rows, squares()
        (n,).
        """
        return 1.0


class GammaKernel(Kernel):
    """A kernel with a bandwidth gamma.

    paper_gamma: the value of `--gamma paper`, which Yen et al. (2014) apparently used: untuned,
    inputs in [0, 1].
    """

    parameters = {"gamma": Array("f")}
    paper_gamma = 1.0

    def learn(self, X, given, seed):
        """gamma: a number in (0, inf), 'paper' (also None), 'median' (see `median`) or
        'median-matlab'.

        median-matlab is the median heuristic in the program of Dai et al. (2014) for exp(-gamma ||x
        - y||^2): gamma is one over the squared median, twice that of 'median'; for other kernels
        they are the same.
        """
        gamma = given.get("gamma")
        if gamma is None or gamma == "paper":
            return {"gamma": self.paper_gamma}
        if gamma == "median":
            return {"gamma": self.median(X, seed)}
        if gamma == "median-matlab":
            return {"gamma": self.median(X, seed) * (2.0 if self.metric == "squared" else 1.0)}
        return {"gamma": float(gamma)}

    def median(self, X, seed: int) -> float:
        """1 / (2 median ||x - y||_2^2) or 1 / median ||x - y|| over 2,000 random pairs of different
        rows; 1 / median |x.y| for dot, 1 / median ||x - y||_1 for product.

        If the median is zero, only nonzero pairs are used, and without any `paper_gamma`:
        with equal rows, no bandwidth differs from another.
        """
        n_rows = X.shape[0]
        rng = np.random.default_rng(seed)
        first = rng.integers(n_rows, size=_MEDIAN_PAIRS)
        # a single row is paired with itself
        second = (first + rng.integers(1, max(2, n_rows), size=_MEDIAN_PAIRS)) % n_rows
        distances = self.distances(X, first, second)
        if not distances.any():
            return self.paper_gamma
        median = float(np.median(distances) or np.median(distances[distances > 0]))
        return 0.5 / median if self.metric == "squared" else 1.0 / median

    def distances(self, X, first, second) -> np.ndarray:
        """(n,) distances of the rows of X with the numbers first and second (n,), for `median`:
        squared if the metric is, or magnitudes of inner products. Wide CSR stays CSR.
        """
        left, right = (X[rows].astype(np.float64) for rows in (first, second))
        if sp.issparse(X) and X.shape[1] <= WIDE:
            left = left.toarray()
            right = right.toarray()
        if self.metric == "dot":
            wide = sp.issparse(left)
            products = left.multiply(right).sum(1) if wide else np.einsum("ij,ij->i", left, right)
            return np.abs(np.asarray(products)).ravel()
        difference = left - right
        if self.metric in ("l1", "product"):
            return np.asarray(abs(difference).sum(axis=1)).ravel()
        distances = squared_norms(difference)
        return np.sqrt(distances) if self.metric == "l2" else distances

    def scale(self, Z, params):
        Z *= self._factor(params)

    def scaling(self, params, n_inputs):
        return (told.scaled(self._factor(params), n_inputs),)

    def _factor(self, params):
        gamma = params["gamma"]
        return np.sqrt(gamma) if self.metric in ("squared", "dot") else gamma


def squared_norms(X) -> np.ndarray:
    """(n,) float64 squared lengths of the rows of X, dense or CSR."""
    if sp.issparse(X):
        return np.asarray(X.multiply(X).sum(axis=1), dtype=np.float64).ravel()
    return np.einsum("ij,ij->i", X, X, dtype=np.float64)


def _declares(value) -> dict[str, Kernel]:
    """The kernels in KERNELS of a module of this folder, or those of a feature map."""
    found = (
        value
        if isinstance(value, tuple)
        else value.__dict__.get("kernels", ())
        if isinstance(value, type)
        else ()
    )
    return {kernel.name: kernel for kernel in found if isinstance(kernel, Kernel)}


KERNELS = Registry("kernel", "rfx.kernels", _declares, "rfx.feature_maps")


def get_kernel(name: str) -> Kernel:
    """The kernel of that name.

    Raises UsageError with the known kernels.
    """
    try:
        return KERNELS[name]
    except KeyError:
        raise UsageError(
            f"kernel {name!r} is unknown{or_near(name, KERNELS, 'choose one of')}"
        ) from None


def parameters(name: str, X, gamma: float | str | None = None, seed: int = 0, **options) -> dict:
    """The kernel's parameters, learnt from the scaled training inputs X (n, d), dense or CSR.

    gamma: a number, 'paper', 'median' or None; options: the kernel's own. Raises UsageError for an
    unknown kernel or an invalid value, DataError for unsuitable rows.
    """
    return get_kernel(name).learn(X, {"gamma": gamma} | options, seed)
