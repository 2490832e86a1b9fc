"""The page of the papers: every table and figure, built from the rows of its plan, once for every
setting of these rows; and what all pages share: their parts, and the writing of the file.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rfx import _version, files, lazy, methods
from rfx.errors import DataError, RfxError, UsageError
from rfx.plans import catalogue
from rfx.reporting import charts, claims, columns, figures, style, tables
from rfx.reporting.cells import (
    Cell,
    Section,
    Table,
    settings_of,
    short,
)
from rfx.reporting.report import sources
from rfx.reporting.seeds import LEGEND
from rfx.reporting.tables_render import Parts, parts, text

_MARK = '<meta name="generator" content="rfx report">'
KIND = files.Kind("a report of rfx", lambda path: _MARK.encode() in path.read_bytes()[:4096])
_VERSIONS = "rfx git_revision python numpy scipy numba liblinear libsvm blas cpu threads".split()
# statuses in words, where these differ
_OUTCOMES = {
    "missing": "not run",
    "timeout": "timed out",
    "unconverged": "not converged",
    "constant": "no better than a constant",
}
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


# ------------------------------------------------------------------------------------------- parts


@dataclass
class Part:
    """A table and a figure of the same rows, or the reasons why they are missing.

    figure: see `draw`.
    """

    name: str = ""
    heading: str = ""
    table: Table | None = None
    figure: Mapping[str, Any] | None = None
    reasons: list[str] = field(default_factory=list)

    def add(self, what: str, make: Callable[[], Any]) -> None:
        """Add the "table" or "figure" that a function makes, or the reason why it can't."""
        try:
            setattr(self, what, make())
        except RfxError as error:
            self.reasons.append(f"No {what}: {error}.")

    @property
    def grids(self) -> list[dict[str, Any]]:
        return [grid(section) for section in self.table.sections] if self.table else []


def grid(section: Section) -> dict[str, Any]:
    """A section of a table as the template shows it.

    heads: (text, method) of each column. lines: the cells with their text in parts, and the data
    set and method for filters. Of a cell, label: it names the line; again: the line above has the
    same label; method: that of its number.
    """
    n_labels, by_name = section.n_labels, section.methods
    of_columns = [
        by_name.get(place) or by_name.get(head, "") for place, head in enumerate(section.columns)
    ]
    titles = {**{name: name for name in methods.names()}, **by_name}
    lines: list[dict[str, Any]] = []
    above = [""] * n_labels
    for cells in section.lines:
        texts = [*map(text, cells)]
        named = dict(zip(section.columns, texts))
        labels = [label or before for label, before in zip(texts, above)]
        words = (named.get("method", "").partition(" (")[0], *filter(by_name.get, labels))
        lines.append(
            {
                "dataset": named.get("data set", "").partition(":")[0] or section.dataset,
                "method": next((titles[one] for one in words if one in titles), ""),
                "cells": [
                    {"parts": Parts(label), "label": True, "again": bool(before) and not own}
                    for label, own, before in zip(labels, texts, above)
                ]
                + [
                    {"parts": parts(cell), "label": False, "method": method}
                    for cell, method in zip(cells[n_labels:], of_columns[n_labels:])
                ],
            }
        )
        above = labels
    return {
        "title": section.title,
        "heads": list(zip(section.columns, of_columns)),
        "lines": lines,
        "n_labels": n_labels,
        "dataset": section.dataset,
    }


def draw(
    builder: Callable, stem: str, rows: Any, setting: str | None, output: Path
) -> dict[str, Any]:
    """Draw the figure of a builder from rows, and write its files to `output`/figures: its title,
    a description in words, and (words, name) of its files relative to the page's folder.
    """
    with figures.styled():
        chart = builder(rows, setting)
        paths = figures.save(chart, charts.paint(chart), output / "figures" / stem)
    curves = ", ".join(map(style.written, chart.labels)) or "none"
    words = ["numbers, CSV" if path.suffix == ".csv" else path.suffix[1:].upper() for path in paths]
    return {
        "title": chart.title,
        "description": f"{chart.title}. Curves: {curves}. The numbers are in {paths[-1].name}.",
        "files": list(zip(words, (path.relative_to(output).as_posix() for path in paths))),
    }


def tally(cells: Iterable[Cell]) -> dict[str, int]:
    """The number of cells of each of KINDS."""
    counts = Counter(cell.outcome for cell in cells)
    return {kind: counts[kind] for kind in KINDS}


# ------------------------------------------------------------------------------------------ papers


def write(
    results, output, folders: list[catalogue.Folder], plans: dict, force: bool = False
) -> Path:
    """Write OUTPUT/index.html and OUTPUT/figures/ from the results files in the folder `results`.

    Returns the path of the page. folders: the papers; plans: all plans by name. The page is written
    completely or not at all. Raises UsageError if it would replace something other than a report of
    rfx without `force`, and DataError if it can't be written or `results` is not a folder.
    """
    results = sources.folder("--results", results)
    if not str(output):
        raise UsageError("--output is empty; give a folder")

    def render() -> str:
        papers = [_paper(folder, results, Path(output), plans) for folder in folders]
        read = {plan.name: plan.source for paper in papers for plan in paper["plans"]}
        used = {source.path: source for source in read.values() if source.path is not None}
        return rendered(
            "page.html",
            list(used.values()),
            papers=papers,
            claims=claims.judged(folders, lambda plan: read.get(plan, sources.Source()).rows),
            verdicts=claims.VERDICTS,
            short=short,
        )

    return put(Path(output), render, (), force)


