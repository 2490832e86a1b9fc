"""Estimate the time of a plan's runs from similar runs."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence

from rfx.records.result import Result
from rfx.records.run import Run

# Estimates below are not reported; above the second, the small form of a plan is suggested.
_LEAST, _LONG = 60.0, 600.0


class Estimate:
    """The known times of runs, from existing rows and those added later."""

    def __init__(self, rows: Iterable[Result] = ()) -> None:
        self._known: dict[tuple[str, str], list[tuple[Result, float]]] = {}
        for row in rows:
            self.add(row)

    def add(self, row: Result) -> None:
        """Add a finished run; an interrupted one is ignored."""
        seconds = row.params.get("seconds_process") or row.params.get("seconds_total")
        if row.status == "ok" and seconds:
            method = (row.params.get("asked") or {}).get("method") or row.method
            self._known.setdefault((row.dataset, method), []).append((row, seconds))

    def of(self, run: Run) -> float | None:
        """Estimated seconds of a run: from runs that differ only in the seed, else from the most
        similar ones of its method on its data set; None if there are none.
        """
        known = self._known.get((run.dataset, run.method))
        if not known:
            return None
        wanted = run.given() | {"split": run.split}
        alike = [sum(_is(row, name, value) for name, value in wanted.items()) for row, _ in known]
        most = max(alike)
        return statistics.fmean(seconds for (_, seconds), same in zip(known, alike) if same == most)

    def total(self, runs: Sequence[Run], jobs: int = 1) -> float | None:
        """Estimated seconds of all runs, with this many at a time; None if one is unknown."""
        total = 0.0
        for run in runs:
            seconds = self.of(run)
            if seconds is None:
                return None
            total += seconds
        return total / max(1, min(jobs, len(runs) or 1))

    def words(self, runs: Sequence[Run], jobs: int, has_quick: bool = False) -> str:
        """ ", about 40 min", with advice if that is long; "" if unknown or short."""
        seconds = self.total(runs, jobs)
        if seconds is None or seconds < _LEAST:
            return ""
        advice = "; --quick runs the small form" if has_quick and seconds >= _LONG else ""
        return f", about {duration(seconds)}{advice}"


def _is(row: Result, name: str, value: object) -> bool:
    """Whether a row has that requested value of an option."""
    asked = row.params.get("asked") or {}
    own = asked.get(name) if name in asked else row.params.get(name, row.get(name))
    return own == value


def duration(seconds: float) -> str:
    """40 min, 3.5 h."""
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
