"""How a file was read is part of the model, and other files are read alike."""

import json

import numpy as np
import pytest

from rfx import methods
from rfx.cli import main
from rfx.data.reading import FileFormat
from rfx.data.schema import Schema
from rfx.errors import DataError

FAST = ("--method", "rf", "--n-features", 50, "--gamma", 1, "--lam", 1)
RNG = np.random.default_rng(3)


@pytest.fixture(autouse=True)
def small(one_thread, own_folders):
    pass


def run(capfd, *args):
    """(exit code, standard output, standard error) of `rfx args`."""
    with pytest.raises(SystemExit) as stop:
        main([str(arg) for arg in args])
    out, err = capfd.readouterr()
    return stop.value.code, out, err


def good(capfd, *args):
    """Standard output and error of a command that must end well."""
    code, out, err = run(capfd, *args)
    assert code == 0, err
    return out, err


def refused(capfd, *args):
    """The one sentence that a command is refused with."""
    code, out, err = run(capfd, *args)
    lines = [line for line in err.splitlines() if "--target names another" not in line]
    assert code != 0 and len(lines) == 1 and "Traceback" not in err, err
    return lines[0]


# ---------------------------------------------------------------------- where indices start


@pytest.fixture
def indexed(tmp_path):
    """Rows whose label is 1 where column 0 is there: zero.libsvm, its rows of label -1 alone, and the same with indices from 1."""
    rows = [(i % 2, RNG.normal(size=2).round(2).tolist()) for i in range(50)]

    def text(rows, base):
        lines = [f"{1 if one else -1} {f'{base}:1 ' if one else ''}{base + 1}:{a} {base + 2}:{b}\n" for one, (a, b) in rows]
        return "".join(lines)

    (tmp_path / "zero.libsvm").write_text(text(rows, 0))
    (tmp_path / "one.libsvm").write_text(text(rows, 1))
    (tmp_path / "new-zero.libsvm").write_text(text([row for row in rows if not row[0]], 0))
    (tmp_path / "new-one.libsvm").write_text(text([row for row in rows if not row[0]], 1))
    return tmp_path


@pytest.mark.parametrize("how", ["train", "stream", "path", "tune"])
def test_a_model_knows_where_its_indices_start(how, indexed, capfd):
    model = indexed / "m.npz"
    data = ("--data", indexed / "zero.libsvm", "--zero-based", "--model", model)
    if how == "train":
        good(capfd, "train", *FAST, *data)
    elif how == "stream":
        good(capfd, "train", "--method", "doubly-sgd", "--gamma", 1, "--stream", "--batch", 32, "--epochs", 2, *data)
    elif how == "path":
        good(capfd, "train", "--method", "sparse-rf", "--n-features", 50, "--gamma", 1, "--lam-path", "2:1:2", *data)
        model = next(indexed.glob("m-lam*.npz"))
    else:
        good(capfd, "tune", "--method", "rf", "--n-features", 50, "--gamma", 1, "--budget-seconds", 5, *data)
    assert methods.load(model).schema.format == FileFormat("libsvm", zero_based=True)
    plain, _ = good(capfd, "predict", model, indexed / "new-zero.libsvm")
    flagged, _ = good(capfd, "predict", model, indexed / "new-zero.libsvm", "--zero-based")
    assert plain == flagged
    scores = [
        json.loads(good(capfd, "eval", model, "--data", indexed / "zero.libsvm", "--json", *more)[0]) for more in ((), ("--zero-based",))
    ]
    assert scores[0]["score"] == scores[1]["score"] and scores[0]["n_test"] == 50


def test_featurize_with_a_model_knows_where_its_indices_start(indexed, capfd):
    good(capfd, "train", *FAST, "--data", indexed / "zero.libsvm", "--zero-based", "--model", indexed / "m.npz")
    first, _ = good(capfd, "featurize", indexed / "new-zero.libsvm", "--model", indexed / "m.npz")
    second, _ = good(capfd, "featurize", indexed / "new-zero.libsvm", "--model", indexed / "m.npz", "--zero-based")
    assert first == second


@pytest.mark.parametrize("command", ["predict", "eval", "featurize"])
def test_indices_that_start_elsewhere_are_refused(command, indexed, capfd):
    for name, more in (("zero", ["--zero-based"]), ("one", [])):
        good(capfd, "train", *FAST, "--data", indexed / f"{name}.libsvm", "--model", indexed / f"m-{name}.npz", *more)
    words = {
        "predict": ["predict", "MODEL", "FILE"],
        "eval": ["eval", "MODEL", "--data", "FILE"],
        "featurize": ["featurize", "FILE", "--model", "MODEL"],
    }

    def said(model, file, *more):
        known = {"MODEL": indexed / f"m-{model}.npz", "FILE": indexed / f"{file}.libsvm"}
        return refused(capfd, *(known.get(word, word) for word in words[command]), *more)

    assert "--zero-based contradicts the model, whose training rows have indices from 1" in said("one", "new-one", "--zero-based")
    assert "line 2, column 3: the index is 0 but indices start at 1" in said("one", "zero")
    assert "has index 3 but no index 0, so its indices seem to start at 1" in said("zero", "new-one")


def test_a_registry_s_index_base_goes_into_the_model(indexed, capfd, monkeypatch):
    (indexed / "own.toml").write_text('[mine]\ntrain = "zero.libsvm"\nzero_based = true\n')
    monkeypatch.setenv("RFX_DATASETS", str(indexed / "own.toml"))
    good(capfd, "train", *FAST, "--data", "mine", "--model", indexed / "m.npz")
    plain, _ = good(capfd, "predict", indexed / "m.npz", indexed / "new-zero.libsvm")
    flagged, _ = good(capfd, "predict", indexed / "m.npz", indexed / "new-zero.libsvm", "--zero-based")
    assert plain == flagged and plain.count("\n") == 25


def test_a_damaged_file_format_is_refused(indexed, capfd):
    good(capfd, "train", *FAST, "--data", indexed / "zero.libsvm", "--zero-based", "--model", indexed / "m.npz")
    header = methods.load(indexed / "m.npz").schema.to_dict()
    assert Schema.from_dict(json.loads(json.dumps(header))).format.zero_based is True
    for change in ({"kind": 3}, {"zero_based": "yes"}, {"separator": 1}, {"other": 1}):
        with pytest.raises(DataError, match="its schema is damaged"):
            Schema.from_dict(header | {"format": header["format"] | change})
