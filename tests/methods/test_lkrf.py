"""Learning kernels with random features: scores, the uses of a distribution, the method."""

from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize

from rfx import env, methods
from rfx.data import load
from rfx.features import alignment, sample
from rfx.features.alignment import best_distribution, distance, maximise

MAPS = {
    "gaussian": {"gamma": 0.5},
    "laplacian": {"gamma": 0.2},
    "arccosine-1": {},
    "linear": {},
    "perceptron": {"radius": 4.0},
    "stump": {"lo": np.full(5, -3.5), "hi": np.full(5, 3.5)},
}


@pytest.fixture(scope="module")
def noise():
    """Rows, and three outputs of labels that do not depend on them."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 5))
    return SimpleNamespace(X=X, Y=np.where(rng.random((400, 3)) < 0.3, 1.0, -1.0))


# ---------------------------------------------------------------------- scores


@pytest.mark.parametrize("centred", [False, True])
@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("name", list(MAPS))
def test_scores_by_their_definition(name, outputs, centred, noise):
    X, Y = noise.X, noise.Y[:, :outputs]
    pool = sample(name, 5, 300, seed=1, dtype=np.float64, **MAPS[name])
    U = Y - (Y.mean(axis=0) if centred else 0)
    expected = np.square(pool.transform(X).T @ U).sum(axis=1)
    for rows in (X, sp.csr_matrix(X)):
        np.testing.assert_allclose(
            alignment.scores(pool, rows, Y, centred), expected, rtol=1e-8, atol=1e-7
        )
    single = sample(name, 5, 300, seed=1, **MAPS[name])
    np.testing.assert_allclose(
        alignment.scores(single, X, Y, centred),
        expected,
        rtol=2e-3,
        atol=1e-3 * expected.max(),
    )


def test_neither_blocks_nor_threads_change_scores(noise):
    # more features than are computed at a time
    pool = sample("gaussian", 5, 9000, seed=1, gamma=0.5)
    found = alignment.scores(pool, noise.X, noise.Y)
    parts = [
        alignment.scores(pool.select(some), noise.X, noise.Y)
        for some in (slice(4000), slice(4000, None))
    ]
    np.testing.assert_allclose(found, np.concatenate(parts), rtol=1e-6, atol=1e-6)
    env.set_threads(2)
    np.testing.assert_array_equal(alignment.scores(pool, noise.X, noise.Y), found)


# ---------------------------------------------------------------------- uses of q


def test_both_uses_agree_in_expectation(noise):
    """The mean of the kernel of draws is the kernel of weights."""
    pool = sample("gaussian", 5, 400, seed=1, gamma=0.5, dtype=np.float64)
    q = maximise(alignment.scores(pool, noise.X, noise.Y[:, :1]), 5.0)
    Z = pool.weighted(*alignment.weighted(q)).transform(noise.X[:8])
    kernels = []
    for seed in range(300):
        own = pool.weighted(*alignment.drawn(q, 30, seed)).transform(noise.X[:8])
        kernels.append(own @ own.T)
    error = np.mean(kernels, axis=0) - Z @ Z.T
    assert np.all(np.abs(error) <= 4.5 * np.std(kernels, axis=0) / np.sqrt(len(kernels)) + 1e-12)


def test_draws_by_their_distribution_and_seed():
    q = np.array([0.5, 0.0, 0.2, 0.3])
    places, weights = alignment.drawn(q, 20_000, 3)
    np.testing.assert_array_equal(places, [0, 2, 3])
    np.testing.assert_allclose(weights**2, [0.5, 0.2, 0.3], atol=0.02)
    assert (weights**2).sum() == pytest.approx(1)
    np.testing.assert_array_equal(alignment.drawn(q, 20_000, 3)[1], weights)
    assert not np.array_equal(alignment.drawn(q, 20_000, 4)[1], weights)


def test_support_once(noise):
    pool = sample("gaussian", 5, 4, seed=1, gamma=0.5, dtype=np.float64)
    places, weights = alignment.support_once(np.array([0.5, 0.0, 0.2, 0.3]))
    expected = pool.transform(noise.X)[:, [0, 2, 3]] / np.sqrt(3)
    np.testing.assert_allclose(pool.weighted(places, weights).transform(noise.X), expected)


# ---------------------------------------------------------------------- the method


@pytest.fixture(scope="module")
def sphere():
    return load("sphere:n=2000,n_test=500,d=8")


def fitted(data, **options):
    options = {"scaling": "none", "task": data.task, "pool": 2000, "gamma": "paper"} | options
    return methods.create("lkrf", **options).fit(data.X_train, data.y_train)


def score(method, data):
    return method.score(data.X_test, data.y_test).score


@pytest.mark.parametrize("loss", ["squared", "squared_hinge", "logistic"])
@pytest.mark.parametrize("use", ["support", "draw", "weights"])
def test_better_than_random_features_of_the_same_number(sphere, loss, use):
    method = fitted(sphere, loss=loss, use=use, lam=0.1)
    random = methods.create(
        "rf",
        task="binary",
        scaling="none",
        loss=loss,
        gamma="paper",
        lam=0.1,
        n_features=method.info["support"],
    )
    random = random.fit(sphere.X_train, sphere.y_train)
    assert score(method, sphere) > score(random, sphere) + 0.05
    assert method.info["model_size"] <= method.info["support"] < 400
    assert method.info["alignment_after"] > 3 * method.info["alignment_before"]
    assert method.info["pool"] == 2000 and method.info["rho"] == 10.0 and method.info["converged"]
    assert min(method.info[f"seconds_{part}"] for part in ("scores", "maximise", "solve")) > 0


def test_ridge_on_the_support_by_its_closed_form(sphere):
    method = fitted(sphere, loss="squared", lam=0.05, offset="mean", dtype="float64")
    X, y = sphere.X_train, sphere.y_train
    pool = sample("gaussian", 8, 2000, 0, gamma=0.5, dtype=np.float64)
    q = maximise((pool.transform(X).T @ y) ** 2, 10.0)
    Z = pool.transform(X)[:, q > 0] / np.sqrt(np.count_nonzero(q))
    w = np.linalg.solve(Z.T @ Z + 0.05 * np.eye(Z.shape[1]), Z.T @ (y - y.mean()))
    Z_test = pool.transform(sphere.X_test)[:, q > 0] / np.sqrt(np.count_nonzero(q))
    np.testing.assert_allclose(
        method.decision_function(sphere.X_test), Z_test @ w + y.mean(), atol=1e-4
    )


@pytest.mark.parametrize(
    "given", [{"lam": 0.3}, {"lam": "validation"}, {"lam": None, "lam_path": "1:0.3:2"}]
)
def test_random_features_with_the_targets_mean_taken_from_them(sphere, given, reloaded):
    own = {
        "task": "binary",
        "scaling": "none",
        "gamma": 0.1,
        "n_features": 60,
        "dtype": "float64",
        "tol": 1e-10,
        "loss": "squared",
    }
    X, y = sphere.X_train, sphere.y_train
    rows = np.flatnonzero((y > 0) | (np.arange(len(y)) % 5 == 0))
    X, y = X[rows], y[rows]
    held_out = None if "lam_path" in given else (sphere.X_test, sphere.y_test)
    method = methods.create("rf", **own, **given, offset="mean").fit(X, y, held_out=held_out)
    pool = sample("gaussian", 8, 60, 0, gamma=0.1, dtype=np.float64)
    Z, Z_test = (pool.transform(part) / np.sqrt(60) for part in (X, sphere.X_test))
    w = np.linalg.solve(Z.T @ Z + method.info["lam"] * np.eye(60), Z.T @ (y - y.mean()))
    decision = method.decision_function(sphere.X_test)
    np.testing.assert_allclose(decision, Z_test @ w + y.mean(), atol=1e-6)
    if "lam_path" not in given:
        assert method.trace[-1]["error"] == 1 - score(method, sphere)
    reloaded(method, sphere.X_test)


@pytest.mark.parametrize("use", ["support", "draw"])
def test_numbers_of_features(sphere, use):
    support = fitted(sphere, use="support").info["support"]
    few, many = (fitted(sphere, use=use, n_features=count).info for count in (20, 5000))
    assert few["n_features"] == few["n_features_asked"] == 20
    assert few["model_size"] <= 20
    assert many["n_features_asked"] == 5000
    assert (1.0 if use == "support" else 0.8) * support <= many["model_size"] <= support


def test_rho_at_its_ends(sphere):
    nothing = fitted(sphere, rho=0, use="draw", n_features=50)
    assert nothing.info["support"] == 2000 and nothing.info["alignment_after"] == pytest.approx(
        nothing.info["alignment_before"]
    )
    everything = fitted(sphere, rho=1e9)
    assert everything.info["support"] == 1 and everything.info["model_size"] == 1
    np.testing.assert_allclose(fitted(sphere, rho_share=0.01).info["rho"], 20.0)


@pytest.mark.parametrize("divergence, rho", [("kl", 3.0), ("tv", 0.9), ("reverse-kl", 2.0)])
def test_other_divergences(sphere, divergence, rho):
    method = fitted(sphere, divergence=divergence, rho=rho, use="draw", n_features=100)
    assert method.info["alignment_after"] > 2 * method.info["alignment_before"]
    assert method.info["rho"] == rho


def test_the_true_coordinates_are_found():
    data = load("linear-selection:n=4000,n_test=500,d=200")
    method = fitted(
        data, kernel="linear", pool=None, loss="squared", rho=10, lam=0.01, offset="mean"
    )
    # a twentieth of a relevant input is within the noise, so the selection may have one more
    assert (
        set(range(20)) <= set(method.model.map.arrays["columns"])
        and method.info["model_size"] <= 25
    )
    random = methods.create(
        "rf", kernel="linear", task="binary", scaling="none", loss="squared", lam=1.0, n_features=20
    )
    assert score(method, data) > score(random.fit(data.X_train, data.y_train), data) + 0.2
    sparse = fitted(data, kernel="linear", pool=None, loss="squared", rho=10, sparse=True, lam=10.0)
    assert score(sparse, data) > 0.9


def test_sequences_and_their_model_file(reloaded):
    data = load("motifs:n=1500,n_test=400,d=40")
    method = fitted(data, kernel="kmers", pool=None, loss="squared", rho_share=0.05, lam=0.01)
    assert (
        score(method, data) > 0.85
        and method.info["pool"] == 40 * 4 + 39 * 16 + 38 * 64 + 37 * 256 + 36 * 1024
    )
    reloaded(method, data.X_test)


def test_validation(sphere):
    method = fitted(
        sphere,
        kernel="gaussian",
        scaling="minmax01",
        metric="none",
        pool=1000,
        loss="squared",
        gamma="validation",
        rho="validation",
        lam="validation",
        n_features="validation",
    )
    steps = method.info["validation"]
    assert [step["options"] for step in steps] == [["gamma", "rho"], ["lam"], ["n_features"]]
    # the grids, and what continues them beyond an end
    assert all(len(step["tried"]) >= fewest for step, fewest in zip(steps, (20, 5, 4)))
    chosen = [method.info[name] for name in ("rho", "lam", "n_features")]
    assert chosen == [1000 * steps[0]["chosen"][1], *steps[1]["chosen"], *steps[2]["chosen"]]
    assert method.info["n_features"] in (64, 256, 1024, 4096)
    assert score(method, sphere) > 1 - min(tried[-1] for tried in steps[-1]["tried"]) - 0.05
    assert score(method, sphere) >= score(fitted(sphere, pool=1000, loss="squared"), sphere)


@pytest.mark.parametrize("rho", [0.3, 2.0, 1e6])
def test_the_best_distribution_for_given_weights(rho):
    w = np.array([0.0, 0.3, -1.0, 0.02, 2.0, 0.0])
    q = best_distribution(w, rho)
    assert q.sum() == pytest.approx(1) and q.min() >= 0 and distance(q) <= rho * (1 + 1e-6)
    used = w != 0
    found = minimize(
        lambda p: np.sum(w[used] ** 2 / np.maximum(p[used], 1e-12)),
        np.full(6, 1 / 6),
        method="SLSQP",
        bounds=[(1e-9, 1)] * 6,
        constraints=[
            {"type": "eq", "fun": lambda p: p.sum() - 1},
            {"type": "ineq", "fun": lambda p: rho - distance(p)},
        ],
        options={"ftol": 1e-12, "maxiter": 500},
    )
    assert np.sum(w[used] ** 2 / q[used]) == pytest.approx(found.fun, rel=1e-4)
    np.testing.assert_array_equal(best_distribution(w, 0.0), np.full(6, 1 / 6))


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_joint_optimisation_never_goes_up(sphere, loss):
    method = fitted(
        sphere, pool=300, loss=loss, lam=0.1, joint=5, joint_rows=500, use="weights", tol=1e-8
    )
    found = method.info["joint_objectives"]
    assert len(found) == 5 and np.all(np.diff(found) <= 1e-4 * found[0])
    assert found[-1] < 0.99 * found[0]
