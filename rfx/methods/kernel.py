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
previous machine (`rfx.fitting.inputs`). Scaling, kernel, metric, bandwidth and lambda are chosen by
leave-one-out.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, cast

import numpy as np

from rfx import kernels
from rfx.errors import UsageError
from rfx.fitting import weights
from rfx.fitting.callbacks import evaluating, telling
from rfx.fitting.candidates import KERNELS
from rfx.fitting.expansion import ExpansionMethod, ExpansionModel, of_pairs, pairs
from rfx.fitting.method import Fitted, budget
from rfx.fitting.options import (
    AUTO,
    CHOSEN_GAMMA,
    CHOSEN_LAM,
    CHOSEN_SCALING,
    CLASS_WEIGHT,
    DTYPE,
    EPSILON,
    LOSS,
    METRIC,
    SOLVER,
    TOL,
    chosen_kernel,
)
from rfx.fitting.problem import Cache, Problem
from rfx.operators.kernel import KernelMatrix, ScaledKernel
from rfx.operators.left_out import svm
from rfx.options import Chosen, option
from rfx.solvers.base import Certificate, Solution, for_output, stack
from rfx.solvers.kernel.newton import solve_kernel_newton
from rfx.solvers.kernel.ridge import solve_kernel_ridge
from rfx.solvers.kernel.svm import solve_kernel_svm
from rfx.solvers.published.libsvm import solve_libsvm

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
CLASSIFICATION, REGRESSION = ("hinge", "squared_hinge"), ("absolute", "epsilon_insensitive")
OF_THE_CHOICE = "chosen together with scaling, kernel and metric"


class Kernel(ExpansionMethod):
    """The exact kernel machine; the model is its support vectors."""

    name = "kernel"
    accelerated = True
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
    def is_random(cls, options: Mapping[str, Any]) -> bool:
        """Deterministic, unless validation or medians of samples choose options."""
        kernel = kernels.KERNELS.get(options.get("kernel"))
        if kernel is None or options.get("solver") != "rfx" or options.get("metric") != "none":
            return True
        chosen = ("lam", "gamma") if "gamma" in kernel.parameters else ("lam",)
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
        params, name, k = self.kernel_params(problem.X), problem.loss.name, problem.n_outputs
        n_classes = k if name in CLASSIFICATION and 2 < k <= PAIRED else 0
        fit = _machines if name in (*CLASSIFICATION, *REGRESSION) else _without_bias
        solution, coef, intercept, norm = fit(params, problem, self, n_classes)
        model = ExpansionModel.of(
            self.kernel, params, problem.X, coef, intercept, n_classes=n_classes
        )
        # ||f||, which also determines the sum of losses from the objective (Yen et al. 2014, Figure
        # 1)
        norms = {} if norm is None else {"norm": norm}
        return Fitted(model, solution, norms, left_out=solution.left_out)


def _without_bias(params: dict, problem: Problem, method: Kernel, n_classes: int):
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
        K = ScaledKernel(method.kernel, X, params, factors)

    def decide(rows):
        return lambda coef: kernels.decision(method.kernel, params, X, (coef.T * factors).T, rows)

    callback, limits = evaluating(problem, decide), budget(problem, method)
    if ridge:
        wanted: Any = {"left_out": problem.left_out, "centred": method.centred}
        solution = solve_kernel_ridge(K, Y, method.lam, loss, limits, callback=callback, **wanted)
    else:
        solution = solve_kernel_newton(K, Y, method.lam, loss, limits, callback=callback)
    coef = (np.asarray(solution.coef).reshape(problem.n_rows, -1).T * factors).T
    return solution, coef, np.zeros(problem.n_outputs), _norm(solution, K, Y, loss, method.lam)


