"""Options chosen on training rows: the chosen value has the smallest error among models that the
test fits to the rows that were not held out. The search itself is tested on cheap functions.
"""

import itertools
import math
import time
from types import SimpleNamespace

import numpy as np
import pytest

from rfx import methods
from rfx.errors import DataError, UsageError
from rfx.fitting.choice_trace import ChoiceTrace
from rfx.fitting.held_out import Splitter
from rfx.fitting.metric_learning import best_lam
from rfx.fitting.options import GAMMA_FACTORS, L1_SHARES
from rfx.fitting.problem import Problem
from rfx.fitting.selection import (
    FURTHER_GAIN,
    WAIT,
    Criterion,
    Point,
    Search,
    SearchBudget,
    SearchGrid,
    SearchRound,
    Size,
    Trial,
    edges,
)
from rfx.kernels import parameters

TASKS = ("regression", "binary", "multiclass")
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


@pytest.fixture(scope="module")
def data():
    """Rows (300, 4) of numbers that float32 has, and noisy targets of each task."""
    rng = np.random.default_rng(3)
    X = rng.uniform(-1, 1, (300, 4)).astype(np.float32).astype(float)
    smooth = np.sin(3 * X[:, 0]) + X[:, 1] * X[:, 2]
    targets = {
        "regression": smooth + 0.2 * rng.standard_normal(300),
        "binary": np.where(smooth + 0.5 * rng.standard_normal(300) > 0, 1.0, -1.0),
        "multiclass": np.digitize(smooth + 0.3 * rng.standard_normal(300), [-0.5, 0.5]) * 1.0,
    }
    return SimpleNamespace(X=X, targets=targets)


@pytest.fixture(autouse=True)
def one_part(fewest_evaluated):
    """A fifth of the rows is held out, as for larger sets."""
    fewest_evaluated(0)


def by_hand(data, name, task, gammas, lams, **options):
    """The held-out error of each combination, by separate models."""
    y, found = data.targets[task], {}
    kept, out = Splitter(300, 0).part(0.2, "")
    for gamma, lam in itertools.product(gammas, lams):
        own = {"scaling": "none", "gamma": gamma, "lam": 0.8 * lam} | options
        model = methods.create(name, task=task, **own).fit(data.X[kept], y[kept])
        score = model.score(data.X[out], y[out]).score
        found[gamma, lam] = score**2 if task == "regression" else 1 - score
    return found


def has_whole_path(tried, gamma, lams):
    """Whether every lambda was tried for a gamma, or the smaller ones only where the error rose."""
    path = [(lam, error) for value, lam, error in tried if value == gamma and lam in lams]
    assert [lam for lam, _ in path] == list(lams[: len(path)])
    errors = [error for _, error in path]
    return len(path) == len(lams) or min(errors[-WAIT:]) > min(errors)


@pytest.mark.parametrize(
    "name, task",
    [(name, task) for name in OWN for task in TASKS if task in TASKS[:2] or name in ("rf", "rb")],
)
def test_gamma_and_lambda_are_those_of_the_least_held_out_error(name, task, data):
    X, y = data.X, data.targets[task]
    asked = {"gamma": "validation", "lam": "validation"}
    method = methods.create(name, task=task, **asked, **FIXED, **OWN[name]).fit(X, y)
    (step,) = method.info["validation"]
    assert (step["by"], step["options"]) == (name, ["gamma", "lam"])
    assert (step["fitted"], step["held_out"]) == (240, 60)
    median = parameters(method.method.kernel, X, "median")["gamma"]
    gammas = [factor * median for factor in GAMMA_FACTORS]
    lams = method.method.candidates("lam", Problem(X, y[:, None], method.loss, task))
    assert all(has_whole_path(step["tried"], gamma, lams) for gamma in gammas)
    assert step["chosen"] == [method.info["kernel_params"]["gamma"], method.info["lam"]]
    errors = {(gamma, lam): error for gamma, lam, error in step["tried"]}
    # beyond the grid, a value that is better by less than FURTHER_GAIN is not taken
    assert (1 - FURTHER_GAIN) * errors[tuple(step["chosen"])] <= min(errors.values())
    assert edges(ChoiceTrace.of_dict(step)) == []
    # some are computed again; solvers stop at their tolerance, so a row on the boundary may
    # fall on either side
    one_row = 0 if task == "regression" else 1.01 / 60
    expected = by_hand(data, name, task, gammas[1:3], lams[2:4], **OWN[name])
    for place in expected.keys() & errors.keys():
        assert errors[place] == pytest.approx(expected[place], rel=0.03, abs=one_row)
    # equals a model that was given these numbers
    given = dict(zip(("gamma", "lam"), step["chosen"]))
    alone = methods.create(name, task=task, scaling="none", **given, **OWN[name]).fit(X, y)
    np.testing.assert_array_equal(alone.decision_function(X), method.decision_function(X))


