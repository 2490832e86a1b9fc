"""train, eval, predict, featurize and methods: what they print, write and refuse, and their exit
codes.
"""

import json
import os
import signal
import subprocess
import sys
import time

import click
import numpy as np
import pytest
from shell import printed, refused, run

from rfx import data, methods
from rfx.cli import COMMANDS, cli
from rfx.data.libsvm import svmlight
from rfx.data.transforms.scaling import Scaler
from rfx.features import sample
from rfx.features.binning import sample_grids
from rfx.operators.binned import BinnedMatrix
from rfx.records import results

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (240, 3))
LABELS = np.where(np.linalg.norm(X, axis=1) > 1, 1.0, -1.0)


@pytest.fixture
def files(tmp_path):
    svmlight.write(tmp_path / "train.txt", X[:200], LABELS[:200])
    svmlight.write(tmp_path / "test.txt", X[200:], LABELS[200:])
    return tmp_path


@pytest.mark.parametrize("words", [("--method", "sparse-rf"), ()])
def test_without_data_one_sentence_says_how_to_go_on(capfd, words):
    code, out, err = run(capfd, "train", *words)
    (line,) = err.strip().splitlines()
    assert (code, out) == (2, "")
    assert line.endswith(
        f"try {' '.join(('rfx', 'train', *words))} --data breast_cancer, which needs no download"
    )


def trained(capfd, files, *more, method="rf"):
    fast = ("--n-features", 100) if method != "kernel" else ()
    return run(
        capfd,
        "train",
        "--method",
        method,
        "--data",
        files / "train.txt",
        "--gamma",
        2,
        "--model",
        files / "m.npz",
        *fast,
        *more,
    )


@pytest.mark.parametrize("method", ["kernel", "rf", "sparse-rf"])
def test_train_eval_predict(method, files, capfd):
    code, out, err = trained(
        capfd,
        files,
        "--test",
        files / "test.txt",
        "--json",
        "--results",
        files / "r.csv",
        method=method,
    )
    assert (code, err) == (0, "")
    row = json.loads(out)
    assert (
        row["method"] == method
        and row["metric"] == "accuracy"
        and row["score"] > 0.8
        and row["converged"] is True
    )
    assert (
        json.loads(
            printed(
                capfd,
                "eval",
                files / "m.npz",
                "--data",
                files / "test.txt",
                "--results",
                files / "r.csv",
                "--json",
            )
        )["score"]
        == row["score"]
    )
    rows = results.read(files / "r.csv")
    assert (
        len(rows) >= 1
        and rows[-1]["n_test"] == 40
        and rows[-1]["params"]["kernel_params"] == {"gamma": 2.0}
    )
    assert np.mean(
        np.array(printed(capfd, "predict", files / "m.npz", files / "test.txt").split(), float)
        == LABELS[200:]
    ) == pytest.approx(row["score"])
    code, out, _ = run(capfd, "predict", "--decision", files / "m.npz", files / "test.txt")
    assert np.mean(
        np.where(np.array(out.split(), float) > 0, 1, -1) == LABELS[200:]
    ) == pytest.approx(row["score"])


def test_train_for_people(files, capfd):
    code, out, err = trained(capfd, files)
    assert (code, err) == (0, "")
    assert "train.txt" in out and "100 of 100 features" in out and "converged" in out


def test_not_converged_exits_3(files, capfd):
    code, out, err = trained(capfd, files, "--max-iter", 1, "--tol", 1e-9)
    assert code == 3 and "DID NOT CONVERGE" in out and "did not converge; try a larger" in err


def test_time_up_is_not_said_to_want_iterations(files, capfd):
    code, _, err = trained(
        capfd, files, "--timeout", 1e-6, "--lam", 1e-3, "--tol", 1e-12, method="sparse-rf"
    )
    assert code == 3
    assert (
        err.splitlines()[-1]
        == "rfx: the solver did not converge within --timeout; try a larger one"
    )


