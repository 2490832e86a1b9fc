"""`rfx run` and `rfx table` for a user: output, exit codes and errors; once with real runs."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from rfx.cli import cli
from rfx.errors import DataError, UsageError
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


def call(*words):
    return CliRunner().invoke(cli, list(words), standalone_mode=False)


def rfx(*words, **options):
    command = [sys.executable, "-m", "rfx", *words]
    return subprocess.run(command, capture_output=True, text=True, **options)


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
    done = call("run", "p.toml", "--only", "method=rf")
    assert (done.return_value, done.stdout) == (0, "")
    assert "[1/1] breast_cancer rf D=64 lam=1: accuracy 0.9" in done.stderr
    assert (
        "p: 1 ok, in results.csv" in done.stderr
        and "rfx table summary --results results.csv" in done.stderr
    )
    done = call("run", "p.toml")
    assert done.return_value == 3 and "2 ok, 1 of them did not converge" in done.stderr
    assert len(results.read("results.csv")) == 2


def test_run_json(folder, stub):
    done = call("run", "p.toml", "--json", "--results", "out/r.csv")
    content = json.loads(done.stdout)
    assert (content["total"], content["ran"], content["ok"], content["not_converged"]) == (
        2,
        2,
        2,
        1,
    )
    assert [row["method"] for row in content["rows"]] == ["rf", "sparse-rf"] and content[
        "exit_code"
    ] == done.return_value == 3


def test_dry_run_lists_what_is_missing_and_runs_nothing(folder, stub):
    assert call("run", "p.toml", "--dry-run").stdout.splitlines() == [
        "breast_cancer rf D=64 lam=1", "breast_cancer sparse-rf D=64 lam=1",
    ]  # fmt: skip
    assert not (folder / "results.csv").exists()
    call("run", "p.toml", "--only", "method=rf")
    (missing,) = json.loads(call("run", "p.toml", "--dry-run", "--json").stdout)
    assert missing["method"] == "sparse-rf"


@pytest.mark.parametrize(
    "words, error, message",
    [
        (["run"], UsageError, "which plan.* yen2014-table1"),
        (["run", "nope"], UsageError, "nope is neither a plan"),
        (["run", "p.toml", "--quick"], UsageError, "no small form"),
        (["run", "p.toml", "--only", "method=x"], UsageError, "no run of plan p has this value"),
        (
            ["run", "p.toml", "--timeout", "nan"],
            UsageError,
            "--timeout is 'nan'; it must be a number above 0",
        ),
        (["run", "p.toml", "--results", ""], DataError, '"" can.t be written as a results file'),
        (["table"], UsageError, "which table. There are: .*summary"),
        (["table", "nope"], UsageError, "no table nope .there are: .*summary"),
        (["table", "summary"], DataError, "results.csv: there is no such results file"),
    ],
)
def test_refusals(folder, words, error, message):
    refused = call(*words)
    assert isinstance(refused.exception, error)
    assert re.search(message, str(refused.exception)) and refused.stdout == ""
    assert [path.name for path in folder.iterdir()] == ["p.toml"]


def test_the_example_can_be_run(folder):
    (folder / "example.toml").write_text(call("run", "--example").stdout)
    done = call(
        "run", "example.toml", "--quick", "--only", "label=fixed", "--only", "n_features=50"
    )
    assert done.return_value == 0 and "example-quick: 1 ok, in results.csv" in done.stderr
    assert results.read("results.csv")[0]["score"] > 0.85


def test_a_log_has_a_time_in_each_line_and_standard_error_nothing(folder, stub):
    done = call("run", "p.toml", "--log", "run.log")
    assert (done.return_value, done.stdout, done.stderr) == (3, "", "")
    assert call("run", "p.toml", "--log", "run.log").return_value == 3
    lines = (folder / "run.log").read_text().splitlines()
    assert all(
        re.match(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d[+-]\d{4} (p: |\[\d/2\] )", line)
        for line in lines
    )
    assert len(lines) == 4 + 2 and lines[3].endswith(
        "p: 2 ok, 1 of them did not converge, in results.csv"
    )
    with results.exclusive("results.csv"):
        assert "in use by another rfx run" in str(
            call("run", "p.toml", "--log", "run.log").exception
        )
    assert "in use by another rfx run" in (folder / "run.log").read_text().splitlines()[-1]
    assert "can't be written" in str(call("run", "p.toml", "--log", "none/run.log").exception)
    for taken in ("p.toml", "results.csv", "results.csv.lock"):
        assert "is the same file as" in str(call("run", "p.toml", "--log", taken).exception)


def test_near_names_are_offered(folder):
    for words, near in (
        (["run", "yen2014-tabel1"], "yen2014-table1"),
        (["table", "sumary"], "summary"),
        (["figure", "wu2016-fgi3"], "wu2016-fig3"),
    ):
        assert f"did you mean {near}" in str(call(*words).exception)


def test_lists(folder):
    assert "yen2014-table1" in call("run", "--list").stdout
    assert call("table", "--list").stdout.split()[-1] == "yen2014-table2"


def test_table_formats(folder, stub):
    call("run", "p.toml")
    assert "breast_cancer" in call("table", "summary").stdout
    assert call("table", "summary", "--format", "csv").stdout.startswith("status,dataset,method")
    assert (
        json.loads(call("table", "yen2014-table2", "--format", "json").stdout)["table"]
        == "yen2014-table2"
    )


def test_compare_and_groups(folder, stub):
    call("run", "p.toml", "--results", "a.csv")
    call("run", "p.toml", "--results", "b.csv", "--only", "method=rf")
    done = call("compare", "a.csv", "b.csv", "--format", "json")
    content = json.loads(done.stdout)
    assert (
        content["title"] == "1 runs in both, 1 in A only, 0 in B only"
        and content["cells"][0]["change"] == 0
    )
    assert "--width" in call("compare", "--help").stdout
    assert isinstance(call("compare", "a.csv", "none.csv").exception, DataError)
    assert (
        "means over seed"
        in call("table", "summary", "--results", "a.csv", "--mean-over", "seed").stdout
    )
    assert (
        "2 groups, by method"
        in call("table", "summary", "--results", "a.csv", "--group-by", "method").stdout
    )


def test_exit_codes_of_the_program(folder):
    held = (
        "import fcntl, time; f = open('results.csv.lock', 'w'); fcntl.flock(f, fcntl.LOCK_EX);"
        " print(flush=True); time.sleep(60)"
    )
    holder = subprocess.Popen([sys.executable, "-c", held], stdout=subprocess.PIPE)
    holder.stdout.readline()
    locked = rfx("run", "p.toml")
    holder.kill()
    holder.wait()
    holder.stdout.close()
    assert (locked.returncode, locked.stdout) == (
        4,
        "",
    ) and "in use by another rfx run" in locked.stderr
    assert rfx("table", "nope").returncode == 2
    missing = rfx("table", "summary")
    assert missing.returncode == 1 and missing.stderr.count("\n") == 1


def test_real_runs_without_data_and_with(folder):
    """A data set that must be obtained by hand gives one line, no row and exit code 3; built-in
    data gives scores.
    """
    environment = os.environ | {"RFX_DATA": str(folder / "data"), "RFX_MIRROR": ""}
    (folder / "census.toml").write_text(
        '[[run]]\ndataset = "census"\nsplit = "yen2014"\nmethod = "rf"\n'
    )
    done = rfx("run", "census.toml", env=environment)
    assert done.returncode == 3 and "census: 1 run skipped; its data must be" in done.stderr
    assert not Path("results.csv").exists(), "so that it is run again when the data are there"
    done = rfx("run", "p.toml", "--results", "real.csv", env=environment)
    assert done.returncode == 0, done.stderr
    rows = results.read("real.csv")
    assert [row["status"] for row in rows] == ["ok", "ok"] and all(
        row["score"] > 0.85 for row in rows
    )
    assert all(row["seconds_fit"] >= 0 and row["peak_rss_mb"] > 10 and row["numpy"] for row in rows)
    assert rfx("run", "p.toml", "--results", "real.csv", env=environment).returncode == 0
    assert len(results.read("real.csv")) == 2
    assert "0.9" in rfx("table", "summary", "--results", "real.csv").stdout
