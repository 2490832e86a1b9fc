"""Files of rows in any format that rfx reads: what format one has, and its rows as a table, or as plain columns by their index.

By the name: .csv, .tsv, .tab, .npy, .npz, .parquet, .pq; else by the content, where LIBSVM text is what nothing else is.
"""

import io
from dataclasses import replace
from pathlib import Path

import numpy as np
from scipy.sparse import issparse

from rfx import files
from rfx.data import archives, arrayfiles, csvtext, labelwords, sequences, svmlight
from rfx.data.learner import learn
from rfx.data.reading import FileFormat, Reading, check_header, index_base
from rfx.data.schema import Input, Schema, encode_labels, places
from rfx.data.table import Table, Words, joined
from rfx.errors import DataError, UsageError

_SUFFIXES = {
    ".csv": "csv", ".tsv": "tsv", ".tab": "tsv", ".npy": "npy", ".npz": "npz", ".parquet": "parquet", ".pq": "parquet",
    ".libsvm": "libsvm", ".svm": "libsvm", ".svmlight": "libsvm",
}  # fmt: skip
_HEAD = 1 << 16
TABLES = ("csv", "tsv", "npy", "npz", "parquet")


def kind_of_name(path) -> str | None:
    """The format that a file's name says."""
    return _SUFFIXES.get(Path(archives.plain_name(path)).suffix.lower())


def kind_of_content(head: bytes) -> str:
    """The format of what begins with these plain bytes."""
    if head.startswith(b"PAR1"):
        return "parquet"
    if head.startswith(b"\x93NUMPY"):
        return "npy"
    if head.startswith(b"PK\x03\x04") and b".npy" in head[:256]:
        return "npz"
    return "csv" if csvtext.looks_like(head) and not sequences.recognised(head) else "libsvm"


class File:
    """A file of rows, or standard input (`-`): name for messages, kind one of csv, tsv, npy, npz, parquet, libsvm.

    Raises DataError where it can't be read.
    """

    def __init__(self, path, table: bool = False):
        """table: whether one is expected, so that text that could be either is one."""
        self.path = str(path)
        self.name = "standard input" if self.path == "-" else files.shown(path)
        self._content = None
        self.format: FileFormat | None = None  # how it is written, once it was read
        if self.path == "-":
            self._content = _whole(files.standard_input(), self.name)
        elif Path(path).is_fifo():
            with files.open_regular(path, pipes=True) as handle:  # a pipe is read once
                self._content = _whole(handle, self.name)
        self.kind = (None if self.path == "-" else kind_of_name(path)) or self._told(table)

    def _told(self, table):
        head = self._content[:_HEAD] if self._content is not None else b""
        if self._content is None:
            try:
                with files.open_regular(self.path) as handle:
                    head = handle.read(_HEAD)
            except OSError as error:
                raise DataError(f"{self.name} can't be read: {error.strerror or error}") from None
            if kind_of_content(head) not in ("npz", "parquet", "npy") and archives.codec(head[:8]):
                with self.open() as handle:
                    head = _read(handle, _HEAD, self.name)
        kind = kind_of_content(bytes(head))
        plain = labelwords.recognised(head) or labelwords.lacking(head)
        return "csv" if table and kind == "libsvm" and not _has_entry(bytes(head)) and (plain or csvtext.is_number(_first(head))) else kind

    def open(self):
        """A binary handle on the content, unpacked where that is text."""
        if self._content is not None:
            return io.BytesIO(self._content)
        try:
            packed = kind_of_name(self.path) in ("npz", "parquet", "npy") or getattr(self, "kind", None) in ("npz", "parquet", "npy")
            return files.open_regular(self.path) if packed else archives.open_plain(self.path)
        except archives.DAMAGE as error:
            raise DataError(f"{self.name} can't be read: {getattr(error, 'strerror', None) or error}") from None

    def libsvm(self):
        """What svmlight.read takes as its path."""
        return svmlight.Text(self.path, self._content) if self._content is not None else self.path

    def dialect(self, header: bool | None) -> csvtext.Dialect:
        """How a CSV text is written."""
        with self.open() as handle:
            head = _read(handle, _HEAD, self.name)
        return csvtext.dialect(head, self.name, header, "\t" if self.kind == "tsv" else None)

    def read(self, reading: Reading, schema: Schema | None = None):
        """A Table, or (X, column of targets or None) of a sparse matrix; schema: what columns are words in."""
        if self.kind in ("csv", "tsv"):
            return self._csv(reading, schema)
        self.format = FileFormat(self.kind)
        with self.open() as handle:
            if self.kind == "parquet":
                by_name = schema is not None and schema.inputs is not None and schema.named
                exact = schema.words() if by_name else frozenset(reading.categorical)
                return arrayfiles.parquet(handle, self.name, exact)
            read = {"npy": arrayfiles.npy, "npz": arrayfiles.npz}[self.kind]
            return read(handle, self.name, lambda titles, named: self._forced(titles, named, schema))

    def _forced(self, titles, named, schema) -> frozenset[int]:
        """The positions of the columns of an array that are words by the schema; the targets may not be among the titles."""
        if schema is None or schema.inputs is None:
            return frozenset()
        at = schema.target[1] if schema.target else len(titles)
        lacking = len(titles) == schema.size - 1 and not (named and schema.named)
        names = [*titles[:at], "", *titles[at:]] if lacking else titles
        found = words_of(csvtext.Dialect(",", named, tuple(names), self.name), schema)
        return frozenset(position - (position > at) for position in found - {at}) if lacking else found

    def _csv(self, reading, schema):
        known = None if schema is None else schema.format
        check_header(reading, known, self.name)
        shape = self.dialect(reading.header if known is None or known.header is None else known.header)
        self.format = FileFormat(self.kind, header=shape.header, separator=shape.separator)
        forced = words_of(shape, schema, reading)
        while True:
            try:
                with self.open() as handle:
                    parts = list(csvtext.tables(_Checked(handle, self.name), shape, forced))
                if not parts:
                    raise DataError(f"{self.name} has no rows, only a header" if shape.header else f"{self.name} has no rows")
                return joined(parts)
            except csvtext.KindChanged as change:
                forced = forced | change.columns


