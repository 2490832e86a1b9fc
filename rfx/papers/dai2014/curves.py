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

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from operator import attrgetter

from rfx import lazy
from rfx.reporting.cells import (
    Printed,
    Row,
    good,
    grouped_by,
    labelled,
    log_slope,
    needed,
    printed,
    variants,
)
from rfx.reporting.effects import Column, Frame, frame, points

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


def error(row: Row) -> float:
    """Test error in percent, or mean absolute error."""
    if row.task == "regression":
        return row.params.get("mae", row.score)
    return 100 * (1 - row.score)


def seconds(row: Row) -> float | None:
    """Seconds of the steps only, without preparatory learning; of training if the method has no
    steps.
    """
    fit, steps = row.seconds_fit, row.params.get("seconds_steps")
    if steps is not None or fit is None:
        return steps
    return fit + (row.seconds_features or 0.0)


def nu(row: Row) -> float | None:
    """nu of the objective, if the run's method has one."""
    value = row.params.get("nu")
    if isinstance(value, (int, float)):
        return value
    return None


def before(row: Row) -> float | None:
    """Seconds to compute the Nystrom features, which the paper does not count."""
    return row.params.get("seconds_nystrom")


def curve(row: Row, axis: str) -> Column:
    """The error in the units of `error`, by seconds, samples or steps."""
    points = lazy.pandas.DataFrame(row.params.get("curve") or [], columns=[axis, "error"])
    later = points[points[axis] > 0].dropna()
    unit = 1 if row.task == "regression" else 100
    errors = unit * later.set_index(axis).error.astype(float)
    return errors[~errors.index.duplicated(keep="last")]


def label(row: Row) -> str:
    return str(row.params.get("label") or "")


def criterion_of(row: Row) -> str:
    """The part of the label after the figure's name."""
    return label(row).partition("-")[2]


def runs(rows: Iterable[Row], name: str) -> list[Row]:
    """The rows of successful runs of a figure, in the order of METHODS."""
    by_method = grouped_by(good(rows), "method")
    others = [method for method in by_method if method not in METHODS]
    ordered = [row for method in (*METHODS, *others) for row in by_method.get(method, ())]
    return [row for row in ordered if label(row).partition("-")[0] == name]


def of(rows: Iterable[Row], name: str) -> list[Row]:
    """The runs of a figure; DataError if there are none."""
    figure = f"fig1-{name}" if name in DATA else name
    return needed(runs(rows, name), f"dai2014-{figure}")


def by_criterion(own: Iterable[Row]) -> dict[str, dict[str, list[Row]]]:
    """Criterion -> method -> its runs, one per seed. If runs differ in more than the seed, the
    newest.
    """
    groups = grouped_by(own, criterion_of)
    found = {}
    for key in CRITERIA:
        by_method = grouped_by(groups.get(key, []), "method")
        known = [method for method in METHODS if method in by_method]
        if known:
            found[key] = {method: variants(by_method[method])[-1] for method in known}
    return found


def criterion_words(key: str) -> str:
    """The name of a criterion in figures and tables; an unknown one keeps its own."""
    return CRITERIA.get(key, key)


def quoted(name: str, method: str) -> Printed | None:
    """The error that the paper quotes for a method; for a network ("mlp"), that of the paper's
    own network, for "fixed-network" one with fixed lower layers.
    """
    line = "network" if method == "mlp" else method
    place = (DATA[name], "", line, "error")
    return printed(__package__, "fig1").get(place)


_UNITS = {"qm7": "MAE, kcal/mol", "molecularspace": "MAE, percentage points"}


def unit(name: str) -> str:
    """The unit of a figure's errors."""
    return _UNITS.get(name, "error, %")


# theta nu of the runs that approach the exact solution
THETA_NU = 1.5
# the end of their label -> their steps
STEPS = {"theorem": "theta / (t + t0), t0 = 2 theta", "printed": "theta/t"}


@dataclass(frozen=True)
class Ripple:
    """The synthetic runs of doubly-sgd with one nu and kind of steps: mean squared distances to the
    exact solution, by step (index) and seed (columns).
    """

    nu: float
    kind: str
    distances: Frame

    @property
    def mean(self) -> Column:
        """The mean over the seeds, at the steps that all of them have."""
        return self.distances.dropna().mean(axis=1)

    @property
    def ends(self) -> list[float]:
        """The last distance of each seed."""
        return self.distances.ffill().iloc[-1].tolist()

    def slope(self, values: Column) -> float | None:
        """The slope in a log-log plot, from a 16th of the steps on. Steps theta / (t + t0) burn in
        first: for 4 t0 steps, at most 3/8 of all.
        """
        last = values.index[-1]
        first = last / 16
        if self.kind == "theorem":
            t0 = 2 * THETA_NU / self.nu
            first = max(first, min(4 * t0, 3 * last / 8))
        late = values[(values.index >= first) & (values > 0)]
        return log_slope(late.index, late) if len(late) > 1 else None

    @property
    def slopes(self) -> list[float | None]:
        """The slope of each seed."""
        return [self.slope(values.dropna()) for _, values in self.distances.items()]


def ripple(rows: Iterable[Row], kind: str = "theorem") -> dict[float, Ripple]:
    """nu -> the synthetic runs of doubly-sgd with these steps of STEPS."""
    own = runs(labelled(rows, f"synthetic-{kind}"), "synthetic")
    curves: dict[float, dict[int, Column]] = {}
    for row in own:
        value = nu(row)
        if row.method == "doubly-sgd" and value:
            curves.setdefault(value, {})[row.seed] = curve(row, "steps")
    ripples = {}
    for value, by_seed in curves.items():
        distances = lazy.pandas.DataFrame(by_seed).sort_index()
        if len(distances.dropna()):
            ripples[value] = Ripple(value, kind, distances)
    return ripples


def _seconds_a_row(row: Row) -> float:
    """Seconds of prediction for each test row."""
    return row.seconds_predict / row.n_test


def _training_bytes(row: Row) -> float | None:
    return row.params.get("training_bytes")


# the costs of the plan complexity, their values of a row and their words
COSTS: dict[str, Callable[[Row], float | None]] = {
    "preprocessing": before,
    "training": seconds,
    "prediction": _seconds_a_row,
    "training_storage": _training_bytes,
    "storage": attrgetter("model_bytes"),
}
WORDS = {
    "preprocessing": "preprocessing, s",
    "training": "training, s",
    "prediction": "prediction, s a row",
    "training_storage": "training storage, bytes",
    "storage": "prediction storage, bytes",
}


def title_of_cost(cost: str) -> str:
    """The words of a cost without its unit."""
    return WORDS[cost].partition(",")[0]


def costs(rows: Iterable[Row]) -> Frame:
    """The COSTS of the runs of the complexity plan, by method and seed, ordered by `n`, the number
    of rows.
    """
    ordered = sorted(good(rows), key=attrgetter("n_train"))
    return points(frame(runs(ordered, "complexity")), {}, ("method",), n="n_train", **COSTS)


def exponent(line: Frame, cost: str) -> float | None:
    """The measured power of n in a cost, over the upper half of the sizes, where constants matter
    least; None for fewer than two.
    """
    positive = line[line[cost] > 0]
    if len(positive) < 2:
        return None
    upper = positive[len(positive) // 3 :]
    return log_slope(upper.n, upper[cost])
