"""The model file: one .npz with a JSON header and plain arrays. Reading a model file runs no code.

The arrays are declared by their owners: in the files of methods, feature maps and kernels.
"""

import contextlib
import io
import json
import lzma
import math
import os
import stat
import struct
import tokenize
import zipfile
import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np

from rfx import env, files
from rfx.errors import DataError

FORMAT = 1
FORMATS = (1,)
_HEAD = 4096  # maximum offset of the JSON in a header's array
_LARGEST_HEADER = 64 * 2**20
# Arrays up to this size in MiB are read regardless of the free memory.
_ALWAYS_MB = 64
# The types that rfx writes, little-endian on every machine.
_PLAIN = ("f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8")
# Exceptions of Python's and numpy's readers for damaged archives, members and headers
DAMAGED = (
    ValueError,
    KeyError,
    TypeError,
    IndexError,
    AttributeError,
    OverflowError,
    EOFError,
    RuntimeError,
    OSError,
    SyntaxError,
    MemoryError,
    struct.error,
    tokenize.TokenError,
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
)


@dataclass(frozen=True)
class Array:
    """The required form of a model file's array.

    kind: of its numbers: f, i or u, as in numpy. axes: the name of each axis, one word each; arrays
    with the same name have the same size there. inputs and outputs are known beforehand; a name
    followed by +1 means one more, and a number means itself. places: its values are indices along
    this axis, from 0. cuts: its values split this axis into parts: they increase from 0 to its
    size.
    """

    kind: str
    axes: str = ""
    places: str = ""
    cuts: str = ""


def write(path, header: dict, arrays: dict[str, np.ndarray]) -> int:
    """Write a model file atomically (temporary file, then rename); return its size in bytes.

    header: anything JSON supports. arrays: name -> numeric array. A pipe or device is written to,
    not replaced; with None as path nothing is written and only the size is returned. Raises
    DataError if the folder does not exist or is not writable.
    """
    text = json.dumps({"format": FORMAT, **header})
    encoded = np.frombuffer(text.encode(), dtype=np.uint8)
    contents: dict[str, Any] = {"header": encoded, **arrays}
    if path is None:
        counted = _Counted()
        np.savez(counted, **contents)
        return counted.end
    with _errors(path), files.whole(path) as handle:
        # writing a zip file needs seeks, which a pipe does not support
        place = handle if stat.S_ISREG(os.fstat(handle.fileno()).st_mode) else io.BytesIO()
        np.savez(place, **contents)
        size = place.tell()
        if place is not handle:
            handle.write(place.getbuffer())
    return size


class _Counted(io.RawIOBase):
    """A file that discards its content and only tracks its size."""

    def __init__(self):
        self.place = self.end = 0

    def writable(self):
        return True

    def seekable(self):
        return True

    def write(self, data):
        count = memoryview(data).nbytes
        self.place += count
        self.end = max(self.end, self.place)
        return count

    def seek(self, offset, whence=os.SEEK_SET):
        self.place = offset + (0, self.place, self.end)[whence]
        return self.place

    def tell(self):
        return self.place


def check(path) -> None:
    """Raise DataError if no model file can be written to `path`; nothing is created."""
    with _errors(path):
        files.check(path)


def _made(path) -> bool:
    """Whether the file is an archive with an rfx header. Its arrays are not read."""
    try:
        with (
            files.open_regular(path) as handle,
            zipfile.ZipFile(handle) as archive,
            archive.open("header.npy") as member,
        ):
            return member.read(6) == b"\x93NUMPY" and b'{"format": ' in member.read(_HEAD)
    except (
        KeyError,
        ValueError,
        EOFError,
        RuntimeError,
        zipfile.BadZipFile,
        zlib.error,
        lzma.LZMAError,
    ):
        return False


KIND = files.Kind("a model file of rfx", _made)


@contextlib.contextmanager
def _errors(path):
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise DataError(
            f"model {files.shown(path)} can't be written: {error.strerror or error}"
        ) from error


