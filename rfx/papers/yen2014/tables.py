"""Tables 1 and 2 of Yen et al. 2014 (sparse random features), kernel ridge regression and kernel
SVM, with additional sections; the numbers behind Figure 1; and Corollary 1 in numbers.

The additional sections of Tables 1 and 2 show the runs from which the setting `paper` was inferred,
and the published programs. The plans label these rows `inference` and `published`.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from operator import attrgetter
from typing import TypeVar

from rfx.measures import less_is_better
from rfx.papers.yen2014 import curves as yen
from rfx.records.run import seconds_train
from rfx.reporting.cells import (
    Around,
    Builder,
    Cell,
    Format,
    Line,
    Mean,
    Methods,
    Printed,
    Row,
    Section,
    Table,
    count,
    crossed,
    decimals,
    general,
    good,
    grouped,
    grouped_by,
    labelled,
    lines_of,
    mean_if_any,
    mean_of,
    noise,
    number,
    options_of,
    printed,
    section,
    short,
    shown,
    span,
    tidy,
    variants,
    verdict_of,
    width,
    with_paper,
    words,
)
from rfx.reporting.effects import Frame
from rfx.reporting.tables import failures, machines

OURS = "perceptron, range"
KERNELS = ("gaussian", "laplacian", "perceptron", OURS)
METHODS = {"kernel": "Kernel", "rf": "RF", "sparse-rf": "Sparse-RF"}
PROGRAMS = {"liblinear": "LIBLINEAR", "libsvm": "LIBSVM"}

# ----------------------------------------------------------------------------------- Tables 1 and 2

_BY_TITLE: Methods = {title: method for method, title in METHODS.items()}
_COLUMNS = {"shown": Format("kernel"), "heading": Format("")}
_COLUMNS |= {method: Format(title) for method, title in METHODS.items()}
_EVERY_CELL = (
    "Every cell is ours / paper; a dash: not run, or not printed; *: the solver did not converge."
)
_CLOSEST = "lambda of sparse-rf: of those run, the one whose score is closest to rf's."
_SIZES = ("n_train", "n_test", "n_inputs")
_SIZES_WORDS = "N {:,.0f}, test {:,.0f}, d {:,.0f}".format
T = TypeVar("T")
# (data set, kernel, method, field) -> the printed number
Book = Mapping[tuple[str, str, str, str], Printed]
# (kernel, method) -> its rows, one per seed
Picked = dict[tuple[str, str], list[Row]]


@dataclass(frozen=True)
class Field:
    """One printed quantity: its name in papers/*.csv, its heading, our number from a row, and its
    format.
    """

    name: str
    heading: str
    ours: Callable[[Row], float | None]
    write: Callable[[float], str]
    scored: bool = False  # meaningless on generated data
    # "high" or "low" if "better than the paper" is meaningful on another machine
    best: str = ""
    unit: str = "relative"  # unit of the margin of equivalence (rfx.reporting.cells.MARGINS)
    # "extremes" for a setting chosen by each run, not an outcome
    around: Around = "deviation"


@dataclass(frozen=True)
class DataRow:
    """One data set of a table: the paper's, a substitute for one of them, or generated data of its
    size.
    """

    name: str
    stands_for: str = ""
    generated: bool = False

    @property
    def title(self) -> str:
        if self.generated:
            return (
                f"{self.name}: generated data of the size of {self.stands_for}, for time and memory"
                " only"
            )
        return (
            f"{self.name}: substitute for {self.stands_for}, not comparable"
            if self.stands_for
            else self.name
        )


@dataclass(frozen=True)
class Comparison:
    """Maker of a table with data sets as sections, kernels and fields as lines, and methods as
    columns; `builder` has it for TABLES. Our perceptrons have a separate line.

    Below the setting `paper` it shows the runs from which this setting was inferred, and the
    published programs.

    Rows that differ only in the seed are combined in one cell: their mean with its standard
    deviation. For a field with a preferred direction, the cell is better than, equal to or worse
    than the printed number, judged by this noise. The noise of a single run is unknown.

    table: its name in printed.csv; full: setting, data set and method of runs that need FULL=1
    because they take hours.
    """

    title: str
    table: str
    data: tuple[DataRow, ...]
    fields: tuple[Field, ...]
    settings: dict[str, str]
    differs: tuple[str, ...]
    full: tuple[tuple[str, str, str], ...] = ()

    @property
    def builder(self) -> Builder:
        """The table by its name on the command line, such as yen2014-table1."""
        settings = {setting: setting for setting in self.settings}
        return Builder(f"yen2014-{self.table}", self.make, settings, unrun=self.unrun)

    def unrun(self) -> list[Cell]:
        """The cells with printed numbers if there are no runs."""
        return self.make([], next(iter(self.settings))).compared

    @property
    def book(self) -> Book:
        """The printed numbers."""
        return printed(__package__, self.table)

    def make(self, rows: Sequence[Row], setting: str) -> Table:
        """The table of one setting."""
        names = {data.name for data in self.data}
        own = [row for row in rows if row.dataset in names]
        picks = self.picks(own, setting)
        lines = [self.line(*of, picks) for of in product(picks, KERNELS, self.fields, METHODS)]
        cells = lines_of(lines)
        sections = [self.section(data, picks[data], cells) for data in picks]
        if setting == "paper":
            more = [inference(own, self.book), published(own)]
            sections += [section for section in more if section.lines]
        groups = [group for picked in picks.values() for group in picked.values()]
        used = [row for group in groups for row in group]
        name = self.builder.name
        title = f"{self.title}; setting: {setting}{_title_of_sizes(used, self.book)}"
        notes = self.notes(groups, own, setting)
        hidden = ("shown", "heading", "cell")
        tidied = tidy(lines, *hidden, table=name, setting=setting)
        return Table(name, title, sections, notes, tidied, with_paper(cells.cell))

    def picks(self, rows: Sequence[Row], setting: str) -> dict[DataRow, Picked]:
        """The rows in the cells of each data set; a substitute without rows is omitted."""
        rows_of = grouped_by(labelled(rows, setting), "dataset")
        picks = {data: self.pick(rows_of.get(data.name, [])) for data in self.data}
        return {data: picked for data, picked in picks.items() if picked or not data.stands_for}

    def section(self, data: DataRow, picked: Picked, cells: Frame) -> Section:
        """The section of one data set: a line for each kernel and field."""
        own = cells[cells.dataset == data.name]
        lines = crossed(own, ["shown", "heading"], "method")
        lines["shown"] = lines.shown.mask(lines.shown.duplicated(), "")
        title = _size_title(data, picked, self.book)
        return section(title, lines, _COLUMNS, 2, dataset=data.name, methods=_BY_TITLE)

    def pick(self, rows: Iterable[Row]) -> Picked:
        """Select the rows of one data set and setting for each (kernel, method), one per seed:
        those with the most features, and of these the newest.
        """
        runs = grouped(((kernel_of(row), row.method), row) for row in good(rows))
        picked: Picked = {}
        for method, kernel in product(METHODS, KERNELS):
            candidates = runs.get((kernel, method), [])
            if "n_features" in options_of(method)[0]:
                candidates = _with_most_features(candidates)
            groups = variants(candidates)
            if groups and method == "sparse-rf":
                picked[kernel, method] = _closest(groups, picked.get((kernel, "rf"), []))
            elif groups:
                picked[kernel, method] = groups[-1]
        return picked

    def line(
        self, data: DataRow, kernel: str, item: Field, method: str, picks: Mapping[DataRow, Picked]
    ) -> "CellLine":
        """One cell with its place in the table, and as a line of CSV and JSON."""
        group = picks[data].get((kernel, method), [])
        cell = self.cell(data, kernel, method, item, group)
        ours = cell.ours
        return CellLine(
            dataset=data.name,
            stands_for=data.stands_for or None,
            kernel=kernel,
            shown=kernel,
            method=method,
            field=item.name,
            heading=item.heading,
            cell=cell,
            ours=ours,
            sd=cell.sd,
            low=ours and ours.low,
            high=ours and ours.high,
            n=ours.n if ours else 0,
            paper=cell.paper,
            verdict=cell.verdict,
            converged=cell.converged,
            lam=_common(row.lam for row in group),
            n_features=_common(row.n_features for row in group),
        )

    def cell(
        self, data: DataRow, kernel: str, method: str, item: Field, group: Sequence[Row]
    ) -> Cell:
        """The cell of one quantity: the mean over its rows, and the printed number."""
        is_blank = item.scored and data.generated
        ours = None if is_blank else mean_if_any(map(item.ours, group))
        place = (data.name, kernel, method, item.name)
        paper = None if data.stands_for else self.book.get(place)
        converged = all(row.converged is not False for row in group) if group else None
        verdict = verdict_of(ours, paper, item.best, item.unit)
        pair = ours is not None or paper is not None
        return Cell(ours, item.write, item.around, paper, pair, verdict, converged)

    def notes(self, groups: Sequence[list[Row]], rows: Sequence[Row], setting: str) -> list[str]:
        """The notes of the table of one setting, from the groups of rows in its cells."""
        used = [row for group in groups for row in group]
        notes = [_EVERY_CELL, *noise(list(map(len, groups)))]
        notes.append(f"Setting {setting}: {self.settings[setting]}")
        notes += _gammas(used)
        # params: the values that each run chose
        if any(row.method == "sparse-rf" and "lam" not in row.params for row in used):
            notes.append(_CLOSEST)
        notes += _other_sizes(used, self.book)
        notes += [f"Differs from the paper: {text}" for text in self.differs]
        notes += failures(rows)
        notes += machines(used)
        return notes + self.long_runs(used, setting)

    def long_runs(self, used: Sequence[Row], setting: str) -> list[str]:
        """The notes on runs that take hours and were not made."""
        present = {(setting, row.dataset, row.method) for row in used}
        command = f"make reproduce-{self.table} FULL=1"
        notes = []
        for run in self.full:
            if run[0] == setting and run not in present:
                _, dataset, method = run
                notes.append(f"{dataset}, {METHODS[method]}: hours; {command} runs it.")
        return notes


@dataclass(frozen=True)
class CellLine:
    """One cell of Table 1 or 2 with its place, as a line of CSV and JSON but for `shown`, `heading`
    and `cell`. lam, n_features: those that all its runs have.
    """

    dataset: str
    stands_for: str | None
    kernel: str
    shown: str
    method: str
    field: str
    heading: str
    cell: Cell
    ours: Mean | None
    sd: float | None
    low: float | None
    high: float | None
    n: int
    paper: float | None
    verdict: str | None
    converged: bool | None
    lam: float | None
    n_features: int | None


def _common(values: Iterable[T]) -> T | None:
    """The value that all have; None if they differ, or there is none."""
    distinct = set(values)
    return distinct.pop() if len(distinct) == 1 else None


def kernel_of(row: Row) -> str:
    """The entry of KERNELS for a row."""
    return OURS if row.params.get("features") == "range" else row.kernel


def _gammas(rows: Iterable[Row]) -> list[str]:
    """The notes on the bandwidths in use, by kernel."""
    gammas = grouped(
        ((row.kernel or "no kernel", row.dataset), gamma)
        for row in rows
        if (gamma := width(row)) is not None
    )
    names: dict[tuple[str, str], list[str]] = {}
    for (kernel, dataset), values in gammas.items():
        text = span(values, "{:.4g}".format)
        names.setdefault((kernel, text), []).append(dataset)
    notes = []
    for (kernel, text), datasets in sorted(names.items()):
        notes.append(f"gamma of {kernel} = {text}: {', '.join(datasets)}")
    return notes


def _rows_of_other_size(rows: Iterable[Row], book: Book) -> list[tuple[Row, float]]:
    """The rows whose number of random features differs from the paper's, and the paper's (printed
    as its rf's model size).
    """
    found: list[tuple[Row, float]] = []
    for row in rows:
        paper = book.get((row.dataset, row.kernel, "rf", "model_size"))
        if row.n_features and paper and row.n_features != paper:
            found.append((row, paper))
    return found


def _other_sizes(rows: Iterable[Row], book: Book) -> list[str]:
    """The notes on numbers of random features that differ from the paper's."""
    others = grouped(
        ((row.method, row.n_features, paper), row.dataset)
        for row, paper in _rows_of_other_size(rows, book)
    )
    notes = []
    for (method, ours, paper), names in sorted(others.items()):
        datasets = ", ".join(sorted({*names}))
        notes.append(f"{method} has D = {ours:,} where the paper has {paper:,.0f}: {datasets}")
    return notes


def _title_of_sizes(rows: Iterable[Row], book: Book) -> str:
    """What the title adds where numbers of features differ, as in the small form of a plan."""
    others = {(row.n_features, paper) for row, paper in _rows_of_other_size(rows, book)}
    texts = [f"; D = {ours:,} beside the paper's {paper:,.0f}" for ours, paper in sorted(others)]
    return "".join(texts)


def _with_most_features(rows: Sequence[Row]) -> list[Row]:
    most = max((row.n_features or 0 for row in rows), default=0)
    return [row for row in rows if (row.n_features or 0) == most]


def _closest(groups: list[list[Row]], reference: list[Row]) -> list[Row]:
    """The group whose score is closest to the reference's (of two, the one with the smaller model).
    Without a reference, the group with the best score.

    A group's score is the mean over its seeds; one seed is enough for the comparison.
    """

    wanted = _mean_of("score", reference)

    def distance(group: list[Row]) -> tuple[float, float]:
        score = _mean_of("score", group) or 0.0
        if wanted is not None:
            return abs(score - wanted), _mean_of("model_size", group) or 0.0
        return score if less_is_better(group[0].metric) else -score, 0.0

    return min(groups, key=distance)


def _mean_of(name: str, rows: list[Row]) -> float | None:
    mean = mean_if_any(row[name] for row in rows)
    return mean and mean.value


def _size_title(data: DataRow, picked: Picked, book: Book) -> str:
    rows = [row for group in picked.values() for row in group]
    sizes = dict.fromkeys(map(attrgetter(*_SIZES), rows))
    ours = ", ".join(_SIZES_WORDS(*size) for size in sizes if None not in size)
    printed_sizes = [book.get((data.name, "", "", name)) for name in _SIZES]
    paper = "" if None in printed_sizes else _SIZES_WORDS(*printed_sizes)
    if ours and paper and ours != paper:
        return f"{data.title} ({ours}; paper: {paper})"
    return f"{data.title} ({ours or paper})" if ours or paper else data.title


def memory_gb(row: Row) -> float | None:
    """The peak memory in GB of 10^9 bytes, the papers' unit: of fits that were timed again, else of
    the run.
    """
    peak_mb = row.params.get("fit_rss_mb", row.peak_rss_mb)
    return None if peak_mb is None else peak_mb * 2**20 / 1e9


def _training(row: Row) -> float | None:
    """The least processor seconds of fits that were timed again, else seconds by the clock."""
    return row.params.get("least_seconds_cpu", seconds_train(row))


def _prediction(row: Row) -> float | None:
    """The same of predictions."""
    return row.params.get("least_seconds_cpu_predict", row.seconds_predict)


_MODEL_SIZE = Field("model_size", "model size", attrgetter("model_size"), count)
_LAMBDA = Field("lam", "lambda", attrgetter("lam"), general, around="extremes")
_COSTS = (
    Field("seconds_train", "training, s", _training, short),
    Field("seconds_predict", "prediction, s", _prediction, short),
    Field("memory_gb", "memory, GB", memory_gb, short),
)
_score = partial(Field, ours=attrgetter("score"), write=decimals(4), scored=True)
_RMSE = _score("rmse", "RMSE", best="low")
_ACCURACY = _score("accuracy", "accuracy", best="high", unit="share")

_TUNED = (
    "gamma by --gamma tuned, the same for all methods, and lambda of each by --lam validation, all"
    " on training rows; what was tried is in each row's params, under validation."
)
_PERCEPTRON = (
    "perceptron: Kernel and RF with K_P = R/c_d - |x - y|, Sparse-RF on features +-1, thresholds"
    f" over the whole ball, as section 5 has them; {OURS}: ours, thresholds where they tell"
    " training rows apart and an amplitude for each feature."
)
_MEMORY = (
    "memory is the whole process at its largest, the interpreter and its libraries (about 0.1 GB)"
    " included. In plans with timings, seconds are of the processor, the least of several fits, and"
    " memory is without that of the choices."
)
_ROUNDS = (
    "rounds and features per round of Algorithm 1 are ours; the paper gives only their product D."
)

TABLE1 = Comparison(
    title="Yen et al. 2014, Table 1: kernel ridge regression (lambda is un-normalised)",
    table="table1",
    data=(
        DataRow("cpu"),
        DataRow("census"),
        DataRow("census16h", "census"),
        DataRow("YearPredictionMSD"),
        DataRow("yearpred-sized", "YearPredictionMSD", generated=True),
    ),
    fields=(_MODEL_SIZE, _RMSE, *_COSTS, _LAMBDA),
    settings={
        "paper": (
            "gamma is not printed; inferred from the RMSE of the exact kernels on cpu's test rows,"
            " beneath: gaussian 1/2, laplacian 1, inputs and targets in [0, 1]. lambda of Sparse-RF"
            " by the paper's rule, on test rows."
        ),
        "tuned": _TUNED,
    },
    differs=(
        (
            "RMSE is in units of the target scaled to [0, 1], which the paper does not say but its"
            " values imply."
        ),
        _PERCEPTRON,
        _ROUNDS,
        _MEMORY,
    ),
)

TABLE2 = Comparison(
    title=(
        "Yen et al. 2014, Table 2: kernel SVM with squared hinge (lambda is un-normalised, C ="
        " 1/lambda)"
    ),
    table="table2",
    data=(
        DataRow("cod-rna"),
        DataRow("ijcnn1"),
        DataRow("covtype"),
        DataRow("covtype-20k", "covtype"),
    ),
    fields=(_MODEL_SIZE, _ACCURACY, *_COSTS, _LAMBDA),
    settings={
        "paper": (
            "gamma is not printed; inferred from the accuracies of the exact kernels on the TEST"
            " rows of cod-rna and ijcnn1, beneath: gaussian 1, laplacian 1/2, inputs in [-1, 1]."
            " lambda of Sparse-RF by the paper's rule, on test rows; of its lambdas 1 is left out,"
            " on covtype 10, too: a run takes over 20 minutes."
        ),
        "tuned": _TUNED,
    },
    differs=(
        _PERCEPTRON,
        _ROUNDS,
        _MEMORY,
    ),
    full=(
        ("paper", "covtype", "kernel"),
        ("tuned", "covtype", "rf"),
        ("tuned", "covtype", "sparse-rf"),
    ),
)


def _labelled(rows: Iterable[Row], label: str) -> list[list[Row]]:
    """The newest rows of successful runs with that label, in groups that differ in the seed."""
    return variants(good(labelled(rows, label)))


def inference(rows: Iterable[Row], book: Book) -> Section:
    """The values tried for settings that the paper does not print, with the resulting and the
    printed numbers.
    """
    rows = [row for group in _labelled(rows, "inference") for row in group]
    lines = [_inferred_line(row, book) for row in sorted(rows, key=_inference_order)]
    title = "What the setting was inferred from: scores on TEST rows, ours / paper, of one seed"
    return section(title, lines, _Inferred, 4)


@dataclass(frozen=True)
class _Inferred:
    """The values that a run tried, and its numbers beside the printed ones."""

    dataset: str = shown("data set")
    kernel: str = shown("kernel")
    method: str = shown("method")
    tried: str = shown("tried")
    score: Cell = shown("score")
    model_size: Cell = shown("model size")


def _inference_order(row: Row) -> tuple[str | float, ...]:
    return row.dataset, row.kernel, row.method, width(row) or 0, row.lam


def _inferred_line(row: Row, book: Book) -> _Inferred:
    place = (row.dataset, row.kernel, row.method)
    score = book.get((*place, row.metric))
    size = book.get((*place, "model_size"))
    return _Inferred(
        *place,
        tried=_tried(row),
        score=number(row.score, decimals(4), paper=score, pair=True),
        model_size=number(row.model_size, count, paper=size, pair=True),
    )


def _tried(row: Row) -> str:
    """The values that a run tried."""
    gamma = width(row)
    tried = f"gamma {gamma:g}" if gamma else f"scale {row.params.get('perceptron_scale')}"
    return f"{tried}, lambda {row.lam:g}" if row.method == "sparse-rf" else tried


def published(rows: Iterable[Row]) -> Section:
    """rfx's solvers and the programs that the paper used, each pair on the same features or
    kernel.
    """
    groups = sorted(_labelled(rows, "published"), key=_published_order)
    title = (
        "The published programs beside rfx's solvers, on the same features or kernel. gap:"
        " over the objective. Means over the seeds"
    )
    return section(title, map(_published_line, groups), _Published, 4)


@dataclass(frozen=True)
class _Published:
    """The problem and the program of some runs, and means over their seeds."""

    dataset: str = shown("data set")
    method: str = shown("method")
    problem: str = shown("problem")
    by: str = shown("by")
    seeds: int = shown("seeds", count)
    seconds: Mean | None = shown("training, s", short, "deviation")
    memory: Mean | None = shown("memory, GB", short)
    objective: Mean | None = shown("objective", "{:,.6g}".format, "deviation")
    gap: Cell = shown("gap")
    model_size: Mean | None = shown("model size", count, "deviation")
    score: Mean | None = shown("score", decimals(4), "deviation")


def _published_order(group: Sequence[Row]) -> tuple[str | float, ...]:
    """By problem; rfx before the program that solves the same one."""
    row = group[0]
    size = row.n_features or 0
    return row.dataset, row.method, size, row.kernel, row.lam, row.solver != "rfx"


def _published_line(group: Sequence[Row]) -> _Published:
    row = group[0]
    converged = all(row.converged for row in group)
    gap = Cell(mean_if_any(map(_share, group)), "{:.1e}".format, converged=converged)
    return _Published(
        dataset=row.dataset,
        method=row.method,
        problem=_problem(row),
        by=PROGRAMS.get(row.solver, row.solver),
        seeds=len(group),
        seconds=mean_if_any(map(seconds_train, group)),
        memory=mean_if_any(map(memory_gb, group)),
        objective=mean_if_any(row.objective for row in group),
        gap=gap,
        model_size=mean_if_any(row.model_size for row in group),
        score=mean_if_any(row.score for row in group),
    )


def _problem(row: Row) -> str:
    """Kernel, loss, lambda and features."""
    loss = (row.params.get("loss") or "").replace("_", " ")
    size = f", D {count(row.n_features)}" if row.n_features else ""
    return f"{row.kernel}, {loss}, lambda {row.lam:g}{size}"


def _share(row: Row) -> float | None:
    """The gap over the objective."""
    known = row.objective and row.gap is not None
    return row.gap / row.objective if known else None


# ----------------------------------------------------------------------------------------- Figure 1


@dataclass(frozen=True, kw_only=True)
class CurveLine:
    """A curve of Figure 1, or the kernel machine: means over the seeds. features: those kept;
    seconds_to_line: until the curve is at the kernel's line. Both are None for the kernel machine.
    """

    title: str = shown("method")
    method: str
    lam: float = shown("lambda", general)
    seeds: int
    features: Mean | None = shown("features kept", count, "deviation")
    objective: Mean = shown("objective / N", decimals(4), "deviation")
    error: Mean = shown("error", decimals(4), "deviation")
    seconds: Mean = shown("seconds", short, "deviation")
    seconds_to_line: Mean | None
    to_line: Cell | None = shown("seconds to the kernel's line")

    @property
    def tidy(self) -> Line:
        """The line of CSV and JSON, without quantities that the kernel machine has not."""
        quantities = {"objective": self.objective, "error": self.error, "seconds": self.seconds}
        if self.method != "kernel":
            to_line = {"seconds_to_line": self.seconds_to_line}
            quantities = {"features": self.features, **quantities, **to_line}
        line: Line = {"method": self.method, "lam": self.lam, "seeds": self.seeds}
        line |= {name: mean and mean.value for name, mean in quantities.items()}
        return line | {f"{name}_sd": mean and mean.sd for name, mean in quantities.items()}


_FIGURE1_NOTES = (
    (
        "The kernel's line is (lambda_N/N) ||w*||_2 + mean loss with the lambda_N of the L1"
        " problem; its own lambda is in its column. Curves are held against that of their"
        " own seed, which draws the rows."
    ),
    (
        "All with perceptrons +-1 and the kernel 1 - (c_d/R) ||x - y||, no bias. The paper"
        " prints no lambda for its Figure 1."
    ),
    (
        "Seconds are the processor's, of all threads; of the kernel machine they are the"
        " wall clock's."
    ),
)


def figure1(rows: Sequence[Row]) -> Table:
    """A section for each data set: the kernel's line first, then Sparse-RF and boosting, as means
    over the seeds.
    """
    sections, used, n_seeds = [], [], []
    cells: list[Line] = []
    for name, panel in yen.figure1(rows).items():
        lines = [_curve_line(key, runs, panel.line) for key, runs in panel.curves.items()]
        if panel.line is not None:
            lines.insert(0, _kernel_line(panel.line))
        sections.append(section(_axes(name, panel), lines, CurveLine))
        place = {"table": "yen2014-figure1", "dataset": name}
        cells += [place | line.tidy for line in lines]
        n_seeds += [line.seeds for line in lines]
        used += panel.rows
    return Table(
        name="yen2014-figure1",
        title="Yen et al. 2014, Figure 1: Sparse-RF and boosting",
        sections=sections,
        notes=[*_FIGURE1_NOTES, *noise(n_seeds)[:1], *failures(rows), *machines(used)],
        cells=cells,
    )


def _axes(name: str, panel: yen.Panel) -> str:
    """The title of a data set's section, with the paper's axes."""
    title = f"{yen.DATA[name]}, N = {panel.rows[0].n_train:,}"
    ends = [f"{low:g} to {high:g}" for low, high in yen.AXES.get(name, ())]
    return "{}; the paper's axes: {} s, {}, {}".format(title, *ends) if ends else title


def _kernel_line(line: yen.Line) -> CurveLine:
    return CurveLine(
        title="Kernel (dashed)",
        method="kernel",
        lam=line.rows[0].lam,
        seeds=len(line.rows),
        features=None,
        objective=mean_of([*line.bounds.values()]),
        error=mean_of([1 - row.score for row in line.rows]),
        seconds=mean_of([row.seconds_fit for row in line.rows]),
        seconds_to_line=None,
        to_line=None,
    )


def _curve_line(key: str, runs: yen.Curves, line: yen.Line | None) -> CurveLine:
    reached = mean_if_any(runs.reached(line)) if line else None
    n_seeds = len(runs.rows)
    return CurveLine(
        title=yen.CURVES[key],
        method=key,
        lam=runs.rows[0].lam,
        seeds=n_seeds,
        features=mean_of([row.model_size for row in runs.rows]),
        objective=mean_of(runs.ends("objective")),
        error=mean_of(runs.ends("error")),
        seconds=mean_of(runs.ends("seconds")),
        seconds_to_line=reached,
        to_line=_to_line(reached, n_seeds) if line else None,
    )


def _to_line(reached: Mean | None, n_seeds: int) -> Cell:
    """Seconds until the kernel's line is reached, and the number of seeds that reach it if not all
    do.
    """
    if reached is None:
        return words("never")
    few = f" ({reached.n} of {n_seeds} seeds)" if reached.n != n_seeds else ""
    return Cell(reached, short, "deviation", note=few)


# -------------------------------------------------------------------------------------- Corollary 1


@dataclass(frozen=True, kw_only=True)
class SizeLine:
    """The objective of one case at one D, beside the bound and the objective of RF. Its fields are
    those of CSV and JSON but for `above`.
    """

    dataset: str
    kernel: str
    n_features: int = shown("D", count)
    objective: Mean = shown("F", decimals(5), "deviation")
    sd: float | None
    excess: float
    above: float | str = shown("F - F(inf)", decimals(5))
    bound: Cell = shown("bound on F")
    runs: int = shown("runs", count)
    slope: float | None
    rf_excess: Mean | None = shown("RF: P - P*", decimals(5), "deviation")
    rf_sd: float | None
    norm: float


def corollary1(rows: Sequence[Row]) -> Table:
    """A section for each data set and kernel: D, the objective, its distance above its limit, and
    the bound; then the slope.
    """
    sections, lines, notes = [], [], [*yen.COROLLARY_NOTES]
    for case in yen.cases(rows):
        own = [_size_line(case, size) for size in case.excess.sizes]
        sections.append(section(f"{case.dataset}, {case.kernel}", own, SizeLine))
        lines += own
        notes.append(_summary(case))
    used = labelled(rows, yen.COROLLARY1)
    name = "yen2014-corollary1"
    return Table(
        name=name,
        title=yen.COROLLARY_TITLE,
        sections=sections,
        notes=[*notes, *failures(used), *machines(used)],
        cells=tidy(lines, "above", table=name),
    )


def _size_line(case: yen.Case, size: int) -> SizeLine:
    mean = mean_of(case.excess.at(size))
    excess = mean.value - case.excess.limit
    rf = case.rf.above.get(size)
    return SizeLine(
        dataset=case.dataset,
        kernel=case.kernel,
        n_features=size,
        objective=mean,
        sd=mean.sd,
        excess=excess,
        above=excess or "limit",
        bound=case.reference.cell(size),
        runs=mean.n,
        slope=case.excess.slope,
        rf_excess=rf,
        rf_sd=rf and rf.sd,
        norm=case.reference.norm,
    )


def _summary(case: yen.Case) -> str:
    """The slope of a case, and what its bound is made of."""
    one, slope = case.reference, case.excess.slope
    known = "not known" if slope is None else f"{slope:.2f}"
    objectives = f"F(0) {one.zero:.4f}, F* {one.value:.4f}, limit {case.excess.limit:.4f}"
    parts = f"||w*|| {one.norm:.3g}, gamma {one.curvature:g}, c {count(one.wasted)}"
    useful = f"the bound is below F(0) from D = {count(case.first_useful())} on"
    return f"{case.dataset}, {case.kernel}: slope {known}; {objectives}; {parts}; {useful}."


TABLES = {
    "table1": TABLE1.builder,
    "table2": TABLE2.builder,
    "figure1": Builder("yen2014-figure1", figure1),
    "corollary1": Builder("yen2014-corollary1", corollary1),
}
