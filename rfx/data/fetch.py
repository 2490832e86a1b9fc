"""Fetching data sets: from a mirror or from where they are published, checked, complete or not at all.

A file is downloaded (pooch), decompressed or converted in a work folder, compared with its checksum, and only then moved
to its place in the data folder: what lies there is whole. One process at a time works on a file; the others wait.
"""

import contextlib
import fcntl
import hashlib
import logging
import os
import shutil
import sys
import time
from pathlib import Path
from urllib.parse import unquote, urlsplit

from rfx import env
from rfx.data import archives, registry
from rfx.errors import DataError, LockedError, NoData

log = logging.getLogger(__name__)
PAUSES = (1.0, 3.0, 9.0)  # seconds before the second, third and fourth attempt at a download
PATIENCE = 900.0  # seconds to wait for another process that is fetching the same file
_TIMEOUT = 60  # seconds without a byte
_WRAPPED = (".xz", ".bz2", ".gz")


class _Missing(Exception):
    """There is no such file at this URL."""


def place(entry: registry.DataFile) -> Path:
    """Where a file lies when it is fetched."""
    return env.data_dir() / entry.filename


def paths(name_or_path) -> list:
    """The files that reading a data set's name or a file reads, there or not: none for a built-in set, `-` for itself."""
    base = str(name_or_path).partition(":")[0]
    return [place(entry) for entry in registry.get(base).files] if registry.has(base) else [name_or_path]


def is_fetched(name: str) -> bool:
    """Whether every file of a data set is in the data folder; built-in sets always are."""
    return all(place(entry).exists() for entry in registry.get(name).files)


def is_obtainable(name: str) -> bool:
    """Whether `fetch` has somewhere to look for every file: a published URL, or a mirror folder that holds it."""
    folder = _mirror_folder()
    return all(
        place(entry).exists() or entry.sources or (folder and _in_folder(folder, _candidates([entry.filename])))
        for entry in registry.get(name).files
    )


def fetch(name, offline=False, progress=None, roles=None) -> dict[str, Path]:
    """Make sure that the files of a data set are in the data folder; returns {role: path}, {} for a built-in set.

    `offline` forbids the network (a mirror that is a folder is still used); `progress` shows a bar on standard error,
    by default when that is a terminal; `roles` restricts what is fetched. Raises UsageError for an unknown name,
    NoData when a file can't be had, LockedError when another process has been at it for too long.
    """
    info = registry.get(name)
    progress = sys.stderr.isatty() if progress is None else progress
    wanted = [entry for entry in info.files if roles is None or entry.role in roles]
    return {entry.role: _fetched(info, entry, offline, progress) for entry in wanted}


def _fetched(info, entry, offline, progress) -> Path:
    target = place(entry)
    if target.exists():
        return target
    try:
        with _locked(target):
            if not target.exists():
                with _work_folder(target) as work:
                    _make(info, entry, target, work, offline, progress)
    except OSError as error:
        where = f"{target} can't be written ({error.strerror or error})"
        raise NoData(f"{where}; RFX_DATA names another folder for data") from None
    return target


@contextlib.contextmanager
def _locked(target):
    folder = target.parent / ".locks"
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / target.name, "w") as handle:
        deadline = time.monotonic() + PATIENCE
        told = False
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise LockedError(f"another process has been fetching {target} for {PATIENCE:.0f} s") from None
                if not told:
                    log.warning("another process is fetching %s; waiting for it", target.name)
                    told = True
                time.sleep(0.1)
        yield


@contextlib.contextmanager
def _work_folder(target):
    """A folder for what is not whole yet, beside the data so that the last move is atomic; a killed run's is cleared."""
    folder = target.parent / ".parts" / target.name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _make(info, entry, target, work, offline, progress):
    plain = work / "plain"
    names = [entry.filename] + [source.filename for source in entry.sources if not entry.convert]
    found = _from_mirror(names, work, offline, progress)
    if found:
        _unpack(*found, plain)
        _install(entry, plain, target, found[1])
        return
    if not entry.sources:
        hint = info.obtain or "RFX_MIRROR may name a folder or URL that has it"
        raise NoData(f"{info.name}: {entry.filename} has no public download; {hint}")
    sources = [_source(info, entry, source, work, offline, progress) for source in entry.sources]
    if entry.convert:
        _convert(entry, [path for path, _ in sources], plain)
    else:
        _unpack(*sources[0], plain)
    _install(entry, plain, target, sources[0][1])


