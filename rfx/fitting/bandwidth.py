"""Choose the bandwidth on the training rows: `loo` by kernel ridge regression, `tuned` by ridge
regression on random features.

The result is the same for every method with the kernel, and uses only training rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.linalg

from rfx import kernels
from rfx.data.tabular.apart import Apart, Part
from rfx.errors import UsageError
from rfx.features import MAPS, sample
from rfx.fitting import weights
from rfx.fitting.search import Grid, Measure, Point, Round, search
from rfx.fitting.validation import GAMMA_FACTORS, drawn, error, fewer
from rfx.losses import Squared
from rfx.operators.mapped import feature_matrix
from rfx.solvers.base import Budget
from rfx.solvers.ridge import solve_ridge_grid

if TYPE_CHECKING:
    from rfx.data.rows import RowsLike

# With 2,000 rows and 512 features, validation prefers kernels that are too wide for all rows of
# ijcnn1 or covtype.
ROWS, FEATURES = 4000, 1000
# For `loo`: the multiples of the median bandwidth, the number of rows, and the maximum cost of
# comparing these (rows^2 times inputs).
LOO_FACTORS = (1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0, 2.0, 4.0)
LOO_ROWS, LOO_COST = 800, 2e9
# Below this number of rows their errors are uninformative.
LOO_FEWEST = 20
# Folds used when groups or times constrain the rows.
PARTS = 5


def has_gamma(kernel: str) -> bool:
    """Whether the kernel has a bandwidth."""
    return "gamma" in kernels.get_kernel(kernel).parameters


def resolve(kernel: str, gamma: Any, X: RowsLike, seed: int, **options: Any) -> dict[str, Any]:
    """The kernel's parameters from rfx.kernels.parameters with the kernel's own options; gamma: a
    number or a word.
    """
    if not has_gamma(kernel) and isinstance(gamma, str):
        # the words mean "choose for this kernel"; only a number raises an error
        gamma = None
    return kernels.parameters(kernel, X, gamma, seed, **options)


def candidates(
    kernel: str, X: RowsLike, seed: int, factors: Sequence[float] = GAMMA_FACTORS
) -> list[float]:
    """The candidate bandwidths: multiples of that of the median distance."""
    base = kernels.parameters(kernel, X, "median", seed)["gamma"]
    return [base * factor for factor in factors]


def loo(
    kernel: str,
    X: RowsLike,
    Y: np.ndarray,
    lams: Sequence[float],
    seed: int,
    row_weights: np.ndarray | None = None,
    slack: float = 0.0,
    apart: Apart | None = None,
    **options: Any,
) -> tuple[float, list[dict[str, Any]]]:
    """(gamma, steps): among LOO_FACTORS times the median bandwidth, the one with the lowest
    leave-one-out error of kernel ridge regression, and all errors.

    X: (n, d) scaled inputs, of which at most LOO_ROWS are used; Y: (n, k) encoded targets; lams:
    ridge parameters; each bandwidth uses its best; row_weights: (n,), None for ones. The error of
    leaving row i out is (y_i - f(x_i)) / (1 - h_ii) with the hat matrix h (Allen 1974), from one
    spectral decomposition for all lambdas. slack: among bandwidths whose error exceeds the lowest
    by at most this fraction, the one closest to the median bandwidth is used. apart: groups or
    times; the errors are then those of held-out folds. options: the kernel's own. For too few rows,
    or a kernel without exact values, the median is returned.
    """
    found = candidates(kernel, X, seed, LOO_FACTORS)
    metric, most = kernels.get_kernel(kernel).metric, LOO_ROWS
    if metric in ("l1", "product"):
        # a product kernel compares the rows again for each bandwidth
        passes = 1 if metric == "l1" else len(LOO_FACTORS)
        most = min(most, int(np.sqrt(LOO_COST / max(1, X.shape[1] * passes))))
    (rows,) = drawn(X.shape[0], seed, most)
    median = LOO_FACTORS.index(1.0)
    some = None if apart is None else apart.rows(rows)
    if len(rows) < LOO_FEWEST or not metric or (some is not None and some.one):
        return found[median], []
    own = np.sqrt(np.ones(len(rows)) if row_weights is None else row_weights[rows])
    # the points arrive in this order, each once
    compared = X[rows]
    params = resolve(kernel, found[median], compared, seed, **options)
    family = kernels.scaled_family(kernel, compared, params, LOO_FACTORS)
    if some is None:
        errors = lambda point, round, lams: _left_out(next(family), Y[rows], lams, own)
        measure = Measure("leave-one-out mean squared error")
    else:
        parts = some.up_to(PARTS, seed)
        errors = lambda point, round, lams: _in_parts(next(family), Y[rows], lams, own, parts)
        measure = Measure("mean squared error of parts held out in turn")
    tried = search(errors, _grid("kernel ridge regression", found, lams, len(rows)), measure)
    best = tried.best
    if slack:
        far = {value: abs(np.log(factor)) for value, factor in zip(found, LOO_FACTORS)}
        best = min(tried.within(slack), key=lambda one: (far[one.point["gamma"]], one.score))
    # this lambda is for so many rows, and not used further
    return best.point["gamma"], [tried.step(lam=True, held_out=len(rows), best=best)]


def _grid(by: str, gammas: list[float], lams: Sequence[float], n_rows: int) -> Grid:
    """The bandwidths times the lambdas, for models of so many rows."""
    points = [Point(by, {"gamma": value}) for value in gammas]
    return Grid(points, {by: lams}, [Round(n_rows)])


def _left_out(K: np.ndarray, Y: np.ndarray, lams: Sequence[float], own: np.ndarray) -> list[float]:
    """Leave-one-out mean squared errors of ridge regression with the kernel values K (n, n), which
    are overwritten, for each of lams.

    Y: (n, k); own: the square roots of the sample weights (n,).
    """
    K *= own
    K *= own[:, None]
    values, vectors = scipy.linalg.eigh(K, overwrite_a=True, check_finite=False, driver="evd")
    values, targets, squares = np.maximum(values, 0.0), Y * own[:, None], vectors**2
    parts, errors = vectors.T @ targets, []
    for lam in lams:
        kept = values / (values + lam)
        left = targets - vectors @ (kept[:, None] * parts)
        errors.append(
            float(np.sum((left / (1 - squares @ kept)[:, None]) ** 2) / (own @ own) / Y.shape[1])
        )
    return errors


def _in_parts(
    K: np.ndarray, Y: np.ndarray, lams: Sequence[float], own: np.ndarray, parts: list[Part]
) -> list[float]:
    """Mean squared errors on the rows held out by each fold, of ridge regression on its other rows,
    for each of lams; the rest as in `_left_out`.
    """
    K *= own
    K *= own[:, None]
    targets, errors, total = Y * own[:, None], np.zeros(len(lams)), 0.0
    for kept, out in parts:
        values, vectors = scipy.linalg.eigh(K[np.ix_(kept, kept)], check_finite=False, driver="evd")
        values = np.maximum(values, 0.0)
        parts_kept, across = vectors.T @ targets[kept], K[np.ix_(out, kept)] @ vectors
        # lambda is that of all rows
        share = len(kept) / len(K)
        for place, lam in enumerate(lams):
            found = across @ (parts_kept / (values + lam * share)[:, None])
            errors[place] += float(np.sum((targets[out] - found) ** 2))
        total += float(own[out] @ own[out])
    return [float(error) for error in errors / total / Y.shape[1]]


def tuned(
    kernel: str,
    X: RowsLike,
    Y: np.ndarray,
    lams: Sequence[float],
    seed: int,
    row_weights: np.ndarray | None = None,
    apart: Apart | None = None,
    **options: Any,
) -> tuple[float, list[dict[str, Any]]]:
    """(gamma, steps): the candidate with the lowest error of ridge regression with the best of
    `lams`, and the scores.

    X: (n, d) scaled inputs; Y: (n, k) encoded targets; lams: ridge parameters, the same for the
    sample and for all n rows; row_weights: (n,), None for ones; apart: groups or times; options:
    the kernel's own. With fewer than two rows or groups the median is returned, without scores.
    Raises UsageError for a kernel without such random features.
    """
    if kernel not in MAPS:
        raise UsageError(
            f"--gamma is tuned, which needs random features, but kernel {kernel} has none; use"
            " validation or median"
        )
    found = candidates(kernel, X, seed)
    size = min(ROWS, X.shape[0] // 2)
    if size == 0 or (apart is not None and apart.one):
        return found[GAMMA_FACTORS.index(1.0)], []
    if apart is None:
        train, test = drawn(X.shape[0], seed, size, size)
    else:
        train, test = fewer(apart.held_out(0.5, seed), size, size, seed)
    params = resolve(kernel, found[0], X, seed, **options)
    errors = lambda point, round, lams: _errors(
        kernel, params | {"gamma": point["gamma"]}, X, Y, train, test, lams, seed, row_weights
    )
    grid = _grid("ridge on random features", found, lams, len(train))
    tried = search(errors, grid, Measure("mean squared error"))
    # this lambda is for the sample, and not used further
    return tried.best.point["gamma"], [tried.step(lam=len(lams) > 1, held_out=len(test))]


def _errors(
    kernel: str,
    params: dict[str, Any],
    X: RowsLike,
    Y: np.ndarray,
    train: np.ndarray,
    test: np.ndarray,
    lams: Sequence[float],
    seed: int,
    row_weights: np.ndarray | None,
) -> list[float]:
    """Mean squared errors on the test rows of ridge regression on FEATURES random features, for
    each of lams.
    """
    feature_map = sample(kernel, X.shape[1], FEATURES, seed, **params)
    scale = 1 / np.sqrt(FEATURES)
    Z, targets, _ = weights.problem(
        feature_matrix(feature_map, X[train], scale),
        Y[train],
        Squared,
        weights.part(row_weights, train),
    )
    solutions = solve_ridge_grid(Z, targets, lams, budget=Budget(tol=1e-4))
    Z, out = feature_map.transform(X[test]), weights.part(row_weights, test)
    return [
        error("regression", Z @ (scale * solution.coef), Y[test], out) for solution in solutions
    ]
