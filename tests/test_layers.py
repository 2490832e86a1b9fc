"""Imports go from upper to lower packages, never back, and never in a circle; `rfx --help` imports
nothing heavy.
"""

import ast
import functools
import graphlib
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from rfx import lazy

ROOT = Path(__file__).resolve().parent.parent / "rfx"
# top to bottom; a module may import from its own package and from those below
ROOMS = [
    # the package itself is the public interface; it loads names on demand
    {"cli", "__main__", "__init__"},
    {"papers"},
    {"reporting"},
    {"estimators"},
    {"distributed"},
    {"runs"},
    {"plans"},
    {"records"},
    {"exporting"},
    {"methods"},
    {"fitting"},
    {"solvers"},
    {"features"},
    {"operators"},
    {"kernels"},
    {"losses"},
    {"data"},
    {
        "model",
        "options",
        "steps",
        "plugins",
        "files",
        "compiled",
        "device",
        "errors",
        "lazy",
        "numerals",
        "env",
        "parallel",
        "counters",
        "measures",
        "types",
        "_version",
    },  # fmt: skip
]
LEVEL = {name: level for level, names in enumerate(ROOMS) for name in names}


FILES = {path: ast.parse(path.read_text("utf-8")) for path in sorted(ROOT.rglob("*.py"))}


def dotted(path) -> str:
    """The name of a module below rfx."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {dotted(path) for path in FILES}


def module(name: str) -> str | None:
    """The module of rfx to which a full name belongs; None for another package."""
    first, *parts = name.split(".")
    while parts and ".".join(parts) not in MODULES:
        parts.pop()
    return ".".join(parts) if first == "rfx" else None


def room(name: str) -> str:
    """The layer of a module."""
    return name.partition(".")[0] or "__init__"


def imports(tree, but=frozenset()):
    """(statement, full name) of everything that a file imports, but by these statements."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import) and node not in but:
            yield from ((node, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node not in but:
            assert node.level == 0, f"line {node.lineno}: relative import"
            yield from ((node, f"{node.module}.{alias.name}") for alias in node.names)


@functools.cache
def for_types(tree) -> set:
    """What a file does for type checkers alone."""
    return {
        node
        for branch in ast.walk(tree)
        if isinstance(branch, ast.If) and getattr(branch.test, "id", None) == "TYPE_CHECKING"
        for node in ast.walk(branch)
    }


@functools.cache
def inside(tree) -> set:
    """What stands inside functions of a file."""
    return {
        node
        for function in ast.walk(tree)
        if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef))
        for node in ast.walk(function)
    }


@pytest.mark.parametrize("path", FILES, ids=dotted)
def test_no_import_goes_up(path):
    own = room(dotted(path))
    assert own in LEVEL, f"{path} is in no room; add it to ROOMS, docs/architecture.md"
    for node, name in imports(FILES[path]):
        target = module(name)
        assert target is None or LEVEL[room(target)] >= LEVEL[own], (
            f"{path}:{node.lineno} imports {name}, which is above it"
        )


@pytest.mark.parametrize("one", [None, "data.tabular"])
def test_no_module_imports_itself_in_a_circle(one):
    """Not even if a room of `data/` counts as one module."""
    outer = lambda name: one if one and name.startswith(one) else name
    graph = {outer(name): set() for name in MODULES}
    for path, tree in FILES.items():
        targets = {module(name) for _, name in imports(tree, for_types(tree))} - {None, ""}
        graph[outer(dotted(path))] |= set(map(outer, targets))
    assert len(graph) > 150
    graphlib.TopologicalSorter({name: graph[name] - {name} for name in graph}).prepare()


def test_only_distributed_asks_whether_rows_are_on_workers():
    """Elsewhere, functions of rows are dispatched by their type."""
    asked = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path, tree in FILES.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and getattr(node.func, "id", None) == "isinstance"
        and {own.id for own in ast.walk(node.args[1]) if isinstance(own, ast.Name)}
        & {"Rows", "DistributedRows", "RowVector", "PartsMatrix"}
    ]
    assert asked and all(place.startswith("distributed") for place in asked)


# What may be imported inside a function, and why. Everything else from rfx is imported at the top
# of a file, and slow libraries by `rfx.lazy`.
INSIDE = {
    "__init__": "the estimators import the package",
    "__main__": "Ctrl-C shows no traceback while the command line is imported",
    "data/registry": "http.client and numba, for what is not fetched yet",
    "methods/__init__": "the command line names methods without numba",
    "runs/child": "the number of BLAS threads is set before numpy is imported",
}
# Slow to import. A command imports what needs them when it runs; help and usage do not.
SLOW = {"numpy", "scipy", "numba", "pandas", "sklearn", "matplotlib", "asyncio"}


