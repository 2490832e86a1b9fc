"""Choose scaling, kernel and metric on held-out rows, and learn a metric by recursive feature
machines.

A kernel machine is fitted, the average outer product of its gradients becomes the metric of the
next one, and so on (Radhakrishnan, Beaglehole, Pandit and Belkin 2024). Inputs along which the
function changes much get a large weight. The iterate with the lowest error on held-out rows is
used, unless the original inputs are as good.

Every combination of scaling, kernel and metric is evaluated by kernel ridge regression: first on
few rows, then the best again on more rows and more held-out rows (`rfx.fitting.search`). The
iterations of a metric are tried like lambdas; zero iterations mean the original metric.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse

from rfx import kernels
from rfx.data.rows import Rows
from rfx.data.tabular.apart import Part
from rfx.data.transforms.metric import FORMS, Metric
from rfx.data.transforms.scaling import TRIED, Scaler, keeps_sparse
from rfx.fitting.candidates import (
    AROUND,
    KERNELS,
    METRIC_LAMS,
    METRIC_STEPS,
    METRIC_WIDTH,
    WIDTHS,
)
from rfx.fitting.held_out import HeldOut, evenly
from rfx.fitting.method import Method
from rfx.fitting.options import AUTO
from rfx.fitting.preprocessing import input_dtype
from rfx.fitting.problem import Problem, error
from rfx.fitting.search import Measure, Point, SearchBudget, SearchGrid, SearchRound, Tally, search
from rfx.kernels.gradients import outer_product
from rfx.operators import cholesky

log = logging.getLogger(__name__)
# Maximum rows for learning a metric, and the fraction of them that is held out.
ROWS, HELD_OUT = 2000, 0.2
# Minimum rows for learning a metric, and for a choice.
FEWEST = 50
# Smaller lambdas are not tried once the error is this many times the lowest.
WORSE = 1.2
# Systems whose lambda exceeds this times the number of rows are solved in float32.
SINGLE = 1e-6
# Number of inputs above which only a diagonal metric is used.
MOST_INPUTS = 300
# A metric must reduce the held-out mean squared error by at least this fraction.
GAIN = 0.01
# Maximum numbers of the rows that are dense at a time.
VALUES = 1 << 25
# The kernel used for learning if a kernel's gradient is not implemented.
KERNEL = "laplacian-l2"
# A trial takes about as long as that many of other searches with the same work: it learns a metric.
METRIC_WORK = 3.0
# Weight of the squared error of classes relative to the error rate: small samples have many ties.
TIE = 0.1


# -------------------------------------------------------------------------- a metric


@dataclass(frozen=True)
class Machine:
    """Kernel ridge regression with one metric, bandwidth and lambda.

    Parameters
    ----------
    lam : float
    error : float
        Mean squared error on the held-out rows; of classes that of targets +-1.
    score : float
        The `criterion` on the held-out rows.
    coef : array, (n, k)
    metric : Metric or None
        None for the original inputs.
    """

    lam: float
    error: float
    score: float
    coef: np.ndarray
    metric: Metric | None


@dataclass(frozen=True)
class Learnt:
    """A metric with its evaluation.

    Parameters
    ----------
    metric : Metric or None
        None if none reduces the error enough.
    steps : int
        Its iterations.
    errors : dict
        Form -> held-out mean squared errors of its iterates, starting with that of no metric.
    rows : tuple
        Numbers of rows fitted and held out.
    """

    metric: Metric | None = None
    steps: int = 0
    errors: dict[str, list[float]] = field(default_factory=dict)
    rows: tuple[int, int] = (0, 0)

    @property
    def form(self) -> str:
        return "none" if self.metric is None else self.metric.form

    def step(self) -> dict[str, Any]:
        """The entry of the choice in a results row, in the form of `search.Evidence.step`."""
        tried = [
            [form if number else "none", number, value]
            for form, values in self.errors.items()
            for number, value in enumerate(values)
        ]
        return {
            "by": "recursive feature machines",
            "options": ["metric", "metric_steps"],
            "fitted": self.rows[0],
            "held_out": self.rows[1],
            "error": "mean squared error",
            "tried": tried,
            "chosen": [self.form, self.steps],
        }


def bandwidth(kernel: str, X: Any, seed: int, factor: float) -> dict[str, Any]:
    """The kernel's parameters for rows X (n, d): gamma is that of the median distance times a
    factor.
    """
    params: dict[str, Any] = kernels.parameters(kernel, X, "median", seed)
    return params | {"gamma": params["gamma"] * factor}


def criterion(task: str, decision: np.ndarray, Y: np.ndarray, weights: np.ndarray | None) -> float:
    """The error by which machines are compared: the mean squared error, for classes that of targets
    +-1 times TIE plus the error rate.
    """
    squared = error("regression", decision, Y, weights)
    return squared if task == "regression" else error(task, decision, Y, weights) + TIE * squared


def _mapped(X: np.ndarray, metric: Metric | None) -> np.ndarray:
    return X if metric is None else metric.transform(X)


def path(
    problem: Problem,
    out: Problem,
    kernel: str,
    metric: Metric | None,
    params: dict[str, Any],
    lams: Sequence[float],
) -> Iterator[Machine]:
    """Kernel ridge regression of the centred targets for successive lambdas.

    It ends before a lambda whose system is singular in float64.

    Parameters
    ----------
    problem, out : Problem
        Dense rows to fit, and those held out.
    params : dict
        The kernel's, for the mapped rows.
    lams : sequence of float
        In the unit of the mean weight.
    """
    Z = _mapped(problem.X, metric)
    K, K_out = (kernels.values(kernel, rows, Z, params) for rows in (Z, _mapped(out.X, metric)))
    Y, weights, unit = problem.Y, problem.weights, 1.0
    offset = np.average(Y, axis=0, weights=weights)
    if weights is not None:
        # a row of weight 0 has no influence
        with np.errstate(divide="ignore"):
            unit = np.minimum(np.mean(weights) / weights, 1e30)
    for lam in lams:
        dtype = np.float32 if lam > SINGLE * len(K) else np.float64
        try:
            coef = cholesky.factored(K, lam * unit, dtype).solve(Y - offset)
        except scipy.linalg.LinAlgError:
            return
        decision = K_out @ coef + offset
        value = error("regression", decision, out.Y, out.weights)
        score = criterion(problem.task, decision, out.Y, out.weights)
        yield Machine(lam, value, score, coef, metric)


def machine(
    problem: Problem,
    out: Problem,
    kernel: str,
    metric: Metric | None,
    params: dict[str, Any],
    lams: Sequence[float] = METRIC_LAMS,
) -> Machine:
    """The machine of the best lambda, in decreasing order; arguments as in `path`."""
    best = Machine(lams[0], np.inf, np.inf, np.zeros(problem.Y.shape), metric)
    for one in path(problem, out, kernel, metric, params, lams):
        if one.error < best.error:
            best = one
        elif one.error > WORSE * best.error:
            break
    return best


def machines(
    problem: Problem,
    out: Problem,
    kernel: str,
    form: str,
    steps: int = METRIC_STEPS,
    seed: int = 0,
) -> Iterator[Machine]:
    """The machines of the recursion: without a metric, and with each of `steps` metrics, of that
    form; fewer if one is constant.
    """
    metric: Metric | None = None
    lams: Sequence[float] = METRIC_LAMS
    for number in range(steps + 1):
        Z = _mapped(problem.X, metric)
        params = bandwidth(kernel, Z, seed, METRIC_WIDTH)
        one = machine(problem, out, kernel, metric, params, lams)
        yield one
        # that of the next machine is close to it
        lams = [lam for lam in METRIC_LAMS if one.lam / 20 < lam < one.lam * 20]
        if number == steps:
            return
        metric = next_metric(kernel, Z, one.coef, params, metric, form == "full", problem.weights)
        if metric is None:
            return


def next_metric(
    kernel: str,
    Z: np.ndarray,
    coef: np.ndarray,
    params: dict[str, Any],
    metric: Metric | None,
    full: bool,
    weights: np.ndarray | None,
) -> Metric | None:
    """The metric of the gradients of a machine of the rows Z, mapped by its own metric."""
    M = outer_product(kernel, Z, coef, params, np.arange(len(Z)), full, weights)
    if metric is not None:
        # from gradients with respect to A'x to those with respect to x
        A = metric.map
        M = M * A**2 if A.ndim == 1 else A @ M @ A.T
    return Metric.of(M)


def learn(
    problem: Problem,
    *,
    kernel: str,
    forms: Sequence[str] = FORMS,
    steps: int | None = None,
    seed: int = 0,
) -> Learnt:
    """Learn the metric of scaled rows and encoded targets, from a sample of at most ROWS rows.

    The form and iterate with the lowest error on the held-out part of the sample is used, unless it
    reduces the error without a metric by less than GAIN.

    Parameters
    ----------
    problem : Problem
    kernel : str
        The method's; if its gradient is not implemented, KERNEL is used.
    forms : sequence of str
    steps : int, optional
        Exactly this many iterations of one form, whatever their error.
    seed : int
        Of the sample.
    """
    n, held_out = problem.n_rows, HeldOut(problem.n_rows, seed, problem.apart)
    if n < FEWEST or not problem.n_inputs or held_out.none:
        return Learnt()
    rows = min(n, ROWS, most_rows(problem.n_inputs))
    cut = int(HELD_OUT * rows)
    part = held_out.sample(rows - cut, cut, HELD_OUT, out_first=True)
    fitted, out = (replace(some, X=dense(some.X)) for some in map(problem.rows, part))
    kernel = learner(kernel)
    errors: dict[str, list[float]] = {}
    best: tuple[float, Metric | None, int] = np.inf, None, 0
    for form in allowed(forms, problem.X, kernel):
        errors[form] = []
        for number, one in enumerate(
            machines(fitted, out, kernel, form, steps or METRIC_STEPS, seed)
        ):
            errors[form].append(one.error)
            limit = best[0] if best[1] is not None else (1 - GAIN) * errors[form][0]
            if steps is not None or (one.metric is not None and one.error < limit):
                best = one.error, one.metric, number
    return Learnt(best[1], best[2], errors, (len(fitted.X), len(out.X)))


def learner(kernel: str | None) -> str:
    """The kernel used for learning, for a method's kernel or a method without one."""
    known = kernel is not None and kernels.get_kernel(kernel).has_gradient
    return kernel if kernel is not None and known else KERNEL


