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
from typing import TYPE_CHECKING, Any, NamedTuple

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
    good,
    grouped,
    grouped_by,
    inputs_of,
    labelled,
    mean_if_any,
    number,
    section,
    short,
    span,
    token,
    words,
)

if TYPE_CHECKING:
    from pandas import DataFrame, Series

# ----------------------------------------------------------------------
# Tables by name, which `rfx.plans.catalogue` finds, and the notes that several have.


def failures(rows: Iterable[Row]) -> list[str]:
    """The runs that failed and the reasons, one line per reason."""
    runs = grouped(
        ((row.dataset, row.status, row.message), row.method) for row in rows if row.status != "ok"
    )
    return [
        f"No result: {dataset}, {', '.join(dict.fromkeys(methods))} ({status}, runs:"
        f" {len(methods)}): {message}"
        for (dataset, status, message), methods in runs.items()
    ]


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
    write = partial(text, best=best)
    return [list(map(write, line)) for line in section.lines]


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
    """A section as texts."""

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
            section.title,
            [list(section.columns), *texts(section, best)],
            section.n_labels,
        )
        for section in table.sections
    ]
    notes = [re.sub(f"^{BEST}: ", f"{best}: ", note) for note in table.notes]
    if form == "text":
        return _text(table.title, grids, notes, width or 10**6)
    return (_latex if form == "latex" else _markdown)(table.title, grids, notes)


def _text(title: str, grids: Sequence[_Grid], notes: Sequence[str], width: int) -> str:
    out = textwrap.wrap(title, width)
    # shared by sections with as many columns
    widths: dict[int, list[int]] = {}
    for line in (line for block in grids for line in block.lines):
        before = widths.get(len(line), [0] * len(line))
        widths[len(line)] = list(map(max, before, map(len, line)))
    for block in grids:
        sizes = widths[len(block.lines[0])]
        for part, shown in enumerate(_split(sizes, block.n_labels, width)):
            out += ["", *(textwrap.wrap(block.title, width) if part == 0 else [])]
            for line in block.lines:
                cells = [line[column].ljust(sizes[column]) for column in shown]
                out.append("  ".join(cells).rstrip())
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


def _escape_markdown(text: str) -> str:
    return text.replace("|", r"\|").replace("*", r"\*")


def _markdown_line(texts: Iterable[str]) -> str:
    return f"| {' | '.join(map(_escape_markdown, texts))} |"


def _markdown(title: str, grids: Sequence[_Grid], notes: Sequence[str]) -> str:
    out = [f"**{_escape_markdown(title)}**"]
    for block in grids:
        heads, *lines = block.lines
        numbers = [any(map(_NUMBER.match, column)) for column in zip(*lines)] or [False] * len(
            heads
        )
        right = [number and place >= block.n_labels for place, number in enumerate(numbers)]
        rule = ["---:" if one else "---" for one in right]
        out += ["", _escape_markdown(block.title), ""] if block.title else [""]
        out += map(_markdown_line, [heads, rule, *lines])
    if notes:
        out += ["", *(f"- {_escape_markdown(note)}" for note in notes)]
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
        texts_of = zip(*(line for block in sections for line in block.lines))
        widths = [max(map(len, column)) for column in texts_of] or [0] * n_columns
        for shown in _split(widths, n_labels, _LATEX_SHRUNK):
            out = _tabular(sections, shown)
            if sum(widths[at] + 2 for at in shown) > _LATEX_LINE:
                out = [r"\resizebox{\linewidth}{!}{%", *out, "}"]
            tabulars.append("\n".join(out))
    caption = rf"\caption{{{_escape_latex(title)}}}"
    start = ["% \\usepackage{booktabs,graphicx}", r"\begin{table}", caption]
    end = [*(rf"\par {_escape_latex(note)}" for note in notes), r"\end{table}"]
    return "\n".join([*start, "\n\\par\\medskip\n".join(tabulars), *end]) + "\n"


