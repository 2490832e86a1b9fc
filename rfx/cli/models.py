"""Commands about trained models: predict, eval, explain, info and export; methods and warm."""

import csv
import math
import os
import sys
import time
import warnings
from collections.abc import Iterator
from dataclasses import asdict, replace
from itertools import combinations
from typing import Any

import click

from rfx import files, lazy, methods
from rfx.cli.flags import TEXT, check_data, flags, named, reading_of
from rfx.cli.output import (
    Progress,
    finish,
    json_text,
    label_text,
    of_model,
    print_json,
    print_measures,
    print_pairs,
    print_row,
    score_text,
    seconds_of,
    table,
)
from rfx.data import registry, textfiles
from rfx.errors import NoRows, RfxError, RfxWarning, UsageError, quoted
from rfx.options import Names, Option
from rfx.records import keys
from rfx.records import results as results_file

_BELOW = 5  # exit code of --fail-below
MODEL = click.argument("model", type=click.Path(dir_okay=False))

# ---------------------------------------------------------------------- predictions


@click.command("predict")
@MODEL
@click.argument("source", metavar="NAME|FILE", default="-")
@flags(
    Option(
        "decision",
        bool,
        "Print decision values (one per class if there are several) instead of labels.",
        default=False,
    ),
    Option(
        "proba",
        bool,
        "Print probabilities instead of labels, one per class in the order of `rfx info`.",
        default=False,
    ),
    Option(
        "interval",
        float,
        "Regression: also print the limits that contain this fraction of new targets, from the"
        " errors of rows left out of the training.",
        metavar="LEVEL",
    ),
    Option(
        "sets",
        float,
        "Classification: print for each label whether it is in the set that contains this fraction"
        " of new labels, 1 or 0.",
        metavar="LEVEL",
    ),
    "output",
    Option(
        "format",
        str,
        "text: one line per row, without a header, the default. csv: a table with a header. json:"
        " one object with labels, predictions, and decision values or probabilities.",
        ("text", "csv", "json"),
    ),
    Option(
        "id",
        str,
        "With --format csv: copy this column of the data. It need not be an input.",
        metavar="COLUMN",
    ),
    Option("digits", int, "Number of significant digits; by default those of float64.", low=1),
    "split",
    *TEXT,
    "force",
    "threads",
    "device",
    "json",
    json="Short for --format json.",
)
def predict(
    model,
    source,
    decision,
    proba,
    interval,
    sets,
    output,
    format,
    id,
    digits,
    split,
    strict,
    force,
    json,
    **values,
) -> None:
    """Print the model's prediction for each row of a file (default: standard input). Labels are not
    needed and are ignored.

    -o overwrites an existing file only if it is a CSV file of predictions; --force overwrites any
    file.

    \b
    rfx predict model.npz new.csv --format csv --proba --id patient --digits 4 -o predicted.csv
    """
    from rfx import device
    from rfx.cli import rows
    from rfx.data import libsvm
    from rfx.data.tabular import schema

    shows = {"--decision": decision, "--proba": proba, "--interval": interval, "--sets": sets}
    for one, other, together in (
        *((a, b, bool(shows[a] and shows[b])) for a, b in combinations(shows, 2)),
        ("--json", f"--format {format}", json and format not in (None, "json")),
        ("--id", "--split", id is not None and split is not None),
    ):
        if together:
            raise UsageError(f"{one} and {other} can't be combined; use only one of them")
    form = "json" if json else format or "text"
    if id is not None and form != "csv":
        raise UsageError(f"--id is {id!r:.80}, which needs --format csv")
    own = files.Kind("a CSV file of predictions", _has_predictions)
    files.guard(("-o", output), [("the model", model), *named("the data", source)], own, force)
    method, reading = methods.load(model), reading_of(values)
    if proba:
        method.check_probabilities()
    ids = None
    try:
        if id is None:
            X, _ = rows.rows_for(method, source, reading, split, strict, "ignored")
        else:
            X, *ids = rows.identified_rows(method, source, id, reading, strict)
    except NoRows as none:
        click.echo(f"rfx: {none}; there is nothing to predict", err=True)
        X, ids = lazy.numpy.zeros((0, method.outcome.n_inputs)), None if id is None else [id, []]
    with device.use(values["device"]):
        numbers = method.decision_function(X)
    labels = method.labels(numbers)
    kinds = {
        "decision": (decision, lambda: numbers),
        "probabilities": (proba, lambda: method.probabilities(numbers)),
        "sets": (sets, lambda: 1.0 * method.sets(numbers, sets)),
        "intervals": (interval, lambda: lazy.numpy.stack(method.interval(numbers, interval), 1)),
    }
    kind = next((name for name, (asked, _) in kinds.items() if asked not in (None, False)), "")
    shown = kinds[kind][1]() if kind else None
    labels = rows.rounded(labels, digits) if method.task == "regression" else labels
    shown = None if shown is None else rows.rounded(shown, digits)
    if form == "csv":
        prefix = kind.removesuffix("s") * (kind in ("decision", "sets"))
        names = ["lower", "upper"] if kind == "intervals" else None
        text = rows.predictions(method, labels, shown, prefix, ids, names)
    elif form == "json":
        classes = method.classes
        answer = {} if classes is None else {"labels": schema.shown(method, classes)}
        answer |= {"predictions": schema.shown(method, labels)}
        text = json_text(answer | ({} if shown is None else {kind: shown.tolist()})) + "\n"
    elif kind == "intervals":
        text = libsvm.numbers(lazy.numpy.column_stack([labels, shown]))
    elif shown is not None:
        text = libsvm.numbers(shown)
    else:
        words = schema.shown(method, labels)
        are_words = len(words) and isinstance(words[0], str)
        text = "\n".join([*words, ""]) if are_words else libsvm.numbers(labels)
    with libsvm.open_output(output) as handle:
        handle.write(text.encode())


