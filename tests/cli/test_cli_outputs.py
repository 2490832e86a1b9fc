"""An output is never one of the inputs, and replaces nothing that the command did not write;
through the shell.
"""

import contextlib
import csv
import errno
import io
import os
import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from click.testing import CliRunner
from shell import printed, refused, run

from rfx.cli import cli
from rfx.data import libsvm
from rfx.estimators import RFClassifier

PAPER = Path(__file__).parents[1] / "papers" / "folders" / "example2007"
TRAIN = "train --method rf --n-features 10 --lam 1"
PLAN = (
    'title = "small"\n[[run]]\ndataset = "{}"\nmethod = "rf"\noptions.n_features = 10\noptions.lam'
    " = 1\n"
)


@pytest.fixture(scope="module")
def data():
    """Rows (60, 2), and labels that are the sign of the first input."""
    X = np.random.default_rng(0).uniform(-1, 1, (60, 2))
    return SimpleNamespace(X=X, labels=np.where(X[:, 0] > 0, 1.0, -1.0))


@pytest.fixture(scope="module")
def made(tmp_path_factory, data):
    """One file of each kind: data, model, results, features, plan, and some notes."""
    folder = tmp_path_factory.mktemp("made")
    libsvm.write(folder / "data.txt", data.X, data.labels)
    (folder / "notes.txt").write_text("not to be lost\n")
    (folder / "plan.toml").write_text(PLAN.format(folder / "data.txt"))
    with contextlib.chdir(folder):
        for line in (
            f"{TRAIN} --data data.txt --model m.npz --results r.csv",
            "featurize data.txt -n 3 -o z.txt",
            "predict m.npz data.txt --format csv -o p.csv",
        ):
            done = CliRunner().invoke(cli, line.split())
            assert done.exit_code == 0, done.output
    return folder


@pytest.fixture
def folder(made, tmp_path, monkeypatch):
    for path in made.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    (tmp_path / "plan.toml").write_text(PLAN.format(tmp_path / "data.txt"))
    os.link(tmp_path / "data.txt", tmp_path / "hard.txt")
    os.symlink("data.txt", tmp_path / "soft.txt")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def rfx(capfd, line):
    return run(capfd, *line.split())


SAME = [
    f"{TRAIN} --data data.txt --model data.txt",
    f"{TRAIN} --data data.txt --model soft.txt",
    f"{TRAIN} --data soft.txt --model hard.txt --force",
    f"{TRAIN} --data z.txt --test data.txt --model ./data.txt",
    f"{TRAIN} --data data.txt --results data.txt",
    f"{TRAIN} --data data.txt --model new --results new",
    f"{TRAIN.replace('--lam 1', '--lam-path 2:1:2')} --data m-lam2.npz --model m.npz",
    f"{TRAIN} --data cod-rna --model store/cod-rna --force",
    "featurize data.txt -n 3 -o data.txt",
    "featurize z.txt --train data.txt -n 3 -o hard.txt --force",
    "featurize data.txt --model m.npz -o m.npz --force",
    "export m.npz --to json -o m.npz --force",
    "predict m.npz data.txt -o data.txt",
    "predict m.npz data.txt -o m.npz",
]


@pytest.mark.slow
@pytest.mark.parametrize("line", SAME)
def test_an_output_that_is_an_input_is_refused(folder, monkeypatch, capfd, line):
    (folder / "store").mkdir()
    if "cod-rna" in line:
        (folder / "data.txt").rename(folder / "store" / "cod-rna")
    monkeypatch.setenv("RFX_DATA", str(folder / "store"))
    os.symlink("m.npz", "m-lam2.npz")
    (folder / "fig.png").write_bytes((folder / "r.csv").read_bytes())
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    code, out, err = rfx(capfd, line)
    assert (code, out) == (2, "") and "is the same file as" in err and err.count("\n") == 1
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


