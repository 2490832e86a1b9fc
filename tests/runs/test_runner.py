"""The runner: one process and one row per run, resuming, every way in which a child can end, locks,
kill -9.
"""

import json
import re
import signal
import subprocess
import sys
from dataclasses import replace

import psutil
import pytest
from waiting import pid_in, wait_for

from rfx.cli.output import Progress
from rfx.errors import LockedError, NoData, OutOfTime
from rfx.fitting.progress import ProgressReport
from rfx.plans.plan import Plan
from rfx.records import keys, results
from rfx.records.run import Result, Run
from rfx.runs import child, runner

pytestmark = pytest.mark.slow

# The name of its data set tells the child what to do; it follows the protocol of rfx.runs.child.
STUB = """
import json, os, signal, sys, time
from rfx import env
from rfx.records.run import Result
from rfx.runs import child

options = dict(zip(sys.argv[2::2], sys.argv[3::2]))
env.die_with(int(options["--parent"]))
spec = json.loads(sys.argv[1])
print("....*....", flush=True)
name = spec["dataset"].partition("-")[0]
def execute(run, progress):
    if name == "bad":
        from rfx.errors import DataError
        raise DataError("bad.libsvm: line 3: no label")
    if name == "data":
        from rfx.errors import NoData
        raise NoData("census: no public copy; put census.train into the data folder")
    if name == "bug":
        raise KeyError("no such thing")
    if name == "memory":
        raise MemoryError("Unable to allocate 9 GiB")
    if name == "interrupted":
        raise KeyboardInterrupt
    if name == "slow":
        if "checkpoint" in spec:
            open(spec["checkpoint"], "w").write(str(os.getpid()))
        time.sleep(60)
    if name == "nest":
        import subprocess
        words = [sys.executable, "-c", "import time; time.sleep(60)"]
        below = subprocess.Popen(words, start_new_session=True)
        open(spec["checkpoint"], "w").write(str(below.pid))
        below.wait()
    if name == "short":
        time.sleep(0.05)
    named = {"dataset": spec["dataset"], "method": spec["method"], "threads": spec.get("threads")}
    return Result(key="child's own", status="ok", metric="rmse", score=0.5,
                  params={"gamma": 0.5, "extra": 1}, **named)
if name == "killed":
    os.kill(os.getpid(), signal.SIGKILL)
if name == "crash":
    print("Segmentation of something", flush=True)
    sys.exit(7)
if name == "torn":
    os.write(int(options["--fd"]), b'{"status": "ok", "sco')
    os._exit(0)
row = child.outcome(spec, execute=execute)
os.write(int(options["--fd"]), json.dumps(row).encode())
"""


@pytest.fixture
def stub(tmp_path):
    path = tmp_path / "stub.py"
    path.write_text(STUB)
    return [sys.executable, str(path)]


def a_run(dataset, checkpoint=None, **options):
    return Run(
        dataset=dataset,
        checkpoint=checkpoint,
        method="rf",
        label="paper",
        options={"kernel": "gaussian", "lam": 1} | options,
    )


def a_plan(*datasets):
    return Plan("p", "a plan", "", "", [a_run(name) for name in datasets])


def test_the_steps_of_a_run_are_told_while_it_is_at_work(tmp_path):
    told, run = [], a_run("sphere:n=300,d=3", n_features=20, gamma=0.5, lam=1.0)
    runner.run(
        Plan("p", "a plan", "", "", [run]),
        tmp_path / "r.csv",
        progress=lambda *given: told.append(given),
    )
    (row,) = results.read(tmp_path / "r.csv")
    assert row["status"] == "ok" and told[-1] == (1, 1, [])
    reports = [report for done, total, working in told for name, report in working if report]
    assert reports and reports[0].iteration is not None and reports[0].gap is not None
    shown = Progress("p")
    shown.runs(*next(given for given in told if given[2] and given[2][0][1]))
    assert re.search(r"0 of 1 done, sphere:n=300,d=3 rf .*: step \d+, relative gap ", shown.line())
    # half of the second of two runs is done
    shown.start -= 30.0
    shown.runs(1, 2, [("a", ProgressReport(samples=10, share=0.5)), ("b", None)])
    assert shown.line() == "0:30, 1 of 2 done, a: 10 rows; b, 0:10 left"


