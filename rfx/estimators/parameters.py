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
CALIBRATE = options_of(Run)["calibrate"].replace(
    help="Calibrate probabilities: platt or isotonic, by rows left out one by one, else by a fifth"
    " of the rows held out."
)
# Valid values of categorical_features.
Columns = Sequence[Any] | np.ndarray | str | None
CATEGORICAL = Option(
    "categorical_features",
    object,
    "Categorical columns: an array of their names or positions, or a mask; from_dtype: the string"
    " and category columns of a data frame; None: none.",
    default=FROM_DTYPE,
)
RANDOM_STATE = Option(
    "random_state",
    object,
    "scikit-learn's name for seed, which it overrides if given: an integer, or a numpy RandomState"
    " or Generator, which draws the seed of each fit.",
)

_TYPES: dict[Any, Any] = {LabelWeights: dict | str, Path: str, Widths: str}
_CLASS_WEIGHT = (
    "{label: weight}, 1 for unlisted labels; balanced: inversely proportional to the class"
    " frequencies."
)
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


def _parameter(option: Option, default: Any) -> tuple[Any, str]:
    """The annotation of an option with this default, and its entry of the docstring."""
    annotation, text = _TYPES.get(option.kind, option.kind), option.description()
    if option.kind is LabelWeights:
        text = _CLASS_WEIGHT
    elif option.kind not in (bool, object):
        high = math.inf if option.high >= _ABSURD else option.high
        text += f" Values: {option.replace(high=high).expects()}."
    if default is None and option.default is not None:
        text += f" By default {option.default}."
    annotation = annotation | str if option.meanings() else annotation
    kind = inspect.formatannotation(annotation).replace(" | ", " or ")
    shown = json.dumps(default) if isinstance(default, str) else repr(default)
    text = textwrap.indent(textwrap.fill(in_words(text), 96), "    ")
    annotation = annotation | None if default is None else annotation
    return annotation, f"{option.name} : {kind}, default={shown}\n{text}"


def derive(kind: type, options: Iterable[tuple[Option, Any]], example: str = "") -> None:
    """Give a class the options with these defaults as keyword parameters, and `random_state` after
    `seed`, as dataclasses do: in `__init__`, with its signature, and in the docstring.

    The docstring contains a description, and examples or other sections. example: that of classes
    without own examples, with {name} for that of the class.
    """
    shown: dict[str, tuple[Any, str]] = {}
    for option, default in options:
        for one, value in ((option, default), (RANDOM_STATE, None))[: 1 + (option.name == "seed")]:
            shown[one.name] = _parameter(one, value)
            setattr(kind, one.name, value)
    kind.__annotations__ = {name: annotation for name, (annotation, _) in shown.items()}
    dataclasses.dataclass(kind, eq=False, repr=False, kw_only=True)
    about, own = _sections(kind)
    entries: dict[str, str] = {}
    for base in kind.__mro__:
        for entry in re.split(r"\n(?=\S)", _sections(base)[1].get("Attributes", "")):
            entries.setdefault(entry.partition(" :")[0], entry)
    derived = {
        "Parameters": "\n".join(entry for _, entry in shown.values()),
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
