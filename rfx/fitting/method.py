"""The interface of a method: declarations, fitting, and restoring a model."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from rfx import device, kernels, losses
from rfx import steps as told
from rfx.data.transforms import TARGET_KINDS, TARGET_TRANSFORMS
from rfx.errors import DataError, UsageError, or_near
from rfx.features import MAPS
from rfx.fitting.options import (
    AUTO,
    BUDGET_SECONDS,
    CHOSEN_GAMMA,
    CHOSEN_SCALING,
    L1_SHARES,
    LAMS,
    LOSS,
    MAX_ITER,
    MAX_MEMORY,
    MEASURE,
    METRIC,
    SCALING,
    SEED,
    SMALLER,
    TIMEOUT,
    SearchSpace,
)
from rfx.fitting.problem import Cache, PredictionScore, Preprocessing, Problem
from rfx.model import Array
from rfx.options import Chosen, Declared, Option, option
from rfx.solvers.base import Budget, Callback, Solution, for_output, stack
from rfx.types import Arrays, Inputs, JsonObject, KernelParams

# Relative duality gap of models that are only evaluated, unless --tol is given.
TOL = 1e-2
# Whether a combination of options is refused, and the message.
Refusal: TypeAlias = tuple[object, str]


class Model(Protocol):
    """A trained model. It is immutable.

    ``arrays`` and ``header`` are its content in a model file; the method's ``restore`` recreates it
    from these.
    """

    def decision(self, X: Inputs) -> np.ndarray:
        """(n, k) float64 values for scaled rows X (n, d)."""

    def arrays(self) -> Arrays:
        """Plain arrays by name."""

    def header(self) -> JsonObject:
        """The model's JSON content in addition to its arrays."""

    def describe(self) -> dict[str, object]:
        """``model_size``, ``kernel_params`` and more, named as columns of a results row."""

    def steps(self) -> told.Steps:
        """The computation steps of `decision` for dense rows, for other programs.

        A model without such steps raises a UsageError with the reason; one without this method
        can't be exported.
        """


@dataclass(frozen=True)
class Fitted:
    """The outcome of one fit.

    Parameters
    ----------
    model : Model
    solution : Solution
        With the objective and its certificate; its coefficients are the solver's.
    details : dict
        Further entries of a results row about the fit, by column or name.
    seconds : dict
        Seconds by activity; ``features`` is the time for computing features.
    left_out : array, (n, k), or None
        If the problem asks for it: decision values of the rows by the model without each of them,
        with the same options; nan for rows that are not left out. Score, probabilities and
        intervals follow from them.
    """

    model: Model
    solution: Solution
    details: Mapping[str, object] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    left_out: np.ndarray | None = None


