"""Checkpoints of a training: the complete state for a bitwise identical continuation, written
atomically.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rfx import kernels, losses, model
from rfx.data.survey import Inputs
from rfx.data.transforms import scaling
from rfx.data.transforms.pca import PCA
from rfx.data.transforms.scaling import Scaler, TargetScaler
from rfx.errors import DataError, RfxError, UsageError
from rfx.fitting.learned import Learned
from rfx.fitting.stream_options import CHANGEABLE

if TYPE_CHECKING:
    from rfx.data.stream import Stream
    from rfx.fitting.streaming import Session

KIND = "checkpoint"


class Keeper:
    """Where and how often checkpoints are written.

    Parameters
    ----------
    path : str or path
    every : int or None
        Steps between checkpoints; None for a single one at the end.
    resume : bool
        Resume from the existing checkpoint.
    """

    def __init__(self, path: Any, every: int | None = None, resume: bool = False) -> None:
        self.path, self.every, self.resume = Path(path), every, resume

    def due(self, t: int) -> bool:
        """Whether to write a checkpoint after step t."""
        return self.every is not None and t % self.every == 0

    def write(self, session: Session, stream: Stream) -> None:
        """Write the state of a training and of its input stream."""
        known, learner = session.learned, session.learner
        scaler, target = known.inputs.scaler.to_dict(), known.target_scaler
        header = known.header() | {
            "kind": KIND,
            "method": session.method.name,
            "params": session.trainer.method.values,
            "task": known.task,
            "loss": known.loss.name,
            "scaling": scaler["kind"],
            "metric": scaler["metric"],
            "target_scaler": None if target is None else target.to_dict(),
            "position": stream.position(),
            "counts": [
                session.samples,
                session.seconds,
                session.loss_sum,
                session.loss_rows,
                session.next_point,
            ],
            "weights": [session.batch_weights.rows, session.batch_weights.sum],
            "curve": session.curve,
            "validation": known.steps,
        }
        arrays = known.arrays() | {"sample": known.sample}
        arrays |= {
            f"scaler_{name}": values
            for name, values in scaler.items()
            if not isinstance(values, str)
        }
        if known.classes is not None:
            arrays["classes"] = known.classes
        state = learner.solver.state()
        arrays |= {f"solver_{name}": value for name, value in state.items()}
        model.write(self.path, header | {"digest": digest(header, arrays)}, arrays)

    def load(self, session: Session) -> State | None:
        """The checked state of the checkpoint to resume from; None to start from the beginning.

        Raises DataError for an invalid or damaged checkpoint, UsageError if its method or options
        differ.
        """
        if not self.resume or not self.path.exists():
            return None
        try:
            header, arrays = model.read(self.path)
        except DataError as error:
            if isinstance(error.__cause__, OSError):
                raise
            raise self._damaged(str(error)) from error
        if header.get("kind") != KIND:
            raise DataError(
                f"{self.path} is not a checkpoint but a model file; use the file that --checkpoint"
                " wrote"
            )
        with self._sound():
            said = header.pop("digest", None)
            header.pop("format", None)
            if said != digest(header, arrays):
                raise self._damaged("its parts were not written together")
            self._check(session, header)
            try:
                return State.of(session, header, arrays)
            except RfxError as error:
                raise self._damaged(str(error)) from error

    def restore(self, session: Session, stream: Stream, saved: State, rewindable: bool) -> None:
        """Restore a training and its stream to the state of the checkpoint."""
        with self._sound():
            saved.restore(session)
            try:
                session.start(rewindable, saved.solver)
            except DataError as error:
                raise self._damaged(str(error)) from error
            stream.seek(saved.position)

    def _check(self, session: Session, header: dict[str, Any]) -> None:
        if header["method"] != session.method.name:
            raise UsageError(
                f"checkpoint {self.path} is of method {header['method']}, not {session.method.name}"
            )
        for name, value in session.trainer.method.values.items():
            then = header["params"].get(name)
            if name not in CHANGEABLE and then != value:
                flag = name.replace("_", "-")
                raise UsageError(
                    f"--{flag} is {value}, but was {then} when the checkpoint {self.path} was"
                    " written; use the same value"
                )

    @contextlib.contextmanager
    def _sound(self) -> Iterator[None]:
        """Raise DataError for exceptions of a damaged checkpoint while it is restored."""
        try:
            yield
        except _DAMAGED as error:
            raise self._damaged(f"{type(error).__name__}: {error}") from error

    def _damaged(self, reason: str) -> DataError:
        """The message about a checkpoint that can't be resumed."""
        reason = " ".join(reason.split())[:300]
        return DataError(
            f"checkpoint {self.path} is damaged ({reason}), or of another version of rfx; delete it"
            " to start again, or omit --resume"
        )


