"""The claims of Yen et al. (2014) about sparse random features."""

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from operator import attrgetter

from rfx.papers.yen2014 import curves as yen
from rfx.papers.yen2014.tables import OURS, TABLE1, TABLE2
from rfx.reporting.cells import Row
from rfx.reporting.claims import Claim
from rfx.reporting.effects import (
    Effects,
    Frame,
    Limits,
    SeedEffects,
    censored,
    exponent,
    rows_of,
)

_NO_LAMBDA = "ours: lambda is not printed"
_HOURS = "its runs take hours: rfx run, of these plans, --only label={}"
# the exponent of 1/epsilon, with a margin of 0.1
_RATE = 1.1

_tables = partial(
    Claim,
    plan="table1 table2",
    rows={"label": "paper"},
    settings="printed: lambda of Sparse-RF on test rows; gamma is inferred",
    why=_HOURS.format("paper"),
)
_figure1 = partial(Claim, plan="figure1", ratio=True, settings=_NO_LAMBDA)
_corollary1 = partial(Claim, plan="corollary1", settings=_NO_LAMBDA)


def tuned(claim: Claim) -> Claim:
    """The same claim about the runs with setting tuned."""
    return replace(
        claim,
        name=f"{claim.name}-tuned",
        says=f"The same with every setting by validation: {claim.says[0].lower()}{claim.says[1:]}",
        rows={"label": "tuned"},
        settings="held-out rows: one bandwidth for both, lambda of each by the same search",
        why=_HOURS.format("tuned"),
    )


# ----------------------------------------------------------------------------------- Tables 1 and 2

# generated rows have no errors of interest, and 20,000 rows of covtype are covtype
_DATA = [
    (data.name, table)
    for table in (TABLE1, TABLE2)
    for data in table.data
    if not data.generated and data.name != "covtype-20k"
]
Quantity = Callable[[Row], float | None]


def _pairs(
    table: Frame, quantity: Quantity, first: str, second: str
) -> dict[str, list[tuple[float, float]]]:
    """A quantity of two methods in the cells of Tables 1 and 2, in pairs of one seed."""
    rows = rows_of(table)
    pairs: dict[str, list[tuple[float, float]]] = {}
    for name, comparison in _DATA:
        cells = comparison.pick([row for row in rows if row.dataset == name])
        for kernel in ("gaussian", "laplacian", "perceptron"):
            line = kernel if (kernel, second) in cells else OURS
            ours = {row.seed: quantity(row) for row in cells.get((line, first), ())}
            theirs = {row.seed: quantity(row) for row in cells.get((line, second), ())}
            pairs[f"{name} {kernel}"] = [
                (value, other)
                for seed, value in ours.items()
                if value is not None and (other := theirs.get(seed))
            ]
    return pairs


def _ratios(table: Frame, quantity: Quantity, first: str, second: str) -> Effects:
    """The quantity of one method over that of another."""
    effects = {}
    for name, pairs in _pairs(table, quantity, first, second).items():
        effects[name] = [value / other for value, other in pairs]
    return effects


def _rf_over_sparse(table: Frame, quantity: Quantity) -> Effects:
    return _ratios(table, quantity, "rf", "sparse-rf")


@_tables(
    where="Abstract; Tables 1 and 2",
    says="The L1 penalty keeps a part of the random features.",
    effect="features of RF for each non-zero weight of Sparse-RF",
    least=1.3,
    ratio=True,
)
def sparse_model(table: Frame) -> Effects:
    return _rf_over_sparse(table, attrgetter("model_size"))


@_tables(
    where="Abstract; Table 2",
    says="Sparse-RF classifies as well as RF.",
    effect="accuracy of Sparse-RF less that of RF",
    plan="table2",
    least=-0.02,
    equivalence=True,
)
def comparable_accuracy(table: Frame) -> Effects:
    effects = {}
    for name, pairs in _pairs(table, attrgetter("score"), "sparse-rf", "rf").items():
        effects[name] = [value - other for value, other in pairs]
    return effects


