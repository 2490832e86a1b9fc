"""Shared by the tables and figures of Dai et al. 2014: our rows with their curves of held-out
error, by method and criterion.

The label of a row is the figure's name and the criterion, such as adult-sc1, so that one results
file may hold the rows of all figures. The criteria are:

sc1: one pass over the rows, with one nu for all methods.
theorem: the same with the paper's steps theta/t.
sc2: the same training seconds for every method, with one nu for all methods.
own: one pass, with a separate nu for every method.
pcd: preconditioned steps, as in the authors' programs.
gaussian, laplacian: the exact kernels for qm7.
rows, bags, eigenvalues: replacements of the virtual examples of qm7's molecules.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from rfx.records.result import complete, having
from rfx.reporting import seeds
from rfx.reporting.builders import needed
from rfx.reporting.printed import Printed, printed

METHODS = {
    "doubly-sgd": "doubly SGD",
    "norma": "NORMA",
    "k-sdca": "k-SDCA",
    "r-pegasos": "r-Pegasos",
    "n-pegasos": "n-Pegasos",
    "r-sdca": "r-SDCA",
    "n-sdca": "n-SDCA",
    "kernel": "exact kernel ridge",
    "mlp": "network",
}
DATA = {
    "adult": "a9a",
    "mnist8v6": "mnist-8vs6",
    "forest": "covtype",
    "mnist": "mnist",
    "cifar10": "cifar10-features",
    "imagenet": "imagenet-features",
    "qm7": "qm7",
    "molecularspace": "molecularspace",
}
CRITERIA = {
    "": "",
    "sc1": "one pass (SC1), one nu",
    "theorem": "one pass, one nu, steps theta/t",
    "theta": "one pass, one nu, steps theta / (t + t0)",
    "sc2": "equal time (SC2), one nu",
    "own": "one pass, each method's own nu",
    "pcd": "preconditioned, another objective",
    "gaussian": "Gaussian",
    "laplacian": "Laplacian",
    "million": "a million training rows, as the paper's axis has",
    "features": "on features of a convolutional network",
    "rows": "without virtual examples",
    "bags": "bags of bonds",
    "eigenvalues": "eigenvalues",
}
# criteria with which all methods minimise the same objective
ONE_NU = ("sc1", "theorem", "theta", "sc2")
# the paper's printed axes: x and y limits, x in seconds or rows
AXES = {
    "adult": ((1e-2, 1e0), (15, 40)),
    "mnist8v6": ((1e0, 1e4), (0, 3)),
    "forest": ((1e0, 1e4), (5, 35)),
    "mnist": ((1e5, 1e7), (0.4, 2)),
    "cifar10": ((1e5, 1e7), (10, 50)),
    "imagenet": ((1e6, 1e8), (40, 100)),
    "qm7": ((1e5, 1e6), (0, 20)),
    "molecularspace": ((1e5, 1e6), (1, 2.6)),
}


@dataclass
class Run:
    """One row: its error in percent, or in the target's units, and its curve."""

    row: Mapping

    @property
    def method(self) -> str:
        return self.row["method"]

    @property
    def regression(self) -> bool:
        return self.row["task"] == "regression"

    @property
    def error(self) -> float:
        """Test error in percent, or mean absolute error."""
        if self.regression:
            return self.row["params"].get("mae", self.row["score"])
        return 100 * (1 - self.row["score"])

    @property
    def seconds(self) -> float:
        """Seconds of the steps only, without preparatory learning; of training if the method has no
        steps.
        """
        found = self.row["params"].get("seconds_steps")
        return (
            self.row["seconds_fit"] + (self.row["seconds_features"] or 0.0)
            if found is None
            else found
        )

    @property
    def nu(self) -> float | None:
        """nu of the objective, if the run's method has one."""
        found = self.row["params"].get("nu")
        return found if isinstance(found, (int, float)) else None

    @property
    def before(self) -> float | None:
        """Seconds to compute the Nystrom features, which the paper does not count."""
        return self.row["params"].get("seconds_nystrom")

    def curve(self, axis: str) -> tuple[list, list]:
        """Seconds or samples, and the errors there in the units of `error`."""
        points = [
            point
            for point in self.row["params"].get("curve") or []
            if "error" in point and point.get(axis, 0) > 0
        ]
        scale = 1 if self.regression else 100
        return [point[axis] for point in points], [scale * point["error"] for point in points]


def runs(rows, name: str) -> list[Run]:
    """The rows of successful runs of a figure, in the order of METHODS."""
    order = list(METHODS)
    own = [
        row
        for row in rows
        if row["status"] == "ok" and str(row["params"].get("label") or "").partition("-")[0] == name
    ]
    timed = lambda row: (
        row["seconds_fit"] is not None or row["params"].get("seconds_steps") is not None
    )
    found = [Run(row) for row in complete(own, "score") if timed(row)]
    return sorted(
        found, key=lambda run: order.index(run.method) if run.method in order else len(order)
    )


def of(rows, name: str) -> list[Run]:
    """The runs of a figure; DataError if there are none."""
    return needed(runs(rows, name), f"dai2014-fig1-{name}" if name in DATA else f"dai2014-{name}")


