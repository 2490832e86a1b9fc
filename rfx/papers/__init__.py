"""The papers, one folder each, with its plans, printed numbers, tables and figures. Everything
about a paper is in its folder.

Folders are discovered automatically: `yen2014/plans/table1.toml` is the plan `yen2014-table1`. The
table `table1` in the TABLES of `yen2014/tables.py` is the table `yen2014-table1`; the same holds
for FIGURES of `figures.py` (see `rfx.plans.catalogue`). CLAIMS of `claims.py` lists the paper's
claims (see `rfx.reporting.claims`). The table of all papers' settings is in `tables_sources.py`.
Printed numbers are CSV files in the folder (see `rfx.reporting.cells`).
"""

import importlib
import pkgutil
from collections.abc import Callable
from importlib import resources
from importlib.resources.abc import Traversable

from rfx.errors import UsageError, or_near
from rfx.plans import catalogue


def names() -> list[str]:
    """The papers, such as yen2014."""
    return sorted(module.name for module in pkgutil.iter_modules(__path__) if module.ispkg)


def plans() -> dict[str, Traversable]:
    """Every plan included in rfx, the papers' and the general ones: name to TOML file."""
    return _all(catalogue.plans)


def tables() -> dict[str, Callable]:
    """Every table, the papers' and the general ones: name to builder(rows, setting)."""
    return _all(catalogue.tables)


def figures() -> dict[str, Callable]:
    """Every figure, the papers' and the general ones: name to builder(rows, setting)."""
    return _all(catalogue.figures)


def folder(paper: str) -> catalogue.Folder:
    """Everything of one paper, by the names used on the command line."""
    package = f"{__name__}.{paper}"
    about = " ".join((importlib.import_module(package).__doc__ or "").split())
    return catalogue.Folder(
        paper,
        about,
        _of_paper(paper, catalogue.plans),
        _of_paper(paper, catalogue.tables),
        _of_paper(paper, catalogue.figures),
        resources.files(package) / "costs.csv",
        catalogue.claims(package),
    )


def folders(wanted=()) -> list[catalogue.Folder]:
    """The requested papers, by the year in their names; all of them if none are named. Raises
    UsageError for an unknown paper.
    """
    known = names()
    for name in wanted:
        if name not in known:
            raise UsageError(f"--paper {name}: there is no such paper{or_near(name, known)}")
    found = [folder(name) for name in known if name in wanted or not wanted]
    return sorted(found, key=lambda one: (one.name[-4:], one.name))


def _all(find) -> dict:
    found = find() | find(__name__)
    for paper in names():
        found |= _of_paper(paper, find)
    return dict(sorted(found.items()))


def _of_paper(paper: str, find: Callable[[str], dict]) -> dict:
    """What `find` has in a paper's folder, by the names used on the command line."""
    return {f"{paper}-{name}": item for name, item in find(f"{__name__}.{paper}").items()}
