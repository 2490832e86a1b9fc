"""Traces: stored next to the results by key, read by name, requested by a plan or --trace, and
recomputed if they are missing.
"""

import csv
import json

import pytest
from shell import called

from rfx.errors import DataError
from rfx.records import results, traces

STEPS = [
    {"iteration": 0, "seconds": 0.0, "objective": 3.5, "nnz": 0},
    {"iteration": 1, "seconds": 0.25, "objective": 1.5, "gap": 0.01, "nnz": 7},
]


def test_steps_read_back_by_name(tmp_path):
    path = tmp_path / "r.trace.csv"
    traces.append(path, "v1-a", STEPS)
    traces.append(path, "v1-b", STEPS[:1])
    assert traces.read(path) == {"v1-a": STEPS, "v1-b": STEPS[:1]}
    with path.open(newline="") as file:
        records = list(csv.DictReader(file))
    assert [record["step"] for record in records] == ["0", "1", "0"] and json.loads(
        records[1]["more"]
    ) == {"nnz": 7}
    traces.append(path, "v1-a", STEPS[1:])
    assert traces.read(path)["v1-a"] == STEPS[1:], "of several traces of one run the last counts"
    assert traces.read(tmp_path / "none.csv") == {}


def test_a_results_file_is_no_file_of_traces(tmp_path):
    path = tmp_path / "r.csv"
    results.append(path, {"key": "k", "status": "ok", "dataset": "cpu", "method": "rf"})
    before = path.read_bytes()
    for use in (traces.read, traces.check, lambda path: traces.append(path, "k", STEPS)):
        with pytest.raises(DataError, match="is not an rfx trace file"):
            use(path)
    assert path.read_bytes() == before
    assert traces.beside("out/results.csv").as_posix() == "out/results.trace.csv"


PLAN = """
[defaults]
dataset = "diabetes-sklearn"
options.n_features = 16
options.lam = 1
[[run]]
method = "sparse-rf"
"""


def test_a_plan_asks_for_traces_and_gets_them_once(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "p.toml").write_text(PLAN)
    assert called("run", "p.toml").return_value == 0
    assert not (tmp_path / "results.trace.csv").exists()
    (tmp_path / "p.toml").write_text(PLAN.replace("[[run]]", "trace = true\n[[run]]"))
    assert len(called("run", "p.toml", "--dry-run").stdout.splitlines()) == 1, (
        "there is a row, but no trace"
    )
    assert called("run", "p.toml").return_value == 0
    known, rows = traces.read("results.trace.csv"), results.read("results.csv")
    assert {row["key"] for row in rows} == set(known) and all(
        "trace" not in row["params"] for row in rows
    )
    for row in results.read("results.csv", traces.finder("results.trace.csv")):
        assert row["trace"] and row["trace"][-1]["objective"] == pytest.approx(row["objective"])
    assert called("run", "p.toml", "--dry-run").stdout == ""
    assert (
        len(called("run", "p.toml", "--trace", "other.csv", "--dry-run").stdout.splitlines()) == 1
    )
    assert "is the same file as" in str(called("run", "p.toml", "--trace", "results.csv").exception)


def test_train(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = [
        "train",
        "--method",
        "sparse-rf",
        "--data",
        "diabetes-sklearn",
        "--n-features",
        "16",
        "--lam",
        "1",
    ]
    done = called(*words, "--trace", "t.csv", "--results", "r.csv", "--json")
    (row,) = results.read("r.csv")
    assert "trace" not in json.loads(done.stdout) and list(traces.read("t.csv")) == [row["key"]]
    assert called(*words, "--trace", "t.csv").exception is None and len(traces.read("t.csv")) == 1
    assert "is the same file as --results" in str(
        called(*words, "--trace", "r.csv", "--results", "r.csv").exception
    )


def test_a_method_whose_solver_tells_of_no_steps_has_its_end():
    class Silent:
        info = {"n_iter": 1, "seconds_fit": 0.5, "objective": 2.0, "gap": None}

    assert traces.of(Silent()) == [{"iteration": 1, "seconds": 0.5, "objective": 2.0}]
