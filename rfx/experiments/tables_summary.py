"""The table `summary`: every row of a results file, one line each."""

from rfx.errors import UsageError
from rfx.experiments.results import seconds_train
from rfx.experiments.tables import DASH, Section, Table, count, short

_COLUMNS = {
    "data set": ("dataset", str), "method": ("method", str), "kernel": ("kernel", str), "D": ("n_features", count),
    "lambda": ("lam", lambda value: f"{value:g}"), "score": ("score", lambda value: f"{value:.4f}"),
    "metric": ("metric", str), "model size": ("model_size", count), "train, s": ("seconds_train", short),
    "predict, s": ("seconds_predict", short), "memory, MB": ("peak_rss_mb", count),
}  # fmt: skip


def summary(rows, setting=None) -> Table:
    """Data set, method, kernel, D, lambda, score, size, seconds and memory of every row, or of one setting's."""
    if setting is not None:
        labels = sorted({row["params"]["label"] for row in rows if row["params"].get("label")})
        if setting not in labels:
            raise UsageError(f"--setting {setting}: no row has it (there are: {', '.join(labels) or 'none'})")
        rows = [row for row in rows if row["params"].get("label") == setting]
    labelled = any(row["params"].get("label") for row in rows)
    rows = [row | {"seconds_train": seconds_train(row)} for row in rows]
    lines, cells, notes = [], [], []
    for row in rows:
        line = [DASH if row[name] is None else write(row[name]) for name, write in _COLUMNS.values()]
        if row["converged"] is False:
            line[list(_COLUMNS).index("score")] += "*"
        if labelled:
            line.insert(3, row["params"].get("label") or DASH)
        lines.append(line)
        cells.append(
            {"status": row["status"]}
            | {name: row[name] for name, _ in _COLUMNS.values()}
            | {"converged": row["converged"], "label": row["params"].get("label")}
        )
        if row["status"] != "ok":
            notes.append(f"{row['dataset']} {row['method']} ({row['status']}): {row['message']}")
    if any(row["converged"] is False for row in rows):
        notes.append("*: the solver did not converge")
    columns = list(_COLUMNS)
    if labelled:
        columns.insert(3, "setting")
    return Table("summary", f"{len(rows)} rows", [Section("", columns, lines, 3 + labelled)], notes, cells)


TABLES = {"summary": summary}
