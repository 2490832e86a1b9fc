"""Methods: options, tasks, certificates, model files and the paper's algorithm, on small data.
`mlp`: scikit-learn's network on the stream of the stochastic methods.
"""

from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.neural_network import MLPClassifier, MLPRegressor

from rfx import kernels, methods
from rfx.data.stream import ArraySource, Stream
from rfx.errors import DataError, UsageError
from rfx.fitting.held_out import Splitter
from rfx.methods import kernel

TASKS = ("regression", "binary", "multiclass")
FAST = {
    "kernel": {"gamma": 3.0, "lam": 1.0},
    "rf": {"gamma": 3.0, "n_features": 300, "lam": 0.1},
    "sparse-rf": {"gamma": 3.0, "n_features": 300, "lam": 0.3, "rounds": 3},
    "rb": {"gamma": 1.0, "n_grids": 200, "lam": 0.1},
    "sparse-rb": {"gamma": 1.0, "n_grids": 200, "lam": 0.02},
    "nystrom": {"gamma": 3.0, "n_features": 100, "lam": 0.1},
    "block": {"gamma": 3.0, "block_size": 100, "lam": 0.1},
    "boosting": {
        "surrogate": "squared",
        "threshold": "exact",
        "per_step": 10,
        "lam": 1.3,
        "n_features": 200,
    },
    "lkrf": {"gamma": 3.0, "pool": 2000, "rho_share": 0.002, "lam": 0.01},
}

# the methods with a certificate; test_stream_methods tests those that learn batch by batch
NAMES = [name for name in methods.names() if name in FAST]


@pytest.fixture(scope="module")
def shells():
    """Rows, and targets of each task that depend on the distance to a point."""
    X = np.random.default_rng(0).uniform(-3, 5, (400, 3))
    radius = np.linalg.norm(X - 1, axis=1)
    targets = {
        "regression": 40 + 7 * np.sin(radius),
        "binary": np.where(radius > 3.9, 5.0, 2.0),
        "multiclass": np.digitize(radius, [3.0, 4.6]).astype(float),
    }
    return SimpleNamespace(X=X, targets=targets)


def fitted(shells, name, task, **more):
    target = {"target_scaling": "minmax01"} if task == "regression" else {}
    method = methods.create(name, **(FAST[name] | target | more))
    return method.fit(shells.X[:300], shells.targets[task][:300])


@pytest.mark.slow
@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("name", NAMES)
def test_learns_saves_and_loads(name, task, reloaded, shells):
    method, y = fitted(shells, name, task), shells.targets[task][300:]
    assert method.info["task"] == task
    # over the features of the last round, if there are rounds
    gap = method.info.get("round_gap", method.info["gap"])
    assert method.info["converged"] and gap <= method.info["gap"]
    assert 0 <= gap <= 1e-2 * max(1.0, method.info["objective"])
    score = method.score(shells.X[300:], y)
    if task == "regression":
        error = np.sqrt(np.mean((method.predict(shells.X[300:]) - y) ** 2))
        assert error == pytest.approx(score.score * np.ptp(shells.targets[task][:300]), rel=1e-6)
        assert score.metric == "rmse" and score.score < 0.12
    else:
        assert score.metric == "accuracy" and score.score > 0.75
        assert set(method.predict(shells.X[300:])) <= set(shells.targets[task])
    assert reloaded(method, shells.X[300:]).method == method.method


