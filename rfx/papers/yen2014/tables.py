"""Tables 1 and 2 of Yen et al. 2014 (sparse random features), kernel ridge regression and kernel
SVM, with additional sections; the numbers behind Figure 1; and Corollary 1 in numbers.

The additional sections of Tables 1 and 2 show the runs from which the setting `paper` was inferred,
and the published programs. The plans label these rows `inference` and `published`.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

from rfx.papers.yen2014 import curves as yen
from rfx.records.run import seconds_train
from rfx.reporting.cells import (
    Around,
    Builder,
    Cell,
    Printed,
    Row,
    Section,
    Table,
    count,
    crossed,
    decimals,
    general,
    good,
    grid,
    grouped,
    labelled,
    mean_cell,
    mean_if_any,
    mean_of,
    noise,
    number,
    options_of,
    printed,
    short,
    span,
    variants,
    verdict_of,
    width,
    words,
)
from rfx.reporting.columns import low_is_better
from rfx.reporting.tables import failures, machines

OURS = "perceptron, range"
KERNELS = ("gaussian", "laplacian", "perceptron", OURS)
METHODS = {"kernel": "Kernel", "rf": "RF", "sparse-rf": "Sparse-RF"}
PROGRAMS = {"liblinear": "LIBLINEAR", "libsvm": "LIBSVM"}

# ----------------------------------------------------------------------------------- Tables 1 and 2

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
        first = next(iter(settings))
        return Builder(
            f"yen2014-{self.table}",
            self.make,
            settings,
            unrun=lambda: self.make([], first).compared,
        )

    @property
    def book(self) -> Book:
        """The printed numbers."""
        return printed(__package__, self.table)

    def make(self, rows: Sequence[Row], setting: str) -> Table:
        """The table of one setting."""
        name = self.builder.name
        rows_of = {
            data.name: [row for row in rows if row["dataset"] == data.name] for data in self.data
        }
        picks = {data: self.pick(rows_of[data.name], setting) for data in self.data}
        picks = {data: picked for data, picked in picks.items() if picked or not data.stands_for}
        cells = {
            (data, kernel, item, method): self.cell(data, kernel, method, item, picked)
            for data, picked in picks.items()
            for kernel in KERNELS
            for item in self.fields
            for method in METHODS
        }
        by_title = {title: method for method, title in METHODS.items()}
        columns = {
            "kernel": lambda of: words(of[1] if of[2] is self.fields[0] else ""),
            "": lambda of: words(of[2].heading),
        } | crossed(cells, by_title)
        own = [row for row in rows if row["dataset"] in rows_of]
        shown = [row for picked in picks.values() for group in picked.values() for row in group]
        extra = own if setting == "paper" else []
        return Table(
            name=name,
            title=f"{self.title}; setting: {setting}{_title_of_sizes(shown, self.book)}",
            sections=[
                grid(
                    _size_title(data, picked, self.book),
                    columns,
                    [(data, kernel, item) for kernel in KERNELS for item in self.fields],
                    2,
                    dataset=data.name,
                    methods=by_title,
                )
                for data, picked in picks.items()
            ]
            + [one for one in (inference(extra, self.book), published(extra)) if one.lines],
            notes=self.notes(
                [group for picked in picks.values() for group in picked.values()],
                own,
                setting,
            ),
            cells=[
                {"table": name, "setting": setting, "dataset": data.name}
                | {"stands_for": data.stands_for or None, "kernel": kernel, "method": method}
                | {"field": item.name}
                | _tidy(cell, picks[data].get((kernel, method), []))
                for (data, kernel, item, method), cell in cells.items()
            ],
            compared=[cell for cell in cells.values() if cell.paper is not None],
        )

    def pick(self, rows: Iterable[Row], setting: str) -> Picked:
        """Select the rows of one data set for each (kernel, method), one per seed: those with the
        most features, and of these the newest.
        """
        runs = grouped(
            ((self.line(row), row["method"]), row) for row in good(labelled(rows, setting))
        )
        picked: Picked = {}
        for method in METHODS:
            for kernel in (kernel for kernel in KERNELS if (kernel, method) in runs):
                candidates = runs[kernel, method]
                if "n_features" in options_of(method)[0]:
                    most = max(row["n_features"] or 0 for row in candidates)
                    candidates = [row for row in candidates if (row["n_features"] or 0) == most]
                groups, reference = variants(candidates), picked.get((kernel, "rf"), [])
                picked[kernel, method] = (
                    _closest(groups, reference) if method == "sparse-rf" else groups[-1]
                )
        return picked

    def line(self, row: Row) -> str:
        """The entry of KERNELS for a row."""
        return OURS if row["params"].get("features") == "range" else row["kernel"]

    def cell(self, data: DataRow, kernel: str, method: str, item: Field, picked: Picked) -> Cell:
        """The cell of one quantity: the mean over its rows, and the printed number."""
        group = picked.get((kernel, method), [])
        blank = item.scored and data.generated
        ours = None if blank else mean_if_any(item.ours(row) for row in group)
        paper = None if data.stands_for else self.book.get((data.name, kernel, method, item.name))
        converged = all(row["converged"] is not False for row in group) if group else None
        verdict = verdict_of(ours, paper, item.best, item.unit)
        pair = ours is not None or paper is not None
        return Cell(ours, item.write, item.around, paper, pair, verdict, converged)

    def notes(self, groups: Sequence[list[Row]], rows: Sequence[Row], setting: str) -> list[str]:
        """The notes of the table of one setting, from the groups of rows in its cells."""
        used = [row for group in groups for row in group]
        present = {(row["dataset"], row["method"]) for row in used}
        # params: the values that each run chose
        by_score = any(row["method"] == "sparse-rf" and "lam" not in row["params"] for row in used)
        closest = "lambda of sparse-rf: of those run, the one whose score is closest to rf's."
        return [
            "Every cell is ours / paper; a dash: not run, or not printed; *: the solver did not"
            " converge.",
            *noise([len(group) for group in groups]),
            f"Setting {setting}: {self.settings[setting]}",
            *_gammas(used),
            *[closest] * by_score,
            *_other_sizes(used, self.book),
            *(f"Differs from the paper: {text}" for text in self.differs),
            *failures(rows),
            *machines(used),
            *(
                f"{dataset}, {METHODS[method]}: hours; make reproduce-{self.table} FULL=1 runs it."
                for of, dataset, method in self.full
                if of == setting and (dataset, method) not in present
            ),
        ]


def _gammas(rows: Iterable[Row]) -> list[str]:
    """The notes on the bandwidths in use, by kernel."""
    gammas = grouped(
        ((row["kernel"] or "no kernel", row["dataset"]), gamma)
        for row in rows
        if (gamma := width(row)) is not None
    )
    names = grouped(
        ((kernel, span(values, "{:.4g}".format)), dataset)
        for (kernel, dataset), values in gammas.items()
    )
    return [
        f"gamma of {kernel} = {text}: {', '.join(of)}"
        for (kernel, text), of in sorted(names.items())
    ]


def _rows_of_other_size(rows: Iterable[Row], book: Book) -> list[tuple[Row, float]]:
    """The rows whose number of random features differs from the paper's, and the paper's (printed
    as its rf's model size).
    """
    found: list[tuple[Row, float]] = []
    for row in rows:
        paper = book.get((row["dataset"], row["kernel"], "rf", "model_size"))
        if row["n_features"] and paper and row["n_features"] != paper:
            found.append((row, paper))
    return found


def _other_sizes(rows: Iterable[Row], book: Book) -> list[str]:
    """The notes on numbers of random features that differ from the paper's."""
    others = grouped(
        ((row["method"], row["n_features"], paper), row["dataset"])
        for row, paper in _rows_of_other_size(rows, book)
    )
    return [
        f"{method} has D = {ours:,} where the paper has {paper:,.0f}: {', '.join(sorted(names))}"
        for (method, ours, paper), names in sorted((of, {*names}) for of, names in others.items())
    ]


def _title_of_sizes(rows: Iterable[Row], book: Book) -> str:
    """What the title adds where numbers of features differ, as in the small form of a plan."""
    others = {(row["n_features"], paper) for row, paper in _rows_of_other_size(rows, book)}
    return "".join(
        f"; D = {ours:,} beside the paper's {paper:,.0f}" for ours, paper in sorted(others)
    )


def _tidy(cell: Cell, group: list[Row]) -> dict[str, Any]:
    """A cell as a line of CSV and JSON, with the common values of its runs."""
    ours = cell.ours
    shared = {name: {row[name] for row in group} for name in ("lam", "n_features")}
    return {
        "ours": cell.value,
        "sd": cell.sd,
        "low": ours and ours.low,
        "high": ours and ours.high,
        "n": ours.n if ours else 0,
        "paper": cell.paper,
        "verdict": cell.verdict,
        "converged": cell.converged,
    } | {name: values.pop() if len(values) == 1 else None for name, values in shared.items()}


def _closest(groups: list[list[Row]], reference: list[Row]) -> list[Row]:
    """The group whose score is closest to the reference's (of two, the one with the smaller model).
    Without a reference, the group with the best score.

    A group's score is the mean over its seeds; one seed is enough for the comparison.
    """

    def mean_of(name: str, rows: list[Row]) -> float | None:
        mean = mean_if_any(row[name] for row in rows)
        return mean and mean.value

    wanted = mean_of("score", reference)

    def distance(group: list[Row]) -> tuple[float, float]:
        score = mean_of("score", group) or 0.0
        if wanted is None:
            return (1 if low_is_better(group[0]["metric"]) else -1) * score, 0.0
        return abs(score - wanted), mean_of("model_size", group) or 0.0

    return min(groups, key=distance)


def _size_title(data: DataRow, picked: Picked, book: Book) -> str:
    names = ("n_train", "n_test", "n_inputs")
    written = "N {:,.0f}, test {:,.0f}, d {:,.0f}".format
    sizes = [[row[name] for name in names] for group in picked.values() for row in group]
    printed_sizes = [book.get((data.name, "", "", name)) for name in names]
    ours = ", ".join(dict.fromkeys(written(*size) for size in sizes if None not in size))
    paper = "" if None in printed_sizes else written(*printed_sizes)
    both = f"{ours}; paper: {paper}" if ours and paper and ours != paper else ours or paper
    return f"{data.title} ({both})" if both else data.title


def memory_gb(row: Row) -> float | None:
    """The peak memory in GB of 10^9 bytes, the papers' unit: of fits that were timed again, else of
    the run.
    """
    peak_mb = row["params"].get("fit_rss_mb", row["peak_rss_mb"])
    return None if peak_mb is None else peak_mb * 2**20 / 1e9


def _training(row: Row) -> float | None:
    """The least processor seconds of fits that were timed again, else seconds by the clock."""
    return row["params"].get("least_seconds_cpu", seconds_train(row))


def _prediction(row: Row) -> float | None:
    """The same of predictions."""
    return row["params"].get("least_seconds_cpu_predict", row["seconds_predict"])


def _fields(metric, heading, best):
    return (
        Field("model_size", "model size", itemgetter("model_size"), count),
        Field(
            metric,
            heading,
            itemgetter("score"),
            decimals(4),
            scored=True,
            best=best,
            unit="share" if metric == "accuracy" else "relative",
        ),
        Field("seconds_train", "training, s", _training, short),
        Field("seconds_predict", "prediction, s", _prediction, short),
        Field("memory_gb", "memory, GB", memory_gb, short),
        Field("lam", "lambda", itemgetter("lam"), general, around="extremes"),
    )


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
    fields=_fields("rmse", "RMSE", "low"),
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
    fields=_fields("accuracy", "accuracy", "high"),
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


def inference(rows: Iterable[Row], book: Mapping) -> Section:
    """The values tried for settings that the paper does not print, with the resulting and the
    printed numbers.
    """
    names = ("dataset", "kernel", "method")
    paper = lambda row, field: book.get((*map(row.get, names), field))
    order = lambda row: (*map(row.get, names), width(row) or 0, row["lam"])
    return grid(
        "What the setting was inferred from: scores on TEST rows, ours / paper, of one seed",
        {
            "data set": lambda row: words(row["dataset"]),
            "kernel": lambda row: words(row["kernel"]),
            "method": lambda row: words(row["method"]),
            "tried": lambda row: words(_tried(row)),
            "score": lambda row: number(
                row["score"], decimals(4), paper=paper(row, row["metric"]), pair=True
            ),
            "model size": lambda row: number(
                row["model_size"], count, paper=paper(row, "model_size"), pair=True
            ),
        },
        sorted((row for group in _labelled(rows, "inference") for row in group), key=order),
        4,
    )


def _tried(row: Row) -> str:
    """The values that a run tried."""
    gamma = width(row)
    first = f"gamma {gamma:g}" if gamma else f"scale {row['params'].get('perceptron_scale')}"
    return first + (f", lambda {row['lam']:g}" if row["method"] == "sparse-rf" else "")


def published(rows: Iterable[Row]) -> Section:
    """rfx's solvers and the programs that the paper used, each pair on the same features or
    kernel.
    """
    # by problem; rfx before the program that solves the same one
    order = lambda group: (
        group[0]["dataset"],
        group[0]["method"],
        group[0]["n_features"] or 0,
        group[0]["kernel"],
        group[0]["lam"],
        group[0]["solver"] != "rfx",
    )
    return grid(
        "The published programs beside rfx's solvers, on the same features or kernel. gap:"
        " over the objective. Means over the seeds",
        {
            "data set": lambda group: words(group[0]["dataset"]),
            "method": lambda group: words(group[0]["method"]),
            "problem": lambda group: words(_problem(group[0])),
            "by": lambda group: words(PROGRAMS.get(group[0]["solver"], group[0]["solver"])),
            "seeds": lambda group: number(len(group), count),
            "training, s": mean_cell(seconds_train, short, "deviation"),
            "memory, GB": mean_cell(memory_gb, short),
            "objective": mean_cell(itemgetter("objective"), "{:,.6g}".format, "deviation"),
            "gap": lambda group: mean_cell(
                _share, "{:.1e}".format, converged=all(row["converged"] for row in group)
            )(group),
            "model size": mean_cell(itemgetter("model_size"), count, "deviation"),
            "score": mean_cell(itemgetter("score"), decimals(4), "deviation"),
        },
        sorted(_labelled(rows, "published"), key=order),
        4,
    )


def _problem(row: Row) -> str:
    """Kernel, loss, lambda and features."""
    loss = (row["params"].get("loss") or "").replace("_", " ")
    size = f", D {count(row['n_features'])}" if row["n_features"] else ""
    return f"{row['kernel']}, {loss}, lambda {row['lam']:g}{size}"


def _share(row: Row) -> float | None:
    """The gap over the objective."""
    known = row["objective"] and row["gap"] is not None
    return row["gap"] / row["objective"] if known else None


# ----------------------------------------------------------------------------------------- Figure 1


def figure1(rows: Sequence[Row]) -> Table:
    """A section for each data set: the kernel's line first, then Sparse-RF and boosting, as means
    over the seeds.
    """
    found = yen.figure1(rows)
    cell = lambda name, write: lambda one: Cell(one.get(name), write, "deviation")
    lines = {name: _figure1(*of) for name, of in found.items()}
    quantities = ("features", "objective", "error", "seconds", "seconds_to_line")
    cells = [
        {"table": "yen2014-figure1", "dataset": name}
        | {item: one[item] for item in ("method", "lam", "seeds")}
        | {item: one[item] and one[item].value for item in quantities if item in one}
        | {f"{item}_sd": one[item] and one[item].sd for item in quantities if item in one}
        for name, own in lines.items()
        for one in own
    ]
    return Table(
        name="yen2014-figure1",
        title="Yen et al. 2014, Figure 1: Sparse-RF and boosting",
        sections=[
            grid(
                _axes(name, found[name][0]),
                {
                    "method": lambda one: words(one["title"]),
                    "lambda": lambda one: number(one["lam"], general),
                    "features kept": cell("features", count),
                    "objective / N": cell("objective", decimals(4)),
                    "error": cell("error", decimals(4)),
                    "seconds": cell("seconds", short),
                    "seconds to the kernel's line": _to_line,
                },
                own,
            )
            for name, own in lines.items()
        ],
        notes=[
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
            *noise([one["seeds"] for one in cells])[:1],
            *failures(rows),
            *machines(
                [
                    row
                    for curves, _ in found.values()
                    for runs in curves.values()
                    for row in runs.rows
                ]
            ),
        ],
        cells=cells,
    )


def _axes(name: str, curves: Mapping[str, yen.Curves]) -> str:
    """The title of a data set's section, with the paper's axes."""
    title = f"{yen.DATA[name]}, N = {next(iter(curves.values())).rows[0]['n_train']:,}"
    ends = [f"{low:g} to {high:g}" for low, high in yen.AXES.get(name, ())]
    return "{}; the paper's axes: {} s, {}, {}".format(title, *ends) if ends else title


def _figure1(curves: Mapping[str, yen.Curves], line: yen.Line | None) -> list[dict[str, Any]]:
    """The kernel's line and the curves of a data set: means over the seeds."""
    kernel = [
        {
            "title": "Kernel (dashed)",
            "method": "kernel",
            "lam": one.rows[0]["lam"],
            "seeds": len(one.rows),
            "objective": mean_of([*one.bounds.values()]),
            "error": mean_of([1 - row["score"] for row in one.rows]),
            "seconds": mean_of([row["seconds_fit"] for row in one.rows]),
        }
        for one in filter(None, [line])
    ]
    return kernel + [
        {
            "title": yen.CURVES[key],
            "method": key,
            "lam": runs.rows[0]["lam"],
            "seeds": len(runs.rows),
            "features": mean_of([row["model_size"] for row in runs.rows]),
            **{name: mean_of(runs.ends(name)) for name in ("objective", "error", "seconds")},
            "seconds_to_line": line and mean_if_any(runs.reached(line)),
            "lined": line is not None,
        }
        for key, runs in curves.items()
    ]


def _to_line(one: Mapping[str, Any]) -> Cell:
    """Seconds until the kernel's line is reached, and the number of seeds that reach it if not all
    do.
    """
    reached = one.get("seconds_to_line")
    if reached is None:
        return words("never") if one.get("lined") else Cell()
    few = f" ({reached.n} of {one['seeds']} seeds)" if reached.n != one["seeds"] else ""
    return Cell(reached, short, "deviation", note=few)


# -------------------------------------------------------------------------------------- Corollary 1


def corollary1(rows: Sequence[Row]) -> Table:
    """A section for each data set and kernel: D, the objective, its distance above its limit, and
    the bound; then the slope.
    """
    found = yen.cases(rows)
    points = {
        f"{case.dataset}, {case.kernel}": [
            (case, size, mean_of(case.excess.at(size))) for size in case.excess.sizes
        ]
        for case in found
    }
    used = labelled(rows, yen.COROLLARY1)
    return Table(
        name="yen2014-corollary1",
        title=(
            "Yen et al. 2014, Corollary 1: the objective of Sparse-RF against the number of"
            " features"
        ),
        sections=[
            grid(
                name,
                {
                    "D": lambda of: number(of[1], count),
                    "F": lambda of: Cell(of[2], decimals(5), "deviation"),
                    "F - F(inf)": lambda of: (
                        number(above, decimals(5))
                        if (above := of[2].value - of[0].excess.limit)
                        else words("limit")
                    ),
                    "bound on F": lambda of: of[0].reference.cell(of[1]),
                    "runs": lambda of: number(of[2].n, count),
                    "RF: P - P*": lambda of: Cell(
                        of[0].rf.above.get(of[1]), decimals(5), "deviation"
                    ),
                },
                of_case,
            )
            for name, of_case in points.items()
        ],
        notes=[*yen.COROLLARY_NOTES, *map(_summary, found), *failures(used), *machines(used)],
        cells=[
            {
                "table": "yen2014-corollary1",
                "dataset": case.dataset,
                "kernel": case.kernel,
                "n_features": size,
                "objective": mean.value,
                "sd": mean.sd,
                "excess": mean.value - case.excess.limit,
                "bound": case.reference.cell(size).value,
                "runs": mean.n,
                "slope": case.excess.slope,
                "rf_excess": rf and rf.value,
                "rf_sd": rf and rf.sd,
                "norm": case.reference.norm,
            }
            for of_case in points.values()
            for case, size, mean in of_case
            for rf in [case.rf.above.get(size)]
        ],
    )


def _summary(case: yen.Case) -> str:
    """The slope of a case, and what its bound is made of."""
    one, slope = case.reference, case.excess.slope
    return (
        f"{case.dataset}, {case.kernel}: slope {'not known' if slope is None else f'{slope:.2f}'};"
        f" F(0) {one.zero:.4f}, F* {one.value:.4f}, limit {case.excess.limit:.4f}; ||w*||"
        f" {one.norm:.3g}, gamma {one.curvature:g}, c {count(one.wasted)}; the bound is below F(0)"
        f" from D = {count(case.first_useful())} on."
    )


TABLES = {table.table: table.builder for table in (TABLE1, TABLE2)} | {
    name: Builder(f"yen2014-{name}", make)
    for name, make in (("figure1", figure1), ("corollary1", corollary1))
}
