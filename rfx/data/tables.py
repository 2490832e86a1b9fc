"""Files of rows in all formats that rfx reads: the format of a file, and its rows as a table or as
columns by index.

The format follows from the name: .csv, .tsv, .tab, .npy, .npz, .parquet, .pq; else from the
content, with LIBSVM text as the last choice.
"""

import io
import logging
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np
from scipy.sparse import issparse

from rfx import files
from rfx.data import archives, encodings
from rfx.data.libsvm import sequences, svmlight
from rfx.data.reading import FileFormat, Reading, check_header, index_base
from rfx.data.tabular import (
    arrayfiles,
    crossfit,
    csvtext,
    foreign,
    labelwords,
    parquetfiles,
    targetmeans,
)
from rfx.data.tabular.apart import Apart, kept_apart
from rfx.data.tabular.header import is_value
from rfx.data.tabular.learner import Learner, say_targets
from rfx.data.tabular.schema import Input, Schema, encode_labels, label_text, places
from rfx.data.tabular.table import Table, Words
from rfx.data.tabular.written import Form
from rfx.data.tasks import FEWEST_NUMBERS, guess_task
from rfx.errors import DataError, UsageError
from rfx.numerals import is_number

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
_HEAD = 1 << 16
log = logging.getLogger(__name__)
TABLES = ("csv", "tsv", "npy", "npz", "parquet")
_ARRAYS = {"npy": arrayfiles.npy, "npz": arrayfiles.npz, "parquet": parquetfiles.parquet}


def kind_of_name(path) -> str | None:
    """The format indicated by a file's name."""
    return _SUFFIXES.get(Path(archives.plain_name(path)).suffix.lower())


def kind_of_content(head: bytes) -> str:
    """The format of content that begins with these plain bytes."""
    if head.startswith(b"PAR1"):
        return "parquet"
    if head.startswith(b"\x93NUMPY"):
        return "npy"
    if head.startswith(b"PK\x03\x04") and b".npy" in head[:256]:
        return "npz"
    return "csv" if csvtext.looks_like(head) and not sequences.recognised(head) else "libsvm"


