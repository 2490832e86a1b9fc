"""Files of rows in all formats that rfx reads: the format of a file, and its rows as a table or as
columns by index.

The format follows from the name: .csv, .tsv, .tab, .npy, .npz, .parquet, .pq; else from the
content, with LIBSVM text as the last choice.
"""

import contextlib
import io
import logging
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

import numpy as np
from scipy.sparse import issparse

from rfx import files
from rfx.data import libsvm, repeats, textfiles
from rfx.data.reading import FileFormat, Reading, agreed
from rfx.data.tabular import labelwords, readers, targetmeans
from rfx.data.tabular.group_splits import SplitConstraint, kept_apart
from rfx.data.tabular.learner import Learner, targets_of
from rfx.data.tabular.schema import Input, Schema, encode_labels, label_text, places
from rfx.data.tabular.table import Table, Words
from rfx.errors import DataError, NoRows, UsageError
from rfx.types import Inputs

_SUFFIXES = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".npy": "npy",
    ".npz": "npz",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".libsvm": "libsvm",
    ".svm": "libsvm",
    ".svmlight": "libsvm",
}


@dataclass(frozen=True)
class _ArrayFormat:
    """A format of files of arrays: their first bytes, and the function that reads them, such as
    `readers.npy`.
    """

    begins: bytes
    read: Callable


_ARRAYS = {
    "npy": _ArrayFormat(b"\x93NUMPY", readers.npy),
    "npz": _ArrayFormat(b"PK\x03\x04", readers.npz),
    "parquet": _ArrayFormat(b"PAR1", readers.parquet),
}
_HEAD = 1 << 16
_ENTRY = re.compile(rb"(?:^|\s)[0-9]+:")  # of LIBSVM text
log = logging.getLogger(__name__)


def kind_of_name(path) -> str | None:
    """The format indicated by a file's name."""
    return _SUFFIXES.get(Path(textfiles.plain_name(path)).suffix.lower())


def kind_of_content(head: bytes) -> str:
    """The format of content that begins with these plain bytes."""
    for kind, form in _ARRAYS.items():
        if head.startswith(form.begins) and (kind != "npz" or b".npy" in head[:256]):
            return kind
    is_table = readers.looks_like(head) and not libsvm.recognised(head)
    return "csv" if is_table else "libsvm"


class File:
    """A file of rows, or standard input (`-`): name for messages, kind one of csv, tsv, npy, npz,
    parquet, libsvm; format: after reading.

    Raises DataError if it can't be read.
    """

    def __init__(self, path, table: bool = False, encoding: str | None = None):
        """table: whether to read ambiguous text as a table. encoding: of a text without a byte
        order mark; by default UTF-8.
        """
        self.path, self._content = str(path), None
        self.format: FileFormat | None = None
        self.encoding = encoding if encoding is None else textfiles.known(encoding)
        self.name = "standard input" if self.path == "-" else files.shown(path)
        if self.path == "-":
            self._content = _whole(files.standard_input(), self.name)
        elif Path(path).is_fifo():
            with open(path, "rb") as handle:  # a pipe can be read only once
                self._content = _whole(handle, self.name)
        self.kind = self._recognised(None if self.path == "-" else kind_of_name(path), table)

    def _stored(self):
        """A handle on the bytes of the file as they are stored."""
        return open(self.path, "rb") if self._content is None else io.BytesIO(self._content)

    def _head(self, unpacked: Callable = contextlib.nullcontext) -> bytes:
        with textfiles.naming(self.name), self._stored() as stored, unpacked(stored) as handle:
            return handle.read(_HEAD)

    def _recognised(self, named: str | None, table: bool) -> str:
        """The format of the file: by its name, else by its first bytes."""
        head = b"" if named in _ARRAYS else self._head()
        if named in _ARRAYS or kind_of_content(head) in _ARRAYS:
            return named or kind_of_content(head)
        if foreign_kind(head) is None and textfiles.compressed(head[:8]):
            head = self._head(textfiles.open_plain)
        head = textfiles.head(bytes(head), self.encoding)
        check_foreign(head, self.name)
        kind = named or kind_of_content(head)
        first = next((line.strip() for line in head.splitlines() if line.strip()), b"")
        is_ambiguous = named is None and not _ENTRY.search(first)
        return "csv" if table and is_ambiguous else kind

    def text(self):
        """The file as a text, the input of svmlight.read."""
        return textfiles.Text(self.path, self.encoding, self._content)

    def read(
        self,
        reading: Reading,
        schema: Schema | None = None,
        words_of: readers.WordColumns | None = None,
    ):
        """A Table, or (X, target column or None) of a sparse matrix.

        Parameters
        ----------
        schema : Schema, optional
            Of the model that the rows are for.
        words_of : function of a Table without rows
            The positions of the columns to read as words whatever their cells; by default those of
            the schema.
        """
        words_of = words_of or (schema.words_in if schema else readers.no_words)
        if self.kind in _ARRAYS:
            self.format = FileFormat(self.kind)
            with self._stored() as handle:
                return _ARRAYS[self.kind].read(handle, self.name, words_of)
        form = None if schema is None else schema.format
        agreed("header", reading, form, self.name)
        with self.text() as text:
            raw = text.read()
        shape = dialect(io.BytesIO(raw).read, self.path, self.name, reading, schema)
        self.format = shape.format(self.encoding)
        words = words_of(shape.columns())
        table = readers.parse(raw[shape.start :], shape, shape.line, words, whole=True)
        if table is None:
            header = ", only a header" if shape.header else ""
            raise NoRows(f"{self.name} has no rows{header}")
        return table


