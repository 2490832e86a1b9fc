"""The exact kernel machine, `kernel`: lam/2 ||f||^2 + sum L(f(x) [+ b], y), eq. 1 of Yen et al.
(2014); and the recursive feature machine, `rfm`, with a learnt metric.

By default ridge regression for regression, a support vector machine for classification. With the
absolute or the epsilon-insensitive loss, regression uses a support vector machine, too. With
squared loss, classes are fitted by ridge regression, one against the rest with targets +-1 (Wu et
al. 2016); with logistic loss, by kernel logistic regression. A support vector machine of several
classes has one machine per pair, as in LIBSVM. Equation 1 has no bias, and neither have ridge and
logistic regression. A support vector machine has one unless `--bias false` is given: LIBSVM, which
the paper used, always has one.

The recursive feature machine (Radhakrishnan, Beaglehole, Pandit and Belkin 2024) is kernel ridge
regression with k(A'x, A'z), where M = A A' is the average outer product of the gradients of the
previous machine (`rfx.fitting.metric_learning`). Scaling, kernel, metric, bandwidth and lambda are
chosen by leave-one-out.

`nystrom` approximates the kernel by its values at at most D landmarks (Williams and Seeger 2001):
lam/2 ||w||^2 + sum L(w.z(x), y) with z(x).z(y) = k_m(x)'K_mm^-1 k_m(y); no bias. The model consists
of the landmarks and the coefficients K_mm^(-1/2) w, so that a prediction needs D kernel values per
row. A baseline of Wu et al. (2016, section 5.2), who draw the landmarks at random.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, cast

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike

from rfx import env, kernels, parallel
from rfx import steps as told
from rfx.counters import random_rows
from rfx.errors import DataError, UsageError
from rfx.features.nystrom import NystromMap, choose_landmarks
from rfx.features.partition import Partition, uniform_blocks
from rfx.fitting import weights
from rfx.fitting.linear import coefficients_along, left_out, solve, step_callback
from rfx.fitting.method import (
    ONLY_SQUARED,
    Fitted,
    Method,
    Model,
    TunedMethod,
    budget,
    check_n_inputs,
    each_output,
    scalars,
)
from rfx.fitting.options import (
    AUTO,
    CG,
    CHOSEN_GAMMA,
    CHOSEN_LAM,
    CHOSEN_SCALING,
    CLASS_WEIGHT,
    DTYPE,
    EPSILON,
    GAMMA_FACTORS,
    KERNELS,
    LAMS,
    LIBLINEAR,
    LOSS,
    METRIC,
    MOST,
    N_FEATURES,
    SOLVER,
    TOL,
    TOL_OF_SOLVERS,
    SearchSpace,
    chosen_kernel,
)
from rfx.fitting.problem import Cache, Clock, Problem, evaluating, stays_sparse, telling
from rfx.kernels.gradients import outer_product
from rfx.losses import Loss
from rfx.model import Array, check_within, read_fields
from rfx.operators.blocks import default_memory_mb
from rfx.operators.kernel import MOST_ROWS, KernelMatrix, svm
from rfx.operators.mapped import dense, feature_matrix
from rfx.operators.matrix import Matrix
from rfx.operators.sparse import SparseMatrix
from rfx.options import Chosen, option
from rfx.solvers.base import Callback, Solution, for_output, stack
from rfx.solvers.kernel import solve_kernel_dense, solve_kernel_newton, solve_kernel_ridge
from rfx.solvers.published.libraries import solve_liblinear, solve_libsvm
from rfx.solvers.svm import solve_kernel_svm
from rfx.types import Arrays, Index, Inputs, JsonObject, KernelParams

log = logging.getLogger(__name__)
# Maximum rows for validation, because each fit takes the square of their number.
ROWS = 5000
# Number of rows from which a pass over all kernel values takes seconds, and a fit takes many
# passes.
MANY = 50_000
# Maximum classes for one support vector machine per pair, otherwise one per class: its coefficients
# are one column per machine.
PAIRED = 30
# Losses of support vector machines.
CLASSIFICATION = ("hinge", "squared_hinge")
REGRESSION = ("absolute", "epsilon_insensitive")
OF_THE_CHOICE = "chosen together with scaling, kernel and metric"
# For a model of pairs of classes.
PAIRS_COEF = Array("f", "vectors pairs")
PAIRS_INTERCEPT = Array("f", "pairs")
# The arrays of a CSR matrix.
CSR = ("data", "indices", "indptr")
# Rows over which squared gradients are averaged.
GRADIENT_ROWS = 300
# Minimum number of sparse rows that are dense at a time when kernel values are computed
# (rfx.kernels.blocks).
SPARSE_ROWS = 128
# Of predictions, relative to the targets, above which kernel values are computed in float64.
LEAST_ERROR = 1e-5
TRIED_KERNELS = ("laplacian-l2", "laplacian")


# ---------------------------------------------------------------------- models


@dataclass(frozen=True)
class ExpansionModel:
    """f(x) = sum_i coef_i k(s_i, x) + intercept.

    Parameters
    ----------
    kernel : str
    params : dict
        The kernel's parameters.
    support : array or CSR matrix, (m, d)
        The scaled rows s_i.
    coef : array, (m, k)
    intercept : array, (k,)
    dtype : type or None
        The type of kernel values in predictions; None for that of the rows.
    n_classes : int
        For one machine per pair of classes; 0 if each output has its own machine.

    Notes
    -----
    A pair's value for its first class is f, limited to [-1, 1], and -f for the second. A class gets
    the mean of its pairs' values.
    """

    kernel: str
    params: KernelParams
    support: Inputs
    coef: np.ndarray
    intercept: np.ndarray
    dtype: DTypeLike | None = None
    n_classes: int = 0

    @classmethod
    def of(
        cls,
        kernel: str,
        params: KernelParams,
        rows: Inputs,
        coef: np.ndarray,
        intercept: np.ndarray,
        dtype: DTypeLike | None = None,
        n_classes: int = 0,
        scale: float | np.ndarray | None = None,
    ) -> ExpansionModel:
        """The model of the rows with a nonzero coefficient in any output.

        scale: the largest magnitudes of the targets (k,); rows in float32 become float64 if the
        coefficients are too large for float32 kernel values.
        """
        used = np.flatnonzero(np.any(coef != 0, axis=1))
        rows = rows[used]
        coef = coef[used]
        if scale is not None and kernels.rounding_error(coef, scale) > LEAST_ERROR:
            rows = rows.astype(np.float64)
        return cls(kernel, params, rows, coef, intercept, dtype, n_classes)

    def decision(self, X: Inputs) -> np.ndarray:
        """(n, k) values for scaled rows X (n, d)."""
        sums = kernels.decision(
            self.kernel, self.params, self.support, self.coef, X, dtype=self.dtype
        )
        columns = np.asarray(sums, np.float64).reshape(X.shape[0], -1)
        values = columns + self.intercept
        if not self.n_classes:
            return values
        return np.clip(values, -1.0, 1.0) @ of_pairs(self.n_classes)

    def steps(self) -> told.Steps:
        """The computation steps of `decision` for dense rows."""
        found: told.Steps = told.constant(self.support.shape[1], self.intercept)
        if len(self.coef):
            found = *self.kernel_steps(), told.linear(self.coef, self.intercept)
        if self.n_classes:
            ones = np.ones(len(self.intercept))
            mean = told.linear(of_pairs(self.n_classes))
            found += (told.Clip(-ones, ones), mean)
        return found

    def kernel_steps(self) -> told.Steps:
        """The computation steps from a row to its kernel values with the support."""
        dense = self.support.toarray() if sp.issparse(self.support) else self.support
        return kernels.get_kernel(self.kernel).steps(dense, self.params)

    def arrays(self) -> Arrays:
        parameters = {f"kernel_{key}": np.asarray(value) for key, value in self.params.items()}
        expansion = {"coef": self.coef, "intercept": self.intercept}
        return parameters | rows_arrays("support", self.support) | expansion

    def header(self) -> JsonObject:
        pairs = {"pairs": True} if self.n_classes else {}
        return {"n_inputs": self.support.shape[1]} | pairs

    def describe(self) -> dict[str, object]:
        return {
            "n_features": None,
            "model_size": len(self.coef),
            "kernel_params": scalars(self.params),
        }

    @classmethod
    def restored(
        cls,
        header: JsonObject,
        arrays: Arrays,
        method: Method,
        dtype: DTypeLike | None = None,
    ) -> ExpansionModel:
        """The model of a file's header and arrays."""
        kernel = kernels.get_kernel(method.kernel)
        missing = {key for key in kernel.optional if f"kernel_{key}" not in arrays}
        values = {key: arrays[f"kernel_{key}"] for key in kernel.parameters if key not in missing}
        params = {key: float(v) if v.ndim == 0 else v for key, v in values.items()}
        support = restored_rows("support", arrays, header["n_inputs"])
        saved = read_fields(_SavedExpansion, arrays)
        coef, intercept = saved.coef, saved.intercept
        n_classes = 0
        if header.get("pairs") and saved.classes is not None:
            n_classes = len(saved.classes)
        if n_classes and len(intercept) != len(pairs(n_classes)):
            raise DataError(f"its {len(intercept)} machines do not match the pairs of classes")
        return cls(method.kernel, params, support, coef, intercept, dtype, n_classes)


