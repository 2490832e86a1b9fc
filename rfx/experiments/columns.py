"""The columns of a table of rows: what the runs were given, as far as it varies among them, and what came of them."""

from dataclasses import dataclass

from rfx.errors import UsageError, or_near
from rfx.experiments import seeds
from rfx.experiments.results import seconds_train
from rfx.experiments.tables import count, short

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


@dataclass(frozen=True)
class Columns:
    """What the runs of some rows were given: of the `names` those that vary, and for each row by name the `values` as used, such
    as a lambda that was chosen by validation, and as `asked` for, which does not vary with the seed."""

    names: list[str]
    varying: list[str]
    values: list[dict]
    asked: list[dict]

    def heading(self, name: str) -> str:
        return heading(name)

    def constant(self) -> str:
        """What is the same in all rows, in one line; what a table leaves out."""
        if not self.values:
            return ""
        first = self.values[0]
        same = [name for name in self.names if name not in ALWAYS and all(one.get(name) == first.get(name) for one in self.values)]
        return ", ".join(f"{self.heading(name)} {written(name, first[name])}" for name in same if first.get(name) is not None)

    def resolve(self, name: str) -> str:
        """A column's name by what a person calls it; UsageError for one that no row has."""
        found = _OTHER_NAMES.get(name.strip(), name.strip().replace("-", "_"))
        if found not in self.names:
            raise UsageError(f"no row has a column {name.strip()}{or_near(name.strip(), self.names)}")
        return found


def heading(name: str) -> str:
    """What a person calls a column."""
    return _GIVEN.get(name, name)


def of(rows: list[dict]) -> Columns:
    """The columns of rows of a results file."""
    values = [_given(row) for row in rows]
    names = [name for name in _GIVEN if any(name in one for one in values)]
    names += sorted({name for one in values for name in one} - set(names))
    # of a run that failed the defaults are not known
    made = [one for one, row in zip(values, rows) if row["status"] == "ok"] or values
    alike: dict[tuple, list[dict]] = {}
    for one in made:
        alike.setdefault(tuple(one.get(name) for name in ALWAYS), []).append(one)

    def varies(name):
        told = len({repr(one[name]) for one in made if name in one}) > 1
        return (name in _MAIN and told) or any(len({repr(one.get(name)) for one in group}) > 1 for group in alike.values())

    return Columns(names, [name for name in names if name not in ALWAYS and varies(name)], values, [_asked(row) for row in rows])


def _asked(row) -> dict:
    return seeds.inputs(row) | {"seed": row["seed"], "threads": row["threads"]}


def _given(row) -> dict:
    found = _asked(row) | {name: row[name] for name in ("lam", "n_features") if row[name] is not None}
    used = (row["params"].get("kernel_params") or {}).get("gamma")
    if isinstance(found.get("gamma"), (int, float)) and used is not None:
        found["gamma"] = used
    return {name: value for name, value in found.items() if value is not None}


def written(name: str, value) -> str:
    """A given value as a cell has it."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (int, float)) and name != "seed":
        return (
            count(value) if isinstance(value, int) and abs(value) >= 10_000 else f"{value:,}" if isinstance(value, int) else f"{value:.4g}"
        )
    return str(value)
