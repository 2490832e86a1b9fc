"""Labels: those absent from training, words in messages and in --class-weight, spellings that are
preserved.
"""

import json
from decimal import Decimal

import numpy as np
import pytest
import scipy.sparse
from shell import refused, run

from rfx import methods
from rfx.data import libsvm
from rfx.options import LabelWeights

pytestmark = pytest.mark.usefixtures("own_folders")

TRAIN = ("train", "--method", "rf", "--n-features", 20, "--gamma", 1, "--lam", 1)
TRAIN += ("--scaling", "none", "--metric", "none", "--seed", 0)
STREAM = ("train", "--method", "norma", "--gamma", 1, "--nu", 0.01, "--scaling", "none")
STREAM += ("--seed", 0, "--epochs", 3, "--stream")
# Integers that float64 does not have.
BIG = [2**60 + 1, 2**60 + 2]


def good(capfd, *args):
    """(standard output, standard error) of a command that must succeed."""
    code, out, err = run(capfd, *args)
    assert code == 0, err
    return out, err


def trained(capfd, data, *more, by=TRAIN):
    """(the path of a model of the data, standard error)."""
    model = data.parent / "m.npz"
    return model, good(capfd, *by, "--data", data, "--model", model, "--force", *more)[1]


def predicted(capfd, model, data):
    return good(capfd, "predict", model, data)[0].splitlines()


def measures(capfd, model, data):
    """(the measures of `rfx eval`, standard error)."""
    out, err = good(capfd, "eval", model, "--data", data, "--json")
    return json.loads(out)["params"]["measures"], err


def put(path, labels):
    """A file (by its name) of rows of two inputs, the first of which separates the labels."""
    places = {label: place for place, label in enumerate(dict.fromkeys(labels))}
    rows = [(3 * places[label], row % 7 / 10, label) for row, label in enumerate(labels)]
    if path.suffix == ".svm":
        noise = np.random.default_rng(5).uniform(-0.3, 0.3, len(labels)).round(3)
        lines = [f"{label} 1:{a + x} 2:{b}" for (a, b, label), x in zip(rows, noise.tolist())]
    else:
        lines = ["a,b,label", *(",".join(map(str, row)) for row in rows)]
    path.write_text("\n".join([*lines, ""]), encoding="utf-8")
    return path


# ------------------------------------------------------------------ labels absent in training


@pytest.mark.parametrize(
    ("taught", "others", "unknown"),
    [
        (["-1", "+1"], ["0", "1"], "0"),
        (["1", "2", "3"], ["1", "2", "4"], "4"),
    ],
)
def test_labels_that_the_model_never_saw_are_named_and_count_as_wrong(
    taught, others, unknown, tmp_path, capfd
):
    data, other = put(tmp_path / "t.svm", taught * 12), put(tmp_path / "o.svm", others * 12)
    model, err = trained(capfd, data, "--loss", "logistic", "--test", other)
    message = f"labels that were absent in training: {unknown}; rows with them count as wrong"
    assert err.count(message) == 1
    found, err = measures(capfd, model, other)
    assert message in err
    assert len(found["labels"]) == len(taught) + 1
    right = np.trace(found["confusion"]) / (12 * len(others))
    assert found["accuracy"] == pytest.approx(right)
    assert right <= 1 - 1 / len(others)
    assert not {"auc", "log_loss"} & found.keys()
    assert "absent in training" not in measures(capfd, model, data)[1]


def test_a_class_of_weight_zero_stays_a_class_of_the_model(tmp_path, capfd):
    data = put(tmp_path / "t.svm", ["1", "2", "3"] * 12)
    model, _ = trained(capfd, data, "--class-weight", "2:0")
    assert "3: 1, 2, 3" in good(capfd, "info", model)[0]
    decisions = good(capfd, "predict", model, data, "--decision")[0]
    assert len(decisions.splitlines()[0].split()) == 3


# ---------------------------------------------------------- words in messages and in --class-weight


@pytest.mark.parametrize("more", [("--cv", 5), ("--holdout", 0.2)])
def test_the_class_that_is_too_small_is_named_by_its_word(more, tmp_path, capfd):
    data = put(tmp_path / "t.csv", ["cat", "dog"] * 12 + ["emu"])
    message = "needs at least two rows of each class, but only 1 row has the label emu; remove that"
    assert message in refused(capfd, *TRAIN, "--data", data, *more)


@pytest.mark.parametrize("by", [TRAIN, (*STREAM, "--task", "multiclass")])
def test_class_weight_takes_words(by, tmp_path, capfd, rng):
    labels = ["cat", "dog", '"emu, big"'] * 20
    rows = zip(rng.normal(size=(60, 2)).tolist(), labels)
    data = tmp_path / "t.csv"
    data.write_text("a,b,animal\n" + "".join(f"{x:.3f},{y:.3f},{word}\n" for (x, y), word in rows))
    plain = predicted(capfd, trained(capfd, data, by=by)[0], data)
    weights = ("--class-weight", '"emu, big":1000,cat:0.001,dog:0.001')
    heavy = predicted(capfd, trained(capfd, data, *weights, by=by)[0], data)
    assert heavy.count("emu, big") > plain.count("emu, big")
    said = refused(capfd, *by, "--data", data, "--class-weight", "yak:2", code=2)
    assert "--class-weight has the label yak, which no row has (there are: " in said


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


