"""The papers' claims and the evidence from our rows: a measured effect with its interval, and a
verdict.

A paper's folder lists its claims in the CLAIMS of `claims.py`. A claim names the plan whose rows
are the evidence, measures an effect in them, and states the range of effects for which it holds.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import astuple, dataclass, field
from functools import cache
from typing import Any

from scipy.special import stdtrit

from rfx.errors import RfxError
from rfx.plans.catalogue import Folder
from rfx.reporting import seeds
from rfx.reporting.cells import Cell, Section, Table, count, grid, number, short, words
from rfx.reporting.measures import Frame, Limits, Measure, Row, Selection, frame, select

# The rows of a plan, by its full name.
Find = Callable[[str], Sequence[Row]]

REPRODUCED, PARTLY, NOT = "reproduced", "partly", "not reproduced"
VACUOUS, UNTESTABLE, NOT_RUN = "bound vacuous", "untestable here", "not run"
VERDICTS = {
    REPRODUCED: "every case is decided, and its interval is within the claimed range",
    PARTLY: "at least half of the cases are decided, and one or more of them is within",
    NOT: "every case is decided, and its interval is outside",
    seeds.UNDECIDED: "any other outcome",
    VACUOUS: "the bound holds, but zero weights satisfy it as well",
    UNTESTABLE: "no run on one small machine, or with data that can be had, can decide it",
    NOT_RUN: "the results folder has no rows of the plan",
}
LEVEL = 0.05


@dataclass(frozen=True)
class Claim:
    """A statement of a paper that rows can confirm or refute.

    Attributes
    ----------
    name : str
        Unique within the paper, such as "fewer-features".
    where : str
        The place in the paper: a table, figure, theorem or section.
    says : str
        The statement, in one sentence in our words.
    effect : str
        What is measured.
    plan : str
        The plans whose rows are measured, without the paper's name, separated by spaces; empty if
        no plan can decide.
    measure : callable
        Function of a frame of the plans' rows that returns the effect of every seed, by case (see
        `rfx.reporting.measures`). It may raise `RfxError` if the rows are incomplete.
    rows : Selection
        The rows that are measured; all of the plans by default.
    least, most : float
        The claim holds for effects from `least` to `most`.
    ratio : bool
        Whether the effect is a ratio, whose interval is computed on its logarithm.
    settings : str
        The source of the settings: printed, authors' program, held-out rows, or test rows.
    counted : bool
        Whether the effect is a count, or a formula, without noise. One run then decides.
    grid : bool
        Whether effects are steps of a grid, so that equal ones are those of several runs.
    vacuous : bool
        Whether the effect is that of a bound. If the claim holds, the bound is vacuous.
    why : str
        Why the claim cannot be decided here, or is not decided yet.
    """

    name: str
    where: str
    says: str
    effect: str = ""
    plan: str = ""
    measure: Measure = lambda table: {}
    rows: Selection = field(default_factory=dict)
    least: float = -math.inf
    most: float = math.inf
    ratio: bool = False
    settings: str = ""
    counted: bool = False
    grid: bool = False
    vacuous: bool = False
    why: str = ""

    @property
    def range(self) -> str:
        """The effects for which the claim holds, in words."""
        ends = [short(end) for end in (self.least, self.most) if math.isfinite(end)]
        if len(ends) != 1:
            return " to ".join(ends)
        return f"at {'most' if self.least == -math.inf else 'least'} {ends[0]}"


@dataclass(frozen=True)
class Case:
    """The effect in one case: its mean, the interval (None without noise or for a single seed), the
    number of seeds, and whether the claim holds. The latter is None if that is not decided.

    limit: "or more", "or less" or "diverged" if the mean is only a limit of the effect.
    """

    name: str
    mean: float
    low: float | None
    high: float | None
    n: int
    holds: bool | None
    limit: str = ""

    @property
    def interval(self) -> str:
        """The interval in words: 1.5 to 2, 1.5 or more, or why there is none."""
        ends = [short(end) for end in (self.low, self.high) if end is not None]
        if len(ends) == 1:
            return f"{ends[0]} {self.limit}"
        return " to ".join(ends) or self.limit or "one run"

    @property
    def open(self) -> str:
        """Why it is not decided."""
        if self.limit == "diverged":
            return self.limit
        if self.limit:
            return f"known as {short(self.mean)} {self.limit}"
        return "a single seed" if self.n == 1 else "a limit is in the interval"


def case(claim: Claim, name: str, effects: Sequence[float] | Limits, cases: int = 1) -> Case:
    """The mean effect with its interval.

    The intervals of all cases of a claim hold simultaneously at 95 %: each has the level of a
    Bonferroni correction for `cases`. A ratio uses the geometric mean. Equal effects of all seeds
    are those of one deterministic run, unless they are counts or steps of a grid. The interval of
    limits is open.
    """
    values, limit = (effects.values, effects.kind) if isinstance(effects, Limits) else (effects, "")
    back = math.exp if claim.ratio else float
    value, sd, n, *_ = seeds.mean_of([*map(math.log, values)] if claim.ratio else values)
    if n == 1 and not claim.counted:
        return Case(name, back(value), None, None, 1, None, limit)
    half = stdtrit(n - 1, 1 - LEVEL / cases / 2) * sd / math.sqrt(n) if sd else 0.0
    low = -math.inf if limit in ("or less", "diverged") else back(value - half)
    high = math.inf if limit in ("or more", "diverged") else back(value + half)
    holds = True if claim.least <= low and high <= claim.most else None
    holds = False if high < claim.least or low > claim.most else holds
    n = 1 if sd == 0.0 and not (claim.counted or claim.grid) else n
    shown = lambda end: end if n > 1 and math.isfinite(end) else None
    return Case(name, back(value), shown(low), shown(high), n, holds, limit)


@dataclass(frozen=True)
class Judged:
    """A claim with its verdict, its cases, the full names of its plans, and the reason if it is not
    decided.
    """

    claim: Claim
    plans: Sequence[str]
    verdict: str
    cases: Sequence[Case] = ()
    why: str = ""

    @property
    def command(self) -> str:
        """The commands that make its rows."""
        return "; ".join(f"rfx run {plan}" for plan in self.plans)

    @property
    def outcomes(self) -> str:
        """The numbers of cases that hold, that do not, and that are undecided: 5, 1, 0."""
        counts = Counter(one.holds for one in self.cases)
        return ", ".join(str(counts[kind]) for kind in (True, False, None)) if self.cases else ""


def judge(claim: Claim, table: Frame, plans: Sequence[str] = ()) -> Judged:
    """A claim judged by the rows of its plans (see `rfx.reporting.measures.frame`)."""
    if not claim.plan:
        return Judged(claim, plans, UNTESTABLE, why=claim.why)
    try:
        effects = {} if table.empty else claim.measure(select(table, claim.rows))
    except RfxError as error:
        return Judged(claim, plans, NOT_RUN, why=str(error))
    known = {
        name: values
        for name, values in effects.items()
        if (values.values if isinstance(values, Limits) else values)
    }
    cases = [case(claim, name, values, len(known)) for name, values in known.items()]
    counts = Counter(one.holds for one in cases)
    verdict, why = seeds.UNDECIDED, ""
    if not cases:
        verdict, why = NOT_RUN, claim.why
    elif counts[True] == len(cases):
        verdict = VACUOUS if claim.vacuous else REPRODUCED
    elif counts[False] == len(cases):
        verdict = NOT
    elif counts[True] and 2 * counts[None] <= len(cases):
        verdict = PARTLY
    else:
        reasons = seeds.grouped((one.open, one.name) for one in cases if one.holds is None)
        undecided = "; ".join(f"{', '.join(names)} ({why})" for why, names in reasons.items())
        why = claim.why or f"undecided: {undecided}"
    return Judged(claim, plans, verdict, tuple(cases), why)


def judged(papers: Iterable[Folder], find: Find) -> list[tuple[Folder, list[Judged]]]:
    """The judged claims of each paper with claims, in the order of VERDICTS.

    Parameters
    ----------
    papers : iterable of Folder
    find : callable
        Returns the rows of a plan by its full name, such as yen2014-table1.
    """
    rows_of, order = cache(find), [*VERDICTS]

    @cache
    def table_of(plans: tuple[str, ...]) -> Frame:
        return frame(row for plan in plans for row in rows_of(plan))

    verdicts = []
    for paper in papers:
        named = [
            (claim, tuple(f"{paper.name}-{name}" for name in claim.plan.split()))
            for claim in paper.claims
        ]
        own = [judge(claim, table_of(plans), plans) for claim, plans in named]
        verdicts += [(paper, sorted(own, key=lambda one: order.index(one.verdict)))] if own else []
    return verdicts


# The columns of the sections: of Judged claims, and of (claim, case).
_STATED: dict[str, Callable[[Judged], Cell]] = {
    "claim": lambda one: words(one.claim.name),
    "verdict": lambda one: words(one.verdict),
    "yes, no, undecided": lambda one: words(one.outcomes),
    "where": lambda one: words(one.claim.where),
    "statement": lambda one: words(one.claim.says + (f" ({one.why})" if one.why else "")),
}
_MEASURED: dict[str, Callable[[Judged], Cell]] = {
    "claim": lambda one: words(one.claim.name),
    "effect": lambda one: words(one.claim.effect),
    "holds for": lambda one: words(one.claim.range),
    "settings": lambda one: words(one.claim.settings),
    "command": lambda one: words(one.command),
}
_HOLDS = {True: "yes", False: "no", None: "undecided"}
_CASES: dict[str, Callable[[Any], Cell]] = {
    "claim": lambda of: words(of[0]),
    "case": lambda of: words(of[1].name),
    "effect": lambda of: number(of[1].mean, short, note=f" {of[1].limit}" if of[1].limit else ""),
    "from": lambda of: number(of[1].low, short),
    "to": lambda of: number(of[1].high, short),
    "seeds": lambda of: number(of[1].n, count),
    "holds": lambda of: words(_HOLDS[of[1].holds]),
}


def table(found: Iterable[tuple[Folder, list[Judged]]]) -> Table:
    """The claims as a table: the statement, the measured effect, and its values by case."""
    found = list(found)
    counts = Counter(one.verdict for _, claims in found for one in claims)
    sections: list[Section] = []
    for paper, claims in found:
        measured = [one for one in claims if one.plans]
        cases = [(one.claim.name, each) for one in measured for each in one.cases]
        sections += [
            grid(paper.citation, _STATED, claims),
            grid(f"{paper.citation}: what is measured", _MEASURED, measured),
            grid(f"{paper.citation}: effects with 95 % intervals", _CASES, cases, 2),
        ]
    present = [verdict for verdict in VERDICTS if counts[verdict]]
    return Table(
        name="claims",
        title="Claims of the papers",
        sections=[section for section in sections if section.lines],
        notes=[
            f"{sum(counts.values())} claims: "
            + ", ".join(f"{counts[verdict]} {verdict}" for verdict in present)
            + ".",
            "Intervals are over seeds; those of all cases of a claim hold together at 95 %. A case"
            " of a single seed has no interval and decides nothing, unless the effect is a count."
            " Runs that are the same for every seed are one run, which decides.",
            *(f"{verdict}: {VERDICTS[verdict]}." for verdict in present),
        ],
        cells=[
            line for paper, claims in found for one in claims for line in _tidy(paper.name, one)
        ],
    )


def _tidy(paper: str, judged: Judged) -> list[dict[str, Any]]:
    """A line for each case, or one without a case."""
    claim = judged.claim
    shared = {
        "paper": paper,
        "claim": claim.name,
        "where": claim.where,
        "says": claim.says,
        "verdict": judged.verdict,
        "effect": claim.effect or None,
        "least": claim.least if math.isfinite(claim.least) else None,
        "most": claim.most if math.isfinite(claim.most) else None,
        "settings": claim.settings or None,
        "plan": " ".join(judged.plans) or None,
    }
    names = ("case", "mean", "low", "high", "seeds", "holds", "limit")
    lines = [astuple(one)[:-1] + (one.limit or None,) for one in judged.cases]
    return [shared | dict(zip(names, line)) for line in lines or [(None,) * len(names)]]
