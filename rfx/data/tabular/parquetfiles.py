"""Tables from Parquet files with limited memory. pyarrow, an optional package, is used only
here.
"""

import numpy as np

from rfx import lazy
from rfx.data import archives
from rfx.data.tabular import parquetpages
from rfx.data.tabular.table import (
    A_COLUMN,
    Table,
    Words,
    digits,
    joined,
    none_forced,
    words_of_numbers,
)
from rfx.errors import DataError

_BATCH = 1 << 16  # rows
_A_WORD = 64  # bytes of a str in addition to its letters
_LONGEST_FIXED = 64  # bytes of numbers and names of fixed length


def parquet_file(file, name: str, words=()):
    """The pyarrow ParquetFile of a seekable binary handle; DataError if it is invalid, or pyarrow
    is missing.

    words: the names of columns of words, which are read as dictionary-encoded, so that no word is
    stored twice.
    """
    try:
        pyarrow = lazy.pyarrow
    except ImportError:
        raise DataError(
            f"{name} is a Parquet file, which needs pyarrow; pip install 'rfx-kernels[parquet]'"
        ) from None
    try:
        return pyarrow.parquet.ParquetFile(file, read_dictionary=list(words))
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        raise _no_parquet(name, error) from None


def _no_parquet(name, error) -> DataError:
    reason = str(error).splitlines()[0] if str(error) else repr(error)
    return DataError(f"{name} is not a readable Parquet file ({reason:.200})")


def parquet(file, name: str, forced=none_forced) -> Table:
    """The columns of a Parquet file, a binary handle: numbers, booleans and words. forced: see
    arrayfiles.npz.
    """
    content = ParquetGroups(file, name)
    content.exact = frozenset(
        content.schema.names[position] for position in forced(content.schema.names, True)
    )
    if not content.n_rows or not content.n_columns:
        raise DataError(f"{name} has no rows or no columns")
    archives.check_held(content.n_columns * (A_COLUMN + 8 * content.n_rows), name)
    held, found = 0, []
    for table, size in content.sized(range(content.n_groups)):
        held += size
        archives.check_held(held, name)
        found.append(table)
    if not found:
        raise DataError(f"{name} has no rows or no columns")
    return joined(found)