def _paper(folder: catalogue.Folder, results: Path, output: Path, all_plans: dict) -> dict:
    """The variables of the template for one paper."""
    # rows of PLAN-full are in the file of PLAN
    shorter = {name: name.removesuffix("-full") for name in folder.plans}
    base = lambda name: shorter[name] if shorter.get(name) in folder.plans else name
    source_of = {name: sources.find(results, name) for name in dict.fromkeys(map(base, shorter))}
    rows_of = lambda plan: source_of.get(base(plan), sources.Source())
    plans = [sources.coverage(name, rows_of(name), all_plans, str(results)) for name in shorter]
    items = [_item(folder, name, rows_of(plan_of(folder, name)), output) for name in names(folder)]
    return {
        "name": folder.name,
        "citation": folder.citation,
        "about": folder.about,
        "plans": plans,
        "items": items,
        "tally": {kind: sum(item["tally"][kind] for item in items) for kind in KINDS},
        "settings": [_settings(plan, all_plans[plan.name]) for plan in plans],
        "counts": sum((plan.counts for plan in plans), Counter()),
        "torn": sum(len(source.torn) for source in source_of.values()),
    }


def names(folder: catalogue.Folder) -> list[str]:
    """The tables and figures of a paper: tables first, each with the figure of the same name."""
    order = lambda name: ("table" not in name.partition("-")[2], name)
    return sorted({*folder.tables, *folder.figures}, key=order)


def plan_of(folder: catalogue.Folder, name: str) -> str:
    """The plan whose rows a table or figure shows."""
    plan = getattr(folder.tables.get(name) or folder.figures[name], "plan", "")
    return f"{folder.name}-{plan}" if plan else name


def _item(folder: catalogue.Folder, name: str, source: sources.Source, output: Path) -> dict:
    """The table and the figure called `name`, such as yen2014-table1, for every setting, and the
    tally of the first setting, including printed numbers without data.
    """
    table, figure = folder.tables.get(name), folder.figures.get(name)
    settings: Sequence[str | None] = ()
    if source.rows or getattr(table or figure, "alone", False):
        settings = settings_of(table or figure, source.rows) or (None,)
    made = [Part() for _ in settings]
    for part, setting in zip(made, settings):
        stem = f"{name}-{setting}" if setting else name
        if table:
            part.add("table", lambda: table(source.rows, setting))
        if figure:
            part.add("figure", lambda: draw(figure, stem, source.rows, setting, output))
    built = [part.table for part in made if part.table]
    titles = [one.title for one in built] + [part.figure["title"] for part in made if part.figure]
    return {
        "name": name,
        "source": source,
        "parts": made,
        "heading": titles[0].partition("; setting: ")[0] if titles else name,
        "tally": tally(built[0].compared if built else getattr(table, "unrun", list)()),
    }


def _settings(plan: sources.Coverage, path) -> dict:
    """All settings of a plan's runs: the plan itself, and the outcome of each combination over its
    seeds.
    """
    part = Part()
    if plan.source.rows and not plan.name.endswith("-full"):
        part.add("table", lambda: tables.build("summary", plan.source.rows, mean_over="seed"))
    return {"name": plan.name, "text": path.read_text(encoding="utf-8"), "grids": part.grids}


# ----------------------------------------------------------------------------------------- writing


def put(output: Path, render: Callable[[], str], inputs, force: bool) -> Path:
    """Write the page that `render` returns into the folder `output`, and return its path. inputs:
    see files.guard.

    The page is written completely or not at all. Without `force`, it replaces only a report of rfx.
    """
    page = output / "index.html"
    files.guard(("--output", page), inputs, KIND, force)
    try:
        output.mkdir(parents=True, exist_ok=True)
        text = render()
        with files.whole(page) as handle:
            handle.write(text.encode())
    except OSError as error:
        raise DataError(
            f"{error.filename or page} can't be written: {error.strerror}; give another --output"
        ) from error
    return page


def rendered(template: str, used: list[sources.Source], **more) -> str:
    """A page about rows: the variables that all pages share, and `more` for its template."""
    engine = lazy.jinja2.Environment(
        loader=lazy.jinja2.PackageLoader("rfx.reporting.report", "templates"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=lazy.jinja2.StrictUndefined,
    )
    rows = [row for source in used for row in source.rows]
    present = {columns.method(row) for row in rows}
    versions = Counter(tuple(str(row[name] or "") for name in _VERSIONS) for row in rows)
    return engine.get_template(template).render(
        colours={name: style.look(name)["color"] for name in methods.names() if name in present},
        datasets=sorted({row["dataset"].partition(":")[0] for row in rows}),
        version=_version.__version__,
        dates=sorted(row["created"] for row in rows if row["created"]),
        n_rows=len(rows),
        used=used,
        machines=sorted(versions.items()),
        versions=_VERSIONS,
        kinds=KINDS,
        outcomes=_OUTCOMES,
        legend=LEGEND,
        **more,
    )
