"""A share of every target of the fuzz; `make fuzz` runs a million cases."""

import pytest
from fuzz import archive, cache, libsvm


@pytest.mark.parametrize("target, cases, least", [(libsvm, 10_000, 500), (archive, 10_000, 250), (cache, 10_000, 100)])
def test_mutated_files_are_read_or_refused(target, cases, least, one_thread):
    assert least < target.fuzz(cases, seed=0) < cases
