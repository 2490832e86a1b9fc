"""rfx tune: what it finds, keeps and refuses; each through the command or on small sets."""

import itertools
import json
import xml.etree.ElementTree as xml
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from rfx import data, methods
from rfx.cli import cli
from rfx.errors import RfxError
from rfx.fitting.held_out import Calibration, Splitter
from rfx.operators.matrix import DenseMatrix
from rfx.records import results
from rfx.records.run import Run
from rfx.runs.tune import SIZES, Tuning
from rfx.solvers.ridge import ridge_path

pytestmark = pytest.mark.slow

# The choice of a metric takes most of a search's seconds; tests of other things omit it.
PLAIN = ("--scaling", "none", "--metric", "none")


@pytest.fixture(scope="module")
def X():
    return np.random.default_rng(5).uniform(0, 1, (500, 3))


@pytest.fixture(scope="module")
def smooth(X):
    """A smooth function of the rows."""
    return np.sin(6 * X[:, 0]) + X[:, 1] ** 2


def file(path, X, y):
    lines = (
        f"{target:g} " + " ".join(f"{j + 1}:{value:.6g}" for j, value in enumerate(row))
        for target, row in zip(y, X)
    )
    path.write_text("\n".join(lines) + "\n")
    return str(path)


@pytest.fixture
def numbers(tmp_path, monkeypatch, rng, X, smooth):
    monkeypatch.chdir(tmp_path)
    return file(tmp_path / "numbers.libsvm", X, smooth + 0.05 * rng.standard_normal(500))


@pytest.fixture
def labels(tmp_path, monkeypatch, rng, X, smooth):
    monkeypatch.chdir(tmp_path)
    y = np.where(smooth + 0.2 * rng.standard_normal(500) > 0.4, 1, -1)
    return file(tmp_path / "labels.libsvm", X, y)


def tune(*words):
    return CliRunner().invoke(cli, ["tune", *words], standalone_mode=False)


def found(*words):
    done = tune(*words, "--json")
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return json.loads(done.stdout)


def kept():
    """The trials in t.csv; the row of the model is not one."""
    return [row for row in results.read("t.csv") if "round" in row["params"]]


def test_the_path_is_ridge_for_each_lambda(rng):
    Z, Y = rng.standard_normal((60, 20)).astype(np.float32), rng.standard_normal((60, 2))
    wide, lams = Z.astype(float), (10.0, 0.1, 1e-300)
    for lam, W in zip(lams, ridge_path(DenseMatrix(Z), Y, lams)):
        expected = np.linalg.solve(wide.T @ wide + lam * np.eye(20), wide.T @ Y)
        np.testing.assert_allclose(W, expected, rtol=1e-8, atol=1e-10)


def test_it_is_as_good_as_a_fine_grid_and_the_model_is_that_of_the_command(numbers, tmp_path, X):
    words = "--method rf --n-features 100 --cv 3 --model m.npz --results t.csv --data".split()
    row = found(*words, numbers)
    best = row["params"]["tuned"]
    y = np.loadtxt([line.split()[0] for line in Path(numbers).read_text().splitlines()])

    def error(gamma, lam):
        given = {"task": "regression", "gamma": gamma, "n_features": 100}
        scores = [
            methods.create("rf", **given, lam=lam * len(kept) / 500)
            .fit(X[kept].round(6), y[kept])
            .score(X[out].round(6), y[out])
            .score
            for kept, out in Splitter(len(y), 0).folds(None, 3)
        ]
        return np.mean(scores)

    grid = itertools.product(4.0 ** np.arange(-2, 4), 10.0 ** np.arange(-3, 2))
    least = min(itertools.starmap(error, grid))
    assert best["score"] <= 1.02 * least and best["cv"] == 3
    words = row["command"].split()[1:]
    alone = CliRunner().invoke(cli, [*words, "--json"], standalone_mode=False)
    assert json.loads(alone.stdout)["objective"] == row["objective"]
    assert methods.load(tmp_path / "m.npz").method.lam == row["lam"]


