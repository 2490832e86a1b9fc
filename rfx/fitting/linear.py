"""Shared by the methods with random features: options, drawing of a map, the linear model, and the
solver of its weights with L2 regularisation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from rfx import steps as told
from rfx.counters import random_rows
from rfx.data.transforms import Scaler
from rfx.errors import UsageError
from rfx.features import MAPS, FeatureMap, form_of, nystrom, sample
from rfx.fitting import weights
from rfx.fitting.method import (
    Method,
    Refusal,
    TunedMethod,
    budget,
    check_n_inputs,
    each_output,
    kernel_params,
    scalars,
)
from rfx.fitting.options import (
    DEFAULT_FEATURES,
    DTYPE,
    KERNELS,
    MOST,
    N_FEATURES,
    SearchSpace,
    chosen_kernel,
)
from rfx.fitting.problem import Cache, Problem, StepCallback, check_memory, evaluating
from rfx.model import Array
from rfx.operators.accelerated import DeviceMatrix
from rfx.operators.kernel import enough_rows, linear, moved_mean
from rfx.operators.mapped import Features, MapMatrix, feature_matrix
from rfx.operators.matrix import Matrix
from rfx.options import Chosen, Option
from rfx.solvers.base import Solution, stack
from rfx.solvers.l2 import solve_l2
from rfx.solvers.published.libraries import solve_liblinear
from rfx.solvers.ridge import MOST as MOST_COLUMNS
from rfx.solvers.ridge import ridge_path, solve_ridge, solve_ridge_cg, solve_ridge_grid
from rfx.types import Arrays, Inputs, JsonObject, KernelParams

PREDICTION_BYTES = 4 * 2**20
T = TypeVar("T")
# Pool size per selected feature, unless --pool is set.
POOL_SHARE = 10


def _variants() -> dict[str, str]:
    """The variants of all maps."""
    meanings: dict[str, list[str]] = {}
    for kind in dict.fromkeys(MAPS.values()):
        for name, meaning in kind.variants.items():
            meanings.setdefault(name, []).extend([meaning] if meaning else [])
    return {name: " or ".join(dict.fromkeys(texts)) for name, texts in meanings.items()}


FEATURES = Option("features", str, "Variant of the kernel's features.", _variants, default="offset")
CHOOSE = Option(
    "choose",
    str,
    "How features are selected from a larger pool; by default there is no pool.",
    {
        "leverage": (
            "sampled by their ridge leverage on the training rows; useful for smooth kernels and"
            " perceptrons"
        )
    },
)
POOL = Option(
    "pool",
    int,
    f"Number of features in the pool of --choose; by default {POOL_SHARE} for each selected"
    " feature.",
    low=1,
    high=MOST,
)
OFFSET = Option(
    "offset",
    str,
    "With squared loss: subtract the mean of the targets (or of the label codes).",
    {"none": "", "mean": ""},
    default="none",
)


@dataclass(frozen=True)
class LinearModel:
    """f(x) = coef' phi(x) + offset.

    Parameters
    ----------
    map : FeatureMap
        The D features with nonzero weight, unscaled.
    coef : array, (D, k)
    offset : array, (k,), or None
        For models with --offset.
    """

    map: FeatureMap
    coef: np.ndarray
    offset: np.ndarray | None = None

    @classmethod
    def of(
        cls, feature_map: FeatureMap, coef: np.ndarray, offset: np.ndarray | None = None
    ) -> LinearModel:
        """The model of the features with a nonzero weight in any output."""
        coef = np.asarray(coef)
        used = np.flatnonzero(np.any(coef != 0, axis=1))
        if len(used) < feature_map.n_features:
            feature_map = feature_map.select(used)
            coef = coef[used]
        return cls(feature_map, coef, offset)

    @property
    def letters(self) -> bytes | None:
        """The alphabet of the map for sequences; None for other rows."""
        alphabet = self.map.params.get("alphabet")
        return None if alphabet is None else bytes(alphabet)

    def decision(self, X: Inputs) -> np.ndarray:
        """(n, k) values for scaled rows X (n, d)."""
        values = linear_decision(self.map, self.coef, X)
        return values if self.offset is None else values + self.offset

    def steps(self) -> told.Steps:
        """The computation steps of `decision` for dense rows."""
        offset = np.zeros(self.coef.shape[1]) if self.offset is None else self.offset
        if not len(self.coef):
            return told.constant(self.map.n_inputs, offset)
        return *self.map.steps(), told.linear(self.coef, offset)

    def arrays(self) -> Arrays:
        arrays = {f"map_{key}": value for key, value in self.map.arrays.items()}
        arrays["coef"] = self.coef
        return arrays if self.offset is None else arrays | {"offset": self.offset}

    def header(self) -> JsonObject:
        return {"map": self.map.header()}

    def describe(self) -> dict[str, object]:
        return {"model_size": self.map.n_features, "kernel_params": scalars(self.map.params)}


class LinearMethod(TunedMethod):
    """A method whose model is a `LinearModel`."""

    kernel: str = chosen_kernel(lambda: list(MAPS), KERNELS, "gaussian")()
    features: str = FEATURES()
    n_features: int | Chosen = N_FEATURES()
    dtype: str = DTYPE()

    arrays: ClassVar[dict[str, Array]] = {"coef": Array("f", "features outputs")}
    space = SearchSpace(kernels=KERNELS)

    def refusals(self, given: Mapping[str, object]) -> list[Refusal]:
        for kernel in self.kernels_of():
            MAPS[kernel].check_variant(kernel, self.n_drawn(), self.features)
        pool = self.get("pool")
        count = self.n_features
        return [
            *super().refusals(given),
            (
                "choose" in self.options and pool and not self.choose,
                f"--pool is {pool}, which has no effect without --choose",
            ),
            (
                self.get("choose") and self.n_drawn() < count,
                f"--pool is {pool}, which is smaller than --n-features {count}",
            ),
        ]

    def n_drawn(self) -> int:
        """Number of features to draw: the pool, if there is one."""
        count = self.n_features or DEFAULT_FEATURES
        return self.pool or POOL_SHARE * count if self.get("choose") else count

    def vectors(self, X: Inputs) -> int:
        width: int = max(MAPS[kernel].width for kernel in self.kernels_of())
        return self.n_drawn() * width

    def offsets(self) -> bool:
        """Whether its models have an offset."""
        return bool(self.get("offset") == "mean")

    def saved_arrays(self, header: JsonObject) -> dict[str, Array]:
        of_map = header["map"]
        check_n_inputs(header, of_map["n_inputs"], "its map has")
        own = {"offset": Array("f", "outputs")} if self.offsets() else {}
        parts = form_of(of_map).saved_arrays()
        return self.arrays | own | {f"map_{name}": array for name, array in parts.items()}

    def restore(self, header: JsonObject, arrays: Arrays) -> LinearModel:
        parts = {key[4:]: value for key, value in arrays.items() if key.startswith("map_")}
        offset = arrays["offset"] if self.offsets() else None
        return LinearModel(FeatureMap.from_header(header["map"], parts), arrays["coef"], offset)


# ---------------------------------------------------------------------- drawing features


def sampled(method: LinearMethod, problem: Problem, lam: float, cache: Cache) -> FeatureMap:
    """The map of the method's kernel, variant and seed, with features selected if requested.

    lam is the ridge parameter of --choose leverage.
    """
    pool = drawn(problem.X, method, method.n_drawn(), method.kernel_params(problem.X), cache)
    if method.get("choose") is None:
        return pool
    curved = 1.0 if problem.loss.name == "squared" else nystrom.NEAR_MARGIN
    return nystrom.draw(pool, problem.X, method.n_features, lam / curved, method.seed)


def scaled_map(
    learn: Callable[[Inputs, KernelParams], T],
    X: Inputs,
    vectors: int,
    kernel: str,
    scaling: str,
    gamma: float | str | None,
    seed: int,
    **options: object,
) -> tuple[Scaler, T]:
    """The scaler of raw rows X (n, d), and the map that `learn` makes of the scaled rows and the
    kernel's parameters.

    vectors: how many of length d the map has, for the check of memory; gamma: a number or a word;
    options: the kernel's own.
    """
    check_memory(X, scaling, vectors, np.dtype(np.float64).itemsize)
    scaler = Scaler.fit(X, scaling)
    rows = scaler.transform(X)
    return scaler, learn(rows, kernel_params(kernel, gamma, rows, seed, **options))


def drawn(X: Inputs, method: Method, count: int, params: KernelParams, cache: Cache) -> FeatureMap:
    """`count` features with these kernel parameters, adapted to X if the variant requires it.

    Trials, and the final fit, reuse the last features if they would be the same.
    """
    variant = method.features
    dtype = np.dtype(method.dtype)
    first = (method.kernel, X.shape[1], count, method.seed)
    key = (*first, dtype, variant, repr(sorted(params.items())))
    features = cache.get("map", key, lambda: sample(*first, dtype=dtype, variant=variant, **params))
    return features.fit(X, variant)


def target_offset(problem: Problem, method: Method) -> np.ndarray:
    """(k,) the --offset to subtract from the targets; UsageError if the loss does not allow it."""
    if method.offset != "mean":
        return np.zeros(problem.n_outputs)
    if problem.loss.name != "squared":
        raise UsageError(
            f"--offset is mean, which is for squared loss, but --loss is {problem.loss.name}"
        )
    return weights.mean(problem.Y, problem.weights)


def step_callback(
    problem: Problem,
    feature_map: Features,
    method: Method,
    scale: float = 1.0,
    offset: ArrayLike = 0.0,
) -> StepCallback | None:
    """A solver callback for weights over scale * feature_map; see `evaluating`."""
    limit = method.max_memory

    def matvec(X: Inputs) -> Callable[[np.ndarray], np.ndarray]:
        return feature_matrix(feature_map, X, scale, limit).matvec

    return evaluating(problem, matvec, offset)


# ---------------------------------------------------------------------- weights with L2 penalty


def solve(
    Z: Inputs, problem: Problem, method: Method, callback: StepCallback | None = None
) -> Solution:
    """The weights (D, k) over features Z (n, D): lam/2 ||w||^2 + sum L(w.z, y) for each output, by
    the method's solver. callback: receives every step, or None.

    Raises UsageError for a solver that does not support the loss.
    """
    solver = method.solver
    lam = method.lam
    limits = budget(problem, method)
    Z = _placed(Z, problem, method)
    Z, Y, loss = weights.problem(Z, problem.Y, problem.loss, problem.weights)
    if not Z.shape[1]:
        # without features, every prediction is zero, and that is the minimum
        value = float(loss.value(np.zeros_like(Y), Y).sum(axis=0).sum())
        return Solution(np.zeros((0, Y.shape[1])), value, 0.0, 0, "converged")
    if solver == "liblinear":
        return each_output(
            Y,
            lambda y, tell: solve_liblinear(
                Z, y, lam, problem.loss, limits, callback=tell, seed=method.seed
            ),
            callback,
        )
    if loss.name == "squared":
        ridge = solve_ridge_cg if solver == "cg" else solve_ridge
        return ridge(Z, Y, lam, limits, callback)
    if solver == "cg":
        raise UsageError(
            f"--solver is cg, which is for squared loss, not {loss.name}; use --loss squared or"
            " --solver rfx"
        )
    return each_output(
        Y, lambda y, tell: solve_l2(Z, y, lam, loss, limits, callback=tell), callback
    )


def _placed(Z: Inputs, problem: Problem, method: Method) -> Inputs:
    """Z, on the accelerator in use for ridge regression by rfx's own solver."""
    if problem.loss.name != "squared" or method.solver != "rfx" or not isinstance(Z, MapMatrix):
        return Z
    return DeviceMatrix.of(Z.map, Z.X, Z.scale) or Z


