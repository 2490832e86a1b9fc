"""Random features sampled by ridge leverage from a larger pool, as accurate as several times as
many plain ones.

The ridge leverage of feature j of M at lambda is z_j' (Z Z' + lambda)^-1 z_j, for the (n, M)
features Z: its importance for what the kernel machine can fit. Sampling proportionally, with
weights that preserve the mean product, is optimal (Bach 2017, JMLR 18, section 4; Li, Ton, Oglic
and Sejdinovic 2021, JMLR 22, algorithm 1). Labels are not used.
"""

import numpy as np

from rfx import parallel
from rfx.operators.factors import row_gram
from rfx.operators.mapped import MapMatrix
from rfx.operators.triangular import solve_rows

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
    n_rows, rng = X.shape[0], np.random.default_rng(seed)
    rows = np.sort(rng.permutation(n_rows)[:ROWS])
    chance = inclusion(scores(pool, X[rows], lam * len(rows) / n_rows), count)
    # systematic sampling: one feature for each unit of the cumulative probabilities
    ends = np.cumsum(chance)
    chosen = np.searchsorted(
        ends * (count / ends[-1]), rng.random() + np.arange(count), side="right"
    )
    chosen = np.minimum(chosen, pool.n_features - 1)
    return pool.weighted(chosen, np.sqrt(count / (pool.n_features * chance[chosen])))


def scores(pool, X, lam: float) -> np.ndarray:
    """(M,) ridge leverages of the features of the map `pool` over the rows X (n, d), in (0, 1)."""
    Z = MapMatrix(pool, X, pool.n_features**-0.5)
    gram = row_gram(Z)
    factor = gram.factor(lam).matrix
    out = np.empty(pool.n_features)

    def share(first, last, columns, own):
        for k in range(first, last):
            part = slice(own.shape[1] * k // _PARTS, own.shape[1] * (k + 1) // _PARTS)
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
        chance[~sure] *= (count - np.count_nonzero(sure)) / chance[~sure].sum()
    return np.minimum(chance, 1.0)
