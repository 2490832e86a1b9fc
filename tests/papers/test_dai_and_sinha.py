"""Plans, tables and figures of Dai et al. (2014), on generated rows, and of Sinha and Duchi (2016),
from rows of small runs.
"""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from rfx import papers
from rfx.data.virtual import triangles
from rfx.errors import DataError, UsageError
from rfx.papers.dai2014 import claims
from rfx.papers.dai2014 import curves as dai
from rfx.papers.sinha2016 import curves
from rfx.plans import plan
from rfx.records.results import COLUMNS
from rfx.records.run import Run
from rfx.reporting import figures, tables
from rfx.reporting.claims import frame, select
from rfx.reporting.tables import texts
from rfx.runs import single

SAMPLES = ["fig1-mnist", "fig1-cifar10", "fig1-imagenet", "fig1-qm7", "fig1-molecularspace"]
NAMES = ["fig1-adult", "fig1-mnist8v6", "fig1-forest", *SAMPLES, "synthetic", "complexity"]


def row(label, method, **more):
    params = {"label": label, "seconds_steps": 2.0, "samples": 1000} | more.pop("params", {})
    base = dict.fromkeys(COLUMNS) | {
        "key": "k",
        "status": "ok",
        "message": "",
        "method": method,
        "params": params,
        "seconds_fit": 3.0,
    }
    return (
        base
        | {
            "task": "binary",
            "score": 0.85,
            "dataset": "a9a",
            "cpu": "some",
            "threads": 2,
            "seed": 0,
        }
        | more
    )


CURVE = [
    {"samples": 100 * 2**k, "seconds": 0.1 * 2**k, "steps": 2**k, "error": 0.5 / 2**k}
    for k in range(11)
]


def rows_of(name):
    if name == "complexity":
        return [
            row(
                "complexity",
                method,
                n_train=n,
                n_test=10,
                seconds_predict=n * 1e-3,
                model_bytes=8.0 * n,
                params={
                    "seconds_steps": 1e-6 * n**2,
                    "training_bytes": 24 * n,
                    "seconds_nystrom": 1e-9 * n**3 if method.startswith("n-") else None,
                },
            )
            for method in dai.METHODS
            if method not in ("kernel", "mlp")
            for n in (100, 200, 400, 800)
        ]
    if name == "synthetic":
        theorem = [
            row(
                f"synthetic-{steps}",
                "doubly-sgd",
                seed=seed,
                task="regression",
                params={"nu": nu, "curve": CURVE},
            )
            for steps in ("theorem", "printed")
            for seed in (0, 1)
            for nu in (0.1, 0.01)
        ]
        return theorem + [
            row("synthetic-sc1", method, task="regression", score=0.2, params={"nu": 1e-5})
            for method in ("doubly-sgd", "norma")
        ]
    short = name.removeprefix("fig1-")
    if short == "qm7":
        more = {"task": "regression", "score": 5.0, "dataset": "qm7"}
        return [
            row("qm7", "doubly-sgd", params={"curve": CURVE, "mae": 3.9}, **more),
            row("qm7-laplacian", "kernel", **more),
        ]
    labels = [f"{short}-sc1", f"{short}-sc2"] if name not in SAMPLES else [short]
    return [
        row(label, method, params={"curve": CURVE})
        for label in labels
        for method in ("doubly-sgd", "norma", "n-sdca")
    ]


@pytest.mark.parametrize("name", NAMES)
def test_plans_have_a_quick_form_and_a_table_and_a_figure(name):
    known = papers.plans()
    whole, quick = (plan.load(f"dai2014-{name}{end}", known=known) for end in ("", "-quick"))
    assert whole.table == f"dai2014-{name}" and 0 < len(quick.runs) <= len(whole.runs)
    assert f"dai2014-{name}" in papers.tables() and f"dai2014-{name}" in papers.figures()
    if name.startswith("fig1-") and name not in SAMPLES:
        assert {run.method for run in whole.runs} == set(dai.METHODS) - {"kernel", "mlp"}
        assert (
            {"sc1", "sc2"}
            <= {str(run.label).partition("-")[2] for run in whole.runs}
            <= set(dai.CRITERIA)
        )


@pytest.mark.parametrize("name", NAMES)
def test_tables_and_figures_of_made_rows(name, tmp_path):
    rows = rows_of(name)
    table = built(name, rows)
    assert table.cells and all(texts(section) for section in table.sections)
    chart = papers.figures()[f"dai2014-{name}"](rows, None)
    figures.paint(chart).savefig(tmp_path / "f.svg")
    drawn = (tmp_path / "f.svg").read_text()
    assert "doubly" in drawn or all(
        f"synthetic-{steps}-nu-0.1" in drawn for steps in ("theorem", "printed")
    )
    with pytest.raises(UsageError, match="has no settings"):
        tables.build(f"dai2014-{name}", rows, "wild", papers.tables())
    with pytest.raises(DataError, match=f"no finished rows of dai2014-{name}"):
        built(name, [])


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


