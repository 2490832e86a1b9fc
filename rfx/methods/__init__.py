"""The methods: what a column of a table is called. Each is imported when it is first used."""

import importlib

from rfx.errors import DataError, RfxError, UsageError

METHODS = {
    "kernel": ("rfx.methods.kernel", "Kernel"),
    "rf": ("rfx.methods.rf", "RF"),
    "sparse-rf": ("rfx.methods.sparse_rf", "SparseRF"),
    "rb": ("rfx.methods.rb", "RB"),
    "sparse-rb": ("rfx.methods.sparse_rb", "SparseRB"),
    "nystrom": ("rfx.methods.nystrom", "Nystrom"),
    "block": ("rfx.methods.block", "Block"),
}


def get(name: str) -> type:
    """The class of the method of that name.

    Raises UsageError naming the known methods.
    """
    if name not in METHODS:
        raise UsageError(f"method {name!r} is unknown; choose one of {', '.join(METHODS)}")
    module, attribute = METHODS[name]
    return getattr(importlib.import_module(module), attribute)


def create(name: str, **options):
    """A method by name; options set to None keep their defaults.

    Raises UsageError for an option that has no place there, or that another option would leave without effect.
    """
    method = get(name)(**options)
    method.check_given({option: value for option, value in options.items() if value is not None})
    return method


def load(path):
    """The trained method of a model file.

    Raises DataError when the file is no model of rfx, or a damaged one.
    """
    from rfx import model
    from rfx.methods import saved

    header, arrays = model.read(path)
    try:
        saved.check(header, arrays)
        return get(header["method"]).from_state(header, arrays)
    except RfxError as error:
        raise DataError(f"model {path} can't be used: {error}; train it again") from error
    except (KeyError, TypeError, IndexError, AttributeError, ValueError) as error:
        raise DataError(f"model {path} is incomplete ({type(error).__name__}: {error}); train it again") from error
