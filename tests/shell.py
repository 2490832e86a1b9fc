"""Run command lines in the process of the tests."""

import io
import sys

import pytest
from click.testing import CliRunner, Result

from rfx.cli import cli, main


def run(capfd, *args, stdin=None, monkeypatch=None):
    """(exit code, standard output, standard error) of `rfx args`."""
    if stdin is not None:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
    with pytest.raises(SystemExit) as stop:
        main([str(arg) for arg in args])
    out, err = capfd.readouterr()
    return stop.value.code, out, err


def printed(capfd, *args, code=0, **more):
    """The standard output of `rfx args`, which must end with that exit code."""
    found, out, err = run(capfd, *args, **more)
    assert found == code, err
    return out


def refused(capfd, *args, code=1, **more):
    """The standard error of `rfx args`, which must end with that exit code."""
    found, _, err = run(capfd, *args, **more)
    assert found == code, err
    return err


def called(*words) -> Result:
    """What click says of `rfx words`, with an error as its exception."""
    return CliRunner().invoke(cli, [str(word) for word in words], standalone_mode=False)
