"""Methods that learn in batches, from arrays, files, standard input, or endless streams.

Training can be stopped, saved and resumed at any batch. The objective is a mean: nu/2 ||f||^2 + E
L(f(x), y) with nu = lam / n (Dai et al. 2014, equation 1). With sample weights it is the weighted
mean, so that weight 2 counts a row twice.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from rfx import losses, parallel
from rfx import steps as told
from rfx.data.stream import ArraySource, Source, Stream
from rfx.data.survey import SAMPLE, Inputs, Survey
from rfx.data.tabular.apart import Apart
from rfx.data.transforms.pca import PCA
from rfx.errors import DataError, RfxError, UsageError
from rfx.features import MAPS
from rfx.fitting import (
    bandwidth,
    checkpoints,
    inputs,
    stream_choice,
    stream_weights,
    targets,
    virtual_examples,
    weights,
)
from rfx.fitting.cache import Cache
from rfx.fitting.learned import Learned
from rfx.fitting.method import Method, scalars
from rfx.fitting.options import AUTO, CHOSEN_GAMMA, DTYPE, EPSILON, GAMMA, KERNEL, LOSS, MOST
from rfx.fitting.pipeline import Pipeline, n_targets, silent
from rfx.fitting.preprocessing import Preprocessing, input_dtype
from rfx.fitting.problem import Problem, Progress
from rfx.fitting.selection import Choice
from rfx.fitting.stream_options import (
    BATCH,
    FEW_ROWS,
    HEAD,
    MANY_ROWS,
    NU,
    NUS,
    PASSES,
    SAMPLES,
    SECONDS,
)
from rfx.fitting.training import Trainer
from rfx.fitting.validation import error
from rfx.fitting.weights import CLASS_WEIGHT
from rfx.kernels import KERNELS
from rfx.model import Array
from rfx.options import Chosen, option

# Returns an iterator of (X, y) over all rows each time it is called.
Chunks = Callable[[], Iterator[tuple[Any, np.ndarray]]]

# Rows per prediction call; a curve has a point each time the samples grew by this factor.
ROWS, GROWTH = 8192, 1.3
# Seconds between reports of progress.
TELL = 0.2


class Learner:
    """A solver while it learns, and the conversion of its state to a model; it can be pickled.

    Parameters
    ----------
    solver : object
        With ``t``, ``step``, ``predictions``, ``state()`` and ``restore(state)``.
    """

    def __init__(self, solver: Any) -> None:
        self.solver = solver

    def step(self, X: Any, Y: np.ndarray, index: Any, own: Any) -> float:
        """One step over prepared rows with these numbers and weights; returns the mean loss before
        it.
        """
        loss: float = self.solver.step(X, Y, own)
        return loss

    def parameters(self) -> dict[str, np.ndarray]:
        """The arrays of the model."""
        raise TypeError(f"{type(self).__name__} does not define parameters")

    def predict(self, X: Any) -> np.ndarray:
        """(n, outputs) values of f for prepared rows."""
        found: np.ndarray = self.solver.predictions(X)
        return found

    def follow(self, X: Any) -> Callable[[], np.ndarray]:
        """A function without arguments that repeatedly returns f of prepared rows."""
        return lambda: self.predict(X)

    def describe(self) -> dict[str, Any]:
        """``n_features``, ``model_size`` and more."""
        raise TypeError(f"{type(self).__name__} does not define describe")

    def header(self) -> dict[str, Any]:
        """Its part of the model file's header."""
        return {}

    def training_bytes(self) -> int | None:
        """Bytes that training has to keep besides the batch: the state of the solver, and the
        arrays of the feature map that no seed can produce. None where the state is not known.
        """
        return sum(map(n_bytes, self.solver.state().values()))


def n_bytes(values: Any) -> int:
    """Bytes of an array or of a CSR matrix."""
    if sp.issparse(values):
        return int(values.data.nbytes + values.indices.nbytes + values.indptr.nbytes)
    return int(np.asarray(values).nbytes)


