"""Labels: those absent from training, words in messages and in --class-weight, spellings that are
preserved.
"""

import json
from decimal import Decimal

import numpy as np
import pytest
import scipy.sparse

from rfx import estimators, files, methods
from rfx.cli import main
from rfx.data import textstream
from rfx.data.libsvm import parser, svmlight
from rfx.data.stream import Stream
from rfx.data.tabular import csvtext, labelwords
from rfx.data.tabular.table import Words
from rfx.data.textstream import CsvSource, LibsvmSource
from rfx.errors import DataError
from rfx.options import LabelWeights

pytestmark = pytest.mark.usefixtures("own_folders")

TRAIN = (
    "train",
    "--method",
    "rf",
    "--n-features",
    20,
    "--gamma",
    1,
    "--lam",
    1,
    "--scaling",
    "none",
    "--seed",
    0,
)
RNG = np.random.default_rng(5)


def run(capfd, *args):
    """(exit code, standard output, standard error) of `rfx args`."""
    with pytest.raises(SystemExit) as stop:
        main([str(arg) for arg in args])
    out, err = capfd.readouterr()
    return stop.value.code, out, err


def write_libsvm(path, labels):
    """Rows of two inputs, the first of which separates the labels."""
    places = {label: place for place, label in enumerate(dict.fromkeys(labels))}
    noise = RNG.uniform(-0.3, 0.3, (len(labels), 2)).round(3)
    rows = [
        f"{label} 1:{3 * places[label] + x} 2:{y}" for label, (x, y) in zip(labels, noise.tolist())
    ]
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return path


def eval_json(capfd, *args):
    code, out, err = run(capfd, "eval", *args, "--json")
    assert code == 0, err
    return json.loads(out)["params"]["measures"], err


# ------------------------------------------------------------------ labels absent in training


@pytest.mark.parametrize(
    ("taught", "others", "unknown"),
    [
        (["-1", "+1"], ["0", "1"], "0"),
        (["1", "2", "3"], ["1", "2", "4"], "4"),
        (["a", "b"], ["a", "c"], "c"),
    ],
)
def test_labels_that_the_model_never_saw_are_named_and_count_as_wrong(
    taught, others, unknown, tmp_path, capfd
):
    model = tmp_path / "m.npz"
    assert (
        run(
            capfd,
            *TRAIN,
            "--data",
            write_libsvm(tmp_path / "t.svm", taught * 12),
            "--model",
            model,
            "--loss",
            "logistic",
        )[0]
        == 0
    )
    data = write_libsvm(tmp_path / "o.svm", others * 12)
    found, err = eval_json(capfd, model, "--data", data)
    assert f"labels that were absent in training: {unknown}; rows with them count as wrong" in err
    right = np.trace(found["confusion"]) / (12 * len(others))
    assert (
        found["accuracy"] == pytest.approx(right)
        and right <= 1 - 1 / len(others)
        and found["f1"] < 0.8
    )
    assert "auc" not in found and "log_loss" not in found
    assert "absent in training" not in run(capfd, "eval", model, "--data", tmp_path / "t.svm")[2]


def test_test_rows_of_training_with_a_label_that_was_not_trained_on(tmp_path, capfd):
    train, test = (
        write_libsvm(tmp_path / "t.svm", ["-1", "1"] * 12),
        write_libsvm(tmp_path / "o.svm", ["0", "1"] * 12),
    )
    code, _, err = run(capfd, *TRAIN, "--data", train, "--test", test)
    assert code == 0 and err.count("labels that were absent in training: 0") == 1


def test_a_label_of_many_digits_is_printed_whole(tmp_path, capfd, caplog):
    data = write_libsvm(tmp_path / "t.svm", ["1234567", "7654321"] * 12)
    assert run(capfd, *TRAIN, "--data", data, "--model", tmp_path / "m.npz")[0] == 0
    assert "1234567 and 7654321 only" in caplog.text
    assert "2: 1234567, 7654321" in run(capfd, "info", tmp_path / "m.npz")[1]
    assert (
        "true, predicted  1234567  7654321"
        in run(capfd, "eval", tmp_path / "m.npz", "--data", data)[1]
    )


