"""Estimator classes for the methods and feature maps of other packages, created from their
declarations; and the class of a method.
"""

import functools
import inspect
import types

from rfx import methods
from rfx.estimators.base import Classifier, MethodEstimator, Regressor
from rfx.estimators.transformers import MapFeatures
from rfx.features import MAPS


def estimator_class(method: str, task: str) -> type[Classifier] | type[Regressor]:
    """Return the classifier or regressor of a method, including those of plug-ins.

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
    name = methods.get(method).name
    if (name, task) not in MethodEstimator.classes:
        added()
    return MethodEstimator.classes[name, task]


@functools.cache
def added() -> dict[str, type]:
    """The classes of other packages by name: KNNClassifier for a method declared by a class KNN or
    KNNMethod, KNNFeatures for a map KNNMap.
    """
    classes = {}
    for name, method in methods.METHODS.items():
        if methods.METHODS.package_of(name) is not None:
            stem = method.__name__.removesuffix("Method")
            about = method.summary[:1].upper() + method.summary[1:]
            for base in (Classifier, Regressor):
                classes[f"{stem}{base.__name__}"] = (base,), {"method": name}, f"{about}.", method
    for kernel, kind in MAPS.items():
        if MAPS.package_of(kernel) is not None:
            text = "Random features whose inner product estimates the kernel."
            name = f"{kind.__name__.removesuffix('Map')}Features"
            classes[name] = (MapFeatures,), {"map": kernel}, text, kind
    return {name: _new(name, *parts) for name, parts in classes.items()}


def _new(name: str, bases: tuple[type, ...], arguments: dict, about: str, kind: type) -> type:
    doc = f"{about}\n\n{inspect.cleandoc(kind.__doc__ or '')}"
    body = {"__doc__": doc, "__module__": "rfx.estimators", "__qualname__": name}
    return types.new_class(name, bases, arguments, lambda space: space.update(body))
