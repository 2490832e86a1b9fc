"""LIBLINEAR's primal solvers for linear models on random features, in a child process (docs/papers.md, Yen et al.)."""

import re

import numpy as np

from rfx.errors import UsageError
from rfx.solvers.base import Certificate, Solution
from rfx.solvers.l2 import l2_certificate
from rfx.solvers.published import backend

# (penalty, loss) -> LIBLINEAR's -s
SOLVERS = {("l2", "logistic"): 0, ("l2", "squared_hinge"): 2, ("l1", "squared_hinge"): 5, ("l1", "logistic"): 6}


def solve_liblinear(blocks, y, lam, loss, penalty, *, tol=0.01, seed=0, timeout=None) -> Solution:
    """Minimise lam ||w||_1 (penalty l1) or lam/2 ||w||^2 (l2) plus sum L(z.w, y), without bias, by LIBLINEAR, C = 1/lam.

    blocks: a feature matrix (rfx.operators); y: (n,) in {-1, +1}; loss: SquaredHinge or Logistic; tol: LIBLINEAR's `-e`.
    LIBLINEAR needs 16 bytes for every entry of the feature matrix. coef is (D,); gap is the duality gap at coef,
    computed here; converged is False where LIBLINEAR warns that it reached its maximal number of iterations.
    Raises UsageError for another loss, OutOfTime after `timeout` seconds.
    """
    if (penalty, loss.name) not in SOLVERS:
        raise UsageError(f"solver liblinear has no {loss.name} loss here; choose squared_hinge or logistic")
    if len(np.unique(y)) < 2:
        raise UsageError("solver liblinear needs rows of both classes; leave --solver away for rfx's own")
    n, width = blocks.shape
    job = {
        "program": "LIBLINEAR",
        "n": n,
        "n_columns": width,
        "solver": SOLVERS[penalty, loss.name],
        "C": 1.0 / lam,
        "eps": tol,
        "seed": seed,
    }
    problem = backend.from_blocks(blocks, y)
    try:
        result, printed = backend.run(problem, job, timeout)
    finally:
        problem.close()
    # the weights are those of the label that LIBLINEAR lists first
    coef = result["coef"][:, 0] * (1.0 if result["labels"][0] > 0 else -1.0)
    certificate = l1_certificate if penalty == "l1" else l2_certificate
    objective, gap = certificate(blocks, y, coef, lam, loss)
    status = "max_iter" if "reaching max number of iterations" in printed else "converged"
    return Solution(coef, objective, Certificate("gap", gap), _iterations(printed), status)


def l1_certificate(blocks, y, coef, lam, loss) -> tuple[float, float]:
    """(objective, gap) of lam ||w||_1 + sum L(z.w, y) at w = coef (Yen et al. 2014, eq. 9), in one walk over the blocks.

    The dual point is u = s L'(Zw) with the largest s <= 1 that makes ||Z'u||_inf <= lam.
    """
    decision, value, gradient = blocks.loss_pass(np.asarray(coef, np.float64), loss, y)
    largest = np.abs(gradient).max(initial=0.0)
    s = 1.0 if largest <= lam else lam / largest
    objective = float(value + lam * np.abs(coef).sum())
    dual = -loss.conjugate(loss.clip_dual(s * loss.derivative(decision, y), y), y).sum()
    return objective, max(0.0, objective - float(dual))


def _iterations(printed: str) -> int:
    """The number of iterations, from the closing line of the L1 solvers or the last line of the Newton solvers."""
    closing = re.search(r"#iter = (\d+)", printed)
    if closing:
        return int(closing.group(1))
    return max((int(word) for word in re.findall(r"^iter +(\d+)", printed, re.M)), default=0)
