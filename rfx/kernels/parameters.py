"""What a kernel needs besides its name, learnt from training rows."""

import numpy as np
import scipy.sparse as sp

from rfx.errors import DataError, UsageError
from rfx.kernels.table import KERNELS, Kernel, get_kernel

_MEDIAN_PAIRS = 2000


def parameters(name: str, X, gamma: float | str | None = None, seed: int = 0) -> dict:
    """What the kernel needs besides its name, learnt from the scaled training inputs X (n, d), dense or CSR.

    gamma: a number in (0, inf); 'paper' (also None): 1/2 for gaussian, 1 for laplacian and laplacian-l2; or 'median':
    1 / (2 median ||x - y||_2^2), 1 / median ||x - y||_1, 1 / median ||x - y||_2 over 2,000 random pairs of different
    rows drawn from `seed`. perceptron gets `radius`, the largest ||x||_2; stump gets `lo` and `hi`, (d,) each.

    Raises UsageError for an unknown kernel, a gamma out of range, and a gamma where the kernel has none; DataError
    where the median distance is zero.
    """
    kernel = get_kernel(name)
    if kernel.paper_gamma is not None:
        return {"gamma": _gamma(kernel, X, gamma, seed)}
    if gamma is not None:
        known = ", ".join(k.name for k in KERNELS.values() if k.paper_gamma is not None)
        raise UsageError(f"gamma is {gamma!r}, but kernel {name!r} has no gamma; the kernels that have one: {known}")
    if name == "perceptron":
        return {"radius": float(np.sqrt(squared_norms(X).max(initial=0.0)))}
    if name == "stump":
        ends = {"lo": X.min(axis=0), "hi": X.max(axis=0)}
        return {key: np.array(end.toarray() if sp.issparse(end) else end, float).ravel() for key, end in ends.items()}
    return {}


def _gamma(kernel: Kernel, X, gamma, seed: int) -> float:
    if gamma is None or gamma == "paper":
        return kernel.paper_gamma
    if gamma == "median":
        return _median_gamma(kernel, X, seed)
    try:
        value = float(gamma)
    except (TypeError, ValueError):
        value = np.nan
    if not (np.isfinite(value) and value > 0):
        raise UsageError(
            f"gamma is {gamma!r}, but kernel {kernel.name!r} takes a number in (0, inf), 'paper' ({kernel.paper_gamma:g}) or 'median'"
        )
    return value


def _median_gamma(kernel: Kernel, X, seed: int) -> float:
    n_rows = X.shape[0]
    if n_rows < 2:
        raise DataError(f"gamma 'median' needs two rows, but there is {n_rows}; give gamma as a number")
    rng = np.random.default_rng(seed)
    first = rng.integers(n_rows, size=_MEDIAN_PAIRS)
    second = (first + rng.integers(1, n_rows, size=_MEDIAN_PAIRS)) % n_rows
    difference = _dense(X, first) - _dense(X, second)
    if kernel.metric == "l1":
        distances = np.abs(difference).sum(axis=1)
    else:
        distances = np.einsum("ij,ij->i", difference, difference)
        if kernel.metric == "l2":
            distances = np.sqrt(distances)
    median = float(np.median(distances))
    if median == 0:
        raise DataError("gamma 'median' is infinite: half of the random pairs are identical; give gamma as a number")
    return 0.5 / median if kernel.metric == "squared" else 1.0 / median


def _dense(X, rows) -> np.ndarray:
    part = X[rows]
    return np.asarray(part.toarray() if sp.issparse(part) else part, dtype=np.float64)


def squared_norms(X) -> np.ndarray:
    if sp.issparse(X):
        return np.asarray(X.multiply(X).sum(axis=1), dtype=np.float64).ravel()
    return np.einsum("ij,ij->i", X, X, dtype=np.float64)
