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
from rfx.solvers.published.backend import NODE


def map_problem(
    descriptor: int, job: dict[str, Any], problem: Any, node: type[ctypes.Structure]
) -> tuple[Any, ...]:
    """Point the C problem to the memory file, rows of `node`; return the objects that must stay
    alive meanwhile.
    """
    n = problem.l = job["n"]
    # a private mapping: changes by the library stay here
    memory = mmap.mmap(descriptor, 0, access=mmap.ACCESS_COPY)
    base = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    offsets = np.frombuffer(memory, np.int64, n + 1, 8 * n)
    rows = (base + 8 * (2 * n + 1) + offsets[:-1] * NODE.itemsize).astype(np.uint64)
    problem.y = ctypes.cast(base, ctypes.POINTER(ctypes.c_double))
    problem.x = ctypes.cast(rows.ctypes.data, ctypes.POINTER(ctypes.POINTER(node)))
    return memory, rows


def _labels(model: Any) -> np.ndarray:
    """The labels of a model; none for regression."""
    if not model.label:
        return np.empty(0, np.int32)
    return np.ctypeslib.as_array(model.label, shape=(model.nr_class,))


def run_liblinear(descriptor: int, job: dict[str, Any]) -> dict[str, np.ndarray]:
    binding = lazy.liblinear
    problem = binding.problem.__new__(binding.problem)
    keep = map_problem(descriptor, job, problem, binding.feature_node)
    problem.n, problem.bias = job["n_columns"], -1.0
    parameter = binding.parameter(
        f"-s {job['solver']} -c {job['C']!r} -e {job['eps']!r} -p 0 -B -1"
    )
    model = binding.liblinear.train(ctypes.byref(problem), ctypes.byref(parameter)).contents
    count = model.nr_class if model.nr_class > 2 else 1
    coef = np.ctypeslib.as_array(model.w, shape=(job["n_columns"] * count,)).reshape(-1, count)
    del keep
    return {"coef": coef, "labels": _labels(model)}


def run_libsvm(descriptor: int, job: dict[str, Any]) -> dict[str, np.ndarray]:
    binding = lazy.libsvm
    problem = binding.svm_problem.__new__(binding.svm_problem)
    keep = map_problem(descriptor, job, problem, binding.svm_node)
    text = (
        f"-s {job['svm_type']} -t {job['kernel_type']} -g {job['gamma']!r} -c {job['C']!r}"
        f" -p {job['tube']!r} -e {job['eps']!r} -m {job['cache_mb']!r}"
    )
    parameter = binding.svm_parameter(text)
    model = binding.libsvm.svm_train(ctypes.byref(problem), ctypes.byref(parameter)).contents
    count = model.l
    coef = np.ctypeslib.as_array(model.sv_coef[0], shape=(count,)) if count else np.empty(0)
    indices = (
        np.ctypeslib.as_array(model.sv_indices, shape=(count,)) if count else np.empty(0, np.int32)
    )
    del keep
    return {
        "coef": coef,
        "indices": indices,
        "labels": _labels(model),
        "rho": np.array(model.rho[0]),
    }


def main() -> None:
    problem, result, job = int(sys.argv[1]), int(sys.argv[2]), json.loads(sys.argv[3])
    env.die_with(job["parent"])
    # both libraries use C's rand()
    ctypes.CDLL(None).srand(ctypes.c_uint(job["seed"] & 0xFFFFFFFF))
    arrays = {"LIBLINEAR": run_liblinear, "LIBSVM": run_libsvm}[job["program"]](problem, job)
    with os.fdopen(result, "wb") as file:
        found: dict[str, Any] = {"peak_mb": np.array(env.peak_rss_mb()), **arrays}
        np.savez(file, **found)


if __name__ == "__main__":
    main()
