"""The picture of a paper's claims: the intervals of all cases against the claimed ranges."""

import math
from collections.abc import Sequence

from rfx.errors import DataError
from rfx.plans.catalogue import Folder
from rfx.reporting import style
from rfx.reporting.claims import Case, Claim, Judged
from rfx.reporting.effects import VACUOUS
from rfx.reporting.figures import Chart, Curve, Panel, in_lines

_LOOKS: dict[str, style.Look] = {
    "yes": {"color": "#0072B2", "marker": "o"},
    "no": {"color": "#D55E00", "marker": "s"},
    "open": {"color": "0.35", "marker": "D"},
    VACUOUS: {"color": "0.75", "marker": "x"},
}
_NOTE = (
    "Shaded: the effects for which the claim holds. The interval of a case has the level at which"
    " the case was tested by Holm's steps; it is not known beyond the frame. A mark without one: a"
    " single run, runs that are the same, or a vacuous case."
)
_COLUMNS, _HEIGHT, _LONGEST = 3, 1.55, 26


def chart(paper: Folder, judged: Sequence[Judged], setting: None = None) -> Chart:
    """A panel for each claim with cases that have an effect; DataError if there is none."""
    panels = [_panel(one) for one in judged if _drawn(one.cases)]
    if not panels:
        raise DataError(f"no claim of {paper.name} has rows; rfx reproduce --paper {paper.name}")
    title = f"Claims of {paper.citation}"
    return Chart(title, [_NOTE], in_lines(panels, _COLUMNS), _HEIGHT)


def _drawn(cases: Sequence[Case]) -> list[Case]:
    return [case for case in cases if math.isfinite(case.mean)]


def _panel(judged: Judged) -> Panel:
    claim, cases = judged.claim, _drawn(judged.cases)
    places = list(range(len(cases), 0, -1))
    low, high = _frame(claim, cases)
    curves = []
    for case, place in zip(cases, places):
        look = _LOOKS[case.outcome]
        if math.isfinite(case.low) or math.isfinite(case.high):
            ends = max(case.low, low), min(case.high, high)
            line: style.Look = {"color": style.colour(look), "linewidth": 1.2}
            curves.append(Curve(ends, (place, place), line))
        curves.append(_spot(claim, case, place, look))

    def dress(axes) -> None:
        axes.axvspan(max(claim.least, low), min(claim.most, high), color="#0072B2", alpha=0.1)
        axes.set_yticks(places, [_last_words(case.name) for case in cases], fontsize=5)
        axes.set_ylim(0.4, len(cases) + 0.6)
        if claim.ratio:
            style.log_places(axes)
        axes.set_xlim(low, high)

    return Panel(claim.name, judged.verdict, "", curves, dress=dress)


def _last_words(name: str) -> str:
    """The end of a long name, which tells the cases of a claim apart."""
    return name if len(name) <= _LONGEST else f"…{name[1 - _LONGEST :]}"


def _spot(claim: Claim, case: Case, place: int, look: style.Look) -> Curve:
    """The mean of a case, written with its interval."""
    return Curve(
        [case.mean],
        [place],
        look | {"s": 9, "zorder": 3},
        case.outcome,
        style.identifier(claim.name, case.name),
        {case.mean: (case.low, case.high)},
        kind="spots",
    )


def _frame(claim: Claim, cases: Sequence[Case]) -> tuple[float, float]:
    """The ends of the axis: all means, limits and known ends of intervals, and a twentieth more."""
    ends = [claim.least, claim.most]
    for case in cases:
        ends += [case.mean, case.low, case.high]
    scaled = [end for end in map(claim.on_scale, ends) if math.isfinite(end)]
    margin = 0.05 * (max(scaled) - min(scaled)) or 0.05
    return claim.from_scale(min(scaled) - margin), claim.from_scale(max(scaled) + margin)