def dialect(
    read: Callable[[int], bytes], path, name: str, reading: Reading, schema: Schema | None
) -> readers.Dialect:
    """The dialect of a CSV text, for a model if there is a schema; guesses are logged. read: see
    `readers.sample`.
    """
    separator = "\t" if kind_of_name(path) == "tsv" else None
    sample, header = readers.sample(read, name, separator), reading.header
    if header is None and schema is not None and schema.inputs is not None:
        header = _has_header(sample, schema)
    shape = sample.decided(header)
    for note in shape.notes:
        log.warning(note)
    return shape


def _has_header(sample: readers.Dialect, schema: Schema) -> bool:
    """Whether a CSV text begins with a header, for a model trained on a table.

    Raises DataError if the text and the training file differ so that rows or columns would be
    confused.
    """
    cells, names = sample.cells, [column.name for column in schema.columns]
    if schema.named and _has_names(cells, names):
        return True
    guess = readers.guess(sample.cells, sample.rows)
    categories = {word for column in schema.columns for word in column.categories or ()}
    if categories.isdisjoint(cells):
        if schema.named and guess.header:
            return True
        if guess.header or (guess.doubt and not any(map(readers.is_value, cells))):
            model = "was trained on a file without one"
            if schema.named:
                model = f"has the header {sample.separator.join(names):.200}"
            raise DataError(
                f"{sample.name}, line {sample.line}: it is a header ({', '.join(cells):.80}), but"
                f" the model {model}; correct or remove the line"
            )
    if schema.named:
        log.warning(
            "%s does not begin with the model's header, so its columns are read in the order of the"
            " training file",
            sample.name,
        )
    return False


def _has_names(cells: list[str], names: list[str]) -> bool:
    """Whether cells contain all these names, or one that is no value."""
    found = [name for name in names if name in cells]
    return len(found) == len(names) or not all(map(readers.is_value, found))


def _whole(handle, name) -> bytes:
    """All bytes of a pipe, unpacked unless they are an archive of arrays."""
    raw = handle.read()
    if kind_of_content(raw[:256]) in _ARRAYS:
        return raw
    return textfiles.read_plain(io.BytesIO(raw), name)


# ---------------------------------------------------------------------- rows


def check_reading(kind: str, name: str, reading: Reading) -> None:
    """Raise UsageError for table options with LIBSVM text or a sparse matrix, and for an encoding
    of a file of arrays.
    """
    if reading.encoding is not None and kind in _ARRAYS:
        raise UsageError(f"--encoding is for texts, but {name} is a .{kind} file; omit it")
    tabular = sorted(reading.given().keys() - {"encoding", "zero_based"})
    what = {"libsvm": "LIBSVM text", "matrix": "a sparse matrix", "set": "not a table"}.get(kind)
    if tabular and what is not None:
        raise UsageError(f"--{tabular[0]} is for tables such as CSV, but {name} is {what}")


