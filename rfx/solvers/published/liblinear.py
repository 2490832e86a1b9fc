"""LIBLINEAR's primal solvers for linear models on random features, in a child process
(docs/papers.md, Yen et al.).
"""

from __future__ import annotations

import re

import numpy as np

from rfx.errors import UsageError
from rfx.losses import Loss
from rfx.operators.binned import BinnedMatrix
from rfx.operators.matrix import Matrix
from rfx.operators.sparse import SparseMatrix
from rfx.solvers.base import Budget, Callback, Recorder, Solution
from rfx.solvers.l1.dual import l1_certificate
from rfx.solvers.l2 import l2_certificate
from rfx.solvers.published import backend

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
    warm: np.ndarray | None = None,
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
    iteration limit, and needs 16 bytes for every entry of Z (bins: R per row). warm: not supported.
    callback: called at the end. coef is (D,); the gap is the duality gap at coef, computed here;
    status is max_iter if LIBLINEAR warns that it reached its maximum number of iterations. Raises
    UsageError for another loss, labels of one class or a warm start, OutOfTime at the deadline.
    """
    if (penalty, loss.name) not in SOLVERS:
        choice = "squared_hinge or logistic" + ("" if penalty == "l1" else ", or squared")
        raise UsageError(f"solver liblinear has no {loss.name} loss here; use {choice}")
    squared = loss.name == "squared"
    backend.check("liblinear", y, warm, classes=not squared)
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
