"""The flags of the commands: options of a run, of reading a file, of methods and of the command
line alone, each declared once; and the pages of help.
"""

import contextlib
import io
import logging
import shutil
import warnings
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any, TypeAlias

import click

from rfx import env, files, methods
from rfx.cli.output import stamp
from rfx.data import registry
from rfx.data.reading import Reading
from rfx.errors import RfxWarning, UsageError
from rfx.options import Option, options_of
from rfx.records.run import Run

_INPUTS_AND_OUTPUTS = (
    Option("method", str, "Method; see `rfx methods`.", default="auto", metavar="NAME"),
    Option("data", str, "A data set, a file (CSV, LIBSVM, …), or -.", metavar="NAME|FILE"),
    Option("model", str, "Write the model to this file.", metavar="FILE"),
    Option("results", str, "Append the run's row to this CSV file.", metavar="FILE"),
    Option("trace", str, "Traces of the runs, by default next to the results.", metavar="FILE"),
    Option(
        "log",
        str,
        "Append progress, notes and errors with the time to this file, not to standard error.",
        metavar="FILE",
    ),
    Option("output", str, "Output file; - is standard output.", default="-", metavar="FILE|-"),
    Option("paper", str, "Only this paper: yen2014, wu2016, sinha2016 or dai2014."),
    Option("setting", str, "Only rows of this setting; by default the first one present."),
)
_HOW_TO_RUN = (
    Option(
        "jobs",
        int,
        "Simultaneous runs. They share the cores, so times are comparable only with 1.",
        low=1,
        default=1,
        metavar="COUNT",
    ),
    Option(
        "format",
        str,
        "csv and json hold one number per line; latex needs the package booktabs.",
        ("text", "markdown", "latex", "csv", "json"),
        default="text",
    ),
    Option("width", int, "Text width; by default the terminal's, else 80.", low=1),
    Option("quiet", bool, "Print only errors and what --json asks for.", default=False),
    Option("verbose", bool, "Print the details, too.", default=False),
    Option("force", bool, "Overwrite an existing output file, but no input.", default=False),
    Option("json", bool, "Print JSON.", default=False),
    Option("list", bool, "List the names and exit.", default=False),
    Option("dry_run", bool, "Print what would be done, and exit.", default=False),
)
# The flags that several commands have, by name. A command names those that it has: `flags("data")`.
DECLARED = {
    **options_of(Reading),
    **options_of(Run),
    **{option.name: option for option in (*_INPUTS_AND_OUTPUTS, *_HOW_TO_RUN)},
}
# The values of a command's flags, by name.
Values: TypeAlias = Mapping[str, Any]
_SHORT = {"output": "-o", "n_features": "-n", "verbose": "-v"}
READING = tuple(options_of(Reading))
# of a file for a model, which is read as its training file
TEXT = ("header", "encoding", "zero_based", "strict")


class Value(click.ParamType):
    """The values of a declared option."""

    name = "value"

    def __init__(self, option: Option):
        self.option = option

    def convert(self, value, param, ctx):
        if self.option.metavar == "FILE" and files.names_folder(value):
            raise UsageError(f"{self.option.flag} is {value}, which is a folder; use a file name")
        return self.option.convert(value)


def _set_threads(ctx, param, value) -> None:
    if value is not None:
        env.set_threads(min(value, env.cores()))


