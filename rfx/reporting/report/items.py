"""One table or figure of a paper on the page: built from the rows of its plan, once for every setting that they have."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from rfx.errors import RfxError
from rfx.plans import catalogue
from rfx.reporting import figures, style
from rfx.reporting.report import tally
from rfx.reporting.report.grids import Grid
from rfx.reporting.report.grids import of as grid_of
from rfx.reporting.report.sources import Source
from rfx.reporting.report.svg import Shelf
from rfx.reporting.tables import Table

_LONG = 40  # lines of a table that is folded away at first


@dataclass
class Drawn:
    """A figure: the <svg> element, title and notes, and the names of its files below the page's folder."""

    svg: str
    title: str
    notes: list[str]
    files: list[tuple[str, str]]


@dataclass
class Block:
    """One setting: its table and figure, or why there is none."""

    table: Table | None = None
    grids: list[Grid] = field(default_factory=list)
    figure: Drawn | None = None
    reasons: list[str] = field(default_factory=list)
    tally: dict[str, int] = field(default_factory=dict)

    @property
    def folded(self) -> bool:
        return sum(len(grid.lines) for grid in self.grids) > _LONG


@dataclass
class Item:
    """name: such as yen2014-table1; tally: of the first setting, with what of its printed numbers there is no data for."""

    name: str
    source: Source
    blocks: list[Block] = field(default_factory=list)
    tally: dict[str, int] = field(default_factory=dict)

    @property
    def heading(self) -> str:
        table = next((block.table for block in self.blocks if block.table), None)
        drawn = next((block.figure for block in self.blocks if block.figure), None)
        title = table.title.partition("; setting: ")[0] if table else drawn.title.partition("; setting: ")[0] if drawn else self.name
        return title


def names(folder: catalogue.Folder) -> list[str]:
    """The tables and figures of a paper: tables first, each with the figure of its name."""
    return sorted({*folder.tables, *folder.figures}, key=lambda name: ("table" not in name.partition("-")[2], name))


def plan_of(folder: catalogue.Folder, name: str) -> str:
    """The plan whose rows a table or figure is made of."""
    builder = folder.tables.get(name) or folder.figures[name]
    own = getattr(builder, "plan", None)
    return f"{folder.name}-{own}" if own else name


def build(folder: catalogue.Folder, name: str, source: Source, shelf: Shelf, output: Path) -> Item:
    """The table and the figure called `name`, for every setting; the figure's files are written below `output`."""
    table, figure = folder.tables.get(name), folder.figures.get(name)
    item = Item(name, source)
    alone = getattr(table or figure, "alone", False)
    if not source.rows and not alone:
        item.tally = tally.of_nothing(table) if table else tally.count([])
        return item
    for setting, built in _settings(table or figure, source.rows).items():
        item.blocks.append(_block(folder, name, source.rows, setting, built, shelf, output))
    item.tally = next((block.tally for block in item.blocks if block.table), None) or (
        tally.of_nothing(table) if table else tally.count([])
    )
    return item


def _settings(builder: Callable, rows) -> dict:
    """The settings of the rows that a table or figure knows, the one that it takes by itself first, and what is built of each.

    Of one without settings None, with None as what is built.
    """
    labels = dict.fromkeys(str(row["params"].get("label") or "") for row in rows if row["status"] == "ok")
    words = dict.fromkeys(word for label in labels for word in (label, label.partition("-")[2]) if word)
    known = {}
    with figures.styled():
        for word in words:
            try:
                known[word] = builder(rows, word)
            except RfxError:
                continue
    return known or {None: None}


def _block(folder, name, rows, setting, built, shelf, output) -> Block:
    """built: the table, or where there is none the figure, if it is there already."""
    block = Block()
    if name in folder.tables:
        try:
            block.table = folder.tables[name](rows, setting) if built is None else built
            block.grids = [grid_of(section) for section in block.table.sections]
            block.tally = tally.count(block.table.cells)
        except RfxError as error:
            block.reasons.append(f"No table: {error}.")
        built = None
    if name in folder.figures:
        try:
            block.figure = _draw(folder.figures[name], name, rows, setting, built, shelf, output)
        except RfxError as error:
            block.reasons.append(f"No figure: {error}.")
    return block


def _draw(builder, name, rows, setting, built, shelf, output) -> Drawn:
    stem = output / "figures" / (f"{name}-{setting}" if setting else name)
    with figures.styled():
        figure = builder(rows, setting) if built is None else built
        paths = figures.save(figure, stem)
        title, notes = style.caption(figure)
        described = f"{title}. Curves: {', '.join(_curves(figure)) or 'none'}. The numbers are in {paths[-1].name}."
        svg = shelf.inline(figure, f"f-{stem.name}", title, described)
    files = [({"figure.csv": "numbers, CSV"}.get(path.name.removeprefix(f"{stem.name}."), path.suffix[1:].upper()), path) for path in paths]
    return Drawn(svg, title, notes, [(words, path.relative_to(output).as_posix()) for words, path in files])


def _curves(figure) -> list[str]:
    labels = (style.written(text) for axes in figure.axes for text in axes.get_legend_handles_labels()[1])
    return list(dict.fromkeys(labels))
