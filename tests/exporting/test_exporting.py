"""Exported models predict like rfx: JSON by a reader in numpy, C by a compiler, ONNX by
onnxruntime.
"""

import ctypes
import dataclasses
import datetime
import inspect
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import by_numpy
import numpy as np
import pytest
from domains import suited
from shell import called, printed, refused, run

from rfx import lazy, methods, steps
from rfx.errors import UsageError
from rfx.exporting import TARGETS, c_source, json_text, onnx_graph
from rfx.exporting.json_text import step_name
from rfx.exporting.program import Program
from rfx.fitting.held_out import VECTOR_SCALING, Calibration
from rfx.kernels import KERNELS

ROOT = Path(__file__).resolve().parents[2]
DOCUMENT = (ROOT / "docs" / "export.md").read_text()
TOLERANCE = 1e-5


FIXED = {"gamma": 0.3, "lam": 0.1, "scaling": "standard", "metric": "none"}
STREAM = {"gamma": 0.3, "scaling": "standard", "batch": 16, "epochs": 1, "dtype": "float64"}
# name: method, task, options, calibration
CASES = {
    "fourier": ("rf", "regression", FIXED | {"n_features": 100, "offset": "mean"}, None),
    "logarithm": ("rf", "regression", FIXED | {"n_features": 60, "target_transform": "log"}, None),
    "pairs": ("rf", "multiclass", FIXED | {"n_features": 100, "features": "pairs"}, "isotonic"),
    "diagonal": ("rf", "binary", FIXED | {"n_features": 60, "metric": "diagonal"}, "platt"),
    "full": ("rf", "regression", FIXED | {"n_features": 60, "metric": "full"}, None),
    "sparse": ("sparse-rf", "binary", FIXED | {"n_features": 100, "loss": "logistic"}, None),
    "chosen": ("lkrf", "multiclass", FIXED | {"pool": 300}, "platt"),
    "nystrom": ("nystrom", "regression", FIXED | {"n_features": 60}, None),
    "block": ("block", "multiclass", FIXED | {"block_size": 40}, VECTOR_SCALING),
    "local": (
        "local",
        "multiclass",
        {"scaling": "standard", "metric": "none", "leaf_rows": 40},
        None,
    ),
    "uniform": ("block", "binary", FIXED | {"block_size": 40, "partition": "uniform"}, None),
    "boosting": ("boosting", "binary", {"n_features": 20, "lam": 0.1}, None),
    "stumps": ("boosting", "multiclass", {"n_features": 20, "lam": 1, "kernel": "stump"}, None),
    "rb": ("rb", "regression", FIXED | {"n_grids": 32}, None),
    "sparse-rb": ("sparse-rb", "multiclass", FIXED | {"n_grids": 32}, None),
    "rfm": ("rfm", "binary", FIXED | {"kernel": "laplacian", "metric": "full"}, VECTOR_SCALING),
    "machine": ("kernel", "binary", FIXED, None),
    "machines": ("kernel", "multiclass", FIXED, "platt"),
    "doubly-sgd": ("doubly-sgd", "binary", STREAM | {"unit": True, "pca": 3, "block": 64}, None),
    "norma": ("norma", "regression", STREAM, None),
    "r-sdca": ("r-sdca", "multiclass", STREAM | {"n_features": 64}, None),
    "n-sdca": ("n-sdca", "regression", STREAM | {"n_features": 64}, None),
    "mlp": ("mlp", "multiclass", {"layers": "8,8", "scaling": "standard"}, None),
}
SCALINGS = ("none", "minmax01", "minmax11", "power", "robust", "quantile")
CASES |= {
    f"scaling {kind}": ("rf", "binary", FIXED | {"n_features": 40, "scaling": kind}, None)
    for kind in SCALINGS
}


def of_kernel(method, kernel, scaling, **more):
    """The case of a kernel; some kernels choose their scaling themselves."""
    own = {} if KERNELS[kernel].scalings else {"scaling": scaling}
    return method, "regression", {"kernel": kernel, "lam": 0.1} | own | more, None


