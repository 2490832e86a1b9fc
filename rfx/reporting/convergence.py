"""How fast random features approach their kernel: the error of the estimated kernel matrix as
features are added, of every map.

The rows are drawn once, uniformly from [-1, 1]^6; every number of features has draws of its own,
one for each seed. By Monte Carlo the error falls as D^(-1/2) (Rahimi and Recht 2007); what chooses
its features by the rows may do better.
"""

from dataclasses import dataclass

import numpy as np

from rfx import kernels
from rfx.features import MAPS, leverage, sample
from rfx.features.binning import sample_grids
from rfx.features.nystrom import NystromMap, choose_landmarks
from rfx.features.widths import WIDTHS

ROWS, INPUTS = 256, 6
SIZES = tuple(2**k for k in range(4, 11))
SEEDS = 9
# The pool of features chosen by leverage, in features for each, and the lambda of the leverage.
POOL, LAM = 10, 1.0
NOTES = (
    (
        f"{ROWS} rows from [-1, 1]^{INPUTS}; gamma by the median. Error: root mean square over"
        f" pairs of different rows, divided by that of the kernel's values; medians over {SEEDS}"
        " seeds. Slope: of a line through them, both axes logarithmic, with its standard"
        " deviation."
    ),
    (
        "Products of heavy tails (exponential, and to a lesser degree arccosine-2 and polynomial-3)"
        " reach -1/2 with more features only."
    ),
    (
        f"By leverage: from {POOL} times as many, lambda {LAM:g}. Such features serve the kernel"
        " machine, not the kernel."
    ),
)
# In a sample of a normal distribution the median's deviation is so many times the mean's.
_MEDIAN = 1.2533


@dataclass
class Approach:
    """One map's errors: the median over the seeds, and the deviation over the seeds of the
    logarithm (base 2) of one.

    kernel: what it approaches. sizes: (m,) numbers of features (grids, landmarks). errors: (m,
    seeds) root mean squared errors of the kernel's values over pairs of different rows, divided by
    the root mean square of these.
    """

    name: str
    kernel: str
    sizes: np.ndarray
    errors: np.ndarray

    @property
    def medians(self) -> np.ndarray:
        return np.median(self.errors, axis=1)

    @property
    def slope(self) -> float:
        """Of the line through the medians in a plot with two logarithmic axes."""
        return float(np.polyfit(np.log2(self.sizes), np.log2(self.medians), 1)[0])

    @property
    def noise(self) -> float:
        """The standard deviation of `slope`, from the spread over the seeds."""
        spread = np.log2(self.errors).std(axis=1, ddof=1) * _MEDIAN / np.sqrt(self.errors.shape[1])
        places = np.log2(self.sizes) - np.log2(self.sizes).mean()
        return float(np.sqrt(np.sum((places * spread) ** 2)) / np.sum(places**2))


def rows(count: int = ROWS, inputs: int = INPUTS) -> np.ndarray:
    """(count, inputs) rows from [-1, 1], always the same."""
    return np.random.default_rng(0).uniform(-1, 1, (count, inputs))


def families() -> dict[str, dict[str, tuple[str, object]]]:
    """Family -> name -> (kernel, features): features(X, parameters, size, seed) are (n, m), their
    products estimate the kernel.

    Every map of random features there is, those of other packages too, and what chooses features,
    grids or landmarks.
    """
    found: dict[str, dict] = {
        "cosines": {},
        "signs and angles": {},
        "inner products": {},
        "chosen by the rows, and bins": {},
    }
    for name in MAPS:
        kernel = kernels.get_kernel(name)
        # words of sequences and coordinates, of which there are only so many, have no such rate
        if not kernel.metric or name == "linear":
            continue
        family = "inner products" if kernel.metric == "dot" else "cosines"
        if name.startswith("arccosine") or "gamma" not in kernel.parameters:
            family = "signs and angles"
        found[family][name] = name, _drawn(name)
    found["chosen by the rows, and bins"] = {
        "gaussian": ("gaussian", _drawn("gaussian")),
        "gaussian, by leverage": ("gaussian", _by_leverage),
        "nystrom, uniform": ("gaussian", _nystrom("uniform")),
        "nystrom, rpcholesky": ("gaussian", _nystrom("rpcholesky")),
        "laplacian": ("laplacian", _drawn("laplacian")),
        **{f"{name}, random binning": (name, _binned(name)) for name in WIDTHS},
    }
    return found


def measure(name: str, kernel: str, features, X, sizes=SIZES, seeds: int = SEEDS) -> Approach:
    """The Approach of one map on the rows X (n, d); features as in `families`."""
    params = kernels.parameters(
        kernel, X, "median" if "gamma" in kernels.get_kernel(kernel).parameters else None
    )
    exact = kernels.block(kernel, X, X, params)
    pairs = np.triu_indices(len(X), 1)
    scale = np.sqrt(np.mean(exact[pairs] ** 2))
    errors = np.empty((len(sizes), seeds))
    for i, size in enumerate(sizes):
        for seed in range(seeds):
            # a seed of its own for each size, so that errors of different sizes have nothing in
            # common
            Z = features(X, params, size, seed * len(sizes) + i)
            errors[i, seed] = np.sqrt(np.mean((Z @ Z.T - exact)[pairs] ** 2)) / scale
    return Approach(name, kernel, np.asarray(sizes), errors)


def measure_all(sizes=SIZES, seeds: int = SEEDS) -> dict[str, list[Approach]]:
    """Family -> the Approach of each of its maps. The landmarks of nystrom are fewer than
    the rows.
    """
    X = rows()
    return {
        family: [
            measure(
                name,
                kernel,
                features,
                X,
                [size for size in sizes if size < len(X) or not name.startswith("nystrom")],
                seeds,
            )
            for name, (kernel, features) in members.items()
        ]
        for family, members in families().items()
    }


def _drawn(name):
    def features(X, params, size, seed):
        return sample(name, X.shape[1], size, seed, dtype=np.float64, **params).transform(
            X
        ) / np.sqrt(size)

    return features


def _by_leverage(X, params, size, seed):
    pool = sample("gaussian", X.shape[1], POOL * size, seed, dtype=np.float64, **params)
    return leverage.draw(pool, X, size, LAM, seed).transform(X) / np.sqrt(size)


def _binned(name):
    def features(X, params, size, seed):
        grids = sample_grids(name, X.shape[1], size, seed, **params)
        return grids.transform(X, grids.number(X)[1]).toarray()

    return features


def _nystrom(how):
    def features(X, params, size, seed):
        landmarks = choose_landmarks(how, "gaussian", X, params, size, seed, 64.0)
        return NystromMap("gaussian", landmarks, params, np.float64).transform(X)

    return features
