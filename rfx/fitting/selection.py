"""Choose options on the training rows: words such as ``validation`` become numbers.

Every combination of values is fitted to some rows and evaluated on the others, for several lambdas
at once if the method supports it. The bandwidth is chosen by kernel ridge regression (`loo`), by
ridge regression on random features (`tuned`), which both give the same for every method with the
kernel, or with the other options (`validation`). Test rows are not used. The model is then fitted
to all rows.
"""

from __future__ import annotations

import itertools
import logging
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg

from rfx import kernels
from rfx.data.tabular.apart import Part
from rfx.errors import UsageError
from rfx.features import MAPS, sample
from rfx.fitting import weights
from rfx.fitting.candidates import GAMMA_FACTORS, LOO_FACTORS, SAMPLE
from rfx.fitting.held_out import HeldOut, drawn, evenly
from rfx.fitting.method import Method, has_gamma
from rfx.fitting.options import AUTO
from rfx.fitting.problem import Cache, Problem, Progress, error
from rfx.fitting.search import (
    Evidence,
    Measure,
    Point,
    SearchGrid,
    SearchRound,
    Stop,
    Tally,
    Trial,
    search,
)
from rfx.losses import Squared
from rfx.operators.mapped import feature_matrix
from rfx.solvers.base import Budget
from rfx.solvers.ridge import solve_ridge_grid

log = logging.getLogger(__name__)
# Standard errors above the lowest error rate within which values count as no worse.
SURE = 0.5
# Minimum rows for validation.
FEWEST = 5
# Of `tuned`: with 2,000 rows and 512 features, validation prefers kernels that are too wide for all
# rows of ijcnn1 or covtype.
ROWS, FEATURES = 4000, 1000
# Of `loo`: the number of rows, and the maximum cost of comparing these (rows^2 times inputs). Below
# LOO_FEWEST rows their errors are uninformative.
LOO_ROWS, LOO_COST, LOO_FEWEST = 800, 2e9, 20
# Folds of `loo` when groups or times constrain the rows.
PARTS = 5


@dataclass(frozen=True)
class Choice:
    """A method whose options are numbers, and the evidence for them.

    Parameters
    ----------
    method : Method
    chosen : dict
        The options that were chosen, and their values.
    steps : list of dict
        The trials, with their rows and errors (see `search.Evidence.step`).
    seconds : float
    """

    method: Method
    chosen: dict[str, Any]
    steps: list[dict[str, Any]]
    seconds: float


def choose(method: Method, problem: Problem, cache: Cache) -> Choice:
    """Replace every word among the options of the method by the number that it selects.

    Raises
    ------
    UsageError
        For too few rows.
    """
    start, space = time.perf_counter(), method.space
    chosen: dict[str, Any] = {}
    steps: list[dict[str, Any]] = []
    asked = [name for name in space.values if isinstance(method.get(name), str)]
    grid = {name: method.candidates(name, problem) for name in asked if name != "gamma"}
    few = problem.n_rows < FEWEST or problem.undivided
    if method.get("lam_path"):
        grid.pop("lam", None)
    elif few:
        what = problem.apart.by if problem.apart is not None and problem.undivided else "rows"
        for name in grid.keys() & space.few_rows.keys():
            del grid[name]
            chosen[name] = space.few_rows[name] * (problem.mean_weight if name == "lam" else 1.0)
            log.warning(
                "too few %s for validation; using %s = %g (set it with --%s)",
                what,
                "lambda" if name == "lam" else name,
                chosen[name],
                name.replace("_", "-"),
            )
    if "gamma" in method.options and has_gamma(method.kernel):
        gammas, steps = _gammas(method, problem, bool(grid), few)
        if len(gammas) == 1:
            chosen["gamma"] = gammas[0]
        elif gammas:
            grid = {"gamma": gammas} | grid
    if grid:
        values, tried = _validated(method.with_choice(chosen), grid, problem, method, cache)
        chosen |= values
        steps = steps + tried
    seconds = time.perf_counter() - start
    return Choice(method.with_choice(chosen), chosen, steps, seconds)


# ---------------------------------------------------------------------- the bandwidth


