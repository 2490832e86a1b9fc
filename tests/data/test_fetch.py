"""Fetching from a local web server: checksums, retries, mirrors, conversion, locks; compressed
files.
"""

import bz2
import contextlib
import gzip
import hashlib
import http.server
import io
import itertools
import lzma
import os
import re
import tarfile
import threading
import zipfile

import numpy as np
import pytest
import scipy.io
from filelock import FileLock

from rfx.data import convert, registry, stream, textfiles
from rfx.errors import DataError, LockedError

TEXT = b"1 1:0.5 2:3\n-1 2:7\n"


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        server, path = self.server, self.path
        server.requests.append(path)
        status, left = server.failures.get(path, (0, 0))
        if left:
            server.failures[path] = status, left - 1
            self.send_error(status)
        elif path not in server.files:
            self.send_error(404)
        else:
            self.send_response(200)
            for size in server.sizes.get(path, []):
                self.send_header("Content-Length", str(size))
            self.end_headers()
            with contextlib.suppress(OSError):  # the other side has closed
                self.wfile.writelines(server.files[path])

    def log_message(self, *_):
        pass


class Server(http.server.ThreadingHTTPServer):
    """Serve `files` (path: parts of the content, which may have no end); each path in `failures`
    first answers that many times with a status. `sizes`: those that are announced.
    """

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.files, self.sizes, self.failures, self.requests = {}, {}, {}, []
        self.url = f"http://127.0.0.1:{self.server_port}"


@pytest.fixture
def server():
    with Server() as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield server
        server.shutdown()


@pytest.fixture(autouse=True)
def no_waiting(own_folders, no_pauses, monkeypatch):
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


def sha256(content):
    return hashlib.sha256(content).hexdigest()


@pytest.fixture
def entry(server, monkeypatch):
    """Register a set `toy` of one file, and return the path of that file."""

    def make(url="/files/toy.bz2", sha256=sha256(TEXT), md5=None, obtain=None, d=2, **file):
        source = {"url": server.url + url, "md5": md5} if url else {}
        described = {"role": "train", "filename": "toy", "rows": 2, "sha256": sha256}
        about = {"task": "binary", "n": 2, "d": d, "classes": 2, "title": "a toy"}
        info = registry._info(
            "toy", about | {"files": [described | source | file], "obtain": obtain}
        )
        original = registry.get
        monkeypatch.setattr(registry, "get", lambda name: info if name == "toy" else original(name))
        return registry.place(info.files[0])

    return make


def left_over(target):
    """The content of the data folder other than the file and the folder of locks."""
    names = {path.name for path in target.parent.iterdir()}
    parts = {path.name for path in target.parent.glob(".parts/*")}
    return names - {target.name, ".locks", ".parts", ".checked"} | parts


def zipped(*members, content=TEXT):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for member in members:
            archive.writestr(member, content)
    return packed.getvalue()


PACKED = {
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".gz": gzip.compress,
    "": bytes,
    ".zip": lambda content: zipped("folder/toy", content=content),
}


@pytest.mark.parametrize("suffix", PACKED)
def test_a_download_is_unpacked_checked_and_kept(server, entry, suffix):
    target = entry("/files/toy" + suffix)
    server.files["/files/toy" + suffix] = [PACKED[suffix](TEXT)]
    server.failures["/files/toy" + suffix] = 500, 2
    stale = target.parent / ".parts" / "toy"  # of a killed run
    stale.mkdir(parents=True)
    (stale / "plain").write_bytes(b"half a fi")
    assert not registry.is_fetched("toy")
    for _ in range(2):  # nothing to do the second time
        assert registry.fetch("toy") == {"train": target}
    assert target.read_bytes() == TEXT
    assert not left_over(target)
    assert len(server.requests) == 3


def tar_of(name, content):
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        member = tarfile.TarInfo(name)
        member.size = len(content)
        archive.addfile(member, io.BytesIO(content))
    return packed.getvalue()


