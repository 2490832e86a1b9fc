"""Scores other than that on test rows: measures of eval, cross-validation and held-out rows,
probabilities, the constant baseline; without any, rows that no choice of an option saw.
"""

import json
import re
import time
import warnings
from types import SimpleNamespace

import numpy as np
import pandas
import pytest
import scipy.sparse as sp
from shell import printed, refused, run
from sklearn import metrics as sk
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_svmlight_file
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

import rfx
from rfx import data, methods
from rfx.cli import output
from rfx.cli.output import Progress
from rfx.data import libsvm
from rfx.errors import DataError, RfxWarning
from rfx.fitting import assessment
from rfx.fitting.held_out import VECTOR_SCALING, Calibration, Splitter, vector_scaling
from rfx.fitting.progress import ProgressReport
from rfx.records import results
from rfx.records.run import Run
from rfx.runs import baselines, evaluation, single

pytestmark = pytest.mark.slow

# nothing is chosen of the inputs, which takes most of the time
PLAIN = ("--kernel", "gaussian", "--scaling", "standard", "--metric", "none")


@pytest.fixture(scope="module")
def plane():
    """Rows of two inputs, and targets of each task by the first one, with noise."""
    rng = np.random.default_rng(3)
    X, noise = rng.normal(size=(300, 2)), rng.normal(size=300)
    targets = {
        "binary": np.where(X[:, 0] + 0.5 * noise > 0, 1.0, -1.0),
        "multiclass": np.digitize(X[:, 0] + 0.3 * noise, [-0.5, 0.5]).astype(float),
        "regression": 50 + 10 * X[:, 0] + noise,
    }
    return SimpleNamespace(X=X, targets=targets)


def fitted(plane, task, **options):
    method = methods.create("rf", task=task, n_features=50, **options)
    return method.fit(plane.X[:200], plane.targets[task][:200])


@pytest.fixture
def files(tmp_path, plane):
    for task, y in plane.targets.items():
        libsvm.write(tmp_path / f"{task}.txt", plane.X[:200], y[:200])
        libsvm.write(tmp_path / f"{task}-test.txt", plane.X[200:], y[200:])
    return tmp_path


@pytest.mark.parametrize("task", ["binary", "multiclass"])
def test_measures_of_classes_are_those_of_scikit_learn(task, plane):
    method = fitted(plane, task, loss="logistic")
    y, decision = plane.targets[task][200:], method.decision_function(plane.X[200:])
    found, predicted = evaluation.measures(method, decision, y), method.predict(plane.X[200:])
    probabilities = method.probabilities(decision)
    assert found.values["accuracy"] == sk.accuracy_score(y, predicted)
    assert found.values["balanced_accuracy"] == pytest.approx(
        sk.balanced_accuracy_score(y, predicted)
    )
    assert found.values["f1"] == pytest.approx(
        sk.f1_score(y, predicted, average="binary" if task == "binary" else "macro")
    )
    assert found.values["log_loss"] == pytest.approx(sk.log_loss(y, probabilities))
    score = probabilities[:, 1] if task == "binary" else probabilities
    assert found.values["auc"] == pytest.approx(sk.roc_auc_score(y, score, multi_class="ovr"))
    assert found.values.keys() == {"accuracy", "balanced_accuracy", "f1", "log_loss", "auc"}
    assert found.confusion == sk.confusion_matrix(y, predicted).tolist()
    assert found.labels == np.unique(y).tolist()


def test_measures_of_a_regression_are_in_the_target_s_own_units(plane):
    method = fitted(plane, "regression", target_scaling="minmax01")
    y, predicted = plane.targets["regression"][200:], method.predict(plane.X[200:])
    found = evaluation.measures(method, method.decision_function(plane.X[200:]), y)
    assert found.values == {
        "rmse": pytest.approx(sk.root_mean_squared_error(y, predicted)),
        "mae": pytest.approx(sk.mean_absolute_error(y, predicted)),
        "r2": pytest.approx(sk.r2_score(y, predicted)),
    }


