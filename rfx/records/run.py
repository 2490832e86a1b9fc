"""A run as requested, and its result: a row of a results file."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Self, TypeAlias, get_args

from rfx import methods
from rfx.data.reading import Reading, training_share, written
from rfx.errors import UsageError
from rfx.measures import less_is_better
from rfx.options import option
from rfx.records.params import Params
from rfx.types import JsonObject

# ----------------------------------------------------------------------
# A run: one training and its evaluation, as requested by a plan or a command.


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
    timings : int, optional
        Fit again so many times, with the chosen options, for processor seconds and memory.
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
    score: str = option(
        "auto",
        "How a training without test rows is evaluated.",
        of={
            "auto": "on rows left out of the model, or held out from another one",
            "none": "not at all, which saves time; there are no probabilities and intervals",
        },
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
    fail_below: str | None = option(
        None,
        "Exit with code 5 if the score is worse than this, and keep an earlier --model: a number"
        " (--measure, else accuracy or R2), MEASURE=NUMBER such as auc=0.8 or rmse=3, or baseline"
        " for the simple models.",
        metavar="SCORE",
    )
    train_score: bool = False
    curve: str | None = None
    trace: bool = False
    timings: int | None = None
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
    def of(cls, values: JsonObject) -> Self:
        """The run from values by name, such as those of JSON."""
        known: JsonObject = {
            name: DEFAULTS[name] if value is None else value for name, value in values.items()
        }
        if isinstance(reading := known.get("reading"), Mapping):
            entries: JsonObject = {
                name: tuple(of) if isinstance(of, list) else of for name, of in reading.items()
            }
            known["reading"] = Reading(**entries)
        return cls(**known)

    def as_dict(self) -> JsonObject:
        """Data set, method, options, seed, and other non-default fields; JSON serialisable."""
        found = {
            name: value
            for name in DEFAULTS
            if (value := getattr(self, name)) != DEFAULTS[name] and name != "options"
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

    def given(self) -> JsonObject:
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


DEFAULTS: JsonObject = {
    one.name: None if one.name in ("dataset", "method", "options") else one.default
    for one in fields(Run)
}


# Fields that do not affect the outcome of a run: model and checkpoint files, cores or machines,
# time limits, its trace and timings, the limit of its score. They are not part of its key.
NOT_IN_KEY = frozenset(
    (
        "threads",
        "device",
        "model",
        "timeout",
        "trace",
        "timings",
        "fail_below",
        "scheduler",
        "parts",
        "checkpoint",
        "every",
        "resume",
    )
)


# ----------------------------------------------------------------------
# The typed record of a run and its outcome, a row of a results file.

# Maps a run's key to the steps of its solver.
FindTrace: TypeAlias = Callable[[str | None], list[JsonObject]]

STATUSES = ("ok", "failed", "timeout", "interrupted")
# The word of --fail-below for the scores of simple models.
BASELINE = "baseline"
# The difference of two models is noise below so many of its standard errors.
NOISE = 2.0


@dataclass(frozen=True)
class Advantage:
    """How much a simple model is better; is_noise: less than NOISE standard errors of the
    difference on these rows.
    """

    name: str
    gain: float
    is_noise: bool


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Result(Mapping[str, Any]):
    """One row of a results file: a run and its outcome. As a mapping it has every column by name.

    A number is None if unknown. `traces` finds the steps of a key's solver, which the mapping has
    as `trace`; a row created by a run has them in `steps`.
    """

    key: str | None = None
    created: str | None = None
    status: str | None = None
    message: str | None = None
    dataset: str
    split: str | None = None
    task: str | None = None
    n_train: int | None = None
    n_test: int | None = None
    n_inputs: int | None = None
    method: str
    kernel: str | None = None
    solver: str | None = None
    lam: float | None = None
    n_features: int | None = None
    params: Params = field(default_factory=Params)
    seed: int | None = None
    metric: str | None = None
    score: float | None = None
    model_size: int | None = None
    model_bytes: int | None = None
    seconds_features: float | None = None
    seconds_fit: float | None = None
    seconds_predict: float | None = None
    peak_rss_mb: float | None = None
    objective: float | None = None
    gap: float | None = None
    n_iter: int | None = None
    converged: bool | None = None
    threads: int | None = None
    dtype: str | None = None
    rfx: str | None = None
    python: str | None = None
    numpy: str | None = None
    scipy: str | None = None
    numba: str | None = None
    liblinear: str | None = None
    libsvm: str | None = None
    blas: str | None = None
    cpu: str | None = None
    git_revision: str | None = None
    traces: FindTrace | None = None
    steps: list[JsonObject] | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.params, Params):
            object.__setattr__(self, "params", Params(self.params))

    def __getitem__(self, name: str) -> Any:
        if name in TYPES:
            return getattr(self, name)
        if name == "trace" and self.trace is not None:
            return self.trace
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        return iter(COLUMNS)

    def __len__(self) -> int:
        return len(COLUMNS)

    @property
    def trace(self) -> list[JsonObject] | None:
        """The steps of the solver; None if they are not known."""
        return self.steps if self.traces is None else self.traces(self.key)

    @property
    def no_better(self) -> str | None:
        """A warning that its score is no better than a constant's; None otherwise."""
        params, (metric, score) = self.params, self.measured
        metric = metric or ("rmse" if self.task == "regression" else "accuracy")
        score = params.train_score if score is None else score
        least = params.constant_score if params.baseline is None else params.baseline.constant
        if score is None or least is None:
            return None
        if score < least if less_is_better(metric) else score > least:
            return None
        if params.n_classes == 1:
            return "all training rows have the same label, so the model always predicts it"
        same = "the mean target" if self.task == "regression" else "the most frequent label"
        return (
            f"{metric} {score:.4g} is no better than {least:.4g}, the score of always predicting"
            f" {same}"
        )

    @property
    def measured(self) -> tuple[str | None, float | None]:
        """The measure of the baselines, and the score by it."""
        baseline = self.params.baseline
        if baseline is None or baseline.metric == self.metric:
            return self.metric, self.score
        return baseline.metric, self.params["measures"][baseline.metric]

    @property
    def better(self) -> list[Advantage]:
        """The linear model and boosting, if their scores are better."""
        baseline, (measure, own) = self.params.baseline, self.measured
        if baseline is None or own is None:
            return []
        models = (
            ("a linear model", baseline.linear, baseline.standard_error("linear")),
            ("gradient boosting", baseline.boosting, baseline.standard_error("boosting")),
        )
        found = []
        for words, score, error in models:
            if score is None:
                continue
            gain = own - score if less_is_better(measure) else score - own
            if gain > 0:
                found.append(Advantage(words, gain, gain < NOISE * error))
        return found

    def as_dict(self) -> JsonObject:
        """All columns by name, with params as a dict: JSON serialisable."""
        return dict(self) | {"params": dict(self.params)}

    def with_params(self, **more: object) -> "Result":
        """The same record with more entries of params."""
        return replace(self, params=self.params | more)


COLUMNS = tuple(one.name for one in fields(Result))[:-2]
# The type of each column.
TYPES: dict[str, type] = {
    one.name: dict if one.name == "params" else (get_args(one.type) or (one.type,))[0]
    for one in fields(Result)[:-2]
}


def seconds_train(row: Result) -> float | None:
    """Training time as defined in the papers: features and fit together."""
    if row.seconds_fit is None:
        return None
    return row.seconds_fit + (row.seconds_features or 0.0)