def left_out(
    Z: Matrix,
    coef: np.ndarray,
    problem: Problem,
    method: Method,
    lam: float,
    offset: float | np.ndarray = 0.0,
    columns: np.ndarray | None = None,
) -> np.ndarray | None:
    """Decision values of the problem's rows by the model without each of them.

    Parameters
    ----------
    Z : Matrix
        Features of the n rows.
    coef : array, (D, k)
        Their weights.
    problem : Problem
    method : Method
    lam : float
        The ridge parameter; 0 for weights with an L1 penalty, of which the zeros stay zero.
    offset : array, (k,)
        Was subtracted from the targets.
    columns : array, (D,), optional
        Those of Z, by default all.

    Returns
    -------
    array, (n, k), or None
        nan for rows that are not left out. None if the problem does not ask for them, or there are
        too many features.
    """
    n = Z.shape[0]
    D, k = coef.shape
    count = enough_rows(n, D, k)
    if not problem.predicts_left_out or not Z.rows_here or not D or count is None:
        return None
    rows = np.arange(n) if count == n else _some_rows(problem, count)
    some = problem if count == n else problem.rows(rows)
    own = Z if count == n else Z.rows(rows)
    own = own if columns is None else own.columns(columns)
    Z, Y, loss = weights.problem(own, some.Y - offset, some.loss, some.weights)
    roots = None
    if some.weights is not None and loss.name == "squared":
        roots = np.sqrt(some.weights)
    F = Z.matvec(coef)
    centred = problem.centred(method)
    found = linear(Z, F, Y, lam, loss, roots, some.repeats, centred, len(rows) / n)
    out = np.full(problem.Y.shape, np.nan)
    out[rows] = found + offset
    return out