def test_a_label_that_the_model_does_not_know_is_wrong_and_in_the_matrix(plane):
    method, y = fitted(plane, "binary"), plane.targets["binary"][200:].copy()
    y[:5] = 7.0
    found = evaluation.measures(method, method.decision_function(plane.X[200:]), y)
    assert found.labels == [-1.0, 1.0, 7.0] and "log_loss" not in found.values
    assert sum(found.confusion[2]) == 5
    assert found.values["accuracy"] == np.mean(method.predict(plane.X[200:]) == y)


def test_platt_s_curve_is_scikit_learn_s(plane):
    class Decision(LogisticRegression):
        def decision_function(self, rows):
            return rows[:, 0]

    y = plane.targets["binary"]
    values = 3 * plane.X[:, 0]
    ours = Calibration.fit("platt", values[:200], y[:200], np.array([-1.0, 1.0]), "test")
    prefit = FrozenEstimator(Decision().fit(values[:, None], y))
    theirs = CalibratedClassifierCV(prefit, method="sigmoid").fit(values[:200, None], y[:200])
    assert ours.probabilities(values[200:]) == pytest.approx(
        theirs.predict_proba(values[200:, None]), abs=2e-4
    )
    again = Calibration.from_dict(json.loads(json.dumps(ours.to_dict())), 1)
    assert np.array_equal(again.probabilities(values), ours.probabilities(values))


def ordered(n, seed):
    """Decision values of three ordered classes by one-against-rest ridge, which learns nothing of
    the class in the middle, and their codes; the last class has 3 % of the rows.
    """
    rng = np.random.default_rng(seed)
    inner = rng.normal(size=n)
    codes = np.digitize(inner + rng.normal(size=n), [0.4, 2.7])
    noise = 0.1 * rng.normal(size=n)
    return np.column_stack([-0.5 * inner, noise - 0.2, 0.1 * inner - 0.9]), codes


@pytest.mark.parametrize("count", [2, 3])
def test_mean_probabilities_are_the_shares_of_the_classes(count):
    (values, codes), (new, outcome) = ordered(1500, 0), ordered(20_000, 1)
    if count == 2:
        values, codes, new, outcome = values[:, 2], codes // 2, new[:, 2], outcome // 2
    curve = Calibration.fit(VECTOR_SCALING, values, codes, np.arange(count), "test")
    shares = curve.probabilities(values).mean(axis=0)
    # up to a row of every class
    assert shares == pytest.approx(np.bincount(codes) / 1500, abs=1 / 1500)
    found = sk.log_loss(outcome, curve.probabilities(new))
    best = LogisticRegression(C=1e6).fit(new.reshape(len(new), -1), outcome)
    assert found < 1.03 * sk.log_loss(outcome, best.predict_proba(new.reshape(len(new), -1)))


@pytest.mark.parametrize("count", [2, 4])
def test_separated_decision_values_make_no_label_certain(count):
    codes = np.repeat(np.arange(count), 25)
    values = np.where(codes[:, None] == np.arange(count), 1.0, -1.0)
    values = values[:, 1] if count == 2 else values
    curve = Calibration.fit(VECTOR_SCALING, values, codes, np.arange(count), "test")
    assert curve.probabilities(values).min() == pytest.approx(1 / (len(codes) + 2) / count, rel=0.1)


def test_a_larger_decision_value_never_makes_its_label_less_probable():
    values, y = steep(200, 0)
    rows = np.r_[np.flatnonzero(y < 0), np.flatnonzero(y > 0)[:40]]
    values, y = values[rows], y[rows]
    curve = Calibration.fit(VECTOR_SCALING, -values, y, np.array([-1.0, 1.0]), "test")
    assert np.ptp(curve.probabilities(values)[:, 1]) == pytest.approx(0, abs=1e-6)
    assert curve.probabilities(values)[0, 1] == pytest.approx(np.mean(y > 0), abs=1e-2)