def test_a_kill_reaches_back_ends_in_sessions_of_their_own(tmp_path, stub):
    runs = [a_run("nest", checkpoint=str(tmp_path / "pid"))]
    runner.run(Plan("p", "", "", "", runs), tmp_path / "r.csv", timeout=3, command=stub)
    assert not _alive(pid_in(tmp_path / "pid"))


def _start(tmp_path, stub, datasets, jobs=1, **options):
    """A runner in its own process, which can be interrupted and killed."""
    runs = [a_run(name, **options) for name in datasets]
    program = (
        "import json, sys\nfrom rfx.plans import plan\nfrom rfx.records.run import Run\nfrom"
        " rfx.runs import runner\nruns, path, jobs, command = json.loads(sys.argv[1])\ntry:\n   "
        " runner.run(plan.Plan('p', '', '', '', list(map(Run.of, runs))), path, jobs,"
        " command=command,\n               report=lambda text: print(text, flush=True))\nexcept"
        " KeyboardInterrupt:\n    sys.exit(130)\n"
    )
    words = json.dumps([[run.as_dict() for run in runs], str(tmp_path / "r.csv"), jobs, stub])
    return subprocess.Popen(
        [sys.executable, "-c", program, words], stdout=subprocess.PIPE, text=True
    )


def _alive(pid):
    try:
        return psutil.Process(pid).status() not in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD)
    except psutil.NoSuchProcess:
        return False


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_the_child_and_writes_its_row(tmp_path, stub, number):
    process = _start(tmp_path, stub, ["short", "slow", "never"], checkpoint=str(tmp_path / "pid"))
    pid = pid_in(tmp_path / "pid")
    process.send_signal(number)
    assert process.wait(20) == 130
    assert not _alive(pid)
    assert [(row["dataset"], row["status"]) for row in results.read(tmp_path / "r.csv")] == [
        ("short", "ok"),
        ("slow", "interrupted"),
    ]


def test_kill_9_of_the_runner_ends_the_child_and_frees_the_lock(tmp_path, stub):
    process = _start(tmp_path, stub, ["short", "slow"], checkpoint=str(tmp_path / "pid"))
    pid = pid_in(tmp_path / "pid")
    process.kill()
    process.wait()
    wait_for(lambda: not _alive(pid), "the child outlived the runner")
    with results.exclusive(tmp_path / "r.csv"):
        assert [row["dataset"] for row in results.read(tmp_path / "r.csv")] == ["short"]


def test_a_row_for_each_run_then_nothing_to_do(tmp_path, stub):
    path, said = tmp_path / "r.csv", []
    summary = runner.run(a_plan("a", "b"), path, command=stub, report=said.append)
    assert (summary.ran, summary.total, summary.exit_code) == (2, 2, 0)
    first, second = results.read(path)
    assert [first["key"], second["key"]] == [keys.key(a_run(name)) for name in "ab"]
    assert (first["score"], first["kernel"], first["lam"]) == (0.5, "gaussian", 1.0)
    params = dict(first["params"])
    assert params.pop("seconds_process") > 0
    assert params == {"gamma": 0.5, "label": "paper", "extra": 1}
    assert said[0] == f"p: 2 runs, 0 have a row in {path}, 2 to do"
    assert said[1] == "[1/2] a rf gaussian paper lam=1: rmse 0.5"
    before = path.read_bytes()
    again = runner.run(a_plan("a", "b"), path, command=["/no/such/program"])
    assert (again.ran, again.exit_code, path.read_bytes()) == (0, 0, before)
    longer = runner.run(a_plan("a", "b", "c"), path, command=stub)
    assert (longer.ran, longer.total) == (1, 3)


