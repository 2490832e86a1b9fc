"""Class probabilities: from a loss that defines them, else from decision values by a curve fitted
to held-out rows.

The curves are Platt's sigmoid, with his targets between 0 and 1 (Platt 1999, equation 2), and
isotonic regression with Laplace's correction; both are fitted by scikit-learn. For several classes
there is one curve for each class against the rest, and the results are normalised to sum to 1. The
prediction of a calibrated model is its most probable label.
"""

from __future__ import annotations

import shlex
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import expit, softmax

from rfx import lazy
from rfx import steps as told
from rfx.data.tabular.schema import Schema, label_text
from rfx.errors import DataError, RfxWarning, UsageError

if TYPE_CHECKING:
    from rfx.fitting.pipeline import Pipeline

KINDS = {
    "platt": "a sigmoid",
    "isotonic": "any increasing curve; fewer than a thousand rows get platt",
}
# Minimum held-out rows of an isotonic curve.
LEAST_ROWS = 1000
OWN = ("logistic", "softmax")


@dataclass
class Calibration:
    """kind: one of KINDS; rows: number of held-out rows used for fitting; by: how these were held
    out, in words.

    curves: for each output (platt) slope and intercept, (isotonic) increasing decision values and
    their probabilities.
    """

    kind: str
    rows: int
    by: str
    curves: list[tuple[np.ndarray, np.ndarray]]

    @classmethod
    def fit(
        cls,
        kind: str,
        decision: np.ndarray,
        y: np.ndarray,
        classes: np.ndarray,
        by: str,
        schema: Schema | None = None,
    ) -> Calibration:
        """Learn from decision values (n,) or (n, classes) of held-out rows with labels y (n,).

        classes: the models' labels, ascending. by: how the rows were held out. schema: of the
        labels, for messages. Fewer than `LEAST_ROWS` rows get a sigmoid, with a warning. Raises
        DataError if one of two outcomes never occurs.
        """
        if kind == "isotonic" and len(y) < LEAST_ROWS:
            message = (
                f"--calibrate isotonic needs {LEAST_ROWS:,} held-out rows, but there are only"
                f" {len(y):,}; the probabilities are by platt"
            )
            warnings.warn(message, RfxWarning, stacklevel=2)
            kind = "platt"
        columns = decision[:, None] if decision.ndim == 1 else decision
        labels = classes[-1:] if decision.ndim == 1 else classes
        curves = []
        for values, label in zip(columns.T, labels, strict=True):
            hit = y == label
            if hit.all() or not hit.any():
                share = "all" if hit.all() else "none"
                raise DataError(
                    f"probabilities can't be calibrated: {share} of the held-out rows are"
                    f" {label_text(schema, label):.40}"
                )
            curves.append(_platt(values, hit) if kind == "platt" else _isotonic(values, hit))
        return cls(kind, len(y), by, curves)

    def probabilities(self, decision: np.ndarray) -> np.ndarray:
        """(n, classes) probabilities from decision values (n,) or (n, classes)."""
        columns = decision[:, None] if decision.ndim == 1 else decision
        found = [
            (
                expit(first[0] * values + second[0])
                if self.kind == "platt"
                else np.interp(values, first, second)
            )
            for values, (first, second) in zip(columns.T, self.curves, strict=True)
        ]
        return _of_all(np.stack(found, axis=1))

    def steps(self) -> told.Steps:
        """The computation steps from decision values to a probability for each of them."""
        if self.kind == "platt":
            slopes, intercepts = (
                np.array([float(np.ravel(curve[place])[0]) for curve in self.curves])
                for place in (0, 1)
            )
            return told.linear(np.diag(slopes), intercepts), told.Function("sigmoid")
        curves = []
        for first, second in self.curves:
            knots, places = np.unique(first, return_index=True)
            values = second[places]
            curves.append((knots, values, values, values))
        return (told.Interpolate.of(curves),)

    def words(self) -> str:
        """A description in words."""
        return f"{self.kind} on {self.rows:,} rows, {self.by}"

    def to_dict(self) -> dict[str, Any]:
        """For the header of a model file."""
        return {
            "kind": self.kind,
            "rows": self.rows,
            "by": self.by,
            "curves": [[part.tolist() for part in curve] for curve in self.curves],
        }

    @classmethod
    def from_dict(cls, saved: dict[str, Any], outputs: int) -> Calibration:
        """Read from a model file's header; raises DataError if it is not a result of `to_dict` for
        so many outputs.
        """
        try:
            kind, rows, by = (saved[name] for name in ("kind", "rows", "by"))
            curves = [(np.array(a, float), np.array(b, float)) for a, b in saved["curves"]]
            sound = kind in KINDS and len(curves) == outputs
            sound = sound and all(
                a.shape == b.shape and np.isfinite([a, b]).all() for a, b in curves
            )
        except (KeyError, TypeError, ValueError):
            sound = False
        if not sound:
            raise DataError("its calibration is damaged")
        return cls(kind, rows, by, curves)


