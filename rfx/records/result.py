"""The typed record of a run and its outcome, a row of a results file, with the valid values of each
field.

A run creates a `Result`, or it is parsed from text once, when a file is read. Later code does not
check types again: a number is a finite float or an int in range, or None if unknown; `params` holds
entries without a column, checked by name.
"""

import json
import logging
import marshal
import math
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import chain, repeat
from operator import attrgetter
from typing import Any, TypeAlias, TypeVar

from rfx import numerals
from rfx.errors import DataError, quoted

# The check of an entry of params: from JSON to the stored value; ValueError if invalid.
Check: TypeAlias = Callable[[Any], Any]
# Maps a run's key to the steps of its solver.
FindTrace: TypeAlias = Callable[[str | None], list[dict[str, Any]]]
R = TypeVar("R", bound=Mapping[str, Any])

_log = logging.getLogger(__name__)
STATUSES = ("ok", "failed", "timeout", "interrupted")
# Measures between 0 and 1.
SHARES = frozenset(("accuracy", "balanced_accuracy", "auc", "f1"))
_MOST_WHOLE = 2**63 - 1
# Far above any measurement; squares and sums of such numbers are still finite.
_MOST = 1e100
# Differences of clock readings may be negative by rounding.
_ROUNDING = 1e-3
_MOST_DEPTH = 20  # of lists and tables within params
_KEPT = 4096  # kernels' parameters that are cached
_decode = json.JSONDecoder().raw_decode


class Missing(DataError, KeyError):
    """A row lacks an entry required by a table or figure."""

    def __str__(self) -> str:
        return str(self.args[0])


# ------------------------------------------------------------------------------------ single values


def whole(text: str) -> int:
    """An integer of a cell, also in spreadsheet notation: 7, 7.0, 7E+00; ValueError for any other
    text.
    """
    try:
        number = numerals.whole(text)
    except ValueError:
        real = numerals.real(text)
        if not math.isfinite(real) or real != int(real):
            raise ValueError("must be a whole number") from None
        number = int(real)
    if not 0 <= number <= _MOST_WHOLE:
        raise ValueError("must be from 0 to 2^63 - 1")
    return number


def real(text: str) -> float | None:
    """A number of a cell; None for nan, which means an unavailable measurement."""
    return _measured(numerals.real(text))


def _measured(number: float) -> float | None:
    if not math.isfinite(number):
        return None
    if abs(number) > _MOST:
        raise ValueError(f"must be at most {_MOST:g} in size")
    return number


def certificate(text: str) -> float | None:
    """A gap, which is infinite if a solver has no bound."""
    number = numerals.real(text)
    return number if number == math.inf else real(text)


def at_least_zero(text: str) -> float | None:
    return _not_negative(real(text))


def _not_negative(number: float | None) -> float | None:
    if number is None or number >= 0:
        return number
    raise ValueError("must be 0 or more")


def seconds(text: str) -> float | None:
    number = real(text)
    return 0.0 if number is not None and -_ROUNDING < number < 0 else _not_negative(number)


def _penalty(text: str | float) -> float:
    number = numerals.real(text) if isinstance(text, str) else float(text)
    if not 0 <= number <= _MOST:
        raise ValueError(f"must be from 0 to {_MOST:g}")
    return number


def _truth(text: str) -> bool:
    known = {"true": True, "false": False, "1": True, "0": False, "1.0": True, "0.0": False}
    if text.lower() not in known:
        raise ValueError("must be true or false")
    return known[text.lower()]


def _status(text: str) -> str:
    if text not in STATUSES:
        raise ValueError(f"must be one of {', '.join(STATUSES)}")
    return text


# ------------------------------------------------------------------------------------------- params


def _number(value: object) -> float | int | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ValueError("must be a number")
    return _measured(value)


def _amount(value: object) -> float | None:
    if type(value) is float and 0.0 <= value <= _MOST:
        return value
    return _not_negative(_number(value))


