"""Registries of named objects: declared in the files of an rfx folder, or by other packages through
entry points.

A package adds methods by entry points of the group `rfx.methods`, and kernels with their feature
maps by `rfx.feature_maps`: the entry's name is the name of the method or kernel, its value is the
class. See docs/plugins.md.
"""

import functools
import importlib
import importlib.util
import pkgutil
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from rfx import lazy
from rfx.errors import DataError, warn_once

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


@functools.cache
def entries(group: str) -> dict[str, "EntryPoint"]:
    """The entry points of a group by name; for duplicate names, the one of the alphabetically first
    package.
    """
    found = sorted(lazy.metadata.entry_points(group=group), key=package_of, reverse=True)
    return {entry.name: entry for entry in found}


def package_of(entry: "EntryPoint") -> str:
    """Name and version of the package of an entry point."""
    return f"{entry.dist.name} {entry.dist.version}" if entry.dist else "?"


class Registry(Mapping):
    """name -> object. A file of rfx is imported when its name, or a name without a file, is
    requested; a plug-in when its own name is.

    kind: the noun for messages. package: the folder's, such as rfx.methods. declares: a function
    that returns {name: object} for a value at the top of a module or of an entry point. group: of
    entry points, if any. aliases: other names of rfx's own objects, as {alias: name}. files: of
    objects that are not in the file of their name, as {name: file}.
    """

    def __init__(
        self,
        kind: str,
        package: str,
        declares: Callable[[object], dict],
        group: str | None = None,
        aliases: Mapping[str, str] = MappingProxyType({}),
        files: Mapping[str, str] = MappingProxyType({}),
    ):
        self.kind, self.package, self.declares, self.group = kind, package, declares, group
        self.aliases, self.files = aliases, files
        self._all: dict | None = None
        self._loaded: dict = {}  # from files of their name, before all files are imported

    def resolved(self, name: str) -> str:
        """The name of an alias; other names unchanged."""
        return self.aliases.get(name, name)

    def _entries(self) -> dict[str, "EntryPoint"]:
        return entries(self.group) if self.group else {}

    def own(self) -> dict:
        """The objects declared by rfx, in the order of the names."""
        if self._all is None:
            declared: dict[str, Any] = {}
            for module in pkgutil.iter_modules(importlib.import_module(self.package).__path__):
                declared |= self._declared_by(module.name)
            self._all = dict(sorted(declared.items()))
        return self._all

    def _declared_by(self, module: str) -> dict:
        values = list(vars(importlib.import_module(f"{self.package}.{module}")).values())
        return {name: made for value in values for name, made in self.declares(value).items()}

    def _own(self, name: str):
        """rfx's own object of that name, from the file of that name or any other; else None."""
        file = self.files.get(name, name.replace("-", "_"))
        if self._all is None and name not in self._loaded and file.isidentifier():
            if importlib.util.find_spec(f"{self.package}.{file}") is not None:
                self._loaded |= self._declared_by(file)
        return self._loaded.get(name) or self.own().get(name)

    def __getitem__(self, name: str):
        """Raises KeyError for an unknown name, DataError for a plug-in that can't be used."""
        name = self.resolved(name)
        own = self._own(name)
        return self._load(self._entries()[name]) if own is None else own

    def _load(self, entry: "EntryPoint"):
        about = f"{self.kind} {entry.name} of package {package_of(entry)}"
        try:
            value = entry.load()
        except (Exception, SystemExit) as error:
            raise DataError(
                f"{about} can't be imported: {type(error).__name__}: {error}; fix or remove that"
                " package"
            ) from error
        declared = self.declares(value)
        if entry.name not in declared:
            names = " or ".join(map(repr, declared))
            what = f"is called {names}" if declared else f"is not a {self.kind}"
            raise DataError(
                f"{about} can't be used: {entry.value} {what}; give the entry point the same name,"
                " or fix or remove that package"
            )
        return declared[entry.name]

    def __contains__(self, name) -> bool:
        name = self.resolved(name)
        return self._own(name) is not None or name in self._entries()

    def __iter__(self) -> Iterator[str]:
        """rfx's own objects and those of usable plug-ins; others are ignored with a warning."""
        yield from self.own()
        for name, entry in sorted(self._entries().items()):
            if name in self.own() or name in self.aliases:
                warn_once(
                    f"{self.kind} {name} of package {package_of(entry)} is ignored: rfx has its own"
                    f" {self.kind} of that name"
                )
                continue
            try:
                self._load(entry)
            except DataError as error:
                warn_once(f"{error}; it is ignored")
                continue
            yield name

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def package_of(self, name: str) -> str | None:
        """Name and version of the package of a plug-in; None for rfx's own objects."""
        name = self.resolved(name)
        return None if self._own(name) is not None else package_of(self._entries()[name])
