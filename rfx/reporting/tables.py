"""Tables in the layout of a paper, and tables as text, Markdown, LaTeX, CSV or JSON."""

import json
import math
import re
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, NamedTuple

from rfx import lazy
from rfx.errors import UsageError, or_near
from rfx.plans import catalogue
from rfx.records.results import safe
from rfx.reporting.cells import (
    BEST,
    DASH,
    MARKS,
    Around,
    Builder,
    Cell,
    Mean,
    Printed,
    Row,
    Section,
    Table,
    cleaned,
    crossed,
    good,
    grid,
    grouped,
    labelled,
    mean_if_any,
    noise,
    options_of,
    printed,
    span,
    variants,
    verdict_of,
    width,
    words,
)
from rfx.reporting.columns import low_is_better

# ----------------------------------------------------------------------
# Tables: the rows of a results file in the layout of a paper, our number next to the printed one.
#
# `Comparison` builds every table with data sets, kernels and methods. `rfx.plans.catalogue` finds
# the tables, and `cells` defines the cells.

# (data set, kernel, method, field) -> the printed number
Book = Mapping[tuple[str, str, str, str], Printed]
# (kernel, method) -> its rows, one per seed
Picked = dict[tuple[str, str], list[Row]]


@dataclass(frozen=True)
class Field:
    """One printed quantity: its name in papers/*.csv, its heading, our number from a row, and its
    format.
    """

    name: str
    heading: str
    ours: Callable[[Row], float | None]
    write: Callable[[float], str]
    scored: bool = False  # meaningless on generated data
    # "high" or "low" if "better than the paper" is meaningful on another machine
    best: str = ""
    unit: str = "relative"  # unit of the margin of equivalence (rfx.reporting.cells.MARGINS)
    chosen: bool = False  # a setting chosen by each run, not an outcome

    @property
    def around(self) -> Around:
        """What is written with the mean of several runs: the standard deviation, or the lowest and
        highest value of a setting.
        """
        return "extremes" if self.chosen else "deviation"


@dataclass(frozen=True)
class DataRow:
    """One data set of a table: the paper's, a substitute for one of them, or generated data of its
    size.
    """

    name: str
    stands_for: str = ""
    generated: bool = False

    @property
    def title(self) -> str:
        if self.generated:
            return (
                f"{self.name}: generated data of the size of {self.stands_for}, for time and memory"
                " only"
            )
        return (
            f"{self.name}: substitute for {self.stands_for}, not comparable"
            if self.stands_for
            else self.name
        )


