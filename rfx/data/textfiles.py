"""Bytes of files as lines of text: unpacking, decoding, and pieces of whole lines."""

import bz2
import codecs
import contextlib
import gzip
import io
import lzma
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import BinaryIO

from rfx import files
from rfx.errors import DataError, UsageError

# ----------------------------------------------------------------------
# Read files that may be compressed.
#
# The first bytes determine the compression, not the name. A file is read as a stream to its last
# byte, or refused as damaged.

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
_PIECE = 1 << 20
_PACKED = 1 << 16  # compressed bytes read at a time
_ZIP, _GZIP = b"PK\x03\x04", b"\x1f\x8b"
_MEMBERS = {b"\xfd7zXZ\x00": lzma.LZMADecompressor, b"BZh": bz2.BZ2Decompressor}


@contextlib.contextmanager
def naming(name: str):
    """Turn the errors of reading a file into a DataError with its name."""
    try:
        yield
    except DAMAGE as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise DataError(f"{name} can't be read: {error.strerror or error}") from None
        raise DataError(f"{name} is damaged or truncated ({error}); download it again") from None


class _Parts(io.RawIOBase):
    """A raw stream of the bytes that an iterator yields, in parts of any size."""

    def __init__(self, parts: Iterator[bytes]):
        self._parts, self._rest = parts, memoryview(b"")

    def readable(self):
        return True

    def readinto(self, buffer):
        while not self._rest:
            part = next(self._parts, None)
            if part is None:
                return 0
            self._rest = memoryview(part)
        count = min(len(buffer), len(self._rest))
        buffer[:count], self._rest = self._rest[:count], self._rest[count:]
        return count


def _handle(parts: Iterator[bytes]) -> io.BufferedReader:
    """A handle on the bytes that an iterator yields."""
    return io.BufferedReader(_Parts(parts), _PIECE)


def _members(source, new) -> Iterator[bytes]:
    """The plain bytes of consecutive bzip2 or xz streams, up to the end of the file.

    Python's bz2 and lzma treat invalid data after a complete stream as the end of the file, and so
    drop damaged members. Here every byte must belong to a stream, except zeros after it.
    """
    packed = source.read(_PACKED)
    while packed:
        stream = new()
        while not stream.eof:
            yield stream.decompress(packed, _PIECE)
            packed = source.read(_PACKED) if stream.needs_input else b""
            if stream.needs_input and not packed:
                raise EOFError("the compressed data is truncated")
        packed = stream.unused_data.lstrip(b"\0")
        while not packed and (more := source.read(_PACKED)):
            packed = more.lstrip(b"\0")


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
    return handle if new is None else _handle(_members(handle, new))


@contextlib.contextmanager
def open_plain(file) -> Iterator[BinaryIO]:
    """A binary handle on the plain content of a file, a path or a handle; reading may raise one of
    DAMAGE. A path is closed at the end of the block, a handle is not.
    """
    with contextlib.nullcontext(file) if hasattr(file, "read") else open(file, "rb") as handle:
        handle = handle if hasattr(handle, "peek") else io.BufferedReader(handle)
        yield _unpacked(handle, handle.peek(8)[:8])


def read_plain(file, name: str) -> bytes:
    """All plain bytes of a path or a handle; DataError with `name` if the file is damaged."""
    with naming(name), open_plain(file) as handle:
        return handle.read()


def plain_name(path) -> str:
    """The last part of `path` without a compression suffix."""
    name = Path(path).name
    return name.removesuffix(next((suffix for suffix in SUFFIXES if name.endswith(suffix)), ""))


# ----------------------------------------------------------------------
# Texts as UTF-8, from any encoding: byte order marks, explicit encodings, and the line number of
# invalid UTF-8.

# UTF-32's mark begins with UTF-16's.
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_LONGEST_MARK = 4
_DECODED = 1 << 20


def known(encoding: str) -> str:
    """Python's name of a text encoding; UsageError if it is unknown."""
    try:
        name = codecs.lookup(encoding).name
        "".encode(name)  # rejects codecs that are not for text, such as base64
    except (LookupError, ValueError, TypeError):
        raise UsageError(
            f"--encoding is {encoding!r:.40}, which Python does not support; try cp1252, latin-1,"
            " utf-8 or utf-16"
        ) from None
    return name


def marked(head: bytes) -> tuple[str, int] | None:
    """The encoding indicated by a byte order mark at the beginning, and the length of the mark."""
    return next(((name, len(mark)) for mark, name in _MARKS if head.startswith(mark)), None)


def opened(handle, name: str, encoding: str | None = None):
    """A text as UTF-8 without a byte order mark.

    Parameters
    ----------
    handle : binary handle
        On the plain bytes of the text, at the beginning.
    name : str
        The name for messages.
    encoding : str, optional
        The encoding of a text without a mark; by default UTF-8.

    Returns
    -------
    handle : binary handle
        Reading raises DataError for bytes that are invalid in the encoding. UTF-8 is not checked
        here; use `check`.
    """
    handle = handle if hasattr(handle, "peek") else io.BufferedReader(handle)
    codec, length = marked(handle.peek(_LONGEST_MARK)[:_LONGEST_MARK]) or (encoding or "utf-8", 0)
    handle.read(length)
    return handle if known(codec) == "utf-8" else _handle(_recoded(handle, name, codec))


