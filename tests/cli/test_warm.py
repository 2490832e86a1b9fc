"""`rfx warm` fills an empty cache. The first command that has to compile says why it takes long."""

import os
from types import SimpleNamespace

import numpy as np
from click.testing import CliRunner

from rfx import env, methods
from rfx.cli import _COMPILING, COMMANDS, main
from rfx.cli.models import warm as command


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
