"""From what came of a run's process to the row of a results file, and to a few words about it."""

from rfx import env
from rfx.records import keys, results
from rfx.records.run import Run
from rfx.runs import baseline

# Options with a column of their own, and what that column may hold.
_OPTION_COLUMNS: dict[str, type | tuple[type, ...]] = {"kernel": str, "solver": str, "lam": (int, float), "n_features": int}


def row_of(run: Run, ending: dict) -> dict:
    """The row of a run that ended as `process.Child.ending` says: the one that it wrote, or one that says why there is none.

    Of a run that a worker made, `ending` has `worker`, its address, and `host`, the name of its machine, which params then has, too.
    The steps of the solver, where the run was asked for them, are under `trace`, which is no column.
    """
    answer = ending["answer"] or {}
    where = {"host": ending["host"]} if "host" in ending else {}
    if ending["timeout"] is not None:
        row = failure(run, "timeout", f"not done within {ending['timeout']:g} seconds", ending["peak_mb"])
    elif not answer:
        row = failure(run, "failed", ending["crash"], ending["peak_mb"])
    elif answer.get("status") != "ok":
        row = failure(run, answer.get("status", "failed"), answer.get("message") or "", ending["peak_mb"])
        row["params"] |= answer.get("params") or {}
    else:
        return _made(run, answer, where)
    if where:
        row["params"] |= where
        # those of this machine, which did not make it
        row |= {"blas": None, "cpu": None}
        row["message"] = f"worker {ending['worker']} on {ending['host']}: {row['message']}"[:2000]
    return row


def _made(run, answer, where) -> dict:
    known = {name: value for name, value in answer.items() if name in results.COLUMNS}
    more = {name: value for name, value in answer.items() if name not in results.COLUMNS and name != "trace"}
    known["params"] = _params(run) | (answer.get("params") or {}) | more | where
    row = _columns(run) | known | {"key": keys.key(run)}
    return row | {"trace": answer["trace"]} if answer.get("trace") else row


def failure(run: Run, status: str, message: str, peak_mb: float | None = None) -> dict:
    """The row of a run that gave no result."""
    row = _columns(run) | {"key": keys.key(run), "status": status, "message": message[:2000]}
    return row | {"params": _params(run), "peak_rss_mb": peak_mb} | env.describe()


def _columns(run) -> dict:
    options = run.options
    row = {name: getattr(run, name) for name in ("dataset", "split", "method", "seed", "threads")}
    return row | {name: options[name] for name in options if _has_column(name, options[name])}


def _has_column(name, value) -> bool:
    # lam = "validation" is a wish; the column takes the number that came of it.
    return name in _OPTION_COLUMNS and isinstance(value, _OPTION_COLUMNS[name])


def _params(run) -> dict:
    params = {name: value for name, value in run.options.items() if not _has_column(name, value)}
    return params | {name: getattr(run, name) for name in ("label", "test") if getattr(run, name)}


def in_words(row) -> str:
    """What the progress says of a row."""
    if row["status"] != "ok":
        return f"{row['status']}: {row['message']}"
    words = []
    if row.get("score") is not None:
        words.append(f"{row.get('metric') or 'score'} {row['score']:.4g}")
    elif "train_score" in row["params"]:
        words.append(f"{'rmse' if row.get('task') == 'regression' else 'accuracy'} {row['params']['train_score']:.4g} on the training rows")
    if row.get("model_size") is not None:
        words.append(f"size {row['model_size']}")
    if results.seconds_train(row) is not None:
        words.append(f"{results.seconds_train(row):.3g} s")
    if row.get("peak_rss_mb") is not None:
        words.append(f"{row['peak_rss_mb']:.0f} MB")
    if row.get("converged") is False:
        words.append("did not converge")
    if baseline.no_better(row):
        words.append("no better than a constant")
    return ", ".join(words) or "ok"
