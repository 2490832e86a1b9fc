"""The model file: one .npz with a JSON header and plain arrays; reading one runs no code.

What arrays there are is declared where they come from: in the file of a method, of a feature map, of a kernel.
"""

import contextlib
import io
import json
import lzma
import os
import stat
import zipfile
import zlib
from dataclasses import dataclass

import numpy as np

from rfx import files
from rfx.errors import DataError

FORMAT = 1
_HEAD = 4096  # bytes of a header's array within which its JSON begins


@dataclass(frozen=True)
class Array:
    """What a model file's array must be.

    kind: of its numbers, f, i or u as numpy has them. axes: the name of each axis, one word each; arrays that share a name
    have the same size there. inputs and outputs are known beforehand; a name may be followed by +1, for one more than that,
    and a number is itself. places: the axis that its values are numbers on, from 0. cuts: the axis that its values cut into
    parts: they rise from 0 to its size.
    """

    kind: str
    axes: str = ""
    places: str = ""
    cuts: str = ""


def write(path, header: dict, arrays: dict[str, np.ndarray]) -> int:
    """Write a model file in one step (temporary file, then rename); returns its size in bytes.

    header: anything JSON can hold. arrays: name -> array of numbers. A pipe or device is written to, not replaced.
    Raises DataError when the folder does not exist or can't be written.
    """
    text = json.dumps({"format": FORMAT, **header})
    encoded = np.frombuffer(text.encode(), dtype=np.uint8)
    with _errors(path), files.whole(path) as handle:
        # a zip file is written back and forth, which a pipe does not allow
        place = handle if stat.S_ISREG(os.fstat(handle.fileno()).st_mode) else io.BytesIO()
        np.savez(place, header=encoded, **arrays)
        size = place.tell()
        if place is not handle:
            handle.write(place.getbuffer())
    return size


def check(path) -> None:
    """Raise DataError when no model file can be written to `path`; nothing is made."""
    with _errors(path):
        files.check(path)


def _made(path) -> bool:
    """Is the file an archive with a header of rfx? Its arrays are not looked at."""
    try:
        with zipfile.ZipFile(path) as archive, archive.open("header.npy") as member:
            return member.read(6) == b"\x93NUMPY" and b'{"format": ' in member.read(_HEAD)
    except (KeyError, ValueError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error, lzma.LZMAError):
        return False


KIND = files.Kind("a model file of rfx", _made)


@contextlib.contextmanager
def _errors(path):
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise DataError(f"model {files.shown(path)} can't be written: {error.strerror or error}") from error


def read(path) -> tuple[dict, dict[str, np.ndarray]]:
    """The header and the arrays of a model file.

    Raises DataError when the file is missing, is no model file, or was made by a later version.
    """
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        header = json.loads(bytes(arrays.pop("header")).decode())
        version = header["format"]
    except OSError as error:
        raise DataError(f"model {files.shown(path)} can't be read: {error.strerror or error}") from error
    except (ValueError, KeyError, TypeError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error) as error:
        raise DataError(f"{path} is not a model file of rfx; make one with rfx train --model") from error
    if version != FORMAT:
        raise DataError(f"model {path} has format {version}, this rfx reads format {FORMAT}; train it again")
    return header, arrays


def check_arrays(arrays: dict[str, np.ndarray], declared: dict[str, Array], sizes: dict[str, int]) -> None:
    """Refuse, with a DataError, arrays that are not as declared or do not fit one another.

    sizes: of the axes known so far; gets those of the others.
    """
    known = {name: (form, arrays[name]) for name, form in declared.items() if name in arrays}
    for name, (form, values) in known.items():
        if values.dtype.kind != form.kind:
            raise DataError(f"array {name} holds {values.dtype}")
        if not _fits(values.shape, form.axes.split(), sizes):
            raise DataError(f"array {name} has the shape {values.shape}, which does not fit the others")
        if not np.isfinite(values).all():
            raise DataError(f"array {name} has values that are not finite")
    for name, (form, values) in known.items():
        if form.places:
            check_within(name, values, 0, sizes[form.places])
        if form.cuts:
            end = sizes[form.cuts]
            if not (len(values) and values[0] == 0 and values[-1] == end and np.all(np.diff(values) >= 0)):
                raise DataError(f"array {name} does not rise from 0 to {end}")


def _fits(shape, axes, sizes) -> bool:
    """Is that shape one of these axes? Sizes that were not known become known."""
    if len(shape) != len(axes):
        return False
    for size, axis in zip(shape, axes):
        name, _, more = axis.partition("+")
        own = size - int(more or 0)
        if own != (int(name) if name.isdigit() else sizes.setdefault(name, own)) or own < 0:
            return False
    return True


def check_within(name: str, values, low: int, high: int) -> None:
    """Refuse, with a DataError, an array with values below low or from high on."""
    if np.any((values < low) | (values >= high)):
        raise DataError(f"array {name} has values outside {low} .. {high - 1}")
