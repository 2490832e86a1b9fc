"""The environment that makes a row reproducible: folders, threads, memory, versions, processor, git
revision.
"""

import atexit
import math
import os
import resource
import signal
import stat
import sys
import time
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from rfx import lazy
from rfx._version import __version__
from rfx.errors import UsageError

# Imported with rfx itself, before anything can catch Ctrl-C: slow imports are deferred.

_threads = None
_largest_child_mb = 0.0

# Maximum bytes of freed memory that malloc keeps, and the largest array for which it reuses them
# (at most 32 MiB with glibc).
KEPT_BYTES, KEPT_ARRAY_BYTES = 512 << 20, 32 << 20


def cache_dir() -> Path:
    """Folder for files that can be recreated: `$RFX_CACHE`, else `$XDG_CACHE_HOME/rfx`, else
    `~/.cache/rfx`.

    For a user without a home folder, as in some containers, it is a temporary folder.
    """
    if os.environ.get("RFX_CACHE"):
        return Path(os.environ["RFX_CACHE"])
    if os.environ.get("XDG_CACHE_HOME"):
        return Path(os.environ["XDG_CACHE_HOME"]) / "rfx"
    home = home_dir()
    return _temporary_dir() / f"rfx-{os.getuid()}" if home is None else home / ".cache" / "rfx"


def home_dir() -> Path | None:
    """The user's home folder; None if neither HOME nor the system defines one."""
    try:
        return Path.home()
    except RuntimeError:
        return None


def _temporary_dir() -> Path:
    try:
        return Path(lazy.tempfile.gettempdir())
    except OSError:  # it writes to the folders it tests, which fails when the disk is full
        return Path(os.environ.get("TMPDIR") or "/tmp")


def data_dir() -> Path:
    """Folder of fetched data sets: `$RFX_DATA`, else `cache_dir()/data`. UsageError if neither
    exists.
    """
    if os.environ.get("RFX_DATA"):
        return Path(os.environ["RFX_DATA"])
    if home_dir() is None and not (os.environ.get("RFX_CACHE") or os.environ.get("XDG_CACHE_HOME")):
        raise UsageError("there is no home folder for data sets; set RFX_DATA to a folder")
    return cache_dir() / "data"


def prepare_blas() -> None:
    """Make OpenBLAS's idle threads sleep at once: by default each spins for about 0.1 s on a core
    that rfx's own threads need.

    It has an effect only before numpy is imported; a value set by the user is respected.
    """
    os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "14")


def prepare_numba_cache() -> None:
    """Set `NUMBA_CACHE_DIR` to a folder that only this user can write to, because numba runs the
    code in it: in rfx's cache, else a new folder for this process only.

    Must run before numba is imported; a value set by the user is respected.
    """
    if "NUMBA_CACHE_DIR" not in os.environ:
        folder = cache_dir() / "numba"
        usual = private_folder(folder)
        os.environ["NUMBA_CACHE_DIR"] = str(folder if usual else _passing_folder())


def nothing_compiled() -> bool:
    """Whether numba's cache, as set by `prepare_numba_cache` or the user, is empty."""
    try:
        with os.scandir(os.environ["NUMBA_CACHE_DIR"]) as found:
            return next(found, None) is None
    except (KeyError, OSError):
        return True


def private_folder(folder: Path) -> bool:
    """Create `folder` if missing; return whether it is a folder, not a link, that this user can
    write to and no other user can.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        status = os.lstat(folder)
    except OSError:
        return False
    owned = stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid()
    return owned and not status.st_mode & 0o022 and os.access(folder, os.W_OK | os.X_OK)


def _passing_folder() -> str:
    """A new private folder that is removed when this process ends."""
    remove = lazy.shutil.rmtree  # now, because imports fail while the process is ending
    try:
        folder, owner = lazy.tempfile.mkdtemp(prefix="rfx-numba-"), os.getpid()
    except OSError:
        return os.path.join(os.devnull, "rfx")
    atexit.register(lambda: remove(folder, ignore_errors=True) if os.getpid() == owner else None)
    message = (
        "compiled code can't be cached in %s, so every command compiles again; RFX_CACHE names"
        " another folder"
    )
    lazy.logging.getLogger(__name__).warning(message, cache_dir() / "numba")
    return folder


@lru_cache
def cores() -> int:
    """Number of processor cores available to this process, by its affinity and its control group's
    CPU quota.
    """
    return int(max(1, min([len(os.sched_getaffinity(0)), *map(_quota, _cgroups())])))


def threads() -> int:
    """Number of threads for rfx's own loops."""
    return _threads or cores()


def set_threads(count: int | None) -> None:
    """Limit rfx's own loops, and OpenMP, to `count` threads (None: one per available core).

    BLAS uses one thread inside rfx, see `rfx.parallel.one_blas_thread`.
    """
    global _threads
    _threads = count
    os.environ["OMP_NUM_THREADS"] = str(threads())
    if "numpy" in sys.modules:
        lazy.threadpoolctl.threadpool_limits(threads(), user_api="openmp")


