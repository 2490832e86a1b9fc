"""What named methods choose for their inputs, and when they choose nothing; the default bandwidth:
leave-one-out errors equal those of models fitted without the row. The metric of recursive feature
machines, and the choice of scaling, kernel and metric.
"""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp

from rfx import kernels, methods, parallel
from rfx.data.transforms import Metric, Scaler
from rfx.errors import UsageError
from rfx.features import sample
from rfx.fitting import input_selection, linear, metric_learning, selection
from rfx.fitting.input_selection import Candidates, InputSearch
from rfx.fitting.options import LAMS, LOO_FACTORS, SAMPLE, WIDTHS
from rfx.fitting.problem import Problem
from rfx.fitting.selection import Point, SearchBudget, SearchGrid
from rfx.fitting.training import Trainer
from rfx.kernels import KERNELS, block, scaled_family
from rfx.losses import Squared

pytestmark = pytest.mark.slow

NAMED = ("kernel", "rf", "sparse-rf", "rb", "sparse-rb", "nystrom", "block", "lkrf")
SMALL = {"rf": {"n_features": 200}, "sparse-rf": {"n_features": 200}, "lkrf": {"pool": 500}}
SMALL |= {"rb": {"n_grids": 32}, "sparse-rb": {"n_grids": 16}, "nystrom": {"n_features": 50}}


def planted(n, d, seed=0):
    """Rows whose targets depend only on their first two inputs, which have very different units."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = np.sin(2 * X[:, 0]) + X[:, 1] ** 2 + 0.05 * rng.normal(size=n)
    return np.exp(X), y


def settings(name, **given):
    return methods.get(name).of(given)


@pytest.mark.parametrize("name", NAMED)
def test_inputs_are_chosen_unless_the_bandwidth_is_given(name):
    asked = settings(name)
    assert (asked.scaling, asked.metric) == ("auto", "auto")
    for gamma in (0.5, "2", "paper"):
        asked = settings(name, gamma=gamma)
        assert (asked.scaling, asked.metric) == ("minmax01", "none")
        assert asked.kernel == ("laplacian" if name.endswith("rb") else "gaussian")
    for gamma in ("median", "loo", "tuned", "validation"):
        assert settings(name, gamma=gamma).scaling == "auto"
    assert settings(name, gamma=0.5, scaling="power").scaling == "power"
    assert settings(name, gamma=0.5, metric="full").metric == "full"


def test_a_kernel_without_a_bandwidth_takes_the_inputs_as_they_were():
    asked = settings("rf", kernel="perceptron")
    assert (asked.scaling, asked.metric, asked.kernel) == ("minmax01", "none", "perceptron")


@pytest.mark.parametrize("name", [*NAMED, "rfm"])
def test_the_explicit_options_train_the_same_model(name):
    X, y = planted(150, 4)
    options = {"task": "regression"} | SMALL.get(name, {})
    chosen = methods.create(name, **options).fit(X, y)
    explicit = chosen.info["explicit"]
    assert explicit["scaling"] in ("standard", "power", "robust", "quantile")
    assert isinstance(explicit["gamma"], float) and isinstance(explicit["lam"], float)
    again = methods.create(name, **options, **explicit).fit(X, y)
    np.testing.assert_array_equal(again.predict(X), chosen.predict(X))
    assert "explicit" not in again.info


def test_lambda_is_chosen_on_a_sample_of_many_rows():
    X, y = planted(16_000, 3)
    steps = {}
    for word in ("auto", "validation"):
        options = {"task": "regression", "gamma": 0.5, "n_features": 20, "lam": word}
        [step] = methods.create("rf", **options).fit(X, y).info["validation"]
        steps[word] = step
    assert steps["auto"]["fitted"] == SAMPLE
    assert steps["validation"]["fitted"] == 12_800


def test_no_time_leaves_the_first_combination():
    X, y = planted(200, 3)
    options = {"task": "regression", "n_features": 20, "budget_seconds": 1e-9}
    trained = methods.create("rf", **options).fit(X, y)
    step = trained.info["validation"][0]
    assert {tuple(row[:2]) for row in step["tried"]} == {("standard", "laplacian-l2")}


def test_the_width_of_the_kernel_is_tried_where_there_is_no_metric():
    """For a fast-varying function the median's bandwidth is far too wide."""
    X = np.random.default_rng(0).uniform(-1, 1, size=(600, 1))
    given = {"scalings": ("standard",), "kernels": ("gaussian",), "forms": ()}
    assert choose(X, np.sin(40 * X), **given).machine.width > max(WIDTHS["gaussian"])


