"""Convert the ending of a run's process to its result, and to a short description."""

from dataclasses import replace
from typing import Any

from rfx import env
from rfx.records import keys, results
from rfx.records.result import Result
from rfx.records.run import Run
from rfx.runs import baseline
from rfx.runs.process import Ending

_LONGEST = 2000  # maximum characters of a message
# Options with a column, and the types of that column.
_OPTION_COLUMNS: dict[str, type | tuple[type, ...]] = {
    "kernel": str,
    "solver": str,
    "lam": (int, float),
    "n_features": int,
}


def result_of(run: Run, ending: Ending) -> Result:
    """The result of a run with this ending: the one it wrote, or one with the reason why there is
    none.

    For a run on a worker, params also has `host`, the name of its machine.
    """
    answer = ending.answer or {}
    where = {} if ending.host is None else {"host": ending.host}
    if ending.timeout is not None:
        found = failure(
            run, "timeout", f"not finished within {ending.timeout:g} seconds", ending.peak_mb
        )
    elif not answer:
        found = failure(run, "failed", ending.crash or "", ending.peak_mb)
    elif answer.get("status") != "ok":
        found = failure(
            run, answer.get("status", "failed"), answer.get("message") or "", ending.peak_mb
        )
        found = found.with_params(**answer.get("params") or {})
    else:
        return _made(run, ending, answer, where)
    if not where:
        return found
    message = f"worker {ending.worker} on {ending.host}: {found.message}"[:_LONGEST]
    # BLAS and processor are those of this machine, which did not run it
    return replace(found.with_params(**where), blas=None, cpu=None, message=message)


def _made(run: Run, ending: Ending, answer: dict[str, Any], where: dict[str, str]) -> Result:
    known = {
        name: value
        for name, value in answer.items()
        if name in results.COLUMNS and value is not None
    }
    more = {} if ending.seconds is None else {"seconds_process": ending.seconds}
    known["params"] = _params(run) | (answer.get("params") or {}) | more | where
    columns = _columns(run) | known | {"key": keys.key(run)}
    return Result(**columns, steps=answer.get("trace") or None)


def failure(
    run: Run, status: str, message: str, peak_mb: float | None = None, **params: Any
) -> Result:
    """The result of a run without an answer; params: entries in addition to those of the run."""
    columns = (
        _columns(run)
        | env.describe()
        | {
            "key": keys.key(run),
            "status": status,
            "message": message[:_LONGEST],
        }
    )
    return Result(**columns, params=_params(run) | params, peak_rss_mb=peak_mb)


def _columns(run: Run) -> dict[str, Any]:
    options = run.options
    found = {name: getattr(run, name) for name in ("dataset", "split", "method", "seed", "threads")}
    return found | {name: options[name] for name in options if _has_column(name, options[name])}


def _has_column(name, value) -> bool:
    # lam = "validation" is a request; the column has the resulting number
    return name in _OPTION_COLUMNS and isinstance(value, _OPTION_COLUMNS[name])


def _params(run: Run) -> dict[str, Any]:
    params = {name: value for name, value in run.options.items() if not _has_column(name, value)}
    return params | run.told()


def in_words(row: Result) -> str:
    """The progress text of a result."""
    if row.status != "ok":
        return f"{row.status}: {row.message}"
    words = []
    if row.score is not None:
        words.append(f"{row.metric or 'score'} {row.score:.4g}")
    elif "train_score" in row.params:
        words.append(
            f"{'rmse' if row.task == 'regression' else 'accuracy'} {row.params['train_score']:.4g}"
            " on the training rows"
        )
    if row.model_size is not None:
        words.append(f"size {row.model_size}")
    if results.seconds_train(row) is not None:
        words.append(f"{results.seconds_train(row):.3g} s")
    if row.peak_rss_mb is not None:
        words.append(f"{row.peak_rss_mb:.0f} MB")
    if row.converged is False:
        words.append("did not converge")
    if baseline.no_better(row):
        words.append("no better than a constant")
    return ", ".join(words) or "ok"
