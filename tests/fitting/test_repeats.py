"""Rows with equal inputs are left out together, and the order of rows means nothing."""

from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp

from rfx import methods
from rfx.data import libsvm, repeats
from rfx.data.tabular.group_splits import SplitConstraint
from rfx.data.transforms import MOST_ROWS, Scaler
from rfx.errors import DataError, RfxWarning
from rfx.estimators import AutoRegressor
from rfx.fitting.held_out import Splitter
from rfx.fitting.problem import Problem
from rfx.fitting.training import Trainer
from rfx.losses import Squared
from rfx.records.run import Run
from rfx.runs.single import load


@pytest.fixture(scope="module")
def data():
    """60 different rows, and the numbers of the rows of a sample in which some stand again."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(60, 3))
    return SimpleNamespace(
        rows=rows, copies=rng.permutation(np.append(np.arange(60), [4, 4, 9, 50]))
    )


@pytest.mark.parametrize("form", [np.asarray, np.float32, sp.csr_matrix])
def test_equal_rows_have_the_number_of_the_first(form, data):
    rows = np.column_stack([data.rows[:, 0], np.maximum(data.rows[:, 1:], 0)])
    rows[7] = -0.0
    rows = form(np.concatenate([rows[data.copies], np.zeros((1, 3))]))
    names = [*data.copies, data.copies.tolist().index(7)]
    expected = [data.copies.tolist().index(name) for name in data.copies]
    assert repeats.first_equal(rows).tolist() == [*expected, names[-1]]


def test_rows_that_rounding_makes_alike_differ():
    rows = np.array([[1e20, 1.0], [1e20, 2.0], [1e20, 2.0]])
    assert repeats.first_equal(rows).tolist() == [0, 1, 1]


def test_new_rows_repeat_those_of_few_distinct_ones(data):
    """Their rows are left out one by one."""
    assert repeats.find_constraint(np.repeat(data.rows, 10, axis=0)).count == 60
    assert repeats.find_constraint(np.repeat(data.rows, 11, axis=0)) is None
    assert repeats.find_constraint(data.rows) is None


def test_one_row_for_all_that_are_equal_has_the_same_solution(rng, data):
    y, own = rng.normal(size=64), rng.uniform(0.5, 2, 64)
    problem = Problem(data.rows[data.copies], y[:, None], Squared, "regression", own)
    problem = Problem(**vars(problem) | {"constraint": repeats.find_constraint(problem.X)})
    merged, place = problem.merged()
    assert merged.n_rows == 60
    np.testing.assert_array_equal(merged.X[place], problem.X)
    alone, every = (
        np.linalg.lstsq(
            np.sqrt(one.weights)[:, None] * one.X, np.sqrt(one.weights) * one.Y[:, 0], rcond=None
        )[0]
        for one in (merged, problem)
    )
    np.testing.assert_allclose(alone, every)


@pytest.mark.parametrize("split", [{"cv": 5}, {"holdout": 0.3}])
def test_folds_and_held_out_rows_keep_equal_rows_together(split, data):
    constraint = repeats.find_constraint(data.rows[data.copies])
    for kept, out in Splitter(64, 0, constraint).folds(None, **split):
        assert not set(data.copies[kept]) & set(data.copies[out])


def test_too_few_different_rows_are_named(data):
    constraint = repeats.find_constraint(data.rows[[0, 0, 1]])
    with pytest.raises(DataError, match="different rows"):
        Splitter(3, 0, constraint).folds(None, cv=3)


def test_noise_that_stands_twice_remains_noise(rng):
    X, y = np.repeat(rng.normal(size=(60, 4)), 2, axis=0), np.repeat(rng.normal(size=60), 2)
    with pytest.warns(RfxWarning, match="rows that repeat the inputs of others"):
        model = AutoRegressor().fit(X, y)
    assert model.info_["leave_one_out"] > 0.85 * y.std()
    assert model.predict(X[:2], return_interval=0.9)[2][0] > 1.0


def test_groups_that_are_given_have_precedence(rng, data):
    X, y = data.rows[data.copies], rng.normal(size=64)
    groups = SplitConstraint("groups", np.arange(64) % 8)
    trainer = Trainer(methods.get("local").of({"scaling": "none", "metric": "none"}))
    model = trainer.fit(X, y, constraint=groups)
    assert model.info["n_train"] == 64


@pytest.mark.parametrize("kind", ["robust", "quantile", "power"])
def test_scaling_learns_from_rows_of_either_kind_that_alternate(kind, rng):
    n_rows = 2 * MOST_ROWS
    X = np.where(np.arange(n_rows) % 2, 0.0, 1000.0)[:, None] + rng.normal(size=(n_rows, 1))
    scaled = Scaler.fit(X, kind).transform(X)
    assert min(scaled[::2].std(), scaled[1::2].std()) > 1e-4


def test_lambda_suits_rows_of_either_kind_that_alternate():
    """Every second row has no noise: lambda chosen by these alone would fit the noise."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(1800, 3))
    y = X[:, 0] + np.where(np.arange(1800) % 2, 3.0, 0.0) * rng.normal(size=1800)
    options = {"scaling": "none", "metric": "none", "kernel": "laplacian-l2", "mixed": False}
    trainer = Trainer(methods.get("local").of(options | {"leaf_steps": 0}))
    order = rng.permutation(1800)
    lams = [trainer.fit(X[rows], y[rows]).info["lam"] for rows in (np.arange(1800), order)]
    assert lams[0] == lams[1]


def test_a_command_says_how_many_rows_repeat_others(tmp_path, caplog, rng, data):
    libsvm.write(tmp_path / "rows", data.rows[data.copies], rng.normal(size=64))
    split = load(Run(dataset=str(tmp_path / "rows"), method="rf"))
    assert split.constraint.count == 60 and "4 rows repeat the inputs of others" in caplog.text
