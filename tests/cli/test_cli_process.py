"""rfx as a process: signals, closed pipes and full disks; errors of one line, whatever happens."""

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from shell import printed, refused, run

from rfx import errors, methods
from rfx.data import libsvm
from rfx.errors import DataError, UsageError

pytestmark = pytest.mark.slow

RFX = [sys.executable, "-m", "rfx"]


@pytest.fixture
def data(tmp_path):
    path = tmp_path / "data.txt"
    libsvm.write(path, np.random.default_rng(0).normal(size=(3000, 1)).round(3), np.ones(3000))
    return path


COMMANDS = pytest.mark.parametrize(
    "words", [["--help"], ["featurize", "{}", "-n", "60"], ["check", "{}"]], ids=" ".join
)


def written_to(output, words, data):
    """(exit code, standard error) of a command with that standard output."""
    line = [*RFX, *(word.format(data) for word in words)]
    done = subprocess.run(line, stdout=output, stderr=subprocess.PIPE, text=True)
    return done.returncode, done.stderr


@COMMANDS
def test_a_reader_that_has_gone_gives_141(words, data):
    read, write = os.pipe()
    os.close(read)
    with open(write, "w") as output:
        assert written_to(output, words, data) == (141, "")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")
@COMMANDS
def test_a_full_disk_is_one_sentence(words, data):
    said = "rfx: the output can't be read or written: No space left on device\n"
    with open("/dev/full", "w") as full:
        assert written_to(full, words, data) == (1, said)


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
    done = subprocess.run([sys.executable, "-c", SIGNALLED_IN_LLVM], capture_output=True, text=True)
    assert done.stdout.split() == ["2", "interrupted", "15", "interrupted"], done.stderr


IMPORTING = """
import sys, types
from rfx import __main__
class Importing(types.ModuleType):
    def __getattr__(self, name):
        raise KeyboardInterrupt
sys.modules["rfx.cli"] = Importing("rfx.cli")
__main__.main()
"""
# threads that still compute delay no interrupt
COMPUTING = """
import sys, threading, time, types
from rfx import __main__
def main():
    threading.Thread(target=time.sleep, args=(600,)).start()
    raise KeyboardInterrupt
sys.modules["rfx.cli"] = types.SimpleNamespace(main=main)
__main__.main()
"""
STARTING_A_THREAD = """
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


@pytest.mark.parametrize("code", [IMPORTING, COMPUTING, STARTING_A_THREAD], ids="ict")
def test_an_interrupt_at_any_moment_ends_the_process_in_a_sentence(code, data):
    line = f"featurize {data} -n 2000 -o {data.parent}/z.txt --threads 2"
    words = [sys.executable, "-c", code, *line.split()]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "rfx: interrupted\n")


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("rfx train --method rf --kern", {"--kernel"}),
        ("rfx train --method nothing --da", {"--data"}),
        ("rfx tune --method=rf --budg", {"--budget-seconds"}),
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


# --------------------------- an error is one line without control characters, whatever it quotes

EVIL = "\x1b]0;evil\x07\x1b[31m\x9b2J\u202e"
NO_UTF8 = os.fsdecode(b"\xff.csv")
RAW = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]")


@pytest.fixture
def rfx(capfd, own_folders, monkeypatch):
    """`rfx words`, whose output is checked for control characters."""
    for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)

    def call(*words):
        code, out, err = run(capfd, *words)
        assert not RAW.search(out) and not RAW.search(err), (out, err)
        return code, out, err

    return call


def test_control_characters_are_spelled_out():
    assert errors.plain("a\x1b[0m\x07\r\u202e\udcff") == r"a\x1b[0m\x07\r\u202e\udcff"
    assert errors.plain("café – 日本 👩\u200d🔬") == "café – 日本 👩\u200d🔬"


def test_an_error_is_one_line_whatever_it_quotes(tmp_path, rfx):
    """A quoted cell may contain line breaks; the command line shows the error, and programs read
    it, as one sentence.
    """
    assert (
        str(errors.DataError("a\nb\u2028c"))
        == str(errors.RfxWarning("a\nb\u2028c"))
        == r"a\nb\u2028c"
    )
    file = tmp_path / "d.csv"
    file.write_bytes(
        b'id,job,"height\n1,clerk,170.5,yes\n2,"smith, ""old""",,no""\n3,clerk,1e2,y181,no\n'
    )
    code, _, err = rfx("train", "--method", "rf", "--data", file)
    assert code == 1
    assert r"height\n1,clerk" in err.splitlines()[-1]


ANSWER = f"HTTP/1.1 \x1b[31m404 {EVIL}\r\nContent-Length: 0\r\n\r\n"


