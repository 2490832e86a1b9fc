"""A model that scores far below the models of its search is named, whatever trained it."""

import json
from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner

from rfx.cli import cli
from rfx.fitting import assessment
from rfx.fitting.run_facts import Score

FAST = ("--scaling", "standard", "--metric", "none", "--target", "y")


def file(path, X, y):
    lines = ["a,b,c,y", *(",".join(map(str, [*row, own])) for row, own in zip(X, y))]
    path.write_text("\n".join(lines) + "\n")
    return str(path)


@pytest.fixture(scope="module")
def X():
    return np.random.default_rng(0).uniform(-1, 1, (300, 3))


@pytest.fixture(scope="module")
def labels(X):
    return np.where(X[:, 0] + X[:, 1] > 0, "yes", "no")


def doubt(*words):
    """The doubts in the row and on standard error."""
    result = CliRunner().invoke(cli, [*words, *FAST, "--json"])
    assert result.exit_code == 0, result.output
    warned = [line for line in result.stderr.splitlines() if "far worse" in line]
    return json.loads(result.stdout)["params"].get("doubt"), warned


COMMANDS = [
    ("tune", "--method", "rf", "--trials", "2"),
    # rf leaves rows out of the last fit itself
    ("train", "--method", "rb", "--n-grids", "64", "--no-baseline"),
]


@pytest.mark.parametrize(
    "words, faulty", [(COMMANDS[0], False), *((words, True) for words in COMMANDS)]
)
def test_a_last_fit_that_fails(tmp_path, labels, monkeypatch, words, faulty, X):
    fit = assessment.fit_all_rows

    def poor(trainer, table, listening):
        permuted = np.random.default_rng(1).permutation(table.y_train)
        return fit(trainer, replace(table, y_train=permuted), listening)

    if faulty:
        monkeypatch.setattr(assessment, "fit_all_rows", poor)
    sentence, warned = doubt(*words, "--data", file(tmp_path / "t.csv", X, labels))
    assert warned == ([f"rfx: {sentence}"] if faulty else [])


@pytest.mark.parametrize("task", ["binary", "regression"])
def test_test_rows_of_another_kind(tmp_path, labels, task, X):
    y = np.where(labels == "yes", 1.0, 0.0) if task == "binary" else X[:, 0] + 0.1 * X[:, 1]
    train = file(tmp_path / "t.csv", X, y)
    test = file(tmp_path / "test.csv", X, 1 - y)
    words = ("train", "--method", "rf", "--data", train, "--no-baseline", "--task", task)
    for of, count in ((train, 0), (test, 1)):
        assert len(doubt(*words, "--test", of)[1]) == count


@pytest.mark.parametrize(
    ("metric", "final", "chosen", "far"),
    [
        ("accuracy", 0.953, 0.9891, True),
        ("accuracy", 0.986, 0.9891, False),
        ("accuracy", 0.7, 0.75, False),
        ("rmse", 2.0, 1.0, True),
        ("rmse", 1.3, 1.0, False),
        ("rmse", 0.5, 1.0, False),
    ],
)
def test_how_far_is_far(metric, final, chosen, far):
    scores = [Score(metric, score, "rows", 2000) for score in (final, chosen)]
    assert scores[0].far_below(scores[1]) == far


def test_few_rows_are_no_evidence():
    assert not Score("accuracy", 0.7, "rows", 10).far_below(Score("accuracy", 0.9, "rows", 10))
