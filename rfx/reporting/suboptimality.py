"""The distance of the objective of L1-regularised random features from its limit, and the bound of
a theorem on it.

Yen et al. (2014, Corollary 1) and Wu et al. (2016, Theorem 1) bound F(w) = lam ||w||_1 + mean loss
over random features. The reference is the exact kernel machine w*, with lam ||w*||_2 in place of
the L1 norm: F <= F(w*) + 2 gamma ||w*||^2 / (kappa D'), with D' = D - c and c = ceil(2 kappa (F(0)
- F(w*)) / (gamma ||w*||^2)). kappa is 1 for single features. gamma is the curvature of the loss
times the square of the largest feature. All objectives here are divided by the number of rows.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rfx import lazy, losses
from rfx.records.result import complete
from rfx.reporting import seeds
from rfx.reporting.cells import Cell, number, short, words
from rfx.reporting.measures import Frame, Limits, Row

# The limit is the objective at the largest size. A slope uses sizes of at most this fraction of it,
# because the limit is inaccurate for larger ones.
_PART = 16


@dataclass(frozen=True)
class Reference:
    """The exact kernel machine: value = lam ||w*||_2 + mean loss, norm = ||w*||_2, zero =
    F(0), objective: with lam/2 ||w*||^2; curvature and kappa of the theorem.
    """

    value: float
    norm: float
    zero: float
    objective: float
    curvature: float
    kappa: float = 1.0

    @classmethod
    def of(cls, row: Row, square: float = 1.0, kappa: float = 1.0, blocks: float = 1.0):
        """From a row of `kernel`. F(0) of a regression is the first objective of its trace.

        square: of the largest feature. blocks: the number of features drawn together. ||w*||_1 is
        at most sqrt(blocks) ||w*||_2, and `value` includes this factor.
        """
        n_rows, lam, norm = row["n_train"], row["lam"], row["params"]["norm"]
        kind = losses.get_loss(row["params"]["loss"])
        zero = float(kind.value(np.zeros(1), np.ones(1))[0])
        if row["metric"] == "rmse":
            zero = row["trace"][0]["objective"] / n_rows
        loss = row["objective"] - 0.5 * lam * norm**2
        value = (lam * math.sqrt(blocks) * norm + loss) / n_rows
        return cls(value, norm, zero, row["objective"] / n_rows, kind.curvature * square, kappa)

    @property
    def scale(self) -> float:
        """gamma ||w*||^2. In units of it the theorem is the same line for all cases, 2 / (kappa D')
        above F(w*).
        """
        return self.curvature * self.norm**2

    @property
    def wasted(self) -> int:
        """c: the number of features, or grids, for which the theorem has no finite bound."""
        return max(0, math.ceil(2 * self.kappa * (self.zero - self.value) / self.scale))

    def bound(self, size: int) -> float:
        """The upper bound on the mean of F over draws of `size` features, or grids; infinite up to
        `wasted`.
        """
        left = size - self.wasted
        return self.value + 2 * self.scale / (self.kappa * left) if left > 0 else math.inf

    def cell(self, size: int) -> Cell:
        """The bound at this size, and whether it is vacuous."""
        bound, vacuous = self.bound(size), ", vacuous" * self.vacuous(size)
        return number(bound, short, note=vacuous) if math.isfinite(bound) else words("infinite")

    def vacuous(self, size: int) -> bool:
        """Whether the bound at this size is at least the objective of zero weights."""
        return self.bound(size) >= self.zero


@dataclass(frozen=True)
class Excess:
    """The objectives of several seeds, which are the index, at several sizes, the columns in
    ascending order.

    known_limit: the limit of the objectives; None if it is the mean at the largest size.
    """

    objectives: Frame
    known_limit: float | None = None

    @classmethod
    def of(
        cls, rows: Sequence[Row], size: Callable[[Row], int], known_limit: float | None = None
    ) -> "Excess":
        """From rows that differ in seed and size(row)."""
        last = {(row["seed"], size(row)): row["objective"] / row["n_train"] for row in rows}
        objectives = lazy.pandas.Series(last, dtype=float).unstack() if last else {}
        return cls(lazy.pandas.DataFrame(objectives), known_limit)

    def at(self, size: int) -> list[float]:
        """The objectives of the seeds that have this size."""
        return self.objectives.get(size, lazy.pandas.Series(dtype=float)).dropna().tolist()

    @property
    def sizes(self) -> list[int]:
        return self.objectives.columns.tolist()

    @property
    def limit(self) -> float:
        """The known limit, or the mean objective at the largest size."""
        known = self.known_limit
        return seeds.mean_of(self.at(self.sizes[-1])).value if known is None else known

    @property
    def above(self) -> dict[int, seeds.Mean]:
        """Size -> mean above the limit, without a size that is the limit."""
        sizes = self.sizes[:-1] if self.known_limit is None else self.sizes
        limit = self.limit
        return {size: seeds.mean_of([value - limit for value in self.at(size)]) for size in sizes}

    @property
    def _accurate(self) -> list[int]:
        """The sizes of slopes: those far below the size that is the limit."""
        part = _PART if self.known_limit is None else 1
        return [size for size in self.sizes if size <= self.sizes[-1] / part]

    @property
    def slopes(self) -> dict[Any, float]:
        """Seed -> the slope of the distances of its objectives from the limit, in a log-log plot.

        A known limit may lie between the objectives of a seed, so distances are then absolute
        values. A seed with fewer than three sizes, or with a distance of zero, has no slope.
        """
        distances = self.objectives[self._accurate] - self.limit
        distances = distances if self.known_limit is None else distances.abs()
        lines = {seed: line.dropna() for seed, line in distances.iterrows()}
        return {
            seed: seeds.slope(line.index, line)
            for seed, line in lines.items()
            if len(line) > 2 and (line > 0).all()
        }

    def within(self, reference: float, share: float, below: bool = True) -> dict[Any, int | None]:
        """Seed -> the least size from which on its objectives are within a share of the reference;
        None if the largest is not. below: whether an objective below the reference always is.
        """
        distances = self.objectives / reference - 1
        near = (distances if below else distances.abs()) <= share
        sizes = {
            # from the largest size down, until one is not near
            seed: line[distances.loc[seed].notna()][::-1].astype(bool).cumprod()
            for seed, line in near.iterrows()
        }
        return {seed: min(line.index[line > 0], default=None) for seed, line in sizes.items()}

    def for_precision(self, reference: float) -> Sequence[float] | Limits:
        """The exponent of 1/epsilon in the size for an objective within epsilon of the reference,
        from 10 to 1 %, of each seed. A seed that never is within 1 % has its largest size.
        """
        few, many = (self.within(reference, share) for share in (0.1, 0.01))
        most = {seed: line.dropna().index[-1] for seed, line in self.objectives.iterrows()}
        pairs = [(size, many[seed], most[seed]) for seed, size in few.items() if size]
        values = [math.log10((size or largest) / first) for first, size, largest in pairs]
        return values if all(size for _, size, _ in pairs) else Limits(values, "or more")

    @property
    def slope(self) -> float | None:
        """The slope of the line through the positive means above the limit, in a log-log plot;
        None for fewer than three.
        """
        above = {size: mean.value for size, mean in self.above.items() if size in self._accurate}
        positive = {size: value for size, value in above.items() if value > 0}
        return seeds.slope(list(positive), list(positive.values())) if len(positive) > 2 else None


def exact_machines(
    rows: Iterable[Row], label: str, alike: Callable[[Row], Any]
) -> list[tuple[Row, list[Row]]]:
    """The newest rows of exact kernel machines with this label, each with the rows of all methods
    for which alike(row) is the same.
    """
    newest = {
        row["key"]: row
        for row in rows
        if row["params"].get("label") == label and row["status"] == "ok"
    }
    complete_rows = complete(newest.values(), "objective", "lam", "n_train")
    exact = [row for row in complete_rows if row["method"] == "kernel"]
    return [
        (row, [one for one in complete_rows if alike(one) == alike(row)])
        for row in complete(exact, "params.norm", "params.loss")
        if row["metric"] != "rmse" or "objective" in (row.get("trace") or [{}])[0]
    ]
