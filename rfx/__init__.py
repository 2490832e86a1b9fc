"""rfx: random-feature kernel machines, from a LIBSVM file to a table."""

from rfx import env as _env
from rfx._version import __distribution__, __version__

_env.prepare_blas()
_env.prepare_numba_cache()

__all__ = ["__distribution__", "__version__", "load"]


def load(path):
    """The estimator of a model file; see `rfx.estimators.load`, which this is."""
    from rfx import estimators  # which imports rfx

    return estimators.load(path)