OUTPUTS = {
    "m.npz": f"{TRAIN} --data data.txt --model {{}}",
    "z.txt": "featurize data.txt -n 3 -o {}",
    "r.csv": "eval m.npz --data data.txt --results {}",
    "p.csv": "predict m.npz data.txt --format csv -o {}",
}


@pytest.mark.slow
@pytest.mark.parametrize("there", ["m.npz", "z.txt", "r.csv", "p.csv", "plan.toml", "notes.txt"])
@pytest.mark.parametrize("own", OUTPUTS)
def test_what_the_command_does_not_write_is_not_replaced(folder, capfd, own, there):
    target = folder / "target"
    target.write_bytes((folder / there).read_bytes())
    before = target.read_bytes()
    code, _, err = rfx(capfd, OUTPUTS[own].format("target"))
    if own == there:
        assert code == 0, err
        return
    assert code in (1, 2) and target.read_bytes() == before
    # a results file is appended to, so nothing needs --force
    reasons = ["target is not"] if own == "r.csv" else ["target exists and is not", "with --force"]
    assert [reason for reason in reasons if reason not in err] == []
    if own != "r.csv":
        printed(capfd, *OUTPUTS[own].format("target").split(), "--force")
        assert target.read_bytes() != before


def test_every_file_of_a_path_is_looked_at(folder, capfd):
    (folder / "p-lam1.npz").write_text("mine")
    line = "train --method rf --n-features 10 --lam-path 2:1:2 --data data.txt --model p.npz"
    said = refused(capfd, *line.split(), code=2)
    assert "p-lam1.npz exists and is not a model file of rfx" in said
    assert not (folder / "p-lam2.npz").exists()
    assert rfx(capfd, line + " --force")[0] == 0 and (folder / "p-lam2.npz").exists()


@pytest.mark.slow
@pytest.mark.parametrize("end, form", [("svg", "SVG"), ("figure.csv", "CSV")])
def test_a_figure_replaces_figures_of_rfx_only(folder, add_paper, capfd, end, form):
    add_paper(PAPER)
    words = "figure example2007-figure1 --results r.csv --output fig.svg".split()
    for _ in range(2):
        printed(capfd, *words)
    before = (folder / "fig.png").read_bytes()
    (folder / f"fig.{end}").write_text("<svg>drawn by hand</svg>")
    said = refused(capfd, *words, code=2)
    assert f"fig.{end} exists and is not a figure of rfx in {form}" in said
    assert (folder / "fig.png").read_bytes() == before
    printed(capfd, *words, "--force")


@pytest.mark.parametrize("place", ["sub", "sub/", "new/"])
@pytest.mark.parametrize("option", ["--model", "--results", "--trace", "--checkpoint"])
def test_a_folder_is_no_file_to_write(option, place, folder, capfd):
    (folder / "sub").mkdir()
    code, out, err = rfx(capfd, f"{TRAIN} --data data.txt {option} {place}")
    assert code == 2 and out == "" and len(err.splitlines()) == 1
    assert f"{option} is {place}, which is a folder" in err


def test_eval_names_the_rows_that_a_model_learnt_from(folder, capfd, data):
    """A model that was fitted in Python has no file name; its row must not get that of the
    evaluated file.
    """
    assert "\ndata " in "\n" + (said := rfx(capfd, "eval m.npz --data data.txt -v")[1])
    assert "data.txt: 60 rows x 2 inputs" in said
    RFClassifier(n_features=10, lam=1).fit(data.X, data.labels).save("p.npz")
    libsvm.write(folder / "few.txt", data.X[:7], data.labels[:7])
    said = printed(capfd, *"eval p.npz --data few.txt --results r.csv -v".split())
    rows = said.splitlines()[0].split(None, 1)[1]
    assert rows == "trained in Python: 60 rows x 2 inputs, binary"
    assert "7 of few.txt" in said and ",few.txt," in (folder / "r.csv").read_text().splitlines()[-1]


