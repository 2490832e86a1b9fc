"""The parts of a page: a table, a figure, or the reason why one of them is missing; and a table or
figure of a paper, built from the rows of its plan, once for every setting of these rows.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rfx.errors import RfxError
from rfx.plans import catalogue
from rfx.reporting import charts, figures, style
from rfx.reporting.builders import settings_of
from rfx.reporting.cells import Table
from rfx.reporting.report import grids, tally
from rfx.reporting.report.sources import Source

_LONG = 40  # a table with more lines is collapsed at first


@dataclass(frozen=True)
class Drawn:
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
    def grids(self) -> list[grids.Grid]:
        return [grids.of(section) for section in self.table.sections] if self.table else []

    @property
    def folded(self) -> bool:
        lines = sum(len(section.lines) for section in self.table.sections) if self.table else 0
        return lines > _LONG


@dataclass(frozen=True)
class Item:
    """A table and figure of a paper. name: such as yen2014-table1. parts: by setting. tally: of the
    first setting, including printed numbers without data.
    """

    name: str
    source: Source
    parts: list[Part]
    tally: Mapping[str, int]

    @property
    def heading(self) -> str:
        titles = [
            shown.title
            for kind in ("table", "figure")
            for part in self.parts
            if (shown := getattr(part, kind))
        ]
        return titles[0].partition("; setting: ")[0] if titles else self.name


def names(folder: catalogue.Folder) -> list[str]:
    """The tables and figures of a paper: tables first, each with the figure of the same name."""
    return sorted(
        {*folder.tables, *folder.figures},
        key=lambda name: ("table" not in name.partition("-")[2], name),
    )


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
    parts = [_part(table, figure, name, source.rows, setting, output) for setting in settings]
    tables = [part.table for part in parts if part.table]
    return Item(
        name,
        source,
        parts,
        tally.count(tables[0].compared) if tables else tally.of_nothing(table),
    )


def _part(table: Callable | None, figure: Callable | None, name, rows, setting, output) -> Part:
    part = Part()
    if table is not None:
        try:
            part.table = table(rows, setting)
        except RfxError as error:
            part.reasons.append(f"No table: {error}.")
    if figure is not None:
        try:
            part.figure = draw(
                figure, f"{name}-{setting}" if setting else name, rows, setting, output
            )
        except RfxError as error:
            part.reasons.append(f"No figure: {error}.")
    return part


def draw(builder: Callable, stem: str, rows, setting: str | None, output: Path) -> Drawn:
    """Draw the figure of a builder from rows, and write its files to `output`/figures."""
    with figures.styled():
        chart = builder(rows, setting)
        paths = figures.save(chart, charts.paint(chart), output / "figures" / stem)
    curves = ", ".join(style.written(label) for label in chart.labels) or "none"
    description = f"{chart.title}. Curves: {curves}. The numbers are in {paths[-1].name}."
    words = ["numbers, CSV" if path.suffix == ".csv" else path.suffix[1:].upper() for path in paths]
    files = [path.relative_to(output).as_posix() for path in paths]
    return Drawn(chart.title, description, list(zip(words, files)))