@_tables(
    where="Abstract; Table 1",
    says="Sparse-RF predicts as well as RF.",
    effect="RMSE of Sparse-RF over that of RF",
    plan="table1",
    most=1.07,
    ratio=True,
    equivalence=True,
)
def comparable_rmse(table: Frame) -> Effects:
    return _ratios(table, attrgetter("score"), "sparse-rf", "rf")


def _fit_memory(row: Row) -> float | None:
    """The peak memory of fits, without the choice of options."""
    chosen = "seconds_validation" in row.params
    return row.params.get("fit_rss_mb", None if chosen else row.peak_rss_mb)


@_tables(
    where="Abstract; Tables 1 and 2",
    says="Training Sparse-RF takes less memory than training RF.",
    effect="peak memory of fitting RF over that of Sparse-RF, interpreter included, choices not",
    least=1.0,
    ratio=True,
)
def less_memory(table: Frame) -> Effects:
    return _rf_over_sparse(table, _fit_memory)


def _predict_seconds(row: Row) -> float | None:
    """The least processor seconds of several predictions; seconds by the clock of a row without
    them, if it had one thread.
    """
    clock = row.seconds_predict if row.threads == 1 else None
    return row.params.get("least_seconds_cpu_predict", clock)


@_tables(
    where="Abstract; Tables 1 and 2",
    says="A sparse model predicts faster.",
    effect="seconds of prediction of RF over those of Sparse-RF, one thread each",
    least=1.0,
    ratio=True,
)
def faster_prediction(table: Frame) -> Effects:
    return _rf_over_sparse(table, _predict_seconds)


def _fit_seconds(row: Row) -> float | None:
    """The least processor seconds of several fits."""
    return row.params.least_seconds_cpu


@_tables(
    where="Table 1",
    says="For regression Sparse-RF trains faster than RF.",
    effect="processor seconds of fitting RF over those of Sparse-RF, the least of three each",
    plan="table1",
    least=1.0,
    ratio=True,
)
def faster_regression(table: Frame) -> Effects:
    return _rf_over_sparse(table, _fit_seconds)


# --------------------------------------------------------------- growth with the numbers of rows, D


@Claim(
    where="Section 5",
    says="The cost of the kernel method grows at least quadratically with the number of rows.",
    effect="exponent of the number of rows in the training seconds, covtype and its first 20,000"
    " rows",
    plan="table2",
    rows={"method": "kernel", "label": "paper", "dataset": ("covtype-20k", "covtype")},
    least=1.9,
    settings="printed; gamma is inferred",
    why="there is one run for each size, of up to half an hour: rfx run yen2014-table2-full",
)
def kernel_quadratic(table: Frame) -> Effects:
    return exponent(table, "seconds", "n_train", ("kernel",), places=2)


@Claim(
    where="Section 2",
    says="The model of Sparse-RF does not grow linearly with the number of rows.",
    effect="exponent of the number of rows in the number of non-zero weights",
    plan="growth",
    rows={"method": "sparse-rf", "label": "growth"},
    most=0.9,
    settings="ours",
)
def size_against_rows(table: Frame) -> Effects:
    return exponent(table, "model_size", "n_train", ("method", "lam"))


@_corollary1(
    where="Sections 1 and 2",
    says="The model of Sparse-RF does not grow linearly with the number of features drawn.",
    effect="exponent of D in the number of non-zero weights",
    rows={"method": "sparse-rf", "label": "corollary1"},
    most=0.9,
)
def size_against_features(table: Frame) -> Effects:
    return exponent(table, "model_size", "n_features", ("dataset", "kernel"))


# ---------------------------------------------------------------------------------------- Figure 1


def _panels(table: Frame, *needed: str) -> dict[str, yen.Panel]:
    """The paper's data sets with these curves of Figure 1; the other panels are parts of them."""
    panels = yen.figure1(rows_of(table))
    return {
        name: panel
        for name, panel in panels.items()
        if name in yen.AXES and panel.curves.keys() >= set(needed)
    }


def _ends(table: Frame, curve: str) -> Effects:
    """The last objective of a curve of Figure 1 over the kernel machine's line, of each seed."""
    effects = {}
    for name, panel in _panels(table, curve).items():
        line = panel.line
        if line is not None:
            runs = panel.curves[curve].runs.items()
            effects[name] = [run.objective.iloc[-1] / line.bound(seed) for seed, run in runs]
    return effects


