"""Tables from CSV and TSV text, files of arrays, Parquet files and data frames."""

import contextlib
import csv
import datetime
import io
import itertools
import re
import warnings
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse

from rfx import lazy
from rfx.data import textfiles
from rfx.data.reading import FileFormat
from rfx.data.tabular.schema import Input, Schema
from rfx.data.tabular.table import Column, Table, Words, words_of
from rfx.errors import DataError, NoRows
from rfx.numerals import is_number

# ----------------------------------------------------------------------
# Read CSV and TSV text into tables.
#
# The first lines of a text determine its separator and its header (`sample`). The records are those
# of Python's csv module, which counts their cells, so that a row with a wrong number of cells is
# rejected with its line number. pandas reads the cells. Text is UTF-8 without a byte order mark
# (see `rfx.data.textfiles`).

HEAD = 1 << 16  # bytes for detecting the dialect, if they contain two records
_LINES = 20  # lines for detecting the separator
_SEPARATORS = ",;\t|"
SPACED = " "  # the separator of cells with any number of spaces and tabs between them
# Cells that mean a missing value.
ABSENT = ("", "?", "NA", "N/A", "n/a", "NaN", "nan", "-nan", "NULL", "null", "#N/A", "<NA>")
_COMMA_NUMBER = re.compile(r"[+-]?+[0-9]*+,[0-9]++(?:[eE][+-]?+[0-9]++)?")
_THOUSANDS = re.compile(r"[+-]?[1-9][0-9]{0,2},[0-9]{3}")
_ENTRY = re.compile(r"[0-9]+:[-+.0-9]")  # of LIBSVM text
_QUOTED = re.compile(r'"[^"]*"')
_DOTTED_CELL = r"[+-]?[1-9][0-9]{0,2}(?:\.[0-9]{3})+"  # dots between thousands
# A cell of digits with a leading 0, in a text and alone.
_PADDED = re.compile(rb'0[0-9](?<=[,;|\t "\n]..)[0-9]*+(?=[,;|\t "\n]|\Z)')
_PADDED_CELL = "0[0-9]+"
# The positions of the columns to read as words, of a table without rows.
WordColumns: TypeAlias = Callable[[Table], frozenset[int]]
_MANY = 1000  # more distinct decimals than this are no classes, categories or names
# The decimal mark implied by a separator: a list of decimal commas is separated by semicolons.
_DECIMAL = {",": ".", ";": ","}
csv.field_size_limit(textfiles.LONGEST_LINE)


@dataclass(frozen=True)
class Dialect:
    """The dialect of a text.

    Attributes
    ----------
    separator : str
        The separator of the cells; SPACED for any number of spaces and tabs.
    header : bool
        Whether the first record has the column names.
    names : tuple of str
        The column names, else their numbers from 1.
    name : str
        The name of the text in messages.
    start, line : int
        The byte, from 0, and the line, from 1, where the first record begins: comments may precede
        it.
    notes : tuple of str
        Messages for the user about guesses.
    cells, rows : list
        The cells of the first record, and of some others with as many cells.
    """

    separator: str
    header: bool
    names: tuple[str, ...]
    name: str
    start: int = 0
    line: int = 1
    notes: tuple[str, ...] = ()
    cells: list[str] = field(default_factory=list, compare=False)
    rows: list[list[str]] = field(default_factory=list, compare=False)

    def format(self, encoding: str | None = None) -> FileFormat:
        """The format of a file in this dialect."""
        kind = "tsv" if self.separator == "\t" else "csv"
        return FileFormat(kind, None, self.header, self.separator, encoding)

    def columns(self) -> Table:
        """The columns, without rows."""
        return Table(self.name, list(self.names), self.header, [])

    def table(self, piece: textfiles.Piece, as_words: frozenset[int]) -> Table | None:
        """The table of the whole records of a piece, see `parse`."""
        first = piece.start == 0
        raw = piece.raw[self.start :] if first else piece.raw
        return parse(raw, self, self.line if first else piece.line or 1, as_words, first)

    def decided(self, header: bool | None = None) -> "Dialect":
        """The dialect of a sample; header: whether there is one, if known. DataError if that can't
        be decided.
        """
        notes = self.notes
        if header is None:
            guessed = guess(self.cells, self.rows)
            if guessed.doubt:
                raise DataError(
                    f"{self.name}, line {self.line}: it may be a header or a row"
                    f" ({', '.join(self.cells):.80}); specify --header or --no-header"
                )
            header = guessed.header
            what, flag = ("the header", "--no-header") if header else ("a row", "--header")
            if guessed.note:
                notes += (
                    f"line {self.line} of {self.name} is read as {what}, because {guessed.note};"
                    f" use {flag} if this is wrong",
                )
        names = tuple(str(number) for number in range(1, len(self.cells) + 1))
        if header:
            twice = next((cell for cell in self.cells if cell and self.cells.count(cell) > 1), None)
            if twice is not None:
                raise DataError(
                    f"{self.name}: two columns are called {twice!r:.80}; rename one, or use"
                    " --no-header if there is no header"
                )
            # the index of a data frame has no name
            names = tuple(cell or f"column {name}" for cell, name in zip(self.cells, names))
        return replace(self, header=header, names=names, notes=notes, cells=[], rows=[])