def test_the_sample_of_the_choice_is_bounded():
    X = np.random.default_rng(0).normal(size=(5000, 2))
    choice = choose(X, X[:, :1], scalings=("standard",), forms=())
    assert choice.steps[0].fitted == choice.steps[0].held_out == metric_learning.ROWS


def test_the_best_point_of_each_kernel_reaches_the_next_round():
    points = [Point("inputs", {"kernel": kernel, "scaling": n}) for kernel in "aab" for n in "xy"]
    grid = SearchGrid(points, {}, [], various="kernel")
    assert grid.kept(points, 2) == [points[0], points[4]]
    assert grid.kept(points, 3) == [points[0], points[4], points[1]]


WORDS = (
    "gaussian",
    "laplacian",
    "laplacian-l2",
    "matern-3/2",
    "polynomial-2",
    "exponential",
    "hat",
)


@pytest.fixture(scope="module")
def data():
    """Rows (60, 3), and two targets: a sine, and the sign of an input."""
    X = np.random.default_rng(8).uniform(-1, 1, (60, 3))
    return SimpleNamespace(X=X, Y=np.stack([np.sin(3 * X[:, 0]), np.sign(X[:, 1])], axis=1))


def loo(data, kernel, weights=None, slack=0.0):
    method = methods.create("kernel", kernel=kernel, seed=0).method
    object.__setattr__(method, "space", replace(method.space, slack=slack))
    return selection.loo(method, Problem(data.X, data.Y, Squared, "regression", weights), LAMS)


@pytest.mark.parametrize("weighted", [False, True])
def test_errors_are_those_of_models_without_the_row(weighted, rng, data):
    weights = rng.uniform(0.5, 2, 60) if weighted else None
    found, (step,) = loo(data, "gaussian", weights)
    own = np.ones(60) if weights is None else weights
    assert step.error == "leave-one-out mean squared error" and step.fitted == 60
    assert (
        len(step.tried) >= len(LOO_FACTORS) * len(LAMS)
        and found == min(step.tried, key=lambda one: one[2])[0]
    )
    for value, lam, error in (step.tried[k] for k in (3, 25, 40, 68)):
        K, total = block("gaussian", data.X, data.X, {"gamma": value}), 0.0
        for i in range(60):
            rest = np.arange(60) != i
            # minimises lam/2 f'K f + 1/2 sum of own (K f - y)^2
            coef = np.linalg.solve(
                K[np.ix_(rest, rest)] + lam * np.diag(1 / own[rest]), data.Y[rest]
            )
            total += own[i] * np.mean((data.Y[i] - K[i, rest] @ coef) ** 2)
        assert error == pytest.approx(total / own.sum(), rel=1e-6)


# Inputs for which nothing is chosen.
FIXED = {"kernel": "gaussian", "scaling": "none", "metric": "none"}


def test_every_method_of_a_kernel_gets_the_same_and_says_it(data):
    X, y, chosen = data.X, data.Y[:, 0], {}
    for name, own in {
        "rf": {"n_features": 50},
        "kernel": {},
        "nystrom": {"n_features": 20},
        "sparse-rf": {"n_features": 20},
    }.items():
        model = methods.create(name, lam=1.0, **FIXED, **own).fit(X, y)
        assert model.method.gamma == "loo"
        assert model.info["validation"][0]["by"] == "kernel ridge regression"
        chosen[name] = model.info["kernel_params"]["gamma"]
        if name == "kernel":
            again = methods.create("kernel", **FIXED, lam=1.0, gamma=chosen["kernel"]).fit(X, y)
            np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert np.ptp(list(chosen.values())) < 1e-5 * chosen["kernel"]  # some use the rows in float32


def test_with_slack_it_is_the_closest_to_the_median_of_those_that_are_nearly_as_good(data):
    _, (step,) = loo(data, "laplacian")
    best = {
        value: min(error for one, _, error in step.tried if one == value)
        for value, _, _ in step.tried
    }
    median = list(best)[LOO_FACTORS.index(1.0)]
    for slack in (0.02, 0.2, 5.0):
        near = [value for value, error in best.items() if error <= (1 + slack) * min(best.values())]
        found, (own,) = loo(data, "laplacian", slack=slack)
        assert (
            found == min(near, key=lambda value: abs(np.log(value / median)))
            and own.tried == step.tried
        )
    assert found == median


