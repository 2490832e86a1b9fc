"""The results file: one flat CSV row per run, appended under a lock, fsynced, never rewritten."""

import csv
import errno
import fcntl
import hashlib
import io
import json
import os
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path

from rfx import files
from rfx.errors import DataError

COLUMNS = (
    "key", "created", "status", "message", "dataset", "split", "task", "n_train", "n_test", "n_inputs", "method",
    "kernel", "solver", "lam", "n_features", "params", "seed", "metric", "score", "model_size", "model_bytes",
    "seconds_features", "seconds_fit", "seconds_predict", "peak_rss_mb", "objective", "gap", "n_iter", "converged",
    "threads", "dtype", "rfx", "python", "numpy", "scipy", "numba", "liblinear", "libsvm", "blas", "cpu",
    "git_revision",
)  # fmt: skip
STATUSES = ("ok", "failed", "timeout", "interrupted")

_INTEGERS = frozenset("n_train n_test n_inputs n_features seed model_size model_bytes n_iter threads".split())
_FLOATS = frozenset("lam score seconds_features seconds_fit seconds_predict peak_rss_mb objective gap".split())
# What a run is given but what does not decide its outcome: where the model goes, how many cores, how long it may take.
_NOT_IN_KEY = frozenset(("threads", "model", "timeout"))


def key(spec: dict) -> str:
    """Hash of everything that determines the run that `spec` describes: 16 hexadecimal digits.

    `threads` (unless they are fixed_threads), `timeout` and output paths don't count; a missing entry equals None, 1 equals
    1.0. A data set given as a file counts by its content too, so that an edited file is another run.
    """
    left_out = _NOT_IN_KEY - {"threads"} if spec.get("fixed_threads") else _NOT_IN_KEY
    known = _canonical({name: value for name, value in spec.items() if name not in left_out})
    if "options" in known:
        known["options"] = {name: value for name, value in known["options"].items() if name not in _NOT_IN_KEY}
    known["files"] = {name: digest for name in ("dataset", "test") if (digest := _digest(spec.get(name)))}
    return hashlib.sha256(json.dumps(known, sort_keys=True).encode()).hexdigest()[:16]


def _canonical(value):
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, dict):
        return {str(name): _canonical(item) for name, item in value.items() if item is not None}
    if isinstance(value, (list, tuple)):
        return [_canonical(item) for item in value]
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)
    return str(value) if isinstance(value, Path) else value


def _digest(name) -> str | None:
    if not name or not os.path.isfile(name):
        return None
    stat = os.stat(name)
    return _content_digest(os.path.abspath(name), stat.st_size, stat.st_mtime_ns)


@lru_cache
def _content_digest(path, size, mtime_ns):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def check(path) -> None:
    """Raise DataError when `append` could not add a row to the results file `path`; nothing is made or changed."""
    place = Path(path)
    with _errors(path):
        if not str(path):
            raise OSError(errno.ENOENT, "a file name is needed")
        if place.exists():
            with open(place, "rb+") as file:
                first = _first(file.fileno())
            if not _header().startswith(first):
                _check_header(first, path)
            return
        folder = next(folder for folder in place.absolute().parents if folder.exists())
        code = errno.EACCES if folder.is_dir() else errno.ENOTDIR
        if not (folder.is_dir() and os.access(folder, os.W_OK)):
            raise OSError(code, os.strerror(code))


@contextmanager
def _errors(path):
    try:
        yield
    except OSError as error:
        raise DataError(f"{files.shown(path)} can't be written as a results file: {error.strerror or error}") from error


def append(path, row: dict) -> None:
    """Append `row` to the results file `path` and force it to the disk; the first row writes the header too.

    `created` is set here; `params` may be a dict. Missing columns are left empty. Raises DataError when the file can't
    be written or is some other CSV, ValueError for a name that is no column.
    """
    unknown = set(row) - set(COLUMNS)
    if unknown:
        raise ValueError(f"no such column: {', '.join(sorted(unknown))}")
    row = row | {"created": datetime.now(UTC).isoformat(timespec="seconds")}
    line = _csv_line(_text(row.get(name)) for name in COLUMNS)
    path = Path(path)
    with _errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666)
        try:
            # Held for one write only; the runner's own lock, for a whole plan, is the file PATH.lock.
            fcntl.flock(fd, fcntl.LOCK_EX)
            new = _prepare(fd, path)
            _write_all(fd, (_header() if new else b"") + line)
            os.fsync(fd)
        finally:
            os.close(fd)
        if new:
            _sync_folder(path.parent)


def _prepare(fd, path) -> bool:
    """Check the header and end a line that a killed writer left torn. True when the header is still to be written."""
    size = os.fstat(fd).st_size
    first = _first(fd)
    if _header().startswith(first) and first != _header():
        # Empty, or killed within the header: no row can be lost.
        os.ftruncate(fd, 0)
        return True
    _check_header(first, path)
    if os.pread(fd, 1, size - 1) != b"\n":
        tail = _last_line(fd, size)
        # Closing an open quote keeps the torn line from swallowing the next one in other CSV readers.
        _write_all(fd, b'"\n' if tail.count(b'"') % 2 else b"\n")
    return False


