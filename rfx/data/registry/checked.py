"""Verify files of the data folder by the registry's checksum, or by that of their own first copy.

If no checksum is published, the first copy must be LIBSVM text with the rows and columns stated in
the registry. Its sha256 is stored next to the data (.checked/NAME). Every later copy, and the file
itself when it has changed, is compared with it.
"""

import contextlib
import hashlib
import json
import os
from pathlib import Path

from rfx import env, files
from rfx.data.registry import registry
from rfx.errors import DataError, NoData


def means(entry: registry.DataFile) -> str:
    """How a file is verified, as shown by `rfx datasets`."""
    if entry.sha256:
        return "sha256"
    if entry.sources and all(source.sha256 or source.md5 for source in entry.sources):
        return "source"
    known = _record(entry).get("sha256")
    return "size" if known is None else "known copy" if known in entry.copies else "first copy"


def digest(path, kind: str = "sha256") -> str:
    """The checksum of a file, in hexadecimal digits."""
    with files.open_regular(path) as handle:
        return hashlib.file_digest(handle, kind).hexdigest()


def _place(entry: registry.DataFile) -> Path:
    return env.data_dir() / ".checked" / entry.filename


def _record(entry: registry.DataFile) -> dict:
    """The result of the last check of a file: its sha256 and its status; empty if there is none."""
    with contextlib.suppress(OSError, ValueError):
        saved = json.loads(_place(entry).read_text())
        if isinstance(saved, dict) and isinstance(saved.get("sha256"), str):
            return saved
    return {}


def _status(path) -> dict[str, int]:
    status = os.stat(path)
    return {name: getattr(status, f"st_{name}") for name in ("size", "mtime_ns", "ctime_ns")}


def keep(entry: registry.DataFile, target, sha256: str) -> None:
    """Record that a file was checked; if the data folder is not writable, it is checked again each
    time.
    """
    with contextlib.suppress(OSError):
        _place(entry).parent.mkdir(parents=True, exist_ok=True)
        with files.whole(_place(entry)) as handle:
            handle.write(json.dumps({"sha256": sha256} | _status(target)).encode())


def verified(info, entry, path, origin: str, advice: str, trust: bool = False) -> str:
    """The sha256 of a file of the data folder, or for it; NoData with its `origin` and `advice` if
    it is another file.

    `trust` accepts another sha256 than that of the first copy, or another size than the registry
    states, but nothing that differs from a checksum in the registry.
    """
    sha256, first = digest(path), _record(entry).get("sha256")
    known, source = (entry.sha256, "datasets.toml says") if entry.sha256 else (first, "was first")
    if sha256 in (known, *entry.copies) or (trust and not entry.sha256):
        return sha256
    accepts = "" if entry.sha256 else f"; `rfx fetch --trust {info.name}` accepts it"
    if known:
        raise NoData(
            f"{origin}: {entry.filename} has sha256 {sha256}, but {source} {known}; {advice}"
            f"{accepts}"
        )
    from rfx.data.libsvm import svmlight  # imports numba

    try:
        rows, columns = svmlight.shape(path)
    except DataError as error:
        reason = str(error).removeprefix(f"{path}, ").removeprefix(f"{path} ")
        raise NoData(
            f"{origin}: {entry.filename} is not LIBSVM text ({reason}); {advice}{accepts}"
        ) from None
    if rows != entry.rows or columns > info.d:
        raise NoData(
            f"{origin}: {entry.filename} has {rows:,} rows and {columns:,} columns, but"
            f" datasets.toml says {entry.rows:,} rows and at most {info.d:,} columns; {advice}"
            f"{accepts}"
        )
    return sha256


def in_place(info, entry, target, trust: bool = False) -> None:
    """Raise NoData, with instructions to replace it, for a file of the data folder that is not the
    registry's, or has changed since it was checked.
    """
    try:
        record, known = _record(entry), {entry.sha256, *entry.copies}
        unchanged = record.items() >= _status(target).items()
        if not unchanged or trust or (entry.sha256 and record["sha256"] not in known):
            advice = "put a complete one there"
            if entry.sources:
                advice = f"remove it, and `rfx fetch {info.name}` downloads it again"
            advice += ", or move it and use it as a file"
            keep(entry, target, verified(info, entry, target, str(target), advice, trust))
    except OSError as error:
        raise NoData(f"{target} can't be read: {error.strerror or error}") from None
