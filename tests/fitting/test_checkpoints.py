"""Trainings that stop and go on: damaged checkpoints are refused, `--resume` takes the rows that a
file gained; and curves of the held-out error at every step.
"""

import json
import random
from types import SimpleNamespace

import numpy as np
import pytest
from fuzz.model import mutated
from fuzz.mutations import check_sentence
from shell import printed, refused

from rfx import methods, model
from rfx.errors import DataError, RfxError, UsageError
from rfx.fitting import pipeline
from rfx.records import results

pytestmark = pytest.mark.slow

# kind -> (method, options, targets)
KINDS = {
    "doubly": ("doubly-sgd", {"block": 8}, "binary"),
    "several": ("doubly-sgd", {"block": 8, "averaging": "uniform"}, "multiclass"),
    "norma": ("norma", {}, "regression"),
    "k-sdca": ("k-sdca", {}, "binary"),
    "r-sdca": ("r-sdca", {"n_features": 8}, "regression"),
    "n-pegasos": ("n-pegasos", {"n_features": 8}, "multiclass"),
}


def training(kind, path, resume=False, epochs=1):
    """A training that writes checkpoints, and its rows and targets."""
    name, options, task = KINDS[kind]
    rows = np.random.default_rng(0).normal(size=(96, 3))
    y = rows[:, 0] + rows[:, 1] ** 2
    if task != "regression":
        y = np.digitize(y, [0.5] if task == "binary" else [0.0, 1.0]).astype(float)
    shared = {"gamma": 0.5, "batch": 16, "seed": 0, "epochs": epochs}
    return methods.create(name, **shared, **options).keep(path, 2, resume), (rows, y)


