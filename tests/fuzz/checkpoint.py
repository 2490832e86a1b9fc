"""Mutated checkpoints: training resumes from each, or refuses it in one sentence, without a
traceback or much memory.

A checkpoint's digest detects every change.
"""

import tempfile
import warnings
from pathlib import Path

import numpy as np
from fuzz import model
from fuzz.mutations import check_sentence, count

from rfx import methods
from rfx.errors import RfxError

# name -> (method, options, targets)
KINDS = {
    "doubly": ("doubly-sgd", {"block": 8, "batch": 16}, "binary"),
    "several": ("doubly-sgd", {"block": 8, "batch": 16, "averaging": "uniform"}, "multiclass"),
    "norma": ("norma", {"batch": 16}, "regression"),
    "k-sdca": ("k-sdca", {"batch": 16}, "binary"),
    "r-sdca": ("r-sdca", {"batch": 16, "n_features": 8}, "regression"),
    "n-pegasos": ("n-pegasos", {"batch": 16, "n_features": 8}, "multiclass"),
}


def _data(task):
    X = np.random.default_rng(0).normal(size=(96, 3))
    y = X[:, 0] + X[:, 1] ** 2
    return X, y if task == "regression" else np.digitize(
        y, [0.5] if task == "binary" else [0.0, 1.0]
    ).astype(float)


def _method(kind, path, resume=False, epochs=1):
    name, options, task = KINDS[kind]
    known = methods.get(name).declared()
    given = {key: value for key, value in ({"gamma": 0.5} | options).items() if key in known}
    method = methods.create(name, seed=0, epochs=epochs, **given)
    return method.keep(path, 2, resume), _data(task)


def start(folder: Path) -> list[tuple[str, bytes]]:
    """(kind, checkpoint) of every kind of solver, each after an epoch."""
    found = []
    for kind in KINDS:
        method, (X, y) = _method(kind, folder / "c.npz")
        method.fit(X, y)
        found.append((kind, (folder / "c.npz").read_bytes()))
        (folder / "c.npz").unlink()
    return found


def one(path: Path, kind: str, content: bytes) -> bool:
    """Whether the training resumed from a checkpoint with this content. RfxError means a refusal;
    any other exception is a fault.
    """
    path.write_bytes(content)
    method, (X, y) = _method(kind, path, resume=True, epochs=2)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            method.fit(X, y)
    except RfxError as error:
        check_sentence(error)
        return False
    return True


def fuzz(cases: int, seed: int) -> int:
    """From how many of `cases` mutated checkpoints training resumed."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "c.npz"
        wholes = start(Path(folder))

        def make(random):
            kind, whole = random.choice(wholes)
            return kind, model.mutated(whole, random)

        return count("checkpoint", cases, seed, make, lambda given, _: one(path, *given))
