"""CSV and TSV texts to tables, a few megabytes at a time: what separates the cells, whether there is a header, which cells are words.

Where records begin and how many cells they have is told by a loop of our own, so that a row that is too short or too long is
refused by its line; the cells themselves are read by pandas.
"""

import csv
import io
import re
import warnings
from dataclasses import dataclass

import numpy as np

from rfx.compiled import njit
from rfx.data.table import Table, Words
from rfx.data.written import is_number
from rfx.errors import DataError

CHUNK = 8 << 20  # bytes that are parsed together
LONGEST_RECORD = 64 << 20
_HEAD = 1 << 16
_BOM = b"\xef\xbb\xbf"
_SEPARATORS = ",;\t|"
# Cells that mean that there is no value.
ABSENT = ("", "?", "NA", "N/A", "n/a", "NaN", "nan", "-nan", "NULL", "null", "#N/A", "<NA>")
_COMMA_NUMBER = re.compile(r"[+-]?+[0-9]*+,[0-9]++(?:[eE][+-]?+[0-9]++)?")
_THOUSANDS = re.compile(r"[+-]?[1-9][0-9]{0,2},[0-9]{3}")
# The decimal mark that goes with a separator: a list of decimal commas is separated by semicolons.
_DECIMAL = {",": ".", ";": ","}
_ENTRY = re.compile(r"[0-9]+:[-+.0-9]")


class KindChanged(Exception):
    """Columns, by their positions, that an earlier part of the text had as numbers have words: it is to be read anew."""

    def __init__(self, columns):
        super().__init__(columns)
        self.columns = frozenset(columns)


@dataclass(frozen=True)
class Dialect:
    """What separates the cells, whether the first record is a header, the columns' names, and how the file is called."""

    separator: str
    header: bool
    names: tuple[str, ...]
    name: str


def looks_like(head: bytes) -> bool:
    """Whether these first bytes of a text are of separated cells rather than of LIBSVM's rows."""
    if b"\0" in head:
        return False
    text = head.removeprefix(_BOM).decode("utf-8", "replace")
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    if not lines:
        return False
    first = lines[0]
    return any(mark in first for mark in _SEPARATORS) and not any(_ENTRY.match(word) for word in re.split(r"[ \t]", first)[1:2])


def dialect(head: bytes, name: str, header: bool | None = None, separator: str | None = None) -> Dialect:
    """What the first bytes of a text tell of it; header and separator where they are known beforehand.

    Without being told, the first record is a header when none of its cells is a number. Raises DataError for an empty text.
    """
    text = head.removeprefix(_BOM).decode("utf-8", "backslashreplace")
    if "\0" in text:
        raise DataError(f"{name} is a binary file, or text in UTF-16; save it as CSV in UTF-8")
    lines = [line for line in io.StringIO(text, newline=None) if line.strip(" \r\n")]
    if not lines:
        raise DataError(f"{name} is empty")
    if separator is None:
        bare = re.sub(r'"[^"]*"', "", lines[0])
        separator = max(_SEPARATORS, key=bare.count)
    try:
        cells = [cell.strip() for cell in next(csv.reader(lines, delimiter=separator, skipinitialspace=True))]
    except (csv.Error, StopIteration) as error:
        raise DataError(f"{name}, line 1: it is no row of cells ({error})") from None
    if header is None:
        header = not any(is_number(cell) or _COMMA_NUMBER.fullmatch(cell) for cell in cells) and any(cell not in ABSENT for cell in cells)
    if not header:
        return Dialect(separator, False, tuple(str(number) for number in range(1, len(cells) + 1)), name)
    seen = set()
    for number, cell in enumerate(cells, 1):
        if cell in seen and cell:
            raise DataError(f"{name}: two columns are called {cell!r:.80}; rename one, or say that there is no header, with --no-header")
        seen.add(cell)
        cells[number - 1] = cell or f"column {number}"  # a frame's index has no name
    return Dialect(separator, True, tuple(cells), name)


@njit(cache=True, nogil=True)
def _records(text, separator, starts, cells, lines, line):
    """Where the records of `text` begin, how many cells each has, on which line it begins.

    Returns (records, the end of the last one that a line end closes, the line there, whether the rest is inside of quotes).
    """
    count, at, size = 0, 0, len(text)
    done, done_line = 0, line
    while at < size:
        start, start_line, fields, state, blank = at, line, 1, 0, True
        closed = False
        # 0: at the beginning of a cell, 1: in a cell, 2: in quotes, 3: behind a quote in quotes
        while at < size:
            c = text[at]
            at += 1
            if state == 2:
                if c == 34:
                    state = 3
                elif c == 10:
                    line += 1
                continue
            if c == 10 or c == 13:
                line += 1
                if c == 13 and at < size and text[at] == 10:
                    at += 1
                closed = True
                break
            if c == separator:
                fields, state, blank = fields + 1, 0, False
            elif c == 34 and (state == 0 or state == 3):
                state, blank = 2, False
            elif c != 32:
                state, blank = 1, False
            elif state == 3:
                state = 1
        if not blank:
            starts[count], cells[count], lines[count] = start, fields, start_line
            count += 1
        if closed:
            done, done_line = at, line
    return count, done, done_line, state == 2 and not closed


def records(raw, separator: str, line: int = 1):
    """(starts, cells, lines, end, line there, open quote) of the records in raw; those from `end` on are not complete yet."""
    text = np.frombuffer(raw, np.uint8)
    most = int(np.count_nonzero(text == 10) + np.count_nonzero(text == 13)) + 1
    starts, cells, lines = (np.empty(most, np.int64) for _ in range(3))
    count, end, at, inside = _records(text, ord(separator), starts, cells, lines, line)
    return starts[:count], cells[:count], lines[:count], int(end), int(at), bool(inside)


