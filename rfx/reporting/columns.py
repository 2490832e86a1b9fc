"""The columns of a table of rows: the inputs of the runs that vary, and the outcomes."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from rfx import lazy
from rfx.errors import UsageError, or_near
from rfx.measures import SHARE, unit_of
from rfx.numerals import significant
from rfx.records.run import seconds_train
from rfx.reporting.cells import (
    Row,
    count,
    decimals,
    inputs_of,
    options_of,
    requested_of,
    short,
)

# Inputs of a run in this order, with their headings; other options follow by name.
_HEADINGS = {
    "dataset": "data set",
    "content": "state of the file",
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
# in them, or if methods on one data set differ in a value that is no default.
_MAIN = ("label", "kernel", "n_features", "n_grids", "block_size", "gamma", "lam", "seed")


def score_format(metric: str | None) -> Callable[[float], str]:
    """How a score is written: a share with four decimals, an error with four digits."""
    return decimals(4) if unit_of(metric) == SHARE else significant


def outcome(row: Row, name: str) -> float | None:
    """One of OUTCOMES of a row. The seconds of training include those of choosing options."""
    if name != "seconds_train":
        return row[name]
    seconds = seconds_train(row)
    if seconds is None:
        return None
    return seconds + (row.params.seconds_validation or 0.0)


def method(row: Row) -> str:
    """The method of a row's run as requested, such as auto, rather than the one it chose."""
    return requested_of(row).get("method") or row.method


@dataclass(frozen=True)
class Columns:
    """The inputs of the runs of some rows.

    names: all inputs. varying: those that differ. values: for each row, by name, the values in use,
    such as a lambda chosen by validation. requested: the requested values, which do not vary with
    the seed. same: the inputs that all rows share.
    """

    names: list[str]
    varying: list[str]
    values: list[dict]
    requested: list[dict]
    same: dict[str, object]

    def constant(self) -> str:
        """The inputs that all rows share, in one line; a table omits them."""
        shown = [name for name in self.names if name in self.same and name not in ALWAYS]
        return ", ".join(f"{heading(name)} {written(name, self.same[name])}" for name in shown)

    def resolve(self, heading: str) -> str:
        """A column's internal name from its displayed name; UsageError if no row has it."""
        heading = heading.strip()
        name = _OTHER_NAMES.get(heading, heading.replace("-", "_"))
        if name not in self.names:
            raise UsageError(f"no row has a column {heading}{or_near(heading, self.names)}")
        return name


def heading(name: str) -> str:
    """The displayed name of a column."""
    return _HEADINGS.get(name, name)


def of(rows: Sequence[Row], requested: bool = False) -> Columns:
    """The columns of rows of a results file. requested: compare the requested values instead of the
    chosen ones.
    """
    asked_values = [_requested(row) for row in rows]
    values = asked_values if requested else [values_of(row) for row in rows]
    present = {name for run in values for name in run}
    names = [name for name in _HEADINGS if name in present]
    names += sorted(present - set(names))
    if not values:
        return Columns(names, [], values, asked_values, {})
    # the defaults of a run that failed are unknown
    complete = [run for row, run in zip(rows, values) if row.status == "ok"] or values
    several = (_varying(complete) | _set_apart(asked_values)) - set(ALWAYS)
    varying = [name for name in names if name in several]
    same = values[0]
    for run in values:
        same = {name: value for name, value in same.items() if run.get(name) == value}
    return Columns(names, varying, values, asked_values, same)


def _varying(runs: Sequence[Mapping]) -> set[str]:
    """The inputs in which runs differ. 1 and 1.0 are written differently, so they differ."""
    frame = lazy.pandas.DataFrame([_typed_texts(run) for run in runs])
    distinct = frame.reindex(columns=_MAIN).nunique()
    groups = frame.fillna("").groupby(list(ALWAYS), sort=False).nunique().max()
    return {*distinct.index[distinct > 1], *groups.index[groups > 1]}


def _typed_texts(run: Mapping) -> dict[str, str]:
    return {name: f"{type(value)} {value!r}" for name, value in run.items()}


def _set_apart(runs: Sequence[Mapping]) -> set[str]:
    """The options in which runs on one data set differ, if one of them has a value that is not the
    default of its method.
    """
    values: dict[tuple[str, str], dict[str, bool]] = {}
    for run in runs:
        options, defaults = options_of(run["method"])
        for name in (options & run.keys()) - {"solver"}:
            chosen = {repr(run[name]): run[name] != defaults.get(name)}
            values.setdefault((run["dataset"], name), {}).update(chosen)
    return {name for (_, name), by in values.items() if len(by) > 1 and any(by.values())}


def _requested(row: Row) -> dict:
    """The inputs of a row's run, as requested."""
    more = {name: row.get(name) for name in ("seed", "threads")}
    return inputs_of(row) | {name: value for name, value in more.items() if value is not None}


def values_of(row: Row) -> dict:
    """The inputs of a row's run, as used."""
    values, explicit = _requested(row), row.params.explicit or {}
    values |= {name: row[name] for name in ("lam", "n_features") if row[name] is not None}
    for name in requested_of(row).keys() - {"lam", "n_features"}:
        is_column = name in ("kernel", "solver", "method")
        used = row[name] if is_column else row.params.get(name)
        if used is None:
            used = explicit.get(name)
        if used is not None:
            values[name] = used
    width = row.params.gamma
    if isinstance(values.get("gamma"), (int, float)) and width is not None:
        values["gamma"] = width
    return values


def written(name: str, value: object) -> str:
    """An input value as text for a cell."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return str(value).lower()
    if name == "seed" or not isinstance(value, (int, float)):
        return str(value)
    if isinstance(value, float):
        return f"{value:.4g}"
    return f"{value:,}"
