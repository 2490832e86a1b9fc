"""Recompute every effect, interval, decision and verdict of the papers' claims from docs/rows, by
the rule of docs/papers.md, with pandas and scipy alone: no code of rfx takes part. `python
tests/papers/recompute_claims.py` prints them, and `test_kept.py` compares them with `rfx table
claims`.

The effects of a case are a list with a number for each seed, or a pair of such a list and a word:
"or more" and "or less" for limits, "vacuous", or why the case is open.
"""

import json
import math
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import stats

ROWS = Path(__file__).resolve().parents[2] / "docs" / "rows"
LOW_RANK = ["r-pegasos", "n-pegasos", "r-sdca", "n-sdca"]
WIDE = ("rf", "nystrom", "block")
TIMED = (
    *("least_seconds_cpu", "least_seconds_cpu_predict", "least_seconds_cpu_choice"),
    "fit_rss_mb",
)


def rows(name):
    """The successful rows of a plan, with the entries of params as columns."""
    path = ROWS / f"{name}.csv"
    if not path.exists():
        return pd.DataFrame(columns=["label", "method", "dataset", "seed", "kernel"])
    table = pd.read_csv(path).drop(columns="label", errors="ignore")
    table = table[table.status == "ok"].reset_index(drop=True)
    more = pd.DataFrame([json.loads(text) for text in table.params])
    table = table.join(more.drop(columns=[name for name in more if name in table]))
    table["wrong"] = 1 - table.score
    table["seconds"] = table.seconds_fit + table.seconds_features.fillna(0)
    regression = table.metric == "rmse"
    if "relative_error" in table:
        table["error"] = table.relative_error.where(regression, table.wrong)
    if "kernel_params" in table:
        table["width"] = [
            of.get("gamma") if isinstance(of, dict) else None for of in table.kernel_params
        ]
    # what rows have that were timed again, or chose options
    for name in (*TIMED, "seconds_cpu", "seconds_validation"):
        if name not in table:
            table[name] = math.nan
    one_thread = table.seconds_predict.where(table.threads == 1)
    whole = table.peak_rss_mb.where(table.seconds_validation.isna())
    table["cost"] = table.seconds_cpu.fillna(table.seconds)
    table["predict"] = table.least_seconds_cpu_predict.fillna(one_thread)
    table["memory"] = table.fit_rss_mb.fillna(whole)
    rank = table.n_features
    for place in ("block_size", "n_grids"):
        if place in table:
            rank = table[place].fillna(rank)
    table["R"] = rank
    return table


def steps(name):
    """The trace of a plan, with the entries of its column more."""
    table = pd.read_csv(ROWS / f"{name}.trace.csv")
    return table.join(pd.DataFrame([json.loads(text) for text in table.more]))


def slope(x, y):
    x, y = np.log(np.asarray(x, float)), np.log(np.asarray(y, float))
    return ((x - x.mean()) * (y - y.mean())).sum() / ((x - x.mean()) ** 2).sum()


def last(table, value, by=("dataset",)):
    """Series of the newest value by case and seed."""
    table = table.dropna(subset=[value])
    case = table[list(by)].astype(str).agg(" ".join, axis=1) if len(table) else []
    return table.assign(case=case).groupby(["case", "seed"], sort=False)[value].last()


def pairs(first, second, difference=False):
    both = pd.concat([first, second], axis=1, keys=["a", "b"]).dropna()
    if difference:
        return lists(both.a - both.b)
    found = lists((both.a / both.b)[(both.a > 0) & (both.b > 0)])
    zero = set(both.index[(both.a <= 0) | (both.b <= 0)].get_level_values(0))
    return found | {case: (found.get(case, []), "a value is zero") for case in zero}


def lists(series):
    return {case: list(own) for case, own in series.groupby(level=0, sort=False)}


def named(found, end):
    return {f"{case} {end}": own for case, own in found.items()}


def slopes(table, value, axis, by=("dataset",), places=3):
    found = {}
    table = table[(table[value] > 0) & (table[axis] > 0)]
    for keys, own in table.groupby([*by, "seed"], sort=False):
        own = own.groupby(axis)[value].last()
        if len(own) >= places:
            found.setdefault(" ".join(map(str, keys[:-1])), []).append(slope(own.index, own))
    return found


