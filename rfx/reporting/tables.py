"""Tables of any results file: `summary`, with every row or the mean of each group of rows, and the
comparison of two files; tables by name; and tables as text, Markdown, LaTeX, CSV or JSON.
"""

import json
import math
import re
import textwrap
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np
from scipy.special import stdtr

from rfx import lazy
from rfx.errors import UsageError, or_near
from rfx.measures import less_is_better
from rfx.parallel import cached
from rfx.plans import catalogue
from rfx.records.results import safe_text
from rfx.reporting import columns
from rfx.reporting.cells import (
    BEST,
    DASH,
    MARKS,
    Cell,
    Format,
    Line,
    Mean,
    Printed,
    Row,
    Section,
    Table,
    decimals,
    formats_of,
    good,
    grouped,
    grouped_by,
    inputs_of,
    labelled,
    mean_if_any,
    number,
    section,
    short,
    shown,
    span,
    tidy,
    token,
    words,
)

if TYPE_CHECKING:
    from pandas import DataFrame, Series

# ----------------------------------------------------------------------
# Tables by name, which `rfx.plans.catalogue` finds, and the notes that several have.


def failures(rows: Iterable[Row]) -> list[str]:
    """The runs that failed and the reasons, one line per reason."""
    failed = [row for row in rows if row.status != "ok"]
    notes = []
    by_reason = grouped_by(failed, "dataset", "status", "message")
    for (dataset, status, message), runs in by_reason.items():
        methods = ", ".join(dict.fromkeys(row.method for row in runs))
        ended = f"{status}, runs: {len(runs)}"
        notes.append(f"No result: {dataset}, {methods} ({ended}): {message}")
    return notes