def check_environment() -> None:
    """Raise UsageError for thread counts in the environment that numba and the BLAS libraries
    reject.
    """
    for name in ("NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        text = os.environ.get(name, "").strip()
        parts = text.split(",") if name == "OMP_NUM_THREADS" else [text]
        if text and not all(
            part.strip().isascii() and part.strip().isdigit() and 0 < int(part[:9])
            for part in parts
        ):
            raise UsageError(
                f"the environment variable {name} is {text!r:.40}; it must be an integer of 1 or"
                " more, or unset"
            )


def own_process() -> None:
    """Make BLAS single-threaded and OpenMP threads sleep while waiting: for processes started by
    rfx.

    It has an effect only before numpy is imported.
    """
    os.environ["OPENBLAS_NUM_THREADS"] = os.environ["MKL_NUM_THREADS"] = "1"
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")


def peak_rss_mb() -> float:
    """Peak resident memory of this process so far in MiB, plus that of its largest back-end
    child.
    """
    # Not getrusage: after a fork, Linux counts the parent's memory in the child's peak
    try:
        with open("/proc/self/status", encoding="ascii") as lines:
            own = next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))
    except (OSError, StopIteration):
        own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return own / 1024 + _largest_child_mb


def count_child(peak_mb: float) -> None:
    """Report to peak_rss_mb the peak of a back-end child that ran while this process waited."""
    global _largest_child_mb
    _largest_child_mb = max(_largest_child_mb, peak_mb)


def keep_freed_memory() -> None:
    """Make malloc reuse freed memory for the next arrays, up to KEPT_BYTES: new memory takes longer
    than a loop over it.

    By default glibc returns memory beyond twice the largest freed array. Nothing changes on other
    systems, or if the user has set MALLOC_TRIM_THRESHOLD_, MALLOC_MMAP_THRESHOLD_ or
    GLIBC_TUNABLES. For processes started by rfx.
    """
    told = {"MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_"} & set(os.environ)
    if told or "glibc.malloc" in os.environ.get("GLIBC_TUNABLES", ""):
        return
    M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
    with suppress(OSError, AttributeError):
        mallopt = lazy.ctypes.CDLL(None).mallopt
        mallopt(M_TRIM_THRESHOLD, KEPT_BYTES)
        mallopt(M_MMAP_THRESHOLD, KEPT_ARRAY_BYTES)


def die_with(parent: int) -> None:
    """Make the kernel kill this process when the process `parent` ends for any reason (Linux)."""
    PR_SET_PDEATHSIG = 1
    try:
        lazy.ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    except (OSError, AttributeError):
        return
    if os.getppid() != parent:
        # it ended before this request, so the signal will never come
        os._exit(1)


def available_memory_mb() -> float:
    """Memory in MiB available without swapping, on the machine and in the cgroup of this process.

    It is read at most ten times a second, because small problems are solved faster than these files
    are read.
    """
    return _available_memory_mb(int(10 * time.monotonic()))


@lru_cache(maxsize=1)
def _available_memory_mb(tenth: int) -> float:
    return min([lazy.psutil.virtual_memory().available, *map(_left, _cgroups())]) / 2**20


def _cgroups(root: str = "/sys/fs/cgroup", own: str = "/proc/self/cgroup") -> list[Path]:
    """The folders of this process's control group (version 2) and of those above it."""
    try:
        with open(own, encoding="utf-8") as lines:
            path = next(line[3:].strip() for line in lines if line.startswith("0::"))
    except (OSError, ValueError, StopIteration):
        return []
    group = Path(root + path)
    return [folder for folder in (group, *group.parents) if folder.is_relative_to(root)]


def _left(group: Path) -> float:
    """Bytes left by the limit of a control group; file pages that can be reclaimed count as
    free.
    """
    try:
        limit, used = ((group / f"memory.{name}").read_text() for name in ("max", "current"))
        pages = dict(line.split() for line in (group / "memory.stat").read_text().splitlines())
        return max(0.0, float(limit) - int(used) + int(pages["inactive_file"]))
    except (OSError, ValueError, KeyError):  # "max" is no limit
        return math.inf


def _quota(group: Path) -> float:
    """Cores of the CPU quota of a control group, rounded up."""
    try:
        quota, period = (group / "cpu.max").read_text().split()
        return math.ceil(int(quota) / int(period))
    except (OSError, ValueError):
        return math.inf


@lru_cache
def cpu_name() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            for line in lines:
                if line.startswith("model name"):
                    return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return lazy.platform.processor() or lazy.platform.machine()


@lru_cache
def blas_name() -> str:
    libraries = [lib for lib in lazy.threadpoolctl.threadpool_info() if lib["user_api"] == "blas"]
    return (
        " ".join(sorted({f"{lib['internal_api']} {lib['version']}" for lib in libraries}))
        or "unknown"
    )


@lru_cache
def git_revision() -> str:
    """Revision of the checkout that rfx runs from, with `+` if files were changed; empty if
    installed.
    """
    root = Path(__file__).resolve().parent.parent
    if not (root / ".git").exists():
        return ""

    def git(*words):
        return lazy.subprocess.run(
            ["git", "-C", str(root), *words], capture_output=True, text=True, check=True
        ).stdout.strip()

    try:
        return git("rev-parse", "--short=12", "HEAD") + (
            "+" if git("status", "--porcelain", "-uno") else ""
        )
    except (OSError, lazy.subprocess.CalledProcessError):
        return ""


def _version(package: str) -> str:
    try:
        return lazy.metadata.version(package)
    except lazy.metadata.PackageNotFoundError:
        return ""


def describe() -> dict[str, str]:
    """The last columns of a results row: versions, BLAS, processor, git revision."""
    packages = ["numpy", "scipy", "numba", "liblinear-official", "libsvm-official"]
    row = {"rfx": __version__, "python": lazy.platform.python_version()}
    row |= {name.replace("-official", ""): _version(name) for name in packages}
    return row | {"blas": blas_name(), "cpu": cpu_name(), "git_revision": git_revision()}
