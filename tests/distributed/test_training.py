"""`rfx train --scheduler` with sample weights, held-out rows and data sets by name gives the result
of one process on the same data.
"""

from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from rfx import methods
from rfx.data import libsvm
from rfx.data.tabular.learner import Learner
from rfx.distributed import training
from rfx.errors import DataError, UsageError
from rfx.records.run import Run
from rfx.runs import single

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def data():
    """Rows (500, 4), and two classes that depend on them, with noise."""
    rng = np.random.default_rng(8)
    X = np.round(rng.normal(size=(500, 4)), 4)
    noisy = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.3 * rng.normal(size=len(X))
    y = np.where(noisy > 0, 1.0, -1.0)
    weights = np.round(rng.uniform(0.1, 3, len(X)), 3) * (np.arange(len(X)) % 7 > 0)
    return SimpleNamespace(X=X, y=y, weights=weights)


@pytest.fixture
def address(client):
    return client.scheduler.address


@pytest.fixture(scope="module")
def folder(tmp_path_factory, data):
    """Rows in two files and in one, weights, and a table with words and missing cells."""
    place = tmp_path_factory.mktemp("rows")
    (place / "two").mkdir()
    for number, rows in enumerate((slice(0, 200), slice(200, None))):
        libsvm.write(place / "two" / f"{number}.svm", data.X[rows], data.y[rows])
    libsvm.write(place / "one.svm", data.X, data.y)
    libsvm.write(place / "numbers.svm", data.X, np.round(data.X[:, 0] ** 2 + data.X[:, 1], 4))
    (place / "weights").write_text("\n".join(map(str, data.weights)))
    rows = [
        f"{'' if n % 9 == 0 else a},{'' if n % 11 == 0 else 'red' if b > 0 else 'blue'},{c},"
        f"{'on' if y > 0 else 'off'}"
        for n, ((a, b, c, _), y) in enumerate(zip(data.X, data.y))
    ]
    (place / "t.csv").write_text("\n".join(["a,colour,c,y", *rows]))
    return place


def a_run(path, method="rf", **more):
    size = {"rb": {"n_grids": 8}, "lkrf": {"pool": 100, "n_features": 30}}
    options = size.get(method, {"n_features": 30}) | {"lam": 1.0, "tol": 1e-9}
    options |= {"kernel": "gaussian", "metric": "none", "gamma": 0.4, "scaling": "standard"}
    if method == "rb":
        options |= {"kernel": "laplacian"}
    return Run.of(
        {
            "dataset": str(path),
            "method": method,
            "seed": 3,
            "options": options | more.pop("options", {}),
        }
        | more
    )


def both(run, address, there=None):
    """The results of one process and of workers; there: the data argument of the latter."""
    spread = replace(run, dataset=str(there or run.dataset), scheduler=address, parts=3)
    methods.create(run.method, **run.given())
    return single.execute(run), single.execute(spread, train_function=training.train)


def same(ours, theirs, rel=1e-6):
    assert theirs["objective"] == pytest.approx(ours["objective"], rel=rel)
    assert theirs["gap"] <= max(1.01 * ours["gap"], 1e-4 * ours["objective"])
    assert theirs["converged"]
    assert theirs["score"] == pytest.approx(ours["score"], abs=2e-3)
    assert (theirs["n_train"], theirs["n_test"]) == (ours["n_train"], ours["n_test"])
    assert theirs["metric"] == ours["metric"]


REGRESSION = {"task": "regression", "target_scaling": "mean", "offset": "mean"}
FEW_BINS = {"n_grids": 4, "lam": 10.0, "tol": 1e-6}


@pytest.mark.parametrize(
    "method, file, weighted, options",
    [
        ("rf", "numbers.svm", True, REGRESSION),
        ("rf", "one.svm", True, {"loss": "squared", "solver": "cg"}),
        ("rf", "one.svm", True, {"loss": "squared_hinge", "scaling": "minmax01"}),
        ("rf", "one.svm", False, {"loss": "squared_hinge"}),
        ("rf", "one.svm", True, {"loss": "logistic", "gamma": "tuned"}),
        ("sparse-rf", "one.svm", True, {"n_features": 12, "rounds": 2, "lam": 5.0, "tol": 1e-5}),
        ("rb", "one.svm", True, {"loss": "squared_hinge"} | FEW_BINS),
        ("rb", "one.svm", False, {"loss": "squared"} | FEW_BINS),
        ("lkrf", "numbers.svm", True, {"task": "regression"}),
        ("lkrf", "one.svm", False, {"loss": "logistic"}),
    ],
)
def test_the_answer_is_that_of_one_process(address, folder, method, file, weighted, options, data):
    weights = {"sample_weight": str(folder / "weights")} if weighted else {}
    run = a_run(folder / file, method, options=options, test=str(folder / file), **weights)
    ours, theirs = both(run, address)
    same(ours, theirs)
    assert ours["n_train"] == (np.count_nonzero(data.weights) if weighted else len(data.X))
    assert ours["key"] == theirs["key"]
    found, expected = (one.params["kernel_params"] for one in (theirs, ours))
    assert found == pytest.approx(expected, rel=1e-12)
    total = pytest.approx(data.weights.sum()) if weighted else None
    assert theirs.params.get("weight_sum") == total


