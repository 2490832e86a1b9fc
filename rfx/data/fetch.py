"""Fetch data sets from a mirror or their publisher, verified and complete, or not at all.

A file is downloaded, decompressed or converted in a work folder, verified, and only then moved into
the data folder, so files there are complete. One process at a time works on a file; the others
wait.

Files are verified by the registry's checksum, or by that of their own first copy. If no checksum is
published, the first copy must be LIBSVM text with the rows and columns stated in the registry. Its
sha256 is stored next to the data (.checked/NAME). Every later copy, and the file itself when it has
changed, is compared with it.
"""

import contextlib
import hashlib
import json
import logging
import os
import shutil
import sys
import time
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from urllib.parse import urlsplit

from rfx import env, files, lazy
from rfx._version import __version__
from rfx.data import registry, textfiles
from rfx.errors import DataError, LockedError, NoData

log = logging.getLogger(__name__)
WAIT = 900.0  # seconds to wait for another process that fetches the same file
PAUSES = (1.0, 3.0, 9.0)  # seconds before the second, third and fourth attempt of a download
SILENCE = 60.0  # seconds without an answer of a server
_WRAPPED = ("", ".xz", ".bz2", ".gz")
_LARGEST = 64 << 30  # maximum bytes of a file, unless its size sets a lower limit
_LARGEST_SOURCE = 1 << 30  # maximum bytes of a conversion source, and of a file with few rows
_DISCARDED = "the file was discarded. Try again, or use another RFX_MIRROR"
# the file as it is stored: its checksum is of the compressed content
_HEADERS = {"User-Agent": f"rfx/{__version__}", "Accept-Encoding": "identity"}


def place(entry: registry.DataFile) -> Path:
    """The path of a fetched file."""
    return env.data_dir() / entry.filename


def paths(name_or_path) -> list:
    """The files read for a data set's name or a file, whether they exist or not: none for a
    built-in set, `-` for itself.
    """
    base = str(name_or_path).partition(":")[0]
    if not registry.has(base):
        return [name_or_path]
    info = registry.get(base)
    return [place(entry) for entry in info.files] if info.own is None else info.own.paths


def is_fetched(name: str) -> bool:
    """Whether every file of a data set is in the data folder; built-in sets always are."""
    return all(place(entry).exists() for entry in registry.get(name).files)


def is_obtainable(name: str) -> bool:
    """Whether `fetch` has a source for every file: a published URL, or a mirror folder that
    contains it.
    """
    return all(
        place(entry).exists() or entry.sources or _in_folder([entry.filename])
        for entry in registry.get(name).files
    )


def fetch(name, offline=False, roles=None, trust=False) -> dict[str, Path]:
    """Make the files of a data set available in the data folder; return {role: path}, {} for a
    built-in set.

    `offline` forbids the network (a mirror folder is still used); `roles` restricts the files;
    `trust` accepts a file without a checksum in the registry, even if it differs from its first
    copy or from the registered size. Raises UsageError for an unknown name, NoData if a file is
    unavailable or wrong, LockedError if another process has been fetching it for too long.
    """
    info = registry.get(name)
    wanted = [entry for entry in info.files if roles is None or entry.role in roles]
    return {entry.role: _Fetch(info, entry, offline, trust).path() for entry in wanted}


def largest(info: registry.DatasetInfo, entry: registry.DataFile) -> int:
    """The maximum unpacked size of a file: the size in the registry, else an estimate from its
    rows.
    """
    return entry.bytes or min(entry.rows * (32 + 28 * info.d), _LARGEST)


