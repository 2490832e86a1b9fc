"""What all methods share: options, scaling, targets, one-vs-all, prediction; choices are in rfx.methods.choices, files in .saved."""

import time
import warnings
from functools import cache

import numpy as np

from rfx import kernels, losses, parallel
from rfx.data import guess_task
from rfx.data.scaling import Scaler, TargetScaler, as_floats
from rfx.data.schema import NEVER_SEEN, Schema, label_text
from rfx.errors import DataError, RfxWarning, UsageError, or_near
from rfx.methods import gamma, targets, weights, width
from rfx.methods.calibration import Calibration
from rfx.methods.choices import Choosing
from rfx.methods.options import COMMON
from rfx.methods.saved import Saved
from rfx.options import Option
from rfx.solvers.base import Budget, Solution, for_output, stack

# What numpy would say of an overflow on the way: what comes out is checked instead.
UNSAID = {"over": "ignore", "invalid": "ignore", "divide": "ignore"}


class Method(Choosing, Saved):
    """An estimator in scikit-learn's words: fit, predict, decision_function, get_params.

    A subclass declares `name`, `summary`, `options` (what it takes beside what every method does) and `arrays` (what its model
    file holds), and defines `_fit`, `_decide`, `_describe`, `_state`, `_restore`, `_vectors`. After fit, `info` says how it
    was made, in the words of a results row.
    """

    name = ""
    summary = ""
    options: tuple[Option, ...] = ()
    # whether it can score rows at every step of its solver
    watches = False
    # whether partial_fit can learn from one part of the rows after the other
    incremental = False
    # whether a regression may have several targets a row
    several_targets = False
    # told of the steps of training, a dict each: see rfx.methods.watch and rfx.methods.choices
    progress = None
    calibration: Calibration | None = None  # what makes probabilities of decision values, where the loss has none
    # whether its loss can count rows by weights
    weighted = False

    def __init__(self, **given):
        given = self.converted(given)
        self.params = self.defaults(given.get("kernel")) | given
        self.info: dict = {}
        self.held_out: tuple | None = None
        self.chosen: dict = {}
        # what the training rows taught about reading rows like them, where they came from a table or have words as labels
        self.schema: Schema | None = None

    @classmethod
    @cache
    def declared(cls) -> dict[str, Option]:
        """Its options by name: those of every method, its own, those that the kernels have that it takes. Made once: not to be changed."""
        found = {option.name: option for option in (*COMMON, *cls.all_options())}
        for kernel in found["kernel"].meanings() if "kernel" in found else ():
            for option in kernels.get_kernel(kernel).options:
                found.setdefault(option.name, option)
        return found

    @classmethod
    def all_options(cls) -> tuple[Option, ...]:
        """Its own options, and those of weights where it takes some."""
        return (*cls.options, weights.CLASS_WEIGHT) if cls.weighted else cls.options

    @classmethod
    def defaults(cls, kernel: str | None = None) -> dict:
        """The default of every option that it has with that kernel, by default with its default kernel."""
        own = [*COMMON, *cls.all_options()]
        if "kernel" in (found := {option.name: option.default for option in own}):
            own += [option for option in kernels.get_kernel(kernel or found["kernel"]).options if option.name not in found]
        return {option.name: option.default for option in own}

    @classmethod
    def converted(cls, given: dict) -> dict:
        """The options given, each in its type; those that are None are left out.

        Raises UsageError for an option that the method does not have, or a value that it does not take.
        """
        known, found = cls.declared(), {}
        for name, value in given.items():
            if name not in known:
                flag, flags = f"--{name.replace('_', '-')}", [option.flag for option in known.values()]
                raise UsageError(f"method {cls.name} has no option {flag}{or_near(flag, flags, 'it has')}")
            if value is not None:
                try:
                    found[name] = known[name].convert(value)
                except UsageError as error:
                    raise UsageError(f"{error} (method {cls.name})") from None
        return found

    def check_given(self, given: dict) -> None:
        """Refuse with a UsageError options, of those that were given, that others leave without effect."""
        for name in given.keys() - self.defaults(self.params.get("kernel")).keys():
            raise UsageError(f"--{name.replace('_', '-')} is {given[name]}, which is not for kernel {self.params['kernel']}")
        for other in ("lam", "rounds"):
            if "lam_path" in given and other in given:
                raise UsageError(f"--{other} is {given[other]}, which --lam-path leaves without effect; give one of the two")
        if "lam_path" in given and self.params.get("gamma") == "validation":
            raise UsageError("--gamma is validation, which chooses by one lambda's error; --lam-path has several: choose tuned or a number")

    def get_params(self, deep=True) -> dict:
        """The options by name."""
        return dict(self.params)

    # ------------------------------------------------------------------ training

    def watch(self, X, y) -> "Method":
        """Score the rows X (n, d), y (n,) as training goes on: entries of `trace` get `error`, as far as the solver reports its weights.

        The error is the share of wrong labels, or the root of the mean squared error in units of the scaled target. Raises
        UsageError where the method's steps do not tell its weights.
        """
        if not self.watches or self.params.get("lam_path"):
            what = f"method {self.name}" + (" with --lam-path" if self.watches else "")
            raise UsageError(f"{what} can't score test rows step by step; leave the curve away")
        self.held_out = X, np.asarray(y, np.float64)
        return self

    @parallel.one_blas_thread()
    def fit(self, X, y, sample_weight=None) -> "Method":
        """Learn from X (n, d), array or CSR, and y (n,), raw targets or labels; sample_weight: (n,) weights of the rows.

        Raises UsageError for an option that does not fit the task, DataError for rows or targets that can't be learnt, and
        where training gives numbers that are not finite.
        """
        start = time.perf_counter()
        scaled, Y = self._begin(X, y, sample_weight)
        with np.errstate(**UNSAID):
            self._choose(scaled, Y)
            solution = self._fit(scaled, Y)
        for point, own in self._outcomes(solution):
            point._check_outcome(own)
        self.info = {
            "task": self.task,
            "n_train": len(Y),
            "n_inputs": X.shape[1],
            "method": self.name,
            "kernel": self.params.get("kernel"),
            "solver": self.params.get("solver"),
            "loss": self.loss.name,
            "objective": solution.objective,
            "gap": solution.gap,
            "n_iter": solution.n_iter,
            "converged": solution.converged,
            "ended": solution.status,
            "seconds_features": self._seconds_features,
            "seconds_fit": time.perf_counter() - start - self._seconds_features - self._seconds_validation,
        } | self._describe()
        if self.validation:
            self.info |= {"validation": self.validation, "seconds_validation": self._seconds_validation}
        self.info |= {} if self.weights is None else {"weight_sum": float(self.weights.sum())}
        self.trace = solution.trace
        return self

    def _begin(self, X, y, sample_weight=None) -> tuple:
        """(scaled rows, encoded targets (n, k)) of the rows that count: all that is before the options' choice; raises as fit does."""
        y = as_floats(y)
        if X.shape[0] == 0 or X.shape[0] != len(y):
            raise DataError(f"training needs rows and as many targets, but there are {X.shape[0]} rows and {len(y)} targets")
        targets.check_inputs(X.shape[1])
        if y.ndim != 1:
            raise UsageError(f"the targets have the shape {y.shape}, but method {self.name} takes one a row; doubly-sgd takes several")
        self.task = self.params["task"] or guess_task(y)
        every = y
        X, y, self.weights = weights.counted(self, X, y, sample_weight)
        if self.task != "regression" and self.params["target_scaling"] != "none":
            raise UsageError(f"--target-scaling is {self.params['target_scaling']}, which is for regression, but the task is {self.task}")
        self.loss = self._choose_loss()
        width.check(X, self.params["scaling"], self._vectors(X), self._input_dtype().itemsize)
        self.scaler = Scaler.fit(X, self.params["scaling"], self.weights)
        self._seconds_features = 0.0
        deadline = self.params["timeout"]
        self.deadline = None if deadline is None else time.monotonic() + deadline
        # a class whose rows all have weight zero stays a class
        classes = np.unique(every) if self.weights is not None and self.task != "regression" else None
        # rows on Dask workers have targets only once they are scaled
        rows = self.scaler.transform(X, dtype=self._input_dtype())
        Y = self._encode(y, classes)
        if self.task == "regression" and isinstance(Y, np.ndarray):
            targets.check_size(Y)
        return rows, Y

    def _choose_loss(self):
        name = self.params.get("loss") or ("squared" if self.task == "regression" else "squared_hinge")
        # squared is for classes, too: least squares on the targets +-1, as Wu et al. (2016) compare methods
        if self.task == "regression" and name != "squared":
            raise UsageError(f"--loss is {name}, but the task is {self.task}; choose squared, or set --task")
        return losses.get_loss(name)

    def _encode(self, y, classes=None) -> np.ndarray:
        """Targets (n, k): the scaled target, or +-1 for each class against the others (one column for two classes).

        classes: the different labels, ascending; by default those of y.
        """
        if self.task == "regression":
            self.classes = None
            self.target_scaler = TargetScaler.fit(y, self.params["target_scaling"], self.weights)
            return self.target_scaler.transform(y)[:, None]
        self.target_scaler = None
        self.classes = np.unique(y) if classes is None else classes
        if self.task == "binary" and len(self.classes) > 2:
            raise DataError(f"the task is binary, but the targets have {len(self.classes)} values; set --task multiclass")
        if len(self.classes) <= 2:
            # the larger label is +1; where there is one class only, it keeps its sign
            positive = self.classes[-1] if len(self.classes) == 2 or self.classes[0] > 0 else np.inf
            return np.where(y == positive, 1.0, -1.0)[:, None]
        return np.where(y[:, None] == self.classes[None, :], 1.0, -1.0)

    def _outcomes(self, solution) -> list[tuple["Method", Solution]]:
        """The trained method and its solution; several where one fit trains several."""
        return [(self, solution)]

    def _check_outcome(self, solution):
        """Refuse a certificate or a model with a number that is not finite."""
        numbers = (solution.objective, solution.gap or 0.0, *self._state()[1].values())
        if not all(np.isfinite(part).all() for part in numbers):
            raise DataError(
                f"training {self.name} with --lam {self.lam:g} gave numbers that are not finite (objective {solution.objective:g}); "
                "another --lam or --gamma, or scaled inputs, may help"
            )

    def _learn_kernel(self, X) -> dict:
        """The parameters of the kernel of the options."""
        p = self.params
        own = {option.name: p[option.name] for option in kernels.get_kernel(p["kernel"]).options}
        return gamma.resolve(p["kernel"], self._value("gamma"), X, p["seed"], **own)

    def _each_output(self, Y, solve, callback=None) -> Solution:
        """One solve(y, callback) per column of Y, stacked."""
        return stack([solve(Y[:, k], for_output(callback, k)) for k in range(Y.shape[1])])

    def _budget(self, **defaults) -> Budget:
        """What the options and --timeout allow a solver; defaults: the method's own numbers where an option is not set."""
        given = {name: self.params.get(name) for name in ("tol", "max_iter")}
        return Budget(**given, memory_mb=self.params.get("max_memory"), deadline=self.deadline).filled(**defaults)

    def _timed(self, function, *args, **kwargs):
        """Call and add the time to seconds_features."""
        start = time.perf_counter()
        result = function(*args, **kwargs)
        self._seconds_features += time.perf_counter() - start
        return result

    def _input_dtype(self):
        return np.dtype(self.params.get("dtype") or "float64")

    # ------------------------------------------------------------------ prediction

    @parallel.one_blas_thread()
    def decision_function(self, X) -> np.ndarray:
        """(n,) or (n, classes) values before they become labels; for regression the scaled target.

        Raises DataError naming the row where a value is not finite.
        """
        scaled = self.scaler.transform(X, dtype=self._input_dtype())
        with np.errstate(**UNSAID):
            values = self._decide(scaled)
        finite = np.isfinite(values).all(axis=1)
        if not finite.all():
            raise DataError(f"the model has no finite value for row {np.argmin(finite) + 1}: its inputs are too large")
        return values[:, 0] if values.shape[1] == 1 else values

    def predict(self, X) -> np.ndarray:
        """(n,) labels, or targets in their original units."""
        return self.labels(self.decision_function(X))

    def labels(self, decision) -> np.ndarray:
        """What predict returns, from decision_function's values."""
        if self.task == "regression":
            return self.target_scaler.inverse(decision)
        if decision.ndim == 2:
            return self.classes[np.argmax(decision, axis=1)]
        if len(self.classes) == 1:
            return np.full(len(decision), self.classes[0])
        return self.classes[(decision > 0).astype(int)]

    def score(self, X, y) -> dict:
        """metric and score: accuracy for classes, rmse in units of the scaled target for regression.

        Raises DataError where no label is one of the model's classes, and warns where some are not: these rows count as wrong.
        """
        self.warn_of_unknown(y)
        return self.judge(self.decision_function(X), y)

    def warn_of_unknown(self, y) -> None:
        """Warn of labels y (n,) that are numbers and not among the model's; of words the reader of their file warns."""
        if self.task == "regression" or (self.schema is not None and self.schema.labels is not None):
            return
        new = np.setdiff1d(y, self.classes)
        if len(new):
            message = f"the rows have labels that the model never saw: {self._listed(new)}; {NEVER_SEEN}"
            warnings.warn(message, RfxWarning, stacklevel=2)

    def judge(self, decision, y) -> dict:
        """What score returns, from decision_function's values."""
        if self.task == "regression":
            error = decision - self.target_scaler.transform(np.asarray(y, float))
            if error.shape != decision.shape:
                raise DataError(f"targets of the shape {np.shape(y)} don't go with a model whose values have the shape {decision.shape}")
            return {"metric": "rmse", "score": float(np.sqrt(np.mean(error**2)))}
        if not np.isin(y, self.classes).any():
            listed = self._listed(np.unique(y)), self._listed(self.classes)
            raise DataError(f"none of the labels ({listed[0]}) is among the model's classes ({listed[1]})")
        return {"metric": "accuracy", "score": float(np.mean(self.labels(decision) == y))}

    def _listed(self, labels) -> str:
        """The first of some labels, as messages list them."""
        return ", ".join(label_text(self.schema, label) for label in labels[:10]) + (", …" if len(labels) > 10 else "")

    @property
    def letters(self) -> bytes | None:
        """The letters that the model knows, where its rows are sequences."""
        return None

    # ------------------------------------------------------------------ to define

    def _vectors(self, X) -> int:
        """About how many vectors of float64 numbers, as long as a row of X, training makes."""
        raise TypeError(f"{type(self).__name__} does not define _vectors")

    def _fit(self, X, Y) -> Solution:
        """Learn from scaled X (n, d) and encoded Y (n, k)."""
        raise TypeError(f"{type(self).__name__} does not define _fit")

    def _decide(self, X) -> np.ndarray:
        """(n, k) decision values of scaled X."""
        raise TypeError(f"{type(self).__name__} does not define _decide")

    def _describe(self) -> dict:
        """What info says besides: lam, n_features, model_size, kernel_params, …"""
        raise TypeError(f"{type(self).__name__} does not define _describe")

    def _state(self) -> tuple[dict, dict]:
        raise TypeError(f"{type(self).__name__} does not define _state")

    def _restore(self, header, arrays):
        raise TypeError(f"{type(self).__name__} does not define _restore")
