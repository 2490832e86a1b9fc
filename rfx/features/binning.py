"""Random binning features, and the widths of their grids."""

import itertools
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import scipy.sparse as sp

from rfx import parallel
from rfx import steps as told
from rfx.compiled import njit
from rfx.errors import DataError, UsageError
from rfx.features.random import uniforms
from rfx.operators.blocks import ranges
from rfx.parallel import cached

# ----------------------------------------------------------------------
# Widths of random binning grids: the density of a width t is t k''(t) for the kernel's
# one-dimensional factor k (Rahimi and Recht 2007; Wu et al. 2016, equation 6).

_STREAM = 16
# Widths below this would have a reciprocal that overflows.
_NARROWEST = 1e-300


def _exponentials(numbers):
    """Sums of as many exponential variables as there are numbers."""
    return -np.log(numbers).sum(axis=-1)


def _heavy(numbers):
    """For the distribution function (t / (1 + t))^2."""
    root = np.sqrt(numbers[..., 0])
    return root / (1 - root)


# kernel -> (uniform numbers per width, the width for gamma = 1): for the densities t exp(-t), t^2
# exp(-t) / 2 and 2t / (1 + t)^3; constant width.
WIDTHS = {
    "laplacian": (2, _exponentials),
    "erlang": (3, _exponentials),
    "rational": (1, _heavy),
    "hat": (1, lambda numbers: np.ones(numbers.shape[:-1])),
}


# ----------------------------------------------------------------------
# Random binning features (Rahimi and Recht 2007; Wu et al. 2016, Algorithm 1): R random grids, one
# feature for each cell that is hit.
#
# A row has the value 1/sqrt(R) in the one bin of each grid that contains it, so only the R bin
# numbers of a row are stored. The fraction of grids in which two rows share a bin estimates the
# kernel, a product over the inputs of one-dimensional kernels. A cell is identified by a 64-bit
# key: d rounded coordinates in a linear hash, so that a sparse row's key is that of the zero row
# plus the changes of its nonzeros.

OFFSET = 17

_GROUP = 8
_CHUNK = 512
_PREDICTED_ROWS = 4096
# Added to an integer below 2^51, it leaves that integer in the low bits of the float64; beyond,
# neighbouring cells are as close as neighbouring float64 numbers, and nothing overflows.
_ALIGN = 1.5 * 2.0**52