def test_tuned_is_the_same_for_every_method_and_leaves_its_scores(data):
    chosen = {}
    for name in ("rf", "kernel", "nystrom", "block"):
        method = methods.create(name, gamma="tuned", lam=0.5, **FIXED, **OWN[name]).fit(
            data.X, data.targets["regression"]
        )
        (step,) = method.info["validation"]
        assert step["by"] == "ridge on random features"
        assert len(step["tried"]) >= 4 and edges(ChoiceTrace.of_dict(step)) == []
        assert step["fitted"] == step["held_out"] == 150
        chosen[name] = (method.info["kernel_params"]["gamma"], *step["chosen"])
    assert len(set(chosen.values())) == 1 and len(set(chosen["rf"])) == 1
    both = methods.create("rf", gamma="tuned", lam="validation", **FIXED, **OWN["rf"]).fit(
        data.X, data.targets["regression"]
    )
    assert [step["options"] for step in both.info["validation"]] == [["gamma", "lam"], ["lam"]]


def test_rf_and_sparse_rf_tune_one_bandwidth(data):
    """sparse-rf tuned its bandwidth at lambda 1 alone, rf at the best of several."""
    tuned = {"gamma": "tuned", "lam": "validation", **FIXED}
    chosen = [
        methods.create(name, **tuned, **OWN[name]).fit(data.X, data.targets["regression"]).info
        for name in ("rf", "sparse-rf")
    ]
    gammas = [info["kernel_params"]["gamma"] for info in chosen]
    assert gammas[0] == gammas[1]
    assert [step["options"] for step in chosen[1]["validation"]] == [["gamma", "lam"], ["lam"]]


def test_a_kernel_without_gamma_has_none_to_choose(data):
    method = methods.create(
        "rf", kernel="perceptron", gamma="validation", lam="validation", n_features=80
    ).fit(data.X, data.targets["regression"])
    assert [step["options"] for step in method.info["validation"]] == [["lam"]]


def test_more_grids_than_those_tried_choose_as_these(data):
    few, many = (
        methods.create("rb", gamma="validation", lam="validation", n_grids=count).fit(
            data.X, data.targets["regression"]
        )
        for count in (128, 200)
    )
    assert few.info["validation"] == many.info["validation"] and many.info["n_grids"] == 200


def test_too_few_rows(caplog, data):
    few = methods.create("rf", lam="validation").fit(data.X[:4], data.targets["regression"][:4])
    assert (
        few.info["lam"] == 1.0
        and "too few rows for validation" in caplog.text
        and "validation" not in few.info
    )


def test_few_rows_are_judged_part_by_part_and_many_by_one_part():
    for count, parts in ((300, 5), (2499, 5), (2500, 1)):
        found = Splitter(count, 3).parts(0.2, 500, "")
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


def test_the_error_of_several_parts_is_that_of_all_their_rows(fewest_evaluated, data):
    X = data.X
    fewest_evaluated(500)
    y, options = data.targets["regression"], {"scaling": "none", "gamma": 0.5, "loss": "squared"}
    (step,) = methods.create("kernel", lam="validation", **options).fit(X, y).info["validation"]
    assert (step["fitted"], step["held_out"]) == (240, 300)
    for lam, error in step["tried"][:3]:
        total = 0.0
        for kept, out in Splitter(300, 0).parts(0.2, 500, ""):
            model = methods.create("kernel", lam=0.8 * lam, **options).fit(X[kept], y[kept])
            total += np.sum((model.predict(X[out]) - y[out]) ** 2)
        assert error == pytest.approx(total / 300, rel=1e-3)