_MOST_OF_A_HEADER = 10_000  # characters


def _has_predictions(path) -> bool:
    """Whether a file is a table of predictions: its first or second column has that name."""
    with path.open(encoding="utf-8", errors="replace") as handle:
        line = handle.readline(_MOST_OF_A_HEADER).splitlines()[:1]
    return "prediction" in next(csv.reader(line), [])[:2]


@click.command("eval")
@MODEL
@flags(
    "data",
    "split",
    "results",
    Option(
        "fail_below",
        float,
        "Exit with code 5 if the accuracy, or the R2 of a regression, is below this number.",
        metavar="SCORE",
    ),
    *TEXT,
    "quiet",
    "threads",
    "device",
    "json",
)
def evaluate(model, data, split, results, fail_below, strict, quiet, json, **values) -> None:
    """Evaluate a model file on a data set's test rows, or on all rows of a file.

    Classification: accuracy, balanced accuracy, F1 (of the larger of two labels; of several labels,
    the mean), AUC (of several labels, the one-against-rest mean), log-loss if the model has
    probabilities (see `rfx info`), and the confusion matrix. Rows with an unseen label count as
    wrong and a warning names the label. F1 is then the mean over all labels, and AUC and log-loss
    are omitted. Regression: RMSE, MAE and R2 in the target's original units; `rmse` in the row is
    in units of the scaled target.
    """
    from rfx import device
    from rfx.cli.rows import rows_for
    from rfx.runs import single

    check_data(data)
    if results is not None:
        files.guard(("--results", results), [("the model", model), *named("--data", data)])
        results_file.RESULTS.check(results)
    method = methods.load(model)
    X, y = rows_for(method, data, reading_of(values), split, strict)
    with device.use(values["device"]):
        evaluation = single.evaluate(method, X, y, detailed=True)
    row = single.result(method, os.path.getsize(model), evaluation)
    # a model trained in Python does not know the name of its data
    taught = row.dataset or "trained in Python"
    row = replace(row, dataset=row.dataset or os.path.basename(data))
    # a named set with the split of the training has the test rows of that run
    if not (registry.has(data) and (data, split or "default") == (row.dataset, row.split)):
        test = "standard input" if data == "-" else os.path.basename(data)
        params = {**row.params, "test": f"{test}, split {split}" if split else test}
        row = replace(row, key=keys.evaluated(row.key, data, split), params=params)
    if results is not None:
        results_file.append(results, row)
    if json or not quiet:
        print_row(row if json else replace(row, dataset=taught), json)
    if not (json or quiet):
        where = "standard input" if data == "-" else data
        click.echo(f"rows               {row.n_test} of {where}")
        print_measures(row.params["measures"])
    finish([row])
    name = "r2" if method.task == "regression" else "accuracy"
    # a constant target has no R2
    score = row.params["measures"].get(name, -math.inf)
    if fail_below is not None and score < fail_below:
        click.echo(f"rfx: the {name} {score:.4f} is below {fail_below:g} (--fail-below)", err=True)
        sys.exit(_BELOW)