# ---------------------------------------------------------------------- records


def records(raw: bytes, separator: str) -> Iterator[tuple[int, int, list[str] | None]]:
    """(first line, lines up to its end, cells) of each record of a text whose lines end in
    newlines; lines count from 0, and blank lines are none.

    Cells have no spaces before them; the last record is `None` instead of cells if a quote is not
    closed there.
    """
    end = "\x1a\n"  # a last record of its own, unless it is inside a quote
    lines: Iterable[str] = itertools.chain(
        io.StringIO(raw.decode("utf-8", "backslashreplace")), ["\n", end]
    )
    if separator == SPACED:
        lines = (line.replace("\t", " ").strip(" \n") + "\n" for line in lines)
    reader = csv.reader(lines, delimiter=separator, skipinitialspace=True)
    start, before = 0, None
    for cells in reader:
        if before is not None:
            yield before
        blank = not cells or (len(cells) == 1 and not cells[0].strip(" "))
        before = None if blank else (start, reader.line_num, cells)
        start = reader.line_num
    if before is not None and before[2] != [end[0]]:
        yield before[0], before[1], None


def _unix(raw: bytes) -> bytes:
    """The text with a newline at the end of each line."""
    return raw.replace(b"\r\n", b"\n").replace(b"\r", b"\n") if b"\r" in raw else raw


def whole_records(raw: bytes, separator: str) -> int:
    """The number of bytes of raw, which begins at a record, that are complete records."""
    # the line feed after a last carriage return may follow
    end = max(raw.rfind(b"\n"), raw.rfind(b"\r", 0, len(raw) - 1)) + 1
    if b'"' not in raw[:end]:
        return end
    *_, last = [(0, 0, []), *records(_unix(raw[:end]), separator)]
    if last[2] is not None:
        return end
    lines = itertools.islice(re.finditer(rb"\r\n|\r|\n", raw), last[0])
    return max((match.end() for match in lines), default=0)


# ---------------------------------------------------------------------- how a text is written