@pytest.mark.parametrize("count", [2, 3])
def test_without_evidence_for_more_the_prediction_is_the_most_probable_label(count):
    rng = np.random.default_rng(0)
    values = rng.normal(size=(200, count))
    codes = (values + rng.gumbel(size=(200, count)) / 2).argmax(axis=1)
    values = values[:, 1] - values[:, 0] if count == 2 else values
    slopes, intercepts = vector_scaling(values, codes)
    assert len(set(slopes)) == 1 and slopes[0] == pytest.approx(2, rel=0.3)
    assert not intercepts.any()


def steep(n, seed):
    """Decision values and labels whose outcome is certain at both ends."""
    rng = np.random.default_rng(seed)
    values = rng.normal(size=n)
    return values, np.where(rng.random(n) < 1 / (1 + np.exp(-6 * values)), 1.0, -1.0)


def test_an_isotonic_curve_leaves_every_label_possible():
    values, y = steep(1000, 0)
    curve = Calibration.fit("isotonic", values, y, np.array([-1.0, 1.0]), "test")
    assert curve.kind == "isotonic"
    assert (np.diff(curve.probabilities(np.linspace(-9, 9, 999))[:, 1]) >= 0).all()
    new, outcome = steep(20_000, 1)
    shares = curve.probabilities(new)
    sure = shares[np.arange(len(new)), (outcome > 0).astype(int)]
    assert sure.min() > 1e-3
    # that of the true probabilities is .207, that of an uncorrected curve .28
    assert -np.log(sure).mean() < 0.22


def test_few_rows_get_platt_s_curve():
    values, y = steep(999, 0)
    with pytest.warns(RfxWarning, match="needs 1,000 held-out rows"):
        curve = Calibration.fit("isotonic", values, y, np.array([-1.0, 1.0]), "test")
    assert curve.words() == "platt on 999 rows, test"


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "other"},
        {"curves": []},
        {"curves": [[[1.0], [float("nan")]]]},
        {"curves": [[[2.0, 1.0], [0.0]]]},
        {"curves": 5},
    ],
)
def test_a_damaged_calibration_is_refused(change):
    saved = {"kind": "isotonic", "rows": 3, "by": "", "curves": [[[0.0, 1.0], [0.1, 0.9]]]}
    assert Calibration.from_dict(saved, 1)
    with pytest.raises((DataError, KeyError, TypeError)):
        Calibration.from_dict(saved | change, 1)


@pytest.mark.parametrize("classes", [False, True])
def test_folds_have_every_row_once_and_their_share_of_each_class(classes):
    y = np.array([0.0] * 20 + [1.0] * 5)
    parts = Splitter(25, 4).folds(y if classes else None, cv=5)
    assert np.array_equal(np.sort(np.concatenate([out for _, out in parts])), np.arange(25))
    assert all(np.array_equal(np.sort(np.concatenate(part)), np.arange(25)) for part in parts)
    if classes:
        assert all(y[out].sum() == 1 for _, out in parts)
    ((kept, out),) = Splitter(25, 4).folds(y if classes else None, holdout=0.2)
    assert (len(kept), len(out)) == (20, 5) and not set(kept) & set(out)
    assert not np.array_equal(out, Splitter(25, 5).folds(y if classes else None, holdout=0.2)[0][1])


def test_a_class_of_two_rows_is_never_lost():
    y = np.array([0.0] * 11 + [1.0] * 2)
    for seed in range(20):
        for how in ({"cv": 2}, {"cv": 5}, {"holdout": 0.5}, {"holdout": 0.2}):
            assert all(
                len(np.unique(y[kept])) == 2 for kept, _ in Splitter(13, seed).folds(y, **how)
            )
    with pytest.raises(DataError, match="two rows of each class.* 1 row .* label 1;"):
        Splitter(12, 0).folds(y[:-1], cv=5)
    with pytest.raises(DataError, match="--cv 14 needs more rows than the 13"):
        Splitter(13, 0).folds(None, cv=14)


# Inputs for which nothing is chosen: a choice would change with the digits in the file.
FIXED = {"kernel": "gaussian", "scaling": "minmax01", "metric": "none", "n_features": 50}


