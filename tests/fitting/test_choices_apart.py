"""No choice on held-out rows has a group on both sides, or learns from later rows.

The targets are the numbers of the groups, or the times. So the targets show which rows are on
either side wherever rows are held out.
"""

from collections import Counter

import numpy as np
import pytest

from rfx import methods
from rfx.data.tabular.apart import Apart
from rfx.errors import UsageError
from rfx.fitting import inputs, selection
from rfx.fitting.held_out import HeldOut
from rfx.fitting.method import Method
from rfx.methods import auto
from rfx.methods.rf import LKRF

RNG = np.random.default_rng(8)
GROUP = RNG.permutation(np.arange(240) // 6).astype(float)
X = np.column_stack([GROUP, RNG.normal(size=(240, 2))])
SEEN: Counter = Counter()


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

    watched(inputs.Sample, "of", "inputs", fitted_and_left)
    for owner in (Method, LKRF):
        watched(owner, "errors_along", "own", lambda args, found: (args[1].Y, args[2].Y))
    for name, place in (("sample", "tuned"), ("part", "grow")):
        watched(HeldOut, name, place, lambda args, part: [args[0].apart.values[k] for k in part])
    in_parts = selection._in_parts

    def watched_parts(K, Y, lams, own, parts):
        for kept, out in parts:
            check(kind, "loo", Y[kept], Y[out])
        return in_parts(K, Y, lams, own, parts)

    monkeypatch.setattr(selection, "_in_parts", watched_parts)
    return kind


def fitted(name, by, **options):
    trainer = methods.create(name, task="regression", **options)
    return trainer.fit(X, GROUP, apart=Apart(by, GROUP))


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
def test_every_choice_keeps_rows_apart(name, options, places, by):
    fitted(name, by, **options)
    assert places <= SEEN.keys()


def test_auto_compares_methods_on_rows_apart(by, monkeypatch):
    monkeypatch.setattr(auto, "EXACT", 100)
    fitted("auto", by)
    assert "inputs" in SEEN


def test_without_it_the_same_watch_finds_groups_on_both_sides(by):
    with pytest.raises(AssertionError):
        methods.create("rf", task="regression", n_features=60).fit(X, GROUP)


def test_rows_of_weight_zero_take_their_groups_along(by):
    own = np.tile([0.0, 1.0, 2.0], 80)
    trainer = methods.create("rf", task="regression", n_features=60)
    trainer.fit(X, GROUP, own, apart=Apart(by, GROUP))
    methods.create("doubly-sgd", task="regression", epochs=1).fit(
        X, GROUP, own, apart=Apart(by, GROUP)
    )
    assert {"inputs", "loo", "own"} <= SEEN.keys()


def test_errors_of_parts_are_those_of_ridge_regression_on_the_rows_that_are_kept():
    Z, Y = RNG.normal(size=(50, 8)), RNG.normal(size=(50, 2))
    own, lams = RNG.uniform(0.5, 2, 50), (3.0, 0.2)
    parts = Apart("groups", np.arange(50) // 4).parts(5, 0)
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
    """(X, y, apart): inputs that identify the group, and labels that depend on the group at
    random.
    """
    rng = np.random.default_rng(0)
    group = rng.permutation(np.repeat(np.arange(40), 10))
    centre, label = rng.normal(size=(40, 4)), rng.permutation(np.tile([-1.0, 1.0], 20))
    return centre[group] + 0.01 * rng.normal(size=(400, 4)), label[group], Apart("groups", group)


@pytest.mark.parametrize("name", ["rf", "nystrom", "kernel"])
def test_options_are_smooth_ones_where_nothing_is_common_to_groups(name):
    rows, _, apart = labelled()
    y = np.random.default_rng(1).permutation(np.linspace(-1, 1, 40))[apart.values]
    given = {"scaling": "none", "metric": "none", "kernel": "gaussian", "gamma": 1.0}
    trainer = methods.create(name, task="regression", **given)
    plain, kept = trainer.fit(rows, y), trainer.fit(rows, y, apart=apart)
    errors = [min(row[-1] for row in fit.info["validation"][-1]["tried"]) for fit in (plain, kept)]
    assert errors[0] < 0.01 and errors[1] > 0.8 * y.var()
    assert kept.info["lam"] >= 30 and plain.info["lam"] <= 0.1


def test_one_group_leaves_nothing_to_choose_by(caplog):
    one = Apart("groups", np.zeros(240))
    for name in ("rf", "rfm", "auto", "doubly-sgd"):
        methods.create(name, task="regression").fit(X, GROUP, apart=one)
    assert "too few groups for validation; using lambda = 1" in caplog.text
    with pytest.raises(UsageError, match="--gamma is 'validation', which needs 2 groups at least"):
        methods.create("rf", task="regression", gamma="validation", lam=1.0).fit(
            X, GROUP, apart=one
        )


def test_a_label_of_one_group_stays_a_label():
    rows, y, apart = labelled()
    rows, y, apart = rows[:200], y[:200], apart.rows(np.arange(200))
    y = np.where(apart.values == 3, 5.0, y)
    given = {"scaling": "none", "metric": "none", "kernel": "laplacian"}
    for name in ("rf", "rfm", "kernel", "rb", "norma"):
        fit = methods.create(name, task="multiclass", **given).fit(rows, y, apart=apart)
        assert fit.classes.tolist() == [-1, 1, 5]


def test_virtual_examples_have_no_group():
    trainer = methods.create("doubly-sgd", virtual="digits", virtual_copies=1)
    with pytest.raises(UsageError, match="generated rows have no weights, groups or times"):
        trainer.fit(np.zeros((20, 784)), np.arange(20) % 2, apart=Apart("groups", np.arange(20)))
