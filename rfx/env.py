"""The environment that makes a row reproducible: folders, threads, memory, versions, processor, git
revision; and SIGTERM, which is handled like Ctrl-C.
"""

import gc
import math
import os
import signal
import sys
import threading
import time
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path

from rfx import lazy
from rfx._version import __version__

# Imported with rfx itself, before anything can catch Ctrl-C: slow imports are deferred.

_threads = None
_largest_child_mb = 0.0


def cache_dir() -> Path:
    """Folder for files that can be recreated: `$RFX_CACHE`, else `$XDG_CACHE_HOME/rfx`, else
    `~/.cache/rfx`.
    """
    if os.environ.get("RFX_CACHE"):
        return Path(os.environ["RFX_CACHE"])
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "rfx"


def data_dir() -> Path:
    """Folder of fetched data sets: `$RFX_DATA`, else `cache_dir()/data`."""
    return Path(os.environ.get("RFX_DATA") or cache_dir() / "data")


def prepare() -> None:
    """Set what numpy and numba read when they are imported, unless the user has set it.

    OpenBLAS's idle threads sleep at once: by default each spins for about 0.1 s on a core that
    rfx's own threads need. numba caches compiled code in rfx's cache.
    """
    os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "14")
    os.environ.setdefault("NUMBA_CACHE_DIR", str(cache_dir() / "numba"))


def nothing_compiled() -> bool:
    """Whether numba's cache is empty."""
    return next(Path(os.environ["NUMBA_CACHE_DIR"]).glob("*"), None) is None


@lru_cache
def cores() -> int:
    """Number of processor cores available to this process, by its affinity and its control group's
    CPU quota.
    """
    quotas = [text.split() for text in _cgroup_files("cpu.max")]
    limits = [int(quota) / int(period) for quota, period in quotas if quota != "max"]
    return max(1, math.ceil(min([len(os.sched_getaffinity(0)), *limits])))


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
    with open("/proc/self/status", encoding="ascii") as lines:
        peak_kb = next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))
    return peak_kb / 1024 + _largest_child_mb


def reset_peak_rss() -> None:
    """Return freed memory to the system, and let peak_rss_mb count from now on (Linux)."""
    gc.collect()
    lazy.ctypes.CDLL(None).malloc_trim(0)
    with open("/proc/self/clear_refs", "w", encoding="ascii") as peak:
        peak.write("5")


def count_child(peak_mb: float) -> None:
    """Report to peak_rss_mb the peak of a back-end child that ran while this process waited."""
    global _largest_child_mb
    _largest_child_mb = max(_largest_child_mb, peak_mb)


def die_with(parent: int) -> None:
    """Make the kernel kill this process when the process `parent` ends for any reason (Linux)."""
    PR_SET_PDEATHSIG = 1
    lazy.ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
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
    free = [lazy.psutil.virtual_memory().available]
    memory = ("memory.max", "memory.current", "memory.stat")
    for limit, used, statistics in zip(*map(_cgroup_files, memory)):
        if limit.strip() != "max":
            # pages of files can be reclaimed
            pages = dict(line.split() for line in statistics.splitlines())
            free.append(max(0, int(limit) - int(used) + int(pages["inactive_file"])))
    return min(free) / 2**20


def _cgroup_files(
    name: str, root: str = "/sys/fs/cgroup", membership: str = "/proc/self/cgroup"
) -> list[str]:
    """The contents of the files of that name in the folders of this process's control group
    (version 2) and of those above it.
    """
    with open(membership, encoding="utf-8") as lines:
        groups = [Path(root + line[3:].strip()) for line in lines if line.startswith("0::")]
    files = [folder / name for group in groups for folder in (group, *group.parents)]
    return [file.read_text() for file in files if file.is_relative_to(root) and file.exists()]


@lru_cache
def cpu_name() -> str:
    with open("/proc/cpuinfo", encoding="utf-8") as lines:
        names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else lazy.platform.machine()


@lru_cache
def blas_name() -> str:
    libraries = [lib for lib in lazy.threadpoolctl.threadpool_info() if lib["user_api"] == "blas"]
    names = sorted({f"{lib['internal_api']} {lib['version']}" for lib in libraries})
    return " ".join(names) or "unknown"


@lru_cache
def git_revision() -> str:
    """Revision of the checkout that rfx runs from, with `+` if files were changed; empty if
    installed.
    """
    root = Path(__file__).resolve().parent.parent
    if not (root / ".git").exists():
        return ""
    words = ["git", "-C", str(root), "describe", "--always", "--exclude=*", "--abbrev=12"]
    with suppress(OSError):
        done = lazy.subprocess.run([*words, "--dirty=+"], capture_output=True, text=True)
        return done.stdout.strip()
    return ""


def describe() -> dict[str, str]:
    """The last columns of a results row: versions, BLAS, processor, git revision."""
    packages = ["numpy", "scipy", "numba", "liblinear-official", "libsvm-official"]
    row = {"rfx": __version__, "python": lazy.platform.python_version()}
    row |= {name.replace("-official", ""): lazy.metadata.version(name) for name in packages}
    return row | {"blas": blas_name(), "cpu": cpu_name(), "git_revision": git_revision()}


# ---------------------------------------------------------------------- signals

# Seconds within which further signals are ignored: `timeout` sends two, and the second must not
# disturb the clean-up.
_TOGETHER = 1.0
# Seconds after which a signal that arrives inside LLVM is sent again.
_AGAIN = 0.02


@contextmanager
def terminate_as_interrupt():
    """Inside the block, SIGTERM, which cron and `timeout` send instead of Ctrl-C, raises
    KeyboardInterrupt.

    While LLVM compiles or loads a function, both signals wait: it calls back into Python, where the
    exception would be lost.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    last = -_TOGETHER

    def interrupt(number, frame):
        nonlocal last
        if _in_llvm(frame):
            threading.Timer(_AGAIN, os.kill, (os.getpid(), number)).start()
            return
        now = time.monotonic()
        if now - last >= _TOGETHER:
            last = now
            raise KeyboardInterrupt

    numbers = [signal.SIGTERM]
    # not where Ctrl-C is ignored, as in a background job of a shell
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        numbers.append(signal.SIGINT)
    before = {number: signal.signal(number, interrupt) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _in_llvm(frame) -> bool:
    """Whether the frame belongs to a call into llvmlite."""
    while frame is not None:
        if frame.f_globals.get("__name__", "").startswith("llvmlite"):
            return True
        frame = frame.f_back
    return False
