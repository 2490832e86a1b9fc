"""The model file: one .npz with a JSON header and plain arrays. Reading a model file runs no code.

The arrays are declared by their owners: in the files of methods, feature maps and kernels.
"""

import contextlib
import io
import json
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, dataclass, fields
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from rfx import files
from rfx.errors import DataError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

T = TypeVar("T", bound="DataclassInstance")
FORMAT = 1


@dataclass(frozen=True)
class Array:
    """The required form of a model file's array.

    kind: of its numbers: f, i or u, as in numpy. axes: the name of each axis, one word each; arrays
    with the same name have the same size there. inputs and outputs are known beforehand; a name
    followed by +1 means one more, and a number means itself. places: its values are indices along
    this axis, from 0. cuts: its values split this axis into parts: they increase from 0 to its
    size. half: whether they may be float16.
    """

    kind: str
    axes: str = ""
    places: str = ""
    cuts: str = ""
    half: bool = False


def write(path, header: dict, arrays: dict[str, np.ndarray]) -> int:
    """Write a model file atomically (temporary file, then rename); return its size in bytes, 0
    for a pipe.

    header: anything JSON supports. arrays: name -> numeric array. A pipe or device is written to,
    not replaced; with None as path nothing is written and only the size is returned.
    """
    text = json.dumps({"format": FORMAT, **header})
    contents: dict[str, Any] = {"header": np.frombuffer(text.encode(), dtype=np.uint8), **arrays}
    if path is None:
        np.savez(file := io.BytesIO(), **contents)
        return file.tell()
    with files.whole(path) as handle:
        np.savez(handle, **contents)
        return handle.tell() if handle.seekable() else 0


def read_fields(kind: type[T], saved: Mapping[str, Any]) -> T:
    """The dataclass whose fields are entries of a header, or arrays of a model file; those with a
    default may be missing, further entries are ignored.

    Raises KeyError for a missing one.
    """
    values = {
        one.name: saved[one.name]
        for one in fields(kind)
        if one.default is MISSING or one.name in saved
    }
    return kind(**values)


@contextlib.contextmanager
def _opened(path) -> Iterator[tuple[dict, Any]]:
    """The header and the archive of a model file, whose arrays are not read yet."""
    with open(path, "rb") as handle:
        try:
            archive = np.load(handle)
            header = json.loads(archive["header"].tobytes())
            version = header["format"]
        except Exception as error:  # the readers of damaged archives raise anything
            raise DataError(
                f"{files.shown(path)} is not a model file of rfx; create one with rfx train --model"
            ) from error
        if version != FORMAT:
            raise DataError(
                f"model {path} has format {version!s:.40}, this rfx reads format {FORMAT}; train it"
                " again"
            )
        yield header, archive


def read_header(path) -> dict:
    """The header of a model file; raises DataError like `read`."""
    with _opened(path) as (header, _):
        return header


def read(path) -> tuple[dict, dict[str, np.ndarray]]:
    """The header and all arrays of a model file.

    Raises DataError if the file is missing, is not a model file, is damaged, or was written by a
    later version.
    """
    with _opened(path) as (header, archive):
        arrays = {}
        for name in archive.files:
            try:
                arrays[name] = archive[name]
            except Exception as error:
                raise DataError(
                    f"model {path} can't be used: array {name} is damaged"
                    f" ({type(error).__name__}); train it again"
                ) from error
    del arrays["header"]
    return header, arrays


def _made(path) -> bool:
    try:
        read_header(path)
    except DataError:
        return False
    return True


KIND = files.Kind("a model file of rfx", _made)


def check_arrays(
    arrays: dict[str, np.ndarray], declared: dict[str, Array], sizes: dict[str, int]
) -> None:
    """Raise DataError for arrays whose type or shape is not as declared, or is inconsistent, and
    for values that are not finite or not valid indices or cuts.

    sizes: of the axes known so far; receives those of the others.
    """
    present = [(name, form, arrays[name]) for name, form in declared.items() if name in arrays]
    for name, form, values in present:
        plain = values.dtype.isnative and (form.half or values.dtype != np.float16)
        if values.dtype.kind != form.kind or not plain:
            raise DataError(f"array {name} holds {values.dtype}")
        if not _fits(values.shape, form.axes.split(), sizes):
            raise DataError(
                f"array {name} has the shape {values.shape!s:.80}, which does not match the others"
            )
    for name, form, values in present:
        if not np.isfinite(values).all():
            raise DataError(f"array {name} has values that are not finite")
        if form.places:
            check_within(name, values, 0, sizes[form.places])
        if form.cuts and not _are_cuts(values, sizes[form.cuts]):
            raise DataError(f"array {name} does not increase from 0 to {sizes[form.cuts]}")


def _are_cuts(values: np.ndarray, end: int) -> bool:
    """Whether values rise from 0 to `end`; equal neighbours are allowed."""
    if not len(values) or values[0] != 0 or values[-1] != end:
        return False
    return bool(np.all(values[:-1] <= values[1:]))


def _fits(shape, axes, sizes) -> bool:
    """Whether that shape matches these axes. Unknown sizes are recorded."""
    parts = [axis.partition("+") for axis in axes]
    bases = [size - int(more or 0) for size, (_, _, more) in zip(shape, parts)]
    return len(shape) == len(axes) and all(
        0 <= base == (int(name) if name.isdigit() else sizes.setdefault(name, base))
        for base, (name, _, _) in zip(bases, parts)
    )


def check_within(name: str, values, low: int, high: int) -> None:
    """Raise DataError for an array with values below low or from high on."""
    if np.any((values < low) | (values >= high)):
        raise DataError(f"array {name} has values outside {low} .. {high - 1}")
