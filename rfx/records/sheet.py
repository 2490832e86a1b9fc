"""A CSV file to which processes append rows, read by column name.

A row is one line, forced to the disk before `append` returns, under a lock of the file; existing
content is never rewritten. A line truncated by a killed writer is skipped, and ended by the next
writer. A file that another program rearranged is refused.
"""

import csv
import errno
import fcntl
import io
import json
import math
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from rfx import files
from rfx.errors import DataError

AnyPath: TypeAlias = str | Path

# Spreadsheets execute a cell that starts with one of these; an original leading ' is also escaped.
_RUN = frozenset("=+-@\t\r＝＋－＠")
_TRUTHS = {"true": True, "false": False}
_CONSTANTS = {"NaN": None, "Infinity": math.inf, "-Infinity": -math.inf}


@dataclass(frozen=True)
class Form:
    """The content of a kind of file.

    what: its name in messages. types: of the columns, in this order: int, float, bool, str, or dict
    for JSON. needed: columns that every row has.
    """

    what: str
    types: Mapping[str, type]
    needed: frozenset[str]


# ------------------------------------------------------------------------------------------ cells


def safe(text: str) -> str:
    """`text` as a cell that no spreadsheet executes; `plain` is the inverse."""
    return (
        f"'{text}" if text[:1] in _RUN or (text[:1] == "'" and text[1:2] in _RUN | {"'"}) else text
    )


def plain(cell: str) -> str:
    """The original text of a result of `safe`."""
    return cell[1:] if cell[:1] == "'" and cell[1:2] in _RUN | {"'"} else cell


def cell(value: Any) -> str:
    """One cell. Line ends become spaces, so that a row is always one line; numbers read back
    unchanged.
    """
    if hasattr(value, "item"):
        value = value.item()
    if value is None:
        return ""
    if isinstance(value, bool | int | float):
        return repr(value).lower()
    if isinstance(value, (Mapping, list, tuple)):
        value = json.dumps(value, sort_keys=True, default=_unusual)
    return safe(" ".join(str(value).replace("\0", " ").splitlines()))


def _unusual(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    return value.item() if hasattr(value, "item") else str(value)


def _value(text: str, kind: type) -> Any:
    """The value of a cell; a measurement that is not a number is None. ValueError if it is
    invalid.
    """
    if kind is dict:
        entries = json.loads(text or "{}", parse_constant=_CONSTANTS.get)
        if not isinstance(entries, dict):
            raise ValueError("is not a JSON table")
        return entries
    if not text:
        return None
    if kind is bool:
        return _TRUTHS[text]
    if kind is str:
        return plain(text)
    number = kind(text)
    return None if number != number else number


# ------------------------------------------------------------------------------------------ writing


def check(path: AnyPath, form: Form) -> None:
    """Raise DataError if `append` could not add a row to the file `path`; nothing is created or
    changed.
    """
    place = Path(path)
    with _errors(path, form, "written"):
        if not str(path):
            raise OSError(errno.ENOENT, "a file name is required")
        if place.exists():
            with files.open_regular(place, "rb+") as file:
                _check_header(file.readline(), path, form)
            return
        folder = next(folder for folder in place.absolute().parents if folder.exists())
        code = errno.EACCES if folder.is_dir() else errno.ENOTDIR
        if not (folder.is_dir() and os.access(folder, os.W_OK)):
            raise OSError(code, os.strerror(code))


def append(path: AnyPath, rows: list[dict[str, Any]], form: Form) -> None:
    """Append `rows` to the file `path` in one write and force them to the disk; the first write
    includes the header.

    Raises DataError if the file can't be written or is another file, ValueError for an unknown
    column.
    """
    unknown = {name for row in rows for name in row} - form.types.keys()
    if unknown:
        raise ValueError(f"no such column: {', '.join(sorted(unknown))}")
    path, header = Path(path), _line(form.types)
    lines = b"".join(_line(cell(row.get(name)) for name in form.types) for row in rows)
    with _errors(path, form, "written"):
        path.parent.mkdir(parents=True, exist_ok=True)
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666)
        try:
            # Held for one write only; a runner's lock, for a whole plan, is another file.
            fcntl.flock(fd, fcntl.LOCK_EX)
            first = os.pread(fd, len(header), 0)
            new = _is_unfinished(first, form)
            if new:
                # Empty, or killed within the header: no row can be lost.
                os.ftruncate(fd, 0)
            elif first != header:
                _check_header(os.pread(fd, os.fstat(fd).st_size, 0), path, form)
                raise OSError(errno.EINVAL, "its columns differ from those that rfx writes")
            _write_all(fd, header + lines if new else _end_of_last_line(fd) + lines)
            os.fsync(fd)
        finally:
            os.close(fd)
        if new:
            _sync_folder(path.parent)


