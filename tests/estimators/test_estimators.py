"""One estimator of each kind passes all of scikit-learn's checks; the others, which the same base
classes derive from their options, those of its interface. Omitted checks and expected failures are
listed here with their reasons.
"""

import inspect
import os
import re
import subprocess
import sys

import pytest
import sklearn
from sklearn.utils.estimator_checks import (
    check_positive_only_tag_during_fit,
    parametrize_with_checks,
)

from rfx import estimators, methods

pytestmark = [
    pytest.mark.slow,
    # the checks set absurd options, such as one iteration, or labels of one class
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning"),
]

# Small problems with a few rows each. float64 and small tolerances, because scikit-learn compares
# results for all rows to 1e-7 with those for subsets, or for weighted rows.
SMALL = {
    "kernel": {"lam": 0.1, "tol": 1e-15},
    "rf": {"n_features": 50, "lam": 0.1},
    "sparse-rf": {"n_features": 50, "rounds": 1, "lam": 0.1, "tol": 1e-12},
    "rb": {"n_grids": 20, "lam": 0.01},
    "sparse-rb": {"n_grids": 20, "lam": 0.01},
    "nystrom": {"n_features": 30, "lam": 0.1},
    "block": {"lam": 0.1},
    "lkrf": {"n_features": 30, "pool": 100, "rho_share": 0.02, "lam": 0.1},
    "boosting": {"per_step": 1, "threshold": "surrogate", "lam": 10.0},
    "doubly-sgd": {"epochs": 5, "batch": 16, "block": 16, "nu": 1e-3, "theta": 1.0},
    "norma": {"epochs": 5, "batch": 8, "nu": 1e-3, "theta": 1.0},
    # to the optimum, which repeated rows do not move; targets whose mean is the same without the
    # weights
    "k-sdca": {"epochs": 50, "nu": 0.02, "target_scaling": "none"},
    "n-sdca": {"epochs": 50, "nu": 0.02, "target_scaling": "none", "n_features": 100},
    "r-sdca": {"epochs": 50, "nu": 0.02, "target_scaling": "none", "n_features": 50},
    "n-pegasos": {"epochs": 10, "batch": 16, "nu": 1e-2, "n_features": 30},
    "r-pegasos": {"epochs": 10, "batch": 16, "nu": 1e-2, "n_features": 50},
    "mlp": {"epochs": 10, "batch": 32, "layers": "20", "rate": 3e-2},
    # the choice of kernel, scaling and metric uses fewer rows
    "rfm": {"metric_steps": 1, "scaling": "standard"},
    "auto": {"metric_steps": 1, "scaling": "standard"},
    "local": {"metric_steps": 1, "scaling": "standard"},
}
# Pegasos' first steps, 1 / (nu t), are too long for the squared loss.
LIPSCHITZ = {"loss": "epsilon_insensitive"}
MAPS = {"n_features": 20, "n_grids": 10, "dtype": "float64"}

NOT_CHECKED = {
    "KmerFeatures": (
        "its inputs are the codes of letters; the checks give numbers that are none"
        " (test_estimators_use.py has its test)"
    ),
}
# Repeated rows give other batches in another order, whose steps end near the same minimum, but not
# exactly there. test_stream_weights.py compares steps over all rows, which are equal, and the
# optimum of dual ascent.
NEAR = {
    f"check_sample_weight_equivalence_on_{kind}_data": (
        "rows that are repeated make other steps of a stochastic gradient"
    )
    for kind in ("dense", "sparse")
}
STOCHASTIC = ("DoublySGD", "Norma", "NPegasos", "RPegasos")
CHOSEN = dict.fromkeys(
    NEAR, "options or probabilities are learnt on held-out rows, which repetitions change"
)
EXPECTED_FAILURES = {
    f"{name}{kind}": why
    for names, why in ((STOCHASTIC, NEAR), (("Auto", "RFM", "RB"), CHOSEN))
    for name in names
    for kind in ("Classifier", "Regressor")
}
# scikit-learn omits this check unless this variable was set when scipy was imported, so it needs
# its own process
ARRAY_API = "SCIPY_ARRAY_API"


def small(name):
    """An instance for problems of a few rows."""
    kind = getattr(estimators, name)
    method = getattr(getattr(kind, "method", None), "name", None)
    # a bandwidth or lambda that is learnt from the rows changes for a part of them, or for repeated
    # rows
    given = {"gamma": "paper"} | ({"dtype": "float64"} | SMALL.get(method, {}) if method else MAPS)
    if name.endswith("PegasosRegressor"):
        given = given | LIPSCHITZ
    known = inspect.signature(kind).parameters
    # probabilities of this loss, because a repeated row is not left out alone
    if name in ("RFClassifier", "KernelClassifier"):
        given = given | {"loss": "logistic"}
    return kind(**{option: value for option, value in given.items() if option in known})


# One of each base class, solver and feature map that differ in what they do with rows.
REPRESENTATIVES = {
    "AdditiveChi2Features",
    "DoublySGDClassifier",
    "FourierFeatures",
    "KSDCARegressor",
    "KernelClassifier",
    "LearnedMetric",
    "MLPClassifier",
    "NPegasosRegressor",
    "RBClassifier",
    "RFClassifier",
    "RandomBinning",
    "SparseRFRegressor",
}
# With this variable set, every estimator passes all checks with its defaults, which takes an hour.
# A default may choose options by the rows, so that repeated rows have others.
DEFAULTS = os.environ.get("RFX_CHECK_DEFAULTS")
CHECKED = [
    getattr(estimators, name)() if DEFAULTS else small(name)
    for name in estimators.names()
    if name not in NOT_CHECKED
]


def expected_failures(estimator):
    if DEFAULTS and hasattr(estimator, "method"):
        return CHOSEN
    return EXPECTED_FAILURES.get(type(estimator).__name__, {})


FULL = [e for e in CHECKED if DEFAULTS or type(e).__name__ in REPRESENTATIVES]


@parametrize_with_checks(FULL, expected_failed_checks=expected_failures)
def test_scikit_learn_check(estimator, check):
    check(estimator)


@parametrize_with_checks(
    [e for e in CHECKED if e not in FULL], legacy=False, expected_failed_checks=expected_failures
)
def test_scikit_learn_interface(estimator, check):
    check(estimator)


@pytest.mark.parametrize("name", ["AdditiveChi2Features", "SkewedChi2Features"])
def test_negative_inputs_that_are_scaled_to_positive_ones(name):
    estimator = getattr(estimators, name)(scaling="minmax01")
    check_positive_only_tag_during_fit(name, estimator)


@pytest.mark.skipif(
    [int(part) for part in sklearn.__version__.split(".")[:2]] < [1, 9],
    reason="before 1.9 scikit-learn asks it of those with array API support only",
)
def test_the_check_of_array_interfaces():
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-o",
        "addopts=",
        "-p",
        "no:cacheprovider",
        __file__,
        "-k",
        "test_scikit_learn_check and array_api",
    ]
    done = subprocess.run(
        command, env=os.environ | {ARRAY_API: "1"}, capture_output=True, text=True
    )
    counts = dict(
        (word, int(count))
        for count, word in re.findall(r"(\d+) (passed|failed|skipped)", done.stdout)
    )
    assert done.returncode == 0 and counts == {"passed": len(FULL)}, done.stdout


def test_every_method_has_its_estimators():
    made = {
        getattr(getattr(getattr(estimators, name), "method", None), "name", None)
        for name in estimators.names()
    }
    assert set(methods.names()) <= made
    assert len(CHECKED) + len(NOT_CHECKED) == len(estimators.names())
