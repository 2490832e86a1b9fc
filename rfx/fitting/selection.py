"""The choice of options: a search on held-out rows, for `validation`, `loo` and `tuned`."""

from __future__ import annotations

import itertools
import logging
import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.linalg

from rfx import kernels, parallel
from rfx.data.tabular.group_splits import Part
from rfx.errors import RfxError, UsageError
from rfx.features import MAPS, sample
from rfx.fitting import weights
from rfx.fitting.choice_trace import ChoiceTrace
from rfx.fitting.held_out import Splitter, drawn, fewer
from rfx.fitting.method import Method, gamma_of, has_gamma
from rfx.fitting.options import AUTO, GAMMA_FACTORS, LOO_FACTORS, SAMPLE
from rfx.fitting.problem import Cache, Problem, error
from rfx.fitting.progress import Progress, ProgressReport
from rfx.losses import Squared
from rfx.operators.mapped import feature_matrix
from rfx.solvers.base import Budget
from rfx.solvers.ridge import solve_ridge_grid

log = logging.getLogger(__name__)

# ----------------------------------------------------------------------
# Search for options: points of a grid are evaluated on held-out rows, within a budget.
#
# `--lam validation`, `--gamma loo`, `--gamma tuned` and `rfx tune` define grids and budgets. A
# point is fitted once for all its lambdas, and a decreasing path of lambdas ends after several that
# only increase the error (`Stop`). A grid with several rounds is searched by successive halving
# (Jamieson and Talwalkar 2016): few rows and small models first, and the best points continue. Then
# the bandwidth is halved and doubled around the best as long as that helps, and the size is doubled
# as long as it pays.

# Consecutive lambdas above the lowest error after which smaller ones are not tried, once that error
# is below this fraction of that of a constant: large lambdas have its error, and a little smaller
# ones may have a larger one.
WAIT, LEARNT = 2, 0.95
# The size is doubled as long as that reduces the error by this fraction.
GAIN = 0.01
# A grid is continued beyond an end as long as that reduces the error by this fraction: with few
# random features, every smaller lambda fits a little better, up to rounding.
FURTHER_GAIN = 0.001
# The options whose grids of `validation` and `tuned` are continued.
CONTINUED = ("gamma", "lam", "rho")
# The work of a fold in addition to its rows times its size, and the work that every machine is
# expected to do in a second: a budget of seconds is one of work, so that the choice does not depend
# on the load of the machine.
FOLD, SPEED = 5e6, 1e7


@dataclass(frozen=True)
class Stop:
    """When to end a decreasing path of lambdas, based on the errors so far.

    Parameters
    ----------
    every : bool
        Try every lambda.
    enough : float or None
        Stop at an error of at most this, or once the error rises.
    constant : float
        The error of a constant.
    """

    every: bool = False
    enough: float | None = None
    constant: float = math.inf

    def __call__(self, errors: list[float]) -> bool:
        if self.enough is not None and (errors[-1] <= self.enough or errors[-1] > min(errors)):
            return True
        if self.every or min(errors) > LEARNT * self.constant:
            return False
        return len(errors) > WAIT and min(errors[-WAIT:]) > min(errors)


def beyond(value: float, tried: Iterable[float]) -> float | None:
    """The value that continues a grid of tried values beyond its end, in the ratio of the last two;
    None for a value that is not an end.
    """
    ordered = sorted(tried)
    if len(ordered) < 2 or value not in (ordered[0], ordered[-1]):
        return None
    neighbour = ordered[1] if value == ordered[0] else ordered[-2]
    return value * value / neighbour


def until(values: Iterable[float], stop: Callable[[list[float]], bool]) -> list[float]:
    """The values of a path of lambdas, as far as it is followed."""
    path: list[float] = []
    for value in values:
        path.append(value)
        if stop(path):
            break
    return path