@dataclass
class _Fetch:
    """One file of a data set, and its sources."""

    info: registry.DatasetInfo
    entry: registry.DataFile
    offline: bool
    trust: bool

    @cached_property
    def target(self) -> Path:
        return place(self.entry)

    def path(self) -> Path:
        """The path of the file."""
        try:
            if not self.target.exists():
                with _work_folder(self.target) as work:
                    if not self.target.exists():  # another process may have fetched it
                        self.make(work)
        except OSError as error:
            where = f"{self.target} can't be written ({error.strerror or error})"
            raise NoData(f"{where}; RFX_DATA sets another folder for data") from None
        in_place(self.info, self.entry, self.target, self.trust)
        return self.target

    def make(self, work: Path) -> None:
        """Put the file into the data folder, using the work folder `work`."""
        entry, plain = self.entry, work / "plain"
        names = [entry.filename]
        if not entry.convert:
            names += [source.filename for source in entry.sources]
        copy = self.mirrored(names, work)
        copies = [copy] if copy else self.served(work)
        origin = " and ".join(origin for _, origin in copies)
        if entry.convert and not copy:
            _convert(entry, [path for path, _ in copies], plain, origin)
        else:
            with (
                _reported(f"{origin} can't be unpacked (%s) and was discarded; try again"),
                textfiles.open_plain(copies[0][0]) as source,
                open(plain, "wb") as sink,
            ):
                limited = _Limited(sink, largest(self.info, entry), "it")
                shutil.copyfileobj(source, limited, 1 << 20)
        if plain.stat().st_size == 0:
            raise NoData(f"{origin} is empty and was discarded")
        sha256 = verified(self.info, entry, plain, origin, _DISCARDED, self.trust)
        os.replace(plain, self.target)
        keep(entry, self.target, sha256)

    def served(self, work: Path) -> list[tuple[Path, str]]:
        """(path, origin) of each source."""
        entry = self.entry
        if not entry.sources:
            hint = self.info.obtain or "RFX_MIRROR may name a folder or URL that has it"
            raise NoData(f"{self.info.name}: {entry.filename} has no public download; {hint}")
        if entry.instead and self.mirrored([entry.instead.filename], work):
            return [self.source(entry.instead, work)]
        return [self.source(source, work) for source in entry.sources]

    def source(self, source: registry.Source, work: Path) -> tuple[Path, str]:
        """(path, origin) of one source, as served; verified, wherever it comes from."""
        copy = self.mirrored([source.filename], work) if self.entry.convert else None
        if copy is None and self.offline:
            raise NoData(
                f"{self.info.name}: {self.target} does not exist, and offline mode does not"
                f" download {source.url}; run `rfx fetch {self.info.name}`"
            )
        path, origin = copy or (work / source.filename, str(source.url))
        if copy is None and not self.download(origin, path):
            raise NoData(f"{self.info.name}: {origin} was not found (404); the file may have moved")
        for kind, expected in (("md5", source.md5), ("sha256", source.sha256)):
            if expected and (actual := digest(path, kind)) != expected:
                raise NoData(
                    f"{origin}: the file has {kind} {actual}, but datasets.toml says {expected};"
                    f" {_DISCARDED}"
                )
        return path, origin

    def mirrored(self, names: list[str], work: Path) -> tuple[Path, str] | None:
        """(path, origin) of the first of `names`, plain or compressed, in RFX_MIRROR; None if there
        is none.
        """
        mirror = os.environ.get("RFX_MIRROR", "")
        if not _is_url(mirror):
            path = _in_folder(names)
            return None if path is None else (path, str(path))
        for name in () if self.offline else _candidates(names):
            url, path = f"{mirror.rstrip('/')}/{name}", work / f"mirrored-{name}"
            if self.download(url, path):
                return path, url
        return None

    def download(self, url: str, path: Path) -> bool:
        most = largest(self.info, self.entry) + (1 << 20)  # compression rarely increases the size
        return download(url, path, max(most, _LARGEST_SOURCE) if self.entry.convert else most)


def download(url: str, path, most: int) -> bool:
    """Download a file of at most so many bytes; False if it does not exist. After a transient
    failure, try again from the beginning. NoData if it is unavailable or too large.
    """
    requests = lazy.requests
    get = lazy.pooch.HTTPDownloader(sys.stderr.isatty(), timeout=SILENCE, headers=_HEADERS)
    for pause in (*PAUSES, None):
        try:
            with open(path, "wb") as file:
                get(url, _Limited(file, most, url), None)
            return True
        except requests.HTTPError as error:
            status = error.response.status_code if error.response is not None else 0
            if status in (404, 410):
                return False
            reason, passing = f"status {status}", status >= 500 or status == 429
        except requests.RequestException as error:
            # the cause stands at the end, such as "[Errno 111] Connection refused"
            reason, passing = str(error).rpartition(": ")[2].rstrip("'\")")[:200], True
        failure = f"{url} can't be downloaded ({reason})"
        if pause is None or not passing:
            tries = f" after {len(PAUSES) + 1} attempts" if passing else ""
            raise NoData(f"{failure}{tries}; RFX_MIRROR can name another source")
        log.warning("%s; trying again in %g s", failure, pause)
        time.sleep(pause)
    return False


