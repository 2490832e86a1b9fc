"""Product kernels: one function of |x_j - y_j| per input, convex and decreasing from 1 to 0.

These are the kernels with random binning features (Rahimi and Recht 2007, section 4; Wu et al.
2016, equation 6): a factor k is the mean of max(0, 1 - t/width) over widths with the density width
k''(width). The Laplacian, whose product is a function of a distance, is in rfx.kernels.distances.
"""

from rfx import steps as told
from rfx.kernels.base import GammaKernel
from rfx.kernels.loops import ERLANG, HAT, RATIONAL


class Factors(GammaKernel):
    metric = "product"

    def __init__(self, name: str, formula: str, of_inputs: int):
        self.name, self.formula, self.of_inputs = name, formula, of_inputs

    def comparison(self, rows):
        return (told.Compare(rows, self.name),)


KERNELS = (
    Factors("hat", "prod_j max(0, 1 - gamma |x_j - y_j|)", HAT),
    Factors("rational", "prod_j 1 / (1 + gamma |x_j - y_j|)", RATIONAL),
    Factors("erlang", "prod_j (1 + gamma |x_j - y_j| / 2) exp(-gamma |x_j - y_j|)", ERLANG),
)
