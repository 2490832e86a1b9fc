"""The score of `rfx train` without test rows: on rows that no choice of an option saw."""

import json
import re

import numpy as np
import pytest

from rfx import methods
from rfx.cli import main
from rfx.fitting.held_out import HeldOut
from rfx.records.run import Run
from rfx.runs import held_out, single

# chooses kernel, bandwidth, lambda and method in a short time
FAST = {"scaling": "standard", "metric": "none"}


@pytest.fixture
def trained(tmp_path):
    """The row of a training without test rows."""

    def of(X, y, method="auto", options=FAST, **more):
        np.savez(tmp_path / "data.npz", X=X, y=y)
        spec = {"dataset": str(tmp_path / "data.npz"), "method": method, "options": options}
        return single.execute(Run.of(spec | more), tmp_path / "m.npz", unseen=True)

    return of


def noise(n, seed, task):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n) if task == "binary" else rng.standard_normal(n)
    return rng.standard_normal((n, 4)), y.astype(float)


@pytest.mark.parametrize(("task", "method"), [("binary", "auto"), ("regression", "rfm")])
def test_on_noise_the_mean_score_is_that_of_a_constant(trained, task, method):
    gains = []
    for seed in range(12):
        row = trained(*noise(65, seed, task), method, FAST | {"task": task})
        gain = row.score - row.params["constant_score"]
        gains.append(gain if task == "binary" else -gain)
    assert np.mean(gains) < 2 * np.std(gains) / np.sqrt(len(gains))


def test_options_are_chosen_without_the_held_out_rows(trained, monkeypatch):
    monkeypatch.setattr(held_out, "FEWEST", 30)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((150, 4))
    y = (X[:, 0] + 0.5 * rng.standard_normal(150) > 0).astype(float)
    first = trained(X, y)
    ((kept, out),) = HeldOut(len(y), 0).folds(y, holdout=0.2)
    other = y.copy()
    other[out] = 1 - y[out]
    monkeypatch.setattr(HeldOut, "folds", lambda *given: [(kept, out)])
    second = trained(X, other)
    assert second.params["explicit"] == first.params["explicit"]
    assert second.score == pytest.approx(1 - first.score)


def test_the_final_model_has_the_chosen_options_and_all_rows(trained, monkeypatch, tmp_path):
    monkeypatch.setattr(held_out, "FEWEST", 10)
    X, y = noise(150, 0, "binary")
    row = trained(X, y)
    options = row.params["explicit"]
    again = methods.create(row.method, task="binary", **options).fit(X, y)
    kept = methods.load(tmp_path / "m.npz")
    assert kept.decision_function(X) == pytest.approx(again.decision_function(X))
    assert row.n_train == 150


@pytest.mark.parametrize(
    ("count", "words"),
    [
        (60, "5-fold cross-validation"),
        (400, "3 folds of 0.2 of the training rows"),
        (1000, "held out, 0.2 of the training rows"),
        (40_000, "held out, 0.1 of the training rows"),
    ],
)
def test_the_rows_of_the_score_are_said(trained, count, words):
    options = {"gamma": 1.0, "lam": 1.0, "n_features": 5}
    row = trained(*noise(count, 0, "regression"), "rf", options)
    assert row.params["scored_on"] == words


def test_a_class_with_one_row_has_a_score(trained):
    X, y = noise(60, 0, "binary")
    y[7] = 5.0
    options = {"gamma": 1.0, "lam": 1.0, "n_features": 5, "task": "multiclass"}
    assert trained(X, y, "rf", options).n_test == 60


@pytest.mark.parametrize("count", [9, 30])
def test_without_rows_to_hold_out_the_score_is_that_of_training(trained, count):
    X, y = noise(count, 0, "binary")
    y = y if count < 10 else np.ones(count)
    row = trained(X, y, "rf", {"gamma": 1.0, "lam": 1.0, "n_features": 5, "task": "binary"})
    assert row.score is None
    assert "train_score" in row.params


def printed(capfd, *words):
    with pytest.raises(SystemExit):
        main([str(word) for word in words])
    return capfd.readouterr().out


@pytest.mark.parametrize("option", [("--holdout", "0.3"), ("--cv", "2")])
def test_the_command_of_the_same_model_holds_nothing_out(tmp_path, capfd, option):
    X, y = noise(60, 0, "binary")
    np.savez(tmp_path / "data.npz", X=X, y=y)
    words = ("train", "--data", tmp_path / "data.npz", "--scaling", "standard", "--metric", "none")
    out = printed(capfd, *words, *option, "--no-baseline", "--json")
    assert option[0] not in json.loads(out)["command"]


@pytest.mark.parametrize("unit", [1e-9, 1.0, 1e20])
def test_errors_are_printed_with_significant_digits(tmp_path, capfd, unit):
    X, y = noise(60, 0, "regression")
    np.savez(tmp_path / "data.npz", X=X, y=unit * y)
    words = ("train", "--data", tmp_path / "data.npz", "--method", "rf", "--task", "regression")
    words += ("--lam", 1, "--gamma", 1, "--model", tmp_path / "m.npz")
    printed(capfd, *words)
    for command in (words, ("eval", tmp_path / "m.npz", "--data", tmp_path / "data.npz")):
        text = printed(capfd, *command, *(["--force"] if command is words else []))
        score = re.search(r"^rmse +(\S+) on", text, re.MULTILINE).group(1)
        assert re.fullmatch(r"[0-9.]{5,7}(e[+-][0-9]{2})?", score)
        assert float(score) == pytest.approx(unit, rel=0.5)


def test_a_chosen_value_that_is_none_is_not_printed(tmp_path, capfd):
    X, y = noise(300, 0, "regression")
    np.savez(tmp_path / "data.npz", X=X, y=y)
    text = printed(capfd, "train", "--data", tmp_path / "data.npz", "--no-baseline")
    assert "None" not in text
    assert "00000000" not in text
