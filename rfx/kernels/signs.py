"""Kernels of random signs: the perceptron and the stump kernel (Lin and Li 2008; Yen et al.
2014, section 5).
"""

import numpy as np
import scipy.sparse as sp
from scipy.special import gammaln

from rfx import steps as told
from rfx.kernels.base import Kernel, squared_norms
from rfx.model import Array
from rfx.options import Option


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
        scale = self.options[0].convert(given.get("perceptron_scale") or self.options[0].default)
        unit = {"unit": 1.0} if scale == "unit" else {}
        return {"radius": float(np.sqrt(squared_norms(X).max(initial=0.0)))} | unit

    def finish(self, tile, params, n_inputs, lengths):
        if params.get("unit"):
            # rows that are all 0 have R = 0, and share all features
            tile *= perceptron_constant(n_inputs) / params["radius"] if params["radius"] else 0.0
        np.subtract(tile.dtype.type(self.diagonal(params, n_inputs, None)), tile, out=tile)

    def finishing(self, params, rows):
        unit, (m, n_inputs) = 1.0, rows.shape
        if params.get("unit"):
            constant = perceptron_constant(n_inputs)
            unit = constant / params["radius"] if params["radius"] else 0.0
        less = told.Scale(np.full(m, self.diagonal(params, n_inputs, None)), np.full(m, -1.0))
        return told.scaled(unit, m), less

    def diagonal(self, params, n_inputs, squares):
        return 1.0 if params.get("unit") else params["radius"] / perceptron_constant(n_inputs)


class Stump(Kernel):
    """Rows are clipped to [lo, hi], the ranges of the training rows."""

    name = "stump"
    formula = "1 - 2 ||x - y||_1 / sum(hi - lo)"
    metric = "l1"
    clips = True
    parameters = {"lo": Array("f", "inputs"), "hi": Array("f", "inputs")}

    def learn(self, X, given, seed):
        super().learn(X, given, seed)
        ends = {"lo": X.min(axis=0), "hi": X.max(axis=0)}
        return {
            key: np.array(end.toarray() if sp.issparse(end) else end, float).ravel()
            for key, end in ends.items()
        }

    def scale(self, Z, params):
        lo, hi = params["lo"], params["hi"]
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


KERNELS = (Perceptron(), Stump())
