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
from typing import Any

import numpy as np
import scipy.sparse as sp

from rfx import env
from rfx.errors import OutOfTime, RfxError, UsageError
from rfx.solvers.base import Budget, Recorder

# Maximum fraction of the free memory for a problem: the features, the program and other processes
# also need some.
SHARE = 0.8
NODE = np.dtype([("index", "<i4"), ("value", "<f8")], align=True)


class NodeFile:
    """Rows of (index, value) nodes in an anonymous memory file: y, row offsets, then the
    nodes with their terminators.
    """

    def __init__(self, y: np.ndarray, row_lengths: np.ndarray) -> None:
        """y: (n,) targets; row_lengths: (n,) numbers of nodes per row, excluding terminators."""
        self.n = len(y)
        offsets = np.concatenate([[0], np.cumsum(np.asarray(row_lengths, dtype=np.int64) + 1)])
        head = 8 * (2 * self.n + 1)
        size = head + int(offsets[-1]) * NODE.itemsize
        # exceeding shared memory raises no error: the kernel kills a process
        if size / 2**20 > SHARE * env.available_memory_mb():
            raise RfxError(
                f"the back end needs {size / 2**30:.1f} GiB for this problem, but"
                f" {env.available_memory_mb() / 1024:.1f} GiB are free; use fewer rows or"
                " features, or omit --solver"
            )
        self.descriptor = os.memfd_create("rfx-problem")
        os.truncate(self.descriptor, size)
        self.memory = mmap.mmap(self.descriptor, size)
        self.offsets = np.frombuffer(self.memory, np.int64, self.n + 1, 8 * self.n)
        self.nodes = np.frombuffer(self.memory, NODE, int(offsets[-1]), head)
        np.frombuffer(self.memory, np.float64, self.n)[:] = y
        self.offsets[:] = offsets
        self.nodes["index"][offsets[1:] - 1] = -1

    def set_dense(self, rows: slice, Z: np.ndarray, first_index: int = 1) -> None:
        """Fill rows from a dense (b, D) block."""
        width = Z.shape[1] + 1
        start = self.offsets[rows.start]
        part = self.nodes[start : start + Z.shape[0] * width].reshape(Z.shape[0], width)
        part["index"][:, :-1] = np.arange(first_index, first_index + Z.shape[1])
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


def from_blocks(blocks: Any, y: np.ndarray) -> NodeFile:
    """The node file of a feature matrix or of a CSR matrix."""
    if sp.issparse(blocks):
        file = NodeFile(y, np.diff(blocks.indptr))
        file.set_sparse(blocks)
        return file
    file = NodeFile(y, np.full(blocks.shape[0], blocks.shape[1]))
    for rows, Z in blocks.row_blocks():
        file.set_dense(rows, Z)
    return file


def check(solver: str, y: np.ndarray) -> None:
    """Raise an error for labels of a single class."""
    if len(np.unique(y)) < 2:
        raise UsageError(f"solver {solver} needs rows of both classes; omit --solver")


def ending(
    record: Recorder, coef: np.ndarray, objective: float, gap: float, n_iter: int, printed: str
) -> dict[str, Any]:
    """The fields of a Solution except coef, reported to the recorder: converged unless the program
    reports that it gave up.
    """
    record(lambda: coef, iteration=n_iter, objective=objective, gap=gap)
    status = "max_iter" if "reaching max number" in printed else "converged"
    return {
        "objective": objective,
        "gap": gap,
        "n_iter": n_iter,
        "status": status,
        "trace": record.trace,
    }


def run(
    problem: NodeFile, job: dict[str, Any], budget: Budget
) -> tuple[dict[str, np.ndarray], str]:
    """Run one job in a child: its result, arrays by name, and its output. The problem is closed.

    Raises OutOfTime at the budget's deadline and RfxError if the child dies. An interrupt kills the
    child.
    """
    result = tempfile.TemporaryFile()
    job = job | {"parent": os.getpid()}
    command = [
        sys.executable,
        "-m",
        "rfx.solvers.published.child",
        str(problem.descriptor),
        str(result.fileno()),
        json.dumps(job),
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
            raise OutOfTime(f"{job['program']} did not end within --timeout") from None
        finally:
            if child.poll() is None:
                child.kill()
                child.communicate()
        if child.returncode != 0:
            last = printed.strip().splitlines()[-1:] or ["it printed nothing"]
            raise RfxError(f"{job['program']} ended with code {child.returncode}: {last[0]}")
        result.seek(0)
        with np.load(result, allow_pickle=False) as arrays:
            env.count_child(float(arrays["peak_mb"]))
            return {name: arrays[name] for name in arrays.files}, printed
    finally:
        result.close()
        problem.close()
