"""User registries: names for the user's files, in the file or folder that RFX_DATASETS names, else
~/.config/rfx/datasets.toml.

    [people]
    train = "people.csv"      # next to this file
    test = "people-test.csv"  # optional
    task = "binary"           # optional

Other keys, all optional: title, target, ignore, categorical, dates, header, missing, zero_based,
encoding.
"""

import os
import re
import tomllib
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from rfx import env
from rfx.data import encodings
from rfx.data.reading import MISSING, Reading
from rfx.errors import UsageError, or_near, quoted

TASKS = ("binary", "multiclass", "regression")
_TEXT, _FLAG = "words", "true or false"
_FIELDS: dict[str, str | tuple[str, ...]] = {
    "train": _TEXT,
    "test": _TEXT,
    "task": TASKS,
    "title": _TEXT,
    "target": _TEXT,
    "ignore": "a list of columns",
    "header": _FLAG,
    "missing": MISSING,
    "zero_based": _FLAG,
    "encoding": _TEXT,
    "categorical": "a list of columns",
    "dates": "a list of columns",
}


@dataclass(frozen=True)
class OwnSet:
    """The name, its registry, the paths of the training and optional test rows, and the task if
    given.
    """

    name: str
    registry: str
    train: str
    test: str | None
    task: str | None
    title: str
    reading: Reading

    @property
    def paths(self) -> list[str]:
        return [self.train] + ([] if self.test is None else [self.test])


def files() -> list[Path]:
    """The existing registries. UsageError if RFX_DATASETS names none."""
    folder = Path(os.environ.get("XDG_CONFIG_HOME") or env.home_dir() / ".config")
    usual, named = folder / "rfx" / "datasets.toml", os.environ.get("RFX_DATASETS")
    place = Path(named) if named else usual
    if named and not place.exists():
        raise UsageError(
            f"RFX_DATASETS is {named!r:.200}, which does not exist; it must be a registry file or a"
            " folder that contains one"
        )
    if named and place.is_dir():
        return sorted(place.glob("*.toml"))
    return [place] if os.path.lexists(place) else []


def read(taken=lambda name: False) -> dict[str, OwnSet]:
    """All sets of all registries by name; taken: whether a name belongs to another data set.

    Raises
    ------
    UsageError
        With the file and the data set.
    """
    sets: dict[str, OwnSet] = {}
    for path in files():
        try:
            status = path.stat()
            parsed = _parsed(os.path.realpath(path), status.st_mtime_ns, status.st_size)
        except OSError as error:
            raise UsageError(
                f"the registry {path} can't be read: {error.strerror or error}"
            ) from None
        for name in parsed:
            if taken(name) or name in sets:
                other = sets[name].registry if name in sets else "rfx itself"
                raise UsageError(
                    f"{path}: {name} is the name of a data set of {other}; choose another"
                )
        sets |= parsed
    return sets


@lru_cache
def _parsed(path: str, mtime: int, size: int) -> dict[str, OwnSet]:
    try:
        entries = tomllib.loads(Path(path).read_text("utf-8-sig"))
    except (ValueError, RecursionError) as error:  # of bytes that are not UTF-8 too
        raise UsageError(f"{path} is not TOML: {error!s:.200}") from None
    try:
        return {name: _entry(path, name, entry) for name, entry in entries.items()}
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from None


def _entry(path: str, name: str, entry) -> OwnSet:
    if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}", name):
        raise UsageError(
            f"a data set can't be called {quoted(name)}; a name is made of letters, digits, _, -"
            " and ., 100 at most"
        )
    if not isinstance(entry, dict) or "train" not in entry:
        raise UsageError(
            f"{name} is {quoted(entry)}; it must be a table [{name}] with train = FILE"
        )
    for key, value in entry.items():
        if key not in _FIELDS:
            raise UsageError(f"{name} has an unknown field {quoted(key)}{or_near(key, _FIELDS)}")
        if not _is_good(value, wanted := _FIELDS[key]):
            shown = f"one of {', '.join(wanted)}" if isinstance(wanted, tuple) else wanted
            raise UsageError(f"{key} of {name} is {quoted(value)}; it must be {shown}")
    if "encoding" in entry:
        encodings.known(entry["encoding"], f"encoding of {name}")
    # relative to the registry; ~ is a home folder
    train, test = (
        os.path.join(os.path.dirname(path), os.path.expanduser(entry.get(role, "")))
        for role in ("train", "test")
    )
    options: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value
        for key, value in entry.items()
        if key not in ("train", "test", "task", "title")
    }
    reading = Reading(**options)
    title, task = entry.get("title", f"of {path}"), entry.get("task")
    return OwnSet(name, path, train, test if "test" in entry else None, task, title, reading)


def _is_good(value: object, wanted: str | tuple[str, ...]) -> bool:
    """Whether a field has a value of the kind required by _FIELDS."""
    if isinstance(wanted, tuple):
        return isinstance(value, str) and value in wanted
    if wanted == _FLAG:
        return isinstance(value, bool)
    if wanted == _TEXT:
        return isinstance(value, str) and value != "" and "\0" not in value
    return isinstance(value, list) and all(isinstance(column, str) for column in value)
