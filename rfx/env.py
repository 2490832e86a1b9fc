"""What makes a row reproducible: folders, threads, memory, versions, processor, git revision."""

import atexit
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

# Imported with rfx itself, before anything can catch Ctrl-C: what takes time is loaded when it
# is used.

_threads = None
_largest_child_mb = 0.0

# Bytes of freed memory that malloc keeps at most, and the largest array that it makes of them (no
# more than 32 MiB with glibc).
KEPT_BYTES, KEPT_ARRAY_BYTES = 512 << 20, 32 << 20


def cache_dir() -> Path:
    """Folder for what can be made again: `$RFX_CACHE`, else `$XDG_CACHE_HOME/rfx`, else
    `~/.cache/rfx`.

    Of a user without a home folder, as a container may have one, it is among the temporary folders.
    """
    if os.environ.get("RFX_CACHE"):
        return Path(os.environ["RFX_CACHE"])
    if os.environ.get("XDG_CACHE_HOME"):
        return Path(os.environ["XDG_CACHE_HOME"]) / "rfx"
    home = home_dir()
    return _temporary_dir() / f"rfx-{os.getuid()}" if home is None else home / ".cache" / "rfx"


def home_dir() -> Path | None:
    """The user's home folder; None where neither HOME nor the system names one."""
    try:
        return Path.home()
    except RuntimeError:
        return None


def _temporary_dir() -> Path:
    try:
        return Path(lazy.tempfile.gettempdir())
    except OSError:  # it writes to what it finds, which fails where the disk is full
        return Path(os.environ.get("TMPDIR") or "/tmp")


def data_dir() -> Path:
    """Folder of fetched data sets: `$RFX_DATA`, else `cache_dir()/data`. UsageError where
    there is no place for it.
    """
    if os.environ.get("RFX_DATA"):
        return Path(os.environ["RFX_DATA"])
    if home_dir() is None and not (os.environ.get("RFX_CACHE") or os.environ.get("XDG_CACHE_HOME")):
        raise UsageError("there is no home folder for data sets; set RFX_DATA to a folder")
    return cache_dir() / "data"


def prepare_blas() -> None:
    """Have OpenBLAS's idle threads sleep at once: by default each spins, seen for 0.1 s, on a core
    that rfx's own threads need.

    It counts where numpy is not imported yet; a value set by the user is left alone.
    """
    os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "14")


def prepare_numba_cache() -> None:
    """Point `NUMBA_CACHE_DIR` at a folder that only this user can write to, for numba runs the code
    that it finds there.

    It is in rfx's cache, else among the temporary folders, else a fresh one for this process alone;
    where there is none either, it can't be, and nothing is kept. Must run before numba is imported;
    a value set by the user is left alone.
    """
    if "NUMBA_CACHE_DIR" in os.environ:
        return
    folder = cache_dir() / "numba"
    if not private_folder(folder):
        folder = _temporary_dir() / f"rfx-numba-{os.getuid()}"
        if not private_folder(folder):
            folder = Path(_passing_folder())
    os.environ["NUMBA_CACHE_DIR"] = str(folder)


def nothing_compiled() -> bool:
    """Whether numba's cache, where `prepare_numba_cache` or the user put it, is empty."""
    try:
        with os.scandir(os.environ["NUMBA_CACHE_DIR"]) as found:
            return next(found, None) is None
    except (KeyError, OSError):
        return True


def private_folder(folder) -> bool:
    """Make `folder` where it is missing; is it a real folder, no link, that no other user
    can write to or exchange?
    """
    folder = Path(os.path.abspath(folder))
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        status = os.lstat(folder)
        if (
            not stat.S_ISDIR(status.st_mode)
            or status.st_uid != os.getuid()
            or status.st_mode & 0o022
        ):
            return False
        if status.st_mode & 0o055:
            os.chmod(folder, 0o700)
        return os.access(folder, os.W_OK | os.X_OK) and _is_out_of_reach(folder)
    except OSError:
        return False


def _is_out_of_reach(path) -> bool:
    """Whether no other user can put something else in the place of `path`: by a folder or a link on
    the way to it.

    What is there must be this user's or the system's, and others must not write to it, unless it is
    sticky, as /tmp is, or nobody else comes as far.
    """
    ours = {0, os.getuid(), os.lstat("/").st_uid}
    reached = True  # by others
    for parent in reversed(path.parents):
        status = os.lstat(parent)
        if reached and status.st_uid not in ours:
            return False
        if stat.S_ISLNK(status.st_mode):
            if not _is_out_of_reach(Path(os.path.realpath(parent)) / "inside"):
                return False
            reached = True
        else:
            reached = reached and bool(status.st_mode & 0o011)
            if reached and status.st_mode & 0o022 and not status.st_mode & stat.S_ISVTX:
                return False
    return True


def _passing_folder() -> str:
    """A fresh private folder that goes when this process ends."""
    remove = lazy.shutil.rmtree  # now: when the process ends it is late for imports
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


def cores() -> int:
    """Number of processor cores that this process may use: those of its affinity, and of
    its cgroup's quota of processor time.
    """
    return max(1, min(len(os.sched_getaffinity(0)), _quota()))


def threads() -> int:
    """Number of threads that rfx's own loops may use."""
    return _threads or cores()


def set_threads(count: int | None) -> None:
    """Bound rfx's own loops, and OpenMP, to `count` threads (None: one per available core).

    BLAS keeps to one thread wherever rfx works, see `rfx.parallel.one_blas_thread`.
    """
    global _threads
    _threads = count
    os.environ["OMP_NUM_THREADS"] = str(threads())
    if "numpy" in sys.modules:
        lazy.threadpoolctl.threadpool_limits(threads(), user_api="openmp")


