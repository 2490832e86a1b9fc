"""A person's own registry: names for files of theirs, in the file or folder that RFX_DATASETS names, else ~/.config/rfx/datasets.toml.

[people]
train = "people.csv"        # beside this file
test = "people-test.csv"    # perhaps
task = "binary"             # perhaps; also title, target, ignore, header, missing, zero_based
"""

import os
import re
import tomllib
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from rfx.data.reading import MISSING, Reading
from rfx.errors import UsageError, or_near, quoted

TASKS = ("binary", "multiclass", "regression")
_LARGEST = 1 << 20  # bytes of a registry
_TEXT, _FLAG = "words", "true or false"
_FIELDS = {
    "train": _TEXT, "test": _TEXT, "task": TASKS, "title": _TEXT, "target": _TEXT, "ignore": "a list of columns", "header": _FLAG,
    "missing": MISSING, "zero_based": _FLAG,
}  # fmt: skip


@dataclass(frozen=True)
class OwnSet:
    """name, the registry that has it, the paths of the training and, perhaps, test rows, the task where it is said."""

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
    """The registries that there are. UsageError where RFX_DATASETS names none."""
    if named := os.environ.get("RFX_DATASETS"):
        place = Path(named)
        if not place.exists():
            raise UsageError(f"RFX_DATASETS is {named!r:.200}, which is not there; it names a registry of your own or a folder of some")
        return sorted(place.glob("*.toml")) if place.is_dir() else [place]
    usual = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "rfx" / "datasets.toml"
    return [usual] if usual.is_file() else []


def read(taken=lambda name: False) -> dict[str, OwnSet]:
    """All sets of all registries by name; taken: whether a name is another data set's. UsageError naming file and line."""
    found: dict[str, OwnSet] = {}
    for path in files():
        try:
            status = path.stat()
            for name, (line, own) in _parsed(str(path.resolve()), status.st_mtime_ns, status.st_size).items():
                if taken(name) or name in found:
                    other = found[name].registry if name in found else "rfx itself"
                    raise UsageError(f"{path}, line {line}: {name} is the name of a data set of {other}; choose another")
                found[name] = own
        except OSError as error:
            raise UsageError(f"{path} can't be read: {error.strerror or error}") from None
    return found


@lru_cache
def _parsed(path: str, mtime: int, size: int) -> dict[str, tuple[int, OwnSet]]:
    if size > _LARGEST:
        raise UsageError(f"{path} has {size:,} bytes, which no registry has")
    try:
        text = Path(path).read_bytes().decode()
        entries = tomllib.loads(text)
    except UnicodeDecodeError:
        raise UsageError(f"{path} is not text in UTF-8") from None
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        place = re.search(r"line (\d+)", str(error))
        reason = re.sub(r" \(at .*\)$", "", str(error))
        raise UsageError(f"{path}, line {place[1] if place else text.count(chr(10)) + 1}: it is not TOML: {reason:.200}") from None
    return {name: (_line(text, name), _entry(path, text, name, entry)) for name, entry in entries.items()}


def _line(text: str, name: str, key: str | None = None) -> int:
    """The line at which an entry, or one of its keys, stands."""
    at = None
    for number, line in enumerate(text.splitlines(), 1):
        if re.match(rf"\s*\[\s*[\"']?{re.escape(name)}[\"']?\s*\]", line) or (
            at is None and re.match(rf"\s*[\"']?{re.escape(name)}[\"']?\s*[=.]", line)
        ):
            at = number
        elif at is not None and re.match(r"\s*\[", line):
            break
        elif at is not None and key and re.match(rf"\s*[\"']?{re.escape(key)}[\"']?\s*[=.]", line):
            return number
    return at or 1


def _entry(path, text, name, entry) -> OwnSet:
    def refuse(message, key=None):
        raise UsageError(f"{path}, line {_line(text, name, key)}: {message}")

    if not isinstance(entry, dict):
        refuse(f"{name} is {quoted(entry)}; a table [{name}] with train = FILE is needed")
    if not re.fullmatch(r"[A-Za-z0-9_.-]+", name):
        refuse(f"a data set can't be called {quoted(name)}; letters, digits, _, - and . make a name")
    for key, value in entry.items():
        if key not in _FIELDS:
            refuse(f"{name} has a field {quoted(key)}, which there is not{or_near(key, _FIELDS)}", key)
        wanted = _FIELDS[key]
        if isinstance(wanted, tuple):
            good, wanted = value in wanted if isinstance(value, str) else False, f"one of {', '.join(wanted)}"
        elif wanted == _FLAG:
            good = isinstance(value, bool)
        elif wanted == _TEXT:
            good = isinstance(value, str) and value != "" and "\0" not in value
        else:
            good = isinstance(value, list) and all(isinstance(column, str) for column in value)
        if not good:
            refuse(f"{key} of {name} is {quoted(value)}; it must be {wanted}", key)
    if "train" not in entry:
        refuse(f"{name} has no field train, which names the file with its training rows")
    place = Path(path).parent
    rows = {role: str(place / Path(entry[role]).expanduser()) for role in ("train", "test") if role in entry}
    for role, file in rows.items():
        if not os.path.isfile(file):
            refuse(f"{role} of {name} is {quoted(entry[role])}, but there is no file {file}", role)
    reading = Reading(
        entry.get("target"), entry.get("header"), entry.get("missing", "refuse"), tuple(entry.get("ignore", ())),
        zero_based=entry.get("zero_based") or None,
    )  # fmt: skip
    title = entry.get("title", f"of {path}")
    return OwnSet(name, path, rows["train"], rows.get("test"), entry.get("task"), title, reading)
