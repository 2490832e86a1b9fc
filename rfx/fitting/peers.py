"""Methods that wrap an estimator of scikit-learn, so that any peer can stand in a plan."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import logit

from rfx import losses
from rfx import steps as told
from rfx.errors import UsageError
from rfx.fitting.method import Fitted, Method
from rfx.fitting.options import CLASS_WEIGHT, SCALING
from rfx.fitting.problem import Cache, Problem, error
from rfx.solvers.base import Solution

_LEAST = 1e-12  # of a probability, whose log-odds are finite


@dataclass(frozen=True)
class PeerModel:
    """A fitted estimator; its probabilities become log-odds.

    Parameters
    ----------
    estimator : object
        With ``predict``; of classes, it has learnt their numbers.
    n_outputs : int
    regression : bool
    """

    estimator: Any
    n_outputs: int
    regression: bool

    def decision(self, X: Any) -> np.ndarray:
        """(n, k) values for scaled rows X (n, d)."""
        if self.regression:
            return np.asarray(self.estimator.predict(X), np.float64).reshape(-1, 1)
        if not hasattr(self.estimator, "predict_proba"):
            codes = np.asarray(self.estimator.predict(X), int)
            return 2.0 * np.eye(max(2, self.n_outputs))[codes][:, -self.n_outputs :] - 1
        shares = np.zeros((X.shape[0], max(2, self.n_outputs)))
        shares[:, np.asarray(self.estimator.classes_, int)] = self.estimator.predict_proba(X)
        return logit(np.clip(shares, _LEAST, 1 - _LEAST))[:, -self.n_outputs :]

    def arrays(self) -> dict[str, np.ndarray]:
        return {}

    def header(self) -> dict[str, Any]:
        return {}

    def describe(self) -> dict[str, Any]:
        return {"n_features": None, "model_size": None}

    def steps(self) -> told.Steps:
        raise UsageError("models of scikit-learn's estimators can't be exported by rfx")


class PeerMethod(Method):
    """A method that fits an estimator of scikit-learn's interface to the scaled rows.

    A subclass has options and `estimator`. Its models can't be saved, because a model file runs no
    code.
    """

    scaling: str = SCALING(default="none")
    class_weight: str | None = CLASS_WEIGHT()

    def estimator(self, task: str) -> Any:
        """The estimator before its fit; task: regression, binary or multiclass."""
        raise TypeError(f"{type(self).__name__} does not define estimator")

    def loss_for(self, task: str) -> losses.Loss:
        return losses.get_loss("squared" if task == "regression" else "logistic")

    def vectors(self, X: Any) -> int:
        return int(X.shape[1])

    def fit(self, problem: Problem, cache: Cache) -> Fitted:
        Y, regression = problem.Y, problem.task == "regression"
        codes = (Y[:, 0] > 0).astype(int) if problem.n_outputs == 1 else np.argmax(Y, axis=1)
        weighted = {} if problem.weights is None else {"sample_weight": problem.weights}
        estimator = self.estimator(problem.task)
        estimator.fit(problem.X, Y[:, 0] if regression else codes, **weighted)
        model = PeerModel(estimator, problem.n_outputs, regression)
        loss = error(problem.task, model.decision(problem.X), Y, problem.weights)
        return Fitted(model, Solution(np.zeros(0), loss, None, 1, "converged"))
