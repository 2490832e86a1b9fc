"""LIBLINEAR and LIBSVM, each call in a child process."""

from __future__ import annotations

import re

import numpy as np
import scipy.sparse as sp

from rfx import kernels
from rfx.errors import UsageError
from rfx.losses import OF_NUMBERS, Loss
from rfx.operators.blocks import ranges
from rfx.operators.kernel import KernelMatrix
from rfx.operators.matrix import Matrix
from rfx.solvers.base import Budget, Callback, Recorder, Solution
from rfx.solvers.l1.newton import l1_certificate
from rfx.solvers.l2 import l2_certificate
from rfx.solvers.published import backend
from rfx.solvers.svm import KernelSolution

# ----------------------------------------------------------------------
# LIBLINEAR's primal solvers for linear models on random features, in a child process
# (docs/papers.md, Yen et al.).

# (penalty, loss) -> LIBLINEAR's -s; its regression is C max(0, |z.w - y| - p)^2, squared loss with
# p = 0
SOLVERS = {
    ("l2", "logistic"): 0,
    ("l2", "squared_hinge"): 2,
    ("l1", "squared_hinge"): 5,
    ("l1", "logistic"): 6,
    ("l2", "squared"): 11,
}


def solve_liblinear(
    Z: Matrix,
    y: np.ndarray,
    lam: float,
    loss: Loss,
    budget: Budget = Budget(),
    callback: Callback | None = None,
    *,
    penalty: str = "l2",
    seed: int = 0,
) -> Solution:
    """Minimise lam ||w||_1 (penalty l1) or lam/2 ||w||^2 (l2) plus sum L(z.w, y), without bias,
    with LIBLINEAR, C = 1/lam.

    Z: a feature matrix (rfx.operators), (N, D); y: (N,) in {-1, +1}; loss: SquaredHinge or
    Logistic; with penalty l2 also Squared, with any numbers as y (C = 1/(2 lam), because our loss
    has a factor 1/2). budget: tol is LIBLINEAR's `-e` (0.01; 1e-4 for Squared); it uses its own
    iteration limit, and needs 16 bytes for every entry of Z (bins: R per row).
    callback: called at the end. coef is (D,); the gap is the duality gap at coef, computed here;
    status is max_iter if LIBLINEAR warns that it reached its maximum number of iterations. Raises
    UsageError for another loss or labels of one class, OutOfTime at the deadline.
    """
    if (penalty, loss.name) not in SOLVERS:
        choice = "squared_hinge or logistic" + ("" if penalty == "l1" else ", or squared")
        raise UsageError(f"solver liblinear has no {loss.name} loss here; use {choice}")
    squared = loss.name == "squared"
    if not squared:
        backend.check("liblinear", y)
    n_rows, n_columns = Z.shape
    weight, tol = (0.5, 1e-4) if squared else (1.0, 0.01)
    job = backend.LiblinearJob(
        n=n_rows,
        C=weight / lam,
        eps=tol if budget.tol is None else budget.tol,
        seed=seed,
        n_columns=n_columns,
        solver=SOLVERS[penalty, loss.name],
    )
    record = Recorder(callback)
    machine, printed = backend.run(backend.from_matrix(Z, y), job, budget)
    coef = machine.coef[:, 0] * machine.sign
    certificate = l1_certificate if penalty == "l1" else l2_certificate
    objective, gap, *_ = certificate(Z, y, coef, lam, loss)
    return backend.ending(record, coef, objective, gap, _iterations(printed), printed)


def _iterations(printed: str) -> int:
    """The number of iterations, from the closing line of the L1 solvers or the last line of the
    Newton solvers.
    """
    closing = re.search(r"#iter = (\d+)", printed)
    if closing:
        return int(closing.group(1))
    lines = re.findall(r"^iter +(\d+)", printed, re.M)
    return max(map(int, lines), default=0)


# ----------------------------------------------------------------------
# LIBSVM's C-SVC and epsilon-SVR for exact kernels, in a child process: its own Gaussian and linear
# kernels, or a precomputed matrix.

UNBOUNDED = 1e10
C_SVC, EPSILON_SVR = 0, 3
NATIVE = {"gaussian": 2, "linear": 0}
PRECOMPUTED = 4
CACHE_MB = 1000.0


