"""The papers' claims and the evidence from our rows: a measured effect with its interval, and a
verdict.

A paper's folder lists its claims in the CLAIMS of `claims.py`. A claim names the plan whose rows
are the evidence, measures an effect in them, and states the range of effects for which it holds.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from scipy.special import stdtrit

from rfx.errors import RfxError
from rfx.plans.catalogue import Folder
from rfx.reporting import seeds
from rfx.reporting.cells import Cell, Section, Table, count, number, short, words
from rfx.reporting.measures import Limits, Measure

# The rows of a plan, by its full name.
Find = Callable[[str], Sequence[Mapping[str, Any]]]

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
_STATED = ("claim", "verdict", "yes, no, undecided", "where", "statement")
_MEASURED = ("claim", "effect", "holds for", "settings", "command")
_CASES = ("claim", "case", "effect", "from", "to", "seeds", "holds")


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
        Function of the plans' rows that returns the effect of every seed, by case (see
        `rfx.reporting.measures`). It may raise `RfxError` if the rows are incomplete.
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
    measure: Measure = lambda rows: {}
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
        if self.least == -math.inf:
            return "" if self.most == math.inf else f"at most {short(self.most)}"
        if self.most == math.inf:
            return f"at least {short(self.least)}"
        return f"{short(self.least)} to {short(self.most)}"


@dataclass(frozen=True)
class Case:
    """The effect in one case: its mean, the interval (None without noise or for a single seed), and
    whether the claim holds. The latter is None if that is not decided.

    limit: "or more", "or less" or "diverged" if the mean is only a limit of the effect.
    """

    name: str
    mean: float
    low: float | None
    high: float | None
    n: int
    holds: bool | None
    limit: str = ""


def case(claim: Claim, name: str, effects: Sequence[float] | Limits, cases: int = 1) -> Case:
    """The mean effect with its interval.

    The intervals of all cases of a claim hold simultaneously at 95 %: each has the level of a
    Bonferroni correction for `cases`. A ratio uses the geometric mean. Equal effects of all seeds
    are those of one deterministic run, unless they are counts or steps of a grid. The interval of
    limits is open.
    """
    known, limit = (effects.values, effects.kind) if isinstance(effects, Limits) else (effects, "")
    values = [math.log(value) for value in known] if claim.ratio else list(known)
    back = math.exp if claim.ratio else float
    own = seeds.mean_of(values)
    n = 1 if own.sd == 0.0 and not (claim.counted or claim.grid) else own.n
    if own.n == 1 and not claim.counted:
        return Case(name, back(own.value), None, None, 1, None, limit)
    half = stdtrit(own.n - 1, 1 - LEVEL / cases / 2) * own.sd / math.sqrt(own.n) if own.sd else 0.0
    low = -math.inf if limit in ("or less", "diverged") else back(own.value - half)
    high = math.inf if limit in ("or more", "diverged") else back(own.value + half)
    inside = claim.least <= low and high <= claim.most
    outside = high < claim.least or low > claim.most
    shown = [end if n > 1 and math.isfinite(end) else None for end in (low, high)]
    holds = True if inside else False if outside else None
    return Case(name, back(own.value), shown[0], shown[1], n, holds, limit)


def judge(claim: Claim, rows: Sequence[Mapping[str, Any]]) -> tuple[str, list[Case], str]:
    """(verdict, cases, the reason if there are none) of a claim, from the rows of its plans."""
    if not claim.plan:
        return UNTESTABLE, [], claim.why
    try:
        effects = dict(claim.measure(rows)) if rows else {}
    except RfxError as error:
        return NOT_RUN, [], str(error)
    effects = {
        name: own
        for name, own in effects.items()
        if (own.values if isinstance(own, Limits) else own)
    }
    if not effects:
        return NOT_RUN, [], claim.why
    cases = [case(claim, name, own, len(effects)) for name, own in effects.items()]
    holds = [one.holds for one in cases]
    if all(holds):
        verdict = VACUOUS if claim.vacuous else REPRODUCED
    elif all(one is False for one in holds):
        verdict = NOT
    else:
        decided = 2 * sum(one is not None for one in holds) >= len(cases)
        verdict = PARTLY if decided and True in holds else seeds.UNDECIDED
    return verdict, cases, (claim.why or _open(cases)) if verdict == seeds.UNDECIDED else ""


def _open(cases: Sequence[Case]) -> str:
    """Which cases are undecided, and why."""
    kinds: dict[str, list[str]] = {}
    for one in cases:
        if one.holds is None:
            reason = one.limit and f"known as {short(one.mean)} {one.limit}"
            reason = "diverged" if one.limit == "diverged" else reason
            single = "a single seed" if one.n == 1 else "a limit is in the interval"
            kinds.setdefault(reason or single, []).append(one.name)
    return "undecided: " + "; ".join(f"{', '.join(own)} ({kind})" for kind, own in kinds.items())


@dataclass(frozen=True)
class Judged:
    """A claim with its verdict, its cases, the full names of its plans, and the reason if it is not
    decided.
    """

    claim: Claim
    plans: Sequence[str]
    verdict: str
    cases: Sequence[Case]
    why: str

    @property
    def command(self) -> str:
        """The commands that make its rows."""
        return "; ".join(f"rfx run {plan}" for plan in self.plans)

    @property
    def outcomes(self) -> str:
        """The numbers of cases that hold, that do not, and that are undecided: 5, 1, 0."""
        return ", ".join(
            str(sum(one.holds is kind for one in self.cases)) for kind in (True, False, None)
        )


def judged(papers: Iterable[Folder], find: Find) -> list[tuple[Folder, list[Judged]]]:
    """The judged claims of each paper with claims.

    Parameters
    ----------
    papers : iterable of Folder
    find : callable
        Returns the rows of a plan by its full name, such as yen2014-table1.
    """
    known: dict[str, Sequence[Mapping[str, Any]]] = {}
    found = []
    for paper in papers:
        own = []
        for claim in paper.claims:
            plans = [f"{paper.name}-{name}" for name in claim.plan.split()]
            for plan in plans:
                if plan not in known:
                    known[plan] = find(plan)
            rows = [row for plan in plans for row in known[plan]]
            own.append(Judged(claim, plans, *judge(claim, rows)))
        if own:
            found.append((paper, own))
    return found


def table(found: Iterable[tuple[Folder, list[Judged]]]) -> Table:
    """The claims as a table: the statement, the measured effect, and its values by case."""
    sections: list[Section] = []
    tidy: list[dict] = []
    counts = dict.fromkeys(VERDICTS, 0)
    for paper, claims in found:
        stated, measured, cased = [], [], []
        for one in claims:
            claim = one.claim
            counts[one.verdict] += 1
            says = f"{claim.says} ({one.why})" if one.why else claim.says
            outcomes = one.outcomes if one.cases else ""
            stated.append(_texts(claim.name, one.verdict, outcomes, claim.where, says))
            if one.plans:
                measured.append(
                    _texts(claim.name, claim.effect, claim.range, claim.settings, one.command)
                )
            cased += [_line(claim.name, each) for each in one.cases]
            tidy += _tidy(paper.name, one)
        for heading, columns, lines, n_labels in (
            ("", _STATED, stated, 1),
            (": what is measured", _MEASURED, measured, 1),
            (": effects with 95 % intervals", _CASES, cased, 2),
        ):
            if lines:
                sections.append(Section(f"{paper.citation}{heading}", columns, lines, n_labels))
    total = sum(counts.values())
    notes = [
        f"{total} claims: "
        + ", ".join(f"{number} {verdict}" for verdict, number in counts.items() if number)
        + ".",
        "Intervals are over seeds; those of all cases of a claim hold together at 95 %. A case of a"
        " single seed has no interval and decides nothing, unless the effect is a count. Runs that"
        " are the same for every seed are one run, which decides.",
        *(f"{verdict}: {text}." for verdict, text in VERDICTS.items() if counts[verdict]),
    ]
    return Table("claims", "Claims of the papers", sections, notes, tidy)


def _texts(*texts: str) -> list[Cell]:
    return [words(text) for text in texts]


def _line(name: str, one: Case) -> list[Cell]:
    holds = {True: "yes", False: "no", None: "undecided"}[one.holds]
    return [
        *_texts(name, one.name),
        number(one.mean, short, note=f" {one.limit}" if one.limit else ""),
        *(number(value, short) for value in (one.low, one.high)),
        number(one.n, count),
        words(holds),
    ]


def _tidy(paper: str, own: Judged) -> list[dict]:
    claim = own.claim
    of = {
        "paper": paper,
        "claim": claim.name,
        "where": claim.where,
        "says": claim.says,
        "verdict": own.verdict,
        "effect": claim.effect or None,
        "least": claim.least if math.isfinite(claim.least) else None,
        "most": claim.most if math.isfinite(claim.most) else None,
        "settings": claim.settings or None,
        "plan": " ".join(own.plans) or None,
    }
    return [
        of
        | {
            "case": one.name,
            "mean": one.mean,
            "low": one.low,
            "high": one.high,
            "seeds": one.n,
            "holds": one.holds,
            "limit": one.limit or None,
        }
        for one in own.cases
    ] or [of | dict.fromkeys(("case", "mean", "low", "high", "seeds", "holds", "limit"))]
