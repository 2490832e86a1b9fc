"""Imports go down the list of rooms, never up, and never in a circle; and `rfx --help`
imports nothing heavy.
"""

import ast
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parent.parent / "rfx"
# top to bottom; a module may import from its own room and from those below
ROOMS = [
    # the package itself is the front door: what it has, it gets when it is asked for
    {"cli", "__main__", "__init__"},
    {"papers"},
    {"reporting"},
    {"estimators"},
    {"distributed"},
    {"runs"},
    {"plans"},
    {"records"},
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
        "plugins",
        "files",
        "compiled",
        "terminal",
        "interrupts",
        "errors",
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
    """The room of a module given as path parts below rfx."""
    return parts[0] if parts else "__init__"


def imported(path):
    """(line, parts below rfx) of everything of rfx that a file imports, inside functions too."""
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
    assert room(parts) in LEVEL, f"{path} is in no room; add it to ROOMS and to the README"
    for line, target in imported(path):
        name = room(target)
        if name in LEVEL:
            assert LEVEL[name] >= LEVEL[room(parts)], (
                f"{path}:{line} imports rfx.{'.'.join(target)}, which is above it"
            )


def module(parts) -> str:
    """The dotted name of a module, given as path parts below rfx, or as names that may end
    in one that a module has.
    """
    while parts and not (
        (ROOT / Path(*parts)).is_dir() or (ROOT / Path(*parts)).with_suffix(".py").is_file()
    ):
        parts = parts[:-1]
    return ".".join(parts)


def below(path) -> set[str]:
    """The modules that a file imports, inside functions too, but not for a type checker alone."""
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
    """Names that import one another in turn; empty where there are none."""
    done: set[str] = set()

    def visit(name, above):
        if name in above:
            return above[above.index(name) :]
        if name in done:
            return []
        for other in sorted(graph.get(name, ())):
            found = visit(other, [*above, name])
            if found:
                return found
        done.add(name)
        return []

    for name in sorted(graph):
        found = visit(name, [])
        if found:
            return found
    return []


def test_a_circle_is_found():
    assert circle({"a": {"b"}, "b": {"c"}, "c": {"b"}}) == ["b", "c"] and not circle(
        {"a": {"b", "c"}, "b": {"c"}}
    )


def test_no_module_imports_itself_in_a_circle():
    graph = {}
    for path in ROOT.rglob("*.py"):
        parts = list(path.relative_to(ROOT).with_suffix("").parts)
        own = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        graph[own] = below(path) - {own, ""}
    assert len(graph) > 200 and circle(graph) == []


def test_no_room_of_data_imports_itself_in_a_circle():
    """Of the rooms in `data/` each counts as one module."""
    rooms = {path.name for path in (ROOT / "data").iterdir() if (path / "__init__.py").is_file()}

    def outer(name: str) -> str:
        parts = name.split(".")
        return ".".join(parts[:2]) if parts[1:2] and parts[1] in rooms else name

    graph: dict[str, set[str]] = {}
    for path in (ROOT / "data").rglob("*.py"):
        own = outer(".".join(path.relative_to(ROOT).with_suffix("").parts))
        graph.setdefault(own, set()).update({outer(name) for name in below(path)} - {own, "data"})
    assert {"libsvm", "tabular", "registry", "transforms"} <= rooms and circle(graph) == []


def test_help_imports_nothing_heavy():
    code = (
        "import sys\nfrom rfx.cli import main\ntry:\n    main(['--help'])\nexcept SystemExit:\n   "
        " pass\nheavy = {'numpy', 'scipy', 'numba', 'pandas', 'sklearn', 'matplotlib', 'tqdm',"
        " 'http.client'} & set(sys.modules)\nprint('HEAVY', sorted(heavy))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip().endswith("HEAVY []")


def test_training_imports_only_what_it_needs(tmp_path):
    X = np.random.default_rng(0).normal(size=(60, 2))
    rows = "".join(f"{1 if a * b > 0 else -1} 1:{a:.4f} 2:{b:.4f}\n" for a, b in X)
    (tmp_path / "rows.libsvm").write_text(rows)
    code = (
        # in scipy 1.13 scipy.sparse itself imports its subpackages
        "import sys\nimport scipy.sparse\nown = {'scipy.sparse.csgraph', 'scipy.sparse.linalg'}"
        " & set(sys.modules)\nfrom rfx.cli import main\ntry:\n    main(['train', '--method', 'rf',"
        f" '--data', {str(tmp_path / 'rows.libsvm')!r}])\nexcept SystemExit:\n    pass\nheavy ="
        " {'pandas', 'sklearn', 'matplotlib', 'tqdm', 'pooch', 'optuna', 'pyarrow',"
        " 'distributed', 'asyncio', 'http.client',\n         'scipy.optimize', 'scipy.stats',"
        " 'scipy.spatial', 'scipy.sparse.csgraph', 'scipy.sparse.linalg'}\nheavy = heavy &"
        " set(sys.modules) - own\nprint('HEAVY', sorted(heavy), 'numba' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "accuracy" in done.stdout and done.stdout.strip().endswith("HEAVY [] True")
