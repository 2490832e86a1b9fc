"""The contents of `datasets.toml` for each data set: task, sizes, files, the papers' splits, and
how to obtain it; and user registries: names for the user's files, in the file or folder that
RFX_DATASETS names, else ~/.config/rfx/datasets.toml.

    [people]
    train = "people.csv"      # next to this file
    test = "people-test.csv"  # optional
    task = "binary"           # optional

Other keys, all optional: title, target, ignore, categorical, dates, header, missing, zero_based,
encoding.
"""

import difflib
import os
import re
import tomllib
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from rfx import env
from rfx.data import textfiles
from rfx.data.reading import MISSING, Reading
from rfx.errors import UsageError, or_near, quoted

TASKS = ("binary", "multiclass", "regression")
_TEXT, _FLAG, _COLUMNS = "words", "true or false", "a list of columns"
_FIELDS: dict[str, str | tuple[str, ...]] = {
    "train": _TEXT,
    "test": _TEXT,
    "task": TASKS,
    "title": _TEXT,
    "target": _TEXT,
    "ignore": _COLUMNS,
    "header": _FLAG,
    "missing": MISSING,
    "zero_based": _FLAG,
    "encoding": _TEXT,
    "categorical": _COLUMNS,
    "dates": _COLUMNS,
}


@dataclass(frozen=True)
class OwnSet:
    """The name, its registry, the paths of the training and optional test rows, and the task if
    given.
    """

    name: str
    registry: str
    train: str
    test: str | None
    task: str | None
    title: str
    reading: Reading

    @property
    def paths(self) -> list[str]:
        return [self.train] + ([] if self.test is None else [self.test])


def own_files() -> list[Path]:
    """The existing registries. UsageError if RFX_DATASETS names none."""
    folder = Path(os.environ.get("XDG_CONFIG_HOME") or env.home_dir() / ".config")
    usual, named = folder / "rfx" / "datasets.toml", os.environ.get("RFX_DATASETS")
    place = Path(named) if named else usual
    if named and not place.exists():
        raise UsageError(
            f"RFX_DATASETS is {named!r:.200}, which does not exist; it must be a registry file or a"
            " folder that contains one"
        )
    if named and place.is_dir():
        return sorted(place.glob("*.toml"))
    return [place] if os.path.lexists(place) else []


def _own() -> dict[str, OwnSet]:
    """All sets of all registries by name. UsageError with the file and the data set."""
    sets: dict[str, OwnSet] = {}
    for path in own_files():
        try:
            for name, entry in tomllib.loads(path.read_text("utf-8-sig")).items():
                if _plain(name) in _by_any_name() or name in sets:
                    other = sets[name].registry if name in sets else "rfx itself"
                    raise UsageError(f"{name} is the name of a data set of {other}; choose another")
                sets[name] = _entry(os.path.realpath(path), name, entry)
        except UsageError as error:
            raise UsageError(f"{path}: {error}") from None
        except OSError as error:
            raise UsageError(
                f"the registry {path} can't be read: {error.strerror or error}"
            ) from None
        except (ValueError, RecursionError) as error:  # of bytes that are not UTF-8 too
            raise UsageError(f"{path} is not TOML: {error!s:.200}") from None
    return sets


def _entry(path: str, name: str, entry) -> OwnSet:
    if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}", name):
        raise UsageError(
            f"a data set can't be called {quoted(name)}; a name is made of letters, digits, _, -"
            " and ., 100 at most"
        )
    if not isinstance(entry, dict) or "train" not in entry:
        raise UsageError(
            f"{name} is {quoted(entry)}; it must be a table [{name}] with train = FILE"
        )
    for key, value in entry.items():
        if key not in _FIELDS:
            raise UsageError(f"{name} has an unknown field {quoted(key)}{or_near(key, _FIELDS)}")
        if not _is_good(value, wanted := _FIELDS[key]):
            shown = f"one of {', '.join(wanted)}" if isinstance(wanted, tuple) else wanted
            raise UsageError(f"{key} of {name} is {quoted(value)}; it must be {shown}")
    if "encoding" in entry:
        textfiles.known(entry["encoding"], f"encoding of {name}")
    # relative to the registry; ~ is a home folder
    train, test = (
        os.path.join(os.path.dirname(path), os.path.expanduser(entry.get(role, "")))
        for role in ("train", "test")
    )
    options: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value
        for key, value in entry.items()
        if key not in ("train", "test", "task", "title")
    }
    reading = Reading(**options)
    title, task = entry.get("title", f"of {path}"), entry.get("task")
    return OwnSet(name, path, train, test if "test" in entry else None, task, title, reading)


def _is_good(value: Any, wanted: str | tuple[str, ...]) -> bool:
    """Whether a field has a value of the kind required by _FIELDS."""
    if isinstance(wanted, tuple):
        return value in wanted
    if wanted == _COLUMNS:
        return isinstance(value, list) and all(isinstance(column, str) for column in value)
    return isinstance(value, bool if wanted == _FLAG else str) and value != ""


# ---------------------------------------------------------------------- user registries


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
class DatasetInfo:
    """One data set. n is the number of rows of all its splits together, d of inputs; classes is 0
    for regression.

    `labels` maps labels of the files to labels of the data set; if given, rows with other labels
    are dropped. `substitute_for` names the data set that this one replaces; `obtain` explains how
    to get the files. `own` is the entry of a user registry (`OwnSet`); n, d and classes are
    then 0.
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
        parts = ((spec.train, spec.n_train), (spec.test, spec.n_test))
        return bool(spec.pool) or any(
            size is not None and size != sum(self.file(role).rows for role in roles)
            for roles, size in parts
        )

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
        return DatasetInfo(name, sets[name].task or "", 0, 0, 0, sets[name].title, own=sets[name])
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
