"""Exact kernels: declarations, parameters, and values in blocks."""

from rfx.kernels.base import KERNELS, GammaKernel, Kernel, get_kernel, parameters
from rfx.kernels.blocks import (
    Prepared,
    block,
    decision,
    diagonal,
    prepare,
    rounding_error,
    scaled_family,
    values,
)
from rfx.kernels.products import perceptron_constant

__all__ = [
    "KERNELS",
    "GammaKernel",
    "Kernel",
    "Prepared",
    "block",
    "decision",
    "diagonal",
    "get_kernel",
    "parameters",
    "perceptron_constant",
    "prepare",
    "rounding_error",
    "scaled_family",
    "values",
]
