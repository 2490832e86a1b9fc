"""Shared by the tables, figures and claims of Wu et al. 2016: our rows and the authors' plot data
as matching curves; Theorem 1 (the objective against kappa R), and equations 29 and 30 (the
speed-up) against our measurements.

The label of a row is the short name of the figure and the setting, such as fig3-tuned, so that one
results file may hold the rows of all figures.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from operator import itemgetter
from statistics import median
from typing import Any

from rfx.records.run import seconds_train
from rfx.reporting.bounds import Excess, Reference, exact_machines
from rfx.reporting.cells import (
    Cell,
    Line,
    Mean,
    Row,
    curves,
    good,
    grouped,
    labelled,
    mean_of,
    means_of,
    needed,
    span,
    verdict_of,
    width,
)

SETTINGS = {
    "paper": (
        "the paper's lambda = 0.01 and the limit of 50 conjugate gradient steps of the authors'"
        " programs, where most runs end before they are solved; rf, nystrom, block and kernel with"
        " the kernel of those programs, exp(-gamma ||x - y||_2)."
    ),
    "tuned": (
        "lambda, and in Figures 4 and 5 gamma, by validation on training rows, for every run its"
        " own (rb by 128 grids where R is larger); solved to a relative duality gap of 1e-3; all"
        " methods with the kernel exp(-gamma ||x - y||_1) of random binning."
    ),
}
METHODS = {"rb": "RB", "rf": "RF", "nystrom": "Nyström", "block": "block", "kernel": "exact kernel"}
# in the order of the paper's Table 1; the second: the data set that a substitute replaces
DATA = {
    "cadata": "",
    "cpusmall": "",
    "census": "",
    "census16h": "census",
    "ijcnn1": "",
    "cod-rna": "",
    "covtype": "",
    "covtype-20k": "covtype",
    "covtype-mult": "",
    "SUSY": "",
    "SUSY-30k": "SUSY",
    "mnist": "",
    "acoustic": "",
    "letter": "",
}
REGRESSION = frozenset(("cadata", "cpusmall", "census", "census16h"))
MEMORY = (
    "ours is measured, of the whole process, interpreter included; the authors' is their count of"
    " the numbers kept, 8 bytes each."
)
# remarks needed to read the authors' curves
AUTHORS = (
    (
        "bins are those that training rows are in, in the authors' training runs too; seconds of"
        " the authors are on 16 cores."
    ),
    (
        "the authors' letter model almost surely lacks the class Z (labels from 1 where their"
        " program wants them from 0): no target."
    ),
    (
        "a row in no bin seen in training gets 0, which we call the negative class and the authors"
        " an error."
    ),
)
_ROWS = {
    "cadata": 16512,
    "census": 18186,
    "ijcnn1": 35000,
    "cod-rna": 49437,
    "covtype": 464809,
    "covtype-mult": 464809,
    "SUSY": 4000000,
    "mnist": 60000,
    "acoustic": 78823,
    "letter": 10500,
}
THEOREM1 = "theorem1"
THEOREM_NOTES = (
    (
        "kappa is equation 10's, the mean over grids of N over the rows in the fullest bin. The"
        " constant is 2 beta ||w*||^2 / (kappa R'), R' = R - c (erratum 7); w* is the exact kernel"
        " machine, beta the curvature of the loss."
    ),
    (
        "F(w*) has lam sqrt(D/R) ||w*||_2, which is at least lam ||w*||_1; the paper's lam ||w*||_2"
        " is not (erratum 13)."
    ),
    (
        "L1, the case that the paper proves: F = lam ||w||_1 + mean loss over features that are not"
        " divided by sqrt(R), less the limit, which is the mean at the largest R; slopes are of R"
        " up to a sixteenth of it."
    ),
    (
        "L2: what rb solves, lam/2 ||w||^2 + mean loss over features divided by sqrt(R), less the"
        " exact kernel machine's: its mean is never below, for it is convex in the kernel. With"
        " features that are not divided, the paper's L2 penalty would vanish as R grows."
    ),
)
SPEEDUP_NOTES = (
    (
        "Equation 29: threads / (1 + (R - 1)(threads - 1) / (D - 1)); sparse-rf, whose features are"
        " dense, is the case R = D. It counts steps over single bins drawn at random, on a machine"
        " where steps are all that costs; measured are seconds of passes to the same gap."
    ),
    "Equation 30, its limit with kappa + 1 threads: (kappa + 1) / 2; kappa = D/R.",
)


@dataclass
class Curve:
    """One method on one data set: place on the axis (gamma, R) -> quantities by name. Ours are
    means over the seeds, of each the newest row.
    """

    dataset: str
    method: str
    ours: dict[float, dict[str, Mean]] = field(default_factory=dict)
    authors: dict[float, Line] = field(default_factory=dict)

    @property
    def places(self) -> list[float]:
        """The places with a point of ours or of the authors, ascending."""
        return sorted(self.ours.keys() | self.authors.keys())

    def means(self, name: str) -> dict[float, Mean]:
        """Place -> the mean of a quantity of ours, where it is known."""
        return {
            place: self.ours[place][name] for place in sorted(self.ours) if name in self.ours[place]
        }

    def ends(self, name: str) -> list[float]:
        """The least and the largest value of a quantity of ours at every place."""
        return [end for mean in self.means(name).values() for end in (mean.low, mean.high)]

    def series(self, whose: str, name: str) -> dict[float, float]:
        """Place -> known value of a quantity of "ours" or "authors"."""
        if whose == "ours":
            return {place: mean.value for place, mean in self.means(name).items()}
        return {
            place: point[name] for place, point in sorted(self.authors.items()) if name in point
        }

    def converged(self, place: float) -> bool | None:
        """Whether all solvers of ours converged; None if that is unknown."""
        known = self.ours.get(place, {}).get("converged")
        return known and bool(known.low)

    def judged(self, place: float, name: str) -> str | None:
        """The verdict on ours against the authors' (see rfx.reporting.cells), only for test
        performance with several seeds.
        """
        best, unit = ("low", "relative") if self.dataset in REGRESSION else ("high", "share")
        ours, authors = self.ours.get(place, {}), self.authors.get(place, {})
        return verdict_of(ours.get(name), authors.get(name), best, unit) if name == "test" else None


def heading(dataset: str) -> str:
    """The data set's name, with the data set that it replaces."""
    if not DATA.get(dataset):
        return dataset
    replaces = "substitute for" if dataset == "census16h" else "subset of"
    return f"{dataset}: {replaces} {DATA[dataset]}, not comparable"


