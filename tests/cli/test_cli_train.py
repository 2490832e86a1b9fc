"""train, eval, predict, featurize and methods: what they print, write and refuse, and their exit
codes.
"""

import json
import os
import signal
import subprocess
import sys
import time
from types import SimpleNamespace

import numpy as np
import pytest
from shell import printed, refused, run

from rfx import data, methods
from rfx.cli import cli
from rfx.cli.output import print_path
from rfx.data import libsvm
from rfx.data.transforms import Scaler
from rfx.features.binning import sample_grids
from rfx.operators.binned import BinnedMatrix
from rfx.records import results
from rfx.records.run import Result


@pytest.fixture(scope="module")
def ball():
    """200 training rows and 40 test rows (240, 3); a ball is to be learnt."""
    X = np.random.default_rng(0).uniform(-1, 1, (240, 3))
    return SimpleNamespace(X=X, labels=np.where(np.linalg.norm(X, axis=1) > 1, 1.0, -1.0))


@pytest.fixture
def files(tmp_path, ball):
    libsvm.write(tmp_path / "train.txt", ball.X[:200], ball.labels[:200])
    libsvm.write(tmp_path / "test.txt", ball.X[200:], ball.labels[200:])
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize("flag, method", [("--stream", "doubly-sgd"), ("--scheduler", "local")])
def test_streams_and_workers_have_a_method_of_their_own(flag, method, files, capfd):
    words = ("train", flag, *(["local:1"] if flag == "--scheduler" else []))
    code, out, err = run(capfd, *words, "--data", files / "train.txt", "--json")
    assert code == 0 and json.loads(out)["method"] == method
    assert f"rfx: {flag} without --method takes {method}" in err
    words += ("--data", files / "train.txt")
    assert "auto" in refused(capfd, *words, "--method", "auto", code=2)


@pytest.mark.parametrize("words", [("--method", "sparse-rf"), ()])
def test_without_data_one_sentence_says_how_to_go_on(capfd, words):
    code, out, err = run(capfd, "train", *words)
    (line,) = err.strip().splitlines()
    assert (code, out) == (2, "")
    assert line.endswith(
        f"try {' '.join(('rfx', 'train', *words))} --data breast_cancer, which needs no download"
    )


def trained_words(files, *more, method="rf"):
    words = ["train", "--method", method, "--data", files / "train.txt", "--gamma", 2]
    words += ("--n-features", 100) if method != "kernel" else ()
    words += ("--kernel", "gaussian", "--scaling", "minmax01", "--metric", "none")
    return [*words, "--model", files / "m.npz", *more]


def trained(capfd, files, *more, **method):
    return run(capfd, *trained_words(files, *more, **method))


@pytest.mark.parametrize("method", ["kernel", "rf", "sparse-rf"])
def test_train_eval_predict(method, files, capfd, ball):
    kept = ("--results", files / "r.csv", "--json")
    test = files / "test.txt"
    row = json.loads(printed(capfd, *trained_words(files, "--test", test, *kept, method=method)))
    assert (row["method"], row["metric"], row["converged"]) == (method, "accuracy", True)
    assert row["score"] > 0.8
    again = json.loads(printed(capfd, "eval", files / "m.npz", "--data", test, *kept))
    assert again["score"] == row["score"]
    last = results.read(files / "r.csv")[-1]
    assert (last["n_test"], last["params"]["kernel_params"]) == (40, {"gamma": 2.0})
    labels, decision = (
        np.array(printed(capfd, "predict", files / "m.npz", test, *more).split(), float)
        for more in ((), ("--decision",))
    )
    assert np.mean(labels == ball.labels[200:]) == pytest.approx(row["score"])
    np.testing.assert_array_equal(np.where(decision > 0, 1, -1), labels)


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


def test_more_rounds_than_features_are_one_for_each(files, capfd):
    code, out, _ = trained(capfd, files, "--lam", 1, "--rounds", "1e9", method="sparse-rf")
    most = trained(capfd, files, "--lam", 1, "--rounds", "100", method="sparse-rf")[1]
    assert code == 0 and out.splitlines()[2:4] == most.splitlines()[2:4]


