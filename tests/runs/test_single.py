"""One experiment in this process: the content of its row, apart from what the tests of the methods
check.
"""

from dataclasses import replace

import numpy as np
import pytest

from rfx import methods
from rfx.data import libsvm
from rfx.data.reading import Reading
from rfx.fitting.held_out import Splitter
from rfx.records import results
from rfx.records.run import Run
from rfx.runs import single
from rfx.runs.evaluation import evaluate


def a_run(dataset, **more):
    return Run(
        **{"dataset": dataset, "method": "rb", "options": {"n_grids": 16, "gamma": 1.0}} | more
    )


@pytest.mark.parametrize("scaling", ["none", "minmax01"])
def test_relative_error_is_in_the_target_s_own_units(scaling):
    run = a_run(
        "diabetes-sklearn",
        options={"n_grids": 16, "gamma": 1.0, "target_scaling": scaling, "lam": 1.0},
    )
    row = single.execute(run)
    trained = single.train(run)
    method, table = trained.model, trained.table
    expected = np.linalg.norm(method.predict(table.X_test) - table.y_test) / np.linalg.norm(
        table.y_test
    )
    assert row["metric"] == "rmse" and row["params"]["relative_error"] == pytest.approx(
        expected, rel=1e-12
    )
    assert evaluate(method, table.X_test, np.zeros(len(table.y_test))).relative_error is None


def test_training_rows_are_scored_on_request_only():
    plain, both = (
        single.execute(a_run("diabetes-sklearn")),
        single.execute(a_run("diabetes-sklearn", train_score=True)),
    )
    assert not any(name.startswith("train_") for name in plain["params"])
    assert (plain["score"], plain["objective"]) == (both["score"], both["objective"]) and plain[
        "key"
    ] != both["key"]
    trained = single.train(a_run("diabetes-sklearn"))
    y = trained.table.y_train
    error = trained.model.predict(trained.table.X_train) - y
    assert both["params"]["train_score"] == pytest.approx(np.sqrt(np.mean(error**2)), rel=1e-12)
    relative = np.linalg.norm(error) / np.linalg.norm(y)
    assert both["params"]["train_relative_error"] == pytest.approx(relative, rel=1e-12)
    assert both["params"]["train_relative_error"] < both["params"]["relative_error"]


@pytest.mark.slow
def test_fits_are_timed_again_without_the_choice_of_options_on_request():
    options = {"n_grids": 16, "gamma": "validation", "lam": "validation"}
    plain, timed = (
        single.execute(a_run("diabetes-sklearn", options=options, timings=times))
        for times in (None, 3)
    )
    assert (plain["key"], plain["objective"]) == (timed["key"], timed["objective"])
    new = timed["params"].keys() - plain["params"].keys()
    assert new == {"least_seconds_cpu", "least_seconds_cpu_predict", "fit_rss_mb"}
    assert all(timed["params"][name] > 0 for name in new)


def test_the_absolute_error_of_held_out_rows_is_in_the_target_s_own_units():
    options = {"gamma": 1.0, "target_scaling": "minmax01", "batch": 32, "block": 32, "epochs": 3}
    run = a_run("diabetes-sklearn", method="doubly-sgd", holdout=0.2, options=options)
    row = single.execute(run)
    table = single.load(run)
    ((kept, out),) = Splitter(len(table.y_train), 0).folds(None, None, 0.2)
    own = methods.create("doubly-sgd", seed=0, task="regression", **options).fit(
        table.X_train[kept], table.y_train[kept]
    )
    expected = np.mean(np.abs(own.predict(table.X_train[out]) - table.y_train[out]))
    assert row["params"]["held_out_mae"] == pytest.approx(expected, rel=1e-9) and expected > 20
    assert row["params"]["mae"] != row["params"]["held_out_mae"]


def test_a_row_of_classes_has_their_number_and_fits_the_results_file(tmp_path):
    row = single.execute(a_run("digits", train_score=True))
    assert (
        row["params"]["n_classes"] == 10 and 0.5 < row["score"] <= row["params"]["train_score"] <= 1
    )
    assert "relative_error" not in row["params"]
    results.append(tmp_path / "r.csv", row)
    assert (
        results.read(tmp_path / "r.csv")[0]["params"]["train_score"] == row["params"]["train_score"]
    )