def whole_records(raw, separator: str) -> int:
    """How many bytes of raw, which begins at a record, are whole records."""
    return records(raw, separator)[3]


def parse(raw: bytes, shape: Dialect, line: int = 1, forced=frozenset(), first: bool | None = None) -> Table | None:
    """The table of whole records, the first of them on that line; None where there are none.

    forced: positions of columns that are words whatever their cells look like. first: whether the text begins here, so that
    its header does, too. Raises DataError, naming the line, for rows of another number of cells, and quotes that stay open.
    """
    first = line == 1 if first is None else first
    if first and raw.startswith(_BOM):
        raw = raw[3:]
    if b"\0" in raw:
        raise DataError(f"{shape.name} is a binary file, or text in UTF-16; save it as CSV in UTF-8")
    starts, cells, lines, _, _, inside = records(raw, shape.separator, line)
    if inside:
        raise DataError(f"{shape.name}, line {lines[-1]}: a quote is opened there and never closed")
    if first and shape.header:
        raw = raw[starts[1] :] if len(starts) > 1 else b""
        cells, lines = cells[1:], lines[1:]
    if not len(cells):
        return None
    if (cells != len(shape.names)).any():
        row = int(np.argmax(cells != len(shape.names)))
        found = f"{cells[row]} cell{'s' * int(cells[row] != 1)}"
        raise DataError(f"{shape.name}, line {lines[row]}: it has {found}, but the rows before have {len(shape.names)}")
    columns = _cells(raw, shape, forced)
    if len(columns[0]) != len(cells):
        raise DataError(f"{shape.name}, lines {lines[0]} to {lines[-1]}: their quotes can't be told apart; write a quote in a cell as two")
    decimal = _DECIMAL.get(shape.separator)
    return Table(shape.name, list(shape.names), shape.header, columns, lines, decimal=decimal)


def _cells(raw, shape, forced) -> list:
    import pandas

    if raw.startswith(_BOM):
        raw = b"\n" + raw  # in the middle of a text it is part of a cell, but pandas takes it away at a beginning

    def read(words):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return pandas.read_csv(
                io.BytesIO(raw), sep=shape.separator, header=None, names=range(len(shape.names)), dtype=dict.fromkeys(words, str),
                keep_default_na=False, na_values=list(ABSENT), skipinitialspace=True, float_precision="round_trip", low_memory=False,
                encoding="utf-8", encoding_errors="backslashreplace", index_col=False,
            )  # fmt: skip

    try:
        frame = read(forced)
        # of truth values the words are wanted as they are written
        truths = [position for position in frame.columns if _is_truth(frame[position])]
        frame = read({*forced, *truths}) if truths else frame
    except (ValueError, OverflowError) as error:  # pandas' own are ValueErrors
        raise DataError(f"{shape.name} can't be read: {str(error).splitlines()[0]:.200}") from None
    return [_column(frame[position], position in forced, shape.separator == ";") for position in frame.columns]


def _is_truth(series) -> bool:
    import pandas

    return series.dtype.kind == "b" or (series.dtype == object and pandas.api.types.infer_dtype(series, skipna=True) == "boolean")


def _column(series, forced: bool, commas: bool):
    """Numbers or Words of a column as pandas has read it; commas: numbers may be written with a decimal comma."""
    import pandas

    if series.dtype.kind in "iuf":
        return series.to_numpy(np.float64)
    codes, values = pandas.factorize(series)
    values = [str(value).strip() for value in values]
    if not forced and _are_numbers(values, commas):
        numbers = [np.nan if value in ABSENT else float(value.replace(",", ".")) for value in values]
        return np.array([*numbers, np.nan])[codes]
    numbers = {}
    place = [-1 if value in ABSENT else numbers.setdefault(value, len(numbers)) for value in values]
    return Words(np.array([*place, -1], np.int32)[codes], list(numbers))


def _are_numbers(values, commas) -> bool:
    """Whether all are plain numbers, or have decimal commas that can't be marks between thousands."""
    if not all(is_number(value) or value in ABSENT or (commas and _COMMA_NUMBER.fullmatch(value)) for value in values):
        return False
    marked = [value for value in values if "," in value]
    return not marked or not all(_THOUSANDS.fullmatch(value) for value in marked)


def tables(handle, shape: Dialect, forced=frozenset(), chunk: int = CHUNK):
    """The tables of all records that a binary handle gives, in order; raises what `parse` does, and KindChanged."""
    rest, line, first, more, kinds = b"", 1, True, True, None
    while more:
        data = handle.read(chunk)
        more = bool(data)
        rest += data
        starts, _, _, end, after, _ = records(rest, shape.separator, line)
        if more and end == len(rest) and rest.endswith(b"\r"):
            continue  # its line feed may follow
        if more and len(rest) - end > LONGEST_RECORD:
            raise DataError(f"{shape.name}, line {after}: it is longer than {LONGEST_RECORD:,} bytes, which no row is; is a quote open?")
        end = end if more else len(rest)
        raw, rest = rest[:end], rest[end:]
        begun = not (len(starts) and starts[0] < end)
        table = parse(raw, shape, line, forced, first)
        line, first = after, first and begun
        if table is None:
            continue
        words = {position for position, column in enumerate(table.columns) if isinstance(column, Words)}
        if kinds is not None and words != kinds:
            raise KindChanged(words ^ kinds)
        kinds = words
        yield table
