"""The parts of a page: a table, a figure, or the reason why one of them is missing; a table or
figure of a paper, built from the rows of its plan, once for every setting of these rows; and a
section of a table as rows of a page.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from rfx import methods
from rfx.errors import RfxError
from rfx.plans import catalogue
from rfx.reporting import charts, figures, style
from rfx.reporting.builders import settings_of
from rfx.reporting.cells import Cell, Section, Table
from rfx.reporting.report.sources import Source
from rfx.reporting.tables_render import Parts, parts, text

_LONG = 40  # a table with more lines is collapsed at first
# the outcomes of the cells with a printed number
KINDS = {
    "equal": "reproduced: equivalent to the printed number within the margin",
    "better": "better than the printed number",
    "worse": "worse, or a count that differs",
    "undecided": "neither equivalent nor different by the seeds that were run",
    "beside": (
        "beside the printed number, not compared: a single run, or runs that are all the same, have"
        " no known noise, and seconds are of another machine"
    ),
    "none": "no data of ours",
}


class Shown(NamedTuple):
    """One cell: its text in parts. label: it names the line; again: the line above has the same
    label. method: the method of its number.
    """

    parts: Parts
    label: bool = False
    again: bool = False
    method: str = ""


class Line(NamedTuple):
    """A line of a grid; the data set and method are for filters."""

    cells: list[Shown]
    dataset: str = ""
    method: str = ""


class Grid(NamedTuple):
    """A section prepared for a page: heads are (text, method) of each column."""

    title: str
    heads: list[tuple[str, str]]
    lines: list[Line]
    n_labels: int
    dataset: str = ""


def grid(section: Section) -> Grid:
    """Prepare `section` for a page."""
    n_labels, by_name = section.n_labels, section.methods
    of_columns = [
        by_name.get(place) or by_name.get(head, "") for place, head in enumerate(section.columns)
    ]
    titles = {**dict(zip(methods.names(), methods.names())), **by_name}
    lines: list[Line] = []
    above = [""] * n_labels
    for cells in section.lines:
        named = dict(zip(section.columns, map(text, cells)))
        texts = [text(cell) for cell in cells[:n_labels]]
        labels = [label or before for label, before in zip(texts, above)]
        shown = [
            Shown(Parts(label), True, not label_text and bool(before))
            for label, label_text, before in zip(labels, texts, above)
        ]
        numbers = zip(cells[n_labels:], of_columns[n_labels:])
        shown += [Shown(parts(cell), method=method) for cell, method in numbers]
        dataset = named.get("data set", "").partition(":")[0] or section.dataset
        method = named.get("method", "").partition(" (")[0]
        words = (method, *(label for label in labels if label in by_name))
        lines.append(
            Line(shown, dataset, next((titles[one] for one in words if one in titles), ""))
        )
        above = labels
    heads = list(zip(section.columns, of_columns))
    return Grid(section.title, heads, lines, n_labels, section.dataset)


def tally(cells: Iterable[Cell]) -> Mapping[str, int]:
    """The number of cells of each of KINDS."""
    counts = Counter(cell.outcome for cell in cells)
    return {kind: counts[kind] for kind in KINDS}


class Drawn(NamedTuple):
    """A figure: its title, a description in words, and (words, name) of its files relative to the
    page's folder.
    """

    title: str
    description: str
    files: list[tuple[str, str]]


@dataclass
class Part:
    """A table and a figure of the same rows, or the reasons why they are missing."""

    name: str = ""
    heading: str = ""
    table: Table | None = None
    figure: Drawn | None = None
    reasons: list[str] = field(default_factory=list)

    @property
    def grids(self) -> list[Grid]:
        return [grid(section) for section in self.table.sections] if self.table else []

    @property
    def folded(self) -> bool:
        return sum(len(one.lines) for one in self.grids) > _LONG


class Item(NamedTuple):
    """A table and figure of a paper. name: such as yen2014-table1. parts: by setting. tally: of the
    first setting, including printed numbers without data.
    """

    name: str
    source: Source
    parts: list[Part]
    tally: Mapping[str, int]

    @property
    def heading(self) -> str:
        shown = [part.table for part in self.parts] + [part.figure for part in self.parts]
        titles = [one.title for one in shown if one]
        return titles[0].partition("; setting: ")[0] if titles else self.name


def names(folder: catalogue.Folder) -> list[str]:
    """The tables and figures of a paper: tables first, each with the figure of the same name."""
    order = lambda name: ("table" not in name.partition("-")[2], name)
    return sorted({*folder.tables, *folder.figures}, key=order)


def plan_of(folder: catalogue.Folder, name: str) -> str:
    """The plan whose rows a table or figure shows."""
    plan = getattr(folder.tables.get(name) or folder.figures[name], "plan", "")
    return f"{folder.name}-{plan}" if plan else name


def build(folder: catalogue.Folder, name: str, source: Source, output: Path) -> Item:
    """The table and the figure called `name`, for every setting. The files of the figure are
    written to `output`.
    """
    table, figure = folder.tables.get(name), folder.figures.get(name)
    settings: Sequence[str | None] = ()
    if source.rows or getattr(table or figure, "alone", False):
        settings = settings_of(table or figure, source.rows) or (None,)
    made = []
    for setting in settings:
        part = Part()
        stem = f"{name}-{setting}" if setting else name
        try:
            part.table = table and table(source.rows, setting)
        except RfxError as error:
            part.reasons.append(f"No table: {error}.")
        try:
            part.figure = figure and draw(figure, stem, source.rows, setting, output)
        except RfxError as error:
            part.reasons.append(f"No figure: {error}.")
        made.append(part)
    built = [part.table.compared for part in made if part.table]
    # without rows its printed numbers, all without data
    return Item(name, source, made, tally(built[0] if built else getattr(table, "unrun", list)()))


def draw(builder: Callable, stem: str, rows: Any, setting: str | None, output: Path) -> Drawn:
    """Draw the figure of a builder from rows, and write its files to `output`/figures."""
    with figures.styled():
        chart = builder(rows, setting)
        paths = figures.save(chart, charts.paint(chart), output / "figures" / stem)
    curves = ", ".join(style.written(label) for label in chart.labels) or "none"
    description = f"{chart.title}. Curves: {curves}. The numbers are in {paths[-1].name}."
    words = ["numbers, CSV" if path.suffix == ".csv" else path.suffix[1:].upper() for path in paths]
    files = [path.relative_to(output).as_posix() for path in paths]
    return Drawn(chart.title, description, list(zip(words, files)))
