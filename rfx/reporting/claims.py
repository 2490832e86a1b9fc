"""The papers' claims: the interval of each measured effect, and verdicts by one rule.

A paper's folder lists its claims in the CLAIMS of `claims.py`. A claim names the plans whose rows
are the evidence, and states the effects for which it holds. It decorates the function that measures
these effects in the rows (`rfx.reporting.effects`). docs/papers.md has the rule and its reasons.
"""

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache

from scipy.special import stdtr, stdtrit

from rfx.errors import RfxError
from rfx.plans.catalogue import Folder
from rfx.reporting.cells import UNDECIDED, Row, mean_of, short
from rfx.reporting.effects import (
    OR_LESS,
    OR_MORE,
    VACUOUS,
    EffectFunction,
    Effects,
    Frame,
    Limits,
    SeedEffects,
    Selection,
    frame,
    select,
)

REPRODUCED, EQUIVALENT = "reproduced", "no difference of more than the margin"
MOSTLY, MIXED, MOSTLY_NOT = "mostly reproduced", "mixed", "mostly contradicted"
NOT, UNTESTABLE, NOT_RUN = "not reproduced", "untestable here", "not run"
VERDICTS = {
    REPRODUCED: "every case is a yes: its interval is within the claimed range",
    EQUIVALENT: "every interval is within the margin on both sides",
    MOSTLY: "more than half of the cases are a yes, none is a no",
    MIXED: "there is a yes and a no",
    MOSTLY_NOT: "more than half of the cases are a no, none is a yes",
    NOT: "every case is a no: its interval is outside; of a claim about all cases, one is",
    UNDECIDED: "any other outcome",
    VACUOUS: "no run could have contradicted it, such as with a bound above that of zero weights",
    UNTESTABLE: "no run on one small machine, or with data that can be had, can decide it",
    NOT_RUN: "the results folder has no rows of the plan",
}
LEVEL = 0.05
OUTCOMES = ("yes", "no", "open")


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A statement of a paper that rows can confirm or refute: a decorator of its measure, which it
    is named after.

        @Claim(where="Figure 4", says="The test error falls as the number of grids grows.",
               effect="exponent of R in the test error", plan="fig4", most=0.0)
        def error_falls(table: Frame) -> Effects:
            return exponent(table, "error", "n_grids")

    Attributes
    ----------
    name : str
        Unique within the paper, such as "error-falls".
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
        `rfx.reporting.effects`). It may raise `RfxError` if the rows are incomplete.
    rows : Selection
        The rows that are measured; all of the plans by default.
    least, most : float
        The claim holds for effects from `least` to `most`.
    ratio : bool
        Whether the effect is a ratio, whose interval is computed on its logarithm.
    equivalence : bool
        Whether it says "as good as", and the finite one of `least` and `most` is the margin.
    universal : bool
        Whether it says "always", "every" or "the least", which one case refutes.
    settings : str
        The source of the settings: printed, authors' program, held-out rows, or test rows.
    counted : bool
        Whether the effect is a count, or a formula, without noise. One run then decides.
    step : float
        The step of the grid on which effects were searched: a factor of a ratio, else a difference.
        0 for effects without a grid.
    why : str
        Why the claim cannot be decided here, or is not decided yet.
    """

    name: str = ""
    where: str
    says: str
    effect: str = ""
    plan: str = ""
    measure: EffectFunction = lambda table: {}
    rows: Selection = field(default_factory=dict)
    least: float = -math.inf
    most: float = math.inf
    ratio: bool = False
    equivalence: bool = False
    universal: bool = False
    settings: str = ""
    counted: bool = False
    step: float = 0.0
    why: str = ""

    def __call__(self, measure: EffectFunction) -> "Claim":
        """The claim with this measure, named after it if it has no other name."""
        name = self.name or measure.__name__.replace("_", "-")
        return replace(self, name=name, measure=measure)

    @property
    def needs(self) -> str:
        """The effects for which the claim holds, in words: "1 or less"."""
        if math.isinf(self.least):
            return f"{short(self.most)} {OR_LESS}"
        if math.isinf(self.most):
            return f"{short(self.least)} {OR_MORE}"
        return f"{short(self.least)} to {short(self.most)}"

    @property
    def margins(self) -> tuple[float, float]:
        """The range on both sides of no effect: an infinite end mirrors the other."""
        least, most = self.least, self.most
        if math.isinf(least):
            least = 1 / most if self.ratio else -most
        if math.isinf(most):
            most = 1 / least if self.ratio else -least
        return least, most

    def on_scale(self, effect: float) -> float:
        """An effect, or a limit of the range, on the scale of the interval."""
        if not self.ratio:
            return effect
        return math.log(effect) if effect > 0 else -math.inf

    def from_scale(self, value: float) -> float:
        """The inverse of `on_scale`; infinite ends stay infinite."""
        return math.exp(value) if self.ratio and math.isfinite(value) else value


# ------------------------------------------------------------------------------------------- cases


@dataclass(frozen=True)
class Estimate:
    """The mean effect of a case over its seeds, on the scale of its interval.

    Attributes
    ----------
    mean : float
        nan without an effect.
    error : float
        The standard error; 0 without noise, infinite for a single run.
    n_seeds : int
        1 if the runs of all seeds are the same.
    step : float
        The interval is wider by it on each side.
    limit : str
        The kind of its Limits, or "".
    """

    mean: float
    error: float
    n_seeds: int
    step: float
    limit: str

    @classmethod
    def of(cls, claim: Claim, effects: SeedEffects) -> "Estimate":
        """Equal effects of all seeds are those of one deterministic run, unless they are steps of a
        grid.
        """
        limit = ""
        if isinstance(effects, Limits):
            limit = effects.kind
            effects = effects.values
        step = claim.on_scale(claim.step) if claim.step else 0.0
        values = [claim.on_scale(value) for value in effects]
        if not values:
            return cls(math.nan, math.inf, 0, step, limit)
        mean = mean_of(values)
        if mean.sd is None:
            return cls(mean.value, 0.0 if claim.counted else math.inf, 1, step, limit)
        alike = mean.sd == 0.0 and not step
        return cls(mean.value, mean.sd / math.sqrt(mean.n), 1 if alike else mean.n, step, limit)

    @property
    def ends_are_known(self) -> tuple[bool, bool]:
        """Whether the interval has a lower end, and an upper end."""
        known = math.isfinite(self.error)
        return known and self.limit in ("", OR_MORE), known and self.limit in ("", OR_LESS)

    def interval(self, level: float) -> tuple[float, float]:
        """Student's interval, infinite on a side where the effect is not known."""
        has_low, has_high = self.ends_are_known
        half = self.step
        if 0.0 < self.error < math.inf:
            half += float(stdtrit(self.n_seeds - 1, 1 - level / 2)) * self.error
        low = self.mean - half if has_low else -math.inf
        high = self.mean + half if has_high else math.inf
        return low, high

    def p_value(self, limits: Sequence[float]) -> float:
        """The least level at which the interval contains none of the limits of a range; 1 if it
        contains one at every level.
        """
        has_low, has_high = self.ends_are_known
        is_known = [has_high if limit > self.mean else has_low for limit in limits]
        clearance = min(abs(limit - self.mean) for limit in limits) - self.step
        if not all(is_known) or clearance < 0:
            return 1.0
        if self.error == 0.0:
            return 0.0
        return 2 * float(stdtr(self.n_seeds - 1, -clearance / self.error))