@pytest.mark.parametrize("task", ["binary", "multiclass", "regression"])
def test_the_score_of_cross_validation_is_that_of_models_without_the_rows(task, files, plane):
    spec = {
        "dataset": str(files / f"{task}.txt"),
        "method": "rf",
        "options": {"task": task} | FIXED,
        "seed": 2,
        "cv": 4,
    }
    row, y = single.execute(Run.of(spec)), plane.targets[task][:200]
    decision = np.empty(200) if task != "multiclass" else np.empty((200, 3))
    whole = methods.create("rf", task=task, seed=2, **FIXED).fit(plane.X[:200], y)
    for kept, out in Splitter(200, 2).folds(None if task == "regression" else y, cv=4):
        one = methods.create("rf", task=task, seed=2, **FIXED).fit(plane.X[kept], y[kept])
        decision[out] = one.decision_function(plane.X[out])
        if task == "regression":  # in units of the targets of all rows
            decision[out] = whole.target_scaler.transform(one.predict(plane.X[out]))
    assert row["score"] == pytest.approx(whole.evaluate(decision, y).score)
    assert (row["n_test"], row["params"]["scored_on"]) == (200, "4-fold cross-validation")
    assert "train_score" not in row["params"]
    assert row["objective"] == pytest.approx(whole.info["objective"])


def test_a_constant_is_the_most_frequent_label_or_the_mean(plane):
    classifier, regressor = fitted(plane, "binary"), fitted(plane, "regression")
    y = np.array([1.0, 1.0, 2.0])
    assert baselines.constant(classifier, [(y, np.array([1.0, 2.0, 2.0, 2.0]))]) == 0.25
    numbers = [(np.array([1.0, 3.0]), np.array([2.0, 5.0]))]
    assert baselines.constant(regressor, numbers) == pytest.approx(np.sqrt(4.5))
    parts = [(y, np.array([1.0, 2.0])), (y + 1, np.array([2.0, 2.0]))]
    assert baselines.constant(classifier, parts) == 0.75


def test_simple_models_stand_beside_the_score_on_its_rows(files, capfd):
    """The scores of scikit-learn's models on the rows of the score, fitted to the same rows."""

    def beside(*more):
        words = ["train", "--method", "rf", "--gamma", 0.3, "--lam", 1, "--json", *more]
        row = json.loads(printed(capfd, *words, "--data", files / "binary.txt"))
        return row["params"].get("baseline")

    X, y, X_test, y_test = (
        part.toarray() if hasattr(part, "toarray") else part
        for name in ("binary", "binary-test")
        for part in load_svmlight_file(str(files / f"{name}.txt"))
    )
    found = beside("--test", files / "binary-test.txt")
    model = HistGradientBoostingClassifier(early_stopping=False, random_state=0).fit(X, y)
    assert found["boosting"] == model.score(X_test, y_test) and found["iterations"] == 100
    own = StandardScaler().fit(X)
    linear = LogisticRegression().fit(own.transform(X), y)
    assert found["linear"] == linear.score(own.transform(X_test), y_test)
    assert found["constant"] == np.mean(y_test == (1 if np.mean(y > 0) > 0.5 else -1))
    assert found["on"] == "the same 100 rows"

    def boosting(kept, out):
        model = HistGradientBoostingClassifier(early_stopping=False, random_state=0)
        return model.fit(X[kept], y[kept]).score(X[out], y[out])

    (part,) = Splitter(len(y), 0).folds(y, holdout=0.25)
    assert beside("--holdout", 0.25)["boosting"] == boosting(*part)
    folds = Splitter(len(y), 0).folds(y, cv=5)
    mean = pytest.approx(np.mean([boosting(*part) for part in folds]))
    assert beside("--cv", 5)["boosting"] == mean
    assert beside()["boosting"] == mean, "few rows are held out in folds"
    assert beside("--no-baseline") is None


