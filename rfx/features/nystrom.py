"""Features that depend on the rows: Nystrom features, and leverage scores."""

import copy
import warnings

import numpy as np
import scipy.sparse as sp
from scipy.linalg import blas, lapack

from rfx import device, kernels, lazy, parallel
from rfx.features.random import random_permutation, uniforms
from rfx.operators.factors import each_chunk, pivoted_cholesky, row_gram
from rfx.operators.linear_algebra import solve_rows
from rfx.operators.mapped import MapMatrix

# ----------------------------------------------------------------------
# Nystrom features: the kernel approximated from its values at m landmarks, K_nm K_mm^-1 K_mn
# (Williams and Seeger 2001).
#
# Landmarks are rows of the data or cluster centres. The features are z(x) = L^-1 k(x) with L L' =
# K_mm, which differ from K_mm^(-1/2) k(x) only by a rotation; rotations do not change an
# L2-regularised model.

ORDER, PIVOT = 0, 1
# Minimum rows computed at a time.
_LEAST_ROWS = 512
# Rows whose kernel values are computed in float64 before they become float32 features.
_SCRATCH_BYTES = 32 * 2**20
# Maximum distances per iteration of Lloyd's algorithm before mini-batches are used, and its
# iterations.
_LLOYD, _TURNS = 2e8, 20


