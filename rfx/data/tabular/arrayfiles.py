"""Tables from numpy's .npy and .npz files: code in a file is never run, and memory is limited."""

import contextlib
import io
import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse

from rfx.data import archives
from rfx.data.tabular.csvtext import ABSENT, DOUBTFUL
from rfx.data.tabular.table import Table, Words, words_of_integers
from rfx.errors import DataError
from rfx.numerals import is_number

# Accepted names of the arrays of an .npz file.
_INPUTS, _TARGETS, _NAMES = (
    ("X", "x", "data"),
    ("y", "target", "labels"),
    ("feature_names", "columns"),
)
_SPARSE = {"indptr", "indices", "data", "shape", "format"}
# Columns of a table; each is a separate object, from reading to the model file.
MOST_COLUMNS = 1_000_000
_SHOWN = 5
log = logging.getLogger(__name__)


@contextlib.contextmanager
def _refused(name, what):
    try:
        yield
    except DataError:
        raise
    except Exception as error:  # the readers of damaged archives raise anything
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise DataError(f"{name} is not a readable {what} ({reason:.200})") from None


def _loaded(load, what: str, name: str) -> np.ndarray:
    """The array that a function loads; DataError, with the array's name, for Python objects."""
    try:
        return load()
    except ValueError as error:
        if "Object arrays" not in str(error):
            raise
        array = what if what != "it" else "array"
        raise DataError(
            f"{name}: {what} holds Python objects, which are not supported; save it with a"
            f" numeric or string type, such as {array}.astype(float) or {array}.astype(str)"
        ) from None


def npy(file, name: str, words_of: Callable[[Table], frozenset[int]]) -> Table:
    """The array of a .npy file, one row of numbers or words per row; the file is a binary handle.

    words_of: a function of a table without rows, which returns the positions of numeric columns to
    read as words: texts unchanged, integers with all digits.
    """
    with _refused(name, ".npy file"):
        archives.check_held(file.seek(0, io.SEEK_END), name)
        file.seek(0)
        array = _loaded(lambda: np.load(file, allow_pickle=False), "it", name)
        return _of_array(array, name, words_of)


def npz(file, name: str, words_of: Callable[[Table], frozenset[int]]):
    """The content of a .npz file, a binary handle: a Table of its arrays X and y, or (X, column of
    y or None) if X (n, d) is sparse or y is (n, k) with k targets per row.

    X is called X or data; y is called y, target or labels and is optional; feature_names are the
    column names. A matrix written by scipy.sparse.save_npz is sparse X, with or without y. Other
    arrays are not read. words_of: see npy; y follows the columns of X.
    """
    with _refused(name, ".npz file"), np.load(file, allow_pickle=False) as content:
        here, sparse = set(content.files), _SPARSE <= set(content.files)
        keys = [
            next((key for key in names if key in here), None)
            for names in (() if sparse else _INPUTS, _TARGETS, () if sparse else _NAMES)
        ]
        if keys[0] is None and not sparse:
            raise DataError(
                f"{name} has the arrays {', '.join(sorted(here)) or '(none)':.200}, but needs an"
                " array X with the rows"
            )
        needed = [*filter(None, keys), *(_SPARSE if sparse else ())]
        sizes = [content.zip.getinfo(f"{key}.npy").file_size for key in needed]
        archives.check_held(sum(sizes), name)
        arrays: list[Any] = [key and _loaded(lambda: content[key], key, name) for key in keys]
        X, y, names = arrays
        y = y[:, 0] if y is not None and y.ndim == 2 and y.shape[1] == 1 else y
        if sparse:
            return _sparse_rows(file, y, name)
        if y is not None and y.ndim == 2 and y.shape[1] > 1:
            return _numbers(X, name), _beside(_numbers(y, name), X, name)
        titles = None if names is None else _feature_names(names, X, name)
        return _of_array(X, name, words_of, titles, y)


def _check_shape(array: np.ndarray, name: str) -> None:
    """Raise DataError for an array that is not a table of rows and columns."""
    if array.ndim != 2 or not array.shape[1] or not array.shape[0]:
        advice = {1: "; reshape(-1, 1) turns it into one column"}.get(array.ndim, "")
        advice = (
            "; reshape(len(X), -1) turns it into rows" if array.ndim > 2 and array.size else advice
        )
        advice = "" if array.dtype.names else advice
        raise DataError(
            f"{name} has an array of shape {array.shape!s:.80}; a nonempty array of rows and"
            f" columns is needed{advice}"
        )
    if array.shape[1] > MOST_COLUMNS:
        raise DataError(
            f"{name} has {array.shape[1]:,} columns, but a table may have at most {MOST_COLUMNS:,};"
            " use a sparse matrix (scipy.sparse.save_npz)"
        )


