"""Data: the registry of data sets, fetching, LIBSVM text, splits, scaling, synthetic problems.

`load`, `TrainingTable` and `guess_task` are the interface for the rest of rfx; they are imported on
first use, to keep `rfx --help` fast.
"""

import importlib

__all__ = ["TrainingTable", "guess_task", "load"]
_MODULES = {"TrainingTable": "training_table", "guess_task": "tabular.labelwords"}


def __getattr__(name):
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"rfx.data.{_MODULES.get(name, 'loading')}"), name)