def _first(fd) -> bytes:
    """The file's first bytes, as many as the header has; a spreadsheet's line ends, CR LF, are as good as LF."""
    return os.pread(fd, len(_header()) + 1, 0).replace(b"\r\n", b"\n")[: len(_header())]


def _last_line(fd, size) -> bytes:
    tail = b""
    while b"\n" not in tail and len(tail) < size:
        length = min(size, 2 * len(tail) + 65536)
        tail = os.pread(fd, length, size - length)
    return tail.rpartition(b"\n")[2]


def _write_all(fd, data: bytes) -> None:
    # One write in practice; the loop is for a disk that fills up half way.
    while data:
        data = data[os.write(fd, data) :]


def _sync_folder(folder) -> None:
    fd = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _header() -> bytes:
    return _csv_line(COLUMNS)


def _check_header(first: bytes, path) -> None:
    if first != _header():
        found = first.split(b"\n")[0].decode(errors="replace")
        found = found[:60] + ("…" if len(found) > 60 else "")
        raise DataError(
            f"{path} is not a results file of this version of rfx: its first line starts with {found!r} instead of"
            f" '{COLUMNS[0]},{COLUMNS[1]},{COLUMNS[2]},…'; give another file to --results"
        )


def _csv_line(fields) -> bytes:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerow(fields)
    return out.getvalue().encode(errors="replace")


def _text(value) -> str:
    """One CSV field. Line ends become spaces, so that a row is always one line."""
    if hasattr(value, "item"):
        value = value.item()
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, (dict, list, tuple)):
        value = json.dumps(_canonical(value), sort_keys=True)
    return " ".join(str(value).replace("\0", " ").splitlines())


def read(path) -> list[dict]:
    """Rows of the results file `path`, oldest first: numbers as int or float, empty fields as None, `params` as dict.

    Of several rows with one key the last counts. Lines that a killed writer left short are passed over. Raises
    DataError when there is no such file, it is some other CSV, or a field has the wrong form.
    """
    path = Path(path)
    try:
        with path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH)
            content = file.read().replace(b"\r\n", b"\n")
    except FileNotFoundError:
        raise DataError(f"{path}: there is no such results file; rfx run or rfx eval --results writes one") from None
    except OSError as error:
        raise DataError(f"{path} can't be read as a results file: {error.strerror}") from error
    if _header().startswith(content) and content != _header():
        return []
    _check_header(content[: len(_header())], path)
    rows = {}
    for number, line in enumerate(content[len(_header()) :].split(b"\n"), start=2):
        fields = next(csv.reader([line.decode(errors="replace")]), [])
        if len(fields) < len(COLUMNS):
            continue
        row = _typed(fields, path, number)
        name = row["key"] or number
        rows.pop(name, None)
        rows[name] = row
    return list(rows.values())


def _typed(fields, path, number) -> dict:
    if len(fields) > len(COLUMNS):
        raise DataError(f"{path}, line {number}: {len(fields)} fields where {len(COLUMNS)} are expected")
    row = {}
    for name, text in zip(COLUMNS, fields):
        try:
            row[name] = _value(name, text)
        except ValueError:
            raise DataError(f"{path}, line {number}: the column {name} holds {text[:40]!r}, which it can't") from None
    return row


def _value(name, text):
    if name == "params":
        value = json.loads(text) if text else {}
        if not isinstance(value, dict):
            raise ValueError
        return value
    if text == "":
        return None
    if name in _INTEGERS:
        return int(float(text)) if "." in text else int(text)
    if name in _FLOATS:
        return float(text)
    if name == "converged":
        return {"true": True, "false": False}[text.lower()] if text.lower() in ("true", "false") else int(text) != 0
    if name == "status" and text not in STATUSES:
        raise ValueError
    return text


def seconds_train(row: dict) -> float | None:
    """Training time as the papers count it: features and fit together."""
    if row.get("seconds_fit") is None:
        return None
    return row["seconds_fit"] + (row.get("seconds_features") or 0.0)


@contextmanager
def exclusive(path):
    """Hold the lock of the results file `path` (the file `PATH.lock`) while a plan runs.

    Raises LockedError when another process holds it, DataError when `path` can't be a results file. The kernel
    frees the lock when its holder dies, however it dies.
    """
    from rfx.errors import LockedError

    check(path)
    lock = Path(f"{path}.lock")
    try:
        lock.parent.mkdir(parents=True, exist_ok=True)
        fd = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except OSError as error:
        raise DataError(f"{lock} can't be written as the lock of {path}: {error.strerror}") from error
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(fd, 20, 0).decode(errors="replace").strip()
            raise LockedError(
                f"{path} is in use by another rfx run{f' (process {holder})' if holder else ''};"
                " wait for it to end or give another --results"
            ) from None
        os.ftruncate(fd, 0)
        os.pwrite(fd, f"{os.getpid()}\n".encode(), 0)
        # The file stays: removing it would let two runs hold locks of two files of one name.
        yield
    finally:
        os.close(fd)
