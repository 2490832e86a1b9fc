"""`rfx methods`: what can be trained, with which options."""

import dataclasses
import json

import click

from rfx.cli.common import json_option


@click.command("methods")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@json_option
def command(names, as_json):
    """List the methods and their options with defaults and allowed values."""
    from rfx import methods
    from rfx.methods.base import COMMON
    from rfx.methods.options import OPTIONS

    listed = [methods.get(name) for name in names or methods.METHODS]
    if as_json:
        table = [{"name": m.name, "summary": m.summary, "options": COMMON | m.options} for m in listed]
        click.echo(json.dumps(table, indent=2))
        return
    for method in listed:
        click.echo(f"{method.name}: {method.summary}")
        for name, default in (method.options | COMMON).items():
            option = OPTIONS[name]
            shown = "" if default is None else f", default {default}"
            if name in method.words:
                option = dataclasses.replace(option, words=method.words[name])
            click.echo(f"  {option.flag:<18} {option.expects()}{shown}")
        click.echo()
