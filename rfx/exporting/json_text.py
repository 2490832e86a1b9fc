"""A program as JSON, for readers that execute its steps."""

import json
import re
from dataclasses import fields

import numpy as np

from rfx import steps as told
from rfx.exporting.program import Column, Program

# The form of the JSON text.
VERSION = 1


def written(program: Program) -> bytes:
    """The JSON text of a program; see docs/export.md."""
    probabilities = None
    if program.probabilities is not None:
        probabilities = listed_steps(program.probabilities)
    found = {
        "format": "rfx",
        "version": VERSION,
        "facts": program.facts,
        "columns": [_listed_column(column) for column in program.columns],
        "steps": listed_steps(program.steps),
        "labels": program.labels,
        "label_from": "probabilities" if program.most_probable else "decision",
        "probabilities": probabilities,
    }
    text = json.dumps(found, allow_nan=False) + "\n"
    return text.encode()


def _listed_column(column: Column) -> dict[str, object]:
    """A column as a JSON object."""
    return {
        "name": column.name,
        "fill": column.fill,
        "categories": column.categories,
        "spellings": column.spellings() or None,
        "values": _plain(column.values),
    }


def listed_steps(steps: told.Steps) -> list[dict[str, object]]:
    """The steps as JSON objects."""
    listed = []
    for step in steps:
        found: dict[str, object] = {"step": step_name(step)}
        for own in fields(step):
            found[own.name] = _plain(getattr(step, own.name))
        listed.append(found)
    return listed


def step_name(step: told.Step) -> str:
    """The name of a step: its class in lower case, words joined by underscores."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", type(step).__name__).lower()


def _plain(value: object) -> object:
    """Convert to JSON types; unsigned 64-bit numbers become text, which every reader can store."""
    if isinstance(value, tuple):
        return [listed_steps(steps) for steps in value]
    if isinstance(value, np.ndarray):
        numbers = value.astype(str) if value.dtype == np.uint64 else value
        return numbers.tolist()
    is_large = isinstance(value, int) and value >= 2**53
    return str(value) if is_large else value
