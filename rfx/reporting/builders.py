"""Builders of tables and figures, with what is known before they are built: their settings, and the
plan of their rows.
"""

from collections.abc import Callable, Mapping, Sequence, Sized
from dataclasses import dataclass, field
from typing import Any, TypeVar

from rfx.errors import DataError, UsageError
from rfx.reporting.cells import Cell

T = TypeVar("T", bound=Sized)


@dataclass(frozen=True)
class Builder:
    """A table or figure by its full name, such as wu2016-fig3.

    Attributes
    ----------
    make : function of rows, and of the setting if there are settings.
    settings : the available settings, each with the label of its rows.
    plan : the plan of its package that makes its rows, if its name differs.
    alone : it computes its own numbers and reads no results file.
    unrun : the cells with printed numbers if there are no runs.
    """

    name: str
    make: Callable
    settings: Mapping[str, str] = field(default_factory=dict)
    plan: str = ""
    alone: bool = False
    unrun: Callable[[], list[Cell]] = list

    def __call__(self, rows: Sequence[Mapping[str, Any]], setting: str | None = None):
        """Build it from rows: of the requested setting, else of the first one whose label some row
        has, else of the first. Raises UsageError for an unknown setting.
        """
        if setting and setting not in self.settings:
            there = ", ".join(self.settings) or "no settings"
            raise UsageError(f"--setting {setting}: {self.name} has {there}")
        if not self.settings:
            return self.make(rows)
        labels = {row["params"].get("label") for row in rows}
        present = [name for name, label in self.settings.items() if label in labels]
        return self.make(rows, setting or next(iter([*present, *self.settings])))


def needed(found: T, plan: str, what: str = "finished rows") -> T:
    """What is found in the rows of a plan. Raises DataError if that is nothing."""
    if not found:
        raise DataError(f"the results file has no {what} of {plan}; rfx run {plan} makes them")
    return found


def settings_of(builder: Callable | None, rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """The settings of a builder for which there are rows of successful runs, in the order of the
    rows; of two settings of the same rows the first.
    """
    settings = getattr(builder, "settings", {})
    by_label = {label: setting for setting, label in reversed(settings.items())}
    labels = dict.fromkeys(row["params"].get("label") for row in rows if row["status"] == "ok")
    return [by_label[label] for label in labels if label in by_label]