@dataclass(frozen=True)
class Comparison:
    """Maker of a table with data sets as sections, kernels and fields as lines, and methods as
    columns; `builder` has it for TABLES.

    Rows that differ only in the seed are combined in one cell: their mean with its standard
    deviation. For a field with a preferred direction, the cell is better than, equal to or worse
    than the printed number, judged by this noise. The noise of a single run is unknown.

    package: the paper's, such as "rfx.papers.yen2014"; table: the table's name in its printed.csv.
    """

    title: str
    package: str
    table: str
    data: tuple[DataRow, ...]
    kernels: tuple[str, ...]
    methods: dict[str, str]
    fields: tuple[Field, ...]
    settings: dict[str, str]
    differs: tuple[str, ...] = ()
    # method -> method whose score selects among rows that differ in lam
    closest_to: dict[str, str] = field(default_factory=dict)

    @property
    def builder(self) -> Builder:
        """The table by its name on the command line, such as yen2014-table1."""
        name = f"{self.package.rpartition('.')[2]}-{self.table}"
        settings = {setting: setting for setting in self.settings}
        first = next(iter(settings))
        return Builder(name, self.make, settings, unrun=lambda: self.make([], first).compared)

    @property
    def book(self) -> Book:
        """The printed numbers."""
        return printed(self.package, self.table)

    def make(self, rows: Sequence[Row], setting: str) -> Table:
        """The table of one setting."""
        name = self.builder.name
        rows_of = {
            data.name: [row for row in rows if row["dataset"] == data.name] for data in self.data
        }
        picks = {data: self.pick(rows_of[data.name], setting) for data in self.data}
        picks = {data: picked for data, picked in picks.items() if picked or not data.stands_for}
        cells = {
            (data, kernel, item, method): self.cell(data, kernel, method, item, picked)
            for data, picked in picks.items()
            for kernel in self.kernels
            for item in self.fields
            for method in self.methods
        }
        by_title = {title: method for method, title in self.methods.items()}
        columns = {
            "kernel": lambda of: words(of[1] if of[2] is self.fields[0] else ""),
            "": lambda of: words(of[2].heading),
        } | crossed(cells, by_title)
        return Table(
            name=name,
            title=f"{self.title}; setting: {setting}",
            sections=[
                grid(
                    _size_title(data, picked, self.book),
                    columns,
                    [(data, kernel, item) for kernel in self.kernels for item in self.fields],
                    2,
                    dataset=data.name,
                    methods=by_title,
                )
                for data, picked in picks.items()
            ],
            notes=self.notes(
                [group for picked in picks.values() for group in picked.values()],
                [row for row in rows if row["dataset"] in rows_of],
                setting,
            ),
            cells=[
                {"table": name, "setting": setting, "dataset": data.name}
                | {"stands_for": data.stands_for or None, "kernel": kernel, "method": method}
                | {"field": item.name}
                | _tidy(cell, picks[data].get((kernel, method), []))
                for (data, kernel, item, method), cell in cells.items()
            ],
            compared=[cell for cell in cells.values() if cell.paper is not None],
        )

    def pick(self, rows: Iterable[Row], setting: str) -> Picked:
        """Select the rows of one data set for each (kernel, method), one per seed: those with the
        most features, and of these the newest.
        """
        runs = grouped(
            ((self.line(row), row["method"]), row) for row in good(labelled(rows, setting))
        )
        picked: Picked = {}
        # Methods whose lam depends on another method's score come last.
        for method in sorted(self.methods, key=lambda name: name in self.closest_to):
            for kernel in (kernel for kernel in self.kernels if (kernel, method) in runs):
                candidates = runs[kernel, method]
                if "n_features" in options_of(method)[0]:
                    most = max(row["n_features"] or 0 for row in candidates)
                    candidates = [row for row in candidates if (row["n_features"] or 0) == most]
                groups, other = variants(candidates), self.closest_to.get(method)
                picked[kernel, method] = (
                    _closest(groups, picked.get((kernel, other), [])) if other else groups[-1]
                )
        return picked

    def line(self, row: Row) -> str:
        """The entry of `kernels` for a row; a paper may have several lines for one kernel."""
        return row["kernel"]

    def cell(self, data: DataRow, kernel: str, method: str, item: Field, picked: Picked) -> Cell:
        """The cell of one quantity: the mean over its rows, and the printed number."""
        group = picked.get((kernel, method), [])
        blank = item.scored and data.generated
        ours = None if blank else mean_if_any(item.ours(row) for row in group)
        paper = None if data.stands_for else self.book.get((data.name, kernel, method, item.name))
        converged = all(row["converged"] is not False for row in group) if group else None
        verdict = verdict_of(ours, paper, item.best, item.unit)
        pair = ours is not None or paper is not None
        return Cell(ours, item.write, item.around, paper, pair, verdict, converged)

    def notes(self, groups: Sequence[list[Row]], rows: Sequence[Row], setting: str) -> list[str]:
        """The notes of the table of one setting, from the groups of rows in its cells."""
        used = [row for group in groups for row in group]
        by_score = [
            f"lambda of {method}: of those run, the one whose score is closest to {reference}'s."
            for method, reference in self.closest_to.items()
            # params: the values that each run chose
            if any(row["method"] == method and "lam" not in row["params"] for row in used)
        ]
        return [
            "Every cell is ours / paper; a dash: not run, or not printed; *: the solver did not"
            " converge.",
            *noise([len(group) for group in groups]),
            f"Setting {setting}: {self.settings[setting]}",
            *_gammas(used),
            *by_score,
            *_other_sizes(used, self.book),
            *(f"Differs from the paper: {text}" for text in self.differs),
            *failures(rows),
            *machines(used),
        ]


def _gammas(rows: Iterable[Row]) -> list[str]:
    """The notes on the bandwidths in use, by kernel."""
    gammas = grouped(
        ((row["kernel"] or "no kernel", row["dataset"]), gamma)
        for row in rows
        if (gamma := width(row)) is not None
    )
    names = grouped(
        ((kernel, span(values, "{:.4g}".format)), dataset)
        for (kernel, dataset), values in gammas.items()
    )
    return [
        f"gamma of {kernel} = {text}: {', '.join(of)}"
        for (kernel, text), of in sorted(names.items())
    ]


