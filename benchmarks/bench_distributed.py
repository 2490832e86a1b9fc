"""Training over rows on workers (`rfx train --scheduler`): two workers beside one and beside one
process, bytes a step, growth with N.

    python benchmarks/bench_distributed.py speed     covtype in full, D = 2,000, --pairs turns
    python benchmarks/bench_distributed.py bytes     what travels for N, 2N and 4N rows
    python benchmarks/bench_distributed.py growth    5, 10 and 20 million rows, workers of 1 GB
    python benchmarks/bench_distributed.py growth --rows 200000 400000

Every number is of processes of their own; the load of the machine is printed beside it. `growth`
writes about a gigabyte to --folder.
"""

import argparse
import json
import os
import resource
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from pairs import add_pairs, machine, ratios, spread, turns

ONE_GB = 10**9
TCP_INFO, ACKED, RECEIVED = 11, 120, 128  # of Linux's struct tcp_info, since 4.1


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "what",
        nargs="*",
        choices=["speed", "bytes", "growth"],
        default=["speed", "bytes", "growth"],
    )
    parser.add_argument(
        "--folder",
        type=Path,
        default=None,
        help="Where the rows are written; by default a temporary folder.",
    )
    parser.add_argument(
        "--rows",
        type=int,
        nargs="+",
        default=[5_000_000, 10_000_000, 20_000_000],
        help="Of growth.",
    )
    add_pairs(parser)
    parser.add_argument("--loss", default="squared_hinge")
    options = parser.parse_args()
    print(machine())
    folder = Path(tempfile.mkdtemp(dir=options.folder))
    try:
        for name in options.what:
            {"speed": speed, "bytes": traffic_of_steps, "growth": growth}[name](options, folder)
    finally:
        shutil.rmtree(folder)


def train(*words, threads=None):
    """The row of one `rfx train` in a process of its own, with its wall seconds and the
    processor seconds of all its processes.
    """
    line = [
        sys.executable,
        "-m",
        "rfx",
        "train",
        *words,
        "--json",
        "--quiet",
        *(["--threads", str(threads)] if threads else []),
    ]
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(line, capture_output=True, text=True)
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode not in (0, 3):
        sys.exit(done.stderr)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return json.loads(done.stdout) | {"wall": wall, "cpu": cpu}


def load() -> str:
    return f"load {os.getloadavg()[0]:.1f}"


# ---------------------------------------------------------------------- speed


def speed(options, folder):
    """Covtype's 464,810 training rows: seconds of training, without the reading of text
    that both do beforehand.
    """
    from rfx.data import load as rows_of
    from rfx.data.libsvm import svmlight

    split = rows_of("covtype", split="yen2014")
    path = folder / "covtype.svm"
    svmlight.write(path, split.X_train, split.y_train)
    words = [
        "--method",
        "rf",
        "--data",
        str(path),
        "--n-features",
        "2000",
        "--lam",
        "1",
        "--loss",
        options.loss,
        "--task",
        "binary",
    ]
    words += ["--kernel", "laplacian", "--gamma", "0.5", "--scaling", "minmax11"]
    print(
        f"\ncovtype: {split.X_train.shape[0]:,} rows, Laplacian, gamma 0.5, D = 2,000,"
        f" {options.loss}\n"
    )
    runs = {
        "one process, 2 threads": ([], 2),
        "one process, 1 thread": ([], 1),
        "1 worker": (["--scheduler", "local:1"], None),
        "2 workers": (["--scheduler", "local:2"], None),
    }

    def run(name):
        more, threads = runs[name]
        row = train(*words, *more, threads=threads)
        row["training"] = (
            row["seconds_fit"] + row["seconds_features"] - row["params"].get("seconds_read", 0.0)
        )
        return row

    found = turns(runs, run, options.pairs)
    print(
        "| | training, s | whole command, s | processor s | objective | relative gap | training"
        " beside 2 workers |"
    )
    print("|---|---:|---:|---:|---:|---:|---:|")
    for name, rows in found.items():
        cells = [spread([row[what] for row in rows], ".1f") for what in ("training", "wall", "cpu")]
        objective, gap = rows[0]["objective"], rows[0]["gap"]
        beside = ratios(rows, found["2 workers"], "training", ".2f")
        print(
            f"| {name} | {' | '.join(cells)} | {objective:.9g} | {gap / objective:.1e} | {beside} |"
        )


# ---------------------------------------------------------------------- bytes


def traffic() -> int:
    """Bytes that the TCP connections of this process have sent and received."""
    total = 0
    for name in os.listdir("/proc/self/fd"):
        try:
            if not os.readlink(f"/proc/self/fd/{name}").startswith("socket:"):
                continue
            with socket.socket(fileno=os.dup(int(name))) as own:
                if own.type == socket.SOCK_STREAM and own.family in (
                    socket.AF_INET,
                    socket.AF_INET6,
                ):
                    info = own.getsockopt(socket.IPPROTO_TCP, TCP_INFO, 192)
                    total += sum(struct.unpack_from("Q", info, at)[0] for at in (ACKED, RECEIVED))
        except OSError:
            continue
    return total