@pytest.mark.parametrize(
    "text",
    ["", "emu", "emu:", ":1", "emu:x", "emu:-1", "emu:inf", "a:1,", "a:1,a:2", '"a:1', "a:1,,b:2"],
)
def test_class_weights_that_are_none(text):
    with pytest.raises(ValueError):
        LabelWeights.values(text)


# ------------------------------------------------------------------ spellings

SPELLED = [
    (["1.1", "1.10", "2.0"], "multiclass"),
    (["007", "7"], None),
    (["10000000000000000", "10000000000000001"], None),
    (["0.0", "1.0"], None),
    (["1e0", "2"], None),
    (["10%", "10.0%", "20%"], None),
]


@pytest.mark.parametrize(("labels", "task"), SPELLED)
def test_labels_that_are_numbers_keep_their_spelling(labels, task, tmp_path, capfd):
    data = put(tmp_path / "t.csv", labels * 12)
    model, err = trained(capfd, data, *(("--task", task) if task else ()))
    assert ("same number in several spellings" in err) == (labels[0] in ("1.1", "007", "10%"))
    assert predicted(capfd, model, data) == labels * 12
    found, _ = measures(capfd, model, data)
    assert found["accuracy"] == 1
    assert sorted(found["labels"]) == sorted(labels)
    assert ", ".join(found["labels"]) in good(capfd, "info", model)[0]


def test_a_rare_word_among_numbers_is_a_label_where_the_task_says_so(tmp_path, capfd):
    labels = ["1", "2", "3", "5"] * 12 + ["U"] * 4
    data = put(tmp_path / "t.csv", labels)
    assert "has 'U', which is not a number" in refused(capfd, "train", "--data", data)
    model, _ = trained(capfd, data, "--task", "multiclass")
    assert predicted(capfd, model, data) == labels


@pytest.mark.parametrize(
    ("taught", "others", "absent"),
    [
        (["0.0", "1.0"], ["0", "1"], None),
        (["0.0", "1.0"], ["0", "2"], "2"),
        (["1.1", "1.10"], ["1.1", "1.100"], "1.100"),
    ],
)
def test_the_same_class_in_another_spelling_is_the_only_one_with_its_number(
    taught, others, absent, tmp_path, capfd
):
    model, _ = trained(capfd, put(tmp_path / "t.csv", taught * 12))
    found, err = measures(capfd, model, put(tmp_path / "o.csv", others * 12))
    assert found["accuracy"] == (0.5 if absent else 1)
    assert (f"absent in training: {absent};" in err) == (absent is not None)


@pytest.mark.parametrize("name", ["t.csv", "t.svm", "t.npz"])
def test_targets_of_a_regression_are_numbers_however_they_are_spelled(name, tmp_path, capfd):
    write = put_arrays if name == "t.npz" else put
    data = write(tmp_path / name, ["1.10", "2.0", "0.5"] * 12)
    model, _ = trained(capfd, data, "--task", "regression")
    assert methods.load(model).task == "regression"
    first = np.array(predicted(capfd, model, data)[:3], float)
    assert np.abs(first - [1.1, 2, 0.5]).max() < 0.5


def test_a_word_model_takes_no_numbers_for_the_codes_of_its_words(tmp_path, capfd):
    model, _ = trained(capfd, put(tmp_path / "t.csv", ["cat", "dog"] * 12))
    other = put(tmp_path / "o.csv", ["0", "1"] * 12)
    assert "none of the labels" in refused(capfd, "eval", model, "--data", other)


@pytest.mark.parametrize("first, second", [("1", "+1.0"), ("007", "7"), ("0.10", "1e-1")])
def test_labels_of_libsvm_text_are_numbers(first, second, tmp_path):
    (tmp_path / "t.svm").write_text(f"{first} 1:1\n-1 1:2\n{second} 1:3\n")
    _, y = libsvm.read(tmp_path / "t.svm")
    assert y.tolist() == [float(first), -1, float(first)]


# ----------------------------------------------------- labels that float64 does not have, in arrays


def put_arrays(path, labels):
    """A file of arrays (by its name) of rows whose first input separates the labels."""
    column = np.array(labels)
    X = np.array([[3.0 * labels.index(label), row % 7 / 10] for row, label in enumerate(labels)])
    if path.suffix == ".npy":
        np.save(path, np.column_stack([np.int64(10 * X), column]))
    elif path.name.startswith("sparse"):
        M = scipy.sparse.csr_matrix(X)
        arrays = {name: getattr(M, name) for name in ("data", "indices", "indptr", "shape")}
        np.savez(path, **arrays, format=np.array("csr"), y=column)
    elif path.suffix == ".npz":
        np.savez(path, X=X, y=column.astype(np.uint64) if path.stem == "unsigned" else column)
    else:
        pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        decimal = path.stem == "decimal"
        y = pyarrow.array([Decimal(label) for label in labels] if decimal else column)
        y = y.dictionary_encode() if path.stem == "categories" else y
        parquet.write_table(pyarrow.table({"a": X[:, 0], "b": X[:, 1], "y": y}), path)
    return path


