"""Slow or optional libraries, imported on first use.

`lazy.optimize` is scipy.optimize, and so on for the table below: an attribute of this module,
imported on access (PEP 562). `sys.modules` is the only cache: repeated access costs a microsecond,
and concurrent access waits for one import, as with any import statement.

A missing library raises ModuleNotFoundError; callers of an optional one report how to install it.
"""

import importlib
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import asyncio as asyncio
    import ctypes as ctypes
    import logging as logging
    import platform as platform
    import shutil as shutil
    import subprocess as subprocess
    import tempfile as tempfile
    from importlib import metadata as metadata

    import dask as dask
    import distributed as distributed
    import filelock as filelock
    import jinja2 as jinja2
    import matplotlib as matplotlib
    import numpy as numpy
    import onnx as onnx
    import pandas as pandas
    import pooch as pooch
    import psutil as psutil
    import pyarrow as pyarrow
    import requests as requests
    import threadpoolctl as threadpoolctl
    import tqdm as tqdm
    from liblinear import liblinear as liblinear
    from matplotlib import figure as figure
    from matplotlib import font_manager as font_manager
    from matplotlib import layout_engine as layout_engine
    from matplotlib import ticker as ticker
    from scipy import optimize as optimize
    from scipy.linalg import blas as blas
    from scipy.stats import qmc as qmc
    from sklearn import cluster as cluster
    from sklearn import ensemble as ensemble
    from sklearn import isotonic as isotonic
    from sklearn import linear_model as linear_model
    from sklearn import metrics as metrics
    from sklearn import neural_network as neural_network
    from sklearn import pipeline as pipeline
    from sklearn import preprocessing as preprocessing

# name here: the module, after those that must be imported too to become attributes of it
LIBRARIES = {
    # from the standard library, not needed by `rfx --help`
    "asyncio": ["asyncio"],
    "ctypes": ["ctypes"],
    "logging": ["logging"],
    "metadata": ["importlib.metadata"],
    "platform": ["platform"],
    "shutil": ["shutil"],
    "subprocess": ["subprocess"],
    "tempfile": ["tempfile"],
    "blas": ["scipy.linalg.blas"],
    "cluster": ["sklearn.cluster"],
    "dask": ["dask"],
    "distributed": ["distributed"],
    "ensemble": ["sklearn.ensemble"],
    "figure": ["matplotlib.figure"],
    "filelock": ["filelock"],
    "font_manager": ["matplotlib.font_manager"],
    "fsspec": ["fsspec.core"],
    "isotonic": ["sklearn.isotonic"],
    "jinja2": ["jinja2"],
    "layout_engine": ["matplotlib.layout_engine"],
    "liblinear": ["liblinear.liblinear"],
    "libsvm": ["libsvm.svm"],
    "linear_model": ["sklearn.linear_model"],
    "matplotlib": ["matplotlib"],
    "metrics": ["sklearn.metrics"],
    "neural_network": ["sklearn.neural_network"],
    "pipeline": ["sklearn.pipeline"],
    "preprocessing": ["sklearn.preprocessing"],
    "numpy": ["numpy"],
    "onnx": ["onnx.checker", "onnx.helper", "onnx.numpy_helper", "onnx"],
    "optimize": ["scipy.optimize"],
    "pandas": ["pandas"],
    "pooch": ["pooch"],
    "psutil": ["psutil"],
    "pyarrow": ["pyarrow.compute", "pyarrow.parquet", "pyarrow"],
    "requests": ["requests"],
    "qmc": ["scipy.stats.qmc"],
    "scipy_io": ["scipy.io"],
    "sklearn_datasets": ["sklearn.datasets"],
    "sklearn_exceptions": ["sklearn.exceptions"],
    "threadpoolctl": ["threadpoolctl"],
    "ticker": ["matplotlib.ticker"],
    "tqdm": ["tqdm"],
}


def __getattr__(name: str) -> ModuleType:
    if name not in LIBRARIES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return [importlib.import_module(module) for module in LIBRARIES[name]][-1]