def _tabular(sections: Sequence[_Grid], shown: Sequence[int]) -> list[str]:
    """The lines of a LaTeX tabular of sections that have as many columns, of which some are
    shown.
    """
    n_labels = sections[0].n_labels
    letters = "l" * n_labels + "r" * (len(shown) - n_labels)
    out = [rf"\begin{{tabular}}{{{letters}}}"]
    for place, block in enumerate(sections):
        out.append(r"\midrule" if place else r"\toprule")
        if block.title:
            title = _escape_latex(block.title)
            out += [rf"\multicolumn{{{len(shown)}}}{{l}}{{{title}}} \\", r"\midrule"]
        rows = []
        for line in block.lines:
            cells = [_escape_latex(line[at]) for at in shown]
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
    head = {"table": table.name, "title": table.title}
    content = head | {"cells": cells, "notes": table.notes}
    return json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _finite(value: Any) -> Any:
    """A plain number, or None for one that JSON cannot represent; any other value as it is."""
    value = value.item() if hasattr(value, "item") else value
    return None if isinstance(value, float) and not math.isfinite(value) else value


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
    names = [inputs.resolve(name) for name in (group_by or mean_over).split(",")]
    if group_by:
        by, title = names, f"by {', '.join(map(columns.heading, names))}"
    else:
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
    labels = sorted({row.params.get("label") or "" for row in rows} - {""})
    if setting not in labels:
        there = ", ".join(labels) or "none"
        raise UsageError(f"--setting {setting}: no row has it (there are: {there})")
    return labelled(rows, setting)


@dataclass
class _Group:
    """Rows of runs with the same values of some columns.

    inputs: these values as requested; metric: that of all scores, None if there are several; used:
    the inputs in use of each row; best: whether it is the best of its kind; p, pairs: of the paired
    test against the best.
    """

    inputs: dict[str, Any]
    metric: str | None
    rows: list[Row] = field(default_factory=list)
    used: list[Mapping[str, Any]] = field(default_factory=list)
    best: bool = False
    p: float | None = None
    pairs: int = 0

    @property
    def family(self) -> tuple[Any, ...]:
        """The identifier of the groups that are compared for the best."""
        return self.inputs.get("dataset"), self.inputs.get("seed"), self.metric

    @cached
    def means(self) -> dict[str, Mean | None]:
        means = {}
        for name in columns.OUTCOMES:
            means[name] = mean_if_any(columns.outcome(row, name) for row in self.rows)
        return means

    @property
    def gain(self) -> float | None:
        """The mean score with a sign such that more is better."""
        mean = self.means["score"]
        if mean is None:
            return None
        return -mean.value if less_is_better(self.metric) else mean.value

    @cached
    def scores(self) -> dict[tuple[Any, ...], float]:
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

    def score(self, name: tuple[Any, ...]) -> float | None:
        """The score of a problem and seed; a deterministic run has one score for all seeds."""
        return self.scores.get(name, self.scores.get((*name[:-1], None)))

    def compare(self, best: "_Group") -> None:
        """The paired t-test against the best; p is None if the test is undefined."""
        both = [(self.score(name), best.score(name)) for name in {**self.scores, **best.scores}]
        less = mean_if_any(a - b for a, b in both if a is not None and b is not None)
        self.pairs = less.n if less else 0
        if less and less.sd and less.n >= FEWEST_PAIRS:
            self.p = float(2 * stdtr(less.n - 1, -abs(less.value) / (less.sd / less.n**0.5)))

    @property
    def has_few_pairs(self) -> bool:
        """Whether there are pairs, but too few for a test."""
        return self.p is None and 0 < self.pairs < FEWEST_PAIRS

    def chosen(self, name: str) -> set[Any]:
        """The values of an input that the runs used, other than the requested one."""
        used = {run[name] for run in self.used if run.get(name) is not None}
        return used - {self.inputs.get(name)}

    def words(self, name: str) -> str:
        """A column of the group: the requested value, and the chosen values."""
        requested, chosen = self.inputs.get(name), self.chosen(name)
        if name not in self.inputs:
            return _chosen_words(name, chosen) or DASH
        requested_words = columns.written(name, requested)
        if not isinstance(requested, str) or not chosen:
            return requested_words
        return f"{requested_words} ({_chosen_words(name, chosen)})"

    def line(self, names: Sequence[str]) -> Line:
        """The values of a line of a table, of these inputs and of every outcome."""
        score = Cell(
            self.means["score"],
            columns.score_format(self.metric),
            "deviation",
            best=self.best,
            converged=all(row.converged is not False for row in self.rows),
        )
        n_pairs = "1 pair" if self.pairs == 1 else f"{self.pairs} pairs"
        inputs = {f"input {name}": self.words(name) for name in names}
        outcomes = self.means | {"score": score, "metric": self.metric or DASH}
        test = {"n": len(self.rows), "p": n_pairs if self.has_few_pairs else self.p}
        return inputs | outcomes | test

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
                ends |= {f"{name}_low": min(numbers), f"{name}_high": max(numbers)}
        return ends

    @property
    def tidy(self) -> Line:
        """The line of CSV and JSON."""
        test = {"n": len(self.rows), "best": self.best, "paired_p": self.p, "pairs": self.pairs}
        line = self.values | self.ranges | {"metric": self.metric} | test
        line |= {name: mean and mean.value for name, mean in self.means.items()}
        return line | {f"{name}_sd": mean and mean.sd for name, mean in self.means.items()}


