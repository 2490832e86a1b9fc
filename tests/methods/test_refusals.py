"""Options and rows that a method refuses: one sentence that names them."""

import numpy as np
import pytest

from rfx import env, methods
from rfx.errors import DataError, UsageError

X = np.random.default_rng(0).uniform(0, 1, (400, 4))
VALUES = np.sin(6 * X[:, 0]) + X[:, 1] * X[:, 2]
TARGETS = {
    "regression": VALUES,
    "binary": np.where(VALUES > 0.3, 1.0, -1.0),
    "multiclass": np.digitize(VALUES, [0.0, 0.8]).astype(float),
}
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
        ("kernel", {"solver": "liblinear"}, r"one of rfx, libsvm \(method kernel\)"),
        ("block", {"solver": "libsvm"}, "--solver is 'libsvm'; it must be one of rfx, liblinear"),
        ("rf", {"pool": 50}, "--pool is 50, which has no effect without --choose"),
        ("rf", {"pool": 50, "choose": "leverage"}, "--pool is 50, which is smaller than --n-feat"),
        ("rf", {"kernel": "gaussian", "perceptron_scale": "unit"}, "does not apply to kernel gau"),
        ("rf", {"kernel": "perceptron", "features": "pairs"}, "which is for the kernels gaussian"),
        ("sparse-rf", {"features": "pairs", "n_features": 51}, "pairs needs an even number"),
        ("rf", {"loss": "hinge"}, "it must be one of squared, squared_hinge, logistic .method rf"),
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
def test_options(name, options, message):
    with pytest.raises(UsageError, match=message):
        methods.create(name, **options)


def test_an_update_knows_the_options_of_kernels_and_no_other_name():
    method = methods.create("rf", kernel="perceptron").method
    assert method.updated(perceptron_scale="unit").perceptron_scale == "unit"
    with pytest.raises(TypeError, match="method rf has no option rounds"):
        method.updated(rounds=3)


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
        (
            "block",
            "regression",
            {"block_size": 1000, "max_memory": 1},
            "which needs 2 MiB per block, more than --max-memory of 1 MiB",
        ),
        ("rf", "regression", {"kernel": "perceptron", "gamma": 1.0}, "has no gamma"),
        ("lkrf", "binary", {"offset": "mean", "loss": "logistic"}, "which is for squared loss"),
        ("rf", "binary", {"offset": "mean", "lam": 1}, "for squared loss, but --loss is squared_h"),
    ],
)
def test_options_of_a_task(name, task, options, message):
    fixed = {"kernel": "laplacian", "metric": "none", "scaling": "none"}
    with pytest.raises(UsageError, match=message):
        methods.create(name, task=task, **fixed | options).fit(X, TARGETS[task])


def test_blocks_for_liblinear_that_do_not_fit_in_memory(monkeypatch):
    monkeypatch.setattr(env, "available_memory_mb", lambda: 2.0)
    options = {"kernel": "laplacian", "gamma": 2.0, "scaling": "none", "metric": "none"}
    method = methods.create("block", solver="liblinear", block_size=400, max_memory=100, **options)
    with pytest.raises(UsageError, match="the kernel values of all blocks need 7 MiB"):
        method.fit(X, TARGETS["binary"])


@pytest.mark.parametrize(
    ("name", "options", "rows", "error", "message"),
    [
        ("sparse-rf", {"gamma": "validation"}, 2, UsageError, "needs at least 5 rows"),
        ("rb", {"grow": 0.2}, 4, UsageError, "--grow is 0.2, which needs at least 5 rows"),
        ("rf", {"task": "binary"}, 400, DataError, "the task is binary, but the targets have 3"),
        ("rf", {}, 399, DataError, "there are 399 rows and 400 targets"),
    ],
)
def test_rows(name, options, rows, error, message):
    y = TARGETS["multiclass"][: 400 if rows == 399 else rows]
    with pytest.raises(error, match=message):
        methods.create(name, **options).fit(X[:rows], y)
