"""Choose scaling, kernel and metric by leave-one-out errors.

Every combination of scaling, kernel and metric is evaluated by kernel ridge regression: first on
few rows, then the best again on more (`rfx.fitting.selection`). The iterations of a metric
(`rfx.fitting.metric_learning`) are tried like lambdas; zero iterations mean the original metric.
For a method with leaves, some leaves decide among the best, and how often the metric is iterated.
"""

from __future__ import annotations

import logging
import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from rfx import kernels
from rfx.counters import random_rows
from rfx.data.rows import keeps_sparse
from rfx.data.transforms import FORMS, TRIED, Metric, Scaler
from rfx.features.partition import Partition
from rfx.fitting.choice_trace import ChoiceTrace
from rfx.fitting.method import Method
from rfx.fitting.metric_learning import (
    FEWEST,
    HELD_OUT,
    NARROWER,
    ROWS,
    TIE,
    Iterate,
    Iterates,
    Machine,
    Sample,
    allowed,
    bandwidth,
    dense,
    folded,
    learner,
    least_gain,
    most_rows,
    rated,
    recursions,
    sampled,
    teaching_sample,
)
from rfx.fitting.options import (
    AUTO,
    KERNELS,
    LEAF_ROWS,
    LEAF_WIDEST,
    LEAF_WIDTHS,
    METRIC_STEPS,
    METRIC_WIDTH,
)
from rfx.fitting.problem import Problem, input_dtype
from rfx.fitting.selection import (
    Criterion,
    Evidence,
    Point,
    Search,
    SearchBudget,
    SearchGrid,
    SearchRound,
    Tally,
)

log = logging.getLogger(__name__)
# The options of the inputs.
INPUTS = ("scaling", "kernel", "metric", "metric_steps")
# Rows of the rounds before the last, with the points that reach the next one, and the iterations
# tried. Only the better form of a metric remains after a round of several iterations.
ROUNDS = ((500, 4, 1), (1000, 3, METRIC_STEPS))
# No point whose error is more than that above the lowest remains after a round of several
# iterations: on 45 tables, no choice fell behind by more than 43 %. After a single one, kernel
# laplacian-l2 was 55 % behind on parkinsons, where its models have less than a tenth of the error.
SLACK = 0.5
# A round has at most this fraction of the rows of the last.
FEWER = 0.75
# For a method with leaves, the best combinations are compared again, in some leaves of a tree of at
# most so many random rows, where rows are closer: on ijcnn1, a metric reduced the error by a
# quarter on 2,000 rows, and increased it by a tenth in the leaves of 37,000. Smaller leaves are
# cheaper but mislead: the ranks of ten combinations in 12 leaves of 1,000 rows had a correlation of
# .07 with those in all leaves of 2,500, and .77 in three leaves of 2,500.
PILOT = 1 << 17
LEAVES = 4
# The iterate of a metric that is compared there: on covtype, the second one of 2,000 rows seemed
# worse than the first, and reduced the error in leaves by 5 to 9 %; the fourth seemed best on
# ijcnn1, and had 1.5 times the error of the first there.
EARLY = 2
# A trial takes about as long as that many of other searches with the same work: it learns a metric.
METRIC_WORK = 3.0


@dataclass(frozen=True)
class ResolvedInputs:
    """Scaling, kernel and metric of one training.

    Parameters
    ----------
    scaler : Scaler
        With the metric.
    options : dict
        The options that were chosen.
    steps : list of ChoiceTrace
    machine : Machine or None
        That of the lowest error, if scaling or kernel was chosen.
    """

    scaler: Scaler
    options: dict[str, Any]
    steps: list[ChoiceTrace]
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


@dataclass(frozen=True)
class Candidates:
    """What a choice of the inputs tries.

    Parameters
    ----------
    scalings, kernels : sequences of str
    forms : sequence of str
        Forms of a metric, in addition to none.
    steps : int
        Maximum iterations of a metric.
    """

    scalings: Sequence[str] = TRIED
    kernels: Sequence[str] = KERNELS
    forms: Sequence[str] = FORMS
    steps: int = METRIC_STEPS

    @property
    def points(self) -> list[Point]:
        """A point for each kernel and scaling."""
        return [
            Point("inputs", {"scaling": scaling, "kernel": kernel})
            for kernel in self.kernels
            for scaling in self.scalings
        ]

    @property
    def iterates(self) -> list[Iterate]:
        """The metrics that are tried at each point."""
        numbers = range(1, self.steps + 1)
        return [("none", 0), *((form, number) for form in self.forms for number in numbers)]