def sample(
    read: Callable[[int], bytes],
    name: str,
    separator: str | None = None,
) -> Dialect:
    """The dialect of a text, before it is `decided` whether there is a header.

    Parameters
    ----------
    read : function of a number of bytes
        Returns as many next bytes of the text, fewer only at its end.
    name : str
        The name of the text in messages.
    separator : str, optional
        Of the cells, if known.

    Raises
    ------
    DataError
        For a text that is empty, binary, or not UTF-8.
    """
    raw, size = b"", HEAD
    while True:
        raw += read(size - len(raw))
        more = len(raw) == size
        if b"\0" in raw:
            raise _binary(name)
        text = raw[: whole_records(raw, ",")] if more else raw
        start, line, comments = _above_first(text)
        mark = separator or _separator_of(_unix(text[start:]), name)
        first = itertools.islice(records(_unix(text[start:]), mark), 1 + ROWS)
        rows = [list(map(str.strip, cells)) for _, _, cells in first if cells is not None]
        if len(rows) > 1 or not more:
            break
        size *= 4
    if not rows:
        raise NoRows(f"{name} is empty")
    textfiles.check(text, name)
    lines = ", ".join(map(str, comments[:_LINES]))
    notes = (f"{name}: what begins with # is ignored (line {lines})",) * bool(comments)
    cells, *below = rows
    below = [row for row in below if len(row) == len(cells)][: max(2, CELLS // len(cells))]
    return Dialect(mark, False, (), name, start, line, notes, cells, below)


def dialect(
    head: bytes, name: str, header: bool | None = None, separator: str | None = None
) -> Dialect:
    """The dialect inferred from the first bytes of a text; header and separator if known. Raises
    like `sample`.
    """
    return sample(io.BytesIO(head).read, name, separator).decided(header)


def looks_like(head: bytes) -> bool:
    """Whether these first bytes are delimited text rather than LIBSVM text."""
    if b"\0" in head:
        return False
    text = textfiles.head(head).decode("utf-8", "replace")
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    if not lines:
        return False
    if any(mark in lines[0] for mark in _SEPARATORS):
        return not any(_ENTRY.match(word) for word in re.split(r"[ \t]", lines[0])[1:2])
    return _is_spaced(lines if len(lines) == 1 or text.endswith(("\n", "\r")) else lines[:-1])


def _binary(name) -> DataError:
    return DataError(
        f"{name} is a binary file, or text in UTF-16 without a byte order mark; save it as CSV in"
        " UTF-8, or try --encoding utf-16-le"
    )


def _above_first(text: bytes) -> tuple[int, int, list[int]]:
    """The start of the first record and its line, and the lines of comments above."""
    start, comments = 0, []
    for number, whole in enumerate(text.splitlines(keepends=True), 1):
        line = whole.strip(b" \r\n")
        if line.startswith(b"#"):
            comments.append(number)
        elif line:
            return start, number, comments
        start += len(whole)
    return start, 1, comments


def _separator_of(text: bytes, name: str) -> str:
    """The separator of a text that begins with its first record."""
    whole = itertools.islice(io.StringIO(text.decode("utf-8", "replace")), 10 * _LINES)
    lines = [_QUOTED.sub('""', line.strip("\n")) for line in whole if line.strip(" \n")][:_LINES]
    lines = lines or [""]
    used = [mark for mark in _SEPARATORS if mark in lines[0]]
    alike = [mark for mark in used if _is_regular(lines, mark)]
    if not alike and set(used) <= {"\t"}:
        if _ENTRY.match("".join(lines[0].split()[1:2])):
            raise DataError(f"{name} is LIBSVM text, not CSV; rename it to end in .libsvm")
        if _is_spaced(lines):
            return SPACED
    if ";" in alike and _has_decimal_commas(lines):
        return ";"
    if not used:
        return ","
    return max(alike or used, key=lines[0].count)


def _is_regular(lines: list[str], mark: str) -> bool:
    """Whether a mark stands equally often in each line."""
    return len({line.count(mark) for line in lines}) == 1


def _has_decimal_commas(lines: list[str]) -> bool:
    """Whether all commas of lines separated by ; are decimal commas."""
    cells = ";".join(lines).split(";")
    return all(_COMMA_NUMBER.fullmatch(cell.strip()) for cell in cells if "," in cell)


def _is_spaced(lines) -> bool:
    """Whether lines are cells separated by spaces: equally many in each, and none a LIBSVM
    entry.
    """
    text = "\n".join(lines[:_LINES]).encode()
    words = [cells or [] for *_, cells in records(text, SPACED)] or [[]]
    if len(words) > 2 and len(words[1]) == len(words[0]) + 1:
        del words[0]  # a header without a name for the row names, reported by its line
    width = len(words[0])
    return width > 1 and all(len(row) == width and not _ENTRY.match(row[1]) for row in words)


# ---------------------------------------------------------------------- cells


def parse(
    raw: bytes,
    shape: Dialect,
    line: int = 1,
    as_words=frozenset(),
    first: bool = True,
    whole: bool = False,
) -> Table | None:
    """The table of complete records, starting at that line; None if there are none.

    as_words: positions of columns to read as words regardless of their cells; if this is the
    `whole` text, columns of very many decimals are nevertheless numbers. first: whether the text
    starts here, after any preamble, so that the header is included. Raises DataError, with the
    line number, for rows with another number of cells, unclosed quotes, a repeated header, and
    bytes that are not UTF-8.
    """
    if b"\0" in raw:
        raise _binary(shape.name)
    textfiles.check(raw, shape.name, line)
    raw = _unix(raw)
    if first and shape.header:
        above = next(records(raw, shape.separator), (0, 0, None))
        if above[2] is None:
            return None
        raw, line = raw.split(b"\n", above[1])[-1], line + above[1]
    lines = _lines(raw, shape, line)
    if not len(lines):
        return None
    columns = _columns(raw, shape, as_words, whole)
    if len(columns[0]) != len(lines):
        raise DataError(
            f"{shape.name}, lines {lines[0]} to {lines[-1]}: their quotes are ambiguous; double"
            " each quote inside a cell"
        )
    dotted, padded = _odd_numbers(raw, shape, columns)
    return Table(
        shape.name,
        list(shape.names),
        shape.header,
        columns,
        lines,
        decimal=_DECIMAL.get(shape.separator),
        dotted=dotted,
        padded=padded,
    )


def _lines(raw: bytes, shape: Dialect, line: int) -> np.ndarray:
    """The line of each record. Raises DataError for another number of cells than the header's, and
    for an unclosed quote.
    """
    width, mark = len(shape.names), shape.separator.encode()
    if b'"' not in raw and shape.separator != SPACED:
        texts = raw.removesuffix(b"\n").split(b"\n")
        if {text.count(mark) for text in texts} == {width - 1} and width > 1:
            return np.arange(line, line + len(texts))
    lines = []
    for start, _, cells in records(raw, shape.separator):
        lines.append(line + start)
        if cells is None or len(cells) != width:
            raise _odd_record(cells, width, f"{shape.name}, line {line + start}")
    return np.array(lines, np.int64)


def _odd_record(cells: list[str] | None, width: int, place: str) -> DataError:
    """The error for a record whose cells are not as many as those of the others."""
    if cells is None:
        return DataError(f"{place}: a quote opens there and is never closed")
    has = "1 cell" if len(cells) == 1 else f"{len(cells)} cells"
    return DataError(
        f"{place}: it has {has}, but the previous rows have {width}; remove it, or a title or"
        " comment above, if it is no row"
    )


def _read(raw: bytes, shape: Dialect, words, only=None):
    """The data frame of records, with the columns `words` as texts; only: those to read."""
    places = range(len(shape.names))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return lazy.pandas.read_csv(
            io.BytesIO(raw),
            sep=r"\s+" if shape.separator == SPACED else shape.separator,
            header=None,
            names=places,
            usecols=only,
            dtype=dict.fromkeys(words, str),
            keep_default_na=False,
            na_values={place: [] if place in words else list(ABSENT) for place in places},
            skipinitialspace=True,
            float_precision="round_trip",
            low_memory=False,
            encoding="utf-8",
            index_col=False,
        )


def _columns(raw: bytes, shape: Dialect, as_words: frozenset[int], whole: bool) -> list[Column]:
    """The columns of records: numbers, or words if a cell is one.

    They are read once, and a second time only for the spelling of what pandas converts: booleans,
    integers of very many digits, and numbers that are words.
    """
    with _parsing(shape.name):
        frame = _read(raw, shape, () if whole else as_words)
        words = set(frame.columns) - _numeric(frame)
        spelled = {place for place in words if not _are_texts(frame[place])}
        for place in as_words - words:
            if not _are_decimals(frame[place].to_numpy()):
                spelled.add(place)
        texts = _read(raw, shape, spelled, sorted(spelled)) if spelled else frame
    columns: list[Column] = []
    for place in frame.columns:
        cells = texts[place] if place in spelled else frame[place]
        if place in words or place in spelled:
            columns.append(_cells(cells, place in as_words, shape.separator == ";"))
        else:
            columns.append(cells.to_numpy(np.float64))
    return columns


@contextlib.contextmanager
def _parsing(name: str) -> Iterator[None]:
    """Turn the errors of pandas' reader into a DataError with the name of the text."""
    try:
        yield
    except (ValueError, OverflowError) as error:  # pandas' own exceptions are ValueErrors
        raise DataError(f"{name} can't be read: {str(error).splitlines()[0]:.200}") from None


def _numeric(frame) -> set[int]:
    """The columns of a data frame of records that pandas read as numbers."""
    return {place for place in frame.columns if frame[place].dtype.kind in "iuf"}


def _are_texts(column) -> bool:
    """Whether pandas left the cells of a column, apart from missing ones, as they are spelled: not
    booleans, nor integers of very many digits.
    """
    return lazy.pandas.api.types.infer_dtype(column) == "string"


def _are_decimals(values: np.ndarray) -> bool:
    """Whether numbers are very many decimals."""
    numbers = values[~np.isnan(values)] if values.dtype.kind == "f" else values[:0]
    return bool((numbers % 1 != 0).any()) and len(np.unique(numbers)) > _MANY


def _cells(texts, as_words: bool, commas: bool) -> Column:
    """Numbers or Words of a column of texts; commas: numbers may have a decimal comma."""
    codes, distinct = lazy.pandas.factorize(texts)
    values = [str(value).strip() for value in distinct]
    numbers = None if as_words else numbers_of(values, commas)
    if numbers is not None:
        return np.array([*numbers, np.nan])[codes]
    return Words.of(codes, (None if value in ABSENT else value for value in values))


def _odd_numbers(
    raw: bytes, shape: Dialect, columns: list[Column]
) -> tuple[dict[int, str], dict[int, str]]:
    """`dotted` and `padded` of a Table, for columns of numbers: the lines that may show them are
    read again, as texts.
    """
    dotted: dict[int, str] = {}
    padded: dict[int, str] = {}
    places = [place for place, column in enumerate(columns) if not isinstance(column, Words)]
    commas = shape.separator == ";" and b"." in raw
    lines = raw if commas else _padded_lines(raw)
    if not places or not lines:
        return dotted, padded
    for place, texts in _read(lines, shape, places, places).items():
        cells = texts.str.strip()
        zeros = cells[cells.str.fullmatch(_PADDED_CELL)]
        dots = cells[cells.str.contains(".", regex=False)] if commas else zeros[:0]
        if len(zeros):
            padded[place] = zeros.iloc[0]
        if len(dots):
            dotted[place] = dots.iloc[0] if dots.str.fullmatch(_DOTTED_CELL).all() else ""
    return dotted, padded


def _padded_lines(raw: bytes) -> bytes:
    """The lines of a text with a cell of digits that begins with 0; the whole text if there is one
    and quotes, which may span lines.
    """
    raw = b"\n%b\n" % raw
    first = _PADDED.search(raw)
    if first is not None and b'"' in raw:
        return raw
    lines, match = [], first
    while match is not None:
        start = raw.rfind(b"\n", 0, match.start()) + 1
        end = raw.find(b"\n", start)
        lines.append(raw[start:end])
        match = _PADDED.search(raw, end)
    return b"\n".join(lines)


def numbers_of(values: Collection[str], commas: bool) -> list[float] | None:
    """The numbers of the cells of a column, nan for missing, if all are numbers; commas: they may
    have a decimal comma, unless all of these may mark thousands.
    """
    marked = [value for value in values if commas and _COMMA_NUMBER.fullmatch(value)]
    if marked and all(map(_THOUSANDS.fullmatch, marked)):
        return None
    plain = {*ABSENT, *marked}
    if not all(is_number(value) or value in plain for value in values):
        return None
    return [np.nan if value in ABSENT else float(value.replace(",", ".")) for value in values]


# ---------------------------------------------------------------------- headers


# Numbers, dates and times in common formats: frequent in column values, rare in names.
_VALUE = re.compile(
    r"[+-]?[$€£¥]?\s?[+-]?[0-9][0-9.,'\u00a0\u202f ]*(?:[eE][+-]?[0-9]+)?\s?(?:%|[$€£¥])?"
    r"|[+-]?(?:inf|infinity)|[0-9]{1,4}([-/.])[0-9]{1,2}\1[0-9]{1,4}(?:["
    r" T].*)?|[0-9]{1,2}:[0-9]{2}(?::[0-9.]+)?",
    re.IGNORECASE,
)
# Rows below to inspect, total cells to inspect, and the number of rows from which a range of
# numbers is meaningful.
ROWS, CELLS, ENOUGH = 1000, 400_000, 5


@dataclass
class Guess:
    """header: whether the first row is one. doubt: neither is certain. note: a message about a
    guess.
    """

    header: bool
    doubt: bool = False
    note: str = ""


def is_value(cell: str) -> bool:
    """Whether a cell is a number in a common format, a date or a time."""
    return _VALUE.fullmatch(cell) is not None or is_number(cell)


_OTHER_ROWS = "its cells occur in other rows"


def guess(cells: list[str], rows: list[list[str]]) -> Guess:
    """Whether `cells`, the first row of a table, is a header; rows: those below, each with as many
    cells.
    """
    below = [row for row in rows if row != cells]
    columns = list(map(_present, zip(*below))) if below else [[] for _ in cells]
    evidence = list(map(_evidence, cells, columns))
    counts = Counter(evidence)
    if counts["gone"] == len(cells):
        return Guess(False)
    if rows and not below:
        return Guess(False, True)
    if counts["seen"]:
        return Guess(False, counts["over"] > 0, _OTHER_ROWS if counts["unseen"] else "")
    if any(map(is_value, cells)):
        return _with_numbers(cells, columns, below, counts)
    note = "its cells occur in no other row" if rows else ""
    return _with_words(cells, evidence, len(below) < len(rows), note)


def _with_words(cells: list[str], evidence: list[str], repeated: bool, note: str) -> Guess:
    """The guess for a first row without numbers; repeated: whether it stands again below."""
    absent_names = [cell for cell, what in zip(cells, evidence) if what == "gone"]
    if "over" in evidence:
        return Guess(True, any(absent_names))
    # an index column has no name, but comes first
    if absent_names and (absent_names != [""] or evidence[0] != "gone"):
        return Guess(False, True)
    return Guess(True, repeated and "unseen" not in evidence, note)


def _present(cells: Iterable[str]) -> list[str]:
    """The cells that have a value."""
    return [cell for cell in cells if cell not in ABSENT]


def _with_numbers(cells, columns, below, counts: Counter) -> Guess:
    """The guess for a first row that has numbers; columns: the values below each cell."""
    numbers = [cell for cell in cells if is_value(cell)]
    decimals = any(
        "." in value for cell, column in zip(cells, columns) if is_value(cell) for value in column
    )
    # the positions of columns without names, as pandas writes them
    counted = len(numbers) > (1 if decimals else 3) and _counts_up(numbers)
    if counted and not any(_counts_up(list(filter(is_value, row))) for row in below):
        return Guess(False, True)
    words = counts["over"] + counts["unseen"]
    if not counts["near"]:  # names such as 2019 and 2020
        return Guess(False, words > 0 or counts["far"] == len(cells))
    note = "its numbers are among those below" if words else ""
    return Guess(False, counts["over"] > 0, note)


def _evidence(cell: str, values: list[str]) -> str:
    """The evidence from a cell of the first row and the values below it: gone, over, seen, unseen,
    far, near, or nothing.
    """
    if cell in ABSENT:
        return "gone"
    if not values:
        return ""
    numbers = [value for value in values if is_value(value)]
    if not is_value(cell):
        return _evidence_of_word(cell, values, len(numbers))
    if not numbers:
        return "unseen"
    if 2 * len(numbers) <= len(values):
        return "seen" if cell in values else ""
    plain = [float(value) for value in numbers if is_number(value)]
    if not is_number(cell):
        return "near" if len(plain) < len(numbers) else "unseen"
    if len(plain) < ENOUGH:
        return "near"
    low, high = min(plain), max(plain)
    return "near" if 2 * low - high <= float(cell) <= 2 * high - low else "far"


def _evidence_of_word(word: str, values: list[str], n_numbers: int) -> str:
    """`_evidence` from a cell that is no number, above values of which so many are."""
    if n_numbers == len(values):
        return "over"
    different = set(values)
    if word in different:
        return "seen"
    return "unseen" if len(values) >= 4 and 2 * len(different) <= len(values) else ""


def _counts_up(numbers) -> bool:
    """Whether numbers are 0, 1, 2, … or 1, 2, 3, …"""
    first = numbers[0] if numbers else ""
    return first in ("0", "1") and numbers == [
        str(number) for number in range(int(first), int(first) + len(numbers))
    ]


# ----------------------------------------------------------------------
# Tables from files of arrays: numpy's .npy and .npz, and Parquet.
#
# Code in a file is never run, and memory is limited. pyarrow, an optional package, is used only
# here.

# Accepted names of the arrays of an .npz file.
_INPUTS = ("X", "x", "data")
_TARGETS = ("y", "target", "labels")
_COLUMN_NAMES = ("feature_names", "columns")
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


def npy(file, name: str, as_words: WordColumns) -> Table:
    """The array of a .npy file, one row of numbers per row; the file is a binary handle.

    as_words: a function of a table without rows, which returns the positions of columns to read as
    words, integers with all digits.
    """
    with _refused(name, ".npy file"):
        return _table(np.load(file, allow_pickle=False), name, as_words)


def npz(file, name: str, as_words: WordColumns):
    """The content of a .npz file, a binary handle: a Table of its arrays X and y, or (X, column of
    y or None) if X (n, d) is sparse or y is (n, k) with k targets per row.

    X is called X or data and has numbers; y, numbers or words, is called y, target or labels and is
    optional; feature_names are the column names. A matrix written by scipy.sparse.save_npz is
    sparse X, with or without y. Other arrays are not read. as_words: see npy; y follows the columns
    of X.
    """
    with _refused(name, ".npz file"), np.load(file, allow_pickle=False) as content:
        is_sparse = set(content.files) >= _SPARSE
        X = _sparse_rows(file, name) if is_sparse else _dense_rows(content, name)
        y, names = _array_of(content, _TARGETS), _array_of(content, _COLUMN_NAMES)
        if y is None:
            return (X, None) if is_sparse else _table(X, name, as_words, names)
        if y.ndim not in (1, 2) or len(y) != X.shape[0]:
            raise DataError(
                f"{name} has {X.shape[0]:,} rows, but its targets have shape {y.shape!s:.80}"
            )
        if y.ndim == 2 and y.shape[1] > 1:
            return _check_numbers(X, name), _check_numbers(y, name)
        y = y.reshape(len(y))
        if is_sparse:
            return X, _targets(y, name, True)
        return _table(X, name, as_words, names, y)


def _sparse_rows(file, name: str) -> scipy.sparse.csr_matrix:
    """The matrix of a .npz file that scipy.sparse.save_npz wrote."""
    file.seek(0)
    X = scipy.sparse.csr_matrix(scipy.sparse.load_npz(file), dtype=np.float64)
    X.sum_duplicates()
    _check_numbers(X.data, name)
    return X


def _dense_rows(content, name: str) -> np.ndarray:
    """The inputs of a .npz file."""
    X = _array_of(content, _INPUTS)
    if X is None:
        arrays = ", ".join(content.files) or "(none)"
        raise DataError(f"{name} has the arrays {arrays:.200}, but needs an array X with the rows")
    _check_shape(X, name)
    return X


def _array_of(content, keys: Iterable[str]) -> np.ndarray | None:
    """The first array of a .npz file with one of these names."""
    return next((content[key] for key in keys if key in content.files), None)


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


def _table(
    array: np.ndarray,
    name: str,
    as_words: WordColumns,
    names: np.ndarray | None = None,
    y: np.ndarray | None = None,
) -> Table:
    """The table of an array of numbers, its column names and a column of targets."""
    _check_shape(array, name)
    n_columns = array.shape[1]
    titles = [str(number) for number in range(1, n_columns + 1)]
    if names is not None:
        titles = names.astype(str).ravel().tolist()
        if len(titles) != n_columns or len(set(titles)) < n_columns:
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
    typed = frozenset({"y"} if y.dtype.kind in "US" else ())
    return replace(table, columns=columns, typed=typed)


def _targets(y: np.ndarray, name: str, as_words: bool) -> Column:
    """A column of an array (n,) of numbers or words; as_words: integers become words, with all
    digits. The words for missing values in CSV text are missing here too.
    """
    if y.dtype.kind in "US":
        texts = np.char.decode(y, "utf-8") if y.dtype.kind == "S" else y
        values, codes = np.unique(texts, return_inverse=True)
        words = [None if value in ABSENT else value for value in values.tolist()]
        return Words.of(codes.ravel(), words)
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


def parquet(file, name: str, as_words: WordColumns) -> Table:
    """The columns of a Parquet file, a binary handle: numbers, booleans and words. as_words: see
    arrayfiles.npy.
    """
    content = ParquetGroups(file, name, as_words)
    table = next(content.tables([[*range(content.n_groups)]]), None)
    if table is None:
        raise NoRows(f"{name} has no rows or no columns")
    return table


def no_words(table: Table) -> frozenset[int]:
    """No column has words, as far as is known before its cells are read."""
    return frozenset()


class ParquetGroups:
    """The row groups of a Parquet file, a seekable binary handle, as Tables.

    as_words: a function of a table without rows: the positions of numeric columns to read as words.
    Raises DataError if the file is invalid or pyarrow is missing.
    """

    def __init__(self, file, name: str, as_words: WordColumns = no_words):
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
            if names and rows.num_rows:
                yield table_of(rows, self.schema, self.name, self.as_words)


def table_of(rows, schema, name: str, as_words: WordColumns) -> Table:
    """The Table of a pyarrow table; columns of its file's schema that it lacks have no cells."""
    saved_index = (schema.pandas_metadata or {}).get("index_columns", ())
    index = frozenset(column for column in saved_index if isinstance(column, str))
    dictionary = lazy.pyarrow.types.is_dictionary
    categorical = frozenset(field.name for field in schema if dictionary(field.type))
    typed = frozenset(field.name for field in schema if not _is_number(field.type))
    table = Table(name, schema.names, True, [], index=index, typed=typed, categorical=categorical)
    worded = as_words(table)
    for position, column in enumerate(schema):
        cells = Words(np.full(len(rows), -1, np.int32), [])
        if column.name not in rows.column_names:
            table.unread[position] = f"is of type {column.type!s:.40}"
        elif column.name not in typed and position not in worded:
            cells = _column(rows, column).to_numpy(np.float64, na_value=np.nan)
        else:
            try:
                cells = words_of(_column(rows, column))
            except UnicodeDecodeError:
                table.unread[position] = "has words that are not UTF-8"
        table.columns.append(cells)
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


# ----------------------------------------------------------------------
# Data frames as rows: supported column types, and frames in the form of a model's training file.

_ADVICE = "encode it with OneHotEncoder in a ColumnTransformer"


def is_frame(X) -> bool:
    """Whether rows are a data frame of pandas or Dask."""
    return hasattr(X, "dtypes") and hasattr(X, "iloc")


def kind_of_words(column) -> str | None:
    """`categories`, `words` or `dates` for a pandas column by its type, None for others.

    A column of objects has words if one of its cells is a string.
    """
    kind = column.dtype
    if isinstance(kind, lazy.pandas.CategoricalDtype):
        return "categories"
    if isinstance(kind, lazy.pandas.StringDtype) or str(kind) == "string[pyarrow]":
        return "words"
    if lazy.pandas.api.types.is_datetime64_any_dtype(kind):
        return "dates"
    if kind == np.dtype(object) and not hasattr(column, "__dask_graph__"):
        if any(isinstance(value, (str, bytes)) for value in column):
            return "words"
        return "dates" if any(isinstance(value, datetime.date) for value in column) else None
    return None


def check_columns(X, advice: str = _ADVICE) -> None:
    """Raise ValueError with the name of a data frame column that is not numeric: categories, words,
    dates.

    X: anything; pandas and Dask frames are checked. advice: what to do with words.
    """
    if not is_frame(X):
        return
    for place, (name, kind) in enumerate(zip(X.columns, X.dtypes)):
        types = lazy.pandas.api.types
        if types.is_numeric_dtype(kind) or types.is_bool_dtype(kind):
            continue
        read_as = kind_of_words(X[name] if hasattr(X, "__dask_graph__") else X.iloc[:, place])
        if read_as in ("categories", "words"):
            raise ValueError(
                f"column {name!r:.80} of X has categories or words ({kind!s:.40}), but must be"
                f" numeric; {advice}"
            )
        if kind == np.dtype(object) and read_as is None:
            continue  # object columns may contain numbers
        raise ValueError(
            f"column {name!r:.80} of X has type {kind!s:.40}, but must be numeric; convert it to"
            " numbers, or drop it"
        )


# ---------------------------------------------------------------------- as a file has it


def encoded(frame: Any, schema: Schema) -> Any:
    """X (n, width) of a pandas data frame in the form of the schema's training file, read like rows
    of that file; array or, if it is wide and mostly zeros, CSR.

    Columns are found by name if the file had names; targets are ignored. Strings and missing cells
    are read as in a file; numbers and dates may have native types.

    Raises
    ------
    DataError
        For a column that is missing or has another type, and for a missing cell without a
        replacement.
    """
    names = [str(name) for name in frame.columns]
    if not len(frame):
        raise DataError("X has no rows")
    table = Table("X", names, schema.named, [], in_memory=True)
    positions, _ = schema.places_in(table, False)
    twice = [names[place] for place in positions if names.count(names[place]) > 1]
    if schema.named and twice:
        raise DataError(f"X has two columns called {twice[0]!r:.80}; rename one of them")
    table.columns = [np.full(len(frame), np.nan)] * len(names)
    for place, column in zip(positions, schema.columns):
        table.columns[place] = cells(frame.iloc[:, place], column)
    X, _ = schema.encode(table, targets="ignored")
    schema.tell_filled(table, only_new=True)
    return X


def cells(column: Any, learnt: Input) -> Column:
    """A data frame column for an input of a schema: numbers (n,), nan if missing, or words."""
    types, kind = lazy.pandas.api.types, column.dtype
    if not learnt.is_text() or (learnt.form is not None and learnt.form.kind == "numbers"):
        if types.is_numeric_dtype(kind) or types.is_bool_dtype(kind):
            return np.asarray(column.to_numpy(np.float64, na_value=np.nan))
    words, absent = words_of(column), set(ABSENT) - set(learnt.categories or ())
    texts = [text.strip() for text in words.values]
    return Words.of(words.codes, (None if text in absent else text for text in texts))