@_figure1(
    where="Figure 1",
    says="Sparse-RF always reaches an objective comparable to the kernel machine's.",
    effect="last objective of Sparse-RF over the kernel machine's line",
    most=1.0,
    universal=True,
)
def sparse_reaches_kernel(table: Frame) -> Effects:
    return _ends(table, "sparse-rf")


@_figure1(
    where="Figure 1",
    says="Boosting with approximate greedy steps ends at a higher objective.",
    effect="last objective of boosting over the kernel machine's line",
    least=1.0,
)
def boosting_stays_above(table: Frame) -> Effects:
    return _ends(table, "boosting")


@_figure1(
    where="Figure 1",
    says="Boosting with the best threshold in each step ends at a higher objective, too.",
    effect="last objective of boosting with exact thresholds over the kernel machine's line",
    least=1.0,
)
def boosting_exact_stays_above(table: Frame) -> Effects:
    return _ends(table, "boosting-exact")


@_figure1(
    where="Section 4; Figure 1",
    says="Sparse-RF converges faster than approximate boosting.",
    effect="processor seconds of boosting over those of Sparse-RF, to the last objective of"
    " boosting",
    least=1.0,
)
def sooner_than_boosting(table: Frame) -> Effects:
    """A seed of Sparse-RF that never is at the last objective of boosting has all its seconds."""
    effects: dict[str, SeedEffects] = {}
    for name, panel in _panels(table, "sparse-rf", "boosting").items():
        ours, theirs = panel.curves["sparse-rf"].runs, panel.curves["boosting"].runs
        ratios, never = [], False
        for seed, run in theirs.items():
            if seed in ours:
                wait = yen.seconds_until(ours[seed], run.objective.iloc[-1])
                never = never or wait is None
                all_seconds = ours[seed].seconds.iloc[-1]
                ratios.append(run.seconds.iloc[-1] / (all_seconds if wait is None else wait))
        effects[name] = censored(ratios, may_be_more=False, may_be_less=never)
    return effects


# ------------------------------------------------------------------------------------- Corollary 1


def _cases(table: Frame) -> dict[str, yen.Case]:
    """The data sets and kernels of the plan corollary1, by name."""
    cases = yen.cases(rows_of(table))
    return {f"{case.dataset} {case.kernel}": case for case in cases}


def _largest(case: yen.Case) -> int:
    """The largest number of features that every seed has."""
    counts = case.excess.objectives.count()
    return counts.index[counts == counts.max()][-1]


@_corollary1(
    where="Abstract; Corollary 1",
    says="The objective of Sparse-RF comes down to that of the kernel machine.",
    effect="objective over F*, at the largest D of several seeds",
    most=1.0,
    ratio=True,
)
def kernel_objective(table: Frame) -> Effects:
    effects = {}
    for name, case in _cases(table).items():
        objectives = case.excess.at(_largest(case))
        effects[name] = [objective / case.reference.value for objective in objectives]
    return effects


@_corollary1(
    where="Theorem 1, Corollary 1",
    says="Sparse-RF is within epsilon of the kernel machine by drawing O(1/epsilon) features.",
    effect="exponent of 1/epsilon in the number of features, from 10 to 1 % of F*",
    most=_RATE,
    step=math.log10(2),
)
def rate(table: Frame) -> Effects:
    effects = {}
    for name, case in _cases(table).items():
        effects[name] = case.excess.exponent_for_precision(case.reference.value, _RATE)
    return effects


@_corollary1(
    where="Theorem 1, Corollary 1",
    says="The objective approaches that of infinitely many features like 1/D (the theorem does not"
    " say so: its distance is from the kernel machine).",
    effect="exponent of D in the objective above its limit",
    most=-0.9,
)
def rate_to_limit(table: Frame) -> Effects:
    return {name: case.excess.rates for name, case in _cases(table).items()}


@_corollary1(
    where="Abstract; Section 2",
    says="The objective of RF approaches the kernel machine's at least like 1/sqrt(D).",
    effect="exponent of D in the distance of RF's objective from that of the exact kernel machine",
    most=-0.4,
)
def rf_rate(table: Frame) -> Effects:
    return {name: case.rf.rates for name, case in _cases(table).items()}


