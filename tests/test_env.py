"""Settings for numpy and numba, folders, limits of control groups."""

import os
import subprocess
import sys
from functools import partial

import pytest

from rfx import env

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


def test_a_user_without_a_home_has_a_temporary_folder(monkeypatch, tmp_path):
    def homeless():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(env.Path, "home", homeless)
    for name in ("RFX_CACHE", "RFX_DATA", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert env.cache_dir().parent == tmp_path / f"rfx-{os.getuid()}" / ".cache"


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
