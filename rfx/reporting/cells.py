"""What tables and figures are made of: rows, the numbers that papers print, means over seeds and
their comparison with these numbers, and the contents of a table as values: cells, sections of
cells, and the table; and the builders of tables and figures. `tables` writes tables.

A number is kept as computed, with its reference value and the outcome of the comparison. Text,
HTML, LaTeX, the tidy CSV and JSON, and the counts of the report are derived from the same cells, so
that no text is parsed again.
"""

import csv
import json
import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence, Sized
from dataclasses import dataclass, field, fields
from functools import lru_cache
from importlib import resources
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, TypeVar

import numpy as np
from scipy.special import stdtrit

from rfx import lazy, methods
from rfx.errors import DataError, UsageError
from rfx.records.keys import canonical, lacks_gamma
from rfx.records.run import Result

if TYPE_CHECKING:
    from pandas import DataFrame

# ----------------------------------------------------------------------
# Rows.

Row: TypeAlias = Result
# A line of a table by the names of its columns, such as one of CSV and JSON.
Line: TypeAlias = dict[str, Any]


def good(rows: Iterable[Row]) -> list[Row]:
    """The rows of successful runs."""
    return [row for row in rows if row.status == "ok"]


def labelled(rows: Iterable[Row], *labels: str) -> list[Row]:
    """The rows with one of these labels, including failed ones."""
    return [row for row in rows if row.params.get("label") in labels]


def width(row: Row) -> float | None:
    """The bandwidth gamma in use, also if it was chosen; None for a kernel without one."""
    return row.params.gamma


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
    points: list[dict] = []
    for row in rows:
        point: dict = dict(row)
        for column in row.keys() - {"dataset", "method"}:
            text = row[column]
            point[column] = Printed(text, longest[row["dataset"], column]) if text else None
        points.append(point)
    return points


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
_PARAMS = ("label", "test", "target", "ignore", "missing", "content")
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


def grouped_by(items: Iterable[V], *key: Any) -> dict[Any, list[V]]:
    """The items by a function of them, or by the attributes of these names, in their order."""
    of = key[0] if callable(key[0]) else attrgetter(*key)
    return grouped((of(item), item) for item in items)


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


def mean_if_any(values: Iterable[float | None]) -> Mean | None:
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


def log_slope(xs: Iterable[float], ys: Iterable[float]) -> float:
    """The slope of the line through the points (x, y) in a log-log plot."""
    across, up = (np.log(np.array(list(values), float)) for values in (xs, ys))
    return float(np.polyfit(across, up, 1)[0])


