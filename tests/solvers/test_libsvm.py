"""The LIBSVM back end: native and precomputed kernels reach rfx's optimum; errors."""

import numpy as np
import pytest

from rfx.errors import RfxError, UsageError
from rfx.losses import (
    OF_NUMBERS,
    Absolute,
    Hinge,
    Logistic,
    SquaredHinge,
    epsilon_insensitive,
)
from rfx.operators.kernel import KernelMatrix
from rfx.solvers.base import Budget
from rfx.solvers.published import backend
from rfx.solvers.published.libraries import solve_libsvm
from rfx.solvers.svm import solve_kernel_svm

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (150, 4))
Y = np.where(X[:, 0] * X[:, 1] + 0.1 * RNG.standard_normal(150) > 0, 1.0, -1.0)

TARGETS = 3 + X[:, 0] * X[:, 1] + 0.3 * RNG.standard_normal(150)


def solve(name, X, y, params, lam, loss, warm=None, **limits):
    return solve_libsvm(KernelMatrix(name, X, params), y, lam, loss, Budget(**limits), warm)


@pytest.mark.parametrize("loss", [Hinge, SquaredHinge, Absolute, epsilon_insensitive(0.2)])
@pytest.mark.parametrize(
    "kernel, params",
    [("gaussian", {"gamma": 2.0}), ("laplacian", {"gamma": 1.0}), ("perceptron", {"radius": 2.0})],
)
def test_agrees_with_rfx_and_proves_it(kernel, params, loss):
    y = TARGETS if loss.name in OF_NUMBERS else Y
    theirs = solve(kernel, X, y, params, 0.5, loss, tol=1e-6)
    ours = solve_kernel_svm(
        KernelMatrix(kernel, X, params), y, 0.5, loss, Budget(tol=1e-6), bias=True
    )
    assert theirs.converged and 0 <= theirs.gap <= 1e-4 * theirs.objective
    assert theirs.objective == pytest.approx(ours.objective, rel=1e-4)
    assert theirs.coef.sum() == pytest.approx(0, abs=1e-6)
    assert theirs.intercept == pytest.approx(ours.intercept, abs=0.05)


def test_labels_in_either_order():
    straight = solve("gaussian", X, Y, {"gamma": 2.0}, 1.0, Hinge, tol=1e-8)
    turned = solve("gaussian", X[::-1].copy(), Y[::-1].copy(), {"gamma": 2.0}, 1.0, Hinge, tol=1e-8)
    np.testing.assert_allclose(turned.coef[::-1], straight.coef, atol=1e-5)
    assert turned.intercept == pytest.approx(straight.intercept, abs=1e-5)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"loss": Logistic}, "no logistic loss"),
        ({"y": np.ones(150)}, "needs rows of both classes"),
        ({"warm": np.zeros(150)}, "does not support a starting point"),
    ],
)
def test_refusals(change, says):
    with pytest.raises(UsageError, match=says):
        solve("gaussian", X, **{"y": Y, "params": {"gamma": 1}, "lam": 1, "loss": Hinge} | change)


def test_too_little_memory_is_refused(monkeypatch):
    monkeypatch.setattr(backend.env, "available_memory_mb", lambda: 0.01)
    with pytest.raises(RfxError, match="the back end needs .* use fewer rows"):
        solve("gaussian", X, Y, {"gamma": 1.0}, 1.0, SquaredHinge)