def test_the_linear_baseline_of_uncentred_classes_has_converged():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 8)) @ rng.normal(size=(8, 8))
    y = np.argmax(X @ rng.normal(size=(8, 3)) + rng.normal(size=(600, 3)), axis=1).astype(float)
    X += 30
    parts = sp.csr_matrix(X[:300]), y[:300], sp.csr_matrix(X[300:]), y[300:]
    table = data.TrainingTable("x", "all", "multiclass", *parts)
    method = methods.create("rf", lam=1.0, gamma=1.0).fit(*parts[:2])
    scaled = StandardScaler().fit(X[:300])
    model = LogisticRegression(tol=1e-8, max_iter=10_000).fit(scaled.transform(X[:300]), y[:300])
    expected = model.score(scaled.transform(X[300:]), y[300:])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = baselines.baseline_scores(Run(dataset="x", method="rf"), table, method)
    assert found.linear == pytest.approx(expected, abs=0.005)


def test_a_baseline_of_fewer_rows_says_so(files, capfd, set_sizes):
    set_sizes(baselines, FITTED=50, VALUES=0)
    words = ["--data", files / "binary.txt", "--test", files / "binary-test.txt"]
    _, out, _ = run(capfd, "train", "--method", "rf", "--gamma", 0.3, "--lam", 1, *words)
    assert "on the same 100 rows, fitted to 50 of 200 rows" in out


def test_boosting_of_many_classes_is_left_out():
    rng = np.random.default_rng(0)
    y = np.arange(220.0) % 11
    table = data.TrainingTable(
        "x", "all", "multiclass", rng.random((220, 3)), y, rng.random((20, 3)), y[:20]
    )
    method = methods.create("rf", lam=1.0, gamma=1.0).fit(table.X_train, y)
    found = baselines.baseline_scores(Run(dataset="x", method="rf"), table, method)
    assert found.linear is not None
    assert found.boosting is None


@pytest.mark.parametrize(
    "line, says",
    [
        ("--test {}/binary-test.txt", "on 100 test rows\n"),
        ("--test {}/binary-test.txt --holdout 0.25", "held out, 0.25 of the training rows"),
        ("--lam-path 100:1:3", "train score"),
        ("--gamma 1e6 --lam 1", "gradient boosting is better than this model by 0."),
    ],
)
def test_train_says_on_what_the_score_is(files, capfd, line, says):
    words = ["train", "--method", "rf", "--n-features", 50, "--data", files / "binary.txt", *PLAIN]
    assert says in printed(capfd, *words, *line.format(files).split())


@pytest.mark.parametrize(
    ("task", "same"),
    [
        ("binary", "always predicting the most frequent label"),
        ("regression", "always predicting the mean target"),
    ],
)
def test_a_score_no_better_than_a_constant_s_is_said(task, same, files, capfd):
    # all weights are zero: regression predicts 0, far from the mean
    words = ["train", "--n-features", 50, "--data", files / f"{task}.txt", "--task", task, *PLAIN]
    code, _, err = run(capfd, *words, "--method", "sparse-rf", "--lam", 1e9)
    assert code == 0 and "is no better than" in err and same in err
    _, _, err = run(capfd, *words, "--method", "sparse-rf", "--lam-path", "1e9:0.1:2")
    assert err.splitlines()[-1].startswith("rfx: at 1 of 2 lambdas ")
    assert "is no better than" not in run(capfd, *words, "--method", "rf")[2]


def test_probabilities_from_the_shell(files, capfd, plane):
    model, out, test = files / "m.npz", files / "p.txt", files / "multiclass-test.txt"
    words = ["train", "--method", "rf", "--n-features", 50, "--data", files / "multiclass.txt"]
    text = printed(capfd, *words, "--task", "multiclass", "--model", model)
    assert re.search(r"^accuracy +0\.\d+ on 200 rows, by 5-fold cross-validation$", text, re.M)
    assert printed(capfd, "predict", model, test, "--proba", "-o", out) == ""
    found = np.loadtxt(out)
    assert found.shape == (100, 3)
    assert found.sum(axis=1) == pytest.approx(np.ones(100))
    # better than the class frequencies alone
    assert sk.log_loss(plane.targets["multiclass"][200:], found) < 0.8 * np.log(3)
    answer = json.loads(printed(capfd, "predict", model, test, "--proba", "--json"))
    assert answer["labels"] == [0, 1, 2] and answer["probabilities"] == found.tolist()
    text = printed(capfd, "eval", model, "--data", test)
    assert re.search(r"^rows +\d+ of ", text, re.M)
    assert "balanced accuracy" in text and "log-loss" in text and "true, predicted" in text
    said = methods.load(model).calibration.words()
    assert said == "vector scaling on 200 rows, 5-fold cross-validation"