class Method(Declared):
    """A learning method with its options, which are the fields of this frozen dataclass.

    Words such as ``validation`` remain words until `rfx.fitting.selection.choose` returns a method
    with numbers. A subclass adds its options, properties, `fit` and `restore`, and `vectors` for
    the memory check; with the option lam_path also ``fit_path(problem, lams, cache)``, which
    returns a fit for each lambda in decreasing order. Everything else has a default.

    Attributes
    ----------
    name, summary : str
        The name on the command line, and a one-line description.
    kernel_options : dict
        The values of the kernel's own options, which are attributes of the method, too.
    arrays : dict
        The arrays of its model file, with their required forms.
    space : SearchSpace
        The choices of its options on held-out rows.
    default_losses : dict
        By task.
    evaluates_steps : bool
        Whether its solver reports weights, so that held-out rows can be evaluated at every step.
    weighted : bool
        Whether it supports sample weights: whether it has the option class_weight.
    incremental, several_targets, distributed, resumable, accelerated : bool
        Whether it supports batch learning, several targets per row, rows on the workers of a
        cluster, checkpoints, and, with squared loss, other devices.
    file_format : int
        A number that changes whenever the arrays of its model file do.
    leaves_out : bool
        Whether its fit predicts rows of its training, each without that row.
    """

    name: ClassVar[str] = ""
    summary: ClassVar[str] = ""
    arrays: ClassVar[dict[str, Array]] = {}
    space: ClassVar[SearchSpace] = SearchSpace()
    default_losses: ClassVar[dict[str, str]] = {
        "regression": "squared",
        "binary": "squared_hinge",
        "multiclass": "squared_hinge",
    }
    evaluates_steps: ClassVar[bool] = False
    weighted: ClassVar[bool] = False
    incremental: ClassVar[bool] = False
    several_targets: ClassVar[bool] = False
    distributed: ClassVar[bool] = False
    accelerated: ClassVar[bool] = False
    leaves_out: ClassVar[bool] = False
    resumable: ClassVar[bool] = False
    file_format: ClassVar[int] = 1

    # Options of every method.
    task: str | None = option(
        None,
        "The task; by default inferred from the targets.",
        of=("regression", "binary", "multiclass"),
    )
    scaling: str = CHOSEN_SCALING()
    metric: str = METRIC()
    metric_steps: int | None = option(
        None, "Iterations of --metric; by default chosen by leave-one-out.", least=1, most=20
    )
    target_scaling: str | None = option(
        None,
        "Scaling of a regression target, by default mean; standard for several targets.",
        of=TARGET_KINDS,
    )
    target_transform: str = option(
        "none", "What is learnt of a regression target.", of=TARGET_TRANSFORMS, before="none"
    )
    seed: int = SEED()
    timeout: float | None = TIMEOUT()
    measure: str | None = MEASURE()
    kernel_options: dict[str, Any] = field(default_factory=dict, hash=False)

    def __init_subclass__(cls, without: Iterable[str] = ()) -> None:
        super().__init_subclass__(without)
        cls.weighted = "class_weight" in cls.options

    # ------------------------------------------------------------------ options

    @classmethod
    @functools.cache
    def declared(cls) -> dict[str, Option]:
        """Its options by name: the common ones, its own, and those of its kernels."""
        declared = dict(cls.options)
        for kernel in declared["kernel"].meanings() if "kernel" in declared else ():
            for one in () if kernel == AUTO else kernels.get_kernel(kernel).options:
                declared.setdefault(one.name, one)
        return declared

    @classmethod
    def defaults(cls, given: Mapping[str, object] | None = None) -> dict[str, object]:
        """The default of every option that is not given, in its type."""
        given = given or {}
        fixed = _fixes_inputs(given)
        defaults = {
            name: option.default if option.fixed is None or not fixed else option.fixed
            for name, option in cls.options.items()
        }
        name = given.get("kernel") or defaults.get("kernel", AUTO)
        if name == AUTO:
            return defaults
        kernel = kernels.get_kernel(str(name))
        if kernel.scalings:
            defaults["scaling"] = kernel.scalings[0]
        if defaults.get("features") and name in MAPS:
            defaults["features"] = MAPS[str(name)].usual(str(name))
        return {option.name: option.default for option in kernel.options} | defaults

    @classmethod
    def converted(cls, given: Mapping[str, object]) -> dict[str, object]:
        """The options that are given and not None, each in its type.

        Raises
        ------
        UsageError
            For an unknown option or an invalid value.
        """
        declared, converted = cls.declared(), {}
        for name, value in given.items():
            if name not in declared:
                near = or_near(_flag(name), [one.flag for one in declared.values()], "it has")
                raise UsageError(f"method {cls.name} has no option {_flag(name)}{near}")
            if value is not None:
                converted[name] = declared[name].convert(value)
        return converted

    @classmethod
    def of(cls, given: Mapping[str, object]) -> Self:
        """The method with the given options, texts or numbers, and the defaults of the others; None
        means the default.

        Raises
        ------
        UsageError
            For an unknown option or an invalid value.
        """
        converted = cls.converted(given)
        return cls().updated(**cls.defaults(converted) | converted)

    @property
    def values(self) -> dict[str, object]:
        """Every option by name, with those of the kernel."""
        return super().values | self.kernel_options

    def updated(self, **changes: object) -> Self:
        """The same method with other values for some options; TypeError for an unknown name."""
        known = self.declared().keys() - self.options.keys()
        of_kernel = {name: changes.pop(name) for name in [*changes] if name in known}
        return super().updated(**changes, kernel_options=self.kernel_options | of_kernel)

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("_") and name in self.__dict__.get("kernel_options", ()):
            return self.kernel_options[name]
        return super().__getattr__(name)

    def kernels_of(self) -> tuple[str, ...]:
        """Its kernel, or the candidates for it."""
        return self.space.kernels if self.kernel == AUTO else (self.kernel,)

    def kernel_params(self, X: Inputs) -> KernelParams:
        """The parameters of its kernel, learnt from scaled rows X (n, d) if requested."""
        return kernel_params(self.kernel, self.gamma, X, self.seed, **self.kernel_options)

    def check(self, given: Mapping[str, object]) -> None:
        """Raise UsageError for given options that have no effect with other options."""
        for refused, message in self.refusals(given):
            if refused:
                raise UsageError(message)

    def refusals(self, given: Mapping[str, object]) -> list[Refusal]:
        """The combinations of options that the method refuses."""
        kernel = self.get("kernel") or AUTO
        path = "lam_path" in given
        insensitive = "epsilon_insensitive"
        scaled = kernel != AUTO and bool(kernels.get_kernel(kernel).scalings)
        defaults = self.defaults(given)
        unmeasured = self.metric == "none"
        useless = "which has no effect with --lam-path; use only one of them"
        several = "which needs a single lambda, but --lam-path has several; use tuned or a number"
        not_of_kernel = f"which does not apply to kernel {kernel}"
        found: list[tuple[bool, str, str]] = []
        found += [(name not in defaults, name, not_of_kernel) for name in given]
        found += [(path and name in given, name, useless) for name in ("lam", "rounds")]
        found += [
            (
                scaled and not unmeasured,
                "metric",
                f"but kernel {kernel} is for inputs without one; use none",
            ),
            (path and self.get("gamma") == "validation", "gamma", several),
            (
                path and self.get("solver") != "rfx",
                "solver",
                "which starts every lambda from zero; --lam-path needs rfx",
            ),
            (
                "metric_steps" in given and unmeasured,
                "metric_steps",
                "which has no effect without --metric diagonal or full",
            ),
            (
                "epsilon" in given and self.get("loss") != insensitive,
                "epsilon",
                f"which has no effect without --loss {insensitive}",
            ),
        ]
        return [(refused, f"{_flag(k)} is {self.get(k)}, {why}") for refused, k, why in found]

    def loss_for(self, task: str) -> losses.Loss:
        """The loss of the options, by default that of the task; UsageError if it does not match the
        task.
        """
        name = self.get("loss") or self.default_losses[task]
        if not _suits(name, task):
            fitting = [loss for loss in self.declared()["loss"].meanings() if _suits(loss, task)]
            raise UsageError(
                f"--loss is {name}, but the task is {task}; use {', '.join(fitting)}, or set --task"
            )
        return losses.get_loss(name, self.get("epsilon"))

    @classmethod
    def is_random(cls, options: Mapping[str, object]) -> bool:
        """Whether a fit with these options depends on the seed.

        A plan runs once, not once per seed, if neither this nor the choice of rows depends on the
        seed.
        """
        return True

    # ------------------------------------------------------------------ training

    @classmethod
    @contextmanager
    def on(cls, device_name: str) -> Iterator[None]:
        """Inside the block, the method uses that device; see `device.use`.

        Raises
        ------
        UsageError
            For cuda if it has no code for it.
        """
        if device_name == "cuda" and not cls.accelerated:
            raise UsageError(f"method {cls.name} does not run on a GPU; use --device cpu")
        # auto compares methods, some of which have only code for the processor
        with device.use(device_name, demanded=cls.delegate_for is Method.delegate_for):
            yield

    def delegate_for(self, X: Inputs) -> Method:
        """The method that learns from raw rows X (n, d): this one, unless it only chooses one."""
        return self

    def fit(self, problem: Problem, cache: Cache) -> Fitted:
        """Learn from the problem; its options are numbers.

        Raises
        ------
        UsageError, DataError
            For options that do not match the problem, and unusable rows.
        """
        raise TypeError(f"{type(self).__name__} does not define fit")

    def vectors(self, X: Inputs) -> int:
        """Approximate number of float64 vectors of the length of a row of X in training."""
        raise TypeError(f"{type(self).__name__} does not define vectors")

    def prepare(self, problem: Problem) -> None:
        """Raise an error for an unsuitable problem before any option is chosen."""

    # ------------------------------------------------------------------ choice of options

    def trial(self) -> Self:
        """A cheaper method for models that are only evaluated; its solver is rfx's instead of
        LIBLINEAR processes.
        """
        if self.get("solver") == "liblinear":
            return self.updated(solver="rfx", tol=TOL)
        published = self.get("solver") not in (None, "rfx")
        if published or "tol" not in self.options or self.tol is not None:
            return self
        return self.updated(tol=TOL)

    def with_choice(self, chosen: Mapping[str, object]) -> Self:
        """The method with the chosen values of some options."""
        return self.updated(**chosen)

    def candidates(self, name: str, problem: Problem) -> list[float]:
        """The candidate values of an option other than gamma."""
        values = list(self.space.values[name])
        unit = problem.mean_weight
        if name != "lam":
            return values
        if self.space.l1:
            # a regression uses multiples of the targets' range, unless they are scaled to [0, 1]
            if problem.task == "regression" and self.target_scaling != "minmax01":
                values = list(L1_SHARES)
                unit = unit * (float(np.ptp(problem.Y)) or 1.0)
            return [lam * unit for lam in values]
        if values == list(LAMS) and self.get("gamma") == "loo":
            values = self.ridge_lams(problem)
        return [lam * unit / problem.unit for lam in values]

    def ridge_lams(self, problem: Problem) -> list[float]:
        """The lambdas of --gamma loo, and those tried after it, for mean weight 1."""
        return [*LAMS, *(SMALLER if problem.task == "regression" else ())]

    def tuning_lams(self, problem: Problem) -> list[float]:
        """The ridge parameters of --gamma tuned, of which it uses the best."""
        words = isinstance(self.lam, str)
        return [lam * problem.mean_weight for lam in LAMS] if words else [self.lam]

    def target_error(
        self, problem: Problem, out: Problem, share: float, cache: Cache
    ) -> float | None:
        """The held-out error to approximate; None minimises the error.

        problem is that part of all training rows, out are the rows held out.
        """
        return None

    def decisions_along(
        self, problem: Problem, lams: list[float], X_out: Inputs, cache: Cache
    ) -> Iterator[np.ndarray]:
        """(m, k) decision values of the rows X_out for each lambda, from models of the problem."""
        for lam in lams:
            method = self if lam is None else self.updated(lam=lam)
            yield method.fit(problem, cache).model.decision(X_out)

    # ------------------------------------------------------------------ prediction

    def views_of(self, X: Inputs) -> Iterable[Inputs]:
        """The raw rows whose decision values are averaged; by default X itself."""
        return (X,)

    def score(
        self, preprocessing: Preprocessing, decision: np.ndarray, y: ArrayLike
    ) -> PredictionScore:
        """The score of decision values for targets."""
        return preprocessing.score(decision, y)

    # ------------------------------------------------------------------ model files

    def saved_arrays(self, header: JsonObject) -> dict[str, Array]:
        """The required forms of the arrays of a model file with that header, by name."""
        return self.arrays

    @property
    def saves(self) -> bool:
        """Whether its models can be saved: whether it defines `restore`, or chooses a method."""
        own = type(self)
        return own.restore is not Method.restore or own.delegate_for is not Method.delegate_for

    def restore(self, header: JsonObject, arrays: Arrays) -> Model:
        """The model from a file's header and arrays, which have the declared forms."""
        raise TypeError(f"{type(self).__name__} does not define restore")

    def gradient_squares(self, model: Model) -> np.ndarray | None:
        """(d,) the average squared gradient of a model over its rows for each scaled input, up to
        a factor; None if it is not implemented.
        """
        return None


