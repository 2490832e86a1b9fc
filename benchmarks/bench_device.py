"""A GPU behind rfx's own commands: agreement with the processor, then seconds and errors.

    python benchmarks/bench_device.py                    checks, then all parts, at most 8 minutes
    python benchmarks/bench_device.py checks exact       some parts
    python benchmarks/bench_device.py --processor        PyTorch on the processor, to try the script
    python benchmarks/bench_device.py --scale 0.02       fewer rows

Checks: predictions of every method on cuda and cpu agree within 1e-4 of the targets' spread. Parts:
`exact` (rfm with a learnt metric, 36,000 rows), `ridge` (500,000 covtype rows x 16,384 random
features), `local` (covtype, 500,000 rows), `predict` (1,000,000 rows by the model of `exact`),
`xrfm` (xRFM on the rows of `exact`, where it is installed). covtype is the file of RFX_MIRROR.

Every command has its own process: `command` is all of it, `training` is without starting and
reading. Each part has a time limit, and a failure does not stop the rest.
"""

from __future__ import annotations

import argparse
import json
import lzma
import os
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
PARTS = ["checks", "exact", "ridge", "local", "predict", "xrfm"]
# Seconds that each part may take.
LIMITS = {"checks": 90, "exact": 100, "ridge": 80, "local": 150, "predict": 60, "xrfm": 120}
TRIED = """
import sys
from rfx import device, lazy
if {processor}:
    cpu = lazy.torch.device("cpu")
    memory = lambda: 16 << 30
    made = device.Accelerator(lazy.array_api_torch, cpu, "torch on the processor", True, memory)
    device.found = lambda: made
from rfx_kernels import main
sys.argv = ["rfx", *sys.argv[1:]]
main()
"""


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("parts", nargs="*", choices=PARTS, default=PARTS)
    parser.add_argument("--processor", action="store_true", help="PyTorch on the processor.")
    parser.add_argument("--scale", type=float, default=1.0, help="Fraction of the rows.")
    parser.add_argument("--seconds", type=float, default=480.0, help="Time limit of the script.")
    parser.add_argument("--folder", help="Where to keep files; by default a temporary folder.")
    options = parser.parse_args()
    say(machine())
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(options, Path(options.folder or folder))
        for name in options.parts:
            left = bench.end - time.monotonic()
            if left < 10:
                say(f"{name}: no time left")
                continue
            bench.part_end = time.monotonic() + min(LIMITS[name], left)
            say(f"\n== {name} (at {time.monotonic() - bench.begun:.0f} s)")
            try:
                getattr(bench, name)()
            except Exception:
                say(traceback.format_exc())
        say(f"\n| what | rows | training, s | command, s | error | limit, s |\n|{'---|' * 6}")
        for line in bench.table:
            say("| " + " | ".join(line) + " |")
        say(f"\n{time.monotonic() - bench.begun:.0f} s in all")


def say(text):
    print(text, flush=True)


def machine() -> str:
    words = [f"{os.cpu_count()} cores, Python {sys.version.split()[0]}, numpy {np.__version__}"]
    try:
        import torch

        words.append(f"torch {torch.__version__}")
        if torch.cuda.is_available():
            words += [
                torch.cuda.get_device_name(),
                f"{torch.cuda.mem_get_info()[1] / 2**30:.0f} GiB",
            ]
    except ImportError:
        words.append("no torch")
    return ", ".join(words)


class Late(Exception):
    """A command took longer than its part may."""