def _some_rows(problem: Problem, count: int) -> np.ndarray:
    """About so many random rows; equal rows are all among them, or none."""
    n, repeats = problem.n_rows, problem.repeats
    if repeats is None:
        return random_rows(n, count)
    names = np.unique(repeats)
    chosen = names[random_rows(len(names), count * len(names) // n)]
    return np.flatnonzero(np.isin(repeats, chosen))


def left_out_sparse(
    Z: Matrix, coef: np.ndarray, problem: Problem, method: Method
) -> np.ndarray | None:
    """`left_out` of weights (D, k) with an L1 penalty over the features Z (n, D)."""
    if not problem.predicts_left_out or not Z.rows_here:
        return None
    columns = []
    for k, weights_of_output in enumerate(coef.T):
        used = np.flatnonzero(weights_of_output)
        if not len(used):
            columns.append(_mean_of_others(problem, method)[:, [k]])
            continue
        own = replace(problem, Y=problem.Y[:, [k]])
        coef_of_output = weights_of_output[used, None]
        column = left_out(Z, coef_of_output, own, method, 0.0, columns=used)
        if column is None:
            return None
        columns.append(column)
    return np.hstack(columns)


def _mean_of_others(problem: Problem, method: Method) -> np.ndarray:
    """(n, k) decision values of a model without features, by that without each row: the mean of its
    targets if it subtracts that, else zero.
    """
    if not problem.centred(method):
        return np.zeros(problem.Y.shape)
    own = np.ones(problem.n_rows) if problem.weights is None else problem.weights
    return -moved_mean(problem.Y, own, problem.repeats)


def solve_path(
    Z: Inputs, problem: Problem, method: Method, lams: list[float]
) -> Iterator[Solution]:
    """A solution for each lambda by rfx's own solvers.

    Squared loss uses one Gram matrix for all of them; other losses start each at the previous
    solution.
    """
    limits = budget(problem, method)
    Z = _placed(Z, problem, method)
    Z, Y, loss = weights.problem(Z, problem.Y, problem.loss, problem.weights)
    if loss.name == "squared":
        yield from solve_ridge_grid(Z, Y, lams, limits)
        return
    last: list[np.ndarray | None] = [None] * Y.shape[1]
    for lam in lams:
        outputs = [solve_l2(Z, Y[:, k], lam, loss, limits, last[k]) for k in range(len(last))]
        last = [one.coef for one in outputs]
        yield stack(outputs)


def coefficients_along(
    Z: Inputs, problem: Problem, method: Method, lams: list[float]
) -> Iterator[np.ndarray]:
    """Weights (D, k) for each lambda, of models that are only evaluated.

    They are exact for squared loss, else to --tol.
    """
    Z = _placed(Z, problem, method)
    if problem.loss.name == "squared" and Z.shape[1] <= min(MOST_COLUMNS, 2 * Z.shape[0]):
        Z, Y, _ = weights.problem(Z, problem.Y, problem.loss, problem.weights)
        yield from ridge_path(Z, Y, lams)
    else:
        yield from (one.coef for one in solve_path(Z, problem, method, lams))


# ---------------------------------------------------------------------- decision values


def linear_decision(feature_map: FeatureMap, coef: np.ndarray, X: Inputs) -> np.ndarray:
    """(n, k) float64 values of coef' phi(x) for the rows of X, in blocks that fit the processor
    cache.
    """
    if not feature_map.n_features:
        return np.zeros((X.shape[0], coef.shape[1]))
    quick = feature_map.quick_decision(X, coef)
    if quick is not None:
        return quick
    if (placed := DeviceMatrix.of(feature_map, X)) is not None:
        return placed.matvec(coef)
    size = feature_map.n_features * feature_map.dtype.itemsize
    Z = MapMatrix(feature_map, X, block=max(32, PREDICTION_BYTES // size))
    return np.asarray(Z.matvec(coef[:, 0])[:, None]) if coef.shape[1] == 1 else Z.matvec(coef)
