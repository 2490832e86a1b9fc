"""What the pages of a Parquet file claim, read before pyarrow unpacks them.

The metadata of a file may say anything, and a page of a hundred bytes may unpack to gigabytes. The
header of each page, written in Thrift's compact protocol, has the size that pyarrow will allocate.
"""

import io
from dataclasses import dataclass

from rfx.errors import DataError

_LONGEST_HEADER = 16 << 20  # bytes; pyarrow's own limit
_WINDOW = 1 << 14  # bytes that are read to find a header in
_DATA, _DATA_V2, _DICTIONARY = 0, 3, 2
_DELTA = (6, 7)  # the encodings that write words as differences: DELTA_LENGTH_BYTE_ARRAY, DELTA_BYTE_ARRAY
_SMALLEST_FOOTER = 1 << 20  # bytes of a directory that is read in any case
_FOOTER_GROWTH = 64  # bytes of memory that a byte of the directory may take


@dataclass(frozen=True)
class Pages:
    """The pages of a column in a row group: bytes when they are unpacked, and whether words are written as differences."""

    unpacked: int
    delta: bool


def check_footer(handle, most: int, name: str) -> None:
    """Refuse, with a DataError, a file whose directory takes more memory than `most` bytes."""
    size = handle.seek(0, io.SEEK_END)
    handle.seek(max(0, size - 8))
    footer = int.from_bytes(handle.read(8)[:4], "little") if size >= 12 else 0
    handle.seek(0)
    if min(footer, size) > max(_SMALLEST_FOOTER, most // _FOOTER_GROWTH):
        raise DataError(f"{name} has a directory of {footer:,} bytes, more than memory holds when it is read")


def pages(handle, column) -> Pages:
    """The pages of a column chunk, by pyarrow's ColumnChunkMetaData; ValueError where they make no sense.

    handle: the file, seekable. Nothing is unpacked.
    """
    start = column.data_page_offset
    if column.has_dictionary_page and 0 < column.dictionary_page_offset < start:
        start = column.dictionary_page_offset
    at, end = start, start + column.total_compressed_size
    unpacked, seen, delta, window, base = 0, 0, False, b"", 0
    while seen < column.num_values and at < end:
        size = _WINDOW
        while True:
            if not base <= at < base + len(window) - min(256, size // 2):
                handle.seek(at)
                window, base = handle.read(min(size, _LONGEST_HEADER)), at
            try:
                header, length = _struct(window, at - base, 0)
                break
            except IndexError:  # the header goes on behind the window
                if len(window) < size or size >= _LONGEST_HEADER:
                    raise ValueError("a page is cut off") from None
                size, window = 4 * size, b""
        kind, plain, packed = (header.get(field) for field in (1, 2, 3))
        if not all(type(value) is int and value >= 0 for value in (kind, plain, packed)):
            raise ValueError("the header of a page is damaged")
        body = header.get({_DATA: 5, _DATA_V2: 8}.get(kind), {})
        if kind in (_DATA, _DATA_V2):
            values, encoding = body.get(1), body.get(2 if kind == _DATA else 4)
            if type(values) is not int or values < 0:
                raise ValueError("the header of a page is damaged")
            seen += values
            delta = delta or encoding in _DELTA
        if kind in (_DATA, _DATA_V2, _DICTIONARY):
            unpacked += plain
        at = base + length + packed
    return Pages(unpacked, delta)


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
    """({number of a field: value}, where it ends) of a Thrift struct in the compact protocol; IndexError at the end of the data."""
    fields, number = {}, 0
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
    """(value, where it ends); what no page header has is passed over, with None as its value."""
    if depth > 8:
        raise ValueError("the header of a page is damaged")
    if kind in (1, 2):
        return kind == 1, at
    if kind in (4, 5, 6):
        return _signed(data, at)
    if kind == 12:
        return _struct(data, at, depth)
    if kind == 8:
        size, at = _varint(data, at)
        return None, _within(data, at + size)
    if kind in (3, 7):
        return None, _within(data, at + (1 if kind == 3 else 8))
    if kind in (9, 10):
        head = data[at]
        size, at = (head >> 4, at + 1) if head >> 4 < 15 else _varint(data, at + 1)
        for _ in range(_few(size, data)):
            _, at = (None, _within(data, at + 1)) if head & 15 in (1, 2) else _value(data, at, head & 15, depth + 1)
        return None, at
    raise ValueError("the header of a page is damaged")


def _few(size, data):
    if size > _LONGEST_HEADER:
        raise ValueError("the header of a page is damaged")
    return size


def _within(data, at):
    if at > len(data):
        raise IndexError(at)
    return at
