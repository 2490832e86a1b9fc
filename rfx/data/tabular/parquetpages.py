"""Read the sizes of the pages of a Parquet file before pyarrow unpacks them.

The metadata of a file is not trusted, and a page of a hundred bytes may unpack to gigabytes. The
header of each page, written in Thrift's compact protocol, contains the size that pyarrow will
allocate.
"""

import io
from dataclasses import dataclass
from typing import Any

from rfx.errors import DataError

_LONGEST_HEADER = 16 << 20  # bytes; pyarrow's own limit
_WINDOW = 1 << 14  # bytes read to find a header
_DEEPEST = 32  # maximum nesting of structs and lists
_DATA, _DATA_V2, _DICTIONARY = 0, 3, 2
# the encodings that store words as differences: DELTA_LENGTH_BYTE_ARRAY, DELTA_BYTE_ARRAY
_DELTA = (6, 7)
_SMALLEST_FOOTER = 1 << 20  # bytes of a directory that are always read
_FOOTER_GROWTH = 64  # bytes of memory per byte of the directory, at most


@dataclass(frozen=True)
class Chunk:
    """The pages of a column in a row group: its number of values, the offset of the pages, and
    their bytes.
    """

    path: tuple[str, ...]
    n_values: int
    start: int
    size: int


@dataclass(frozen=True)
class Pages:
    """The pages of a column in a row group: unpacked bytes, and whether words are stored as
    differences.
    """

    unpacked: int
    delta: bool


def chunks(handle, most: int, name: str) -> list[list[Chunk]]:
    """The column chunks of each row group of a file, a seekable binary handle; pyarrow's own parser
    may abort on a damaged file.

    Raises ValueError if the directory is invalid, and DataError if it needs more than `most` bytes
    of memory.
    """
    end = handle.seek(0, io.SEEK_END)
    handle.seek(max(0, end - 8))
    tail = handle.read(8)
    size = int.from_bytes(tail[:4], "little")
    if tail[4:] != b"PAR1" or not 0 < size <= end - 12:
        raise ValueError("it has no directory at its end")
    if size > max(_SMALLEST_FOOTER, most // _FOOTER_GROWTH):
        raise DataError(f"{name} has a directory of {size:,} bytes, which does not fit into memory")
    handle.seek(end - 8 - size)
    try:
        found, _ = _struct(handle.read(size), 0, 0)
        return [[_chunk(column[3]) for column in group[1]] for group in found.get(4, [])]
    except (KeyError, IndexError, TypeError, AttributeError, UnicodeDecodeError):
        raise ValueError("its directory is damaged") from None


def _chunk(column) -> Chunk:
    start, dictionary = column[9], column.get(11, 0)
    found = Chunk(tuple(part.decode() for part in column[3]), column[5], start, column[7])
    if 0 < dictionary < start:
        found = Chunk(found.path, found.n_values, dictionary, found.size)
    if not all(
        type(number) is int and number >= 0 for number in (found.n_values, found.start, found.size)
    ):
        raise ValueError("its directory is damaged")
    return found


def pages(handle, column: Chunk) -> Pages:
    """The pages of a column chunk; ValueError if they are invalid. Nothing is unpacked.

    handle: the file, seekable.
    """
    at, end = column.start, column.start + column.size
    unpacked, seen, delta, window, base = 0, 0, False, b"", 0
    while seen < column.n_values and at < end:
        size = _WINDOW
        while True:
            if not base <= at < base + len(window) - min(256, size // 2):
                handle.seek(at)
                window, base = handle.read(min(size, _LONGEST_HEADER)), at
            try:
                header, length = _struct(window, at - base, 0)
                break
            except IndexError:  # the header continues after the window
                if len(window) < size or size >= _LONGEST_HEADER:
                    raise ValueError("a page is truncated") from None
                size, window = 4 * size, b""
        kind, plain, packed = (header.get(field) for field in (1, 2, 3))
        if not all(type(value) is int and value >= 0 for value in (kind, plain, packed)):
            raise ValueError("the header of a page is damaged")
        if kind in (_DATA, _DATA_V2):
            values, encoding = _values(header, kind)
            seen += values
            delta = delta or encoding in _DELTA
        if kind in (_DATA, _DATA_V2, _DICTIONARY):
            unpacked += plain
        at = base + length + packed
    return Pages(unpacked, delta)


def _values(header, kind) -> tuple[int, Any]:
    """The number of values of a data page and their encoding, from its header."""
    body = header.get(5 if kind == _DATA else 8)
    if isinstance(body, dict):
        values, encoding = body.get(1), body.get(2 if kind == _DATA else 4)
        if type(values) is int and values >= 0:
            return values, encoding
    raise ValueError("the header of a page is damaged")


def _varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
        if shift > 63:
            raise ValueError("the header of a page is damaged")


def _struct(data, at, depth):
    """({field number: value}, its end) of a Thrift struct in the compact protocol; IndexError at
    the end of the data.
    """
    fields: dict[int, Any] = {}
    number = 0
    while True:
        byte = data[at]
        at += 1
        if byte == 0:
            return fields, at
        if byte >> 4:
            number += byte >> 4
        else:
            number, at = _signed(data, at)
        fields[number], at = _value(data, at, byte & 15, depth + 1)


def _signed(data, at):
    value, at = _varint(data, at)
    return (value >> 1) ^ -(value & 1), at


def _value(data, at, kind, depth):
    """(value, its end)"""
    if depth > _DEEPEST:
        raise ValueError("it is damaged")
    if kind in (1, 2):
        return kind == 1, at
    if kind in (4, 5, 6):
        return _signed(data, at)
    if kind == 12:
        return _struct(data, at, depth)
    if kind == 8:
        size, at = _varint(data, at)
        return data[at : at + size], _within(data, at + size)
    if kind in (3, 7):
        return None, _within(data, at + (1 if kind == 3 else 8))
    if kind in (9, 10):
        head = data[at]
        size, at = (head >> 4, at + 1) if head >> 4 < 15 else _varint(data, at + 1)
        if size > len(data):  # each has at least a byte
            raise IndexError(at)
        values = []
        for _ in range(size):
            value, at = (
                (data[at] == 1, at + 1)
                if head & 15 in (1, 2)
                else _value(data, at, head & 15, depth + 1)
            )
            values.append(value)
        return values, at
    raise ValueError("it is damaged")


def _within(data, at):
    if at > len(data):
        raise IndexError(at)
    return at
