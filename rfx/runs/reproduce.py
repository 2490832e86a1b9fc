"""Reproduce everything with one command: list the plans with their requirements and estimated time,
then run one plan after another, resumable.

The cost of a plan is read from `costs.csv` of its paper's folder: processor seconds and memory,
measured or estimated as stated there.
"""

import csv
import os
import time
from dataclasses import dataclass, field
from pathlib import Path

from rfx import env
from rfx.data import registry
from rfx.data.fetch import is_obtainable
from rfx.errors import RfxError
from rfx.plans import catalogue, plan
from rfx.records import results
from rfx.records.run import Run
from rfx.runs import runner

# Processor seconds of a run of a plan without a line in costs.csv; and memory, MiB: that of a
# process with all imports.
_UNKNOWN_SECONDS, _UNKNOWN_MB = 5.0, 400.0


@dataclass(frozen=True)
class Cost:
    """The cost of a form of a plan: processor seconds of all its runs, memory of the largest in
    MiB, and the basis of these numbers.

    hours: it runs only in the form "full".
    """

    seconds: float
    memory_mb: float
    basis: str
    hours: bool = False


@dataclass
class Step:
    """A plan to run: its results file, the missing runs, and their requirements.

    without: why it is skipped; by_hand: data sets that neither a URL nor a mirror provides.
    """

    plan: plan.Plan
    path: Path
    todo: list[Run]
    cost: Cost
    seconds: float = 0.0
    without: str = ""
    by_hand: list[str] = field(default_factory=list)

    @property
    def datasets(self) -> list[str]:
        return list(dict.fromkeys(run.dataset.partition(":")[0] for run in self.todo))


def costs(folder: catalogue.Folder) -> dict[tuple[str, str], Cost]:
    """The costs of the plans of a paper, by (plan, "quick" or "full")."""
    text = folder.costs.read_text(encoding="utf-8") if folder.costs.is_file() else ""
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    return {
        (f"{folder.name}-{row['plan']}", row["form"]): Cost(
            float(row["processor_seconds"]),
            float(row["memory_mb"]),
            row["basis"],
            row["hours"] == "yes",
        )
        for row in csv.DictReader(lines)
    }


def ahead(folders: list[catalogue.Folder], form: str, place) -> list[Step]:
    """Every plan of the papers in that form, its runs without a row in PLACE/PLAN.csv or
    PLAN-quick.csv, and their requirements.

    form: "quick", the small forms; "full", all runs; "most", all except the plans that take hours.
    """
    steps, memory = [], env.available_memory_mb()
    for folder in folders:
        known = costs(folder)
        for name in folder.plans:
            step = _step(name, folder, form, Path(place), known)
            if step is not None:
                if step.cost.memory_mb > memory:
                    step.without = (
                        f"it needs {step.cost.memory_mb:,.0f} MB of memory, but {memory:,.0f} MB"
                        " are free"
                    )
                elif step.cost.hours and form == "most":
                    step.without = "it takes hours; use make reproduce-full"
                elif step.todo and len(step.by_hand) == len(step.datasets):
                    step.without = (
                        f"its data must be obtained by hand; see rfx fetch {' '.join(step.by_hand)}"
                    )
                steps.append(step)
    return steps


def _step(name, folder, form, place, known) -> Step | None:
    quick = form == "quick"
    wanted = plan.small(name, folder.plans) if quick else plan.load(name, False, folder.plans)
    base = name.removesuffix("-full")
    if wanted is None or (quick and base != name):
        return None
    path = place / f"{base if base in folder.plans else name}{'-quick' if quick else ''}.csv"
    rows = results.read(path) if path.exists() else []
    todo = runner.missing(wanted, rows, False, results.read_steps(results.beside(path)))
    cost = known.get((name, "quick" if quick else "full"))
    cost = cost or Cost(_UNKNOWN_SECONDS * len(wanted.runs), _UNKNOWN_MB, "not measured")
    step = Step(wanted, path, todo, cost)
    step.by_hand = [one for one in step.datasets if registry.has(one) and not is_obtainable(one)]
    ready = [run for run in todo if run.dataset.partition(":")[0] not in step.by_hand]
    step.seconds = cost.seconds * len(ready) / max(1, len(wanted.runs))
    return step


def minutes(steps: list[Step], jobs: int) -> float:
    """Estimated minutes on this machine when idle: processor seconds divided by the cores used."""
    cores = max(1, min(jobs, env.threads()))
    return sum(step.seconds for step in steps if not step.without) / cores / 60


def said(steps: list[Step], jobs: int) -> list[str]:
    """The plans to run with their estimated time and requirements, and the skipped ones with the
    reason: lines to print beforehand.
    """
    lines = [f"{'plan':24} {'runs':>6} {'about':>9} {'memory':>9}  basis, data sets"]
    for step in steps:
        name = f"{step.plan.name:24} {len(step.todo):>6,}"
        if step.without:
            lines.append(f"{name} skipped: {step.without}")
            continue
        about = f"{step.seconds / 60:,.1f} min" if step.todo else "-"
        hand = f"; by hand: {', '.join(step.by_hand)}" if step.by_hand else ""
        lines.append(
            f"{name} {about:>9} {step.cost.memory_mb:>6,.0f} MB  {step.cost.basis}:"
            f" {', '.join(step.datasets) or 'all is done'}{hand}"
        )
    total = sum(len(step.todo) for step in steps if not step.without)
    lines.append(
        f"{total:,} runs, {jobs} at a time: about {minutes(steps, jobs):,.0f} minutes on this"
        " machine when it is idle (processor minutes divided by the cores used; measured here, or"
        " estimated from another machine). Press Ctrl-C to stop; the same command resumes."
    )
    return lines


def run(steps: list[Step], jobs: int, say) -> int:
    """Run the missing rows plan by plan; return 0, or 3 if a row failed or did not converge.

    Plans that compare threads run alone, one run at a time. If a plan can't be run, this is printed
    and the next one begins; the result is then 1.
    """
    code = 0
    for step in steps:
        if step.without:
            continue
        alone = any(run.fixed_threads for run in step.plan.runs)
        start, before = time.monotonic(), _processor()
        try:
            summary = runner.run(step.plan, step.path, 1 if alone else jobs, report=say)
        except RfxError as error:
            if error.exit_code == 4:
                raise
            say(f"{step.plan.name}: {error}")
            code = 1
            continue
        if summary.ran:
            taken = (
                f"{time.monotonic() - start:.0f} s, {_processor() - before:.0f} s of the processor"
            )
            say(f"{step.plan.name}: {summary.ran} runs took {taken}")
        code = code or summary.exit_code
    return code


def _processor() -> float:
    """Processor seconds of this process and of its children that have ended."""
    found = os.times()
    return found.user + found.system + found.children_user + found.children_system
