"""Fetching from a local web server: checksums, retries, mirrors, conversion, locks."""

import bz2
import dataclasses
import gzip
import hashlib
import http.server
import io
import lzma
import os
import re
import subprocess
import sys
import tarfile
import threading
import time
import zipfile
from pathlib import Path

import numpy as np
import pytest
import scipy.io

from rfx.data.libsvm import svmlight
from rfx.data.registry import checked, convert, download, fetch, registry
from rfx.errors import DataError, LockedError, UsageError

TEXT = b"1 1:0.5 2:3\n-1 2:7\n"


class Server:
    """Serve `files` (path: bytes); each path in `failures` first answers that many times with a
    status.
    """

    def __init__(self):
        self.files, self.failures, self.requests = {}, {}, []
        self.cut_short = set()
        server = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                server.requests.append(self.path)
                status, left = server.failures.get(self.path, (0, 0))
                if left:
                    server.failures[self.path] = status, left - 1
                    self.send_error(status)
                elif self.path not in server.files:
                    self.send_error(404)
                else:
                    body = server.files[self.path]
                    self.send_response(200)
                    self.send_header("Content-Length", str(len(body)))
                    self.end_headers()
                    self.wfile.write(
                        body[: len(body) // 2] if self.path in server.cut_short else body
                    )

            def log_message(self, *_):
                pass

        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}"
        threading.Thread(target=self.http.serve_forever, args=(0.01,), daemon=True).start()


@pytest.fixture
def server():
    server = Server()
    yield server
    server.http.shutdown()
    server.http.server_close()


@pytest.fixture(autouse=True)
def no_waiting(own_folders, monkeypatch):
    monkeypatch.setattr(download, "PAUSES", (0.0, 0.0, 0.0))
    for name in (
        "http_proxy",
        "https_proxy",
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "ALL_PROXY",
        "all_proxy",
    ):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def entry(server, monkeypatch):
    """Register a set `toy` of one file, and return the path of that file."""

    def make(
        url="/files/toy.bz2", sha256=hashlib.sha256(TEXT).hexdigest(), md5=None, obtain=None, **file
    ):
        source = {"url": server.url + url, "md5": md5} if url else {}
        d = file.pop("d", 2)
        described = (
            {"role": "train", "filename": "toy", "rows": 2, "sha256": sha256} | source | file
        )
        info = registry._info(
            "toy",
            {
                "task": "binary",
                "n": 2,
                "d": d,
                "classes": 2,
                "title": "a toy",
                "files": [described],
                "obtain": obtain,
            },
        )
        original = registry.get
        monkeypatch.setattr(registry, "get", lambda name: info if name == "toy" else original(name))
        return fetch.place(info.files[0])

    return make


def left_over(target):
    """The content of the data folder other than the file and the folder of locks."""
    folder = target.parent
    return {path.name for path in folder.iterdir()} - {
        target.name,
        ".locks",
        ".parts",
        ".checked",
    } | {path.name for path in folder.glob(".parts/*")}


PACKED = {".bz2": bz2.compress, ".xz": lzma.compress, ".gz": gzip.compress, "": bytes}


@pytest.mark.parametrize("suffix", PACKED)
def test_a_download_is_unpacked_checked_and_kept(server, entry, suffix):
    target = entry("/files/toy" + suffix)
    server.files["/files/toy" + suffix] = PACKED[suffix](TEXT)
    assert not fetch.is_fetched("toy")
    assert fetch.fetch("toy") == {"train": target}
    assert target.read_bytes() == TEXT and fetch.is_fetched("toy") and not left_over(target)
    # nothing to do the second time
    assert fetch.fetch("toy") == {"train": target} and len(server.requests) == 1


def test_a_zip_of_one_file_and_not_of_two(server, entry):
    for members in (["folder/toy"], ["a", "b"]):
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as archive:
            for member in members:
                archive.writestr(member, TEXT)
        target = entry("/files/toy.zip")
        server.files["/files/toy.zip"] = packed.getvalue()
        target.unlink(missing_ok=True)
        if len(members) == 1:
            assert fetch.fetch("toy")["train"].read_bytes() == TEXT
        else:
            with pytest.raises(DataError, match="toy.zip is damaged.*2 files instead of one"):
                fetch.fetch("toy")


