"""Shared loops: the same bits for any number of threads, no waiting for a thread that gets no time,
and safe forks.
"""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import joblib
import numpy as np
import pytest
import threadpoolctl
from shell import run
from sklearn.model_selection import GridSearchCV

from rfx import env, estimators, parallel
from rfx.methods import create

pytestmark = pytest.mark.threads

# one for each kind of loop: kernels, features, bins, columns
NAMES = ["KernelClassifier", "RFClassifier", "RBClassifier", "SparseRFClassifier"]


@pytest.fixture(scope="module")
def X():
    return np.random.default_rng(0).normal(size=(120, 5))


@pytest.fixture(scope="module")
def y(X):
    """Two classes of X."""
    return (X[:, 0] * X[:, 1] > 0).astype(int)


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
def test_a_fork_after_a_fit_fits_and_predicts(two_threads, name, X, y):
    fitted = made(name).fit(X, y)
    before = fitted.predict(X)

    def child():
        assert np.array_equal(fitted.predict(X), before)
        assert np.array_equal(made(name).fit(X, y).predict(X), before)

    assert ended(child)
    assert np.array_equal(fitted.predict(X), before)


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["loky", "multiprocessing"])
def test_grid_search_in_two_processes_after_a_fit(two_threads, backend, X, y):
    made("KernelClassifier").fit(X, y)
    search = partial(GridSearchCV, made("KernelClassifier"), {"lam": [0.1, 1.0]}, cv=2)
    alone = search().fit(X, y).cv_results_["mean_test_score"]
    with joblib.parallel_config(backend=backend):
        found = search(n_jobs=2).fit(X, y).cv_results_["mean_test_score"]
    assert found.tolist() == alone.tolist()


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


def test_an_error_is_raised_when_no_part_is_running(two_threads):
    begun, ended = [], []

    def part(start, stop):
        begun.append(start)
        if start == 0:
            raise ValueError(start)
        time.sleep(0.05)
        ended.append(start)

    with pytest.raises(ValueError, match="^0$"):
        parallel.for_ranges(part, 8, parts=4)
    assert sorted(begun) == [0, *sorted(ended)]


def test_the_caller_does_the_parts_that_no_other_thread_has_time_for(two_threads):
    release = threading.Event()
    busy = parallel._helpers(1).submit(release.wait, 60)
    try:
        found = parallel.for_ranges(lambda a, b: threading.get_ident(), 8, parts=4)
    finally:
        release.set()
    assert found == [threading.get_ident()] * 4 and busy.result()


@pytest.mark.parametrize(
    ("work", "threads", "seconds"), [(parallel._FEW - 1, 1, 0.5), (parallel._FEW, 2, 60)]
)
def test_few_multiplications_are_not_shared_out(work, threads, seconds):
    """The first part waits for another thread to begin the second."""
    env.set_threads(2)
    meeting = threading.Barrier(2)

    def part(start, stop):
        with contextlib.suppress(threading.BrokenBarrierError):
            meeting.wait(seconds)
        return threading.get_ident()

    assert len(set(parallel.for_ranges(part, 8, parts=2, work=work))) == threads


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
def test_a_gram_matrix_by_any_number_of_threads(shared_out, by_threads, dtype, shape, rng):
    A = rng.normal(size=shape).astype(dtype)

    def gram():
        sums = np.asfortranarray(np.triu(np.ones((shape[1], shape[1]), dtype)))
        parallel.add_gram(A, sums)
        return np.triu(sums)

    one, *others = by_threads(gram, (1, 2, 3))
    wide, atol = A.astype(np.float64), 1e-3 if dtype == np.float32 else 1e-10
    np.testing.assert_allclose(one, np.triu(1 + wide.T @ wide), rtol=0, atol=atol)
    for other in others:
        assert np.array_equal(one, other)


# ---------------------------------------------------------------------------- BLAS


def test_blas_has_one_thread_in_a_fit_and_its_own_number_afterwards(X, y):
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

    def fits():
        with parallel.one_blas_thread():
            return blas_threads()

    with threadpoolctl.threadpool_limits(2, "blas"), ThreadPoolExecutor(1) as pool:
        usual = blas_threads()
        assert pool.submit(fits).result() == [1] * len(usual)
        assert blas_threads() == usual


def test_blas_starts_no_threads_in_a_process_of_rfx():
    code = (
        "from rfx import env; env.own_process(); import numpy, scipy.linalg, threadpoolctl;"
        " print({own['num_threads'] for own in threadpoolctl.threadpool_info()"
        " if own['user_api'] == 'blas'} <= {1})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "True\n"


# ---------------------------------------------------------------------------- the number of threads


@pytest.mark.parametrize("asked", [1, 10_000])
def test_more_threads_than_cores_are_not_made(tmp_path, capfd, asked):
    path = tmp_path / "rows.svm"
    path.write_text("".join(f"{k % 2} 1:{k} 2:{k % 7}\n" for k in range(40)))
    words = "train --method rf --lam 1 --gamma 1 --n-features 10 --quiet --data".split()
    code, *_ = run(capfd, *words, path, "--threads", asked)
    assert (code, env.threads()) == (0, min(asked, env.cores()))