class Pair(NamedTuple):
    """A scaling and a kernel."""

    scaling: str
    kernel: str

    @classmethod
    def at(cls, point: Point) -> Pair:
        return cls(point["scaling"], point.kernel)


class Combination(NamedTuple):
    """A scaling, a kernel, and a metric by its form and number of iterations."""

    scaling: str
    kernel: str
    form: str
    steps: int

    @property
    def pair(self) -> Pair:
        return Pair(self.scaling, self.kernel)

    @property
    def iterate(self) -> Iterate:
        return self.form, self.steps


@dataclass(frozen=True)
class ChoiceInLeaves:
    """The combination of the lowest error in leaves.

    Parameters
    ----------
    combination : Combination
    metric : Metric or None
        That of the combination.
    last_round : int
    trials : list
        Scaling, kernel, form, iterations, round, and error of each trial.
    """

    combination: Combination
    metric: Metric | None
    last_round: int
    trials: list[list[Any]]


class InputSearch:
    """The search for the combination with the lowest error on rows left out.

    Parameters
    ----------
    X : array, CSR matrix, or rows on workers, (n, d)
        Raw rows of the problem.
    problem : Problem
    candidates : Candidates
    dtype : numpy type
        Of the scaled rows.
    seed : int
    leaf_rows : int or None
        Of a method with leaves.
    """

    def __init__(
        self,
        X: Any,
        problem: Problem,
        candidates: Candidates,
        dtype: Any,
        seed: int,
        leaf_rows: int | None,
    ) -> None:
        self.X, self.problem, self.candidates = X, problem, candidates
        self.dtype, self.seed, self.leaf_rows = dtype, seed, leaf_rows
        self.rows = self._raw(sampled(problem.n_rows, X.shape[1], seed))
        self.in_folds = folded(self.rows)
        self._scalers: dict[str, Scaler] = {}
        self._scaled: dict[str, Any] = {}
        self._samples: dict[tuple[str, int], Sample] = {}
        # the machines of the last round
        self._machines: dict[Pair, dict[Iterate, Machine]] = defaultdict(dict)
        self._forms: dict[Pair, list[str]] = {}

    def run(self, budget: SearchBudget, refine: bool) -> ResolvedInputs:
        """The combination with the lowest error; refine: whether to choose the bandwidth of its
        machine, too.
        """
        evidence, chosen = self._compare(budget)
        trials = _rows_of(evidence)
        last = evidence.best.round.number + 1
        machine = self._machines[chosen.pair][chosen.iterate]
        if self._compares_leaves(evidence):
            in_leaves = self._compare_in_leaves(chosen, last)
            trials += in_leaves.trials
            chosen, last = in_leaves.combination, in_leaves.last_round
            machine = replace(machine, metric=in_leaves.metric)
        elif self.leaf_rows is not None and not evidence.limits:
            machine = replace(machine, metric=self._taught(chosen) or machine.metric)
        elif self.leaf_rows is None and refine:
            machine = self._sample(chosen.scaling, self.rows.n_rows).refined(chosen.kernel, machine)
        count = self.rows.n_rows
        trace = replace(
            evidence.trace(False, int(HELD_OUT * count) if self.rows.constrained else count),
            by="kernel ridge regression",
            options=["scaling", "kernel", "metric", "metric_steps", "round"],
            tried=trials,
            chosen=[*chosen, last],
        )
        options = dict(zip(INPUTS, (*chosen[:3], chosen.steps or None)))
        scaler = replace(self._scaler(chosen.scaling), metric=machine.metric)
        return ResolvedInputs(scaler, options, [trace], machine)

    # ---------------------------------------------------------------- rows

    def _raw(self, rows: np.ndarray) -> Problem:
        """The problem of some raw rows, by their numbers."""
        return replace(self.problem.rows(rows), X=self.X[rows])

    def _scaler(self, scaling: str) -> Scaler:
        """That of all rows."""
        if scaling not in self._scalers:
            weights = self.problem.weights
            self._scalers[scaling] = Scaler.fit(self.X, scaling, weights, self.seed)
        return self._scalers[scaling]

    def _mapped(self, combination: Combination) -> Scaler:
        """The scaler of all rows with the metric of a combination."""
        machine = self._machines[combination.pair][combination.iterate]
        return replace(self._scaler(combination.scaling), metric=machine.metric)

    def _sample(self, scaling: str, size: int) -> Sample:
        """So many scaled rows: by the scaler of all rows in the last round, and by that of the
        sample before.
        """
        if (scaling, size) not in self._samples:
            rows = self.rows
            if size == rows.n_rows:
                scaled = self._scaler(scaling).transform(rows.X, dtype=self.dtype)
            else:
                scaled = self._scaled_by_themselves(scaling)
            self._samples[scaling, size] = Sample.of(replace(rows, X=scaled), size, self.seed)
        return self._samples[scaling, size]

    def _scaled_by_themselves(self, scaling: str) -> Any:
        """The rows of the sample, by a scaler of these rows alone."""
        if scaling not in self._scaled:
            scaler = Scaler.fit(self.rows.X, scaling, self.rows.weights, self.seed)
            self._scaled[scaling] = scaler.transform(self.rows.X)
        return self._scaled[scaling]

    def _teaching_sample(self, scaling: str) -> Sample | None:
        """More rows, scaled; see `teaching_sample`."""

        def scaled(numbers: np.ndarray) -> Problem:
            some = self._raw(numbers)
            return replace(some, X=self._scaler(scaling).transform(some.X, dtype=self.dtype))

        return teaching_sample(self.problem, scaled, self.seed)

    def _taught(self, chosen: Combination) -> Metric | None:
        """The metric of a combination, learnt again from more rows; None if there are none."""
        sample = self._teaching_sample(chosen.scaling) if chosen.steps else None
        return sample.taught(chosen.kernel, *chosen.iterate) if sample else None

    # ---------------------------------------------------------------- rounds

    def _rounds(self) -> list[SearchRound]:
        count = self.rows.n_rows
        rounds = []
        for number, (size, kept, steps) in enumerate(ROUNDS):
            if size <= FEWER * count:
                slack = SLACK if steps > 1 else math.inf
                rounds.append(SearchRound(size, 1, number, kept, slack))
        return [*rounds, SearchRound(count, 1, len(rounds))]

    def _most_steps(self, round: SearchRound) -> int:
        """Maximum iterations of a metric in a round."""
        steps = self.candidates.steps
        return steps if round.kept is None else min(steps, ROUNDS[round.number][2])

    def _compare(self, budget: SearchBudget) -> tuple[Evidence, Combination]:
        """The trials of all rounds, and the best combination."""
        candidates = self.candidates
        rounds = self._rounds()
        problem = self.problem
        points = candidates.points
        trials = len(points) + sum(min(one.kept or 0, len(points)) for one in rounds)
        of_each = 1 + len(candidates.forms)
        tally = Tally(problem.progress, ["scaling", "kernel", "metric"], trials * of_each)

        def errors(point: Point, round: SearchRound, iterates: Sequence[Iterate]) -> list[float]:
            values = self._errors(Pair.at(point), round)
            tally.add(list(_least_by_form(values).values()), of_each)
            return [values.get(iterate, math.inf) for iterate in iterates]

        iterates = {"inputs": candidates.iterates}
        grid = SearchGrid(points, iterates, rounds, various="kernel")
        evidence = Search(errors, grid, Criterion(self._measure), budget, together=True).run()
        for words in evidence.limits:
            log.warning("the choice of scaling, kernel and metric: %s", words)
        return evidence, self._best_combination(evidence)

    @property
    def _measure(self) -> str:
        """The errors that are compared, in words."""
        what = self.problem.error_name
        if self.problem.task != "regression":
            what += f" + {TIE} squared error"
        if self.problem.constrained:
            return what
        return f"{'cross-validated' if self.in_folds else 'leave-one-out'} {what}"

    def _errors(self, pair: Pair, round: SearchRound) -> dict[Iterate, float]:
        """The errors of the metrics at a scaling and a kernel; in the last round the machines are
        kept, and in those before the form of a metric that the next one tries.
        """
        values: dict[Iterate, float] = {}
        steps = self._most_steps(round)
        for iterate, machines in self._recursions(pair, round.rows, steps):
            values[iterate] = rated(iterate[0], machines)
            if round.kept is None and not self.in_folds:
                self._machines[pair][iterate] = machines[0]
        if round.kept is not None and ROUNDS[round.number][2] > 1:
            self._keep_better_form(pair, values)
        return values

    def _keep_better_form(self, pair: Pair, values: dict[Iterate, float]) -> None:
        least = _least_by_form(values)
        learnt = [form for form in least if form != "none"]
        if learnt:
            self._forms[pair] = [min(learnt, key=least.__getitem__)]

    def _recursions(self, pair: Pair, size: int, steps: int) -> Iterates:
        sample = self._sample(pair.scaling, size)
        forms = self._forms.get(pair)
        if forms is None:
            forms = allowed(self.candidates.forms, sample.problem.X, pair.kernel)
        samples = sample.folds() if self.in_folds else [sample]
        return recursions(samples, pair.kernel, forms, steps, narrower=self._narrower)

    @property
    def _narrower(self) -> Sequence[float]:
        """Further bandwidths of machines without a metric: leaves have bandwidths of their own."""
        return () if self.leaf_rows else NARROWER

    def _best_combination(self, evidence: Evidence) -> Combination:
        """The best one of the last round, with the machines of its scaling and kernel."""
        pair = Pair.at(evidence.best.point)
        form, steps = evidence.best.lam
        if not self._machines[pair]:
            # folds keep no machines, and a budget may end before the last round
            whole = [self._sample(pair.scaling, self.rows.n_rows)]
            made = recursions(whole, pair.kernel, [form], steps, True, self._narrower)
            self._machines[pair] = {iterate: machine for iterate, (machine,) in made}
        found = self._machines[pair]
        return Combination(*pair, *((form, steps) if (form, steps) in found else [*found][-1]))

    # ---------------------------------------------------------------- leaves

    @property
    def _divided(self) -> bool:
        """Whether the model of all rows has several leaves."""
        return self.leaf_rows is not None and self.problem.n_rows > self.leaf_rows

    def _compares_leaves(self, evidence: Evidence) -> bool:
        """Whether the best combinations are compared again in leaves."""
        return (
            self._divided
            and not evidence.limits
            and not self.problem.constrained
            and not self.in_folds
        )

    def _compare_in_leaves(self, chosen: Combination, round_number: int) -> ChoiceInLeaves:
        """The best combination in leaves: the better half of the combinations reaches the second
        half of the leaves, and the best one iterates its metric there.
        """
        self.problem.doing("comparing the best in leaves")
        leaves = self._leaves(self._mapped(chosen))
        trials = []
        errors = {one: np.zeros(0) for one in self._early_iterates()}
        for some in filter(None, (leaves[::2], leaves[1::2])):
            if len(errors) == 1:
                break
            round_number += 1
            for one in errors:
                own = errors_in_leaves(one.kernel, self._mapped(one), some, self.seed)
                errors[one] = np.append(errors[one], own)
                trials.append([*one, round_number, float(errors[one].mean())])
            ranked = sorted(errors, key=lambda one: _with_hurdle(one.form, errors[one], leaves))
            errors = {one: errors[one] for one in ranked[: -(-len(ranked) // 2)]}
            chosen = ranked[0]
        choice = ChoiceInLeaves(chosen, self._mapped(chosen).metric, round_number, trials)
        return self._iterated_in_leaves(choice, leaves) if leaves else choice

    def _iterated_in_leaves(self, choice: ChoiceInLeaves, leaves: list[Problem]) -> ChoiceInLeaves:
        """The choice with the metric of more rows that has the lowest error in leaves: the
        iterations are continued as long as it falls.
        """
        chosen = choice.combination
        if not chosen.steps:
            return choice
        sample = self._teaching_sample(chosen.scaling)
        if sample is None:
            sample = self._sample(chosen.scaling, self.rows.n_rows)
        best, trials = choice, list(choice.trials)
        round_number, least = choice.last_round + 1, math.inf
        metrics = sample.metrics(chosen.kernel, chosen.form, self.candidates.steps)
        for steps, metric in enumerate(metrics, 1):
            scaler = replace(self._scaler(chosen.scaling), metric=metric)
            error = float(np.mean(errors_in_leaves(chosen.kernel, scaler, leaves, self.seed)))
            one = chosen._replace(steps=steps)
            trials.append([*one, round_number, error])
            if error >= least:
                break
            least = error
            best = ChoiceInLeaves(one, metric, round_number, trials)
        return replace(best, trials=trials)

    def _early_iterates(self) -> list[Combination]:
        """An early iterate of each form of a metric, for every scaling and kernel, without those
        whose lowest error is far above that of all.
        """
        early: dict[Combination, float] = {}
        for pair, machines in self._machines.items():
            values = {(form, n): rated(form, [one]) for (form, n), one in machines.items()}
            for form, least in _least_by_form(values).items():
                steps = max(n for known, n in values if known == form and n <= EARLY)
                early[Combination(*pair, form, steps)] = least
        most = (1 + SLACK) * min(early.values())
        return [combination for combination, error in early.items() if error <= most]

    def _leaves(self, scaler: Scaler) -> list[Problem]:
        """Some leaves, with different rows, of a tree of raw rows in the space of a metric."""
        most = min(PILOT, most_rows(self.X.shape[1]))
        assert self.leaf_rows is not None
        pilot = self._raw(random_rows(self.problem.n_rows, most, seed=self.seed))
        Z = scaler.transform(pilot.X)
        blocks = Partition.principal(Z, self.leaf_rows, seed=self.seed)[1]
        drawn = (blocks[place] for place in random_rows(len(blocks), LEAVES, seed=self.seed))
        return [pilot.rows(rows) for rows in drawn if np.ptp(dense(Z[rows]), axis=0).any()]


def _least_by_form(values: dict[Iterate, float]) -> dict[str, float]:
    """The lowest error of each form of a metric."""
    least: dict[str, float] = {}
    for (form, _), value in values.items():
        least[form] = min(value, least.get(form, math.inf))
    return least


def _rows_of(evidence: Evidence) -> list[list[Any]]:
    """The trials with finite errors: scaling, kernel, form, iterations, round, and error."""
    return [
        [*Pair.at(trial.point), *iterate, trial.round.number + 1, value]
        for trial in evidence.trials
        for iterate, value in trial.path
        if math.isfinite(value)
    ]


def _with_hurdle(
    form: str, errors: Sequence[float] | np.ndarray, leaves: Sequence[Problem]
) -> float:
    """The mean error in leaves as it is compared: a metric must reduce it by `least_gain`."""
    hurdle = 0.0 if form == "none" else least_gain(sum(leaf.n_rows for leaf in leaves))
    return float(np.mean(errors)) * (1 + hurdle)


def errors_in_leaves(
    kernel: str, scaler: Scaler, leaves: Sequence[Problem], seed: int
) -> list[float]:
    """The leave-one-out errors of machines of the raw rows of each leaf."""
    width = LEAF_WIDTHS.get(kernel, METRIC_WIDTH)
    errors = []
    for leaf in leaves:
        scaled = replace(leaf, X=scaler.transform(leaf.X))
        sample = Sample.of(scaled, scaled.n_rows, seed)
        errors.append(sample.tuned(kernel, None, width).score)
    return errors


# -------------------------------------------------------------------------- of one training


def resolved(method: Method, X: Any, scaler: Scaler, problem: Problem) -> ResolvedInputs:
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
    kernel = method.get("kernel")
    forms = _forms(method.metric)
    if AUTO not in (method.scaling, kernel):
        return with_metric(scaler, method, problem) if forms else ResolvedInputs(scaler, {}, [])
    scalings = _scalings(X, kernel) if method.scaling == AUTO else (method.scaling,)
    tried = method.space.kernels if kernel == AUTO else (learner(kernel),)
    steps = method.metric_steps or METRIC_STEPS
    of_leaves = "leaf_rows" in method.options
    tried = tried[:1] if of_leaves and X.shape[1] > LEAF_WIDEST else tried
    if problem.n_rows < FEWEST or problem.undivided:
        options = dict(zip(INPUTS, (scalings[0], tried[0], "none", None)))
        scaler = Scaler.fit(X, scalings[0], problem.weights, method.seed)
        choice = ResolvedInputs(scaler, options, [])
    else:
        choice = _searched(method, X, problem, Candidates(scalings, tried, forms, steps))
    if kernel == AUTO:
        return choice
    options = {name: value for name, value in choice.options.items() if name != "kernel"}
    return replace(choice, options=options)


def _searched(method: Method, X: Any, problem: Problem, candidates: Candidates) -> ResolvedInputs:
    """The best of the candidates for a method, within its budget."""
    leaf_rows = None
    if "leaf_rows" in method.options:
        # a table that is a single leaf is compared in smaller ones, too: without, the errors of ten
        # tables of 4,000 rows were 4 % larger, at .89 of the time
        leaf_rows = min(method.tree(problem.n_rows)[0], LEAF_ROWS[0])
    search = InputSearch(X, problem, candidates, input_dtype(method), method.seed, leaf_rows)
    budget = SearchBudget.of(method.get("budget_seconds"), METRIC_WORK, problem.deadline)
    # other methods choose the bandwidth of their features themselves
    refine = method.space.thorough and problem.loss.name == "squared"
    return search.run(budget, refine)


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


def with_metric(scaler: Scaler, method: Method, problem: Problem) -> ResolvedInputs:
    """The scaler with the metric requested by --metric, learnt from the problem's rows, which it
    scaled.
    """
    if problem.n_rows < FEWEST or problem.undivided:
        return ResolvedInputs(scaler, {"metric": "none", "metric_steps": None}, [])
    forms, seed = _forms(method.metric), method.seed
    fixed = method.metric_steps if len(forms) == 1 else None
    kernel = learner(method.get("kernel"))
    own = allowed(forms, problem.X, kernel)
    has_leaves = "leaf_rows" in method.options
    metric = _taught(problem, kernel, (own[0], fixed), seed) if fixed and has_leaves else None
    if fixed and metric is not None:
        options = {"metric": own[0], "metric_steps": fixed}
        return ResolvedInputs(replace(scaler, metric=metric), options, [])
    iterate, metric, trace = _best_metric(Sample.of(problem, ROWS, seed), kernel, own, fixed)
    if has_leaves:
        metric = _taught(problem, kernel, iterate, seed) or metric
    form, steps = iterate
    options = {"metric": form, "metric_steps": steps or None}
    return ResolvedInputs(replace(scaler, metric=metric), options, [] if fixed else [trace])


def _taught(problem: Problem, kernel: str, iterate: Iterate, seed: int) -> Metric | None:
    """The metric of an iterate, learnt from the rows of `teaching_sample` of a scaled problem; None
    if these are no more than those of the choice, or a machine is constant.
    """
    form, steps = iterate
    sample = teaching_sample(problem, problem.rows, seed) if steps else None
    return sample.taught(kernel, form, steps) if sample else None


def _best_metric(
    sample: Sample, kernel: str, forms: Sequence[str], fixed: int | None
) -> tuple[Iterate, Metric | None, ChoiceTrace]:
    """The iterate of the lowest error, or that of a fixed number of iterations; its metric; and the
    trials.
    """
    in_folds = folded(sample.problem) and not fixed
    samples = sample.folds() if in_folds else [sample]
    scores: dict[Iterate, float] = {}
    metrics: dict[Iterate, Metric | None] = {}
    for key, made in recursions(samples, kernel, forms, fixed or METRIC_STEPS, bool(fixed)):
        scores[key] = rated(key[0], made)
        metrics[key] = made[0].metric
    form, steps = [*scores][-1] if fixed else min(scores, key=scores.__getitem__)
    if in_folds:
        (*_, ((form, steps), (machine,))) = recursions([sample], kernel, [form], steps, True)
        metrics[form, steps] = machine.metric
    trace = ChoiceTrace(
        by="recursive feature machines",
        options=["metric", "metric_steps"],
        fitted=len(sample.problem.Y),
        held_out=len(sample.problem.Y),
        error=f"{'cross-validated' if in_folds else 'leave-one-out'} error",
        tried=[[*count, value] for count, value in scores.items()],
        chosen=[form, steps],
    )
    return (form, steps), metrics[form, steps], trace
