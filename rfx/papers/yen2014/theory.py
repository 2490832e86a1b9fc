"""Corollary 1 of Yen et al. 2014: the objectives of Sparse-RF and RF in our rows against D, and the
bound of the corollary on the objective of Sparse-RF.
"""

from dataclasses import dataclass
from typing import Any

from rfx import losses
from rfx.records.result import complete
from rfx.reporting.builders import needed
from rfx.reporting.seeds import Mean, mean_of
from rfx.reporting.suboptimality import Excess, Reference

LABEL = "corollary1"
# the square of the largest feature, B^2
_LARGEST = {"perceptron": 1.0, "gaussian": 2.0}
NOTES = (
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


@dataclass(frozen=True)
class Case:
    """One data set and kernel: the exact machine, and the objectives of Sparse-RF and of RF by D.

    Attributes
    ----------
    reference : Reference
    excess : Excess
        The objectives of Sparse-RF, with their limit.
    rf : Excess or None
        The same for RF, whose limit is `reference.objective`. None without rows of two sizes.
    curvature : float
        gamma of the corollary.
    """

    dataset: str
    kernel: str
    reference: Reference
    excess: Excess
    rf: Excess | None
    curvature: float

    def vacuous(self, size: int) -> bool:
        """Whether the bound at D = size is at least the objective of zero weights."""
        return self.reference.bound(size, self.curvature) >= self.reference.zero

    def rf_above(self, size: int) -> Mean | None:
        """P - P* of RF with `size` features, over the seeds; None without such rows."""
        values = [] if self.rf is None else self.rf.values.get(size, [])
        return mean_of([value - self.reference.objective for value in values]) if values else None

    def rf_slopes(self) -> dict[Any, float]:
        """Seed -> the exponent of D in |P - P*|."""
        return {} if self.rf is None else self.rf.slopes(self.reference.objective, part=1)

    def first_useful(self) -> int:
        """The smallest D at which the bound is below F(0)."""
        one = self.reference
        return (
            one.wasted(self.curvature)
            + int(2 * self.curvature * one.norm**2 / (one.zero - one.value))
            + 1
        )


def cases(rows) -> list[Case]:
    """The data sets and kernels with a row of the exact machine and two sizes of sparse-rf.

    Raises DataError if there is no such case.
    """
    # the newest row of each run
    newest = {
        row["key"]: row
        for row in rows
        if row["params"].get("label") == LABEL and row["status"] == "ok" and row["n_train"]
    }
    own = complete(newest.values(), "objective", "lam")
    found = []
    for exact in own:
        if (
            exact["method"] != "kernel"
            or exact["kernel"] not in _LARGEST
            or not Reference.there(exact)
        ):
            continue
        alike = [
            row
            for row in own
            if all(row[name] == exact[name] for name in ("dataset", "kernel", "lam"))
            and row["n_features"]
        ]
        excess, rf = (
            Excess.of(
                [row for row in alike if row["method"] == method], lambda row: row["n_features"]
            )
            for method in ("sparse-rf", "rf")
        )
        if excess:
            curvature = (
                losses.get_loss(exact["params"]["loss"]).curvature * _LARGEST[exact["kernel"]]
            )
            found.append(
                Case(exact["dataset"], exact["kernel"], Reference.of(exact), excess, rf, curvature)
            )
    needed(found, "yen2014-corollary1", "exact machine with sparse-rf at two sizes")
    return found