@dataclass(frozen=True)
class LearntRows:
    """The rows of a file, of which those for training say how rows are read.

    Parameters
    ----------
    X, y : array or csr_matrix (n, d), array (n,)
        The training rows.
    schema : Schema
        What they determine about reading other rows.
    task : str or None
        As requested, or inferred here.
    X_test, y_test : the same for the other rows, or None
    source : (Table, Learner) or None
        The training rows before they were encoded, and what encodes them, if X depends on further
        learning.
    test_source : Table or None
        The other rows before they were encoded.
    constraint : SplitConstraint or None
        The groups or times of the training rows.
    """

    X: Inputs
    y: np.ndarray
    schema: Schema
    task: str | None
    X_test: Inputs = None
    y_test: np.ndarray | None = None
    source: tuple[Table, Learner] | None = None
    test_source: Table | None = None
    constraint: SplitConstraint | None = None


# From the number of rows, and from what keeps them apart, or None, to the numbers of the training
# rows and of the others.
Cut: TypeAlias = Callable[[int, SplitConstraint | None], tuple[np.ndarray, np.ndarray]]


def training_rows(
    path,
    reading: Reading,
    cut: Cut | None = None,
    task: str | None = None,
    seed: int | None = None,
) -> LearntRows:
    """The rows of a file, some of which are for training.

    task: as requested. It is inferred here if numeric targets have other spellings than rfx prints,
    which classes keep, and if columns become target means.

    seed: of training, which reports the treatment of columns and uses target means for those with
    many categories; None if rows are only written, with one-hot columns.

    cut: None: all are training rows.
    """
    file = File(path, encoding=reading.encoding)
    check_reading(file.kind, file.name, reading)
    if file.kind == "libsvm":
        zero_based = bool(reading.zero_based)
        X, y = libsvm.read(file.text(), zero_based=zero_based)
        base = zero_based if issparse(X) else None
        form = FileFormat("libsvm", base, encoding=file.encoding)
        schema = Schema(format=form)
    else:
        learner = Learner(reading, task=task)
        content = file.read(reading, words_of=learner.begin)
        if isinstance(content, Table):
            return _table_training_rows(file, content, learner, cut, seed)
        check_reading("matrix", file.name, reading)
        X, y = content
        schema = Schema(format=file.format)
        table = _targets(y, file.name)
        if table is not None:
            schema.labels, schema.target_form, task = targets_of(table, task)
            y = schema.targets_of(table, 0)
    if cut is None:
        return LearntRows(X, y, schema, task)
    train, test = cut(X.shape[0], None)
    return LearntRows(X[train], y[train], schema, task, X[test], y[test])


def _targets(column, name: str) -> Table | None:
    """The table of a single target column from an array; None for several targets per row.

    Raises DataError if there are none.
    """
    if column is None:
        raise DataError(f"{name} has no targets y")
    single = isinstance(column, Words) or column.ndim == 1
    return Table(name, ["y"], True, [column], own_target=0) if single else None


def _table_training_rows(
    file: File, content: Table, learner: Learner, cut: Cut | None, seed: int | None
) -> LearntRows:
    """The result of `training_rows` for a file that is a table."""
    constraint = kept_apart(content, learner.reading)
    rows, others = content, None
    if cut is not None:
        train, test = cut(content.n_rows, constraint)
        rows, others = content.rows(train), content.rows(test)
        constraint = None if constraint is None else constraint.rows(train)
    schema = replace(learner.update(rows).finish(), format=file.format)
    task, y = learner.task, schema.targets_of(rows, learner.target)
    has_means = False
    if seed is not None and targetmeans.wanted(schema):
        has_means = True
        task = schema.task() or task or labelwords.guess_task(y)
        # means differ between equal rows
        if constraint is None:
            raw = schema.inputs_of(rows, targetmeans.codes(schema, rows))
            constraint = repeats.find_constraint(raw)
        schema, X, messages = fitted(schema, rows, y, task, seed, constraint=constraint)
        for message in messages:
            learner.tell(message)
    else:
        X = schema.inputs_of(rows, {})
    learner.say(schema, seed is not None)
    source = (rows, learner) if has_means or learner.has_gaps else None
    learner.restart()  # its numbers are those of the table
    X_test = y_test = None
    if others is not None:
        X_test, y_test = schema.encode(others)
        schema.tell_filled(others, only_new=True)
    return LearntRows(X, y, schema, task, X_test, y_test, source, others, constraint)