def machines(rows: Iterable[Row]) -> list[str]:
    """The processors, threads and versions of the successful ones of the rows, one line each."""
    programs = ("rfx", "python", "numpy", "scipy", "numba", "liblinear", "libsvm", "blas")
    lines = []
    for row in good(rows):
        versions = ", ".join(f"{name} {row[name]}" for name in programs if row[name])
        machine = f"{row.cpu or 'unknown'}, {row.threads or 'all'} threads"
        lines.append(f"Machine: {machine}; {versions}")
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
    `summary`.
    """
    builders = catalogue.tables() if builders is None else builders
    if name not in builders:
        raise UsageError(f"there is no table {name}{or_near(name, builders)}")
    return builders[name](rows, setting, **(more if name == "summary" else {}))


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
    paper = _paper(cell) if cell.pair else ""
    verdict = (cell.verdict or "") if cell.marked else ""
    if cell.text is None and cell.ours is None:
        return Parts(DASH, False, paper, verdict)
    star = cell.marked and cell.converged is False
    return Parts(_ours(cell, best), star, paper, verdict)


def _ours(cell: Cell, best: str) -> str:
    """Our number, or the text in its place."""
    if cell.ours is None or cell.text is not None:
        return cell.text or ""
    number = f"{_number(cell, cell.ours)}{cell.note}"
    return f"{number}{best}" if cell.best else number


def _paper(cell: Cell) -> str:
    """The paper's number with the paper's digits."""
    if cell.paper is None:
        return DASH
    return cell.paper.text if isinstance(cell.paper, Printed) else cell.write(cell.paper)


def text(cell: Cell, best: str = BEST) -> str:
    """A cell as printed, such as 0.0364 ± 0.0007* / 0.032 (-)."""
    written, star, paper, verdict = parts(cell, best)
    if star:
        written += "*"
    if paper:
        written += f" / {paper}"
    if verdict:
        written += f" {MARKS[verdict]}"
    return written


def texts(section: Section, best: str = BEST) -> list[list[str]]:
    """The texts of a section by line."""
    write = partial(text, best=best)
    return [list(map(write, line)) for line in section.lines]


def _number(cell: Cell, ours: Mean) -> str:
    """The number with its standard deviation or range."""
    written, sd = cell.write(ours.value), ours.sd
    ends = f"{cell.write(ours.low)} to {cell.write(ours.high)}"
    if cell.around == "extremes":
        return written if ours.low == ours.high else ends
    if cell.around == "range":
        return f"{written} ({ends})"
    if not cell.around or sd is None:
        return written
    places = len(written.partition(".")[2])
    is_hidden = cell.around == "deviation" and sd and not round(sd, places)
    if is_hidden or "e" in written:
        return f"{written} ± {sd:.1g}"
    return f"{written} ± {sd:.{places}f}"


class _Grid(NamedTuple):
    """A section as texts."""

    title: str
    lines: list[list[str]]  # the first: the headings
    n_labels: int


def render(table: Table, form: str, width: int | None = None) -> str:
    """`table` in one of FORMATS, ending with a newline. width: the maximum columns of text, as far
    as cells allow.
    """
    if form == "csv":
        return _csv(table)
    if form == "json":
        return _json(table)
    best = DAGGER if form == "latex" else BEST
    grids = []
    for one in table.sections:
        lines = [list(one.columns), *texts(one, best)]
        grids.append(_Grid(one.title, lines, one.n_labels))
    notes = [re.sub(f"^{BEST}: ", f"{best}: ", note) for note in table.notes]
    if form == "text":
        return _text(table.title, grids, notes, width or 10**6)
    if form == "latex":
        return _latex(table.title, grids, notes)
    return _markdown(table.title, grids, notes)


def _text(title: str, grids: Sequence[_Grid], notes: Sequence[str], width: int) -> str:
    out = textwrap.wrap(title, width)
    # shared by sections with as many columns
    widths: dict[int, list[int]] = {}
    for block in grids:
        for line in block.lines:
            before = widths.get(len(line), [0] * len(line))
            widths[len(line)] = list(map(max, before, map(len, line)))
    for block in grids:
        out += _text_of_grid(block, widths[len(block.lines[0])], width)
    out.append("")
    for note in notes:
        out += textwrap.wrap(note, width, subsequent_indent="  ")
    if notes:
        out.append("")
    return "\n".join(out)


def _text_of_grid(block: _Grid, sizes: Sequence[int], width: int) -> list[str]:
    """The lines of a section, in parts if it is too wide; the first has the title."""
    out = []
    for part, places in enumerate(_split(sizes, block.n_labels, width)):
        out.append("")
        if part == 0:
            out += textwrap.wrap(block.title, width)
        for line in block.lines:
            cells = [line[place].ljust(sizes[place]) for place in places]
            out.append("  ".join(cells).rstrip())
    return out


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


def _escape_markdown(text: str) -> str:
    return text.replace("|", r"\|").replace("*", r"\*")


def _markdown_line(texts: Iterable[str]) -> str:
    return f"| {' | '.join(map(_escape_markdown, texts))} |"


def _markdown(title: str, grids: Sequence[_Grid], notes: Sequence[str]) -> str:
    out = [f"**{_escape_markdown(title)}**"]
    for block in grids:
        heads, *lines = block.lines
        rule = ["---"] * len(heads)
        for place, texts_of in enumerate(zip(*lines)):
            if place >= block.n_labels and any(map(_NUMBER.match, texts_of)):
                rule[place] = "---:"
        out.append("")
        if block.title:
            out += [_escape_markdown(block.title), ""]
        out += map(_markdown_line, [heads, rule, *lines])
    if notes:
        out.append("")
        out += [f"- {_escape_markdown(note)}" for note in notes]
    return "\n".join(out) + "\n"


_NUMBER = re.compile(r"[-+]?[.\d]")


def _escape_latex(text: str) -> str:
    return "--" if text == DASH else text.translate(_LATEX)


def _columns_and_labels(block: _Grid) -> tuple[int, int]:
    return len(block.lines[0]), block.n_labels


def _latex(title: str, grids: Sequence[_Grid], notes: Sequence[str]) -> str:
    tabulars: list[str] = []
    for (n_columns, n_labels), alike in groupby(grids, _columns_and_labels):
        sections = list(alike)
        lines = [line for block in sections for line in block.lines]
        widths = [max(map(len, texts_of)) for texts_of in zip(*lines)] or [0] * n_columns
        for places in _split(widths, n_labels, _LATEX_SHRUNK):
            out = _tabular(sections, places)
            if sum(widths[place] + 2 for place in places) > _LATEX_LINE:
                out = [r"\resizebox{\linewidth}{!}{%", *out, "}"]
            tabulars.append("\n".join(out))
    out = ["% \\usepackage{booktabs,graphicx}", r"\begin{table}"]
    out.append(rf"\caption{{{_escape_latex(title)}}}")
    out.append("\n\\par\\medskip\n".join(tabulars))
    out += [rf"\par {_escape_latex(note)}" for note in notes]
    out.append(r"\end{table}")
    return "\n".join(out) + "\n"


def _tabular(sections: Sequence[_Grid], places: Sequence[int]) -> list[str]:
    """The lines of a LaTeX tabular of sections that have as many columns, of which some are
    shown.
    """
    n_labels = sections[0].n_labels
    letters = "l" * n_labels + "r" * (len(places) - n_labels)
    out = [rf"\begin{{tabular}}{{{letters}}}"]
    for place, block in enumerate(sections):
        out.append(r"\midrule" if place else r"\toprule")
        if block.title:
            title = _escape_latex(block.title)
            out += [rf"\multicolumn{{{len(places)}}}{{l}}{{{title}}} \\", r"\midrule"]
        rows = []
        for line in block.lines:
            cells = [_escape_latex(line[at]) for at in places]
            rows.append(" & ".join(cells) + r" \\")
        heads, *rest = rows
        out += [heads, r"\midrule", *rest]
    return [*out, r"\bottomrule", r"\end{tabular}"]


_LATEX = str.maketrans(
    {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
    | {"±": r"$\pm$", DAGGER: r"\textsuperscript{\textdagger}", "…": r"\dots{}"}
    | {"<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}"}
    | {character: "\\" + character for character in "&%$#_{}"}
)


def _csv(table: Table) -> str:
    cells = [dict(zip(cell, map(safe_text, cell.values()))) for cell in table.cells]
    frame = lazy.pandas.DataFrame(cells, dtype=object)
    return frame.to_csv(index=False, lineterminator="\n") if cells else "\n"


def _json(table: Table) -> str:
    cells = [dict(zip(cell, map(_finite, cell.values()))) for cell in table.cells]
    content = {"table": table.name, "title": table.title, "cells": cells, "notes": table.notes}
    return json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _finite(value: object) -> object:
    """A plain number, or None for one that JSON cannot represent; any other value as it is."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