def _other_sizes(rows: Iterable[Row], book: Book) -> list[str]:
    """The notes on numbers of random features that differ from the paper's (printed as its rf's
    model size).
    """
    printed_of = lambda row: book.get((row["dataset"], row["kernel"], "rf", "model_size"))
    others = grouped(
        ((row["method"], row["n_features"], paper), row["dataset"])
        for row in rows
        if row["n_features"] and (paper := printed_of(row)) and row["n_features"] != paper
    )
    return [
        f"{method} has D = {ours:,} where the paper has {paper:,.0f}: {', '.join(sorted(names))}"
        for (method, ours, paper), names in sorted((of, {*names}) for of, names in others.items())
    ]


def _tidy(cell: Cell, group: list[Row]) -> dict[str, Any]:
    """A cell as a line of CSV and JSON, with the common values of its runs."""
    ours = cell.ours
    shared = {name: {row[name] for row in group} for name in ("lam", "n_features")}
    return {
        "ours": cell.value,
        "sd": cell.sd,
        "low": ours and ours.low,
        "high": ours and ours.high,
        "n": ours.n if ours else 0,
        "paper": cell.paper,
        "verdict": cell.verdict,
        "converged": cell.converged,
    } | {name: values.pop() if len(values) == 1 else None for name, values in shared.items()}


def _closest(groups: list[list[Row]], reference: list[Row]) -> list[Row]:
    """The group whose score is closest to the reference's (of two, the one with the smaller model).
    Without a reference, the group with the best score.

    A group's score is the mean over its seeds; one seed is enough for the comparison.
    """

    def mean_of(name: str, rows: list[Row]) -> float | None:
        mean = mean_if_any(row[name] for row in rows)
        return mean and mean.value

    wanted = mean_of("score", reference)

    def distance(group: list[Row]) -> tuple[float, float]:
        score = mean_of("score", group) or 0.0
        if wanted is None:
            return (1 if low_is_better(group[0]["metric"]) else -1) * score, 0.0
        return abs(score - wanted), mean_of("model_size", group) or 0.0

    scored = [group for group in groups if mean_of("score", group) is not None]
    return min(scored, key=distance, default=groups[-1])


def _size_title(data: DataRow, picked: Picked, book: Book) -> str:
    names = ("n_train", "n_test", "n_inputs")
    written = "N {:,.0f}, test {:,.0f}, d {:,.0f}".format
    sizes = [[row[name] for name in names] for group in picked.values() for row in group]
    printed_sizes = [book.get((data.name, "", "", name)) for name in names]
    ours = ", ".join(dict.fromkeys(written(*size) for size in sizes if None not in size))
    paper = "" if None in printed_sizes else written(*printed_sizes)
    both = f"{ours}; paper: {paper}" if ours and paper and ours != paper else ours or paper
    return f"{data.title} ({both})" if both else data.title


def failures(rows: Iterable[Row]) -> list[str]:
    """The runs that failed and the reasons, one line per reason."""
    runs = grouped(
        ((row["dataset"], row["status"], row["message"]), row["method"])
        for row in rows
        if row["status"] != "ok"
    )
    return [
        f"No result: {dataset}, {', '.join(dict.fromkeys(methods))} ({status}, runs:"
        f" {len(methods)}): {message}"
        for (dataset, status, message), methods in runs.items()
    ]


def machines(rows: Iterable[Row]) -> list[str]:
    """The processors, threads and versions of the successful ones of the rows, one line each."""
    programs = ("rfx", "python", "numpy", "scipy", "numba", "liblinear", "libsvm", "blas")
    lines = (
        f"Machine: {row['cpu'] or 'unknown'}, {row['threads'] or 'all'} threads; "
        + ", ".join(f"{name} {row[name]}" for name in programs if row[name])
        for row in rows
        if row["status"] == "ok"
    )
    return list(dict.fromkeys(lines))


def memory_gb(row: Row) -> float | None:
    """The run's peak memory in GB of 10^9 bytes, the papers' unit."""
    return None if row["peak_rss_mb"] is None else row["peak_rss_mb"] * 2**20 / 1e9


def build(
    name: str,
    rows: Sequence[Row],
    setting: str | None = None,
    builders: Mapping[str, Callable] | None = None,
    **more,
) -> Table:
    """The table `name` from result rows. Raises UsageError if there is no such table.

    builders: the tables, name to builder; default: the general ones. more: further arguments of
    `summary`. Raises UsageError if another table receives any of them.
    """
    builders = catalogue.tables() if builders is None else builders
    if name not in builders:
        raise UsageError(f"there is no table {name}{or_near(name, builders)}")
    more = {option: value for option, value in more.items() if value is not None}
    if more and name != "summary":
        option, value = next(iter(more.items()))
        raise UsageError(
            f"--{option.replace('_', '-')} {value} applies to the table summary, not to {name}"
        )
    return builders[name](rows, setting, **more)