def by_criterion(found) -> dict[str, dict[str, list[Run]]]:
    """Criterion -> method -> its runs, one per seed. If runs differ in more than the seed, the
    newest.
    """
    groups: dict[tuple[str, str], list[Run]] = {}
    for run in found:
        groups.setdefault((criterion_of(run), run.method), []).append(run)
    newest = {
        place: [Run(row) for row in seeds.variants([run.row for run in own])[-1]]
        for place, own in groups.items()
    }
    return {
        key: {method: newest[key, method] for method in METHODS if (key, method) in newest}
        for key in criteria(found)
    }


def label(run) -> str:
    return str(run.row["params"].get("label") or "")


def criterion_of(run) -> str:
    """The part of the label after the figure's name."""
    return label(run).partition("-")[2]


def criterion_words(key: str) -> str:
    """The name of a criterion in figures and tables; an unknown one keeps its own."""
    return CRITERIA.get(key, key)


def criteria(found) -> list[str]:
    """The criteria of the runs, in order."""
    there = {criterion_of(run) for run in found}
    return [key for key in CRITERIA if key in there]


def quoted(name: str, method: str) -> Printed | None:
    """The error that the paper quotes for a method; for a network, that of the paper's
    own network.
    """
    return printed(__package__, "fig1").get(
        (DATA[name], "", "network" if method == "mlp" else method, "error")
    )


def fixed_network(name: str) -> Printed | None:
    """The error that the paper quotes for a network with fixed lower layers."""
    return printed(__package__, "fig1").get((DATA[name], "", "fixed-network", "error"))


def quoting(name: str) -> list[tuple[str, Printed]]:
    """(method, error) of the methods for which the paper quotes a number for a figure."""
    found = [(method, quoted(name, method)) for method in METHODS]
    return [(method, paper) for method, paper in found if paper is not None]


def unit(name: str) -> str:
    """The unit of a figure's errors."""
    return {"qm7": "MAE, kcal/mol", "molecularspace": "MAE, percentage points"}.get(
        name, "error, %"
    )


# theta nu of the runs that approach the exact solution
THETA_NU = 1.5
# the end of their label -> their steps
STEPS = {"theorem": "theta / (t + t0), t0 = 2 theta", "printed": "theta/t"}


def ripple(rows, steps: str = "theorem") -> dict[float, dict[int, list[tuple[int, float]]]]:
    """nu -> seed -> (step, mean squared distance to the exact solution) of the synthetic runs of
    doubly-sgd with these steps of STEPS.
    """
    found: dict = {}
    for run in runs(rows, "synthetic"):
        if run.method == "doubly-sgd" and label(run) == f"synthetic-{steps}":
            points = [
                (point["steps"], point["error"])
                for point in run.row["params"].get("curve") or []
                if "error" in point and "steps" in point
            ]
            if isinstance(run.row["params"].get("nu"), (int, float)):
                found.setdefault(run.row["params"]["nu"], {})[run.row["seed"]] = points
    # the mean needs steps common to all seeds
    return {nu: own for nu, own in found.items() if mean_curve(own)[0]}


def mean_curve(by_seed: dict) -> tuple[list[int], list[float]]:
    """Steps, and the mean over the seeds at each step."""
    steps = sorted(set.intersection(*({step for step, _ in points} for points in by_seed.values())))
    tables = [dict(points) for points in by_seed.values()]
    return steps, [float(np.mean([table[step] for table in tables])) for step in steps]


def rate(by_seed: dict, nu: float, steps: str) -> float | None:
    """The slope in a log-log plot, from a 16th of the steps on. Steps theta / (t + t0) burn in
    first: for 4 t0 steps, at most 3/8 of all.
    """
    places, values = mean_curve(by_seed)
    last = places[-1]
    t0 = 2 * THETA_NU / nu if steps == "theorem" else 0.0
    first = max(last / 16, min(4 * t0, 3 * last / 8))
    late = [point for point in zip(places, values) if point[0] >= first and point[1] > 0]
    return seeds.slope(late) if len(late) > 1 else None


def costs(rows) -> dict[str, list[dict]]:
    """Method -> measured costs by number of rows, of the complexity plan."""
    found: dict = {}
    for run in runs(
        having(rows, "n_train", "seconds_predict", "model_bytes", "n_test"), "complexity"
    ):
        row = run.row
        if not row["n_test"]:
            continue
        found.setdefault(run.method, []).append(
            {
                "n": row["n_train"],
                "preprocessing": run.before,
                "training": run.seconds,
                "prediction": row["seconds_predict"] / row["n_test"],
                "training_storage": row["params"].get("training_bytes"),
                "storage": row["model_bytes"],
            }  # fmt: skip
        )
    return {
        method: sorted(entries, key=lambda entry: entry["n"]) for method, entries in found.items()
    }


COSTS = {
    "preprocessing": "preprocessing, s",
    "training": "training, s",
    "prediction": "prediction, s a row",
    "training_storage": "training storage, bytes",
    "storage": "prediction storage, bytes",
}


def exponent(entries, quantity) -> float | None:
    """The measured power of n in a cost, over the upper half of the sizes, where constants matter
    least.
    """
    known = [(entry["n"], entry[quantity]) for entry in entries if entry[quantity]]
    return seeds.slope(known[len(known) // 3 :]) if len(known) >= 2 else None
