"""How long the runs of a plan will take, by what runs like them took, and nothing else."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence

from rfx.records.result import Result
from rfx.records.run import Run

# Less is not worth a word; of more, the small form of a plan is spoken of.
_LEAST, _LONG = 60.0, 600.0


class Estimate:
    """What is known of the seconds of runs, from the rows there are and those that are added."""

    def __init__(self, rows: Iterable[Result] = ()) -> None:
        self._known: dict[tuple[str, str], list[tuple[Result, float]]] = {}
        for row in rows:
            self.add(row)

    def add(self, row: Result) -> None:
        """A run that has ended; one that was cut short tells nothing."""
        seconds = row.params.get("seconds_process") or row.params.get("seconds_total")
        if row.status == "ok" and seconds:
            method = (row.params.get("asked") or {}).get("method") or row.method
            self._known.setdefault((row.dataset, method), []).append((row, seconds))

    def of(self, run: Run) -> float | None:
        """Seconds of a run: of runs that differ in the seed alone, else of those that are most
        like it among those of its method on its data set; None where there is none.
        """
        known = self._known.get((run.dataset, run.method))
        if not known:
            return None
        wanted = run.given() | {"split": run.split}
        alike = [sum(_is(row, name, value) for name, value in wanted.items()) for row, _ in known]
        most = max(alike)
        return statistics.fmean(seconds for (_, seconds), same in zip(known, alike) if same == most)

    def total(self, runs: Sequence[Run], jobs: int = 1) -> float | None:
        """Seconds of all of them, so many at a time; None where something is not known."""
        total = 0.0
        for run in runs:
            seconds = self.of(run)
            if seconds is None:
                return None
            total += seconds
        return total / max(1, min(jobs, len(runs) or 1))

    def words(self, runs: Sequence[Run], jobs: int, has_quick: bool = False) -> str:
        """ ", about 40 min", with advice where that is long; "" where nothing is to be said."""
        seconds = self.total(runs, jobs)
        if seconds is None or seconds < _LEAST:
            return ""
        advice = "; --quick runs the small form" if has_quick and seconds >= _LONG else ""
        return f", about {duration(seconds)}{advice}"


def _is(row: Result, name: str, value: object) -> bool:
    """Whether a row has that value of an option, as it was asked for."""
    asked = row.params.get("asked") or {}
    own = asked.get(name) if name in asked else row.params.get(name, row.get(name))
    return own == value


def duration(seconds: float) -> str:
    """40 min, 3.5 h."""
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
