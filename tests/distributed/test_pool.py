"""A plan's runs on Dask workers give the rows of this machine; every end is clean or has one
sentence.
"""

import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from functools import partial

import pytest
from by_hand import Cluster
from click.testing import CliRunner
from test_runner import STUB, _alive, a_plan, a_run
from waiting import pid_in, wait_for

from rfx.cli import cli
from rfx.distributed import cluster as pools
from rfx.distributed.cluster import pool
from rfx.errors import ClusterError, UsageError
from rfx.plans.plan import Plan
from rfx.records import results
from rfx.records.run import Run
from rfx.runs import child, runner

pytestmark = pytest.mark.slow

# Dask workers take time to start
pid_in, wait_for = partial(pid_in, seconds=90), partial(wait_for, seconds=90)

MORE = """
if name == "murder":
    os.kill(os.getppid(), signal.SIGKILL)
    time.sleep(60)
if name == "wait":
    open(spec["checkpoint"] + str(os.getpid()), "w").write(str(os.getpid()))
    while not os.path.exists(spec["checkpoint"] + "go"):
        time.sleep(0.02)
row = child.outcome"""
START = """
import json, sys
from functools import partial
from rfx.distributed.cluster import pool
from rfx.errors import RfxError
from rfx.plans import plan
from rfx.records.run import Run
from rfx.runs import runner

if __name__ == '__main__':
    runs, path, where, command = json.loads(sys.argv[1])
    try:
        work = plan.Plan('p', '', '', '', list(map(Run.of, runs)))
        runner.run(work, path, command=command, pool=partial(pool, where))
    except KeyboardInterrupt:
        sys.exit(130)
    except RfxError as error:
        sys.exit(str(error))
"""


@pytest.fixture(scope="module")
def stub(tmp_path_factory):
    path = tmp_path_factory.mktemp("stub") / "stub.py"
    path.write_text(MORE.join(STUB.split("\nrow = child.outcome")))
    return [sys.executable, str(path)]


@pytest.fixture(scope="module")
def cluster():
    with Cluster() as by_hand:
        by_hand.add()
        by_hand.add()
        yield by_hand


def run(work, path, where, **more):
    return runner.run(work, path / "r.csv", pool=partial(pool, where), **more)


def start(tmp_path, stub, where, runs):
    """A runner in its own process, as `rfx run` starts it."""
    path = tmp_path / "start.py"
    path.write_text(START)
    words = json.dumps([[run.as_dict() for run in runs], str(tmp_path / "r.csv"), where, stub])
    return subprocess.Popen([sys.executable, str(path), words], stderr=subprocess.PIPE, text=True)


def rows_in(folder):
    return [(row["dataset"], row["status"]) for row in results.read(folder / "r.csv")]


