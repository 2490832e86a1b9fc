"""Tables from Parquet files. pyarrow, an optional package, is used only here."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from rfx import lazy
from rfx.data import archives
from rfx.data.tabular.table import Table, Words, words_of_numbers
from rfx.errors import DataError, NoRows

_UNITS = {"s": 1, "ms": 1e3, "us": 1e6, "ns": 1e9}  # units of durations per second


def parquet(file, name: str, words_of: Callable[[Table], frozenset[int]]) -> Table:
    """The columns of a Parquet file, a binary handle: numbers, booleans and words. words_of: see
    arrayfiles.npy.
    """
    content = ParquetGroups(file, name, words_of)
    archives.check_held(8 * content.n_rows * len(content.names), name)
    table = next(content.tables([range(content.n_groups)]), None)
    if table is None:
        raise NoRows(f"{name} has no rows or no columns")
    return table


class ParquetGroups:
    """The row groups of a Parquet file, a seekable binary handle, as Tables.

    words_of: a function of a table without rows: the positions of numeric columns to read as words.
    Raises DataError if the file is invalid or pyarrow is missing.
    """

    def __init__(self, file, name: str, words_of=lambda table: frozenset()):
        self.name, self.words_of = name, words_of
        try:
            pyarrow = lazy.pyarrow
        except ImportError:
            raise DataError(
                f"{name} is a Parquet file, which needs pyarrow; pip install 'rfx-kernels[parquet]'"
            ) from None
        try:
            self._content = pyarrow.parquet.ParquetFile(file)
        except (pyarrow.ArrowException, OSError, ValueError) as error:
            raise self._damaged(error) from None
        self._schema, self.n_groups = self._content.schema_arrow, self._content.num_row_groups
        self.names, self.n_rows = self._schema.names, self._content.metadata.num_rows
        if len(set(self.names)) < len(self.names):
            raise DataError(f"{name} has two columns of the same name")

    def _damaged(self, error) -> DataError:
        reason = str(error).splitlines()[0] if str(error) else repr(error)
        return DataError(f"{self.name} is not a readable Parquet file ({reason:.200})")

    def tables(self, groups):
        """The Tables of row groups, each of which fits into memory; groups: their numbers, or
        several of them for one table.
        """
        types = lazy.pyarrow.types
        names = [field.name for field in self._schema if not types.is_nested(field.type)]
        for group in groups:
            try:
                numbers = [group] if isinstance(group, int) else group
                columns = self._content.read_row_groups(numbers, names)
                archives.check_held(columns.nbytes, self.name)
                if self.names and columns.num_rows:
                    yield self._table(columns)
            except (lazy.pyarrow.ArrowException, OSError, ValueError, IndexError) as error:
                raise self._damaged(error) from None

    def _table(self, read) -> Table:
        """The Table of rows. Columns that are neither numbers nor words have no cells."""
        pyarrow, (index, declared) = lazy.pyarrow, _pandas_columns(self._schema)
        for field in self._schema:
            if pyarrow.types.is_dictionary(field.type):
                declared |= {field.name}
        table = Table(self.name, self.names, True, [], index=index, categorical=declared)
        as_words, columns, unread, typed = self.words_of(table), [], {}, set()
        for position, field in enumerate(self._schema):
            try:
                cells = _cells(
                    read.column(field.name), position in as_words or field.name in declared
                )
            # nested columns are not read
            except (pyarrow.ArrowNotImplementedError, KeyError, UnicodeDecodeError) as error:
                cells = Words(np.full(read.num_rows, -1, np.int32), [])
                unread[position] = f"is of type {field.type!s:.40}"
                if isinstance(error, UnicodeDecodeError):
                    unread[position] = "has words that are not UTF-8"
            if isinstance(cells, Words) and not _is_number(field.type):
                typed.add(field.name)
            columns.append(cells)
        return replace(table, columns=columns, typed=frozenset(typed), unread=unread)


def _is_number(kind) -> bool:
    """Whether a pyarrow type is numbers."""
    types = lazy.pyarrow.types
    return types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind)


def _pandas_columns(schema) -> tuple[frozenset, frozenset]:
    """The columns that pandas wrote as its index, and as categories, according to a file's
    metadata.
    """
    try:
        said = schema.pandas_metadata or {}
        index = frozenset(own for own in said.get("index_columns", ()) if isinstance(own, str))
        columns = [
            own for own in said.get("columns", ()) if own.get("pandas_type") == "categorical"
        ]
        return index, frozenset(own.get("field_name") or own["name"] for own in columns)
    except (ValueError, TypeError, AttributeError, KeyError, RecursionError):
        return frozenset(), frozenset()  # not written by pandas


def _cells(column, as_words: bool):
    """The cells of a pyarrow column: numbers (n,) or Words."""
    pyarrow, unit = lazy.pyarrow, 1.0
    types = pyarrow.types
    if types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if types.is_boolean(column.type):
        column = pyarrow.compute.if_else(column, "True", "False")
    if types.is_duration(column.type):
        unit, column = _UNITS[column.type.unit], column.cast(pyarrow.int64())
    if types.is_decimal(column.type):
        # as in a text, because the cast to float64 does not round to nearest; 1.50 is 1.5
        pattern = r"^(-?[0-9]+(?:\.[0-9]*[1-9])?)\.?0*$"
        column = column.cast(pyarrow.string())
        column = pyarrow.compute.replace_substring_regex(column, pattern, r"\1")
        column = column if as_words else column.cast(pyarrow.float64())
    if _is_number(column.type) and not (as_words and unit == 1 and types.is_integer(column.type)):
        values = np.asarray(column.cast(pyarrow.float64(), safe=False).to_numpy(), np.float64)
        return words_of_numbers(values / unit) if as_words else values / unit
    if not (types.is_binary(column.type) or types.is_large_binary(column.type)):
        column = column.cast(pyarrow.large_string())  # dates are words, as in a CSV file
    encoded = column.dictionary_encode().unify_dictionaries().combine_chunks()
    words = [
        word.decode() if isinstance(word, bytes) else word
        for word in encoded.dictionary.to_pylist()
    ]
    return Words.of(encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False), words)