def words_of(shape: csvtext.Dialect, schema: Schema | None, reading: Reading | None = None) -> frozenset[int]:
    """The positions of the columns of a CSV text that are words by the schema, or by what is said of categories and dates."""
    if schema is None and reading is not None:
        names = Table(shape.name, list(shape.names), shape.header, [])
        asked = [("--categorical", name) for name in reading.categorical] + [("--dates", name) for name in reading.dates]
        return frozenset(names.find(name, option) for option, name in asked)
    if schema is None or schema.inputs is None:
        return frozenset()
    if schema.named and shape.header:
        return frozenset(place for place, name in enumerate(shape.names) if name in schema.words())
    return frozenset(schema.word_positions()) if len(shape.names) == schema.size else frozenset()


class _Checked:
    """A handle whose damage is a sentence."""

    def __init__(self, handle, name):
        self._handle, self._name = handle, name

    def read(self, count):
        return _read(self._handle, count, self._name)


def _read(handle, count, name):
    try:
        return handle.read(count)
    except archives.DAMAGE as error:
        raise DataError(f"{name} is damaged or cut off ({error}); get it again") from None


def _whole(handle, name) -> bytes:
    """All bytes of a pipe, unpacked unless they are an archive of arrays."""
    head = b""
    while len(head) < 256 and (more := handle.read(256 - len(head))):
        head += more
    rest = archives.joined(head, handle)
    if kind_of_content(head) not in ("npz", "parquet", "npy"):
        return bytes(archives.read_plain(rest, name))
    most, content = archives.most_held(), bytearray()
    while piece := rest.read(1 << 20):
        content += piece
        if len(content) > most:
            raise DataError(f"{name} holds more than {most:,} bytes, which is the most that are read; RFX_MAX_BYTES sets another limit")
    return bytes(content)


def _first(head) -> str:
    line = next((line for line in bytes(head).splitlines() if line.strip()), b"")
    return line.decode("utf-8", "replace").strip()


def _has_entry(head) -> bool:
    return any(word.split(b":")[0].isdigit() and b":" in word for word in next(iter(head.strip().splitlines()), b"").split())


# ---------------------------------------------------------------------- rows


def check_reading(file: File, reading: Reading) -> None:
    """Refuse what only tables have for LIBSVM text, with a UsageError."""
    if file.kind != "libsvm":
        return
    given = {"--target": reading.target, "--header": reading.header, "--ignore": reading.ignore or None}
    given |= {"--categorical": reading.categorical or None, "--dates": reading.dates or None}
    given["--missing"] = None if reading.missing == "refuse" else reading.missing
    for option, value in given.items():
        if value is not None:
            raise UsageError(f"{option} is for tables such as CSV, but {file.name} is LIBSVM text")


