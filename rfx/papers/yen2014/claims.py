"""The claims of Yen et al. (2014) about sparse random features."""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from operator import attrgetter, itemgetter
from typing import Any

import numpy as np

from rfx.papers.yen2014 import curves as yen
from rfx.papers.yen2014.tables import OURS, TABLE1, TABLE2
from rfx.reporting.cells import Row
from rfx.reporting.claims import Claim
from rfx.reporting.effects import (
    Effects,
    Frame,
    Limits,
    Measure,
    censored,
    exponent,
    measure,
)

_FIGURE1 = _COROLLARY1 = "ours: lambda is not printed"
# the exponent of 1/epsilon, with a margin of 0.1
_RATE = 1.1


# generated rows have no errors of interest, and 20,000 rows of covtype are covtype
_DATA = [
    (data.name, table)
    for table in (TABLE1, TABLE2)
    for data in table.data
    if not data.generated and data.name != "covtype-20k"
]


def _fit_seconds(row: Row) -> float | None:
    """The least processor seconds of several fits."""
    return row.params.get("least_seconds_cpu")


def _predict_seconds(row: Row) -> float | None:
    """The least processor seconds of several predictions; seconds by the clock of a row without
    them, if it had one thread.
    """
    clock = row.seconds_predict if row.threads == 1 else None
    return row.params.get("least_seconds_cpu_predict", clock)


def _fit_memory(row: Row) -> float | None:
    """The peak memory of fits, without the choice of options."""
    chosen = "seconds_validation" in row.params
    return row.params.get("fit_rss_mb", None if chosen else row.peak_rss_mb)


@measure
def _beside(
    table: Frame,
    field: Callable[[Row], float | None],
    first: str,
    second: str,
    setting: str,
    difference: bool = False,
) -> Effects:
    """The ratio or difference of a quantity of two methods in the cells of Tables 1 and 2, in pairs
    of one seed.
    """
    effects: dict[str, list[float]] = {}
    for name, printed in _DATA:
        picked = printed.pick([row for row in table["row"] if row.dataset == name], setting)
        for kernel in ("gaussian", "laplacian", "perceptron"):
            line = kernel if (kernel, second) in picked else OURS
            ours = {row.seed: field(row) for row in picked.get((line, first), ())}
            theirs = {row.seed: field(row) for row in picked.get((line, second), ())}
            effects[f"{name} {kernel}"] = [
                value - other if difference else value / other
                for seed, value in ours.items()
                if value is not None and (other := theirs.get(seed))
            ]
    return effects


def _panels(table: Frame, *needed: str) -> list[tuple[str, dict, yen.Line | None]]:
    """The paper's data sets with these curves of Figure 1; the other panels are parts of them."""
    return [
        (name, curves, line)
        for name, (curves, line) in yen.figure1(table["row"]).items()
        if name in yen.AXES and curves.keys() >= set(needed)
    ]


@measure
def _ends(table: Frame, curve: str) -> Effects:
    """The last objective of a curve of Figure 1 over the kernel machine's line, of each seed."""
    effects = {}
    for name, curves, line in _panels(table, curve):
        if line is not None:
            runs = curves[curve].runs.items()
            effects[name] = [run["objective"][-1] / line.bound(seed) for seed, run in runs]
    return effects


@measure
def _sooner(table: Frame) -> Effects:
    """Seconds of boosting over those of Sparse-RF until its objective is that at which boosting
    ends, of each seed. A seed of Sparse-RF that never is there has all its seconds.
    """
    effects: dict[str, Sequence[float] | Limits] = {}
    for name, curves, _ in _panels(table, "sparse-rf", "boosting"):
        ours, theirs = curves["sparse-rf"].runs, curves["boosting"].runs
        pairs = [(ours[seed], run) for seed, run in theirs.items() if seed in ours]
        waits = [_seconds_until(run, other["objective"][-1]) for run, other in pairs]
        values = [
            other["seconds"][-1] / (run["seconds"][-1] if wait is None else wait)
            for wait, (run, other) in zip(waits, pairs, strict=True)
        ]
        effects[name] = censored(values, may_be_more=False, may_be_less=None in waits)
    return effects


def _seconds_until(run: Mapping[str, np.ndarray], objective: float) -> float | None:
    """The seconds until a curve is at most at this objective; None if it never is."""
    below = run["seconds"][run["objective"] <= objective]
    return below[0] if len(below) else None


@measure
def _theory(table: Frame, effects: Callable[[yen.Case], Sequence[float] | Limits]) -> Effects:
    """Effects of each data set and kernel of the plan corollary1."""
    return {f"{one.dataset} {one.kernel}": effects(one) for one in yen.cases(table["row"])}


def _largest(one: yen.Case) -> int:
    """The largest number of features that every seed has."""
    counts = one.excess.objectives.count()
    return counts.index[counts == counts.max()][-1]


def _over_kernel(one: yen.Case) -> list[float]:
    """The objective over F*, at the largest number of features."""
    return [objective / one.reference.value for objective in one.excess.at(_largest(one))]


def _over_bound(one: yen.Case) -> Sequence[float] | Limits:
    """The objective over the bound, at the largest number of features."""
    size = _largest(one)
    return one.reference.over_bound(one.excess.at(size), size)