@pytest.mark.parametrize("judges", [0, 500])
@pytest.mark.parametrize(
    "task, gamma, rises",
    [("binary", 0.3, False), ("multiclass", 0.3, False), ("binary", 10.0, True)],
)
def test_match_rf_ends_where_the_error_meets_rf_or_rises(
    judges, task, gamma, rises, monkeypatch, fewest_evaluated, data
):
    fewest_evaluated(judges)
    if rises:
        # no error is this small
        monkeypatch.setattr("rfx.methods.rf.SparseRF.target_error", lambda *args: -1.0)
    options = {"gamma": gamma, "scaling": "none", "n_features": 200, "loss": "squared"}
    made = methods.create("sparse-rf", task=task, lam="match-rf", rounds=2, **options)
    [step] = made.fit(data.X, data.targets[task]).info["validation"]
    errors, target = [error for _, error in step["tried"]], step["target"]
    gaps = np.abs(np.array(errors) - target)
    assert step["chosen"] == [step["tried"][int(np.argmin(gaps))][0]]
    if judges:
        # five folds; a single fold does not decide
        assert len(errors) == 4 and step["held_out"] == len(data.X)
        return
    assert len(errors) < 4
    assert all(after <= before for before, after in zip(errors, errors[1:-1]))
    if rises:
        assert errors[-1] > errors[-2]
    else:
        assert errors[-1] <= target < min(errors[:-1])
        rf = by_hand(data, "rf", task, [gamma], [1.0], n_features=200, loss="squared")
        assert [target] == pytest.approx([*rf.values()])


def test_the_lambdas_of_l1_go_with_the_range_of_a_regression_s_targets(data):
    y, options = data.targets["regression"], {"n_features": 60, "rounds": 2, "gamma": 0.5}
    chosen = [
        methods.create("sparse-rf", **options).fit(data.X, scale * y).info["lam"]
        for scale in (1.0, 1000.0)
    ]
    assert chosen[1] == pytest.approx(1000 * chosen[0])
    (step,) = methods.create("sparse-rf", **options).fit(data.X, y).info["validation"]
    shares = [tried[0] / np.ptp(y) for tried in step["tried"]]
    assert shares == pytest.approx(L1_SHARES[: len(shares)])


@pytest.mark.slow
@pytest.mark.parametrize("name", ["rf", "sparse-rf", "rb", "sparse-rb"])
def test_liblinear_is_given_the_lambda_that_rfx_would_choose(name):
    X = np.random.default_rng(0).uniform(-1, 1, (60, 3))
    options = {"task": "binary", "lam": "validation", "gamma": 1.0}
    options |= {"n_grids": 10} if name.endswith("b") else {"n_features": 20}
    options |= {"rounds": 1} if name == "sparse-rf" else {}
    ours, theirs = (
        methods.create(name, solver=solver, **options).fit(X, np.sign(X[:, 0])).info
        for solver in ("rfx", "liblinear")
    )
    assert ours["validation"] == theirs["validation"]
    assert ours["lam"] == theirs["lam"]
    assert theirs["solver"] == "liblinear"


ERROR = Criterion("error")


def points(*values, method="m"):
    return [Point(method, {"gamma": value}) for value in values]


def grid(found, lams=(1.0,), rounds=(SearchRound(100),), **more):
    return SearchGrid(found, {point.method: lams for point in found}, rounds, **more)


def bowl(centre):
    """An error that is smallest where gamma is `centre`, for every lambda."""
    return lambda point, round, lams: [abs(math.log(point["gamma"] / centre)) + 1 for _ in lams]


def search(*given, **more):
    return Search(*given, **more).run()


@pytest.mark.parametrize(
    "measure, expected",
    [
        (ERROR, (2, "b")),
        (Criterion("score", larger=True), (1, "a")),
        (Criterion("error", target=0.6), (1, "b")),
    ],
)
def test_the_first_of_the_best_is_taken_and_never_one_that_is_not_finite(measure, expected):
    values = {1: [0.9, 0.6], 2: [0.9, 0.1], 3: [math.nan, 0.1], 4: [math.inf, -math.inf]}
    found = search(
        lambda point, round, lams: values[point["gamma"]], grid(points(1, 2, 3, 4), "ab"), measure
    )
    assert (found.best.point["gamma"], found.best.lam) == expected and len(found.trials) == 4
    step = found.trace(True, 50)
    assert step.chosen == list(expected) and step.options == ["gamma", "lam"]
    assert step.tried[:3] == [[1, "a", 0.9], [1, "b", 0.6], [2, "a", 0.9]]
    assert (step.by, step.fitted, step.held_out, step.error) == (
        "m",
        100,
        50,
        measure.name,
    )


