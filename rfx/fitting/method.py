"""The contract of a method: what it declares, how it is fitted, how its model is read back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache as kept
from typing import Any, ClassVar, Protocol

import numpy as np

from rfx import kernels, losses
from rfx import steps as told
from rfx.errors import UsageError, or_near
from rfx.fitting import bandwidth, weights
from rfx.fitting.cache import Cache
from rfx.fitting.options import AUTO, COMMON
from rfx.fitting.preprocessing import Preprocessing
from rfx.fitting.problem import Problem
from rfx.fitting.settings import Settings
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
from rfx.options import Option
from rfx.solvers.base import Budget, Solution, for_output, stack


class Model(Protocol):
    """What a method has learnt. It never changes.

    ``arrays`` and ``header`` are what a model file holds of it; the method's ``restore`` makes it
    again from these.
    """

    def decision(self, X: Any) -> np.ndarray:
        """(n, k) float64 values for scaled rows X (n, d)."""
        ...

    def arrays(self) -> dict[str, np.ndarray]:
        """Plain arrays by name."""
        ...

    def header(self) -> dict[str, Any]:
        """What JSON holds of the model besides its arrays."""
        ...

    def describe(self) -> dict[str, Any]:
        """``model_size``, ``kernel_params`` and the like, as columns of a results row."""
        ...

    def steps(self) -> told.Steps:
        """What `decision` computes of dense rows, for other programs.

        A model that has no such steps raises a UsageError that says why; one without the method
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
        With the objective and its certificate; its coefficients are those of the solver.
    details : dict
        What else a results row says of the fit, by column or name.
    seconds : dict
        Seconds by what took them; ``features`` is the time to make features.
    """

    model: Model
    solution: Solution
    details: dict[str, Any] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)


class Method:
    """A way to learn. A subclass declares what it is and has no state.

    A subclass defines `fit` and `restore`, and `vectors` for the check of memory. Everything else
    has a default.

    Attributes
    ----------
    name, summary : str
        The name on the command line, and one line about it.
    options : tuple of Option
        What it takes besides what every method does.
    arrays : dict
        The arrays of its model file, and what each must be.
    searched : dict
        Options that may be chosen by validation, and the values that are tried. Those of gamma
        are multiples of the median's.
    stages : tuple
        Options that are chosen together, one stage after another.
    held_out_share, held_out_rows, fewest_evaluated
        The share of the rows that is held out to choose options, the most rows to fit to and to
        evaluate on (None: all), and the fewest to evaluate on (see `validation.parts`).
    few_rows : dict
        What options that are to be chosen by validation become where there are too few rows.
    tried_kernels : tuple of str
        Those that ``--kernel auto`` chooses among.
    thorough : bool
        Whether the choice of scaling, kernel and metric may take longer than the fit.
    loo_slack : float
        See `bandwidth.loo`.
    loo_multiples : tuple
        The multiples of the bandwidth that `bandwidth.loo` finds, of which the best on held-out
        rows is taken.
    evaluates_steps : bool
        Whether its solver reports weights, so that held-out rows can be evaluated at every step.
    simplest : bool
        Whether of shares of wrong labels within a standard error of the least that of the first
        values is taken, not the least.
    weighted, incremental, several_targets, distributed : bool
        Whether it takes sample weights, learns batch by batch, takes several targets a row, and
        learns from rows on the workers of a cluster.
    """

    name: ClassVar[str] = ""
    summary: ClassVar[str] = ""
    options: ClassVar[tuple[Option, ...]] = ()
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
    # what fits it; None for `rfx.fitting.training.Trainer`
    trainer_class: ClassVar[Any] = None

    # ------------------------------------------------------------------ options

    @classmethod
    @kept
    def declared(cls) -> dict[str, Option]:
        """Its options by name: those of every method, its own, and those of the kernels it
        takes.
        """
        found = {option.name: option for option in (*COMMON, *cls.all_options())}
        for kernel in found["kernel"].meanings() if "kernel" in found else ():
            if kernel == AUTO:
                continue
            for option in kernels.get_kernel(kernel).options:
                found.setdefault(option.name, option)
        return found

    @classmethod
    def all_options(cls) -> tuple[Option, ...]:
        """Its own options, with class_weight where it takes sample weights."""
        return (*cls.options, weights.CLASS_WEIGHT) if cls.weighted else cls.options

    @classmethod
    def defaults(cls, given: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """The default of every option that it has beside those that are given, in their types."""
        given = given or {}
        fixed = _fixes_inputs(given)
        found = {
            option.name: option.default if option.fixed is None or not fixed else option.fixed
            for option in (*COMMON, *cls.all_options())
        }
        kernel = given.get("kernel") or found.get("kernel", AUTO)
        more = () if kernel == AUTO else kernels.get_kernel(str(kernel)).options
        return {option.name: option.default for option in more} | found

    @classmethod
    def converted(cls, given: Mapping[str, Any]) -> dict[str, Any]:
        """The options that are given and not None, each in its type.

        Raises
        ------
        UsageError
            For an option that the method does not have, or a value that it does not take.
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

    def kernels_of(self, settings: Settings) -> tuple[str, ...]:
        """The settings' kernel, or those that it is chosen from."""
        return self.tried_kernels if settings.kernel == AUTO else (settings.kernel,)

    def check(self, settings: Settings, given: dict[str, Any]) -> None:
        """Refuse options, among those that were given, that others make meaningless.

        Raises
        ------
        UsageError
        """
        for name in given.keys() - self.defaults(given).keys():
            flag = f"--{name.replace('_', '-')}"
            raise UsageError(
                f"{flag} is {given[name]}, which does not apply to kernel {settings.kernel}"
            )
        for other in ("lam", "rounds"):
            if "lam_path" in given and other in given:
                raise UsageError(
                    f"--{other} is {given[other]}, which has no effect with --lam-path; use only"
                    " one of them"
                )
        if "metric_steps" in given and settings.metric == "none":
            raise UsageError(
                f"--metric-steps is {given['metric_steps']}, which has no effect without --metric;"
                " set --metric diagonal or full"
            )
        if "lam_path" in given and settings.get("gamma") == "validation":
            raise UsageError(
                "--gamma is validation, which needs a single lambda, but --lam-path has several;"
                " use tuned or a number"
            )

    def loss(self, settings: Settings, task: str) -> losses.Loss:
        """The loss of the options, by default that of the task; UsageError where it does
        not fit.
        """
        name = settings.get("loss") or ("squared" if task == "regression" else "squared_hinge")
        # squared is for classes, too: least squares on the targets +-1 (Wu et al. 2016)
        if task == "regression" and name != "squared":
            raise UsageError(
                f"--loss is {name}, but the task is {task}; use squared, or set --task"
            )
        return losses.get_loss(name)

    @classmethod
    def is_random(cls, settings: Mapping[str, Any]) -> bool:
        """Whether a fit with these options depends on the seed.

        A plan makes one run, not one for each seed, where neither this nor the choice of the rows
        does.
        """
        return True

    # ------------------------------------------------------------------ training

    def fit(self, problem: Problem, settings: Settings, cache: Cache) -> Fitted:
        """Learn from the problem with settings that are all numbers.

        Raises
        ------
        UsageError, DataError
            For options that do not fit the problem, and rows that can't be learnt.
        """
        raise TypeError(f"{type(self).__name__} does not define fit")

    def fit_path(
        self, problem: Problem, settings: Settings, lams: list[float], cache: Cache
    ) -> list[Fitted]:
        """A fit for each lambda of --lam-path, from the largest to the smallest."""
        raise UsageError(f"method {self.name} has no --lam-path")

    def vectors(self, settings: Settings, X: Any) -> int:
        """About how many float64 vectors as long as a row of X training makes."""
        raise TypeError(f"{type(self).__name__} does not define vectors")

    def prepare(self, problem: Problem, settings: Settings) -> None:
        """Refuse what can't be trained before any option is chosen."""

    # ------------------------------------------------------------------ choice of options

    def trial(self, settings: Settings) -> Settings:
        """Cheaper settings for models that are only evaluated."""
        own = settings.get("solver") in (None, "rfx")
        if own and "tol" in settings and settings.tol is None:
            return settings.updated(tol=TOL)
        return settings

    def evaluation(self, settings: Settings) -> Settings:
        """Settings for the choice of options: rfx's solver in place of LIBLINEAR's processes."""
        found = self.trial(settings)
        if settings.get("solver") == "liblinear":
            return found.updated(solver="rfx", tol=TOL)
        return found

    def with_choice(self, settings: Settings, chosen: dict[str, Any]) -> Settings:
        """The settings with the values that were chosen for some options."""
        return settings.updated(**chosen)

    def candidates(self, name: str, problem: Problem, settings: Settings) -> list[float]:
        """The values to try of an option other than gamma."""
        values = self.searched[name]
        if name == "lam" and values == LAMS and settings.get("gamma") == "loo":
            return self.ridge_lams(problem)
        return list(values)

    def ridge_lams(self, problem: Problem) -> list[float]:
        """The ridge parameters of --gamma loo, and the lambdas that are tried after it."""
        return [*LAMS, *(SMALLER if problem.task == "regression" else ())]

    def tuning_lams(self, settings: Settings) -> list[float]:
        """The ridge parameters of --gamma tuned, which takes the best of them."""
        return list(LAMS) if isinstance(settings.lam, str) else [settings.lam]

    def target_error(
        self, problem: Problem, out: Problem, settings: Settings, share: float, cache: Cache
    ) -> float | None:
        """The held-out error to come close to; None asks for the least.

        problem is that share of all training rows, out are the rows held out.
        """
        return None

    def decisions_along(
        self, problem: Problem, settings: Settings, lams: list[float], X_out: Any, cache: Cache
    ) -> Iterator[np.ndarray]:
        """(m, k) decision values of the rows X_out for each lambda, of models of the problem."""
        for lam in lams:
            yield self.fit(problem, settings.updated(lam=lam), cache).model.decision(X_out)

    def errors_along(
        self,
        problem: Problem,
        out: Problem,
        settings: Settings,
        lams: list[float],
        stop: Callable[[list[float]], bool],
        cache: Cache,
    ) -> list[float]:
        """The error on the held-out rows for each lambda, largest first, until `stop` says
        enough.
        """
        errors: list[float] = []
        for values in self.decisions_along(problem, settings, lams, out.X, cache):
            errors.append(error(problem.task, values, out.Y, out.weights))
            if stop(errors):
                break
        return errors

    # ------------------------------------------------------------------ prediction

    def views(self, settings: Settings, X: Any) -> Iterable[Any]:
        """The raw rows whose decision values are averaged; by default X itself."""
        return (X,)

    def score(self, preprocessing: Preprocessing, decision: np.ndarray, y: Any) -> dict[str, Any]:
        """``metric``, ``score`` and what else is reported of decision values and targets."""
        return preprocessing.score(decision, y)

    # ------------------------------------------------------------------ model files

    def saved_arrays(self, header: dict[str, Any]) -> dict[str, Array]:
        """What the arrays of a model file with that header must be, by name."""
        return self.arrays

    def restore(
        self, header: dict[str, Any], arrays: dict[str, np.ndarray], settings: Settings
    ) -> Model:
        """The model of a file's header and arrays, which have the declared forms."""
        raise TypeError(f"{type(self).__name__} does not define restore")


