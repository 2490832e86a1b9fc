"""Virtual examples: copies of training rows with label-preserving transformations; example i is
determined by (seed, i).

Digits are transformed as in infinite MNIST (Loosli, Canu and Bottou 2007), molecules as in Montavon
et al. (2012).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TypeAlias

import numpy as np
import scipy.sparse as sp
from scipy.special import ndtri

from rfx.compiled import njit
from rfx.counters import uniforms
from rfx.data.splits import shuffled
from rfx.data.stream import GeneratedSource
from rfx.errors import UsageError
from rfx.parallel import for_ranges
from rfx.types import Inputs

DEFORM, PERMUTE, CROP, FIELD = 101, 102, 103, 104
# Virtual examples generated at a time.
ROWS = 8192
# The side of the torus of smooth noise from which every elastic field is a window.
_TORUS = 1024
# Numbers of examples (m,), or the number of one transformation.
Numbers: TypeAlias = np.ndarray | int


@dataclass(frozen=True)
class Deformation:
    """The maximum rotation (degrees), scaling (fraction), shear and shift (pixels) of a digit,
    drawn uniformly; elastic: the standard deviation in pixels of a smooth random field, smoothness:
    of its Gaussian filter.
    """

    rotation: float = 10.0
    scale: float = 0.1
    shear: float = 0.1
    shift: float = 1.5
    elastic: float = 1.2
    smoothness: float = 4.0


def deform(
    images: np.ndarray, index: Numbers, seed: int, how: Deformation = Deformation()
) -> np.ndarray:
    """Example i of an endless stream over images (n, side, side): image i mod n, rotated, scaled,
    sheared, shifted and distorted.

    index: (m,) consecutive integers; or one, for the transformation of that number of every image.
    Returns (m, side, side) float32 in the range of the images. The first n examples, and
    transformation 0, are the images themselves.
    """
    n, side = len(images), images.shape[1]
    index, which, draws = _changes(n, index, seed, DEFORM, 8)
    field = _field(seed, how.smoothness)
    signed = 2 * draws - 1
    matrices = _matrices(signed[:, :4], how)
    shifts = how.shift * signed[:, 4:6]
    corners = (draws[:, 6:8] * _TORUS).astype(np.int64)
    untouched = index // n == 0
    matrices[untouched] = np.eye(2)
    shifts[untouched] = 0.0
    strengths = np.where(untouched, 0.0, how.elastic).astype(np.float32)
    out = np.empty((len(index), side, side), np.float32)
    source = np.ascontiguousarray(images)

    def part(start, stop):
        _deform(
            source,
            which[start:stop],
            matrices[start:stop],
            shifts[start:stop],
            corners[start:stop],
            strengths[start:stop],
            field,
            out[start:stop],
        )

    for_ranges(part, len(index), smallest=16)
    return out


def _matrices(signed: np.ndarray, how: Deformation) -> np.ndarray:
    """(m, 2, 2) maps from positions of the result to positions of the image; signed: (m, 4) draws
    from -1 .. 1 for angle, scale by rows, scale by columns, and shear.
    """
    angles = np.deg2rad(how.rotation) * signed[:, 0]
    cosines, sines = np.cos(angles), np.sin(angles)
    tall = 1 + how.scale * signed[:, 1]
    wide = 1 + how.scale * signed[:, 2]
    matrices = np.empty((len(signed), 2, 2))
    matrices[:, 0, 0] = cosines * tall
    matrices[:, 0, 1] = -sines * wide + how.shear * signed[:, 3]
    matrices[:, 1, 0] = sines * tall
    matrices[:, 1, 1] = cosines * wide
    return matrices


def _changes(
    n: int, index: Numbers, seed: int, kind: int, width: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(numbers, which of the n, draws (m, width)) of the examples `index`; for one number: of
    transformation `index` n for every one of the n.
    """
    numbers = np.asarray(index)
    if numbers.ndim == 0:
        number = int(numbers)
        draws = uniforms(seed, kind, number, number + 1, width)
        return np.full(n, number * n), np.arange(n), np.repeat(draws, n, axis=0)
    first, last = int(numbers[0]), int(numbers[-1])
    draws = uniforms(seed, kind, first, last + 1, width)
    return numbers, numbers % n, draws


