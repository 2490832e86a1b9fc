"""Ridge regression for many lambdas by the normal equations, (Z'Z + lam) W = Z'Y: one Gram matrix
in float64, one factor for each lambda.

For models that only evaluate a lambda: without certificate and refinement.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from rfx import parallel
from rfx.operators import cholesky
from rfx.operators.accelerated import DeviceFactor, DeviceMatrix
from rfx.operators.matrix import Matrix

# Maximum columns for which the Gram matrix and its factors are cheap.
MOST = 4096


def ridge_path(
    Z: Matrix | DeviceMatrix, Y: np.ndarray, lams: Sequence[float]
) -> Iterator[np.ndarray]:
    """Yields, for each of lams, the minimiser (D, k) of lam/2 ||W||^2 + 1/2 ||Z W - Y||^2.

    Z: the (N, D) features, D at most MOST. Y: (N, k) targets. A lam below the rounding of the Gram
    matrix is increased to that.
    """
    if isinstance(Z, DeviceMatrix):
        factor, sums = DeviceFactor(Z), Z.rmatvec(Y)
        yield from (factor.prepare(lam)(sums) for lam in lams)
        return
    gram, right = np.zeros((Z.shape[1], Z.shape[1])), np.zeros((Z.shape[1], Y.shape[1]))
    for rows, part in Z.row_blocks():
        wide = part.astype(np.float64)
        parallel.add_gram(wide, gram)
        right += wide.T @ Y[rows]
    diagonal = gram.diagonal().copy()
    floor = np.finfo(np.float64).eps * len(gram) * max(float(diagonal.max(initial=0.0)), 1e-300)
    for lam in lams:
        if not len(gram):  # scipy 1.13 fails for an empty matrix
            yield right.copy()
            continue
        np.fill_diagonal(gram, diagonal + max(lam, floor))
        # the upper triangle is the lower one of the transpose, a copy of which is in Fortran order
        yield cholesky.solve(cholesky.positive(gram.copy().T), right)
