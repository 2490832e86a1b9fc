"""Tables from numpy's .npy and .npz files: code in a file is never run, and memory is limited."""

import contextlib
import io
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse

from rfx.data import archives
from rfx.data.tabular.csvtext import ABSENT
from rfx.data.tabular.table import Table, Words, words_of_numbers
from rfx.errors import DataError

# Accepted names of the arrays of an .npz file: inputs, targets, names of columns.
_NAMES = (("X", "x", "data"), ("y", "target", "labels"), ("feature_names", "columns"))
_SPARSE = {"indptr", "indices", "data", "shape", "format"}
# Columns of a table; each is a separate object, from reading to the model file.
MOST_COLUMNS = 1_000_000


@contextlib.contextmanager
def _refused(name, what):
    try:
        yield
    except DataError:
        raise
    except Exception as error:  # the readers of damaged archives raise anything
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise DataError(f"{name} is not a readable {what} ({reason:.200})") from None


def npy(file, name: str, words_of: Callable[[Table], frozenset[int]]) -> Table:
    """The array of a .npy file, one row of numbers per row; the file is a binary handle.

    words_of: a function of a table without rows, which returns the positions of columns to read as
    words, integers with all digits.
    """
    with _refused(name, ".npy file"):
        archives.check_held(file.seek(0, io.SEEK_END), name)
        file.seek(0)
        return _table(np.load(file, allow_pickle=False), name, words_of)


def npz(file, name: str, words_of: Callable[[Table], frozenset[int]]):
    """The content of a .npz file, a binary handle: a Table of its arrays X and y, or (X, column of
    y or None) if X (n, d) is sparse or y is (n, k) with k targets per row.

    X is called X or data and has numbers; y, numbers or words, is called y, target or labels and is
    optional; feature_names are the column names. A matrix written by scipy.sparse.save_npz is
    sparse X, with or without y. Other arrays are not read. words_of: see npy; y follows the columns
    of X.
    """
    with _refused(name, ".npz file"), np.load(file, allow_pickle=False) as content:
        sparse = set(content.files) >= _SPARSE
        keys = [next((key for key in names if key in content.files), None) for names in _NAMES]
        keys = [None, keys[1], None] if sparse else keys
        if keys[0] is None and not sparse:
            raise DataError(
                f"{name} has the arrays {', '.join(content.files) or '(none)':.200}, but needs an"
                " array X with the rows"
            )
        needed = [*filter(None, keys), *(_SPARSE if sparse else ())]
        sizes = [content.zip.getinfo(f"{key}.npy").file_size for key in needed]
        archives.check_held(sum(sizes), name)
        arrays: list[Any] = [None if key is None else content[key] for key in keys]
        X, y, names = arrays
        if sparse:
            file.seek(0)
            X = scipy.sparse.csr_matrix(scipy.sparse.load_npz(file), dtype=np.float64)
            X.check_format(full_check=True)
            X.sum_duplicates()
            _check_numbers(X.data, name)
        else:
            _check_shape(X, name)
        if y is not None and (y.ndim not in (1, 2) or len(y) != X.shape[0]):
            raise DataError(
                f"{name} has {X.shape[0]:,} rows, but its targets have shape {y.shape!s:.80}"
            )
        if y is not None and y.ndim == 2 and y.shape[1] > 1:
            return _check_numbers(X, name), _check_numbers(y, name)
        y = None if y is None else y.reshape(len(y))
        if sparse:
            return X, None if y is None else _targets(y, name, True)
        return _table(X, name, words_of, names, y)


def _check_shape(array: np.ndarray, name: str) -> None:
    """Raise DataError for an array that is not a table of rows and columns of numbers."""
    if array.ndim != 2 or not array.size:
        raise DataError(
            f"{name} has an array of shape {array.shape!s:.80}; a nonempty array of rows and"
            " columns is needed, such as X.reshape(len(X), -1)"
        )
    if array.dtype.kind not in "fiub":
        raise DataError(
            f"{name}: its array has type {array.dtype!s:.40} instead of numbers; save columns of"
            " several types as CSV or Parquet"
        )
    if array.shape[1] > MOST_COLUMNS:
        raise DataError(
            f"{name} has {array.shape[1]:,} columns, but a table may have at most {MOST_COLUMNS:,};"
            " use a sparse matrix (scipy.sparse.save_npz)"
        )


def _table(array, name, words_of, names=None, y=None) -> Table:
    _check_shape(array, name)
    titles = [str(number) for number in range(1, array.shape[1] + 1)]
    if names is not None:
        titles = names.astype(str).ravel().tolist()
        if len(titles) != array.shape[1] or len(set(titles)) < len(titles):
            raise DataError(f"{name} needs one distinct feature name per column")
    table = Table(name, titles, names is not None, [])
    if y is not None:
        table.names, table.own_target = [*titles, "y"], len(titles)
    as_words = words_of(table)
    columns = list(np.array(array.T, np.float64, order="C"))
    if array.dtype.kind in "iu":
        for place in as_words - {table.own_target}:
            columns[place] = words_of_numbers(array[:, place])
    if y is None:
        return replace(table, columns=columns)
    columns.append(_targets(y, name, table.own_target in as_words))
    return replace(table, columns=columns, typed=frozenset("y" if y.dtype.kind in "US" else ""))


def _targets(y, name, as_words):
    """A column of an array (n,) of numbers or words; as_words: integers become words, with all
    digits. The words for missing values in CSV text are missing here too.
    """
    if y.dtype.kind in "US":
        words, codes = np.unique(
            np.char.decode(y, "utf-8") if y.dtype.kind == "S" else y, return_inverse=True
        )
        return Words.of(
            codes.ravel(), (None if word in ABSENT else word for word in words.tolist())
        )
    if y.dtype.kind not in "fiub":
        raise DataError(
            f"{name}: the array of targets has type {y.dtype!s:.40}; numbers or words are needed"
        )
    return words_of_numbers(y) if as_words and y.dtype.kind in "iu" else y.astype(np.float64)


def _check_numbers(values, name) -> np.ndarray:
    """An array of finite numbers as float64."""
    if values.dtype.kind not in "fiub" or not np.isfinite(values).all():
        raise DataError(
            f"{name} has an array of shape {values.shape} with other than finite numbers"
        )
    return values.astype(np.float64)