def _chosen_words(name: str, chosen: Collection[Any]) -> str:
    """Chosen values of an input: numbers as a range, and of words the first ones."""
    write = partial(columns.written, name)
    if chosen and all(isinstance(value, (int, float)) for value in chosen):
        return span(chosen, write)
    texts = sorted(map(write, chosen))
    more = ["…"] if len(texts) > _MOST_WORDS else []
    return ", ".join(texts[:_MOST_WORDS] + more)


def _listed(rows: Sequence[Row], inputs: columns.Columns) -> Table:
    """Every row in a line."""
    groups = [
        _Group(values | {"method": columns.method(row)}, row.metric, [row], [values])
        for row, values in zip(rows, inputs.values)
    ]
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
    outcomes = {name: columns.outcome(row, name) for name in _CELLS}
    more = ("seed", *(name for name in inputs.varying if name not in _CELLS))
    fate = {"converged": row.converged, "label": row.params.get("label")}
    others = {name: values.get(name) for name in more}
    return {"status": row.status} | outcomes | fate | others


def _groups(rows, inputs: columns.Columns, by, by_metric: bool = True) -> list[_Group]:
    """The rows of successful runs, grouped by their values of the columns `by`, and by metric."""
    groups: dict[tuple[Any, ...], _Group] = {}
    for row, requested, used in zip(rows, inputs.requested, inputs.values):
        if row.status == "ok":
            values, metric = {name: requested.get(name) for name in by}, row.metric
            key = token(values), metric if by_metric else None
            group = groups.setdefault(key, _Group(values, key[1]))
            group.rows.append(row)
            group.used.append(used)
    return list(groups.values())


def _mark_best(groups: Sequence[_Group], families: Iterable[Any]) -> dict[Any, _Group]:
    """Mark the best groups of each family whose gains differ, and return the first of each; without
    a metric there is no best.
    """
    best: dict[Any, _Group] = {}
    for family, members in grouped(zip(families, groups)).items():
        gains = {
            group.gain: group
            for group in reversed(members)
            if group.metric and group.gain is not None
        }
        if len(gains) > 1:
            best[family] = gains[max(gains)]
            for group in members:
                group.best = bool(group.metric) and group.gain == max(gains)
    return best