def test_a_class_of_weight_zero_stays_a_class_of_the_model(tmp_path, capfd):
    data = write_libsvm(tmp_path / "t.svm", ["1", "2", "3"] * 12)
    assert (
        run(capfd, *TRAIN, "--data", data, "--class-weight", "2:0", "--model", tmp_path / "m.npz")[
            0
        ]
        == 0
    )
    assert "3: 1, 2, 3" in run(capfd, "info", tmp_path / "m.npz")[1]
    assert (
        len(
            run(capfd, "predict", tmp_path / "m.npz", data, "--decision")[1].splitlines()[0].split()
        )
        == 3
    )


# ---------------------------------------------------------- words in messages and in --class-weight


@pytest.mark.parametrize("more", [("--cv", 5), ("--calibrate", "platt"), ("--holdout", 0.2)])
def test_the_class_that_is_too_small_is_named_by_its_word(more, tmp_path, capfd):
    data = write_libsvm(tmp_path / "t.svm", ["cat", "dog"] * 12 + ["emu"])
    code, _, err = run(capfd, *TRAIN, "--data", data, *more)
    assert code == 1 and "only 1 row has the label emu; remove that row" in err


@pytest.mark.parametrize("more", [(), ("--stream", "--task", "multiclass")])
def test_class_weight_takes_words(more, tmp_path, capfd):
    lines = [
        f"{x:.3f},{y:.3f},{label}"
        for (x, y), label in zip(RNG.normal(size=(60, 2)).tolist(), ["cat", "dog", "emu, big"] * 20)
    ]
    quoted = [
        line if "emu" not in line else line.replace("emu, big", '"emu, big"') for line in lines
    ]
    data = tmp_path / "t.csv"
    data.write_text("\n".join(["a,b,animal", *quoted]) + "\n")
    train = (
        (*TRAIN[:2], "norma", "--gamma", 1, "--nu", 0.01, "--scaling", "none") if more else TRAIN
    )

    def predicted(*weights):
        code, _, err = run(
            capfd, *train, *more, "--data", data, "--model", tmp_path / "m.npz", "--force", *weights
        )
        assert code == 0, err
        return run(capfd, "predict", tmp_path / "m.npz", data)[1].splitlines()

    plain, heavy = predicted(), predicted("--class-weight", '"emu, big":1000,cat:0.001,dog:0.001')
    assert heavy.count("emu, big") > plain.count("emu, big")
    code, _, err = run(capfd, *train, *more, "--data", data, "--class-weight", "yak:2")
    assert code == 2 and "--class-weight has the label yak, which no row has (there are: " in err


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


def write_table(path, labels):
    """A CSV file, or LIBSVM text (by its name), of rows whose input separates the labels."""
    if path.suffix == ".svm":
        return write_libsvm(path, labels)
    places = {label: place for place, label in enumerate(dict.fromkeys(labels))}
    path.write_text(
        "\n".join(
            [
                "a,b,label",
                *(f"{3 * places[label]},0.{row % 7},{label}" for row, label in enumerate(labels)),
            ]
        )
        + "\n"
    )
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
    found, err = eval_json(
        capfd, model, "--data", write_table(tmp_path / f"o{suffix}", ["0", "1"] * 12)
    )
    assert found["accuracy"] == 1 and "absent in training" not in err
    found, err = eval_json(
        capfd, model, "--data", write_table(tmp_path / f"p{suffix}", ["0", "2"] * 12)
    )
    assert found["accuracy"] == 0.5 and "absent in training: 2;" in err


