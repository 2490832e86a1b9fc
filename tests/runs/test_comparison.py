"""The scores of rows by a measure, the noise of the difference of two models on the same rows, and
the limit of --fail-below.
"""

import json

import numpy as np
import pytest
from scipy.stats import ttest_rel
from shell import printed, run
from sklearn.metrics import balanced_accuracy_score, log_loss, roc_auc_score

from rfx.errors import UsageError
from rfx.records.limits import Limit
from rfx.records.run import Result
from rfx.runs.evaluation import class_row_scores, score_of, standard_error

pytestmark = pytest.mark.usefixtures("own_folders")
CLASSES = np.array([0.0, 1.0, 2.0])
FAST = ("--method", "rf", "--n-features", 30, "--gamma", 1, "--lam", 1, "--kernel", "gaussian")
FAST += ("--scaling", "standard", "--metric", "none", "--quiet")


def predictions(n, n_classes, seed=0):
    """Labels (n,) and probabilities (n, classes) with ties that know something about them."""
    rng = np.random.default_rng(seed)
    y = rng.integers(n_classes, size=n).astype(float)
    shares = rng.dirichlet(np.ones(n_classes), n) + 0.4 * (y[:, None] == np.arange(n_classes))
    shares = np.round(shares, 1) + 0.01
    return y, shares / shares.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_mean_over_the_rows_is_the_measure(n_classes):
    y, shares = predictions(200, n_classes)
    found, classes = shares.argmax(axis=1).astype(float), CLASSES[:n_classes]
    area = roc_auc_score(y, shares[:, 1] if n_classes == 2 else shares, multi_class="ovr")
    for measure, expected in (
        ("accuracy", np.mean(found == y)),
        ("balanced_accuracy", balanced_accuracy_score(y, found)),
        ("auc", area),
        ("log_loss", log_loss(y, shares)),
    ):
        rows = class_row_scores(measure, classes, y, found, shares)
        assert score_of(measure, rows) == pytest.approx(expected, rel=1e-12)


def test_the_noise_of_errors_is_that_of_a_paired_test():
    one, other = np.random.default_rng(0).random((2, 50)) ** 2
    for measure in ("accuracy", "rmse"):
        error = standard_error(measure, one, other)
        gain = score_of(measure, one) - score_of(measure, other)
        assert gain / error == pytest.approx(ttest_rel(one, other).statistic, rel=1e-12)


def test_the_noise_of_an_auc_is_its_deviation_over_draws():
    """Two scorings of the same rows, correlated; 400 draws of 300 rows."""
    rng, differences, errors = np.random.default_rng(0), [], []
    for _ in range(400):
        y = (rng.random(300) < 0.3).astype(float)
        common = y + rng.normal(size=300)
        rows = [
            class_row_scores("auc", CLASSES[:2], y, y, common + scale * rng.normal(size=300))
            for scale in (0.5, 1.0)
        ]
        differences.append(rows[0].mean() - rows[1].mean())
        errors.append(standard_error("auc", *rows))
    assert np.mean(errors) == pytest.approx(np.std(differences), rel=0.1)


# ---------------------------------------------------------------------- the command


