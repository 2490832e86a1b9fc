"""`rfx train --sample-weight FILE` and `--class-weight`: the models equal those of repeated or
omitted rows; errors.
"""

import json

import numpy as np
import pytest
from shell import run

from rfx import methods
from rfx.data import libsvm
from rfx.records import keys, results
from rfx.records.run import Run

RNG = np.random.default_rng(1)
X = RNG.uniform(-1, 1, (90, 3))
LABELS = np.where(np.linalg.norm(X, axis=1) > 1, 1.0, -1.0)
WEIGHTS = RNG.integers(0, 3, 90)


@pytest.fixture
def folder(tmp_path):
    repeated = np.repeat(np.arange(90), WEIGHTS)
    libsvm.write(tmp_path / "rows", X, LABELS)
    libsvm.write(tmp_path / "repeated", X[repeated], LABELS[repeated])
    (tmp_path / "weights").write_text("".join(f"{weight}\n" for weight in WEIGHTS))
    return tmp_path


def train(capfd, folder, data="rows", *more, method="rf"):
    options = (
        "--gamma",
        2,
        "--scaling",
        "none",
        "--task",
        "binary",
        "--model",
        folder / "m.npz",
        "--json",
        "--force",
    )
    return run(capfd, "train", "--method", method, "--data", folder / data, *options, *more)


@pytest.mark.parametrize(
    ("method", "more"),
    [
        ("rf", ("--n-features", 50, "--tol", 1e-10, "--lam", 1)),
        ("rb", ("--tol", 1e-10, "--lam", 0.01)),
        ("kernel", ("--lam", 1)),
    ],
)
def test_weights_are_repetitions(method, more, folder, capfd):
    code, out, err = train(
        capfd, folder, "rows", "--sample-weight", folder / "weights", *more, method=method
    )
    assert code == 0, err
    row, weighted = json.loads(out), methods.load(folder / "m.npz").decision_function(X)
    assert (
        row["n_train"] == np.count_nonzero(WEIGHTS) and row["params"]["weight_sum"] == WEIGHTS.sum()
    )
    assert row["params"]["sample_weight"] == "weights"
    code, out, err = train(capfd, folder, "repeated", *more, method=method)
    assert json.loads(out)["objective"] == pytest.approx(row["objective"], rel=1e-3)
    np.testing.assert_allclose(
        methods.load(folder / "m.npz").decision_function(X),
        weighted,
        atol=0.05 if method == "kernel" else 1e-3,
    )


def test_class_weight_and_scores_without_test_rows(folder, capfd):
    code, out, err = train(
        capfd, folder, "rows", "--class-weight", "1:5", "--cv", 3, "--results", folder / "r.csv"
    )
    assert code == 0, err
    assert results.read(folder / "r.csv")[0]["params"]["class_weight"] == "1:5"
    by_label = methods.load(folder / "m.npz")
    assert by_label.method.class_weight == "1:5"
    (folder / "weights").write_text("".join("5\n" if label > 0 else "1.0\n" for label in LABELS))
    code, out, err = train(capfd, folder, "rows", "--sample-weight", folder / "weights", "--cv", 3)
    assert code == 0 and json.loads(out)["score"] == results.read(folder / "r.csv")[0]["score"]
    assert np.array_equal(
        methods.load(folder / "m.npz").decision_function(X), by_label.decision_function(X)
    )


def test_the_key_counts_the_weights(folder):
    spec = {"dataset": str(folder / "rows"), "method": "rf", "options": {}}
    first = keys.key(Run.of(spec | {"sample_weight": str(folder / "weights")}))
    assert keys.key(Run.of(spec)) == keys.key(Run.of(spec | {"sample_weight": None})) != first
    assert keys.key(Run.of(spec | {"options": {"class_weight": "balanced"}})) != keys.key(
        Run.of(spec)
    )
    (folder / "weights").write_text("1\n" * 90)
    assert keys.key(Run.of(spec | {"sample_weight": str(folder / "weights")})) != first


@pytest.mark.parametrize(
    "text, says",
    [
        ("1\n" * 89, "has 89 weights, but there are 90 training rows; there must be one per row"),
        ("1\n" * 91, "has 91 weights, but there are 90 training rows"),
        ("1\n-2\n", "line 2: '-2' is not a weight; weights are numbers of 0 or more, one per line"),
        ("1\nnan\n", "line 2: 'nan' is not a weight"),
        ("1,2\n", "line 1: '1,2' is not a weight"),
        ("0\n" * 90, "all sample weights are zero"),
    ],
)
def test_a_wrong_file_is_a_sentence(text, says, folder, capfd):
    (folder / "weights").write_text(text)
    code, _, err = train(capfd, folder, "rows", "--sample-weight", folder / "weights")
    assert code == 1 and says in err and "Traceback" not in err


@pytest.mark.parametrize(
    "method, words, expected, says",
    [
        ("rf", "--sample-weight {}/nothing", 1, "nothing can't be read: No such file"),
        ("rf", "--sample-weight {}/binary", 1, "line 1: it is not utf-16-le"),
        ("norma", "--stream --sample-weight {}/weights", 2, "needs all rows in memory; omit --str"),
        ("norma", "--stream --class-weight balanced", 2, "balanced needs the counts of all rows"),
        ("rf", "--class-weight heavy", 2, "--class-weight is 'heavy'; it must be balanced, or"),
        (
            "rf",
            "--sample-weight {}/weights --solver liblinear",
            2,
            "--solver is liblinear, which does not support sample weights",
        ),
        ("rf", "--sample-weight {0}/weights --model {0}/weights", 2, "is the same file as"),
    ],
)
def test_what_is_refused(method, words, expected, says, folder, capfd):
    (folder / "binary").write_bytes(b"\xff\xfe\x00")
    code, _, err = train(capfd, folder, "rows", *words.format(folder).split(), method=method)
    assert code == expected
    assert says in err
    assert (folder / "weights").read_text().startswith(f"{WEIGHTS[0]}\n")