@pytest.mark.parametrize("suffix", [".csv", ".svm"])
def test_a_number_that_is_two_labels_is_none_of_them(suffix, tmp_path, capfd):
    data, model = write_table(tmp_path / f"t{suffix}", ["1.1", "1.10"] * 12), tmp_path / "m.npz"
    assert run(capfd, *TRAIN, "--data", data, "--model", model)[0] == 0
    _, err = eval_json(
        capfd, model, "--data", write_table(tmp_path / f"o{suffix}", ["1.1", "1.100"] * 12)
    )
    assert "absent in training: 1.100;" in err


@pytest.mark.parametrize("suffix", [".csv", ".svm"])
def test_targets_of_a_regression_are_numbers_however_they_are_spelled(suffix, tmp_path, capfd):
    data, model = (
        write_table(tmp_path / f"t{suffix}", ["1.10", "2.0", "0.5"] * 12),
        tmp_path / "m.npz",
    )
    assert run(capfd, *TRAIN, "--data", data, "--model", model, "--task", "regression")[0] == 0
    predicted = np.array(run(capfd, "predict", model, data)[1].split(), float)
    assert (
        methods.load(model).task == "regression"
        and np.abs(predicted[:3] - [1.1, 2, 0.5]).max() < 0.5
    )


def test_a_word_model_takes_no_numbers_for_the_codes_of_its_words(tmp_path, capfd):
    model = tmp_path / "m.npz"
    assert (
        run(
            capfd,
            *TRAIN,
            "--data",
            write_table(tmp_path / "t.svm", ["cat", "dog"] * 12),
            "--model",
            model,
        )[0]
        == 0
    )
    code, _, err = run(
        capfd, "eval", model, "--data", write_table(tmp_path / "o.svm", ["0", "1"] * 12)
    )
    assert code == 1 and "none of the labels" in err


@pytest.mark.parametrize(
    "text",
    [
        "1",
        "-1",
        "+1",
        "0",
        "2.5",
        "0.5",
        "0.001",
        "1.10",
        "1.0",
        "007",
        "1.",
        ".5",
        "-0",
        "1e5",
        "1e-5",
        "0.0001",
        "123456789012345",
        "1234567890123456789",
        "10000000000000001",
        "00",
        "0.10",
    ],
)
def test_the_compiled_reader_calls_no_label_plain_that_is_printed_otherwise(text):
    plain = parser.parse(f"{text} 1:1\n1 1:2\n".encode(), False).plain
    assert plain == (labelwords.printed(text) and "." not in text)


# ----------------------------------------------------- labels that float64 does not have, in arrays

BIG = [2**60 + 1, 2**60 + 2]


def write_arrays(path, labels):
    """A file of arrays (by its name) of rows whose first input separates the whole numbers
    `labels`.
    """
    column, X = (
        np.array(labels),
        np.array([[3.0 * (labels.index(label)), row % 7 / 10] for row, label in enumerate(labels)]),
    )
    if path.suffix == ".npy":
        np.save(path, np.column_stack([np.int64(10 * X), column]))
    elif path.name.startswith("sparse"):
        M = scipy.sparse.csr_matrix(X)
        np.savez(
            path,
            data=M.data,
            indices=M.indices,
            indptr=M.indptr,
            shape=M.shape,
            format=np.array("csr"),
            y=column,
        )
    elif path.suffix == ".npz":
        np.savez(
            path, X=X, y=column.astype(np.uint64) if path.name.startswith("unsigned") else column
        )
    else:
        pyarrow = pytest.importorskip("pyarrow")
        column = (
            pyarrow.array([Decimal(label) for label in labels])
            if path.name.startswith("decimal")
            else pyarrow.array(column)
        )
        column = column.dictionary_encode() if path.name.startswith("categories") else column
        pytest.importorskip("pyarrow.parquet").write_table(
            pyarrow.table({"a": X[:, 0], "b": X[:, 1], "y": column}), path
        )
    return path


