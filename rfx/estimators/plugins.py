"""Estimator classes for the methods and feature maps of other packages, created from their
declarations.
"""

import functools
import inspect
import types
from typing import Any

from rfx import methods
from rfx.estimators.base import Classifier, MethodEstimator, Regressor
from rfx.estimators.incremental import IncrementalClassifier, IncrementalRegressor
from rfx.estimators.transformers import MapFeatures
from rfx.estimators.weighted import ManyTargets, WeightedClassifier, WeightedRegressor
from rfx.features import MAPS
from rfx.fitting.method import Method


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
    own = MethodEstimator.classes.get((declared.name, task))
    if (
        own is not None
        and declared.declared().keys() <= own.without | own.__dataclass_fields__.keys()
    ):
        return own
    return _made(declared.name, task)


@functools.cache
def _added() -> dict[str, functools.partial]:
    """A constructor for each class added by other packages, by name."""
    found = {}
    for name, method in methods.METHODS.items():
        if methods.METHODS.package_of(name) is not None:
            for task in ("classification", "regression"):
                found[_class_name(method, task)] = functools.partial(_made, name, task)
    for kernel, kind in MAPS.items():
        if MAPS.package_of(kernel) is not None:
            found[_map_name(kind)] = functools.partial(_made_of_map, kind)
    return found


def _class_name(declared: type[Method], task: str) -> str:
    """For example, KNNClassifier for a method declared by a class KNN or KNNMethod."""
    suffix = "Regressor" if task == "regression" else "Classifier"
    return declared.__name__.removesuffix("Method") + suffix


def _map_name(kind: type) -> str:
    return f"{kind.__name__.removesuffix('Map')}Features"


@functools.cache
def _made(method: str, task: str):
    """The class of a method, or a subclass with the options that other packages add to it."""
    declared = methods.get(method)
    own = MethodEstimator.classes.get((method, task))
    name = own.__name__ if own else _class_name(declared, task)
    about = f"{declared.summary[:1].upper()}{declared.summary[1:]} ({task})."
    doc = own.__doc__ if own else f"{about}\n\n{inspect.cleandoc(declared.__doc__ or '')}"
    made = _new(name, own or _base(declared, task), doc, {})
    made.method_name = method
    made.__reduce__ = lambda self: (_empty, (method, task), self.__getstate__())
    made._derive(declared)
    return made


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
    about = "Random features whose inner product estimates the kernel."
    doc = f"{about}\n\n{inspect.cleandoc(kind.__doc__ or '')}"
    return _new(_map_name(kind), MapFeatures, doc, {"map": kind})


def _new(name: str, base: type, doc: str, arguments: dict[str, type]) -> Any:
    about = {"__doc__": doc, "__module__": "rfx.estimators", "__qualname__": name}
    return types.new_class(name, (base,), arguments, lambda space: space.update(about))
