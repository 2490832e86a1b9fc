"""Rows that need not fit into memory: batches from a file, standard input, a generator or arrays,
epoch by epoch.

A source returns rows in order, knows its position and can go back to it. A `Stream` forms batches
of one size, shuffled within a buffer. Its position is a small dict from which another stream
continues with the same batches.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp

from rfx.counters import uniforms
from rfx.data import splits
from rfx.errors import DataError

_REPLACE = 92
# Rows X (n, d), array or CSR, their targets, and their numbers.
Part: TypeAlias = tuple[Any, np.ndarray, np.ndarray]


class Source(ABC):
    """Rows in order, with a position.

    n_inputs: columns of X, None before the first rows are read. row: the number of the next row.
    name: for messages.
    """

    n_inputs: int | None = None
    rewindable = True
    name = "the rows"
    row = 0
    begin: dict | None = None  # the position of the first row, if rows before it were learnt

    @abstractmethod
    def read(self, count: int) -> Part | None:
        """The next rows, at most `count`: X (n, d), y (n,) and their numbers from 0 (n,); None at
        the end.
        """

    @abstractmethod
    def peek(self, count: int) -> tuple[Any, np.ndarray]:
        """X and y of the first rows, at least `count` of them if available; the next `read` returns
        them again.
        """

    @abstractmethod
    def tell(self) -> dict:
        """The position of the next row, for `seek`."""

    @abstractmethod
    def seek(self, place: dict) -> None:
        """Go to a position returned by `tell`; DataError if the rows before it have changed."""

    @abstractmethod
    def rewind(self, epoch: int = 0) -> None:
        """Go to the first row, for the given epoch."""

    def further(self, end: dict) -> bool:
        """Let the rows begin behind those that ended at the position `end`, or all be new if the
        input is another one; False if there are none, and nothing changes.
        """
        return False


class ChunkedSource(Source):
    """Rows read in chunks of any size, such as pieces of a text."""

    def __init__(self) -> None:
        self._pending: tuple[Any, Any] | None = None
        self._start: Any = None
        self._used = 0

    @abstractmethod
    def _chunk(self) -> tuple[Any, Any] | None:
        """X and y of some of the next rows; None at the end."""

    @abstractmethod
    def _place(self) -> Any:
        """The position of the next chunk, for `_go`."""

    @abstractmethod
    def _go(self, place: Any) -> None:
        """Go to a position returned by `_place`, None for the first row."""

    def read(self, count: int) -> Part | None:
        parts, missing = [], count
        while missing:
            if self._pending is None:
                self._start, self._used = self._place(), 0
                self._pending = self._chunk()
                if self._pending is None:
                    break
            X, y = self._pending
            taken = slice(self._used, min(len(y), self._used + missing))
            parts.append((X[taken], y[taken]))
            missing -= taken.stop - taken.start
            self._used = taken.stop
            if self._used == len(y):
                self._pending = None
        if not parts:
            return None
        X, y = (
            parts[0]
            if len(parts) == 1
            else (_stack([X for X, _ in parts]), np.concatenate([y for _, y in parts]))
        )
        first, self.row = self.row, self.row + len(y)
        return X, y, np.arange(first, self.row)

    def tell(self) -> dict:
        inside = self._pending is not None
        return {
            "start": self._start if inside else self._place(),
            "used": self._used if inside else 0,
            "row": self.row,
        }

    def seek(self, place: dict) -> None:
        self._go(place["start"])
        self._pending, self._used = None, 0
        # the rows between the last chunk boundary and the position: boundaries after it may differ
        if (
            place["used"]
            and (skipped := self.read(place["used"])) is not None
            and len(skipped[1]) == place["used"]
        ):
            place = place | {"used": 0}
        if place["used"]:
            raise DataError(
                f"{self.name} has fewer rows than when the checkpoint was written; use the same"
                " input, or start again"
            )
        self.row = place["row"]

    def peek(self, count: int) -> tuple[Any, np.ndarray]:
        start = self.tell()["start"]
        parts = [part[:2] for part in [self.read(count)] if part]
        if self._pending is not None:
            parts.append((self._pending[0][self._used :], self._pending[1][self._used :]))
        if not parts:
            raise DataError(f"{self.name} has no rows")
        self._pending = _stack([X for X, _ in parts]), np.concatenate([y for _, y in parts])
        self._used, self._start, self.row = 0, start, 0
        return self._pending

    def rewind(self, epoch: int = 0) -> None:
        self._go(None)
        self._pending, self._used, self.row = None, 0, 0


def _stack(parts):
    return sp.vstack(parts, format="csr") if sp.issparse(parts[0]) else np.concatenate(parts)


class _Counted(Source):
    """Rows accessible by number: the position is the number of the next row."""

    def tell(self) -> dict:
        return {"row": self.row}

    def seek(self, place: dict) -> None:
        self.row = place["row"]

    def rewind(self, epoch: int = 0) -> None:
        self.row = 0

    def peek(self, count: int) -> tuple[Any, np.ndarray]:
        part = self.read(count)
        if part is None:
            raise DataError(f"{self.name} has no rows")
        self.row -= len(part[1])
        return part[:2]


class ArraySource(_Counted):
    """Rows of X (n, d), array, memory map or CSR, and y (n,); with a seed, each epoch has its own
    random order, or draws as many rows with replacement. weights: (n,) sample weights, which also
    identify the rows.
    """

    name = "the rows"

    def __init__(
        self,
        X: Any,
        y: np.ndarray,
        seed: int | None = None,
        replace: bool = False,
        weights: np.ndarray | None = None,
    ) -> None:
        self.X, self.y, self.seed, self.replace, self.weights = (
            X,
            np.asarray(y, np.float64),
            seed,
            replace,
            weights,
        )
        self.n_inputs = X.shape[1]
        self.rewind()

    def read(self, count: int) -> Part | None:
        taken = self._order[self.row : self.row + count]
        if not len(taken):
            return None
        self.row += len(taken)
        return self.X[taken], self.y[taken], taken

    def tell(self):
        return {"row": self.row, "epoch": self._epoch, "digest": self._fingerprint()}

    def _fingerprint(self):
        if not hasattr(self, "_digest"):
            digest = hashlib.blake2b(str(self.X.shape).encode(), digest_size=16)
            some = np.unique(np.linspace(0, len(self.y) - 1, 256).astype(int))
            part = self.X[some]
            digest.update(
                np.ascontiguousarray(part.toarray() if sp.issparse(part) else part).tobytes()
            )
            digest.update(self.y.tobytes())
            if self.weights is not None:
                digest.update(self.weights.tobytes())
            self._digest = digest.hexdigest()
        return self._digest

    def seek(self, place):
        if place["digest"] != self._fingerprint():
            raise DataError(
                "the rows differ from those of the checkpoint; use the same input, --stream for"
                " further rows, or start again"
            )
        self.rewind(place["epoch"])
        self.row = place["row"]

    def rewind(self, epoch=0):
        n = len(self.y)
        self._epoch, self.row = epoch, 0
        if self.replace:
            self._order = (
                uniforms(self.seed or 0, _REPLACE, epoch * n, (epoch + 1) * n, 1)[:, 0] * n
            ).astype(np.int64)
        else:
            self._order = np.arange(n) if self.seed is None else shuffled(n, self.seed, epoch)


class GeneratedSource(_Counted):
    """Rows created by a function: make(start, stop) -> X, y of the rows start .. stop-1; n_rows of
    them, or no end.
    """

    name = "the generated rows"

    def __init__(self, make: Callable, n_inputs: int, n_rows: int | None = None):
        self.make, self.n_inputs, self.n_rows = make, n_inputs, n_rows

    def read(self, count: int) -> Part | None:
        stop = self.row + count if self.n_rows is None else min(self.row + count, self.n_rows)
        if stop <= self.row:
            return None
        first, self.row = self.row, stop
        X, y = self.make(first, stop)
        return X, y, np.arange(first, stop)


def shuffled(n: int, *key: int) -> np.ndarray:
    """A random order of range(n) determined by a tuple of integers."""
    return np.argsort(splits.generator(*key).bit_generator.random_raw(n), kind="stable")


class Stream:
    """Batches (X, y, row numbers) of a source: an iterator that can resume from a position.

    batch: rows of each batch except the last of an epoch. buffer: rows shuffled together, by (seed,
    epoch, number of the buffer); 0 keeps the order. epochs: passes over the source, None for no
    end.
    """

    def __init__(
        self, source: Source, batch: int, buffer: int = 0, seed: int = 0, epochs: int | None = 1
    ):
        self.source, self.batch, self.seed, self.epochs = source, int(batch), seed, epochs
        self.shuffled = buffer > 0
        # a window is split into whole batches, so that only the last of an epoch is smaller
        self.window = max(1, -(-max(buffer, 1) // self.batch)) * self.batch
        self.epoch, self.number, self.offset, self.rows = 0, 0, 0, 0
        self._held: Any = None  # X, y and row numbers that batches are cut from
        self._start = source.tell()

    def __iter__(self) -> Stream:
        return self

    def __next__(self) -> Part:
        while self._held is None:
            if not self._fill():
                self._next_epoch()
        X, y, index = held = self._held
        part = self._order[self.offset : self.offset + self.batch]
        self.offset += len(part)
        self.rows += len(part)
        if self.offset >= len(y):
            self._held, self.offset = None, 0
            self.number += 1
            self._start = self.source.tell()
        # without shuffling, the rows read form a batch
        return (
            held if len(part) == len(y) and not self.shuffled else (X[part], y[part], index[part])
        )

    def _fill(self) -> bool:
        self._held = self.source.read(self.window)
        if self._held is None:
            return False
        n = len(self._held[1])
        self._order = (
            shuffled(n, self.seed, self.epoch, self.number) if self.shuffled else np.arange(n)
        )
        return True

    def _next_epoch(self):
        if self.epochs is not None and self.epoch + 1 >= self.epochs:
            raise StopIteration
        if self.number == 0:
            raise DataError(f"{self.source.name} has no rows")
        self.epoch, self.number = self.epoch + 1, 0
        self.source.rewind(self.epoch)
        self._start = self.source.tell()

    def position(self) -> dict:
        """The position of the next batch: plain numbers and words, for `seek` of a stream with the
        same settings.
        """
        own = {
            "batch": self.batch,
            "window": self.window,
            "shuffled": self.shuffled,
            "seed": self.seed,
        }
        return own | {
            "epoch": self.epoch,
            "number": self.number,
            "offset": self.offset,
            "rows": self.rows,
            "source": self._start,
        }

    def seek(self, position: dict) -> None:
        """Continue where another stream was; DataError if its settings or its input differ."""
        for name in ("batch", "window", "shuffled", "seed"):
            if position[name] != getattr(self, name):
                raise DataError(
                    f"the checkpoint's stream has {name} {position[name]}, this one"
                    f" {getattr(self, name)}; use the same options"
                )
        self.epoch, self.number, self.rows = position["epoch"], position["number"], position["rows"]
        self.source.seek(position["source"])
        self._held, self._start, self.offset = None, position["source"], 0
        if position["offset"]:
            if not self._fill() or len(self._held[1]) <= position["offset"]:
                raise DataError(
                    f"{self.source.name} has fewer rows than when the checkpoint was written; use"
                    " the same input, or start again"
                )
            self.offset = position["offset"]