def test_a_wrong_checksum_keeps_nothing(server, entry):
    server.files["/files/toy.bz2"] = bz2.compress(TEXT + b"1 1:1\n")
    target = entry()
    found, expected = (hashlib.sha256(text).hexdigest() for text in (TEXT + b"1 1:1\n", TEXT))
    url = re.escape(server.url + "/files/toy.bz2")
    with pytest.raises(
        DataError,
        match=f"{url}: toy, unpacked, has sha256 {found}, but .* {expected}; the file was"
        " discarded",
    ):
        fetch.fetch("toy")
    assert not target.exists() and not left_over(target)


def test_the_archives_own_checksum(server, entry):
    server.files["/files/toy.bz2"] = bz2.compress(TEXT)
    entry(md5="0" * 32, sha256=None)
    with pytest.raises(
        DataError, match="the file has md5 [0-9a-f]{32}, but datasets.toml says 0{32}"
    ):
        fetch.fetch("toy")
    target = entry(md5=hashlib.md5(bz2.compress(TEXT)).hexdigest(), sha256=None)
    assert fetch.fetch("toy")["train"] == target


def test_a_missing_file_is_not_asked_for_again(server, entry):
    entry()
    with pytest.raises(DataError, match=r"toy: http://127.*toy.bz2 was not found \(404\)"):
        fetch.fetch("toy")
    assert len(server.requests) == 1


def test_a_server_in_trouble_is_asked_again(server, entry, caplog):
    server.files["/files/toy.bz2"] = bz2.compress(TEXT)
    server.failures["/files/toy.bz2"] = 500, 2
    target = entry()
    assert fetch.fetch("toy")["train"] == target and len(server.requests) == 3
    assert "status 500" in caplog.text and "trying again" in caplog.text


def test_a_server_in_lasting_trouble_is_given_up(server, entry):
    server.failures["/files/toy.bz2"] = 503, 99
    target = entry()
    with pytest.raises(
        DataError, match=r"toy.bz2 can't be downloaded \(status 503\) after 4 attempts; RFX_MIRROR"
    ):
        fetch.fetch("toy")
    assert not target.exists() and not left_over(target)


def test_a_refusal_is_final(server, entry):
    server.failures["/files/toy.bz2"] = 403, 99
    entry()
    with pytest.raises(DataError, match=r"\(status 403\); RFX_MIRROR"):
        fetch.fetch("toy")
    assert len(server.requests) == 1


def test_no_server_at_all(entry, monkeypatch):
    entry()
    info = registry.get("toy")
    source = registry.Source("http://127.0.0.1:9/files/toy", "toy")
    object.__setattr__(info.files[0], "sources", (source,))
    with pytest.raises(DataError, match="Connection refused.* after 4 attempts"):
        fetch.fetch("toy")


def test_a_download_that_breaks_off(server, entry):
    server.files["/files/toy.bz2"] = bz2.compress(TEXT * 100)
    server.cut_short.add("/files/toy.bz2")
    target = entry(sha256=None)
    with pytest.raises(DataError, match="can't be downloaded .* after 4 attempts"):
        fetch.fetch("toy")
    assert not target.exists()


def test_a_damaged_archive(server, entry):
    server.files["/files/toy.bz2"] = bz2.compress(TEXT)[:-10]
    target = entry(sha256=None)
    with pytest.raises(DataError, match="toy.bz2 is damaged or truncated .* was discarded"):
        fetch.fetch("toy")
    server.files["/files/toy.bz2"] = b""
    with pytest.raises(DataError, match="toy.bz2 is empty"):
        fetch.fetch("toy")
    assert not target.exists()


def test_offline(server, entry, monkeypatch):
    target = entry()
    with pytest.raises(
        DataError, match="offline mode does not download .*toy.bz2; run `rfx fetch toy`"
    ):
        fetch.fetch("toy", offline=True)
    monkeypatch.setenv("RFX_MIRROR", server.url)
    with pytest.raises(DataError, match="offline"):
        fetch.fetch("toy", offline=True)
    assert not server.requests
    target.parent.mkdir(exist_ok=True)
    target.write_bytes(TEXT)
    assert fetch.fetch("toy", offline=True) == {"train": target}


