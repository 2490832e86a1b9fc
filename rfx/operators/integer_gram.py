"""Exact integer Gram matrices of 8-bit codes: four products per instruction, if the processor
supports it.

AVX-512 VNNI's vpdpbusd adds four products of an unsigned and a signed byte to each of 16 32-bit
sums. One factor is therefore shifted by 128, and 128 times the sums of the other one are subtracted
at the end.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from llvmlite import binding, ir
from numba import config, types
from numba.core import cgutils
from numba.extending import intrinsic

from rfx import env, parallel
from rfx.compiled import njit

if TYPE_CHECKING:
    from rfx.operators.blocks import GramOrPair

# A tile of sums in registers: rows, and vectors of 16 columns; columns of a panel, one tile wide.
_HEIGHT, _VECTORS = 8, 3
_WIDTH = 16 * _VECTORS
# Rows packed at a time, in groups of four.
_ROWS = 1024
# Rows whose sums fit into 32 bits: at most 255 * 127 each.
_MOST = 64 * _ROWS
# Row factors that differ by less than this are treated as equal: codes themselves are off by up to
# a 254th of a row's largest entry.
_SAME = 1e-2


@lru_cache
def available() -> bool:
    """Whether the processor has the instruction, and machine code is compiled for this
    processor.
    """
    settings: Any = config
    own = settings.CPU_NAME is None and settings.CPU_FEATURES is None and not settings.DISABLE_JIT
    return own and binding.get_host_cpu_features().get("avx512vnni", False)


def one_factor(factors: np.ndarray) -> float | None:
    """The common magnitude of `factors` (n,), None if they differ."""
    sizes = np.abs(factors)
    largest = sizes.max(initial=0.0)
    return float(sizes.mean()) if largest > 0 and sizes.min() >= (1 - _SAME) * largest else None


def integer_gram(
    codes: np.ndarray,
    rows: np.ndarray,
    signs: np.ndarray,
    left: np.ndarray,
    right: np.ndarray | None = None,
) -> GramOrPair:
    """Sum over i of signs_i c_i c_i' for c_i = codes[rows_i, left]; with `right`, a pair: that and
    the same with codes[rows_i, right].

    In float64. codes: int8, -127 to 127. rows, left, right: integer arrays. signs: of nonzero
    numbers.
    """
    sides = [left] if right is None else [left, right]
    starts = [0, -(-len(left) // _WIDTH) * _WIDTH]
    columns = np.zeros(
        starts[1] + (0 if right is None else -(-len(right) // _WIDTH) * _WIDTH), np.intp
    )
    for side, start in zip(sides, starts):
        # entries beyond a side's columns are ignored
        columns[start : start + len(side)] = side
    found = [np.zeros((len(left), len(side))) for side in sides]
    sums = np.zeros((starts[1], len(columns)), np.int32)
    shifted, plain = (_aligned(len(columns) // _WIDTH) for _ in range(2))
    shifts, threads = np.zeros(len(columns), np.int64), env.threads()
    for sign, own in ((sign, rows[sign * signs > 0]) for sign in (1, -1)):
        for start in range(0, len(own), _MOST):
            sums[:], shifts[:] = 0, 0
            for first in range(start, min(start + _MOST, len(own)), _ROWS):
                some = own[first : first + _ROWS]
                parallel.for_ranges(
                    lambda a, b: _pack(codes, some, columns, shifted, plain, shifts, a, b),
                    len(columns) // _WIDTH,
                )
                parallel.for_ranges(
                    lambda a, b: _add_tiles(shifted, plain, sums, a, b, threads), threads
                )
            for place, total in zip(starts, found):
                parallel.for_ranges(
                    lambda a, b: _unpack(sums, shifts, sign, place, total, a, b), len(left), 64
                )
    _mirror(found[0])
    return found[0] if right is None else (found[0], found[1])


def _aligned(panels: int) -> np.ndarray:
    """(panels, steps of four rows, columns) 32-bit words, at an address suitable for vector
    loads.
    """
    shape = (panels, _ROWS // 4, _WIDTH)
    room = np.empty(int(np.prod(shape)) + 16, np.uint32)
    start = -room.ctypes.data % 64 // 4
    return room[start : start + int(np.prod(shape))].reshape(shape)


@njit(cache=True, nogil=True)
def _pack(
    codes: np.ndarray,
    rows: np.ndarray,
    columns: np.ndarray,
    shifted: np.ndarray,
    plain: np.ndarray,
    shifts: np.ndarray,
    first: int,
    last: int,
) -> None:
    """Panels first .. last-1 of codes[rows][:, columns], four rows per word, with zeros after the
    last row; shifts: 128 times their sums.
    """
    byte = np.uint32(255)
    for p in range(first, last):
        own = columns[p * _WIDTH : (p + 1) * _WIDTH]
        total = np.zeros(_WIDTH, np.int32)
        for t in range(shifted.shape[1]):
            if 4 * t + 4 <= len(rows):
                a, b, c, d = (
                    codes[rows[4 * t]],
                    codes[rows[4 * t + 1]],
                    codes[rows[4 * t + 2]],
                    codes[rows[4 * t + 3]],
                )
                for k in range(_WIDTH):
                    j = own[k]
                    total[k] += np.int32(a[j]) + np.int32(b[j]) + np.int32(c[j]) + np.int32(d[j])
                    low = (np.uint32(a[j]) & byte) | (np.uint32(b[j]) & byte) << np.uint32(8)
                    word = (
                        low
                        | (np.uint32(c[j]) & byte) << np.uint32(16)
                        | (np.uint32(d[j]) & byte) << np.uint32(24)
                    )
                    plain[p, t, k] = word
                    shifted[p, t, k] = word ^ np.uint32(0x80808080)
            else:
                for k in range(_WIDTH):
                    word = np.uint32(0)
                    for s in range(max(0, len(rows) - 4 * t)):
                        code = codes[rows[4 * t + s], own[k]]
                        total[k] += code
                        word |= (np.uint32(code) & byte) << np.uint32(8 * s)
                    plain[p, t, k] = word
                    shifted[p, t, k] = word ^ np.uint32(0x80808080)
        for k in range(_WIDTH):
            shifts[p * _WIDTH + k] += 128 * total[k]


@intrinsic
def _add_tile(typing: Any, a: Any, b: Any, steps: Any, stride: Any, c: Any, width: Any) -> Any:
    """c <- c + A'B for one tile: the addresses of A (uint8), of B (int8) and of c (int32), whose
    rows are `width` apart.
    """

    def made(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        a, b, steps, stride, c, width = given
        word, size = ir.IntType(32), ir.IntType(64)
        vector = ir.VectorType(word, 16)
        get_function: Any = cgutils.get_or_insert_function  # untyped
        dot = get_function(
            builder.module, ir.FunctionType(vector, [vector] * 3), "llvm.x86.avx512.vpdpbusd.512"
        )

        def number(value: Any) -> Any:
            return ir.Constant(size, value)

        def pointer(base: Any, offset: Any, kind: Any) -> Any:
            return builder.inttoptr(builder.add(base, offset), kind.as_pointer())

        def load(base: Any, offset: Any, kind: Any, align: Any) -> Any:
            value = builder.load(pointer(base, number(offset), kind))
            value.align = align
            return value

        before, loop, after = (
            builder.block,
            builder.append_basic_block("steps"),
            builder.append_basic_block("end"),
        )
        builder.branch(loop)
        builder.position_at_end(loop)
        step, sums = builder.phi(size), [builder.phi(vector) for _ in range(_HEIGHT * _VECTORS)]
        here = builder.mul(step, stride)
        own_a, own_b = builder.add(a, here), builder.add(b, here)
        columns = [load(own_b, 64 * v, vector, 64) for v in range(_VECTORS)]
        none, new = ir.Constant(vector, ir.Undefined), []
        for r in range(_HEIGHT):
            four = builder.insert_element(none, load(own_a, 4 * r, word, 4), ir.Constant(word, 0))
            four = builder.shuffle_vector(four, none, ir.Constant(vector, [0] * 16))
            new += [
                builder.call(dot, [sums[r * _VECTORS + v], four, columns[v]])
                for v in range(_VECTORS)
            ]
        more = builder.add(step, number(1))
        for phi, first, value in zip(
            [step, *sums], [number(0)] + [ir.Constant(vector, [0] * 16)] * len(sums), [more, *new]
        ):
            phi.add_incoming(first, before)
            phi.add_incoming(value, loop)
        builder.cbranch(builder.icmp_signed("<", more, steps), loop, after)
        builder.position_at_end(after)
        for k, value in enumerate(new):
            row = builder.mul(width, number(4 * (k // _VECTORS)))
            place = pointer(c, builder.add(row, number(64 * (k % _VECTORS))), vector)
            old = builder.load(place)
            old.align = 4
            builder.store(builder.add(old, value), place).align = 4
        return context.get_dummy_value()

    return types.void(
        types.uintp, types.uintp, types.intp, types.intp, types.uintp, types.intp
    ), made


@njit(cache=True, nogil=True)
def _add_tiles(
    shifted: np.ndarray, plain: np.ndarray, sums: np.ndarray, first: int, last: int, threads: int
) -> None:
    """sums <- sums + the panels' products, on and above the diagonal; thread k of `threads`
    takes panels k, k + threads, ...
    """
    steps, stride = shifted.shape[1], 4 * _WIDTH
    height, width = sums.shape
    a, b, c = shifted.ctypes.data, plain.ctypes.data, sums.ctypes.data
    for k in range(first, last):
        for j in range(k, width // _WIDTH, threads):
            for i in range(min(j + 1, height // _WIDTH)):
                for r in range(0, _WIDTH, _HEIGHT):
                    place = c + 4 * ((i * _WIDTH + r) * width + j * _WIDTH)
                    # numba passes the first
                    _add_tile(
                        a + i * steps * stride + 4 * r,
                        b + j * steps * stride,
                        steps,
                        stride,
                        place,
                        width,
                    )  # type: ignore[call-arg]


@njit(cache=True, nogil=True)
def _unpack(
    sums: np.ndarray,
    shifts: np.ndarray,
    sign: int,
    place: int,
    total: np.ndarray,
    first: int,
    last: int,
) -> None:
    """Rows first .. last-1 of total <- total + sign (sums - shifts), for the columns of sums from
    `place` on, as far as they exist.
    """
    for i in range(first, last):
        for j in range(0 if place else i, total.shape[1]):
            total[i, j] += sign * (sums[i, place + j] - shifts[place + j])


@njit(cache=True, nogil=True)
def _mirror(total: np.ndarray) -> None:
    """The lower triangle from the upper one, tile by tile."""
    n = len(total)
    for i in range(0, n, 64):
        for j in range(i, n, 64):
            for k in range(i, min(i + 64, n)):
                for m in range(max(j, k), min(j + 64, n)):
                    total[m, k] = total[k, m]
