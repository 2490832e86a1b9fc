"""Learning in batches: the methods that do, their models, and a training in progress.

A method starts a solver, which makes a step for each batch of rows. `StreamMethod.learnt` is the
loop over the scaled sample of a choice of options; `Session` learns from raw
rows of arrays, files, standard input and endless streams, within budgets. It can be stopped, saved
and resumed at any batch. The objective is a mean: nu/2 ||f||^2 + E L(f(x), y) with nu = lam / n
(Dai et al. 2014, equation 1). With sample weights it is the weighted mean, so that weight 2 counts
a row twice.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np

from rfx import losses, parallel
from rfx import steps as told
from rfx.data import guess_task, virtual
from rfx.data.splits import shuffled
from rfx.data.stream import ArraySource, GeneratedSource, Source, Stream
from rfx.data.tabular.apart import Apart
from rfx.data.tabular.schema import Schema
from rfx.data.transforms import PCA, SAMPLE, Inputs, Scaler, Survey, TargetScaler
from rfx.errors import RfxError, UsageError
from rfx.features import MAPS
from rfx.fitting import input_selection, selection, weights
from rfx.fitting.held_out import LeftOut
from rfx.fitting.method import Method, Refusal, has_gamma, not_none, scalars
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
from rfx.fitting.pipeline import PROBABILISTIC, Keeper, Outcome, Pipeline, silent
from rfx.fitting.problem import (
    Cache,
    Preprocessing,
    Problem,
    Progress,
    check_inputs,
    check_known,
    check_supported,
    checked_targets,
    encoded,
    input_dtype,
    learn_targets,
    targets_per_row,
)
from rfx.kernels import KERNELS
from rfx.model import Array
from rfx.options import Chosen, option
from rfx.solvers.stochastic.gradient import DAMPING, Descent, Steps

# Prepared rows, encoded targets (n, outputs), and the rows' numbers.
Batch = tuple[Any, np.ndarray, np.ndarray]
Arrays = dict[str, np.ndarray]
# Rows per prediction call, and virtual examples generated at a time.
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

    def check(self, classes: np.ndarray | None, class_weight: str | None) -> None:
        """Raise UsageError for weights of unknown labels."""
        if self.by_label and classes is None:
            raise weights.not_for_regression(class_weight)
        if classes is not None:
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

    @classmethod
    def of(cls, header: dict[str, Any], method: StreamMethod, classes: Any) -> Setup:
        """That of a model file or checkpoint."""
        labels = () if classes is None else classes
        return cls(
            header["task"],
            losses.get_loss(header["loss"], method.get("epsilon")),
            header["kernel_params"],
            header["n_prepared"],
            header.get("n_targets", 1) if len(labels) <= 2 else len(labels),
            header["n_rows"],
        )


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
        function = self.method.function(self.about, self.parameters(), self.setup)[1]
        return self.inputs.steps(input_dtype(self.method)) + function()

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

    A subclass defines

    - ``start(setup)``: its solver before the first step. A solver can be pickled and has ``t``, the
      number of its steps; ``step(X, Y, index, weights)``, which makes one over prepared rows X
      (n, d) and encoded targets Y (n, outputs), with their numbers in the set and factors (n,) of
      their losses or None, and returns the mean loss before it; ``predictions(X)``, the float64
      values (n, outputs) of f; and if the method is resumable ``state()``, arrays from which
      ``restore(state)`` of another solver continues bitwise identically.
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

    def refusals(self, given: dict[str, Any]) -> list[Refusal]:
        return [
            *super().refusals(given),
            *(
                (
                    self.virtual == "none" and self.get(name) is not None,
                    f"--{name.replace('_', '-')} is {self.get(name)}, which has no effect without"
                    " --virtual; add it",
                )
                for name in ("virtual_copies", "views")
            ),
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

    def predict(self, solver: Any, X: Any) -> np.ndarray:
        """(n, outputs) values of f for prepared rows."""
        return solver.predictions(X)

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

    def learnt(self, problem: Problem) -> Any:
        """The solver after learning from prepared rows in memory, with a random order in each
        epoch.
        """
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
            chosen, steps = {"gamma": gamma} | choice.chosen, steps + choice.steps
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
        self, problem: Problem, lams: list[float], X_out: Any, cache: Cache
    ) -> Iterator[np.ndarray]:
        """Those of one f, infinite if training fails; lams are not used, because nu is one of the
        options.
        """
        try:
            yield self.predict(self.learnt(problem), X_out)
        except RfxError:
            yield np.full((X_out.shape[0], problem.n_outputs), np.inf)

    # ------------------------------------------------------------------ models

    def views_of(self, X: Any) -> Iterator[Any]:
        """The rows X (n, d) over which f is averaged: unchanged, or their virtual examples 0, 1, …
        in turn.
        """
        if self.views is None:
            yield X
            return
        change = _change(self.virtual, X, self.seed)
        for number in range(self.views):
            yield change(number)

    def score(self, preprocessing: Preprocessing, decision: np.ndarray, y: Any) -> dict[str, Any]:
        if preprocessing.task != "regression":
            return super().score(preprocessing, decision, y)
        y = checked_targets(decision, y, targets_per_row(decision))
        scaler = preprocessing.target_scaler
        assert scaler is not None
        # several targets have the unit of the score, one has its own
        unit = scaler.unit if y.ndim > 1 else 1.0
        mae = float(np.mean(np.abs(preprocessing.labels(decision) - y) / unit))
        return super().score(preprocessing, decision, y) | {"mae": mae}

    def restore(self, header: dict[str, Any], arrays: Arrays) -> StreamModel:
        setup = Setup.of(header, self, arrays.get("classes"))
        own = {name: arrays[name] for name in self.saved_arrays(header) if name in arrays}
        return StreamModel(
            self,
            setup,
            # scaling is the pipeline's
            inputs_of(header, arrays, None),
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

    def refusals(self, given: dict[str, Any]) -> list[Refusal]:
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
        steps = Steps(self.step, self.nu, theta, t0 or 0.0, self.step0, self.step1)
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


# Returns an iterator of (X, y) over all rows each time it is called.
Chunks = Callable[[], Iterator[tuple[Any, np.ndarray]]]
# Maximum rows of the sample on which options are chosen; other words for the bandwidth than loo are
# resolved on SAMPLE of them.
CHOICE_ROWS = 6144
# A curve has a point each time the samples grew by this factor.
GROWTH = 1.3
# Batches whose values before their own step give probabilities and intervals: the latest ones of
# those at which the samples doubled, and of rows in memory, which `Trainer.with_probabilities` can
# hold out instead, only after so many steps.
LATEST, STEPS = 4, 16
JUDGED = ("judged_values", "judged_targets")
# Seconds between reports of progress.
TELL = 0.2


@dataclass(frozen=True)
class Learned:
    """Values learnt from a survey of the rows before the first step.

    Parameters
    ----------
    preprocessing : Preprocessing
    inputs : Inputs
        Scaling, unit length and principal components.
    setup : Setup
        Without weights.
    n_inputs, n_targets : int
        Number of raw inputs, and of targets per row.
    steps : list of dict
        How options were chosen.
    weight_sum : float or None
        The sum of the sample weights.
    chosen : dict
        The options given as words, and their chosen values.
    """

    preprocessing: Preprocessing
    inputs: Inputs
    setup: Setup
    n_inputs: int
    n_targets: int
    steps: list[dict[str, Any]]
    weight_sum: float | None = None
    chosen: dict[str, float] = field(default_factory=dict)

    @property
    def n_counted(self) -> float:
        """The effective number of rows under the sample weights."""
        return self.setup.n_rows if self.weight_sum is None else self.weight_sum

    def encode(self, y: np.ndarray) -> np.ndarray:
        """Encode raw targets as (n, outputs)."""
        p = self.preprocessing
        check_known(y, p.classes, p.schema)
        return encoded(y, p.classes, p.target_scaler, self.setup.loss.name == "softmax")

    def header(self) -> dict[str, Any]:
        """For model files and checkpoints."""
        p, params = self.inputs.pca, self.setup.kernel_params
        header = {
            "unit": self.inputs.unit,
            "centred": None if p is None else p.centred,
            "kernel_params": {name: np.asarray(v).tolist() for name, v in params.items()},
            "n_rows": self.setup.n_rows,
            "n_inputs": self.n_inputs,
            "n_prepared": self.setup.n_inputs,
            "n_targets": self.n_targets,
            "chosen": self.chosen,
        }
        return header if self.weight_sum is None else header | {"weight_sum": self.weight_sum}

    def state(self) -> tuple[dict[str, Any], Arrays]:
        """Header and arrays for a checkpoint."""
        p, scaler = self.preprocessing, self.inputs.scaler.to_dict()
        header = self.header() | {
            "task": p.task,
            "loss": self.setup.loss.name,
            "scaling": scaler.pop("kind"),
            "metric": scaler.pop("metric"),
            "target_scaler": None if p.target_scaler is None else p.target_scaler.to_dict(),
            "validation": self.steps,
        }
        arrays = pca_arrays(self.inputs) | {"sample": self.setup.sample}
        arrays |= {f"scaler_{name}": values for name, values in scaler.items()}
        return header, arrays if p.classes is None else arrays | {"classes": p.classes}

    @classmethod
    def of_state(
        cls, header: dict[str, Any], arrays: Arrays, method: StreamMethod, schema: Schema | None
    ) -> Learned:
        """The values in a checkpoint."""
        named = {"kind": header["scaling"], "metric": header.get("metric", "none")}
        own = {name[7:]: values for name, values in arrays.items() if name.startswith("scaler_")}
        inputs = inputs_of(header, arrays, Scaler.from_dict(named | own))
        target = header["target_scaler"]
        if target is not None:
            target = TargetScaler.from_dict(target, header["n_targets"])
        dtype, classes = input_dtype(method), arrays.get("classes")
        return cls(
            Preprocessing(header["task"], inputs.scaler, dtype, classes, target, schema),
            inputs,
            replace(Setup.of(header, method, classes), sample=arrays["sample"]),
            header["n_inputs"],
            header["n_targets"],
            header["validation"],
            header.get("weight_sum"),
            header["chosen"],
        )


class Session:
    """One training in progress: the only mutable object here.

    `fit` and `fit_stream` process rows to their end; `further` makes steps over more rows. All
    return a pipeline.

    Parameters
    ----------
    asked : StreamMethod
        With the options as requested.
    schema, classes
        See `rfx.fitting.training.Trainer`.
    keeper : Keeper or None
        Where to write checkpoints, and whether to resume from one.
    held_out : (X, y) or None
        Raw rows to evaluate during training, outside of its clock. ``trace`` then has ``error``:
        the error rate or the mean absolute error.
    squared : bool
        The error of a regression is the mean squared error instead.
    progress : callable or None
    """

    def __init__(
        self,
        asked: StreamMethod,
        schema: Schema | None = None,
        classes: np.ndarray | None = None,
        keeper: Keeper | None = None,
        held_out: tuple[Any, Any] | None = None,
        squared: bool = False,
        progress: Progress | None = None,
    ) -> None:
        self.asked = self.method = asked
        self.schema, self.classes, self.keeper = schema, classes, keeper
        self.held_out = held_out and (held_out[0], checked_targets(*held_out))
        self.squared, self.progress = squared, progress
        self.apart: Apart | None = None
        self.weights = BatchWeights()
        self.learned: Any = None
        self.solver: Any = None
        self.curve: list[dict[str, Any]] = []
        self.samples, self.seconds, self.next_point, self.epochs = 0, 0.0, 1.0, 1
        self.loss_sum, self.loss_rows = 0.0, 0.0
        self.seconds_choice, self._evaluating = 0.0, 0.0
        # whether these rows follow those of a finished training, and whether all were read
        self.continues = self.finished = False
        self._live: Callable[[], np.ndarray] | None = None
        # values and targets of batches before they were learnt; whether no row is learnt twice
        self.next_judged, self.judged, self.fresh = 0, list[np.ndarray](), True
        self.least_steps = STEPS

    def __getstate__(self) -> dict[str, Any]:
        # listeners are not pickled
        return self.__dict__ | {"_live": None, "progress": None, "held_out": None, "apart": None}

    # ------------------------------------------------------------------ training

    @parallel.one_blas_thread()
    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, apart: Apart | None = None
    ) -> Pipeline:
        """Learn from rows in memory, with a random order in each epoch.

        Parameters
        ----------
        X : array or CSR matrix, (n, d)
        y : array, (n,) or (n, k)
            Several targets per row require regression.
        sample_weight : array, (n,), or None
        apart : Apart or None
            Groups or times for held-out splits.
        """
        start, s = time.perf_counter(), self.method
        every, classes = checked_targets(X, y), self.classes
        weighted = sample_weight is not None or s.get("class_weight") is not None
        if s.virtual != "none" and apart is not None and not apart.given:
            apart = None
        if s.virtual != "none" and (weighted or apart is not None):
            raise UsageError(
                f"--virtual is {s.virtual}, whose generated rows have no weights, groups or times;"
                " omit one of them"
            )
        self.apart, own, y = apart, None, every
        if weighted:
            task = s.task or ("regression" if y.ndim == 2 else guess_task(y))
            X, y, own, self.apart = weights.counted(
                s, task, self.schema, X, y, sample_weight, apart
            )
            if classes is None and len(y) < len(every) and task != "regression":
                # a class whose rows all have weight zero remains a class
                classes = np.unique(every)
        self.weights = BatchWeights(own)
        if s.endless and s.budget_samples is None and s.budget_seconds is None:
            raise UsageError(
                "--virtual is endless; set --budget-samples, --budget-seconds or --virtual-copies"
            )
        if s.virtual_copies is not None:
            X, y = virtual_copies(s.virtual, X, y, s.seed, s.virtual_copies)
        source: Source = ArraySource(X, y, s.seed, s.replace, own)
        if s.endless:
            source = virtual_source(s.virtual, X, y, s.seed)
        return self._run(source, lambda: iter([(X, y)]), 0, start, classes)

    @parallel.one_blas_thread()
    def fit_stream(self, source: Source) -> Pipeline:
        """Learn from a source of rows (rfx.data.stream), shuffled by the option `buffer`."""
        start, s = time.perf_counter(), self.method
        s.check_stream(source)
        self.weights = BatchWeights(None, s.get("class_weight"), self.schema)
        self.least_steps = 0
        head = s.head or (None if source.rewindable else HEAD)

        def chunks() -> Iterator[tuple[Any, np.ndarray]]:
            if head is not None:
                yield source.peek(head)
                return
            source.rewind()
            while (part := source.read(65536)) is not None:
                yield part[:2]
            source.rewind()

        return self._run(source, chunks, s.buffer, start)

    @parallel.one_blas_thread()
    def further(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Pipeline:
        """Make steps over the rows X (n, d), y (n,) or (n, k), in order, in batches.

        The first call also learns scaling, gamma and, unless `classes` is given, the labels. The
        loss of each row is multiplied by its weight divided by the mean weight so far.
        """
        if not self.method.incremental:
            raise UsageError(
                f"method {self.method.name} does not learn from further rows; use fit, or another"
                " method"
            )
        y = checked_targets(X, y, None if self.learned is None else self.learned.n_targets)
        given = weights.of_rows(y, sample_weight)
        labelled = BatchWeights(None, self.method.get("class_weight"), self.schema)
        self.weights.by_label = labelled.by_label
        if self.learned is None:
            self.learn(lambda: iter([(X, y)]), classes, sample_weight=given)
            self.start(True)
        for X_part, y_part, index in Stream(ArraySource(X, y), self.method.batch):
            own = self.weights.further(y_part, weights.part(given, index))
            self.advance(X_part, y_part, None, own)
        return self._pipeline(self.seconds)

    def _run(
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
        s, keeper = self.method, self.keeper
        deadline = None if s.timeout is None else time.monotonic() + s.timeout
        endless = s.budget_samples is not None or s.endless
        counted = source.rewindable and not s.head

        def stream() -> Stream:
            self.epochs = s.passes(self.learned.setup.n_rows if counted else None)
            epochs = None if endless and source.rewindable else self.epochs
            self.fresh = s.endless or self.epochs == 1
            return Stream(source, s.batch, buffer, s.seed, epochs)

        saved = keeper.load(self.asked) if keeper else None
        if keeper is None or saved is None:
            self.learn(chunks, classes, source.name, counted)
            rows = stream()
            self.start(source.rewindable)
        else:
            header, arrays = saved
            with keeper.restoring():
                self._restore(header, arrays)
                source.begin = header.get("begin")
                further = header.get("finished") and source.further(header["position"]["source"])
                self.continues = bool(header.get("continues") or further)
                rows = stream()
                self.start(source.rewindable)
                of_solver = {n[7:]: v for n, v in arrays.items() if n.startswith("solver_")}
                self.solver.restore(of_solver)
                if not further:
                    rows.seek(header["position"])
        with silent():
            status = self._consume(rows, deadline)
        if self.continues and self.finished and source.row:
            setup = self.learned.setup
            setup = replace(setup, n_rows=setup.n_rows + source.row)
            self.learned = replace(self.learned, setup=setup)
            self.continues = False
        if keeper:
            self._save(keeper, rows)
        if self._live and (not self.curve or self.curve[-1]["samples"] != self.samples):
            self._point(self._live)
        seconds = time.perf_counter() - start - self._evaluating - self.seconds_choice
        more = self.method.finished(
            self.solver, partial(self._batches, source), self.learned.n_counted
        )
        return self._pipeline(seconds, status, more)

    def _batches(self, source: Source) -> Iterator[Batch]:
        """All prepared rows of a source, with encoded targets and numbers."""
        source.rewind()
        for X, y, index in Stream(source, 4096):
            yield self._prepared(X), self.learned.encode(y), index

    def _prepared(self, X: Any) -> Any:
        return self.learned.inputs.transform(X, input_dtype(self.method))

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
        survey = Survey(
            chunks,
            scaling=s.scaling,
            unit=s.unit,
            pca=s.pca,
            centred=s.pca_centred,
            dtype=input_dtype(s),
            seed=s.seed,
            sample=max(CHOICE_ROWS, n_kept),
            name=name,
        )
        check_inputs(survey.n_inputs)
        check_supported(s, survey.n_targets)
        task, labels, target_scaler = learn_targets(s, survey, classes)
        self.weights.check(labels, s.get("class_weight"))
        loss = s.loss_for(task)
        # first the metric, which changes distances, then the options that depend on them
        check_known(survey.y, labels, self.schema)
        Y = encoded(survey.y, labels, target_scaler, loss.name == "softmax")
        own = self.weights.of_some(survey.y, survey.index, sample_weight)
        apart = None if self.apart is None else self.apart.rows(survey.index)
        steps: list[dict[str, Any]] = []
        problem = Problem(survey.X, Y, loss, task, own, apart=apart, measure=s.measure)
        if s.metric != "none":
            first = problem.rows(np.arange(len(Y))[:n_kept])
            found = input_selection.with_metric(survey.inputs.scaler, s, first)
            steps, survey.inputs.scaler = found.steps, found.scaler
            if found.scaler.metric is not None:
                survey.X = found.scaler.metric.transform(survey.X)
        some = np.arange(len(Y)) if own is None else np.flatnonzero(own)
        problem = replace(problem, X=survey.X).rows(some[:CHOICE_ROWS])
        with silent():
            choice = s.chosen(
                replace(problem, progress=self.progress), survey.n_rows if counted else None
            )
        self.seconds_choice = choice.seconds
        dtype, scaler = input_dtype(s), survey.inputs.scaler
        self._know(
            Learned(
                Preprocessing(task, scaler, dtype, labels, target_scaler, self.schema),
                survey.inputs,
                Setup(
                    task,
                    loss,
                    choice.method.kernel_params(survey.X[:SAMPLE]),
                    survey.X.shape[1],
                    Y.shape[1],
                    survey.n_rows,
                    dense(survey.X[:n_kept]),
                ),
                survey.n_inputs,
                survey.n_targets,
                steps + choice.steps,
                None if self.weights.own is None else self.weights.sum,
                {name: float(value) for name, value in choice.chosen.items()},
            )
        )

    def _know(self, learned: Learned) -> None:
        self.learned, self.method = learned, self.asked.with_choice(learned.chosen)

    def start(self, rewindable: bool) -> None:
        """Create the solver, and follow its values for the held-out rows."""
        s, self._evaluating = self.method, 0.0
        setup, own = self.learned.setup, self.weights.relative()
        self.solver = s.start(replace(setup, weights=own, rewindable=rewindable))
        if self.held_out is not None:
            views = [self._prepared(view) for view in s.views_of(self.held_out[0])]
            self._live = lambda: np.mean([s.predict(self.solver, view) for view in views], axis=0)

    def advance(self, X: Any, y: np.ndarray, index: Any, own: Any) -> None:
        """One step over a batch of raw rows."""
        rows, Y, known = self._prepared(X), self.learned.encode(y), self.learned
        fresh = self.fresh or self.samples < known.setup.n_rows
        due = self.samples >= self.next_judged and self.solver.t >= self.least_steps
        if fresh and due and known.setup.loss.name not in PROBABILISTIC:
            self.next_judged = max(self.samples + 1, 2 * self.samples)
            batch = self.method.predict(self.solver, rows), y
            together = map(np.concatenate, zip(self.judged or [part[:0] for part in batch], batch))
            self.judged = [part[-LATEST * len(y) :] for part in together]
        loss = self.solver.step(rows, Y, index, own)
        self.samples += len(y)
        # the mean loss of the last tenth of the rows
        keep = 1.0 if (self.loss_rows < 0.1 * self.samples) else 1.0 - len(y) / self.loss_rows
        self.loss_sum = keep * self.loss_sum + loss * len(y)
        self.loss_rows = keep * self.loss_rows + len(y)

    @property
    def mean_loss(self) -> float:
        """The mean loss of the latest rows, each before its own step."""
        return self.loss_sum / max(self.loss_rows, 1e-300)

    def _consume(self, stream: Stream, deadline: float | None) -> str:
        """Make steps over the stream until its end, or that of a budget; returns the status."""
        s, keeper = self.method, self.keeper
        started, before = time.perf_counter(), self.seconds
        last_told = started
        for X, y, index in stream:
            self.advance(X, y, index, self.weights.of(y, index))
            self.seconds = before + time.perf_counter() - started - self._evaluating
            if self._live and self.samples >= self.next_point:
                self._point(self._live)
            if self.progress is not None and time.perf_counter() - last_told > TELL:
                last_told = time.perf_counter()
                entry = {"samples": self.samples, "seconds": self.seconds, "loss": self.mean_loss}
                self.progress(entry | {"share": self._share()})
            if keeper and keeper.every is not None and self.solver.t % keeper.every == 0:
                self._save(keeper, stream)
            if s.budget_samples is not None and self.samples >= s.budget_samples:
                break
            if s.budget_seconds is not None and self.seconds >= s.budget_seconds:
                break
            if deadline is not None and time.monotonic() >= deadline:
                return "timeout"
        else:
            self.finished = True
        return "converged"

    def _share(self) -> float | None:
        """The fraction of the training that is done, if its end is known."""
        s, rows = self.method, self.learned.setup.n_rows * self.epochs
        samples = s.budget_samples or (math.inf if s.endless else rows)
        share = max(self.samples / samples, self.seconds / (s.budget_seconds or math.inf))
        return min(1.0, share) or None

    def _point(self, live: Callable[[], np.ndarray]) -> None:
        """Add a point to the curve: the error rate, or the mean absolute (or squared) error in the
        targets' original units.
        """
        start, p = time.perf_counter(), self.learned.preprocessing
        values, (_, y) = live(), self.held_out or (None, None)
        labels = p.labels(values[:, 0] if values.shape[1] == 1 else values)
        if p.task == "regression":
            errors = (labels - y) ** 2 if self.squared else np.abs(labels - y)
        else:
            errors = labels != y
        self.next_point = max(self.samples + 1, self.samples * GROWTH)
        self.curve.append(
            {
                "samples": self.samples,
                "seconds": round(self.seconds, 4),
                "steps": self.solver.t,
                "loss": self.mean_loss,
                "error": float(np.mean(errors)),
            }
        )
        self._evaluating += time.perf_counter() - start

    # ------------------------------------------------------------------ checkpoints

    def _save(self, keeper: Keeper, stream: Stream) -> None:
        """Write a checkpoint."""
        header, arrays = self.learned.state()
        header |= {
            "position": stream.position(),
            "begin": stream.source.begin,
            "finished": self.finished,
            "continues": self.continues,
            "schema": None if self.schema is None else self.schema.to_dict(),
            "counts": [
                self.samples,
                self.seconds,
                self.loss_sum,
                self.loss_rows,
                self.next_point,
                self.next_judged,
            ],
            "weights": [self.weights.rows, self.weights.sum],
            "curve": self.curve,
        }
        arrays |= {f"solver_{name}": values for name, values in self.solver.state().items()}
        arrays |= dict(zip(JUDGED, self.judged))
        keeper.write(self.asked, header, arrays)

    def _restore(self, header: dict[str, Any], arrays: Arrays) -> None:
        """Restore what a checkpoint has learnt and counted."""
        self._know(Learned.of_state(header, arrays, self.asked, self.schema))
        counts, self.curve = header["counts"], header["curve"]
        self.samples, self.seconds, self.loss_sum, self.loss_rows, *others = counts
        self.next_point, self.next_judged = others
        self.judged = [arrays[name] for name in JUDGED if name in arrays]
        self.weights.rows, self.weights.sum = header["weights"]

    # ------------------------------------------------------------------ results

    def _pipeline(
        self, seconds: float, status: str = "converged", more: dict[str, Any] | None = None
    ) -> Pipeline:
        """The pipeline of the training so far."""
        s, known, solver = self.method, self.learned, self.solver
        setup = known.setup
        model = StreamModel(
            s,
            setup,
            known.inputs,
            known.header() | s.header(solver),
            partial(s.parameters, solver),
            partial(s.predict, solver),
            s.describe(solver),
        )
        info = {
            "n_train": setup.n_rows,
            "n_inputs": known.n_inputs,
            "lam": s.nu * known.n_counted,
            "objective": self.mean_loss,
            "gap": None,
            "n_iter": solver.t,
            "converged": status == "converged",
            "ended": status,
            "seconds_features": 0.0,
            "seconds_fit": seconds,
            "samples": self.samples,
            "seconds_steps": self.seconds,
            "kernel_params": scalars(setup.kernel_params),
        }
        optional = {
            "training_bytes": s.training_bytes(solver),
            "weight_sum": known.weight_sum,
            "validation": known.steps or None,
            "seconds_validation": (self.seconds_choice or None) if known.steps else None,
            "curve": self.curve or None,
        }
        outcome = Outcome.of(info | model.description | not_none(optional) | (more or {}))
        of_model = model, setup.loss, outcome, self.curve
        trained = Pipeline(self.asked, known.preprocessing, *of_model, chosen=s)
        trained.check_finite()
        if not self.judged or not np.isfinite(self.judged[0]).all():
            return trained
        values, y = self.judged
        values = values[:, 0] if values.shape[1] == 1 else values
        return trained.judged(LeftOut(values, y, "before they were learnt"))


# ---------------------------------------------------------------------- virtual examples


def virtual_copies(
    kind: str, X: Any, y: np.ndarray, seed: int, copies: int
) -> tuple[np.ndarray, np.ndarray]:
    """The first `copies` virtual examples of each of the rows X (n, d): (copies n, d)
    float32 and their targets.
    """
    make, count = virtual_source(kind, X, y, seed).make, copies * len(y)
    rows, targets = np.empty((count, X.shape[1]), np.float32), np.empty((count, *y.shape[1:]))
    for start in range(0, count, ROWS):
        stop = min(count, start + ROWS)
        rows[start:stop], targets[start:stop] = make(start, stop)
    return rows, targets


def virtual_source(kind: str, X: Any, y: np.ndarray, seed: int) -> GeneratedSource:
    """Example i is determined by (seed, i) and row i mod n of the rows X (n, d), array or CSR, in a
    random order; its target is that row's."""
    order = shuffled(len(y), seed, 0)
    change = _change(kind, X[order], seed)

    def make(start: int, stop: int) -> tuple[np.ndarray, np.ndarray]:
        index = np.arange(start, stop)
        return change(index), y[order[index % len(y)]]

    return GeneratedSource(make, X.shape[1])


