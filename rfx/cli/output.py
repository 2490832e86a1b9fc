"""What commands print: tables, rows of results, JSON, and progress.

Progress is one line that is overwritten on a terminal, a line per minute with a timestamp in a log,
and nothing in quiet mode.
"""

import json
import shlex
import shutil
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from typing import Any

import click

from rfx.data.reading import typed
from rfx.errors import plain
from rfx.fitting.choice_trace import ChoiceTrace
from rfx.fitting.progress import ProgressReport
from rfx.measures import MEASURES, OF_TARGET, MeasuredScores, unit_of
from rfx.numerals import native, significant
from rfx.options import path_names
from rfx.records.params import Params
from rfx.records.run import Result, Run

BELOW = 5  # exit code of --fail-below
_MOST_CLASSES = 12  # of a printed confusion matrix


def table(cells: list[list[str]], left: Iterable[int] = (0,)) -> Iterator[str]:
    """Lines of cells; the columns in `left` are left-aligned and the others right-aligned."""
    widths = [max(map(len, column)) for column in zip(*cells)]
    for line in cells:
        padded = []
        for place, (cell, width) in enumerate(zip(line, widths)):
            padded.append(cell.ljust(width) if place in left else cell.rjust(width))
        yield "  ".join(padded).rstrip()


def print_pairs(pairs: Iterable[tuple[str, str]], width: int = 12) -> None:
    """Print headings, padded to a width, and their texts."""
    for name, text in pairs:
        click.echo(f"{name:<{width}} {text}")


def print_rendered(table, form: str = "text", width: int | None = None) -> None:
    """Print a table of reporting; csv is for programs and is written as bytes without changes."""
    from rfx.reporting.tables import render

    text = render(table, form, width)
    click.echo(text.encode() if form == "csv" else text, nl=False)


def json_text(value, **more: Any) -> str:
    """JSON on one line; numbers that JSON does not support become null."""
    text = json.dumps(value, default=native)
    return json.dumps(json.loads(text, parse_constant=lambda name: None), **more)


def print_json(value, **more: Any) -> None:
    """Print JSON."""
    click.echo(json_text(value, **more))


def label_text(label) -> str:
    """A label or the name of a column."""
    from rfx.data.tabular.labelwords import number_text

    return number_text(label) if isinstance(label, float) else str(label)


def score_text(metric: str, value: float) -> str:
    """Significant digits of an error in units of the target; four decimals of a share."""
    if unit_of(metric) == OF_TARGET:
        return significant(value)
    return f"{value:.4f}"


def score_texts(metric: str, values: Iterable[float]) -> str:
    """The scores of several targets."""
    return ", ".join(score_text(metric, value) for value in values)


def relative_gap(gap: float, objective: float | None) -> float:
    """A bound on the distance of the objective from its minimum, relative to it."""
    return gap / max(abs(objective or 0.0), 1e-300)


_WAYS = {"leave-one-out": "by leave-one-out", "cross-validated": "by cross-validation"}


def chosen_words(step: ChoiceTrace) -> str:
    """The outcome of a selection on held-out rows and the number of candidates."""
    texts = []
    for name, value in step.values.items():
        if name == "round" or value is None or (name == "metric_steps" and not value):
            continue
        if isinstance(value, (int, float)):
            texts.append(f"{name.replace('_', ' ')} {value:.4g}")
        else:
            texts.append(f"{name} {value}")
    # the iterations of a metric are no trials of their own, as in the progress of the choice
    inner = {"metric_steps"} if "round" in step.options else set()
    trials = set()
    for one in step.tried:
        trials.add(tuple(value for name, value in zip(step.options, one) if name not in inner))
    held_out = f"on {step.held_out:,} held-out rows"
    if way := _WAYS.get(step.error.split()[0]):
        held_out = f"{way} on {step.held_out:,} rows"
    return f"{', '.join(texts)}: the best of {len(trials)} {held_out}"


def print_row(row: Result, as_json: bool, verbose: bool = False, **more: str) -> None:
    """Print the outcome of a run: JSON with the entries `more`, or readable lines."""
    if as_json:
        print_json(row.as_dict() | more)
        return
    print_pairs([*describe_model(row), *_scores(row), _cost(row)])
    if verbose:
        print_pairs([("objective", f"{row.objective:.6g}"), seconds_of(row)])


