"""The rows of a plan: results/PLAN.csv, or results/PLAN-quick.csv for its small form, with traces
in the same folder.
"""

import shlex
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from rfx.errors import DataError, UsageError
from rfx.records import results, traces


@dataclass(frozen=True)
class Source:
    """The rows of a plan. path: None if there is no file; quick: whether they are of the plan's
    small form.

    torn: incomplete lines left by an interrupted writer. refused: the reason why an existing file
    can't be read. other: an unused file of the other form.
    """

    path: Path | None = None
    quick: bool = False
    rows: list[Any] = field(default_factory=list)
    torn: list[int] = field(default_factory=list)
    refused: str = ""
    other: Path | None = None

    @property
    def good(self) -> bool:
        """Whether a run succeeded."""
        return any(row["status"] == "ok" for row in self.rows)


def find(folder, plan: str) -> Source:
    """The full form's file if one of its runs succeeded, else that of the small form, else any file
    that exists.
    """
    forms = [read(Path(folder) / f"{plan}{end}.csv", bool(end)) for end in ("", "-quick")]
    chosen, other = sorted(forms, key=lambda form: (form.path is None, not form.good))
    return replace(chosen, other=other.path)


def folder(option: str, name: str) -> Path:
    """The folder of results files that an option names.

    Raises UsageError for an empty name, and DataError if there is no such folder.
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


def read(path: Path, quick: bool = False) -> Source:
    """The rows of one file with their traces, or the reason if it can't be read."""
    if not path.exists():
        return Source()
    torn: list[int] = []
    try:
        rows = results.read(path, traces.finder(traces.beside(path)), torn)
    except DataError as error:
        return Source(path, quick, refused=str(error))
    return Source(path, quick, rows, torn)
