"""Training on the rows of several workers (`rfx train --scheduler`): two workers against one and
against one process, bytes per step, growth with N.

    python benchmarks/bench_distributed.py speed     full covtype, D = 2,000, --pairs turns
    python benchmarks/bench_distributed.py bytes     network traffic for N, 2N and 4N rows
    python benchmarks/bench_distributed.py growth    5, 10 and 20 million rows, workers of 1 GB
    python benchmarks/bench_distributed.py growth --rows 200000 400000
    python benchmarks/bench_distributed.py simulate  cost of 10^9 rows, by a model that is
                                                     checked on measured bytes and seconds
    python benchmarks/bench_distributed.py leaves    the same for method local

Every measurement has its own processes and is printed with the load of the machine. `growth` writes
about a gigabyte to --folder.
"""

import argparse
import csv
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
# maximum rows of 1,000 features with which a solver starts in the client
CLIENT = 67_108
TCP_INFO, ACKED, RECEIVED = 11, 120, 128  # offsets in Linux's struct tcp_info, since 4.1


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "what",
        nargs="*",
        choices=[*WHAT],
        default=[*WHAT],
    )
    parser.add_argument(
        "--folder",
        type=Path,
        default=None,
        help="Folder for the rows; by default a temporary one.",
    )
    parser.add_argument(
        "--rows",
        type=int,
        nargs="+",
        default=[5_000_000, 10_000_000, 20_000_000],
        help="For growth.",
    )
    add_pairs(parser)
    parser.add_argument("--loss", default="squared_hinge")
    options = parser.parse_args()
    print(machine())
    folder = Path(tempfile.mkdtemp(dir=options.folder))
    try:
        for name in options.what:
            WHAT[name](options, folder)
    finally:
        shutil.rmtree(folder)


