"""The metric of recursive feature machines, and the choice of scaling, kernel and metric."""

import numpy as np
import pytest
import scipy.sparse

from rfx import env, kernels, methods, parallel
from rfx.data.transforms import Metric, Scaler
from rfx.errors import UsageError
from rfx.fitting import inputs
from rfx.fitting.problem import Problem
from rfx.losses import Squared


def planted(n=600, d=50, seed=0):
    """Targets that depend on the first two of many inputs."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = np.sin(2 * X[:, 0]) + X[:, 1] ** 2 + 0.05 * rng.normal(size=n)
    return X, (y - y.mean())[:, None]


def round_(n=500, d=4, seed=0):
    """Targets that depend only on the distance to the origin, so that all directions are
    equivalent.
    """
    X = np.random.default_rng(seed).normal(size=(n, d))
    return X, np.linalg.norm(X, axis=1)[:, None]


def learn(X, Y, metric="auto", steps=None, kernel="laplacian-l2"):
    options = {"kernel": kernel, "metric": metric, "scaling": "none", "metric_steps": steps}
    method = methods.get("rfm").of(options)
    problem = Problem(X, Y, Squared, "regression")
    return inputs.with_metric(Scaler.fit(X, "none"), method, problem)


def choose(X, Y, task="regression", **more):
    return inputs.choose_inputs(X, Problem(X, Y, Squared, task), **more)


def test_the_best_combinations_are_compared_again_in_leaves(monkeypatch):
    monkeypatch.setattr(inputs, "ROWS", 200)
    X = np.random.default_rng(1).uniform(-1, 1, (4000, 6))
    Y = np.where(X[:, 0] > 0, X[:, 1], X[:, 2])[:, None]
    given = {"scalings": ("standard",), "forms": ("diagonal",)}
    alone, compared = choose(X, Y, **given), choose(X, Y, leaf_rows=500, **given)
    first = alone.step["chosen"][-1] + 1
    rounds = [[row for row in compared.step["tried"] if row[-2] == first + k] for k in range(3)]
    assert list(map(len, rounds)) == [6, 3, 2]
    assert compared.step["chosen"] == min(rounds[-1], key=lambda row: row[-1])[:-1]


def test_leaves_of_equal_rows_decide_nothing():
    X = np.repeat(np.random.default_rng(1).normal(size=(3, 4)), 200, axis=0)
    given = {"scalings": ("standard",), "tried_kernels": ("laplacian-l2",), "forms": ()}
    alone, compared = (choose(X, X[:, :1], leaf_rows=n, **given).step for n in (None, 100))
    assert compared["chosen"] == alone["chosen"]


@pytest.mark.parametrize("kernel", ["gaussian", "laplacian", "laplacian-l2"])
@pytest.mark.parametrize("form", ["diagonal", "full"])
def test_a_planted_signal_is_found(kernel, form):
    X, Y = planted(1200)
    learnt = learn(X, Y, form, kernel=kernel)
    metric, [step] = learnt.scaler.metric, learnt.steps
    assert metric is not None and metric.form == inputs.allowed((form,), X, kernel)[0]
    assert metric.shares()[:2].sum() > 0.95
    assert min(row[-1] for row in step["tried"]) < 0.5 * step["tried"][0][-1]


def test_a_signal_that_few_rows_hide_is_found():
    """Of 32 inputs two matter, and the error of all of them is that of a constant."""
    rng = np.random.default_rng(3)
    X = rng.uniform(-1, 1, (2500, 32))
    y = X[:, 4] * (np.sin(4 * X[:, 9]) + 0.2) + 0.1 * rng.normal(size=2500)
    trained = methods.create("rfm", task="regression").fit(X[:2000], y[:2000])
    error = np.mean((trained.predict(X[2000:]) - y[2000:]) ** 2) / y.var()
    assert trained.preprocessing.scaler.metric.shares()[[4, 9]].sum() > 0.5
    assert error < 0.2


def test_the_identity_is_kept_where_no_direction_counts_more():
    X, Y = round_()
    learnt = learn(X, Y)
    assert learnt.scaler.metric is None
    assert learnt.options == {"metric": "none", "metric_steps": None}
    assert {row[0] for row in learnt.steps[0]["tried"]} == {"none", "diagonal", "full"}


@pytest.mark.parametrize("kernel", ["laplacian", "laplacian-l2"])
def test_weights_count_as_repetitions(kernel):
    X, Y = planted(120, 4)
    counts = np.arange(120) % 3
    again, alone = np.repeat(np.arange(120), counts), np.flatnonzero(counts)
    # the bandwidth comes from a sample of pairs, which repeated rows change
    params = {"gamma": 0.4}

    def metric(rows, weights, lam):
        K = kernels.block(kernel, X[rows], X[rows], params)
        problem = Problem(X[rows], Y[rows], Squared, "regression", weights)
        every = np.arange(len(rows))
        coef = inputs.Sample(problem, (every, every), 0)._error(K, lam)[1]
        return inputs.next_metric(kernel, X[rows], coef, params, None, True, weights).map

    # lambda is in the unit of the mean weight
    weighted = metric(alone, counts[alone].astype(float), 0.1)
    repeated = metric(again, None, 0.1 * np.mean(counts[alone]))
    np.testing.assert_allclose(weighted, repeated, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("task", ["regression", "multiclass"])
def test_the_error_is_that_of_machines_without_the_row(task):
    X, Y = planted(60, 3)
    if task == "multiclass":
        Y = np.where(np.digitize(Y, [-0.5, 0.5]) == np.arange(3), 1.0, -1.0)
    sample = inputs.Sample.of(Problem(X, Y, Squared, task), 60, 0)
    machine = sample.tuned("gaussian", None, 0.5)
    K = kernels.block("gaussian", X, X, machine.params)
    decision = np.empty(Y.shape)
    for row in range(60):
        kept = np.delete(np.arange(60), row)
        coef = np.linalg.solve(
            K[np.ix_(kept, kept)] + machine.lam * np.eye(59), Y[kept] - Y.mean(axis=0)
        )
        decision[row] = K[row, kept] @ coef + Y.mean(axis=0)
    expected = inputs.criterion(task, decision, Y, None)
    assert machine.score == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize("form", ["diagonal", "full"])
def test_sparse_rows_have_the_metric_of_dense_ones(form):
    X, Y = planted(200, 10)
    X[np.abs(X) < 0.5] = 0
    rows = scipy.sparse.csr_matrix(X)
    dense, sparse = (learn(each, Y, form, 2).scaler for each in (X, rows))
    assert sparse.metric.form == form
    np.testing.assert_array_equal(sparse.metric.map, dense.metric.map)
    mapped = sparse.transform(rows)
    assert scipy.sparse.issparse(mapped) == (form == "diagonal")
    mapped = mapped.toarray() if form == "diagonal" else mapped
    np.testing.assert_allclose(mapped, dense.transform(X))
    with pytest.raises(UsageError, match="--metric is full, which would make sparse rows dense"):
        Metric(np.eye(10)).transform(rows)


def test_many_inputs_have_a_diagonal_metric_only():
    X = np.zeros((3, inputs.MOST_INPUTS + 1))
    assert inputs.allowed(("diagonal", "full"), X, "laplacian-l2") == ["diagonal"]
    assert inputs.allowed(("full",), X, "laplacian-l2") == ["diagonal"]
    assert inputs.allowed((), X, "laplacian-l2") == []


@pytest.mark.parametrize("task", ["regression", "binary", "multiclass"])
def test_the_choice_has_the_same_bits_with_any_number_of_threads(task):
    X, Y = planted(150, 5)
    if task != "regression":
        cuts = [0.0] if task == "binary" else [-0.5, 0.5]
        codes = np.digitize(Y[:, 0], cuts)
        Y = np.where(codes[:, None] == np.unique(codes)[1 if task == "binary" else 0 :], 1.0, -1.0)
    found = []
    for threads in (1, 2, 3):
        env.set_threads(threads)
        with parallel.one_blas_thread():
            chosen = choose(X, Y, task, scalings=("standard", "robust"), steps=2)
        found.append(
            (chosen.scaler.kind, chosen.kernel, chosen.form, chosen.lam, chosen.step["tried"])
        )
    assert found[0] == found[1] == found[2]


def test_too_few_rows_are_not_chosen_by():
    X, Y = planted(inputs.FEWEST - 1, 3)
    assert choose(X, Y, "regression") is None
    trained = methods.create("rfm", task="regression").fit(X, Y[:, 0])
    assert trained.method.scaling == "standard" and trained.method.metric == "none"


def test_the_choice_is_of_the_least_error_that_was_tried():
    X, Y = planted(200, 6)
    chosen = choose(X, Y, "regression", scalings=("standard", "robust"))
    step = chosen.step
    last = [row for row in step["tried"] if row[4] == step["chosen"][4]]
    best = min(last, key=lambda row: row[-1])
    assert best[:4] == step["chosen"][:4]
    assert step["held_out"] == 200


# ------------------------------------------------------------------------- in a pipeline


def test_a_model_keeps_its_metric(reloaded):
    X, Y = planted(300, 6)
    trained = methods.create("rf", task="regression", metric="full", metric_steps=2, lam=0.1)
    trained = trained.fit(X, Y[:, 0])
    assert trained.preprocessing.scaler.metric.form == "full"
    loaded = reloaded(trained, X)
    np.testing.assert_array_equal(
        loaded.preprocessing.scaler.metric.map, trained.preprocessing.scaler.metric.map
    )


@pytest.mark.parametrize(
    "name", ["kernel", "rf", "sparse-rf", "rb", "sparse-rb", "nystrom", "block", "lkrf"]
)
def test_every_method_gains_by_the_metric_of_a_planted_signal(name):
    X, Y = planted(500, 20)
    kept, out = np.arange(400), np.arange(400, 500)
    options = {"task": "regression", "scaling": "standard", "lam": 0.3}
    options |= {"kernel": "laplacian"} if name.endswith("rb") else {"kernel": "gaussian"}
    errors = []
    for kind in ("none", "auto"):
        trained = methods.create(name, metric=kind, **options).fit(X[kept], Y[kept, 0])
        errors.append(np.mean((trained.predict(X[out]) - Y[out, 0]) ** 2))
    assert trained.method.metric in ("diagonal", "full")
    assert errors[1] < 0.8 * errors[0]


@pytest.mark.parametrize("name", ["doubly-sgd", "r-sdca", "norma"])
def test_streaming_methods_learn_it_from_their_first_rows_and_go_on_with_it(name, tmp_path):
    X, Y = planted(400, 20)
    options = {"task": "regression", "scaling": "standard", "metric": "diagonal", "epochs": 2}
    whole = methods.create(name, metric_steps=2, **options).fit(X, Y[:, 0])
    assert whole.preprocessing.scaler.metric.shares()[:2].sum() > 0.6
    place = tmp_path / "checkpoint.npz"
    trainer = methods.create(name, metric_steps=2, **options)
    trainer.keep(place).fit(X, Y[:, 0])
    again = trainer.keep(place, resume=True).fit(X, Y[:, 0])
    np.testing.assert_array_equal(again.predict(X), whole.predict(X))


def test_the_machine_predicts_the_mean_far_from_all_rows():
    X, Y = planted(100, 2)
    trained = methods.create(
        "rfm", task="regression", kernel="gaussian", scaling="standard", metric="none"
    ).fit(X, Y[:, 0] + 100)
    far = trained.predict(np.full((1, 2), 1e3))
    assert far == pytest.approx(np.mean(Y) + 100)


@pytest.mark.parametrize("kernel", ["linear", "arccosine-0"])
def test_kernels_without_a_bandwidth_take_a_metric(kernel):
    X, Y = planted(100, 3)
    trained = methods.create("rfm", task="regression", kernel=kernel, scaling="auto")
    trained = trained.fit(X, Y[:, 0])
    assert trained.method.kernel == kernel and trained.method.scaling != "auto"
    again = methods.create("rfm", task="regression", **trained.info["explicit"]).fit(X, Y[:, 0])
    np.testing.assert_allclose(again.predict(X), trained.predict(X), rtol=1e-9)


def test_the_metric_follows_the_scaling():
    X, Y = planted(100, 3)
    scaler = Scaler.fit(X, "standard")
    from dataclasses import replace

    own = Metric(np.array([1.0, 0.5, 0.0]))
    np.testing.assert_allclose(
        replace(scaler, metric=own).transform(X), scaler.transform(X) * own.map
    )