def test_sparse_rf_is_algorithm_1(shells):
    method = fitted(shells, "sparse-rf", "regression", rounds=5, lam=0.5)
    assert [entry["features"] for entry in method.trace] == [60, 120, 180, 240, 300]
    objectives = [entry["objective"] for entry in method.trace]
    # each round starts from the last weights (early rounds are solved to 1 percent)
    assert all(later <= earlier * 1.011 for earlier, later in zip(objectives, objectives[1:]))
    assert (
        method.trace[-1]["nnz"]
        == method.info["model_size"]
        == len(method.model.coef)
        == method.model.map.n_features
    )
    assert np.all(np.any(method.model.coef != 0, axis=1))


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("name", ["sparse-rf", "rf"])
def test_path_agrees_with_single_solutions(name, task, shells):
    tol, rounds = 1e-7, {"rounds": None} if name == "sparse-rf" else {}
    path = fitted(shells, name, task, lam_path="20:0.5:4", tol=tol, lam=None, **rounds).path
    lams = [20, 20 / 40 ** (1 / 3), 20 / 40 ** (2 / 3), 0.5]
    assert [point.info["lam"] for point in path] == pytest.approx(lams)
    for point in path:
        once = {"rounds": 1} if name == "sparse-rf" else {}
        alone = fitted(shells, name, task, lam=point.info["lam"], tol=tol, **once)
        assert point.info["objective"] == pytest.approx(alone.info["objective"], rel=1e-5)
        expected = alone.decision_function(shells.X)
        atol = 0.02 * np.abs(expected).max()
        np.testing.assert_allclose(point.decision_function(shells.X), expected, atol=atol)
        assert point.info["converged"] and point.info["gap"] <= 1.01 * tol * point.info["objective"]
    if name == "sparse-rf":
        assert path[0].info["model_size"] < path[-1].info["model_size"]


def test_lambda_above_the_largest_gives_an_empty_model(reloaded, shells):
    method = fitted(shells, "sparse-rf", "binary", lam=1e6)
    assert method.info["model_size"] == 0 and method.info["converged"]
    assert len(reloaded(method, shells.X).predict(shells.X)) == 400


@pytest.mark.slow
@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("name", ["rf", "sparse-rf"])
def test_features_by_leverage(name, task, shells):
    more = {"kernel": "perceptron", "gamma": "paper", "features": "range", "choose": "leverage"}
    one, two = (
        fitted(shells, name, task, **more, lam=1.0).decision_function(shells.X) for _ in range(2)
    )
    np.testing.assert_array_equal(one, two)
    assert len(np.unique(one)) > 10


@pytest.mark.parametrize(("kernel", "gamma"), [("gaussian", 3.0), ("arccosine-1", "paper")])
def test_smooth_kernels_features_by_leverage(kernel, gamma, shells):
    """40 features chosen from 2,000 approximate the exact kernel machine better than 40 random
    ones.
    """
    own = {"kernel": kernel, "gamma": gamma, "dtype": "float64", "lam": 0.1}
    exact = fitted(shells, "kernel", "regression", **own).decision_function(shells.X)

    def error(seed, **more):
        model = fitted(shells, "rf", "regression", **own, **more | {"n_features": 40}, seed=seed)
        return np.square(model.decision_function(shells.X) - exact).mean()

    chosen = {"choose": "leverage", "pool": 2000}
    random, leverage = (np.mean([error(s, **more) for s in range(4)]) for more in ({}, chosen))
    assert leverage < 0.8 * random


@pytest.mark.parametrize("kernel", ["gaussian", "laplacian", "stump", "linear"])
def test_weighted_features_are_in_the_model_file(kernel, reloaded, shells):
    more = {"gamma": "median" if kernel != "stump" else "paper", "choose": "leverage"}
    model = fitted(shells, "rf", "regression", kernel=kernel, n_features=40, **more)
    assert model.info["model_size"] == 40 and "scales" in model.model.map.arrays
    reloaded(model, shells.X)


@pytest.mark.parametrize(("name", "size"), [("kernel", {}), ("rf", {"n_features": 200})])
def test_the_scale_of_perceptrons_is_a_factor_of_lambda(name, size, reloaded, shells):
    """The kernel times s with lambda equals the kernel with lambda / s; the model file has the
    scale.
    """
    scaled = (shells.X[:300] - shells.X[:300].min(0)) / np.ptp(shells.X[:300], axis=0)
    factor = kernels.perceptron_constant(3) / np.linalg.norm(scaled, axis=1).max()
    own = {"kernel": "perceptron", "gamma": "paper", "dtype": "float64", "tol": 1e-10} | size
    raw = fitted(shells, name, "regression", **own, lam=1.0)
    unit = fitted(shells, name, "regression", **own, lam=factor, perceptron_scale="unit")
    np.testing.assert_allclose(
        unit.decision_function(shells.X), raw.decision_function(shells.X), atol=1e-5
    )
    again = reloaded(unit, shells.X)
    assert again.info["kernel_params"]["unit"] == 1 and "unit" not in raw.info["kernel_params"]
    if name == "rf":
        assert set(np.unique(again.model.map.transform(shells.X))) == {-1.0, 1.0}