class TunedMethod(Method):
    """A method that chooses scaling, kernel, metric and bandwidth by leave-one-out.

    A bandwidth has a meaning for one scaling only: if it is given, nothing is chosen.
    """

    scaling: str = CHOSEN_SCALING(
        help=f"{SCALING.help} {SCALING.default} by default if --gamma is a number.",
        default=AUTO,
        fixed=SCALING.default,
    )
    metric: str = METRIC(
        help=f"{METRIC.help} {METRIC.default} by default if --gamma is a number.",
        default=AUTO,
        fixed=METRIC.default,
    )
    budget_seconds: float | None = BUDGET_SECONDS()
    loss: str | None = LOSS()
    gamma: float | Chosen = CHOSEN_GAMMA()
    max_iter: int | None = MAX_ITER()
    max_memory: float | None = MAX_MEMORY()


# Least squares on the targets +-1 (Wu et al. 2016) for every task.
ONLY_SQUARED = dict.fromkeys(Method.default_losses, "squared")


def _suits(loss: str, task: str) -> bool:
    """Whether the loss is for targets of the task; squared is also for classes."""
    if loss == "softmax":
        return task == "multiclass"
    return loss == "squared" or (loss in losses.OF_NUMBERS) == (task == "regression")


def has_gamma(kernel: str) -> bool:
    """Whether the kernel has a bandwidth."""
    return "gamma" in kernels.get_kernel(kernel).parameters


