"""Tables of any results file: `summary`, with every row or the mean of each group of rows, and the
comparison of two files; tables by name; and tables as text, Markdown, LaTeX, CSV or JSON.
"""

import json
import math
import re
import textwrap
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby
from typing import Any, NamedTuple

from scipy.special import stdtr

from rfx import lazy
from rfx.errors import UsageError, or_near
from rfx.parallel import cached
from rfx.plans import catalogue
from rfx.records.results import safe
from rfx.reporting import columns
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
    decimals,
    good,
    grid,
    grouped,
    inputs_of,
    labelled,
    mean_if_any,
    number,
    short,
    span,
    token,
    words,
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
    lines = [line for block in grids for line in block.lines]
    # shared by sections with as many columns
    widths = {
        n: [max(map(len, column)) for column in zip(*(line for line in lines if len(line) == n))]
        for n in set(map(len, lines))
    }
    for block in grids:
        sizes = widths[len(block.lines[0])]
        for part, shown in enumerate(_split(sizes, block.n_labels, width)):
            out += ["", *(textwrap.wrap(block.title, width) if part == 0 else [])]
            out += [
                "  ".join([line[column].ljust(sizes[column]) for column in shown]).rstrip()
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
        for shown in _split(widths, n_labels, _LATEX_SHRUNK):
            letters = "l" * n_labels + "r" * (len(shown) - n_labels)
            out = [rf"\begin{{tabular}}{{{letters}}}"]
            for place, block in enumerate(sections):
                out.append(r"\midrule" if place else r"\toprule")
                if block.title:
                    head = rf"\multicolumn{{{len(shown)}}}{{l}}{{{escape(block.title)}}} \\"
                    out += [head, r"\midrule"]
                heads, *rest = (row([line[at] for at in shown]) for line in block.lines)
                out += [heads, r"\midrule", *rest]
            out += [r"\bottomrule", r"\end{tabular}"]
            if sum(widths[at] + 2 for at in shown) > _LATEX_LINE:
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
    plain = lambda value: safe(value) if isinstance(value, str) else value
    cells = [{name: plain(value) for name, value in cell.items()} for cell in table.cells]
    frame = lazy.pandas.DataFrame(cells, dtype=object)
    return frame.to_csv(index=False, lineterminator="\n") if cells else "\n"


def _json(table: Table) -> str:
    cells = [{name: _finite(value) for name, value in cell.items()} for cell in table.cells]
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
# A t-test of fewer pairs is uninformative.
FEWEST_PAIRS = 3
_MOST_WORDS = 3
Heads = dict[str, Callable[[Any], Cell]]


# ------------------------------------------------------------------------------------------ summary


def summary(rows, setting=None, group_by=None, mean_over=None) -> Table:
    """Data set, method, varying inputs, score, size, seconds and memory of every row, or of the
    rows of one setting.

    group_by: names of columns, separated by commas. Each combination of their values has a line
    with mean, standard deviation and number of rows. mean_over: the same, grouped by all varying
    columns except those named, such as seed.
    """
    if setting is not None:
        labels = sorted({row["params"].get("label") or "" for row in rows} - {""})
        if setting not in labels:
            there = ", ".join(labels) or "none"
            raise UsageError(f"--setting {setting}: no row has it (there are: {there})")
        rows = labelled(rows, setting)
    # a plan has one method after the other; a reader compares the methods of a data set
    datasets = list(dict.fromkeys(row["dataset"] for row in rows))
    rows = sorted(rows, key=lambda row: datasets.index(row["dataset"]))
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
    if len(set(map(_problem, good(rows)))) > 1 and "dataset" not in by:
        return _ranked(rows, inputs, by, title)
    # with means over some columns, chosen values of lambda are worth a column
    return _grouped(rows, inputs, by, title, bool(mean_over) and "lam" not in by)


@dataclass
class _Group:
    """Rows of runs with the same values of some columns.

    inputs: these values as requested; metric: that of all scores, None if there are several; used:
    the inputs in use of each row; best: whether it is the best of its kind; p, pairs: of the paired
    test against the best; ranks: the mean rank over data sets by each outcome.
    """

    inputs: dict[str, Any]
    metric: str | None
    rows: list[Row] = field(default_factory=list)
    used: list[Mapping[str, Any]] = field(default_factory=list)
    best: bool = False
    p: float | None = None
    pairs: int = 0
    ranks: dict[str, Mean | None] = field(default_factory=dict)

    @property
    def family(self) -> tuple[Any, ...]:
        """The identifier of the groups that are compared for the best."""
        return self.inputs.get("dataset"), self.inputs.get("seed"), self.metric

    @cached
    def means(self) -> dict[str, Mean | None]:
        return {
            name: mean_if_any(columns.outcome(row, name) for row in self.rows)
            for name in columns.OUTCOMES
        }

    @property
    def gain(self) -> float | None:
        """The mean score with a sign such that more is better."""
        mean = self.means["score"]
        return mean and (-mean.value if columns.low_is_better(self.metric) else mean.value)

    @property
    def converged(self) -> bool:
        return all(row["converged"] is not False for row in self.rows)

    @cached
    def scores(self) -> dict[tuple[Any, ...], float]:
        """The mean score of each problem and seed; the seed is None for a deterministic run, and if
        seeds are not told apart.
        """
        alike = lambda row: row["params"].get("seedless") or "seed" in self.inputs
        scores = grouped(
            ((*_problem(row), None if alike(row) else row["seed"]), row["score"])
            for row in self.rows
            if row["score"] is not None
        )
        return {name: sum(values) / len(values) for name, values in scores.items()}

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

    def chosen(self, name: str) -> set[Any]:
        """The values of an input that the runs used, other than the requested one."""
        used = {run[name] for run in self.used if run.get(name) is not None}
        return used - {self.inputs.get(name)}

    def cell(self, name: str) -> Cell:
        """A column of the group: the requested value, and the chosen values."""
        requested, chosen = self.inputs.get(name), self.chosen(name)
        if name in self.inputs and (not isinstance(requested, str) or not chosen):
            return words(columns.written(name, requested))
        write = partial(columns.written, name)
        texts = sorted(map(write, chosen))
        text = ", ".join(texts[:_MOST_WORDS] + ["…"] * (len(texts) > _MOST_WORDS))
        if chosen and all(isinstance(value, (int, float)) for value in chosen):
            text = span(chosen, write)
        return words(f"{write(requested)} ({text})" if name in self.inputs else text or DASH)

    @property
    def values(self) -> dict[str, Any]:
        """The values of the columns for CSV and JSON. The option --metric is not the metric of the
        score.
        """
        return {"learnt_metric" if one == "metric" else one: of for one, of in self.inputs.items()}

    @property
    def ranges(self) -> dict[str, Any]:
        """The range of chosen numbers for CSV and JSON."""
        ends: dict[str, Any] = {}
        for name in dict.fromkeys((*self.inputs, "lam")):
            numbers = [value for value in self.chosen(name) if isinstance(value, (int, float))]
            if numbers and isinstance(self.inputs.get(name, ""), str):
                ends |= {f"{name}_low": min(numbers), f"{name}_high": max(numbers)}
        return ends


def _listed(rows: Sequence[Row], inputs: columns.Columns) -> Table:
    """Every row in a line."""
    groups = [
        _Group(values | {"method": columns.method(row)}, row["metric"], [row], [values])
        for row, values in zip(rows, inputs.values)
    ]
    done = [group for group in groups if good(group.rows)]
    best = _mark_best(done, lambda group: (group.rows[0]["dataset"], group.metric))
    heads = _inputs((*columns.ALWAYS, *inputs.varying))
    notes = [_BEST] * bool(best) + _notes(rows)
    if len(rows) > 1 and inputs.constant():
        notes.append(f"All rows: {inputs.constant()}")
    more = ("seed", *(name for name in inputs.varying if name not in _CELLS))
    return Table(
        name="summary",
        title=f"{len(rows)} rows",
        sections=[grid("", heads | _outcomes(rows), groups, len(columns.ALWAYS))],
        notes=notes,
        cells=[
            {"status": row["status"]}
            | {name: columns.outcome(row, name) for name in _CELLS}
            | {"converged": row["converged"], "label": row["params"].get("label")}
            | {name: values.get(name) for name in more}
            for row, values in zip(rows, inputs.values)
        ],
    )


def _groups(rows, inputs: columns.Columns, by, by_metric: bool = True) -> list[_Group]:
    """The rows of successful runs, grouped by their values of the columns `by`, and by metric."""
    groups: dict[tuple[Any, ...], _Group] = {}
    for row, requested, used in zip(rows, inputs.requested, inputs.values):
        if row["status"] == "ok":
            values, metric = {name: requested.get(name) for name in by}, row["metric"]
            key = token(values), metric if by_metric else None
            group = groups.setdefault(key, _Group(values, key[1]))
            group.rows.append(row)
            group.used.append(used)
    return list(groups.values())


def _mark_best(groups: Sequence[_Group], family: Callable[[_Group], Any]) -> dict[Any, _Group]:
    """Mark the best groups of each family whose gains differ, and return the first of each; without
    a metric there is no best.
    """
    known = [group for group in groups if group.metric and group.gain is not None]
    for members in grouped((family(group), group) for group in known).values():
        gains = [group.gain for group in members if group.gain is not None]
        for group in members:
            group.best = group.gain == max(gains) > min(gains)
    return {family(group): group for group in reversed(known) if group.best}


def _grouped(rows, inputs: columns.Columns, by: list[str], title: str, with_lam: bool) -> Table:
    """The means of each group, and its paired test against the best of its data set."""
    groups = _groups(rows, inputs, by)
    # only groups with every run that any group of their family has can be the best
    runs = grouped((group.family, name) for group in groups for name in group.scores)
    wanted = {
        of: [name for name in names if name[-1] is not None] or names for of, names in runs.items()
    }
    whole = [
        group
        for group in groups
        if all(group.score(name) is not None for name in wanted.get(group.family, ()))
    ]
    best = _mark_best(whole, lambda group: group.family)
    compared = [group for group in groups if group.family in best and not group.best]
    for group in compared:
        group.compare(best[group.family])
    for members in grouped((group.family, group) for group in compared).values():
        _correct(members)
    names = by + ["lam"] * (with_lam and any(len(group.chosen("lam")) > 1 for group in groups))
    (score, score_cell), *others = _outcomes(rows).items()
    partial_groups = len(groups) - len(whole)
    lack = "lacks" if partial_groups == 1 else "lack"
    notes = {
        f"{_BEST}; paired p: of a t-test of the difference from it, run by run of the same"
        " seed, corrected for the number of tests on the data set (Holm)": best,
        f"Fewer than {FEWEST_PAIRS} pairs of runs have no p.": any(map(_few, groups)),
        f"{partial_groups} of the groups {lack} runs that others of the same data set have, and"
        " can't be the best.": partial_groups,
    }
    return _of_groups(
        rows,
        f"{len(groups)} groups, {title}: mean ± standard deviation",
        {
            **_inputs(names),
            "n": lambda group: number(len(group.rows), str),
            score: score_cell,
            "paired p": _p_cell,
            **dict(others),
        },
        groups,
        [note for note, applies in notes.items() if applies],
        [
            group.values
            | group.ranges
            | {"metric": group.metric, "n": len(group.rows), "best": group.best}
            | {"paired_p": group.p, "pairs": group.pairs}
            | {name: mean and mean.value for name, mean in group.means.items()}
            | {f"{name}_sd": mean and mean.sd for name, mean in group.means.items()}
            for group in groups
        ],
        len(names),
    )


def _correct(groups: Sequence[_Group]) -> None:
    """Multiply the p-values of several tests by Holm's method, so that with 95 % probability no
    true equality of the family is rejected at 5 %.
    """
    tested = sorted((group.p, place) for place, group in enumerate(groups) if group.p is not None)
    least = 0.0
    for rank, (p, place) in enumerate(tested):
        groups[place].p = least = max(least, min(1.0, p * (len(tested) - rank)))


def _few(group: _Group) -> bool:
    return group.p is None and 0 < group.pairs < FEWEST_PAIRS


def _p_cell(group: _Group) -> Cell:
    if _few(group):
        return words("1 pair" if group.pairs == 1 else f"{group.pairs} pairs")
    return number(group.p, "{:.2g}".format)


def _of_groups(rows, title, heads: Heads, groups, notes, cells, n_names: int) -> Table:
    """A table of groups of rows."""
    notes = notes + _notes(rows, " in at least one of the runs")
    section = grid("", heads, groups, min(n_names, 2))
    return Table("summary", f"{len(good(rows))} rows in {title}", [section], notes, cells)


def _ranked(rows: Sequence[Row], inputs: columns.Columns, by: list[str], title: str) -> Table:
    """Groups over several data sets: the mean of their ranks, because errors of different data sets
    have no meaningful mean.
    """
    # accuracy and RMSE are ranked in the same way
    groups = _groups(rows, inputs, by, by_metric=False)
    frame = lazy.pandas.DataFrame(
        {
            "group": place,
            "problem": str((*_problem(row), row["metric"])),
            **{name: columns.outcome(row, name) for name in columns.OUTCOMES},
            "score": -gain if (gain := _Group({}, row["metric"], [row]).gain) is not None else None,
        }
        for place, group in enumerate(groups)
        for row in group.rows
    ).astype(dict.fromkeys(columns.OUTCOMES, float))
    means = frame.groupby(["problem", "group"])[list(columns.OUTCOMES)].mean()
    ranks = means.groupby("problem").rank()
    for place, group in enumerate(groups):
        own = ranks.xs(place, level="group")
        group.ranks = {name: mean_if_any(own[name].dropna()) for name in columns.OUTCOMES}
    n_problems = ranks["score"].dropna().index.unique("problem").size
    scored = [(rank, group) for group in groups if (rank := group.ranks["score"])]
    whole = [(rank.value, group) for rank, group in scored if rank.n == n_problems]
    for value, group in whole if len(whole) > 1 else ():
        group.best = value == min(value for value, _ in whole)
    of = lambda name: (
        lambda group: Cell(
            group.ranks[name], decimals(2), "deviation", best=name == "score" and group.best
        )
    )
    n_sets = lambda group: group.ranks["score"].n if group.ranks["score"] else 0
    notes = [
        "Errors of unlike data sets have no mean: on each data set the groups are ranked by their"
        " means there, 1 is the best score, or the least of all else. Add dataset to --group-by"
        " for means."
    ]
    if any(group.best for group in groups):
        notes.append(f"{BEST}: the best mean rank among the groups that have every data set")
    return _of_groups(
        rows,
        f"{len(groups)} groups, {title}: mean rank over {n_problems} data sets ± standard"
        " deviation",
        {
            **_inputs(by),
            "n": lambda group: number(len(group.rows), str),
            "data sets": lambda group: number(n_sets(group), str),
            **{f"rank by {heading}": of(name) for name, (heading, _) in columns.OUTCOMES.items()},
        },
        groups,
        notes,
        [
            group.values
            | {"n": len(group.rows), "data_sets": n_sets(group), "best": group.best}
            | {
                f"rank_{name}{end}": mean and getattr(mean, part)
                for name, mean in group.ranks.items()
                for end, part in (("", "value"), ("_sd", "sd"))
            }
            for group in groups
        ],
        len(by),
    )


def _problem(row: Row) -> tuple[Any, ...]:
    """The values that identify the problem of a row."""
    named = (row["params"].get(name) for name in ("test", "target", "content"))
    return row["dataset"], row["split"], *named


def _inputs(names: Sequence[str]) -> Heads:
    """The columns of inputs of groups."""
    of = lambda name: lambda group: group.cell(name)
    return {columns.heading(name): of(name) for name in names}


def _outcomes(rows: Sequence[Row]) -> Heads:
    """The columns of the score, possibly marked as the best or as not converged, its metric if
    there are several, and of the other outcomes.
    """
    metrics = {row["metric"] for row in rows if row["metric"]}
    (_, (score, _)), *others = columns.OUTCOMES.items()
    heads: Heads = {
        metrics.pop() if len(metrics) == 1 else score: lambda group: Cell(
            group.means["score"],
            columns.score_format(group.metric),
            "deviation",
            best=group.best,
            converged=group.converged,
        )
    }
    if score in heads:
        heads["metric"] = lambda group: words(group.metric or DASH)
    of = lambda name, write: lambda group: Cell(group.means[name], write, "deviation")
    return heads | {heading: of(name, write) for name, (heading, write) in others}


def _notes(rows: Sequence[Row], where: str = "") -> list[str]:
    """The runs that failed, and the meaning of the star."""
    failed = Counter(
        f"{row['dataset']} {row['method']} ({row['status']}): {row['message']}"
        for row in rows
        if row["status"] != "ok"
    )
    star = [f"*: the solver did not converge{where}"]
    return [text + (f" ({n:,} runs)" if n > 1 else "") for text, n in failed.items()] + star * any(
        row["converged"] is False for row in rows
    )


# --------------------------------------------------------------------------- two files side by side


def compare(rows_a: Sequence[Row], rows_b: Sequence[Row]) -> Table:
    """Scores and training seconds of the runs in both files. Runs are matched by key, else by all
    their inputs.
    """
    run_of = lambda row: token(inputs_of(row) | {"seed": row["seed"]})
    partners = {run_of(row): row for row in rows_a} | {
        row["key"]: row for row in rows_a if row["key"]
    }
    pairs: dict[int, tuple[Row, Row]] = {}
    for row in rows_b:
        partner = partners.get(row["key"]) or partners.get(run_of(row))
        if partner is not None:
            pairs.setdefault(id(partner), (partner, row))
    inputs = columns.of([b for _, b in pairs.values()])
    shown = [*columns.ALWAYS, *inputs.varying]
    cells = [
        {name: values.get(name) for name in shown}
        | {"metric": b["metric"], "score_a": a["score"], "score_b": b["score"]}
        | _difference(a, b)
        | {"status_a": a["status"], "status_b": b["status"]}
        for (a, b), values in zip(pairs.values(), inputs.values)
    ]
    of = lambda name, write: lambda cell: number(cell[name], write)
    of_input = lambda name: lambda cell: words(columns.written(name, cell[name]))
    heads: Heads = {
        **{columns.heading(name): of_input(name) for name in shown},
        "score A": partial(_score, end="a"),
        "score B": partial(_score, end="b"),
        "change": of("change", lambda change: f"{change:+.2g}" if change else "0"),
        "train A, s": of("seconds_a", short),
        "train B, s": of("seconds_b", short),
        "B / A": of("ratio", short),
    }
    only_a, only_b = (len(rows) - len(pairs) for rows in (rows_a, rows_b))
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
    return Table(
        name="compare",
        title=f"{len(pairs)} runs in both, {only_a} in A only, {only_b} in B only",
        sections=[grid("", heads, cells, len(columns.ALWAYS))],
        notes=notes,
        cells=cells,
    )


def _difference(a: Row, b: Row) -> dict[str, Any]:
    """The change of the score from a to b, the training seconds of both, and their ratio; None for
    undefined values.
    """
    before, after = columns.outcome(a, "seconds_train"), columns.outcome(b, "seconds_train")
    unlike = a["metric"] != b["metric"] or None in (a["score"], b["score"])
    return {
        "change": None if unlike else b["score"] - a["score"],
        "seconds_a": before,
        "seconds_b": after,
        "ratio": after / before if before and after is not None else None,
    }


def _score(cell: Mapping[str, Any], end: str) -> Cell:
    """The score of a row, or its status if it has none."""
    score, status = cell[f"score_{end}"], cell[f"status_{end}"]
    if score is None and status != "ok":
        return words(status)
    return number(score, columns.score_format(cell["metric"]))


TABLES = {"summary": summary}
