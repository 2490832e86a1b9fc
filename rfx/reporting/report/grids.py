"""A section of a table as rows of a page: which parts are labels, our numbers or the paper's
numbers, and for which data set and method.
"""

from dataclasses import dataclass

from rfx import methods
from rfx.reporting.cells import Section
from rfx.reporting.tables_render import Parts, parts, text


@dataclass(frozen=True)
class Shown:
    """One cell: its text in parts. label: it names the line; again: the line above has the same
    label. method: the method of its number.
    """

    parts: Parts
    label: bool = False
    again: bool = False
    method: str = ""


@dataclass(frozen=True)
class Line:
    cells: list[Shown]
    dataset: str = ""
    method: str = ""


@dataclass(frozen=True)
class Grid:
    """A section prepared for a page: heads are (text, method) of each column."""

    title: str
    heads: list[tuple[str, str]]
    lines: list[Line]
    n_labels: int
    dataset: str = ""


def of(section: Section) -> Grid:
    """Prepare `section` for a page."""
    n_labels, by_name = section.n_labels, section.methods
    column_methods = [
        by_name.get(place) or by_name.get(head, "") for place, head in enumerate(section.columns)
    ]
    titles = {name: name for name in methods.names()} | {
        title: name for title, name in by_name.items() if isinstance(title, str)
    }
    lines: list[Line] = []
    above = [""] * n_labels
    for cells in section.lines:
        named = dict(zip(section.columns, map(text, cells)))
        texts = [text(cell) for cell in cells[:n_labels]]
        labels = [label or before for label, before in zip(texts, above)]
        shown = [
            Shown(Parts(label), label=True, again=not label_text and bool(before))
            for label, label_text, before in zip(labels, texts, above)
        ]
        shown += [
            Shown(parts(cell), method=method)
            for cell, method in zip(cells[n_labels:], column_methods[n_labels:])
        ]
        dataset = named.get("data set", "").partition(":")[0] or section.dataset
        words = (named.get("method", ""), *(label for label in labels if label in by_name))
        method = next((titles[word] for word in words if word in titles), "")
        lines.append(Line(shown, dataset, method))
        above = labels
    heads = list(zip(section.columns, column_methods))
    return Grid(section.title, heads, lines, n_labels, section.dataset)
