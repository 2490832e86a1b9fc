"""rfm and auto: what `rfx train --data FILE` alone does and prints."""

import json
import re
import shlex

import numpy as np
import pytest
import scipy.sparse
from shell import printed, refused

from rfx import methods
from rfx.cli.output import chosen_words
from rfx.fitting.progress import ProgressReport


@pytest.fixture
def table(tmp_path):
    """A table whose first column matters most."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 3))
    y = np.sin(2 * X[:, 0]) + 0.1 * X[:, 1] + 0.01 * rng.normal(size=150)
    path = tmp_path / "table.csv"
    options = {"fmt": "%.6f", "delimiter": ",", "header": "a,b,c,price", "comments": ""}
    np.savetxt(path, np.column_stack([X, y]), **options)
    return path


def test_data_alone_is_enough_and_the_printed_command_repeats_the_model(table, capfd, monkeypatch):
    monkeypatch.chdir(table.parent)
    out = printed(capfd, "train", "--data", table.name, "--model", "one.npz", "-v")
    assert "method       local" in out
    assert "chosen       scaling" in out
    command = next(line for line in out.splitlines() if line.startswith("rfx train --method local"))
    assert "chosen" not in printed(capfd, *shlex.split(command)[1:], "--model", "two.npz")
    one, two = (methods.load(name).predict(np.eye(3)) for name in ("one.npz", "two.npz"))
    np.testing.assert_array_equal(one, two)


def test_an_option_of_a_named_method_is_refused(table, capfd):
    said = refused(capfd, "train", "--data", table, "--n-features", 10, code=2)
    assert "method auto has no option --n-features" in said


def test_info_has_the_inputs_by_their_shares_of_the_metric(table, capfd, monkeypatch):
    monkeypatch.chdir(table.parent)
    command = ("train", "--data", table.name, "--method", "rfm", "--scaling", "standard")
    options = ("--metric", "diagonal", "--metric-steps", "2", "--kernel", "laplacian-l2")
    printed(capfd, *command, *options, "--model", "m.npz")
    assert "metric       diagonal: a 9" in printed(capfd, "info", "m.npz")
    shares = json.loads(printed(capfd, "info", "m.npz", "--json"))["metric_shares"]
    assert sum(shares) == pytest.approx(1)
    assert shares[0] > 0.9
    printed(capfd, *command, "--metric", "none", "--model", "none.npz")
    assert json.loads(printed(capfd, "info", "none.npz", "--json"))["metric_shares"] is None


@pytest.mark.parametrize(
    ("task", "cuts"), [("regression", None), ("binary", [1.0]), ("multiclass", [0.5, 1.5])]
)
def test_auto_is_local_and_repeated_by_its_options(task, cuts):
    X = np.random.default_rng(0).normal(size=(500, 3))
    y = X[:, 0] ** 2 + X[:, 1]
    y = y if cuts is None else np.digitize(y, cuts).astype(float)
    trainer = methods.create("auto", task=task, scaling="standard", metric="none")
    trained = trainer.fit(X[:400], y[:400])
    assert trained.name == "local"
    predicted = trained.predict(X[400:])
    if cuts is None:
        assert np.mean((predicted - y[400:]) ** 2) < 0.2 * np.var(y[400:])
    else:
        assert np.mean(predicted != y[400:]) < 0.2
    again = methods.create("local", task=task, **trained.info["explicit"]).fit(X[:400], y[:400])
    np.testing.assert_array_equal(again.decision_function(X), trained.decision_function(X))


@pytest.mark.parametrize("leaf_steps", [0, 2])
def test_importances_are_those_of_the_gradients(leaf_steps):
    X, h = np.random.default_rng(4).normal(size=(120, 3)), 1e-4
    options = {"scaling": "none", "metric": "none", "leaf_steps": leaf_steps, "mixed": False}
    options |= {"kernel": "laplacian-l2", "dtype": "float64"}
    trained = methods.create("local", task="regression", **options).fit(X, np.sin(2 * X[:, 0]))
    values = trained.decision_function
    slopes = [(values(X + h * unit) - values(X - h * unit)) / (2 * h) for unit in np.eye(3)]
    squares = np.square(slopes).mean(axis=1)
    shares = trained.importances(own=True)
    np.testing.assert_allclose(shares, squares / squares.sum(), atol=1e-3)


def circles():
    X = np.random.default_rng(1).normal(size=(200, 2))
    return X, np.where(np.hypot(*X.T) > 1.2, 1.0, -1.0)


@pytest.mark.parametrize("method", ["auto", "rfm"])
def test_progress_counts_what_the_summary_counts(method):
    reports = []
    trainer = methods.create(method, task="binary", metric="diagonal", scaling="auto")
    trained = trainer.fit(*circles(), progress=reports.append)
    last = {one.choosing: (one.tried, one.total) for one in reports if one.choosing}
    words = map(chosen_words, trained.outcome.validation)
    counts = {int(re.search(r"best of (\d+)", one)[1]) for one in words}
    assert counts == {tried for tried, _ in last.values()}
    assert all(tried == total for tried, total in last.values())


@pytest.mark.parametrize("method", ["auto", "rf"])
def test_what_follows_the_choice_is_said(method):
    reports = []
    trainer = methods.create(method, task="binary", metric="none", scaling="standard")
    trainer.fit(*circles(), progress=reports.append)
    after = [one for one in reports if not one.choosing]
    assert after[0] == ProgressReport(doing="fitting the chosen model")


def test_the_printed_command_has_weights_but_no_held_out_rows(table, capfd, tmp_path):
    weights = tmp_path / "weights.txt"
    weights.write_text("\n".join(["1", "2"] * 75) + "\n")
    options = ("--sample-weight", weights, "--holdout", "0.2", "--scaling", "standard")
    out = printed(capfd, "train", "--data", table, *options, "--metric", "none", "--json")
    words = json.loads(out)["command"]
    assert words.startswith("rfx train --method local")
    assert "--scaling standard" in words and f"--sample-weight {weights}" in words
    assert "--holdout" not in words


def test_a_few_rows_are_enough():
    X = np.random.default_rng(2).normal(size=(6, 2))
    trained = methods.create("auto", task="binary").fit(X, np.array([1.0, 1, 1, 1, 1, -1]))
    assert trained.name == "local" and set(trained.predict(X)) <= {1.0, -1.0}


def test_wide_sparse_rows_stay_sparse_and_have_a_diagonal_metric(reloaded):
    X = scipy.sparse.random(200, 1500, 0.01, "csr", random_state=np.random.default_rng(3))
    y = np.where(np.asarray(X[:, :300].sum(axis=1)).ravel() > 1.4, 1.0, -1.0)
    options = {"scaling": "none", "kernel": "laplacian-l2", "metric": "diagonal", "metric_steps": 1}
    trained = methods.create("rfm", task="binary", **options).fit(X, y)
    assert trained.preprocessing.scaler.metric.form == "diagonal"
    assert scipy.sparse.issparse(trained.preprocessing.rows(X))
    reloaded(trained, X)
    auto = methods.create("auto", task="binary", scaling="none", metric="none").fit(X, y)
    assert auto.name == "rfm"