def solve_libsvm(
    K: KernelMatrix,
    y: np.ndarray,
    lam: float,
    loss: Loss,
    budget: Budget = Budget(),
    callback: Callback | None = None,
    *,
    seed: int = 0,
) -> KernelSolution:
    """Minimise lam/2 ||f||^2 + sum L(f(x) + b, y) with an unpenalised bias b with LIBSVM, C =
    1/lam.

    K: the kernel over the (n, d) rows; y: (n,) in {-1, +1}, or the targets of a regression; loss:
    Hinge, Absolute, EpsilonInsensitive, or SquaredHinge, for which the box constraint is removed
    and 1/(2C) is added to the diagonal of a precomputed kernel (Yen et al. 2014, footnote 2).
    budget: tol is LIBSVM's `-e` (1e-3). callback: called at the end. coef is (n,), so that f(x) =
    sum coef_i k(x_i, x). Raises UsageError for labels of one class, RfxError if the matrix does not
    fit into memory, OutOfTime at the deadline.
    """
    squared = loss.name == "squared_hinge"
    regression = loss.name in OF_NUMBERS
    C = 1.0 / lam
    n = K.shape[0]
    native = not squared and K.name in NATIVE
    if not regression:
        backend.check("libsvm", y)
    job = backend.LibsvmJob(
        n=n,
        C=UNBOUNDED if squared else C,
        eps=1e-3 if budget.tol is None else budget.tol,
        seed=seed,
        svm_type=EPSILON_SVR if regression else C_SVC,
        tube=float(loss.epsilon),
        kernel_type=NATIVE[K.name] if native else PRECOMPUTED,
        gamma=float(K.params.get("gamma", 0.0)),
        cache_mb=CACHE_MB,
    )
    record = Recorder(callback)
    if native:
        problem = backend.from_csr(sp.csr_matrix(K.X).sorted_indices(), y)
    else:
        problem = _precomputed(K, y, 0.5 / C if squared else 0.0)
    machine, printed = backend.run(problem, job, budget)
    coef = np.zeros(n)
    coef[machine.indices - 1] = machine.sign * machine.coef
    intercept = -machine.sign * float(machine.rho)
    support = np.flatnonzero(coef)
    decision = kernels.decision(K.name, K.params, K.X[support], coef[support], K.X)
    objective, gap = _certificate(decision, coef, intercept, y, lam, loss)
    iterations = sum(map(int, re.findall(r"#iter = (\d+)", printed)))
    solution = backend.ending(record, coef, objective, gap, iterations, printed)
    return KernelSolution(**vars(solution), intercept=intercept)


def _precomputed(K: KernelMatrix, y: np.ndarray, ridge: float) -> backend.NodeFile:
    n = K.shape[0]
    all_rows = K.prepared()
    problem = backend.NodeFile(y, np.full(n, n + 1))
    for rows in ranges(n, max(1, 2**22 // n)):
        serial = np.arange(rows.start, rows.stop)
        block = kernels.block(K.name, all_rows.take(rows), all_rows, K.params)
        block[serial - rows.start, serial] += ridge
        numbered = np.hstack([serial[:, None] + 1.0, block])
        problem.set_dense(rows, numbered, first_index=0)
    return problem


def _certificate(
    decision: np.ndarray, coef: np.ndarray, intercept: float, y: np.ndarray, lam: float, loss: Loss
) -> tuple[float, float]:
    """(primal objective, duality gap) of coef; because LIBSVM maintains sum coef = 0, the
    dual point is feasible.

    The dual of lam/2 ||f||^2 + sum L is -lam/2 ||f||^2 - sum L*(-lam coef_i, y_i), ||f||^2 = coef'
    K coef.
    """
    decision = np.ravel(decision)
    norm = coef @ decision
    primal = 0.5 * lam * norm + loss.value(decision + intercept, y).sum()
    dual_point = loss.clip_dual(-lam * coef, y)
    dual = -0.5 * lam * norm - loss.conjugate(dual_point, y).sum()
    return float(primal), float(max(0.0, primal - dual))
