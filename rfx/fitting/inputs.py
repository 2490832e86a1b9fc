"""Choose scaling, kernel and metric by leave-one-out errors; learn a metric by recursive feature
machines.

A kernel machine is fitted, the average outer product of its gradients becomes the metric of the
next one, and so on (Radhakrishnan, Beaglehole, Pandit and Belkin 2024). Inputs along which the
function changes much get a large weight. The iterate with the lowest error is used, unless the
original inputs are as good.

Every combination of scaling, kernel and metric is evaluated by kernel ridge regression: first on
few rows, then the best again on more (`rfx.fitting.selection`). One factor gives a machine and its
errors on rows that it has not seen (`rfx.operators.kernel`), so that all rows of the sample learn
and evaluate. Groups and times need held-out rows instead, and few rows, or fewer than inputs, folds
(`folded`). The iterations of a metric are tried like lambdas; zero iterations mean the original
metric.
"""

from __future__ import annotations

import logging
import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import scipy.sparse

from rfx import kernels
from rfx.counters import random_rows
from rfx.data.rows import keeps_sparse
from rfx.data.tabular.apart import Part
from rfx.data.transforms import FORMS, TRIED, Metric, Scaler
from rfx.features.partition import Partition
from rfx.fitting.method import Method
from rfx.fitting.options import (
    AUTO,
    KERNELS,
    LEAF_ROWS,
    LEAF_WIDEST,
    LEAF_WIDTHS,
    METRIC_LAM,
    METRIC_LAMS,
    METRIC_STEPS,
    METRIC_WIDTH,
    WIDTHS,
)
from rfx.fitting.problem import Problem, error, input_dtype, measured
from rfx.fitting.selection import (
    LEARNT,
    Measure,
    Point,
    Search,
    SearchBudget,
    SearchGrid,
    SearchRound,
    Tally,
)
from rfx.fitting.weights import mean, part
from rfx.kernels.gradients import outer_product
from rfx.operators.kernel import left_out

