"""Plans, tables and figures of Dai et al. (2014), on generated rows, and of Sinha and Duchi (2016),
from rows of small runs.
"""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from rfx import papers
from rfx.data.virtual import triangles
from rfx.papers.dai2014 import curves as dai
from rfx.papers.sinha2016 import curves
from rfx.plans import plan
from rfx.records.run import Result, Run
from rfx.reporting import figures, tables
from rfx.reporting.tables import texts
from rfx.runs import single

pytestmark = pytest.mark.slow

SAMPLES = ["fig1-mnist", "fig1-cifar10", "fig1-imagenet", "fig1-qm7", "fig1-molecularspace"]
NAMES = ["fig1-adult", "fig1-mnist8v6", "fig1-forest", *SAMPLES, "synthetic", "complexity"]


def row(label, method, **more):
    params = {"label": label, "seconds_steps": 2.0, "samples": 1000} | more.pop("params", {})
    given = {
        "key": "k",
        "status": "ok",
        "message": "",
        "method": method,
        "params": params,
        "seconds_fit": 3.0,
        "task": "binary",
        "score": 0.85,
        "dataset": "a9a",
        "cpu": "some",
        "threads": 2,
        "seed": 0,
    }
    return Result(**given | more)


CURVE = [
    {"samples": 100 * 2**k, "seconds": 0.1 * 2**k, "steps": 2**k, "error": 0.5 / 2**k}
    for k in range(11)
]


@pytest.mark.parametrize("name", NAMES)
def test_plans_have_a_quick_form_and_a_table_and_a_figure(name):
    known = papers.plans()
    whole, quick = (plan.load(f"dai2014-{name}{end}", known=known) for end in ("", "-quick"))
    assert whole.table == f"dai2014-{name}" in papers.figures()
    assert quick.runs
    if name.startswith("fig1-") and name not in SAMPLES:
        assert {run.method for run in whole.runs} == set(dai.METHODS) - {"kernel", "mlp"}
        criteria = {str(run.label).partition("-")[2] for run in whole.runs}
        assert {"sc1", "sc2"} <= criteria <= set(dai.CRITERIA)


@pytest.mark.parametrize("name", ["mnist", "cifar10", "imagenet", "molecularspace"])
def test_tables_and_figures_of_plans_without_rows_in_the_documents(name):
    rows = [row(name, method, params={"curve": CURVE}) for method in ("doubly-sgd", "n-sdca")]
    table = built(f"fig1-{name}", rows)
    assert table.cells and all(texts(section) for section in table.sections)
    chart = papers.figures()[f"dai2014-fig1-{name}"](rows)
    assert figures.paint(chart)
    assert f"fig1-{name}-doubly-sgd" in {curve.gid for panel in chart for curve in panel.curves}


def built(name, rows):
    return tables.build(f"dai2014-{name}", rows, None, papers.tables())


def tried(name, seed, held, **params):
    """A row of the choice with a test score that would choose otherwise."""
    params |= {"loss": "hinge", "held_out_score": held}
    return row(name, "doubly-sgd", seed=seed, score=0.9 - held, params=params)


def test_settings_are_chosen_by_held_out_rows_alone():
    whole, quick = (
        plan.load(f"dai2014-choice{end}", known=papers.plans()) for end in ("", "-quick")
    )
    assert 0 < len(quick.runs) < len(whole.runs)
    assert all(run.holdout for run in whole.runs)
    steps = ((1.0, 0.81), (3.0, 0.84), (10.0, 0.8))
    rows = [tried("choice-adult", 0, held, step0=step) for step, held in steps]
    rows += [
        row(
            "choice-qm7",
            "doubly-sgd",
            params={"gamma": gamma, "held_out_score": 9.0, "held_out_mae": mae, "mae": 9 - mae},
            task="regression",
            dataset="qm7",
        )
        for gamma, mae in ((4e-4, 5.5), (8e-4, 5.25))
    ]
    table = built("choice", rows)
    assert [texts(section) for section in table.sections] == [
        [["1", "19.00", "2"], ["3", "16.00 !", "2"], ["10", "20.00", "2"]],
        [["0.0004", "5.50", "2"], ["0.0008", "5.25 !", "2"]],
    ]
    assert [cell["setting"] for cell in table.cells if cell["chosen"]] == ["adult", "qm7"]


