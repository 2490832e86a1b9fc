"""The report of the papers and of any results file: its sources, its items and the page."""

import shlex
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.resources.abc import Traversable
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

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
    Methods,
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
    rows: list[Result] = field(default_factory=list)
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
    traces = results.finder(results.trace_path(path))
    return Source(path, quick, results.read(path, traces, torn), torn)


# ----------------------------------------------------------------------------------------- coverage


MISSING, FAILED, TIMEOUT, INTERRUPTED = "missing", "failed", "timeout", "interrupted"


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
        yield row.status or INTERRUPTED, row.message or "no reason was written"
        return
    yield "ok", ""
    if row.converged is False:
        yield "unconverged", f"the solver ended as {row.params.ended or 'not converged'}"
    if words := row.no_better:
        yield "constant", words


def groups_of(outcomes: Iterable[tuple[str, str, str, str]]) -> list[Group]:
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
    outcomes = []
    without_data = set()
    for run, row in rows:
        for status, reason in _missing(run) if row is None else ends(row):
            outcomes.append((status, run.dataset, run.method, reason))
        if row and row.params.error == NO_DATA:
            without_data.add(run.dataset.partition(":")[0])
    counts = Counter(status for status, *_ in outcomes)
    quick = form is small
    commands = _commands(counts, without_data, _run_command(name, folder, quick))
    if quick:
        whole = f"the whole plan, {len(full.runs):,} runs"
        commands.append((whole, _run_command(name, folder)))
    groups = groups_of(outcomes)
    return Coverage(name, full.title, quick, source, len(rows), counts, groups, commands)


def _commands(
    counts: Counter[str], without_data: Collection[str], again: str
) -> list[tuple[str, str]]:
    """(purpose, command) of what would add missing rows. again: the command that runs the plan."""
    n_absent = counts[MISSING] + counts[INTERRUPTED]
    n_failed = counts[FAILED] + counts[TIMEOUT]
    commands = []
    if without_data:
        fetch = f"rfx fetch {shlex.join(sorted(without_data))}"
        commands.append(("data that could not be had", fetch))
    if n_absent or without_data:
        commands.append((f"{n_absent:,} runs without a row", again))
    if n_failed:
        commands.append((f"{n_failed:,} failed or timed out", f"{again} --retry-failed"))
    return commands


def _run_command(name: str, folder: str, quick: bool = False) -> str:
    """The command that runs a plan or its small form."""
    flag, end = (" --quick", "-quick") if quick else ("", "")
    output = shlex.quote(f"{folder}/{name}{end}.csv")
    return f"rfx run {shlex.quote(name)}{flag} --results {output}"


def _missing(run: Run) -> Iterator[tuple[str, str]]:
    base = run.dataset.partition(":")[0]
    obtain = registry.get(base).obtain if registry.has(base) else None
    by_hand = f"; its data must be obtained by hand: {obtain}" if obtain else ""
    yield MISSING, f"not run yet{by_hand}"


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
    MISSING: "not run",
    TIMEOUT: "timed out",
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


@dataclass(frozen=True)
class Drawing:
    """A drawn figure: its title, a description in words, and (words, name) of its files relative to
    the page's folder.
    """

    title: str
    description: str
    files: Sequence[tuple[str, str]]


@dataclass
class Part:
    """A table and a figure of the same rows, or the reasons why they are missing."""

    name: str = ""
    heading: str = ""
    table: Table | None = None
    figure: Drawing | None = None
    reasons: list[str] = field(default_factory=list)

    def add_table(self, make: Callable[[], Table]) -> None:
        """Add the table that a function makes, or the reason why it can't."""
        try:
            self.table = make()
        except RfxError as error:
            self.reasons.append(f"No table: {error}.")

    def add_figure(self, make: Callable[[], Drawing | None]) -> None:
        """Add the figure that a function draws, or the reason why it can't."""
        try:
            self.figure = make()
        except RfxError as error:
            self.reasons.append(f"No figure: {error}.")

    @property
    def grids(self) -> list["Grid"]:
        return [grid(section) for section in self.table.sections] if self.table else []