def reach(table, cost, value, target, first, second):
    """The least cost of second over that of first to the value of target, by seed."""
    found, limits = {}, set()
    for (case, seed), wanted in target.items():
        own = table[(table.dataset == case) & (table.seed == seed)]
        good = [
            own[own.method == m][lambda t: t[value] <= wanted][cost].min() for m in (first, second)
        ]
        if math.isnan(good[1]):
            good[1] = own[own.method == second][cost].max()
            limits.add(case)
        if not any(map(math.isnan, good)):
            found.setdefault(case, []).append(good[1] / good[0])
    return {case: (own, "or more") if case in limits else own for case, own in found.items()}


# --------------------------------------------------------------------------------------- Dai et al.


def curve_points(row):
    return pd.Series({p["steps"]: p["error"] for p in row.curve if "error" in p and "steps" in p})


def distance_slopes(table):
    found = {}
    for nu, own in sorted(table.groupby("nu"), reverse=True):
        points = [curve_points(row) for row in own.itertuples()]
        end = points[0].index.max()
        t0 = 3.0 / nu if own.label.iloc[0].endswith("theorem") else 0.0
        start = max(end / 16, min(4 * t0, 3 * end / 8))
        late = [p[p.index >= start] for p in points]
        values = [slope(p.index, p) for p in late]
        diverged = any(p.iloc[-1] > 1 for p in points)
        found[f"nu = {nu:g}"] = (values, "diverged") if diverged else values
    return found


def over_bound(table):
    """The last distance over the bound of Theorem 4, vacuous if f = 0 has a lower distance, 1."""
    found = {}
    for nu, own in sorted(table.groupby("nu"), reverse=True):
        theta, excess = 1.5 / nu, 2.0
        q0 = 2 * 2**0.5 * (1 + 2) * theta**2
        q1 = (q0 + (q0**2 + excess * 2.5**2 * theta**2) ** 0.5) / excess
        ends = [curve_points(row) for row in own.itertuples()]
        bounds = [(2 * 4 * 9 * theta**2 + 2 * q1**2) / p.index[-1] for p in ends]
        ratios = [p.iloc[-1] / b for p, b in zip(ends, bounds)]
        found[f"nu = {nu:g}"] = (ratios, "vacuous") if min(bounds) >= 1 else ratios
    return found