ARRAYS = "t.npy t.npz unsigned.npz sparse.npz t.parquet decimal.parquet categories.parquet".split()


@pytest.mark.parametrize("name", ARRAYS)
def test_whole_numbers_beyond_doubles_stay_apart_in_arrays(name, tmp_path, capfd):
    data, out = put_arrays(tmp_path / name, BIG * 12), tmp_path / "out.svm"
    model, _ = trained(capfd, data)
    assert predicted(capfd, model, data) == list(map(str, BIG * 12))
    found, _ = measures(capfd, model, data)
    assert found["accuracy"] == 1
    assert found["labels"] == list(map(str, BIG))
    for words in (
        ["convert", data, out],
        ["featurize", data, "-n", 3, "-o", out],
        ["featurize", data, "--model", model, "-o", out],
    ):
        good(capfd, *words, "--force")
        lines = out.read_text().splitlines()
        assert [line.split()[0] for line in lines] == list(map(str, BIG * 12))


@pytest.mark.parametrize(
    "labels",
    [["1.1", "1.10", "2.0"], ["007", "7"], ["10000000000000000001", "10000000000000000002"]],
)
def test_rows_that_are_written_anew_keep_the_spelling_of_labels(labels, tmp_path, capfd):
    data = put(tmp_path / "t.csv", labels * 5)
    other, out = put(tmp_path / "o.csv", [*labels, "5.50"]), tmp_path / "out"
    for words, expected in (
        (["convert", data, out], labels * 5),
        (["featurize", data, "-n", 3, "-o", out], labels * 5),
        (["featurize", data, "-n", 3, "--train", data, "-o", out], labels * 5),
        (["convert", other, out, "--train", data], [*labels, "5.50"]),
    ):
        good(capfd, *words, "--force")
        assert [line.split()[0] for line in out.read_text().splitlines()] == expected


# ------------------------------------------------------------------ rows that are not all in memory

STREAMED = [
    *SPELLED,
    (["1e0", "1", "2"], None),
    (["-0", "0", "1"], None),
    (["+1", "1", "-1"], None),
]


@pytest.mark.parametrize(("labels", "task"), STREAMED)
def test_a_stream_has_the_classes_of_training_in_memory(labels, task, tmp_path, capfd):
    data, learnt = put(tmp_path / "t.csv", labels * 12), []
    for by in (TRAIN, STREAM):
        model, _ = trained(capfd, data, *(("--task", task) if task else ()), by=by)
        learnt.append((methods.load(model).schema.labels, methods.load(model).task))
    assert learnt[0] == learnt[1]
    assert set(predicted(capfd, model, data)) <= {label.removeprefix("+") for label in labels}


@pytest.fixture(scope="module")
def scheduler():
    pytest.importorskip("distributed")
    from rfx.distributed import cluster

    with cluster.connect("local:2") as client:
        yield client.scheduler.address


@pytest.mark.slow
@pytest.mark.parametrize(
    "suffix, labels",
    [(".csv", ["1.1", "1.10", "2.0"]), (".csv", ["cat", "dog"]), (".parquet", BIG)],
)
def test_workers_have_the_classes_of_training_in_memory(suffix, labels, scheduler, tmp_path, capfd):
    data = (put_arrays if suffix == ".parquet" else put)(tmp_path / f"t{suffix}", labels * 30)
    more = ("--parts", 3, "--task", "multiclass" if len(labels) > 2 else "binary")
    model, _ = trained(capfd, data, "--scheduler", scheduler, *more)
    assert predicted(capfd, model, data) == list(map(str, labels * 30))


# ------------------------------------------------------------------ words where numbers are needed


@pytest.mark.slow
@pytest.mark.parametrize(
    ("by", "name", "place"),
    [
        (TRAIN, "t.csv", "line 2: the target 'cat' is a word, but --task regression needs"),
        (STREAM, "t.csv", "line 2: the target 'cat' is a word, but --task regression needs"),
        (TRAIN, "t.svm", "line 1, column 1: the label 'cat' is not a finite number"),
        (STREAM, "t.svm", "line 1, column 1: the label 'cat' is not a finite number"),
        (TRAIN, "t.parquet", "row 1: the target 'cat' is a word, but --task regression needs"),
        (TRAIN, "t.npz", "row 1: the target 'cat' is a word, but --task regression needs"),
    ],
)
def test_a_word_is_no_target_of_a_regression(by, name, place, tmp_path, capfd):
    write = put if name in ("t.csv", "t.svm") else put_arrays
    data = write(tmp_path / name, ["cat", "dog"] * 12)
    assert place in refused(capfd, *by, "--data", data, "--task", "regression")


# ------------------------------------------------------------------ rfx check
