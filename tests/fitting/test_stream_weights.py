"""Sample weights for the methods that learn batch by batch: a row of weight 2 counts as two; what a
stream does not support is refused.
"""

import numpy as np
import pytest
from weighted_rows import weighted_rows

from rfx import methods
from rfx.data.stream import ArraySource
from rfx.errors import DataError, UsageError

X, TARGETS, WEIGHTS, SHARES, REPEATED = weighted_rows(60)
# statistics that are learnt from the rows besides f change if rows are repeated
FIXED = {"gamma": 1.0, "scaling": "none", "dtype": "float64"}
DUAL = {"k-sdca": {}, "r-sdca": {"n_features": 30}, "n-sdca": {"n_features": 1000}}
STEPS = {"step": "root", "theta": 1.0}
STOCHASTIC = {
    "doubly-sgd": {"block": 16} | STEPS,
    "norma": STEPS,
    "r-pegasos": {"n_features": 30},
    "n-pegasos": {"n_features": 1000},
}


def made(name, **more):
    own = {"target_scaling": "none"} if more.get("task") == "regression" else {}
    return methods.create(
        name, **FIXED | own | DUAL.get(name, {}) | STOCHASTIC.get(name, {}) | more
    )


def close(one, other, tol):
    a, b = one.decision_function(X), other.decision_function(X)
    np.testing.assert_allclose(a, b, rtol=0, atol=tol * np.abs(b).max())


@pytest.mark.parametrize("name", DUAL)
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
def test_the_optimum_of_dual_ascent_is_that_of_rows_repeated(name, task, loss):
    options = {"nu": 1e-2, "epochs": 150, "batch": 16, "task": task, "loss": loss, "gap": True}
    weighted = made(name, **options).fit(X, TARGETS[task], WEIGHTS)
    repeated = made(name, **options).fit(X[REPEATED], TARGETS[task][REPEATED])
    gaps = weighted.info["gap"], repeated.info["gap"]
    assert max(gaps) <= 1e-5 * repeated.info["objective"]
    assert weighted.info["objective"] == pytest.approx(
        repeated.info["objective"], abs=sum(gaps) + 1e-9
    )
    assert weighted.info["weight_sum"] == len(REPEATED) and weighted.info["lam"] == pytest.approx(
        repeated.info["lam"]
    ) == 1e-2 * len(REPEATED)
    close(weighted, repeated, 1e-3)


@pytest.mark.parametrize("loss", ["squared_hinge", "logistic", "squared"])
def test_dual_ascent_finds_the_minimum_that_newtons_method_finds(loss):
    """Any weights; lambda is nu times their sum, and the random features are those of rf."""
    y, options = TARGETS["binary"], {"task": "binary", "loss": loss, "n_features": 30}
    dual = made("r-sdca", nu=1e-2, epochs=150, batch=16, gap=True, **options).fit(X, y, SHARES)
    peer = made("rf", lam=dual.info["lam"], tol=1e-10, **options).fit(X, y, SHARES)
    assert dual.info["lam"] == pytest.approx(1e-2 * SHARES.sum())
    assert dual.info["objective"] == pytest.approx(peer.info["objective"], rel=1e-6)
    close(dual, peer, 1e-3)


@pytest.mark.parametrize("name", STOCHASTIC)
@pytest.mark.parametrize(
    "task, loss",
    [("binary", "hinge"), ("multiclass", "softmax"), ("regression", "epsilon_insensitive")],
)
def test_steps_over_all_rows_are_those_over_rows_repeated(name, task, loss):
    """The gradient of a step is the weighted mean over its batch, so a batch of all rows equals one
    of repeated rows.
    """
    options = {"nu": 1e-2, "epochs": 12, "batch": 1000, "task": task, "loss": loss}
    weighted = made(name, **options).fit(X, TARGETS[task], WEIGHTS)
    repeated = made(name, **options).fit(X[REPEATED], TARGETS[task][REPEATED])
    close(weighted, repeated, 1e-6)
    assert weighted.info["objective"] == pytest.approx(repeated.info["objective"], rel=1e-6)
    plain = made(name, **options).fit(X, TARGETS[task])
    assert np.abs(plain.decision_function(X) - repeated.decision_function(X)).max() > 1e-3


@pytest.mark.parametrize("name", STOCHASTIC)
def test_partial_fit_counts_weights_relative_to_those_so_far(name):
    y, options = TARGETS["binary"], {"nu": 1e-2, "batch": 20, "task": "binary", "loss": "hinge"}
    plain, twice, by_rows, by_label = (
        made(name, **options | more).session() for more in ({}, {}, {}, {"class_weight": "1:3"})
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
        made(name, **options)
        .session()
        .further(X, y, sample_weight=np.append(np.zeros(40), np.ones(20)))
    )
    assert np.isfinite(nothing.decision_function(X)).all()


