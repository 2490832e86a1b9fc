"""Builders of tables and figures, with what is known before they are built: their settings, and the
plan of their rows.
"""

from collections.abc import Callable, Iterable, Mapping, Sized
from dataclasses import dataclass, field
from typing import TypeVar

from rfx.errors import DataError, UsageError
from rfx.reporting.cells import Cell

Found = TypeVar("Found", bound=Sized)


def choose(
    name: str, settings: Mapping[str, str], rows: Iterable[Mapping], asked: str | None
) -> str | None:
    """The requested setting, else the first one whose label some row has, else the first; None if
    there are no settings.

    settings: setting -> the label of its rows. Raises UsageError for an unknown setting.
    """
    if asked and asked not in settings:
        raise UsageError(f"--setting {asked}: {name} has {', '.join(settings) or 'no settings'}")
    if asked or not settings:
        return asked or None
    labels = {row["params"].get("label") for row in rows}
    return next(
        (setting for setting, label in settings.items() if label in labels), next(iter(settings))
    )


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

    def __call__(self, rows, setting: str | None = None):
        chosen = choose(self.name, self.settings, rows, setting)
        return self.make(rows, chosen) if self.settings else self.make(rows)


def needed(found: Found, plan: str, what: str = "finished rows") -> Found:
    """What is found in the rows of a plan. Raises DataError if that is nothing."""
    if not found:
        raise DataError(f"the results file has no {what} of {plan}; rfx run {plan} makes them")
    return found


def settings_of(builder: Callable | None, rows: Iterable[Mapping]) -> list[str]:
    """The settings of a builder for which there are rows of successful runs, in the order of the
    rows.

    A row's label is a setting, or the name of a table or figure followed by a hyphen and the
    setting.
    """
    settings = getattr(builder, "settings", {})
    labels = [str(row["params"].get("label") or "") for row in rows if row["status"] == "ok"]
    words = [word for label in labels for word in (label, label.partition("-")[2])]
    return [word for word in dict.fromkeys(words) if word in settings]