@contextmanager
def _errors(path: AnyPath, form: Form, done: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise DataError(
            f"{files.shown(path)} can't be {done} as a {form.what}: {error.strerror or error}"
        ) from error


def _line(cells: Iterable[str]) -> bytes:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerow(cells)
    return out.getvalue().encode(errors="replace")


def _is_unfinished(first: bytes, form: Form) -> bool:
    """Whether a file that begins in this way is empty, or was left by a writer killed within the
    header.
    """
    header = _line(form.types)
    return len(first) < len(header) and header.startswith(first)


def _end_of_last_line(fd: int) -> bytes:
    """The text that ends the last line if a killed writer truncated it; else empty."""
    size = os.fstat(fd).st_size
    if os.pread(fd, 1, size - 1) == b"\n":
        return b""
    # closing an open quote keeps other CSV readers from joining the line with the next one
    quotes = os.pread(fd, size, 0).rpartition(b"\n")[2].count(b'"')
    return b'"\n' if quotes % 2 else b"\n"


def _write_all(fd: int, data: bytes) -> None:
    """Write all of it or nothing: a partial write to a full disk is undone."""
    size = os.fstat(fd).st_size
    try:
        while data:
            data = data[os.write(fd, data) :]
    except OSError:
        os.ftruncate(fd, size)
        raise


def _sync_folder(folder: Path) -> None:
    fd = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


# ------------------------------------------------------------------------------------------ reading


def read(
    path: AnyPath, form: Form, torn: list[int] | None = None
) -> Iterator[tuple[int, dict[str, Any]]]:
    """(line number, values by name) of every complete row, for the columns of the form.

    torn: receives, as the rows are read, the numbers of skipped lines, which a killed writer
    truncated.

    Rows appended during reading are not included. Raises DataError if the file is unreadable or
    another file, and, with line and column, for an invalid value.
    """
    with _errors(path, form, "read"), files.open_regular(path) as file:
        fcntl.flock(file, fcntl.LOCK_SH)
        content = file.read()
    if _is_unfinished(content, form):
        return
    names = _check_header(content, path, form)
    for number, line in enumerate(content.decode(errors="replace").split("\n")[1:], 2):
        name, cells = "", []
        try:
            cells = next(csv.reader([line]), [])
            if len(cells) > len(names):
                raise DataError(
                    f"{path}, line {number}: {len(cells)} fields where {len(names)} are expected"
                )
            values: dict[str, Any] = dict.fromkeys(form.types)
            for name, text in zip(names, cells) if len(cells) == len(names) else ():
                values[name] = _value(text, form.types[name])
                if values[name] is None and name in form.needed:
                    raise ValueError("is empty")
        except (csv.Error, ValueError, KeyError, RecursionError) as error:
            shown = dict(zip(names, cells)).get(name, line)
            reason = str(error) if str(error).startswith("is ") else "can't be read"
            raise DataError(
                f"{path}, line {number}: the column {name} holds {shown[:40]!r}, which {reason};"
                " fix or remove that line"
            ) from None
        if len(cells) == len(names):
            yield number, values
        elif torn is not None and line.strip():
            torn.append(number)


def _check_header(content: bytes, path: AnyPath, form: Form) -> list[str]:
    """The columns of a file that begins with `content`; DataError if it is another file."""
    line = content.partition(b"\n")[0].decode(errors="replace")
    names = line.split(",")
    if not _is_unfinished(content, form) and not form.needed <= set(names) <= form.types.keys():
        raise DataError(
            f"{path} is not an rfx {form.what}, or another program rearranged it: its first line"
            f" starts with {line[:60]!r}, not with {','.join(form.types)[:60]!r}; use another file"
        )
    return names
