"""A program as JSON, for readers that execute its steps."""

import json
import re
from dataclasses import fields
from typing import Any

import numpy as np

from rfx import steps as told
from rfx.exporting.program import Program

# The form of the JSON text.
VERSION = 1


def written(program: Program) -> bytes:
    """The JSON text of a program; see docs/export.md."""
    found = {
        "format": "rfx",
        "version": VERSION,
        "facts": program.facts,
        "columns": [
            {
                "name": column.name,
                "fill": column.fill,
                "categories": column.categories,
                "spellings": column.spellings() or None,
                "values": _plain(column.values),
            }
            for column in program.columns
        ],
        "steps": listed_steps(program.steps),
        "labels": program.labels,
        "label_from": "probabilities" if program.most_probable else "decision",
        "probabilities": None
        if program.probabilities is None
        else listed_steps(program.probabilities),
    }
    return json.dumps(found, allow_nan=False).encode() + b"\n"


def listed_steps(steps: told.Steps) -> list[dict[str, Any]]:
    """The steps as JSON objects."""
    listed = []
    for step in steps:
        attributes = {own.name: _plain(getattr(step, own.name)) for own in fields(step)}
        listed.append({"step": step_name(step)} | attributes)
    return listed


def step_name(step: told.Step) -> str:
    """The name of a step: its class in lower case, words joined by underscores."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", type(step).__name__).lower()


def _plain(value: Any) -> Any:
    """Convert to JSON types; unsigned 64-bit numbers become text, which every reader can store."""
    if isinstance(value, tuple):
        return [listed_steps(steps) for steps in value]
    if isinstance(value, np.ndarray):
        return value.astype(str).tolist() if value.dtype == np.uint64 else value.tolist()
    return str(value) if isinstance(value, int) and value >= 2**53 else value
