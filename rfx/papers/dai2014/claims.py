"""The claims of Dai et al. (2014) about doubly stochastic gradients."""

import math
from collections.abc import Sequence
from functools import partial

from rfx.papers.dai2014 import curves
from rfx.reporting.cells import Row
from rfx.reporting.claims import Claim
from rfx.reporting.effects import (
    VACUOUS,
    Effects,
    Frame,
    Limits,
    SeedEffects,
    Selection,
    by_case,
    difference,
    exponent,
    named,
    ratio,
    rows_of,
    share,
)

_FULL, _LOW_RANK = ("norma", "k-sdca"), ("r-pegasos", "n-pegasos", "r-sdca", "n-sdca")
_ONE_NU = "held-out rows: one nu for all methods by held-out rows; the rest in rfx table sources"
_PRINTED = "printed: theta/t with theta nu = 1.5; nu is ours"
_SHIFTED = "printed: theta nu = 1.5; the shift of t and nu are ours"
_HELD_OUT = "held-out rows: see rfx table sources"
_DOUBLY: Selection = {"method": "doubly-sgd"}

_adult = partial(Claim, plan="fig1-adult", most=1.0, equivalence=True, settings=_ONE_NU)
_quantum_machine = partial(
    Claim, where="Figure 1 (7)", plan="fig1-qm7", ratio=True, settings=_HELD_OUT
)
_theorem4 = partial(Claim, where="Theorem 4", plan="synthetic")
_complexity = partial(
    Claim, where="Table of section 6", plan="complexity", counted=True, settings="ours"
)


def _points(table: Frame, others: Sequence[str]) -> Effects:
    """The test error of doubly-sgd less that of each other method, in points."""
    effects: dict[str, SeedEffects] = {}
    for other in others:
        less = difference(table, "wrong", _DOUBLY, {"method": other}, scale=100)
        effects |= named(less, other)
    return effects


def _ratios(table: Frame, others: Sequence[str], error: str = "wrong") -> Effects:
    """The test error of doubly-sgd over that of each other method."""
    effects: dict[str, SeedEffects] = {}
    for other in others:
        effects |= named(ratio(table, error, _DOUBLY, {"method": other}), other)
    return effects


# -------------------------------------------------------------------------- test errors, Figure 1


@_adult(
    where="Section 7; Figure 1 (1)",
    says="On adult doubly SGD comes close to the methods with the full kernel (15.3 and 15 %).",
    effect="test error of doubly-sgd less that of the other method, in points, one pass",
    rows={"label": "adult-sc1"},
)
def adult_comparable(table: Frame) -> Effects:
    return _points(table, _FULL)


@_adult(
    where="Appendix B.2",
    says="On adult doubly SGD comes close to these methods in equal time.",
    effect="test error of doubly-sgd less that of the other method, in points, 60 s each",
    rows={"label": "adult-sc2"},
    why="its runs need a machine that is otherwise idle: rfx run dai2014-fig1-adult",
)
def adult_same_time(table: Frame) -> Effects:
    return _points(table, _FULL)


@Claim(
    name="8v6-best",
    where="Section 7; Figure 1 (2)",
    says="On 8 against 6 doubly SGD has the least test error (0.26 %).",
    effect="test error of doubly-sgd over that of the other method, one pass",
    plan="fig1-mnist8v6",
    rows={"label": "mnist8v6-sc1"},
    most=1.0,
    universal=True,
    ratio=True,
    settings=_ONE_NU,
)
def best_on_8_against_6(table: Frame) -> Effects:
    return _ratios(table, (*_FULL, *_LOW_RANK))


@Claim(
    where="Section 7; Figure 1 (3)",
    says="On forest doubly SGD (15 %) is much better than methods with 256 features or landmarks.",
    effect="test error of doubly-sgd over that of the other method, the same rows",
    plan="fig1-forest",
    rows={"label": "forest-sc1"},
    most=0.9,
    ratio=True,
    settings=_ONE_NU,
)
def forest_better(table: Frame) -> Effects:
    return _ratios(table, _LOW_RANK)


