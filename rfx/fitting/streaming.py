"""Methods that learn in batches: their options, what a solver is started from, and their models.

A method starts a solver, which makes a step for each batch of rows. `StreamMethod.fit` is the loop
over rows in memory; `rfx.fitting.session` adds files and endless streams, budgets, curves and
checkpoints. The objective is a mean: nu/2 ||f||^2 + E L(f(x), y) with nu = lam / n (Dai et al.
2014, equation 1). With sample weights it is the weighted mean, so that weight 2 counts a row twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Protocol, Self

import numpy as np
import scipy.sparse as sp

from rfx import losses
from rfx import steps as told
from rfx.data.stream import ArraySource, Source, Stream
from rfx.data.survey import SAMPLE, Inputs
from rfx.data.transforms.pca import PCA
from rfx.errors import RfxError, UsageError
from rfx.features import MAPS
from rfx.fitting import selection, targets, virtual_examples
from rfx.fitting.batch_weights import BatchWeights
from rfx.fitting.candidates import LAMS, SearchSpace
from rfx.fitting.method import Fitted, Method, has_gamma
from rfx.fitting.options import (
    AUTO,
    CHOSEN_GAMMA,
    CLASS_WEIGHT,
    DTYPE,
    EPSILON,
    GAMMA,
    KERNEL,
    LOSS,
    MOST,
)
from rfx.fitting.pipeline import n_targets
from rfx.fitting.preprocessing import Preprocessing, input_dtype
from rfx.fitting.problem import Cache, Problem, error
from rfx.kernels import KERNELS
from rfx.model import Array
from rfx.options import Chosen, option
from rfx.solvers.base import Solution

# Prepared rows, encoded targets (n, outputs), and the rows' numbers.
Batch = tuple[Any, np.ndarray, np.ndarray]
Arrays = dict[str, np.ndarray]
# Rows per prediction call.
ROWS = 8192
# Number of first rows for learning preprocessing, if the input can be read only once.
HEAD = 10_000
# The candidates of --nu validation, and nu for too few rows to choose.
NUS, FEW_NU = (1e-3, 1e-4, 1e-5, 1e-6, 1e-7), 1e-4
# Default epochs for fewer rows than MANY_ROWS; one for more.
PASSES, MANY_ROWS = 3, 100_000
# The entries of a model file's header about the rows that f was learnt from.
SAVED = (
    "unit",
    "centred",
    "kernel_params",
    "n_rows",
    "n_inputs",
    "n_prepared",
    "n_targets",
    "chosen",
    "weight_sum",
    "map",
)


class Solver(Protocol):
    """A function f that learns; it can be pickled.

    That of a resumable method also has ``state()``, arrays from which ``restore(state)`` of another
    continues bitwise identically.
    """

    t: int

    def step(
        self,
        X: Any,
        Y: np.ndarray,
        index: np.ndarray | None = None,
        weights: np.ndarray | None = None,
    ) -> float:
        """One step over prepared rows X (n, d) and encoded targets Y (n, outputs), with their
        numbers in the set and (n,) factors of their losses; returns the mean loss before it.
        """
        ...

    def predictions(self, X: Any) -> np.ndarray:
        """(n, outputs) float64 values of f."""
        ...


@dataclass(frozen=True)
class Setup:
    """What a solver is started from, and f recreated from a model file.

    Parameters
    ----------
    task : str
    loss : Loss
    kernel_params : dict
    n_inputs, n_outputs : int
        Of prepared rows, and of f.
    n_rows : int
        Of the whole set, or those seen so far.
    sample : array, (m, n_inputs)
        Some of the prepared rows, in random order.
    weights : array, (n_rows,), or None
        Weights of all rows of the set, of mean 1; None if unknown beforehand.
    rewindable : bool
        Whether rows can be read again.
    """

    task: str
    loss: Any
    kernel_params: dict[str, Any]
    n_inputs: int
    n_outputs: int
    n_rows: int = 0
    sample: Any = None
    weights: np.ndarray | None = None
    rewindable: bool = False


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
    parameters: Callable[[], Arrays]
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

    def arrays(self) -> Arrays:
        return pca_arrays(self.inputs) | self.parameters()

    def header(self) -> dict[str, Any]:
        return self.about

    def describe(self) -> dict[str, Any]:
        return self.description


class StreamMethod(Method):
    """A method that learns in batches.

    A subclass defines `start`, which creates its solver, `parameters` and `describe`, and
    `predictor`, which recreates f from the arrays of a model file.

    Attributes
    ----------
    default_losses : dict
        By task.
    without : tuple
        Losses that it does not support.
    resumable : bool
        Whether it can write checkpoints.
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
    nu: float | Chosen = option(
        "validation",
        "Regularisation of the mean loss, lambda / n: nu/2 ||f||^2.",
        of={"validation": "the best of 1e-3, 1e-4, …, 1e-7 on held-out rows of a sample"},
        least=0,
    )
    batch: int = option(1024, "Rows per step (batch size).", least=1, most=MOST)
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
    budget_seconds: float | None = option(
        None, "Seconds of training, after which it stops normally.", above=0, most=2e6
    )
    budget_samples: int | None = option(
        None, "Maximum number of rows to process, over all epochs.", least=1, most=10**12
    )
    dtype: str = DTYPE()
    incremental = several_targets = True
    class_weight: str | None = CLASS_WEIGHT()
    space = SearchSpace(
        {"nu": NUS},
        stages=(("nu", "theta"), ("gamma",)),
        fewest=100,
        few_rows={"nu": FEW_NU, "theta": 1.0},
        # few epochs learn a narrower kernel better
        multiples=(1.0, 4.0, 16.0),
        simplest=True,
    )
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
        for name, used in (("virtual", self.virtual != "none"), ("replace", self.replace)):
            if used:
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

    # ------------------------------------------------------------------ the solver

    def start(self, setup: Setup) -> Solver:
        """The solver before its first step."""
        raise TypeError(f"{type(self).__name__} does not define start")

    def predict(self, solver: Any, X: Any) -> np.ndarray:
        """(n, outputs) values of f for prepared rows."""
        values: np.ndarray = solver.predictions(X)
        return values

    def follow(self, solver: Any, X: Any) -> Callable[[], np.ndarray]:
        """A function without arguments that repeatedly returns f of prepared rows."""
        return partial(self.predict, solver, X)

    def parameters(self, solver: Any) -> Arrays:
        """The arrays of the model."""
        raise TypeError(f"{type(self).__name__} does not define parameters")

    def describe(self, solver: Any) -> dict[str, Any]:
        """``n_features``, ``model_size`` and more."""
        raise TypeError(f"{type(self).__name__} does not define describe")

    def header(self, solver: Any) -> dict[str, Any]:
        """The solver's part of the model file's header."""
        return {}

    def training_bytes(self, solver: Any) -> int | None:
        """Bytes that training has to keep besides the batch: the state of the solver, and the
        arrays of the feature map that no seed can produce. None where the state is not known.
        """
        return sum(map(n_bytes, solver.state().values()))

    def finished(
        self, solver: Any, batches: Callable[[], Iterator[Batch]], n_counted: float
    ) -> dict[str, Any]:
        """Further entries of the results row after training; batches() reads all rows again."""
        return {}

    def model(self, solver: Any, inputs: Inputs, n_outputs: int, about: Any) -> StreamModel:
        """The model of a solver's f at present."""
        return StreamModel(
            inputs,
            n_outputs,
            partial(self.predict, solver),
            partial(self.parameters, solver),
            about | self.header(solver),
            self.describe(solver),
        )

    def fit(self, problem: Problem, cache: Cache) -> Fitted:
        """Learn from prepared rows in memory, with a random order in each epoch."""
        weights, seed = BatchWeights(problem.weights), self.seed
        order = np.random.default_rng(seed).permutation(problem.n_rows)
        setup = Setup(
            problem.task,
            problem.loss,
            self.kernel_params(problem.X),
            problem.n_inputs,
            problem.n_outputs,
            problem.n_rows,
            dense(problem.X[order[: max(1, self.n_landmarks())]]),
            weights.relative(),
            True,
        )
        solver, loss = self.start(setup), 0.0
        numbers = np.arange(problem.n_rows, dtype=np.float64)
        source = ArraySource(problem.X, numbers, seed)
        for X, y, index in Stream(source, self.batch, 0, seed, self.epochs):
            loss = solver.step(X, problem.Y[index], index, weights.of(y, index))
        model = self.model(solver, inputs_of({"unit": False}, {}, None), problem.n_outputs, {})
        return Fitted(model, Solution(np.zeros(0), loss, None, solver.t, "converged"))

    # ------------------------------------------------------------------ choice of options

    def chosen(self, problem: Problem, n_rows: int | None) -> selection.Choice:
        """Replace every word among the options by the number that it selects by short trainings on
        a sample.

        A fifth of the sample is held out. Every candidate learns from the others, with the default
        number of epochs, whatever the training uses: a training resumed with more epochs has the
        same options as one that requested as many from the beginning. First nu is chosen, with the
        bandwidth of lowest leave-one-out error of kernel ridge regression; then the bandwidth,
        among that and larger multiples of gamma. Because error rates are uncertain on so few rows,
        the first candidate within half a standard error of the lowest is used: the largest nu, the
        smallest gamma. nu refers to the mean loss, so it is the same for the sample and for all
        rows.

        Parameters
        ----------
        problem : Problem
            Prepared rows of the sample in random order, and their encoded targets.
        n_rows : int or None
            Of the whole set; None if unknown.
        """
        if self.get("gamma") == "tuned" and has_gamma(self.kernel):
            first = problem.rows(np.arange(problem.n_rows)[:SAMPLE])
            n_known = n_rows or problem.n_rows
            lams = list(LAMS) if isinstance(self.nu, str) else [self.nu * n_known]
            gamma, steps = selection.tuned(self, first, lams)
            choice = self.updated(gamma=gamma).chosen(problem, n_rows)
            numbers = {"gamma": gamma} | choice.chosen
            return selection.Choice(choice.method, numbers, steps + choice.steps, choice.seconds)
        default = self.updated(epochs=None)
        trial = default.updated(epochs=default.passes(n_rows)).with_words()
        choice = selection.choose(trial, problem, Cache())
        return selection.Choice(
            self.with_choice(choice.chosen), choice.chosen, choice.steps, choice.seconds
        )

    def with_words(self) -> Self:
        """The method with words for all options that are chosen."""
        return self

    def candidates(self, name: str, problem: Problem) -> list[float]:
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
            decision = self.fit(problem, cache).model.decision(out.X)
        except RfxError:
            decision = np.full(out.Y.shape, np.inf)
        finite = bool(np.isfinite(decision).all())
        score = error(problem.task, decision, out.Y, out.weights) if finite else np.inf
        stop([score])
        return [score]

    # ------------------------------------------------------------------ models

    def predictor(
        self, header: dict[str, Any], arrays: Arrays, setup: Setup
    ) -> Callable[[Any], np.ndarray]:
        """f of prepared rows from a model file."""
        raise TypeError(f"{type(self).__name__} does not define predictor")

    def steps(self, header: dict[str, Any], arrays: Arrays, setup: Setup) -> told.Steps:
        """The computation steps of `predictor` for dense prepared rows."""
        raise UsageError(f"models of {self.name} can't be exported: there are no steps for them")

    def views_of(self, X: Any) -> Iterable[Any]:
        return virtual_examples.views(self, X)

    def score(self, preprocessing: Preprocessing, decision: np.ndarray, y: Any) -> dict[str, Any]:
        if preprocessing.task != "regression":
            return super().score(preprocessing, decision, y)
        y = targets.checked(decision, y, targets.count(decision))
        mae = float(np.mean(np.abs(preprocessing.labels(decision) - y)))
        return super().score(preprocessing, decision, y) | {"mae": mae}

    def restore(self, header: dict[str, Any], arrays: Arrays) -> StreamModel:
        classes = arrays.get("classes")
        setup = Setup(
            header["task"],
            losses.get_loss(header["loss"], self.get("epsilon")),
            header["kernel_params"],
            header["n_prepared"],
            n_outputs(classes, n_targets(header)),
        )
        own = {name: arrays[name] for name in self.saved_arrays(header) if name in arrays}
        return StreamModel(
            # scaling is the pipeline's
            inputs_of(header, arrays, None),
            setup.n_outputs,
            self.predictor(header, arrays, setup),
            partial(dict, own),
            {name: header[name] for name in SAVED if name in header},
            {},
            input_dtype(self),
            partial(self.steps, header, arrays, setup),
        )