def metric(dataset: str) -> str:
    return "relative error" if dataset in REGRESSION else "accuracy"


def better(dataset: str, value: float, than: float) -> bool:
    """Whether `value` is at least as good as `than`."""
    return value <= than if dataset in REGRESSION else value >= than


def settings(figure: str) -> dict[str, str]:
    """The settings of a figure, each with the label of its rows."""
    return {name: f"{figure}-{name}" for name in SETTINGS}


def of_figure(rows: Iterable[Row], figure: str, setting: str | None = None) -> list[Row]:
    """The rows of one figure, including failed ones: those of one setting, or all."""
    settings = [setting] if setting else SETTINGS
    return labelled(rows, figure, *(f"{figure}-{name}" for name in settings))


def rank(row: Row) -> int | None:
    """R of the paper: grids, random features, landmarks, or rows of a block; None for the exact
    kernel.
    """
    params = row.params
    return params.get("n_grids") or params.get("block_size") or row.n_features


def _test(row: Row) -> float | None:
    is_regression = row.dataset in REGRESSION
    return row.params.get("relative_error") if is_regression else row.score


def _train(row: Row) -> float | None:
    name = "train_relative_error" if row.dataset in REGRESSION else "train_score"
    return row.params.get(name)


def _bins(row: Row) -> int | None:
    return row.n_features if "n_grids" in row.params else None


def _kappa(row: Row) -> float | None:
    return row.params.get("kappa")


# The compared quantities of a row; test and train: relative error or accuracy; memory in MiB.
QUANTITIES: dict[str, Callable[[Row], Any]] = {
    "test": _test,
    "train": _train,
    "seconds": seconds_train,
    "predict": itemgetter("seconds_predict"),
    "memory": itemgetter("peak_rss_mb"),
    "bins": _bins,
    "kappa": _kappa,
    "gamma": width,
    "converged": itemgetter("converged"),
}


