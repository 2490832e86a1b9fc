"""Fetch data sets from a mirror or their publisher, verified and complete, or not at all.

A file is downloaded, decompressed or converted in a work folder, verified (`checked`), and only
then moved into the data folder, so files there are complete. One process at a time works on a file;
the others wait.
"""

import contextlib
import logging
import os
import shutil
import sys
from pathlib import Path
from urllib.parse import unquote, urlsplit

from rfx import env, lazy
from rfx.data import archives
from rfx.data.registry import checked, registry
from rfx.errors import DataError, LockedError, NoData

log = logging.getLogger(__name__)
PATIENCE = 900.0  # seconds to wait for another process that fetches the same file
_WRAPPED = (".xz", ".bz2", ".gz")
_LARGEST = 64 << 30  # maximum bytes of a file, unless its size or RFX_MAX_BYTES sets a lower limit
_LARGEST_SOURCE = 1 << 30  # maximum bytes of a conversion source, and of a file with few rows


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
    folder = _mirror_folder()
    return all(
        place(entry).exists()
        or entry.sources
        or (folder and _in_folder(folder, _candidates([entry.filename])))
        for entry in registry.get(name).files
    )


def fetch(name, offline=False, progress=None, roles=None, trust=False) -> dict[str, Path]:
    """Make the files of a data set available in the data folder; return {role: path}, {} for a
    built-in set.

    `offline` forbids the network (a mirror folder is still used); `progress` shows a bar on
    standard error, by default if that is a terminal; `roles` restricts the files; `trust` accepts a
    file without a checksum in the registry, even if it differs from its first copy or from the
    registered size. Raises UsageError for an unknown name, NoData if a file is unavailable or
    wrong, LockedError if another process has been fetching it for too long.
    """
    info = registry.get(name)
    progress = sys.stderr.isatty() if progress is None else progress
    wanted = [entry for entry in info.files if roles is None or entry.role in roles]
    return {entry.role: _Fetch(info, entry, offline, progress, trust).path() for entry in wanted}


def largest(info: registry.DatasetInfo, entry: registry.DataFile) -> int:
    """The maximum unpacked size of a file: the size in the registry, else an estimate from its
    rows.
    """
    declared = entry.bytes or min(entry.rows * (32 + 28 * info.d), _LARGEST)
    return min(declared, archives.max_bytes() or declared)