def test_labels_are_printed_exactly(files, capfd):
    labels = np.where(LABELS > 0, 20240000001, 20240000002)
    svmlight.write(files / "train.txt", X[:200], labels[:200])
    assert trained(capfd, files)[0] == 0
    assert set(printed(capfd, "predict", files / "m.npz", files / "test.txt").split()) == {
        "20240000001",
        "20240000002",
    }
    _, out, _ = run(capfd, "predict", "--decision", files / "m.npz", files / "test.txt")
    assert out.split() == list(
        map(repr, methods.load(files / "m.npz").decision_function(X[200:]).tolist())
    )


def test_more_rounds_than_features_are_one_for_each(files, capfd):
    code, out, _ = trained(capfd, files, "--lam", 1, "--rounds", "1e9", method="sparse-rf")
    most = trained(capfd, files, "--lam", 1, "--rounds", "100", method="sparse-rf")[1]
    assert code == 0 and out.splitlines()[2:4] == most.splitlines()[2:4]


def test_close_lambdas_get_a_file_and_a_name_each(files, capfd):
    code, out, err = trained(capfd, files, "--lam-path", "1.0003:1:4")
    assert (code, err) == (0, "")
    names = ["1.0003", "1.0002", "1.0001", "1"]
    assert [line.split()[0] for line in out.splitlines()[1:]] == names
    assert {path.name for path in files.glob("m-*")} == {f"m-lam{name}.npz" for name in names}


def test_lam_path(files, capfd):
    args = [
        "train",
        "--method",
        "sparse-rf",
        "--data",
        files / "train.txt",
        "--test",
        files / "test.txt",
        "--gamma",
        2,
        "--n-features",
        100,
        "--lam-path",
        "10:1:3",
        "--model",
        files / "m.npz",
        "--results",
        files / "r.csv",
    ]
    code, out, err = run(capfd, *args)
    assert (code, err) == (0, "") and len(out.splitlines()) == 4 and "nonzeros" in out
    rows = results.read(files / "r.csv")
    assert [row["lam"] for row in rows] == pytest.approx([10, 10**0.5, 1]) and len(
        {row["key"] for row in rows}
    ) == 3
    assert sorted(path.name for path in files.glob("m-*.npz")) == [
        "m-lam1.npz",
        "m-lam10.npz",
        "m-lam3.162.npz",
    ]
    code, out, _ = run(capfd, "eval", files / "m-lam1.npz", "--data", files / "test.txt", "--json")
    assert (
        code == 0
        and json.loads(out)["score"] == rows[-1]["score"]
        and json.loads(out)["lam"] == pytest.approx(1)
    )


def test_same_seed_same_file(files, capfd):
    models = []
    for solver in ("rfx", "liblinear", "liblinear"):
        assert trained(capfd, files, "--solver", solver, "--seed", 3)[0] == 0
        with np.load(files / "m.npz") as arrays:
            models.append({name: arrays[name] for name in arrays.files if name != "header"})
    for name in models[1]:
        assert np.array_equal(models[1][name], models[2][name])


def test_featurize_is_what_rf_sees(files, capfd):
    code, _, err = run(
        capfd,
        "featurize",
        files / "train.txt",
        "--map",
        "fourier",
        "-n",
        20,
        "--gamma",
        2,
        "-o",
        files / "z.txt",
    )
    assert (code, err) == (0, "")
    Z, y = svmlight.read(files / "z.txt")
    assert Z.shape == (200, 20) and np.array_equal(y, LABELS[:200])
    trained(capfd, files)
    assert (
        run(
            capfd,
            "featurize",
            files / "train.txt",
            "--model",
            files / "m.npz",
            "-o",
            files / "phi.txt",
        )[0]
        == 0
    )
    phi, _ = svmlight.read(files / "phi.txt")
    # the first features do not depend on D; those of the model are not divided by sqrt(n)
    np.testing.assert_allclose(phi[:, :20].toarray(), Z.toarray() * np.sqrt(20), atol=1e-5)


