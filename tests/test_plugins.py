"""Plug-ins: the package in tests/plugin, installed and used from the shell by separate processes; a
bad plug-in gives one sentence.
"""

import csv
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parent.parent
EXAMPLE = ROOT / "tests/plugin"
# a file: reading it does not need scikit-learn
ROWS = ROOT / "tests/fixtures/cancer.libsvm"
DOCUMENT = (ROOT / "docs/plugins.md").read_text()
# nothing is chosen of the inputs, which takes most of the time
INPUTS = ("--scaling", "minmax01", "--metric", "none", "--no-baseline")


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """A folder for PYTHONPATH with the example installed; pip would fetch its build
    requirements.
    """
    pytest.importorskip("setuptools")
    source, target = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("site")
    shutil.copytree(EXAMPLE, source / "plugin")
    words = [sys.executable, "-W", "ignore", "-c", "import setuptools; setuptools.setup()", "-q"]
    for name in ("install_lib", "install_egg_info"):
        words += [name, "--install-dir", target]
    subprocess.run(words, cwd=source / "plugin", check=True, capture_output=True)
    return target


@pytest.fixture
def rfx(installed, tmp_path):
    """Run a command line in tmp_path, with the example or with other folders, which must end with
    that exit code; (standard output, standard error).
    """

    def run(*arguments, folders=(installed,), program=("-m", "rfx"), code=0):
        path = os.pathsep.join(map(str, [ROOT, *folders]))
        done = subprocess.run(
            [sys.executable, *program, *map(str, arguments)],
            cwd=tmp_path,
            env=os.environ | {"PYTHONPATH": path, "RFX_DATA": str(tmp_path / "data")},
            capture_output=True,
            text=True,
        )
        assert "Traceback" not in done.stderr, done.stderr
        assert done.returncode == code, done.stderr
        return done.stdout, done.stderr

    return run


def package(folder, name, entry_points, code=""):
    """An installed package in `folder`: a module, its metadata and its entry points."""
    info = folder / f"{name}-2.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 2.0\n")
    (info / "entry_points.txt").write_text(entry_points)
    (folder / f"{name}.py").write_text(code)
    return folder


def test_the_document_shows_the_whole_package():
    files = re.findall(r"^```{literalinclude} \.\./tests/plugin/(.*)$", DOCUMENT, re.M)
    assert sorted(files) == sorted(path.name for path in EXAMPLE.iterdir() if path.is_file())


@pytest.mark.slow
def test_the_documents_commands_run(rfx):
    lines = re.findall(r"^\$ (.*)$", DOCUMENT, re.M)
    assert lines[0] == "pip install ."
    for line in lines[1:]:
        program, *arguments = shlex.split(line)
        out, err = rfx(*arguments)
        assert program == "rfx" and not err, line
        assert out or "-o" in arguments


@pytest.mark.slow
def test_train_predict_and_eval_of_a_model_that_needs_its_package(rfx):
    words = f"--data {ROWS} --task binary --kernel inverse-quadratic --gamma 0.5".split()
    words += ["--n-features", "64", *INPUTS]
    more = ("--steps", "30", "--model", "m.npz", "--test", ROWS, "--json")
    trained = json.loads(rfx("train", "--method", "landweber", *words, *more)[0])
    assert (trained["method"], trained["n_iter"]) == ("landweber", 30)
    assert trained["score"] > 0.9
    scored = json.loads(rfx("eval", "m.npz", "--data", ROWS, "--json")[0])
    assert scored["score"] == trained["score"]
    out, err = rfx("predict", "m.npz", ROWS, folders=(), code=1)
    assert out == "" and "method 'landweber' is unknown" in err
    # rfx's own method with the kernel of the package needs the package, too
    rfx("train", "--method", "rf", *words, "--model", "k.npz")
    out, err = rfx("predict", "k.npz", ROWS, folders=(), code=1)
    assert out == "" and "inverse-quadratic" in err


@pytest.mark.slow
def test_a_method_with_kernel_and_lambda_is_tuned(rfx, tmp_path):
    code = "from rfx.methods.rf import RF\n\n\nclass Own(RF):\n    name = 'own'\n"
    package(tmp_path / "own", "own", "[rfx.methods]\nown = own:Own\n", code)
    words = ["tune", "--data", ROWS, "--trials", "2", *INPUTS[:4], "--method"]
    assert "rfx train --method own" in rfx(*words, "own", folders=[tmp_path / "own"])[0]
    assert "'landweber' can't be searched" in rfx(*words, "landweber", code=2)[1]


