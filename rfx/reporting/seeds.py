"""Noise: runs that differ in nothing but the seed, their mean and standard deviation, and
what can be said by it of a printed number.
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

# What tells runs apart besides options; n_features and lam are options of some methods, and
# outcomes of others.
_FIELDS = ("dataset", "split", "method", "kernel", "solver")
_PARAMS = ("label", "test", "target", "ignore", "missing")
# Margins of equivalence: a point of accuracy, and this share of another error. Levels of the tests
# of equivalence and of a difference; at the second, one in a hundred cells without a difference is
# called different.
MARGINS = {"share": 0.01, "percent": 1.0, "relative": 0.05}
EQUIVALENCE, DIFFERENCE = 0.05, 0.01
# A smaller deviation, as a share of the mean, is of rounding, not of chance.
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
    """The mean of n values, the lowest, the highest, and their standard deviation with n -
    1 below, None of one value.
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
    """The mean of what is not None among the values, None of nothing."""
    known = [value for value in values if value is not None]
    return mean_of(known) if known else None


def mean_of(known: Sequence[float]) -> Mean:
    """The mean of one value or more."""
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
    """Of the line through points, both axes logarithmic."""
    xs, ys = np.log(np.array(points)).T
    return float(np.polyfit(xs, ys, 1)[0])


def verdict(
    ours: Mean | None, printed: Printed | None, best: str, unit: str = "relative"
) -> str | None:
    """Ours against a printed number, which counts as one more run with the noise of ours and is
    rounded as it is written.

    Parameters
    ----------
    best : str
        "high" or "low", whichever is better, or "" where neither is.
    unit : str
        Of the margin, one of MARGINS: "share" and "percent" for accuracy and wrong labels,
        "relative" for other errors.

    Returns
    -------
    str or None
        "equal" where two one-sided tests say that the difference is within the margin; else
        "better" or "worse" where the difference is significant; else "undecided". "no deviation"
        for another number where ours are all the same. None where nothing can be said, as of a
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
    if abs(more) + stdtrit(ours.n - 1, 1 - EQUIVALENCE) * error <= margin:
        return "equal"
    if abs(more) - rounding > stdtrit(ours.n - 1, 1 - DIFFERENCE / 2) * error:
        return "better" if (more > 0) == (best == "high") else "worse"
    return UNDECIDED


def noise(sizes: list[int]) -> list[str]:
    """The notes on how many runs stand behind the cells, given the number of each."""
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
    """The names of a method's options; none of a method that is not there."""
    try:
        return frozenset(methods.get(method).declared()) - {"seed", "timeout"}
    except UsageError:
        return frozenset()


@lru_cache(4096)
def _wanted(method: str, names: tuple[str, ...]) -> tuple[list[str], list[str]]:
    """Of the names in params those that tell runs of a method apart, in order; and the columns that
    are options which params does not have."""
    options = options_of(method)
    entries = [name for name in _PARAMS if name in names]
    entries += [name for name in names if name in options and name not in _PARAMS]
    return entries, [
        name for name in ("lam", "n_features") if name in options and name not in names
    ]


_fields = picker(*_FIELDS)


def inputs(row: Mapping) -> dict:
    """What a row's run was given, by name, without its seed: what was asked for, such as
    ``validation``, rather than the value that was chosen.
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
    """What the row's run asked for where the row has something else, None for what it did
    not ask for.
    """
    params = row["params"]
    asked = params.get("asked")
    if asked is not None:
        return asked
    steps = params.get("validation")
    return _of_steps(row, params, steps) if steps else {}


def _of_steps(row: Mapping, params: Mapping, steps: Sequence[Mapping]) -> dict:
    """The same of a row that does not say it: the words of the options that its validation had
    several values of.
    """
    defaults, found = _defaults(row["method"]), {}
    for step in steps:
        for place, name in enumerate(step["options"]):
            tried, own = {str(one[place]) for one in step["tried"]}, params.get(name)
            # a word that was not tried, such as validation, is what was asked for
            asked = type(own) is str and own not in tried
            if len(tried) > 1 and name in defaults and not asked:
                word = defaults[name]
                found[name] = None if word is None else word if type(word) is str else "validation"
    return found


@lru_cache
def _defaults(method: str) -> Mapping:
    """The defaults of a method's options; none of a method that is not there."""
    try:
        return methods.get(method).defaults()
    except UsageError:
        return {}


def token(given: Mapping) -> tuple:
    """What is equal for what `canonical` makes equal, and can be a key: names with their values."""
    return tuple(
        sorted((name, _token(value)) for name, value in given.items() if value is not None)
    )


def _token(value) -> tuple:
    """Values of one kind in the order of that kind; 1 and 1.0 are the same, true is no number."""
    kind = type(value)
    if kind is str:
        return 0, value
    if kind is int:
        return 1, value
    if kind is float:
        return 1, canonical(value)
    return 2, json.dumps(canonical(value), sort_keys=True)


def variants(rows: Sequence[Mapping]) -> list[list]:
    """Rows that differ in nothing but the seed, together: one a seed, the newest, by the
    seed. Those made last come last.
    """
    found: dict[tuple, dict] = {}
    for row in rows:
        name = token(inputs(row))
        found[name] = found.pop(name, {}) | {row["seed"]: row}
    return [
        [by_seed[seed] for seed in sorted(by_seed, key=lambda seed: (seed is not None, seed))]
        for by_seed in found.values()
    ]