# Files without a published checksum
# -----------------------------------------------------------------------------------

OTHER = b"1 1:9 2:3\n-1 2:7\n"


@pytest.mark.parametrize(
    "content", [b"<html>please log in</html>", TEXT[:9], TEXT + TEXT, b"1 3:1\n2 1:1\n"]
)
def test_the_first_copy_must_have_the_rows_and_columns(server, entry, content):
    server.files["/files/toy.bz2"] = bz2.compress(content)
    target = entry(sha256=None)
    message = (
        "toy.bz2: toy (is not LIBSVM text|has .* but datasets.toml says 2 rows and at most 2"
        " columns).*; the file was discarded"
    )
    with pytest.raises(DataError, match=message) as caught:
        fetch.fetch("toy")
    assert (
        "`rfx fetch --trust toy`" in str(caught.value)
        and not target.exists()
        and not left_over(target)
    )
    assert fetch.fetch("toy", trust=True)["train"].read_bytes() == content
    assert fetch.fetch("toy") == {"train": target}  # trusted from now on


def test_later_copies_are_compared_with_the_first(server, entry):
    server.files["/files/toy.bz2"] = bz2.compress(TEXT)
    target = entry(sha256=None)
    assert checked.means(registry.get("toy").files[0]) == "size"
    fetch.fetch("toy")
    assert checked.means(registry.get("toy").files[0]) == "first copy"
    target.unlink()
    server.files["/files/toy.bz2"] = bz2.compress(OTHER)
    found, first = (hashlib.sha256(text).hexdigest() for text in (OTHER, TEXT))
    with pytest.raises(
        DataError,
        match=(f"has sha256 {found}, but the first copy had {first}; the file was discarded"),
    ):
        fetch.fetch("toy")
    assert not target.exists()
    assert fetch.fetch("toy", trust=True)["train"].read_bytes() == OTHER
    target.unlink()
    fetch.fetch("toy")


def test_a_mirrors_copy_is_compared_like_the_sources(server, entry, tmp_path, monkeypatch):
    server.files["/files/toy.bz2"] = bz2.compress(TEXT)
    target = entry(sha256=None)
    fetch.fetch("toy")
    target.unlink()
    (tmp_path / "toy").write_bytes(OTHER)
    monkeypatch.setenv("RFX_MIRROR", str(tmp_path))
    with pytest.raises(DataError, match="the first copy had"):
        fetch.fetch("toy")
    (tmp_path / "toy").write_bytes(b"<html>")
    (tmp_path / "data" / ".checked" / "toy").unlink()
    with pytest.raises(DataError, match="toy is not LIBSVM text"):
        fetch.fetch("toy")


@pytest.mark.parametrize("sha256", [hashlib.sha256(TEXT).hexdigest(), None])
def test_a_file_that_changes_in_the_data_folder_is_refused(server, entry, sha256, monkeypatch):
    server.files["/files/toy.bz2"] = bz2.compress(TEXT)
    target = entry(sha256=sha256)
    fetch.fetch("toy")
    with monkeypatch.context() as patch:
        patch.setattr(
            checked, "digest", lambda *_: pytest.fail("it was read though nothing had changed")
        )
        fetch.fetch("toy")
    status = target.stat()
    target.write_bytes(OTHER)
    os.utime(target, ns=(status.st_atime_ns, status.st_mtime_ns))
    with pytest.raises(
        DataError,
        match=(
            "is not the file that datasets.toml describes"
            if sha256
            else "has changed: its sha256 is"
        ),
    ):
        fetch.fetch("toy")
    if sha256:
        with pytest.raises(DataError, match="is not the file"):
            fetch.fetch("toy", trust=True)
    else:
        fetch.fetch("toy", trust=True)
        fetch.fetch("toy")


