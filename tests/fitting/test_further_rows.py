"""`--resume` continues a finished training with the rows that its file gained, or of another."""

import json

import numpy as np
import pytest
from shell import printed, refused

from rfx import methods

WORDS = ("train", "--method", "doubly-sgd", "--stream", "--gamma", 1, "--nu", 1e-4, "--resume")
WORDS += ("--batch", 32, "--buffer", 100, "--no-baseline", "--json")
RANDOM = np.random.default_rng(0)
X = RANDOM.uniform(-1, 1, (900, 2))
Y = np.where(X[:, 0] * X[:, 1] > 0, "same", "other")


def text(kind, rows) -> str:
    if kind == "csv":
        head = "a,b,y\n" if rows.start == 0 else ""
        return head + "".join(f"{a:.4f},{b:.4f},{y}\n" for (a, b), y in zip(X[rows], Y[rows]))
    return "".join(f"{y} 1:{a:.4f} 2:{b:.4f}\n" for (a, b), y in zip(X[rows], Y[rows]))


@pytest.fixture(params=["csv", "libsvm"])
def kind(request, own_folders):
    return request.param


@pytest.fixture
def train(capfd, tmp_path, kind):
    def trained(name, *more, checkpoint="c"):
        kept = ("--checkpoint", tmp_path / checkpoint, "--model", tmp_path / f"{name}.npz")
        words = (*WORDS, "--data", tmp_path / name, *kept, *more, "--force")
        return json.loads(printed(capfd, *words))

    return trained


def coef(tmp_path, name):
    return methods.load(tmp_path / f"{name}.npz").model.arrays()["coef"]


def test_rows_that_a_file_gains_are_learnt_like_those_of_another_file(kind, train, tmp_path):
    old, new = slice(0, 300), slice(300, 900)
    for name in ("grown.txt", "first.txt"):
        (tmp_path / name).write_text(text(kind, old))
    (tmp_path / "second.txt").write_text(text(kind, new) if kind != "csv" else "")
    first = train("first.txt", checkpoint="other")
    assert train("grown.txt")["params"]["samples"] == 900
    # nothing new: the same model
    assert train("grown.txt")["params"]["samples"] == 900
    with open(tmp_path / "grown.txt", "a") as file:
        file.write(text(kind, new))
    row = train("grown.txt")
    assert (first["n_train"], row["n_train"]) == (300, 900)
    assert row["params"]["samples"] == 3 * 900
    if kind == "csv":
        (tmp_path / "second.txt").write_text("a,b,y\n" + text(kind, new))
    other = train("second.txt", checkpoint="other")
    assert other["n_train"] == 900
    np.testing.assert_array_equal(coef(tmp_path, "grown.txt"), coef(tmp_path, "second.txt"))
    model = methods.load(tmp_path / "grown.txt.npz")
    codes = np.unique(Y, return_inverse=True)[1]
    before = methods.load(tmp_path / "first.txt.npz").score(X, codes)["score"]
    assert model.score(X, codes)["score"] > before


def test_an_interrupted_continuation_is_resumed_to_the_same_bits(kind, train, tmp_path):
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_text(text(kind, slice(0, 300)))
        train(name, checkpoint=name[0])
        with open(tmp_path / name, "a") as file:
            file.write(text(kind, slice(300, 900)))
    train("a.txt", checkpoint="a")
    assert train("b.txt", "--budget-samples", 1500, checkpoint="b")["params"]["samples"] < 1600
    assert train("b.txt", checkpoint="b")["n_train"] == 900
    np.testing.assert_array_equal(coef(tmp_path, "a.txt"), coef(tmp_path, "b.txt"))


def test_an_unfinished_training_needs_its_own_input(kind, train, tmp_path, capfd):
    (tmp_path / "a.txt").write_text(text(kind, slice(0, 300)))
    train("a.txt", "--budget-samples", 100)
    (tmp_path / "a.txt").write_text(text(kind, slice(0, 300)).replace("0.1", "0.2"))
    words = (*WORDS, "--data", tmp_path / "a.txt", "--checkpoint", tmp_path / "c")
    assert "has changed since the checkpoint was written" in refused(capfd, *words)
