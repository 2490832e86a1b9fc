"""Run LIBLINEAR and LIBSVM in a child process, isolated from Ctrl-C, memory errors and printing.

The problem is passed as an anonymous memory file in the layout of the C programs, (index, value)
nodes of 16 bytes, so the child copies nothing. The child's output is captured and searched for
warnings that the programs only print.
"""

from __future__ import annotations

import json
import mmap
import os
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from typing import ClassVar

import numpy as np
import scipy.sparse as sp

from rfx import env
from rfx.errors import OutOfTime, RfxError, UsageError
from rfx.operators.binned import BinnedMatrix
from rfx.operators.matrix import Matrix
from rfx.operators.sparse import SparseMatrix
from rfx.solvers.base import Budget, Recorder, Solution

# Maximum fraction of the free memory for a problem: the features, the program and other processes
# also need some.
SHARE = 0.8
NODE = np.dtype([("index", "<i4"), ("value", "<f8")], align=True)


@dataclass(frozen=True)
class Job:
    """What a program is asked for, beside the rows; n: their number. The rest is named as its
    options.
    """

    program: ClassVar[str]
    n: int
    C: float
    eps: float
    seed: int


@dataclass(frozen=True)
class LiblinearJob(Job):
    program = "LIBLINEAR"
    n_columns: int
    solver: int


@dataclass(frozen=True)
class LibsvmJob(Job):
    program = "LIBSVM"
    svm_type: int
    tube: float
    kernel_type: int
    gamma: float
    cache_mb: float


@dataclass(frozen=True)
class Machine:
    """What a program found.

    coef: (n_columns, outputs), or the coefficients (m,) of the support vectors. labels: of the
    classes, in the program's order; none for regression. indices: (m,) numbers of the support
    vectors, from 1. rho: minus the intercept, an array of one number.
    """

    coef: np.ndarray
    labels: np.ndarray
    indices: np.ndarray
    rho: np.ndarray

    @property
    def sign(self) -> float:
        """-1 if the coefficients refer to the negative class, which the program lists first."""
        return -1.0 if len(self.labels) and self.labels[0] <= 0 else 1.0


class NodeFile:
    """Rows of (index, value) nodes in an anonymous memory file: y, row offsets, then the
    nodes with their terminators.
    """

    def __init__(self, y: np.ndarray, row_lengths: np.ndarray) -> None:
        """y: (n,) targets; row_lengths: (n,) numbers of nodes per row, excluding terminators."""
        self.n = len(y)
        # with the terminators
        lengths = np.asarray(row_lengths, dtype=np.int64) + 1
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        n_nodes = int(offsets[-1])
        head = 8 * (2 * self.n + 1)
        size = head + n_nodes * NODE.itemsize
        free_mb = env.available_memory_mb()
        # exceeding shared memory raises no error: the kernel kills a process
        if size / 2**20 > SHARE * free_mb:
            raise RfxError(
                f"the back end needs {size / 2**30:.1f} GiB for this problem, but"
                f" {free_mb / 1024:.1f} GiB are free; use fewer rows or features, or omit --solver"
            )
        self.descriptor = os.memfd_create("rfx-problem")
        os.truncate(self.descriptor, size)
        self.memory = mmap.mmap(self.descriptor, size)
        self.offsets = np.frombuffer(self.memory, np.int64, self.n + 1, 8 * self.n)
        self.nodes = np.frombuffer(self.memory, NODE, n_nodes, head)
        targets = np.frombuffer(self.memory, np.float64, self.n)
        targets[:] = y
        self.offsets[:] = offsets
        self.nodes["index"][offsets[1:] - 1] = -1

    def set_dense(self, rows: slice, Z: np.ndarray, first_index: int = 1) -> None:
        """Fill rows from a dense (b, D) block."""
        n_rows, n_columns = Z.shape
        width = n_columns + 1
        start = self.offsets[rows.start]
        part = self.nodes[start : start + n_rows * width].reshape(n_rows, width)
        part["index"][:, :-1] = np.arange(first_index, first_index + n_columns)
        part["value"][:, :-1] = Z

    def set_sparse(self, Z: sp.csr_matrix) -> None:
        """Fill all rows from an (n, D) CSR matrix."""
        target = np.arange(Z.nnz) + np.repeat(np.arange(self.n), np.diff(Z.indptr))
        self.nodes["index"][target] = Z.indices + 1
        self.nodes["value"][target] = Z.data

    def close(self) -> None:
        del self.offsets, self.nodes
        self.memory.close()
        os.close(self.descriptor)


def from_csr(Z: sp.csr_matrix, y: np.ndarray) -> NodeFile:
    """The node file of a CSR matrix."""
    file = NodeFile(y, np.diff(Z.indptr))
    file.set_sparse(Z)
    return file


def from_matrix(Z: Matrix, y: np.ndarray) -> NodeFile:
    """The node file of a feature matrix."""
    if isinstance(Z, (BinnedMatrix, SparseMatrix)):
        return from_csr(Z.to_csr(), y)
    n_rows, n_columns = Z.shape
    file = NodeFile(y, np.full(n_rows, n_columns))
    for rows, block in Z.row_blocks():
        assert isinstance(rows, slice)
        file.set_dense(rows, block)
    return file


def check(solver: str, y: np.ndarray) -> None:
    """Raise an error for labels of a single class."""
    if len(np.unique(y)) < 2:
        raise UsageError(f"solver {solver} needs rows of both classes; omit --solver")


def ending(
    record: Recorder, coef: np.ndarray, objective: float, gap: float, n_iter: int, printed: str
) -> Solution:
    """The solution, reported to the recorder: converged unless the program reports that it gave
    up.
    """
    record(lambda: coef, iteration=n_iter, objective=objective, gap=gap)
    status = "max_iter" if "reaching max number" in printed else "converged"
    return Solution(coef, objective, gap, n_iter, status, record.trace)


def run(problem: NodeFile, job: Job, budget: Budget) -> tuple[Machine, str]:
    """Run one job in a child: its result and its output. The problem is closed.

    Raises OutOfTime at the budget's deadline and RfxError if the child dies. An interrupt kills the
    child.
    """
    result = tempfile.TemporaryFile()
    command = [
        sys.executable,
        "-m",
        "rfx.solvers.published.child",
        job.program,
        json.dumps(asdict(job)),
        str(os.getpid()),
        str(problem.descriptor),
        str(result.fileno()),
    ]
    environment = os.environ | {"OMP_NUM_THREADS": str(env.threads())}
    try:
        # a separate session: Ctrl-C reaches only this process, which then kills the child
        child = subprocess.Popen(
            command,
            pass_fds=(problem.descriptor, result.fileno()),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
            env=environment,
        )
        try:
            printed, _ = child.communicate(timeout=budget.remaining())
        except subprocess.TimeoutExpired:
            raise OutOfTime(f"{job.program} did not end within --timeout") from None
        finally:
            if child.poll() is None:
                child.kill()
                child.communicate()
        if child.returncode != 0:
            last = printed.strip().splitlines()[-1:] or ["it printed nothing"]
            raise RfxError(f"{job.program} ended with code {child.returncode}: {last[0]}")
        result.seek(0)
        with np.load(result, allow_pickle=False) as file:
            arrays = dict(file)
        env.count_child(float(arrays.pop("peak_mb")))
        return Machine(**arrays), printed
    finally:
        result.close()
        problem.close()
