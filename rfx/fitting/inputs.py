"""The choice of scaling, kernel and metric on held-out rows.

Every combination is tried by kernel ridge regression: on few rows first, and the best again on more
rows and more held-out rows (`rfx.fitting.search`). The iterations of a metric are tried as lambdas
are; no iteration is the untouched metric.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from rfx.data.rows import Rows
from rfx.data.transforms.metric import FORMS
from rfx.data.transforms.scaling import TRIED, Scaler, keeps_sparse
from rfx.errors import UsageError
from rfx.fitting import metric
from rfx.fitting.method import Method
from rfx.fitting.metric import Sample
from rfx.fitting.options import AUTO
from rfx.fitting.preprocessing import input_dtype
from rfx.fitting.problem import Problem
from rfx.fitting.search import Budget, Found, Grid, Measure, Round, search
from rfx.fitting.settings import Settings
from rfx.fitting.validation import Part, drawn, evenly

# The kernels that `auto` tries, with multiples of the median's bandwidth that the second round
# tries.
WIDTHS = {"laplacian-l2": (0.3,), "laplacian": (2.0, 0.4)}
KERNELS = tuple(WIDTHS)
# The first round: rows to fit to and to evaluate on, and how many combinations go on from it.
SCREENED, EVALUATED, KEPT = 1000, 1000, 3
# The second: rows to fit to, of which so many learn a metric; rows that are held out together, in
# at most so many parts; multiples of the first round's lambda.
CONFIRMED, LEARNING, HELD_OUT, MOST_PARTS = 4000, 1500, 600, 5
AROUND = (3.0, 1.0, 0.3, 0.1)
# Below so many rows nothing is chosen.
FEWEST = 50
# Of classes the squared error counts this much beside the share of wrong labels: few rows have
# many ties.
TIE = 0.1
# (tried, of all) as the choice goes on.
Tell = Callable[[int, int], None]


@dataclass(frozen=True)
class Choice:
    """What was chosen.

    Parameters
    ----------
    scaling, kernel, form : str
        form: ``none``, ``diagonal`` or ``full``.
    steps : int
        Iterations of the metric.
    lam, width : float
        Ridge parameter, and the multiple of the median's bandwidth.
    step : dict
        What was tried, in the form of `search.Found.step`.
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
    weights: np.ndarray | None = None,
    seed: int = 0,
    deadline: float = math.inf,
    tell: Tell | None = None,
) -> Choice | None:
    """The combination with the least error on held-out rows; None where there are too few rows.

    Parameters
    ----------
    X : array or CSR matrix, (n, d)
        Raw rows.
    Y : array, (n, k)
        Encoded targets.
    task : str
    scalings, kernels, forms : sequences of str
        To choose from; forms of a metric, beside none.
    steps : int
        Most iterations of a metric.
    weights : array, (n,), or None
    seed : int
        Of the held-out rows.
    deadline : float
        Value of time.monotonic() after which no combination is begun.
    tell : callable, optional
    """
    if X.shape[0] < FEWEST or not X.shape[1]:
        return None
    most = min(CONFIRMED + CONFIRMED // 4, metric.most_rows(X.shape[1]))
    some = evenly(X.shape[0], most)
    own = None if weights is None else weights[some]
    raw = X[some]
    rows = {name: metric.dense(Scaler.fit(raw, name, own).transform(raw)) for name in scalings}
    folds = _folds(len(some), seed)
    of_forms = {kernel: metric.allowed(forms, X, kernel) or ["none"] for kernel in kernels}
    points = [
        Settings("inputs", {"scaling": scaling, "kernel": kernel, "metric": form})
        for kernel in kernels
        for scaling in scalings
        for form in of_forms[kernel]
    ]
    trials = _Trials(rows, Y[some], task, own, seed, folds, tell, len(points) + KEPT)
    what = "mean squared error" if task == "regression" else f"wrong labels + {TIE} squared error"
    rounds = [
        Round(len(trials.first[0]), 1, 0, KEPT),
        Round(len(folds[0][0]), len(folds), 1),
    ]
    grid = Grid(points, {"inputs": tuple(range(steps + 1))}, rounds)
    found = search(trials.errors, grid, Measure(what), Budget(deadline), together=True)
    best, count = found.best.point, found.best.lam
    lam, width = trials.best[_name(best), count]
    form = best["metric"] if count else "none"
    step = _step(found, [best["scaling"], best["kernel"], form, count], folds)
    return Choice(best["scaling"], best["kernel"], form, count, lam, width, step)


def _step(found: Found, chosen: list[Any], folds: list[Part]) -> dict[str, Any]:
    tried = [
        [*trial.point.values(), count, trial.round.number + 1, value]
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


def _name(point: Settings) -> tuple[Any, ...]:
    return tuple(point.values())


def _folds(n: int, seed: int) -> list[Part]:
    """Parts of n rows, a fifth of them held out in each, as many as hold out enough."""
    size = n // 5
    number = min(MOST_PARTS, math.ceil(HELD_OUT / size))
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
    tell: Tell | None
    total: int
    best: dict[tuple[Any, int], tuple[float, float]] = field(default_factory=dict)
    steps: dict[Any, int] = field(default_factory=dict)
    tried: Any = field(default_factory=itertools.count)

    @property
    def first(self) -> Part:
        """The rows of the first round."""
        kept, out = self.folds[0]
        rng = np.random.default_rng(self.seed)
        return np.sort(rng.permutation(kept)[:SCREENED]), np.sort(rng.permutation(out)[:EVALUATED])

    def errors(self, point: Settings, round: Round, counts: Sequence[int]) -> list[float]:
        """The error for each number of iterations; infinite where it is not tried."""
        found = self._screened(point, counts) if round.kept else self._confirmed(point, counts)
        if self.tell is not None:
            self.tell(next(self.tried) + 1, self.total)
        return found

    def _sample(self, point: Settings, kept: np.ndarray, out: np.ndarray) -> Sample:
        return Sample.of(self.rows[point["scaling"]], self.Y, self.task, self.weights, kept, out)

    def _error(self, one: metric.Machine) -> float:
        return one.error if self.task == "regression" else one.wrong + TIE * one.error

    def _machines(self, point: Settings, sample: Sample, steps: int) -> list[metric.Machine]:
        most = 0 if point["metric"] == "none" else steps
        return list(metric.machines(sample, point["kernel"], point["metric"], most, self.seed))

    def _screened(self, point: Settings, counts: Sequence[int]) -> list[float]:
        found = self._machines(point, self._sample(point, *self.first), counts[-1])
        values = [self._error(one) for one in found]
        self.steps[_name(point)] = int(np.argmin(values))
        for count, one in enumerate(found):
            self.best[_name(point), count] = one.lam, metric.WIDTH
        return values + [math.inf] * (len(counts) - len(values))

    def _confirmed(self, point: Settings, counts: Sequence[int]) -> list[float]:
        """Of every number of iterations with the first round's lambda, then of the best of them
        with other bandwidths and lambdas.
        """
        name = _name(point)
        most = min(self.steps[name] + 1, counts[-1])
        samples, metrics = [], []
        for kept, out in self.folds:
            few = self._sample(point, kept[evenly(len(kept), LEARNING)], out)
            metrics.append([one.metric for one in self._machines(point, few, most)])
            samples.append(self._sample(point, kept, out))
        # a machine of either round may have been constant, and the last
        known = min(*map(len, metrics), sum((name, count) in self.best for count in counts))
        widths = WIDTHS.get(point["kernel"], (metric.WIDTH,))

        def means(count: int, lams: Sequence[float], width: float) -> list[float]:
            """Of each lambda, as far as all parts go."""
            found = []
            for sample, of_counts in zip(samples, metrics):
                own, kernel = of_counts[count], point["kernel"]
                params = metric.bandwidth(kernel, sample.mapped(own)[0], self.seed, width)
                path = metric.path(sample, kernel, own, params, lams)
                found.append([self._error(one) for one in path])
            return [float(np.mean(values)) for values in zip(*found)] or [math.inf]

        first = {count: self.best[name, count][0] for count in range(known)}
        values = [means(count, [first[count]], widths[0])[0] for count in range(known)]
        best = int(np.argmin(values))
        lams = [first[best] * factor for factor in AROUND]
        tried: dict[tuple[float, float], float] = {}
        for width in widths:
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
        What was tried.
    choice : Choice or None
        Where scaling or kernel was chosen.
    """

    scaler: Scaler
    options: dict[str, Any]
    steps: list[dict[str, Any]]
    choice: Choice | None = None

    def numbers(self, problem: Problem, settings: Settings) -> dict[str, Any]:
        """Bandwidth and lambda where they are ``auto``: those of the choice, and without one, or
        with another loss, the words by which other methods choose them.
        """
        found = self.choice if problem.loss.name == "squared" else None
        if found is not None and settings.get("kernel") not in (AUTO, found.kernel):
            found = None
        known: dict[str, Any] = {}
        if settings.get("gamma") == AUTO:
            known["gamma"] = "loo"
            if found is not None:
                own = metric.bandwidth(found.kernel, problem.X, settings.seed, found.width)
                known["gamma"] = own["gamma"]
        if settings.get("lam") == AUTO:
            known["lam"] = "validation" if found is None else found.lam
        return known


def resolved(
    method: Method, settings: Settings, X: Any, scaler: Scaler, problem: Problem
) -> Resolved:
    """What the options scaling, kernel and metric stand for: chosen on held-out rows, or learnt.

    Parameters
    ----------
    X : array, CSR matrix, or rows on workers, (n, d)
        Raw rows.
    scaler : Scaler
        Of the option's scaling, where that is not to be chosen.
    problem : Problem
        Of the rows that this scaler gives.

    Raises
    ------
    UsageError
        Where rows on workers would have to be scaled in several ways.
    """
    asked, kernel = settings.metric, settings.get("kernel")
    forms = _forms(asked)
    if AUTO not in (settings.scaling, kernel):
        if not forms:
            return Resolved(scaler, {}, [])
        own = (problem.X, problem.Y, problem.task, problem.weights)
        return with_metric(scaler, settings, *own)
    if isinstance(X, Rows):
        raise UsageError(
            "--scaling or --kernel is auto, but rows on workers are not scaled several times; name"
            " a scaling and a kernel"
        )
    scalings = _scalings(X) if settings.scaling == AUTO else (settings.scaling,)
    tried = method.tried_kernels if kernel == AUTO else (metric.learner(kernel),)
    choice = choose(
        X,
        problem.Y,
        problem.task,
        scalings=scalings,
        kernels=tried,
        forms=forms,
        steps=settings.metric_steps or metric.STEPS,
        weights=problem.weights,
        seed=settings.seed,
        deadline=math.inf if problem.deadline is None else problem.deadline,
        tell=_telling(problem),
    )
    options = {"scaling": scalings[0], "metric": "none", "metric_steps": None}
    options |= {"kernel": tried[0]} if kernel == AUTO else {}
    if choice is None:
        return Resolved(Scaler.fit(X, scalings[0], problem.weights), options, [])
    options |= {"scaling": choice.scaling, "metric": choice.form}
    options |= {"kernel": choice.kernel} if kernel == AUTO else {}
    scaler = Scaler.fit(X, choice.scaling, problem.weights)
    if choice.steps:
        options["metric_steps"] = choice.steps
        rows = scaler.transform(X, dtype=input_dtype(settings))
        chosen = settings.updated(**options | {"kernel": choice.kernel})
        own = (rows, problem.Y, problem.task, problem.weights)
        scaler = with_metric(scaler, chosen, *own).scaler
    return Resolved(scaler, options, [choice.step], choice)


def _scalings(X: Any) -> Sequence[str]:
    """Those that `auto` tries of rows X: zeros of text stay zeros."""
    return ("minmax01", "none") if keeps_sparse(X) else TRIED


def _telling(problem: Problem) -> Tell | None:
    progress = problem.progress
    if progress is None:
        return None
    what = ["scaling", "kernel", "metric"]
    return lambda tried, total: progress({"choosing": what, "tried": tried, "of": total})


def _forms(asked: str) -> Sequence[str]:
    """The forms of a metric that a value of --metric stands for."""
    return {"none": (), AUTO: FORMS}.get(asked, (asked,))


def with_metric(
    scaler: Scaler,
    settings: Settings,
    X: Any,
    Y: Any,
    task: str,
    weights: np.ndarray | None = None,
) -> Resolved:
    """The scaler with the metric that --metric asks for, learnt from scaled rows.

    Parameters
    ----------
    X : array, CSR matrix, or rows on workers, (n, d)
        The scaler's rows.
    Y : array, (n, k)
        Encoded targets.
    weights : array, (n,), or None
    """
    forms = _forms(settings.metric)
    fixed = settings.metric_steps if len(forms) == 1 else None
    found = metric.learn(
        X,
        Y,
        kernel=metric.learner(settings.get("kernel")),
        forms=forms,
        steps=fixed,
        task=task,
        weights=weights,
        seed=settings.seed,
    )
    options = {"metric": found.form, "metric_steps": found.steps or None}
    scaler = scaler if found.metric is None else replace(scaler, metric=found.metric)
    chosen = fixed is None and bool(found.errors)
    return Resolved(scaler, options, [found.step()] if chosen else [])
