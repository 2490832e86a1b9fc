"""Convert text from any encoding to UTF-8: byte order marks, explicit encodings, and the line
number of invalid UTF-8.
"""

import codecs
import io

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


def known(encoding: str) -> str:
    """Python's name of a text encoding; UsageError if it is unknown."""
    try:
        found = codecs.lookup(encoding)
        "".encode(found.name)  # rejects codecs that are not for text, such as base64
    except (LookupError, ValueError, TypeError):
        raise UsageError(
            f"--encoding is {encoding!r:.40}, which Python does not support; try cp1252, latin-1,"
            " utf-8 or utf-16"
        ) from None
    return found.name


def remembered(encoding: str | None) -> str | None:
    """The encoding that a model stores: nothing for UTF-8."""
    found = None if encoding is None else known(encoding)
    return None if found in ("utf-8", "utf-8-sig") else found


def marked(head: bytes) -> tuple[str, int] | None:
    """The encoding indicated by a byte order mark at the beginning, and the length of the mark."""
    return next(((name, len(mark)) for mark, name in _MARKS if head.startswith(mark)), None)


def _settled(head, name, encoding) -> tuple[str, int]:
    """The encoding of a text that begins with `head`, and the length of its mark."""
    asked, mark = "utf-8" if encoding is None else known(encoding), marked(head)
    if mark is None:
        return asked, 0
    if encoding is not None and not mark[0].startswith(
        asked.removesuffix("-sig").replace("_", "-")
    ):
        raise UsageError(
            f"--encoding is {encoding}, but {name} begins with the byte order mark of {mark[0]};"
            " omit --encoding"
        )
    return mark


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
    head = b""
    while len(head) < _LONGEST_MARK and (more := handle.read(_LONGEST_MARK - len(head))):
        head += more
    found, length = _settled(head, name, encoding)
    if handle.seekable():
        handle.seek(length)
        rest = handle
    else:
        rest = archives.joined(head[length:], handle)
    if found == "utf-8":
        return rest
    return io.BufferedReader(_Recoded(rest, name, found), _PIECE)


def text(raw, name: str, encoding: str | None = None):
    """The bytes of a text as UTF-8 without a mark; raw: bytes or a mmap, returned unchanged if it
    is that already.
    """
    found, length = _settled(bytes(raw[:_LONGEST_MARK]), name, encoding)
    if found == "utf-8":
        return raw[length:] if length else raw
    return _Recoded(io.BytesIO(raw[length:]), name, found).readall()


def head(raw: bytes, encoding: str | None = None) -> bytes:
    """The beginning of a text as UTF-8, as far as it is readable; never raises."""
    found, length = marked(raw) or (encoding or "utf-8", 0)
    try:
        return (
            raw[length:]
            if found == "utf-8"
            else codecs.getincrementaldecoder(found)("ignore").decode(raw[length:]).encode()
        )
    except (LookupError, ValueError):
        return raw


def check(
    raw,
    name: str,
    line: int = 1,
    advice: str = "specify the encoding, such as --encoding cp1252, or save it in UTF-8",
):
    """Raise DataError with the line number for bytes that are not UTF-8; line: the number of the
    first line.
    """
    if raw.isascii():
        return
    try:
        raw.decode()
    except UnicodeDecodeError as error:
        line += (
            raw.count(b"\n", 0, error.start)
            + raw.count(b"\r", 0, error.start)
            - raw.count(b"\r\n", 0, error.start)
        )
        raise DataError(
            f"{name}, line {line}: byte {raw[error.start]:#04x} is not UTF-8; {advice}"
        ) from None


def is_utf8(handle) -> tuple[bool, bool]:
    """Whether the content of a binary handle is UTF-8, and whether it is ASCII."""
    decoder, ascii_only = codecs.getincrementaldecoder("utf-8")(), True
    try:
        while piece := handle.read(_PIECE):
            ascii_only = ascii_only and piece.isascii()
            decoder.decode(piece)
        decoder.decode(b"", True)
    except UnicodeDecodeError:
        return False, False
    return True, ascii_only


class _Recoded(io.RawIOBase):
    """The content of a handle in some encoding, converted to UTF-8."""

    def __init__(self, handle, name, encoding):
        self._handle, self._name, self._encoding = handle, name, encoding
        self._decoder, self._ready, self._line = codecs.getincrementaldecoder(encoding)(), b"", 1

    def readable(self):
        return True

    def readinto(self, buffer):
        while not self._ready:
            data = self._handle.read(_PIECE)
            try:
                found = self._decoder.decode(data, not data)
            except UnicodeDecodeError as error:
                line = self._line + error.object[: error.start].decode(
                    self._encoding, "ignore"
                ).count("\n")
                raise DataError(
                    f"{self._name}, line {line}: it is not {self._encoding}; try another --encoding"
                ) from None
            self._line += found.count("\n")
            self._ready = found.encode()
            if not data:
                break
        count = min(len(buffer), len(self._ready))
        buffer[:count], self._ready = self._ready[:count], self._ready[count:]
        return count

    def close(self):
        self._handle.close()
        super().close()
