"""A section of a table as rows of a page: what is a label, what is ours and what the paper's, of which data set and method."""

import re
from dataclasses import dataclass

from rfx import methods
from rfx.reporting.seeds import MARKS
from rfx.reporting.tables import Section

_VERDICTS = {mark: name for name, mark in MARKS.items()}
_MARK = re.compile(r"^(.*?) ?(\([+=-]\))?$", re.S)


@dataclass(frozen=True)
class Cell:
    """One cell: its text in parts. label: it names the line; again: a label that the line above has, too. method: whose number it is."""

    ours: str
    paper: str = ""
    verdict: str = ""
    star: bool = False
    label: bool = False
    again: bool = False
    method: str = ""


@dataclass(frozen=True)
class Line:
    cells: list[Cell]
    dataset: str = ""
    method: str = ""


@dataclass(frozen=True)
class Grid:
    """A section made ready: heads are (text, method) of each column; sortable, where there is more than one line."""

    title: str
    heads: list[tuple[str, str]]
    lines: list[Line]
    n_labels: int
    dataset: str = ""


def of(section: Section) -> Grid:
    """`section` with its parts told apart."""
    by_column = {place: section.methods.get(place) or section.methods.get(head, "") for place, head in enumerate(section.columns)}
    titles = {text: name for text, name in section.methods.items() if isinstance(text, str)}
    known = set(methods.names())
    named = {head: place for place, head in enumerate(section.columns)}
    lines, above = [], [""] * section.n_labels
    for texts in section.lines:
        labels = [text or above[place] for place, text in enumerate(texts[: section.n_labels])]
        again = [not text and bool(above[place]) for place, text in enumerate(texts[: section.n_labels])]
        above = labels
        column = named.get("method")
        word = texts[column] if column is not None else ""
        method = titles.get(word) or next((titles[text] for text in labels if text in titles), word if word in known else "")
        dataset = texts[named["data set"]].partition(":")[0] if "data set" in named else ""
        cells = [Cell(text, label=True, again=repeated) for text, repeated in zip(labels, again)]
        cells += [cell(text, by_column[place]) for place, text in enumerate(texts) if place >= section.n_labels]
        lines.append(Line(cells, dataset or section.dataset, method))
    return Grid(
        section.title, [(head, by_column[place]) for place, head in enumerate(section.columns)], lines, section.n_labels, section.dataset
    )


def cell(text: str, method: str = "") -> Cell:
    """The parts of "0.0364 ± 0.0007* / 0.032 (-)"."""
    rest, mark = _MARK.match(text).groups()
    ours, slash, paper = rest.partition(" / ")
    star = ours.endswith("*")
    return Cell(ours.removesuffix("*"), paper if slash else "", _VERDICTS.get(mark, ""), star, method=method)
