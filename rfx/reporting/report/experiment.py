"""The page of an arbitrary results file: means over seeds with paired tests, ranks over data sets,
the figures that its rows allow, and errors.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from rfx.errors import DataError, UsageError
from rfx.records import traces
from rfx.records.result import Result
from rfx.reporting import columns, figures_general, tables
from rfx.reporting.cells import Section
from rfx.reporting.measures import good
from rfx.reporting.report import page, sources
from rfx.reporting.report.page import Part

_FIGURES = {
    "pareto": "Score against training time",
    "lambda": "Along lambda",
    "features": "Against size",
    "grid": "Over a grid of two options",
    "tune": "Search over bandwidth and lambda",
}
_STATUSES = {"ok": "done", "timeout": "timed out", None: "without a status"}
# Maximum rows that a page lists individually.
_MOST_LISTED = 2000


def write(path, output, force: bool = False) -> Path:
    """Write OUTPUT/index.html and OUTPUT/figures/ from the results file `path`, and return the path
    of the page.

    Raises DataError for a file that can't be read or has no rows, and the errors of `page.put`.
    """
    path, output = Path(path), Path(output)
    source = sources.read(path)
    if source.path is None:
        raise DataError(f"{path}: there is no such results file; rfx run --results writes one")
    if source.refused:
        raise DataError(source.refused)
    # of several rows with the same key the last one
    last = {row["key"] or place: place for place, row in enumerate(source.rows)}
    rows = [source.rows[place] for place in sorted(last.values())]
    if not rows:
        raise DataError(f"{path} has no rows yet; rfx run --results adds some")
    counts = Counter(_STATUSES.get(row["status"], row["status"]) for row in rows)
    counts["not converged"] = sum(row["converged"] is False for row in good(rows))
    outcomes = (
        (status, row["dataset"].partition(":")[0], columns.method(row), reason)
        for row in rows
        for status, reason in sources.ends(row)
    )
    troubles = sorted(sources.groups_of(outcomes), key=lambda group: group[1:])

    def render() -> str:
        return page.rendered(
            "experiment.html",
            [source],
            name=path.name,
            lead=_lead(rows),
            counts=[(words, n) for words, n in counts.items() if n],
            parts=list(_parts(rows, output)),
            troubles=troubles,
            torn=source.torn,
        )

    inputs = [("the results", path), ("the traces", traces.beside(path))]
    return page.put(output, render, inputs, force)


def _lead(rows: Sequence[Result]) -> str:
    """The counts in the first sentence of the page."""
    values = {
        "run": range(len(rows)),
        "data set": {row["dataset"] for row in rows},
        "method": set(map(columns.method, rows)),
        "seed": {row["seed"] for row in rows} - {None},
    }
    runs, *others = (
        f"{len(of):,} {word}{'s' * (len(of) != 1)}" for word, of in values.items() if of
    )
    return f"{runs}: {', '.join(others)}."


def _parts(rows: Sequence[Result], output: Path) -> Iterator[Part]:
    """The parts of the page, in order."""
    done = good(rows)
    datasets = dict.fromkeys(row["dataset"] for row in done)
    if len(datasets) > 1:
        yield from _table("ranks", "Ranks over the data sets", done, mean_over="dataset,seed")
    for number, dataset in enumerate(datasets):
        own = [row for row in done if row["dataset"] == dataset]
        for part in _table(f"data-{number}", dataset, own, mean_over="seed"):
            assert part.table is not None
            sections = [_of_one(section, dataset) for section in part.table.sections]
            yield replace(part, table=replace(part.table, sections=sections))
    for name, heading in _FIGURES.items():
        yield from _figure(name, heading, done, output)
    if len(rows) <= _MOST_LISTED:
        yield from _table("rows", "All runs", rows)
    else:
        reason = f"{len(rows):,} runs are too many for a page; rfx table summary lists them."
        yield Part("rows", "All runs", reasons=[reason])


def _of_one(section: Section, dataset: str) -> Section:
    """The section without the column of the data set, which all its lines share."""
    heads, lines = section.columns[1:], [line[1:] for line in section.lines]
    return Section(section.title, heads, lines, section.n_labels - 1, dataset.partition(":")[0])


def _table(name: str, heading: str, rows: Sequence[Result], **more) -> Iterator[Part]:
    """A summary of rows; nothing if they lack the required columns."""
    try:
        part = Part(name, heading, tables.build("summary", rows, **more))
    except UsageError:
        return
    if part.grids[0]["lines"]:
        yield part


def _figure(name: str, heading: str, rows: Sequence[Result], output: Path) -> Iterator[Part]:
    """A figure of rows, or the reason why it can't be drawn; nothing if they lack the required
    values.
    """

    def make() -> dict | None:
        try:
            return page.draw(figures_general.FIGURES[name], name, rows, None, output)
        except DataError:
            return None

    part = Part(name, heading)
    part.add("figure", make)
    if part.figure or part.reasons:
        yield part
