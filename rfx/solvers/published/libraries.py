"""LIBLINEAR and LIBSVM, each call in a child process."""

from __future__ import annotations

import re

import numpy as np
import scipy.sparse as sp

from rfx import kernels
from rfx.errors import UsageError
from rfx.losses import OF_NUMBERS, Loss
from rfx.operators.binned import BinnedMatrix
from rfx.operators.blocks import ranges
from rfx.operators.kernel import KernelMatrix
from rfx.operators.matrix import Matrix
from rfx.operators.sparse import SparseMatrix
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
    n, width = Z.shape
    job = {
        "program": "LIBLINEAR",
        "n": n,
        "n_columns": width,
        "solver": SOLVERS[penalty, loss.name],
        "C": (0.5 if squared else 1.0) / lam,
        "eps": (1e-4 if squared else 0.01) if budget.tol is None else budget.tol,
        "seed": seed,
    }
    record = Recorder(callback)
    result, printed = backend.run(
        backend.from_blocks(Z.to_csr() if isinstance(Z, (BinnedMatrix, SparseMatrix)) else Z, y),
        job,
        budget,
    )
    # the weights refer to the label that LIBLINEAR lists first
    coef = result["coef"][:, 0] * (1.0 if squared or result["labels"][0] > 0 else -1.0)
    certificate = l1_certificate if penalty == "l1" else l2_certificate
    return Solution(
        coef,
        **backend.ending(
            record, coef, *certificate(Z, y, coef, lam, loss)[:2], _iterations(printed), printed
        ),
    )


def _iterations(printed: str) -> int:
    """The number of iterations, from the closing line of the L1 solvers or the last line of the
    Newton solvers.
    """
    closing = re.search(r"#iter = (\d+)", printed)
    if closing:
        return int(closing.group(1))
    return max((int(word) for word in re.findall(r"^iter +(\d+)", printed, re.M)), default=0)


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
    squared, regression = loss.name == "squared_hinge", loss.name in OF_NUMBERS
    C, n, native = 1.0 / lam, K.shape[0], not squared and K.name in NATIVE
    if not regression:
        backend.check("libsvm", y)
    job = {
        "program": "LIBSVM",
        "n": n,
        "svm_type": EPSILON_SVR if regression else C_SVC,
        "tube": float(getattr(loss, "epsilon", 0.0)),
        "kernel_type": NATIVE[K.name] if native else PRECOMPUTED,
        "gamma": float(K.params.get("gamma", 0.0)),
        "C": UNBOUNDED if squared else C,
        "eps": 1e-3 if budget.tol is None else budget.tol,
        "cache_mb": CACHE_MB,
        "seed": seed,
    }
    record = Recorder(callback)
    problem = (
        backend.from_blocks(sp.csr_matrix(K.X).sorted_indices(), y)
        if native
        else _precomputed(K, y, 0.5 / C if squared else 0.0)
    )
    result, printed = backend.run(problem, job, budget)
    sign = 1.0 if regression or result["labels"][0] > 0 else -1.0
    coef = np.zeros(n)
    coef[result["indices"] - 1] = sign * result["coef"]
    intercept = -sign * float(result["rho"])
    support = np.flatnonzero(coef)
    decision = kernels.decision(K.name, K.params, K.X[support], coef[support], K.X)
    iterations = sum(int(word) for word in re.findall(r"#iter = (\d+)", printed))
    ending = backend.ending(
        record, coef, *_certificate(decision, coef, intercept, y, lam, loss), iterations, printed
    )
    return KernelSolution(coef, **ending, intercept=intercept)


def _precomputed(K: KernelMatrix, y: np.ndarray, ridge: float) -> backend.NodeFile:
    n, all_rows = K.shape[0], K.prepared()
    problem = backend.NodeFile(y, np.full(n, n + 1))
    for rows in ranges(n, max(1, 2**22 // n)):
        serial = np.arange(rows.start, rows.stop)
        block = kernels.block(K.name, all_rows.take(rows), all_rows, K.params)
        block[serial - rows.start, serial] += ridge
        problem.set_dense(rows, np.hstack([serial[:, None] + 1.0, block]), first_index=0)
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
    dual = -0.5 * lam * norm - loss.conjugate(loss.clip_dual(-lam * coef, y), y).sum()
    return float(primal), float(max(0.0, primal - dual))
