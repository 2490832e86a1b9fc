"""The claims of Yen et al. (2014) about sparse random features."""

from collections.abc import Callable, Sequence
from typing import Any

from rfx.papers.yen2014 import figure1, theory
from rfx.papers.yen2014.tables import OURS, TABLE1, TABLE2
from rfx.records.result import seconds_train
from rfx.reporting.claims import Claim
from rfx.reporting.measures import Effects, Limits, Measure, Row, exponent

_FIGURE1 = _COROLLARY1 = "ours: lambda is not printed"


def _beside(
    field: Callable[[Row], float | None],
    first: str,
    second: str,
    setting: str,
    difference: bool = False,
) -> Measure:
    """The ratio or difference of a quantity of two methods in the cells of Tables 1 and 2, of each
    seed. A method with a single seed is compared with every seed of the other.
    """

    def measure(rows: Sequence[Row]) -> Effects:
        found: dict[str, list[float]] = {}
        for data in (*TABLE1.data, *TABLE2.data):
            # generated rows have no errors of interest, and 20,000 rows of covtype are covtype
            if data.generated or data.name == "covtype-20k":
                continue
            own = [row for row in rows if row["dataset"] == data.name]
            picked = (TABLE2 if data in TABLE2.data else TABLE1).pick(own, setting)
            for kernel in ("gaussian", "laplacian", "perceptron"):
                line = kernel if (kernel, second) in picked else OURS
                sides = [
                    {row["seed"]: field(row) for row in picked.get((line, method), ())}
                    for method in (first, second)
                ]
                pairs = [
                    (ours, sides[1].get(seed) if len(sides[1]) > 1 else [*sides[1].values()][0])
                    for seed, ours in sides[0].items()
                    if sides[1]
                ]
                found[f"{data.name} {kernel}"] = [
                    ours - theirs if difference else ours / theirs
                    for ours, theirs in pairs
                    if ours is not None and theirs
                ]
        return found

    return measure


def _ends(curve: str) -> Measure:
    """The last objective of a curve of Figure 1 over the kernel machine's line, of each seed, on
    the paper's data sets; the other panels are parts of them.
    """

    def measure(rows: Sequence[Row]) -> Effects:
        return {
            name: [
                end / line.bound(row["seed"])
                for end, row in zip(curves[curve].ends(1), curves[curve].rows)
            ]
            for name, (curves, line) in figure1.found(rows).items()
            if name in figure1.AXES and curve in curves and line is not None
        }

    return measure


def _sooner(rows: Sequence[Row]) -> Effects:
    """Seconds of boosting over those of Sparse-RF until its objective is that at which boosting
    ends, of each seed.
    """
    found: dict[str, list[float]] = {}
    for name, (curves, _) in figure1.found(rows).items():
        if name in figure1.AXES and {"sparse-rf", "boosting"} <= curves.keys():
            runs = {
                row["seed"]: run
                for row, run in zip(curves["sparse-rf"].rows, curves["sparse-rf"].runs)
            }
            for row, (seconds, objectives, _) in zip(
                curves["boosting"].rows, curves["boosting"].runs
            ):
                ours = runs.get(row["seed"])
                if ours is not None and (below := ours[1] <= objectives[-1]).any():
                    found.setdefault(name, []).append(seconds[-1] / ours[0][below][0])
    return found


def _theory(effects: Callable[[theory.Case], Sequence[float] | Limits]) -> Measure:
    """Effects of each data set and kernel of the plan corollary1."""
    return lambda rows: {f"{one.dataset} {one.kernel}": effects(one) for one in theory.cases(rows)}


def _at_size(effect: Callable[[theory.Case, int, float], float], few: bool = False) -> Measure:
    """An effect of a case, a number of features and the objective there, of each seed. The number
    is the smallest, or the largest of several seeds.
    """

    def effects(one: theory.Case) -> list[float]:
        values = one.excess.values
        most = max(map(len, values.values()))
        size = min(values) if few else max(size for size in values if len(values[size]) == most)
        return [effect(one, size, objective) for objective in values[size]]

    return _theory(effects)


def _difference(one: theory.Case) -> list[float]:
    """The exponent of Sparse-RF less that of RF, of each seed with both."""
    ours, theirs = one.excess.slopes(), one.rf_slopes()
    return [ours[seed] - theirs[seed] for seed in sorted(ours.keys() & theirs.keys())]