PACKED_TEXT = bz2.compress(TEXT)
# By what is served: the name, the content, what the entry says, and the message.
WRONG = {
    "a wrong checksum": (
        "toy.bz2",
        bz2.compress(TEXT + b"1 1:1\n"),
        {},
        f"toy.bz2: toy has sha256 {sha256(TEXT + b'1 1:1' + bytes([10]))}, but datasets.toml says"
        f" {sha256(TEXT)}; the file was discarded",
    ),
    "an archive's wrong checksum": (
        "toy.bz2",
        PACKED_TEXT,
        {"md5": "0" * 32},
        "toy.bz2: the file has md5 [0-9a-f]{32}, but datasets.toml says 0{32}",
    ),
    "a damaged archive": ("toy.bz2", PACKED_TEXT[:-10], {}, "toy.bz2 can't be unpacked"),
    "nothing": ("toy.bz2", b"", {}, "toy.bz2: toy has sha256"),
    "two files": (
        "toy.zip",
        zipped("a", "b"),
        {},
        "toy.zip can't be unpacked.*2 files instead of one",
    ),
    "more than declared": (
        "toy.xz",
        lzma.compress(TEXT + b"\n" * (64 << 20)),
        {"bytes": len(TEXT)},
        f"can't be unpacked .it exceeds the expected maximum of {len(TEXT)} bytes.* was discarded",
    ),
    "more than rows and columns need": (
        "toy.gz",
        gzip.compress(TEXT + b"\n" * (64 << 20)),
        {},
        "it exceeds the expected maximum of 176 bytes",
    ),
    "another source": (
        "cpu.tgz",
        b"not an archive",
        {"convert": "cpu_train"},
        "cpu.tgz is not what rfx expects .* so toy can't be created",
    ),
    "an archive of something else": (
        "cpu.tgz",
        tar_of("cpu/readme", b"nothing"),
        {"convert": "cpu_train"},
        "not what rfx expects .*no cpu.mat in the archive.* so toy can't be created",
    ),
    "another file of that name": (
        "cpu.tgz",
        tar_of("cpu.mat", b"MATLAB?"),
        {"convert": "cpu_train"},
        "not what rfx expects .*not a MATLAB file.* so toy can't be created",
    ),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_is_wrong_is_named_and_not_kept(server, entry, what):
    name, content, said, message = WRONG[what]
    server.files["/files/" + name] = [content]
    target = entry("/files/" + name, **said)
    with pytest.raises(DataError, match=message):
        registry.fetch("toy")
    assert not target.exists()
    assert not left_over(target)


TOO_MUCH = itertools.repeat(b"\n" * 65536)
# By what the server does: its status, what it sends, the size that it announces, if any, the number
# of requests, and the message.
UNSERVED = {
    "has nothing": (404, [], [], 1, r"toy: http://127.*toy.bz2 was not found \(404\)"),
    "forbids": (403, [], [], 1, r"\(status 403\); RFX_MIRROR"),
    "is busy": (503, [], [], 4, r"can't be downloaded \(status 503\) after 4 attempts; RFX_MIRROR"),
    "breaks off": (200, [PACKED_TEXT], [99_999], 4, "can't be downloaded .* after 4 attempts"),
    "never ends": (
        200,
        TOO_MUCH,
        [],
        1,
        r"toy.bz2 exceeds the expected maximum of [\d,]+ bytes; nothing was saved",
    ),
}


@pytest.mark.parametrize("what", UNSERVED)
def test_a_server_that_fails_is_named_and_leaves_nothing(server, entry, what):
    status, body, size, requests, message = UNSERVED[what]
    path = "/files/toy.bz2"
    server.files[path], server.sizes[path] = body, size
    server.failures[path] = status, 0 if status == 200 else 99
    target = entry()
    with pytest.raises(DataError, match=message):
        registry.fetch("toy")
    assert len(server.requests) == requests
    assert not target.exists()
    assert not left_over(target)


def test_offline(server, entry, monkeypatch):
    target = entry()
    for mirror in ("", server.url):
        monkeypatch.setenv("RFX_MIRROR", mirror)
        with pytest.raises(DataError, match="offline .*toy.bz2.*`rfx fetch toy`"):
            registry.fetch("toy", offline=True)
    assert not server.requests
    target.write_bytes(TEXT)
    assert registry.fetch("toy", offline=True) == {"train": target}


# Files without a published checksum
# -----------------------------------------------------------------------------------

OTHER = b"1 1:9 2:3\n-1 2:7\n"


@pytest.mark.parametrize(
    "content", [b"<html>please log in</html>", TEXT[:9], TEXT + TEXT, b"1 3:1\n2 1:1\n"]
)
def test_the_first_copy_must_have_the_rows_and_columns(server, entry, content):
    server.files["/files/toy.bz2"] = [bz2.compress(content)]
    target = entry(sha256=None)
    message = (
        "toy.bz2: toy (is not LIBSVM text|has .* but datasets.toml says 2 rows and at most 2"
        " columns).*; the file was discarded.*`rfx fetch --trust toy`"
    )
    with pytest.raises(DataError, match=message):
        registry.fetch("toy")
    assert not left_over(target)
    assert registry.fetch("toy", trust=True)["train"].read_bytes() == content
    assert registry.fetch("toy") == {"train": target}  # trusted from now on


def test_later_copies_are_compared_with_the_first(server, entry, tmp_path, monkeypatch):
    server.files["/files/toy.bz2"] = [PACKED_TEXT]
    target = entry(sha256=None)
    assert registry.check_of(registry.get("toy").files[0]) == "size"
    registry.fetch("toy")
    assert registry.check_of(registry.get("toy").files[0]) == "first copy"
    target.unlink()
    (tmp_path / "toy").write_bytes(OTHER)
    monkeypatch.setenv("RFX_MIRROR", str(tmp_path))
    with pytest.raises(DataError, match=f"{sha256(OTHER)}.* first {sha256(TEXT)}"):
        registry.fetch("toy")
    assert not target.exists()
    assert registry.fetch("toy", trust=True)["train"].read_bytes() == OTHER


@pytest.mark.parametrize("published", [sha256(TEXT), None])
def test_a_file_that_changes_in_the_data_folder_is_refused(server, entry, published):
    server.files["/files/toy.bz2"] = [PACKED_TEXT]
    target = entry(sha256=published)
    registry.fetch("toy")
    status = target.stat()
    target.write_bytes(OTHER)
    os.utime(target, ns=(status.st_atime_ns, status.st_mtime_ns))
    source = "datasets.toml says" if published else "was first"
    message = f"toy has sha256 {sha256(OTHER)}, but {source} {sha256(TEXT)}; remove it"
    with pytest.raises(DataError, match=message):
        registry.fetch("toy", trust=published is not None)


def test_a_file_that_a_person_put_there_is_checked_once(entry, monkeypatch):
    target = entry(url=None, sha256=None, obtain="ask its owner")
    target.parent.mkdir()
    target.write_bytes(TEXT[:12])
    with pytest.raises(
        DataError, match="toy has 1 rows and 2 columns, but datasets.toml says 2 rows.*--trust"
    ):
        registry.fetch("toy")
    target.write_bytes(TEXT)
    registry.fetch("toy")
    monkeypatch.setattr(registry, "digest", lambda *_: pytest.fail("it was read again"))
    registry.fetch("toy")


# Mirrors
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["toy", "toy.xz", "toy.bz2", "toy.gz"])
def test_a_mirror_folder(tmp_path, server, entry, monkeypatch, name):
    target = entry(url=None, obtain="ask its owner")
    monkeypatch.setenv("RFX_MIRROR", str(tmp_path / "nowhere"))
    with pytest.raises(DataError, match="RFX_MIRROR is .*nowhere"):
        registry.fetch("toy")
    monkeypatch.setenv("RFX_MIRROR", str(tmp_path))
    assert not registry.is_obtainable("toy")
    with pytest.raises(DataError, match="toy: toy has no public download; ask its owner"):
        registry.fetch("toy")
    (tmp_path / name).write_bytes(PACKED[name[3:]](OTHER))
    assert registry.is_obtainable("toy")
    with pytest.raises(DataError, match=f"{re.escape(str(tmp_path / name))}: toy has sha256"):
        registry.fetch("toy")
    (tmp_path / name).write_bytes(PACKED[name[3:]](TEXT))
    assert registry.fetch("toy", offline=True)["train"].read_bytes() == TEXT
    assert not left_over(target)


