"""Data sets by name. `datasets.toml` has the task, sizes, files and papers' splits of each, and
where `fetch` finds it. User registries name the user's files, in the file or folder that
RFX_DATASETS names, else ~/.config/rfx/datasets.toml.

    [people]
    train = "people.csv"      # next to this file
    test = "people-test.csv"  # optional
    task = "binary"           # optional

Other keys, all optional: title, target, ignore, categorical, dates, header, missing, zero_based,
encoding.
"""

import contextlib
import difflib
import hashlib
import json
import logging
import os
import shutil
import sys
import time
import tomllib
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from rfx import env, files, lazy
from rfx._version import __version__
from rfx.data import textfiles
from rfx.data.reading import MISSING, Reading
from rfx.errors import DataError, LockedError, NoData, UsageError, or_near, quoted

TASKS = ("binary", "multiclass", "regression")
_TEXT, _FLAG, _COLUMNS = (str, "words"), (bool, "true or false"), (list, "a list of columns")
# The type of a field, or its values, and how a message names them.
_FIELDS: dict[str, tuple[type | tuple[str, ...], str]] = {
    "train": _TEXT,
    "test": _TEXT,
    "task": (TASKS, f"one of {', '.join(TASKS)}"),
    "title": _TEXT,
    "target": _TEXT,
    "ignore": _COLUMNS,
    "header": _FLAG,
    "missing": (MISSING, f"one of {', '.join(MISSING)}"),
    "zero_based": _FLAG,
    "encoding": _TEXT,
    "categorical": _COLUMNS,
    "dates": _COLUMNS,
}


def own_files() -> list[Path]:
    """The registries, whether the one that RFX_DATASETS names exists or not."""
    folder = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    named = os.environ.get("RFX_DATASETS")
    place = Path(named or folder / "rfx" / "datasets.toml")
    if named and place.is_dir():
        return sorted(place.glob("*.toml"))
    return [place] if named or place.exists() else []


def _own() -> "dict[str, DatasetInfo]":
    """All sets of all registries by name. UsageError with the file and the data set."""
    sets: dict[str, DatasetInfo] = {}
    for path in own_files():
        try:
            entries = tomllib.loads(path.read_text("utf-8-sig"))
        except ValueError as error:  # of bytes that are not UTF-8 too
            raise UsageError(f"{path} is not TOML: {error!s:.200}") from None
        for name, entry in entries.items():
            if _plain(name) in _by_any_name() or name in sets:
                own = sets[name].own if name in sets else None
                other = "rfx itself" if own is None else own.registry
                raise UsageError(
                    f"{path}: {name} is the name of a data set of {other}; choose another"
                )
            sets[name] = _entry(os.path.realpath(path), name, entry)
    return sets


def _entry(path: str, name: str, entry) -> "DatasetInfo":
    if not isinstance(entry, dict) or "train" not in entry:
        raise UsageError(
            f"{path}: {name} is {quoted(entry)}; it must be a table [{name}] with train = FILE"
        )
    for key, value in entry.items():
        if key not in _FIELDS:
            near = or_near(key, _FIELDS)
            raise UsageError(f"{path}: {name} has an unknown field {quoted(key)}{near}")
        allowed, shown = _FIELDS[key]
        if value not in allowed if isinstance(allowed, tuple) else not isinstance(value, allowed):
            raise UsageError(f"{path}: {key} of {name} is {quoted(value)}; it must be {shown}")
    paths = {}
    options: dict[str, Any] = {}
    for key, value in entry.items():
        if key in ("train", "test"):
            # relative to the registry; ~ is a home folder
            paths[key] = os.path.join(os.path.dirname(path), os.path.expanduser(value))
        elif key not in ("task", "title"):
            options[key] = tuple(map(str, value)) if isinstance(value, list) else value
    own = OwnSet(path, reading=Reading(**options), **paths)
    title = entry.get("title", f"of {path}")
    return DatasetInfo(name, entry.get("task", ""), 0, 0, 0, title, own=own)


# ---------------------------------------------------------------------- sets of rfx


PATH = Path(__file__).with_name("datasets.toml")
PAPERS = ("yen2014", "wu2016", "sinha2016", "dai2014")


@dataclass(frozen=True)
class Source:
    """A download: its URL (None: only a mirror has it), its name in a mirror, and its checksums as
    served.
    """

    url: str | None
    filename: str
    sha256: str | None = None
    md5: str | None = None


@dataclass(frozen=True)
class DataFile:
    """One LIBSVM file of a data set.

    `filename` is its name in the data folder, plain; `sha256` and `bytes` refer to the plain file
    as published; `copies` are the sha256 of other texts known to contain the same numbers, as a
    mirror may have them. `sources` are its inputs, in order: usually the file itself, possibly
    compressed. `convert` names the function of `rfx.data.convert` that converts the
    sources to LIBSVM text, or `instead`, a source that only a mirror has. Without sources, the file
    has no download and the user must put it there.
    """

    role: str
    filename: str
    rows: int
    sha256: str | None = None
    bytes: int | None = None
    copies: tuple[str, ...] = ()
    sources: tuple[Source, ...] = ()
    convert: str | None = None
    instead: Source | None = None


