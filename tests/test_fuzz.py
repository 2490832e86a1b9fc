"""A share of every target of the fuzz; `make fuzz` runs a million cases."""

import importlib

import pytest
from fuzz import archive, cache, cells, libsvm, model, plan, reporting, results, table

# the least that are read of 10,000: a fuzz whose files are all refused at once would say nothing
TARGETS = [
    (libsvm, 500),
    (archive, 250),
    (cache, 100),
    (model, 300),
    (plan, 1000),
    (results, 2000),
    (table, 1000),
    (cells, 5000),
]


@pytest.mark.parametrize("target, least", TARGETS, ids=[target.__name__ for target, _ in TARGETS])
def test_mutated_files_are_read_or_refused(target, least, one_thread):
    assert least < target.fuzz(10_000, seed=0) < 10_000


def test_rows_that_lack_something_are_reported_or_refused_by_every_table_and_figure(one_thread):
    assert 5 < reporting.fuzz(30, seed=0) <= 30


@pytest.mark.parametrize("name, least", [("packed", 400), ("npz", 100), ("parquet_values", 500)])
def test_files_are_read_as_other_readers_read_them(name, least, one_thread):
    if name == "parquet_values":
        pytest.importorskip("pyarrow")
    assert least < importlib.import_module(f"fuzz.{name}").fuzz(1000, seed=0) < 1000
