"""The evidence of a choice of options: every combination that was tried, with its error."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Self

from rfx.types import JsonObject


@dataclass(frozen=True)
class ChoiceTrace:
    """How some options were chosen.

    Parameters
    ----------
    by : str
        The models of the trials: a method, or the regression that chose.
    options : list of str
    fitted, held_out : int
        The rows that each model was fitted to, and evaluated on.
    error : str
        The name of the error.
    tried : list of [value of each option, ..., error]
    chosen : list
        The value of each option.
    target : float or None
        The error to approximate; None if the smallest was chosen.
    """

    by: str
    options: list[str]
    fitted: int
    held_out: int
    error: str
    tried: list[list[Any]]
    chosen: list[Any]
    target: float | None = None

    @classmethod
    def of_dict(cls, saved: JsonObject) -> Self:
        """From an entry of a results row, a model file or a checkpoint."""
        return cls(**{one.name: saved[one.name] for one in fields(cls) if one.name in saved})

    def as_dict(self) -> JsonObject:
        """The entry of a results row, a model file or a checkpoint."""
        entry = dict(vars(self))
        if self.target is None:
            del entry["target"]
        return entry

    @property
    def values(self) -> dict[str, Any]:
        """The chosen value of each option."""
        return dict(zip(self.options, self.chosen, strict=True))

    @property
    def chosen_error(self) -> float:
        """The error of the chosen values."""
        chosen = list(self.chosen)
        return float(next(error for *values, error in self.tried if values == chosen))

    def at_edge(self, option: str) -> str | None:
        """Whether the chosen value of an option is the smallest or the largest of at least three
        tried: that word, or None.
        """
        place = self.options.index(option)
        value = self.chosen[place]
        tried = sorted({trial[place] for trial in self.tried})
        if len(tried) < 3 or value not in (tried[0], tried[-1]):
            return None
        return "smallest" if value == tried[0] else "largest"