def test_smooth_targets_without_noise_get_smaller_lambdas_but_by_this_word_only(data):
    X = data.X
    y = X[:, 0] + X[:, 1] * X[:, 2]
    assert methods.create("kernel", **FIXED).fit(X, y).info["lam"] == 0.001
    assert methods.create("kernel", **FIXED, gamma="median").fit(X, y).info["lam"] == 0.01
    classes = methods.create("kernel", **FIXED).fit(X, np.sign(y))
    assert min(lam for _, lam, _ in classes.info["validation"][0]["tried"]) == 0.01


def test_few_rows_and_kernels_without_a_bandwidth_have_nothing_to_choose(data):
    X = data.X
    few = methods.create("rf", kernel="gaussian", lam=1.0, n_features=20).fit(
        X[:10], data.Y[:10, 0]
    )
    assert "validation" not in few.info
    assert (
        few.info["kernel_params"]["gamma"]
        == kernels.parameters(
            "gaussian", few.preprocessing.scaler.transform(X[:10], np.float32), "median"
        )["gamma"]
    )
    assert (
        "validation"
        not in methods.create("rf", kernel="perceptron", lam=1.0, n_features=20)
        .fit(X, data.Y[:, 0])
        .info
    )


@pytest.mark.parametrize("name", WORDS)
def test_one_comparison_of_the_rows_is_enough_for_all_bandwidths(name, data):
    assert name in KERNELS
    wide = sp.random(40, 2000, 0.01, format="csr", random_state=3)
    for rows in (data.X, wide):
        scaled = scaled_family(name, rows, {"gamma": 0.5})
        for factor in (0.25, 1.0, 3.0):
            np.testing.assert_allclose(
                scaled(factor),
                block(name, rows, rows, {"gamma": 0.5 * factor}, dtype=np.float64),
                rtol=1e-6,
                atol=1e-6,
            )


@pytest.mark.parametrize("name", ["rf", "sparse-rf"])
def test_one_map_serves_all_trials_and_the_model(name, monkeypatch, data):
    drawn = []
    monkeypatch.setattr(
        linear,
        "sample",
        lambda *given, **named: drawn.append(named["gamma"]) or sample(*given, **named),
    )
    for word, times in {"median": 1, "loo": 1, "validation": 5}.items():
        drawn.clear()
        method = methods.create(name, gamma=word, n_features=40, **FIXED).fit(data.X, data.Y[:, 0])
        # validation draws a map for each of four bandwidths, for all folds and lambdas, and the
        # model has its own
        assert 1 <= len(drawn) <= times and drawn[-1] == method.info["kernel_params"]["gamma"]


def signal(n=600, d=50, seed=0):
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
    return input_selection.with_metric(Scaler.fit(X, "none"), method, problem)


def choose(X, Y, task="regression", leaf_rows=None, **candidates):
    problem = Problem(X, Y, Squared, task)
    search = InputSearch(X, problem, Candidates(**candidates), np.float64, 0, leaf_rows)
    return search.run(SearchBudget(), refine=True)


def rounds_in_leaves(X, Y):
    """The trials of each round in leaves, and what was chosen."""
    given = {"scalings": ("standard",), "forms": ("diagonal",)}
    alone, compared = choose(X, Y, **given), choose(X, Y, leaf_rows=500, **given)
    first = alone.steps[0].chosen[-1] + 1
    trials = compared.steps[0].tried
    rounds = ([row for row in trials if row[-2] == first + k] for k in range(3))
    return [one for one in rounds if one], compared.steps[0].chosen


def test_the_best_combinations_are_compared_again_in_leaves(few_rows_choose, set_sizes):
    few_rows_choose(200)
    set_sizes(metric_learning, FOLDED=100)
    rng = np.random.default_rng(1)
    X = rng.uniform(-1, 1, (4000, 6))
    Y = np.where(X[:, 0] > 0, X[:, 1], X[:, 2])[:, None] + 0.7 * rng.normal(size=(4000, 1))
    rounds, chosen = rounds_in_leaves(X, Y)
    assert list(map(len, rounds)) == [6, 3]
    assert chosen == min(rounds[-1], key=lambda row: row[-1])[:-1]