@dataclass(frozen=True)
class SplitSpec:
    """The rows that a paper trains and tests on.

    Either `pool` (roles of files whose rows are concatenated, shuffled by `seed` and split into
    n_train and n_test rows), or `train` and `test` (roles of files), from which n_train and n_test
    rows are drawn, or all if None. A run's nonzero seed gives another draw.
    """

    train: tuple[str, ...] = ()
    test: tuple[str, ...] = ()
    pool: tuple[str, ...] = ()
    n_train: int | None = None
    n_test: int | None = None
    seed: int = 0

    @property
    def roles(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(self.pool + self.train + self.test))


@dataclass(frozen=True)
class OwnSet:
    """The registry of a user's set, the paths of its training and optional test rows, and how they
    are read.
    """

    registry: str
    train: str
    reading: Reading
    test: str | None = None

    @property
    def paths(self) -> list[str]:
        return [self.train] + ([] if self.test is None else [self.test])


@dataclass(frozen=True)
class DatasetInfo:
    """One data set. n is the number of rows of all its splits together, d of inputs; classes is 0
    for regression.

    `labels` maps labels of the files to labels of the data set; if given, rows with other labels
    are dropped. `substitute_for` names the data set that this one replaces; `obtain` explains how
    to get the files. `own` is the entry of a user registry; n, d and classes are then 0, and the
    task is empty if it is not given.
    """

    name: str
    task: str
    n: int
    d: int
    classes: int
    title: str
    files: tuple[DataFile, ...] = ()
    splits: dict[str, SplitSpec] = field(default_factory=dict)
    labels: dict[float, float] = field(default_factory=dict)
    aliases: tuple[str, ...] = ()
    builtin: bool = False
    obtain: str | None = None
    substitute_for: str | None = None
    note: str | None = None
    own: OwnSet | None = None

    @property
    def papers(self) -> tuple[str, ...]:
        return tuple(paper for paper in PAPERS if paper in self.splits)

    def draws(self, split: str) -> bool:
        """Whether the rows of that paper's split are drawn by a seed because the paper does not
        specify them.
        """
        spec = self.splits[split]
        if spec.pool:
            return True
        for roles, size in ((spec.train, spec.n_train), (spec.test, spec.n_test)):
            if size is not None and size != sum(self.file(role).rows for role in roles):
                return True
        return False

    def file(self, role) -> DataFile:
        return next(entry for entry in self.files if entry.role == role)


def _file(entry: dict) -> DataFile:
    """The file of a table; its url and md5 are short for a single source."""
    url, md5 = entry.get("url"), entry.get("md5")
    sources = entry.get("sources", [{"url": url, "md5": md5}] if url else [])
    named = [
        Source(**{"filename": urlsplit(source["url"]).path.rpartition("/")[2]} | source)
        for source in sources
    ]
    plain = {key: value for key, value in entry.items() if key not in ("url", "md5")}
    instead = Source(None, **entry["instead"]) if "instead" in entry else None
    return DataFile(**_frozen(plain) | {"sources": tuple(named), "instead": instead})


def _frozen(entry: dict) -> dict[str, Any]:
    """The entry with tuples instead of lists."""
    return {key: tuple(value) if isinstance(value, list) else value for key, value in entry.items()}


def _info(name: str, entry: dict) -> DatasetInfo:
    parts = {
        "files": tuple(map(_file, entry.get("files", ()))),
        "splits": {
            paper: SplitSpec(**_frozen(one)) for paper, one in entry.get("splits", {}).items()
        },
        "labels": {float(label): float(new) for label, new in entry.get("labels", {}).items()},
    }
    return DatasetInfo(name=name, **_frozen(entry) | parts)


@lru_cache
def _entries() -> dict[str, DatasetInfo]:
    with open(PATH, "rb") as handle:
        return {name: _info(name, entry) for name, entry in tomllib.load(handle).items()}


def _plain(name: str) -> str:
    return name.lower().replace("_", "-")


@lru_cache
def _by_any_name() -> dict[str, DatasetInfo]:
    return {
        _plain(alias): info for info in _entries().values() for alias in (info.name, *info.aliases)
    }


def names() -> list[str]:
    """The names of all data sets, in the order of the file, followed by those of user
    registries.
    """
    return [*_entries(), *_own()]


def has(name: str) -> bool:
    """Whether `name` (or an alias; case and _ or - are ignored) is a data set. UsageError for an
    invalid user registry.
    """
    return _plain(name) in _by_any_name() or name in _own()