def growth(table, value):
    """The exponent of the number of rows over the upper two thirds of the sizes."""
    found = {}
    for (method, _), own in table.groupby(["method", "seed"]):
        own = own.groupby("n_train")[value].last().dropna()
        upper = own.iloc[len(own) // 3 :]
        found.setdefault(method, []).append(slope(upper.index, upper))
    return found


def beside(plan, label, others, value="wrong", difference=False, ours="doubly-sgd"):
    """The value of one method over, or less, that of each of the others."""
    table = rows(f"dai2014-{plan}")
    table = table[table.label == label]
    of = lambda method: last(table[table.method == method], value) * (100 if difference else 1)
    return {
        case: effects
        for other in others
        if len(table)
        for case, effects in named(pairs(of(ours), of(other), difference), other).items()
    }


def dai():
    ripple, cost, choice, million = (
        rows(f"dai2014-{name}") for name in ("synthetic", "complexity", "choice", "fig1-qm7")
    )
    million = million[million.label == "qm7-million"]
    printed = ripple[ripple.label == "synthetic-printed"]
    shifted = ripple[ripple.label == "synthetic-theorem"]
    rank = cost["rank"].fillna(0)
    cost = cost.assign(work=cost.samples * cost.model_size + (cost.samples + rank) * rank**2)
    data = ["a9a", "covtype", "ripple:n=32768,n_test=2000"]
    doubly = choice[(choice.method == "doubly-sgd") & choice.dataset.isin(data)]
    doubly = doubly.assign(bytes_each=doubly.model_bytes / doubly.n_features)
    whole = ["norma", "k-sdca"]
    worse = {
        f"{case} {other}": effects
        for other in ("r-sdca", "n-sdca")
        for plan, label, value in (
            ("fig1-adult", "adult-sc1", "wrong"),
            ("synthetic", "synthetic-sc1", "mae"),
        )
        for case, effects in beside(plan, label, ["k-sdca"], value, ours=other).items()
    }
    return {
        "adult-comparable": beside("fig1-adult", "adult-sc1", whole, difference=True),
        "adult-same-time": beside("fig1-adult", "adult-sc2", whole, difference=True),
        "8v6-best": beside("fig1-mnist8v6", "mnist8v6-sc1", [*whole, *LOW_RANK]),
        "forest-better": beside("fig1-forest", "forest-sc1", LOW_RANK),
        "ripple": beside("synthetic", "synthetic-sc1", [*whole, *LOW_RANK], "mae"),
        "quantum-machine": beside("fig1-qm7", "qm7", ["mlp"], "mae"),
        "quantum-machine-million": lists(last(million, "mae") / 2.97) if len(million) else {},
        "low-rank-worse": {case.replace(" k-sdca", ""): effects for case, effects in worse.items()},
        "rate": distance_slopes(printed),
        "rate-shifted": distance_slopes(shifted),
        "bound": over_bound(printed),
        "storage": growth(cost, "model_bytes"),
        "training-storage": growth(cost, "training_bytes"),
        "training-cost": slopes(cost, "work", "n_train", ("method",)),
        "storage-dimension": slopes(doubly, "bytes_each", "n_inputs", ("method",)),
    }


# --------------------------------------------------------------------------------------- Yen et al.

CURVATURE = {"squared": 1, "squared_hinge": 2}
SQUARE = {"perceptron": 1, "gaussian": 2}
AT_ZERO = {"squared_hinge": 1.0}


def table_pairs(plans, value, over, under, label, difference=False):
    """The cells of Tables 1 and 2, lambda of Sparse-RF closest to RF's score."""
    found = {}
    for plan, datasets in (
        ("table1", ["cpu", "census16h"]),
        ("table2", ["cod-rna", "ijcnn1", "covtype"]),
    ):
        if plan not in plans:
            continue
        table = rows(f"yen2014-{plan}")
        for dataset in datasets:
            for kernel in ("gaussian", "laplacian", "perceptron"):
                cell = table[
                    (table.label == label) & (table.dataset == dataset) & (table.kernel == kernel)
                ]
                cell = cell[
                    (cell.features == "range") == (kernel == "perceptron" and label == "tuned")
                ]
                rf = cell[cell.method == "rf"].groupby("seed").last()
                sparse = cell[cell.method == "sparse-rf"]
                if label == "paper":
                    means = sparse.groupby("lam").score.mean()
                    sparse = sparse[sparse.lam == (means - rf.score.mean()).abs().idxmin()]
                sides = {"rf": rf[value], "sparse-rf": sparse.groupby("seed").last()[value]}
                first, second = sides[over], sides[under]
                both = pd.concat([first, second], axis=1, keys=["a", "b"]).dropna()
                found[f"{dataset} {kernel}"] = list(
                    both.a - both.b if difference else both.a / both.b
                )
    return found


NO_RATE = "a seed has too few sizes, or an objective at its limit"


def rates(slopes, own):
    """The slopes of all seeds."""
    values = list(slopes.values())
    return values if len(values) == own.seed.nunique() else (values, NO_RATE)


def against(objectives, bound, zero):
    """Objectives over a bound, vacuous if that is above the objective of zero weights."""
    ratios = [objective / bound for objective in objectives]
    return (ratios, "vacuous") if ratios and bound >= zero else ratios


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
    most = own.groupby("seed")["size"].max()
    values = [math.log10((many[seed] or most[seed]) / few[seed]) for seed in few if few[seed]]
    # an objective that falls like 1/sqrt(size) to the same limit: its sizes at 10 and at 1 %
    limit = own[own["size"] == own["size"].max()].F.mean()
    sizes = [(share * reference - limit) ** -2.0 for share in (1.1, 1.01)]
    if 1.01 * reference > limit and math.log10(sizes[1] / sizes[0]) <= 1.1:
        return values, "vacuous"
    if None in few.values():
        return values, "a seed is never within 10 %"
    return (values, "or more") if None in many.values() else values


def reference_of(exact, trace):
    loss = exact.objective - exact.lam / 2 * exact.norm**2
    if exact.metric == "rmse":
        zero = trace[trace.key == exact.key].objective.iloc[0] / exact.n_train
    else:
        zero = AT_ZERO[exact.loss]
    return loss, zero


def yen_theory(found):
    table, trace = rows("yen2014-corollary1"), steps("yen2014-corollary1")
    table = table.drop_duplicates("key", keep="last")
    table = table.assign(F=table.objective / table.n_train, size=table.n_features)
    found["size-against-features"] = slopes(
        table[table.method == "sparse-rf"], "model_size", "size", ("dataset", "kernel")
    )
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
        at = lambda size, own=own: list(own[own["size"] == size].F)
        first = own["size"].min()
        ours, theirs = above_limit(own, 16), to_reference(rf, plain)
        incomplete = isinstance(rates(ours, own), tuple) or isinstance(rates(theirs, rf), tuple)
        both = sorted(ours.keys() & theirs.keys())
        effects = {
            "kernel-objective": [end / star for end in at(size)],
            "rate": precision(own, star),
            "rate-to-limit": rates(ours, own),
            "rf-rate": rates(theirs, rf),
            "faster-than-rf": ([], NO_RATE)
            if incomplete
            else [ours[seed] - theirs[seed] for seed in both],
            "bound": against(at(size), bound(size), zero),
            "bound-few": against(at(first), bound(first), zero),
        }
        for percent in (10, 1):
            mine = within(own, star, percent / 100)
            other = within(rf, plain, percent / 100, below=False)
            seeds = [seed for seed in mine if seed in other]
            most, most_of_rf = (side.groupby("seed")["size"].max() for side in (own, rf))
            values = [
                (other[seed] or most_of_rf[seed]) / (mine[seed] or most[seed]) for seed in seeds
            ]
            there = all(mine[seed] for seed in seeds), all(other[seed] for seed in seeds)
            kind = {
                (True, True): "",
                (True, False): "or more",
                (False, True): "or less",
                (False, False): "a run of each side never reaches the target",
            }[there]
            effects[f"fewer-than-rf-{percent}"] = (values, kind) if kind else values
        for claim, values in effects.items():
            found.setdefault(claim, {})[name] = values


def yen_figure1(found):
    table, trace = rows("yen2014-figure1"), steps("yen2014-figure1")
    table = table.drop_duplicates("key", keep="last")
    trace = trace[trace.features.fillna(0) > 0].sort_values("step", kind="stable")
    ends = trace.groupby("key").last()
    for name, n_rows in (("cod-rna", None), ("ijcnn1", "wu2016"), ("covtype", None)):
        own = table[(table.dataset == name) & (table.split != n_rows)]
        exact = own[own.method == "kernel"].groupby("seed").last()
        exact = exact[exact.lam == exact.lam.iloc[-1]]
        curve = own.method.where(own.threshold != "exact", "boosting-exact")
        sides = {key: own[curve == key].groupby("seed").last() for key in curve.unique()}
        lam = sides["sparse-rf"].lam.iloc[0]
        loss = exact.objective - exact.lam / 2 * exact.norm**2
        line = (lam * exact.norm + loss) / exact.n_train
        for claim, key in (
            ("sparse-reaches-kernel", "sparse-rf"),
            ("boosting-stays-above", "boosting"),
            ("boosting-exact-stays-above", "boosting-exact"),
        ):
            side = sides[key]
            last_one = ends.objective.reindex(side.key).to_numpy() / side.n_train
            found.setdefault(claim, {})[name] = [
                value / line.get(seed, line.mean()) for seed, value in last_one.items()
            ]
        ratios, kind = [], ""
        for seed, row in sides["boosting"].iterrows():
            slow = ends.loc[row.key]
            fast = trace[trace.key == sides["sparse-rf"].key.get(seed)]
            if fast.empty:
                continue
            there = fast[fast.objective / row.n_train <= slow.objective / row.n_train]
            wait = fast.cpu_seconds.iloc[-1] if there.empty else there.cpu_seconds.iloc[0]
            kind = "or less" if there.empty else kind
            ratios.append(slow.cpu_seconds / wait)
        found.setdefault("sooner-than-boosting", {})[name] = (ratios, kind) if kind else ratios


TABLE_CLAIMS = {
    "sparse-model": (("table1", "table2"), "model_size", "rf", "sparse-rf"),
    "comparable-accuracy": (("table2",), "score", "sparse-rf", "rf"),
    "comparable-rmse": (("table1",), "score", "sparse-rf", "rf"),
    "less-memory": (("table1", "table2"), "memory", "rf", "sparse-rf"),
    "faster-prediction": (("table1", "table2"), "predict", "rf", "sparse-rf"),
    "faster-regression": (("table1",), "least_seconds_cpu", "rf", "sparse-rf"),
}


def yen():
    growing, kernels = rows("yen2014-growth"), rows("yen2014-table2")
    kernels = kernels[(kernels.method == "kernel") & (kernels.label == "paper")]
    kernels = kernels[kernels.dataset.isin(["covtype-20k", "covtype"])]
    found = {
        claim + end: table_pairs(*what, label, claim == "comparable-accuracy")
        for label, end in (("paper", ""), ("tuned", "-tuned"))
        for claim, what in TABLE_CLAIMS.items()
    } | {
        "size-against-rows": slopes(growing, "model_size", "n_train", ("method", "lam")),
        "kernel-quadratic": slopes(kernels, "seconds", "n_train", ("kernel",), 2),
    }
    yen_figure1(found)
    yen_theory(found)
    return found


# ---------------------------------------------------------------------------------- Sinha and Duchi


def by_held_out(table):
    """The share of wrong labels of each data set and seed, D by held-out rows."""
    steps_of = lambda row: [
        step
        for step in (row.validation if isinstance(row.validation, list) else ())
        if step["by"] == row.method
    ]
    table = table[[bool(steps_of(row)) for row in table.itertuples()]]
    # later rows have the values tried in another file
    lowest = lambda step: step.get("lowest", min([one[-1] for one in step.get("tried", [])] or [0]))
    held = [lowest(steps_of(row)[-1]) for row in table.itertuples()]
    table = table.assign(held=held).sort_values(["held", "n_features"], kind="stable")
    return 100 * table.groupby(["dataset", "seed"]).wrong.first()


def sinha():
    sphere, chosen, table, joint = (
        rows(f"sinha2016-{name}") for name in ("fig1", "fig2", "table1", "joint")
    )
    sphere = sphere.assign(case="d = " + sphere.n_inputs.astype(str))
    kept, all_random = (chosen[chosen.method == method] for method in ("lkrf", "rf"))
    whole = kept[kept.n_features_asked.isna() & (kept.n_features >= kept.support)]
    table = table[table.label == "table1-tuned"]
    learned, random = (table[table.method == method] for method in ("lkrf", "rf"))
    joint = joint[joint.rho_share == 0.005]
    sides = [joint[joint.joint == 10], joint[joint.joint.isna()]]
    asked = lambda size: last(learned[learned.n_features_asked == size], "wrong")
    drawn = lambda table, size: last(table[table.n_features == size], "wrong")
    return {
        "kernel-learned": pairs(
            *(last(sphere[sphere.method == one], "wrong", ["case"]) for one in ("lkrf", "rf"))
        ),
        "feature-selection": lists(last(kept.assign(part=kept.support / kept.pool), "part")),
        "selected-beats-random": pairs(last(whole, "wrong"), drawn(all_random, 1000)),
        "same-error": pairs(by_held_out(learned), by_held_out(random), difference=True),
        **{
            f"fewer-features-{size}": pairs(asked(size), drawn(random, size))
            for size in (32, 128, 256)
        },
        "faster": reach(table, "cost", "wrong", asked(128), "lkrf", "rf"),
        "joint-slower": pairs(*(last(side, "least_seconds_cpu_choice") for side in sides)),
        "joint-errs-less": pairs(*(last(side, "wrong") for side in sides)),
    }


# ---------------------------------------------------------------------------------------- Wu et al.


def wu():
    table, swept, ranked, timed = (
        rows(f"wu2016-{name}") for name in ("fig5", "fig3", "fig4", "fig6")
    )
    table = table[table.label == "fig5-tuned"]
    few = table.assign(cost=table.R * table.kappa_bound.fillna(1.0))
    few = few[(table.method == "rf") | (table.R == 16)]
    large = table[table.R.isin([128, 256, 512, 1024]) & (table.method == "rb")]
    large = large.assign(entries=large.n_train * large.R * (large.n_iter + 1))
    passes = steps("wu2016-fig6").dropna(subset=["pass_seconds"])
    passes = passes.groupby(["key", "output"]).pass_seconds.last().groupby(level=0).sum()
    timed = timed.assign(passes=timed.key.map(passes))

    def error(method, rank=None):
        own = table[table.method == method]
        return last(own if rank is None else own[rank == own.R], "error")

    def speedup(method):
        own = timed[timed.method == method]
        return pairs(*(last(own[own.threads == count], "passes") for count in (1, 2)))

    found = {
        **{
            f"better-than-{other}-{rank}": pairs(error("rb", rank), error(other, rank))
            for rank in (32, 1024)
            for other in WIDE
        },
        "advantage-diminishes": {
            f"{case} {other}": own
            for other in WIDE
            for case, own in pairs(
                error("rb", 1024) / error(other, 1024), error("rb", 32) / error(other, 32)
            ).items()
        },
        "reaches-kernel": pairs(100 * error("rb", 1024), 100 * error("kernel"), difference=True),
        **{
            f"orders-of-magnitude-{other}": reach(
                table, "cost", "error", error("rb", 64), "rb", other
            )
            for other in WIDE
        },
        "kappa-fewer": reach(few, "cost", "error", error("rb", 16), "rb", "rf"),
        "linear-time": slopes(large, "entries", "R"),
        "bins-grow": slopes(swept[swept.label == "fig3-tuned"], "n_features", "width"),
        "error-falls": slopes(ranked[ranked.label == "fig4-tuned"], "error", "R"),
        "speedup": speedup("sparse-rb"),
        "no-speedup-rf": speedup("sparse-rf"),
    }
    wu_theory(found)
    return found


def wu_theory(found):
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
            "rate-to-limit": rates(above_limit(own, 16), own),
            "rate-l2": rates(to_reference(ridge, exact.objective / exact.n_train), ridge),
            "bound": against(list(own[own["size"] == size].F), bound(size), zero),
            "bound-few": against(list(own[own["size"] == 4].F), bound(4), zero),
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


# ----------------------------------------------------------------------------------------- the rule

# A line for each claim: the effects for which it holds, the scale of its interval (ratio, or a
# difference), and what else the rule asks: whether it says "as good as" or "every", whether one run
# decides, and the step of a grid.
RULES = """
dai2014 adult-comparable <= 1 as-good
dai2014 adult-same-time <= 1 as-good
dai2014 8v6-best <= 1 ratio every
dai2014 forest-better <= 0.9 ratio
dai2014 ripple <= 1.05 ratio as-good
dai2014 low-rank-worse >= 1 ratio
dai2014 quantum-machine <= 1 ratio
dai2014 quantum-machine-million <= 1.05 ratio
dai2014 rate <= -0.9
dai2014 rate-shifted <= -0.9
dai2014 bound <= 1 ratio
dai2014 storage <= 1.05 counted every
dai2014 storage-dimension <= 0.05 counted
dai2014 training-storage <= 1.05 counted every
dai2014 training-cost <= 2.1 counted
yen2014 sparse-model >= 1.3 ratio
yen2014 comparable-accuracy >= -0.02 as-good
yen2014 comparable-rmse <= 1.07 ratio as-good
yen2014 less-memory >= 1 ratio
yen2014 faster-prediction >= 1 ratio
yen2014 faster-regression >= 1 ratio
yen2014 kernel-quadratic >= 1.9
yen2014 size-against-rows <= 0.9
yen2014 size-against-features <= 0.9
yen2014 sparse-reaches-kernel <= 1 ratio every
yen2014 boosting-stays-above >= 1 ratio
yen2014 boosting-exact-stays-above >= 1 ratio
yen2014 sooner-than-boosting >= 1 ratio
yen2014 kernel-objective <= 1 ratio
yen2014 rate <= 1.1 step=0.30103
yen2014 rate-to-limit <= -0.9
yen2014 rf-rate <= -0.4
yen2014 fewer-than-rf-10 >= 1 ratio step=2
yen2014 fewer-than-rf-1 >= 1 ratio step=2
yen2014 faster-than-rf <= 0
yen2014 bound <= 1 ratio
yen2014 bound-few <= 1
sinha2016 kernel-learned <= 1 ratio
sinha2016 feature-selection <= 0.11 ratio
sinha2016 selected-beats-random <= 1 ratio
sinha2016 same-error within 1 as-good
sinha2016 fewer-features-32 <= 1 ratio
sinha2016 fewer-features-128 <= 1 ratio
sinha2016 fewer-features-256 <= 1 ratio
sinha2016 faster >= 6 ratio step=2
sinha2016 joint-slower >= 10 ratio
sinha2016 joint-errs-less <= 1 ratio
wu2016 better-than-rf-32 <= 1 ratio
wu2016 better-than-nystrom-32 <= 1 ratio
wu2016 better-than-block-32 <= 1 ratio
wu2016 better-than-rf-1024 <= 1 ratio
wu2016 better-than-nystrom-1024 <= 1 ratio
wu2016 better-than-block-1024 <= 1 ratio
wu2016 advantage-diminishes >= 1 ratio
wu2016 reaches-kernel <= 1 as-good
wu2016 orders-of-magnitude-rf >= 10 ratio step=2
wu2016 orders-of-magnitude-nystrom >= 10 ratio step=2
wu2016 orders-of-magnitude-block >= 10 ratio step=2
wu2016 kappa-fewer >= 1 ratio step=2
wu2016 linear-time between 0.8 1.2
wu2016 bins-grow >= 0.5
wu2016 error-falls <= 0
wu2016 rate <= 1.1 step=0.60206
wu2016 rate-to-limit <= -0.9
wu2016 rate-l2 <= -0.9
wu2016 bound <= 1
wu2016 bound-few <= 1
wu2016 larger-kappa <= 0
wu2016 speedup >= 1.8 ratio
wu2016 no-speedup-rf <= 1.2 ratio
"""


class Rule:
    """A line of RULES."""

    def __init__(self, line):
        self.paper, self.claim, kind, *words = line.split()
        numbers = [float(word) for word in words if word[0] in "-.0123456789"]
        self.ratio, self.counted, self.as_good, self.every = (
            word in words for word in ("ratio", "counted", "as-good", "every")
        )
        steps = [float(word[5:]) for word in words if word.startswith("step=")]
        self.step = float(self.scaled(steps or [0 if not self.ratio else 1])[0])
        self.low, self.high = {
            "<=": (-math.inf, numbers[-1]),
            ">=": (numbers[0], math.inf),
            "within": (-numbers[0], numbers[0]),
            "between": (numbers[0], numbers[-1]),
        }[kind]

    def scaled(self, values):
        """Numbers on the scale of the interval."""
        return np.log(values) if self.ratio else np.asarray(values, float)

    @property
    def limits(self):
        ends = [end for end in (self.low, self.high) if math.isfinite(end)]
        return self.scaled(ends)


def p_value(rule, values, limit):
    """The p-value of a case: the larger of those of two-sided t-tests against the ends of the
    range, which are a step closer.
    """
    if limit not in ("", "or more", "or less") or not len(values):
        return 1.0
    if len(values) == 1 and not rule.counted:
        return 1.0
    mean, found = np.mean(values), []
    for end in rule.limits:
        # a limit says nothing about its other side
        hidden = (limit == "or more" and end > mean) or (limit == "or less" and end < mean)
        if hidden or abs(end - mean) < rule.step:
            found.append(1.0)
        elif np.ptp(values) == 0:
            found.append(0.0)
        else:
            closer = end - math.copysign(rule.step, end - mean)
            found.append(stats.ttest_1samp(values, closer).pvalue)
    return max(found)


def decided(rule, effects):
    """A line for each case of a claim. Holm's adjusted p-values decide."""
    cases = []
    for name, own in effects.items():
        values, limit = own if isinstance(own, tuple) else (own, "")
        if len(values) or limit:
            values = rule.scaled(values)
            # runs that are the same for every seed are one run
            alike = len(values) > 1 and np.ptp(values) == 0
            seeds = 1 if alike and not rule.step else len(values)
            cases.append((name, values, limit, seeds, p_value(rule, values, limit)))
    table = pd.DataFrame(cases, columns=["case", "own", "limit", "seeds", "p"])
    tested = table[table.limit != "vacuous"].sort_values(["p", "case"])
    remaining = np.arange(len(tested), 0, -1)
    adjusted = np.maximum.accumulate(tested.p * remaining)
    n_open = (adjusted > 0.05).sum()
    table["is_decided"] = (adjusted <= 0.05).reindex(table.index, fill_value=False)
    levels = pd.Series(0.05 / np.maximum(remaining, n_open), tested.index)
    table["level"] = levels.reindex(table.index, fill_value=0.05)
    lines = [described(rule, case) for case in table.itertuples()]
    return pd.DataFrame(lines, index=table.index)


def described(rule, case):
    """The line of a case, with the interval at its level."""
    back = np.exp if rule.ratio else float
    n = len(case.own)
    mean = np.mean(case.own) if n else math.nan
    half = rule.step
    if n > 1 and np.ptp(case.own):
        half += stats.t.ppf(1 - case.level / 2, n - 1) * stats.sem(case.own)
    known = n > 1 or (n == 1 and rule.counted)
    outcome = "open"
    if case.limit == "vacuous":
        outcome = "vacuous"
    elif case.is_decided:
        outcome = "yes" if rule.low <= back(mean) <= rule.high else "no"
    return {
        "paper": rule.paper,
        "claim": rule.claim,
        "case": case.case,
        "mean": back(mean),
        "low": back(mean - half) if known and case.limit in ("", "or more") else None,
        "high": back(mean + half) if known and case.limit in ("", "or less") else None,
        "seeds": case.seeds,
        "level": case.level,
        "outcome": outcome,
        "limit": case.limit,
    }


def verdict(rule, cases):
    """The verdict on a claim from its cases."""
    counts = cases.outcome.value_counts()
    yes, no, undecided = (int(counts.get(word, 0)) for word in ("yes", "no", "open"))
    n = yes + no + undecided
    if n == 0:
        return "vacuous"
    if no == n or (rule.every and no):
        return "not reproduced"
    if yes == n:
        # a margin on one side holds for both
        low, high = rule.low, rule.high
        low = (1 / high if rule.ratio else -high) if low == -math.inf else low
        high = (1 / low if rule.ratio else -low) if high == math.inf else high
        own = cases[cases.outcome != "vacuous"]
        within = own.low.ge(low).all() and own.high.le(high).all()
        return "no difference of more than the margin" if rule.as_good and within else "reproduced"
    if yes and no:
        return "mixed"
    if yes > n / 2:
        return "mostly reproduced"
    return "mostly contradicted" if no > n / 2 else "undecided"


def everything():
    """A line for each case, with the verdict on its claim."""
    effects = {"dai2014": dai(), "yen2014": yen(), "sinha2016": sinha(), "wu2016": wu()}
    lines = []
    for rule in map(Rule, RULES.strip().splitlines()):
        # a claim about Tables 1 and 2 by the paper's protocol, and with setting tuned
        for name in (rule.claim, f"{rule.claim}-tuned"):
            cases = decided(rule, effects[rule.paper].pop(name, {}))
            if len(cases):
                lines.append(cases.assign(claim=name, verdict=verdict(rule, cases)))
    left = [name for own in effects.values() for name in own]
    assert not left, f"no rule for {left}"
    return pd.concat(lines, ignore_index=True)


if __name__ == "__main__":
    print(everything().to_string())