def test_a_mirror_on_the_web(server, entry, monkeypatch):
    server.files["/mirror/toy.xz"] = [lzma.compress(TEXT)]
    monkeypatch.setenv("RFX_MIRROR", server.url + "/mirror/")
    entry()
    assert registry.fetch("toy")["train"].read_bytes() == TEXT
    assert server.requests == ["/mirror/toy", "/mirror/toy.xz"]


# Conversion
# --------------------------------------------------------------------------------------------------


def cpu_archive():
    X = scipy.sparse.csc_matrix(np.array([[1.0, 0], [2.5, 3], [0, 4]]))
    saved = io.BytesIO()
    scipy.io.savemat(
        saved,
        {"Xtrain": X, "ytrain": np.array([[90, 7]]), "Xtest": X[:, :1], "ytest": np.array([[5]])},
    )
    return tar_of("cpu/cpu.mat", saved.getvalue())


def test_a_source_is_converted(server, entry, tmp_path, monkeypatch):
    server.files["/files/cpu.tgz"] = [cpu_archive()]
    expected = b"90 1:1 2:2.5\n7 2:3 3:4\n"
    target = entry("/files/cpu.tgz", convert="cpu_train", sha256=sha256(expected))
    assert registry.fetch("toy")["train"].read_bytes() == expected
    monkeypatch.setenv("RFX_MIRROR", str(tmp_path))
    # the source, or the converted file, may come from a mirror
    for name, content in (("cpu.tgz", cpu_archive()), ("toy", expected)):
        (tmp_path / name).write_bytes(content)
        target.unlink()
        assert registry.fetch("toy", offline=True)["train"].read_bytes() == expected
        (tmp_path / name).unlink()


