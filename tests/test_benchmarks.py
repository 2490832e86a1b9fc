"""Shared code of the benchmarks: turns, and summaries of their seconds."""

import importlib
from pathlib import Path

import docs_benchmarks
import numpy as np
import pytest

pytestmark = pytest.mark.slow

FOLDER = Path(__file__).parent.parent / "benchmarks"
# Sets of rows, which each benchmark repeats.
WITHOUT = {
    "bench_defaults.py",
    "bench_device.py",
    "bench_intervals.py",
    "bench_left_out.py",
    "bench_peers.py",
    "bench_quarters.py",
    "bench_raw.py",
    "bench_scores.py",
    "bench_streams.py",
    "bench_tables.py",
}
# One compares two checkouts, one needs a GPU.
UNDOCUMENTED = {"bench_device.py", "bench_versions.py"}


@pytest.fixture
def loaded(monkeypatch):
    """A function from a name to that module of the benchmarks."""
    monkeypatch.syspath_prepend(str(FOLDER))
    return importlib.import_module


def test_ratios_are_within_the_turns(loaded):
    pairs = loaded("pairs")
    assert pairs.PAIRS == 5
    ours, theirs = (
        [{"seconds": value} for value in values] for values in ((1.0, 2.0, 4.0), (3.0, 4.0, 20.0))
    )
    assert pairs.ratios(theirs, ours, "seconds") == "3.0 (2.0 to 5.0)"
    assert (
        pairs.spread([3.0, 1.0, 8.0]) == "3.00 (1.00 to 8.00)"
        and pairs.spread([2.0], ".1f") == "2.0"
    )


def test_every_benchmark_takes_five_pairs():
    for path in FOLDER.glob("bench_*.py"):
        text = path.read_text()
        assert ("add_pairs(parser)" in text and "machine(" in text) != (path.name in WITHOUT), (
            path.name
        )


def test_every_benchmark_has_its_block_in_the_document():
    blocks = [
        match[2].split()[0]
        for match in docs_benchmarks.MADE.finditer(docs_benchmarks.DOCUMENT.read_text())
    ]
    scripts = {path.name for path in FOLDER.glob("bench_*.py")}
    assert scripts >= UNDOCUMENTED and set(blocks) == scripts - UNDOCUMENTED


def test_blocks_are_made_anew(tmp_path, monkeypatch):
    text = "before\n<!-- benchmark bench_a.py --pairs 2 -->\nold\n<!-- end -->\nand\n"
    text += "<!-- benchmark bench_b.py -->\nold b\n<!-- end -->\nafter\n"
    document, outputs = tmp_path / "benchmarks.md", {"bench_a.py --pairs 2": "| a |\n"}
    document.write_text(text)
    monkeypatch.setattr(docs_benchmarks, "DOCUMENT", document)
    monkeypatch.setattr(docs_benchmarks, "commit", lambda: "1234567")
    monkeypatch.setattr(docs_benchmarks, "printed", outputs.get)
    assert docs_benchmarks.main() == 1, "a benchmark that fails leaves its block as it was"
    block = "`python benchmarks/bench_a.py --pairs 2`, at commit 1234567:\n\n| a |\n"
    assert document.read_text() == (made := text.replace("old\n", f"\n{block}\n", 1))
    outputs |= {"bench_a.py --pairs 2": "other", "bench_b.py": "new"}
    assert docs_benchmarks.main("bench_b") == 0
    block = "`python benchmarks/bench_b.py`, at commit 1234567:\n\nnew\n"
    assert document.read_text() == made.replace("old b\n", f"\n{block}\n")


@pytest.fixture
def peers(loaded):
    return loaded("bench_peers")


def machine_problem(seed=0, n=80):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 3))
    return X, X[:, 0] + np.sin(3 * X[:, 1]) + 0.2 * rng.standard_normal(n)


