"""The README's commands exist: every `rfx` line parses, every `make` target is there, every path it names."""

import re
import shlex
from pathlib import Path

import pytest

from rfx.cli import COMMANDS, cli

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text()
BLOCKS = "\n".join(re.findall(r"```sh\n(.*?)```", README, re.S))
LINES = [line for line in BLOCKS.replace("\\\n", " ").splitlines() if line.strip()]
RFX = [line for line in LINES if re.match(r"(\w+=\S+ )*(\.venv/bin/)?rfx ", line)]


def words(line):
    """The arguments of the first command of a shell line, without what follows a pipe, redirection or comment."""
    found = shlex.split(line, comments=True)
    while "=" in found[0]:
        found.pop(0)
    for number, word in enumerate(found):
        if word in ("|", ">", "<", ">>"):
            found = found[:number]
            break
    return found[1:]


@pytest.mark.parametrize("line", RFX)
def test_rfx_line_parses(line):
    arguments = words(line)
    command = cli.get_command(None, arguments[0])
    assert command is not None, f"there is no command {arguments[0]}"
    context = command.make_context(arguments[0], arguments[1:])
    if arguments[0] == "train":
        from rfx import methods
        from rfx.cli.common import given_options

        methods.create(context.params["method"], **given_options(context.params["method"], context.params))
    if arguments[0] in ("run", "table"):
        from rfx import papers

        name = context.params.get("plan")
        assert name is None or name in papers.plans()


def test_every_command_is_in_the_readme():
    for name in COMMANDS:
        assert f"rfx {name}" in README, name


def test_make_targets_exist():
    targets = set(re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text(), re.M))
    used = set(re.findall(r"`?make ([a-z0-9-]+)", README))
    assert {"demo", "test", "help", "install"} <= used
    assert used <= targets


def test_make_clean_deletes_what_it_says():
    said, recipe = re.search(r"^clean: ## (.*)\n\t(.*)", (ROOT / "Makefile").read_text(), re.M).groups()
    assert "demo/" in said and "not results/" in said and "demo" in recipe.split() and "results" not in recipe


def test_paths_exist():
    for path in re.findall(r"`((?:rfx|tests|benchmarks)/[\w/.-]*)`", README):
        assert (ROOT / path).exists(), path