@pytest.mark.parametrize("scale", ["kernel", "unit"])
def test_match_rf_is_the_rf_of_the_same_scale(scale, fewest_evaluated, shells):
    """The error to be met is that of rf with this scale, fitted to the 0.8 of the rows that learn,
    with lambda_N = 1.
    """
    fewest_evaluated(0)
    rows, y = shells.X[:300], shells.targets["binary"][:300]
    own = {"kernel": "perceptron", "gamma": "paper", "n_features": 60, "scaling": "none"}
    matched = fitted(shells, "sparse-rf", "binary", **own, lam="match-rf", perceptron_scale=scale)
    kept, out = Splitter(300, 0).part(0.2, "")
    errors = {}
    for other in ("kernel", "unit"):
        rf = methods.create("rf", **own, lam=0.8, perceptron_scale=other).fit(rows[kept], y[kept])
        errors[other] = 1 - rf.score(rows[out], y[out]).score
    [step] = matched.info["validation"]
    assert step["target"] == pytest.approx(errors[scale])
    assert errors["kernel"] != errors["unit"]


@pytest.mark.slow
@pytest.mark.parametrize("name", methods.names())
def test_one_row_and_one_label(name, shells):
    options = FAST.get(name, {})
    alone = methods.create(name, task="regression", **options).fit(shells.X[:1], np.array([2.0]))
    assert np.isfinite(alone.predict(shells.X)).all()
    for label in (-1.0, 1.0, 3.0):
        method = methods.create(name, task="binary", **options)
        trained = method.fit(shells.X[:60], np.full(60, label))
        assert np.all(trained.predict(shells.X[:60]) == label)


def test_every_default_is_a_value_that_its_option_takes():
    for name in methods.names():
        for option in methods.get(name).declared().values():
            assert option.default is None or option.convert(option.default) == option.default


@pytest.mark.parametrize(
    ("name", "change", "more", "message"),
    [
        ("rf", np.copy, {"gamma": 1e300}, "training rf diverged"),
        ("sparse-rf", np.copy, {"gamma": 1e300}, "the gradient of the losses is not finite"),
        (
            "rf",
            lambda X: X * 1e39,
            {"scaling": "none"},
            "row 1, column 1 is .*e.39, which is not finite in float32",
        ),
        (
            "rf",
            lambda X: sp.csr_matrix(X * 1e39),
            {"scaling": "none"},
            "row 1, column 1 is .*, which is not finite in float32",
        ),
        (
            "kernel",
            lambda X: np.where(X == X[7, 1], np.nan, X),
            {"scaling": "none"},
            "row 8, column 2 is nan, which is not finite in float64",
        ),
        *[
            (
                "rf",
                lambda X: X * [1, 1, 3e307],
                {"scaling": kind},
                "column 3 of the training rows can't be scaled",
            )
            for kind in ("minmax01", "standard")
        ],
        (
            "block",
            np.copy,
            {"lam": 1e-300},
            "training block diverged",
        ),
    ],
)
@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_numbers_that_are_not_finite_are_refused(name, change, more, message, shells):
    method = methods.create(name, **(FAST[name] | more))
    with pytest.raises(DataError, match=message):
        method.fit(change(shells.X), shells.targets["binary"])


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("kernel", {"loss": "squared", "lam": 1e300}),
        ("sparse-rf", {"lam": 1e-300, "max_iter": 50, "n_features": 50}),
        ("rf", {"lam": 1e300}),
    ],
)
def test_overflow_on_the_way_is_not_said(name, options, shells):
    trained = methods.create(name, **options).fit(shells.X[:100], shells.targets["binary"][:100])
    assert np.isfinite(trained.info["objective"])


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        (np.zeros((2, 3)), "no finite value for row 1"),
        (np.array([[0, 0, 0], [0, 0, 1e308]]), "row 2, column 3 is 1e.308, which is not finite"),
        (np.ones((2, 4)), "the rows have 4 features, but the model was trained on 3"),
    ],
)
def test_a_decision_that_is_not_finite_is_refused(rows, says, shells):
    method = fitted(shells, "rf", "binary")
    method.model.coef[3] = np.nan
    with pytest.raises(DataError, match=says):
        method.predict(rows)


