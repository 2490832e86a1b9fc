"""Noise: runs that differ only in the seed, their mean and standard deviation, and the comparison
with a printed number that it allows.
"""

import json
import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy.special import stdtrit

from rfx import methods
from rfx.errors import UsageError
from rfx.records.keys import canonical, lacks_gamma
from rfx.records.result import Params, picker
from rfx.reporting.printed import Printed

# Inputs that distinguish runs besides options. n_features and lam are options of some methods and
# outcomes of others.
_FIELDS = ("dataset", "split", "method", "kernel", "solver")
_PARAMS = ("label", "test", "target", "ignore", "missing")
# Margins of equivalence: one percentage point of accuracy, and this fraction of another error. Then
# the levels of the tests of equivalence and of a difference. At the second level, one in a hundred
# cells without a difference is called different.
MARGINS = {"share": 0.01, "percent": 1.0, "relative": 0.05}
EQUIVALENCE, DIFFERENCE = 0.05, 0.01
# A smaller standard deviation, as a fraction of the mean, is attributed to rounding.
_ROUNDING = 1e-9
UNJUDGED, UNDECIDED = "no deviation", "undecided"
MARKS = {"better": "(+)", "equal": "(=)", "worse": "(-)", UNDECIDED: "(?)", UNJUDGED: "(0)"}
LEGEND = (
    f"{MARKS['equal']} equivalent to the printed number within a point of accuracy, or 5 % of"
    f" another error (two one-sided tests at 5 %); {MARKS['better']} better, {MARKS['worse']} worse"
    " (at 1 % a cell: one in a hundred without a difference is called different);"
    f" {MARKS[UNDECIDED]} undecided; {MARKS[UNJUDGED]} another number, but ours has no deviation to"
    " judge that by; without a mark that can't be said. The printed number is taken for one more"
    " run with the noise of ours."
)


class Mean(NamedTuple):
    """The mean of n values, the lowest, the highest, and their standard deviation with denominator
    n - 1, None for one value.
    """

    value: float
    sd: float | None
    n: int
    low: float
    high: float

    @classmethod
    def one(cls, value: float) -> "Mean":
        """A single value."""
        return cls(value, None, 1, value, value)


def mean(values: Iterable[float | None]) -> Mean | None:
    """The mean of the values that are not None; None if there are none."""
    known = [value for value in values if value is not None]
    return mean_of(known) if known else None


def mean_of(known: Sequence[float]) -> Mean:
    """The mean of one or more values."""
    low, high, n = min(known), max(known), len(known)
    if low == high:
        return Mean(low, 0.0 if n > 1 else None, n, low, high)
    middle = statistics.fmean(known)
    return Mean(
        middle,
        math.sqrt(math.fsum((value - middle) ** 2 for value in known) / (n - 1)),
        n,
        low,
        high,
    )


def slope(points: Sequence[tuple[float, float]]) -> float:
    """The slope of the line through points in a log-log plot."""
    xs, ys = np.log(np.array(points)).T
    return float(np.polyfit(xs, ys, 1)[0])


def verdict(
    ours: Mean | None, printed: Printed | None, best: str, unit: str = "relative"
) -> str | None:
    """Compare ours with a printed number, which is treated as one more run with the same noise,
    rounded as printed.

    Parameters
    ----------
    best : str
        "high" or "low", whichever is better, or "" if neither is.
    unit : str
        The unit of the margin, from MARGINS: "share" and "percent" for accuracy and wrong labels,
        "relative" for other errors.

    Returns
    -------
    str or None
        "equal" if two one-sided tests find the difference within the margin, whatever number the
        printed one was rounded from; else "better" or
        "worse" if the difference is significant; else "undecided". "no deviation" if our numbers
        are all the same and the printed one differs. None if no verdict is possible, such as for a
        single run.

    References
    ----------
    Schuirmann, "A comparison of the two one-sided tests procedure and the power approach", Journal
    of Pharmacokinetics and Biopharmaceutics 15, 1987.
    """
    if ours is None or printed is None or ours.sd is None or not best:
        return None
    margin = MARGINS[unit] * (abs(printed) if unit == "relative" else 1.0)
    rounding = 0.5 * 10.0**-printed.decimals
    more, error = ours.value - printed, ours.sd * (1 + 1 / ours.n) ** 0.5
    if ours.sd <= _ROUNDING * abs(ours.value):
        return "equal" if abs(more) <= rounding * (1 + 1e-9) else UNJUDGED
    if abs(more) + rounding + stdtrit(ours.n - 1, 1 - EQUIVALENCE) * error <= margin:
        return "equal"
    if abs(more) - rounding > stdtrit(ours.n - 1, 1 - DIFFERENCE / 2) * error:
        return "better" if (more > 0) == (best == "high") else "worse"
    return UNDECIDED


