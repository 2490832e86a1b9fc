"""`rfx fetch`: download data sets into the data folder and verify them."""

import json
import sys

import click

from rfx.data.registry import registry
from rfx.data.registry.fetch import fetch, is_obtainable
from rfx.errors import RfxError


@click.command(
    epilog=(
        "Files are stored in $RFX_DATA, or in rfx's cache by default. $RFX_MIRROR names a folder or"
        " URL to search first."
    )
)
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option(
    "--all",
    "everything",
    is_flag=True,
    help="Every data set that can be downloaded without manual steps.",
)
@click.option(
    "--paper",
    metavar="PAPER",
    help="The data sets of one paper: yen2014, wu2016, sinha2016 or dai2014.",
)
@click.option(
    "--offline",
    is_flag=True,
    help="Do not use the network; use only a mirror folder and existing files.",
)
@click.option(
    "--trust",
    is_flag=True,
    help=("Accept files without a published checksum even if their content or size changed."),
)
@click.option("--json", "as_json", is_flag=True, help="Print the files as JSON.")
def command(names, everything, paper, offline, trust, as_json):
    """Fetch data sets by name, all of them, or those of one paper.

    Prints the path of each file. An existing file is not downloaded again, but its checksum (see
    `rfx datasets`) is verified if it has changed. Exits with 3 if some of several sets can't be
    fetched, and prints the reasons on standard error.
    """
    if bool(names) + everything + (paper is not None) != 1:
        raise click.UsageError(
            "pass data set names, --all, or --paper PAPER (`rfx datasets` lists them)"
        )
    if paper is not None:
        infos = registry.for_paper(paper)
    else:
        infos = [registry.get(name) for name in (registry.names() if everything else names)]
    if everything:
        infos = [info for info in infos if is_obtainable(info.name)]
    files, failed = [], 0
    for info in infos:
        try:
            found = fetch(info.name, offline=offline, trust=trust)
        except RfxError as error:
            if len(infos) == 1:
                raise
            failed += 1
            click.echo(f"rfx: {error}", err=True)
            continue
        files += [
            {"dataset": info.name, "role": role, "path": str(path)} for role, path in found.items()
        ]
        if not found:
            click.echo(
                f"{info.name} is {'built in' if info.own is None else 'a file of your own'}:"
                " nothing to fetch",
                err=True,
            )
    if as_json:
        click.echo(json.dumps(files, indent=1))
    else:
        for entry in files:
            click.echo(f"{entry['dataset']}\t{entry['role']}\t{entry['path']}")
    if failed:
        click.echo(f"rfx: {failed} of {len(infos)} data sets could not be fetched", err=True)
        sys.exit(3)
