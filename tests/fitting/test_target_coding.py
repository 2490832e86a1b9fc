"""The coding of targets: task, classes and scaling are the same from an array and from a stream."""

import numpy as np
import pytest

from rfx import methods
from rfx.data.transforms import Survey
from rfx.errors import DataError, UsageError
from rfx.fitting.target_coding import TargetArray, find_task, known_classes, learn_coding

RNG = np.random.default_rng(7)
X = RNG.standard_normal((300, 2))
NUMBERS = 40 + 7 * X[:, 0]
TWO_TARGETS = np.column_stack([NUMBERS, X[:, 1]])
BINARY = np.where(X[:, 0] > 0, 5.0, 2.0)
LABELS = np.digitize(X[:, 0], [-0.5, 0.5]).astype(float)


def as_stream(y):
    """What a survey of batches of 70 rows finds."""
    starts = range(0, len(y), 70)
    return Survey(lambda: ((X[start : start + 70], y[start : start + 70]) for start in starts))


@pytest.mark.parametrize("scaling", [None, "none", "minmax01", "standard"])
@pytest.mark.parametrize(("y", "default"), [(NUMBERS, "mean"), (TWO_TARGETS, "standard")])
def test_numbers_are_scaled_alike(y, default, scaling):
    method = methods.create("doubly-sgd", target_scaling=scaling).method
    codings = []
    for targets in (TargetArray(y), as_stream(y)):
        assert find_task(method, targets) == "regression"
        codings.append(learn_coding(method, "regression", targets))
    of_array, of_stream = codings
    assert of_array.scaling == of_stream.scaling == (scaling or default)
    np.testing.assert_allclose(of_array.encode(y), of_stream.encode(y), atol=1e-9)
    decoded = of_array.decode(of_array.encode(y))
    np.testing.assert_allclose(decoded.reshape(y.shape), y, rtol=1e-9)


@pytest.mark.parametrize(("y", "task"), [(BINARY, "binary"), (LABELS, "multiclass")])
def test_labels_are_coded_alike(y, task):
    method = methods.create("doubly-sgd").method
    for targets in (TargetArray(y), as_stream(y)):
        assert find_task(method, targets) == task
        coding = learn_coding(method, task, targets)
        np.testing.assert_array_equal(coding.classes, np.unique(y))
        encoded = coding.encode(y)
        decision = encoded[:, 0] if task == "binary" else encoded
        np.testing.assert_array_equal(coding.decode(decision), y)


@pytest.mark.parametrize("name", ["local", "doubly-sgd"])
@pytest.mark.parametrize(
    ("y", "options", "error", "said"),
    [
        (LABELS, {"task": "binary"}, DataError, "targets have 3 values; set --task multiclass"),
        (BINARY, {"task": "binary", "target_scaling": "mean"}, UsageError, "is for regression"),
        (np.arange(300.0) % 60, {}, UsageError, "may be numbers or classes"),
        (NUMBERS, {"class_weight": "1:2"}, UsageError, "it is for classification"),
        (TWO_TARGETS, {"task": "multiclass"}, UsageError, "2 targets each, which requires regr"),
        (
            TWO_TARGETS,
            {"task": "binary", "class_weight": "balanced"},
            UsageError,
            "2 targets each, which requires regression",
        ),
    ],
)
def test_wrong_targets_are_refused_alike(name, y, options, error, said):
    with pytest.raises(error, match=said):
        methods.create(name, scaling="standard", metric="none", **options).fit(X, y)


def test_labels_known_beforehand_decide_the_task_of_the_first_batch():
    method, first = methods.create("norma").method, as_stream(BINARY)
    assert find_task(method, first) == "binary"
    assert find_task(method, first, [2.0, 3.0, 5.0]) == "multiclass"
    coding = learn_coding(method, "multiclass", first, [2.0, 3.0, 5.0])
    np.testing.assert_array_equal(coding.classes, [2, 3, 5])


def test_a_class_whose_rows_have_no_weight_remains_a_class():
    kept = LABELS[LABELS < 2]
    np.testing.assert_array_equal(known_classes(None, "multiclass", LABELS, kept), [0, 1, 2])
    assert known_classes(None, "multiclass", LABELS, LABELS) is None
    assert known_classes(None, "regression", LABELS, kept) is None