def _source(info, entry, source, work, offline, progress):
    """(path, origin) of one source, as served."""
    found = _from_mirror([source.filename], work, offline, progress) if entry.convert else None
    if found:
        return found
    if offline:
        raise NoData(
            f"{info.name}: {place(entry)} is not there, and offline nothing is fetched from {source.url}; `rfx fetch {info.name}` gets it"
        )
    path = work / f"source-{len(list(work.iterdir()))}"
    try:
        _download(source.url, path, progress)
    except _Missing:
        raise NoData(f"{info.name}: {source.url} is not there (404); the file may have moved") from None
    for kind in ("md5", "sha256"):
        _check(path, source.url, kind, getattr(source, kind))
    return path, source.url


def _candidates(names):
    return list(dict.fromkeys(name + suffix for name in names for suffix in ("", *_WRAPPED)))


def _mirror_folder() -> Path | None:
    """The folder that RFX_MIRROR names, None when it is not set or a web address."""
    mirror = os.environ.get("RFX_MIRROR", "")
    parts = urlsplit(mirror)
    if not mirror or parts.scheme in ("http", "https"):
        return None
    folder = Path(unquote(parts.path)) if parts.scheme == "file" else Path(mirror).expanduser()
    if not folder.is_dir():
        raise NoData(f"RFX_MIRROR is {mirror}, which is neither a folder nor an http(s) address")
    return folder


def _in_folder(folder, candidates):
    return next((folder / name for name in candidates if (folder / name).is_file()), None)


def _from_mirror(names, work, offline, progress):
    """(path, origin) of the first of `names`, as it is or compressed, that RFX_MIRROR has; None when it has none."""
    candidates = _candidates(names)
    folder = _mirror_folder()
    if folder:
        path = _in_folder(folder, candidates)
        return (path, str(path)) if path else None
    mirror = os.environ.get("RFX_MIRROR")
    if not mirror or offline:
        return None
    for name in candidates:
        url, path = f"{mirror.rstrip('/')}/{name}", work / "mirrored"
        with contextlib.suppress(_Missing):
            _download(url, path, progress)
            return path, url
    return None


def _download(url, path, progress):
    """Download url to path, again after a failure that may pass. _Missing when it is not there; else NoData."""
    import pooch
    import requests

    downloader = pooch.HTTPDownloader(
        progressbar=bool(progress), chunk_size=1 << 16, timeout=_TIMEOUT, headers={"Accept-Encoding": "identity"}
    )
    for pause in (*PAUSES, None):
        try:
            downloader(url, str(path), None)
            return
        except requests.RequestException as error:
            response = getattr(error, "response", None)
            code = response.status_code if response is not None else None
            if code in (404, 410):
                raise _Missing(url) from None
            passing = code is None or code >= 500 or code == 429
            what = f"{url} can't be downloaded ({f'status {code}' if code else _reason(error)})"
            if pause is None or not passing:
                tries = f" after {len(PAUSES) + 1} attempts" if passing else ""
                raise NoData(f"{what}{tries}; RFX_MIRROR may name another place that has it") from None
        log.warning("%s; trying again in %g s", what, pause)
        time.sleep(pause)


def _reason(error):
    """The innermost message of a chain of exceptions: requests wraps urllib3, which wraps the socket's."""
    while error.__context__ is not None:
        error = error.__context__
    return str(error) or type(error).__name__


def _unpack(path, origin, plain):
    try:
        with archives.open_plain(path) as source, open(plain, "wb") as sink:
            shutil.copyfileobj(source, sink, 1 << 20)
    except archives.DAMAGE as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise  # the disk's doing, not the archive's
        raise NoData(f"{origin} is damaged or cut off ({error}); nothing was kept, try again") from None


def _convert(entry, paths, plain):
    from rfx.data import convert

    try:
        with open(plain, "wb") as handle:
            convert.CONVERTERS[entry.convert](paths, handle)
    except (KeyError, DataError, *archives.DAMAGE) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        origin = " and ".join(source.url for source in entry.sources)
        raise NoData(f"{origin} is not what rfx expects ({error}), so {entry.filename} can't be made") from None


def _install(entry, plain, target, origin):
    _check(plain, origin, "sha256", entry.sha256, of=f"{entry.filename}, unpacked,")
    if plain.stat().st_size == 0:
        raise NoData(f"{origin} is empty; nothing was kept")
    os.replace(plain, target)


def _check(path, origin, kind, expected, of="the file"):
    if expected is None:
        return
    with open(path, "rb") as handle:
        found = hashlib.file_digest(handle, kind).hexdigest()
    if found != expected:
        raise NoData(
            f"{origin}: {of} has {kind} {found}, but datasets.toml says {expected}; nothing was kept. Try again, or from another RFX_MIRROR"
        )
