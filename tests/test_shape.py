"""rfx is easy to read, in figures that packing cannot improve.

`[tool.rfx.shape]` in pyproject.toml states the most that each figure may be.
"""

import ast
import functools
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
LIMITS = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["rfx"]["shape"]

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
BRANCHES = (
    ast.If,
    ast.IfExp,
    ast.For,
    ast.While,
    ast.comprehension,
    ast.ExceptHandler,
    ast.Assert,
    ast.match_case,
)
# an operator, and whether a name is read or set, belong to the node above
MARKS = (ast.expr_context, ast.operator, ast.unaryop, ast.boolop, ast.cmpop)
DATA = (ast.Constant, ast.List, ast.Tuple, ast.Dict, ast.Set, ast.UnaryOp, *MARKS)


def remove_docstrings(tree: ast.Module) -> ast.Module:
    for node in ast.walk(tree):
        documented = isinstance(node, (ast.Module, ast.ClassDef, *FUNCTIONS))
        if documented and ast.get_docstring(node) is not None:
            del node.body[0]
    return tree


def count_nodes(tree: ast.AST) -> int:
    """Nodes of a syntax tree; how it is formatted changes nothing."""
    return sum(not isinstance(node, MARKS) for node in ast.walk(tree))


def simple_statements(tree: ast.AST) -> Iterator[ast.stmt]:
    """Statements that contain no others, but imports."""
    for node in ast.walk(tree):
        is_import = isinstance(node, (ast.Import, ast.ImportFrom))
        if isinstance(node, ast.stmt) and not is_import and not hasattr(node, "body"):
            yield node


def outer_functions(tree: ast.AST) -> Iterator[ast.AST]:
    """Functions that stand in no other function."""
    for child in ast.iter_child_nodes(tree):
        if isinstance(child, FUNCTIONS):
            yield child
        else:
            yield from outer_functions(child)


def complexity(function: ast.AST) -> int:
    """1, and 1 for each branch and each further operand of `and` and `or`, inside as well."""
    count = 1
    for node in ast.walk(function):
        if isinstance(node, BRANCHES):
            count += 1
        elif isinstance(node, ast.BoolOp):
            count += len(node.values) - 1
    return count


def is_data(expression: ast.AST) -> bool:
    """Whether an expression is a literal whose elements are constants."""
    return all(isinstance(node, DATA) for node in ast.walk(expression))


def expression_sizes(tree: ast.AST) -> list[int]:
    """Nodes of each simple statement that has a value, but tables of data."""
    values = ((node, getattr(node, "value", None)) for node in simple_statements(tree))
    return [count_nodes(node) for node, value in values if value and not is_data(value)]


def contains_another(node: ast.AST, kinds: type | tuple[type, ...]) -> bool:
    return any(isinstance(inner, kinds) for inner in ast.walk(node) if inner is not node)


def is_nested(node: ast.AST) -> bool:
    """Whether a comprehension contains a comprehension, or a lambda a lambda."""
    return any(
        isinstance(node, kinds) and contains_another(node, kinds)
        for kinds in (COMPREHENSIONS, ast.Lambda)
    )


def reads_key(node: ast.AST) -> bool:
    """Whether a node is a value read by a literal string: `row["test"]`."""
    if not isinstance(node, ast.Subscript) or not isinstance(node.ctx, ast.Load):
        return False
    return isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str)


def nodes_per_statement(tree: ast.AST) -> float:
    """Nodes of an average simple statement."""
    sizes = [count_nodes(statement) for statement in simple_statements(tree)]
    return sum(sizes) / len(sizes)


def count(tree: ast.AST, holds) -> int:
    return sum(map(holds, ast.walk(tree)))


def read_rooms(*rooms: str) -> ast.Module:
    """The files of rooms of rfx as one tree; without rooms, all files."""
    folders = [ROOT / "rfx" / room for room in rooms] or [ROOT / "rfx"]
    files = [path for folder in folders for path in sorted(folder.rglob("*.py"))]
    modules = [remove_docstrings(ast.parse(path.read_text("utf-8"))) for path in files]
    return ast.Module([node for module in modules for node in module.body], [])


@functools.cache
def measure_shape() -> dict[str, float]:
    """Every figure that [tool.rfx.shape] limits."""
    tree = read_rooms()
    complexities = [complexity(function) for function in outer_functions(tree)]
    return {
        "nodes": count_nodes(tree),
        "nodes-per-statement": nodes_per_statement(tree),
        "nodes-per-statement-of-papers-and-reporting": nodes_per_statement(
            read_rooms("papers", "reporting")
        ),
        "functions-of-complexity-above-15": sum(value > 15 for value in complexities),
        "worst-complexity": max(complexities),
        "expressions-above-80-nodes": sum(size > 80 for size in expression_sizes(tree)),
        "nested-comprehensions-and-lambdas": count(tree, is_nested),
        "lambdas": count(tree, lambda node: isinstance(node, ast.Lambda)),
        "reads-by-a-string-key": count(tree, reads_key),
        "any": count(tree, lambda node: isinstance(node, ast.Name) and node.id == "Any"),
    }


@pytest.mark.slow
@pytest.mark.parametrize("figure", LIMITS)
def test_rfx_stays_easy_to_read(figure):
    """A limit may be lowered, never raised; CONTRIBUTING.md says what to do instead."""
    assert measure_shape()[figure] <= LIMITS[figure]


def test_every_figure_has_a_limit():
    assert LIMITS.keys() == measure_shape().keys()


SAMPLE = '''
"""A docstring counts nothing."""
TABLE = {"a": [1, 2], "b": [3]}

def outer(rows):
    def inner(row):
        return row["test"] if row and row["train"] else 0
    for row in rows:
        row["best"] = max([[x for x in y] for y in row], key=lambda x: -x)
'''


def test_what_the_figures_count():
    tree = remove_docstrings(ast.parse(SAMPLE))
    (outer,) = outer_functions(tree)
    assert complexity(outer) == 6  # 1, for, if, and, two comprehensions
    assert count(tree, reads_key) == 2  # row["best"] is set, not read
    assert count(tree, is_nested) == 1
    assert expression_sizes(tree) == [11, 21]  # TABLE is data
    assert count_nodes(ast.parse("x = -y")) == 5  # module, assignment, x, minus, y