@dataclass(frozen=True)
class Criterion:
    """How the scores of trials are compared.

    Parameters
    ----------
    name : str
        What the score is, in words.
    larger : bool
        Whether larger scores are better; by default they are errors.
    target : float or None
        The score to approximate; None takes the best.
    """

    name: str
    larger: bool = False
    target: float | None = None

    def loss(self, value: float) -> float:
        """A key that is smallest for the best value; infinite for one that is not finite."""
        if not math.isfinite(value):
            return math.inf
        if self.target is not None:
            return abs(value - self.target)
        return -value if self.larger else value

    def error(self, value: float) -> float:
        """The value, or its distance from 1 if larger is better."""
        return 1 - value if self.larger else value


@dataclass(frozen=True)
class SearchRound:
    """One pass over points.

    Parameters
    ----------
    rows, parts : int
        Rows to fit each model, and the folds of held-out rows.
    number : int
    kept : int or None
        Number of points in the next round; None in the last.
    slack : float
        Fraction of the lowest error by which that of a point in the next round may exceed it.
    """

    rows: int
    parts: int = 1
    number: int = 0
    kept: int | None = None
    slack: float = math.inf


@dataclass(frozen=True)
class Size:
    """A method's option whose larger values improve accuracy and take longer.

    Parameters
    ----------
    option : str
    values : tuple of int
        Its value in each round, by the round's number.
    most : int
        Upper limit for doubling.
    """

    option: str
    values: tuple[int, ...]
    most: int


@dataclass(frozen=True)
class Point:
    """A candidate: a method, or another model, with some of its options.

    Parameters
    ----------
    method : str
        Name of the method.
    options : dict
        Option name to value.
    """

    method: str
    options: dict[str, Any]

    def __getitem__(self, name: str) -> Any:
        return self.options[name]

    @property
    def kernel(self) -> str:
        """The kernel of the method."""
        return str(self["kernel"])

    @property
    def gamma(self) -> float | None:
        """The bandwidth; None if it is not among the options."""
        bandwidth: float | None = self.options.get("gamma")
        return bandwidth

    def updated(self, **changes: object) -> Point:
        """The same point with other values for some options."""
        return Point(self.method, self.options | changes)


@dataclass(frozen=True)
class SearchGrid:
    """The candidates.

    Parameters
    ----------
    points : sequence of Point
        Each is a method, or another model, with its options except lambda, in the order of trials.
    lams : dict
        Lambdas of each method, largest first.
    rounds : sequence of SearchRound
    sizes : dict
        The Size of a method, if it has one.
    halved : str or None
        The option that is halved and doubled around the best.
    halving_gain : float
        Fraction by which that must reduce the error to be continued.
    continued : tuple of str
        Options, or "lam", that are tried beyond an end of the grid if it is best.
    above : int or None
        Number of lambdas above the best so far at which a path starts, unless its first is then its
        best; None tries all of them.
    lenient : bool
        Skip points that can't be fitted, except the first of a single method.
    various : str or None
        The option of which the best point with each value reaches the next round first, then the
        second best, and so on.
    """

    points: Sequence[Point]
    lams: Mapping[str, Sequence[Any]]
    rounds: Sequence[SearchRound]
    sizes: Mapping[str, Size] = field(default_factory=dict)
    halved: str | None = None
    halving_gain: float = 0.0
    continued: tuple[str, ...] = ()
    above: int | None = None
    lenient: bool = False
    various: str | None = None

    def kept(self, points: list[Point], most: int | None) -> list[Point]:
        """The points, best first, that reach the next round."""
        if (option := self.various) is not None:
            before: Counter[str] = Counter()
            ranks = [before.update([point[option]]) or before[point[option]] for point in points]
            points = [point for _, point in sorted(zip(ranks, points), key=lambda one: one[0])]
        return points[:most]

    def work(self, point: Point, round: SearchRound) -> float:
        """Rows times size, for each fold; rows squared for a method without a size."""
        size = self.sizes.get(point.method)
        return round.parts * (FOLD + round.rows * (point[size.option] if size else round.rows))

    def at(self, point: Point, number: int) -> Point:
        """The point with its size in a round."""
        size = self.sizes.get(point.method)
        return point if size is None else point.updated(**{size.option: size.values[number]})