def test_featurize_reads_tables_as_training_does(tmp_path, capfd):
    (tmp_path / "a.csv").write_text(
        "y,job,size\n1,clerk,170\n-1,smith,\n1,clerk,181\n-1,smith,160\n"
    )
    (tmp_path / "b.csv").write_text("size,y,job\n165,1,smith\n,1,clerk\n")
    same = ("--target", "y", "--missing", "mean")
    for name in "ab":
        assert (
            run(
                capfd,
                "convert",
                tmp_path / f"{name}.csv",
                tmp_path / f"{name}.txt",
                *same,
                "--train",
                tmp_path / "a.csv",
            )[0]
            == 0
        )
    assert (
        run(
            capfd,
            "train",
            "--method",
            "rf",
            "--n-features",
            6,
            "--lam",
            1,
            "--data",
            tmp_path / "a.csv",
            *same,
            "--model",
            tmp_path / "m",
        )[0]
        == 0
    )
    for name, more, plain in (
        ("a", same, ()),
        ("b", (*same, "--train", tmp_path / "a.csv"), ("--train", tmp_path / "a.txt")),
        ("b", ("--model", tmp_path / "m"), ("--model", tmp_path / "m")),
    ):
        assert run(
            capfd,
            "featurize",
            tmp_path / f"{name}.csv",
            "-n",
            6,
            *more,
            "-o",
            tmp_path / "table",
            "--force",
        )[::2] == (0, "")
        if "--model" not in more:
            assert (
                run(
                    capfd,
                    "featurize",
                    tmp_path / f"{name}.txt",
                    "-n",
                    6,
                    *plain,
                    "-o",
                    tmp_path / "text",
                    "--force",
                )[0]
                == 0
            )
            assert (tmp_path / "table").read_bytes() == (tmp_path / "text").read_bytes()
        else:
            Z, _ = svmlight.read(tmp_path / "table")
            method = methods.load(tmp_path / "m")
            rows, _ = svmlight.read(tmp_path / "b.txt")
            np.testing.assert_allclose(
                Z.toarray(),
                method.model.map.transform(method.preprocessing.scaler.transform(rows.toarray())),
                atol=1e-5,
            )


def test_featurize_writes_the_bins_of_random_binning(files, capfd):
    binning = ("--map", "binning", "-n", 30, "--gamma", 2)
    assert run(capfd, "featurize", files / "train.txt", *binning, "-o", files / "a.txt")[::2] == (
        0,
        "",
    )
    Z, y = svmlight.read(files / "a.txt")
    assert np.array_equal(y, LABELS[:200]) and np.all(np.diff(Z.indptr) == 30)
    np.testing.assert_allclose(Z.data, 1 / np.sqrt(30), rtol=1e-15)
    # for the method rb: the same kernel matrix of collisions
    scaled = Scaler.fit(X[:200], "minmax01").transform(X[:200])
    ids, bins = sample_grids("laplacian", 3, 30, 0, gamma=2.0).number(scaled)
    assert np.array_equal(Z.toarray(), BinnedMatrix(ids, bins.starts).to_array())
    # test rows get the columns of the training rows, and nothing for a bin without training rows
    for train in ((), ("--train", files / "train.txt")):
        assert (
            run(
                capfd,
                "featurize",
                files / "test.txt",
                *train,
                *binning,
                "--unscaled",
                "-o",
                files / "b.txt",
            )[0]
            == 0
        )
        T, _ = svmlight.read(files / "b.txt", n_features=None if not train else Z.shape[1])
        assert set(T.data) == {1.0}
    found = sample_grids("laplacian", 3, 30, 0, gamma=2.0).find(
        Scaler.fit(X[:200], "minmax01").transform(X[200:]), bins
    )
    assert np.any(found < 0) and np.array_equal(np.diff(T.indptr), np.sum(found >= 0, axis=0))
    assert np.array_equal(T.indices, (found + bins.starts[:-1, None]).T[found.T >= 0])


