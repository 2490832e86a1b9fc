"""Output files: written completely or not at all; they never replace files that rfx did not create,
nor inputs.

Pipes and devices are written to, never replaced.
"""

import contextlib
import errno
import fcntl
import glob
import os
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from rfx.errors import DataError, UsageError


def shown(path) -> str:
    """A path in a message; the empty path is quoted."""
    return str(path) or '""'


@dataclass(frozen=True)
class Kind:
    """The kind of file that a command writes: `name` for messages ("a model file of rfx"), and
    `made(path)`, whether a file is of this kind.
    """

    name: str
    made: Callable[[Path], bool]


def guard(output, inputs=(), kind: Kind | None = None, force: bool = False) -> None:
    """Raise an error for an output that would overwrite other data; call it before reading
    anything.

    output: (name, path) with the user's name for it, such as `--model`; inputs: such pairs for all
    inputs and the other outputs. `-` is standard input or output, which is not checked. kind: what
    may be replaced; None: the file is only appended to, by code with its own checks. Raises
    UsageError if the output is the same file as an input, by any name or link, and, without
    `force`, if it exists and is neither empty nor of the kind. Pipes and devices are allowed.
    """
    name, path = output
    if str(path) == "-" or _is_special(path):
        return
    for other, source in inputs:
        if str(source) != "-" and _same(path, source):
            raise UsageError(
                f"{name} {shown(path)} is the same file as {other} {shown(source)}; write to"
                " another file"
            )
    if kind is None or force or not os.path.exists(path) or not os.path.getsize(path):
        return
    if not kind.made(Path(path)):
        raise UsageError(
            f"{name} {path} exists and is not {kind.name}; write to another file, or replace it"
            " with --force"
        )


def _same(output, source) -> bool:
    """Whether two names refer to one file; files that do not exist yet are compared by path."""
    try:
        return os.path.samefile(output, source)
    except (OSError, ValueError):
        return _target(output) == _target(source)


def names_folder(path) -> bool:
    """Whether an output's name is that of a folder: an existing one, or a name that can't be a
    file's.
    """
    return os.path.isdir(path) or os.fspath(path).endswith(os.sep)


def check(path) -> None:
    """Raise the OSError with which `whole` would immediately fail for `path`; nothing is created or
    changed.
    """
    if not str(path):
        raise OSError(errno.ENOENT, "a file name is required", '""')
    if names_folder(path):
        raise OSError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    # the final separator stands for a folder
    place = path if _is_special(path) else os.path.join(_target(path).parent, "")
    os.stat(place)
    if not os.access(place, os.W_OK):
        raise OSError(errno.EACCES, os.strerror(errno.EACCES), str(path))


@contextlib.contextmanager
def whole(path):
    """A binary handle that becomes the file `path` if the block succeeds; otherwise nothing is
    left.

    If `path` is not a regular file, it is written to directly; for a link, its target is replaced.
    Remains of a killed process for the same file are removed first.
    """
    check(path)
    if _is_special(path):
        with naming(path), open(path, "wb") as handle:
            yield handle
        return
    path = _target(path)
    _clear_drafts(path)
    os.umask(umask := os.umask(0))
    descriptor, draft = _locked_draft(path)
    try:
        with naming(path), os.fdopen(descriptor, "wb") as handle:
            yield handle
            handle.flush()
            os.fsync(descriptor)
            os.fchmod(descriptor, 0o666 & ~umask)
            os.replace(draft, path)
    except BaseException:
        Path(draft).unlink(missing_ok=True)
        raise


@contextlib.contextmanager
def naming(path):
    """Give an error of writing, such as that of a full disk, the name of the file."""
    try:
        yield
    except OSError as error:
        if error.filename is None and not isinstance(error, BrokenPipeError):
            error.filename = str(path)
        raise


def _locked_draft(path: Path) -> tuple[int, str]:
    """Create a draft of `path`; return its descriptor and name.

    A lock marks the draft as that of a living process. Another writer may remove the draft between
    its creation and the lock: then a new one is created.
    """
    while True:
        descriptor, draft = tempfile.mkstemp(".part", f".{path.name}.", path.parent)
        with contextlib.suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        if os.fstat(descriptor).st_nlink:
            return descriptor, draft
        os.close(descriptor)


def _clear_drafts(path: Path) -> None:
    """Remove the drafts of `path` whose writers were killed: their locks are free."""
    pattern = glob.escape(f".{path.name}.") + "????????.part"
    for draft in path.parent.glob(pattern):
        with contextlib.suppress(OSError), open(draft, "rb") as handle:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            draft.unlink()


def standard_input():
    """The binary handle of standard input; DataError if it is closed."""
    if sys.stdin is None or sys.stdin.closed:
        raise DataError("standard input is closed, so - can't be read; pass a file or a pipe")
    return sys.stdin.buffer


def standard_output():
    """The binary handle of standard output; DataError if it is closed."""
    if sys.stdout is None or sys.stdout.closed:
        raise DataError("standard output is closed; use --output FILE or a pipe")
    return sys.stdout.buffer


def _is_special(path) -> bool:
    return Path(path).exists() and not Path(path).is_file()


def _target(path) -> Path:
    return Path(os.path.realpath(path))