def test_a_kernel_far_behind_after_one_iteration_is_tried_with_several(set_sizes):
    """With five, it may have less than a tenth of the error."""
    set_sizes(metric_learning, FOLDED=100)
    X = np.random.default_rng(1).uniform(-1, 1, (700, 8))
    Y = np.abs(X).sum(axis=1)[:, None]
    names = ("laplacian", "laplacian-l2")
    trials = choose(X, Y, scalings=("none",), kernels=names, forms=()).steps[0].tried
    near, far = (min(t[-1] for t in trials if t[1] == name and t[-2] == 1) for name in names)
    assert far > (1 + input_selection.SLACK) * near
    assert {trial[1] for trial in trials if trial[-2] == 2} == set(names)


def test_leaves_compare_no_combination_far_above_the_lowest_error(few_rows_choose, set_sizes):
    """A metric halves the error, so that none without one is compared again."""
    few_rows_choose(200)
    set_sizes(metric_learning, FOLDED=100)
    X = np.random.default_rng(1).uniform(-1, 1, (4000, 6))
    rounds, chosen = rounds_in_leaves(X, np.where(X[:, 0] > 0, X[:, 1], X[:, 2])[:, None])
    assert {form for rows in rounds for _, _, form, *_ in rows} == {"diagonal"}
    # a single combination is not compared with itself
    assert min(map(len, rounds)) > 1
    assert chosen == min(rounds[-1], key=lambda row: row[-1])[:-1]


def test_iterations_of_a_metric_continue_while_the_error_in_leaves_falls(
    few_rows_choose, set_sizes
):
    few_rows_choose(300)
    set_sizes(metric_learning, FOLDED=100)
    X, Y = signal(3000, 12)
    rounds, chosen = rounds_in_leaves(X, Y)
    iterations = rounds[-1]
    assert [row[3] for row in iterations] == list(range(1, len(iterations) + 1))
    errors = [row[-1] for row in iterations]
    kept = int(np.argmin(errors)) + 1
    assert 1 < kept == chosen[3]
    assert (np.diff(errors[:kept]) < 0).all() and len(errors) - kept <= 1


@pytest.mark.parametrize("leaf_rows", [300, 2500])
def test_a_method_with_leaves_learns_its_metric_from_more_rows(
    leaf_rows, few_rows_choose, set_sizes
):
    few_rows_choose(300)
    set_sizes(metric_learning, FOLDED=100, OTHERS=100)
    set_sizes(input_selection, LEAF_ROWS=(leaf_rows, 5000))
    X, y = planted(1000, 4)
    trainer = Trainer(methods.get("local").of({"task": "regression"}), predicts_left_out=True)
    chosen = trainer.fit(X, y)
    assert chosen.info["explicit"]["metric"] != "none"
    # the other rows judge the leaf
    assert np.isfinite(chosen.left_out.decision).sum() == 250
    again = methods.create("local", task="regression", **chosen.info["explicit"]).fit(X, y)
    np.testing.assert_array_equal(again.predict(X), chosen.predict(X))
    set_sizes(metric_learning, TEACHING_ROWS=0)
    few = trainer.fit(X, y)
    if leaf_rows > len(X):  # leaves would choose another number of iterations
        assert few.info["explicit"] == chosen.info["explicit"]
    assert np.isfinite(few.left_out.decision).sum() == 500
    assert not np.array_equal(few.predict(X), chosen.predict(X))


@pytest.mark.parametrize("n_inputs, way", [(20, "leave-one-out"), (80, "cross-validated")])
def test_few_rows_for_each_input_are_compared_in_folds(n_inputs, way):
    X = np.random.default_rng(1).normal(size=(600, n_inputs))
    given = {"scalings": ("standard",), "kernels": ("laplacian-l2",), "forms": ("diagonal",)}
    [step] = choose(X, X[:, :1], **given).steps
    assert step.error.startswith(way)


def test_leaves_of_equal_rows_decide_nothing():
    X = np.repeat(np.random.default_rng(1).normal(size=(3, 4)), 200, axis=0)
    given = {"scalings": ("standard",), "kernels": ("laplacian-l2",), "forms": ()}
    alone, compared = (choose(X, X[:, :1], leaf_rows=n, **given).steps[0] for n in (None, 100))
    assert compared.chosen == alone.chosen


