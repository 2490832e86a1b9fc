"""Features in memory as 8-bit or 16-bit integers with a factor per row: two or four times as many
rows fit, and reading is faster.

The error of a code is at most half a unit and behaves randomly in sums over features or rows. A
solution is found with codes; its quality is measured with the features themselves.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import DTypeLike

from rfx import parallel
from rfx.compiled import njit
from rfx.losses import Loss
from rfx.operators.matrix import READ, Matrix, WalkedMatrix, add_rows, dot_rows
from rfx.types import Index

# the type of codes
Kind: TypeAlias = type[np.signedinteger[Any]]
# MiB of features above which computing codes takes less time than new memory.
WORTH_MB = 1024
_FAST = {"reassoc", "contract", "nsz", "arcp"}
# Rows whose float32 sum is added to the float64 one.
_TOGETHER = 512
_SAMPLE = 64
# Entries that are compared with as many others at a time.
_LANES = 64
_float = np.float32


def code_type(Z: Matrix, error: float) -> Kind | None:
    """The smallest type of codes that changes no row of Z by more than the square root of `error`
    in total; None if there is none.

    It is determined from 64 random rows.
    """
    if Z.exact:
        return None
    largest = np.abs(Z.subset(_SAMPLE)[0].to_array()).max(initial=0.0)
    for kind in (np.int8, np.int16):
        # errors are uniform within half a unit
        if Z.shape[1] * (float(largest) / np.iinfo(kind).max) ** 2 / 12 <= error:
            return kind
    return None


def coded(Z: Matrix, kind: DTypeLike) -> CodedMatrix:
    """All rows of Z as codes of that type, in memory."""
    store, numbers = Codes.empty(*Z.shape, kind, Z.dtype), np.arange(Z.shape[0])

    def part(first: int, last: int) -> None:
        places = numbers[first:last]
        for rows, block in Z.cached_blocks(first, last):
            store.put(places[rows], block)

    parallel.for_ranges(part, len(numbers), smallest=256)
    return store.at(numbers)


class Codes:
    """codes (n, D), int8 or int16, of n rows of features of type `dtype`, each with its unit
    (n,).
    """

    def __init__(self, codes: np.ndarray, units: np.ndarray, dtype: DTypeLike) -> None:
        self.codes, self.units, self.dtype = codes, units, np.dtype(dtype)

    @classmethod
    def empty(cls, count: int, width: int, kind: DTypeLike, dtype: DTypeLike) -> Codes:
        """Space for `count` rows of `width` features; kind: int8 or int16."""
        return cls(np.empty((count, width), kind), np.zeros(count, np.float32), dtype)

    def __len__(self) -> int:
        return len(self.codes)

    def put(self, places: np.ndarray, Z: np.ndarray) -> None:
        """Store the rows of Z (k, D), C-contiguous, at these positions (k,)."""
        largest = np.iinfo(self.codes.dtype).max
        parallel.for_ranges(
            lambda a, b: _encode(Z[a:b], places[a:b], largest, self.codes, self.units),
            len(Z),
            smallest=16,
        )

    def at(self, places: np.ndarray) -> CodedMatrix:
        """The rows at these positions (k,)."""
        return CodedMatrix(self, places)


class CodedMatrix(WalkedMatrix):
    """Rows, selected by an integer array, of Codes; its parts are features again."""

    cost = READ / 2

    def __init__(self, store: Codes, index: np.ndarray) -> None:
        self.store, self.index, self.dtype = store, index, store.dtype
        self.shape = (len(index), store.codes.shape[1])

    def rows(self, index: Index) -> Matrix:
        return CodedMatrix(self.store, self.index[index])

    def columns(self, index: Index) -> Matrix:
        if isinstance(index, slice):
            return self._copy(
                np.ascontiguousarray(
                    self.store.codes[self.index, slice(*index.indices(self.shape[1]))]
                )
            )
        return self._copy(np.ascontiguousarray(self.store.codes[self.index[:, None], index]))

    def hold(self, max_mb: float = np.inf) -> Matrix:
        return self._copy(self.store.codes[self.index])

    def _copy(self, codes: np.ndarray) -> Matrix:
        return Codes(codes, self.store.units[self.index], self.dtype).at(np.arange(self.shape[0]))

    def to_array(self, out: np.ndarray | None = None) -> np.ndarray:
        out = np.empty(self.shape, self.dtype) if out is None else out
        parallel.for_ranges(
            lambda a, b: _decode(self.store.codes, self.index[a:b], self.store.units, out[a:b]),
            self.shape[0],
            smallest=16,
        )
        return out

    def matvec(self, W: np.ndarray) -> np.ndarray:
        if W.ndim > 1:
            return super().matvec(W)
        out, w, store = (
            np.empty(self.shape[0]),
            np.ascontiguousarray(W, dtype=np.float64),
            self.store,
        )
        parallel.for_ranges(
            lambda a, b: dot_rows(store.codes, self.index[a:b], w, out[a:b]),
            len(out),
            smallest=16,
        )
        out *= store.units[self.index]
        return out

    def rmatvec(self, U: np.ndarray) -> np.ndarray:
        if U.ndim > 1:
            return super().rmatvec(U)
        out, used = np.zeros(self.shape[1]), np.flatnonzero(U)
        rows = self.index[used]
        u = U[used] * self.store.units[rows]
        parallel.for_ranges(
            lambda a, b: add_rows(self.store.codes, rows, u, out, a, b), len(out), smallest=256
        )
        return out

    def normal(self, P: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
        """As usual, but with float32 sums over the features and over up to 512 rows: sufficient for
        directions.
        """
        if P.ndim > 1:
            return super().normal(P, weights)
        factors = self.store.units[self.index].astype(np.float64) ** 2
        factors = (factors if weights is None else factors * weights).astype(np.float32)
        p = P.astype(np.float32)
        return self._summed(
            lambda some, sums, room: _add_normal(
                self.store.codes, self.index[some], factors[some], p, sums
            ),
            _TOGETHER,
            np.float32,
        )

    def _walk(self, w: np.ndarray, loss: Loss, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        codes, units, F = self.store.codes, self.store.units, np.empty(self.shape[0])

        def add(some: slice, sums: np.ndarray, room: Any) -> None:
            rows = self.index[some]
            dot_rows(codes, rows, w, F[some])
            F[some] *= units[rows]
            u = loss.derivative(F[some], y[some])
            used = np.flatnonzero(u)
            rows = rows[used]
            _add(codes, rows, u[used].astype(np.float32) * units[rows], sums)

        return F, self._summed(add, _TOGETHER)


@njit(cache=True, nogil=True, fastmath=_FAST | {"nnan"})
def _largest(z: np.ndarray, room: np.ndarray) -> np.float32:
    """The largest magnitude of an entry, from those of every 64th in `room`, which a processor
    compares all at once.
    """
    room[:] = 0
    whole = len(z) - len(z) % _LANES
    for start in range(0, whole, _LANES):
        part = z[start : start + _LANES]
        for k in range(_LANES):
            room[k] = max(room[k], _float(abs(part[k])))
    largest = _float(0)
    for k in range(_LANES):
        largest = max(largest, room[k])
    for j in range(whole, len(z)):
        largest = max(largest, _float(abs(z[j])))
    return largest


@njit(cache=True, nogil=True, fastmath=_FAST | {"nnan"})
def _encode(
    Z: np.ndarray, places: np.ndarray, limit: int, codes: np.ndarray, units: np.ndarray
) -> None:
    half, room = _float(0.5), np.empty(_LANES, np.float32)
    for i in range(len(Z)):
        z, row = Z[i], codes[places[i]]
        largest = _largest(z, room)
        units[places[i]] = largest / _float(limit)
        factor = _float(limit) / largest if largest > 0 else _float(0)
        for j in range(len(z)):
            row[j] = np.int32(np.floor(_float(z[j] * factor) + half))


@njit(cache=True, nogil=True)
def _decode(codes: np.ndarray, rows: np.ndarray, units: np.ndarray, out: np.ndarray) -> None:
    for i in range(len(rows)):
        row, unit, z = codes[rows[i]], units[rows[i]], out[i]
        for j in range(len(z)):
            z[j] = unit * _float(row[j])


@njit(cache=True, nogil=True, fastmath=_FAST)
def _add(codes: np.ndarray, rows: np.ndarray, u: np.ndarray, g: np.ndarray) -> None:
    """g <- g + codes[rows]'u for float32 u and float64 g, the sums of eight rows in float32."""
    count, width = len(rows), len(g)
    for i in range(0, count - 7, 8):
        za, zb, zc, zd = codes[rows[i]], codes[rows[i + 1]], codes[rows[i + 2]], codes[rows[i + 3]]
        ze, zf, zg, zh = (
            codes[rows[i + 4]],
            codes[rows[i + 5]],
            codes[rows[i + 6]],
            codes[rows[i + 7]],
        )
        ua, ub, uc, ud, ue, uf, ug, uh = (
            u[i],
            u[i + 1],
            u[i + 2],
            u[i + 3],
            u[i + 4],
            u[i + 5],
            u[i + 6],
            u[i + 7],
        )
        for j in range(width):
            low = ua * _float(za[j]) + ub * _float(zb[j]) + uc * _float(zc[j]) + ud * _float(zd[j])
            g[j] += low + (
                ue * _float(ze[j]) + uf * _float(zf[j]) + ug * _float(zg[j]) + uh * _float(zh[j])
            )
    for i in range(count - count % 8, count):
        z, a = codes[rows[i]], u[i]
        for j in range(width):
            g[j] += a * _float(z[j])