class GridCell(NamedTuple):
    """A cell with its text in parts. label: it names the line; again: the line above has the same
    label; method: that of its number.
    """

    parts: Parts
    label: bool = False
    again: bool = False
    method: str = ""


class GridLine(NamedTuple):
    """The cells of a line, and its data set and method for filters."""

    dataset: str
    method: str
    cells: Sequence[GridCell]


@dataclass(frozen=True)
class Grid:
    """A section of a table as the template shows it. heads: (text, method) of each column."""

    title: str
    heads: Sequence[tuple[str, str]]
    lines: list[GridLine]
    n_labels: int
    dataset: str


def grid(section: Section) -> Grid:
    """A section with the texts, data sets and methods of its lines."""
    n_labels, by_name = section.n_labels, section.methods
    heads = []
    for place, head in enumerate(section.columns):
        heads.append((head, by_name.get(place) or by_name.get(head, "")))
    lines, above = [], [""] * n_labels
    for cells in section.lines:
        texts = [*map(text, cells)]
        labels = [label or before for label, before in zip(texts, above)]
        shown = []
        for label, own, before in zip(labels, texts, above):
            shown.append(GridCell(Parts(label), label=True, again=bool(before) and not own))
        for cell, (_, method) in zip(cells[n_labels:], heads[n_labels:]):
            shown.append(GridCell(parts(cell), method=method))
        named = dict(zip(section.columns, texts))
        dataset = named.get("data set", "").partition(":")[0] or section.dataset
        lines.append(GridLine(dataset, _method_of(named, labels, by_name), shown))
        above = labels
    return Grid(section.title, heads, lines, n_labels, section.dataset)


def _method_of(named: Mapping[str, str], labels: Sequence[str], by_name: Methods) -> str:
    """The method of a line: that in its column, or of a label; "" without one."""
    own = named.get("method", "").partition(" (")[0]
    if own in methods.names() and own not in by_name:
        return own
    return next((by_name[name] for name in (own, *labels) if name in by_name), "")


def draw(
    builder: Callable, stem: str, rows: Sequence[Result], setting: str | None, output: Path
) -> Drawing:
    """Draw the figure of a builder from rows, and write its files to `output`/figures."""
    with figures.styled():
        chart = builder(rows, setting)
        paths = figures.save(chart, figures.paint(chart), output / "figures" / stem)
    drawn = []
    for path in paths:
        words = "numbers, CSV" if path.suffix == ".csv" else path.suffix[1:].upper()
        drawn.append((words, path.relative_to(output).as_posix()))
    curves = ", ".join(chart.labels) or "none"
    numbers = f"The numbers are in {paths[-1].name}."
    return Drawing(chart.title, f"{chart.title}. Curves: {curves}. {numbers}", drawn)


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
        read = {plan.name: plan.source for paper in papers for plan in paper.plans}
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


@dataclass(frozen=True)
class Item:
    """The table and the figure of one name, such as yen2014-table1, for every setting, and the
    tally of the first setting, including printed numbers without data.
    """

    name: str
    source: Source
    parts: list[Part]
    heading: str
    tally: dict[str, int]


@dataclass(frozen=True)
class Settings:
    """All settings of a plan's runs: the plan itself, and the outcome of each combination over its
    seeds.
    """

    name: str
    text: str
    grids: list[Grid]


@dataclass(frozen=True)
class Paper:
    """What the page shows of one paper. torn: the number of incomplete lines."""

    name: str
    citation: str
    about: str
    plans: list[Coverage]
    items: list[Item]
    settings: list[Settings]
    torn: int

    @property
    def tally(self) -> dict[str, int]:
        """The sum of each of KINDS."""
        counts = sum((Counter(item.tally) for item in self.items), Counter())
        return {kind: counts[kind] for kind in KINDS}

    @property
    def counts(self) -> Counter[str]:
        """The outcomes of all runs."""
        return sum((plan.counts for plan in self.plans), Counter())


