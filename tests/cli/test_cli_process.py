"""rfx as a process: signals, closed pipes and full disks."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from shell import printed, refused, run

from rfx.data import libsvm

RFX = [sys.executable, "-m", "rfx"]


@pytest.fixture
def data(tmp_path):
    path = tmp_path / "data.txt"
    rows = np.random.default_rng(0).normal(size=(3000, 1)).round(3)
    libsvm.write(path, rows, np.ones(3000))
    return path


COMMANDS = pytest.mark.parametrize(
    "words", [["--help"], ["featurize", "{}", "-n", "60"], ["check", "{}"]], ids=" ".join
)


@COMMANDS
def test_a_reader_that_has_gone_gives_141(words, data):
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        [*RFX, *(word.format(data) for word in words)],
        stdout=write,
        stderr=subprocess.PIPE,
        text=True,
    )
    os.close(write)
    assert (done.returncode, done.stderr) == (141, "")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")
@COMMANDS
def test_a_full_disk_is_one_sentence(words, data):
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [*RFX, *(word.format(data) for word in words)],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
        )
    assert (done.returncode, done.stderr) == (
        1,
        "rfx: the output can't be written: No space left on device\n",
    )


def test_the_task_is_guessed_aloud_or_not_at_all(tmp_path, capfd, caplog):
    """Regression on whole numbers, such as cpu with its targets 1 to 100, must not silently become
    classification.
    """
    rows = np.random.default_rng(0).normal(size=(600, 2))
    libsvm.write(tmp_path / "classes", rows, np.sign(rows[:, 0]))
    libsvm.write(tmp_path / "numbers", rows, np.floor(50 + 15 * rows[:, 0]))
    plain = ["--n-features", "10", "--lam", "1", "--scaling", "none", "--metric", "none"]
    train = ["train", "--method", "rf", *plain, "--no-baseline", "--data"]
    printed(capfd, *train, tmp_path / "classes")
    told = "task binary, inferred from the targets: -1 and 1 only; --task overrides it"
    assert caplog.messages == [told]
    said = refused(capfd, *train, tmp_path / "numbers", code=2)
    assert "use --task regression or --task multiclass" in said
    for task, metric in (("regression", "rmse"), ("multiclass", "accuracy")):
        assert metric in printed(capfd, *train, tmp_path / "numbers", "--task", task)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_leaves_nothing_half_written(number, data):
    words = ["featurize", str(data), "-n", "20000", "-o", str(data.parent / "z.txt")]
    process = subprocess.Popen([*RFX, *words], stderr=subprocess.PIPE, text=True)
    end = time.monotonic() + 60
    while len(list(data.parent.iterdir())) < 2:
        assert time.monotonic() < end and process.poll() is None
        time.sleep(0.01)
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130 and err.strip() == "rfx: interrupted"
    assert list(data.parent.iterdir()) == [data]


def test_ctrl_c_while_rfx_is_imported_shows_no_traceback():
    code = """
import sys, types
from rfx import __main__
class Importing(types.ModuleType):
    def __getattr__(self, name):
        raise KeyboardInterrupt
sys.modules["rfx.cli"] = Importing("rfx.cli")
__main__.main()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "rfx: interrupted\n")


SIGNALLED_IN_LLVM = """
import os, signal, time, types
from rfx import env
calls = []
def callback(number):
    os.kill(os.getpid(), number)
    time.sleep(0.001)
    calls.append(number)
callback = types.FunctionType(callback.__code__, globals() | {"__name__": "llvmlite.binding"})
for number in (signal.SIGINT, signal.SIGTERM):
    env._TOGETHER = 0
    with env.terminate_as_interrupt():
        try:
            callback(number)
            time.sleep(10)
        except KeyboardInterrupt:
            calls.append("interrupted")
print(*calls)
"""


def test_a_signal_inside_llvm_interrupts_once_llvm_has_returned():
    """LLVM calls back into Python while it compiles, and drops what the callback raises."""
    command = [sys.executable, "-c", SIGNALLED_IN_LLVM]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.stdout.split() == ["2", "interrupted", "15", "interrupted"], done.stderr


def test_threads_that_still_compute_do_not_delay_an_interrupt():
    code = """
import sys, threading, time, types
from rfx import __main__
def main():
    threading.Thread(target=time.sleep, args=(600,)).start()
    raise KeyboardInterrupt
sys.modules["rfx.cli"] = types.SimpleNamespace(main=main)
__main__.main()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=60)
    assert done.returncode == 130


INTERRUPTED_THREAD = """
import sys, threading
from rfx.cli import main
start = threading.Thread.start
def interrupted(self):
    threading.Thread.start = start
    start(self)
    raise KeyboardInterrupt
threading.Thread.start = interrupted
main(sys.argv[1:])
"""


def test_an_interrupt_while_a_thread_is_started_ends_the_process(data):
    words = [
        "featurize",
        str(data),
        "-n",
        "2000",
        "-o",
        str(data.parent / "z.txt"),
        "--threads",
        "2",
    ]
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED_THREAD, *words],
        stderr=subprocess.PIPE,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stderr.strip()) == (130, "rfx: interrupted")


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("rfx train --method spa", {"sparse-rb", "sparse-rf", "sparse-random-binning"}),
        ("rfx tune --method ran", {"random-features", "random-binning"}),
        ("rfx methods rec", {"recursive-feature-machine"}),
        ("rfx train --method rf --kernel lapl", {"laplacian", "laplacian-l2"}),
        ("rfx train --method nothing --data cod-r", {"cod-rna"}),
        ("rfx train --method rf --data cod-r", {"cod-rna"}),
        ("rfx run yen2014-t", {"yen2014-table1", "yen2014-table2"}),
        ("rfx figure par", {"pareto"}),
        ("rfx table summ", {"summary"}),
        ("rfx tr", {"train"}),
    ],
)
def test_shell_completion(line, expected, monkeypatch, capfd):
    asked = {"_RFX_COMPLETE": "bash_complete", "COMP_WORDS": line}
    for name, value in (asked | {"COMP_CWORD": str(len(line.split()) - 1)}).items():
        monkeypatch.setenv(name, value)
    _, out, err = run(capfd)
    assert expected <= {entry.partition(",")[2] for entry in out.split()} and not err


def test_training_on_a_table_says_what_its_columns_became(tmp_path, capfd, caplog):
    rows = "".join(f"{i % 7},w{i % 3},{i % 2}\n" for i in range(60))
    (tmp_path / "t.csv").write_text(f"a,b,y\n{rows}")
    words = "train --method rf --n-features 5 --gamma 1 --lam 1 --target y --json --data"
    assert " inputs from " not in printed(capfd, *words.split(), tmp_path / "t.csv")
    line = "t.csv: 4 inputs from 2 columns: 1 number, 1 category (3 values)"
    assert [message.endswith(line) for message in caplog.messages].count(True) == 1
