"""The output of --help for a command with method options: a page that fits a screen, a method's
options, or, with --help-all, everything.
"""

from dataclasses import dataclass

import click


@dataclass(frozen=True)
class Group:
    """A heading of the help, and the options below it.

    Attributes
    ----------
    title : str
    short : dict
        The lines of the short page. Keys are options as they are typed, such as ``--cv PARTS``.
    others : tuple of str
        The options shown only by --help-all.
    """

    title: str
    short: dict[str, str]
    others: tuple[str, ...] = ()

    @property
    def flags(self) -> list[str]:
        """Its options, in the order of the help."""
        return [*(shown.split()[0] for shown in self.short), *self.others]


DATA = {
    "--target COLUMN": "Target column; the last by default.",
    "--ignore COLUMN,…": "Columns to ignore.",
    "--categorical COLUMN,…": "Numeric columns to read as categories.",
    "--dates COLUMN,…": "Date columns.",
    "--missing VALUE": "Missing cells: refuse, mean, median or most_frequent.",
}
READING = ("--header", "--encoding", "--zero-based", "--strict")
FILES = {
    "--quiet": "Hide progress.",
    "--json": "Print JSON.",
    "--force": "Overwrite an existing output file.",
}


def asked(args) -> str | None:
    """The help option among the arguments of a command; None if there is none."""
    words = args[: args.index("--")] if "--" in args else args
    for flags in (("--help-all",), ("--help", "-h")):
        if any(word in flags for word in words):
            return flags[0]
    return None


def help_all_option(command):
    # MethodCommand prints the help before parsing
    return click.option(
        "--help-all",
        is_flag=True,
        expose_value=False,
        help="Show all options; with --method, the options of that method.",
    )(command)


def short(command, ctx, groups) -> str:
    """A page of the most common options."""

    width = max(len(shown) for group in groups for shown in group.short)

    def write(formatter):
        for group in groups:
            with formatter.section(group.title):
                formatter.write_dl(
                    [(shown.ljust(width), text) for shown, text in group.short.items()]
                )
        with formatter.section("More help"):
            formatter.write_dl(
                [
                    ("--method NAME --help".ljust(width), "The options of a method."),
                    ("--help-all", "All options."),
                ]
            )

    return _page(command, ctx, write)


def of_method(command, ctx, method, options) -> str:
    """The options of a method; method: its class."""

    def write(formatter):
        formatter.write_paragraph()
        with formatter.indentation():
            formatter.write_text(f"{method.name}: {method.summary}.")
        with formatter.section(f"Options of {method.name}"):
            formatter.write_dl(_records(options, ctx))
        with formatter.section("More help"):
            formatter.write_dl(
                [
                    ("--help", "Without --method: options for data, selection and output."),
                    ("--help-all", "All options."),
                ]
            )

    return _page(command, ctx, write, about=False)


def everything(command, ctx, groups) -> str:
    """All options; those in no group are listed under --method."""
    options = command.get_params(ctx)
    left = {flag: option for option in options for flag in option.opts}

    def write(formatter):
        for group in groups:
            own = [left[flag] for flag in group.flags if flag in left]
            if "--method" in group.flags:
                named = {flag for other in groups for flag in other.flags}
                own += [option for option in options if not named & {*option.opts}]
            with formatter.section(group.title):
                formatter.write_dl(_records(own, ctx))

    return _page(command, ctx, write)


def _records(options, ctx) -> list[tuple[str, str]]:
    return [record for option in options if (record := option.get_help_record(ctx))]


def _page(command, ctx, write, about: bool = True) -> str:
    formatter = ctx.make_formatter()
    command.format_usage(ctx, formatter)
    if about:
        command.format_help_text(ctx, formatter)
    write(formatter)
    return formatter.getvalue().rstrip("\n")