MAPPED = ("linear", "polynomial-2", "exponential", "perceptron", "stump", "matern-3/2")
MAPPED += ("additive-chi2", "skewed-chi2", "rational-quadratic", "multiscale", "polynomial-3")
MAPPED += ("arccosine-0", "arccosine-1", "arccosine-2")
CASES |= {f"rf {name}": of_kernel("rf", name, "minmax11", n_features=40) for name in MAPPED}
CASES["rf signs"] = ("rf", "binary", FIXED | {"kernel": "polynomial-3", "features": "signs"}, None)
CASES |= {
    f"kernel {name}": of_kernel("kernel", name, "minmax11")
    for name, kernel in KERNELS.items()
    if kernel.metric
}
# the smallest set that has every step
FEW = (
    "fourier",
    "pairs",
    "diagonal",
    "full",
    "block",
    "local",
    "machines",
    "boosting",
    "rb",
    "sparse-rb",
    "doubly-sgd",
    "mlp",
    "scaling power",
    "scaling robust",
    "scaling quantile",
    "rf polynomial-2",
    "rf signs",
    "rf additive-chi2",
    "rf stump",
    "rf arccosine-0",
    "rf arccosine-2",
    "kernel stump",
    *(f"kernel {name}" for name in ("gaussian", "laplacian", "matern-3/2", "matern-5/2")),
    *(f"kernel {name}" for name in ("hat", "rational", "erlang", "exponential")),
    *(f"kernel {name}" for name in ("additive-chi2", "skewed-chi2", "hamming", "multiscale")),
    *(f"kernel {name}" for name in ("polynomial-3", "arccosine-0", "arccosine-1", "arccosine-2")),
)


def rows_and_targets(n, task, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4)) * [1.0, 5.0, 0.2, 1.0] + [3.0, 0.0, 1.0, 0.0]
    X[:, 3] = np.rint(X[:, 3])
    f = np.sin(X[:, 0]) + 0.2 * X[:, 1] * np.cos(X[:, 3])
    targets = {
        "regression": 10 + 3 * f,
        "binary": np.where(f > 0, 2.0, -1.5),
        "multiclass": np.digitize(f, [-0.5, 0.5]).astype(float),
    }
    return X, targets[task]


def new_rows(n, model):
    """Rows for a model, in the domain of its kernel."""
    X, _ = rows_and_targets(n, model.task, 1)
    return suited(model.method.get("kernel") or "gaussian", X)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A function from a case's name to its model, loaded from a file."""
    folder, found = tmp_path_factory.mktemp("models"), {}

    def get(name):
        if name not in found:
            method, task, options, kind = CASES[name]
            X, y = rows_and_targets(160, task, 0)
            X = suited(options.get("kernel", "gaussian"), X)
            y = np.exp(y) if "target_transform" in options else y
            more = {"target_scaling": "minmax01"} if task == "regression" else {}
            model = methods.create(method, task=task, **options, **more).fit(X, y)
            if kind is not None:
                X, y = rows_and_targets(1000, task, 2)
                values = model.decision_function(X)
                made = Calibration.fit(kind, values, y, model.classes, "here")
                model = model.replace(calibration=made)
            model.save(folder / "m.npz")
            found[name] = methods.load(folder / "m.npz")
        return found[name]

    return get


def expected(model, X):
    """The result (n, k) of the steps: targets, or decision values."""
    values = model.predict(X) if model.task == "regression" else model.decision_function(X)
    return values.reshape(len(X), -1)


def assert_close(found, wanted):
    np.testing.assert_allclose(found, wanted, rtol=TOLERANCE, atol=TOLERANCE * np.abs(wanted).max())


def assert_same_labels(found, wanted, values):
    """Labels are equal, unless decision values tie within the tolerance."""
    ordered = np.sort(values, axis=1)
    gap = np.abs(values[:, 0]) if values.shape[1] == 1 else ordered[:, -1] - ordered[:, -2]
    constraint = gap > TOLERANCE * max(1.0, float(np.abs(values).max()))
    assert constraint.mean() > 0.99
    assert (np.asarray(found) == np.asarray(wanted))[constraint].all()