class BinningMap:
    """R sampled grids over n_inputs inputs.

    kernel: its name. gamma: its bandwidth, 1/sigma of Wu et al. widths, offsets: (R, d)
    float64, the cell of x_j in grid r being floor((x_j - offsets[r, j]) / widths[r, j]).
    """

    def __init__(self, kernel: str, gamma: float, widths, offsets):
        self.kernel = kernel
        self.gamma = gamma
        self.widths = widths
        self.offsets = offsets
        self._inverses = 1.0 / widths

    @property
    def n_grids(self) -> int:
        return self.widths.shape[0]

    @property
    def n_inputs(self) -> int:
        return self.widths.shape[1]

    def select(self, grids) -> "BinningMap":
        """The map of these grids (an index array, a boolean mask or a slice), in that order."""
        return BinningMap(self.kernel, self.gamma, self.widths[grids], self.offsets[grids])

    def number(self, X) -> tuple[np.ndarray, "Bins"]:
        """The bins of the rows of X (n, d), array or CSR.

        Returns ids (R, n), the number of each row's bin among the bins of the grid, in the order of
        first occurrence, and the bins. ids are uint16 if that is sufficient for n, else int32.
        Neither threads nor sparsity change them.
        """
        hashes = self._rows(X)
        count = X.shape[0]
        kind = np.uint16 if count < 2**16 else np.int32
        ids = np.empty((self.n_grids, count), kind)
        keys = [np.empty(0, np.uint64)] * self.n_grids

        def part(start, stop):
            slots = np.empty(2 ** _slot_bits(count), np.int32)
            found = np.empty(count, np.uint64)
            for grid, hashed in hashes(start, stop, 0, count):
                size = _number(hashed, ids[grid], slots, found)
                keys[grid] = found[:size].copy()

        parallel.for_ranges(part, self.n_grids, work=_hashing(ids, X))
        return ids, Bins.of_grids(keys)

    def find(self, X, bins: "Bins") -> np.ndarray:
        """(R, n) int32 numbers of the rows' bins in their grids among `bins`, -1 if a bin is
        absent.
        """
        hashes = self._rows(X)
        ids = np.empty((self.n_grids, X.shape[0]), np.int32)
        slots, starts = bins.slots

        def part(start, stop):
            for grid, hashed in hashes(0, self.n_grids, start, stop):
                own = slots[starts[grid] : starts[grid + 1]]
                _find(hashed, own, bins.of(grid), ids[grid, start:stop])

        parallel.for_ranges(part, X.shape[0], 64, work=_hashing(ids, X))
        return ids

    def transform(self, X, bins: "Bins", value: float | None = None) -> sp.csr_matrix:
        """(n, D) float64 CSR, for other programs: `value` (default 1/sqrt(R)) in each row's bins;
        bins not among `bins` are dropped.
        """
        found = self.find(X, bins).T
        known = found >= 0
        indices = (found.astype(np.int64) + bins.starts[:-1])[known]
        indptr = np.concatenate([[0], np.cumsum(np.count_nonzero(known, axis=1))])
        if value is None:
            value = 1 / np.sqrt(self.n_grids)
        data = np.full(len(indices), float(value))
        shape = X.shape[0], int(bins.starts[-1])
        return sp.csr_matrix((data, indices, indptr), shape=shape)

    def decision(self, X, bins: "Bins", coef) -> np.ndarray:
        """(n, k) float64 sums of the weights coef (D, k) of the rows' bins; a bin that is not among
        `bins` has weight zero.
        """
        out = np.zeros((X.shape[0], coef.shape[1]))
        for rows in ranges(X.shape[0], _PREDICTED_ROWS):
            ids = self.find(X[rows], bins)
            sums = out[rows]

            def part(start, stop):
                _add_found(ids[:, start:stop], bins.starts, coef, sums[start:stop])

            work = ids.size * (1 + coef.shape[1])
            parallel.for_ranges(part, ids.shape[1], 64, work=work)
        return out

    def steps(self, bins: "Bins", coef) -> told.Steps:
        """The computation steps of `decision` for dense rows."""
        # the bits of the float64 of an integer are those of 0 plus the integer
        base = int(np.array([_ALIGN]).view(np.uint64)[0])
        grid = np.repeat(np.arange(self.n_grids), np.diff(bins.starts))
        order = np.lexsort((bins.keys, grid))
        keys = bins.keys[order]
        weights = np.asarray(coef)[order]
        multipliers = _multipliers(self.n_inputs)
        grids = self.offsets, self._inverses
        return (told.Bins(*grids, multipliers, base, keys, bins.starts, weights),)

    def _rows(self, X):
        """A function of (first grid, last grid, first row, last row): for each grid, its number and
        the rows' keys, which are computed for some grids at a time.
        """
        if X.shape[1] != self.n_inputs:
            raise DataError(
                f"the rows have {X.shape[1]} features, but the map was made for {self.n_inputs}"
            )
        multipliers = _multipliers(self.n_inputs)
        if sp.issparse(X):
            X = X.tocsr()
            X.sum_duplicates()
            data = np.ascontiguousarray(X.data, dtype=np.float64)
        else:
            columns = np.ascontiguousarray(np.asarray(X, dtype=np.float64).T)

        def hashes(low, high, start, stop):
            for first in range(low, high, _GROUP):
                grids = slice(first, min(first + _GROUP, high))
                offsets = self.offsets[grids]
                inverses = self._inverses[grids]
                keys = np.empty((len(offsets), stop - start), np.uint64)
                if sp.issparse(X):
                    # grids side by side, so that one nonzero is processed for all of them
                    sides = np.ascontiguousarray(offsets.T), np.ascontiguousarray(inverses.T)
                    ends = X.indptr[start : stop + 1]
                    _hash_sparse(data, X.indices, ends, *sides, multipliers, keys)
                else:
                    _hash_dense(columns[:, start:stop], offsets, inverses, multipliers, keys)
                yield from enumerate(keys, first)

        return hashes


@dataclass
class Bins:
    """The bins of R grids. keys: (D,) uint64, grid by grid; starts: (R + 1,) int64, the start of
    each grid.
    """

    keys: np.ndarray
    starts: np.ndarray

    @classmethod
    def of_grids(cls, keys: list[np.ndarray]) -> "Bins":
        """From the keys of each grid."""
        return cls(np.concatenate(keys), _starts([len(own) for own in keys]))

    def of(self, grid: int) -> np.ndarray:
        """The keys of one grid."""
        return self.keys[self.starts[grid] : self.starts[grid + 1]]

    def select(self, used) -> "Bins":
        """The bins of a boolean mask (D,), in all the grids."""
        kept = np.concatenate([[0], np.cumsum(used)])
        return Bins(self.keys[used], kept[self.starts])

    def grids(self, chosen) -> "Bins":
        """The bins of an index array of grids."""
        # without grids, the keys are an empty array of their type
        keys = [self.keys[:0], *(self.of(grid) for grid in chosen)]
        sizes = np.diff(self.starts)[chosen]
        return Bins(np.concatenate(keys), _starts(sizes))

    @cached
    def slots(self) -> tuple[np.ndarray, np.ndarray]:
        """Hash tables of the grids, concatenated, and their starts."""
        starts = _starts([2 ** _slot_bits(size) for size in np.diff(self.starts)])
        slots = np.empty(starts[-1], np.int32)
        for grid, (start, stop) in enumerate(itertools.pairwise(starts)):
            _fill(self.of(grid), slots[start:stop])
        return slots, starts