@pytest.mark.parametrize("kernel", ["gaussian", "laplacian", "laplacian-l2"])
@pytest.mark.parametrize("form", ["diagonal", "full"])
def test_a_planted_signal_is_found(kernel, form):
    X, Y = signal(1200)
    learnt = learn(X, Y, form, kernel=kernel)
    metric, [step] = learnt.scaler.metric, learnt.steps
    assert metric is not None and metric.form == metric_learning.allowed((form,), X, kernel)[0]
    assert metric.shares()[:2].sum() > 0.95
    assert min(row[-1] for row in step.tried) < 0.5 * step.tried[0][-1]


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
    assert {row[0] for row in learnt.steps[0].tried} == {"none", "diagonal", "full"}


def test_few_noisy_rows_have_no_metric_by_luck():
    for seed in range(10):
        X, Y = round_(60, 10, seed)
        noise = np.random.default_rng(100 + seed).normal(size=Y.shape)
        assert learn(X, Y + noise).scaler.metric is None


@pytest.mark.parametrize("kernel", ["laplacian", "laplacian-l2"])
def test_weights_count_as_repetitions(kernel):
    X, Y = signal(120, 4)
    counts = np.arange(120) % 3
    again, alone = np.repeat(np.arange(120), counts), np.flatnonzero(counts)
    # the bandwidth comes from a sample of pairs, which repeated rows change
    params = {"gamma": 0.4}

    def metric(rows, weights, lam):
        K = kernels.block(kernel, X[rows], X[rows], params)
        own = np.ones(len(rows)) if weights is None else weights / weights.mean()
        problem = Problem(X[rows], Y[rows], Squared, "regression", own)
        every = np.arange(len(rows))
        coef = metric_learning.Sample(problem, (every, every), 0)._error(K, lam)[1]
        return metric_learning.next_metric(kernel, X[rows], coef, params, None, True, own, 0).map

    # lambda is in the unit of the mean weight
    weighted = metric(alone, counts[alone].astype(float), 0.1)
    repeated = metric(again, None, 0.1 * np.mean(counts[alone]))
    np.testing.assert_allclose(weighted, repeated, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("task", ["regression", "multiclass"])
def test_the_error_is_that_of_machines_without_the_row(task):
    X, Y = signal(60, 3)
    if task == "multiclass":
        Y = np.where(np.digitize(Y, [-0.5, 0.5]) == np.arange(3), 1.0, -1.0)
    sample = metric_learning.Sample.of(Problem(X, Y, Squared, task), 60, 0)
    machine = sample.tuned("gaussian", None, 0.5)
    K = kernels.block("gaussian", X, X, machine.params)
    decision = np.empty(Y.shape)
    for row in range(60):
        kept = np.delete(np.arange(60), row)
        mean = Y[kept].mean(axis=0)
        coef = np.linalg.solve(K[np.ix_(kept, kept)] + machine.lam * np.eye(59), Y[kept] - mean)
        decision[row] = K[row, kept] @ coef + mean
    expected = metric_learning.criterion(task, decision, Y, None)
    assert machine.score == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize("form", ["diagonal", "full"])
def test_sparse_rows_have_the_metric_of_dense_ones(form):
    X, Y = signal(200, 10)
    X[np.abs(X) < 0.5] = 0
    rows = sp.csr_matrix(X)
    dense, sparse = (learn(each, Y, form, 2).scaler for each in (X, rows))
    assert sparse.metric.form == form
    np.testing.assert_array_equal(sparse.metric.map, dense.metric.map)
    mapped = sparse.transform(rows)
    assert sp.issparse(mapped) == (form == "diagonal")
    mapped = mapped.toarray() if form == "diagonal" else mapped
    np.testing.assert_allclose(mapped, dense.transform(X))
    with pytest.raises(UsageError, match="--metric is full, which would make sparse rows dense"):
        Metric(np.eye(10)).transform(rows)


def test_many_inputs_have_a_diagonal_metric_only():
    X = np.zeros((3, metric_learning.MOST_INPUTS + 1))
    assert metric_learning.allowed(("diagonal", "full"), X, "laplacian-l2") == ["diagonal"]
    assert metric_learning.allowed(("full",), X, "laplacian-l2") == ["diagonal"]
    assert metric_learning.allowed((), X, "laplacian-l2") == []


@pytest.mark.parametrize("task", ["regression", "binary", "multiclass"])
def test_the_choice_has_the_same_bits_with_any_number_of_threads(task, by_threads):
    X, Y = signal(150, 5)
    if task != "regression":
        codes = np.digitize(Y[:, 0], [0.0] if task == "binary" else [-0.5, 0.5])
        Y = np.where(codes[:, None] == np.unique(codes)[1 if task == "binary" else 0 :], 1.0, -1.0)

    def made():
        with parallel.one_blas_thread():
            chosen = choose(X, Y, task, scalings=("standard", "robust"), steps=2)
        return chosen.options, chosen.machine.lam, chosen.steps[0].tried

    one, *others = by_threads(made, (1, 2, 3))
    assert others == [one, one]


def test_too_few_rows_are_not_chosen_by():
    X, Y = signal(metric_learning.FEWEST - 1, 3)
    trained = methods.create("rfm", task="regression").fit(X, Y[:, 0])
    assert trained.method.scaling == "standard" and trained.method.metric == "none"


def test_the_choice_is_of_the_least_error_that_was_tried():
    step = choose(*signal(200, 6), "regression", scalings=("standard", "robust")).steps[0]
    last = [row for row in step.tried if row[4] == step.chosen[4]]
    assert min(last, key=lambda row: row[-1])[:4] == step.chosen[:4]
    assert step.held_out == 200


# ------------------------------------------------------------------------- in a pipeline


def test_a_model_keeps_its_metric(reloaded):
    X, Y = signal(300, 6)
    trained = methods.create("rf", task="regression", metric="full", metric_steps=2, lam=0.1)
    trained = trained.fit(X, Y[:, 0])
    metric = trained.preprocessing.scaler.metric
    assert metric.form == "full"
    loaded = reloaded(trained, X).preprocessing.scaler.metric
    np.testing.assert_array_equal(loaded.map, metric.map)


@pytest.mark.parametrize(
    "name", ["kernel", "rf", "sparse-rf", "rb", "sparse-rb", "nystrom", "block", "lkrf"]
)
def test_every_method_gains_by_the_metric_of_a_planted_signal(name):
    X, Y = signal(500, 20)
    options = {"task": "regression", "scaling": "standard", "lam": 0.3}
    options |= {"kernel": "laplacian"} if name.endswith("rb") else {"kernel": "gaussian"}
    plain, learnt = (
        methods.create(name, metric=kind, **options).fit(X[:400], Y[:400, 0])
        for kind in ("none", "auto")
    )
    assert learnt.method.metric in ("diagonal", "full")
    errors = [np.mean((one.predict(X[400:]) - Y[400:, 0]) ** 2) for one in (plain, learnt)]
    assert errors[1] < 0.8 * errors[0]


@pytest.mark.parametrize("name", ["doubly-sgd", "r-sdca", "norma"])
def test_streaming_methods_learn_it_from_their_first_rows(name):
    X, Y = signal(400, 20)
    options = {"task": "regression", "scaling": "standard", "metric": "diagonal", "epochs": 2}
    trained = methods.create(name, metric_steps=2, **options).fit(X, Y[:, 0])
    assert trained.preprocessing.scaler.metric.shares()[:2].sum() > 0.6


def test_the_machine_predicts_the_mean_far_from_all_rows():
    X, Y = signal(100, 2)
    given = {"kernel": "gaussian", "scaling": "standard", "metric": "none"}
    trained = methods.create("rfm", task="regression", **given).fit(X, Y[:, 0] + 100)
    assert trained.predict(np.full((1, 2), 1e3)) == pytest.approx(np.mean(Y) + 100)


@pytest.mark.parametrize("kernel", ["linear", "arccosine-0"])
def test_kernels_without_a_bandwidth_take_a_metric(kernel):
    X, Y = signal(100, 3)
    trained = methods.create("rfm", task="regression", kernel=kernel, scaling="auto")
    trained = trained.fit(X, Y[:, 0])
    assert trained.method.kernel == kernel and trained.method.scaling != "auto"
    again = methods.create("rfm", task="regression", **trained.info["explicit"]).fit(X, Y[:, 0])
    np.testing.assert_allclose(again.predict(X), trained.predict(X), rtol=1e-9)


def test_the_metric_follows_the_scaling():
    X, _ = signal(100, 3)
    scaler, own = Scaler.fit(X, "standard"), Metric(np.array([1.0, 0.5, 0.0]))
    np.testing.assert_allclose(
        replace(scaler, metric=own).transform(X), scaler.transform(X) * own.map
    )
