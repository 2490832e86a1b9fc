"""Kernels of the inner product of two rows: linear, polynomial, exponential, arc-cosine; and of the
words of sequences.
"""

import numpy as np

from rfx import steps as told
from rfx.errors import UsageError
from rfx.kernels.base import GammaKernel, Kernel
from rfx.model import Array
from rfx.options import Option


class Linear(Kernel):
    name = "linear"
    formula = "x . y"
    metric = "dot"

    def diagonal(self, params, n_inputs, squares):
        return squares()


class Polynomial(GammaKernel):
    metric = "dot"

    def __init__(self, power: int):
        self.power, self.name, self.formula = (
            power,
            f"polynomial-{power}",
            f"(1 + gamma x . y)^{power}",
        )

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
        self.order, self.name = order, f"arccosine-{order}"
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

    Rows are letter codes (see rfx.data.libsvm.sequences). It has no values in blocks, only a
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


KERNELS = (
    Linear(),
    *(Polynomial(power) for power in (2, 3)),
    Exponential(),
    *(ArcCosine(order) for order in (0, 1, 2)),
    Kmers(),
)
