"""All parts of a checkpoint are checked before any of it is used; a damaged one is refused in one
sentence.
"""

import json
import os

import numpy as np
import pytest
from fuzz import checkpoint as fuzz

from rfx import model
from rfx.errors import DataError
from rfx.fitting import checkpoints


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """For two kinds of solver, a checkpoint after one epoch: its header and its arrays."""
    folder, found = tmp_path_factory.mktemp("whole"), {}
    for kind in ("doubly", "norma"):
        method, (X, y) = fuzz._method(kind, folder / "c.npz")
        method.fit(X, y)
        found[kind] = model.read(folder / "c.npz")
        (folder / "c.npz").unlink()
    return found


def refused(path, kind, header, arrays, signed):
    """The sentence with which training refuses to resume from a checkpoint with these parts;
    signed: with their digest.
    """
    said = {name: value for name, value in header.items() if name not in ("format", "digest")}
    model.write(
        path,
        said | {"digest": checkpoints.digest(said, arrays) if signed else header["digest"]},
        arrays,
    )
    method, (X, y) = fuzz._method(kind, path, resume=True, epochs=2)
    with pytest.raises(DataError) as caught:
        method.fit(X, y)
    assert (
        "is damaged" in str(caught.value)
        and "omit --resume" in str(caught.value)
        and "\n" not in str(caught.value)
    )


FIELDS = [
    ("counts", [1, 2]),
    ("counts", ["x", 0.0, 0.0, 0.0, 1]),
    ("counts", [-1, 0.0, 0.0, 0.0, 1]),
    ("weights", None),
    ("weights", [1, "x"]),
    ("kernel_params", {"gamma": "x"}),
    ("kernel_params", {}),
    ("kernel_params", [1]),
    ("kernel_params", {"gamma": [1, 2]}),
    ("position", None),
    ("position", {"epoch": 0}),
    ("curve", 3),
    ("curve", [{}]),
    ("validation", {}),
    ("task", "tarts"),
    ("loss", 5),
    ("n_rows", 0),
    ("n_rows", 1e9),
    ("n_inputs", 10**30),
    ("n_targets", "1"),
    ("unit", None),
    ("scaling", "none of them"),
    ("target_scaler", {"kind": "none"}),
    ("params", None),
]


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize(("name", "value"), FIELDS)
def test_a_field_of_another_type_or_range_is_refused(tmp_path, whole, name, value, signed):
    header, arrays = whole["doubly"]
    refused(tmp_path / "c.npz", "doubly", header | {name: value}, arrays, signed)
    refused(
        tmp_path / "c.npz",
        "doubly",
        {key: one for key, one in header.items() if key != name},
        arrays,
        signed,
    )


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("kind", ["doubly", "norma"])
def test_an_array_of_another_shape_type_or_range_is_refused(tmp_path, whole, kind, signed):
    header, arrays = whole[kind]
    for name, values in arrays.items():
        # with another length they may belong to another checkpoint, whose digest would be right
        shorter = [] if signed and name in ("sample", "solver_coef", "classes") else [values[:-1]]
        for other in (
            *shorter,
            np.concatenate([values, values])[..., None],
            values.astype("i1"),
            values.ravel()[:0],
            values * np.nan,
        ):
            refused(tmp_path / "c.npz", kind, header, arrays | {name: other}, signed)
        refused(
            tmp_path / "c.npz",
            kind,
            header,
            {key: one for key, one in arrays.items() if key != name},
            signed,
        )


def test_a_checkpoint_that_is_whole_is_gone_on_from(tmp_path, whole):
    header, arrays = whole["doubly"]
    model.write(
        tmp_path / "c.npz",
        {name: value for name, value in header.items() if name != "format"},
        arrays,
    )
    method, (X, y) = fuzz._method("doubly", tmp_path / "c.npz", resume=True, epochs=2)
    straight, _ = fuzz._method("doubly", tmp_path / "d.npz", epochs=2)
    assert np.array_equal(
        method.fit(X, y).decision_function(X), straight.fit(X, y).decision_function(X)
    )


def test_a_file_that_is_no_checkpoint_is_refused(tmp_path):
    path = tmp_path / "c.npz"
    method, (X, y) = fuzz._method("doubly", path, resume=True)
    for content in (b"", b"x" * 500, json.dumps({}).encode()):
        path.write_bytes(content)
        with pytest.raises(DataError, match="is damaged"):
            method.fit(X, y)
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(DataError, match="it is a pipe, not a file"):
        method.fit(X, y)


def test_mutated_checkpoints_are_gone_on_from_or_refused():
    assert fuzz.fuzz(60, 1) < 60
