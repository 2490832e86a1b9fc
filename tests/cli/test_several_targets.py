"""Several targets per row, in different units: choices, scores, and every form of predictions."""

import csv
import json
from types import SimpleNamespace

import numpy as np
import pytest
from click.testing import CliRunner

from rfx import methods
from rfx.cli import cli
from rfx.errors import UsageError
from rfx.estimators import LocalRegressor

FIXED = ["--scaling", "standard", "--metric", "none"]


@pytest.fixture(scope="module")
def data():
    """Rows (120, 3), and two targets whose units differ by a factor of 1000."""
    X = np.random.default_rng(0).normal(size=(120, 3))
    return SimpleNamespace(X=X, Y=np.c_[np.sin(2 * X[:, 0]), 1000 * np.sin(2 * X[:, 1])])


def rfx(*words):
    return CliRunner().invoke(cli, [str(word) for word in words])


@pytest.fixture(scope="module")
def folder(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("several")
    np.savez(path / "two.npz", X=data.X, y=data.Y)
    made = rfx(
        "train", "--method", "local", "--data", path / "two.npz", *FIXED, "--model", path / "m.npz"
    )
    assert made.exit_code == 0, made.output
    return path


def test_a_target_is_learnt_alike_in_every_unit(data):
    """The larger target alone decided: R2 of the other was -.46 at a unit of 1e6."""
    small, large = (
        LocalRegressor().fit(data.X, data.Y * [1, unit]).predict(data.X[:20]) / [1, unit]
        for unit in (1e-3, 1e3)
    )
    np.testing.assert_allclose(small / data.Y.std(axis=0), large / data.Y.std(axis=0), atol=1e-3)


def test_scores_of_training_and_evaluation_agree(folder, data):
    run = ["--data", folder / "two.npz", "--json"]
    trained = json.loads(rfx("train", "--method", "local", *FIXED, *run).stdout)
    tested = json.loads(rfx("eval", folder / "m.npz", *run).stdout)
    assert trained["metric"] == tested["metric"] == "rmse"
    for row in (trained, tested):
        each = row["params"]["rmse_by_target"] / data.Y.std(axis=0)
        assert row["score"] == pytest.approx(np.sqrt(np.mean(each**2)))
    measured = tested["params"]["measures"]["rmse_by_target"]
    assert measured == pytest.approx(tested["params"]["rmse_by_target"])
    assert "RMSE by target" in rfx("eval", folder / "m.npz", *run[:2]).stdout


@pytest.mark.parametrize("digits", [[], ["--digits", "3"]])
@pytest.mark.parametrize("form", ["text", "csv", "json"])
@pytest.mark.parametrize("decision", [[], ["--decision"]])
def test_every_form_of_predictions(folder, form, decision, digits, data):
    options = ["--format", form, *decision, *digits]
    found = rfx("predict", folder / "m.npz", folder / "two.npz", *options)
    assert found.exit_code == 0, found.output
    model = methods.load(folder / "m.npz")
    show = model.decision_function if decision and form != "json" else model.predict
    values = show(data.X)
    if form == "json":
        shown = json.loads(found.stdout)["predictions"]
    elif form == "csv":
        rows = list(csv.DictReader(found.stdout.splitlines()))
        kind = "decision" if decision else "prediction"
        assert [*rows[0]][:2] == ["prediction_1", "prediction_2"]
        shown = [[float(row[f"{kind}_{number}"]) for number in (1, 2)] for row in rows]
    else:
        shown = [[*map(float, line.split())] for line in found.stdout.splitlines()]
    np.testing.assert_allclose(shown, values, rtol=1e-2 if digits else 1e-6)


@pytest.mark.parametrize("option", [["--interval", "0.9"], ["--sets", "0.9"], ["--proba"]])
def test_options_for_one_target_are_refused(folder, option):
    found = rfx("predict", folder / "m.npz", folder / "two.npz", *option)
    words = str(found.exception)
    assert isinstance(found.exception, UsageError)
    assert ("target" in words or "regression" in words) and "--holdout" not in words


def test_tuning_is_for_one_target(folder):
    found = rfx("tune", "--data", folder / "two.npz", "--quiet")
    assert isinstance(found.exception, UsageError) and "one target" in str(found.exception)


OPTIONS = {"scaling": "standard", "metric": "none"}


@pytest.mark.parametrize("name", methods.names())
def test_a_written_model_can_be_read(tmp_path, name, data):
    """A model of several targets is refused before training, or predicts the same from its file."""
    X = data.X
    declared = methods.get(name).declared()
    options = {key: value for key, value in OPTIONS.items() if key in declared}
    trainer = methods.create(name, task="regression", **options)
    try:
        trained = trainer.fit(X, data.Y)
    except UsageError as refused:
        assert name in str(refused) or "regression" in str(refused)
        return
    trained.save(tmp_path / "m.npz")
    found = methods.load(tmp_path / "m.npz").predict(X)
    np.testing.assert_allclose(found, trained.predict(X), rtol=1e-3)
    assert found.shape == data.Y.shape