def allowed(forms: Sequence[str], X: Any, kernel: str) -> list[str]:
    """The forms possible for rows X (n, d) and the kernel; diagonal if none of several is
    possible.
    """
    wide = X.shape[1] > MOST_INPUTS or scipy.sparse.issparse(X)
    diagonal = wide or kernels.get_kernel(kernel).metric == "l1"
    possible = [form for form in forms if form == "diagonal" or not diagonal]
    return possible or ["diagonal"] * bool(forms)


def most_rows(n_inputs: int) -> int:
    """Number of rows with so many inputs that may be dense at a time."""
    return max(FEWEST, VALUES // max(1, n_inputs))


def dense(X: Any) -> np.ndarray:
    """Rows as a float64 array."""
    return np.asarray(X.toarray() if scipy.sparse.issparse(X) else X, np.float64)


# -------------------------------------------------------------------------- the choice


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
class InputsChoice:
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
        The trials, in the form of `search.Evidence.step`.
    """

    scaling: str
    kernel: str
    form: str
    steps: int
    lam: float
    width: float
    step: dict[str, Any]


def choose_inputs(
    X: Any,
    problem: Problem,
    *,
    scalings: Sequence[str] = TRIED,
    tried_kernels: Sequence[str] = KERNELS,
    forms: Sequence[str] = FORMS,
    steps: int = METRIC_STEPS,
    effort: Effort = THOROUGH,
    seed: int = 0,
    budget: SearchBudget | None = None,
) -> InputsChoice | None:
    """The combination with the lowest error on held-out rows; None for too few rows.

    Parameters
    ----------
    X : array, CSR matrix, or rows on workers, (n, d)
        Raw rows of the problem.
    problem : Problem
    scalings, tried_kernels, forms : sequences of str
        The candidates; forms of a metric, in addition to none.
    steps : int
        Maximum iterations of a metric.
    effort : Effort
    seed : int
        Seed of the held-out rows.
    budget : SearchBudget, optional
        By default unlimited.
    """
    if problem.n_rows < FEWEST or not X.shape[1]:
        return None
    some = evenly(problem.n_rows, min(effort.rows, most_rows(X.shape[1])))
    held_out = HeldOut(len(some), seed, None if problem.apart is None else problem.apart.rows(some))
    if held_out.none:
        return None
    raw = X.unscaled(some) if isinstance(X, Rows) else X[some]
    weights = None if problem.weights is None else problem.weights[some]
    fitted = replace(problem, X=raw, Y=np.asarray(problem.Y[some]), weights=weights, apart=None)
    rows = {name: dense(Scaler.fit(raw, name, weights).transform(raw)) for name in scalings}
    size = len(some) // 5
    number = min(effort.parts, math.ceil(effort.held_out / size))
    folds = (
        held_out.shares([size] * number)
        if held_out.apart is None
        else held_out.apart.up_to(5, seed)[:number]
    )
    points = [
        Point("inputs", {"scaling": scaling, "kernel": kernel, "metric": form})
        for kernel in tried_kernels
        for scaling in scalings
        for form in allowed(forms, raw, kernel) or ["none"]
    ]
    total = len(points) + min(effort.kept, len(points))
    tally = Tally(problem.progress, ["scaling", "kernel", "metric"], total)
    trials = _Trials(rows, fitted.quiet(), seed, folds, effort, tally)
    what = "mean squared error"
    what = what if problem.task == "regression" else f"wrong labels + {TIE} squared error"
    rounds = [
        SearchRound(len(trials.first[0]), 1, 0, effort.kept),
        SearchRound(len(folds[0][0]), len(folds), 1),
    ]
    grid = SearchGrid(points, {"inputs": tuple(range(steps + 1))}, rounds)
    evidence = search(trials.errors, grid, Measure(what), budget, together=True)
    evidence.warn("the choice of scaling, kernel and metric")
    best, count = evidence.best.point, evidence.best.lam
    lam, width = trials.best[_name(best), count]
    chosen = best["scaling"], best["kernel"], best["metric"] if count else "none", count
    tried = [
        [*trial.point.options.values(), count, trial.round.number + 1, value]
        for trial in evidence.trials
        for count, value in trial.path
        if math.isfinite(value)
    ]
    step = evidence.step(False, sum(len(out) for _, out in folds)) | {
        "by": "kernel ridge regression",
        "options": ["scaling", "kernel", "metric", "metric_steps", "round"],
        "tried": tried,
        "chosen": [*chosen, evidence.best.round.number + 1],
    }
    return InputsChoice(*chosen, lam, width, step)


def _name(point: Point) -> tuple[Any, ...]:
    return tuple(point.options.values())


@dataclass(frozen=True)
class _Trials:
    """The trials of both rounds.

    rows: those of every scaling. best: (lambda, width) of each point and number of iterations.
    """

    rows: dict[str, np.ndarray]
    problem: Problem
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

    def errors(self, point: Point, round: SearchRound, counts: Sequence[int]) -> list[float]:
        """The error for each number of iterations; infinite if it is not tried."""
        values = (self._confirmed if round.kept is None else self._screened)(point, counts)
        self.tally.add([min(values)], 1)
        return values + [math.inf] * (len(counts) - len(values))

    def _sample(self, point: Point, part: Part) -> tuple[Problem, Problem]:
        scaled = replace(self.problem, X=self.rows[point["scaling"]])
        return scaled.rows(part[0]), scaled.rows(part[1])

    def _machines(self, point: Point, sample: tuple[Problem, Problem], steps: int) -> list[Machine]:
        most = 0 if point["metric"] == "none" else steps
        return list(machines(*sample, point["kernel"], point["metric"], most, self.seed))

    def _screened(self, point: Point, counts: Sequence[int]) -> list[float]:
        name, kernel, sample = _name(point), point["kernel"], self._sample(point, self.first)
        widths = WIDTHS.get(kernel, (METRIC_WIDTH,))
        made = self._machines(point, sample, counts[-1])
        values = [one.score for one in made]
        for count, one in enumerate(made):
            self.best[name, count] = one.lam, widths[0] if count else METRIC_WIDTH
        # a metric adapts the inputs to the bandwidth; without one, only the bandwidth can be chosen
        for width in widths:
            params = bandwidth(kernel, sample[0].X, self.seed, width)
            one = machine(*sample, kernel, None, params)
            if one.score < values[0]:
                values[0], self.best[name, 0] = one.score, (one.lam, width)
        self.steps[name] = int(np.argmin(values))
        return values

    def _confirmed(self, point: Point, counts: Sequence[int]) -> list[float]:
        """First every number of iterations with the first round's lambda, then the best of them
        with other bandwidths and lambdas.
        """
        name, kernel = _name(point), point["kernel"]
        most = min(self.steps[name] + 1, counts[-1])
        samples, metrics = [], []
        for kept, out in self.folds:
            few = self._sample(point, (kept[evenly(len(kept), self.effort.learning)], out))
            metrics.append([one.metric for one in self._machines(point, few, most)])
            samples.append(self._sample(point, (kept, out)))
        # a machine of either round may have been constant, and the last
        tried = min(*map(len, metrics), sum((name, count) in self.best for count in counts))

        def means(count: int, lams: Sequence[float], width: float) -> list[float]:
            """The error of each lambda tried in all folds."""
            scores = []
            for sample, of_counts in zip(samples, metrics):
                metric = of_counts[count]
                params = bandwidth(kernel, _mapped(sample[0].X, metric), self.seed, width)
                fold = path(*sample, kernel, metric, params, lams)
                scores.append([one.score for one in fold])
            return [float(np.mean(values)) for values in zip(*scores)] or [math.inf]

        first = [self.best[name, count] for count in range(tried)]
        values = [means(count, [lam], width)[0] for count, (lam, width) in enumerate(first)]
        best = int(np.argmin(values))
        # 0.3, not the 0.30000000000000004 of a product
        lams = [float(f"{first[best][0] * factor:.6g}") for factor in AROUND]
        widths = WIDTHS.get(kernel, (METRIC_WIDTH,))
        errors: dict[tuple[float, float], float] = {}
        for width in dict.fromkeys((*widths, first[best][1])):
            errors |= {(lam, width): v for lam, v in zip(lams, means(best, lams, width))}
        self.best[name, best] = min(errors, key=lambda option: errors[option])
        values[best] = min(errors.values())
        return values


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
    choice : InputsChoice or None
        Whether scaling or kernel was chosen.
    """

    scaler: Scaler
    options: dict[str, Any]
    steps: list[dict[str, Any]]
    choice: InputsChoice | None = None

    def numbers(self, method: Method, problem: Problem) -> dict[str, Any]:
        """Bandwidth and lambda from a thorough choice if they are ``auto``; without one, or with
        another loss, the words by which other methods choose them.
        """
        if not method.space.thorough:
            return {}
        choice = self.choice if problem.loss.name == "squared" else None
        if choice is not None and method.get("kernel") not in (AUTO, choice.kernel):
            choice = None
        numbers: dict[str, Any] = {"gamma": "loo", "lam": "validation"}
        if choice is not None:
            params = bandwidth(choice.kernel, problem.X, method.seed, choice.width)
            numbers = {"gamma": params["gamma"], "lam": choice.lam * problem.mean_weight}
        return {name: value for name, value in numbers.items() if method.get(name) == AUTO}


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
    kernel, forms = method.get("kernel"), _forms(method.metric)
    if AUTO not in (method.scaling, kernel):
        return with_metric(scaler, method, problem) if forms else Resolved(scaler, {}, [])
    scalings = _scalings(X, kernel) if method.scaling == AUTO else (method.scaling,)
    tried = method.space.kernels if kernel == AUTO else (learner(kernel),)
    choice = choose_inputs(
        X,
        problem,
        scalings=scalings,
        tried_kernels=tried,
        forms=forms,
        steps=method.metric_steps or METRIC_STEPS,
        effort=THOROUGH if method.space.thorough else QUICK,
        seed=method.seed,
        budget=SearchBudget.of(method.get("budget_seconds"), METRIC_WORK, problem.deadline),
    )
    if choice is None:
        choice = InputsChoice(scalings[0], tried[0], "none", 0, 0.0, 0.0, {})
    scaler = Scaler.fit(X, choice.scaling, problem.weights)
    options: dict[str, Any] = {"scaling": choice.scaling, "metric": choice.form}
    options |= {"metric_steps": choice.steps or None}
    options |= {"kernel": choice.kernel} if kernel == AUTO else {}
    if choice.steps:
        rows = scaler.transform(X, dtype=input_dtype(method))
        chosen = method.updated(**options | {"kernel": choice.kernel})
        problem.doing("learning the chosen metric")
        scaler = with_metric(scaler, chosen, replace(problem, X=rows)).scaler
    if not choice.step:
        return Resolved(scaler, options, [])
    return Resolved(scaler, options, [choice.step], choice)


def _scalings(X: Any, kernel: str | None) -> Sequence[str]:
    """The scalings that `auto` tries for rows X: zeros of text stay zeros, and a kernel may suit
    few scalings.
    """
    if kernel not in (None, AUTO) and kernels.get_kernel(str(kernel)).scalings:
        return kernels.get_kernel(str(kernel)).scalings
    return ("minmax01", "none") if keeps_sparse(X) else TRIED


def _forms(asked: str) -> Sequence[str]:
    """The forms of a metric for a value of --metric."""
    return {"none": (), AUTO: FORMS}.get(asked, (asked,))


def with_metric(scaler: Scaler, method: Method, problem: Problem) -> Resolved:
    """The scaler with the metric requested by --metric, learnt from the problem's rows, which it
    scaled.
    """
    forms = _forms(method.metric)
    fixed = method.metric_steps if len(forms) == 1 else None
    kernel = learner(method.get("kernel"))
    learnt = learn(problem, kernel=kernel, forms=forms, steps=fixed, seed=method.seed)
    options = {"metric": learnt.form, "metric_steps": learnt.steps or None}
    scaler = scaler if learnt.metric is None else replace(scaler, metric=learnt.metric)
    chosen = fixed is None and bool(learnt.errors)
    return Resolved(scaler, options, [learnt.step()] if chosen else [])
