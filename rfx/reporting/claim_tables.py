"""The judged claims as text, as tables and as counts."""

import math
import textwrap
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TypeAlias

from rfx.plans.catalogue import Folder
from rfx.reporting.cells import (
    UNDECIDED,
    Line,
    Section,
    Table,
    short,
    words,
)
from rfx.reporting.claims import (
    EQUIVALENT,
    MIXED,
    MOSTLY,
    MOSTLY_NOT,
    NOT,
    NOT_RUN,
    OUTCOMES,
    REPRODUCED,
    UNTESTABLE,
    VERDICTS,
    Case,
    Claim,
    Judged,
)
from rfx.reporting.effects import OR_LESS, OR_MORE, VACUOUS

Found: TypeAlias = Sequence[tuple[Folder, Sequence[Judged]]]
# The columns of the README's counts of claims, and the verdicts of each number in their cells.
COUNTED = {
    "reproduced, mostly": ((REPRODUCED, EQUIVALENT), (MOSTLY,)),
    "mixed": ((MIXED,),),
    "not reproduced, mostly not": ((NOT,), (MOSTLY_NOT,)),
    "undecided": ((UNDECIDED,),),
    "vacuous": ((VACUOUS,),),
    "untested": ((UNTESTABLE, NOT_RUN),),
}
_INTERVALS = (
    "Intervals are Student's over the seeds, at the level at which their case was tested: 1 - 5 %/k"
    " where k cases of the claim were not decided before it (Holm's steps). So all decisions on a"
    " claim hold together at 95 %, its intervals do not. A case of a single seed has no interval"
    " and is open, unless the effect is a count. Runs that are the same for every seed are one run,"
    " which decides."
)


def counts(judged: Iterable[Judged]) -> list[str]:
    """The numbers of claims in each column of COUNTED."""
    verdicts = [one.verdict for one in judged]
    return [_numbers(verdicts, groups) for groups in COUNTED.values()]


def _numbers(verdicts: Sequence[str], groups: Iterable[Sequence[str]]) -> str:
    """How many verdicts are in each group: "8, 2"."""
    return ", ".join(str(sum(map(verdicts.count, group))) for group in groups)


def notes(found: Found) -> list[str]:
    """The number of claims with each verdict, and what intervals and verdicts mean."""
    verdicts = Counter(one.verdict for _, claims in found for one in claims)
    present = [verdict for verdict in VERDICTS if verdicts[verdict]]
    listed = ", ".join(f"{verdicts[verdict]} {verdict}" for verdict in present)
    meanings = [f"{verdict}: {VERDICTS[verdict]}." for verdict in present]
    return [f"{verdicts.total()} claims: {listed}.", _INTERVALS, *meanings]


# -------------------------------------------------------------------------------------------- text


def text(found: Found, width: int) -> str:
    """A block for each claim: its statement, place and verdict, and a line for each case."""
    blocks = []
    for paper, claims in found:
        blocks.append(paper.citation)
        blocks += [_block(judged, width) for judged in claims]
    wrapped = [textwrap.fill(note, width, subsequent_indent="  ") for note in notes(found)]
    return "\n\n".join([*blocks, "\n".join(wrapped)]) + "\n"


def _block(judged: Judged, width: int) -> str:
    claim = judged.claim
    lines = [f"{claim.name}: {judged.verdict} ({claim.where})", claim.says]
    if claim.effect:
        lines.append(f"Effect: {claim.effect}.")
    if claim.settings:
        lines.append(f"Settings: {claim.settings}. Command: {judged.command}")
    if judged.why:
        lines.append(f"Open: {judged.why}.")
    first, *others = [*lines, *(case_line(claim, case) for case in judged.cases)]
    indented = [
        textwrap.fill(line, width, initial_indent="  ", subsequent_indent="    ") for line in others
    ]
    return "\n".join([first, *indented])


def case_line(claim: Claim, case: Case) -> str:
    """The outcome of a case with its evidence: "open: nu = 0.1 -0.985 [-1.32, -0.646]; needs -0.9
    or less; 3 seeds; -0.9 is within".
    """
    seeds = "one run" if case.n_seeds == 1 else f"{case.n_seeds} seeds"
    parts = [_effect(case), f"needs {claim.needs}", seeds, _why_open(claim, case)]
    return f"{case.outcome}: {case.name} {'; '.join(part for part in parts if part)}"


def _effect(case: Case) -> str:
    """The effect with its interval, if that has an end that is not the mean."""
    if math.isnan(case.mean):
        return "no effect"
    ends = [short(end) if math.isfinite(end) else str(end) for end in (case.low, case.high)]
    is_known = case.low < case.high and ends != ["-inf", "inf"]
    return f"{short(case.mean)} [{', '.join(ends)}]" if is_known else short(case.mean)


def _why_open(claim: Claim, case: Case) -> str:
    """Why a case is not decided; "" if it is, or is vacuous."""
    if case.holds is not None or case.is_vacuous:
        return ""
    if case.limit in (OR_MORE, OR_LESS):
        return f"known as {short(case.mean)} {case.limit}"
    if case.limit:
        return case.limit
    if case.n_seeds == 1:
        return "a single seed"
    within = [short(end) for end in (claim.least, claim.most) if case.low <= end <= case.high]
    return f"{' and '.join(within)} {'is' if len(within) == 1 else 'are'} within"


# ------------------------------------------------------------------------------------------- table


def table(found: Found) -> Table:
    """A section for each paper with a line for each claim; as CSV and JSON a line for each case."""
    return Table(
        name="claims",
        title="Claims of the papers",
        sections=[_section(paper, claims) for paper, claims in found],
        notes=notes(found),
        cells=[
            line for paper, claims in found for one in claims for line in _tidy(paper.name, one)
        ],
    )


def _section(paper: Folder, claims: Sequence[Judged]) -> Section:
    columns = ["claim", "verdict", ", ".join(OUTCOMES), "where", "statement"]
    lines = [
        [one.claim.name, one.verdict, one.outcomes, one.claim.where, _statement(one)]
        for one in claims
    ]
    return Section(paper.citation, columns, [list(map(words, line)) for line in lines])


def _statement(judged: Judged) -> str:
    return f"{judged.claim.says} ({judged.why})" if judged.why else judged.claim.says


def _tidy(paper: str, judged: Judged) -> list[Line]:
    """A line for each case, or one without a case."""
    claim = judged.claim
    shared = {
        "paper": paper,
        "claim": claim.name,
        "where": claim.where,
        "says": claim.says,
        "verdict": judged.verdict,
        "effect": claim.effect or None,
        "least": _finite(claim.least),
        "most": _finite(claim.most),
        "settings": claim.settings or None,
        "plan": " ".join(judged.plans) or None,
    }
    return [shared | _tidy_case(case) for case in judged.cases] or [shared | dict.fromkeys(_CASE)]


_CASE = ("case", "mean", "low", "high", "seeds", "level", "outcome", "limit")


def _tidy_case(case: Case) -> Line:
    ends = map(_finite, (case.mean, case.low, case.high))
    values = (case.name, *ends, case.n_seeds, case.level, case.outcome, case.limit or None)
    return dict(zip(_CASE, values))


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