@dataclass(frozen=True)
class StreamModel:
    """f of prepared rows, with the preparation after scaling.

    Parameters
    ----------
    inputs : Inputs
        Unit length and principal components.
    n_outputs : int
    predict : callable
        Prepared rows -> (n, outputs).
    parameters : callable
        () -> the arrays that define f.
    about : dict
        The header of the model file.
    description : dict
    dtype : numpy.dtype
        The type of the scaled rows.
    own_steps : callable or None
        () -> the steps from prepared rows to f; None for a model that was not loaded from a file.
    """

    inputs: Inputs
    n_outputs: int
    predict: Callable[[Any], np.ndarray]
    parameters: Callable[[], dict[str, np.ndarray]]
    about: dict[str, Any]
    description: dict[str, Any]
    dtype: Any = np.float64
    own_steps: Callable[[], told.Steps] | None = None

    def steps(self) -> told.Steps:
        """The computation steps of `decision` for dense rows; UsageError for a model that was not
        loaded from a file.
        """
        if self.own_steps is None:
            raise UsageError("save and load the model before exporting it")
        return self.inputs.steps(self.dtype) + self.own_steps()

    def decision(self, X: Any) -> np.ndarray:
        """(n, outputs) values for scaled rows X (n, d)."""
        out = np.empty((X.shape[0], self.n_outputs))
        for start in range(0, X.shape[0], ROWS):
            rows = self.inputs.after_scaling(X[start : start + ROWS])
            out[start : start + ROWS] = self.predict(rows)
        return out

    def arrays(self) -> dict[str, np.ndarray]:
        p = self.inputs.pca
        own = {} if p is None else {"pca_mean": p.mean, "pca_components": p.components}
        return own | self.parameters()

    def header(self) -> dict[str, Any]:
        return self.about

    def describe(self) -> dict[str, Any]:
        return self.description


@dataclass(frozen=True)
class Restored:
    """The model file's entries about the rows that a streaming method learnt from."""

    inputs: Inputs
    kernel_params: dict[str, Any]
    n_prepared: int
    n_outputs: int
    loss: Any