def check_environment() -> None:
    """Refuse, with a UsageError, numbers of threads in the environment that numba and the
    BLAS libraries do not take.
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
    """Have BLAS start no threads of its own, and OpenMP's sleep while they wait: for processes that
    are rfx's own.

    It counts where numpy is not imported yet.
    """
    os.environ["OPENBLAS_NUM_THREADS"] = os.environ["MKL_NUM_THREADS"] = "1"
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")


def peak_rss_mb() -> float:
    """Largest resident memory of this process so far in MiB, plus that of its largest
    back-end child.
    """
    # Not getrusage: after a fork Linux counts the parent's memory as the child's peak
    try:
        with open("/proc/self/status", encoding="ascii") as lines:
            own = next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))
    except (OSError, StopIteration):
        own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return own / 1024 + _largest_child_mb


def count_child(peak_mb: float) -> None:
    """Tell peak_rss_mb of the peak of a back-end child that worked while this process waited."""
    global _largest_child_mb
    _largest_child_mb = max(_largest_child_mb, peak_mb)


def keep_freed_memory() -> None:
    """Have malloc keep what this process frees for its next arrays, KEPT_BYTES at most: new memory
    takes more time than a loop over it.

    By itself glibc gives back whatever is more than twice the largest array freed so far. Elsewhere
    nothing changes, nor where the user has said something of it (MALLOC_TRIM_THRESHOLD_,
    MALLOC_MMAP_THRESHOLD_, GLIBC_TUNABLES). For processes that are rfx's own.
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
    """Have the kernel kill this process when the process `parent` ends, however it ends (Linux)."""
    PR_SET_PDEATHSIG = 1
    try:
        lazy.ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    except (OSError, AttributeError):
        return
    if os.getppid() != parent:
        # it ended before the request was made, so the signal will never come
        os._exit(1)


def available_memory_mb() -> float:
    """Memory in MiB that can still be taken without swapping, in the machine and in the cgroup that
    this process is in.

    It is looked up ten times a second at most: small problems are solved faster than these files
    are read.
    """
    return _available_memory_mb(int(10 * time.monotonic()))


@lru_cache(maxsize=1)
def _available_memory_mb(tenth: int) -> float:
    return min(_machine_memory_mb(), _cgroup_memory_mb())


def _machine_memory_mb() -> float:
    try:
        with open("/proc/meminfo", encoding="ascii") as lines:
            for line in lines:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) / 1024
    except OSError:
        pass
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**20 / 2


# How a line of /proc/self/cgroup that names a group of memory begins, after its number; where such
# groups lie; and the names of the limit, what is held, and the pages of files among it that are
# given up when they are needed: versions 2 and 1.
_CGROUPS = (
    (":", "", "memory.max", "memory.current", "inactive_file"),
    ("memory:", "/memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
)


def _cgroup_memory_mb(root="/sys/fs/cgroup", own="/proc/self/cgroup") -> float:
    """What the memory limits of this process's cgroup, and of those above it, leave;
    infinite without a limit.
    """
    least = float("inf")
    try:
        with open(own, encoding="utf-8") as lines:
            groups = [line.rstrip("\n").partition(":")[2] for line in lines]
    except (OSError, ValueError):
        return least
    for start, place, limit, held, cached in _CGROUPS:
        for group in (name.removeprefix(start) for name in groups if name.startswith(start)):
            folder = Path(f"{root}{place}{group}")
            while str(folder).startswith(root + place):
                least = min(least, _left_mb(folder, limit, held, cached))
                folder = folder.parent
    return max(0.0, least)


@lru_cache(maxsize=1)
def _quota(root: str = "/sys/fs/cgroup", own: str = "/proc/self/cgroup") -> int:
    """Cores that the quotas of this process's cgroup, and of those above it, are worth,
    rounded up; very many without one.
    """
    least = sys.maxsize
    try:
        with open(own, encoding="utf-8") as lines:
            groups = [line.rstrip("\n").split(":", 2)[1:] for line in lines]
    except (OSError, ValueError):
        return least
    for controllers, group in groups:
        # version 2 has no controllers' names; version 1 may list several
        if controllers and "cpu" not in controllers.split(","):
            continue
        top = Path(f"{root}/cpu" if controllers else root)
        folder = Path(f"{top}{group}")
        while folder.is_relative_to(top):
            least = min(least, _quota_of(folder))
            folder = folder.parent
    return least


def _quota_of(folder: Path) -> int:
    for names in (("cpu.max",), ("cpu.cfs_quota_us", "cpu.cfs_period_us")):
        try:
            quota, period = " ".join((folder / name).read_text() for name in names).split()
            if quota not in ("max", "-1"):
                return max(1, -(-int(quota) // int(period)))
        except (OSError, ValueError, ZeroDivisionError):
            continue
    return sys.maxsize


def _left_mb(folder, limit, held, cached) -> float:
    try:
        most = (folder / limit).read_text().strip()
        if most == "max":
            return float("inf")
        freed = [
            int(line.split()[1])
            for line in (folder / "memory.stat").read_text().splitlines()
            if line.startswith(f"{cached} ")
        ]
        return (int(most) - int((folder / held).read_text()) + sum(freed)) / 2**20
    except (OSError, ValueError):
        return float("inf")


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
    """Revision of the checkout that rfx runs from, with `+` when files were changed; empty
    when installed.
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
