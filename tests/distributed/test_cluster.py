"""The values of `--scheduler`, and one sentence for everything that is unavailable."""

import multiprocessing
import os
import signal
import socket
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest
from by_hand import Cluster

from rfx.distributed import cluster
from rfx.errors import ClusterError, UsageError


@pytest.fixture(scope="module")
def local():
    with cluster.connect("local:2") as client:
        yield client


@pytest.fixture
def hurry(monkeypatch):
    monkeypatch.setattr(cluster, "_PATIENCE", 0.5)


def test_words_for_this_machine():
    assert cluster.workers_of("local") == len(os.sched_getaffinity(0))
    assert cluster.workers_of("local:3") == 3
    assert (
        cluster.workers_of("tcp://10.0.0.1:8786") is None
        and cluster.workers_of("10.0.0.1:8786") is None
    )


@pytest.mark.parametrize(
    "where", ["", " ", "local:", "local:0", "local:two", "local:-1", "local:99999", "local:²"]
)
def test_other_words_are_refused(where):
    with pytest.raises(UsageError, match="expected"):
        cluster.workers_of(where)


@pytest.mark.parametrize(
    "where, words",
    [
        ("scheduler", "missing port"),
        ("http://x:80", "unknown address scheme"),
        ("tcp://x:y", "invalid literal"),
    ],
)
def test_what_is_no_address(where, words, hurry):
    with pytest.raises(UsageError, match=f"--scheduler {where}: .*{words}"), cluster.connect(where):
        pass


def test_nobody_there(hurry):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{free.getsockname()[1]}"
    with pytest.raises(
        ClusterError,
        match=f"no Dask scheduler answers at {address} within 0.5 seconds; check that it is"
        " running",
    ):
        with cluster.connect(address):
            pass


@pytest.mark.parametrize(
    "says, words",
    [
        (b"", "no Dask scheduler answers"),
        (b"HTTP/1.0 400 Bad request\r\n" * 9, "is not a Dask scheduler"),
    ],
)
def test_something_else_there(hurry, says, words):
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve():
            held.append(server.accept()[0])
            held[0].sendall(says)

        held, thread = [], threading.Thread(target=serve, daemon=True)
        thread.start()
        with (
            pytest.raises(ClusterError, match=words),
            cluster.connect(f"127.0.0.1:{server.getsockname()[1]}"),
        ):
            pass
        held[0].close()