def _over_first_bound(one: yen.Case) -> Sequence[float] | Limits:
    """The objective over the bound, at the smallest number of features."""
    size = one.excess.sizes[0]
    return one.reference.over_bound(one.excess.at(size), size)


def _rate(one: yen.Case) -> Sequence[float] | Limits:
    """The exponent of 1/epsilon in the number of features."""
    return one.excess.exponent_for_precision(one.reference.value, _RATE)


def _difference(one: yen.Case) -> Sequence[float] | Limits:
    """The exponent of Sparse-RF less that of RF, of each seed."""
    for side in (one.excess.rates, one.rf.rates):
        if isinstance(side, Limits):
            return Limits((), side.kind)
    ours, theirs = one.excess.slopes, one.rf.slopes
    return [ours[seed] - theirs[seed] for seed in sorted(ours.keys() & theirs.keys())]


def _fewer(share: float) -> Measure:
    """Features of RF over those of Sparse-RF until the objective is within a share of the kernel
    machine's, of each seed. A seed that never is has the largest number it was run with.
    """

    def effects(one: yen.Case) -> Sequence[float] | Limits:
        ours = one.excess.within(one.reference.value, share)
        theirs = one.rf.within(one.reference.objective, share, below=False)
        seeds = [seed for seed in ours if seed in theirs]
        most, most_of_rf = one.excess.largest_sizes, one.rf.largest_sizes
        values = [(theirs[seed] or most_of_rf[seed]) / (ours[seed] or most[seed]) for seed in seeds]
        return censored(
            values,
            may_be_more=not all(theirs[seed] for seed in seeds),
            may_be_less=not all(ours[seed] for seed in seeds),
        )

    return _theory(effects)


_OVER, _UNDER = ("rf", "sparse-rf"), ("sparse-rf", "rf")


def _in_both(
    name: str,
    where: str,
    says: str,
    effect: str,
    field: Callable[[Row], float | None],
    methods: tuple[str, str],
    plan: str = "table1 table2",
    difference: bool = False,
    **more: Any,
) -> list[Claim]:
    """A claim about a quantity of two methods in Tables 1 and 2 by the paper's protocol, and the
    same with setting tuned.
    """
    claim = partial(Claim, where=where, effect=effect, plan=plan, **more)
    tuned = f"The same with every setting by validation: {says[0].lower()}{says[1:]}"
    return [
        claim(
            name=name,
            says=says,
            measure=_beside(field, *methods, "paper", difference),
            settings="printed: lambda of Sparse-RF on test rows; gamma is inferred",
            why=_HOURS.format("paper"),
        ),
        claim(
            name=f"{name}-tuned",
            says=tuned,
            measure=_beside(field, *methods, "tuned", difference),
            settings="held-out rows: one bandwidth for both, lambda of each by the same search",
            why=_HOURS.format("tuned"),
        ),
    ]


_HOURS = "its runs take hours: rfx run, of these plans, --only label={}"
_figure1 = partial(Claim, plan="figure1", settings=_FIGURE1)
_corollary1 = partial(Claim, plan="corollary1", settings=_COROLLARY1)

