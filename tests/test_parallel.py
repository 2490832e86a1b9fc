"""Shared loops: the same bits for any number of threads, no waiting for a thread that gets no time,
and safe forks.
"""

import math
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path

import joblib
import numpy as np
import pytest
import threadpoolctl
from click.testing import CliRunner
from sklearn.model_selection import GridSearchCV

import rfx
from rfx import env, estimators, parallel
from rfx.cli import cli
from rfx.methods import create

pytestmark = pytest.mark.threads

rng = np.random.default_rng(0)
X = rng.normal(size=(120, 5))
y = (X[:, 0] * X[:, 1] > 0).astype(int)

NAMES = [name for name in estimators.__all__ if name.endswith("Classifier")]


@pytest.fixture
def two_threads(shared_out):
    """Two threads on any machine, which share even the smallest work."""
    env.set_threads(2)
    yield
    env.set_threads(None)
    parallel.close()


def made(name):
    """A small estimator."""
    estimator = getattr(estimators, name)()
    known = estimator.get_params()
    own = {"lam": 1.0, "gamma": 0.5, "n_features": 16, "n_grids": 16, "epochs": 1}
    own |= {"pool": 200} if name.startswith("LKRF") else {}
    return estimator.set_params(**{key: value for key, value in own.items() if key in known})


def ended(child, seconds=60) -> bool:
    """Whether a forked process that calls `child()` ends well within this many seconds."""
    with warnings.catch_warnings():
        # newer versions of Python warn about forks in a process with threads, which is the
        # situation under test
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = os.fork()
    if pid == 0:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(seconds)
        try:
            child()
        except BaseException:
            os._exit(1)
        os._exit(0)
    return os.waitpid(pid, 0)[1] == 0


def blas_threads() -> list[int]:
    return [
        own["num_threads"] for own in threadpoolctl.threadpool_info() if own["user_api"] == "blas"
    ]


# ---------------------------------------------------------------------------- fork


@pytest.mark.parametrize("name", NAMES)
def test_a_fork_after_a_fit_fits_and_predicts(two_threads, name):
    fitted = made(name).fit(X, y)
    before = fitted.predict(X)

    def child():
        assert np.array_equal(fitted.predict(X), before)
        assert np.array_equal(made(name).fit(X, y).predict(X), before)

    assert ended(child)
    assert np.array_equal(fitted.predict(X), before)


def test_a_fork_while_another_thread_fits(two_threads):
    """Whatever the other thread holds at that moment, the child does not wait for it; BLAS has its
    number of threads again there.
    """
    estimator, over = made("SparseRFClassifier"), threading.Event()
    wanted, usual = estimator.fit(X, y).predict(X), blas_threads()

    def fits():
        while not over.is_set():
            made("SparseRFClassifier").fit(X, y)

    def child():
        assert blas_threads() == usual
        assert np.array_equal(made("SparseRFClassifier").fit(X, y).predict(X), wanted)

    other = threading.Thread(target=fits)
    other.start()
    try:
        assert all(ended(child) for _ in range(5))
    finally:
        over.set()
        other.join()
    assert blas_threads() == usual


def test_a_fork_within_a_fit_goes_on_with_one_thread_of_blas(two_threads):
    usual = blas_threads()

    def child():
        assert blas_threads() == [1] * len(usual)

    with parallel.one_blas_thread():
        assert ended(child)
    assert blas_threads() == usual


def test_a_fork_while_another_thread_limits_blas(monkeypatch, two_threads):
    """The child knows the number of BLAS threads before."""
    reached, set_counts = threading.Event(), parallel._set

    def slowly(counts):
        set_counts(counts)
        if counts:
            reached.set()
            time.sleep(0.2)

    def limits():
        with parallel.one_blas_thread():
            pass

    def child():
        assert blas_threads() == usual

    with threadpoolctl.threadpool_limits(2, "blas"):
        usual = blas_threads()
        with parallel.one_blas_thread():
            pass
        monkeypatch.setattr(parallel, "_set", slowly)
        other = threading.Thread(target=limits)
        other.start()
        try:
            assert reached.wait(60)
            assert ended(child)
        finally:
            other.join()
        assert blas_threads() == usual