@dataclass(frozen=True)
class _SavedExpansion:
    """The arrays of a model file that every expansion has."""

    coef: np.ndarray
    intercept: np.ndarray
    classes: np.ndarray | None = None


def rows_arrays(name: str, X: Inputs) -> Arrays:
    """The arrays of that name in a model file for rows X (n, d), array or CSR."""
    if isinstance(X, np.ndarray):
        return {name: X}
    return {f"{name}_{part}": getattr(X.tocsr(), part) for part in CSR}


def restored_rows(name: str, arrays: Arrays, n_inputs: int) -> Inputs:
    """The rows of `rows_arrays`."""
    if name in arrays:
        return arrays[name]
    parts = tuple(arrays[f"{name}_{part}"] for part in CSR)
    n_rows = len(parts[-1]) - 1
    return sp.csr_matrix(parts, shape=(n_rows, n_inputs))


def pairs(n_classes: int) -> list[tuple[int, int]]:
    """The pairs of classes, each with the lower number first."""
    return list(itertools.combinations(range(n_classes), 2))


def of_pairs(n_classes: int) -> np.ndarray:
    """(pairs, classes), the matrix from the values of pairs to the means of the classes."""
    classes = np.eye(n_classes)
    first, second = np.transpose(pairs(n_classes))
    return (classes[first] - classes[second]) / (n_classes - 1)


