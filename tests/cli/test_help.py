"""Help: a page that fits a screen, the options of one method, and all options. `rfx warm` fills an
empty cache, and the first command that has to compile says why it takes long.
"""

import os
from types import SimpleNamespace

import click
import numpy as np
import pytest
from click.testing import CliRunner

from rfx import env, methods
from rfx.cli import _COMPILING, COMMANDS, cli, main
from rfx.cli.models import warm as command

TWO = pytest.mark.parametrize("name", ["train", "tune"])


def said(*words, code=0) -> str:
    done = CliRunner(env={"COLUMNS": "80"}).invoke(cli, list(words))
    assert done.exit_code == code, done.output
    return done.output


def options_in(text) -> set[str]:
    """The options that begin a line of help."""
    return {
        word
        for line in text.splitlines()
        if line.startswith("  -")
        for word in line.replace(",", "").replace(" / ", " ").split("  ")[1].split()
        if word.startswith("--")
    }


def headings(text) -> list[str]:
    return [line for line in text.splitlines() if line.endswith(":") and line[:1].isalpha()]


@TWO
def test_the_help_fits_a_screen(name):
    for flag in ("--help", "-h"):
        lines = said(name, flag).splitlines()
        assert len(lines) <= 60 and max(map(len, lines)) <= 80
    workers = ["Distributed:"] if name == "train" else []
    assert headings("\n".join(lines)) == [
        "Data:",
        "Method:",
        "Selection:",
        "Output:",
        *workers,
        "More help:",
    ]
    assert said(name, "--gamma", "2", "--help") == said(name, "--help")


@TWO
def test_the_help_names_no_option_that_is_not_there(name):
    command = cli.get_command(None, name)
    known = {option.flag for option in command.declared(None)} | {"--help"}
    known |= {flag for option in command.params for flag in option.opts}
    shown = options_in(said(name, "--help")) - {"--method NAME"}
    assert len(shown) > 20 and shown <= known | {"--help-all"}


@TWO
def test_the_short_page_shows_choices_and_defaults_as_declared(name):
    command = cli.get_command(None, name)
    declared = {option.flag: option for option in methods.options_of(None)}
    entries = [one for lines in command.groups.values() for one in lines if isinstance(one, tuple)]
    assert len(entries) > 5
    for line, text in entries:
        flag, form = line.split()
        assert {*form.split("|")} <= {"NUMBER", "INTEGER", "NAME"}
        words = {word.strip(",;:.") for word in text.partition("[")[0].split() if word[-1:] in ",;"}
        own = text.partition("default: ")[2].removesuffix("]")
        known = {*declared[flag].meanings(), "LABEL:WEIGHT,…", "LABEL:WEIGHT", "…", ""}
        assert ({own} if own and not own.isdigit() else set()) <= known, line
        assert {word for word in words if word in ("median", "loo", "auto")} <= known, line
    assert "VALUE" not in said(name, "--help") + said(name, "--method", "rf", "--help")


@TWO
def test_help_all_has_every_option(name):
    command = cli.get_command(None, name)
    opts = [flag for option in command.params for flag in option.opts]
    own = {flag for flag in opts if flag.startswith("--")}
    declared = {option.flag for option in command.declared(None)}
    assert options_in(said(name, "--help-all")) >= own | declared
    one = options_in(said(name, "--help-all", "--method", "rb"))
    assert one >= own | {option.flag for option in command.declared("rb")}
    assert "--n-features" not in one and "--n-grids" in one


@TWO
def test_the_help_of_a_method_has_its_options(name):
    text = said(name, "--method", "random-binning", "--help")
    declared = {option.flag for option in cli.get_command(None, name).declared("rb")}
    assert options_in(text) == declared | {"--help", "--help-all"} and "rb: random bin" in text
    assert said("help", name, "--method=rb") == text


def test_every_command_and_option_has_help():
    assert said("help") == said("--help")
    for name in COMMANDS:
        command = cli.get_command(None, name)
        assert isinstance(command, click.Command) and command.help, name
        for option in command.params:
            assert not isinstance(option, click.Option) or option.help, f"rfx {name} {option.opts}"
        assert said("help", name) == said(name, "--help")
        assert said("help", name).startswith("Usage: ")


def test_every_method_is_trained(monkeypatch):
    fitted = set()

    def create(name, **options):
        trained = SimpleNamespace(decision_function=lambda X: np.zeros(len(X)))
        return SimpleNamespace(fit=lambda X, y: fitted.add((name, options["task"])) or trained)

    monkeypatch.setattr(methods, "create", create)
    assert CliRunner().invoke(command).exit_code == 0
    assert fitted == {(name, task) for name in methods.names() for task in ("binary", "regression")}


def test_an_empty_cache_is_said(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "numba"))
    assert env.nothing_compiled()
    for args in (["train"], ["train", "--help"], ["methods", "rf"]):
        try:
            main(args)
        except SystemExit:
            pass
        assert ("compiling" in capsys.readouterr().err) == (
            args[0] in _COMPILING and "--help" not in args
        )
    os.makedirs(tmp_path / "numba" / "x")
    assert not env.nothing_compiled()
    assert set(_COMPILING) <= set(COMMANDS)