def _count(value: object) -> int:
    if type(value) is int and 0 <= value <= _MOST_WHOLE:
        return value
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _MOST_WHOLE:
        raise ValueError("must be a whole number from 0 to 2^63 - 1")
    return value


def _size(value: object) -> int:
    """A nonzero count."""
    if _count(value) == 0:
        raise ValueError("must be 1 or more")
    return _count(value)


def _word(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError("must be text")
    return value


def _word_or(kind: Check) -> Check:
    return lambda value: value if isinstance(value, str) else kind(value)


def _scalars(value: object) -> dict[str, Any]:
    """A kernel's parameters by name."""
    if not isinstance(value, dict):
        raise ValueError("must be a table of numbers by name")
    for name, one in value.items():
        if isinstance(one, str) and name != "gamma":
            continue
        if one is not None and (_number(one) is None or (name == "gamma" and one < 0)):
            raise ValueError(f"needs a finite number of 0 or more as {quoted(name)}")
    return {name: one for name, one in value.items() if one is not None}


def _words(value: object) -> dict[str, Any]:
    """The named requests of a run: words, numbers, or None."""
    if not isinstance(value, dict) or not all(
        one is None or isinstance(one, (str, int, float)) for one in value.values()
    ):
        raise ValueError("must be a table of words and numbers by name")
    return value


def _numbers(value: object, what: str, least: int = 1) -> list[Any]:
    if not isinstance(value, list) or len(value) < least:
        raise ValueError(f"must be a list of {what}")
    return value


def _point(
    value: object,
    counted: tuple[str, ...] = ("samples", "steps"),
    timed: tuple[str, ...] = ("seconds",),
) -> dict[str, Any]:
    """One point of a curve: counts and seconds are required, unavailable measurements are
    omitted.
    """
    if not isinstance(value, dict):
        raise ValueError("must be a list of points, each a table")
    found = dict(value)
    for name in (*counted, *timed):
        if name in found:
            found[name] = _count(found[name]) if name in counted else _amount(found[name])
    for name in ("loss", "error"):
        if name in found and (found[name] is None or _number(found[name]) is None):
            del found[name]
    return found


def _curve(value: object) -> list[dict[str, Any]]:
    if not isinstance(value, list):
        raise ValueError("must be a list of points")
    return [_point(point) for point in value]


def _validation(value: object) -> list[dict[str, Any]]:
    """The steps of a choice, each with its candidates: values of the options, then the error."""
    if not isinstance(value, list):
        raise ValueError("must be a list of steps")
    for step in value:
        if (
            not isinstance(step, dict)
            or type(step.get("by")) is not str
            or type(step.get("error")) is not str
        ):
            raise ValueError("must be a list of steps, each with the texts by and error")
        options, tried = step.get("options"), step.get("tried")
        if type(options) is not list or not all(type(name) is str for name in options):
            raise ValueError("each step must list the names of the options")
        if (
            type(tried) is not list
            or not tried
            or set(map(type, tried)) != {list}
            or set(map(len, tried)) != {len(options) + 1}
        ):
            raise ValueError("each step must list the candidates, with their values and error")
        if not set(map(type, chain.from_iterable(tried))) <= {int, float, str}:
            raise ValueError("the candidates' values must be numbers or words")
        errors = [one[-1] for one in tried]
        if not set(map(type, errors)) <= {int, float} or any(
            abs(error) > _MOST and error != math.inf for error in errors
        ):
            raise ValueError("each candidate must have a number as its error")
    return value


def _path(value: object) -> list[tuple[float, float | None]]:
    """(lambda, score) along a path."""
    if (
        not isinstance(value, list)
        or not all(isinstance(pair, list) and len(pair) == 2 for pair in value)
        or not value
    ):
        raise ValueError("must be a list of pairs, lambda and score")
    return [
        (_penalty("nan" if (number := _number(lam)) is None else number), _number(score))
        for lam, score in value
    ]


_WORD_OR_COUNT, _WORD_OR_SIZE, _WORD_OR_AMOUNT = (
    _word_or(_count),
    _word_or(_size),
    _word_or(_amount),
)
# kinds that accept any text, any number from 0 on, and any integer from this one on
_WORDS = frozenset((_word, _WORD_OR_COUNT, _WORD_OR_SIZE, _WORD_OR_AMOUNT))
_AMOUNTS = frozenset((_amount, _number, _WORD_OR_AMOUNT))
_WHOLE = dict.fromkeys(_AMOUNTS, 0) | {_count: 0, _WORD_OR_COUNT: 0, _size: 1, _WORD_OR_SIZE: 1}
_KINDS: dict[Check, str] = {
    _word: (
        "label doubt test target ignore missing loss features threshold ended error scored_on held_out_on"
        " host divergence sample_weight choice_metric choice_on groups time"
    ),
    _count: (
        "round n_classes n_blocks n_found per_step rounds samples joint joint_rows max_iter cv"
        " training_bytes"
    ),
    _size: "rank pool support parts",
    _WORD_OR_COUNT: "n_features_asked n_features",
    _WORD_OR_SIZE: "n_grids block_size",
    _WORD_OR_AMOUNT: "gamma lam rho nu rho_share",
    _amount: (
        "mae relative_error train_relative_error kappa kappa_bound norm pass_seconds seconds_steps"
        " seconds_nystrom seconds_joint seconds_scores seconds_maximise seconds_validation"
        " seconds_read seconds_total seconds_process"
        " held_out_mae"
    ),
    _number: "choice_score train_score held_out_score constant_score round_gap",
    _scalars: "kernel_params",
    _words: "asked",
    _curve: "curve",
    _validation: "validation",
    _path: "path",
}
PARAMS: dict[str, Check] = {name: kind for kind, names in _KINDS.items() for name in names.split()}


class Layout(dict[str, int]):
    """Names of entries to the positions of their values; shared by all Params with these names."""

    __slots__ = ("names",)

    def __init__(self, names: tuple[str, ...]) -> None:
        super().__init__((name, place) for place, name in enumerate(names))
        self.names = names


class Params(Mapping[str, Any]):
    """Inputs and outcomes of a run without a column: names to values, checked by name.

    Lists and tables are stored packed and unpacked on access, so that many rows need little memory.
    `params["norm"]` raises Missing, with a message that names the row, if there is no such entry.
    """

    __slots__ = ("_layout", "_line", "_path", "_values")

    def __init__(
        self, layout: Layout, values: tuple[Any, ...], path: object = "", line: int = 0
    ) -> None:
        self._layout, self._values, self._path, self._line = layout, values, path, line

    def __getitem__(self, name: str) -> Any:
        place = self._layout.get(name)
        if place is None:
            raise Missing(f"{self._path}, line {self._line} lacks params.{name}; repeat the run")
        value = self._values[place]
        return marshal.loads(value) if type(value) is bytes else value

    def get(self, name: str, default: Any = None) -> Any:
        place = self._layout.get(name)
        if place is None:
            return default
        value = self._values[place]
        return marshal.loads(value) if type(value) is bytes else value

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all entries; a tuple shared by many rows."""
        return self._layout.names

    def several(self, names: Iterable[str]) -> list[Any]:
        """The values of some entries, all of which must exist."""
        layout, values = self._layout, self._values
        return [
            marshal.loads(value) if type(value) is bytes else value
            for value in [values[layout[name]] for name in names]
        ]

    def __contains__(self, name: object) -> bool:
        return name in self._layout

    def __iter__(self) -> Iterator[str]:
        return iter(self._layout)

    def __len__(self) -> int:
        return len(self._layout)

    def __repr__(self) -> str:
        return repr(dict(self))


class Packer:
    """Creates Params from JSON texts. Data common to many rows, such as names, is stored once."""

    def __init__(self) -> None:
        self._layouts: dict[tuple[str, ...], Layout] = {}
        self._shared: dict[str | bytes, str | bytes] = {}
        self._kernels: dict[bytes, bytes] = {}

    def params(
        self, found: Sequence[dict[str, Any]], path: object, lines: Sequence[int]
    ) -> list[Params]:
        """Params of the JSON texts of some lines.

        Raises Wrong, with the entry's name, for an invalid value; if several lines are invalid, it
        may be any of them.
        """
        alike: dict[tuple[str, ...], list[int]] = {}
        for place, one in enumerate(found):
            alike.setdefault(tuple(one), []).append(place)
        made: list[Any] = [None] * len(found)
        for names, places in alike.items():
            columns = self._columns(names, [found[place] for place in places])
            rows = zip(*columns) if names else repeat(())
            lacks = any(None in column for column in columns)
            layout = self._layout(names)
            for place, values in zip(places, rows):
                if lacks and None in values:
                    kept = [
                        (name, value) for name, value in zip(names, values) if value is not None
                    ]
                    own, known = (
                        self._layout(tuple(name for name, _ in kept)),
                        tuple(value for _, value in kept),
                    )
                    made[place] = Params(own, known, path, lines[place])
                else:
                    made[place] = Params(layout, values, path, lines[place])
        if len(self._shared) > 100_000:
            self._shared.clear()
        return made

    def _layout(self, names: tuple[str, ...]) -> Layout:
        layout = self._layouts.get(names)
        if layout is None:
            layout = self._layouts[names] = Layout(names)
        return layout

    def _columns(self, names: tuple[str, ...], rows: list[dict[str, Any]]) -> list[list[Any]]:
        """The checked and packed values of entries that some rows all have, entry by entry."""
        columns = [list(column) for column in zip(*(row.values() for row in rows))]
        for name, column in zip(names, columns):
            kind = PARAMS.get(name)
            if kind is not None and not _plain(kind, column):
                self._check(name, kind, column)
        for name, column in zip(names, columns):
            types = set(map(type, column))
            if types == {str}:
                column[:] = map(self._shared.setdefault, column, column)
            elif types & {str, list, dict}:
                column[:] = [self._packed(name, value) for value in column]
        return columns

    def _check(self, name: str, kind: Check, column: list[Any]) -> None:
        """Replace the values of an entry by their stored form."""
        for place, value in enumerate(column):
            if value is None:
                continue
            try:
                column[place] = self._kernel(value) if kind is _scalars else kind(value)
            except (ValueError, OverflowError, TypeError, RecursionError) as error:
                raise Wrong(f"params.{name}", value, str(error)) from None

    def _kernel(self, value: Any) -> bytes:
        """A kernel's parameters, checked and packed; many rows share the same few."""
        given, known = marshal.dumps(value), self._kernels
        packed = known.get(given)
        if packed is None:
            if len(known) > _KEPT:
                known.clear()
            packed = known[given] = marshal.dumps(_scalars(value))
        return packed

    def _packed(self, name: str, value: Any) -> Any:
        """A value in stored form; values common to many rows are stored once."""
        shared, kind = self._shared, type(value)
        if kind is str:
            return shared.setdefault(value, value)
        if kind is list or kind is dict:
            if name not in PARAMS and depth(value) > _MOST_DEPTH:
                raise Wrong(f"params.{name}", "[", "is nested too deeply")
            packed = marshal.dumps(value)
            return shared.setdefault(packed, packed) if len(packed) < 100 else packed
        return value


def _plain(kind: Check, values: list[Any]) -> bool:
    """Whether the values of an entry all have one type and range, so that its check would change
    nothing; False if unsure.
    """
    types = set(map(type, values))
    if types == {str}:
        return kind in _WORDS
    if types == {float}:
        return kind in _AMOUNTS and _in_range(values, _MOST)
    return types == {int} and kind in _WHOLE and _in_range(values, _MOST_WHOLE, _WHOLE[kind])


def _in_range(numbers: list[Any], most: float, least: int = 0) -> bool:
    """Whether all of them are from `least` to `most`, none nan."""
    return min(numbers) >= least and max(numbers) <= most and math.isfinite(sum(numbers))


def params_of(text: str) -> dict[str, Any]:
    """The table in a cell of params; ValueError for any other text."""
    value, end = _decode(text) if text[:1] == "{" else ({}, 0)
    if end != len(text):
        value = json.loads(text)  # with or without spaces around it
    if not isinstance(value, dict):
        raise ValueError("must be a JSON table")
    if "\\u" in text:
        # an unpaired surrogate can't be written
        mended: dict[str, Any] = json.loads(
            json.dumps(value, ensure_ascii=False).encode(errors="replace")
        )
        return mended
    return value


def depth(value: object) -> int:
    """The nesting depth of lists and tables in a value."""
    deepest, todo = 0, [(value, 1)]
    while todo:
        one, own = todo.pop()
        deepest = max(deepest, own)
        inside = one.values() if isinstance(one, dict) else one if isinstance(one, list) else ()
        todo += [(part, own + 1) for part in inside if isinstance(part, (dict, list))]
    return deepest


class Wrong(ValueError):
    """An invalid value of a column, or of an entry of params: its name, the value, and the
    reason.
    """

    def __init__(self, name: str, value: object, reason: str) -> None:
        super().__init__(name, value, reason)
        self.name, self.value, self.reason = name, value, reason


# --------------------------------------------------------------------------------------- the record


@dataclass(frozen=True, slots=True, eq=False, repr=False, kw_only=True)
class Result(Mapping[str, Any]):
    """One row of a results file: a run and its outcome. As a mapping it has every column by name.

    Numbers are finite (a gap may be infinite) and in range, None if unknown. path and line state
    its origin, `more` has the file's other columns as text, `traces` finds the steps of a key's
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
    more: Mapping[str, str | None] = field(default_factory=dict)
    traces: FindTrace | None = None
    steps: list[dict[str, Any]] | None = None

    def __getitem__(self, name: str) -> Any:
        if name in _NAMES:
            return getattr(self, name)
        if name == "trace" and (self.steps is not None or self.traces is not None):
            return self.get(name)
        return self.more[name]

    def get(self, name: str, default: Any = None) -> Any:
        if name in _NAMES:
            return getattr(self, name)
        if name == "trace":
            found = self.steps if self.traces is None else self.traces(self.key)
            return default if found is None else found
        return self.more.get(name, default)

    def __iter__(self) -> Iterator[str]:
        yield from COLUMNS
        yield from self.more

    def __len__(self) -> int:
        return len(COLUMNS) + len(self.more)

    def __repr__(self) -> str:
        return repr(self.as_dict())

    def __hash__(self) -> int:
        return id(self)

    @classmethod
    def made(
        cls,
        columns: Sequence[Iterable[Any]],
        path: object,
        lines: Sequence[int],
        more: Iterable[Mapping[str, str | None]],
        traces: FindTrace | None,
    ) -> "list[Result]":
        """The records of these values, column by column; equivalent to calls of the class, but much
        faster.
        """
        rows = [object.__new__(cls) for _ in lines]
        given: tuple[Iterable[Any], ...] = (
            *columns,
            repeat(path),
            lines,
            more,
            repeat(traces),
            repeat(None),
        )
        for put, values in zip(_PUT, given):
            deque(map(put, rows, values), maxlen=0)
        return rows

    @property
    def where(self) -> str:
        """The file and the line, for messages."""
        return f"{self.path}, line {self.line}"

    def as_dict(self) -> dict[str, Any]:
        """All columns by name, with params as a dict: JSON serialisable."""
        return (
            {name: getattr(self, name) for name in COLUMNS}
            | {"params": dict(self.params)}
            | dict(self.more)
        )

    def with_params(self, **more: Any) -> "Result":
        """The same record with more entries of params."""
        return replace(self, params={**self.params, **more})


COLUMNS = tuple(one.name for one in fields(Result))[:-5]
_NAMES = frozenset(COLUMNS)
_PUT = [getattr(Result, one.name).__set__ for one in fields(Result)]

# Conversion of the cells of each numeric column.
VALUES: dict[str, Callable[[str], object]] = {
    **dict.fromkeys(
        "n_train n_test n_inputs n_features seed model_size model_bytes n_iter threads".split(),
        whole,
    ),
    **dict.fromkeys("seconds_features seconds_fit seconds_predict".split(), seconds),
    "lam": _penalty,
    "score": real,
    "peak_rss_mb": at_least_zero,
    "objective": real,
    "gap": certificate,
    "converged": _truth,
    "status": _status,
}
_REALS = frozenset((real, seconds, at_least_zero, certificate, _penalty))


# characters absent from plain numbers: int and float also accept other digits and underscores
_OTHERS = re.compile(r"[^0-9.eE+-]")


def plainly(kind: Callable[[str], object], texts: Sequence[str]) -> list[Any] | None:
    """The results of VALUES' `kind` for texts that are empty or plain nonnegative numbers; None if
    it has to be called.
    """
    read, most = (float, _MOST) if kind in _REALS else (int, _MOST_WHOLE)
    if kind not in _REALS and kind is not whole or _OTHERS.search("".join(texts)):
        return None
    gaps = "" in texts
    try:
        numbers: list[Any] = list(map(read, filter(None, texts) if gaps else texts))
    except ValueError:
        return None
    if not numbers or not _in_range(numbers, most):
        return None
    if gaps:
        one = iter(numbers)
        return [next(one) if text else None for text in texts]
    return numbers


# An empty cell of these is invalid.
NAMED = ("dataset", "method")


def check_together(score: float | None, metric: str | None) -> None:
    """Raise Wrong if a score is impossible for that metric."""
    if score is None or metric is None:
        return
    if metric in SHARES and not 0 <= score <= 1 + 1e-9:
        raise Wrong("score", score, f"must be from 0 to 1, because the metric is {metric}")
    if metric in ("rmse", "log_loss") and score < 0:
        raise Wrong("score", score, f"must be 0 or more, because the metric is {metric}")


def picker(*names: str) -> Callable[[Mapping[str, Any]], tuple[Any, ...]]:
    """A function of a row that returns these columns, two or more; None for an unknown one."""
    of_result = attrgetter(*names)

    def picked(row: Mapping[str, Any]) -> tuple[Any, ...]:
        if type(row) is Result:
            found: tuple[Any, ...] = of_result(row)
            return found
        return tuple(row.get(name) for name in names)

    return picked


_fit_and_features = picker("seconds_fit", "seconds_features")


def seconds_train(row: Mapping[str, Any]) -> float | None:
    """Training time as defined in the papers: features and fit together."""
    fit, features = _fit_and_features(row)
    return None if fit is None else fit + (features or 0.0)


def having(rows: Iterable[R], *names: str) -> list[R]:
    """The rows that have all of `names`: columns, and entries of params as params.NAME."""
    columns = [name for name in names if not name.startswith("params.")]
    entries = [name.removeprefix("params.") for name in names if name.startswith("params.")]
    return [
        row
        for row in rows
        if all(row.get(name) is not None for name in columns)
        and all(row["params"].get(name) is not None for name in entries)
    ]


def complete(rows: Iterable[R], *names: str) -> list[R]:
    """`having` for the rows of a table or figure; warns about successful rows that lack an
    entry.
    """
    given = list(rows)
    found = having(given, *names)
    kept = {id(row) for row in found}
    lacking = [row for row in given if id(row) not in kept and row.get("status") == "ok"]
    if lacking:
        first = lacking[0]
        name = next(name for name in names if not having([first], name))
        place = first.where if isinstance(first, Result) else "a row"
        more = f"and {len(lacking) - 1:,} more rows are incomplete" if len(lacking) > 1 else ""
        _log.warning("%s has no %s and is ignored%s; repeat the run", place, name, more)
    return found
