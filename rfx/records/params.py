"""The inputs and outcomes of a run that have no column in a results file: `params` of its row."""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, Self, TypeVar

from rfx.errors import DataError
from rfx.fitting.choice_trace import ChoiceTrace
from rfx.types import JsonObject

T = TypeVar("T")


class Missing(DataError, KeyError):
    """A row lacks an entry required by a table or figure."""

    def __str__(self) -> str:
        return str(self.args[0])


def known(entries: JsonObject) -> JsonObject:
    """The entries without None and numbers that are not finite."""
    return {
        name: value
        for name, value in entries.items()
        if value is not None and not (isinstance(value, float) and not math.isfinite(value))
    }


@dataclass(frozen=True)
class BaselineScores:
    """The scores of simple models.

    Parameters
    ----------
    metric, on : str
        The measure, and the rows in words.
    constant : float
    linear, boosting : float or None
        None if the measure is undefined, or the model would take too long.
    iterations : int or None
        Of boosting.
    standard_errors : dict or None
        Those of the differences from a method's score, by the name of the simple model; None
        without decision values of the method.
    seconds : float or None
        Of all of them.
    """

    metric: str
    on: str
    constant: float
    linear: float | None = None
    boosting: float | None = None
    iterations: int | None = None
    standard_errors: dict[str, float | None] | None = None
    seconds: float | None = None

    @classmethod
    def of_dict(cls, entry: JsonObject) -> Self:
        """From the entry of a results row."""
        return cls(**entry)

    def as_dict(self) -> dict[str, object]:
        """The entry of a results row."""
        return {name: value for name, value in vars(self).items() if value is not None}

    def standard_error(self, name: str) -> float:
        """That of the difference from the score of a simple model; 0 if it is unknown."""
        return (self.standard_errors or {}).get(name) or 0.0


class Entry(Generic[T]):
    """An entry of params as an attribute; None if the row has none.

    Parameters
    ----------
    read : callable, optional
        Makes the value of the attribute from the entry.
    """

    def __init__(self, read: Callable[[Any], T] | None = None) -> None:
        self.read = read

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, params: "Params", owner: type) -> T | None:
        value: T | None = params.entries.get(self.name)
        return value if value is None or self.read is None else self.read(value)


@dataclass(frozen=True, eq=False)
class Params(Mapping[str, Any]):
    """Entries by name. Those that rfx prints, or judges a model by, are also attributes.

    `params["norm"]` raises Missing, with a message that names the row, if there is no such entry.

    Parameters
    ----------
    entries : mapping
        As JSON has them.
    where : str
        The row, for messages.
    """

    entries: JsonObject = field(default_factory=dict)
    where: str = "the row"

    # how the training ended, and its choices
    ended = Entry[str]()
    error = Entry[str]()
    round_gap = Entry[float]()
    target_scaling = Entry[str]()
    n_classes = Entry[int]()
    explicit = Entry[dict[str, object]]()
    calibration = Entry[str]()
    # its score, by which rows, and what it is compared with
    measure = Entry[str]()
    measures = Entry[dict[str, float]]()
    scored_on = Entry[str]()
    rmse_by_target = Entry[list[float]]()
    train_score = Entry[float]()
    constant_score = Entry[float]()
    baseline = Entry[BaselineScores](BaselineScores.of_dict)
    held_out_score = Entry[float]()
    held_out_on = Entry[str]()
    leave_one_out = Entry[float]()
    leave_one_out_rows = Entry[int]()
    leave_one_out_by = Entry[str]()
    choice_metric = Entry[str]()
    choice_score = Entry[float]()
    choice_on = Entry[str]()
    doubt = Entry[str]()
    below = Entry[str]()
    # of a trial of a search: the lambdas with their scores, and the folds
    path = Entry[list[tuple[float | None, float]]]()
    parts = Entry[int]()
    # its costs
    least_seconds_cpu = Entry[float]()
    seconds_read = Entry[float]()
    seconds_validation = Entry[float]()
    seconds_held_out = Entry[float]()
    seconds_baseline = Entry[float]()
    seconds_total = Entry[float]()

    @classmethod
    def of_file(cls, entries: JsonObject, path: object, line: int) -> Self:
        """The known entries of a line of a file: without None, and measurements that are not
        numbers.
        """
        kept = known(entries)
        if "curve" in kept:
            kept["curve"] = [known(point) for point in kept["curve"]]
        return cls(kept, f"{path}, line {line}")

    @property
    def choices(self) -> list[ChoiceTrace]:
        """The choices of the training's options; Missing if one of them is incomplete."""
        try:
            return [ChoiceTrace.of_dict(step) for step in self.entries.get("validation") or ()]
        except TypeError:
            where = f"{self.where} lacks a part of params.validation"
            raise Missing(f"{where}; repeat the run") from None

    @property
    def gamma(self) -> float | None:
        """The bandwidth of the kernel."""
        bandwidth: float | None = self.entries.get("kernel_params", {}).get("gamma")
        return bandwidth

    def __getitem__(self, name: str) -> Any:
        try:
            return self.entries[name]
        except KeyError:
            raise Missing(f"{self.where} lacks params.{name}; repeat the run") from None

    def __iter__(self) -> Iterator[str]:
        return iter(self.entries)

    def __len__(self) -> int:
        return len(self.entries)

    def __contains__(self, name: object) -> bool:
        return name in self.entries

    def get(self, name: str, default: Any = None) -> Any:
        """The value of an entry; the default if there is none."""
        return self.entries.get(name, default)

    def __or__(self, more: Mapping[str, object]) -> "Params":
        """The same with more entries, or other values."""
        return Params({**self.entries, **more}, self.where)