def test_featurize_by_a_model_writes_the_bins_that_have_a_weight(files, capfd):
    for method in ("rb", "sparse-rb"):
        options = (
            "--method",
            method,
            "--gamma",
            "2",
            "--n-grids",
            "40",
            "--lam",
            "1",
            "--model",
            files / "rb.npz",
        )
        assert run(capfd, "train", "--data", files / "train.txt", *options)[0] == 0
        assert (
            run(
                capfd,
                "featurize",
                files / "test.txt",
                "--model",
                files / "rb.npz",
                "-o",
                files / "z.txt",
            )[0]
            == 0
        )
        model = methods.load(files / "rb.npz")
        Z, _ = svmlight.read(files / "z.txt", n_features=len(model.model.coef))
        np.testing.assert_allclose(
            Z @ model.model.coef[:, 0], model.decision_function(X[200:]), atol=1e-12
        )


def test_featurize_learns_the_scaling_on_the_rows_of_train(files, capfd):
    gaussian = ("--map", "gaussian", "-n", 5, "--train", files / "train.txt")
    assert run(capfd, "featurize", files / "test.txt", *gaussian, "-o", files / "b.txt")[0] == 0
    scaled = Scaler.fit(X[:200], "minmax01").transform(X[200:], dtype=np.float32)
    expected = sample("gaussian", 3, 5, 0, gamma=0.5).transform(scaled) / np.sqrt(5)
    np.testing.assert_allclose(svmlight.read(files / "b.txt")[0].toarray(), expected, atol=1e-6)


def test_featurize_learns_on_a_data_set_s_own_training_rows(files, capfd):
    name = "sphere:n=60,d=3,seed=1"
    split = data.load(name)
    svmlight.write(files / "own.txt", split.X_train, split.y_train)
    svmlight.write(files / "rows.txt", split.X_test, split.y_test)
    for source, more, out in (
        (name, (), "a.txt"),
        (files / "rows.txt", ("--train", files / "own.txt"), "b.txt"),
    ):
        assert run(capfd, "featurize", source, "-n", 5, *more, "-o", files / out)[0] == 0
    one, two = (svmlight.read(files / out)[0].toarray() for out in ("a.txt", "b.txt"))
    np.testing.assert_allclose(one, two, atol=1e-6)


def test_pipes(files):
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    rfx = [sys.executable, "-m", "rfx"]
    text = (files / "train.txt").read_bytes()
    model = str(files / "p.npz")
    done = subprocess.run(
        [
            *rfx,
            "train",
            "--method",
            "rf",
            "--data",
            "-",
            "--n-features",
            "50",
            "--gamma",
            "2",
            "--model",
            model,
        ],
        input=text,
        capture_output=True,
        env=environment,
    )
    assert done.returncode == 0, done.stderr
    done = subprocess.run(
        [*rfx, "predict", model], input=text, capture_output=True, env=environment
    )
    assert done.returncode == 0 and len(done.stdout.split()) == 200
    done = subprocess.run(
        f"{' '.join(rfx)} featurize - -n 2000 -o - < {files / 'train.txt'} | head -c 100",
        shell=True,
        capture_output=True,
        env=environment,
    )
    assert len(done.stdout) == 100 and b"Traceback" not in done.stderr


