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
from rfx.reporting.cells import (
    Cell,
    Mean,
    Row,
    good,
    labelled,
    log_slope,
    mean_of,
    number,
    short,
    words,
)
from rfx.reporting.effects import OR_MORE, VACUOUS, Frame, Limits

# The limit is the objective at the largest size. A slope uses sizes of at most this fraction of it,
# because the limit is inaccurate for larger ones.
_PART = 16


def machine_value(row: Row, lam: float) -> float:
    """lam ||w*||_2 + mean loss of an exact kernel machine, from its row."""
    norm = row.params["norm"]
    loss = row.objective - 0.5 * row.lam * norm**2
    return (lam * norm + loss) / row.n_train


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
        n_rows, norm = row.n_train, row.params["norm"]
        kind = losses.get_loss(row.params["loss"])
        zero = float(kind.value(np.zeros(1), np.ones(1))[0])
        if row.metric == "rmse":
            zero = row.trace[0]["objective"] / n_rows
        value = machine_value(row, row.lam * math.sqrt(blocks))
        return cls(value, norm, zero, row.objective / n_rows, kind.curvature * square, kappa)

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

    def over_bound(self, objectives: Sequence[float], size: int) -> Sequence[float] | Limits:
        """Objectives of this size over the bound, which they cannot exceed if it is vacuous."""
        ratios = [objective / self.bound(size) for objective in objectives]
        return Limits(ratios, VACUOUS) if ratios and self.vacuous(size) else ratios


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
        last = {(row.seed, size(row)): row.objective / row.n_train for row in rows}
        objectives = lazy.pandas.Series(last, dtype=float).unstack() if last else {}
        return cls(lazy.pandas.DataFrame(objectives), known_limit)

    def at(self, size: int) -> list[float]:
        """The objectives of the seeds that have this size."""
        return self.objectives.get(size, lazy.pandas.Series(dtype=float)).dropna().tolist()

    @property
    def sizes(self) -> list[int]:
        return self.objectives.columns.tolist()

    @property
    def largest_sizes(self) -> dict[Any, int]:
        """Seed -> its largest size."""
        return {seed: line.dropna().index[-1] for seed, line in self.objectives.iterrows()}

    @property
    def limit(self) -> float:
        """The known limit, or the mean objective at the largest size."""
        known = self.known_limit
        return mean_of(self.at(self.sizes[-1])).value if known is None else known

    @property
    def above(self) -> dict[int, Mean]:
        """Size -> mean above the limit, without a size that is the limit."""
        sizes = self.sizes[:-1] if self.known_limit is None else self.sizes
        limit = self.limit
        means = {}
        for size in sizes:
            means[size] = mean_of([value - limit for value in self.at(size)])
        return means

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
            seed: log_slope(line.index, line)
            for seed, line in lines.items()
            if len(line) > 2 and (line > 0).all()
        }

    @property
    def rates(self) -> Sequence[float] | Limits:
        """The slopes, if every seed has one."""
        slopes = [*self.slopes.values()]
        if len(slopes) == len(self.objectives):
            return slopes
        return Limits(slopes, "a seed has too few sizes, or an objective at its limit")

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

    def exponent_for_precision(self, reference: float, most: float) -> Sequence[float] | Limits:
        """The exponent of 1/epsilon in the size for an objective within epsilon of the reference,
        from 10 to 1 %, of each seed. A seed that never is within 1 % has its largest size.

        The case is vacuous if an objective that approaches the same limit like 1/sqrt(size) has an
        exponent of at most `most`.
        """
        few, many = (self.within(reference, share) for share in (0.1, 0.01))
        largest = self.largest_sizes
        values = [
            math.log10((many[seed] or largest[seed]) / size) for seed, size in few.items() if size
        ]
        if self.exponent_of_slow_rate(reference) <= most:
            return Limits(values, VACUOUS)
        if not all(few.values()):
            return Limits(values, "a seed is never within 10 %")
        return values if all(many.values()) else Limits(values, OR_MORE)

    def exponent_of_slow_rate(self, reference: float) -> float:
        """The same exponent of an objective that approaches this limit like 1/sqrt(size), with a
        size for every objective; infinite if that never is within 1 % of the reference.

        It is 2 only if the limit is the reference. A limit below makes it smaller.
        """
        far, near = (reference * (1 + share) - self.limit for share in (0.1, 0.01))
        return 2 * math.log10(far / near) if near > 0 else math.inf

    @property
    def slope(self) -> float | None:
        """The slope of the line through the positive means above the limit, in a log-log plot;
        None for fewer than three.
        """
        above = {size: mean.value for size, mean in self.above.items() if size in self._accurate}
        positive = {size: value for size, value in above.items() if value > 0}
        return log_slope(list(positive), list(positive.values())) if len(positive) > 2 else None


def exact_machines(
    rows: Iterable[Row], label: str, alike: Callable[[Row], Any]
) -> list[tuple[Row, list[Row]]]:
    """The newest rows of exact kernel machines with this label, each with the rows of all methods
    for which alike(row) is the same.
    """
    newest = {row.key: row for row in good(labelled(rows, label))}
    machines = []
    for row in newest.values():
        has_objective = row.metric != "rmse" or "objective" in (row.trace or [{}])[0]
        if row.method == "kernel" and has_objective:
            machines.append((row, [one for one in newest.values() if alike(one) == alike(row)]))
    return machines
