"""The exceptions that a user sees as one sentence, without a traceback."""

import difflib

_BREAKS = {ord(mark): repr(mark)[1:-1] for mark in "\n\r\t\v\f\x1c\x1d\x1e\x85\u2028\u2029"}


class _Sentence:
    """An exception whose text is one line: a line break in it, such as one of a quoted
    cell, is spelled out.
    """

    def __str__(self) -> str:
        return super().__str__().translate(_BREAKS)


class RfxError(_Sentence, Exception):
    """Something about the data or the run is wrong; str(error) is one sentence that says
    what and what to do.
    """

    exit_code = 1


class DataError(RfxError):
    """A data file or data set can't be used as it is."""


class NoData(DataError):
    """A data set's file can't be had: another time it may be there."""


class OutOfTime(RfxError):
    """What `--timeout` allows was not enough, and there is nothing to show for it."""


class ClusterError(RfxError):
    """The scheduler or the workers of `--scheduler` can't be used, or have gone away."""


class UsageError(RfxError):
    """An option or parameter is unknown, or its value is out of range."""

    exit_code = 2


class LockedError(RfxError):
    """Somebody else holds the lock of a file or folder that this command must write."""

    exit_code = 4


class RfxWarning(_Sentence, UserWarning):
    """Something that was left out or done otherwise; the command line says it in one
    sentence on standard error.
    """


def or_near(name: str, known, otherwise: str = "there are", aliases=()) -> str:
    """The end of a sentence about a name that is not among the known: those that are like
    it, or aliases that are, else all known.
    """
    near = difflib.get_close_matches(str(name)[:100], [*known, *aliases], n=3)
    return f"; did you mean {' or '.join(near)}?" if near else f" ({otherwise}: {', '.join(known)})"


def quoted(value) -> str:
    """A value as a sentence quotes it, shortened where it is long."""
    try:
        text = repr(value[:200] if isinstance(value, str) else value)
    except (ValueError, RecursionError):
        return "a value too large to show"
    return text if len(text) <= 80 else text[:79] + "…"