@Claim(
    where="Appendix B.2",
    says="On synthetic regression doubly SGD is as accurate as the exact methods in one pass.",
    effect="mean absolute error of doubly-sgd over that of the other method",
    plan="synthetic",
    rows={"label": "synthetic-sc1"},
    most=1.05,
    ratio=True,
    equivalence=True,
    settings=_ONE_NU,
)
def ripple(table: Frame) -> Effects:
    return _ratios(table, (*_FULL, *_LOW_RANK), "mae")


@Claim(
    where="Section 1; Section 7",
    says="A method with few features or landmarks errs more than with the full kernel.",
    effect="error of SDCA with 256 features or landmarks over that of k-SDCA, one pass",
    plan="fig1-adult synthetic",
    rows={"label": ("adult-sc1", "synthetic-sc1")},
    least=1.0,
    ratio=True,
    settings=_ONE_NU,
)
def low_rank_worse(table: Frame) -> Effects:
    effects: dict[str, SeedEffects] = {}
    for low_rank in ("r-sdca", "n-sdca"):
        worse = ratio(table, curves.error, {"method": low_rank}, {"method": "k-sdca"})
        effects |= named(worse, low_rank)
    return effects


@_quantum_machine(
    where="Section 7; Figure 1 (7)",
    says="On QuantumMachine doubly SGD errs less than a network (2.97 and 3.51 kcal/mol).",
    effect="mean absolute error of doubly-sgd over that of the network",
    rows={"label": "qm7"},
    most=1.0,
    why="three seeds take about 4 hours: rfx run dai2014-fig1-qm7 --only label=qm7",
)
def quantum_machine(table: Frame) -> Effects:
    return _ratios(table, ("mlp",), "mae")


@_quantum_machine(
    says="On QuantumMachine doubly SGD reaches its error within a million training rows.",
    effect="mean absolute error of doubly-sgd over that of the paper",
    rows={"label": "qm7-million"},
    most=1.05,
    why="three seeds take an hour: rfx run dai2014-fig1-qm7 --only label=qm7-million",
)
def quantum_machine_million(table: Frame) -> Effects:
    return share(table, "mae", curves.quoted("qm7", "doubly-sgd") or 1.0)


# --------------------------------------------------------------------------------------- Theorem 4


def _rates(table: Frame, steps: str) -> Effects:
    """The exponent of the number of steps in the squared distance to the optimum.

    A case in which a seed ends farther from the optimum than f = 0 has diverged.
    """
    effects: dict[str, SeedEffects] = {}
    for nu, one in curves.ripple(rows_of(table), steps).items():
        slopes = [slope for slope in one.slopes if slope is not None]
        diverged = any(end > 1.0 for end in one.ends)
        effects[f"nu = {nu:g}"] = Limits(slopes, "diverged") if diverged else slopes
    return effects


@_theorem4(
    says="The distance to the optimum falls like 1/t.",
    effect="exponent of the number of steps in the squared distance to the exact solution",
    most=-0.9,
    settings=_PRINTED,
)
def rate(table: Frame) -> Effects:
    return _rates(table, "printed")


@_theorem4(
    says="The distance to the optimum falls like 1/t, where t begins at 2 theta.",
    effect="exponent of the number of steps in the squared distance to the exact solution, after"
    " the burn-in",
    most=-0.9,
    settings=_SHIFTED,
)
def rate_shifted(table: Frame) -> Effects:
    return _rates(table, "theorem")


@_theorem4(
    says="The theorem's constants bound the distance to the optimum.",
    effect="measured squared distance over the bound, after the last step",
    most=1.0,
    ratio=True,
    settings=_PRINTED,
)
def bound(table: Frame) -> Effects:
    """The bound is vacuous if it is at least 1, which the distance of f = 0 cannot exceed."""
    effects: dict[str, SeedEffects] = {}
    for nu, one in curves.ripple(rows_of(table), "printed").items():
        limit = _bound_of_theorem4(curves.THETA_NU / nu, one.distances.index[-1])
        ratios = [end / limit for end in one.ends]
        effects[f"nu = {nu:g}"] = Limits(ratios, VACUOUS) if limit >= 1.0 else ratios
    return effects