# ---------------------------------------------------------------------- explain

# Numbers of columns, outputs and grid points that are printed; --json prints all.
MOST_SHOWN, MOST_OUTPUTS, MOST_POINTS = 40, 8, 10
_WIDEST = 40  # maximum characters of a name in a table
COVERS = (
    "The interval covers the random shuffles: for 95 % of the uninformative columns it contains 0."
    " It does not cover the choice of rows or of the training set."
)
SHARES = (
    "The share of the metric is that of the average squared gradient, as in `rfx info`. It measures"
    " how much predictions change with a column, not whether that improves them."
)


@click.command("explain")
@MODEL
@flags(
    "data",
    "target",
    Option("columns", Names, "Shuffle only these columns.", metavar="COLUMN,…"),
    Option("rows", int, "Use at most this many rows, sampled at random.", low=2, default=2000),
    Option("repeats", int, "Number of shuffles per column.", low=10, default=10),
    Option("top", int, "Number of top columns with partial dependence.", low=0, default=4),
    Option("seed", int, "Seed of the rows and the shuffles.", low=0, default=0),
    Option(
        "figure",
        str,
        "Also draw a figure; the extension, .svg, .png or .pdf, sets the format.",
        metavar="FILE",
    ),
    "split",
    "json",
    *TEXT,
    "force",
    "quiet",
    "threads",
    data="Rows that the model was not trained on: a data set's name (for its test rows), a file, or"
    " -.",
    target="Target column, if its name differs from that in the training file.",
    json="Print JSON, including every shuffle.",
)
def explain(model, data, target, split, figure, json, strict, force, quiet, **values) -> None:
    """Show which columns a model's predictions depend on, and how.

    Permutation importance: the increase of the error when the cells of one column are shuffled
    among the rows. A table column counts as one, even if it became several inputs. Partial
    dependence: the mean prediction when all rows have the same value in a column. Use held-out
    rows: on training rows, both also reflect overfitting.
    """
    from rfx.cli.rows import rows_for
    from rfx.reporting import figures
    from rfx.runs import explain as importance

    check_data(data)
    if figure is not None:
        figures.guard_one(figure, [("the model", model), *named("--data", data)], force)
    method = methods.load(model)
    read = method if target is None else method.replace(schema=_with_target(method, target))
    X, y = rows_for(read, data, reading_of(values), split, strict)
    doubt = _learnt_from(method, data, X.shape[0])
    if doubt:
        click.echo(f"rfx: {doubt}", err=True)
    with Progress("explaining", quiet) as progress:
        extent = {name: values[name] for name in ("rows", "repeats", "top", "seed")}
        columns = values["columns"] or ()
        found = importance.explain(method, X, y, columns=columns, report=progress.count, **extent)
    if figure is not None:
        figures.draw_one(figures.chart(found), figure)
    if not json:
        click.echo("\n".join(_explained(found, data)))
        return
    dependences = [asdict(one) | {"means": one.means.tolist()} for one in found.dependences]
    print_json(
        {
            "data": os.path.basename(data),
            "rows": found.n_rows,
            "rows_given": found.n_given,
            "maybe_training_rows": doubt is not None,
            "seed": found.seed,
            "repeats": found.repeats,
            "metric": found.metric,
            "error": found.error,
            "interval": COVERS,
            "columns": found.n_columns,
            "importances": [asdict(one) for one in found.importances],
            "response": f"mean {found.response}",
            "outputs": found.outputs,
            "partial_dependence": dependences,
        }
    )