class File:
    """A file of rows, or standard input (`-`): name for messages, kind one of csv, tsv, npy, npz,
    parquet, libsvm.

    Raises DataError if it can't be read.
    """

    def __init__(self, path, table: bool = False, encoding: str | None = None):
        """table: whether to read ambiguous text as a table. encoding: of a text, if given."""
        if encoding is not None:
            encodings.known(encoding)
        self.encoding = encoding
        self.path = str(path)
        self.name = "standard input" if self.path == "-" else files.shown(path)
        self._content = None
        self.format: FileFormat | None = None  # the format, after reading
        if self.path == "-":
            self._content = _whole(files.standard_input(), self.name)
        elif Path(path).is_fifo():
            with files.open_regular(path, pipes=True) as handle:  # a pipe can be read only once
                self._content = _whole(handle, self.name)
        self.kind = self._told(None if self.path == "-" else kind_of_name(path), table)

    def _told(self, named, table):
        """The format of the file: by its name, else by its first bytes."""
        head = self._content[:_HEAD] if self._content is not None else b""
        if self._content is None:
            with archives.naming(self.name), files.open_regular(self.path) as handle:
                head = handle.read(_HEAD)
            if (
                foreign.recognised(head) is None
                and kind_of_content(head) not in ("npz", "parquet", "npy")
                and archives.compressed(head[:8])
            ):
                head = self._head()
        if named in ("npz", "parquet", "npy"):
            return named
        head = encodings.head(bytes(head), self.encoding)
        foreign.check(head, self.name, self.path)
        if named is not None:
            return named
        kind = kind_of_content(head)
        plain = labelwords.recognised(head) or labelwords.lacking(head)
        return (
            "csv"
            if table
            and kind == "libsvm"
            and not _has_entry(head)
            and (plain or is_number(_first(head)))
            else kind
        )

    def open(self):
        """A binary handle on the content, unpacked if that is text."""
        if self._content is not None:
            return io.BytesIO(self._content)
        kinds = kind_of_name(self.path), getattr(self, "kind", None)
        with archives.naming(self.name):
            if {"npz", "parquet", "npy"}.intersection(kinds):
                return files.open_regular(self.path)
            return archives.open_plain(self.path)

    def _head(self) -> bytes:
        """The first bytes of the content."""
        with archives.naming(self.name), self.open() as handle:
            return handle.read(_HEAD)

    def libsvm(self):
        """The input of svmlight.read."""
        if self._content is None and self.encoding is None:
            return self.path
        return svmlight.Text(self.path, self._content, self.encoding)

    def text(self):
        """The content of a text as UTF-8."""
        return encodings.Text(self.path, self.encoding, self._content)

    def csv_format(self, shape: csvtext.Dialect) -> FileFormat:
        """The dialect of a CSV text, for a model."""
        encoding = encodings.remembered(self.encoding)
        return FileFormat(
            self.kind, header=shape.header, separator=shape.separator, encoding=encoding
        )

    def expect(self, encoding: str | None) -> None:
        """Use this encoding, a model's, for a text without a given encoding that is not UTF-8."""
        if encoding is None or self.encoding is not None:
            return
        if encodings.marked(self._head()) is not None:
            return
        with archives.naming(self.name), self.open() as handle:
            good, plain = encodings.is_utf8(handle)
        if not good:
            self.encoding = encoding
        elif not plain:
            log.warning(
                "%s is read as UTF-8, although the training file was %s", self.name, encoding
            )

    def dialect(self, reading: Reading, schema: Schema | None = None) -> csvtext.Dialect:
        """The dialect of a CSV text; schema: of the model that the rows are for."""
        known = None if schema is None else schema.format
        check_header(reading, known, self.name)
        separator = "\t" if self.kind == "tsv" else None
        with self.text() as handle:
            if schema is None or schema.inputs is None:
                return csvtext.sample(handle.read, self.name, separator).dialect(reading.header)
            widths = (schema.size, schema.size - 1)
            found = csvtext.sample(
                handle.read,
                self.name,
                separator,
                widths,
                None if known is None else known.separator,
            )
        return found.dialect(has_header(found, reading, schema))

    def read(self, reading: Reading, schema: Schema | None = None):
        """A Table, or (X, target column or None) of a sparse matrix; schema: which columns are
        words.
        """
        if self.kind in ("csv", "tsv"):
            return self._csv(reading, schema)
        self.format = FileFormat(self.kind)
        with self.open() as handle:
            forced = lambda titles, named: self._forced(titles, named, schema, reading)
            return _ARRAYS[self.kind](handle, self.name, forced)

    def _forced(self, titles, named, schema, reading) -> frozenset[int]:
        """The positions of the columns of arrays or Parquet that are words in the schema; the
        target's position is last if it is not among the titles."""
        if schema is None and titles:
            return words_of(csvtext.Dialect(",", named, tuple(titles), self.name), None, reading)
        if schema is None or schema.inputs is None:
            return (
                frozenset() if schema is None or schema.labels is None else frozenset({len(titles)})
            )
        at = schema.target[1] if schema.target else len(titles)
        lacking = len(titles) == schema.size - 1 and not (named and schema.named)
        names = [*titles[:at], "", *titles[at:]] if lacking else titles
        found = words_of(csvtext.Dialect(",", named, tuple(names), self.name), schema)
        if lacking or schema.target is None:
            own = frozenset() if schema.labels is None else frozenset({len(titles)})
            return own | frozenset(
                position - (lacking and position > at) for position in found - {at}
            )
        return found

    def _csv(self, reading, schema):
        shape = self.dialect(reading, schema)
        for note in shape.notes:
            log.warning(note)
        return self._cells(shape, words_of(shape, schema, reading))

    def _cells(self, shape, forced) -> Table:
        """The rows of a CSV text; forced: the positions of columns to read as words regardless of
        their cells.
        """
        self.format, self._read = self.csv_format(shape), (shape, forced)
        found = csvtext.read(self.text, shape, forced)
        if found is None:
            raise DataError(
                f"{self.name} has no rows, only a header"
                if shape.header
                else f"{self.name} has no rows"
            )
        return found

    def words(self, position: int) -> Words:
        """A column of all rows that was read as numbers, as words: with the spelling of its cells,
        or all digits of integers.

        Other numbers are returned as numbers.
        """
        if self.kind in ("csv", "tsv"):
            shape, forced = self._read
            return self._cells(shape, forced | {position}).columns[position]
        with self.open() as handle:
            again = _ARRAYS[self.kind](
                handle, self.name, lambda titles, named: frozenset({position})
            )
        return again.columns[position] if isinstance(again, Table) else again[1]


