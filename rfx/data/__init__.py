"""Data: the registry of data sets, fetching, LIBSVM text, splits, scaling, synthetic problems.

`load`, `Split` and `guess_task` are the interface for the rest of rfx; they are imported on first
use, to keep `rfx --help` fast.
"""

import importlib

__all__ = ["Split", "guess_task", "load"]
_MODULES = {"guess_task": "tabular.labelwords"}


def __getattr__(name):
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"rfx.data.{_MODULES.get(name, 'loading')}"), name)
