"""The exceptions that a user sees as one sentence, without a traceback."""


class RfxError(Exception):
    """Something about the data or the run is wrong; str(error) is one sentence that says what and what to do."""

    exit_code = 1


class DataError(RfxError):
    """A data file or data set can't be used as it is."""


class NoData(DataError):
    """A data set's file can't be had: another time it may be there."""


class OutOfTime(RfxError):
    """What `--timeout` allows was not enough, and there is nothing to show for it."""


class UsageError(RfxError):
    """An option or parameter is unknown, or its value is out of range."""

    exit_code = 2


class LockedError(RfxError):
    """Somebody else holds the lock of a file or folder that this command must write."""

    exit_code = 4


class RfxWarning(UserWarning):
    """Something that was left out or done otherwise; the command line says it in one sentence on standard error."""