# ----------------------------------------------------------------------
# Tables of any results file.

# columns of each row in CSV and JSON
_CELLS = (
    "dataset",
    "method",
    "kernel",
    "n_features",
    "lam",
    "score",
    "metric",
    "model_size",
    "seconds_train",
    "seconds_predict",
    "peak_rss_mb",
)
_BEST = f"{BEST}: the best score of its data set"
_P_NOTE = (
    f"{_BEST}; paired p: of a t-test of the difference from it, run by run of the same seed,"
    " corrected for the number of tests on the data set (Holm)"
)
_RANK_NOTE = (
    "Errors of unlike data sets have no mean: on each data set the groups are ranked by their means"
    " there, 1 is the best score, or the least of all else. Add dataset to --group-by for means."
)
# A t-test of fewer pairs is uninformative.
FEWEST_PAIRS = 3
_MOST_WORDS = 3


# ------------------------------------------------------------------------------------------ summary


def summary(rows, setting=None, group_by=None, mean_over=None) -> Table:
    """Data set, method, varying inputs, score, size, seconds and memory of every row, or of the
    rows of one setting.

    group_by: names of columns, separated by commas. Each combination of their values has a line
    with mean, standard deviation and number of rows. mean_over: the same, grouped by all varying
    columns except those named, such as seed.
    """
    if setting is not None:
        rows = _rows_of_setting(rows, setting)
    # a plan has one method after the other; a reader compares the methods of a data set
    rows = [row for own in grouped_by(rows, "dataset").values() for row in own]
    inputs = columns.of(rows)
    if not group_by and not mean_over:
        return _listed(rows, inputs)
    by = names = [inputs.resolve(name) for name in (group_by or mean_over).split(",")]
    title = f"by {', '.join(map(columns.heading, names))}"
    if not group_by:
        # chosen values may differ between seeds; requested values do not
        varying = (*columns.ALWAYS, *columns.of(rows, requested=True).varying)
        by = [name for name in varying if name not in names]
        title = f"means over {', '.join(names)}"
    problems = set(map(_problem, good(rows)))
    if len(problems) > 1 and "dataset" not in by:
        return _ranked(rows, inputs, by, title)
    # with means over some columns, chosen values of lambda are worth a column
    return _grouped(rows, inputs, by, title, bool(mean_over) and "lam" not in by)