# ---------------------------------------------------------------------- readers


def by_json(program, rows, folder):
    """(values, labels, probabilities) of rows, lists of cells: numbers, None or words."""
    read = json.loads(json_text.written(program))
    values = by_numpy.decisions(read, rows)
    labels = None if read["labels"] is None else by_numpy.labels(read, values)
    if read["probabilities"] is None:
        return values, labels, None
    return values, labels, by_numpy.carried_out(read["probabilities"], values)


def build(folder, *words):
    """The result of a compiler in a folder."""
    if shutil.which(words[0]) is None:
        pytest.skip(f"there is no {words[0]}")
    return subprocess.run(words, cwd=folder, capture_output=True, text=True)


def compiled(program, folder):
    (folder / "m.c").write_bytes(c_source.written(program))
    flags = ["-std=c99", "-Wall", "-Wextra", "-Wc++-compat", "-Werror", "-O1", "-fPIC", "-shared"]
    done = build(folder, "gcc", *flags, "-o", "m.so", "m.c", "-lm")
    assert done.returncode == 0, done.stderr[:2000]
    return ctypes.CDLL(str(folder / "m.so"))


def address(numbers):
    return ctypes.c_void_p(numbers.ctypes.data)


def out_of(function, X, count):
    X, out = np.ascontiguousarray(X, np.float64), np.zeros((len(X), count))
    assert not any(function(address(x), address(y)) for x, y in zip(X, out))
    return out


def by_c(program, rows, folder):
    library = compiled(program, folder)
    if program.has_categories:
        library.rfx_category.restype = ctypes.c_double
        text = [column.categories is not None for column in program.columns]
        code = lambda place, cell: library.rfx_category(
            place, None if cell is None else cell.encode()
        )
        rows = [[code(j, cell) if text[j] else cell for j, cell in enumerate(row)] for row in rows]
    values = out_of(library.rfx_predict, np.array(rows, float), program.n_outputs)
    if program.labels is None:
        return values, None, None
    word = isinstance(program.labels[0], str)
    kind = ctypes.c_char_p if word else ctypes.c_double
    names = (kind * len(program.labels)).in_dll(library, "rfx_labels")
    labels = [names[library.rfx_label(address(own))] for own in values]
    labels = [label.decode() for label in labels] if word else labels
    if program.probabilities is None:
        return values, labels, None
    return values, labels, out_of(library.rfx_probabilities, values, len(program.labels))


def session(text):
    runtime = pytest.importorskip("onnxruntime")
    options = runtime.SessionOptions()
    options.intra_op_num_threads = 1
    return runtime.InferenceSession(text, options, providers=["CPUExecutionProvider"])


def by_onnx(program, rows, folder):
    pytest.importorskip("onnx")
    made = session(onnx_graph.written(program))
    if program.has_categories:
        cells = [np.array(own, object)[:, None] for own in zip(*rows)]
        given = {
            one.name: own.astype(float) if column.categories is None else np.where(own, own, "")
            for one, own, column in zip(made.get_inputs(), cells, program.columns)
        }
    else:
        given = {"X": np.array(rows, float)}
    found = dict(zip([output.name for output in made.get_outputs()], made.run(None, given)))
    values = found.pop("variable" if program.labels is None else "decision")
    labels, shares = found.pop("label", None), found.pop("probabilities", None)
    assert not found
    return values, labels, shares


FORMS = {"json": by_json, "c": by_c, "onnx": by_onnx}
each_form = pytest.mark.parametrize("form", FORMS)


def test_every_target_has_a_reader_and_an_example():
    assert FORMS.keys() == TARGETS.keys()
    assert {name for name in TARGETS if f"--to {name}" in DOCUMENT} == TARGETS.keys()


