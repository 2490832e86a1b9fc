"""Values shared by the trials of one training, cached by their inputs."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, TypeVar

T = TypeVar("T")


class Cache:
    """One value of each kind, recomputed when its key changes.

    Features of many inputs take longest to draw, and two sets of them may not fit into memory. So a
    new value of a kind replaces the last one, which is dropped first.
    """

    def __init__(self) -> None:
        self._entries: dict[str, tuple[Hashable, Any]] = {}

    def get(self, kind: str, key: Hashable, make: Callable[[], T]) -> T:
        """The value of that kind for the key: the cached one, or the result of `make`."""
        if kind in self._entries and self._entries[kind][0] == key:
            kept: T = self._entries[kind][1]
            return kept
        self._entries.pop(kind, None)
        value = make()
        self._entries[kind] = (key, value)
        return value

    def keep_only(self, *kinds: str) -> None:
        """Drop the values of all other kinds."""
        self._entries = {kind: self._entries[kind] for kind in kinds if kind in self._entries}


class Same:
    """A key for an object itself: equal only to the same object."""

    def __init__(self, value: object) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and other.value is self.value

    def __hash__(self) -> int:
        return id(self.value)