REFUSALS = [
    (
        ["train", "--method", "rf", "--data", "{}/train.txt", "--rounds", "3"],
        2,
        "method rf has no option --rounds (it has: --task",
    ),
    (
        ["train", "--method", "svr", "--data", "{}/train.txt"],
        2,
        "method 'svr' is unknown (choose one of: auto, block, boosting, doubly-sgd",
    ),
    (
        ["train", "--method", "rf", "--data", "{}/train.txt", "--gamma", "0"],
        2,
        "--gamma is '0'; it must be a number above 0 or one of paper",
    ),
    (["train", "--method", "rf", "--data", "nothing.txt"], 2, "nothing.txt"),
    (["train", "--method", "rf", "--data", "{}/bad.txt"], 1, "line 2"),
    (
        ["train", "--method", "rf", "--data", "{}/train.txt", "--test", "{}/wide.txt", "--strict"],
        1,
        "9",
    ),
    (
        ["train", "--method", "rf", "--data", "{}/bad.txt", "--model", "{}/no/m.npz"],
        1,
        "can't be written",
    ),
    (
        ["train", "--method", "rf", "--data", "{}/bad.txt", "--model", ""],
        1,
        'model "" can\'t be written: a file name is required',
    ),
    (
        ["train", "--method", "rf", "--data", "{}/bad.txt", "--results", "{}/test.txt"],
        1,
        "test.txt is not an rfx results file",
    ),
    (
        ["train", "--method", "rf", "--data", "{}/bad.txt", "--results", ""],
        1,
        "can't be written as a results file",
    ),
    (
        ["eval", "{}/no.npz", "--data", "{}/bad.txt", "--results", "{}/test.txt"],
        1,
        "test.txt is not an rfx results file",
    ),
    (["train", "--method", "rf", "--data", "."], 1, "rfx: . can't be read: Is a directory"),
    (["train", "--method", "rf", "--data", ""], 1, 'rfx: "" can\'t be read: No such file'),
    (
        ["train", "--method", "rf", "--data", "{}/train.txt", "--threads", "x"],
        2,
        "--threads is 'x'; it must be a whole number",
    ),
    (["featurize", "{}/train.txt", "-n", "2", "-o", "{}"], 1, "can't be written: Is a directory"),
    (
        ["featurize", "{}/train.txt", "-n", "2", "-o", ""],
        1,
        'rfx: "" can\'t be written: a file name is required',
    ),
    (["eval", "{}/m.npz", "--data", "{}/wide.txt", "--strict"], 1, "trained on 3"),
    (["predict", "{}/m.npz", "{}/wide.txt", "--strict"], 1, "trained on 3"),
    (["predict", "{}/train.txt", "{}/test.txt"], 1, "is not a model file of rfx"),
    (["featurize", "{}/train.txt", "--map", "cubic"], 2, "'cubic'"),
    (
        ["featurize", "{}/train.txt", "--map", "binning", "-n", "0"],
        2,
        "--n-features is 0; it must be 1 or more",
    ),
    (["featurize", "{}/wide.txt", "--train", "{}/train.txt"], 1, "9"),
    (
        ["featurize", "{}/test.txt", "--model", "{}/m.npz", "--train", "{}/train.txt"],
        2,
        "use only one of them",
    ),
    (
        ["featurize", "{}/train.txt", "--map", "stump", "--gamma", "4"],
        2,
        "kernel 'stump' has no gamma",
    ),
    (
        ["featurize", "{}/train.txt", "--map", "perceptron", "--features", "pairs"],
        2,
        "which is for the kernels gaussian, laplacian",
    ),
    (
        ["featurize", "{}/train.txt", "--map", "binning", "--features", "pairs"],
        2,
        "does not apply to binning",
    ),
    (
        ["featurize", "{}/train.txt", "-n", "7", "--features", "pairs"],
        2,
        "--n-features is 7, but --features pairs needs an even number",
    ),
    (
        ["train", "--method", "rf", "--data", "{}/train.txt", "--lam", "3", "--lam-path", "9:1:3"],
        2,
        "--lam is 3.0, which has no effect with --lam-path",
    ),
    (
        ["train", "--method", "rf", "--data", "{}/train.txt", "--test", "{}/strange.txt"],
        1,
        "none of the labels (7) is among the model's",
    ),
    (
        ["eval", "{}/m.npz", "--data", "{}/strange.txt"],
        1,
        "none of the labels (7) is among the model's classes (-1, 1)",
    ),
    (
        ["train", "--method", "rf", "--data", "{}/train.txt", "--gamma", "1e300"],
        1,
        "are not finite in float32",
    ),
    (
        ["train", "--method", "rf", "--data", "{}/train.txt", "--sample-weight", ""],
        1,
        'weights "" can\'t be read: No such file',
    ),
    (
        [
            "train",
            "--method",
            "rf",
            "--data",
            "{}/train.txt",
            "--gamma",
            "1",
            "--lam",
            "1",
            "--scheduler",
            "",
        ],
        2,
        "--scheduler is ''",
    ),
    (
        ["train", "--method", "doubly-sgd", "--data", "{}/train.txt", "--stream", "--test", ""],
        1,
        'rfx: "" can\'t be read: No such file',
    ),
    (
        ["train", "--method", "doubly-sgd", "--data", "{}/empty.txt", "--stream"],
        1,
        "empty.txt has no rows to learn from",
    ),
    (
        ["tune", "--method", "rf", "--data", "{}/train.txt", "--budget-seconds", "nan"],
        2,
        "--budget-seconds is 'nan'",
    ),
    (["datasets", "--paper", ""], 2, "paper '' is unknown"),
    (["fetch", "--paper", ""], 2, "paper '' is unknown"),
    (["table", "summary", "--results", ""], 1, "can't be read as a results file"),
    (["figure", "yen2014-figure1", "--results", ""], 1, "can't be read as a results file"),
    (
        ["table", "summary", "--trace", "{}/none.csv"],
        1,
        "none.csv can't be read as a trace file: it does not exist",
    ),
    (["methods", "svr"], 2, "method 'svr' is unknown"),
    (["methods", "randm-binning"], 2, "is unknown; did you mean random-binning or"),
    (
        ["tune", "--method", "learned-kernel", "--data", "x"],
        2,
        "method 'lkrf' can't be searched; did you mean rf",
    ),
    (["trian"], 2, "there is no command 'trian'; did you mean train?"),
    (
        ["train", "--method", "spare-rf", "--data", "x"],
        2,
        "method 'spare-rf' is unknown; did you mean sparse-rf",
    ),
    (
        ["train", "--method", "rf", "--kernal", "x", "--data", "x"],
        2,
        "method rf has no option --kernal; did you mean --kernel?",
    ),
    (
        ["train", "--method", "rf", "--data", "x", "--traget", "y"],
        2,
        "method rf has no option --traget; did you mean --target or",
    ),
    (
        ["train", "--method", "rf", "--kernel", "gausian", "--data", "x"],
        2,
        "did you mean gaussian?",
    ),
]