class ExpansionMethod(TunedMethod):
    """A method whose model is an `ExpansionModel`."""

    kernel: str = chosen_kernel(
        lambda: [name for name, own in kernels.KERNELS.items() if own.metric],
        TRIED_KERNELS,
        "gaussian",
    )()
    dtype: str = DTYPE()

    space = SearchSpace({"gamma": GAMMA_FACTORS, "lam": LAMS}, kernels=TRIED_KERNELS)
    arrays: ClassVar[dict[str, Array]] = {
        "coef": Array("f", "vectors outputs"),
        "intercept": Array("f", "outputs"),
        "support": Array("f", "vectors inputs"),
        # or as CSR
        "support_data": Array("f", "entries"),
        "support_indices": Array("i", "entries", places="inputs"),
        "support_indptr": Array("i", "vectors+1", cuts="entries"),
    }

    def vectors(self, X: Inputs) -> int:
        # kernels make sparse rows dense a few at a time
        if stays_sparse(X, self.scaling):
            return min(X.shape[0], SPARSE_ROWS)
        return X.shape[0]

    def saved_arrays(self, header: JsonObject) -> dict[str, Array]:
        check_n_inputs(header, header["n_inputs"], "its rows have")
        parameters = kernels.get_kernel(self.kernel).parameters
        found = self.arrays | {f"kernel_{name}": array for name, array in parameters.items()}
        if header.get("pairs"):
            found |= {"coef": PAIRS_COEF, "intercept": PAIRS_INTERCEPT}
        return found

    def restore(self, header: JsonObject, arrays: Arrays) -> ExpansionModel:
        return ExpansionModel.restored(header, arrays, self)

    def gradient_squares(self, model: Model) -> np.ndarray | None:
        if type(model) is not ExpansionModel or not len(model.coef) or sp.issparse(model.support):
            return None
        if model.n_classes or not kernels.get_kernel(model.kernel).has_gradient:
            return None
        rows = random_rows(len(model.coef), GRADIENT_ROWS, seed=self.seed)
        machine = model.kernel, model.support, model.coef, model.params
        return outer_product(*machine, rows, False)


# ---------------------------------------------------------------------- the exact machine


