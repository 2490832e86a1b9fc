"""Threads for loops that release the GIL: numba functions compiled with nogil, numpy ufuncs, BLAS."""

from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache

from rfx import env


@lru_cache(maxsize=1)
def _pool(count: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(count, thread_name_prefix="rfx")


def for_ranges(function, size: int, smallest: int = 1, parts: int | None = None) -> list:
    """Call `function(start, stop)` over contiguous parts of range(size), one part per thread.

    Parts hold at least `smallest` items. Returns the results in the order of the parts; the first exception is raised
    when all parts have ended. The caller sees to it that parts write to disjoint places.
    """
    threads = env.threads()
    parts = max(1, min(parts or threads, size // max(1, smallest)))
    bounds = [size * part // parts for part in range(parts + 1)]
    if parts == 1 or threads == 1:
        return [function(start, stop) for start, stop in zip(bounds, bounds[1:])]
    futures = [_pool(threads).submit(function, start, stop) for start, stop in zip(bounds, bounds[1:])]
    return [future.result() for future in futures]