class _Limited:
    """A file that takes at most `limit` bytes."""

    def __init__(self, file, limit: int, url: str):
        self.flush = file.flush
        self._file, self._left = file, limit
        self._message = f"{url} exceeds the expected maximum of {limit:,} bytes; nothing was saved"

    def write(self, data: bytes) -> None:
        self._left -= len(data)
        if self._left < 0:
            raise NoData(self._message)
        self._file.write(data)


@contextlib.contextmanager
def _work_folder(target: Path):
    """A folder for incomplete files, next to the data so that the final move is atomic, while no
    other process fetches the file; a killed run's folder is cleared.
    """
    locks, folder = target.parent / ".locks", target.parent / ".parts" / target.name
    locks.mkdir(parents=True, exist_ok=True)
    try:
        with lazy.filelock.FileLock(locks / target.name, timeout=WAIT):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            try:
                yield folder
            finally:
                shutil.rmtree(folder, ignore_errors=True)
    except lazy.filelock.Timeout:
        raise LockedError(f"another process has been fetching {target} for {WAIT:.0f} s") from None


def _candidates(names: list[str]) -> list[str]:
    return list(dict.fromkeys(name + suffix for name in names for suffix in _WRAPPED))


def _is_url(mirror: str) -> bool:
    return urlsplit(mirror).scheme in ("http", "https")


def _in_folder(names: list[str]) -> Path | None:
    """The first of `names`, plain or compressed, in the folder named by RFX_MIRROR, if any."""
    mirror = os.environ.get("RFX_MIRROR", "")
    if not mirror or _is_url(mirror):
        return None
    folder = Path(mirror).expanduser()
    if not folder.is_dir():
        raise NoData(f"RFX_MIRROR is {mirror}, which is neither a folder nor an http(s) address")
    return next((folder / name for name in _candidates(names) if (folder / name).is_file()), None)


def _convert(entry, paths: list[Path], plain: Path, origin: str) -> None:
    from rfx.data import convert  # imports numpy and numba

    message = f"{origin} is not what rfx expects (%s), so {entry.filename} can't be created"
    with _reported(message), open(plain, "wb") as handle:
        convert.CONVERTERS[entry.convert](paths, handle)


@contextlib.contextmanager
def _reported(message: str):
    """Turn the errors of a damaged file into NoData, but not those of the disk."""
    try:
        yield
    except (*textfiles.DAMAGE, KeyError, DataError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise NoData(message % error) from None


# ---------------------------------------------------------------------- checksums


def check_of(entry: registry.DataFile) -> str:
    """How a file is verified, as shown by `rfx datasets`."""
    if entry.sha256:
        return "sha256"
    if entry.sources and all(source.sha256 or source.md5 for source in entry.sources):
        return "source"
    recorded = _record(entry).get("sha256")
    return (
        "size" if recorded is None else "known copy" if recorded in entry.copies else "first copy"
    )


def digest(path, kind: str = "sha256") -> str:
    """The checksum of a file, in hexadecimal digits."""
    with open(path, "rb") as handle:
        return hashlib.file_digest(handle, kind).hexdigest()


def _place(entry: registry.DataFile) -> Path:
    return env.data_dir() / ".checked" / entry.filename


def _record(entry: registry.DataFile) -> dict:
    """The result of the last check of a file: its sha256 and its status; empty if there is none."""
    with contextlib.suppress(OSError, ValueError):
        return json.loads(_place(entry).read_text())
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
    expected, source = (
        (entry.sha256, "datasets.toml says") if entry.sha256 else (first, "was first")
    )
    if sha256 in (expected, *entry.copies) or (trust and not entry.sha256):
        return sha256
    accepts = "" if entry.sha256 else f"; `rfx fetch --trust {info.name}` accepts it"
    if expected:
        raise NoData(
            f"{origin}: {entry.filename} has sha256 {sha256}, but {source} {expected}; {advice}"
            f"{accepts}"
        )
    from rfx.data import libsvm  # imports numba

    try:
        rows, columns = libsvm.shape(path)
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
        record = _record(entry)
        good = record.items() >= _status(target).items()
        good = good and (not entry.sha256 or record["sha256"] in (entry.sha256, *entry.copies))
        if trust or not good:
            advice = "put a complete one there"
            if entry.sources:
                advice = f"remove it, and `rfx fetch {info.name}` downloads it again"
            advice += ", or move it and use it as a file"
            keep(entry, target, verified(info, entry, target, str(target), advice, trust))
    except OSError as error:
        raise NoData(f"{target} can't be read: {error.strerror or error}") from None
