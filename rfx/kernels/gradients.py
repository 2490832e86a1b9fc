"""Gradients of kernel expansions f(x) = sum_j coef_j k(x, x_j) with respect to x, in closed form.

A kernel of the distance s of scaled rows z has grad f(z) = sum_j coef_j k'(s_j) / s_j (z - z_j),
where `Kernel.slope` gives -k'(s) / s. The kernel of a 1-norm has the derivative -sum_j coef_j k(x,
x_j) sign(z_k - z_jk) in each input k. At distance 0 the kernel may have no derivative: a row
contributes nothing to the gradient at itself.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator

import numpy as np

from rfx import device
from rfx.compiled import njit
from rfx.kernels.blocks import Prepared, block, prepare
from rfx.parallel import for_ranges, matmul
from rfx.types import Inputs, KernelParams

# Values of kernel blocks at a time.
_VALUES = 1 << 22


def gradients(
    name: str, X: np.ndarray, coef: np.ndarray, params: KernelParams, rows: np.ndarray
) -> Iterator[np.ndarray]:
    """Blocks (m, d) of gradients at some of the rows, by blocks of rows and by outputs, in the type
    of the rows.

    Parameters
    ----------
    name : str
        A kernel whose derivative is implemented.
    X : array, (n, d)
        Scaled rows, as the kernel expects.
    coef : array, (n, k)
    params : dict
        The kernel's parameters.
    rows : array of int
        The numbers of the rows at which to compute the gradients.
    """
    prepared, unit = _prepared(name, X, params)
    coef = np.asarray(coef, prepared.dtype)
    height = max(1, _VALUES // max(1, X.shape[0]))
    of_block = _of_signs if prepared.kernel.metric == "l1" else _of_distances
    for start in range(0, len(rows), height):
        for found in of_block(name, prepared, coef, params, rows[start : start + height]):
            found *= unit
            yield found


def _prepared(name: str, X: np.ndarray, params: KernelParams) -> tuple[Prepared, float]:
    """The scaled rows, and the factor of the scaling."""
    prepared = prepare(name, X, params)
    unit = np.ones((1, 1))
    prepared.kernel.scale(unit, params)
    return prepared, float(unit[0, 0])


def _of_distances(
    name: str, X: Prepared, coef: np.ndarray, params: KernelParams, rows: np.ndarray
) -> Iterator[np.ndarray]:
    at = X.take(rows)
    at.kernel = copy.copy(X.kernel)
    at.kernel.finish = lambda tile, *_: np.copyto(  # type: ignore[method-assign]
        tile, X.kernel.slope(np, tile)
    )
    slopes = block(name, at, X, params)
    totals = matmul(slopes, coef)
    Z = X.sparse_rows() if X.sparse else X.dense()
    for k in range(coef.shape[1]):
        if X.sparse:
            found = (Z.T @ (slopes * coef[:, k]).T).T
        else:
            found = matmul(slopes, coef[:, k : k + 1] * Z)
        found -= totals[:, k : k + 1] * at.dense()
        yield found


def _of_signs(
    name: str, X: Prepared, coef: np.ndarray, params: KernelParams, rows: np.ndarray
) -> Iterator[np.ndarray]:
    some = X.take(rows)
    values = block(name, some, X, params)
    at = np.ascontiguousarray(some.dense())
    Z: Inputs = X.sparse_rows() if X.sparse else X.dense()
    for k in range(coef.shape[1]):
        found = np.zeros(at.shape)
        weighted = values * coef[:, k]

        def part(start: int, end: int) -> None:
            if X.sparse:
                parts = (Z.indptr, Z.indices, Z.data)
                _signed_common_sums(at[start:end], *parts, weighted[start:end], found[start:end])
            else:
                _signed_sums(at[start:end], Z, weighted[start:end], found[start:end])

        for_ranges(part, len(at), 64, work=values.size * at.shape[1])
        yield found


@njit(cache=True, nogil=True)
def _signed_sums(at: np.ndarray, Z: np.ndarray, values: np.ndarray, out: np.ndarray) -> None:
    """out[i, k] = -sum_j values[i, j] sign(at[i, k] - Z[j, k])."""
    for i in range(at.shape[0]):
        for j in range(Z.shape[0]):
            value = values[i, j]
            for k in range(at.shape[1]):
                difference = at[i, k] - Z[j, k]
                out[i, k] -= value * ((difference > 0) * 1.0 - (difference < 0) * 1.0)


@njit(cache=True, nogil=True)
def _signed_common_sums(
    at: np.ndarray,
    starts: np.ndarray,
    places: np.ndarray,
    entries: np.ndarray,
    values: np.ndarray,
    out: np.ndarray,
) -> None:
    """`_signed_sums` for rows Z in CSR."""
    for i in range(at.shape[0]):
        out[i] = -values[i].sum() * np.sign(at[i])
        for j in range(len(starts) - 1):
            for p in range(starts[j], starts[j + 1]):
                k = places[p]
                out[i, k] -= values[i, j] * (np.sign(at[i, k] - entries[p]) - np.sign(at[i, k]))


def outer_product(
    name: str,
    X: np.ndarray,
    coef: np.ndarray,
    params: KernelParams,
    rows: np.ndarray,
    full: bool,
    weights: np.ndarray | None = None,
) -> np.ndarray:
    """The average outer product of the gradients, summed over the outputs.

    Parameters
    ----------
    name, X, coef, params, rows
        See `gradients`.
    full : bool
        Whether to compute the whole matrix or its diagonal.
    weights : array, (len(rows),), or None
        Of the average.

    Returns
    -------
    array, (d, d) or (d,)

    References
    ----------
    Radhakrishnan, Beaglehole, Pandit and Belkin (2024), Mechanism for feature learning in neural
    networks and backpropagation-free machine learning models, Science 383, equation 3.
    """
    d = X.shape[1]
    found = np.zeros((d, d) if full else d)
    own = np.ones(len(rows)) if weights is None else weights
    if device.current() is not None:
        prepared, unit = _prepared(name, X, params)
        if (placed := prepared.on_device()) is not None:
            total = placed.outer_product(prepared.kernel.slope, coef, rows, own, full)
            return total * (unit**2 / own.sum())
    place = 0
    outputs = coef.shape[1]
    for number, block_of_rows in enumerate(gradients(name, X, coef, params, rows)):
        part = own[place : place + len(block_of_rows)]
        if full:
            found += matmul((block_of_rows * part[:, None]).T, block_of_rows)
        else:
            found += part @ np.square(block_of_rows)
        if number % outputs == outputs - 1:
            place += len(block_of_rows)
    return found / own.sum()