def merged(parts: list[Bins]) -> tuple[Bins, list[np.ndarray]]:
    """The bins of all rows from those of parts of them, numbered as for the concatenated rows, and
    for each part the new numbers (D,) int32 of its bins in their grids."""
    keys = []
    tables = [np.empty(len(own.keys), np.int32) for own in parts]
    for grid in range(len(parts[0].starts) - 1):
        seen = np.concatenate([own.of(grid) for own in parts])
        ids = np.empty(len(seen), np.int32)
        found = np.empty(len(seen), np.uint64)
        slots = np.empty(2 ** _slot_bits(len(seen)), np.int32)
        count = _number(seen, ids, slots, found)
        keys.append(found[:count].copy())
        at = 0
        for own, table in zip(parts, tables):
            first = own.starts[grid]
            last = own.starts[grid + 1]
            table[first:last] = ids[at : at + last - first]
            at += last - first
    return Bins.of_grids(keys), tables


class BinMap:
    """One feature for each of some bins of the grids: a feature map of a linear model, with CSR
    rows.

    grids: a BinningMap; bins: those with a feature.
    """

    width: ClassVar[int] = 4
    dtype = np.dtype(np.float64)

    def __init__(self, grids: BinningMap, bins: Bins):
        self.grids = grids
        self.bins = bins

    @classmethod
    def usual(cls, name: str) -> str:
        """The word for no variant."""
        return "offset"

    @classmethod
    def check_variant(cls, name: str, n_features: int, variant: str) -> None:
        """Raise UsageError for a variant, because there is none."""
        if variant != "offset":
            raise UsageError(f"--features is {variant}, which does not apply to binning; omit it")

    @classmethod
    def learn(
        cls, kernel: str, X, n_grids: int, seed: int, variant: str = "offset", **params
    ) -> "BinMap":
        """The bins that contain the rows of X (n, d), array or CSR."""
        grids = sample_grids(kernel, X.shape[1], n_grids, seed, **params)
        return cls(grids, grids.number(X)[1])

    @property
    def n_features(self) -> int:
        """The number of bins."""
        return int(self.bins.starts[-1])

    def transform(self, X, scale: float | None = None):
        """CSR (n, n_features) of `scale` (default 1/sqrt(R)) in the bins of each row of X."""
        return self.grids.transform(X, self.bins, scale)

    def row_blocks(self, X, scale: float = 1.0):
        """(rows, CSR of `scale` in each row's bins) for all rows of X, some at a time."""
        for rows in ranges(X.shape[0], _PREDICTED_ROWS):
            yield rows, self.transform(X[rows], scale)


def sample_grids(
    kernel, n_inputs: int, n_grids: int, seed: int, *, gamma: float, start: int = 0
) -> BinningMap:
    """Sample the grids start .. start+n_grids-1; grid r depends only on (seed, r).

    kernel: one of WIDTHS.
    """
    count, width = WIDTHS[kernel]
    numbers = uniforms(seed, _STREAM, start, start + n_grids, count * n_inputs)
    with np.errstate(divide="ignore"):
        widths = width(numbers.reshape(n_grids, n_inputs, count)) / gamma
    widths = np.ascontiguousarray(np.clip(widths, _NARROWEST, 1 / _NARROWEST))
    offsets = widths * uniforms(seed, OFFSET, start, start + n_grids, n_inputs)
    return BinningMap(kernel, float(gamma), widths, offsets)


def _starts(sizes) -> np.ndarray:
    """(len(sizes) + 1,) int64, where parts of these sizes begin, and the end."""
    ends = np.cumsum(sizes, dtype=np.int64)
    return np.concatenate([[0], ends]).astype(np.int64)


def _hashing(ids, X) -> int:
    """Multiplications equivalent to finding these numbers (R, n) of the bins of X (n, d)."""
    return ids.size * (20 + X.shape[1])


def _slot_bits(size) -> int:
    """log2 of the size of a table with at least twice `size` slots."""
    return max(1, int(2 * max(1, size) - 1).bit_length())


def _multipliers(count: int) -> np.ndarray:
    """(count,) odd pseudorandom 64-bit numbers: SplitMix64 (Steele, Lea and Flood 2014) at 1, 2,
    …
    """
    z = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return (z ^ (z >> np.uint64(31))) | np.uint64(1)


