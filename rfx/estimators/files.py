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


def save(estimator, path) -> int:
    """Write the model file of a trained estimator; return its size in bytes.

    Raises ValueError for labels other than words and numbers.
    """
    trained, columns, entry = estimator.method_, estimator.schema_, {}
    if estimator.table_ is not None:  # as written by `rfx train`
        return trained.save(path)
    classes = getattr(estimator, "classes_", None)
    words = None if classes is None or are_doubles(classes) else _words(classes)
    names = getattr(estimator, "feature_names_in_", None)
    if columns is not None:
        entry["columns"] = estimator.n_features_in_ if names is None else names.tolist()
    elif names is not None:
        inputs = [Input(name, place) for place, name in enumerate(names.tolist())]
        columns = Schema(inputs, named=True, size=len(inputs))
    if columns is not None or words is not None:
        trained = trained.replace(schema=replace(columns or Schema(), labels=words))
    if classes is not None and classes.dtype.kind in "iufb":
        entry["kind"] = classes.dtype.str
    categorical = getattr(estimator, "categorical_features", FROM_DTYPE)
    if not isinstance(categorical, str):
        entry["categorical_features"] = categorical and [_item(one) for one in categorical]
    class_weight = getattr(estimator, "class_weight", None)
    if isinstance(class_weight, dict):
        entry["class_weight"] = [[_item(k), float(weight)] for k, weight in class_weight.items()]
    elif class_weight is not None:
        entry["class_weight"] = class_weight
    return trained.save(path, **{ENTRY: entry})


def are_doubles(labels: np.ndarray) -> bool:
    """Whether labels (k,) are numbers that float64 represents exactly; integers beyond 2^53 are
    not.
    """
    kind = labels.dtype.kind
    return kind in "fb" or (kind in "iu" and all(abs(int(one)) < 2**53 for one in labels))


def _words(classes: np.ndarray) -> list[str]:
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
    entry = model.read_header(path).get(ENTRY)
    task = "regression" if trained.task == "regression" else "classification"
    kind = estimator_of(trained.name, task)
    estimator = kind(**_parameters(kind, trained))
    estimator._keep(trained)
    estimator.n_features_in_ = trained.outcome.n_inputs
    if entry is None and trained.schema is not None and trained.schema.inputs is not None:
        estimator.table_ = trained.schema
    try:
        _recall(estimator, trained, entry or {})
    except (AttributeError, IndexError, TypeError, ValueError) as error:
        raise DataError(
            f"model {path} can't be used: its estimator is damaged ({error!s:.80}); train it again"
        ) from error
    return estimator


def _parameters(kind, trained) -> dict:
    """The estimator's parameters among the method's options, if they differ from the defaults."""
    asked = trained.method.values | (trained.outcome.asked or {})
    # with a numeric bandwidth, other options have other defaults
    defaults = trained.method.defaults({"kernel": asked.get("kernel")})
    defaults |= trained.method.defaults({"gamma": asked.get("gamma")})
    names = inspect.signature(kind).parameters.keys() & asked.keys()
    values = {name: asked[name] for name in names if asked[name] != defaults.get(name)}
    if values.get("class_weight") not in (None, LabelWeights.BALANCED):
        by_code = weights.by_code(values["class_weight"], trained.schema)
        assert isinstance(by_code, dict)
        labels = schema.shown(trained, list(by_code))
        values["class_weight"] = dict(zip(labels, by_code.values()))
    return values


def _recall(estimator, trained, entry: dict) -> None:
    """Set labels, input names and class weights as `save` wrote them."""
    table, columns = trained.schema, entry.get("columns")
    if columns is not None:
        estimator.n_features_in_, estimator.schema_ = table.size, replace(table, labels=None)
    elif table is not None and table.inputs is not None and table.named:
        columns = table.titles()
    if isinstance(columns, list):
        estimator.feature_names_in_ = np.array(columns, dtype=object)
    if trained.classes is not None:
        words = None if table is None else table.labels
        estimator.classes_ = _labels(trained.classes, words, entry.get("kind"))
        # pandas reads such a column of a table as Booleans
        if estimator.table_ is not None and [*map(str.lower, words or ())] == ["false", "true"]:
            estimator.classes_ = np.array([False, True])
    if "categorical_features" in entry:
        estimator.categorical_features = entry["categorical_features"]
    class_weight = entry.get("class_weight")
    if class_weight is not None and "class_weight" in estimator.get_params():
        text = isinstance(class_weight, str)
        estimator.class_weight = class_weight if text else dict(class_weight)


def _labels(classes, words, kind):
    """The labels (n_classes,) in their type, from the classes of the model and their words."""
    if words is not None:
        classes = np.array(words)[classes.astype(np.int64)]
        return classes if kind is None else np.array(list(map(int, classes.tolist())), kind)
    typed = classes if kind is None else classes.astype(kind)
    if not np.array_equal(typed, classes):
        raise ValueError(f"its labels are not of type {kind}")
    return typed