def test_what_a_server_answers(monkeypatch, rfx, caplog, no_pauses):
    """Server text is also checked when it arrives, because a program that uses rfx as a library
    prints messages itself.
    """
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve():
            with contextlib.suppress(OSError):
                while True:
                    with server.accept()[0] as connection:
                        connection.recv(4096)
                        connection.sendall(ANSWER.encode())

        threading.Thread(target=serve, daemon=True).start()
        monkeypatch.setenv("RFX_MIRROR", f"http://127.0.0.1:{server.getsockname()[1]}")
        code, _, err = rfx("fetch", "heart")
        server.shutdown(socket.SHUT_RDWR)
    assert code == 1 and caplog.messages[0].endswith("trying again in 0 s")
    assert err.startswith("rfx: http://127.0.0.1:") and r"\x1b[31m404 \x1b]0;evil\x07" in err
    assert not RAW.search(caplog.text)


@pytest.mark.parametrize(
    "words",
    [
        [f"tr{EVIL}"],
        ["datasets", f"--{EVIL}"],
        ["check", f"no{EVIL}.csv"],
        ["train", "--method", "rf", "--data", f"no{EVIL}.csv"],
        ["table", EVIL],
        ["info", f"no{EVIL}.csv"],
        ["check", NO_UTF8],
    ],
)
def test_names_of_files_and_commands(words, rfx):
    code, _, err = rfx(*words)
    assert code in (1, 2)
    assert r"\udcff.csv" in err if words[-1] == NO_UTF8 else r"\x1b]0;evil\x07" in err


# -------------------------------------- extreme numbers, rows without inputs, a bare environment

SMALL = {
    "n_features": 20,
    "n_grids": 10,
    "epochs": 1,
    "rounds": 1,
    "layers": "5",
    "budget_samples": 50,
    "gamma": 1.0,
}


def made(name, **options):
    known = methods.get(name).declared()
    return methods.create(
        name, **{key: value for key, value in (SMALL | options).items() if key in known}
    )


LARGE = {"task": "regression", "target_scaling": "none"}


@pytest.mark.filterwarnings("ignore:.*:RuntimeWarning")
@pytest.mark.parametrize(
    "name, options",
    [(name, LARGE) for name in methods.names()]
    + [
        (name, {"task": "binary", "lam": lam})
        for name in ("rf", "sparse-rf", "kernel", "rb")
        for lam in (5e-324, 1e308)
    ],
)
def test_numbers_beyond_any_scale_have_no_silent_model(name, options):
    """Targets whose squares are not finite, the smallest and the largest lambda."""
    X = np.random.default_rng(0).normal(size=(40, 2))
    y = np.sign(X[:, 0]) * (1e200 if options is LARGE else 1)
    try:
        trained = made(name, **options).fit(X, y)
    except (DataError, UsageError) as error:
        assert "not finite" in str(error) or "task is regression" in str(error)
    else:
        assert np.isfinite(trained.decision_function(X)).all()
        assert np.isfinite(trained.predict(X)).all()


@pytest.mark.parametrize("name", methods.names())
def test_rows_without_any_input_are_the_same_sentence_for_every_method(name, tmp_path, capfd):
    data = tmp_path / "t.svm"
    data.write_text("1\n-1\n" * 6)
    assert "rfx: all inputs of all rows are zero or missing" in refused(
        capfd, "train", "--method", name, "--data", data
    )


def test_a_narrow_encoding_hides_nothing(tmp_path):
    """Characters that standard output can't encode are escaped and do not cause a traceback."""
    path = tmp_path / "table.csv"
    path.write_text("größe,y\n" + "1,日本\n2,b\n" * 9)
    for encoding in ("ascii", "latin-1"):
        done = subprocess.run(
            [sys.executable, "-m", "rfx", "check", str(path)],
            capture_output=True,
            env=os.environ | {"PYTHONIOENCODING": encoding},
        )
        assert (done.returncode, done.stderr) == (0, b"")
        assert done.stdout.decode("utf-8" if encoding == "ascii" else encoding).count("größe") == 1


@pytest.mark.parametrize(
    "command", ["train --method rf --data -", "train --method norma --stream --data -", "check -"]
)
def test_a_closed_standard_input_is_a_sentence(command):
    code = (
        "import os, sys; os.close(0); os.execv(sys.executable, [sys.executable, '-m', 'rfx',"
        f" *{command.split()!r}])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert done.stderr.startswith("rfx: standard input is closed")


@pytest.mark.parametrize(
    "option",
    ["--cv", "--holdout", "--threads", "--lam", "--n-features", "--class-weight", "--scheduler"],
)
@pytest.mark.parametrize("text", ["1_0", "٣"])
def test_an_option_takes_no_number_that_only_python_has(option, text, tmp_path, capfd):
    path = tmp_path / "t.csv"
    path.write_text("a,y\n" + "".join(f"{n % 7},{n % 2}\n" for n in range(40)))
    value = {"--class-weight": f"1:{text}", "--scheduler": f"local:{text}"}.get(option, text)
    words = "train --method rf --lam 1 --n-features 5 --data".split()
    said = refused(capfd, *words, path, option, value, code=2)
    assert option in said and text in said and "Traceback" not in said