def test_class_weights_are_weights_of_rows():
    y, options = TARGETS["binary"], {"nu": 1e-2, "epochs": 3, "batch": 20, "task": "binary"}
    own = np.where(y == 1, 5.0, 1.0)
    for name in ("norma", "r-sdca"):
        by_label, by_rows = (
            made(name, class_weight="1:5", **options).fit(X, y),
            made(name, **options).fit(X, y, own),
        )
        np.testing.assert_array_equal(by_label.decision_function(X), by_rows.decision_function(X))
    balanced = made("norma", class_weight="balanced", **options).fit(X, y)
    of_rows = np.where(y == 1, 30 / np.sum(y == 1), 30 / np.sum(y == -1))
    peer = made("norma", **options).fit(X, y, of_rows)
    np.testing.assert_allclose(balanced.decision_function(X), peer.decision_function(X), rtol=1e-12)
    # later rows are weighted by label, too
    models = []
    for more, weights in (({"class_weight": "1:5"}, None), ({}, own)):
        session = made("norma", **options | more).session()
        session.fit(X, y, weights)
        models.append(session.further(X, y, sample_weight=weights).decision_function(X))
    np.testing.assert_array_equal(*models)


def test_a_stream_takes_weights_of_labels():
    y = TARGETS["binary"]
    options = {"nu": 1e-2, "batch": 20, "epochs": 1, "buffer": 0, "task": "binary"}
    options |= {"class_weight": "1:3"}
    streamed = made("r-pegasos", **options).fit_stream(ArraySource(X, y))
    np.testing.assert_array_equal(
        streamed.decision_function(X),
        made("r-pegasos", **options).session().further(X, y).decision_function(X),
    )


@pytest.mark.parametrize("weights, more", [(SHARES, {}), (None, {"class_weight": "1:3"})])
def test_a_checkpoint_goes_on_with_the_same_weights(tmp_path, weights, more):
    options = {"nu": 1e-2, "epochs": 4, "batch": 16, "task": "binary"} | more
    y, path = TARGETS["binary"], tmp_path / "c.npz"
    whole = made("doubly-sgd", **options).fit(X, y, weights)
    made("doubly-sgd", **options | {"epochs": 2}).keep(path).fit(X, y, weights)
    resumed = made("doubly-sgd", **options).keep(path, resume=True).fit(X, y, weights)
    np.testing.assert_array_equal(resumed.decision_function(X), whole.decision_function(X))
    with pytest.raises(DataError, match="the rows differ from those of the checkpoint"):
        made("doubly-sgd", **options).keep(path, resume=True).fit(X, y, SHARES + 1)


def test_a_checkpoint_of_a_stream_keeps_the_mean_weight_so_far(tmp_path):
    y, path = TARGETS["binary"], tmp_path / "c.npz"
    options = {"nu": 1e-2, "batch": 16, "task": "binary", "buffer": 0, "class_weight": "1:3"}
    whole = made("r-pegasos", **options | {"epochs": 4}).fit_stream(ArraySource(X, y))
    made("r-pegasos", **options | {"epochs": 2}).keep(path).fit_stream(ArraySource(X, y))
    resumed = (
        made("r-pegasos", **options | {"epochs": 4})
        .keep(path, resume=True)
        .fit_stream(ArraySource(X, y))
    )
    np.testing.assert_array_equal(resumed.decision_function(X), whole.decision_function(X))


def by_fit(method, y, weights=None):
    return method.fit(X, y, weights)


def by_stream(method, y):
    return method.fit_stream(ArraySource(X, y))


def by_parts(method, y, weights=None):
    return method.session().further(X, y, sample_weight=weights)


@pytest.mark.parametrize(
    "train, options, task, message",
    [
        (by_parts, {"class_weight": "balanced"}, "binary", "--class-weight balanced needs the c"),
        (by_stream, {"class_weight": "balanced"}, "binary", "--class-weight balanced needs the c"),
        (by_fit, {"class_weight": "7:2"}, "binary", "--class-weight has the label 7"),
        (by_parts, {"class_weight": "7:2"}, "binary", "--class-weight has the label 7"),
        (by_fit, {"class_weight": "1:2"}, "regression", "but the task is regression"),
        (by_parts, {"class_weight": "1:2"}, "regression", "but the task is regression"),
    ],
)
def test_class_weights_that_do_not_match_are_refused(train, options, task, message):
    with pytest.raises(UsageError, match=message):
        train(made("norma", task=task, **options), TARGETS[task])


def test_what_can_have_no_weights_is_refused():
    with pytest.raises(UsageError, match="method k-sdca needs all rows .*--class-weight"):
        by_stream(made("k-sdca", class_weight="1:2"), TARGETS["binary"])
    with pytest.raises(UsageError, match="--virtual is digits, whose .* no weights"):
        by_fit(made("norma", virtual="digits", budget_samples=100), TARGETS["binary"], SHARES)


@pytest.mark.parametrize("train", [by_fit, by_parts])
def test_invalid_weights_are_refused(train):
    with pytest.raises(DataError, match="weight of row 1"):
        train(made("norma"), TARGETS["binary"], -SHARES)
