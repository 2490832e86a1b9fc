"""A plan's runs on Dask workers give the rows of this machine; every end is clean or has one
sentence.
"""

import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from by_hand import Cluster
from click.testing import CliRunner
from kill_workers import PLAN, Rounds
from test_runner import STUB, _alive, a_plan, a_run
from waiting import pid_in, wait_for

from rfx.cli import cli
from rfx.distributed import cluster as clusters
from rfx.distributed import pool as workers
from rfx.distributed.pool import pool
from rfx.errors import ClusterError, UsageError
from rfx.plans.plan import Plan
from rfx.records import results
from rfx.records.run import Run
from rfx.runs import child, runner

# Dask workers take time to start
pid_in, wait_for = partial(pid_in, seconds=90), partial(wait_for, seconds=90)

MORE = """
if name == "murder":
    os.kill(os.getppid(), signal.SIGKILL)
    time.sleep(60)
if name == "wait":
    open(spec["options"]["features"] + str(os.getpid()), "w").write(str(os.getpid()))
    while not os.path.exists(spec["options"]["features"] + "go"):
        time.sleep(0.02)
row = child.outcome"""


@pytest.fixture(scope="module")
def stub(tmp_path_factory):
    path = tmp_path_factory.mktemp("stub") / "stub.py"
    path.write_text(MORE.join(STUB.split("\nrow = child.outcome")))
    return [sys.executable, str(path)]


@pytest.fixture(scope="module")
def cluster():
    with Cluster() as found:
        found.add()
        found.add()
        yield found


def a_start(tmp_path, stub, where, runs):
    """A runner in its own process, as `rfx run` starts it."""
    program = (
        "import json, sys\nfrom rfx.errors import RfxError\nfrom functools import partial\nfrom"
        " rfx.distributed.pool import pool\nfrom rfx.plans import plan\nfrom rfx.records.run import"
        " Run\nfrom rfx.runs import runner\nif __name__ == '__main__':\n    runs, path, where,"
        " command = json.loads(sys.argv[1])\n    try:\n        runner.run(plan.Plan('p', '', '',"
        " '', list(map(Run.of, runs))), path, command=command, pool=partial(pool, where))\n   "
        " except KeyboardInterrupt:\n        sys.exit(130)\n    except RfxError as error:\n       "
        " sys.exit(str(error))\n"
    )
    path = tmp_path / "start.py"
    path.write_text(program)
    words = json.dumps([[run.as_dict() for run in runs], str(tmp_path / "r.csv"), where, stub])
    return subprocess.Popen([sys.executable, str(path), words], stderr=subprocess.PIPE, text=True)


def rows_in(folder):
    return [(row["dataset"], row["status"]) for row in results.read(folder / "r.csv")]


