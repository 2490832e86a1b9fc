"""rfx: random-feature kernel machines, from data files to models and tables."""

from rfx import env as _env
from rfx._version import __distribution__, __version__

_env.prepare()

__all__ = ["__distribution__", "__version__", "load"]


def load(path):
    """Load the estimator of a model file; see `rfx.estimators.load`."""
    from rfx import estimators

    return estimators.load(path)
