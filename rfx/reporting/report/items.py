"""One table or figure of a paper on the page: built from the rows of its plan, once for every
setting of these rows.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rfx.errors import RfxError
from rfx.plans import catalogue
from rfx.reporting import charts, figures, style
from rfx.reporting.builders import settings_of
from rfx.reporting.cells import Table
from rfx.reporting.report import tally
from rfx.reporting.report.grids import Grid
from rfx.reporting.report.grids import of as grid_of
from rfx.reporting.report.sources import Source
from rfx.reporting.report.svg import Shelf

LONG = 40  # a table with more lines is collapsed at first


@dataclass
class Drawn:
    """A figure: the <svg> element, title and notes, and the names of its files relative to the
    page's folder.
    """

    svg: str
    title: str
    notes: list[str]
    files: list[tuple[str, str]]


@dataclass
class Block:
    """One setting: its table and figure, or the reason why they are missing."""

    table: Table | None = None
    grids: list[Grid] = field(default_factory=list)
    figure: Drawn | None = None
    reasons: list[str] = field(default_factory=list)
    tally: dict[str, int] = field(default_factory=dict)

    @property
    def folded(self) -> bool:
        return sum(len(grid.lines) for grid in self.grids) > LONG


@dataclass
class Item:
    """name: such as yen2014-table1. tally: of the first setting, including printed numbers without
    data.
    """

    name: str
    source: Source
    blocks: list[Block] = field(default_factory=list)
    tally: dict[str, int] = field(default_factory=dict)

    @property
    def heading(self) -> str:
        table = next((block.table for block in self.blocks if block.table), None)
        drawn = next((block.figure for block in self.blocks if block.figure), None)
        title = (
            table.title.partition("; setting: ")[0]
            if table
            else drawn.title.partition("; setting: ")[0]
            if drawn
            else self.name
        )
        return title


def names(folder: catalogue.Folder) -> list[str]:
    """The tables and figures of a paper: tables first, each with the figure of the same name."""
    return sorted(
        {*folder.tables, *folder.figures},
        key=lambda name: ("table" not in name.partition("-")[2], name),
    )


def plan_of(folder: catalogue.Folder, name: str) -> str:
    """The plan whose rows a table or figure shows."""
    own = getattr(folder.tables.get(name) or folder.figures[name], "plan", "")
    return f"{folder.name}-{own}" if own else name


def build(folder: catalogue.Folder, name: str, source: Source, shelf: Shelf, output: Path) -> Item:
    """The table and the figure called `name`, for every setting. The files of the figure are
    written to `output`.
    """
    table, figure = folder.tables.get(name), folder.figures.get(name)
    item = Item(name, source)
    if source.rows or getattr(table or figure, "alone", False):
        settings: Sequence[str | None] = settings_of(table or figure, source.rows) or (None,)
        for setting in settings:
            item.blocks.append(_block(folder, name, source.rows, setting, shelf, output))
    item.tally = next(
        (block.tally for block in item.blocks if block.table), tally.of_nothing(table)
    )
    return item


def _block(folder, name, rows, setting, shelf, output) -> Block:
    block = Block()
    if name in folder.tables:
        try:
            block.table = folder.tables[name](rows, setting)
            block.grids = [grid_of(section) for section in block.table.sections]
            block.tally = tally.count(block.table.compared)
        except RfxError as error:
            block.reasons.append(f"No table: {error}.")
    if name in folder.figures:
        try:
            block.figure = draw(folder.figures[name], name, rows, setting, shelf, output)
        except RfxError as error:
            block.reasons.append(f"No figure: {error}.")
    return block


def draw(builder, name, rows, setting, shelf, output) -> Drawn:
    """Draw the figure of a builder from rows, and write its files to `output`."""
    stem = output / "figures" / (f"{name}-{setting}" if setting else name)
    with figures.styled():
        chart = builder(rows, setting)
        figure = charts.paint(chart)
        paths = figures.save(chart, figure, stem)
        curves = ", ".join(style.written(label) for label in chart.labels)
        described = (
            f"{chart.title}. Curves: {curves or 'none'}. The numbers are in {paths[-1].name}."
        )
        svg = shelf.inline(figure, f"f-{stem.name}", chart.title, described)
    files = [
        (
            {"figure.csv": "numbers, CSV"}.get(
                path.name.removeprefix(f"{stem.name}."), path.suffix[1:].upper()
            ),
            path,
        )
        for path in paths
    ]
    return Drawn(
        svg,
        chart.title,
        list(chart.notes),
        [(words, path.relative_to(output).as_posix()) for words, path in files],
    )
