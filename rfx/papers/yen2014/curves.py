"""Shared by the tables, figures and claims of Yen et al. (2014): our runs of Figure 1 with their
curves, and the kernel's dashed line; for Corollary 1 the objectives of Sparse-RF and RF against D,
and the bound on the objective of Sparse-RF.

In Figure 1 all methods use one basis, perceptrons +-1, and objectives are divided by the number of
training rows N. Seconds are processor seconds of all threads, which do not depend on the load of
the machine. The paper's are from another machine.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter

import numpy as np

from rfx import lazy
from rfx.errors import DataError
from rfx.parallel import cached
from rfx.reporting.bounds import Excess, Reference, exact_machines, machine_value
from rfx.reporting.cells import Row, good, grouped, grouped_by, labelled, needed
from rfx.reporting.effects import Frame

FIGURE1, COROLLARY1 = "figure1", "corollary1"
DATA = {
    "cod-rna": "Cod-RNA",
    "ijcnn1": "IJCNN",
    "ijcnn1-tr": "IJCNN, 35,000 rows",
    "covtype": "Covtype",
    "covtype-20k": "Covtype, 16,000 rows",
}
CURVES = {
    "sparse-rf": "Sparse-RF",
    "boosting": "Boosting",
    "boosting-exact": "Boosting, exact thresholds",
}
# the paper's printed axes: seconds, objective, error
AXES = {
    "cod-rna": ((0, 2500), (0.1, 0.8), (0, 0.35)),
    "ijcnn1": ((0, 25000), (0.05, 0.25), (0, 0.09)),
    "covtype": ((0, 15000), (0.35, 0.65), (0.08, 0.22)),
}
# the square of the largest feature, B^2
_LARGEST = {"perceptron": 1.0, "gaussian": 2.0}
COROLLARY_TITLE = (
    "Yen et al. 2014, Corollary 1: the objective of Sparse-RF against the number of features"
)
COROLLARY_NOTES = (
    (
        "F = lam ||w||_1 + mean loss, lam and objectives divided by the number of rows; F* is the"
        " same of the exact kernel machine with ||w*||_2 for the L1 norm, which the bound 2 gamma"
        " ||w*||^2 / D' is added to, D' = D - c, gamma the curvature of the loss times B^2."
    ),
    (
        "The limit F(inf) is Sparse-RF at the largest D; slopes are of D up to a sixteenth of it."
        " Nothing is promised below F*, but Sparse-RF gets there."
    ),
    "Where the bound is above F(0), the objective of zero weights, it says nothing: it is vacuous.",
    (
        "P is the objective of RF, with lam/2 ||w||^2 for the L1 norm, and P* that of the exact"
        " kernel machine, which RF approaches as D grows."
    ),
)
# number of points at which the curves of several seeds are compared
POINTS = 60


@dataclass(frozen=True)
class Line:
    """The exact kernel machine's rows, one for each seed, which draws its training rows; lam_l1:
    lambda_N of the L1 problem.
    """

    rows: Sequence[Row]
    lam_l1: float

    @cached
    def bounds(self) -> dict[int, float]:
        """(lambda_N/N) ||w*||_2 + mean loss of each seed, the right-hand side of (22)."""
        return {row.seed: machine_value(row, self.lam_l1) for row in self.rows}

    def bound(self, seed: int) -> float:
        """The bound of this seed, or the mean over the seeds if it has none."""
        return self.bounds.get(seed, float(np.mean([*self.bounds.values()])))


@dataclass(frozen=True)
class Curves:
    """The runs of one curve on one data set: a row per seed, in the order of the seeds."""

    rows: Sequence[Row]

    @cached
    def runs(self) -> dict[int, Frame]:
        """Seed -> the steps of its run: seconds, objective / N and error, without the start, which
        precedes any feature.
        """
        return {row.seed: _steps(row) for row in self.rows}

    def ends(self, quantity: str) -> list[float]:
        """The last value of every run."""
        return [float(run[quantity].iloc[-1]) for run in self.runs.values()]

    def reached(self, line: Line) -> list[float | None]:
        """Seconds until each run's objective is at most the line's bound for its seed; None for a
        run that never reaches it.
        """
        return [seconds_until(run, line.bound(seed)) for seed, run in self.runs.items()]

    def band(self, quantity: str) -> tuple[np.ndarray, np.ndarray]:
        """Seconds, and the values of all seeds there; a run that has ended keeps its last value."""
        runs = self.runs.values()
        first = max(run.seconds.iloc[0] for run in runs)
        last = max(first, max(run.seconds.iloc[-1] for run in runs))
        at = np.geomspace(max(first, 1e-3), max(last, 1e-3), POINTS)
        at[0], at[-1] = first, last
        values = []
        for run in runs:
            before = np.searchsorted(run.seconds, at, side="right") - 1
            values.append(run[quantity].to_numpy()[before])
        return at, np.array(values)


def seconds_until(run: Frame, objective: float) -> float | None:
    """The seconds until a run is at most at this objective; None if it never is."""
    reached = run.seconds[run.objective <= objective]
    return None if reached.empty else float(reached.iloc[0])


_STEP = ("features", "error", "objective", "seconds", "cpu_seconds")


def _steps(row: Row) -> Frame:
    trace = lazy.pandas.DataFrame(row.trace or [], columns=_STEP)
    steps = trace[trace.features > 0].dropna(subset=["error", "objective", "seconds"])
    if steps.empty:
        raise DataError(
            f"the run of {row.method} on {row.dataset} has no trace with errors; run the plan"
            " yen2014-figure1"
        )
    quantities = {
        "seconds": steps.cpu_seconds.fillna(steps.seconds),
        "objective": steps.objective / row.n_train,
        "error": steps.error,
    }
    return lazy.pandas.DataFrame(quantities, dtype=float)


@dataclass(frozen=True)
class Panel:
    """One data set of Figure 1: its curves by their keys, and the kernel's line."""

    curves: dict[str, Curves]
    line: Line | None

    @property
    def rows(self) -> list[Row]:
        """The rows of all curves."""
        return [row for runs in self.curves.values() for row in runs.rows]


