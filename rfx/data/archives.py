"""Read files that may be compressed, with a limit on their unpacked size.

The first bytes determine the compression, not the name. A few hundred kilobytes can unpack to
gigabytes, so files are read as streams, and a caller that needs the whole content sets a limit. A
file is read to its last byte or rejected: gzip, bzip2 and xz files are accepted if `gzip -t`,
`bzip2 -t` and `xz -t` accept them.
"""

import bz2
import io
import lzma
import os
import struct
import zipfile
import zlib
from pathlib import Path

from rfx import env, files
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
_XZ_MEMORY = 1 << 28  # bytes always allowed for unpacking xz; xz -9 needs 65 MiB


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


def check_zip(archive: zipfile.ZipFile) -> None:
    """Raise BadZipFile for an archive with bytes before or after it: it is probably one of several,
    or truncated.

    Python's zipfile uses the directory at the end, so for two archives in one file it silently
    reads only the last.
    """
    handle, before = archive.fp, [member.header_offset for member in archive.infolist()]
    if before and min(before) != 0:
        raise zipfile.BadZipFile("there are bytes before the archive")
    assert handle is not None
    handle.seek(-22 - len(archive.comment), io.SEEK_END)
    if handle.read(4) != b"PK\x05\x06":
        raise zipfile.BadZipFile("there are bytes after the archive")


def _zip(file):
    """A binary handle on the one file in a zip archive, given as a seekable handle; closes no other
    handle.
    """
    archive = zipfile.ZipFile(file)
    members = [member for member in archive.infolist() if not member.filename.endswith("/")]
    if len(members) != 1:
        raise ValueError(f"a zip archive of {len(members)} files instead of one")
    check_zip(archive)
    return archive.open(members[0])


def _gathered(file) -> io.BytesIO:
    """The bytes of a pipe, up to the memory limit: the directory of a zip archive is at its end."""
    most, content = most_held(), io.BytesIO()
    # in pieces, because a single read would allocate memory for all of them
    while piece := file.read(_PIECE):
        content.write(piece)
        if content.tell() > most:
            raise ValueError("a zip archive that is too large to be read from a pipe")
    return content


class _Gzip:
    """One gzip stream with the interface of bz2.BZ2Decompressor. zlib checks its header, checksum
    and length.
    """

    def __init__(self):
        self._inflate, self._full = zlib.decompressobj(wbits=31), False

    def decompress(self, data, max_length):
        plain = self._inflate.decompress(self._inflate.unconsumed_tail + data, max_length)
        self._full = len(plain) == max_length
        return plain

    @property
    def eof(self):
        return self._inflate.eof

    @property
    def unused_data(self):
        return self._inflate.unused_data

    @property
    def needs_input(self):
        return not self._full and not self._inflate.unconsumed_tail


def _xz():
    return lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=max(most_held(), _XZ_MEMORY))


class _Members(io.RawIOBase):
    """The plain bytes of consecutive compressed streams, up to the end of the file.

    Python's bz2 and lzma treat invalid data after a complete stream as the end of the file, and so
    drop damaged members. Here every byte must belong to a stream or to padding that the format
    allows. Reading raises errors of DAMAGE.

    source: a binary handle at the beginning of the first stream, closed with this one. stream:
    creates the decompressor of one stream. padded: whether a given number of zero bytes is allowed,
    as a function of the number and of whether the file ends after them.
    """

    def __init__(self, source, stream, padded):
        self._source, self._new, self._padded = source, stream, padded
        self._stream, self._packed = stream(), b""
        self._later = False  # whether nothing of the next stream has been read yet

    def readable(self):
        return True

    def read(self, size=-1):
        if size is None or size < 0:
            return self.readall()
        while size and (self._stream is not None or self._next()):
            if self._stream.needs_input and not self._packed:
                self._packed = self._source.read(_PACKED)
                if not self._packed:
                    raise EOFError("the compressed data is truncated")
            plain, self._packed = self._unpacked(min(size, _PIECE)), b""
            if self._stream.eof:
                if not lzma.is_check_supported(getattr(self._stream, "check", lzma.CHECK_NONE)):
                    raise ValueError("it uses a kind of checksum that can't be verified")
                self._packed, self._stream = self._stream.unused_data, None
            if plain:
                return plain
        return b""

    def _unpacked(self, size) -> bytes:
        try:
            plain = self._stream.decompress(self._packed, size)
        except (OSError, lzma.LZMAError, zlib.error) as error:
            if self._later:
                raise ValueError(
                    f"the data after its first compressed part is not compressed: {error}"
                ) from None
            raise
        self._later = self._later and not plain
        return plain

    def _next(self) -> bool:
        """Begin the next stream; return False at the end of the file."""
        zeros = 0
        while True:
            self._packed = self._packed or self._source.read(_PACKED)
            rest = self._packed.lstrip(b"\0")
            zeros += len(self._packed) - len(rest)
            ended = not self._packed
            self._packed = rest
            if rest or ended:
                break
        if zeros and not self._padded(zeros, ended):
            raise ValueError("the data after its compressed data is not compressed")
        if not ended:
            self._stream, self._later = self._new(), True
        return not ended

    def readinto(self, buffer):
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def close(self):
        self._source.close()
        super().close()