@contextlib.contextmanager
def hushed():
    """Print neither notes nor warnings."""
    logger = logging.getLogger("rfx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RfxWarning)
            yield
    finally:
        logger.setLevel(level)


def _hush(ctx, param, value) -> bool:
    """With --quiet, print neither notes nor warnings while the command runs."""
    if value:
        ctx.with_resource(hushed())
    return value


def _default_width(ctx, param, value) -> int:
    return value or shutil.get_terminal_size().columns


class _Log(io.TextIOBase):
    """A text stream in place of standard error, whose lines get the time in a file."""

    adds_time = True

    def __init__(self, file):
        self.file, self.begun = file, ""

    def write(self, text: str) -> int:
        *lines, self.begun = (self.begun + text).split("\n")
        for line in lines:
            self.file.write(f"{stamp()} {line}\n")
        return len(text)


def _log_to(ctx, param, value) -> None:
    """With --log, write to the file what standard error would show, also of an error that ends the
    command.
    """
    if value:
        root = ctx.find_root()
        file = root.with_resource(open(value, "a", encoding="utf-8", buffering=1))
        root.with_resource(contextlib.redirect_stderr(_Log(file)))


_CALLBACKS: dict[str, dict[str, object]] = {
    "quiet": {"callback": _hush, "is_eager": True},
    "log": {"callback": _log_to, "expose_value": False, "is_eager": True},
    "threads": {"callback": _set_threads, "expose_value": False, "is_eager": True},
    "width": {"callback": _default_width},
}


def flag(option: Option, **more: object) -> Callable:
    """The click option of a declaration, as a decorator."""
    names = [option.flag]
    if option.name in _SHORT:
        names.append(_SHORT[option.name])
    settings: dict[str, Any]
    if option.kind is bool:
        settings = {"is_flag": True, "default": option.default, "help": option.help}
        if option.default is None:
            names = [f"{option.flag}/--no-{option.name}"]
    else:
        settings = {"type": Value(option), "metavar": option.placeholder}
        settings["help"] = option.description()
        if option.default not in (None, ()):
            settings |= {"default": option.default, "show_default": True}
    settings |= _CALLBACKS.get(option.name, {})
    return click.option(*names, option.name, **settings | more)


def flags(*wanted: str | Option | Callable, **changed: str) -> Callable:
    """A decorator that gives a command flags, in this order: declared ones by name, further
    declarations, and click's options; changed: other help for some names.
    """

    def decorated(command):
        for one in reversed(wanted):
            if isinstance(one, str):
                declared = DECLARED[one]
                one = declared.replace(help=changed.get(one, declared.help))
            decorator = flag(one) if isinstance(one, Option) else one
            command = decorator(command)
        return command

    return decorated


def reading_of(values: Values) -> Reading:
    """How a command's values say that a file is read."""
    given = {name: values.get(name) for name in READING}
    given["zero_based"] = values.get("zero_based") or None
    return Reading(**{name: value for name, value in given.items() if value is not None})


def run_of(values: Values, **more: Any) -> Run:
    """The run of a command's values; more: further fields."""
    reading = reading_of({name: values.get(name) for name in READING})
    fields: dict[str, Any] = {"reading": reading if reading.given() else None}
    for name in options_of(Run):
        if values.get(name) is not None:
            fields[name] = values[name]
    return Run(**fields | more)


def check_data(data: str | None, command: str = "") -> None:
    """Raise UsageError without --data, with a command that needs no download."""
    if data is not None:
        return
    message = "--data is missing: a file, or a name from rfx datasets"
    if command:
        message += f"; try {command} --data breast_cancer, which needs no download"
    raise UsageError(message)


def named(option: str, source: str | None) -> list[tuple[str, object]]:
    """The input of an option, a data set's name or a file, in the form required by
    `files.guard`.
    """
    return [] if source is None else [(option, path) for path in registry.paths(source)]


class DeclaringCommand(click.Command):
    """A command whose further options depend on the value of one of its flags, or are those of all
    values if it is not given.

    Parameters
    ----------
    by : str
        That flag.
    declared : callable
        Returns the options (rfx.options) of a value, or of all for None.
    groups : dict, optional
        The short page of help: the flags below each heading, or pairs of a flag as typed and its
        text, for options of methods, whose import takes long.
    unnamed : str, optional
        The value if none is given.
    implied : dict of str, optional
        The value for a line that has a flag but not `by`, as a message says.
    """

    def __init__(self, *args, by, declared, groups=None, unnamed=None, implied=None, **more):
        super().__init__(*args, **more)
        self.by, self.declared, self.groups, self.unnamed = by, declared, groups, unnamed
        self.implied = implied or {}
        if groups:
            text = f"Show all options; with {by}, those of its value."
            all_of_it = click.Option(["--help-all"], is_flag=True, help=text, expose_value=False)
            self.params.append(all_of_it)

    def parse_args(self, ctx, args):
        ctx.meta["rfx.named"] = named = _last_value(args, self.by)
        if self.groups and not ctx.resilient_parsing:
            self._print_help(ctx, args)
        if named is None and not ctx.resilient_parsing:
            args = self._with_implied(args)
            ctx.meta["rfx.named"] = named = _last_value(args, self.by)
        # a shell completes an invalid line, too
        valid = not ctx.resilient_parsing or named is None or named in methods.METHODS
        ctx.meta["rfx.named"] = (named or self.unnamed) if valid else None
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            if not self.groups or ctx.meta["rfx.named"] is None:
                raise
            raise self._no_option(ctx.meta["rfx.named"], error.option_name) from None

    def _print_help(self, ctx, args) -> None:
        """Print the page of help and exit, if a line asks for it."""
        if not {"-h", "--help", "--help-all"} & {*args}:
            return
        everything = "--help-all" in args
        if not everything:
            ctx.meta["rfx.options"] = []  # the short page needs no import of methods
        click.echo(self._page(ctx, everything))
        ctx.exit()

    def _no_option(self, method: str, wanted: str) -> UsageError:
        """The error for an option that neither the command nor the method has."""
        own = [name for option in self.params for name in option.opts if name.startswith("--")]
        return methods.no_option(method, wanted, own)

    def _with_implied(self, args: list[str]) -> list[str]:
        """The words of a line, with the value that one of its flags implies."""
        flags = {word.partition("=")[0] for word in args}
        for flag, value in self.implied.items():
            if flag in flags:
                if "--quiet" not in flags:
                    click.echo(f"rfx: {flag} without {self.by} takes {value}", err=True)
                return [*args, self.by, value]
        return args

    def get_params(self, ctx):
        if "rfx.options" not in ctx.meta:
            declared = self.declared(ctx.meta.get("rfx.named"))
            ctx.meta["rfx.options"] = [_of_method(option) for option in declared]
        # the last one belongs to --help
        *own, last = super().get_params(ctx)
        return [*own, *ctx.meta["rfx.options"], last]

    def _page(self, ctx, everything: bool) -> str:
        """The text of help: the most common flags, the options of the named method, or all."""
        formatter, named = ctx.make_formatter(), ctx.meta["rfx.named"]
        self.format_usage(ctx, formatter)
        if everything:
            self.format_help_text(ctx, formatter)
            self.format_options(ctx, formatter)
        elif named:
            method = methods.get(named)
            formatter.write(f"\n  {method.name}: {method.summary}.\n")
            options = map(_of_method, self.declared(named))
            records = [option.get_help_record(ctx) for option in options]
            with formatter.section(f"Options of {method.name}"):
                formatter.write_dl(records)
        else:
            self.format_help_text(ctx, formatter)
            self._format_groups(formatter)
        other = ("--method NAME --help".ljust(_WIDTH), "The options of a method.")
        if named:
            other = ("--help", "Without --method: options for data, selection and output.")
        with formatter.section("More help"):
            formatter.write_dl([other, ("--help-all", "All options.")])
        return formatter.getvalue().rstrip("\n")

    def _format_groups(self, formatter) -> None:
        """Write the most common flags, below their headings."""
        own = {one.name: _line(one) for one in self.params if isinstance(one, click.Option)}
        for title, entries in self.groups.items():
            lines = []
            for one in entries:
                words, text = own[one] if isinstance(one, str) else one
                lines.append((words.ljust(_WIDTH), text))
            with formatter.section(title):
                formatter.write_dl(lines)


_WIDTH = 24  # of the first column of the short page


def _line(option: click.Option) -> tuple[str, str]:
    """A flag, and the first sentence of its help with its default; long choices are left out."""
    sentence, _, _ = (option.help or "").partition(". ")
    text = f"{sentence.removesuffix('.')}."
    if isinstance(option.default, str | float):
        text += f" [default: {option.default}]"
    flag, form = option.opts[0], option.metavar or ""
    if len(f"{flag} {form}") > _WIDTH:
        first, _, _ = form.partition("|")
        form = first if first.isupper() else "NAME"
    return f"{flag} {form}".strip(), text


def _of_method(option: Option) -> click.Option:
    values = option.expects()
    if option.default is not None:
        values += f"; default {option.default}"
    text = f"{option.description()} [{values}]"
    return click.Option([option.flag, option.name], metavar=option.placeholder, help=text)


def _last_value(words: list[str], name: str) -> str | None:
    """The value of the last flag of that name among the words of a line, or None."""
    # bash passes the = between them as a separate word
    parts = [part for word in words for part in word.split("=") if part]
    values = [after for word, after in pairwise(parts) if word == name]
    return values[-1] if values else None


def given_options(method: str, values: Values) -> dict[str, Any]:
    """The method options given on the command line, converted and checked."""
    kind = methods.get(method)
    given = {name: values[name] for name in kind.declared() if name in values}
    return kind.converted(given)
