"""Kernels of the distance of two rows, or of their differences per input."""

import numpy as np
import scipy.sparse as sp

from rfx import steps as told
from rfx.errors import DataError
from rfx.kernels.base import CHI2, DIFFERING, ERLANG, HAT, RATIONAL, SECH, GammaKernel, Kernel
from rfx.model import Array
from rfx.options import Option

# ----------------------------------------------------------------------
# Kernels of the distance of two rows: Gaussian, the two Laplacians, Matern, mixtures of Gaussians.

# The bandwidths of `multiscale`, in units of gamma: lengths of 1/4, 1/2, 1, 2 and 4.
SCALES = (1 / 16, 1 / 4, 1.0, 4.0, 16.0)


class Gaussian(GammaKernel):
    name = "gaussian"
    formula = "exp(-gamma ||x - y||_2^2)"
    metric = "squared"
    paper_gamma = 0.5
    has_gradient = True

    def finish(self, tile, params, n_inputs, lengths):
        np.exp(np.negative(tile, out=tile), out=tile)

    def finishing(self, params, rows):
        return (told.Function("exp_minus"),)

    def slope(self, xp, s):
        return 2 * xp.exp(-s)


class Laplacian(Gaussian):
    name = "laplacian"
    formula = "exp(-gamma ||x - y||_1)"
    metric = "l1"
    paper_gamma = GammaKernel.paper_gamma


class LaplacianL2(Laplacian):
    name = "laplacian-l2"
    formula = "exp(-gamma ||x - y||_2)"
    metric = "l2"

    def slope(self, xp, s):
        return xp.exp(-s) / xp.where(s > 0, s, xp.inf)


class Matern3(GammaKernel):
    """Smoothness 3/2 (Rasmussen and Williams 2006, equation 4.17), with gamma one over its length
    scale.
    """

    name = "matern-3/2"
    formula = "(1 + s) exp(-s), s = sqrt3 gamma ||x - y||_2"
    metric = "l2"
    has_gradient = True

    def finish(self, tile, params, n_inputs, lengths):
        tile *= tile.dtype.type(np.sqrt(3))
        rising = tile + 1
        np.exp(np.negative(tile, out=tile), out=tile)
        tile *= rising

    def finishing(self, params, rows):
        return told.scaled(np.sqrt(3), len(rows)), told.Function("matern3")

    def slope(self, xp, s):
        return 3 * xp.exp(-(3**0.5) * s)


class Matern5(GammaKernel):
    """Smoothness 5/2 (Rasmussen and Williams 2006, equation 4.17), with gamma one over its length
    scale.
    """

    name = "matern-5/2"
    formula = "(1 + s + s^2/3) exp(-s), s = sqrt5 gamma ||x - y||_2"
    metric = "l2"
    has_gradient = True

    def finish(self, tile, params, n_inputs, lengths):
        tile *= tile.dtype.type(np.sqrt(5))
        rising = 1 + tile * (1 + tile / 3)
        np.exp(np.negative(tile, out=tile), out=tile)
        tile *= rising

    def finishing(self, params, rows):
        return told.scaled(np.sqrt(5), len(rows)), told.Function("matern5")

    def slope(self, xp, s):
        s = 5**0.5 * s
        return (1 + s) * (5 / 3) * xp.exp(-s)


class RationalQuadratic(GammaKernel):
    """Rasmussen and Williams (2006), equation 4.19, with gamma = 1 / (2 l^2) for the length scale
    l: the Gaussian kernel in the limit of large alpha.
    """

    name = "rational-quadratic"
    formula = "(1 + gamma ||x - y||_2^2 / alpha)^-alpha"
    metric = "squared"
    paper_gamma = 0.5
    parameters = {"gamma": Array("f"), "rq_alpha": Array("f")}
    options = (
        Option(
            "rq_alpha",
            float,
            "Exponent of kernel rational-quadratic; the smaller it is, the more length scales the"
            " kernel mixes.",
            low=1e-3,
            high=1e6,
            default=1.0,
        ),
    )

    def learn(self, X, given, seed):
        alpha = given.get("rq_alpha")
        (option,) = self.options
        return super().learn(X, given, seed) | {
            "rq_alpha": option.convert(option.default if alpha is None else alpha)
        }

    def finish(self, tile, params, n_inputs, lengths):
        alpha = params["rq_alpha"]
        tile *= tile.dtype.type(1 / alpha)
        np.log1p(tile, out=tile)
        tile *= tile.dtype.type(-alpha)
        np.exp(tile, out=tile)

    def finishing(self, params, rows):
        alpha = float(params["rq_alpha"])
        m = len(rows)
        raised = told.Scale(np.full(m, -alpha), np.full(m, 1 / alpha))
        powers = told.scaled(alpha, m), told.Function("exp_minus")
        return raised, told.Function("log_positive"), *powers


