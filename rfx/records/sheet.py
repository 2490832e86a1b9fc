"""A CSV file that processes append rows to and people edit: read by column name, appended to in the
file's own column order.

A row is one line, forced to the disk before `append` returns, under a lock of the file; existing
content is never rewritten. Changes by spreadsheets and editors are harmless: a byte order mark,
semicolons or tabs instead of commas, quoted cells, reordered, removed or added columns. A line
truncated by a killed writer is skipped, and ended by the next writer.
"""

import csv
import errno
import fcntl
import io
import json
import os
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, TypeAlias

from rfx import files
from rfx.errors import DataError

AnyPath: TypeAlias = str | Path

_DELIMITERS = ",;\t"
_BOM = b"\xef\xbb\xbf"
_FIRST_LINE = 65536  # maximum bytes of the header
_LINES_OF_A_CELL = 100  # maximum lines of a cell with line breaks
_BLOCK = 256  # lines parsed at a time
# Spreadsheets execute a cell that starts with one of these; an original leading ' is also escaped.
_RUN = frozenset("=+-@\t\r＝＋－＠")


@dataclass(frozen=True)
class Form:
    """The content of a kind of file.

    what: its name in messages. columns: of a new file, in this order. needed: required columns.
    rest: the JSON column for entries without a column in the file.
    """

    what: str
    columns: tuple[str, ...]
    needed: frozenset[str]
    rest: str = ""


@dataclass(frozen=True)
class Header:
    """The columns of a file, and its separator."""

    names: list[str]
    delimiter: str = ","


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
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, int):
        return str(value)
    if isinstance(value, (Mapping, list, tuple)):
        value = json.dumps(value, sort_keys=True, default=_unusual)
    return safe(" ".join(str(value).replace("\0", " ").splitlines()))


def _unusual(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    return value.item() if hasattr(value, "item") else str(value)


# ------------------------------------------------------------------------------------------ writing


def check(path: AnyPath, form: Form) -> None:
    """Raise DataError if `append` could not add a row to the file `path`; nothing is created or
    changed.
    """
    place = Path(path)
    with _errors(path, form):
        if not str(path):
            raise OSError(errno.ENOENT, "a file name is required")
        if place.exists():
            with files.open_regular(place, "rb+") as file:
                if not _unfinished(file.fileno(), form):
                    _header_of(os.pread(file.fileno(), _FIRST_LINE, 0), path, form)
            return
        folder = next(folder for folder in place.absolute().parents if folder.exists())
        code = errno.EACCES if folder.is_dir() else errno.ENOTDIR
        if not (folder.is_dir() and os.access(folder, os.W_OK)):
            raise OSError(code, os.strerror(code))


def append(path: AnyPath, rows: list[dict[str, Any]], form: Form) -> None:
    """Append `rows` to the file `path` in one write and force them to the disk; the first write
    includes the header.

    Entries without a column in the file go into its column `form.rest`. Raises DataError if the
    file can't be written or is another file, ValueError for an unknown column.
    """
    unknown = {name for row in rows for name in row} - set(form.columns)
    if unknown:
        raise ValueError(f"no such column: {', '.join(sorted(unknown))}")
    path = Path(path)
    with _errors(path, form):
        path.parent.mkdir(parents=True, exist_ok=True)
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666)
        try:
            # Held for one write only; a runner's lock, for a whole plan, is another file.
            fcntl.flock(fd, fcntl.LOCK_EX)
            new = _unfinished(fd, form)
            if new:
                # Empty, or killed within the header: no row can be lost.
                os.ftruncate(fd, 0)
                header, start = Header(list(form.columns)), _line(form.columns, ",")
            else:
                header = _header_of(os.pread(fd, _FIRST_LINE, 0), path, form)
                start = _end_of_last_line(fd, header, path, form)
            _write_all(
                fd,
                start
                + b"".join(_line(_cells(row, header, form), header.delimiter) for row in rows),
            )
            os.fsync(fd)
        finally:
            os.close(fd)
        if new:
            _sync_folder(path.parent)


@contextmanager
def _errors(path: AnyPath, form: Form) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise DataError(
            f"{files.shown(path)} can't be written as a {form.what}: {error.strerror or error}"
        ) from error


