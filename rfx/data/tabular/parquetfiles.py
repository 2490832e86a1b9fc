"""Tables from Parquet files. pyarrow, an optional package, is used only here."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from rfx import lazy
from rfx.data import archives
from rfx.data.tabular.table import Table, Words, words_of_numbers
from rfx.errors import DataError, NoRows

_LONGEST_FIXED = 64  # bytes of numbers and names of fixed length
_UNITS = {"s": 1, "ms": 1e3, "us": 1e6, "ns": 1e9}  # units of durations per second


def parquet(file, name: str, words_of: Callable[[Table], frozenset[int]]) -> Table:
    """The columns of a Parquet file, a binary handle: numbers, booleans and words. words_of: see
    arrayfiles.npy.
    """
    content = ParquetGroups(file, name)
    archives.check_held(8 * content.n_rows * len(content.names), name)
    if not content.n_rows or not content.names:
        raise NoRows(f"{name} has no rows or no columns")
    content.words_of = words_of
    (table,) = content.tables([range(content.n_groups)])
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
        names = [field.name for field in self._schema if not _is_unreadable(field.type)]
        for group in groups:
            try:
                numbers = [group] if isinstance(group, int) else group
                columns = self._content.read_row_groups(numbers, names)
                archives.check_held(columns.nbytes, self.name)
                if self._content.metadata.num_rows and columns.num_rows:
                    yield self._table(columns)
            except (lazy.pyarrow.ArrowException, OSError, ValueError, IndexError) as error:
                raise self._damaged(error) from None

    def _table(self, read) -> Table:
        """The Table of rows. Columns that are neither numbers nor words have no cells."""
        index, declared = _pandas_columns(self._schema)
        types = lazy.pyarrow.types
        declared |= {field.name for field in self._schema if types.is_dictionary(field.type)}
        table = Table(self.name, self.names, True, [], index=index & set(self.names))
        as_words, columns, unread, typed = self.words_of(table), [], {}, set()
        for position, field in enumerate(self._schema):
            try:
                if _is_unreadable(field.type):
                    raise _Unreadable
                exact = position in as_words or field.name in declared
                column = _cells(read.column(field.name), exact)
                if isinstance(column, Words) and not _is_number(field.type):
                    typed.add(field.name)
            except _Unreadable as error:
                column = Words(np.full(read.num_rows, -1, np.int32), [])
                unread[position] = str(error) or f"is of type {field.type!s:.40}"
            columns.append(column)
        categorical = frozenset(declared) & set(self.names)
        return replace(
            table, columns=columns, typed=frozenset(typed), categorical=categorical, unread=unread
        )


class _Unreadable(Exception):
    """The cells of a column are neither numbers nor words; str(error): what they are."""


def _is_unreadable(kind) -> bool:
    """Whether a pyarrow type is of lists, structs or long bytes."""
    types = lazy.pyarrow.types
    kind = getattr(kind, "storage_type", kind)
    kind = kind.value_type if types.is_dictionary(kind) else kind
    long = types.is_fixed_size_binary(kind) and kind.byte_width > _LONGEST_FIXED
    return types.is_nested(kind) or long


def _is_number(kind) -> bool:
    """Whether a pyarrow type is numbers."""
    types = lazy.pyarrow.types
    return types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind)


def _is_bytes(kind) -> bool:
    """Whether a pyarrow type is words or bytes of any length."""
    types = lazy.pyarrow.types
    tests = (types.is_string, types.is_large_string, types.is_binary, types.is_large_binary)
    return any(test(kind) for test in tests)


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
    pyarrow, kind = lazy.pyarrow, column.type
    types, unit = pyarrow.types, 1.0
    if types.is_dictionary(kind):
        if _is_bytes(kind.value_type):
            return _numbered(column)
        column = column.cast(kind.value_type)
    if types.is_boolean(column.type):
        column = pyarrow.compute.if_else(column, "True", "False")
    if types.is_duration(column.type):
        column, unit = column.cast(pyarrow.int64()), _UNITS[column.type.unit]
    if types.is_decimal(column.type):
        # as in a text, because the cast to float64 does not round to nearest
        column = _without_zeros(column.cast(pyarrow.string()))
        if not as_words:
            column = column.cast(pyarrow.float64())
    if _is_number(column.type) and not (as_words and unit == 1 and types.is_integer(column.type)):
        values = np.asarray(column.cast(pyarrow.float64(), safe=False).to_numpy(), np.float64)
        return words_of_numbers(values / unit) if as_words else values / unit
    if not _is_bytes(column.type):
        try:
            column = column.cast(pyarrow.string())  # dates are words, as in a CSV file
        except pyarrow.ArrowException:
            raise _Unreadable from None
    return _numbered(column.dictionary_encode())


def _without_zeros(column):
    """Decimal numbers without the trailing zeros of their type: 1.50 is 1.5, and 2.00 is 2."""
    return lazy.pyarrow.compute.replace_substring_regex(
        column, r"^(-?[0-9]+(?:\.[0-9]*[1-9])?)\.?0*$", r"\1"
    )


def _numbered(column) -> Words:
    """The Words of a dictionary-encoded pyarrow column, without unused words."""
    numbers: dict[str, int] = {}
    codes = []
    for chunk in column.chunks:
        indices = chunk.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        present = np.unique(indices[indices >= 0])
        try:
            words = [
                word.decode() if isinstance(word, bytes) else word
                for word in chunk.dictionary.take(present).to_pylist()
            ]
        except UnicodeDecodeError:
            raise _Unreadable("has words that are not UTF-8") from None
        places = np.full(len(chunk.dictionary) + 1, -1, np.int32)
        places[present] = [
            -1 if word is None else numbers.setdefault(word, len(numbers)) for word in words
        ]
        codes.append(places[indices])
    return Words(np.concatenate(codes) if codes else np.zeros(0, np.int32), list(numbers))
