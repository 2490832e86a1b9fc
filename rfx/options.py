"""Declarations of options: values, range, default and help. An option is a field of a method, which
is a frozen dataclass; kernels list theirs.
"""

import contextlib
import csv
import dataclasses
import decimal
import difflib
import math
import re
from collections import ChainMap
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, Self, TypeAlias, dataclass_transform

from rfx import numerals
from rfx.errors import UsageError, quoted

# A word of an option of numbers, which the choice of options replaces by a number.
Chosen: TypeAlias = Any


@dataclass(frozen=True)
class Parsed:
    """The kind of an option whose text stands for several values.

    Attributes
    ----------
    form : str
        What stands for the value in help.
    expects : str
        The values allowed, as a phrase.
    values : callable
        The values of a text; ValueError if it has another form.
    """

    form: str
    expects: str
    values: Callable[[str], Any]


_MOST = 10_000


def _path(text: str) -> list[float]:
    """The grid from high to low; ValueError if the text is not a grid."""
    first, last, steps = str(text).split(":")
    high, low, count = numerals.real(first), numerals.real(last), numerals.whole(steps)
    if not (math.inf > high > low > 0 and 2 <= count <= _MOST):
        raise ValueError(text)
    shares = [step / (count - 1) for step in range(count)]
    return [high ** (1 - share) * low**share for share in shares]


# A geometric grid.
Path = Parsed(
    "HIGH:LOW:COUNT",
    f"HIGH:LOW:COUNT: COUNT different numbers, 2 to {_MOST}, from HIGH down to LOW, all above 0,"
    " such as 1000:1:20",
    _path,
)


def path_names(values: list[float]) -> list[str]:
    """A text for each value of a Path: four significant digits, or as many as needed to distinguish
    them.
    """
    texts: list[str] = []
    for digits in range(4, 18):
        texts = [f"{value:.{digits}g}" for value in values]
        if len(set(texts)) == len(values):
            break
    return texts


BALANCED = "balanced"


def _label_weights(text: str) -> dict[str, float]:
    """{label: weight}, each 0 or more, empty for `balanced`; ValueError for an invalid text or a
    repeated label.

    A label that contains a comma or starts with a double quote is enclosed in double quotes, with
    its own quotes doubled. The last of several colons precedes the weight.
    """
    if text == BALANCED:
        return {}
    pairs = [cell.rpartition(":") for cell in _cells(text)]
    weights = {label.strip(): numerals.real(weight) for label, _, weight in pairs}
    valid = all(label and math.inf > weight >= 0 for label, weight in weights.items())
    if not (valid and len(weights) == len(pairs) > 0) or str(text).count('"') % 2:
        raise ValueError(text)
    return weights


LabelWeights = Parsed(
    "balanced|LABEL:WEIGHT,…",
    "balanced, or LABEL:WEIGHT,… with each weight 0 or more, such as 1:10,-1:1 or emu:20",
    _label_weights,
)


def _widths(text: str) -> list[int]:
    """The sizes; ValueError if one is not from 1 to a million."""
    widths = [numerals.whole(word) for word in str(text).split(",")]
    if not all(0 < width <= 10**6 for width in widths):
        raise ValueError(text)
    return widths


# A list of sizes.
Widths = Parsed(
    "COUNT,…",
    "whole numbers from 1 to 1,000,000, separated by commas, such as 400,100",
    _widths,
)


def _names(text: str) -> tuple[str, ...]:
    """The names, without spaces around them."""
    return tuple(word.strip() for word in _cells(text) if word.strip())


# Columns; a name with a comma is enclosed in double quotes.
Names = Parsed("COLUMN,…", "columns, separated by commas", _names)


def _cells(text: str) -> list[str]:
    """The parts of a text between its commas, which double quotes may contain."""
    return next(csv.reader([str(text)], skipinitialspace=True), [])