def describe_model(row: Result, every: bool = False) -> Iterator[tuple[str, str]]:
    """The data, the options, the size and the training of a model; every: all choices, instead of
    those of the metric and the method.
    """
    params = row.params
    data = row.dataset
    if row.split not in (None, "", "all", "default"):
        data = f"{data}, split {row.split}"
    n_rows, n_inputs = row.n_train or 0, row.n_inputs or 0
    yield "data", f"{data}: {n_rows:,} rows x {n_inputs:,} inputs, {row.task}"
    method = row.method
    if row.kernel:
        method += f", {row.kernel} kernel"
    if params.gamma:
        method += f", gamma {params.gamma:.4g}"
    if row.lam:
        method += f", lambda {row.lam:g}"
    yield "method", method
    for step in params.choices:
        if every or {"metric", "method"} & {*step.options}:
            yield "chosen", chosen_words(step)
    if row.model_size is not None:
        yield "model", _size_words(row)
    yield "training", _training_words(row)


def _size_words(row: Result) -> str:
    """What the predictions of a model are a sum of, and the size of its file."""
    size, n_rows = row.model_size or 0, row.n_train or 0
    n_bytes = ""
    if row.model_bytes:
        n_bytes = f", {row.model_bytes / 1024:,.0f} KiB"
    if row.n_features:
        return f"{size:,} of {row.n_features:,} features{n_bytes}"
    if not row.kernel:
        return f"{size:,} parameters{n_bytes}"
    if size <= n_rows:
        return f"{size:,} of {n_rows:,} rows as support vectors{n_bytes}"
    # leaves overlap, and one may have two machines
    return f"{size:,} support vectors of machines that share {n_rows:,} rows{n_bytes}"


def _training_words(row: Result) -> str:
    """How the solver ended, and how far its objective is from the minimum."""
    steps = f"{row.n_iter or 0:,} iteration{'' if row.n_iter == 1 else 's'}"
    ended = f"converged in {steps}" if row.n_iter else "solved directly"
    if not row.converged:
        ended = f"DID NOT CONVERGE in {steps}"
    if row.params.ended == "stalled":
        ended += ": the objective no longer changes"
    if row.gap is None or row.objective is None:
        # a stochastic method ends after its steps
        return f"{steps if row.converged else ended}, without a certificate"
    gap = relative_gap(row.gap, row.objective)
    if row.params.round_gap is None:
        return f"{ended}, within {gap:.1e} of the optimum"
    # the gap over all drawn features bounds what those dropped between rounds could still gain
    last = relative_gap(row.params.round_gap, row.objective)
    return (
        f"{ended}, within {last:.1e} of the optimum of the features kept; those dropped could lower"
        f" the objective by at most {gap:.0%}"
    )


def _cost(row: Result) -> tuple[str, str]:
    """The elapsed time and the memory of a run."""
    memory, total = f"{row.peak_rss_mb:,.0f} MiB of memory", row.params.seconds_total
    return "cost", memory if total is None else f"{total:.1f} s, {memory}"


def seconds_of(row: Result) -> tuple[str, str]:
    """The seconds of each step; with the total, also the remaining time."""
    params = row.params
    steps = {
        "reading": params.seconds_read,
        "choosing": params.seconds_validation,
        "features": row.seconds_features,
        "training": row.seconds_fit,
        "prediction": row.seconds_predict,
        "held-out models": params.seconds_held_out,
        "baseline": params.seconds_baseline,
    }
    seconds = {what: value for what, value in steps.items() if value is not None}
    total = params.seconds_total
    if total is not None:
        other = total - sum(seconds.values())
        seconds |= {"other": max(0.0, other), "total": total}
    texts = [f"{what} {value:.2f}" for what, value in seconds.items()]
    return "seconds", ", ".join(texts)