def test_a_calibrated_prediction_is_the_most_probable_label(files, capfd):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1200, 3))
    y = np.where(X[:, 0] + rng.normal(size=1200) > 1.2, "yes", "no")
    frame = pandas.DataFrame(X, columns=list("abc")).assign(y=y)
    frame[:900].to_csv(files / "t.csv", index=False)
    frame[900:].to_csv(files / "new.csv", index=False)
    words = ["--method", "rf", "--n-features", 50, "--gamma", 0.5, "--lam", 1, "--metric", "none"]
    words += ["--class-weight", "balanced", "--calibrate", "platt", "--data", files / "t.csv"]
    printed(capfd, "train", *words, "--model", files / "t.npz")
    model, new = rfx.load(files / "t.npz"), frame[900:][list("abc")]
    likely = model.classes_[np.argmax(model.predict_proba(new), axis=1)]
    assert (model.predict(new) == likely).all()
    assert (model.classes_[(model.decision_function(new) > 0).astype(int)] != likely).any()
    row = json.loads(printed(capfd, "eval", files / "t.npz", "--data", files / "new.csv", "--json"))
    assert row["score"] == row["params"]["measures"]["accuracy"] == np.mean(likely == y[900:])


def test_info_says_what_a_model_is_and_what_it_scored(files, capfd):
    model, test = files / "m.npz", files / "multiclass-test.txt"
    words = ["--method", "sparse-rf", "--n-features", 50, "--data", files / "multiclass.txt"]
    words += ["--test", test, "--cv", 3, "--calibrate", "platt", "--task", "multiclass"]
    words += ["--metric", "none"]
    printed(capfd, "train", *words, "--model", model)
    text = printed(capfd, "info", model)
    parts = ("sparse-rf", " kernel, gamma ", "loss squared_hinge", " of 50 features")
    parts += ("3: 0, 1, 2", "on 100 test rows", "on 3-fold cross-validation", "platt on 200 rows")
    parts += ("multiclass.txt: 200 rows", "chosen")
    assert [part for part in parts if part not in text] == []
    found = json.loads(printed(capfd, "info", "--json", model))
    assert found["labels"] == [0, 1, 2]
    assert (found["n_inputs"], found["params"]["n_features"]) == (2, 50)
    score = found["info"]["scores"][0]
    assert (score["metric"], score["on"]) == ("accuracy", "100 test rows")
    again = json.loads(printed(capfd, "eval", model, "--data", test, "--json"))
    assert again["score"] == score["score"]
    assert "is not a model file of rfx" in refused(capfd, "info", files / "binary.txt")


@pytest.mark.parametrize(
    "elapsed, entry, line",
    [
        (
            30,
            {"part": (2, 4), "iteration": 3, "objective": 2.0, "gap": 0.01},
            "0:30, part 2 of 4, step 3, relative gap 5.0e-03, 0:45 left",
        ),
        # one model for the score: nothing to count
        (30, {"part": (1, 1), "iteration": 3}, "0:30, step 3, 0:30 left"),
        (
            30,
            {"samples": 5000, "seconds": 2.0, "loss": 0.25, "share": 0.5},
            "0:30, 5,000 rows, loss 0.25, 2,500 rows a second, 0:30 left",
        ),
        # resumed: half an hour of training came before this start
        (
            30,
            {"samples": 9000, "seconds": 1800.0, "loss": 0.25, "share": 0.9},
            "0:30, 9,000 rows, loss 0.25, 5 rows a second, 3:20 left",
        ),
        (
            7230,
            {"choosing": ("gamma", "lam"), "tried": 3, "total": 4},
            "2:00:30, choosing gamma, lam: 3 of 4 tried",
        ),
    ],
)
def test_progress_says_how_far_and_how_long(elapsed, entry, line):
    told = Progress("training rf")
    told.start -= elapsed
    told.tell(ProgressReport(**entry))
    assert told.line() == line