def slow_modules() -> set[str]:
    """The modules of rfx whose import loads something SLOW."""
    graph = {
        dotted(path): {name for _, name in imports(tree, inside(tree) | for_types(tree))}
        for path, tree in FILES.items()
    }
    found: set[str] = set()
    while True:
        more = {
            own
            for own, names in graph.items()
            if any(module(name) in found or name.split(".")[0] in SLOW for name in names)
        }
        if more == found:
            return found
        found = more


@pytest.mark.slow
def test_imports_stand_at_the_top_of_a_file():
    slow, wrong, seen = slow_modules(), [], set()
    quick = {"errors", "lazy", "methods", "cli", "cli.flags", "exporting", "measures"}
    assert {"features", "solvers.l2", "data.loading"} <= slow
    assert quick <= MODULES - slow
    for path, tree in FILES.items():
        name, within = path.relative_to(ROOT).with_suffix("").as_posix(), inside(tree)
        for node, target in imports(tree):
            if node in within and name in INSIDE:
                seen.add(name)
            elif node in within and not (name.startswith("cli/") and module(target) in slow):
                wrong.append(f"{name}.py:{node.lineno}: {target}")
    assert wrong == []
    assert seen == set(INSIDE)


@pytest.mark.parametrize("name", sorted(lazy.LIBRARIES))
def test_a_library_is_loaded_at_its_first_use(name):
    module = lazy.LIBRARIES[name].split()[-1]
    pytest.importorskip(module)
    found = getattr(lazy, name)
    assert found is sys.modules[module] and getattr(lazy, name) is found


def printed_by(code) -> str:
    """The standard output of a Python program."""
    words = [sys.executable, "-c", code]
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout


def test_what_is_no_library_is_no_attribute():
    with pytest.raises(AttributeError, match="rfx.lazy.*nothing"):
        lazy.nothing  # noqa: B018


def test_the_command_line_loads_no_lazy_library():
    # click needs some modules of Python itself
    code = (
        "import sys\nimport click\nown = set(sys.modules)\nimport rfx.cli\nfrom rfx import lazy\n"
        "libraries = set(' '.join(lazy.LIBRARIES.values()).split())\n"
        "print(sorted(libraries & (set(sys.modules) - own)))"
    )
    assert printed_by(code) == "[]\n"


@pytest.mark.parametrize("words", [["--help"], ["help", "train"], ["datasets"]])
def test_help_imports_nothing_heavy(words):
    heavy = SLOW | {"tqdm", "http.client", "rfx.methods.rf"}
    code = (
        f"import sys\nfrom rfx.cli import main\ntry:\n    main({words})\nexcept SystemExit:\n   "
        f" pass\nprint('HEAVY', {heavy} & set(sys.modules))"
    )
    assert printed_by(code).endswith("HEAVY set()\n")


@pytest.mark.slow
def test_training_imports_only_what_it_needs(tmp_path):
    X = np.random.default_rng(0).normal(size=(60, 2))
    # probabilities of classes need scipy.optimize
    rows = "".join(f"{a * b:.4f} 1:{a:.4f} 2:{b:.4f}\n" for a, b in X)
    (tmp_path / "rows.libsvm").write_text(rows)
    code = (
        # in scipy 1.13, scipy.sparse itself imports its subpackages
        "import sys\nimport scipy.sparse\nown = {'scipy.sparse.csgraph', 'scipy.sparse.linalg'}"
        " & set(sys.modules)\nfrom rfx.cli import main\ntry:\n    main(['train', '--method', 'rf',"
        " '--gamma', 'median', '--scaling', 'minmax01', '--metric', 'none',"
        " '--kernel', 'gaussian', '--no-baseline',"
        f" '--data', {str(tmp_path / 'rows.libsvm')!r}])\nexcept SystemExit:\n    pass\nheavy ="
        " {'pandas', 'sklearn', 'matplotlib', 'tqdm', 'pooch', 'optuna', 'pyarrow',"
        " 'distributed', 'asyncio', 'http.client',\n         'scipy.optimize', 'scipy.stats',"
        " 'scipy.spatial', 'scipy.sparse.csgraph', 'scipy.sparse.linalg'}\nheavy = heavy &"
        " set(sys.modules) - own\nprint('HEAVY', sorted(heavy), 'numba' in sys.modules)"
    )
    printed = printed_by(code)
    assert "rmse" in printed and printed.endswith("HEAVY [] True\n")
