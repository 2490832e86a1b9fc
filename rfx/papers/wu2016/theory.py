"""The theory of Wu et al. 2016 compared with our measurements: Theorem 1 (the objective against
kappa R), and equations 29 and 30 (the speed-up).
"""

import statistics
from dataclasses import dataclass

from rfx import losses
from rfx.papers.wu2016 import curves as wu2016
from rfx.records.result import complete
from rfx.reporting import seeds
from rfx.reporting.builders import needed
from rfx.reporting.suboptimality import Excess, Reference

LABEL = "theorem1"
NOTES = (
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


@dataclass(frozen=True)
class Case:
    """One data set, gamma and penalty ("L1", "L2"): the objective's distance above its limit by R.
    kappa: the mean over the runs.

    curvature: beta of the theorem.
    """

    dataset: str
    gamma: float
    penalty: str
    reference: Reference
    excess: Excess
    kappa: float
    curvature: float

    def points(self) -> tuple[list[int], list[float], list[float]]:
        """R, the mean distance above the limit, and its standard deviation over the seeds."""
        if self.penalty == "L1":
            return self.excess.above()
        found = [(size, seeds.mean_of(own)) for size, own in self.excess.values.items()]
        return (
            [size for size, _ in found],
            [own.value - self.reference.objective for _, own in found],
            [own.sd or 0.0 for _, own in found],
        )

    @property
    def scale(self) -> float:
        """beta ||w*||^2. In units of it the theorem is the same line for all cases, 2 / (kappa R')
        above F(w*).
        """
        return self.curvature * self.reference.norm**2

    @property
    def wasted(self) -> int | None:
        """c of the theorem, which is about the L1 penalty."""
        of = self.reference.wasted(self.curvature, self.kappa)
        return of if self.penalty == "L1" else None

    def bound(self, size: int) -> float | None:
        """The theorem's bound on the objective with an L1 penalty."""
        of = self.reference.bound(size, self.curvature, self.kappa)
        return of if self.penalty == "L1" else None

    def objective(self, size: int) -> float:
        """The mean objective over the seeds."""
        return seeds.mean_of(self.excess.values[size]).value

    def slope(self) -> float | None:
        """The slope of the points against R in a log-log plot; None for fewer than three points."""
        if self.penalty == "L1":
            return self.excess.slope
        known = [(size, mean) for size, mean, _ in zip(*self.points()) if mean > 0]
        return seeds.slope(known) if len(known) > 2 else None


def cases(rows) -> list[Case]:
    """Data sets, gammas and penalties with a row of the exact machine and two sizes of random
    binning, by data set.

    Raises DataError if there is no such case.
    """
    # only the newest row of a repeated run
    newest = {
        row["key"]: row
        for row in rows
        if row["params"].get("label") == LABEL and row["status"] == "ok" and row["n_train"]
    }
    own = [
        (gamma, row)
        for row in complete(newest.values(), "objective", "lam")
        if (gamma := _gamma(row))
    ]
    found = []
    for gamma, exact in own:
        if exact["method"] != "kernel" or not Reference.there(exact):
            continue
        for method, penalty in (("sparse-rb", "L1"), ("rb", "L2")):
            alike = [
                row
                for width, row in own
                if (row["dataset"], row["method"], width) == (exact["dataset"], method, gamma)
            ]
            case = _case(exact, gamma, penalty, alike)
            if case is not None:
                found.append(case)
    needed(found, "wu2016-theorem1", "exact machine with random binning at two R")
    order = {name: place for place, name in enumerate(wu2016.DATA)}
    return sorted(
        found, key=lambda case: (order.get(case.dataset, len(order)), case.penalty, case.gamma)
    )


def _case(exact, gamma: float, penalty: str, alike: list) -> Case | None:
    """The case of an exact machine and the rows of random binning with its data set and gamma; None
    if these have fewer than two sizes.
    """
    alike = [
        row
        for row in complete(alike, "params.kappa", "params.kappa_bound")
        if isinstance(row["params"].get("n_grids"), int)
    ]
    excess = Excess.of(alike, lambda row: row["params"]["n_grids"])
    if not excess:
        return None
    kappa = seeds.mean_of([row["params"]["kappa_bound"] for row in alike]).value
    curvature = losses.get_loss(exact["params"]["loss"]).curvature
    mean = seeds.mean_of([row["params"]["kappa"] for row in alike]).value
    reference = Reference.of(exact, mean)
    return Case(exact["dataset"], gamma, penalty, reference, excess, kappa, curvature)


def _gamma(row) -> float | None:
    return (row["params"].get("kernel_params") or {}).get("gamma")


def predicted(threads: float, n_grids: int, n_bins: float) -> float:
    """Equation 29: the speed-up of parallel coordinate descent on n_bins bins of n_grids grids with
    this number of threads.
    """
    return threads / (1 + (n_grids - 1) * (threads - 1) / (n_bins - 1))


def limit(share: float, kappa: float) -> float:
    """Equation 30: the same with share kappa + 1 threads, for many bins and grids; kappa = D/R."""
    return (share * kappa + 1) / (1 + share)


def sizes(rows: list[dict]) -> dict[tuple[str, str], tuple[int, float]]:
    """(data set, method) of Figure 6's rows -> (R, D) of equation 29, with the median D of the
    seeds. For sparse-rf, whose rows have all features, R = D.
    """
    found: dict[tuple[str, str], tuple[int, list[float]]] = {}
    for row in wu2016.of_figure(rows, "fig6"):
        if row["status"] == "ok":
            grids = row["params"].get("n_grids")
            if (
                not row["threads"]
                or not row["n_features"]
                or (grids and not row["params"].get("kappa"))
            ):
                continue
            bins = grids * row["params"]["kappa"] if grids else row["n_features"]
            if bins > 1:
                found.setdefault((row["dataset"], row["method"]), (grids or row["n_features"], []))[
                    1
                ].append(bins)
    return {case: (grids, statistics.median(bins)) for case, (grids, bins) in found.items()}