@dataclass(frozen=True)
class SearchBudget:
    """The limits of a search.

    Parameters
    ----------
    deadline : float
        Value of time.monotonic() after which no trial except the first is started. Which trials it
        leaves out depends on the load of the machine.
    trials : int or None
        Maximum number of trials.
    work : float
        Maximum of the work of all trials (`SearchGrid.work`), except the first.
    """

    deadline: float = math.inf
    trials: int | None = None
    work: float = math.inf

    @classmethod
    def of(
        cls, seconds: float | None, cost: float = 1.0, deadline: float | None = None
    ) -> SearchBudget:
        """The work that machines do in so many seconds, which are only an outer bound; None for no
        limit.

        cost: that of the work, relative to SPEED. deadline: another outer bound, or None.
        """
        most, late = (math.inf if limit is None else limit for limit in (seconds, deadline))
        return cls(min(late, time.monotonic() + most), work=SPEED / cost * most)


@dataclass(frozen=True)
class Trial:
    """The result of a point in a round.

    Parameters
    ----------
    point : Point
    round : SearchRound
    path : tuple of (lambda, value)
        The values of the lambdas tried.
    lam, score
        The best of them.
    seconds : float
    """

    point: Point
    round: SearchRound
    path: tuple[tuple[Any, float], ...]
    lam: Any
    score: float
    seconds: float

    def like(self, point: Point) -> bool:
        """Whether it has the same method and kernel as another point."""
        same_kernel = self.point.options.get("kernel") == point.options.get("kernel")
        return self.point.method == point.method and same_kernel


# What a limit of the budget left out, in words.
_LIMITS = {
    "trials": "--trials left out {}",
    "work": "the budget, counted as work, left out {}; a longer --budget-seconds has more",
    "time": "stopped by time, which left out {}: another run may differ",
}


@dataclass(frozen=True)
class Evidence:
    """The best trial, and all trials; cut: trials left out by each limit of the budget."""

    best: Trial
    trials: list[Trial]
    criterion: Criterion
    cut: Counter[str] = field(default_factory=Counter)

    @property
    def limits(self) -> list[str]:
        """What the budget left out, in words."""
        return [
            _LIMITS[limit].format(f"{n} trial{'s' * (n > 1)}") for limit, n in self.cut.items() if n
        ]

    def within(self, slack: float) -> list[Trial]:
        """The trials whose error exceeds the lowest by at most this fraction."""
        loss = self.criterion.loss
        most = (1 + slack) * loss(self.best.score)
        return [trial for trial in self.trials if loss(trial.score) <= most]

    def trace(self, lam: bool, held_out: int, best: Trial | None = None) -> ChoiceTrace:
        """The evidence for a trial, by default the best.

        lam: whether lambda was also chosen, in addition to the points' options. held_out: number of
        evaluation rows.
        """
        best = best or self.best

        def row(trial: Trial, *lams: object) -> list[object]:
            return [*trial.point.options.values(), *(lams if lam else ())]

        return ChoiceTrace(
            by=best.point.method,
            options=[*best.point.options, *(["lam"] if lam else [])],
            fitted=best.round.rows,
            held_out=held_out,
            error=self.criterion.name,
            tried=[[*row(one, own), value] for one in self.trials for own, value in one.path],
            chosen=row(best, best.lam),
        )


@dataclass
class Tally:
    """Reports a choice to a listener, with the values tried and the lowest error.

    Parameters
    ----------
    progress : callable or None
    choosing : list of str
        The options.
    total : int
        Number of values to try; those that a path leaves out are subtracted.
    """

    progress: Progress | None
    choosing: list[str]
    total: int
    tried: int = 0
    least: float = math.inf

    def report(self, tried: float = 0.0) -> None:
        """Report so many values of the present path, in addition to the completed paths."""
        if self.progress is not None:
            report = ProgressReport(
                choosing=tuple(self.choosing),
                tried=self.tried + int(tried),
                total=self.total,
                least=self.least if self.least < math.inf else None,
            )
            self.progress(report)

    def add(self, errors: Sequence[float], of: int) -> None:
        """Report the errors of a completed path of `of` values."""
        self.tried, self.total = self.tried + len(errors), self.total - of + len(errors)
        self.least = min([self.least, *errors])
        self.report()