class StreamMethod(Method):
    """A method that learns in batches.

    A subclass defines `learner`, which creates its solver, and `predictor`, which recreates f from
    the arrays of a model file.

    Attributes
    ----------
    default_losses : dict
        By task.
    without : tuple
        Losses that it does not support.
    resumable : bool
        Whether it can write checkpoints.
    counts_rows : bool
        Whether it needs the number of rows beforehand, like dual coordinate ascent.
    """

    kernel: str = KERNEL(choices=lambda: [name for name in MAPS if not KERNELS[name].needs_rows])
    gamma: float | Chosen = GAMMA.adding(
        {"median-matlab": "1 / median distance^2, as in the program of Dai et al."},
        {
            "loo": (
                f"{CHOSEN_GAMMA.meanings()['loo']}; then the best on held-out rows of a sample"
                " among that value and 4 and 16 times as much, which need fewer epochs"
            )
        },
    )(default="loo")
    loss: str | None = LOSS(
        help=(
            "The loss; by default squared for regression, squared_hinge for two classes, softmax"
            " for more if the method supports it."
        ),
        choices=(
            "hinge",
            "squared_hinge",
            "logistic",
            "squared",
            "absolute",
            "epsilon_insensitive",
            "softmax",
        ),
    )
    epsilon: float = EPSILON()
    nu: float | Chosen = NU()
    batch: int = BATCH()
    epochs: int | None = option(
        None,
        f"Passes over the rows; by default {PASSES} over fewer than {MANY_ROWS:,}, else 1.",
        least=1,
        most=MOST,
    )
    replace: bool = option(
        False,
        "Draw rows with replacement, as in the theorems; otherwise every epoch uses each row once.",
    )
    buffer: int = option(
        16384,
        "Size of the shuffle buffer, in rows, for files and standard input; 0: no shuffling.",
        least=0,
        most=MOST,
    )
    head: int | None = option(
        None,
        "Number of first rows that scaling, labels, components and gamma are learnt from; by"
        f" default all rows, for standard input {HEAD:,}.",
        least=1,
        most=MOST,
    )
    unit: bool = option(False, "Normalise scaled rows to unit length.")
    pca: int | None = option(
        None, "Number of principal components of the scaled rows to keep.", least=1, most=MOST
    )
    pca_centred: bool = option(True, "Centre the rows for the principal components.")
    virtual: str = option(
        "none",
        "Train on an endless stream of transformed copies of the rows (virtual examples).",
        of={
            "none": "",
            "digits": "square images are rotated, scaled, shifted and distorted",
            "images": (
                "square images, grey or of three colour planes, are shifted by up to an eighth of"
                " their side and mirrored"
            ),
            "molecules": "atoms of Coulomb matrices (upper triangles) are permuted",
            "molecules-sorted": "in the order of noisy row norms",
        },
    )
    virtual_copies: int | None = option(
        None,
        "Number of virtual examples to generate once from each row; they form the training set. By"
        " default new examples are generated without end.",
        least=1,
        most=MOST,
    )
    views: int | None = option(
        None,
        "Predict by the mean of f over this many virtual examples of a row, the same"
        " transformations for all rows; by default on the row itself.",
        least=1,
        most=1000,
    )
    budget_seconds: float | None = SECONDS()
    budget_samples: int | None = SAMPLES()
    dtype: str = DTYPE()
    incremental = several_targets = True
    class_weight: str | None = CLASS_WEIGHT()
    searched: ClassVar[dict[str, tuple[float, ...]]] = {"nu": NUS}
    stages = (("nu", "theta"), ("gamma",))
    simplest = True
    # few epochs learn a narrower kernel better
    loo_multiples = (1.0, 4.0, 16.0)
    few_rows = FEW_ROWS
    fewest_evaluated = 100
    default_losses: ClassVar[dict[str, str]] = {
        "regression": "squared",
        "binary": "squared_hinge",
        "multiclass": "softmax",
    }
    without: ClassVar[tuple[str, ...]] = ()
    resumable: ClassVar[bool] = True
    arrays: ClassVar[dict[str, Array]] = {
        "pca_mean": Array("f", "inputs"),
        "pca_components": Array("f", "inputs components"),
    }

    def check(self, given: dict[str, Any]) -> None:
        super().check(given)
        virtual_examples.check(self)
        if self.scaling == AUTO:
            raise UsageError(
                f"--scaling is auto, but method {self.name} scales rows before it has all of them;"
                " specify a scaling"
            )
        if self.metric != "none" and (self.unit or self.pca):
            raise UsageError(
                f"--metric is {self.metric}, which is learnt for scaled rows, but --unit and"
                " --pca change them; use only one of them"
            )

    def check_source(self, source: Source) -> None:
        """Raise UsageError for a source that the method can't learn from."""

    def check_stream(self, source: Source) -> None:
        """Raise UsageError for options that need the rows in memory."""
        for name, given in (
            ("virtual", self.virtual != "none"),
            ("replace", self.replace),
        ):
            if given:
                raise UsageError(f"--{name} needs the rows in memory; omit --stream")

    def check_further(self) -> None:
        """Raise UsageError for options that partial_fit does not support."""

    def loss_for(self, task: str) -> losses.Loss:
        name = self.loss or self.default_losses[task]
        if name in self.without:
            raise UsageError(f"--loss is {name}, which method {self.name} does not support")
        if task == "regression" and name not in losses.OF_NUMBERS:
            raise UsageError(
                f"--loss is {name}, but the task is regression; choose squared, absolute or"
                " epsilon_insensitive"
            )
        if name == "softmax" and task != "multiclass":
            raise UsageError(f"--loss is softmax, but the task is {task}; choose logistic")
        return losses.get_loss(name, self.get("epsilon"))

    def vectors(self, X: Any) -> int:
        return 0

    def passes(self, n_rows: int | None) -> int:
        """Number of epochs; n_rows: of a set, None if unknown."""
        if self.epochs is not None:
            return self.epochs
        return PASSES if n_rows is not None and n_rows < MANY_ROWS else 1

    def n_landmarks(self) -> int:
        """Required rows of the survey's sample, if more than its default."""
        return 0

    def kernel_params(self, X: Any) -> dict[str, Any]:
        """The kernel's parameters, from some of the prepared rows."""
        own = self.kernel_options
        return bandwidth.resolve(self.kernel, self.gamma, X, self.seed, **own)

    # ------------------------------------------------------------------ choice of options

    def candidates(self, name: str, problem: Problem) -> list[float]:
        if name == "theta":
            return stream_choice.thetas(problem, self)
        # derivatives between -1 and 1 make f as large as targets in any unit, if nu is small
        return [value / problem.unit for value in super().candidates(name, problem)]

    def errors_along(
        self,
        problem: Problem,
        out: Problem,
        lams: list[float],
        stop: Callable[[list[float]], bool],
        cache: Cache,
    ) -> list[float]:
        """The error on the held-out rows, infinite if training fails; lams are not used, because nu
        is one of the options."""
        try:
            decision = stream_choice.trained(self, problem).predict(out.X)
        except RfxError:
            decision = np.full(out.Y.shape, np.inf)
        finite = bool(np.isfinite(decision).all())
        found = error(problem.task, decision, out.Y, out.weights) if finite else np.inf
        stop([found])
        return [found]

    # ------------------------------------------------------------------ training

    def learner(
        self,
        learned: Learned,
        own: stream_weights.BatchWeights,
        rewindable: bool,
    ) -> Learner:
        """The solver at the start; rewindable: whether rows can be read again."""
        raise TypeError(f"{type(self).__name__} does not define learner")

    def finished(self, learned: Learned, learner: Learner, source: Source | None) -> dict[str, Any]:
        """Further entries of the results row, after training; may read the source again."""
        return {}

    def predictor(
        self,
        header: dict[str, Any],
        arrays: dict[str, np.ndarray],
        known: Restored,
    ) -> Callable[[Any], np.ndarray]:
        """f of prepared rows from a model file."""
        raise TypeError(f"{type(self).__name__} does not define predictor")

    def steps(
        self,
        header: dict[str, Any],
        arrays: dict[str, np.ndarray],
        known: Restored,
    ) -> told.Steps:
        """The computation steps of `predictor` for dense prepared rows."""
        raise UsageError(f"models of {self.name} can't be exported: there are no steps for them")

    def views_of(self, X: Any) -> Iterable[Any]:
        return virtual_examples.views(self, X)

    def score(self, preprocessing: Preprocessing, decision: np.ndarray, y: Any) -> dict[str, Any]:
        if preprocessing.task == "regression":
            y = targets.checked(decision, y, 1 if decision.ndim == 1 else decision.shape[1])
        found = super().score(preprocessing, decision, y)
        if preprocessing.task == "regression":
            found["mae"] = float(np.mean(np.abs(preprocessing.labels(decision) - y)))
        return found

    def restore(self, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> StreamModel:
        pca = None
        if "pca_components" in arrays:
            mean, components = arrays["pca_mean"], arrays["pca_components"]
            pca = PCA.from_dict(
                {"centred": header["centred"], "mean": mean, "components": components}
            )
        # scaling is the pipeline's
        inputs = Inputs(None, header["unit"], pca)  # type: ignore[arg-type]
        classes = arrays.get("classes")
        outputs = n_targets(header) if classes is None else 1 if len(classes) <= 2 else len(classes)
        loss = losses.get_loss(header["loss"], self.get("epsilon"))
        known = Restored(inputs, header["kernel_params"], header["n_prepared"], outputs, loss)
        names = Learned.__dataclass_fields__.keys() & header.keys()
        about = {
            name: header[name]
            for name in ("unit", "centred", "map", "weight_sum", *names)
            if name in header
        }
        own = {name: arrays[name] for name in self.saved_arrays(header) if name in arrays}
        return StreamModel(
            inputs,
            outputs,
            self.predictor(header, arrays, known),
            partial(dict, own),
            about,
            {},
            input_dtype(self),
            partial(self.steps, header, arrays, known),
        )


def _with_metric(
    found: Survey,
    method: Method,
    Y: np.ndarray,
    own: np.ndarray | None,
    task: str,
    apart: Apart | None,
) -> list[dict[str, Any]]:
    """Learn the metric requested by --metric from the first rows of the survey's sample, and apply
    it to the sample; return the trials.

    Y, own, apart: encoded targets and weights of these first rows, and their groups or times.
    """
    if method.metric == "none":
        return []
    rows = found.X[: len(Y)]
    learnt = inputs.with_metric(found.inputs.scaler, method, rows, Y, task, own, apart)
    found.inputs.scaler = learnt.scaler
    if learnt.scaler.metric is not None:
        found.X = learnt.scaler.metric.transform(found.X)
    return learnt.steps


@dataclass(frozen=True)
class StreamTrainer(Trainer):
    """A streaming method, ready to learn.

    Parameters
    ----------
    keeper : Keeper or None
        Where to write checkpoints, and whether to resume from one.
    """

    method: StreamMethod
    keeper: checkpoints.Keeper | None = None

    def keep(self, path: Any, every: int | None = None, resume: bool = False) -> StreamTrainer:
        """The trainer that writes a checkpoint to `path` after this many steps and at the end.

        resume: start from the existing one. UsageError if the method can't write checkpoints.
        """
        if not self.method.resumable:
            raise UsageError(
                f"method {self.name} can't write checkpoints, because scikit-learn does not expose"
                " Adam's state; omit --checkpoint"
            )
        return replace(self, keeper=checkpoints.Keeper(path, every, resume))

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        held_out: tuple[Any, Any] | None = None,
        squared: bool = False,
        progress: Progress | None = None,
        apart: Apart | None = None,
    ) -> Pipeline:
        """Learn from rows in memory; see `train`."""
        return self.train(
            X,
            y,
            sample_weight,
            held_out=held_out,
            squared=squared,
            progress=progress,
            apart=apart,
        )[1]

    @parallel.one_blas_thread()
    def train(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        held_out: tuple[Any, Any] | None = None,
        squared: bool = False,
        progress: Progress | None = None,
        apart: Apart | None = None,
    ) -> tuple[Session, Pipeline]:
        """The session and the pipeline for rows in memory, with a random order in each epoch.

        Parameters
        ----------
        X : array or CSR matrix, (n, d)
        y : array, (n,) or (n, k)
            Several targets per row require regression.
        sample_weight : array, (n,), or None
        held_out : (X, y) or None
            Raw rows to evaluate during training, outside of its clock. ``trace`` then has
            ``error``: the error rate or the mean absolute error.
        squared : bool
            The error of a regression is the mean squared error instead.
        progress : callable or None
        apart : Apart or None
            Groups or times for held-out splits.
        """
        start, s = time.perf_counter(), self.method
        every = targets.checked(X, y)
        if apart is not None and s.get("virtual", "none") != "none":
            raise UsageError(
                f"--virtual is {s.virtual}, which generates new rows; omit it or --{apart.by}"
            )
        X, y, own, apart, task = stream_weights.counted(
            s, self.schema, X, every, sample_weight, apart
        )
        # a class whose rows all have weight zero remains a class
        classes = np.unique(every) if len(y) < len(every) and task != "regression" else None
        classes = classes if self.classes is None else self.classes
        batch_weights = stream_weights.BatchWeights(own)
        total = None if own is None else float(own.sum())
        source: Source
        if virtual_examples.endless(s):
            if s.budget_samples is None and s.budget_seconds is None:
                raise UsageError(
                    "--virtual is endless; set --budget-samples, --budget-seconds or"
                    " --virtual-copies"
                )
            source = virtual_examples.source(s.virtual, X, y, s.seed)
        else:
            if s.virtual_copies is not None:
                X, y = virtual_examples.fixed(s.virtual, X, y, s.seed, s.virtual_copies)
            source = ArraySource(X, y, s.seed, s.replace, own)
        session = Session(self, batch_weights, total, held_out, squared, progress)
        session.apart = apart
        return session, session.run(source, lambda: iter([(X, y)]), 0, start, classes)

    @parallel.one_blas_thread()
    def fit_stream(
        self,
        source: Source,
        *,
        held_out: tuple[Any, Any] | None = None,
        squared: bool = False,
        progress: Progress | None = None,
    ) -> Pipeline:
        """Learn from a source of rows (rfx.data.stream), shuffled by the option `buffer`."""
        start, s = time.perf_counter(), self.method
        s.check_stream(source)
        batch_weights = stream_weights.BatchWeights.of_stream(s.get("class_weight"), self.schema)
        head = s.head or (None if source.rewindable else HEAD)

        def chunks() -> Iterator[tuple[Any, np.ndarray]]:
            if head is not None:
                yield source.peek(head)
                return
            source.rewind()
            while (part := source.read(65536)) is not None:
                yield part[:2]
            source.rewind()

        session = Session(self, batch_weights, None, held_out, squared, progress)
        return session.run(source, chunks, s.buffer, start)

    def session(self) -> Session:
        """A training for `Session.further`, batch by batch."""
        self.method.check_further()
        own = stream_weights.BatchWeights.of_stream(self.method.get("class_weight"), self.schema)
        return Session(self, own)


