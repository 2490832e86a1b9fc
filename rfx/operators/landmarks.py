"""A preconditioner of lam I + K with a higher rank than fits into memory as columns: kernel values
with landmarks, recomputed each time.

A product with the N x m values C costs 2 m / N of one with K, so a thousand more landmarks are
cheap if a product with K takes minutes. The preconditioner C' C + lam K_mm (m x m) is known from
Rudi, Carratino and Rosasco (2017), "FALKON"; here it preconditions the whole problem, not one over
the landmarks' span.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from rfx import kernels, parallel
from rfx.operators.factors import Gram
from rfx.operators.pivoted import pivoted_cholesky

if TYPE_CHECKING:
    from rfx.operators.kernel import KernelMatrix

# Rows per landmark from which landmarks are drawn: their factor, with 4 bytes each, takes as much
# as four of the m x m matrices.
_AMONG = 8
_ROWS = 2048
# Added to the diagonal of K_mm, relative to its largest entry: float32 values can't resolve smaller
# eigenvalues.
_JITTER = 1e-5


class LandmarkFactor:
    """v (N,) or (N, k) -> (lam + C (K_mm + jitter)^-1 C')^-1 v, by Woodbury (v - C (lam (K_mm +
    jitter) + C' C)^-1 C' v) / lam.

    C = K[:, landmarks], (N, m), 2,048 rows at a time, all in float64: float32 products lose the
    part of v along the largest eigenvectors, which K amplifies again. m is at most `count`, fewer
    if fewer rows are distinct. It needs 8 m^2 bytes, and about five times as much during
    construction.
    """

    def __init__(self, K: KernelMatrix, count: int, lam: float, seed: int) -> None:
        self.K, self.lam = K, lam
        rng = np.random.default_rng(seed)
        n_rows = K.shape[0]
        rows = K.prepared(np.float32)
        among = np.sort(rng.choice(n_rows, min(n_rows, _AMONG * count), replace=False))
        chosen = pivoted_cholesky(
            rows.take(among),
            count,
            lambda start, stop: rng.random((stop - start, 2)),
            np.float32,
            _JITTER,
        )[0]
        self.landmarks = K.prepared(np.float64).take(among[np.sort(chosen)])
        inner = kernels.block(K.name, self.landmarks, self.landmarks, K.params)
        inner[np.diag_indices(len(inner))] += _JITTER * np.diagonal(inner).max(initial=0.0)
        self.gram = Gram(len(inner), np.dtype(np.float64))
        for _, C in self._blocks():
            self.gram.add_rows(C)
        # the factor reads the upper triangle
        self.gram.matrix += lam * inner
        self.gram.factor(0.0)

    def _blocks(self) -> Iterator[tuple[slice, np.ndarray]]:
        rows = self.K.prepared(np.float64)
        for start in range(0, rows.n_rows, _ROWS):
            part = slice(start, start + _ROWS)
            yield part, kernels.block(self.K.name, rows.take(part), self.landmarks, self.K.params)

    def __call__(self, v: np.ndarray) -> np.ndarray:
        inside = np.zeros((self.landmarks.n_rows, *v.shape[1:]))
        for rows, C in self._blocks():
            inside += parallel.matmul(C.T, v[rows])
        inside = self.gram.solve(inside)
        out = np.empty(v.shape)
        for rows, C in self._blocks():
            out[rows] = (v[rows] - parallel.matmul(C, inside)) / self.lam
        return out