class Kernel(ExpansionMethod):
    """The exact kernel machine; the model is its support vectors."""

    name = "kernel"
    accelerated = leaves_out = True
    summary = "the exact kernel machine: ridge regression or a support vector machine"
    evaluates_steps = True
    # whether it is fitted to targets less their mean
    centred: ClassVar[bool] = False
    space = replace(ExpansionMethod.space, most=ROWS)
    dtype: str = DTYPE(default="float64")
    lam: float | Chosen = CHOSEN_LAM(
        help=f"{CHOSEN_LAM.help} Validation of lambda or gamma uses at most {ROWS:,} rows."
    )
    loss: str | None = LOSS(
        choices=("squared", "squared_hinge", "hinge", "logistic", *REGRESSION),
        help=(
            f"{LOSS.help} With 3 to {PAIRED} classes, the hinge losses train one machine per"
            " pair of classes; the other losses train one per class. With absolute or"
            " epsilon_insensitive loss, regression uses a support vector machine."
        ),
    )
    epsilon: float | None = EPSILON(
        default=None, help=f"{EPSILON.help} By default 0.1 standard deviations of the targets."
    )
    bias: bool | None = option(
        None,
        "Unpenalised bias b of a support vector machine, as in LIBSVM, true by default; the"
        " paper's objective has none.",
    )
    solver: str = SOLVER.adding({"libsvm": "LIBSVM, in a child process"})()
    tol: float | None = TOL(help=f"{TOL.help} The `-e` of LIBSVM.")
    class_weight: str | None = CLASS_WEIGHT()

    @classmethod
    def is_random(cls, options: Mapping[str, object]) -> bool:
        """Deterministic, unless validation or medians of samples choose options."""
        kernel = kernels.KERNELS.get(options.get("kernel"))
        if kernel is None or options.get("solver") != "rfx" or options.get("metric") != "none":
            return True
        chosen = ["lam"]
        if "gamma" in kernel.parameters:
            chosen.append("gamma")
        words = any(isinstance(options.get(name), str) for name in chosen)
        return words or options.get("scaling") == AUTO

    def fit(self, problem: Problem, cache: Cache) -> Fitted:
        if problem.n_rows >= MANY:
            log.warning(
                "the exact kernel machine of %s rows has %.2g kernel values and may take hours;"
                " method nystrom approximates it within seconds or minutes",
                f"{problem.n_rows:,}",
                float(problem.n_rows) ** 2,
            )
        params = self.kernel_params(problem.X)
        name = problem.loss.name
        k = problem.n_outputs
        in_pairs = name in CLASSIFICATION and 2 < k <= PAIRED
        n_classes = k if in_pairs else 0
        fit = _machines if name in (*CLASSIFICATION, *REGRESSION) else _without_bias
        solution, coef, intercept, norm = fit(params, problem, self, n_classes)
        scale = 1.0 if n_classes else np.abs(problem.Y).max(axis=0)
        expansion = self.kernel, params, problem.X, coef, intercept
        model = ExpansionModel.of(*expansion, n_classes=n_classes, scale=scale)
        # ||f||, which also determines the sum of losses from the objective (Yen et al. 2014, Figure
        # 1)
        norms = {} if norm is None else {"norm": norm}
        return Fitted(model, solution, norms, left_out=solution.left_out)


def _without_bias(params: KernelParams, problem: Problem, method: Kernel, n_classes: int):
    """(solution, coefficients, intercept, norm) of ridge or logistic regression."""
    ridge = problem.loss.name == "squared"
    what = "kernel ridge" if ridge else "kernel logistic regression"
    if method.bias:
        raise UsageError(
            f"--bias is for support vector machines; {what} has none (Yen et al. 2014, eq. 1)"
        )
    if method.solver != "rfx":
        raise UsageError(
            f"--solver is {method.solver}, which does not support {what} here; use --solver rfx"
        )
    X, factors = problem.X, 1.0
    Y, loss = weights.targets(problem.Y, problem.loss, problem.weights)
    K = KernelMatrix(method.kernel, X, params)
    if ridge and problem.weights is not None:
        factors = np.sqrt(problem.weights)
        K = KernelMatrix(method.kernel, X, params, factors)

    def decide(rows):
        def decision(coef):
            weighted = (coef.T * factors).T
            return kernels.decision(method.kernel, params, X, weighted, rows)

        return decision

    callback = evaluating(problem, decide)
    limits = budget(problem, method)
    if ridge:
        centred = method.centred or problem.centred(method)
        solution = solve_kernel_ridge(
            K,
            Y,
            method.lam,
            limits,
            callback,
            predicts_left_out=problem.predicts_left_out,
            centred=centred,
            repeats=problem.repeats,
        )
    else:
        solution = solve_kernel_newton(K, Y, method.lam, loss, limits, callback)
    columns = np.asarray(solution.coef).reshape(problem.n_rows, -1)
    coef = (columns.T * factors).T
    norm = _norm(solution, K, Y, loss, method.lam)
    return solution, coef, np.zeros(problem.n_outputs), norm


