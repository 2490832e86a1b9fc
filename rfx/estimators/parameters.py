"""The parameters of an estimator: its signature and the sections of its docstring, derived from the
options of its method or feature map.
"""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
import json
import math
import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from rfx import parallel
from rfx.data.reading import Reading
from rfx.errors import DataError, UsageError
from rfx.options import LabelWeights, Option, Path, Widths, options_of
from rfx.records.run import Run

FROM_DTYPE = "from_dtype"
MISSING = options_of(Reading)["missing"]
DEVICE = options_of(Run)["device"]
CALIBRATE = options_of(Run)["calibrate"].but(
    help="Calibrate probabilities: platt or isotonic, by rows left out one by one, else by a fifth"
    " of the rows held out."
)
# Valid values of categorical_features.
Columns = Sequence[Any] | np.ndarray | str | None

_TYPES: dict[Any, Any] = {LabelWeights: dict | str, Path: str, Widths: str}
_CLASS_WEIGHT = (
    "{label: weight}, 1 for unlisted labels; balanced: inversely proportional to the class"
    " frequencies."
)
_SHOWN = 60  # characters of the choices that are part of a type
_ABSURD = 1e6  # limits from here on only exclude absurd numbers and are not documented
_SECTION = re.compile(r"\n\n(?=[A-Z]\w+\n---)")
_FLAG = re.compile(r"--([a-z][a-z0-9]*(?:-[a-z0-9]+)*)")


def in_words(sentence: str) -> str:
    """Replace an option of the command line in a message by the parameter's name."""
    return _FLAG.sub(lambda flag: flag[1].replace("-", "_"), sentence)


@contextlib.contextmanager
def in_python() -> Iterator[None]:
    """Raise rfx's errors as ValueError, with parameter names instead of command-line options.

    BLAS uses one thread inside the block; its number of threads is restored afterwards.
    """
    try:
        with parallel.one_blas_thread():
            yield
    except (UsageError, DataError) as error:
        raise ValueError(in_words(str(error))) from error


@dataclasses.dataclass(frozen=True)
class Parameter:
    """One parameter: its default, annotation, type in words and description."""

    name: str
    default: Any
    annotation: Any
    type: str
    help: str

    @classmethod
    def of(cls, option: Option, optional: bool = False) -> Parameter:
        """The parameter of an option; optional: it depends on the kernel, and is None by
        default.
        """
        choices, text = list(option.meanings()), option.description()
        annotation = _TYPES.get(option.kind, option.kind)
        kind = inspect.formatannotation(annotation).replace(" | ", " or ")
        few = "{" + ", ".join(map(json.dumps, choices)) + "}"
        if option.kind is LabelWeights:
            text = _CLASS_WEIGHT
        elif choices and option.kind is not str:
            annotation, kind = annotation | str, f"{kind} or {few}"
        elif choices and len(few) < _SHOWN:
            kind = few
        if kind != few and option.kind not in (bool, LabelWeights):
            high = math.inf if option.high >= _ABSURD else option.high
            named = () if "{" in kind else choices
            text += f" Values: {option.but(high=high, choices=named).expects()}."
        if optional and option.default is not None:
            text += f" By default {option.default}."
        default = None if optional else option.default
        annotation = annotation | None if default is None else annotation
        return cls(option.name, default, annotation, kind, text)

    def entry(self) -> str:
        """Name, type, default and text in numpydoc format."""
        text = textwrap.indent(textwrap.fill(in_words(self.help), 96), "    ")
        default = json.dumps(self.default) if isinstance(self.default, str) else repr(self.default)
        return f"{self.name} : {self.type}, default={default}\n{text}"


CATEGORICAL = Parameter(
    "categorical_features",
    FROM_DTYPE,
    Columns,
    'array-like of str, int or bool, or {"from_dtype"}',
    "Categorical columns: their names, positions or a mask; from_dtype: the string and category"
    " columns of a data frame; None: none.",
)
RANDOM_STATE = Parameter(
    "random_state",
    None,
    Any,
    "int, numpy RandomState or Generator",
    "scikit-learn's name for seed, which it overrides if given; a generator draws the seed of each"
    " fit.",
)


def derive(kind: type, parameters: Iterable[Parameter], example: str = "") -> None:
    """Give a class the keyword parameters, and `random_state` after `seed`, as dataclasses do: in
    `__init__`, with its signature, and in the docstring.

    The docstring contains a description, and examples or other sections. example: that of classes
    without own examples, with {name} for that of the class.
    """
    shown = []
    for parameter in parameters:
        shown += [parameter, RANDOM_STATE] if parameter.name == "seed" else [parameter]
    kind.__annotations__ = {parameter.name: parameter.annotation for parameter in shown}
    for parameter in shown:
        setattr(kind, parameter.name, parameter.default)
    dataclasses.dataclass(kind, eq=False, repr=False, kw_only=True)
    about, own = _sections(kind)
    entries: dict[str, str] = {}
    for base in kind.__mro__:
        for entry in re.split(r"\n(?=\S)", _sections(base)[1].get("Attributes", "")):
            entries.setdefault(entry.partition(" :")[0], entry)
    derived = {
        "Parameters": "\n".join(parameter.entry() for parameter in shown),
        "Attributes": "\n".join(filter(None, entries.values())),
    }
    if example:
        own.setdefault("Examples", example.replace("{name}", kind.__name__))
    sections = derived | {title: text for title, text in own.items() if title not in derived}
    texts = [f"{title}\n{'-' * len(title)}\n{text}" for title, text in sections.items()]
    kind.__doc__ = "\n\n".join([about, *texts])


def _sections(kind: type) -> tuple[str, dict[str, str]]:
    """The description in the docstring of a class, and its sections by title."""
    about, *sections = _SECTION.split(inspect.cleandoc(kind.__doc__ or ""))
    parts = (section.split("\n", 2) for section in sections)
    return about, {title: text.rstrip() for title, _, text in parts}
