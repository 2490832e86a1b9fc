"""Labels: those that a model never saw, words in messages and in --class-weight, spellings that are kept."""

import json
import os

import numpy as np
import pytest

from rfx import methods
from rfx.cli import main
from rfx.data import labelwords, svmtext
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
    noise = RNG.uniform(-0.3, 0.3, (len(labels), 2)).round(3)
    rows = [f"{label} 1:{3 * places[label] + x} 2:{y}" for label, (x, y) in zip(labels, noise.tolist())]
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


# ------------------------------------------------------------------ spellings


def write_table(path, labels):
    """A CSV file, or LIBSVM text by its name, of rows whose input tells the labels apart."""
    if path.suffix == ".svm":
        return write_libsvm(path, labels)
    places = {label: place for place, label in enumerate(dict.fromkeys(labels))}
    path.write_text("\n".join(["a,b,label", *(f"{3 * places[label]},0.{row % 7},{label}" for row, label in enumerate(labels))]) + "\n")
    return path


SPELLED = [
    (["1.1", "1.10", "2.0"], "multiclass"),
    (["007", "7"], None),
    (["10000000000000000", "10000000000000001"], None),
    (["0.0", "1.0"], None),
    (["1e0", "2"], None),
]


@pytest.mark.parametrize("suffix", [".csv", ".svm"])
@pytest.mark.parametrize(("labels", "task"), SPELLED)
def test_labels_that_are_numbers_keep_their_spelling(labels, task, suffix, tmp_path, capfd):
    data, model = write_table(tmp_path / f"t{suffix}", labels * 12), tmp_path / "m.npz"
    more = ("--task", task) if task else ()
    code, _, err = run(capfd, *TRAIN, "--data", data, "--model", model, *more)
    assert code == 0, err
    assert ("same number in several spellings" in err) == (labels[0] in ("1.1", "007"))
    assert run(capfd, "predict", model, data)[1].split() == labels * 12
    found, _ = eval_json(capfd, model, "--data", data)
    assert found["accuracy"] == 1 and sorted(found["labels"]) == sorted(labels)
    assert ", ".join(found["labels"]) in run(capfd, "info", model)[1]


@pytest.mark.parametrize("suffix", [".csv", ".svm"])
def test_labels_that_are_spelled_as_they_are_printed_stay_numbers(suffix, tmp_path, capfd):
    data, model = write_table(tmp_path / f"t{suffix}", ["-1", "+1"] * 12), tmp_path / "m.npz"
    assert run(capfd, *TRAIN, "--data", data, "--model", model)[0] == 0
    assert run(capfd, "predict", model, data)[1].split() == ["-1", "1"] * 12
    assert methods.load(model).schema.labels is None


@pytest.mark.parametrize("suffix", [".csv", ".svm"])
def test_the_same_classes_in_another_spelling_are_found_by_their_number(suffix, tmp_path, capfd):
    data, model = write_table(tmp_path / f"t{suffix}", ["0.0", "1.0"] * 12), tmp_path / "m.npz"
    assert run(capfd, *TRAIN, "--data", data, "--model", model)[0] == 0
    found, err = eval_json(capfd, model, "--data", write_table(tmp_path / f"o{suffix}", ["0", "1"] * 12))
    assert found["accuracy"] == 1 and "never saw" not in err
    found, err = eval_json(capfd, model, "--data", write_table(tmp_path / f"p{suffix}", ["0", "2"] * 12))
    assert found["accuracy"] == 0.5 and "never saw: 2;" in err


@pytest.mark.parametrize("suffix", [".csv", ".svm"])
def test_a_number_that_is_two_labels_is_none_of_them(suffix, tmp_path, capfd):
    data, model = write_table(tmp_path / f"t{suffix}", ["1.1", "1.10"] * 12), tmp_path / "m.npz"
    assert run(capfd, *TRAIN, "--data", data, "--model", model)[0] == 0
    _, err = eval_json(capfd, model, "--data", write_table(tmp_path / f"o{suffix}", ["1.1", "1.100"] * 12))
    assert "never saw: 1.100;" in err


@pytest.mark.parametrize("suffix", [".csv", ".svm"])
def test_targets_of_a_regression_are_numbers_however_they_are_spelled(suffix, tmp_path, capfd):
    data, model = write_table(tmp_path / f"t{suffix}", ["1.10", "2.0", "0.5"] * 12), tmp_path / "m.npz"
    assert run(capfd, *TRAIN, "--data", data, "--model", model, "--task", "regression")[0] == 0
    predicted = np.array(run(capfd, "predict", model, data)[1].split(), float)
    assert methods.load(model).task == "regression" and np.abs(predicted[:3] - [1.1, 2, 0.5]).max() < 0.5


def test_a_word_model_takes_no_numbers_for_the_codes_of_its_words(tmp_path, capfd):
    model = tmp_path / "m.npz"
    assert run(capfd, *TRAIN, "--data", write_table(tmp_path / "t.svm", ["cat", "dog"] * 12), "--model", model)[0] == 0
    code, _, err = run(capfd, "eval", model, "--data", write_table(tmp_path / "o.svm", ["0", "1"] * 12))
    assert code == 1 and "none of the labels" in err


def test_a_cached_text_keeps_the_spelling_of_its_labels(tmp_path, capfd):
    data, model = write_table(tmp_path / "t.svm", ["1.0", "2.50", "3"] * 3000), tmp_path / "m.npz"
    os.utime(data, (1e9, 1e9))
    for _ in range(2):
        assert run(capfd, *TRAIN, "--data", data, "--model", model, "--force", "--task", "multiclass")[0] == 0
        assert methods.load(model).schema.labels == ["1.0", "2.50", "3"]
    assert list((tmp_path / "cache" / "svmlight").iterdir())


@pytest.mark.parametrize("text", ["1", "-1", "+1", "0", "2.5", "0.5", "0.001", "1.10", "1.0", "007", "1.", ".5", "-0", "1e5", "1e-5",
                                  "0.0001", "123456789012345", "1234567890123456789", "10000000000000001", "00", "0.10"])  # fmt: skip
def test_the_compiled_reader_calls_no_label_plain_that_is_printed_otherwise(text):
    spelling = svmtext.Spelling()
    svmtext.parse_compiled(f"{text} 1:1\n1 1:2\n".encode(), False, spelling=spelling)
    assert not spelling.plain or labelwords.is_shortest(text)
    if len(text) < 5 and labelwords.is_shortest(text):
        assert spelling.plain