@dataclass(frozen=True)
class Option:
    """One option of a method, a map, a kernel, a run or a command.

    name, kind: of a field, its name and type; kind is int, float, bool, str, Path, LabelWeights,
    Widths or Names. choices: the values of a str, or the
    alternatives to a number: names, or a dict from each to its meaning ('' if the name is clear),
    or a function that returns either when needed. default: None if there is none, or if it depends
    on other options. fixed: the default when the bandwidth is a number, if it differs. before: for
    an option newer than the keys of runs, the behaviour without it, which no key contains. metavar:
    what stands for the value in help.
    """

    name: str
    kind: type | Parsed
    help: str
    choices: dict[str, str] | Iterable[str] | Callable = ()
    low: float = -math.inf
    high: float = math.inf
    open_low: bool = False
    default: object = None
    fixed: object = None
    before: object = None
    metavar: str = "VALUE"

    @property
    def flag(self) -> str:
        return "--" + self.name.replace("_", "-")

    def replace(self, **changes) -> "Option":
        """The same option with other default, choices, range or help."""
        return dataclasses.replace(self, **changes)

    def __call__(self, **changes: object) -> Any:
        """The option, with these changes, as a field: ``lam: float = LAM(default=0.1)``."""
        changed = self.replace(**changes)
        return dataclasses.field(default=changed.default, metadata={"option": changed})

    def adding(self, *more: dict[str, str]) -> "Option":
        """The same option with additional choices and their meanings."""
        return self.replace(choices=dict(ChainMap(*reversed(more), self.meanings())))

    def meanings(self) -> dict[str, str]:
        """The choices with their meanings."""
        choices = self.choices() if callable(self.choices) else self.choices
        return dict(choices) if isinstance(choices, dict) else dict.fromkeys(choices, "")

    @property
    def placeholder(self) -> str:
        """What stands for the value in help: a number, the choices, or both."""
        if self.metavar != "VALUE":
            return self.metavar
        if isinstance(self.kind, Parsed):
            return self.kind.form
        words = list(self.meanings()) or ["true|false"] * (self.kind is bool)
        words = [*words[:3], "…"] if len(words) > 4 else words
        return (
            "|".join([*{int: ["INTEGER"], float: ["NUMBER"]}.get(self.kind, []), *words]) or "TEXT"
        )

    def description(self) -> str:
        """The help with the meanings of the choices."""
        said = "; ".join(
            f"{choice}: {meaning}" for choice, meaning in self.meanings().items() if meaning
        )
        return f"{self.help} {said}." if said else self.help

    def expects(self) -> str:
        """The values allowed, as a phrase."""
        if self.kind is bool:
            return "true or false"
        if isinstance(self.kind, Parsed):
            return self.kind.expects
        choices = self.meanings()
        parts = [f"one of {', '.join(choices)}"] if len(choices) > 1 else list(choices)
        if self.kind in (int, float):
            shown = str if self.kind is int else "{:g}".format
            least = f"above {shown(self.low)}" if self.open_low else f"{shown(self.low)} or more"
            bounds = [least] if self.low > -math.inf else []
            bounds += [f"at most {shown(self.high)}"] if self.high < math.inf else []
            noun = "a whole number" if self.kind is int else "a number"
            parts.insert(0, " ".join([noun, " and ".join(bounds)]).strip())
        return " or ".join(parts) or "text"

    def convert(self, value: object) -> Any:
        """Convert a value to its type.

        Raises UsageError with the option, the value and the allowed values.
        """
        converted = self._converted(value)
        if converted is not None:
            return converted
        near = difflib.get_close_matches(
            str(value)[:100], self.meanings() if self.kind is str else ()
        )
        hint = f"; did you mean {near[0]}?" if near else ""
        raise UsageError(f"{self.flag} is {quoted(value)}; it must be {self.expects()}{hint}")

    def _converted(self, value: Any) -> Any:
        """The value in the option's type; None if it has no such value."""
        if self.kind is bool:
            return {"true": True, "false": False}.get(str(value).lower())
        if isinstance(self.kind, Parsed):
            with contextlib.suppress(ValueError):
                values = self.kind.values(value)
                return values if self.kind is Names else value
            return None
        if isinstance(value, str):
            is_free = self.kind is str and not self.choices
            if is_free or value in self.meanings():
                return value
        if self.kind is str or isinstance(value, bool):
            return None
        try:
            number = self._number(value)
        except (TypeError, ValueError):
            return None
        return self._allowed_number(number)

    def _allowed_number(self, number: Any) -> Any:
        """The number in the option's type; None if it is out of its range."""
        above = number > self.low if self.open_low else number >= self.low
        if not (above and number <= self.high and math.isfinite(number)):
            return None
        if self.kind is float:
            return number
        return None if number % 1 else int(number)

    def _number(self, value: Any) -> float | decimal.Decimal:
        if self.kind is float:
            return numerals.real(value) if isinstance(value, str) else float(value)
        return numerals.exact(str(value))  # an integer is never rounded: a float has 15 digits


