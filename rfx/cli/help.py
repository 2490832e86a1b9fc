"""`rfx help`: the help of rfx or of one of its commands."""

import click


def _complete(ctx, param, incomplete):
    known = ctx.find_root().command.list_commands(ctx)
    return [name for name in known if name.startswith(incomplete)]


@click.command("help", context_settings={"ignore_unknown_options": True})
@click.argument("words", nargs=-1, metavar="[COMMAND]...", shell_complete=_complete)
@click.pass_context
def command(ctx, words):
    """Show the help of a command, like its --help; without a command, list all commands.

    \b
    rfx help train
    rfx help train --method rf
    """
    root = ctx.find_root()
    if not words:
        click.echo(root.get_help())
        return
    name, found, more = root.command.resolve_command(root, list(words))
    found.make_context(name, [*more, "--help"], parent=root)