def _fixes_inputs(given: Mapping[str, Any]) -> bool:
    """Whether the options that are given leave nothing to choose: a bandwidth has a meaning for one
    scaling, and a kernel without one knows no other.
    """
    kernel, gamma = given.get("kernel", AUTO), given.get("gamma")
    if kernel not in (None, AUTO) and not bandwidth.has_gamma(str(kernel)):
        return True
    return gamma == "paper" or (gamma is not None and not isinstance(gamma, str))


# ---------------------------------------------------------------------- for the files of methods


def budget(problem: Problem, settings: Settings, **defaults: Any) -> Budget:
    """What the options and the deadline allow a solver; defaults where an option is not set."""
    given = {name: settings.get(name) for name in ("tol", "max_iter")}
    found = Budget(**given, memory_mb=settings.get("max_memory"), deadline=problem.deadline)
    return found.filled(**defaults)


def kernel_params(problem: Problem, settings: Settings) -> dict[str, Any]:
    """The parameters of the options' kernel, learnt from the problem's rows where they say so."""
    own = {
        option.name: settings[option.name] for option in kernels.get_kernel(settings.kernel).options
    }
    return bandwidth.resolve(settings.kernel, settings.gamma, problem.X, settings.seed, **own)


def scalars(params: dict[str, Any]) -> dict[str, Any]:
    """The kernel parameters that are single numbers, as a results row has them."""
    return {key: value for key, value in params.items() if np.isscalar(value)}


def each_output(
    Y: np.ndarray, solve: Callable[[np.ndarray, Any], Solution], callback: Any = None
) -> Solution:
    """One solve(y, callback) for each column of Y, stacked."""
    return stack([solve(Y[:, k], for_output(callback, k)) for k in range(Y.shape[1])])
