"""The interface of a method: declarations, fitting, and restoring a model."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache as kept
from typing import Any, ClassVar, Protocol, Self

import numpy as np

from rfx import kernels, losses
from rfx import steps as told
from rfx.data.transforms.scaling import TARGET_KINDS
from rfx.errors import UsageError, or_near
from rfx.features import MAPS
from rfx.fitting import bandwidth
from rfx.fitting.cache import Cache
from rfx.fitting.options import (
    AUTO,
    BUDGET_SECONDS,
    CHOSEN_GAMMA,
    CHOSEN_SCALING,
    LOSS,
    MAX_ITER,
    MAX_MEMORY,
    METRIC,
    SCALING,
    SEED,
    TIMEOUT,
)
from rfx.fitting.preprocessing import Preprocessing
from rfx.fitting.problem import Problem
from rfx.fitting.validation import (
    FEW_LAM,
    FEWEST_EVALUATED,
    HELD_OUT,
    LAMS,
    SMALLER,
    TOL,
    error,
)
from rfx.model import Array
from rfx.options import Chosen, Declared, Option, option
from rfx.solvers.base import Budget, Solution, for_output, stack


class Model(Protocol):
    """A trained model. It is immutable.

    ``arrays`` and ``header`` are its content in a model file; the method's ``restore`` recreates it
    from these.
    """

    def decision(self, X: Any) -> np.ndarray:
        """(n, k) float64 values for scaled rows X (n, d)."""
        ...

    def arrays(self) -> dict[str, np.ndarray]:
        """Plain arrays by name."""
        ...

    def header(self) -> dict[str, Any]:
        """The model's JSON content in addition to its arrays."""
        ...

    def describe(self) -> dict[str, Any]:
        """``model_size``, ``kernel_params`` and more, named as columns of a results row."""
        ...

    def steps(self) -> told.Steps:
        """The computation steps of `decision` for dense rows, for other programs.

        A model without such steps raises a UsageError with the reason; one without this method
        can't be exported.
        """
        ...


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
    """

    model: Model
    solution: Solution
    details: dict[str, Any] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)


class Method(Declared):
    """A learning method with its options, which are the fields of this frozen dataclass.

    Words such as ``validation`` remain words until `rfx.fitting.selection.choose` returns a method
    with numbers. A subclass adds its options, properties, `fit` and `restore`, and `vectors` for
    the memory check. Everything else has a default.

    Attributes
    ----------
    name, summary : str
        The name on the command line, and a one-line description.
    kernel_options : dict
        The values of the kernel's own options, which are attributes of the method, too.
    arrays : dict
        The arrays of its model file, with their required forms.
    searched : dict
        Options that validation can choose, and their candidate values. Those of gamma are multiples
        of the median bandwidth.
    stages : tuple
        Options that are chosen together, stage by stage.
    held_out_share, held_out_rows, fewest_evaluated
        The fraction of rows held out to choose options, the maximum rows to fit and to evaluate
        (None: all), and the minimum to evaluate (see `validation.parts`).
    few_rows : dict
        Fallback values of options chosen by validation, for too few rows.
    tried_kernels : tuple of str
        The candidates of ``--kernel auto``.
    thorough : bool
        Whether the choice of scaling, kernel and metric may take longer than the fit.
    loo_slack : float
        See `bandwidth.loo`.
    loo_multiples : tuple
        The multiples of the bandwidth from `bandwidth.loo` to try on held-out rows.
    evaluates_steps : bool
        Whether its solver reports weights, so that held-out rows can be evaluated at every step.
    simplest : bool
        Whether to take, among error rates within a standard error of the lowest, that of the first
        values.
    weighted : bool
        Whether it supports sample weights: whether it has the option class_weight.
    incremental, several_targets, distributed : bool
        Whether it supports batch learning, several targets per row, and rows on the workers of a
        cluster.
    """

    name: ClassVar[str] = ""
    summary: ClassVar[str] = ""
    arrays: ClassVar[dict[str, Array]] = {}
    searched: ClassVar[dict[str, tuple[float, ...]]] = {}
    stages: ClassVar[tuple[tuple[str, ...], ...]] = (("gamma", "lam"),)
    held_out_share: ClassVar[float] = HELD_OUT
    held_out_rows: ClassVar[int | None] = None
    fewest_evaluated: ClassVar[int] = FEWEST_EVALUATED
    few_rows: ClassVar[dict[str, float]] = {"lam": FEW_LAM}
    loo_slack: ClassVar[float] = 0.0
    loo_multiples: ClassVar[tuple[float, ...]] = (1.0,)
    simplest: ClassVar[bool] = False
    tried_kernels: ClassVar[tuple[str, ...]] = ()
    thorough: ClassVar[bool] = False
    evaluates_steps: ClassVar[bool] = False
    weighted: ClassVar[bool] = False
    incremental: ClassVar[bool] = False
    several_targets: ClassVar[bool] = False
    distributed: ClassVar[bool] = False
    # the trainer of auto; None for `rfx.fitting.training.Trainer`
    trainer_class: ClassVar[Any] = None

    # Options of every method.
    task: str | None = option(
        None,
        "The task; by default inferred from the targets.",
        of=("regression", "binary", "multiclass"),
    )
    scaling: str = CHOSEN_SCALING()
    metric: str = METRIC()
    metric_steps: int | None = option(
        None, "Iterations of --metric; by default chosen on held-out rows.", least=1, most=20
    )
    target_scaling: str | None = option(
        None, "Scaling of a regression target, by default mean.", of=TARGET_KINDS
    )
    seed: int = SEED()
    timeout: float | None = TIMEOUT()
    kernel_options: dict[str, Any] = field(default_factory=dict, hash=False)

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        cls.weighted = "class_weight" in cls.options

    # ------------------------------------------------------------------ options

    @classmethod
    @kept
    def declared(cls) -> dict[str, Option]:
        """Its options by name: the common ones, its own, and those of its kernels."""
        found = dict(cls.options)
        for kernel in found["kernel"].meanings() if "kernel" in found else ():
            if kernel != AUTO:
                for option in kernels.get_kernel(kernel).options:
                    found.setdefault(option.name, option)
        return found

    @classmethod
    def defaults(cls, given: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """The default of every option that is not given, in its type."""
        given = given or {}
        fixed = _fixes_inputs(given)
        found = {
            name: option.default if option.fixed is None or not fixed else option.fixed
            for name, option in cls.options.items()
        }
        kernel = given.get("kernel") or found.get("kernel", AUTO)
        if kernel == AUTO:
            return found
        known = kernels.get_kernel(str(kernel))
        if known.scalings:
            found["scaling"] = known.scalings[0]
        if found.get("features") and kernel in MAPS:
            found["features"] = MAPS[str(kernel)].usual(str(kernel))
        return {option.name: option.default for option in known.options} | found

    @classmethod
    def converted(cls, given: Mapping[str, Any]) -> dict[str, Any]:
        """The options that are given and not None, each in its type.

        Raises
        ------
        UsageError
            For an unknown option or an invalid value.
        """
        known, found = cls.declared(), {}
        for name, value in given.items():
            if name not in known:
                flags = [option.flag for option in known.values()]
                flag = f"--{name.replace('_', '-')}"
                raise UsageError(
                    f"method {cls.name} has no option {flag}{or_near(flag, flags, 'it has')}"
                )
            if value is not None:
                try:
                    found[name] = known[name].convert(value)
                except UsageError as error:
                    raise UsageError(f"{error} (method {cls.name})") from None
        return found

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Self:
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
    def values(self) -> dict[str, Any]:
        """Every option by name, with those of the kernel."""
        return super().values | self.kernel_options

    def updated(self, **changes: Any) -> Self:
        """The same method with other values for some options."""
        own = {name: value for name, value in changes.items() if name in self.options}
        kernel_options = self.kernel_options | {k: changes[k] for k in changes.keys() - own.keys()}
        return super().updated(**own, kernel_options=kernel_options)

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("_") and name in self.__dict__.get("kernel_options", ()):
            return self.kernel_options[name]
        return super().__getattr__(name)

    def kernels_of(self) -> tuple[str, ...]:
        """Its kernel, or the candidates for it."""
        return self.tried_kernels if self.kernel == AUTO else (self.kernel,)

    def check(self, given: dict[str, Any]) -> None:
        """Raise an error for given options that have no effect with other options.

        Raises
        ------
        UsageError
        """
        for name in given.keys() - self.defaults(given).keys():
            flag = f"--{name.replace('_', '-')}"
            raise UsageError(
                f"{flag} is {given[name]}, which does not apply to kernel {self.kernel}"
            )
        kernel = self.get("kernel") or AUTO
        suited = () if kernel == AUTO else kernels.get_kernel(kernel).scalings
        if suited and self.metric != "none":
            raise UsageError(
                f"--metric is {self.metric}, but kernel {kernel} is for inputs without one; use"
                " --metric none"
            )
        for other in ("lam", "rounds"):
            if "lam_path" in given and other in given:
                raise UsageError(
                    f"--{other} is {given[other]}, which has no effect with --lam-path; use only"
                    " one of them"
                )
        if "metric_steps" in given and self.metric == "none":
            raise UsageError(
                f"--metric-steps is {given['metric_steps']}, which has no effect without --metric;"
                " set --metric diagonal or full"
            )
        if "epsilon" in given and self.get("loss") != losses.EpsilonInsensitive.name:
            raise UsageError(
                f"--epsilon is {given['epsilon']}, which has no effect without --loss"
                " epsilon_insensitive; use both or neither"
            )
        if "lam_path" in given and self.get("gamma") == "validation":
            raise UsageError(
                "--gamma is validation, which needs a single lambda, but --lam-path has several;"
                " use tuned or a number"
            )

    def loss_for(self, task: str) -> losses.Loss:
        """The loss of the options, by default that of the task; UsageError if it does not match the
        task.
        """
        name = self.get("loss") or ("squared" if task == "regression" else "squared_hinge")
        # squared is also for classes: least squares on the targets +-1 (Wu et al. 2016)
        if task == "regression" and name not in losses.OF_NUMBERS:
            known = self.declared()["loss"].meanings()
            fitting = ", ".join(loss for loss in losses.OF_NUMBERS if loss in known)
            raise UsageError(
                f"--loss is {name}, but the task is {task}; use {fitting}, or set --task"
            )
        if task != "regression" and name in losses.OF_NUMBERS and name != "squared":
            raise UsageError(
                f"--loss is {name}, which is for regression, but the task is {task}; use another"
                " loss, or set --task"
            )
        return losses.get_loss(name, self.get("epsilon"))

    @classmethod
    def is_random(cls, options: Mapping[str, Any]) -> bool:
        """Whether a fit with these options depends on the seed.

        A plan runs once, not once per seed, if neither this nor the choice of rows depends on the
        seed.
        """
        return True

    # ------------------------------------------------------------------ training

    def fit(self, problem: Problem, cache: Cache) -> Fitted:
        """Learn from the problem; its options are numbers.

        Raises
        ------
        UsageError, DataError
            For options that do not match the problem, and unusable rows.
        """
        raise TypeError(f"{type(self).__name__} does not define fit")

    def fit_path(self, problem: Problem, lams: list[float], cache: Cache) -> list[Fitted]:
        """One fit for each lambda of --lam-path, in decreasing order."""
        raise UsageError(f"method {self.name} has no --lam-path")

    def vectors(self, X: Any) -> int:
        """Approximate number of float64 vectors of the length of a row of X in training."""
        raise TypeError(f"{type(self).__name__} does not define vectors")

    def prepare(self, problem: Problem) -> None:
        """Raise an error for an unsuitable problem before any option is chosen."""

    # ------------------------------------------------------------------ choice of options

    def trial(self) -> Self:
        """A cheaper method for models that are only evaluated."""
        own = self.get("solver") in (None, "rfx")
        if own and "tol" in self.options and self.tol is None:
            return self.updated(tol=TOL)
        return self

    def evaluation(self) -> Self:
        """Method for the choice of options: rfx's solver instead of LIBLINEAR processes."""
        found = self.trial()
        if self.get("solver") == "liblinear":
            return found.updated(solver="rfx", tol=TOL)
        return found

    def with_choice(self, chosen: dict[str, Any]) -> Self:
        """The method with the chosen values of some options."""
        return self.updated(**chosen)

    def candidates(self, name: str, problem: Problem) -> list[float]:
        """The candidate values of an option other than gamma."""
        values = list(self.searched[name])
        if name != "lam":
            return values
        if self.searched[name] == LAMS and self.get("gamma") == "loo":
            values = self.ridge_lams(problem)
        return [lam * problem.mean_weight / problem.unit for lam in values]

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
        self, problem: Problem, lams: list[float], X_out: Any, cache: Cache
    ) -> Iterator[np.ndarray]:
        """(m, k) decision values of the rows X_out for each lambda, from models of the problem."""
        for lam in lams:
            yield self.updated(lam=lam).fit(problem, cache).model.decision(X_out)

    def errors_along(
        self,
        problem: Problem,
        out: Problem,
        lams: list[float],
        stop: Callable[[list[float]], bool],
        cache: Cache,
    ) -> list[float]:
        """The error on the held-out rows for each lambda, in decreasing order of lambda, until
        `stop`.
        """
        errors: list[float] = []
        for values in self.decisions_along(problem, lams, out.X, cache):
            errors.append(error(problem.task, values, out.Y, out.weights))
            if stop(errors):
                break
        return errors

    # ------------------------------------------------------------------ prediction

    def views_of(self, X: Any) -> Iterable[Any]:
        """The raw rows whose decision values are averaged; by default X itself."""
        return (X,)

    def score(self, preprocessing: Preprocessing, decision: np.ndarray, y: Any) -> dict[str, Any]:
        """``metric``, ``score`` and other measures of decision values and targets."""
        return preprocessing.score(decision, y)

    # ------------------------------------------------------------------ model files

    def saved_arrays(self, header: dict[str, Any]) -> dict[str, Array]:
        """The required forms of the arrays of a model file with that header, by name."""
        return self.arrays

    def restore(self, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> Model:
        """The model from a file's header and arrays, which have the declared forms."""
        raise TypeError(f"{type(self).__name__} does not define restore")


class TunedMethod(Method):
    """A method that chooses scaling, kernel, metric and bandwidth on held-out rows.

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


def _fixes_inputs(given: Mapping[str, Any]) -> bool:
    """Whether the given options leave nothing to choose: a bandwidth has a meaning for one scaling,
    and without a kernel only for its default; some kernels suit few scalings.
    """
    kernel, gamma = given.get("kernel", AUTO), given.get("gamma")
    if kernel not in (None, AUTO):
        if not bandwidth.has_gamma(str(kernel)) or kernels.get_kernel(str(kernel)).scalings:
            return True
    return gamma == "paper" or (gamma is not None and not isinstance(gamma, str))


# ---------------------------------------------------------------------- for the files of methods


def budget(problem: Problem, method: Method, **defaults: Any) -> Budget:
    """The limits for a solver from the options and the deadline; defaults for unset options."""
    given = {name: method.get(name) for name in ("tol", "max_iter")}
    found = Budget(**given, memory_mb=method.get("max_memory"), deadline=problem.deadline)
    return found.filled(**defaults)


def kernel_params(problem: Problem, method: Method) -> dict[str, Any]:
    """The parameters of the options' kernel, learnt from the problem's rows if requested."""
    own = method.kernel_options
    return bandwidth.resolve(method.kernel, method.gamma, problem.X, method.seed, **own)


def scalars(params: dict[str, Any]) -> dict[str, Any]:
    """The scalar kernel parameters, for a results row."""
    return {key: value for key, value in params.items() if np.isscalar(value)}


def each_output(
    Y: np.ndarray, solve: Callable[[np.ndarray, Any], Solution], callback: Any = None
) -> Solution:
    """One solve(y, callback) for each column of Y, stacked."""
    return stack([solve(Y[:, k], for_output(callback, k)) for k in range(Y.shape[1])])
