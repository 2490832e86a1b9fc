"""A digest covers all parts of a checkpoint; a damaged one is refused in one sentence."""

import json

import numpy as np
import pytest
from fuzz import checkpoint as fuzz

from rfx import model
from rfx.errors import DataError
from rfx.fitting import pipeline


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A checkpoint after one epoch: its header and its arrays."""
    path = tmp_path_factory.mktemp("whole") / "c.npz"
    method, (X, y) = fuzz._method("doubly", path)
    method.fit(X, y)
    return model.read(path)


def resumed(path, header, arrays):
    """The pipeline of a second epoch after a checkpoint with these parts."""
    model.write(path, {name: v for name, v in header.items() if name != "format"}, arrays)
    method, (X, y) = fuzz._method("doubly", path, resume=True, epochs=2)
    return method.fit(X, y)


def test_a_whole_checkpoint_is_resumed(tmp_path, whole):
    straight, (X, y) = fuzz._method("doubly", tmp_path / "d.npz", epochs=2)
    again = resumed(tmp_path / "c.npz", *whole)
    assert np.array_equal(again.decision_function(X), straight.fit(X, y).decision_function(X))


@pytest.mark.parametrize("part", ["counts", "chosen", "solver_coef", "sample"])
def test_a_changed_or_missing_part_is_refused(tmp_path, whole, part):
    header, arrays = whole
    parts = header if part in header else arrays
    changed = [1, 2] if part in header else arrays[part] + 1
    for other in (parts | {part: changed}, {n: v for n, v in parts.items() if n != part}):
        with pytest.raises(DataError, match="is damaged .* omit --resume"):
            if part in header:
                resumed(tmp_path / "c.npz", other, arrays)
            else:
                resumed(tmp_path / "c.npz", header, other)


def test_a_checkpoint_of_another_version_is_refused(tmp_path, whole):
    header, arrays = whole
    header = {n: v for n, v in header.items() if n not in ("format", "digest", "counts")}
    header |= {"digest": pipeline.digest(header, arrays)}
    with pytest.raises(DataError, match="KeyError.*or of another version of rfx; delete it"):
        resumed(tmp_path / "c.npz", header, arrays)


def test_a_file_that_is_no_checkpoint_is_refused(tmp_path):
    path = tmp_path / "c.npz"
    method, (X, y) = fuzz._method("doubly", path, resume=True)
    for content in (b"", b"x" * 500, json.dumps({}).encode()):
        path.write_bytes(content)
        with pytest.raises(DataError, match="is damaged"):
            method.fit(X, y)


def test_mutated_checkpoints_are_resumed_or_refused():
    assert fuzz.fuzz(40, 1) < 40