def _gammas(
    method: Method, problem: Problem, others: bool, few: bool
) -> tuple[list[float], list[dict[str, Any]]]:
    """(the bandwidth, several for validation, or none if the method computes it; the trials)."""
    word, space = method.gamma, method.space
    steps: list[dict[str, Any]] = []
    if word == "validation":
        return _multiples(method, problem, space.values["gamma"]), steps
    if word == "loo":
        lams = [lam * problem.mean_weight for lam in method.ridge_lams(problem)]
        value, steps = loo(method, problem, lams)
        return [value * factor for factor in ((1.0,) if few else space.multiples)], steps
    if word == "tuned":
        value, steps = tuned(method, problem, method.tuning_lams(problem))
        return [value], steps
    if others and isinstance(word, str):
        # from all rows: a model of some of them uses the bandwidth of the model it selects for
        return [method.kernel_params(problem.X)["gamma"]], steps
    return [], steps


def _multiples(method: Method, problem: Problem, factors: Sequence[float]) -> list[float]:
    """Multiples of the bandwidth of the median distance."""
    base = kernels.parameters(method.kernel, problem.X, "median", method.seed)["gamma"]
    return [base * factor for factor in factors]


def _grid(by: str, gammas: list[float], lams: Sequence[float], n_rows: int) -> SearchGrid:
    """The bandwidths times the lambdas, for models of so many rows."""
    return SearchGrid(
        [Point(by, {"gamma": value}) for value in gammas], {by: lams}, [SearchRound(n_rows)]
    )


def loo(
    method: Method, problem: Problem, lams: Sequence[float]
) -> tuple[float, list[dict[str, Any]]]:
    """(gamma, steps): among LOO_FACTORS times the median bandwidth, the one with the lowest
    leave-one-out error of kernel ridge regression, and all errors.

    At most LOO_ROWS rows are used; lams: ridge parameters; each bandwidth uses its best. The error
    of leaving row i out is (y_i - f(x_i)) / (1 - h_ii) with the hat matrix h (Allen 1974), from one
    spectral decomposition for all lambdas. With groups or times the errors are those of held-out
    folds. For too few rows, or a kernel without exact values, the median is returned.
    """
    kernel, seed, n_inputs = method.kernel, method.seed, problem.n_inputs
    gammas, median = _multiples(method, problem, LOO_FACTORS), LOO_FACTORS.index(1.0)
    metric, most = kernels.get_kernel(kernel).metric, LOO_ROWS
    if metric in ("l1", "product"):
        # a product kernel compares the rows again for each bandwidth
        passes = 1 if metric == "l1" else len(LOO_FACTORS)
        most = min(most, int(np.sqrt(LOO_COST / max(1, n_inputs * passes))))
    (rows,) = drawn(problem.n_rows, seed, most)
    apart = None if problem.apart is None else problem.apart.rows(rows)
    if len(rows) < LOO_FEWEST or not metric or (apart is not None and apart.one):
        return gammas[median], []
    X, Y = problem.X[rows], problem.Y[rows]
    roots = np.sqrt(np.ones(len(rows)) if problem.weights is None else problem.weights[rows])
    params = method.updated(gamma=gammas[median]).kernel_params(X)
    # the points arrive in this order, each once
    family = kernels.scaled_family(kernel, X, params, LOO_FACTORS)
    if apart is None:
        errors = lambda point, round, lams: _left_out(next(family), Y, lams, roots)
        measure = Measure("leave-one-out mean squared error")
    else:
        parts = apart.up_to(PARTS, seed)
        errors = lambda point, round, lams: _in_parts(next(family), Y, lams, roots, parts)
        measure = Measure("mean squared error of parts held out in turn")
    evidence = search(errors, _grid("kernel ridge regression", gammas, lams, len(rows)), measure)
    best = evidence.best
    if method.space.slack:
        far = {value: abs(np.log(factor)) for value, factor in zip(gammas, LOO_FACTORS)}
        near = evidence.within(method.space.slack)
        best = min(near, key=lambda one: (far[one.point["gamma"]], one.score))
    # this lambda is for so many rows, and not used further
    return best.point["gamma"], [evidence.step(True, len(rows), best)]


