"""Tables from Parquet files. pyarrow, an optional package, is used only here."""

import numpy as np

from rfx import lazy
from rfx.data import archives
from rfx.data.tabular.table import Table, Words, digits, joined, none_forced, words_of_numbers
from rfx.errors import DataError

_LONGEST_FIXED = 64  # bytes of numbers and names of fixed length
_UNITS = {"s": 1, "ms": 1e3, "us": 1e6, "ns": 1e9}  # units of durations per second


def parquet(file, name: str, forced=none_forced) -> Table:
    """The columns of a Parquet file, a binary handle: numbers, booleans and words. forced: see
    arrayfiles.npz.
    """
    content = ParquetGroups(file, name)
    names = content.schema.names
    content.exact = frozenset(names[position] for position in forced(names, True))
    archives.check_held(8 * content.n_rows * len(names), name)
    tables = list(content.tables(range(content.n_groups)))
    if not tables or not names:
        raise DataError(f"{name} has no rows or no columns")
    return joined(tables)


class ParquetGroups:
    """The row groups of a Parquet file, a seekable binary handle, as Tables.

    exact: the names of numeric columns to read as words. Raises DataError if the file is invalid or
    pyarrow is missing.
    """

    def __init__(self, file, name: str, exact: frozenset = frozenset()):
        self.name, self.exact = name, exact
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
        self.schema, self.n_groups = self._content.schema_arrow, self._content.num_row_groups
        self.n_rows = self._content.metadata.num_rows
        if len(set(self.schema.names)) < len(self.schema.names):
            raise DataError(f"{name} has two columns of the same name")

    def _damaged(self, error) -> DataError:
        reason = str(error).splitlines()[0] if str(error) else repr(error)
        return DataError(f"{self.name} is not a readable Parquet file ({reason:.200})")

    def tables(self, groups):
        """The Tables of row groups, by their numbers; each fits into memory."""
        names = [field.name for field in self.schema if not _is_unreadable(field.type)]
        for group in groups:
            rows = self._content.metadata.row_group(group).num_rows
            try:
                columns = self._content.read_row_group(group, names)
                archives.check_held(columns.nbytes, self.name)
                if rows:
                    yield self._table(columns, rows)
            except (lazy.pyarrow.ArrowException, OSError, ValueError, IndexError) as error:
                raise self._damaged(error) from None

    def _table(self, read, n_rows: int) -> Table:
        """The Table of a row group. Columns that are neither numbers nor words have no cells."""
        index, declared = _pandas_columns(self.schema)
        types = lazy.pyarrow.types
        declared |= {field.name for field in self.schema if types.is_dictionary(field.type)}
        columns, unread = [], {}
        for position, field in enumerate(self.schema):
            try:
                if _is_unreadable(field.type):
                    raise _Unreadable
                exact = field.name in self.exact | declared
                columns.append(_cells(read.column(field.name), exact))
            except _Unreadable as error:
                columns.append(Words(np.full(n_rows, -1, np.int32), []))
                unread[position] = str(error) or f"is of type {field.type!s:.40}"
        names = self.schema.names
        typed = frozenset(
            title for title, column in zip(names, columns) if isinstance(column, Words)
        )
        return Table(
            self.name,
            names,
            True,
            columns,
            index=index & set(names),
            typed=typed,
            categorical=declared & typed,
            unread=unread,
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


def _is_bytes(kind) -> bool:
    """Whether a pyarrow type is words or bytes of any length."""
    types = lazy.pyarrow.types
    return (
        types.is_string(kind)
        or types.is_large_string(kind)
        or types.is_binary(kind)
        or types.is_large_binary(kind)
    )


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
    pyarrow = lazy.pyarrow
    types, kind = pyarrow.types, column.type
    if types.is_dictionary(kind) and _is_bytes(kind.value_type):
        return _numbered(column)
    if types.is_dictionary(kind):
        column = column.cast(kind.value_type)
        kind = column.type
    if types.is_boolean(kind):
        column = pyarrow.compute.if_else(column, "True", "False")
        kind = column.type
    if types.is_decimal(kind):
        # as in a text, because the cast to float64 does not round to nearest
        column = column.cast(pyarrow.string())
    if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
        if not as_words or types.is_floating(kind):
            if as_words and not types.is_float64(kind) and not types.is_decimal(kind):
                return digits(np.asarray(column.to_numpy()))
            values = np.asarray(column.cast(pyarrow.float64(), safe=False).to_numpy(), np.float64)
            return words_of_numbers(values) if as_words else values
        column = _without_zeros(column.cast(pyarrow.string()))
        kind = column.type
    if types.is_duration(kind):
        values = np.asarray(
            column.cast(pyarrow.int64()).cast(pyarrow.float64(), safe=False).to_numpy(), np.float64
        )
        return (
            words_of_numbers(values / _UNITS[kind.unit]) if as_words else values / _UNITS[kind.unit]
        )
    if not _is_bytes(kind):
        try:
            column = column.cast(
                pyarrow.string()
            )  # dates and similar types: words, as in a CSV file
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