def fewer_than_rf(percent: int) -> Claim:
    """That Sparse-RF needs fewer features than RF to be within so many percent."""

    @_corollary1(
        name=f"fewer-than-rf-{percent}",
        where="Abstract; Corollary 1",
        says=f"Sparse-RF needs fewer features than RF to be within {percent} % of the exact kernel"
        " machine.",
        effect="features of RF over those of Sparse-RF, each by its own objective: RF to the"
        " machine's lam/2 ||w||^2 + loss, its limit; Sparse-RF to at most F*, which its limit is"
        " below",
        least=1.0,
        ratio=True,
        step=2.0,
    )
    def claim(table: Frame) -> Effects:
        return {name: _fewer(case, percent / 100) for name, case in _cases(table).items()}

    return claim


def _fewer(case: yen.Case, share: float) -> SeedEffects:
    """Features of RF over those of Sparse-RF until the objective is within a share of the kernel
    machine's, of each seed. A seed that never is has the largest number it was run with.
    """
    ours = case.excess.within(case.reference.value, share)
    theirs = case.rf.within(case.reference.objective, share, below=False)
    most, most_of_rf = case.excess.largest_sizes, case.rf.largest_sizes
    seeds = [seed for seed in ours if seed in theirs]
    ratios = []
    for seed in seeds:
        size = ours[seed] or most[seed]
        size_of_rf = theirs[seed] or most_of_rf[seed]
        ratios.append(size_of_rf / size)
    return censored(
        ratios,
        may_be_more=not all(theirs[seed] for seed in seeds),
        may_be_less=not all(ours[seed] for seed in seeds),
    )


@_corollary1(
    where="Abstract; Corollary 1",
    says="The rate of Sparse-RF to its own limit is faster than that of RF to the kernel machine"
    " (the paper compares rates to the kernel machine).",
    effect="exponent of D of Sparse-RF (to its limit) less that of RF (to the kernel machine)",
    most=0.0,
)
def faster_than_rf(table: Frame) -> Effects:
    return {name: _difference(case) for name, case in _cases(table).items()}


def _difference(case: yen.Case) -> SeedEffects:
    """The exponent of Sparse-RF less that of RF, of each seed."""
    for side in (case.excess.rates, case.rf.rates):
        if isinstance(side, Limits):
            return Limits((), side.kind)
    ours, theirs = case.excess.slopes, case.rf.slopes
    return [ours[seed] - theirs[seed] for seed in sorted(ours.keys() & theirs.keys())]


@_corollary1(
    where="Corollary 1",
    says="The bound limits the objective after D features (one over the effect is its slack).",
    effect="objective over the bound, at the largest D of several seeds",
    most=1.0,
    ratio=True,
)
def bound(table: Frame) -> Effects:
    return {name: _over_bound(case, _largest(case)) for name, case in _cases(table).items()}


@_corollary1(
    where="Corollary 1",
    says="The bound limits the objective after few features.",
    effect="objective over the bound, at the smallest D",
    most=1.0,
)
def bound_few(table: Frame) -> Effects:
    return {name: _over_bound(case, case.excess.sizes[0]) for name, case in _cases(table).items()}


def _over_bound(case: yen.Case, size: int) -> SeedEffects:
    """The objective over the bound at one number of features."""
    return case.reference.over_bound(case.excess.at(size), size)


# the six claims about cells of Tables 1 and 2
_OF_TABLES = [
    sparse_model,
    comparable_accuracy,
    comparable_rmse,
    less_memory,
    faster_prediction,
    faster_regression,
]
CLAIMS = [
    *(one for claim in _OF_TABLES for one in (claim, tuned(claim))),
    kernel_quadratic,
    size_against_rows,
    size_against_features,
    sparse_reaches_kernel,
    boosting_stays_above,
    boosting_exact_stays_above,
    sooner_than_boosting,
    kernel_objective,
    rate,
    rate_to_limit,
    rf_rate,
    fewer_than_rf(10),
    fewer_than_rf(1),
    faster_than_rf,
    bound,
    bound_few,
]
