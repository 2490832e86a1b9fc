"""Methods and feature maps as scikit-learn's estimators and transformers.

A classifier and a regressor for each method, such as `SparseRFClassifier` and `KernelRegressor`,
and a transformer for each map, such as `FourierFeatures` and `RandomBinning`. Classes for what
plug-ins add are made from their declarations when they are asked for; `names()` lists them, too.
"""

import os
from typing import TYPE_CHECKING, Any

from rfx.estimators import files as _files
from rfx.estimators import plugins as _plugins
from rfx.estimators.auto import AutoClassifier, AutoRegressor
from rfx.estimators.base import Classifier, Regressor
from rfx.estimators.kernel_machines import (
    BlockClassifier,
    BlockRegressor,
    KernelClassifier,
    KernelRegressor,
    NystromClassifier,
    NystromRegressor,
    RFMClassifier,
    RFMRegressor,
)
from rfx.estimators.plugins import estimator_class
from rfx.estimators.random_features import (
    BoostingClassifier,
    BoostingRegressor,
    LKRFClassifier,
    LKRFRegressor,
    RBClassifier,
    RBRegressor,
    RFClassifier,
    RFRegressor,
    SparseRBClassifier,
    SparseRBRegressor,
    SparseRFClassifier,
    SparseRFRegressor,
)
from rfx.estimators.streams import (
    DoublySGDClassifier,
    DoublySGDRegressor,
    KSDCAClassifier,
    KSDCARegressor,
    MLPClassifier,
    MLPRegressor,
    NormaClassifier,
    NormaRegressor,
    NPegasosClassifier,
    NPegasosRegressor,
    NSDCAClassifier,
    NSDCARegressor,
    RPegasosClassifier,
    RPegasosRegressor,
    RSDCAClassifier,
    RSDCARegressor,
)
from rfx.estimators.transformers import (
    ArcCosineFeatures,
    CoordinateFeatures,
    DotProductFeatures,
    FourierFeatures,
    KmerFeatures,
    LearnedMetric,
    MaternFeatures,
    NystromFeatures,
    PerceptronFeatures,
    RandomBinning,
    SparseRandomFeatures,
    StumpFeatures,
)

__all__ = [
    "ArcCosineFeatures",
    "AutoClassifier",
    "AutoRegressor",
    "BlockClassifier",
    "BlockRegressor",
    "BoostingClassifier",
    "BoostingRegressor",
    "CoordinateFeatures",
    "DotProductFeatures",
    "DoublySGDClassifier",
    "DoublySGDRegressor",
    "FourierFeatures",
    "KSDCAClassifier",
    "KSDCARegressor",
    "KernelClassifier",
    "KernelRegressor",
    "KmerFeatures",
    "LKRFClassifier",
    "LKRFRegressor",
    "LearnedMetric",
    "MLPClassifier",
    "MLPRegressor",
    "MaternFeatures",
    "NPegasosClassifier",
    "NPegasosRegressor",
    "NSDCAClassifier",
    "NSDCARegressor",
    "NormaClassifier",
    "NormaRegressor",
    "NystromClassifier",
    "NystromFeatures",
    "NystromRegressor",
    "PerceptronFeatures",
    "RBClassifier",
    "RBRegressor",
    "RFClassifier",
    "RFMClassifier",
    "RFMRegressor",
    "RFRegressor",
    "RPegasosClassifier",
    "RPegasosRegressor",
    "RSDCAClassifier",
    "RSDCARegressor",
    "RandomBinning",
    "SparseRBClassifier",
    "SparseRBRegressor",
    "SparseRFClassifier",
    "SparseRFRegressor",
    "SparseRandomFeatures",
    "StumpFeatures",
    "estimator_class",
    "load",
    "names",
]


def load(path: str | os.PathLike[str]) -> Classifier | Regressor:
    """The estimator of a model file, made by `save` or by `rfx train --model`.

    Loading one runs no code. A model that `rfx train` made from a table takes pandas' data frames
    in the form of that table, and predicts what `rfx predict` does from its file; it takes encoded
    inputs, too.

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
    return _files.restore(_plugins.estimator_class, path)


def names() -> list[str]:
    """The names of all estimators and transformers, those of plug-ins among them."""
    own = [name for name in __all__ if name[0].isupper()]
    return sorted([*own, *_plugins.names()])


# a type checker would take any name for a class
if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        found = None if name.startswith("_") else _plugins.find(name)
        if found is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return found


def __dir__() -> list[str]:
    return sorted({*__all__, *names()})