def test_a_file_that_a_person_put_there_is_checked_once(entry, monkeypatch):
    target = entry(url=None, sha256=None, obtain="ask its owner")
    target.parent.mkdir()
    target.write_bytes(TEXT[:12])
    with pytest.raises(
        DataError, match="toy has 1 rows and 2 columns, but datasets.toml says 2 rows.*--trust"
    ):
        fetch.fetch("toy")
    target.write_bytes(TEXT)
    fetch.fetch("toy")
    monkeypatch.setattr(checked, "digest", lambda *_: pytest.fail("it was read again"))
    fetch.fetch("toy")


@pytest.mark.parametrize(
    "record",
    [
        b"",
        b"{}",
        b'{"sha256": 1}',
        b'{"sha256": 1, "size": 1, "mtime_ns": 1, "ctime_ns": 1}',
    ],
)
def test_a_damaged_record_is_none(server, entry, record):
    server.files["/files/toy.bz2"] = bz2.compress(TEXT)
    target = entry(sha256=None)
    fetch.fetch("toy")
    place = target.parent / ".checked" / "toy"
    good = place.read_bytes()
    place.write_bytes(record)
    fetch.fetch("toy")
    assert place.read_bytes() == good


def test_a_known_copy_needs_no_other_check(server, entry):
    server.files["/files/toy.bz2"] = bz2.compress(OTHER)
    entry(sha256=None, copies=[hashlib.sha256(OTHER).hexdigest()], rows=7)
    fetch.fetch("toy")
    assert checked.means(registry.get("toy").files[0]) == "known copy"


# Hostile archives and servers
# ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("pack", [bz2.compress, lzma.compress, gzip.compress])
def test_a_bomb_stops_at_the_declared_size(server, entry, pack, monkeypatch):
    server.files["/files/toy"] = pack(TEXT + b"\n" * (64 << 20))
    target = entry("/files/toy", bytes=len(TEXT))
    with pytest.raises(
        DataError,
        match=f"unpacks to more than {len(TEXT)} bytes, the maximum for toy; the file was"
        " discarded",
    ):
        fetch.fetch("toy")
    target = entry("/files/toy")  # if the size is unknown, by the number of rows and columns
    with pytest.raises(DataError, match="unpacks to more than 176 bytes"):
        fetch.fetch("toy")
    monkeypatch.setenv("RFX_MAX_BYTES", "10")
    with pytest.raises(DataError, match="maximum of 10 bytes; nothing was saved"):
        fetch.fetch("toy")
    assert not target.exists() and not left_over(target)


@pytest.mark.parametrize("text", ["x", "-1", "1e6", "0", "5X", "9" * 30, "\u0663"])
def test_a_limit_that_is_no_number(entry, monkeypatch, text):
    entry()
    monkeypatch.setenv("RFX_MAX_BYTES", text)
    with pytest.raises(
        UsageError, match="RFX_MAX_BYTES is .* it must be a number of bytes such as 500000000 or 2G"
    ):
        fetch.fetch("toy")


def answering(server, answer):
    """Let answer(write) serve the server's next connections; write(bytes) sends at once."""

    def do_get(handler):
        server.requests.append(handler.path)
        try:
            answer(lambda data: (handler.wfile.write(data), handler.wfile.flush()))
        except OSError:  # the other side has closed
            pass
        handler.close_connection = True

    server.http.RequestHandlerClass.do_GET = do_get


HEAD = b"HTTP/1.1 200 OK\r\n"


def endless(write):
    write(HEAD + b"\r\n")
    while True:
        write(b"\n" * 65536)


def endless_chunks(write):
    write(HEAD + b"Transfer-Encoding: chunked\r\n\r\n")
    while True:
        write(b"10000\r\n" + b"\n" * 65536 + b"\r\n")


def silent(write):
    time.sleep(5)


@pytest.mark.parametrize("answer", [endless, endless_chunks])
def test_a_server_that_never_ends(server, entry, answer):
    answering(server, answer)
    target = entry()
    with pytest.raises(
        DataError,
        match=r"toy.bz2 exceeds the expected maximum of [\d,]+ bytes; nothing was saved",
    ):
        fetch.fetch("toy")
    assert len(server.requests) == 1 and not target.exists() and not left_over(target)