# ----------------------------------------------------------------------
# A table as text, Markdown, LaTeX, CSV or JSON; and the text of a cell, in the parts that a page
# shows separately.

FORMATS = ("text", "markdown", "latex", "csv", "json")
# Characters of a line of an article, and as many when shrunk to a readable size: a wider table is
# split.
_LATEX_LINE, _LATEX_SHRUNK = 76, 115
# the mark of the best in LaTeX, because an exclamation mark would be read as a factorial
DAGGER = "\N{DAGGER}"


class Parts(NamedTuple):
    """The text of a cell in parts: our number, the star of a solver that did not converge, the
    paper's number ("" if none is shown), and the verdict ("" if none is marked).
    """

    ours: str
    star: bool = False
    paper: str = ""
    verdict: str = ""


def parts(cell: Cell, best: str = BEST) -> Parts:
    """The text of a cell, in parts. best: the mark of the best of its kind."""
    ours = cell.text
    if ours is None:
        mean = cell.ours
        ours = DASH if mean is None else _number(cell, mean) + cell.note + best * cell.best
    paper = DASH if cell.pair else ""
    if cell.pair and cell.paper is not None:
        paper = cell.paper.text if isinstance(cell.paper, Printed) else cell.write(cell.paper)
    empty = cell.text is None and cell.ours is None
    star = cell.marked and cell.converged is False and not empty
    return Parts(ours, star, paper, (cell.verdict or "") if cell.marked else "")


def text(cell: Cell, best: str = BEST) -> str:
    """A cell as printed, such as 0.0364 ± 0.0007* / 0.032 (-)."""
    ours, star, paper, verdict = parts(cell, best)
    beside = f" / {paper}" if paper else ""
    return ours + "*" * star + beside + (f" {MARKS[verdict]}" if verdict else "")


def texts(section: Section, best: str = BEST) -> list[list[str]]:
    """The texts of a section by line."""
    return [[text(cell, best) for cell in line] for line in section.lines]


def _number(cell: Cell, ours: Mean) -> str:
    """The number with its standard deviation or range."""
    value, sd, _, low, high = ours
    written, ends = cell.write(value), f"{cell.write(low)} to {cell.write(high)}"
    if cell.around == "extremes":
        return written if low == high else ends
    if cell.around == "range":
        return f"{written} ({ends})"
    if not cell.around or sd is None:
        return written
    places = len(written.partition(".")[2])
    hidden = "e" in written or (cell.around == "deviation" and sd and not round(sd, places))
    return f"{written} ± {sd:.1g}" if hidden else f"{written} ± {sd:.{places}f}"


class _Grid(NamedTuple):
    """A section as texts, each a single line without control characters."""

    title: str
    lines: list[list[str]]  # the first: the headings
    n_labels: int


def render(table: Table, form: str, width: int | None = None) -> str:
    """`table` in one of FORMATS, ending with a newline. width: the maximum columns of text, as far
    as cells allow.
    """
    if form in ("csv", "json"):
        return (_csv if form == "csv" else _json)(table)
    best = DAGGER if form == "latex" else BEST
    grids = [
        _Grid(
            cleaned(section.title),
            [list(map(cleaned, line)) for line in (section.columns, *texts(section, best))],
            section.n_labels,
        )
        for section in table.sections
    ]
    title = cleaned(table.title)
    notes = [re.sub(f"^{BEST}: ", f"{best}: ", cleaned(note)) for note in table.notes]
    if form == "text":
        return _text(title, grids, notes, width or 10**6)
    return (_latex if form == "latex" else _markdown)(title, grids, notes)


def _text(title: str, grids: Sequence[_Grid], notes: Sequence[str], width: int) -> str:
    out = textwrap.wrap(title, width)
    lines = [line for block in grids for line in block.lines]
    # shared by sections with as many columns
    widths = {
        n: [max(map(len, column)) for column in zip(*(line for line in lines if len(line) == n))]
        for n in set(map(len, lines))
    }
    for block in grids:
        sizes = widths[len(block.lines[0])]
        for number, columns in enumerate(_split(sizes, block.n_labels, width)):
            out += ["", *(textwrap.wrap(block.title, width) if number == 0 else [])]
            out += [
                "  ".join([line[column].ljust(sizes[column]) for column in columns]).rstrip()
                for line in block.lines
            ]
    wrapped = [
        line for note in notes for line in textwrap.wrap(note, width, subsequent_indent="  ")
    ]
    return "\n".join([*out, "", *([*wrapped, ""] if wrapped else [])])


