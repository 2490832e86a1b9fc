"""Tables 1 and 2 of Yen et al. 2014 (sparse random features), kernel ridge regression and kernel
SVM, with additional sections; the numbers behind Figure 1; and Corollary 1 in numbers.

The additional sections of Tables 1 and 2 show the runs from which the setting `paper` was inferred,
and the published programs. The plans label these rows `inference` and `published`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

from rfx.papers.yen2014 import figure1 as yen
from rfx.papers.yen2014 import theory
from rfx.records.result import complete, seconds_train
from rfx.reporting import seeds
from rfx.reporting.builders import Builder
from rfx.reporting.cells import Cell, Section, Table, count, decimals, general, number, short, words
from rfx.reporting.printed import printed
from rfx.reporting.seeds import Mean, mean, mean_of
from rfx.reporting.tables import Comparison, DataRow, Field, failures, gamma, machines, memory_gb

OURS = "perceptron, range"
PROGRAMS = {"liblinear": "LIBLINEAR", "libsvm": "LIBSVM"}

# ----------------------------------------------------------------------------------- Tables 1 and 2


@dataclass(frozen=True)
class YenTable(Comparison):
    """A table with a separate line for our perceptrons. Below the setting `paper` it shows the runs
    from which this setting was inferred, and the published programs.

    full: setting, data set and method of runs that need FULL=1 because they take hours.
    """

    full: tuple[tuple[str, str, str], ...] = ()

    def __call__(self, rows, setting=None):
        table = super().__call__(rows, setting)
        if table.cells[0]["setting"] == "paper":
            known = [row for row in rows if row["dataset"] in {data.name for data in self.data}]
            table.sections += inference(known, printed(self.package, self.table)) + published(known)
        return table

    def line(self, row):
        return OURS if row["params"].get("features") == "range" else row["kernel"]

    def notes(self, groups, rows, book, setting):
        notes = super().notes(groups, rows, book, setting)
        there = {(row["dataset"], row["method"]) for group in groups for row in group}
        later = [
            f"{dataset}, {self.methods[method]}: hours; make reproduce-{self.table} FULL=1 runs it."
            for of, dataset, method in self.full
            if of == setting and (dataset, method) not in there
        ]
        return notes + later


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
        Field("seconds_train", "training, s", seconds_train, short),
        Field("seconds_predict", "prediction, s", itemgetter("seconds_predict"), short),
        Field("memory_gb", "memory, GB", memory_gb, short),
        Field("lam", "lambda", itemgetter("lam"), general, chosen=True),
    )


_SHARED: dict[str, Any] = {
    "package": __package__,
    "kernels": ("gaussian", "laplacian", "perceptron", OURS),
    "methods": {"kernel": "Kernel", "rf": "RF", "sparse-rf": "Sparse-RF"},
    "closest_to": {"sparse-rf": "rf"},
}
_TUNED = (
    "gamma by --gamma tuned, lambda of Kernel and RF by --lam validation, of Sparse-RF by --lam"
    " match-rf (closest to RF's with lambda 1), all on training rows; what was tried is in each"
    " row's params, under validation."
)
_PERCEPTRON = (
    "perceptron: Kernel and RF with K_P = R/c_d - |x - y|, Sparse-RF on features +-1, thresholds"
    f" over the whole ball, as section 5 has them; {OURS}: ours, thresholds where they tell"
    " training rows apart and an amplitude for each feature."
)
_MEMORY = (
    "memory is the whole process at its largest, the interpreter and its libraries (about 0.1 GB)"
    " included."
)
_ROUNDS = (
    "rounds and features per round of Algorithm 1 are ours; the paper gives only their product D."
)

TABLE1 = YenTable(
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
    **_SHARED,
)

TABLE2 = YenTable(
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
    **_SHARED,
)


def _labelled(rows, label) -> list[Mapping]:
    """The newest row of each successful run with that label."""
    good = [row for row in rows if row["status"] == "ok" and row["params"].get("label") == label]
    return complete(
        (row for group in seeds.variants(good) for row in group),
        "kernel",
        "solver",
        "lam",
        "metric",
        "score",
        "model_size",
    )


def inference(rows, book) -> list[Section]:
    """The values tried for settings that the paper does not print, with the resulting and the
    printed numbers; no section without such rows.
    """
    lines = []
    rows = _labelled(rows, "inference")
    for row in sorted(
        rows,
        key=lambda row: (row["dataset"], row["kernel"], row["method"], gamma(row) or 0, row["lam"]),
    ):
        of = (row["dataset"], row["kernel"], row["method"])
        tried = (
            [f"gamma {gamma(row):g}"]
            if gamma(row)
            else [f"scale {row['params'].get('perceptron_scale')}"]
        )
        tried += [f"lambda {row['lam']:g}"] if row["method"] == "sparse-rf" else []
        score = number(row["score"], decimals(4), paper=book.get((*of, row["metric"])), pair=True)
        size = number(row["model_size"], count, paper=book.get((*of, "model_size")), pair=True)
        lines.append([*map(words, of), words(", ".join(tried)), score, size])
    title = "What the setting was inferred from: scores on TEST rows, ours / paper, of one seed"
    return (
        [Section(title, ["data set", "kernel", "method", "tried", "score", "model size"], lines, 4)]
        if rows
        else []
    )


def published(rows) -> list[Section]:
    """rfx's solvers and the programs that the paper used, each pair on the same features or kernel;
    no section without such rows.
    """
    groups = seeds.variants(_labelled(rows, "published"))
    lines = []
    for group in sorted(groups, key=lambda group: _order(group[0])):
        row = group[0]
        loss = (row["params"].get("loss") or "").replace("_", " ")
        what = f"{row['kernel']}, {loss}, lambda {row['lam']:g}" + (
            f", D {count(row['n_features'])}" if row["n_features"] else ""
        )
        names = (row["dataset"], row["method"], what, PROGRAMS.get(row["solver"], row["solver"]))
        lines.append([*map(words, names), *_came_of(group)])
    title = (
        "The published programs beside rfx's solvers, on the same features or kernel. gap: over the"
        " objective. Means over the seeds"
    )
    heads = [
        "data set",
        "method",
        "problem",
        "by",
        "seeds",
        "training, s",
        "memory, GB",
        "objective",
        "gap",
        "model size",
        "score",
    ]
    return [Section(title, heads, lines, 4)] if groups else []


def _order(row) -> tuple:
    """Order by problem; rfx before the program that solves the same one."""
    return (
        row["dataset"],
        row["method"],
        row["n_features"] or 0,
        row["kernel"],
        row["lam"],
        row["solver"] != "rfx",
    )


def _came_of(group) -> list[Cell]:
    """Means over the seeds for one problem and program."""
    shares = [
        row["gap"] / row["objective"] if row["objective"] and row["gap"] is not None else None
        for row in group
    ]
    of = lambda name: mean([row[name] for row in group])
    return [
        number(len(group), count),
        Cell(mean([seconds_train(row) for row in group]), short, "deviation"),
        Cell(mean([memory_gb(row) for row in group]), short),
        Cell(of("objective"), "{:,.6g}".format, "deviation"),
        Cell(mean(shares), "{:.1e}".format, converged=all(row["converged"] for row in group)),
        Cell(of("model_size"), count, "deviation"),
        Cell(of("score"), decimals(4), "deviation"),
    ]


# ----------------------------------------------------------------------------------------- Figure 1

_COLUMNS = [
    "method",
    "lambda",
    "features kept",
    "objective / N",
    "error",
    "seconds",
    "seconds to the kernel's line",
]


def figure1(rows) -> Table:
    """A section for each data set: the kernel's line first, then Sparse-RF and boosting, as means
    over the seeds.
    """
    sections, cells, used = [], [], []
    for name, (curves, line) in yen.found(rows).items():
        lines = []
        if line is not None:
            found = {
                "objective": yen.over(line.bounds),
                "error": yen.over(line.errors),
                "seconds": yen.over(line.seconds),
            }
            lines.append(
                [words("Kernel (dashed)"), number(line.lam, general), Cell(), *_ends(found), Cell()]
            )
            cells.append(_tidy(name, "kernel", found, lam=line.lam, seeds=len(line.seeds)))
        for key, runs in curves.items():
            used += runs.rows
            found = {
                "features": yen.over([row["model_size"] for row in runs.rows]),
                "objective": yen.over(runs.ends(1)),
                "error": yen.over(runs.ends(2)),
                "seconds": yen.over(runs.ends(0)),
            }
            reached = (
                [] if line is None else [value for value in runs.reached(line) if value is not None]
            )
            to_line = yen.over(reached) if reached else None
            features = Cell(found["features"], count, "deviation")
            lines.append(
                [
                    words(yen.CURVES[key]),
                    number(runs.lam, general),
                    features,
                    *_ends(found),
                    _to_line(to_line, len(runs.rows), line),
                ]
            )
            cells.append(
                _tidy(
                    name,
                    key,
                    found | {"seconds_to_line": to_line},
                    lam=runs.lam,
                    seeds=len(runs.rows),
                )
            )
        first = next(iter(curves.values()))
        axes = yen.AXES.get(name)
        said = (
            ""
            if axes is None
            else "; the paper's axes: {} s, {}, {}".format(
                *(f"{low:g} to {high:g}" for low, high in axes)
            )
        )
        sections.append(Section(f"{yen.DATA[name]}, N = {first.n:,}{said}", _COLUMNS, lines))
    notes = [
        (
            "The kernel's line is (lambda_N/N) ||w*||_2 + mean loss with the lambda_N of the L1"
            " problem; its own lambda is in its column. Curves are held against that of their own"
            " seed, which draws the rows."
        ),
        (
            "All with perceptrons +-1 and the kernel 1 - (c_d/R) ||x - y||, no bias. The paper"
            " prints no lambda for its Figure 1."
        ),
        (
            "Seconds are the processor's, of all threads; of the kernel machine they are the wall"
            " clock's."
        ),
        *seeds.noise([cell["seeds"] for cell in cells])[:1],
    ]
    title = "Yen et al. 2014, Figure 1: Sparse-RF and boosting"
    return Table("yen2014-figure1", title, sections, notes + failures(rows) + machines(used), cells)


def _to_line(reached: Mean | None, runs: int, line) -> Cell:
    """Seconds until the kernel's line is reached, and the number of seeds that reach it if not all
    do.
    """
    if reached is None:
        return words("never") if line else Cell()
    return Cell(
        reached,
        short,
        "deviation",
        note="" if reached.n == runs else f" ({reached.n} of {runs} seeds)",
    )


def _ends(found) -> list[Cell]:
    """Final objective, error and seconds."""
    return [
        Cell(found[name], write, "deviation")
        for name, write in (("objective", decimals(4)), ("error", decimals(4)), ("seconds", short))
    ]


def _tidy(dataset, method, found, **more) -> dict:
    means = {quantity: mean and mean.value for quantity, mean in found.items()}
    deviations = {f"{quantity}_sd": mean and mean.sd for quantity, mean in found.items()}
    return (
        {"table": "yen2014-figure1", "dataset": dataset, "method": method}
        | more
        | means
        | deviations
    )


# -------------------------------------------------------------------------------------- Corollary 1


def corollary1(rows) -> Table:
    """A section for each data set and kernel: D, the objective, its distance above its limit, and
    the bound; then the slope.
    """
    sections, cells, notes = [], [], list(theory.NOTES)
    for case in theory.cases(rows):
        lines = []
        for size, values in case.excess.values.items():
            own, bound = mean_of(values), case.reference.bound(size, case.curvature)
            vacuous = ", vacuous" if case.vacuous(size) else ""
            infinite = bound == float("inf")
            above = own.value - case.excess.limit
            rf = case.rf_above(size)
            allowed = (
                words(f"infinite{vacuous}") if infinite else number(bound, short, note=vacuous)
            )
            over = number(above, decimals(5)) if above else words("limit")
            lines.append(
                [
                    number(size, count),
                    Cell(own, decimals(5), "deviation"),
                    over,
                    allowed,
                    number(own.n, count),
                    Cell(rf, decimals(5), "deviation"),
                ]
            )
            cells.append(
                {
                    "table": "yen2014-corollary1",
                    "dataset": case.dataset,
                    "kernel": case.kernel,
                    "n_features": size,
                    "objective": own.value,
                    "sd": own.sd,
                    "excess": above,
                    "bound": None if infinite else bound,
                    "runs": own.n,
                    "slope": case.excess.slope,
                    "rf_excess": rf and rf.value,
                    "rf_sd": rf and rf.sd,
                    "norm": case.reference.norm,
                }
            )
        title = f"{case.dataset}, {case.kernel}"
        sections.append(
            Section(title, ["D", "F", "F - F(inf)", "bound on F", "runs", "RF: P - P*"], lines)
        )
        one, slope = case.reference, case.excess.slope
        notes.append(
            f"{title}: slope {'not known' if slope is None else f'{slope:.2f}'}; F(0)"
            f" {one.zero:.4f}, F* {one.value:.4f}, limit {case.excess.limit:.4f}; ||w*||"
            f" {one.norm:.3g}, gamma {case.curvature:g}, c {count(one.wasted(case.curvature))}; the"
            f" bound is below F(0) from D = {count(case.first_useful())} on."
        )
    used = [row for row in rows if row["params"].get("label") == theory.LABEL]
    notes += failures(used) + machines([row for row in used if row["status"] == "ok"])
    title = (
        "Yen et al. 2014, Corollary 1: the objective of Sparse-RF against the number of features"
    )
    return Table("yen2014-corollary1", title, sections, notes, cells)


TABLES = {table.table: table for table in (TABLE1, TABLE2)} | {
    name: Builder(f"yen2014-{name}", make)
    for name, make in (("figure1", figure1), ("corollary1", corollary1))
}
