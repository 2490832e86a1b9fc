"""A run: one training and its evaluation, as requested by a plan or a command."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from rfx import methods
from rfx.data.reading import Reading, training_share, written
from rfx.errors import UsageError, or_near


@dataclass(frozen=True, kw_only=True)
class Run:
    """The inputs of a run, and its execution options.

    Parameters
    ----------
    dataset : str
        A data set's name, or a file.
    method : str
        Its short name; a long name is converted.
    options : dict
        The method's options; words such as ``validation`` are still words.
    seed : int
    split : str, optional
        One of the data set's splits, or a fraction of its rows to train on.
    test : str, optional
        A file or data set with test rows.
    label : str, optional
        Distinguishes runs of a plan.
    threads : int, optional
    fixed_threads : bool
        The plan compares threads: they are part of the key.
    timeout : float, optional
        Seconds after which it is aborted.
    zero_based : bool
        Indices of LIBSVM text start at 0.
    reading : Reading, optional
        How a table is read.
    strict : bool
        Raise an error for unknown categories.
    sample_weight : str, optional
        A file with a weight for each training row.
    cv, holdout : int, float, optional
        Evaluate on held-out training rows: folds of a cross-validation, or a fraction.
    groups, time : str, optional
        The column of a table for held-out splits: the rows of a group are held out together, or
        held-out rows are later than the others.
    calibrate : str, optional
        How probabilities are computed from decision values.
    train_score : bool
        Also evaluate on the training rows.
    curve : str, optional
        Error on the test rows during training: ``test``, or ``exact`` against the exact solution.
    trace : bool
        Store the solver's reports step by step.
    stream : bool
        Read the rows in batches.
    n_inputs : int, optional
        Columns of a stream of LIBSVM text.
    checkpoint : str, optional
        A file from which an interrupted training resumes.
    every : int, optional
        Steps between two checkpoints.
    resume : bool
        Resume from the checkpoint.
    scheduler : str, optional
        The Dask scheduler whose workers have the rows.
    parts : int, optional
        Number of parts of the rows.
    """

    dataset: str
    method: str
    options: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 0
    split: str | None = None
    test: str | None = None
    label: str | None = None
    threads: int | None = None
    fixed_threads: bool = False
    timeout: float | None = None
    zero_based: bool = False
    reading: Reading | None = None
    strict: bool = False
    sample_weight: str | None = None
    cv: int | None = None
    holdout: float | None = None
    groups: str | None = None
    time: str | None = None
    calibrate: str | None = None
    train_score: bool = False
    curve: str | None = None
    trace: bool = False
    stream: bool = False
    n_inputs: int | None = None
    checkpoint: str | None = None
    every: int | None = None
    resume: bool = False
    scheduler: str | None = None
    parts: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "method", methods.short(self.method))
        if self.split is not None:
            object.__setattr__(self, "split", _plain(str(self.split)))

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Run:
        """The run from values by name, such as those of JSON; UsageError for an unknown name."""
        for name in values:
            if name not in _DEFAULTS:
                raise UsageError(f"a run has no {name!r:.80}{or_near(name, _DEFAULTS, 'it has')}")
        known: dict[str, Any] = {
            name: _DEFAULTS[name] if value is None else value for name, value in values.items()
        }
        if isinstance(known.get("reading"), Mapping):
            lists = known["reading"].items()
            given: dict[str, Any] = {
                name: tuple(value) if isinstance(value, list) else value for name, value in lists
            }
            known["reading"] = Reading(**given)
        return cls(**known)

    def as_dict(self) -> dict[str, Any]:
        """Data set, method, options, seed, and other non-default fields; JSON serialisable."""
        found = {
            name: value
            for name in _DEFAULTS
            if (value := getattr(self, name)) != _DEFAULTS[name] and name != "options"
        }
        if self.reading is not None:
            found["reading"] = self.reading.given()
        return {
            "dataset": self.dataset,
            "method": self.method,
            "options": dict(self.options),
            "seed": self.seed,
        } | found

    def how_to_read(self) -> Reading:
        """How the rows are read, including the base of LIBSVM's indices."""
        reading = self.reading or Reading()
        zero_based = self.zero_based or None
        return replace(reading, zero_based=zero_based, groups=self.groups, time=self.time)

    def told(self) -> dict[str, str]:
        """The entries of a row about the run in addition to its columns and options: label, test
        rows, and how its table is read.
        """
        reading = self.reading or Reading()
        found = {
            "label": self.label,
            "test": self.test,
            "target": reading.target,
            "ignore": written(reading.ignore),
            "missing": None if reading.missing == Reading.missing else reading.missing,
        }
        return {name: value for name, value in found.items() if value}

    def given(self) -> dict[str, Any]:
        """The options that are not None."""
        return {name: value for name, value in self.options.items() if value is not None}


def _plain(split: str) -> str:
    """A fraction in normalised spelling, so that .80 and 0.8 are one run; other splits
    unchanged.
    """
    try:
        share = training_share(split)
    except UsageError:  # reported when the data is read
        return split
    return split if share is None else repr(share)


_DEFAULTS: dict[str, Any] = {
    one.name: None if one.name in ("dataset", "method", "options") else one.default
    for one in fields(Run)
}
