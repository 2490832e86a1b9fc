"""Recompute every effect and interval of the papers' claims from docs/rows, with pandas and scipy
alone: no code of rfx takes part. `python tests/papers/recompute_claims.py` prints them, and
`test_kept.py` compares them with `rfx table claims`.
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
    both = both[(both.a > 0) & (both.b > 0)]
    return lists(both.a / both.b)


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
    cost = cost.assign(training=cost.seconds_steps.fillna(cost.seconds))
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
        "rate": distance_slopes(printed, 1.0),
        "rate-shifted": distance_slopes(shifted, 1.0),
        "generalisation": distance_slopes(shifted, 0.5),
        "bound": over_bound(printed, zero=False),
        "bound-zero": over_bound(printed, zero=True),
        "storage": growth(cost, "model_bytes"),
        "training-storage": growth(cost, "training_bytes"),
        "training-cost": growth(cost, "training"),
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
                if len(second) == 1:
                    second = pd.Series(second.iloc[0], first.index)
                both = pd.concat([first, second], axis=1, keys=["a", "b"]).dropna()
                found[f"{dataset} {kernel}"] = list(
                    both.a - both.b if difference else both.a / both.b
                )
    return found


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
        for seed, row in sides["boosting"].iterrows():
            slow = ends.loc[row.key]
            fast = trace[trace.key == sides["sparse-rf"].key.get(seed)]
            fast = fast[fast.objective / row.n_train <= slow.objective / row.n_train]
            if len(fast):
                found.setdefault("sooner-than-boosting", {}).setdefault(name, []).append(
                    slow.cpu_seconds / fast.cpu_seconds.iloc[0]
                )


TABLE_CLAIMS = {
    "sparse-model": (("table1", "table2"), "model_size", "rf", "sparse-rf"),
    "comparable-accuracy": (("table2",), "score", "sparse-rf", "rf"),
    "comparable-rmse": (("table1",), "score", "sparse-rf", "rf"),
    "less-memory": (("table1", "table2"), "peak_rss_mb", "rf", "sparse-rf"),
    "faster-prediction": (("table1", "table2"), "seconds_predict", "rf", "sparse-rf"),
    "faster-regression": (("table1",), "seconds", "rf", "sparse-rf"),
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
    held = [min(one[-1] for one in steps_of(row)[-1]["tried"]) for row in table.itertuples()]
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
    by_scores = joint.seconds_scores + joint.seconds_maximise
    joint = joint.assign(choice=joint.seconds_joint.fillna(by_scores))
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
        "faster": reach(table, "seconds", "wrong", asked(128), "lkrf", "rf"),
        "joint-slower": pairs(*(last(side, "choice") for side in sides)),
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
    large = table[table.R.isin([128, 256, 512, 1024]) & (table.method != "kernel")]
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
                table, "seconds", "error", error("rb", 64), "rb", other
            )
            for other in WIDE
        },
        "kappa-fewer": reach(few, "cost", "error", error("rb", 16), "rb", "rf"),
        "linear-time": slopes(large, "seconds", "R", ("dataset", "method")),
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
    "dai2014": "8v6-best forest-better ripple low-rank-worse quantum-machine"
    " quantum-machine-million bound",
    "yen2014": "sparse-model comparable-rmse less-memory faster-prediction faster-regression"
    " sparse-reaches-kernel boosting-stays-above boosting-exact-stays-above sooner-than-boosting"
    " kernel-objective fewer-than-rf-10 fewer-than-rf-1 bound",
    "sinha2016": "kernel-learned feature-selection selected-beats-random fewer-features-32"
    " fewer-features-128 fewer-features-256 faster joint-slower joint-errs-less",
    "wu2016": "better-than-rf-32 better-than-nystrom-32 better-than-block-32 better-than-rf-1024"
    " better-than-nystrom-1024 better-than-block-1024 advantage-diminishes orders-of-magnitude-rf"
    " orders-of-magnitude-nystrom orders-of-magnitude-block kappa-fewer speedup no-speedup-rf",
}
COUNTS = "storage storage-dimension training-storage bound-zero bound-few"
GRIDS = "rate fewer-than-rf-10 fewer-than-rf-1"


def everything():
    papers = {"dai2014": dai(), "yen2014": yen(), "sinha2016": sinha(), "wu2016": wu()}
    kinds = {
        (paper, claim): (
            claim.removesuffix("-tuned") in RATIOS[paper].split(),
            claim in COUNTS.split(),
            claim in GRIDS.split() and paper != "dai2014",
        )
        for paper, claims in papers.items()
        for claim in claims
    }
    return intervals(papers, kinds)


if __name__ == "__main__":
    print(everything().to_string())
