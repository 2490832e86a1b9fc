"""Results files with missing fields, through every table and figure: each is built, or
refused in one sentence.

Rows are generated for the small form of every plan of the papers, as a run would write them. Then
fields are removed.
"""

import os
import random
import tempfile
from pathlib import Path

from fuzz.mutations import check_sentence, count

from rfx import papers
from rfx.errors import RfxError
from rfx.plans import plan
from rfx.records import keys, results
from rfx.reporting import figures, tables

CURVE = [
    {"samples": n, "seconds": n / 100, "steps": n, "loss": 1 / n, "error": 0.5 / n}
    for n in (10, 100, 1000)
]
VALIDATION = [
    {
        "by": "rf",
        "options": ["lam", "gamma"],
        "fitted": 10,
        "held_out": 5,
        "error": "x",
        "tried": [[1, 2, 0.5], [2, 2, 0.4]],
        "chosen": [2, 2],
    }
]
MORE = {
    "norm": 1.0,
    "support": 10**6,
    "pool": 200,
    "held_out_score": 0.6,
    "held_out_mae": 0.3,
    "train_score": 0.7,
    "constant_score": 0.5,
    "n_classes": 2,
    "kappa": 3.0,
    "kappa_bound": 2.0,
    "rank": 10,
    "n_blocks": 5,
    "relative_error": 0.1,
    "train_relative_error": 0.1,
    "kernel_params": {"gamma": 0.5},
    "mae": 0.2,
    "held_out_on": "x",
    "scored_on": "x",
    "samples": 1000,
    "seconds_steps": 1.0,
    "seconds_nystrom": 0.1,
    "curve": CURVE,
    "validation": VALIDATION,
    "rho_share": 0.1,
    "rho": 1.0,
    "loss": "squared",
    "joint": 2,
    "joint_rows": 50,
    "seconds_scores": 0.1,
    "seconds_maximise": 0.1,
    "seconds_joint": 0.2,
    "n_features_asked": 8,
    "path": [[1.0, 0.5]],
    "round": 1,
    "parts": 1,
    "nu": 0.1,
}
STEPS = [
    {
        "seconds": n / 10,
        "objective": 3 / (n + 1),
        "error": 0.5,
        "features": n,
        "cpu_seconds": n / 5,
        "pass_seconds": n / 9,
    }
    for n in range(4)
]


def start() -> dict[str, list[dict]]:
    """Plan -> rows as its runs would write them, with a trace each."""
    known, found, number = papers.plans(), {}, random.Random(0)
    for name in known:
        wanted = plan.small(name, known) or plan.load(name, False, known)
        rows = []
        for run in wanted.runs[:150]:
            options = run.options
            has = lambda key, kind, options=options: isinstance(options.get(key), kind)
            rows.append(
                {
                    "key": keys.key(run),
                    "status": "ok",
                    "dataset": run.dataset,
                    "split": run.split,
                    "task": "binary",
                    "n_train": 100,
                    "n_test": 50,
                    "n_inputs": 5,
                    "method": run.method,
                    "kernel": options.get("kernel", "gaussian"),
                    "solver": "rfx",
                    "lam": options["lam"] if has("lam", (int, float)) else 1.0,
                    "n_features": options["n_features"] if has("n_features", int) else 100,
                    "seed": run.seed,
                    "metric": "accuracy",
                    "score": 0.5 + number.random() / 3,
                    "model_size": 10,
                    "model_bytes": 1000,
                    "seconds_features": 0.1,
                    "seconds_fit": 0.2,
                    "seconds_predict": 0.1,
                    "peak_rss_mb": 100.0,
                    "objective": 1.0,
                    "gap": 1e-9,
                    "n_iter": 5,
                    "converged": True,
                    "threads": run.threads or 1,
                    "dtype": "float32",
                    "cpu": "a processor",
                    "rfx": "1",
                    "params": MORE
                    | {key: value for key, value in options.items() if key not in results.COLUMNS}
                    | ({"label": run.label} if run.label else {}),
                }
            )
        if rows:
            found[name] = rows
    return found


def changed(rows: list[dict], generator: random.Random) -> list[dict]:
    """The rows with some fields removed, and some rows removed."""
    share, drop = generator.choice((0.0, 0.1, 0.5, 1.0)), generator.choice((0.0, 0.2, 0.9))
    needed = ("key", "created", "status", "dataset", "method")
    names = [name for name in results.COLUMNS if name not in needed]
    names += [f"params.{name}" for name in MORE]
    chosen = [generator.choice(names) for _ in range(generator.randint(0, 4))]
    found = []
    for row in rows:
        if generator.random() < drop:
            continue
        row = row | {"params": dict(row["params"])}
        for name in chosen:
            if generator.random() <= share:
                of_params = name.startswith("params.")
                (row["params"] if of_params else row)[name.removeprefix("params.")] = (
                    {} if name == "params" else None
                )
        found.append(row)
    return found


def one(folder: Path, rows: list[dict], generator: random.Random) -> bool:
    """Whether the file was read, and everything built from it or refused in a sentence."""
    path = folder / "r.csv"
    path.unlink(missing_ok=True)
    results.RESULTS.append(path, rows)
    try:
        read = results.read(path, results.finder(folder / "t.csv"))
    except RfxError as error:
        check_sentence(error)
        return False
    known, drawn = papers.tables(), papers.figures()
    alone = {name for name, builder in (known | drawn).items() if getattr(builder, "alone", False)}
    for name in sorted(known.keys() - alone):
        setting = generator.choice((None, None, None, "paper", "tuned"))
        try:
            table = tables.build(name, read, setting, known)
            tables.render(table, generator.choice(tables.FORMATS), 80).encode()
        except RfxError as error:
            check_sentence(error)
    for more in ({"mean_over": "seed"}, {"group_by": "method"}):
        try:
            tables.render(tables.build("summary", read, None, known, **more), "json").encode()
        except RfxError as error:
            check_sentence(error)
    tables.render(tables.compare(read, read[::2]), "text", 80)
    for name in generator.sample(sorted(drawn.keys() - alone), 3):
        try:
            with figures.styled():
                chart = drawn[name](read, None)
                figures.written(chart)
                figures.paint(chart).canvas.draw()
        except RfxError as error:
            check_sentence(error)
    return True


def fuzz(cases: int, seed: int) -> int:
    """How many of `cases` results files were read."""
    plans = start()
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        folder = Path(folder)
        for row in (row for rows in plans.values() for row in rows[:40]):
            results.append_steps(folder / "t.csv", row["key"], STEPS)
        make = lambda random: changed(random.choice(list(plans.values())), random)
        return count("reporting", cases, seed, make, lambda rows, own: one(folder, rows, own))
