"""The kernel's parameters from the training rows, with `tuned`: a small validation over four bandwidths."""

import numpy as np

from rfx import kernels
from rfx.features import sample
from rfx.operators.mapped import feature_matrix
from rfx.solvers.base import Budget
from rfx.solvers.ridge import solve_ridge

FACTORS = (0.25, 1.0, 4.0, 16.0)
# With 2,000 rows and 512 features the validation prefers kernels that are too wide for all rows of ijcnn1 or covtype.
ROWS, FEATURES = 4000, 1000


def resolve(kernel: str, gamma, X, Y, lam, seed: int, **options) -> dict:
    """The kernel's parameters; gamma `tuned` is decided here, all else by rfx.kernels.parameters with the kernel's own options.

    X: (n, d) scaled inputs; Y: (n, k) encoded targets; lam: the ridge parameter, for the sample as for all n rows.
    """
    if "gamma" not in kernels.get_kernel(kernel).parameters and isinstance(gamma, str):
        # the words mean "whatever this kernel needs"; only a number is refused
        gamma = None
    if gamma != "tuned":
        return kernels.parameters(kernel, X, gamma, seed, **options)
    base = kernels.parameters(kernel, X, "median", seed)["gamma"]
    order = np.random.default_rng(seed).permutation(X.shape[0])
    size = min(ROWS, X.shape[0] // 2)
    if size == 0:
        return {"gamma": base}
    train, test = np.sort(order[:size]), np.sort(order[size : 2 * size])
    error = {base * factor: _error(kernel, base * factor, X, Y, train, test, lam, seed) for factor in FACTORS}
    return {"gamma": min(error, key=error.get)}


def _error(kernel, gamma, X, Y, train, test, lam, seed) -> float:
    """Mean squared error on the test rows of ridge regression on FEATURES random features."""
    feature_map = sample(kernel, X.shape[1], FEATURES, seed, gamma=gamma)
    scale = 1 / np.sqrt(FEATURES)
    weights = solve_ridge(feature_matrix(feature_map, X[train], scale), Y[train], lam, budget=Budget(tol=1e-4)).coef
    return float(np.mean((feature_map.transform(X[test]) @ (scale * weights) - Y[test]) ** 2))
