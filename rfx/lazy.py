"""Slow or optional libraries, imported on first use.

`lazy.optimize` is scipy.optimize, and so on for the table below: an attribute of this module,
imported on access (PEP 562). `sys.modules` is the only cache: repeated access costs a microsecond,
and concurrent access waits for one import, as with any import statement.

A missing library raises ModuleNotFoundError; callers of an optional one report how to install it.
"""

import importlib
from typing import Any

# name here: the module, after those that must be imported too to become attributes of it
LIBRARIES = {
    # from the standard library, not needed by `rfx --help`
    "asyncio": "asyncio",
    "ctypes": "ctypes",
    "logging": "logging",
    "metadata": "importlib.metadata",
    "platform": "platform",
    "shutil": "shutil",
    "subprocess": "subprocess",
    "array_api_compat": "array_api_compat",
    "array_api_cupy": "array_api_compat.cupy",
    "array_api_torch": "array_api_compat.torch",
    "blas": "scipy.linalg.blas",
    "cluster": "sklearn.cluster",
    "cupy": "cupy",
    "dask": "dask",
    "distributed": "distributed",
    "ensemble": "sklearn.ensemble",
    "figure": "matplotlib.figure",
    "filelock": "filelock",
    "font_manager": "matplotlib.font_manager",
    "fsspec": "fsspec.core",
    "isotonic": "sklearn.isotonic",
    "jinja2": "jinja2",
    "layout_engine": "matplotlib.layout_engine",
    "liblinear": "liblinear.liblinear",
    "libsvm": "libsvm.svm",
    "linear_model": "sklearn.linear_model",
    "matplotlib": "matplotlib",
    "metrics": "sklearn.metrics",
    "neural_network": "sklearn.neural_network",
    "pipeline": "sklearn.pipeline",
    "preprocessing": "sklearn.preprocessing",
    "numpy": "numpy",
    "onnx": "onnx.checker onnx.helper onnx.numpy_helper onnx",
    "optimize": "scipy.optimize",
    "pandas": "pandas",
    "pooch": "pooch",
    "psutil": "psutil",
    "pyarrow": "pyarrow.compute pyarrow.parquet pyarrow",
    "requests": "requests",
    "qmc": "scipy.stats.qmc",
    "scipy_io": "scipy.io",
    "sklearn_datasets": "sklearn.datasets",
    "sklearn_exceptions": "sklearn.exceptions",
    "stats": "scipy.stats",
    "threadpoolctl": "threadpoolctl",
    "ticker": "matplotlib.ticker",
    "torch": "torch",
    "tqdm": "tqdm",
}


def __getattr__(name: str) -> Any:
    if name not in LIBRARIES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return [importlib.import_module(module) for module in LIBRARIES[name].split()][-1]