class ParquetGroups:
    """The row groups of a Parquet file, a seekable binary handle, as Tables; each at most most_held
    bytes.

    Pages are inspected before they are unpacked, and words are dictionary-encoded. Raises DataError
    if the file is invalid, has unsupported column types, or is too large. exact: the names of
    numeric columns to read as words.
    """

    def __init__(self, file, name: str, exact: frozenset = frozenset()):
        self.file, self.name, self.exact = file, name, exact
        try:
            self._chunks = parquetpages.chunks(file, archives.most_held(), name)
        except ValueError as error:
            raise _no_parquet(name, error) from None
        plain = parquet_file(file, name)
        self.schema, self.n_groups = plain.schema_arrow, len(self._chunks)
        self.n_rows, self.n_columns = plain.metadata.num_rows, len(self.schema.names)
        self._plain = plain
        if len(set(self.schema.names)) < self.n_columns:
            raise DataError(f"{name} has two columns of the same name")
        self._check_kinds()
        self._words = [field.name for field in self.schema if _is_bytes(field.type)]
        self._content = parquet_file(file, name, self._words)

    def _check_kinds(self):
        types = lazy.pyarrow.types
        for field in self.schema:
            kind = getattr(field.type, "storage_type", field.type)
            kind = kind.value_type if types.is_dictionary(kind) else kind
            long = types.is_fixed_size_binary(kind) and kind.byte_width > _LONGEST_FIXED
            if types.is_nested(kind) or long:
                raise _not_read(self.name, field.name, field.type)

    def tables(self, groups):
        """The Tables of row groups, by their numbers; each fits into memory."""
        return (table for table, _ in self.sized(groups))

    def sized(self, groups):
        """(Table, its bytes) of row groups, by their numbers."""
        pyarrow = lazy.pyarrow
        for group in groups:
            try:
                read = self._read(group)
                if not read.num_rows:
                    continue
                held = sum(self._size(column) for column in read.columns)
                archives.check_held(held, self.name)
                table = parquet_table(read, self.name, self.schema, self.exact)
            except (
                pyarrow.ArrowException,
                OSError,
                ValueError,
                OverflowError,
                IndexError,
            ) as error:
                raise _no_parquet(self.name, error) from None
            yield table, held

    def _read(self, group):
        """The pyarrow table of a row group with dictionary-encoded words."""
        unpacked, delta = 0, []
        for column in self._chunks[group]:
            found = parquetpages.pages(self.file, column)
            unpacked += found.unpacked + 8 * column.n_values
            if found.delta and ".".join(column.path) in self._words:
                delta.append((".".join(column.path), found.unpacked))
        archives.check_held(unpacked, self.name)
        late = dict(delta)
        read = self._content.read_row_group(
            group, [name for name in self.schema.names if name not in late]
        )
        for name, size in delta:
            read = read.append_column(name, self._differences(group, name, size))
        return read.select(self.schema.names) if delta else read

    def _differences(self, group, name, size):
        """A column whose words are stored as differences: read a few at a time, because each may be
        as long as all pages.
        """
        pyarrow = lazy.pyarrow
        rows, parts, held = (
            int(min(_BATCH, max(1, archives.most_held() // (4 * max(1, size))))),
            [],
            0,
        )
        for batch in self._plain.iter_batches(rows, [group], [name], use_threads=False):
            part = batch.column(0)
            parts.append(
                part if pyarrow.types.is_dictionary(part.type) else part.dictionary_encode()
            )
            held += parts[-1].dictionary.nbytes + parts[-1].indices.nbytes
            archives.check_held(held, self.name)
        return pyarrow.chunked_array(parts).unify_dictionaries()

    def _size(self, column) -> int:
        """Bytes of a column: 8 per number; for words, if RFX_MAX_BYTES is set, as in a text."""
        pyarrow = lazy.pyarrow
        size = 8 * len(column)
        if not pyarrow.types.is_dictionary(column.type) or not _is_bytes(column.type.value_type):
            return size
        for chunk in column.chunks:
            lengths = (
                pyarrow.compute.binary_length(chunk.dictionary)
                .fill_null(0)
                .to_numpy(zero_copy_only=False)
            )
            size += int(lengths.sum(dtype=np.int64)) + _A_WORD * len(lengths)
            if archives.max_bytes() is not None and len(lengths):
                known = chunk.indices.drop_null().to_numpy(zero_copy_only=False)
                counts = np.bincount(known, minlength=len(lengths))
                size += int((counts * lengths.astype(np.int64)).sum())
        return size


def _is_bytes(kind) -> bool:
    """Whether a pyarrow type is words or bytes of any length."""
    types = lazy.pyarrow.types
    return (
        types.is_string(kind)
        or types.is_large_string(kind)
        or types.is_binary(kind)
        or types.is_large_binary(kind)
    )


def _not_read(name, title, kind) -> DataError:
    return DataError(
        f"{name}: column {title!r:.80} is of type {kind!s:.40}; only numbers, booleans and words"
        " are supported"
    )


def parquet_table(read, name: str, schema, exact: frozenset = frozenset()) -> Table:
    """The Table of a pyarrow table, whose words may be dictionary-encoded.

    schema: the pyarrow schema of the file, which declares index and categories. exact: the names of
    numeric columns to read as words.
    """
    pyarrow = lazy.pyarrow
    names = list(read.column_names)
    index, declared = _pandas_columns(schema)
    declared |= {field.name for field in schema if pyarrow.types.is_dictionary(field.type)}
    as_words = exact | declared
    columns = [
        _arrow(column, title, name, title in as_words) for title, column in zip(names, read.columns)
    ]
    typed = frozenset(title for title, column in zip(names, columns) if isinstance(column, Words))
    return Table(
        name,
        names,
        True,
        columns,
        index=index & set(names),
        typed=typed,
        categorical=declared & typed,
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


_UNITS = {"s": 1, "ms": 1e3, "us": 1e6, "ns": 1e9}  # units of durations per second


def _arrow(column, title, name, as_words):
    pyarrow = lazy.pyarrow
    types, kind = pyarrow.types, column.type
    if types.is_dictionary(kind) and _is_bytes(kind.value_type):
        return _numbered(column, title, name)
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
            raise _not_read(name, title, kind) from None
    return _numbered(column.dictionary_encode(), title, name)


def _without_zeros(column):
    """Decimal numbers without the trailing zeros of their type: 1.50 is 1.5, and 2.00 is 2."""
    return lazy.pyarrow.compute.replace_substring_regex(
        column, r"^(-?[0-9]+(?:\.[0-9]*[1-9])?)\.?0*$", r"\1"
    )


def _numbered(column, title, name) -> Words:
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
            raise DataError(f"{name}: column {title!r:.80} has words that are not UTF-8") from None
        places = np.full(len(chunk.dictionary) + 1, -1, np.int32)
        places[present] = [
            -1 if word is None else numbers.setdefault(word, len(numbers)) for word in words
        ]
        codes.append(places[indices])
    return Words(np.concatenate(codes) if codes else np.zeros(0, np.int32), list(numbers))