def plain_rows(content, name: str):
    """X, y and the Schema, None for labels that are numbers, of a matrix and its column of targets, or (n, k) targets."""
    X, column = content
    if column is None:
        raise DataError(f"{name} has no targets y")
    if getattr(column, "ndim", 1) == 2:
        return X, column, None
    if isinstance(column, Words):
        schema = Schema(labels=sorted({column.values[code] for code in column.codes if code >= 0}))
        return X, places(column, schema.labels, name), schema
    return X, encode_labels(Table(name, ["y"], True, [column]), 0, None), None


def training_rows(path, reading: Reading, cut):
    """(X, y) of the training rows and of the others, the Schema learnt on the first, and the Table of the first where they have
    missing cells.

    cut: a function of the number of rows that returns the numbers of the training rows and of the others, either None for all.
    """
    file = File(path)
    check_reading(file, reading)
    content = None if file.kind == "libsvm" else file.read(reading)
    if isinstance(content, Table):
        train, test = cut(content.n_rows)
        rows = content if train is None else content.rows(train)
        schema = replace(learn(rows, reading), format=file.format)
        return schema.encode(rows), (None, None) if test is None else schema.encode(content.rows(test)), schema, _gaps(rows, reading)
    if content is None:
        labels = svmlight.Labels()
        zero_based = bool(reading.zero_based)
        X, y = svmlight.read(file.libsvm(), zero_based=zero_based, labels=labels)
        schema = Schema(labels=labels.names, format=FileFormat("libsvm", zero_based if issparse(X) else None))
    else:
        X, y, schema = plain_rows(content, file.name)
        schema = replace(schema or Schema(), format=file.format)
    train, test = cut(X.shape[0])
    first = (X, y) if train is None else (X[train], y[train])
    return first, (None, None) if test is None else (X[test], y[test]), schema, None


def _gaps(table, reading) -> Table | None:
    """The table, where some of its cells are missing and replaced."""
    missing = (values.codes < 0 if isinstance(values, Words) else np.isnan(values) for values in table.columns)
    return table if reading.missing != "refuse" and any(part.any() for part in missing) else None


def other_rows(path, schema: Schema | None, n_inputs, reading=None, letters=None, strict=False, targets="needed"):
    """X (n, n_inputs) and y of the rows of a file, read as the schema of a model has it; y is None where `targets` is ignored.

    reading (Reading): what is said of this file. Raises DataError where the file does not go with the model, and UsageError where
    what is said contradicts the model.
    """
    reading = reading or Reading()
    known = None if schema is None else schema.format
    by_name = schema is not None and schema.inputs is not None
    file = File(path, table=by_name)
    if file.kind != "libsvm":
        content = file.read(reading, schema)
        if isinstance(content, Table):
            if by_name:
                return schema.encode(content, strict, targets)
            return _by_position(content, schema, n_inputs, strict, targets)
        X, column = content
        if issparse(X):
            X = svmlight.narrowed(X, n_inputs, file.name, strict)
        elif X.shape[1] != n_inputs:
            raise DataError(f"{file.name} has {X.shape[1]} columns of inputs, but the model was trained on {n_inputs}")
        if targets == "ignored":
            return X, None
        if isinstance(column, Words):
            return X, places(column, _labels(schema, column, file.name), file.name)
        return X, plain_rows(content, file.name)[1]
    zero_based = index_base(reading, known, file.name)
    labels = svmlight.Labels(None if schema is None else schema.labels, known=True, optional=targets == "ignored")
    X, y = svmlight.read(
        file.libsvm(), n_features=n_inputs, zero_based=zero_based, letters=letters, labels=labels, wider="refuse" if strict else "leave out"
    )
    return X, None if targets == "ignored" else y


def _labels(schema, column, name):
    if schema is None or schema.labels is None:
        raise DataError(f"{name} has words as labels ({', '.join(column.values[:5]):.100}), but the model's are numbers")
    return schema.labels


def _by_position(table, schema, n_inputs, strict, targets):
    """Rows of a table for a model that was trained on columns by their index: all columns are inputs, but the file's own targets."""
    if table.own_target is None and targets == "needed":
        raise DataError(
            f"{table.name} is a table, but the model was trained on columns by their index; rfx convert writes LIBSVM text of a table"
        )
    inputs = [position for position in range(len(table.columns)) if position != table.own_target]
    if len(inputs) != n_inputs:
        raise DataError(f"{table.name} has {len(inputs)} columns of inputs, but the model was trained on {n_inputs}")
    own = Schema(
        [Input(table.names[position], position) for position in inputs], False, len(table.columns),
        None if table.own_target is None else ("y", table.own_target), (), None if schema is None else schema.labels,
    )  # fmt: skip
    return own.encode(table, strict, targets)
