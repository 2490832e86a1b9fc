"""Virtual examples as an endless source of rows, generated from training rows in memory."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp

from rfx.data.stream import GeneratedSource, shuffled
from rfx.data.transforms import virtual
from rfx.errors import UsageError
from rfx.options import Declared

# Rows that are dense at a time.
ROWS = 8192
# Maps example numbers, or the number of one transformation of all rows, to the transformed rows.
Change: TypeAlias = Callable[[np.ndarray | int], np.ndarray]


def fixed(
    kind: str, X: Any, y: np.ndarray, seed: int, copies: int
) -> tuple[np.ndarray, np.ndarray]:
    """The first `copies` virtual examples of each of the rows X (n, d): (copies n, d)
    float32 and their targets.
    """
    make, count = source(kind, X, y, seed).make, copies * len(y)
    rows, targets = np.empty((count, X.shape[1]), np.float32), np.empty((count, *y.shape[1:]))
    for start in range(0, count, ROWS):
        stop = min(count, start + ROWS)
        rows[start:stop], targets[start:stop] = make(start, stop)
    return rows, targets


def source(kind: str, X: Any, y: np.ndarray, seed: int) -> GeneratedSource:
    """Example i is determined by (seed, i) and row i mod n of the rows X (n, d), array or CSR, in a
    random order; its target is that row's."""
    order = shuffled(len(y), seed, 0)
    change = _change(kind, X[order], seed)

    def make(start: int, stop: int) -> tuple[np.ndarray, np.ndarray]:
        index = np.arange(start, stop)
        return change(index), y[order[index % len(y)]]

    return GeneratedSource(make, X.shape[1])


def views(method: Declared, X: Any) -> Iterator[Any]:
    """The rows X (n, d) over which f is averaged: unchanged, or their virtual examples 0, 1, … in
    turn.
    """
    if method.views is None:
        yield X
        return
    change = _change(method.virtual, X, method.seed)
    for number in range(method.views):
        yield change(number)


def _change(kind: str, X: Any, seed: int) -> Change:
    """index -> the virtual examples of the rows X with these numbers; for one number, that
    transformation of all of them.
    """
    n_inputs = X.shape[1]
    if kind.startswith("molecules"):
        matrices = virtual.from_triangles(_dense(X, np.float64))
        noise = 1.0 if kind == "molecules-sorted" else None
        return lambda index: virtual.triangles(virtual.permute(matrices, index, seed, noise))
    if kind == "digits":
        side = math.ceil(math.sqrt(n_inputs))
        # the last pixels may be missing
        images = np.zeros((X.shape[0], side * side), np.float32)
        images[:, :n_inputs] = _dense(X, np.float32)
        images = images.reshape(-1, side, side)

        def deformed(index: np.ndarray | int) -> np.ndarray:
            examples = virtual.deform(images, index, seed)
            return examples.reshape(len(examples), -1)[:, :n_inputs]

        return deformed
    planes = next((n for n in (1, 3) if n_inputs == n * math.isqrt(n_inputs // n) ** 2), None)
    if planes is None:
        raise UsageError(
            f"--virtual is images, but rows of {n_inputs} numbers are not square images of one"
            " plane or three"
        )
    side = math.isqrt(n_inputs // planes)
    border = max(1, side // 8)
    framed = np.pad(
        _dense(X, np.float32).reshape(-1, planes, side, side).transpose(0, 2, 3, 1),
        ((0, 0), (border, border), (border, border), (0, 0)),
    )

    def cropped(index: np.ndarray | int) -> np.ndarray:
        examples = virtual.crops_and_flips(framed, index, seed, side)
        return examples.transpose(0, 3, 1, 2).reshape(len(examples), -1)

    return cropped


def _dense(X: Any, dtype: Any) -> np.ndarray:
    return np.asarray(X.toarray() if sp.issparse(X) else X, dtype)
