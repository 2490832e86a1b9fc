"""A small part of every fuzz target; `make fuzz` runs a million cases."""

import pytest
from fuzz import libsvm, model, plan, results

pytestmark = pytest.mark.slow

# The number of files (fewer if one takes long), and the least number that must be read: if all were
# refused at once, the fuzz would show nothing.
TARGETS = [
    (libsvm, 3_000, 150),
    (model, 1_000, 30),
    (plan, 150, 15),
    (results, 2_000, 100),
]


@pytest.mark.parametrize(
    "target, cases, least", TARGETS, ids=[target.__name__ for target, *_ in TARGETS]
)
def test_mutated_files_are_read_or_refused(target, cases, least):
    assert least < target.fuzz(cases, seed=0) < cases
