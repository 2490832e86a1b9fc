"""A plug-in for rfx: the kernel `inverse-quadratic`, exact and as random features; the methods
`landweber`, linear in random features, and `knn`, of another kind; and a peer, `forest`.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.spatial import KDTree
from scipy.special import logit
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

from rfx.features.fourier import FourierMap
from rfx.fitting.linear import LinearMethod, LinearModel, sampled
from rfx.fitting.method import Fitted, Method
from rfx.fitting.options import CLASS_WEIGHT, LOSS, SCALING, SearchSpace
from rfx.fitting.problem import Clock, error
from rfx.kernels import GammaKernel
from rfx.losses import get_loss
from rfx.model import Array
from rfx.operators.mapped import feature_matrix
from rfx.options import Chosen, option
from rfx.solvers.base import Solution


class InverseQuadratic(GammaKernel):
    """`finish` receives tiles of gamma ||x - y||^2: GammaKernel scales by gamma, and the metric is
    squared.
    """

    name = "inverse-quadratic"
    formula = "1 / (1 + gamma ||x - y||_2^2)"
    metric = "squared"

    def finish(self, tile, params, n_inputs, lengths):
        tile += 1
        np.reciprocal(tile, out=tile)


class InverseQuadraticMap(FourierMap):
    """1 / (1 + r) is the mean of exp(-e r) over exponential e: Gaussian frequencies with
    random bandwidths. Half the sum of two squared normal numbers is exponential.
    """

    kernels = (InverseQuadratic(),)

    @classmethod
    def n_shared(cls, name):
        return 2

    @classmethod
    def frequencies(cls, name, draws, gamma):
        e = (draws.shared() ** 2).sum(axis=1, keepdims=True) / 2
        return np.sqrt(2 * gamma * e) * draws.normals()


class Landweber(LinearMethod, without=("max_iter",)):
    """Minimise 1/2 ||Z w - y||^2 by a few steps of gradient descent; early stopping regularises."""

    name = "landweber"
    summary = "random features, least squares by gradient descent stopped early"
    loss: str = LOSS(choices=("squared",), default="squared")
    steps: int = option(100, "Steps of gradient descent.", least=1, most=10**6)

    def fit(self, problem, cache):
        clock, Y = Clock(), problem.Y
        feature_map = clock.timed("features", sampled, self, problem, 1.0, cache)
        scale = feature_map.n_features**-0.5
        Z = feature_matrix(feature_map, problem.X, scale, self.max_memory)
        W, v = np.zeros((Z.shape[1], Y.shape[1])), np.ones(Z.shape[1])
        for _ in range(10):  # the largest eigenvalue of Z'Z
            v = Z.normal(v / np.linalg.norm(v))
        for _ in range(self.steps):
            W -= Z.rmatvec(Z.matvec(W) - Y) / (1.2 * np.linalg.norm(v))
        objective = 0.5 * float(np.sum((Z.matvec(W) - Y) ** 2))
        solution = Solution(W, objective, None, self.steps, "converged")
        details = {"n_features": self.n_features}
        return Fitted(LinearModel.of(feature_map, scale * W), solution, details, clock.seconds)


@dataclass(frozen=True)
class Neighbours:
    """A model: rows (n, d), their targets (n, k), and the number of nearest rows to average."""

    rows: np.ndarray
    targets: np.ndarray
    count: int

    def decision(self, X):
        nearest = KDTree(self.rows).query(X, np.arange(1, min(self.count, len(self.rows)) + 1))[1]
        return self.targets[nearest].mean(axis=1)

    def arrays(self):
        return {"rows": self.rows, "targets": self.targets}

    def header(self):
        return {"count": self.count}

    def describe(self):
        return {"model_size": len(self.rows)}


class KNN(Method):
    """The mean target of the nearest rows; `space` lets held-out rows choose their number."""

    name = "knn"
    summary = "the mean target of the nearest rows"
    arrays = {"rows": Array("f", "rows inputs"), "targets": Array("f", "rows outputs")}
    space = SearchSpace(
        {"neighbours": (1, 2, 4, 8, 16, 32)}, stages=(("neighbours",),), few_rows={"neighbours": 1}
    )
    neighbours: int | Chosen = option(
        "validation",
        "Rows to average.",
        of={"validation": "the best of 1, 2, 4, …, 32 on held-out rows"},
        least=1,
    )

    def vectors(self, X):
        return X.shape[1]

    def fit(self, problem, cache):
        model = Neighbours(np.asarray(problem.X, np.float64), problem.Y, int(self.neighbours))
        loss = error(problem.task, model.decision(model.rows), problem.Y)
        return Fitted(model, Solution(np.zeros(0), loss, None, 1, "converged"))

    def restore(self, header, arrays):
        return Neighbours(arrays["rows"], arrays["targets"], header["count"])


@dataclass(frozen=True)
class Peer:
    """A model: an estimator of scikit-learn, whose probabilities become log-odds.

    It has no arrays: a model file runs no code, so that it can't be saved.
    """

    estimator: Any
    n_outputs: int
    regression: bool

    def decision(self, X):
        if self.regression:
            return self.estimator.predict(X)[:, None]
        shares = np.zeros((X.shape[0], max(2, self.n_outputs)))
        shares[:, self.estimator.classes_] = self.estimator.predict_proba(X)
        return logit(np.clip(shares, 1e-12, 1 - 1e-12))[:, -self.n_outputs :]

    def arrays(self):
        return {}

    def header(self):
        return {}

    def describe(self):
        return {"model_size": None}


class Forest(Method):
    """A random forest."""

    name = "forest"
    summary = "a random forest of scikit-learn"
    scaling: str = SCALING(default="none")
    trees: int = option(100, "Trees.", least=1)
    class_weight: str | None = CLASS_WEIGHT()

    def vectors(self, X):
        return X.shape[1]

    def loss_for(self, task):
        return get_loss("squared" if task == "regression" else "logistic")

    def fit(self, problem, cache):
        Y, regression = problem.Y, problem.task == "regression"
        kind = RandomForestRegressor if regression else RandomForestClassifier
        forest = kind(n_estimators=self.trees, random_state=self.seed % 2**32)
        codes = np.argmax(Y, axis=1) if problem.n_outputs > 1 else (Y[:, 0] > 0).astype(int)
        forest.fit(problem.X, Y[:, 0] if regression else codes, sample_weight=problem.weights)
        model = Peer(forest, problem.n_outputs, regression)
        loss = error(problem.task, model.decision(problem.X), Y, problem.weights)
        return Fitted(model, Solution(np.zeros(0), loss, None, 1, "converged"))