def test_weights_are_of_the_rows_of_all_files_in_order(address, folder):
    run = a_run(folder / "one.svm", sample_weight=str(folder / "weights"))
    ours, theirs = both(run, address, folder / "two")
    assert theirs["objective"] == pytest.approx(ours["objective"], rel=1e-6)
    assert theirs.params["train_score"] == pytest.approx(ours.params["train_score"], abs=2e-3)


@pytest.mark.parametrize(
    "method, options, weighted",
    [
        ("rf", {"scaling": None, "metric": None}, True),
        ("rb", {"scaling": None, "metric": None, "metric_steps": 1}, False),
        ("lkrf", {}, False),
    ],
)
def test_options_are_chosen_as_in_one_process(address, folder, method, options, weighted):
    options = dict.fromkeys(("kernel", "gamma", "lam")) | options
    weights = {"sample_weight": str(folder / "weights")} if weighted else {}
    run = a_run(folder / "one.svm", method, options=options, **weights)
    ours, theirs = (found.params["explicit"] for found in both(run, address))
    assert {"gamma", "lam"} <= ours.keys() == theirs.keys()
    for name, value in ours.items():
        expected = pytest.approx(value, rel=1e-4) if isinstance(value, float) else value
        assert theirs[name] == expected, name


@pytest.mark.parametrize(
    ("weights", "says"),
    [
        (lambda y: ["1", "2"], "has 2 weights, but there are 500 training rows"),
        (lambda y: ["1", "2", "-1"], "line 3: '-1' is not a weight"),
        (lambda y: ["0"] * len(y), "all sample weights are zero"),
        (
            lambda y: ["1" if label > 0 else "0" for label in y],
            "all rows with the label -1 have weight 0",
        ),
        (lambda y: ["1"] * len(y), None),
    ],
    ids=["two", "negative", "zero", "one label", "ones"],
)
def test_weights_that_do_not_go_with_the_rows_are_refused(
    address, folder, tmp_path, weights, says, data
):
    (tmp_path / "w").write_text("\n".join(weights(data.y)))
    run = a_run(folder / "two", sample_weight=str(tmp_path / "w"), scheduler=address)
    with pytest.raises(DataError, match=says) if says else nullcontext():
        ones = training.train(methods.create("rf", **run.given()), run).model
        assert "weight_sum" not in ones.info


@pytest.mark.parametrize(
    "file, more",
    [
        ("one.svm", {"holdout": 0.2}),
        ("one.svm", {"holdout": 0.3, "sample_weight": "weights"}),
        ("one.svm", {"cv": 3}),
        ("one.svm", {"calibrate": "platt"}),
        ("numbers.svm", {"holdout": 0.25, "options": {"task": "regression"}}),
        ("t.csv", {"holdout": 0.2, "reading": {"target": "y", "missing": "mean"}}),
    ],
)
def test_the_same_rows_are_held_out_as_in_one_process(address, folder, file, more):
    if "sample_weight" in more:
        more = more | {"sample_weight": str(folder / more["sample_weight"])}
    ours, theirs = both(a_run(folder / file, **more), address)
    same(ours, theirs)
    assert theirs.params["scored_on"] == ours.params["scored_on"]
    assert "train_score" not in theirs.params
    assert theirs.params.get("calibration") == ours.params.get("calibration")


def test_what_stands_for_missing_cells_is_learnt_without_the_held_out_rows(
    address, folder, monkeypatch
):
    seen = []
    refilled = Learner.refilled
    monkeypatch.setattr(
        Learner, "refilled", lambda *given: seen.append(refilled(*given)) or seen[-1]
    )
    run = a_run(folder / "t.csv", holdout=0.2, reading={"target": "y", "missing": "mean"})
    _, theirs = both(run, address)
    split = single.load(run)
    whole = split.schema.columns[0].fill
    assert seen[0].columns[0].fill != whole
    assert seen[0].columns[0].fill == pytest.approx(whole, abs=0.2)


@pytest.mark.parametrize("method", ["rf", "sparse-rf"])
def test_a_path_of_lambdas_is_scored_on_held_out_rows(address, folder, method):
    path = {"rf": {"lam_path": "10:1:3", "tol": 1e-6}, "sparse-rf": {"lam_path": "100:30:3"}}
    options = {"lam": None, "n_features": 12, "tol": 1e-4} | path[method]
    run = a_run(folder / "one.svm", method, options=options, holdout=0.2)
    ours = single.execute_path(run)
    theirs = single.execute_path(replace(run, scheduler=address), train_function=training.train)
    assert len(theirs) == 3
    for one, other in zip(ours, theirs, strict=True):
        same(one, other, rel=1e-6 if method == "rf" else 2e-4)


@pytest.mark.parametrize(
    "name, more, words",
    [
        ("sphere:n=100", {}, "with --scheduler use files that the workers can read"),
        ("a9a", {}, "with --scheduler use files that the workers can read"),
        ("rows.svm", {"split": "0.8"}, "--split needs all rows in one process; omit it"),
        ("mine", {}, "with --scheduler use files that the workers can read"),
        ("-", {}, "with --scheduler use files that the workers can read"),
    ],
)
def test_what_is_not_in_files_of_its_own_is_refused(tmp_path, monkeypatch, name, more, words):
    (tmp_path / "own.toml").write_text('[mine]\ntrain = "t.csv"\n')
    monkeypatch.setenv("RFX_DATASETS", str(tmp_path / "own.toml"))
    run = a_run(name, scheduler="local:2", **more)
    with pytest.raises(UsageError, match=words):
        training.check(methods.create("rf", **run.given()), run)
