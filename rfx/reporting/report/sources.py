"""Where a plan's rows are: results/PLAN.csv, or of its small form results/PLAN-quick.csv,
with the traces beside.
"""

import shlex
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rfx.errors import DataError, UsageError
from rfx.records import results, traces


@dataclass(frozen=True)
class Source:
    """The rows that stand for a plan. path: None where there is no file; quick: of the plan's small
    form.

    torn: the lines that a killed writer left short. refused: why a file that is there can't be
    read. other: a file of the other form that is there too, and not used.
    """

    path: Path | None = None
    quick: bool = False
    rows: list[Any] = field(default_factory=list)
    torn: list[int] = field(default_factory=list)
    refused: str = ""
    other: Path | None = None


def find(folder, plan: str) -> Source:
    """The full form's file where it has a run that ended well, else the small form's, else
    what there is.
    """
    found = [read(Path(folder) / f"{plan}{end}.csv", bool(end)) for end in ("", "-quick")]
    there = [source for source in found if source.path is not None]
    if not there:
        return Source()
    good = [source for source in there if any(row["status"] == "ok" for row in source.rows)]
    chosen = (good or there)[0]
    others = [source.path for source in there if source is not chosen]
    return Source(
        chosen.path,
        chosen.quick,
        chosen.rows,
        chosen.torn,
        chosen.refused,
        others[0] if others else None,
    )


def folder(option: str, name: str) -> Path:
    """The folder of results files that an option names.

    Raises UsageError for an empty name and DataError where there is no such folder.
    """
    if not str(name):
        raise UsageError(f"{option} is empty; give a folder")
    path = Path(name)
    if not path.is_dir():
        raise DataError(
            f"{path} is not a folder of results files; make some with rfx run PLAN --results"
            f" {shlex.quote(f'{path}/PLAN.csv')}"
        )
    return path


def read(path: Path, quick: bool) -> Source:
    """The rows of one file with their traces; of a file that can't be read the reason."""
    if not path.exists():
        return Source()
    try:
        torn: list[int] = []
        rows = results.read(path, traces.finder(traces.beside(path)), torn)
        return Source(path, quick, rows, torn)
    except DataError as error:
        return Source(path, quick, refused=str(error))
