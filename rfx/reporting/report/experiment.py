"""The page of an arbitrary results file: means over seeds with paired tests, ranks over data sets,
the figures that its rows allow, and errors.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from rfx.errors import DataError, RfxError, UsageError
from rfx.records import traces
from rfx.records.result import Result
from rfx.reporting import columns, figures_general, tables
from rfx.reporting.report import page, parts, sources
from rfx.reporting.report.parts import Part

_FIGURES = {
    "pareto": "Score against training time",
    "lambda": "Along lambda",
    "features": "Against size",
    "grid": "Over a grid of two options",
    "tune": "Search over bandwidth and lambda",
}
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

    def render() -> str:
        return page.rendered(
            "experiment.html",
            [source],
            name=path.name,
            lead=_lead(rows),
            counts=_counts(rows),
            parts=list(_parts(rows, output)),
            troubles=sorted(_troubles(rows), key=lambda group: group[1:]),
            torn=source.torn,
        )

    inputs = [("the results", path), ("the traces", traces.beside(path))]
    return page.put(output, render, inputs, force)


def _lead(rows: Sequence[Result]) -> str:
    """The counts in the first sentence of the page."""
    values = {
        "data set": {row["dataset"] for row in rows},
        "method": set(map(columns.method, rows)),
        "seed": {row["seed"] for row in rows} - {None},
    }
    counts = {word: len(present) for word, present in values.items()}
    words = [f"{n:,} {word}{'s' * (n != 1)}" for word, n in counts.items() if n]
    return f"{len(rows):,} run{'s' * (len(rows) != 1)}: {', '.join(words)}."


def _counts(rows: Sequence[Result]) -> list[tuple[str, int]]:
    """The statuses of the runs, in words, with their counts."""
    words = {"ok": "done", "timeout": "timed out", None: "without a status"}
    counts = Counter(words.get(row["status"], row["status"]) for row in rows)
    unconverged = sum(row["status"] == "ok" and row["converged"] is False for row in rows)
    return [*counts.items(), *[("not converged", unconverged)] * bool(unconverged)]


def _troubles(rows: Sequence[Result]) -> list[sources.Group]:
    """The runs without a good result, by outcome."""
    outcomes = (
        (status, row["dataset"].partition(":")[0], columns.method(row), reason)
        for row in rows
        for status, reason in sources.ends(row)
    )
    return sources.groups_of(outcomes)


def _parts(rows: Sequence[Result], output: Path) -> Iterator[Part]:
    """The parts of the page, in order."""
    good = [row for row in rows if row["status"] == "ok"]
    datasets = dict.fromkeys(row["dataset"] for row in good)
    if len(datasets) > 1:
        yield from _table("ranks", "Ranks over the data sets", good, mean_over="dataset,seed")
    for number, dataset in enumerate(datasets):
        rows_of_data = [row for row in good if row["dataset"] == dataset]
        yield from _table(f"data-{number}", dataset, rows_of_data, mean_over="seed")
    for name, heading in _FIGURES.items():
        yield from _figure(name, heading, good, output)
    if len(rows) <= _MOST_LISTED:
        yield from _table("rows", "All runs", rows)
    else:
        reason = f"{len(rows):,} runs are too many for a page; rfx table summary lists them."
        yield Part("rows", "All runs", reasons=[reason])


def _table(name: str, heading: str, rows: Sequence[Result], **more) -> Iterator[Part]:
    """A summary of rows; nothing if they lack the required columns."""
    try:
        part = Part(name, heading, tables.build("summary", rows, **more))
    except UsageError:
        return
    if part.grids[0].lines:
        yield part


def _figure(name: str, heading: str, rows: Sequence[Result], output: Path) -> Iterator[Part]:
    """A figure of rows; nothing if they lack the required values."""
    try:
        drawn = parts.draw(figures_general.FIGURES[name], name, rows, None, output)
        yield Part(name, heading, figure=drawn)
    except DataError:
        return
    except RfxError as error:
        yield Part(name, heading, reasons=[f"No figure: {error}."])