class Multiscale(GammaKernel):
    """The mean of Gaussian kernels whose length scales are octaves apart.

    The factors are those of the maximum mean discrepancy with several kernels (Long et al. 2015,
    who multiply gamma by powers of two), here 4^-2 to 4^2.
    """

    name = "multiscale"
    formula = "mean of exp(-s gamma ||x - y||_2^2) over s = 1/16, 1/4, 1, 4, 16"
    metric = "squared"
    paper_gamma = 0.5

    def finish(self, tile, params, n_inputs, lengths):
        np.negative(tile, out=tile)
        total = np.zeros_like(tile)
        for scale in SCALES:
            total += np.exp(tile * tile.dtype.type(scale))
        np.multiply(total, tile.dtype.type(1 / len(SCALES)), out=tile)

    def finishing(self, params, rows):
        return (told.Function("multiscale"),)


# ----------------------------------------------------------------------
# Product kernels: one function of |x_j - y_j| per input, convex and decreasing from 1 to 0.
#
# These are the kernels with random binning features (Rahimi and Recht 2007, section 4; Wu et al.
# 2016, equation 6): a factor k is the mean of max(0, 1 - t/width) over widths with the density
# width k''(width). The Laplacian, whose product is a function of a distance, is in
# rfx.kernels.distances.


class Factors(GammaKernel):
    metric = "product"

    def __init__(self, name: str, formula: str, of_inputs: int):
        self.name = name
        self.formula = formula
        self.of_inputs = of_inputs

    def comparison(self, rows):
        return (told.Compare(rows, self.name),)


# ----------------------------------------------------------------------
# The kernel of rows of categories, whose inputs are codes: equal or different.


class Hamming(GammaKernel):
    """A product over the inputs of 1 for equal codes and exp(-gamma) for different ones.

    On one-hot groups of inputs it is the Gaussian kernel, because ||x - y||_2^2 is twice the number
    of groups that differ.
    """

    name = "hamming"
    formula = "exp(-gamma #{j: x_j != y_j})"
    metric = "product"
    of_inputs = DIFFERING
    fixed = True
    scalings = ("none",)

    def scale(self, Z, params):
        pass

    def scaling(self, params, n_inputs):
        return ()

    def finish(self, tile, params, n_inputs, lengths):
        tile *= tile.dtype.type(-params["gamma"])
        np.exp(tile, out=tile)

    def comparison(self, rows):
        return (told.Compare(rows, "differing"),)

    def finishing(self, params, rows):
        return told.scaled(params["gamma"], len(rows)), told.Function("exp_minus")

    def distances(self, X, first, second):
        left = X[first]
        right = X[second]
        if sp.issparse(X):
            return np.asarray((left != right).sum(axis=1), np.float64).ravel()
        return (left != right).sum(axis=1).astype(np.float64)


# ----------------------------------------------------------------------
# Chi-square kernels of histograms and other inputs of 0 or more: additive and skewed.
#
# A factor of both is 2 sqrt(a b) / (a + b) = sech((log a - log b) / 2), a stationary kernel of the
# logarithms (Vedaldi and Zisserman 2012; Li, Ionescu and Sminchisescu 2010).

SKEWEDNESS = Option(
    "skewedness",
    float,
    "c of kernel skewed-chi2, in the unit of the inputs.",
    {"median": "half the root of the median of ||x - y||^2"},
    low=0,
    open_low=True,
    high=1e9,
    default="median",
)


