"""Recompute the effects and intervals of the papers' claims about theorems from docs/rows, with
pandas and scipy alone: no code of rfx takes part. `python tests/papers/recompute_claims.py` prints
them, and `test_kept.py` compares them with `rfx table claims`. The effects of the other claims are
ratios, differences and exponents of columns, which `tests/reporting/test_claims.py` tests.
"""

import json
import math
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import stats

ROWS = Path(__file__).resolve().parents[2] / "docs" / "rows"


def rows(name):
    """The successful rows of a plan, with the entries of params as columns."""
    table = pd.read_csv(ROWS / f"{name}.csv").drop(columns="label", errors="ignore")
    table = table[table.status == "ok"].reset_index(drop=True)
    more = pd.DataFrame([json.loads(text) for text in table.params])
    table = table.join(more.drop(columns=[name for name in more if name in table]))
    return table.assign(width=[(of or {}).get("gamma") for of in more.kernel_params])


def steps(name):
    """The trace of a plan, with the entries of its column more."""
    table = pd.read_csv(ROWS / f"{name}.trace.csv")
    return table.join(pd.DataFrame([json.loads(text) for text in table.more]))


def slope(x, y):
    x, y = np.log(np.asarray(x, float)), np.log(np.asarray(y, float))
    return ((x - x.mean()) * (y - y.mean())).sum() / ((x - x.mean()) ** 2).sum()


# --------------------------------------------------------------------------------------- Dai et al.


def curve_points(row):
    return pd.Series({p["steps"]: p["error"] for p in row.curve if "error" in p and "steps" in p})


def distance_slopes(table, power):
    found = {}
    for nu, own in sorted(table.groupby("nu"), reverse=True):
        points = [curve_points(row) for row in own.itertuples()]
        end = points[0].index.max()
        t0 = 3.0 / nu if own.label.iloc[0].endswith("theorem") else 0.0
        start = max(end / 16, min(4 * t0, 3 * end / 8))
        late = [p[p.index >= start] for p in points]
        values = [power * slope(p.index, p) for p in late]
        diverged = any(p.iloc[-1] > 1 for p in points)
        found[f"nu = {nu:g}"] = (values, "diverged") if diverged else values
    return found


def over_bound(table, zero):
    """The last distance, or that of f = 0, over the bound of Theorem 4."""
    found = {}
    for nu, own in sorted(table.groupby("nu"), reverse=True):
        theta, excess = 1.5 / nu, 2.0
        q0 = 2 * 2**0.5 * (1 + 2) * theta**2
        q1 = (q0 + (q0**2 + excess * 2.5**2 * theta**2) ** 0.5) / excess
        ends = [curve_points(row) for row in own.itertuples()]
        bounds = [(2 * 4 * 9 * theta**2 + 2 * q1**2) / p.index[-1] for p in ends]
        found[f"nu = {nu:g}"] = [(1 if zero else p.iloc[-1]) / b for p, b in zip(ends, bounds)]
    return found


def dai():
    ripple = rows("dai2014-synthetic")
    printed = ripple[ripple.label == "synthetic-printed"]
    shifted = ripple[ripple.label == "synthetic-theorem"]
    return {
        "rate": distance_slopes(printed, 1.0),
        "rate-shifted": distance_slopes(shifted, 1.0),
        "generalisation": distance_slopes(shifted, 0.5),
        "bound": over_bound(printed, zero=False),
        "bound-zero": over_bound(printed, zero=True),
    }


# --------------------------------------------------------------------------------------- Yen et al.

CURVATURE = {"squared": 1, "squared_hinge": 2}
SQUARE = {"perceptron": 1, "gaussian": 2}
AT_ZERO = {"squared_hinge": 1.0}


def above_limit(own, part):
    """Slopes up to 1/part of the largest size, of the distance from the mean at the largest."""
    largest = own["size"].max()
    limit = own[own["size"] == largest].F.mean()
    found = {}
    for seed, points in own[own["size"] <= largest / part].groupby("seed"):
        points = points.groupby("size").F.last() - limit
        if len(points) > 2 and (points > 0).all():
            found[seed] = slope(points.index, points)
    return found


