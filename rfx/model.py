"""The model file: one .npz with a JSON header and plain arrays; reading one runs no code."""

import contextlib
import io
import json
import os
import stat
import zipfile
import zlib

import numpy as np

from rfx import files
from rfx.errors import DataError

FORMAT = 1


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
