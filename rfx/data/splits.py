"""Seeded choices of rows: the papers' re-splits and subsets, the same on every machine."""

import numpy as np

from rfx.errors import UsageError

FRACTION = 0.8  # default fraction of the rows for training


def generator(*key: int) -> np.random.Generator:
    """The random generator of a tuple of integers (counter-based, the same everywhere)."""
    bits = np.random.Philox(np.random.SeedSequence(key))
    return np.random.Generator(bits)


def shuffled(n: int, *key: int) -> np.ndarray:
    """A random order of range(n), determined by a tuple of integers; from the raw words of the
    generator, so that numpy releases can't change it.
    """
    words = generator(*key).bit_generator.random_raw(n)
    return np.argsort(words, kind="stable")


def draw(n: int, size: int | None, *key: int) -> np.ndarray:
    """`size` of n row numbers without replacement, ascending (all of them for None). UsageError if
    n is too small.
    """
    if size is None or size == n:
        return np.arange(n)
    if not 0 < size <= n:
        raise UsageError(f"can't draw {size:,} rows from {n:,}")
    return np.sort(shuffled(n, *key)[:size])


def cut_share(n: int, share: float, *key: int) -> tuple[np.ndarray, np.ndarray]:
    """Training rows, this fraction of n, and the rest as test rows, each ascending. UsageError if
    one of them is empty.
    """
    return cut(n, int(round(share * n)), None, *key)


def cut(
    n: int, n_train: int | None, n_test: int | None, *key: int
) -> tuple[np.ndarray, np.ndarray]:
    """Disjoint training and test rows of n, drawn without replacement, each ascending.

    One size may be None: the rest. If both are None, the split is 80/20. UsageError if n is too
    small, or one of them is empty.
    """
    if n_train is None:
        n_train = int(round(FRACTION * n)) if n_test is None else n - n_test
    n_test = n - n_train if n_test is None else n_test
    if n_train < 1 or n_test < 1 or n_train + n_test > n:
        raise UsageError(
            f"{n:,} rows can't be split into {n_train:,} for training and {n_test:,} for testing"
        )
    order = shuffled(n, *key)
    train, test = order[:n_train], order[n_train : n_train + n_test]
    return np.sort(train), np.sort(test)


def relabelled(rows: tuple, labels: dict[float, float] | None) -> tuple:
    """Rows (X, y) with the values of the labels y (n,), without rows with other labels; unchanged
    if there are no labels.
    """
    if not labels:
        return rows
    X, y = rows
    kept = np.flatnonzero(np.isin(y, list(labels)))
    values = [labels[label] for label in y[kept].tolist()]
    return X[kept], np.array(values)