def option(
    default: object,
    help: str,
    *,
    of: dict[str, str] | Iterable[str] | Callable = (),
    least: float = -math.inf,
    above: float | None = None,
    most: float = math.inf,
    kind: type | Parsed | None = None,
    before: object = None,
    metavar: str = "VALUE",
) -> Any:
    """A field that is an option: ``rounds: int = option(10, "Rounds of the algorithm.", least=1)``.

    Parameters
    ----------
    default : object
        None if there is none, or if it depends on other options.
    help : str
        A sentence or more.
    of : choices
        The values of a str, or words that are allowed instead of a number, as in `Option`.
    least, above, most : float
        The range of a number; `above` excludes the limit.
    kind : type, optional
        By default the first name of the annotation.
    before, metavar
        See `Option`.
    """
    low = least if above is None else above
    declared = Option("", kind or object, help, of, low, most, above is not None, default)
    return declared(before=before, metavar=metavar)


_KINDS: dict[str, type | Parsed] = {kind.__name__: kind for kind in (int, float, bool, str)}
_KINDS["tuple"] = Names


def _named(option: Option, name: str, annotation: object) -> Option:
    """The option of a field, with its name and the kind of its annotation."""
    kind = option.kind
    if kind is object:
        text = getattr(annotation, "__name__", None) or str(annotation)
        kind = _KINDS[re.split(r"\W", text)[0]]
    return option.replace(name=name, kind=kind)


def options_of(kind: Any) -> dict[str, Option]:
    """The options among the fields of a dataclass, by name."""
    fields = [one for one in dataclasses.fields(kind) if "option" in one.metadata]
    return {one.name: _named(one.metadata["option"], one.name, one.type) for one in fields}


@dataclass_transform(kw_only_default=True, frozen_default=True)
class Declared:
    """A frozen dataclass whose fields are options; every subclass is one, without a decorator.

    The class argument ``without`` names inherited options that a subclass does not have.
    """

    options: ClassVar[dict[str, Option]] = {}

    def __init_subclass__(cls, without: Iterable[str] = ()) -> None:
        super().__init_subclass__()
        for name, annotation in cls.__dict__.get("__annotations__", {}).items():
            field = isinstance(cls.__dict__.get(name), dataclasses.Field)
            if not field and "ClassVar" not in str(annotation):
                kind = getattr(annotation, "__name__", None) or str(annotation)
                raise TypeError(
                    f"{cls.__name__}.{name} has an annotation but is no option; write {name}:"
                    f" {kind} = option(default, help), or ClassVar"
                )
        for name in without:
            cls.__annotations__ = cls.__dict__.get("__annotations__", {}) | {name: ClassVar[None]}
            setattr(cls, name, None)
        dataclass(frozen=True, kw_only=True)(cls)
        cls.options = options_of(cls)

    @property
    def values(self) -> dict[str, object]:
        """Every option by name."""
        return {name: getattr(self, name) for name in self.options}

    def get(self, name: str, default: object = None) -> Any:
        """The value of an option; the default if there is none of that name."""
        return self.values.get(name, default)

    def updated(self, **changes: object) -> Self:
        """The same with other values for some options."""
        return dataclasses.replace(self, **changes)  # type: ignore[type-var]

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"{type(self).__name__} has no option {name}")


def union(declared: list[tuple[str, Option]]) -> Option:
    """An option that accepts the values of all options of the same name; declared: (method, its
    option), at least one.

    A help sentence that does not apply to all methods names its methods.
    """
    options = [option for _, option in declared]
    choices: dict[str, str] = {}
    for option in options:
        for choice, meaning in option.meanings().items():
            choices[choice] = choices.get(choice) or meaning
    said: dict[str, list[str]] = {}
    for method, option in declared:
        for sentence in option.help.removesuffix(".").split(". "):
            said.setdefault(sentence, []).append(method)
    texts = [
        text if len(names) == len(declared) else f"{text} ({', '.join(names)})"
        for text, names in said.items()
    ]
    lowest = min(options, key=lambda option: (option.low, option.open_low))
    return options[0].replace(
        help=". ".join(texts) + ".",
        choices=choices,
        low=lowest.low,
        open_low=lowest.open_low,
        high=max(option.high for option in options),
        default=None,
    )