def _scores(row: Result) -> Iterator[tuple[str, str]]:
    """The score and its rows: test rows, held-out rows, or the training rows."""
    params, metric = row.params, "rmse" if row.task == "regression" else "accuracy"
    if row.score is not None:
        rows = "test rows" if params.scored_on is None else f"rows, {params.scored_on}"
        score, n_rows = score_text(metric, row.score), row.n_test or 0
        yield metric, f"{score} on {n_rows:,} {rows}"
    if params.rmse_by_target is not None:
        if params.target_scaling in (None, "standard"):
            yield "", "of targets in units of their standard deviations"
        each = score_texts("rmse", params.rmse_by_target)
        yield "", f"{each} of each target in its own unit"
    if params.leave_one_out_rows is not None:
        yield from _leave_one_out_score(row, metric)
    yield from _aimed_scores(params)
    if row.score is None and params.train_score is not None:
        score = score_text(metric, params.train_score)
        advice = "evaluate on other rows with --cv 5, --holdout 0.2 or --test FILE"
        yield metric, f"{score} on the training rows; {advice}"
    yield from baseline_pairs(row)
    if row.score is None and row.split == "stream":
        yield metric, "none of a stream without --test FILE; rfx eval evaluates the model"
    if params.held_out_score is not None:
        score = score_text(metric, params.held_out_score)
        yield "held out", f"{metric} {score}, {params.held_out_on}"
    if params.calibration is not None:
        yield "probability", params.calibration


def _aimed_scores(params: Params) -> Iterator[tuple[str, str]]:
    """The score by the measure that the training aims at, and that of the choice of options."""
    measure, measures = str(params.measure), params.measures or {}
    if measure != "accuracy" and measure in measures:
        score = score_text(measure, measures[measure])
        yield measure, f"{score} on the same rows"
    if params.choice_score is not None:
        name = str(params.choice_metric)
        score = score_text(name, params.choice_score)
        yield name, f"{score} on {params.choice_on}"


def _leave_one_out_score(row: Result, metric: str) -> Iterator[tuple[str, str]]:
    """The score of the rows left out of the model itself, unless it is that of the row."""
    params = row.params
    how = params.leave_one_out_by or "leave-one-out"
    if params.scored_on != f"by {how}":
        text = score_text(metric, params.leave_one_out or 0.0)
        rows = f"{params.leave_one_out_rows:,} rows"
        yield metric if row.score is None else "", f"{text} by {how} on {rows}"


def baseline_pairs(row: Result) -> Iterator[tuple[str, str]]:
    """The scores of simple models on the rows of the score, if there are any."""
    scores, metric = row.params.baseline, str(row.measured[0])
    if scores is None:
        return
    titled = (
        ("gradient boosting", scores.boosting),
        ("linear", scores.linear),
        ("constant", scores.constant),
    )
    parts = [f"{title} {score_text(metric, one)}" for title, one in titled if one is not None]
    yield "baseline", f"{metric} {', '.join(parts)} on {scores.on}"
    for one in row.better:
        gain, n_rows = score_text(metric, one.gain), row.n_test or 0
        noise = f", within the noise of {n_rows:,} rows" if one.is_noise else ""
        yield "", f"{one.name} is better than this model by {gain}{noise}"


def print_measures(scores: MeasuredScores) -> None:
    """Print the measures of `rfx eval`, in the target's original units, and the confusion
    matrix.
    """
    for name, measure in MEASURES.items():
        if name in scores.values:
            score = score_text(name, scores.values[name])
            click.echo(f"{measure.title:<18} {score}")
        if name in scores.by_target:
            each = score_texts(name, scores.by_target[name])
            title = f"{measure.title} by target"
            click.echo(f"{title:<18} {each}")
    labels = list(map(label_text, scores.labels or ()))
    if len(labels) > _MOST_CLASSES:
        click.echo(f"{'confusion':<18} {len(labels)} classes; use --json to print it")
    elif labels:
        cells = [["true, predicted", *labels]]
        for label, counts in zip(labels, scores.confusion or ()):
            cells.append([label, *map(str, counts)])
        click.echo("\n".join(table(cells)))