@pytest.mark.slow
def test_options_are_listed_and_checked(rfx, tmp_path):
    out, err = rfx("methods", "--json")
    listed = {method["name"]: method["options"] for method in json.loads(out)}
    assert not err and listed["landweber"]["steps"] == 100
    assert "rounds" in listed["sparse-rf"]
    assert "--steps INTEGER" in rfx("train", "--help-all")[0]
    assert "inverse-quadratic" in rfx("featurize", "--help")[0]
    refused = rfx("train", "--method", "landweber", "--steps", "0", "--data", ROWS, code=2)[1]
    assert "--steps is '0'; it must be a whole number 1 or more" in refused
    # and in a plan
    run = f'[[run]]\ndataset = "{ROWS}"\nmethod = "landweber"\noptions.steps = "many"\n'
    (tmp_path / "plan.toml").write_text(run)
    refused = rfx("run", "plan.toml", "--results", "r.csv", code=2)[1]
    assert "--steps is 'many'; it must be a whole number" in refused


KERNEL_OF_FEATURES = """
import numpy as np
from rfx import features, kernels

X = np.random.default_rng(0).uniform(-1, 1, (9, 5))
Z = features.sample("inverse-quadratic", 5, 200_000, 1, dtype=np.float64, gamma=0.7).transform(X)
exact = kernels.block("inverse-quadratic", X, X, {"gamma": 0.7})
expected = 1 / (1 + 0.7 * ((X[:, None] - X) ** 2).sum(-1))
np.testing.assert_allclose(exact, expected, atol=1e-12)
# five standard errors of a mean of 200,000 products of variance 1.5 at most
assert np.abs(Z @ Z.T / 200_000 - exact).max() < 5 * np.sqrt(1.5 / 200_000)
"""
CLASSES = """
import pickle
import numpy as np
from rfx import estimators
from rfx.estimators import InverseQuadraticFeatures, LandweberRegressor

assert {"InverseQuadraticFeatures", "LandweberClassifier"} < set(estimators.names())
X = np.random.default_rng(0).uniform(-1, 1, (90, 3))
assert InverseQuadraticFeatures(gamma=0.5, n_features=7).fit_transform(X).shape == (90, 7)
model = LandweberRegressor(kernel="inverse-quadratic", gamma=0.5, steps=9).fit(X, X[:, 0])
assert (pickle.loads(pickle.dumps(model)).predict(X) == model.predict(X)).all()
model.save("m.npz")
again = estimators.load("m.npz")
assert type(again) is LandweberRegressor
assert again.get_params() == model.get_params()
assert "steps : int, default=100" in LandweberRegressor.__doc__
assert estimators.estimator_class("landweber", "regression") is LandweberRegressor
assert estimators.estimator_class("rf", "regression") is estimators.RFRegressor
"""
NEIGHBOURS = """
import numpy as np
from rfx.estimators import KNNClassifier, KNNRegressor
from sklearn.neighbors import KNeighborsRegressor

X = np.random.default_rng(0).uniform(size=(90, 3))
ours = KNNRegressor(neighbours=4, scaling="none").fit(X, X[:, 0])
want = KNeighborsRegressor(4).fit(X, X[:, 0]).predict(X)
np.testing.assert_allclose(ours.predict(X), want)
assert KNNClassifier().fit(X, X[:, 0] > 0.5).score(X, X[:, 0] > 0.5) > 0.8
"""


@pytest.mark.parametrize(
    "code",
    [KERNEL_OF_FEATURES, CLASSES, NEIGHBOURS],
    ids=["features estimate the kernel", "classes", "a method of another kind"],
)
@pytest.mark.slow
def test_it_is_used_from_python(rfx, code):
    assert rfx(program=("-c", code))[1] == ""


@pytest.mark.slow
def test_a_method_of_another_kind(rfx):
    words = f"--data {ROWS} --task binary --scaling standard --test {ROWS} --json".split()
    row = json.loads(rfx("train", "--method", "knn", *words, "--model", "m.npz")[0])
    chosen = {step["by"]: step["chosen"] for step in row["params"]["validation"]}
    assert chosen["knn"][0] in (1, 2, 4, 8, 16, 32)
    assert row["score"] > 0.9
    assert json.loads(rfx("eval", "m.npz", "--data", ROWS, "--json")[0])["score"] == row["score"]


