"""The contents of a table as values: cells with their numbers, sections of cells, and the table;
and the builders of tables and figures. `tables` writes tables.

A number is kept as computed, with its reference value and the outcome of the comparison. Text,
HTML, LaTeX, the tidy CSV and JSON, and the counts of the report are derived from the same cells, so
that no text is parsed again.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence, Sized
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, TypeVar

from rfx.errors import DataError, UsageError, plain
from rfx.reporting.seeds import UNJUDGED, Mean, mean

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


def mean_cell(
    quantity: Callable[[Any], float | None],
    write: Callable[[float], str],
    around: Around = "",
    **more: Any,
) -> Callable[[Iterable[Any]], Cell]:
    """A function of rows that makes the cell of a quantity: its mean over them."""
    return lambda rows: Cell(mean(map(quantity, rows)), write, around, **more)


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
    methods: Mapping[Any, str] = field(default_factory=dict)


def grid(
    title: str,
    columns: Mapping[str, Callable[[Any], Cell]],
    records: Iterable[Any],
    n_labels: int = 1,
    **more: Any,
) -> Section:
    """A section with a line for each record, whose cells the columns make of it."""
    lines = [[cell(record) for cell in columns.values()] for record in records]
    return Section(title, list(columns), lines, n_labels, **more)


def crossed(
    cells: Mapping[Any, Cell], columns: Mapping[str, Any]
) -> dict[str, Callable[[Any], Cell]]:
    """The columns of a grid whose cells are stored by line and column: of each heading, the last
    entries of its keys.
    """
    cell_of = lambda column: (
        lambda line: cells[*line, column] if isinstance(line, tuple) else cells[line, column]
    )
    return {heading: cell_of(column) for heading, column in columns.items()}


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
    cells: Sequence[dict]
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

    def __call__(self, rows: Sequence[Mapping[str, Any]], setting: str | None = None):
        """Build it from rows: of the requested setting, else of the first one whose label some row
        has, else of the first. Raises UsageError for an unknown setting.
        """
        if setting and setting not in self.settings:
            there = ", ".join(self.settings) or "no settings"
            raise UsageError(f"--setting {setting}: {self.name} has {there}")
        if not self.settings:
            return self.make(rows)
        labels = {row["params"].get("label") for row in rows}
        present = [name for name, label in self.settings.items() if label in labels]
        return self.make(rows, setting or next(iter([*present, *self.settings])))


def needed(found: T, plan: str, what: str = "finished rows") -> T:
    """What is found in the rows of a plan. Raises DataError if that is nothing."""
    if not found:
        raise DataError(f"the results file has no {what} of {plan}; rfx run {plan} makes them")
    return found


def settings_of(builder: Callable | None, rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """The settings of a builder for which there are rows of successful runs, in the order of the
    rows; of two settings of the same rows the first.
    """
    settings = getattr(builder, "settings", {})
    by_label = {label: setting for setting, label in reversed(settings.items())}
    labels = dict.fromkeys(row["params"].get("label") for row in rows if row["status"] == "ok")
    return [by_label[label] for label in labels if label in by_label]


def cleaned(text: str) -> str:
    """A text in one line, with control characters escaped."""
    return plain(" ".join(text.splitlines()).replace("\t", " "))


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