class Session:
    """One training in progress: the only mutable object here.

    `run` processes a source to its end; `further` makes steps over more rows. Both return a
    pipeline.
    """

    def __init__(
        self,
        trainer: StreamTrainer,
        batch_weights: stream_weights.BatchWeights,
        weight_sum: float | None = None,
        held_out: tuple[Any, Any] | None = None,
        squared: bool = False,
        progress: Progress | None = None,
    ) -> None:
        self.trainer, self.method = trainer, trainer.method
        self.batch_weights, self.weight_sum = batch_weights, weight_sum
        self.held_out, self.squared, self.progress = held_out, squared, progress
        if held_out is not None:
            self.held_out = held_out[0], targets.checked(*held_out)
        self.apart: Apart | None = None
        self._learned: Learned | None = None
        self.seconds_choice = 0.0
        self._learner: Learner | None = None
        self.curve: list[dict[str, Any]] = []
        self.samples, self.seconds, self.next_point, self.epochs = 0, 0.0, 1.0, 1
        self.loss_sum, self.loss_rows = 0.0, 0.0
        self._live: Callable[[], np.ndarray] | None = None
        self._evaluating = 0.0

    def __getstate__(self) -> dict[str, Any]:
        # the listener is not pickled
        return self.__dict__ | {"_live": None, "progress": None, "held_out": None, "apart": None}

    @property
    def learned(self) -> Learned:
        """The results of the survey of the rows."""
        assert self._learned is not None, "the session has not started"
        return self._learned

    @learned.setter
    def learned(self, found: Learned) -> None:
        self._learned = found
        self.method = self.trainer.method.with_choice(found.chosen)

    @property
    def learner(self) -> Learner:
        """The solver, and its conversion to a model."""
        assert self._learner is not None, "the session has not started"
        return self._learner

    # ------------------------------------------------------------------ training

    def run(
        self,
        source: Source,
        chunks: Chunks,
        buffer: int,
        start: float,
        classes: np.ndarray | None = None,
    ) -> Pipeline:
        """Learn from the source.

        chunks() returns (X, y) for the survey of the rows; classes are labels known beforehand.
        """
        s, keeper = self.method, self.trainer.keeper
        s.check_source(source)
        deadline = None if s.timeout is None else time.monotonic() + s.timeout
        endless = s.budget_samples is not None or virtual_examples.endless(s)
        counted = source.rewindable and not s.head
        saved = keeper.load(self) if keeper else None
        if saved is None:
            self.learn(chunks, classes, source.name, counted)
        n_rows = (self.learned if saved is None else saved.learned).n_rows if counted else None
        self.epochs = s.passes(n_rows)
        epochs = None if endless and source.rewindable else self.epochs
        stream = Stream(source, s.batch, buffer, s.seed, epochs)
        if keeper is None or saved is None:
            self.start(source.rewindable)
        else:
            keeper.restore(self, stream, saved, source.rewindable)
        with silent():
            status = self._consume(stream, deadline)
        if keeper:
            keeper.write(self, stream)
        if self._live and (not self.curve or self.curve[-1]["samples"] != self.samples):
            self._point(last=True)
        seconds = time.perf_counter() - start - self._evaluating - self.seconds_choice
        more = s.finished(self.learned, self.learner, source)
        return self.pipeline(seconds, status, more)

    @parallel.one_blas_thread()
    def further(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Pipeline:
        """Make steps over the rows X (n, d), y (n,) or (n, k), in order, in batches.

        The first call also learns scaling, gamma and, unless `classes` is given, the labels. The
        loss of each row is multiplied by its weight divided by the mean weight so far.
        """
        self.method.check_further()
        y = targets.checked(X, y, None if self._learned is None else self.learned.n_targets)
        given = weights.of_rows(y, sample_weight)
        by_label = self.method.get("class_weight")
        self.batch_weights.by_label = stream_weights.BatchWeights.of_stream(
            by_label, self.trainer.schema
        ).by_label
        if self._learned is None:
            self.learn(lambda: iter([(X, y)]), classes, sample_weight=given)
            self.start(True)
        for X_part, y_part, index in Stream(ArraySource(X, y), self.method.batch):
            own = self.batch_weights.further(y_part, weights.part(given, index))
            self.advance(X_part, y_part, None, own)
        return self.pipeline(self.seconds)

    # ------------------------------------------------------------------ steps of a training

    def learn(
        self,
        chunks: Chunks,
        classes: Any = None,
        name: str | None = None,
        counted: bool = False,
        sample_weight: np.ndarray | None = None,
    ) -> None:
        """Survey the rows and initialise the training.

        name: of the rows, for messages; counted: whether they are all rows; sample_weight: (n,) if
        the session does not know it yet.
        """
        s = self.method
        n_kept = max(SAMPLE, s.n_landmarks())
        found = Survey(
            chunks,
            scaling=s.scaling,
            unit=s.unit,
            pca=s.pca,
            centred=s.pca_centred,
            dtype=input_dtype(s),
            seed=s.seed,
            sample=max(stream_choice.ROWS, n_kept),
            name=name,
        )
        targets.check_inputs(found.n_inputs)
        task, labels, scaler = targets.learn(s, found, classes)
        if scaler is not None:
            targets.check_size(scaler.in_units(scaler.transform(found.y)))
        schema = self.trainer.schema
        self.batch_weights.check(task, labels, s.get("class_weight"), schema)
        loss = s.loss_for(task)
        softmax = loss.name == "softmax"
        # first the metric, which changes distances, then the options that depend on them
        Y = targets.encode(found.y, labels, scaler, softmax, schema)
        own = self.batch_weights.of_some(found.y, found.index, sample_weight)
        apart = None if self.apart is None else self.apart.rows(found.index)
        first = None if apart is None else apart.rows(np.arange(len(Y))[:n_kept])
        steps = _with_metric(found, s, Y[:n_kept], weights.part(own, slice(n_kept)), task, first)
        problem = Problem(found.X, Y, loss, task, own, apart=apart)
        choice = self._chosen(problem, found.n_rows if counted else None)
        params = choice.method.kernel_params(found.X[:SAMPLE])
        kept = found.X[:n_kept]
        sample = np.asarray(kept.toarray() if sp.issparse(kept) else kept)
        self.learned = Learned(
            task,
            labels,
            scaler,
            loss,
            found.inputs,
            params,
            found.n_rows,
            found.n_inputs,
            found.n_targets,
            found.X.shape[1],
            sample,
            steps + choice.steps,
            self.weight_sum,
            schema,
            {name: float(value) for name, value in choice.chosen.items()},
        )

    def _chosen(self, problem: Problem, n_rows: int | None) -> Choice:
        """The options given as words, chosen on the first rows of the sample with nonzero weight.

        n_rows: of all rows; None if unknown.
        """
        own, start = problem.weights, time.perf_counter()
        rows = np.arange(problem.n_rows) if own is None else np.flatnonzero(own)
        tried = replace(problem.rows(rows[: stream_choice.ROWS]), progress=self.progress)
        with silent():
            choice = stream_choice.choose(self.method, tried, n_rows)
        self.seconds_choice = time.perf_counter() - start
        return choice

    def start(self, rewindable: bool, state: dict[str, np.ndarray] | None = None) -> None:
        """Create the solver; state: its arrays in a checkpoint."""
        self._learner = self.method.learner(self.learned, self.batch_weights, rewindable)
        if state is not None:
            checkpoints.check_solver(state, self.learner.solver.state(), self.learned.n_prepared)
            self.learner.solver.restore(state)
        self._live, self._evaluating = self._tracked(), 0.0

    def _tracked(self) -> Callable[[], np.ndarray] | None:
        """A function without arguments: decision values of the held-out rows."""
        if self.held_out is None:
            return None
        s, follow = self.method, self.learner.follow
        views = virtual_examples.views(s, self.held_out[0])
        dtype, inputs = input_dtype(s), self.learned.inputs
        followed = [follow(inputs.transform(view, dtype)) for view in views]
        return partial(_mean, followed)

    def advance(self, X: Any, y: np.ndarray, index: Any, own: Any) -> None:
        """One step over a batch of raw rows."""
        rows = self.learned.inputs.transform(X, input_dtype(self.method))
        loss = self.learner.step(rows, self.learned.encode(y), index, own)
        self.samples += len(y)
        # the mean loss of the last tenth of the rows
        enough = self.loss_rows < 0.1 * self.samples
        keep = 1.0 if enough else 1.0 - len(y) / self.loss_rows
        self.loss_sum = keep * self.loss_sum + loss * len(y)
        self.loss_rows = keep * self.loss_rows + len(y)

    @property
    def mean_loss(self) -> float:
        """The mean loss of the latest rows, each before its own step."""
        return self.loss_sum / max(self.loss_rows, 1e-300)

    def _consume(self, stream: Stream, deadline: float | None) -> str:
        s, keeper = self.method, self.trainer.keeper
        started, before = time.perf_counter(), self.seconds
        self._evaluating, told = 0.0, started
        for X, y, index in stream:
            self.advance(X, y, index, self.batch_weights.of(y, index))
            self.seconds = before + time.perf_counter() - started - self._evaluating
            if self._live:
                self._point()
            if self.progress is not None and time.perf_counter() - told > TELL:
                told = time.perf_counter()
                self.progress(
                    {
                        "samples": self.samples,
                        "seconds": self.seconds,
                        "loss": self.mean_loss,
                        "share": self._share(),
                    }
                )
            if keeper and keeper.due(self.learner.solver.t):
                keeper.write(self, stream)
            if s.budget_samples is not None and self.samples >= s.budget_samples:
                break
            if s.budget_seconds is not None and self.seconds >= s.budget_seconds:
                break
            if deadline is not None and time.monotonic() >= deadline:
                return "timeout"
        return "converged"

    def _share(self) -> float | None:
        """The fraction of the training that is done, if its end is known."""
        s = self.method
        ends = [self.samples / s.budget_samples] if s.budget_samples else []
        ends += [self.seconds / s.budget_seconds] if s.budget_seconds else []
        if not s.budget_samples and not virtual_examples.endless(s):
            ends.append(self.samples / (self.learned.n_rows * self.epochs))
        return min(1.0, max(ends)) if ends else None

    def _point(self, last: bool = False) -> None:
        """Add a point of the curve if one is due."""
        if self.samples < self.next_point and not last:
            return
        self.next_point = max(self.samples + 1, self.samples * GROWTH)
        start = time.perf_counter()
        entry = {
            "samples": self.samples,
            "seconds": round(self.seconds, 4),
            "steps": self.learner.solver.t,
            "loss": self.mean_loss,
        }
        if self._live:
            assert self.held_out is not None
            entry["error"] = self._error(self._live(), self.held_out[1])
        self.curve.append(entry)
        self._evaluating += time.perf_counter() - start

    def _error(self, values: np.ndarray, y: np.ndarray) -> float:
        """Error rate, or mean absolute error in the targets' original units."""
        decision = values[:, 0] if values.shape[1] == 1 else values
        found = self.preprocessing().labels(decision)
        if self.learned.task != "regression":
            return float(np.mean(found != y))
        return float(np.mean((found - y) ** 2 if self.squared else np.abs(found - y)))

    # ------------------------------------------------------------------ results

    def preprocessing(self) -> Preprocessing:
        known = self.learned
        dtype, scaler = input_dtype(self.method), known.inputs.scaler
        schema, target = self.trainer.schema, known.target_scaler
        return Preprocessing(known.task, scaler, dtype, known.classes, target, schema)

    def pipeline(
        self, seconds: float, status: str = "converged", more: dict[str, Any] | None = None
    ) -> Pipeline:
        """The pipeline of the training so far."""
        s, known, learner = self.method, self.learned, self.learner
        self._check_finite()
        about = known.header() | learner.header()
        description = learner.describe()
        model = StreamModel(
            known.inputs, known.n_outputs, learner.predict, learner.parameters, about, description
        )
        info = {
            "task": known.task,
            "n_train": known.n_rows,
            "n_inputs": known.n_inputs,
            "method": self.method.name,
            "kernel": s.get("kernel"),
            "solver": None,
            "loss": known.loss.name,
            "lam": s.nu * known.n_counted,
            "objective": self.mean_loss,
            "gap": None,
            "n_iter": learner.solver.t,
            "converged": status == "converged",
            "ended": status,
            "seconds_features": 0.0,
            "seconds_fit": seconds,
            "samples": self.samples,
            "seconds_steps": self.seconds,
            "kernel_params": scalars(known.kernel_params),
        }
        info |= description
        if (stored := learner.training_bytes()) is not None:
            info["training_bytes"] = stored
        if known.weight_sum is not None:
            info["weight_sum"] = known.weight_sum
        if known.steps:
            info["validation"] = known.steps
            if self.seconds_choice:
                info["seconds_validation"] = self.seconds_choice
        if self.curve:
            info["curve"] = self.curve
        return Pipeline(
            self.trainer.method,
            self.preprocessing(),
            model,
            known.loss,
            info | (more or {}),
            self.curve,
        )

    def _check_finite(self) -> None:
        arrays = self.learner.parameters().values()
        if not (np.isfinite(self.mean_loss) and all(np.isfinite(part).all() for part in arrays)):
            raise DataError(
                f"training {self.method.name} diverged: its numbers are not finite (mean loss"
                f" {self.mean_loss:g}); try smaller steps or another --gamma"
            )


def _mean(followed: list[Callable[[], np.ndarray]]) -> np.ndarray:
    first, *others = [values() for values in followed]
    return sum(others, first) / len(followed)


StreamMethod.trainer_class = StreamTrainer
