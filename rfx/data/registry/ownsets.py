"""User registries: names for the user's files, in the file or folder that RFX_DATASETS names, else
~/.config/rfx/datasets.toml.

    [people] train = "people.csv" # next to this file test = "people-test.csv" # optional task =
    "binary" # optional

Other keys, all optional: title, target, ignore, categorical, dates, header, missing, zero_based,
encoding.
"""

import os
import re
import stat
import tomllib
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from rfx import env, terminal
from rfx import files as rfx_files
from rfx.data import encodings
from rfx.data.reading import MISSING, Reading
from rfx.errors import UsageError, or_near, quoted

TASKS = ("binary", "multiclass", "regression")
_LARGEST = 1 << 20  # bytes of a registry
_MOST_PARTS = 100  # of a key
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
    """The existing registries. UsageError if RFX_DATASETS names none, or a folder that can't be
    listed.
    """
    if named := os.environ.get("RFX_DATASETS"):
        place = Path(named)
        try:
            if stat.S_ISDIR(os.stat(place).st_mode):
                return sorted(place / name for name in os.listdir(place) if name.endswith(".toml"))
        except FileNotFoundError:
            wanted = "it must be a registry file or a folder that contains one"
            raise UsageError(
                f"RFX_DATASETS is {named!r:.200}, which does not exist; {wanted}"
            ) from None
        except OSError as error:
            raise UsageError(
                f"RFX_DATASETS is {named!r:.200}, which can't be read: {error.strerror}"
            ) from None
        return [place]
    config, home = os.environ.get("XDG_CONFIG_HOME"), env.home_dir()
    if config:
        folder = Path(config)
    elif home is not None:
        folder = home / ".config"
    else:
        return []
    usual = folder / "rfx" / "datasets.toml"
    return [usual] if os.path.lexists(usual) else []


def read(taken=lambda name: False) -> dict[str, OwnSet]:
    """All sets of all registries by name; taken: whether a name belongs to another data set.
    UsageError with file and line.
    """
    found: dict[str, OwnSet] = {}
    for path in files():
        try:
            status = rfx_files.check_regular(path)
            for name, (line, own) in _parsed(
                os.path.realpath(path), status.st_mtime_ns, status.st_size
            ).items():
                if taken(name) or name in found:
                    other = found[name].registry if name in found else "rfx itself"
                    raise UsageError(
                        f"{path}, line {line}: {name} is the name of a data set of {other}; choose"
                        " another"
                    )
                found[name] = own
        except OSError as error:
            raise UsageError(
                f"the registry {path} can't be read: {error.strerror or error}"
            ) from None
    return found


@lru_cache
def _parsed(path: str, mtime: int, size: int) -> dict[str, tuple[int, OwnSet]]:
    text = _text(path)
    try:
        entries = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        place = re.search(r"\(at line (\d+)", str(error))
        reason = re.sub(r" \(at [^()]*\)$", "", str(error))
        raise _refusal(
            path, int(place[1]) if place else text.count("\n") + 1, f"it is not TOML: {reason:.200}"
        ) from None
    except RecursionError:
        deepest = max(
            enumerate(text.split("\n"), 1), key=lambda line: line[1].count("[") + line[1].count("{")
        )
        raise _refusal(path, deepest[0], "brackets are nested too deeply") from None
    except ValueError as error:  # of a number or a date
        long = re.search(r"\d[\d_]{4000}", text)
        line = text.count("\n", 0, long.start()) + 1 if long else 1
        raise _refusal(
            path,
            line,
            "a number has thousands of digits" if long else f"it is not TOML: {str(error):.200}",
        ) from None
    lines = _lines(text)
    return {
        name: (lines.get((name, None), 1), _entry(path, lines, name, entry))
        for name, entry in entries.items()
    }


def _refusal(path: str, line: int, message: str) -> UsageError:
    return UsageError(f"{path}, line {line}: {message}")


def _text(path: str) -> str:
    """A registry's text with normalised line ends; checked before parsing it could take long."""
    with rfx_files.open_regular(path) as file:
        raw = file.read(_LARGEST + 1)
    if len(raw) > _LARGEST:
        raise UsageError(f"{path} has more than {_LARGEST:,} bytes, the maximum for a registry")
    try:
        text = raw.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise _refusal(path, line, "it is not text in UTF-8; save it in that encoding") from None
    for number, line in enumerate(text.split("\n"), 1):
        # tomllib's work per part of a key grows with their number
        if line.count(".") > _MOST_PARTS and _STRING.sub("", line).count(".") > _MOST_PARTS:
            raise _refusal(path, number, f"a key has more than {_MOST_PARTS} parts")
    return text


