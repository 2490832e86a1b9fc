"""How fast random features approach their kernel: the error of the estimated kernel matrix against
the number of features, for every map.

The rows are drawn once, uniformly from [-1, 1]^6; kernels of inputs of 0 or more take their
magnitudes, and the kernel of categories their signs. Features are drawn independently for every
number of features and every seed. By Monte Carlo the error decreases as D^(-1/2) (Rahimi and Recht
2007). Methods that select their features from the rows may do better.
"""

from dataclasses import dataclass
from functools import partial

import numpy as np

from rfx import kernels
from rfx.features import MAPS, leverage, sample
from rfx.features.binning import sample_grids
from rfx.features.nystrom import NystromMap, choose_landmarks
from rfx.features.widths import WIDTHS

ROWS, INPUTS = 256, 6
SIZES = tuple(2**k for k in range(4, 11))
SEEDS = 9
# Size of the pool for selection by leverage, per selected feature, and lambda of the leverage.
POOL, LAM = 10, 1.0
NOTES = (
    (
        f"{ROWS} rows from [-1, 1]^{INPUTS}; gamma by the median. Error: root mean square over"
        f" pairs of different rows, divided by that of the kernel's values; medians over {SEEDS}"
        " seeds. Slope: of a line through them, both axes logarithmic, with its standard"
        " deviation."
    ),
    (
        "Products of heavy tails (exponential, and to a lesser degree arccosine-2)"
        " reach -1/2 with more features only. The features of additive-chi2 are evenly"
        " distributed over inputs and frequencies, and do better."
    ),
    (
        f"By leverage: from {POOL} times as many, lambda {LAM:g}. Such features serve the kernel"
        " machine, not the kernel."
    ),
)
# In samples of a normal distribution, the standard error of the median over that of the mean.
_MEDIAN = 1.2533


@dataclass
class Approach:
    """The errors of one map: the median over the seeds, and the standard deviation over the seeds
    of the base-2 logarithm of one error.

    kernel: the kernel that the map approximates. sizes: (m,) numbers of features (grids,
    landmarks). errors: (m, seeds) root mean squared errors of the kernel values over pairs of
    different rows, divided by the root mean square of these values.
    """

    name: str
    kernel: str
    sizes: np.ndarray
    errors: np.ndarray

    @property
    def medians(self) -> np.ndarray:
        return np.median(self.errors, axis=1)

    @property
    def by_size(self) -> dict[int, float]:
        return dict(zip(self.sizes.tolist(), self.medians.tolist()))

    @property
    def slope(self) -> float:
        """The slope of the line through the medians in a log-log plot."""
        return float(np.polyfit(np.log2(self.sizes), np.log2(self.medians), 1)[0])

    @property
    def noise(self) -> float:
        """The standard deviation of `slope`, from the spread over the seeds."""
        spread = np.log2(self.errors).std(axis=1, ddof=1) * _MEDIAN / np.sqrt(self.errors.shape[1])
        places = np.log2(self.sizes) - np.log2(self.sizes).mean()
        return float(np.sqrt(np.sum((places * spread) ** 2)) / np.sum(places**2))


def rows(count: int = ROWS, inputs: int = INPUTS) -> np.ndarray:
    """(count, inputs) rows from [-1, 1], the same in every call."""
    return np.random.default_rng(0).uniform(-1, 1, (count, inputs))


def families() -> dict[str, dict[str, tuple[str, object]]]:
    """Family -> name -> (kernel, features). features(X, parameters, size, seed) are (n, m), and
    their products estimate the kernel.

    The families include every map of random features, also those of other packages, and every
    method that selects features, grids or landmarks.
    """
    maps: dict[str, dict] = {
        "cosines": {},
        "signs and angles": {},
        "inner products": {},
        "chosen by the rows, and bins": {},
    }
    for name in MAPS:
        kernel = kernels.get_kernel(name)
        # sequence words and coordinates are finite in number and have no such rate
        if not kernel.metric or name == "linear":
            continue
        family = "inner products" if kernel.metric == "dot" else "cosines"
        of_angles = "gamma" not in kernel.parameters and kernel.metric != "product"
        if of_angles or name == "hamming":
            family = "signs and angles"
        maps[family][name] = name, partial(_drawn, name)
    maps["chosen by the rows, and bins"] = {
        "gaussian": ("gaussian", partial(_drawn, "gaussian")),
        "gaussian, by leverage": ("gaussian", _by_leverage),
        "nystrom, uniform": ("gaussian", partial(_nystrom, "uniform")),
        "nystrom, rpcholesky": ("gaussian", partial(_nystrom, "rpcholesky")),
        "laplacian": ("laplacian", partial(_drawn, "laplacian")),
        **{f"{name}, random binning": (name, partial(_binned, name)) for name in WIDTHS},
    }
    return maps


def measure(name: str, kernel: str, features, X, sizes=SIZES, seeds: int = SEEDS) -> Approach:
    """The Approach of one map on the rows X (n, d), with features as in `families`."""
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
    return Approach(name, kernel, np.asarray(sizes), errors)


def measure_all(sizes=SIZES, seeds: int = SEEDS) -> dict[str, list[Approach]]:
    """Family -> the Approach of each of its maps. For nystrom, there are fewer
    landmarks than rows.
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


def _drawn(name: str, X, params, size: int, seed: int):
    variant = MAPS[name].usual(name)
    made = sample(name, X.shape[1], size, seed, dtype=np.float64, variant=variant, **params)
    return made.transform(X) / np.sqrt(size)


def _by_leverage(X, params, size: int, seed: int):
    pool = sample("gaussian", X.shape[1], POOL * size, seed, dtype=np.float64, **params)
    return leverage.draw(pool, X, size, LAM, seed).transform(X) / np.sqrt(size)


def _binned(name: str, X, params, size: int, seed: int):
    grids = sample_grids(name, X.shape[1], size, seed, **params)
    return grids.transform(X, grids.number(X)[1]).toarray()


def _nystrom(how: str, X, params, size: int, seed: int):
    landmarks = choose_landmarks(how, "gaussian", X, params, size, seed, 64.0)
    return NystromMap("gaussian", landmarks, params, np.float64).transform(X)