def train(*words, threads=None):
    """The row of one `rfx train` in its own process, with its wall seconds and the processor
    seconds of all its processes.
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
    """Seconds of training on covtype's 464,810 training rows, without reading the text, which both
    do first.
    """
    from rfx.data import libsvm
    from rfx.data import load as rows_of

    split = rows_of("covtype", split="yen2014")
    path = folder / "covtype.svm"
    libsvm.write(path, split.X_train, split.y_train)
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
    """Bytes into and out of two workers for a step of conjugate gradients, and for a pass with
    predictions, value and gradient.
    """
    from rfx.distributed import cluster
    from rfx.distributed.cluster import Workers
    from rfx.losses import SquaredHinge

    columns, turns = 2000, 20
    print(f"bytes in and out of two workers, D = {columns:,}, 8 D = {8 * columns:,}")
    with cluster.connect("local:2") as client:
        workers = Workers(client)
        for count in (50_000, 100_000, 200_000):
            Z, y = features(workers, folder, count, 2, columns)
            w = np.ones(columns)
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


def features(workers, folder, count: int, parts: int, columns: int):
    """(features, targets) of `count` rows in `parts` parts on the workers."""
    from rfx.data import stream
    from rfx.data.transforms import Scaler
    from rfx.distributed.rows import DistributedRows
    from rfx.features import sample

    path = folder / f"{count}.svm"
    if not path.exists():
        write(path, count, 0)
    pieces = stream.cut([stream.measured(path)], parts)
    rows = DistributedRows(workers, [stream.LibsvmRanges(False, own) for own in pieces])
    rows = rows.scaled(Scaler.fit(rows, "minmax01"), np.float32)
    return rows.features(sample("gaussian", 5, columns, 0, gamma=1.0)).hold(), rows.y


# ---------------------------------------------------------------------- growth


def write(path, count: int, seed: int):
    """LIBSVM text of `count` rows with 5 inputs of three digits each, in lines of equal length."""
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
    """Seconds against the number of rows with workers of 1 GB; the exponent is the slope of their
    logarithms.
    """
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


# ---------------------------------------------------------------------- simulate


def simulate(options, folder):
    """Cost of training on 10^9 rows. A model of each part of a training is fitted to small runs,
    and checked on a larger run that the fit did not use.

    A step sends and sums vectors of D numbers for each part. Its bytes and the seconds of its
    messages are linear in the number of parts. The work of a pass is linear in the number of rows.
    """
    from distributed import Client, LocalCluster

    columns, few = 1000, (8, 16, 32, 64, 256)
    print(f"rf, {options.loss}, D = {columns:,}, rows of 5 inputs, two workers")
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as local:
        with Client(local) as client:
            costs = steps(client, folder, columns, few)
            small, check = (250_000, 500_000, 1_000_000), 4_000_000
            for count in (*small, check):
                write(folder / f"{count}.svm", count, 0)
            trained(local, client, folder, small[0], options.loss)  # compiles
            runs = [trained(local, client, folder, count, options.loss) for count in small]
            measured = trained(local, client, folder, check, options.loss)
    parts = np.array(few)
    line = {name: np.polyfit(parts[:-1], values[:-1], 1) for name, values in costs.items()}
    work = np.polyfit(small, [run["cpu"] for run in runs], 1)

    def sent(run, count):
        """Bytes of the sums in a training, and of its factors."""
        factors = run["factors"] * 4 * columns**2 * count
        return run["passes"] * np.polyval(line["bytes"], count) + factors

    once = float(np.mean([run["bytes"] - sent(run, 2) for run in runs]))

    print("\n| what | parts or rows | model | measured | ratio |\n|---|---:|---:|---:|---:|")

    def compared(what, size, model, found):
        print(f"| {what} | {size:,} | {model:,.3g} | {found:,.3g} | {model / found:.2f} |")

    for name, values in costs.items():
        compared(f"{name} of a step", few[-1], np.polyval(line[name], few[-1]), values[-1])
    compared("bytes of a training", check, once + sent(measured, 2), measured["bytes"])
    compared("processor seconds of a training", check, np.polyval(work, check), measured["cpu"])

    rows, workers, count = 10**9, 100, 200
    most = {name: max(run[name] for run in (*runs, measured)) for name in ("passes", "factors")}
    seconds, messages = np.polyval(work, rows), most["passes"] * np.polyval(line["seconds"], count)
    print(
        f"\n{rows:,} rows, {workers} workers with one such core each, {count} parts,"
        f" {most['passes']} passes, {most['factors']} factors: {seconds / 3600:,.1f} processor"
        f" hours, {seconds / workers / 60:,.1f} minutes of work, {messages:,.0f} seconds of"
        f" messages, {(once + sent(most, count)) / 1e9:,.1f} GB sent,"
        f" {(4 * 5 + 5 * 8) * rows / workers / 1e6:,.0f} MB of rows and vectors on a worker"
    )


def steps(client, folder, columns: int, numbers) -> dict[str, list[float]]:
    """Seconds of a step over this many small parts, and bytes into and out of the workers."""
    from rfx.distributed.cluster import Workers

    found: dict[str, list[float]] = {"bytes": [], "seconds": []}
    workers, w, turns = Workers(client), np.ones(columns), 20
    for parts in numbers:
        Z, _ = features(workers, folder, 20_000, parts, columns)
        Z.normal(w)
        before, seconds = sum(client.run(traffic).values()), []
        for _ in range(turns):
            start = time.perf_counter()
            Z.normal(w)
            seconds.append(time.perf_counter() - start)
        found["seconds"].append(min(seconds))
        found["bytes"].append((sum(client.run(traffic).values()) - before) / turns)
        print(
            f"{parts:>4} parts: {found['bytes'][-1]:12,.0f} bytes and {found['seconds'][-1]:.4f} s"
            f" a step, {load()}",
            flush=True,
        )
    return found


def trained(local, client, folder, count: int, loss: str) -> dict[str, float]:
    """Passes of an `rfx train` over the rows, its bytes, and its processor seconds."""

    def spent():
        return sum(client.run(lambda: sum(os.times()[:2])).values())

    trace = folder / "trace.csv"
    before, cpu = sum(client.run(traffic).values()), spent()
    row = train(
        *("--method", "rf", "--n-features", "1000", "--lam", "1", "--loss", loss, "--gamma", "1"),
        *("--task", "binary", "--data", str(folder / f"{count}.svm"), "--parts", "2"),
        *("--scheduler", local.scheduler_address, "--trace", str(trace)),
    )
    with open(trace) as file:
        told = [json.loads(entry["more"]) for entry in csv.DictReader(file)]
    trace.unlink()
    # a Newton step also computes value and gradient, and does a line search; the first steps, on
    # some of the rows, run in the client
    here = [step["sampled"] for step in told if step["rows"] <= CLIENT]
    there = [step for step in told if step["rows"] > CLIENT]
    found = {
        "passes": sum(step["cg"] + 2 for step in there),
        "factors": len({step["sampled"] for step in there} - {0, *here}),
        "bytes": sum(client.run(traffic).values()) - before,
        "cpu": spent() - cpu + row["cpu"],
    }
    print(
        f"N = {count:>9,}: {found['passes']} passes, {found['factors']} factors,"
        f" {found['bytes']:12,.0f} bytes, {found['cpu']:.1f} processor seconds, {load()}",
        flush=True,
    )
    return found


# ---------------------------------------------------------------------- leaves


def leaves(options, folder):
    """Cost of `local` on 10^9 rows. Bytes and processor seconds, which are linear in the number of
    rows, are fitted to small runs, and checked on a larger one.
    """
    from distributed import Client, LocalCluster

    small, check, found = (30_000, 60_000, 120_000), 240_000, {}
    print("local, leaves of 2,500 rows, 5 inputs, two workers")
    for count in (*small, check):
        write(folder / f"{count}.svm", count, 0)
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as local:
        with Client(local) as client:
            # the first one compiles
            for count in (small[0], *small, check):
                found[count] = routed(local, client, folder, count)
    print("\n| what | rows | model | measured | ratio |\n|---|---:|---:|---:|---:|")
    for name in ("bytes", "cpu", "model"):
        line = np.polyfit(small, [found[count][name] for count in small], 1)
        value, there = np.polyval(line, check), found[check][name]
        print(f"| {name} | {check:,} | {value:,.3g} | {there:,.3g} | {value / there:.2f} |")
        found[name] = np.polyval(line, 10**9)
    print(
        f"\n1,000,000,000 rows, 100 workers with one such core each: {found['cpu'] / 3600:,.0f}"
        f" processor hours, {found['cpu'] / 6000:,.0f} minutes of work, {found['bytes'] / 1e9:,.0f}"
        f" GB sent, a model of {found['model'] / 1e9:,.0f} GB in the memory of the client"
    )


def routed(local, client, folder, count: int) -> dict[str, float]:
    """Bytes, processor seconds and size of the model of one training of `local` on workers."""
    spent = lambda: sum(client.run(lambda: sum(os.times()[:2])).values())
    before, cpu, model = sum(client.run(traffic).values()), spent(), folder / "model.npz"
    row = train(
        *("--method", "local", "--leaf-rows", "2500", "--scaling", "none", "--metric", "none"),
        *("--kernel", "laplacian-l2", "--task", "binary", "--data", str(folder / f"{count}.svm")),
        *("--scheduler", local.scheduler_address, "--model", str(model), "--force"),
    )
    found = {
        "bytes": sum(client.run(traffic).values()) - before,
        "cpu": spent() - cpu + row["cpu"],
        "model": model.stat().st_size,
    }
    print(
        f"N = {count:>9,}: {found['bytes']:12,.0f} bytes, {found['cpu']:.1f} processor seconds,"
        f" model of {found['model']:,} bytes, {load()}",
        flush=True,
    )
    return found


WHAT = {
    "speed": speed,
    "bytes": traffic_of_steps,
    "growth": growth,
    "simulate": simulate,
    "leaves": leaves,
}

if __name__ == "__main__":
    main()
