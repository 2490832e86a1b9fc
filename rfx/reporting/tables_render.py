"""A table as text, Markdown, LaTeX, CSV or JSON; and the text of a cell, in the parts that a page
shows separately.
"""

import csv
import io
import json
import math
import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

from rfx import terminal
from rfx.records.sheet import safe
from rfx.reporting.cells import BEST, DASH, Cell, Section, Table
from rfx.reporting.printed import Printed
from rfx.reporting.seeds import MARKS, Mean

FORMATS = ("text", "markdown", "latex", "csv", "json")


class Parts(NamedTuple):
    """The text of a cell in parts: our number, the star of a solver that did not converge, the
    paper's number ("" if none is shown), and the verdict ("" if none is marked).
    """

    ours: str
    star: bool = False
    paper: str = ""
    verdict: str = ""


def parts(cell: Cell) -> Parts:
    """The text of a cell, in parts."""
    empty = cell.text is None and cell.ours is None
    paper = ""
    if cell.pair:
        paper = (
            DASH
            if cell.paper is None
            else cell.paper.text
            if isinstance(cell.paper, Printed)
            else cell.write(cell.paper)
        )
    star = cell.marked and cell.converged is False and not empty
    return Parts(_ours(cell), star, paper, (cell.verdict or "") if cell.marked else "")


def text(cell: Cell, best: str = BEST) -> str:
    """A cell as printed, such as 0.0364 ± 0.0007* / 0.032 (-). best: the mark of the best."""
    if cell.best and best != BEST:
        return text(cell._replace(best=False, note=cell.note + best))
    if not cell.pair and cell.verdict is None and cell.converged is not False:
        return _ours(cell)  # the usual cell of a large table
    found = parts(cell)
    paper = f" / {found.paper}" if found.paper else ""
    mark = f" {MARKS[found.verdict]}" if found.verdict else ""
    return f"{found.ours}{'*' if found.star else ''}{paper}{mark}"


def texts(section: Section) -> list[list[str]]:
    """The texts of a section by line."""
    return [[text(cell) for cell in line] for line in section.lines]


def _ours(cell: Cell) -> str:
    """The text of our number, or its replacement."""
    if cell.text is not None:
        return cell.text
    if cell.ours is None:
        return DASH
    return _around(cell, cell.ours) + cell.note + (BEST if cell.best else "")


def _around(cell: Cell, ours: Mean) -> str:
    """The number with its standard deviation or range."""
    own = cell.write(ours.value)
    if not cell.around:
        return own
    if cell.around == "extremes" and ours.low != ours.high:
        return f"{cell.write(ours.low)} to {cell.write(ours.high)}"
    if cell.around == "range":
        return f"{own} ({cell.write(ours.low)} to {cell.write(ours.high)})"
    if cell.around not in ("decimals", "deviation") or ours.sd is None:
        return own
    places = len(own.partition(".")[2])
    hidden = "e" in own or (cell.around == "deviation" and ours.sd and not round(ours.sd, places))
    return f"{own} ± {ours.sd:.1g}" if hidden else f"{own} ± {ours.sd:.{places}f}"


class _Lines(Sequence[list[str]]):
    """Lines of cleaned texts. Each line is kept as one string, so that many lines need little
    memory.
    """

    _BEFORE = "\x1f"  # a control character, absent from cleaned text

    def __init__(self, lines: Iterable[list[str]]) -> None:
        self._lines = list(map(self._packed, lines))

    def _packed(self, line: list[str]) -> str:
        if not "".join(line).isprintable():
            line = list(map(cleaned, line))
        return "".join([self._BEFORE + text for text in line])

    def __len__(self) -> int:
        return len(self._lines)

    def __getitem__(self, place):
        return self._lines[place].split(self._BEFORE)[1:]

    def __iter__(self) -> Iterator[list[str]]:
        return (line.split(self._BEFORE)[1:] for line in self._lines)


@dataclass(frozen=True)
class _Grid:
    """A section as texts."""

    title: str
    columns: list[str]
    lines: _Lines
    n_labels: int


@dataclass(frozen=True)
class _Page:
    """A table as texts, each a single line without control characters."""

    title: str
    grids: list[_Grid]
    notes: list[str]


def render(table: Table, form: str, width: int | None = None) -> str:
    """`table` in one of FORMATS, ending with a newline. width: the maximum columns of text, as far
    as cells allow.
    """
    if form == "csv":
        return _csv(table)
    if form == "json":
        return _json(table)
    if form == "latex":
        return _latex(_page(table, DAGGER))
    page = _page(table)
    return _text(page, width or 10**6) if form == "text" else _markdown(page)


def cleaned(text: str) -> str:
    """A text in one line, with control characters escaped."""
    return text if text.isprintable() else terminal.plain(text.translate(_BREAKS))


_BREAKS = dict.fromkeys(map(ord, "\t\n\r\v\f\x85\u2028\u2029"), " ")


# the mark of the best in LaTeX, because an exclamation mark would be read as a factorial
DAGGER = "\N{DAGGER}"


def _page(table: Table, best: str = BEST) -> _Page:
    grids = [
        _Grid(
            cleaned(section.title),
            [cleaned(head) for head in section.columns],
            _Lines([text(cell, best) for cell in line] for line in section.lines),
            section.n_labels,
        )
        for section in table.sections
    ]
    notes = [cleaned(note) for note in table.notes]
    # the note that explains the mark begins with it
    notes = [
        best + note.removeprefix(BEST) if note.startswith(f"{BEST}: ") else note for note in notes
    ]
    return _Page(cleaned(table.title), grids, notes)


