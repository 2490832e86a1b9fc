"""Settings for numpy and numba, folders, limits of control groups; compiled code is cached where
possible: full disks, read-only folders, and damaged or stale files never stop a command.
"""

import errno
import os
import subprocess
import sys
from functools import partial

import pytest
from numba.core import caching, config

from rfx import compiled, env

pytestmark = pytest.mark.threads
SETTINGS = ("OPENBLAS_THREAD_TIMEOUT", "NUMBA_CACHE_DIR")


@pytest.mark.parametrize("by_user", [{}, {name: "20" for name in SETTINGS}])
def test_what_numpy_and_numba_read_is_set_but_for_values_of_the_users(tmp_path, by_user):
    known = {name: value for name, value in os.environ.items() if name not in SETTINGS}
    code = (
        "import os, sys, rfx; print('numpy' in sys.modules, *(os.environ[name] for name in"
        f" {SETTINGS}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=known | by_user | {"RFX_CACHE": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    usual = ["14", str(tmp_path / "numba")]
    # numpy, which reads the first, is imported later
    assert done.stdout.split() == ["False", *(list(by_user.values()) or usual)]


@pytest.fixture
def cgroup(tmp_path, monkeypatch):
    """A function that makes this process a member of a control group with these files."""

    def make(group, files):
        for name, text in files.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(text + "\n")
        (tmp_path / "membership").write_text(f"7:blkio:/\n{group}\n")
        reader = partial(
            env._cgroup_files, root=str(tmp_path), membership=str(tmp_path / "membership")
        )
        monkeypatch.setattr(env, "_cgroup_files", reader)

    return make


@pytest.mark.parametrize(
    "files, group, cores",
    [
        ({"a/cpu.max": "150000 100000", "cpu.max": "max 100000"}, "0::/a", 2),
        ({"a/b/cpu.max": "max 100000", "a/cpu.max": "100000 100000"}, "0::/a/b", 1),
        ({}, "3:cpuset:/a", 8),
    ],
)
def test_cores_are_those_that_a_container_may_use(cgroup, monkeypatch, files, group, cores):
    cgroup(group, files)
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(8)))
    assert env.cores.__wrapped__() == cores


def memory(folder, limit, used, reclaimable):
    statistics = f"cache 1\ninactive_file {reclaimable}"
    texts = {"max": limit, "current": used, "stat": statistics}
    return {f"{folder}/memory.{name}": str(text) for name, text in texts.items()}


@pytest.mark.parametrize(
    "inner, left",
    [(("max", 5, 0), 50), ((30, 25, 0), 5), ((30, 35, 0), 0)],
    ids=["limit above", "own limit", "over the limit"],
)
def test_memory_that_a_control_group_leaves(cgroup, inner, left):
    cgroup("0::/outer/inner", memory("outer", 100, 60, 10) | memory("outer/inner", *inner))
    assert env._available_memory_mb.__wrapped__(0) * 2**20 == left


@pytest.fixture
def cache_here(tmp_path, monkeypatch):
    """The folder in which numba stores compiled code."""
    monkeypatch.setattr(config, "CACHE_DIR", str(tmp_path))
    compiled._warn.cache_clear()
    return tmp_path


def doubled(*numbers) -> int:
    """How many of the compiled functions for these numbers a new function finds in the cache."""
    function = compiled.njit(cache=True)(_double)
    assert [function(number) for number in numbers] == [2 * number for number in numbers]
    return sum(function.stats.cache_hits.values())


@pytest.mark.parametrize(
    "what, damage",
    [("nbi", "empty"), ("nbi", "unreadable"), ("nbc", "half"), ("nbc", "garbage")],
)
def test_a_damaged_cache_is_made_anew(cache_here, what, damage):
    """As left by a machine that lost its power."""
    doubled(2)
    (path,) = cache_here.rglob(f"*.{what}")
    content = path.read_bytes()
    if damage == "unreadable":
        path.unlink()
        path.mkdir()
    else:
        damaged = {"empty": b"", "half": content[: len(content) // 2], "garbage": b"\x80\x05junk."}
        path.write_bytes(damaged[damage])
    assert doubled(2) == 0
    assert doubled(2) == (damage != "unreadable")


def test_code_of_another_signature_is_never_taken(cache_here):
    """Two processes that add to one index at the same time leave both entries, each with its own
    file.
    """
    functions = [compiled.njit(cache=True)(_double) for _ in range(2)]
    assert functions[0](2) == 4 and functions[1](0.25) == 0.5
    assert doubled(2, 0.25) == 2
    assert len(list(cache_here.rglob("*.nbc"))) == 2


def _double(x):
    return x + x


@pytest.mark.parametrize("step", ["_save_data", "_save_index"])
def test_a_cache_that_can_not_be_written(cache_here, monkeypatch, caplog, step):
    def full(self, *_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(caching.IndexDataCacheFile, step, full)
    assert doubled(2) == doubled(2) == 0
    (message,) = caplog.messages
    assert os.strerror(errno.ENOSPC) in message
    assert not list(cache_here.rglob("*.nbi"))


def test_no_folder_at_all(monkeypatch, caplog):
    monkeypatch.setattr(compiled._Cache._impl_class, "_locator_classes", [])
    compiled._warn.cache_clear()
    doubled(2)
    assert "RFX_CACHE names another folder" in caplog.text