class File:
    """A model file open for reading: its header, the forms of its arrays, and the requested
    arrays.
    """

    def __init__(self, path, archive: zipfile.ZipFile):
        self.path, self._archive = path, archive
        self._members = {
            info.filename.removesuffix(".npy"): info
            for info in archive.infolist()
            if info.filename.endswith(".npy")
        }
        try:
            self.header = json.loads(self._read("header", _LARGEST_HEADER).tobytes().decode())
            version = self.header["format"]
        except DataError as error:
            raise DataError(
                f"{files.shown(path)} is not a model file of rfx ({error}); create one with rfx"
                " train --model"
            ) from error
        except DAMAGED as error:
            raise DataError(
                f"{files.shown(path)} is not a model file of rfx; create one with rfx train --model"
            ) from error
        if version not in FORMATS:
            raise DataError(
                f"model {path} has format {version!s:.40}, this rfx reads format {FORMAT}; train it"
                " again"
            )

    def forms(self) -> dict[str, "Form"]:
        """The form of each array according to its archive member; no numbers are read."""
        return {name: self._form(name)[0] for name in self._members if name != "header"}

    def arrays(self, names=None) -> dict[str, np.ndarray]:
        """The existing arrays among these names, by default all. DataError, with the array's name,
        for a damaged one.
        """
        chosen = [
            name
            for name in (self._members if names is None else names)
            if name in self._members and name != "header"
        ]
        needed = sum(self._form(name)[0].size_mb for name in chosen)
        if needed > max(env.available_memory_mb(), _ALWAYS_MB):
            raise DataError(
                f"its arrays need {needed:,.0f} MiB, but only {env.available_memory_mb():,.0f} MiB"
                " are free"
            )
        return {name: self._read(name) for name in chosen}

    def _form(self, name):
        """(form, bytes before the numbers, whether in Fortran order) of an array."""
        if name not in self._members:
            raise DataError(f"there is no array {name}")
        info = self._members[name]
        with self._refused(name), self._archive.open(info) as member:
            version = np.lib.format.read_magic(member)
            if version not in ((1, 0), (2, 0)):
                raise ValueError(version)
            reader = (
                np.lib.format.read_array_header_1_0
                if version == (1, 0)
                else np.lib.format.read_array_header_2_0
            )
            shape, fortran, dtype = reader(member)
            before = member.tell()
        plain = (
            dtype.str[1:] in _PLAIN
            and dtype.str[0] in "<|"
            and all(type(size) is int and size >= 0 for size in shape)
        )
        if not plain:
            raise DataError(
                f"array {name} holds {dtype!s:.40} in the shape {shape!s:.80}, which is not valid"
                " in a model"
            )
        form = Form(dtype, shape)
        if form.nbytes != info.file_size - before:
            raise DataError(
                f"array {name} is damaged: its shape {shape!s:.80} is not that of its"
                f" {info.file_size - before:,} bytes"
            )
        return form, before, fortran

    def _read(self, name, most: int | None = None) -> np.ndarray:
        form, before, fortran = self._form(name)
        if most is not None and form.nbytes > most:
            raise DataError(f"array {name} needs {form.nbytes:,} bytes")
        with self._refused(name), self._archive.open(self._members[name]) as member:
            member.read(before)
            content = member.read(form.nbytes)
            if len(content) < form.nbytes or member.read(1):
                raise EOFError(name)
            values = np.frombuffer(bytearray(content), form.dtype)
            return values.reshape(form.shape, order="F" if fortran else "C")

    @contextlib.contextmanager
    def _refused(self, name):
        try:
            yield
        except DAMAGED as error:
            raise DataError(f"array {name} is damaged ({type(error).__name__})") from error


@dataclass(frozen=True)
class Form:
    """Type and shape of an array."""

    dtype: np.dtype
    shape: tuple[int, ...]

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize

    @property
    def size_mb(self) -> float:
        return self.nbytes / 2**20


@contextlib.contextmanager
def opened(path):
    """The model file `path` as a File.

    Raises DataError if the file is missing, is not a model file, or was written by a later version.
    """
    try:
        handle = files.open_regular(path)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise DataError(f"model {files.shown(path)} can't be read: {reason}") from error
    with handle:
        try:
            archive = zipfile.ZipFile(handle)
        except DAMAGED as error:
            message = (
                f"{files.shown(path)} is not a model file of rfx; create one with rfx train --model"
            )
            raise DataError(message) from error
        with archive:
            yield File(path, archive)


def read(path) -> tuple[dict, dict[str, np.ndarray]]:
    """The header and all arrays of a model file.

    Raises DataError if the file is missing, is not a model file, is damaged, or was written by a
    later version.
    """
    with opened(path) as file:
        try:
            return file.header, file.arrays()
        except DataError as error:
            raise DataError(f"model {path} can't be used: {error}; train it again") from error


def check_forms(found: dict, declared: dict[str, Array], sizes: dict[str, int]) -> None:
    """Raise DataError for arrays or Forms whose type or shape is not as declared, or is
    inconsistent.

    sizes: of the axes known so far; receives those of the others.
    """
    for name, form in declared.items():
        if name not in found:
            continue
        if found[name].dtype.kind != form.kind:
            raise DataError(f"array {name} holds {found[name].dtype}")
        if not _fits(found[name].shape, form.axes.split(), sizes):
            raise DataError(
                f"array {name} has the shape {found[name].shape!s:.80}, which does not match the"
                " others"
            )


def check_arrays(
    arrays: dict[str, np.ndarray], declared: dict[str, Array], sizes: dict[str, int]
) -> None:
    """Run check_forms, and reject values that are not finite or not valid indices or cuts."""
    check_forms(arrays, declared, sizes)
    known = {name: (form, arrays[name]) for name, form in declared.items() if name in arrays}
    for name, (form, values) in known.items():
        if not np.isfinite(values).all():
            raise DataError(f"array {name} has values that are not finite")
        if form.places:
            check_within(name, values, 0, sizes[form.places])
        if form.cuts:
            end = sizes[form.cuts]
            if not (
                len(values)
                and values[0] == 0
                and values[-1] == end
                and np.all(values[:-1] <= values[1:])
            ):
                raise DataError(f"array {name} does not increase from 0 to {end}")


def _fits(shape, axes, sizes) -> bool:
    """Whether that shape matches these axes. Unknown sizes are recorded."""
    if len(shape) != len(axes):
        return False
    for size, axis in zip(shape, axes):
        name, _, more = axis.partition("+")
        own = size - int(more or 0)
        if own != (int(name) if name.isdigit() else sizes.setdefault(name, own)) or own < 0:
            return False
    return True


def check_within(name: str, values, low: int, high: int) -> None:
    """Raise DataError for an array with values below low or from high on."""
    if np.any((values < low) | (values >= high)):
        raise DataError(f"array {name} has values outside {low} .. {high - 1}")
