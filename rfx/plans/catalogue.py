"""The plans, tables and figures of a folder, discovered by their files, so that no list is edited
to add one.

A folder is a package with a folder `plans/` of TOML files, modules `tables*.py` with a dict TABLES
and modules `figures*.py` with a dict FIGURES, each of them optional; the dicts go from name to
builder(rows, setting). A paper's folder also has `claims.py` with a list CLAIMS.
"""

import importlib
import pkgutil
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Any

PLANS, REPORTING = "rfx.plans", "rfx.reporting"


@dataclass(frozen=True)
class Folder:
    """The contents of one paper's folder, by names such as yen2014-table1; about: its authors,
    title and venue; costs: of its plans; claims: `rfx.reporting.claims.Claim`s.
    """

    name: str
    about: str
    plans: dict[str, Traversable]
    tables: dict[str, Callable]
    figures: dict[str, Callable]
    costs: Traversable
    claims: Sequence[Any] = ()

    @property
    def citation(self) -> str:
        """Authors and year as cited in text: for "B. Dai, B. Xie and L. Song: Title, NIPS 2014."
        Dai et al. 2014.
        """
        authors, _, rest = self.about.partition(":")
        surnames = [author.split()[-1] for author in re.split(r", | and ", authors)]
        cited = " and ".join(surnames) if len(surnames) < 3 else f"{surnames[0]} et al."
        year = re.findall(r"\d{4}", rest)[-1:]
        return " ".join([cited, *year])


def plans(package: str = PLANS) -> dict[str, Traversable]:
    """The plans of a package: name to TOML file."""
    folder = resources.files(package) / "plans"
    if not folder.is_dir():
        return {}
    files = {item.name: item for item in folder.iterdir() if item.name.endswith(".toml")}
    return {name.removesuffix(".toml"): files[name] for name in sorted(files)}


def tables(package: str = REPORTING) -> dict[str, Callable]:
    """The tables of a package: name to builder, which returns a `rfx.reporting.cells.Table`."""
    return dict(item for one in _lists(package, "tables", "TABLES") for item in one.items())


def figures(package: str = REPORTING) -> dict[str, Callable]:
    """The figures of a package: name to builder, which returns a `rfx.reporting.figures.Chart`."""
    return dict(item for one in _lists(package, "figures", "FIGURES") for item in one.items())


def claims(package: str) -> Sequence[Any]:
    """The claims of a paper's package; empty if it has no module `claims`."""
    return [claim for one in _lists(package, "claims", "CLAIMS") for claim in one]


def plan_of(builder: Callable | None, name: str) -> str:
    """The plan whose rows the builder of a table or figure shows; name: its full name."""
    plan = getattr(builder, "plan", "")
    return f"{name.partition('-')[0]}-{plan}" if plan else name


def _lists(package: str, start: str, attribute: str) -> list[Any]:
    """An attribute of the modules of a package whose names begin with `start`, where it is set."""
    found = []
    for item in pkgutil.iter_modules(importlib.import_module(package).__path__):
        if item.name.startswith(start):
            module = importlib.import_module(f"{package}.{item.name}")
            if hasattr(module, attribute):
                found.append(getattr(module, attribute))
    return found
