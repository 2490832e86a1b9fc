"""No choice on held-out rows has a group on both sides, or learns from later rows: the targets are
the numbers of the groups, or the times, so they show which rows are on either side. Predictions of
rows by the model without each of them, and what follows from these.
"""

from collections import Counter
from dataclasses import dataclass, replace
from types import SimpleNamespace

import numpy as np
import pytest

from rfx import kernels, methods
from rfx.data.tabular.group_splits import SplitConstraint
from rfx.data.training_table import TrainingTable
from rfx.errors import UsageError
from rfx.fitting import metric_learning, selection
from rfx.fitting.assessment import with_probabilities
from rfx.fitting.held_out import ErrorQuantiles, ErrorScale, Splitter
from rfx.methods import local
from rfx.operators import kernel as operators_kernel
from rfx.operators import linear_algebra
from rfx.operators.kernel import left_out

pytestmark = pytest.mark.slow

SEEN: Counter = Counter()


@pytest.fixture(scope="module")
def grouped():
    """Rows whose first input is the number of their group: 40 groups of six rows."""
    rng = np.random.default_rng(8)
    group = rng.permutation(np.arange(240) // 6).astype(float)
    return SimpleNamespace(X=np.column_stack([group, rng.normal(size=(240, 2))]), group=group)


def check(by, place, first, second):
    """Whether the targets of fitted and held-out rows are of other groups, or later."""
    first, second = (np.unique(np.round(part, 6)) for part in (first, second))
    assert len(first) and len(second)
    if by == "time":
        assert first.max() < second.min(), place
    else:
        assert not np.isin(second, first).any(), place
    SEEN[place] += 1


@pytest.fixture(params=["groups", "time"])
def by(request, monkeypatch):
    """Record every place that holds rows out."""
    kind = request.param
    SEEN.clear()

    def watched(owner, name, place, sides):
        function = getattr(owner, name)

        def watching(*args, **options):
            found = function(*args, **options)
            check(kind, place, *sides(args, found))
            return found

        monkeypatch.setattr(owner, name, watching)

    def fitted_and_left(args, sample):
        return [sample.problem.Y[rows] for rows in sample.part or (slice(None), slice(None))]

    watched(metric_learning.Sample, "of", "inputs", fitted_and_left)
    watched(selection, "errors_along", "own", lambda args, found: (args[1].Y, args[2].Y))
    for name, place in (("sample", "tuned"), ("part", "grow")):
        watched(
            Splitter, name, place, lambda args, part: [args[0].constraint.values[k] for k in part]
        )
    in_parts = selection._in_parts

    def watched_parts(K, Y, lams, own, parts):
        for kept, out in parts:
            check(kind, "loo", Y[kept], Y[out])
        return in_parts(K, Y, lams, own, parts)

    monkeypatch.setattr(selection, "_in_parts", watched_parts)
    return kind


def fitted(grouped, name, by, **options):
    trainer = methods.create(name, task="regression", **options)
    constraint = SplitConstraint(by, grouped.group)
    return trainer.fit(grouped.X, grouped.group, constraint=constraint)


@pytest.mark.parametrize(
    "name, options, places",
    [
        ("rf", {"n_features": 60}, {"inputs", "loo", "own"}),
        ("rf", {"n_features": 60, "gamma": "tuned"}, {"inputs", "tuned", "own"}),
        ("rf", {"n_features": 60, "gamma": "validation"}, {"inputs", "own"}),
        ("rfm", {}, {"inputs"}),
        ("kernel", {"kernel": "gaussian", "metric": "full"}, {"inputs", "loo", "own"}),
        ("nystrom", {"n_features": 40}, {"inputs", "loo", "own"}),
        ("block", {"block_size": 60}, {"inputs", "loo", "own"}),
        ("lkrf", {"n_features": 40}, {"inputs", "own"}),
        ("sparse-rf", {"n_features": 60, "rounds": 2}, {"inputs", "loo", "own"}),
        ("sparse-rb", {"n_grids": 20}, {"inputs", "own"}),
        ("boosting", {"n_features": 20}, {"own"}),
        ("rb", {"n_grids": 32, "grow": 0.2, "gamma": "loo"}, {"inputs", "loo", "own", "grow"}),
        ("doubly-sgd", {"epochs": 1}, {"loo", "own"}),
        ("norma", {"gamma": "tuned", "metric": "diagonal"}, {"inputs", "tuned", "own"}),
    ],
)
def test_every_choice_keeps_rows_apart(name, options, places, by, grouped):
    fitted(grouped, name, by, **options)
    assert places <= SEEN.keys()


def test_auto_compares_methods_on_rows_apart(by, set_sizes, grouped):
    set_sizes(local, EXACT=100)
    fitted(grouped, "auto", by)
    assert "inputs" in SEEN


def test_without_it_the_same_watch_finds_groups_on_both_sides(by, grouped):
    with pytest.raises(AssertionError):
        methods.create("rf", task="regression", n_features=60).fit(grouped.X, grouped.group)


def test_rows_of_weight_zero_take_their_groups_along(by, grouped):
    own, constraint = np.tile([0.0, 1.0, 2.0], 80), SplitConstraint(by, grouped.group)
    for name, options in (("rf", {"n_features": 60}), ("doubly-sgd", {"epochs": 1})):
        trainer = methods.create(name, task="regression", **options)
        trainer.fit(grouped.X, grouped.group, own, constraint=constraint)
    assert {"inputs", "loo", "own"} <= SEEN.keys()


def test_errors_of_parts_are_those_of_ridge_regression_on_the_rows_that_are_kept(rng):
    Z, Y = rng.normal(size=(50, 8)), rng.normal(size=(50, 2))
    own, lams = rng.uniform(0.5, 2, 50), (3.0, 0.2)
    parts = SplitConstraint("groups", np.arange(50) // 4).parts(5, 0)
    found = selection._in_parts(Z @ Z.T, Y, lams, np.sqrt(own), parts)
    for lam, error in zip(lams, found):
        left = np.empty_like(Y)
        for kept, out in parts:
            A = Z[kept].T @ (own[kept, None] * Z[kept]) + lam * len(kept) / 50 * np.eye(8)
            left[out] = Y[out] - Z[out] @ np.linalg.solve(
                A, Z[kept].T @ (own[kept, None] * Y[kept])
            )
        assert error == pytest.approx(np.average(left**2, axis=0, weights=own).mean())


def labelled():
    """(X, y, constraint): inputs that identify the group, and labels that depend on the group at
    random.
    """
    rng = np.random.default_rng(0)
    group = rng.permutation(np.repeat(np.arange(40), 10))
    centre, label = rng.normal(size=(40, 4)), rng.permutation(np.tile([-1.0, 1.0], 20))
    return (
        centre[group] + 0.01 * rng.normal(size=(400, 4)),
        label[group],
        SplitConstraint("groups", group),
    )


@pytest.mark.parametrize("name", ["rf", "nystrom", "kernel"])
def test_options_are_smooth_ones_where_nothing_is_common_to_groups(name):
    rows, _, constraint = labelled()
    y = np.random.default_rng(1).permutation(np.linspace(-1, 1, 40))[constraint.values]
    given = {"scaling": "none", "metric": "none", "kernel": "gaussian", "gamma": 1.0}
    trainer = methods.create(name, task="regression", **given)
    plain, kept = trainer.fit(rows, y), trainer.fit(rows, y, constraint=constraint)
    errors = [min(row[-1] for row in fit.info["validation"][-1]["tried"]) for fit in (plain, kept)]
    assert errors[0] < 0.01 and errors[1] > 0.8 * y.var()
    assert kept.info["lam"] >= 30 and plain.info["lam"] <= 0.1


def test_one_group_leaves_nothing_to_choose_by(caplog, grouped):
    one = SplitConstraint("groups", np.zeros(240))
    for name in ("rf", "rfm", "auto", "doubly-sgd"):
        methods.create(name, task="regression").fit(grouped.X, grouped.group, constraint=one)
    assert "too few groups for validation; using lambda = 1" in caplog.text
    with pytest.raises(UsageError, match="--gamma is 'validation', which needs 2 groups at least"):
        methods.create("rf", task="regression", gamma="validation", lam=1.0).fit(
            grouped.X, grouped.group, constraint=one
        )


def test_a_label_of_one_group_stays_a_label():
    rows, y, constraint = labelled()
    rows, y, constraint = rows[:200], y[:200], constraint.rows(np.arange(200))
    y = np.where(constraint.values == 3, 5.0, y)
    given = {"scaling": "none", "metric": "none", "kernel": "laplacian"}
    for name in ("rf", "rfm", "kernel", "rb", "norma"):
        fit = methods.create(name, task="multiclass", **given).fit(rows, y, constraint=constraint)
        assert fit.classes.tolist() == [-1, 1, 5]


def test_virtual_examples_have_no_group():
    trainer = methods.create("doubly-sgd", virtual="digits", virtual_copies=1)
    with pytest.raises(UsageError, match="generated rows have no weights, groups or times"):
        trainer.fit(
            np.zeros((20, 784)),
            np.arange(20) % 2,
            constraint=SplitConstraint("groups", np.arange(20)),
        )


INPUTS = {"scaling": "none", "metric": "none", "gamma": 2.0, "lam": 0.3, "kernel": "gaussian"}
SMALL = {"lam": 1e-5}  # the factor is then in float64
# name: method, options, tolerance of each value; with the other losses a value is approximate, and
# the mean deviation is at most this fraction of that of the model of all rows
CASES = {
    "kernel": ("kernel", {"loss": "squared"}, 1e-5),
    "kernel, float64": ("kernel", {"loss": "squared"} | SMALL, 1e-9),
    "rfm": ("rfm", SMALL, 1e-9),
    "wide rf": ("rf", {"loss": "squared", "n_features": 300}, 1e-5),
    "narrow rf": ("rf", {"loss": "squared", "n_features": 20}, 1e-5),
    "nystrom": ("nystrom", {"loss": "squared", "n_features": 20}, 1e-5),
}
APPROXIMATE = {
    "hinge rf": ("rf", {"loss": "squared_hinge", "n_features": 20, "tol": 1e-9}, 0.1),
    "hinge": ("kernel", {"loss": "squared_hinge", "tol": 1e-8}, 0.2),
    "hinge, no bias": ("kernel", {"loss": "squared_hinge", "tol": 1e-8, "bias": False}, 0.2),
    "logistic": ("rf", {"loss": "logistic", "n_features": 20, "tol": 1e-9}, 0.05),
}


@dataclass(frozen=True)
class SineRows:
    """Rows (60, 3) whose targets are a sine with noise, classes of these, and weights."""

    X: np.ndarray
    numbers: np.ndarray
    codes: np.ndarray
    weights: np.ndarray

    @property
    def targets(self):
        return {
            "regression": self.numbers,
            "binary": np.minimum(self.codes, 1),
            "multiclass": self.codes,
        }


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(5)
    X = rng.uniform(-1, 1, (60, 3))
    numbers = np.sin(3 * X[:, 0]) + X[:, 1] + 0.3 * rng.normal(size=60)
    codes = np.digitize(numbers, np.quantile(numbers, [0.4, 0.7])).astype(float)
    return SineRows(X, numbers, codes, weights=rng.integers(1, 4, 60).astype(float))


def values(data, case, task, weighted):
    """For some rows: the left-out values, those of models without the row, and of all rows."""
    name, options, tolerance = (CASES | APPROXIMATE)[case]
    options = INPUTS | options | {"task": task, "target_scaling": "none"}
    X, y = data.X, data.targets[task]
    weights = data.weights if weighted else None
    model = replace(methods.create(name, **options), predicts_left_out=True).fit(X, y, weights)
    refitted, rows = [], np.arange(0, 40, 5)
    for row in rows:
        kept = np.arange(60) != row
        part = None if weights is None else weights[kept]
        without = methods.create(name, **options).fit(X[kept], y[kept], part)
        refitted.append(without.decision_function(X[row : row + 1])[0])
    every = model.decision_function(X[rows])
    return model.left_out.decision[rows], np.array(refitted), every, tolerance


@pytest.mark.parametrize("lam", [0.3, 1e-7], ids=["float32", "float64"])
def test_the_last_rows_are_left_out_alone(lam, data):
    K = kernels.values("laplacian", data.X, data.X, {"gamma": 1.0})
    coef, residuals = left_out(K, data.numbers[:, None], lam)
    same, last = left_out(K, data.numbers[:, None], lam, last=20)
    assert np.array_equal(same, coef)
    assert last == pytest.approx(residuals[-20:], rel=1e-5)


@pytest.mark.parametrize("rows", [range(0, 700, 2), range(700)], ids=["some", "all"])
def test_the_diagonal_of_an_inverse_at_some_rows(rows):
    """More rows than are in a product at a time."""
    X = np.random.default_rng(0).normal(size=(700, 2))
    A = kernels.values("laplacian", X, X, {"gamma": 1.0}) + np.eye(700)
    factor = linear_algebra.Factor(linear_algebra.positive(np.asfortranarray(A)))
    found = operators_kernel.inverse_diagonal(factor, np.array(rows))
    assert found == pytest.approx(np.diag(np.linalg.inv(A))[list(rows)])


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("task", ["regression", "binary", "multiclass"])
@pytest.mark.parametrize("case", CASES)
def test_left_out_values_are_those_of_models_without_the_row(
    case, task, weighted, monkeypatch, data
):
    # landmarks that no row changes
    monkeypatch.setattr("rfx.methods.kernel.choose_landmarks", lambda *_: data.X[40:])
    alone, refitted, _, tolerance = values(data, case, task, weighted)
    np.testing.assert_allclose(alone, refitted, atol=tolerance)


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("task", ["binary", "multiclass"])
@pytest.mark.parametrize("case", APPROXIMATE)
def test_left_out_values_of_other_losses_are_close(case, task, weighted, data):
    alone, refitted, every, fraction = values(data, case, task, weighted)
    assert np.abs(alone - refitted).mean() < fraction * np.abs(every - refitted).mean()


def test_intervals_cover_new_targets_as_often_as_stated(tmp_path, rng):
    rows = rng.uniform(-1, 1, (3000, 3))
    y = rows[:, 0] + rng.normal(size=3000)
    model = replace(methods.create("rfm", **INPUTS | {"lam": 3.0}), predicts_left_out=True)
    model.fit(rows[:1000], y[:1000]).save(tmp_path / "m.npz")
    restored = methods.load(tmp_path / "m.npz")
    low, high = restored.interval(restored.decision_function(rows[1000:]), 0.9)
    assert np.mean((low <= y[1000:]) & (y[1000:] <= high)) == pytest.approx(0.9, abs=0.02)
    # of normal noise with deviation 1
    assert np.mean(high - low) == pytest.approx(2 * 1.645, rel=0.08)


def prices(n, seed):
    """Rows, and positive targets whose noise grows with their mean."""
    rng = np.random.default_rng(seed)
    rows = rng.uniform(-1, 1, (n, 2))
    return rows, np.exp(1.5 * rows[:, 0] + 0.5 * rows[:, 1] + 0.25 * rng.normal(size=n))


def test_intervals_cover_every_quarter_of_the_predictions(tmp_path):
    trainer = replace(methods.create("rfm", **INPUTS | {"lam": 0.3}), predicts_left_out=True)
    trainer.fit(*prices(1500, 0)).save(tmp_path / "m.npz")
    model, (rows, y) = methods.load(tmp_path / "m.npz"), prices(8000, 1)
    low, high = model.interval(model.decision_function(rows), 0.9)
    covered, quarter = (low <= y) & (y <= high), np.argsort(np.argsort(low + high)) // 2000
    for place in range(4):
        assert covered[quarter == place].mean() == pytest.approx(0.9, abs=0.04)
    equal = ErrorQuantiles.of(np.abs(model.predict(rows) - y), "new rows").at(0.9)
    assert np.mean(high - low) < 0.85 * 2 * equal


def test_equal_noise_has_intervals_of_equal_width(rng):
    predicted, noise = rng.normal(size=(2, 1000))
    grows = np.abs(noise) * np.exp(predicted)
    scale, scaled = ErrorScale.narrower(predicted, grows)
    assert scale.at(np.array([-2.0, 2.0])) == pytest.approx([0.2, 4], rel=0.5)
    assert ErrorQuantiles.of(scaled, "").at(0.9) * scale.at(predicted).mean() < 3
    for errors in (np.ones(1000), np.zeros(1000), grows[:199]):
        scale, same = ErrorScale.narrower(predicted[: len(errors)], errors)
        assert scale is None and same is errors


def test_an_error_scale_of_equal_predictions_is_their_mean_error():
    scale = ErrorScale.fit(np.zeros(500), np.r_[np.zeros(100), np.ones(400)])
    assert np.isfinite(scale.at(np.array([-1.0, 0.0, 1.0]))).all()


def rare(n, seed):
    """Rows of three classes with overlap; the last has 4 % of the rows."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n, 3))
    return rows, np.digitize(rows[:, 0] + rng.normal(size=n), [0.4, 2.5]).astype(float)


def test_a_rare_label_is_in_its_set_as_often_as_a_common_one(tmp_path):
    trainer = methods.create("rf", **INPUTS | {"n_features": 100, "gamma": 0.2, "lam": 3.0})
    replace(trainer, predicts_left_out=True).fit(*rare(2000, 0)).save(tmp_path / "m.npz")
    model, (rows, y) = methods.load(tmp_path / "m.npz"), rare(10_000, 1)
    decision = model.decision_function(rows)
    sets = model.sets(decision, 0.9)
    own = sets[np.arange(len(y)), y.astype(int)]
    for label in range(3):
        # of 77 left-out rows, the share of the rarest label has a deviation of .034
        assert own[y == label].mean() == pytest.approx(0.9, abs=0.07)
    assert model.sets(decision, 0.1).sum(axis=1).min() == 1, "never empty"
    # too few rows of the last label for that level: those of all labels stand in
    assert model.sets(decision, 0.999)[:, 2].any()


def planted(n, seed):
    """Rows of 20 inputs, and labels that depend on three of them, with noise."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n, 20))
    return rows, (rows[:, 0] + rows[:, 1] * rows[:, 2] + rng.normal(size=n) > 0).astype(float)


def test_the_score_is_not_that_of_rows_that_taught_the_metric():
    options = {"kernel": "laplacian-l2", "scaling": "standard", "metric": "full", "task": "binary"}
    model = replace(methods.create("rfm", **options), predicts_left_out=True).fit(*planted(300, 0))
    X_new, y_new = planted(3000, 1)
    # that of rows left out one by one is higher by .18
    assert model.outcome.leave_one_out < np.mean(model.predict(X_new) == y_new) + 0.03
    assert model.left_out.by == "10-fold cross-validation"


def test_rows_that_no_choice_saw_are_left_out_one_by_one():
    options = {"kernel": "gaussian", "scaling": "standard", "metric": "diagonal", "task": "binary"}
    model = replace(methods.create("rfm", **options), predicts_left_out=True).fit(*planted(2600, 2))
    assert model.outcome.leave_one_out_rows == 600


def test_weights_of_labels_count_once_in_a_cross_validation():
    rows, labels = planted(200, 3)
    options = {"task": "binary", "scaling": "none", "metric": "diagonal", "gamma": 1.0, "lam": 1.0}
    by_label = methods.create("kernel", **options, loss="squared", class_weight="0:1,1:5")
    by_row = methods.create("kernel", **options, loss="squared")
    one = replace(by_label, predicts_left_out=True).fit(rows, labels)
    other = replace(by_row, predicts_left_out=True).fit(rows, labels, 1 + 4 * labels)
    np.testing.assert_allclose(one.left_out.decision, other.left_out.decision)


def test_the_quantile_is_the_value_of_its_rank():
    errors = ErrorQuantiles.of(np.arange(1.0, 100), "here")
    assert [errors.at(level) for level in (0.5, 0.9, 0.99)] == [50, 90, 99]
    with pytest.raises(UsageError, match="99 left-out rows can.t state the level"):
        errors.at(0.995)
    many = ErrorQuantiles.of(np.arange(1.0, 5000), "here")
    assert len(many.values) == 1000 and 4500 <= many.at(0.9) <= 4505


@pytest.mark.parametrize("task", ["binary", "multiclass"])
def test_probabilities_of_left_out_rows_never_change_a_prediction(task, data):
    X, y = data.X, data.targets[task]
    trainer = methods.create("rf", **INPUTS | {"n_features": 20})
    plain, model = (replace(trainer, predicts_left_out=one).fit(X, y) for one in (False, True))
    shares = model.probabilities(model.decision_function(X))
    np.testing.assert_array_equal(plain.predict(X), model.predict(X))
    assert shares.sum(axis=1) == pytest.approx(np.ones(60)) and not plain.has_probabilities


@pytest.mark.parametrize("name", ["rb", "sparse-rf", "block", "r-pegasos"])
def test_a_fifth_of_the_rows_gives_probabilities_where_none_is_left_out_alone(name, data):
    X, y = data.X, data.targets["binary"]
    trainer = methods.create(name, task="binary", gamma=0.3, kernel="laplacian")
    plain = trainer.fit(X, y)
    model = with_probabilities(trainer, plain, TrainingTable.of_rows(X, y))
    assert not plain.has_probabilities and model.left_out.by.startswith("held out, 0.2 of")
    assert len(model.left_out.y) == 12
    np.testing.assert_array_equal(model.predict(X), plain.predict(X))
    # the other rows, with lambda for so few, give the held-out decision values
    kept = np.setdiff1d(np.arange(60), Splitter(60, 0).part(0.2, "here")[1])
    again = plain.chosen
    again = again.updated(lam=0.8 * again.lam) if "lam" in again.options else again
    expected = replace(trainer, method=again, classes=plain.classes).fit(X[kept], y[kept])
    out = np.setdiff1d(np.arange(60), kept)
    np.testing.assert_array_equal(model.left_out.decision, expected.decision_function(X[out]))
