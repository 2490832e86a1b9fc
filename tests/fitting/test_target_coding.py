"""The coding of targets: task, classes and scaling are the same from an array and from a stream."""

import numpy as np
import pytest

from rfx import methods
from rfx.data.transforms import Survey
from rfx.errors import DataError, UsageError
from rfx.fitting.target_coding import TargetArray, find_task, known_classes, learn_coding


@pytest.fixture(scope="module")
def X():
    return np.random.default_rng(7).standard_normal((300, 2))


@pytest.fixture(scope="module")
def targets(X):
    numbers = 40 + 7 * X[:, 0]
    return {
        "numbers": numbers,
        "two": np.column_stack([numbers, X[:, 1]]),
        "binary": np.where(X[:, 0] > 0, 5.0, 2.0),
        "multiclass": np.digitize(X[:, 0], [-0.5, 0.5]).astype(float),
        "counts": np.arange(300.0) % 60,
    }


def as_stream(X, y):
    """What a survey of batches of 70 rows finds."""
    starts = range(0, len(y), 70)
    return Survey(lambda: ((X[start : start + 70], y[start : start + 70]) for start in starts))


@pytest.mark.parametrize("scaling", [None, "none", "minmax01", "standard"])
@pytest.mark.parametrize(("kind", "default"), [("numbers", "mean"), ("two", "standard")])
def test_numbers_are_scaled_alike(kind, default, scaling, X, targets):
    y = targets[kind]
    method = methods.create("doubly-sgd", target_scaling=scaling).method
    codings = []
    for seen in (TargetArray(y), as_stream(X, y)):
        assert find_task(method, seen) == "regression"
        codings.append(learn_coding(method, "regression", seen))
    of_array, of_stream = codings
    assert of_array.scaling == of_stream.scaling == (scaling or default)
    np.testing.assert_allclose(of_array.encode(y), of_stream.encode(y), atol=1e-9)
    decoded = of_array.decode(of_array.encode(y))
    np.testing.assert_allclose(decoded.reshape(y.shape), y, rtol=1e-9)


@pytest.mark.parametrize("task", ["binary", "multiclass"])
def test_labels_are_coded_alike(task, X, targets):
    y = targets[task]
    method = methods.create("doubly-sgd").method
    for seen in (TargetArray(y), as_stream(X, y)):
        assert find_task(method, seen) == task
        coding = learn_coding(method, task, seen)
        np.testing.assert_array_equal(coding.classes, np.unique(y))
        encoded = coding.encode(y)
        decision = encoded[:, 0] if task == "binary" else encoded
        np.testing.assert_array_equal(coding.decode(decision), y)


@pytest.mark.parametrize("name", ["local", "doubly-sgd"])
@pytest.mark.parametrize(
    ("kind", "options", "error", "said"),
    [
        ("multiclass", {"task": "binary"}, DataError, "have 3 values; set --task multiclass"),
        ("binary", {"task": "binary", "target_scaling": "mean"}, UsageError, "is for regression"),
        ("counts", {}, UsageError, "may be numbers or classes"),
        ("numbers", {"class_weight": "1:2"}, UsageError, "it is for classification"),
        ("two", {"task": "multiclass"}, UsageError, "2 targets each, which requires regr"),
        (
            "two",
            {"task": "binary", "class_weight": "balanced"},
            UsageError,
            "2 targets each, which requires regression",
        ),
    ],
)
def test_wrong_targets_are_refused_alike(name, kind, options, error, said, X, targets):
    with pytest.raises(error, match=said):
        methods.create(name, scaling="standard", metric="none", **options).fit(X, targets[kind])


def test_labels_known_beforehand_decide_the_task_of_the_first_batch(X, targets):
    method, first = methods.create("norma").method, as_stream(X, targets["binary"])
    assert find_task(method, first) == "binary"
    assert find_task(method, first, [2.0, 3.0, 5.0]) == "multiclass"
    coding = learn_coding(method, "multiclass", first, [2.0, 3.0, 5.0])
    np.testing.assert_array_equal(coding.classes, [2, 3, 5])


def test_a_class_whose_rows_have_no_weight_remains_a_class(targets):
    labels = targets["multiclass"]
    kept = labels[labels < 2]
    np.testing.assert_array_equal(known_classes(None, "multiclass", labels, kept), [0, 1, 2])
    assert known_classes(None, "multiclass", labels, labels) is None
    assert known_classes(None, "regression", labels, kept) is None
