"""The typed record of a run and its outcome, a row of a results file."""

import logging
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, TypeAlias, TypeVar, get_args

from rfx.errors import DataError

# Maps a run's key to the steps of its solver.
FindTrace: TypeAlias = Callable[[str | None], list[dict[str, Any]]]
R = TypeVar("R", bound=Mapping[str, Any])

_log = logging.getLogger(__name__)
STATUSES = ("ok", "failed", "timeout", "interrupted")
# Measures between 0 and 1.
SHARES = frozenset(("accuracy", "balanced_accuracy", "auc", "f1"))


class Missing(DataError, KeyError):
    """A row lacks an entry required by a table or figure."""

    def __str__(self) -> str:
        return str(self.args[0])


class Params(dict[str, Any]):
    """Inputs and outcomes of a run without a column: names to values.

    `params["norm"]` raises Missing, with a message that names the row, if there is no such entry.
    """

    where = ""

    @classmethod
    def of(cls, entries: Mapping[str, Any], path: object, line: int) -> "Params":
        """The known entries of a line of a file: without None, and measurements that are not
        numbers.
        """
        params = cls(known(entries))
        if "curve" in params:
            params["curve"] = [known(point) for point in params["curve"]]
        if "kernel_params" in params:
            params["kernel_params"] = known(params["kernel_params"])
        params.where = f"{path}, line {line}"
        return params

    def __missing__(self, name: str) -> Any:
        raise Missing(f"{self.where} lacks params.{name}; repeat the run")


def known(entries: Mapping[str, Any]) -> dict[str, Any]:
    """The entries without None and numbers that are not finite."""
    return {
        name: value
        for name, value in entries.items()
        if value is not None and not (isinstance(value, float) and not math.isfinite(value))
    }


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Result(Mapping[str, Any]):
    """One row of a results file: a run and its outcome. As a mapping it has every column by name.

    A number is None if unknown. path and line state its origin, `traces` finds the steps of a key's
    solver, which the mapping has as `trace`; a row created by a run has them in `steps`.
    """

    key: str | None = None
    created: str | None = None
    status: str | None = None
    message: str | None = None
    dataset: str
    split: str | None = None
    task: str | None = None
    n_train: int | None = None
    n_test: int | None = None
    n_inputs: int | None = None
    method: str
    kernel: str | None = None
    solver: str | None = None
    lam: float | None = None
    n_features: int | None = None
    params: Mapping[str, Any] = field(default_factory=dict)
    seed: int | None = None
    metric: str | None = None
    score: float | None = None
    model_size: int | None = None
    model_bytes: int | None = None
    seconds_features: float | None = None
    seconds_fit: float | None = None
    seconds_predict: float | None = None
    peak_rss_mb: float | None = None
    objective: float | None = None
    gap: float | None = None
    n_iter: int | None = None
    converged: bool | None = None
    threads: int | None = None
    dtype: str | None = None
    rfx: str | None = None
    python: str | None = None
    numpy: str | None = None
    scipy: str | None = None
    numba: str | None = None
    liblinear: str | None = None
    libsvm: str | None = None
    blas: str | None = None
    cpu: str | None = None
    git_revision: str | None = None
    path: object = ""
    line: int = 0
    traces: FindTrace | None = None
    steps: list[dict[str, Any]] | None = None

    def __getitem__(self, name: str) -> Any:
        if name in TYPES:
            return getattr(self, name)
        if name == "trace" and self.traces is not None:
            return self.traces(self.key)
        if name == "trace" and self.steps is not None:
            return self.steps
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        return iter(COLUMNS)

    def __len__(self) -> int:
        return len(COLUMNS)

    def __hash__(self) -> int:
        return id(self)

    @property
    def where(self) -> str:
        """The file and the line, for messages."""
        return f"{self.path}, line {self.line}"

    def as_dict(self) -> dict[str, Any]:
        """All columns by name, with params as a dict: JSON serialisable."""
        return dict(self) | {"params": dict(self.params)}

    def with_params(self, **more: Any) -> "Result":
        """The same record with more entries of params."""
        return replace(self, params={**self.params, **more})


COLUMNS = tuple(one.name for one in fields(Result))[:-4]
# The type of each column.
TYPES: dict[str, type] = {
    one.name: dict if one.name == "params" else (get_args(one.type) or (one.type,))[0]
    for one in fields(Result)[:-4]
}


def seconds_train(row: Mapping[str, Any]) -> float | None:
    """Training time as defined in the papers: features and fit together."""
    fit, features = row.get("seconds_fit"), row.get("seconds_features")
    return None if fit is None else fit + (features or 0.0)


def _lacking(row: Mapping[str, Any], names: Iterable[str]) -> list[str]:
    """Those of `names` that a row lacks: columns, and entries of params as params.NAME."""
    places = {name: row["params"] if name.startswith("params.") else row for name in names}
    return [
        name for name, place in places.items() if place.get(name.removeprefix("params.")) is None
    ]


def having(rows: Iterable[R], *names: str) -> list[R]:
    """The rows that have all of `names`: columns, and entries of params as params.NAME."""
    return [row for row in rows if not _lacking(row, names)]


def complete(rows: Iterable[R], *names: str) -> list[R]:
    """`having` for the rows of a table or figure; warns about successful rows that lack an
    entry.
    """
    lacking = [(row, _lacking(row, names)) for row in rows]
    incomplete = [(row, absent) for row, absent in lacking if absent and row.get("status") == "ok"]
    if incomplete:
        first, absent = incomplete[0]
        place = first.where if isinstance(first, Result) else "a row"
        n_more = len(incomplete) - 1
        more = f", and {n_more:,} more rows are incomplete" if n_more else ""
        _log.warning("%s has no %s and is ignored%s; repeat the run", place, absent[0], more)
    return [row for row, absent in lacking if not absent]