class NystromMap:
    """z(x) = L^-1 k(x), with the interface that MapMatrix needs: shape, type, transform, select.

    Linearly dependent landmarks are dropped: the others keep the order of a Cholesky factorisation
    with complete pivoting of K_mm in float64 (LAPACK's dpstrf), which ends when no remaining
    diagonal entry exceeds m eps times the largest of K_mm. This drops repeated landmarks, and those
    that a kernel of low rank can't distinguish; their contribution to K is below m times that
    bound.

    landmarks: (rank, d) rows, array or CSR; factor: (rank, rank) float64, L in Fortran order.
    Kernel values and features are computed in float64 and returned in dtype.
    """

    def __init__(self, kernel: str, landmarks, params: dict, dtype=np.float32):
        self.name = kernel
        self.params = params
        self.dtype = np.dtype(dtype)
        self.n_inputs = landmarks.shape[1]
        rows = kernels.prepare(kernel, landmarks, params, np.float64)
        K = kernels.block(kernel, rows, rows, params)
        # in place: a symmetric matrix is its own transpose, and only the lower triangle of the
        # factor is read
        factor, order, rank, _ = lapack.dpstrf(K.T, lower=1, overwrite_a=1)
        chosen = order[:rank] - 1
        self.factor = np.asfortranarray(factor[:rank, :rank])
        self.landmarks = landmarks[chosen]
        self._rows = rows.take(chosen)
        self._columns = None

    @property
    def n_features(self) -> int:
        return len(self.factor) if self._columns is None else len(self._columns)

    def select(self, indices) -> "NystromMap":
        """The map of these features (an index array, a boolean mask or a slice), in that order,
        though all are computed.
        """
        part = copy.copy(self)
        mine = np.arange(len(self.factor)) if self._columns is None else self._columns
        part._columns = mine[indices]
        return part

    def transform(self, X, out=None) -> np.ndarray:
        """Features of the rows of X: (n, n_inputs) array or CSR matrix -> (n, n_features),
        written to `out` if given.
        """
        if out is None:
            out = np.empty((X.shape[0], self.n_features), self.dtype)
        rank = len(self.factor)
        step = max(_LEAST_ROWS, _SCRATCH_BYTES // (8 * max(1, rank)))
        scratch = np.empty((min(step, X.shape[0]), rank))
        for start in range(0, X.shape[0], step):
            part = X[start : start + step]
            Z = scratch[: part.shape[0]]
            kernels.block(self.name, part, self._rows, self.params, out=Z)
            # the features in place of the kernel values
            each_chunk(len(Z), lambda rows: solve_rows(self.factor, Z[rows]))
            chosen = Z if self._columns is None else Z[:, self._columns]
            out[start : start + step] = chosen
        return out

    def on_device(self, accelerator, X):
        """As `FeatureMap.on_device`, for all features."""
        if self._columns is not None or (placed := self._rows.on_device()) is None:
            return None
        factor = accelerator.put(np.tril(self.factor))
        prepared = kernels.prepare(self.name, X, self.params, np.float64, self._rows)

        def features(Z):
            # a copy, because the columns of a transpose would be overwritten
            columns = accelerator.xp.astype(placed.block(Z).T, factor.dtype, copy=True)
            return device.forward(factor, columns).T

        return features, prepared.dense()

    def fold(self, weights) -> np.ndarray:
        """(rank, k) float64 coefficients c with c'k(x) = weights'z(x) for weights
        (n_features, k): prediction needs no L.
        """
        full = np.asarray(weights, dtype=np.float64)
        if self._columns is not None:
            full = np.zeros((len(self.factor), full.shape[1]))
            full[self._columns] = weights
        return blas.dtrsm(1.0, self.factor, full, lower=1, trans_a=1) if len(full) else full


def choose_landmarks(
    how: str, kernel: str, X, params: dict, count: int, seed: int, max_memory_mb: float
):
    """At most `count` landmarks for the rows X (n, d), array or CSR, in their type.

    how: uniform (random rows), kmeans (cluster centres, Zhang, Tsang and Kwok 2008) or rpcholesky
    (pivots of the randomly pivoted Cholesky factorisation, of a random part of the rows if a factor
    of all would need more than half of max_memory_mb). If count is at least the number of rows, all
    rows are used. The same seed gives the same landmarks; a larger count extends those of uniform
    and rpcholesky.
    """
    n_rows = X.shape[0]
    if count >= n_rows:
        return X
    if how == "kmeans":
        return _centres(X, count, seed)
    order = random_permutation(seed, ORDER, 0, n_rows)
    if how == "uniform":
        return X[order[:count]]
    rows_in_memory = int(max_memory_mb * 2**20 / 2 / (8 * count))
    candidates = max(4 * count, rows_in_memory)
    part = X if candidates >= n_rows else X[np.sort(order[:candidates])]
    return part[rpcholesky(kernel, part, params, count, seed)]


def rpcholesky(kernel: str, X, params: dict, count: int, seed: int) -> np.ndarray:
    """At most `count` pivots (row numbers) of the randomly pivoted Cholesky factorisation of the
    kernel matrix of X (n, d).

    Fewer are returned if only rounding errors remain. Needs n x count float64 numbers.
    """
    rows = kernels.prepare(kernel, X, params, np.float64)

    def random_numbers(start, stop):
        return uniforms(seed, PIVOT, start, stop, 2)

    pivots, *_ = pivoted_cholesky(rows, count, random_numbers)
    return pivots


def _centres(X, count, seed):
    """(count, d) cluster centres, by Lloyd's algorithm, or by mini-batches if that would take
    long.
    """
    how = {"init": "random", "n_init": 1, "max_iter": _TURNS, "random_state": seed % 2**32}
    if X.shape[0] * count <= _LLOYD:
        model = lazy.cluster.KMeans(count, **how)
    else:
        model = lazy.cluster.MiniBatchKMeans(count, batch_size=max(4096, 2 * count), **how)
    # one thread: sums of several would depend on their number
    with (
        parallel.one_blas_thread(),
        lazy.threadpoolctl.threadpool_limits(1, "openmp"),
        warnings.catch_warnings(),
    ):
        # fewer distinct rows than clusters: centres repeat, and repeated landmarks are dropped
        warnings.simplefilter("ignore", lazy.sklearn_exceptions.ConvergenceWarning)
        centres = model.fit(X).cluster_centers_.astype(X.dtype)
    return sp.csr_matrix(centres) if sp.issparse(X) else centres


# ----------------------------------------------------------------------
# Random features sampled by ridge leverage from a larger pool, as accurate as several times as many
# plain ones.
#
# The ridge leverage of feature j of M at lambda is z_j' (Z Z' + lambda)^-1 z_j, for the (n, M)
# features Z: its importance for what the kernel machine can fit. Sampling proportionally, with
# weights that preserve the mean product, is optimal (Bach 2017, JMLR 18, section 4; Li, Ton, Oglic
# and Sejdinovic 2021, JMLR 22, algorithm 1). Labels are not used.

# Rows for measuring leverage.
ROWS = 5000
# With a classification loss only rows near the margin have curvature, about a fifth of them; so
# lambda weighs that much more.
NEAR_MARGIN = 0.2
# Features computed together: BLAS's last bits depend on their number, which threads must not
# change.
_PARTS = 8


def draw(pool, X, count: int, lam: float, seed: int):
    """`count` features of the map `pool`, sampled by their leverage at `lam` on up to 5,000 of the
    rows X (n, d), and reweighted.
    """
    n_rows = X.shape[0]
    rng = np.random.default_rng(seed)
    rows = np.sort(rng.permutation(n_rows)[:ROWS])
    leverages = scores(pool, X[rows], lam * len(rows) / n_rows)
    chance = inclusion(leverages, count)
    # systematic sampling: one feature for each unit of the cumulative probabilities
    ends = np.cumsum(chance)
    ends = ends * (count / ends[-1])
    points = rng.random() + np.arange(count)
    chosen = np.searchsorted(ends, points, side="right")
    chosen = np.minimum(chosen, pool.n_features - 1)
    weights = np.sqrt(count / (pool.n_features * chance[chosen]))
    return pool.weighted(chosen, weights)


def scores(pool, X, lam: float) -> np.ndarray:
    """(M,) ridge leverages of the features of the map `pool` over the rows X (n, d), in (0, 1)."""
    Z = MapMatrix(pool, X, pool.n_features**-0.5)
    gram = row_gram(Z)
    factor = gram.factor(lam).matrix
    out = np.empty(pool.n_features)

    def share(first, last, columns, own):
        width = own.shape[1]
        for k in range(first, last):
            part = slice(width * k // _PARTS, width * (k + 1) // _PARTS)
            solved = np.ascontiguousarray(own[:, part].T)
            solve_rows(factor, solved)
            out[columns][part] = np.einsum("ij,ij->i", solved, solved, dtype=np.float64)

    with parallel.one_blas_thread():
        for columns, own in Z.column_blocks():
            parallel.for_ranges(lambda first, last: share(first, last, columns, own), _PARTS)
    return out


def inclusion(scores, count: int) -> np.ndarray:
    """Probabilities min(1, c score) that sum to `count`; scores (M,) >= 0, M >= count. Equal if all
    scores are zero.
    """
    chance = np.maximum(scores, 1e-9 * scores.max(initial=0.0) or 1.0)
    chance = chance * (count / chance.sum())
    while np.any(chance > 1 + 1e-9):
        sure = chance >= 1
        chance[sure] = 1.0
        left = count - np.count_nonzero(sure)
        chance[~sure] *= left / chance[~sure].sum()
    return np.minimum(chance, 1.0)