def words_of(
    shape: csvtext.Dialect, schema: Schema | None, reading: Reading | None = None
) -> frozenset[int]:
    """The positions of the columns of a CSV text that are words in the schema, or by the options
    for categories and dates.
    """
    if schema is None and reading is not None:
        names = Table(shape.name, list(shape.names), shape.header, [])
        asked = [("--categorical", name) for name in reading.categorical] + [
            ("--dates", name) for name in reading.dates
        ]
        asked += [] if reading.groups is None else [("--groups", reading.groups)]
        return frozenset(names.find(name, option) for option, name in asked)
    if schema is None or schema.inputs is None:
        return frozenset()
    if schema.named and shape.header:
        return frozenset(place for place, name in enumerate(shape.names) if name in schema.words())
    return frozenset(schema.word_positions()) if len(shape.names) == schema.size else frozenset()


def has_header(found: csvtext.Sample, reading: Reading, schema: Schema) -> bool:
    """Whether a CSV text begins with a header, for a model trained on a table.

    Raises DataError if the text and the training file differ so that rows or columns would be
    confused.
    """
    cells, names = found.cells, [column.name for column in schema.columns]
    if reading.header is not None:
        return reading.header
    if schema.named and (
        set(names) <= set(cells) or any(name in cells and not is_value(name) for name in names)
    ):
        return True
    lacking = schema.target is not None and len(cells) == schema.size - 1
    shift = schema.target[1] if schema.target is not None and lacking else schema.size
    below = dict(enumerate(cells))
    known = any(
        below.get(column.position - (column.position > shift)) in (column.categories or ())
        for column in schema.columns
    )
    guess, start = found.guess(), f"{found.name}, line {found.line}: it"
    if schema.named and guess.header and not known:
        return True
    if schema.named and guess.doubt and not known:
        raise DataError(
            f"{start} may be a header or a row ({', '.join(cells):.80}); add the model's header"
            f" above the rows: {found.separator.join(names):.200}"
        )
    if schema.named:
        log.warning(
            "%s does not begin with the model's header, so its columns are read in the order of the"
            " training file",
            found.name,
        )
    elif not known and (guess.header or (guess.doubt and not any(map(is_value, cells)))):
        raise DataError(
            f"{start} is a header ({', '.join(cells):.80}), but the model was trained on a file"
            " without one; remove the line"
        )
    return False


def _whole(handle, name) -> bytes:
    """All bytes of a pipe, unpacked unless they are an archive of arrays."""
    head = archives.beginning(handle, 256)
    rest = archives.joined(head, handle)
    packed = kind_of_content(head) in ("npz", "parquet", "npy")
    read = archives.gathered if packed else archives.read_plain
    return bytes(read(rest, name))


def _first(head) -> str:
    line = next((line for line in bytes(head).splitlines() if line.strip()), b"")
    return line.decode("utf-8", "replace").strip()


def _has_entry(head) -> bool:
    return any(
        word.split(b":")[0].isdigit() and b":" in word
        for word in next(iter(head.strip().splitlines()), b"").split()
    )


# ---------------------------------------------------------------------- rows


def check_reading(kind: str, name: str, reading: Reading) -> None:
    """Raise UsageError for table options with LIBSVM text, and for an encoding of a file that is
    not text.
    """
    if reading.encoding is not None and kind not in ("csv", "tsv", "libsvm"):
        raise UsageError(f"--encoding is for texts, but {name} is a .{kind} file; omit it")
    if kind != "libsvm":
        return
    given = {
        "--groups": reading.groups,
        "--time": reading.time,
        "--target": reading.target,
        "--header": reading.header,
        "--ignore": reading.ignore or None,
    }
    given |= {"--categorical": reading.categorical or None, "--dates": reading.dates or None}
    given["--missing"] = None if reading.missing == "refuse" else reading.missing
    for option, value in given.items():
        if value is not None:
            raise UsageError(f"{option} is for tables such as CSV, but {name} is LIBSVM text")