def test_a_fork_while_another_thread_computes_a_cached_property():
    """The child computes its own, of the same class, and does not wait."""
    reached, release = threading.Event(), threading.Event()

    class Slow:
        waits = True

        @parallel.cached
        def value(self):
            if self.waits:
                reached.set()
                release.wait(60)
            return 7

    def child():
        own = Slow()
        own.waits = False
        assert own.value == 7

    slow = Slow()
    other = threading.Thread(target=lambda: slow.value)
    other.start()
    try:
        assert reached.wait(60)
        assert ended(child, 20)
    finally:
        release.set()
        other.join()
    assert vars(slow) == {"value": 7}


def test_no_cached_property_has_a_lock():
    """`functools.cached_property` has a lock up to Python 3.11, which a fork may leave locked."""
    found = [
        path
        for path in Path(rfx.__file__).parent.rglob("*.py")
        if "cached_property(" in path.read_text() or "@cached_property" in path.read_text()
    ]
    assert found == []


def test_a_fork_while_another_thread_compiles():
    """The child can use numba's compiler, although the other thread holds its lock at the time of
    the fork.
    """
    from numba.core.compiler_lock import global_compiler_lock

    holding, release = threading.Event(), threading.Event()

    def compiles():
        with global_compiler_lock:
            holding.set()
            release.wait(60)

    def child():
        with global_compiler_lock:
            pass

    other = threading.Thread(target=compiles)
    other.start()
    holding.wait(60)
    threading.Timer(0.2, release.set).start()
    assert ended(child, 20)
    other.join()
    assert global_compiler_lock._lock.acquire(blocking=False)
    global_compiler_lock._lock.release()


def _predicted(name):
    return made(name).fit(X, y).predict(X)


def test_multiprocessing_by_fork_after_a_fit(two_threads):
    names = ["KernelClassifier", "RBClassifier", "SparseRFClassifier"]
    wanted = [_predicted(name) for name in names]
    with multiprocessing.get_context("fork").Pool(2) as pool:
        found = pool.map_async(_predicted, names).get(timeout=120)
    assert all(np.array_equal(*pair) for pair in zip(wanted, found, strict=True))


@pytest.mark.parametrize("backend", ["loky", "multiprocessing"])
def test_grid_search_in_two_processes_after_a_fit(two_threads, backend):
    made("KernelClassifier").fit(X, y)
    search = GridSearchCV(made("KernelClassifier"), {"lam": [0.1, 1.0]}, n_jobs=2, cv=2)
    with joblib.parallel_config(backend=backend):
        found = search.fit(X, y)
    alone = GridSearchCV(made("KernelClassifier"), {"lam": [0.1, 1.0]}, cv=2).fit(X, y)
    assert (
        found.cv_results_["mean_test_score"].tolist()
        == alone.cv_results_["mean_test_score"].tolist()
    )


def test_a_forked_process_ends_by_itself_after_its_own_loops():
    """With the interpreter's cleanup at exit, which os._exit skips."""
    code = (
        "import os, sys\n"
        "from rfx import env, parallel\n"
        "env.set_threads(2)\n"
        "loop = lambda: parallel.for_ranges(lambda a, b: (a, b), 4)\n"
        "loop()\n"
        "if pid := os.fork():\n"
        "    sys.exit(os.waitpid(pid, 0)[1] != 0)\n"
        "assert loop() == [(0, 2), (2, 4)]\n"
    )
    assert subprocess.run([sys.executable, "-c", code], timeout=120).returncode == 0


# ---------------------------------------------------------------------------- loops


def test_results_are_in_the_order_of_the_parts(two_threads):
    assert parallel.for_ranges(lambda a, b: (a, b), 10, parts=4) == [
        (0, 2),
        (2, 5),
        (5, 7),
        (7, 10),
    ]


