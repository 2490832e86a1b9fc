"""Text for the terminal without the escape sequences that a server, a file name or a column name
may contain.

The command line installs a filter before standard output and standard error; progress bars bypass
it.
"""

import contextlib
import io
import re
import sys

# Characters that control a terminal or reverse the text around them, and surrogates, which can't be
# encoded; not newlines and tabs.
_CONTROL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)


def plain(text: str) -> str:
    r"""The text with control characters escaped, such as \x1b for an escape."""
    return _CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def line(text: str, most: int = 200) -> str:
    """Untrusted text, such as a server's, for use within a sentence: plain, on one line, with
    limited length.
    """
    text = plain(" ".join(text[: 4 * most].split()))
    return text if len(text) <= most else text[: most - 1] + "…"


class OutputError(OSError):
    """Standard output can't be written, for another reason than a closed reader."""


@contextlib.contextmanager
def writing():
    """Inside the block, OSErrors are those of writing to standard output, and are raised as
    OutputError; BrokenPipeError is unchanged.
    """
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputError(error.errno, error.strerror) from None


class _Plain(io.TextIOWrapper):
    """The stream `beneath` with control characters escaped. Bytes written to its `buffer` are
    unchanged.
    """

    def __init__(self, beneath):
        # otherwise click would bypass a stream that can't encode all characters, and this filter
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
    """Inside the block, text on standard output and standard error is plain; a stream that is
    closed or has no buffer is unchanged.
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
    """Standard error for progress bars on a terminal; the text must already be plain."""
    return getattr(sys.stderr, "beneath", sys.stderr)
