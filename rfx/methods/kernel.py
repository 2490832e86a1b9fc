"""`kernel`: the exact kernel machine: lam/2 ||f||^2 + sum L(f(x) [+ b], y), eq. 1 of Yen et al.
(2014).

By default ridge regression for regression, a support vector machine for classification. With the
absolute or the epsilon-insensitive loss, regression uses a support vector machine, too. With
squared loss, classes are fitted by ridge regression, one against the rest with targets +-1 (Wu et
al. 2016); with logistic loss, by kernel logistic regression. A support vector machine of several
classes has one machine per pair, as in LIBSVM. Equation 1 has no bias, and neither have ridge and
logistic regression. A support vector machine has one unless `--bias false` is given: LIBSVM, which
the paper used, always has one.
"""

import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from rfx import kernels
from rfx.errors import UsageError
from rfx.fitting import weights
from rfx.fitting.cache import Cache
from rfx.fitting.callbacks import evaluating, telling
from rfx.fitting.expansion import ExpansionMethod, ExpansionModel, pairs
from rfx.fitting.method import Fitted, Method, budget, kernel_params
from rfx.fitting.options import AUTO, CHOSEN_LAM, DTYPE, EPSILON, LOSS, SOLVER, TOL
from rfx.fitting.problem import Problem
from rfx.fitting.validation import GAMMA_FACTORS, LAMS
from rfx.fitting.weights import CLASS_WEIGHT
from rfx.operators.kernel import KernelMatrix, ScaledKernel
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


class Kernel(ExpansionMethod):
    """The exact kernel machine; the model is its support vectors."""

    name = "kernel"
    summary = "the exact kernel machine: ridge regression or a support vector machine"
    evaluates_steps = True
    searched = {"gamma": GAMMA_FACTORS, "lam": LAMS}
    held_out_rows = ROWS
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
        params = kernel_params(problem, self)
        n_classes = 0
        if problem.loss.name in (*CLASSIFICATION, *REGRESSION):
            if problem.loss.name in CLASSIFICATION and 2 < problem.n_outputs <= PAIRED:
                n_classes = problem.n_outputs
            solution, intercept, norm = _machines(params, problem, self, n_classes)
            coef = np.asarray(solution.coef).reshape(problem.n_rows, -1)
        else:
            Y, loss = weights.targets(problem.Y, problem.loss, problem.weights)
            K, solution, coef = _without_bias(params, Y, loss, problem, self)
            intercept = np.zeros(problem.n_outputs)
            norm = _norm(solution, K, Y, loss, self.lam)
        model = ExpansionModel.of(
            self.kernel, params, problem.X, coef, intercept, n_classes=n_classes
        )
        # ||f||, which also determines the sum of losses from the objective (Yen et al. 2014, Figure
        # 1)
        return Fitted(model, solution, {} if norm is None else {"norm": norm})


def _without_bias(params: dict, Y: Any, loss: Any, problem: Problem, method: Method):
    """(K, solution, coefficients (n, k)) of ridge or logistic regression."""
    what = "kernel ridge" if problem.loss.name == "squared" else "kernel logistic regression"
    if method.bias:
        raise UsageError(
            f"--bias is for support vector machines; {what} has none (Yen et al. 2014, eq. 1)"
        )
    if method.solver != "rfx":
        raise UsageError(
            f"--solver is {method.solver}, which does not support {what} here; use --solver rfx"
        )
    X, factors = problem.X, 1.0
    K = KernelMatrix(method.kernel, X, params)
    if loss.name == "squared" and problem.weights is not None:
        factors = np.sqrt(problem.weights)
        K = ScaledKernel(method.kernel, X, params, factors)

    def decide(rows):
        return lambda coef: kernels.decision(method.kernel, params, X, (coef.T * factors).T, rows)

    solve = solve_kernel_ridge if loss.name == "squared" else solve_kernel_newton
    callback = evaluating(problem, decide)
    solution = solve(K, Y, method.lam, loss, budget(problem, method), callback=callback)
    coef = (np.asarray(solution.coef).reshape(problem.n_rows, -1).T * factors).T
    return K, solution, coef


def _machines(params: dict, problem: Problem, method: Method, n_classes: int):
    """(solution, intercept (m,), norm) of the support vector machines: one for each pair of
    classes, fitted to their rows, or one for each output if n_classes is 0.
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

    def solve(place: int, rows: np.ndarray | slice, y: np.ndarray) -> None:
        kept = K.part(rows) if isinstance(rows, np.ndarray) else K
        Y, loss, own = y[:, None], problem.loss, weights.part(problem.weights, rows)
        if loss.name in CLASSIFICATION:
            # the labels carry the weights
            (Y, loss), own = weights.targets(Y, loss, own), None
        if method.solver == "libsvm":
            found = solve_libsvm(kept, Y[:, 0], method.lam, loss, limits, seed=method.seed)
        else:
            found = solve_kernel_svm(
                kept,
                Y[:, 0],
                method.lam,
                loss,
                limits,
                callback=for_output(tell, place),
                bias=bias,
                weights=own,
            )
        norms.append(_norm(found, kept, Y, loss, method.lam))
        intercepts.append(found.intercept)
        coef = np.zeros(problem.n_rows)
        coef[rows] = found.coef
        solutions.append(replace(found, coef=coef))

    if n_classes:
        for place, (first, second) in enumerate(pairs(n_classes)):
            rows = np.flatnonzero((problem.Y[:, first] > 0) | (problem.Y[:, second] > 0))
            if not len(rows):  # neither class is among these rows
                solutions.append(
                    Solution(np.zeros(problem.n_rows), 0.0, Certificate("gap", 0.0), 0, "converged")
                )
                intercepts.append(0.0)
                norms.append(0.0)
                continue
            solve(place, rows, np.where(problem.Y[rows, first] > 0, 1.0, -1.0))
    else:
        for place in range(problem.n_outputs):
            solve(place, slice(None), problem.Y[:, place])
    known = [norm for norm in norms if norm is not None]
    norm = float(np.linalg.norm(known)) if len(known) == len(norms) else None
    return stack(solutions), np.array(intercepts), norm


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
