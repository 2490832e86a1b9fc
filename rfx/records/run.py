"""A run: one training and its evaluation, as requested by a plan or a command."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from rfx import methods
from rfx.data.reading import Reading, training_share, written
from rfx.errors import UsageError, or_near
from rfx.options import option


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
    label : str, optional
        Distinguishes runs of a plan.
    fixed_threads : bool
        The plan compares threads: they are part of the key.
    timeout : float, optional
        Seconds after which it is aborted.
    reading : Reading, optional
        How a table is read.
    train_score : bool
        Also evaluate on the training rows.
    curve : str, optional
        Error on the test rows during training: ``test``, or ``exact`` against the exact solution.
    trace : bool
        Store the solver's reports step by step.
    """

    dataset: str
    method: str
    options: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 0
    split: str | None = option(
        None,
        "A paper's split, or the fraction to train on: 0.8. The seed selects these rows; the rest"
        " are test rows.",
        metavar="NAME|SHARE",
    )
    test: str | None = option(
        None,
        "Rows to evaluate on, which no choice sees. By default the data set's test rows.",
        metavar="NAME|FILE",
    )
    label: str | None = None
    threads: int | None = option(
        None,
        "Number of threads. By default one per available core, which is also the maximum.",
        least=1,
        metavar="COUNT",
    )
    device: str = option(
        "cpu",
        "Processor or GPU. A GPU is for squared loss (rf, nystrom, lkrf, kernel, rfm, local,"
        " block, auto).",
        of={
            "cpu": "the processor",
            "cuda": "a GPU, with PyTorch or CuPy",
            "auto": "a GPU if there is one and the rows are many",
        },
    )
    fixed_threads: bool = False
    timeout: float | None = None
    zero_based: bool = option(
        False, "Indices of LIBSVM text start at 0. By default at 1, or as in the model."
    )
    reading: Reading | None = None
    strict: bool = option(
        False,
        "Reject columns and categories that were absent from the training rows. By default they are"
        " ignored.",
    )
    sample_weight: str | None = option(
        None,
        "File with sample weights of the training rows, one per line. A row of weight 2 counts as"
        " two (rf, kernel and others).",
        metavar="FILE",
    )
    cv: int | None = option(
        None,
        "Evaluate by cross-validation with this many folds.",
        least=2,
        most=1000,
        metavar="PARTS",
    )
    holdout: float | None = option(
        None,
        "Evaluate on this fraction of the training rows. The model of the score is trained on the"
        " rest.",
        above=0,
        most=0.5,
        metavar="SHARE",
    )
    groups: str | None = option(
        None,
        "Column of group labels, such as patients. Rows of a group are held out together; the"
        " column is not an input.",
        metavar="COLUMN",
    )
    time: str | None = option(
        None,
        "Column of times: only later rows are held out. It has numbers or dates, sets the order and"
        " is not an input; --cv uses growing windows, --holdout the last part.",
        metavar="COLUMN",
    )
    calibrate: str | None = option(
        None,
        "Calibrate probabilities: platt or isotonic. They are computed on the rows of --cv or"
        " --holdout, by default on a fifth of the training rows, for `rfx predict --proba`.",
        of=("platt", "isotonic"),
    )
    train_score: bool = False
    curve: str | None = None
    trace: bool = False
    stream: bool = option(
        False,
        "Read --data (a LIBSVM or .csv file, or -) in batches, so that it need not fit in memory"
        " (doubly-sgd and other stochastic methods).",
    )
    n_inputs: int | None = option(
        None,
        "Number of columns of a stream. By default the largest index of the file, or of the first"
        " rows of standard input.",
        least=1,
    )
    checkpoint: str | None = option(
        None,
        "Write a resumable checkpoint to this file (streaming methods, local).",
        metavar="FILE",
    )
    every: int | None = option(
        None,
        "Steps, or leaves, between checkpoints. By default one at the end, for local fifty.",
        least=1,
    )
    resume: bool = option(
        False,
        "Continue from --checkpoint if it exists: where an interrupted training stopped; a finished"
        " one with the rows that the file gained, or with another file.",
    )
    scheduler: str | None = option(
        None,
        "Dask workers, or N local processes. Each reads its own part of --data: a file,"
        " a pattern or folder of files, or an address that fsspec opens (rf, sparse-rf, rb, lkrf,"
        " local).",
        metavar="ADDRESS|local[:N]",
    )
    parts: int | None = option(
        None,
        "Parts of the rows, with --scheduler. The same number gives bitwise the same"
        " result. By default one per worker thread, more if a part would exceed 64 MiB of the"
        " files.",
        least=1,
        metavar="COUNT",
    )

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
        if isinstance(reading := known.get("reading"), Mapping):
            entries: dict[str, Any] = {
                name: tuple(of) if isinstance(of, list) else of for name, of in reading.items()
            }
            known["reading"] = Reading(**entries)
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
            "missing": reading.missing,
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
