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
from rfx.numerals import native

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
        value = json.dumps(value, sort_keys=True, default=native, separators=(",", ":"))
    return safe(" ".join(str(value).replace("\0", " ").splitlines()))


def _value(text: str, kind: type) -> Any:
    """The value of a cell; a measurement that is not a number is None. ValueError,
    KeyError or AttributeError if it is invalid.
    """
    if kind is dict:
        return dict(json.loads(text or "{}", parse_constant=_CONSTANTS.get).items())
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
    with _errors(path, form, "written"):
        if str(path) and Path(path).exists():
            with open(path, "rb+") as file:
                _check_header(file.readline(), path, form)
        else:
            folder = next(place for place in Path(path).absolute().parents if place.exists())
            files.check(folder / f"{Path(path).name}.part" if str(path) else "")


def append(path: AnyPath, rows: list[dict[str, Any]], form: Form) -> None:
    """Append `rows` to the file `path` in one write and force them to the disk; the first write
    includes the header.

    Raises DataError if the file can't be written or is another file, ValueError for an unknown
    column.
    """
    unknown = {name for row in rows for name in row} - form.types.keys()
    if unknown:
        raise ValueError(f"no such column: {', '.join(sorted(unknown))}")
    header = _line(form.types)
    lines = b"".join(_line(cell(row.get(name)) for name in form.types) for row in rows)
    with _errors(path, form, "written"):
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        with open(path, "ab+", buffering=0) as file:
            # Held for one write only; a runner's lock, for a whole plan, is another file.
            fcntl.flock(file, fcntl.LOCK_EX)
            file.seek(0)
            content = file.read()
            if _is_unfinished(content, form):
                # Empty, or killed within the header: no row can be lost.
                file.truncate(0)
                lines = header + lines
            elif not content.startswith(header):
                _check_header(content, path, form)
                raise OSError(errno.EINVAL, "its columns differ from those that rfx writes")
            elif not content.endswith(b"\n"):
                # truncated by a killed writer; closing an open quote keeps other CSV readers from
                # joining the line with the next one
                quotes = content.rpartition(b"\n")[2].count(b'"')
                lines = (b'"\n' if quotes % 2 else b"\n") + lines
            size = os.fstat(file.fileno()).st_size
            if file.write(lines) < len(lines):  # a full disk
                file.truncate(size)
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            os.fsync(file)


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


def _is_unfinished(content: bytes, form: Form) -> bool:
    """Whether a file with this content is empty, or was left by a writer killed within the
    header.
    """
    header = _line(form.types)
    return len(content) < len(header) and header.startswith(content)


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
    with _errors(path, form, "read"), open(path, "rb") as file:
        fcntl.flock(file, fcntl.LOCK_SH)
        content = file.read()
    if _is_unfinished(content, form):
        return
    names = _check_header(content, path, form)
    for number, line in enumerate(content.decode(errors="replace").split("\n")[1:], 2):
        name, text, values = "", line, dict.fromkeys(form.types)
        try:
            cells = next(csv.reader([line]), [])
            if len(cells) < len(names):
                if torn is not None and line.strip():
                    torn.append(number)
                continue
            for name, text in zip(names, cells, strict=True):
                values[name] = _value(text, form.types[name])
                if values[name] is None and name in form.needed:
                    raise ValueError(text)
        except (csv.Error, ValueError, KeyError, AttributeError, RecursionError):
            raise DataError(
                f"{path}, line {number}: the column {name} holds {text[:40]!r}, which no run writes"
                " there; fix or remove that line"
            ) from None
        yield number, values


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
