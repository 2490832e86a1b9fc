"""Keys of runs: what makes another run, defaults that count, and rows of the first version that still do."""

import os
import re

import pytest

from rfx import methods
from rfx.records import keys

SPEC = {"dataset": "cpu", "split": "yen2014", "method": "rf", "options": {"kernel": "gaussian", "lam": 1}, "seed": 0}


def test_key_counts_what_decides_the_run_and_nothing_else():
    same = [
        SPEC | {"threads": 4, "timeout": 5, "model": "m.npz"},
        SPEC | {"test": None, "zero_based": False, "train_score": False},
        SPEC | {"options": {"lam": 1.0, "kernel": "gaussian", "tol": None, "timeout": 9}},
        SPEC | {"options": {"lam": 1}}, SPEC | {"options": {"lam": 1, "n_features": methods.get("rf")().params["n_features"]}},
        SPEC | {"options": {"lam": 1, "gamma": "loo"}},
        {name: value for name, value in SPEC.items() if name != "seed"},
        dict(reversed(SPEC.items())),
    ]  # fmt: skip
    assert {keys.key(spec) for spec in same} == {keys.key(SPEC)}
    others = [
        SPEC | {"seed": 1}, SPEC | {"split": None}, SPEC | {"label": "tuned"}, SPEC | {"method": "sparse-rf"}, SPEC | {"train_score": True},
        SPEC | {"options": {"kernel": "gaussian", "lam": 2}}, SPEC | {"options": {"kernel": "gaussian", "lam": 1, "tol": 1}},
        SPEC | {"fixed_threads": True, "threads": 1}, SPEC | {"fixed_threads": True, "threads": 2},
    ]  # fmt: skip
    assert len({keys.key(spec) for spec in [SPEC, *others]}) == len(others) + 1
    assert re.fullmatch(r"v1-[0-9a-f]{16}", keys.key(SPEC))
    assert keys.key(SPEC | {"method": "no-such-method"}) != keys.key(SPEC)


def test_key_of_a_file_follows_its_content_not_its_folder(tmp_path, monkeypatch):
    data = tmp_path / "a.libsvm"
    data.write_text("1 1:1\n")
    before = keys.key(SPEC | {"dataset": str(data)})
    os.utime(data, (1, 1))
    monkeypatch.chdir(tmp_path)
    assert keys.key(SPEC | {"dataset": str(data)}) == keys.key(SPEC | {"dataset": "a.libsvm"}) == before
    data.write_text("1 1:2\n")
    assert keys.key(SPEC | {"dataset": str(data)}) != before
    assert keys.key(SPEC | {"dataset": "cpu", "test": str(data)}) != keys.key(SPEC)


def test_the_keys_of_the_first_version():
    """Written down from it: they hash the options as they were given."""
    assert keys.old_key(SPEC) == "ca981373f47e82e0"
    assert keys.old_key(SPEC | {"options": {}, "seed": 3, "label": "x"}) == "a72ea7ace0676c8f"


def old_row(spec, **more):
    params = {"scaling": "minmax01", "gamma": "paper"} | more.pop("params", {})
    row = {"key": keys.old_key(spec), "status": "ok", "kernel": "gaussian", "solver": "rfx", "lam": 1.0, "n_features": 1000}
    return row | {"params": params} | more


def test_rows_of_the_first_version_count_as_long_as_their_defaults_are_those_of_today():
    spec = SPEC | {"options": {"n_features": 50, "gamma": "paper"}}
    row = old_row(spec)
    assert keys.rows_of([spec], [row]) == {keys.key(spec): row}
    assert not keys.rows_of([spec], [old_row(spec, params={"scaling": "none"})]), "made when the default of scaling was another"
    today = SPEC | {"options": {"n_features": 50}}
    assert not keys.rows_of([today], [old_row(today)]), "made when the default of gamma was paper"
    assert not keys.rows_of([spec], [old_row(spec, kernel="laplacian")])
    given = spec | {"options": {"n_features": 50, "kernel": "laplacian", "gamma": "paper"}}
    assert keys.rows_of([given], [old_row(given, kernel="laplacian")]), "given is given"
    failed = old_row(spec, status="failed", params={}, kernel=None)
    assert keys.rows_of([spec], [failed])
    new = failed | {"key": keys.key(spec), "status": "ok"}
    assert list(keys.rows_of([spec], [new, failed]).values()) == [new], "a row of this version goes before"


def test_a_seed_that_draws_a_papers_rows_makes_another_run_than_before_it_did():
    """Keys as rfx gave them while a paper's split had the same rows for every seed."""
    before = {("ijcnn1", 0): "v1-ea85ce68ed421585", ("ijcnn1", 1): "v1-efaed0dd00516656", ("cpu", 1): "v1-4e4f5a48620f1d2b"}
    paper = SPEC | {"options": SPEC["options"] | {"gamma": "paper"}}  # the default then
    spec = paper | {"dataset": "ijcnn1"}
    assert keys.key(spec) == before["ijcnn1", 0]
    assert keys.key(spec | {"seed": 1}) != before["ijcnn1", 1]
    assert keys.key(paper | {"seed": 1}) == before["cpu", 1], "its rows are those of two files"


def test_an_option_younger_than_the_schema_leaves_the_keys_of_before():
    spec = SPEC | {"options": {"kernel": "perceptron", "lam": 1}}
    assert keys.key(spec) == "v1-81150d35d86b9b55", "as rfx gave it before there was --perceptron-scale"
    scaled = {scale: spec | {"options": spec["options"] | {"perceptron_scale": scale}} for scale in ("kernel", "unit")}
    assert keys.key(scaled["kernel"]) == keys.key(spec) != keys.key(scaled["unit"])


@pytest.mark.parametrize("method", methods.names())
def test_a_default_that_changes_makes_another_run(method, monkeypatch):
    spec = {"dataset": "digits", "method": method, "options": {}, "seed": 0}
    before = keys.key(spec)
    changed = keys.resolved(spec) | {"scaling": "standard"}
    assert before == keys.key(spec | {"options": keys.resolved(spec)})
    monkeypatch.setattr(keys, "_defaults", lambda method, kernel: changed)
    assert keys.key(spec) != before and keys.old_key(spec) == keys.old_key(dict(spec))
