"""Compiled comparisons of many pairs of rows: distances, from differences or inner products, and
functions of each input.
"""

from __future__ import annotations

import numpy as np

from rfx.compiled import njit

# The functions of each input of `compare_inputs`: factors up to SECH, terms from there on.
HAT, RATIONAL, ERLANG, SECH, CHI2, DIFFERING = range(6)
# Larger distances, in units of 1/gamma, are treated as this: avoids infinity times zero.
FAR = 500.0
_TILE = 512


@njit(cache=True, nogil=True)
def compare_inputs(
    rows: np.ndarray, columns: np.ndarray, place: int, out: np.ndarray, how: int, far: float
) -> None:
    """out (n, m) <- the product or sum over the inputs of a function of a and b, the inputs of rows
    (n, d) and columns (d, ...) from number `place` on; by tiles of columns that stay in cache.

    far: FAR in the arrays' type, because Python's numbers would make the loops float64.
    """
    zero, one = far - far, far / far
    half = one / (one + one)
    for begin in range(0, out.shape[1], _TILE):
        end = min(begin + _TILE, out.shape[1])
        for i in range(out.shape[0]):
            values = out[i, begin:end]
            values[:] = one if how <= SECH else zero
            for k in range(rows.shape[1]):
                a, A = rows[i, k], columns[k, place + begin : place + end]
                twice, square = a + a, a * a
                if how == HAT:
                    for j in range(end - begin):
                        values[j] *= max(zero, one - abs(a - A[j]))
                elif how == RATIONAL:
                    for j in range(end - begin):
                        values[j] /= one + abs(a - A[j])
                elif how == ERLANG:
                    for j in range(end - begin):
                        t = min(far, abs(a - A[j]))
                        values[j] *= (one + half * t) * np.exp(-t)
                elif how == SECH:
                    for j in range(end - begin):
                        values[j] *= twice * A[j] / (square + A[j] * A[j])
                elif how == DIFFERING:
                    for j in range(end - begin):
                        if A[j] != a:
                            values[j] += one
                elif square > 0:
                    for j in range(end - begin):
                        b = A[j] * A[j]
                        values[j] += (square + square) * (b / (square + b))


@njit(cache=True, nogil=True)
def sum_differences(
    rows: np.ndarray, columns: np.ndarray, place: int, out: np.ndarray, squared: bool, tile: int
) -> None:
    """out[i, j] = sum_k (rows[i, k] - columns[k, place + j])^2, or of absolute differences; by
    tiles of columns in cache.

    Two rows are processed together, so that columns are read once for both; for an odd number, the
    last is paired with itself.
    """
    n_rows, n_inputs = rows.shape
    whole = n_inputs - n_inputs % 4
    for begin in range(0, out.shape[1], tile):
        end = min(begin + tile, out.shape[1])
        left, right = place + begin, place + end
        for i in range(0, n_rows, 2):
            m = min(i + 1, n_rows - 1)
            first, second = out[i, begin:end], out[m, begin:end]
            first[:] = 0
            second[:] = 0
            for k in range(0, whole, 4):
                a, b, c, d = rows[i, k], rows[i, k + 1], rows[i, k + 2], rows[i, k + 3]
                e, f, g, h = rows[m, k], rows[m, k + 1], rows[m, k + 2], rows[m, k + 3]
                A, B = columns[k, left:right], columns[k + 1, left:right]
                C, D = columns[k + 2, left:right], columns[k + 3, left:right]
                if squared:
                    for j in range(end - begin):
                        p, q, r, s = a - A[j], b - B[j], c - C[j], d - D[j]
                        one = first[j] + ((p * p + q * q) + (r * r + s * s))
                        p, q, r, s = e - A[j], f - B[j], g - C[j], h - D[j]
                        two = second[j] + ((p * p + q * q) + (r * r + s * s))
                        first[j] = one
                        second[j] = two
                else:
                    for j in range(end - begin):
                        one = first[j] + (
                            (abs(a - A[j]) + abs(b - B[j])) + (abs(c - C[j]) + abs(d - D[j]))
                        )
                        two = second[j] + (
                            (abs(e - A[j]) + abs(f - B[j])) + (abs(g - C[j]) + abs(h - D[j]))
                        )
                        first[j] = one
                        second[j] = two
            for k in range(whole, n_inputs):
                a, e, A = rows[i, k], rows[m, k], columns[k, left:right]
                for j in range(end - begin):
                    p, q = a - A[j], e - A[j]
                    one = first[j] + (p * p if squared else abs(p))
                    two = second[j] + (q * q if squared else abs(q))
                    first[j] = one
                    second[j] = two


@njit(cache=True, nogil=True)
def squared_from_dot(
    dots: np.ndarray, row_norms: np.ndarray, column_norms: np.ndarray, numbers: np.ndarray
) -> None:
    """Dot products to squared distances, ||x||^2 + ||y||^2 - 2 x.y; zero if only rounding errors
    remain.

    numbers: 0, 2 and the rounding of a squared distance of 1, in the type of all others, because
    Python's would make the loop float64.
    """
    zero, two, tolerance = numbers
    for i in range(dots.shape[0]):
        row = dots[i]
        norm = row_norms[i]
        for j in range(row.shape[0]):
            both = norm + column_norms[j]
            distance = both - two * row[j]
            row[j] = distance if distance > tolerance * both else zero


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract", "nsz"})
def mend_close(
    squared: np.ndarray,
    row_norms: np.ndarray,
    column_norms: np.ndarray,
    rows: np.ndarray,
    others: np.ndarray,
    close: np.ndarray,
) -> None:
    """Squared distances of rows (n, d) and others (m, d) recomputed from differences, if they are
    less than close[0] of the norms' sum.
    """
    for i in range(squared.shape[0]):
        found, norm = squared[i], row_norms[i]
        count = 0
        for j in range(len(found)):
            count += found[j] < close[0] * (norm + column_norms[j])
        if count == 0:
            continue
        for j in range(len(found)):
            if found[j] < close[0] * (norm + column_norms[j]):
                total = close[0] - close[0]
                for k in range(rows.shape[1]):
                    difference = rows[i, k] - others[j, k]
                    total += difference * difference
                found[j] = total