@dataclass(frozen=True)
class Case:
    """The effect in one case and its outcome.

    Attributes
    ----------
    mean : float
        The mean over the seeds, of a ratio the geometric one; nan without an effect.
    low, high : float
        The interval at the level at which the case was tested; infinite where it has no end.
    n_seeds : int
        The number of runs that differ.
    level : float
        1 less the confidence of the interval.
    holds : bool or None
        True for a yes, False for a no, None for an open or vacuous case.
    limit : str
        The kind of its Limits, or "".
    """

    name: str
    mean: float
    low: float
    high: float
    n_seeds: int
    level: float
    holds: bool | None
    limit: str = ""

    @property
    def is_vacuous(self) -> bool:
        """Whether no run could have contradicted the claim."""
        return self.limit == VACUOUS

    @property
    def outcome(self) -> str:
        """yes, no, open or vacuous."""
        if self.is_vacuous:
            return VACUOUS
        return {True: "yes", False: "no", None: "open"}[self.holds]


def decided_cases(claim: Claim, effects: Effects) -> list[Case]:
    """The cases of a claim that were run, decided by the steps of Holm (1979).

    They are tested in the order of their p-values, equal ones by name. With k cases not yet decided
    the next has the level LEVEL / k. The first that stays open ends the testing: those after it
    have its level. Vacuous cases are not tested.
    """
    estimates = {
        name: Estimate.of(claim, values)
        for name, values in effects.items()
        if isinstance(values, Limits) or len(values)
    }
    ends = [claim.on_scale(end) for end in (claim.least, claim.most) if math.isfinite(end)]
    tested = [name for name, estimate in estimates.items() if estimate.limit != VACUOUS]
    tested.sort(key=lambda name: (estimates[name].p_value(ends), name))
    cases: dict[str, Case] = {}
    remaining = len(tested)
    for name in tested:
        cases[name] = _case(claim, name, estimates[name], LEVEL / remaining)
        if cases[name].holds is not None:
            remaining -= 1
    return [
        cases.get(name) or _case(claim, name, estimate, LEVEL)
        for name, estimate in estimates.items()
    ]