def curve_of(row: Row) -> str:
    """The key of a row in CURVES."""
    exact = row.method == "boosting" and row.params.get("threshold") == "exact"
    return "boosting-exact" if exact else row.method


def panel_of(dataset: str, split: str | None) -> str:
    """The key of a row or run in DATA. LIBSVM's own training rows of ijcnn1, used by Wu et al., are
    fewer than those of Yen et al.
    """
    return "ijcnn1-tr" if (dataset, split) == ("ijcnn1", "wu2016") else dataset


def figure1(rows: Iterable[Row]) -> dict[str, Panel]:
    """The panels of the data sets, in the paper's order.

    If a run was repeated, its last row counts. Of several lambdas, the last one run counts. Raises
    DataError if no rows belong to the figure.
    """
    own = good(labelled(rows, FIGURE1))
    by_data = grouped((panel_of(row.dataset, row.split), row) for row in own)
    panels = {}
    for name in DATA:
        groups = grouped_by(by_data.get(name, []), curve_of)
        curves = {key: Curves(_last(groups[key])) for key in CURVES if key in groups}
        if curves:
            panels[name] = Panel(curves, _line(curves, groups.get("kernel", [])))
    return needed(panels, "yen2014-figure1")


def _line(curves: Mapping[str, Curves], machines: Sequence[Row]) -> Line | None:
    """The kernel's line, of machines with as many rows as the first curve."""
    first = next(iter(curves.values())).rows[0]
    alike = [row for row in machines if row.n_train == first.n_train]
    return Line(_last(alike), first.lam) if alike else None


def _last(rows: Sequence[Row]) -> list[Row]:
    """The last row of each seed, of those with the lambda and the number of rows of the last."""
    alike = [row for row in rows if _setting(row) == _setting(rows[-1])]
    last = {row.seed: row for row in alike}
    return [last[seed] for seed in sorted(last)]


def _setting(row: Row) -> tuple[float, int]:
    return row.lam, row.n_train


@dataclass(frozen=True)
class Case:
    """One data set and kernel: the exact machine, and the objectives of Sparse-RF and of RF by D.

    Attributes
    ----------
    reference : Reference
    excess : Excess
        The objectives of Sparse-RF, with their limit.
    rf : Excess
        The same for RF, whose limit is `reference.objective`.
    """

    dataset: str
    kernel: str
    reference: Reference
    excess: Excess
    rf: Excess

    def first_useful(self) -> int:
        """The smallest D at which the bound is below F(0)."""
        one = self.reference
        return one.wasted + int(2 * one.scale / (one.zero - one.value)) + 1


_SIZE = attrgetter("n_features")
_PROBLEM = attrgetter("dataset", "kernel", "lam")


def cases(rows: Iterable[Row]) -> list[Case]:
    """The data sets and kernels with a row of the exact machine and two sizes of sparse-rf.

    Raises DataError if there is no such case.
    """
    found = []
    for exact, alike in exact_machines(rows, COROLLARY1, _PROBLEM):
        by_method = grouped((row.method, row) for row in alike if row.n_features)
        ours = Excess.of(by_method.get("sparse-rf", []), _SIZE)
        if len(ours.sizes) < 2 or exact.kernel not in _LARGEST:
            continue
        reference = Reference.of(exact, _LARGEST[exact.kernel])
        theirs = Excess.of(by_method.get("rf", []), _SIZE, reference.objective)
        found.append(Case(exact.dataset, exact.kernel, reference, ours, theirs))
    return needed(found, "yen2014-corollary1", "exact machine with sparse-rf at two sizes")