@pytest.mark.parametrize(
    "dataset, status, message",
    [
        ("data", "failed", "census: no public copy"),
        ("bad", "failed", "bad.libsvm: line 3: no label"),
        ("bug", "failed", "KeyError: 'no such thing' (stub.py line "),
        ("memory", "failed", "out of memory (Unable to allocate 9 GiB)"),
        ("interrupted", "interrupted", "interrupted"),
        ("killed", "failed", "(SIGKILL), probably because memory ran out; its last output: ....*"),
        ("crash", "failed", "ended with code 7 and no row; its last output: Segmentation"),
        ("torn", "failed", "ended with code 0 and no row"),
        ("slow", "timeout", "not finished within 1 seconds"),
    ],
)
def test_a_child_that_fails_gives_a_row_with_its_reason(tmp_path, stub, dataset, status, message):
    run = replace(a_run(dataset, lam="validation"), timeout=1 if dataset == "slow" else None)
    summary = runner.run(Plan("p", "", "", "", [run]), tmp_path / "r.csv", command=stub)
    (row,) = results.read(tmp_path / "r.csv")
    assert summary.rows == [row]
    assert row["status"] == status
    assert message in row["message"]
    assert row["params"]["label"] == "paper"
    assert (row["lam"], row["params"]["lam"]) == (None, "validation"), "a wish is not a number"
    assert row["peak_rss_mb"] > 1
    assert summary.exit_code == 3


def test_what_is_run_again(tmp_path, stub):
    path = tmp_path / "r.csv"
    work = a_plan("a", "bad", "data", "interrupted")
    runner.run(work, path, command=stub)
    rows = results.read(path)
    again = lambda **more: [run.dataset for run in runner.missing(work, rows, **more)]
    assert again() == ["data", "interrupted"]
    assert again(retry_failed=True) == ["bad", "data", "interrupted"]
    row = Result(key=keys.key(work.runs[0]), dataset="a", method="rf")
    assert runner.missing(a_plan("a"), [row]), "a row without status"


def test_a_row_without_a_requested_timing_is_run_again():
    run = a_run("a")
    row = Result(key=keys.key(run), dataset="a", method="rf", status="ok")
    timed = Plan("p", "", "", "", [replace(run, timings=3)])
    assert runner.missing(Plan("p", "", "", "", [run]), [row]) == []
    assert runner.missing(timed, [row]) == timed.runs
    assert runner.missing(timed, [row.with_params(least_seconds_cpu=0.1)]) == []


def test_data_that_cannot_be_had_are_asked_for_once_a_call(tmp_path, stub):
    path, said = tmp_path / "r.csv", []
    work = Plan("p", "", "", "", [a_run("data", lam=lam) for lam in (1, 2, 3)] + [a_run("a")])
    summary = runner.run(work, path, command=stub, report=said.append)
    rows = results.read(path)
    assert [(row["dataset"], row["lam"]) for row in rows] == [("data", 1), ("a", 1)]
    assert [line for line in said if "skipped" in line][0].startswith("[3/4] data: 2 runs more")
    assert (summary.ran, summary.skipped, summary.count("failed")) == (2, 3, 0)
    assert len(runner.missing(work, rows)) == 3


@pytest.mark.usefixtures("own_folders")
def test_data_that_a_person_must_get_are_found_out_before_any_process(tmp_path, stub):
    said, runs = [], [a_run("census", lam=lam) for lam in (1, 2)]
    work = Plan("p", "", "", "", [*runs, a_run("a")])
    summary = runner.run(work, tmp_path / "r.csv", command=stub, report=said.append)
    assert said[1].startswith("p: census: 2 runs skipped; its data must be obtained by hand: ")
    assert (summary.ran, summary.skipped, summary.exit_code) == (1, 2, 3)


@pytest.mark.parametrize(
    "error, kind",
    [
        (OutOfTime("too long"), "OutOfTime"),
        (NoData("not there"), "NoData"),
        (LockedError("somebody else is fetching it"), "NoData"),
    ],
)
def test_child_reports_errors_of_every_kind(error, kind):
    def execute(run, progress):
        raise error

    row = child.outcome(a_run("a").as_dict(), execute=execute)
    assert row["params"] == {"error": kind}
    assert row["message"] == str(error)