def _cells(row: dict[str, Any], header: Header, form: Form) -> Iterator[str]:
    homeless = {
        name: value for name, value in row.items() if name not in header.names and value is not None
    }
    if homeless and form.rest in header.names:
        row = row | {form.rest: (row.get(form.rest) or {}) | {"columns": homeless}}
    first = set()
    for name in header.names:
        yield "" if name in first else cell(row.get(name))
        first.add(name)


def _line(cells: Iterable[str], delimiter: str) -> bytes:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n", delimiter=delimiter).writerow(cells)
    return out.getvalue().encode(errors="replace")


def _unfinished(fd: int, form: Form) -> bool:
    """Whether the file is empty, or its writer was killed within the header."""
    header = _line(form.columns, ",")
    first = os.pread(fd, len(header) + 1, 0)
    return len(first) < len(header) and header.startswith(first)


def _end_of_last_line(fd: int, header: Header, path: AnyPath, form: Form) -> bytes:
    """The text that ends the last line if an editor removed its end or a killed writer truncated
    it; else empty.
    """
    size = os.fstat(fd).st_size
    if os.pread(fd, 1, size - 1) == b"\n":
        return b""
    lines = _lines(os.pread(fd, size, 0))
    # a header is one line, and was read unchanged
    torn = len(lines) > 1 and not any(
        end == len(lines) for _, end, _ in _records(iter(lines[1:]), header, path, form)
    )
    # Closing an open quote prevents other CSV readers from joining the truncated line with the next
    # one.
    return b'"\n' if torn and lines[-1].count('"') % 2 else b"\n"


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
) -> tuple[Header, Iterator[tuple[int, list[str]]]]:
    """The header of the file `path`, and (line number, cells) of every complete row; an empty
    header if there is none yet.

    torn: receives, as the rows are read, the numbers of skipped lines, which a killed writer
    truncated.

    Rows appended during reading are not included. Raises DataError if the file is unreadable, not a
    regular file or another file; FileNotFoundError.
    """
    path, line = Path(path), _line(form.columns, ",")
    try:
        with files.open_regular(path) as file:
            fcntl.flock(file, fcntl.LOCK_SH)
            size = os.fstat(file.fileno()).st_size
            first = os.pread(file.fileno(), _FIRST_LINE, 0)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise DataError(
            f"{files.shown(path)} can't be read as a {form.what}: {error.strerror}"
        ) from error
    if len(first) < len(line) and line.startswith(first):
        return Header([]), iter(())
    header = _header_of(first, path, form)
    rows = _records(_read_lines(path, size, form), header, path, form, torn)
    return header, ((number, fields) for number, _, fields in rows)


def _read_lines(path: AnyPath, size: int, form: Form) -> Iterator[str]:
    """The lines of the first `size` bytes of a file after its header, without their ends."""
    try:
        with files.open_regular(path) as file:
            size -= len(file.readline())
            while size > 0 and (line := file.readline(size)):
                size -= len(line)
                yield (
                    line.removesuffix(b"\n")
                    .removesuffix(b"\r" if line.endswith(b"\r\n") else b"")
                    .decode(errors="replace")
                )
    except OSError as error:
        raise DataError(
            f"{files.shown(path)} can't be read as a {form.what}: {error.strerror}"
        ) from error


def _lines(content: bytes) -> list[str]:
    return content.replace(b"\r\n", b"\n").decode(errors="replace").split("\n")


def _header_of(content: bytes, path: AnyPath, form: Form) -> Header:
    """The header of a file that begins with `content`; DataError if it is another file."""
    line = content.removeprefix(_BOM).split(b"\n")[0].rstrip(b"\r").decode(errors="replace")
    for delimiter in _DELIMITERS:
        try:
            names = [name.strip() for name in next(csv.reader([line], delimiter=delimiter), [])]
        except csv.Error:
            continue
        if form.needed <= set(names):
            return Header(names, delimiter)
    found = line[:60] + ("…" if len(line) > 60 else "")
    raise DataError(
        f"{path} is not an rfx {form.what}: its first line starts with {found!r} and lacks the"
        f" columns {', '.join(name for name in form.columns if name in form.needed)}; use another"
        " file"
    )


