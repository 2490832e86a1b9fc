"""The choice of scaling, kernel and metric on held-out rows.

Every combination of them is tried by a kernel machine with squared loss: on few rows first, and the
best again on more, with more held-out rows (`rfx.fitting.search`). A metric's iterations are tried
as lambdas are: none of them is the untouched metric.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rfx import kernels
from rfx.data.transforms.scaling import TRIED, Scaler
from rfx.fitting import metric
from rfx.fitting.method import Method
from rfx.fitting.metric import Iterate, best_ridge, iterates
from rfx.fitting.options import AUTO
from rfx.fitting.problem import Problem
from rfx.fitting.search import Found, Grid, Measure, Round, search
from rfx.fitting.settings import Settings
from rfx.fitting.validation import Part, drawn, evenly

# What `auto` tries.
KERNELS = ("laplacian-l2", "laplacian")
# Rows to fit to in the two rounds, rows that a metric is learnt from, rows to evaluate on in the
# first; what goes on from it.
SCREENED, CONFIRMED, LEARNT, EVALUATED, KEPT = 1000, 4000, 1500, 1000, 4
# The second round holds out so many rows together, in at most so many parts.
FEWEST_EVALUATED, MOST_PARTS = 600, 5
# Multiples of the median's bandwidth that it tries.
WIDTHS = {"laplacian-l2": (0.3,), "laplacian": (2.0, 0.4)}
# Multiples of an iterate's lambda that the second round tries.
AROUND = (3.0, 1.0, 1 / 3)
# Below so many rows nothing is chosen.
FEWEST = 50


@dataclass(frozen=True)
class Inputs:
    """What was chosen, and the evidence.

    Parameters
    ----------
    scaling, kernel : str
    form : str
        ``none``, ``diagonal`` or ``full``.
    steps : int
        Iterations of the metric.
    lam : float or None
        The best ridge parameter of the kernel machine.
    found : Found or None
        None where there were too few rows to choose by.
    held_out : int
        Rows of the second round.
    """

    scaling: str
    kernel: str
    form: str
    steps: int
    lam: float | None = None
    width: float = 1.0
    found: Found | None = None
    held_out: int = 0

    def step(self) -> list[dict[str, Any]]:
        """What the choice leaves in a results row, in the form of `search.Found.step`."""
        if self.found is None:
            return []
        tried = [
            [*trial.point.values(), steps, trial.round.rows, value]
            for trial in self.found.trials
            for steps, value in trial.path
            if math.isfinite(value)
        ]
        step = {
            "by": "kernel ridge regression",
            "options": ["scaling", "kernel", "metric", "metric_steps", "rows"],
            "fitted": self.found.best.round.rows,
            "held_out": self.held_out,
            "error": self.found.measure.name,
            "tried": tried,
            "chosen": [
                self.scaling,
                self.kernel,
                self.found.best.point["metric"],
                self.steps,
                self.found.best.round.rows,
            ],
        }
        return [step]


@dataclass(frozen=True)
class Resolved:
    """Scaling, kernel and metric of one training.

    Parameters
    ----------
    scaler : Scaler
        With the metric.
    inputs : dict
        The values of the options ``scaling``, ``kernel``, ``metric`` and ``metric_steps``.
    steps : list of dict
        What was tried.
    chosen : Inputs or None
        None where nothing was tried.
    """

    scaler: Scaler
    inputs: dict[str, Any]
    steps: list[dict[str, Any]]
    chosen: Inputs | None = None

    def numbers(self, problem: Problem, settings: Settings) -> dict[str, Any]:
        """Bandwidth and lambda where they are to be those of the choice; without one, or with
        another loss, they are chosen by themselves.
        """
        found = self.chosen
        known: dict[str, Any] = {}
        usable = found is not None and found.lam is not None and problem.loss.name == "squared"
        if settings.get("gamma") == AUTO:
            known["gamma"] = (
                metric.bandwidth(found.kernel, problem.X, settings.seed, found.width)["gamma"]
                if usable
                else "loo"
            )
        if settings.get("lam") == AUTO:
            known["lam"] = found.lam if usable else "validation"
        return known


def resolved(
    method: Method, settings: Settings, X: Any, scaler: Scaler, problem: Problem
) -> Resolved:
    """What the options ask for: chosen on held-out rows, or learnt.

    Parameters
    ----------
    X : array, CSR matrix, or rows on workers, (n, d)
        Raw rows.
    scaler : Scaler
        Of the option's scaling, where that is not to be chosen.
    problem : Problem
        Of the rows that this scaler gives.
    """
    form, seed = settings.metric, settings.seed
    Y, task, weights = problem.Y, problem.task, problem.weights
    forms = {"none": (), AUTO: metric.FORMS}.get(form, (form,))
    several = settings.scaling == AUTO or settings.get("kernel") == AUTO
    if not several and not forms:
        return Resolved(scaler, {}, [])
    kernel = settings.get("kernel")
    if several:
        found = choose(
            X,
            Y,
            task,
            scalings=TRIED if settings.scaling == AUTO else (settings.scaling,),
            kernels=method.tried_kernels if kernel == AUTO else (kernel,),
            forms=forms,
            steps=settings.metric_steps or metric.STEPS,
            weights=weights,
            seed=seed,
            tell=problem.progress,
        )
        scaler = Scaler.fit(X, found.scaling, weights)
        own = {"scaling": found.scaling, "metric": found.form}
        if found.steps:
            own["metric_steps"] = found.steps
        if kernel is not None:
            own["kernel"] = kernel = found.kernel
        learnt = None
        if found.steps:
            rows = scaler.transform(X)
            learnt = metric.fixed(
                rows,
                Y,
                kernel=kernel,
                form=found.form,
                steps=found.steps,
                task=task,
                weights=weights,
                seed=seed,
            )
        return Resolved(replace(scaler, metric=learnt), own, found.step(), found)
    if settings.metric_steps is not None and form != AUTO:
        learnt = metric.fixed(
            problem.X,
            Y,
            kernel=kernel or metric.KERNEL,
            form=form,
            steps=settings.metric_steps,
            task=task,
            weights=weights,
            seed=seed,
        )
        return Resolved(replace(scaler, metric=learnt), {}, [])
    tried = metric.learn(
        problem.X,
        Y,
        kernel=kernel or metric.KERNEL,
        forms=forms,
        steps=settings.metric_steps or metric.STEPS,
        task=task,
        weights=weights,
        seed=seed,
    )
    return Resolved(replace(scaler, metric=tried.metric), tried.options(), [tried.step()])


@dataclass(frozen=True)
class _Rows:
    """Rows by the number of their scaling, encoded targets and weights."""

    scaled: dict[str, Any]
    Y: np.ndarray
    weights: np.ndarray | None
    task: str
    seed: int

    def of(self, scaling: str, kept: np.ndarray, out: np.ndarray) -> tuple[Any, ...]:
        X = self.scaled[scaling]
        own = None if self.weights is None else self.weights[kept]
        own_out = None if self.weights is None else self.weights[out]
        return X[kept], self.Y[kept], X[out], self.Y[out], own, own_out

    def path(self, point: Settings, kept: np.ndarray, out: np.ndarray, steps: int) -> list[Iterate]:
        X, Y, X_out, Y_out, own, own_out = self.of(point["scaling"], kept, out)
        if point["metric"] == "none":
            steps = 0
        return list(
            iterates(
                X,
                Y,
                X_out,
                Y_out,
                point["kernel"],
                point["metric"],
                task=self.task,
                steps=steps,
                weights=own,
                weights_out=own_out,
                seed=self.seed,
            )
        )


def choose(
    X: Any,
    Y: np.ndarray,
    task: str,
    *,
    scalings: Sequence[str] = TRIED,
    kernels: Sequence[str] = KERNELS,
    forms: Sequence[str] = metric.FORMS,
    steps: int = metric.STEPS,
    weights: np.ndarray | None = None,
    seed: int = 0,
    tell: Any = None,
) -> Inputs:
    """The combination with the least error on held-out rows.

    Parameters
    ----------
    X : array or CSR matrix, (n, d)
        Raw rows.
    Y : array, (n, k)
        Encoded targets.
    task : str
    scalings, kernels, forms : sequences of str
        To choose from; forms are those of a metric, beside none.
    steps : int
        Most iterations of a metric.
    weights : array, (n,), or None
    seed : int
        Of the held-out rows.
    tell : callable, optional
        Called with (tried, of) as the choice goes on.

    Returns
    -------
    Inputs
        The first of each where there are fewer than FEWEST rows.
    """
    n = X.shape[0]
    if n < FEWEST or not X.shape[1]:
        return Inputs(scalings[0], kernels[0], "none", 0)
    some = evenly(n, CONFIRMED + CONFIRMED // 4)
    own = None if weights is None else weights[some]
    raw, Y = X[some], Y[some]
    scaled = {
        name: np.ascontiguousarray(_dense(Scaler.fit(raw, name, own).transform(raw)))
        for name in scalings
    }
    rows = _Rows(scaled, Y, own, task, seed)
    folds = _folds(len(some), seed)
    points = [
        Settings("inputs", {"scaling": one, "kernel": kernel, "metric": form})
        for kernel in kernels
        for one in scalings
        for form in metric.allowed(forms, X, kernel) or ["none"]
    ]
    first = _screening(folds[0], seed)
    rounds = [
        Round(len(first[0]), 1, 0, KEPT),
        Round(len(folds[0][0]), len(folds), 1),
    ]
    chooser = _Chooser(rows, first, folds, {}, {}, tell, len(points) + KEPT)
    measure = Measure(
        "mean squared error" if task == "regression" else "error of labels and targets"
    )
    grid = Grid(points, {"inputs": tuple(range(steps + 1))}, rounds)
    found = search(chooser.errors, grid, measure, together=True)
    best = found.best
    form = best.point["metric"] if best.lam else "none"
    lam, width = chooser.lams[_name(best.point), best.lam]
    held_out = sum(len(out) for _, out in folds)
    return Inputs(
        best.point["scaling"], best.point["kernel"], form, best.lam, lam, width, found, held_out
    )


def _dense(X: Any) -> np.ndarray:
    return np.asarray(X.toarray() if hasattr(X, "toarray") else X, np.float64)


def _name(point: Settings) -> tuple[Any, ...]:
    return tuple(point.values())


def _folds(n: int, seed: int) -> list[Part]:
    """Parts of n rows, a fifth of them held out in each, as many as hold out enough rows."""
    size = max(1, n // 5)
    number = min(MOST_PARTS, -(-FEWEST_EVALUATED // size))
    return [(np.setdiff1d(np.arange(n), out), out) for out in drawn(n, seed, *[size] * number)]


def _screening(part: Part, seed: int) -> Part:
    kept, out = part
    rng = np.random.default_rng(seed)
    return np.sort(rng.permutation(kept)[:SCREENED]), np.sort(rng.permutation(out)[:EVALUATED])


@dataclass(frozen=True)
class _Chooser:
    rows: _Rows
    first: Part
    folds: list[Part]
    best_steps: dict[Any, int]
    # lambda and the multiple of the median's bandwidth
    lams: dict[Any, tuple[float, float]]
    tell: Any
    total: int

    def errors(self, point: Settings, round: Round, steps: Sequence[int]) -> list[float]:
        found = self._screen(point, steps) if round.number == 0 else self._confirm(point, steps)
        if self.tell is not None:
            self.tell(self.total)
        return found

    def _value(self, error: float, wrong: float) -> float:
        return error if self.rows.task == "regression" else wrong + TIE * error

    def _screen(self, point: Settings, steps: Sequence[int]) -> list[float]:
        path = self.rows.path(point, *self.first, steps[-1])
        values = [self._value(one.error, one.wrong) for one in path]
        self.best_steps[_name(point)] = int(np.argmin(values))
        for number, one in enumerate(path):
            self.lams[_name(point), number] = one.lam, metric.WIDTH
        return values + [math.inf] * (len(steps) - len(values))

    def _confirm(self, point: Settings, steps: Sequence[int]) -> list[float]:
        name = _name(point)
        middle = self.best_steps[name]
        tried = [number for number in (middle - 1, middle, middle + 1) if number in steps]
        errors: dict[tuple[int, float, float], list[float]] = {}
        for kept, out in self.folds:
            some = kept[evenly(len(kept), LEARNT)]
            path = self.rows.path(point, some, out, tried[-1])
            X, Y, X_out, Y_out, own, own_out = self.rows.of(point["scaling"], kept, out)
            own = np.ones(len(Y)) if own is None else own
            for number in tried:
                if number >= len(path):
                    continue
                one = path[number]
                maps = (X, X_out) if one.metric is None else map(one.metric.transform, (X, X_out))
                Z, Z_out = maps
                for width in WIDTHS[point["kernel"]]:
                    params = metric.bandwidth(point["kernel"], Z, self.rows.seed, width)
                    K = kernels.block(point["kernel"], Z, Z, params)
                    K_out = kernels.block(point["kernel"], Z_out, Z, params)
                    for factor in AROUND:
                        lam = self.lams[name, number][0] * factor
                        (_, error, wrong), _ = best_ridge(
                            K, Y, K_out, Y_out, own, own_out, self.rows.task, (lam,)
                        )
                        errors.setdefault((number, lam, width), []).append(
                            self._value(error, wrong)
                        )
        values = [math.inf] * len(steps)
        for number in tried:
            means = {key: np.mean(v) for key, v in errors.items() if key[0] == number}
            if means:
                best = min(means, key=lambda key: means[key])
                values[number], self.lams[name, number] = float(means[best]), best[1:]
        return values


# What a unit of squared error counts beside a share of wrong labels, which tells few rows apart.
TIE = 0.1