ARRAYS = [
    "t.npy",
    "t.npz",
    "unsigned.npz",
    "sparse.npz",
    "t.parquet",
    "decimal.parquet",
    "categories.parquet",
]


@pytest.mark.parametrize("name", ARRAYS)
def test_whole_numbers_beyond_doubles_stay_apart_in_arrays(name, tmp_path, capfd):
    data, model, out = (
        write_arrays(tmp_path / name, BIG * 12),
        tmp_path / "m.npz",
        tmp_path / "out.svm",
    )
    code, _, err = run(capfd, *TRAIN, "--data", data, "--model", model)
    assert code == 0, err
    assert run(capfd, "predict", model, data)[1].split() == list(map(str, BIG * 12))
    found, _ = eval_json(capfd, model, "--data", data)
    assert found["accuracy"] == 1 and found["labels"] == list(map(str, BIG))
    for words in (
        ["convert", data, out],
        ["featurize", data, "-n", 3, "-o", out],
        ["featurize", data, "--model", model, "-o", out],
    ):
        assert run(capfd, *words, "--force")[0] == 0
        assert [line.split()[0] for line in out.read_text().splitlines()] == list(
            map(str, BIG * 12)
        )


@pytest.mark.parametrize("suffix", [".csv", ".svm"])
@pytest.mark.parametrize(
    "labels",
    [["1.1", "1.10", "2.0"], ["007", "7"], ["10000000000000000001", "10000000000000000002"]],
)
def test_rows_that_are_written_anew_keep_the_spelling_of_labels(labels, suffix, tmp_path, capfd):
    data, other, out = (
        write_table(tmp_path / f"t{suffix}", labels * 5),
        write_table(tmp_path / f"o{suffix}", [*labels, "5.50"]),
        tmp_path / "out",
    )
    for words in (
        ["convert", data, out],
        ["featurize", data, "-n", 3, "-o", out],
        ["featurize", data, "-n", 3, "--train", data, "-o", out],
    ):
        assert run(capfd, *words, "--force")[0] == 0
        assert [line.split()[0] for line in out.read_text().splitlines()] == labels * 5
    assert run(capfd, "convert", other, out, "--train", data, "--force")[0] == 0
    assert [line.split()[0] for line in out.read_text().splitlines()] == [*labels, "5.50"]


def test_featurize_says_which_number_a_word_became(tmp_path, capfd):
    data, out = write_table(tmp_path / "t.svm", ["cat", "dog"] * 5), tmp_path / "out"
    assert run(capfd, "featurize", data, "-n", 3, "-o", out) == (
        0,
        "",
        "label 0\tcat\nlabel 1\tdog\n",
    )


@pytest.mark.parametrize(
    "labels",
    [
        np.array(BIG * 20),
        np.array([2**63 + 1, 2**63 + 3] * 20, np.uint64),
        np.array([1, BIG[0]] * 20),
    ],
)
def test_estimators_keep_whole_numbers_beyond_doubles(labels, tmp_path, capfd):
    X = np.array([[3.0 * (row % 2), row % 7 / 10] for row in range(40)])
    fitted = estimators.RFClassifier(n_features=20, gamma=1, lam=1).fit(X, labels)
    fitted.save(tmp_path / "m.npz")
    again = estimators.load(tmp_path / "m.npz")
    assert (
        again.classes_.dtype == labels.dtype
        and (again.predict(X) == labels).all()
        and (fitted.predict(X) == labels).all()
    )
    svmlight.write(
        tmp_path / "t.svm",
        X,
        Words(np.arange(40, dtype=np.int32) % 2, list(map(str, labels[:2].tolist()))),
    )
    assert run(capfd, "predict", tmp_path / "m.npz", tmp_path / "t.svm")[1].split() == list(
        map(str, labels.tolist())
    )