def test_lam_path(files, capfd):
    more = ("--test", files / "test.txt", "--lam-path", "10:1:3", "--results", files / "r.csv")
    out = printed(capfd, *trained_words(files, *more, method="sparse-rf"))
    assert len(out.splitlines()) == 4 and "nonzeros" in out
    rows = results.read(files / "r.csv")
    assert [row["lam"] for row in rows] == pytest.approx([10, 10**0.5, 1])
    assert len({row["key"] for row in rows}) == 3
    names = {path.name for path in files.glob("m-*.npz")}
    assert names == {"m-lam1.npz", "m-lam10.npz", "m-lam3.162.npz"}
    words = ("eval", files / "m-lam1.npz", "--data", files / "test.txt", "--json")
    row = json.loads(printed(capfd, *words))
    assert (row["score"], row["lam"]) == (rows[-1]["score"], pytest.approx(1))


def test_featurize_is_what_rf_sees(files, capfd, ball):
    words = ("featurize", files / "train.txt")
    printed(capfd, *words, "--map", "fourier", "-n", 20, "--gamma", 2, "-o", files / "z.txt")
    Z, y = libsvm.read(files / "z.txt")
    assert Z.shape == (200, 20) and np.array_equal(y, ball.labels[:200])
    trained(capfd, files)
    printed(capfd, *words, "--model", files / "m.npz", "-o", files / "phi.txt")
    phi, _ = libsvm.read(files / "phi.txt")
    # the first features do not depend on D; those of the model are not divided by sqrt(n)
    np.testing.assert_allclose(phi[:, :20].toarray(), Z.toarray() * np.sqrt(20), atol=1e-5)


