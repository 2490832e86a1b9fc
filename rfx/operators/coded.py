"""Features of bounded magnitude in memory as 8-bit integers: a quarter of the memory of float32,
and Gram matrices of four products per instruction, if the processor supports them.

A code differs from its feature by at most half a unit, which behaves randomly in sums over the
rows. A solution is found with codes; its certificate uses the features themselves.

On 464,810 rows of covtype with 10,000 features in ten rounds, the Gram matrices of codes take 5.5
times less processor time than those of float32 features, and the features of a round a quarter of
the memory.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from types import ModuleType
from typing import Any

import numpy as np
from llvmlite import binding, ir
from numba import config, types
from numba.core import cgutils
from numba.core.typing import Signature
from numba.extending import intrinsic
from numpy.typing import DTypeLike

from rfx import env, parallel
from rfx.compiled import njit
from rfx.counters import random_rows
from rfx.operators.blocks import SMALL, ranges, scale_and_mirror
from rfx.operators.matrix import DenseMatrix, Matrix
from rfx.types import Index

# The largest code.
LARGEST = 127
# Columns that are stored together.
CHUNK = 480
# Bytes of features that are computed at a time before they are coded, which stay in cache.
_CACHED_BYTES = 2 * 2**20
# Rows that are decoded at a time for other Gram matrices.
_DECODED = 2048
# Row weights that differ by less than this are treated as equal: codes themselves are off by up to
# a 254th of the largest feature.
_SAME = 1e-2


class CodedColumns(Matrix):
    """Columns of features as codes, times a common unit. Columns that are not used any more make
    room for others.

    Parameters
    ----------
    n_rows, capacity : int
        Its rows, and the most columns that it will have. Memory is used for those that it has.
    bound : float
        The largest magnitude of a feature.
    dtype : numpy.dtype
        The type of the features.
    gram_rows : int, optional
        The number of random rows that stand for all in Gram matrices, by default all. Newton's
        method then needs more steps, and each costs less.
    """

    def __init__(
        self,
        n_rows: int,
        capacity: int,
        bound: float,
        dtype: np.dtype,
        gram_rows: int | None = None,
    ) -> None:
        # the system provides memory for a part of an array when it is written
        self.codes = np.empty((-(-capacity // CHUNK), n_rows, CHUNK), np.int8)
        self.shape = (n_rows, 0)
        self.dtype = dtype
        self.unit = bound / LARGEST
        self.capacity = capacity
        self.drawn = random_rows(n_rows, gram_rows)

    def replace(self, kept: np.ndarray, features: Matrix) -> np.ndarray:
        """Drop all columns but those `kept`, and store the features, a computed matrix (N, k).

        Returns
        -------
        array, (k,)
            The columns of the features: those dropped, then further ones. The other dropped
            columns are zero.
        """
        n_rows, width = self.shape
        dropped = np.setdiff1d(np.arange(width), kept)
        count = features.shape[1]
        places = np.append(dropped, np.arange(width, width + count))[:count]
        last = int(places.max(initial=-1))
        self.shape = (n_rows, max(width, last + 1))
        for column in dropped[count:]:
            self.codes[column // CHUNK, :, column % CHUNK] = 0
        offsets = self._offsets(places)
        row_bytes = max(1, count * features.dtype.itemsize)
        size = max(64, _CACHED_BYTES // row_bytes)
        blocks = list(ranges(n_rows, size))
        codes = self.codes.reshape(-1)

        def code(first: int, last: int) -> None:
            buffer = np.empty((size, count), features.dtype)
            for rows in blocks[first:last]:
                part = features.rows(rows).to_array(buffer[: rows.stop - rows.start])
                _encode(part, 1 / self.unit, codes, rows.start, offsets)

        parallel.for_ranges(code, len(blocks))
        return places

    def _offsets(self, columns: np.ndarray) -> np.ndarray:
        """The places of the first row's codes of some columns in the flat array of codes; unsigned,
        because numba checks signed ones for negative places.
        """
        chunks, inside = np.divmod(columns, CHUNK)
        places = chunks * (self.shape[0] * CHUNK) + inside
        return places.astype(np.uint64)

    def _chunks(self) -> np.ndarray:
        """The chunks in use, (chunks, N, CHUNK)."""
        return self.codes[: -(-self.shape[1] // CHUNK)]

    def rows(self, index: Index) -> Matrix:
        rows, columns = map(np.arange, self.shape)
        return DenseMatrix(self._decoded(rows[index], columns))

    def columns(self, index: Index) -> Matrix:
        rows, columns = map(np.arange, self.shape)
        return DenseMatrix(self._decoded(rows, columns[index]))

    def _decoded(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """The features of some rows and columns."""
        out = np.empty((len(rows), len(columns)), self.dtype)
        flat = self.codes.reshape(-1)
        offsets = self._offsets(columns)

        def part(start: int, stop: int) -> None:
            _decode(flat, rows[start:stop], offsets, self.unit, out[start:stop])

        parallel.for_ranges(part, len(rows), 64)
        return out

    def matvec(self, W: np.ndarray) -> np.ndarray:
        chunks = self._chunks()
        weights = np.zeros((len(chunks), CHUNK), np.float32)
        weights.reshape(-1)[: len(W)] = W * self.unit
        out = np.zeros(self.shape[0])

        def part(start: int, stop: int) -> None:
            _add_products(chunks, weights, start, stop, out)

        parallel.for_ranges(part, len(out), 256)
        return out

    def rmatvec(self, U: np.ndarray) -> np.ndarray:
        chunks = self._chunks()
        used = np.flatnonzero(U)
        sums = np.zeros((len(chunks), CHUNK))
        values = (U[used] * self.unit).astype(np.float32)

        def part(start: int, stop: int) -> None:
            _add_rows(chunks, used, values, start, stop, sums)

        parallel.for_ranges(part, len(chunks))
        return sums.reshape(-1)[: self.shape[1]]

    def gram_weights(self, weights: np.ndarray) -> np.ndarray:
        """The weights of the rows that stand for all, so that their sums estimate those of all."""
        of_drawn = np.zeros_like(weights)
        factor = len(weights) / len(self.drawn)
        of_drawn[self.drawn] = weights[self.drawn] * factor
        return of_drawn

    def gram(
        self,
        left: np.ndarray,
        right: np.ndarray,
        weights: np.ndarray,
        dtype: DTypeLike | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """As usual, but without a dtype, weights that differ by at most a hundredth may be treated
        as equal.
        """
        used = np.flatnonzero(weights)
        weight = _common_magnitude(weights[used])
        work = len(used) * len(left) * (len(left) + len(right))
        if dtype is None and weight is not None and work > SMALL and has_byte_products():
            sides = self._offsets(left), self._offsets(right)
            codes = self.codes.reshape(-1)
            is_positive = weights[used] > 0
            square, cross = integer_gram(codes, used * CHUNK, is_positive, *sides)
            unit = weight * self.unit**2
            scale_and_mirror(square, unit, np.ones(len(square)))
            return square, cross * unit
        square = np.zeros((len(left), len(left)))
        cross = np.zeros((len(left), len(right)))
        columns, places = np.unique(np.concatenate([left, right]), return_inverse=True)
        sides = places[: len(left)], places[len(left) :]
        for some in ranges(len(used), _DECODED):
            rows = used[some]
            features = DenseMatrix(self._decoded(rows, columns))
            square_of_part, cross_of_part = features.gram(*sides, weights[rows], dtype)
            square += square_of_part
            cross += cross_of_part
        return square, cross


class GramOfCodes(Matrix):
    """Columns of features whose Gram matrices are those of their codes; products are exact.

    Newton's method with this matrix finds the minimum over the features, in a few more steps.
    """

    def __init__(self, codes: Matrix, features: Matrix) -> None:
        self.codes = codes
        self.features = features
        self.shape = features.shape
        self.dtype = features.dtype

    def rows(self, index: Index) -> Matrix:
        return self.features.rows(index)

    def columns(self, index: Index) -> Matrix:
        return self.features.columns(index)

    def matvec(self, W: np.ndarray) -> np.ndarray:
        return self.features.matvec(W)

    def rmatvec(self, U: np.ndarray) -> np.ndarray:
        return self.features.rmatvec(U)

    def gram_weights(self, weights: np.ndarray) -> np.ndarray:
        return self.codes.gram_weights(weights)

    def gram(
        self,
        left: np.ndarray,
        right: np.ndarray,
        weights: np.ndarray,
        dtype: DTypeLike | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        return self.codes.gram(left, right, weights, dtype)


def _common_magnitude(weights: np.ndarray) -> float | None:
    """The magnitude of weights (n,) if it is the same for all, else None."""
    sizes = np.abs(weights)
    largest = sizes.max(initial=0.0)
    same = largest > 0 and sizes.min() >= (1 - _SAME) * largest
    return float(sizes.mean()) if same else None


@njit(cache=True, nogil=True, fastmath=True)
def _encode(
    Z: np.ndarray, factor: float, codes: np.ndarray, first: int, offsets: np.ndarray
) -> None:
    """Store the rows of Z, times the factor and rounded, as rows first, first + 1, ..."""
    scale = np.float32(factor)
    half = np.float32(0.5)
    for i in range(len(Z)):
        row = Z[i]
        start = np.uint64((first + i) * CHUNK)
        for j in range(len(offsets)):
            rounded = np.floor(np.float32(row[j]) * scale + half)
            codes[start + offsets[j]] = np.int8(rounded)


@njit(cache=True, nogil=True)
def _decode(
    codes: np.ndarray, rows: np.ndarray, offsets: np.ndarray, unit: float, out: np.ndarray
) -> None:
    for i in range(len(rows)):
        start = np.uint64(rows[i] * CHUNK)
        for j in range(len(offsets)):
            out[i, j] = unit * codes[start + offsets[j]]


@njit(cache=True, nogil=True, fastmath=True)
def _add_products(
    chunks: np.ndarray, weights: np.ndarray, first: int, last: int, out: np.ndarray
) -> None:
    """Add the products of rows first .. last-1 with the weights to `out`; a chunk's sum is in
    float32.
    """
    for chunk in range(len(chunks)):
        w = weights[chunk]
        for i in range(first, last):
            row = chunks[chunk, i]
            total = np.float32(0)
            for j in range(CHUNK):
                total += np.float32(row[j]) * w[j]
            out[i] += total


@njit(cache=True, nogil=True, fastmath=True)
def _add_rows(
    chunks: np.ndarray,
    rows: np.ndarray,
    values: np.ndarray,
    first: int,
    last: int,
    sums: np.ndarray,
) -> None:
    """Add the rows, times their values, to the sums (chunks, CHUNK) of chunks first .. last-1; sums
    of 64 rows are in float32.
    """
    part = np.zeros(CHUNK, np.float32)
    for chunk in range(first, last):
        total = sums[chunk]
        for start in range(0, len(rows), 64):
            part[:] = 0
            stop = min(start + 64, len(rows))
            for i in range(start, stop - 3, 4):
                a = chunks[chunk, rows[i]]
                b = chunks[chunk, rows[i + 1]]
                c = chunks[chunk, rows[i + 2]]
                d = chunks[chunk, rows[i + 3]]
                u, v, s, t = values[i], values[i + 1], values[i + 2], values[i + 3]
                for j in range(CHUNK):
                    part[j] += (u * np.float32(a[j]) + v * np.float32(b[j])) + (
                        s * np.float32(c[j]) + t * np.float32(d[j])
                    )
            for i in range(stop - (stop - start) % 4, stop):
                a = chunks[chunk, rows[i]]
                u = values[i]
                for j in range(CHUNK):
                    part[j] += u * np.float32(a[j])
            for j in range(CHUNK):
                total[j] += part[j]


# ----------------------------------------------------------------------
# Gram matrices of codes, exact in integers.
#
# The instruction vpdpbusd of AVX-512 VNNI adds four products of an unsigned and a signed byte to
# each of 16 sums of 32 bits. One factor is therefore shifted by 128. A column of zeros then gives
# 128 times the sums of the other factor, which are subtracted at the end. LLVM finds the
# instruction in no loop that numba compiles; what it makes of one takes 3.4 times as long.

# A tile of sums in registers: rows, and vectors of 16 columns; columns of a panel, one tile wide.
_HEIGHT, _VECTORS = 8, 3
_WIDTH = 16 * _VECTORS
# Added to four codes in a word, it shifts each by 128.
_FLIP = 0x80808080
# Rows packed at a time, in groups of four.
_PACKED = 1024
# Rows whose sums fit into 32 bits: at most 255 * 127 each.
_MOST = 64 * _PACKED


@lru_cache
def has_byte_products() -> bool:
    """Whether the processor has the instruction, and machine code is compiled for this
    processor.
    """
    settings: ModuleType = config
    own = settings.CPU_NAME is None and settings.CPU_FEATURES is None and not settings.DISABLE_JIT
    return own and bool(binding.get_host_cpu_features().get("avx512vnni", False))


def integer_gram(
    codes: np.ndarray, rows: np.ndarray, positive: np.ndarray, left: np.ndarray, right: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Sums over rows i of s_i c_i c_i' for the codes c_i of the columns `left`, on and above the
    diagonal, and of these times those of the columns `right`, in float64.

    Parameters
    ----------
    codes : array, int8
        The code of a row and a column is codes[row + column].
    rows, left, right : arrays of int
        The starts of the rows, and the places of the columns in them.
    positive : array of bool, (n,)
        Whether s_i is 1, else -1.
    """
    # the first column is zero
    panels_left = -(-(1 + len(left)) // _WIDTH)
    panels = panels_left - (-len(right) // _WIDTH)
    start_right = panels_left * _WIDTH
    columns = np.zeros(panels * _WIDTH, np.uint64)
    # entries beyond the columns of a side are ignored
    columns[1 : 1 + len(left)] = left
    columns[start_right : start_right + len(right)] = right
    totals = np.zeros((start_right, len(columns)))
    sums = np.zeros(totals.shape, np.int32)
    shifted = _aligned_panels(panels)
    plain = _aligned_panels(panels)
    threads = env.threads()

    def add_tiles(first: int, last: int) -> None:
        _add_tiles(shifted, plain, sums, first, last, threads)

    for sign in (1, -1):
        own = rows[positive == (sign > 0)].astype(np.uint64)
        for start in range(0, len(own), _MOST):
            sums[:] = 0
            for some in ranges(min(_MOST, len(own) - start), _PACKED):
                chosen = own[start:][some]
                pack = partial(_pack, codes, chosen, columns, shifted, plain)
                parallel.for_ranges(pack, panels)
                plain[0, :, 0] = 0
                shifted[0, :, 0] = _FLIP
                parallel.for_ranges(add_tiles, threads)
            parallel.for_ranges(partial(_add_sums, sums, sign, totals), 1 + len(left), 64)
    totals = totals[1 : 1 + len(left)]
    of_left = totals[:, 1 : 1 + len(left)].copy()
    return of_left, totals[:, start_right : start_right + len(right)]


def _aligned_panels(panels: int) -> np.ndarray:
    """(panels, steps of four rows, columns) 32-bit words, at an address suitable for vector
    loads.
    """
    shape = (panels, _PACKED // 4, _WIDTH)
    size = int(np.prod(shape))
    room = np.empty(size + 16, np.uint32)
    start = -room.ctypes.data % 64 // 4
    return room[start : start + size].reshape(shape)


@njit(cache=True, nogil=True)
def _pack(
    codes: np.ndarray,
    rows: np.ndarray,
    columns: np.ndarray,
    shifted: np.ndarray,
    plain: np.ndarray,
    first: int,
    last: int,
) -> None:
    """Fill panels first .. last-1 with the codes, four rows per word, with zeros after the last
    row.
    """
    flip = np.uint32(_FLIP)
    whole = len(rows) // 4
    for panel in range(first, last):
        own = columns[panel * _WIDTH : (panel + 1) * _WIDTH]
        plain[panel, whole:] = 0
        for step in range(whole):
            a = rows[4 * step]
            b = rows[4 * step + 1]
            c = rows[4 * step + 2]
            d = rows[4 * step + 3]
            words = plain[panel, step]
            flipped = shifted[panel, step]
            for k in range(_WIDTH):
                j = own[k]
                word = _word(codes[a + j], codes[b + j], codes[c + j], codes[d + j])
                words[k] = word
                flipped[k] = word ^ flip
        for place in range(len(rows) - 4 * whole):
            for k in range(_WIDTH):
                code = codes[rows[4 * whole + place] + own[k]]
                byte = _word(code, 0, 0, 0)
                plain[panel, whole, k] |= byte << np.uint32(8 * place)
        for step in range(whole, plain.shape[1]):
            for k in range(_WIDTH):
                shifted[panel, step, k] = plain[panel, step, k] ^ flip


@njit(cache=True, nogil=True)
def _word(one: int, two: int, three: int, four: int) -> np.uint32:
    """Four codes as the bytes of a word."""
    byte = np.uint32(255)
    first = np.uint32(one) & byte
    second = (np.uint32(two) & byte) << np.uint32(8)
    third = (np.uint32(three) & byte) << np.uint32(16)
    fourth = (np.uint32(four) & byte) << np.uint32(24)
    return np.uint32(first | second | third | fourth)


@intrinsic
def _add_tile(
    typing: object, a: object, b: object, steps: object, stride: object, c: object, width: object
) -> tuple[Signature, Callable[..., ir.Value]]:
    """c <- c + A'B for one tile: the addresses of A (uint8), of B (int8) and of c (int32), whose
    rows are `width` apart.
    """

    def generate(
        context: Any, builder: ir.IRBuilder, signature: object, given: list[ir.Value]
    ) -> ir.Value:
        a, b, steps, stride, c, width = given
        word, size = ir.IntType(32), ir.IntType(64)
        vector = ir.VectorType(word, 16)
        get_function: Callable[..., ir.Function] = cgutils.get_or_insert_function  # untyped
        add_products = get_function(
            builder.module, ir.FunctionType(vector, [vector] * 3), "llvm.x86.avx512.vpdpbusd.512"
        )

        def number(value: int) -> ir.Constant:
            return ir.Constant(size, value)

        def pointer(base: ir.Value, offset: ir.Value, kind: ir.Type) -> ir.Value:
            return builder.inttoptr(builder.add(base, offset), kind.as_pointer())

        def load(base: ir.Value, offset: int, kind: ir.Type, align: int) -> ir.Value:
            value = builder.load(pointer(base, number(offset), kind))
            value.align = align
            return value

        def repeated(value: ir.Value) -> ir.Value:
            """A vector of 16 times the word."""
            first = builder.insert_element(undefined, value, ir.Constant(word, 0))
            return builder.shuffle_vector(first, undefined, ir.Constant(vector, [0] * 16))

        undefined = ir.Constant(vector, ir.Undefined)
        before = builder.block
        loop, after = (builder.append_basic_block(name) for name in ("steps", "end"))
        builder.branch(loop)
        builder.position_at_end(loop)
        step = builder.phi(size)
        sums = [builder.phi(vector) for _ in range(_HEIGHT * _VECTORS)]
        offset = builder.mul(step, stride)
        step_of_a = builder.add(a, offset)
        step_of_b = builder.add(b, offset)
        columns = [load(step_of_b, 64 * v, vector, 64) for v in range(_VECTORS)]
        new_sums: list[ir.Value] = []
        for row in range(_HEIGHT):
            four = repeated(load(step_of_a, 4 * row, word, 4))
            for v in range(_VECTORS):
                old_sum = sums[len(new_sums)]
                new_sums.append(builder.call(add_products, [old_sum, four, columns[v]]))
        next_step = builder.add(step, number(1))
        step.add_incoming(number(0), before)
        step.add_incoming(next_step, loop)
        for phi, value in zip(sums, new_sums):
            phi.add_incoming(ir.Constant(vector, [0] * 16), before)
            phi.add_incoming(value, loop)
        builder.cbranch(builder.icmp_signed("<", next_step, steps), loop, after)
        builder.position_at_end(after)
        for k, value in enumerate(new_sums):
            row = builder.mul(width, number(4 * (k // _VECTORS)))
            place = pointer(c, builder.add(row, number(64 * (k % _VECTORS))), vector)
            old = builder.load(place)
            old.align = 4
            builder.store(builder.add(old, value), place).align = 4
        return context.get_dummy_value()

    address, number_type = types.uintp, types.intp
    arguments = address, address, number_type, number_type, address, number_type
    return types.void(*arguments), generate


@njit(cache=True, nogil=True)
def _add_tiles(
    shifted: np.ndarray, plain: np.ndarray, sums: np.ndarray, first: int, last: int, threads: int
) -> None:
    """sums <- sums + the panels' products, on and above the diagonal; thread k of `threads` takes
    panels k, k + threads, ...
    """
    steps = shifted.shape[1]
    stride = 4 * _WIDTH
    height, width = sums.shape
    a = shifted.ctypes.data
    b = plain.ctypes.data
    c = sums.ctypes.data
    for k in range(first, last):
        for j in range(k, width // _WIDTH, threads):
            for i in range(min(j + 1, height // _WIDTH)):
                for row in range(0, _WIDTH, _HEIGHT):
                    # numba passes the first argument of an intrinsic
                    _add_tile(
                        a + i * steps * stride + 4 * row,
                        b + j * steps * stride,
                        steps,
                        stride,
                        c + 4 * ((i * _WIDTH + row) * width + j * _WIDTH),
                        width,
                    )  # type: ignore[call-arg]


@njit(cache=True, nogil=True)
def _add_sums(sums: np.ndarray, sign: int, totals: np.ndarray, first: int, last: int) -> None:
    """totals <- totals + sign (sums - those of the first row) in rows first .. last-1, from the
    diagonal on.
    """
    for i in range(first, last):
        for j in range(i, totals.shape[1]):
            totals[i, j] += sign * (sums[i, j] - sums[0, j])
