"""A table as text, Markdown, LaTeX, CSV or JSON."""

import csv
import io
import json
import math
import textwrap
from dataclasses import replace

from rfx import terminal
from rfx.records.sheet import safe
from rfx.reporting.tables import DASH, Table

FORMATS = ("text", "markdown", "latex", "csv", "json")


def render(table: Table, form: str, width: int | None = None) -> str:
    """`table` in one of FORMATS, ending with a line end; width: the most columns of text, as far as cells allow."""
    table = _cleaned(table)
    if form == "text":
        return _text(table, width or 10**6)
    return {"markdown": _markdown, "latex": _latex, "csv": _csv, "json": _json}[form](table)


def cleaned(text: str) -> str:
    """A text in one line, with control characters spelled out."""
    return text if text.isprintable() else terminal.plain(text.translate(_BREAKS))


_BREAKS = dict.fromkeys(map(ord, "\t\n\r\v\f\x85\u2028\u2029"), " ")


def _cleaned(table: Table) -> Table:
    sections = [
        replace(
            section,
            title=cleaned(section.title),
            columns=[cleaned(text) for text in section.columns],
            lines=[line if all(map(str.isprintable, line)) else [cleaned(text) for text in line] for line in section.lines],
        )
        for section in table.sections
    ]
    return replace(table, title=cleaned(table.title), sections=sections, notes=[cleaned(note) for note in table.notes])


def _text(table, width) -> str:
    out = textwrap.wrap(table.title, width)
    widths = {}
    for section in table.sections:
        for line in (section.columns, *section.lines):
            for column, text in enumerate(line):
                widths[len(line), column] = max(widths.get((len(line), column), 0), len(text))
    for section in table.sections:
        own = [widths.get((len(section.columns), column), 0) for column in range(len(section.columns))]
        for number, chosen in enumerate(_parts(own, section.n_labels, width)):
            out += ["", *textwrap.wrap(section.title, width)] if section.title and number == 0 else [""]
            for line in (section.columns, *section.lines):
                out.append("  ".join(line[column].ljust(own[column]) for column in chosen).rstrip())
    notes = [line for note in table.notes for line in textwrap.wrap(note, width, subsequent_indent="  ")]
    return "\n".join(out + ([""] + notes if notes else [])) + "\n"


def _parts(widths, n_labels, width) -> list[list[int]]:
    """The columns of each part of a grid that is too wide: the labels in each, and as many of the others as fit."""
    labels = list(range(n_labels))
    start = sum(widths[:n_labels]) + 2 * n_labels
    parts, used = [[]], start
    for column in range(n_labels, len(widths)):
        if parts[-1] and used + widths[column] > width:
            parts.append([])
            used = start
        parts[-1].append(column)
        used += widths[column] + 2
    return [labels + part for part in parts]


def _markdown(table) -> str:
    out = [f"**{_bars(table.title)}**"]
    for section in table.sections:
        out += ["", _bars(section.title), ""] if section.title else [""]
        out.append(_pipes(section.columns))
        out.append(_pipes("---" if column < section.n_labels else "---:" for column in range(len(section.columns))))
        out += [_pipes(line) for line in section.lines]
    if table.notes:
        out += [""] + [f"- {_bars(note)}" for note in table.notes]
    return "\n".join(out) + "\n"


def _pipes(texts) -> str:
    return "| " + " | ".join(_bars(text) for text in texts) + " |"


def _bars(text) -> str:
    return text.replace("|", r"\|").replace("*", r"\*")


def _latex(table) -> str:
    columns = max((len(section.columns) for section in table.sections), default=1)
    labels = max((section.n_labels for section in table.sections), default=1)
    out = ["% \\usepackage{booktabs}", r"\begin{table}", rf"\caption{{{_escape(table.title)}}}"]
    out.append(rf"\begin{{tabular}}{{{'l' * labels}{'r' * (columns - labels)}}}")
    for number, section in enumerate(table.sections):
        out.append(r"\midrule" if number else r"\toprule")
        if section.title:
            out += [rf"\multicolumn{{{columns}}}{{l}}{{{_escape(section.title)}}} \\", r"\midrule"]
        out += [_latex_line(section.columns), r"\midrule", *(_latex_line(line) for line in section.lines)]
    out += [r"\bottomrule", r"\end{tabular}"]
    out += [rf"\par {_escape(note)}" for note in table.notes]
    return "\n".join([*out, r"\end{table}"]) + "\n"


def _latex_line(line) -> str:
    return " & ".join("--" if text == DASH else _escape(text) for text in line) + r" \\"


_LATEX = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
_LATEX |= {"±": r"$\pm$", "…": r"\dots{}", "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}"}
_LATEX |= {character: "\\" + character for character in "&%$#_{}"}


def _escape(text) -> str:
    return "".join(_LATEX.get(character, character) for character in text)


def _csv(table) -> str:
    out = io.StringIO()
    names = list(dict.fromkeys(name for cell in table.cells for name in cell))
    writer = csv.DictWriter(out, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(
        {name: safe(cleaned(value)) if isinstance(value, str) else value for name, value in cell.items()} for cell in table.cells
    )
    return out.getvalue()


def _json(table) -> str:
    # cell by cell, so that a table of many takes little memory
    texts = (json.dumps(finite(cell), indent=1, ensure_ascii=False, allow_nan=False) for cell in table.cells)
    cells = ["  " + text.replace("\n", "\n  ") for text in texts]
    head = json.dumps({"table": table.name, "title": table.title}, indent=1, ensure_ascii=False)[:-2]
    notes = json.dumps({"notes": table.notes}, indent=1, ensure_ascii=False)[2:]
    inside = ",\n".join(cells)
    return f'{head},\n "cells": [' + (f"\n{inside}\n ]" if cells else "]") + f",\n{notes}\n"


def finite(cell: dict) -> dict:
    """The same with null for numbers that JSON does not have."""
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else cleaned(value) if isinstance(value, str) else value
        for name, value in cell.items()
    }
