"""What a model knows about the run that trained it: its data, its machine, and its scores."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass

# When a model's score is doubtful: see `Score.far_below`.
SURE, FAR = 4.0, 1.5


@dataclass(frozen=True)
class Score:
    """A score, a description of its rows, and their number."""

    metric: str
    score: float
    on: str
    rows: int

    def far_below(self, chosen: Score) -> bool:
        """Whether it is worse than the score of the choice by more than SURE standard errors of the
        difference, and its error FAR times as large.

        Squared errors are assumed to vary by sqrt(2) times as much as those of normal residuals.
        """
        counts = 1 / self.rows + 1 / chosen.rows
        if self.metric == "rmse":
            return self.score > chosen.score * max(FAR, 1 + SURE * math.sqrt(counts))
        wrong = 1 - self.score
        least = 1 - chosen.score
        mean = (self.rows * wrong + chosen.rows * least) / (self.rows + chosen.rows)
        error = math.sqrt(mean * (1 - mean) * counts)
        return wrong > max(FAR * least, least + SURE * error)


# A run may be without these; the model then says so.
_MAYBE_NONE = ("split", "label")


@dataclass(frozen=True, kw_only=True)
class RunFacts:
    """Facts about a run; those of a training in Python are all None.

    Parameters
    ----------
    parts, workers : int or None
        Numbers of parts of distributed rows, and of their workers.
    seconds_read, seconds_held_out : float or None
        Of reading the rows, and of the models of held-out rows.
    train_score : float or None
        On distributed rows.
    dataset, split, label, key : str or None
        The run's.
    seed, threads : int or None
    dtype : str or None
        Of the features.
    peak_rss_mb : float or None
        The largest memory of the process, in MiB.
    n_classes : int or None
        0 for a regression.
    sample_weight, groups, time : str or None
        The name of the file with weights; the columns that keep rows together, or order them.
    calibration : str or None
        Where the requested probabilities come from, in words.
    scores : tuple of Score, or None
    """

    parts: int | None = None
    workers: int | None = None
    seconds_read: float | None = None
    train_score: float | None = None
    dataset: str | None = None
    split: str | None = None
    seed: int | None = None
    threads: int | None = None
    dtype: str | None = None
    peak_rss_mb: float | None = None
    label: str | None = None
    key: str | None = None
    n_classes: int | None = None
    sample_weight: str | None = None
    groups: str | None = None
    time: str | None = None
    seconds_held_out: float | None = None
    calibration: str | None = None
    scores: tuple[Score, ...] | None = None

    def as_dict(self) -> dict[str, object]:
        """What is known, by name: JSON serialisable."""
        said = _MAYBE_NONE if self.dataset is not None else ()
        known: dict[str, object] = {
            name: value for name, value in vars(self).items() if value is not None or name in said
        }
        if self.scores is not None:
            known["scores"] = [asdict(score) for score in self.scores]
        return known