def plain_rows(content, name: str, task: str | None = None):
    """X, y and the Schema (None for numeric labels) of a matrix and its target column, or (n, k)
    targets.
    """
    X, column = content
    if column is None:
        raise DataError(f"{name} has no targets y")
    if getattr(column, "ndim", 1) == 2:
        return X, column, None
    table = _targets(column, name)
    if isinstance(column, Words):
        column = table.settled(0)
        if (column.codes < 0).any():
            raise DataError(
                f"{table.place(int(np.argmax(column.codes < 0)))}: its target is missing; fill it"
                " in"
            )
        words = {column.values[code] for code in column.codes if code >= 0}
        same = labelwords.are_numbers(words)
        if task == "regression" and not same:
            row = next(
                row
                for row, code in enumerate(column.codes)
                if labelwords.value(column.values[code]) is None
            )
            raise labelwords.no_number(
                table.place(row), column.values[column.codes[row]], "the target"
            )
        if task != "regression":
            labels = labelwords.ascending(words, list(map(float, words)) if same else None)
            return X, places(column, labels, name), Schema(labels=labels)
    return X, encode_labels(table, 0, None), None


def _targets(column, name: str) -> Table:
    """The table of a single target column from an array."""
    return Table(name, ["y"], True, [column], doubtful=csvtext.DOUBTFUL)


def _spelled(file: File, content: Table, position: int, y, train, task):
    """(target column or None, labels or None, task) of numbers y (n,), of the training rows, as
    classes.

    The column is words if some are not spelled as rfx prints numbers. task: as given, or inferred
    here.
    """
    column = content.columns[position]
    if task == "regression" or not (
        content.texts or isinstance(column, Words) or _beyond_doubles(y) or _of_floats(y)
    ):
        return None, None, task
    if (
        task in (None, labelwords.KEPT)
        and len(np.unique(y)) > FEWEST_NUMBERS
        and not _beyond_doubles(y)
    ):
        return None, None, task
    words = column if isinstance(column, Words) else file.words(position)
    if not isinstance(words, Words):
        return None, None, task
    labels, task = labelwords.decided(
        words if train is None else words.rows(train), y, task, file.name
    )
    return (None if labels is None else words), labels, task


def asks_spelling(schema: Schema, task: str | None) -> bool:
    """Whether numeric targets of a schema may be classes, which keep their spelling."""
    return schema.labels is None and task != "regression"


def with_labels(
    schema: Schema, labels: list[str] | None, words: Iterable[str], name: str
) -> Schema:
    """The schema with labels learnt from the spelling of its targets; None: they remain numbers,
    with a message if they are written as such words."""
    if labels is not None:
        return replace(schema, labels=labels, target_form=None)
    if schema.target_form is not None:
        say_targets(schema.target_form, words, name)
    return schema


def spellings(parts, position: int, form: Form | None = None) -> labelwords.Spellings:
    """The spellings of the targets of tables whose target column, at this position, was read as
    words.

    form: how they become numbers; None: unchanged.
    """
    found = labelwords.Spellings(labelwords.MOST)
    for table in parts:
        words = table.columns[position]
        read = (
            csvtext.numbers_of(words.values, table.decimal == ",")
            if form is None
            else form.read(words.values).tolist()
        )
        found.add(words, read)
        if found.full:
            break
    return found


def _beyond_doubles(y) -> bool:
    return bool(np.abs(y).max() >= 2.0**53)


def _of_floats(y) -> bool:
    """Whether numbers may come from a shorter type, which prints them in fewer digits: 0.1 instead
    of 0.10000000149011612.
    """
    with np.errstate(over="ignore"):
        return bool((y.astype(np.float32) == y).all() and (y != np.round(y)).any())


