"""Rows whose inputs are equal to those of others: left out together, a row is not predicted by its
copies.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from rfx.data.tabular.group_splits import REPEATS, SplitConstraint
from rfx.types import Inputs

# With more rows on average for each distinct row, the inputs can only take few values, as those of
# a survey with three questions: new rows repeat them, too, and rows are left out one by one.
MOST_COPIES = 10
# Rows multiplied at a time, which stay in cache.
_ROWS = 1024


def find_constraint(X: Inputs) -> SplitConstraint | None:
    """What keeps equal rows of X (n, d) together; None without any, if new rows will repeat
    them, or for rows on workers.
    """
    here = isinstance(X, np.ndarray) or sp.issparse(X)
    return _unless_few(first_equal(X)) if here else None


def of_sums(sums: np.ndarray) -> SplitConstraint | None:
    """`find_constraint` of rows on workers, from their `random_sums` (n,)."""
    _, first, place = np.unique(sums, return_index=True, return_inverse=True)
    return _unless_few(first[place])


def _unless_few(first: np.ndarray) -> SplitConstraint | None:
    """What keeps rows together by the number (n,) of the first that is equal to each."""
    distinct = int(np.count_nonzero(first == np.arange(len(first))))
    if distinct == len(first) or len(first) > MOST_COPIES * distinct:
        return None
    return SplitConstraint(REPEATS, first)


def words(constraint: SplitConstraint) -> str:
    """The message about so many repeated rows."""
    count = len(constraint) - constraint.count
    if count == 1:
        return "1 row repeats the inputs of another; equal rows are left out together"
    return f"{count:,} rows repeat the inputs of others; equal rows are left out together"


def first_equal(X: Inputs) -> np.ndarray:
    """(n,) the number of the first row that is equal to each row of X (n, d)."""
    numbers = np.arange(X.shape[0])
    sums = random_sums(X)
    order = np.argsort(sums, kind="stable")
    same = sums[order[1:]] == sums[order[:-1]]
    before, after = order[:-1][same], order[1:][same]
    same[same] = _equal(X, before, after)
    is_copy = np.append(False, same)
    start = np.maximum.accumulate(np.where(is_copy, 0, numbers))
    first = numbers.copy()
    first[order] = order[start]
    return first


def random_sums(X: Inputs) -> np.ndarray:
    """(n,) sums of the inputs times random factors, the same for equal rows, and most likely for no
    others. They are added in the same order in each row, unlike in a product by BLAS.
    """
    if sp.issparse(X):
        X = X.tocsr()
        rows = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
        products = X.data * _factors(X.indices)
        return np.bincount(rows, products, minlength=X.shape[0])
    factors = _factors(np.arange(X.shape[1]))
    sums = [factors[:0]]
    for start in range(0, len(X), _ROWS):
        products = X[start : start + _ROWS] * factors
        sums.append(products.sum(axis=1))
    return np.concatenate(sums)


def _factors(columns: np.ndarray) -> np.ndarray:
    """(k,) a random factor of each column, between 1 and 2, by its number alone (splitmix64): a
    sparse row may have two billion columns.
    """
    bits = columns.astype(np.uint64) + np.uint64(1)
    bits *= np.uint64(0x9E3779B97F4A7C15)
    bits ^= bits >> np.uint64(30)
    bits *= np.uint64(0xBF58476D1CE4E5B9)
    bits ^= bits >> np.uint64(27)
    bits *= np.uint64(0x94D049BB133111EB)
    bits ^= bits >> np.uint64(31)
    return 1.0 + bits / 2.0**64


def _equal(X: Inputs, rows: np.ndarray, others: np.ndarray) -> np.ndarray:
    """(m,) whether rows with these numbers are equal, pair by pair."""
    if not sp.issparse(X):
        return np.asarray((X[rows] == X[others]).all(axis=1))
    different = (X[rows] != X[others]).tocsr()
    return np.asarray(np.diff(different.indptr) == 0)