def test_every_trial_is_kept_and_none_is_made_again(labels):
    words = ("--method", "rf", *PLAIN, "--n-features", "50", "--trials", "6")
    arguments = (*words, "--data", labels, "--results", "t.csv")
    first = found(*arguments)
    trials = kept()
    assert len(trials) == first["params"]["tuned"]["trials"] >= 5
    for row in trials:
        lams, scores = zip(*row["params"]["path"])
        assert list(lams) == sorted(lams, reverse=True)
        assert (row["score"], row["metric"]) == (max(scores), "accuracy")
    again = tune(*arguments)
    assert again.stdout.count("(was there)") == len(trials)
    assert len(kept()) == len(trials)
    # half of the file: the missing rows are computed
    lines = Path("t.csv").read_text().splitlines(keepends=True)
    Path("t.csv").write_text("".join(lines[:4]))
    assert tune(*arguments).stdout.count("(was there)") == 3
    second = found(*arguments)
    assert second["objective"] == first["objective"]
    assert second["params"]["tuned"] == first["params"]["tuned"]


def test_rounds_have_more_rows_and_fewer_candidates(set_sizes, labels):
    from rfx.runs import tune as module

    set_sizes(module, ROWS=(60, 150))
    words = "--method rf --n-features 64 --results t.csv --kernels gaussian,laplacian --data"
    row = found(*words.split(), labels, *PLAIN)
    trials = kept()
    rounds = Counter((one["params"]["round"], one["n_train"]) for one in trials)
    assert rounds == {(0, 60): 14, (1, 150): 4, (2, 400): rounds[2, 400]}
    assert rounds[2, 400] >= 2
    assert {one["kernel"] for one in trials} == {"gaussian", "laplacian"}
    last = [one["score"] for one in trials if one["params"]["round"] == 2]
    assert row["params"]["tuned"]["score"] == max(last)


@pytest.mark.parametrize("metric", ["balanced_accuracy", "auc", "log_loss"])
def test_other_measures(labels, metric):
    words = "--method rf --n-features 40 --trials 3 --gamma 4 --measure".split()
    score = found(*words, metric, "--data", labels, *PLAIN)["params"]["tuned"]["score"]
    assert 0.05 < score < 0.6 if metric == "log_loss" else 0.8 < score <= 1


@pytest.mark.parametrize("method", ["nystrom", "rb", "block", "kernel", "sparse-rf", "sparse-rb"])
def test_every_method_that_can_be_searched(numbers, method, smooth):
    words = ["--method", method, "--data", numbers, "--trials", "2", "--gamma", "median"]
    option = SIZES[method][0]
    size = () if option in (None, "block_size") else (f"--{option.replace('_', '-')}", "100")
    row = found(*words, *PLAIN, *size)
    assert row["method"] == method and row["params"]["tuned"]["score"] < 0.5 * np.std(smooth)


def test_auto_searches_several(numbers):
    done = tune("--data", numbers, *PLAIN, "--gamma", "median", "--trials", "12")
    lines = [line.split() for line in done.stdout.splitlines() if line.strip()[:1].isdigit()]
    assert {line[2] for line in lines} == {"local", "rf", "nystrom", "rb", "kernel", "rfm"}
    assert "rfx train --method" in done.stdout and "best rmse on held-out rows" in done.stdout


def test_local_machines_choose_their_lambda(numbers, smooth):
    row = found("--method", "local", "--data", numbers, *PLAIN)
    assert row["params"]["asked"]["lam"] == "auto"
    assert row["params"]["tuned"]["score"] < 0.5 * np.std(smooth)


def test_with_probabilities_the_score_is_of_the_most_probable_label(labels, X, rng):
    given = {"task": "binary", "class_weight": "balanced", "gamma": 1.0, "n_features": 20}
    split = data.load(labels)
    model = methods.create("rf", **given, lam=1.0, metric="none").fit(split.X_train, split.y_train)
    y = np.where(X[:, 0] + rng.standard_normal(500) > 1.5, 1.0, -1.0)  # few positives
    values = model.decision_function(X)
    made = Calibration.fit("platt", values, y, model.classes, "here")
    for calibrate, wanted in ((None, model), ("platt", model.replace(calibration=made))):
        tuning = Tuning(split, ["rf"], given, Run(dataset="x", method="rf", calibrate=calibrate))
        score = np.mean(wanted.labels(values) == y)
        assert tuning._scored(model, values, y) == pytest.approx(score)


