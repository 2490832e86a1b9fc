"""Kernels of the inner product of two rows, of the words of sequences, and of random signs."""

import numpy as np
import scipy.sparse as sp
from scipy.special import gammaln

from rfx import steps as told
from rfx.errors import UsageError
from rfx.kernels.base import GammaKernel, Kernel, squared_norms
from rfx.model import Array
from rfx.options import Option
from rfx.types import KernelParams

# ----------------------------------------------------------------------
# Kernels of the inner product of two rows: linear, polynomial, exponential, arc-cosine; and of the
# words of sequences.


class Linear(Kernel):
    name = "linear"
    formula = "x . y"
    metric = "dot"

    def diagonal(self, params, n_inputs, squares):
        return squares()


class Polynomial(GammaKernel):
    metric = "dot"

    def __init__(self, power: int):
        self.power = power
        self.name = f"polynomial-{power}"
        self.formula = f"(1 + gamma x . y)^{power}"

    def finish(self, tile, params, n_inputs, lengths):
        tile += 1
        np.power(tile, self.power, out=tile)

    def finishing(self, params, rows):
        plus_one = told.Scale(np.full(len(rows), -1.0), np.ones(len(rows)))
        return plus_one, told.Function({2: "square", 3: "cube"}[self.power])

    def diagonal(self, params, n_inputs, squares):
        return (1 + squares()) ** self.power


class Exponential(GammaKernel):
    name = "exponential"
    formula = "exp(gamma x . y)"
    metric = "dot"

    def finish(self, tile, params, n_inputs, lengths):
        np.exp(tile, out=tile)

    def finishing(self, params, rows):
        return (told.Function("exp"),)

    def diagonal(self, params, n_inputs, squares):
        return np.exp(squares())


class ArcCosine(Kernel):
    """||x||^p ||y||^p J_p(theta) / pi, theta the angle between x and y: Cho and Saul
    (2009), equation 3; 0 for a row of zeros.
    """

    metric = "dot"
    lengths = True
    exact_in_float64 = True

    def __init__(self, order: int):
        self.order = order
        self.name = f"arccosine-{order}"
        inner = (
            "pi - theta",
            "sin theta + (pi - theta) cos theta",
            "3 sin theta cos theta + (pi - theta)(1 + 2 cos^2 theta)",
        )[order]
        self.formula = f"(||x|| ||y||)^{order} ({inner}) / pi"

    def finish(self, tile, params, n_inputs, lengths):
        product = np.sqrt(lengths[0])[:, None] * np.sqrt(lengths[1])
        with np.errstate(invalid="ignore", divide="ignore"):
            cosine = np.clip(tile / product, -1.0, 1.0)
        angle = np.arccos(cosine)
        if self.order == 0:
            values = np.pi - angle
        elif self.order == 1:
            values = np.sqrt(1 - cosine**2) + (np.pi - angle) * cosine
        else:
            values = 3 * np.sqrt(1 - cosine**2) * cosine + (np.pi - angle) * (1 + 2 * cosine**2)
        np.multiply(product**self.order, values / np.pi, out=tile)
        tile[product == 0] = 0.0

    def comparison(self, rows):
        return (told.ArcCosine(rows, self.order),)

    def finishing(self, params, rows):
        return ()

    def diagonal(self, params, n_inputs, squares):
        lengths = squares()
        return np.where(lengths > 0, (1.0, 1.0, 3.0)[self.order] * lengths**self.order, 0.0)


_LETTERS = 5  # default maximum word length of a Kmers kernel


class Kmers(Kernel):
    """The fraction of all words of up to k letters that two sequences have in common, each at the
    same position.

    Rows are letter codes (see rfx.data.libsvm). It has no values in blocks, only a
    feature map.
    """

    name = "kmers"
    formula = "sum over words v of up to k letters and places p of [v at p in x] [v at p in y]"
    parameters = {"k": Array("i"), "alphabet": Array("i", "letters")}
    options = (
        Option(
            "k",
            int,
            "Letters of the longest words (kernel kmers).",
            low=1,
            high=12,
            default=_LETTERS,
        ),
    )

    def learn(self, X, given, seed):
        super().learn(X, given, seed)
        found = np.unique(X.toarray() if hasattr(X, "toarray") else X)
        codes = found.astype(np.int64)
        if len(codes) > 100 or np.any(codes != found):
            raise UsageError(
                "--kernel is kmers, which is for sequences of letters with --scaling none, but the"
                " inputs are other numbers"
            )
        return {"k": int(given.get("k") or _LETTERS), "alphabet": codes.tolist()}


