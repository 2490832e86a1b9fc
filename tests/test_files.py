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


def test_only_a_commands_own_kind_is_replaced(tmp_path):
    path = tmp_path / "out"
    files.guard(("-o", path), (), KIND)
    for content, passes in ((b"", True), (b"note 1", True), (b"somebody's", False)):
        path.write_bytes(content)
        if passes:
            files.guard(("-o", path), (), KIND)
        else:
            with pytest.raises(
                UsageError, match="^-o .*out exists and is not a note; .* with --force$"
            ):
                files.guard(("-o", path), (), KIND)
            files.guard(("-o", path), (), KIND, force=True)
            files.guard(("--results", path))  # which is only appended to


def test_pipes_and_devices_are_let_pass(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", "/dev/null"):
        files.guard(("--model", path), [("--data", path)], KIND)


STREAMS = "from rfx import files; files.guard(('-o', {!r}), [('the input', {!r})])"


@pytest.mark.parametrize(
    "output, source, refused",
    [("-", "data", True), ("-", "-", True), ("data", "-", True), ("other", "-", False)],
)
def test_standard_streams_are_files_too(data, output, source, refused):
    with open(data, "ab") as out, open(data, "rb") as into:
        done = subprocess.run(
            [sys.executable, "-c", STREAMS.format(output, source)],
            stdin=into,
            stdout=out,
            stderr=subprocess.PIPE,
            cwd=data.parent,
            text=True,
        )
    assert ("is the same file as" in done.stderr) == refused and data.read_text() == "what is read"


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


def test_a_draft_that_is_a_link_is_left_alone(tmp_path, data):
    link = tmp_path / ".m.abcdefgh.part"
    link.symlink_to(data)
    with files.whole(tmp_path / "m"):
        pass
    assert link.is_symlink() and data.exists()


def test_a_draft_cleared_before_it_is_locked_is_made_again(tmp_path, monkeypatch):
    flock, cleared = files._flock, []

    def late(descriptor, how):
        if not cleared:
            cleared.append(True)
            files._clear_drafts(tmp_path / "m")
        flock(descriptor, how)

    monkeypatch.setattr(files, "_flock", late)
    with files.whole(tmp_path / "m") as out:
        out.write(b"content")
    assert (
        cleared
        and (tmp_path / "m").read_bytes() == b"content"
        and len(list(tmp_path.iterdir())) == 1
    )


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


def not_files(folder):
    """Names of files that are not regular. Nobody writes to the pipe, so a plain open would
    block.
    """
    os.mkfifo(folder / "pipe")
    os.symlink("/dev/zero", folder / "endless")
    return {
        "/dev/zero": "a device",
        folder / "endless": "a device",
        folder / "pipe": "a pipe",
        folder: "directory",
    }


@pytest.mark.parametrize("mode", ["rb", "r", "ab", "r+b"])
def test_only_a_regular_file_is_opened(tmp_path, data, mode):
    for path, what in not_files(tmp_path).items():
        with pytest.raises(OSError) as told:
            files.open_regular(path, mode)
        assert what in told.value.strerror.lower()
        with pytest.raises(OSError):
            files.check_regular(path)
    with files.open_regular(data, mode) as handle:
        assert handle.name == str(data)
    assert files.check_regular(data).st_size == len(b"what is read")
    with pytest.raises(FileNotFoundError):
        files.open_regular(tmp_path / "missing")


def test_a_file_that_is_missing_is_made_by_appending(tmp_path):
    with files.open_regular(tmp_path / "new", "a", encoding="utf-8") as handle:
        handle.write("é")
    assert (tmp_path / "new").read_text(encoding="utf-8") == "é"


def test_a_pipe_is_opened_where_pipes_will_do(tmp_path):
    read, write = os.pipe()
    os.write(write, b"rows")
    os.close(write)
    with files.open_regular(f"/dev/fd/{read}", pipes=True) as handle:
        assert handle.read() == b"rows"
    os.close(read)
    with pytest.raises(OSError, match="a device"):
        files.open_regular("/dev/zero", pipes=True)
