"""Folders from which code is loaded belong to this user alone; available memory."""

import os
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from rfx import env

pytestmark = pytest.mark.threads


@pytest.fixture
def own(tmp_path, monkeypatch):
    """A folder for rfx's cache and one for temporary files."""
    (tmp_path / "tmp").mkdir()
    monkeypatch.setenv("RFX_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    return tmp_path


def prepared(monkeypatch) -> Path:
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    env.prepare_numba_cache()
    return Path(os.environ["NUMBA_CACHE_DIR"])


def test_the_cache_is_made_private(own, monkeypatch):
    folder = prepared(monkeypatch)
    assert folder == own / "cache" / "numba"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_a_cache_that_can_not_be_written_is_replaced_for_this_process(own, monkeypatch, caplog):
    (own / "file").write_text("a file where a folder is wanted")
    monkeypatch.setenv("RFX_CACHE", str(own / "file" / "cache"))
    folder = prepared(monkeypatch)
    assert folder.parent == own / "tmp"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert "RFX_CACHE" in caplog.text


def test_a_value_of_the_users_is_left_alone(own, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", "/somewhere")
    env.prepare_numba_cache()
    assert os.environ["NUMBA_CACHE_DIR"] == "/somewhere"


@pytest.mark.parametrize("given, found", [(None, "14"), ("20", "20")])
def test_idle_threads_of_blas_sleep_but_for_a_value_of_the_users(given, found):
    environment = {
        name: value for name, value in os.environ.items() if name != "OPENBLAS_THREAD_TIMEOUT"
    }
    environment |= {} if given is None else {"OPENBLAS_THREAD_TIMEOUT": given}
    code = (
        "import sys, rfx, os; print(os.environ['OPENBLAS_THREAD_TIMEOUT'], 'numpy' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    # numpy, which reads it, is imported later
    assert done.stdout.split() == [found, "False"]


def planted(place, how, elsewhere):
    """What another user might put at the place of the cache of a user without a home folder."""
    place.parent.mkdir()
    if how == "link":
        elsewhere.mkdir(mode=0o700)
        place.symlink_to(elsewhere)
    elif how == "file":
        place.write_text("")
    else:
        place.mkdir()
        place.chmod({"for all": 0o777, "for the group": 0o770}[how])


@pytest.mark.parametrize("how", ["link", "file", "for all", "for the group"])
def test_a_cache_that_others_can_write_to_is_not_used(own, monkeypatch, how, caplog):
    place = own / "cache" / "numba"
    planted(place, how, own / "elsewhere")
    assert prepared(monkeypatch).parent == own / "tmp"
    assert "compiled code can't be cached in" in caplog.text


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a folder away")
def test_a_cache_of_another_user_is_not_used(own, monkeypatch):
    place = own / "cache" / "numba"
    place.mkdir(parents=True, mode=0o700)
    os.chown(place, 12345, -1)
    assert prepared(monkeypatch) != place


def limited(group, limit, used, reclaimable):
    (group / "memory.max").write_text(f"{limit}\n")
    (group / "memory.current").write_text(f"{used}\n")
    (group / "memory.stat").write_text(f"cache 1\ninactive_file {reclaimable}\n")


@pytest.mark.parametrize(
    "inner, left",
    [(("max", 5, 0), 50), ((30, 25, 0), 5), ((30, 35, 0), 0)],
    ids=["limit above", "own limit", "over the limit"],
)
def test_memory_that_a_control_group_leaves(tmp_path, inner, left):
    (tmp_path / "own").write_text("7:blkio:/\n0::/outer/inner\n")
    group = tmp_path / "outer" / "inner"
    group.mkdir(parents=True)
    limited(group.parent, 100, 60, 10)
    limited(group, *inner)
    groups = env._cgroups(str(tmp_path), str(tmp_path / "own"))
    assert min(map(env._left, groups)) == left


def test_some_memory_is_available():
    assert env.available_memory_mb() > 0


_FAULTS = """
import resource, sys
from rfx import env
if sys.argv[1] == "kept":
    env.keep_freed_memory()
import numpy as np
def use():
    # smaller than what numpy asks for as large pages, together more than twice the largest
    return [np.ones(300_000) for _ in range(20)]
use()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(5):
    use()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def faults(*args, **environment) -> int:
    """Pages that five uses of 48 MB fault in, without other settings for malloc. Dask leaves the
    settings for its workers in this process.
    """
    untold = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("MALLOC_", "GLIBC_TUNABLES"))
    }
    done = subprocess.run(
        [sys.executable, "-c", _FAULTS, *args],
        env=untold | environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return int(done.stdout)


@pytest.mark.skipif(
    not hasattr(os, "confstr") or "glibc" not in (os.confstr("CS_GNU_LIBC_VERSION") or ""),
    reason="another malloc",
)
def test_freed_memory_is_kept_but_for_what_the_user_says():
    pages = 5 * 20 * 300_000 * 8 // 4096
    assert faults("kept") < 0.05 * pages < 0.5 * pages < faults("as it is")
    assert faults("kept", MALLOC_TRIM_THRESHOLD_="65536") > 0.5 * pages
    assert faults("kept", GLIBC_TUNABLES="glibc.malloc.mmap_threshold=131072") > 0.5 * pages