def _rows_of_setting(rows: Sequence[Row], setting: str) -> list[Row]:
    labels = {row.params.get("label") or "" for row in rows} - {""}
    if setting not in labels:
        there = ", ".join(sorted(labels)) or "none"
        raise UsageError(f"--setting {setting}: no row has it (there are: {there})")
    return labelled(rows, setting)


# the problem of a run, and its seed
_Run: TypeAlias = tuple[object, ...]


@dataclass
class _Group:
    """Rows of runs with the same values of some columns.

    inputs: these values as requested; metric: that of all scores, None if there are several; used:
    the inputs in use of each row; best: whether it is the best of its kind; p, pairs: of the paired
    test against the best.
    """

    inputs: dict[str, object]
    metric: str | None
    rows: list[Row] = field(default_factory=list)
    used: list[Mapping[str, object]] = field(default_factory=list)
    best: bool = False
    p: float | None = None
    pairs: int = 0

    @property
    def family(self) -> tuple[object, ...]:
        """The identifier of the groups that are compared for the best."""
        return self.inputs.get("dataset"), self.inputs.get("seed"), self.metric

    @cached
    def means(self) -> dict[str, Mean | None]:
        means = {}
        for name in columns.OUTCOMES:
            means[name] = mean_if_any(columns.outcome(row, name) for row in self.rows)
        return means

    @property
    def mean_score(self) -> Mean | None:
        return mean_if_any(row.score for row in self.rows)

    @property
    def gain(self) -> float | None:
        """The mean score with a sign such that more is better."""
        mean = self.mean_score
        if mean is None:
            return None
        return -mean.value if less_is_better(self.metric) else mean.value

    @cached
    def scores(self) -> dict[_Run, float]:
        """The mean score of each problem and seed; the seed is None for a deterministic run, and if
        seeds are not told apart.
        """
        scores = grouped(
            ((*_problem(row), self._seed(row)), row.score)
            for row in self.rows
            if row.score is not None
        )
        return {name: sum(values) / len(values) for name, values in scores.items()}

    def _seed(self, row: Row) -> int | None:
        return None if row.params.get("seedless") or "seed" in self.inputs else row.seed

    def score(self, name: _Run) -> float | None:
        """The score of a problem and seed; a deterministic run has one score for all seeds."""
        return self.scores.get(name, self.scores.get((*name[:-1], None)))

    def compare(self, best: "_Group") -> None:
        """The paired t-test against the best; p is None if the test is undefined."""
        both = [(self.score(name), best.score(name)) for name in {**self.scores, **best.scores}]
        less = mean_if_any(a - b for a, b in both if a is not None and b is not None)
        if less is None:
            return
        self.pairs = less.n
        if less.sd and less.n >= FEWEST_PAIRS:
            error = less.sd / less.n**0.5
            self.p = float(2 * stdtr(less.n - 1, -abs(less.value) / error))

    @property
    def has_few_pairs(self) -> bool:
        """Whether there are pairs, but too few for a test."""
        return self.p is None and 0 < self.pairs < FEWEST_PAIRS

    def chosen(self, name: str) -> set[object]:
        """The values of an input that the runs used, other than the requested one."""
        used = {run.get(name) for run in self.used}
        return used - {None, self.inputs.get(name)}

    def words(self, name: str) -> str:
        """A column of the group: the requested value, and the chosen values."""
        chosen = _chosen_words(name, self.chosen(name))
        if name not in self.inputs:
            return chosen or DASH
        requested = self.inputs[name]
        words = columns.written(name, requested)
        return f"{words} ({chosen})" if isinstance(requested, str) and chosen else words

    def line(self, names: Sequence[str]) -> Line:
        """The values of a line of a table, of these inputs and of every outcome."""
        line: Line = {f"input {name}": self.words(name) for name in names}
        line |= self.means
        write = columns.score_format(self.metric)
        converged = all(row.converged is not False for row in self.rows)
        line["score"] = Cell(
            self.mean_score, write, "deviation", best=self.best, converged=converged
        )
        line["metric"] = self.metric or DASH
        line["n"] = len(self.rows)
        line["p"] = self.p
        if self.has_few_pairs:
            line["p"] = "1 pair" if self.pairs == 1 else f"{self.pairs} pairs"
        return line

    @property
    def values(self) -> Line:
        """The values of the columns for CSV and JSON. The option --metric is not the metric of the
        score.
        """
        return {"learnt_metric" if one == "metric" else one: of for one, of in self.inputs.items()}

    @property
    def ranges(self) -> Line:
        """The range of chosen numbers for CSV and JSON."""
        ends: Line = {}
        for name in dict.fromkeys((*self.inputs, "lam")):
            numbers = [value for value in self.chosen(name) if isinstance(value, (int, float))]
            if numbers and isinstance(self.inputs.get(name, ""), str):
                ends[f"{name}_low"] = min(numbers)
                ends[f"{name}_high"] = max(numbers)
        return ends

    @property
    def tidy(self) -> Line:
        """The line of CSV and JSON."""
        test = {"n": len(self.rows), "best": self.best, "paired_p": self.p, "pairs": self.pairs}
        line = self.values | self.ranges | {"metric": self.metric} | test
        line |= {name: mean and mean.value for name, mean in self.means.items()}
        return line | {f"{name}_sd": mean and mean.sd for name, mean in self.means.items()}