def test_a_log_has_a_line_a_minute_and_quiet_none(capfd, set_sizes):
    set_sizes(output, MINUTE=0.02)
    with Progress("training rf") as told:
        told.tell(ProgressReport(iteration=1, objective=2.0))
        while "step 1, objective 2" not in (text := capfd.readouterr().err):
            time.sleep(0.01)
    assert re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[+-]\d{4} training rf: 0:00", text)
    lines = []
    with Progress("a plan", log=lines.append):
        while not lines:
            time.sleep(0.01)
    assert lines[0].startswith("a plan: 0:00") and capfd.readouterr().err == ""
    with Progress("training rf", quiet=True):
        time.sleep(0.1)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    "method, options, words",
    [
        ("rf", {"n_features": 50}, {"choosing", "iteration"}),
        ("kernel", {}, {"choosing", "iteration"}),
        ("doubly-sgd", {"block": 16, "budget_seconds": 0.6, "epochs": 10**6}, {"samples"}),
    ],
)
def test_a_solver_s_steps_are_told(method, options, words, plane):
    told = []
    trainer = methods.create(method, task="binary", **options)
    trainer.fit(plane.X, plane.targets["binary"], progress=told.append)
    assert words <= {name for report in told for name in report.as_dict()}


def test_a_table_of_one_label_is_said_to_have_one(tmp_path, capfd):
    (tmp_path / "one.csv").write_text("a,b,y\n" + "".join(f"{i},{i % 7},same\n" for i in range(40)))
    words = "--method rf --gamma 1 --lam 1 --n-features 8 --target y --no-baseline".split()
    code, _, err = run(capfd, "train", *words, "--data", tmp_path / "one.csv")
    assert code == 0 and "rfx: all training rows have the same label" in err


