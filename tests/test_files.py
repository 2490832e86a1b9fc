"""Output files are complete or absent, never an input, and replace nothing of others; drafts of
dead processes, locks, links. A model file has a round trip, and anything else is refused.
"""

import os
import subprocess
import sys
import tempfile
import threading
import zipfile
from unittest import mock

import numpy as np
import pytest
import scipy.sparse as sp

from rfx import files, methods, model
from rfx.errors import DataError, UsageError

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
        assert path.read_text() == "before"
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


def test_a_draft_that_another_writer_removes_before_its_lock_is_created_again(
    tmp_path, monkeypatch
):
    path = tmp_path / "m.npz"
    create = tempfile.mkstemp

    def create_and_start_another_writer(*arguments):
        created = create(*arguments)
        monkeypatch.setattr(tempfile, "mkstemp", create)
        with files.whole(path) as out:
            out.write(b"the other writer")
        return created

    monkeypatch.setattr(tempfile, "mkstemp", create_and_start_another_writer)
    with files.whole(path) as out:
        out.write(b"this writer")
    assert path.read_bytes() == b"this writer"
    assert list(tmp_path.iterdir()) == [path]


def test_who_may_read_what_was_written(tmp_path):
    before = os.umask(0o027)
    try:
        with files.whole(tmp_path / "m"):
            pass
        assert (tmp_path / "m").stat().st_mode & 0o777 == 0o640
    finally:
        os.umask(before)


