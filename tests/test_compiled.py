"""Compiled code is cached where possible: full disks, read-only folders, and damaged or stale files
never stop a command.
"""

import errno
import os
import subprocess
import sys

import pytest

from rfx import compiled

MODULE = """
import os
import rfx
from rfx.compiled import njit

@njit(cache=True, nogil=True)
def add(x, y):
    return x + y

if __name__ == "__main__":
    print(add(1, 2), add(0.5, 1.0), sum(add.stats.cache_hits.values()),
          os.environ["NUMBA_CACHE_DIR"])
"""


@pytest.fixture
def program(tmp_path):
    """Run a program with a compiled function; (its sums, the number of cache hits, the folder,
    standard error).
    """
    path = tmp_path / "program.py"
    path.write_text(MODULE)

    def run(**variables):
        known = (
            os.environ
            | {"RFX_CACHE": str(tmp_path / "cache"), "PYTHONPATH": os.pathsep.join(sys.path)}
            | variables
        )
        known = {
            name: value
            for name, value in known.items()
            if value is not None and name != "NUMBA_CACHE_DIR"
        }
        done = subprocess.run(
            [sys.executable, str(path)], env=known, capture_output=True, text=True, timeout=120
        )
        assert done.returncode == 0, done.stderr
        first, second, hits, folder = done.stdout.split()
        assert (first, second) == ("3", "1.5")
        return int(hits), folder, done.stderr

    return run


def test_the_second_process_takes_what_the_first_compiled(program, tmp_path):
    hits, folder, told = program()
    assert (hits, folder, told) == (0, str(tmp_path / "cache" / "numba"), "")
    assert program() == (2, folder, "")


@pytest.mark.parametrize(
    "what, damage",
    [("nbi", "empty"), ("nbi", "unreadable"), ("nbc", "half"), ("nbc", "garbage")],
)
def test_a_damaged_cache_is_made_anew(program, tmp_path, what, damage):
    """As left by a machine that lost its power."""
    program()
    for path in (tmp_path / "cache").rglob(f"*.{what}"):
        content = path.read_bytes()
        if damage == "unreadable":
            path.unlink()
            path.mkdir()
        else:
            path.write_bytes(
                {"empty": b"", "half": content[: len(content) // 2], "garbage": b"\x80\x05junk."}[
                    damage
                ]
            )
    assert program()[2] == "" or damage == "unreadable"
    if damage != "unreadable":
        assert program()[0] == 2


def test_code_of_another_signature_is_never_taken(tmp_path, monkeypatch):
    """Two processes that add to one index at the same time leave both entries, each with its own
    file.
    """
    monkeypatch.setattr(compiled.caching.config, "CACHE_DIR", str(tmp_path))
    functions = [compiled.njit(cache=True)(_double) for _ in range(2)]
    assert functions[0](2) == 4 and functions[1](0.25) == 0.5
    fresh = compiled.njit(cache=True)(_double)
    assert fresh(2) == 4 and fresh(0.25) == 0.5 and sum(fresh.stats.cache_hits.values()) == 2
    assert len(list(tmp_path.rglob("*.nbc"))) == 2


def _double(x):
    return x + x


@pytest.mark.parametrize("step", ["_save_data", "_save_index"])
def test_a_cache_that_can_not_be_written(tmp_path, monkeypatch, caplog, step):
    def full(self, *_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(compiled.caching.config, "CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(compiled.caching.IndexDataCacheFile, step, full)
    compiled._warn.cache_clear()
    for _ in range(2):
        assert compiled.njit(cache=True)(_double)(2) == 4
    (message,) = caplog.messages
    assert os.strerror(errno.ENOSPC) in message
    assert not list(tmp_path.rglob("*.nbi"))


def test_no_folder_at_all(monkeypatch, caplog):
    monkeypatch.setattr(compiled._Cache._impl_class, "_locator_classes", [])
    compiled._warn.cache_clear()
    assert compiled.njit(cache=True)(_double)(2) == 4
    assert "RFX_CACHE names another folder" in caplog.text