def noise(sizes: list[int]) -> list[str]:
    """The notes on the number of runs per cell, from the number of each."""
    several = sorted({size for size in sizes if size > 1})
    if not several:
        return ["Every cell is a single run, so its noise is not known."] if sizes else []
    counts = str(several[0]) if len(several) == 1 else f"{several[0]} to {several[-1]}"
    single = "; a cell without ± is a single run" if 1 in sizes else ""
    return [
        f"Cells are means over {counts} seeds ± their standard deviation{single}.",
        LEGEND,
    ]


@lru_cache
def options_of(method: str) -> frozenset[str]:
    """The names of a method's options; empty for an unknown method."""
    try:
        return frozenset(methods.get(method).declared()) - {"seed", "timeout"}
    except UsageError:
        return frozenset()


@lru_cache(4096)
def _wanted(method: str, names: tuple[str, ...]) -> tuple[list[str], list[str]]:
    """Of the names in params those that distinguish runs of a method, in order; and the columns of
    options that are missing from params.
    """
    options = options_of(method)
    entries = [name for name in _PARAMS if name in names]
    entries += [name for name in names if name in options and name not in _PARAMS]
    return entries, [
        name for name in ("lam", "n_features") if name in options and name not in names
    ]


_fields = picker(*_FIELDS)


def inputs(row: Mapping) -> dict:
    """The inputs of a row's run by name, without its seed: the requested values, such as
    ``validation``, rather than the chosen ones.
    """
    params = row["params"]
    asked = asked_of(row)
    method = asked.get("method") or row["method"]
    found = {name: value for name, value in zip(_FIELDS, _fields(row)) if value is not None}
    if type(params) is Params:
        entries, columns = _wanted(method, params.names)
        found.update(zip(entries, params.several(entries)))
    else:
        entries, columns = _wanted(method, tuple(params))
        found.update((name, params[name]) for name in entries if params[name] is not None)
    for name in columns:
        value = row.get(name)
        if value is not None:
            found[name] = value
    for name, value in asked.items():
        if value is not None:
            found[name] = value
        else:
            found.pop(name, None)
    if type(found.get("gamma")) is str and lacks_gamma(row.get("kernel")):
        del found["gamma"]
    return found


def asked_of(row: Mapping) -> Mapping:
    """The requested values of a row's run if they differ from the row's; None for values that were
    not requested.
    """
    params = row["params"]
    asked = params.get("asked")
    if asked is not None:
        return asked
    steps = params.get("validation")
    return _of_steps(row, params, steps) if steps else {}


def _of_steps(row: Mapping, params: Mapping, steps: Sequence[Mapping]) -> dict:
    """The same for a row without this record: the words of the options for which its validation had
    several values.
    """
    defaults, found = _defaults(row["method"]), {}
    for step in steps:
        for place, name in enumerate(step["options"]):
            tried, own = {str(one[place]) for one in step["tried"]}, params.get(name)
            # a word that was not tried, such as validation, is the requested value
            asked = type(own) is str and own not in tried
            if len(tried) > 1 and name in defaults and not asked:
                word = defaults[name]
                found[name] = None if word is None else word if type(word) is str else "validation"
    return found


@lru_cache
def _defaults(method: str) -> Mapping:
    """The defaults of a method's options; empty for an unknown method."""
    try:
        return methods.get(method).defaults()
    except UsageError:
        return {}


def token(given: Mapping) -> tuple:
    """A hashable key that is equal for inputs that `canonical` makes equal: names with their
    values.
    """
    return tuple(
        sorted((name, _token(value)) for name, value in given.items() if value is not None)
    )


def _token(value) -> tuple:
    """A key that orders values by type; 1 and 1.0 are the same, and true is not a number."""
    kind = type(value)
    if kind is str:
        return 0, value
    if kind is int:
        return 1, value
    if kind is float:
        return 1, canonical(value)
    return 2, json.dumps(canonical(value), sort_keys=True)


def variants(rows: Sequence[Mapping]) -> list[list]:
    """Groups of rows that differ only in the seed: in each the newest row per seed, ordered by
    seed. The groups made last come last.
    """
    found: dict[tuple, dict] = {}
    for row in rows:
        name = token(inputs(row))
        found[name] = found.pop(name, {}) | {row["seed"]: row}
    return [
        [by_seed[seed] for seed in sorted(by_seed, key=lambda seed: (seed is not None, seed))]
        for by_seed in found.values()
    ]
