"""Compiled distances between many pairs of rows, from differences or inner products."""

from __future__ import annotations

import numpy as np

from rfx.compiled import njit


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
