"""Which runs of a plan exist, which are missing and why, and the commands that execute them."""

import shlex
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from rfx.data.registry import registry
from rfx.plans import plan
from rfx.records import keys
from rfx.records.result import Result
from rfx.records.run import Run
from rfx.reporting.report.sources import Source
from rfx.runs import baseline
from rfx.runs.child import NO_DATA


@dataclass(frozen=True)
class Group:
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

    full_total: the number of runs of the full form. commands: (purpose, command) of all commands
    that would add the missing rows.
    """

    name: str
    title: str
    quick: bool
    source: Source
    total: int
    counts: Counter[str]
    groups: list[Group]
    full_total: int
    commands: list[tuple[str, str]]


def of(name: str, source: Source, plans: dict, folder: str) -> Coverage:
    """The coverage of the plan `name`. folder: the folder of results, as a user types it."""
    full, small = plan.load(name, False, plans), plan.small(name, plans)
    quick = source.quick and small is not None
    runs = small.runs if small is not None and quick else full.runs
    newest = {row["key"]: row for row in source.rows}
    rows = [newest.get(keys.key(run)) for run in runs]
    ends = [
        (status, run.dataset, run.method, reason)
        for run, row in zip(runs, rows)
        for status, reason in _ends(run, row)
    ]
    counts = Counter(status for status, *_ in ends)
    groups = [Group(*end, n) for end, n in Counter(ends).items() if end[0] != "ok"]
    without_data = {
        run.dataset.partition(":")[0]
        for run, row in zip(runs, rows)
        if row and row["params"].get("error") == NO_DATA
    }
    n_full = len(full.runs)
    commands = list(_commands(name, quick, counts, sorted(without_data), n_full, folder))
    return Coverage(name, full.title, quick, source, len(runs), counts, groups, n_full, commands)


def _ends(run: Run, row: Result | None) -> Iterator[tuple[str, str]]:
    """(status, reason) of a run: ok, possibly with a defect, or the reason why it has no result."""
    if row is None:
        base = run.dataset.partition(":")[0]
        obtain = registry.get(base).obtain if registry.has(base) else None
        by_hand = f"; its data must be obtained by hand: {obtain}" if obtain else ""
        yield "missing", f"not run yet{by_hand}"
        return
    if row["status"] != "ok":
        yield row["status"] or "interrupted", row["message"] or "no reason was written"
        return
    yield "ok", ""
    if row["converged"] is False:
        yield "unconverged", f"the solver ended as {row['params'].get('ended') or 'not converged'}"
    if baseline.no_better(row):
        yield "constant", "it scores no better than a constant"


def _commands(name, quick, counts, without_data, n_full, folder) -> Iterator[tuple[str, str]]:
    """(purpose, command) of all commands that would add the missing rows."""

    def run_of(quick: bool) -> str:
        path = shlex.quote(f"{folder}/{name}{'-quick' if quick else ''}.csv")
        return f"rfx run {shlex.quote(name)}{' --quick' if quick else ''} --results {path}"

    absent = counts["missing"] + counts["interrupted"]
    failed = counts["failed"] + counts["timeout"]
    if without_data:
        yield "data that could not be had", f"rfx fetch {shlex.join(without_data)}"
    if absent or without_data:
        yield f"{absent:,} runs without a row", run_of(quick)
    if failed:
        yield f"{failed:,} failed or timed out", f"{run_of(quick)} --retry-failed"
    if quick:
        yield f"the whole plan, {n_full:,} runs", run_of(False)
