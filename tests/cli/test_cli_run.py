"""`rfx run` and `rfx table` for a user: output, exit codes and errors; once with real runs. What a
nightly job needs.
"""

import csv
import json
import re
import sys

import numpy as np
import pytest
from shell import called, printed, refused, run

from rfx.errors import UsageError
from rfx.records import results
from rfx.runs import runner

PLAN = """
title = "two small runs"
table = "summary"
[defaults]
dataset = "breast_cancer"
options.n_features = 64
options.scaling = "standard"
options.metric = "none"
[[run]]
method = ["rf", "sparse-rf"]
options.lam = 1
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "p.toml").write_text(PLAN)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def stub(tmp_path, monkeypatch):
    """Runs end at once; those with sparse-rf do not converge."""
    path = tmp_path / "stub.py"
    path.write_text(
        "import json, os, sys\nspec = json.loads(sys.argv[1])\nrow = {'status': 'ok', 'dataset':"
        " spec['dataset'], 'method': spec['method'], 'metric': 'accuracy', 'score': 0.9,\n      "
        " 'converged': spec['method'] == 'rf', 'params': {}}\nos.write(int(sys.argv[3]),"
        " json.dumps(row).encode())\n"
    )
    real = runner.run
    monkeypatch.setattr(
        runner,
        "run",
        lambda *args, **more: real(*args, **more | {"command": [sys.executable, str(path)]}),
    )


def test_run_progress_goes_to_stderr_and_the_code_says_how_it_went(folder, stub):
    done = called("run", "p.toml", "--only", "method=rf")
    assert (done.return_value, done.stdout) == (0, "")
    assert "[1/1] breast_cancer rf D=64 lam=1: accuracy 0.9" in done.stderr
    assert (
        "p: 1 ok, in results.csv" in done.stderr
        and "rfx table summary --results results.csv" in done.stderr
    )
    done = called("run", "p.toml")
    assert done.return_value == 3 and "2 ok, 1 of them did not converge" in done.stderr
    assert len(results.read("results.csv")) == 2


def test_run_json(folder, stub):
    done = called("run", "p.toml", "--json", "--results", "out/r.csv")
    content = json.loads(done.stdout)
    counts = {"total": 2, "ran": 2, "ok": 2, "not_converged": 1, "exit_code": done.return_value}
    assert {name: content[name] for name in counts} == counts
    assert [row["method"] for row in content["rows"]] == ["rf", "sparse-rf"]


def test_dry_run_lists_what_is_missing_and_runs_nothing(folder, stub):
    assert called("run", "p.toml", "--dry-run").stdout.splitlines() == [
        "breast_cancer rf D=64 lam=1", "breast_cancer sparse-rf D=64 lam=1",
    ]  # fmt: skip
    assert not (folder / "results.csv").exists()
    called("run", "p.toml", "--only", "method=rf")
    (missing,) = json.loads(called("run", "p.toml", "--dry-run", "--json").stdout)
    assert missing["method"] == "sparse-rf"


@pytest.mark.parametrize(
    "words, error, message",
    [
        (["run"], UsageError, "which plan.* yen2014-table1"),
        (
            ["run", "nope"],
            UsageError,
            "nope is neither a plan nor a TOML file .the plans are: .*yen2014-table1",
        ),
        (["run", "p.toml", "--quick"], UsageError, "it has no small form"),
        (["run", "p.toml", "--only", "method=x"], UsageError, "no run of plan p has this value"),
        (["run", "p.toml", "--results", "r.csv", "--trace", "r.csv"], UsageError, "same file"),
        (
            ["run", "p.toml", "--timeout", "nan"],
            UsageError,
            "--timeout is 'nan'; it must be a number above 0",
        ),
        (["run", "p.toml", "--results", ""], OSError, "No such file or directory"),
        (["table", "nope"], UsageError, "no table nope .there are: .*summary"),
        (["run", "yen2014-tabel1"], UsageError, "did you mean yen2014-table1"),
        (["table", "sumary"], UsageError, "did you mean summary"),
        (["figure", "wu2016-fgi3"], UsageError, "did you mean wu2016-fig3"),
        (["table", "summary"], OSError, "No such file or directory: 'results.csv'"),
        (["compare", "none.csv", "none.csv"], OSError, "No such file or directory: 'none.csv'"),
    ],
)
def test_refusals(folder, words, error, message):
    refused = called(*words)
    assert isinstance(refused.exception, error)
    assert re.search(message, str(refused.exception)) and refused.stdout == ""
    assert [path.name for path in folder.iterdir()] == ["p.toml"]


@pytest.mark.slow
def test_the_example_can_be_run(folder):
    (folder / "example.toml").write_text(called("run", "--example").stdout)
    words = ["run", "example.toml", "--quick", "--only", "label=fixed", "--only", "n_features=50"]
    done = called(*words)
    assert done.return_value == 0 and "example-quick: 1 ok, in results.csv" in done.stderr
    (row,) = results.read("results.csv")
    assert row["status"] == "ok" and row["score"] > 0.85
    assert row["seconds_fit"] >= 0 and row["peak_rss_mb"] > 10 and row["numpy"]


def test_a_log_has_a_time_in_each_line_and_standard_error_nothing(folder, stub):
    done = called("run", "p.toml", "--log", "run.log")
    assert (done.return_value, done.stdout, done.stderr) == (3, "", "")
    assert called("run", "p.toml", "--log", "run.log").return_value == 3
    lines = (folder / "run.log").read_text().splitlines()
    assert all(
        re.match(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d[+-]\d{4} (p: |\[\d/2\] )", line)
        for line in lines
    )
    assert len(lines) == 4 + 2 and lines[3].endswith(
        "p: 2 ok, 1 of them did not converge, in results.csv"
    )
    with results.exclusive("results.csv"):
        locked = called("run", "p.toml", "--log", "run.log").exception
    assert "in use by another rfx run" in str(locked)
    assert "in use by another rfx run" in (folder / "run.log").read_text().splitlines()[-1]
    assert "none/run.log" in str(called("run", "p.toml", "--log", "none/run.log").exception)


@pytest.mark.parametrize(
    "line, expected",
    [
        ("run --list", "\nyen2014-table1 "),
        ("table --list", "\nyen2014-table2\n"),
        ("table summary", "breast_cancer"),
        ("table summary --format csv", "status,dataset,method"),
        ("table yen2014-table2 --format json", '"table": "yen2014-table2"'),
        ("table summary --mean-over seed", "means over seed"),
        ("table summary --group-by method", "2 groups, by method"),
        ("compare results.csv b.csv --width 200", "1 runs in both, 1 in A only, 0 in B only"),
        ("compare results.csv b.csv --format json", '"change": 0.0'),
    ],
)
def test_what_is_printed_of_results(folder, stub, line, expected):
    called("run", "p.toml")
    called("run", "p.toml", "--results", "b.csv", "--only", "method=rf")
    assert expected in called(*line.split()).stdout


# ---------------------------------------------------------------------- what a nightly job needs

FAST = ("--method", "rf", "--n-features", 30, "--gamma", 1, "--lam", 1, "--no-baseline")


@pytest.fixture
def table(tmp_path, own_folders):
    random = np.random.default_rng(0)
    lines = [f"{a:.3f},{b:.3f},{'yes' if a > b else 'no'}" for a, b in random.uniform(size=(60, 2))]
    path = tmp_path / "t.csv"
    path.write_text("a,b,y\n" + "\n".join(lines) + "\n")
    return path


@pytest.fixture
def model(table, capfd):
    path = table.with_name("m.npz")
    printed(capfd, "train", *FAST, "--data", table, "--model", path, "--quiet")
    return path


@pytest.mark.parametrize("form", ["c", "json", "onnx"])
def test_every_command_replaces_what_it_wrote_and_nothing_else(form, table, model, capfd):
    if form == "onnx":
        pytest.importorskip("onnx")
    out = table.with_name("exported")
    for _ in range(2):
        printed(capfd, "export", model, "--to", form, "-o", out)
        printed(capfd, "train", *FAST, "--data", table, "--model", model, "--quiet")
    for command in (
        ("export", model, "--to", form, "-o", table),
        ("predict", model, table, "-o", out),
        ("train", *FAST, "--data", model, "--model", out),
    ):
        assert "--force" in refused(capfd, *command, code=2) or "same file" in command
    assert table.read_text().startswith("a,b,y\n")


def test_training_says_at_its_start_that_nothing_is_kept(table, capfd):
    words = ("train", *FAST, "--data", table)
    assert run(capfd, *words)[2].startswith("rfx: nothing is kept; --model FILE keeps the model")
    for more in (["--quiet"], ["--model", table.with_name("m.npz")], ["--json"]):
        assert "nothing is kept" not in run(capfd, *words, *more)[2]


def test_quiet_commands_print_nothing(table, model, capfd, caplog):
    caplog.clear()
    for words in (
        ("train", *FAST, "--data", table),
        ("eval", model, "--data", table),
        ("tune", "--method", "rf", "--data", table, "--trials", 1, "--gamma", "median"),
    ):
        assert run(capfd, *words, "--quiet")[:2] == (0, "")
        assert not caplog.records
    assert json.loads(printed(capfd, "eval", model, "--data", table, "--quiet", "--json"))
    printed(capfd, "train", *FAST, "--data", table)
    assert caplog.records, "the silence ends with the command"


def test_a_score_below_the_limit_fails(table, model, capfd):
    words = ("eval", model, "--data", table, "--quiet")
    assert run(capfd, *words, "--fail-below", 0.5) == (0, "", "")
    code, out, err = run(capfd, *words, "--fail-below", 1.01)
    assert (code, out) == (5, "")
    assert err.startswith("rfx: the accuracy ")
    numbers = table.with_name("n.csv")
    numbers.write_text("a,y\n" + "".join(f"{i},{2.5 * i}\n" for i in range(40)))
    printed(capfd, "train", *FAST, "--data", numbers, "--model", model, "--quiet")
    assert run(capfd, "eval", model, "--data", numbers, "--fail-below", 0.5)[0] == 0
    assert "the r2 " in run(capfd, "eval", model, "--data", numbers, "--fail-below", 1.5)[2]


@pytest.mark.parametrize("text", ["a,b,y\n", ""])
def test_no_rows_give_no_predictions(text, table, model, capfd):
    table.write_text(text)
    code, out, err = run(capfd, "predict", model, table)
    assert (code, out) == (0, "")
    assert err.endswith("there is nothing to predict\n")
    out = printed(capfd, "predict", model, table, "--format", "csv", "--id", "a")
    assert out == "a,prediction\n"
    assert json.loads(printed(capfd, "predict", model, table, "--json"))["predictions"] == []
    assert "empty" in refused(capfd, "eval", model, "--data", table) or text


def test_a_row_is_short_and_its_trials_lie_beside_it(table, capfd):
    path = table.with_name("r.csv")
    words = ("train", "--data", table, "--results", path, "--json")
    told = json.loads(printed(capfd, *words))["params"]["validation"]
    assert len(path.read_text().splitlines()[1]) < 2048
    with open(path, newline="") as file:
        (row,) = csv.DictReader(file)
    steps = json.loads(row["params"])["validation"]
    assert [step["trials"] for step in steps] == [len(step["tried"]) for step in told]
    (whole,) = results.read(path)
    assert [step["tried"] for step in whole["params"]["validation"]] == [
        step["tried"] for step in told
    ]
    # without the other file, the row is still whole but for the trials
    results.trace_path(path, "trials").unlink()
    (alone,) = results.read(path)
    assert [step["tried"] for step in alone["params"]["validation"]] == [[] for _ in told]
    assert alone["score"] == whole["score"]
