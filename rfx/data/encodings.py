"""Texts as UTF-8, from any encoding: byte order marks, explicit encodings, and the line number of
invalid UTF-8.
"""

import codecs
import io
from pathlib import Path

from rfx import files
from rfx.data import archives
from rfx.errors import DataError, UsageError

# UTF-32's mark begins with UTF-16's.
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_LONGEST_MARK = 4
_PIECE = 1 << 20


def known(encoding: str, option: str = "--encoding") -> str:
    """Python's name of a text encoding; UsageError with the name of the option if it is unknown."""
    try:
        name = codecs.lookup(encoding).name
        "".encode(name)  # rejects codecs that are not for text, such as base64
    except (LookupError, ValueError, TypeError):
        raise UsageError(
            f"{option} is {encoding!r:.40}, which Python does not support; try cp1252, latin-1,"
            " utf-8 or utf-16"
        ) from None
    return name


def remembered(encoding: str | None) -> str | None:
    """The encoding that a model stores: nothing for UTF-8."""
    name = None if encoding is None else known(encoding)
    return None if name in ("utf-8", "utf-8-sig") else name


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
        The encoding of the text; by default from its mark, else UTF-8.

    Returns
    -------
    handle : binary handle
        Reading raises DataError, with the line number, for bytes that are invalid in the encoding.
        UTF-8 is not checked here; use `check`.
    """
    handle = handle if hasattr(handle, "peek") else io.BufferedReader(handle)
    asked = known(encoding or "utf-8").removesuffix("-sig").replace("_", "-")
    codec, length = marked(handle.peek(_LONGEST_MARK)[:_LONGEST_MARK]) or (asked, 0)
    if encoding is not None and not codec.startswith(asked):
        raise UsageError(
            f"--encoding is {encoding}, but {name} begins with the byte order mark of {codec}; omit"
            " --encoding"
        )
    handle.read(length)
    return handle if codec == "utf-8" else io.BufferedReader(_Recoded(handle, name, codec), _PIECE)


def text(raw: bytes, name: str, encoding: str | None = None) -> bytes:
    """The bytes of a text as UTF-8 without a mark."""
    return opened(io.BytesIO(raw), name, encoding).read()


def head(raw: bytes, encoding: str | None = None) -> bytes:
    """The beginning of a text as UTF-8, as far as it is readable; never raises."""
    codec, length = marked(raw) or (encoding or "utf-8", 0)
    try:
        return (
            raw[length:]
            if codec == "utf-8"
            else codecs.getincrementaldecoder(codec)("ignore").decode(raw[length:]).encode()
        )
    except (LookupError, ValueError):
        return raw


def check(
    raw: bytes,
    name: str,
    line: int = 1,
    advice: str = "specify the encoding, such as --encoding cp1252, or save it in UTF-8",
) -> None:
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
            f" {advice}"
        ) from None


def is_utf8(handle: io.BufferedReader) -> bool:
    """Whether the content of a handle is UTF-8, or has a byte order mark."""
    if marked(handle.peek(_LONGEST_MARK)[:_LONGEST_MARK]) is not None:
        return True
    try:
        for _ in io.TextIOWrapper(handle, "utf-8"):
            pass
    except UnicodeDecodeError:
        return False
    return True


class _Recoded(archives.Readable):
    """The content of a handle in some encoding, converted to UTF-8."""

    def __init__(self, handle, name, encoding):
        self._handle, self._name, self._encoding = handle, name, encoding
        self._decoder, self._ready, self._line = codecs.getincrementaldecoder(encoding)(), b"", 1

    def readinto(self, buffer):
        data = b"\n"
        while data and not self._ready:
            data = self._handle.read(_PIECE)
            try:
                decoded = self._decoder.decode(data, not data)
            except UnicodeDecodeError as error:
                above = error.object[: error.start].decode(self._encoding, "ignore")
                raise DataError(
                    f"{self._name}, line {self._line + above.count(chr(10))}: it is not"
                    f" {self._encoding}; try another --encoding"
                ) from None
            self._line += decoded.count("\n")
            self._ready = decoded.encode()
        count = min(len(buffer), len(self._ready))
        buffer[:count], self._ready = self._ready[:count], self._ready[count:]
        return count


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
    whole : bool
        Whether it is read into memory, which limits its size.

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
        whole: bool = False,
    ):
        self.name = "standard input" if str(path) == "-" else files.shown(path)
        self.rewindable, source = False, path
        with archives.naming(self.name):
            if content is not None:
                source = io.BytesIO(content)
            elif str(path) == "-":
                source = files.standard_input()
            else:
                self.rewindable = Path(path).is_file()
            limit = archives.most_held() if whole else None
            self._plain = archives.open_plain(source, limit, self.name)
            self._handle = opened(self._plain, self.name, encoding)

    def read(self, count: int = -1) -> bytes:
        with archives.naming(self.name):
            return self._handle.read(count)

    def put_back(self, data: bytes) -> None:
        """Let the next read begin with these bytes."""
        self._handle = archives.joined(data, self._handle)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._plain.close()