def fitted(
    schema: Schema,
    table: Table,
    y: np.ndarray,
    task: str | None,
    seed: int,
    kept: np.ndarray | None = None,
    constraint: SplitConstraint | None = None,
):
    """(the schema, X, messages) of the rows of a table, or of those with the numbers `kept`, with
    columns of many categories, if any, encoded by the means of the table's targets y (n,).

    constraint: the groups or times of the table's rows.
    """
    if not targetmeans.wanted(schema):
        return schema, schema.inputs_of(table if kept is None else table.rows(kept), {}), []
    assert task is not None
    Y = targetmeans.outputs(y, task)
    titles = []
    if Y.shape[1] > 1:
        titles = [label_text(schema, label) for label in np.unique(y)]
    if kept is not None:
        table, Y = table.rows(kept), Y[kept]
        constraint = None if constraint is None else constraint.rows(kept)
    return targetmeans.fitted(schema, table, Y, seed, titles, constraint)


def written_rows(
    path,
    reading: Reading,
    n_inputs: int | None = None,
    schema: Schema | None = None,
    letters=None,
    strict=False,
):
    """X, y and the Schema of the rows of a file, for writing as LIBSVM text.

    y: numbers, Words if these have a special spelling, or the positions of words among the schema's
    labels. n_inputs, schema, letters: learnt from other rows, if any.
    """
    if n_inputs is None:
        learnt = training_rows(path, reading, task=labelwords.KEPT)
        X, y, schema = learnt.X, learnt.y, learnt.schema
    else:
        if schema is not None and schema.has_numeric_labels:
            labels = labelwords.OpenLabels(schema.labels or ())
            schema = replace(schema, labels=labels)
        X, y = other_rows(path, schema, n_inputs, reading, letters, strict)
    if schema is not None and schema.has_numeric_labels:
        codes = y.astype(np.int32)
        return X, Words(codes, list(schema.labels or ())), replace(schema, labels=None)
    return X, y, schema


def other_rows(
    path,
    schema: Schema | None,
    n_inputs,
    reading=None,
    letters=None,
    strict=False,
    targets="needed",
):
    """X (n, n_inputs) and y of the rows of a file, read by the schema of a model; y is None if
    `targets` is ignored.

    reading (Reading): the options for this file. Raises DataError if the file does not match the
    model, and UsageError if the options contradict it.
    """
    return other_table(path, schema, n_inputs, reading, letters, strict, targets)[:2]


def other_table(
    path,
    schema: Schema | None,
    n_inputs,
    reading=None,
    letters=None,
    strict=False,
    targets="needed",
):
    """X and y as returned by `other_rows`, and the Table of the file, None if it is no table."""
    reading = reading or Reading()
    file = _known_file(path, schema, reading)
    if file.kind == "libsvm":
        X, y = _other_libsvm(file, schema, n_inputs, reading, letters, strict, targets)
        return X, y, None
    content = file.read(reading, schema)
    if isinstance(content, Table):
        if schema is None or schema.inputs is None:
            schema = _by_position(content, schema, n_inputs, targets)
        X, y = schema.encode(content, strict, targets)
        schema.tell_filled(content)
        return X, y, content
    X, column = content
    if issparse(X):
        X = libsvm.narrowed(X, n_inputs, file.name, strict)
    elif X.shape[1] != n_inputs:
        raise DataError(
            f"{file.name} has {X.shape[1]} columns of inputs, but the model was trained on"
            f" {n_inputs}"
        )
    if targets == "ignored":
        return X, None, None
    table = _targets(column, file.name)
    if table is None:
        return X, column, None
    labels = None if schema is None else schema.labels
    return X, encode_labels(table, 0, labels), None


def _other_libsvm(file: File, schema: Schema | None, n_inputs, reading, letters, strict, targets):
    """`other_rows` of LIBSVM text."""
    form, labels = (None, None) if schema is None else (schema.format, schema.labels)
    zero_based = agreed("zero_based", reading, form, file.name)
    X, y = libsvm.read(
        file.text(),
        n_features=n_inputs,
        zero_based=bool(zero_based),
        letters=letters,
        optional=targets == "ignored",
        strict=strict,
    )
    if targets == "ignored":
        return X, None
    if labels is not None:
        y = places(labelwords.words_of_numbers(y), labels, file.name)
    return X, y


def _known_file(path, schema: Schema | None, reading: Reading) -> File:
    """A file to read by the schema of a model."""
    form = None if schema is None else schema.format
    encoding = reading.encoding or (None if form is None else form.encoding)
    return File(path, schema is not None and schema.inputs is not None, encoding)