def n_outputs(classes: np.ndarray | None, n_targets: int) -> int:
    """The outputs of f: one per target, or per class if there are more than two."""
    if classes is None:
        return n_targets
    return 1 if len(classes) <= 2 else len(classes)


def pca_arrays(inputs: Inputs) -> Arrays:
    """The principal components, for model files and checkpoints."""
    p = inputs.pca
    return {} if p is None else {"pca_mean": p.mean, "pca_components": p.components}


def inputs_of(header: dict[str, Any], arrays: Arrays, scaler: Any) -> Inputs:
    """The preparation of rows in a model file or checkpoint, with that scaling."""
    if "pca_components" not in arrays:
        return Inputs(scaler, header["unit"])
    mean, components = arrays["pca_mean"], arrays["pca_components"]
    pca = PCA.from_dict({"centred": header["centred"], "mean": mean, "components": components})
    return Inputs(scaler, header["unit"], pca)


def dense(X: Any) -> np.ndarray:
    """Rows X (n, d), array or CSR, as an array."""
    return np.asarray(X.toarray() if sp.issparse(X) else X)


def n_bytes(values: Any) -> int:
    """Bytes of an array or of a CSR matrix."""
    if sp.issparse(values):
        return int(values.data.nbytes + values.indices.nbytes + values.indptr.nbytes)
    return int(np.asarray(values).nbytes)
