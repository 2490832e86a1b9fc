"""Read CSV and TSV text into tables.

The first lines of a text determine its separator and its header. A compiled loop finds the records
and counts their cells, so that a row with a wrong number of cells is rejected with its line number.
pandas then reads the cells, a few megabytes at a time. Text is UTF-8 without a byte order mark (see
`rfx.data.encodings`).
"""

import csv
import io
import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from rfx import lazy
from rfx.compiled import njit
from rfx.data import encodings
from rfx.data.tabular.header import CELLS, ROWS, Guess, guess
from rfx.data.tabular.table import Table, Words, joined
from rfx.errors import DataError
from rfx.numerals import is_number

CHUNK = 8 << 20  # bytes parsed at a time
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
_MARK = b"\xef\xbb\xbf"
_COMMA_NUMBER = re.compile(r"[+-]?+[0-9]*+,[0-9]++(?:[eE][+-]?+[0-9]++)?")
_THOUSANDS = re.compile(r"[+-]?[1-9][0-9]{0,2},[0-9]{3}")
_LINE_END = re.compile(rb"\r\n|\r|\n")
_ENTRY = re.compile(r"[0-9]+:[-+.0-9]")  # of LIBSVM text
_QUOTED = re.compile(r'"[^"]*"')
_SEPARATOR_LINE = re.compile(rb'"?sep=([^\w\s"]|\t)"?', re.IGNORECASE)
_SPACED_CELL = re.compile(r'"(?:[^"]|"")*"[^ \t]*|[^ \t]+')
_DOTTED_CELL = r"[+-]?[1-9][0-9]{0,2}(?:\.[0-9]{3})+"  # dots between thousands
# A cell of digits that begins with 0, the characters before it, and how many may be inspected.
_PADDED_CELL = re.compile(rb'(0[0-9]+)"?[ \t]*(?=[,;|\t \r\n]|$)')
_BORDER = np.isin(np.arange(256), list(b',;|\t "\r\n'))
_MOST_PADDED = 1000
# The decimal mark implied by a separator: a list of decimal commas is separated by semicolons.
_DECIMAL = {",": ".", ";": ","}