# ----------------------------------------------------------------------
# Kernels of random signs: the perceptron and the stump kernel (Lin and Li 2008; Yen et al. 2014,
# section 5).


class Perceptron(Kernel):
    """K_P = R/c_d - ||x - y||_2, or with --perceptron-scale unit (c_d/R) K_P, that of features +-1
    (Yen et al. 2014, section 5).

    R is the largest length of a training row, c_d = E|theta_1| for theta uniform on the unit
    sphere. params["unit"] exists, with value 1, only for the scale `unit`.
    """

    name = "perceptron"
    formula = "R / c_d - ||x - y||_2"
    metric = "l2"
    parameters = {"radius": Array("f"), "unit": Array("f")}
    optional = frozenset(("unit",))
    options = (
        Option(
            "perceptron_scale",
            str,
            "Scale of kernel perceptron, on which the meaning of --lam depends.",
            {
                "kernel": "R/c_d - ||x - y||, features +-sqrt(R/c_d)",
                "unit": "1 - (c_d/R) ||x - y||, features +-1",
            },
            default="kernel",
            before="kernel",
        ),
    )

    def learn(self, X, given, seed):
        super().learn(X, given, seed)
        (option,) = self.options
        scale = option.convert(given.get("perceptron_scale") or option.default)
        found = {"radius": float(np.sqrt(squared_norms(X).max(initial=0.0)))}
        if scale == "unit":
            found["unit"] = 1.0
        return found

    def _factor(self, params: KernelParams, n_inputs: int) -> float:
        """That of a distance: 1, or c_d/R."""
        if not params.get("unit"):
            return 1.0
        radius = params["radius"]
        # rows that are all 0 have R = 0, and share all features
        return perceptron_constant(n_inputs) / radius if radius else 0.0

    def finish(self, tile, params, n_inputs, lengths):
        factor = self._factor(params, n_inputs)
        if factor != 1.0:
            tile *= factor
        np.subtract(tile.dtype.type(self.diagonal(params, n_inputs, None)), tile, out=tile)

    def finishing(self, params, rows):
        m, n_inputs = rows.shape
        diagonal = np.full(m, self.diagonal(params, n_inputs, None))
        less = told.Scale(diagonal, np.full(m, -1.0))
        return told.scaled(self._factor(params, n_inputs), m), less

    def diagonal(self, params, n_inputs, squares):
        if params.get("unit"):
            return 1.0
        return params["radius"] / perceptron_constant(n_inputs)


class Stump(Kernel):
    """Rows are clipped to [lo, hi], the ranges of the training rows."""

    name = "stump"
    formula = "1 - 2 ||x - y||_1 / sum(hi - lo)"
    metric = "l1"
    fixed = True  # rows are clipped
    parameters = {"lo": Array("f", "inputs"), "hi": Array("f", "inputs")}

    def learn(self, X, given, seed):
        super().learn(X, given, seed)
        ends = {"lo": X.min(axis=0), "hi": X.max(axis=0)}
        return {
            key: np.array(end.toarray() if sp.issparse(end) else end, float).ravel()
            for key, end in ends.items()
        }

    def scale(self, Z, params):
        lo = params["lo"]
        hi = params["hi"]
        np.clip(Z, lo, hi, out=Z)
        width = float(np.sum(hi - lo))
        Z -= lo
        Z *= 2.0 / width if width > 0 else 0.0

    def finish(self, tile, params, n_inputs, lengths):
        np.subtract(tile.dtype.type(1), tile, out=tile)

    def scaling(self, params, n_inputs):
        lo, hi = (np.asarray(params[name], np.float64) for name in ("lo", "hi"))
        width = float(np.sum(hi - lo))
        return told.Clip(lo, hi), told.Scale(lo, np.full(n_inputs, 2.0 / width if width else 0.0))

    def finishing(self, params, rows):
        return (told.Scale(np.ones(len(rows)), np.full(len(rows), -1.0)),)


def perceptron_constant(n_inputs: int) -> float:
    """c_d = E|theta_1| for theta uniform on the unit sphere of n_inputs dimensions (Lin and
    Li 2008).
    """
    return float(np.exp(gammaln(n_inputs / 2) - gammaln((n_inputs + 1) / 2)) / np.sqrt(np.pi))


KERNELS = (
    Linear(),
    *(Polynomial(power) for power in (2, 3)),
    Exponential(),
    *(ArcCosine(order) for order in (0, 1, 2)),
    Kmers(),
    Perceptron(),
    Stump(),
)
