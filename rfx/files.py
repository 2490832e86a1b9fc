"""Output files: they appear whole or not at all; pipes and devices are written to, never replaced."""

import contextlib
import errno
import os
import tempfile
from pathlib import Path


def shown(path) -> str:
    """A path as messages show it: the empty one can't be seen without quotes."""
    return str(path) or '""'


def check(path) -> None:
    """Raise the OSError with which `whole` would fail at once for `path`; nothing is made or changed."""
    if not str(path):
        raise OSError(errno.ENOENT, "a file name is needed")
    path = Path(path)
    if path.is_dir():
        raise OSError(errno.EISDIR, os.strerror(errno.EISDIR))
    place = path if _is_special(path) else _target(path).parent
    os.stat(place)
    if not _is_special(path) and not place.is_dir():
        raise OSError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
    if not os.access(place, os.W_OK):
        raise OSError(errno.EACCES, os.strerror(errno.EACCES))


@contextlib.contextmanager
def whole(path):
    """A binary handle that becomes the file `path` when the block ends well, and leaves nothing when it does not.

    What is there already and no regular file is written to as it is; of a link, the file that it leads to is replaced.
    """
    check(path)
    if _is_special(path):
        with open(path, "wb") as handle:
            yield handle
        return
    path = _target(path)
    descriptor, draft = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
    try:
        with os.fdopen(descriptor, "wb") as handle:
            yield handle
            handle.flush()
            os.fsync(handle.fileno())
        os.chmod(draft, 0o666 & ~_umask())
        os.replace(draft, path)
    except BaseException:
        Path(draft).unlink(missing_ok=True)
        raise


def _is_special(path) -> bool:
    return Path(path).exists() and not Path(path).is_file()


def _target(path) -> Path:
    return Path(os.path.realpath(path))


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
