"""Read CSV and TSV text into tables, a few megabytes at a time.

This module detects the separator, the header and the columns of words. A compiled loop finds the
records and counts their cells, so that a row with a wrong number of cells is rejected with its line
number. pandas then reads the cells. Text is UTF-8 without a byte order mark (see
`rfx.data.encodings`).
"""

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
from rfx.data.tabular.delimited import (
    ABSENT,
    COMMA_NUMBER,
    HEAD,
    LINE,
    LINES,
    LONGEST_RECORD,
    SPACED,
    above_first,
    is_record,
    separator_of,
    split,
)
from rfx.data.tabular.header import CELLS, ROWS, Guess, guess
from rfx.data.tabular.table import Table, Words, joined
from rfx.errors import DataError
from rfx.numerals import is_number

CHUNK = 8 << 20  # bytes parsed at a time
_END = b"\x1a"  # DOS ends a text with ctrl-Z
_MARK = b"\xef\xbb\xbf"
# The only one of them that may be a word: the country code of Namibia.
DOUBTFUL = "NA"
_THOUSANDS = re.compile(r"[+-]?[1-9][0-9]{0,2},[0-9]{3}")
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
    first : bytes
        The header as written.
    notes : tuple of str
        Messages for the user about guesses.
    """

    separator: str
    header: bool
    names: tuple[str, ...]
    name: str
    start: int = 0
    line: int = 1
    first: bytes = b""
    notes: tuple[str, ...] = ()


# ---------------------------------------------------------------------- how a text is written


@dataclass(frozen=True)
class Sample:
    """The beginning of a text: its separator, the cells of its first record, and those of some
    following records.

    start, line, first: see Dialect. rows: records with as many cells as the first.
    """

    name: str
    separator: str
    cells: list[str]
    rows: list[list[str]]
    start: int
    line: int
    first: bytes
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
            if found.note:
                what, flag = (
                    ("the header", "--no-header")
                    if header
                    else ("a row, not for a header", "--header")
                )
                notes += (
                    (
                        f"line {self.line} of {self.name} is read as {what}, because {found.note};"
                        f" use {flag} if this is wrong"
                    ),
                )
        if not header:
            names = tuple(str(number) for number in range(1, len(self.cells) + 1))
            return Dialect(
                self.separator, False, names, self.name, self.start, self.line, b"", notes
            )
        seen: set[str] = set()
        for cell in self.cells:
            if cell in seen and cell:
                raise DataError(
                    f"{self.name}: two columns are called {cell!r:.80}; rename one, or use"
                    " --no-header if there is no header"
                )
            seen.add(cell)
        # the index of a data frame has no name
        names = tuple(cell or f"column {number}" for number, cell in enumerate(self.cells, 1))
        return Dialect(
            self.separator, True, names, self.name, self.start, self.line, self.first, notes
        )


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
        raw = raw if more else raw.removesuffix(_END)
        found = _sampled(raw, not more, name, separator, widths, prefer)
        if found is not None:
            return found
        if len(raw) > LONGEST_RECORD:
            raise DataError(
                f"{name}, line 1: it is longer than {LONGEST_RECORD:,} bytes, the maximum for a"
                " row; is a quote unclosed?"
            )
        size *= 4


def dialect(
    head: bytes, name: str, header: bool | None = None, separator: str | None = None
) -> Dialect:
    """The dialect inferred from the first bytes of a text; header and separator if known. Raises
    like `sample`.
    """
    return sample(io.BytesIO(head).read, name, separator).dialect(header)


def _binary(name):
    return DataError(
        f"{name} is a binary file, or text in UTF-16 without a byte order mark; save it as CSV in"
        " UTF-8, or try --encoding utf-16-le"
    )


def _sampled(raw, ended, name, separator, widths, prefer) -> Sample | None:
    """The Sample; None if more of the text is needed."""
    above = above_first(raw, ended)
    if above is None:
        if ended:
            raise DataError(f"{name} is empty")
        return None
    start, line, told, comments = above
    given = separator or told
    own = given or separator_of(raw[start:], ended, name)
    found = records(raw[start:], own, line)
    count = int(np.count_nonzero(found.ends < found.end)) if not ended else len(found.starts)
    if count < 2 and not ended:
        return None
    if prefer is not None and prefer != own and given is None:
        other = records(raw[start:], prefer, line)
        if len(other.cells) and int(other.cells[0]) in widths and int(found.cells[0]) not in widths:
            own, found = prefer, other
    encodings.check(raw[: start + int(found.ends[count - 1])], name)
    if comments and is_record(raw[comments[-1][0] : start], own, found.cells[0]):
        (start, line), comments = comments[-1], comments[:-1]
        found = records(raw[start:], own, line)
        count += 1
    if given is None:
        _check_title(raw[start:], found, count, ended, name)
    first = raw[start + found.starts[0] : start + found.ends[0]]
    cells = split(first, own)
    return Sample(
        name,
        own,
        cells,
        _rows_below(raw[start:], found, count, own, len(cells)),
        start,
        int(found.lines[0]),
        first,
        _of_comments(comments, name),
    )


def _rows_below(text, found, count, separator, width) -> list[list[str]]:
    """The cells of records after the first, among the first `count` found: those with `width`
    cells.
    """
    most = 1 + min(ROWS, max(2, CELLS // width))
    below = (text[begin:end] for begin, end in zip(found.starts[1:most], found.ends[1:count]))
    # concatenated files may have a mark before a record
    rows = [split(record.removeprefix(_MARK), separator) for record in below]
    return [row for row in rows if len(row) == width]


def _of_comments(comments, name) -> tuple[str, ...]:
    """The notes of a Sample about ignored comments."""
    if not comments:
        return ()
    first, last = comments[0][1], comments[-1][1]
    if len(comments) == 1:
        return (f"line {first} of {name} begins with # and is ignored",)
    return (f"lines {first} to {last} of {name} begin with # and are ignored",)


def _check_title(text, found, count, ended, name):
    """Reject a text whose first lines have another number of cells than all later ones."""
    counts = found.cells[:count][:LINES]
    if (counts == counts[0]).all():
        return
    at = 0
    for _ in range(10):
        line = LINE.match(text, at)
        assert line is not None
        at = line.end()
        if at >= len(text):
            return
        separator = separator_of(text[at:], ended, name) if text[at:].strip() else ","
        below = records(text[at:], separator, 1)
        cells = below.cells[: len(below.cells) if ended else -1][:LINES]
        if len(cells) > 1 and cells[0] > 1 and (cells == cells[0]).all():
            if cells[0] != counts[0]:
                advice = "remove it if it is a title"
                if counts[0] == cells[0] - 1 and (counts[1:] == cells[0]).all():
                    rows = zip(below.starts, below.ends[: len(cells)])
                    empty = all(
                        not split(text[at + begin : at + end], separator)[-1] for begin, end in rows
                    )
                    advice = "name the first column if it holds row names"
                    advice = f"remove the {separator!r} at the end of each row" if empty else advice
                raise DataError(
                    f"{name}, line {found.lines[0]}: it has {_counted(counts[0])}, but the rows"
                    f" below have {cells[0]}; correct it, or {advice}"
                )
            return


def _counted(cells) -> str:
    return f"{cells} cell{'s' * int(cells != 1)}"


# ---------------------------------------------------------------------- records


# The position of a character in a cell: before it, in it, in its quotes, after a quote within
# these.
_BEFORE, _INSIDE, _QUOTES, _AFTER = 0, 1, 2, 3


@njit(cache=True, nogil=True)
def _next_state(c, state, separator):
    """The state after a character that does not end the line."""
    if state == _QUOTES:
        return _AFTER if c == 34 else _QUOTES
    if c == separator or (separator == 32 and c == 9):
        return _BEFORE
    if c == 34 and state != _INSIDE:
        return _QUOTES
    if c == 32 and state == _BEFORE:
        return _BEFORE  # blanks before a cell are not part of it
    return _INSIDE


@njit(cache=True, nogil=True)
def _cell_end(text, at, separator):
    """The end of the cell that contains `at`, outside of quotes; a quote there is an ordinary
    character.
    """
    other = 9 if separator == 32 else separator
    while at < len(text):
        c = text[at]
        if c == separator or c == other or c == 10 or c == 13:
            break
        at += 1
    return at


@njit(cache=True, nogil=True)
def _look(text, at, separator, padded, column):
    """Record in `padded`, see Records, the cell at `at` if it is the column's first cell of two or
    more digits with a leading 0.
    """
    begin, size = at, len(text)
    if column >= len(padded) or padded[column, 1] > 0 or at + 1 >= size or text[at] != 48:
        return
    while at < size and 48 <= text[at] <= 57:
        at += 1
    end, at = at, _behind_blanks(text, at, size, separator)
    closed = at == size or text[at] == separator or text[at] == 10 or text[at] == 13
    if end - begin > 1 and (closed or (separator == 32 and text[at] == 9)):
        padded[column] = begin, end


@njit(cache=True, nogil=True)
def _behind_line_end(text, at):
    """(Start of the line that follows the line end before `at`, whether that end is a lone carriage
    return).
    """
    if text[at - 1] != 13:
        return at, False
    if at < len(text) and text[at] == 10:
        return at + 1, False
    return at, True


@njit(cache=True, nogil=True)
def _records(text, separator, starts, ends, cells, lines, line, skipped, padded):
    """Where the records of `text` begin and end, the number of cells of each, and its line.

    padded: for each of its columns, receives the start and end of the first cell of digits with a
    leading 0, after the skipped records. Returns (records, the end of the last one closed by a line
    end, the line there, whether the rest is inside quotes, whether there are blank lines or lone
    carriage returns).
    """
    count, at, size = 0, 0, len(text)
    done, done_line, odd = 0, line, False
    spaced, looked = separator == 32, len(padded) > 0
    least = 0 if spaced else 1  # cells of a blank line
    while at < size:
        start, start_line, fields, state = at, line, least, _BEFORE
        closed, stop = False, size
        while at < size:
            c, before = text[at], state
            at += 1
            if before != _QUOTES and (c == 10 or c == 13):
                line, stop, closed = line + 1, at - 1, True
                at, alone = _behind_line_end(text, at)
                odd |= alone
                break
            state = _next_state(c, before, separator)
            if before == _QUOTES:
                line += c == 10
            elif spaced:
                fields += (before == _BEFORE) & (state != _BEFORE)
            else:
                fields += c == separator
            if state == _INSIDE:
                # one test for both characters: the branch is unpredictable
                if looked and at < size and (c == 48) & (text[at] >= 48) & (text[at] <= 57):
                    if (before == _BEFORE) & (count >= skipped):
                        _look(text, at - 1, separator, padded, fields - 1)
                at = _cell_end(text, at, separator)
            elif (c == 34) & (before == _BEFORE) & (count >= skipped):
                _look(text, at, separator, padded, fields - 1)
        if fields > least or state != _BEFORE:
            starts[count], ends[count], cells[count], lines[count] = start, stop, fields, start_line
            count += 1
        else:
            odd = True
        if closed:
            done, done_line = at, line
    return count, done, done_line, state == _QUOTES and not closed, odd


@njit(cache=True, nogil=True)
def _rewritten(text, starts, ends, spaced, separator, out):
    """The records, each closed by a line feed, concatenated in `out`; if spaced, with one
    `separator` between their cells.
    """
    place = 0
    for record in range(len(starts)):
        state, begun = _BEFORE, False
        for at in range(starts[record], ends[record]):
            c = text[at]
            if spaced:
                before, state = state, _next_state(c, state, 32)
                if state == _BEFORE:
                    continue
                if before == _BEFORE and begun:
                    out[place] = separator
                    place += 1
                begun = True
            out[place] = c
            place += 1
        out[place] = 10
        place += 1
    return place


class Records(NamedTuple):
    """The records of a text: (n,) start and end of each (without its line end), its number of
    cells, its line.

    end: the end of those closed by a line end, and the line there; open: whether the rest is inside
    quotes; odd: whether there are blank lines, or lone carriage returns. padded: for each requested
    column, start and end of the first cell of digits with a leading 0, such as 007; (0, 0) for
    none.
    """

    starts: np.ndarray
    ends: np.ndarray
    cells: np.ndarray
    lines: np.ndarray
    end: int
    line: int
    open: bool
    odd: bool
    padded: np.ndarray


def records(raw, separator: str, line: int = 1, skipped: int = 0, n_columns: int = 0) -> Records:
    """The records in raw, whose first line has that number; those from `end` on are incomplete.

    n_columns: number of columns to check for cells with a leading 0, after the skipped records.
    """
    text = np.frombuffer(raw, np.uint8)
    most = int(np.count_nonzero(text == 10) + np.count_nonzero(text == 13)) + 1
    starts, ends, cells, lines = (np.empty(most, np.int64) for _ in range(4))
    padded = np.zeros((n_columns, 2), np.int64)
    count, end, at, inside, odd = _records(
        text, ord(separator), starts, ends, cells, lines, line, skipped, padded
    )
    return Records(
        starts[:count],
        ends[:count],
        cells[:count],
        lines[:count],
        int(end),
        int(at),
        bool(inside),
        bool(odd),
        padded,
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
    header = first and shape.header
    found = records(raw, shape.separator, line, int(header), len(shape.names))
    starts, ends, cells, lines = found[:4]
    if found.open:
        raise DataError(f"{shape.name}, line {lines[-1]}: a quote opens there and is never closed")
    if header:
        starts, ends, cells, lines = starts[1:], ends[1:], cells[1:], lines[1:]
    if not len(cells):
        return None
    if shape.header:
        _check_repeated(raw, shape, starts, ends, lines)
    if (cells != len(shape.names)).any():
        row = int(np.argmax(cells != len(shape.names)))
        start = starts[row]
        comment = "; remove it if it is a comment" if raw[start : start + 1] == b"#" else ""
        raise DataError(
            f"{shape.name}, line {lines[row]}: it has {_counted(cells[row])}, but the previous rows"
            f" have {len(shape.names)}{comment}"
        )
    decimal = _DECIMAL.get(shape.separator)
    dotted = _dotted(raw, shape, starts, ends) if decimal == "," else {}
    padded = {
        position: raw[begin:end].decode("ascii")
        for position, (begin, end) in enumerate(found.padded.tolist())
        if end
    }
    separator = shape.separator
    if found.odd or separator == SPACED:
        out = np.empty(len(raw) + len(starts), np.uint8)
        separator = "\t" if separator == SPACED else separator
        size = _rewritten(
            np.frombuffer(raw, np.uint8),
            starts,
            ends,
            shape.separator == SPACED,
            ord(separator),
            out,
        )
        raw = out[:size].tobytes()
    elif starts[0]:
        raw = raw[starts[0] :]
    columns = _cells(raw, shape, separator, forced)
    if len(columns[0]) != len(cells):
        raise DataError(
            f"{shape.name}, lines {lines[0]} to {lines[-1]}: their quotes are ambiguous; double"
            " each quote inside a cell"
        )
    return Table(
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


def _check_repeated(raw, shape, starts, ends, lines):
    """Raise an error for a row that repeats the header, as in concatenated files."""
    if not shape.first:
        return
    text, head = np.frombuffer(raw, np.uint8), np.frombuffer(shape.first, np.uint8)
    separator = 0 if shape.separator == SPACED else ord(shape.separator)
    row, cells = -1, split(shape.first, shape.separator)
    while (row := _like_header(text, starts, ends, separator, head, row + 1)) >= 0:
        own = split(raw[starts[row] : ends[row]].removeprefix(_MARK), shape.separator)
        if own[: len(cells)] == cells and not any(own[len(cells) :]):
            raise DataError(
                f"{shape.name}, line {lines[row]}: it repeats the header; remove it, or use"
                " --no-header if it is a row"
            )


@njit(cache=True, nogil=True)
def _behind_blanks(text, at, end, separator):
    """The position after the blanks and quotes at `at`; a separator is not a blank."""
    while (
        at < end and (text[at] == 34 or text[at] == 32 or text[at] == 9) and text[at] != separator
    ):
        at += 1
    return at


@njit(cache=True, nogil=True)
def _like_header(text, starts, ends, separator, head, first):
    """The first record from `first` on with the text of `head`, ignoring blanks, quotes, a leading
    mark and trailing separators; else -1.
    """
    for row in range(first, len(starts)):
        at, end, place, same = starts[row], ends[row], 0, True
        if end - at > 2 and text[at] == 0xEF and text[at + 1] == 0xBB and text[at + 2] == 0xBF:
            at += 3
        while same:
            at = _behind_blanks(text, at, end, separator)
            place = _behind_blanks(head, place, len(head), separator)
            if place >= len(head):
                while at < end and text[at] == separator:
                    at = _behind_blanks(text, at + 1, end, separator)
                if at == end:
                    return row
                break
            same = at < end and text[at] == head[place]
            at, place = at + 1, place + 1
    return -1


def _dotted(raw, shape, starts, ends) -> dict[int, str]:
    """The `dotted` information of a Table, about dots in the cells of complete records."""
    if b"." not in raw:
        return {}
    kinds, places = np.zeros(len(shape.names), np.int8), np.zeros((len(shape.names), 2), np.int64)
    _find_dots(np.frombuffer(raw, np.uint8), starts, ends, ord(shape.separator), kinds, places)
    cells = {
        int(position): raw[slice(*places[position])].decode("ascii")
        for position in np.flatnonzero(kinds == 1)
    }
    return cells | {int(position): "" for position in np.flatnonzero(kinds == 2)}


@njit(cache=True, nogil=True)
def _find_dots(text, starts, ends, separator, kinds, places):
    """For each column: whether no cell has a dot (0), all dots may mark thousands (1), the first at
    `places`, or not (2).
    """
    for record in range(len(starts)):
        column, begin, quoted, dots = 0, starts[record], False, False
        for at in range(starts[record], ends[record] + 1):
            c = separator if at == ends[record] else text[at]
            if c == 34:
                quoted = not quoted
            elif c == 46:
                dots = True
            elif c == separator and (not quoted or at == ends[record]):
                if dots and column < len(kinds) and kinds[column] != 2:
                    low, high = _trimmed(text, begin, at)
                    if not _is_grouped(text, low, high):
                        kinds[column] = 2
                    elif kinds[column] == 0:
                        kinds[column] = 1
                        places[column] = low, high
                column, begin, dots = column + 1, at + 1, False


@njit(cache=True, nogil=True)
def _trimmed(text, low, high):
    """The start and end of a cell without surrounding blanks and quotes."""
    while low < high and (text[low] == 32 or text[low] == 34):
        low += 1
    while low < high and (text[high - 1] == 32 or text[high - 1] == 34):
        high -= 1
    return low, high


@njit(cache=True, nogil=True)
def _is_grouped(text, low, high):
    """Whether a cell is an integer with dots that mark thousands, such as 12.345."""
    if low < high and (text[low] == 43 or text[low] == 45):
        low += 1
    if (high - low) % 4 == 0 or low >= high or text[low] == 48:
        return False
    for at in range(low, high):
        if (high - at) % 4 == 0:
            if text[at] != 46:
                return False
        elif not 48 <= text[at] <= 57:
            return False
    return True


def _cells(raw, shape, separator, forced) -> list:
    if raw.startswith(_MARK):
        # within a text it is part of a cell, but pandas removes it at the beginning
        raw = _MARK + raw

    def read(words, doubtful=()):
        everywhere = list(ABSENT)
        absent: list[str] | dict[int, list[str]] = everywhere
        if doubtful:
            clear = [word for word in ABSENT if word != DOUBTFUL]
            absent = {
                position: clear if position in doubtful else everywhere
                for position in range(len(shape.names))
            }
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return lazy.pandas.read_csv(
                io.BytesIO(raw),
                sep=separator,
                header=None,
                names=range(len(shape.names)),
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

    try:
        frame = read(forced)
        # booleans must keep their spelling
        truths = [position for position in frame.columns if _is_truth(frame[position])]
        doubtful = _gaps_in_words(frame) if DOUBTFUL.encode() in raw else set()
        frame = read({*forced, *truths}, doubtful) if truths or doubtful else frame
    except (ValueError, OverflowError) as error:  # pandas' own exceptions are ValueErrors
        raise DataError(f"{shape.name} can't be read: {str(error).splitlines()[0]:.200}") from None
    return [
        _column(frame[position], position in forced, shape.separator == ";")
        for position in frame.columns
    ]


def _gaps_in_words(frame) -> set:
    """The columns of words that have missing cells."""
    return {
        position
        for position in frame.columns
        if frame[position].dtype.kind not in "iufb" and frame[position].isna().any()
    }


def _is_truth(series) -> bool:
    return series.dtype.kind == "b" or (
        series.dtype == object
        and lazy.pandas.api.types.infer_dtype(series, skipna=True) == "boolean"
    )


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
        is_number(value) or value in ABSENT or (commas and COMMA_NUMBER.fullmatch(value))
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
            raise DataError(
                f"{shape.name}, line {found.line}: it is longer than {LONGEST_RECORD:,} bytes, the"
                " maximum for a row; is a quote unclosed?"
            )
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
