"""Claims of the papers: intervals, verdicts, and the table and report that show them."""

import math
import re

import numpy as np
import pytest
from scipy import stats
from shell import called

from rfx import papers
from rfx.errors import DataError
from rfx.plans import catalogue
from rfx.records import results
from rfx.records.run import Result
from rfx.reporting import claim_figures, claim_tables, claims, figures
from rfx.reporting.claims import Claim, decided_cases, judge
from rfx.reporting.effects import (
    VACUOUS,
    Limits,
    difference,
    exponent,
    frame,
    ratio,
    reached,
    share,
)

OF_ALL = re.compile(r"\b(always|every method|the least)\b")
SOURCES = ("printed", "authors' program", "held-out rows", "test rows", "ours")


def row(method, seed, score, status="ok", **more):
    own = {"method": method, "seed": seed, "score": score, "status": status}
    return Result(dataset="d", metric="rmse", **own | more)


SOME = frame([row("rf", 0, 1.0)])


def claim(effects, **more):
    texts = {"name": "name", "where": "Table 1", "says": "It holds.", "effect": "a ratio"}
    return Claim(plan="plan", measure=lambda table: effects, **texts, **more)


YES, NO, OPEN = [2.0, 2.1, 2.05], [0.5, 0.51, 0.49], [0.5, 1.5, 1.0]


def test_an_interval_is_students_at_the_level_of_its_step():
    """Holm's steps: the surest case of three has 5 %/3, the next 5 %/2, the last 5 %."""
    own = claim({"a": OPEN, "b": [2.0, 2.2, 2.1], "c": YES}, least=1.0)
    cases = {case.name: case for case in judge(own, SOME).cases}
    assert {name: case.level for name, case in cases.items()} == pytest.approx(
        {"c": 0.05 / 3, "b": 0.05 / 2, "a": 0.05 / 1}
    )
    low, high = stats.t.interval(1 - 0.05 / 2, 2, 2.1, stats.sem([2.0, 2.2, 2.1]))
    assert (cases["b"].mean, cases["b"].low, cases["b"].high) == pytest.approx((2.1, low, high))


def test_holm_decides_what_bonferroni_leaves_open():
    """The p-value of the second case is 4 %: above 5 %/2, but below 5 % after the first."""
    spread = np.array([-1.0, 0.0, 1.0])
    second = (1.0 + stats.t.ppf(1 - 0.04 / 2, 2) * stats.sem(spread) + spread).tolist()
    after_a_sure_one = judge(claim({"first": YES, "second": second}, least=1.0), SOME)
    assert after_a_sure_one.outcomes == "2, 0, 0"
    after_an_open_one = judge(claim({"first": OPEN, "second": second}, least=1.0), SOME)
    assert after_an_open_one.outcomes == "0, 0, 2"


@pytest.mark.parametrize("n_far", [0, 3])
def test_a_wrong_decision_is_rare(n_far):
    """Six cases share half of their noise. The effects of the first are far from the limit, those
    of the others at it, so that every decision on them is wrong: 5 % of the claims have one.
    """
    rng, n_claims, n_wrong = np.random.default_rng(0), 1000, 0
    for _ in range(n_claims):
        noise = rng.standard_normal((5, 1)) + rng.standard_normal((5, 6))
        noise[:, :n_far] += 20
        effects = {str(place): column.tolist() for place, column in enumerate(noise.T)}
        cases = decided_cases(claim({}, least=0.0), effects)
        n_wrong += any(case.holds is not None for case in cases[n_far:])
    assert n_wrong <= n_claims * 0.05 + 3 * (n_claims * 0.05 * 0.95) ** 0.5


def test_a_ratio_has_its_interval_on_the_logarithm():
    [own] = decided_cases(claim({}, ratio=True, least=1.0), {"a": [1.0, 2.0, 4.0]})
    assert own.mean == pytest.approx(2.0)
    assert own.low * own.high == pytest.approx(4.0)


@pytest.mark.parametrize(
    ("outcomes", "verdict", "of_all"),
    [
        ([YES], "reproduced", "reproduced"),
        ([NO], "not reproduced", "not reproduced"),
        ([OPEN], "undecided", "undecided"),
        ([[2.0]], "undecided", "undecided"),
        ([YES, NO], "mixed", "not reproduced"),
        ([YES, NO, OPEN, OPEN], "mixed", "not reproduced"),
        # more than half, and its mirror
        ([YES, YES, OPEN], "mostly reproduced", "mostly reproduced"),
        ([NO, NO, OPEN], "mostly contradicted", "not reproduced"),
        ([YES, OPEN], "undecided", "undecided"),
        ([NO, OPEN], "undecided", "not reproduced"),
        # vacuous cases count nowhere
        ([YES, Limits(YES, VACUOUS), Limits(YES, VACUOUS)], "reproduced", "reproduced"),
        ([Limits(YES, VACUOUS)], "vacuous", "vacuous"),
        # a case without an effect is open, one that was not run is none
        ([YES, Limits([], "too few sizes")], "undecided", "undecided"),
        ([YES, []], "reproduced", "reproduced"),
        ([], "not run", "not run"),
        ([[]], "not run", "not run"),
    ],
)
def test_a_verdict_follows_from_the_cases(outcomes, verdict, of_all):
    effects = {str(place): effects for place, effects in enumerate(outcomes)}
    assert judge(claim(effects, least=1.0), SOME).verdict == verdict
    assert judge(claim(effects, least=1.0, universal=True), SOME).verdict == of_all


