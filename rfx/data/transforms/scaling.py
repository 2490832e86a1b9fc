"""Scaling of inputs and targets: learnt on the training rows, stored in the model, applied in
prediction.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse

from rfx import steps as told
from rfx.data.rows import WIDE, Rows, RowsLike, Statistics, blocks, is_text, keeps_sparse
from rfx.data.transforms.columns import TRANSFORMS, ColumnTransform, cannot_scale, sampled
from rfx.data.transforms.linear import Metric
from rfx.errors import DataError, RfxWarning, UsageError
from rfx.model import Array

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

# The scalings of inputs with their meaning.
KINDS = {
    "none": "unchanged",
    "minmax01": "to [0, 1]",
    "minmax11": "to [-1, 1]",
    "standard": "to mean 0 and variance 1",
    "power": "Yeo-Johnson power transform, then standard",
    "robust": "by median and quartiles, softly clipped",
    "quantile": "by ranks, to the normal distribution",
}
# The candidates when the scaling is chosen.
TRIED = ("standard", "power", "robust", "quantile")
TARGET_KINDS = {
    "none": "unchanged: the methods have no intercept",
    "minmax01": "to [0, 1]; RMSE, lambda and epsilon are in this unit",
    "mean": "to mean 0",
}
# Targets are divided by a power of two beyond this exponent: 1e15, whose square float32 holds.
_EXPONENT = 50


def as_floats(y: Any) -> Any:
    """Numbers in float64: an array, but data on workers stays there."""
    return (
        np.asarray(y, np.float64)
        if isinstance(y, np.ndarray) or not hasattr(y, "__array_function__")
        else y.astype(np.float64)
    )


def _checked(kind, kinds, what):
    if kind not in kinds:
        raise UsageError(f"{what} {kind!r} is unknown; there are {', '.join(kinds)}")
    return kind


def _reciprocal(spread):
    """1 / spread, and 0 for a constant column (or one with a spread too small to divide by)."""
    usable = spread > np.finfo(np.float64).tiny
    return np.divide(1.0, spread, out=np.zeros_like(spread), where=usable)


def _check_values(X, out):
    """Raise an error if a scaled value `out` (dense, or CSR like X) of the rows X is not finite."""
    if np.isfinite(out.data if scipy.sparse.issparse(out) else out).all():
        return
    if scipy.sparse.issparse(out):
        out = out.tocoo()
        place = np.flatnonzero(~np.isfinite(out.data))[0]
        row, column = out.row[place], out.col[place]
    else:
        row, column = np.argwhere(~np.isfinite(out))[0]
    raise DataError(
        f"the value of row {row + 1}, column {column + 1} is {float(X[row, column]):g}, which is"
        f" not finite in {out.dtype} after scaling; correct it, or use another --scaling or --dtype"
    )


@dataclass
class Scaler:
    """x -> (x - shift) * scale for each column, after a column transform for some kinds.

    `minmax01` and `minmax11` scale the training rows to [0, 1] and [-1, 1], `standard` to mean 0
    and variance 1, `none` changes nothing. A column that is constant on the training rows becomes
    0, also in prediction. Values outside the training range are extrapolated linearly, not clipped.

    `power`, `robust` and `quantile` first transform each column (`Power`, `Robust` and `Quantile`
    of `rfx.data.transforms.columns`). They are learnt from at most 50,000 evenly spaced rows, whose
    weights count as repetitions.

    If the training rows are wide and mostly zeros (`keeps_sparse`), nothing is shifted: `minmax01`
    and `minmax11` divide each column by its largest magnitude, `standard` by its standard
    deviation, and rows stay CSR. For nonnegative columns `minmax01` is unchanged; if the result
    differs, a warning is logged. Column transforms, which do not preserve zeros, raise an error for
    such rows.

    A learnt metric, if any, maps the scaled rows (`rfx.data.transforms.linear`).
    """

    kind: str
    shift: np.ndarray  # (n_inputs,)
    scale: np.ndarray  # (n_inputs,)
    columns: ColumnTransform | None = None
    metric: Metric | None = None

    @property
    def n_inputs(self) -> int:
        return len(self.shift)

    @classmethod
    def fit(cls, X: RowsLike, kind: str = "none", weights: np.ndarray | None = None) -> Scaler:
        """Learn from the training rows X (n, d), dense, csr or in parts; weights (n,) affect
        `standard` and column transforms.

        Raises UsageError for an unknown kind, and for a column transform of wide sparse rows.
        """
        _checked(kind, KINDS, "scaling")
        n, d = X.shape
        if kind in TRANSFORMS:
            return cls._transforming(kind, X, weights)
        if isinstance(X, Rows):
            return cls.of_statistics(kind, X.survey)
        if n == 0 and kind != "none":
            raise DataError("scaling needs at least one row")
        rows = None if kind == "none" else Statistics.of(X, kind == "standard", weights)
        return cls.of_statistics(kind, rows, d)

    @classmethod
    def _transforming(cls, kind, X, weights):
        """`fit` for a column transform."""
        (n, d), in_parts = X.shape, isinstance(X, Rows)
        if keeps_sparse(X):
            raise UsageError(
                f"--scaling is {kind}, but the rows are sparse, with {d:,} columns, and zeros would"
                " become nonzero; use standard, minmax01 or none"
            )
        if weights is not None and not np.all(weights > 0):
            X, weights = X[np.flatnonzero(weights)], weights[weights > 0]
            n = len(weights)
        if n == 0:
            raise DataError("scaling needs at least one row")
        chosen = sampled(n, d)
        rows = X.unscaled(chosen) if in_parts else X[chosen]
        chosen_weights = None if weights is None else weights[chosen]
        learnt, shift, scale = TRANSFORMS[kind].learn(rows, chosen_weights)
        return cls(kind, shift, scale, learnt)

    @classmethod
    def of_statistics(cls, kind: str, rows: Statistics | None, width: int = 0) -> Scaler:
        """`fit` for a kind without a column transform, from the Statistics of the rows; None, and
        the number of columns, for `none`.

        Raises DataError if the range or the deviation of a column is not finite.
        """
        _checked(kind, KINDS, "scaling")
        if kind == "none" or rows is None:
            width = width if rows is None else rows.width
            return cls(kind, np.zeros(width), np.ones(width))
        with np.errstate(over="ignore"):  # refused below
            low, spread = rows.low, rows.high - rows.low
        if kind == "standard":
            low, spread = rows.mean, rows.deviations()
        bad = np.flatnonzero(~np.isfinite(low + spread))
        if len(bad):
            raise cannot_scale(bad[0])
        unit = _reciprocal(spread)
        if is_text(rows.count, rows.width, rows.entries):
            if kind != "minmax01" or (low[unit > 0] != 0).any():
                what = "standard deviation" if kind == "standard" else "largest magnitude"
                warnings.warn(
                    f"the rows are sparse, with {len(low):,} columns: each is divided by its"
                    f" {what} but not shifted, so that zeros stay zeros, unlike {kind} on dense"
                    " rows; --scaling none leaves them unchanged",
                    RfxWarning,
                    stacklevel=2,
                )
            size = (
                spread
                if kind == "standard"
                else np.where(unit > 0, np.maximum(np.abs(low), np.abs(low + spread)), 0.0)
            )
            return cls(kind, np.zeros(len(low)), _reciprocal(size))
        if kind == "minmax11":
            return cls(kind, low + spread / 2, 2 * unit)
        return cls(kind, low, unit)

    def transform(self, X: RowsLike, dtype: DTypeLike = np.float64) -> RowsLike:
        """Scaled copy of X (n, n_inputs): dense, or CSR if X is sparse and nothing is shifted
        (`none`, or wide rows).

        A sparse X with fewer columns is padded with zeros, as LIBSVM files may omit them. DataError
        for any other width, and for a value that is not finite in dtype, with its row and column
        (from 1).
        """
        if isinstance(X, Rows):
            return X.scaled(self, dtype)
        X = self._fitted_width(X)
        with np.errstate(over="ignore", invalid="ignore"):
            out = X.astype(dtype, copy=False) if self.kind == "none" else self._scaled(X, dtype)
        _check_values(X, out)
        if self.metric is not None and self.metric.form == "full" and X.shape[1] <= WIDE:
            out = out.toarray() if scipy.sparse.issparse(out) else out
        return out if self.metric is None else self.metric.transform(out)

    def steps(self, dtype: DTypeLike) -> told.Steps:
        """The computation steps of `transform` for dense rows."""
        made: told.Steps = () if self.columns is None else self.columns.steps()
        if self.kind != "none":
            made = (*made, told.Scale(self.shift, self.scale))
        made = made + told.rounded(dtype)
        return made if self.metric is None else made + self.metric.steps(dtype)

    def _scaled(self, X, dtype):
        unshifted = self.columns is None and not (self.shift * self.scale).any()
        if scipy.sparse.issparse(X) and X.shape[1] > WIDE and unshifted:
            X = X.tocsr()
            values = (X.data * self.scale[X.indices]).astype(dtype)
            return scipy.sparse.csr_matrix((values, X.indices, X.indptr), shape=X.shape)
        out = np.empty(X.shape, dtype)
        for start, block in blocks(X):
            scaled = np.subtract(self._transformed(block), self.shift)
            np.multiply(
                scaled, self.scale, out=out[start : start + len(block)], casting="same_kind"
            )
        return out

    def _transformed(self, block):
        """The transformed dense rows; nan if a value is not finite, because a transform may map
        infinity to a number.
        """
        if self.columns is None:
            return block
        return np.where(np.isfinite(block), self.columns(block), np.nan)

    def _fitted_width(self, X):
        n, d = X.shape
        if d == self.n_inputs:
            return X
        if d > self.n_inputs or not scipy.sparse.issparse(X):
            raise DataError(
                f"the rows have {d} features, but the model was trained on {self.n_inputs}"
            )
        X = X.tocsr()
        return scipy.sparse.csr_matrix((X.data, X.indices, X.indptr), shape=(n, self.n_inputs))

    def to_dict(self) -> dict:
        """{"kind": str, "metric": str, "shift": array, "scale": array} and the arrays of the column
        transform and the metric, for the model file.
        """
        more = {} if self.columns is None else self.columns.arrays()
        form = "none"
        if self.metric is not None:
            form = self.metric.form
            more[f"metric_{form}"] = self.metric.map
        arrays = {"kind": self.kind, "metric": form, "shift": self.shift, "scale": self.scale}
        return arrays | more

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any]) -> Scaler:
        """The scaling from the result of to_dict; DataError if an array is missing."""
        kind, form = _checked(str(saved["kind"]), KINDS, "scaling"), saved.get("metric", "none")
        shift, scale = (np.asarray(saved[name], np.float64) for name in ("shift", "scale"))
        learnt = TRANSFORMS[kind].of_arrays(saved) if kind in TRANSFORMS else None
        if form == "none":
            return cls(kind, shift, scale, learnt)
        if (metric := saved.get(f"metric_{form}")) is None:
            raise DataError(f"there is no array scaler_metric_{form:.50}")
        return cls(kind, shift, scale, learnt, Metric(np.asarray(metric, float)))


# The arrays of `Scaler.to_dict` in model files and checkpoints, by their names there.
ARRAYS = {
    f"scaler_{name}": form
    for forms in (
        {"shift": Array("f", "inputs"), "scale": Array("f", "inputs")},
        {"metric_diagonal": Array("f", "inputs"), "metric_full": Array("f", "inputs inputs")},
        *(transform.forms for transform in TRANSFORMS.values()),
    )
    for name, form in forms.items()
}


def plain(value):
    """A float, or an array (k,) unchanged: one number for one target, one for each of several."""
    return np.asarray(value, np.float64) if np.ndim(value) else float(value)


@dataclass
class TargetScaler:
    """y -> (y - shift) / scale for regression targets; `minmax01` scales the training targets to
    [0, 1], `mean` to mean 0.

    The scale of `mean` is 1, but a power of two near the largest target for targets whose squares
    are not in the range of float32, in which features and kernel values are stored.

    shift, scale: numbers, or arrays (k,) for k targets per row.
    """

    kind: str = "none"
    shift: float | np.ndarray = 0.0
    scale: float | np.ndarray = 1.0

    @classmethod
    def fit(
        cls, y: np.ndarray, kind: str = "none", weights: np.ndarray | None = None
    ) -> TargetScaler:
        """Learn from the training targets y (n,) or (n, k); weights (n,) affect only `mean`.
        Targets that are all equal get scale 1.
        """
        mean = np.average(y, axis=0, weights=weights)
        return cls.of(kind, np.min(y, axis=0), np.max(y, axis=0), mean)

    @classmethod
    def of(cls, kind: str, low: Any, high: Any, mean: Any) -> TargetScaler:
        """`fit` from the smallest target, the largest, and the mean: numbers, or arrays (k,)."""
        _checked(kind, TARGET_KINDS, "target scaling")
        if kind == "none":
            return cls()
        if kind == "mean":
            exponent = np.frexp(np.maximum(high - mean, mean - low))[1]
            far = np.abs(exponent) > _EXPONENT
            return cls(kind, plain(mean), plain(np.ldexp(1.0, np.where(far, exponent, 0))))
        return cls(kind, plain(low), plain(np.where(high > low, high - low, 1.0)))

    @property
    def unit(self) -> float | np.ndarray:
        """The unit of the RMSE: the range for `minmax01`, otherwise that of the targets."""
        return self.scale if self.kind == "minmax01" else 1.0

    def in_units(self, differences: np.ndarray) -> np.ndarray:
        """Differences of scaled targets in the unit of the RMSE."""
        return differences * (self.scale / self.unit)

    def transform(self, y: np.ndarray) -> np.ndarray:
        y = as_floats(y)
        return y if self.kind == "none" else (y - self.shift) / self.scale

    def inverse(self, y: np.ndarray) -> np.ndarray:
        """Convert back to the original units."""
        return (
            np.asarray(y, np.float64)
            if self.kind == "none"
            else np.asarray(y, np.float64) * self.scale + self.shift
        )

    def steps(self, n_targets: int) -> told.Steps:
        """The computation steps of `inverse` for a row of so many targets."""
        if self.kind == "none":
            return ()
        scale = np.broadcast_to(np.asarray(self.scale, np.float64), (n_targets,))
        return (told.linear(np.diag(scale), self.shift),)

    def to_dict(self) -> dict:
        return {
            "kind": self.kind,
            "shift": np.asarray(self.shift).tolist(),
            "scale": np.asarray(self.scale).tolist(),
        }

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any], n_outputs: int) -> TargetScaler:
        """The scaling from the result of to_dict, for that many targets per row; DataError if it is
        for another number.
        """
        kind = _checked(str(saved["kind"]), TARGET_KINDS, "target scaling")
        shift, scale = plain(saved["shift"]), plain(saved["scale"])
        if not {np.shape(shift), np.shape(scale)} <= {(), (n_outputs,)}:
            raise DataError(f"its targets' scaling is not for {n_outputs} targets")
        return cls(kind, shift, scale)