def test_words_of_numbers_in_an_array_keep_their_spelling(tmp_path, capfd):
    labels = ["1.10", "1.1"] * 12
    np.save(
        tmp_path / "t.npy",
        np.array(
            [[str(3 * (label == "1.1")), f"0.{row % 7}", label] for row, label in enumerate(labels)]
        ),
    )
    code, _, err = run(
        capfd,
        *TRAIN,
        "--data",
        tmp_path / "t.npy",
        "--task",
        "binary",
        "--model",
        tmp_path / "m.npz",
    )
    assert code == 0, err
    assert run(capfd, "predict", tmp_path / "m.npz", tmp_path / "t.npy")[1].split() == labels


# ------------------------------------------------------------------ rows that are not all in memory

STREAM = (
    "train",
    "--method",
    "norma",
    "--gamma",
    1,
    "--nu",
    0.01,
    "--scaling",
    "none",
    "--seed",
    0,
    "--epochs",
    3,
    "--stream",
)
STREAMED = [
    *SPELLED,
    (["1e0", "1", "2"], None),
    (["-0", "0", "1"], None),
    (["cat", "dog"], None),
    (["+1", "1", "-1"], None),
]


@pytest.mark.parametrize("suffix", [".csv", ".svm"])
@pytest.mark.parametrize(("labels", "task"), STREAMED)
def test_a_stream_has_the_classes_of_training_in_memory(labels, task, suffix, tmp_path, capfd):
    data, more = write_table(tmp_path / f"t{suffix}", labels * 12), ("--task", task) if task else ()
    said = []
    for train, model in ((TRAIN, tmp_path / "m.npz"), (STREAM, tmp_path / "s.npz")):
        code, _, err = run(capfd, *train, "--data", data, "--model", model, *more)
        assert code == 0, err
        said.append((methods.load(model).schema.labels, methods.load(model).task))
    assert said[0] == said[1]
    assert set(run(capfd, "predict", tmp_path / "s.npz", data)[1].split()) <= {
        label.removeprefix("+") for label in labels
    }


@pytest.mark.parametrize("source", [LibsvmSource, CsvSource])
@pytest.mark.parametrize(
    ("first", "later"),
    [
        ("12", "1.0"),
        (["1.0", "2"], "1.00"),
        ("ab", "c"),
        ("12", "10000000000000000001"),
        ("12", "cat"),
    ],
)
def test_what_is_read_once_refuses_a_label_that_it_could_not_know(
    source, first, later, tmp_path, monkeypatch
):
    suffix = ".svm" if source is LibsvmSource else ".csv"
    data = write_table(tmp_path / f"t{suffix}", [*first] * 40 + [later])

    def rows(chunk):
        monkeypatch.setattr(files, "standard_input", lambda: open(data, "rb"))
        found = (
            LibsvmSource("-", 2, chunk=chunk)
            if source is LibsvmSource
            else CsvSource("-", chunk=chunk, task="multiclass")
        )
        if source is LibsvmSource:
            found.learn("multiclass")
        return list(Stream(found, 8))

    with pytest.raises(
        DataError,
        match=f"label '{later}'|'{later}', which is not a number|'{later}' is not a number",
    ):
        monkeypatch.setattr(textstream, "HEAD", 200)
        monkeypatch.setattr(csvtext, "HEAD", 200)
        rows(300)


def test_a_stream_of_numbers_stays_one(tmp_path):
    data = write_table(tmp_path / "t.svm", [f"{x:.2f}" for x in np.linspace(0, 30, 2000)])
    source = LibsvmSource(data, chunk=2000)
    assert source.learn(None) == "regression" and source.n_inputs == 2
    np.testing.assert_array_equal(
        np.concatenate([y for _, y, _ in Stream(source, 100)]), np.linspace(0, 30, 2000).round(2)
    )


@pytest.fixture(scope="module")
def scheduler():
    pytest.importorskip("distributed")
    from rfx.distributed import cluster

    with cluster.connect("local:2") as client:
        yield client.scheduler.address


