"""f = scale * sum_j coef_j phi_j over the features of a growing map: the decay of coefficients
changes a single number.

A step of a stochastic gradient multiplies all earlier coefficients by 1 - gamma nu; here only
`scale` is multiplied. The average over all steps is stored similarly: with S the weighted sum of
the scales so far, the sum of f over the steps is S coef - before, where `before` contains, for
every change of coef, the change times the S of its time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from rfx.operators.blocks import block_size, ranges
from rfx.operators.mapped import MapMatrix
from rfx.parallel import for_ranges, matmul, one_blas_thread

if TYPE_CHECKING:
    from rfx.features.base import FeatureMap
    from rfx.features.growing import GrowingMap
    from rfx.solvers.stochastic.held import Held
    from rfx.types import Inputs

# Rows of a large set for which the features of a piece are computed together, and rows whose
# products are summed in float32.
ROWS, SUMMED = 4096, 1024
# Maximum rows for which a thread processes whole pieces, their number, and maximum numbers of their
# frequencies; for rows with so few entries, one thread processes all.
_SMALL, _TOGETHER, _NUMBERS, _FEW = 1024, 16, 1 << 21, 1024
# The scale is moved into the coefficients below this: the average is a difference of numbers as
# large as 1/scale.
_SMALLEST = 1e-4


def explicit_values(
    features: Callable[[Inputs], np.ndarray], X: Inputs, w: np.ndarray
) -> np.ndarray:
    """(n, n_outputs) float64 values w.z(x) of features z, some megabytes of them at a time."""
    out = np.empty((X.shape[0], w.shape[1]))
    for rows in ranges(X.shape[0], block_size(len(w), np.float32)):
        Z = features(X[rows])
        out[rows] = matmul(Z, w.astype(Z.dtype))
    return out


class Expansion:
    """Coefficients (n_features, n_outputs), float64, of the features of a GrowingMap, with their
    common scale.

    averaging: none, uniform (over all steps) or linear (step t has weight t).
    """

    def __init__(self, growing: GrowingMap, n_outputs: int, averaging: str = "none") -> None:
        self.map, self.averaging = growing, averaging
        self.n_features, self.scale = 0, 1.0
        self.sum, self.weight = 0.0, 0.0
        self._raw = np.zeros((growing.piece, n_outputs))
        self._before = np.zeros_like(self._raw) if averaging != "none" else None
        self._trackers: list[Tracker | Known] = []
        self._buffer = np.empty(0, growing.dtype)

    @property
    def n_outputs(self) -> int:
        return self._raw.shape[1]

    @property
    def coef(self) -> np.ndarray:
        """(n_features, n_outputs) coefficients of the predicting function: the last one, or the
        average.
        """
        raw = self._raw[: self.n_features]
        if self._before is None or not self.weight:
            return self.scale * raw
        return (self.sum * raw - self._before[: self.n_features]) / self.weight

    def last(self, start: int, stop: int) -> np.ndarray:
        """(stop - start, n_outputs) coefficients of the last function."""
        return self.scale * self._raw[start:stop]

    def decay(self, factor: float) -> None:
        """Multiply every coefficient by a factor."""
        self.scale *= factor
        if abs(self.scale) < _SMALLEST:
            self._fold()

    def _fold(self) -> None:
        """Move the scale into the coefficients; also called for a factor of zero."""
        used = slice(0, self.n_features)
        if self._before is not None:
            self._before[used] -= self.sum * self._raw[used]
            self.sum = 0.0
        self._raw[used] *= self.scale
        for tracker in self._trackers:
            tracker.raw *= self.scale
        self.scale = 1.0

    def add(self, start: int, change: np.ndarray) -> None:
        """Coefficients from `start` on += change (count, n_outputs); new ones if `start` is the
        end.
        """
        stop = start + len(change)
        if stop > len(self._raw):
            self._grow(stop)
        if start < self.n_features:
            for tracker in self._trackers:
                tracker.forget()
        change = change / self.scale
        self._raw[start:stop] += change
        if self._before is not None:
            self._before[start:stop] += self.sum * change
        self.n_features = max(self.n_features, stop)

    def _grow(self, needed: int) -> None:
        size = max(needed, 2 * len(self._raw))
        self._raw = np.concatenate([self._raw, np.zeros((size - len(self._raw), self.n_outputs))])
        if self._before is not None:
            self._before = np.concatenate(
                [self._before, np.zeros((size - len(self._before), self.n_outputs))]
            )

    def count(self, t: int) -> None:
        """End step t: its function enters the average."""
        if self._before is not None:
            weight = t if self.averaging == "linear" else 1.0
            self.sum += weight * self.scale
            self.weight += weight

    # ------------------------------------------------------------------ values

    def values(
        self, X: Inputs, held: Held | None = None, index: np.ndarray | None = None
    ) -> np.ndarray:
        """(n, n_outputs) float64 values of the last function.

        held: features of the rows with numbers `index` in a set are cached there
        (rfx.solvers.stochastic.held).
        """
        return self.scale * self._sum(X, self._raw, 0, self.n_features, held, index)

    def predictions(self, X: Inputs) -> np.ndarray:
        """(n, n_outputs) float64 values of the predicting function."""
        return (
            self.values(X) if self._before is None else self._sum(X, self.coef, 0, self.n_features)
        )

    def track(self, X: Inputs) -> Tracker:
        """Values for repeatedly requested rows: only the features added since the last call are
        computed.
        """
        made = Tracker(self, X)
        self._trackers.append(made)
        return made

    def keep(self, n_rows: int) -> Known:
        """Values for the rows of a set used batch by batch: only the features added since the last
        call are computed.
        """
        made = Known(self, n_rows)
        self._trackers.append(made)
        return made

    def _sum(
        self,
        X: Inputs,
        coef: np.ndarray,
        start: int,
        stop: int,
        held: Held | None = None,
        index: np.ndarray | None = None,
    ) -> np.ndarray:
        """sum of coef_j phi_j(x) over the features start .. stop-1: piece by piece, and in blocks
        of rows.
        """
        out = np.zeros((X.shape[0], coef.shape[1]))
        together = min(_TOGETHER, _NUMBERS // (self.map.piece * max(1, self.map.n_inputs)))
        if held is None and len(out) <= _SMALL and together > 1:
            for values in self._each_piece(X, coef, list(self._pieces(start, stop)), together):
                out += values
            return out
        for low, high in self._pieces(start, stop):
            features = self.map.sampled(low, high) if held is None or index is None else None
            if features is not None and self.n_outputs == 1 and len(out) > ROWS:
                # separately in each thread, in parts that fit into its cache
                out[:, 0] += MapMatrix(features, X).matvec(coef[low:high, 0])
                continue
            weights = coef[low:high].astype(self.map.dtype)
            for first in range(0, len(out), ROWS):
                part = slice(first, first + ROWS)
                if held is None or index is None:
                    Z = self.transform(cast("FeatureMap", features), X[part])
                else:
                    Z = held.features(X[part], index[part], low, high)
                out[part] += matmul(Z, weights)
        return out

    def _each_piece(
        self, X: Inputs, coef: np.ndarray, pieces: list[tuple[int, int]], together: int
    ) -> Iterator[np.ndarray]:
        """Yields the sum over each piece for rows X that are too few to be distributed among
        threads; the pieces are distributed instead.
        """
        for first in range(0, len(pieces), together):
            few = [
                (self.map.sampled(*piece), coef[slice(*piece)].astype(self.map.dtype))
                for piece in pieces[first : first + together]
            ]

            def part(
                start: int, stop: int, few: list[tuple[FeatureMap, np.ndarray]] = few
            ) -> list[np.ndarray]:
                return [
                    matmul(features.transform(X), weights) for features, weights in few[start:stop]
                ]

            work = X.size * sum(len(weights) for _, weights in few) if X.size > _FEW else 0
            with one_blas_thread():
                found = for_ranges(part, len(few), work=work)
            for values in found:
                yield from values

    def _pieces(self, start: int, stop: int) -> Iterator[tuple[int, int]]:
        while start < stop:
            high = min(stop, (start // self.map.piece + 1) * self.map.piece)
            yield start, high
            start = high

    def transform(self, features: FeatureMap, X: Inputs) -> np.ndarray:
        """Features of the rows X, in memory reused by the next call."""
        size = X.shape[0] * features.n_features
        if len(self._buffer) < size:
            self._buffer = np.empty(size, self.map.dtype)
        return features.transform(
            X, out=self._buffer[:size].reshape(X.shape[0], features.n_features)
        )

    # ------------------------------------------------------------------ checkpoints

    def state(self) -> dict[str, Any]:
        """Arrays that `restore` takes."""
        arrays = {
            "coef": self._raw[: self.n_features].copy(),
            "scales": np.array([self.scale, self.sum, self.weight]),
        }
        return (
            arrays
            if self._before is None
            else arrays | {"before": self._before[: self.n_features].copy()}
        )

    def restore(self, state: dict[str, Any]) -> None:
        """Continue bitwise identically from another's `state`."""
        self.n_features = len(state["coef"])
        self._grow(max(len(self._raw), self.n_features))
        self._raw[: self.n_features] = state["coef"]
        if self._before is not None:
            self._before[: self.n_features] = state["before"]
        self.scale, self.sum, self.weight = (float(value) for value in state["scales"])


