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
from typing import Any, ClassVar

import numpy as np

from rfx import kernels
from rfx.errors import UsageError
from rfx.fitting import weights
from rfx.fitting.cache import Cache
from rfx.fitting.callbacks import evaluating, telling
from rfx.fitting.expansion import OPTIONS, ExpansionMethod, ExpansionModel, pairs
from rfx.fitting.method import Fitted, budget, kernel_params
from rfx.fitting.options import AUTO, CHOSEN_LAM, DTYPE, EPSILON, LOSS, SOLVER, TOL
from rfx.fitting.problem import Problem
from rfx.fitting.settings import Settings
from rfx.fitting.validation import GAMMA_FACTORS, LAMS
from rfx.operators.kernel import KernelMatrix, ScaledKernel
from rfx.options import Option
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
    evaluates_steps = weighted = True
    searched = {"gamma": GAMMA_FACTORS, "lam": LAMS}
    held_out_rows = ROWS
    options: ClassVar[tuple[Option, ...]] = (
        *OPTIONS,
        DTYPE.but(default="float64"),
        CHOSEN_LAM.but(
            help=f"{CHOSEN_LAM.help} Validation of lambda or gamma uses at most {ROWS:,} rows."
        ),
        LOSS.but(
            choices=("squared", "squared_hinge", "hinge", "logistic", *REGRESSION),
            help=(
                f"{LOSS.help} With 3 to {PAIRED} classes, the hinge losses train one machine per"
                " pair of classes; the other losses train one per class. With absolute or"
                " epsilon_insensitive loss, regression uses a support vector machine."
            ),
        ),
        EPSILON.but(
            default=None, help=f"{EPSILON.help} By default 0.1 standard deviations of the targets."
        ),
        Option(
            "bias",
            bool,
            "Unpenalised bias b of a support vector machine, as in LIBSVM, true by default; the"
            " paper's objective has none.",
        ),
        SOLVER.adding({"libsvm": "LIBSVM, in a child process"}),
        TOL.but(help=f"{TOL.help} The `-e` of LIBSVM."),
    )

    @classmethod
    def is_random(cls, settings: Mapping[str, Any]) -> bool:
        """Deterministic, unless validation or medians of samples choose options."""
        kernel = kernels.KERNELS.get(settings.get("kernel"))
        if kernel is None or settings.get("solver") != "rfx" or settings.get("metric") != "none":
            return True
        chosen = ("lam", "gamma") if "gamma" in kernel.parameters else ("lam",)
        words = any(isinstance(settings.get(name), str) for name in chosen)
        return words or settings.get("scaling") == AUTO

    def fit(self, problem: Problem, settings: Settings, cache: Cache) -> Fitted:
        if problem.n_rows >= MANY:
            log.warning(
                "the exact kernel machine of %s rows has %.2g kernel values and may take hours;"
                " method nystrom approximates it within seconds or minutes",
                f"{problem.n_rows:,}",
                float(problem.n_rows) ** 2,
            )
        params = kernel_params(problem, settings)
        n_classes = 0
        if problem.loss.name in (*CLASSIFICATION, *REGRESSION):
            if problem.loss.name in CLASSIFICATION and 2 < problem.n_outputs <= PAIRED:
                n_classes = problem.n_outputs
            solution, intercept, norm = _machines(params, problem, settings, n_classes)
            coef = np.asarray(solution.coef).reshape(problem.n_rows, -1)
        else:
            Y, loss = weights.targets(problem.Y, problem.loss, problem.weights)
            K, solution, coef = _without_bias(params, Y, loss, problem, settings)
            intercept = np.zeros(problem.n_outputs)
            norm = _norm(solution, K, Y, loss, settings.lam)
        model = ExpansionModel.of(
            settings.kernel, params, problem.X, coef, intercept, n_classes=n_classes
        )
        # ||f||, which also determines the sum of losses from the objective (Yen et al. 2014, Figure
        # 1)
        return Fitted(model, solution, {} if norm is None else {"norm": norm})


def _without_bias(params: dict, Y: Any, loss: Any, problem: Problem, settings: Settings):
    """(K, solution, coefficients (n, k)) of ridge or logistic regression."""
    what = "kernel ridge" if problem.loss.name == "squared" else "kernel logistic regression"
    if settings.bias:
        raise UsageError(
            f"--bias is for support vector machines; {what} has none (Yen et al. 2014, eq. 1)"
        )
    if settings.solver != "rfx":
        raise UsageError(
            f"--solver is {settings.solver}, which does not support {what} here; use --solver rfx"
        )
    X, factors = problem.X, 1.0
    K = KernelMatrix(settings.kernel, X, params)
    if loss.name == "squared" and problem.weights is not None:
        factors = np.sqrt(problem.weights)
        K = ScaledKernel(settings.kernel, X, params, factors)

    def decide(rows):
        return lambda coef: kernels.decision(settings.kernel, params, X, (coef.T * factors).T, rows)

    solve = solve_kernel_ridge if loss.name == "squared" else solve_kernel_newton
    callback = evaluating(problem, decide)
    solution = solve(K, Y, settings.lam, loss, budget(problem, settings), callback=callback)
    coef = (np.asarray(solution.coef).reshape(problem.n_rows, -1).T * factors).T
    return K, solution, coef


def _machines(params: dict, problem: Problem, settings: Settings, n_classes: int):
    """(solution, intercept (m,), norm) of the support vector machines: one for each pair of
    classes, fitted to their rows, or one for each output if n_classes is 0.
    """
    bias = True if settings.bias is None else settings.bias
    if problem.curve is not None:
        raise UsageError(
            "curves are not supported for a support vector machine, whose bias is known only at the"
            " end; omit --curve"
        )
    if settings.solver == "libsvm" and not bias:
        raise UsageError(
            "--solver libsvm always has a bias; set --bias true or choose --solver rfx"
        )
    limits, tell = budget(problem, settings), telling(problem, len(pairs(n_classes)) or None)
    solutions: list[Solution] = []
    norms: list[float | None] = []
    intercepts: list[float] = []
    K = KernelMatrix(settings.kernel, problem.X, params)

    def solve(place: int, rows: np.ndarray | slice, y: np.ndarray) -> None:
        kept = K.part(rows) if isinstance(rows, np.ndarray) else K
        Y, loss, own = y[:, None], problem.loss, weights.part(problem.weights, rows)
        if loss.name in CLASSIFICATION:
            # the labels carry the weights
            (Y, loss), own = weights.targets(Y, loss, own), None
        if settings.solver == "libsvm":
            found = solve_libsvm(kept, Y[:, 0], settings.lam, loss, limits, seed=settings.seed)
        else:
            found = solve_kernel_svm(
                kept,
                Y[:, 0],
                settings.lam,
                loss,
                limits,
                callback=for_output(tell, place),
                bias=bias,
                weights=own,
            )
        norms.append(_norm(found, kept, Y, loss, settings.lam))
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
