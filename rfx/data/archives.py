"""Read files that may be compressed, with a limit on their unpacked size.

The first bytes determine the compression, not the name. A few hundred kilobytes can unpack to
gigabytes, so files are read as streams, and a caller that needs the whole content sets a limit. A
file is read to its last byte, or refused as damaged.
"""

import bz2
import contextlib
import gzip
import io
import lzma
import os
import struct
import sys
import zipfile
import zlib
from pathlib import Path

from rfx import env
from rfx.errors import DataError, UsageError

SUFFIXES = (".xz", ".bz2", ".gz", ".zip")
# exceptions raised for a damaged file; RuntimeError: encrypted; OverflowError: an offset beyond all
# files
DAMAGE = (
    EOFError,
    lzma.LZMAError,
    zlib.error,
    zipfile.BadZipFile,
    struct.error,
    OSError,
    ValueError,
    RuntimeError,
    OverflowError,
)
_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_PIECE = 1 << 20
_PACKED = 1 << 16  # compressed bytes read at a time
_ZIP, _GZIP = b"PK\x03\x04", b"\x1f\x8b"
_MEMBERS = {b"\xfd7zXZ\x00": lzma.LZMADecompressor, b"BZh": bz2.BZ2Decompressor}


def max_bytes() -> int | None:
    """The number of plain bytes that RFX_MAX_BYTES allows per file: an integer, optionally with K,
    M, G or T; None if unset.
    """
    text = os.environ.get("RFX_MAX_BYTES", "").strip().upper()
    if not text:
        return None
    number, unit = (text[:-1], _UNITS[text[-1]]) if text[-1] in _UNITS else (text, 1)
    if not (number.isascii() and number.isdigit() and len(number) < 19 and int(number)):
        raise UsageError(
            f"RFX_MAX_BYTES is {text!r}; it must be a number of bytes such as 500000000 or 2G"
        )
    return int(number) * unit


def most_held() -> int:
    """Bytes that may be read into memory: RFX_MAX_BYTES, else half of the free memory."""
    return max_bytes() or int(env.available_memory_mb() * (1 << 19))


def check_held(size: int, name: str) -> None:
    """Raise DataError if reading a file needs more than most_held bytes."""
    most = most_held()
    if size > most:
        raise DataError(
            f"{name} needs at least {size:,} bytes of memory, more than the limit of {most:,};"
            " RFX_MAX_BYTES sets another limit"
        )


@contextlib.contextmanager
def naming(name: str):
    """Turn the errors of reading a file into a DataError with its name."""
    try:
        yield
    except DAMAGE as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise DataError(f"{name} can't be read: {error.strerror or error}") from None
        raise DataError(f"{name} is damaged or truncated ({error}); download it again") from None


class Readable(io.RawIOBase):
    """A raw stream that can be read."""

    def readable(self):
        return True


class _Members(Readable):
    """The plain bytes of consecutive bzip2 or xz streams, up to the end of the file.

    Python's bz2 and lzma treat invalid data after a complete stream as the end of the file, and so
    drop damaged members. Here every byte must belong to a stream, except zeros after it.
    """

    def __init__(self, source, new):
        self._source, self._new, self._stream = source, new, new()

    def readinto(self, buffer):
        plain = packed = b""
        while not plain:
            if self._stream.eof:
                packed = self._stream.unused_data.lstrip(b"\0")
                while not packed and (more := self._source.read(_PACKED)):
                    packed = more.lstrip(b"\0")
                if not packed:
                    return 0
                self._stream = self._new()
            elif self._stream.needs_input:
                packed = self._source.read(_PACKED)
                if not packed:
                    raise EOFError("the compressed data is truncated")
            plain, packed = self._stream.decompress(packed, len(buffer)), b""
        buffer[: len(plain)] = plain
        return len(plain)


class _Plain(Readable):
    """The bytes of a handle, up to a number of them: beyond it, DataError with the message.

    closes: the handle closed with this one, if any.
    """

    def __init__(self, source, limit: int, message: str, closes):
        self._source, self._left = source, limit
        self._message, self._closes = message, closes

    def readinto(self, buffer):
        count = self._source.readinto(memoryview(buffer)[: self._left + 1])
        if count > self._left:
            raise DataError(self._message)
        self._left -= count
        return count

    def close(self):
        if self._closes is not None:
            self._closes.close()
        super().close()


class _Joined(Readable):
    """Bytes already read from a handle, followed by the rest of it."""

    def __init__(self, head: bytes, rest):
        self._head, self._rest = head, rest

    def readinto(self, buffer):
        size = len(buffer)
        data, self._head = self._head[:size] or self._rest.read(size), self._head[size:]
        buffer[: len(data)] = data
        return len(data)


def joined(head: bytes, rest) -> io.BufferedReader:
    """A handle on bytes already read from the handle `rest`, followed by the rest."""
    return io.BufferedReader(_Joined(head, rest), _PIECE)


def beginning(handle, size: int) -> bytes:
    """The first bytes of a handle, fewer only if it ends."""
    head = b""
    while len(head) < size and (more := handle.read(size - len(head))):
        head += more
    return head


def compressed(head: bytes) -> bool:
    """Whether a file that starts with these bytes is compressed."""
    return head.startswith((*_MEMBERS, _GZIP, _ZIP))


def _unpacked(handle, head: bytes):
    """A handle on the plain content of a file that begins with these bytes."""
    if head.startswith(_GZIP):
        return gzip.GzipFile(fileobj=handle)
    if head.startswith(_ZIP):
        if not handle.seekable():  # the directory of a zip archive is at its end
            handle = io.BytesIO(handle.read())
        archive = zipfile.ZipFile(handle)
        members = [member for member in archive.infolist() if not member.filename.endswith("/")]
        if len(members) != 1:
            raise ValueError(f"a zip archive of {len(members)} files instead of one")
        return archive.open(members[0])
    new = next((new for magic, new in _MEMBERS.items() if head.startswith(magic)), None)
    return handle if new is None else io.BufferedReader(_Members(handle, new), _PIECE)


def open_plain(file, limit: int | None = None, name: str = "the file") -> io.BufferedReader:
    """A binary handle on the plain content of a file, a path or a handle; reading may raise one of
    DAMAGE.

    limit: plain bytes after which a DataError with `name` is raised; None: RFX_MAX_BYTES, if set.
    """
    limit = limit or max_bytes() or sys.maxsize - 1
    message = (
        f"{name} has more than {limit:,} bytes when unpacked, the limit for reading; RFX_MAX_BYTES"
        " sets another limit"
    )
    owned = None if hasattr(file, "read") else open(file, "rb")
    handle = owned or file
    try:
        head = beginning(handle, 8)
        if handle.seekable():
            handle.seek(-len(head), io.SEEK_CUR)
        else:
            handle = joined(head, handle)
        return io.BufferedReader(_Plain(_unpacked(handle, head), limit, message, owned), _PIECE)
    except BaseException:
        if owned:
            owned.close()
        raise


def read_plain(file, name: str) -> bytes:
    """All plain bytes of a file read into memory, from a path or a handle.

    The limit is RFX_MAX_BYTES, else half of the free memory. Raises DataError with `name` if the
    file is larger, or damaged.
    """
    with naming(name), open_plain(file, most_held(), name) as handle:
        return handle.read()


def plain_name(path) -> str:
    """The last part of `path` without a compression suffix."""
    name = Path(path).name
    return name.removesuffix(next((suffix for suffix in SUFFIXES if name.endswith(suffix)), ""))