def _machines(params: dict, problem: Problem, method: Kernel, n_classes: int):
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
    limits, tell = budget(problem, method), telling(problem, len(pairs(n_classes)) or None)
    solutions: list[Solution] = []
    norms: list[float | None] = []
    intercepts: list[float] = []
    K = KernelMatrix(method.kernel, problem.X, params)
    jobs: list[tuple[Any, np.ndarray]] = [(slice(None), y) for y in problem.Y.T]
    if n_classes:
        positive = problem.Y > 0
        each = [(i, np.flatnonzero(positive[:, i] | positive[:, j])) for i, j in pairs(n_classes)]
        jobs = [(rows, np.where(positive[rows, first], 1.0, -1.0)) for first, rows in each]
    for place, (rows, y) in enumerate(jobs):
        if not len(y):  # neither class is among these rows
            nothing = Certificate("gap", 0.0)
            solutions.append(Solution(np.zeros(problem.n_rows), 0.0, nothing, 0, "converged"))
            intercepts.append(0.0)
            norms.append(0.0)
            continue
        part = K.part(rows) if n_classes else K
        Y, loss, row_weights = y[:, None], problem.loss, weights.part(problem.weights, rows)
        if loss.name in CLASSIFICATION:
            # the labels carry the weights
            (Y, loss), row_weights = weights.targets(Y, loss, row_weights), None
        if method.solver == "libsvm":
            machine = solve_libsvm(part, Y[:, 0], method.lam, loss, limits, seed=method.seed)
        else:
            listener = for_output(tell, place)
            more: dict[str, Any] = {"bias": bias, "weights": row_weights, "callback": listener}
            machine = solve_kernel_svm(part, Y[:, 0], method.lam, loss, limits, **more)
        norms.append(_norm(machine, part, Y, loss, method.lam))
        intercepts.append(machine.intercept)
        coef = np.zeros(problem.n_rows)
        coef[rows] = machine.coef
        solutions.append(replace(machine, coef=coef))
    solution, known = stack(solutions), [norm for norm in norms if norm is not None]
    norm = float(np.linalg.norm(known)) if len(known) == len(norms) else None
    if problem.left_out and problem.loss.name == "squared_hinge":
        values = K.matvec(solution.coef) + intercepts
        for place, (rows, y) in enumerate(jobs):
            beta, row_weights = solution.coef[rows, place], weights.part(problem.weights, rows)
            shift = method.lam / (2 * (np.ones(len(y)) if row_weights is None else row_weights))
            part = K.part(rows) if n_classes else K
            values[rows, place] = svm(part, beta, y, shift, values[rows, place], bias)
        found = np.clip(values, -1.0, 1.0) @ of_pairs(n_classes) if n_classes else values
        solution.left_out = found
    return solution, solution.coef, np.array(intercepts), norm


def _norm(solution: Solution, K: Any, Y: Any, loss: Any, lam: float) -> float | None:
    """The square root of sum_k ||f_k||_H^2; None without a duality gap.

    If the gap is that of the dual point -lam alpha, no pass over kernel values is needed: the dual,
    objective - gap, is -sum L*(-lam alpha) - lam/2 ||f||^2. Newton's gap may belong to another
    point.
    """
    if solution.certificate is None or solution.certificate.kind != "gap":
        return None
    coef = np.asarray(solution.coef)
    if loss.name == "logistic":
        return float(np.sqrt(max(0.0, np.sum(solution.coef * K.matvec(coef)))))
    dual = solution.objective - solution.certificate.value
    conjugates = float(loss.conjugate(-lam * coef.reshape(Y.shape), Y).sum())
    return float(np.sqrt(max(0.0, 2 * (-conjugates - dual) / lam)))


def _with_metric() -> list[str]:
    """The kernels with exact values of rows that a metric may map."""
    return [name for name, kind in kernels.KERNELS.items() if kind.metric and not kind.scalings]


class RFM(Kernel):
    """The exact kernel machine with a learnt metric."""

    name = "rfm"
    summary = "recursive feature machine: kernel ridge regression with a learnt metric"
    # classes are fitted as targets +-1
    default_loss = "squared"
    centred = True
    space = replace(Kernel.space, kernels=KERNELS, thorough=True)
    scaling: str = CHOSEN_SCALING(default=AUTO)
    metric: str = METRIC(default=AUTO)
    kernel: str = chosen_kernel(_with_metric, KERNELS)()
    gamma: float | Chosen = CHOSEN_GAMMA.adding({AUTO: OF_THE_CHOICE})(default=AUTO)
    lam: float | Chosen = Kernel.options["lam"].adding({AUTO: OF_THE_CHOICE})(default=AUTO)

    def fit(self, problem: Problem, cache: Cache) -> Fitted:
        """The machine of the centred targets; their mean is the intercept."""
        if problem.loss.name != "squared":
            return super().fit(problem, cache)
        offset = weights.mean(problem.Y, problem.weights)
        fitted = super().fit(problem.less(offset), cache)
        model, left_out = cast(ExpansionModel, fitted.model), fitted.left_out
        left_out = None if left_out is None else left_out + offset
        return replace(fitted, model=replace(model, intercept=offset), left_out=left_out)