def to_reference(own, reference):
    found = {}
    for seed, points in own.groupby("seed"):
        points = (points.groupby("size").F.last() - reference).abs()
        if len(points) > 2 and (points > 0).all():
            found[seed] = slope(points.index, points)
    return found


def within(own, reference, share, below=True):
    """The least size from which on all objectives are within a share of the reference, by seed."""
    found = {}
    for seed, points in own.groupby("seed"):
        points = points.groupby("size").F.last().sort_index(ascending=False) / reference - 1
        good = (points if below else points.abs()) <= share
        found[seed] = points.index[good.cumprod().sum() - 1] if good.iloc[0] else None
    return found


def precision(own, reference):
    few, many = within(own, reference, 0.1), within(own, reference, 0.01)
    seeds = [seed for seed in few if few[seed]]
    most = own.groupby("seed")["size"].max()
    values = [math.log10((many[seed] or most[seed]) / few[seed]) for seed in seeds]
    return values if all(many[seed] for seed in seeds) else (values, "or more")


def reference_of(exact, trace):
    loss = exact.objective - exact.lam / 2 * exact.norm**2
    if exact.metric == "rmse":
        zero = trace[trace.key == exact.key].objective.iloc[0] / exact.n_train
    else:
        zero = AT_ZERO[exact.loss]
    return loss, zero


def yen():
    found = {}
    table, trace = rows("yen2014-corollary1"), steps("yen2014-corollary1")
    table = table.drop_duplicates("key", keep="last")
    table = table.assign(F=table.objective / table.n_train, size=table.n_features)
    for exact in table[table.method == "kernel"].itertuples():
        alike = table[(table.dataset == exact.dataset) & (table.kernel == exact.kernel)]
        own, rf = (alike[alike.method == method] for method in ("sparse-rf", "rf"))
        if own["size"].nunique() < 2:
            continue
        name = f"{exact.dataset} {exact.kernel}"
        loss, zero = reference_of(exact, trace)
        star, plain = (
            (exact.lam * exact.norm + loss) / exact.n_train,
            exact.objective / exact.n_train,
        )
        curvature = CURVATURE[exact.loss] * SQUARE[exact.kernel]
        wasted = max(0, math.ceil(2 * (zero - star) / (curvature * exact.norm**2)))

        def bound(size):
            left = size - wasted
            return star + 2 * curvature * exact.norm**2 / left if left > 0 else math.inf

        counts = own.groupby("size").size()
        size = counts[counts == counts.max()].index.max()
        ends = list(own[own["size"] == size].F)
        first = own["size"].min()
        ours, theirs = above_limit(own, 16), to_reference(rf, plain)
        both = sorted(ours.keys() & theirs.keys())
        effects = {
            "kernel-objective": [end / star for end in ends],
            "rate": precision(own, star),
            "rate-to-limit": list(ours.values()),
            "rf-rate": list(theirs.values()),
            "faster-than-rf": [ours[seed] - theirs[seed] for seed in both],
            "bound": [end / bound(size) for end in ends],
            "bound-few": [zero / bound(first)] * int((own["size"] == first).sum()),
        }
        for percent in (10, 1):
            mine = within(own, star, percent / 100)
            other = within(rf, plain, percent / 100, below=False)
            seeds = [seed for seed in mine if mine[seed] and seed in other]
            values = [(other[seed] or rf["size"].max()) / mine[seed] for seed in seeds]
            exactly = all(other[seed] for seed in seeds)
            effects[f"fewer-than-rf-{percent}"] = values if exactly else (values, "or more")
        for claim, values in effects.items():
            found.setdefault(claim, {})[name] = values
    return found


# ---------------------------------------------------------------------------------------- Wu et al.


