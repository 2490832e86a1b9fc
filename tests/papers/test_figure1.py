"""Figure 1 of Yen et al. (2014), from small runs: the kernel's line against its definition, curves
and their table.
"""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from rfx import data, kernels, losses, methods, papers
from rfx.papers.yen2014 import curves as yen
from rfx.records.run import Run
from rfx.reporting import figures, tables
from rfx.reporting.tables import texts
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
    boosting = {"lam": 2.0, "n_features": 60, "per_step": 1}
    return [
        row
        for seed in (0, 1)
        for row in (
            ran("kernel", seed, bias=False, lam=0.5),
            ran("sparse-rf", seed, lam=2.0, n_features=400, rounds=8),
            ran("boosting", seed, threshold="surrogate", **boosting),
            ran("boosting", seed, threshold="exact", **boosting),
        )
    ]


@pytest.fixture(scope="module")
def panel(rows):
    """The curves and the kernel's line of the only data set."""
    return yen.figure1(rows)["cod-rna"]


def test_the_line_is_the_right_hand_side_of_equation_22(panel):
    split = data.load(DATASET)
    method = methods.create("kernel", task="binary", bias=False, lam=0.5, **SHARED).fit(
        split.X_train, split.y_train
    )
    model = method.model
    K = kernels.block("perceptron", model.support, model.support, model.params)
    norm = np.sqrt(model.coef[:, 0] @ K @ model.coef[:, 0])
    outputs = method.decision_function(split.X_train)
    loss = losses.SquaredHinge.value(outputs, np.sign(split.y_train)).mean()
    _, line = panel
    assert list(line.bounds) == [0, 1]
    assert line.bound(0) == pytest.approx(2.0 / 300 * norm + loss, rel=1e-4)
    # a seed without its own line
    assert line.bound(2) == pytest.approx(np.mean([*line.bounds.values()]))


@pytest.mark.parametrize("key", yen.CURVES)
def test_curves_end_where_the_runs_do(rows, panel, key):
    runs = panel[0][key]
    own = [row for row in rows if yen.curve_of(row) == key]
    assert runs.ends("objective") == pytest.approx([row["objective"] / 300 for row in own])
    assert runs.ends("error") == pytest.approx([1 - row["score"] for row in own])
    at, values = runs.band("objective")
    assert np.all(np.diff(at) >= 0)
    assert values[:, -1].tolist() == runs.ends("objective")
    # one number by hand: the best value of each seed by then
    steps = runs.runs.values()
    assert values[:, 30] == pytest.approx(
        [run["objective"][run["seconds"] <= at[30]][-1] for run in steps]
    )


def test_seconds_to_a_bound(panel):
    curves, line = panel
    runs = curves["boosting-exact"]
    first, second = runs.runs.values()
    reached = lambda *bounds: runs.reached(SimpleNamespace(bound=bounds.__getitem__))
    assert reached(first["objective"][10], second["objective"][5]) == [
        first["seconds"][10],
        second["seconds"][5],
    ]
    assert reached(first["objective"][-1] - 1e-3, 0.0) == [None, None]


def test_a_table_without_the_kernels_row(rows):
    own = [row for row in rows if row["method"] != "kernel"]
    table = tables.build("yen2014-figure1", own, None, papers.tables())
    assert [line[-1] for line in texts(table.sections[0])] == ["-"] * 3


def test_the_figure_has_every_curve_and_the_line(rows, tmp_path):
    _, svg, *_ = figures.draw("yen2014-figure1", rows, tmp_path / "f", None, papers.figures())
    text = svg.read_text()
    for key in (*yen.CURVES, "kernel"):
        assert f'id="figure1-cod-rna-{key}-objective"' in text
        assert f'id="figure1-cod-rna-{key}-error"' in text