@njit(cache=True, nogil=True, fastmath=_FAST)
def _add_normal(
    codes: np.ndarray, rows: np.ndarray, factors: np.ndarray, p: np.ndarray, g: np.ndarray
) -> None:
    """g <- g + C' diag(factors) C p for C = codes[rows], eight rows at a time, each read
    from memory once.
    """
    count, width = len(rows), len(p)
    for i in range(0, count - 7, 8):
        za, zb, zc, zd = codes[rows[i]], codes[rows[i + 1]], codes[rows[i + 2]], codes[rows[i + 3]]
        ze, zf, zg, zh = (
            codes[rows[i + 4]],
            codes[rows[i + 5]],
            codes[rows[i + 6]],
            codes[rows[i + 7]],
        )
        a, b, c, d, e, f, x, y = (
            _float(0),
            _float(0),
            _float(0),
            _float(0),
            _float(0),
            _float(0),
            _float(0),
            _float(0),
        )
        for j in range(width):
            q = p[j]
            a += _float(za[j]) * q
            b += _float(zb[j]) * q
            c += _float(zc[j]) * q
            d += _float(zd[j]) * q
            e += _float(ze[j]) * q
            f += _float(zf[j]) * q
            x += _float(zg[j]) * q
            y += _float(zh[j]) * q
        a, b, c, d = a * factors[i], b * factors[i + 1], c * factors[i + 2], d * factors[i + 3]
        e, f, x, y = e * factors[i + 4], f * factors[i + 5], x * factors[i + 6], y * factors[i + 7]
        for j in range(width):
            low = a * _float(za[j]) + b * _float(zb[j]) + c * _float(zc[j]) + d * _float(zd[j])
            g[j] += low + (
                e * _float(ze[j]) + f * _float(zf[j]) + x * _float(zg[j]) + y * _float(zh[j])
            )
    for i in range(count - count % 8, count):
        z, a = codes[rows[i]], _float(0)
        for j in range(width):
            a += _float(z[j]) * p[j]
        a *= factors[i]
        for j in range(width):
            g[j] += a * _float(z[j])
