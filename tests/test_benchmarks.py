"""What the benchmarks share: turns, and what is said of their seconds."""

import importlib.util
import re
from pathlib import Path

import docs_benchmarks
import numpy as np
import threadpoolctl

FOLDER = Path(__file__).parent.parent / "benchmarks"
# Sets of rows are what they repeat.
WITHOUT = {"bench_defaults.py", "bench_streams.py", "bench_tables.py"}
# It compares two checkouts, which a change's own description reports.
UNDOCUMENTED = {"bench_versions.py"}


def loaded(name="pairs"):
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_turns_alternate():
    calls = []
    found = loaded().turns(["a", "b"], lambda name: calls.append(name) or len(calls), 3)
    assert calls == ["a", "b"] * 3 and found == {"a": [1, 3, 5], "b": [2, 4, 6]}


def test_ratios_are_within_the_turns():
    pairs = loaded()
    ours, theirs = (
        [{"seconds": value} for value in values] for values in ((1.0, 2.0, 4.0), (3.0, 4.0, 20.0))
    )
    assert pairs.ratios(theirs, ours, "seconds") == "3.0 (2.0 to 5.0)"
    assert (
        pairs.spread([3.0, 1.0, 8.0]) == "3.00 (1.00 to 8.00)"
        and pairs.spread([2.0], ".1f") == "2.0"
    )


def test_timed_and_the_machine(monkeypatch):
    pairs = loaded()
    row = pairs.timed(lambda: sum(range(1000)))
    assert row["result"] == 499500 and 0 <= row["seconds"] and 0 <= row["cpu"]
    monkeypatch.delenv("OPENBLAS_CORETYPE", raising=False)
    told = re.fullmatch(
        r".+, 3 threads, \d+ cores, load \d+\.\d at the start(, BLAS kernels for \w+( and \w+)*)?",
        pairs.machine(3),
    )
    assert told and bool(told[1]) == any(
        own.get("internal_api") == "openblas" for own in threadpoolctl.threadpool_info()
    )
    monkeypatch.setenv("OPENBLAS_CORETYPE", "Haswell")
    assert not told[1] or pairs.machine(3).endswith(", forced by OPENBLAS_CORETYPE")


def test_versions_are_those_of_their_checkouts(monkeypatch, tmp_path):
    """Whatever package lies in the folder that the script is called in."""
    monkeypatch.syspath_prepend(str(FOLDER))
    versions = loaded("bench_versions")
    (tmp_path / "rfx").mkdir()
    (tmp_path / "rfx" / "__init__.py").write_text("")
    monkeypatch.chdir(FOLDER.parent)
    for checkout in (tmp_path, FOLDER.parent):
        found = versions.python(checkout, "-c", "import rfx; print(rfx.__file__)").stdout.strip()
        assert Path(found).is_relative_to(checkout)


def test_every_benchmark_takes_five_pairs():
    assert loaded().PAIRS == 5
    for path in FOLDER.glob("bench_*.py"):
        text = path.read_text()
        assert ("add_pairs(parser)" in text and "machine(" in text) != (path.name in WITHOUT), (
            path.name
        )


def test_competitors_run_as_long_as_they_are_wanted(monkeypatch):
    """Their processor time is what tells that they run; afterwards there is no such process."""
    monkeypatch.syspath_prepend(str(FOLDER))
    bench = loaded("bench_threads")
    started, popen = [], bench.subprocess.Popen
    monkeypatch.setattr(
        bench.subprocess, "Popen", lambda *words: started.append(popen(*words)) or started[-1]
    )
    with bench.competitors(2):
        assert len(started) == 2 and all(one.poll() is None for one in started)
    assert all(one.returncode for one in started)


def test_every_benchmark_has_its_block_in_the_document():
    blocks = [
        match[2].split()[0]
        for match in docs_benchmarks.MADE.finditer(docs_benchmarks.DOCUMENT.read_text())
    ]
    scripts = {path.name for path in FOLDER.glob("bench_*.py")}
    assert scripts >= UNDOCUMENTED and set(blocks) == scripts - UNDOCUMENTED


def test_blocks_are_made_anew():
    text = "before\n<!-- benchmark bench_a.py --pairs 2 -->\nold\n<!-- end -->\nand\n"
    text += "<!-- benchmark bench_b.py -->\nold b\n<!-- end -->\nafter\n"
    made, failed = docs_benchmarks.renewed(
        text, "", lambda command: f"| {command} |\n" if "_a" in command else None, "1234567"
    )
    assert failed == ["bench_b.py"], "a benchmark that fails leaves its block as it was"
    block = (
        "`python benchmarks/bench_a.py --pairs 2`, at commit 1234567:\n\n| bench_a.py --pairs 2 |\n"
    )
    assert made == text.replace("old\n", f"\n{block}\n", 1)
    again, _ = docs_benchmarks.renewed(made, "bench_b", lambda command: "new", "7654321")
    assert again == made.replace(
        "old b\n", "\n`python benchmarks/bench_b.py`, at commit 7654321:\n\nnew\n\n"
    )


def test_what_a_script_prints_and_a_failure(monkeypatch, tmp_path):
    monkeypatch.setattr(docs_benchmarks, "ROOT", tmp_path)
    (tmp_path / "benchmarks").mkdir()
    (tmp_path / "benchmarks" / "bench_x.py").write_text(
        "import sys\nprint('| a |')\nsys.exit(len(sys.argv) - 1)\n"
    )
    assert (
        docs_benchmarks.printed("bench_x.py") == "| a |\n"
        and docs_benchmarks.printed("bench_x.py --fail") is None
    )


def test_learners_race_for_equal_seconds(monkeypatch):
    """What it calls of the methods is not all public."""
    monkeypatch.syspath_prepend(str(FOLDER))
    bench, rng = loaded("bench_doubly"), np.random.default_rng(0)
    X = rng.random((2000, 54)).astype(np.float32)
    y = np.where(X[:, 0] > X[:, 1], 1.0, -1.0)
    learners = bench.pair(
        "covtype", X, y, [bench.PLAIN["covtype"], bench.CHOSEN["covtype"]], [bench.PEER["covtype"]]
    )
    found = bench.race(learners, X, y, X, y, 0.05)
    assert len(found) == 3
    for name, wrong, rows in found:
        assert name and 0 <= wrong <= 100 and rows > 0
