"""Tables by name, and tables as text, Markdown, LaTeX, CSV or JSON."""

import json
import math
import re
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
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
    Cell,
    Mean,
    Printed,
    Row,
    Section,
    Table,
    cleaned,
    grouped,
)

# ----------------------------------------------------------------------
# Tables by name, which `rfx.plans.catalogue` finds, and the notes that several have.


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
