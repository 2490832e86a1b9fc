"""Tables 1 and 2 of Yen et al. 2014 (sparse random features), kernel ridge regression and kernel
SVM, with additional sections; the numbers behind Figure 1; and Corollary 1 in numbers.

The additional sections of Tables 1 and 2 show the runs from which the setting `paper` was inferred,
and the published programs. The plans label these rows `inference` and `published`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

from rfx.papers.yen2014 import curves as yen
from rfx.records.run import complete, seconds_train
from rfx.reporting.cells import (
    Builder,
    Cell,
    Row,
    Section,
    Table,
    count,
    decimals,
    general,
    good,
    grid,
    labelled,
    mean_cell,
    mean_if_any,
    mean_of,
    noise,
    number,
    short,
    variants,
    width,
    words,
)
from rfx.reporting.tables import Comparison, DataRow, Field, failures, machines, memory_gb

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

    def make(self, rows, setting):
        table = super().make(rows, setting)
        if setting == "paper":
            names = {data.name for data in self.data}
            known = [row for row in rows if row["dataset"] in names]
            more = inference(known, self.book), published(known)
            table.sections += [section for section in more if section.lines]
        return table

    def line(self, row):
        return OURS if row["params"].get("features") == "range" else row["kernel"]

    def notes(self, groups, rows, setting):
        there = {(row["dataset"], row["method"]) for group in groups for row in group}
        return super().notes(groups, rows, setting) + [
            f"{dataset}, {self.methods[method]}: hours; make reproduce-{self.table} FULL=1 runs it."
            for of, dataset, method in self.full
            if of == setting and (dataset, method) not in there
        ]


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


def _labelled(rows: Iterable[Row], label: str) -> list[list[Row]]:
    """The newest rows of successful runs with that label, in groups that differ in the seed."""
    needs = ("kernel", "solver", "lam", "metric", "score", "model_size")
    return variants(complete(good(labelled(rows, label)), *needs))


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
