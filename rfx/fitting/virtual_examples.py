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


def check(method: Declared) -> None:
    """Raise UsageError for copies and views without a transformation."""
    for option in ("virtual_copies", "views"):
        if method.get(option) is not None and method.virtual == "none":
            given = f"--{option.replace('_', '-')} is {method.get(option)}"
            raise UsageError(f"{given}, which has no effect without --virtual; add it")


def endless(method: Declared) -> bool:
    """Whether the options request endless virtual examples."""
    return method.virtual != "none" and method.virtual_copies is None


def fixed(
    kind: str, X: Any, y: np.ndarray, seed: int, copies: int
) -> tuple[np.ndarray, np.ndarray]:
    """The first `copies` virtual examples of each of the rows X (n, d): (copies n, d)
    float32 and their targets.
    """
    stream = source(kind, X, y, seed)
    rows = np.empty((copies * len(y), X.shape[1]), np.float32)
    targets: list[np.ndarray] = []
    for start in range(0, len(rows), ROWS):
        part = stream.read(min(ROWS, len(rows) - start))
        assert part is not None, "the examples are endless"
        made, own = part[:2]
        rows[start : start + len(made)] = made
        targets.append(own)
    return rows, np.concatenate(targets)


def source(kind: str, X: Any, y: np.ndarray, seed: int) -> GeneratedSource:
    """Example i is determined by (seed, i) and row i mod n of the rows X (n, d), array or CSR, in a
    random order; its target is that row's."""
    order = shuffled(len(y), seed, 0)
    change = _change(kind, X, order, seed)

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
    change = _change(method.virtual, X, np.arange(X.shape[0]), method.seed)
    for number in range(method.views):
        yield change(number)


def mean_over_views(method: Declared, X: Any, function: Callable[[Any], Any]) -> Any:
    """The mean of function(rows) over the views of the rows X (n, d)."""
    return sum(map(function, views(method, X))) / (method.views or 1)


def _change(kind: str, X: Any, order: np.ndarray, seed: int) -> Change:
    """index -> the virtual examples of the rows X[order] with these numbers; for one number, that
    transformation of all of them.
    """
    if kind == "digits":
        images, n_inputs = _images(X, order), X.shape[1]

        def change(index: np.ndarray | int) -> np.ndarray:
            made = virtual.deform(images, index, seed)
            return made.reshape(len(made), -1)[:, :n_inputs]

    elif kind == "images":
        planes, side = _planes(X, order)

        def change(index: np.ndarray | int) -> np.ndarray:
            made = virtual.crops_and_flips(planes, index, seed, side)
            return made.transpose(0, 3, 1, 2).reshape(len(made), -1)

    else:
        matrices = virtual.from_triangles(
            (X.toarray() if sp.issparse(X) else np.asarray(X, np.float64))[order]
        )
        noise = 1.0 if kind == "molecules-sorted" else None

        def change(index: np.ndarray | int) -> np.ndarray:
            return virtual.triangles(virtual.permute(matrices, index, seed, noise))

    return change


def _images(X: Any, order: np.ndarray) -> np.ndarray:
    """(n, side, side) square images of rows that may lack their last pixels, in bytes if that is
    exact.
    """
    side = int(np.ceil(np.sqrt(X.shape[1])))
    images = np.zeros((X.shape[0], side * side), np.uint8 if _is_bytes(X) else np.float32)
    for start in range(0, len(images), ROWS):
        part = X[order[start : start + ROWS]]
        images[start : start + ROWS, : X.shape[1]] = part.toarray() if sp.issparse(part) else part
    return images.reshape(-1, side, side)


def _planes(X: Any, order: np.ndarray) -> tuple[np.ndarray, int]:
    """Images (n, side + 2 border, side + 2 border, planes) of rows with one plane or three, with a
    border of zeros; and their side.
    """
    planes = next(
        (count for count in (1, 3) if X.shape[1] == count * math.isqrt(X.shape[1] // count) ** 2),
        None,
    )
    if planes is None:
        raise UsageError(
            f"--virtual is images, but rows of {X.shape[1]} numbers are not square images of one"
            " plane or three"
        )
    side = math.isqrt(X.shape[1] // planes)
    border = max(1, side // 8)
    out = np.zeros(
        (X.shape[0], side + 2 * border, side + 2 * border, planes),
        np.uint8 if _is_bytes(X) else np.float32,
    )
    inside = slice(border, border + side)
    for start in range(0, len(out), ROWS):
        part = X[order[start : start + ROWS]]
        part = part.toarray() if sp.issparse(part) else np.asarray(part)
        out[start : start + ROWS, inside, inside] = part.reshape(-1, planes, side, side).transpose(
            0, 2, 3, 1
        )
    return out, side


def _is_bytes(X: Any) -> bool:
    """Whether all numbers are integers from 0 to 255."""
    values = X.data if sp.issparse(X) else X
    return bool(np.all((values >= 0) & (values <= 255)) and np.array_equal(values, np.rint(values)))