def _machines(params: KernelParams, problem: Problem, method: Kernel, n_classes: int):
    """(solution, coefficients, intercept (m,), norm) of the support vector machines: one for each
    pair of classes, fitted to their rows, or one for each output if n_classes is 0.
    """
    bias = True if method.bias is None else method.bias
    if problem.curve is not None:
        raise UsageError(
            "curves are not supported for a support vector machine, whose bias is known only at the"
            " end; omit --curve"
        )
    if method.solver == "libsvm" and not bias:
        raise UsageError(
            "--solver libsvm always has a bias; set --bias true or choose --solver rfx"
        )
    limits = budget(problem, method)
    tell = telling(problem, len(pairs(n_classes)) or None)
    K = KernelMatrix(method.kernel, problem.X, params)
    jobs = _rows_and_labels(problem.Y, n_classes)
    # for pairs of classes of which neither is among the rows
    nothing = Solution(np.zeros(problem.n_rows), 0.0, 0.0, 0, "converged")
    solutions = [nothing] * len(jobs)
    intercepts = [0.0] * len(jobs)
    norms: list[float | None] = [0.0] * len(jobs)
    for place, (rows, y) in enumerate(jobs):
        if not len(y):
            continue
        part = K.part(rows) if isinstance(rows, np.ndarray) else K
        Y = y[:, None]
        loss = problem.loss
        row_weights = weights.part(problem.weights, rows)
        if loss.name in CLASSIFICATION:
            # the labels carry the weights
            Y, loss = weights.targets(Y, loss, row_weights)
            row_weights = None
        if method.solver == "libsvm":
            machine = solve_libsvm(part, Y[:, 0], method.lam, loss, limits, seed=method.seed)
        else:
            machine = solve_kernel_svm(
                part,
                Y[:, 0],
                method.lam,
                loss,
                limits,
                for_output(tell, place),
                bias=bias,
                weights=row_weights,
            )
        norms[place] = _norm(machine, part, Y, loss, method.lam)
        intercepts[place] = machine.intercept
        coef = np.zeros(problem.n_rows)
        coef[rows] = machine.coef
        solutions[place] = replace(machine, coef=coef)
    solution = stack(solutions)
    norm = None
    if None not in norms:
        norm = float(np.linalg.norm(cast(list[float], norms)))
    if problem.predicts_left_out and problem.loss.name == "squared_hinge":
        biases = np.array(intercepts)
        solution.left_out = _left_out(K, jobs, solution.coef, biases, problem, method, n_classes)
    return solution, solution.coef, np.array(intercepts), norm


def _rows_and_labels(Y: np.ndarray, n_classes: int) -> list[tuple[Index, np.ndarray]]:
    """The rows of each machine, and their labels or targets; see `_machines`."""
    jobs: list[tuple[Index, np.ndarray]] = []
    if not n_classes:
        every = slice(None)
        jobs += [(every, y) for y in Y.T]
        return jobs
    positive = Y > 0
    for first, second in pairs(n_classes):
        is_either = positive[:, first] | positive[:, second]
        rows = np.flatnonzero(is_either)
        labels = np.where(positive[rows, first], 1.0, -1.0)
        jobs.append((rows, labels))
    return jobs


def _left_out(
    K: KernelMatrix,
    jobs: list[tuple[Index, np.ndarray]],
    coef: np.ndarray,
    intercepts: np.ndarray,
    problem: Problem,
    method: Kernel,
    n_classes: int,
) -> np.ndarray:
    """(n, k) decision values of rows by the support vector machines without each of them, nan for
    other rows; jobs: the rows of each machine, and their labels.
    """
    n = problem.n_rows
    bias = method.bias is None or method.bias
    rows = random_rows(n, min(n, MOST_ROWS))
    support = np.flatnonzero(coef.any(axis=1))
    machines = problem.X[support], coef[support]
    sums = kernels.decision(method.kernel, K.params, *machines, problem.X[rows])
    values = np.asarray(sums, np.float64).reshape(len(rows), -1)
    values = values + intercepts
    for place, (of_machine, y) in enumerate(jobs):
        numbers = np.arange(n)[of_machine]
        own = np.flatnonzero(np.isin(rows, numbers))
        row_weights = weights.part(problem.weights, of_machine)
        if row_weights is None:
            row_weights = np.ones(len(y))
        shift = method.lam / (2 * row_weights)
        part = K.part(numbers) if n_classes else K
        places = np.searchsorted(numbers, rows[own])
        f = values[own, place]
        beta = coef[numbers, place]
        repeats = None if problem.repeats is None else problem.repeats[numbers]
        values[own, place] = svm(part, beta, y, shift, places, f, bias, repeats)
    if n_classes:
        values = np.clip(values, -1.0, 1.0) @ of_pairs(n_classes)
    out = np.full((n, values.shape[1]), np.nan)
    out[rows] = values
    return out


def _norm(
    solution: Solution, K: KernelMatrix, Y: np.ndarray, loss: Loss, lam: float
) -> float | None:
    """The square root of sum_k ||f_k||_H^2; None without a duality gap.

    If the gap is that of the dual point -lam alpha, no pass over kernel values is needed: the dual,
    objective - gap, is -sum L*(-lam alpha) - lam/2 ||f||^2. Newton's gap may belong to another
    point.
    """
    if solution.gap is None:
        return None
    coef = np.asarray(solution.coef)
    if loss.name == "logistic":
        square = np.sum(solution.coef * K.matvec(coef))
        return float(np.sqrt(max(0.0, square)))
    dual = solution.objective - solution.gap
    conjugates = float(loss.conjugate(-lam * coef.reshape(Y.shape), Y).sum())
    square = 2 * (-conjugates - dual) / lam
    return float(np.sqrt(max(0.0, square)))


