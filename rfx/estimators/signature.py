"""Parameters of an estimator from the options that a method or a map declares: the signature, and their part of the docstring."""

import inspect
import math
import re
import textwrap
from dataclasses import dataclass
from typing import Any

from rfx.options import LabelWeights, Option, Path, Widths

_WIDTH = 100
_TYPES = {int: int, float: float, bool: bool, str: str, Path: str, LabelWeights: str, Widths: str}
# Limits that only keep absurd numbers away, and are not worth saying.
_ABSURD = 1e6


@dataclass(frozen=True)
class Parameter:
    """One parameter: its default, its type as it is annotated, and what the docstring says of it."""

    name: str
    default: object
    annotation: object
    help: str

    @classmethod
    def of(cls, option: Option, optional: bool = False) -> "Parameter":
        """The parameter that stands for an option; optional: its default depends on the others, and is None here."""
        default = None if optional else option.default
        annotation: Any = _TYPES[option.kind]
        if option.kind is not str and option.meanings():
            annotation = annotation | str
        if default is None:
            annotation = annotation | None
        return cls(option.name, default, annotation, f"{option.description()}{_values(option)}")

    def entry(self) -> tuple[str, str]:
        """Name, type and default; and the text: as numpydoc has them."""
        kind = inspect.formatannotation(self.annotation).removesuffix(" | None").replace(" | ", " or ")
        return f"{self.name} : {kind}, default={self.default!r}", self.help


def in_words(sentence: str) -> str:
    """A sentence with the parameter's name where it has an option of the command line."""
    return re.sub(r"--([a-z][a-z0-9]*(?:-[a-z0-9]+)*)", lambda flag: flag[1].replace("-", "_"), sentence)


def _values(option: Option) -> str:
    """What an option takes, as a sentence; nothing where its help says all of it."""
    meanings = option.meanings()
    if option.kind is bool or (option.kind is str and meanings and all(meanings.values())):
        return ""
    text = (option.but(high=math.inf) if option.high >= _ABSURD else option).expects()
    return f" {text[:1].upper()}{text[1:]}."


def constructor(parameters):
    """An __init__ that takes these parameters by name and keeps them as they are, which `inspect.signature` shows one by one."""
    own = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    named = [inspect.Parameter(p.name, inspect.Parameter.KEYWORD_ONLY, default=p.default, annotation=p.annotation) for p in parameters]
    signature = inspect.Signature([own, *named])

    def __init__(self, **given):
        bound = signature.bind(self, **given)
        bound.apply_defaults()
        for name, value in bound.arguments.items():
            if name != "self":
                setattr(self, name, value)

    made: Any = __init__
    made.__signature__ = signature
    return made


def section(title: str, entries) -> str:
    """A section of a numpydoc docstring; entries: (name and type, text)."""
    body = "\n".join(f"{name}\n{textwrap.indent(textwrap.fill(text, _WIDTH), '    ')}" for name, text in entries)
    return f"{title}\n{'-' * len(title)}\n{body}"


def document(summary: str, *parts: str) -> str:
    """A docstring: the summary, then parts, with a blank line between; parameters by their names."""
    return in_words("\n\n".join([summary, *(part.strip() for part in parts if part and part.strip())])) + "\n"