ERRORS = [
    *_in_both(
        "sparse-model",
        "Abstract; Tables 1 and 2",
        "The L1 penalty keeps a part of the random features.",
        "features of RF for each non-zero weight of Sparse-RF",
        itemgetter("model_size"),
        _OVER,
        least=1.3,
        ratio=True,
    ),
    *_in_both(
        "comparable-accuracy",
        "Abstract; Table 2",
        "Sparse-RF classifies as well as RF.",
        "accuracy of Sparse-RF less that of RF",
        itemgetter("score"),
        _UNDER,
        difference=True,
        plan="table2",
        least=-0.02,
        equivalence=True,
    ),
    *_in_both(
        "comparable-rmse",
        "Abstract; Table 1",
        "Sparse-RF predicts as well as RF.",
        "RMSE of Sparse-RF over that of RF",
        itemgetter("score"),
        _UNDER,
        plan="table1",
        most=1.07,
        ratio=True,
        equivalence=True,
    ),
]
COSTS = [
    *_in_both(
        "less-memory",
        "Abstract; Tables 1 and 2",
        "Training Sparse-RF takes less memory than training RF.",
        "peak memory of fitting RF over that of Sparse-RF, interpreter included, choices not",
        _fit_memory,
        _OVER,
        least=1.0,
        ratio=True,
    ),
    *_in_both(
        "faster-prediction",
        "Abstract; Tables 1 and 2",
        "A sparse model predicts faster.",
        "seconds of prediction of RF over those of Sparse-RF, one thread each",
        _predict_seconds,
        _OVER,
        least=1.0,
        ratio=True,
    ),
    *_in_both(
        "faster-regression",
        "Table 1",
        "For regression Sparse-RF trains faster than RF.",
        "processor seconds of fitting RF over those of Sparse-RF, the least of three each",
        _fit_seconds,
        _OVER,
        plan="table1",
        least=1.0,
        ratio=True,
    ),
]
GROWTH = [
    Claim(
        "kernel-quadratic",
        "Section 5",
        "The cost of the kernel method grows at least quadratically with the number of rows.",
        "exponent of the number of rows in the training seconds, covtype and its first 20,000 rows",
        "table2",
        exponent("seconds", "n_train", ("kernel",), places=2),
        rows={"method": "kernel", "label": "paper", "dataset": ("covtype-20k", "covtype")},
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
        exponent("model_size", "n_train", ("method", "lam")),
        rows={"method": "sparse-rf", "label": "growth"},
        most=0.9,
        settings="ours",
    ),
    _corollary1(
        "size-against-features",
        "Sections 1 and 2",
        "The model of Sparse-RF does not grow linearly with the number of features drawn.",
        "exponent of D in the number of non-zero weights",
        measure=exponent("model_size", "n_features", ("dataset", "kernel")),
        rows={"method": "sparse-rf", "label": "corollary1"},
        most=0.9,
    ),
]
ENDS = [
    _figure1(
        "sparse-reaches-kernel",
        "Figure 1",
        "Sparse-RF always reaches an objective comparable to the kernel machine's.",
        "last objective of Sparse-RF over the kernel machine's line",
        measure=_ends("sparse-rf"),
        most=1.0,
        ratio=True,
        universal=True,
    ),
    _figure1(
        "boosting-stays-above",
        "Figure 1",
        "Boosting with approximate greedy steps ends at a higher objective.",
        "last objective of boosting over the kernel machine's line",
        measure=_ends("boosting"),
        least=1.0,
        ratio=True,
    ),
    _figure1(
        "boosting-exact-stays-above",
        "Figure 1",
        "Boosting with the best threshold in each step ends at a higher objective, too.",
        "last objective of boosting with exact thresholds over the kernel machine's line",
        measure=_ends("boosting-exact"),
        least=1.0,
        ratio=True,
    ),
    _figure1(
        "sooner-than-boosting",
        "Section 4; Figure 1",
        "Sparse-RF converges faster than approximate boosting.",
        "processor seconds of boosting over those of Sparse-RF, to the last objective of boosting",
        measure=_sooner(),
        least=1.0,
        ratio=True,
    ),
]
RATES = [
    _corollary1(
        "kernel-objective",
        "Abstract; Corollary 1",
        "The objective of Sparse-RF comes down to that of the kernel machine.",
        "objective over F*, at the largest D of several seeds",
        measure=_theory(_over_kernel),
        most=1.0,
        ratio=True,
    ),
    _corollary1(
        "rate",
        "Theorem 1, Corollary 1",
        "Sparse-RF is within epsilon of the kernel machine by drawing O(1/epsilon) features.",
        "exponent of 1/epsilon in the number of features, from 10 to 1 % of F*",
        measure=_theory(_rate),
        most=_RATE,
        step=math.log10(2),
    ),
    _corollary1(
        "rate-to-limit",
        "Theorem 1, Corollary 1",
        "The objective approaches that of infinitely many features like 1/D (the theorem does not"
        " say so: its distance is from the kernel machine).",
        "exponent of D in the objective above its limit",
        measure=_theory(attrgetter("excess.rates")),
        most=-0.9,
    ),
    _corollary1(
        "rf-rate",
        "Abstract; Section 2",
        "The objective of RF approaches the kernel machine's at least like 1/sqrt(D).",
        "exponent of D in the distance of RF's objective from that of the exact kernel machine",
        measure=_theory(attrgetter("rf.rates")),
        most=-0.4,
    ),
]
AGAINST_RF = [
    *(
        _corollary1(
            f"fewer-than-rf-{percent}",
            "Abstract; Corollary 1",
            f"Sparse-RF needs fewer features than RF to be within {percent} % of the exact kernel"
            " machine.",
            "features of RF over those of Sparse-RF, each by its own objective: RF to the machine's"
            " lam/2 ||w||^2 + loss, its limit; Sparse-RF to at most F*, which its limit is below",
            measure=_fewer(percent / 100),
            least=1.0,
            ratio=True,
            step=2.0,
        )
        for percent in (10, 1)
    ),
    _corollary1(
        "faster-than-rf",
        "Abstract; Corollary 1",
        "The rate of Sparse-RF to its own limit is faster than that of RF to the kernel machine"
        " (the paper compares rates to the kernel machine).",
        "exponent of D of Sparse-RF (to its limit) less that of RF (to the kernel machine)",
        measure=_theory(_difference),
        most=0.0,
    ),
]
BOUNDS = [
    _corollary1(
        "bound",
        "Corollary 1",
        "The bound limits the objective after D features (one over the effect is its slack).",
        "objective over the bound, at the largest D of several seeds",
        measure=_theory(_over_bound),
        most=1.0,
        ratio=True,
    ),
    _corollary1(
        "bound-few",
        "Corollary 1",
        "The bound limits the objective after few features.",
        "objective over the bound, at the smallest D",
        measure=_theory(_over_first_bound),
        most=1.0,
    ),
]
CLAIMS = [*ERRORS, *COSTS, *GROWTH, *ENDS, *RATES, *AGAINST_RF, *BOUNDS]