class ChiSquare(Kernel):
    """Rows are compared as the square roots of their inputs, shifted by c for the skewed kernel."""

    metric = "product"
    fixed = True
    scalings = ("none", "minmax01")

    def check(self, X, params: dict) -> None:
        """Raise DataError for rows X (n, d), dense or CSR, with an input out of the domain."""
        raise TypeError(f"{type(self).__name__} does not define check")

    def learn(self, X, given, seed):
        found = super().learn(X, given, seed) | self._learnt(X, given, seed)
        # rows on workers are checked as they are compared, or mapped
        if isinstance(X, np.ndarray) or sp.issparse(X):
            self.check(X, found)
        return found

    def _learnt(self, X, given: dict, seed: int) -> dict:
        """Its own parameters."""
        return {}

    def _refuse(self, X, wrong, needed: str):
        """Raise DataError if wrong is true for the smallest entry of X, dense or CSR."""
        least = (X.data if sp.issparse(X) else np.asarray(X)).min(initial=0.0)
        if wrong(least):
            raise DataError(
                # scikit-learn's words for estimators with the tag positive_only
                f"Negative values in data: kernel {self.name} is for inputs {needed}, but one is"
                f" {least:g} after scaling; use --scaling {' or '.join(self.scalings)}, or another"
                " kernel"
            )


class AdditiveChi2(ChiSquare):
    """The sum of x_j for equal rows; the negative chi-square distance of scikit-learn's
    additive_chi2_kernel is 2 k(x, y) - sum_j (x_j + y_j).
    """

    name = "additive-chi2"
    formula = "sum_j 2 x_j y_j / (x_j + y_j), x_j >= 0"
    of_inputs = CHI2

    def check(self, X, params):
        self._refuse(X, lambda values: values < 0, "of 0 or more")

    def scale(self, Z, params):
        self.check(Z, params)
        np.sqrt(Z, out=Z)

    def comparison(self, rows):
        return (told.Compare(rows**2, "chi2"),)

    def diagonal(self, params, n_inputs, squares):
        return squares()


class SkewedChi2(ChiSquare):
    """Li, Ionescu and Sminchisescu (2010), with c = params["skewedness"].

    For c above the inputs it is nearly exp(-||x - y||_2^2 / (8 c^2)), so the c of `median` makes it
    as wide as the Gaussian kernel of the median bandwidth.
    """

    name = "skewed-chi2"
    formula = "prod_j 2 sqrt((x_j + c)(y_j + c)) / (x_j + y_j + 2c), x_j > -c"
    of_inputs = SECH
    parameters = {"skewedness": Array("f")}
    options = (SKEWEDNESS,)

    def _learnt(self, X, given, seed):
        c = SKEWEDNESS.convert(given.get("skewedness") or SKEWEDNESS.default)
        if c == "median":
            c = float((8 * Gaussian().median(X, seed)) ** -0.5)
        return {"skewedness": c}

    def check(self, X, params):
        c = params["skewedness"]
        self._refuse(X, lambda values: values <= -c, f"above {-c:g} (--skewedness {c:g})")

    def scale(self, Z, params):
        self.check(Z, params)
        Z += params["skewedness"]
        np.sqrt(Z, out=Z)

    def scaling(self, params, n_inputs):
        shift = told.Scale(np.full(n_inputs, -params["skewedness"]), np.ones(n_inputs))
        return shift, told.Function("log_positive"), told.scaled(0.5, n_inputs)

    def comparison(self, rows):
        return (told.Compare(np.log(rows), "sech"),)


KERNELS = (
    Gaussian(),
    Laplacian(),
    LaplacianL2(),
    Matern3(),
    Matern5(),
    RationalQuadratic(),
    Multiscale(),
    Factors("hat", "prod_j max(0, 1 - gamma |x_j - y_j|)", HAT),
    Factors("rational", "prod_j 1 / (1 + gamma |x_j - y_j|)", RATIONAL),
    Factors("erlang", "prod_j (1 + gamma |x_j - y_j| / 2) exp(-gamma |x_j - y_j|)", ERLANG),
    Hamming(),
    AdditiveChi2(),
    SkewedChi2(),
)
