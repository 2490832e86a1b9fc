"""Model files as estimators: what a file holds besides the method, so that an estimator comes back as it was."""

import json

import numpy as np

from rfx import methods, model
from rfx.errors import DataError

# Entry of the header; the command line needs nothing of it.
ENTRY = "estimator"


def save(estimator, path) -> int:
    """Write the model file of a trained estimator; returns its size in bytes."""
    known = {"params": [[name, value] for name, value in estimator._given().items() if _plain(value)]}
    if hasattr(estimator, "classes_"):
        known["classes"] = estimator.classes_.tolist()
        known["kind"] = estimator.classes_.dtype.str if estimator.classes_.dtype.kind in "iufb" else "words"
    if hasattr(estimator, "feature_names_in_"):
        known["feature_names"] = estimator.feature_names_in_.tolist()
    return estimator.method_.save(path, **{ENTRY: known})


def _plain(value) -> bool:
    try:
        json.dumps(value)
    except (TypeError, ValueError):
        return False
    return True


def restore(estimator_of, path):
    """The estimator of a model file, made by an estimator or by `rfx train`; estimator_of(method): its class.

    Raises DataError where the file is no model of rfx, or a damaged one.
    """
    method = methods.load(path)
    with model.opened(path) as file:
        known = file.header.get(ENTRY)
    estimator = estimator_of(method)
    estimator = estimator(**_parameters(estimator, method))
    estimator._keep(method)
    estimator.n_features_in_ = method.info["n_inputs"]
    if method.classes is not None:
        estimator.classes_ = method.classes
    if known is not None:
        _recall(estimator, method, known, path)
    return estimator


def _parameters(kind, method) -> dict:
    """The parameters that the estimator has, of the method's options."""
    return {name: value for name, value in method.params.items() if name in kind.__init__.__signature__.parameters}


def _recall(estimator, method, known, path):
    """Labels and names of inputs from the header's entry, refused where they are not what save writes."""
    if not isinstance(known, dict):
        raise DataError(f"model {path} can't be used: what it says of its estimator is {known!s:.40}; train it again")
    names, classes = known.get("feature_names"), known.get("classes")
    if names is not None:
        if not (_words(names) and len(names) == estimator.n_features_in_):
            raise DataError(f"model {path} can't be used: its names of inputs are not one for each of {estimator.n_features_in_}")
        estimator.feature_names_in_ = np.array(names, dtype=object)
    if classes is not None and method.classes is not None:
        estimator.classes_ = _labels(classes, known.get("kind"), len(method.classes), path)


def _labels(classes, kind, count, path):
    if isinstance(classes, list) and len(classes) == count and isinstance(kind, str):
        if kind == "words" and _words(classes) and len(set(classes)) == count:
            return np.array(classes)
        if kind[1:2] in tuple("iufb") and all(isinstance(label, (int, float)) for label in classes):
            try:
                return np.array(classes, dtype=np.dtype(kind))
            except (TypeError, ValueError, OverflowError):
                pass
    raise DataError(f"model {path} can't be used: its labels are not {count} words or numbers; train it again")


def _words(values) -> bool:
    return isinstance(values, list) and all(isinstance(value, str) for value in values)