@pytest.mark.parametrize("scaling", ["none", "minmax01"])
@pytest.mark.parametrize("name", NAMES)
def test_rows_too_wide_for_memory_are_refused(name, scaling, free_memory):
    rows = sp.csr_matrix((np.ones(2), [0, 2_000_000_000], [0, 1, 2]), shape=(2, 2_000_000_001))
    free_memory(10_000.0)
    with pytest.raises(
        DataError,
        match="2,000,000,001 columns.* 10,000 MiB",
    ):
        methods.create(name, scaling=scaling, **FAST[name]).fit(rows, np.array([1.0, 2.0]))


def test_labels_that_the_model_never_saw_have_no_score(shells):
    method = fitted(shells, "rf", "multiclass")
    with pytest.raises(DataError, match=r"\(7, 9\).*\(0, 1, 2\)"):
        method.score(shells.X[:4], np.array([7.0, 9, 9, 7]))
    found = method.predict(shells.X[1:2])[0]
    assert method.score(shells.X[:2], np.array([7.0, found])).score == 0.5


def test_the_exact_machine_of_many_rows_names_another_method(set_sizes, caplog, shells):
    fitted(shells, "kernel", "binary")
    assert "nystrom" not in caplog.text
    set_sizes(kernel, MANY=100)
    fitted(shells, "kernel", "binary")
    assert "method nystrom approximates it" in caplog.text


OPTIONS = {
    "scaling": "none",
    "batch": 50,
    "epochs": 40,
    "layers": "30,20",
    "rate": 3e-3,
    "nu": 1e-4,
    "seed": 5,
}


@pytest.fixture(scope="module")
def spheres():
    """Rows in float32, and targets of each task that depend on their length."""
    X = np.random.default_rng(0).uniform(-2, 2, (600, 3)).astype(np.float32)
    length = np.linalg.norm(X, axis=1)
    targets = {
        "regression": 40 + 7 * np.cos(length),
        "binary": np.where(length > 2.2, 5.0, 2.0),
        "multiclass": np.digitize(length, [1.8, 2.5]).astype(float),
    }
    return SimpleNamespace(X=X, targets=targets)


@pytest.mark.slow
@pytest.mark.parametrize("task", TASKS)
def test_it_is_scikit_learn_s_on_the_same_batches(task, reloaded, spheres):
    """The result of partial_fit over the batches of the stream, which are those of doubly-sgd; a
    model file keeps it. Centred targets are divided by their deviation in the first batch.
    """
    y = spheres.targets[task]
    more = {"target_scaling": "mean"} if task == "regression" else {}
    method = methods.create("mlp", task=task, **OPTIONS, **more).fit(
        spheres.X[:500], y[:500], held_out=(spheres.X[500:], y[500:])
    )
    kind = MLPRegressor if task == "regression" else MLPClassifier
    network = kind(
        hidden_layer_sizes=(30, 20),
        learning_rate_init=3e-3,
        shuffle=False,
        random_state=5,
        batch_size=50,
        alpha=1e-4 * 50,
    )
    known = {} if task == "regression" else {"classes": np.unique(y)}
    mean, scale = (y[:500].mean(), None) if task == "regression" else (0.0, 1.0)
    for rows, own, _ in Stream(ArraySource(spheres.X[:500], y[:500], 5), 50, 0, 5, 40):
        scale = scale or own.std()
        network.partial_fit(rows, (own - mean) / scale, **known)
    found = method.predict(spheres.X[500:])
    np.testing.assert_allclose(found, network.predict(spheres.X[500:]) * scale + mean, atol=1e-3)
    assert (
        np.mean(np.abs(found - y[500:])) < 1.0
        if task == "regression"
        else np.mean(found == y[500:]) > 0.8
    )
    assert (
        method.trace[-1]["samples"] == 40 * 500
        and method.trace[-1]["loss"] < method.trace[0]["loss"]
    )
    reloaded(method, spheres.X)