def _fewer(share: float) -> Measure:
    """Features of RF over those of Sparse-RF until the objective is within a share of the kernel
    machine's, of each seed. A seed of RF that never is has its largest number.
    """

    def effects(one: theory.Case) -> list[float] | Limits:
        if one.rf is None:
            return []
        ours = one.excess.within(one.reference.value, share)
        theirs = one.rf.within(one.reference.objective, share, below=False)
        most = max(one.rf.values)
        sizes = [(size, theirs[seed]) for seed, size in ours.items() if size and seed in theirs]
        values = [(other or most) / size for size, other in sizes]
        return values if all(other for _, other in sizes) else Limits(values, "or more")

    return _theory(effects)


def _in_both(
    name: str, where: str, says: str, effect: str, measure: Callable[[str], Measure], **more: Any
) -> list[Claim]:
    """A claim about Tables 1 and 2 by the paper's protocol, and the same with setting tuned."""
    plans = more.pop("plan", "table1 table2")
    return [
        Claim(
            name,
            where,
            says,
            effect,
            plans,
            measure("paper"),
            settings="printed: lambda of Sparse-RF on test rows; gamma is inferred",
            **more,
        ),
        Claim(
            f"{name}-tuned",
            where,
            f"The same with every setting by validation: {says[0].lower()}{says[1:]}",
            effect,
            plans,
            measure("tuned"),
            settings="held-out rows",
            **more,
        ),
    ]


