"""Shared by the table and the figure for Figure 1 of Yen et al. (2014): our runs with their curves,
and the kernel's dashed line.

All methods use one basis, perceptrons +-1, and objectives are divided by the number of training
rows N. Seconds are processor seconds of all threads, which do not depend on the load of the
machine. The paper's are from another machine.
"""

from dataclasses import dataclass

import numpy as np

from rfx.errors import DataError
from rfx.records.result import complete, having
from rfx.reporting.builders import needed

LABEL = "figure1"
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
# number of points at which the curves of several seeds are compared
POINTS = 60


@dataclass(frozen=True)
class Line:
    """The exact kernel machine's values, one number for each seed, which draws its rows.

    bounds: (lambda_N/N) ||w*||_2 + mean loss (the right-hand side of (22)) for the lambda_N of the
    L1 problem. errors: on the test rows. lam: that of the kernel machine itself.
    """

    lam: float
    seeds: list[int]
    bounds: list[float]
    errors: list[float]
    seconds: list[float]

    def bound(self, seed: int) -> float:
        """The bound of this seed, or the mean over the seeds if it has none."""
        return (
            self.bounds[self.seeds.index(seed)]
            if seed in self.seeds
            else float(np.mean(self.bounds))
        )


class Curves:
    """The runs of one curve on one data set, one per seed, in the order of the seeds."""

    def __init__(self, rows):
        self.rows = rows
        self.lam, self.n = rows[0]["lam"], rows[0]["n_train"]
        self.runs = [self._steps(row) for row in rows]

    @staticmethod
    def _steps(row):
        """(seconds, objective / N, error) of a run's steps, three arrays, without the start, which
        precedes any feature.
        """
        found = [
            (
                step.get("cpu_seconds", step["seconds"]),
                step["objective"] / row["n_train"],
                step["error"],
            )
            for step in row["trace"]
            if step.get("features") and {"error", "objective", "seconds"} <= step.keys()
        ]
        if not found:
            raise DataError(
                f"the run of {row['method']} on {row['dataset']} has no trace with errors; run the"
                " plan yen2014-figure1"
            )
        return tuple(np.array(part) for part in zip(*found))

    def ends(self, quantity: int) -> list[float]:
        """The last value of every run: 0 seconds, 1 objective, 2 error."""
        return [float(run[quantity][-1]) for run in self.runs]

    def reached(self, line: Line) -> list[float | None]:
        """Seconds until each run's objective is at most the line's bound for its seed; None for a
        run that never reaches it.
        """
        bounds = [line.bound(row["seed"]) for row in self.rows]
        return [
            next((float(s) for s, value in zip(*run[:2]) if value <= bound), None)
            for run, bound in zip(self.runs, bounds)
        ]

    def band(self, quantity: int):
        """(seconds, mean, lowest, highest) over the seeds; a run that has ended keeps its last
        value.
        """
        first, last = max(run[0][0] for run in self.runs), max(run[0][-1] for run in self.runs)
        at = np.geomspace(max(first, 1e-3), max(last, first, 1e-3), POINTS)
        at[0], at[-1] = first, max(last, first)
        values = np.array(
            [run[quantity][np.searchsorted(run[0], at, side="right") - 1] for run in self.runs]
        )
        return at, values.mean(axis=0), values.min(axis=0), values.max(axis=0)


def curve_of(row) -> str:
    """The key of a row in CURVES."""
    return (
        "boosting-exact"
        if row["method"] == "boosting" and row["params"].get("threshold") == "exact"
        else row["method"]
    )


def panel_of(dataset: str, split: str | None) -> str:
    """The key of a row or run in DATA. LIBSVM's own training rows of ijcnn1, used by Wu et al., are
    fewer than those of Yen et al.
    """
    return "ijcnn1-tr" if (dataset, split) == ("ijcnn1", "wu2016") else dataset


def found(rows) -> dict[str, tuple[dict[str, Curves], Line | None]]:
    """Data set -> (its curves by their keys, the kernel's line), in the paper's order.

    If a run was repeated, its last row counts. Of several lambdas, the last one run counts. Raises
    DataError if no rows belong to the figure.
    """
    mine = [
        row
        for row in rows
        if row["status"] == "ok"
        and row["params"].get("label") == LABEL
        and panel_of(row["dataset"], row["split"]) in DATA
    ]
    mine = complete(mine, "lam", "n_train", "seed", "model_size")
    panels = {}
    for name in DATA:
        own, curves = [row for row in mine if panel_of(row["dataset"], row["split"]) == name], {}
        for key in CURVES:
            same = [row for row in own if curve_of(row) == key]
            if same:
                last = {
                    row["seed"]: row
                    for row in same
                    if (row["lam"], row["n_train"]) == (same[-1]["lam"], same[-1]["n_train"])
                }
                curves[key] = Curves([last[seed] for seed in sorted(last)])
        if curves:
            panels[name] = (
                curves,
                line(
                    [row for row in own if row["method"] == "kernel"], next(iter(curves.values()))
                ),
            )
    return needed(panels, "yen2014-figure1")


def line(rows, curves: Curves) -> Line | None:
    """The kernel's line for the lambda of these curves, from each seed's last row with the norm of
    the function.
    """
    rows = [
        row
        for row in having(rows, "params.norm", "objective", "score", "seconds_fit")
        if row["n_train"] == curves.n
    ]
    if not rows:
        return None
    last = {row["seed"]: row for row in rows if row["lam"] == rows[-1]["lam"]}
    seeds = sorted(last)
    rows = [last[seed] for seed in seeds]
    norms = [row["params"]["norm"] for row in rows]
    losses = [row["objective"] - 0.5 * row["lam"] * norm**2 for row, norm in zip(rows, norms)]
    bounds = [(curves.lam * norm + loss) / curves.n for norm, loss in zip(norms, losses)]
    return Line(
        rows[0]["lam"],
        seeds,
        bounds,
        [1 - row["score"] for row in rows],
        [row["seconds_fit"] for row in rows],
    )
