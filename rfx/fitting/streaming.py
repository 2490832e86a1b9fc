"""Methods that learn in batches: their options, what a solver is started from, and their models.

A method starts a solver, which makes a step for each batch of rows. `StreamMethod.fit` is the loop
over rows in memory; `rfx.fitting.session` adds files and endless streams, budgets, curves and
checkpoints. The objective is a mean: nu/2 ||f||^2 + E L(f(x), y) with nu = lam / n (Dai et al.
2014, equation 1). With sample weights it is the weighted mean, so that weight 2 counts a row twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Protocol, Self

import numpy as np
import scipy.sparse as sp

from rfx import losses
from rfx import steps as told
from rfx.data.stream import ArraySource, Source, Stream
from rfx.data.survey import SAMPLE, Inputs
from rfx.data.tabular.schema import Schema
from rfx.data.transforms.pca import PCA
from rfx.errors import RfxError, UsageError
from rfx.features import MAPS
from rfx.fitting import selection, targets, virtual_examples, weights
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
from rfx.solvers.stochastic.gradient import DAMPING, Descent, Steps

# Prepared rows, encoded targets (n, outputs), and the rows' numbers.
Batch = tuple[Any, np.ndarray, np.ndarray]
Arrays = dict[str, np.ndarray]
# Rows per prediction call.
ROWS = 8192
# Number of first rows for learning preprocessing, if the input can be read only once.
HEAD = 10_000
# The candidates of --nu validation, and nu for too few rows to choose.
NUS, FEW_NU = (1e-3, 1e-4, 1e-5, 1e-6, 1e-7), 1e-4
# Those of theta, the length of the first step, without preconditioning.
THETAS = (1.0, 4.0, 16.0)
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


class BatchWeights:
    """The factors of each batch's losses: the rows' weights divided by their mean, over all rows or
    over those so far.

    own: (n,) weights of all rows of the set, by their numbers; None if unknown beforehand.
    class_weight: the option, for rows whose weights are not known. Raises UsageError for
    `balanced`, which needs all rows.
    """

    def __init__(
        self,
        own: np.ndarray | None = None,
        class_weight: str | None = None,
        schema: Schema | None = None,
    ) -> None:
        by_label = weights.by_code(class_weight, schema)
        if isinstance(by_label, str):
            raise UsageError(
                "--class-weight balanced needs the counts of all rows beforehand; with --stream use"
                " LABEL:WEIGHT"
            )
        self.own, self.by_label, self.schema = own, by_label or {}, schema
        self.rows, self.sum = (0, 0.0) if own is None else (len(own), float(own.sum()))

    def check(self, task: str, classes: np.ndarray | None, class_weight: str | None) -> None:
        """Raise UsageError for weights of unknown labels."""
        if self.by_label and classes is None:
            raise weights.not_for_regression(class_weight)
        if self.by_label and classes is not None:
            weights.of_labels(classes, self.by_label, self.schema)

    def relative(self) -> np.ndarray | None:
        """(n,) the rows' own weights divided by their mean; None without weights."""
        return None if self.own is None else self.own * (self.rows / self.sum)

    def of(self, y: np.ndarray, index: np.ndarray) -> np.ndarray | None:
        """(m,) of the rows with the targets y (m,) and the numbers `index`; None for ones."""
        return self.further(y) if self.own is None else self.own[index] * (self.rows / self.sum)

    def of_some(
        self, y: np.ndarray, index: np.ndarray, given: np.ndarray | None = None
    ) -> np.ndarray | None:
        """(m,) weights of a sample of the rows, without updating the mean; None for ones.

        given: (n,) weights of all rows by their numbers, if they differ from the set's own.
        """
        all_rows = self.own if given is None else given
        some = self._labelled(y, None if all_rows is None else all_rows[index])
        return None if np.all(some == 1) or not some.sum() else some

    def further(self, y: np.ndarray, given: np.ndarray | None = None) -> np.ndarray | None:
        """(m,) weights of further rows, with the targets y (m,), which update the mean; given: (m,)
        their sample weights, None for ones.
        """
        batch = self._labelled(y, given)
        self.rows, self.sum = self.rows + len(y), self.sum + float(batch.sum())
        if self.sum == self.rows and np.all(batch == 1):
            return None
        return batch * (self.rows / self.sum) if self.sum else batch

    def _labelled(self, y: np.ndarray, given: np.ndarray | None) -> np.ndarray:
        """The given weights times those of the labels."""
        product = np.ones(len(y)) if given is None else given
        for label, weight in self.by_label.items():
            product = np.where(y == label, weight * product, product)
        return product


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
    method : StreamMethod
    setup : Setup
    inputs : Inputs
        Unit length and principal components.
    about : dict
        The header of the model file.
    parameters : callable
        () -> the arrays that define f.
    predict : callable
        Prepared rows -> (n, outputs).
    description : dict
    """

    method: StreamMethod
    setup: Setup
    inputs: Inputs
    about: dict[str, Any]
    parameters: Callable[[], Arrays]
    predict: Callable[[Any], np.ndarray]
    description: dict[str, Any]

    def steps(self) -> told.Steps:
        """The computation steps of `decision` for dense rows."""
        own = self.method.steps(self.about, self.parameters(), self.setup)
        return self.inputs.steps(input_dtype(self.method)) + own

    def decision(self, X: Any) -> np.ndarray:
        """(n, outputs) values for scaled rows X (n, d)."""
        out = np.empty((X.shape[0], self.setup.n_outputs))
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
        for name in ("virtual_copies", "views"):
            if self.virtual == "none" and self.get(name) is not None:
                flag = f"--{name.replace('_', '-')} is {self.get(name)}"
                raise UsageError(f"{flag}, which has no effect without --virtual; add it")
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

    @property
    def endless(self) -> bool:
        """Whether the options request endless virtual examples."""
        return self.virtual != "none" and self.virtual_copies is None

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
        return sum(int(values.nbytes) for values in solver.state().values())

    def finished(
        self, solver: Any, batches: Callable[[], Iterator[Batch]], n_counted: float
    ) -> dict[str, Any]:
        """Further entries of the results row after training; batches() reads all rows again."""
        return {}

    def model(self, solver: Any, setup: Setup, inputs: Inputs, about: Any) -> StreamModel:
        """The model of a solver's f at present."""
        return StreamModel(
            self,
            setup,
            inputs,
            about | self.header(solver),
            partial(self.parameters, solver),
            partial(self.predict, solver),
            self.describe(solver),
        )

    def fit(self, problem: Problem, cache: Cache) -> Fitted:
        """Learn from prepared rows in memory, with a random order in each epoch."""
        batch_weights, seed = BatchWeights(problem.weights), self.seed
        order = np.random.default_rng(seed).permutation(problem.n_rows)
        setup = Setup(
            problem.task,
            problem.loss,
            self.kernel_params(problem.X),
            problem.n_inputs,
            problem.n_outputs,
            problem.n_rows,
            dense(problem.X[order[: max(1, self.n_landmarks())]]),
            batch_weights.relative(),
            True,
        )
        solver, loss = self.start(setup), 0.0
        numbers = np.arange(problem.n_rows, dtype=np.float64)
        source = ArraySource(problem.X, numbers, seed)
        for X, y, index in Stream(source, self.batch, 0, seed, self.epochs):
            loss = solver.step(X, problem.Y[index], index, batch_weights.of(y, index))
        model = self.model(solver, setup, inputs_of({"unit": False}, {}, None), {})
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
            self,
            setup,
            # scaling is the pipeline's
            inputs_of(header, arrays, None),
            {name: header[name] for name in SAVED if name in header},
            partial(dict, own),
            self.predictor(header, arrays, setup),
            {},
        )