@pytest.mark.slow
@pytest.mark.parametrize(
    "form, name", [(form, name) for form in FORMS for name in (CASES if form == "json" else FEW)]
)
def test_a_form_predicts_as_the_model(trained, tmp_path, form, name):
    model = trained(name)
    X = new_rows({"json": 60, "c": 500, "onnx": 5000}[form], model)
    program, wanted = Program.of(model), expected(model, X)
    values, labels, shares = FORMS[form](program, X.tolist(), tmp_path)
    assert_close(values, wanted)
    assert (labels is None) == (model.task == "regression")
    if labels is not None:
        assert_same_labels(labels, model.predict(X), wanted)
    assert (shares is not None) == model.has_probabilities
    if shares is not None:
        wanted = model.probabilities(model.decision_function(X))
        np.testing.assert_allclose(shares, wanted, atol=1e-4)


@pytest.mark.parametrize("name", ["fourier", "diagonal"])
def test_a_missing_number_is_no_prediction(trained, tmp_path, name):
    model = trained(name)
    program, X = Program.of(model), new_rows(2, model)
    X[0, 0] = np.nan
    out = np.zeros(program.n_outputs)
    assert compiled(program, tmp_path).rfx_predict(address(X), address(out)) == 2
    assert np.isnan(by_onnx(program, X.tolist(), tmp_path)[0]).tolist() == [[True], [False]]


def nested(found):
    """All steps of a list, including nested ones."""
    for step in found:
        yield step
        if isinstance(step, steps.Combined):
            for part in step.parts:
                yield from nested(part)


@pytest.mark.slow
def test_few_cases_have_every_step_function_and_comparison(trained):
    met = []
    for name in FEW:
        program = Program.of(trained(name))
        met += nested(program.steps + (program.probabilities or ()))
    kinds = {
        kind
        for _, kind in inspect.getmembers(steps, inspect.isclass)
        if issubclass(kind, steps.Step) and kind not in (steps.Step, steps.Combined)
    }
    assert {type(step) for step in met} == kinds
    assert {step.name for step in met if isinstance(step, steps.Function)} == {*steps.FUNCTIONS}
    assert {step.how for step in met if isinstance(step, steps.Compare)} == {*steps.COMPARISONS}
    # the document lists the steps and their keys
    for kind in kinds:
        instance = next(step for step in met if type(step) is kind)
        row = re.search(rf"^\| `{step_name(instance)}` \|.*$", DOCUMENT, re.M)
        assert row is not None, kind
        for own in dataclasses.fields(kind):
            assert f"`{own.name}`" in row[0], (kind, own.name)
    for word in (*steps.FUNCTIONS, *steps.COMPARISONS):
        assert f"`{word}`" in DOCUMENT, word


# ---------------------------------------------------------------------- forms


def test_onnx_of_many_inputs_takes_distances_from_products(reloaded):
    pytest.importorskip("onnx")
    X = np.random.default_rng(0).normal(size=(120, 80)) + 4
    options = FIXED | {"kernel": "laplacian-l2", "gamma": 0.1}
    model = reloaded(methods.create("kernel", **options).fit(X, X[:, 0]), X)
    text = onnx_graph.written(Program.of(model))
    kinds = {node.op_type for node in lazy.onnx.load_from_string(text).graph.node}
    assert "Scan" not in kinds
    # the training rows are their own support vectors
    assert_close(session(text).run(None, {"X": X})[0][:, 0], model.predict(X))


@each_form
@pytest.mark.parametrize("size", [1e155, 1e300])
def test_inputs_whose_square_overflows_are_clipped_as_in_rfx(trained, tmp_path, form, size):
    model = trained("scaling robust")
    X = size * new_rows(20, model)
    assert_close(FORMS[form](Program.of(model), X.tolist(), tmp_path)[0], expected(model, X))


def test_the_document_has_the_rule_of_cells_without_a_bin(trained):
    model = trained("rb")
    X = np.full((1, 4), 1e40)  # multiples of 2^64, the key of cell 0
    np.testing.assert_array_equal(
        by_json(Program.of(model), X.tolist(), None)[0], expected(model, X)
    )
    assert "2^51" in re.search(r"^\| `bins` \|.*$", DOCUMENT, re.M)[0]