def training_rows(path, reading: Reading, cut, task: str | None = None, seed: int | None = None):
    """(X, y) of the training rows and of the others, the Schema learnt from the former, their Table
    if X depends on further learning, the task, and the groups or times of the training rows.

    task: as requested. It is inferred here if numeric targets have other spellings than rfx prints,
    which classes keep, and if columns become target means.

    seed: of training, which reports the treatment of columns and uses target means for those with
    many categories; None if rows are only written, with one-hot columns.

    cut: a function of the number of rows and of what keeps them apart, or None, that returns the
    numbers of the training rows and of the others, either None for all.
    """
    file = File(path, encoding=reading.encoding)
    check_reading(file.kind, file.name, reading)
    content = None if file.kind == "libsvm" else file.read(reading)
    if isinstance(content, Table):
        return _table_training_rows(file, content, reading, cut, (task, seed))
    if content is None:
        labels = svmlight.Labels(task=task)
        zero_based = bool(reading.zero_based)
        X, y = svmlight.read(file.libsvm(), zero_based=zero_based, labels=labels)
        base, encoding = zero_based if issparse(X) else None, encodings.remembered(reading.encoding)
        schema = Schema(labels=labels.names, format=FileFormat("libsvm", base, encoding=encoding))
        task = labels.task
    else:
        for option in ("groups", "time"):
            if (name := getattr(reading, option)) is not None:
                raise UsageError(
                    f"--{option} is {name!r:.80}, but {file.name} is a sparse matrix, which has no"
                    " such column"
                )
        X, y, schema = plain_rows(content, file.name, task)
        if schema is None and y.ndim == 1:
            words, labels, task = _spelled(
                file, Table(file.name, ["y"], True, [y]), 0, y, None, task
            )
            if labels is not None:
                y, schema = places(words, labels, file.name), Schema(labels=labels)
        schema = replace(schema or Schema(), format=file.format)
    train, test = cut(X.shape[0], None)
    first = (X, y) if train is None else (X[train], y[train])
    others = (None, None) if test is None else (X[test], y[test])
    return first, others, schema, None, task, None


def _table_training_rows(file: File, content: Table, reading: Reading, cut, asked):
    """The result of `training_rows` for a file that is a table; asked: (task, seed)."""
    (task, seed), sides = asked, kept_apart(content, reading)
    train, test = cut(content.n_rows, sides)
    if train is not None and sides is not None:
        sides = sides.rows(train)
    rows = content if train is None else content.rows(train)
    learner = Learner(reading, regression=task == "regression").update(rows)
    schema = replace(learner.finish(), format=file.format)
    assert schema.target is not None
    position = schema.target[1]
    y = schema.targets_of(rows, position)
    if asks_spelling(schema, task):
        words, labels, task = _spelled(file, content, position, y, train, task)
        column = content.columns[position]
        schema = with_labels(
            schema, labels, column.values if isinstance(column, Words) else (), file.name
        )
        if labels is not None:
            columns = [
                words if place == position else column
                for place, column in enumerate(content.columns)
            ]
            content = replace(content, columns=columns)
            rows = content if train is None else content.rows(train)
            y = encode_labels(rows, position, labels)
    means = seed is not None and bool(crossfit.wanted(schema))
    if means:
        task = schema.task() or task or guess_task(y)
        schema, X = fitted(schema, rows, y, task, seed, apart=sides)
        for message in crossfit.notes(schema, rows, sides, seed):
            learner.tell(message)
    else:
        X = schema.inputs_of(rows, {})
    if seed is not None:
        learner.say(schema)
    return (
        (X, y),
        (None, None) if test is None else schema.encode(content.rows(test)),
        schema,
        rows if means or _has_gaps(rows, reading) else None,
        task,
        sides,
    )


def fitted(
    schema: Schema,
    table: Table,
    y: np.ndarray,
    task: str,
    seed: int,
    kept: np.ndarray | None = None,
    apart: Apart | None = None,
):
    """(the schema, X) of the rows of a table, or of those with the numbers `kept`, with columns of
    many categories encoded by the means of the table's targets y (n,).

    apart: the groups or times of the table's rows.
    """
    Y = targetmeans.outputs(y, task)
    labels = np.unique(y) if Y.shape[1] > 1 else ()
    titles = [label_text(schema, label) for label in labels]
    if kept is not None:
        table, Y = table.rows(kept), Y[kept]
        apart = None if apart is None else apart.rows(kept)
    return crossfit.fitted(schema, table, Y, seed, titles, apart)


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
        (X, y), _, schema, *_ = training_rows(
            path, reading, lambda count, apart: (None, None), labelwords.KEPT
        )
    else:
        if (
            schema is not None
            and schema.labels is not None
            and labelwords.are_numbers(schema.labels)
        ):
            schema = replace(schema, labels=labelwords.OpenLabels(schema.labels))
        X, y = other_rows(path, schema, n_inputs, reading, letters, strict)
    if schema is not None and schema.labels is not None and labelwords.are_numbers(schema.labels):
        y, schema = Words(y.astype(np.int32), list(schema.labels)), replace(schema, labels=None)
    return X, y, schema


