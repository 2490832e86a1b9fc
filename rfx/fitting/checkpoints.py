"""Checkpoints of a training: the complete state for a bitwise identical continuation, written
atomically.

A digest covers all parts, so that damage is found before any of them is used.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rfx import model
from rfx.errors import DataError, UsageError
from rfx.fitting.method import Method

KIND = "checkpoint"
# Options that may change when a training is resumed.
CHANGEABLE = frozenset(("budget_seconds", "budget_samples", "timeout", "epochs"))
Arrays = dict[str, np.ndarray]


@dataclass(frozen=True)
class Keeper:
    """Where and how often checkpoints are written.

    Parameters
    ----------
    path : path
    every : int or None
        Steps between checkpoints; None for a single one at the end.
    resume : bool
        Resume from the existing checkpoint.
    """

    path: Path
    every: int | None = None
    resume: bool = False

    def due(self, t: int) -> bool:
        """Whether to write a checkpoint after step t."""
        return self.every is not None and t % self.every == 0

    def write(self, method: Method, header: dict[str, Any], arrays: Arrays) -> None:
        """Write the state of a training of that method."""
        header = header | {"kind": KIND, "method": method.name, "params": method.values}
        model.write(self.path, header | {"digest": digest(header, arrays)}, arrays)

    def load(self, method: Method) -> tuple[dict[str, Any], Arrays] | None:
        """Header and arrays of the checkpoint to resume from; None to start from the beginning.

        Raises
        ------
        DataError
            For a file that is damaged, or no checkpoint.
        UsageError
            If its method or options differ.
        """
        if not self.resume or not self.path.exists():
            return None
        try:
            header, arrays = model.read(self.path)
        except DataError as error:
            if isinstance(error.__cause__, OSError):
                raise
            raise self._damaged(str(error)) from error
        if header.get("kind") != KIND:
            raise DataError(
                f"{self.path} is not a checkpoint but a model file; use the file that --checkpoint"
                " wrote"
            )
        stated = header.pop("digest", None)
        header.pop("format", None)
        if stated != digest(header, arrays):
            raise self._damaged("its parts were not written together")
        if header["method"] != method.name:
            raise UsageError(
                f"checkpoint {self.path} is of method {header['method']}, not {method.name}"
            )
        for name, value in method.values.items():
            before = header["params"].get(name)
            if name not in CHANGEABLE and before != value:
                raise UsageError(
                    f"--{name.replace('_', '-')} is {value}, but was {before} when the checkpoint"
                    f" {self.path} was written; use the same value"
                )
        return header, arrays

    @contextlib.contextmanager
    def restoring(self) -> Iterator[None]:
        """Raise DataError if the parts of a whole checkpoint are not those of this version."""
        try:
            yield
        except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
            raise self._damaged(f"{type(error).__name__}: {error}") from error

    def _damaged(self, reason: str) -> DataError:
        """The error for a checkpoint that can't be resumed."""
        return DataError(
            f"checkpoint {self.path} is damaged ({' '.join(reason.split())[:300]}), or of another"
            " version of rfx; delete it to start again, or omit --resume"
        )


def known_before(path: Any) -> dict[str, Any]:
    """The header of an existing checkpoint; empty if there is none, or the file is no checkpoint,
    which `Keeper.load` reports.
    """
    try:
        header = model.read_header(path)
    except DataError:
        return {}
    return header if header.get("kind") == KIND else {}


def digest(header: dict[str, Any], arrays: Arrays) -> str:
    """A hash of the checkpoint's content."""
    content = hashlib.blake2b(json.dumps(header, sort_keys=True).encode(), digest_size=16)
    for name in sorted(arrays):
        values = np.ascontiguousarray(arrays[name])
        # little-endian, as in the file, on every machine
        values = values.astype(values.dtype.newbyteorder("<"), copy=False)
        content.update(f"{name} {values.dtype.str} {np.shape(arrays[name])}".encode())
        content.update(values.tobytes())
    return content.hexdigest()
