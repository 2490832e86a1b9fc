"""The limit of `--fail-below`: the score that a model must reach."""

from dataclasses import dataclass
from typing import Self

from rfx import numerals
from rfx.errors import UsageError
from rfx.measures import MEASURES, less_is_better
from rfx.records.run import BASELINE, Result


@dataclass(frozen=True)
class Limit:
    """A score that a model must reach.

    Attributes
    ----------
    measure : str or None
        One of MEASURES; None for that of the run: its --measure, else accuracy or R2.
    score : float or None
        None for the scores of the baselines.
    """

    measure: str | None
    score: float | None

    @classmethod
    def of(cls, text: str) -> Self:
        """From SCORE, MEASURE=SCORE or baseline; UsageError for other texts."""
        if text == BASELINE:
            return cls(None, None)
        name, equals, number = text.strip().rpartition("=")
        if (equals and name not in MEASURES) or not numerals.is_number(number):
            raise UsageError(
                f"--fail-below is {text!r:.80}; use a number, {BASELINE}, or MEASURE=NUMBER with"
                f" one of {', '.join(MEASURES)}"
            )
        return cls(name or None, float(number))

    def missed(self, row: Result) -> str | None:
        """Why the model of a row does not reach the limit, in words; None if it does."""
        if self.score is None:
            return _worse_than_baselines(row)
        usual = "r2" if row.task == "regression" else "accuracy"
        name = self.measure or row.params.measure or usual
        known = {row.metric: row.score} if row.metric == "accuracy" else {}
        value = (known | (row.params.measures or {})).get(name)
        if value is None:
            return f"no {name} is known for rows that the model has not seen (--fail-below)"
        is_missed = value > self.score if less_is_better(name) else value < self.score
        if not is_missed:
            return None
        side = "above" if less_is_better(name) else "below"
        return f"the {name} {value:.4f} is {side} {self.score:g} (--fail-below)"


def _worse_than_baselines(row: Result) -> str | None:
    """Why a model is worse than a simple one, in words; None if it is not, beyond the noise."""
    if row.params.baseline is None:
        return f"there are no baselines to compare with (--fail-below {BASELINE})"
    if row.no_better:
        return f"a constant is no worse than this model (--fail-below {BASELINE})"
    for one in row.better:
        if not one.is_noise:
            return (
                f"{one.name} is better than this model by {one.gain:.4g} (--fail-below {BASELINE})"
            )
    return None