@lru_cache(maxsize=2)
def _field(seed: int, smoothness: float) -> np.ndarray:
    """(2, torus, torus) float32: two smooth random fields of unit variance without edges."""
    draws = uniforms(seed, FIELD, 0, 2 * _TORUS, _TORUS)
    noise = draws.reshape(2, _TORUS, _TORUS) - 0.5
    by_row, by_column = np.fft.fftfreq(_TORUS), np.fft.rfftfreq(_TORUS)
    rates = by_row[:, None] ** 2 + by_column[None, :] ** 2
    gaussian = np.exp(-2 * np.pi**2 * smoothness**2 * rates)
    smooth = np.fft.irfft2(np.fft.rfft2(noise) * gaussian, s=(_TORUS, _TORUS))
    return (smooth / smooth.std()).astype(np.float32)


@njit(cache=True, nogil=True)
def _deform(images, which, matrices, shifts, corners, strengths, field, out):
    side, torus = out.shape[1], field.shape[1]
    centre = 0.5 * (side - 1)
    for m in range(len(which)):
        image = images[which[m]]
        matrix = matrices[m]
        strength = strengths[m]
        for r in range(side):
            row = (corners[m, 0] + r) % torus
            for c in range(side):
                column = (corners[m, 1] + c) % torus
                u = r - centre - shifts[m, 0]
                v = c - centre - shifts[m, 1]
                x = matrix[0, 0] * u + matrix[0, 1] * v + centre
                y = matrix[1, 0] * u + matrix[1, 1] * v + centre
                x += strength * field[0, row, column]
                y += strength * field[1, row, column]
                out[m, r, c] = _interpolated(image, x, y, side)


@njit(cache=True, nogil=True)
def _interpolated(image, x, y, side):
    """The bilinear interpolation of an image at (x, y); 0 outside."""
    r0, c0 = int(np.floor(x)), int(np.floor(y))
    fx, fy = x - r0, y - c0
    value = 0.0
    for i in range(2):
        weight = fx if i else 1.0 - fx
        for j in range(2):
            if 0 <= r0 + i < side and 0 <= c0 + j < side:
                product = weight * (fy if j else 1.0 - fy)
                value += product * image[r0 + i, c0 + j]
    return value


def crops_and_flips(images: np.ndarray, index: Numbers, seed: int, size: int) -> np.ndarray:
    """Example i: a window of size x size pixels at a random position of image i mod n, mirrored
    with probability 1/2.

    images: (n, height, width) or (n, height, width, channels). index: see `deform`. Returns the
    images' dtype.
    """
    n, height, width = images.shape[:3]
    _, which, draws = _changes(n, index, seed, CROP, 3)
    out = np.empty((len(which), size, size, *images.shape[3:]), images.dtype)
    rows = (draws[:, 0] * (height - size + 1)).astype(int)
    columns = (draws[:, 1] * (width - size + 1)).astype(int)
    mirrors = draws[:, 2] < 0.5
    for m, (i, row, column, mirrored) in enumerate(zip(which, rows, columns, mirrors)):
        window = images[i, row : row + size, column : column + size]
        out[m] = window[:, ::-1] if mirrored else window
    return out


# ---------------------------------------------------------------------- molecules

BOHR = 0.52917721  # Angstrom