@each_form
@pytest.mark.parametrize("kind", ["platt", "isotonic"])
def test_a_calibrated_label_is_the_most_probable(tmp_path, form, kind):
    model, X = calibrated(kind)
    wanted = model.classes[model.probabilities(model.decision_function(X)).argmax(1)]
    assert (model.predict(X) == wanted).all()
    # the sign of the decision values is another label
    assert (model.preprocessing.labels(model.decision_function(X)) != wanted).mean() > 0.02
    labels = FORMS[form](Program.of(model), X.tolist(), tmp_path)[1]
    assert (np.asarray(labels) == wanted).mean() > 0.999


def calibrated(kind):
    """A model of rare positives with probabilities, and new rows."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 3))
    y = np.where(X[:, 0] + rng.normal(size=3000) > 1, 2.0, 1.0)
    options = FIXED | {"n_features": 50, "class_weight": "balanced"}
    model = methods.create("rf", task="binary", **options).fit(X[:1000], y[:1000])
    held = slice(1000, 2200)
    made = Calibration.fit(kind, model.decision_function(X[held]), y[held], model.classes, "here")
    return model.replace(calibration=made), X[2200:]


# ---------------------------------------------------------------------- C programs

_MAIN = """\
#include <stdio.h>
int risk_predict(const double *x, double *out);
int risk_label(const double *out);
extern const double risk_labels[];
int price_predict(const double *x, double *out);
int main(void)
{
    double x[4] = {3, 0, 1, 0}, risk, price;
    if (risk_predict(x, &risk) || price_predict(x, &price))
        return 1;
    printf("%.9g %.9g %.9g\\n", risk, risk_labels[risk_label(&risk)], price);
    return 0;
}
"""


def test_two_models_are_linked_by_their_prefixes(trained, tmp_path):
    risk, price = trained("diagonal"), trained("rb")
    for name, model in (("risk", risk), ("price", price)):
        (tmp_path / f"{name}.c").write_bytes(c_source.written(Program.of(model), name))
    (tmp_path / "main.c").write_text(_MAIN)
    flags = ("-std=c99", "-Wall", "-Wextra", "-Werror")
    done = build(tmp_path, "gcc", *flags, "risk.c", "price.c", "main.c", "-lm", "-o", "both")
    assert done.returncode == 0, done.stderr[:2000]
    found = subprocess.run([tmp_path / "both"], capture_output=True, text=True, check=True)
    x = np.array([[3.0, 0.0, 1.0, 0.0]])
    wanted = [risk.decision_function(x)[0], risk.predict(x)[0], price.predict(x)[0]]
    np.testing.assert_allclose([*map(float, found.stdout.split())], wanted, rtol=1e-5)


@pytest.mark.slow
def test_cpp_of_a_table_exports_c_names(tables, tmp_path):
    (tmp_path / "m.c").write_bytes(c_source.written(Program.of(methods.load(tables / "class.npz"))))
    done = build(tmp_path, "g++", "-x", "c++", "-Wall", "-Wextra", "-Werror", "-c", "m.c")
    assert done.returncode == 0, done.stderr[:2000]
    names = build(tmp_path, "nm", "-g", "--defined-only", "m.o").stdout.split()
    assert {"rfx_predict", "rfx_label", "rfx_labels", "rfx_category"} <= {*names}


def test_a_flag_that_loses_missing_values_is_an_error(trained, tmp_path):
    (tmp_path / "m.c").write_bytes(c_source.written(Program.of(trained("fourier"))))
    done = build(tmp_path, "gcc", "-std=c99", "-ffast-math", "-c", "m.c")
    assert done.returncode != 0
    assert "compile without -ffast-math" in done.stderr


# ---------------------------------------------------------------------- tables

WORDS = ("Łódź", 'New "York"', "a*/b??/", "Rome")


def table(n, seed, new=False):
    """The text of a CSV file, and the cells of its inputs; a date is four cells."""
    rng = np.random.default_rng(seed)
    lines, rows = ["age,city,label,code,when,target,class"], []
    for i in range(n):
        city, day = WORDS[rng.integers(len(WORDS))], rng.integers(600)
        age, code = float(np.round(rng.uniform(18, 80), 1)), f"c{rng.integers(50)}"
        cells = [age, city, float(i % 2), code]
        y = round(age / 10 + WORDS.index(city) + len(code) + rng.normal() / 10, 3)
        if i % 9 in (1, 2, 3):  # of age, city and code
            cells[(0, 1, 3)[i % 9 - 1]] = None
        if new and i % 9 == 4:
            cells[1], cells[3] = "Oslo", "c99"
        date = datetime.date(2020, 1, 1) + datetime.timedelta(int(day))
        days = (date - datetime.date(1970, 1, 1)).days
        rows.append([*cells, date.year, date.month, date.weekday(), days])
        shown = ["" if cell is None else str(cell).replace('"', '""') for cell in cells]
        grade = ("low", "mid", "high")[int(np.digitize(y, [8, 10]))]
        lines.append(
            f'{shown[0]},"{shown[1]}",{"yes" if cells[2] else "no"},{shown[3]},{date},{y},{grade}'
        )
    return "\n".join(lines) + "\n", rows


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """A folder with a model of a table's targets, one of its classes, and another table."""
    folder = tmp_path_factory.mktemp("tables")
    (folder / "train.csv").write_text(table(300, 0)[0])
    (folder / "new.csv").write_text(table(90, 1, new=True)[0])
    fixed = "--gamma 0.05 --lam 0.1 --scaling standard --metric none --missing median --quiet"
    line = f"train --method kernel --kernel gaussian {fixed} --dates when"
    for target, other in (("target", "class"), ("class", "target")):
        more = ("--target", target, "--ignore", other, "--data", folder / "train.csv")
        done = called(*line.split(), *more, "--model", folder / f"{target}.npz")
        assert done.exception is None
    return folder


