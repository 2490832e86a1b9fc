"""The columns of a table of rows: the inputs of the runs that vary, and the outcomes."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from rfx.errors import UsageError, or_near
from rfx.numerals import significant
from rfx.records.result import SHARES, picker, seconds_train
from rfx.reporting import seeds
from rfx.reporting.cells import Cell, count, decimals, short, words

# Inputs of a run in this order, with their headings; other options follow by name.
_GIVEN = {
    "dataset": "data set",
    "method": "method",
    "label": "setting",
    "split": "split",
    "test": "test rows",
    "target": "target",
    "kernel": "kernel",
    "solver": "solver",
    "n_features": "D",
    "n_grids": "R",
    "block_size": "R of a block",
    "gamma": "gamma",
    "lam": "lambda",
    "seed": "seed",
    "threads": "threads",
}
_OTHER_NAMES = {
    "setting": "label",
    "D": "n_features",
    "R": "n_grids",
    "lambda": "lam",
    "data": "dataset",
}
# Outcomes: heading, format
OUTCOMES = {
    "score": ("score", significant),
    "model_size": ("model size", count),
    "seconds_train": ("train, s", short),
    "seconds_predict": ("predict, s", short),
    "peak_rss_mb": ("memory, MB", count),
}
ALWAYS = ("dataset", "method")
# Columns shown if they differ at all. Others are shown if rows of one method on one data set differ
# in them.
_MAIN = frozenset(
    ("label", "kernel", "n_features", "n_grids", "block_size", "gamma", "lam", "seed")
)


def score_format(metric: str | None) -> Callable[[float], str]:
    """How a score is written: a share with four decimals, an error with four digits."""
    return decimals(4) if metric in SHARES else significant


def outcome(row: dict, name: str):
    """One of OUTCOMES of a row."""
    return seconds_train(row) if name == "seconds_train" else row[name]


_outcomes = picker("score", "model_size", "seconds_predict", "peak_rss_mb")


def outcomes(row) -> tuple[float | None, ...]:
    """All OUTCOMES of a row, in order."""
    score, model_size, predict, memory = _outcomes(row)
    return score, model_size, seconds_train(row), predict, memory


class Each(Sequence):
    """The result of a function for each item, such as a row. It is computed on access, so that many
    rows need no memory.
    """

    def __init__(self, items: Sequence, made: Callable):
        self._items, self._made = items, made

    def __len__(self):
        return len(self._items)

    def __getitem__(self, place):
        return self._made(self._items[place])

    def __iter__(self):
        return map(self._made, self._items)


@dataclass(frozen=True)
class Columns:
    """The inputs of the runs of some rows.

    names: the inputs that vary. values: for each row, by name, the values in use, such as a lambda
    chosen by validation. asked: the requested values, which do not vary with the seed. same: the
    inputs that all rows share.
    """

    names: list[str]
    varying: list[str]
    values: Each
    asked: Each
    same: dict[str, object]

    def heading(self, name: str) -> str:
        return heading(name)

    def constant(self) -> str:
        """The inputs that all rows share, in one line; a table omits them."""
        same = [
            name for name in self.names if name not in ALWAYS and self.same.get(name) is not None
        ]
        return ", ".join(f"{self.heading(name)} {written(name, self.same[name])}" for name in same)

    def resolve(self, name: str) -> str:
        """A column's internal name from its displayed name; UsageError if no row has it."""
        found = _OTHER_NAMES.get(name.strip(), name.strip().replace("-", "_"))
        if found not in self.names:
            raise UsageError(
                f"no row has a column {name.strip()}{or_near(name.strip(), self.names)}"
            )
        return found


def heading(name: str) -> str:
    """The displayed name of a column."""
    return _GIVEN.get(name, name)


_NOTHING = object()


