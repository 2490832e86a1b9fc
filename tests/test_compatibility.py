"""Files that users keep can be read: models give the same predictions, runs in a results file count
as done, scores are unchanged.

tests/fixtures/make.py wrote the files.
"""

import csv
import json
import shutil
import zlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from shell import called

from rfx import methods, model
from rfx.data import libsvm
from rfx.errors import DataError
from rfx.plans import plan
from rfx.records import results
from rfx.records.run import Run
from rfx.runs import evaluation, single

pytestmark = pytest.mark.slow

FIXTURES = Path(__file__).resolve().parent / "fixtures"
PREDICTIONS = json.loads((FIXTURES / "predictions.json").read_text())
ROWS = results.read(FIXTURES / "results.csv")


@pytest.mark.parametrize("name", PREDICTIONS)
def test_a_model_of_then_predicts_the_same(name):
    then = PREDICTIONS[name]
    method = methods.load(FIXTURES / "models" / f"{name}.npz")
    X, y = libsvm.read(FIXTURES / f"{then['data']}-test.libsvm")
    decision = method.decision_function(X)
    expected = np.array(then["decision"]).reshape(decision.shape)
    # float32 features: another BLAS or order of summation changes the last digits
    np.testing.assert_allclose(decision, expected, rtol=1e-5, atol=1e-6 * np.abs(expected).max())
    np.testing.assert_allclose(method.labels(decision), np.array(then["labels"], float), rtol=1e-5)
    found = evaluation.evaluate(method, X, y)
    assert (found.metric, found.score) == (
        then["metric"],
        pytest.approx(then["score"], rel=1e-6),
    )


@pytest.mark.parametrize("name", PREDICTIONS)
def test_the_same_options_still_make_that_model(name):
    then = PREDICTIONS[name]
    words = then["options"].split()
    options = {flag[2:].replace("-", "_"): value for flag, value in zip(words[::2], words[1::2])}
    if options.get("task") == "regression":
        options = {"target_scaling": "none"} | options  # the default then
    # chosen then, when paths of lambdas ended before anything was learnt
    options |= {"rf-perceptron": {"lam": "1"}}.get(name, {})
    data = FIXTURES / f"{then['data']}.libsvm"
    spec = {
        "dataset": str(data),
        "test": str(data).replace(".libsvm", "-test.libsvm"),
        "method": options.pop("method"),
    }
    row = single.execute(Run.of(spec | {"seed": int(options.pop("seed")), "options": options}))
    # two solutions within the same tolerance agree only in their objective
    tolerance = max(1e-6, 2 * abs(then["gap"]) / abs(then["objective"]))
    assert row["objective"] == pytest.approx(then["objective"], rel=tolerance)
    assert (row["metric"], row["score"]) == (
        then["metric"],
        pytest.approx(then["score"], rel=1e-3, abs=0.034 if then["metric"] == "accuracy" else 0),
    )


def test_every_method_of_then_has_a_model():
    kept = {PREDICTIONS[name]["options"].split()[1] for name in PREDICTIONS}
    assert kept == {"kernel", "rf", "sparse-rf", "rb", "sparse-rb", "nystrom", "block"}
    assert {path.stem for path in (FIXTURES / "models").iterdir()} == set(PREDICTIONS)