class RFM(Kernel):
    """The exact kernel machine with a learnt metric."""

    name = "rfm"
    summary = "recursive feature machine: kernel ridge regression with a learnt metric"
    # classes are fitted as targets +-1
    default_losses = ONLY_SQUARED
    centred = True
    space = replace(Kernel.space, kernels=KERNELS, thorough=True)
    scaling: str = CHOSEN_SCALING(default=AUTO)
    metric: str = METRIC(default=AUTO)
    # those with exact values of rows that a metric may map
    kernel: str = chosen_kernel(
        lambda: [name for name, own in kernels.KERNELS.items() if own.metric and not own.scalings],
        KERNELS,
    )()
    gamma: float | Chosen = CHOSEN_GAMMA.adding({AUTO: OF_THE_CHOICE})(default=AUTO)
    lam: float | Chosen = Kernel.options["lam"].adding({AUTO: OF_THE_CHOICE})(default=AUTO)

    def fit(self, problem: Problem, cache: Cache) -> Fitted:
        """The machine of the centred targets; their mean is the intercept."""
        if problem.loss.name != "squared":
            return super().fit(problem, cache)
        offset = weights.mean(problem.Y, problem.weights)
        fitted = super().fit(problem.minus_offset(offset), cache)
        model = cast(ExpansionModel, fitted.model)
        left_out = fitted.left_out
        left_out = None if left_out is None else left_out + offset
        return replace(fitted, model=replace(model, intercept=offset), left_out=left_out)


# The coefficients of nearly dependent landmarks cancel.
DECISION_DTYPE = np.float64


class Nystrom(ExpansionMethod):
    """Nystrom features of landmarks with L2 regularisation."""

    name = "nystrom"
    accelerated = leaves_out = True
    summary = "Nystrom approximation of the kernel machine from landmarks"
    evaluates_steps = True
    landmarks: str = option(
        "uniform",
        "How landmarks are chosen.",
        of={
            "uniform": "rows drawn uniformly",
            "kmeans": "centres of k-means",
            "rpcholesky": "pivots of randomly pivoted Cholesky",
        },
    )
    n_features: int = N_FEATURES(help=N_FEATURES.help.replace("random features", "landmarks"))
    lam: float | Chosen = CHOSEN_LAM()
    solver: str = SOLVER.adding(CG, LIBLINEAR)()
    tol: float | None = TOL_OF_SOLVERS()
    class_weight: str | None = CLASS_WEIGHT()

    def fit(self, problem: Problem, cache: Cache) -> Fitted:
        clock = Clock()
        feature_map, Z = clock.timed("features", self._features, problem)
        callback = step_callback(problem, feature_map, self)
        solution = solve(Z, problem, self, callback)
        details = {"n_features": self.n_features, "rank": feature_map.n_features}
        coef = np.asarray(solution.coef)
        model = _model(feature_map, coef)
        out = left_out(Z, coef, problem, self, self.lam)
        return Fitted(model, solution, details, clock.seconds, out)

    def decisions_along(
        self, problem: Problem, lams: list[float], X_out: Inputs, cache: Cache
    ) -> Iterator[np.ndarray]:
        if self.solver != "rfx":
            yield from super().decisions_along(problem, lams, X_out, cache)
            return
        feature_map, Z = self._features(problem)
        for coef in coefficients_along(Z, problem, self, lams):
            yield _model(feature_map, coef).decision(X_out)

    def restore(self, header, arrays) -> ExpansionModel:
        return ExpansionModel.restored(header, arrays, self, DECISION_DTYPE)

    def _features(self, problem: Problem) -> tuple[NystromMap, Matrix]:
        """The map of the landmarks, and its features Z (n, D) of the rows."""
        X = problem.X
        params = self.kernel_params(problem.X)
        limit = default_memory_mb() if self.max_memory is None else self.max_memory
        count = self.n_features
        chosen = (self.landmarks, self.kernel, X, params, count, self.seed, limit)
        landmarks = choose_landmarks(*chosen)
        feature_map = NystromMap(self.kernel, landmarks, params, self.dtype)
        return feature_map, feature_matrix(feature_map, X, 1.0, limit)


def _model(feature_map: NystromMap, coef: np.ndarray) -> ExpansionModel:
    machine = feature_map.name, feature_map.params, feature_map.landmarks
    of_landmarks = feature_map.fold(coef)
    intercept = np.zeros(coef.shape[1])
    return ExpansionModel.of(*machine, of_landmarks, intercept, DECISION_DTYPE)


# The arrays of a partition in a model file.
PARTITION = {
    "partition_directions": Array("f", "cuts inputs"),
    "partition_thresholds": Array("f", "cuts"),
    "partition_children": Array("i", "cuts 2"),
}


def partition_arrays(partition: Partition) -> dict[str, np.ndarray]:
    """The arrays of PARTITION."""
    return {name: getattr(partition, name.partition("_")[2]) for name in PARTITION}


