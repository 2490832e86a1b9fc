"""The values of `--scheduler`, and one sentence for everything that is unavailable."""

import os
import signal
import socket
import sys
import threading

import pytest
from by_hand import Cluster

from rfx.distributed import cluster
from rfx.errors import ClusterError, UsageError

pytestmark = pytest.mark.slow


@pytest.fixture
def hurry(set_sizes):
    set_sizes(cluster, _PATIENCE=0.5, _ARRIVING=0.5)


def test_words_for_this_machine():
    words = ("local", "local:3", "tcp://10.0.0.1:8786", "10.0.0.1:8786")
    assert list(map(cluster.workers_of, words)) == [len(os.sched_getaffinity(0)), 3, None, None]


@pytest.mark.parametrize(
    "where", ["", " ", "local:", "local:0", "local:two", "local:-1", "local:99999", "local:²"]
)
def test_other_words_are_refused(where):
    with pytest.raises(UsageError, match="expected an address"):
        cluster.workers_of(where)


@pytest.mark.parametrize("where", ["scheduler", "http://x:80", "tcp://x:y"])
def test_what_is_no_address(where, hurry):
    with (
        pytest.raises(UsageError, match=f"--scheduler {where}: .*expected an address"),
        cluster.connect(where),
    ):
        pass


@pytest.mark.parametrize("says", [None, b"", b"HTTP/1.0 400 Bad request\r\n" * 9])
def test_no_scheduler_there(hurry, says):
    with socket.create_server(("127.0.0.1", 0)) as server:
        address, accepted = f"tcp://127.0.0.1:{server.getsockname()[1]}", []

        def serve():
            accepted.append(server.accept()[0])
            accepted[0].sendall(says)

        if says is None:
            server.close()
        else:
            threading.Thread(target=serve, daemon=True).start()
        with (
            pytest.raises(ClusterError, match=f"no Dask scheduler answers at {address}"),
            cluster.connect(address),
        ):
            pass


def test_without_distributed(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with (
        pytest.raises(ClusterError, match=r"pip install 'rfx-kernels\[distributed\]'"),
        cluster.connect("local"),
    ):
        pass


def test_processes_of_this_machine(client):
    assert list(client.nthreads().values()) == [1, 1]
    assert os.getpid() not in client.run(os.getpid).values()
    # Ctrl-C of the terminal is not for them
    assert set(client.run(lambda: signal.getsignal(signal.SIGINT)).values()) == {signal.SIG_IGN}


def test_workers_that_always_end_while_they_start_are_told_in_a_sentence(monkeypatch):
    def started(**options):
        raise OSError("a worker is gone")

    monkeypatch.setattr(cluster.dask(), "LocalCluster", started)
    with (
        pytest.raises(ClusterError, match="processes ended during start-up; they may lack memory"),
        cluster.connect("local:1"),
    ):
        pass


def test_a_client_of_a_scheduler_by_its_address(client):
    with cluster.connect(client.scheduler.address) as other:
        assert other.submit(pow, 2, 10, pure=False).result() == 1024
    assert client.status == "running"
    with (
        pytest.raises(ClusterError, match=r"no Dask scheduler answers at .* \(worker\)"),
        cluster.connect(next(iter(client.nthreads()))),
    ):
        pass


def test_a_scheduler_without_workers(hurry):
    with (
        Cluster() as by_hand,
        cluster.connect(by_hand.address) as client,
        pytest.raises(ClusterError, match="has no workers, and none came within 0.5 seconds"),
    ):
        cluster.Workers(client)


def test_what_goes_wrong_in_the_block_is_told_as_it_is(client):
    with pytest.raises(OSError, match="of mine"), cluster.connect(client.scheduler.address):
        raise OSError("of mine")


@pytest.mark.parametrize("name", ["rfx", "python", "numpy"])
def test_versions_are_compared_before_anything_is_done(client, monkeypatch, name):
    theirs = cluster.versions() | {name: "99.9"}
    answers = dict.fromkeys(client.nthreads(), theirs)
    monkeypatch.setattr(client, "run", lambda *args, **more: answers)
    with pytest.raises(ClusterError, match=f"worker tcp://.* has {name} 99.9.* this machine has"):
        cluster.Workers(client)


def test_a_worker_without_rfx_is_named(client, monkeypatch):
    workers = client.nthreads()
    answers = dict.fromkeys(workers, ModuleNotFoundError("No module named 'rfx'"))
    monkeypatch.setattr(client, "run", lambda *args, **more: answers)
    with pytest.raises(ClusterError, match="has rfx None, .* install the same rfx-kernels on all"):
        cluster.check_versions(client)
    # one that has left in the meantime is not among those without it
    answers |= dict.fromkeys(workers, cluster.versions()) | {min(workers): OSError("closed")}
    cluster.check_versions(client)
