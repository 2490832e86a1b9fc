"""Export trained models to other programs, from the steps of a model.

A target of `rfx export` is a line of TARGETS and a module with a function `written`, which turns a
`Program` into the bytes of a file.
"""

import importlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rfx.errors import UsageError

if TYPE_CHECKING:
    from rfx.exporting.program import Program


@dataclass(frozen=True)
class Target:
    """A form in which a model is exported.

    Attributes
    ----------
    help : str
        A description for `rfx export --help`.
    module : str
        The file of this package with the function `written`.
    mark : bytes
        What stands in the first 200 bytes of its files and in no others: only such a file is
        replaced.
    has_prefix : bool
        Whether `written` takes the prefix of names too.
    is_binary : bool
    needs : str or None
        A Python package that is an extra of rfx of the same name.
    """

    help: str
    module: str
    mark: bytes
    has_prefix: bool = False
    is_binary: bool = False
    needs: str | None = None

    def written(self, program: "Program", prefix: str) -> bytes:
        """The exported file of a program."""
        written = importlib.import_module(f"rfx.exporting.{self.module}").written
        return written(program, prefix) if self.has_prefix else written(program)


TARGETS = {
    "onnx": Target(
        "a graph for onnxruntime, in float64",
        "onnx_graph",
        mark=b"\x12\x03rfx",
        is_binary=True,
        needs="onnx",
    ),
    "c": Target(
        "one C99 file that needs only the standard library",
        "c_source",
        mark=b"rfx export",
        has_prefix=True,
    ),
    "json": Target(
        "the steps of a prediction, for your own reader",
        "json_text",
        mark=b'"format": "rfx"',
    ),
}


def check_installed(name: str) -> None:
    """Raise UsageError if the package that a target needs is missing."""
    package = TARGETS[name].needs
    if package is None:
        return
    try:
        importlib.import_module(package)
    except ModuleNotFoundError:
        raise UsageError(
            f"--to {name} needs the package {package}, which is not installed; pip install"
            f" 'rfx-kernels[{package}]'"
        ) from None