class Bench:
    """The state of a run: time limits, files, and the table."""

    def __init__(self, options, folder: Path):
        self.options, self.folder, self.table, self.warm = options, folder, [], set()
        folder.mkdir(parents=True, exist_ok=True)
        self.begun = self.part_end = time.monotonic()
        self.end = self.begun + options.seconds

    def rfx(self, *words) -> str:
        """The standard output of a command of rfx."""
        script = TRIED.format(processor=self.options.processor)
        environment = os.environ | {"PYTHONPATH": f"{ROOT}:{os.environ.get('PYTHONPATH', '')}"}
        command = [sys.executable, "-c", script, *map(str, words)]
        left = self.part_end - time.monotonic()
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, env=environment, timeout=max(1.0, left)
            )
        except subprocess.TimeoutExpired as error:
            said = (error.stderr or b"")[-600:]
            raise Late(f"{' '.join(map(str, words))}: stopped; {said}") from None
        if done.returncode not in (0, 3):
            raise RuntimeError(f"{' '.join(map(str, words))}\n{done.stderr[-1500:]}")
        return done.stdout

    def train(self, what, limit, *words) -> dict:
        """The row of `rfx train`, which is printed; the first command of a method compiles."""
        small = [
            self.arm_file("small.npz", 3000, 6) if word == words[3] else word for word in words
        ]
        if words[1] not in self.warm:
            small = [one for one in small if not str(one).endswith(("-test.npz", "exact.npz"))]
            dropped = [one for one in small if one not in ("--test", "--model", "--force")]
            self.rfx("train", *dropped, "--quiet", "--no-baseline")
            self.warm.add(words[1])
        start = time.monotonic()
        row = json.loads(self.rfx("train", *words, "--json", "--quiet", "--no-baseline"))
        seconds, params = time.monotonic() - start, row["params"]
        # choices, metric, fit, evaluation and model file, without reading
        training = params["seconds_total"] - params["seconds_read"]
        error = row["score"] if row["metric"] == "rmse" else 1 - row["score"]
        kept = (
            "device",
            "ended",
            "seconds_read",
            "seconds_total",
            "n_blocks",
            "leave_one_out",
            "metric_steps",
            "kernel",
        )
        shown = {name: params[name] for name in kept if name in params} | {
            name: row.get(name)
            for name in (
                "score",
                "gap",
                "objective",
                "lam",
                "seconds_features",
                "seconds_fit",
                "seconds_predict",
                "n_iter",
                "peak_rss_mb",
            )
        }
        shown["choice"] = params.get("seconds_validation")
        say(f"{what}: training {training:.2f} s, command {seconds:.1f} s\n  {json.dumps(shown)}")
        place = "cuda" if "device" in params else "cpu"
        self.table.append(
            [
                f"{what} ({place})",
                f"{row['n_train']:,}",
                f"{training:.2f}",
                f"{seconds:.1f}",
                f"{error:.4f}",
                limit,
            ]
        )
        return row

    def rows(self, count: int) -> int:
        return max(400, int(count * self.options.scale))

    # ------------------------------------------------------------------ data

    def arm(self, count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
        """Rows of 8 joint angles, and the distance of the end of a chain of 8 links from a point:
        a smooth function of 8 inputs, like H of the measured tables.
        """
        rng = np.random.default_rng(seed)
        X = rng.uniform(-1.0, 1.0, (count, 8))
        angles = np.cumsum(X * np.linspace(1.6, 0.8, 8), axis=1)
        ends = np.stack([np.cos(angles).sum(axis=1), np.sin(angles).sum(axis=1)], axis=1)
        return X, np.linalg.norm(ends - [1.0, 3.0], axis=1)

    def arm_file(self, name: str, count: int, seed: int, targets: bool = True) -> Path:
        path = self.folder / name
        if not path.exists():
            X, y = self.arm(count, seed)
            np.savez(path, **({"X": X, "y": y} if targets else {"X": X}))
        return path

    def covtype(self) -> tuple[Path, Path]:
        """Files of training and test rows: 500,000 and the rest, or as many as the scale says."""
        train, test = self.folder / "covtype-train.npz", self.folder / "covtype-test.npz"
        if not train.exists():
            X, y = covtype_rows()
            order = np.random.default_rng(0).permutation(len(y))
            cut = self.rows(500_000)
            for path, some in ((train, order[:cut]), (test, order[cut : cut + self.rows(80_000)])):
                np.savez(path, X=X[some], y=y[some])
        return train, test

    # ------------------------------------------------------------------ parts

    def checks(self):
        """Every method on both devices, in this process."""
        from rfx import device, methods

        if self.options.processor:
            exec(TRIED.format(processor=True).partition("from rfx_kernels")[0], {})
        (X, y), (new, expected) = self.arm(1500, 3), self.arm(500, 4)
        fixed = {
            "task": "regression",
            "gamma": 1.0,
            "lam": 0.1,
            "scaling": "standard",
            "metric": "none",
        }
        learnt = {
            "task": "regression",
            "scaling": "standard",
            "kernel": "laplacian-l2",
            "metric": "full",
        }
        runs = {
            "kernel": fixed | {"kernel": "laplacian-l2"},
            "rfm": fixed | learnt | {"metric_steps": 2},
            "local": learnt | {"leaf_rows": 400},
            "rf": fixed | {"kernel": "gaussian"},
            "nystrom": fixed | {"kernel": "laplacian-l2", "n_features": 300},
            "lkrf": fixed | {"kernel": "gaussian", "pool": 2000},
            "block": fixed | {"kernel": "laplacian-l2", "block_size": 400},
        }
        for name, options in runs.items():
            try:
                values, seconds, gaps = [], [], []
                for place in ("cpu", "cuda"):
                    start = time.monotonic()
                    with device.use(place):
                        trained = methods.create(name, **options).fit(X, y)
                        values.append(trained.decision_function(new))
                    seconds.append(time.monotonic() - start)
                    gaps.append(trained.info["gap"] / trained.info["objective"])
                difference = np.abs(values[0] - values[1]).max() / expected.std()
                say(
                    f"{name}: {'agrees' if difference < 1e-4 else 'DIFFERS'},"
                    f" {difference:.1e} of the spread; gap/objective {gaps[0]:.1e}, {gaps[1]:.1e};"
                    f" {seconds[0]:.1f}, {seconds[1]:.1f} s with first calls;"
                    f" {trained.info.get('device')}"
                )
            except Exception:
                say(f"{name}: FAILED\n{traceback.format_exc()}")

    def exact(self):
        data = self.arm_file("arm.npz", self.rows(36_000), 1)
        test = self.arm_file("arm-test.npz", self.rows(4000), 7)
        words = [
            "--method",
            "rfm",
            "--data",
            data,
            "--test",
            test,
            "--force",
            "--model",
            self.folder / "exact.npz",
            "--device",
            "cuda",
        ]
        fixed = ["--scaling", "standard", "--metric", "full", "--gamma", "median", "--lam", "1e-3"]
        three = ["--kernel", "laplacian-l2", "--metric-steps", "3"]
        self.train("exact, laplacian-l2, metric of 3 steps", "4", *words, *fixed, *three)
        # for error: on 3,000 rows .045, where laplacian-l2 has .092, and .17 with three steps
        one = ["--kernel", "matern-5/2", "--metric-steps", "1"]
        self.train("exact, matern-5/2, metric of 1 step", "4", *words, *fixed, *one)
        self.train("exact, everything chosen", "", *words)

    def ridge(self):
        train, test = self.covtype()
        size = max(256, int(16_384 * min(1.0, self.options.scale * 4)))
        words = [
            "--method",
            "rf",
            "--data",
            train,
            "--test",
            test,
            "--loss",
            "squared",
            "--kernel",
            "laplacian-l2",
            "--gamma",
            "0.2",
            "--scaling",
            "standard",
            "--metric",
            "none",
            "--n-features",
            size,
            "--lam",
            "1",
            "--device",
            "cuda",
        ]
        self.train(f"ridge, {size:,} features", "10", *words)

    def local(self):
        train, test = self.covtype()
        words = ["--method", "local", "--data", train, "--test", test]
        self.train("local, everything chosen", "30", *words, "--device", "cuda")
        larger = ["--leaf-rows", "5000", "--scaling", "standard", "--metric", "full"]
        self.train("local, leaves of 5,000", "", *words, *larger, "--device", "cuda")
        self.train("local, everything chosen", "", *words, "--device", "cpu")

    def predict(self):
        new = self.arm_file("arm-new.npz", self.rows(1_000_000), 5, targets=False)
        for place in ("cuda", "cpu") if self.options.scale < 1 else ("cuda",):
            start = time.monotonic()
            text = self.rfx("predict", self.folder / "exact.npz", new, "--device", place)
            seconds = time.monotonic() - start
            values = np.array(text.split(), float)
            error = np.sqrt(np.mean((values - self.arm(len(values), 5)[1]) ** 2))
            self.table.append(
                [f"predict ({place})", f"{len(values):,}", "", f"{seconds:.1f}", f"{error:.4f}", ""]
            )
            say(f"predict ({place}): {len(values):,} rows, command {seconds:.1f} s")

    def xrfm(self):
        try:
            import torch
            from xrfm import xRFM
        except ImportError as error:
            say(f"xrfm is not installed: {error}")
            return
        place = torch.device("cpu" if self.options.processor else "cuda")
        train, test = (self.arm(self.rows(count), seed) for count, seed in ((36_000, 1), (4000, 7)))
        tensors = [
            torch.tensor(part, dtype=torch.float32, device=place).reshape(len(part), -1)
            for part in (*train, *test)
        ]
        cut = int(0.8 * len(tensors[0]))
        start = time.monotonic()
        model = xRFM(device=place, tuning_metric="mse")
        model.fit(tensors[0][:cut], tensors[1][:cut], tensors[0][cut:], tensors[1][cut:])
        found = np.asarray(model.predict(tensors[2])).ravel()
        seconds = time.monotonic() - start
        error = np.sqrt(np.mean((found - test[1]) ** 2))
        self.table.append(
            ["xRFM, rows of exact", f"{cut:,}", f"{seconds:.2f}", "", f"{error:.4f}", ""]
        )
        say(f"xRFM: {seconds:.1f} s, error {error:.4f}")


def covtype_rows() -> tuple[np.ndarray, np.ndarray]:
    """All rows of covtype in two classes, from the file of RFX_MIRROR."""
    from rfx.data.libsvm import read

    path = Path(os.environ["RFX_MIRROR"]) / "covtype.libsvm.binary.xz"
    with tempfile.NamedTemporaryFile(suffix=".libsvm") as file, lzma.open(path) as packed:
        file.write(packed.read())
        file.flush()
        X, y = read(file.name)[:2]
    return np.asarray(X.toarray(), np.float64), np.asarray(y, np.float64)


if __name__ == "__main__":
    main()