def test_evaluations_on_other_rows_are_rows_of_their_own(tmp_path, capfd, monkeypatch):
    """A row of `rfx eval` replaces that of the training only if both have the same test rows."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    for name in ("a", "b"):
        X = rng.random((30, 2))
        lines = [f"{x},{y},{np.sin(3 * x) + y}" for x, y in X]
        (tmp_path / f"{name}.csv").write_text("\n".join(["x,y,target", *lines]))
    words = "train --method rf --lam 1 --gamma 1 --n-features 20 --model m.npz --data".split()
    printed(capfd, *words, "a.csv", "--results", "r.csv")
    for more in (["b.csv"], ["a.csv"], ["b.csv"], ["a.csv", "--split", "0.5"]):
        printed(capfd, "eval", "m.npz", "--results", "r.csv", "--data", *more)
    rows = results.read("r.csv")
    tests = [row["params"].get("test") for row in rows]
    assert sorted(map(str, tests)) == ["None", "a.csv", "a.csv, split 0.5", "b.csv"]
    assert {row["dataset"] for row in rows} == {"a.csv"}
    assert len({row["score"] for row in rows}) == 4

    (tmp_path / "b.csv").write_text((tmp_path / "b.csv").read_text() + "\n.5,.5,3")
    printed(capfd, "eval", "m.npz", "--results", "r.csv", "--data", "b.csv")
    assert len(results.read("r.csv")) == 5, "an edited file is another one"

    printed(capfd, *words, "breast_cancer", "--results", "named.csv")
    printed(capfd, "eval", "m.npz", "--results", "named.csv", "--data", "breast_cancer")
    assert len(results.read("named.csv")) == 1, "the test rows of the training"


# chooses kernel, bandwidth, lambda and method in a short time
QUICK = {"scaling": "standard", "metric": "none"}


@pytest.fixture
def trained(tmp_path):
    """The row of a training without test rows."""

    def of(X, y, method="auto", options=QUICK, **more):
        np.savez(tmp_path / "data.npz", X=X, y=y)
        spec = {"dataset": str(tmp_path / "data.npz"), "method": method, "options": options}
        return single.execute(Run.of(spec | more), tmp_path / "m.npz", hold_out_for_score=True)

    return of


def noise(n, seed, task):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n) if task == "binary" else rng.standard_normal(n)
    return rng.standard_normal((n, 4)), y.astype(float)


def test_options_are_chosen_without_the_held_out_rows(trained, monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((150, 4))
    y = (X[:, 0] + 0.5 * rng.standard_normal(150) > 0).astype(float)
    first = trained(X, y, "rb", {"n_grids": 16}, holdout=0.2)
    ((kept, out),) = Splitter(len(y), 0).folds(y, holdout=0.2)
    other = y.copy()
    other[out] = 1 - y[out]
    monkeypatch.setattr(Splitter, "folds", lambda *given: [(kept, out)])
    second = trained(X, other, "rb", {"n_grids": 16}, holdout=0.2)
    # the model of the other rows is the same; that of all rows chooses for itself
    assert second.score == pytest.approx(1 - first.score)
    assert second.params["explicit"] != first.params["explicit"]


def test_many_rows_learnt_in_batches_are_scored_by_a_model_of_a_part(trained, set_sizes):
    """Batches are predicted before they are learnt, but these rows have no numbers."""
    set_sizes(assessment, MANY_ROWS=400)
    X, y = noise(500, 0, "binary")
    options = {"gamma": 1.0, "batch": 20, "block": 20, "loss": "hinge"} | QUICK
    row = trained(X, y, "doubly-sgd", options)
    assert row.params["scored_on"] == "by a model of 100 other rows"
    assert row.n_test == 100


def test_the_final_model_has_the_chosen_options_and_all_rows(trained, tmp_path):
    X, y = noise(150, 0, "binary")
    row = trained(X, y, holdout=0.2)
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
        (40_000, "by a model of 8,000 other rows"),
    ],
)
def test_the_rows_of_the_score_are_said(trained, count, words):
    options = {"gamma": 1.0, "lam": 1.0, "n_grids": 5}
    row = trained(*noise(count, 0, "regression"), "rb", options)
    assert row.params["scored_on"] == words


def test_a_score_of_a_model_with_another_lambda_says_so(trained):
    """Only the held-out rows have a signal, so that the model of the others chooses the largest
    lambda.
    """
    X, y = noise(100, 0, "regression")
    ((_, out),) = Splitter(100, 0).folds(None, holdout=0.2)
    y[out] = 100 * np.sin(X[out, 0])
    options = {"kernel": "gaussian", "gamma": 1.0, "scaling": "none", "metric": "none"}
    row = trained(X, y, "kernel", options, holdout=0.2)
    own, said = row.lam, row.params["scored_on"]
    assert said.startswith("held out, 0.2 of the training rows; by a model of lambda 100")
    assert f"this one has {own:.4g}" in said and own < 20


@pytest.mark.parametrize(
    ("count", "steps", "words"),
    [
        (60, 1, "by 10-fold cross-validation"),
        (600, 1, "by 5-fold cross-validation"),
        (600, 0, "by leave-one-out"),
    ],
)
def test_local_machines_leave_the_rows_of_the_score_out_themselves(trained, count, steps, words):
    """In folds, if a metric was learnt from all rows."""
    options = {"scaling": "standard", "kernel": "laplacian", "metric": "none", "leaf_steps": steps}
    row = trained(*noise(count, 0, "regression"), "local", options)
    assert row.params["scored_on"] == words
    assert row.n_test == count
    assert row.score == pytest.approx(row.params["leave_one_out"])
    assert row.params.get("seconds_held_out") is None


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


def test_the_command_of_the_same_model_holds_nothing_out(tmp_path, capfd):
    X, y = noise(60, 0, "binary")
    np.savez(tmp_path / "data.npz", X=X, y=y)
    words = ("train", "--data", tmp_path / "data.npz", "--scaling", "standard", "--metric", "none")
    out = printed(capfd, *words, "--holdout", "0.3", "--no-baseline", "--json")
    assert "--holdout" not in json.loads(out)["command"]