@pytest.mark.parametrize("suffix", [".csv", ".svm", ".parquet"])
@pytest.mark.parametrize(
    "labels", [["1.1", "1.10", "2.0"], ["007", "7"], ["cat", "dog"], list(map(str, BIG))]
)
def test_workers_have_the_classes_of_training_in_memory(labels, suffix, scheduler, tmp_path, capfd):
    if suffix == ".parquet":
        labels = BIG
        data = write_arrays(tmp_path / "t.parquet", labels * 30)
    else:
        data = write_table(tmp_path / f"t{suffix}", labels * 30)
    task = ("--task", "multiclass" if len(labels) > 2 else "binary")
    code, _, err = run(
        capfd,
        *TRAIN,
        "--data",
        data,
        "--model",
        tmp_path / "m.npz",
        "--scheduler",
        scheduler,
        "--parts",
        3,
        *task,
    )
    assert code == 0, err
    assert run(capfd, "predict", tmp_path / "m.npz", data)[1].split() == list(map(str, labels * 30))


# ------------------------------------------------------------------ words where numbers are needed


@pytest.mark.parametrize("suffix", [".csv", ".svm", ".parquet", ".npz"])
@pytest.mark.parametrize("train", [TRAIN, STREAM])
def test_a_word_is_no_target_of_a_regression(suffix, train, tmp_path, capfd):
    data = tmp_path / f"t{suffix}"
    if suffix == ".npz":
        np.savez(data, X=np.arange(6.0).reshape(3, 2), y=np.array(["a", "cat", "b"]))
    elif suffix == ".parquet":
        pyarrow = pytest.importorskip("pyarrow")
        pytest.importorskip("pyarrow.parquet").write_table(
            pyarrow.table({"a": [1.0, 2.0], "y": ["cat", "dog"]}), data
        )
    else:
        write_table(data, ["cat", "dog"] * 12)
    if train is STREAM and suffix not in (".csv", ".svm"):
        return
    code, _, err = run(capfd, *train, "--data", data, "--task", "regression")
    place = {".csv": "line 2", ".svm": "line 1"}.get(suffix, "row 1")
    word = "a" if suffix == ".npz" else "cat"
    wrong = f"{place}: the target '{word}' is a word, but --task regression needs"
    if suffix == ".svm":
        wrong = "line 1, column 1: the label 'cat' is not a finite number"
    assert code == 1 and wrong in err


def test_words_of_numbers_are_targets_of_a_regression(tmp_path, capfd):
    labels = ["1.10", "2.0", "0.5"] * 12
    np.savez(
        tmp_path / "t.npz",
        X=np.array([[3.0 * (row % 3), row % 7 / 10] for row in range(36)]),
        y=np.array(labels),
    )
    assert (
        run(
            capfd,
            *TRAIN,
            "--data",
            tmp_path / "t.npz",
            "--task",
            "regression",
            "--model",
            tmp_path / "m.npz",
        )[0]
        == 0
    )
    predicted = np.array(
        run(capfd, "predict", tmp_path / "m.npz", tmp_path / "t.npz")[1].split(), float
    )
    assert (
        methods.load(tmp_path / "m.npz").schema.labels is None
        and np.abs(predicted[:3] - [1.1, 2, 0.5]).max() < 0.5
    )


# ------------------------------------------------------------------ rfx check


@pytest.mark.parametrize(
    ("labels", "shown"),
    [
        (["cat", "dog"], "cat (12), dog (12)"),
        (["1.1", "1.10"], "1.1 (12), 1.10 (12)"),
        (["+1", "-1"], "-1 (12), 1 (12)"),
        (list(map(str, BIG)), f"{BIG[0]} (12), {BIG[1]} (12)"),
    ],
)
def test_check_tells_the_labels_that_training_would_have(labels, shown, tmp_path, capfd):
    code, out, _ = run(capfd, "check", write_libsvm(tmp_path / "t.svm", labels * 12))
    assert code == 0 and out.endswith(f"24 rows, 2 columns, labels {shown}\n")