def restored_partition(arrays: Arrays, n_blocks: int) -> Partition:
    """The partition of a model file's arrays; DataError if they are not one of so many blocks."""
    partition = Partition(*(arrays[name] for name in PARTITION))
    cuts = len(partition.thresholds)
    children = partition.children
    if n_blocks != cuts + 1:
        raise DataError("its tree has another number of leaves than its model")
    check_within("partition_children", children, -cuts - 1, cuts)
    if np.any((children >= 0) & (children <= np.arange(cuts)[:, None])):
        raise DataError("array partition_children contains a cycle")
    return partition


class Block(ExpansionMethod):
    """lam/2 ||f||^2 + sum L(f(x), y) in each block of rows, no bias; k = 0 between blocks.

    The kernel made block-diagonal by a random partition of the inputs (Wu et al. 2016, section
    5.2).

    The paper calls it "independent block approximation" and gives it a rank R, without details. R
    is interpreted as the number of rows per block: then, as for the other methods, there are N R
    kernel values, and a prediction needs R of them, consistent with the authors' prediction times.
    A new row therefore belongs to one block, and the partition must be one of the inputs: their
    accuracy on letter at R = 8 is 71.66 percent, while eight random rows contain at most eight of
    its 26 classes. `hyperplanes` is that interpretation: random hyperplanes cut the inputs into
    blocks, and the block that contains a row predicts it; ours are 73.6 percent on letter at R = 8
    and 97.88 on ijcnn1 at R = 1024, like theirs. `uniform` is the literal interpretation: rows are
    assigned at random, a new row belongs to no block, and its prediction is the mean over all
    blocks (divide and conquer, Zhang, Duchi and Wainwright 2015), with N kernel values.
    """

    name = "block"
    accelerated = True
    summary = "independent blocks: the exact kernel machine within each part of a random partition"
    dtype: str = DTYPE(default="float64")
    partition: str = option(
        "hyperplanes",
        "How rows are assigned to blocks.",
        of={
            "hyperplanes": (
                "blocks cut by random hyperplanes; the block that contains a row predicts it"
            ),
            "uniform": "rows assigned uniformly at random; the mean of all blocks predicts a row",
        },
    )
    block_size: int = option(1000, "Maximum number R of rows per block.", least=1, most=MOST)
    lam: float | Chosen = CHOSEN_LAM()
    solver: str | None = SOLVER.adding(LIBLINEAR)(default=None)
    tol: float | None = TOL()
    class_weight: str | None = CLASS_WEIGHT()
    arrays = ExpansionMethod.arrays | {"starts": Array("i", "blocks+1", cuts="vectors")} | PARTITION

    def vectors(self, X: Inputs) -> int:
        vectors = super().vectors(X)
        if self.partition != "hyperplanes":
            return vectors
        n_blocks = -(-X.shape[0] // self.block_size)
        return vectors + n_blocks - 1

    def fit(self, problem: Problem, cache: Cache) -> Fitted:
        X, seed = problem.X, self.seed
        clock = Clock()
        params = self.kernel_params(X)
        if self.partition == "uniform":
            partition = None
            blocks = uniform_blocks(X.shape[0], self.block_size, seed)
        else:
            cut = dense(X), self.block_size, seed
            partition, blocks = clock.timed("features", Partition.fit, *cut)
        solve = _published if self.solver == "liblinear" else _solved
        solutions = solve(problem, params, blocks, self)
        coef = np.concatenate([s.coef for s in solutions])
        if partition is None:
            coef = coef / len(blocks)
        ends = np.cumsum([0] + [len(rows) for rows in blocks])
        is_used = np.any(coef != 0, axis=1)
        used = np.concatenate([[0], np.cumsum(is_used)])
        rows = problem.X[np.concatenate(blocks)]
        intercept = np.zeros(problem.n_outputs)
        scale = np.abs(problem.Y).max(axis=0)
        expansion = ExpansionModel.of(self.kernel, params, rows, coef, intercept, scale=scale)
        model = BlockModel(**vars(expansion), starts=used[ends], partition=partition)
        whole = stack(solutions, model.coef, of="block")
        return Fitted(model, whole, {"n_blocks": len(blocks)}, clock.seconds)

    def restore(self, header, arrays) -> BlockModel:
        partition = None
        starts = arrays["starts"]
        if self.partition == "hyperplanes":
            partition = restored_partition(arrays, len(starts) - 1)
        expansion = ExpansionModel.restored(header, arrays, self)
        return BlockModel(**vars(expansion), starts=starts, partition=partition)


@dataclass(frozen=True)
class BlockModel(ExpansionModel):
    """An expansion whose support is stored block by block, block b from starts[b] on.

    partition is None if the mean of all blocks predicts a row.
    """

    starts: np.ndarray = None  # type: ignore[assignment]
    partition: Partition | None = None

    def decision(self, X: Inputs) -> np.ndarray:
        if self.partition is None:
            return super().decision(X)
        kernel, params = self.kernel, self.params
        placed = self.partition.place(dense(X))
        out = np.zeros((X.shape[0], len(self.intercept)))
        support = kernels.prepare(kernel, self.support, params, np.float64)
        rows = kernels.prepare(kernel, X, params, like=support)

        def part(start, stop):
            for b in range(start, stop):
                inside = slice(self.starts[b], self.starts[b + 1])
                if len(placed[b]) and inside.stop > inside.start:
                    block = support.take(inside)
                    taken = rows.take(placed[b])
                    values = kernels.decision(kernel, params, block, self.coef[inside], taken)
                    columns = np.asarray(values, np.float64)
                    out[placed[b]] = columns.reshape(len(placed[b]), -1)

        with parallel.one_blas_thread():
            parallel.for_ranges(part, len(placed))
        return out

    def kernel_steps(self) -> told.Steps:
        """The kernel values of the row's own block, and zeros for all others."""
        if self.partition is None:
            return super().kernel_steps()
        numbers = np.arange(len(self.starts) - 1)
        blocks = np.repeat(numbers, np.diff(self.starts))
        inside = (*self.partition.steps(), told.Select(blocks))
        return (told.Product((super().kernel_steps(), inside)),)

    def arrays(self) -> Arrays:
        tree = {} if self.partition is None else partition_arrays(self.partition)
        return super().arrays() | {"starts": self.starts} | tree


def _block_mb(rows: int) -> float:
    """MiB of a block's kernel matrix and its factor."""
    return 2 * 8 * rows**2 / 2**20


def _solved(
    problem: Problem, params: KernelParams, blocks: list[np.ndarray], method: Block
) -> list[Solution]:
    """A Solution for each block; blocks not started at the deadline keep f = 0."""
    kernel = method.kernel
    limits = budget(problem, method)
    rows = kernels.prepare(kernel, problem.X, params, np.float64)
    solutions: list[Any] = [None] * len(blocks)

    def part(start, stop):
        for b in range(start, stop):
            block_weights = weights.part(problem.weights, blocks[b])
            Y, loss = weights.targets(problem.Y[blocks[b]], problem.loss, block_weights)
            if limits.late():
                value = float(loss.value(np.zeros_like(Y), Y).sum())
                solutions[b] = Solution(np.zeros_like(Y), value, value, 0, "timeout")
                continue
            block = rows.take(blocks[b])
            roots = np.ones(len(Y))
            if block_weights is not None and loss.name == "squared":
                roots = np.sqrt(block_weights)
            placed = block.on_device() if loss.name == "squared" else None
            if placed is None:
                K: Any = kernels.block(kernel, block, block, params)
                K *= roots[:, None]
                K *= roots
            else:
                K = placed.values(placed.rows, factors=roots)
            solutions[b] = solve_kernel_dense(K, Y, method.lam, loss, limits)
            solutions[b].coef = roots[:, None] * solutions[b].coef

    largest = max(len(block) for block in blocks)
    needed_mb = env.threads() * _block_mb(largest)
    most_mb = method.max_memory or default_memory_mb()
    if len(blocks) == 1 or needed_mb > most_mb:
        part(0, len(blocks))
    else:
        with parallel.one_blas_thread():
            parallel.for_ranges(part, len(blocks))
    return solutions


def _published(
    problem: Problem, params: KernelParams, blocks: list[np.ndarray], method: Block
) -> list[Solution]:
    """LIBLINEAR's Solution of all blocks at once, its coef (n, k) block by block.

    Within a block f = K c. With a factor K = L L' that is the linear machine over the rows of L,
    with c such that L'c = w; the factors together are one CSR matrix.
    """
    kernel = method.kernel
    limits = budget(problem, method)
    rows = kernels.prepare(kernel, problem.X, params, np.float64)
    roots, inverses = [], []
    for numbers in blocks:
        block = rows.take(numbers)
        K = kernels.block(kernel, block, block, params)
        values, vectors = np.linalg.eigh(K)
        least = len(numbers) * np.finfo(float).eps * values[-1]
        used = values > least
        lengths = np.sqrt(values[used])
        roots.append(vectors[:, used] * lengths)
        inverses.append(vectors[:, used] / lengths)
    Z = SparseMatrix(sp.block_diag(roots, format="csr"), np.float64)

    def solve_output(y: np.ndarray, tell: Callback | None) -> Solution:
        machine = Z, y, method.lam, problem.loss, limits
        return solve_liblinear(*machine, callback=tell, seed=method.seed)

    solution = each_output(problem.Y[np.concatenate(blocks)], solve_output)
    ends = np.cumsum([root.shape[1] for root in roots])
    parts = np.split(np.asarray(solution.coef), ends[:-1])
    solution.coef = np.concatenate([inverse @ w for inverse, w in zip(inverses, parts)])
    return [solution]