def _case(claim: Claim, name: str, estimate: Estimate, level: float) -> Case:
    low, high = map(claim.from_scale, estimate.interval(level))
    return Case(
        name,
        claim.from_scale(estimate.mean),
        low,
        high,
        estimate.n_seeds,
        level,
        _holds(claim, estimate, low, high),
        estimate.limit,
    )


def _holds(claim: Claim, estimate: Estimate, low: float, high: float) -> bool | None:
    """Whether the claim holds for the whole interval; None if it does for a part."""
    if not any(estimate.ends_are_known):
        return None
    if claim.least <= low and high <= claim.most:
        return True
    return False if high < claim.least or low > claim.most else None


# ---------------------------------------------------------------------------------------- verdicts


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
        """The numbers of cases by outcome: "5, 1, 0", or "5, 1, 0 (2 vacuous)"."""
        if not self.cases:
            return ""
        counts = Counter(case.outcome for case in self.cases)
        numbers = ", ".join(str(counts[kind]) for kind in OUTCOMES)
        return f"{numbers} ({counts[VACUOUS]} vacuous)" if counts[VACUOUS] else numbers


def verdict_of(claim: Claim, cases: Sequence[Case]) -> str:
    """The verdict on a claim that was run."""
    counted = [case for case in cases if not case.is_vacuous]
    n_yes = sum(case.holds is True for case in counted)
    n_no = sum(case.holds is False for case in counted)
    if not cases:
        return NOT_RUN
    if not counted:
        return VACUOUS
    if n_yes == len(counted):
        return EQUIVALENT if _are_equivalent(claim, counted) else REPRODUCED
    if n_no == len(counted) or (n_no and claim.universal):
        return NOT
    if n_yes and n_no:
        return MIXED
    if 2 * n_yes > len(counted):
        return MOSTLY
    return MOSTLY_NOT if 2 * n_no > len(counted) else UNDECIDED


def _are_equivalent(claim: Claim, cases: Iterable[Case]) -> bool:
    """Whether the claim says "as good as", and all intervals are within both margins."""
    least, most = claim.margins
    return claim.equivalence and all(least <= case.low and case.high <= most for case in cases)


def judge(claim: Claim, table: Frame, plans: Sequence[str] = ()) -> Judged:
    """A claim judged by the rows of its plans (see `rfx.reporting.effects.frame`)."""
    if not claim.plan:
        return Judged(claim, plans, UNTESTABLE, why=claim.why)
    try:
        effects = {} if table.empty else claim.measure(select(table, claim.rows))
    except RfxError as error:
        return Judged(claim, plans, NOT_RUN, why=str(error))
    cases = decided_cases(claim, effects)
    verdict = verdict_of(claim, cases)
    why = claim.why if verdict in (UNDECIDED, NOT_RUN) else ""
    return Judged(claim, plans, verdict, cases, why)


def judged(
    papers: Iterable[Folder], find: Callable[[str], Sequence[Row]], names: Collection[str] = ()
) -> list[tuple[Folder, list[Judged]]]:
    """The judged claims of each paper with claims, in the order of VERDICTS.

    Parameters
    ----------
    papers : iterable of Folder
    find : callable
        Returns the rows of a plan by its full name, such as yen2014-table1.
    names : collection of str
        Only claims with these names; all of them by default.
    """
    rows_of, order = cache(find), [*VERDICTS]

    def rank(one: Judged) -> int:
        return order.index(one.verdict)

    @cache
    def table_of(plans: tuple[str, ...]) -> Frame:
        return frame(row for plan in plans for row in rows_of(plan))

    verdicts = []
    for paper in papers:
        own = []
        for claim in paper.claims:
            if not names or claim.name in names:
                plans = tuple(f"{paper.name}-{name}" for name in claim.plan.split())
                own.append(judge(claim, table_of(plans), plans))
        if own:
            verdicts.append((paper, sorted(own, key=rank)))
    return verdicts
