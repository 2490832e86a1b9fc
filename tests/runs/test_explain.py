"""Permutation importance and partial dependence of the columns of a file: against scikit-learn, and
through the command.
"""

import json

import numpy as np
import pandas
import pytest
import scipy.sparse
from shell import called, printed, refused, run
from sklearn.inspection import partial_dependence
from sklearn.metrics import root_mean_squared_error, zero_one_loss

import rfx
from rfx import methods
from rfx.cli.rows import rows_for
from rfx.data import libsvm
from rfx.data.reading import Reading
from rfx.errors import UsageError
from rfx.runs import explain

pytestmark = pytest.mark.slow

N = 900
NAMES = ["grade", "noise", "town", "job", "day"]
GIVEN = "--gamma 0.2 --lam 0.1 --n-features 200 --kernel gaussian --metric none --scaling standard"


def table():
    """Rows whose target depends on all columns but `noise`; `town` has many categories."""
    rng = np.random.default_rng(1)
    grade, noise = rng.integers(0, 7, N) / 2, np.round(rng.normal(size=N), 3)
    town, job = rng.integers(0, 50, N), rng.integers(0, 3, N)
    days = rng.integers(0, 900, N)
    y = grade + rng.normal(size=50)[town] + 2 * (job == 1) + days / 300
    return pandas.DataFrame(
        {
            "grade": grade,
            "noise": noise,
            "town": [f"t{one}" for one in town],
            "job": np.array(["clerk", "smith", "baker"])[job],
            "day": (np.datetime64("2020-01-01") + days).astype(str),
            "y": np.round(y + 0.1 * rng.normal(size=N), 4),
        }
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Training and held-out rows, and models of numbers, of two and of three classes."""
    folder = tmp_path_factory.mktemp("explained")
    rows = table()
    rows["two"] = np.where(rows["y"] > rows["y"].median(), "yes", "no")
    rows["three"] = np.array(["low", "mid", "top"])[np.digitize(rows["y"], [2.5, 4.5])]
    rows[:600].to_csv(folder / "train.csv", index=False)
    rows[600:].to_csv(folder / "test.csv", index=False)
    for target, more in (("y", []), ("two", []), ("three", ["--calibrate", "platt"])):
        others = ",".join({"y", "two", "three"} - {target})
        words = ["train", "--method", "rf", "--data", folder / "train.csv", "--target", target]
        words += ["--ignore", others, "--dates", "day", *GIVEN.split(), *more, "--quiet"]
        assert called(*words, "--model", folder / f"{target}.npz").exception is None
    return folder


def rows_of(folder, target):
    """(Pipeline, X, y, data frame of the inputs) of the held-out rows."""
    model = methods.load(folder / f"{target}.npz")
    X, y = rows_for(model, str(folder / "test.csv"), Reading())
    return model, X, y, pandas.read_csv(folder / "test.csv")[NAMES]


def by_name(found):
    return {one.name: one for one in found.importances}


@pytest.mark.parametrize(
    "target, measure", [("y", root_mean_squared_error), ("three", zero_one_loss)]
)
def test_a_rise_is_that_of_the_file_with_a_shuffled_column(folder, target, measure):
    model, X, y, frame = rows_of(folder, target)
    found = by_name(explain.explain(model, X, y, top=0, seed=3))
    assert sorted(found) == sorted(NAMES)  # each column of the file once
    estimator = rfx.load(folder / f"{target}.npz")
    targets = pandas.read_csv(folder / "test.csv")[target]
    error = lambda rows: measure(targets, estimator.predict(rows))
    for place, name in enumerate(NAMES):
        for repeat in (0, 9):
            order = explain.shuffle(len(y), 3, explain._ROLE, place, repeat)
            other = frame.assign(**{name: frame[name].to_numpy()[order]})
            rise = error(other) - error(frame)
            assert found[name].rises[repeat] == pytest.approx(rise, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("target", ["y", "two", "three"])
def test_noise_has_0_in_its_interval_and_others_have_not(folder, target):
    model, X, y, _ = rows_of(folder, target)
    for name, one in by_name(explain.explain(model, X, y, top=0)).items():
        assert (one.low <= 0 <= one.high) == (name == "noise"), one


def test_the_interval_holds_0_as_often_as_it_says():
    rng, held = np.random.default_rng(0), 0
    for _ in range(2000):
        as_given, *shuffled = rng.normal(5, 2, 11)
        _, low, high = explain.interval([one - as_given for one in shuffled])
        held += low <= 0 <= high
    assert held / 2000 == pytest.approx(0.95, abs=0.02)


@pytest.mark.parametrize("target", ["y", "two"])
def test_partial_dependence_is_that_of_scikit_learn(folder, target):
    model, X, y, frame = rows_of(folder, target)
    found = {one.name: one for one in explain.explain(model, X, y, top=5).dependences}
    assert sorted(found) == sorted(NAMES)
    estimator = rfx.load(folder / f"{target}.npz")
    for name, categorical in (("grade", None), ("job", ["job"])):
        want = partial_dependence(
            estimator,
            frame,
            [name],
            categorical_features=categorical,
            method="brute",
            response_method="auto" if target == "y" else "predict_proba",
            kind="average",
        )
        assert found[name].grid == list(want["grid_values"][0])
        np.testing.assert_allclose(found[name].means[:, 0], want["average"][0], rtol=1e-9)


def test_grids_are_quantiles_days_and_the_most_frequent_categories(folder):
    model, X, y, frame = rows_of(folder, "y")
    found = {one.name: one for one in explain.explain(model, X, y, top=5).dependences}
    ends = np.quantile(frame["noise"], [0.05, 0.95])
    np.testing.assert_allclose([found["noise"].grid[0], found["noise"].grid[-1]], ends)
    assert len(found["noise"].grid) == explain.POINTS
    counts = frame["town"].value_counts()
    kept = [word for own in found["town"].grid for word in own.split(" and ")[:1]]
    assert len(kept) == explain.MOST_LEVELS
    assert counts[kept].min() >= counts.iloc[explain.MOST_LEVELS :].min()
    estimator, day = rfx.load(folder / "y.npz"), found["day"].grid[3]
    mean = estimator.predict(frame.assign(day=day)).mean()
    assert found["day"].means[3, 0] == pytest.approx(mean, rel=1e-9)
    mean = estimator.predict(frame.assign(town=kept[2])).mean()
    assert found["town"].means[2, 0] == pytest.approx(mean, rel=1e-9)


def test_a_frequent_value_leaves_the_others_in_the_grid():
    values = np.where(np.arange(1000) % 25 == 0, np.arange(1000.0), 0)
    grid = explain._quantiles(values)
    assert grid[0] == 0
    assert grid[-1] > 900
    assert len(grid) > 10


def test_the_response_is_a_probability_where_there_are_some(folder):
    model, X, y, _ = rows_of(folder, "three")
    found = explain.explain(model, X, y)
    assert (found.response, found.outputs) == ("probability", ["low", "mid", "top"])
    for one in found.dependences:
        np.testing.assert_allclose(one.means.sum(axis=1), 1)
    model, X, y, _ = rows_of(folder, "two")
    found = explain.explain(model.replace(calibration=None), X, y, top=1)
    assert (found.response, found.outputs) == ("decision value", ["yes"])


def test_sparse_rows_give_what_dense_ones_give():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 6)) * (rng.random((300, 6)) < 0.5)
    X[:, 4] = 0
    y = np.where(X[:, 0] + X[:, 1] > 0, 1.0, -1.0)
    options = {"n_features": 100, "gamma": 0.5, "lam": 1.0, "scaling": "none"}
    model = methods.create("rf", task="binary", **options).fit(X[:200], y[:200])
    dense = explain.explain(model, X[200:], y[200:])
    sparse = explain.explain(model, scipy.sparse.csr_matrix(X[200:]), y[200:])
    names = [one.name for one in dense.importances]
    assert set(names[:2]) == {"1", "2"}
    assert names == [one.name for one in sparse.importances]
    for one, other in zip(dense.importances, sparse.importances):
        np.testing.assert_allclose(one.rises, other.rises, atol=1e-12)
    for one, other in zip(dense.dependences, sparse.dependences):
        assert one.grid == other.grid
        np.testing.assert_allclose(one.means, other.means, atol=1e-5)
    assert by_name(dense)["5"].rises == [0.0] * 10  # a single value has no other order


def test_of_very_many_columns_those_that_vary_most_are_shuffled(set_sizes):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 6)) * [1, 5, 1, 5, 1, 1]
    options = {"n_features": 20, "gamma": 0.01, "lam": 1.0, "scaling": "none"}
    model = methods.create("rf", task="regression", **options).fit(X, X[:, 1])
    set_sizes(explain, MOST_COLUMNS=2)
    found = explain.explain(model, X, X[:, 1])
    assert sorted(by_name(found)) == ["2", "4"] and found.n_columns == 6
    named = explain.explain(model, X, X[:, 1], columns=["6", "1", "6"])
    assert sorted(by_name(named)) == ["1", "6"]
    with pytest.raises(UsageError, match="--columns has '7', which is not a column of the model"):
        explain.explain(model, X, X[:, 1], columns=["7"])


def test_rows_are_drawn_by_the_seed(folder):
    model, X, y, _ = rows_of(folder, "y")
    found = [explain.explain(model, X, y, rows=50, top=1, seed=seed) for seed in (0, 0, 1)]
    assert found[0].n_rows == 50 and found[0].n_given == 300
    assert found[0].error == found[1].error != found[2].error
    assert found[0].importances == found[1].importances


def test_of_many_classes_those_that_differ_most_are_shown():
    means = np.array([[0.0, 1.0, 5.0, 0.0], [0.1, 3.0, 5.0, 0.9]])
    one = explain.Dependence("a", "numbers", [0.0, 1.0], means)
    found = explain.Explanation("e", 0.0, 2, 2, 10, 0, "r", list("abcd"), [], [one], 1)
    assert found.widest(2) == [1, 3] and found.widest(4) == [0, 1, 2, 3]


# ---------------------------------------------------------------------- the command


def test_the_command_prints_columns_and_dependence(folder, capfd):
    words = ("explain", folder / "y.npz", "--data", folder / "test.csv", "--top", "2")
    code, out, err = run(capfd, *words)
    assert (code, err) == (0, "")
    assert "rows    300 of test.csv" in out and "error   RMSE" in out
    assert all(f"\n{name} " in out for name in NAMES)
    assert "The mean of 10 shuffles" in out and out.count("mean prediction by") == 2
    out = printed(capfd, "explain", folder / "three.npz", "--data", folder / "test.csv")
    assert "error   error rate" in out and "mean probability by" in out
    assert ["low", "mid", "top"] in [line.split() for line in out.splitlines()]


def test_json_has_each_shuffle(folder, capfd):
    words = ["explain", folder / "two.npz", "--data", folder / "test.csv", "--json"]
    words += ["--rows", "100", "--columns", "job,noise", "--repeats", "12"]
    found = json.loads(printed(capfd, *words))
    facts = {"rows": 100, "rows_given": 300, "repeats": 12, "outputs": ["yes"]}
    facts |= {"response": "mean probability", "metric": "error rate", "maybe_training_rows": False}
    assert {name: found[name] for name in facts} == facts
    assert [one["name"] for one in found["importances"]] == ["job", "noise"]
    for one in found["importances"]:
        assert len(one["rises"]) == 12 and one["low"] <= one["mean"] <= one["high"]
    assert found["partial_dependence"][0]["grid"] == ["baker", "clerk", "smith"]


def test_shares_of_the_metric_stand_beside_them(folder, tmp_path, capfd):
    words = ["train", "--method", "rfm", "--data", folder / "train.csv", "--target", "y"]
    words += ["--ignore", "two,three", "--dates", "day", "--gamma", "0.1", "--lam", "0.1"]
    words += ["--kernel", "laplacian-l2", "--metric", "diagonal", "--metric-steps", "1"]
    printed(capfd, *words, "--scaling", "standard", "--model", tmp_path / "m.npz", "--quiet")
    words = ["explain", tmp_path / "m.npz", "--data", folder / "test.csv", "--top", "0", "--json"]
    importances = json.loads(printed(capfd, *words))["importances"]
    found = {one["name"]: one["share"] for one in importances}
    told = json.loads(printed(capfd, "info", tmp_path / "m.npz", "--json"))
    assert found == told["importances"]
    assert sum(found.values()) == pytest.approx(1)


def test_training_rows_are_told(folder, tmp_path, capfd):
    words = ("explain", folder / "y.npz", "--top", "0", "--data")
    assert "may be training rows of the model" in run(capfd, *words, folder / "train.csv")[2]
    (tmp_path / "train.csv").write_bytes((folder / "test.csv").read_bytes())
    assert run(capfd, *words, tmp_path / "train.csv")[2] == ""


@pytest.mark.parametrize("form, mark", [("svg", b"<svg"), ("png", b"\x89PNG"), ("pdf", b"%PDF")])
def test_a_figure_is_drawn(folder, tmp_path, capfd, form, mark):
    path = tmp_path / f"e.{form}"
    words = ["explain", folder / "three.npz", "--data", folder / "test.csv", "--figure", path]
    printed(capfd, *words)
    first = path.read_bytes()
    assert mark in first[:2000]
    gids = ("importance", "dependence-job-top") if form == "svg" else ()
    assert all(f'id="{gid}"'.encode() in first for gid in gids)
    # overwritten without confirmation, with the same result
    printed(capfd, *words)
    assert path.read_bytes() == first


def test_another_name_of_the_target(folder, tmp_path, capfd):
    rows = pandas.read_csv(folder / "test.csv").rename(columns={"y": "price"})
    rows.drop(columns=["two", "three"]).to_csv(tmp_path / "t.csv", index=False)
    words = ["explain", folder / "y.npz", "--top", "0", "--json", "--data"]
    want = json.loads(printed(capfd, *words, folder / "test.csv"))
    said = refused(capfd, *words, tmp_path / "t.csv")
    assert "has no column 'y', which holds the targets" in said
    code, found, err = run(capfd, *words, tmp_path / "t.csv", "--target", "price")
    assert (code, json.loads(found), err) == (0, want | {"data": "t.csv"}, "")


def test_libsvm_text_and_what_is_refused(tmp_path, capfd):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    libsvm.write(tmp_path / "a.txt", X, np.where(X[:, 1] > 0, 1.0, -1.0))
    words = ["train", "--method", "rf", "--data", tmp_path / "a.txt", *GIVEN.split(), "--quiet"]
    printed(capfd, *words, "--model", tmp_path / "m.npz")
    libsvm.write(tmp_path / "b.txt", X[:100], np.where(X[:100, 1] > 0, 1.0, -1.0))
    words = ["explain", tmp_path / "m.npz", "--data", tmp_path / "b.txt"]
    found = json.loads(printed(capfd, *words, "--json"))
    assert found["importances"][0]["name"] == "2" and found["columns"] == 3
    (tmp_path / "e.svg").write_text("my notes, which are no figure of rfx\n")
    for more, says in (
        (["--target", "y"], "--target is for tables"),
        (["--figure", tmp_path / "e.jpg"], "its name must end in one of .png, .svg, .pdf"),
        (["--figure", tmp_path / "b.txt"], "its name must end in one of"),
        (["--figure", tmp_path / "e.svg"], "--force"),
        (["--repeats", "9"], "--repeats is '9'; it must be a whole number 10 or more"),
        (["--columns", "nine"], "--columns has 'nine'"),
    ):
        assert says in refused(capfd, *words, *more, code=2)
