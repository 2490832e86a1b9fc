"""Tables from files of arrays: numpy's .npy and .npz, and Parquet.

Code in a file is never run, and memory is limited. pyarrow, an optional package, is used only here.
"""

import contextlib
import io
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse

from rfx import lazy
from rfx.data import archives
from rfx.data.tabular.csvtext import ABSENT
from rfx.data.tabular.table import Table, Words, words_of
from rfx.errors import DataError, NoRows

# Accepted names of the arrays of an .npz file: inputs, targets, names of columns.
_NAMES = (("X", "x", "data"), ("y", "target", "labels"), ("feature_names", "columns"))
_SPARSE = {"indptr", "indices", "data", "shape", "format"}


@contextlib.contextmanager
def _refused(name, what):
    try:
        yield
    except DataError:
        raise
    except Exception as error:  # the readers of damaged archives raise anything
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise DataError(f"{name} is not a readable {what} ({reason:.200})") from None


def npy(file, name: str, as_words: Callable[[Table], frozenset[int]]) -> Table:
    """The array of a .npy file, one row of numbers per row; the file is a binary handle.

    as_words: a function of a table without rows, which returns the positions of columns to read as
    words, integers with all digits.
    """
    with _refused(name, ".npy file"):
        archives.check_held(file.seek(0, io.SEEK_END), name)
        file.seek(0)
        return _table(np.load(file, allow_pickle=False), name, as_words)