log = logging.getLogger(__name__)
# The options of the inputs.
INPUTS = ("scaling", "kernel", "metric", "metric_steps")
# Maximum rows of the last round, which also learn the metric.
ROWS = 2000
# Rows of the rounds before, with the points that reach the next one, and the iterations tried.
# Only the better form of a metric remains after a round of several iterations.
ROUNDS = ((500, 4, 1), (1000, 3, METRIC_STEPS))
# A round has at most this fraction of the rows of the last.
FEWER = 0.75
# For a method with leaves, the best combinations are compared again, in some leaves of a tree of at
# most so many random rows, where rows are closer: on ijcnn1, a metric reduced the error by a
# quarter on 2,000 rows, and increased it by a tenth in the leaves of 37,000. Smaller leaves are
# cheaper but mislead: the ranks of ten combinations in 12 leaves of 1,000 rows had a correlation of
# .07 with those in all leaves of 2,500, and .77 in three leaves of 2,500.
PILOT, LEAVES, LEAF_POINTS = 1 << 17, 8, 4
# Lambda is chosen on every third row, or more to have that many: the best one depends little on
# their number.
EVERY, CHOOSING = 3, 250
# Minimum rows for learning a metric, and for a choice.
FEWEST = 50
# Fraction of the sample that is held out for groups or times.
HELD_OUT = 0.25
# Number of inputs above which only a diagonal metric is used.
MOST_INPUTS = 300
# A metric must reduce the error by at least this fraction. The error of a full one for d inputs and
# n rows is also multiplied by 1 + OPTIMISM d / n: the rows left out had a part in the metric.
GAIN, OPTIMISM = 0.01, 4.0
LEAST_GAIN = 0.01
# Of at most so many rows, metrics are compared in folds instead.
FOLDED, FOLDS = 500, 3
# Maximum numbers of the rows that are dense at a time.
VALUES = 1 << 25
# Gradients whose outer products are averaged, and rows at least.
GRADIENTS, GRADIENT_ROWS = 2000, 300
# Multiples of the usual gamma tried in turn where that leaves more than LITTLE of the error of a
# constant: five periods of a sine need 16 times as much.
NARROWER, LITTLE = (4.0, 16.0, 64.0), 0.75
# Minimum rows without a part in a choice that are enough to judge a model.
OTHERS = 500
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
    Z : array or CSR, (n, d)
        The rows, mapped by the metric.
    params : dict
        The kernel's.
    width : float
        The bandwidth as a multiple of the median.
    metric : Metric or None
        None for the original inputs.
    lam : float
        For rows of mean weight 1.
    score : float
        The `criterion` on rows that the machine has not seen; infinite if the system is singular.
    coef : array, (n, k)
    """

    Z: Any
    params: dict[str, Any]
    width: float
    metric: Metric | None
    lam: float
    score: float
    coef: np.ndarray


@dataclass(frozen=True)
class Sample:
    """Rows on which machines are compared.

    Parameters
    ----------
    problem : Problem
        Scaled rows, dense unless they are text, with weights of mean 1.
    part : Part or None
        The rows to fit and to evaluate; None for leave-one-out.
    seed : int
    """

    problem: Problem
    part: Part | None
    seed: int

    @classmethod
    def of(cls, problem: Problem, most: int, seed: int) -> Sample:
        """At most so many rows, drawn by the seed; equal ones are one."""
        most = min(most, most_rows(problem.n_inputs))
        some = problem.rows(random_rows(problem.n_rows, most, seed=seed))
        own = np.ones(some.n_rows) if some.weights is None else some.weights
        some, _ = replace(some, X=compact(some.X), weights=own / own.mean()).merged()
        return cls(some, None if some.apart is None else some.apart.held_out(HELD_OUT, seed), seed)

    def tuned(
        self, kernel: str, metric: Metric | None, width: float, lam: float | None = None
    ) -> Machine:
        """The machine of the best of METRIC_LAMS, searched from one of them on while the error
        falls.
        """
        Z = self.problem.X if metric is None else metric.transform(self.problem.X)
        params = bandwidth(kernel, Z, self.seed, width)
        K = kernels.values(kernel, Z, Z, params)
        stride, first = min(EVERY, max(1, len(K) // CHOOSING)), METRIC_LAM if lam is None else lam
        lam, _ = best_lam(METRIC_LAMS, first, lambda lam: self._error(K, lam, stride)[0])
        return Machine(Z, params, width, metric, lam, *self._error(K, lam))

    def first(self, kernel: str, narrower: Sequence[float]) -> Machine:
        """The machine without a metric, with the usual bandwidth, or with multiples of it while
        that learns little, and they more.
        """
        first = self.tuned(kernel, None, METRIC_WIDTH)
        Y, weights, problem = self.problem.Y, self.problem.weights, self.problem
        constant = np.broadcast_to(mean(Y, weights), Y.shape)
        little = LITTLE * criterion(problem.task, constant, Y, weights, problem.measure)
        for factor in narrower:
            if first.score < little:
                break
            one = self.tuned(kernel, None, factor * METRIC_WIDTH)
            if one.score >= first.score:
                break
            first = one
        return first

    def _error(self, K: np.ndarray, lam: float, stride: int = 1) -> tuple[float, np.ndarray]:
        """The error on the rows that the machine has not seen, and its coefficients; stride: of the
        rows used.
        """
        Y, own = self.problem.Y, self.problem.weights
        assert own is not None
        kept, out = (
            rows[random_rows(len(rows), -(-len(rows) // stride), seed=self.seed)]
            for rows in self.part or (np.arange(len(Y)),) * 2
        )
        offset = np.average(Y[kept], axis=0, weights=own[kept])
        seen = K if len(kept) == len(K) else K[np.ix_(kept, kept)]
        coef = np.zeros(Y.shape)
        solved = left_out(seen, Y[kept] - offset, lam, 1 / own[kept], centred=self.part is None)
        if solved is None:
            return math.inf, coef
        coef[kept] = solved.coef
        decision = K[out] @ coef + offset if self.part else Y[out] - solved.residuals
        task, measure = self.problem.task, self.problem.measure
        return criterion(task, decision, Y[out], own[out], measure), coef

    def machines(self, kernel: str, form: str, steps: int, first: Machine) -> Iterator[Machine]:
        """The machines with the metric of each iteration, starting with that of the first machine,
        which has none; fewer than `steps` if one is constant.
        """
        last = first
        for _ in range(steps):
            metric = next_metric(
                kernel,
                last.Z,
                last.coef,
                last.params,
                last.metric,
                form == "full",
                self.problem.weights,
                self.seed,
            )
            if metric is None:
                return
            last = self.tuned(kernel, metric, METRIC_WIDTH, last.lam)
            yield last

    def refined(self, kernel: str, machine: Machine) -> Machine:
        """The machine of the same metric with the best bandwidth and lambda."""
        best, tried = machine, sorted((*WIDTHS.get(kernel, ()), machine.width))
        for width in WIDTHS.get(kernel, ()):
            best = min(best, self.tuned(kernel, machine.metric, width, machine.lam), key=_score)
        # beyond the widths tried as long as the error falls
        factor = {tried[0]: 0.5, tried[-1]: 2.0}.get(best.width) if len(tried) > 1 else None
        while factor is not None:
            one = self.tuned(kernel, machine.metric, factor * best.width, best.lam)
            if not one.score < (1 - GAIN) * best.score:
                break
            best = one
        return best

    def folds(self) -> list[Sample]:
        """The same rows, with each of FOLDS parts left out in turn."""
        every = np.arange(len(self.problem.Y))
        place = np.random.default_rng(self.seed).permutation(len(every)) % FOLDS
        parts = [np.flatnonzero(place == fold) for fold in range(FOLDS)]
        return [replace(self, part=(np.setdiff1d(every, out), out)) for out in parts]


# The machines of each sample, by form of the metric and number of iterations.
Iterates = Iterator[tuple[tuple[str, int], list[Machine]]]


def recursions(
    samples: Sequence[Sample],
    kernel: str,
    forms: Sequence[str],
    steps: int,
    every: bool = False,
    narrower: Sequence[float] = (),
) -> Iterates:
    """The machines of the samples, as long as their mean score improves, or all; narrower: see
    `Sample.first`.
    """
    first = [one.first(kernel, narrower) for one in samples]
    yield ("none", 0), first
    for form in forms:
        least = _mean_score(first)
        ways = (one.machines(kernel, form, steps, start) for one, start in zip(samples, first))
        for count, machines in enumerate(zip(*ways), 1):
            yield (form, count), list(machines)
            score = _mean_score(machines)
            if not (every or score < (1 - LEAST_GAIN) * least):
                break
            least = min(least, score)


def _score(machine: Machine) -> float:
    return machine.score


def _mean_score(machines: Sequence[Machine]) -> float:
    return float(np.mean([one.score for one in machines]))


def best_lam(
    lams: Sequence[float], first: float, error: Callable[[float], float]
) -> tuple[float, float]:
    """The lambda of the lowest error, and that error: searched from the first one on towards
    smaller ones, or else larger ones, as long as the error falls.

    Where nothing smaller than the first is better, and the best is little better than the largest,
    which leaves a constant, all smaller ones are tried.
    """
    start = best = lams.index(first)
    least = error(first)
    for way in (1, -1):
        place = start + way
        while 0 <= place < len(lams) and (value := error(lams[place])) < least:
            best, least, place = place, value, place + way
        if best != start:
            break
    if best <= start and least > LEARNT * error(lams[0]):
        for place in range(start + 2, len(lams)):
            if (value := error(lams[place])) < least:
                best, least = place, value
    return lams[best], least


def folded(problem: Problem) -> bool:
    """Whether metrics of a problem's rows are compared on rows that did not teach them: where these
    are few, or fewer than inputs.

    On 300 rows of a linear function of 20 inputs with as much noise, a metric seemed to reduce the
    error by a third, and increased it by a tenth. On 1,677 rows of text with 20,000 inputs, it
    seemed to reduce an error of .38 to .11, and increased it to .59.
    """
    return problem.n_rows <= max(FOLDED, problem.n_inputs) and not problem.constrained


def rated(form: str, machines: Sequence[Machine]) -> float:
    """The score of machines with a form of metric, as the choice compares them."""
    n, d = machines[0].Z.shape
    optimism = OPTIMISM * d / n if form == "full" and len(machines) == 1 else 0.0
    return _mean_score(machines) * (1 + GAIN * (form != "none")) * (1 + optimism)


def bandwidth(kernel: str, X: Any, seed: int, factor: float) -> dict[str, Any]:
    """The kernel's parameters for rows X (n, d): gamma is that of the median distance times a
    factor.
    """
    params: dict[str, Any] = kernels.parameters(kernel, X, "median", seed)
    return params | {"gamma": params["gamma"] * factor}


def criterion(
    task: str,
    decision: np.ndarray,
    Y: np.ndarray,
    weights: np.ndarray | None,
    measure: str | None = None,
) -> float:
    """The error by which machines are compared: the mean squared error, for classes that of targets
    +-1 times TIE plus the error by a measure.
    """
    squared = error("regression", decision, Y, weights)
    if task == "regression":
        return squared
    return measured(measure, task, decision, Y, weights) + TIE * squared


def next_metric(
    kernel: str,
    Z: Any,
    coef: np.ndarray,
    params: dict[str, Any],
    metric: Metric | None,
    full: bool,
    weights: np.ndarray | None,
    seed: int,
) -> Metric | None:
    """The metric of the gradients of a machine of the rows Z, mapped by its own metric; seed: of
    the rows with gradients.
    """
    rows = random_rows(Z.shape[0], max(GRADIENTS // coef.shape[1], GRADIENT_ROWS), seed=seed)
    M = outer_product(kernel, Z, coef, params, rows, full, part(weights, rows))
    if metric is not None:
        M = metric.pulled_back(M)
    return Metric.of(M)


def learner(kernel: str | None) -> str:
    """The kernel used for learning, for a method's kernel or a method without one."""
    known = kernel is not None and kernels.get_kernel(kernel).has_gradient
    return kernel if kernel is not None and known else KERNEL