def predicted(capfd, folder, target, *more):
    model, rows = folder / f"{target}.npz", folder / "new.csv"
    return json.loads(printed(capfd, "predict", model, rows, "--json", *more))


def cells_of(program, rows):
    """The rows' cells in the order of a program's columns; a category of yes and no is text."""
    texts = [column.categories is not None for column in program.columns]
    words = {0.0: "no", 1.0: "yes"}
    return [
        [words.get(cell, cell) if text and place == 2 else cell for place, (cell, text) in pairs]
        for pairs in (enumerate(zip(row, texts)) for row in rows)
    ]


@each_form
@pytest.mark.parametrize("target", ["target", "class"])
def test_a_table_goes_in_as_it_is(tables, capfd, tmp_path, target, form):
    program = Program.of(methods.load(tables / f"{target}.npz"))
    # an output of ONNX is also named label
    assert [column.name for column in program.columns][:3] == ["age", "city", "label"]
    rows = cells_of(program, table(90, 1, new=True)[1])
    wanted = predicted(capfd, tables, target, *(["--decision"] if target == "class" else []))
    values, labels, _ = FORMS[form](program, rows, tmp_path)
    expected_values = wanted["decision" if target == "class" else "predictions"]
    assert_close(values, np.array(expected_values).reshape(len(rows), -1))
    assert target == "target" or list(labels) == wanted["predictions"]


