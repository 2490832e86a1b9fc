"""Estimator classes for the methods and feature maps of other packages, created from their
declarations.
"""

import functools
import inspect
import math
import re
import textwrap
from dataclasses import dataclass
from typing import Any

from rfx import methods
from rfx.estimators import kernel_machines, random_features, seeds, streams
from rfx.estimators.base import Classifier, MethodEstimator, Parametrised, Regressor, in_words
from rfx.estimators.categories import FROM_DTYPE, Columns
from rfx.estimators.incremental import IncrementalClassifier, IncrementalRegressor
from rfx.estimators.transformers import MapFeatures, map_options
from rfx.estimators.weighted import ManyTargets, WeightedClassifier, WeightedRegressor
from rfx.features import MAPS
from rfx.fitting.options import COMMON
from rfx.options import LabelWeights, Option, Path, Widths

_TYPES = {int: int, float: float, bool: bool, str: str, Path: str, Widths: str}
_CAPITALS = frozenset(("rf", "rfm", "rb", "lkrf", "sgd", "sdca", "mlp"))
# options without a parameter: the class fixes the task, a path yields several models, and arrays
# need neither of the others
NOT_OURS = frozenset(("task", "lam_path", "head", "buffer"))
# options of one task only
OF_NUMBERS, OF_CLASSES = frozenset(("target_scaling",)), frozenset(("class_weight",))


# parameters that are not options of any method
OURS = frozenset(("categorical_features", seeds.NAME))


def names() -> list[str]:
    """The names of the classes added by other packages."""
    return list(_added())


def find(name: str) -> type | None:
    """The class of that name, from another package."""
    made = _added().get(name)
    return made() if made else None


def estimator_class(method: str, task: str) -> type[Classifier] | type[Regressor]:
    """Return the classifier or regressor of a method, including those of plug-ins.

    A class of `rfx.estimators` has the options declared by rfx. If a plug-in adds a kernel with its
    own options, this function returns a subclass that has them too.

    Parameters
    ----------
    method : str
        Name of the method, such as "sparse-rf".
    task : {"classification", "regression"}
        The task of the class.

    Returns
    -------
    type
        The class of `rfx.estimators`, or one created from the method's declaration.

    Raises
    ------
    rfx.errors.UsageError
        If there is no method of that name.

    Examples
    --------
    >>> from rfx.estimators import estimator_class
    >>> estimator_class("sparse-rf", "regression").__name__
    'SparseRFRegressor'
    """
    declared = methods.get(method)
    method = declared.name
    own = _own().get((method, task))
    needed = set(declared.declared()) - left_out(task)
    if own is not None and needed == set(inspect.signature(own).parameters) - OURS:
        return own
    return _made(method, task)


def left_out(task: str) -> frozenset[str]:
    """The options of a method that do not apply to its classifier, or its regressor."""
    return NOT_OURS | (OF_CLASSES if task == "regression" else OF_NUMBERS)


@functools.cache
def _own() -> dict[tuple[str, str], Any]:
    """rfx's own classes, by method and task."""
    found = {}
    for module in (random_features, kernel_machines, streams):
        for kind in vars(module).values():
            if isinstance(kind, type) and issubclass(kind, MethodEstimator) and kind.method_name:
                task = "classification" if issubclass(kind, Classifier) else "regression"
                found[kind.method_name, task] = kind
    return found


@functools.cache
def _added() -> dict[str, functools.partial]:
    """A constructor for each class added by other packages, by name."""
    found = {}
    for name in methods.METHODS:
        if methods.METHODS.package_of(name) is not None:
            for task in ("classification", "regression"):
                found[_class_name(name, task)] = functools.partial(_made, name, task)
    for kernel, kind in MAPS.items():
        if MAPS.package_of(kernel) is not None:
            found[_map_name(kind)] = functools.partial(_made_of_map, kind)
    return found


def _class_name(method: str, task: str) -> str:
    """For example, MySGDClassifier for my-sgd."""
    words = re.split(r"[-_]", method)
    stem = "".join(w.upper() if w in _CAPITALS or len(w) == 1 else w.capitalize() for w in words)
    return stem + ("Regressor" if task == "regression" else "Classifier")


def _map_name(kind: type) -> str:
    return f"{kind.__name__.removesuffix('Map')}Features"


