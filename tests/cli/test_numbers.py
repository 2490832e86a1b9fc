"""Extreme numbers, rows without inputs and a bare environment give one sentence or a model, never a
traceback.
"""

import os
import subprocess
import sys

import numpy as np
import pytest
from shell import refused, run

from rfx import methods
from rfx.data.stream import ArraySource
from rfx.errors import DataError, UsageError

pytestmark = pytest.mark.usefixtures("own_folders")

SMALL = {
    "n_features": 20,
    "n_grids": 10,
    "epochs": 1,
    "rounds": 1,
    "layers": "5",
    "budget_samples": 50,
    "gamma": 1.0,
}


def made(name, **options):
    known = methods.get(name).declared()
    return methods.create(
        name, **{key: value for key, value in (SMALL | options).items() if key in known}
    )


@pytest.mark.parametrize("name", methods.names())
def test_targets_whose_squares_are_not_finite_are_a_sentence(name):
    X, y = np.arange(20.0).reshape(10, 2), 1e200 * np.array([1, -1] * 5)
    with pytest.raises(
        (DataError, UsageError),
        match="the targets are up to 1e.200, and their squares|task is regression",
    ):
        made(name, task="regression", target_scaling="none").fit(X, y)


def test_targets_of_a_stream_whose_squares_are_not_finite_are_a_sentence():
    X, y = np.arange(20.0).reshape(10, 2), 1e300 * np.array([1, -1] * 5)
    with pytest.raises(DataError, match="the targets are up to 1e.300"):
        made("norma", task="regression").fit_stream(ArraySource(X, y))


@pytest.mark.parametrize("name", methods.names())
def test_rows_without_any_input_are_the_same_sentence_for_every_method(name, tmp_path, capfd):
    data = tmp_path / "t.svm"
    data.write_text("1\n-1\n" * 6)
    assert "rfx: all inputs of all rows are zero or missing" in refused(
        capfd, "train", "--method", name, "--data", data
    )


@pytest.mark.parametrize("lam", [5e-324, 1e308])
@pytest.mark.parametrize("name", ["rf", "sparse-rf", "kernel", "rb"])
def test_the_smallest_and_the_largest_lambda_end(name, lam):
    X = np.random.default_rng(0).normal(size=(40, 2))
    try:
        method = made(name, task="binary", lam=lam).fit(X, np.sign(X[:, 0]))
    except DataError as error:
        assert "not finite" in str(error)
    else:
        assert np.isfinite(method.decision_function(X)).all()


@pytest.mark.parametrize(
    "data",
    [
        "sphere:n=99999999999999999999999999,d=5",
        "sphere:n=1000000000000,d=1000000000000",
        "sphere:n=" + "9" * 5000,
    ],
)
def test_a_built_in_data_set_of_absurd_size_is_a_sentence(data, capfd):
    code, _, err = run(capfd, "train", "--method", "rf", "--data", data, "--lam", 1)
    assert code == 2 and ("must be a whole number from 1 to" in err or "is too large" in err)


@pytest.mark.parametrize(
    "command", ["train --method rf --data -", "train --method norma --stream --data -", "check -"]
)
def test_a_closed_standard_input_is_a_sentence(command):
    code = (
        "import os, sys; os.close(0); os.execv(sys.executable, [sys.executable, '-m', 'rfx',"
        f" *{command.split()!r}])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=dict(os.environ)
    )
    assert (
        done.returncode == 1
        and done.stderr.startswith("rfx: standard input is closed")
        and done.stderr.count("\n") == 1
    )


@pytest.mark.parametrize(
    "option",
    ["--cv", "--holdout", "--threads", "--lam", "--n-features", "--class-weight", "--scheduler"],
)
@pytest.mark.parametrize("text", ["1_0", "٣"])
def test_an_option_takes_no_number_that_only_python_has(option, text, tmp_path, capfd):
    path = tmp_path / "t.csv"
    path.write_text("a,y\n" + "".join(f"{n % 7},{n % 2}\n" for n in range(40)))
    value = {"--class-weight": f"1:{text}", "--scheduler": f"local:{text}"}.get(option, text)
    code, _, err = run(
        capfd,
        "train",
        "--method",
        "rf",
        "--lam",
        "1",
        "--n-features",
        5,
        "--data",
        path,
        option,
        value,
    )
    assert code == 2 and option in err and text in err and "Traceback" not in err