# ---------------------------------------------------------------------- one objective, its sources


def test_every_setting_of_a_papers_plan_has_a_source():
    table = tables.build("sources", [], None, papers.tables())
    assert [section.title for section in table.sections] == [
        name for name in papers.plans() if name.startswith(tuple(papers.names()))
    ]
    assert all(all(line) for section in table.sections for line in texts(section))
    dai_sources = [cell["source"] for cell in table.cells if cell["plan"].startswith("dai2014-")]
    assert not any(source.startswith("test rows") for source in dai_sources)
    nu = [
        (cell["values"], cell["runs"], cell["source"].partition(":")[0])
        for cell in table.cells
        if cell["plan"] == "dai2014-fig1-adult" and cell["option"] == "nu"
    ]
    assert ("0.0003", "adult-sc1, adult-sc2, adult-theorem", "held-out rows") in nu
    assert len(nu) == 2 and nu[0][1:] == ("adult-own", "held-out rows")


@pytest.mark.parametrize(("nu", "said"), [(3e-4, ["1e-06, 0.0003"]), (1e-6, [])])
def test_a_table_of_several_nu_says_so(nu, said):
    made = [
        row("adult-sc1", "norma", params={"nu": 1e-6}),
        row("adult-sc1", "k-sdca", params={"nu": nu}),
        row("adult-own", "norma", params={"nu": 1e-5}),
        row("adult-own", "k-sdca", params={"nu": 1e-4}),
    ]
    notes = [note for note in built("fig1-adult", made).notes if "not one objective" in note]
    start = f"{dai.CRITERIA['sc1']}: not one objective: there are runs with nu"
    assert notes == [f"{start} {values}." for values in said]


def test_one_nu_is_the_least_mean_of_the_best_steps_of_every_method():
    held = {
        ("norma", 1e-5, 1.0): 0.80,
        ("norma", 1e-5, 3.0): 0.86,
        ("norma", 1e-4, 1.0): 0.84,
        ("norma", 1e-4, 3.0): 0.85,
        ("k-sdca", 1e-5, None): 0.82,
        ("k-sdca", 1e-4, None): 0.85,
        ("k-sdca", 1e-3, None): 0.90,
    }
    made = [
        row(
            "choice-adult-nu",
            method,
            score=0.1,
            params={"nu": nu, "step0": step, "held_out_score": score},
        )
        for (method, nu, step), score in held.items()
    ]
    table = built("choice", made)
    assert [section.title for section in table.sections] == ["adult-nu", "adult-nu, NORMA"]
    assert texts(table.sections[0]) == [
        ["1e-05", "14.00 !", "18.00", "16.00"],
        ["0.0001", "15.00", "15.00", "15.00 !"],
        ["0.001", "-", "10.00 !", "-"],
    ]


# ---------------------------------------------------------------------- a reader's feature files


def test_feature_files_of_molecules_run_through_their_plan(tmp_path):
    path, rng = str(tmp_path / "m.npz"), np.random.default_rng(1)
    matrices = rng.uniform(0, 5, (60, 75, 75))
    rows = triangles(matrices + matrices.transpose(0, 2, 1))
    np.savez(path, X=rows, y=rng.uniform(0, 11, 60))
    more = {"batch": 64, "block": 32, "budget_samples": 256, "task": "regression"}
    made = small("fig1-molecularspace", more, dataset=path, test=path, split=None)
    assert made["n_inputs"] == 2850 and 0 < made["params"]["mae"] < 11
    table = built("fig1-molecularspace", [made])
    assert table.cells[0]["error"] == pytest.approx(made["params"]["mae"])