def _of_array(array, name, words_of, names=None, y=None) -> Table:
    _check_shape(array, name)
    if y is not None and y.shape != (array.shape[0],):
        raise DataError(
            f"{name} has {array.shape[0]:,} rows, but its targets have shape {y.shape!s:.80}"
        )
    width, texts = array.shape[1], array.dtype.kind in "US"
    titles = [str(number) for number in range(1, width + 1)] if names is None else names
    own_target = None if y is None else width
    table = Table(name, [*titles, "y"][: width + (y is not None)], names is not None, [])
    table.own_target = own_target
    as_words = words_of(table)
    if texts:
        columns = _of_words(array, titles, name, as_words)
    elif array.dtype.kind in "fiub":
        columns = list(np.array(array.T, np.float64, order="C"))
        if array.dtype.kind in "iu":
            for place in as_words - {own_target}:
                columns[place] = words_of_integers(array[:, place])
    else:
        raise _no_numbers(array, name, "its array")
    if y is not None:
        columns.append(vector(y, name, width in as_words))
        texts = texts or y.dtype.kind in "US"
        table.typed = frozenset({"y"}) if y.dtype.kind in "US" else frozenset()
    return replace(table, columns=columns, doubtful=DOUBTFUL if texts else None)


def _of_words(array, titles, name, as_words):
    """The columns of an array of words, converted to numbers where possible, because the array has
    a single type for all columns.
    """
    columns, numbers = [], []
    for position in range(array.shape[1]):
        column = _words(array[:, position], name)
        clear = column.without(DOUBTFUL)
        if position not in as_words and clear.values and all(map(is_number, clear.values)):
            numbers.append(titles[position])
            column = np.array([*map(float, clear.values), np.nan])[clear.codes]
        columns.append(column)
    if numbers:
        shown = ", ".join(numbers[:_SHOWN]) + (
            f" and {len(numbers) - _SHOWN:,} more" if len(numbers) > _SHOWN else ""
        )
        log.warning("the words of %s are read as numbers in the columns %s", name, shown)
    return columns


def _no_numbers(array, name, what):
    kinds = {
        "c": "complex numbers",
        "M": "dates",
        "m": "time spans",
        "V": "records of several values",
    }
    found = kinds.get(array.dtype.kind, f"type {array.dtype!s:.40}")
    return DataError(f"{name}: {what} has {found}; numbers or words are needed")


def vector(y, name, as_words=False):
    """A column of an array (n,) of numbers or words; as_words: integers become words, with all
    digits.
    """
    if y.dtype.kind in "US":
        return _words(y, name)
    if as_words and y.dtype.kind in "iu":
        return words_of_integers(y)
    if y.dtype.kind not in "fiub":
        raise _no_numbers(y, name, "the array of targets")
    return y.astype(np.float64)


def _words(values, name) -> Words:
    """A column of words; the words for missing values in CSV text are missing here too, except the
    doubtful one.
    """
    if values.dtype.kind == "S":
        try:
            values = np.char.decode(values, "utf-8")
        except UnicodeDecodeError:
            raise DataError(f"{name} has words that are not UTF-8; save them as str") from None
    found, codes = np.unique(values, return_inverse=True)
    words = found.tolist()
    absent = np.array([word in ABSENT and word != DOUBTFUL for word in words], bool)
    places = np.where(absent, -1, np.cumsum(~absent) - 1).astype(np.int32)
    return Words(places[codes.ravel()], [word for word, gone in zip(words, absent) if not gone])


def _sparse_rows(file, y: np.ndarray | None, name: str):
    """(X, the targets or None) of a sparse matrix in a file and its targets, as returned by
    `npz`.
    """
    file.seek(0)
    X = scipy.sparse.csr_matrix(scipy.sparse.load_npz(file), dtype=np.float64)
    X.check_format(full_check=True)
    X.sum_duplicates()
    if not np.isfinite(X.data).all():
        raise ValueError("it has numbers that are not finite")
    if y is None:
        return X, None
    if y.ndim not in (1, 2):
        raise DataError(
            f"{name} has {X.shape[0]:,} rows, but its targets have shape {y.shape!s:.80}"
        )
    column = _numbers(y, name) if y.ndim == 2 else vector(y, name, True)
    return X, _beside(column, X, name)


def _feature_names(names: np.ndarray, X: np.ndarray, name: str) -> list[str]:
    """The names of the columns of X; DataError unless there is one for each."""
    if names.dtype.kind in "US" and X.ndim == 2 and names.shape == X.shape[1:]:
        titles = names.astype(str).tolist()
        if len(set(titles)) == len(titles):
            return titles
    raise DataError(f"{name} needs one distinct feature name per column")


def _numbers(values, name) -> np.ndarray:
    """An array (n, k) of numbers as float64."""
    if (
        values.ndim != 2
        or not values.size
        or values.dtype.kind not in "fiub"
        or not np.isfinite(values).all()
    ):
        raise DataError(
            f"{name} has an array of shape {values.shape} that does not contain rows of finite"
            " numbers"
        )
    return values.astype(np.float64)


def _beside(column, X, name):
    if len(column) != X.shape[0]:
        raise DataError(f"{name} has {X.shape[0]:,} rows, but {len(column):,} targets")
    if isinstance(column, Words) and (column.codes < 0).any():
        raise DataError(
            f"{name}, row {int(np.argmax(column.codes < 0)) + 1}: its target is missing; fill it in"
        )
    return column