def identified_rows(path, schema: Schema | None, identify: str, reading=None, strict=False):
    """(X (n, n_inputs), name, cells) of the rows of a table, read by the schema of a model.

    Parameters
    ----------
    identify : str
        Name or number of the identifying column, which need not be an input.

    Returns
    -------
    name : str
        The name of that column.
    cells : list of str
        The cells of that column as spelled; empty if missing.

    Raises
    ------
    UsageError
        If there is no such column, or the file is not a table.
    """
    reading = reading or Reading()
    file = _known_file(path, schema, reading)
    if schema is None or schema.inputs is None:
        raise UsageError("--id is for models that were trained on a table")

    def as_words(table: Table) -> frozenset[int]:
        return schema.words_in(table) | {table.find(identify, "--id")}

    content = None if file.kind == "libsvm" else file.read(reading, schema, as_words)
    if not isinstance(content, Table):
        raise UsageError(f"--id is {identify!r:.80}, but {file.name} has no columns with names")
    place = content.find(identify, "--id")
    name, words = content.names[place], content.columns[place]
    without = replace(schema, ignored=(*schema.ignored, name))
    X, _ = without.encode(content, strict, "ignored")
    schema.tell_filled(content)
    if not isinstance(words, Words):
        words = labelwords.words_of_numbers(words)
    cells = np.array([*words.values, ""])
    return X, name, cells[words.codes].tolist()


def _by_position(table: Table, schema: Schema | None, n_inputs: int, targets: str) -> Schema:
    """How to read a table for a model trained on columns by index: all columns are inputs, except
    the file's own targets.
    """
    target = table.own_target
    if target is None and targets == "needed":
        raise DataError(
            f"{table.name} is a table, but the model was trained on columns by their index; rfx"
            " convert writes LIBSVM text of a table"
        )
    inputs = [Input(name, place) for place, name in enumerate(table.names) if place != target]
    if len(inputs) != n_inputs:
        raise DataError(
            f"{table.name} has {len(inputs)} columns of inputs, but the model was trained on"
            f" {n_inputs}"
        )
    place = None if target is None else ("y", target)
    labels = None if schema is None else schema.labels
    return Schema(inputs, False, len(table.names), place, (), labels)


# ---------------------------------------------------------------------- formats that are not read


_FOREIGN = [
    (re.compile(pattern, re.IGNORECASE), name)
    for pattern, name in (
        (rb"PK\x03\x04(?s:.)*(?:\[Content_Types\]\.xml|xl/)", "an Excel workbook (.xlsx)"),
        (rb"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an Excel workbook (.xls)"),
        (rb"\x89HDF\r\n\x1a\n", "an HDF5 file"),
        (rb"ARROW1|FEA1", "a Feather or Arrow file"),
        (rb"ORC", "an ORC file"),
        (rb"Obj\x01", "an Avro file"),
        (rb"SQLite format 3\0", "an SQLite database"),
        (rb"MATLAB 5\.0 MAT-file", "a MATLAB file"),
        (rb"\$FL2", "an SPSS file"),
        (rb"<stata_dta>", "a Stata file"),
        (rb"%PDF-", "a PDF document"),
        (rb"\x80[\x02-\x05]", "a pickle"),
        (rb"(?:\s|[%#].*\n)*@relation\b", "ARFF"),
        (rb"\s*<(?:!doctype html|html|\?xml)", "a page of HTML or XML"),
        (
            rb"""\s*(?:\{\s*(?:"[^"\n]*"\s*:|\}|\Z)|\[\s*(?:[{\["\]]|-?[0-9][-+.0-9e]*\s*,|\n|\Z))""",
            "JSON",
        ),
        # labels, weight and tag, then features in a namespace after the bar
        (rb"[-+.0-9e \t]*(?:'[^ \t|]*+)?[ \t]\|[A-Za-z_][^ \t|]*[ \t]", "Vowpal Wabbit text"),
    )
]


def foreign_kind(head: bytes) -> str | None:
    """The format of a file that begins with these bytes, in UTF-8 if it is text; None for formats
    that rfx may read.
    """
    return next((name for pattern, name in _FOREIGN if pattern.match(head)), None)


def check_foreign(head: bytes, name: str) -> None:
    """Raise DataError with the name of an unsupported format."""
    kind = foreign_kind(head)
    if kind is not None:
        raise DataError(
            f"{name} is {kind}, which rfx can't read; save its rows as CSV, Parquet or LIBSVM text"
        )
