"""The distance of the objective of L1-regularised random features from its limit, and the bound of
a theorem on it.

Yen et al. (2014, Corollary 1) and Wu et al. (2016, Theorem 1) bound F(w) = lam ||w||_1 + mean loss
over random features. The reference is the exact kernel machine w*, with lam ||w*||_2 in place of
the L1 norm: F <= F(w*) + 2 gamma ||w*||^2 / (kappa D'), with D' = D - c and c = ceil(2 kappa (F(0)
- F(w*)) / (gamma ||w*||^2)). kappa is 1 for single features. gamma is the curvature of the loss
times the square of the largest feature. All objectives here are divided by the number of rows.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rfx import losses
from rfx.reporting import seeds
from rfx.reporting.measures import Limits

# The limit is the objective at the largest size. A slope uses sizes of at most this fraction of it,
# because the limit is inaccurate for larger ones.
_PART = 16


@dataclass(frozen=True)
class Reference:
    """The exact kernel machine: value = lam ||w*||_2 + mean loss, norm = ||w*||_2, zero =
    F(0), objective: with lam/2 ||w*||^2.
    """

    value: float
    norm: float
    zero: float
    objective: float

    @staticmethod
    def there(row: dict) -> bool:
        """Whether a row of `kernel` has all the values that `of` needs."""
        if not row["params"].get("norm") or not row["n_train"]:
            return False
        if row["lam"] is None or row["objective"] is None:
            return False
        if row["metric"] == "rmse":
            steps = row.get("trace")
            return bool(steps and steps[0].get("objective") is not None)
        return bool(row["params"].get("loss"))

    @classmethod
    def of(cls, row: dict, blocks: float = 1.0) -> "Reference":
        """From a row of `kernel`. A regression row needs its trace, whose first objective is that
        of zero weights.

        blocks: the number of features drawn together. ||w*||_1 is at most sqrt(blocks) ||w*||_2,
        and `value` includes this factor.
        """
        n_rows, lam, norm = row["n_train"], row["lam"], row["params"]["norm"]
        loss = row["objective"] - 0.5 * lam * norm**2
        if row["metric"] == "rmse":
            zero = row["trace"][0]["objective"] / n_rows
        else:
            zero = float(losses.get_loss(row["params"]["loss"]).value(np.zeros(1), np.ones(1))[0])
        return cls(
            (lam * math.sqrt(blocks) * norm + loss) / n_rows, norm, zero, row["objective"] / n_rows
        )

    def wasted(self, curvature: float, kappa: float = 1.0) -> int:
        """c: the number of features, or grids, for which the theorem has no finite bound."""
        return max(0, math.ceil(2 * kappa * (self.zero - self.value) / (curvature * self.norm**2)))

    def bound(self, size: int, curvature: float, kappa: float = 1.0) -> float:
        """The upper bound on the mean of F over draws of `size` features, or grids; infinite up to
        `wasted`.
        """
        left = size - self.wasted(curvature, kappa)
        return self.value + 2 * curvature * self.norm**2 / (kappa * left) if left > 0 else math.inf


@dataclass
class Excess:
    """Objectives at several sizes, with several seeds each. values: size -> objectives. limit: the
    objective with infinitely many features.
    """

    values: dict[int, list[float]]
    limit: float
    by_seed: dict[Any, dict[int, float]] = field(default_factory=dict)

    @classmethod
    def of(cls, rows: list[dict], size) -> "Excess | None":
        """From rows that differ in seed and size(row). The limit is the mean at the largest size.
        None for fewer than two sizes.
        """
        values: dict[int, list[float]] = {}
        by_seed: dict[Any, dict[int, float]] = {}
        for row in rows:
            objective = row["objective"] / row["n_train"]
            values.setdefault(size(row), []).append(objective)
            by_seed.setdefault(row["seed"], {})[size(row)] = objective
        if len(values) < 2:
            return None
        return cls(dict(sorted(values.items())), float(np.mean(values[max(values)])), by_seed)

    def slopes(self, limit: float | None = None, part: int = _PART) -> dict[Any, float]:
        """Seed -> the slope of the distances of its objectives from the limit, in a log-log plot.

        A given limit may lie between the objectives of a seed, so distances are absolute values.
        The default limit is the seed's least objective. Only sizes up to 1/part of the largest are
        used. A seed with fewer than three sizes, or with a distance of zero, has no slope.
        """
        distance = lambda value: value - self.limit if limit is None else abs(value - limit)
        most = max(self.values) / part
        points = {
            seed: [(size, distance(value)) for size, value in sorted(sizes.items()) if size <= most]
            for seed, sizes in self.by_seed.items()
        }
        return {
            seed: seeds.slope(line)
            for seed, line in points.items()
            if len(line) > 2 and all(above > 0 for _, above in line)
        }

    def within(self, reference: float, share: float, below: bool = True) -> dict[Any, int | None]:
        """Seed -> the least size from which on its objectives are within a share of the reference;
        None if the largest is not. below: whether an objective below the reference always is.
        """
        found: dict[Any, int | None] = {}
        for seed, sizes in self.by_seed.items():
            found[seed] = None
            for size, own in sorted(sizes.items(), reverse=True):
                distance = own / reference - 1
                if (distance if below else abs(distance)) > share:
                    break
                found[seed] = size
        return found

    def for_precision(self, reference: float) -> Sequence[float] | Limits:
        """The exponent of 1/epsilon in the size for an objective within epsilon of the reference,
        from 10 to 1 %, of each seed. A seed that never is within 1 % has its largest size.
        """
        few, many = (self.within(reference, share) for share in (0.1, 0.01))
        pairs = [(few[seed], many[seed], max(self.by_seed[seed])) for seed in few if few[seed]]
        values = [math.log10((size or most) / first) for first, size, most in pairs if first]
        return values if all(size for _, size, _ in pairs) else Limits(values, "or more")

    def above(self) -> tuple[list[int], list[float], list[float]]:
        """Sizes, means minus the limit, and standard deviations, for all sizes except the one that
        defines the limit.
        """
        sizes = list(self.values)[:-1]
        means = [seeds.mean_of(self.values[size]) for size in sizes]
        return sizes, [one.value - self.limit for one in means], [one.sd or 0.0 for one in means]

    @property
    def slope(self) -> float | None:
        """The slope of the line through the means above the limit, in a log-log plot; None for
        fewer than three sizes.
        """
        most = max(self.values) / _PART
        points = [(size, mean) for size, mean, _ in zip(*self.above()) if size <= most and mean > 0]
        return seeds.slope(points) if len(points) > 2 else None
