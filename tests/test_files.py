"""Output files are complete or absent, never an input, and replace nothing of others; drafts of
dead processes, locks, links.
"""

import os
import signal
import subprocess
import sys
import time

import pytest

from rfx import files
from rfx.errors import UsageError

KIND = files.Kind("a note", lambda path: path.read_bytes().startswith(b"note"))


@pytest.fixture
def data(tmp_path):
    path = tmp_path / "data"
    path.write_text("what is read")
    return path


def linked(path, how):
    other = path.with_name(f"{how}-link")
    {"soft": os.symlink, "hard": os.link}[how](path, other)
    return other


@pytest.mark.parametrize("name", ["data", "soft", "hard", "dots", "chain"])
@pytest.mark.parametrize("force", [False, True])
def test_an_output_is_never_an_input_by_whatever_name(data, name, force, monkeypatch):
    monkeypatch.chdir(data.parent)
    output = {
        "data": lambda: "data",
        "soft": lambda: linked(data, "soft"),
        "hard": lambda: linked(data, "hard"),
        "dots": lambda: data.parent / "." / ".." / data.parent.name / "data",
        "chain": lambda: linked(linked(data, "soft").rename("other"), "soft"),
    }[name]()
    with pytest.raises(
        UsageError, match="^--model .* is the same file as --data .*; write to another file$"
    ):
        files.guard(("--model", output), [("--data", data)], KIND, force)


def test_two_outputs_that_are_not_there_yet_are_told_apart_by_their_place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match="--results .*new is the same file as --model new"):
        files.guard(("--results", tmp_path / "new"), [("--model", "new")])
    os.symlink("new", "dangling")
    with pytest.raises(UsageError, match="same file"):
        files.guard(("--results", "dangling"), [("--model", "new")])
    files.guard(("--results", "newer"), [("--model", "new")])


@pytest.mark.parametrize("content", [b"", b"note 1"])
def test_a_commands_own_kind_is_replaced(tmp_path, content):
    files.guard(("-o", tmp_path / "out"), (), KIND)
    (tmp_path / "out").write_bytes(content)
    files.guard(("-o", tmp_path / "out"), (), KIND)


def test_no_other_kind_is_replaced(data):
    with pytest.raises(UsageError, match="^-o .*data exists and is not a note; .* with --force$"):
        files.guard(("-o", data), (), KIND)
    files.guard(("-o", data), (), KIND, force=True)
    files.guard(("--results", data))  # which is only appended to


@pytest.mark.parametrize("path", ["pipe", "/dev/null", "-"])
def test_pipes_devices_and_standard_streams_are_let_pass(tmp_path, monkeypatch, path):
    monkeypatch.chdir(tmp_path)
    os.mkfifo("pipe")
    files.guard(("--model", path), [("--data", path)], KIND)


# Drafts
# --------------------------------------------------------------------------------------------------

HANG = (
    "import sys, time; from rfx import files\nwith files.whole(sys.argv[1]) as out:\n print('open',"
    " flush=True); time.sleep(60)"
)


def test_a_killed_writers_draft_is_cleared_by_the_next_and_a_living_ones_is_not(tmp_path):
    path = tmp_path / "m.npz"
    path.write_text("before")
    other = tmp_path / ".m.npz.lam.abcdefgh.part"
    other.write_text("a draft of another file, m.npz.lam")
    writers = [
        subprocess.Popen([sys.executable, "-c", HANG, path], stdout=subprocess.PIPE)
        for _ in range(2)
    ]
    try:
        assert [writer.stdout.readline() for writer in writers] == [b"open\n"] * 2
        drafts = set(tmp_path.glob(".m.npz.????????.part"))
        assert len(drafts) == 2
        writers[0].kill()
        writers[0].wait()
        with files.whole(path) as out:
            out.write(b"after")
        assert path.read_text() == "after" and other.exists()
        assert len(set(tmp_path.glob(".m.npz.????????.part")) & drafts) == 1
    finally:
        for writer in writers:
            writer.kill()
            writer.wait()
            writer.stdout.close()
    with files.whole(path) as out:
        out.write(b"last")
    assert sorted(tmp_path.iterdir()) == [other, path]


def test_who_may_read_what_was_written(tmp_path):
    before = os.umask(0o027)
    try:
        for mode, expected in ((0o666, 0o640), (0o600, 0o600)):
            with files.whole(tmp_path / "m", mode):
                pass
            assert (tmp_path / "m").stat().st_mode & 0o777 == expected
    finally:
        os.umask(before)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_what_is_there_stays_whole_until_the_new_file_is(tmp_path, number):
    path = tmp_path / "m"
    path.write_text("before")
    writer = subprocess.Popen([sys.executable, "-c", HANG, path], stdout=subprocess.PIPE)
    writer.stdout.readline()
    time.sleep(0.01)
    writer.send_signal(number)
    writer.wait()
    writer.stdout.close()
    assert path.read_text() == "before"