def print_path(rows: list[Result], as_json: bool) -> None:
    """Print the rows of a path over lambda: a JSON list, or one line each."""
    if as_json:
        print_json([row.as_dict() for row in rows])
        return
    trained = rows[0].score is None
    kind = "rmse" if rows[0].task == "regression" else "accuracy"
    metric = "train score" if trained else rows[0].metric or "score"
    cells = [["lambda", "nonzeros", "objective", "rel. gap", metric, ""]]
    names = path_names([row.lam for row in rows if row.lam is not None])
    for name, row in zip(names, rows):
        score = row.params.train_score if trained else row.score
        shown = "-" if score is None else score_text(kind, score)
        gap = "-"
        if row.gap is not None:
            gap = f"{relative_gap(row.gap, row.objective):.1e}"
        mark = "" if row.converged else "did not converge"
        objective = f"{row.objective:.6g}"
        cells.append([name, str(row.model_size), objective, gap, shown, mark])
    click.echo("\n".join(table(cells, [5])))


_ADVICE = {
    "timeout": "the solver did not converge within --timeout; try a larger one",
    "stalled": "the solver stopped because its objective no longer changes; try a larger --tol, or"
    " --dtype float64",
}


def finish(rows: list[Result]) -> None:
    """Warn of models that score far below what was chosen; exit with 5 below the limit of
    --fail-below, with 3 when a solver did not converge, and suggest what to try.
    """
    for row in rows:
        if row.params.doubt is not None:
            click.echo(f"rfx: {row.params.doubt}", err=True)
    stopped = {row.params.ended for row in rows if row.converged is False}
    if stopped:
        usual = "the solver did not converge; try a larger --max-iter or --tol"
        advice = next((text for ended, text in _ADVICE.items() if ended in stopped), usual)
        click.echo(f"rfx: {advice}", err=True)
    below = [row.params.below for row in rows if row.params.below is not None]
    for words in below:
        click.echo(f"rfx: {words}", err=True)
    if below or stopped:
        sys.exit(BELOW if below else 3)


# The fields of a run that are flags of the same name.
_SHARED = ("split", "test", "sample_weight", "cv", "holdout", "groups", "time", "calibrate")


def command_of(run: Run) -> str:
    """The command that trains this model, ready to copy."""
    values = {name: getattr(run, name) for name in _SHARED}
    values["zero_based"] = run.zero_based or None
    if run.reading is not None:
        values |= run.reading.given()
    words = ["rfx", "train", "--method", run.method, "--data", run.dataset]
    for name, value in [*values.items(), *run.options.items(), ("seed", run.seed)]:
        flag = name.replace("_", "-")
        if value is None:
            continue
        if name in ("zero_based", "header"):
            words.append(f"--{flag}" if value else f"--no-{flag}")
        elif isinstance(value, (list, tuple)):
            words += shlex.split(typed(flag, value))
        else:
            text = repr(value) if isinstance(value, float) else str(value)
            words += [f"--{flag}", text.lower() if isinstance(value, bool) else text]
    return shlex.join(words)


# ---------------------------------------------------------------------- progress

TICK, MINUTE = 0.25, 60.0
# Seconds before the first line on a terminal; shorter commands need no progress.
PATIENCE = 1.0
# Below this finished fraction, the remaining time is not estimated.
LEAST = 0.02


def stamp() -> str:
    """The time of day as printed in a log."""
    return time.strftime("%Y-%m-%dT%H:%M:%S%z")