def test_eval_prints_simple_models_of_the_training_table_beside_the_model(folder, capfd):
    """They are those that `rfx train --test` prints; the town's words become means of the target in
    both.
    """
    rng = np.random.default_rng(0)
    lines = [f"{n},town {n % 50},{rng.normal() + n % 50:.3f}" for n in range(300)]
    for name, rows in (("then.csv", lines[:200]), ("now.csv", lines[200:])):
        (folder / name).write_text("\n".join(["id,town,rent", *rows]))
    train = "train --method rf --gamma 1 --lam 1 --n-features 20 --metric none --ignore id"
    words = f"{train} --data then.csv --target rent --test now.csv --model m.npz".split()
    lines = printed(capfd, *words).splitlines()
    (of_training,) = (line for line in lines if line.startswith("baseline"))
    said = printed(capfd, *"eval m.npz --data now.csv --baseline then.csv".split())
    (of_eval,) = (line for line in said.splitlines() if line.startswith("baseline"))
    assert of_eval.split() == of_training.split()
    assert "data " not in said


@pytest.mark.parametrize(
    "method, says",
    [
        ("kernel --lam 1", "of the optimum\n"),
        ("rf --n-features 20 --loss squared --lam 1", "training     solved directly, within "),
        ("sparse-rf --n-features 20 --rounds 2 --lam 1", "those dropped could lower the objective"),
        ("doubly-sgd --nu 1e-3 --epochs 1", "1 iteration, without a certificate\n"),
    ],
)
def test_training_says_how_far_it_is_from_the_optimum(method, says, folder, capfd):
    """The objective itself, and the seconds of the steps, are for those who ask."""
    line = f"train --method {method} --gamma 1 --scaling none --metric none --data data.txt"
    said = printed(capfd, *line.split())
    assert says in said
    assert "\nobjective" not in said and "\nseconds" not in said
    assert {"objective", "seconds"} <= {
        line.split()[0] for line in printed(capfd, *line.split(), "-v").splitlines() if line
    }


def test_a_log_receives_what_standard_error_would_show(folder, capfd):
    """Every line has the time, also that of an error."""
    for line in ("--data data.txt --gamma nothing", "--data nobody.txt"):
        code, _, err = rfx(capfd, f"{TRAIN} {line} --log rfx.log")
        assert code != 0 and err == ""
    printed(capfd, *"eval m.npz --data data.txt --log rfx.log".split())
    lines = (folder / "rfx.log").read_text().splitlines()
    assert all(re.match(r"20\d\d-\d\d-\d\dT[\d:+-]+ rfx: ", line) for line in lines)
    assert "gamma" in lines[0] and "nobody.txt" in lines[1] and len(lines) == 2


@pytest.mark.parametrize(
    "line",
    [
        "train --data no.csv",
        "train --data data.txt --test no.csv",
        "tune --data no.csv",
        "eval m.npz --data no.csv",
        "predict m.npz no.csv",
        "check no.csv",
    ],
)
def test_data_that_is_missing_has_one_exit_code(line, folder, capfd):
    code, _, err = rfx(capfd, line)
    assert code == 1 and "no.csv" in err


TABLE = "patient,age,town,grade\n" + "".join(
    f"{number:03},{number % 7},{'ab'[number % 2]},{'low high mid'.split()[number % 3]}\n"
    for number in range(60)
)


def graded_table(folder, capfd, text=TABLE, id="patient"):
    """A table with an id column, and a model of it."""
    data, model = folder / "t.csv", folder / "m.npz"
    data.write_text(text)
    train = ["train", "--method", "rf", "--gamma", 1, "--lam", 1, "--loss", "logistic"]
    own = ["--data", data, "--target", "grade", "--ignore", id, "--model", model]
    printed(capfd, *train, *own)
    return data, model


@pytest.fixture
def graded(tmp_path, capfd):
    """A model, and its table."""
    return graded_table(tmp_path, capfd)[::-1]


