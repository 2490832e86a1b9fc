"""Noise over seeds, and the comparison with the numbers that a paper prints."""

import csv
import json
import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from importlib import resources
from typing import NamedTuple, TypeVar

import numpy as np
from scipy.special import stdtrit

from rfx import methods
from rfx.errors import UsageError
from rfx.records.keys import canonical, lacks_gamma

# ----------------------------------------------------------------------
# The numbers that a paper prints, from the CSV files in its folder; our own numbers are stored
# elsewhere.


class Printed(float):
    """A printed number. `text` is its form in the paper, so that no digit is added or lost.

    decimals: the number of decimals to which it was rounded: those of the text, or more if trailing
    zeros are not written.
    """

    text: str
    decimals: int

    def __new__(cls, text: str, decimals: int = 0):
        number = super().__new__(cls, text)
        number.text = f"{int(text):,}" if text.isdigit() else text
        number.decimals = max(decimals, len(text.partition(".")[2]))
        return number


@lru_cache
def printed(package: str, table: str) -> dict[tuple[str, str, str, str], Printed]:
    """Printed numbers of one table, by (dataset, kernel, method, field); kernel and method are ""
    for a data set's size.

    They are in `printed.csv` of the paper's `package`, such as "rfx.papers.yen2014". Cells that are
    empty in the paper are missing.
    """
    return {
        (row["dataset"], row["kernel"], row["method"], row["field"]): Printed(row["value"])
        for row in _read(package, "printed")
        if row["table"] == table
    }


@lru_cache
def curves(package: str, name: str) -> list[dict]:
    """The points of a paper's curves, from NAME.csv of its package: numbers by column.

    dataset and method are text, and an empty field is None. The authors' plot data omit trailing
    zeros, so each number is assumed to have as many decimals as the longest of its data set and
    column.
    """
    rows = _read(package, name)
    longest: dict[tuple[str, str], int] = {}
    for row in rows:
        for column, text in row.items():
            key = row["dataset"], column
            longest[key] = max(longest.get(key, 0), len(text.partition(".")[2]))
    return [
        {
            column: text
            if column in ("dataset", "method")
            else Printed(text, longest[row["dataset"], column])
            if text
            else None
            for column, text in row.items()
        }
        for row in rows
    ]


def _read(package, name) -> list[dict[str, str]]:
    source = resources.files(package) / f"{name}.csv"
    return list(
        csv.DictReader(
            line
            for line in source.read_text(encoding="utf-8").splitlines()
            if not line.startswith("#")
        )
    )


# ----------------------------------------------------------------------
# Noise: runs that differ only in the seed, their mean and standard deviation, and the comparison
# with a printed number that it allows.

K = TypeVar("K")
V = TypeVar("V")
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


def grouped(pairs: Iterable[tuple[K, V]]) -> dict[K, list[V]]:
    """Key -> the values of its pairs, both in their order."""
    groups: dict[K, list[V]] = {}
    for key, value in pairs:
        groups.setdefault(key, []).append(value)
    return groups


class Mean(NamedTuple):
    """The mean of n values, the lowest, the highest, and their standard deviation with denominator
    n - 1, None for one value.
    """

    value: float
    sd: float | None
    n: int
    low: float
    high: float

    @property
    def around(self) -> tuple[float, float]:
        """One standard deviation below and above the mean."""
        return self.value - (self.sd or 0), self.value + (self.sd or 0)


def mean(values: Iterable[float | None]) -> Mean | None:
    """The mean of the values that are not None; None if there are none."""
    numbers = [value for value in values if value is not None]
    return mean_of(numbers) if numbers else None


def mean_of(values: Sequence[float]) -> Mean:
    """The mean of one or more values."""
    low, high, n = min(values), max(values), len(values)
    if low == high:
        return Mean(low, 0.0 if n > 1 else None, n, low, high)
    middle = statistics.fmean(values)
    sd = math.sqrt(math.fsum((value - middle) ** 2 for value in values) / (n - 1))
    return Mean(middle, sd, n, low, high)


def slope(xs: Iterable[float], ys: Iterable[float]) -> float:
    """The slope of the line through the points (x, y) in a log-log plot."""
    across, up = (np.log(np.array(list(values), float)) for values in (xs, ys))
    return float(np.polyfit(across, up, 1)[0])


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
    several = [size for size in sizes if size > 1]
    if not several:
        return ["Every cell is a single run, so its noise is not known."] if sizes else []
    counts = " to ".join(map(str, dict.fromkeys((min(several), max(several)))))
    single = "; a cell without ± is a single run" if 1 in sizes else ""
    return [f"Cells are means over {counts} seeds ± their standard deviation{single}.", LEGEND]


@lru_cache
def options_of(method: str) -> tuple[frozenset[str], Mapping]:
    """The names of a method's options, and their defaults; empty for an unknown method."""
    try:
        declared = methods.get(method)
    except UsageError:
        return frozenset(), {}
    return frozenset(declared.declared()) - {"seed", "timeout"}, declared.defaults()


def inputs(row: Mapping) -> dict:
    """The inputs of a row's run by name, without its seed: the requested values, such as
    ``validation``, rather than the chosen ones.
    """
    params, requested = row["params"], requested_of(row)
    options, _ = options_of(requested.get("method") or row["method"])
    values = {name: row.get(name) for name in _FIELDS}
    values |= {name: params.get(name) for name in _PARAMS}
    values |= {name: row.get(name) for name in ("lam", "n_features") if name in options}
    values |= {name: params[name] for name in params if name in options} | {**requested}
    if isinstance(values.get("gamma"), str) and lacks_gamma(row.get("kernel")):
        del values["gamma"]
    return {name: value for name, value in values.items() if value is not None}


def requested_of(row: Mapping) -> Mapping:
    """The requested values of a row's run if they differ from the row's; None for values that were
    not requested.

    A row of an early version has no such record. Its requested values are the words of the options
    for which its validation had several values.
    """
    params, (_, defaults) = row["params"], options_of(row["method"])
    if (recorded := params.get("asked")) is not None:
        return recorded
    words: dict = {}
    for step in params.get("validation") or ():
        for place, name in enumerate(step["options"]):
            tried, value = {str(values[place]) for values in step["tried"]}, params.get(name)
            # a word that was not tried, such as validation, is the requested value
            requested = isinstance(value, str) and value not in tried
            if len(tried) > 1 and name in defaults and not requested:
                default = defaults[name]
                words[name] = default if isinstance(default, str | None) else "validation"
    return words


def token(values: Mapping) -> str:
    """A text that is equal for inputs that `canonical` makes equal."""
    return json.dumps(canonical(values), sort_keys=True)


def variants(rows: Sequence[Mapping]) -> list[list]:
    """Groups of rows that differ only in the seed: in each the newest row per seed, ordered by
    seed. The groups made last come last.
    """
    groups: dict[str, dict] = {}
    for row in rows:
        name = token(inputs(row))
        groups[name] = groups.pop(name, {}) | {row["seed"]: row}
    order = lambda item: (item[0] is not None, item[0])
    return [[row for _, row in sorted(own.items(), key=order)] for own in groups.values()]
