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

# Columns, outputs, and points of a grid of numbers that are printed; --json has all.
MOST_SHOWN, MOST_OUTPUTS, MOST_POINTS = 40, 8, 10
_WIDEST = 40  # characters of a name in a table
COVERS = (
    "The interval covers chance: of the columns that tell nothing, 95 % have 0 in theirs. It leaves"
    " out that other rows, or another training, would give other numbers."
)
SHARES = (
    "The share of the metric is that of the average squared gradient, as in `rfx info`: how much"
    " predictions change with a column, whether that helps or not."
)


@click.command("explain")
@click.argument("model", type=click.Path(dir_okay=False))
@click.option(
    "--data",
    "dataset",
    required=True,
    metavar="NAME|FILE",
    shell_complete=complete_data,
    help="Rows that the model was not trained on: a data set's name (its test part), a file, or -.",
)
@click.option(
    "--target",
    metavar="COLUMN",
    help="The target column, where its name differs from that in the training file.",
)
@click.option("--columns", metavar="COLUMN,…", help="Shuffle only these columns.")
@click.option(
    "--rows",
    type=Count(least=2),
    default=2000,
    show_default=True,
    help="Use at most this many rows, drawn at random.",
)
@click.option(
    "--repeats",
    type=Count(least=10),
    default=10,
    show_default=True,
    help="Shuffles of each column.",
)
@click.option(
    "--top",
    type=Count(least=0),
    default=4,
    show_default=True,
    help="Number of leading columns with partial dependence.",
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
    help="Also draw a figure: a name that ends in .svg, .png or .pdf.",
)
@split_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON, each shuffle included.")
@text_options
@strict_option
@force_option
@quiet_option
@threads_option
def command(model, dataset, target, split, figure, as_json, strict, force, quiet, **more):
    """Show which columns a model's predictions depend on, and how.

    Permutation importance: by how much the error rises when the cells of one column are shuffled
    among the rows. A column of a table counts as one, whatever number of inputs it became. Partial
    dependence: the mean prediction where all rows have the same value in a column. Both are of the
    rows given, which should be held out: on training rows they also say what was learnt by heart.
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
    """The schema of a model for a file whose column of targets has another name."""
    known = method.schema
    if known is None or known.inputs is None or known.target is None:
        raise UsageError(
            "--target is for tables, but the model learnt from rows without names of columns; leave"
            " it out"
        )
    if not known.named:
        raise UsageError(
            "--target names a column, but the model's training file had no names; leave it out, and"
            f" put the targets into column {known.target[1] + 1}"
        )
    if target in {column.name for column in known.inputs}:
        raise UsageError(f"--target is {quoted(target)}, which is an input of the model")
    return replace(known, target=(target, known.target[1]))


def _learnt_from(method, dataset, n_rows) -> str | None:
    """What is said where rows may be those that the model learnt from, by what it knows of them."""
    info = method.info
    known, n_train = info.get("dataset"), info.get("n_train")
    own = dataset if registry.has(dataset.partition(":")[0]) else archives.plain_name(dataset)
    if known != own or n_train is None or n_rows < n_train or dataset == "-":
        return None
    which = "these may be" if n_rows == n_train else f"{n_train:,} of these may be"
    return (
        f"{which} the rows that the model learnt from, a file of the same name; rows that were held"
        " out say more"
    )


def _facts(found, wanted, dataset, doubt) -> dict:
    """What --json prints."""
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
    """What a person reads."""
    drawn = f" of {found.n_given:,}, drawn by seed {wanted.seed}" if _sampled(found) else ""
    yield f"rows    {found.n_rows:,}{drawn} of {os.path.basename(dataset)}"
    yield f"error   {found.metric} {found.error:.4g}"
    yield ""
    shown = found.importances[:MOST_SHOWN]
    shares = any(one.share is not None for one in shown)
    cells = [["column", f"{found.metric} rises by", "95 % interval"]]
    cells[0] += ["share of metric"] if shares else []
    for one in shown:
        line = [_short(one.name), f"{one.mean:.4g}", f"{one.low:.4g} to {one.high:.4g}"]
        cells.append([*line, f"{one.share:.1%}"] if shares else line)
    yield from _table(cells)
    left = len(found.importances) - len(shown)
    if left:
        yield f"… and {left:,} more, which --json has"
    if found.n_columns > len(found.importances):
        yield (
            f"{len(found.importances):,} of {found.n_columns:,} columns were shuffled; --columns"
            " names others"
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
    differ most along a column.
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
    """Lines of cells, the first at the left and the others at the right of their columns."""
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