def _chosen_words(name: str, chosen: Collection[object]) -> str:
    """Chosen values of an input: numbers as a range, and of words the first ones."""
    write = partial(columns.written, name)
    numbers = [value for value in chosen if isinstance(value, (int, float))]
    if len(numbers) == len(chosen):
        return span(numbers, write)
    texts = sorted(map(write, chosen))
    more = ["…"] if len(texts) > _MOST_WORDS else []
    return ", ".join(texts[:_MOST_WORDS] + more)


def _listed(rows: Sequence[Row], inputs: columns.Columns) -> Table:
    """Every row in a line."""
    groups = []
    for row, values in zip(rows, inputs.values):
        requested = values | {"method": columns.method(row)}
        groups.append(_Group(requested, row.metric, [row], [values]))
    done = [group for group in groups if good(group.rows)]
    best = _mark_best(done, [(group.rows[0].dataset, group.metric) for group in done])
    notes = [_BEST] if best else []
    notes += _notes(rows)
    if len(rows) > 1 and inputs.constant():
        notes.append(f"All rows: {inputs.constant()}")
    names = (*columns.ALWAYS, *inputs.varying)
    return Table(
        name="summary",
        title=f"{len(rows)} rows",
        sections=[_section(groups, names, _outcome_formats(rows), len(columns.ALWAYS))],
        notes=notes,
        cells=[_tidy_row(row, values, inputs) for row, values in zip(rows, inputs.values)],
    )


def _tidy_row(row: Row, values: Line, inputs: columns.Columns) -> Line:
    """The line of a row in CSV and JSON."""
    line: Line = {"status": row.status}
    for name in _CELLS:
        line[name] = columns.outcome(row, name) if name in columns.OUTCOMES else row[name]
    line["converged"] = row.converged
    line["label"] = row.params.get("label")
    line["seed"] = values.get("seed")
    others = [name for name in inputs.varying if name not in _CELLS]
    return line | {name: values.get(name) for name in others}


def _groups(rows, inputs: columns.Columns, by, by_metric: bool = True) -> list[_Group]:
    """The rows of successful runs, grouped by their values of the columns `by`, and by metric."""
    groups: dict[tuple[str, str | None], _Group] = {}
    for row, requested, used in zip(rows, inputs.requested, inputs.values):
        if row.status == "ok":
            values = {name: requested.get(name) for name in by}
            metric = row.metric if by_metric else None
            group = groups.setdefault((token(values), metric), _Group(values, metric))
            group.rows.append(row)
            group.used.append(used)
    return list(groups.values())