def test_a_server_that_is_silent(server, entry, monkeypatch):
    answering(server, silent)
    monkeypatch.setattr(download, "PATIENCE", 0.3)
    target = entry()
    with pytest.raises(DataError, match="toy.bz2 can't be downloaded .* after 4 attempts"):
        fetch.fetch("toy")
    assert len(server.requests) == 4
    assert not left_over(target)


@pytest.mark.parametrize("place", ["file:///etc/passwd", "ftp://127.0.0.1/x"])
def test_a_server_that_sends_us_elsewhere(server, entry, place):
    answering(
        server, lambda write: write(f"HTTP/1.1 302 Found\r\nLocation: {place}\r\n\r\n".encode())
    )
    target = entry()
    with pytest.raises(DataError, match="toy.bz2 can't be downloaded"):
        fetch.fetch("toy")
    assert not target.exists()


@pytest.mark.parametrize("name", ["../../outside", "/outside/cpu.mat", "../cpu.mat"])
@pytest.mark.parametrize(
    "kind", [tarfile.REGTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE]
)
def test_members_of_a_tar_archive_lead_nowhere(server, entry, tmp_path, name, kind):
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        member = tarfile.TarInfo(name)
        member.type, member.linkname = kind, "/etc/passwd"
        content = b"" if kind != tarfile.REGTYPE else b"not MATLAB"
        member.size = len(content)
        archive.addfile(member, io.BytesIO(content))
    server.files["/files/cpu.tgz"] = packed.getvalue()
    target = entry("/files/cpu.tgz", convert="cpu_train")
    before = set(tmp_path.rglob("*"))
    with pytest.raises(
        DataError,
        match="cpu.tgz is not what rfx expects .(no cpu.mat in the archive|not a MATLAB file)",
    ):
        fetch.fetch("toy")
    assert {path for path in tmp_path.rglob("*") if ".locks" not in path.parts} <= before | {
        target.parent,
        target.parent / ".parts",
    }


def test_a_member_that_is_too_large(server, entry, monkeypatch):
    monkeypatch.setattr(convert, "_LARGEST", 100)
    server.files["/files/cpu.tgz"] = tar_of("cpu.mat", b"0" * 101)
    entry("/files/cpu.tgz", convert="cpu_train")
    with pytest.raises(DataError, match="is not what rfx expects"):
        fetch.fetch("toy")


def test_a_matlab_variable_that_is_too_large(server, entry, monkeypatch):
    monkeypatch.setattr(convert, "_LARGEST", 1 << 20)
    saved = io.BytesIO()
    scipy.io.savemat(
        saved,
        {"Xtrain": np.zeros((1000, 1000)), "ytrain": np.zeros((1, 1000))},
        do_compression=True,
    )
    server.files["/files/cpu.tgz"] = tar_of("cpu.mat", saved.getvalue())
    entry("/files/cpu.tgz", convert="cpu_train")
    with pytest.raises(DataError, match="its variable Xtrain is too large"):
        fetch.fetch("toy")


def test_a_member_without_a_name(server, entry):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("toy", TEXT)
        archive.infolist()[0].filename = ""  # as in the directory at the end
    server.files["/files/toy.zip"] = packed.getvalue()
    entry("/files/toy.zip")
    with pytest.raises(DataError, match="toy.zip is damaged"):
        fetch.fetch("toy")


def test_an_encrypted_archive(server, entry):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("toy", TEXT)
    content = bytearray(packed.getvalue())
    # the encryption flag, in the member's header and in the directory
    for at, mark in ((6, b"PK\3\4"), (8, b"PK\1\2")):
        content[content.index(mark) + at] |= 1
    server.files["/files/toy.zip"] = bytes(content)
    entry("/files/toy.zip")
    with pytest.raises(DataError, match="toy.zip is damaged or truncated .*encrypted"):
        fetch.fetch("toy")