CLAIMS = [
    *_in_both(
        "sparse-model",
        "Abstract; Tables 1 and 2",
        "The L1 penalty keeps a part of the random features.",
        "features of RF for each non-zero weight of Sparse-RF",
        lambda setting: _beside(lambda row: row["model_size"], "rf", "sparse-rf", setting),
        least=1.3,
        ratio=True,
    ),
    *_in_both(
        "comparable-accuracy",
        "Abstract; Table 2",
        "Sparse-RF classifies as well as RF.",
        "accuracy of Sparse-RF less that of RF",
        lambda setting: _beside(lambda row: row["score"], "sparse-rf", "rf", setting, True),
        plan="table2",
        least=-0.02,
    ),
    *_in_both(
        "comparable-rmse",
        "Abstract; Table 1",
        "Sparse-RF predicts as well as RF.",
        "RMSE of Sparse-RF over that of RF",
        lambda setting: _beside(lambda row: row["score"], "sparse-rf", "rf", setting),
        plan="table1",
        most=1.07,
        ratio=True,
    ),
    *_in_both(
        "less-memory",
        "Abstract; Tables 1 and 2",
        "Training Sparse-RF takes less memory than training RF.",
        "peak memory of RF over that of Sparse-RF, interpreter included",
        lambda setting: _beside(lambda row: row["peak_rss_mb"], "rf", "sparse-rf", setting),
        least=1.0,
        ratio=True,
    ),
    *_in_both(
        "faster-prediction",
        "Abstract; Tables 1 and 2",
        "A sparse model predicts faster.",
        "prediction seconds of RF over those of Sparse-RF",
        lambda setting: _beside(lambda row: row["seconds_predict"], "rf", "sparse-rf", setting),
        least=1.0,
        ratio=True,
    ),
    *_in_both(
        "faster-regression",
        "Table 1",
        "For regression Sparse-RF trains faster than RF.",
        "training seconds of RF over those of Sparse-RF",
        lambda setting: _beside(seconds_train, "rf", "sparse-rf", setting),
        plan="table1",
        least=1.0,
        ratio=True,
    ),
    Claim(
        "kernel-quadratic",
        "Section 5",
        "The cost of the kernel method grows at least quadratically with the number of rows.",
        "exponent of the number of rows in the training seconds, covtype and its first 20,000 rows",
        "table2",
        exponent(
            "seconds",
            "n_train",
            {"method": "kernel", "label": "paper", "dataset": ("covtype-20k", "covtype")},
            ("kernel",),
            places=2,
        ),
        least=1.9,
        settings="printed; gamma is inferred",
        why="there is one run for each size, of up to half an hour: rfx run yen2014-table2-full",
    ),
    Claim(
        "size-against-rows",
        "Section 2",
        "The model of Sparse-RF does not grow linearly with the number of rows.",
        "exponent of the number of rows in the number of non-zero weights",
        "growth",
        exponent(
            "model_size", "n_train", {"method": "sparse-rf", "label": "growth"}, ("method", "lam")
        ),
        most=0.9,
        settings="ours",
    ),
    Claim(
        "size-against-features",
        "Sections 1 and 2",
        "The model of Sparse-RF does not grow linearly with the number of features drawn.",
        "exponent of D in the number of non-zero weights",
        "corollary1",
        exponent(
            "model_size",
            "n_features",
            {"method": "sparse-rf", "label": "corollary1"},
            ("dataset", "kernel"),
        ),
        most=0.9,
        settings=_COROLLARY1,
    ),
    Claim(
        "sparse-reaches-kernel",
        "Figure 1",
        "Sparse-RF always reaches an objective comparable to the kernel machine's.",
        "last objective of Sparse-RF over the kernel machine's line",
        "figure1",
        _ends("sparse-rf"),
        most=1.0,
        ratio=True,
        settings=_FIGURE1,
    ),
    Claim(
        "boosting-stays-above",
        "Figure 1",
        "Boosting with approximate greedy steps ends at a higher objective.",
        "last objective of boosting over the kernel machine's line",
        "figure1",
        _ends("boosting"),
        least=1.0,
        ratio=True,
        settings=_FIGURE1,
    ),
    Claim(
        "boosting-exact-stays-above",
        "Figure 1",
        "The same, where each step takes the best threshold for the direction found.",
        "last objective of boosting with exact thresholds over the kernel machine's line",
        "figure1",
        _ends("boosting-exact"),
        least=1.0,
        ratio=True,
        settings=_FIGURE1,
    ),
    Claim(
        "sooner-than-boosting",
        "Section 4; Figure 1",
        "Sparse-RF converges faster than approximate boosting.",
        "processor seconds of boosting over those of Sparse-RF, to the last objective of boosting",
        "figure1",
        _sooner,
        least=1.0,
        ratio=True,
        settings=_FIGURE1,
    ),
    Claim(
        "kernel-objective",
        "Abstract; Corollary 1",
        "The objective of Sparse-RF comes down to that of the kernel machine.",
        "objective over F*, at the largest D of several seeds",
        "corollary1",
        _at_size(lambda one, size, objective: objective / one.reference.value),
        most=1.0,
        ratio=True,
        settings=_COROLLARY1,
    ),
    Claim(
        "rate",
        "Theorem 1, Corollary 1",
        "Sparse-RF is within epsilon of the kernel machine by drawing O(1/epsilon) features.",
        "exponent of 1/epsilon in the number of features, from 10 to 1 % of F*",
        "corollary1",
        _theory(lambda one: one.excess.for_precision(one.reference.value)),
        most=1.1,
        grid=True,
        settings=_COROLLARY1,
    ),
    Claim(
        "rate-to-limit",
        "Theorem 1, Corollary 1",
        "The objective approaches that of infinitely many features like 1/D (the theorem does not"
        " say so: its distance is from the kernel machine).",
        "exponent of D in the objective above its limit",
        "corollary1",
        _theory(lambda one: list(one.excess.slopes().values())),
        most=-0.9,
        settings=_COROLLARY1,
    ),
    Claim(
        "rf-rate",
        "Abstract; Section 2",
        "The objective of RF approaches the kernel machine's at least like 1/sqrt(D).",
        "exponent of D in the distance of RF's objective from that of the exact kernel machine",
        "corollary1",
        _theory(lambda one: list(one.rf_slopes().values())),
        most=-0.4,
        settings=_COROLLARY1,
    ),
    *(
        Claim(
            f"fewer-than-rf-{percent}",
            "Abstract; Corollary 1",
            f"Sparse-RF needs fewer features than RF to be within {percent} % of the exact kernel"
            " machine.",
            "features of RF over those of Sparse-RF",
            "corollary1",
            _fewer(percent / 100),
            least=1.0,
            ratio=True,
            grid=True,
            settings=_COROLLARY1,
        )
        for percent in (10, 1)
    ),
    Claim(
        "faster-than-rf",
        "Abstract; Corollary 1",
        "The rate of Sparse-RF to its own limit is faster than that of RF to the kernel machine"
        " (the paper compares rates to the kernel machine).",
        "exponent of D of Sparse-RF (to its limit) less that of RF (to the kernel machine)",
        "corollary1",
        _theory(_difference),
        most=0.0,
        settings=_COROLLARY1,
    ),
    Claim(
        "bound",
        "Corollary 1",
        "The bound limits the objective after D features (one over the effect is its slack).",
        "objective over the bound, at the largest D of several seeds",
        "corollary1",
        _at_size(lambda one, size, objective: objective / one.reference.bound(size, one.curvature)),
        most=1.0,
        ratio=True,
        settings=_COROLLARY1,
    ),
    Claim(
        "bound-few",
        "Corollary 1",
        "The bound limits the objective after few features.",
        "objective of zero weights over the bound, at the smallest D",
        "corollary1",
        _at_size(
            lambda one, size, objective: (
                one.reference.zero / one.reference.bound(size, one.curvature)
            ),
            few=True,
        ),
        most=1.0,
        vacuous=True,
        counted=True,
        settings=_COROLLARY1,
    ),
]