def test_rows_are_those_of_this_machine(tmp_path, stub, cluster):
    said, told = [], []
    work = a_plan("a", "limit", "crash", "bad", "bug", "killed", "b")
    here = runner.run(work, tmp_path / "here.csv", command=stub).rows
    summary = runner.run(
        work,
        tmp_path / "there.csv",
        command=stub,
        pool=partial(pool, cluster.address),
        report=said.append,
        progress=lambda *words: told.append(words),
    )
    assert (summary.ran, summary.exit_code) == (7, 3) and len(said) == 8
    assert (
        told[0] == (0, 7, [])
        and told[-1] == (7, 7, [])
        and any("rf gaussian" in name for *_, runs in told for name, _ in runs)
    )
    host = os.uname().nodename
    for one, other in zip(here, summary.rows):
        assert other["params"]["host"] == host
        left = {"created", "peak_rss_mb", "message", "threads", "blas", "cpu", "params"}
        params = [dict(row["params"]) for row in (one, other)]
        assert params[1].pop("host") and all(own.pop("seconds_process", 0) >= 0 for own in params)
        assert params[0] == params[1]
        assert {name: one[name] for name in one if name not in left} == {
            name: other[name] for name in one if name not in left
        }
        if one["status"] == "ok":
            assert one["message"] == other["message"]
        else:
            assert other["message"].startswith("worker tcp://127.0.0.1:") and other[
                "message"
            ].endswith(f" on {host}: {one['message']}")
            assert other["peak_rss_mb"] > 1 and other["cpu"] is None
    assert all(
        row["threads"] == max(1, len(os.sched_getaffinity(0)) // 2)
        for row in summary.rows
        if row["status"] == "ok"
    )
    before = (tmp_path / "there.csv").read_bytes()
    again = runner.run(work, tmp_path / "there.csv", pool=partial(pool, "tcp://127.0.0.1:1"))
    assert again.ran == 0 and (tmp_path / "there.csv").read_bytes() == before, (
        "nothing to do: nobody is asked"
    )


@pytest.mark.parametrize(
    "words, says",
    [(["--jobs", "2"], "--jobs applies to this machine only"), ([], "expected local:N")],
)
def test_what_the_command_refuses(tmp_path, monkeypatch, words, says):
    monkeypatch.chdir(tmp_path)
    where = "local:2" if words else "local:none"
    done = CliRunner().invoke(
        cli, ["run", "demo", "--scheduler", where, *words], standalone_mode=False
    )
    assert (
        isinstance(done.exception, UsageError)
        and says in str(done.exception)
        and not list(tmp_path.iterdir())
    )


def test_timeout(tmp_path, stub, cluster):
    (row,) = runner.run(
        a_plan("slow"),
        tmp_path / "r.csv",
        timeout=0.5,
        command=stub,
        pool=partial(pool, cluster.address),
    ).rows
    assert row["status"] == "timeout" and row["message"].endswith("not finished within 0.5 seconds")


def test_data_that_cannot_be_had_are_asked_for_by_whoever_has_begun(tmp_path, stub, cluster):
    work = Plan("p", "", "", "", [a_run("data", lam=lam) for lam in range(20)] + [a_run("a")])
    summary = runner.run(
        work, tmp_path / "r.csv", command=stub, pool=partial(pool, cluster.address)
    )
    rows = summary.rows
    *failed, last = [row["status"] for row in rows]
    assert set(failed) == {"failed"} and last == "ok"
    assert len(failed) <= 10, "most were not tried"
    assert all(
        "no public copy" in row["message"] and row["params"]["error"] == child.NO_DATA
        for row in rows[:-1]
    )
    assert len(runner.missing(work, rows)) == 20


def test_a_real_run_with_files_that_are_found_from_anywhere(tmp_path, monkeypatch, cluster):
    (tmp_path / "rows.libsvm").write_text(
        "".join(f"{1 if n % 3 else -1} 1:{n % 3} 2:{n % 7}\n" for n in range(60))
    )
    monkeypatch.chdir(tmp_path)
    job = Run(
        dataset="rows.libsvm",
        method="rf",
        seed=1,
        trace=True,
        options={"n_features": 8, "lam": 1, "task": "binary"},
    )
    plan = Plan("p", "", "", "", [job])
    (there,) = runner.run(plan, "there.csv", pool=partial(pool, cluster.address)).rows
    (here,) = runner.run(plan, "here.csv").rows
    assert (
        there["status"] == "ok"
        and there["key"] == here["key"]
        and there["dataset"] == here["dataset"]
    )
    assert (
        there["objective"] == here["objective"]
        and there["params"]["train_score"] == here["params"]["train_score"]
    )
    assert (tmp_path / "there.csv.trace.csv").exists() or list(tmp_path.glob("there*trace*"))


def test_a_file_that_a_worker_cannot_see(tmp_path, monkeypatch, cluster):
    data = tmp_path / "rows.libsvm"
    data.write_text("1 1:1\n-1 1:2\n")
    work = Plan(
        "p",
        "",
        "",
        "",
        [Run(dataset=str(data), method="rf", seed=0, options={"n_features": 8, "lam": 1})],
    )
    resolved = workers._resolved

    def elsewhere(run):
        found, key = resolved(run)
        return replace(found, dataset=found.dataset.replace("rows", "gone")), key

    monkeypatch.setattr(workers, "_resolved", elsewhere)
    (row,) = runner.run(work, tmp_path / "r.csv", pool=partial(pool, cluster.address)).rows
    assert row["status"] == "failed" and row["params"]["error"] == child.NO_DATA
    assert (
        row["message"].startswith("worker tcp://")
        and f"{tmp_path}/gone.libsvm is not here; put it where" in row["message"]
    )
    # the same name, but other rows there
    (tmp_path / "gone.libsvm").write_text("1 1:1\n-1 1:3\n")
    (row,) = runner.run(work, tmp_path / "r.csv", pool=partial(pool, cluster.address)).rows
    assert "differs between this machine and the one that requested the run" in row["message"]
    monkeypatch.setattr(workers, "_resolved", resolved)
    assert (
        runner.run(work, tmp_path / "r.csv", pool=partial(pool, cluster.address)).count("ok") == 1
    ), "and it is tried again"


def test_a_worker_with_another_version(tmp_path, stub, cluster, monkeypatch):
    ours = clusters.versions()
    # like those of a worker that joins later
    monkeypatch.setattr(clusters, "check_versions", lambda client: None)
    monkeypatch.setattr(clusters, "versions", lambda: ours | {"numpy": "1.0"})
    with pytest.raises(
        ClusterError,
        match=r"worker tcp://\S+ on \S+ has numpy .*, but this machine has numpy 1.0",
    ):
        runner.run(
            a_plan("a"), tmp_path / "r.csv", command=stub, pool=partial(pool, cluster.address)
        )


def test_a_command_that_is_not_there_ends_the_plan(tmp_path, cluster):
    with pytest.raises(ClusterError, match="a worker of tcp.* can't run: FileNotFoundError"):
        runner.run(
            a_plan("a"),
            tmp_path / "r.csv",
            command=["/no/such/program"],
            pool=partial(pool, cluster.address),
        )


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_the_children_on_the_workers(tmp_path, stub, cluster, number):
    runs = [
        a_run(name, features=str(tmp_path / f"pid-{name}"))
        for name in ("slow-1", "slow-2", "never")
    ]
    process = a_start(tmp_path, stub, cluster.address, runs)
    pids = [pid_in(tmp_path / f"pid-slow-{n}") for n in (1, 2)]
    process.send_signal(number)
    assert process.wait(60) == 130
    wait_for(lambda: not any(map(_alive, pids)), "a child outlived the runner")
    assert sorted(rows_in(tmp_path)) == [("slow-1", "interrupted"), ("slow-2", "interrupted")]


def test_kill_9_of_the_runner_ends_the_children_on_the_workers(tmp_path, stub, cluster):
    runs = [a_run(name, features=str(tmp_path / "pid")) for name in ("short", "slow")]
    process = a_start(tmp_path, stub, cluster.address, runs)
    pid = pid_in(tmp_path / "pid")
    wait_for(lambda: (tmp_path / "r.csv").exists(), "no row")
    process.kill()
    process.wait()
    wait_for(lambda: not _alive(pid), "the child outlived the runner")
    with results.exclusive(tmp_path / "r.csv"):
        assert rows_in(tmp_path) == [("short", "ok")]
    again = runner.run(
        a_plan("a"), tmp_path / "r.csv", command=stub, pool=partial(pool, cluster.address)
    )
    assert again.count("ok") == 1, "the workers are free"


def test_a_worker_that_dies_gives_its_run_to_one_that_comes_later(tmp_path, stub):
    with Cluster() as own:
        first = own.add()
        process = a_start(
            tmp_path, stub, own.address, [a_run("wait", features=str(tmp_path / "pid-"))]
        )
        wait_for(lambda: list(tmp_path.glob("pid-*")), "the run never began")
        (begun,) = tmp_path.glob("pid-*")
        first.kill()
        wait_for(lambda: not _alive(int(begun.name[4:])), "the child outlived its worker")
        own.add()
        wait_for(lambda: len(list(tmp_path.glob("pid-*"))) == 2, "nobody took it up")
        (tmp_path / "pid-go").touch()
        assert process.wait(60) == 0 and rows_in(tmp_path) == [("wait", "ok")]


def test_a_run_that_ends_its_workers_is_a_failed_row(tmp_path, stub):
    summary = runner.run(
        a_plan("murder", "a"), tmp_path / "r.csv", command=stub, pool=partial(pool, "local:1")
    )
    fatal, other = summary.rows
    assert fatal["status"] == "failed" and fatal["message"].startswith(
        "3 workers ended during this run, the last tcp://"
    )
    assert other["status"] == "ok" and summary.exit_code == 3


def test_a_scheduler_that_goes_away(tmp_path, stub):
    with Cluster() as own:
        own.add()
        runs = [a_run(name, features=str(tmp_path / "pid")) for name in ("short", "slow")]
        process = a_start(tmp_path, stub, own.address, runs)
        pid = pid_in(tmp_path / "pid")
        wait_for(lambda: (tmp_path / "r.csv").exists(), "no row")
        own.scheduler.kill()
        said = process.communicate(timeout=60)[1]
        assert process.returncode == 1 and said.strip().endswith(
            f"the scheduler at {own.address} is lost; unsaved work is lost, written files remain"
        )
        assert rows_in(tmp_path) == [("short", "ok")]
        wait_for(lambda: not _alive(pid), "the child outlived the cluster")


def test_no_workers_are_said_and_waited_for(tmp_path, stub, monkeypatch):
    monkeypatch.setattr(workers, "_LOOK", 0.2)
    with Cluster() as own:
        said = []

        def report(text):
            said.append(text)
            if "no workers" in text:
                own.add()

        summary = runner.run(
            a_plan("a", "b"),
            tmp_path / "r.csv",
            command=stub,
            pool=partial(pool, own.address),
            report=report,
        )
    assert summary.count("ok") == 2 and said[1] == (
        f"{own.address} has no workers; waiting for workers"
    )


def test_a_worker_killed_at_a_random_moment_loses_nothing(tmp_path):
    """One round of tests/kill_workers.py with its own cluster: its worker dies."""
    with Cluster() as own:
        own.add()
        own.add()
        work = Rounds(tmp_path, own, 4)
        assert work.kill(random.Random(3), 1.0) >= 0


def test_the_commands_of_the_documents(tmp_path):
    """The commands that start a cluster by hand and run a plan on it, with an address of this
    machine.
    """
    text = (Path(__file__).parents[2] / "docs" / "distributed.md").read_text()
    lines = re.findall(
        r"^(?:dask scheduler --host|dask worker tcp://10|rfx run plan.toml .* --scheduler"
        r" tcp://10).*$",
        text,
        re.M,
    )
    assert [line.split()[:2] for line in lines] == [
        ["dask", "scheduler"],
        ["dask", "worker"],
        ["rfx", "run"],
    ]
    (tmp_path / "plan.toml").write_text(PLAN.format([0, 1]))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    lines = [
        line.replace("10.0.0.1:8786", address).replace(
            "10.0.0.1 --port 8786", address.replace(":", " --port ")
        )
        for line in lines
    ]
    words = [[sys.executable, "-m", *line.split()] for line in lines]
    quiet = {"cwd": tmp_path, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    background = [
        subprocess.Popen([*words[0], "--dashboard-address", ":0"], **quiet),
        subprocess.Popen(words[1], **quiet),
    ]
    try:
        wait_for(lambda: not _refused(address), "the scheduler never listened")
        assert subprocess.run(words[2], **quiet).returncode == 0
    finally:
        for process in background:
            process.terminate()
            process.wait()
    assert [row["status"] for row in results.read(tmp_path / "results.csv")] == ["ok", "ok"]


def _refused(address):
    with socket.socket() as there:
        return there.connect_ex((address.partition(":")[0], int(address.partition(":")[2])))
