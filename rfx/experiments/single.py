"""One experiment in this process: load, train, predict, and the results row that says all of it."""

import tempfile
import time
from pathlib import Path

import numpy as np

from rfx import data, env, methods
from rfx.errors import DataError
from rfx.experiments import keys, results, streamed, traces
from rfx.options import Path as LamPath

# what info holds that has a column of its own; the rest of info goes into params
IN_COLUMNS = frozenset(results.COLUMNS)


def train(spec: dict):
    """Train the method of a spec on the training rows of its data: (method, data.Split).

    spec: dataset (name or file), split, test, method, options (dict), seed, threads, label, zero_based, train_score, trace,
    curve (see streamed), stream, n_inputs, checkpoint, every, resume.
    """
    options = {key: value for key, value in spec["options"].items() if value is not None}
    if spec.get("stream"):
        method = methods.create(spec["method"], seed=spec.get("seed"), **options)
        split = streamed.train(method, spec)
    else:
        split = load(spec)
        method = methods.create(spec["method"], seed=spec.get("seed"), **{"task": split.task} | options)
        streamed.prepare(method, spec, split)
        method.fit(split.X_train, split.y_train)
    method.info |= {
        "dataset": split.name,
        "split": split.split,
        "seed": method.params["seed"],
        "threads": env.threads(),
        "dtype": str(method.params.get("dtype", "float64")),
        "peak_rss_mb": env.peak_rss_mb(),
        "label": spec.get("label"),
        "key": keys.key(spec),
        "n_classes": 0 if method.classes is None else len(method.classes),
    }
    return method, split


def load(spec: dict):
    """The data of a spec."""
    return data.load(
        spec["dataset"],
        split=spec.get("split"),
        test=spec.get("test"),
        zero_based=bool(spec.get("zero_based")),
        seed=spec.get("seed") or 0,
    )


def execute(spec: dict, model: Path | None = None) -> dict:
    """Run one experiment: train, save the model (to `model`, or for its size only), predict, return the row.

    With train_score in the spec, params has the score on the training rows too: train_score, and train_relative_error for
    regression. It is taken last, so that it is in neither the seconds nor the memory of the row. With trace in the spec, the row
    has the solver's steps under that name, which is no column: they go into a file of their own.
    """
    method, split = train(spec)
    row = finish(method, split, model)
    if spec.get("train_score"):
        found = evaluate(method, split.X_train, split.y_train)
        row["params"] |= {f"train_{name}": found[name] for name in ("score", "relative_error") if name in found}
    return _traced(row, method, spec)


def _traced(row, method, spec):
    return row | {"trace": traces.of(method)} if spec.get("trace") else row


def model_files(model: Path, lam_path: str | None = None) -> list[Path]:
    """The model files that training to `model` writes: itself, or one for each lambda with `-lamVALUE` before its suffix."""
    if not lam_path:
        return [model]
    return [model.with_name(f"{model.stem}-lam{name}{model.suffix}") for name in LamPath.names(LamPath.values(lam_path))]


def execute_path(spec: dict, model: Path | None = None) -> list[dict]:
    """Run a spec with option lam_path: a row for each lambda; the model files get `-lamVALUE` before their suffix."""
    method, split = train(spec)
    rows = []
    points = method.path_points()
    paths = model_files(model, spec["options"]["lam_path"]) if model else [None] * len(points)
    for point, path in zip(points, paths, strict=True):
        options = {name: value for name, value in spec["options"].items() if name != "lam_path"}
        point.info["key"] = keys.key(spec | {"options": options | {"lam": point.lam, "along": spec["options"]["lam_path"]}})
        rows.append(_traced(finish(point, split, path), point, spec))
    return rows


def finish(method, split, model: Path | None) -> dict:
    """Save and evaluate a trained method on the test rows, if there are any; its row."""
    if model is not None:
        size = method.save(model)
    else:
        with tempfile.TemporaryDirectory(prefix="rfx-") as folder:
            size = method.save(Path(folder) / "model.npz")
    return row(method, size, {} if split.X_test is None else evaluate(method, split.X_test, split.y_test))


def evaluate(method, X, y) -> dict:
    """metric, score, seconds_predict, n_test of a trained method on raw rows X (n, d), targets y (n,).

    For regression also relative_error, ||f - y|| / ||y|| in the target's own units as Wu et al. (2016) have it, where ||y|| > 0.
    """
    if X.shape[0] == 0:
        raise DataError("there are no rows to evaluate on")
    y = np.asarray(y, dtype=np.float64)
    start = time.perf_counter()
    score = method.score(X, y)
    score |= {"seconds_predict": time.perf_counter() - start, "n_test": X.shape[0]}
    size = float(np.linalg.norm(y))
    if score["metric"] == "rmse" and size:
        score["relative_error"] = score["score"] * method.target_scaler.scale * len(y) ** 0.5 / size
    return score


def row(method, model_bytes: int, evaluation: dict) -> dict:
    """The results row of a trained method and its evaluation; params holds every option and what was learnt from data."""
    info = method.info
    params = {name: value for name, value in method.params.items() if value is not None and name not in IN_COLUMNS}
    params |= {name: value for name, value in info.items() if name not in IN_COLUMNS and value is not None}
    params |= {name: value for name, value in evaluation.items() if name not in IN_COLUMNS}
    columns = {name: value for name, value in (info | evaluation).items() if name in IN_COLUMNS}
    return columns | {
        "status": "ok",
        "model_bytes": model_bytes,
        "params": params,
        "peak_rss_mb": max(env.peak_rss_mb(), info["peak_rss_mb"]),
        **env.describe(),
    }
