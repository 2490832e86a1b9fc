"""The options of one training, converted, with defaults, immutable."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rfx.fitting.method import Method


@dataclass(frozen=True)
class Settings(Mapping[str, Any]):
    """Every option of a method by name, as an item (``settings["lam"]``) or an attribute.

    Words such as ``validation`` remain words until `rfx.fitting.selection.choose` returns new
    settings with numbers.

    Parameters
    ----------
    method : str
        Name of the method that the options belong to.
    options : dict
        Option name to value, in the declared type.
    """

    method: str
    options: dict[str, Any]

    @classmethod
    def resolve(cls, method: type[Method], given: Mapping[str, Any]) -> Settings:
        """Convert the given options and add the defaults of the others.

        Parameters
        ----------
        method : type of Method
            Declares the options.
        given : mapping
            Option name to value, a text or a number; None means the default.

        Raises
        ------
        UsageError
            For an unknown option or an invalid value.
        """
        converted = method.converted(given)
        return cls(method.name, method.defaults(converted) | converted)

    def updated(self, **changes: Any) -> Settings:
        """The same settings with other values for some options."""
        return Settings(self.method, self.options | changes)

    def of(self, names: Iterator[str] | list[str] | tuple[str, ...]) -> dict[str, Any]:
        """The values of these options by name."""
        return {name: self.options[name] for name in names}

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name == "options":
            raise AttributeError(name)
        try:
            return self.options[name]
        except KeyError:
            raise AttributeError(f"method {self.method} has no option {name}") from None

    def __getitem__(self, name: str) -> Any:
        return self.options[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.options)

    def __len__(self) -> int:
        return len(self.options)
