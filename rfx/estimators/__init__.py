"""The methods and feature maps as scikit-learn's estimators and transformers, each with its options as parameters.

A classifier and a regressor for each method, such as `SparseRFClassifier` and `KernelRegressor`, and a transformer for each
map, such as `FourierFeatures` and `RandomBinning`; `dir(rfx.estimators)` lists them. They are made from what methods and maps
declare, those of plug-ins too, when they are asked for.
"""

import functools

from rfx.estimators import files as _files
from rfx.estimators import making as _making

_recipes = functools.cache(_making.recipes)


@functools.cache
def _class(name: str):
    return _recipes()[name]()


def load(path):
    """The estimator of a model file, made by `save` or by `rfx train --model`; loading one runs no code.

    Parameters
    ----------
    path : str or path
        The model file.

    Returns
    -------
    estimator : a classifier or regressor of this package, trained

    Raises
    ------
    rfx.errors.DataError
        Where the file is no model of rfx, or a damaged one.
    """
    return _files.restore(lambda method: _class(_making.class_name(method.name, method.task)), path)


def names() -> list[str]:
    """The names of all estimators and transformers."""
    return sorted(_recipes())


def __getattr__(name: str):
    if name.startswith("_") or name not in _recipes():
        if name == "__all__":
            return [*names(), "load", "names"]
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _class(name)


def __dir__():
    return [*names(), "load", "names"]
