"""Values of f = scale * sum_j coef_j phi_j over the features of a growing map."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, cast

import numpy as np

from rfx.operators.blocks import block_size, ranges
from rfx.operators.mapped import MapMatrix
from rfx.parallel import for_ranges, matmul, one_blas_thread
from rfx.solvers.stochastic.steps import Coefficients

if TYPE_CHECKING:
    from rfx.features.base import FeatureMap
    from rfx.features.growing import GrowingMap
    from rfx.types import Inputs

# Rows of a large set for which the features of a piece are computed together, and rows whose
# products are summed in float32.
ROWS, SUMMED = 4096, 1024
# Maximum rows for which a thread processes whole pieces, their number, and maximum numbers of their
# frequencies; for rows with so few entries, one thread processes all.
_SMALL, _TOGETHER, _NUMBERS, _FEW = 1024, 16, 1 << 21, 1024


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
    """Coefficients of the features of a GrowingMap, and values of the function.

    n_held: number of rows of a set whose features are cached (see `HeldFeatures`); averaging: see
    `Descent`.
    """

    def __init__(self, growing: GrowingMap, n_outputs: int, averaging: str = "none") -> None:
        self.map, self.n_outputs = growing, n_outputs
        self.coefficients = Coefficients(n_outputs, averaging)
        self.held: HeldFeatures | None = None
        self._kept: list[KeptValues] = []
        self._buffer = np.empty(0, growing.dtype)

    @property
    def n_features(self) -> int:
        return self.coefficients.n

    def decay(self, factor: float) -> None:
        """Multiply every coefficient by a factor."""
        moved = self.coefficients.decay(factor)
        if moved != 1.0:
            for kept in self._kept:
                kept.raw *= moved

    def add(self, start: int, change: np.ndarray) -> None:
        """Coefficients from `start` on += change (count, n_outputs); new ones if `start` is the
        end.
        """
        if start < self.n_features:
            for kept in self._kept:
                kept.raw[:], kept.seen[:] = 0.0, 0
        self.coefficients.add(start, change)

    # ------------------------------------------------------------------ values

    def values(self, X: Inputs, index: np.ndarray | None = None) -> np.ndarray:
        """(n, n_outputs) float64 values of the last function; index: the rows' numbers in the set
        whose features are cached.
        """
        c = self.coefficients
        return c.scale * self.sum(X, c.raw, 0, self.n_features, index)

    def predictions(self, X: Inputs) -> np.ndarray:
        """(n, n_outputs) float64 values of the predicting function."""
        c = self.coefficients
        if c.averaging == "none":
            return self.values(X)
        return self.sum(X, c.predicting, 0, self.n_features)

    def keep(self, n_rows: int) -> KeptValues:
        """Values for the rows of a set used again: only the features added since a row's last use
        are computed.
        """
        self._kept.append(KeptValues(self, n_rows))
        return self._kept[-1]

    def follow(self, X: Inputs) -> Callable[[], np.ndarray]:
        """A function that repeatedly returns the last function's values for these rows."""
        kept, index = self.keep(X.shape[0]), np.arange(X.shape[0])
        return lambda: kept.values(X, index)

    def features(
        self, X: Inputs, start: int, stop: int, index: np.ndarray | None = None
    ) -> np.ndarray:
        """(n, stop - start) features of one piece, in memory reused by the next call."""
        if self.held is not None and index is not None:
            return self.held.features(X, index, start, stop)
        return self._transform(self.map.sampled(start, stop), X)

    def sum(
        self, X: Inputs, coef: np.ndarray, start: int, stop: int, index: np.ndarray | None = None
    ) -> np.ndarray:
        """sum of coef_j phi_j(x) over the features start .. stop-1: piece by piece, and in blocks
        of rows.
        """
        out = np.zeros((X.shape[0], coef.shape[1]))
        together = min(_TOGETHER, _NUMBERS // (self.map.piece * max(1, self.map.n_inputs)))
        cached = self.held is not None and index is not None
        if not cached and len(out) <= _SMALL and together > 1:
            for values in self._each_piece(X, coef, list(self._pieces(start, stop)), together):
                out += values
            return out
        for low, high in self._pieces(start, stop):
            features = None if cached else self.map.sampled(low, high)
            if features is not None and self.n_outputs == 1 and len(out) > ROWS:
                # separately in each thread, in parts that fit into its cache
                out[:, 0] += MapMatrix(features, X).matvec(coef[low:high, 0])
                continue
            weights = coef[low:high].astype(self.map.dtype)
            for first in range(0, len(out), ROWS):
                part = slice(first, first + ROWS)
                if features is not None:
                    Z = self._transform(features, X[part])
                else:
                    Z = self.features(X[part], low, high, cast("np.ndarray", index)[part])
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
                sums = for_ranges(part, len(few), work=work)
            for values in sums:
                yield from values

    def _pieces(self, start: int, stop: int) -> Iterator[tuple[int, int]]:
        while start < stop:
            high = min(stop, (start // self.map.piece + 1) * self.map.piece)
            yield start, high
            start = high

    def _transform(self, features: FeatureMap, X: Inputs) -> np.ndarray:
        """Features of the rows X, in memory reused by the next call."""
        size = X.shape[0] * features.n_features
        if len(self._buffer) < size:
            self._buffer = np.empty(size, self.map.dtype)
        return features.transform(
            X, out=self._buffer[:size].reshape(X.shape[0], features.n_features)
        )


class KeptValues:
    """Values of an expansion's last function for the rows of a set, identified by their numbers:
    one number per row and output.
    """

    def __init__(self, expansion: Expansion, n_rows: int) -> None:
        self.expansion = expansion
        self.raw, self.seen = np.zeros((n_rows, expansion.n_outputs)), np.zeros(n_rows, np.int64)

    def values(self, X: Inputs, index: np.ndarray) -> np.ndarray:
        """(n, n_outputs) float64 for the rows X (n, d), whose numbers in the set are `index`."""
        e, seen = self.expansion, self.seen[index]
        for first in np.unique(seen[seen < e.n_features]).tolist():
            old = np.flatnonzero(seen == first)
            self.raw[index[old]] += e.sum(X[old], e.coefficients.raw, first, e.n_features)
        self.seen[index] = e.n_features
        values: np.ndarray = e.coefficients.scale * self.raw[index]
        return values

    def add(self, Z: np.ndarray, start: int, index: np.ndarray) -> None:
        """The features from `start` to the last have the values Z (n, m) for the rows `index`,
        whose values include all earlier ones.
        """
        stop = start + Z.shape[1]
        self.raw[index] += matmul(Z, self.expansion.coefficients.raw[start:stop].astype(Z.dtype))
        self.seen[index] = stop


class HeldFeatures:
    """Values of the first n_features features of a GrowingMap for n_rows rows, filled batch by
    batch: features of reused blocks are computed once.

    Memory: n_rows n_features numbers of the map's type, as far as requested. Bitwise the same as
    recomputed features.
    """

    def __init__(self, growing: GrowingMap, n_rows: int, n_features: int) -> None:
        self.map, piece = growing, growing.piece
        widths = [min(piece, n_features - start) for start in range(0, n_features, piece)]
        self._values = [np.empty((n_rows, width), growing.dtype) for width in widths]
        # for every row, the number of a piece's features that are available, from its first on
        self._made = np.zeros((len(widths), n_rows), np.int32)
        self._buffer = np.empty(0, growing.dtype)

    def features(self, X: Inputs, index: np.ndarray, start: int, stop: int) -> np.ndarray:
        """(n, stop - start) values for the rows X (n, d), whose numbers in the set are `index`:
        features of one piece.

        They are in memory reused by the next call.
        """
        number = start // self.map.piece
        first, values, made = number * self.map.piece, self._values[number], self._made[number]
        missing = np.flatnonzero(made[index] < stop - first)
        if len(missing):
            rows = index[missing]
            low = int(made[rows].min())
            features = self.map.sampled(first + low, stop)
            values[rows, low : stop - first] = features.transform(X[missing])
            made[rows] = stop - first
        size = len(index) * values.shape[1]
        if len(self._buffer) < size:
            self._buffer = np.empty(size, values.dtype)
        # numbers outside the set raised an error above; in another mode numpy would copy twice
        whole = np.take(
            values, index, axis=0, out=self._buffer[:size].reshape(len(index), -1), mode="clip"
        )
        return whole[:, start - first : stop - first]


def cross(Z: np.ndarray, R: np.ndarray) -> np.ndarray:
    """Z'R (m, k) in float64 for features Z (n, m) and R (n, k): products in Z's type,
    summed over rows in float64.
    """
    out = np.zeros((Z.shape[1], R.shape[1]))
    for first in range(0, len(Z), SUMMED):
        part = slice(first, first + SUMMED)
        out += matmul(Z[part].T, R[part].astype(Z.dtype))
    return out
