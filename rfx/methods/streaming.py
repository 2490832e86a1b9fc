"""What the stochastic methods share: rows come in batches, from arrays, files, standard input or without end, and training can
be stopped, saved and taken up again at any batch.

The objective is a mean: nu/2 ||f||^2 + E L(f(x), y), nu = lam / n (Dai et al. 2014, equation 1); with weights of rows the weighted
mean, so that a row of weight 2 counts as two.
"""

import logging
import time

import numpy as np
import scipy.sparse as sp

from rfx import losses, parallel
from rfx.data.pca import PCA
from rfx.data.stream import ArraySource, Source, Stream
from rfx.data.survey import SAMPLE, Inputs, Survey
from rfx.errors import DataError, UsageError
from rfx.methods import checkpoints, examples, gamma, stream_weights, targets, weights
from rfx.methods.base import UNSAID, Method
from rfx.methods.stream_options import HEAD, OPTIONS
from rfx.model import Array

log = logging.getLogger(__name__)

# Rows for one prediction at a time; a curve has a point every time the samples have grown by this factor.
ROWS, GROWTH = 8192, 1.3
# Seconds between what is told of progress.
TELL = 0.2


class StreamMethod(Method):
    """f and how it is made, batch by batch: fit, partial_fit, or fit_stream for rows that never all fit.

    A subclass defines `_make` (the solver, once the rows' survey is known), `_restore_solver`, `_describe_model` and
    `_model_arrays`. `watch(X, y)` before training keeps a curve of the error on held-out rows, `keep(path, every, resume)`
    checkpoints.
    """

    options = OPTIONS
    incremental = several_targets = weighted = True
    default_losses = {"regression": "squared", "binary": "hinge", "multiclass": "softmax"}
    # losses that it does not have
    without: tuple[str, ...] = ()
    # rows that are kept of a survey, if more than its own number
    n_landmarks = 0
    arrays = Method.arrays | {
        "pca_mean": Array("f", "inputs"),
        "pca_components": Array("f", "inputs components"),
    }

    def __init__(self, **given):
        super().__init__(**given)
        self.solver = self._held_out = self._checkpoint = self._live = None
        self.batch_weights = stream_weights.BatchWeights()
        self.curve: list[dict] = []
        self.samples, self.seconds, self._loss_sum, self._loss_rows, self._next_point = 0, 0.0, 0.0, 0, 1

    def check_given(self, given):
        super().check_given(given)
        examples.check(self.params)

    # ------------------------------------------------------------------ training

    def watch(self, X, y, squared: bool = False) -> "StreamMethod":
        """Score on these rows as training goes on, outside of its clock: `curve` gets samples, seconds, error, loss.

        squared: the error of a regression is the mean square, not the mean absolute value.
        """
        self._held_out, self._squared = (X, targets.checked(X, y)), squared
        return self

    def keep(self, path, every: int | None = None, resume: bool = False) -> "StreamMethod":
        """Write a checkpoint to `path` every so many steps and at the end; resume: begin with the one that is there."""
        self._checkpoint = checkpoints.Keeper(path, every, resume)
        return self

    @parallel.one_blas_thread()
    def fit(self, X, y, sample_weight=None):
        """Learn from X (n, d), array or CSR, and y (n,), in a random order of every epoch's own (or from virtual examples of them).

        y (n, k) has several targets a row, for regression. sample_weight: (n,) weights of the rows, None for ones.
        """
        start = time.perf_counter()
        every = targets.checked(X, y)
        X, y, self.weights = stream_weights.counted(self, X, every, sample_weight)
        # a class whose rows all have weight zero stays a class
        classes = np.unique(every) if len(y) < len(every) and self.task != "regression" else None
        self.batch_weights = stream_weights.BatchWeights(self.weights)
        p = self.params
        if examples.endless(p):
            if p["budget_samples"] is None and p["budget_seconds"] is None:
                raise UsageError("--virtual has no end; give --budget-samples or --budget-seconds, or --virtual-copies")
            return self._fit_source(examples.source(p["virtual"], X, y, p["seed"]), lambda: iter([(X, y)]), 0, start)
        if p["virtual"] != "none":
            X, y = examples.fixed(p["virtual"], X, y, p["seed"], p["virtual_copies"])
        source = ArraySource(X, y, p["seed"], p["replace"], self.weights)
        return self._fit_source(source, lambda: iter([(X, y)]), 0, start, classes)

    @parallel.one_blas_thread()
    def fit_stream(self, source: Source):
        """Learn from a source of rows (rfx.data.stream), shuffled by the option `buffer`."""
        start = time.perf_counter()
        if self.params["virtual"] != "none":
            raise UsageError("--virtual needs the rows in memory; leave out --stream")
        if self.params["replace"]:
            raise UsageError("--replace needs the rows in memory; leave out --stream")
        self.weights, self.batch_weights = None, stream_weights.BatchWeights.of_stream(self)
        head = self.params["head"] or (None if source.rewindable else HEAD)
        if head is None and not source.rewindable:
            raise DataError(f"{source.name} can be read once")

        def chunks():
            if head is not None:
                yield source.peek(head)
                return
            source.rewind()
            while (part := source.read(65536)) is not None:
                yield part[:2]
            source.rewind()

        return self._fit_source(source, chunks, self.params["buffer"], start)

    @parallel.one_blas_thread()
    def partial_fit(self, X, y, classes=None, sample_weight=None):
        """Steps over the rows X (n, d), y (n,) or (n, k), in their order, in batches; the first call also learns scaling, gamma and,
        unless `classes` says them, the labels from its rows.

        sample_weight: (n,) weights of the rows, None for ones; the loss of each is multiplied by its weight over the mean of all so far.
        """
        y = targets.checked(X, y, None if self.solver is None else self.n_targets)
        given, fresh = weights.of_rows(y, sample_weight), stream_weights.BatchWeights.of_stream(self)
        self.batch_weights.by_label = fresh.by_label
        if self.solver is None:
            self.batch_weights = fresh
            self._learn(lambda: iter([(X, y)]), classes)
            self._start()
        for X_part, y_part, index in Stream(ArraySource(X, y), self.params["batch"]):
            self._advance(X_part, y_part, None, self.batch_weights.further(y_part, weights.part(given, index)))
        self._finish(self.seconds)
        return self

    def _fit_source(self, source, chunks, buffer, start, classes=None):
        deadline = self.params["timeout"]
        self.deadline = None if deadline is None else time.monotonic() + deadline
        p = self.params
        endless = p["budget_samples"] is not None or examples.endless(p)
        stream = Stream(source, p["batch"], buffer, p["seed"], None if endless and source.rewindable else p["epochs"])
        saved = self._checkpoint.load(self) if self._checkpoint else None
        if saved is None:
            self._learn(chunks, classes)
            stream = Stream(source, p["batch"], buffer, p["seed"], stream.epochs)
            self._start()
        else:
            with self._checkpoint.sound():
                saved.restore(self)
                self._start(saved.solver)
                stream.seek(saved.position)
        self._learning = time.perf_counter() - start
        with np.errstate(**UNSAID):
            status = self._consume(stream)
        if self._checkpoint:
            self._checkpoint.write(self, stream)
        self._finish(time.perf_counter() - start - self._evaluating, status)
        return self

    def _learn(self, chunks, classes=None):
        """The survey of the rows, and what follows from it: task, loss, labels, inputs, the kernel's parameters."""
        p = self.params
        found = Survey(
            chunks, scaling=p["scaling"], unit=p["unit"], pca=p["pca"], centred=p["pca_centred"], dtype=self._input_dtype(), seed=p["seed"],
            sample=max(SAMPLE, self.n_landmarks),
        )  # fmt: skip
        self.n_rows, self.n_inputs = found.n_rows, found.n_inputs
        self.n_targets = found.n_targets
        targets.check_inputs(found.n_inputs)
        self.task, self.classes, self.target_scaler = targets.learn(p, found, classes)
        if self.task == "regression":
            targets.check_size(self.target_scaler.transform(found.y))
        self.batch_weights.check(self)
        self.loss = self._choose_loss()
        self.scaler, self.inputs = found.inputs.scaler, found.inputs
        self.kernel_params, self.validation = self._bandwidth(found)
        self._sample = np.asarray(found.X.toarray() if sp.issparse(found.X) else found.X)
        self.n_prepared = found.X.shape[1]

    def _bandwidth(self, found) -> tuple[dict, list]:
        """The kernel's parameters and how they were chosen, from a Survey of the rows."""
        return gamma.of_rows(self.params, found.X[:SAMPLE], lambda: self._encode_rows(found.y[:SAMPLE]), self.params["nu"] * found.n_rows)

    def _choose_loss(self):
        name = self.params["loss"] or self.default_losses[self.task]
        if name in self.without:
            raise UsageError(f"--loss is {name}, which method {self.name} does not have")
        if self.task == "regression" and name not in ("squared", "absolute", "epsilon_insensitive"):
            raise UsageError(f"--loss is {name}, but the task is regression; choose squared, absolute or epsilon_insensitive")
        if name == "softmax" and self.task != "multiclass":
            raise UsageError(f"--loss is softmax, but the task is {self.task}; choose logistic")
        return losses.get_loss(name, self.params.get("epsilon"))

    @property
    def n_outputs(self) -> int:
        if self.task == "regression":
            return self.n_targets
        return 1 if len(self.classes) <= 2 else len(self.classes)

    @property
    def n_counted(self) -> float:
        """How many rows the weights of the rows make of them."""
        return self._weight_sum().get("weight_sum", self.n_rows)

    def _encode_rows(self, y):
        return targets.encode(self, y)

    def _start(self, state=None):
        self.solver = self._make(state)
        if state is not None:
            try:
                checkpoints.check_solver(state, self.solver.state(), self.n_prepared)
            except DataError as error:
                raise self._checkpoint.damaged(str(error)) from error
            self.solver.restore(state)
        self._live, self._evaluating = self._tracked(), 0.0

    def _tracked(self):
        """A function of no arguments: decision values of the held-out rows."""
        if self._held_out is None:
            return None
        views = [self.inputs.transform(view, self._input_dtype()) for view in examples.views(self.params, self._held_out[0])]
        followed = [self._follow(view) for view in views]
        return lambda: sum(values() for values in followed) / len(followed)

    def _follow(self, X):
        """A function of no arguments: f of the prepared rows X, asked for again and again."""
        return lambda: self._values(X)

    def _consume(self, stream) -> str:
        p = self.params
        started, before = time.perf_counter(), self.seconds
        self._evaluating, told = 0.0, started
        for X, y, index in stream:
            self._advance(X, y, index, self.batch_weights.of(y, index))
            self.seconds = before + time.perf_counter() - started - self._evaluating
            if self._live:
                self._point()
            if self.progress is not None and time.perf_counter() - told > TELL:
                told = time.perf_counter()
                self.progress({"samples": self.samples, "seconds": self.seconds, "loss": self.mean_loss, "share": self._share()})
            if self._checkpoint and self._checkpoint.due(self.solver.t):
                self._checkpoint.write(self, stream)
            if p["budget_samples"] is not None and self.samples >= p["budget_samples"]:
                break
            if p["budget_seconds"] is not None and self.seconds >= p["budget_seconds"]:
                break
            if self.deadline is not None and time.monotonic() >= self.deadline:
                return "timeout"
        return "converged"

    def _share(self) -> float | None:
        """The share of the training that is done, where its end is known."""
        p = self.params
        ends = [self.samples / p["budget_samples"]] if p["budget_samples"] else []
        ends += [self.seconds / p["budget_seconds"]] if p["budget_seconds"] else []
        if not p["budget_samples"] and not examples.endless(p):
            ends.append(self.samples / (self.n_rows * (p["epochs"] or 1)))
        return min(1.0, max(ends)) if ends else None

    def _advance(self, X, y, index, own):
        rows = self.inputs.transform(X, self._input_dtype())
        loss = self._step(rows, self._encode_rows(y), index, own)
        self.samples += len(y)
        # the mean loss of the last tenth of the rows
        keep = 1.0 if self._loss_rows < 0.1 * self.samples else 1.0 - len(y) / self._loss_rows
        self._loss_sum, self._loss_rows = keep * self._loss_sum + loss * len(y), keep * self._loss_rows + len(y)

    def _step(self, X, Y, index, own) -> float:
        return self.solver.step(X, Y, own)

    def _point(self, last=False):
        """A point of the curve where one is due."""
        if self.samples < self._next_point and not last:
            return
        self._next_point = max(self.samples + 1, self.samples * GROWTH)
        start = time.perf_counter()
        entry = {"samples": self.samples, "seconds": round(self.seconds, 4), "steps": self.solver.t, "loss": self.mean_loss}
        if self._live:
            entry["error"] = self._error(self._live(), self._held_out[1])
        self.curve.append(entry)
        self._evaluating += time.perf_counter() - start

    def _error(self, values, y) -> float:
        """Share of wrong labels, or mean absolute error in the targets' own units."""
        decision = values[:, 0] if values.shape[1] == 1 else values
        found = self.labels(decision)
        if self.task != "regression":
            return float(np.mean(found != y))
        return float(np.mean((found - y) ** 2 if self._squared else np.abs(found - y)))

    @property
    def mean_loss(self) -> float:
        """The mean loss of the latest rows, each before its own step."""
        return self._loss_sum / max(self._loss_rows, 1e-300)

    def _finish(self, seconds, status="converged"):
        if self._live and (not self.curve or self.curve[-1]["samples"] != self.samples):
            self._point(last=True)
        self.lam = self.params["nu"] * self.n_counted
        self._check_finite()
        self.info = {
            "task": self.task, "n_train": self.n_rows, "n_inputs": self.n_inputs, "method": self.name,
            "kernel": self.params.get("kernel"), "solver": None, "loss": self.loss.name, "lam": self.lam, "objective": self.mean_loss,
            "gap": None, "n_iter": self.solver.t, "converged": status == "converged", "ended": status,
            "seconds_features": 0.0, "seconds_fit": seconds, "samples": self.samples, "seconds_steps": self.seconds,
            "kernel_params": {key: value for key, value in self.kernel_params.items() if np.isscalar(value)},
        } | self._describe_model() | self._weight_sum()  # fmt: skip
        if self.validation:
            self.info["validation"] = self.validation
        if self.curve:
            self.info["curve"] = self.curve
        self.trace = self.curve

    def _check_finite(self):
        if not (np.isfinite(self.mean_loss) and all(np.isfinite(part).all() for part in self._model_arrays().values())):
            raise DataError(
                f"training {self.name} gave numbers that are not finite (mean loss {self.mean_loss:g}); smaller steps or another "
                "--gamma may help"
            )

    # ------------------------------------------------------------------ prediction, files

    def decision_function(self, X):
        """As every method; of several views of the rows their mean."""
        return examples.mean_over_views(self.params, X, super().decision_function)

    def _decide(self, X):
        out = np.empty((X.shape[0], self.n_outputs))
        for start in range(0, X.shape[0], ROWS):
            out[start : start + ROWS] = self._values(self.inputs.after_scaling(X[start : start + ROWS]))
        return out

    def score(self, X, y):
        """As every method; regression has `mae`, the mean absolute error in the targets' own units, besides.

        Of several targets the mean is over all of them.
        """
        return super().score(X, targets.checked(X, y, self.n_targets))

    def judge(self, decision, y):
        found = super().judge(decision, y)
        if self.task == "regression":
            found["mae"] = float(np.mean(np.abs(self.labels(decision) - y)))
        return found

    def _values(self, X):
        """(n, outputs) values of f for prepared rows."""
        return self.solver.predictions(X)

    def _learned(self) -> tuple[dict, dict]:
        """What the rows have taught besides f: header and arrays."""
        p = self.inputs.pca
        header = {
            "unit": self.inputs.unit, "centred": None if p is None else p.centred,
            "kernel_params": {key: np.asarray(value).tolist() for key, value in self.kernel_params.items()},
            "n_rows": self.n_rows, "n_inputs": self.n_inputs, "n_prepared": self.n_prepared, "n_targets": self.n_targets,
        } | self._weight_sum()  # fmt: skip
        return header, {} if p is None else {"pca_mean": p.mean, "pca_components": p.components}

    def _restore_learned(self, header, arrays):
        pca = None
        if "pca_components" in arrays:
            pca = PCA.from_dict({"centred": header["centred"], "mean": arrays["pca_mean"], "components": arrays["pca_components"]})
        self.inputs = Inputs(self.scaler, header["unit"], pca)
        self.kernel_params = header["kernel_params"]
        self.n_rows, self.n_inputs, self.n_prepared = header["n_rows"], header["n_inputs"], header["n_prepared"]
        self.n_targets = targets.saved_number(header)
        self.lam = self.params["nu"] * header.get("weight_sum", self.n_rows)

    def _weight_sum(self) -> dict:
        return {} if self.weights is None else {"weight_sum": float(self.weights.sum())}

    def _state(self):
        header, arrays = self._learned()
        return header, arrays | self._model_arrays()

    def _restore(self, header, arrays):
        self.loss = losses.get_loss(self.loss.name, self.params.get("epsilon"))
        self._restore_learned(header, arrays)
        self._restore_solver(arrays)

    @staticmethod
    def _sizes(header, arrays):
        sizes = Method._sizes(header, arrays)
        return sizes | {"outputs": targets.saved_number(header)} if header["task"] == "regression" else sizes

    def _vectors(self, X):
        return 0

    # ------------------------------------------------------------------ to define

    def _make(self, state):
        """The solver; state: arrays of a checkpoint, None at the beginning."""
        raise TypeError(f"{type(self).__name__} does not define _make")

    def _restore_solver(self, arrays):
        """self.solver, as far as prediction needs it, from a model file's arrays."""
        raise TypeError(f"{type(self).__name__} does not define _restore_solver")

    def _model_arrays(self) -> dict:
        raise TypeError(f"{type(self).__name__} does not define _model_arrays")

    def _describe_model(self) -> dict:
        """n_features, model_size and what else the model is, for info."""
        raise TypeError(f"{type(self).__name__} does not define _describe_model")