def _bound_of_theorem4(theta: float, steps: int) -> float:
    """The bound on the squared distance to the optimum after this number of steps theta/t.

    C^2 = 4 (kappa + phi)^2 M^2 theta^2 with kappa = 1 and phi = 2 for the Gaussian kernel, and M =
    1, the largest target: the least that it can be, because f starts at 0. L is 1 for the squared
    loss. ||f*|| does not matter beside Q_0.
    """
    excess = 2 * curves.THETA_NU - 1
    q0 = 2 * math.sqrt(2) * 3 * theta**2
    root = math.sqrt(q0**2 + excess * (1 + curves.THETA_NU) ** 2 * theta**2)
    q1 = (q0 + root) / excess
    return (2 * 4 * 9 * theta**2 + 2 * q1**2) / steps


# ------------------------------------------------------------------------------ storage and costs


def _growth(table: Frame, cost: str) -> Effects:
    """The exponent of the number of rows in a cost, of each seed."""
    lines = curves.costs(rows_of(table)).groupby(level=[0, 1], sort=False)
    return by_case(lines.apply(curves.exponent, cost))


@_complexity(
    says="For prediction every method stores as many numbers as there are features or rows.",
    effect="exponent of the number of rows in the bytes of the model",
    most=1.05,
    universal=True,
)
def storage(table: Frame) -> Effects:
    return _growth(table, "storage")


def _bytes_per_feature(row: Row) -> float:
    return row.model_bytes / row.n_features


@Claim(
    where="Section 1",
    says="The memory of doubly SGD does not depend on the dimension of the data.",
    effect="exponent of the number of inputs in the bytes of the model for each feature",
    plan="choice",
    rows={**_DOUBLY, "dataset": ("a9a", "covtype", "ripple:n=32768,n_test=2000")},
    most=0.05,
    counted=True,
    settings="ours",
)
def storage_dimension(table: Frame) -> Effects:
    return exponent(table, _bytes_per_feature, "n_inputs", ("method",))


@_complexity(
    says="In training, too, every method stores as many numbers as there are features or rows.",
    effect="exponent of the number of rows in the bytes of the solver's state and feature map",
    most=1.05,
    universal=True,
)
def training_storage(table: Frame) -> Effects:
    return _growth(table, "training_storage")


def _operations(row: Row) -> float:
    """The features or kernel values of one pass, of each row with each that the model has; for
    Nystrom features also the multiplications by the factor of their kernel matrix, and those of its
    decomposition.
    """
    samples, rank = row.params["samples"], row.params.get("rank") or 0
    return samples * row.model_size + (samples + rank) * rank**2


@_complexity(
    says="With as many features as rows, training takes a time in proportion to their square.",
    effect="exponent of the number of rows in the features or kernel values that training computes",
    rows={"label": "complexity"},
    most=2.1,
)
def training_cost(table: Frame) -> Effects:
    return exponent(table, _operations, "n_train", ("method",))


# ---------------------------------------------------------------------------------------- untested

MNIST8M = Claim(
    name="mnist8m",
    where="Section 7; Figure 1 (4)",
    says="On MNIST 8M doubly SGD errs less than a network (0.5 and 0.6 %).",
    why="the 8.1 million images and the features of the network could not be reached; the plan"
    " dai2014-fig1-mnist runs 60,000 images with virtual copies",
)
CIFAR10 = Claim(
    name="cifar10",
    where="Section 7; Figure 1 (5)",
    says="On CIFAR 10 it is comparable to a network (11 %), but faster.",
    why="the features of the network are not available; rfx run dai2014-fig1-cifar10 takes"
    " a reader's",
)
IMAGENET = Claim(
    name="imagenet",
    where="Section 7; Figure 1 (6)",
    says="On ImageNet its error is 44.5 % (networks: 42 and 46 %).",
    why="the data and the features of the network are not available",
)
MOLECULARSPACE = Claim(
    name="molecularspace",
    where="Section 7; Figure 1 (8)",
    says="On MolecularSpace it is comparable to a network.",
    why="the data are not public",
)

CLAIMS = [
    adult_comparable,
    adult_same_time,
    best_on_8_against_6,
    forest_better,
    ripple,
    low_rank_worse,
    quantum_machine,
    quantum_machine_million,
    rate,
    rate_shifted,
    bound,
    storage,
    storage_dimension,
    training_storage,
    training_cost,
    MNIST8M,
    CIFAR10,
    IMAGENET,
    MOLECULARSPACE,
]
