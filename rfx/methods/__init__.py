"""The methods: what a column of a table is called. A file here that holds one declares it; each is imported when it is asked for."""

from rfx.errors import DataError, RfxError, UsageError, or_near
from rfx.plugins import Registry


def _declares(value) -> dict[str, type]:
    """The method that a class at the top of a module is."""
    from rfx.methods.base import Method

    return {value.name: value} if isinstance(value, type) and issubclass(value, Method) and value.__dict__.get("name") else {}


METHODS = Registry("method", "rfx.methods", _declares, "rfx.methods")


def names() -> list[str]:
    """The names of all methods."""
    return list(METHODS)


def get(name: str) -> type:
    """The class of the method of that name.

    Raises UsageError naming the known methods.
    """
    try:
        return METHODS[name]
    except KeyError:
        raise UsageError(f"method {name!r} is unknown{or_near(name, METHODS, 'choose one of')}") from None


def no_option(name: str, flag: str) -> UsageError:
    """What is raised for an option that the method of that name does not have."""
    return UsageError(f"method {name} has no option {flag}{or_near(flag, [option.flag for option in options_of(name)], 'it has')}")


def options_of(name: str | None) -> list:
    """The options of one method; with None those of all, an option that several have once, allowing what each of them does."""
    if name is not None:
        return list(get(name).declared().values())
    from rfx.options import union

    having: dict[str, list] = {}
    for method in names():
        for option in get(method).declared().values():
            having.setdefault(option.name, []).append((method, option))
    return [union(declared) for declared in having.values()]


def create(name: str, **options):
    """A method by name; options set to None keep their defaults.

    Raises UsageError for an option that has no place there, or that another option would leave without effect.
    """
    method = get(name)(**options)
    method.check_given({option: value for option, value in options.items() if value is not None})
    return method


def _check_plugins(path, header) -> None:
    """Refuse, with a DataError, a model that needs a method or a kernel of a package that is not installed."""
    from rfx.kernels import KERNELS

    plugins = header.get("plugins")
    for plugin in plugins if isinstance(plugins, list) else ():
        known = next((known for known in (METHODS, KERNELS) if isinstance(plugin, dict) and known.kind == plugin.get("kind")), None)
        if known is not None and plugin.get("name") not in known:
            raise DataError(
                f"model {path} needs the {known.kind} {plugin.get('name')!s:.80} of package {plugin.get('package')!s:.80}, which is not "
                "installed; install it"
            )


def load(path):
    """The trained method of a model file.

    Raises DataError when the file is no model of rfx, or a damaged one.
    """
    from rfx import model

    with model.opened(path) as file:
        _check_plugins(path, file.header)
        try:
            return get(file.header["method"]).from_file(file)
        except RfxError as error:
            raise DataError(f"model {path} can't be used: {error}; train it again") from error
        except (KeyError, TypeError, IndexError, AttributeError, ValueError, OverflowError, RecursionError) as error:
            raise DataError(f"model {path} is incomplete ({type(error).__name__}: {error!s:.200}); train it again") from error