def head(raw: bytes, encoding: str | None = None) -> bytes:
    """The beginning of a text as UTF-8, as far as it is readable."""
    codec, length = marked(raw) or (known(encoding or "utf-8"), 0)
    if codec == "utf-8":
        return raw[length:]
    return codecs.getincrementaldecoder(codec)("ignore").decode(raw[length:]).encode()


def check(raw: bytes, name: str, line: int = 1) -> None:
    """Raise DataError with the line number for bytes that are not UTF-8; line: the number of the
    first line.
    """
    if raw.isascii():
        return
    try:
        raw.decode()
    except UnicodeDecodeError as error:
        above = raw[: error.start].replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        raise DataError(
            f"{name}, line {line + above.count(10)}: byte {raw[error.start]:#04x} is not UTF-8;"
            " specify the encoding, such as --encoding cp1252, or save it in UTF-8"
        ) from None


def _recoded(handle, name: str, encoding: str) -> Iterator[bytes]:
    """The content of a handle in some encoding, converted to UTF-8."""
    decoder, data = codecs.getincrementaldecoder(encoding)(), b"\n"
    while data:
        data = handle.read(_DECODED)
        try:
            yield decoder.decode(data, not data).encode()
        except UnicodeDecodeError:
            raise DataError(f"{name} is not {encoding}; try another --encoding") from None


class Text:
    """A text file, plain or compressed, or standard input (`-`), as a stream of UTF-8 without a
    byte order mark, whose errors name it.

    Parameters
    ----------
    path : path or "-"
    encoding : str, optional
        By default from the mark, else UTF-8.
    content : bytes, optional
        The plain content, if it has been read.

    Attributes
    ----------
    name : str
        For messages.
    rewindable : bool
        Whether the file can be read again.
    """

    def __init__(
        self,
        path,
        encoding: str | None = None,
        content: bytes | None = None,
    ):
        self.name = "standard input" if str(path) == "-" else files.shown(path)
        self.rewindable, source = False, path
        with naming(self.name):
            if content is not None:
                source = io.BytesIO(content)
            elif str(path) == "-":
                source = files.standard_input()
            else:
                self.rewindable = Path(path).is_file()
            self._open = contextlib.ExitStack()
            plain = self._open.enter_context(open_plain(source))
            self._handle = opened(plain, self.name, encoding)

    def read(self, count: int = -1) -> bytes:
        with naming(self.name):
            return self._handle.read(count)

    def put_back(self, data: bytes) -> None:
        """Let the next read begin with these bytes."""
        rest = iter(partial(self._handle.read, _PIECE), b"")
        self._handle = _handle(chain([data], rest))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._open.close()


# ----------------------------------------------------------------------
# The one loop over a text of any size: pieces of whole lines with their places.

SIZE = 8 << 20  # bytes read and parsed at a time
LONGEST_LINE = 64 << 20  # bytes; a row of five million entries


@dataclass
class Piece:
    """Whole lines of a text; only the last line of the text may lack its newline.

    start: the offset of the first byte. line: the number of the first line, None if it is unknown
    because reading began inside the text.
    """

    raw: bytes
    start: int = 0
    line: int | None = 1

    def number(self, offset: int) -> int:
        """The number of the line at an offset in the piece."""
        return (self.line or 1) + self.raw.count(b"\n", 0, offset)

    def place(self, offset: int) -> str:
        """The line at an offset in the piece, for messages."""
        if self.line is None:
            return f"the line at byte {self.start + offset:,}"
        return f"line {self.number(offset)}"

    def line_at(self, offset: int) -> bytes:
        """The line that begins at an offset in the piece, without its newline."""
        end = self.raw.find(b"\n", offset)
        return self.raw[offset : end if end >= 0 else len(self.raw)]


def whole_lines(raw: bytes) -> int:
    """The number of bytes that are whole lines."""
    return raw.rfind(b"\n") + 1


def pieces(
    read: Callable[[int], bytes],
    name: str,
    size: int | None = None,
    start: int = 0,
    line: int | None = 1,
    whole: Callable[[bytes], int] = whole_lines,
    longest: int = LONGEST_LINE,
) -> Iterator[Piece]:
    """The pieces of a text.

    Parameters
    ----------
    read : callable
        Returns the next bytes, as many as asked for, fewer only at the end.
    name : str
        For messages.
    size : int, optional
        Bytes to read at a time, by default SIZE.
    start, line : int
        Offset and number of the first line.
    whole : callable
        The number of bytes that are whole rows.
    longest : int
        The most bytes of a line.

    Raises
    ------
    DataError
        For a longer line.
    """
    size, rest, ended = size or SIZE, b"", False
    while not ended:
        data = read(size)
        raw, ended = rest + data, len(data) < size
        cut = len(raw) if ended else whole(raw)
        piece, rest = Piece(raw[:cut], start, line), raw[cut:]
        if piece.raw:
            yield piece
            start += cut
            line = None if line is None else line + piece.raw.count(b"\n")
        if len(rest) > longest:
            raise DataError(
                f"{name}, {Piece(b'', start, line).place(0)}: it is longer than {longest:,}"
                " bytes, the maximum for a row"
            )
