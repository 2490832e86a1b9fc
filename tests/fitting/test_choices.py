"""Options chosen on training rows: the chosen value has the smallest error among models that the
test fits to the rows that were not held out.
"""

import numpy as np
import pytest

from rfx import methods
from rfx.errors import UsageError
from rfx.fitting.held_out import HeldOut
from rfx.fitting.options import GAMMA_FACTORS, L1_SHARES
from rfx.fitting.problem import Problem
from rfx.fitting.selection import WAIT
from rfx.kernels import parameters

RNG = np.random.default_rng(3)
X = RNG.uniform(-1, 1, (300, 4)).astype(np.float32).astype(float)
SMOOTH = np.sin(3 * X[:, 0]) + X[:, 1] * X[:, 2]
TARGETS = {
    "regression": SMOOTH + 0.2 * RNG.standard_normal(300),
    "binary": np.where(SMOOTH + 0.5 * RNG.standard_normal(300) > 0, 1.0, -1.0),
    "multiclass": np.digitize(SMOOTH + 0.3 * RNG.standard_normal(300), [-0.5, 0.5]).astype(float),
}
# Inputs for which nothing is chosen.
FIXED = {"scaling": "none", "metric": "none"}
OWN = {
    "rf": {"kernel": "gaussian", "n_features": 150},
    "sparse-rf": {"kernel": "gaussian", "n_features": 60, "rounds": 2},
    "kernel": {"kernel": "gaussian"},
    "nystrom": {"kernel": "gaussian", "n_features": 50},
    "block": {"kernel": "gaussian", "block_size": 80},
    "rb": {"kernel": "laplacian", "n_grids": 40},
    "sparse-rb": {"kernel": "laplacian", "n_grids": 20},
}


@pytest.fixture(autouse=True)
def one_part(fewest_evaluated):
    """A fifth of the rows is held out, as for larger sets."""
    fewest_evaluated(0)


def by_hand(name, task, gammas, lams, **options):
    """The held-out error of each combination, by separate models."""
    y = TARGETS[task]
    kept, out = HeldOut(300, 0).part(0.2, "")
    found = {}
    for gamma in gammas:
        for lam in lams:
            model = methods.create(
                name, task=task, scaling="none", gamma=gamma, lam=0.8 * lam, **options
            ).fit(X[kept], y[kept])
            score = model.score(X[out], y[out])["score"]
            found[gamma, lam] = score**2 if task == "regression" else 1 - score
    return found


@pytest.mark.parametrize("name", list(OWN))
def test_gamma_and_lambda_are_those_of_the_least_held_out_error(name):
    for task in TARGETS if name in ("rf", "rb") else ("regression", "binary"):
        method = methods.create(
            name, task=task, gamma="validation", lam="validation", **FIXED, **OWN[name]
        ).fit(X, TARGETS[task])
        (step,) = method.info["validation"]
        kernel = method.method.kernel
        gammas = [factor * parameters(kernel, X, "median")["gamma"] for factor in GAMMA_FACTORS]
        problem = Problem(X, TARGETS[task][:, None], method.loss, task)
        lams = method.method.candidates("lam", problem)
        assert (step["by"], step["options"], step["fitted"], step["held_out"]) == (
            name,
            ["gamma", "lam"],
            240,
            60,
        )
        for gamma in gammas:
            path = [one[1:] for one in step["tried"] if one[0] == gamma]
            assert [lam for lam, _ in path] == list(lams[: len(path)])
            errors = [error for _, error in path]
            assert len(path) == len(lams) or min(errors[-WAIT:]) > min(errors), (
                "smaller lambdas are left out where they only got worse"
            )
        best = min(step["tried"], key=lambda one: one[2])
        assert (
            step["chosen"]
            == best[:2]
            == [method.info["kernel_params"]["gamma"], method.info["lam"]]
        )
        # some are computed again; solvers stop at their tolerance, so a row on the boundary may
        # fall on either side
        expected = by_hand(name, task, gammas[1:3], lams[2:4], **OWN[name])
        found = {tuple(one[:2]): one[2] for one in step["tried"]}
        for place, error in expected.items():
            assert place not in found or found[place] == pytest.approx(
                error, rel=0.03, abs=0 if task == "regression" else 1.01 / 60
            )
        # equals a model that was given these numbers
        given = dict(zip(("gamma", "lam"), step["chosen"]))
        alone = methods.create(name, task=task, scaling="none", **given, **OWN[name]).fit(
            X, TARGETS[task]
        )
        np.testing.assert_array_equal(alone.decision_function(X), method.decision_function(X))


def test_tuned_is_the_same_for_every_method_and_leaves_its_scores():
    chosen = {}
    for name in ("rf", "kernel", "nystrom", "block"):
        method = methods.create(name, gamma="tuned", lam=0.5, **FIXED, **OWN[name]).fit(
            X, TARGETS["regression"]
        )
        (step,) = method.info["validation"]
        assert (
            step["by"] == "ridge on random features"
            and len(step["tried"]) == 4
            and step["fitted"] == step["held_out"] == 150
        )
        chosen[name] = (method.info["kernel_params"]["gamma"], *step["chosen"])
    assert len(set(chosen.values())) == 1 and len(set(chosen["rf"])) == 1
    both = methods.create("rf", gamma="tuned", lam="validation", **FIXED, **OWN["rf"]).fit(
        X, TARGETS["regression"]
    )
    assert [step["options"] for step in both.info["validation"]] == [["gamma", "lam"], ["lam"]]