def lambdas(rows: Iterable[Row], by_method: bool) -> str:
    """The lambdas of the rows, each with its data sets; those that vary within a data set (and
    method) as a range.
    """
    lams = grouped(((row.method if by_method else "", row.dataset), row.lam) for row in rows)
    names_of: dict[str, list[str]] = {}
    for (method, dataset), own in sorted(lams.items()):
        lam = span(own, "{:.3g}".format) or "not known"
        names_of.setdefault(f"{method} {lam}".strip(), []).append(dataset)
    return "; ".join(f"{text} ({', '.join(names)})" for text, names in names_of.items())


def compared(rows: Iterable[Row], figure: str, setting: str) -> list[Curve]:
    """The curves of Figures 3 (rb over gamma), 4 (rb over R) and 5 (all methods over R; the only
    point of the exact kernel is at 0), including data sets without our rows.
    """
    methods = METHODS if figure == "fig5" else ("rb",)
    found = {(name, method): Curve(name, method) for name in DATA for method in methods}
    for line in curves(__package__, figure):
        place, point = _published(line)
        found[line["dataset"], line.get("method", "rb")].authors[
            line["gamma"] if figure == "fig3" else place
        ] = point
    points: dict[tuple, dict[Any, Row]] = {}
    for row in of_figure(rows, figure, setting):
        size = 0 if row.method == "kernel" else rank(row)
        at = width(row) if figure == "fig3" else size
        case = row.dataset, row.method
        if row.status == "ok" and case in found and at is not None:
            points.setdefault((case, at), {})[row.seed] = row
    for (case, place), by_seed in points.items():
        means = means_of(list(by_seed.values()), QUANTITIES)
        found[case].ours[place] = {name: mean for name, mean in means.items() if mean}
    return [curve for curve in found.values() if curve.places]


def _published(line: Line) -> tuple[int, Line]:
    """R of a line of the authors' plot data, and its quantities."""
    grids, numbers = line.get("n_grids"), line.get("numbers_a_row")
    point = {name: line.get(name) for name in ("test", "train", "bins", "gamma")} | {
        "seconds": line["seconds_train"],
        "predict": line.get("seconds_predict"),
        "kappa": line["bins"] / grids if line.get("bins") else None,
        "memory": numbers and numbers * _ROWS[line["dataset"]] * 8 / 2**20,
    }
    known = {name: value for name, value in point.items() if value is not None}
    return grids or line.get("n_features") or 0, known


def target(curve: Curve) -> float | None:
    """The test performance that all methods must reach in Figure 5. It is our choice: that of the
    authors' rb at R = 128.
    """
    return curve.authors.get(128, {}).get("test")


def reach(curve: Curve, whose: str, wanted: float) -> float | None:
    """The place of the fastest point of a curve that is at least as good as `wanted`."""
    seconds = curve.series(whose, "seconds")
    times = [
        (seconds[place], place)
        for place, value in curve.series(whose, "test").items()
        if place in seconds and better(curve.dataset, value, wanted)
    ]
    return min(times)[1] if times else None


@dataclass(frozen=True)
class Timed:
    """Figure 6: one method on one data set with a number of threads; medians over the seeds.

    A seed's speed-up is its time with one thread divided by that with several; None without a seed
    that has both. Only the passes over the columns are timed. grids, bins: R and D of equation 29;
    for sparse-rf, whose rows have all features, both are D.
    """

    dataset: str
    method: str
    threads: int
    seconds: float
    speedup: Mean | None
    steps: float
    kappa: float | None
    runs: int
    converged: bool
    grids: int
    bins: float


def timed(rows: Iterable[Row]) -> list[Timed]:
    """The runs of Figure 6, by data set, method and threads."""
    groups: dict[tuple[str, str, int], dict[int, Row]] = {}
    for row in good(of_figure(rows, "fig6")):
        case = row.dataset, row.method, row.threads
        groups.setdefault(case, {})[row.seed] = row
    return [
        _timed(case, groups[case], groups.get((*case[:2], 1), {}))
        for case in sorted(groups, key=_order_of_timed)
    ]