@dataclass(frozen=True)
class Search:
    """Trials of the points of a grid within a budget; `run` executes them.

    Parameters
    ----------
    fit : callable
        Maps (point, round, lambdas) to the value for each lambda worth trying.
    grid : SearchGrid
    criterion : Criterion
        Of the values.
    budget : SearchBudget
        By default unlimited.
    known : callable
        Maps (point, round) to a trial of an earlier search, which then costs nothing, or None.
    tell : callable
        Called with each trial, and whether it was known.
    together : bool
        Distribute the points of a round over threads.
    """

    fit: Callable[[Point, SearchRound, Sequence[Any]], list[float]]
    grid: SearchGrid
    criterion: Criterion
    budget: SearchBudget = SearchBudget()
    known: Callable[[Point, SearchRound], Trial | None] = lambda point, round: None
    tell: Callable[[Trial, bool], None] = lambda trial, known: None
    together: bool = False
    trials: list[Trial] = field(default_factory=list)
    cut: Counter[str] = field(default_factory=Counter)
    errors: list[RfxError] = field(default_factory=list)

    def run(self) -> Evidence:
        """The best trial of the last completed round, of equal ones the first, and all trials;
        UsageError if no point could be tried.
        """
        points, last = self.grid.points, self.grid.rounds[-1]
        for round in self.grid.rounds:
            sized = [self.grid.at(point, round.number) for point in points]
            trials = sorted(self._each(sized, round), key=self._loss)
            close = self._close_to_best(trials, round.slack)
            ranked = self.grid.kept([trial.point for trial in trials], round.kept)
            points = [point for point in ranked if point in close]
        best = self._best()
        if best.round.number == last.number:
            self._refined(self._grown(self._refined(best)))
            best = self._continued(self._best())
        return Evidence(best, self.trials, self.criterion, self.cut)

    def _loss(self, trial: Trial) -> float:
        return self.criterion.loss(trial.score)

    def _close_to_best(self, trials: Sequence[Trial], slack: float) -> list[Point]:
        """The points of the trials of a round, best first, whose errors are within the slack."""
        if not trials or math.isinf(slack):
            return [trial.point for trial in trials]
        most = (1 + slack) * self.criterion.error(trials[0].score)
        return [trial.point for trial in trials if self.criterion.error(trial.score) <= most]

    def _best(self) -> Trial:
        if not self.trials and self.errors:
            raise self.errors[0]
        if not self.trials:
            raise UsageError(
                "no combination of options finished; use a longer --budget-seconds or more --trials"
            )
        last = max(trial.round.number for trial in self.trials)
        return min((one for one in self.trials if one.round.number == last), key=self._loss)

    def _refined(self, best: Trial) -> Trial:
        """Try half and twice the bandwidth as long as one of them is better."""
        option, last = self.grid.halved, self.grid.rounds[-1]
        while option is not None and option in best.point.options:
            around = [
                best.point.updated(**{option: best.point[option] * factor}) for factor in (0.5, 2.0)
            ]
            seen = [one.point for one in self.trials if one.round.number == last.number]
            new = self._each([point for point in around if point not in seen], last)
            better = min(new, key=self._loss, default=best)
            least, before = self._loss(better), self._loss(best)
            if least >= before or before - least < self.grid.halving_gain * abs(before):
                break
            best = better
        return best

    def _grown(self, best: Trial) -> Trial:
        """Double the size as long as that reduces the error by GAIN."""
        error, size = self.criterion.error, self.grid.sizes.get(best.point.method)
        while size is not None and best.point[size.option] < size.most:
            point = best.point.updated(**{size.option: 2 * best.point[size.option]})
            larger = self._each([point], self.grid.rounds[-1])
            if not larger or error(larger[0].score) > (1 - GAIN) * error(best.score):
                break
            best = larger[0]
        return self._best()

    def _continued(self, best: Trial) -> Trial:
        """Try values beyond an end of the grid as long as one of them is better."""
        before = None
        while best is not before:
            before = best
            for option in self.grid.continued:
                best = self._further(option, best)
        return best

    def _further(self, option: str, best: Trial) -> Trial:
        """The trial of the value after the best one, if that is an end of the grid and the error
        falls by FURTHER_GAIN; else the best.
        """
        lams = {lam for trial in self.trials for lam, _ in trial.path}
        tried = lams if option == "lam" else {trial.point[option] for trial in self.trials}
        value = beyond(best.lam if option == "lam" else best.point[option], tried)
        if value is None:
            return best
        point, path = best.point, [value]
        if option != "lam":
            point, path = point.updated(**{option: value}), sorted(lams, reverse=True)
        trial = self._along(point, best.round, path)
        self.trials.append(trial)
        self.tell(trial, False)
        most = (1 - FURTHER_GAIN) * self._loss(best)
        return trial if self._loss(trial) < most else best

    def _each(self, points: Sequence[Point], round: SearchRound) -> list[Trial]:
        """A trial of each point that can be fitted within the budget."""
        size = max(1, len(points)) if self.together else 1
        batches = [points[start : start + size] for start in range(0, len(points), size)]
        return [trial for batch in batches for trial in self._batch(batch, round)]

    def _batch(self, points: Sequence[Point], round: SearchRound) -> list[Trial]:
        """Trials of the points, run by all threads; each one started before the deadline is
        completed.
        """
        earlier = [self.known(point, round) for point in points]
        made, new = list(earlier), [number for number, trial in enumerate(earlier) if trial is None]
        count, started = self._affordable([points[number] for number in new], round), list[int]()

        def some(start: int, end: int) -> None:
            for place in range(start, end):
                if time.monotonic() <= self.budget.deadline or not (place or self.trials):
                    started.append(place)
                    made[new[place]] = self._trial(points[new[place]], round)

        parallel.for_ranges(some, count, parts=count)
        self.cut.update(time=count - len(started))
        for trial, before in zip(made, earlier):
            if trial is not None:
                self.trials.append(trial)
                self.tell(trial, before is not None)
        return [trial for trial in made if trial is not None]

    def _affordable(self, points: Sequence[Point], round: SearchRound) -> int:
        """How many of the points the limits of trials and of work allow, from the first on."""
        done, most = self.trials, self.budget.trials
        allowed = len(points) if most is None else min(len(points), max(0, most - len(done)))
        used = sum(self.grid.work(trial.point, trial.round) for trial in done)
        totals = itertools.accumulate(self.grid.work(point, round) for point in points[:allowed])
        count = sum(used + total <= self.budget.work for total in totals)
        count = count or min(allowed, int(not done))
        self.cut.update(trials=len(points) - allowed, work=allowed - count)
        return count

    def _trial(self, point: Point, round: SearchRound) -> Trial | None:
        lams, some = self.grid.lams[point.method], self._last_lams(point)
        try:
            trial = self._along(point, round, some)
            largest_is_best = trial.lam == some[0]
            return self._along(point, round, lams) if largest_is_best and some != lams else trial
        except RfxError as error:
            alone = len({point.method for point in self.grid.points}) == 1
            if not self.grid.lenient or (alone and not self.trials):
                raise
            self.errors.append(error)
            return None

    def _along(self, point: Point, round: SearchRound, lams: Sequence[Any]) -> Trial:
        """The trial of a point with these lambdas."""
        start, loss = time.monotonic(), self.criterion.loss
        path = tuple(zip(lams, self.fit(point, round, lams)))
        lam, score = min(path, key=lambda one: loss(one[1]))
        return Trial(point, round, path, lam, score, time.monotonic() - start)

    def _last_lams(self, point: Point) -> Sequence[Any]:
        """The lambdas from slightly above the best so far."""
        lams = self.grid.lams[point.method]
        before = [trial for trial in self.trials if trial.like(point)]
        if self.grid.above is None or not before:
            return lams
        last = max(trial.round.number for trial in before)
        best = [trial.lam for trial in before if trial.round.number == last]
        places = [lams.index(lam) for lam in best if lam in lams]
        return lams[max(0, min(places) - self.grid.above) :] if places else lams


