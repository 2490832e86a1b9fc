"""An error is one line without control characters, whatever it quotes."""

import contextlib
import os
import re
import socket
import subprocess
import sys
import threading

import pytest
from shell import run

from rfx import errors
from rfx.data import fetch

EVIL = "\x1b]0;evil\x07\x1b[31m\x9b2J\u202e"
RAW = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]")


@pytest.fixture(autouse=True)
def folders(own_folders, monkeypatch):
    for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def rfx(capfd):
    """`rfx words`, whose output is checked for control characters."""

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


def test_what_a_server_answers(monkeypatch, rfx, caplog):
    """Server text is also checked when it arrives, because a program that uses rfx as a library
    prints messages itself.
    """
    monkeypatch.setattr(fetch, "PAUSES", (0.0,))
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
    ],
)
def test_names_of_files_and_commands(words, rfx):
    code, _, err = rfx(*words)
    assert code in (1, 2) and r"\x1b]0;evil\x07" in err


def test_a_name_that_is_no_utf_8(rfx):
    code, _, err = rfx("check", os.fsdecode(b"\xff.csv"))
    assert code == 1 and r"\udcff.csv" in err


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
        assert done.returncode == 0 and not done.stderr
        assert done.stdout.decode("utf-8" if encoding == "ascii" else encoding).count("größe") == 1