@pytest.mark.parametrize("how", [[], ["--holdout", "0.3"]])
def test_auto_learns_probabilities_of_the_best(labels, how):
    words = ["--method", "auto", "--calibrate", "platt", "--trials", "4", "--model", "m.npz", *how]
    row = found("--data", labels, *PLAIN, *words)
    by = "150 rows, held out" if how else "500 rows, leave-one-out"
    if row["method"] == "rb" and not how:
        by = "100 rows, held out"
    assert row["params"]["calibration"].startswith(f"platt on {by}")
    assert "--calibrate platt" in row["command"] and row["method"] in (
        "local",
        "rf",
        "nystrom",
        "rb",
        "kernel",
    )
    words = ["predict", "m.npz", labels, "--proba"]
    done = CliRunner().invoke(cli, words, standalone_mode=False)
    P = np.array([line.split() for line in done.stdout.splitlines()], float)
    y = np.array([float(line.split()[0]) for line in Path(labels).read_text().splitlines()])
    assert P.shape == (500, 2) and np.allclose(P.sum(1), 1) and np.all((P > 0) & (P < 1))
    of_truth = np.where(y > 0, P[:, 1], P[:, 0])
    assert -np.log(of_truth).mean() < 0.6  # log 2 without a model


def test_without_a_file_and_with_another_seed():
    split = data.load("ripple:n=300,n_test=50")
    given = {"task": "regression", "scaling": "none", "n_features": 30, "gamma": 2.0}
    runs = [Run(dataset="ripple", method="rf", seed=seed) for seed in (0, 1, 1)]
    ended = [Tuning(split, ["rf"], given, run).run().best for run in runs]
    assert ended[1].path == ended[2].path != ended[0].path and ended[1].point["gamma"] == 2.0


def test_the_edge_is_said(numbers, X, smooth):
    words = "--method rf --n-features 30 --kernel gaussian --data".split()
    done = tune(*words, numbers, *PLAIN, "--lam", "1", "--trials", "1")
    assert "at the edge" not in done.stderr, "a lambda that was given has no edge"
    done = tune(*words, file(Path("exact.libsvm"), X, smooth), *PLAIN, "--gamma", "1")
    edge = "at the edge: lambda 0.001 is the smallest value tried; values beyond it may be better"
    assert edge in done.stderr


def test_figure(numbers):
    words = ["--method", "rf", *PLAIN, "--n-features", "40", "--trials", "4"]
    found(*words, "--data", numbers, "--results", "t.csv")
    done = CliRunner().invoke(cli, ["figure", "tune", "--results", "t.csv"], standalone_mode=False)
    assert done.stdout.split() == ["tune.png", "tune.svg", "tune.pdf", "tune.figure.csv"]
    assert any(element.get("id") == "tune-best" for element in xml.parse("tune.svg").iter())


def test_refusals(numbers):
    for words, text in (
        (["--method", "svr"], "method 'svr' is unknown"),
        (["--method", "norma"], "method 'norma' can't be searched"),
        (
            ["--method", "rf", "--lam", "validation"],
            "--lam and --gamma are searched by default",
        ),
        (["--method", "rf", "--kernels", "rbf"], "--kernels is 'rbf'; it must be one of"),
        (["--method", "rf", "--measure", "auc"], "--measure is auc, but the task is regression"),
        (["--method", "rf", "--cv", "3", "--holdout", "0.2"], "use only one of them"),
        (["--method", "rf", "--model", numbers], "--model"),
    ):
        with pytest.raises(RfxError, match=text):
            raise tune("--data", numbers, *words).exception


@pytest.mark.parametrize("parts", [(), ("--cv", "3")])
def test_single_rows_of_all_labels_are_named(tmp_path, monkeypatch, parts, X):
    monkeypatch.chdir(tmp_path)
    words = ("--method", "rf", "--data", file(tmp_path / "t.libsvm", X, np.arange(500)))
    done = tune(*words, *parts, "--task", "multiclass", "--budget-seconds", "1")
    assert "every label has 1 row" in str(done.exception)


def test_the_data_is_read_once(labels):
    """From standard input, which has its rows only once."""
    words = ("--method", "rf", "--data", "-", "--gamma", "4", "--trials", "1", *PLAIN, "--json")
    rows = Path(labels).read_bytes()
    done = CliRunner().invoke(cli, ["tune", *words], input=rows, standalone_mode=False)
    assert json.loads(done.stdout)["n_train"] == rows.count(b"\n")
