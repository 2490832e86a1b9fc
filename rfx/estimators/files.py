"""Save estimators in model files, so that they load unchanged and the command line can use them.

Word labels and input names form the model's schema, as for tables (rfx.data.tabular.schema). The
type of the labels and the class_weight, which only estimators need, are stored in an entry of the
header.
"""

import contextlib
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
    method = methods.load(path)
    with model.opened(path) as file:
        header = file.header
    known = header.get(ENTRY, {})
    task = "regression" if method.task == "regression" else "classification"
    kind = estimator_of(method.name, task)
    estimator = kind(**_parameters(kind, method))
    estimator._keep(method)
    estimator.n_features_in_ = method.info["n_inputs"]
    try:
        if ENTRY not in header and method.schema is not None and method.schema.inputs is not None:
            estimator.table_ = method.schema
        _recall(
            estimator,
            method,
            known if isinstance(known, dict) else _refuse(f"its estimator is {known!s:.40}"),
        )
    except DataError as error:
        raise DataError(f"model {path} can't be used: {error}; train it again") from error
    return estimator


def _parameters(kind, method) -> dict:
    """The estimator's parameters among the method's options, if they differ from the defaults."""
    # with a numeric bandwidth, other options have other defaults
    asked = dict(method.settings) | method.info.get("asked", {})
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


def _recall(estimator, method, known):
    """Labels, input names and class weights; raises DataError for content that save does not
    write.
    """
    learnt = method.schema
    if known.get("columns") is not None:
        _recall_columns(estimator, learnt, known["columns"])
    elif learnt is not None and learnt.inputs is not None and learnt.named:
        estimator.feature_names_in_ = np.array(learnt.titles(), dtype=object)
    if method.classes is not None:
        estimator.classes_ = _labels(
            method.classes, None if learnt is None else learnt.labels, known.get("kind")
        )
        # pandas reads such a column of a table as Booleans
        if estimator.table_ is not None and _TRUTHS == [*map(str.lower, learnt.labels or ())]:
            estimator.classes_ = np.array([False, True])
    if "categorical_features" in known:
        estimator.categorical_features = _categorical(known["categorical_features"])
    if known.get("class_weight") is not None and "class_weight" in estimator.get_params():
        estimator.class_weight = _class_weight(known["class_weight"])


def _recall_columns(estimator, learnt, columns):
    """The columns, including categorical ones, of the rows used for fitting."""
    if learnt is None or learnt.inputs is None or type(columns) not in (int, list):
        _refuse(f"its columns are {columns!s:.40}")
    if isinstance(columns, list):
        own = {column.name: column.position for column in learnt.inputs}
        places = {name: place for place, name in enumerate(columns) if isinstance(name, str)}
        if len(places) < len(columns) or any(places.get(name) != own[name] for name in own):
            _refuse("its column names do not match its inputs")
        estimator.feature_names_in_ = np.array(columns, dtype=object)
    if learnt.size != (len(columns) if isinstance(columns, list) else columns):
        _refuse("its number of columns does not match its rows")
    estimator.n_features_in_ = learnt.size
    estimator.schema_ = replace(learnt, labels=None)


def _categorical(found):
    """Read categorical_features from a file."""
    if found is None or (
        isinstance(found, list) and all(isinstance(one, (str, int)) for one in found)
    ):
        return found
    return _refuse(f"its categorical_features is {found!s:.40}")


def _labels(classes, words, kind):
    if words is not None:
        places = classes.astype(np.int64)
        if not (np.array_equal(places, classes) and np.all((places >= 0) & (places < len(words)))):
            _refuse("its classes are not among its labels")
        if kind is None:
            return np.array(words)[places]
        with contextlib.suppress(TypeError, ValueError, OverflowError):
            found = np.array(list(map(int, words)), np.dtype(kind))[places]
            if list(map(str, found.tolist())) == [words[place] for place in places.tolist()]:
                return found
        _refuse(f"the type of its labels is {kind!s:.40}")
    if kind is None:
        return classes
    if isinstance(kind, str) and kind[1:2] in tuple("iufb"):
        with contextlib.suppress(TypeError, ValueError, OverflowError):
            found = classes.astype(np.dtype(kind))
            if np.array_equal(found, classes):
                return found
    _refuse(f"the type of its labels is {kind!s:.40}")


def _class_weight(pairs):
    """{label: weight} from the pairs in a file, or a string such as balanced."""
    if isinstance(pairs, str):
        with contextlib.suppress(ValueError):
            return pairs if pairs == LabelWeights.BALANCED or LabelWeights.values(pairs) else None
    if isinstance(pairs, list) and all(isinstance(pair, list) and len(pair) == 2 for pair in pairs):
        if all(
            isinstance(label, (str, int, float)) and isinstance(weight, (int, float))
            for label, weight in pairs
        ):
            return dict(pairs)
    return _refuse(f"its class_weight is {pairs!s:.40}")


def _refuse(what: str):
    raise DataError(what)
