"""The child of rfx.solvers.published.backend: maps the problem, calls the C library and writes the
result.
"""

from __future__ import annotations

import ctypes
import json
import mmap
import os
import sys
from typing import Any

import numpy as np

from rfx import env, lazy
from rfx.solvers.published.backend import NODE, Job, LiblinearJob, LibsvmJob, Machine


def map_problem(
    descriptor: int, n: int, problem: Any, node: type[ctypes.Structure]
) -> tuple[mmap.mmap, np.ndarray]:
    """Point the C problem to the memory file of n rows of `node`; return the objects that must stay
    alive meanwhile.
    """
    problem.l = n
    # a private mapping: changes by the library stay here
    memory = mmap.mmap(descriptor, 0, access=mmap.ACCESS_COPY)
    base = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    offsets = np.frombuffer(memory, np.int64, n + 1, 8 * n)
    first_node = base + 8 * (2 * n + 1)
    rows = (first_node + offsets[:-1] * NODE.itemsize).astype(np.uint64)
    problem.y = ctypes.cast(base, ctypes.POINTER(ctypes.c_double))
    pointers = ctypes.POINTER(ctypes.POINTER(node))
    problem.x = ctypes.cast(rows.ctypes.data, pointers)
    return memory, rows


def _labels(model: Any) -> np.ndarray:
    """The labels of a model; none for regression."""
    if not model.label:
        return np.empty(0, np.int32)
    return np.ctypeslib.as_array(model.label, shape=(model.nr_class,))


def run_liblinear(descriptor: int, job: LiblinearJob) -> Machine:
    binding = lazy.liblinear
    problem = binding.problem.__new__(binding.problem)
    keep = map_problem(descriptor, job.n, problem, binding.feature_node)
    problem.n = job.n_columns
    problem.bias = -1.0
    parameter = binding.parameter(f"-s {job.solver} -c {job.C!r} -e {job.eps!r} -p 0 -B -1")
    found = binding.liblinear.train(ctypes.byref(problem), ctypes.byref(parameter))
    model = found.contents
    count = model.nr_class if model.nr_class > 2 else 1
    coef = np.ctypeslib.as_array(model.w, shape=(job.n_columns * count,))
    del keep
    none = np.empty(0, np.int32)
    return Machine(coef.reshape(-1, count), _labels(model), none, np.zeros(()))


def run_libsvm(descriptor: int, job: LibsvmJob) -> Machine:
    binding = lazy.libsvm
    problem = binding.svm_problem.__new__(binding.svm_problem)
    keep = map_problem(descriptor, job.n, problem, binding.svm_node)
    text = (
        f"-s {job.svm_type} -t {job.kernel_type} -g {job.gamma!r} -c {job.C!r} -p {job.tube!r}"
        f" -e {job.eps!r} -m {job.cache_mb!r}"
    )
    parameter = binding.svm_parameter(text)
    found = binding.libsvm.svm_train(ctypes.byref(problem), ctypes.byref(parameter))
    model = found.contents
    # without support vectors, these are null pointers
    coef = np.empty(0)
    indices = np.empty(0, np.int32)
    if model.l:
        coef = np.ctypeslib.as_array(model.sv_coef[0], shape=(model.l,))
        indices = np.ctypeslib.as_array(model.sv_indices, shape=(model.l,))
    del keep
    return Machine(coef, _labels(model), indices, np.array(model.rho[0]))


def run(program: str, job: str, descriptor: int) -> Machine:
    """The result of a program for a job in JSON."""
    fields = json.loads(job)
    if program == LiblinearJob.program:
        linear = LiblinearJob(**fields)
        seed_random_numbers(linear)
        return run_liblinear(descriptor, linear)
    svm = LibsvmJob(**fields)
    seed_random_numbers(svm)
    return run_libsvm(descriptor, svm)


def seed_random_numbers(job: Job) -> None:
    """Both libraries use C's rand()."""
    ctypes.CDLL(None).srand(ctypes.c_uint(job.seed & 0xFFFFFFFF))


def main() -> None:
    program, job, parent, problem, result = sys.argv[1:]
    env.die_with(int(parent))
    machine = run(program, job, int(problem))
    with os.fdopen(int(result), "wb") as file:
        np.savez(file, peak_mb=np.array(env.peak_rss_mb()), **vars(machine))


if __name__ == "__main__":
    main()