def test_points_far_above_the_lowest_error_do_not_go_on():
    rounds, errors = [SearchRound(10, 1, 0, 3, 0.5), SearchRound(100)], {1: 0.31, 2: 0.2, 3: 0.29}
    asked = grid(points(*errors), rounds=rounds)
    found = search(lambda point, round, lams: [errors[point["gamma"]]], asked, ERROR)
    assert [one.point["gamma"] for one in found.trials if one.round.rows == 100] == [2, 3]


def test_the_best_points_go_on_and_then_bandwidth_and_size_are_moved_from_the_best():
    def fit(point, round, lams):
        return [bowl(6.0)(point, round, lams)[0] + 1 / point["size"]]

    rounds = [SearchRound(10, 1, 0, 2), SearchRound(100, 3, 1)]
    asked = grid(
        points(1.0, 4.0, 16.0),
        (1.0,),
        rounds,
        sizes={"m": Size("size", (1, 2), 16)},
        halved="gamma",
    )
    found = search(fit, asked, ERROR)
    tried = [(one.round.number, one.point["gamma"], one.point["size"]) for one in found.trials]
    assert tried[:5] == [(0, 1.0, 1), (0, 4.0, 1), (0, 16.0, 1), (1, 4.0, 2), (1, 16.0, 2)]
    # half and twice, then the size up to its bound, then around the best at that size
    assert tried[5:] == [
        (1, 2.0, 2),
        (1, 8.0, 2),
        (1, 8.0, 4),
        (1, 8.0, 8),
        (1, 8.0, 16),
        (1, 4.0, 16),
        (1, 16.0, 16),
    ]
    assert found.best.point == Point("m", {"gamma": 8.0, "size": 16})


def test_a_path_starts_a_little_above_the_best_and_is_made_whole_where_that_is_at_its_end():
    asked, lams = [], (5.0, 4.0, 3.0, 2.0, 1.0)
    best = {1: 1.0, 2: 2.0, 3: 5.0}

    def fit(point, round, own):
        asked.append(tuple(own))
        return [abs(lam - best[point["gamma"]]) for lam in own]

    found = search(fit, grid(points(1, 2, 3), lams, above=2), ERROR)
    assert asked == [lams, lams[2:], lams[1:], lams]
    assert [one.lam for one in found.trials] == [1.0, 2.0, 5.0]


def test_trials_and_seconds_are_bounded_and_what_is_known_costs_nothing():
    there = Trial(points(2)[0], SearchRound(100), ((1.0, 0.5),), 1.0, 0.5, 0.0)
    known = lambda point, round: there if point == there.point else None
    told, asked = [], grid(points(1, 2, 3))
    seen = lambda trial, known: told.append(known)
    found = search(bowl(1.0), asked, ERROR, SearchBudget(trials=1), known, seen)
    assert [one.point["gamma"] for one in found.trials] == [1, 2]
    assert found.best is there
    assert told == [False, True]
    with pytest.raises(UsageError, match="no combination"):
        search(bowl(1.0), grid(points(1)), ERROR, SearchBudget(trials=0))


def test_a_point_that_can_t_be_fitted_is_an_error_or_left_out():
    def fit(point, round, lams):
        if point["gamma"] == 2:
            raise DataError("two")
        return [1.0]

    assert len(search(fit, grid(points(1, 2), lenient=True), ERROR).trials) == 1
    assert (
        len(search(fit, grid(points(2) + points(1, method="n"), lenient=True), ERROR).trials) == 1
    )
    both = grid(points(2) + points(2, method="n"), lenient=True)
    for asked in (grid(points(1, 2)), grid(points(2, 1), lenient=True), both):
        with pytest.raises(DataError, match="two"):
            search(fit, asked, ERROR)


def test_a_budget_of_work_does_not_depend_on_time_and_says_what_it_left_out():
    def slow(seconds):
        return lambda point, round, lams: [time.sleep(seconds) or 1.0 for _ in lams]

    asked = grid(points(1, 2, 3, 4))
    work = 2.5 * asked.work(asked.points[0], SearchRound(100))
    for seconds in (0.0, 0.05):
        found = search(slow(seconds), asked, ERROR, SearchBudget(work=work))
        assert [one.point["gamma"] for one in found.trials] == [1, 2]
        assert found.cut["work"] == 2
        assert "2 trials" in found.limits[0]


@pytest.mark.parametrize("together", [False, True])
def test_a_search_that_time_stopped_says_so(together):
    late = SearchBudget(time.monotonic() - 1)
    found = search(bowl(1.0), grid(points(1, 2, 3)), ERROR, late, together=together)
    # the first is tried whatever it costs
    assert len(found.trials) == 1
    assert "another run may differ" in found.limits[0]
    assert "2 trials" in found.limits[0]


