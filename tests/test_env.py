"""Folders from which code is loaded belong to this user alone; available memory."""

import os
import pickle
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
    """A folder whose parents nobody else can write to, a read-only cache, and a temporary folder
    like /tmp.
    """
    tmp_path.chmod(0o700)
    (tmp_path / "file").write_text("a file where a folder is wanted")
    shared = tmp_path / "tmp"
    shared.mkdir()
    shared.chmod(0o1777)
    monkeypatch.setenv("RFX_CACHE", str(tmp_path / "file" / "cache"))
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setattr(tempfile, "tempdir", str(shared))
    return tmp_path


def prepared(monkeypatch) -> Path:
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    env.prepare_numba_cache()
    return Path(os.environ["NUMBA_CACHE_DIR"])


def test_the_cache_is_made_private(own, monkeypatch):
    monkeypatch.setenv("RFX_CACHE", str(own / "cache"))
    folder = prepared(monkeypatch)
    assert folder == own / "cache" / "numba" and stat.S_IMODE(folder.stat().st_mode) == 0o700
    folder.chmod(0o755)
    assert prepared(monkeypatch) == folder and stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_a_folder_of_ones_own_among_the_temporary_ones(own, monkeypatch, caplog):
    folder = prepared(monkeypatch)
    assert folder == own / "tmp" / f"rfx-numba-{os.getuid()}" and prepared(monkeypatch) == folder
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700 and not caplog.text


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
    """What another user might put at a predictable place."""
    if how == "link":
        elsewhere.mkdir(mode=0o700)
        place.symlink_to(elsewhere)
    elif how == "dangling link":
        place.symlink_to(elsewhere)
    elif how == "file":
        place.write_text("")
    else:
        place.mkdir()
        place.chmod({"for all": 0o777, "for the group": 0o770, "sticky": 0o1777}[how])


@pytest.mark.parametrize(
    "how", ["link", "dangling link", "file", "for all", "for the group", "sticky"]
)
def test_what_others_can_write_to_is_passed_over(own, monkeypatch, how, caplog):
    place = own / "tmp" / f"rfx-numba-{os.getuid()}"
    planted(place, how, own / "elsewhere")
    folder = prepared(monkeypatch)
    assert (
        folder.parent == own / "tmp"
        and folder != place
        and stat.S_IMODE(folder.stat().st_mode) == 0o700
    )
    assert "compiled code can't be cached in" in caplog.text and "RFX_CACHE" in caplog.text
    assert not (own / "elsewhere").exists() or not list((own / "elsewhere").iterdir())


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a folder away")
def test_anothers_folder_is_passed_over(own, monkeypatch):
    place = own / "tmp" / f"rfx-numba-{os.getuid()}"
    place.mkdir(mode=0o700)
    os.chown(place, 12345, -1)
    assert prepared(monkeypatch) != place


@pytest.fixture
def reached():
    """A folder that other users can enter, unlike pytest's."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        on_the_way = [parent.stat() for parent in Path(folder).resolve().parents]
        if not all(found.st_mode & 0o011 for found in on_the_way):
            pytest.skip("other users cannot enter the temporary folder")
        # the same condition, without the function under test
        if any(
            found.st_uid not in (0, os.getuid())
            or found.st_mode & 0o022
            and not found.st_mode & stat.S_ISVTX
            for found in on_the_way
        ):
            pytest.skip("a folder above the temporary folder belongs to another user")
        yield Path(folder)


def test_the_way_to_a_folder(reached):
    inner = reached / "a" / "b"
    inner.mkdir(parents=True)
    (reached / "private").mkdir(mode=0o700)
    for name in (reached / "link", reached / "private" / "link"):
        name.symlink_to(inner)
    ways = [inner / "numba", reached / "link" / "numba", reached / "private" / "link" / "numba"]
    assert all(map(env.private_folder, ways))  # also through one's own links
    assert not env.private_folder(reached / "link")
    (reached / "a").chmod(0o777)
    assert not any(map(env.private_folder, ways))
    (reached / "a").chmod(0o1777)
    assert all(map(env.private_folder, ways))
    (reached / "a").chmod(0o777)
    reached.chmod(0o700)  # nobody else can reach the writable folder
    assert all(map(env.private_folder, ways))


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a link away")
def test_a_link_of_anothers_on_the_way(reached):
    (reached / "a").mkdir()
    (reached / "link").symlink_to(reached / "a")
    assert env.private_folder(reached / "link" / "numba")
    os.lchown(reached / "link", 12345, -1)
    assert not env.private_folder(reached / "link" / "numba")


class Planted:
    def __reduce__(self):
        return exec, ("open(__import__('os').environ['PLANTED'], 'w')",)


def test_code_planted_in_the_temporary_folder_does_not_run(own):
    """The whole attack: numba's index files are pickles, and a link leads the process to another
    user's files.
    """
    trap = own / "trap"
    trap.mkdir(mode=0o777)
    (own / "tmp" / f"rfx-numba-{os.getuid()}").symlink_to(trap)
    surroundings = os.environ | {
        "TMPDIR": str(own / "tmp"),
        "PLANTED": str(own / "ran"),
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    program = own / "program.py"
    program.write_text(
        "import os, rfx\nfrom numba import njit\n@njit(cache=True)\ndef one():\n    return"
        " 1\none()\nprint(os.environ['NUMBA_CACHE_DIR'])"
    )

    def run(**more):
        return subprocess.run(
            [sys.executable, program], env=surroundings | more, capture_output=True, text=True
        ).stdout.strip()

    # where numba writes when it follows the trap: another user can predict the path, and put
    # pickles there
    run(NUMBA_CACHE_DIR=str(trap))
    indices = list(trap.rglob("*.nbi"))
    assert indices
    for index in indices:
        index.write_bytes(pickle.dumps(Planted()))
    run(NUMBA_CACHE_DIR=str(trap))
    assert (own / "ran").exists()  # the trap works
    (own / "ran").unlink()
    folder = run()
    assert not (own / "ran").exists() and folder != str(trap) and not os.path.exists(folder)


VERSIONS = {
    2: ("0::", "", "memory.max", "memory.current", "inactive_file", "max"),
    1: (
        "4:memory:",
        "memory",
        "memory.limit_in_bytes",
        "memory.usage_in_bytes",
        "total_inactive_file",
        str(2**63 - 4096),
    ),
}


@pytest.mark.parametrize("version", VERSIONS)
def test_memory_that_a_cgroup_leaves(tmp_path, version):
    start, place, *names, none = VERSIONS[version]
    (tmp_path / "own").write_text(f"7:blkio:/\n{start}/outer/inner\n")
    inner = tmp_path / "cgroup" / place / "outer" / "inner"
    inner.mkdir(parents=True)
    left = lambda: env._cgroup_memory_mb(str(tmp_path / "cgroup"), str(tmp_path / "own"))
    assert left() == float("inf")

    def limited(folder, limit, held, cached):
        (folder / names[0]).write_text(f"{limit}\n")
        (folder / names[1]).write_text(f"{held}\n")
        (folder / "memory.stat").write_text(f"cache 1\n{names[2]} {cached}\n")

    limited(inner, none, 5 << 20, 0)
    assert left() > 2**40
    limited(inner.parent, 100 << 20, 60 << 20, 10 << 20)
    assert left() == 50
    limited(inner, 30 << 20, 25 << 20, 0)
    assert left() == 5
    limited(inner, 30 << 20, 35 << 20, 0)
    assert left() == 0
    assert env.available_memory_mb() >= 0


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
