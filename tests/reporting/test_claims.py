"""Claims of the papers: intervals, verdicts, and the table and report that show them."""

import math

import numpy as np
import pytest
from scipy import stats
from shell import called

from rfx import papers
from rfx.errors import DataError
from rfx.records import results
from rfx.reporting import claims, figures
from rfx.reporting.claims import (
    Claim,
    Limits,
    difference,
    exponent,
    frame,
    judge,
    ratio,
    reached,
    share,
)

SOURCES = ("printed", "authors' program", "held-out rows", "test rows", "ours")


def row(method, seed, score, status="ok", **more):
    shared = {"dataset": "d", "metric": "rmse", "params": {}}
    return shared | {"method": method, "seed": seed, "score": score, "status": status} | more


SOME = frame([row("rf", 0, 1.0)])


def claim(effects, **more):
    return Claim("name", "Table 1", "It holds.", "a ratio", "plan", lambda table: effects, **more)


def test_an_interval_is_students_with_a_bonferroni_correction():
    effects = [1.0, 2.0, 4.0]
    own = claims.case(claim({}), "a", effects, cases=4)
    low, high = stats.t.interval(1 - 0.05 / 4, 2, np.mean(effects), stats.sem(effects))
    assert (own.mean, own.low, own.high) == pytest.approx((np.mean(effects), low, high))


def test_a_ratio_has_its_interval_on_the_logarithm():
    own = claims.case(claim({}, ratio=True), "a", [1.0, 2.0, 4.0])
    assert own.mean == pytest.approx(2.0)
    assert own.low * own.high == pytest.approx(4.0)


@pytest.mark.parametrize(
    ("effects", "verdict"),
    [
        ({"a": [2.0, 2.1, 2.05]}, "reproduced"),
        ({"a": [0.5, 0.51, 0.49]}, "not reproduced"),
        ({"a": [2.0, 2.1, 2.05], "b": [0.5, 0.51, 0.49]}, "partly"),
        ({"a": [0.5, 1.5, 1.0]}, "undecided"),
        ({"a": [2.0]}, "undecided"),
        # two of three cases are decided
        ({"a": [2.0, 2.1, 2.05], "b": [2.0, 2.1, 2.05], "c": [3.0]}, "partly"),
        # one of three is not enough
        ({"a": [2.0, 2.1, 2.05], "b": [0.5, 1.5, 1.0], "c": [3.0]}, "undecided"),
        # nor are any without one within the range
        ({"a": [0.5, 0.51, 0.49], "b": [0.5, 0.51, 0.49], "c": [3.0]}, "undecided"),
        ({}, "not run"),
        ({"a": []}, "not run"),
    ],
)
def test_a_verdict_follows_from_the_intervals(effects, verdict):
    assert judge(claim(effects, least=1.0), SOME).verdict == verdict
    # a bound that allows everything
    vacuous = judge(claim(effects, least=1.0, vacuous=True), SOME).verdict
    assert vacuous == ("bound vacuous" if verdict == "reproduced" else verdict)


@pytest.mark.parametrize(
    ("kind", "holds", "interval"),
    [
        ("or more", True, "1.93 or more"),
        ("or less", None, "2.17 or less"),
        ("diverged", None, "diverged"),
    ],
)
def test_limits_decide_on_one_side_alone(kind, holds, interval):
    own = claims.case(claim({}, least=1.0), "a", Limits([2.0, 2.1, 2.05], kind))
    assert own.holds is holds
    assert own.interval == interval


@pytest.mark.parametrize(
    ("grid", "expected"), [(False, (1, None, None, True)), (True, (5, 2.0, 2.0, True))]
)
def test_equal_runs_of_all_seeds_are_one_run_but_equal_steps_of_a_grid_are_several(grid, expected):
    own = claims.case(claim({}, least=1.0, grid=grid), "a", [2.0] * 5)
    assert (own.n, own.low, own.high, own.holds) == expected


def lacks(table):
    raise DataError("no trace")


@pytest.mark.parametrize(
    ("own", "table", "verdict", "why"),
    [
        (Claim("n", "w", "s", why="not public"), SOME, "untestable here", "not public"),
        (claim({"a": [1.0]}), frame([row("rf", 0, 1.0, "failed")]), "not run", ""),
        (Claim("n", "w", "s", "e", "p", lacks), SOME, "not run", "no trace"),
    ],
)
def test_a_claim_without_a_plan_or_rows_says_why(own, table, verdict, why):
    judged = judge(own, table)
    assert (judged.verdict, judged.cases, judged.why) == (verdict, (), why)


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
    assert ratio("score", RF, RB)(frame(rows)) == {"d": [2.0]}
    assert difference("score", RF, RB)(frame(rows)) == {"d": [1.0]}
    assert share("score", 2.0)(frame(rows[1:2])) == {"d": [1.0]}


def test_an_exponent_is_that_of_each_seed_with_enough_places():
    rows = [row("rf", seed, 3.0 * size**2, size=size) for seed in (0, 1) for size in (1, 2, 4)]
    rows += [row("rf", 2, 1.0, size=size) for size in (1, 2)]
    assert exponent("score", "size")(frame(rows)) == {"d": pytest.approx([2.0, 2.0])}


def test_a_method_that_never_gets_there_costs_at_least_what_was_tried():
    rows = [
        row("rb", 0, 1.0, n_iter=2),
        row("rf", 0, 3.0, n_iter=4),
        row("rf", 0, 2.0, n_iter=8),
    ]
    measure = reached("n_iter", "score", RB, RB, RF)
    assert measure(frame(rows)) == {"d": Limits([4.0], "or more")}
    assert measure(frame([*rows, row("rf", 0, 1.0, n_iter=6)])) == {"d": [3.0]}


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
    assert verdicts["rate-to-limit"] in ("reproduced", "partly", "not reproduced", "undecided")
    assert (verdicts["larger-kappa"] == "not run") == (n_grids == 64)


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