def _paper(folder: catalogue.Folder, results: Path, output: Path, all_plans: dict) -> Paper:
    # rows of PLAN-full are in the file of PLAN
    shorter = {name: name.removesuffix("-full") for name in folder.plans}

    def file_of(plan: str) -> str:
        return shorter[plan] if shorter.get(plan) in folder.plans else plan

    source_of = {name: find(results, name) for name in dict.fromkeys(map(file_of, shorter))}

    def rows_of(plan: str) -> Source:
        return source_of.get(file_of(plan), Source())

    plans = [coverage(name, rows_of(name), all_plans, str(results)) for name in shorter]
    builders = folder.figures | folder.tables
    items = []
    for name in names(folder):
        source = rows_of(catalogue.plan_of(builders[name], name))
        items.append(_item(folder, name, source, output))
    settings = [_settings(plan, all_plans[plan.name]) for plan in plans]
    torn = sum(len(source.torn) for source in source_of.values())
    return Paper(folder.name, folder.citation, folder.about, plans, items, settings, torn)


def names(folder: catalogue.Folder) -> list[str]:
    """The tables and figures of a paper: tables first, each with the figure of the same name."""

    def tables_first(name: str) -> tuple[bool, str]:
        return "table" not in name.partition("-")[2], name

    return sorted({*folder.tables, *folder.figures}, key=tables_first)


def _item(folder: catalogue.Folder, name: str, source: Source, output: Path) -> Item:
    table, figure = folder.tables.get(name), folder.figures.get(name)
    settings: Sequence[str | None] = ()
    if source.rows or getattr(table or figure, "alone", False):
        settings = settings_of(table or figure, source.rows) or (None,)
    made = []
    for setting in settings:
        part = Part()
        if table:
            part.add_table(partial(table, source.rows, setting))
        if figure:
            stem = f"{name}-{setting}" if setting else name
            part.add_figure(partial(draw, figure, stem, source.rows, setting, output))
        made.append(part)
    built = [part.table for part in made if part.table]
    titles = [one.title for one in built]
    titles += [part.figure.title for part in made if part.figure]
    heading = titles[0].partition("; setting: ")[0] if titles else name
    cells = built[0].compared if built else getattr(table, "unrun", list)()
    return Item(name, source, made, heading, tally(cells))


def _settings(plan: Coverage, path: Traversable) -> Settings:
    part = Part()
    if plan.source.rows and not plan.name.endswith("-full"):
        part = _summary("", "", plan.source.rows, mean_over="seed")
    return Settings(plan.name, path.read_text(encoding="utf-8"), part.grids)


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
    datasets = {row.dataset for row in rows}
    present = set(map(columns.method, rows))
    seeds = {row.seed for row in rows} - {None}
    counts = [_counted(len(datasets), "data set"), _counted(len(present), "method")]
    if seeds:
        counts.append(_counted(len(seeds), "seed"))
    return f"{_counted(len(rows), 'run')}: {', '.join(counts)}."


def _counted(n: int, word: str) -> str:
    """1 run, 2 runs."""
    return f"{n:,} {word}" if n == 1 else f"{n:,} {word}s"


def _parts(rows: Sequence[Result], output: Path) -> Iterator[Part]:
    """The parts of the page, in order."""
    done = good(rows)
    datasets = dict.fromkeys(row.dataset for row in done)
    if len(datasets) > 1:
        yield _summary("ranks", "Ranks over the data sets", done, mean_over="dataset,seed")
    for number, dataset in enumerate(datasets):
        own = [row for row in done if row.dataset == dataset]
        part = _summary(f"data-{number}", dataset, own, mean_over="seed")
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
        yield _summary("rows", "All runs", rows)
    else:
        reason = f"{len(rows):,} runs are too many for a page; rfx table summary lists them."
        yield Part("rows", "All runs", reasons=[reason])


def _summary(name: str, heading: str, rows: Sequence[Result], mean_over: str | None = None) -> Part:
    """A summary of rows."""
    part = Part(name, heading)
    part.add_table(partial(tables.build, "summary", rows, mean_over=mean_over))
    return part


def _figure(name: str, heading: str, rows: Sequence[Result], output: Path) -> Iterator[Part]:
    """A figure of rows, or the reason why it can't be drawn; nothing if they lack the required
    values.
    """

    def make() -> Drawing | None:
        try:
            return draw(figures.FIGURES[name], name, rows, None, output)
        except DataError:
            return None

    part = Part(name, heading)
    part.add_figure(make)
    if part.figure or part.reasons:
        yield part