def verdict_of(
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


def inputs_of(row: Row) -> dict:
    """The inputs of a row's run by name, without its seed: the requested values, such as
    ``validation``, rather than the chosen ones.
    """
    params, requested = row.params, requested_of(row)
    options, _ = options_of(requested.get("method") or row.method)
    values = {name: row.get(name) for name in _FIELDS}
    values |= {name: params.get(name) for name in _PARAMS}
    values |= {name: row.get(name) for name in ("lam", "n_features") if name in options}
    values |= {name: params[name] for name in params if name in options} | {**requested}
    if isinstance(values.get("gamma"), str) and lacks_gamma(row.kernel):
        del values["gamma"]
    return {name: value for name, value in values.items() if value is not None}


def requested_of(row: Row) -> Mapping:
    """The requested values of a row's run if they differ from the row's; None for values that were
    not requested.

    A row of an early version has no such record. Its requested values are the words of the options
    for which its validation had several values.
    """
    recorded = row.params.get("asked")
    if recorded is not None:
        return recorded
    _, defaults = options_of(row.method)
    words: dict = {}
    for choice in row.params.choices:
        for place, name in enumerate(choice.options):
            tried = {str(values[place]) for values in choice.tried}
            value = row.params.get(name)
            # a word that was not tried, such as validation, is the requested value
            is_requested = isinstance(value, str) and value not in tried
            if len(tried) > 1 and name in defaults and not is_requested:
                default = defaults[name]
                words[name] = default if isinstance(default, str | None) else "validation"
    return words


def token(values: Mapping) -> str:
    """A text that is equal for inputs that `canonical` makes equal."""
    return json.dumps(canonical(values), sort_keys=True)


def variants(rows: Sequence[Row]) -> list[list]:
    """Groups of rows that differ only in the seed: in each the newest row per seed, ordered by
    seed. The groups made last come last.
    """
    groups: dict[str, dict] = {}
    for row in rows:
        name = token(inputs_of(row))
        groups[name] = groups.pop(name, {}) | {row.seed: row}
    return [sorted(own.values(), key=attrgetter("seed")) for own in groups.values()]


# ----------------------------------------------------------------------
# The contents of a table as values.

T = TypeVar("T", bound=Sized)
# What is written with a mean. "": nothing. "deviation": the standard deviation, with the decimals
# of the mean or to its first digit. "decimals": the standard deviation, always with the decimals of
# the mean. "extremes": "low to high" instead of the mean, if they differ. "range": "(low to high)"
# after the mean.
Around = Literal["", "deviation", "decimals", "extremes", "range"]


class Cell(NamedTuple):
    """One cell of a table: a measured number with its reference value and verdict, or plain text.

    Attributes
    ----------
    ours : Mean or None
        The number. For several runs: mean, standard deviation, count and range.
    write : callable
        Formats a number of this cell.
    around : str
        How the standard deviation or the range is written.
    paper : float or None
        The number that a paper prints or its authors published. A `Printed` keeps its digits.
    pair : bool
        Whether the paper's number, or a dash, is written next to ours.
    verdict : str or None
        Ours against the paper's: "better", "equal", "worse" or "undecided"; "differs" for a count;
        "no deviation" if ours has no standard deviation to judge by. None if there is no verdict.
    converged : bool or None
        False if a solver did not converge, None if this is unknown.
    best : bool
        Whether it is the best of its kind in the table.
    marked : bool
        Whether the text marks the verdict and a solver that did not converge.
    text : str or None
        Replaces the number: a name, or a word such as "never".
    note : str
        Written after the number.
    """

    ours: Mean | None = None
    write: Callable[[float], str] = str
    around: Around = ""
    paper: float | None = None
    pair: bool = False
    verdict: str | None = None
    converged: bool | None = None
    best: bool = False
    marked: bool = True
    text: str | None = None
    note: str = ""

    @property
    def value(self) -> float | None:
        """Our number without its spread."""
        return None if self.ours is None else self.ours.value

    @property
    def sd(self) -> float | None:
        """Its standard deviation over the runs."""
        return None if self.ours is None else self.ours.sd

    @property
    def outcome(self) -> str:
        """The outcome of the comparison: the verdict; "worse" if the number differs; "beside" if
        there is no verdict or no standard deviation; "none" without a number.
        """
        if self.ours is None:
            return "none"
        other = {None: "beside", UNJUDGED: "beside", "differs": "worse"}
        return other.get(self.verdict, self.verdict or "")


def words(text: str) -> Cell:
    """A cell of plain text."""
    return Cell(text=text)


def number(value: float | None, write: Callable[[float], str], **more) -> Cell:
    """A cell with a single number. more: further attributes of the cell."""
    return Cell(None if value is None else Mean(value, None, 1, value, value), write, **more)


# the text of a heading or a label, or the number of a column -> its method
Methods: TypeAlias = Mapping[str | int, str]


@dataclass
class Section:
    """A grid of cells under one title. `columns` are the headings of all columns; the first
    `n_labels` of them name the line.

    For filters on a page: dataset is the data set of all lines, if there is only one. methods maps
    the text of a heading or a label, or the number of a column, to its method.
    """

    title: str
    columns: Sequence[str]
    lines: Sequence[Sequence[Cell]]
    n_labels: int = 1
    dataset: str = ""
    methods: Methods = field(default_factory=dict)


# what a line of a table has in a column
Content: TypeAlias = Cell | Mean | str | float | None


class Format(NamedTuple):
    """How a table shows a column of a frame: its heading, how a number is written, and what is
    written with a mean.
    """

    heading: str
    write: Callable[[float], str] = str
    around: Around = ""


def shown(heading: str, write: Callable[[float], str] = str, around: Around = "") -> Any:
    """A field of a dataclass that is a line of a table: a column with this format."""
    return field(metadata={_FORMAT: Format(heading, write, around)})


_FORMAT = "format"


def formats_of(kind: type) -> dict[str, Format]:
    """The formats of the fields that are `shown`, in their order."""
    return {one.name: one.metadata[_FORMAT] for one in fields(kind) if _FORMAT in one.metadata}


def formatted(values: Iterable[Content], form: Format) -> list[Cell]:
    """Values of a column of a frame as cells: a mean and a number by their format, text and cells
    as they are, and an empty cell for a missing value.
    """
    return [_as_cell(value, form) for value in values]


def _as_cell(value: Content, form: Format) -> Cell:
    if isinstance(value, Cell):
        return value
    if isinstance(value, str):
        return words(value)
    if isinstance(value, Mean):
        return Cell(value, form.write, form.around)
    if value is None or math.isnan(value):
        return Cell()
    return number(value, form.write)


def section(
    title: str,
    lines: "Iterable[object] | DataFrame",
    columns: type | Mapping[str, Format],
    n_labels: int = 1,
    dataset: str = "",
    methods: Methods | None = None,
) -> Section:
    """A section with a line for each of a frame, of dataclasses or of dicts.

    columns: their formats in order, or the dataclass whose fields that are `shown` are the
    columns.
    """
    formats = formats_of(columns) if isinstance(columns, type) else columns
    frame = lines_of(lines, list(formats))
    cells = [formatted(frame[name], form) for name, form in formats.items()]
    headings = [form.heading for form in formats.values()]
    return Section(title, headings, list(zip(*cells)), n_labels, dataset, methods or {})


def lines_of(
    lines: "Iterable[object] | DataFrame", columns: Sequence[str] | None = None
) -> "DataFrame":
    """A frame of lines, which are dataclasses or dicts, with these columns, or all."""
    if not isinstance(lines, lazy.pandas.DataFrame):
        lines = map(_entries, lines)
    return lazy.pandas.DataFrame(lines, columns=columns, dtype=object)


def _entries(line: Any) -> Line:
    """The values of a line by the names of its columns."""
    return line if isinstance(line, dict) else vars(line)


def crossed(
    cells: "Iterable[object] | DataFrame", lines: Sequence[str], columns: str
) -> "DataFrame":
    """The values named `cell` as a frame with a line for each combination of `lines`, and a column
    for each value of `columns`, both in the order in which they come.
    """
    return lines_of(cells).pivot_table("cell", lines, columns, "first", sort=False).reset_index()


def with_paper(cells: Iterable[Cell]) -> list[Cell]:
    """The cells with a number of the paper."""
    return [cell for cell in cells if cell.paper is not None]


def means_of(
    rows: Sequence[Row], quantities: Mapping[str, Callable[[Row], float | None]]
) -> dict[str, Mean | None]:
    """The mean of each quantity over the rows that have it."""
    return {name: mean_if_any(map(of, rows)) for name, of in quantities.items()}


def tidy(lines: Iterable[object], *but: str, **same: object) -> list[Line]:
    """Lines of CSV and JSON, of dataclasses or dicts: entries that are the same in all lines, and
    those of each line but some; of a mean and a cell the value.
    """
    tidied = []
    for line in lines:
        own = {name: _plain(value) for name, value in _entries(line).items() if name not in but}
        tidied.append(same | own)
    return tidied


def _plain(value: object) -> object:
    return value.value if isinstance(value, (Mean, Cell)) else value


@dataclass
class Table:
    """The result of a builder: sections and notes to print, and the same numbers as tidy `cells`,
    the lines of CSV and JSON.

    compared: the cells with a printed number, including those of data sets that are not shown
    because they have no rows.
    """

    name: str
    title: str
    sections: list[Section]
    notes: list[str]
    cells: Sequence[Line]
    compared: list[Cell] = field(default_factory=list)


@dataclass(frozen=True)
class Builder:
    """A table or figure by its full name, such as wu2016-fig3.

    Attributes
    ----------
    make : function of rows, and of the setting if there are settings.
    settings : the available settings, each with the label of its rows.
    plan : the plan of its package that makes its rows, if its name differs.
    alone : it computes its own numbers and reads no results file.
    unrun : the cells with printed numbers if there are no runs.
    """

    name: str
    make: Callable
    settings: Mapping[str, str] = field(default_factory=dict)
    plan: str = ""
    alone: bool = False
    unrun: Callable[[], list[Cell]] = list

    def __call__(self, rows: Sequence[Row], setting: str | None = None):
        """Build it from rows: of the requested setting, else of the first one whose label some row
        has, else of the first. Raises UsageError for an unknown setting.
        """
        if setting and setting not in self.settings:
            there = ", ".join(self.settings) or "no settings"
            raise UsageError(f"--setting {setting}: {self.name} has {there}")
        if not self.settings:
            return self.make(rows)
        labels = {row.params.get("label") for row in rows}
        present = [name for name, label in self.settings.items() if label in labels]
        return self.make(rows, setting or next(iter([*present, *self.settings])))


def needed(found: T, plan: str, what: str = "finished rows") -> T:
    """What is found in the rows of a plan. Raises DataError if that is nothing."""
    if not found:
        raise DataError(f"the results file has no {what} of {plan}; rfx run {plan} makes them")
    return found


def settings_of(builder: Callable | None, rows: Sequence[Row]) -> list[str]:
    """The settings of a builder for which there are rows of successful runs, in the order of the
    rows; of two settings of the same rows the first.
    """
    settings = getattr(builder, "settings", {})
    by_label = {label: setting for setting, label in reversed(settings.items())}
    labels = dict.fromkeys(row.params.get("label") for row in rows if row.status == "ok")
    return [by_label[label] for label in labels if label in by_label]


DASH = "-"
# marks the best of its kind
BEST = "!"


def count(value: float) -> str:
    """18186 -> 18,186"""
    return f"{value:,.0f}"


def short(value: float) -> str:
    """Three significant digits, without an exponent for usual values: 0.0412, 2.59, 7,697."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def general(value: float) -> str:
    """The shortest form: 0.5, 1e-05."""
    return f"{value:g}"


def decimals(places: int) -> Callable[[float], str]:
    """A function that writes a number with this many decimals."""
    return f"{{:.{places}f}}".format


def span(values: Iterable[float | None], write: Callable[[float], str]) -> str:
    """0.3, or 0.1 to 1: the only known value, or the least and the largest; "" without any."""
    known = sorted(value for value in values if value is not None)
    return " to ".join(dict.fromkeys(map(write, (known[0], known[-1])))) if known else ""