def test_round_trip_and_size(tmp_path):
    path = tmp_path / "m.npz"
    size = model.write(path, {"method": "rf", "number": 0.1}, {"coef": np.arange(5.0)})
    assert size == path.stat().st_size
    header, arrays = model.read(path)
    assert header["method"] == "rf" and header["number"] == 0.1
    np.testing.assert_array_equal(arrays["coef"], np.arange(5.0))
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("target", [(np, "savez"), (os, "fsync"), (os, "replace")])
def test_an_interrupted_write_leaves_the_old_file(tmp_path, monkeypatch, target):
    path = tmp_path / "m.npz"
    model.write(path, {}, {"coef": np.zeros(2)})
    before = path.read_bytes()
    monkeypatch.setattr(*target, mock.Mock(side_effect=KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        model.write(path, {}, {"coef": np.ones(3)})
    monkeypatch.undo()
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_pipe_is_written_to_and_stays_a_pipe(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    got = []
    reader = threading.Thread(target=lambda: got.append(path.read_bytes()), daemon=True)
    reader.start()
    size = model.write(path, {"a": 1}, {"coef": np.arange(3.0)})
    reader.join(20)
    assert path.is_fifo() and size == 0
    (tmp_path / "m.npz").write_bytes(got[0])
    np.testing.assert_array_equal(model.read(tmp_path / "m.npz")[1]["coef"], np.arange(3.0))


def test_of_a_link_the_file_is_replaced(tmp_path):
    (tmp_path / "link").symlink_to("m.npz")
    model.write(tmp_path / "link", {}, {})
    assert (
        (tmp_path / "link").is_symlink()
        and (tmp_path / "m.npz").is_file()
        and len(list(tmp_path.iterdir())) == 2
    )


@pytest.mark.parametrize(("function", "more"), [(files.check, ()), (model.write, ({}, {}))])
@pytest.mark.parametrize(
    "path, reason",
    [
        ("", "a file name is required"),
        (".", "Is a directory"),
        ("no/m.npz", "No such file"),
        ("f/m.npz", "Not a dir"),
    ],
)
def test_check_refuses_what_write_refuses(tmp_path, monkeypatch, path, reason, function, more):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "f").touch()
    with pytest.raises(OSError, match=reason):
        function(path, *more)
    files.check(tmp_path / "m.npz")
    assert list(tmp_path.iterdir()) == [tmp_path / "f"]


NPY = (
    b"\x93NUMPY\x01\x00v\x00{'descr': '<f8', 'fortran_order': False, 'shape': (1,), }"
    + b" " * 59
    + b"\n"
    + bytes(8)
)


@pytest.mark.parametrize("content", [b"", b"1 1:0.5\n", b"PK\x03\x04broken", NPY])
def test_other_files_are_refused(tmp_path, content):
    path = tmp_path / "m.npz"
    path.write_bytes(content)
    with pytest.raises(
        DataError, match="m.npz is not a model file of rfx; create one with rfx train --model$"
    ):
        model.read(path)


@pytest.mark.parametrize(
    ("header", "says"),
    [
        (np.array([{"run": "me"}], dtype=object), "is not a model file of rfx"),
        (np.frombuffer(b'{"format": 99}', np.uint8), "has format 99, this rfx reads format 1"),
    ],
)
def test_pickled_and_future_files_are_refused(header, says, tmp_path):
    np.savez(tmp_path / "m.npz", header=header)
    with pytest.raises(DataError, match=says):
        model.read(tmp_path / "m.npz")


DAMAGES = {
    "missing": lambda values: None,
    "text": lambda values: np.full(values.shape, "a"),
    "short": lambda values: values[: len(values) // 2] if values.ndim else values[None],
    "nan": lambda values: (
        np.full(values.shape, np.nan) if values.dtype.kind == "f" else values - values.max() - 9
    ),
}
MODELS = {
    "rf": {"gamma": 1.0, "n_features": 20},
    "sparse-rf": {"kernel": "perceptron", "n_features": 20, "lam": 0.1},
    "rb": {"n_grids": 8},
    "nystrom": {"n_features": 10},
    "block": {"block_size": 15},
    "kernel": {"kernel": "stump"},
    "rf stump": {"kernel": "stump", "n_features": 20},
    "kernel sparse": {"scaling": "none"},
}


@pytest.fixture(scope="module", params=MODELS)
def case(request, tmp_path_factory):
    """The header and the arrays of a small model."""
    X, y = np.random.default_rng(0).uniform(-1, 1, (60, 3)), np.arange(60) % 3.0
    rows, path = sp.csr_matrix(X) if "sparse" in request.param else X, tmp_path_factory.mktemp("m")
    fitted = methods.create(request.param.split()[0], **MODELS[request.param]).fit(rows, y)
    fitted.save(path / "m.npz")
    return model.read(path / "m.npz")


@pytest.mark.slow
@pytest.mark.parametrize("damage", list(DAMAGES))
def test_every_damaged_array_is_refused(case, damage, tmp_path):
    (header, arrays), path = case, tmp_path / "m.npz"
    for name, values in arrays.items():
        damaged = DAMAGES[damage](values)
        model.write(
            path,
            header,
            {key: value for key, value in (arrays | {name: damaged}).items() if value is not None},
        )
        if name == "keys" and damage == "nan":
            continue  # any 64 bits are a key
        with pytest.raises(DataError, match=r"m\.npz .*train it again") as refusal:
            methods.load(path)
        assert damage == "short" or name.partition("_")[2] in str(refusal.value)


@pytest.fixture
def stored(tmp_path):
    """The file of a small model."""
    path = tmp_path / "m.npz"
    methods.create("rf", n_features=200).fit(np.eye(3), np.array([1.0, 2.0, 1.0])).save(path)
    return path


@pytest.mark.parametrize(
    "header",
    [
        {"method": "boosting"},
        {"method": ["rf"]},
        {"task": "ranking"},
        {"params": {"depth": 3}},
        {"params": None},
        {"loss": "huber"},
        {"info": None},
        {"info": {"n_inputs": 4}},
        {"map": {"name": "cubic", "n_inputs": 3, "params": {}}},
    ],
)
def test_a_damaged_header_is_refused(header, stored):
    old, arrays = model.read(stored)
    model.write(stored, old | header, arrays)
    with pytest.raises(DataError, match=r"m\.npz .*train it again"):
        methods.load(stored)


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        (np.array([None]), r"array map_frequencies is damaged \(ValueError\)"),
        (np.zeros(16, np.float32), r"array map_frequencies has the shape \(16,\)"),
    ],
)
def test_odd_arrays_are_a_sentence(values, reason, stored):
    header, arrays = model.read(stored)
    model.write(stored, header, arrays | {"map_frequencies": values})
    with pytest.raises(DataError, match=rf"m\.npz can't be used: {reason}.*; train it again$"):
        methods.load(stored)


def test_a_damaged_member_is_a_sentence(stored):
    with zipfile.ZipFile(stored) as archive:
        start = archive.getinfo("map_frequencies.npy").header_offset + 400
    content = bytearray(stored.read_bytes())
    content[start : start + 200] = bytes(range(200))
    stored.write_bytes(content)
    reason = r"array map_frequencies is damaged \(\w+\)"
    with pytest.raises(DataError, match=rf"m\.npz can't be used: {reason}; train it again"):
        methods.load(stored)