@pytest.mark.parametrize(
    ("effects", "verdict"),
    [
        ([0.01, 0.0, -0.01], "no difference of more than the margin"),
        # better by more than the margin is as good
        ([0.51, 0.5, 0.49], "reproduced"),
        ([-0.51, -0.5, -0.49], "not reproduced"),
        # no difference was found, but one may be there
        ([0.5, -0.5, 0.0], "undecided"),
    ],
)
def test_as_good_as_needs_a_margin(effects, verdict):
    assert judge(claim({"a": effects}, least=-0.1, equivalence=True), SOME).verdict == verdict


@pytest.mark.parametrize(
    ("kind", "outcome", "low", "high"),
    [
        ("or more", "yes", 1.93, math.inf),
        ("or less", "open", -math.inf, 2.17),
        ("diverged", "open", -math.inf, math.inf),
        ("vacuous", "vacuous", -math.inf, math.inf),
    ],
)
def test_limits_decide_on_one_side_alone(kind, outcome, low, high):
    [own] = decided_cases(claim({}, least=1.0), {"a": Limits(YES, kind)})
    assert own.outcome == outcome
    assert (own.low, own.high) == pytest.approx((low, high), abs=0.005)


def test_equal_runs_of_all_seeds_are_one_run_which_decides():
    [own] = decided_cases(claim({}, least=1.0), {"a": [2.0] * 5})
    assert (own.n_seeds, own.low, own.high, own.outcome) == (1, 2.0, 2.0, "yes")


@pytest.mark.parametrize(("features", "outcome"), [(4.0, "yes"), (1.5, "open"), (0.25, "no")])
def test_a_number_found_on_a_grid_is_known_to_a_step(features, outcome):
    [own] = decided_cases(claim({}, least=1.0, ratio=True, step=2.0), {"a": [features] * 5})
    assert (own.low, own.high) == pytest.approx((features / 2, features * 2))
    assert (own.n_seeds, own.outcome) == (5, outcome)


def test_a_claim_is_named_after_its_measure():
    @Claim(where="Table 1", says="It holds.", plan="plan")
    def it_holds(table):
        return {"d": [1.0]}

    assert it_holds.name == "it-holds"
    assert it_holds.measure(SOME) == {"d": [1.0]}


def lacks(table):
    raise DataError("no trace")


@pytest.mark.parametrize(
    ("own", "table", "verdict", "why"),
    [
        (Claim(where="w", says="s", why="not public"), SOME, "untestable here", "not public"),
        (claim({"a": [1.0]}), frame([row("rf", 0, 1.0, "failed")]), "not run", ""),
        (Claim(where="w", says="s", plan="p")(lacks), SOME, "not run", "no trace"),
    ],
)
def test_a_claim_without_a_plan_or_rows_says_why(own, table, verdict, why):
    judged = judge(own, table)
    assert (judged.verdict, len(judged.cases), judged.why) == (verdict, 0, why)


RF, RB = {"method": "rf"}, {"method": "rb"}


def test_pairs_are_of_one_seed_and_the_newest_run():
    rows = [
        row("rf", 0, 9.0),
        row("rf", 0, 2.0),
        row("rf", 1, 3.0),
        row("rf", 2, 5.0, "failed"),
        row("rb", 0, 1.0),
        row("rb", 2, 1.0),
        row("rb", 3, 0.0),
    ]
    assert ratio(frame(rows), "score", RF, RB) == {"d": [2.0]}
    assert difference(frame(rows), "score", RF, RB) == {"d": [1.0]}
    assert share(frame(rows[1:2]), "score", 2.0) == {"d": [1.0]}


def test_an_exponent_is_that_of_each_seed_with_enough_places():
    rows = [row("rf", seed, 3.0 * size**2, lam=size) for seed in (0, 1) for size in (1, 2, 4)]
    rows += [row("rf", 2, 1.0, lam=size) for size in (1, 2)]
    assert exponent(frame(rows), "score", "lam") == {"d": pytest.approx([2.0, 2.0])}


