"""Which runs of a plan exist, which are missing and why, and the commands that execute them."""

import shlex
from dataclasses import dataclass, field

from rfx.data.registry import registry
from rfx.plans import plan
from rfx.records import keys
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
    """

    name: str
    title: str
    quick: bool
    source: Source
    total: int = 0
    counts: dict[str, int] = field(default_factory=dict)
    groups: list[Group] = field(default_factory=list)
    full_total: int = 0
    type_this: list[tuple[str, str]] = field(default_factory=list)

    @property
    def missing(self) -> int:
        return sum(group.n for group in self.groups if group.status == "missing")


def of(name: str, source: Source, known: dict, folder: str) -> Coverage:
    """The coverage of the plan `name`. known: all plans; folder: the folder of results, as a user
    types it.
    """
    quick = source.quick
    full = plan.load(name, False, known)
    small = plan.small(name, known)
    wanted = small if quick and small is not None else full
    quick = wanted is small
    found = Coverage(name, full.title, quick, source, len(wanted.runs), full_total=len(full.runs))
    newest = {row["key"]: row for row in source.rows}
    rows = [newest.get(keys.key(run)) for run in wanted.runs]
    groups: dict[tuple, int] = {}
    counts = dict.fromkeys(
        ("ok", "unconverged", "failed", "timeout", "interrupted", "missing", "constant"), 0
    )
    for run, row in zip(wanted.runs, rows):
        for status, reason in _became(run, row):
            counts[status] += 1
            if status != "ok":
                groups[status, run.dataset, run.method, reason] = (
                    groups.get((status, run.dataset, run.method, reason), 0) + 1
                )
    found.counts = counts
    found.groups = [
        Group(status, dataset, method, reason, n)
        for (status, dataset, method, reason), n in groups.items()
    ]
    unread = [
        run.dataset
        for run, row in zip(wanted.runs, rows)
        if row and row["params"].get("error") == NO_DATA
    ]
    found.type_this = _commands(found, sorted(set(unread)), folder)
    return found


def _became(run, row) -> list[tuple[str, str]]:
    """(status, reason) of a run: ok, possibly with a defect, or the reason why it has no result."""
    if row is None:
        return [("missing", _why_missing(run.dataset))]
    if row["status"] != "ok":
        return [(row["status"] or "interrupted", row["message"] or "no reason was written")]
    marred = (
        [("unconverged", f"the solver ended as {row['params'].get('ended') or 'not converged'}")]
        if row["converged"] is False
        else []
    )
    if baseline.no_better(row):
        marred.append(("constant", "it scores no better than a constant"))
    return [("ok", ""), *marred]


def _why_missing(dataset) -> str:
    base = dataset.partition(":")[0]
    obtain = registry.get(base).obtain if registry.has(base) else None
    return f"not run yet; its data must be obtained by hand: {obtain}" if obtain else "not run yet"


def _commands(found, without, folder) -> list[tuple[str, str]]:
    """(purpose, command) of all commands that would add the missing rows. without: data sets that
    are unavailable.
    """
    name, quick = shlex.quote(found.name), found.quick

    def run_of(quick):
        path = shlex.quote(f"{folder}/{found.name}{'-quick' if quick else ''}.csv")
        return f"rfx run {name}{' --quick' if quick else ''} --results {path}"

    run = run_of(quick)
    commands = []
    if without:
        commands.append(
            (
                "data that could not be had",
                f"rfx fetch {shlex.join(base.partition(':')[0] for base in without)}",
            )
        )
    if found.counts["missing"] or found.counts["interrupted"] or without:
        commands.append(
            (f"{found.counts['missing'] + found.counts['interrupted']:,} runs without a row", run)
        )
    if found.counts["failed"] + found.counts["timeout"] > 0:
        commands.append(
            (
                f"{found.counts['failed'] + found.counts['timeout']:,} failed or timed out",
                f"{run} --retry-failed",
            )
        )
    if quick:
        commands.append((f"the whole plan, {found.full_total:,} runs", run_of(False)))
    return commands
