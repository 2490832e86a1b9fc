"""`rfx methods`: the available methods and their options."""

import json

import click

from rfx import methods
from rfx.cli.common import complete_method, json_option


@click.command("methods")
@click.argument("names", nargs=-1, metavar="[NAME]...", shell_complete=complete_method)
@json_option
def command(names, as_json):
    """List the methods and their options with defaults and allowed values."""
    listed = [methods.get(name) for name in names or methods.names()]
    if as_json:
        table = [
            {
                "name": m.name,
                "long_name": next(iter(methods.long_names([m.name])), None),
                "summary": m.summary,
                "options": m.defaults(),
            }
            for m in listed
        ]
        click.echo(json.dumps(table, indent=2))
        return
    for method in listed:
        long = "".join(f" (or {name})" for name in methods.long_names([method.name]))
        click.echo(f"{method.name}: {method.summary}{long}")
        for option in method.declared().values():
            shown = "" if option.default is None else f", default {option.default}"
            click.echo(f"  {option.flag:<18} {option.expects()}{shown}")
        click.echo()
