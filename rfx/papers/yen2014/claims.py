"""The claims of Yen et al. (2014) about sparse random features."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from rfx.papers.yen2014 import figure1, theory
from rfx.records.result import seconds_train
from rfx.reporting.claims import Claim, Effects, paired

Row = Mapping[str, Any]
_TUNED = "held-out rows"


def _tuned(method: str) -> Callable[[Row], bool]:
    return lambda row: row["method"] == method and row["params"].get("label") == "tuned"


def _case(row: Row) -> str:
    return f"{row['dataset']} {row['kernel']}"


def _beside(
    value: Callable[[Row], float | None], first: str, second: str, difference: bool = False
) -> Callable[[Sequence[Row]], Effects]:
    """The ratio or difference of a quantity of two methods, on the real data sets."""

    def measure(rows: Sequence[Row]) -> Effects:
        real = [row for row in rows if not row["dataset"].endswith("-sized")]
        return paired(real, _tuned(first), _tuned(second), value, _case, difference)

    return measure


def _ends(curve: str) -> Callable[[Sequence[Row]], Effects]:
    """The last objective of a curve of Figure 1 divided by the kernel machine's line, for each
    seed.
    """

    def measure(rows: Sequence[Row]) -> Effects:
        found: Effects = {}
        for name, (curves, line) in figure1.found(rows).items():
            if curve in curves and line is not None:
                own = curves[curve]
                found[name] = [
                    end / line.bound(row["seed"]) for end, row in zip(own.ends(1), own.rows)
                ]
        return found

    return measure


def _slopes(rows: Sequence[Row]) -> Effects:
    """The exponent of D in the objective above its limit, for each seed."""
    return _by_case(rows, lambda one: one.excess.slopes().values())


def _rf_slopes(rows: Sequence[Row]) -> Effects:
    """The exponent of D in the objective of RF above the kernel machine's, for each seed."""
    return _by_case(rows, lambda one: one.rf_slopes().values())


def _faster(rows: Sequence[Row]) -> Effects:
    """The exponent of Sparse-RF minus that of RF, for each seed with both."""

    def differences(one: theory.Case) -> Iterable[float]:
        ours, theirs = one.excess.slopes(), one.rf_slopes()
        return [ours[seed] - theirs[seed] for seed in sorted(ours.keys() & theirs.keys())]

    return _by_case(rows, differences)


def _by_case(rows: Sequence[Row], effects: Callable[[theory.Case], Iterable[float]]) -> Effects:
    return {f"{one.dataset} {one.kernel}": list(effects(one)) for one in theory.cases(rows)}


def _at_size(
    quantity: Callable[[theory.Case, int, float], float], few: bool = False
) -> Callable[[Sequence[Row]], Effects]:
    """A quantity computed from a case, a number of features and the objective there, for each seed.

    The number is the smallest, or the largest that slopes use.
    """

    def measure(rows: Sequence[Row]) -> Effects:
        found: Effects = {}
        for one in theory.cases(rows):
            largest = max(one.excess.values)
            sizes = [size for size in one.excess.values if size <= largest / 16]
            size = min(sizes) if few else max(sizes)
            found[f"{one.dataset} {one.kernel}, D = {size:,}"] = [
                quantity(one, size, objective) for objective in one.excess.values[size]
            ]
        return found

    return measure


def _over_kernel(one: theory.Case, size: int, objective: float) -> float:
    return objective / one.reference.value


def _over_bound(one: theory.Case, size: int, objective: float) -> float:
    return objective / one.reference.bound(size, one.curvature)


def _zero_over_bound(one: theory.Case, size: int, objective: float) -> float:
    return one.reference.zero / one.reference.bound(size, one.curvature)


def _relative_error(row: Row) -> float | None:
    """RMSE, or the fraction of wrong labels."""
    score = row["score"]
    return None if score is None else score if row["metric"] == "rmse" else 1 - score