@pytest.mark.slow
def test_every_classification_in_a_file_has_probabilities(tmp_path, capfd):
    data, model = tmp_path / "t.csv", tmp_path / "m.npz"
    data.write_text(TABLE)
    own = ["--data", data, "--test", data, "--target", "grade", "--ignore", "patient"]
    own += ["--method", "rb", "--n-grids", 8, "--gamma", 1, "--lam", 1]
    for more in ([], ["--loss", "squared_hinge"]):
        printed(capfd, "train", *own, *more, "--model", model, "--force")
        lines = printed(capfd, "predict", model, data, "--proba").splitlines()
        assert np.allclose(np.sum([list(map(float, line.split())) for line in lines], axis=1), 1)


def test_predictions_as_a_table(graded, capfd):
    model, data = graded
    more = ["--format", "csv", "--proba", "--id", "patient", "--digits", 3, "--strict"]
    rows = list(csv.DictReader(io.StringIO(printed(capfd, "predict", model, data, *more))))
    labels = printed(capfd, "predict", model, data).split()
    exact = printed(capfd, "predict", model, data, "--proba").splitlines()
    for number, (row, label, line) in enumerate(zip(rows, labels, exact, strict=True)):
        shares = [f"{float(value):.3g}" for value in line.split()]
        expected = {"patient": f"{number:03}", "prediction": label}
        assert row == expected | dict(zip(("high", "low", "mid"), shares))
    out = printed(capfd, "predict", model, data, "--format", "csv", "--decision")
    assert out.splitlines()[0] == "prediction,decision_high,decision_low,decision_mid"


@pytest.mark.parametrize(
    "id, header",
    [
        ("patient", "patient,prediction,mid,probability_patient,probability_prediction"),
        ("prediction", "id_prediction,prediction,mid,patient,probability_prediction"),
    ],
)
def test_no_two_columns_of_predictions_have_the_same_name(tmp_path, capfd, id, header):
    text = TABLE.replace(",low\n", ",prediction\n").replace(",high\n", ",patient\n")
    data, model = graded_table(tmp_path, capfd, text.replace("patient", id, 1), id)
    out = printed(capfd, "predict", model, data, "--format", "csv", "--proba", "--id", id)
    assert out.splitlines()[0] == header


@pytest.mark.parametrize(
    "more, said",
    [
        (["--id", "patient"], "--id is 'patient', which needs --format csv"),
        (["--format", "csv", "--id", "name"], "--id is 'name', which is not a column of"),
        (["--format", "csv", "--json"], "--json and --format csv can't be combined"),
        (["--digits", 0], "0"),
    ],
)
def test_what_predictions_can_not_have_is_refused(graded, capfd, more, said):
    code, out, err = run(capfd, "predict", *graded, *more)
    assert code == 2 and said in err and not out


@pytest.mark.parametrize("command", ["predict m.npz data.txt", "export m.npz --to json"])
def test_a_full_disk_names_the_file(capfd, folder, command):
    if not os.path.exists("/dev/full"):
        pytest.skip("there is no /dev/full")
    code, _, err = rfx(capfd, f"{command} -o /dev/full")
    assert code and "/dev/full" in err


_RESULTS = [f"{TRAIN} --data data.txt", "eval m.npz --data data.txt", "run plan.toml"]


@pytest.mark.parametrize("line", [*_RESULTS, "table summary"])
def test_a_device_is_refused_as_a_results_file(capfd, folder, line):
    """/dev/full can be read without end; /dev/null would lose the row."""
    code, _, err = rfx(capfd, f"{line} --results /dev/null")
    assert code and "/dev/null is a device" in err


@pytest.mark.slow
@pytest.mark.parametrize("line", _RESULTS)
def test_a_disk_that_fills_up_names_the_results_file(capfd, folder, monkeypatch, line):
    class OnFullDisk(io.FileIO):
        def write(self, data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def opened(path, mode, **_):
        return OnFullDisk(path, mode)

    monkeypatch.setattr("rfx.records.results.open", opened, raising=False)
    code, _, err = rfx(capfd, f"{line} --results new.csv")
    said = err.splitlines()[-1]
    assert code and "new." in said and os.strerror(errno.ENOSPC) in said
