"""Dask's distributed, an optional package: imported only here, with an installation hint."""

from types import ModuleType

from rfx import lazy
from rfx.errors import ClusterError


def distributed() -> ModuleType:
    """The package; ClusterError if it is not installed."""
    try:
        return lazy.distributed
    except ModuleNotFoundError:
        raise ClusterError(
            "this needs Dask's distributed, which is not installed; pip install"
            " 'rfx-kernels[distributed]'"
        ) from None


def configured(settings: dict[str, object]):
    """A context with these Dask settings."""
    return lazy.dask.config.set(settings)
