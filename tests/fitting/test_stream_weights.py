"""Sample weights of stochastic methods: a row of weight 2 counts as two, and class weights are
those of the rows of a label.
"""

import numpy as np
import pytest
from weighted_rows import weighted_rows

from rfx import methods
from rfx.data.stream import ArraySource
from rfx.errors import DataError, UsageError

# statistics that are learnt from the rows besides f change if rows are repeated
FIXED = {"gamma": 1.0, "scaling": "none", "dtype": "float64"}
ASCENT = {"k-sdca": {}, "r-sdca": {"n_features": 30}, "n-sdca": {"n_features": 1000}}
STEPS = {"step": "root", "theta": 1.0}
STOCHASTIC = {
    "doubly-sgd": {"block": 16} | STEPS,
    "norma": STEPS,
    "r-pegasos": {"n_features": 30},
    "n-pegasos": {"n_features": 1000},
}


@pytest.fixture(scope="module")
def data():
    return weighted_rows(60)


def of_weights(name, **more):
    own = {"target_scaling": "none"} if more.get("task") == "regression" else {}
    return methods.create(
        name, **FIXED | own | ASCENT.get(name, {}) | STOCHASTIC.get(name, {}) | more
    )


def close(data, one, other, tol):
    a, b = one.decision_function(data.X), other.decision_function(data.X)
    np.testing.assert_allclose(a, b, rtol=0, atol=tol * np.abs(b).max())


@pytest.mark.parametrize("name", ASCENT)
@pytest.mark.parametrize(
    "task, loss",
    [
        ("regression", "absolute"),
        ("binary", "hinge"),
        ("binary", "logistic"),
        ("binary", "squared"),
        ("multiclass", "squared_hinge"),
    ],
)
def test_the_optimum_of_dual_ascent_is_that_of_rows_repeated(name, task, loss, data):
    options = {"nu": 1e-2, "epochs": 150, "batch": 16, "task": task, "loss": loss, "gap": True}
    X, y = data.X, data.targets[task]
    weighted = of_weights(name, **options).fit(X, y, data.weights)
    repeated = of_weights(name, **options).fit(X[data.repeated], y[data.repeated])
    gaps = weighted.info["gap"], repeated.info["gap"]
    assert max(gaps) <= 1e-5 * repeated.info["objective"]
    assert weighted.info["objective"] == pytest.approx(
        repeated.info["objective"], abs=sum(gaps) + 1e-9
    )
    assert weighted.info["weight_sum"] == len(data.repeated)
    assert repeated.info["lam"] == 1e-2 * len(data.repeated)
    assert weighted.info["lam"] == pytest.approx(repeated.info["lam"])
    close(data, weighted, repeated, 1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["squared_hinge", "logistic", "squared"])
def test_dual_ascent_finds_the_minimum_that_newtons_method_finds(loss, data):
    """Any weights; lambda is nu times their sum, and the random features are those of rf."""
    y, options = data.targets["binary"], {"task": "binary", "loss": loss, "n_features": 30}
    dual = of_weights("r-sdca", nu=1e-2, epochs=150, batch=16, gap=True, **options).fit(
        data.X, y, data.shares
    )
    peer = of_weights("rf", lam=dual.info["lam"], tol=1e-10, **options).fit(data.X, y, data.shares)
    assert dual.info["lam"] == pytest.approx(1e-2 * data.shares.sum())
    assert dual.info["objective"] == pytest.approx(peer.info["objective"], rel=1e-6)
    close(data, dual, peer, 1e-3)


@pytest.mark.parametrize("name", STOCHASTIC)
@pytest.mark.parametrize(
    "task, loss",
    [("binary", "hinge"), ("multiclass", "softmax"), ("regression", "epsilon_insensitive")],
)
def test_steps_over_all_rows_are_those_over_rows_repeated(name, task, loss, data):
    """The gradient of a step is the weighted mean over its batch, so a batch of all rows equals one
    of repeated rows.
    """
    X, y = data.X, data.targets[task]
    options = {"nu": 1e-2, "epochs": 12, "batch": 1000, "task": task, "loss": loss}
    weighted = of_weights(name, **options).fit(X, y, data.weights)
    repeated = of_weights(name, **options).fit(X[data.repeated], y[data.repeated])
    close(data, weighted, repeated, 1e-6)
    assert weighted.info["objective"] == pytest.approx(repeated.info["objective"], rel=1e-6)
    plain = of_weights(name, **options).fit(X, y)
    assert np.abs(plain.decision_function(X) - repeated.decision_function(X)).max() > 1e-3


