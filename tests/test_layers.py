"""Imports go from upper to lower packages, never back, and never in a circle; `rfx --help` imports
nothing heavy.
"""

import ast
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
        "types",
        "_version",
    },  # fmt: skip
]
LEVEL = {name: level for level, names in enumerate(ROOMS) for name in names}


def room(parts) -> str:
    """The layer of a module given as path parts below rfx."""
    return parts[0] if parts else "__init__"


def imported(path):
    """(line, parts below rfx) of everything from rfx that a file imports, also inside functions."""
    for node in ast.walk(ast.parse(path.read_text())):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: relative import"
            names = (
                [f"{node.module}.{alias.name}" for alias in node.names]
                if node.module == "rfx"
                else [node.module]
            )
        for name in names:
            if name == "rfx" or name.startswith("rfx."):
                yield node.lineno, name.split(".")[1:]


@pytest.mark.parametrize("path", sorted(ROOT.rglob("*.py")), ids=lambda p: str(p.relative_to(ROOT)))
def test_no_import_goes_up(path):
    parts = path.relative_to(ROOT).with_suffix("").parts
    assert room(parts) in LEVEL, f"{path} is in no room; add it to ROOMS, docs/architecture.md"
    for line, target in imported(path):
        name = room(target)
        if name in LEVEL:
            assert LEVEL[name] >= LEVEL[room(parts)], (
                f"{path}:{line} imports rfx.{'.'.join(target)}, which is above it"
            )


def module(parts) -> str:
    """The dotted name of a module, given as path parts below rfx, or as names that may end with one
    that the module defines.
    """
    while parts and not (
        (ROOT / Path(*parts)).is_dir() or (ROOT / Path(*parts)).with_suffix(".py").is_file()
    ):
        parts = parts[:-1]
    return ".".join(parts)


def below(path) -> set[str]:
    """The modules that a file imports, also inside functions, except those for type checkers
    alone.
    """
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and getattr(node.test, "id", None) == "TYPE_CHECKING":
            node.body = []
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "rfx":
            found |= {module([*node.module.split(".")[1:], alias.name]) for alias in node.names}
        elif isinstance(node, ast.Import):
            found |= {
                module(alias.name.split(".")[1:])
                for alias in node.names
                if alias.name.split(".")[0] == "rfx"
            }
    return found


def circle(graph: dict[str, set[str]]) -> list[str]:
    """Names that import one another in a circle; empty if there are none."""
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        return error.args[1]
    return []


def test_a_circle_is_found():
    assert {*circle({"a": {"b"}, "b": {"c"}, "c": {"b"}})} == {"b", "c"}
    assert circle({"a": {"b", "c"}, "b": {"c"}}) == []


def test_no_module_imports_itself_in_a_circle():
    graph = {}
    for path in ROOT.rglob("*.py"):
        parts = list(path.relative_to(ROOT).with_suffix("").parts)
        own = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        graph[own] = below(path) - {own, ""}
    assert len(graph) > 150 and circle(graph) == []


def test_no_room_of_data_imports_itself_in_a_circle():
    """In `data/`, each layer counts as one module."""
    rooms = {path.name for path in (ROOT / "data").iterdir() if (path / "__init__.py").is_file()}

    def outer(name: str) -> str:
        parts = name.split(".")
        return ".".join(parts[:2]) if parts[1:2] and parts[1] in rooms else name

    graph: dict[str, set[str]] = {}
    for path in (ROOT / "data").rglob("*.py"):
        own = outer(".".join(path.relative_to(ROOT).with_suffix("").parts))
        graph.setdefault(own, set()).update({outer(name) for name in below(path)} - {own, "data"})
    assert "tabular" in rooms and circle(graph) == []


# What may be imported inside a function, and why. Everything else from rfx is imported at the top
# of a file, and slow libraries by `rfx.lazy`.
INSIDE = {
    "__init__": "the estimators import the package",
    "__main__": "Ctrl-C shows no traceback while the command line is imported",
    "data/fetch": "http.client and numba, for what is not fetched yet",
    "methods/__init__": "the command line names methods without numba",
    "runs/child": "the number of BLAS threads is set before numpy is imported",
}
# Slow to import. A command imports what needs them when it runs; help and usage do not.
SLOW = {"numpy", "scipy", "numba", "pandas", "sklearn", "matplotlib", "asyncio"}