class Tracker:
    """Values of an expansion's last function for fixed rows."""

    def __init__(self, expansion: Expansion, X: Inputs) -> None:
        self.expansion, self.X, self.seen = expansion, X, 0
        self.raw = np.zeros((X.shape[0], expansion.n_outputs))

    def forget(self) -> None:
        """Coefficients of existing features have changed."""
        self.seen = 0

    def values(self) -> np.ndarray:
        """(n, n_outputs) float64."""
        e = self.expansion
        if not self.seen:
            self.raw[:] = 0.0
        self.raw += e._sum(self.X, e._raw, self.seen, e.n_features)
        self.seen = e.n_features
        return e.scale * self.raw


class Known:
    """Values of an expansion's last function for the rows of a set, identified by their numbers:
    one number per row and output.
    """

    def __init__(self, expansion: Expansion, n_rows: int) -> None:
        self.expansion = expansion
        self.raw, self.seen = np.zeros((n_rows, expansion.n_outputs)), np.zeros(n_rows, np.int64)

    def forget(self) -> None:
        """Coefficients of existing features have changed."""
        self.raw[:], self.seen[:] = 0.0, 0

    def values(self, X: Inputs, index: np.ndarray) -> np.ndarray:
        """(n, n_outputs) float64 for the rows X (n, d), whose numbers in the set are `index`."""
        e, seen = self.expansion, self.seen[index]
        for first in np.unique(seen[seen < e.n_features]).tolist():
            old = np.flatnonzero(seen == first)
            self.raw[index[old]] += e._sum(X[old], e._raw, first, e.n_features)
        self.seen[index] = e.n_features
        found: np.ndarray = e.scale * self.raw[index]
        return found

    def add(self, Z: np.ndarray, start: int, index: np.ndarray) -> None:
        """The features from `start` to the last have the values Z (n, m) for the rows `index`,
        whose values include all earlier ones.
        """
        stop = start + Z.shape[1]
        self.raw[index] += matmul(Z, self.expansion._raw[start:stop].astype(Z.dtype))
        self.seen[index] = stop


def cross(Z: np.ndarray, R: np.ndarray) -> np.ndarray:
    """Z'R (m, k) in float64 for features Z (n, m) and R (n, k): products in Z's type,
    summed over rows in float64.
    """
    out = np.zeros((Z.shape[1], R.shape[1]))
    for first in range(0, len(Z), SUMMED):
        part = slice(first, first + SUMMED)
        out += matmul(Z[part].T, R[part].astype(Z.dtype))
    return out