@pytest.mark.slow
def test_a_peer_stands_in_a_plan(rfx, tmp_path):
    (tmp_path / "plan.toml").write_text(
        f"""
[defaults]
holdout = 0.3
[[run]]
dataset = "{ROWS}"
method = "forest"
options.task = "binary"
options.trees = 20
[[run]]
dataset = "airfoil.csv"
method = "forest"
options.trees = 20
"""
    )
    random = np.random.default_rng(0).uniform(size=(200, 2))
    lines = [f"{a:.3f},{b:.3f},{a * b:.4f}\n" for a, b in random]
    (tmp_path / "airfoil.csv").write_text("a,b,y\n" + "".join(lines))
    rfx("run", "plan.toml", "--results", "r.csv")
    with open(tmp_path / "r.csv", newline="") as file:
        binary, numbers = csv.DictReader(file)
    assert float(binary["score"]) > 0.85
    assert float(numbers["score"]) < 0.1
    words = ("train", "--method", "forest", "--data", ROWS)
    assert "models of forest can't be saved" in rfx(*words, "--model", "m.npz", code=2)[1]
    assert "forest" in rfx(*words, "--trees", 10, "--cv", 3, "--calibrate", "platt")[0]


OPTION_OF_A_KERNEL = """
from rfx.features.fourier import FourierMap
from rfx.kernels import GammaKernel
from rfx.options import Option


class Kernel(GammaKernel):
    name, formula, metric = "other", "as gaussian", "squared"
    options = (Option("colour", str, "A colour.", ("red", "blue"), default="red"),)


class Map(FourierMap):
    kernels = (Kernel(),)
"""


@pytest.mark.slow
def test_an_option_of_its_kernel(rfx, tmp_path):
    points = "[rfx.feature_maps]\nother = other:Map\n"
    code = (
        "import pickle\nfrom rfx import estimators\n"
        "kind = estimators.estimator_class('rf', 'classification')\n"
        "assert kind is estimators.RFClassifier\n"
        "model = pickle.loads(pickle.dumps(kind(kernel='other', colour='blue')))\n"
        "assert type(model) is kind and model.colour == 'blue' and 'colour : str' in kind.__doc__\n"
    )
    folders = [package(tmp_path / "site", "other", points, OPTION_OF_A_KERNEL)]
    rfx(program=("-c", code), folders=folders)


FAILS = "[rfx.methods]\nbroken = broken:Method\n[rfx.feature_maps]\nbroken-kernel = broken:Map\n"


@pytest.mark.slow
def test_an_entry_point_of_another_name_is_said(rfx, tmp_path):
    points = "[rfx.methods]\nfirst = named:Second\n"
    code = "from rfx.methods.rf import RF\n\n\nclass Second(RF):\n    name = 'second'\n"
    folders = [package(tmp_path / "site", "named", points, code)]
    _, err = rfx("methods", "first", folders=folders, code=1)
    assert "named:Second is called 'second'; give the entry point the same" in err


@pytest.mark.parametrize(
    "code", ["import nothing_of_that_name", "raise SystemExit(3)", "Method = Map = None"]
)
@pytest.mark.slow
def test_one_that_fails_is_left_out(rfx, tmp_path, code):
    folders = [package(tmp_path / "site", "broken", FAILS, code)]
    out, err = rfx("methods", folders=folders)
    assert "rf: random features" in out and "broken" not in out
    assert "method broken of package broken 2.0" in err
    assert "kernel broken-kernel of package broken 2.0" in err
    assert len(err.splitlines()) == 2
    assert all(line.endswith("; it is ignored") for line in err.splitlines())


@pytest.mark.slow
def test_one_that_fails_stops_no_other(rfx, tmp_path):
    folders = [package(tmp_path / "site", "broken", FAILS, "import nothing_of_that_name")]
    words = ["--data", ROWS, "--task", "binary"]
    rfx("train", "--method", "rf", *words, *INPUTS, "--n-features", "16", folders=folders)
    out, err = rfx("train", "--method", "broken", *words, folders=folders, code=1)
    assert out == "" and "method broken of package broken 2.0" in err
    assert "fix or remove that package" in err


@pytest.mark.slow
def test_a_name_that_is_taken(rfx, installed, tmp_path):
    points, code = "[rfx.methods]\nrf = taken:RF\n", "from rfx.methods.rf import RF\n"
    taken = package(tmp_path / "one", "taken", points, code)
    points = "[rfx.methods]\nlandweber = rfx_example:Landweber\n"
    second = package(tmp_path / "two", "second", points)
    out, err = rfx("methods", folders=[installed, taken, second])
    assert out.count("landweber:") == 1 and out.count("\nrf:") == 1
    assert "method rf of package taken 2.0 is ignored: rfx has its own method of that name" in err
    words = ("--method", "rf", "--data", ROWS, "--task", "binary", "--n-features", "16")
    said = rfx("train", *words, *INPUTS, "--lam", "0.01", folders=[taken])[1]
    assert said == "rfx: nothing is kept; --model FILE keeps the model\n"