@pytest.mark.slow
def test_the_loss_before_the_first_step_is_that_of_nothing_learnt_and_regularisation_counts(
    spheres,
):
    y = spheres.targets["binary"]
    weights = []
    for nu in (0.0, 0.1):
        method = methods.create("mlp", task="binary", **OPTIONS | {"nu": nu}).fit(spheres.X, y)
        weights.append(np.square(method.model.arrays()["parameters"]).sum())
        assert 0 < method.info["objective"] < np.log(2)
        assert method.info["model_size"] == 4 * 30 + 31 * 20 + 21
    assert weights[1] < 0.5 * weights[0]


def test_what_is_refused_of_rows(tmp_path, spheres):
    with pytest.raises(UsageError, match="method mlp can't write checkpoints"):
        methods.create("mlp").keep(tmp_path / "point")
    with pytest.raises(UsageError, match="there are several classes; choose softmax"):
        methods.create("mlp", loss="logistic", task="multiclass").fit(
            spheres.X, spheres.targets["multiclass"]
        )
    with pytest.raises(UsageError, match="method mlp does not support sample weights"):
        methods.create("mlp").fit(
            spheres.X, spheres.targets["binary"], sample_weight=np.arange(len(spheres.X))
        )


PATH = {"lam_path": "10:1:3"}


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("svr", {}, "method 'svr' is unknown .choose one of: auto, block, .*kernel, .*nystrom"),
        ("rf", {"rounds": 3}, "method rf has no option --rounds .it has: --task, --scaling"),
        ("rf", {"landmarks": "uniform"}, "method rf has no option --landmarks"),
        ("rf", {"lam": -1}, "--lam is -1; it must be a number above 0"),
        ("rf", {"lam": "match-rf"}, "--lam is 'match-rf'; it must be a number above 0 or one of"),
        ("rb", {"lam": "match-rf"}, "--lam is 'match-rf'; it must be a number above 0 or one of"),
        ("sparse-rf", {"gamma": "validation", "lam": "match-rf"}, "can't be combined with it"),
        ("rf", {"gamma": "validation"} | PATH, "--gamma is validation, which needs a single"),
        ("sparse-rf", {"lam": 3.0} | PATH, "--lam is 3.0, which has no effect with --lam-path"),
        ("sparse-rf", {"rounds": 3} | PATH, "--rounds is 3, which has no effect with --lam-path"),
        ("sparse-rf", {"solver": "prcd"} | PATH, "--solver is prcd, which starts every lambda"),
        ("sparse-rf", {"solver": "libsvm"}, "it must be one of rfx, liblinear, prcd"),
        ("sparse-rb", {"solver": "libsvm"}, "it must be one of rfx, prcd, liblinear"),
        ("kernel", {"solver": "liblinear"}, "one of rfx, libsvm"),
        ("block", {"solver": "libsvm"}, "--solver is 'libsvm'; it must be one of rfx, liblinear"),
        ("rf", {"pool": 50}, "--pool is 50, which has no effect without --choose"),
        ("rf", {"pool": 50, "choose": "leverage"}, "--pool is 50, which is smaller than --n-feat"),
        ("rf", {"kernel": "gaussian", "perceptron_scale": "unit"}, "does not apply to kernel gau"),
        ("rf", {"kernel": "perceptron", "features": "pairs"}, "which is for the kernels gaussian"),
        ("sparse-rf", {"features": "pairs", "n_features": 51}, "pairs needs an even number"),
        ("rf", {"loss": "hinge"}, "it must be one of squared, squared_hinge, logistic"),
        ("block", {"loss": "hinge"}, "it must be one of squared, squared_hinge, logistic"),
        ("kernel", {"loss": "softmax"}, "squared, squared_hinge, hinge, logistic, absolute, eps"),
        ("rb", {"kernel": "linear"}, "--kernel is 'linear'; it must be one of laplacian, erlang"),
        ("sparse-rb", {"kernel": "gaussian"}, "it must be one of laplacian, erlang, rational, hat"),
        ("rb", {"n_grids": 0}, "--n-grids is 0"),
        ("rb", {"grow": 0.9}, "--grow is 0.9; it must be a number above 0 and at most 0.5"),
        ("block", {"partition": "grid"}, "--partition is 'grid'; it must be one of hyperplanes"),
        ("block", {"block_size": 0}, "--block-size is 0"),
        ("nystrom", {"landmarks": "grid"}, "it must be one of uniform, kmeans, rpcholesky"),
        ("rf", {"metric_steps": 3, "metric": "none"}, "--metric-steps is 3, which has no effect"),
        ("rf", {"gamma": 0}, "--gamma is 0; it must be"),
        ("rf", {"gamma": "nan"}, "--gamma is .*; it must be"),
        ("rf", {"kernel": "rbf"}, "--kernel is .*; it must be"),
        ("kernel", {"epsilon": -1}, "--epsilon is -1"),
        ("kernel", {"loss": "absolute", "epsilon": 0.2}, "--epsilon is 0.2, which has no effect"),
        ("kernel", {"bias": "maybe"}, "--bias is .*; it must be"),
        ("rf", {"tol": "inf"}, "--tol is .*; it must be"),
        ("rf", {"lam_path": "10:1"}, "--lam-path is .*; it must be"),
        ("boosting", {"kernel": "stump", "surrogate": "squared"}, "--surrogate is squared, which"),
        ("boosting", {"kernel": "stump", "threshold": "exact"}, "--threshold is exact, which is f"),
        ("lkrf", {"rho": 3, "rho_share": 0.1}, "--rho is 3.0 and --rho-share is 0.1; use only one"),
        ("lkrf", {"divergence": "kl"}, "--divergence is kl, which needs a number as --rho"),
        ("lkrf", {"use": "weights", "n_features": 10}, "which has no effect with --use weights"),
        ("lkrf", {"sparse": True, "solver": "liblinear"}, "which does not support --sparse; use"),
        ("lkrf", {"joint": 3, "sparse": True}, "--joint requires --divergence chi2, without --sp"),
        ("lkrf", {"joint_rows": 300}, "--joint-rows is 300, which has no effect without --joint"),
        ("lkrf", {"rho": -1}, "--rho is -1; it must be"),
        ("lkrf", {"features": "leverage"}, "--features is 'leverage'"),
        ("mlp", {"layers": "30,x"}, "--layers is '30,x'; it must be whole numbers from 1 to 1,0"),
        ("mlp", {"layers": "0"}, "--layers is '0'"),
        ("mlp", {"kernel": "gaussian"}, "kernel"),
        ("mlp", {"class_weight": "balanced"}, "class.weight"),
        ("r-sdca", {"virtual": "digits", "budget_samples": 10}, "stores a number per row"),
        ("r-sdca", {"replace": True}, "--replace may draw a row twice in one step"),
        ("doubly-sgd", {"views": 2}, "--views is 2, which has no effect without --virtual"),
        ("doubly-sgd", {"virtual_copies": 2}, "--virtual-copies is 2, which has no effect without"),
        ("doubly-sgd", {"keep_values": True, "max_blocks": 3}, "is for rows that repeat"),
        ("doubly-sgd", {"keep_values": True, "head": 10}, "is for rows that repeat"),
        ("doubly-sgd", {"keep_values": True, "virtual": "digits"}, "is for rows that repeat"),
        ("doubly-sgd", {"step": "theorem"}, "--step is theorem, which needs --nu, but --nu is val"),
        ("doubly-sgd", {"scaling": "auto"}, "scales rows before it has all of them; specify"),
        ("doubly-sgd", {"metric": "full", "unit": True}, "but --unit and --pca change them; use o"),
    ],
)
def test_options_are_refused(name, options, message):
    with pytest.raises(UsageError, match=message):
        methods.create(name, **options)


