"""The binary cache that `svmlight.read` writes for a text file, so that a second read only loads
arrays.

It is stored in rfx's cache folder, never next to the text. A cache is valid only for the same text
(size, modification times), index base and reader version, if it belongs to this user, and if the
reader could have produced its content; otherwise it is replaced. Errors never stop a command: if
the cache can't be written, rfx warns and continues.
"""

import hashlib
import json
import logging
import os
import stat
import time
import zlib
from pathlib import Path

import numpy as np

from rfx import env, files
from rfx.compiled import njit

log = logging.getLogger(__name__)
VERSION = 3
SMALLEST = 1 << 16  # bytes of text; parsing less takes no longer than opening a second file
# seconds; a file changed just now may change again with the same modification time
_SETTLED = 2.0
_MAGIC = b"rfx text cache\n"
_LONGEST_HEADER = 1 << 16  # bytes
_TYPES = {
    "labels": ("<f8",),
    "indptr": ("<i4", "<i8"),
    "indices": ("<i4", "<i8"),
    "values": ("<f8",),
}
_LARGEST_INDEX = 10**18  # the reader accepts 18 digits
_FLAWS = (OSError, ValueError, KeyError, TypeError, EOFError, MemoryError, RecursionError)


def place(path) -> Path:
    """The path of the cache of a text file."""
    name = hashlib.sha256(os.fsencode(os.path.abspath(path))).hexdigest()[:32]
    return env.cache_dir() / "svmlight" / f"{name}.rfxcache"


def _key(path, status, zero_based):
    times = {"mtime": status.st_mtime_ns, "ctime": status.st_ctime_ns}
    return {
        "version": VERSION,
        "path": os.path.abspath(path),
        "size": status.st_size,
        "zero_based": bool(zero_based),
    } | times


def load(path, zero_based, spelling=None):
    """The arrays (labels, indptr, indices, values) of the text at `path`, or None; spelling: see
    svmtext.parse.
    """
    try:
        status = os.stat(path)
        if not stat.S_ISREG(status.st_mode):
            return None
        with _opened(place(path)) as handle:
            header = _header(handle)
            if header["key"] != _key(path, status, zero_based):
                return None
            arrays, plain = _arrays(handle, header), bool(header["plain"])
    except _FLAWS:
        return None
    if not _is_sound(*arrays):
        return None
    if spelling is not None:
        spelling.plain = plain
    return arrays


def _opened(path):
    """A handle on a cache that belongs to this user and that nobody else can write."""
    files.check_own_folder(os.path.dirname(path))
    handle = files.open_own(path)
    status = os.fstat(handle.fileno())
    if status.st_uid != os.getuid() or status.st_mode & 0o022:
        handle.close()
        raise ValueError("a cache of another user")
    return handle


def _header(handle):
    if handle.read(len(_MAGIC)) != _MAGIC:
        raise ValueError("not a cache")
    length = int.from_bytes(handle.read(4), "little")
    if length > _LONGEST_HEADER:
        raise ValueError("a damaged header")
    return json.loads(handle.read(length))


def _arrays(handle, header):
    left = os.fstat(handle.fileno()).st_size - handle.tell()
    arrays = []
    for name, types in _TYPES.items():
        dtype, count, check = header[name]
        if dtype not in types or not 0 <= count * int(dtype[2]) <= left:
            raise ValueError("a damaged header")
        array = np.fromfile(handle, dtype, count)
        left -= array.nbytes
        if len(array) != count or zlib.crc32(array.data) != check:
            raise ValueError("a damaged array")
        arrays.append(array)
    return arrays


def _is_sound(labels, indptr, indices, values) -> bool:
    """Whether the arrays are rows with ascending indices and finite numbers, which scipy and numba
    assume.
    """
    if (
        len(indptr) < 2
        or len(labels) != len(indptr) - 1
        or len(indices) != len(values)
        or indptr.dtype != indices.dtype
    ):
        return False
    return bool(
        indptr[0] == 0
        and indptr[-1] == len(indices)
        and np.isfinite(labels).all()
        and _ascend(indptr, indices, values)
    )


@njit(cache=True, nogil=True)
def _ascend(indptr, indices, values):
    for row in range(len(indptr) - 1):
        start, stop = indptr[row], indptr[row + 1]
        if not 0 <= start <= stop <= len(indices):
            return False
        last = -1
        for entry in range(start, stop):
            if not (last < indices[entry] < _LARGEST_INDEX and np.isfinite(values[entry])):
                return False
            last = indices[entry]
    return True


def save(path, status, zero_based, arrays, plain=True) -> None:
    """Store `arrays` with the spelling of the labels (svmtext.Spelling), parsed from the text at
    `path` whose os.stat_result before parsing was `status`."""
    if status.st_size < SMALLEST or abs(time.time() - status.st_mtime) < _SETTLED:
        return
    key, target = _key(path, status, zero_based), place(path)
    try:
        if _key(path, os.stat(path), zero_based) != key:
            return
        files.own_folder(target.parent, mode=0o700)
        _sweep(target.parent)
        with files.whole(target, mode=0o600, own=True) as handle:
            _write(handle, key, arrays, plain)
    except OSError as error:
        reason = error.strerror or error
        log.warning(
            "no binary cache of %s is written: %s can't be written (%s); RFX_CACHE names another"
            " folder",
            path,
            target,
            reason,
        )


def _sweep(folder) -> None:
    """Remove this user's caches of texts that no longer exist."""
    for entry in os.scandir(folder):
        if (
            not entry.name.endswith(".rfxcache")
            or entry.stat(follow_symlinks=False).st_uid != os.getuid()
        ):
            continue
        try:
            with _opened(entry.path) as handle:
                gone = not os.path.exists(_header(handle)["key"]["path"])
        except _FLAWS:
            gone = True
        if gone:
            Path(entry.path).unlink(missing_ok=True)


def _write(handle, key, arrays, plain):
    arrays = [np.ascontiguousarray(array) for array in arrays]
    described = {
        name: (array.dtype.str, len(array), zlib.crc32(array))
        for name, array in zip(_TYPES, arrays)
    }
    header = json.dumps({"key": key, "plain": plain} | described).encode()
    handle.write(_MAGIC + len(header).to_bytes(4, "little") + header)
    for array in arrays:
        handle.write(array.data if array.size else b"")
