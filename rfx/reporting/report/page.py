"""The report of the papers and of any results file: its sources, its items and the page."""

import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.resources.abc import Traversable
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

from rfx import _version, files, lazy, methods
from rfx.data import registry
from rfx.errors import DataError, RfxError
from rfx.plans import catalogue, plan
from rfx.records import keys, results
from rfx.records.run import Result, Run
from rfx.reporting import claim_tables, claims, columns, figures, style, tables
from rfx.reporting.cells import (
    LEGEND,
    Cell,
    Section,
    Table,
    good,
    settings_of,
)
from rfx.reporting.tables import Parts, parts, text
from rfx.runs.child import NO_DATA

# ----------------------------------------------------------------------
# The rows of a plan: results/PLAN.csv, or results/PLAN-quick.csv for its small form, with traces in
# the same folder; which of its runs exist, which are missing and why, and the commands that execute
# them.


@dataclass(frozen=True)
class Source:
    """The rows of a plan. path: None if there is no file; quick: whether they are of the plan's
    small form.

    torn: incomplete lines left by an interrupted writer. other: an unused file of the other form.
    """

    path: Path | None = None
    quick: bool = False
    rows: list[Any] = field(default_factory=list)
    torn: list[int] = field(default_factory=list)
    other: Path | None = None


def find(folder: str | Path, plan: str) -> Source:
    """The full form's file if one of its runs succeeded, else that of the small form, else any file
    that exists.
    """
    forms = [read(Path(folder) / f"{plan}{end}.csv", bool(end)) for end in ("", "-quick")]
    chosen, other = sorted(forms, key=_has_less)
    return replace(chosen, other=other.path)


def _has_less(source: Source) -> tuple[bool, bool]:
    """Whether a source has no file, and whether it has no good row."""
    return source.path is None, not good(source.rows)


def results_folder(name: str) -> Path:
    """The folder of results files of that name; DataError if there is none."""
    path = Path(name)
    if not path.is_dir():
        raise DataError(
            f"{path} is not a folder of results files; make some with rfx run PLAN --results"
            f" {shlex.quote(f'{path}/PLAN.csv')}"
        )
    return path


def read(path: Path, quick: bool = False) -> Source:
    """The rows of one file with their traces, if there is one."""
    if not path.exists():
        return Source()
    torn: list[int] = []
    return Source(
        path, quick, results.read(path, results.finder(results.trace_path(path)), torn), torn
    )


# ----------------------------------------------------------------------------------------- coverage


class Group(NamedTuple):
    """Runs of one data set and method without a good row, for the same reason. `status`: missing,
    failed, timeout, interrupted, unconverged, or constant (no better than a constant).
    """

    status: str
    dataset: str
    method: str
    reason: str
    n: int


@dataclass
class Coverage:
    """One plan, in the form of its rows: the number of its runs, their outcomes, and the groups of
    runs without a good row.

    commands: (purpose, command) of all commands that would add the missing rows.
    """

    name: str
    title: str
    quick: bool
    source: Source
    total: int
    counts: Counter[str]
    groups: list[Group]
    commands: list[tuple[str, str]]


def ends(row: Result) -> Iterator[tuple[str, str]]:
    """(status, reason) of a row: ok, possibly with a defect, or the reason why it has no result."""
    if row.status != "ok":
        yield row.status or "interrupted", row.message or "no reason was written"
        return
    yield "ok", ""
    if row.converged is False:
        yield "unconverged", f"the solver ended as {row.params.get('ended') or 'not converged'}"
    if words := row.no_better:
        yield "constant", words


def groups_of(outcomes: Iterator[tuple[str, str, str, str]]) -> list[Group]:
    """The groups of (status, data set, method, reason) without a good row."""
    counts = Counter(outcomes)
    return [Group(*outcome, n) for outcome, n in counts.items() if outcome[0] != "ok"]