@pytest.mark.parametrize("args, expected, message", REFUSALS)
def test_refusals_are_one_sentence(args, expected, message, files, capfd):
    (files / "bad.txt").write_text("1 1:0.5\n1 1:x\n")
    (files / "strange.txt").write_text("7 1:0.5\n7 2:1\n")
    (files / "empty.txt").write_text("")
    (files / "wide.txt").write_text("1 1:0.5 9:1\n-1 2:1\n")
    if "m.npz" in args[1:2][0] if len(args) > 1 else False:
        trained(capfd, files)
    code, out, err = run(capfd, *[arg.format(files) for arg in args])
    assert code == expected and message in err and out == ""
    assert "Traceback" not in err and len(err.strip().splitlines()) <= 4
    assert not (files / "no").exists()


_READERS = [
    ["train", "--method", "rf", "--data", "{}"],
    ["train", "--method", "rf", "--data", "train.txt", "--test", "{}"],
    ["train", "--method", "rf", "--data", "train.txt", "--sample-weight", "{}"],
    ["train", "--method", "doubly-sgd", "--stream", "--data", "{}"],
    ["tune", "--method", "rf", "--data", "{}"],
    ["predict", "{}", "train.txt"],
    ["eval", "{}", "--data", "train.txt"],
    ["explain", "{}", "--data", "train.txt"],
    ["info", "{}"],
    ["export", "{}", "--to", "json"],
    ["check", "{}"],
    ["convert", "{}", "out.txt"],
    ["featurize", "{}", "-n", "2"],
    ["featurize", "train.txt", "-n", "2", "--model", "{}"],
    ["run", "{}", "--results", "none.csv"],
    ["table", "summary", "--results", "{}"],
    ["figure", "yen2014-figure1", "--results", "{}"],
    ["compare", "{}", "{}"],
    ["report", "--results", "{}", "--output", "page"],
    ["fetch", "{}", "--offline"],
]


