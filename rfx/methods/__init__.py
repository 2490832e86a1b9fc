"""The methods, and their registry, which imports them on demand."""

import difflib

from rfx.errors import DataError, RfxError, UsageError, or_near
from rfx.options import union
from rfx.plugins import Registry


def _declares(value) -> dict[str, type]:
    """The method declared by a class at the top of a module."""
    from rfx.fitting.method import Method  # imports numba; names are looked up without it

    is_method = isinstance(value, type) and issubclass(value, Method)
    if is_method and value.__dict__.get("name"):
        return {value.name: value}
    return {}


# Long names of some methods. Keys, results rows and models use the short names.
LONG_NAMES = {
    "random-features": "rf",
    "sparse-random-features": "sparse-rf",
    "random-binning": "rb",
    "sparse-random-binning": "sparse-rb",
    "learned-kernel": "lkrf",
    "recursive-feature-machine": "rfm",
}
# Methods in the file of another one.
_FAMILIES = {
    "dai": "doubly-sgd k-sdca mlp n-pegasos n-sdca norma r-pegasos r-sdca",
    "kernel": "block nystrom rfm",
    "local": "auto",
    "rb": "sparse-rb",
    "rf": "boosting lkrf sparse-rf",
}
FILES = {name: file for file, names in _FAMILIES.items() for name in names.split()}
METHODS = Registry("method", "rfx.methods", _declares, "rfx.methods", LONG_NAMES, FILES)


def names() -> list[str]:
    """The short names of all methods."""
    return list(METHODS)


def short(name: str) -> str:
    """The short name of a method; other names unchanged."""
    return METHODS.resolved(name)


def long_names(among) -> list[str]:
    """The long names of these short names, if any."""
    return [long for long, name in LONG_NAMES.items() if name in among]


def get(name: str):
    """The class of the method of that name, long or short.

    Raises UsageError with the known methods.
    """
    try:
        return METHODS[name]
    except KeyError:
        raise unknown(name, names(), "is unknown") from None


def unknown(name: str, among: list[str], what: str) -> UsageError:
    """The error for a method that is not among these short names; what: the problem."""
    near = or_near(name, among, "choose one of", long_names(among))
    return UsageError(f"method {name!r:.80} {what}{near}")


def no_option(name: str, flag: str, more: list[str]) -> UsageError:
    """The error for an option that neither the method of that name has nor its command, whose own
    options are `more`.
    """
    flags = [option.flag for option in options_of(name)]
    # an option of another method resembles a command option only by chance
    near = difflib.get_close_matches(flag, more, cutoff=0.8)
    return UsageError(f"method {name} has no option {flag}{or_near(flag, flags, 'it has', near)}")


def options_of(name: str | None) -> list:
    """The options of one method; with None those of all methods, each option once, accepting the
    values of all of them.
    """
    if name is not None:
        return list(get(name).declared().values())
    having: dict[str, list] = {}
    for method in names():
        for option in get(method).declared().values():
            having.setdefault(option.name, []).append((method, option))
    return [union(declared) for declared in having.values()]


def create(name: str, **options):
    """A trainer of the method of that name; options set to None have their defaults.

    Raises UsageError for an unknown option, or one without effect.
    """
    from rfx.fitting.training import Trainer

    method = get(name).of(options)
    method.check(method.converted(options))
    return Trainer(method)


def load(path):
    """The pipeline of a model file.

    Raises DataError if the file is not an rfx model, or is damaged.
    """
    from rfx import model
    from rfx.fitting.pipeline import Pipeline

    header, arrays = model.read(path)
    try:
        method = get(header["method"]).of(header["params"])
        if (form := header.get("method_format", 1)) != method.file_format:
            raise DataError(
                f"it has format {form} of method {method.name}, and this rfx reads format"
                f" {method.file_format}"
            )
        return Pipeline.of_state(method, header, arrays)
    except RfxError as error:
        raise DataError(f"model {path} can't be used: {error}; train it again") from error
    except Exception as error:  # a damaged header may raise anything
        raise DataError(
            f"model {path} is incomplete ({type(error).__name__}: {error!s:.200}); train it again"
        ) from error
