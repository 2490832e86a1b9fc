"""A table as text, Markdown, LaTeX, CSV or JSON."""

import csv
import io
import json

from rfx.experiments.tables import DASH, Table

FORMATS = ("text", "markdown", "latex", "csv", "json")


def render(table: Table, form: str) -> str:
    """`table` in one of FORMATS, ending with a line end."""
    return {"text": _text, "markdown": _markdown, "latex": _latex, "csv": _csv, "json": _json}[form](table)


def _text(table) -> str:
    grids = [[section.columns, *section.lines] for section in table.sections]
    widths = {}
    for grid in grids:
        for line in grid:
            for column, text in enumerate(line):
                widths[len(line), column] = max(widths.get((len(line), column), 0), len(text))
    out = [table.title]
    for section, grid in zip(table.sections, grids):
        out += ["", section.title] if section.title else [""]
        for line in grid:
            cells = [text.ljust(widths[len(line), column]) for column, text in enumerate(line)]
            out.append("  ".join(cells).rstrip())
    return "\n".join(out + ([""] + table.notes if table.notes else [])) + "\n"


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
    out = [r"\begin{table}", rf"\caption{{{_escape(table.title)}}}"]
    out.append(rf"\begin{{tabular}}{{{'l' * labels}{'r' * (columns - labels)}}}")
    for section in table.sections:
        out.append(r"\hline")
        if section.title:
            out.append(rf"\multicolumn{{{columns}}}{{l}}{{{_escape(section.title)}}} \\")
        out += [_latex_line(line) for line in (section.columns, *section.lines)]
    out += [r"\hline", r"\end{tabular}"]
    out += [rf"\par {_escape(note)}" for note in table.notes]
    return "\n".join([*out, r"\end{table}"]) + "\n"


def _latex_line(line) -> str:
    return " & ".join("--" if text == DASH else _escape(text) for text in line) + r" \\"


_LATEX = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
_LATEX |= {character: "\\" + character for character in "&%$#_{}"}


def _escape(text) -> str:
    return "".join(_LATEX.get(character, character) for character in text)


def _csv(table) -> str:
    out = io.StringIO()
    names = list(dict.fromkeys(name for cell in table.cells for name in cell))
    writer = csv.DictWriter(out, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(table.cells)
    return out.getvalue()


def _json(table) -> str:
    content = {"table": table.name, "title": table.title, "cells": table.cells, "notes": table.notes}
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"
