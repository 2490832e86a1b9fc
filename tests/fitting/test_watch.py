"""The held-out error at every step of a solver; that of the last step is the error of the model."""

import numpy as np
import pytest
from click.testing import CliRunner

from rfx import methods
from rfx.cli import cli
from rfx.errors import UsageError
from rfx.records import traces


def problem(task):
    rng = np.random.default_rng(5)
    X = rng.uniform(-1, 1, (240, 3))
    f = np.sin(3 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.3 * rng.standard_normal(240)
    return X, {
        "regression": f,
        "binary": np.where(f > 0, 1.0, -1.0),
        "multiclass": np.digitize(f, [-0.5, 0.5]) + 1.0,
    }[task]


@pytest.mark.parametrize("task", ["regression", "binary", "multiclass"])
@pytest.mark.parametrize(
    "name, options",
    [
        ("rf", {"n_features": 60}),
        ("rf", {"n_features": 60, "solver": "cg", "loss": "squared"}),
        ("rf", {"n_features": 60, "loss": "squared", "offset": "mean"}),
        ("rf", {"n_features": 60, "solver": "liblinear", "loss": "squared_hinge"}),
        ("sparse-rf", {"n_features": 60, "lam": 1.0, "rounds": 3}),
        ("sparse-rf", {"n_features": 60, "lam": 1.0, "solver": "prcd"}),
        ("nystrom", {"n_features": 40}),
        ("kernel", {"loss": "squared"}),
        ("kernel", {"loss": "logistic"}),
        ("rb", {"n_grids": 16}),
        ("rb", {"n_grids": 32, "grow": 0.3}),
        ("rb", {"n_grids": 16, "loss": "squared_hinge"}),
        ("sparse-rb", {"n_grids": 16, "lam": 0.5}),
    ],
)
def test_the_last_error_is_that_of_the_model(name, options, task):
    if task == "regression" and options.get("loss", "squared") != "squared":
        options = {name: value for name, value in options.items() if name not in ("loss", "solver")}
    if options != {"n_features": 60}:  # one of them also chooses scaling and metric
        options = {"scaling": "standard", "metric": "none", **options}
    X, y = problem(task)
    method = methods.create(name, task=task, **options)
    method = method.fit(X[:160], y[:160], held_out=(X[160:], y[160:]))
    score = method.score(X[160:], y[160:])["score"]
    errors = [entry["error"] for entry in method.trace if "error" in entry]
    assert errors and errors[-1] == pytest.approx(
        score if task == "regression" else 1 - score, rel=1e-6, abs=1e-9
    )
    plain = methods.create(name, task=task, **options).fit(X[:160], y[:160])
    assert np.array_equal(plain.decision_function(X), method.decision_function(X)), (
        "to watch changes nothing"
    )


@pytest.mark.parametrize("name, options", [("block", {}), ("rf", {"lam_path": "10:1:3"})])
def test_what_can_not_be_watched_is_refused(name, options):
    with pytest.raises(UsageError, match="curves are not supported for method"):
        X, y = problem("binary")
        methods.create(name, **options).fit(X, y, held_out=(X, y))


def test_curve_goes_into_the_trace(tmp_path):
    words = ["train", "--method", "rf", "--data", "breast_cancer", "--n-features", "50", "--curve"]
    refused = CliRunner().invoke(cli, words)
    assert "--curve needs --trace" in str(refused.exception)
    done = CliRunner().invoke(
        cli, [*words, "--trace", str(tmp_path / "t.csv")], catch_exceptions=False
    )
    (steps,) = traces.read(tmp_path / "t.csv").values()
    assert done.exit_code == 0 and 0 <= steps[-1]["error"] < 0.2