def small(name, options, **more):
    """The row of the quick plan's only run, with some changed options and keys."""
    (run,) = plan.load(f"dai2014-{name}-quick", known=papers.plans()).runs
    return single.execute(replace(run, **more, options=run.options | options)).with_params(
        label=run.label
    )


SPHERE = "sphere:n=400,n_test=200,d="


def ran(dataset, method, label, seed=0, **options):
    """The row of a run; its data set may be small."""
    spec = {"dataset": dataset, "method": method, "label": label, "seed": seed, "train_score": True}
    return single.execute(Run.of(spec | {"options": {"scaling": "none"} | options}))


@pytest.fixture(scope="module")
def rows():
    found = []
    for d, seed in itertools.product((2, 3), (0, 1)):
        given = {"dataset": f"{SPHERE}{d}", "label": "fig1", "seed": seed, "loss": "logistic"}
        found += [ran(method="lkrf", pool=500, **given), ran(method="rf", n_features=50, **given)]
    kmers = {"dataset": "motifs:n=300,n_test=100,d=12", "kernel": "kmers", "k": 2}
    for label, name in (("fig2", "motifs"), ("table1-tuned", "a9a")):
        lam = {"lam": "validation"} if label == "table1-tuned" else {}
        given = kmers | {"label": label} | lam
        made = [ran(method="lkrf", n_features=size, rho=100, **given) for size in (5, None)]
        made += [ran(method="rf", n_features=size, **given) for size in (5, 20, 40)]
        found += [replace(one, dataset=name) for one in made]
    return found


@pytest.mark.parametrize("least", [5, 20, 40, None])
def test_d_is_chosen_on_test_rows_only_where_that_is_asked_for(rows, least):
    """The errors on held-out training rows and on test rows are reversed: D follows those that the
    setting names; of equal errors the smallest D has its own.
    """
    own, chosen = [], least or 5
    for one in rows:
        if one["params"]["label"] == "table1-tuned" and one["method"] == "rf":
            size = one["n_features"]
            step = {"tried": [[1.0, 0.1 if size == least else 0.2]]}
            step = one["params"]["validation"][-1] | step
            own.append(replace(one, score=size / 100).with_params(validation=[step]))
    section = lambda setting: tables.build(
        "sinha2016-table1", own, setting, papers.tables()
    ).sections[-1]
    assert texts(section("tuned")) == texts(section(None))
    assert texts(section("tuned"))[0][1:3] == [f"{chosen}", f"{100 - chosen}.00 / 15.44"]
    by_test = section("test-selected")
    assert texts(by_test)[0][1:3] == ["40", "60.00 / 15.44"]
    assert "on the TEST rows" in by_test.title


def test_the_price_of_an_error():
    def priced(error, seconds):
        score = 1 - error / 100
        return Result(dataset="d", method="rf", score=score, seconds_fit=seconds)

    cheap, dear = [priced(10.0, 1.0), priced(12.0, 1.0)], [priced(9.0, 5.0)]
    points = {10: cheap, 20: dear}
    assert curves.reach(points, 11.0) == (10, cheap)
    assert curves.reach(points, 10.0) == (20, dear)
    assert curves.reach(points, 8.0) is None
    assert curves.best(points) == (20, dear)
    assert curves.targets("other", [points, {5: cheap}, {}]) == [11.0, 9.0]


@pytest.mark.parametrize("name", ["sinha2016-fig1", "sinha2016-fig2", "sinha2016-table1"])
def test_tables_and_figures_of_rows_of_today(rows, name):
    assert papers.tables()[name](rows).cells
    chart = papers.figures()[name](rows)
    assert figures.paint(chart)
    gids = {curve.gid for panel in chart for curve in panel.curves}
    assert ("fig1-chosen" in gids) == (name == "sinha2016-fig1")
    assert any("lkrf" in gid for gid in gids)
