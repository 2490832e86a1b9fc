"""Exceptions shown to the user as one sentence, without a traceback."""

import difflib
import os
import re
import sys
import warnings
from functools import cache

# Where the files of rfx are.
_FOLDER = os.path.dirname(__file__) + os.sep
# Characters that control a terminal, break a line or reverse the text around them, and surrogates,
# which can't be encoded.
_CONTROL = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)


def plain(text: str) -> str:
    r"""The text on one line, with control characters escaped, such as \x1b for an escape."""
    return _CONTROL.sub(lambda match: match[0].encode("unicode_escape").decode(), text)


class _Sentence:
    """An exception whose message is one line of plain text, whatever it quotes."""

    def __str__(self) -> str:
        return plain(super().__str__())


class RfxError(_Sentence, Exception):
    """A problem of the data or the run; str(error) is one sentence with the problem and the
    remedy.

    remedy: options that make the command work, as typed; empty if none are known.
    """

    exit_code = 1
    remedy = ""


class DataError(RfxError):
    """A data file or data set is unusable."""


class NoData(DataError):
    """A data set's file is unavailable; it may be available later."""


class NoRows(DataError):
    """A file has no rows."""


class OutOfTime(RfxError):
    """`--timeout` was too short to produce a result."""


class ClusterError(RfxError):
    """The scheduler or the workers of `--scheduler` are unusable or have disconnected."""


class UsageError(RfxError):
    """An option or parameter is unknown, or its value is out of range."""

    exit_code = 2


class LockedError(RfxError):
    """Another process holds the lock of a file or folder that this command must write."""

    exit_code = 4


class RfxWarning(_Sentence, UserWarning):
    """Something was ignored or changed; the command line prints the warning as one sentence on
    standard error.
    """


def warn(message: str) -> None:
    """Issue an RfxWarning, at the line of the program that called rfx."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_FOLDER):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, RfxWarning, stacklevel=level)


@cache
def warn_once(message: str) -> None:
    """Issue an RfxWarning unless this process has issued the same one.

    The folds of a cross-validation have the same warnings. Python forgets what it has shown after
    each `warnings.catch_warnings`, which scikit-learn and pandas use in each fit.
    """
    warn(message)


def or_near(name: str, known, otherwise: str = "there are", aliases=()) -> str:
    """The end of a message about an unknown name: similar names or aliases, else all known
    names.
    """
    near = difflib.get_close_matches(str(name)[:100], [*known, *aliases], n=3)
    return f"; did you mean {' or '.join(near)}?" if near else f" ({otherwise}: {', '.join(known)})"


def quoted(value) -> str:
    """A value as quoted in a message, shortened if it is long."""
    try:
        text = repr(value[:200] if isinstance(value, str) else value)
    except (ValueError, RecursionError):
        return "a value too large to show"
    return text if len(text) <= 80 else text[:79] + "…"