def test_the_first_error_is_raised_when_all_parts_have_ended(two_threads):
    done = []

    def part(start, stop):
        done.append(start)
        if start:
            raise ValueError(start)

    with pytest.raises(ValueError, match="^2$"):
        parallel.for_ranges(part, 8, parts=4)
    assert sorted(done) == [0, 2, 4, 6]


def test_the_caller_does_the_parts_that_no_other_thread_has_time_for(two_threads):
    release = threading.Event()
    busy = parallel._helpers.get(1).submit(release.wait, 60)
    try:
        found = parallel.for_ranges(lambda a, b: threading.get_ident(), 8, parts=4)
    finally:
        release.set()
    assert found == [threading.get_ident()] * 4 and busy.result()


def test_few_multiplications_are_not_shared_out(monkeypatch):
    env.set_threads(2)
    try:
        monkeypatch.setattr(parallel._helpers, "get", lambda count: pytest.fail("shared out"))
        assert (
            parallel.for_ranges(lambda a, b: b - a, 8, parts=4, work=parallel._FEW - 1) == [2] * 4
        )
        with pytest.raises(pytest.fail.Exception):
            parallel.for_ranges(lambda a, b: b - a, 8, parts=4, work=parallel._FEW)
    finally:
        env.set_threads(None)


def test_an_interrupt_leaves_the_parts_that_are_not_begun(two_threads):
    begun = []

    def part(start, stop):
        begun.append(start)
        if threading.current_thread() is threading.main_thread():
            raise KeyboardInterrupt
        stopped.wait(60)

    stopped = threading.Event()
    threading.Timer(0.2, stopped.set).start()
    with pytest.raises(KeyboardInterrupt):
        parallel.for_ranges(part, 100, parts=100)
    assert len(begun) <= 4


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(0, 3), (7, 0), (40, 30), (50, 1100)])
def test_a_gram_matrix_by_any_number_of_threads(shared_out, dtype, shape):
    A, found = rng.normal(size=shape).astype(dtype), []
    for threads in (1, 2, 3):
        env.set_threads(threads)
        found.append(np.asfortranarray(np.triu(np.ones((shape[1], shape[1]), dtype))))
        parallel.add_gram(A, found[-1])
    env.set_threads(None)
    wide = A.astype(np.float64)
    np.testing.assert_allclose(
        np.triu(found[0]),
        np.triu(1 + wide.T @ wide),
        rtol=0,
        atol=1e-3 if dtype == np.float32 else 1e-10,
    )
    assert np.array_equal(np.triu(found[0]), np.triu(found[1])) and np.array_equal(
        np.triu(found[0]), np.triu(found[2])
    )


# ---------------------------------------------------------------------------- BLAS


def test_blas_has_one_thread_in_a_fit_and_its_own_number_afterwards():
    usual, seen = blas_threads(), []
    method = create("sparse-rf", lam=0.1, gamma=1.0, n_features=100, task="binary", max_iter=3)
    model = method.fit(X, y.astype(float), progress=lambda entry: seen.append(blas_threads()))
    model.predict(X)
    assert seen and all(own == [1] * len(usual) for own in seen)
    assert blas_threads() == usual


def test_fits_that_overlap_give_blas_its_number_back():
    """The first to begin ends first; the second found one thread when it began."""
    usual, begun, over = blas_threads(), threading.Event(), threading.Event()

    def second():
        with parallel.one_blas_thread():
            begun.set()
            over.wait(60)

    other = threading.Thread(target=second)
    with parallel.one_blas_thread():
        other.start()
        begun.wait(60)
    assert blas_threads() == [1] * len(usual)
    over.set()
    other.join()
    assert blas_threads() == usual


def test_a_fit_in_any_thread_limits_blas():
    """threadpoolctl 3.8 lets only the first thread that ever changed it change it again, and tells
    the others nothing.
    """
    with threadpoolctl.threadpool_limits(2, "blas"):
        usual, seen = blas_threads(), []

        def fits():
            with parallel.one_blas_thread():
                seen.append(blas_threads())

        other = threading.Thread(target=fits)
        other.start()
        other.join()
        assert seen == [[1] * len(usual)] and blas_threads() == usual