def test_rows_are_those_of_this_machine(tmp_path, stub, cluster):
    shown = []
    work = a_plan("a", "limit", "crash", "bad", "bug", "killed", "slow")
    work.runs[-1] = replace(work.runs[-1], timeout=1)
    here = runner.run(work, tmp_path / "here.csv", command=stub).rows
    progress = lambda *words: shown.append(words)
    summary = run(work, tmp_path, cluster.address, command=stub, progress=progress)
    assert (summary.ran, summary.exit_code) == (7, 3)
    assert (shown[0], shown[-1]) == ((0, 7, []), (7, 7, []))
    assert any("rf gaussian" in name for *_, runs in shown for name, _ in runs)
    host, skipped = os.uname().nodename, {"created", "peak_rss_mb", "threads", "blas", "cpu"}
    for one, other in zip(here, summary.rows):
        ours, theirs = (dict(row) | {"params": dict(row["params"])} for row in (one, other))
        assert theirs["params"].pop("host") == host
        ours["params"].pop("seconds_process", None)
        theirs["params"].pop("seconds_process", None)
        if one["status"] != "ok":
            assert theirs["message"].startswith("worker tcp://127.0.0.1:")
            theirs["message"] = theirs["message"].partition(f" on {host}: ")[2]
        assert {k: v for k, v in ours.items() if k not in skipped} == {
            k: v for k, v in theirs.items() if k not in skipped
        }
    assert summary.rows[0]["threads"] == max(1, len(os.sched_getaffinity(0)) // 2)
    assert run(work, tmp_path, "tcp://127.0.0.1:1").ran == 0, "nobody is asked"


def test_the_command_refuses_a_scheduler_without_an_address(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = ["run", "demo", "--scheduler", "local:none"]
    with pytest.raises(UsageError, match="expected an address"):
        CliRunner().invoke(cli, words, standalone_mode=False, catch_exceptions=False)
    assert not list(tmp_path.iterdir())


def test_data_that_cannot_be_had_are_asked_for_by_whoever_has_begun(tmp_path, stub, cluster):
    work = Plan("p", "", "", "", [a_run("data", lam=lam) for lam in range(1, 21)] + [a_run("a")])
    *failed, last = run(work, tmp_path, cluster.address, command=stub).rows
    assert last["status"] == "ok"
    assert {row["params"]["error"] for row in failed} == {child.NO_DATA}
    assert len(failed) <= 10, "most were not tried"


def test_a_real_run_with_files_that_are_found_from_anywhere(tmp_path, monkeypatch, cluster):
    lines = [f"{1 if n % 3 else -1} 1:{n % 3} 2:{n % 7}\n" for n in range(60)]
    (tmp_path / "rows.libsvm").write_text("".join(lines))
    monkeypatch.chdir(tmp_path)
    options = {"n_features": 8, "lam": 1, "task": "binary"}
    job = Run(dataset="rows.libsvm", method="rf", seed=1, trace=True, options=options)
    plan = Plan("p", "", "", "", [job])
    (there,) = run(plan, tmp_path, cluster.address).rows
    (here,) = runner.run(plan, "here.csv").rows
    for name in ("status", "key", "dataset", "objective"):
        assert there[name] == here[name]
    assert (tmp_path / "r.trace.csv").exists()


def test_a_file_that_a_worker_cannot_see(tmp_path, monkeypatch, cluster):
    data = tmp_path / "rows.libsvm"
    data.write_text("1 1:1\n-1 1:2\n")
    options = {"n_features": 8, "lam": 1}
    work = Plan("p", "", "", "", [Run(dataset=str(data), method="rf", options=options)])
    resolved = pools._resolved

    def elsewhere(run):
        job, key = resolved(run)
        return replace(job, dataset=job.dataset.replace("rows", "gone")), key

    with monkeypatch.context() as patched:
        patched.setattr(pools, "_resolved", elsewhere)
        (row,) = run(work, tmp_path, cluster.address).rows
        assert row["params"]["error"] == child.NO_DATA
        assert f"{tmp_path}/gone.libsvm is not here; put it where" in row["message"]
        # the same name, but other rows there
        (tmp_path / "gone.libsvm").write_text("1 1:1\n-1 1:3\n")
        (row,) = run(work, tmp_path, cluster.address).rows
    assert "differs between this machine and the one that requested the run" in row["message"]
    assert run(work, tmp_path, cluster.address).count("ok") == 1, "and it is tried again"


def test_a_command_that_is_not_there_ends_the_plan(tmp_path, cluster):
    with pytest.raises(ClusterError, match="a worker of tcp.* can't run: FileNotFoundError"):
        run(a_plan("a"), tmp_path, cluster.address, command=["/no/such/program"])


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_the_children_on_the_workers(tmp_path, stub, cluster, number):
    names = ("slow-1", "slow-2", "never")
    runs = [a_run(name, checkpoint=str(tmp_path / f"pid-{name}")) for name in names]
    process = start(tmp_path, stub, cluster.address, runs)
    pids = [pid_in(tmp_path / f"pid-slow-{n}") for n in (1, 2)]
    process.send_signal(number)
    assert process.wait(60) == 130
    wait_for(lambda: not any(map(_alive, pids)), "a child outlived the runner")
    assert sorted(rows_in(tmp_path)) == [("slow-1", "interrupted"), ("slow-2", "interrupted")]


@pytest.mark.parametrize("which", ["runner", "scheduler"])
def test_kill_9_ends_the_children_and_keeps_the_rows(tmp_path, stub, which):
    with Cluster() as by_hand:
        by_hand.add()
        runs = [a_run(name, checkpoint=str(tmp_path / "pid")) for name in ("short", "slow")]
        process = start(tmp_path, stub, by_hand.address, runs)
        pid = pid_in(tmp_path / "pid")
        wait_for(lambda: (tmp_path / "r.csv").exists(), "no row")
        (by_hand.scheduler if which == "scheduler" else process).kill()
        said = process.communicate(timeout=60)[1]
        wait_for(lambda: not _alive(pid), "the child outlived the runner")
        with results.exclusive(tmp_path / "r.csv"):
            assert rows_in(tmp_path) == [("short", "ok")]
        if which == "scheduler":
            assert f"the scheduler at {by_hand.address} is lost; unsaved work is lost" in said
        else:
            again = run(a_plan("a"), tmp_path, by_hand.address, command=stub)
            assert again.count("ok") == 1, "the workers are free"


def test_a_worker_that_dies_gives_its_run_to_one_that_comes_later(tmp_path, stub):
    with Cluster() as own:
        first = own.add()
        runs = [a_run("wait", checkpoint=str(tmp_path / "pid-"))]
        process = start(tmp_path, stub, own.address, runs)
        wait_for(lambda: list(tmp_path.glob("pid-*")), "the run never began")
        (begun,) = tmp_path.glob("pid-*")
        first.kill()
        wait_for(lambda: not _alive(int(begun.name[4:])), "the child outlived its worker")
        own.add()
        wait_for(lambda: len(list(tmp_path.glob("pid-*"))) == 2, "nobody took it up")
        (tmp_path / "pid-go").touch()
        assert process.wait(60) == 0
        assert rows_in(tmp_path) == [("wait", "ok")]


def test_a_run_that_ends_its_workers_is_a_failed_row(tmp_path, stub):
    fatal, other = run(a_plan("murder", "a"), tmp_path, "local:1", command=stub).rows
    assert (fatal["status"], other["status"]) == ("failed", "ok")
    assert fatal["message"].startswith("3 workers ended during the same task, the last tcp://")


def test_no_workers_are_said_and_waited_for(tmp_path, stub, set_sizes):
    set_sizes(pools, _LOOK_FOR_WORKERS=0.2)
    with Cluster() as own:
        report = lambda text: own.add() if "has no workers; waiting" in text else None
        summary = run(a_plan("a", "b"), tmp_path, own.address, command=stub, report=report)
    assert summary.count("ok") == 2