def coulomb(charges: np.ndarray, positions: np.ndarray) -> np.ndarray:
    """Coulomb matrices (n, atoms, atoms) of charges (n, atoms), 0 for no atom, and positions (n,
    atoms, 3) in Angstrom.

    0.5 Z^2.4 on the diagonal, Z_i Z_j / |R_i - R_j| off it, distances in Bohr (Rupp et al. 2012).
    """
    charges = np.asarray(charges, np.float64)
    positions = np.asarray(positions, np.float64) / BOHR
    atoms = charges.shape[1]
    out = np.empty((len(charges), atoms, atoms))
    others = ~np.eye(atoms, dtype=bool)
    for start in range(0, len(charges), 1024):
        Z, R = charges[start : start + 1024], positions[start : start + 1024]
        difference = R[:, :, None] - R[:, None]
        distance = np.linalg.norm(difference, axis=-1)
        product = Z[:, :, None] * Z[:, None]
        part = np.zeros_like(product)
        np.divide(product, distance, out=part, where=(product > 0) & others)
        part[:, np.arange(atoms), np.arange(atoms)] = 0.5 * Z**2.4
        out[start : start + 1024] = part
    return out


def triangles(matrices: np.ndarray) -> np.ndarray:
    """(n, atoms (atoms + 1) / 2) the upper triangles with the diagonal, row by row."""
    rows, columns = np.triu_indices(matrices.shape[1])
    return matrices[:, rows, columns]


def from_triangles(rows: np.ndarray) -> np.ndarray:
    """The symmetric matrices (n, atoms, atoms) of upper triangles (n, atoms (atoms + 1) / 2);
    UsageError for another width.
    """
    width = rows.shape[1]
    atoms = int(round((np.sqrt(8 * width + 1) - 1) / 2))
    if atoms * (atoms + 1) // 2 != width:
        raise UsageError(f"rows of {width} numbers are not upper triangles of Coulomb matrices")
    upper, right = np.triu_indices(atoms)
    out = np.zeros((len(rows), atoms, atoms))
    out[:, upper, right] = rows
    out[:, right, upper] = rows
    return out


def eigenvalues(matrices: np.ndarray) -> np.ndarray:
    """(n, atoms) eigenvalues in decreasing order."""
    values = np.linalg.eigvalsh(matrices)
    order = np.argsort(-np.abs(values), axis=1, kind="stable")
    return np.take_along_axis(values, order, axis=1)


def bags_of_bonds(matrices: np.ndarray) -> np.ndarray:
    """(n, m) the entries of Coulomb matrices (n, atoms, atoms), those of each pair of elements in
    decreasing order (Hansen et al. 2015).

    Elements are identified by the diagonal. A bag has as many places as the molecule with most of
    such pairs, padded with zeros.
    """
    upper, right = np.triu_indices(matrices.shape[1])
    diagonal = np.maximum(np.einsum("nii->ni", matrices), 0)
    charge = np.rint((2 * diagonal) ** (1 / 2.4)).astype(int)
    one, other = charge[:, upper], charge[:, right]
    pair = np.minimum(one, other) * 1000 + np.maximum(one, other)
    # an atom with itself is a different kind of pair than two atoms of its element
    kind = np.where(upper == right, -one, pair)
    kind[(one == 0) | (other == 0)] = 0
    entries, bags = triangles(matrices), []
    for name in np.unique(kind[kind != 0]):
        has_name = kind == name
        places = int(has_name.sum(axis=1).max())
        ascending = np.sort(np.where(has_name, entries, 0.0), axis=1)
        bags.append(ascending[:, ::-1][:, :places])
    return np.concatenate(bags, axis=1)


def by_row_norm(matrices: np.ndarray) -> np.ndarray:
    """The same molecules with their atoms ordered by decreasing row norms."""
    return _descending(matrices, np.linalg.norm(matrices, axis=2))