def test_the_number_of_threads_for_loops_is_not_blas_own():
    usual = blas_threads()
    env.set_threads(1)
    try:
        assert blas_threads() == usual
    finally:
        env.set_threads(None)


def test_blas_starts_no_threads_in_a_process_of_rfx():
    code = (
        "from rfx import env; env.own_process(); import numpy, scipy.linalg, threadpoolctl;"
        " print([own['num_threads'] for own in "
    )
    code += "threadpoolctl.threadpool_info() if own['user_api'] == 'blas'])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert set(done.stdout.strip("[]\n").split(", ")) <= {"1", ""}


# ---------------------------------------------------------------------------- the number of threads


@pytest.mark.parametrize("asked", [1, 10_000])
def test_more_threads_than_cores_are_not_made(tmp_path, asked):
    rows = "".join(f"{k % 2} 1:{k} 2:{k % 7}\n" for k in range(40))
    (tmp_path / "rows.svm").write_text(rows)
    words = [
        "train",
        "--method",
        "rf",
        "--data",
        str(tmp_path / "rows.svm"),
        "--lam",
        "1",
        "--gamma",
        "1",
        "--n-features",
        "10",
        "--quiet",
    ]
    try:
        done = CliRunner().invoke(cli, [*words, "--threads", str(asked)])
        assert done.exit_code == 0 and env.threads() == min(asked, env.cores())
        assert (f"rfx: --threads is {asked}, but" in done.stderr) == (asked > env.cores())
    finally:
        env.set_threads(None)


@pytest.mark.parametrize(
    "files, group, cores",
    [
        ({"a/cpu.max": "150000 100000", "cpu.max": "max 100000"}, "0::/a", 2),
        ({"a/b/cpu.max": "max 100000", "a/cpu.max": "100000 100000"}, "0::/a/b", 1),
        ({"cpu.max": "a quota"}, "0::/", math.inf),
        ({}, "3:cpuset:/a", math.inf),
    ],
)
def test_cores_are_those_that_a_container_may_use(tmp_path, files, group, cores):
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text + "\n")
    (tmp_path / "own").write_text(group + "\n")
    groups = env._cgroups(str(tmp_path), str(tmp_path / "own"))
    assert min(map(env._quota, groups), default=math.inf) == cores


def test_a_system_without_control_groups(tmp_path):
    assert env._cgroups(str(tmp_path), str(tmp_path / "missing")) == []


LIMITED = """
import resource, sys
import numpy as np
import scipy.linalg
from rfx import parallel
square, out = (np.asfortranarray(np.eye(300)) for _ in range(2))
size = parallel._process_size()
resource.setrlimit(resource.RLIMIT_AS, (size + int(sys.argv[1]) * 2**20,) * 2)
with parallel.one_blas_thread():
    # as much as is left: BLAS has its buffers already
    left, taken = 1 << 26, []
    while left >= 1 << 16:
        try:
            taken.append(bytearray(left))
        except MemoryError:
            left //= 2
    np.matmul(square, square, out=out)
    scipy.linalg.blas.dgemm(1.0, square, square, beta=0.0, c=out, overwrite_c=1)
print("done")
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="/proc says how large it is")
@pytest.mark.parametrize(("megabytes", "refused"), [(40, True), (400, False)])
def test_blas_is_not_left_without_memory_for_its_buffers(megabytes, refused):
    # OpenBLAS would retry forever
    one = os.environ | {
        "OPENBLAS_NUM_THREADS": "1",
        "PYTHONPATH": str(Path(rfx.__file__).parents[1]),
    }
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, str(megabytes)],
        env=one,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert refused == ("leaves less than the" in done.stderr and "raise it" in done.stderr), done
    assert refused != done.stdout.startswith("done"), done
