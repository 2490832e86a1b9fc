"""One local cluster for the tests of this folder, because workers take seconds to start."""

import pytest

from rfx.distributed import cluster


@pytest.fixture(scope="session")
def client():
    with cluster.connect("local:2") as found:
        found.wait_for_workers(2)
        yield found