class _Fetch:
    """One file of a data set, and its sources."""

    def __init__(self, info, entry, offline, progress, trust):
        self.info, self.entry, self.offline, self.progress, self.trust = (
            info,
            entry,
            offline,
            progress,
            trust,
        )
        self.target, self.largest = place(entry), largest(info, entry)

    def path(self) -> Path:
        """The path of the file."""
        try:
            if not self.target.exists():
                with _locked(self.target):
                    if not self.target.exists():
                        with _work_folder(self.target) as work:
                            self.make(work)
                        return self.target
        except OSError as error:
            where = f"{self.target} can't be written ({error.strerror or error})"
            raise NoData(f"{where}; RFX_DATA sets another folder for data") from None
        try:
            checked.in_place(self.info, self.entry, self.target, self.trust)
        except OSError as error:
            raise NoData(f"{self.target} can't be read: {error.strerror or error}") from None
        return self.target

    def make(self, work):
        """Put the file into the data folder, using the work folder `work`."""
        entry, plain = self.entry, work / "plain"
        names = [entry.filename] + [
            source.filename for source in entry.sources if not entry.convert
        ]
        if found := self.mirrored(names, work):
            path, origin = found
            self.unpack(path, origin, plain)
        elif not entry.sources:
            hint = self.info.obtain or "RFX_MIRROR may name a folder or URL that has it"
            raise NoData(f"{self.info.name}: {entry.filename} has no public download; {hint}")
        else:
            instead = entry.instead and self.mirrored([entry.instead.filename], work)
            sources = [
                self.source(source, work)
                for source in ([entry.instead] if instead else entry.sources)
            ]
            origin = " and ".join(origin for _, origin in sources)
            if entry.convert:
                _convert(entry, [path for path, _ in sources], plain, origin)
            else:
                self.unpack(sources[0][0], origin, plain)
        if plain.stat().st_size == 0:
            raise NoData(f"{origin} is empty and was discarded")
        found = checked.fresh(self.info, entry, plain, origin, self.trust)
        os.replace(plain, self.target)
        checked.keep(entry, self.target, found)

    def source(self, source, work):
        """(path, origin) of one source, as served; verified, wherever it comes from."""
        path = work / f"source-{len(list(work.iterdir()))}"
        if self.entry.convert and (found := self.mirrored([source.filename], work)):
            mirrored, origin = found
            if Path(urlsplit(origin).path).name == source.filename:
                path = mirrored
            else:  # a mirror may compress it once more
                self.unpack(mirrored, origin, path, self.largest_source)
        elif self.offline:
            raise NoData(
                f"{self.info.name}: {self.target} does not exist, and offline mode does not"
                f" download {source.url}; run `rfx fetch {self.info.name}`"
            )
        else:
            origin = source.url
            if not self.download(source.url, path, self.largest_source):
                raise NoData(
                    f"{self.info.name}: {source.url} was not found (404); the file may have moved"
                )
        for kind in ("md5", "sha256"):
            expected = getattr(source, kind)
            if expected and (found := checked.digest(path, kind)) != expected:
                raise NoData(
                    f"{origin}: the file has {kind} {found}, but datasets.toml says {expected}; the"
                    " file was discarded. Try again, or use another RFX_MIRROR"
                )
        return path, origin

    @property
    def largest_source(self) -> int:
        """The maximum size of a source as served; compression rarely increases the size."""
        most = (
            max(self.largest, _LARGEST_SOURCE) if self.entry.convert else self.largest + (1 << 20)
        )
        return min(most, archives.max_bytes() or most)

    def mirrored(self, names, work):
        """(path, origin) of the first of `names`, plain or compressed, in RFX_MIRROR; None if there
        is none.
        """
        candidates = _candidates(names)
        folder = _mirror_folder()
        if folder:
            path = _in_folder(folder, candidates)
            return (path, str(path)) if path else None
        mirror = os.environ.get("RFX_MIRROR")
        if not mirror or self.offline:
            return None
        for name in candidates:
            url, path = f"{mirror.rstrip('/')}/{name}", work / f"mirrored-{name}"
            if self.download(url, path, self.largest_source):
                return path, url
        return None

    def download(self, url, path, limit) -> bool:
        """Download a file; return False if it does not exist."""
        from rfx.data.registry import download  # imports http.client and ssl

        try:
            download.download(url, path, limit, self.progress)
        except download.Missing:
            return False
        return True

    def unpack(self, path, origin, plain, limit=None):
        limit = limit or self.largest
        message = (
            f"{origin} unpacks to more than {limit:,} bytes, the maximum for {self.entry.filename};"
            " the file was discarded"
        )
        try:
            with archives.open_plain(path, limit, message) as source, open(plain, "wb") as sink:
                shutil.copyfileobj(source, sink, 1 << 20)
        except DataError as error:
            raise NoData(str(error)) from None
        except archives.DAMAGE as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise  # caused by the disk, not by the archive
            raise NoData(
                f"{origin} is damaged or truncated ({error}) and was discarded; try again"
            ) from None


@contextlib.contextmanager
def _locked(target):
    folder = target.parent / ".locks"
    folder.mkdir(parents=True, exist_ok=True)
    lock = lazy.filelock.FileLock(folder / target.name)
    try:
        lock.acquire(timeout=0)
    except lazy.filelock.Timeout:
        log.warning("another process is fetching %s; waiting for it", target.name)
        try:
            lock.acquire(timeout=PATIENCE)
        except lazy.filelock.Timeout:
            raise LockedError(
                f"another process has been fetching {target} for {PATIENCE:.0f} s"
            ) from None
    try:
        yield
    finally:
        lock.release()


@contextlib.contextmanager
def _work_folder(target):
    """A folder for incomplete files, next to the data so that the final move is atomic; a killed
    run's folder is cleared.
    """
    folder = target.parent / ".parts" / target.name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _candidates(names):
    return list(dict.fromkeys(name + suffix for name in names for suffix in ("", *_WRAPPED)))


def _mirror_folder() -> Path | None:
    """The folder named by RFX_MIRROR; None if unset or a web address."""
    mirror = os.environ.get("RFX_MIRROR", "")
    parts = urlsplit(mirror)
    if not mirror or parts.scheme in ("http", "https"):
        return None
    folder = (
        Path(unquote(parts.path)) if parts.scheme == "file" else Path(os.path.expanduser(mirror))
    )
    if not folder.is_dir():
        raise NoData(f"RFX_MIRROR is {mirror}, which is neither a folder nor an http(s) address")
    return folder


def _in_folder(folder, candidates):
    return next((folder / name for name in candidates if (folder / name).is_file()), None)


def _convert(entry, paths, plain, origin):
    from rfx.data.registry import convert  # imports numpy and numba

    try:
        with open(plain, "wb") as handle:
            convert.CONVERTERS[entry.convert](paths, handle)
    except (KeyError, DataError, *archives.DAMAGE) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise NoData(
            f"{origin} is not what rfx expects ({error}), so {entry.filename} can't be created"
        ) from None
