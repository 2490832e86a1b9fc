"""The rows of a plan: results/PLAN.csv, or results/PLAN-quick.csv for its small form, with traces
in the same folder; which of its runs exist, which are missing and why, and the commands that
execute them.
"""

import shlex
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, NamedTuple

from rfx.data.registry import registry
from rfx.errors import DataError, UsageError
from rfx.plans import plan
from rfx.records import keys, results, traces
from rfx.records.result import Result
from rfx.records.run import Run
from rfx.runs import baseline
from rfx.runs.child import NO_DATA


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


def find(folder: str | Path, plan: str) -> Source:
    """The full form's file if one of its runs succeeded, else that of the small form, else any file
    that exists.
    """
    forms = [read(Path(folder) / f"{plan}{end}.csv", bool(end)) for end in ("", "-quick")]
    good = lambda form: any(row["status"] == "ok" for row in form.rows)
    chosen, other = sorted(forms, key=lambda form: (form.path is None, not good(form)))
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


# ----------------------------------------------------------------------------------------- coverage


class Group(NamedTuple):
    """Runs of one data set and method without a good row, for the same reason. `status`: missing,
    failed, timeout, interrupted, unconverged, or constant (no better than a constant).
    """

    status: str
    dataset: str
    method: str
    reason: str
    n: int


@dataclass
class Coverage:
    """One plan, in the form of its rows: the number of its runs, their outcomes, and the groups of
    runs without a good row.

    commands: (purpose, command) of all commands that would add the missing rows.
    """

    name: str
    title: str
    quick: bool
    source: Source
    total: int
    counts: Counter[str]
    groups: list[Group]
    commands: list[tuple[str, str]]


def ends(row: Result) -> Iterator[tuple[str, str]]:
    """(status, reason) of a row: ok, possibly with a defect, or the reason why it has no result."""
    if row["status"] != "ok":
        yield row["status"] or "interrupted", row["message"] or "no reason was written"
        return
    yield "ok", ""
    if row["converged"] is False:
        yield "unconverged", f"the solver ended as {row['params'].get('ended') or 'not converged'}"
    if words := baseline.no_better(row):
        yield "constant", words


def groups_of(outcomes: Iterator[tuple[str, str, str, str]]) -> list[Group]:
    """The groups of (status, data set, method, reason) without a good row."""
    counts = Counter(outcomes)
    return [Group(*outcome, n) for outcome, n in counts.items() if outcome[0] != "ok"]


def coverage(name: str, source: Source, plans: dict[str, Traversable], folder: str) -> Coverage:
    """The coverage of the plan `name`. folder: the folder of results, as a user types it."""
    full, small = plan.load(name, False, plans), plan.small(name, plans)
    form = small if small is not None and source.quick else full
    newest = {row["key"]: row for row in source.rows}
    rows = [(run, newest.get(keys.key(run))) for run in form.runs]
    outcomes = [
        (status, run.dataset, run.method, reason)
        for run, row in rows
        for status, reason in (_missing(run) if row is None else ends(row))
    ]
    counts = Counter(status for status, *_ in outcomes)
    without_data = {
        run.dataset.partition(":")[0]
        for run, row in rows
        if row and row["params"].get("error") == NO_DATA
    }
    quick, groups = form is small, groups_of(iter(outcomes))
    run_of = lambda end: (
        f"rfx run {shlex.quote(name)}{' --quick' * bool(end)} --results"
        f" {shlex.quote(f'{folder}/{name}{end}.csv')}"
    )
    again = run_of("-quick" if quick else "")
    absent = counts["missing"] + counts["interrupted"]
    failed = counts["failed"] + counts["timeout"]
    # purpose, command, and whether it would add rows
    steps = (
        (
            "data that could not be had",
            f"rfx fetch {shlex.join(sorted(without_data))}",
            without_data,
        ),
        (f"{absent:,} runs without a row", again, absent or without_data),
        (f"{failed:,} failed or timed out", f"{again} --retry-failed", failed),
        (f"the whole plan, {len(full.runs):,} runs", run_of(""), quick),
    )
    commands = [(purpose, command) for purpose, command, adds in steps if adds]
    return Coverage(name, full.title, quick, source, len(rows), counts, groups, commands)


def _missing(run: Run) -> Iterator[tuple[str, str]]:
    base = run.dataset.partition(":")[0]
    obtain = registry.get(base).obtain if registry.has(base) else None
    by_hand = f"; its data must be obtained by hand: {obtain}" if obtain else ""
    yield "missing", f"not run yet{by_hand}"