class _Differences:
    """Which inputs vary among runs, which are added one by one."""

    def __init__(self):
        self.same: dict | None = None  # shared by all
        self.names: dict[str, None] = {}
        # the first value of each name, _NOTHING after a different one
        self._there: dict[str, object] = {}
        # the first values of the runs of one method on one data set
        self._alike: dict[tuple, dict] = {}
        self._like: dict[tuple, dict] = {}  # the first values of runs with the same names
        self._differ: set[str] = set()

    def add(self, given: dict, known: bool) -> None:
        """Add a run. known: whether the defaults are known. They are unknown for a failed run if
        other runs succeeded.
        """
        if self.same is None:
            self.same = dict(given)
        if not known:
            self.same = {n: value for n, value in self.same.items() if given.get(n) == value}
            self.names.update(dict.fromkeys(given))
            return
        same = self.same
        group = given["dataset"], given["method"]
        like = self._like.setdefault((*group, *given), given)
        if like is given:
            changed = list(given)
            self.names.update(dict.fromkeys(given))
            for name in [name for name in same if name not in given]:
                del same[name]
        else:
            # values shared with an earlier run change nothing
            changed = [name for name, value in like.items() if given[name] is not value]
        first = self._alike.setdefault(group, given)
        for name in changed:
            value = given[name]
            if name in same and value != same[name]:
                del same[name]
            if name in self._differ:
                continue
            if _other(first.get(name, _NOTHING), value):
                self._differ.add(name)
            elif name in _MAIN and _other(self._there.setdefault(name, value), value):
                self._there[name] = _NOTHING
        if like is given:
            self._differ |= first.keys() ^ given.keys()

    @property
    def several(self) -> set[str]:
        """The names with several values."""
        return self._differ | {name for name, value in self._there.items() if value is _NOTHING}


def _other(before, value) -> bool:
    """Whether two equal values are written differently, such as 1 and 1.0."""
    return before is not value and (type(before) is not type(value) or before != value)


def of(rows: Sequence[Mapping], asked: bool = False) -> Columns:
    """The columns of rows of a results file. asked: compare the requested values instead of the
    chosen ones.
    """
    values, found = Each(rows, _asked if asked else values_of), _Differences()
    made = any(row["status"] == "ok" for row in rows)
    for row, given in zip(rows, values):
        found.add(given, row["status"] == "ok" or not made)
    names = [name for name in _GIVEN if name in found.names]
    names += sorted(found.names.keys() - set(names))
    several = found.several
    varying = [name for name in names if name not in ALWAYS and name in several]
    return Columns(names, varying, values, Each(rows, _asked), found.same or {})


_seed_and_threads, _lam_and_features = picker("seed", "threads"), picker("lam", "n_features")


def _asked(row) -> dict:
    found = seeds.inputs(row)
    seed, threads = _seed_and_threads(row)
    if seed is not None:
        found["seed"] = seed
    if threads is not None:
        found["threads"] = threads
    return found


def values_of(row) -> dict:
    """The inputs of a row's run, as used."""
    found = _asked(row)
    lam, n_features = _lam_and_features(row)
    if lam is not None:
        found["lam"] = lam
    if n_features is not None:
        found["n_features"] = n_features
    found |= _used(row)
    if isinstance(found.get("gamma"), (int, float)):
        used = (row["params"].get("kernel_params") or {}).get("gamma")
        found["gamma"] = found["gamma"] if used is None else used
    return found


_kernel_and_solver = picker("kernel", "solver")


def _used(row) -> dict:
    """The chosen values that differ from the requested ones."""
    asked = seeds.asked_of(row)
    if not asked:
        return {}
    kernel, solver = _kernel_and_solver(row)
    used = {"kernel": kernel, "solver": solver, "method": row["method"]} | {
        name: row["params"].get(name) for name in asked if name not in ("lam", "n_features")
    }
    explicit = row["params"].get("explicit") or {}
    used |= {name: explicit.get(name) for name in asked if used.get(name) is None}
    return {name: value for name, value in used.items() if name in asked and value is not None}


def written(name: str, value) -> str:
    """An input value as text for a cell."""
    if type(value) is str:
        return value
    if value is None:
        return "-"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (int, float)) and name != "seed":
        return (
            count(value)
            if isinstance(value, int) and abs(value) >= 10_000
            else f"{value:,}"
            if isinstance(value, int)
            else f"{value:.4g}"
        )
    return str(value)


def cell(name: str, value) -> Cell:
    """An input value as a cell. The same value returns the same cell, because a table has many."""
    kind = type(value)
    # 0.0 has two written forms, and lists are not hashable
    return (
        _cell(name, value)
        if kind is str or kind is int or (kind is float and value)
        else words(written(name, value))
    )


@lru_cache(4096, typed=True)
def _cell(name: str, value: str | float) -> Cell:
    return words(written(name, value))