# ----------------------------------------------------------------------
# Choose options on the training rows: words such as ``validation`` become numbers.
#
# Every combination of values is fitted to some rows and evaluated on the others, for several
# lambdas at once if the method supports it. The bandwidth is chosen by kernel ridge regression
# (`loo`), by ridge regression on random features (`tuned`), which both give the same for every
# method with the kernel, or with the other options (`validation`). Test rows are not used. The
# model is then fitted to all rows.

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
# By which `loo` chooses the bandwidth; its lambda is not used further.
RIDGE = "kernel ridge regression"
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
    steps : list of ChoiceTrace
    seconds : float
    """

    method: Method
    chosen: dict[str, Any]
    steps: list[ChoiceTrace]
    seconds: float


def choose(method: Method, problem: Problem, cache: Cache) -> Choice:
    """Replace every word among the options of the method by the number that it selects.

    Raises
    ------
    UsageError
        For too few rows.
    """
    start, space = time.perf_counter(), method.space
    chosen: dict[str, object] = {}
    steps: list[ChoiceTrace] = []
    asked = [name for name in space.values if isinstance(method.get(name), str)]
    grid = {name: method.candidates(name, problem) for name in asked if name != "gamma"}
    few = problem.n_rows < FEWEST or problem.undivided
    if method.get("lam_path"):
        grid.pop("lam", None)
    elif few:
        for name in grid.keys() & space.few_rows.keys():
            del grid[name]
            chosen[name] = _value_for_few_rows(name, space.few_rows[name], problem)
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


def _value_for_few_rows(name: str, value: float, problem: Problem) -> float:
    """The value of an option, of mean weight 1, that stands in for a choice; with a warning."""
    what = "rows"
    if problem.constraint is not None and problem.undivided:
        what = problem.constraint.what
    word, weight = ("lambda", problem.mean_weight) if name == "lam" else (name, 1.0)
    value *= weight
    log.warning(
        "too few %s for validation; using %s = %g (set it with --%s)",
        what,
        word,
        value,
        name.replace("_", "-"),
    )
    return value


# ---------------------------------------------------------------------- the bandwidth


def _gammas(
    method: Method, problem: Problem, others: bool, few: bool
) -> tuple[list[float], list[ChoiceTrace]]:
    """(the bandwidth, several for validation, or none if the method computes it; the trials)."""
    word, space = method.gamma, method.space
    if word == "validation":
        return _multiples(method, problem, space.values["gamma"]), []
    if word == "loo":
        lams = [lam * problem.mean_weight for lam in method.ridge_lams(problem)]
        value, steps = loo(method, problem, lams)
        return [value * factor for factor in ((1.0,) if few else space.multiples)], steps
    if word == "tuned":
        value, steps = tuned(method, problem, method.tuning_lams(problem))
        return [value], steps
    if others and isinstance(word, str):
        # from all rows: a model of some of them uses the bandwidth of the model it selects for
        return [method.kernel_params(problem.X)["gamma"]], []
    return [], []


def _multiples(method: Method, problem: Problem, factors: Sequence[float]) -> list[float]:
    """Multiples of the bandwidth of the median distance."""
    base = gamma_of(method.kernel, problem.X, "median", method.seed)
    return [base * factor for factor in factors]


def _grid(by: str, gammas: list[float], lams: Sequence[float], n_rows: int) -> SearchGrid:
    """The bandwidths times the lambdas, for models of so many rows."""
    return SearchGrid(
        [Point(by, {"gamma": value}) for value in gammas], {by: lams}, [SearchRound(n_rows)]
    )


def loo(method: Method, problem: Problem, lams: Sequence[float]) -> tuple[float, list[ChoiceTrace]]:
    """(gamma, steps): among LOO_FACTORS times the median bandwidth, and further ones while the
    error falls, the one with the lowest leave-one-out error of kernel ridge regression; and all
    errors.

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
    some, _ = problem.rows(rows).merged()
    X, Y, constraint = some.X, some.Y, some.constraint
    if len(Y) < LOO_FEWEST or not metric or (constraint is not None and constraint.one):
        return gammas[median], []
    roots = np.sqrt(np.ones(len(Y)) if some.weights is None else some.weights)
    params = method.updated(gamma=gammas[median]).kernel_params(X)
    family = kernels.scaled_family(kernel, X, params)

    parts = None if constraint is None else constraint.up_to(PARTS, seed)

    def errors(point: Point, round: SearchRound, lams: Sequence[float]) -> list[float]:
        K = family(point["gamma"] / gammas[median])
        if parts is None:
            return _left_out(K, Y, lams, roots)
        return _in_parts(K, Y, lams, roots, parts)

    error = "leave-one-out mean squared error"
    if parts is not None:
        error = "mean squared error of parts held out in turn"
    criterion = Criterion(error)
    grid = _grid(RIDGE, gammas, lams, len(Y))
    # half the smallest bandwidth, or twice the largest, as long as the error falls; that of
    # polynomial-3 fell by less than a hundredth each time up to a gamma of 24,000
    beyond = replace(grid, halved="gamma", halving_gain=GAIN)
    evidence = Search(errors, beyond, criterion).run()
    best = evidence.best
    if method.space.slack:
        near = evidence.within(method.space.slack)
        best = min(near, key=lambda one: (_distance(one, gammas[median]), one.score))
    # this lambda is for so many rows, and not used further
    return best.point["gamma"], [evidence.trace(True, len(Y), best)]


