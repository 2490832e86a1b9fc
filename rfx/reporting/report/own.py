"""The page of an arbitrary results file: means over seeds with paired tests, ranks over data sets,
the figures that its rows allow, and errors.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, cast

from rfx.errors import DataError, RfxError, UsageError
from rfx.records import traces
from rfx.reporting import figures_general, tables
from rfx.reporting.cells import Table
from rfx.reporting.report import grids, items, page, sources
from rfx.reporting.report.svg import Shelf
from rfx.runs import baseline

_FIGURES = {
    "pareto": "Score against training time",
    "lambda": "Along lambda",
    "features": "Against size",
    "grid": "Over a grid of two options",
    "tune": "Search over bandwidth and lambda",
}
# Maximum rows that a page lists individually.
_MOST_LISTED = 2000


@dataclass
class Item:
    """One part of the page: a table, a figure, or the reason why it is missing."""

    id: str
    heading: str
    table: Table | None = None
    grid: grids.Grid | None = None
    figure: items.Drawn | None = None
    reason: str = ""

    @property
    def folded(self) -> bool:
        return self.grid is not None and len(self.grid.lines) > items.LONG


class Trouble(NamedTuple):
    """The outcome of runs without a good result."""

    dataset: str
    method: str
    what: str
    why: str


def write(path, output, force: bool = False) -> Path:
    """Write OUTPUT/index.html and OUTPUT/figures/ from the results file `path`, and return the path
    of the page.

    Raises DataError for a file that can't be read or has no rows, and the errors of `page.put`.
    """
    path, output = Path(path), Path(output)
    source = sources.read(path, False)
    if source.path is None:
        raise DataError(f"{path}: there is no such results file; rfx run --results writes one")
    if source.refused:
        raise DataError(source.refused)
    rows = _newest(source.rows)
    if not rows:
        raise DataError(f"{path} has no rows yet; rfx run --results adds some")

    def made(shelf: Shelf) -> str:
        more = {
            "name": path.name,
            "lead": _lead(rows),
            "counts": _counts(rows),
            "items": list(_items(rows, shelf, output)),
            "troubles": sorted(_troubles(rows).items()),
            "torn": source.torn,
        }
        return page.rendered("own.html", [source], shelf, more)

    inputs = [("the results", path), ("the traces", traces.beside(path))]
    return page.put(output, made, inputs, force)


def _newest(rows: list) -> list:
    """Of several rows with the same key the last one, in the order of the file."""
    last = {row["key"]: place for place, row in enumerate(rows) if row["key"]}
    return [row for place, row in enumerate(rows) if not row["key"] or last[row["key"]] == place]


def _lead(rows) -> str:
    """The counts in the first sentence of the page."""
    several = [
        ("data set", {row["dataset"] for row in rows}),
        ("method", {row["method"] for row in rows}),
        ("seed", {row["seed"] for row in rows if row["seed"] is not None}),
    ]
    words = [f"{len(found):,} {word}{'s' * (len(found) != 1)}" for word, found in several if found]
    return f"{len(rows):,} run{'s' * (len(rows) != 1)}: {', '.join(words)}."


def _counts(rows) -> list[tuple[str, int]]:
    """The statuses of the runs, in words, with their counts."""
    words = {"ok": "done", "timeout": "timed out", None: "without a status"}
    found = Counter(words.get(row["status"], row["status"]) for row in rows)
    found["not converged"] = sum(
        row["status"] == "ok" and row["converged"] is False for row in rows
    )
    return [(word, n) for word, n in found.items() if n]


def _items(rows, shelf: Shelf, output: Path) -> Iterator[Item]:
    """The parts of the page, in order."""
    good = [row for row in rows if row["status"] == "ok"]
    by_data: dict[str, list] = {}
    for row in good:
        by_data.setdefault(row["dataset"], []).append(row)
    if len(by_data) > 1:
        yield from _table("ranks", "Ranks over the data sets", good, mean_over="dataset,seed")
    for number, (dataset, own) in enumerate(by_data.items()):
        yield from _table(f"data-{number}", dataset, own, mean_over="seed")
    for name, heading in _FIGURES.items():
        yield from _figure(name, heading, good, shelf, output)
    if len(rows) <= _MOST_LISTED:
        yield from _table("rows", "All runs", rows)
    else:
        reason = f"{len(rows):,} runs are too many for a page; rfx table summary lists them."
        yield Item("rows", "All runs", reason=reason)


def _table(name: str, heading: str, rows, **more) -> Iterator[Item]:
    """A summary of rows; nothing if they lack the required columns."""
    try:
        table = tables.build("summary", rows, **more)
    except UsageError:
        return
    grid = grids.of(table.sections[0])
    if grid.lines:
        yield Item(name, heading, table, grid)


def _figure(name: str, heading: str, rows, shelf: Shelf, output: Path) -> Iterator[Item]:
    """A figure of rows; nothing if they lack the required values."""
    builder = cast(Callable, figures_general.FIGURES[name])
    try:
        yield Item(name, heading, figure=items.draw(builder, name, rows, None, shelf, output))
    except DataError:
        return
    except RfxError as error:
        yield Item(name, heading, reason=f"No figure: {error}.")


def _troubles(rows) -> dict[Trouble, int]:
    """The runs without a good result, by outcome."""
    found: Counter[Trouble] = Counter()
    for row in rows:
        where = row["dataset"].partition(":")[0], row["method"]
        if row["status"] != "ok":
            why = row["message"] or "no reason was written"
            found[Trouble(*where, row["status"] or "interrupted", why)] += 1
            continue
        if row["converged"] is False:
            ended = row["params"].get("ended") or "not converged"
            found[Trouble(*where, "not converged", f"the solver ended as {ended}")] += 1
        if words := baseline.no_better(row):
            found[Trouble(*where, "no better than a constant", words)] += 1
    return found