def test_a_trace_has_the_passes_of_all_outputs():
    run = a_run(
        "digits",
        method="sparse-rb",
        options={"n_grids": 4, "gamma": 1.0, "lam": 3.0, "solver": "prcd", "max_iter": 12},
        trace=True,
    )
    row = single.execute(run)
    steps = row["trace"]
    assert {step["output"] for step in steps} == set(range(10)) and {
        "iteration",
        "seconds",
        "pass_seconds",
        "objective",
    } <= set(steps[0])
    last = {step["output"]: step for step in steps}
    assert sum(step["objective"] for step in last.values()) == pytest.approx(row["objective"])
    assert 0 < sum(step["pass_seconds"] for step in last.values()) <= row["seconds_fit"]
    assert row["key"] == single.execute(replace(run, trace=False))["key"]
    assert "trace" not in single.execute(replace(run, trace=False))


def test_a_path_has_a_trace_for_each_lambda():
    options = {"n_features": 16, "gamma": 1.0, "lam_path": "10:1:3"}
    rows = single.execute_path(
        a_run("diabetes-sklearn", method="sparse-rf", options=options, trace=True)
    )
    assert len({row["key"] for row in rows}) == 3
    assert [row["trace"][-1]["objective"] for row in rows] == pytest.approx(
        [row["objective"] for row in rows]
    )


def test_a_stochastic_method_s_trace_is_its_error_on_the_test_rows_as_it_goes_on():
    row = single.execute(
        a_run("diabetes-sklearn", method="doubly-sgd", options={"gamma": 1.0}, trace=True)
    )
    assert len(row["trace"]) > 1 and all(
        step["seconds"] >= 0 and step["error"] > 0 for step in row["trace"]
    )


def test_a_row_says_what_was_asked_for_and_whether_chance_decided(tmp_path):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(80, 3))
    for name, part in (("a", rows[:60]), ("b", rows[60:])):
        libsvm.write(tmp_path / f"{name}.libsvm", part, np.sign(part[:, 0]))
    given = {"scaling": "minmax01", "kernel": "gaussian", "metric": "none", "gamma": 0.5}
    files = {"dataset": str(tmp_path / "a.libsvm"), "test": str(tmp_path / "b.libsvm")}
    run = Run(method="kernel", options=given | {"lam": "validation"}, **files)
    found = single.execute(run)
    assert found.params["asked"] == {"lam": "validation"} and found.lam > 0
    assert "seedless" not in found.params
    fixed = single.execute(replace(run, options=given | {"lam": 1.0}))
    assert fixed.params["seedless"] is True and "asked" not in fixed.params
    again = single.execute(replace(run, options=given | {"lam": 1.0}, seed=7))
    assert again.score == fixed.score and again.objective == fixed.objective


def test_a_row_says_how_its_table_was_read(tmp_path):
    lines = [f"{i % 2},{i * 7 % 13},n{i},{i % 5}" for i in range(60)]
    (tmp_path / "t.csv").write_text("\n".join(["y,a,name,b", *lines]) + "\n")
    reading = Reading(target="y", ignore=("name",))
    given = {"kernel": "gaussian", "gamma": 0.5, "lam": 1.0, "n_features": 20}
    run = Run(dataset=str(tmp_path / "t.csv"), method="rf", options=given, reading=reading, cv=2)
    found = single.execute(run)
    assert (found.n_inputs, found.task) == (2, "binary")
    assert (found.params["target"], found.params["ignore"]) == ("y", "name")


def test_a_row_tells_two_states_of_its_file_apart(tmp_path):
    path = tmp_path / "t.csv"
    lines = [f"{place},{place % 7}" for place in range(30)]
    path.write_text("x,y\n" + "\n".join(lines))
    given = {"task": "regression", "kernel": "gaussian", "gamma": 0.5, "lam": 1.0, "n_features": 20}
    asked = {"dataset": str(path), "method": "rf", "options": given}
    before, same = (single.execute(Run(**asked, seed=seed)).params["content"] for seed in (0, 1))
    path.write_text("x,y\n" + "\n".join(lines[:-1]))
    assert before == same != single.execute(Run(**asked)).params["content"]


def test_a_curve_is_measured_against_the_exact_machine():
    run = Run(
        dataset="ripple:n=128,n_test=50",
        method="doubly-sgd",
        curve="exact",
        options={
            "task": "regression",
            "scaling": "none",
            "target_scaling": "none",
            "gamma": 1.85,
            "nu": 0.1,
            "batch": 16,
            "block": 16,
            "epochs": 32,
        },
    )
    distances = [point["error"] for point in single.execute(run)["params"]["curve"]]
    assert distances[-1] < distances[0]