def doubly(path, resume=False, epochs=1):
    return training("doubly", path, resume, epochs)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A checkpoint after one epoch: its header and its arrays."""
    path = tmp_path_factory.mktemp("whole") / "c.npz"
    method, rows = doubly(path)
    method.fit(*rows)
    return model.read(path)


def resumed(path, header, arrays):
    """The pipeline of a second epoch after a checkpoint with these parts."""
    model.write(path, {name: v for name, v in header.items() if name != "format"}, arrays)
    method, rows = doubly(path, resume=True, epochs=2)
    return method.fit(*rows)


def test_a_whole_checkpoint_is_resumed(tmp_path, whole):
    straight, rows = doubly(tmp_path / "d.npz", epochs=2)
    again = resumed(tmp_path / "c.npz", *whole)
    expected = straight.fit(*rows).decision_function(rows[0])
    assert np.array_equal(again.decision_function(rows[0]), expected)


@pytest.mark.parametrize("part", ["counts", "chosen", "solver_coef", "sample"])
def test_a_changed_or_missing_part_is_refused(tmp_path, whole, part):
    header, arrays = whole
    parts = header if part in header else arrays
    changed = [1, 2] if part in header else arrays[part] + 1
    for other in (parts | {part: changed}, {n: v for n, v in parts.items() if n != part}):
        with pytest.raises(DataError, match="is damaged .* omit --resume"):
            if part in header:
                resumed(tmp_path / "c.npz", other, arrays)
            else:
                resumed(tmp_path / "c.npz", header, other)


def test_a_checkpoint_of_another_version_is_refused(tmp_path, whole):
    header, arrays = whole
    header = {n: v for n, v in header.items() if n not in ("format", "digest", "counts")}
    header |= {"digest": pipeline.digest(header, arrays)}
    with pytest.raises(DataError, match="KeyError.*or of another version of rfx; delete it"):
        resumed(tmp_path / "c.npz", header, arrays)


@pytest.mark.parametrize("content", [b"", b"x" * 500, b"{}"])
def test_a_file_that_is_no_checkpoint_is_refused(tmp_path, content):
    (tmp_path / "c.npz").write_bytes(content)
    method, rows = doubly(tmp_path / "c.npz", resume=True)
    with pytest.raises(DataError, match="is damaged"):
        method.fit(*rows)


@pytest.mark.parametrize("kind", list(KINDS))
@pytest.mark.filterwarnings("ignore")
def test_mutated_checkpoints_are_resumed_or_refused(tmp_path, kind):
    """Any other exception than RfxError is a fault."""
    path, refusals = tmp_path / "c.npz", []
    method, rows = training(kind, path)
    method.fit(*rows)
    content = path.read_bytes()
    for seed in range(7):
        path.write_bytes(mutated(content, random.Random(seed)))
        method, rows = training(kind, path, resume=True, epochs=2)
        try:
            method.fit(*rows)
        except RfxError as error:
            check_sentence(error)
            refusals.append(error)
    assert refusals


WORDS = (
    *("train", "--method", "doubly-sgd", "--stream", "--gamma", 1, "--nu", 1e-4, "--resume"),
    *("--batch", 32, "--buffer", 100, "--no-baseline", "--json"),
)


@pytest.fixture(scope="module")
def table():
    """Rows (900, 2), and labels that tell whether both inputs have the same sign."""
    X = np.random.default_rng(0).uniform(-1, 1, (900, 2))
    return SimpleNamespace(X=X, y=np.where(X[:, 0] * X[:, 1] > 0, "same", "other"))


def text(table, kind, rows) -> str:
    """The rows of a file of that kind, for csv without the line of names."""
    if kind == "csv":
        return "".join(f"{a:.4f},{b:.4f},{y}\n" for (a, b), y in zip(table.X[rows], table.y[rows]))
    labels = (table.y[rows] == "same") * 1
    return "".join(f"{y} 1:{a:.4f} 2:{b:.4f}\n" for (a, b), y in zip(table.X[rows], labels))


HEAD = {"csv": "a,b,y\n", "libsvm": ""}


@pytest.fixture(params=list(HEAD))
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


def test_rows_that_a_file_gains_are_learnt_like_those_of_another_file(kind, train, tmp_path, table):
    old, new = slice(0, 300), slice(300, 900)
    for name, rows in (("grown.txt", old), ("first.txt", old), ("second.txt", new)):
        (tmp_path / name).write_text(HEAD[kind] + text(table, kind, rows))
    first = train("first.txt", checkpoint="other")
    assert train("grown.txt")["params"]["samples"] == 900
    # nothing new: the same model
    assert train("grown.txt")["params"]["samples"] == 900
    with open(tmp_path / "grown.txt", "a") as file:
        file.write(text(table, kind, new))
    row = train("grown.txt")
    assert (first["n_train"], row["n_train"]) == (300, 900)
    assert row["params"]["samples"] == 3 * 900
    other = train("second.txt", checkpoint="other")
    assert other["n_train"] == 900
    np.testing.assert_array_equal(coef(tmp_path, "grown.txt"), coef(tmp_path, "second.txt"))


def test_an_interrupted_continuation_is_resumed_to_the_same_bits(kind, train, tmp_path, table):
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_text(HEAD[kind] + text(table, kind, slice(0, 300)))
        train(name, checkpoint=name[0])
        with open(tmp_path / name, "a") as file:
            file.write(text(table, kind, slice(300, 900)))
    train("a.txt", checkpoint="a")
    assert train("b.txt", "--budget-samples", 1500, checkpoint="b")["params"]["samples"] < 1600
    assert train("b.txt", checkpoint="b")["n_train"] == 900
    np.testing.assert_array_equal(coef(tmp_path, "a.txt"), coef(tmp_path, "b.txt"))


def problem(task):
    rng = np.random.default_rng(5)
    X = rng.uniform(-1, 1, (240, 3))
    f = np.sin(3 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.3 * rng.standard_normal(240)
    return X, {
        "regression": f,
        "binary": np.where(f > 0, 1.0, -1.0),
        "multiclass": np.digitize(f, [-0.5, 0.5]) + 1.0,
    }[task]


@pytest.mark.parametrize("task", ["regression", "binary", "multiclass"])
@pytest.mark.parametrize(
    "name, options",
    [
        ("rf", {"n_features": 60}),
        ("rf", {"n_features": 60, "solver": "cg", "loss": "squared"}),
        ("rf", {"n_features": 60, "loss": "squared", "offset": "mean"}),
        ("rf", {"n_features": 60, "solver": "liblinear", "loss": "squared_hinge"}),
        ("sparse-rf", {"n_features": 60, "lam": 1.0, "rounds": 3}),
        ("sparse-rf", {"n_features": 60, "lam": 1.0, "solver": "prcd"}),
        ("nystrom", {"n_features": 40}),
        ("kernel", {"loss": "squared"}),
        ("kernel", {"loss": "logistic"}),
        ("rb", {"n_grids": 16}),
        ("rb", {"n_grids": 32, "grow": 0.3}),
        ("rb", {"n_grids": 16, "loss": "squared_hinge"}),
        ("sparse-rb", {"n_grids": 16, "lam": 0.5}),
    ],
)
def test_the_last_error_is_that_of_the_model(name, options, task):
    if task == "regression" and options.get("loss", "squared") != "squared":
        options = {name: value for name, value in options.items() if name not in ("loss", "solver")}
    if options != {"n_features": 60}:  # one of them also chooses scaling and metric
        options = {"scaling": "standard", "metric": "none", **options}
    X, y = problem(task)
    method = methods.create(name, task=task, **options)
    method = method.fit(X[:160], y[:160], held_out=(X[160:], y[160:]))
    score = method.score(X[160:], y[160:]).score
    errors = [entry["error"] for entry in method.trace if "error" in entry]
    assert errors and errors[-1] == pytest.approx(
        score if task == "regression" else 1 - score, rel=1e-6, abs=1e-9
    )
    plain = methods.create(name, task=task, **options).fit(X[:160], y[:160])
    assert np.array_equal(plain.decision_function(X), method.decision_function(X)), (
        "to watch changes nothing"
    )


@pytest.mark.parametrize(
    "name, options", [("auto", {}), ("block", {}), ("rf", {"lam_path": "10:1:3"})]
)
def test_what_can_not_be_watched_is_refused(name, options):
    X, y = problem("binary")
    with pytest.raises(UsageError, match="curves are not supported for method"):
        methods.create(name, **options).fit(X, y, held_out=(X, y))


def test_curve_goes_into_the_trace(tmp_path, capfd):
    words = ("train", "--method", "rf", "--data", "breast_cancer", "--n-features", 50, "--curve")
    words += ("--gamma", 1, "--lam", 1, "--no-baseline")
    assert "writes its curve only to a trace" in refused(capfd, *words, code=2)
    printed(capfd, *words, "--trace", tmp_path / "t.csv")
    (steps,) = results.read_steps(tmp_path / "t.csv").values()
    assert 0 <= steps[-1]["error"] < 0.2


def test_a_checkpoint_of_other_rows_says_so_where_they_chose_another_kernel(tmp_path):
    """The choice of the inputs depends on the rows; nobody passed --kernel."""
    rows = np.random.default_rng(0).normal(size=(60, 2))
    options = {"task": "regression", "scaling": "standard", "metric": "none"}
    first = methods.create("local", kernel="laplacian", **options)
    first.keep(tmp_path / "k.npz").fit(rows[:40], rows[:40, 0])
    other = methods.create("local", kernel="laplacian-l2", **options)
    with pytest.raises(UsageError, match="other rows"):
        other.keep(tmp_path / "k.npz", resume=True).fit(rows, rows[:, 0])
