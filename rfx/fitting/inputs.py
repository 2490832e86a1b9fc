"""Choose scaling, kernel and metric on held-out rows.

Every combination is evaluated by kernel ridge regression: first on few rows, then the best again on
more rows and more held-out rows (`rfx.fitting.search`). The iterations of a metric are tried like
lambdas; zero iterations mean the original metric.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from rfx.data.rows import Rows
from rfx.data.tabular.apart import Apart, Part
from rfx.data.transforms.metric import FORMS
from rfx.data.transforms.scaling import TRIED, Scaler, keeps_sparse
from rfx.fitting import metric
from rfx.fitting.method import Method
from rfx.fitting.metric import Sample
from rfx.fitting.options import AUTO
from rfx.fitting.preprocessing import input_dtype
from rfx.fitting.problem import Problem, Progress
from rfx.fitting.search import Budget, Found, Grid, Measure, Point, Round, Tally, search
from rfx.fitting.validation import drawn, evenly
from rfx.kernels import get_kernel

log = logging.getLogger(__name__)
# Multiples of the median bandwidth tried with each kernel, and the kernels that `auto` and `rfm`
# try.
WIDTHS = {"laplacian-l2": (0.3,), "laplacian": (2.0, 0.4), "gaussian": (2.0, 0.1)}
KERNELS = ("laplacian-l2", "laplacian", "gaussian")
# Multiples of the first round's lambda for the second round.
AROUND = (3.0, 1.0, 0.3, 0.1)
# Minimum number of rows for a choice.
FEWEST = 50
# A trial takes about as long as that many of other searches with the same work: it learns a metric.
METRIC_WORK = 3.0
# Weight of the squared error of classes relative to the error rate: small samples have many ties.
TIE = 0.1


@dataclass(frozen=True)
class Effort:
    """How many rows the choice uses.

    Parameters
    ----------
    screened, evaluated : int
        In the first round: rows to fit and to evaluate.
    kept : int
        Number of combinations in the second round.
    confirmed : int
        Rows of the second round, before a fifth of them is held out.
    learning : int
        How many of these learn a metric.
    held_out, parts : int
        Rows that the second round holds out in total, in at most so many folds.
    """

    screened: int
    evaluated: int
    kept: int
    confirmed: int
    learning: int
    held_out: int
    parts: int

    @property
    def rows(self) -> int:
        """Rows that the choice uses."""
        return self.confirmed + self.confirmed // 4


THOROUGH = Effort(1000, 1000, 3, 4000, 1500, 600, 5)
QUICK = Effort(500, 800, 2, 1600, 1000, 400, 2)


@dataclass(frozen=True)
class Choice:
    """The result of the choice.

    Parameters
    ----------
    scaling, kernel, form : str
        form: ``none``, ``diagonal`` or ``full``.
    steps : int
        Iterations of the metric.
    lam, width : float
        Ridge parameter, and the multiple of the median bandwidth.
    step : dict
        The trials, in the form of `search.Found.step`.
    """

    scaling: str
    kernel: str
    form: str
    steps: int
    lam: float
    width: float
    step: dict[str, Any]


def choose(
    X: Any,
    Y: np.ndarray,
    task: str,
    *,
    scalings: Sequence[str] = TRIED,
    kernels: Sequence[str] = KERNELS,
    forms: Sequence[str] = FORMS,
    steps: int = metric.STEPS,
    effort: Effort = THOROUGH,
    weights: np.ndarray | None = None,
    apart: Apart | None = None,
    seed: int = 0,
    budget: Budget | None = None,
    progress: Progress | None = None,
) -> Choice | None:
    """The combination with the lowest error on held-out rows; None for too few rows.

    Parameters
    ----------
    X : array, CSR matrix, or rows on workers, (n, d)
        Raw rows.
    Y : array, (n, k)
        Encoded targets.
    task : str
    scalings, kernels, forms : sequences of str
        The candidates; forms of a metric, in addition to none.
    steps : int
        Maximum iterations of a metric.
    effort : Effort
    weights : array, (n,), or None
    apart : Apart or None
        Groups or times.
    seed : int
        Seed of the held-out rows.
    budget : Budget, optional
        By default unlimited.
    progress : callable, optional
    """
    if X.shape[0] < FEWEST or not X.shape[1]:
        return None
    most = min(effort.rows, metric.most_rows(X.shape[1]))
    some = evenly(X.shape[0], most)
    sides = None if apart is None else apart.rows(some)
    if sides is not None and sides.one:
        return None
    own = None if weights is None else weights[some]
    raw = X.unscaled(some) if isinstance(X, Rows) else X[some]
    rows = {name: metric.dense(Scaler.fit(raw, name, own).transform(raw)) for name in scalings}
    folds = _folds(len(some), seed, effort, sides)
    of_forms = {kernel: metric.allowed(forms, X, kernel) or ["none"] for kernel in kernels}
    points = [
        Point("inputs", {"scaling": scaling, "kernel": kernel, "metric": form})
        for kernel in kernels
        for scaling in scalings
        for form in of_forms[kernel]
    ]
    total = len(points) + min(effort.kept, len(points))
    tally = Tally(progress, ["scaling", "kernel", "metric"], total)
    trials = _Trials(rows, np.asarray(Y[some]), task, own, seed, folds, effort, tally)
    what = "mean squared error" if task == "regression" else f"wrong labels + {TIE} squared error"
    rounds = [
        Round(len(trials.first[0]), 1, 0, effort.kept),
        Round(len(folds[0][0]), len(folds), 1),
    ]
    grid = Grid(points, {"inputs": tuple(range(steps + 1))}, rounds)
    found = search(trials.errors, grid, Measure(what), budget, together=True)
    for words in found.limits:
        log.warning("the choice of scaling, kernel and metric: %s", words)
    best, count = found.best.point, found.best.lam
    lam, width = trials.best[_name(best), count]
    form = best["metric"] if count else "none"
    step = _step(found, [best["scaling"], best["kernel"], form, count], folds)
    return Choice(best["scaling"], best["kernel"], form, count, lam, width, step)


def _step(found: Found, chosen: list[Any], folds: list[Part]) -> dict[str, Any]:
    tried = [
        [*trial.point.options.values(), count, trial.round.number + 1, value]
        for trial in found.trials
        for count, value in trial.path
        if math.isfinite(value)
    ]
    return {
        "by": "kernel ridge regression",
        "options": ["scaling", "kernel", "metric", "metric_steps", "round"],
        "fitted": found.best.round.rows,
        "held_out": sum(len(out) for _, out in folds),
        "error": found.measure.name,
        "tried": tried,
        "chosen": [*chosen, found.best.round.number + 1],
    }


def _name(point: Point) -> tuple[Any, ...]:
    return tuple(point.options.values())


def _folds(n: int, seed: int, effort: Effort, apart: Apart | None = None) -> list[Part]:
    """Folds of n rows, each with a fifth of them held out, as many as needed."""
    size = n // 5
    number = min(effort.parts, math.ceil(effort.held_out / size))
    if apart is not None:
        return apart.up_to(5, seed)[:number]
    return [(np.setdiff1d(np.arange(n), out), out) for out in drawn(n, seed, *[size] * number)]


@dataclass(frozen=True)
class _Trials:
    """The trials of both rounds.

    rows: those of every scaling. best: (lambda, width) of each point and number of iterations.
    """

    rows: dict[str, np.ndarray]
    Y: np.ndarray
    task: str
    weights: np.ndarray | None
    seed: int
    folds: list[Part]
    effort: Effort
    tally: Tally
    best: dict[tuple[Any, int], tuple[float, float]] = field(default_factory=dict)
    steps: dict[Any, int] = field(default_factory=dict)

    @property
    def first(self) -> Part:
        """The rows of the first round."""
        kept, out = self.folds[0]
        rng = np.random.default_rng(self.seed)
        screened, evaluated = self.effort.screened, self.effort.evaluated
        return np.sort(rng.permutation(kept)[:screened]), np.sort(rng.permutation(out)[:evaluated])

    def errors(self, point: Point, round: Round, counts: Sequence[int]) -> list[float]:
        """The error for each number of iterations; infinite if it is not tried."""
        found = self._screened(point, counts) if round.kept else self._confirmed(point, counts)
        self.tally.add([min(found)], 1)
        return found

    def _sample(self, point: Point, kept: np.ndarray, out: np.ndarray) -> Sample:
        return Sample.of(self.rows[point["scaling"]], self.Y, self.task, self.weights, kept, out)

    def _error(self, one: metric.Machine) -> float:
        return one.error if self.task == "regression" else one.wrong + TIE * one.error

    def _machines(self, point: Point, sample: Sample, steps: int) -> list[metric.Machine]:
        most = 0 if point["metric"] == "none" else steps
        return list(metric.machines(sample, point["kernel"], point["metric"], most, self.seed))

    def _screened(self, point: Point, counts: Sequence[int]) -> list[float]:
        name, kernel, sample = _name(point), point["kernel"], self._sample(point, *self.first)
        found = self._machines(point, sample, counts[-1])
        values = [self._error(one) for one in found]
        for count, one in enumerate(found):
            self.best[name, count] = one.lam, self._widths(kernel)[0] if count else metric.WIDTH
        # a metric adapts the inputs to the bandwidth; without one, only the bandwidth can be chosen
        for width in self._widths(kernel):
            params = metric.bandwidth(kernel, sample.X, self.seed, width)
            one = metric.machine(sample, kernel, None, params)
            if self._error(one) < values[0]:
                values[0], self.best[name, 0] = self._error(one), (one.lam, width)
        self.steps[name] = int(np.argmin(values))
        return values + [math.inf] * (len(counts) - len(values))

    @staticmethod
    def _widths(kernel: str) -> tuple[float, ...]:
        """Multiples of the median bandwidth tried in addition to `metric.WIDTH`."""
        return WIDTHS.get(kernel, (metric.WIDTH,))

    def _confirmed(self, point: Point, counts: Sequence[int]) -> list[float]:
        """First every number of iterations with the first round's lambda, then the best of them
        with other bandwidths and lambdas.
        """
        name = _name(point)
        most = min(self.steps[name] + 1, counts[-1])
        samples, metrics = [], []
        for kept, out in self.folds:
            few = self._sample(point, kept[evenly(len(kept), self.effort.learning)], out)
            metrics.append([one.metric for one in self._machines(point, few, most)])
            samples.append(self._sample(point, kept, out))
        # a machine of either round may have been constant, and the last
        known = min(*map(len, metrics), sum((name, count) in self.best for count in counts))

        def means(count: int, lams: Sequence[float], width: float) -> list[float]:
            """The error of each lambda tried in all folds."""
            found = []
            for sample, of_counts in zip(samples, metrics):
                own, kernel = of_counts[count], point["kernel"]
                params = metric.bandwidth(kernel, sample.mapped(own)[0], self.seed, width)
                path = metric.path(sample, kernel, own, params, lams)
                found.append([self._error(one) for one in path])
            return [float(np.mean(values)) for values in zip(*found)] or [math.inf]

        first = [self.best[name, count] for count in range(known)]
        values = [means(count, [lam], width)[0] for count, (lam, width) in enumerate(first)]
        best = int(np.argmin(values))
        # 0.3, not the 0.30000000000000004 of a product
        lams = [float(f"{first[best][0] * factor:.6g}") for factor in AROUND]
        tried: dict[tuple[float, float], float] = {}
        for width in dict.fromkeys((*self._widths(point["kernel"]), first[best][1])):
            tried |= {(lam, width): v for lam, v in zip(lams, means(best, lams, width))}
        self.best[name, best] = min(tried, key=lambda option: tried[option])
        values[best] = min(tried.values())
        return values + [math.inf] * (len(counts) - known)


# -------------------------------------------------------------------------- of one training


@dataclass(frozen=True)
class Resolved:
    """Scaling, kernel and metric of one training.

    Parameters
    ----------
    scaler : Scaler
        With the metric.
    options : dict
        The options that were chosen.
    steps : list of dict
        The trials.
    choice : Choice or None
        Whether scaling or kernel was chosen.
    """

    scaler: Scaler
    options: dict[str, Any]
    steps: list[dict[str, Any]]
    choice: Choice | None = None

    def numbers(self, method: Method, problem: Problem) -> dict[str, Any]:
        """Bandwidth and lambda from a thorough choice if they are ``auto``; without one, or with
        another loss, the words by which other methods choose them.
        """
        if not method.thorough:
            return {}
        found = self.choice if problem.loss.name == "squared" else None
        if found is not None and method.get("kernel") not in (AUTO, found.kernel):
            found = None
        known: dict[str, Any] = {}
        if method.get("gamma") == AUTO:
            known["gamma"] = "loo"
            if found is not None:
                own = metric.bandwidth(found.kernel, problem.X, method.seed, found.width)
                known["gamma"] = own["gamma"]
        if method.get("lam") == AUTO:
            known["lam"] = "validation" if found is None else found.lam * problem.mean_weight
        return known


def resolved(method: Method, X: Any, scaler: Scaler, problem: Problem) -> Resolved:
    """Resolve the options scaling, kernel and metric: chosen on held-out rows, or learnt.

    Parameters
    ----------
    X : array, CSR matrix, or rows on workers, (n, d)
        Raw rows.
    scaler : Scaler
        For the option's scaling, unless that is chosen.
    problem : Problem
        The rows scaled by this scaler.

    """
    asked, kernel, seconds = method.metric, method.get("kernel"), method.get("budget_seconds")
    forms = _forms(asked)
    if AUTO not in (method.scaling, kernel):
        if not forms:
            return Resolved(scaler, {}, [])
        own = (problem.X, problem.Y, problem.task, problem.weights, problem.apart)
        return with_metric(scaler, method, *own)
    scalings = _scalings(X, kernel) if method.scaling == AUTO else (method.scaling,)
    tried = method.tried_kernels if kernel == AUTO else (metric.learner(kernel),)
    choice = choose(
        X,
        problem.Y,
        problem.task,
        scalings=scalings,
        kernels=tried,
        forms=forms,
        steps=method.metric_steps or metric.STEPS,
        effort=THOROUGH if method.thorough else QUICK,
        weights=problem.weights,
        apart=problem.apart,
        seed=method.seed,
        budget=Budget.of(seconds, METRIC_WORK, problem.deadline),
        progress=problem.progress,
    )
    options: dict[str, Any] = {"scaling": scalings[0], "metric": "none", "metric_steps": None}
    options |= {"kernel": tried[0]} if kernel == AUTO else {}
    if choice is None:
        return Resolved(Scaler.fit(X, scalings[0], problem.weights), options, [])
    options |= {"scaling": choice.scaling, "metric": choice.form}
    options |= {"kernel": choice.kernel} if kernel == AUTO else {}
    scaler = Scaler.fit(X, choice.scaling, problem.weights)
    if choice.steps:
        options["metric_steps"] = choice.steps
        rows = scaler.transform(X, dtype=input_dtype(method))
        chosen = method.updated(**options | {"kernel": choice.kernel})
        own = (rows, problem.Y, problem.task, problem.weights, problem.apart)
        problem.doing("learning the chosen metric")
        scaler = with_metric(scaler, chosen, *own).scaler
    return Resolved(scaler, options, [choice.step], choice)


def _scalings(X: Any, kernel: str | None) -> Sequence[str]:
    """The scalings that `auto` tries for rows X: zeros of text stay zeros, and a kernel may suit
    few scalings.
    """
    if kernel not in (None, AUTO) and get_kernel(str(kernel)).scalings:
        return get_kernel(str(kernel)).scalings
    return ("minmax01", "none") if keeps_sparse(X) else TRIED


def _forms(asked: str) -> Sequence[str]:
    """The forms of a metric for a value of --metric."""
    return {"none": (), AUTO: FORMS}.get(asked, (asked,))


def with_metric(
    scaler: Scaler,
    method: Method,
    X: Any,
    Y: Any,
    task: str,
    weights: np.ndarray | None = None,
    apart: Apart | None = None,
) -> Resolved:
    """The scaler with the metric requested by --metric, learnt from scaled rows.

    Parameters
    ----------
    X : array, CSR matrix, or rows on workers, (n, d)
        The scaler's rows.
    Y : array, (n, k)
        Encoded targets.
    weights : array, (n,), or None
    apart : Apart or None
    """
    forms = _forms(method.metric)
    fixed = method.metric_steps if len(forms) == 1 else None
    found = metric.learn(
        X,
        Y,
        kernel=metric.learner(method.get("kernel")),
        forms=forms,
        steps=fixed,
        task=task,
        weights=weights,
        seed=method.seed,
        apart=apart,
    )
    options = {"metric": found.form, "metric_steps": found.steps or None}
    scaler = scaler if found.metric is None else replace(scaler, metric=found.metric)
    chosen = fixed is None and bool(found.errors)
    return Resolved(scaler, options, [found.step()] if chosen else [])