def test_slopes_and_exponents_are_computed():
    cells = built("synthetic", rows_of("synthetic")).cells
    assert [cell["slope"] for cell in cells if "slope" in cell] == pytest.approx([-1.0] * 4)
    for cell in built("complexity", rows_of("complexity")).cells:
        none = cell["quantity"] == "preprocessing" and cell["paper"] == 0
        assert cell["ours"] == (None if none else pytest.approx(cell["paper"]))


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


def features(n, d, classes, seed):
    """Rows like the last layer of a network, with few nonzero entries, and their labels."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, classes, n)
    # six columns of eight groups, ascending
    columns = (
        np.sort(np.argsort(rng.random((n, 8)), axis=1)[:, :6] * (d // 8), axis=1)
        + 1
        + (y % (d // 8))[:, None]
    )
    values = rng.integers(100, 2000, (n, 6))
    lines = (
        " ".join(f"{j}:{v}" for j, v in zip(*row)) for row in zip(columns.tolist(), values.tolist())
    )
    return "".join(f"{label} {line}\n" for label, line in zip(y, lines)) + f"0 {d}:1\n"


def test_feature_files_of_imagenet_run_through_their_plan(tmp_path):
    for role in ("train", "test"):
        (tmp_path / f"i.{role}").write_text(features(400, 512, 12, 3))
    files = {"dataset": str(tmp_path / "i.train"), "test": str(tmp_path / "i.test"), "split": None}
    more = {"pca": 16, "gamma": 1e-8, "task": "multiclass", "budget_samples": 512}
    made = small("fig1-imagenet", more | {"batch": 128, "block": 32}, **files)
    assert made["score"] > 1 / 12 and made["params"]["pca"] == 16


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


def test_quantum_machine_within_a_million_rows_is_compared_with_the_printed_error():
    (claim,) = (one for one in claims.CLAIMS if one.name == "quantum-machine-million")
    of = {"task": "regression", "metric": "rmse", "dataset": "qm7"}
    rows = [
        row("qm7-million", "doubly-sgd", seed=seed, params={"mae": 5.94}, **of) for seed in (0, 1)
    ]
    other = row("qm7", "doubly-sgd", params={"mae": 9.0}, **of)
    table = select(frame([*rows, other]), claim.rows)
    assert claim.measure(table) == {"qm7": pytest.approx([2.0, 2.0])}


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


def built_of(name, rows, setting=None):
    return tables.build(name, rows, setting, papers.tables())


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
    section = lambda setting: built_of("sinha2016-table1", own, setting).sections[-1]
    assert texts(section("tuned")) == texts(section(None))
    assert texts(section("tuned"))[0][1:3] == [f"{chosen}", f"{100 - chosen}.00 / 15.44"]
    by_test = section("test-selected")
    assert texts(by_test)[0][1:3] == ["40", "60.00 / 15.44"]
    assert "on the TEST rows" in by_test.title


def test_the_price_of_an_error():
    priced = lambda error, seconds: {"score": 1 - error / 100, "seconds_fit": seconds}
    cheap, dear = [priced(10.0, 1.0), priced(12.0, 1.0)], [priced(9.0, 5.0)]
    points = {10: cheap, 20: dear}
    assert curves.reach(points, 11.0) == (10, cheap)
    assert curves.reach(points, 10.0) == (20, dear)
    assert curves.reach(points, 8.0) is None
    assert curves.best(points) == (20, dear)
    assert curves.targets("other", [points, {5: cheap}, {}]) == [11.0, 9.0]


@pytest.mark.parametrize("name", ["sinha2016-fig1", "sinha2016-fig2", "sinha2016-table1"])
def test_figures(rows, name, tmp_path):
    paths = figures.draw(name, rows, tmp_path / "figure", builders=papers.figures())
    assert len(paths) == 4 and all(
        path.stat().st_size > 5000 for path in paths if path.suffix != ".csv"
    )
    text = next(path for path in paths if path.suffix == ".svg").read_text()
    assert ("fig1-chosen" in text) == (name == "sinha2016-fig1") and "lkrf" in text
    with pytest.raises(DataError, match=f"no finished rows of {name}"):
        figures.draw(name, [], tmp_path / "none", builders=papers.figures())


@pytest.mark.parametrize(
    ("name", "setting", "says"),
    [
        ("table1", "other", "--setting other: sinha2016-table1 has tuned, paper, test-selected"),
        ("fig1", "tuned", "sinha2016-fig1 has no settings"),
    ],
)
def test_settings(rows, name, setting, says):
    with pytest.raises(UsageError, match=says):
        built_of(f"sinha2016-{name}", rows, setting)