@pytest.mark.parametrize(
    "bad",
    [
        "missing",
        "folder",
        "junk",
        "cut.npz",
        "/dev/null",
        "",
        "-",
        os.fsdecode(b"\xff.csv"),
        "empty",
    ],
)
def test_what_no_command_can_read_is_refused_by_all(bad, files, capfd, monkeypatch):
    monkeypatch.chdir(files)
    monkeypatch.setattr("sys.stdin", open(os.devnull))
    (files / "folder").mkdir()
    (files / "empty").write_bytes(b"")
    (files / "junk").write_bytes(np.random.default_rng(0).bytes(2000))
    np.savez(files / "whole.npz", X=np.eye(9))
    (files / "cut.npz").write_bytes((files / "whole.npz").read_bytes()[:-40])
    for words in _READERS:
        if bad == "empty" and words[0] in ("table", "compare"):  # from a results file without rows
            continue
        if bad == "folder" and words[0] == "report":
            continue
        code, out, err = run(capfd, *[word.format(bad) for word in words])
        said = err or (out if words[0] == "check" else "")
        assert code in (1, 2, 3) and said and "Traceback" not in err, (words, code, out, err)
    assert not (files / "out.txt").exists() and not (files / "none.csv").exists()


def test_debug_shows_the_traceback(files, capfd):
    code, _, err = run(
        capfd, "--debug", "train", "--method", "svr", "--data", str(files / "train.txt")
    )
    assert code == 2 and err.startswith("Traceback") and "unknown" in err.splitlines()[-1]


def test_every_option_and_command_has_help(capfd):
    for name in COMMANDS:
        command = cli.get_command(None, name)
        assert command.help, name
        for option in command.params:
            assert not isinstance(option, click.Option) or option.help, f"rfx {name} {option.opts}"
        assert printed(capfd, name, "--help").startswith("Usage: rfx")


def test_a_long_name_is_that_of_a_method(files, capfd):
    """An alias means the same; rows and models contain the short name."""
    code, out, _ = run(capfd, "methods", "random-binning")
    assert code == 0 and out.startswith("rb: ") and "(or random-binning)\n" in out
    named = {
        entry["name"]: entry["long_name"]
        for entry in json.loads(run(capfd, "methods", "--json")[1])
    }
    assert named["sparse-rf"] == "sparse-random-features" and named["kernel"] is None
    words = ["--data", str(files / "train.txt"), "--gamma", "1", "--lam", "1", "--n-features", "8"]
    words += ["--split", "0.7", "--results", str(files / "r.csv"), "--json"]
    rows = [
        json.loads(run(capfd, "train", "--method", name, *words)[1])
        for name in ("rf", "random-features")
    ]
    assert rows[0]["key"] == rows[1]["key"] and rows[1]["method"] == "rf"
    assert (rows[0]["split"], rows[0]["n_train"], rows[0]["n_test"]) == ("0.7", 140, 60)


def test_methods_lists_all_options(capfd):
    from rfx import methods

    code, out, _ = run(capfd, "methods")
    assert code == 0 and all(f"{name}: " in out for name in methods.names()) and "--rounds" in out
    listed = json.loads(run(capfd, "methods", "--json")[1])
    assert [entry["name"] for entry in listed] == methods.names()
    sections = {name: run(capfd, "methods", name)[1] for name in methods.names()}
    sections = {name: text for name, text in sections.items() if "--batch" not in text}
    assert [
        name
        for name, text in sections.items()
        if "hinge\n" in text or "hinge or" in text or ", hinge" in text
    ] == ["kernel", "rfm"]
    assert [
        name for name, text in sections.items() if "linear," in text.replace("liblinear", "")
    ] == [
        "block",
        "kernel",
        "lkrf",
        "nystrom",
        "rf",
        "rfm",
        "sparse-rf",
    ]
    assert "one of squared, squared_hinge, hinge, logistic" in sections["kernel"]