def _records(
    lines: Iterator[str], header: Header, path: AnyPath, form: Form, torn: list[int] | None = None
) -> Iterator[tuple[int, int, list[str]]]:
    """(first line's number, last line's, cells) of every complete row; an editor may have added
    line breaks to a cell.

    lines: those after the header. torn: receives the numbers of lines that belong to no row.
    """
    wanted, number = len(header.names), 1
    ahead: deque[str] = deque()
    while block := list(islice(lines, _BLOCK)):
        together = _split_all(block, header)
        if together is not None and set(map(len, together)) == {wanted}:
            for cells in together:
                number += 1
                yield number, number, cells
            continue
        ahead.extend(block)
        while ahead:
            text = ahead.popleft()
            number += 1
            first = number
            fields: list[str] | None = None
            if text.count('"') % 2:
                more = _ending(ahead, lines)
                if more is not None:
                    fields = _split(
                        "\n".join([text, *islice(ahead, more)]), header, path, number, form
                    )
                    if len(fields) == wanted:
                        number += more
                        for _ in range(more):
                            ahead.popleft()
            if fields is None or len(fields) != wanted:
                fields = _split(text, header, path, first, form)
            if len(fields) > wanted and any(fields[wanted:]):
                raise DataError(
                    f"{path}, line {first}: {len(fields)} fields where {wanted} are expected"
                )
            if len(fields) >= wanted:
                yield first, number, fields
            elif torn is not None and text.strip():
                torn.append(first)


def _ending(ahead: deque[str], lines: Iterator[str]) -> int | None:
    """For a line with an open quote, the number of lines until it is closed; None if not within a
    few lines.

    Either a cell of several lines, or a line truncated by a killed writer: then it is not a row.
    """
    for more in range(_LINES_OF_A_CELL):
        if more == len(ahead) and (following := next(lines, None)) is not None:
            ahead.append(following)
        if more == len(ahead):
            return None
        if ahead[more].count('"') % 2:
            return more + 1
    return None


def _split_all(block: list[str], header: Header) -> list[list[str]] | None:
    """The cells of each of some lines; None if a line alone may not be a row."""
    if any("\r" in text or text.count('"') % 2 for text in block):
        return None
    try:
        found = list(csv.reader(block, delimiter=header.delimiter))
    except csv.Error:
        return None
    # fewer, if a quote within a cell opened another line
    return found if len(found) == len(block) else None


def _split(text: str, header: Header, path: AnyPath, number: int, form: Form) -> list[str]:
    lines = io.StringIO(text, newline="") if "\n" in text or "\r" in text else (text,)
    try:
        return next(csv.reader(lines, delimiter=header.delimiter), [])
    except csv.Error as error:
        raise DataError(
            f"{path}, line {number}: not a valid line of a {form.what}: {error}"
        ) from None


# ------------------------------------------------------------------------------------------ locking


@contextmanager
def lock(path: AnyPath) -> Iterator[None]:
    """Hold the lock file `path`, which contains this process's number; the kernel releases it when
    its holder dies.

    Nothing is written before it is locked, and never through a link or into a file that is not a
    lock. Raises BlockingIOError, with the holder's number as its text, if another process has it,
    OSError if it can't be created.
    """
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    fd = files.open_lock(path)
    try:
        if os.fstat(fd).st_nlink > 1:
            raise OSError(errno.EINVAL, "it is a link to another file")
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BlockingIOError(_holder(fd)) from None
        _holder(fd)
        os.ftruncate(fd, 0)
        os.pwrite(fd, f"{os.getpid()}\n".encode(), 0)
        # The file is not removed: otherwise two runs could hold locks of two files with one name.
        yield
    finally:
        os.close(fd)


def _holder(fd: int) -> str:
    """The process number in a lock file, perhaps empty; OSError when it holds anything else."""
    text = os.pread(fd, 20, 0).strip()
    if text and not text.isdigit():
        raise OSError(errno.EEXIST, "it exists and is not a lock file of rfx")
    return text.decode()
