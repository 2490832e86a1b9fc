"""The papers' claims: measured effects, theorems, and verdicts."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, field
from functools import cache, wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeAlias

import numpy as np
from scipy.special import stdtrit

from rfx import lazy, losses
from rfx.errors import RfxError
from rfx.plans.catalogue import Folder
from rfx.records.run import seconds_train
from rfx.reporting.cells import (
    UNDECIDED,
    Cell,
    Mean,
    Row,
    Section,
    Table,
    count,
    good,
    grid,
    grouped,
    labelled,
    log_slope,
    mean_of,
    number,
    short,
    width,
    words,
)

if TYPE_CHECKING:
    from pandas import DataFrame, Series

# ----------------------------------------------------------------------
# The measures of the papers' claims: functions of a frame of rows that return the effect of each
# seed, by case.
#
# A quantity is a column of the frame, or a function of a row. A selection maps quantities to the
# value, or the tuple of values, that a row must have.

P = ParamSpec("P")
Frame: TypeAlias = "DataFrame"
Column: TypeAlias = "Series"
Quantity: TypeAlias = str | Callable[[Row], Any]
Selection: TypeAlias = Mapping[Any, Any]  # from Quantity


@dataclass(frozen=True)
class Limits:
    """Effects of seeds that are only limits of the true ones.

    Attributes
    ----------
    values : sequence of float
    kind : str
        "or more" and "or less", or "diverged" for numbers that decide nothing.
    """

    values: Sequence[float]
    kind: str


# A case, such as a data set, and the effect of each seed.
Effects: TypeAlias = Mapping[str, Sequence[float] | Limits]
Measure: TypeAlias = Callable[[Frame], Effects]
_DATASET = ("dataset",)


def wrong(row: Row) -> float | None:
    """The share of wrong labels."""
    return None if row["score"] is None else 1 - row["score"]


def error(row: Row) -> float | None:
    """The share of wrong labels; of a regression the norm of the errors over that of the
    targets.
    """
    return row["params"].get("relative_error") if row["metric"] == "rmse" else wrong(row)


_DERIVED: dict[str, Callable[[Row], Any]] = {
    "seconds": seconds_train,
    "wrong": wrong,
    "error": error,
    "width": width,
    "row": lambda row: row,
}


def frame(rows: Iterable[Row]) -> Frame:
    """The rows of successful runs as a frame: their columns, the entries of params that are not
    columns, `seconds`, `wrong`, `error` and `width`, and in `row` the row itself. Unknown values
    are None.
    """
    lines = [
        {
            **row["params"],
            **{name: value for name, value in row.items() if value is not None},
            **{name: make(row) for name, make in _DERIVED.items()},
        }
        for row in rows
        if row["status"] == "ok"
    ]
    table = lazy.pandas.DataFrame(lines, dtype=object)
    return table.where(table.notna(), None)


def column(table: Frame, name: Quantity) -> Column:
    """A quantity of every row; None if no row has it."""
    if isinstance(name, str) and name in table:
        return table[name]
    make = name if callable(name) else lambda row: None
    return lazy.pandas.Series([make(row) for row in table.get("row", ())], table.index, object)


def select(table: Frame, where: Selection) -> Frame:
    """The rows of a selection."""
    for name, wanted in where.items():
        table = table[column(table, name).isin(wanted if isinstance(wanted, tuple) else (wanted,))]
    return table


def points(
    table: Frame, where: Selection, case: Sequence[Quantity], **quantities: Quantity
) -> Frame:
    """Quantities of the rows of a selection, as numbers. The index is the case, whose name joins
    the quantities `case`, and the seed.
    """
    table = select(table, where)
    names = zip(*(column(table, name).map(str) for name in case))
    index = [list(map(" ".join, names)), column(table, "seed")]
    numbers = {name: column(table, of).astype(float).array for name, of in quantities.items()}
    return lazy.pandas.DataFrame(numbers, lazy.pandas.MultiIndex.from_arrays(index))


def newest(
    table: Frame, where: Selection, value: Quantity, case: Sequence[Quantity] = _DATASET
) -> Column:
    """The newest known value of each case and seed."""
    values = points(table, where, case, value=value)["value"].dropna()
    return values[~values.index.duplicated(keep="last")]


def by_case(values: Column) -> dict[str, list[float]]:
    """The known values of each case."""
    groups = values.dropna().groupby(level=0, sort=False)
    return {str(name): effects.tolist() for name, effects in groups}


def measure(
    function: Callable[Concatenate[Frame, P], Effects],
) -> Callable[P, Measure]:
    """A function of a frame and further arguments as a function of the latter that returns a
    Measure.
    """

    @wraps(function)
    def given(*arguments: P.args, **options: P.kwargs) -> Measure:
        return lambda table: function(table, *arguments, **options)

    return given


@measure
def ratio(
    table: Frame,
    value: Quantity,
    first: Selection,
    second: Selection,
    case: Sequence[Quantity] = _DATASET,
) -> Effects:
    """The value of `first` over that of `second`, in pairs of one seed. Zeros have no ratio."""
    ours, theirs = (newest(table, side, value, case) for side in (first, second))
    return by_case(ours[ours > 0] / theirs[theirs > 0].reindex(ours[ours > 0].index))


@measure
def difference(
    table: Frame,
    value: Quantity,
    first: Selection,
    second: Selection,
    scale: float = 1.0,
) -> Effects:
    """The value of `first` less that of `second`, times `scale`, in pairs of one seed."""
    ours, theirs = (newest(table, side, value) for side in (first, second))
    return by_case(scale * (ours - theirs.reindex(ours.index)))


@measure
def share(table: Frame, value: Quantity, of: Quantity | float) -> Effects:
    """The value over another quantity of the same row, or over a number."""
    bottom = of if isinstance(of, float) else newest(table, {}, of)
    return by_case(newest(table, {}, value) / bottom)


@measure
def exponent(
    table: Frame,
    value: Quantity,
    axis: Quantity,
    case: Sequence[Quantity] = _DATASET,
    places: int = 3,
) -> Effects:
    """The exponent of `axis` in the value, of each seed with enough places on the axis."""
    tried = points(table, {}, case, axis=axis, value=value)
    tried = tried[(tried > 0).all(axis=1)].set_index("axis", append=True)["value"]
    lines = tried[~tried.index.duplicated(keep="last")].groupby(level=[0, 1], sort=False)
    return by_case(lines.agg(lambda line: _slope(line) if len(line) >= places else math.nan))


def _slope(line: Column) -> float:
    return log_slope(line.index.get_level_values(-1), line)


@measure
def reached(
    table: Frame,
    cost: Quantity,
    value: Quantity,
    target: Selection,
    first: Selection,
    second: Selection,
) -> Effects:
    """The least cost of `second` over that of `first`, to a value at most that of `target`, in
    pairs of one seed.

    A seed whose `second` never gets there has the largest cost that was tried, and all effects of
    the case are then lower limits.
    """
    wanted = newest(table, target, value)
    sides = [points(table, side, _DATASET, cost=cost, value=value) for side in (first, second)]
    ours, theirs = (
        side["cost"][side["value"] <= wanted.reindex(side.index)].groupby(level=[0, 1]).min()
        for side in sides
    )
    most = sides[1]["cost"].groupby(level=[0, 1]).max()
    effects = by_case((theirs.combine_first(most) / ours).reindex(wanted.index))
    limited = set(most.index.intersection(wanted.index).difference(theirs.index))
    names = {name for name, _ in limited}
    return {
        name: Limits(values, "or more") if name in names else values
        for name, values in effects.items()
    }


def each(names: Iterable[str], make: Callable[[str], Measure]) -> Measure:
    """The cases of a measure for each name, which their names end with."""
    return lambda table: {
        f"{case} {name}": effects for name in names for case, effects in make(name)(table).items()
    }


# ----------------------------------------------------------------------
# The distance of the objective of L1-regularised random features from its limit, and the bound of a
# theorem on it.
#
# Yen et al. (2014, Corollary 1) and Wu et al. (2016, Theorem 1) bound F(w) = lam ||w||_1 + mean
# loss over random features. The reference is the exact kernel machine w*, with lam ||w*||_2 in
# place of the L1 norm: F <= F(w*) + 2 gamma ||w*||^2 / (kappa D'), with D' = D - c and c = ceil(2
# kappa (F(0) - F(w*)) / (gamma ||w*||^2)). kappa is 1 for single features. gamma is the curvature
# of the loss times the square of the largest feature. All objectives here are divided by the number
# of rows.

# The limit is the objective at the largest size. A slope uses sizes of at most this fraction of it,
# because the limit is inaccurate for larger ones.
_PART = 16


def machine_value(row: Row, lam: float) -> float:
    """lam ||w*||_2 + mean loss of an exact kernel machine, from its row."""
    norm = row["params"]["norm"]
    loss = row["objective"] - 0.5 * row["lam"] * norm**2
    return (lam * norm + loss) / row["n_train"]


@dataclass(frozen=True)
class Reference:
    """The exact kernel machine: value = lam ||w*||_2 + mean loss, norm = ||w*||_2, zero =
    F(0), objective: with lam/2 ||w*||^2; curvature and kappa of the theorem.
    """

    value: float
    norm: float
    zero: float
    objective: float
    curvature: float
    kappa: float = 1.0

    @classmethod
    def of(cls, row: Row, square: float = 1.0, kappa: float = 1.0, blocks: float = 1.0):
        """From a row of `kernel`. F(0) of a regression is the first objective of its trace.

        square: of the largest feature. blocks: the number of features drawn together. ||w*||_1 is
        at most sqrt(blocks) ||w*||_2, and `value` includes this factor.
        """
        n_rows, norm = row["n_train"], row["params"]["norm"]
        kind = losses.get_loss(row["params"]["loss"])
        zero = float(kind.value(np.zeros(1), np.ones(1))[0])
        if row["metric"] == "rmse":
            zero = row["trace"][0]["objective"] / n_rows
        value = machine_value(row, row["lam"] * math.sqrt(blocks))
        return cls(value, norm, zero, row["objective"] / n_rows, kind.curvature * square, kappa)

    @property
    def scale(self) -> float:
        """gamma ||w*||^2. In units of it the theorem is the same line for all cases, 2 / (kappa D')
        above F(w*).
        """
        return self.curvature * self.norm**2

    @property
    def wasted(self) -> int:
        """c: the number of features, or grids, for which the theorem has no finite bound."""
        return max(0, math.ceil(2 * self.kappa * (self.zero - self.value) / self.scale))

    def bound(self, size: int) -> float:
        """The upper bound on the mean of F over draws of `size` features, or grids; infinite up to
        `wasted`.
        """
        left = size - self.wasted
        return self.value + 2 * self.scale / (self.kappa * left) if left > 0 else math.inf

    def cell(self, size: int) -> Cell:
        """The bound at this size, and whether it is vacuous."""
        bound, vacuous = self.bound(size), ", vacuous" * self.vacuous(size)
        return number(bound, short, note=vacuous) if math.isfinite(bound) else words("infinite")

    def vacuous(self, size: int) -> bool:
        """Whether the bound at this size is at least the objective of zero weights."""
        return self.bound(size) >= self.zero


@dataclass(frozen=True)
class Excess:
    """The objectives of several seeds, which are the index, at several sizes, the columns in
    ascending order.

    known_limit: the limit of the objectives; None if it is the mean at the largest size.
    """

    objectives: Frame
    known_limit: float | None = None

    @classmethod
    def of(
        cls, rows: Sequence[Row], size: Callable[[Row], int], known_limit: float | None = None
    ) -> "Excess":
        """From rows that differ in seed and size(row)."""
        last = {(row["seed"], size(row)): row["objective"] / row["n_train"] for row in rows}
        objectives = lazy.pandas.Series(last, dtype=float).unstack() if last else {}
        return cls(lazy.pandas.DataFrame(objectives), known_limit)

    def at(self, size: int) -> list[float]:
        """The objectives of the seeds that have this size."""
        return self.objectives.get(size, lazy.pandas.Series(dtype=float)).dropna().tolist()

    @property
    def sizes(self) -> list[int]:
        return self.objectives.columns.tolist()

    @property
    def limit(self) -> float:
        """The known limit, or the mean objective at the largest size."""
        known = self.known_limit
        return mean_of(self.at(self.sizes[-1])).value if known is None else known

    @property
    def above(self) -> dict[int, Mean]:
        """Size -> mean above the limit, without a size that is the limit."""
        sizes = self.sizes[:-1] if self.known_limit is None else self.sizes
        limit = self.limit
        return {size: mean_of([value - limit for value in self.at(size)]) for size in sizes}

    @property
    def _accurate(self) -> list[int]:
        """The sizes of slopes: those far below the size that is the limit."""
        part = _PART if self.known_limit is None else 1
        return [size for size in self.sizes if size <= self.sizes[-1] / part]

    @property
    def slopes(self) -> dict[Any, float]:
        """Seed -> the slope of the distances of its objectives from the limit, in a log-log plot.

        A known limit may lie between the objectives of a seed, so distances are then absolute
        values. A seed with fewer than three sizes, or with a distance of zero, has no slope.
        """
        distances = self.objectives[self._accurate] - self.limit
        distances = distances if self.known_limit is None else distances.abs()
        lines = {seed: line.dropna() for seed, line in distances.iterrows()}
        return {
            seed: log_slope(line.index, line)
            for seed, line in lines.items()
            if len(line) > 2 and (line > 0).all()
        }

    def within(self, reference: float, share: float, below: bool = True) -> dict[Any, int | None]:
        """Seed -> the least size from which on its objectives are within a share of the reference;
        None if the largest is not. below: whether an objective below the reference always is.
        """
        distances = self.objectives / reference - 1
        near = (distances if below else distances.abs()) <= share
        sizes = {
            # from the largest size down, until one is not near
            seed: line[distances.loc[seed].notna()][::-1].astype(bool).cumprod()
            for seed, line in near.iterrows()
        }
        return {seed: min(line.index[line > 0], default=None) for seed, line in sizes.items()}

    def for_precision(self, reference: float) -> Sequence[float] | Limits:
        """The exponent of 1/epsilon in the size for an objective within epsilon of the reference,
        from 10 to 1 %, of each seed. A seed that never is within 1 % has its largest size.
        """
        few, many = (self.within(reference, share) for share in (0.1, 0.01))
        most = {seed: line.dropna().index[-1] for seed, line in self.objectives.iterrows()}
        pairs = [(size, many[seed], most[seed]) for seed, size in few.items() if size]
        values = [math.log10((size or largest) / first) for first, size, largest in pairs]
        return values if all(size for _, size, _ in pairs) else Limits(values, "or more")

    @property
    def slope(self) -> float | None:
        """The slope of the line through the positive means above the limit, in a log-log plot;
        None for fewer than three.
        """
        above = {size: mean.value for size, mean in self.above.items() if size in self._accurate}
        positive = {size: value for size, value in above.items() if value > 0}
        return log_slope(list(positive), list(positive.values())) if len(positive) > 2 else None


def exact_machines(
    rows: Iterable[Row], label: str, alike: Callable[[Row], Any]
) -> list[tuple[Row, list[Row]]]:
    """The newest rows of exact kernel machines with this label, each with the rows of all methods
    for which alike(row) is the same.
    """
    newest = {row["key"]: row for row in good(labelled(rows, label))}
    exact = [row for row in newest.values() if row["method"] == "kernel"]
    return [
        (row, [one for one in newest.values() if alike(one) == alike(row)])
        for row in exact
        if row["metric"] != "rmse" or "objective" in (row.get("trace") or [{}])[0]
    ]


# ----------------------------------------------------------------------
# The papers' claims and the evidence from our rows: a measured effect with its interval, and a
# verdict.
#
# A paper's folder lists its claims in the CLAIMS of `claims.py`. A claim names the plan whose rows
# are the evidence, measures an effect in them, and states the range of effects for which it holds.

REPRODUCED, PARTLY, NOT = "reproduced", "partly", "not reproduced"
VACUOUS, UNTESTABLE, NOT_RUN = "bound vacuous", "untestable here", "not run"
VERDICTS = {
    REPRODUCED: "every case is decided, and its interval is within the claimed range",
    PARTLY: "at least half of the cases are decided, and one or more of them is within",
    NOT: "every case is decided, and its interval is outside",
    UNDECIDED: "any other outcome",
    VACUOUS: "the bound holds, but zero weights satisfy it as well",
    UNTESTABLE: "no run on one small machine, or with data that can be had, can decide it",
    NOT_RUN: "the results folder has no rows of the plan",
}
LEVEL = 0.05


@dataclass(frozen=True)
class Claim:
    """A statement of a paper that rows can confirm or refute.

    Attributes
    ----------
    name : str
        Unique within the paper, such as "fewer-features".
    where : str
        The place in the paper: a table, figure, theorem or section.
    says : str
        The statement, in one sentence in our words.
    effect : str
        What is measured.
    plan : str
        The plans whose rows are measured, without the paper's name, separated by spaces; empty if
        no plan can decide.
    measure : callable
        Function of a frame of the plans' rows that returns the effect of every seed, by case (see
        `rfx.reporting.claims`). It may raise `RfxError` if the rows are incomplete.
    rows : Selection
        The rows that are measured; all of the plans by default.
    least, most : float
        The claim holds for effects from `least` to `most`.
    ratio : bool
        Whether the effect is a ratio, whose interval is computed on its logarithm.
    settings : str
        The source of the settings: printed, authors' program, held-out rows, or test rows.
    counted : bool
        Whether the effect is a count, or a formula, without noise. One run then decides.
    grid : bool
        Whether effects are steps of a grid, so that equal ones are those of several runs.
    vacuous : bool
        Whether the effect is that of a bound. If the claim holds, the bound is vacuous.
    why : str
        Why the claim cannot be decided here, or is not decided yet.
    """

    name: str
    where: str
    says: str
    effect: str = ""
    plan: str = ""
    measure: Measure = lambda table: {}
    rows: Selection = field(default_factory=dict)
    least: float = -math.inf
    most: float = math.inf
    ratio: bool = False
    settings: str = ""
    counted: bool = False
    grid: bool = False
    vacuous: bool = False
    why: str = ""

    @property
    def range(self) -> str:
        """The effects for which the claim holds, in words."""
        ends = [short(end) for end in (self.least, self.most) if math.isfinite(end)]
        if len(ends) != 1:
            return " to ".join(ends)
        return f"at {'most' if self.least == -math.inf else 'least'} {ends[0]}"


@dataclass(frozen=True)
class Case:
    """The effect in one case: its mean, the interval (None without noise or for a single seed), the
    number of seeds, and whether the claim holds. The latter is None if that is not decided.

    limit: "or more", "or less" or "diverged" if the mean is only a limit of the effect.
    """

    name: str
    mean: float
    low: float | None
    high: float | None
    n: int
    holds: bool | None
    limit: str = ""

    @property
    def interval(self) -> str:
        """The interval in words: 1.5 to 2, 1.5 or more, or why there is none."""
        ends = [short(end) for end in (self.low, self.high) if end is not None]
        if len(ends) == 1:
            return f"{ends[0]} {self.limit}"
        return " to ".join(ends) or self.limit or "one run"

    @property
    def open(self) -> str:
        """Why it is not decided."""
        if self.limit == "diverged":
            return self.limit
        if self.limit:
            return f"known as {short(self.mean)} {self.limit}"
        return "a single seed" if self.n == 1 else "a limit is in the interval"


def case(claim: Claim, name: str, effects: Sequence[float] | Limits, cases: int = 1) -> Case:
    """The mean effect with its interval.

    The intervals of all cases of a claim hold simultaneously at 95 %: each has the level of a
    Bonferroni correction for `cases`. A ratio uses the geometric mean. Equal effects of all seeds
    are those of one deterministic run, unless they are counts or steps of a grid. The interval of
    limits is open.
    """
    values, limit = (effects.values, effects.kind) if isinstance(effects, Limits) else (effects, "")
    back = math.exp if claim.ratio else float
    value, sd, n, *_ = mean_of([*map(math.log, values)] if claim.ratio else values)
    if n == 1 and not claim.counted:
        return Case(name, back(value), None, None, 1, None, limit)
    half = stdtrit(n - 1, 1 - LEVEL / cases / 2) * sd / math.sqrt(n) if sd else 0.0
    low = -math.inf if limit in ("or less", "diverged") else back(value - half)
    high = math.inf if limit in ("or more", "diverged") else back(value + half)
    holds = True if claim.least <= low and high <= claim.most else None
    holds = False if high < claim.least or low > claim.most else holds
    n = 1 if sd == 0.0 and not (claim.counted or claim.grid) else n
    shown = lambda end: end if n > 1 and math.isfinite(end) else None
    return Case(name, back(value), shown(low), shown(high), n, holds, limit)


@dataclass(frozen=True)
class Judged:
    """A claim with its verdict, its cases, the full names of its plans, and the reason if it is not
    decided.
    """

    claim: Claim
    plans: Sequence[str]
    verdict: str
    cases: Sequence[Case] = ()
    why: str = ""

    @property
    def command(self) -> str:
        """The commands that make its rows."""
        return "; ".join(f"rfx run {plan}" for plan in self.plans)

    @property
    def outcomes(self) -> str:
        """The numbers of cases that hold, that do not, and that are undecided: 5, 1, 0."""
        counts = Counter(one.holds for one in self.cases)
        return ", ".join(str(counts[kind]) for kind in (True, False, None)) if self.cases else ""


def judge(claim: Claim, table: Frame, plans: Sequence[str] = ()) -> Judged:
    """A claim judged by the rows of its plans (see `rfx.reporting.claims.frame`)."""
    if not claim.plan:
        return Judged(claim, plans, UNTESTABLE, why=claim.why)
    try:
        effects = {} if table.empty else claim.measure(select(table, claim.rows))
    except RfxError as error:
        return Judged(claim, plans, NOT_RUN, why=str(error))
    known = {
        name: values
        for name, values in effects.items()
        if (values.values if isinstance(values, Limits) else values)
    }
    cases = [case(claim, name, values, len(known)) for name, values in known.items()]
    counts = Counter(one.holds for one in cases)
    verdict, why = UNDECIDED, ""
    if not cases:
        verdict, why = NOT_RUN, claim.why
    elif counts[True] == len(cases):
        verdict = VACUOUS if claim.vacuous else REPRODUCED
    elif counts[False] == len(cases):
        verdict = NOT
    elif counts[True] and 2 * counts[None] <= len(cases):
        verdict = PARTLY
    else:
        reasons = grouped((one.open, one.name) for one in cases if one.holds is None)
        undecided = "; ".join(f"{', '.join(names)} ({why})" for why, names in reasons.items())
        why = claim.why or f"undecided: {undecided}"
    return Judged(claim, plans, verdict, tuple(cases), why)


def judged(
    papers: Iterable[Folder], find: Callable[[str], Sequence[Row]]
) -> list[tuple[Folder, list[Judged]]]:
    """The judged claims of each paper with claims, in the order of VERDICTS.

    Parameters
    ----------
    papers : iterable of Folder
    find : callable
        Returns the rows of a plan by its full name, such as yen2014-table1.
    """
    rows_of, order = cache(find), [*VERDICTS]

    @cache
    def table_of(plans: tuple[str, ...]) -> Frame:
        return frame(row for plan in plans for row in rows_of(plan))

    verdicts = []
    for paper in papers:
        named = [
            (claim, tuple(f"{paper.name}-{name}" for name in claim.plan.split()))
            for claim in paper.claims
        ]
        own = [judge(claim, table_of(plans), plans) for claim, plans in named]
        verdicts += [(paper, sorted(own, key=lambda one: order.index(one.verdict)))] if own else []
    return verdicts


# The columns of the sections: of Judged claims, and of (claim, case).
_STATED: dict[str, Callable[[Judged], Cell]] = {
    "claim": lambda one: words(one.claim.name),
    "verdict": lambda one: words(one.verdict),
    "yes, no, undecided": lambda one: words(one.outcomes),
    "where": lambda one: words(one.claim.where),
    "statement": lambda one: words(one.claim.says + (f" ({one.why})" if one.why else "")),
}
_MEASURED: dict[str, Callable[[Judged], Cell]] = {
    "claim": lambda one: words(one.claim.name),
    "effect": lambda one: words(one.claim.effect),
    "holds for": lambda one: words(one.claim.range),
    "settings": lambda one: words(one.claim.settings),
    "command": lambda one: words(one.command),
}
_HOLDS = {True: "yes", False: "no", None: "undecided"}
_CASES: dict[str, Callable[[Any], Cell]] = {
    "claim": lambda of: words(of[0]),
    "case": lambda of: words(of[1].name),
    "effect": lambda of: number(of[1].mean, short, note=f" {of[1].limit}" if of[1].limit else ""),
    "from": lambda of: number(of[1].low, short),
    "to": lambda of: number(of[1].high, short),
    "seeds": lambda of: number(of[1].n, count),
    "holds": lambda of: words(_HOLDS[of[1].holds]),
}


def table(found: Iterable[tuple[Folder, list[Judged]]]) -> Table:
    """The claims as a table: the statement, the measured effect, and its values by case."""
    found = list(found)
    counts = Counter(one.verdict for _, claims in found for one in claims)
    sections: list[Section] = []
    for paper, claims in found:
        measured = [one for one in claims if one.plans]
        cases = [(one.claim.name, each) for one in measured for each in one.cases]
        sections += [
            grid(paper.citation, _STATED, claims),
            grid(f"{paper.citation}: what is measured", _MEASURED, measured),
            grid(f"{paper.citation}: effects with 95 % intervals", _CASES, cases, 2),
        ]
    present = [verdict for verdict in VERDICTS if counts[verdict]]
    return Table(
        name="claims",
        title="Claims of the papers",
        sections=[section for section in sections if section.lines],
        notes=[
            f"{sum(counts.values())} claims: "
            + ", ".join(f"{counts[verdict]} {verdict}" for verdict in present)
            + ".",
            "Intervals are over seeds; those of all cases of a claim hold together at 95 %. A case"
            " of a single seed has no interval and decides nothing, unless the effect is a count."
            " Runs that are the same for every seed are one run, which decides.",
            *(f"{verdict}: {VERDICTS[verdict]}." for verdict in present),
        ],
        cells=[
            line for paper, claims in found for one in claims for line in _tidy(paper.name, one)
        ],
    )


def _tidy(paper: str, judged: Judged) -> list[dict[str, Any]]:
    """A line for each case, or one without a case."""
    claim = judged.claim
    shared = {
        "paper": paper,
        "claim": claim.name,
        "where": claim.where,
        "says": claim.says,
        "verdict": judged.verdict,
        "effect": claim.effect or None,
        "least": claim.least if math.isfinite(claim.least) else None,
        "most": claim.most if math.isfinite(claim.most) else None,
        "settings": claim.settings or None,
        "plan": " ".join(judged.plans) or None,
    }
    names = ("case", "mean", "low", "high", "seeds", "holds", "limit")
    lines = [astuple(one)[:-1] + (one.limit or None,) for one in judged.cases]
    return [shared | dict(zip(names, line)) for line in lines or [(None,) * len(names)]]