def _mark_best(
    groups: Sequence[_Group], families: Iterable[tuple[object, ...]]
) -> dict[tuple[object, ...], _Group]:
    """Mark the best groups of each family whose gains differ, and return the first of each; without
    a metric there is no best.
    """
    best = {}
    for family, members in grouped(zip(families, groups)).items():
        known = [group for group in members if group.metric and group.gain is not None]
        by_gain = grouped((group.gain or 0.0, group) for group in known)
        if len(by_gain) > 1:
            largest = by_gain[max(by_gain)]
            best[family] = largest[0]
            for group in largest:
                group.best = True
    return best


def _whole(groups: Sequence[_Group]) -> list[_Group]:
    """The groups that have every run that any group of their family has."""
    runs = grouped((group.family, name) for group in groups for name in group.scores)
    return [group for group in groups if _has_all(group, runs.get(group.family, []))]


def _has_all(group: _Group, runs: Sequence[_Run]) -> bool:
    """Whether a group has the scores of all runs; of seedless ones only if no run has a seed."""
    seeded = [name for name in runs if name[-1] is not None]
    return all(group.score(name) is not None for name in seeded or runs)


def _grouped(rows, inputs: columns.Columns, by: list[str], title: str, with_lam: bool) -> Table:
    """The means of each group, and its paired test against the best of its data set."""
    groups = _groups(rows, inputs, by)
    # only groups with every run that any group of their family has can be the best
    whole = _whole(groups)
    best = _mark_best(whole, [group.family for group in whole])
    compared = [group for group in groups if group.family in best and not group.best]
    for group in compared:
        group.compare(best[group.family])
    for members in grouped_by(compared, "family").values():
        _correct(members)
    notes = [_P_NOTE] if best else []
    if any(group.has_few_pairs for group in groups):
        notes.append(f"Fewer than {FEWEST_PAIRS} pairs of runs have no p.")
    n_partial = len(groups) - len(whole)
    if n_partial:
        lack = "lacks" if n_partial == 1 else "lack"
        runs = "runs that others of the same data set have, and can't be the best"
        notes.append(f"{n_partial} of the groups {lack} {runs}.")
    notes += _notes(rows, " in at least one of the runs")
    names = list(by)
    if with_lam and any(len(group.chosen("lam")) > 1 for group in groups):
        names.append("lam")
    outcomes = _outcome_formats(rows)
    formats = {"n": Format("n"), "score": outcomes.pop("score")}
    formats["p"] = Format("paired p", "{:.2g}".format)
    lines = _section(groups, names, formats | outcomes, min(len(names), 2))
    n_rows = f"{len(good(rows))} rows in {len(groups)} groups"
    title = f"{n_rows}, {title}: mean ± standard deviation"
    return Table("summary", title, [lines], notes, [group.tidy for group in groups])


def _correct(groups: Sequence[_Group]) -> None:
    """Multiply the p-values of several tests by Holm's method, so that with 95 % probability no
    true equality of the family is rejected at 5 %.
    """
    tested = sorted((group.p, place) for place, group in enumerate(groups) if group.p is not None)
    least = 0.0
    for rank, (p, place) in enumerate(tested):
        groups[place].p = least = max(least, min(1.0, p * (len(tested) - rank)))


def _section(
    groups: Sequence[_Group], names: Sequence[str], formats: dict[str, Format], n_labels: int
) -> Section:
    """A line for each group: its inputs, then the columns that have a format."""
    heads = {f"input {name}": Format(columns.heading(name)) for name in names}
    formats = heads | formats
    return section("", [group.line(names) for group in groups], formats, n_labels)


def _ranks(groups: Sequence[_Group]) -> "DataFrame":
    """The mean rank of each group (a number) over the data sets that have it, by each outcome."""
    outcomes = list(columns.OUTCOMES)
    lines = []
    for place, group in enumerate(groups):
        lines += [_ranked_run(row) | {"group": place} for row in group.rows]
    runs = lazy.pandas.DataFrame(lines).astype(dict.fromkeys(outcomes, float))
    means = runs.groupby(["problem", "group"])[outcomes].mean()
    return means.groupby("problem").rank()