def permute(
    matrices: np.ndarray, index: Numbers, seed: int, noise: float | None = None
) -> np.ndarray:
    """Example i: matrix i mod n with its atoms in a random order.

    noise: the order is that of decreasing row norms plus normal noise of this deviation (Montavon
    et al. 2012, "randomly sorted"); None for any order, with absent atoms last. index: see
    `deform`.
    """
    n, atoms = len(matrices), matrices.shape[1]
    _, which, draws = _changes(n, index, seed, PERMUTE, atoms)
    chosen = matrices[which]
    norms = np.linalg.norm(chosen, axis=2)
    if noise is None:
        keys = np.where(norms > 0, draws, -1.0)
    else:
        keys = np.where(norms > 0, norms + noise * ndtri(draws), -np.inf)
    return _descending(chosen, keys)


def _descending(matrices: np.ndarray, keys: np.ndarray) -> np.ndarray:
    """The matrices (n, atoms, atoms) with their atoms ordered by decreasing keys (n, atoms)."""
    order = np.argsort(-keys, axis=1, kind="stable")
    rows = np.arange(len(matrices))[:, None, None]
    return matrices[rows, order[:, :, None], order[:, None, :]]


# ---------------------------------------------------------------------- of a data set


def virtual_copies(
    kind: str, X: Inputs, y: np.ndarray, seed: int, copies: int
) -> tuple[np.ndarray, np.ndarray]:
    """The first `copies` virtual examples of each of the rows X (n, d): (copies n, d)
    float32 and their targets.
    """
    source = virtual_source(kind, X, y, seed)
    count = copies * len(y)
    rows = np.empty((count, X.shape[1]), np.float32)
    targets = np.empty((count, *y.shape[1:]))
    for start in range(0, count, ROWS):
        stop = min(count, start + ROWS)
        rows[start:stop], targets[start:stop] = source.make(start, stop)
    return rows, targets


def virtual_source(kind: str, X: Inputs, y: np.ndarray, seed: int) -> GeneratedSource:
    """Example i is determined by (seed, i) and row i mod n of the rows X (n, d), array or CSR, in a
    random order; its target is that row's."""
    order = shuffled(len(y), seed, 0)
    change = virtual_change(kind, X[order], seed)

    def make(start: int, stop: int) -> tuple[np.ndarray, np.ndarray]:
        index = np.arange(start, stop)
        return change(index), y[order[index % len(y)]]

    return GeneratedSource(make, X.shape[1])


def virtual_change(kind: str, X: Inputs, seed: int) -> Callable[[Numbers], np.ndarray]:
    """index -> the virtual examples of the rows X with these numbers; for one number, that
    transformation of all of them.
    """
    n_inputs = X.shape[1]
    if kind.startswith("molecules"):
        matrices = from_triangles(_dense(X))
        noise = 1.0 if kind == "molecules-sorted" else None
        return lambda index: triangles(permute(matrices, index, seed, noise))
    if kind == "digits":
        side = math.ceil(math.sqrt(n_inputs))
        # the last pixels may be missing
        pixels = np.zeros((X.shape[0], side * side), np.float32)
        pixels[:, :n_inputs] = _dense(X).astype(np.float32)
        digits, flat = pixels.reshape(-1, side, side), (-1, side * side)
        return lambda index: deform(digits, index, seed).reshape(flat)[:, :n_inputs]
    planes = next((n for n in (1, 3) if n_inputs == n * math.isqrt(n_inputs // n) ** 2), None)
    if planes is None:
        raise UsageError(
            f"--virtual is images, but rows of {n_inputs} numbers are not square images of one"
            " plane or three"
        )
    side = math.isqrt(n_inputs // planes)
    by_plane = _dense(X).astype(np.float32).reshape(-1, planes, side, side)
    frame = (max(1, side // 8),) * 2
    framed = np.pad(by_plane.transpose(0, 2, 3, 1), ((0, 0), frame, frame, (0, 0)))
    crops = partial(crops_and_flips, framed, seed=seed, size=side)
    return lambda index: crops(index).transpose(0, 3, 1, 2).reshape(-1, n_inputs)


def _dense(X: Inputs) -> np.ndarray:
    return X.toarray() if sp.issparse(X) else np.asarray(X)
