"""The number of statements of rfx/ is at most the number that pyproject.toml states."""

import ast
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def statements(tree: ast.Module) -> int:
    """Statements of a syntax tree without docstrings, so that formatting changes nothing."""
    nodes = list(ast.walk(tree))
    docstrings = sum(isinstance(n, DOCUMENTED) and bool(ast.get_docstring(n)) for n in nodes)
    return sum(isinstance(n, ast.stmt) for n in nodes) - docstrings


def test_rfx_does_not_grow():
    """Whoever raises the number says in the commit what the statements are for."""
    most = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["rfx"]["statements"]
    files = (ROOT / "rfx").rglob("*.py")
    assert sum(statements(ast.parse(file.read_text("utf-8"))) for file in files) <= most