_STRING = re.compile(r"""\"(?:[^"\\]|\\.)*\"|'[^']*'""")
_PART = r"""([A-Za-z0-9_-]+|"(?:[^"\\]|\\.)*"|'[^']*')"""
_TABLE = re.compile(rf"\s*\[\[?\s*{_PART}\s*(?:\.\s*{_PART})?")
_KEY = re.compile(rf"\s*{_PART}\s*(?:\.\s*{_PART})?\s*[=.]")


def _lines(text: str) -> dict[tuple[str, str | None], int]:
    """The line number of each entry, (name, None), and of each of its keys, (name, key)."""
    found: dict[tuple[str, str | None], int] = {}
    table = None
    for number, line in enumerate(text.split("\n"), 1):
        if begun := _TABLE.match(line):
            table, key = _name(begun[1]), begun[2] and _name(begun[2])
        elif begun := _KEY.match(line):
            key = _name(begun[1])
            if table is None:
                found.setdefault((key, None), number)
                found.setdefault((key, begun[2] and _name(begun[2])), number)
                continue
        else:
            continue
        found.setdefault((table, None), number)
        found.setdefault((table, key), number)
    return found


def _name(part: str) -> str:
    """A part of a key without its quotes."""
    if not part.startswith('"') or "\\" not in part:
        return part.strip("\"'")
    try:
        return next(iter(tomllib.loads(f"{part} = 0")))
    except tomllib.TOMLDecodeError:  # inside a longer string, so not a key
        return part


def _entry(path, lines, name, entry) -> OwnSet:
    def refuse(message, key=None):
        raise _refusal(path, lines.get((name, key), lines.get((name, None), 1)), message)

    if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}", name):
        refuse(
            f"a data set can't be called {quoted(name)}; a name is made of letters, digits, _, -"
            " and ., 100 at most"
        )
    if not isinstance(entry, dict):
        refuse(f"{name} is {quoted(entry)}; it must be a table [{name}] with train = FILE")
    for key, value in entry.items():
        if key not in _FIELDS:
            refuse(f"{name} has an unknown field {quoted(key)}{or_near(key, _FIELDS)}", key)
        if not _is_good(value, wanted := _FIELDS[key]):
            shown = f"one of {', '.join(wanted)}" if isinstance(wanted, tuple) else wanted
            refuse(f"{key} of {name} is {quoted(value)}; it must be {shown}", key)
    if "encoding" in entry:
        try:
            encodings.known(entry["encoding"])
        except UsageError as error:
            refuse(f"encoding of {name}: {error}".replace("--encoding is ", ""), "encoding")
    if "train" not in entry:
        refuse(f"{name} has no field train, which names the file with its training rows")
    rows = {role: _path(path, entry[role]) for role in ("train", "test") if role in entry}
    for role, file in rows.items():
        if problem := _file_problem(file):
            refuse(f"{role} of {name} is {quoted(entry[role])}, {problem}", role)
    reading = Reading(
        entry.get("target"), entry.get("header"), entry.get("missing", "refuse"),
        encoding=entry.get("encoding"), zero_based=entry.get("zero_based") or None,
        ignore=tuple(entry.get("ignore", ())), categorical=tuple(entry.get("categorical", ())),
        dates=tuple(entry.get("dates", ())),
    )  # fmt: skip
    title = entry.get("title", f"of {path}")
    return OwnSet(name, path, rows["train"], rows.get("test"), entry.get("task"), title, reading)


def _is_good(value: object, wanted: str | tuple[str, ...]) -> bool:
    """Whether a field has a value of the kind required by _FIELDS."""
    if isinstance(wanted, tuple):
        return isinstance(value, str) and value in wanted
    if wanted == _FLAG:
        return isinstance(value, bool)
    if wanted == _TEXT:
        return isinstance(value, str) and value != "" and "\0" not in value
    return isinstance(value, list) and all(isinstance(column, str) for column in value)


def _file_problem(file: str) -> str | None:
    """The problem of a data file, as the end of a message; None if it is readable."""
    try:
        rfx_files.check_regular(file)
    except FileNotFoundError:
        home = ": that user has no home folder" if file.startswith("~") else ""
        return f"but there is no file {terminal.line(file)}{home}"
    except (OSError, ValueError) as error:
        return f"which can't be read: {getattr(error, 'strerror', None) or error}"
    return None


def _path(registry: str, file: str) -> str:
    """The path of a registry's file: relative to the registry, in a home folder for ~, or
    absolute.
    """
    whole = os.path.expanduser(file)
    return (
        whole
        if os.path.isabs(whole) or whole.startswith("~")
        else os.path.join(os.path.dirname(registry), whole)
    )