@pytest.fixture
def waves():
    """A sine of five periods, with noise."""
    X = np.linspace(0, 1, 200)[:, None]
    values = np.sin(10 * np.pi * X[:, 0]) + 0.05 * np.random.default_rng(0).normal(size=200)
    return SimpleNamespace(X=X, values=values)


@pytest.mark.parametrize("name", ["kernel", "rfm", "nystrom"])
def test_bandwidths_beyond_the_grid_are_tried_while_the_error_falls(name, waves):
    """The grid ended at 4 times the median's gamma: rmse .43 for a deviation of .7."""
    trainer = methods.create(name, kernel="gaussian", task="regression")
    trained = trainer.fit(waves.X[::2], waves.values[::2])
    error = np.sqrt(np.mean((trained.predict(waves.X[1::2]) - waves.values[1::2]) ** 2))
    assert error < 0.1


def valley(point, round, lams):
    """An error that is smallest at gamma 64 and lambda 1e-4."""
    across = math.log(point["gamma"] / 64) ** 2
    return [across + math.log(lam / 1e-4) ** 2 + 1 for lam in lams]


def test_a_grid_is_continued_beyond_an_end_while_the_error_falls():
    asked = grid(points(1.0, 4.0), (1.0, 0.1, 0.01), continued=("gamma", "lam"))
    found = search(valley, asked, ERROR)
    assert (found.best.point["gamma"], found.best.lam) == pytest.approx((64, 1e-4))
    step = found.trace(True, 50)
    assert edges(step) == []
    assert max(one[0] for one in step.tried) == pytest.approx(256)
    assert min(one[1] for one in step.tried) == pytest.approx(1e-5)
    # without leave it ends at the edges
    ended = search(valley, grid(points(1.0, 4.0), (1.0, 0.1, 0.01)), ERROR).best
    assert (ended.point["gamma"], ended.lam) == (4.0, 0.01)


def test_a_value_beyond_the_grid_is_not_taken_for_a_tiny_gain():
    flat = lambda point, round, lams: [1 + 1e-4 * lam for lam in lams]
    found = search(flat, grid(points(1.0), (1.0, 0.1), continued=("lam",)), ERROR)
    assert found.best.lam == 0.1
    assert [lam for trial in found.trials for lam, _ in trial.path] == pytest.approx([1, 0.1, 0.01])


def test_a_path_of_lambdas_passes_a_constant():
    """The largest lambda leaves a constant, and the next ones may be worse."""
    X = np.linspace(0, 1, 200)[:, None]
    y = np.sin(40 * np.pi * X[:, 0])
    options = {"kernel": "gaussian", "gamma": 300.0, "lam": "validation", "scaling": "none"}
    trained = methods.create("kernel", task="regression", metric="none", **options).fit(X, y)
    (step,) = trained.outcome.validation
    tried = dict(map(tuple, step.tried))
    assert len(tried) > 3
    assert (1 - FURTHER_GAIN) * tried[trained.outcome.lam] <= min(tried.values())


def test_a_lambda_beside_a_constant_is_compared_with_all():
    errors = {10.0: 0.5, 1.0: 0.499, 0.1: 0.51, 0.01: 0.3, 0.001: 0.2}
    assert best_lam(tuple(errors), 1.0, errors.__getitem__) == (0.001, 0.2)


@pytest.mark.parametrize("chosen, which", [(0.1, "smallest"), (10.0, "largest"), (1.0, None)])
def test_values_at_the_edge_are_named(chosen, which):
    tried = [[0.1, 1.0], [1.0, 1.0], [10.0, 1.0]]
    step = ChoiceTrace("kernel", ["lam"], 60, 30, "mean squared error", tried, [chosen])
    assert [words.split()[4] for words in edges(step)] == ([] if which is None else [which])


def test_bandwidths_are_not_followed_for_little():
    """The error of polynomial-3 fell by less than a hundredth with each doubling up to 24,000."""
    rows = np.random.default_rng(0).normal(size=(160, 2))
    y = np.sin(rows[:, 0]) + 0.2 * rows[:, 1]
    options = {"kernel": "polynomial-3", "scaling": "minmax11", "metric": "none", "lam": 0.1}
    (step,) = methods.create("kernel", task="regression", **options).fit(rows, y).outcome.validation
    gammas = {gamma for gamma, *_ in step.tried}
    assert max(gammas) < 1e3 * min(gammas)