# Mirrors
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["toy", "toy.xz", "toy.bz2", "toy.gz"])
@pytest.mark.parametrize("scheme", ["", "file://"])
def test_a_mirror_folder(tmp_path, server, entry, monkeypatch, name, scheme):
    mirror = tmp_path / "my mirror"
    mirror.mkdir()
    (mirror / name).write_bytes(PACKED[name[3:]](TEXT))
    monkeypatch.setenv(
        "RFX_MIRROR", f"file://{str(mirror).replace(' ', '%20')}" if scheme else str(mirror)
    )
    target = entry()
    assert fetch.fetch("toy", offline=True)["train"].read_bytes() == TEXT
    assert not server.requests and not left_over(target)


def test_a_mirror_folder_is_checked_too(tmp_path, entry, monkeypatch):
    (tmp_path / "toy.xz").write_bytes(lzma.compress(b"2 1:1\n"))
    monkeypatch.setenv("RFX_MIRROR", str(tmp_path))
    target = entry()
    with pytest.raises(
        DataError, match=f"{re.escape(str(tmp_path / 'toy.xz'))}: toy, unpacked, has sha256"
    ):
        fetch.fetch("toy")
    assert not target.exists() and (tmp_path / "toy.xz").exists()


def test_a_mirror_that_lacks_the_file_is_passed_over(tmp_path, server, entry, monkeypatch):
    (tmp_path / "empty").mkdir()
    monkeypatch.setenv("RFX_MIRROR", str(tmp_path / "empty"))
    server.files["/files/toy.bz2"] = bz2.compress(TEXT)
    entry()
    assert fetch.fetch("toy")["train"].read_bytes() == TEXT


def test_a_mirror_that_is_nothing(tmp_path, entry, monkeypatch):
    entry()
    monkeypatch.setenv("RFX_MIRROR", str(tmp_path / "nowhere"))
    with pytest.raises(DataError, match="RFX_MIRROR is .*nowhere, which is neither a folder nor"):
        fetch.fetch("toy")


@pytest.mark.parametrize("slash", ["", "/"])
def test_a_mirror_on_the_web(server, entry, monkeypatch, slash):
    server.files["/mirror/toy.xz"] = lzma.compress(TEXT)
    monkeypatch.setenv("RFX_MIRROR", server.url + "/mirror" + slash)
    entry()
    assert fetch.fetch("toy")["train"].read_bytes() == TEXT
    assert server.requests == ["/mirror/toy", "/mirror/toy.xz"]


def test_a_set_without_a_public_file(tmp_path, entry, monkeypatch):
    entry(url=None, obtain="ask its owner")
    assert not fetch.is_obtainable("toy")
    with pytest.raises(DataError, match="toy: toy has no public download; ask its owner"):
        fetch.fetch("toy")
    (tmp_path / "toy.gz").write_bytes(gzip.compress(TEXT))
    monkeypatch.setenv("RFX_MIRROR", str(tmp_path))
    assert fetch.is_obtainable("toy")
    assert fetch.fetch("toy")["train"].read_bytes() == TEXT


# Conversion
# --------------------------------------------------------------------------------------------------


def tar_of(name, content):
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        member = tarfile.TarInfo(name)
        member.size = len(content)
        archive.addfile(member, io.BytesIO(content))
    return packed.getvalue()


def cpu_archive():
    X = scipy.sparse.csc_matrix(np.array([[1.0, 0], [2.5, 3], [0, 4]]))
    saved = io.BytesIO()
    scipy.io.savemat(
        saved,
        {"Xtrain": X, "ytrain": np.array([[90, 7]]), "Xtest": X[:, :1], "ytest": np.array([[5]])},
    )
    return tar_of("cpu/cpu.mat", saved.getvalue())


def test_a_source_is_converted(server, entry, tmp_path, monkeypatch):
    server.files["/files/cpu.tgz"] = cpu_archive()
    expected = b"90 1:1 2:2.5\n7 2:3 3:4\n"
    target = entry(
        "/files/cpu.tgz", convert="cpu_train", sha256=hashlib.sha256(expected).hexdigest()
    )
    assert fetch.fetch("toy")["train"].read_bytes() == expected
    target.unlink()
    (tmp_path / "cpu.tgz").write_bytes(cpu_archive())  # the source may come from a mirror, too
    monkeypatch.setenv("RFX_MIRROR", str(tmp_path))
    assert fetch.fetch("toy", offline=True)["train"].read_bytes() == expected
    target.unlink()
    (tmp_path / "toy").write_bytes(expected)  # and so may the converted file
    (tmp_path / "cpu.tgz").unlink()
    assert fetch.fetch("toy", offline=True)["train"].read_bytes() == expected


