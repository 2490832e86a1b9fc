"""The one loop over a text of any size: pieces of whole lines with their places."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from rfx.errors import DataError

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

    Raises
    ------
    DataError
        For a line longer than LONGEST_LINE.
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
        if len(rest) > LONGEST_LINE:
            raise DataError(
                f"{name}, {Piece(b'', start, line).place(0)}: it is longer than {LONGEST_LINE:,}"
                " bytes, the maximum for a row"
            )
