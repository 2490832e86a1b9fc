"""Rows whose inputs are equal to those of others: left out together, a row is not predicted by its
copies.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from rfx.data.tabular.apart import REPEATS, Apart

# With more rows on average for each distinct row, the inputs can only take few values, as those of
# a survey with three questions: new rows repeat them, too, and rows are left out one by one.
MOST_COPIES = 10
# Rows multiplied at a time, which stay in cache.
_ROWS = 1024


def constraint(X: Any) -> Apart | None:
    """What keeps equal rows of X (n, d) together; None without any, if new rows will repeat
    them, or for rows on workers.
    """
    here = isinstance(X, np.ndarray) or sp.issparse(X)
    return _unless_few(first_equal(X)) if here else None


def of_sums(sums: np.ndarray) -> Apart | None:
    """`constraint` of rows on workers, from their `random_sums` (n,)."""
    _, first, place = np.unique(sums, return_index=True, return_inverse=True)
    return _unless_few(first[place])


def _unless_few(first: np.ndarray) -> Apart | None:
    """What keeps rows together by the number (n,) of the first that is equal to each."""
    distinct = int(np.count_nonzero(first == np.arange(len(first))))
    if distinct == len(first) or len(first) > MOST_COPIES * distinct:
        return None
    return Apart(REPEATS, first)


def words(apart: Apart) -> str:
    """The message about so many repeated rows."""
    count = len(apart) - apart.count
    if count == 1:
        return "1 row repeats the inputs of another; equal rows are left out together"
    return f"{count:,} rows repeat the inputs of others; equal rows are left out together"


def first_equal(X: Any) -> np.ndarray:
    """(n,) the number of the first row that is equal to each row of X (n, d)."""
    numbers = np.arange(X.shape[0])
    sums = random_sums(X)
    order = np.argsort(sums, kind="stable")
    same = sums[order[1:]] == sums[order[:-1]]
    before, after = order[:-1][same], order[1:][same]
    same[same] = _equal(X, before, after)
    start = np.maximum.accumulate(np.where(np.append(False, same), 0, numbers))
    first = numbers.copy()
    first[order] = order[start]
    return first


def random_sums(X: Any) -> np.ndarray:
    """(n,) sums of the inputs times random factors, the same for equal rows, and most likely for no
    others. They are added in the same order in each row, unlike in a product by BLAS.
    """
    factors = np.random.default_rng(0).normal(size=X.shape[1])
    if sp.issparse(X):
        return np.asarray(X @ factors)
    starts = range(0, len(X), _ROWS)
    return np.concatenate(
        [(X[k : k + _ROWS] * factors).sum(axis=1) for k in starts] or [factors[:0]]
    )


def _equal(X: Any, rows: np.ndarray, others: np.ndarray) -> np.ndarray:
    """(m,) whether rows with these numbers are equal, pair by pair."""
    if not sp.issparse(X):
        return np.asarray((X[rows] == X[others]).all(axis=1))
    return np.asarray(np.diff((X[rows] != X[others]).tocsr().indptr) == 0)