@each_form
def test_categories_have_the_spelling_of_the_file(tmp_path, capfd, form):
    """Booleans, numbers and dates as categories: `true` was unseen in an export."""
    choices = (("true", "false"), ("1", "2", "3"), ("2020-01-01", "2021-02-03"))
    cells = [[words[(row // 2) % len(words)] for words in choices] for row in range(60)]
    lines = [",".join([*own, str(row % 7)]) for row, own in enumerate(cells)]
    (tmp_path / "t.csv").write_text("\n".join(["flag,code,when,y", *lines]) + "\n")
    options = "--task regression --categorical flag,code,when --method kernel --gamma 0.1 --lam 1"
    file, made = tmp_path / "t.csv", tmp_path / "m.npz"
    done = called("train", *options.split(), "--data", file, "--target", "y", "--model", made)
    assert done.exception is None
    program = Program.of(methods.load(made))
    capfd.readouterr()
    wanted = json.loads(printed(capfd, "predict", made, file, "--json"))["predictions"]
    assert_close(FORMS[form](program, cells, tmp_path)[0].ravel(), np.array(wanted))


# ---------------------------------------------------------------------- the command


def test_the_command_writes_whole_files_and_replaces_only_exports(tables, tmp_path, capfd):
    words, out = ("export", tables / "class.npz", "--to"), tmp_path / "m.json"
    (tmp_path / "notes.json").write_text("a note")
    assert "exists and" in refused(capfd, *words, "c", "-o", tmp_path / "notes.json", code=2)
    assert (tmp_path / "notes.json").read_text() == "a note"
    code, said, err = run(capfd, *words, "json", "-o", out)
    assert (code, said, err.count("\n")) == (0, "", 1)
    assert "does not include reading of dates" in err
    before = out.read_bytes()
    assert json.loads(before)["labels"] == ["high", "low", "mid"]
    printed(capfd, *words, "c", "-o", out)
    assert out.read_bytes().startswith(b"/*")
    assert len([*tmp_path.iterdir()]) == 2
    assert printed(capfd, *words, "json").encode() == before


def test_a_prefix_begins_names_in_c(tables, tmp_path, capfd):
    words = ("export", tables / "class.npz", "-o", tmp_path / "m.c", "--prefix")
    printed(capfd, *words, "risk", "--to", "c")
    text = (tmp_path / "m.c").read_text()
    assert "int risk_predict(" in text
    assert "rfx_" not in text


def test_without_onnx_the_command_says_what_to_install(tables, tmp_path, capfd, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    monkeypatch.delitem(vars(lazy), "onnx", raising=False)
    line = ("export", tables / "class.npz", "--to", "onnx", "-o", tmp_path / "m.onnx")
    said = refused(capfd, *line, code=2)
    assert "pip install 'rfx-kernels[onnx]'" in said and said.count("\n") == 1
    assert not [*tmp_path.iterdir()]


def test_what_has_no_steps_is_refused(tmp_path, capfd):
    data, model = tmp_path / "words.txt", tmp_path / "m.npz"
    data.write_text("+1 ACGT\n-1 AAGT\n+1 ACGA\n-1 TTGA\n")
    words = "train --method rf --kernel kmers --n-features 20 --lam 1 --scaling none".split()
    printed(capfd, *words, "--data", data, "--model", model)
    code, out, err = run(capfd, "export", model, "--to", "json")
    assert (code, out) == (2, "")
    assert "reads sequences of letters" in err


def test_features_of_hamming_are_refused_as_the_document_says():
    X = np.random.default_rng(0).integers(0, 3, size=(40, 3)).astype(float)
    options = FIXED | {"kernel": "hamming", "scaling": "none", "n_features": 64}
    with pytest.raises(UsageError, match="kernel hamming"):
        Program.of(methods.create("rf", task="regression", **options).fit(X, X[:, 0]))
    assert "`hamming`" in DOCUMENT.partition("## ONNX")[0]


def test_views_and_models_without_steps_are_refused(trained):
    model = trained("fourier")
    viewed = model.replace(method=trained("doubly-sgd").method.updated(views=3))
    with pytest.raises(UsageError, match="mean over 3 transformed copies"):
        Program.of(viewed)
    with pytest.raises(UsageError, match="models of rf can't be exported"):
        Program.of(model.replace(model=object()))


# ---------------------------------------------------------------------- parts


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("kernel", {"task": "binary"}),
        ("sparse-rf", {"lam": 1e12}),
        ("sparse-rb", {"lam": 1e12}),
    ],
)
def test_a_model_of_nothing_is_a_constant(name, options, tmp_path, reloaded):
    X, numbers = rows_and_targets(60, "regression", 0)
    y = np.ones(60) if name == "kernel" else numbers
    model = reloaded(methods.create(name, **FIXED | options).fit(X, y), X)
    assert len(model.model.coef) == 0
    for form in (by_json, by_c):
        values = form(Program.of(model), X.tolist(), tmp_path)[0]
        np.testing.assert_array_equal(values, expected(model, X))