def _ranked_run(row: Row) -> Line:
    """The problem and the outcomes of a run, less being better."""
    line: Line = {name: columns.outcome(row, name) for name in columns.OUTCOMES}
    if row.score is not None and not less_is_better(row.metric):
        line["score"] = -row.score
    # accuracy and RMSE are ranked in the same way
    line["problem"] = str((*_problem(row), row.metric))
    return line


def _mean_of_known(values: "Series") -> Mean | None:
    return mean_if_any(values.dropna())


def _ranked(rows: Sequence[Row], inputs: columns.Columns, by: list[str], title: str) -> Table:
    """Groups over several data sets: the mean of their ranks, because errors of different data sets
    have no meaningful mean.
    """
    groups = _groups(rows, inputs, by, by_metric=False)
    ranks = _ranks(groups)
    means = ranks.groupby("group").agg(_mean_of_known)
    n_problems = ranks.score.dropna().index.unique("problem").size
    whole = [rank.value for rank in means.score if rank and rank.n == n_problems]
    lines, cells = [], []
    for place, group in enumerate(groups):
        own = means.loc[place]
        rank: Mean | None = own.score
        if rank and rank.n == n_problems and len(whole) > 1:
            group.best = rank.value == min(whole)
        counts = {"n": len(group.rows), "data_sets": rank.n if rank else 0}
        score = Cell(rank, decimals(2), "deviation", best=group.best)
        lines.append(group.line(by) | own.to_dict() | counts | {"score": score})
        cells.append(group.values | counts | {"best": group.best} | _tidy_ranks(own.to_dict()))
    notes = [_RANK_NOTE]
    if any(group.best for group in groups):
        notes.append(f"{BEST}: the best mean rank among the groups that have every data set")
    notes += _notes(rows, " in at least one of the runs")
    formats = {f"input {name}": Format(columns.heading(name)) for name in by}
    formats |= {"n": Format("n"), "data_sets": Format("data sets")}
    for name, (heading, _) in columns.OUTCOMES.items():
        formats[name] = Format(f"rank by {heading}", decimals(2), "deviation")
    n_rows = f"{len(good(rows))} rows in {len(groups)} groups"
    title = f"{n_rows}, {title}: mean rank over {n_problems} data sets ± standard deviation"
    return Table("summary", title, [section("", lines, formats, min(len(by), 2))], notes, cells)


def _tidy_ranks(ranks: Mapping[str, Mean | None]) -> dict[str, float | None]:
    """The mean ranks and their standard deviations for CSV and JSON."""
    line = {}
    for name, rank in ranks.items():
        line[f"rank_{name}"] = rank and rank.value
        line[f"rank_{name}_sd"] = rank and rank.sd
    return line


def _problem(row: Row) -> tuple[object, ...]:
    """The values that identify the problem of a row."""
    named = (row.params.get(name) for name in ("test", "target", "content"))
    return row.dataset, row.split, *named


def _outcome_formats(rows: Sequence[Row]) -> dict[str, Format]:
    """The columns of the outcomes. The heading of the score is the metric; if there are several,
    the metric has a column.
    """
    formats = {
        name: Format(heading, write, "deviation")
        for name, (heading, write) in columns.OUTCOMES.items()
    }
    score = formats.pop("score")
    metrics = {row.metric for row in rows if row.metric}
    if len(metrics) != 1:
        return {"score": score, "metric": Format("metric")} | formats
    return {"score": score._replace(heading=metrics.pop())} | formats


def _notes(rows: Sequence[Row], where: str = "") -> list[str]:
    """The runs that failed, and the meaning of the star."""
    failed = [row for row in rows if row.status != "ok"]
    texts = Counter(f"{row.dataset} {row.method} ({row.status}): {row.message}" for row in failed)
    notes = [f"{text} ({n:,} runs)" if n > 1 else text for text, n in texts.items()]
    if any(row.converged is False for row in rows):
        notes.append(f"*: the solver did not converge{where}")
    return notes


# --------------------------------------------------------------------------- two files side by side