CLAIMS = [
    Claim(
        "sparse-model",
        "Abstract; Tables 1 and 2",
        "The L1 penalty keeps a small part of the random features.",
        "features of RF for each non-zero weight of Sparse-RF",
        "table2",
        _beside(lambda row: row["model_size"], "rf", "sparse-rf"),
        least=2.0,
        ratio=True,
        settings=_TUNED,
    ),
    Claim(
        "sparse-model-regression",
        "Table 1",
        "The same holds for regression.",
        "features of RF for each non-zero weight of Sparse-RF",
        "table1",
        _beside(lambda row: row["model_size"], "rf", "sparse-rf"),
        least=2.0,
        ratio=True,
        settings=_TUNED,
    ),
    Claim(
        "comparable-accuracy",
        "Abstract; Table 2",
        "Sparse-RF classifies as well as RF.",
        "accuracy of Sparse-RF less that of RF",
        "table2",
        _beside(lambda row: row["score"], "sparse-rf", "rf", difference=True),
        least=-0.01,
        settings=_TUNED,
    ),
    Claim(
        "comparable-rmse",
        "Abstract; Table 1",
        "Sparse-RF predicts as well as RF.",
        "RMSE of Sparse-RF over that of RF",
        "table1",
        _beside(_relative_error, "sparse-rf", "rf"),
        most=1.05,
        ratio=True,
        settings=_TUNED,
    ),
    Claim(
        "less-memory",
        "Abstract; Tables 1 and 2",
        "Training Sparse-RF takes less memory than training RF.",
        "peak memory of RF over that of Sparse-RF, interpreter included",
        "table2",
        _beside(lambda row: row["peak_rss_mb"], "rf", "sparse-rf"),
        least=1.0,
        ratio=True,
        settings=_TUNED,
    ),
    Claim(
        "faster-prediction",
        "Abstract; Tables 1 and 2",
        "A sparse model predicts faster.",
        "prediction seconds of RF over those of Sparse-RF",
        "table2",
        _beside(lambda row: row["seconds_predict"], "rf", "sparse-rf"),
        least=1.0,
        ratio=True,
        settings=_TUNED,
    ),
    Claim(
        "faster-regression",
        "Table 1",
        "For regression Sparse-RF trains faster than RF.",
        "training seconds of RF over those of Sparse-RF",
        "table1",
        _beside(seconds_train, "rf", "sparse-rf"),
        least=1.0,
        ratio=True,
        settings=_TUNED,
    ),
    Claim(
        "kernel-slower",
        "Section 4",
        "The exact kernel machine trains more slowly than RF.",
        "training seconds of the kernel machine over those of RF",
        "table2",
        _beside(seconds_train, "kernel", "rf"),
        least=1.0,
        ratio=True,
        settings=_TUNED,
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
        settings="ours: lambda is not printed",
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
        settings="ours: lambda is not printed",
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
        settings="ours: lambda is not printed",
    ),
    Claim(
        "kernel-objective",
        "Abstract; Corollary 1",
        "The objective of Sparse-RF comes down to that of the kernel machine.",
        "objective over F*, at the largest D of the slopes",
        "corollary1",
        _at_size(_over_kernel),
        most=1.0,
        ratio=True,
        settings="ours: lambda is not printed",
    ),
    Claim(
        "rate",
        "Theorem 1, Corollary 1",
        "The objective approaches that of infinitely many features like 1/D (the theorem bounds the"
        " distance to the kernel machine's).",
        "exponent of D in the objective above its limit",
        "corollary1",
        _slopes,
        most=-1.0,
        settings="ours: lambda is not printed",
    ),
    Claim(
        "rf-rate",
        "Abstract; Section 2",
        "The objective of RF approaches the kernel machine's like 1/sqrt(D).",
        "exponent of D in the distance of RF's objective from that of the exact kernel machine",
        "corollary1",
        _rf_slopes,
        least=-0.6,
        most=-0.4,
        settings="ours: lambda is not printed",
    ),
    Claim(
        "faster-than-rf",
        "Abstract; Corollary 1",
        "Sparse-RF needs fewer features than RF for the same distance: 1/D against 1/sqrt(D).",
        "exponent of D of Sparse-RF (to its limit) less that of RF (to the kernel machine)",
        "corollary1",
        _faster,
        most=0.0,
        settings="ours: lambda is not printed",
    ),
    Claim(
        "bound",
        "Corollary 1",
        "The bound limits the objective after D features (one over the effect is its slack).",
        "objective over the bound, at the largest D of the slopes",
        "corollary1",
        _at_size(_over_bound),
        most=1.0,
        ratio=True,
        settings="ours: lambda is not printed",
    ),
    Claim(
        "bound-few",
        "Corollary 1",
        "The bound limits the objective after few features.",
        "objective of zero weights over the bound, at the smallest D",
        "corollary1",
        _at_size(_zero_over_bound, few=True),
        most=1.0,
        vacuous=True,
        settings="ours: lambda is not printed",
    ),
]