def _with_target(method, target):
    """The schema of a model for a file whose target column has another name."""
    schema = method.schema
    if schema is None or schema.inputs is None or schema.target is None or not schema.named:
        raise UsageError(
            "--target is for tables, but the model was trained on rows without column names; omit"
            " it, and put the targets where the training file had them"
        )
    if target in {column.name for column in schema.inputs}:
        raise UsageError(f"--target is {quoted(target)}, which is an input of the model")
    return replace(schema, target=(target, schema.target[1]))


def _learnt_from(method, data, n_rows) -> str | None:
    """A warning if the rows may be training rows of the model."""
    trained_on, n_train = method.info.get("dataset"), method.info.get("n_train")
    name = data if registry.has(data.partition(":")[0]) else textfiles.plain_name(data)
    if trained_on != name or n_train is None or n_rows < n_train or data == "-":
        return None
    which = "these may be" if n_rows == n_train else f"{n_train:,} of these may be"
    return (
        f"{which} training rows of the model, from a file of the same name; held-out rows give a"
        " better estimate"
    )


def _explained(found, data) -> Iterator[str]:
    """The readable output of explain."""
    sampled = found.n_rows < found.n_given
    drawn = f" of {found.n_given:,}, drawn by seed {found.seed}" if sampled else ""
    yield f"rows    {found.n_rows:,}{drawn} of {os.path.basename(data)}"
    yield f"error   {found.metric} {found.error:.4g}\n"
    shown = found.importances[:MOST_SHOWN]
    shares = any(one.share is not None for one in shown)
    heads = ["column", f"{found.metric} increases by", "95 % interval", "share of metric"]
    cells = [heads] + [
        [
            _short(one.name),
            f"{one.mean:.4g}",
            f"{one.low:.4g} to {one.high:.4g}",
            f"{one.share or 0:.1%}",
        ]
        for one in shown
    ]
    yield from table([line[: 3 + shares] for line in cells])
    left = len(found.importances) - len(shown)
    if left:
        yield f"… and {left:,} more; see --json"
    if found.n_columns > len(found.importances):
        yield (
            f"{len(found.importances):,} of {found.n_columns:,} columns were shuffled; use"
            " --columns to select others"
        )
    yield f"\nThe mean of {found.repeats} shuffles. {COVERS}"
    if shares:
        yield SHARES
    # of each column, some points of its grid, and the outputs that vary most
    kept, several = found.widest(MOST_OUTPUTS), len(found.outputs) > 1
    of = f" of {found.outputs[0]}" if not several and found.outputs[0] else ""
    for one in found.dependences:
        yield f"\nmean {found.response}{of} by {_short(one.name)}"
        step = 1 if one.kind == "categories" else -(-len(one.grid) // MOST_POINTS)
        cells = [["", *(_short(found.outputs[place]) for place in kept)]] if several else []
        for value, means in zip(one.grid[::step], one.means[::step]):
            name = _short(value) if isinstance(value, str) else f"{value:.4g}"
            cells.append([name, *(f"{means[place]:.4g}" for place in kept)])
        yield from table(cells)


def _short(name: str) -> str:
    return name if len(name) <= _WIDEST else f"{name[: _WIDEST - 1]}…"


# ---------------------------------------------------------------------- info

MOST_SHARES = 10  # inputs of a metric that are printed
MOST_NAMED = 20  # columns and labels that are printed by name
_ABOUT_SHARES = (
    "shares of the average squared gradient over scaled inputs: how much predictions change with an"
    " input, not whether that improves them"
)


@click.command("info")
@MODEL
@flags("json", json="Print the whole file as JSON, with options and labels.")
def info(model, json) -> None:
    """Describe a model file: method, kernel, training, size, columns, labels, scores and
    probabilities.

    Labels are listed in the column order of `rfx predict --proba` and `--decision`.
    """
    from rfx.data.tabular import schema
    from rfx.runs import single

    method = methods.load(model)
    classes, table_schema = method.classes, method.schema
    has_columns = table_schema is not None and table_schema.inputs is not None
    metric, shares = method.preprocessing.scaler.metric, method.importances()
    importances = None
    if shares is not None:
        pairs = zip(method.input_names(), map(float, shares))
        importances = dict(sorted(pairs, key=lambda pair: -pair[1]))
    facts = {
        "method": method.name,
        "task": method.task,
        "labels": None if classes is None else schema.shown(method, classes),
        "columns": table_schema.titles() if has_columns else None,
        "n_inputs": method.outcome.n_inputs,
        "model_bytes": os.path.getsize(model),
        "probabilities": method.probability_source,
        "metric_shares": None if metric is None else metric.shares().tolist(),
        "importances": importances,
        "params": method.method.values,
        "info": method.info,
    }
    if json:
        print_json(facts)
    else:
        print_pairs(_described(method, facts, single.result(method, facts["model_bytes"], {})))


def _described(method, facts, row) -> Iterator[tuple[str, str]]:
    """(heading, text) pairs of the readable output of info."""
    yield "about", f"{method.name}: {method.method.summary}"
    yield from of_model(row, every=True)
    loss = f"loss {method.loss.name}, " if method.loss else ""
    yield "options", f"{loss}scaling {facts['params'].get('scaling')}, seed {row.seed}"
    yield "columns", f"{facts['n_inputs']}{_named(facts['columns'])}"
    if shares := facts["importances"]:
        first = [f"{name} {share:.1%}" for name, share in list(shares.items())[:MOST_SHARES]]
        first += ["…"] if len(shares) > MOST_SHARES else []
        yield "metric", f"{method.preprocessing.scaler.metric.form}: {', '.join(first)}"
        yield "", f"({_ABOUT_SHARES})"
    if facts["labels"] is not None:
        yield "labels", f"{len(facts['labels'])}{_named(facts['labels'])}"
        without = "none; train with --calibrate or --loss logistic"
        yield "probability", facts["probabilities"] or without
    elif method.target_scaler.kind != "none":
        parts = (method.target_scaler.shift, method.target_scaler.scale)
        shift, scale = (", ".join(f"{x:g}" for x in lazy.numpy.ravel(part)) for part in parts)
        yield "target", f"scaled by {method.target_scaler.kind}: minus {shift}, divided by {scale}"
    for score in method.info.get("scores") or ():
        yield score["metric"], f"{score_text(score['metric'], score['score'])} on {score['on']}"
    yield seconds_of(row)


def _named(names) -> str:
    """The first names, joined."""
    if names is None:
        return ""
    texts = list(map(label_text, names[:MOST_NAMED]))
    return ": " + ", ".join(texts) + (", …" if len(names) > MOST_NAMED else "")


# ---------------------------------------------------------------------- export

FORMS = {
    "onnx": "a graph for onnxruntime, in float64",
    "c": "one C99 file that needs only the standard library",
    "json": "the steps of a prediction, for your own reader",
}


@click.command("export")
@MODEL
@flags(
    Option("to", str, "The format.", FORMS),
    Option(
        "prefix",
        str,
        "With --to c: begin the names of functions and macros with NAME; by default rfx.",
        metavar="NAME",
    ),
    "output",
    "force",
)
def export(model, to, prefix, output, force) -> None:
    """Export a model as a program that predicts without rfx. It includes scaling, metric,
    categories, labels and probabilities.

    docs/export.md describes each format, and the model file itself.
    """
    from rfx.data import libsvm
    from rfx.exporting import c_source, onnx_graph, program

    if to is None:
        raise UsageError(f"--to is missing; it must be one of {', '.join(FORMS)}")
    if prefix is not None and to != "c":
        raise UsageError(f"--prefix is {prefix!r:.80}, which needs --to c")
    kind = files.Kind("a model exported by rfx", _is_exported)
    files.guard(("-o", output), [("the model", model)], kind, force)
    if to == "onnx":
        onnx_graph.check()
        if output == "-" and sys.stdout is not None and sys.stdout.isatty():
            raise UsageError(
                "--to onnx writes binary data, which a terminal can't show; use -o FILE"
            )
    exported = program.Program.of(methods.load(model))
    write: Any = {"onnx": onnx_graph.written, "c": c_source.written, "json": program.json_text}[to]
    text = write(exported, **{} if prefix is None else {"prefix": prefix})
    left_out = exported.facts.get("not_included")
    if left_out is not None:
        warnings.warn(f"the exported file does not include {left_out}", RfxWarning, stacklevel=2)
    with libsvm.open_output(output) as handle:
        handle.write(text)


def _is_exported(path) -> bool:
    """Whether a file begins like a program that `rfx export` writes."""
    head = path.read_bytes()[:200]
    return any(mark in head for mark in (b"rfx export", b'"format": "rfx"', b"\x12\x03rfx"))


# ---------------------------------------------------------------------- methods


@click.command("methods")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@flags("json")
def list_methods(names, json) -> None:
    """List the methods and their options with defaults and allowed values."""
    listed = [methods.get(name) for name in names or methods.names()]
    if json:
        print_json(
            [
                {
                    "name": method.name,
                    "long_name": next(iter(methods.long_names([method.name])), None),
                    "summary": method.summary,
                    "options": method.defaults(),
                }
                for method in listed
            ]
        )
        return
    for method in listed:
        long = "".join(f" (or {name})" for name in methods.long_names([method.name]))
        click.echo(f"{method.name}: {method.summary}{long}")
        for option in method.declared().values():
            shown = "" if option.default is None else f", default {option.default}"
            click.echo(f"  {option.flag:<18} {option.expects()}{shown}")
        click.echo()


# Small values of the options that set the amount of work.
_SMALL = {
    "n_features": 32,
    "n_grids": 8,
    "block_size": 100,
    "rounds": 2,
    "batch": 32,
    "epochs": 1,
    "pool": None,
}


@click.command("warm")
def warm() -> None:
    """Compile all functions in advance, so that later commands start faster.

    Every method is trained on a few generated rows. The machine code is stored in rfx's cache
    ($RFX_CACHE).
    """
    from rfx.data import libsvm

    np = lazy.numpy
    random, begun = np.random.default_rng(0), time.perf_counter()
    X = random.uniform(size=(300, 5))
    labels = np.where(X[:, 0] + 0.3 * random.normal(size=300) > X[:, 1], 1.0, -1.0)
    libsvm.parse(b"+1 1:0.5 2:1e-3\n-1 1:12345678901234567890\n", False)
    for name in methods.names():
        options = {key: _SMALL[key] for key in methods.get(name).declared() if key in _SMALL}
        variants: list[dict[str, Any]] = [options]
        if name == "rf":
            # with so little memory that features are stored as codes
            variants.append({"lam": 1.0, "max_memory": 1, "n_features": 2000})
        for task, y in (("binary", labels), ("regression", X @ np.arange(5.0))):
            for variant in variants:
                try:
                    methods.create(name, task=task, **variant).fit(X, y).decision_function(X)
                except RfxError:
                    continue  # a method without support for this needs no code for it
        click.echo(f"{name}: {time.perf_counter() - begun:.1f} s so far", err=True)