@dataclass(frozen=True, kw_only=True)
class Change:
    """The scores of a run in files A and B and their change, the training seconds in both and their
    ratio; None for undefined values. Fields without `shown` are those of CSV and JSON.
    """

    shown_a: Cell = shown("score A")
    shown_b: Cell = shown("score B")
    shown_change: str = shown("change")
    metric: str | None
    score_a: float | None
    score_b: float | None
    change: float | None
    seconds_a: float | None = shown("train A, s", short)
    seconds_b: float | None = shown("train B, s", short)
    ratio: float | None = shown("B / A", short)
    status_a: str
    status_b: str

    @classmethod
    def of(cls, a: Row, b: Row) -> "Change":
        """From the rows of one run."""
        before, after = columns.outcome(a, "seconds_train"), columns.outcome(b, "seconds_train")
        change = None
        if a.metric == b.metric and a.score is not None and b.score is not None:
            change = b.score - a.score
        return cls(
            shown_a=_score(a, b),
            shown_b=_score(b, b),
            shown_change=_signed(change),
            metric=b.metric,
            score_a=a.score,
            score_b=b.score,
            change=change,
            seconds_a=before,
            seconds_b=after,
            ratio=after / before if before and after is not None else None,
            status_a=a.status,
            status_b=b.status,
        )


def compare(rows_a: Sequence[Row], rows_b: Sequence[Row]) -> Table:
    """Scores and training seconds of the runs in both files. Runs are matched by key, else by all
    their inputs.
    """
    pairs = _pairs(rows_a, rows_b)
    changes = [Change.of(a, b) for a, b in pairs]
    inputs = columns.of([b for _, b in pairs])
    names = [*columns.ALWAYS, *inputs.varying]
    lines, cells = [], []
    for change, values in zip(changes, inputs.values):
        entries = {name: values.get(name) for name in names} | vars(change)
        texts = {f"input {name}": columns.written(name, entries[name]) for name in names}
        lines.append(entries | texts)
        cells += tidy([entries], "shown_a", "shown_b", "shown_change")
    formats = {f"input {name}": Format(columns.heading(name)) for name in names}
    formats |= formats_of(Change)
    only_a, only_b = len(rows_a) - len(pairs), len(rows_b) - len(pairs)
    return Table(
        name="compare",
        title=f"{len(pairs)} runs in both, {only_a} in A only, {only_b} in B only",
        sections=[section("", lines, formats, len(columns.ALWAYS))],
        notes=_compared_notes(changes),
        cells=cells,
    )


def _run_of(row: Row) -> str:
    """The identifier of a run in files without keys."""
    return token(inputs_of(row) | {"seed": row.seed})


def _pairs(rows_a: Sequence[Row], rows_b: Sequence[Row]) -> list[tuple[Row, Row]]:
    """The rows of the same run in both files; of several in B the first."""
    partners = {_run_of(row): row for row in rows_a}
    partners |= {row.key: row for row in rows_a if row.key}
    pairs: dict[int, tuple[Row, Row]] = {}
    for row in rows_b:
        partner = partners.get(row.key) or partners.get(_run_of(row))
        if partner is not None:
            pairs.setdefault(id(partner), (partner, row))
    return list(pairs.values())


def _compared_notes(compared: Sequence[Change]) -> list[str]:
    """The changes of the scores, and of the training time, over all runs."""
    changes = [abs(one.change) for one in compared if one.change is not None]
    ratios = [one.ratio for one in compared if one.ratio]
    notes = []
    if changes:
        same = f"{changes.count(0)} of {len(changes)} the same to the last digit"
        notes.append(f"Scores: {same}, the largest change {max(changes):.2g}.")
    if ratios:
        mean = math.exp(math.fsum(map(math.log, ratios)) / len(ratios))
        ends = f"{min(ratios):.3g} to {max(ratios):.3g}"
        notes.append(f"Training time of B over A: {mean:.3g} in the geometric mean, {ends}.")
    return notes


def _score(row: Row, other: Row) -> Cell:
    """The score of a row, in the format of another one's metric, or its status if it has none."""
    if row.score is None and row.status != "ok":
        return words(row.status)
    return number(row.score, columns.score_format(other.metric))


def _signed(change: float | None) -> str:
    if change is None:
        return DASH
    return f"{change:+.2g}" if change else "0"


TABLES = {"summary": summary}