def test_support_vector_regression_from_training_to_export(tmp_path, capfd):
    target = 5 + np.sin(3 * X[:, 0]) + X[:, 1]
    np.savetxt(tmp_path / "t.csv", np.c_[X, target], delimiter=",", header="a,b,c,y", comments="")
    words = ["train", "--method", "kernel", "--data", tmp_path / "t.csv", "--target", "y"]
    words += ["--task", "regression", "--loss", "epsilon_insensitive", "--kernel", "gaussian"]
    more = ["--epsilon", 0.05, "--gamma", 1, "--lam", 0.1, "--tol", 1e-6]
    more += ["--holdout", 0.2, "--json"]
    files = ["--model", tmp_path / "m.npz", "--trace", tmp_path / "trace.csv"]
    code, out, err = run(capfd, *words, *more, *files)
    row = json.loads(out)
    assert code == 0 and row["params"]["loss"] == "epsilon_insensitive" and row["converged"] is True
    assert row["score"] < 0.2 and row["gap"] <= 1e-6 * row["objective"]
    assert "objective" in (tmp_path / "trace.csv").read_text()
    code, out, _ = run(capfd, "predict", tmp_path / "m.npz", tmp_path / "t.csv")
    found = np.array(out.split(), dtype=float)
    assert code == 0 and np.sqrt(np.mean((found - target) ** 2)) < 0.2
    code, out, err = run(
        capfd, "export", tmp_path / "m.npz", "--to", "json", "-o", tmp_path / "m.json"
    )
    assert code == 0 and (tmp_path / "m.json").stat().st_size > 0
    assert "--epsilon is 0.2, which has no effect without --loss" in refused(
        capfd, *words, "--loss", "squared", "--epsilon", 0.2, code=2
    )
    code, _, err = run(capfd, *words, "--task", "binary")
    assert code != 0 and len(err.strip().splitlines()) == 1


@pytest.mark.parametrize(
    "solver, method", [("liblinear", "rf"), ("libsvm", "kernel"), ("rfx", "kernel")]
)
def test_interrupt_ends_training_at_once(solver, method, tmp_path):
    rows = RNG.uniform(-1, 1, (20000, 10))
    # noise: even on a fast and idle machine each solver needs a minute or more
    labels = RNG.choice([-1.0, 1.0], 20000)
    svmlight.write(tmp_path / "noise.txt", rows, labels)
    more = ["--n-features", "2500", "--tol", "1e-12"] if method == "rf" else ["--tol", "1e-10"]
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "rfx",
            "train",
            "--method",
            method,
            "--data",
            str(tmp_path / "noise.txt"),
            "--solver",
            solver,
            "--gamma",
            "2",
            "--lam",
            "1e-6",
            "--model",
            str(tmp_path / "m.npz"),
            *more,
        ],
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )
    time.sleep(5)
    assert process.poll() is None, f"it ended by itself: {process.communicate()[1]}"
    start = time.monotonic()
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130 and "rfx: interrupted" in err
    assert time.monotonic() - start < 10  # this detects a hang, and does not measure speed
    assert not (tmp_path / "m.npz").exists()


def test_json_has_null_for_what_is_not_finite(capfd):
    from rfx.cli.output import print_path
    from rfx.records.result import Result

    params = {"growth": [[16, float("nan")]]}
    row = Result(dataset="d", method="rf", gap=float("inf"), params=params, n_iter=np.int64(3))
    print_path([row], True)
    (found,) = json.loads(capfd.readouterr().out)
    assert found["params"] == {"growth": [[16, None]]} and found["n_iter"] == 3
    assert found["gap"] is None and found["score"] is None


def test_short_memory_is_one_sentence(capfd, monkeypatch):
    def fail(context):
        raise MemoryError

    monkeypatch.setattr(cli, "invoke", fail)
    assert refused(capfd, "methods").startswith("rfx: out of memory; use a smaller --n-features")