def allowed(forms: Sequence[str], X: Any, kernel: str) -> list[str]:
    """The forms possible for rows X (n, d) and the kernel; diagonal if none of several is
    possible.
    """
    wide = X.shape[1] > MOST_INPUTS or keeps_sparse(X)
    diagonal = wide or kernels.get_kernel(kernel).metric == "l1"
    possible = [form for form in forms if form == "diagonal" or not diagonal]
    return possible or ["diagonal"] * bool(forms)


def most_rows(n_inputs: int) -> int:
    """Number of rows with so many inputs that may be dense at a time."""
    return max(FEWEST, VALUES // n_inputs)


def sampled(n_rows: int, n_inputs: int, seed: int) -> np.ndarray:
    """The rows by which inputs are chosen, and from which a metric is learnt."""
    return random_rows(n_rows, min(ROWS, most_rows(n_inputs)), seed=seed)


def unsampled(n_rows: int, n_inputs: int, seed: int) -> np.ndarray:
    """(n,) whether a row had no part in the choice of the inputs."""
    free = np.ones(n_rows, bool)
    free[sampled(n_rows, n_inputs, seed)] = False
    return free


def unused(problem: Problem, seed: int) -> np.ndarray | None:
    """(n,) whether a row, and each with its inputs, had no part in the choice of the inputs; None
    if such rows are fewer than OTHERS.
    """
    free = unsampled(problem.n_rows, problem.n_inputs, seed)
    if problem.apart is not None and not problem.constrained:
        free &= ~np.isin(problem.apart.values, problem.apart.values[~free])
    return free if free.sum() >= OTHERS else None


def dense(X: Any) -> np.ndarray:
    """Rows as a float64 array."""
    return np.asarray(X.toarray() if scipy.sparse.issparse(X) else X, np.float64)


def compact(X: Any) -> Any:
    """Rows as a float64 array, or as they are if they are text."""
    return X if keeps_sparse(X) else dense(X)


# -------------------------------------------------------------------------- the choice


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
    machine : Machine or None
        That of the lowest error, if scaling or kernel was chosen.
    """

    scaler: Scaler
    options: dict[str, Any]
    steps: list[dict[str, Any]]
    machine: Machine | None = None

    def numbers(self, method: Method, problem: Problem) -> dict[str, Any]:
        """Bandwidth and lambda from a thorough choice if they are ``auto``; without one, or with
        another loss, the words by which other methods choose them.
        """
        if not method.space.thorough:
            return {}
        kernel = self.options.get("kernel", method.kernel)
        numbers: dict[str, Any] = {"gamma": "loo", "lam": "validation"}
        if self.machine and problem.loss.name == "squared" and learner(kernel) == kernel:
            params = bandwidth(kernel, problem.X, method.seed, self.machine.width)
            numbers = {"gamma": params["gamma"], "lam": self.machine.lam * problem.mean_weight}
        return {name: value for name, value in numbers.items() if method.get(name) == AUTO}


def choose_inputs(
    X: Any,
    problem: Problem,
    *,
    scalings: Sequence[str] = TRIED,
    tried_kernels: Sequence[str] = KERNELS,
    forms: Sequence[str] = FORMS,
    steps: int = METRIC_STEPS,
    dtype: Any = np.float64,
    seed: int = 0,
    budget: SearchBudget = SearchBudget(),
    leaf_rows: int | None = None,
    refine: bool = True,
) -> Resolved | None:
    """The combination with the lowest error on rows left out; None for too few rows.

    Parameters
    ----------
    X : array, CSR matrix, or rows on workers, (n, d)
        Raw rows of the problem.
    problem : Problem
    scalings, tried_kernels, forms : sequences of str
        The candidates; forms of a metric, in addition to none.
    steps : int
        Maximum iterations of a metric.
    dtype : numpy type
        Of the scaled rows.
    seed : int
    budget : SearchBudget
        By default unlimited.
    leaf_rows : int, optional
        Of a method with leaves.
    refine : bool
        Whether to choose the bandwidth of the best machine, too.
    """
    if problem.n_rows < FEWEST or problem.undivided:
        return None
    divided = leaf_rows is not None and problem.n_rows > leaf_rows

    def unscaled(most: int) -> Problem:
        some = random_rows(problem.n_rows, min(most, most_rows(X.shape[1])), seed=seed)
        return replace(problem.rows(some), X=X[some])

    rows = unscaled(ROWS)
    count, in_folds = rows.n_rows, folded(rows)

    @cache
    def scaler(name: str) -> Scaler:
        return Scaler.fit(X, name, problem.weights, seed)

    @cache
    def scaled(name: str, whole: bool) -> Any:
        if whole:
            return scaler(name).transform(rows.X, dtype=dtype)
        return Scaler.fit(rows.X, name, rows.weights, seed).transform(rows.X)

    @cache
    def sample(name: str, size: int) -> Sample:
        return Sample.of(replace(rows, X=scaled(name, size == count)), size, seed)

    def trial(point: Point, size: int, most: int) -> Iterates:
        scaling, kernel = _name(point)
        possible = allowed(forms, scaled(scaling, size == count), kernel)
        samples = sample(scaling, size).folds() if in_folds else [sample(scaling, size)]
        forms_left = better.get(_name(point), possible)
        return recursions(samples, kernel, forms_left, most, narrower=narrower)

    def errors(point: Point, round: SearchRound, counts: Sequence[tuple[str, int]]) -> list[float]:
        values: dict[tuple[str, int], float] = {}
        least: dict[str, float] = {}
        for (form, number), made in trial(point, round.rows, min(steps, most[round.number])):
            values[form, number] = value = rated(form, made)
            least[form] = min(value, least.get(form, math.inf))
            if round.kept is None and not in_folds:
                machines[_name(point)][form, number] = made[0]
        learnt = [form for form in least if form != "none"]
        if learnt and most[round.number] > 1:
            better[_name(point)] = [min(learnt, key=lambda form: least[form])]
        tally.add(list(least.values()), 1 + len(forms))
        return [values.get(count, math.inf) for count in counts]

    # leaves have bandwidths of their own
    narrower = () if leaf_rows else NARROWER
    points = [
        Point("inputs", {"scaling": scaling, "kernel": kernel})
        for kernel in tried_kernels
        for scaling in scalings
    ]
    machines: dict[tuple[Any, ...], dict[Any, Machine]] = defaultdict(dict)
    better: dict[tuple[Any, ...], list[str]] = {}
    counts = [("none", 0), *((form, number + 1) for form in forms for number in range(steps))]
    early = [one for one in ROUNDS if one[0] <= FEWER * count]
    rounds = [
        SearchRound(size, 1, number, LEAF_POINTS if divided else kept)
        for number, (size, kept, _) in enumerate(early)
    ]
    rounds.append(SearchRound(count, 1, len(early)))
    most = [*(iterations for _, _, iterations in early), steps]
    trials = len(points) + sum(min(round.kept or 0, len(points)) for round in rounds)
    tally = Tally(problem.progress, ["scaling", "kernel", "metric"], trials * (1 + len(forms)))
    what = problem.error_name + f" + {TIE} squared error" * (problem.task != "regression")
    way = "cross-validated" if in_folds else "leave-one-out"
    what = what if problem.constrained else f"{way} {what}"
    grid = SearchGrid(points, {"inputs": counts}, rounds, various="kernel")
    evidence = Search(errors, grid, Measure(what), budget, together=True).run()
    for words in evidence.limits:
        log.warning("the choice of scaling, kernel and metric: %s", words)
    (scaling, kernel), (form, iterations) = _name(evidence.best.point), evidence.best.lam
    if not machines[scaling, kernel]:
        # folds keep no machines, and a budget may end before the last round
        whole = [sample(scaling, count)]
        every = recursions(whole, kernel, [form], iterations, every=True, narrower=narrower)
        machines[scaling, kernel] = {key: machine for key, (machine,) in every}
    made = machines[scaling, kernel]
    chosen = scaling, kernel, *((form, iterations) if (form, iterations) in made else [*made][-1])
    last = evidence.best.round.number + 1
    tried = [
        [*_name(one.point), *iterates, one.round.number + 1, value]
        for one in evidence.trials
        for iterates, value in one.path
        if math.isfinite(value)
    ]

    def mapped(scaling: str, kernel: str, *iterates: Any) -> Scaler:
        return replace(scaler(scaling), metric=machines[scaling, kernel][iterates].metric)

    if leaf_rows and divided and not (evidence.limits or problem.constrained or in_folds):
        problem.doing("comparing the best in leaves")
        leaves = _leaves(unscaled(PILOT), mapped(*chosen), leaf_rows, seed)
        compared = {one: np.zeros(0) for one in _best(machines)}
        # the better half continues
        for some in filter(None, (leaves[::4], leaves[2::4], leaves[1::2])):
            last += 1
            for one, values in compared.items():
                values = np.append(values, in_leaves(one[1], mapped(*one), some, seed))
                tried.append([*one, last, float(values.mean())])
                compared[one] = values
            ranked = sorted(compared, key=lambda one: compared[one].mean())
            compared = {one: compared[one] for one in ranked[: -(-len(ranked) // 2)]}
            chosen = ranked[0]
    scaling, kernel, form, iterations = chosen
    tuned = machines[scaling, kernel][form, iterations]
    if refine and not leaf_rows:
        tuned = sample(scaling, count).refined(kernel, tuned)
    number = int(HELD_OUT * count) if rows.constrained else count
    step = evidence.step(False, number) | {
        "by": "kernel ridge regression",
        "options": ["scaling", "kernel", "metric", "metric_steps", "round"],
        "tried": tried,
        "chosen": [*chosen, last],
    }
    options = dict(zip(INPUTS, (scaling, kernel, form, iterations or None)))
    return Resolved(mapped(*chosen), options, [step], tuned)


def _name(point: Point) -> tuple[Any, ...]:
    return tuple(point.options.values())


def _best(machines: dict[tuple[Any, ...], dict[Any, Machine]]) -> list[tuple[Any, ...]]:
    """The best iterate of each form of a metric, for every scaling and kernel."""
    best: dict[tuple[Any, ...], int] = {}
    for name, made in machines.items():
        values = {(form, steps): rated(form, [one]) for (form, steps), one in made.items()}
        for form, steps in sorted(values, key=lambda one: values[one], reverse=True):
            best[*name, form] = steps
    return [(*combination, steps) for combination, steps in best.items()]


def _leaves(pilot: Problem, scaler: Scaler, leaf_rows: int, seed: int) -> list[Problem]:
    """Some leaves, with different rows, of a tree of raw rows in the space of a metric."""
    Z = scaler.transform(pilot.X)
    blocks = Partition.principal(Z, leaf_rows, seed=seed)[1]
    some = (blocks[place] for place in random_rows(len(blocks), LEAVES, seed=seed))
    return [pilot.rows(rows) for rows in some if np.ptp(dense(Z[rows]), axis=0).any()]


def in_leaves(kernel: str, scaler: Scaler, leaves: Sequence[Problem], seed: int) -> list[float]:
    """The leave-one-out errors of machines of the raw rows of each leaf."""
    scaled = [replace(one, X=scaler.transform(one.X)) for one in leaves]
    samples = [Sample.of(one, one.n_rows, seed) for one in scaled]
    width = LEAF_WIDTHS.get(kernel, METRIC_WIDTH)
    return [sample.tuned(kernel, None, width).score for sample in samples]


# -------------------------------------------------------------------------- of one training


def resolved(method: Method, X: Any, scaler: Scaler, problem: Problem) -> Resolved:
    """Resolve the options scaling, kernel and metric: chosen by leave-one-out, or learnt.

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
    of_leaves = "leaf_rows" in method.options
    tried = tried[:1] if of_leaves and X.shape[1] > LEAF_WIDEST else tried
    choice = choose_inputs(
        X,
        problem,
        scalings=scalings,
        tried_kernels=tried,
        forms=forms,
        steps=method.metric_steps or METRIC_STEPS,
        dtype=input_dtype(method),
        seed=method.seed,
        budget=SearchBudget.of(method.get("budget_seconds"), METRIC_WORK, problem.deadline),
        # a table that is a single leaf is compared in smaller ones, too
        leaf_rows=min(method.tree(problem.n_rows)[0], LEAF_ROWS[0]) if of_leaves else None,
        # other methods choose the bandwidth of their features themselves
        refine=method.space.thorough and problem.loss.name == "squared",
    )
    if choice is None:
        options = dict(zip(INPUTS, (scalings[0], tried[0], "none", None)))
        choice = Resolved(Scaler.fit(X, scalings[0], problem.weights, method.seed), options, [])
    if kernel != AUTO:
        del choice.options["kernel"]
    return choice


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
    forms, fixed = _forms(method.metric), method.metric_steps
    kernel, n = learner(method.get("kernel")), problem.n_rows
    if n < FEWEST or problem.undivided:
        return Resolved(scaler, {"metric": "none", "metric_steps": None}, [])
    own, sample = allowed(forms, problem.X, kernel), Sample.of(problem, ROWS, method.seed)
    fixed = fixed if len(forms) == 1 else None
    in_folds = folded(sample.problem) and not fixed
    samples = sample.folds() if in_folds else [sample]
    scores, metrics = dict[tuple[str, int], float](), dict[tuple[str, int], Metric | None]()
    for key, made in recursions(samples, kernel, own, fixed or METRIC_STEPS, bool(fixed)):
        scores[key], metrics[key] = rated(key[0], made), made[0].metric
    form, steps = [*scores][-1] if fixed else min(scores, key=lambda key: scores[key])
    if in_folds:
        (*_, ((form, steps), (machine,))) = recursions([sample], kernel, [form], steps, True)
        metrics[form, steps] = machine.metric
    options = {"metric": form, "metric_steps": steps or None}
    step = {
        "by": "recursive feature machines",
        "options": ["metric", "metric_steps"],
        "fitted": len(sample.problem.Y),
        "held_out": len(sample.problem.Y),
        "error": f"{'cross-validated' if in_folds else 'leave-one-out'} error",
        "tried": [[*count, value] for count, value in scores.items()],
        "chosen": [form, steps],
    }
    scaler = replace(scaler, metric=metrics[form, steps])
    return Resolved(scaler, options, [] if fixed else [step])