# The first bytes of a compressed file, its decompressor, and the zero bytes allowed after a stream
_STREAMS = {
    b"\xfd7zXZ\x00": (_xz, lambda zeros, ended: zeros % 4 == 0),
    b"BZh": (bz2.BZ2Decompressor, lambda zeros, ended: False),
    b"\x1f\x8b": (_Gzip, lambda zeros, ended: ended),
}
_ZIP = b"PK\x03\x04"
_LONGEST_MAGIC = 8


def compressed(head: bytes) -> bool:
    """Whether a file that starts with these bytes is compressed."""
    return head.startswith((*_STREAMS, _ZIP))


class _Limited(io.RawIOBase):
    """Read from a handle up to a number of bytes; raise DataError with the message beyond it."""

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
    """Bytes already read from a handle, followed by the rest of it, because a stream can't be
    rewound.

    closes: the handles closed with this one.
    """

    def __init__(self, head, rest, closes=()):
        self._head, self._rest, self._closes = head, rest, closes

    def readable(self):
        return True

    def readinto(self, buffer):
        size = len(buffer)
        data, self._head = (
            (self._head[:size], self._head[size:]) if self._head else (self._rest.read(size), b"")
        )
        buffer[: len(data)] = data
        return len(data)

    def close(self):
        for handle in self._closes:
            handle.close()
        super().close()


def joined(head: bytes, rest) -> io.BufferedReader:
    """A handle on bytes already read from the handle `rest`, followed by the rest."""
    return io.BufferedReader(_Joined(head, rest), _PIECE)


def open_plain(
    file, limit: int | None = None, message: str = "the unpacked file exceeds the size limit"
):
    """A binary handle on the plain content of a file, a path or a handle; reading may raise one of
    DAMAGE.

    limit: plain bytes after which a DataError with `message` is raised; None: RFX_MAX_BYTES, if
    set. A path may name a pipe or a regular file; otherwise OSError is raised.
    """
    if hasattr(file, "read"):
        plain = _plain(file, owned=False)
    else:
        handle = files.open_regular(file, pipes=True)
        try:
            plain = _plain(handle, owned=True)
        except BaseException:
            handle.close()
            raise
    limit = max_bytes() if limit is None else limit
    return plain if limit is None else io.BufferedReader(_Limited(plain, limit, message), _PIECE)


def _plain(handle, owned):
    """The result of `open_plain` for a handle, which is closed with it if it is owned."""
    closes, seekable = (handle,) if owned else (), hasattr(handle, "seekable") and handle.seekable()
    start, head = handle.tell() if seekable else 0, b""
    while len(head) < _LONGEST_MAGIC and (more := handle.read(_LONGEST_MAGIC - len(head))):
        head += more
    if seekable:
        handle.seek(start)
    if head.startswith(_ZIP):
        whole = handle if seekable else _gathered(joined(head, handle))
        return io.BufferedReader(_Joined(b"", _zip(whole), closes), _PIECE)
    if seekable and owned:
        whole = handle
    else:
        whole = io.BufferedReader(_Joined(b"" if seekable else head, handle, closes), _PIECE)
    found = next((streams for magic, streams in _STREAMS.items() if head.startswith(magic)), None)
    return whole if found is None else io.BufferedReader(_Members(whole, *found), _PIECE)


def read_plain(file, name: str) -> bytearray:
    """All plain bytes of a file read into memory, from a path or a handle.

    The limit is RFX_MAX_BYTES, else half of the free memory. Raises DataError with `name` if the
    file is larger, or damaged.
    """
    limit = most_held()
    message = (
        f"{name} is larger than {limit:,} bytes when unpacked, the limit for reading; RFX_MAX_BYTES"
        " sets another limit"
    )
    content = bytearray()
    try:
        with open_plain(file, limit, message) as handle:
            while piece := handle.read(_PIECE):
                content += piece
    except DAMAGE as error:
        raise DataError(f"{name} is damaged or truncated ({error}); download it again") from None
    return content


def plain_name(path) -> str:
    """The last part of `path` without a compression suffix."""
    name = Path(path).name
    return name.removesuffix(next((suffix for suffix in SUFFIXES if name.endswith(suffix)), ""))
