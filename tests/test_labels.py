"""Labels: those that a model never saw, words in messages and in --class-weight, spellings that are kept."""

import json

import numpy as np
import pytest

from rfx.cli import main
from rfx.options import LabelWeights

pytestmark = pytest.mark.usefixtures("own_folders", "one_thread_here")

TRAIN = ("train", "--method", "rf", "--n-features", 20, "--gamma", 1, "--lam", 1, "--scaling", "none", "--seed", 0)
RNG = np.random.default_rng(5)


def run(capfd, *args):
    """(exit code, standard output, standard error) of `rfx args`."""
    with pytest.raises(SystemExit) as stop:
        main([str(arg) for arg in args])
    out, err = capfd.readouterr()
    return stop.value.code, out, err


def write_libsvm(path, labels):
    """Rows of two inputs, the first of which tells the labels apart."""
    places = {label: place for place, label in enumerate(dict.fromkeys(labels))}
    noise = RNG.normal(0, 0.3, (len(labels), 2)).round(3)
    rows = [f"{label} 1:{2 * places[label] + x} 2:{y}" for label, (x, y) in zip(labels, noise.tolist())]
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return path


def eval_json(capfd, *args):
    code, out, err = run(capfd, "eval", *args, "--json")
    assert code == 0, err
    return json.loads(out)["params"]["measures"], err


# ------------------------------------------------------------------ labels that the model never saw


@pytest.mark.parametrize(
    ("taught", "others", "unknown"),
    [(["-1", "+1"], ["0", "1"], "0"), (["1", "2", "3"], ["1", "2", "4"], "4"), (["a", "b"], ["a", "c"], "c")],
)
def test_labels_that_the_model_never_saw_are_named_and_count_as_wrong(taught, others, unknown, tmp_path, capfd):
    model = tmp_path / "m.npz"
    assert run(capfd, *TRAIN, "--data", write_libsvm(tmp_path / "t.svm", taught * 12), "--model", model, "--loss", "logistic")[0] == 0
    data = write_libsvm(tmp_path / "o.svm", others * 12)
    found, err = eval_json(capfd, model, "--data", data)
    assert f"labels that the model never saw: {unknown}; rows with them count as wrong" in err
    right = np.trace(found["confusion"]) / (12 * len(others))
    assert found["accuracy"] == pytest.approx(right) and right <= 1 - 1 / len(others) and found["f1"] < 0.8
    assert "auc" not in found and "log_loss" not in found
    assert "never saw" not in run(capfd, "eval", model, "--data", tmp_path / "t.svm")[2]


def test_test_rows_of_training_with_a_label_that_was_not_trained_on(tmp_path, capfd):
    train, test = write_libsvm(tmp_path / "t.svm", ["-1", "1"] * 12), write_libsvm(tmp_path / "o.svm", ["0", "1"] * 12)
    code, _, err = run(capfd, *TRAIN, "--data", train, "--test", test)
    assert code == 0 and err.count("labels that the model never saw: 0") == 1


def test_a_label_of_many_digits_is_printed_whole(tmp_path, capfd, caplog):
    data = write_libsvm(tmp_path / "t.svm", ["1234567", "7654321"] * 12)
    assert run(capfd, *TRAIN, "--data", data, "--model", tmp_path / "m.npz")[0] == 0
    assert "1234567 and 7654321 only" in caplog.text
    assert "2: 1234567, 7654321" in run(capfd, "info", tmp_path / "m.npz")[1]
    assert "true, predicted  1234567  7654321" in run(capfd, "eval", tmp_path / "m.npz", "--data", data)[1]


def test_a_class_of_weight_zero_stays_a_class_of_the_model(tmp_path, capfd):
    data = write_libsvm(tmp_path / "t.svm", ["1", "2", "3"] * 12)
    assert run(capfd, *TRAIN, "--data", data, "--class-weight", "2:0", "--model", tmp_path / "m.npz")[0] == 0
    assert "3: 1, 2, 3" in run(capfd, "info", tmp_path / "m.npz")[1]
    assert len(run(capfd, "predict", tmp_path / "m.npz", data, "--decision")[1].splitlines()[0].split()) == 3


# ------------------------------------------------------------------ words in messages and in --class-weight


@pytest.mark.parametrize("more", [("--cv", 5), ("--calibrate", "platt"), ("--holdout", 0.2)])
def test_the_class_that_is_too_small_is_named_by_its_word(more, tmp_path, capfd):
    data = write_libsvm(tmp_path / "t.svm", ["cat", "dog"] * 12 + ["emu"])
    code, _, err = run(capfd, *TRAIN, "--data", data, *more)
    assert code == 1 and "only 1 row is emu; leave that row out" in err


@pytest.mark.parametrize("more", [(), ("--stream", "--task", "multiclass")])
def test_class_weight_takes_words(more, tmp_path, capfd):
    lines = [f"{x:.3f},{y:.3f},{label}" for (x, y), label in zip(RNG.normal(size=(60, 2)).tolist(), ["cat", "dog", "emu, big"] * 20)]
    quoted = [line if "emu" not in line else line.replace("emu, big", '"emu, big"') for line in lines]
    data = tmp_path / "t.csv"
    data.write_text("\n".join(["a,b,animal", *quoted]) + "\n")
    train = (*TRAIN[:2], "norma", "--gamma", 1, "--nu", 0.01, "--scaling", "none") if more else TRAIN

    def predicted(*weights):
        code, _, err = run(capfd, *train, *more, "--data", data, "--model", tmp_path / "m.npz", "--force", *weights)
        assert code == 0, err
        return run(capfd, "predict", tmp_path / "m.npz", data)[1].splitlines()

    plain, heavy = predicted(), predicted("--class-weight", '"emu, big":1000,cat:0.001,dog:0.001')
    assert heavy.count("emu, big") > plain.count("emu, big")
    code, _, err = run(capfd, *train, *more, "--data", data, "--class-weight", "yak:2")
    assert code == 2 and "--class-weight has the label yak, which no row has" in err


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1:2,-1:0.5", {"1": 2, "-1": 0.5}),
        ("emu:20", {"emu": 20}),
        ("a:b:3", {"a:b": 3}),
        ('"x,y":2, z:1', {"x,y": 2, "z": 1}),
        ('"say ""hi""":4', {'say "hi"': 4}),
        ("two words:1", {"two words": 1}),
    ],
)
def test_labels_of_class_weight_are_quoted_as_in_csv(text, expected):
    assert LabelWeights.values(text) == expected


@pytest.mark.parametrize("text", ["", "emu", "emu:", ":1", "emu:x", "emu:-1", "emu:inf", "a:1,", "a:1,a:2", '"a:1', "a:1,,b:2"])
def test_class_weights_that_are_none(text):
    with pytest.raises(ValueError):
        LabelWeights.values(text)
