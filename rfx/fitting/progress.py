"""What is reported while a training runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self, TypeAlias

from rfx.types import JsonObject

# A report of a step by name: a solver's (see `rfx.solvers.base.Recorder`), or one in JSON.
TraceEntry: TypeAlias = JsonObject


@dataclass(frozen=True, kw_only=True)
class ProgressReport:
    """One step of a solver, or the state of a choice; None for what is not known or not the case.

    Parameters
    ----------
    part : (int, int) or None
        The number of the held-out model that is trained, and how many there are.
    doing : str or None
        What is done next, in words.
    choosing : tuple of str or None
        The options that are chosen.
    tried, total : int or None
        Number of values that the choice has tried, and will try.
    least : float or None
        The lowest error of these values.
    leaf, leaves : int or None
        Number of leaves that are fitted, and of all leaves.
    output, outputs : int or None
        The number of the output that is solved, and how many there are.
    iteration, samples : int or None
        Of the solver; of rows, if it learns in batches.
    seconds : float or None
        Of the training.
    objective, gap, loss : float or None
        Of the solver at this step.
    error : float or None
        On held-out rows.
    share : float or None
        The finished fraction of the training.
    """

    part: tuple[int, int] | None = None
    doing: str | None = None
    choosing: tuple[str, ...] | None = None
    tried: int | None = None
    total: int | None = None
    least: float | None = None
    leaf: int | None = None
    leaves: int | None = None
    output: int | None = None
    outputs: int | None = None
    iteration: int | None = None
    samples: int | None = None
    seconds: float | None = None
    objective: float | None = None
    gap: float | None = None
    loss: float | None = None
    error: float | None = None
    share: float | None = None

    @classmethod
    def of_step(cls, entry: TraceEntry, outputs: int) -> Self:
        """The report of a solver's step, for one of so many outputs."""
        own = {name: entry[name] for name in _OF_STEPS if name in entry}
        return cls(outputs=outputs, **own)

    @classmethod
    def of_dict(cls, saved: TraceEntry) -> Self:
        """From the entries of `as_dict`, as JSON has them."""
        # JSON has no tuples
        values: TraceEntry = {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in saved.items()
        }
        return cls(**values)

    def as_dict(self) -> dict[str, object]:
        """What is known, by name: JSON serialisable."""
        return {name: value for name, value in vars(self).items() if value is not None}


_OF_STEPS = ("output", "iteration", "samples", "seconds", "objective", "gap", "loss", "error")
# Called with every report of a training.
Progress: TypeAlias = Callable[[ProgressReport], None]
