"""Keys of runs: what distinguishes two runs, defaults that count, and rows of the first version
that are still valid.
"""

import os
import re

import pytest

from rfx import methods
from rfx.records import keys
from rfx.records.run import Run

SPEC = {
    "dataset": "cpu",
    "split": "yen2014",
    "method": "rf",
    "options": {"lam": 1},
    "seed": 0,
}


def test_key_counts_what_decides_the_run_and_nothing_else():
    same = [
        SPEC | {"threads": 4, "timeout": 5, "checkpoint": "m.npz", "every": 3, "resume": True},
        SPEC | {"test": None, "zero_based": False, "train_score": False},
        SPEC | {"groups": None, "time": None},
        SPEC | {"options": {"lam": 1.0, "kernel": "auto", "tol": None, "timeout": 9}},
        SPEC | {"options": {"lam": 1, "scaling": "auto", "metric": "auto"}},
        SPEC | {"options": {"lam": 1, "n_features": methods.create("rf").method.n_features}},
        SPEC | {"options": {"lam": 1, "gamma": "loo"}},
        {name: value for name, value in SPEC.items() if name != "seed"},
        dict(reversed(SPEC.items())),
    ]
    assert {keys.key(Run.of(spec)) for spec in same} == {keys.key(Run.of(SPEC))}
    others = [
        SPEC | {"seed": 1},
        SPEC | {"split": None},
        SPEC | {"label": "tuned"},
        SPEC | {"method": "sparse-rf"},
        SPEC | {"train_score": True},
        SPEC | {"groups": "who"},
        SPEC | {"groups": "a"},
        SPEC | {"time": "who"},
        SPEC | {"options": {"lam": 2}},
        SPEC | {"options": {"lam": 1, "tol": 1}},
        SPEC | {"options": {"lam": 1, "kernel": "gaussian"}},
        SPEC | {"options": {"lam": 1, "gamma": 0.5}},
        SPEC | {"fixed_threads": True, "threads": 1},
        SPEC | {"fixed_threads": True, "threads": 2},
    ]
    assert len({keys.key(Run.of(spec)) for spec in [SPEC, *others]}) == len(others) + 1
    assert re.fullmatch(r"v1-[0-9a-f]{16}", keys.key(Run.of(SPEC)))


def test_key_of_a_file_follows_its_content_not_its_folder(tmp_path, monkeypatch):
    data = tmp_path / "a.libsvm"
    data.write_text("1 1:1\n")
    before = keys.key(Run.of(SPEC | {"dataset": str(data)}))
    os.utime(data, (1, 1))
    monkeypatch.chdir(tmp_path)
    assert (
        keys.key(Run.of(SPEC | {"dataset": str(data)}))
        == keys.key(Run.of(SPEC | {"dataset": "a.libsvm"}))
        == before
    )
    data.write_text("1 1:2\n")
    assert keys.key(Run.of(SPEC | {"dataset": str(data)})) != before
    assert keys.key(Run.of(SPEC | {"dataset": "cpu", "test": str(data)})) != keys.key(Run.of(SPEC))


def test_the_key_counts_the_weights(tmp_path):
    (tmp_path / "weights").write_text("1\n2\n")
    weighted = SPEC | {"sample_weight": str(tmp_path / "weights")}
    first = keys.key(Run.of(weighted))
    assert keys.key(Run.of(SPEC)) == keys.key(Run.of(SPEC | {"sample_weight": None})) != first
    balanced = SPEC | {"options": SPEC["options"] | {"class_weight": "balanced"}}
    assert keys.key(Run.of(balanced)) != keys.key(Run.of(SPEC))
    (tmp_path / "weights").write_text("1\n1\n")
    assert keys.key(Run.of(weighted)) != first


def test_a_share_makes_another_run_in_whatever_spelling():
    spec = {"dataset": "cpu", "method": "rf"}
    runs = [Run.of(spec | {"split": split}) for split in (None, "yen2014", "0.8", "0.7")]
    assert len({keys.key(run) for run in runs}) == 4
    again = [Run.of(spec | {"split": split}) for split in ("0.70", ".7", "7e-1")]
    assert {keys.key(run) for run in again} == {keys.key(runs[-1])} and again[0].split == "0.7"


@pytest.mark.parametrize("name", methods.LONG_NAMES)
def test_a_long_name_is_the_same_run(name):
    run = Run.of({"dataset": "cpu", "method": name})
    assert run.method == methods.LONG_NAMES[name] == methods.create(name).name
    assert keys.key(run) == keys.key(Run.of({"dataset": "cpu", "method": run.method}))


def test_the_newest_row_of_a_run_counts():
    first, last = ({"key": keys.key(Run.of(SPEC)), "status": status} for status in ("failed", "ok"))
    assert keys.rows_of(
        map(keys.key, [Run.of(SPEC), Run.of(SPEC | {"seed": 7})]), [first, last]
    ) == {keys.key(Run.of(SPEC)): last}


def test_a_seed_that_draws_a_papers_rows_makes_another_run_than_before_it_did():
    """Keys from the time when a paper's split had the same rows for every seed."""
    before = {
        ("ijcnn1", 0): "v1-ea85ce68ed421585",
        ("ijcnn1", 1): "v1-efaed0dd00516656",
        ("cpu", 1): "v1-4e4f5a48620f1d2b",
    }
    # the defaults at that time
    defaults = {"gamma": "paper", "target_scaling": "none", "n_features": 1000}
    paper = SPEC | {"options": SPEC["options"] | defaults}
    spec = paper | {"dataset": "ijcnn1"}
    assert keys.key(Run.of(spec)) == before["ijcnn1", 0]
    assert keys.key(Run.of(spec | {"seed": 1})) != before["ijcnn1", 1]
    assert keys.key(Run.of(paper | {"seed": 1})) == before["cpu", 1], (
        "its rows are those of two files"
    )


def test_an_option_younger_than_the_schema_leaves_the_keys_of_before():
    options = {"kernel": "perceptron", "lam": 1, "target_scaling": "none", "n_features": 1000}
    spec = SPEC | {"options": options}
    assert keys.key(Run.of(spec)) == "v1-81150d35d86b9b55", (
        "as rfx gave it before there was --perceptron-scale"
    )
    scaled = {
        scale: spec | {"options": spec["options"] | {"perceptron_scale": scale}}
        for scale in ("kernel", "unit")
    }
    assert (
        keys.key(Run.of(scaled["kernel"]))
        == keys.key(Run.of(spec))
        != keys.key(Run.of(scaled["unit"]))
    )


@pytest.mark.parametrize("method", methods.names())
def test_a_default_that_changes_makes_another_run(method):
    """The key of a run is that of its defaults, written out, so it changes with any of them."""
    spec = {"dataset": "digits", "method": method, "options": {}, "seed": 0}
    defaults = keys.resolved(Run.of(spec))
    assert keys.key(Run.of(spec)) == keys.key(Run.of(spec | {"options": defaults}))
    assert defaults["scaling"] != "quantile"
    changed = defaults | {"scaling": "quantile"}
    assert keys.key(Run.of(spec)) != keys.key(Run.of(spec | {"options": changed}))
