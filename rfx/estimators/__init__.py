"""Methods and feature maps as scikit-learn estimators and transformers.

There is a classifier and a regressor for each method, such as `SparseRFClassifier` and
`KernelRegressor`, and a transformer for each map, such as `FourierFeatures` and `RandomBinning`.
Classes for plug-ins are created on demand from their declarations; `names()` lists them too.
"""

import os
from typing import TYPE_CHECKING, Any

from rfx.estimators import models as _plugins
from rfx.estimators.base import Classifier, Regressor
from rfx.estimators.files import restore as _restore
from rfx.estimators.models import (
    AutoClassifier,
    AutoRegressor,
    BlockClassifier,
    BlockRegressor,
    BoostingClassifier,
    BoostingRegressor,
    DoublySGDClassifier,
    DoublySGDRegressor,
    KernelClassifier,
    KernelRegressor,
    KSDCAClassifier,
    KSDCARegressor,
    LKRFClassifier,
    LKRFRegressor,
    LocalClassifier,
    LocalRegressor,
    MLPClassifier,
    MLPRegressor,
    NormaClassifier,
    NormaRegressor,
    NPegasosClassifier,
    NPegasosRegressor,
    NSDCAClassifier,
    NSDCARegressor,
    NystromClassifier,
    NystromRegressor,
    RBClassifier,
    RBRegressor,
    RFClassifier,
    RFMClassifier,
    RFMRegressor,
    RFRegressor,
    RPegasosClassifier,
    RPegasosRegressor,
    RSDCAClassifier,
    RSDCARegressor,
    SparseRBClassifier,
    SparseRBRegressor,
    SparseRFClassifier,
    SparseRFRegressor,
    estimator_class,
)
from rfx.estimators.transformers import (
    AdditiveChi2Features,
    ArcCosineFeatures,
    CoordinateFeatures,
    DotProductFeatures,
    FourierFeatures,
    HammingFeatures,
    KmerFeatures,
    LearnedMetric,
    MaternFeatures,
    MixtureFeatures,
    NystromFeatures,
    PerceptronFeatures,
    RandomBinning,
    SkewedChi2Features,
    SparseRandomFeatures,
    StumpFeatures,
)

__all__ = [
    "AdditiveChi2Features",
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
    "HammingFeatures",
    "KSDCAClassifier",
    "KSDCARegressor",
    "KernelClassifier",
    "KernelRegressor",
    "KmerFeatures",
    "LKRFClassifier",
    "LKRFRegressor",
    "LearnedMetric",
    "LocalClassifier",
    "LocalRegressor",
    "MLPClassifier",
    "MLPRegressor",
    "MaternFeatures",
    "MixtureFeatures",
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
    "SkewedChi2Features",
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
    """Load the estimator of a model file, written by `save` or by `rfx train --model`.

    Loading runs no code. A model that `rfx train` trained on a table accepts pandas data frames in
    the form of that table, and predicts the same as `rfx predict`. It also accepts encoded inputs.

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
        If the file is not an rfx model, or is damaged.
    """
    return _restore(estimator_class, path)


def names() -> list[str]:
    """List the names of all estimators and transformers, including those of plug-ins."""
    return sorted([*(name for name in __all__ if name[0].isupper()), *_plugins.added()])


# otherwise a type checker would accept any name as a class
if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name.startswith("_") or name not in _plugins.added():
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return _plugins.added()[name]


def __dir__() -> list[str]:
    return sorted({*__all__, *names()})
