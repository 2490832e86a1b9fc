"""Kernel classes, which declare a name, a comparison of rows and parameters; and their registry."""

import logging
from typing import Any

import numpy as np
import scipy.sparse as sp

from rfx import steps as told
from rfx.errors import UsageError, or_near
from rfx.kernels import loops
from rfx.model import Array
from rfx.options import Option
from rfx.plugins import Registry

log = logging.getLogger(__name__)
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

    clips: its scaling is not the same for all rows, so it is not invariant to a shift of all of
    them. scalings: those of the inputs that suit it, its default first; empty if all do. lengths:
    `finish` also needs ||x||^2 and ||y||^2. exact_in_float64: float32 would be too inaccurate.
    """

    name = ""
    formula = ""
    metric = ""
    of_inputs: int  # the function of each input of `compare`
    parameters: dict[str, Array] = {}
    optional: frozenset[str] = frozenset()
    options: tuple[Option, ...] = ()
    has_gradient = False
    clips = False
    scalings: tuple[str, ...] = ()
    lengths = False
    exact_in_float64 = False

    @property
    def centred(self) -> bool:
        """Whether the kernel is invariant to a shift of all rows."""
        return self.metric in ("squared", "l2", "l1", "product") and not self.clips

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

    def slope(self, xp, s) -> Any:
        """-k'(s) / s for metric values of scaled rows with distance s, arrays of the namespace xp;
        0 if there is no derivative at s = 0.
        """
        raise TypeError(f"{type(self).__name__} does not define slope")

    def compare(self, rows, columns, place: int, out) -> None:
        """For metric `product`: out (n, m) <- the kernel of rows (n, d) and m columns from number
        `place` on of (d, ...), both scaled.
        """
        loops.compare_inputs(rows, columns, place, out, self.of_inputs, out.dtype.type(loops.FAR))

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

        If the median is zero, only nonzero pairs are used; if there are none, `paper_gamma` is used
        with a warning.
        """
        n_rows = X.shape[0]
        if n_rows < 2:
            return self._without_median("there is only one row")
        rng = np.random.default_rng(seed)
        first = rng.integers(n_rows, size=_MEDIAN_PAIRS)
        second = (first + rng.integers(1, n_rows, size=_MEDIAN_PAIRS)) % n_rows
        distances = self.distances(X, first, second)
        median = float(np.median(distances))
        if median == 0:
            if not distances.any():
                return self._without_median(
                    "all rows are orthogonal" if self.metric == "dot" else "all rows are equal"
                )
            median = float(np.median(distances[distances > 0]))
        return 0.5 / median if self.metric == "squared" else 1.0 / median

    def distances(self, X, first, second) -> np.ndarray:
        """(n,) distances of the rows of X with the numbers first and second (n,), for `median`."""
        return _pair_distances(X, first, second, self.metric)

    def _without_median(self, why):
        log.warning("gamma 'median' is undefined because %s; using %g", why, self.paper_gamma)
        return self.paper_gamma

    def scale(self, Z, params):
        Z *= self._factor(params)

    def scaling(self, params, n_inputs):
        return (told.scaled(self._factor(params), n_inputs),)

    def _factor(self, params):
        gamma = params["gamma"]
        return np.sqrt(gamma) if self.metric in ("squared", "dot") else gamma


def _pair_distances(X, first, second, metric) -> np.ndarray:
    """(n,) distances, squared if the metric is, or magnitudes of inner products, of the rows of X,
    array or CSR, with the numbers first and second (n,): for wide CSR without making an array.
    """
    wide = sp.issparse(X) and X.shape[1] > WIDE

    def numbered(rows) -> Any:
        return X[rows].astype(np.float64) if wide else _dense(X, rows)

    left, right = numbered(first), numbered(second)
    if metric == "dot":
        products = left.multiply(right).sum(axis=1) if wide else np.einsum("ij,ij->i", left, right)
        return np.abs(np.asarray(products)).ravel()
    difference = left - right
    if metric in ("l1", "product"):
        return np.asarray(abs(difference).sum(axis=1)).ravel()
    distances = squared_norms(difference)
    return np.sqrt(distances) if metric == "l2" else distances


def _dense(X, rows) -> np.ndarray:
    part = X[rows]
    return np.asarray(part.toarray() if sp.issparse(part) else part, dtype=np.float64)


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
