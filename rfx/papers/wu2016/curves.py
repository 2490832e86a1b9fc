"""Shared by the tables and figures of Wu et al. 2016: our rows and the authors' plot data as
matching curves.

The label of a row is the short name of the figure and the setting, such as fig3-tuned, so that one
results file may hold the rows of all figures.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from rfx.records.result import complete, seconds_train
from rfx.reporting.printed import curves
from rfx.reporting.seeds import mean, verdict

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


@dataclass
class Curve:
    """One method on one data set. ours and authors: place on the axis (gamma, R, threads) ->
    quantities by name.

    Ours are means over the seeds. `means` has them with their standard deviations by name, `runs`
    their number, and `lams` and `gammas` all values.
    """

    dataset: str
    method: str
    ours: dict[float, dict] = field(default_factory=dict)
    authors: dict[float, dict] = field(default_factory=dict)

    @property
    def places(self) -> list[float]:
        """The places with a point of ours or of the authors, ascending."""
        return sorted(self.ours.keys() | self.authors.keys())

    def series(self, whose: str, name: str) -> tuple[list, list]:
        """Places and known values of a quantity of "ours" or "authors"."""
        points = getattr(self, whose)
        known = [place for place in sorted(points) if points[place].get(name) is not None]
        return known, [points[place][name] for place in known]

    def band(self, name: str) -> tuple[list, list, list]:
        """Places, mean - sd and mean + sd of a quantity of ours, at places with several runs."""
        means = {place: self.ours[place].get("means", {}).get(name) for place in sorted(self.ours)}
        known = [
            (place, one.value, one.sd)
            for place, one in means.items()
            if one is not None and one.sd is not None
        ]
        return (
            [place for place, *_ in known],
            [value - sd for _, value, sd in known],
            [value + sd for _, value, sd in known],
        )


def heading(dataset: str) -> str:
    """The data set's name, with the data set that it replaces."""
    stands_for = DATA.get(dataset)
    if not stands_for:
        return dataset
    return (
        f"{dataset}: {'substitute for' if dataset == 'census16h' else 'subset of'} {stands_for},"
        " not comparable"
    )


def metric(dataset: str) -> str:
    return "relative error" if dataset in REGRESSION else "accuracy"


def better(dataset: str, value: float, than: float) -> bool:
    """Whether `value` is at least as good as `than`."""
    return value <= than if dataset in REGRESSION else value >= than


def judged(dataset: str, name: str, ours: dict, authors: dict) -> str | None:
    """The verdict on ours against the authors' (see rfx.reporting.seeds), only for test performance
    with several seeds.
    """
    if name != "test":
        return None
    best, unit = ("low", "relative") if dataset in REGRESSION else ("high", "share")
    return verdict(ours.get("means", {}).get(name), authors.get(name), best, unit)


def settings(figure: str) -> dict[str, str]:
    """The settings of a figure, each with the label of its rows."""
    return {name: f"{figure}-{name}" for name in SETTINGS}


def of_figure(rows: Iterable[Any], figure: str, setting: str | None = None) -> list[Any]:
    """The rows of one figure, including failed ones: those of one setting, or all."""
    labels = {f"{figure}-{name}" for name in ([setting] if setting else SETTINGS)} | {figure}
    return [row for row in rows if row["params"].get("label") in labels]


def quantities(row: dict) -> dict:
    """The compared quantities of one row: test and train (relative error or accuracy), seconds,
    bins, kappa, memory in MiB, …
    """
    params = row["params"]
    regression = row["dataset"] in REGRESSION
    return {
        "test": params.get("relative_error") if regression else row["score"],
        "train": params.get("train_relative_error" if regression else "train_score"),
        "seconds": seconds_train(row),
        "predict": row["seconds_predict"],
        "memory": row["peak_rss_mb"],
        "bins": row["n_features"] if "n_grids" in params else None,
        "kappa": params.get("kappa"),
        "gamma": (params.get("kernel_params") or {}).get("gamma"),
        "lam": row["lam"],
        "converged": row["converged"],
    }


def over_seeds(rows: list[dict]) -> dict:
    """The quantities of rows that differ in the seed, the newest for each seed: their means,
    `means`, `runs`, `lams` and `gammas`.
    """
    points = [quantities(row) for row in {row["seed"]: row for row in rows}.values()]
    means = {
        name: mean([point[name] for point in points]) for name in points[0] if name != "converged"
    }
    flags = [point["converged"] for point in points if point["converged"] is not None]
    return {name: None if one is None else one.value for name, one in means.items()} | {
        "converged": all(flags) if flags else None,
        "runs": len(points),
        "means": {name: one for name, one in means.items() if one},
        "lams": [point["lam"] for point in points],
        "gammas": [point["gamma"] for point in points],
    }


def span(values) -> str:
    """0.3, or 0.1 to 1: the single value, or the least and the largest."""
    values = [value for value in values if value is not None]
    if not values:
        return "not known"
    low, high = min(values), max(values)
    texts = f"{low:.3g}", f"{high:.3g}"
    return texts[0] if texts[0] == texts[1] else " to ".join(texts)


def lambdas(rows: list[dict], by_method: bool) -> str:
    """The lambdas of the rows, each with its data sets; those that vary within a data set (and
    method) as a range.
    """
    own: dict[tuple, list] = {}
    for row in rows:
        own.setdefault((row["method"] + " " if by_method else "", row["dataset"]), []).append(
            row["lam"]
        )
    texts: dict[str, list[str]] = {}
    for (method, dataset), lams in sorted(own.items()):
        texts.setdefault(method + span(lams), []).append(dataset)
    return "; ".join(f"{text} ({', '.join(names)})" for text, names in texts.items())


