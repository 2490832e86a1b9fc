"""Shared fixtures: separate folders for everything that rfx stores, and one thread for small
problems.

Every test begins with one thread, because on problems of this size threads only wait for each
other. Tests of threads set their number, or have the mark `threads`: as many as there are cores.
"""

import signal
import sys

import numpy as np
import pytest

from rfx import env, errors, parallel


def pytest_configure(config):
    """If a script starts the tests in the background, they ignore Ctrl-C, and so would the
    processes that they start and interrupt.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    """Before any fixture."""
    errors.warn_once.cache_clear()
    if item.get_closest_marker("threads"):
        env.set_threads(None)
    elif env.threads() != 1:
        env.set_threads(1)


@pytest.fixture
def rng():
    """Random numbers for one test, the same whichever tests ran before it."""
    return np.random.default_rng(99)


@pytest.fixture
def set_sizes(monkeypatch):
    """A function that sets constants of a module, so that a small problem goes the way of a large
    one: `set_sizes(local, EXACT=100)`. Sizes, limits and seconds only.
    """

    def change(module, **sizes):
        for name, size in sizes.items():
            monkeypatch.setattr(module, name, size)

    return change


@pytest.fixture
def shared_out(set_sizes):
    """For tests of threads: several threads compute small products, too."""
    set_sizes(parallel, _FEW=0)
    env.set_threads(max(2, env.cores()))
    yield
    env.set_threads(None)


@pytest.fixture
def free_memory(monkeypatch):
    """A function that sets the MiB of memory that are free."""
    return lambda size: monkeypatch.setattr(env, "available_memory_mb", lambda: size)


@pytest.fixture
def few_rows_choose(set_sizes):
    """A function that sets the number of rows on which scaling, kernel and metric are chosen."""
    from rfx.fitting import metric_learning

    return lambda count: set_sizes(metric_learning, ROWS=count)


@pytest.fixture
def no_pauses(set_sizes):
    """Downloads are tried again at once."""
    from rfx.data import registry

    set_sizes(registry, PAUSES=(0.0, 0.0, 0.0))


@pytest.fixture
def by_threads():
    """A function that calls another with each number of threads: the list of results."""

    def results(make, counts=(1, 2)):
        found = []
        for count in counts:
            env.set_threads(count)
            found.append(make())
        return found

    return results


@pytest.fixture
def own_folders(tmp_path, monkeypatch):
    """Data and caches are below tmp_path; no mirror and no registry."""
    monkeypatch.setenv("RFX_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("RFX_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    for name in ("RFX_MIRROR", "RFX_DATASETS"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def add_paper(monkeypatch):
    """A function that adds a folder to the papers and returns what rfx finds in it."""
    from rfx import papers

    added = []

    def add(folder):
        monkeypatch.setattr(papers, "__path__", [*papers.__path__, str(folder.parent)])
        added.append(folder.name)
        return papers.folder(folder.name)

    yield add
    for name in added:
        for module in [key for key in sys.modules if key.startswith(f"rfx.papers.{name}")]:
            del sys.modules[module]
        vars(papers).pop(name, None)


@pytest.fixture
def reloaded(tmp_path):
    """A function from a model to that of its file, whose decisions on the rows are the same, or
    differ by `atol` at most.
    """
    from rfx import methods

    def load(model, rows, atol=0):
        assert model.save(tmp_path / "saved.npz") == (tmp_path / "saved.npz").stat().st_size
        again = methods.load(tmp_path / "saved.npz")
        found, expected = again.decision_function(rows), model.decision_function(rows)
        np.testing.assert_allclose(found, expected, rtol=0, atol=atol)
        return again

    return load


@pytest.fixture
def fewest_evaluated(monkeypatch):
    """A function that sets the minimum number of rows that a single split evaluates."""
    from rfx.fitting import selection
    from rfx.fitting.held_out import Splitter

    def change(number):
        class Changed(Splitter):
            def parts(self, share, fewest, option):
                return super().parts(share, number, option)

        monkeypatch.setattr(selection, "Splitter", Changed)

    return change
