"""Methods that learn in batches, and their models.

A method starts a solver, which makes a step for each batch of rows. `StreamMethod.learnt` is the
loop over the scaled sample of a choice of options; `rfx.fitting.session` learns from raw rows. The
objective is a mean: nu/2 ||f||^2 + E L(f(x), y) with nu = lam / n (Dai et al. 2014, equation 1).
With sample weights it is the weighted mean, so that weight 2 counts a row twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Protocol, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from rfx import losses
from rfx import steps as told
from rfx.data.stream import ArraySource, Source, Stream
from rfx.data.transforms import PCA, SAMPLE
from rfx.data.transforms import Inputs as InputPreparation
from rfx.data.virtual import virtual_change
from rfx.errors import RfxError, UsageError
from rfx.features import MAPS
from rfx.fitting import selection
from rfx.fitting.batch_weights import BatchWeights
from rfx.fitting.method import Method, Refusal, has_gamma
from rfx.fitting.metric_learning import dense
from rfx.fitting.options import (
    AUTO,
    CHOSEN_GAMMA,
    CLASS_WEIGHT,
    DTYPE,
    EPSILON,
    GAMMA,
    KERNEL,
    LAMS,
    LOSS,
    MOST,
    SearchSpace,
)
from rfx.fitting.problem import (
    Cache,
    PredictionScore,
    Preprocessing,
    Problem,
    input_dtype,
)
from rfx.fitting.target_coding import checked_targets, targets_per_row
from rfx.kernels import KERNELS
from rfx.model import Array, read_fields
from rfx.options import Chosen, option
from rfx.solvers.stochastic.gradient import DAMPING, Descent, StepSizeSchedule
from rfx.types import Arrays, Inputs, JsonObject, KernelParams

# Prepared rows, encoded targets (n, outputs), and the rows' numbers.
Batch: TypeAlias = tuple[Inputs, np.ndarray, np.ndarray]
# The solver that a method's `start` returned: a `StreamSolver` of a class of the method's own.
OwnSolver: TypeAlias = Any
# Rows per prediction call.
ROWS = 8192
# Number of first rows for learning preprocessing, if the input can be read only once.
HEAD = 10_000
# The candidates of --nu validation, and nu for too few rows to choose.
NUS = (1e-3, 1e-4, 1e-5, 1e-6, 1e-7)
FEW_NU = 1e-4
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


@dataclass(frozen=True)
class SavedSetup:
    """The entries of the header of a model file or checkpoint from which f is recreated."""

    task: str
    loss: str
    kernel_params: KernelParams
    n_prepared: int
    n_rows: int
    unit: bool
    n_targets: int = 1
    centred: bool | None = None


@dataclass(frozen=True)
class SavedComponents:
    """The arrays of principal components."""

    pca_mean: np.ndarray
    pca_components: np.ndarray


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
    loss: losses.Loss
    kernel_params: KernelParams
    n_inputs: int
    n_outputs: int
    n_rows: int = 0
    sample: Inputs = None
    weights: np.ndarray | None = None
    rewindable: bool = False

    @classmethod
    def of(cls, saved: SavedSetup, method: StreamMethod, classes: np.ndarray | None) -> Setup:
        """That of a model file or checkpoint."""
        count = 0 if classes is None else len(classes)
        return cls(
            saved.task,
            losses.get_loss(saved.loss, method.get("epsilon")),
            saved.kernel_params,
            saved.n_prepared,
            saved.n_targets if count <= 2 else count,
            saved.n_rows,
        )


@dataclass(frozen=True)
class StreamModel:
    """f of prepared rows, with the preparation after scaling.

    Parameters
    ----------
    method : StreamMethod
    setup : Setup
    inputs : InputPreparation
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
    inputs: InputPreparation
    about: JsonObject
    parameters: Callable[[], Arrays]
    predict: Callable[[Inputs], np.ndarray]
    description: dict[str, object]

    def steps(self) -> told.Steps:
        """The computation steps of `decision` for dense rows."""
        function = self.method.function(self.about, self.parameters(), self.setup)[1]
        return self.inputs.steps(input_dtype(self.method)) + function()

    def decision(self, X: Inputs) -> np.ndarray:
        """(n, outputs) values for scaled rows X (n, d)."""
        out = np.empty((X.shape[0], self.setup.n_outputs))
        for start in range(0, X.shape[0], ROWS):
            rows = self.inputs.after_scaling(X[start : start + ROWS])
            out[start : start + ROWS] = self.predict(rows)
        return out

    def arrays(self) -> Arrays:
        return pca_arrays(self.inputs) | self.parameters()

    def header(self) -> JsonObject:
        return self.about

    def describe(self) -> dict[str, object]:
        return self.description


