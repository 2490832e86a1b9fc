"""Whether a run depends on its seed: through its rows or its fit."""

from __future__ import annotations

from rfx import methods
from rfx.data import loading
from rfx.errors import UsageError
from rfx.records import keys
from rfx.records.run import Run


def decides(run: Run) -> bool:
    """Whether the outcome of a run depends on its seed; True if unknown."""
    if run.cv is not None or run.holdout is not None or run.calibrate is not None or run.stream:
        return True
    if loading.is_drawn(run.dataset, run.split, run.test):
        return True
    try:
        return bool(methods.get(run.method).is_random(keys.resolved(run)))
    except UsageError:
        return True
