"""Dask's distributed, an optional package: here alone it is said how to install it."""

from types import ModuleType

from rfx import lazy
from rfx.errors import ClusterError


def distributed() -> ModuleType:
    """The package; ClusterError where it is not installed."""
    try:
        return lazy.distributed
    except ModuleNotFoundError:
        raise ClusterError(
            "this needs Dask's distributed, which is not installed; pip install"
            " 'rfx-kernels[distributed]'"
        ) from None


def configured(settings: dict[str, object]):
    """The context in which Dask has these settings."""
    return lazy.dask.config.set(settings)
