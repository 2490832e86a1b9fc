"""Save estimators in model files, so that they load unchanged and the command line can use them.

Word labels and input names form the model's schema, as for tables (rfx.data.tabular.schema). The
type of the labels and the class_weight, which only estimators need, are stored in an entry of the
header.
"""

import inspect
from typing import Any

import numpy as np

from rfx import methods, model
from rfx.fitting.held_out import KINDS

# Entry of the header; the command line does not use it.
ENTRY = "estimator"
# Parameters that are no options of the method.
OWN = {"categorical_features", "missing"}


def save(estimator, path) -> int:
    """Write the model file of a trained estimator; return its size in bytes.

    Raises ValueError for labels other than words and numbers.
    """
    trained = estimator.method_
    schema = estimator.schema_
    entry = {}
    classes = getattr(estimator, "classes_", None)
    if classes is not None:
        if not are_doubles(classes) and words(classes) is None:
            raise ValueError(
                f"labels of type {classes.dtype} can't be saved in a model file; use words or"
                " numbers"
            )
        if classes.dtype.kind in "iufb":
            entry["kind"] = classes.dtype.str
    if schema is not None and schema.target is None:
        names = getattr(estimator, "feature_names_in_", None)
        entry["columns"] = estimator.n_features_in_ if names is None else names.tolist()
    if estimator.fills_ is not None:
        entry["fills"] = estimator.fills_.tolist()
    for name in OWN:
        value: Any = getattr(estimator, name, None)
        text = isinstance(value, (str, type(None)))
        entry[name] = value if text else np.asarray(value).tolist()
    return trained.save(path, **{ENTRY: entry})


def are_doubles(labels: np.ndarray) -> bool:
    """Whether labels (k,) are numbers that float64 represents exactly; integers beyond 2^53 are
    not.
    """
    kind = labels.dtype.kind
    return kind in "fb" or (kind in "iu" and all(abs(int(one)) < 2**53 for one in labels))


def words(classes: np.ndarray) -> list[str] | None:
    """Labels (k,) as the words of a schema: strings, and integers that float64 does not represent,
    with all digits. None for others.
    """
    labels = classes.tolist()
    text = all(isinstance(label, (str, int)) for label in labels)
    return list(map(str, labels)) if text and not are_doubles(classes) else None


def coded(classes: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Labels y (n,) as targets: numbers unchanged, others by their position in the classes."""
    codes = y if are_doubles(classes) else np.searchsorted(classes, y)
    return codes.astype(np.float64)


def weights_text(class_weight: dict) -> str | None:
    """The text of the option class_weight; None without labels."""
    pairs = []
    for label, weight in class_weight.items():
        label = int(label) if isinstance(label, (int, np.integer)) else label
        quoted = str(label).replace('"', '""')
        pairs.append(f'"{quoted}":{weight}')
    return ",".join(pairs) or None


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
    _recall(estimator, trained, entry or {})
    return estimator


def _parameters(kind, trained) -> dict:
    """The estimator's parameters among the method's options, if they differ from the defaults."""
    asked = trained.method.values | (trained.outcome.asked or {})
    # with a numeric bandwidth, other options have other defaults
    defaults = trained.method.defaults({"kernel": asked.get("kernel")})
    defaults |= trained.method.defaults({"gamma": asked.get("gamma")})
    names = inspect.signature(kind).parameters.keys() & asked.keys()
    values = {name: asked[name] for name in names if asked[name] != defaults.get(name)}
    if trained.calibration is not None and trained.calibration.kind in KINDS:
        values["calibrate"] = trained.calibration.kind
    return values


def _recall(estimator, trained, entry: dict) -> None:
    """Set labels, input names and parameters as `save` wrote them."""
    schema = trained.schema
    columns = entry.get("columns")
    kind = entry.get("kind")
    inputs = None if schema is None else schema.inputs
    if inputs is not None and (columns is not None or schema.target is not None):
        estimator.schema_ = schema
        estimator.n_features_in_ = len(inputs) if schema.target is not None else schema.size
    if inputs is not None and not isinstance(columns, int):
        columns = columns or [column.name for column in inputs]
        estimator.feature_names_in_ = np.array(columns, dtype=object)
    if trained.classes is not None:
        estimator.classes_ = _labels(trained, kind)
    if "fills" in entry:
        estimator.fills_ = np.array(entry["fills"])
    for name in entry.keys() & OWN:
        setattr(estimator, name, entry[name])


def _labels(trained, kind):
    """The labels (n_classes,) in their type, from the classes of the model and their words."""
    classes = trained.classes
    schema = trained.schema
    words = None if schema is None else schema.labels
    if words is not None:
        # pandas reads such a column of a table as Booleans
        if schema.target is not None and [word.lower() for word in words] == ["false", "true"]:
            return np.array([False, True])
        classes = np.array(words)[classes.astype(np.int64)]
        return classes if kind is None else np.array(list(map(int, classes.tolist())), kind)
    return classes if kind is None else classes.astype(kind)