class GradientMethod(StreamMethod):
    """A method of gradient steps, which may be preconditioned and averaged."""

    precondition: bool = option(
        True,
        "Multiply a step by the inverse of the covariance of its features on the batch.",
        before=False,
    )
    averaging: str = option(
        "linear",
        "What predicts.",
        of={
            "none": "the last f, as in the paper",
            "uniform": "the mean over all steps",
            "linear": "the mean with weight t",
        },
        before="none",
    )


class DescentMethod(GradientMethod):
    """A method of gradient steps whose length is given by a rule, or chosen."""

    step: str = option(
        "root",
        "Step sizes.",
        of={
            "theorem": "theta / (t + t0), theta nu from 1 to 2",
            "root": "theta / sqrt(t + t0)",
            "decay": "step0 / (1 + step1 t)",
            "constant": "step0",
            "normalized": (
                "step0 / root mean square of the loss derivatives on the batch, at most 1"
            ),
        },
    )
    theta: float | None = option(
        None,
        "See --step; by default 1 / nu (theorem), 1 (root), without --precondition the best of 1, 4"
        " and 16 on held-out rows of a sample (root).",
        above=0,
    )
    t0: float | None = option(None, "See --step; by default 2 theta (theorem), 0 (root).", least=0)
    step0: float = option(1.0, "See --step.", above=0)
    step1: float = option(1e-4, "See --step.", least=0)
    space = replace(StreamMethod.space, values={"nu": NUS, "theta": THETAS})

    def check(self, given: dict[str, Any]) -> None:
        super().check(given)
        words = isinstance(self.nu, str)
        if words and self.step == "theorem":
            raise UsageError(
                f"--step is theorem, which needs --nu, but --nu is {self.nu}; set it to a number"
            )
        _ = (self.updated(nu=FEW_NU) if words else self).descent

    @property
    def descent(self) -> Descent:
        """The descent of numeric options; UsageError if the theorem does not allow its steps."""
        theta, t0 = self.theta, self.t0
        if self.step == "theorem":
            theta = 1 / self.nu if theta is None and self.nu else theta
            t0 = 2 * theta if t0 is None and theta else t0
        elif self.step == "root" and theta is None:
            theta = 1.0
        steps = Steps(self.step, self.nu, theta, t0 or 0.0, self.step0, self.step1)
        damping = self.get("damping", DAMPING)
        return Descent(steps, self.precondition, damping, self.averaging)

    def with_words(self) -> Self:
        if self.step == "root" and self.theta is None:
            return self.updated(theta="validation")
        return self

    def candidates(self, name: str, problem: Problem) -> list[float]:
        if name != "theta":
            return super().candidates(name, problem)
        # in the unit of the targets, if the loss requires it
        return [value * problem.unit for value in (THETAS[:1] if self.precondition else THETAS)]


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