def _left_out(
    K: np.ndarray, Y: np.ndarray, lams: Sequence[float], roots: np.ndarray
) -> list[float]:
    """Leave-one-out mean squared errors of ridge regression with the kernel values K (n, n), which
    are overwritten, for each of lams.

    Y: (n, k); roots: of the sample weights (n,).
    """
    K *= roots
    K *= roots[:, None]
    values, vectors = scipy.linalg.eigh(K, overwrite_a=True, check_finite=False, driver="evd")
    values, targets, squares = np.maximum(values, 0.0), Y * roots[:, None], vectors**2
    parts, errors = vectors.T @ targets, []
    for lam in lams:
        kept = values / (values + lam)
        left = (targets - vectors @ (kept[:, None] * parts)) / (1 - squares @ kept)[:, None]
        errors.append(float(np.sum(left**2) / (roots @ roots) / Y.shape[1]))
    return errors


def _in_parts(
    K: np.ndarray, Y: np.ndarray, lams: Sequence[float], roots: np.ndarray, parts: list[Part]
) -> list[float]:
    """Mean squared errors on the rows held out by each fold, of ridge regression on its other rows,
    for each of lams; the rest as in `_left_out`.
    """
    K *= roots
    K *= roots[:, None]
    targets, errors, total = Y * roots[:, None], np.zeros(len(lams)), 0.0
    for kept, out in parts:
        values, vectors = scipy.linalg.eigh(K[np.ix_(kept, kept)], check_finite=False, driver="evd")
        values, share = np.maximum(values, 0.0), len(kept) / len(K)
        parts_kept, across = vectors.T @ targets[kept], K[np.ix_(out, kept)] @ vectors
        for place, lam in enumerate(lams):
            # lambda is that of all rows
            predicted = across @ (parts_kept / (values + lam * share)[:, None])
            errors[place] += float(np.sum((targets[out] - predicted) ** 2))
        total += float(roots[out] @ roots[out])
    return [float(error) for error in errors / total / Y.shape[1]]