def converted(tmp_path, name, *contents):
    paths = [tmp_path / str(number) for number in range(len(contents))]
    for path, content in zip(paths, contents):
        path.write_bytes(content)
    handle = io.BytesIO()
    convert.CONVERTERS[name](paths, handle)
    return handle.getvalue()


def test_the_converters(tmp_path):
    assert converted(tmp_path, "cpu_test", cpu_archive()) == b"5 1:1 2:2.5\n"
    topics = gzip.compress(b"CCAT 26150 1\nECAT 26151 1\nCCAT 26152 1\n")
    vectors = [gzip.compress(b"26150  1:0.5 9:1\n26151  2:0.25\n"), b"26152  3:1\n"]
    assert converted(tmp_path, "rcv1_ccat", topics, *vectors) == b"1 1:0.5 9:1\n-1 2:0.25\n1 3:1\n"
    table = tar_of(
        "classification/Twitter/Absolute_labeling/Twitter-Absolute-Sigma-500.data",
        b"1,0,2.5,1\n0,0,3,0\n",
    )
    assert converted(tmp_path, "buzz", table) == b"1 1:1 3:2.5\n0 3:3\n"
    assert converted(tmp_path, "comma_separated", b"1,0,2.5\n3,4,-1\n") == b"2.5 1:1\n-1 1:3 2:4\n"
    weka = b"""% a comment
@relation cars
@attribute 'number of doors' {4, 2, 5more}
@attribute sold {yes, no}
@attribute weight real
@attribute class {good, bad}
@data
2,yes,1.5,good
5more,no,2,bad
4,no,3,bad
"""
    lines = [b"1 1:1 4:1 5:1.5", b"0 3:1 5:2", b"0 2:1 5:3"]
    assert converted(tmp_path, "arff", weka).splitlines() == lines
    saved = io.BytesIO()
    scipy.io.savemat(saved, {"X": np.array([[[2.0, 1], [1, 4]]]), "T": np.array([[-400.5]])})
    for name, entries in {"coulomb": b"1:4 2:1 3:2", "bags": b"1:4 2:2 3:1"}.items():
        assert converted(tmp_path, name, saved.getvalue()) == b"-400.5 " + entries + b"\n"