def coverage(name: str, source: Source, plans: dict[str, Traversable], folder: str) -> Coverage:
    """The coverage of the plan `name`. folder: the folder of results, as a user types it."""
    full = plan.load(name, False, plans)
    small = plan.small(name, plans) if source.quick else None
    form = full if small is None else small
    newest = {row.key: row for row in source.rows}
    rows = [(run, newest.get(keys.key(run))) for run in form.runs]
    outcomes = [
        (status, run.dataset, run.method, reason)
        for run, row in rows
        for status, reason in (_missing(run) if row is None else ends(row))
    ]
    counts = Counter(status for status, *_ in outcomes)
    without_data = {
        run.dataset.partition(":")[0]
        for run, row in rows
        if row and row.params.get("error") == NO_DATA
    }
    quick, groups = form is small, groups_of(iter(outcomes))
    again = _run_command(name, folder, quick)
    absent = counts["missing"] + counts["interrupted"]
    failed = counts["failed"] + counts["timeout"]
    # purpose, command, and whether it would add rows
    steps = (
        (
            "data that could not be had",
            f"rfx fetch {shlex.join(sorted(without_data))}",
            without_data,
        ),
        (f"{absent:,} runs without a row", again, absent or without_data),
        (f"{failed:,} failed or timed out", f"{again} --retry-failed", failed),
        (f"the whole plan, {len(full.runs):,} runs", _run_command(name, folder), quick),
    )
    commands = [(purpose, command) for purpose, command, adds in steps if adds]
    return Coverage(name, full.title, quick, source, len(rows), counts, groups, commands)


def _run_command(name: str, folder: str, quick: bool = False) -> str:
    """The command that runs a plan or its small form."""
    flag, end = (" --quick", "-quick") if quick else ("", "")
    output = shlex.quote(f"{folder}/{name}{end}.csv")
    return f"rfx run {shlex.quote(name)}{flag} --results {output}"


def _missing(run: Run) -> Iterator[tuple[str, str]]:
    base = run.dataset.partition(":")[0]
    obtain = registry.get(base).obtain if registry.has(base) else None
    by_hand = f"; its data must be obtained by hand: {obtain}" if obtain else ""
    yield "missing", f"not run yet{by_hand}"


# ----------------------------------------------------------------------
# The page of the papers: every table and figure, built from the rows of its plan, once for every
# setting of these rows; and what all pages share: their parts, and the writing of the file.

_MARK = '<meta name="generator" content="rfx report">'


def _is_report(path: Path) -> bool:
    return _MARK.encode() in path.read_bytes()[:4096]