def clock(seconds: float) -> str:
    """1:05 or 2:03:10."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


class Progress:
    """A context manager; `tell` receives the steps of a solver or a search, `count` the number of
    finished items.

    log: receives a line per minute if standard error is not used. first: a line on standard error
    before the first step. A separate thread updates the time between steps.
    """

    def __init__(self, what: str, quiet: bool = False, log=None, first: str = ""):
        self.what, self.log, self.quiet, self.first = what, log, quiet, first
        self.live = log is None and sys.stderr is not None and sys.stderr.isatty()
        self.start, self._words, self._shown = time.monotonic(), "", False
        self._share: float | None = None
        # seconds of training before this start, when resuming from a checkpoint
        self._earlier = 0.0
        self._end, self._lock = threading.Event(), threading.Lock()
        self._thread = threading.Thread(target=self._tick, daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._end.set()
        self._thread.join()
        self._clear()

    def tell(self, report: ProgressReport) -> None:
        """Show a report of a training."""
        first, self.first = self.first, ""
        if first:
            self.say(first)
        self._words, self._share = words(report), share(report)
        self._earlier = max(0.0, (report.seconds or 0.0) - (time.monotonic() - self.start))

    def count(self, done: int, total: int, words: str = "", more: float = 0.0) -> None:
        """Report the number of finished items; words: those in progress; more: results so far."""
        self._words = f"{done} of {total} done"
        if words:
            self._words += f", {words}"
        self._share = (done + more) / total if total else None
        self._earlier = 0.0

    def runs(self, done: int, total: int, working) -> None:
        """Report the number of finished runs; working: for each run in progress, its name and
        last report, or None.
        """
        texts, more = [], 0.0
        for name, report in working:
            known = report or ProgressReport()
            texts.append(": ".join(filter(None, (name, words(known)))))
            more += share(known) or 0.0
        self.count(done, total, "; ".join(texts), more)

    def say(self, text) -> None:
        """Print a separate line on standard error, unless quiet."""
        if self.quiet:
            return
        with self._lock:
            self._clear()
            click.echo(text, err=True)

    def _tick(self):
        wait = TICK if self.live else MINUTE
        while not (self.quiet or self._end.wait(wait)):
            with self._lock:
                if not self.live:
                    line = f"{self.what}: {self.line()}"
                    self.log(line) if self.log else self._say_with_time(line)
                elif time.monotonic() - self.start > PATIENCE:
                    width = shutil.get_terminal_size().columns - 1
                    text = plain(f"{self.what}: {self.line()}")[:width]
                    click.echo(f"\r\033[K{text}", err=True, nl=False)
                    self._shown = True

    def _say_with_time(self, line: str) -> None:
        """Print a line on standard error; the file of --log adds the time itself."""
        added = getattr(sys.stderr, "adds_time", False)
        click.echo(line if added else f"{stamp()} {line}", err=True)

    def _clear(self):
        if self._shown:
            click.echo("\r\033[K", err=True, nl=False)
        self._shown = False

    def line(self) -> str:
        """Seconds since the start, the last step, and the remaining time if it is known."""
        elapsed = time.monotonic() - self.start
        parts = [clock(elapsed)]
        if self._words:
            parts.append(self._words)
        if self._share is not None and self._share >= LEAST:
            left = (self._earlier + elapsed) * (1 / self._share - 1)
            parts.append(f"{clock(left)} left")
        return ", ".join(parts)


def words(report: ProgressReport) -> str:
    """A report in words."""
    return ", ".join(_parts_of_report(report))


def _parts_of_report(report: ProgressReport) -> Iterator[str]:
    number, total = report.part or (1, 1)
    if total > 1:
        yield f"part {number} of {total}"
    if report.doing:
        yield report.doing
    if report.choosing:
        yield _choice(report)
    if (report.outputs or 1) > 1 and report.output is not None:
        yield f"class {report.output + 1} of {report.outputs}"
    if report.samples is not None:
        yield f"{report.samples:,} rows"
    elif report.iteration is not None:
        yield f"step {report.iteration}"
    quality = _quality(report.loss, report.gap, report.objective)
    if quality:
        yield quality
    if report.error is not None:
        yield f"error {report.error:.4g}"
    if report.samples is not None and report.seconds:
        yield f"{report.samples / report.seconds:,.0f} rows a second"


def _choice(report: ProgressReport) -> str:
    least = "" if report.least is None else f", lowest error {report.least:.4g}"
    names = ", ".join(report.choosing or ())
    return f"choosing {names}: {report.tried} of {report.total} tried{least}"


def _quality(loss: float | None, gap: float | None, objective: float | None) -> str:
    if loss is not None:
        return f"loss {loss:.4g}"
    if gap is not None and objective:
        return f"relative gap {gap / abs(objective):.1e}"
    return "" if objective is None else f"objective {objective:.5g}"


def share(report: ProgressReport) -> float | None:
    """The finished fraction of the work, if the report contains it."""
    if report.part is not None:
        # the model of all rows was trained first
        number, total = report.part
        return number / (total + 1)
    if report.output is not None and (report.outputs or 1) > 1:
        return report.output / (report.outputs or 1)
    return report.share
