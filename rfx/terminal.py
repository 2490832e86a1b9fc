"""What reaches the terminal: text alone, never the escape sequences of a server, a file's name or a
column's.

The command line puts a filter before standard output and standard error; what draws progress writes
behind it.
"""

import contextlib
import io
import re
import sys

# What a terminal obeys or that turns the text around it over, and surrogates, which no encoding
# has; not newlines and tabs.
_CONTROL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)


def plain(text: str) -> str:
    r"""The text with control characters spelled out, such as \x1b for an escape."""
    return _CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def line(text: str, most: int = 200) -> str:
    """The words of a stranger, such as a server's, for the middle of a sentence: plain, in
    one line, at most so many characters.
    """
    text = plain(" ".join(text[: 4 * most].split()))
    return text if len(text) <= most else text[: most - 1] + "…"


class OutputError(OSError):
    """Standard output can't be written, for another reason than that its reader has gone."""


@contextlib.contextmanager
def writing():
    """Within the block OSErrors are those of writing to standard output, and raised as
    OutputError; BrokenPipeError stays.
    """
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputError(error.errno, error.strerror) from None


class _Plain(io.TextIOWrapper):
    """The stream `beneath` with control characters spelled out. Bytes are written to its
    `buffer`, as they are.
    """

    def __init__(self, beneath):
        # click would go round a stream that can't hold all characters, and so round this filter
        encoding = (
            "utf-8"
            if beneath.encoding.lower() in ("ascii", "us-ascii", "ansi_x3.4-1968", "646")
            else beneath.encoding
        )
        super().__init__(beneath.buffer, encoding, "backslashreplace", write_through=True)
        self.beneath = beneath

    def write(self, text):
        with writing():
            return super().write(plain(text))

    def flush(self):
        with writing():
            super().flush()


@contextlib.contextmanager
def plain_streams():
    """Within the block, text on standard output and standard error is plain; a stream that
    is closed or holds no bytes stays.
    """
    filters = {}
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        with contextlib.suppress(AttributeError, ValueError, OSError):
            stream.flush()
            filters[name] = _Plain(stream)
            setattr(sys, name, filters[name])
    try:
        yield
    finally:
        for name, stream in filters.items():
            if getattr(sys, name) is stream:
                setattr(sys, name, stream.beneath)
            with contextlib.suppress(ValueError, OSError):
                stream.detach()


def drawing():
    """Standard error for what moves about on a terminal; its text has to be plain already."""
    return getattr(sys.stderr, "beneath", sys.stderr)