def npz(file, name: str, as_words: Callable[[Table], frozenset[int]]):
    """The content of a .npz file, a binary handle: a Table of its arrays X and y, or (X, column of
    y or None) if X (n, d) is sparse or y is (n, k) with k targets per row.

    X is called X or data and has numbers; y, numbers or words, is called y, target or labels and is
    optional; feature_names are the column names. A matrix written by scipy.sparse.save_npz is
    sparse X, with or without y. Other arrays are not read. as_words: see npy; y follows the columns
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
        return _table(X, name, as_words, names, y)


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


def _table(array, name, as_words, names=None, y=None) -> Table:
    _check_shape(array, name)
    titles = [str(number) for number in range(1, array.shape[1] + 1)]
    if names is not None:
        titles = names.astype(str).ravel().tolist()
        if len(titles) != array.shape[1] or len(set(titles)) < len(titles):
            raise DataError(f"{name} needs one distinct feature name per column")
    table = Table(name, titles, names is not None, [])
    if y is not None:
        table.names, table.own_target = [*titles, "y"], len(titles)
    worded = as_words(table)
    columns = list(np.array(array.T, np.float64, order="C"))
    if array.dtype.kind in "iu":
        for place in worded - {table.own_target}:
            columns[place] = words_of(array[:, place])
    if y is None:
        return replace(table, columns=columns)
    columns.append(_targets(y, name, table.own_target in worded))
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
    return words_of(y) if as_words and y.dtype.kind in "iu" else y.astype(np.float64)


def _check_numbers(values, name) -> np.ndarray:
    """An array of finite numbers as float64."""
    if values.dtype.kind not in "fiub" or not np.isfinite(values).all():
        raise DataError(
            f"{name} has an array of shape {values.shape} with other than finite numbers"
        )
    return values.astype(np.float64)


# ---------------------------------------------------------------------- Parquet


def parquet(file, name: str, as_words: Callable[[Table], frozenset[int]]) -> Table:
    """The columns of a Parquet file, a binary handle: numbers, booleans and words. as_words: see
    arrayfiles.npy.
    """
    content = ParquetGroups(file, name, as_words)
    archives.check_held(8 * content.n_rows * len(content.schema.names), name)
    table = next(content.tables([[*range(content.n_groups)]]), None)
    if table is None:
        raise NoRows(f"{name} has no rows or no columns")
    return table


class ParquetGroups:
    """The row groups of a Parquet file, a seekable binary handle, as Tables.

    as_words: a function of a table without rows: the positions of numeric columns to read as words.
    Raises DataError if the file is invalid or pyarrow is missing.
    """

    def __init__(self, file, name: str, as_words=lambda table: frozenset()):
        self.name, self.as_words = name, as_words
        try:
            pyarrow = lazy.pyarrow
        except ImportError:
            raise DataError(
                f"{name} is a Parquet file, which needs pyarrow; pip install 'rfx-kernels[parquet]'"
            ) from None
        with _refused(name, "Parquet file"):
            self._content = pyarrow.parquet.ParquetFile(file)
        self.schema, self.n_groups = self._content.schema_arrow, self._content.num_row_groups
        self.n_rows = self._content.metadata.num_rows
        if len(set(self.schema.names)) < len(self.schema.names):
            raise DataError(f"{name} has two columns of the same name")

    def tables(self, groups: Iterable[Any]) -> Iterator[Table]:
        """The Tables of row groups, each of which fits into memory; groups: lists of their numbers,
        one for each table.
        """
        nested = lazy.pyarrow.types.is_nested
        names = [field.name for field in self.schema if not nested(field.type)]
        for numbers in groups:
            with _refused(self.name, "Parquet file"):
                rows = self._content.read_row_groups(numbers, names)
                archives.check_held(rows.nbytes, self.name)
            if names and rows.num_rows:
                yield table_of(rows, self.schema, self.name, self.as_words)


def table_of(rows, schema, name: str, as_words: Callable[[Table], frozenset[int]]) -> Table:
    """The Table of a pyarrow table; columns of its file's schema that it lacks have no cells."""
    index, categorical = _pandas_columns(schema)
    dictionary = lazy.pyarrow.types.is_dictionary
    categorical |= {field.name for field in schema if dictionary(field.type)}
    table = Table(name, schema.names, True, [], index=index, categorical=categorical)
    worded = as_words(table)
    for position, field in enumerate(schema):
        numeric, cells = _is_number(field.type), Words(np.full(len(rows), -1, np.int32), [])
        if field.name not in rows.column_names:
            table.unread[position] = f"is of type {field.type!s:.40}"
        elif numeric and position not in worded and field.name not in categorical:
            cells = _column(rows, field).to_numpy(np.float64, na_value=np.nan)
        else:
            try:
                cells = words_of(_column(rows, field))
            except UnicodeDecodeError:
                table.unread[position] = "has words that are not UTF-8"
        table.columns.append(cells)
    typed = [f.name for f, cells in zip(schema, table.columns) if not _is_number(f.type)]
    table.typed = frozenset(typed)
    return table


def _column(rows, field):
    """A column of a pyarrow table for pandas: durations as seconds, texts as categories of bytes,
    which may be invalid.
    """
    column = rows.column(field.name)
    if str(field.type) in ("string", "large_string", "string_view"):
        column = column.cast(lazy.pyarrow.large_binary()).dictionary_encode().unify_dictionaries()
    cells = column.to_pandas(integer_object_nulls=True)
    is_duration = lazy.pandas.api.types.is_timedelta64_dtype(cells.dtype)
    return cells / np.timedelta64(1, "s") if is_duration else cells


def _is_number(kind) -> bool:
    """Whether a pyarrow type is numbers."""
    types = lazy.pyarrow.types
    checks = (types.is_integer, types.is_floating, types.is_decimal, types.is_duration)
    return any(check(kind) for check in checks)


def _pandas_columns(schema) -> tuple[frozenset, frozenset]:
    """The columns that pandas wrote as its index, and as categories, according to a file's
    metadata.
    """
    metadata = schema.pandas_metadata or {}
    index = [name for name in metadata.get("index_columns", ()) if isinstance(name, str)]
    categorical = [
        column["field_name"]
        for column in metadata.get("columns", ())
        if column["pandas_type"] == "categorical"
    ]
    return frozenset(index), frozenset(categorical)
