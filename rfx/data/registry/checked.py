"""Verify files of the data folder by the registry's checksum, or by that of their own first copy.

If no checksum is published, the first copy must be LIBSVM text with the rows and columns stated in
the registry. Its sha256 is stored next to the data (.checked/NAME). Every later copy, and the file
itself when it has changed, is compared with it.
"""

import hashlib
import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

from rfx import env, files
from rfx.data.registry import registry
from rfx.errors import DataError, NoData

FOLDER = ".checked"


@dataclass(frozen=True)
class Record:
    """The result of the last check of a file: its sha256, and its file status at that time."""

    sha256: str
    size: int
    mtime_ns: int
    ctime_ns: int

    def is_of(self, status) -> bool:
        return (self.size, self.mtime_ns, self.ctime_ns) == (
            status.st_size,
            status.st_mtime_ns,
            status.st_ctime_ns,
        )


def means(entry: registry.DataFile) -> str:
    """How a file is verified, as shown by `rfx datasets`."""
    if entry.sha256:
        return "sha256"
    if entry.sources and all(source.sha256 or source.md5 for source in entry.sources):
        return "source"
    known = record(entry)
    return (
        "size" if known is None else "known copy" if known.sha256 in entry.copies else "first copy"
    )


def digest(path, kind: str = "sha256") -> str:
    """The checksum of a file, in hexadecimal digits."""
    with files.open_regular(path) as handle:
        return hashlib.file_digest(handle, kind).hexdigest()


def record(entry: registry.DataFile) -> Record | None:
    """The record of a file; None if there is none, or it is invalid."""
    try:
        found = Record(**json.loads(_place(entry).read_text()))
    except (OSError, ValueError, TypeError):
        return None
    return found if isinstance(found.sha256, str) and len(found.sha256) == 64 else None


def _place(entry) -> Path:
    return env.data_dir() / FOLDER / entry.filename


def keep(entry: registry.DataFile, target, sha256: str) -> None:
    """Record that a file was checked; if the data folder is not writable, it is checked again each
    time.
    """
    status = os.stat(target)
    found = Record(sha256, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
    try:
        _place(entry).parent.mkdir(parents=True, exist_ok=True)
        with files.whole(_place(entry)) as handle:
            handle.write(json.dumps(asdict(found)).encode())
    except OSError:
        return


def fresh(info, entry, path, origin: str, trust: bool = False) -> str:
    """The sha256 of a file that may be put into the data folder; otherwise NoData, with its
    `origin`.

    `trust` accepts another sha256 than that of the first copy, or another size than the registry
    states, but nothing that differs from a checksum in the registry.
    """
    found = digest(path)
    if entry.sha256:
        if found != entry.sha256 and found not in entry.copies:
            raise NoData(
                f"{origin}: {entry.filename}, unpacked, has sha256 {found}, but datasets.toml says"
                f" {entry.sha256}; the file was discarded. Try again, or use another RFX_MIRROR"
            )
        return found
    if trust or found in entry.copies:
        return found
    known = record(entry)
    if known is None:
        _check_size(
            info,
            entry,
            path,
            origin,
            "the file was discarded. Try again, or use another RFX_MIRROR; ",
        )
    elif known.sha256 != found:
        raise NoData(
            f"{origin}: {entry.filename}, unpacked, has sha256 {found}, but the first copy had"
            f" {known.sha256}; the file was discarded. `rfx fetch --trust {info.name}` accepts it"
        )
    return found


def in_place(info, entry, target, trust: bool = False) -> None:
    """Raise NoData, with instructions to replace it, for a file of the data folder that differs
    from its record.
    """
    known = record(entry)
    expected = {entry.sha256, *entry.copies} if entry.sha256 else {known.sha256} if known else set()
    if known and known.is_of(os.stat(target)) and known.sha256 in expected and not trust:
        return
    found = digest(target)
    anew = (
        f"remove it, and `rfx fetch {info.name}` downloads it again"
        if entry.sources
        else "put a complete one there"
    )
    if entry.sha256 and found not in expected:
        raise NoData(
            f"{target} is not the file that datasets.toml describes: its sha256 is {found} instead"
            f" of {entry.sha256}; {anew}, or move it and use it as a file"
        )
    if not entry.sha256 and not trust and found not in entry.copies:
        if known is None:
            _check_size(info, entry, target, str(target), f"{anew}; ")
        elif found != known.sha256:
            raise NoData(
                f"{target} has changed: its sha256 is {found}, but was {known.sha256} when it was"
                f" fetched; {anew}, or `rfx fetch --trust {info.name}` accepts it"
            )
    keep(entry, target, found)


def _check_size(info, entry, path, origin, advice):
    from rfx.data.libsvm import svmlight  # imports numba, and a check may end before it is needed

    advice = f"{advice}`rfx fetch --trust {info.name}` accepts it"
    try:
        rows, columns = svmlight.shape(path)
    except DataError as error:
        reason = str(error).removeprefix(f"{path}, ").removeprefix(f"{path} ")
        raise NoData(
            f"{origin}: {entry.filename} is not LIBSVM text ({reason}); {advice}"
        ) from None
    if rows != entry.rows or columns > info.d:
        raise NoData(
            f"{origin}: {entry.filename} has {rows:,} rows and {columns:,} columns, but"
            f" datasets.toml says {entry.rows:,} rows and at most {info.d:,} columns; {advice}"
        )