# Exceptions of Python and numpy for damaged headers or arrays
_DAMAGED = (
    KeyError,
    TypeError,
    ValueError,
    IndexError,
    AttributeError,
    OverflowError,
    RecursionError,
    MemoryError,
)
_MOST = 2**53
_ARRAYS = scaling.ARRAYS | {
    "classes": model.Array("f", "classes"),
    "sample": model.Array("f", "sampled prepared"),
    "pca_mean": model.Array("f", "inputs"),
    "pca_components": model.Array("f", "inputs prepared"),
}


def digest(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> str:
    """A hash of the checkpoint's content."""
    found = hashlib.blake2b(json.dumps(header, sort_keys=True).encode(), digest_size=16)
    for name in sorted(arrays):
        values = np.ascontiguousarray(arrays[name])
        # little-endian, as in the file, on every machine
        values = values.astype(values.dtype.newbyteorder("<"), copy=False)
        found.update(f"{name} {values.dtype.str} {np.shape(arrays[name])}".encode())
        found.update(values.tobytes())
    return found.hexdigest()


def _whole(value: object, name: str, low: int = 0) -> int:
    if type(value) is not int or not low <= value <= _MOST:
        raise DataError(f"{name} is {value!r:.40}, not a whole number of {low} or more")
    return value


def _number(value: Any, name: str, low: float = -math.inf) -> float:
    if type(value) not in (int, float) or not math.isfinite(value) or value < low:
        raise DataError(
            f"{name} is {value!r:.40}, not a number"
            + ("" if low == -math.inf else f" of {low:g} or more")
        )
    found: float = value
    return found


def _listed(value: object, name: str, count: int | None = None) -> list[Any]:
    if type(value) is not list or (count is not None and len(value) != count):
        raise DataError(
            f"{name} is {value!r:.40}, not a list" + ("" if count is None else f" of {count}")
        )
    return value


def _table(value: object, name: str) -> dict[str, Any]:
    if type(value) is not dict:
        raise DataError(f"{name} is {value!r:.40}, not a table")
    return value


@dataclass(frozen=True)
class State:
    """The content of a checkpoint.

    Parameters
    ----------
    learned : Learned
    position : dict
        The position of the stream.
    counts : list
        Samples, seconds, the sum of losses and its rows, the next point of the curve.
    weights : list
        The rows with weights, and the sum of their weights.
    solver : dict
        The arrays of the solver.
    curve : list of dict
    """

    learned: Learned
    position: dict[str, Any]
    counts: list[Any]
    weights: list[Any]
    solver: dict[str, np.ndarray]
    curve: list[dict[str, Any]]

    @classmethod
    def of(cls, session: Session, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> State:
        """The state in a header and its arrays.

        Raises DataError, KeyError or TypeError if a part has a wrong type, shape or range.
        """
        learned = _learned(session, header, arrays)
        counts = samples, seconds, loss_sum, loss_rows, following = _listed(
            header["counts"], "counts", 5
        )
        _whole(samples, "samples"), _number(seconds, "seconds", 0)
        _number(loss_sum, "the sum of losses"), _number(loss_rows, "the rows of the losses", 0)
        _number(following, "the next point", 1)
        weights = weighed, total = _listed(header["weights"], "weights", 2)
        _whole(weighed, "the rows with weights"), _number(total, "the sum of weights", 0)
        for point in _listed(header["curve"], "curve"):
            for name in ("samples", "steps"):
                _whole(_table(point, "a point of the curve")[name], name)
        solver = {
            name.removeprefix("solver_"): values
            for name, values in arrays.items()
            if name.startswith("solver_")
        }
        return cls(learned, _position(header["position"]), counts, weights, solver, header["curve"])

    def restore(self, session: Session) -> None:
        """Restore the learnt values and counters of a training; its solver's state is in
        `solver`.
        """
        session.learned = self.learned
        samples, seconds, loss_sum, loss_rows, following = self.counts
        session.samples, session.seconds, session.next_point = samples, seconds, following
        session.loss_sum, session.loss_rows = loss_sum, loss_rows
        session.batch_weights.rows, session.batch_weights.sum = self.weights
        session.curve = self.curve


def _learned(session: Session, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> Learned:
    """The values learnt from the first rows."""
    task, method = header["task"], session.method
    if task not in ("binary", "multiclass", "regression"):
        raise DataError(f"its task is {task!r:.40}")
    names = ("n_inputs", "n_prepared", "n_rows", "n_targets")
    inputs, prepared, rows, n_targets = (_whole(header[name], name, 1) for name in names)
    if "weight_sum" in header:
        _number(header["weight_sum"], "weight_sum", 0)
    known = {name: arrays[name] for name in _ARRAYS if name in arrays}
    _check_arrays(known, task, {"inputs": inputs, "prepared": prepared}, rows)
    _kernel(method.get("kernel"), _table(header["kernel_params"], "kernel_params"), prepared)
    validation = _listed(header["validation"], "validation")
    if not all(type(step) is dict for step in validation):
        raise DataError("validation is not a list of steps")
    return Learned(
        task,
        known.get("classes"),
        _target(header["target_scaler"], task, n_targets),
        losses.get_loss(header["loss"], method.get("epsilon")),
        _inputs(header, known),
        header["kernel_params"],
        rows,
        inputs,
        n_targets,
        prepared,
        known["sample"],
        validation,
        header.get("weight_sum"),
        session.trainer.schema,
        _chosen(session, header["chosen"]),
    )


def _chosen(session: Session, found: Any) -> dict[str, float]:
    """The numbers chosen for options given as words."""
    method = session.trainer.method
    for name, value in _table(found, "chosen").items():
        known = name == "gamma" or name in session.method.searched
        if not known or type(method.get(name)) in (int, float):
            raise DataError(f"{name!r:.40} was chosen, but is not an option with a choice")
        _number(value, name, 0)
    if isinstance(method.get("nu"), str) and "nu" not in found:
        raise DataError("no nu was chosen")
    return dict(found)


def _check_arrays(
    known: dict[str, np.ndarray], task: str, sizes: dict[str, int], rows: int
) -> None:
    """Reject learnt arrays that are missing, or do not match the task and the number of rows."""
    missing = {"scaler_shift", "scaler_scale", "sample"} | (
        set() if task == "regression" else {"classes"}
    )
    if lacking := sorted(missing - known.keys()):
        raise DataError(f"there is no array {lacking[0]}")
    model.check_arrays(known, _ARRAYS, sizes)
    if task != "regression":
        classes = known["classes"]
        if (
            not len(classes)
            or np.any(np.diff(classes) <= 0)
            or (task == "binary" and len(classes) > 2)
        ):
            raise DataError(f"its {len(classes)} labels do not match the task {task}")
    if len(known["sample"]) > rows or ("pca_mean" in known) != ("pca_components" in known):
        raise DataError("its sample or its principal components do not match its rows")


def _inputs(header: dict[str, Any], known: dict[str, np.ndarray]) -> Inputs:
    """The transform from raw inputs to those of the method."""
    unit, centred = header["unit"], header["centred"]
    if type(unit) is not bool or type(centred) not in (bool, type(None)):
        raise DataError("unit and centred must be true or false")
    if np.any(known["scaler_scale"] < 0):
        raise DataError("array scaler_scale has values below 0")
    own = {name[7:]: values for name, values in known.items() if name.startswith("scaler_")}
    named = {"kind": header["scaling"], "metric": header.get("metric", "none")}
    scaler, pca = Scaler.from_dict(named | own), None
    if "pca_components" in known:
        pca = PCA.from_dict(
            {"centred": centred, "mean": known["pca_mean"], "components": known["pca_components"]}
        )
    return Inputs(scaler, unit, pca)


def _target(scaled: Any, task: str, n_targets: int) -> TargetScaler | None:
    """The scaling of regression targets; other tasks have none."""
    if (scaled is None) != (task != "regression"):
        raise DataError(
            f"the task is {task}, but there is {'no' if scaled is None else 'a'} scaling of targets"
        )
    if scaled is None:
        return None
    target = TargetScaler.from_dict(_table(scaled, "target_scaler"), n_targets)
    if not (np.isfinite(target.shift).all() and np.all(np.asarray(target.scale) > 0)):
        raise DataError("the target scaling has numbers that are not finite")
    return target


def _kernel(name: str | None, params: dict[str, Any], prepared: int) -> None:
    """Reject parameters that the kernel does not have, or that are not finite numbers of its
    form.
    """
    declared = {} if name is None else kernels.get_kernel(name).parameters
    for key, value in params.items():
        if key not in declared:
            raise DataError(f"the kernel has no parameter {key!r:.40}")
        values = np.asarray(value)
        if values.dtype.kind not in "fi" or (
            declared[key].kind == "i" and values.dtype.kind != "i"
        ):
            raise DataError(f"{key} of the kernel is {value!r:.40}")
        sizes = {"inputs": prepared}
        model.check_arrays(
            {key: values.astype(declared[key].kind + "8")}, {key: declared[key]}, sizes
        )
        if key == "gamma" and not value > 0:
            raise DataError(f"gamma of the kernel is {value!r:.40}")
    if lacking := sorted(declared.keys() - params.keys()):
        raise DataError(f"the kernel's parameter {lacking[0]} is missing")


def _position(found: dict[str, Any]) -> dict[str, Any]:
    """A position of rfx.data.stream.Stream."""
    for name in ("epoch", "number", "offset", "rows"):
        _whole(_table(found, "position")[name], name)
    _whole(found["batch"], "batch", 1), _whole(found["window"], "window", 1)
    if type(found["shuffled"]) is not bool or type(found["seed"]) not in (int, type(None)):
        raise DataError("the position lacks shuffled or seed")
    _place(found["source"], "the place of the rows")
    return found


def _place(found: object, name: str) -> None:
    """Positions of sources are tables of integers, words and such tables."""
    if isinstance(found, dict):
        for key, value in found.items():
            _place(value, key)
    elif isinstance(found, list):
        for value in found:
            _place(value, name)
    elif found is not None and type(found) is not str:
        _whole(found, name)


def check_solver(then: dict[str, np.ndarray], now: dict[str, np.ndarray], n_inputs: int) -> None:
    """Raise DataError for arrays of a solver that differ in form from its initial ones.

    then: those of the checkpoint; now: those of the same solver before its first step. Arrays that
    grow with the rows (coef, before, rows) may be longer, all by the same amount. n_inputs: columns
    of the rows that a solver stores.
    """
    if then.keys() != now.keys():
        raise DataError(
            f"the solver has the arrays {', '.join(sorted(then))}, not {', '.join(sorted(now))}"
        )
    lengths = set()
    for name, values in now.items():
        found = then[name]
        grows = name in ("coef", "before", "rows")
        # a solver without rows does not know their number of columns
        shape = (0, n_inputs) if name == "rows" else values.shape
        if (
            found.dtype != values.dtype
            or found.ndim != values.ndim
            or found.shape[grows:] != shape[grows:]
        ):
            raise DataError(
                f"array solver_{name} holds {found.dtype} in the shape {found.shape}, not"
                f" {values.dtype} in {shape}"
            )
        if found.dtype.kind == "f" and not np.isfinite(found).all():
            raise DataError(f"array solver_{name} has values that are not finite")
        if name == "t" and not (np.all(found >= 0) and np.all(found <= _MOST)):
            raise DataError("array solver_t has values that are not counts")
        if grows:
            lengths.add(len(found))
    if len(lengths) > 1:
        raise DataError("the solver's arrays have different lengths")
