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

# The rows of a plan, by its full name.
Find = Callable[[str], Sequence[Mapping[str, Any]]]
# A case, such as a data set, and the effect of each seed.
Effects = dict[str, list[float]]

REPRODUCED, PARTLY, NOT = "reproduced", "partly", "not reproduced"
VACUOUS, UNTESTABLE, NOT_RUN = "bound vacuous", "untestable here", "not run"
VERDICTS = {
    REPRODUCED: (
        "the interval is within the claimed range in half of the cases or more, and outside it in"
        " none"
    ),
    PARTLY: "it is within in some cases; in others it is outside, or most are undecided",
    NOT: "it is outside in half of the cases or more, and within in none",
    seeds.UNDECIDED: "most intervals contain a limit of the claimed range, and none is within it",
    VACUOUS: "the bound holds, but zero weights satisfy it as well",
    UNTESTABLE: "no run on one small machine, or with public data, can decide it",
    NOT_RUN: "the results folder has no rows of the plan",
}
LEVEL = 0.05
_STATED = ("claim", "verdict", "where", "statement")
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
        The plan whose rows are measured, without the paper's name; empty if no plan can decide.
    measure : callable
        Function of the plan's rows that returns the effect of every seed, by case. It may raise
        `RfxError` if the rows are incomplete.
    least, most : float
        The claim holds for effects from `least` to `most`.
    ratio : bool
        Whether the effect is a ratio, whose interval is computed on its logarithm.
    settings : str
        The source of the settings: printed, authors' program, held-out rows, or test rows.
    counted : bool
        Whether the effect is a count, or a formula, without noise. One run then decides.
    vacuous : bool
        Whether the effect is that of a bound. If the claim holds, the bound is vacuous.
    why : str
        Why the claim cannot be decided here.
    """

    name: str
    where: str
    says: str
    effect: str = ""
    plan: str = ""
    measure: Callable[[Sequence[Mapping[str, Any]]], Effects] = lambda rows: {}
    least: float = -math.inf
    most: float = math.inf
    ratio: bool = False
    settings: str = ""
    counted: bool = False
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
    """The effect in one case: its mean, the interval (None for a single seed), and whether the
    claim holds. The latter is None if the interval does not decide it.
    """

    name: str
    mean: float
    low: float | None
    high: float | None
    n: int
    holds: bool | None


def case(claim: Claim, name: str, effects: Sequence[float], cases: int = 1) -> Case:
    """The mean effect with its interval.

    The intervals of all cases of a claim hold simultaneously at 95 %: each has the level of a
    Bonferroni correction for `cases`. A ratio uses the geometric mean.
    """
    values = [math.log(value) for value in effects] if claim.ratio else list(effects)
    own = seeds.mean_of(values)
    back = math.exp if claim.ratio else float
    if own.sd is None and not claim.counted:
        return Case(name, back(own.value), None, None, 1, None)
    if own.sd is None:
        half = 0.0
    else:
        half = stdtrit(own.n - 1, 1 - LEVEL / cases / 2) * own.sd / math.sqrt(own.n)
    low, high = back(own.value - half), back(own.value + half)
    inside = claim.least <= low and high <= claim.most
    outside = high < claim.least or low > claim.most
    return Case(
        name, back(own.value), low, high, own.n, True if inside else False if outside else None
    )


def judge(claim: Claim, rows: Sequence[Mapping[str, Any]]) -> tuple[str, list[Case], str]:
    """(verdict, cases, the reason if there are none) of a claim, from the rows of its plan."""
    if not claim.plan:
        return UNTESTABLE, [], claim.why
    try:
        effects = {name: own for name, own in claim.measure(rows).items() if own} if rows else {}
    except RfxError as error:
        return NOT_RUN, [], str(error)
    if not effects:
        return NOT_RUN, [], ""
    cases = [case(claim, name, own, len(effects)) for name, own in effects.items()]
    holds = sum(one.holds is True for one in cases)
    fails = sum(one.holds is False for one in cases)
    most = 2 * (holds + fails) >= len(cases)
    if holds:
        verdict = PARTLY if fails or not most else VACUOUS if claim.vacuous else REPRODUCED
    else:
        verdict = NOT if fails and most else seeds.UNDECIDED
    return verdict, cases, ""


@dataclass(frozen=True)
class Judged:
    """A claim with its verdict, its cases, the full name of its plan (empty without a plan), and
    the reason if there are no cases.
    """

    claim: Claim
    plan: str
    verdict: str
    cases: Sequence[Case]
    why: str


def judged(papers: Iterable[Folder], find: Find) -> list[tuple[Folder, list[Judged]]]:
    """The judged claims of each paper with claims.

    Parameters
    ----------
    papers : iterable of Folder
    find : callable
        Returns the rows of a plan by its full name, such as yen2014-table1.
    """
    known: dict[str, Sequence[Mapping[str, Any]]] = {"": ()}
    found = []
    for paper in papers:
        own = []
        for claim in paper.claims:
            plan = f"{paper.name}-{claim.plan}" if claim.plan else ""
            if plan not in known:
                known[plan] = find(plan)
            own.append(Judged(claim, plan, *judge(claim, known[plan])))
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
            stated.append(_texts(claim.name, one.verdict, claim.where, says))
            if one.plan:
                measured.append(
                    _texts(
                        claim.name,
                        claim.effect,
                        claim.range,
                        claim.settings,
                        f"rfx run {one.plan}",
                    )
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
        " single seed has no interval and decides nothing, unless the effect is a count.",
        *(f"{verdict}: {text}." for verdict, text in VERDICTS.items() if counts[verdict]),
    ]
    return Table("claims", "Claims of the papers", sections, notes, tidy)


def _texts(*texts: str) -> list[Cell]:
    return [words(text) for text in texts]


def _line(name: str, one: Case) -> list[Cell]:
    holds = {True: "yes", False: "no", None: "undecided"}[one.holds]
    return [
        *_texts(name, one.name),
        *(number(value, short) for value in (one.mean, one.low, one.high)),
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
        "plan": own.plan or None,
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
        }
        for one in own.cases
    ] or [of | dict.fromkeys(("case", "mean", "low", "high", "seeds", "holds"))]


# ---------------------------------------------------------------------------- measuring rows


def paired(
    rows: Iterable[Mapping[str, Any]],
    first: Callable[[Mapping[str, Any]], bool],
    second: Callable[[Mapping[str, Any]], bool],
    value: Callable[[Mapping[str, Any]], float | None],
    case_of: Callable[[Mapping[str, Any]], str],
    difference: bool = False,
) -> Effects:
    """The ratio of the values of `first` and `second`, or their difference, for each seed.

    Rows of runs that did not succeed, or without a value, are omitted. If a run was repeated, its
    newest row counts. Zero and negative values have no ratio.
    """
    found: dict[str, tuple[dict, dict]] = {}
    for row in rows:
        number = value(row) if row["status"] == "ok" else None
        if number is None or (not difference and number <= 0):
            continue
        for place, wanted in enumerate((first, second)):
            if wanted(row):
                found.setdefault(case_of(row), ({}, {}))[place][row["seed"]] = number
    effects = {}
    for name, (ours, theirs) in found.items():
        shared = sorted(ours.keys() & theirs.keys())
        effects[name] = [
            ours[seed] - theirs[seed] if difference else ours[seed] / theirs[seed]
            for seed in shared
        ]
    return effects
