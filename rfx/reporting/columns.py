"""The columns of a table of rows: what the runs were given, as far as it varies among them, and what came of them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from rfx.errors import UsageError, or_near
from rfx.records.result import seconds_train
from rfx.reporting import seeds
from rfx.reporting.cells import count, short

# What a run was given, in this order, with its heading; options that are not here follow by their own names.
_GIVEN = {
    "dataset": "data set", "method": "method", "label": "setting", "split": "split", "test": "test rows", "kernel": "kernel",
    "solver": "solver", "n_features": "D", "n_grids": "R", "block_size": "R of a block", "gamma": "gamma", "lam": "lambda",
    "seed": "seed", "threads": "threads",
}  # fmt: skip
_OTHER_NAMES = {"setting": "label", "D": "n_features", "R": "n_grids", "lambda": "lam", "data": "dataset"}
# What came of it: heading, how it is written
OUTCOMES = {
    "score": ("score", lambda value: f"{value:.4f}"), "model_size": ("model size", count), "seconds_train": ("train, s", short),
    "seconds_predict": ("predict, s", short), "peak_rss_mb": ("memory, MB", count),
}  # fmt: skip
ALWAYS = ("dataset", "method")
# Columns that are shown when they differ at all; the others when rows of one method on one data set differ in them.
_MAIN = frozenset(("label", "kernel", "n_features", "n_grids", "block_size", "gamma", "lam", "seed"))


def outcome(row: dict, name: str):
    """One of OUTCOMES of a row."""
    return seconds_train(row) if name == "seconds_train" else row[name]


class Each(Sequence):
    """What a function makes of each row, made when it is asked for, so that many rows take no memory."""

    def __init__(self, rows: Sequence, made: Callable[[Mapping], dict]):
        self._rows, self._made = rows, made

    def __len__(self):
        return len(self._rows)

    def __getitem__(self, place):
        return self._made(self._rows[place])

    def __iter__(self):
        return map(self._made, self._rows)


@dataclass(frozen=True)
class Columns:
    """What the runs of some rows were given: of the `names` those that vary, and for each row by name the `values` as used, such
    as a lambda that was chosen by validation, and as `asked` for, which does not vary with the seed. same: what all rows have."""

    names: list[str]
    varying: list[str]
    values: Each
    asked: Each
    same: dict[str, object]

    def heading(self, name: str) -> str:
        return heading(name)

    def constant(self) -> str:
        """What is the same in all rows, in one line; what a table leaves out."""
        same = [name for name in self.names if name not in ALWAYS and self.same.get(name) is not None]
        return ", ".join(f"{self.heading(name)} {written(name, self.same[name])}" for name in same)

    def resolve(self, name: str) -> str:
        """A column's name by what a person calls it; UsageError for one that no row has."""
        found = _OTHER_NAMES.get(name.strip(), name.strip().replace("-", "_"))
        if found not in self.names:
            raise UsageError(f"no row has a column {name.strip()}{or_near(name.strip(), self.names)}")
        return found


def heading(name: str) -> str:
    """What a person calls a column."""
    return _GIVEN.get(name, name)


_NOTHING = object()


def of(rows: Sequence[Mapping]) -> Columns:
    """The columns of rows of a results file."""
    values = Each(rows, values_of)
    made = any(row["status"] == "ok" for row in rows)
    same: dict | None = None
    there: dict[str, object] = {}  # of each name the first value among the runs that ended well, _NOTHING once there is another
    alike: dict[tuple, dict] = {}  # of the runs of one method on one data set the first values
    differ: set[str] = set()
    names: dict[str, None] = {}
    for row, one in zip(rows, values):
        if same is None:
            same = dict(one)
        for name in [name for name, value in same.items() if one.get(name) != value]:
            del same[name]
        if made and row["status"] != "ok":
            names.update(dict.fromkeys(one))
            continue  # of a run that failed the defaults are not known
        first = alike.setdefault((one["dataset"], one["method"]), one)
        for name, value in one.items():
            if name not in names:
                names[name] = None
            if name in differ:
                continue
            before = first.get(name, _NOTHING)
            # 1 and 1.0 are written in different ways
            if before is not value and (type(before) is not type(value) or before != value):
                differ.add(name)
            elif name in _MAIN:
                before = there.setdefault(name, value)
                if before is not value and (type(before) is not type(value) or before != value):
                    there[name] = _NOTHING
        if len(first) != len(one) or first.keys() != one.keys():
            differ |= first.keys() ^ one.keys()
    known = [name for name in _GIVEN if name in names]
    known += sorted(names.keys() - set(known))
    several = differ | {name for name, value in there.items() if value is _NOTHING}
    varying = [name for name in known if name not in ALWAYS and name in several]
    return Columns(known, varying, values, Each(rows, _asked), same or {})


def _asked(row) -> dict:
    found = seeds.inputs(row)
    for name in ("seed", "threads"):
        if row[name] is not None:
            found[name] = row[name]
    return found


def values_of(row) -> dict:
    """What the run of a row was given, as it was used."""
    found = _asked(row)
    for name in ("lam", "n_features"):
        if row[name] is not None:
            found[name] = row[name]
    if isinstance(found.get("gamma"), (int, float)):
        used = (row["params"].get("kernel_params") or {}).get("gamma")
        found["gamma"] = found["gamma"] if used is None else used
    return found


def written(name: str, value) -> str:
    """A given value as a cell has it."""
    if type(value) is str:
        return value
    if value is None:
        return "-"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (int, float)) and name != "seed":
        return (
            count(value) if isinstance(value, int) and abs(value) >= 10_000 else f"{value:,}" if isinstance(value, int) else f"{value:.4g}"
        )
    return str(value)