def _whole(groups: Sequence[_Group]) -> list[_Group]:
    """The groups that have every run that any group of their family has."""
    runs = grouped((group.family, name) for group in groups for name in group.scores)
    return [group for group in groups if _has_all(group, runs.get(group.family, []))]


def _has_all(group: _Group, runs: Sequence[tuple[Any, ...]]) -> bool:
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
    if n_partial := len(groups) - len(whole):
        lack = "lacks" if n_partial == 1 else "lack"
        notes.append(
            f"{n_partial} of the groups {lack} runs that others of the same data set have, and"
            " can't be the best."
        )
    names = list(by)
    if with_lam and any(len(group.chosen("lam")) > 1 for group in groups):
        names.append("lam")
    outcomes = _outcome_formats(rows)
    formats = {
        "n": Format("n"),
        "score": outcomes.pop("score"),
        "p": Format("paired p", "{:.2g}".format),
    }
    return Table(
        "summary",
        f"{len(good(rows))} rows in {len(groups)} groups, {title}: mean ± standard deviation",
        [_section(groups, names, formats | outcomes, min(len(names), 2))],
        notes + _notes(rows, " in at least one of the runs"),
        [group.tidy for group in groups],
    )


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
    runs = lazy.pandas.DataFrame(
        _ranked_run(row) | {"group": place}
        for place, group in enumerate(groups)
        for row in group.rows
    ).astype(dict.fromkeys(outcomes, float))
    means = runs.groupby(["problem", "group"])[outcomes].mean()
    return means.groupby("problem").rank()


def _ranked_run(row: Row) -> Line:
    """The problem and the outcomes of a run, less being better."""
    outcomes = {name: columns.outcome(row, name) for name in columns.OUTCOMES}
    if row.score is not None and not less_is_better(row.metric):
        outcomes["score"] = -row.score
    # accuracy and RMSE are ranked in the same way
    return outcomes | {"problem": str((*_problem(row), row.metric))}


def _mean_of_known(values: "Series") -> Mean | None:
    return mean_if_any(values.dropna())


def _ranked(rows: Sequence[Row], inputs: columns.Columns, by: list[str], title: str) -> Table:
    """Groups over several data sets: the mean of their ranks, because errors of different data sets
    have no meaningful mean.
    """
    groups = _groups(rows, inputs, by, by_metric=False)
    ranks = _ranks(groups)
    means = ranks.groupby("group").agg(_mean_of_known)
    n_problems = ranks["score"].dropna().index.unique("problem").size
    whole = [rank.value for rank in means["score"] if rank and rank.n == n_problems]
    notes = [_RANK_NOTE]
    lines, cells = [], []
    for place, group in enumerate(groups):
        own: dict[str, Mean | None] = means.loc[place].to_dict()
        rank = own["score"]
        if rank and rank.n == n_problems and len(whole) > 1:
            group.best = rank.value == min(whole)
        counts = {"n": len(group.rows), "data_sets": rank.n if rank else 0}
        score = Cell(rank, decimals(2), "deviation", best=group.best)
        lines.append(group.line(by) | own | counts | {"score": score})
        cells.append(group.values | counts | {"best": group.best} | _tidy_ranks(own))
    if any(group.best for group in groups):
        notes.append(f"{BEST}: the best mean rank among the groups that have every data set")
    formats = {f"input {name}": Format(columns.heading(name)) for name in by}
    formats |= {"n": Format("n"), "data_sets": Format("data sets")}
    for name, (heading, _) in columns.OUTCOMES.items():
        formats[name] = Format(f"rank by {heading}", decimals(2), "deviation")
    return Table(
        "summary",
        f"{len(good(rows))} rows in {len(groups)} groups, {title}: mean rank over {n_problems} data"
        " sets ± standard deviation",
        [section("", lines, formats, min(len(by), 2))],
        notes + _notes(rows, " in at least one of the runs"),
        cells,
    )


