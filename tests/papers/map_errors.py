"""How fast random features approach their kernel: the error of the estimated kernel matrix against
the number of features, for every map.

The rows are drawn once, uniformly from [-1, 1]^6; kernels of inputs of 0 or more take their
magnitudes, and the kernel of categories their signs. Features are drawn independently for every
number of features and every seed. By Monte Carlo the error decreases as D^(-1/2) (Rahimi and Recht
2007). Methods that select their features from the rows may do better.
"""

from functools import partial

import numpy as np

from rfx import kernels
from rfx.features import MAPS, nystrom, sample
from rfx.features.binning import WIDTHS, sample_grids
from rfx.features.nystrom import NystromMap, choose_landmarks

SEEDS = 9
# Size of the pool for selection by leverage, per selected feature, and lambda of the leverage.
POOL, LAM = 10, 1.0
# In samples of a normal distribution, the standard error of the median over that of the mean.
_MEDIAN = 1.2533


def slope(sizes, errors):
    """The slope of the line through the medians of the errors (sizes, seeds) in a log-log plot, and
    its standard deviation, from the spread over the seeds.
    """
    places = np.log2(sizes) - np.log2(sizes).mean()
    spread = np.log2(errors).std(axis=1, ddof=1) * _MEDIAN / np.sqrt(errors.shape[1])
    noise = np.sqrt(np.sum((places * spread) ** 2)) / np.sum(places**2)
    return np.polyfit(places, np.log2(np.median(errors, axis=1)), 1)[0], noise


def rows(count):
    """(count, 6) rows from [-1, 1], the same in every call."""
    return np.random.default_rng(0).uniform(-1, 1, (count, 6))


def all_maps():
    """Name -> (kernel, features). features(X, parameters, size, seed) are (n, m), and their
    products estimate the kernel.

    They include every map of random features, also those of other packages, and every method that
    selects features, grids or landmarks. Sequence words and coordinates are finite in number and
    have no such rate.
    """
    drawn = [name for name in MAPS if kernels.get_kernel(name).metric and name != "linear"]
    return {
        **{name: (name, partial(_drawn, name)) for name in drawn},
        "gaussian, by leverage": ("gaussian", _by_leverage),
        "nystrom, uniform": ("gaussian", partial(_nystrom, "uniform")),
        "nystrom, rpcholesky": ("gaussian", partial(_nystrom, "rpcholesky")),
        **{f"{name}, random binning": (name, partial(_binned, name)) for name in WIDTHS},
    }


def measure(kernel, features, X, sizes, seeds):
    """(sizes, seeds) root mean squared errors of the kernel values over pairs of different rows,
    divided by the root mean square of these values; features as in `all_maps`.
    """
    if kernels.get_kernel(kernel).scalings:
        X = np.sign(X) if kernel == "hamming" else np.abs(X)
    params = kernels.parameters(
        kernel, X, "median" if "gamma" in kernels.get_kernel(kernel).parameters else None
    )
    exact = kernels.block(kernel, X, X, params)
    pairs = np.triu_indices(len(X), 1)
    scale = np.sqrt(np.mean(exact[pairs] ** 2))
    errors = np.empty((len(sizes), seeds))
    for i, size in enumerate(sizes):
        for seed in range(seeds):
            # a different seed for each size, so that errors of different sizes are independent
            Z = features(X, params, size, seed * len(sizes) + i)
            errors[i, seed] = np.sqrt(np.mean((Z @ Z.T - exact)[pairs] ** 2)) / scale
    return errors


def _drawn(name: str, X, params, size: int, seed: int):
    variant = MAPS[name].usual(name)
    made = sample(name, X.shape[1], size, seed, dtype=np.float64, variant=variant, **params)
    return made.transform(X) / np.sqrt(size)


def _by_leverage(X, params, size: int, seed: int):
    pool = sample("gaussian", X.shape[1], POOL * size, seed, dtype=np.float64, **params)
    return nystrom.draw(pool, X, size, LAM, seed).transform(X) / np.sqrt(size)


def _binned(name: str, X, params, size: int, seed: int):
    grids = sample_grids(name, X.shape[1], size, seed, **params)
    return grids.transform(X, grids.number(X)[1]).toarray()


def _nystrom(how: str, X, params, size: int, seed: int):
    landmarks = choose_landmarks(how, "gaussian", X, params, size, seed, 64.0)
    return NystromMap("gaussian", landmarks, params, np.float64).transform(X)