def _change(kind: str, X: Any, seed: int) -> Callable[[np.ndarray | int], np.ndarray]:
    """index -> the virtual examples of the rows X with these numbers; for one number, that
    transformation of all of them.
    """
    n_inputs = X.shape[1]
    if kind.startswith("molecules"):
        matrices = virtual.from_triangles(dense(X))
        noise = 1.0 if kind == "molecules-sorted" else None
        return lambda index: virtual.triangles(virtual.permute(matrices, index, seed, noise))
    if kind == "digits":
        side = math.ceil(math.sqrt(n_inputs))
        # the last pixels may be missing
        images = np.zeros((X.shape[0], side * side), np.float32)
        images[:, :n_inputs] = dense(X).astype(np.float32)
        images, flat = images.reshape(-1, side, side), (-1, side * side)
        return lambda index: virtual.deform(images, index, seed).reshape(flat)[:, :n_inputs]
    planes = next((n for n in (1, 3) if n_inputs == n * math.isqrt(n_inputs // n) ** 2), None)
    if planes is None:
        raise UsageError(
            f"--virtual is images, but rows of {n_inputs} numbers are not square images of one"
            " plane or three"
        )
    side = math.isqrt(n_inputs // planes)
    border = max(1, side // 8)
    framed = np.pad(
        dense(X).astype(np.float32).reshape(-1, planes, side, side).transpose(0, 2, 3, 1),
        ((0, 0), (border, border), (border, border), (0, 0)),
    )
    crops = partial(virtual.crops_and_flips, framed, seed=seed, size=side)
    return lambda index: crops(index).transpose(0, 3, 1, 2).reshape(-1, n_inputs)
