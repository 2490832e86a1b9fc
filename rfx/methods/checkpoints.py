"""Checkpoints of a training: all that it takes to go on to the same bits, in one file that appears whole or not at all."""

import contextlib
from pathlib import Path

from rfx import losses, model
from rfx.data.scaling import Scaler, TargetScaler
from rfx.errors import DataError, UsageError

KIND = "checkpoint"


class Keeper:
    """Where and how often checkpoints are written. every: steps; None for one at the end alone."""

    def __init__(self, path, every=None, resume=False):
        self.path, self.every, self.resume = Path(path), every, resume

    def due(self, t: int) -> bool:
        """Whether step t is to be followed by a checkpoint."""
        return self.every is not None and t % self.every == 0

    def write(self, method, stream) -> None:
        """The state of a method and of the stream that it reads."""
        header, arrays = method._learned()
        scaler = method.scaler.to_dict()
        header |= {
            "kind": KIND,
            "method": method.name,
            "params": method.params,
            "task": method.task,
            "loss": method.loss.name,
            "scaling": scaler["kind"],
            "target_scaler": None if method.target_scaler is None else method.target_scaler.to_dict(),
            "position": stream.position(),
            "counts": [method.samples, method.seconds, method._loss_sum, method._loss_rows, method._next_point],
            "weights": [method.batch_weights.rows, method.batch_weights.sum],
            "curve": method.curve,
            "validation": method.validation,
        }
        arrays |= {"scaler_shift": scaler["shift"], "scaler_scale": scaler["scale"], "sample": method._sample}
        if method.classes is not None:
            arrays["classes"] = method.classes
        model.write(self.path, header, arrays | {f"solver_{name}": value for name, value in method.solver.state().items()})

    @contextlib.contextmanager
    def sound(self):
        """DataError for what a damaged checkpoint raises while it is taken up."""
        try:
            yield
        except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
            raise DataError(
                f"checkpoint {self.path} is damaged ({type(error).__name__}: {error}), or of another version of rfx; delete it to start "
                "anew, or leave out --resume"
            ) from error

    def load(self, method):
        """Header and arrays of the checkpoint to go on from; None to begin anew.

        Raises DataError for a file that is no checkpoint, UsageError where it is of another method or other options.
        """
        if not self.resume or not self.path.exists():
            return None
        header, arrays = model.read(self.path)
        if header.get("kind") != KIND:
            raise DataError(f"{self.path} is not a checkpoint but a model file; give the file that --checkpoint wrote")
        with self.sound():
            self._check(method, header)
        return header, arrays

    def _check(self, method, header):
        if header["method"] != method.name:
            raise UsageError(f"checkpoint {self.path} is of method {header['method']}, not {method.name}")
        from rfx.methods.stream_options import CHANGEABLE

        for name, value in method.params.items():
            then = header["params"].get(name)
            if name not in CHANGEABLE and then != value:
                flag = name.replace("_", "-")
                raise UsageError(f"--{flag} is {value}, but was {then} when the checkpoint {self.path} was written; give the same")


def restore(method, header, arrays) -> None:
    """What a method had learnt and counted; its solver's state is in the arrays that begin with solver_."""
    method.task = header["task"]
    method.classes = arrays.get("classes")
    method.loss = losses.get_loss(header["loss"], method.params["epsilon"])
    method.scaler = Scaler(header["scaling"], arrays["scaler_shift"], arrays["scaler_scale"])
    method._restore_learned(header, arrays)
    method.target_scaler = TargetScaler.from_dict(header["target_scaler"], method.n_targets) if header["target_scaler"] else None
    method._sample = arrays["sample"]
    method.samples, method.seconds, method._loss_sum, method._loss_rows, method._next_point = header["counts"]
    method.batch_weights.rows, method.batch_weights.sum = header["weights"]
    method.curve, method.validation = header["curve"], header.get("validation", [])
