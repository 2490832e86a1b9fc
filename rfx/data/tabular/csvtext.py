"""Read CSV and TSV text into tables.

The first lines of a text determine its separator and its header (`sample`). The records are those
of Python's csv module, which counts their cells, so that a row with a wrong number of cells is
rejected with its line number. pandas reads the cells. Text is UTF-8 without a byte order mark (see
`rfx.data.encodings`).
"""

import csv
import io
import itertools
import re
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from rfx import lazy
from rfx.data import encodings
from rfx.data.tabular.header import CELLS, ROWS, Guess, guess
from rfx.data.tabular.table import Table, Words
from rfx.errors import DataError, NoRows
from rfx.numerals import is_number

CHUNK = 8 << 20  # bytes of a stream parsed at a time
LONGEST_RECORD = 64 << 20
HEAD = 1 << 16  # bytes for detecting the dialect, if they contain two records
_LINES = 20  # lines for detecting the separator
_SEPARATORS = ",;\t|"
SPACED = " "  # the separator of cells with any number of spaces and tabs between them
# Cells that mean a missing value.
ABSENT = ("", "?", "NA", "N/A", "n/a", "NaN", "nan", "-nan", "NULL", "null", "#N/A", "<NA>")
# The only one of them that may be a word: the country code of Namibia.
DOUBTFUL = "NA"
_END = b"\x1a"  # DOS ends a text with ctrl-Z
_MARK = "\ufeff"
_COMMA_NUMBER = re.compile(r"[+-]?+[0-9]*+,[0-9]++(?:[eE][+-]?+[0-9]++)?")
_THOUSANDS = re.compile(r"[+-]?[1-9][0-9]{0,2},[0-9]{3}")
_ENTRY = re.compile(r"[0-9]+:[-+.0-9]")  # of LIBSVM text
_QUOTED = re.compile(r'"[^"]*"')
_SEPARATOR_LINE = re.compile(r'"?sep=([^\w\s"]|\t)"?', re.IGNORECASE)
_DOTTED_CELL = r"[+-]?[1-9][0-9]{0,2}(?:\.[0-9]{3})+"  # dots between thousands
# The beginning of a cell of digits with a leading 0, the whole cell, and how many are inspected.
_PADDED = re.compile(rb'0[0-9](?<=[,;|\t "\n]..)')
_PADDED_CELL = re.compile("0[0-9]+")
_MOST_PADDED = 1000
_MANY = 1000  # more distinct decimals than this are no classes, categories or names
# The decimal mark implied by a separator: a list of decimal commas is separated by semicolons.
_DECIMAL = {",": ".", ";": ","}
csv.field_size_limit(LONGEST_RECORD)


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
    """

    separator: str
    header: bool
    names: tuple[str, ...]
    name: str
    start: int = 0
    line: int = 1
    notes: tuple[str, ...] = ()


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


def split(line: str, separator: str) -> list[str]:
    """The cells of a record, without surrounding spaces."""
    found = next(records(line.encode(), separator), None)
    return [] if found is None else [cell.strip() for cell in found[2] or ()]


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
    return max((found.end() for found in lines), default=0)


# ---------------------------------------------------------------------- how a text is written


@dataclass(frozen=True)
class Sample:
    """The beginning of a text: its separator, the cells of its first record, and those of some
    following records.

    start, line: see Dialect. rows: records with as many cells as the first.
    """

    name: str
    separator: str
    cells: list[str]
    rows: list[list[str]]
    start: int
    line: int
    notes: tuple[str, ...] = ()

    def guess(self) -> Guess:
        """Whether the first record is a header."""
        return guess(self.cells, self.rows, ABSENT)

    def dialect(self, header: bool | None = None) -> Dialect:
        """The Dialect; header: whether there is one, if known. DataError if that can't be
        decided.
        """
        notes = self.notes
        if header is None:
            guessed = self.guess()
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
        return Dialect(self.separator, header, names, self.name, self.start, self.line, notes)


def sample(
    read: Callable[[int], bytes],
    name: str,
    separator: str | None = None,
    widths=(),
    prefer: str | None = None,
) -> Sample:
    """The beginning of a text.

    Parameters
    ----------
    read : function of a number of bytes
        Returns the next bytes of the text, b"" at its end.
    name : str
        The name of the text in messages.
    separator : str, optional
        Of the cells, if known.
    widths : collection of int
        Expected numbers of cells. The separator `prefer` is used if it gives one of these.

    Raises
    ------
    DataError
        For a text that is empty, binary, or not UTF-8, and if a title precedes the rows.
    """
    raw, size, more = b"", HEAD, True
    while True:
        while more and len(raw) < size:
            data = read(size - len(raw))
            more = bool(data)
            raw += data
        if b"\0" in raw:
            raise _binary(name)
        text = raw[: whole_records(raw, ",")] if more else raw.removesuffix(_END)
        start, line, said, comments = _above_first(text)
        mark = separator or said or _separator_of(_unix(text[start:]), name)
        rows = _first_records(text[start:], mark)
        if len(rows) > 1 or not more:
            break
        if len(raw) > LONGEST_RECORD:
            raise _too_long(name, 1)
        size *= 4
    if not rows and not comments:
        raise NoRows(f"{name} is empty")
    if rows and separator is None and prefer is not None and len(rows[0][1]) not in widths:
        others = _first_records(text[start:], prefer)
        mark, rows = (prefer, others) if len(others[0][1]) in widths else (mark, rows)
    encodings.check(text, name)
    if comments and (not rows or _is_record(comments[-1][2], mark, len(rows[0][1]))):
        start, line, _ = comments.pop()
        rows = _first_records(text[start:], mark)
    notes: tuple[str, ...] = ()
    if comments:
        lines = ", ".join(str(number) for _, number, _ in comments[:_LINES])
        notes = (f"{name}: what begins with # is ignored (line {lines})",)
    line += rows[0][0]
    cells, *below = [own for _, own in rows]
    if separator is None:
        _check_title([cells, *below][:_LINES], mark, f"{name}, line {line}")
    below = [row for row in below if len(row) == len(cells)][: max(2, CELLS // len(cells))]
    return Sample(name, mark, cells, below, start, line, notes)


def _first_records(text: bytes, separator: str) -> list[tuple[int, list[str]]]:
    """(line from 0, cells) of the first records of a text."""
    found = itertools.islice(records(_unix(text), separator), 1 + ROWS)
    return [
        # concatenated files may have a mark before a record
        (line, [cell.strip() for cell in [cells[0].removeprefix(_MARK), *cells[1:]]])
        for line, _, cells in found
        if cells is not None
    ]


def dialect(
    head: bytes, name: str, header: bool | None = None, separator: str | None = None
) -> Dialect:
    """The dialect inferred from the first bytes of a text; header and separator if known. Raises
    like `sample`.
    """
    return sample(io.BytesIO(head).read, name, separator).dialect(header)


def looks_like(head: bytes) -> bool:
    """Whether these first bytes are delimited text rather than LIBSVM text."""
    if b"\0" in head:
        return False
    text = encodings.head(head).decode("utf-8", "replace")
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


def _too_long(name, line) -> DataError:
    return DataError(
        f"{name}, line {line}: it is longer than {LONGEST_RECORD:,} bytes, the maximum for a row;"
        " is a quote unclosed?"
    )


def _above_first(text: bytes) -> tuple[int, int, str | None, list[tuple[int, int, str]]]:
    """The start of the first record and its line, the separator of a line sep= or None, and the
    (start, line, text) of comments.
    """
    at, line, separator = 0, 1, None
    comments: list[tuple[int, int, str]] = []
    for found in re.finditer(rb"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+", text):
        stripped = found[0].decode("utf-8", "replace").strip(" \r\n")
        said = None if comments or separator else _SEPARATOR_LINE.fullmatch(stripped)
        if said is not None:
            separator = said[1]
        elif stripped.startswith("#"):
            comments.append((at, line, stripped))
        elif stripped:
            break
        at, line = found.end(), line + 1
    return at, line, separator, comments


def _is_record(line: str, separator: str, width: int) -> bool:
    """Whether a line that begins with # is a header or a row rather than a comment; width: the
    number of cells of the record below.
    """
    return line[1:2] not in (" ", "\t", "#", "!") and len(split(line, separator)) == width > 1


def _check_title(rows: list[list[str]], separator: str, place: str) -> None:
    """Reject a text whose first records have another number of cells than all later ones."""
    counts = list(map(len, rows))
    width = counts[-1]
    above = next(number for number in range(len(counts)) if set(counts[number:]) == {width})
    if counts[0] == width or width == 1 or above > 10 or len(counts) < above + 2:
        return
    advice = "remove it if it is a title"
    if above == 1 and counts[0] == width - 1:
        advice = "name the first column if it holds row names"
        if not any(row[-1] for row in rows[1:]):
            advice = f"remove the {separator!r} at the end of each row"
    raise DataError(
        f"{place}: it has {_counted(counts[0])}, but the rows below have {width}; correct it, or"
        f" {advice}"
    )


def _counted(cells) -> str:
    return f"{cells} cell{'s' * int(cells != 1)}"


def _separator_of(text: bytes, name: str) -> str:
    """The separator of a text that begins with its first record."""
    whole = itertools.islice(io.StringIO(text.decode("utf-8", "replace")), 10 * _LINES)
    lines = [_QUOTED.sub('""', line.strip("\n")) for line in whole if line.strip(" \n")][:_LINES]
    lines = lines or [""]
    # a title has no separators
    titled = len(lines) > 1 and not set(lines[0]) & {*_SEPARATORS, '"'}
    cut = lines[titled:]
    counts = {mark: [line.count(mark) for line in cut] for mark in _SEPARATORS}
    there = [mark for mark, numbers in counts.items() if numbers[0]]
    alike = [mark for mark in there if len(set(counts[mark])) == 1]
    if not alike and set(there) <= {"\t"}:
        if _ENTRY.match("".join(lines[0].split()[1:2])):
            raise DataError(f"{name} is LIBSVM text, not CSV; rename it to end in .libsvm")
        if _is_spaced(lines) or _is_spaced(cut):
            return SPACED
    cells = [cell.strip() for line in cut for cell in line.split(";") if "," in cell]
    # all commas are decimal commas
    if ";" in alike and all(map(_COMMA_NUMBER.fullmatch, cells)):
        return ";"
    return max(alike or there or ",", key=lambda mark: counts[mark][0])


def _is_spaced(lines) -> bool:
    """Whether lines are cells separated by spaces: equally many in each, and none a LIBSVM
    entry.
    """
    words = [split(line, SPACED) for line in lines[:_LINES]]
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
    encodings.check(raw, shape.name, line)
    raw = _unix(raw.removesuffix(_END))
    if first and shape.header:
        above = next(records(raw, shape.separator), (0, 0, None))
        if above[2] is None:
            return None
        raw, line = raw.split(b"\n", above[1])[-1], line + above[1]
    lines = _lines(raw, shape, line)
    if not len(lines):
        return None
    if shape.header:
        _check_repeated(raw, shape, line)
    columns = _columns(raw, shape, as_words, whole)
    if len(columns[0]) != len(lines):
        raise DataError(
            f"{shape.name}, lines {lines[0]} to {lines[-1]}: their quotes are ambiguous; double"
            " each quote inside a cell"
        )
    commas = shape.separator == ";" and b"." in raw
    return Table(
        shape.name,
        list(shape.names),
        shape.header,
        columns,
        lines,
        decimal=_DECIMAL.get(shape.separator),
        doubtful=DOUBTFUL,
        dotted=_dotted(_read(raw, shape, range(len(columns)))) if commas else {},
        padded=_padded(raw, shape.separator),
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
    found = [
        (line + at, None if cells is None else len(cells))
        for at, _, cells in records(raw, shape.separator)
    ]
    odd = next(((at, count) for at, count in found if count != width), None)
    if odd is not None and odd[1] is None:
        raise DataError(f"{shape.name}, line {odd[0]}: a quote opens there and is never closed")
    if odd is not None:
        comment = raw.split(b"\n", odd[0] - line + 1)[odd[0] - line].startswith(b"#")
        raise DataError(
            f"{shape.name}, line {odd[0]}: it has {_counted(odd[1])}, but the previous rows have"
            f" {width}" + "; remove it if it is a comment" * comment
        )
    return np.array([at for at, _ in found], np.int64)


def _check_repeated(raw: bytes, shape: Dialect, line: int) -> None:
    """Raise DataError for a row that repeats the header, as in concatenated files."""
    names = ["" if name == f"column {k}" else name for k, name in enumerate(shape.names, 1)]
    text = io.StringIO()
    csv.writer(text, delimiter=shape.separator, lineterminator="").writerow(names)
    if text.getvalue().encode() not in raw:
        return
    for at, _, cells in records(raw, shape.separator):
        if cells is not None and [cell.strip(" " + _MARK) for cell in cells] == names:
            raise DataError(
                f"{shape.name}, line {line + at}: it repeats the header; remove it, or use"
                " --no-header if it is a row"
            )


def _read(raw: bytes, shape: Dialect, words, only=None):
    """The data frame of records, with the columns `words` as texts; only: those to read."""
    if raw.startswith(_MARK.encode()):
        # within a text it is part of a cell, but pandas removes it at the beginning
        raw = _MARK.encode() + raw
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


def _columns(raw: bytes, shape: Dialect, as_words, whole: bool) -> list:
    """The columns of records: numbers, or words if a cell is one."""
    try:
        frame = _read(raw, shape, () if whole else as_words)
        others = {
            place
            for place in frame.columns
            if frame[place].dtype.kind not in "iuf"
            or (place in as_words and not _are_decimals(frame[place].to_numpy()))
        }
        # only texts keep the spelling of all cells
        texts = _read(raw, shape, others, sorted(others)) if whole or others - as_words else frame
    except (ValueError, OverflowError) as error:  # pandas' own exceptions are ValueErrors
        raise DataError(f"{shape.name} can't be read: {str(error).splitlines()[0]:.200}") from None
    return [
        _cells(texts[place], place in as_words, shape.separator == ";")
        if place in others
        else frame[place].to_numpy(np.float64)
        for place in frame.columns
    ]


def _are_decimals(values: np.ndarray) -> bool:
    """Whether numbers are very many decimals."""
    known = values[~np.isnan(values)] if values.dtype.kind == "f" else values[:0]
    return bool((known % 1 != 0).any()) and len(np.unique(known)) > _MANY


def _cells(texts, as_words: bool, commas: bool):
    """Numbers or Words of a column of texts; commas: numbers may have a decimal comma."""
    codes, values = lazy.pandas.factorize(texts)
    values = [str(value).strip() for value in values]
    if not as_words and (numbers := numbers_of(values, commas)) is not None:
        return np.array([*numbers, np.nan])[codes]
    places: dict[str, int] = {}
    place = [
        -1 if value in ABSENT and value != DOUBTFUL else places.setdefault(value, len(places))
        for value in values
    ]
    return Words(np.array([*place, -1], np.int32)[codes], list(places))


def _dotted(frame) -> dict[int, str]:
    """`dotted` of a Table, for a frame of texts."""
    found = {}
    for place in frame.columns:
        cells = frame[place].str.strip()
        cells = cells[cells.str.contains(".", regex=False)]
        if len(cells):
            found[place] = cells.iloc[0] if cells.str.fullmatch(_DOTTED_CELL).all() else ""
    return found


def _padded(raw: bytes, separator: str) -> dict[int, str]:
    """`padded` of a Table, from the first lines with a cell of digits that begins with 0."""
    found: dict[int, str] = {}
    raw = b"\n" + raw
    for cell in itertools.islice(_PADDED.finditer(raw), _MOST_PADDED):
        start, end = raw.rfind(b"\n", 0, cell.start()) + 1, raw.find(b"\n", cell.end())
        line = raw[start : end if end >= 0 else len(raw)].decode("utf-8", "replace")
        for place, own in enumerate(split(line, separator)):
            if _PADDED_CELL.fullmatch(own):
                found.setdefault(place, own)
    return found


def numbers_of(values, commas) -> list[float] | None:
    """The numbers of the cells of a column, nan for missing, if all are numbers; commas: they may
    have a decimal comma, unless all of these may mark thousands.
    """
    marked = [value for value in values if commas and _COMMA_NUMBER.fullmatch(value)]
    plain = {*ABSENT, *marked}
    if not all(is_number(value) or value in plain for value in values) or (
        marked and all(map(_THOUSANDS.fullmatch, marked))
    ):
        return None
    return [np.nan if value in ABSENT else float(value.replace(",", ".")) for value in values]


def tables(handle, shape: Dialect, as_words=frozenset(), chunk: int = CHUNK) -> Iterator[Table]:
    """The tables of all records of a binary handle, in order; raises like `parse`."""
    skip = shape.start
    while skip and (data := handle.read(min(skip, chunk))):
        skip -= len(data)
    rest, line, first, more = b"", shape.line, True, True
    while more:
        data = handle.read(chunk)
        more, rest = bool(data), rest + data
        end = whole_records(rest, shape.separator) if more else len(rest)
        if more and len(rest) - end > LONGEST_RECORD:
            raise _too_long(shape.name, line)
        raw, rest = rest[:end], rest[end:]
        table = parse(raw, shape, line, as_words, first)
        first = first and not raw.strip()
        line += _unix(raw).count(b"\n")
        if table is not None:
            yield table
