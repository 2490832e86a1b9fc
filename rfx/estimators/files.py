"""Save estimators in model files, so that they load unchanged and the command line can use them.

Word labels and input names form the model's schema, as for tables (rfx.data.tabular.schema). The
type of the labels and the class_weight, which only estimators need, are stored in an entry of the
header.
"""

import inspect
from dataclasses import replace

import numpy as np

from rfx import methods, model
from rfx.data.tabular import schema
from rfx.data.tabular.schema import Input, Schema
from rfx.errors import DataError
from rfx.estimators.categories import FROM_DTYPE
from rfx.fitting import weights
from rfx.options import LabelWeights

# Entry of the header; the command line does not use it.
ENTRY = "estimator"
_TRUTHS = ["false", "true"]


def save(estimator, path) -> int:
    """Write the model file of a trained estimator; return its size in bytes.

    Raises ValueError for labels other than words and numbers.
    """
    trained, known = estimator.method_, {}
    if estimator.table_ is not None:  # as written by `rfx train`
        return trained.save(path)
    words = _words_of(estimator)
    names = getattr(estimator, "feature_names_in_", None)
    if estimator.schema_ is not None:
        trained = trained.replace(schema=replace(estimator.schema_, labels=words))
        known["columns"] = estimator.n_features_in_ if names is None else names.tolist()
    elif names is not None:
        inputs = [Input(name, place) for place, name in enumerate(names.tolist())]
        trained = trained.replace(schema=Schema(inputs, named=True, size=len(inputs), labels=words))
    elif words is not None:
        trained = trained.replace(schema=Schema(labels=words))
    if hasattr(estimator, "classes_") and estimator.classes_.dtype.kind in "iufb":
        known["kind"] = estimator.classes_.dtype.str
    asked = getattr(estimator, "categorical_features", FROM_DTYPE)
    if asked is None or not isinstance(asked, str):
        known["categorical_features"] = None if asked is None else list(map(_item, asked))
    given = getattr(estimator, "class_weight", None)
    if given is not None:
        known["class_weight"] = (
            given
            if isinstance(given, str)
            else [[_item(label), float(own)] for label, own in given.items()]
        )
    return trained.save(path, **{ENTRY: known})


def are_doubles(labels: np.ndarray) -> bool:
    """Whether labels (k,) are numbers that float64 represents exactly; integers beyond 2^53 are
    not.
    """
    kind = labels.dtype.kind
    return kind in "fb" or (
        kind in "iu" and (not len(labels) or max(abs(int(labels[0])), abs(int(labels[-1]))) < 2**53)
    )


def _words_of(estimator) -> list[str] | None:
    classes = getattr(estimator, "classes_", None)
    if classes is None or are_doubles(classes):
        return None
    if classes.dtype.kind in "iu":  # with all digits
        return list(map(str, classes.tolist()))
    words = classes.tolist()
    if not all(isinstance(word, str) for word in words):
        raise ValueError(
            f"labels of type {classes.dtype} can't be saved in a model file; use words or numbers"
        )
    return words


def _item(label):
    return label.item() if hasattr(label, "item") else label


def restore(estimator_of, path):
    """Load the estimator of a model file, written by an estimator or by `rfx train`.

    estimator_of(method name, task) returns its class.

    Raises DataError if the file is not an rfx model, or is damaged.
    """
    trained = methods.load(path)
    with model.opened(path) as file:
        known = file.header.get(ENTRY)
    kind = estimator_of(
        trained.name, "regression" if trained.task == "regression" else "classification"
    )
    estimator = kind(**_parameters(kind, trained))
    estimator._keep(trained)
    estimator.n_features_in_ = trained.info["n_inputs"]
    if known is None and trained.schema is not None and trained.schema.inputs is not None:
        estimator.table_ = trained.schema
    try:
        _recall(estimator, trained, known or {})
    except (AttributeError, IndexError, TypeError, ValueError) as error:
        raise DataError(
            f"model {path} can't be used: its estimator is damaged ({error!s:.80}); train it again"
        ) from error
    return estimator


def _parameters(kind, method) -> dict:
    """The estimator's parameters among the method's options, if they differ from the defaults."""
    # with a numeric bandwidth, other options have other defaults
    asked = method.method.values | method.info.get("asked", {})
    defaults = method.method.defaults({"kernel": asked.get("kernel")})
    defaults |= method.method.defaults({"gamma": asked.get("gamma")})
    known = inspect.signature(kind).parameters
    found = {
        name: value
        for name, value in asked.items()
        if name in known and value != defaults.get(name)
    }
    if found.get("class_weight") not in (None, LabelWeights.BALANCED):
        by_code = weights.by_code(found["class_weight"], method.schema)
        assert isinstance(by_code, dict)
        found["class_weight"] = {
            label: own for code, own in by_code.items() for label in schema.shown(method, [code])
        }
    return found


def _recall(estimator, trained, known):
    """Set labels, input names and class weights as `save` wrote them."""
    schema, columns = trained.schema, known.get("columns")
    if columns is not None:
        estimator.n_features_in_, estimator.schema_ = schema.size, replace(schema, labels=None)
    elif schema is not None and schema.inputs is not None and schema.named:
        columns = schema.titles()
    if isinstance(columns, list):
        estimator.feature_names_in_ = np.array(columns, dtype=object)
    if trained.classes is not None:
        words = None if schema is None else schema.labels
        estimator.classes_ = _labels(trained.classes, words, known.get("kind"))
        # pandas reads such a column of a table as Booleans
        if estimator.table_ is not None and [*map(str.lower, words or ())] == ["false", "true"]:
            estimator.classes_ = np.array([False, True])
    if "categorical_features" in known:
        estimator.categorical_features = known["categorical_features"]
    weights_of_labels = known.get("class_weight")
    if weights_of_labels is not None and "class_weight" in estimator.get_params():
        text = isinstance(weights_of_labels, str)
        estimator.class_weight = weights_of_labels if text else dict(weights_of_labels)


def _labels(classes, words, kind):
    """The labels (n_classes,) in their type, from the classes of the model and their words."""
    if words is not None:
        classes = np.array(words)[classes.astype(np.int64)]
        return classes if kind is None else np.array(list(map(int, classes.tolist())), kind)
    found = classes if kind is None else classes.astype(kind)
    if not np.array_equal(found, classes):
        raise ValueError(f"its labels are not of type {kind}")
    return found
