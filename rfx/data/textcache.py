"""The binary copy that `svmlight.read` keeps of a text file, so that the second read is a plain load of arrays.

It lies beside the text as NAME.rfxcache, or in rfx's cache folder where the text's own can't be written. It counts only
for the very text it was made from (size, time of change), the same base of indices and the same version of the reader;
whatever else is found there is ignored and written anew. Nothing here ever fails: a cache is a favour.
"""

import hashlib
import json
import os
import stat
import tempfile
import time
import zlib
from pathlib import Path

import numpy as np

from rfx import env

VERSION = 1
SMALLEST = 1 << 16  # bytes of text; parsing less takes no longer than opening a second file
_SETTLED = 2.0  # seconds; a file changed just now may change again without its time of change moving
_MAGIC = b"rfx text cache\n"
_NAMES = ("labels", "indptr", "indices", "values")


def places(path) -> list[Path]:
    """Where the cache of a text file may lie, best first."""
    path = Path(path)
    name = hashlib.sha256(os.fsencode(path.absolute())).hexdigest()[:32]
    return [path.with_name(path.name + ".rfxcache"), env.cache_dir() / "svmlight" / f"{name}.rfxcache"]


def _key(status, zero_based):
    return {"version": VERSION, "size": status.st_size, "mtime": status.st_mtime_ns, "zero_based": bool(zero_based)}


def load(path, zero_based):
    """The arrays (labels, indptr, indices, values) of the text at `path`, or None."""
    try:
        status = os.stat(path)
    except (OSError, TypeError, ValueError):
        return None
    if not stat.S_ISREG(status.st_mode):
        return None
    key = _key(status, zero_based)
    for place in places(path):
        try:
            with open(place, "rb") as handle:
                return _read(handle, key)
        except (OSError, ValueError, KeyError, TypeError, EOFError, MemoryError):
            continue
    return None


def _read(handle, key):
    if handle.read(len(_MAGIC)) != _MAGIC:
        raise ValueError("not a cache")
    header = json.loads(handle.read(int.from_bytes(handle.read(4), "little")))
    if header["key"] != key:
        raise ValueError("a cache of something else")
    size = os.fstat(handle.fileno()).st_size - handle.tell()
    arrays = []
    for name in _NAMES:
        dtype, count, check = header[name]
        if dtype not in ("<f8", "<i4", "<i8") or not 0 <= count * int(dtype[2]) <= size:
            raise ValueError("a damaged header")
        array = np.fromfile(handle, dtype, count)
        if len(array) != count or zlib.crc32(array) != check:
            raise ValueError("a damaged array")
        arrays.append(array)
    return arrays


def save(path, status, zero_based, arrays) -> None:
    """Keep `arrays`, parsed from the text at `path` whose os.stat_result before parsing was `status`."""
    if status.st_size < SMALLEST or abs(time.time() - status.st_mtime) < _SETTLED:
        return
    key = _key(status, zero_based)
    for place in places(path):
        draft = None
        try:
            if _key(os.stat(path), zero_based) != key:
                return
            place.parent.mkdir(parents=True, exist_ok=True)
            descriptor, draft = tempfile.mkstemp(prefix=".", suffix=".part", dir=place.parent)
            with os.fdopen(descriptor, "wb") as handle:
                _write(handle, key, arrays)
            os.chmod(draft, status.st_mode & 0o666)
            os.replace(draft, place)
            return
        except OSError:
            continue
        finally:
            if draft is not None and os.path.exists(draft):
                os.unlink(draft)


def _write(handle, key, arrays):
    arrays = [np.ascontiguousarray(array) for array in arrays]
    described = {name: (array.dtype.str, len(array), zlib.crc32(array)) for name, array in zip(_NAMES, arrays)}
    header = json.dumps({"key": key} | described).encode()
    handle.write(_MAGIC + len(header).to_bytes(4, "little") + header)
    for array in arrays:
        handle.write(array.data if array.size else b"")
