"""Mutated binary caches of a text, including headers with valid checksums: accepted only if a text
could give these arrays.
"""

import json
import random
import tempfile
import zlib
from pathlib import Path

import numpy as np
from fuzz.mutations import mutated

from rfx.data.libsvm import svmtext, textcache

_TEXT = b"1 1:0.5 3:2\n-1 2:1\n0.5 1:.5 2:3 10:0\n"
_VALUES = [0, 1, -1, 3, 17, 1 << 31, 1 << 62, -(1 << 40), 1.5, "8", None, [], True, 10**30]
_TYPES = ["<f8", "<i4", "<i8", ">f8", "<f2", "O", "|S1", 3, None]


def _packed(key, arrays, header=None):
    described = {
        name: (array.dtype.str, len(array), zlib.crc32(array.tobytes()))
        for name, array in arrays.items()
    }
    content = json.dumps({"key": key, "plain": True} | described | (header or {})).encode()
    return (
        textcache._MAGIC
        + len(content).to_bytes(4, "little")
        + content
        + b"".join(array.tobytes() for array in arrays.values())
    )


def _case(key, arrays, generator):
    """The bytes of a cache with changed arrays and valid checksums, a changed header, or changed
    bytes.
    """
    arrays = {name: array.copy() for name, array in arrays.items()}
    how = generator.randrange(4)
    if how == 0:
        return mutated(_packed(key, arrays), generator)
    if how == 1:
        name = generator.choice(list(arrays))
        return _packed(
            key,
            arrays,
            {
                name: [
                    generator.choice(_TYPES),
                    generator.choice(_VALUES),
                    generator.choice(_VALUES),
                ]
            },
        )
    for _ in range(generator.randint(1, 3)):
        name = generator.choice(list(arrays))
        array = arrays[name]
        if generator.random() < 0.3:
            arrays[name] = (
                array[: generator.randrange(len(array) + 1)]
                if generator.random() < 0.5
                else np.concatenate([array, array])
            )
        elif len(array):
            with np.errstate(all="ignore"):
                value = (
                    generator.choice([np.nan, np.inf, 1e300])
                    if array.dtype.kind == "f"
                    else generator.choice([-1, 0, 1, 5, 2**31 - 1])
                )
                array[generator.randrange(len(array))] = value
    return _packed(key, arrays)


def one(path: Path, content: bytes) -> bool:
    """Whether the cache was accepted; its content is then some valid rows."""
    cache = textcache.place(path)
    cache.write_bytes(content)
    cache.chmod(0o600)
    arrays = textcache.load(path, False)
    if arrays is None:
        return False
    labels, indptr, indices, values = arrays
    assert (
        len(indptr) == len(labels) + 1
        and indptr[0] == 0
        and indptr[-1] == len(indices) == len(values)
    )
    assert np.isfinite(labels).all() and np.isfinite(values).all()
    starts = np.zeros(len(indices) + 1, bool)
    starts[indptr] = True  # IndexError for an index out of range
    assert (
        (np.diff(indptr) >= 0).all()
        and (indices >= 0).all()
        and (np.diff(indices)[~starts[1:-1]] > 0).all()
    )
    return True


def fuzz(cases: int, seed: int) -> int:
    """How many of `cases` mutated caches were accepted."""
    generator = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        before, textcache.place = textcache.place, lambda path: Path(folder) / "cache.rfxcache"
        try:
            path = Path(folder) / "text"
            path.write_bytes(_TEXT)
            *parsed, _ = svmtext.parse(_TEXT, False)
            arrays = dict(zip(textcache._TYPES, parsed))
            key = textcache._key(path, path.stat(), False)
            return sum(one(path, _case(key, arrays, generator)) for _ in range(cases))
        finally:
            textcache.place = before