@njit(cache=True, nogil=True)
def _hash_dense(columns, offsets, inverses, multipliers, keys):
    """keys[g, i] <- sum_j cell_j(x_i) multipliers_j in grid g, for rows given as columns (d, n)."""
    cells = np.empty(_CHUNK)
    bits = cells.view(np.uint64)
    for start in range(0, keys.shape[1], _CHUNK):
        count = min(_CHUNK, keys.shape[1] - start)
        for g in range(len(keys)):
            key = keys[g, start : start + count]
            key[:] = np.uint64(0)
            for j in range(len(columns)):
                x = columns[j, start : start + count]
                offset = offsets[g, j]
                inverse = inverses[g, j]
                multiplier = multipliers[j]
                for i in range(count):
                    cells[i] = np.floor((x[i] - offset) * inverse) + _ALIGN
                for i in range(count):
                    key[i] += bits[i] * multiplier


@njit(cache=True, nogil=True)
def _hash_sparse(data, indices, indptr, offsets, inverses, multipliers, keys):
    """The same for the CSR rows of indptr; offsets, inverses: (d, grids)."""
    n_inputs, grids = offsets.shape
    cells = np.empty(grids)
    bits = cells.view(np.uint64)
    zero = np.empty((n_inputs, grids), np.uint64)
    base = np.zeros(grids, np.uint64)
    for j in range(n_inputs):
        for g in range(grids):
            cells[g] = np.floor((0.0 - offsets[j, g]) * inverses[j, g]) + _ALIGN
        for g in range(grids):
            zero[j, g] = bits[g]
            base[g] += bits[g] * multipliers[j]
    key = np.empty(grids, np.uint64)
    for i in range(keys.shape[1]):
        key[:] = base
        for t in range(indptr[i], indptr[i + 1]):
            j = indices[t]
            x = data[t]
            offset = offsets[j]
            inverse = inverses[j]
            empty = zero[j]
            multiplier = multipliers[j]
            for g in range(grids):
                cells[g] = np.floor((x - offset[g]) * inverse[g]) + _ALIGN
            for g in range(grids):
                key[g] += (bits[g] - empty[g]) * multiplier
        for g in range(grids):
            keys[g, i] = key[g]


@njit(cache=True, nogil=True)
def _place(key, mask):
    """The first slot for a key in a table of mask + 1 slots, a power of two."""
    mixed = (key ^ (key >> np.uint64(32))) * np.uint64(0x9E3779B97F4A7C15)
    return np.int64((mixed ^ (mixed >> np.uint64(32))) & np.uint64(mask))


@njit(cache=True, nogil=True)
def _number(keys, ids, slots, found):
    """ids_i <- the number of keys_i among the distinct keys in order of appearance; found[:returned
    count] <- these.

    slots: scratch with at least twice as many slots as keys; only as many are used as the keys
    found so far need.
    """
    mask = min(256, len(slots)) - 1
    count = 0
    slots[: mask + 1] = -1
    for i in range(len(keys)):
        key = keys[i]
        place = _place(key, mask)
        known = slots[place]
        while known >= 0 and found[known] != key:
            place = (place + 1) & mask
            known = slots[place]
        if known < 0:
            known = count
            slots[place] = count
            found[count] = key
            count += 1
            if 2 * count > mask and mask + 1 < len(slots):
                mask = min(4 * mask + 3, len(slots) - 1)
                _fill(found[:count], slots[: mask + 1])
        ids[i] = known
    return count


@njit(cache=True, nogil=True)
def _fill(keys, slots):
    """A table of the keys' numbers; len(slots) is a power of two above len(keys)."""
    mask = len(slots) - 1
    slots[:] = -1
    for number in range(len(keys)):
        place = _place(keys[number], mask)
        while slots[place] >= 0:
            place = (place + 1) & mask
        slots[place] = number


@njit(cache=True, nogil=True)
def _find(keys, slots, known, ids):
    """ids_i <- the number of keys_i in the table `slots` of the keys `known`, -1 if absent."""
    mask = len(slots) - 1
    for i in range(len(keys)):
        place = _place(keys[i], mask)
        number = slots[place]
        while number >= 0 and known[number] != keys[i]:
            place = (place + 1) & mask
            number = slots[place]
        ids[i] = number


@njit(cache=True, nogil=True)
def _add_found(ids, starts, coef, out):
    """out_i <- out_i + the sum over grids of the weights of row i's bin, if it has one."""
    for grid in range(len(ids)):
        first = starts[grid]
        for i in range(ids.shape[1]):
            if ids[grid, i] >= 0:
                for k in range(coef.shape[1]):
                    out[i, k] += coef[first + ids[grid, i], k]