def tuned(
    method: Method, problem: Problem, lams: Sequence[float]
) -> tuple[float, list[dict[str, Any]]]:
    """(gamma, steps): the candidate with the lowest error of ridge regression with the best of
    `lams`, and the scores.

    lams: ridge parameters, the same for the sample and for all n rows. With fewer than two rows or
    groups the median is returned, without scores. Raises UsageError for a kernel without such
    random features.
    """
    kernel, X, Y, seed = method.kernel, problem.X, problem.Y, method.seed
    if kernel not in MAPS:
        raise UsageError(
            f"--gamma is tuned, which needs random features, but kernel {kernel} has none; use"
            " validation or median"
        )
    gammas, size = _multiples(method, problem, GAMMA_FACTORS), min(ROWS, problem.n_rows // 2)
    held_out = HeldOut(problem.n_rows, seed, problem.apart)
    if size == 0 or held_out.none:
        return gammas[GAMMA_FACTORS.index(1.0)], []
    train, test = held_out.sample(size, size, 0.5)
    params = method.updated(gamma=gammas[0]).kernel_params(X)
    scale, own = 1 / np.sqrt(FEATURES), weights.part(problem.weights, train)

    def errors(point: Point, round: SearchRound, lams: Sequence[float]) -> list[float]:
        """Mean squared errors on the test rows of ridge regression on FEATURES random features."""
        feature_map = sample(kernel, problem.n_inputs, FEATURES, seed, **params | point.options)
        Z = feature_matrix(feature_map, X[train], scale)
        Z, targets, _ = weights.problem(Z, Y[train], Squared, own)
        solutions = solve_ridge_grid(Z, targets, lams, budget=Budget(tol=1e-4))
        rows, out = feature_map.transform(X[test]), weights.part(problem.weights, test)
        return [error("regression", rows @ (scale * one.coef), Y[test], out) for one in solutions]

    grid = _grid("ridge on random features", gammas, lams, len(train))
    evidence = search(errors, grid, Measure("mean squared error"))
    # this lambda is for the sample, and not used further
    return evidence.best.point["gamma"], [evidence.step(len(lams) > 1, len(test))]


# ---------------------------------------------------------------------- all options together


def _validated(
    method: Method,
    grid: dict[str, list[float]],
    problem: Problem,
    asked: Method,
    cache: Cache,
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The values of the grid's options with the lowest error on held-out rows, and the trials.

    grid: option -> values, gamma's as numbers. Options of a later stage have their first value
    until then. For equal errors the first is used.
    """
    option = " and ".join(f"--{name.replace('_', '-')} is {asked.get(name)!r}" for name in grid)
    space, total = method.space, problem.n_rows
    most = space.most
    if AUTO in (asked.get(name) for name in grid):
        most = min(most or SAMPLE, SAMPLE)
    if not problem.here:
        problem = problem.rows(evenly(total, SAMPLE + SAMPLE // 4))
    held_out, folds = HeldOut(problem.n_rows, method.seed, problem.apart), []
    for kept, out in held_out.parts(space.share, space.fewest, option):
        kept, out = kept[evenly(len(kept), most)], out[evenly(len(out), most)]
        folds.append(Fold(problem.rows(kept), problem.rows(out), len(kept) / total))
    trial = method.trial()
    targets = [trial.target_error(one.fitted, one.out, one.share, cache) for one in folds]
    errors = [value for value in targets if value is not None]
    target = float(np.mean(errors)) if errors else None
    # with several folds, the mean error is the one to approximate
    stop = Stop(bool(errors), target if len(folds) == 1 else None)
    measure = Measure(problem.error_name, target=target)
    validation = _Validation(trial, folds, stop, measure, problem.progress, cache)
    best: dict[str, Any] = {name: values[0] for name, values in grid.items()}
    steps: list[dict[str, Any]] = []
    for stage in space.stages:
        wanted = {name: grid[name] for name in stage if name in grid}
        if wanted:
            steps.append(validation.step(wanted, best))
            best |= dict(zip(steps[-1]["options"], steps[-1]["chosen"]))
    return best, steps


@dataclass(frozen=True)
class Fold:
    """Rows to fit and to evaluate; share: of the training rows that are fitted."""

    fitted: Problem
    out: Problem
    share: float


@dataclass(frozen=True)
class _Validation:
    """Models fitted to some rows of a problem, and evaluated on others."""

    method: Method
    folds: list[Fold]
    stop: Stop
    measure: Measure
    progress: Progress | None
    cache: Cache

    def step(self, grid: dict[str, list[float]], best: dict[str, Any]) -> dict[str, Any]:
        """The trials and choice of the grid's options; the others as in `best`."""
        method, measure = self.method, self.measure
        others = {option: values for option, values in grid.items() if option != "lam"}
        lams = grid.get("lam", [best.get("lam", method.get("lam"))])
        points = [
            Point(method.name, dict(zip(others, values)))
            for values in itertools.product(*others.values())
        ]
        tally = Tally(self.progress, list(grid), len(points) * len(lams))
        tally.report()

        def fit(point: Point, round: SearchRound, lams: Sequence[float]) -> list[float]:
            errors = self._errors(method.with_choice(best | point.options), lams, tally)
            tally.add(errors, len(lams))
            return errors

        rounds = [SearchRound(self.folds[0].fitted.n_rows, len(self.folds))]
        evidence = search(fit, SearchGrid(points, {method.name: lams}, rounds), measure)
        count_out = sum(one.out.n_rows for one in self.folds)
        step = evidence.step("lam" in grid, count_out, self._best(evidence, count_out))
        return step if measure.target is None else step | {"target": measure.target}

    def _best(self, evidence: Evidence, count_out: int) -> Trial:
        """The selected trial; count_out: number of evaluation rows."""
        least, task = evidence.best.score, self.folds[0].out.task
        if not self.method.space.simplest or task == "regression" or least > 1:
            return evidence.best
        most = least + SURE * math.sqrt(least * (1 - least) / count_out)
        return next(trial for trial in evidence.trials if trial.score <= most)

    def _errors(self, method: Method, lams: Sequence[float], tally: Tally) -> list[float]:
        """The mean error over all held-out rows for each lambda."""
        errors: list[list[float]] = []

        def stop(path: list[float]) -> bool:
            tally.report((len(errors) * len(lams) + len(path)) / len(self.folds))
            return self.stop(path)

        for one in self.folds:
            scaled = [lam if lam is None else lam * one.share for lam in lams]
            errors.append(method.errors_along(one.fitted, one.out, scaled, stop, self.cache))
        # if one fold tried smaller lambdas than another, the other's last error is used
        most = max(map(len, errors))
        errors = [path + path[-1:] * (most - len(path)) for path in errors]
        return np.average(errors, 0, [one.out.n_rows for one in self.folds]).tolist()
