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
    """A section prepared for a page: heads are (text, method) of each column; sortable if there are
    several lines.
    """

    title: str
    heads: list[tuple[str, str]]
    lines: list[Line]
    n_labels: int
    dataset: str = ""


def of(section: Section) -> Grid:
    """Prepare `section` for a page."""
    given = section.methods
    by_column = [
        given.get(place) or given.get(head, "") for place, head in enumerate(section.columns)
    ]
    named = {head: place for place, head in enumerate(section.columns)}
    titles = {title: name for title, name in given.items() if isinstance(title, str)}
    lines: list[Line] = []
    above = [""] * section.n_labels
    for cells in section.lines:
        own = [text(cell) for cell in cells[: section.n_labels]]
        labels = [words or before for words, before in zip(own, above)]
        shown = [
            Shown(Parts(label), label=True, again=not words and bool(before))
            for label, words, before in zip(labels, own, above)
        ]
        shown += [
            Shown(parts(cell), method=method)
            for cell, method in zip(cells[section.n_labels :], by_column[section.n_labels :])
        ]
        dataset = text(cells[named["data set"]]).partition(":")[0] if "data set" in named else ""
        word = text(cells[named["method"]]) if "method" in named else ""
        lines.append(Line(shown, dataset or section.dataset, _method(word, labels, titles)))
        above = labels
    return Grid(
        section.title,
        list(zip(section.columns, by_column)),
        lines,
        section.n_labels,
        section.dataset,
    )


def _method(word: str, labels: list[str], titles: dict[str, str]) -> str:
    """The method of a line, from its column of methods or from its labels."""
    found = titles.get(word) or next((titles[label] for label in labels if label in titles), "")
    return found or (word if word in methods.names() else "")