def _platt(values: np.ndarray, hit: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Slope and intercept of the sigmoid: logistic regression with each row used for both outcomes,
    weighted by Platt's target.
    """
    # the solver works best with numbers of magnitude one
    scale = float(np.abs(values).max()) or 1.0
    target = np.where(hit, (hit.sum() + 1) / (hit.sum() + 2), 1 / ((~hit).sum() + 2))
    both = np.concatenate([values, values])[:, None] / scale
    model = lazy.linear_model.LogisticRegression(C=1e10, tol=1e-8, max_iter=1000)
    model.fit(
        both, np.repeat([1, 0], len(values)), sample_weight=np.concatenate([target, 1 - target])
    )
    return model.coef_.ravel() / scale, model.intercept_


def _isotonic(values: np.ndarray, hit: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The thresholds of an isotonic regression, and its probabilities.

    The share of hits among the rows of a step has Laplace's correction, (hits + 1) / (rows + 2): a
    step without hits does not make them impossible. The corrected shares are made increasing again.
    """
    regression = lazy.isotonic.IsotonicRegression(y_min=0.0, y_max=1.0, out_of_bounds="clip")
    shares = regression.fit_transform(values, hit.astype(float))
    _, step, sizes = np.unique(shares, return_inverse=True, return_counts=True)
    rows = sizes[step]
    curve = regression.fit(values, (shares * rows + 1) / (rows + 2))
    return curve.X_thresholds_.astype(np.float64), curve.y_thresholds_.astype(np.float64)


def _of_all(found: np.ndarray) -> np.ndarray:
    """(n, classes) from the probabilities of the larger of two classes (n, 1), or of each class
    against the rest.
    """
    if found.shape[1] == 1:
        return np.hstack([1 - found, found])
    total = found.sum(axis=1, keepdims=True)
    return np.where(total > 0, found / np.where(total > 0, total, 1.0), 1 / found.shape[1])


def has(method: Pipeline) -> bool:
    """Whether the trained method has probabilities."""
    if method.task == "regression":
        return False
    assert method.classes is not None
    return method.calibration is not None or method.loss.name in OWN or len(method.classes) == 1


def check(method: Pipeline) -> None:
    """Raise UsageError if the trained method has no probabilities."""
    if not has(method):
        if method.task == "regression":
            raise UsageError("--proba is for classification, but the model is a regression")
        raise UsageError(
            f"the model has no probabilities, because its loss is {method.loss.name}; to get them,"
            f" train it again with --calibrate platt{_training(method)}"
        )


def _training(method: Pipeline) -> str:
    """The command that trains on the model's data with calibration, if these are known."""
    info, schema = method.info, method.schema
    if not info.get("dataset"):
        return ""
    words = ["rfx", "train", "--data", info["dataset"]]
    words += [] if info["split"] in ("all", "default") else ["--split", info["split"]]
    if schema is not None and schema.target is not None:
        words += ["--target", schema.target[0] if schema.named else str(schema.target[1] + 1)]
        words += ["--ignore", ",".join(schema.ignored)] if schema.ignored else []
    return f": {shlex.join([*words, '--calibrate', 'platt', '--model', 'FILE'])}"


def probabilities(method: Pipeline, decision: np.ndarray) -> np.ndarray:
    """(n, classes) probabilities of decision values, in the order of method.classes; raises like
    `check`.
    """
    check(method)
    assert method.classes is not None
    if len(method.classes) == 1:
        return np.ones((len(decision), 1))
    if method.calibration is not None:
        return method.calibration.probabilities(decision)
    if method.loss.name == "softmax":
        found: np.ndarray = softmax(decision, axis=1)
        return found
    return _of_all(expit(decision[:, None] if decision.ndim == 1 else decision))


def steps(method: Pipeline, outputs: int) -> told.Steps | None:
    """The computation steps from the decision values of a row to its probabilities; None if it has
    none.
    """
    if not has(method):
        return None
    assert method.classes is not None
    if len(method.classes) == 1:
        return (told.linear(np.zeros((outputs, 1)), 1.0),)
    if method.calibration is None and method.loss.name == "softmax":
        return (told.Softmax(),)
    own = (told.Function("sigmoid"),) if method.calibration is None else method.calibration.steps()
    if outputs > 1:
        return *own, told.Shares()
    return *own, told.linear(np.array([[-1.0, 1.0]]), np.array([1.0, 0.0]))


def words(method: Pipeline) -> str | None:
    """The source of the model's probabilities; None if it has none."""
    if not has(method):
        return None
    return (
        method.calibration.words()
        if method.calibration is not None
        else f"from the {method.loss.name} loss itself"
    )