def _order_of_timed(case: tuple[str, str, int]) -> tuple[Any, ...]:
    order = [*DATA, "sparse-rb", "sparse-rf"]
    return [order.index(name) if name in order else -1 for name in case[:2]], case


def _timed(
    case: tuple[str, str, int], by_seed: Mapping[int, Row], alone: Mapping[int, Row]
) -> Timed:
    """The runs of one case. alone: those with one thread."""
    own = list(by_seed.values())
    ratios = [passes(alone[seed]) / passes(by_seed[seed]) for seed in by_seed if seed in alone]
    speedup = None
    if ratios:
        speedup = Mean(median(ratios), None, len(own), min(ratios), max(ratios))
    kappas = [row.params["kappa"] for row in own if row.params.get("kappa")]
    kappa, grids = median(kappas) if kappas else None, own[0].params.get("n_grids")
    return Timed(
        *case,
        seconds=median(map(passes, own)),
        speedup=speedup,
        steps=median(row.n_iter for row in own),
        kappa=kappa,
        runs=len(own),
        converged=all(row.converged for row in own),
        grids=grids or own[0].n_features,
        bins=grids * kappa if grids and kappa else own[0].n_features,
    )


def passes(row: Row) -> float:
    """Seconds of the passes over all outputs, if known: without certificates and other parts of
    training.
    """
    last = {
        step.get("output", 0): step["pass_seconds"]
        for step in row.trace or ()
        if "pass_seconds" in step
    }
    # rows of rfx 0.1 store them in params
    return sum(last.values()) or row.params.get("pass_seconds") or row.seconds_fit


@dataclass(frozen=True)
class Case:
    """One data set, gamma and penalty ("L1", "L2"): the objectives by R with their limit, that
    with infinitely many grids, and the exact machine; beta of the theorem is its curvature, and
    kappa the mean over the runs.
    """

    dataset: str
    gamma: float
    penalty: str
    reference: Reference
    excess: Excess

    @property
    def wasted(self) -> int | None:
        """c of the theorem, which is about the L1 penalty."""
        return self.reference.wasted if self.penalty == "L1" else None

    def bound_cell(self, size: int) -> Cell:
        """The theorem's bound on the objective with an L1 penalty."""
        return self.reference.cell(size) if self.penalty == "L1" else Cell()


def cases(rows: Iterable[Row]) -> list[Case]:
    """Data sets, gammas and penalties with a row of the exact machine and two sizes of random
    binning, by data set.

    Raises DataError if there is no such case.
    """
    found = []
    for exact, alike in exact_machines(rows, THEOREM1, _problem):
        for method, penalty in (("sparse-rb", "L1"), ("rb", "L2")):
            own = [row for row in alike if row.method == method]
            known_limit = None if penalty == "L1" else exact.objective / exact.n_train
            excess = Excess.of(own, _n_grids, known_limit)
            if len(excess.sizes) > 1:
                kappa = mean_of([row.params["kappa_bound"] for row in own]).value
                blocks = mean_of([row.params["kappa"] for row in own]).value
                reference = Reference.of(exact, kappa=kappa, blocks=blocks)
                gamma = width(exact) or 0.0
                found.append(Case(exact.dataset, gamma, penalty, reference, excess))
    found = needed(found, "wu2016-theorem1", "exact machine with random binning at two R")
    return sorted(found, key=_order_of_case)


def _problem(row: Row) -> tuple[str, float | None]:
    return row.dataset, width(row)


def _n_grids(row: Row) -> int:
    return row.params["n_grids"]


def _order_of_case(case: Case) -> tuple[int, str, float]:
    order = [*DATA]
    place = order.index(case.dataset) if case.dataset in order else len(order)
    return place, case.penalty, case.gamma


def predicted(threads: float, n_grids: int, n_bins: float) -> float:
    """Equation 29: the speed-up of parallel coordinate descent on n_bins bins of n_grids grids with
    this number of threads.
    """
    return threads / (1 + (n_grids - 1) * (threads - 1) / (n_bins - 1))


def limit(share: float, kappa: float) -> float:
    """Equation 30: the same with share kappa + 1 threads, for many bins and grids; kappa = D/R."""
    return (share * kappa + 1) / (1 + share)