@pytest.mark.parametrize(
    "content", [b"not an archive", tar_of("cpu/readme", b"nothing"), tar_of("cpu.mat", b"MATLAB?")]
)
def test_a_source_of_another_kind(server, entry, content):
    server.files["/files/cpu.tgz"] = content
    target = entry("/files/cpu.tgz", convert="cpu_train")
    with pytest.raises(
        DataError, match="cpu.tgz is not what rfx expects .* so toy can't be created"
    ):
        fetch.fetch("toy")
    assert not target.exists() and not left_over(target)


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


def test_coulomb_matrices_do_not_depend_on_the_order_of_atoms(tmp_path):
    rng = np.random.default_rng(0)
    half = rng.random((2, 4, 4))
    matrices = half + half.transpose(0, 2, 1)
    order = [2, 0, 3, 1]
    saved = [io.BytesIO(), io.BytesIO()]
    scipy.io.savemat(saved[0], {"X": matrices, "T": np.array([[-400.5, -1000]])})
    scipy.io.savemat(
        saved[1], {"X": matrices[:, order][:, :, order], "T": np.array([[-400.5, -1000]])}
    )
    for kind in ("eigenvalues", "bags"):
        found = []
        for one in saved:
            (tmp_path / kind).write_bytes(converted(tmp_path, kind, one.getvalue()))
            found.append(svmlight.read(tmp_path / kind)[0].toarray())
        np.testing.assert_allclose(*found, atol=1e-6)
    first, second = (converted(tmp_path, "coulomb", one.getvalue()) for one in saved)
    assert first == second
    path = tmp_path / "text"
    path.write_bytes(first)
    X, y = svmlight.read(path)
    assert X.shape == (2, 10) and y.tolist() == [-400.5, -1000]


def test_molecules_without_their_coulomb_matrices(server, entry, tmp_path, monkeypatch):
    charges = np.array([[6, 1, 1], [8, 0, 0]])
    positions = np.array(
        [[[0.0, 0, 0], [1.1, 0, 0], [0, 1.2, 0]], [[0, 0, 0], [0, 0, 0], [0, 0, 0]]]
    )
    np.savez(
        tmp_path / "toy.npz",
        charges=charges,
        positions=positions,
        energies=np.array([-400.5, -1000]),
    )
    instead = {"filename": "toy.npz", "sha256": checked.digest(tmp_path / "toy.npz")}
    target = entry("/files/toy.mat", convert="coulomb", instead=instead, sha256=None, d=6)
    monkeypatch.setenv("RFX_MIRROR", str(tmp_path))
    X, y = svmlight.read(fetch.fetch("toy", offline=True)["train"])
    bohr = 0.52917721
    assert (
        X[0, 0] == pytest.approx(0.5 * 6**2.4)
        and X[0, 1] == pytest.approx(6 * bohr / 1.1)
        and X[1, 0] == pytest.approx(0.5 * 8**2.4)
    )
    assert X[1].nnz == 1 and y.tolist() == [-400.5, -1000]
    target.unlink()
    np.savez(
        tmp_path / "toy.npz", charges=charges, positions=positions, energies=np.array([0.0, 1])
    )
    # a mirror's source is checked
    with pytest.raises(DataError, match="toy.npz: the file has sha256 .* but datasets.toml says"):
        fetch.fetch("toy")


@pytest.mark.parametrize("wrapped", [False, True])
def test_a_mirrors_source_is_checked(server, entry, tmp_path, monkeypatch, wrapped):
    (tmp_path / ("cpu.tgz.xz" if wrapped else "cpu.tgz")).write_bytes(
        lzma.compress(cpu_archive()) if wrapped else cpu_archive()
    )
    monkeypatch.setenv("RFX_MIRROR", str(tmp_path))
    target = entry("/files/cpu.tgz", convert="cpu_train", sha256=None, md5="0" * 32)
    with pytest.raises(
        DataError, match="cpu.tgz.*: the file has md5 .* but datasets.toml says 0{32}"
    ):
        fetch.fetch("toy")
    target = entry("/files/cpu.tgz", convert="cpu_train", sha256=None, d=3)
    assert fetch.fetch("toy")["train"] == target


