"""`rfx datasets`: the available data sets."""

import json

import click

from rfx.data.registry import checked, registry
from rfx.data.registry.fetch import is_fetched, is_obtainable

COLUMNS = ("name", "task", "n", "d", "classes", "papers", "status", "checked", "stands_in_for")


@click.command()
@click.option(
    "--paper",
    metavar="PAPER",
    help="Only the data sets of one paper: yen2014, wu2016, sinha2016 or dai2014.",
)
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Print JSON, with titles, notes and instructions for data without a URL.",
)
def command(paper, as_json):
    """List the data sets with their sizes, the papers that use them and their status.

    The status is `built in`, `fetched`, `not fetched` (rfx fetch downloads it), `by hand` (no
    public download: `rfx fetch NAME` prints instructions), or `own file`: defined in the registry
    that RFX_DATASETS names, by default ~/.config/rfx/datasets.toml. `checked` states how the files
    are verified: by the published `sha256` of the files or of their `source`, or of a `known copy`;
    else by the `first copy` that was fetched, whose `size` was checked.

    NAME may include settings for generated sets: sphere:n=1000,d=5,seed=1.
    """
    infos = (
        registry.for_paper(paper)
        if paper is not None
        else [registry.get(name) for name in registry.names()]
    )
    rows = [_row(info) for info in infos]
    if as_json:
        click.echo(json.dumps(rows, indent=1))
        return
    table = [[name.replace("_", " ") for name in COLUMNS]] + [
        [_cell(row[name]) for name in COLUMNS] for row in rows
    ]
    widths = [max(len(line[i]) for line in table) for i in range(len(COLUMNS))]
    for line in table:
        padded = [cell.ljust(width) for cell, width in zip(line, widths)]
        padded[2:5] = [cell.rjust(width) for cell, width in zip(line[2:5], widths[2:5])]
        click.echo("  ".join(padded).rstrip())


def _row(info):
    if info.own is not None:
        status = "own file"
    elif info.builtin:
        status = "built in"
    elif is_fetched(info.name):
        status = "fetched"
    else:
        status = "not fetched" if is_obtainable(info.name) else "by hand"
    sizes = {"n": info.n, "d": info.d, "classes": info.classes}
    row = {"name": info.name, "task": info.task or None} | (
        sizes if info.own is None else dict.fromkeys(sizes)
    )
    means = {entry.filename: checked.means(entry) for entry in info.files}
    row |= {
        "papers": list(info.papers),
        "status": status,
        "checked": ", ".join(dict.fromkeys(means.values())),
    }
    row |= {"files": means, "stands_in_for": info.substitute_for}
    return row | {
        "title": info.title,
        "aliases": list(info.aliases),
        "note": info.note,
        "obtain": info.obtain,
    }


def _cell(value):
    if isinstance(value, int):
        return f"{value:,}"
    return " ".join(value) if isinstance(value, list) else value or ""
