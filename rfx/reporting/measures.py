"""The measures of the papers' claims: functions of a plan's rows that return the effect of each
seed, by case.

A quantity of a row is a column, an entry of params, a name of QUANTITIES, or a function of the row.
A selection maps quantities to the value, or the tuple of values, that a row must have.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, TypeAlias

from rfx.records.result import seconds_train
from rfx.reporting import seeds

Row: TypeAlias = Mapping[str, Any]
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


_ALL: Selection = MappingProxyType({})
# A case, such as a data set, and the effect of each seed.
Effects: TypeAlias = Mapping[str, Sequence[float] | Limits]
Measure: TypeAlias = Callable[[Sequence[Row]], Effects]

QUANTITIES: dict[str, Callable[[Row], Any]] = {
    "seconds": seconds_train,
    "wrong": lambda row: None if row["score"] is None else 1 - row["score"],
    # of a regression the norm of the errors over that of the targets
    "error": lambda row: (
        row["params"].get("relative_error") if row["metric"] == "rmse" else 1 - row["score"]
    ),
}


def quantity(row: Row, name: Quantity) -> Any:
    """A quantity of a row; None if the row does not have it."""
    if callable(name):
        return name(row)
    if name in QUANTITIES:
        return QUANTITIES[name](row)
    column = row.get(name)
    return row["params"].get(name) if column is None else column


def selected(rows: Iterable[Row], where: Selection) -> list[Row]:
    """The successful rows of a selection."""
    wanted = {name: one if isinstance(one, tuple) else (one,) for name, one in where.items()}
    return [
        row
        for row in rows
        if row["status"] == "ok"
        and all(quantity(row, name) in values for name, values in wanted.items())
    ]


def by_case(
    rows: Iterable[Row], where: Selection, value: Quantity, case: Sequence[Quantity]
) -> dict[str, dict[Any, float]]:
    """Case -> seed -> the value of its newest row. Its name joins the quantities `case`."""
    found: dict[str, dict[Any, float]] = {}
    for row in selected(rows, where):
        number = quantity(row, value)
        if number is not None:
            name = " ".join(str(quantity(row, one)) for one in case)
            found.setdefault(name, {})[row["seed"]] = number
    return found


def _paired(first: Mapping, second: Mapping, effect: Callable[[float, float], float]) -> Effects:
    return {
        name: [effect(own[seed], second[name][seed]) for seed in own if seed in second[name]]
        for name, own in first.items()
        if name in second
    }


def ratio(
    value: Quantity,
    first: Selection,
    second: Selection,
    case: Sequence[Quantity] = ("dataset",),
    where: Selection = _ALL,
) -> Measure:
    """The value of `first` over that of `second`, in pairs of one seed. Zeros have no ratio."""

    def one(row: Row) -> float | None:
        number: float | None = quantity(row, value)
        return number if number is None or number > 0 else None

    return lambda rows: _paired(
        by_case(rows, {**where, **first}, one, case),
        by_case(rows, {**where, **second}, one, case),
        lambda ours, theirs: ours / theirs,
    )


def difference(
    value: Quantity,
    first: Selection,
    second: Selection,
    case: Sequence[Quantity] = ("dataset",),
    where: Selection = _ALL,
    scale: float = 1.0,
) -> Measure:
    """The value of `first` less that of `second`, times `scale`, in pairs of one seed."""
    return lambda rows: _paired(
        by_case(rows, {**where, **first}, value, case),
        by_case(rows, {**where, **second}, value, case),
        lambda ours, theirs: scale * (ours - theirs),
    )


def share(
    value: Quantity,
    of: Quantity | float,
    where: Selection = _ALL,
    case: Sequence[Quantity] = ("dataset",),
) -> Measure:
    """The value over another quantity of the same row, or over a number."""

    def one(row: Row) -> float | None:
        top = quantity(row, value)
        bottom = of if isinstance(of, float) else quantity(row, of)
        return top / bottom if top is not None and bottom else None

    return lambda rows: {
        name: list(own.values()) for name, own in by_case(rows, where, one, case).items()
    }


def exponent(
    value: Quantity,
    axis: Quantity,
    where: Selection = _ALL,
    case: Sequence[Quantity] = ("dataset",),
    places: int = 3,
) -> Measure:
    """The exponent of `axis` in the value, of each seed with enough places on the axis."""

    def measure(rows: Sequence[Row]) -> Effects:
        by_place: dict[tuple[str, Any], dict[float, float]] = {}
        for row in selected(rows, where):
            place, number = quantity(row, axis), quantity(row, value)
            if place and number and number > 0:
                name = " ".join(str(quantity(row, one)) for one in case)
                by_place.setdefault((name, row["seed"]), {})[place] = number
        effects: dict[str, list[float]] = {}
        for (name, _), points in by_place.items():
            if len(points) >= places:
                effects.setdefault(name, []).append(seeds.slope(list(points.items())))
        return effects

    return measure


def reached(
    cost: Quantity,
    value: Quantity,
    target: Selection,
    first: Selection,
    second: Selection,
    case: Sequence[Quantity] = ("dataset",),
    where: Selection = _ALL,
) -> Measure:
    """The least cost of `second` over that of `first`, to a value at most that of `target`, in
    pairs of one seed.

    A seed whose `second` never gets there has the largest cost that was tried, and all effects of
    the case are then lower limits.
    """

    def measure(rows: Sequence[Row]) -> Effects:
        found: dict[str, list[float]] = {}
        limits: set[str] = set()
        for name, targets in by_case(rows, {**where, **target}, value, case).items():
            for seed, wanted in targets.items():
                own = [
                    row
                    for row in rows
                    if row["seed"] == seed
                    and " ".join(str(quantity(row, one)) for one in case) == name
                ]
                sides = [selected(own, {**where, **side}) for side in (first, second)]
                ours, theirs = (least_cost(side, cost, value, wanted) for side in sides)
                if theirs is None and sides[1]:
                    theirs = max(quantity(row, cost) for row in sides[1])
                    limits.add(name)
                if ours and theirs:
                    found.setdefault(name, []).append(theirs / ours)
        return {
            name: Limits(values, "or more") if name in limits else values
            for name, values in found.items()
        }

    return measure


def least_cost(rows: Iterable[Row], cost: Quantity, value: Quantity, wanted: float) -> float | None:
    """The least cost of the rows with a value of at most `wanted`; None if there are none."""
    costs = [
        quantity(row, cost)
        for row in rows
        if (number := quantity(row, value)) is not None and number <= wanted
    ]
    return min((one for one in costs if one), default=None)


def each(names: Iterable[str], make: Callable[[str], Measure]) -> Measure:
    """The cases of a measure for each name, which their names end with."""
    return lambda rows: {
        f"{case} {name}": effects for name in names for case, effects in make(name)(rows).items()
    }