def test_a_method_that_never_gets_there_costs_at_least_what_was_tried():
    rows = [
        row("rb", 0, 1.0, n_iter=2),
        row("rf", 0, 3.0, n_iter=4),
        row("rf", 0, 2.0, n_iter=8),
    ]
    limited = reached(frame(rows), "n_iter", "score", RB, RB, RF)
    assert limited == {"d": Limits([4.0], "or more")}
    rows.append(row("rf", 0, 1.0, n_iter=6))
    assert reached(frame(rows), "n_iter", "score", RB, RB, RF) == {"d": [3.0]}


def test_the_blocks_and_the_picture_show_every_case():
    effects = {"a": YES, "b": Limits(NO, "or more"), "c": [1.5], "d": Limits([], "too few sizes")}
    folder = catalogue.Folder("yen2014", "A. Author: Title, NIPS 2014.", {}, {}, {}, None)
    own = judge(claim(effects, least=1.0), SOME, ["yen2014-plan"])
    text = claim_tables.text([(folder, [own])], 100)
    assert text.splitlines()[2:9] == [
        "name: undecided (Table 1)",
        "  It holds.",
        "  Effect: a ratio.",
        "  yes: a 2.05 [1.79, 2.31]; needs 1 or more; 3 seeds",
        "  open: b 0.5 [0.456, inf]; needs 1 or more; 3 seeds; known as 0.5 or more",
        "  open: c 1.5; needs 1 or more; one run; a single seed",
        "  open: d no effect; needs 1 or more; 0 seeds; too few sizes",
    ]
    chart = claim_figures.chart(folder, [own])
    figures.paint(chart)
    spots = [curve for panel in chart for curve in panel.curves if curve.kind == "spots"]
    assert [(spot.gid, spot.label) for spot in spots] == [
        ("name-a", "yes"),
        ("name-b", "open"),
        ("name-c", "open"),
    ]


def test_a_claim_is_chosen_by_name(request):
    rows = request.config.rootpath / ROWS
    words = ["table", "claims", "--results", rows, "--paper", "yen2014", "--claim"]
    assert "\nrate: vacuous" in called(*words, "rate").stdout
    assert "rf-rate" not in called(*words, "rate").stdout
    assert "--claim rates" in str(called(*words, "rates").exception)


def all_claims():
    return [(folder, own) for folder in papers.folders() for own in folder.claims]


def test_every_claim_is_complete():
    known, names = papers.plans(), set()
    for folder, own in all_claims():
        assert (folder.name, own.name) not in names
        names.add((folder.name, own.name))
        assert own.where and own.says.endswith(".")
        if own.plan:
            for plan in own.plan.split():
                assert f"{folder.name}-{plan}" in known, own.name
            assert own.effect and (math.isfinite(own.least) or math.isfinite(own.most))
            assert own.settings.startswith(SOURCES), own.name
            assert own.universal == bool(OF_ALL.search(own.says)), own.name
        else:
            assert own.why, own.name


def test_every_paper_has_claims_in_the_order_of_years():
    years = [folder.name[-4:] for folder in papers.folders() if folder.claims]
    assert years == sorted(years) and len(years) == len(papers.names())


ROWS = "docs/rows"


@pytest.mark.parametrize("n_grids", [4, 64])
def test_claims_of_partial_results_are_judged_by_what_there_is(request, n_grids):
    """One size of random binning is missing."""
    path = request.config.rootpath / ROWS / "wu2016-theorem1.csv"
    rows = [row for row in results.read(path) if row["params"].get("n_grids") != n_grids]
    find = lambda plan: rows if plan == "wu2016-theorem1" else []
    [(_, own)] = claims.judged([papers.folder("wu2016")], find)
    verdicts = {one.claim.name: one.verdict for one in own}
    assert verdicts["rate-to-limit"] in ("mostly contradicted", "not reproduced", "undecided")
    assert (verdicts["larger-kappa"] == "not run") == (n_grids == 64)


@pytest.mark.slow
def test_the_report_of_the_rows_of_the_documents_is_whole(request, tmp_path, monkeypatch):
    """Every table and chart is built and painted; no file of a figure is written, which takes most
    of the time.
    """
    monkeypatch.setattr(figures, "save", lambda chart, figure, stem: figures._targets(stem))
    done = called("report", "--results", request.config.rootpath / ROWS, "--output", tmp_path)
    page = (tmp_path / "index.html").read_text()
    assert done.stdout.strip() == str(tmp_path / "index.html")
    assert "No table: " not in page
    assert "No figure: " not in page
    for name in ("yen2014-table1", "dai2014-synthetic", "wu2016-fig5", "sinha2016-joint"):
        assert f'<article id="{name}"' in page
        assert f'<li id="{name}">' not in page
