"""An output is never one of the inputs, and replaces nothing that the command did not write;
through the shell.
"""

import contextlib
import csv
import io
import os

import numpy as np
import pytest
from click.testing import CliRunner
from shell import printed, refused, run

from rfx.cli import cli
from rfx.data import libsvm
from rfx.estimators import RFClassifier
from rfx.reporting.figures import Chart, Curve, Panel

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (60, 2))
LABELS = np.where(X[:, 0] > 0, 1.0, -1.0)
TRAIN = "train --method rf --n-features 10 --lam 1"
PLAN = (
    'title = "small"\n[[run]]\ndataset = "{}"\nmethod = "rf"\noptions.n_features = 10\noptions.lam'
    " = 1\n"
)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """One file of each kind: data, model, results, features, plan, and some notes."""
    folder = tmp_path_factory.mktemp("made")
    libsvm.write(folder / "data.txt", X, LABELS)
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
    reason = "target is not" if own == "r.csv" else "target exists and is not"
    assert code in (1, 2) and reason in err and target.read_bytes() == before
    if own == "r.csv":
        return  # a results file is appended to, so nothing needs --force
    assert "with --force" in err
    code, _, err = rfx(capfd, OUTPUTS[own].format("target") + " --force")
    assert code == 0 and target.read_bytes() != before


def test_every_file_of_a_path_is_looked_at(folder, capfd):
    (folder / "p-lam1.npz").write_text("mine")
    line = "train --method rf --n-features 10 --lam-path 2:1:2 --data data.txt --model p.npz"
    said = refused(capfd, *line.split(), code=2)
    assert "p-lam1.npz exists and is not a model file of rfx" in said
    assert not (folder / "p-lam2.npz").exists()
    assert rfx(capfd, line + " --force")[0] == 0 and (folder / "p-lam2.npz").exists()


def test_a_figure_replaces_figures_of_rfx_only(folder, monkeypatch, capfd):
    from rfx.papers.wu2016 import figures

    chart = Chart("fig4", [], [[Panel("p", "x", "y", [Curve([1, 2], [3, 4], {}, "a")])]])
    monkeypatch.setitem(figures.FIGURES, "fig4", lambda rows, setting: chart)
    for _ in range(2):
        assert rfx(capfd, "figure wu2016-fig4 --results r.csv --output fig")[0] == 0
    before = (folder / "fig.png").read_bytes()
    (folder / "fig.svg").write_text("<svg>drawn by hand</svg>")
    said = refused(capfd, *"figure wu2016-fig4 --results r.csv --output fig".split(), code=2)
    assert "fig.svg exists and is not a figure of rfx in SVG" in said
    assert (folder / "fig.png").read_bytes() == before
    assert rfx(capfd, "figure wu2016-fig4 --results r.csv --output fig --force")[0] == 0


@pytest.mark.parametrize("place", ["sub", "sub/", "new/"])
@pytest.mark.parametrize("option", ["--model", "--results", "--trace", "--checkpoint"])
def test_a_folder_is_no_file_to_write(option, place, folder, capfd):
    (folder / "sub").mkdir()
    code, out, err = rfx(capfd, f"{TRAIN} --data data.txt {option} {place}")
    assert code == 2 and out == "" and len(err.splitlines()) == 1
    assert f"{option} is {place}, which is a folder" in err


def test_eval_names_the_rows_that_a_model_learnt_from(folder, capfd):
    """A model that was fitted in Python has no file name; its row must not get that of the
    evaluated file.
    """
    assert "\ndata " in "\n" + (said := rfx(capfd, "eval m.npz --data data.txt")[1])
    assert "data.txt, split all: 60 rows x 2 inputs" in said
    RFClassifier(n_features=10, lam=1).fit(X, LABELS).save("p.npz")
    libsvm.write(folder / "few.txt", X[:7], LABELS[:7])
    said = printed(capfd, *"eval p.npz --data few.txt --results r.csv".split())
    rows = said.splitlines()[0].split(None, 1)[1]
    assert rows == "trained in Python: 60 rows x 2 inputs, binary"
    assert "on 7 rows" in said and ",few.txt," in (folder / "r.csv").read_text().splitlines()[-1]


TABLE = "patient,age,town,grade\n" + "".join(
    f"{number:03},{number % 7},{'ab'[number % 2]},{'low high mid'.split()[number % 3]}\n"
    for number in range(60)
)


@pytest.fixture
def graded(tmp_path, capfd):
    """A model of a table with an id column, and that table."""
    data, model = tmp_path / "t.csv", tmp_path / "m.npz"
    data.write_text(TABLE)
    train = ["train", "--method", "rf", "--gamma", 1, "--lam", 1, "--loss", "logistic"]
    own = ["--data", data, "--target", "grade", "--ignore", "patient", "--model", model]
    assert run(capfd, *train, *own)[0] == 0
    return model, data


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
    more = ["--format", "csv", "--proba", "--id", "patient"]
    code, out, err = run(capfd, "predict", model, data, *more, "--digits", 3, "--strict")
    assert (code, err) == (0, "")
    rows = list(csv.DictReader(io.StringIO(out)))
    assert [*rows[0]] == ["patient", "prediction", "high", "low", "mid"]
    assert [row["patient"] for row in rows] == [f"{number:03}" for number in range(60)]
    _, plain, _ = run(capfd, "predict", model, data)
    assert [row["prediction"] for row in rows] == plain.split()
    _, exact, _ = run(capfd, "predict", model, data, "--proba")
    for row, line in zip(rows, exact.splitlines(), strict=True):
        assert [row[name] for name in ("high", "low", "mid")] == [
            f"{float(value):.3g}" for value in line.split()
        ]
    _, out, _ = run(capfd, "predict", model, data, "--format", "csv", "--decision")
    assert out.splitlines()[0] == "prediction,decision_high,decision_low,decision_mid"


def test_no_two_columns_of_predictions_have_the_same_name(graded, capfd):
    model, data = graded
    words = {"low": "prediction", "high": "patient"}
    text = TABLE.replace("patient", "prediction")
    data.write_text(text)
    more = ["--format", "csv", "--proba", "--id", "prediction"]
    header = run(capfd, "predict", model, data, *more)[1].splitlines()[0]
    assert header == "id_prediction,prediction,high,low,mid"
    for word, label in words.items():
        text = text.replace(f",{word}\n", f",{label}\n")
    data.write_text(text.replace("prediction,", "patient,", 1))
    own = ["--data", data, "--target", "grade", "--ignore", "patient", "--model", model]
    train = ["train", "--method", "rf", "--gamma", 1, "--lam", 1, "--loss", "logistic", "--force"]
    assert run(capfd, *train, *own)[0] == 0
    more[-1] = "patient"
    header = run(capfd, "predict", model, data, *more)[1].splitlines()[0]
    assert header == "patient,prediction,mid,probability_patient,probability_prediction"


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
