"""A cluster started by hand, as docs/distributed.md describes it: a scheduler and workers, each a
process that can be killed.
"""

import re
import subprocess
import sys
import time


def dask(*words, before=()) -> subprocess.Popen:
    """`dask WORDS` with its log in a pipe; before: a command that runs it, such as `ip netns exec
    NAME`.
    """
    words = [*before, sys.executable, "-m", "dask", *map(str, words)]
    return subprocess.Popen(
        words,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


class Cluster:
    """A scheduler at a free port of this machine; `add` starts a worker. All processes end with the
    block.
    """

    def __init__(self, host="127.0.0.1"):
        self.scheduler = dask(
            "scheduler",
            "--host",
            host,
            "--port",
            0,
            "--no-dashboard",
            "--dashboard-address",
            f"{host}:0",
        )
        self.address = self._told(self.scheduler, r"Scheduler at: +(tcp://\S+)")
        self.workers = []

    def add(self, *more, before=()) -> subprocess.Popen:
        """A worker with one thread, ready to work, without the nanny that would restart it."""
        words = (
            "--no-nanny",
            "--nthreads",
            1,
            "--no-dashboard",
            "--dashboard-address",
            ":0",
            *more,
        )
        worker = dask("worker", self.address, *words, before=before)
        self.workers.append(worker)
        self._told(worker, "Registered to: +(.*)")
        return worker

    def _told(self, process, pattern) -> str:
        said, end = "", time.monotonic() + 60
        for line in process.stderr:
            said += line
            if found := re.search(pattern, line):
                return found[1]
            if time.monotonic() > end:
                break
        process.kill()
        raise AssertionError(f"it never said {pattern}: {said[-2000:]}")

    def __enter__(self):
        return self

    def __exit__(self, *error):
        for process in [*self.workers, self.scheduler]:
            process.kill()
            process.wait()
            process.stderr.close()
