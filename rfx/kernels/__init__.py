"""Exact kernels: their table, their parameters, and their values by blocks."""

from rfx.kernels.blocks import Prepared, block, decision, diagonal, prepare
from rfx.kernels.parameters import parameters
from rfx.kernels.table import KERNELS, Kernel, get_kernel, perceptron_constant

__all__ = [
    "KERNELS",
    "Kernel",
    "Prepared",
    "block",
    "decision",
    "diagonal",
    "get_kernel",
    "parameters",
    "perceptron_constant",
    "prepare",
]
