"""The model file: one .npz with a JSON header and plain arrays; reading one runs no code."""

import json
import os
import tempfile
import zipfile
from pathlib import Path

import numpy as np

from rfx.errors import DataError

FORMAT = 1


def write(path, header: dict, arrays: dict[str, np.ndarray]) -> int:
    """Write a model file in one step (temporary file, then rename); returns its size in bytes.

    header: anything JSON can hold. arrays: name -> array of numbers.
    Raises DataError when the folder does not exist or can't be written.
    """
    path = Path(path)
    text = json.dumps({"format": FORMAT, **header})
    encoded = np.frombuffer(text.encode(), dtype=np.uint8)
    try:
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".tmp")
        try:
            with os.fdopen(handle, "wb") as file:
                np.savez(file, header=encoded, **arrays)
                file.flush()
                os.fsync(file.fileno())
            os.chmod(temporary, 0o666 & ~_umask())
            os.replace(temporary, path)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise DataError(f"model {path} can't be written: {error.strerror or error}") from error
    return path.stat().st_size


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
        raise DataError(f"model {path} can't be read: {error.strerror or error}") from error
    except (ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile) as error:
        raise DataError(f"{path} is not a model file of rfx ({error}); make one with rfx train --model") from error
    if version != FORMAT:
        raise DataError(f"model {path} has format {version}, this rfx reads format {FORMAT}; train it again")
    return header, arrays


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
