"""Detect the separator and the first record from the first lines of a delimited text."""

import csv
import io
import itertools
import re
from collections.abc import Iterator

from rfx.data import encodings
from rfx.data.tabular.header import ROWS, guess
from rfx.errors import DataError

LONGEST_RECORD = 64 << 20
HEAD = 1 << 16  # bytes for detecting the dialect, if they contain two records
LINES = 20  # lines for detecting the separator
SEPARATORS = ",;\t|"
SPACED = " "  # the separator of cells with any number of spaces and tabs between them
# Cells that mean a missing value.
ABSENT = ("", "?", "NA", "N/A", "n/a", "NaN", "nan", "-nan", "NULL", "null", "#N/A", "<NA>")
COMMA_NUMBER = re.compile(r"[+-]?+[0-9]*+,[0-9]++(?:[eE][+-]?+[0-9]++)?")
LINE = re.compile(rb"[^\r\n]*(\r\n|\r|\n)?")
_ENTRY = re.compile(r"[0-9]+:[-+.0-9]")
_QUOTED = re.compile(r'"[^"]*"')
_SEPARATOR_LINE = re.compile(rb'"?sep=([^\w\s"]|\t)"?', re.IGNORECASE)
_SPACED_CELL = re.compile(r'"(?:[^"]|"")*"[^ \t]*|[^ \t]+')


def looks_like(head: bytes) -> bool:
    """Whether these first bytes are delimited text rather than LIBSVM text."""
    if b"\0" in head:
        return False
    text = encodings.head(head).decode("utf-8", "replace")
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    if not lines:
        return False
    if any(mark in lines[0] for mark in SEPARATORS):
        return not any(_ENTRY.match(word) for word in re.split(r"[ \t]", lines[0])[1:2])
    return _is_spaced(lines if len(lines) == 1 or text.endswith(("\n", "\r")) else lines[:-1])


def _is_spaced(lines) -> bool:
    """Whether lines are cells separated by spaces: equally many in each, and none a LIBSVM
    entry.
    """
    words = [_SPACED_CELL.findall(line.strip()) for line in lines[:LINES]]
    if len(words) > 2 and len(words[1]) == len(words[0]) + 1:
        del words[0]  # a header without a name for the row names, reported by its line
    return (
        len(words[0]) > 1
        and all(len(own) == len(words[0]) for own in words)
        and not any(_ENTRY.match(own[1]) for own in words)
    )


def is_record(line: bytes, separator: str, width: int) -> bool:
    """Whether a line that begins with # is a header or a row rather than a comment; width: the
    number of cells of the record below.
    """
    if line[1:2] in (b" ", b"\t", b"#", b"!"):
        return False
    return len(split(line.strip(b"\r\n"), separator)) == width > 1


def above_first(raw, ended):
    """(start, line) of the first record, the separator of a line sep= or None, and the (start,
    line) of comments; None: not found yet.
    """
    at, line, separator = 0, 1, None
    comments: list[tuple[int, int]] = []
    while at < len(raw):
        found = LINE.match(raw, at)
        assert found is not None
        text = found[0].strip(b" \r\n")
        whole = found[1] is not None or ended
        mark = _SEPARATOR_LINE.fullmatch(text) if separator is None and not comments else None
        if text.startswith(b"#") or mark is not None:
            if not whole:
                return None
            if mark is not None:
                separator = mark[1].decode()
            else:
                comments.append((at, line))
        elif text:
            return at, line, separator, comments
        at, line = found.end(), line + 1
    if comments and ended:
        return comments[0][0], comments[0][1], separator, []
    return None


