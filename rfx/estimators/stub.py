"""The types of rfx.estimators for type checkers and editors: `python -m rfx.estimators.stub` writes them anew, `make stub` for short.

Classes that are made at import are unknown to whoever reads the source only, so that their signatures are written out in
`__init__.pyi`; a test compares it with what methods and maps declare.
"""

import inspect
import json
from pathlib import Path

from rfx.estimators import making
from rfx.estimators.base import Classifier, Regressor

FILE = Path(__file__).with_name("__init__.pyi")


def text() -> str:
    """The stub: a class with its signature for everything that rfx itself declares."""
    made = {name: make() for name, make in sorted(making.recipes(plugins=False).items())}
    bases = {kind.__base__ for kind in made.values()} | {Classifier, Regressor}  # what `load` gives
    lines = ["# Written by `make stub` from what methods and maps declare; see stub.py.", "", "import os", ""]
    for module in sorted({base.__module__ for base in bases}):
        lines += [f"from {module} import (", *(f"    {base.__name__}," for base in _sorted(bases, module)), ")"]
    lines += ["", "def load(path: str | os.PathLike[str]) -> Classifier | Regressor: ...", "def names() -> list[str]: ...", ""]
    for name, kind in made.items():
        lines += [f"class {name}({kind.__base__.__name__}):", *_init(kind), ""]
    return "\n".join(lines)


def _sorted(bases, module):
    return sorted((base for base in bases if base.__module__ == module), key=lambda base: base.__name__)


def _init(kind) -> list[str]:
    parameters = list(kind.__init__.__signature__.parameters.values())[1:]
    lines = [f"        {p.name}: {inspect.formatannotation(p.annotation)} = {_literal(p.default)}," for p in parameters]
    return ["    def __init__(", "        self,", "        *,", *lines, "    ) -> None: ..."]


def _literal(value) -> str:
    return json.dumps(value) if isinstance(value, str) else repr(value)


if __name__ == "__main__":
    FILE.write_text(text())