def rank(row: Mapping[str, Any]) -> int | None:
    """R of the paper: grids, random features, landmarks, or rows of a block; None for the exact
    kernel.
    """
    params = row["params"]
    return params.get("n_grids") or params.get("block_size") or row["n_features"]


def sweep(rows: list[dict], figure: str, setting: str) -> list[Curve]:
    """Figures 3 (over gamma) and 4 (over R) of rb, a curve per data set, including data sets
    without our rows.
    """
    axis = "gamma" if figure == "fig3" else "n_grids"
    found = {name: Curve(name, "rb") for name in DATA}
    for line in curves(__package__, figure):
        point = {name: line[name] for name in ("test", "train", "bins", "gamma")} | {
            "seconds": line["seconds_train"]
        }
        point["kappa"] = line["bins"] and line["bins"] / line["n_grids"]
        found[line["dataset"]].authors[line[axis]] = point
    points: dict[tuple, list[dict]] = {}
    for row in of_figure(rows, figure, setting):
        if row["status"] == "ok" and row["method"] == "rb" and row["dataset"] in found:
            place = quantities(row)["gamma"] if axis == "gamma" else rank(row)
            if isinstance(place, (int, float)):
                points.setdefault((row["dataset"], place), []).append(row)
    for (dataset, place), own in points.items():
        found[dataset].ours[place] = over_seeds(own)
    return [curve for curve in found.values() if curve.places]


def comparison(rows: list[dict], setting: str) -> list[Curve]:
    """Figure 5: a curve over R for each data set and method; the only point of the exact kernel is
    at 0.
    """
    found = {(name, method): Curve(name, method) for name in DATA for method in METHODS}
    for line in curves(__package__, "fig5"):
        found[line["dataset"], line["method"]].authors[line["n_features"] or 0] = {
            "test": line["test"],
            "seconds": line["seconds_train"],
            "predict": line["seconds_predict"],
            "memory": line["numbers_a_row"] * _ROWS[line["dataset"]] * 8 / 2**20,
        }
    points: dict[tuple, list[dict]] = {}
    for row in of_figure(rows, "fig5", setting):
        if (row["dataset"], row["method"]) in found and row["status"] == "ok":
            place = 0 if row["method"] == "kernel" else rank(row)
            if isinstance(place, int):
                points.setdefault((row["dataset"], row["method"], place), []).append(row)
    for (dataset, method, place), own in points.items():
        found[dataset, method].ours[place] = over_seeds(own)
    return [curve for curve in found.values() if curve.places]


def target(authors: Curve) -> float | None:
    """The test performance that all methods must reach in Figure 5. It is our choice: that of the
    authors' rb at R = 128.
    """
    return authors.authors.get(128, {}).get("test")


def reach(curve: Curve, whose: str, wanted: float) -> tuple[float, dict] | None:
    """The fastest point (place, quantities) of a curve that is at least as good as `wanted`."""
    points = [
        (place, point)
        for place, point in getattr(curve, whose).items()
        if None not in (point["test"], point["seconds"])
        and better(curve.dataset, point["test"], wanted)
    ]
    return min(points, key=lambda item: (item[1]["seconds"], item[0]), default=None)


def speedups(rows: list[dict]) -> list[Curve]:
    """Figure 6: for each data set and method, threads -> seconds and speed-up, the median over the
    seeds, and its range.

    A seed's speed-up is its time with one thread divided by that with several. Only the passes over
    the columns are timed.
    """
    times: dict[tuple[str, str], dict[int, dict[int, dict]]] = {}
    for row in complete(of_figure(rows, "fig6"), "threads", "n_iter"):
        if row["status"] == "ok" and row["seconds_fit"]:
            times.setdefault((row["dataset"], row["method"]), {}).setdefault(row["threads"], {})[
                row["seed"]
            ] = row
    found = []
    order = {name: place for place, name in enumerate((*DATA, "sparse-rb", "sparse-rf"))}
    for (dataset, method), by_threads in sorted(
        times.items(), key=lambda item: [order.get(name, -1) for name in item[0]]
    ):
        curve = Curve(dataset, method)
        alone = by_threads.get(1, {})
        for threads, by_seed in by_threads.items():
            ratios = [
                passes(alone[seed]) / passes(row) for seed, row in by_seed.items() if seed in alone
            ]
            kappas = [
                row["params"]["kappa"] for row in by_seed.values() if row["params"].get("kappa")
            ]
            curve.ours[threads] = {
                "seconds": median(passes(row) for row in by_seed.values()),
                "speedup": median(ratios) if ratios else None,
                "low": min(ratios, default=None),
                "high": max(ratios, default=None),
                "runs": len(by_seed),
                "steps": median(row["n_iter"] for row in by_seed.values()),
                "kappa": median(kappas) if kappas else None,
                "converged": all(row["converged"] for row in by_seed.values()),
            }
        found.append(curve)
    return found


def passes(row) -> float:
    """Seconds of the passes over all outputs, if known: without certificates and other parts of
    training.
    """
    last = {
        step.get("output", 0): step["pass_seconds"]
        for step in row.get("trace") or ()
        if "pass_seconds" in step
    }
    # rows of rfx 0.1 store them in params
    return sum(last.values()) or row["params"].get("pass_seconds") or row["seconds_fit"]
