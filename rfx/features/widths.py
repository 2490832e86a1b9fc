"""Widths of random binning grids: the density of a width t is t k''(t) for the kernel's
one-dimensional factor k (Rahimi and Recht 2007; Wu et al. 2016, equation 6)."""

import numpy as np

from rfx.features.random import uniforms

_STREAM = 16
# Widths below this would have a reciprocal that overflows.
_NARROWEST = 1e-300


def sample_widths(
    kernel: str, n_inputs: int, n_grids: int, seed: int, gamma: float, start: int = 0
) -> np.ndarray:
    """(n_grids, n_inputs) widths of the grids start .. start+n_grids-1; those of grid r depend only
    on (seed, r).

    kernel: one of WIDTHS.
    """
    count, width = WIDTHS[kernel]
    numbers = uniforms(seed, _STREAM, start, start + n_grids, count * n_inputs).reshape(
        n_grids, n_inputs, count
    )
    with np.errstate(divide="ignore"):
        widths = width(numbers) / gamma
    return np.ascontiguousarray(np.clip(widths, _NARROWEST, 1 / _NARROWEST))


def _exponentials(numbers):
    """Sums of as many exponential variables as there are numbers."""
    return -np.log(numbers).sum(axis=-1)


def _heavy(numbers):
    """For the distribution function (t / (1 + t))^2."""
    root = np.sqrt(numbers[..., 0])
    return root / (1 - root)


# kernel -> (uniform numbers per width, the width for gamma = 1): for the densities t exp(-t), t^2
# exp(-t) / 2 and 2t / (1 + t)^3; constant width.
WIDTHS = {
    "laplacian": (2, _exponentials),
    "erlang": (3, _exponentials),
    "rational": (1, _heavy),
    "hat": (1, lambda numbers: np.ones(numbers.shape[:-1])),
}