@pytest.mark.parametrize("loss", ["hinge", "tube"])
def test_certificate_of_a_kernel_machine(peers, loss):
    """LIBSVM's solution is nearly optimal, and no other solution is below the bound or outside its
    gap.
    """
    X, target = machine_problem()
    y = np.where(target > 0, 1.0, -1.0) if loss == "hinge" else target
    kind = peers.Hinge if loss == "hinge" else peers.EpsilonInsensitiveLoss(peers.EPSILON)
    problem = peers.Problem("", None, "kernel", kind, 0.5, (), gamma=0.7)
    coef, intercept = peers.by_scikit_learn(problem, 0.5, X, y, np.float64)(1e-10)
    best = peers.certified(problem, 0.5, X, y, coef, intercept)
    K = np.exp(-0.7 * ((X[:, None] - X) ** 2).sum(axis=2))
    f = K @ coef + intercept
    by_hand = 0.25 * coef @ K @ coef + kind.value(f, y).sum()
    assert best["objective"] == pytest.approx(by_hand, rel=1e-12)
    # LIBSVM stores kernel values as float32
    assert abs(best["gap"]) < 1e-6 and best["nonzeros"] == np.count_nonzero(coef)
    rng = np.random.default_rng(1)
    for size in (0.01, 0.3, 3.0):
        other = coef + size * rng.standard_normal(len(y))
        found = peers.certified(problem, 0.5, X, y, other, intercept)
        bound = found["objective"] * (1 - found["gap"])
        assert found["gap"] > 0 and bound <= best["objective"] * (1 + 1e-9) <= found["objective"]
    # a machine without an intercept has a larger optimum, and its own bound
    K = peers.KernelMatrix("gaussian", X, {"gamma": 0.7})
    alone = peers.solve_kernel_svm(K, y, 0.5, kind, peers.Budget(tol=1e-8))
    found = peers.certified(problem, 0.5, X, y, alone.coef)
    assert 0 <= found["gap"] < 1e-7 and found["objective"] > best["objective"]


def fits(cpu, gap):
    return [{"turn": str(turn), "cpu": str(one), "gap": str(gap)} for turn, one in enumerate(cpu)]


LOOSE, MIDDLE, TIGHT = fits([1, 1, 1], 1e-2), fits([3, 2, 4], 1e-5), fits([9, 9, 9], 1e-12)
OURS = [LOOSE, MIDDLE, TIGHT]


@pytest.mark.parametrize(
    "theirs, ours, expected",
    [
        # the cheapest of those that are as good
        (fits([5], 2e-2), OURS, LOOSE),
        (fits([5], 1e-4), OURS, MIDDLE),
        (fits([5], 1e-5), OURS, MIDDLE),
        (fits([5], 9e-6), OURS, TIGHT),
        # below rounding all are equal
        (fits([5], 1e-15), OURS, TIGHT),
        (fits([5], 9e-6), OURS[:2], None),
        # a peer counts with its best turn, rfx with its worst
        ([*fits([5], 1e-4), *fits([5], 1e-6)], OURS, TIGHT),
        (fits([5], 1e-4), [MIDDLE[:1] + fits([1], 1e-2), TIGHT], TIGHT),
    ],
)
def test_peers_are_compared_at_their_gap_or_less(peers, theirs, ours, expected):
    assert peers.beside(theirs, ours) is expected


@pytest.mark.parametrize(
    "theirs, ours, expected",
    [
        (fits([6, 8, 8], 1e-4), MIDDLE, "2.00 (2.00 to 4.00)"),
        (fits([6, 8, 8], 1e-4)[1:], MIDDLE[:2], "4.00"),
        (fits([6], 1e-4), MIDDLE[1:], "-"),
    ],
)
def test_times_are_of_the_same_turns(peers, theirs, ours, expected):
    assert peers.times(theirs, ours) == expected


def test_only_missing_rows_are_made(loaded, tmp_path):
    script, out = tmp_path / "script.py", tmp_path / "rows.csv"
    script.write_text("import sys\nprint('{\"error\": %s}' % sys.argv[3])")
    out.write_text("set,split,error\na,0,known\n")
    jobs = [{"set": name, "split": number} for name in "ab" for number in (0, 1)]
    loaded("row_files").append_missing(str(script), out, ("set", "split", "error"), jobs)
    assert out.read_text().split() == ["set,split,error", "a,0,known", "a,1,1", "b,0,0", "b,1,1"]
