"""Chi-square kernels of histograms and other inputs of 0 or more: additive and skewed.

A factor of both is 2 sqrt(a b) / (a + b) = sech((log a - log b) / 2), a stationary kernel of the
logarithms (Vedaldi and Zisserman 2012; Li, Ionescu and Sminchisescu 2010).
"""

import numpy as np
import scipy.sparse as sp

from rfx import steps as told
from rfx.errors import DataError
from rfx.kernels.base import Kernel
from rfx.kernels.distances import Gaussian
from rfx.kernels.loops import CHI2, SECH
from rfx.model import Array
from rfx.options import Option

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
    scalings = ("none", "minmax01")

    @property
    def centred(self):
        return False

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
        """Raise DataError for the first entry of X, dense or CSR, for which wrong is true."""
        values = X.data if sp.issparse(X) else np.asarray(X)
        if wrong(values.min(initial=0.0)):
            entries = X.tocoo() if sp.issparse(X) else None
            if entries is None:
                row, column = np.argwhere(wrong(values))[0]
                value = values[row, column]
            else:
                place = np.flatnonzero(wrong(entries.data))[0]
                column, value = entries.col[place], entries.data[place]
            raise DataError(
                # scikit-learn's words for estimators with the tag positive_only
                f"Negative values in data: kernel {self.name} is for inputs {needed}, but input"
                f" {column + 1} of a row is {value:g} after scaling; use --scaling"
                f" {' or '.join(self.scalings)}, or another kernel"
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


KERNELS = (AdditiveChi2(), SkewedChi2())
