"""The bandwidth from the training rows: with `tuned` by ridge regression on random features, the same for every method."""

import numpy as np

from rfx import kernels
from rfx.errors import UsageError
from rfx.features import MAPS, sample
from rfx.losses import Squared
from rfx.methods import weights
from rfx.methods.validation import GAMMA_FACTORS, error, step
from rfx.operators.mapped import feature_matrix
from rfx.solvers.base import Budget
from rfx.solvers.ridge import solve_ridge_grid

# With 2,000 rows and 512 features the validation prefers kernels that are too wide for all rows of ijcnn1 or covtype.
ROWS, FEATURES = 4000, 1000


def has_gamma(kernel: str) -> bool:
    """Whether the kernel has a bandwidth."""
    return "gamma" in kernels.get_kernel(kernel).parameters


def resolve(kernel: str, gamma, X, seed: int, **options) -> dict:
    """The kernel's parameters by rfx.kernels.parameters with the kernel's own options; gamma: a number or a word of its own."""
    if not has_gamma(kernel) and isinstance(gamma, str):
        # the words mean "whatever this kernel needs"; only a number is refused
        gamma = None
    return kernels.parameters(kernel, X, gamma, seed, **options)


def candidates(kernel: str, X, seed: int, factors=GAMMA_FACTORS) -> list[float]:
    """The bandwidths that are tried: multiples of that of the median distance."""
    base = kernels.parameters(kernel, X, "median", seed)["gamma"]
    return [base * factor for factor in factors]


def tuned(kernel: str, X, Y, lams, seed: int, row_weights=None) -> tuple[float, list[dict]]:
    """(gamma, steps): of the candidates the one with the least error of ridge regression, for the best of `lams`, and the scores.

    X: (n, d) scaled inputs; Y: (n, k) encoded targets; lams: ridge parameters, for the sample as for all n rows;
    row_weights: (n,), None for ones. Of fewer than two
    rows the median is taken, without scores. Raises UsageError for a kernel without random features of that kind.
    """
    if kernel not in MAPS:
        raise UsageError(f"--gamma is tuned, by random features of kernel {kernel}, of which there are none; choose validation or median")
    found = candidates(kernel, X, seed)
    order = np.random.default_rng(seed).permutation(X.shape[0])
    size = min(ROWS, X.shape[0] // 2)
    if size == 0:
        return found[GAMMA_FACTORS.index(1.0)], []
    train, test = np.sort(order[:size]), np.sort(order[size : 2 * size])
    tried = []
    for value in found:
        errors = _errors(kernel, value, X, Y, train, test, lams, seed, row_weights)
        tried += [[value, *([lam] if len(lams) > 1 else []), one] for lam, one in zip(lams, errors)]
    options = ["gamma", "lam"][: len(tried[0]) - 1]
    place = min(range(len(tried)), key=lambda i: tried[i][-1])
    # the lambda is that of the sample, and of no further use
    return tried[place][0], [step("ridge on random features", options, len(train), len(test), "mean squared error", tried, place)]


def _errors(kernel, gamma, X, Y, train, test, lams, seed, row_weights) -> list[float]:
    """Mean squared errors on the test rows of ridge regression on FEATURES random features, one for each of lams."""
    feature_map = sample(kernel, X.shape[1], FEATURES, seed, gamma=gamma)
    scale = 1 / np.sqrt(FEATURES)
    Z, targets, _ = weights.problem(feature_matrix(feature_map, X[train], scale), Y[train], Squared, weights.part(row_weights, train))
    solutions = solve_ridge_grid(Z, targets, lams, budget=Budget(tol=1e-4))
    Z, out = feature_map.transform(X[test]), weights.part(row_weights, test)
    return [error("regression", Z @ (scale * solution.coef), Y[test], out) for solution in solutions]
