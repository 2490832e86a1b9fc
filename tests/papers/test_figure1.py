"""Figure 1 of Yen et al. (2014), from small runs: the kernel's line against its definition, curves
and their table.
"""

from dataclasses import replace

import numpy as np
import pytest

from rfx import data, kernels, losses, methods, papers
from rfx.errors import DataError, UsageError
from rfx.papers.yen2014 import figure1 as yen
from rfx.plans import plan
from rfx.records.run import Run
from rfx.reporting import figures, tables
from rfx.reporting.tables_render import texts
from rfx.runs import single

DATASET = "sphere:n=300,n_test=100,d=3"
SHARED = {"kernel": "perceptron", "perceptron_scale": "unit", "scaling": "minmax11"}


def ran(method, seed=0, **options):
    traced = {} if method == "kernel" else {"trace": True, "curve": "test"}
    spec = {
        "dataset": DATASET,
        "method": method,
        "label": "figure1",
        "seed": seed,
        "options": SHARED | options,
    } | traced
    return replace(single.execute(Run.of(spec)), dataset="cod-rna")


@pytest.fixture(scope="module")
def rows():
    found = []
    for seed in (0, 1):
        found.append(ran("kernel", seed, bias=False, lam=0.5))
        found.append(ran("sparse-rf", seed, lam=2.0, n_features=400, rounds=8))
        found += [
            ran("boosting", seed, lam=2.0, n_features=60, per_step=1, threshold=threshold)
            for threshold in ("surrogate", "exact")
        ]
    return found


def test_the_line_is_the_right_hand_side_of_equation_22(rows):
    split = data.load(DATASET)
    method = methods.create("kernel", task="binary", bias=False, lam=0.5, **SHARED).fit(
        split.X_train, split.y_train
    )
    K = kernels.block("perceptron", method.model.support, method.model.support, method.model.params)
    norm = np.sqrt(method.model.coef[:, 0] @ K @ method.model.coef[:, 0])
    loss = losses.SquaredHinge.value(
        method.decision_function(split.X_train), np.sign(split.y_train)
    ).mean()
    curves, line = yen.found(rows)["cod-rna"]
    assert curves["sparse-rf"].n == 300 and line.lam == 0.5
    assert line.seeds == [0, 1] and line.bound(0) == line.bounds[0] == pytest.approx(
        2.0 / 300 * norm + loss, rel=1e-4
    )
    assert line.errors[0] == pytest.approx(1 - method.score(split.X_test, split.y_test)["score"])
    # seeds without their own line
    assert line.bound(2) == pytest.approx(np.mean(line.bounds))


def test_curves_end_where_the_runs_do(rows):
    curves, _ = yen.found(rows)["cod-rna"]
    assert list(curves) == list(yen.CURVES)
    for key, runs in curves.items():
        own = [row for row in rows if yen.curve_of(row) == key]
        assert len(own) == len(runs.rows) == 2
        assert runs.ends(1) == pytest.approx([row["objective"] / 300 for row in own])
        assert runs.ends(2) == pytest.approx([1 - row["score"] for row in own])
        at, mean, low, high = runs.band(1)
        assert np.all(np.diff(at) >= 0) and np.all(low <= mean) and np.all(mean <= high)
        assert mean[-1] == pytest.approx(np.mean(runs.ends(1))) and (low[-1], high[-1]) == (
            min(runs.ends(1)),
            max(runs.ends(1)),
        )
    # one number by hand: the mean over seeds of the best value by then
    at, mean, _, _ = curves["sparse-rf"].band(1)
    by_then = [run[1][run[0] <= at[30]][-1] for run in curves["sparse-rf"].runs]
    assert mean[30] == pytest.approx(np.mean(by_then))


def test_seconds_to_a_bound(rows):
    runs = yen.found(rows)["cod-rna"][0]["boosting-exact"]
    seconds, objectives, _ = runs.runs[0]
    second = runs.runs[1]
    line = yen.Line(0.5, [0, 1], [objectives[10], second[1][5]], [0.1, 0.2], [1.0, 1.0])
    assert runs.reached(line) == [seconds[10], second[0][5]]
    assert runs.reached(yen.Line(0.5, [0], [objectives[-1] - 1e-3], [0.1], [1.0]))[0] is None


def test_the_table_says_what_is_drawn(rows):
    table = tables.build("yen2014-figure1", rows, None, papers.tables())
    (section,) = table.sections
    assert [line[0] for line in texts(section)] == ["Kernel (dashed)", *yen.CURVES.values()]
    assert "0 to 2500 s, 0.1 to 0.8, 0 to 0.35" in section.title and "± " in texts(section)[1][3]
    cells = {cell["method"]: cell for cell in table.cells}
    objectives = [row["objective"] / 300 for row in rows if row["method"] == "sparse-rf"]
    assert (
        cells["sparse-rf"]["objective"] == pytest.approx(np.mean(objectives))
        and cells["sparse-rf"]["seeds"] == 2
    )
    for key in yen.CURVES:
        below = cells[key]["objective"] <= cells["kernel"]["objective"]
        assert (cells[key]["seconds_to_line"] is not None) >= below
    with pytest.raises(
        DataError,
        match=("no finished rows of yen2014-figure1; rfx run yen2014-figure1 makes them"),
    ):
        tables.build("yen2014-figure1", [], None, papers.tables())
    with pytest.raises(UsageError, match="yen2014-figure1 has no settings"):
        tables.build("yen2014-figure1", rows, "paper", papers.tables())


def test_a_table_without_the_kernels_row(rows):
    table = tables.build(
        "yen2014-figure1", [row for row in rows if row["method"] != "kernel"], None, papers.tables()
    )
    assert [line[-1] for line in texts(table.sections[0])] == ["-"] * 3


def test_the_figure_has_every_curve_and_the_line(rows, tmp_path):
    png, svg, *_ = figures.draw("yen2014-figure1", rows, tmp_path / "f", None, papers.figures())
    text = svg.read_text()
    assert png.stat().st_size > 10_000
    for key in (*yen.CURVES, "kernel"):
        for quantity in ("objective", "error"):
            assert f'id="figure1-cod-rna-{key}-{quantity}"' in text


def test_the_plan_has_all_curves_on_one_basis():
    whole, quick = (
        plan.load("yen2014-figure1", quick, papers.plans()).runs for quick in (False, True)
    )
    for runs, names in ((whole, set(yen.DATA)), (quick, {"cod-rna"})):
        assert {yen.panel_of(run.dataset, run.split) for run in runs} == names
        assert all(
            {**SHARED, "loss": "squared_hinge"}.items() <= run.options.items() for run in runs
        )
        for name in names:
            traced = [
                run
                for run in runs
                if yen.panel_of(run.dataset, run.split) == name and run.method != "kernel"
            ]
            assert len({run.options["lam"] for run in traced}) == 1 and all(
                run.trace and run.curve == "test" for run in traced
            )
    assert {run.seed for run in whole if run.method == "boosting"} == set(range(5))
    seeds = {
        name: [
            run.seed
            for run in whole
            if run.method == "kernel" and yen.panel_of(run.dataset, run.split) == name
        ]
        for name in yen.DATA
    }
    assert seeds == {
        name: [0] if name in ("covtype", "ijcnn1-tr") else [0, 1, 2, 3, 4] for name in yen.DATA
    }