@functools.cache
def _made(method: str, task: str):
    declared = methods.get(method)
    always, common = declared.defaults(), {option.name for option in COMMON}
    kept = [o for name, o in declared.declared().items() if name not in left_out(task)]
    # a method's own options first; those of some kernels only are None by default
    parameters = [_Parameter.of(option, option.name not in always) for option in kept]
    parameters.sort(key=lambda parameter: parameter.name in common)
    parameters.append(_CATEGORICAL)
    own = _own().get((method, task))
    name = own.__name__ if own else _class_name(method, task)
    about = f"{declared.summary[:1].upper()}{declared.summary[1:]} ({task})."
    reduced = {"__reduce__": lambda self: (_empty, (method, task), self.__getstate__())}
    base = own or _base(declared, task)
    return _new(name, base, parameters, about, declared, method_name=method, **reduced)


def _empty(method: str, task: str):
    """The class for unpickling; a created class can't be looked up by its name."""
    kind = estimator_class(method, task)
    return kind.__new__(kind)


def _base(declared, task: str) -> type:
    classifies = task != "regression"
    if declared.incremental:
        return IncrementalClassifier if classifies else IncrementalRegressor
    if declared.several_targets and not classifies:
        return ManyTargets
    if declared.weighted:
        return WeightedClassifier if classifies else WeightedRegressor
    return Classifier if classifies else Regressor


@functools.cache
def _made_of_map(kind):
    parameters = [_Parameter.of(option) for option in map_options(kind)]
    about = "Random features whose inner product estimates the kernel."
    return _new(_map_name(kind), MapFeatures, parameters, about, kind, map_class=kind)


def _new(name: str, base: type, parameters, about: str, declared, **attributes):
    entries = "\n".join(parameter.entry() for parameter in parameters)
    more = inspect.cleandoc(declared.__doc__ or "")
    doc = f"{about}\n\n{more}\n\nParameters\n----------\n{entries}\n"
    attributes |= {"__init__": _constructor(parameters), "__doc__": in_words(doc)}
    attributes |= {"__module__": "rfx.estimators", "__qualname__": name}
    return type(base)(name, (base,), attributes)


@dataclass(frozen=True)
class _Parameter:
    """One parameter: its default, type annotation and docstring."""

    name: str
    default: object
    annotation: Any
    help: str

    @classmethod
    def of(cls, option: Option, optional: bool = False) -> "_Parameter":
        """The parameter of an option; optional: it depends on the kernel, and is None by
        default.
        """
        default = None if optional else option.default
        annotation: Any = dict | str if option.kind is LabelWeights else _TYPES[option.kind]
        if option.kind is not str and option.meanings():
            annotation = annotation | str
        if default is None:
            annotation = annotation | None
        # limits that only exclude absurd numbers are not documented
        limits = option.but(high=math.inf) if option.high >= 1e6 else option
        text = f"{option.description()} Values: {limits.expects()}."
        return cls(option.name, default, annotation, text)

    def shown(self) -> inspect.Parameter:
        """The parameter for `inspect.signature`."""
        kind = inspect.Parameter.KEYWORD_ONLY
        return inspect.Parameter(self.name, kind, default=self.default, annotation=self.annotation)

    def entry(self) -> str:
        """Name, type, default and text in numpydoc format."""
        kind = inspect.formatannotation(self.annotation)
        kind = kind.removesuffix(" | None").replace(" | ", " or ")
        text = textwrap.indent(textwrap.fill(self.help, 96), "    ")
        return f"{self.name} : {kind}, default={self.default!r}\n{text}"


_CATEGORICAL = _Parameter(
    "categorical_features",
    FROM_DTYPE,
    Columns,
    "Categorical columns: their names, positions or a mask; from_dtype: the string and category"
    " columns of a data frame; None: none.",
)


def _constructor(parameters):
    """An __init__ with these keywords, visible to `inspect.signature`."""
    own = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    named = [p.shown() for p in parameters]
    signature = inspect.Signature([own, *named])

    def __init__(self: Parametrised, **given):
        bound = signature.bind(self, **given)
        bound.apply_defaults()
        self._store(bound.arguments)

    made: Any = __init__
    made.__signature__ = signature
    return made