class StreamSolver(Protocol):
    """A training by steps, which can be pickled.

    Attributes
    ----------
    t : int
        The number of steps.
    """

    t: int

    def step(
        self,
        X: Inputs,
        Y: np.ndarray,
        index: np.ndarray | None = None,
        weights: np.ndarray | None = None,
    ) -> float:
        """The mean loss of prepared rows X (n, d) with encoded targets Y (n, outputs) before a step
        over them; their numbers in the set, and factors (n,) of their losses, or None.
        """

    def predictions(self, X: Inputs) -> np.ndarray:
        """(n, outputs) float64 values of f."""

    def state(self) -> Arrays:
        """The arrays from which `restore` of another solver continues bitwise identically, if the
        method is resumable.
        """

    def restore(self, state: Arrays) -> None:
        """Continue from a state."""


class StreamMethod(Method):
    """A method that learns in batches.

    A subclass defines

    - ``start(setup)``: its `StreamSolver` before the first step.
    - ``parameters(solver)``: the arrays of the model.
    - ``describe(solver)``: ``n_features``, ``model_size`` and more, as columns of a results row.
    - ``function(header, arrays, setup)``: f of prepared rows from a model file, and what returns
      its computation steps for dense rows.
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
    default_losses = Method.default_losses | {"multiclass": "softmax"}
    resumable: ClassVar[bool] = True
    arrays: ClassVar[dict[str, Array]] = {
        "pca_mean": Array("f", "inputs"),
        "pca_components": Array("f", "inputs components"),
    }

    def refusals(self, given: Mapping[str, object]) -> list[Refusal]:
        without_virtual = [
            (
                self.virtual == "none" and self.get(name) is not None,
                f"--{name.replace('_', '-')} is {self.get(name)}, which has no effect without"
                " --virtual; add it",
            )
            for name in ("virtual_copies", "views")
        ]
        return [
            *super().refusals(given),
            *without_virtual,
            (
                self.scaling == AUTO,
                f"--scaling is auto, but method {self.name} scales rows before it has all of them;"
                " specify a scaling",
            ),
            (
                self.metric != "none" and (self.unit or self.pca),
                f"--metric is {self.metric}, which is learnt for scaled rows, but --unit and"
                " --pca change them; use only one of them",
            ),
            (
                self.target_transform != "none",
                f"--target-transform is {self.target_transform}, which method {self.name} does not"
                " support, because it learns in batches; omit it",
            ),
        ]

    def check_stream(self, source: Source) -> None:
        """Raise UsageError for options that need the rows in memory."""
        if self.virtual != "none" or self.replace:
            raise UsageError("--virtual and --replace need the rows in memory; omit --stream")

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

    def predict(self, solver: OwnSolver, X: Inputs) -> np.ndarray:
        """(n, outputs) values of f for prepared rows."""
        return solver.predictions(X)

    def header(self, solver: OwnSolver) -> JsonObject:
        """The solver's part of the model file's header."""
        return {}

    def training_bytes(self, solver: OwnSolver) -> int | None:
        """Bytes that training has to keep besides the batch: the state of the solver, and the
        arrays of the feature map that no seed can produce. None where the state is not known.
        """
        return sum(int(values.nbytes) for values in solver.state().values())

    def finished(
        self, solver: OwnSolver, batches: Callable[[], Iterator[Batch]], n_counted: float
    ) -> dict[str, object]:
        """Further entries of the results row after training; batches() reads all rows again."""
        return {}

    def learnt(self, problem: Problem) -> OwnSolver:
        """The solver after learning from prepared rows in memory, with a random order in each
        epoch.
        """
        batch_weights = BatchWeights(problem.weights)
        seed = self.seed
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
        solver = self.start(setup)
        source = ArraySource(problem.X, np.arange(problem.n_rows, dtype=np.float64), seed)
        for X, y, index in Stream(source, self.batch, 0, seed, self.epochs):
            solver.step(X, problem.Y[index], index, batch_weights.of(y, index))
        return solver

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
            chosen = {"gamma": gamma} | choice.chosen
            steps = steps + choice.steps
            return replace(choice, chosen=chosen, steps=steps)
        default = self.updated(epochs=None)
        trial = default.updated(epochs=default.passes(n_rows)).with_words()
        choice = selection.choose(trial, problem, Cache())
        return replace(choice, method=self.with_choice(choice.chosen))

    def with_words(self) -> Self:
        """The method with words for all options that are chosen."""
        return self

    def candidates(self, name: str, problem: Problem) -> list[float]:
        # derivatives between -1 and 1 make f as large as targets in any unit, if nu is small
        return [value / problem.unit for value in super().candidates(name, problem)]

    def decisions_along(
        self, problem: Problem, lams: list[float], X_out: Inputs, cache: Cache
    ) -> Iterator[np.ndarray]:
        """Those of one f, infinite if training fails; lams are not used, because nu is one of the
        options.
        """
        try:
            yield self.predict(self.learnt(problem), X_out)
        except RfxError:
            yield np.full((X_out.shape[0], problem.n_outputs), np.inf)

    # ------------------------------------------------------------------ models

    def views_of(self, X: Inputs) -> Iterator[Inputs]:
        """The rows X (n, d) over which f is averaged: unchanged, or their virtual examples 0, 1, …
        in turn.
        """
        if self.views is None:
            yield X
            return
        change = virtual_change(self.virtual, X, self.seed)
        for number in range(self.views):
            yield change(number)

    def score(
        self, preprocessing: Preprocessing, decision: np.ndarray, y: ArrayLike
    ) -> PredictionScore:
        scaler = preprocessing.coding.scaler
        if scaler is None:
            return super().score(preprocessing, decision, y)
        targets = checked_targets(decision, y, targets_per_row(decision))
        # several targets have the unit of the score, one has its own
        unit = scaler.unit if targets.ndim > 1 else 1.0
        mae = float(np.mean(np.abs(preprocessing.labels(decision) - targets) / unit))
        return replace(super().score(preprocessing, decision, y), mae=mae)

    def restore(self, header: JsonObject, arrays: Arrays) -> StreamModel:
        saved = read_fields(SavedSetup, header)
        setup = Setup.of(saved, self, arrays.get("classes"))
        own = {name: arrays[name] for name in self.saved_arrays(header) if name in arrays}
        return StreamModel(
            self,
            setup,
            # scaling is the pipeline's
            inputs_of(saved, arrays, None),
            {name: header[name] for name in SAVED if name in header},
            partial(dict, own),
            self.function(header, arrays, setup)[0],
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

    def refusals(self, given: Mapping[str, object]) -> list[Refusal]:
        words = isinstance(self.nu, str)
        if not words or self.step != "theorem":
            _ = (self.updated(nu=FEW_NU) if words else self).descent
        return [
            *super().refusals(given),
            (
                words and self.step == "theorem",
                f"--step is theorem, which needs --nu, but --nu is {self.nu}; set it to a number",
            ),
        ]

    @property
    def descent(self) -> Descent:
        """The descent of numeric options; UsageError if the theorem does not allow its steps."""
        theta, t0 = self.theta, self.t0
        if self.step == "theorem":
            theta = 1 / self.nu if theta is None and self.nu else theta
            t0 = 2 * theta if t0 is None and theta else t0
        elif self.step == "root" and theta is None:
            theta = 1.0
        steps = StepSizeSchedule(self.step, self.nu, theta, t0 or 0.0, self.step0, self.step1)
        return Descent(steps, self.precondition, self.get("damping", DAMPING), self.averaging)

    def with_words(self) -> Self:
        if self.step == "root" and self.theta is None:
            return self.updated(theta="validation")
        return self

    def candidates(self, name: str, problem: Problem) -> list[float]:
        if name != "theta":
            return super().candidates(name, problem)
        # in the unit of the targets, if the loss requires it
        return [value * problem.unit for value in (THETAS[:1] if self.precondition else THETAS)]


def pca_arrays(inputs: InputPreparation) -> Arrays:
    """The principal components, for model files and checkpoints."""
    found = inputs.pca
    if found is None:
        return {}
    return {"pca_mean": found.mean, "pca_components": found.components}


def inputs_of(saved: SavedSetup, arrays: Arrays, scaler: Any) -> InputPreparation:
    """The preparation of rows in a model file or checkpoint, with that scaling."""
    if "pca_components" not in arrays:
        return InputPreparation(scaler, saved.unit)
    own = read_fields(SavedComponents, arrays)
    components = {"mean": own.pca_mean, "components": own.pca_components}
    pca = PCA.from_dict(components | {"centred": saved.centred})
    return InputPreparation(scaler, saved.unit, pca)