# Locks and folders
# --------------------------------------------------------------------------------------------------


def test_one_process_fetches_a_file(entry, set_sizes):
    target = entry()
    set_sizes(registry, WAIT=0.0)
    (target.parent / ".locks").mkdir(parents=True)
    with FileLock(target.parent / ".locks" / "toy", is_singleton=False):
        with pytest.raises(LockedError, match="another process has been fetching"):
            registry.fetch("toy")


def test_a_data_folder_that_can_not_be(tmp_path, entry, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("RFX_DATA", str(tmp_path / "file"))
    entry()
    with pytest.raises(DataError, match="can't be written .*; RFX_DATA sets another folder"):
        registry.fetch("toy")


# Compressed files are read to the last byte or refused
# --------------------------------------------------------------------------------------------------

ROWS = b"".join(b"%d 1:%d 2:0.%d\n" % (number % 2, number, number) for number in range(1, 51))
HALF = ROWS.index(b"\n", 300) + 1


def flipped(content, place) -> bytes:
    changed = bytearray(content)
    changed[place] ^= 0x10
    return bytes(changed)


def changed(kind) -> dict[str, tuple[bytes, bool]]:
    """By the change to a file of the 50 rows in two parts: its bytes, and whether all rows are
    intact.
    """
    pack = PACKED[kind]
    first, second = pack(ROWS[:HALF]), pack(ROWS[HALF:])
    both, other = first + second, PACKED[".gz" if kind == ".xz" else ".xz"]
    bits = (0, 1, 2, len(second) // 2, len(second) - 5)
    return {
        "as it was made": (both, True),
        "a third, empty part": (both + pack(b""), True),
        "without the second's beginning": (first + second[1:], False),
        "garbage behind": (both + b"xyz", False),
        "a part of another kind behind": (both + other(b"1 1:1\n"), False),
        "cut off in the second": (both[: len(first) + 20], False),
        "the last byte missing": (both[:-1], False),
        "zeros behind": (both + b"\0" * 512, True),
        "zeros and garbage behind": (both + b"\0" * 4 + b"x", False),
    } | {f"bit of byte {n} of the second": (flipped(both, len(first) + n), False) for n in bits}


ZIPPED = PACKED[".zip"](ROWS)
COMPRESSED = {
    f"{kind}, {what}": (kind, *case)
    for kind in (".gz", ".bz2", ".xz")
    for what, case in changed(kind).items()
} | {
    ".zip, as it was made": (".zip", ZIPPED, True),
    ".zip, the last byte missing": (".zip", ZIPPED[:-1], False),
    ".zip, a bit of byte 60": (".zip", flipped(ZIPPED, 60), False),
}


def piped(content):
    """What reads a pipe with this content."""
    read, write = os.pipe()
    os.write(write, content)
    os.close(write)
    return os.fdopen(read, "rb")


@pytest.mark.parametrize("what", COMPRESSED)
def test_a_compressed_file_is_whole_or_refused(what, tmp_path):
    kind, content, whole = COMPRESSED[what]
    path = tmp_path / f"data{kind}"
    path.write_bytes(content)
    with piped(content) as pipe:
        for source in (path, io.BytesIO(content), pipe):
            if whole:
                assert textfiles.read_plain(source, "the file") == ROWS
            else:
                with pytest.raises(
                    DataError, match="^the file is damaged or truncated .*; download it again$"
                ):
                    textfiles.read_plain(source, "the file")


@pytest.mark.parametrize("content", [ROWS, gzip.compress(ROWS)])
def test_a_stream_reads_a_pipe_from_its_first_byte(content):
    with piped(content) as pipe:
        source = stream.LibsvmSource(f"/dev/fd/{pipe.fileno()}", n_inputs=2)
        assert sum(len(y) for _, y, _ in stream.Stream(source, 10)) == 50