@pytest.fixture
def table(tmp_path):
    """Two classes by a linear rule with noise; a kernel with gamma 1 knows less of it."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 6))
    y = X.sum(axis=1) + rng.normal(size=300) > 0.5
    lines = [
        ",".join(map(str, [*row.round(3), word])) for row, word in zip(X, np.where(y, "b", "a"))
    ]
    (tmp_path / "t.csv").write_text("a,b,c,d,e,f,y\n" + "\n".join(lines))
    return tmp_path / "t.csv"


def test_every_number_is_by_the_measure(table, capfd):
    words = ("train", *FAST, "--data", table, "--measure", "auc", "--json")
    params = json.loads(printed(capfd, *words))["params"]
    baseline = params["baseline"]
    assert (baseline["metric"], baseline["constant"]) == ("auc", 0.5)
    assert 0.5 < params["measures"]["auc"] < baseline["linear"] < 1
    assert set(baseline["standard_errors"]) == {"linear", "boosting"}
    model = table.with_name("m.npz")
    said = [word for word in words if word not in ("--quiet", "--json")]
    out = printed(capfd, *said, "--model", model)
    gain = baseline["linear"] - params["measures"]["auc"]
    assert f"a linear model is better than this model by {gain:.4f}" in out
    out = json.loads(printed(capfd, "explain", model, "--data", table, "--top", 0, "--json"))
    assert out["metric"] == "1 - AUC"
    assert out["error"] == pytest.approx(1 - auc_of(capfd, model, table), abs=1e-12)
    code, _, err = run(capfd, "eval", model, "--data", table, "--quiet", "--fail-below", 1.01)
    assert code == 5 and err.startswith("rfx: the auc ")


def auc_of(capfd, model, data):
    return json.loads(printed(capfd, "eval", model, "--data", data, "--json"))["params"][
        "measures"
    ]["auc"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "limit, says",
    [
        ("0.999", "the accuracy 0."),
        ("auc=0.999", "the auc 0."),
        ("log_loss=0.001", "is above 0.001"),
        ("baseline", "this model (--fail-below baseline)"),
    ],
)
def test_a_model_below_the_limit_does_not_replace_the_old_one(limit, says, table, capfd):
    model = table.with_name("m.npz")
    words = ("train", *FAST, "--data", table, "--model", model)
    printed(capfd, *words, "--fail-below", 0.5)
    before = model.read_bytes()
    code, _, err = run(capfd, *words, "--seed", 1, "--fail-below", limit)
    assert code == 5 and says in err and "m.npz is not written" in err
    assert model.read_bytes() == before
    printed(capfd, *words, "--seed", 1, "--fail-below", "auc=0.5")
    assert model.read_bytes() != before


@pytest.mark.parametrize("text", ["accurcy=0.5", "good", "auc=", "=0.5"])
def test_a_limit_is_a_number_a_measure_or_the_baselines(text):
    with pytest.raises(UsageError, match="--fail-below is .*MEASURE=NUMBER"):
        Limit.of(text)


def result(baseline, **measures):
    """A row of a regression with an RMSE of 2."""
    params = {"baseline": baseline, "measures": measures, "constant_score": 3.0}
    return Result(
        dataset="d", method="rf", task="regression", metric="rmse", score=2.0, params=params
    )


def test_an_advantage_within_two_standard_errors_is_noise():
    baseline = {"metric": "rmse", "on": "50 rows", "constant": 3.0, "linear": 1.9, "boosting": 1.9}
    row = result(baseline | {"standard_errors": {"linear": 0.06, "boosting": 0.04}})
    assert [one.is_noise for one in row.better] == [True, False]
    assert "gradient boosting is better" in Limit.of("baseline").missed(row)
    assert Limit.of("baseline").missed(result(baseline | {"linear": 2.1, "boosting": 2.1})) is None


def test_less_of_an_error_is_better():
    row = result({}, rmse=4.0, r2=0.6)
    assert Limit.of("rmse=3.9").missed(row) and not Limit.of("rmse=4.1").missed(row)
    assert Limit.of("0.7").missed(row) and not Limit.of("0.5").missed(row)
    assert "no mae is known" in Limit.of("mae=1").missed(row)


@pytest.mark.slow
def test_a_plan_fails_below_the_limit_even_if_its_rows_are_there(table, capfd):
    plan = table.with_name("p.toml")
    plan.write_text(
        f'[[run]]\ndataset = "{table.name}"\nmethod = "rf"\ncv = 2\n'
        'options = { n_features = 20, gamma = 1.0, lam = 1.0, kernel = "gaussian" }\n'
    )
    words = ("run", plan, "--results", table.with_name("r.csv"), "--quiet", "--fail-below")
    code, _, err = run(capfd, *words, "auc=0.999")
    assert code == 5 and "rfx: rf on t.csv, seed 0: the auc 0." in err
    before = table.with_name("r.csv").read_bytes()
    assert run(capfd, *words, "auc=0.2") == (0, "", "")
    code, _, err = run(capfd, *words, "baseline")
    assert code == 5 and "there are no baselines" in err
    assert table.with_name("r.csv").read_bytes() == before
