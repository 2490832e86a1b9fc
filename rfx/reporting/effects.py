"""What the papers' claims measure: functions of a frame of rows that return the effect of each
seed, by case.

A quantity is a column of the frame, or a function of a row. A selection maps quantities to the
value, or the tuple of values, that a row must have.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from rfx import lazy
from rfx.records.run import seconds_train
from rfx.reporting.cells import Row, log_slope, width

if TYPE_CHECKING:
    from pandas import DataFrame, Series

Frame: TypeAlias = "DataFrame"
Column: TypeAlias = "Series"
Quantity: TypeAlias = str | Callable[[Row], object]
Selection: TypeAlias = Mapping[Quantity, object]


OR_MORE, OR_LESS, VACUOUS = "or more", "or less", "vacuous"


@dataclass(frozen=True)
class Limits:
    """Effects of seeds that decide less than their numbers.

    Attributes
    ----------
    values : sequence of float
        May be empty.
    kind : str
        OR_MORE and OR_LESS if the true effects are limited on one side only; VACUOUS if no run
        could have contradicted the claim; or else the reason why the case cannot be decided, such
        as "diverged".
    """

    values: Sequence[float]
    kind: str


# The effects of the seeds of one case; empty if it was not run.
SeedEffects: TypeAlias = Sequence[float] | Limits
# The effects by case, such as a data set.
Effects: TypeAlias = Mapping[str, SeedEffects]


def censored(values: Sequence[float], may_be_more: bool, may_be_less: bool) -> SeedEffects:
    """Effects of seeds, of which a true one may be more, or less, than its value: a run that never
    reached its target ended with its largest cost.
    """
    if may_be_more and may_be_less:
        return Limits(values, "a run of each side never reaches the target")
    if may_be_more:
        return Limits(values, OR_MORE)
    if may_be_less:
        return Limits(values, OR_LESS)
    return values


EffectFunction: TypeAlias = Callable[[Frame], Effects]
_DATASET = ("dataset",)


def wrong(row: Row) -> float | None:
    """The share of wrong labels."""
    return None if row.score is None else 1 - row.score


def error(row: Row) -> float | None:
    """The share of wrong labels; of a regression the norm of the errors over that of the
    targets.
    """
    return row.params.get("relative_error") if row.metric == "rmse" else wrong(row)


def _cost(row: Row) -> float | None:
    """Processor seconds of the fit; those by the clock of a row without them."""
    return row.params.get("seconds_cpu", seconds_train(row))


_DERIVED: dict[str, Callable[[Row], float | None]] = {
    "seconds": seconds_train,
    "cost": _cost,
    "wrong": wrong,
    "error": error,
    "width": width,
}


def frame(rows: Iterable[Row]) -> Frame:
    """The rows of successful runs as a frame: their columns, the entries of params that are not
    columns, `seconds`, `cost`, `wrong`, `error` and `width`, and in `row` the row itself. Unknown
    values are None.
    """
    lines = [_quantities(row) for row in rows if row.status == "ok"]
    table = lazy.pandas.DataFrame(lines, dtype=object)
    return table.where(table.notna(), None)


def _quantities(row: Row) -> dict:
    """The line of a row in `frame`."""
    known = {name: value for name, value in row.items() if value is not None}
    derived = {name: compute(row) for name, compute in _DERIVED.items()}
    return {**row.params, **known, **derived, "row": row}


def rows_of(table: Frame) -> list[Row]:
    """The rows that a frame was made of."""
    return list(table["row"])


def column(table: Frame, name: Quantity) -> Column:
    """A quantity of every row; None if no row has it."""
    if callable(name):
        values = [name(row) for row in table.get("row", ())]
        return lazy.pandas.Series(values, table.index, object)
    return table[name] if name in table else lazy.pandas.Series(None, table.index, object)


def select(table: Frame, where: Selection) -> Frame:
    """The rows of a selection."""
    for name, wanted in where.items():
        values = wanted if isinstance(wanted, tuple) else (wanted,)
        table = table[column(table, name).isin(values)]
    return table


def points(
    table: Frame, where: Selection, case: Sequence[Quantity], **quantities: Quantity
) -> Frame:
    """Quantities of the rows of a selection, as numbers. The index is the case, whose name joins
    the quantities `case`, and the seed.
    """
    table = select(table, where)
    names = zip(*(column(table, name).map(str) for name in case))
    cases = list(map(" ".join, names))
    index = lazy.pandas.MultiIndex.from_arrays([cases, column(table, "seed")])
    numbers = {name: column(table, of).astype(float).array for name, of in quantities.items()}
    return lazy.pandas.DataFrame(numbers, index)


def newest(
    table: Frame, where: Selection, value: Quantity, case: Sequence[Quantity] = _DATASET
) -> Column:
    """The newest known value of each case and seed."""
    values = points(table, where, case, value=value).value.dropna()
    return values[~values.index.duplicated(keep="last")]


def by_case(values: Column) -> dict[str, list[float]]:
    """The known values of each case."""
    groups = values.dropna().groupby(level=0, sort=False)
    return {str(name): effects.tolist() for name, effects in groups}


def ratio(
    table: Frame,
    value: Quantity,
    first: Selection,
    second: Selection,
    case: Sequence[Quantity] = _DATASET,
) -> Effects:
    """The value of `first` over that of `second`, in pairs of one seed. A case with a zero, which
    has no ratio, cannot be decided.
    """
    ours = newest(table, first, value, case)
    theirs = newest(table, second, value, case)
    pairs = lazy.pandas.concat([ours, theirs], axis=1, keys=["ours", "theirs"]).dropna()
    positive = pairs[(pairs > 0).all(axis=1)]
    known = by_case(positive.ours / positive.theirs)
    zeros = pairs.index.difference(positive.index).get_level_values(0).unique()
    return known | {name: Limits(known.get(name, ()), "a value is zero") for name in zeros}


def difference(
    table: Frame,
    value: Quantity,
    first: Selection,
    second: Selection,
    scale: float = 1.0,
) -> Effects:
    """The value of `first` less that of `second`, times `scale`, in pairs of one seed."""
    ours = newest(table, first, value)
    theirs = newest(table, second, value)
    return by_case(scale * (ours - theirs.reindex(ours.index)))


def share(table: Frame, value: Quantity, of: Quantity | float) -> Effects:
    """The value over another quantity of the same row, or over a number."""
    bottom = of if isinstance(of, float) else newest(table, {}, of)
    return by_case(newest(table, {}, value) / bottom)


def exponent(
    table: Frame,
    value: Quantity,
    axis: Quantity,
    case: Sequence[Quantity] = _DATASET,
    places: int = 3,
) -> Effects:
    """The exponent of `axis` in the value, of each seed with enough places on the axis."""
    tried = points(table, {}, case, axis=axis, value=value)
    positive = tried[(tried > 0).all(axis=1)]
    values = positive.set_index("axis", append=True).value
    values = values[~values.index.duplicated(keep="last")]
    lines = values.groupby(level=[0, 1], sort=False)

    def slope(line: Column) -> float:
        if len(line) < places:
            return math.nan
        return log_slope(line.index.get_level_values(-1), line)

    return by_case(lines.agg(slope))


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
    tried = points(table, first, _DATASET, cost=cost, value=value)
    tried_of_second = points(table, second, _DATASET, cost=cost, value=value)
    least = _least_cost(tried, wanted)
    least_of_second = _least_cost(tried_of_second, wanted)
    most_of_second = tried_of_second.cost.groupby(level=[0, 1]).max()
    ratios = least_of_second.combine_first(most_of_second) / least
    seeds = most_of_second.index.intersection(wanted.index)
    limited = seeds.difference(least_of_second.index).get_level_values(0)
    effects = by_case(ratios.reindex(wanted.index))
    return {
        name: censored(values, may_be_more=name in limited, may_be_less=False)
        for name, values in effects.items()
    }


def _least_cost(tried: Frame, wanted: Column) -> Column:
    """The least cost of each case and seed with a value of at most the wanted one."""
    reaches = tried.value <= wanted.reindex(tried.index)
    return tried.cost[reaches].groupby(level=[0, 1]).min()


def named(effects: Effects, name: str) -> dict[str, SeedEffects]:
    """The cases of a measure, whose names then end with that of what was compared."""
    return {f"{case} {name}": values for case, values in effects.items()}