@pytest.mark.parametrize("name", STOCHASTIC)
def test_partial_fit_counts_weights_relative_to_those_so_far(name, data):
    X, y = data.X, data.targets["binary"]
    options = {"nu": 1e-2, "batch": 20, "task": "binary", "loss": "hinge"}
    plain, twice, by_rows, by_label = (
        of_weights(name, **options | more).session()
        for more in ({}, {}, {}, {"class_weight": "1:3"})
    )
    for _ in range(2):
        models = [
            plain.further(X, y),
            twice.further(X, y, sample_weight=np.full(60, 2.0)),
            by_rows.further(X, y, sample_weight=np.where(y == 1, 3.0, 1.0)),
            by_label.further(X, y),
        ]
    plain, twice, by_rows, by_label = models
    np.testing.assert_array_equal(plain.decision_function(X), twice.decision_function(X))
    np.testing.assert_array_equal(by_rows.decision_function(X), by_label.decision_function(X))
    assert by_label.decision_function(X).mean() > plain.decision_function(X).mean()
    # rows of weight zero have no effect: a batch of only such rows just shrinks f, and as the first
    # batch it does nothing
    nothing = (
        of_weights(name, **options)
        .session()
        .further(X, y, sample_weight=np.append(np.zeros(40), np.ones(20)))
    )
    assert np.isfinite(nothing.decision_function(X)).all()


def test_balanced_weights_are_those_of_the_counts(data):
    y, options = data.targets["binary"], {"nu": 1e-2, "epochs": 3, "batch": 20, "task": "binary"}
    balanced = of_weights("norma", class_weight="balanced", **options).fit(data.X, y)
    of_rows = np.where(y == 1, 30 / np.sum(y == 1), 30 / np.sum(y == -1))
    peer = of_weights("norma", **options).fit(data.X, y, of_rows)
    close(data, balanced, peer, 1e-12)


def test_rows_after_a_fit_are_weighted_by_label(data):
    X, y, models = data.X, data.targets["binary"], []
    for more, weights in (({"class_weight": "1:5"}, None), ({}, np.where(y == 1, 5.0, 1.0))):
        session = of_weights("norma", nu=1e-2, batch=20, task="binary", **more).session()
        session.fit(X, y, weights)
        models.append(session.further(X, y, sample_weight=weights).decision_function(X))
    np.testing.assert_array_equal(*models)


def test_a_stream_takes_weights_of_labels(data):
    X, y = data.X, data.targets["binary"]
    options = {"nu": 1e-2, "batch": 20, "epochs": 1, "buffer": 0, "task": "binary"}
    options |= {"class_weight": "1:3"}
    streamed = of_weights("r-pegasos", **options).fit_stream(ArraySource(X, y))
    np.testing.assert_array_equal(
        streamed.decision_function(X),
        of_weights("r-pegasos", **options).session().further(X, y).decision_function(X),
    )


def by_fit(method, X, y, weights=None):
    return method.fit(X, y, weights)


def by_stream(method, X, y, weights=None):
    return method.fit_stream(ArraySource(X, y))


@pytest.mark.parametrize(
    "train, weighted, more",
    [(by_fit, True, {}), (by_fit, False, {"class_weight": "1:3"})]
    # whose mean weight is that of the rows so far
    + [(by_stream, False, {"class_weight": "1:3", "buffer": 0})],
)
def test_a_checkpoint_goes_on_with_the_same_weights(tmp_path, train, weighted, more, data):
    name = "r-pegasos" if train is by_stream else "doubly-sgd"
    options = {"nu": 1e-2, "epochs": 4, "batch": 16, "task": "binary"} | more
    X, y, path = data.X, data.targets["binary"], tmp_path / "c.npz"
    weights = data.shares if weighted else None
    whole = train(of_weights(name, **options), X, y, weights)
    train(of_weights(name, **options | {"epochs": 2}).keep(path), X, y, weights)
    resumed = train(of_weights(name, **options).keep(path, resume=True), X, y, weights)
    np.testing.assert_array_equal(resumed.decision_function(X), whole.decision_function(X))
    if train is by_fit:
        with pytest.raises(DataError, match="the rows differ from those of the checkpoint"):
            train(of_weights(name, **options).keep(path, resume=True), X, y, data.shares + 1)


def by_parts(method, X, y, weights=None):
    return method.session().further(X, y, sample_weight=weights)


OF_NUMBERS = {"class_weight": "1:2", "task": "regression"}
GENERATED = {"virtual": "digits", "budget_samples": 100}


@pytest.mark.parametrize(
    "train, options, sign, message",
    [
        (by_parts, {"class_weight": "balanced"}, None, "--class-weight balanced needs the counts"),
        (by_stream, {"class_weight": "balanced"}, None, "--class-weight balanced needs the counts"),
        (by_fit, {"class_weight": "7:2"}, None, "--class-weight has the label 7"),
        (by_parts, {"class_weight": "7:2"}, None, "--class-weight has the label 7"),
        (by_fit, OF_NUMBERS, None, "but the task is regression"),
        (by_parts, OF_NUMBERS, None, "but the task is regression"),
        (by_stream, {"name": "k-sdca", "class_weight": "1:2"}, None, "k-sdca needs all rows .*--c"),
        (by_fit, {}, -1, "weight of row 1"),
        (by_parts, {}, -1, "weight of row 1"),
        (by_fit, GENERATED, 1, "is digits, whose .* no weights"),
    ],
)
def test_weights_that_do_not_match_are_refused(train, options, sign, message, data):
    """Weights of rows are positive (sign 1), negative (-1), or not given (None)."""
    options = {"name": "norma", "task": "binary"} | options
    y, weights = data.targets[options["task"]], None if sign is None else sign * data.shares
    with pytest.raises((DataError, UsageError), match=message):
        train(of_weights(**options), data.X, y, weights)
