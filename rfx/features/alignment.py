"""The alignment of each feature of a pool with the targets: the scores for learning a kernel.

s_m = (sum_i y_i phi_m(x_i))^2 is the alignment with the targets, sum_ij K(x_i, x_j) y_i y_j, of the
kernel with only feature m; that of a mixture q of features is q.s (Sinha and Duchi 2016, equations
5 and 8).
"""

import numpy as np

from rfx.data.rows import Rows
from rfx.data.transforms.scaling import as_floats
from rfx.operators.mapped import MapMatrix

_FEATURES, _VALUES = 8192, 2**21


def scores(pool, X, Y, centred: bool = False) -> np.ndarray:
    """(M,) float64 scores of the M features of the map `pool`, over the rows X (n, d), array or
    CSR; summed over outputs.

    Y: (n, k) targets, labels -1 and 1 for classes, one column for each class against the rest.
    centred: minus their means, required for targets far from zero. Features are computed a few
    megabytes at a time.
    """
    Y = as_floats(Y)
    U = Y - Y.mean(axis=0) if centred else Y
    sums = X.total(_sums, pool, U) if isinstance(X, Rows) else _sums(pool, X, U)
    return np.square(sums).sum(axis=1)


def _sums(pool, X, U):
    """(M, k) sums over the rows of u_i phi(x_i)."""
    quick = pool.quick_adjoint(X, U)
    if quick is not None:
        return quick
    sums = np.empty((pool.n_features, U.shape[1]))
    for start in range(0, pool.n_features, _FEATURES):
        part = (
            pool if pool.n_features <= _FEATURES else pool.select(slice(start, start + _FEATURES))
        )
        matrix = MapMatrix(part, X, block=max(64, _VALUES // part.n_features))
        # one output is summed as it is read; several use a product
        found = matrix.rmatvec(U[:, 0])[:, None] if U.shape[1] == 1 else matrix.rmatvec(U)
        sums[start : start + part.n_features] = found
    return sums