def _has_gaps(table, reading) -> bool:
    """Whether some cells of a table are missing and replaced."""
    columns = map(table.cells, range(len(table.columns)))
    missing = (
        values.codes < 0 if isinstance(values, Words) else np.isnan(values) for values in columns
    )
    return reading.missing != "refuse" and any(part.any() for part in missing)


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
    reading = reading or Reading()
    known = None if schema is None else schema.format
    file = _known_file(path, schema, reading)
    if file.kind != "libsvm":
        content = file.read(reading, schema)
        if isinstance(content, Table):
            if schema is not None and schema.inputs is not None:
                return schema.encode(content, strict, targets)
            return _by_position(content, schema, n_inputs, strict, targets)
        X, column = content
        if issparse(X):
            X = svmlight.narrowed(X, n_inputs, file.name, strict)
        elif X.shape[1] != n_inputs:
            raise DataError(
                f"{file.name} has {X.shape[1]} columns of inputs, but the model was trained on"
                f" {n_inputs}"
            )
        if targets == "ignored":
            return X, None
        if isinstance(column, Words):
            return X, encode_labels(
                _targets(column, file.name), 0, _labels(schema, column, file.name)
            )
        if schema is not None and schema.labels is not None:
            return X, encode_labels(_targets(column, file.name), 0, schema.labels)
        return X, plain_rows(content, file.name)[1]
    zero_based = index_base(reading, known, file.name)
    labels = svmlight.Labels(
        None if schema is None else schema.labels, known=True, optional=targets == "ignored"
    )
    X, y = svmlight.read(
        file.libsvm(),
        n_features=n_inputs,
        zero_based=zero_based,
        letters=letters,
        labels=labels,
        wider="refuse" if strict else "leave out",
    )
    return X, None if targets == "ignored" else y


def _known_file(path, schema: Schema | None, reading: Reading) -> File:
    """A file to read by the schema of a model."""
    file = File(path, schema is not None and schema.inputs is not None, reading.encoding)
    if schema is not None and schema.format is not None and file.kind in ("csv", "tsv", "libsvm"):
        file.expect(schema.format.encoding)
    return file


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
    content = None if file.kind == "libsvm" else file.read(reading, schema)
    if not isinstance(content, Table):
        raise UsageError(f"--id is {identify!r:.80}, but {file.name} has no columns with names")
    if schema is None or schema.inputs is None:
        raise UsageError("--id is for models that were trained on a table")
    position = content.find(identify, "--id")
    name = content.names[position]
    known = replace(schema, ignored=(*schema.ignored, name))
    X, _ = known.encode(content, strict, "ignored")
    words = file.words(position)
    if not isinstance(words, Words):
        words = labelwords.of_numbers(words)
    return X, name, np.array([*words.values, ""])[words.codes].tolist()


def _labels(schema, column, name):
    if schema is None or schema.labels is None:
        raise DataError(
            f"{name} has word labels ({', '.join(column.values[:5]):.100}), but the model's labels"
            " are numbers"
        )
    return schema.labels


def _by_position(table, schema, n_inputs, strict, targets):
    """Rows of a table for a model trained on columns by index: all columns are inputs, except the
    file's own targets.
    """
    if table.own_target is None and targets == "needed":
        raise DataError(
            f"{table.name} is a table, but the model was trained on columns by their index; rfx"
            " convert writes LIBSVM text of a table"
        )
    inputs = [position for position in range(len(table.columns)) if position != table.own_target]
    if len(inputs) != n_inputs:
        raise DataError(
            f"{table.name} has {len(inputs)} columns of inputs, but the model was trained on"
            f" {n_inputs}"
        )
    own = Schema(
        [Input(table.names[position], position) for position in inputs],
        False,
        len(table.columns),
        None if table.own_target is None else ("y", table.own_target),
        (),
        None if schema is None else schema.labels,
    )
    return own.encode(table, strict, targets)