def separator_of(text: bytes, ended: bool, name: str) -> str:
    """The separator of a text that begins with its first record."""
    lines = _first_lines(text, ended)
    counts = {mark: [line.count(mark) for line in lines] for mark in SEPARATORS}
    there = [mark for mark, own in counts.items() if own[0]]
    alike = [mark for mark in there if all(count == counts[mark][0] for count in counts[mark])]
    if not alike and set(there) <= {"\t"}:
        words = lines[0].split()
        if _ENTRY.match("".join(words[1:2])):
            raise DataError(f"{name} is LIBSVM text, not CSV; rename it to end in .libsvm")
        if _is_spaced(lines):
            return SPACED
    if ";" in alike and "," in there and _are_decimal_commas(lines):
        return ";"
    return max(alike or there or ",", key=lambda mark: counts[mark][0])


def _first_lines(text: bytes, ended: bool) -> list[str]:
    """The first lines that are not blank, complete ones if possible, with the content of quotes
    removed.
    """
    # the first line may be longer than the inspected part
    first = LINE.match(text)
    assert first is not None
    end = max(len(first[0]), HEAD)
    lines = [
        line
        for line in io.StringIO(text[:end].decode("utf-8", "replace"), newline=None)
        if line.strip(" \r\n")
    ]
    if len(lines) > 1 and not (ended and end >= len(text)):
        lines = lines[:-1]
    return [_QUOTED.sub('""', line.rstrip("\r\n")) for line in lines[:LINES]]


def _are_decimal_commas(lines) -> bool:
    """Whether all commas are decimal commas, with semicolons as separators."""
    cells = [cell.strip() for line in lines for cell in line.split(";")]
    return all(COMMA_NUMBER.fullmatch(cell) for cell in cells if "," in cell)


def split(record: bytes, separator: str) -> list[str]:
    """The cells of a record, without surrounding spaces."""
    text = record.decode("utf-8", "backslashreplace")
    if separator == SPACED:
        cells = _SPACED_CELL.findall(text)
        return [
            (
                next(csv.reader(io.StringIO(cell, newline=""), delimiter="\t"))[0]
                if cell[0] == '"'
                else cell
            )
            for cell in cells
        ]
    if '"' not in text:
        return [cell.strip() for cell in text.split(separator)]
    if len(text) > csv.field_size_limit():
        csv.field_size_limit(LONGEST_RECORD)
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=separator, skipinitialspace=True)
    return [cell.strip() for row in rows for cell in row]


def titles(
    raw: bytes, ended: bool, header: bool | None = None, separator: str | None = None
) -> list[str] | None:
    """The column names of a text, or their numbers from 1 if it has no header.

    Parameters
    ----------
    raw : bytes
        Its beginning, UTF-8 without a mark.
    ended : bool
        Whether that is the whole text.
    header, separator : optional
        If they are known.

    Returns
    -------
    list of str, or None
        None if the first record does not end within these bytes.
    """
    above = above_first(raw, ended)
    if above is None:
        return None
    start, _, told, comments = above
    separator = separator or told or separator_of(raw[start:], ended, "the text")
    rows = list(itertools.islice(_rows(raw[start:], separator), ROWS + 2))
    if not ended:
        del rows[-1]
    if not rows:
        return None
    if comments and is_record(raw[comments[-1][0] : start], separator, len(rows[0])):
        rows.insert(0, split(raw[comments[-1][0] : start].strip(b"\r\n"), separator))
    cells, below = rows[0], [row for row in rows[1:] if len(row) == len(rows[0])]
    if header is None:
        found = guess(cells, below, ABSENT)
        header = found.header or found.doubt
    return [
        (cell or f"column {number}") if header else str(number)
        for number, cell in enumerate(cells, 1)
    ]


def _rows(text: bytes, separator: str) -> Iterator[list[str]]:
    """The cells of the records that are not blank."""
    if separator == SPACED:
        yield from (split(line, separator) for line in text.splitlines() if line.strip())
        return
    told = io.StringIO(text.decode("utf-8", "replace"), newline="")
    for row in csv.reader(told, delimiter=separator, skipinitialspace=True):
        if row:
            yield [cell.strip() for cell in row]