def inside(tree) -> list:
    """The imports inside functions of a parsed file."""
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    found = {
        node
        for function in ast.walk(tree)
        if isinstance(function, functions)
        for node in ast.walk(function)
        if isinstance(node, ast.Import | ast.ImportFrom)
    }
    return sorted(found, key=lambda node: node.lineno)


def on_import(tree) -> set[str]:
    """The full names of everything that a file imports when it is imported itself."""
    later = set(inside(tree))
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and getattr(node.test, "id", None) == "TYPE_CHECKING":
            later |= {own for statement in node.body for own in ast.walk(statement)}
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import) and node not in later:
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node not in later:
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def slow_modules() -> set[str]:
    """The modules of rfx, by their dotted names below it, whose import loads something SLOW."""
    graph = {}
    for path in ROOT.rglob("*.py"):
        parts = list(path.relative_to(ROOT).with_suffix("").parts)
        own = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        graph[own] = on_import(ast.parse(path.read_text()))
    found: set[str] = set()
    while True:
        more = {
            own
            for own, names in graph.items()
            if any(
                module(name.split(".")[1:]) in found
                if name.split(".")[0] == "rfx"
                else name.split(".")[0] in SLOW
                for name in names
            )
        }
        if more == found:
            return found
        found = more


def test_imports_stand_at_the_top_of_a_file():
    slow, wrong, seen = slow_modules(), [], set()
    assert {"features", "solvers.l2", "data.loading"} <= slow
    assert not {"errors", "lazy", "methods", "cli", "cli.common"} & slow
    for path in sorted(ROOT.rglob("*.py")):
        name = path.relative_to(ROOT).with_suffix("").as_posix()
        for node in inside(ast.parse(path.read_text())):
            if name in INSIDE:
                seen.add(name)
                continue
            targets = [alias.name for alias in node.names]
            if isinstance(node, ast.ImportFrom):
                targets = [f"{node.module}.{own}" for own in targets]
            put_off = name.startswith("cli/") and all(
                target.split(".")[0] == "rfx" and module(target.split(".")[1:]) in slow
                for target in targets
            )
            if not put_off:
                wrong.append(f"{name}.py:{node.lineno}: {ast.unparse(node)}")
    assert wrong == [] and seen == set(INSIDE)


@pytest.mark.parametrize("name", sorted(lazy.LIBRARIES))
def test_a_library_is_loaded_at_its_first_use(name):
    pytest.importorskip(lazy.LIBRARIES[name][-1])
    found = getattr(lazy, name)
    assert found is sys.modules[lazy.LIBRARIES[name][-1]] and getattr(lazy, name) is found


def test_threads_that_ask_at_once_get_one_library():
    code = (
        "import threading\nfrom rfx import lazy\nfound, start = [], threading.Barrier(8)\ndef"
        " ask():\n    start.wait()\n    found.append(lazy.pyarrow.parquet.ParquetFile)\n"
        "threads = [threading.Thread(target=ask) for _ in range(8)]\nfor thread in threads:\n"
        "    thread.start()\nfor thread in threads:\n    thread.join()\n"
        "print(len(found), len(set(found)))"
    )
    pytest.importorskip("pyarrow")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "8 1\n"


def test_what_is_no_library_is_no_attribute():
    with pytest.raises(AttributeError, match="rfx.lazy.*nothing"):
        lazy.nothing  # noqa: B018


def test_the_command_line_loads_no_lazy_library():
    # click needs some modules of Python itself
    code = (
        "import sys\nimport click\nown = set(sys.modules)\nimport rfx.cli\nfrom rfx import lazy\n"
        "print(sorted({one for own in lazy.LIBRARIES.values() for one in own} & (set(sys.modules) -"
        " own)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


@pytest.mark.parametrize("words", [["--help"], ["help", "train"], ["datasets"]])
def test_help_imports_nothing_heavy(words):
    heavy = SLOW | {"tqdm", "http.client", "rfx.methods.rf"}
    code = (
        f"import sys\nfrom rfx.cli import main\ntry:\n    main({words})\nexcept SystemExit:\n   "
        f" pass\nprint('HEAVY', {heavy} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip().endswith("HEAVY set()")


def test_training_imports_only_what_it_needs(tmp_path):
    X = np.random.default_rng(0).normal(size=(60, 2))
    rows = "".join(f"{1 if a * b > 0 else -1} 1:{a:.4f} 2:{b:.4f}\n" for a, b in X)
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
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "accuracy" in done.stdout and done.stdout.strip().endswith("HEAVY [] True")