def get(name: str) -> DatasetInfo:
    """The data set called `name`; UsageError with similar names if there is none."""
    if _plain(name) in _by_any_name():
        return _by_any_name()[_plain(name)]
    if name in (sets := _own()):
        return sets[name]
    near = difflib.get_close_matches(_plain(name)[:100], [*_by_any_name(), *sets], n=3)
    near = [_by_any_name()[alias].name if alias in _by_any_name() else alias for alias in near]
    hint = f"did you mean {' or '.join(dict.fromkeys(near))}?" if near else ""
    raise UsageError(
        f"there is no data set called {quoted(name)}; {hint or '`rfx datasets` lists them'}"
    )


def for_paper(paper: str) -> list[DatasetInfo]:
    """The data sets used by a paper, including substitutes; UsageError for an unknown paper."""
    if paper not in PAPERS:
        raise UsageError(f"paper {quoted(paper)} is unknown; there are {', '.join(PAPERS)}")
    return [info for info in _entries().values() if paper in info.splits]


# ----------------------------------------------------------------------
# Fetch data sets from a mirror or their publisher, verified and complete, or not at all.
#
# A file is downloaded, decompressed or converted in a work folder, verified, and only then moved
# into the data folder, so files there are complete. One process at a time works on a file; the
# others wait.
#
# Files are verified by the registry's checksum, or by that of their own first copy. If no checksum
# is published, the first copy must be LIBSVM text with the rows and columns stated in the registry.
# Its sha256 is stored next to the data (.checked/NAME). Every later copy, and the file itself when
# it has changed, is compared with it.

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


def place(entry: DataFile) -> Path:
    """The path of a fetched file."""
    return env.data_dir() / entry.filename


def paths(name_or_path) -> list:
    """The files read for a data set's name or a file, whether they exist or not: none for a
    built-in set, `-` for itself.
    """
    base = str(name_or_path).partition(":")[0]
    if not has(base):
        return [name_or_path]
    info = get(base)
    return [place(entry) for entry in info.files] if info.own is None else info.own.paths


def is_fetched(name: str) -> bool:
    """Whether every file of a data set is in the data folder; built-in sets always are."""
    return all(place(entry).exists() for entry in get(name).files)


def is_obtainable(name: str) -> bool:
    """Whether `fetch` has a source for every file: a published URL, or a mirror folder that
    contains it.
    """
    return all(
        place(entry).exists() or entry.sources or _in_folder([entry.filename])
        for entry in get(name).files
    )


def fetch(name, offline=False, roles=None, trust=False) -> dict[str, Path]:
    """Make the files of a data set available in the data folder; return {role: path}, {} for a
    built-in set.

    `offline` forbids the network (a mirror folder is still used); `roles` restricts the files;
    `trust` accepts a file without a checksum in the registry, even if it differs from its first
    copy or from the registered size. Raises UsageError for an unknown name, NoData if a file is
    unavailable or wrong, LockedError if another process has been fetching it for too long.
    """
    info = get(name)
    wanted = [entry for entry in info.files if roles is None or entry.role in roles]
    return {entry.role: _Fetch(info, entry, offline, trust).path() for entry in wanted}


def largest(info: DatasetInfo, entry: DataFile) -> int:
    """The maximum unpacked size of a file: the size in the registry, else an estimate from its
    rows.
    """
    return entry.bytes or min(entry.rows * (32 + 28 * info.d), _LARGEST)


@dataclass
class _Fetch:
    """One file of a data set, and its sources."""

    info: DatasetInfo
    entry: DataFile
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

    def source(self, source: Source, work: Path) -> tuple[Path, str]:
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
    downloader = lazy.pooch.HTTPDownloader(sys.stderr.isatty(), timeout=SILENCE, headers=_HEADERS)
    for pause in (*PAUSES, None):
        try:
            with open(path, "wb") as file:
                downloader(url, _Limited(file, most, url), None)
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


def check_of(entry: DataFile) -> str:
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


def _place(entry: DataFile) -> Path:
    return env.data_dir() / ".checked" / entry.filename


def _record(entry: DataFile) -> dict:
    """The result of the last check of a file: its sha256 and its status; empty if there is none."""
    with contextlib.suppress(OSError, ValueError):
        return json.loads(_place(entry).read_text())
    return {}


def _status(path) -> dict[str, int]:
    status = os.stat(path)
    return {name: getattr(status, f"st_{name}") for name in ("size", "mtime_ns", "ctime_ns")}


def keep(entry: DataFile, target, sha256: str) -> None:
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
    record = _record(entry)
    good = record.items() >= _status(target).items()
    good = good and (not entry.sha256 or record["sha256"] in (entry.sha256, *entry.copies))
    if trust or not good:
        advice = "put a complete one there"
        if entry.sources:
            advice = f"remove it, and `rfx fetch {info.name}` downloads it again"
        advice += ", or move it and use it as a file"
        keep(entry, target, verified(info, entry, target, str(target), advice, trust))