def _tidy_ranks(ranks: Mapping[str, Mean | None]) -> dict[str, float | None]:
    """The mean ranks and their standard deviations for CSV and JSON."""
    line = {}
    for name, rank in ranks.items():
        line[f"rank_{name}"] = rank and rank.value
        line[f"rank_{name}_sd"] = rank and rank.sd
    return line


def _problem(row: Row) -> tuple[Any, ...]:
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
    if len(metrics) == 1:
        return {"score": score._replace(heading=metrics.pop())} | formats
    return {"score": score, "metric": Format("metric")} | formats


def _notes(rows: Sequence[Row], where: str = "") -> list[str]:
    """The runs that failed, and the meaning of the star."""
    failed = Counter(
        f"{row.dataset} {row.method} ({row.status}): {row.message}"
        for row in rows
        if row.status != "ok"
    )
    notes = [f"{text} ({n:,} runs)" if n > 1 else text for text, n in failed.items()]
    if any(row.converged is False for row in rows):
        notes.append(f"*: the solver did not converge{where}")
    return notes


# --------------------------------------------------------------------------- two files side by side

_COMPARED = {
    "shown_a": Format("score A"),
    "shown_b": Format("score B"),
    "shown_change": Format("change"),
    "seconds_a": Format("train A, s", short),
    "seconds_b": Format("train B, s", short),
    "ratio": Format("B / A", short),
}


def compare(rows_a: Sequence[Row], rows_b: Sequence[Row]) -> Table:
    """Scores and training seconds of the runs in both files. Runs are matched by key, else by all
    their inputs.
    """
    pairs = _pairs(rows_a, rows_b)
    inputs = columns.of([b for _, b in pairs])
    shown = [*columns.ALWAYS, *inputs.varying]
    heads = {f"input {name}": Format(columns.heading(name)) for name in shown}
    lines, cells = [], []
    for (a, b), values in zip(pairs, inputs.values):
        cell = {name: values.get(name) for name in shown} | _difference(a, b)
        texts = {f"input {name}": columns.written(name, cell[name]) for name in shown}
        scores = {"shown_a": _score(a, b), "shown_b": _score(b, b)}
        cells.append(cell)
        lines.append(cell | texts | scores | {"shown_change": _signed(cell["change"])})
    only_a, only_b = (len(rows) - len(pairs) for rows in (rows_a, rows_b))
    formats = heads | _COMPARED
    return Table(
        name="compare",
        title=f"{len(pairs)} runs in both, {only_a} in A only, {only_b} in B only",
        sections=[section("", lines, formats, len(columns.ALWAYS))],
        notes=_compared_notes(cells),
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


def _compared_notes(cells: Sequence[Line]) -> list[str]:
    """The changes of the scores, and of the training time, over all runs."""
    changes = [abs(cell["change"]) for cell in cells if cell["change"] is not None]
    ratios = [cell["ratio"] for cell in cells if cell["ratio"]]
    notes = []
    if changes:
        notes.append(
            f"Scores: {changes.count(0)} of {len(changes)} the same to the last digit, the largest"
            f" change {max(changes):.2g}."
        )
    if ratios:
        mean = math.exp(math.fsum(map(math.log, ratios)) / len(ratios))
        notes.append(
            f"Training time of B over A: {mean:.3g} in the geometric mean, {min(ratios):.3g} to"
            f" {max(ratios):.3g}."
        )
    return notes


def _difference(a: Row, b: Row) -> Line:
    """The scores of a and b and their change, the training seconds of both and their ratio; None
    for undefined values.
    """
    before, after = columns.outcome(a, "seconds_train"), columns.outcome(b, "seconds_train")
    unlike = a.metric != b.metric or None in (a.score, b.score)
    return {
        "metric": b.metric,
        "score_a": a.score,
        "score_b": b.score,
        "change": None if unlike else b.score - a.score,
        "seconds_a": before,
        "seconds_b": after,
        "ratio": after / before if before and after is not None else None,
        "status_a": a.status,
        "status_b": b.status,
    }


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