def _split(widths: Sequence[int], n_labels: int, width: int) -> list[list[int]]:
    """The columns of each part of a block that is too wide: the labels in each part, with as many
    other columns as fit.
    """
    labels = list(range(n_labels))
    split = [labels.copy()]
    for column in range(n_labels, len(widths)):
        used = sum(widths[shown] + 2 for shown in split[-1])
        if len(split[-1]) > n_labels and used + widths[column] > width:
            split.append(labels.copy())
        split[-1].append(column)
    return split


def _markdown(title: str, grids: Sequence[_Grid], notes: Sequence[str]) -> str:
    escape = lambda text: text.replace("|", r"\|").replace("*", r"\*")
    pipes = lambda texts: f"| {' | '.join(map(escape, texts))} |"
    out = [f"**{escape(title)}**"]
    for block in grids:
        heads, *lines = block.lines
        numbers = [any(map(_NUMBER.match, column)) for column in zip(*lines)] or [False] * len(
            heads
        )
        right = [number and place >= block.n_labels for place, number in enumerate(numbers)]
        out += ["", escape(block.title), ""] if block.title else [""]
        out += [pipes(heads), pipes("---:" if one else "---" for one in right), *map(pipes, lines)]
    if notes:
        out += ["", *(f"- {escape(note)}" for note in notes)]
    return "\n".join(out) + "\n"


_NUMBER = re.compile(r"[-+]?[.\d]")


def _latex(title: str, grids: Sequence[_Grid], notes: Sequence[str]) -> str:
    escape = lambda text: "--" if text == DASH else text.translate(_LATEX)
    row = lambda line: " & ".join(map(escape, line)) + r" \\"
    tabulars: list[str] = []
    for (n_columns, n_labels), alike in groupby(
        grids, lambda block: (len(block.lines[0]), block.n_labels)
    ):
        sections = list(alike)
        texts_of = zip(*(line for block in sections for line in block.lines))
        widths = [max(map(len, column)) for column in texts_of] or [0] * n_columns
        for columns in _split(widths, n_labels, _LATEX_SHRUNK):
            letters = "l" * n_labels + "r" * (len(columns) - n_labels)
            out = [rf"\begin{{tabular}}{{{letters}}}"]
            for number, block in enumerate(sections):
                out.append(r"\midrule" if number else r"\toprule")
                if block.title:
                    head = rf"\multicolumn{{{len(columns)}}}{{l}}{{{escape(block.title)}}} \\"
                    out += [head, r"\midrule"]
                heads, *rest = (row([line[at] for at in columns]) for line in block.lines)
                out += [heads, r"\midrule", *rest]
            out += [r"\bottomrule", r"\end{tabular}"]
            if sum(widths[at] + 2 for at in columns) > _LATEX_LINE:
                out = [r"\resizebox{\linewidth}{!}{%", *out, "}"]
            tabulars.append("\n".join(out))
    start = ["% \\usepackage{booktabs,graphicx}", r"\begin{table}", rf"\caption{{{escape(title)}}}"]
    end = [*(rf"\par {escape(note)}" for note in notes), r"\end{table}"]
    return "\n".join([*start, "\n\\par\\medskip\n".join(tabulars), *end]) + "\n"


_LATEX = str.maketrans(
    {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
    | {"±": r"$\pm$", DAGGER: r"\textsuperscript{\textdagger}", "…": r"\dots{}"}
    | {"<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}"}
    | {character: "\\" + character for character in "&%$#_{}"}
)


def _csv(table: Table) -> str:
    plain = lambda value: safe(cleaned(value)) if isinstance(value, str) else value
    cells = [{name: plain(value) for name, value in cell.items()} for cell in table.cells]
    frame = lazy.pandas.DataFrame(cells, dtype=object)
    return frame.to_csv(index=False, lineterminator="\n") if cells else "\n"


def _json(table: Table) -> str:
    cells = [{name: _finite(value) for name, value in cell.items()} for cell in table.cells]
    head = {"table": table.name, "title": cleaned(table.title)}
    content = head | {"cells": cells, "notes": list(map(cleaned, table.notes))}
    return json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _finite(value: Any) -> Any:
    """A clean text, a plain number, or None for one that JSON cannot represent; any other value as
    it is.
    """
    value = value.item() if hasattr(value, "item") else value
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return cleaned(value) if isinstance(value, str) else value
