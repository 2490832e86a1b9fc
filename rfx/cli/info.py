"""`rfx info`: what a model file contains and how it was trained."""

import os

import click

from rfx import lazy, methods
from rfx.cli.common import chosen_words, print_json, score_text

MOST_SHARES = 10  # inputs of a metric that are printed
MOST_NAMED = 20  # columns and labels that are printed by name


@click.command("info")
@click.argument("model", type=click.Path(dir_okay=False))
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Print the whole file as JSON, with options and labels.",
)
def command(model, as_json):
    """Describe a model file: method, kernel, training, size, columns, labels, scores and
    probabilities.

    Labels are listed in the column order of `rfx predict --proba` and `--decision`.
    """
    method = methods.load(model)
    found = _facts(method, os.path.getsize(model))
    if as_json:
        print_json(found)
        return
    for name, text in _lines(method, found):
        click.echo(f"{name:<12} {text}")


def _facts(method, size) -> dict:
    from rfx.data.tabular import schema

    labels = None if method.classes is None else schema.shown(method, method.classes)
    columns = (
        None if method.schema is None or method.schema.inputs is None else method.schema.titles()
    )
    metric = method.preprocessing.scaler.metric
    return {
        "method": method.name,
        "task": method.task,
        "labels": labels,
        "columns": columns,
        "n_inputs": method.info["n_inputs"],
        "model_bytes": size,
        "probabilities": method.probability_source,
        "metric_shares": None if metric is None else metric.shares().tolist(),
        "importances": _importances(method),
        "params": method.method.values,
        "info": method.info,
    }


def _importances(method):
    """{column: share of the learnt metric}, in decreasing order; None without a metric."""
    found = method.importances()
    if found is None:
        return None
    names = method.input_names()
    order = sorted(range(len(names)), key=lambda place: -found[place])
    return {names[place]: float(found[place]) for place in order}


def _lines(method, found):
    """(heading, text) pairs of the readable output."""
    info = found["info"]
    yield "model", f"{method.name}: {method.method.summary}"
    kernel = found["params"].get("kernel")
    numbers = {
        name: value
        for name, value in (info.get("kernel_params") or {}).items()
        if isinstance(value, (int, float))
    }
    if kernel:
        yield (
            "kernel",
            ", ".join([kernel, *(f"{name} {value:.6g}" for name, value in numbers.items())]),
        )
    yield "task", found["task"] + (f", loss {method.loss.name}" if method.loss else "")
    if info.get("lam") is not None:
        yield "lambda", f"{info['lam']:g}"
    for step in info.get("validation") or ():
        yield "chosen", chosen_words(step)
    of = (
        f" of {info['n_features']} features"
        if info.get("n_features")
        else " support vectors"
        if info.get("kernel")
        else " parameters"
    )
    yield "size", f"{info.get('model_size')}{of}, {found['model_bytes'] / 1024:.0f} KiB"
    yield (
        "columns",
        f"{found['n_inputs']}, scaling {found['params'].get('scaling')}" + _named(found["columns"]),
    )
    yield from _metric(method, found)
    yield from _outputs(method, found)
    for score in info.get("scores") or ():
        yield score["metric"], f"{score_text(score['metric'], score['score'])} on {score['on']}"
    yield from _training(found)


def _metric(method, found):
    """The inputs with the largest shares of a learnt metric."""
    shares = found["importances"]
    if shares is None:
        return
    first = list(shares.items())[:MOST_SHARES]
    said = ", ".join(f"{name} {share:.1%}" for name, share in first)
    form = method.preprocessing.scaler.metric.form
    yield "metric", f"{form}: {said}" + (", …" if len(shares) > MOST_SHARES else "")
    yield (
        "",
        "(shares of the average squared gradient over scaled inputs: how much predictions change"
        " with an input, not whether that improves them)",
    )


def _outputs(method, found):
    """The description of labels or targets."""
    if found["labels"] is not None:
        yield "labels", f"{len(found['labels'])}" + _named(found["labels"])
        yield (
            "probability",
            found["probabilities"] or "none; train with --calibrate or --loss logistic",
        )
    elif method.target_scaler.kind != "none":
        shift, scale = (
            ", ".join(f"{one:g}" for one in lazy.numpy.ravel(part))
            for part in (method.target_scaler.shift, method.target_scaler.scale)
        )
        yield "target", f"scaled by {method.target_scaler.kind}: minus {shift}, divided by {scale}"


def _training(found):
    """The description of the rows and the solver."""
    info = found["info"]
    split = f", split {info['split']}" if info.get("split") else ""
    yield (
        "trained on",
        (
            f"{info.get('dataset', 'data')}{split}: {info['n_train']} rows, seed"
            f" {info.get('seed', found['params'].get('seed'))}"
        ),
    )
    if info.get("objective") is not None:
        gap = (
            "no certificate"
            if info.get("gap") is None
            else f"relative gap {info['gap'] / max(abs(info['objective']), 1e-300):.1e}"
        )
        ended = "converged" if info.get("converged") else "did not converge"
        yield (
            "training",
            f"objective {info['objective']:.6g}, {gap}, {info.get('n_iter')} iterations, {ended}",
        )
    if info.get("seconds_fit") is not None:
        yield (
            "seconds",
            f"features {info.get('seconds_features') or 0:.2f}, training {info['seconds_fit']:.2f}",
        )


def _named(names) -> str:
    """The first names, joined."""
    from rfx.data.tasks import number_text

    if names is None:
        return ""
    texts = [
        number_text(name) if isinstance(name, float) else str(name) for name in names[:MOST_NAMED]
    ]
    return ": " + ", ".join(texts) + (", …" if len(names) > MOST_NAMED else "")