def test_without_distributed(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with (
        pytest.raises(ClusterError, match=r"pip install 'rfx-kernels\[distributed\]'"),
        cluster.connect("local"),
    ):
        pass


def test_processes_of_this_machine(local):
    assert list(cluster.wait_for_workers(local).values()) == [1, 1]
    pids = set(local.run(os.getpid).values())
    assert len(pids) == 2 and os.getpid() not in pids
    assert list(local.run(cluster.versions).values()) == [cluster.versions()] * 2


def _kill_workers(count):
    """Kill this many worker processes of this process, each as soon as it exists."""

    def watch():
        killed = set()
        while len(killed) < count:
            for process in multiprocessing.active_children():
                if (
                    process.name.startswith("Dask Worker")
                    and process.pid not in known | killed
                    and len(killed) < count
                ):
                    killed.add(process.pid)
                    process.kill()
            time.sleep(0.01)

    known = {process.pid for process in multiprocessing.active_children()}
    threading.Thread(target=watch, daemon=True).start()


def test_a_worker_that_is_killed_while_it_starts_is_replaced():
    _kill_workers(2)
    with cluster.connect("local:2") as client:
        assert list(cluster.wait_for_workers(client, count=2).values()) == [1, 1]
        assert client.submit(pow, 2, 10, pure=False).result() == 1024


def test_workers_that_always_end_while_they_start_are_told_in_a_sentence():
    _kill_workers(cluster.DEATHS)
    with pytest.raises(
        ClusterError,
        match="3 worker processes ended during start-up; they may lack memory",
    ):
        with cluster.connect("local:1"):
            pass


def test_workers_leave_no_folder_behind(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with cluster.connect("local:1") as client:
        (place,) = client.run(lambda dask_worker: dask_worker.local_directory).values()
        assert Path(place).is_relative_to(tmp_path)
        os.kill(client.run(os.getpid)[client.cluster.workers[0].worker_address], signal.SIGKILL)
    assert list(tmp_path.iterdir()) == []


def test_a_client_of_a_scheduler_by_its_address(local):
    address = local.scheduler.address
    with cluster.connect(address) as client:
        assert client.submit(pow, 2, 10, pure=False).result() == 1024
    assert local.status == "running"
    worker = next(iter(local.nthreads()))
    with (
        pytest.raises(ClusterError, match="is a Dask worker; use the scheduler's address"),
        cluster.connect(worker),
    ):
        pass


def test_a_scheduler_without_workers():
    with Cluster() as cluster_by_hand, cluster.connect(cluster_by_hand.address) as client:
        with pytest.raises(ClusterError, match="has no workers, and none came within 0 seconds"):
            cluster.wait_for_workers(client, 0)


def test_a_scheduler_that_goes_away():
    with (
        Cluster() as cluster_by_hand,
        pytest.raises(ClusterError, match=f"the scheduler at {cluster_by_hand.address} is lost"),
    ):
        with cluster.connect(cluster_by_hand.address) as client:
            future = client.submit(pow, 2, 10, pure=False)
            cluster_by_hand.scheduler.kill()
            future.result()


def test_what_goes_wrong_in_the_block_is_told_as_it_is(local):
    with pytest.raises(OSError, match="of mine"), cluster.connect(local.scheduler.address):
        raise OSError("of mine")


def test_versions_that_differ():
    ours = {"rfx": "1.0", "python": "3.11.7", "numpy": "2.4.6", "distributed": "2026.8.0"}
    assert cluster.difference(ours, ours | {"python": "3.11.9.final.0"}, "worker w") is None
    told = cluster.difference(ours, ours | {"numpy": "2.0.0"}, "worker w")
    assert (
        told == "worker w has numpy 2.0.0, but this machine has numpy 2.4.6; install the same on"
        " all of them"
    )
    assert cluster.difference(ours, ours | {"python": "3.12.1"}, "w").startswith(
        "w has python 3.12, but this machine has python 3.11;"
    )
    told = cluster.difference(ours, ours | {"rfx": None}, "w")
    assert (
        told
        == "w has no rfx, but this machine has rfx 1.0; install the same rfx-kernels on all of them"
    )


def test_versions_are_compared_before_anything_is_done(local, monkeypatch):
    ours = cluster.versions()
    monkeypatch.setattr(cluster, "versions", lambda: ours | {"rfx": "99.9"})
    with pytest.raises(
        ClusterError, match=r"worker tcp://127.0.0.1:\d+ has rfx .*, but this machine has rfx 99.9"
    ):
        cluster.check_versions(local)
    monkeypatch.setattr(cluster, "versions", lambda: ours | {"distributed": "1.0"})
    with pytest.raises(ClusterError, match="the scheduler has distributed .*, this machine 1.0"):
        cluster.check_versions(local)


def test_a_worker_without_rfx_is_named(local, monkeypatch):
    answers = local.run(lambda: None)
    for error in (
        ModuleNotFoundError("No module named 'rfx._version'"),
        AttributeError("__version__"),
    ):
        monkeypatch.setattr(
            local, "run", lambda *args, error=error, **more: dict.fromkeys(answers, error)
        )
        with pytest.raises(
            ClusterError,
            match=(
                r"worker tcp://\S+ has no rfx, but this machine has rfx .*; install the same"
                r" rfx-kernels on all"
            ),
        ):
            cluster.check_versions(local)
    # workers that have left in the meantime are not among those without it
    for gone in (dict.fromkeys(answers, OSError("closed")), {}):
        monkeypatch.setattr(local, "run", lambda *args, gone=gone, **more: gone)
        cluster.check_versions(local)


def test_ctrl_c_of_the_terminal_is_not_for_the_workers(local):
    assert set(local.run(lambda: signal.getsignal(signal.SIGINT)).values()) == {signal.SIG_IGN}
