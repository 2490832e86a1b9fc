"""Reading files that may be compressed: recognised by their first bytes, never by their name, and never without a limit.

A few hundred kilobytes can unpack to gigabytes. What is read through here is read as a stream, and whoever needs all of it
says how much that may be.
"""

import bz2
import gzip
import io
import lzma
import os
import struct
import zipfile
import zlib
from pathlib import Path

from rfx import env
from rfx.errors import DataError, UsageError

SUFFIXES = (".xz", ".bz2", ".gz", ".zip")
# what unpacking raises for a damaged file; RuntimeError is for an encrypted one, OverflowError for a place beyond all files
DAMAGE = (EOFError, lzma.LZMAError, zlib.error, zipfile.BadZipFile, struct.error, OSError, ValueError, RuntimeError, OverflowError)
_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_PIECE = 1 << 20


def max_bytes() -> int | None:
    """The number of plain bytes that RFX_MAX_BYTES lets a file have: a whole number, perhaps with K, M, G or T; None if unset."""
    text = os.environ.get("RFX_MAX_BYTES", "").strip().upper()
    if not text:
        return None
    number, unit = (text[:-1], _UNITS[text[-1]]) if text[-1] in _UNITS else (text, 1)
    if not (number.isascii() and number.isdigit() and len(number) < 19 and int(number)):
        raise UsageError(f"RFX_MAX_BYTES is {text!r}; it must be a number of bytes such as 500000000 or 2G")
    return int(number) * unit


def most_held() -> int:
    """Bytes that may be read whole: RFX_MAX_BYTES, else half of the memory that is free."""
    return max_bytes() or int(env.available_memory_mb() * (1 << 19))


class _Zip:
    """A zip archive of one file, with the function that bz2, gzip and lzma have."""

    @staticmethod
    def open(file):
        if hasattr(file, "read") and not file.seekable():  # its directory is at the end
            most, content = most_held(), io.BytesIO()
            while piece := file.read(_PIECE):  # piece by piece: asked for at once, the memory for all of them would be taken
                content.write(piece)
                if content.tell() > most:
                    raise ValueError("a zip archive that is too long to be read from a pipe")
            file = content
        archive = zipfile.ZipFile(file)
        members = [member for member in archive.infolist() if not member.filename.endswith("/")]
        if len(members) != 1:
            raise ValueError(f"a zip archive of {len(members)} files instead of one")
        return archive.open(members[0])


_MAGIC = {b"\xfd7zXZ\x00": lzma, b"BZh": bz2, b"\x1f\x8b": gzip, b"PK\x03\x04": _Zip}
_LONGEST_MAGIC = 8


def codec(head: bytes):
    """What opens a file that starts with these bytes, or None when it is plain."""
    return next((module for magic, module in _MAGIC.items() if head.startswith(magic)), None)


class _Limited(io.RawIOBase):
    """What a handle gives, up to a number of bytes; DataError with the message behind it."""

    def __init__(self, source, limit, message):
        self._source, self._left, self._message = source, limit, message

    def readable(self):
        return True

    def readinto(self, buffer):
        data = self._source.read(min(len(buffer), self._left + 1))
        if len(data) > self._left:
            raise DataError(self._message)
        self._left -= len(data)
        buffer[: len(data)] = data
        return len(data)

    def close(self):
        self._source.close()
        super().close()


class _Joined(io.RawIOBase):
    """Bytes that were read from a handle already, then the rest of it: a stream can't go back to its beginning."""

    def __init__(self, head, rest):
        self._head, self._rest = head, rest

    def readable(self):
        return True

    def readinto(self, buffer):
        size = len(buffer)
        data, self._head = (self._head[:size], self._head[size:]) if self._head else (self._rest.read(size), b"")
        buffer[: len(data)] = data
        return len(data)


def joined(head: bytes, rest) -> io.BufferedReader:
    """A handle on bytes that were read from the handle `rest`, and on what follows them."""
    return io.BufferedReader(_Joined(head, rest), _PIECE)


def open_plain(file, limit: int | None = None, message: str = "the file unpacks to more bytes than are allowed"):
    """A binary handle on the plain content of a file, a path or a handle; reading it may raise one of DAMAGE.

    limit: plain bytes after which a DataError with `message` is raised; None: RFX_MAX_BYTES, where it is set.
    """
    if hasattr(file, "read"):
        head = b""
        while len(head) < _LONGEST_MAGIC and (more := file.read(_LONGEST_MAGIC - len(head))):
            head += more
        file = joined(head, file)
    else:
        with open(file, "rb") as handle:
            head = handle.read(_LONGEST_MAGIC)
    module = codec(head)
    plain = module.open(file) if module else file if hasattr(file, "read") else open(file, "rb")
    limit = max_bytes() if limit is None else limit
    return plain if limit is None else io.BufferedReader(_Limited(plain, limit, message), _PIECE)


def read_plain(file, name: str) -> bytearray:
    """All plain bytes of a file that is read whole, a path or a handle.

    They may be as many as RFX_MAX_BYTES says, else as fill half of the memory that is free. Raises DataError with `name` when
    they are more, or damaged.
    """
    limit = most_held()
    message = (
        f"{name} holds more than {limit:,} bytes when it is unpacked, which is the most that are read; RFX_MAX_BYTES sets another limit"
    )
    content = bytearray()
    try:
        with open_plain(file, limit, message) as handle:
            while piece := handle.read(_PIECE):
                content += piece
    except DAMAGE as error:
        raise DataError(f"{name} is damaged or cut off ({error}); get it again") from None
    return content


def plain_name(path) -> str:
    """The last part of `path` without a compression suffix."""
    name = Path(path).name
    return name.removesuffix(next((suffix for suffix in SUFFIXES if name.endswith(suffix)), ""))
