"""A small part of every fuzz target; `make fuzz` runs a million cases."""

import pytest
from fuzz import cells, libsvm, model, plan, reporting, results

# The number of files (fewer if one takes long), and the least number that must be read: if all were
# refused at once, the fuzz would show nothing.
TARGETS = [
    (libsvm, 10_000, 500),
    (model, 5_000, 150),
    (plan, 2_000, 200),
    (results, 10_000, 500),
    (cells, 5_000, 2500),
]


@pytest.mark.parametrize(
    "target, cases, least", TARGETS, ids=[target.__name__ for target, *_ in TARGETS]
)
def test_mutated_files_are_read_or_refused(target, cases, least):
    assert least < target.fuzz(cases, seed=0) < cases


def test_rows_that_lack_something_are_reported_or_refused_by_every_table_and_figure():
    assert 5 < reporting.fuzz(30, seed=0) <= 30
