"""Dask's distributed: an optional package that is slow to import, so it is imported here
alone and when it is first needed.
"""

from types import ModuleType

from rfx.errors import ClusterError


def distributed() -> ModuleType:
    """The package; ClusterError where it is not installed."""
    try:
        import distributed
    except ModuleNotFoundError:
        raise ClusterError(
            "this needs Dask's distributed, which is not installed; pip install"
            " 'rfx-kernels[distributed]'"
        ) from None
    return distributed


def configured(settings: dict[str, object]):
    """The context in which Dask has these settings."""
    import dask

    return dask.config.set(settings)