def traffic_of_steps(options, folder):
    """Bytes into and out of two workers, for a step of conjugate gradients and for a pass
    with predictions, value and gradient.
    """
    from rfx.data import ranges
    from rfx.data.transforms.scaling import Scaler
    from rfx.distributed import cluster
    from rfx.distributed.rows import DistributedRows
    from rfx.distributed.workers import Workers
    from rfx.features import sample
    from rfx.losses import SquaredHinge

    columns, turns = 2000, 20
    print(f"bytes in and out of two workers, D = {columns:,}, 8 D = {8 * columns:,}")
    with cluster.connect("local:2") as client:
        workers = Workers(client)
        for count in (50_000, 100_000, 200_000):
            path = folder / f"{count}.svm"
            write(path, count, 0)
            pieces = ranges.cut([ranges.measured(path)], 2)
            rows = DistributedRows(
                workers, [ranges.Pieces(ranges.LibsvmRanges(), own) for own in pieces]
            )
            rows = rows.scaled(Scaler.fit(rows, "minmax01"), np.float32)
            Z, w = (
                rows.features(sample("gaussian", 5, columns, 0, gamma=1.0)).hold(),
                np.ones(columns),
            )
            y = rows.y
            line = [f"N = {count:>9,}"]
            for name, step in (
                ("normal", lambda: Z.normal(w)),
                ("loss_pass", lambda: Z.loss_pass(w, SquaredHinge, y)),
            ):
                step()
                before = sum(client.run(traffic).values())
                for _ in range(turns):
                    step()
                line.append(f"{name} {(sum(client.run(traffic).values()) - before) / turns:12,.0f}")
            print("  ".join(line), " ", load(), flush=True)


# ---------------------------------------------------------------------- growth


def write(path, count: int, seed: int):
    """LIBSVM text of `count` rows of 5 inputs, three digits each, in lines of equal length."""
    rng = np.random.default_rng(seed)
    line = b"+1 1:0.000 2:0.000 3:0.000 4:0.000 5:0.000\n"
    with open(path, "wb") as file:
        for start in range(0, count, 1 << 18):
            size = min(1 << 18, count - start)
            values = rng.integers(0, 1000, size=(size, 5))
            text = np.tile(np.frombuffer(line, np.uint8), (size, 1))
            x = values / 1000
            text[:, 0] = np.where(
                np.sin(4 * x[:, 0]) + x[:, 1] * x[:, 2] - x[:, 3] ** 2 > 0.6, ord("+"), ord("-")
            )
            for j in range(5):
                for place, power in enumerate((100, 10, 1)):
                    text[:, 7 + 8 * j + place] = ord("0") + values[:, j] // power % 10
            file.write(text.tobytes())


def growth(options, folder):
    """Seconds over the rows, workers of 1 GB; the exponent is the slope of their logarithms."""
    from distributed import Client, LocalCluster

    from rfx import env

    files, most = 40, max(options.rows)
    for number in range(files):
        write(folder / f"{number:02}.svm", most // files, number)
    size = sum(path.stat().st_size for path in folder.glob("??.svm"))
    print(
        f"{most:,} rows in {files} files, {size / 1e6:,.0f} MB; rf, {options.loss}, D = 1,000, two"
        " workers of 1 GB"
    )
    found = []
    for count in sorted(options.rows):
        share = folder / str(count)
        share.mkdir()
        for path in sorted(folder.glob("??.svm"))[: files * count // most]:
            (share / path.name).symlink_to(path)
        words = [
            "--method",
            "rf",
            "--n-features",
            "1000",
            "--lam",
            "1",
            "--loss",
            options.loss,
            "--task",
            "binary",
        ]
        cluster = LocalCluster(
            n_workers=2, threads_per_worker=1, memory_limit=ONE_GB, dashboard_address=None
        )
        with cluster, Client(cluster) as client:
            row = train(
                *words,
                "--data",
                str(share),
                "--scheduler",
                cluster.scheduler_address,
                "--gamma",
                "1",
            )
            workers = client.run(lambda: (sum(os.times()[:2]), env.peak_rss_mb()))
        cpu, peak = sum(own[0] for own in workers.values()), max(own[1] for own in workers.values())
        found.append((count, row["wall"], cpu + row["cpu"]))
        print(
            f"N = {count:>11,}: whole command {row['wall']:7.1f} s, processors {cpu:7.1f} s on"
            f" workers and {row['cpu']:5.1f} s here, peak of a worker {peak:,.0f} MiB,"
            f" {row['n_iter']} Newton steps, gap {row['gap'] / row['objective']:.1e}, {load()}",
            flush=True,
        )
    for place, name in ((1, "wall"), (2, "processor")):
        slope = np.polyfit(
            np.log([own[0] for own in found]), np.log([own[place] for own in found]), 1
        )[0]
        print(f"exponent of {name} seconds in N: {slope:.2f}")


if __name__ == "__main__":
    main()
