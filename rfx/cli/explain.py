"""`rfx explain`: which columns a model's predictions depend on, and how."""

import os
from dataclasses import asdict, replace

import click

from rfx import methods
from rfx.cli.common import (
    Count,
    OutputFile,
    complete_data,
    force_option,
    named,
    print_json,
    split_option,
    strict_option,
    text_options,
    threads_option,
)
from rfx.cli.progress import Progress, quiet_option
from rfx.data import archives
from rfx.data.reading import Reading, listed
from rfx.data.registry import registry
from rfx.errors import UsageError, quoted

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
@click.argument("model", type=click.Path(dir_okay=False))
@click.option(
    "--data",
    "dataset",
    required=True,
    metavar="NAME|FILE",
    shell_complete=complete_data,
    help="Rows that the model was not trained on: a data set's name (for its test rows), a file,"
    " or -.",
)
@click.option(
    "--target",
    metavar="COLUMN",
    help="Target column, if its name differs from that in the training file.",
)
@click.option("--columns", metavar="COLUMN,…", help="Shuffle only these columns.")
@click.option(
    "--rows",
    type=Count(least=2),
    default=2000,
    show_default=True,
    help="Use at most this many rows, sampled at random.",
)
@click.option(
    "--repeats",
    type=Count(least=10),
    default=10,
    show_default=True,
    help="Number of shuffles per column.",
)
@click.option(
    "--top",
    type=Count(least=0),
    default=4,
    show_default=True,
    help="Number of top columns with partial dependence.",
)
@click.option(
    "--seed",
    type=Count(least=0),
    default=0,
    show_default=True,
    help="Seed of the rows and the shuffles.",
)
@click.option(
    "--figure",
    type=OutputFile("explain.svg"),
    metavar="FILE",
    help="Also draw a figure; the extension, .svg, .png or .pdf, sets the format.",
)
@split_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON, including every shuffle.")
@text_options
@strict_option
@force_option
@quiet_option
@threads_option
def command(model, dataset, target, split, figure, as_json, strict, force, quiet, **more):
    """Show which columns a model's predictions depend on, and how.

    Permutation importance: the increase of the error when the cells of one column are shuffled
    among the rows. A table column counts as one, even if it became several inputs. Partial
    dependence: the mean prediction when all rows have the same value in a column. Use held-out
    rows: on training rows, both also reflect overfitting.
    """
    from rfx.cli.rows import rows_for
    from rfx.reporting import explained, figures
    from rfx.runs import explain

    wanted = explain.Asked(
        more["rows"], more["repeats"], more["top"], listed(more["columns"]), more["seed"]
    )
    if figure is not None:
        figures.guard_one(figure, [("the model", model), *named("--data", dataset)], force)
    method = methods.load(model)
    read = method if target is None else method.replace(schema=_with_target(method, target))
    reading = Reading(
        header=more["header"], encoding=more["encoding"], zero_based=more["zero_based"] or None
    )
    X, y = rows_for(read, dataset, reading, split, strict)
    doubt = _learnt_from(method, dataset, X.shape[0])
    if doubt:
        click.echo(f"rfx: {doubt}", err=True)
    with Progress("explaining", quiet) as progress:
        found = explain.explain(method, X, y, wanted, progress.count)
    if figure is not None:
        figures.draw_one(explained.chart(found, wanted), figure)
    if as_json:
        print_json(_facts(found, wanted, dataset, doubt))
        return
    for line in _lines(found, wanted, dataset):
        click.echo(line)


def _with_target(method, target):
    """The schema of a model for a file whose target column has another name."""
    known = method.schema
    if known is None or known.inputs is None or known.target is None:
        raise UsageError(
            "--target is for tables, but the model was trained on rows without column names; omit"
            " it"
        )
    if not known.named:
        raise UsageError(
            "--target names a column, but the model's training file had no column names; omit it"
            f" and put the targets into column {known.target[1] + 1}"
        )
    if target in {column.name for column in known.inputs}:
        raise UsageError(f"--target is {quoted(target)}, which is an input of the model")
    return replace(known, target=(target, known.target[1]))


