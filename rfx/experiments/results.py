"""The results file: one flat CSV row per run, appended under a lock, fsynced, never rewritten, read by column name."""

import json
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime

from rfx.errors import DataError, LockedError
from rfx.experiments import sheet

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
_OTHERS = frozenset(("status", "params", "converged"))


def _value(name, text):
    if name == "params":
        value = json.loads(text) if text else {}
        if not isinstance(value, dict):
            raise ValueError
        return value
    if name in _INTEGERS:
        return whole(text)
    if name in _FLOATS:
        return float(text)
    if name == "converged":
        return {"true": True, "false": False}[text.lower()] if text.lower() in ("true", "false") else int(text) != 0
    if text not in STATUSES:
        raise ValueError
    return text


def whole(text: str) -> int:
    """A whole number as spreadsheets write it too: 7, 7.0, 7E+00; ValueError for any other text."""
    try:
        return int(text)
    except ValueError:
        number = float(text)
        if number != int(number):
            raise
        return int(number)


FORM = sheet.Form(
    what="results file",
    columns=COLUMNS,
    needed=frozenset(("key", "status", "dataset", "method")),
    text=frozenset(COLUMNS) - _INTEGERS - _FLOATS - _OTHERS,
    value=_value,
    rest="params",
)


def check(path) -> None:
    """Raise DataError when `append` could not add a row to the results file `path`; nothing is made or changed."""
    sheet.check(path, FORM)


def append(path, row: dict) -> None:
    """Append `row` to the results file `path` and force it to the disk; the first row writes the header too.

    `created` is set here; `params` may be a dict. Missing columns are left empty; what the file has no column for is kept in
    params. Raises DataError when the file can't be written or is some other CSV, ValueError for a name that is no column.
    """
    sheet.append(path, [row | {"created": datetime.now(UTC).isoformat(timespec="seconds")}], FORM)


def read(path) -> list[dict]:
    """Rows of the results file `path`, oldest first: numbers as int or float, empty fields as None, `params` as dict.

    Columns that are not in the file are None, columns that rfx does not know are kept as text. Of several rows with one key the
    last counts. Lines that a killed writer left short are passed over. Raises DataError when there is no such file, it is some
    other CSV, or a field has the wrong form.
    """
    try:
        found = sheet.read(path, FORM)
    except FileNotFoundError:
        raise DataError(f"{path}: there is no such results file; rfx run or rfx eval --results writes one") from None
    rows = {}
    for number, row in found:
        name = row["key"] or number
        rows.pop(name, None)
        rows[name] = row
    return list(rows.values())


def torn(path) -> list[int]:
    """The numbers of the lines of a results file that a killed writer left short, which `read` passes over."""
    return sheet.torn(path, FORM)


def seconds_train(row: dict) -> float | None:
    """Training time as the papers count it: features and fit together."""
    if row.get("seconds_fit") is None:
        return None
    return row["seconds_fit"] + (row.get("seconds_features") or 0.0)


@contextmanager
def exclusive(path):
    """Hold the lock of the results file `path` (the file `PATH.lock`) while a plan runs.

    Raises LockedError when another process holds it, DataError when `path` can't be a results file or the lock can't be made.
    """
    check(path)
    with ExitStack() as held:
        try:
            held.enter_context(sheet.lock(f"{path}.lock"))
        except BlockingIOError as error:
            holder = f" (process {error})" if str(error) else ""
            raise LockedError(f"{path} is in use by another rfx run{holder}; wait for it to end or give another --results") from None
        except OSError as error:
            raise DataError(f"{path}.lock can't be written as the lock of {path}: {error.strerror or error}; remove it") from error
        yield