def wu():
    found = {}
    table, trace = rows("wu2016-theorem1"), steps("wu2016-theorem1")
    table = table.drop_duplicates("key", keep="last")
    table = table.assign(F=table.objective / table.n_train, size=table.n_grids)
    by_kappa = {}
    exacts = table[table.method == "kernel"].sort_values("width", kind="stable")
    for exact in exacts.itertuples():
        alike = table[(table.dataset == exact.dataset) & (table.width == exact.width)]
        own, ridge = (alike[alike.method == method] for method in ("sparse-rb", "rb"))
        name = f"{exact.dataset}, gamma {exact.width:g}"
        loss, zero = reference_of(exact, trace)
        star = (exact.lam * own.kappa.mean() ** 0.5 * exact.norm + loss) / exact.n_train
        kappa, scale = own.kappa_bound.mean(), CURVATURE[exact.loss] * exact.norm**2
        wasted = max(0, math.ceil(2 * kappa * (zero - star) / scale))

        def bound(size):
            left = size - wasted
            return star + 2 * scale / (kappa * left) if left > 0 else math.inf

        largest = own["size"].max()
        size = own["size"][own["size"] <= largest / 16].max()
        effects = {
            "rate": precision(own, star),
            "rate-to-limit": list(above_limit(own, 16).values()),
            "rate-l2": list(to_reference(ridge, exact.objective / exact.n_train).values()),
            "bound": [end / bound(size) for end in own[own["size"] == size].F],
            "bound-few": [zero / bound(4)],
        }
        for claim, values in effects.items():
            found.setdefault(claim, {})[name] = values
        limit = own[own["size"] == largest].F.mean()
        for seed, at in own[own["size"] == 64].groupby("seed").F.last().items():
            if at > limit:
                by_kappa.setdefault((exact.dataset, seed), []).append((kappa, (at - limit) / scale))
    for (dataset, _), points in by_kappa.items():
        if len(points) > 2:
            found.setdefault("larger-kappa", {}).setdefault(dataset, []).append(
                slope(*zip(*points))
            )
    return found


# ---------------------------------------------------------------------------------------- intervals


def intervals(papers, kinds):
    """A line for each case. kinds: whether the effect of a claim is a ratio, a count, a grid."""
    lines = []
    for paper, claims in papers.items():
        for claim, cases in claims.items():
            ratio, counted, grid = kinds[paper, claim]
            cases = {
                case: own
                for case, own in cases.items()
                if (own[0] if isinstance(own, tuple) else own)
            }
            for case, own in cases.items():
                values, limit = own if isinstance(own, tuple) else (own, "")
                values = pd.Series(np.log(values) if ratio else values, dtype=float)
                back = np.exp if ratio else float
                middle, n = values.mean(), len(values)
                alike = n > 1 and values.max() == values.min()
                one = n == 1 or (alike and not (counted or grid))
                low = high = None
                if not one:
                    sd = 0.0 if alike else values.std()
                    point = stats.t.ppf(1 - 0.05 / len(cases) / 2, n - 1)
                    half = point * sd / math.sqrt(n)
                    low, high = back(middle - half), back(middle + half)
                if limit in ("or less", "diverged"):
                    low = None
                if limit in ("or more", "diverged"):
                    high = None
                lines.append((paper, claim, case, back(middle), low, high, 1 if one else n, limit))
    names = ["paper", "claim", "case", "mean", "low", "high", "seeds", "limit"]
    return pd.DataFrame(lines, columns=names)


RATIOS = {
    "dai2014": {"bound"},
    "yen2014": {"kernel-objective", "fewer-than-rf-10", "fewer-than-rf-1", "bound"},
    "wu2016": {},
}
COUNTS = {"bound-zero", "bound-few"}
GRIDS = {"rate", "fewer-than-rf-10", "fewer-than-rf-1"}


def everything():
    papers = {"dai2014": dai(), "yen2014": yen(), "wu2016": wu()}
    kinds = {
        (paper, claim): (
            claim in RATIOS[paper],
            claim in COUNTS,
            claim in GRIDS and paper != "dai2014",
        )
        for paper, claims in papers.items()
        for claim in claims
    }
    return intervals(papers, kinds)


if __name__ == "__main__":
    print(everything().to_string())