def kernel_params(
    kernel: str, gamma: float | str | None, X: Inputs, seed: int, **options: object
) -> KernelParams:
    """The kernel's parameters for scaled rows X (n, d); gamma: a number or a word."""
    if isinstance(gamma, str) and not has_gamma(kernel):
        # the words mean "choose for this kernel"; only a number raises an error
        gamma = None
    return kernels.parameters(kernel, X, gamma, seed, **options)


def check_n_inputs(header: JsonObject, n_inputs: int, what: str) -> None:
    """Raise DataError for a part of a model with another number of inputs than the model; what: the
    part, and a verb.
    """
    if n_inputs != header["info"]["n_inputs"]:
        raise DataError(f"{what} another number of inputs")


def gamma_of(kernel: str, X: Inputs, gamma: float | str, seed: int) -> float:
    """The bandwidth of a kernel for scaled rows X (n, d); gamma: a number or a word."""
    return float(kernels.parameters(kernel, X, gamma, seed)["gamma"])


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _fixes_inputs(given: Mapping[str, object]) -> bool:
    """Whether the given options leave nothing to choose: a bandwidth has a meaning for one scaling,
    and without a kernel only for its default; some kernels suit few scalings.
    """
    kernel = given.get("kernel", AUTO)
    gamma = given.get("gamma")
    if kernel not in (None, AUTO):
        if not has_gamma(str(kernel)) or kernels.get_kernel(str(kernel)).scalings:
            return True
    return gamma == "paper" or (gamma is not None and not isinstance(gamma, str))


# ---------------------------------------------------------------------- for the files of methods


def budget(problem: Problem, method: Method, **defaults: float) -> Budget:
    """The limits for a solver from the options and the deadline; defaults for unset options."""
    limits = {name: method.get(name) for name in ("tol", "max_iter")}
    memory_mb = method.get("max_memory")
    return Budget(**limits, memory_mb=memory_mb, deadline=problem.deadline).filled(**defaults)


def scalars(params: KernelParams) -> dict[str, object]:
    """The scalar kernel parameters, for a results row."""
    return {key: value for key, value in params.items() if np.isscalar(value)}


def not_none(values: Mapping[str, object]) -> dict[str, object]:
    """The values that are not None."""
    return {name: value for name, value in values.items() if value is not None}


def each_output(
    Y: np.ndarray,
    solve: Callable[[np.ndarray, Callback | None], Solution],
    callback: Callback | None = None,
) -> Solution:
    """One solve(y, callback) for each column of Y, stacked."""
    return stack([solve(Y[:, k], for_output(callback, k)) for k in range(Y.shape[1])])