def _text(table: _Page, width: int) -> str:
    out = textwrap.wrap(table.title, width)
    widths: dict[int, list[int]] = {}  # by the number of columns, shared by sections
    for section in table.grids:
        for line in chain([section.columns], section.lines):
            known = widths.setdefault(len(line), [0] * len(line))
            known[:] = map(max, known, map(len, line))
    for section in table.grids:
        own = widths[len(section.columns)]
        for number, chosen in enumerate(_split(own, section.n_labels, width)):
            out += (
                ["", *textwrap.wrap(section.title, width)]
                if section.title and number == 0
                else [""]
            )
            for line in chain([section.columns], section.lines):
                out.append(
                    "  ".join([line[column].ljust(own[column]) for column in chosen]).rstrip()
                )
    notes = [
        line for note in table.notes for line in textwrap.wrap(note, width, subsequent_indent="  ")
    ]
    out += ["", *notes, ""] if notes else [""]
    return "\n".join(out)


def _split(widths, n_labels, width) -> list[list[int]]:
    """The columns of each part of a grid that is too wide: the labels in each part, with as many
    other columns as fit.
    """
    labels = list(range(n_labels))
    start = sum(widths[:n_labels]) + 2 * n_labels
    found: list[list[int]] = [[]]
    used = start
    for column in range(n_labels, len(widths)):
        if found[-1] and used + widths[column] > width:
            found.append([])
            used = start
        found[-1].append(column)
        used += widths[column] + 2
    return [labels + part for part in found]


def _markdown(table: _Page) -> str:
    out = [f"**{_bars(table.title)}**"]
    for section in table.grids:
        out += ["", _bars(section.title), ""] if section.title else [""]
        out.append(_pipes(section.columns))
        out.append(_pipes(_dashes(section)))
        out += [_pipes(line) for line in section.lines]
    if table.notes:
        out += [""] + [f"- {_bars(note)}" for note in table.notes]
    return "\n".join(out) + "\n"


def _dashes(section: _Grid) -> Iterator[str]:
    """The alignment of each column: to the right if it contains numbers, and is not a label."""
    numbers = {
        column
        for line in section.lines
        for column, text in enumerate(line)
        if column >= section.n_labels and _NUMBER.match(text)
    }
    return ("---:" if column in numbers else "---" for column in range(len(section.columns)))


_NUMBER = re.compile(r"[-+]?[.\d]")


def _pipes(texts) -> str:
    return "| " + " | ".join(_bars(text) for text in texts) + " |"


def _bars(text) -> str:
    return text.replace("|", r"\|").replace("*", r"\*")


def _latex(table: _Page) -> str:
    columns = max((len(section.columns) for section in table.grids), default=1)
    labels = max((section.n_labels for section in table.grids), default=1)
    out = ["% \\usepackage{booktabs}", r"\begin{table}", rf"\caption{{{_escape(table.title)}}}"]
    out.append(rf"\begin{{tabular}}{{{'l' * labels}{'r' * (columns - labels)}}}")
    for number, section in enumerate(table.grids):
        out.append(r"\midrule" if number else r"\toprule")
        if section.title:
            out += [rf"\multicolumn{{{columns}}}{{l}}{{{_escape(section.title)}}} \\", r"\midrule"]
        out += [
            _latex_line(section.columns),
            r"\midrule",
            *(_latex_line(line) for line in section.lines),
        ]
    out += [r"\bottomrule", r"\end{tabular}"]
    out += [rf"\par {_escape(note)}" for note in table.notes]
    return "\n".join([*out, r"\end{table}"]) + "\n"


def _latex_line(line) -> str:
    return " & ".join("--" if text == DASH else _escape(text) for text in line) + r" \\"


_LATEX = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
_LATEX |= {
    "±": r"$\pm$",
    DAGGER: r"\textsuperscript{\textdagger}",
    "…": r"\dots{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
}
_LATEX |= {character: "\\" + character for character in "&%$#_{}"}


def _escape(text) -> str:
    return "".join(_LATEX.get(character, character) for character in text)


def _csv(table: Table) -> str:
    out = io.StringIO()
    names = list(dict.fromkeys(name for cell in table.cells for name in cell))
    writer = csv.DictWriter(out, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(
        {
            name: safe(cleaned(value)) if isinstance(value, str) else value
            for name, value in cell.items()
        }
        for cell in table.cells
    )
    return out.getvalue()


def _json(table: Table) -> str:
    head = json.dumps(
        {"table": table.name, "title": cleaned(table.title)}, indent=1, ensure_ascii=False
    )[:-2]
    notes = json.dumps(
        {"notes": [cleaned(note) for note in table.notes]}, indent=1, ensure_ascii=False
    )[2:]
    out = [f'{head},\n "cells": [']
    # cell by cell, so that large tables need little memory
    for cell in table.cells:
        text = json.dumps(finite(cell), indent=1, ensure_ascii=False, allow_nan=False)
        out += ["\n  " if len(out) == 1 else ",\n  ", text.replace("\n", "\n  ")]
    out.append("]" if len(out) == 1 else "\n ]")
    return "".join([*out, f",\n{notes}\n"])


def finite(cell: dict) -> dict:
    """The cell with null for numbers that JSON cannot represent."""
    return {
        name: (
            None
            if isinstance(value, float) and not math.isfinite(value)
            else cleaned(value)
            if isinstance(value, str)
            else value
        )
        for name, value in cell.items()
    }