def _learnt_from(method, dataset, n_rows) -> str | None:
    """A warning if the rows may be training rows of the model."""
    info = method.info
    known, n_train = info.get("dataset"), info.get("n_train")
    own = dataset if registry.has(dataset.partition(":")[0]) else archives.plain_name(dataset)
    if known != own or n_train is None or n_rows < n_train or dataset == "-":
        return None
    which = "these may be" if n_rows == n_train else f"{n_train:,} of these may be"
    return (
        f"{which} training rows of the model, from a file of the same name; held-out rows give a"
        " better estimate"
    )


def _facts(found, wanted, dataset, doubt) -> dict:
    """The JSON output of --json."""
    return {
        "data": os.path.basename(dataset),
        "rows": found.n_rows,
        "rows_given": found.n_given,
        "maybe_training_rows": doubt is not None,
        "seed": wanted.seed,
        "repeats": wanted.repeats,
        "metric": found.metric,
        "error": found.error,
        "interval": COVERS,
        "columns": found.n_columns,
        "importances": [asdict(one) for one in found.importances],
        "response": f"mean {found.response}",
        "outputs": found.outputs,
        "partial_dependence": [
            asdict(one) | {"means": one.means.tolist()} for one in found.dependences
        ],
    }


def _lines(found, wanted, dataset):
    """The readable output."""
    drawn = f" of {found.n_given:,}, drawn by seed {wanted.seed}" if _sampled(found) else ""
    yield f"rows    {found.n_rows:,}{drawn} of {os.path.basename(dataset)}"
    yield f"error   {found.metric} {found.error:.4g}"
    yield ""
    shown = found.importances[:MOST_SHOWN]
    shares = any(one.share is not None for one in shown)
    cells = [["column", f"{found.metric} increases by", "95 % interval"]]
    cells[0] += ["share of metric"] if shares else []
    for one in shown:
        line = [_short(one.name), f"{one.mean:.4g}", f"{one.low:.4g} to {one.high:.4g}"]
        cells.append([*line, f"{one.share:.1%}"] if shares else line)
    yield from _table(cells)
    left = len(found.importances) - len(shown)
    if left:
        yield f"… and {left:,} more; see --json"
    if found.n_columns > len(found.importances):
        yield (
            f"{len(found.importances):,} of {found.n_columns:,} columns were shuffled; use"
            " --columns to select others"
        )
    yield ""
    yield f"The mean of {wanted.repeats} shuffles. {COVERS}"
    if shares:
        yield SHARES
    for one in found.dependences:
        yield ""
        yield from _dependence(one, found)


def _dependence(one, found):
    """The lines of a column's partial dependence: some points of its grid, and the outputs that
    vary most along a column.
    """
    kept, several = found.widest(MOST_OUTPUTS), len(found.outputs) > 1
    of = f" of {found.outputs[0]}" if not several and found.outputs[0] else ""
    yield f"mean {found.response}{of} by {_short(one.name)}"
    step = 1 if one.kind == "categories" else -(-len(one.grid) // MOST_POINTS)
    heads = [["", *(_short(found.outputs[place]) for place in kept)]] if several else []
    yield from _table(
        heads
        + [
            [_value(value), *(f"{means[place]:.4g}" for place in kept)]
            for value, means in zip(one.grid[::step], one.means[::step])
        ]
    )


def _sampled(found) -> bool:
    return found.n_rows < found.n_given


def _short(name: str) -> str:
    return name if len(name) <= _WIDEST else f"{name[: _WIDEST - 1]}…"


def _value(value) -> str:
    return _short(value) if isinstance(value, str) else f"{value:.4g}"


def _table(cells):
    """Lines of cells; the first column is left-aligned and the others are right-aligned."""
    if not cells:
        return
    widths = [max(len(line[place]) for line in cells) for place in range(len(cells[0]))]
    for first, *others in cells:
        yield "  ".join(
            [
                first.ljust(widths[0]),
                *(text.rjust(width) for text, width in zip(others, widths[1:])),
            ]
        )
