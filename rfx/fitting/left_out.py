"""Predictions of rows by models that were fitted without them, and what follows from these: the
score, calibrated probabilities, intervals and prediction sets.

A new row is as far from its prediction as a left-out row: at least a fraction q of new rows has an
error of at most the left-out errors' value number ceil((n + 1) q) in ascending order, if rows are
exchangeable (conformal prediction: Vovk, Gammerman and Shafer 2005). The error is that of a target,
or 1 less the probability of the label.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from rfx.errors import DataError, UsageError

LEAVE_ONE_OUT = "leave-one-out"
# Maximum values of a model file.
MOST = 1000


@dataclass(frozen=True)
class LeftOut:
    """Rows predicted without them.

    Parameters
    ----------
    decision : array, (n,) or (n, k)
        As returned by decision_function.
    y : array, (n,)
        Targets or labels.
    by : str
        How the rows were left out, in words.
    """

    decision: np.ndarray
    y: np.ndarray
    by: str


@dataclass(frozen=True)
class ErrorQuantiles:
    """The distribution of the errors of left-out rows.

    Parameters
    ----------
    values : array, (m,)
        Errors at evenly spaced ranks, ascending; the last is the largest.
    rows : int
        Number n of the errors.
    by : str
        How the rows were left out, in words.
    """

    values: np.ndarray
    rows: int
    by: str

    @classmethod
    def of(cls, errors: np.ndarray, by: str) -> ErrorQuantiles:
        """From all errors (n,)."""
        return cls(np.sort(errors)[_ranks(len(errors)) - 1], len(errors), by)

    def at(self, level: float) -> float:
        """The error that a fraction `level` of new rows does not exceed.

        Raises
        ------
        UsageError
            For a level that so few rows can't state, or no level.
        """
        if not 0 < level < 1:
            raise UsageError(f"the level is {level:g}; it must be between 0 and 1, such as 0.9")
        rank = math.ceil((self.rows + 1) * level - 1e-9)
        if rank > self.rows:
            raise UsageError(
                f"{self.rows:,} left-out rows are too few for a level of {level:g}; it can be at"
                f" most {self.rows / (self.rows + 1):.4g}"
            )
        return float(self.values[np.searchsorted(_ranks(self.rows), rank)])

    def to_dict(self) -> dict[str, Any]:
        """For the header of a model file."""
        return {"values": self.values.tolist(), "rows": self.rows, "by": self.by}

    @classmethod
    def from_dict(cls, saved: dict[str, Any]) -> ErrorQuantiles:
        """Read from a model file's header; raises DataError if it is not a result of `to_dict`."""
        try:
            values, rows, by = np.array(saved["values"], float), saved["rows"], str(saved["by"])
            sound = type(rows) is int and 0 < rows and values.shape == _ranks(rows).shape
            sound = sound and bool(np.isfinite(values).all() and (np.diff(values) >= 0).all())
        except (KeyError, TypeError, ValueError):
            sound = False
        if not sound:
            raise DataError("its errors of left-out rows are damaged")
        return cls(values, rows, by)


def _ranks(count: int) -> np.ndarray:
    """The ranks, from 1 on, of the stored ones of so many errors."""
    size = min(count, MOST)
    return -(-np.arange(1, size + 1) * count // size)
