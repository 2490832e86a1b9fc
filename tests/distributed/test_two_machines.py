"""Workers in separate network namespaces, as on two machines: other addresses, and folders that one
of them lacks.
"""

import os
import shutil
import subprocess
from functools import partial

import pytest
from by_hand import Cluster

from rfx.distributed.pool import pool
from rfx.plans.plan import Plan
from rfx.records.run import Run
from rfx.runs import child, runner

GATE, NET = "10.213.7.1", "10.213.7.{}"


def _ip(*words):
    done = subprocess.run(["ip", *words], capture_output=True, text=True)
    if done.returncode:
        raise OSError(f"ip {' '.join(words)}: {done.stderr.strip()}")


@pytest.fixture(scope="module")
def namespaces():
    """The names of two namespaces with hosts 10.213.7.2 and .3, joined to this machine, 10.213.7.1,
    by a bridge.
    """
    if not shutil.which("ip") or os.geteuid():
        pytest.skip("network namespaces need the command ip and the rights of root")
    bridge, names = f"rfx{os.getpid()}", []
    try:
        _ip("link", "add", bridge, "type", "bridge")
        _ip("addr", "add", f"{GATE}/24", "dev", bridge)
        _ip("link", "set", bridge, "up")
        for number in (2, 3):
            name, here, there = (
                f"{bridge}-{number}",
                f"v{os.getpid()}h{number}",
                f"v{os.getpid()}n{number}",
            )
            _ip("netns", "add", name)
            names.append(name)
            _ip("link", "add", here, "type", "veth", "peer", "name", there, "netns", name)
            _ip("link", "set", here, "master", bridge, "up")
            _ip("-n", name, "addr", "add", f"{NET.format(number)}/24", "dev", there)
            _ip("-n", name, "link", "set", there, "up")
            _ip("-n", name, "link", "set", "lo", "up")
        yield names
    except OSError as error:
        pytest.skip(f"no network namespaces here: {error}")
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "del", name], capture_output=True)
        subprocess.run(["ip", "link", "del", bridge], capture_output=True)


def test_a_plan_on_two_machines_and_a_file_that_one_cannot_see(tmp_path, namespaces):
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "rows.libsvm").write_text(
        "".join(f"{1 if n % 3 else -1} 1:{n % 3} 2:{n % 7}\n" for n in range(60))
    )
    hide = f'mount -t tmpfs none "{folder}" && exec "$0" "$@"'
    with Cluster(GATE) as cluster:
        cluster.add("--host", NET.format(2), before=("ip", "netns", "exec", namespaces[0]))
        cluster.add(
            "--host",
            NET.format(3),
            before=("ip", "netns", "exec", namespaces[1], "unshare", "-m", "sh", "-c", hide),
        )
        options = {"n_features": 8, "lam": 1, "task": "binary"}
        runs = [
            Run(dataset="sphere:n=200,d=3", method="rf", seed=seed, options=options)
            for seed in range(2)
        ]
        summary = runner.run(
            Plan("p", "", "", "", runs), tmp_path / "r.csv", pool=partial(pool, cluster.address)
        )
        assert summary.count("ok") == 2
        lacking = [
            Run(dataset=str(folder / "rows.libsvm"), method="rf", seed=seed, options=options)
            for seed in range(2)
        ]
        rows = runner.run(
            Plan("p", "", "", "", lacking), tmp_path / "r.csv", pool=partial(pool, cluster.address)
        ).rows
        failed = [row for row in rows if row["status"] == "failed"]
        assert failed and all(row["params"]["error"] == child.NO_DATA for row in failed)
        (message,) = {row["message"] for row in failed}
        assert (
            message.startswith(f"worker tcp://{NET.format(3)}:")
            and f"{folder}/rows.libsvm is not here; put it where" in message
        )