def _distance(trial: Trial, gamma: float) -> float:
    """How far the bandwidth of a trial is from another, as a logarithm."""
    return abs(math.log(trial.point["gamma"] / gamma))


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
) -> tuple[float, list[ChoiceTrace]]:
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
    held_out = Splitter(problem.n_rows, seed, problem.constraint)
    if size == 0 or held_out.none:
        return gammas[GAMMA_FACTORS.index(1.0)], []
    train, test = held_out.sample(size)
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
    grid = replace(grid, continued=CONTINUED[:2])
    evidence = Search(errors, grid, Criterion("mean squared error")).run()
    # this lambda is for the sample, and not used further
    return evidence.best.point["gamma"], [evidence.trace(len(lams) > 1, len(test))]


# ---------------------------------------------------------------------- all options together


def _validated(
    method: Method,
    grid: dict[str, list[float]],
    problem: Problem,
    asked: Method,
    cache: Cache,
) -> tuple[dict[str, object], list[ChoiceTrace]]:
    """The values of the grid's options with the lowest error on held-out rows, and the trials.

    grid: option -> values, gamma's as numbers. Options of a later stage have their first value
    until then. For equal errors the first is used.
    """
    option = " and ".join(f"--{name.replace('_', '-')} is {asked.get(name)!r}" for name in grid)
    space, total = method.space, problem.n_rows
    most = space.most
    if AUTO in (asked.get(name) for name in grid):
        most = min(most or SAMPLE, SAMPLE)
    if not problem.is_local:
        problem = problem.rows(drawn(total, method.seed, SAMPLE + SAMPLE // 4)[0])
    folds = _folds(method, problem, option, most)
    trial = method.trial()
    errors: Any = [trial.target_error(one, out, one.n_rows / total, cache) for one, out in folds]
    target = None if None in errors else float(np.mean(errors))
    # with several folds, the mean error is the one to approximate
    lams = grid.get("lam", [])
    ordered = lams == sorted(lams, reverse=True)
    stop = Stop(target is not None or not ordered, target if len(folds) == 1 else None)
    criterion = Criterion(problem.error_name, target=target)
    continued = tuple(name for name in CONTINUED if asked.get(name) == "validation")
    validation = _Validation(
        trial, folds, total, stop, criterion, continued, problem.progress, cache
    )
    best: dict[str, object] = {name: values[0] for name, values in grid.items()}
    steps: list[ChoiceTrace] = []
    for stage in space.stages:
        wanted = {name: grid[name] for name in stage if name in grid}
        if wanted:
            steps.append(validation.step(wanted, best))
            best |= steps[-1].values
    return best, steps


def _folds(
    method: Method, problem: Problem, option: str, most: int | None
) -> list[tuple[Problem, Problem]]:
    """(rows to fit, held-out rows) of each part, at most so many of either."""
    splitter, space = Splitter(problem.n_rows, method.seed, problem.constraint), method.space
    folds = []
    for part in splitter.parts(space.share, space.fewest, option):
        kept, out = part if most is None else fewer(part, most, most, method.seed)
        folds.append((problem.rows(kept), problem.rows(out)))
    return folds


def edges(step: ChoiceTrace) -> list[str]:
    """The bandwidth and lambda of a choice that are the smallest or largest of at least three
    tried, in words.
    """
    found = []
    for name, value in step.values.items():
        # the lambda of the regression that chooses a bandwidth is not used further
        if name not in ("gamma", "lam") or (name == "lam" and step.by == RIDGE):
            continue
        which = step.at_edge(name)
        if which is not None:
            word = "lambda" if name == "lam" else name
            found.append(f"{word} {value:.4g} is the {which} value tried")
    return found


def errors_along(
    method: Method,
    problem: Problem,
    out: Problem,
    lams: list[float],
    stop: Callable[[list[float]], bool],
    cache: Cache,
) -> list[float]:
    """The error on the held-out rows for each lambda, until `stop`."""
    decisions = method.decisions_along(problem, lams, out.X, cache)
    errors = (out.error(one) if np.isfinite(one).all() else math.inf for one in decisions)
    return until(errors, stop)


@dataclass(frozen=True)
class _Validation:
    """Models fitted to some of n rows of a problem, and evaluated on others."""

    method: Method
    folds: list[tuple[Problem, Problem]]
    n_rows: int
    stop: Stop
    criterion: Criterion
    continued: tuple[str, ...]
    progress: Progress | None
    cache: Cache

    def step(self, grid: dict[str, list[float]], best: dict[str, Any]) -> ChoiceTrace:
        """The trials and choice of the grid's options; the others as in `best`."""
        method, criterion = self.method, self.criterion
        others = {option: values for option, values in grid.items() if option != "lam"}
        lams = grid.get("lam", [best.get("lam", method.get("lam"))])
        points = [
            Point(method.name, dict(zip(others, values)))
            for values in itertools.product(*others.values())
        ]
        tally = Tally(self.progress, list(grid), len(points) * len(lams))
        tally.report()

        def fit(point: Point, round: SearchRound, lams: Sequence[float]) -> list[float]:
            tally.total = max(tally.total, tally.tried + len(lams))  # beyond the grid
            errors = self._errors(method.with_choice(best | point.options), lams, tally)
            tally.add(errors, len(lams))
            return errors

        rounds = [SearchRound(self.folds[0][0].n_rows, len(self.folds))]
        continued = tuple(name for name in self.continued if name in grid)
        search = SearchGrid(points, {method.name: lams}, rounds, continued=continued)
        evidence = Search(fit, search, criterion).run()
        count_out = sum(out.n_rows for _, out in self.folds)
        trace = evidence.trace("lam" in grid, count_out, self._best(evidence, count_out))
        return replace(trace, target=criterion.target)

    def _best(self, evidence: Evidence, count_out: int) -> Trial:
        """The selected trial; count_out: number of evaluation rows."""
        least, task = evidence.best.score, self.folds[0][1].task
        if not self.method.space.simplest or task == "regression" or least > 1:
            return evidence.best
        most = least + SURE * math.sqrt(least * (1 - least) / count_out)
        return next(trial for trial in evidence.trials if trial.score <= most)

    def _errors(self, method: Method, lams: Sequence[float], tally: Tally) -> list[float]:
        """The mean error over all held-out rows for each lambda."""
        errors: list[list[float]] = []

        def stop(path: list[float]) -> bool:
            tally.report((len(errors) * len(lams) + len(path)) / len(self.folds))
            return learnt(path)

        for problem, out in self.folds:
            mean = weights.mean(problem.Y, problem.weights)
            constant = out.error(np.broadcast_to(mean, out.Y.shape))
            learnt = replace(self.stop, constant=constant)
            share = problem.n_rows / self.n_rows
            scaled = [lam if lam is None else lam * share for lam in lams]
            errors.append(errors_along(method, problem, out, scaled, stop, self.cache))
        # if one fold tried smaller lambdas than another, the other's last error is used
        most = max(map(len, errors))
        errors = [path + path[-1:] * (most - len(path)) for path in errors]
        return np.average(errors, 0, [out.n_rows for _, out in self.folds]).tolist()