# Locks and folders
# --------------------------------------------------------------------------------------------------


def test_two_processes_fetch_once(server, entry, tmp_path):
    server.files["/files/toy.bz2"] = bz2.compress(TEXT)
    target = entry()
    hold = (
        "import fcntl, sys, pathlib\nhandle = open(sys.argv[1], 'w')\nfcntl.flock(handle,"
        " fcntl.LOCK_EX)\nprint('held',"
        " flush=True)\nsys.stdin.read()\npathlib.Path(sys.argv[2]).write_text(sys.argv[3])"
    )
    lock = target.parent / ".locks" / "toy"
    lock.parent.mkdir(parents=True)
    other = subprocess.Popen(
        [sys.executable, "-c", hold, str(lock), str(target), TEXT.decode()],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert other.stdout.readline() == "held\n"
    found = []
    waiting = threading.Thread(target=lambda: found.append(fetch.fetch("toy")))
    waiting.start()
    time.sleep(0.3)
    assert not found and not target.exists() and not server.requests
    other.stdin.close()
    other.wait(timeout=30)
    waiting.join(timeout=30)
    # the file of the other process is used
    assert found == [{"train": target}] and not server.requests


def test_waiting_has_an_end(server, entry, monkeypatch):
    import fcntl

    target = entry()
    lock = target.parent / ".locks" / "toy"
    lock.parent.mkdir(parents=True)
    monkeypatch.setattr(fetch, "PATIENCE", 0.0)
    with open(lock, "w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        with pytest.raises(LockedError, match="another process has been fetching"):
            fetch.fetch("toy")


def test_what_a_killed_run_left_is_cleared(server, entry):
    server.files["/files/toy.bz2"] = bz2.compress(TEXT)
    target = entry()
    stale = target.parent / ".parts" / "toy"
    stale.mkdir(parents=True)
    (stale / "plain").write_bytes(b"half a fi")
    fetch.fetch("toy")
    assert target.read_bytes() == TEXT and not left_over(target)


def test_a_data_folder_that_can_not_be(tmp_path, entry, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("RFX_DATA", str(tmp_path / "file"))
    entry()
    with pytest.raises(DataError, match="can't be written .*; RFX_DATA sets another folder"):
        fetch.fetch("toy")


def test_names_and_roles(server, monkeypatch, tmp_path):
    with pytest.raises(UsageError, match="did you mean cod-rna"):
        fetch.fetch("cod-rnb")
    assert fetch.fetch("sphere") == {} and fetch.is_fetched("sphere")
    monkeypatch.setenv("RFX_MIRROR", str(tmp_path))
    letter = registry.get("letter")
    files = [dataclasses.replace(entry, sha256=None, bytes=None, rows=2) for entry in letter.files]
    unchecked = dataclasses.replace(letter, files=tuple(files))
    monkeypatch.setattr(registry, "get", lambda name: unchecked)
    for entry in unchecked.files:
        if entry.role in ("tr", "test"):
            (tmp_path / entry.filename).write_bytes(TEXT)
    found = fetch.fetch("letter", offline=True, roles=("tr", "test"))
    assert {role: path.name for role, path in found.items()} == {
        "tr": "letter.scale.tr",
        "test": "letter.scale.t",
    }
    assert Path(os.environ["RFX_DATA"]) == found["tr"].parent


def test_a_bar_is_shown_only_when_asked_for(server, entry, capfd):
    server.files["/files/toy.bz2"] = bz2.compress(TEXT)
    target = entry()
    fetch.fetch("toy")  # standard error is not a terminal here
    assert capfd.readouterr().err == ""
    target.unlink()
    fetch.fetch("toy", progress=True)
    assert "100%" in capfd.readouterr().err
