"""Virtual examples as a source of rows without end, made of training rows that are in memory."""

import math

import numpy as np
import scipy.sparse as sp

from rfx.data import virtual
from rfx.data.stream import GeneratedSource, shuffled
from rfx.errors import UsageError
from rfx.options import Option

# Rows that become dense at a time.
ROWS = 8192
VIRTUAL = Option(
    "virtual",
    str,
    "Train on changed copies of the rows, without end.",
    {
        "none": "",
        "digits": "square images are turned, scaled, shifted and bent",
        "images": "square images, of one colour or of three planes, are shifted by up to an eighth of their side and mirrored",
        "molecules": "the atoms of Coulomb matrices (upper triangles) are put in any order",
        "molecules-sorted": "in the order of row norms with noise",
    },
    default="none",
)


def source(kind: str, X, y, seed: int) -> GeneratedSource:
    """Example i comes from (seed, i) and from row i mod n of the rows X (n, d), array or CSR, in a random order; its target is that
    row's."""
    order = shuffled(len(y), seed, 0)
    if kind == "digits":
        images, n_inputs = _images(X, order), X.shape[1]

        def rows(index):
            return virtual.deform(images, index, seed).reshape(len(index), -1)[:, :n_inputs]

    elif kind == "images":
        planes, side = _planes(X, order)

        def rows(index):
            return virtual.crops_and_flips(planes, index, seed, side).transpose(0, 3, 1, 2).reshape(len(index), -1)

    else:
        matrices = virtual.from_triangles((X.toarray() if sp.issparse(X) else np.asarray(X, np.float64))[order])
        noise = 1.0 if kind == "molecules-sorted" else None

        def rows(index):
            return virtual.triangles(virtual.permute(matrices, index, seed, noise))

    def make(start, stop):
        index = np.arange(start, stop)
        return rows(index), y[order[index % len(y)]]

    return GeneratedSource(make, X.shape[1])


def _images(X, order):
    """(n, side, side) square images of rows that may lack their last pixels, in bytes where that loses nothing."""
    side = int(np.ceil(np.sqrt(X.shape[1])))
    images = np.zeros((X.shape[0], side * side), np.uint8 if _is_bytes(X) else np.float32)
    for start in range(0, len(images), ROWS):
        part = X[order[start : start + ROWS]]
        images[start : start + ROWS, : X.shape[1]] = part.toarray() if sp.issparse(part) else part
    return images.reshape(-1, side, side)


def _planes(X, order):
    """Images (n, side + 2 border, side + 2 border, planes) of rows of one plane or three, with a border of zeros; and their side."""
    planes = next((count for count in (1, 3) if X.shape[1] == count * math.isqrt(X.shape[1] // count) ** 2), None)
    if planes is None:
        raise UsageError(f"--virtual is images, but rows of {X.shape[1]} numbers are not square images of one plane or three")
    side = math.isqrt(X.shape[1] // planes)
    border = max(1, side // 8)
    out = np.zeros((X.shape[0], side + 2 * border, side + 2 * border, planes), np.uint8 if _is_bytes(X) else np.float32)
    inside = slice(border, border + side)
    for start in range(0, len(out), ROWS):
        part = X[order[start : start + ROWS]]
        part = part.toarray() if sp.issparse(part) else np.asarray(part)
        out[start : start + ROWS, inside, inside] = part.reshape(-1, planes, side, side).transpose(0, 2, 3, 1)
    return out, side


def _is_bytes(X) -> bool:
    """Whether all numbers are whole and from 0 to 255."""
    values = X.data if sp.issparse(X) else X
    return bool(np.all((values >= 0) & (values <= 255)) and np.array_equal(values, np.rint(values)))