class KindChanged(Exception):
    """Columns, by position, that contain words although an earlier part of the text had numbers:
    read the text again.
    """

    def __init__(self, columns):
        super().__init__(columns)
        self.columns = frozenset(columns)


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
            found = self.guess()
            if found.doubt:
                raise DataError(
                    f"{self.name}, line {self.line}: it may be a header or a row"
                    f" ({', '.join(self.cells):.80}); specify --header or --no-header"
                )
            header = found.header
            what, flag = "a row, not for a header", "--header"
            if header:
                what, flag = "the header", "--no-header"
            if found.note:
                notes += (
                    f"line {self.line} of {self.name} is read as {what}, because {found.note};"
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
    while len(raw) <= LONGEST_RECORD:
        while more and len(raw) < size:
            data = read(size - len(raw))
            more = bool(data)
            raw += data
        if b"\0" in raw:
            raise _binary(name)
        raw = raw if more else raw.removesuffix(_END)
        found = _sampled(raw, not more, name, separator, widths, prefer)
        if found is not None:
            return found
        size *= 4
    raise _too_long(name, 1)


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


def _binary(name):
    return DataError(
        f"{name} is a binary file, or text in UTF-16 without a byte order mark; save it as CSV in"
        " UTF-8, or try --encoding utf-16-le"
    )


def _too_long(name, line):
    return DataError(
        f"{name}, line {line}: it is longer than {LONGEST_RECORD:,} bytes, the maximum for a row;"
        " is a quote unclosed?"
    )


def _sampled(raw, ended, name, separator, widths, prefer) -> Sample | None:
    """The Sample; None if more of the text is needed."""
    start, said, comments = _above_first(raw)
    if not raw[start:].strip() and not (ended and comments):
        if ended:
            raise DataError(f"{name} is empty")
        return None
    separator = separator or said
    mark, line = (
        separator or _separator_of(raw[start:], ended, name),
        1 + len(_LINE_END.findall(raw[:start])),
    )
    found = records(raw[start:], mark, line)
    count = len(found.starts) if ended else int(np.count_nonzero(found.ends < found.end))
    if count < 2 and not ended:
        return None
    if prefer not in (None, mark) and separator is None and int(found.cells[0]) not in widths:
        other = records(raw[start:], prefer, line)
        if int(other.cells[0]) in widths:
            mark, found = prefer, other
    encodings.check(raw[: start + int(found.ends[count - 1])] if count else raw, name)
    if comments and (not count or _is_record(comments[-1][2], mark, found.cells[0])):
        start, line, _ = comments.pop()
        found, count = records(raw[start:], mark, line), count + 1
    most = 2 + min(ROWS, max(2, CELLS // int(found.cells[0])))
    # concatenated files may have a mark before a record
    cells, *rows = [
        split(raw[start + begin : start + end].removeprefix(_MARK), mark)
        for begin, end in zip(found.starts[:most], found.ends[:count])
    ]
    if separator is None:
        _check_title([cells, *rows][:_LINES], mark, f"{name}, line {found.lines[0]}")
    rows = [row for row in rows if len(row) == len(cells)]
    return Sample(name, mark, cells, rows, start, int(found.lines[0]), _notes(comments, name))


def _above_first(raw) -> tuple[int, str | None, list[tuple[int, int, bytes]]]:
    """The start of the first record, the separator of a line sep= or None, and the (start, line,
    text) of comments.
    """
    at, separator = 0, None
    comments: list[tuple[int, int, bytes]] = []
    for line, text in enumerate(re.findall(rb"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+", raw), 1):
        stripped = text.strip(b" \r\n")
        mark = _SEPARATOR_LINE.fullmatch(stripped) if not comments else None
        if mark is not None and separator is None:
            separator = mark[1].decode()
        elif stripped.startswith(b"#"):
            comments.append((at, line, stripped))
        elif stripped:
            break
        at += len(text)
    return at, separator, comments


def _is_record(line: bytes, separator: str, width: int) -> bool:
    """Whether a line that begins with # is a header or a row rather than a comment; width: the
    number of cells of the record below.
    """
    return line[1:2] not in (b" ", b"\t", b"#", b"!") and len(split(line, separator)) == width > 1


def _notes(comments, name) -> tuple[str, ...]:
    """The notes of a Sample about ignored comments."""
    if not comments:
        return ()
    first, last = comments[0][1], comments[-1][1]
    if len(comments) == 1:
        return (f"line {first} of {name} begins with # and is ignored",)
    return (f"lines {first} to {last} of {name} begin with # and are ignored",)


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


def _separator_of(text: bytes, ended: bool, name: str) -> str:
    """The separator of a text that begins with its first record."""
    first = re.match(rb"[^\r\n]*[\r\n]*", text)
    assert first is not None
    head = text[: max(HEAD, first.end())]
    whole = [line for line in _LINE_END.split(head) if line.strip(b" ")]
    if len(whole) > 1 and not (ended and len(head) == len(text)):
        del whole[-1]
    lines = [_QUOTED.sub('""', line.decode("utf-8", "replace")) for line in whole[:_LINES]] or [""]
    # a title has no separators
    titled = not set(lines[0]) & {*_SEPARATORS, '"'}
    cut = lines[1:] if titled and len(lines) > 1 else lines
    counts = {mark: [line.count(mark) for line in cut] for mark in _SEPARATORS}
    there = [mark for mark, own in counts.items() if own[0]]
    alike = [mark for mark in there if len(set(counts[mark])) == 1]
    if not alike and set(there) <= {"\t"}:
        if _ENTRY.match("".join(lines[0].split()[1:2])):
            raise DataError(f"{name} is LIBSVM text, not CSV; rename it to end in .libsvm")
        if _is_spaced(lines) or (titled and _is_spaced(cut)):
            return SPACED
    cells = [cell.strip() for line in cut for cell in line.split(";")]
    # all commas are decimal commas
    if (
        ";" in alike
        and "," in there
        and all(_COMMA_NUMBER.fullmatch(cell) for cell in cells if "," in cell)
    ):
        return ";"
    return max(alike or there or ",", key=lambda mark: counts[mark][0])


def _is_spaced(lines) -> bool:
    """Whether lines are cells separated by spaces: equally many in each, and none a LIBSVM
    entry.
    """
    words = [_SPACED_CELL.findall(line.strip()) for line in lines[:_LINES]]
    if len(words) > 2 and len(words[1]) == len(words[0]) + 1:
        del words[0]  # a header without a name for the row names, reported by its line
    return (
        len(words[0]) > 1
        and all(len(own) == len(words[0]) for own in words)
        and not any(_ENTRY.match(own[1]) for own in words)
    )


def split(record: bytes, separator: str) -> list[str]:
    """The cells of a record, without surrounding spaces."""
    text = record.decode("utf-8", "backslashreplace")
    if separator == SPACED:
        return [
            next(csv.reader([cell], delimiter="\t"))[0] if cell[0] == '"' else cell
            for cell in _SPACED_CELL.findall(text)
        ]
    if '"' not in text:
        return [cell.strip() for cell in text.split(separator)]
    csv.field_size_limit(max(csv.field_size_limit(), LONGEST_RECORD))
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=separator, skipinitialspace=True)
    return [cell.strip() for row in rows for cell in row]


# ---------------------------------------------------------------------- records

# The position of a character in a cell: before it, in it, in its quotes, after a quote within
# these.
_BEFORE, _INSIDE, _QUOTES, _AFTER = 0, 1, 2, 3


@njit(cache=True, nogil=True)
def _records(text, separator, starts, ends, cells, lines, line):
    """Where the records of `text` begin and end, the number of cells of each, and its line.

    Returns (records, the end of the last one closed by a line end, the line there, whether the rest
    is inside quotes, whether there are blank lines or lone carriage returns).
    """
    count, start, start_line, size = 0, 0, line, len(text)
    spaced = separator == 32
    blank = 0 if spaced else 1  # cells of a blank line
    fields, state, done, done_line, odd = blank, _BEFORE, 0, line, False
    for at in range(size + 1):
        c = text[at] if at < size else 10
        if state == _QUOTES and at < size:
            state = _AFTER if c == 34 else _QUOTES
            line += c == 10
        elif c == 10 or c == 13:
            if c == 13 and at + 1 < size:
                if text[at + 1] == 10:
                    continue
                odd = True
            if fields > blank or state != _BEFORE:
                starts[count], cells[count], lines[count] = start, fields, start_line
                ends[count] = at - 1 if c == 10 and at > start and text[at - 1] == 13 else at
                count += 1
            elif start < size:
                odd = True
            if at < size:
                line += 1
                start, start_line, done, done_line = at + 1, line, at + 1, line
                fields, state = blank, _BEFORE
        elif c == separator or (spaced and c == 9):
            fields += not spaced
            state = _BEFORE
        elif c == 34 and state != _INSIDE:
            fields += spaced and state == _BEFORE
            state = _QUOTES
        elif c != 32 or state != _BEFORE:  # blanks before a cell are not part of it
            fields += spaced and state == _BEFORE
            state = _INSIDE
    return count, done, done_line, state == _QUOTES, odd


class Records(NamedTuple):
    """The records of a text: (n,) start and end of each (without its line end), its number of
    cells, its line.

    end: the end of those closed by a line end, and the line there; open: whether the rest is inside
    quotes; odd: whether there are blank lines, or lone carriage returns.
    """

    starts: np.ndarray
    ends: np.ndarray
    cells: np.ndarray
    lines: np.ndarray
    end: int
    line: int
    open: bool
    odd: bool


def records(raw, separator: str, line: int = 1) -> Records:
    """The records in raw, whose first line has that number; those from `end` on are incomplete."""
    text = np.frombuffer(raw, np.uint8)
    most = int(np.count_nonzero(text == 10) + np.count_nonzero(text == 13)) + 1
    starts, ends, cells, lines = (np.empty(most, np.int64) for _ in range(4))
    count, end, at, inside, odd = _records(text, ord(separator), starts, ends, cells, lines, line)
    rows = slice(count)
    return Records(
        starts[rows], ends[rows], cells[rows], lines[rows], int(end), int(at), inside, odd
    )


def whole_records(raw, separator: str) -> int:
    """The number of bytes of raw, which begins at a record, that are complete records."""
    return records(raw, separator).end


def parse(
    raw: bytes, shape: Dialect, line: int = 1, forced=frozenset(), first: bool = True
) -> Table | None:
    """The table of complete records, starting at that line; None if there are none.

    forced: positions of columns to read as words regardless of their cells. first: whether the text
    starts here, after any preamble, so that the header is included. Raises DataError, with the line
    number, for rows with another number of cells, unclosed quotes, a repeated header, and bytes
    that are not UTF-8.
    """
    if b"\0" in raw:
        raise _binary(shape.name)
    raw = raw.removesuffix(_END)
    encodings.check(raw, shape.name, line)
    found = records(raw, shape.separator, line)
    skipped = int(first and shape.header)
    starts, ends, cells, lines = (own[skipped:] for own in found[:4])
    if found.open:
        raise DataError(
            f"{shape.name}, line {found.lines[-1]}: a quote opens there and is never closed"
        )
    if not len(cells):
        return None
    if (cells != len(shape.names)).any():
        row = int(np.argmax(cells != len(shape.names)))
        comment = "; remove it if it is a comment" if raw[starts[row]] == ord("#") else ""
        raise DataError(
            f"{shape.name}, line {lines[row]}: it has {_counted(cells[row])}, but the previous rows"
            f" have {len(shape.names)}{comment}"
        )
    raw, starts, ends = raw[starts[0] :], starts - starts[0], ends - starts[0]
    padded = _padded(raw, starts, shape.separator)
    if found.odd:  # pandas misreads some
        raw = b"".join(raw[a:b] + b"\n" for a, b in zip(starts, ends))
    decimal = _DECIMAL.get(shape.separator)
    columns, dotted = _cells(raw, shape, forced)
    if len(columns[0]) != len(cells):
        raise DataError(
            f"{shape.name}, lines {lines[0]} to {lines[-1]}: their quotes are ambiguous; double"
            " each quote inside a cell"
        )
    table = Table(
        shape.name,
        list(shape.names),
        shape.header,
        columns,
        lines,
        decimal=decimal,
        doubtful=DOUBTFUL,
        dotted=dotted,
        padded=padded,
        texts=True,
    )
    if shape.header:
        _check_repeated(table)
    return table


def _check_repeated(table: Table) -> None:
    """Raise an error for a row that repeats the header, as in concatenated files."""
    same = np.ones(table.n_rows, bool)
    for position, (name, column) in enumerate(zip(table.names, table.columns)):
        gone = name in ABSENT or table.unnamed(position)
        if isinstance(column, Words):
            like = [value.lstrip("\ufeff") == name for value in column.values]
            same &= np.array([*like, gone])[column.codes]
        else:
            same &= (
                np.isnan(column) if gone else column == float(name) if is_number(name) else False
            )
        if not same.any():
            return
    raise DataError(
        f"{table.place(int(np.argmax(same)))}: it repeats the header; remove it, or use"
        " --no-header if it is a row"
    )


def _cells(raw: bytes, shape: Dialect, forced) -> tuple[list, dict[int, str]]:
    """The columns of complete records, and `dotted` of a Table."""
    if raw.startswith(_MARK):
        # within a text it is part of a cell, but pandas removes it at the beginning
        raw = _MARK + raw
    places, commas = range(len(shape.names)), shape.separator == ";"

    def read(words, absent, only=None):
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
                na_values=absent,
                skipinitialspace=True,
                float_precision="round_trip",
                low_memory=False,
                encoding="utf-8",
                index_col=False,
                skip_blank_lines=False,
            )

    dotted = {}
    try:
        frame = read(forced, {place: list(() if place in forced else ABSENT) for place in places})
        doubtful = DOUBTFUL.encode() in raw
        lossy = {
            place
            for place in set(places) - forced
            if _is_truth(frame[place])
            or (doubtful and frame[place].dtype.kind not in "iuf" and frame[place].isna().any())
        }
        dots = commas and b"." in raw
        if lossy or dots:
            words = sorted(places if dots else lossy)
            text = read(words, [], words)
            frame = frame.drop(columns=lossy).join(text[sorted(lossy)])
            dotted = _dotted(text) if dots else {}
    except (ValueError, OverflowError) as error:  # pandas' own exceptions are ValueErrors
        raise DataError(f"{shape.name} can't be read: {str(error).splitlines()[0]:.200}") from None
    return [_column(frame[place], place in forced, commas) for place in places], dotted


def _is_truth(series) -> bool:
    """Whether pandas read booleans, whose spelling is lost."""
    return series.dtype.kind == "b" or (
        series.dtype == object
        and lazy.pandas.api.types.infer_dtype(series, skipna=True) == "boolean"
    )


def _dotted(text) -> dict[int, str]:
    """`dotted` of a Table, for a frame of texts."""
    found = {}
    for place in text.columns:
        cells = text[place].str.strip()
        cells = cells[cells.str.contains(".", regex=False)]
        if len(cells):
            found[place] = cells.iloc[0] if cells.str.fullmatch(_DOTTED_CELL).all() else ""
    return found


def _padded(raw: bytes, starts: np.ndarray, separator: str) -> dict[int, str]:
    """`padded` of a Table, for complete records with these starts."""
    text = np.frombuffer(raw + b"\n", np.uint8)
    zeros = np.flatnonzero(text[:-1] == ord("0"))
    digit = (text[zeros + 1] >= ord("0")) & (text[zeros + 1] <= ord("9"))
    found: dict[int, str] = {}
    for at in zeros[digit & _BORDER[text[zeros - 1]]][:_MOST_PADDED].tolist():
        cell = _PADDED_CELL.match(raw, at)
        above = raw[starts[np.searchsorted(starts, at, "right") - 1] : at].removesuffix(b'"')
        before = split(above + b"0", separator)
        if cell is not None and before[-1] == "0":
            found.setdefault(len(before) - 1, cell[1].decode())
    return found


def _column(series, forced: bool, commas: bool):
    """Numbers or Words of a column read by pandas; commas: numbers may have a decimal comma."""
    if series.dtype.kind in "iuf":
        return series.to_numpy(np.float64)
    codes, values = lazy.pandas.factorize(series)
    values = [str(value).strip() for value in values]
    if not forced and (found := numbers_of(values, commas)) is not None:
        return np.array([*found, np.nan])[codes]
    numbers: dict[str, int] = {}
    place = [
        -1 if value in ABSENT and value != DOUBTFUL else numbers.setdefault(value, len(numbers))
        for value in values
    ]
    return Words(np.array([*place, -1], np.int32)[codes], list(numbers))


def numbers_of(values, commas) -> list[float] | None:
    """The numbers of the cells of a column, nan for missing, if all are numbers; commas: they may
    have a decimal comma.
    """
    if not _are_numbers(values, commas):
        return None
    return [np.nan if value in ABSENT else float(value.replace(",", ".")) for value in values]


def _are_numbers(values, commas) -> bool:
    """Whether all are plain numbers, or have decimal commas that can't mark thousands."""
    if not all(
        is_number(value) or value in ABSENT or (commas and _COMMA_NUMBER.fullmatch(value))
        for value in values
    ):
        return False
    marked = [value for value in values if "," in value]
    return not marked or not all(_THOUSANDS.fullmatch(value) for value in marked)


def read(opened: Callable, shape: Dialect, forced=frozenset(), chunk: int = CHUNK) -> Table | None:
    """The table of all records of a text, read in parts; None if there are none. Raises like
    `parse`.

    opened: a function that returns a new binary handle on the text. forced: see parse.
    """
    words = forced
    while True:
        try:
            with opened() as handle:
                parts = list(tables(handle, shape, words, chunk))
        except KindChanged as change:
            words = words | change.columns
            continue
        if not parts:
            return None
        found = joined(parts)
        for position in words - forced:
            # values such as 1,234 mark thousands in one part, but are decimals next to 1,5 in
            # another
            values = found.columns[position].values
            numbers = numbers_of(values, shape.separator == ";")
            if numbers is not None:
                found.columns[position] = np.array([*numbers, np.nan])[
                    found.columns[position].codes
                ]
        return found


def tables(handle, shape: Dialect, forced=frozenset(), chunk: int = CHUNK):
    """The tables of all records of a binary handle, in order; raises like `parse`, and
    KindChanged.
    """
    skip = shape.start
    while skip and (data := handle.read(min(skip, chunk))):
        skip -= len(data)
    rest, line, first, more, kinds = b"", shape.line, True, True, None
    while more:
        data = handle.read(chunk)
        more = bool(data)
        rest += data
        found = records(rest, shape.separator, line)
        end = found.end
        if more and end == len(rest) and rest.endswith(b"\r"):
            continue  # its line feed may follow
        if more and len(rest) - end > LONGEST_RECORD:
            raise _too_long(shape.name, found.line)
        end = end if more else len(rest)
        raw, rest = rest[:end], rest[end:]
        begun = not (len(found.starts) and found.starts[0] < end)
        table = parse(raw, shape, line, forced, first)
        line, first = found.line, first and begun
        if table is None:
            continue
        words = {
            position for position, column in enumerate(table.columns) if isinstance(column, Words)
        }
        if kinds is not None and words != kinds:
            raise KindChanged(words ^ kinds)
        kinds = words
        yield table
