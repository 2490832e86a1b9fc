"""What stands beneath the tables of Yen et al. 2014: what the setting `paper` was inferred from, and the published programs.

The plans give these rows the labels `inference` and `published`.
"""

from rfx.records.result import having, seconds_train
from rfx.reporting import seeds
from rfx.reporting.printed import printed
from rfx.reporting.tables import DASH, Section, count, gamma, memory_gb, short

PROGRAMS = {"liblinear": "LIBLINEAR", "libsvm": "LIBSVM"}


def sections(rows: list[dict], package: str, table: str) -> list[Section]:
    """The sections for rows of a table's data sets; none for what has no rows."""
    return _inference(_of(rows, "inference"), printed(package, table)) + _published(_of(rows, "published"))


def _of(rows, label) -> list[dict]:
    """The newest row of each run of that label that ended well."""
    good = [row for row in rows if row["status"] == "ok" and row["params"].get("label") == label]
    return having((row for group in seeds.variants(good) for row in group), "kernel", "solver", "lam", "metric", "score", "model_size")


def _inference(rows, book) -> list[Section]:
    """What was tried for what the paper does not print, beside what it prints."""
    lines = []
    for row in sorted(rows, key=lambda row: (row["dataset"], row["kernel"], row["method"], gamma(row) or 0, row["lam"])):
        cell = (row["dataset"], row["kernel"], row["method"])
        there = [book.get((*cell, name)) for name in (row["metric"], "model_size")]
        tried = [f"gamma {gamma(row):g}"] if gamma(row) else [f"scale {row['params'].get('perceptron_scale')}"]
        tried += [f"lambda {row['lam']:g}"] if row["method"] == "sparse-rf" else []
        ours = f"{row['score']:.4f}", count(row["model_size"])
        pairs = [f"{own} / {paper.text if paper else DASH}" for own, paper in zip(ours, there)]
        lines.append([*cell, ", ".join(tried), *pairs])
    title = "What the setting was inferred from: scores on TEST rows, ours / paper, of one seed"
    return [Section(title, ["data set", "kernel", "method", "tried", "score", "model size"], lines, 4)] if rows else []


def _published(rows) -> list[Section]:
    """rfx's solvers and the programs that the paper ran, each pair on the same features or kernel."""
    lines = []
    order = lambda row: (row["dataset"], row["method"], row["n_features"] or 0, row["kernel"], row["lam"], row["solver"] != "rfx")
    for row in sorted(rows, key=order):
        loss = (row["params"].get("loss") or "").replace("_", " ")
        what = f"{row['kernel']}, {loss}, lambda {row['lam']:g}" + (f", D {count(row['n_features'])}" if row["n_features"] else "")
        lines.append([row["dataset"], row["method"], what, PROGRAMS.get(row["solver"], row["solver"]), *_came_of(row)])
    title = "The published programs beside rfx's solvers, on the same features or kernel; one seed. gap: over the objective"
    heads = ["data set", "method", "problem", "by", "training, s", "memory, GB", "objective", "gap", "model size", "score"]
    return [Section(title, heads, lines, 4)] if rows else []


def _came_of(row) -> list[str]:
    objective, gap = row["objective"], row["gap"]
    numbers = [(seconds_train(row), short), (memory_gb(row), short), (objective, "{:,.6g}".format)]
    numbers += [(gap / objective if objective and gap is not None else None, "{:.1e}".format)]
    numbers += [(row["model_size"], count), (row["score"], "{:.4f}".format)]
    texts = [DASH if value is None else write(value) for value, write in numbers]
    return texts[:3] + [texts[3] + ("*" if row["converged"] is False else "")] + texts[4:]
