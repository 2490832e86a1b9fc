"""`rfx predict`: every way to show predictions, for every task and format."""

import csv
import io
import json

import numpy as np
import pytest
from shell import printed, refused

TASKS = ("numbers", "two", "three")
SHOWN = {
    "labels": [],
    "decision": ["--decision"],
    "probabilities": ["--proba"],
    "intervals": ["--interval", 0.9],
    "sets": ["--sets", 0.9],
}
# The ways that a task has no values for.
REFUSED = {"numbers": ("probabilities", "sets"), "two": ("intervals",), "three": ("intervals",)}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A table and a model of each task."""
    folder = tmp_path_factory.mktemp("predict")
    X = np.random.default_rng(0).normal(size=(120, 2))
    targets = {
        "numbers": X[:, 0],
        "two": np.where(X[:, 0] > 0, "yes", "no"),
        "three": np.array(["low", "mid", "top"])[np.digitize(X[:, 0], [-0.4, 0.4])],
    }
    for name, y in targets.items():
        rows = [["a", "b", "y"], *zip(*X.T.tolist(), y.tolist())]
        text = io.StringIO()
        csv.writer(text).writerows(rows)
        (folder / f"{name}.csv").write_text(text.getvalue())
    return folder


@pytest.fixture
def model(folder, capfd, request):
    """The task, its model file, and its table."""
    task = request.param
    path, data = folder / f"{task}.npz", folder / f"{task}.csv"
    if not path.exists():
        own = ["--method", "rf", "--n-features", 20, "--gamma", 0.5, "--lam", 1, "--quiet"]
        own += ["--kernel", "gaussian", "--scaling", "none", "--metric", "none", "--no-baseline"]
        printed(capfd, "train", "--data", data, "--target", "y", *own, "--model", path)
    return task, path, data


@pytest.mark.parametrize("digits", [[], ["--digits", 3]], ids=["exact", "rounded"])
@pytest.mark.parametrize("form", ["text", "csv", "json"])
@pytest.mark.parametrize("kind", SHOWN)
@pytest.mark.parametrize("model", TASKS, indirect=True)
def test_predictions_are_shown_or_the_option_is_refused(model, kind, form, digits, capfd):
    task, path, data = model
    words = ["predict", path, data, *SHOWN[kind], "--format", form, *digits]
    if kind in REFUSED[task]:
        said = refused(capfd, *words, code=2)
        assert said.count("\n") == 1 and SHOWN[kind][0] in said
        return
    out = printed(capfd, *words)
    if form == "json":
        found = json.loads(out)
        assert len(found["predictions"]) == 120 and (kind == "labels" or len(found[kind]) == 120)
        return
    rows = list(csv.reader(io.StringIO(out))) if form == "csv" else out.splitlines()
    assert len(rows) == 120 + (form == "csv")


@pytest.mark.parametrize("model", TASKS, indirect=True)
@pytest.mark.parametrize(
    "both", [(a, b) for a in list(SHOWN)[1:] for b in list(SHOWN)[1:] if a < b], ids="-".join
)
def test_two_ways_at_once_are_refused(model, both, capfd):
    _, path, data = model
    options = [SHOWN[kind] for kind in both]
    said = refused(capfd, "predict", path, data, *options[0], *options[1], code=2)
    assert said.count("\n") == 1 and all(own[0] in said for own in options)