@pytest.fixture
def kept(tmp_path, monkeypatch):
    """A folder with the old plan, its data and its results."""
    for pattern in ("*.libsvm", "plan.toml", "results.csv"):
        for path in FIXTURES.glob(pattern):
            shutil.copy(path, tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_results_file_of_then_is_read_by_its_columns():
    with open(FIXTURES / "results.csv", newline="") as file:
        raw = list(csv.DictReader(file))
    assert [row["key"] for row in ROWS] == [row["key"] for row in raw]
    for row, fields in zip(ROWS, raw):
        for name in ("dataset", "method", "status", "message", "kernel", "metric", "cpu"):
            # an apostrophe keeps a spreadsheet from evaluating a cell that begins with a minus
            assert (row[name] or "") == fields[name].removeprefix("'")
        for name in ("score", "lam", "gap", "n_train", "model_size", "seed"):
            assert row[name] == (float(fields[name]) if fields[name] else None)
        assert row["params"] == json.loads(fields["params"])
        assert row["converged"] == {"true": True, "false": False, "": None}[fields["converged"]]
    assert [row["status"] for row in ROWS].count("ok") == 11
    assert {row["status"] for row in ROWS} == {"ok", "failed", "timeout"}


def test_its_runs_count_as_done(kept):
    before = (kept / "results.csv").read_bytes()
    words = ("run", "plan.toml", "--results", "results.csv")
    done = called(*words)
    assert done.return_value == 3, "one failed, one took too long and one did not converge, as then"
    assert "13 have a row in results.csv, 0 to do" in done.stderr
    assert (kept / "results.csv").read_bytes() == before
    # failed runs are repeated on request, with the key by which the next call finds them
    assert "2 of 13 runs to do" in called(*words, "--retry-failed", "--dry-run").stderr


def test_a_row_of_today_goes_into_the_file_of_then(kept):
    row = {
        "key": "0123456789abcdef",
        "status": "ok",
        "dataset": "iris",
        "method": "rf",
        "score": 0.5,
        "params": {"n": 1},
    }
    results.append("results.csv", row)
    rows = results.read("results.csv")
    assert rows[: len(ROWS)] == ROWS
    assert (len(rows), rows[-1]["score"], rows[-1]["params"]) == (len(ROWS) + 1, 0.5, {"n": 1})


SCORES = [row for row in csv.DictReader((FIXTURES / "scores.csv").open(newline=""))]


@pytest.mark.parametrize(
    "number",
    [
        n
        for n, run in enumerate(plan.load("demo").runs)
        if run.dataset in ("breast_cancer", "diabetes-sklearn")
    ],
)
def test_the_demo_gives_the_scores_of_then(number):
    run = plan.load("demo").runs[number]
    # only a tight tolerance determines the support of the exact machine
    tight = {"tol": 1e-8} if run.method == "kernel" else {}
    row = single.execute(replace(run, options=run.options | tight))
    asked = {"plan": "demo", "dataset": run.dataset, "method": run.method}
    (then,) = (one for one in SCORES if asked.items() <= one.items())
    assert row["score"] == pytest.approx(float(then["score"]), rel=1e-5)
    # which rows are exactly on the margin depends on the last digits, which depend on BLAS
    assert row["model_size"] == pytest.approx(int(then["model_size"]), rel=0.02)


# The format of each method's file, and a checksum of the arrays that it declares.
FORMATS = {
    "auto": (1, 223132457),
    "block": (1, 3711043297),
    "boosting": (1, 1621137069),
    "doubly-sgd": (1, 2535980935),
    "k-sdca": (1, 792131567),
    "kernel": (1, 2054306829),
    "lkrf": (1, 1621137069),
    "local": (2, 2874216127),
    "mlp": (1, 2220103205),
    "n-pegasos": (1, 792131567),
    "n-sdca": (1, 792131567),
    "norma": (1, 792131567),
    "nystrom": (1, 2054306829),
    "r-pegasos": (1, 2535980935),
    "r-sdca": (1, 2535980935),
    "rb": (1, 827020557),
    "rf": (1, 1621137069),
    "rfm": (1, 2054306829),
    "sparse-rb": (1, 827020557),
    "sparse-rf": (1, 1621137069),
}


@pytest.mark.parametrize("name", FORMATS)
def test_the_format_changes_whenever_the_arrays_do(name):
    """If this fails, raise file_format of the method, and write both numbers here."""
    method = methods.get(name)
    declared = zlib.crc32(repr(sorted(method.arrays.items())).encode())
    assert (method.file_format, declared) == FORMATS[name]


def test_a_file_of_another_format_says_so(tmp_path):
    header, arrays = model.read(FIXTURES / "models" / "kernel-bias.npz")
    del header["format"]
    model.write(tmp_path / "m.npz", header | {"method_format": 7}, arrays)
    with pytest.raises(DataError, match="format 7 of method kernel"):
        methods.load(tmp_path / "m.npz")
