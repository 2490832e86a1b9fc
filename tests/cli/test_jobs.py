"""What a nightly job needs: one rule of overwriting, quiet commands, exit codes, short rows."""

import csv
import json

import numpy as np
import pytest
from shell import printed, refused, run

from rfx.records import results

FAST = ("--method", "rf", "--n-features", 30, "--gamma", 1, "--lam", 1, "--no-baseline")


@pytest.fixture(autouse=True)
def small(own_folders):
    pass


@pytest.fixture
def table(tmp_path):
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
    results.trials_beside(path).unlink()
    (alone,) = results.read(path)
    assert [step["tried"] for step in alone["params"]["validation"]] == [[] for _ in told]
    assert alone["score"] == whole["score"]