def test_an_update_knows_the_options_of_kernels_and_no_other_name():
    method = methods.create("rf", kernel="perceptron").method
    assert method.updated(perceptron_scale="unit").perceptron_scale == "unit"
    with pytest.raises(TypeError, match="rounds"):
        method.updated(rounds=3)


@pytest.fixture(scope="module")
def cube():
    """Rows, and targets of each task that are smooth functions of them."""
    X = np.random.default_rng(0).uniform(0, 1, (400, 4))
    values = np.sin(6 * X[:, 0]) + X[:, 1] * X[:, 2]
    targets = {
        "regression": values,
        "binary": np.where(values > 0.3, 1.0, -1.0),
        "multiclass": np.digitize(values, [0.0, 0.8]).astype(float),
    }
    return SimpleNamespace(X=X, targets=targets)


@pytest.mark.parametrize(
    ("name", "task", "options", "message"),
    [
        ("rf", "regression", {"loss": "logistic"}, "the task is regression; use squared"),
        ("nystrom", "regression", {"loss": "logistic"}, "--loss is logistic, but the task is reg"),
        ("kernel", "regression", {"loss": "hinge"}, "use squared, absolute, epsilon_insensitive"),
        ("kernel", "binary", {"loss": "absolute"}, "--loss is absolute, but the task is binary"),
        ("kernel", "regression", {"solver": "libsvm", "bias": False, "loss": "absolute"}, "a bias"),
        ("kernel", "regression", {"bias": True}, "--bias is for support vector machines"),
        ("kernel", "binary", {"solver": "libsvm", "bias": False}, "libsvm always has a bias"),
        ("rf", "binary", {"target_scaling": "mean"}, "which is for regression, but the task is b"),
        ("rf", "multiclass", {"target_scaling": "mean"}, "which is for regression, but the task"),
        ("rf", "regression", {"measure": "auc"}, "--measure is auc, but the task is regression"),
        ("nystrom", "binary", {"solver": "cg", "loss": "squared_hinge"}, "for squared loss, not"),
        ("rb", "regression", {"kernel": "hat", "gamma": "tuned"}, "but kernel hat has none"),
        (
            "sparse-rb",
            "binary",
            {"solver": "liblinear", "loss": "squared", "n_grids": 4},
            "solver liblinear has no squared loss here; use squared_hinge or logistic",
        ),
        ("rf", "regression", {"kernel": "perceptron", "gamma": 1.0}, "has no gamma"),
        ("lkrf", "binary", {"offset": "mean", "loss": "logistic"}, "which is for squared loss"),
        ("rf", "binary", {"offset": "mean", "lam": 1}, "for squared loss, but --loss is squared_h"),
    ],
)
def test_options_of_a_task(name, task, options, message, cube):
    fixed = {"kernel": "laplacian", "metric": "none", "scaling": "none"}
    with pytest.raises(UsageError, match=message):
        methods.create(name, task=task, **fixed | options).fit(cube.X, cube.targets[task])


@pytest.mark.parametrize(
    ("name", "options", "rows", "error", "message"),
    [
        ("sparse-rf", {"gamma": "validation"}, 2, UsageError, "needs at least 5 rows"),
        ("rb", {"grow": 0.2}, 4, UsageError, "--grow is 0.2, which needs at least 5 rows"),
        ("rf", {"task": "binary"}, 400, DataError, "the task is binary, but the targets have 3"),
        ("rf", {}, 399, DataError, "there are 399 rows and 400 targets"),
    ],
)
def test_rows_are_refused(name, options, rows, error, message, cube):
    y = cube.targets["multiclass"][: 400 if rows == 399 else rows]
    with pytest.raises(error, match=message):
        methods.create(name, **options).fit(cube.X[:rows], y)


@pytest.mark.parametrize("name", NAMES)
def test_same_seed_same_model(name, shells):
    one, two = (fitted(shells, name, "binary", seed=7) for _ in range(2))
    np.testing.assert_array_equal(one.model.arrays()["coef"], two.model.arrays()["coef"])