def test_featurize_reads_tables_as_training_does(tmp_path, capfd, monkeypatch):
    """Rows of a table with the columns of another have the features of both as LIBSVM text."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.csv").write_text(
        "y,job,size\n1,clerk,170\n-1,smith,\n1,clerk,181\n-1,smith,160\n"
    )
    (tmp_path / "b.csv").write_text("size,y,job\n165,1,smith\n,1,clerk\n")
    same = ("--target", "y", "--missing", "mean")
    for name in "ab":
        printed(capfd, "convert", f"{name}.csv", f"{name}.txt", *same, "--train", "a.csv")
    table, text = ("featurize", "b.csv", *same), ("featurize", "b.txt")
    first = printed(capfd, *table, "-n", 6, "--train", "a.csv")
    assert first == printed(capfd, *text, "-n", 6, "--train", "a.txt")
    words = ("train", "--method", "rf", "--n-features", 6, "--lam", 1, "--data", "a.csv")
    printed(capfd, *words, *same, "--model", "m")
    assert printed(capfd, "featurize", "b.csv", "--model", "m") == printed(
        capfd, *text, "--model", "m"
    )


def test_featurize_writes_the_bins_of_random_binning(files, capfd, ball):
    binning = ("--map", "binning", "-n", 30, "--gamma", 2)
    printed(capfd, "featurize", files / "train.txt", *binning, "-o", files / "a.txt")
    Z, y = libsvm.read(files / "a.txt")
    assert np.array_equal(y, ball.labels[:200]) and np.all(np.diff(Z.indptr) == 30)
    # for the method rb: the same kernel matrix of collisions
    scaler = Scaler.fit(ball.X[:200], "minmax01")
    grids = sample_grids("laplacian", 3, 30, 0, gamma=2.0)
    ids, bins = grids.number(scaler.transform(ball.X[:200]))
    np.testing.assert_allclose(Z.toarray(), BinnedMatrix(ids, bins.starts).to_array(), rtol=1e-15)
    # test rows get the columns of the training rows, and nothing for a bin without training rows
    more = ("--train", files / "train.txt", *binning, "--unscaled", "-o", files / "b.txt")
    printed(capfd, "featurize", files / "test.txt", *more)
    T, _ = libsvm.read(files / "b.txt", n_features=Z.shape[1])
    assert set(T.data) == {1.0}
    places = grids.find(scaler.transform(ball.X[200:]), bins)
    assert np.any(places < 0)
    assert np.array_equal(np.diff(T.indptr), np.sum(places >= 0, axis=0))
    assert np.array_equal(T.indices, (places + bins.starts[:-1, None]).T[places.T >= 0])


@pytest.mark.slow
@pytest.mark.parametrize("method", ["rb", "sparse-rb"])
def test_featurize_by_a_model_writes_the_bins_that_have_a_weight(method, files, capfd, ball):
    model, out = files / "rb.npz", files / "z.txt"
    options = ("--method", method, "--gamma", 2, "--n-grids", 40, "--lam", 1, "--model", model)
    printed(capfd, "train", "--data", files / "train.txt", *options)
    printed(capfd, "featurize", files / "test.txt", "--model", model, "-o", out)
    loaded = methods.load(model)
    Z, _ = libsvm.read(out, n_features=len(loaded.model.coef))
    expected = loaded.decision_function(ball.X[200:])
    np.testing.assert_allclose(Z @ loaded.model.coef[:, 0], expected, atol=1e-12)


def test_featurize_learns_on_a_data_set_s_own_training_rows(files, capfd):
    name = "sphere:n=60,d=3,seed=1"
    split = data.load(name)
    libsvm.write(files / "own.txt", split.X_train, split.y_train)
    libsvm.write(files / "rows.txt", split.X_test, split.y_test)
    own, rows = ("featurize", name), ("featurize", files / "rows.txt")
    printed(capfd, *own, "-n", 5, "-o", files / "a.txt")
    printed(capfd, *rows, "-n", 5, "--train", files / "own.txt", "-o", files / "b.txt")
    one, two = (libsvm.read(files / out)[0].toarray() for out in ("a.txt", "b.txt"))
    np.testing.assert_allclose(one, two, atol=1e-6)


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
    (["train", "--method", "rf", "--data", "nothing.txt"], 1, "nothing.txt"),
    (["train", "--method", "rf", "--data", "{}/bad.txt"], 1, "line 2"),
    (
        ["train", "--method", "rf", "--data", "{}/train.txt", "--test", "{}/wide.txt", "--strict"],
        1,
        "beyond the 3",
    ),
    (
        ["train", "--method", "rf", "--data", "{}/bad.txt", "--model", "{}/no/m.npz"],
        1,
        "/no/ can't be read or written: No such file",
    ),
    (
        ["train", "--method", "rf", "--data", "{}/bad.txt", "--model", ""],
        1,
        "rfx: . can't be read or written: Is a directory",
    ),
    (
        ["train", "--method", "rf", "--data", "{}/bad.txt", "--results", "{}/test.txt"],
        1,
        "test.txt is not an rfx results file",
    ),
    (
        ["train", "--method", "rf", "--data", "{}/bad.txt", "--results", ""],
        1,
        "No such file or directory",
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
    (["featurize", "{}/train.txt", "-n", "2", "-o", "{}"], 1, "or written: Is a directory"),
    (
        ["featurize", "{}/train.txt", "-n", "2", "-o", ""],
        1,
        'rfx: "" can\'t be read or written: a file name is required',
    ),
    (
        ["eval", "{}/m.npz", "--data", "{}/wide.txt", "--strict"],
        1,
        "beyond the 3 that the model was trained on",
    ),
    (["predict", "{}/m.npz", "{}/train.txt", "--sets", "0"], 2, "must be a number above 0"),
    (
        ["predict", "{}/m.npz", "{}/wide.txt", "--strict"],
        1,
        "beyond the 3 that the model was trained on",
    ),
    (["predict", "{}/train.txt", "{}/test.txt"], 1, "is not a model file of rfx"),
    (["featurize", "{}/train.txt", "--map", "cubic"], 2, "'cubic'"),
    (
        ["featurize", "{}/train.txt", "--map", "binning", "-n", "0"],
        2,
        "--n-features is '0'; it must be a whole number 1 or more",
    ),
    (["featurize", "{}/wide.txt", "--train", "{}/train.txt"], 1, "beyond the 3"),
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
        ["train", "--method", "rf", "--data", "{}/train.txt", "--sample-weight", ""],
        1,
        'rfx: "" can\'t be read: No such file',
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
        ["train", "--method", "doubly-sgd", "--data", "{}/none.txt", "--stream"],
        1,
        "none.txt can't be read: No such file",
    ),
    (
        ["tune", "--method", "rf", "--data", "{}/train.txt", "--budget-seconds", "nan"],
        2,
        "--budget-seconds is 'nan'",
    ),
    (["datasets", "--paper", ""], 2, "paper '' is unknown"),
    (["fetch", "--paper", ""], 2, "paper '' is unknown"),
    (["table", "summary", "--results", ""], 1, "No such file or directory"),
    (["figure", "yen2014-figure1", "--results", ""], 1, "No such file or directory"),
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
    (
        ["train", "--method", "rf", "--data", "none.csv", "--task", "regression"]
        + ["--calibrate", "platt"],
        2,
        "--calibrate is for classification, but the task is regression",
    ),
    (["trian"], 2, "there is no command 'trian'; did you mean train?"),
    (["help", "trian"], 2, "there is no command 'trian'; did you mean train?"),
    (["train", "--method", "rff", "--help"], 2, "method 'rff' is unknown; did you mean rf"),
    (["help", "train", "--method", "rff"], 2, "method 'rff' is unknown; did you mean rf"),
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


@pytest.mark.slow
def test_features_that_are_not_finite_are_no_model(files, capfd):
    words = ["train", "--method", "rf", "--data", files / "train.txt", "--gamma", "1e300"]
    code, _, err = run(capfd, *words)
    assert (code, "diverged" in err) == (1, True)


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
        # these show a results file without rows
        if bad == "empty" and words[0] in ("table", "compare"):
            continue
        if bad in ("folder", "") and words[0] == "report":
            continue
        code, out, err = run(capfd, *[word.format(bad) for word in words])
        said = err or (out if words[0] == "check" else "")
        assert code in (1, 2, 3) and said and "Traceback" not in err, (words, code, out, err)
    assert not (files / "out.txt").exists() and not (files / "none.csv").exists()


def test_methods_lists_all_options_and_long_names(capfd):
    out = printed(capfd, "methods")
    assert all(f"{name}: " in out for name in methods.names()) and "--rounds" in out
    found = json.loads(printed(capfd, "methods", "--json"))
    listed = {one["name"]: one["long_name"] for one in found}
    assert [*listed] == methods.names()
    assert listed["sparse-rf"] == "sparse-random-features" and listed["kernel"] is None
    out = printed(capfd, "methods", "random-binning", "kernel")
    assert out.startswith("rb: ") and "(or random-binning)\n" in out
    assert "squared_hinge, hinge, logistic" in out


@pytest.mark.slow
@pytest.mark.parametrize("solver, method", [("liblinear", "rf"), ("rfx", "kernel")])
def test_interrupt_ends_training_at_once(solver, method, tmp_path, rng):
    rows = rng.uniform(-1, 1, (20000, 10))
    # noise: even on a fast and idle machine each solver needs a minute or more
    labels = rng.choice([-1.0, 1.0], 20000)
    libsvm.write(tmp_path / "noise.txt", rows, labels)
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


# ------------------------------------------------------------------ weights of rows and classes


def weighted_words(folder, *more, method="rf"):
    options = ("--gamma", 2, "--scaling", "none", "--task", "binary", "--json", "--force")
    model = ("--model", folder / "m.npz")
    return ["train", "--method", method, "--data", folder / "train.txt", *options, *model, *more]


def fitted(ball, capfd, folder, *more):
    """(row, decision values) of a training."""
    row = json.loads(printed(capfd, *weighted_words(folder, *more)))
    return row, methods.load(folder / "m.npz").decision_function(ball.X)


def test_weights_of_rows_and_classes_and_scores_without_test_rows(files, capfd, ball):
    kept = ("--cv", 3, "--results", files / "r.csv")
    by_label, values = fitted(ball, capfd, files, "--class-weight", "1:5", *kept)
    assert by_label["params"]["class_weight"] == "1:5"
    assert results.read(files / "r.csv")[0]["score"] == by_label["score"]
    assert methods.load(files / "m.npz").method.class_weight == "1:5"
    weights = np.where(ball.labels[:200] > 0, 5, 1)
    np.savetxt(files / "weights", weights)
    by_row, expected = fitted(ball, capfd, files, "--sample-weight", files / "weights", "--cv", 3)
    assert by_row["score"] == by_label["score"]
    assert by_row["params"]["sample_weight"] == "weights"
    assert by_row["params"]["weight_sum"] == weights.sum()
    np.testing.assert_array_equal(expected, values)


FILE, SOLVER = "--sample-weight {0}/weights", "--solver is liblinear, which does not support"
# By what the file of weights has: a method, options, the exit code and the message.
NO_WEIGHTS = [
    ("1\n" * 199, "rf", FILE, 1, "has 199 weights, but there are 200 training rows; there must be"),
    ("1\n" * 201, "rf", FILE, 1, "has 201 weights, but there are 200 training rows"),
    ("1\n-2\n", "rf", FILE, 1, "line 2: '-2' is not a weight; weights are numbers of 0 or more"),
    ("1\nnan\n", "rf", FILE, 1, "line 2: 'nan' is not a weight"),
    ("1,2\n", "rf", FILE, 1, "line 1: '1,2' is not a weight"),
    ("0\n" * 200, "rf", FILE, 1, "all sample weights are zero"),
    (None, "rf", "--sample-weight {0}/nothing", 1, "nothing can't be read: No such file"),
    (None, "rf", "--sample-weight {0}/binary", 1, "is not utf-16-le"),
    (None, "norma", f"--stream {FILE}", 2, "needs all rows in memory; omit --str"),
    (None, "norma", "--stream --class-weight balanced", 2, "balanced needs the counts of all rows"),
    (None, "rf", "--class-weight heavy", 2, "--class-weight is 'heavy'; it must be balanced, or"),
    (None, "rf", f"{FILE} --solver liblinear", 2, f"{SOLVER} sample weights"),
    (None, "rf", FILE + " --model {0}/weights", 2, "is the same file as"),
]


@pytest.mark.parametrize("text, method, words, code, says", NO_WEIGHTS)
def test_weights_that_can_not_be_are_refused(text, method, words, code, says, files, capfd):
    (files / "binary").write_bytes(b"\xff\xfe\x00")
    text = text or "1\n2\n" * 100
    (files / "weights").write_text(text)
    more = words.format(files).split()
    said = refused(capfd, *weighted_words(files, *more, method=method), code=code)
    assert says in said
    assert "Traceback" not in said
    assert (files / "weights").read_text() == text


def test_equal_inputs_are_not_the_users_bandwidth(capfd, tmp_path):
    file = tmp_path / "equal.csv"
    file.write_text("a,y\n" + "".join(f"1,{number % 7}.5\n" for number in range(60)))
    _, _, err = run(capfd, "train", "--data", file, "--target", "y", "--no-baseline")
    assert "gamma" not in err


def test_a_checkpoint_of_auto_names_a_method_that_has_one(capfd, tmp_path):
    (tmp_path / "t.csv").write_text("a,y\n1,2\n2,3\n")
    words = ["--data", tmp_path / "t.csv", "--target", "y", "--checkpoint", tmp_path / "c.npz"]
    code, _, err = run(capfd, "train", *words)
    assert code and "--method local" in err
