"""The classes of rfx.estimators, made from what methods and maps declare: their names, signatures and docstrings."""

import functools
import inspect
import re
import sys

from rfx import methods
from rfx.estimators import transformers
from rfx.estimators.base import Classifier, Regressor
from rfx.estimators.incremental import IncrementalClassifier, IncrementalRegressor
from rfx.estimators.signature import Parameter, constructor, document, section
from rfx.estimators.weighted import ManyTargets, WeightedClassifier, WeightedRegressor
from rfx.features import MAPS
from rfx.fitting.options import COMMON

PACKAGE = "rfx.estimators"
_CAPITALS = frozenset(("rf", "rb", "lkrf", "sgd", "sdca", "mlp"))
# Options that an estimator does not have: the class says the task, a path is several models, and arrays need neither.
_NOT_OURS = frozenset(("task", "lam_path", "head", "buffer"))
# Those of one task only.
_OF_NUMBERS, _OF_CLASSES = frozenset(("target_scaling",)), frozenset(("class_weight",))
_CLASS_WEIGHT = Parameter(
    "class_weight",
    None,
    dict | str | None,
    "Weights of rows by their label: {label: weight}, of labels that are not named 1; balanced: in inverse proportion to how many rows "
    "have it.",
)
# Transformers that are made from a method: the features of its model.
SELECTORS = {"SparseRandomFeatures": "sparse-rf"}

_ATTRIBUTES = [
    ("n_features_in_ : int", "Number of inputs."),
    ("feature_names_in_ : ndarray of shape (n_features_in_,)", "Names of the inputs, where the rows that were learnt from had some."),
]
_OF_METHODS = [
    ("method_ : rfx.fitting.pipeline.Pipeline", "What was trained."),
    ("info_ : dict", "How it was made: objective, gap, model_size, …, in the words of a results row."),
    ("n_iter_ : int", "Iterations of the solver, in its own unit; 1 where there are none."),
]
_CLASSES = ("classes_ : ndarray of shape (n_classes,)", "The labels.")
_OF_MAPS = [
    ("map_ : object", "The features as rfx has them (rfx.features)."),
    ("scaler_ : rfx.data.transforms.scaling.Scaler", "The scaling of the inputs."),
]


def stem(method_name: str) -> str:
    """How the classes of a method begin: SparseRF of sparse-rf."""
    words = re.split(r"[-_]", method_name)
    return "".join(word.upper() if word in _CAPITALS or len(word) == 1 else word.capitalize() for word in words)


def recipes(plugins: bool = True) -> dict:
    """How to make each class, by its name; with what other packages add, or without."""
    known, maps = (methods.METHODS, MAPS) if plugins else (methods.METHODS.own(), MAPS.own())
    found = {}
    for name in known:
        found[f"{stem(name)}Classifier"] = functools.partial(_of_method, name, "classification")
        found[f"{stem(name)}Regressor"] = functools.partial(_of_method, name, "regression")
    for kind in dict.fromkeys(maps.values()):
        found[_map_name(kind)] = functools.partial(_of_map, kind)
    found["RandomBinning"] = functools.partial(_transformer, "RandomBinning", transformers.BinningTransformer)
    found["NystromFeatures"] = functools.partial(_transformer, "NystromFeatures", transformers.NystromTransformer)
    for name, method in SELECTORS.items():
        found[name] = functools.partial(_selector, name, method)
    return found


def class_name(method_name: str, task: str) -> str:
    """The name of the class that trains a method for that task."""
    return f"{stem(method_name)}{'Regressor' if task == 'regression' else 'Classifier'}"


def _map_name(kind) -> str:
    return f"{kind.__name__.removesuffix('Map')}Features"


def _new(name: str, base: type, parameters, doc: str, **attributes):
    attributes |= {"__init__": constructor(parameters), "__doc__": doc, "__module__": PACKAGE, "__qualname__": name}
    return type(base)(name, (base,), attributes)


def _parameters(declared, left_out) -> list[Parameter]:
    """Those of a method: its own first, then what all have; of options that only some kernels have None is the default."""
    always, common = declared.defaults(), {option.name for option in COMMON}
    kept = [option for name, option in declared.declared().items() if name not in left_out]
    found = [_CLASS_WEIGHT if option.name == "class_weight" else Parameter.of(option, option.name not in always) for option in kept]
    return sorted(found, key=lambda parameter: parameter.name in common)


def _of_method(method_name, task):
    declared = methods.get(method_name)
    classifies = task == "classification"
    parameters = _parameters(declared, _NOT_OURS | (_OF_NUMBERS if classifies else _OF_CLASSES))
    doc = document(
        f"{_first_capital(declared.summary)} ({task}).",
        inspect.cleandoc(declared.__doc__ or ""),
        _source(declared),
        section("Parameters", [p.entry() for p in parameters]),
        section("Attributes", [*([_CLASSES] if classifies else []), *_OF_METHODS, *_ATTRIBUTES]),
    )
    return _new(class_name(method_name, task), _base(declared, classifies), parameters, doc, method_name=method_name)


def _base(declared, classifies: bool) -> type:
    if declared.incremental:
        return IncrementalClassifier if classifies else IncrementalRegressor
    if declared.several_targets and not classifies:
        return ManyTargets
    if declared.weighted:
        return WeightedClassifier if classifies else WeightedRegressor
    return Classifier if classifies else Regressor


def _selector(name, method_name):
    declared = methods.get(method_name)
    parameters = _parameters(declared, _NOT_OURS | _OF_CLASSES)
    doc = document(
        f"The random features that {method_name} gives a weight: a selection by the targets, for any model after it.",
        "Classes or numbers are told apart by the targets, as scikit-learn's `type_of_target` does. The features are unscaled.",
        _source(declared),
        section("Parameters", [p.entry() for p in parameters]),
        section("Attributes", [*_OF_MAPS, *_OF_METHODS, *_ATTRIBUTES]),
    )
    return _new(name, transformers.SelectedFeatures, parameters, doc, method_name=method_name)


def _of_map(kind):
    about = "Random features, divided by the root of their number: their inner product estimates the kernel."
    options, texts = transformers.map_options(kind), (about, inspect.cleandoc(kind.__doc__ or ""), _source(kind))
    return _transformer(_map_name(kind), transformers.MapFeatures, options, texts, map_class=kind)


def _transformer(name, base, options=None, texts=None, **attributes):
    """A transformer with these options and texts; the base's own where none are given."""
    options, texts = options or base.options, texts or (inspect.cleandoc(base.__doc__), base.source)
    parameters = [Parameter.of(option) for option in options]
    sections = (
        section("Parameters", [p.entry() for p in parameters]),
        section("Attributes", [*_OF_MAPS, *_ATTRIBUTES]),
    )
    return _new(name, base, parameters, document(*texts, *sections), options=options, **attributes)


def _first_capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _source(declared) -> str:
    """The first sentence of the file that declares it, which names the paper."""
    text = inspect.cleandoc(sys.modules[declared.__module__].__doc__ or "").split("\n\n")[0]
    return _first_capital(re.sub(r"^`[\w-]+`: ", "", text.replace("\n", " ")))