KIND = files.Kind("a report of rfx", _is_report)
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

    def add(self, what: str, make: Callable, *given: Any, **more: Any) -> None:
        """Add the "table" or "figure" that a function makes of its arguments, or the reason why it
        can't.
        """
        try:
            setattr(self, what, make(*given, **more))
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
        shown: list[dict[str, object]] = [
            {"parts": Parts(label), "label": True, "again": bool(before) and not own}
            for label, own, before in zip(labels, texts, above)
        ]
        shown += [
            {"parts": parts(cell), "label": False, "method": method}
            for cell, method in zip(cells[n_labels:], of_columns[n_labels:])
        ]
        dataset = named.get("data set", "").partition(":")[0] or section.dataset
        method = next((titles[one] for one in words if one in titles), "")
        lines.append({"dataset": dataset, "method": method, "cells": shown})
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
        paths = figures.save(chart, figures.paint(chart), output / "figures" / stem)
    curves = ", ".join(chart.labels) or "none"
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
    rfx without `force`, and DataError if `results` is not a folder.
    """
    results = results_folder(results)

    def render() -> str:
        papers = [_paper(folder, results, Path(output), plans) for folder in folders]
        read = {plan.name: plan.source for paper in papers for plan in paper["plans"]}
        used = {source.path: source for source in read.values() if source.path is not None}
        return rendered(
            "page.html",
            list(used.values()),
            papers=papers,
            claims=claims.judged(folders, lambda plan: read.get(plan, Source()).rows),
            verdicts=claims.VERDICTS,
            case_line=claim_tables.case_line,
        )

    return put(Path(output), render, force)


def _paper(folder: catalogue.Folder, results: Path, output: Path, all_plans: dict) -> dict:
    """The variables of the template for one paper."""
    # rows of PLAN-full are in the file of PLAN
    shorter = {name: name.removesuffix("-full") for name in folder.plans}

    def file_of(plan: str) -> str:
        return shorter[plan] if shorter.get(plan) in folder.plans else plan

    source_of = {name: find(results, name) for name in dict.fromkeys(map(file_of, shorter))}

    def rows_of(plan: str) -> Source:
        return source_of.get(file_of(plan), Source())

    plans = [coverage(name, rows_of(name), all_plans, str(results)) for name in shorter]
    builders = folder.figures | folder.tables
    items = [
        _item(folder, name, rows_of(catalogue.plan_of(builders[name], name)), output)
        for name in names(folder)
    ]
    return {
        "name": folder.name,
        "citation": folder.citation,
        "about": folder.about,
        "plans": plans,
        "items": items,
        "tally": _sums([item["tally"] for item in items]),
        "settings": [_settings(plan, all_plans[plan.name]) for plan in plans],
        "counts": sum((plan.counts for plan in plans), Counter()),
        "torn": sum(len(source.torn) for source in source_of.values()),
    }


def _sums(tallies: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """The sum of each of KINDS."""
    counts = sum(map(Counter, tallies), Counter())
    return {kind: counts[kind] for kind in KINDS}


def names(folder: catalogue.Folder) -> list[str]:
    """The tables and figures of a paper: tables first, each with the figure of the same name."""

    def tables_first(name: str) -> tuple[bool, str]:
        return "table" not in name.partition("-")[2], name

    return sorted({*folder.tables, *folder.figures}, key=tables_first)


def _item(folder: catalogue.Folder, name: str, source: Source, output: Path) -> dict:
    """The table and the figure called `name`, such as yen2014-table1, for every setting, and the
    tally of the first setting, including printed numbers without data.
    """
    table, figure = folder.tables.get(name), folder.figures.get(name)
    settings: Sequence[str | None] = ()
    if source.rows or getattr(table or figure, "alone", False):
        settings = settings_of(table or figure, source.rows) or (None,)
    made = []
    for setting in settings:
        stem = f"{name}-{setting}" if setting else name
        made.append(_part_of_setting(table, figure, stem, source.rows, setting, output))
    built = [part.table for part in made if part.table]
    titles = [one.title for one in built] + [part.figure["title"] for part in made if part.figure]
    return {
        "name": name,
        "source": source,
        "parts": made,
        "heading": titles[0].partition("; setting: ")[0] if titles else name,
        "tally": tally(built[0].compared if built else getattr(table, "unrun", list)()),
    }


def _part_of_setting(
    table: Callable | None,
    figure: Callable | None,
    stem: str,
    rows: Sequence[Result],
    setting: str | None,
    output: Path,
) -> Part:
    """The table and the figure of the rows of one setting."""
    part = Part()
    if table:
        part.add("table", table, rows, setting)
    if figure:
        part.add("figure", draw, figure, stem, rows, setting, output)
    return part


def _settings(plan: Coverage, path) -> dict:
    """All settings of a plan's runs: the plan itself, and the outcome of each combination over its
    seeds.
    """
    part = Part()
    if plan.source.rows and not plan.name.endswith("-full"):
        part.add("table", tables.build, "summary", plan.source.rows, mean_over="seed")
    return {"name": plan.name, "text": path.read_text(encoding="utf-8"), "grids": part.grids}


# ----------------------------------------------------------------------------------------- writing


def put(output: Path, render: Callable[[], str], force: bool) -> Path:
    """Write the page that `render` returns into the folder `output`, and return its path.

    The page is written completely or not at all. Without `force`, it replaces only a report of rfx.
    """
    page = output / "index.html"
    files.guard(("--output", page), (), KIND, force)
    output.mkdir(parents=True, exist_ok=True)
    text = render()
    with files.whole(page) as handle:
        handle.write(text.encode())
    return page


def rendered(template: str, used: list[Source], **more) -> str:
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
    known = [name for name in methods.names() if name in present]
    colours = {name: style.colour(style.look(name)) for name in known}
    versions = Counter(map(_versions_of, rows))
    return engine.get_template(template).render(
        colours=colours,
        datasets=sorted({row.dataset.partition(":")[0] for row in rows}),
        version=_version.__version__,
        dates=sorted(row.created for row in rows if row.created),
        n_rows=len(rows),
        used=used,
        machines=sorted(versions.items()),
        versions=_VERSIONS,
        kinds=KINDS,
        outcomes=_OUTCOMES,
        legend=LEGEND,
        **more,
    )


def _versions_of(row: Result) -> tuple[str, ...]:
    return tuple(str(row[name] or "") for name in _VERSIONS)


# ----------------------------------------------------------------------
# The page of an arbitrary results file: means over seeds with paired tests, ranks over data sets,
# the figures that its rows allow, and errors.

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


def write_experiment(path, output, force: bool = False) -> Path:
    """Write OUTPUT/index.html and OUTPUT/figures/ from the results file `path`, and return the path
    of the page.

    Raises DataError for a file that has no rows, and the errors of `results.read` and `page.put`.
    """
    path, output, torn = Path(path), Path(output), list[int]()
    rows = results.read(path, results.finder(results.trace_path(path)), torn)
    if not rows:
        raise DataError(f"{path} has no rows yet; rfx run --results adds some")
    counts = Counter(_STATUSES.get(row.status, row.status) for row in rows)
    counts["not converged"] = sum(row.converged is False for row in good(rows))
    outcomes = (
        (status, row.dataset.partition(":")[0], columns.method(row), reason)
        for row in rows
        for status, reason in ends(row)
    )
    troubles = sorted(groups_of(outcomes), key=attrgetter("dataset", "method", "reason", "n"))

    def render() -> str:
        return rendered(
            "experiment.html",
            [Source(path, rows=rows)],
            name=path.name,
            lead=_lead(rows),
            counts=[(words, n) for words, n in counts.items() if n],
            parts=list(_parts(rows, output)),
            troubles=troubles,
            torn=torn,
        )

    return put(output, render, force)


def _lead(rows: Sequence[Result]) -> str:
    """The counts in the first sentence of the page."""
    values = {
        "run": range(len(rows)),
        "data set": {row.dataset for row in rows},
        "method": set(map(columns.method, rows)),
        "seed": {row.seed for row in rows} - {None},
    }
    runs, *others = (
        f"{len(of):,} {word}{'s' * (len(of) != 1)}" for word, of in values.items() if of
    )
    return f"{runs}: {', '.join(others)}."


def _parts(rows: Sequence[Result], output: Path) -> Iterator[Part]:
    """The parts of the page, in order."""
    done = good(rows)
    datasets = dict.fromkeys(row.dataset for row in done)
    if len(datasets) > 1:
        yield _table("ranks", "Ranks over the data sets", done, mean_over="dataset,seed")
    for number, dataset in enumerate(datasets):
        own = [row for row in done if row.dataset == dataset]
        part = _table(f"data-{number}", dataset, own, mean_over="seed")
        for section in part.table.sections if part.table else ():
            # all its lines have the same data set
            section.columns = section.columns[1:]
            section.lines = [line[1:] for line in section.lines]
            section.n_labels -= 1
            section.dataset = dataset.partition(":")[0]
        yield part
    for name, heading in _FIGURES.items():
        yield from _figure(name, heading, done, output)
    if len(rows) <= _MOST_LISTED:
        yield _table("rows", "All runs", rows)
    else:
        reason = f"{len(rows):,} runs are too many for a page; rfx table summary lists them."
        yield Part("rows", "All runs", reasons=[reason])


def _table(name: str, heading: str, rows: Sequence[Result], **more) -> Part:
    """A summary of rows."""
    part = Part(name, heading)
    part.add("table", tables.build, "summary", rows, **more)
    return part


def _figure(name: str, heading: str, rows: Sequence[Result], output: Path) -> Iterator[Part]:
    """A figure of rows, or the reason why it can't be drawn; nothing if they lack the required
    values.
    """

    def make() -> dict | None:
        try:
            return draw(figures.FIGURES[name], name, rows, None, output)
        except DataError:
            return None

    part = Part(name, heading)
    part.add("figure", make)
    if part.figure or part.reasons:
        yield part
