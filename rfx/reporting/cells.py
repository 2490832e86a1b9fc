"""What a table holds, as values: cells with their numbers, sections of cells, and the table;
`tables_render` writes them.

A number is kept as it was computed, beside what it is compared with and what came of it. Texts,
HTML, LaTeX, the tidy CSV and JSON and the report's counts are made of the same cells, so that no
text is ever read back.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal, NamedTuple

from rfx.reporting.seeds import UNJUDGED, Mean

# What is written around a mean: nothing; its deviation in its decimals, or the first digit of that;
# the same in its decimals always; "low to high" in its place where those differ; "(low to high)"
# after it.
Around = Literal["", "deviation", "decimals", "extremes", "range"]


class Cell(NamedTuple):
    """One cell of a table: a number of ours, what it is compared with and what can be said of it,
    or plain text.

    Attributes
    ----------
    ours : Mean or None
        The number, of several runs their mean with deviation, count and range.
    write : callable
        Writes a number of this cell.
    around : str
        What of the deviation or the range is written.
    paper : float or None
        The number that a paper prints or its authors published; a `Printed` keeps its digits.
    pair : bool
        Whether the paper's number, or a dash, is written beside ours.
    verdict : str or None
        Ours against the paper's: "better", "equal", "worse" or "undecided"; "differs" for a count;
        "no deviation" where ours has none to judge by. None where there is no verdict.
    converged : bool or None
        False where a solver did not converge; None where that is not known.
    best : bool
        Whether it is the best of its kind in the table.
    marked : bool
        Whether the text marks the verdict and a solver that did not converge.
    text : str or None
        Stands in place of a number: a name, or a word such as "never".
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
        """The number of ours alone."""
        return None if self.ours is None else self.ours.value

    @property
    def sd(self) -> float | None:
        """Its standard deviation over the runs."""
        return None if self.ours is None else self.ours.sd

    @property
    def outcome(self) -> str:
        """What came of the comparison: the verdict, "worse" for what differs, "beside"
        where there is none or no deviation, "none" without a number.
        """
        if self.ours is None:
            return "none"
        other = {None: "beside", UNJUDGED: "beside", "differs": "worse"}
        return other.get(self.verdict, self.verdict or "")


@lru_cache(4096)
def words(text: str) -> Cell:
    """A cell of plain text."""
    return Cell(text=text)


def number(value: float | None, write: Callable[[float], str], **more) -> Cell:
    """A cell of a single number; more: the cell's other attributes."""
    return Cell(None if value is None else Mean(value, None, 1, value, value), write, **more)


@dataclass
class Section:
    """A grid of cells under one title; `columns` heads every column, the first `n_labels` of them
    name the line.

    For a page that filters: dataset, the one data set of all lines, where there is one; methods:
    the text of a heading or of a label, or the number of a column, to the method that it is of.
    """

    title: str
    columns: Sequence[str]
    lines: Sequence[Sequence[Cell]]
    n_labels: int = 1
    dataset: str = ""
    methods: Mapping[Any, str] = field(default_factory=dict)


@dataclass
class Table:
    """What a builder returns: sections and notes to print, and the same numbers as tidy `cells`,
    the lines of CSV and JSON.

    compared: the cells that stand beside a printed number, of data sets that are not printed for
    want of rows, too.
    """

    name: str
    title: str
    sections: list[Section]
    notes: list[str]
    cells: Sequence[dict]
    compared: list[Cell] = field(default_factory=list)


DASH = "-"
# written after the best of its kind
BEST = "!"


def count(value: float) -> str:
    """18186 -> 18,186"""
    return f"{value:,.0f}"


def short(value: float) -> str:
    """Three digits that count, without exponent for what a table holds: 0.0412, 2.59, 7,697."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def general(value: float) -> str:
    """As short as it can be: 0.5, 1e-05."""
    return f"{value:g}"


def decimals(places: int) -> Callable[[float], str]:
    """What writes a number with so many decimals."""
    return f"{{:.{places}f}}".format