def test_check_and_train_refuse_the_same_label_among_words(tmp_path, capfd):
    data = tmp_path / "t.svm"
    data.write_text("cat 1:2\n\ndog 1:x\n3 1:2\n1:3\n")
    code, out, _ = run(capfd, "check", data)
    assert code == 1 and [line.split(":", 1)[1] for line in out.splitlines()] == [
        "3:7: the value 'x' is not a finite number",
        "4:1: the label '3' is not a word, unlike the previous labels",
        "5:1: the label '1:3' is not a word, unlike the previous labels",
    ]
    assert "line 3, column 7: the value 'x'" in run(capfd, *TRAIN, "--data", data)[2]


@pytest.mark.parametrize("suffix", [".csv", ".svm"])
def test_a_plus_sign_is_no_part_of_a_spelling(suffix, tmp_path, capfd):
    data, model = write_table(tmp_path / f"t{suffix}", ["+1", "1", "-1.0"] * 12), tmp_path / "m.npz"
    assert run(capfd, *TRAIN, "--data", data, "--model", model)[0] == 0
    assert methods.load(model).schema.labels == ["-1.0", "1"]
    assert eval_json(capfd, model, "--data", data)[0]["labels"] == ["-1.0", "1"]


# ---------------------------------------------------------------- labels with signs, of short types

PERCENT = ["10%", "10.0%", "20%"]


def write_words(path, labels):
    """A file of rows (by its name) whose first input separates the words `labels`."""
    first = [3.0 * labels.index(label) for label in labels]
    second = [row % 7 / 10 for row in range(len(labels))]
    if path.suffix == ".npz":
        np.savez(path, X=np.column_stack([first, second]), y=np.array(labels))
    elif path.suffix == ".parquet":
        pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        parquet.write_table(pyarrow.table({"a": first, "b": second, "y": labels}), path)
    else:
        lines = "".join(f"{a},{b},{y}\n" for a, b, y in zip(first, second, labels))
        path.write_text("a,b,y\n" + lines)
    return path


@pytest.mark.parametrize("name", ["t.csv", "t.npz", "t.parquet"])
def test_labels_with_a_sign_keep_their_spelling(name, tmp_path, capfd):
    data, model = write_words(tmp_path / name, PERCENT * 12), tmp_path / "m.npz"
    code, _, err = run(capfd, *TRAIN, "--data", data, "--model", model)
    assert code == 0 and "same number in several spellings (10%, 10.0%)" in err, err
    assert "read as numbers" not in err
    assert run(capfd, "predict", model, data)[1].split() == PERCENT * 12
    assert eval_json(capfd, model, "--data", data)[0]["labels"] == PERCENT
    other = write_words(tmp_path / f"o{data.suffix}", [*PERCENT, "20.0%"])
    found = eval_json(capfd, model, "--data", other)[0]
    assert found["labels"] == PERCENT  # 20.0% can only be 20%
    more = ("--class-weight", "10.0%:0", "--force")
    assert run(capfd, *TRAIN, "--data", data, "--model", model, *more)[0] == 0
    assert "10.0%" not in run(capfd, "predict", model, data)[1].split()


def test_labels_with_a_sign_are_those_of_a_stream_and_numbers_of_a_regression(tmp_path, capfd):
    data, model = write_words(tmp_path / "t.csv", PERCENT * 12), tmp_path / "s.npz"
    code, _, err = run(capfd, *STREAM, "--data", data, "--model", model)
    assert code == 0, err
    assert methods.load(model).schema.labels == PERCENT
    for words in (TRAIN, STREAM):
        more = ("--task", "regression", "--model", model, "--force")
        assert run(capfd, *words, "--data", data, *more)[0] == 0
        assert methods.load(model).schema.labels is None
        assert methods.load(model).schema.target_form.sign == "%"