def test_a_kernel_without_gamma_has_none_to_choose():
    method = methods.create(
        "rf", kernel="perceptron", gamma="validation", lam="validation", n_features=80
    ).fit(X, TARGETS["regression"])
    assert [step["options"] for step in method.info["validation"]] == [["lam"]]


def test_more_grids_than_those_tried_choose_as_these():
    few, many = (
        methods.create("rb", gamma="validation", lam="validation", n_grids=count).fit(
            X, TARGETS["regression"]
        )
        for count in (128, 200)
    )
    assert few.info["validation"] == many.info["validation"] and many.info["n_grids"] == 200


def test_too_few_rows(caplog):
    with pytest.raises(
        UsageError, match="--gamma is 'validation', which needs at least 5 rows, but there are 4"
    ):
        methods.create("rf", gamma="validation", lam="validation").fit(
            X[:4], TARGETS["regression"][:4]
        )
    few = methods.create("rf", lam="validation").fit(X[:4], TARGETS["regression"][:4])
    assert (
        few.info["lam"] == 1.0
        and "too few rows for validation" in caplog.text
        and "validation" not in few.info
    )


def test_few_rows_are_judged_part_by_part_and_many_by_one_part():
    for count, parts in ((300, 5), (2499, 5), (2500, 1)):
        found = HeldOut(count, 3).parts(0.2, 500, "")
        assert len(found) == parts and all(
            len(out) in (count // 5, count // 5 + 1) for _, out in found
        )
        assert all(
            np.array_equal(np.sort(np.concatenate(part)), np.arange(count)) for part in found
        )
        if parts == 5:
            assert np.array_equal(
                np.sort(np.concatenate([out for _, out in found])), np.arange(count)
            )


def test_the_error_of_several_parts_is_that_of_all_their_rows(fewest_evaluated):
    fewest_evaluated(500)
    y, options = TARGETS["regression"], {"scaling": "none", "gamma": 0.5, "loss": "squared"}
    (step,) = methods.create("kernel", lam="validation", **options).fit(X, y).info["validation"]
    assert (step["fitted"], step["held_out"]) == (240, 300)
    for lam, error in step["tried"][:3]:
        total = 0.0
        for kept, out in HeldOut(300, 0).parts(0.2, 500, ""):
            model = methods.create("kernel", lam=0.8 * lam, **options).fit(X[kept], y[kept])
            total += np.sum((model.predict(X[out]) - y[out]) ** 2)
        assert error == pytest.approx(total / 300, rel=1e-3)


@pytest.mark.parametrize("judges", [0, 500])
def test_match_rf_ends_where_the_error_meets_rf_or_rises(judges, monkeypatch, fewest_evaluated):
    fewest_evaluated(judges)
    for task, gamma, rises in (
        ("binary", 0.3, False),
        ("multiclass", 0.3, False),
        ("binary", 10.0, True),
    ):
        if rises:
            # no error is this small
            monkeypatch.setattr("rfx.methods.rf.SparseRF.target_error", lambda *args: -1.0)
        made = methods.create(
            "sparse-rf",
            task=task,
            gamma=gamma,
            lam="match-rf",
            scaling="none",
            n_features=200,
            rounds=2,
            loss="squared",
        )
        [step] = made.fit(X, TARGETS[task]).info["validation"]
        errors, target = [error for _, error in step["tried"]], step["target"]
        if judges:
            # five folds; a single fold does not decide
            assert len(errors) == 4 and step["held_out"] == len(X)
        else:
            assert len(errors) < 4 and all(
                after <= before for before, after in zip(errors, errors[1:-1])
            )
            assert errors[-1] > errors[-2] if rises else errors[-1] <= target < min(errors[:-1])
        gaps = np.abs(np.array(errors) - target)
        assert step["chosen"] == [step["tried"][int(np.argmin(gaps))][0]]


def test_the_lambdas_of_l1_go_with_the_range_of_a_regression_s_targets():
    y, options = TARGETS["regression"], {"n_features": 60, "rounds": 2, "gamma": 0.5}
    chosen = [
        methods.create("sparse-rf", **options).fit(X, scale * y).info["lam"]
        for scale in (1.0, 1000.0)
    ]
    assert chosen[1] == pytest.approx(1000 * chosen[0])
    shares = [
        tried[0] / np.ptp(y)
        for tried in methods.create("sparse-rf", **options).fit(X, y).info["validation"][0]["tried"]
    ]
    assert shares == pytest.approx(L1_SHARES[: len(shares)])


@pytest.mark.parametrize("name", ["rf", "sparse-rf", "rb", "sparse-rb"])
def test_liblinear_is_given_the_lambda_that_rfx_would_choose(name):
    X = np.random.default_rng(0).uniform(-1, 1, (60, 3))
    options = {
        "task": "binary",
        "lam": "validation",
        "gamma": 1.0,
        **({"n_grids": 10} if name.endswith("b") else {"n_features": 30}),
    }
    y = np.sign(X[:, 0])
    both = [
        methods.create(name, solver=solver, **options).fit(X, y) for solver in ("rfx", "liblinear")
    ]
    assert (
        both[0].info["validation"] == both[1].info["validation"]
        and both[0].info["lam"] == both[1].info["lam"]
    )
    assert both[1].info["solver"] == "liblinear"
