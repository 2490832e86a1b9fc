"""Mutated model files: each is used, or refused in one sentence, without a traceback or much
memory.
"""

import contextlib
import io
import json
import random
import tempfile
import warnings
import zipfile
from pathlib import Path

import numpy as np
from fuzz.mutations import BYTES, check_sentence, count, spliced

from rfx import methods
from rfx.errors import RfxError

MODELS = Path(__file__).resolve().parent.parent / "fixtures/models"
_KINDS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_TYPES = (
    "<f2",
    ">f4",
    ">f8",
    "<f4",
    "<f8",
    "<i8",
    "<u8",
    "|b1",
    "<c16",
    "|O",
    "<U3",
    "|S2",
    "<M8[s]",
    "|V4",
    "[('a', '<f4')]",
)
_SHAPES = ((), (0,), (1,), (10**30,), (2**63, 2**63), (3, 0), (-1,), (1, 1), (10**9, 1))
_VALUES = (
    None,
    True,
    -1,
    0,
    3,
    10**30,
    1e300,
    float("nan"),
    "",
    "rf",
    "gaussian",
    "x" * 300,
    [],
    [[]],
    {},
    {"name": 1},
    [1, 2],
    "none",
    0.5,
)


def one(path: Path, content: bytes, n_inputs: int = 4) -> bool:
    """Whether the model could be used. RfxError means that it was refused; any other exception is a
    fault.
    """
    path.write_bytes(content)
    try:
        method = methods.load(path)
        n_inputs = method.outcome.n_inputs
        rows = np.random.default_rng(0).uniform(-1, 2, (5, n_inputs if n_inputs < 10_000 else 4))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            assert len(method.predict(rows)) == 5
    except RfxError as error:
        check_sentence(error)
        return False
    return True


def mutated(content: bytes, random: random.Random) -> bytes:
    """The model file with changed bytes, or repacked with some changed arrays or a changed
    header.
    """
    if random.random() < 0.25:
        return spliced(content, random, BYTES)
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = {info.filename: archive.read(info) for info in archive.infolist()}
    for _ in range(random.choice((1, 1, 2, 3))):
        name = random.choice(list(members))
        change = random.choice(
            (_header if "header.npy" in members else _array, _array, _array, _bytes, _drop, _copy)
        )
        change(members, name, random)
        if not members:
            break
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", random.choice(_KINDS)) as archive:
        for name, member in members.items():
            archive.writestr(name, member)
    return out.getvalue()


def _header(members, name, random):
    """A value somewhere in the JSON is changed, removed or moved."""
    try:
        header = json.loads(np.load(io.BytesIO(members["header.npy"])).tobytes())
    except Exception:  # already damaged by an earlier change
        return
    at = header
    while isinstance(at, (dict, list)) and at:
        key = random.choice(list(at)) if isinstance(at, dict) else random.randrange(len(at))
        if not isinstance(at[key], (dict, list)) or not at[key] or random.random() < 0.2:
            break
        at = at[key]
    if not at:
        return
    if isinstance(at, dict) and random.random() < 0.2:
        del at[key]
    else:
        at[key] = random.choice(_VALUES)
    members["header.npy"] = _npy(np.frombuffer(json.dumps(header).encode(), np.uint8))


def _array(members, name, random):
    """Another declared type or shape, or numbers of another type, shape or size."""
    if random.random() < 0.5:
        said = {"descr": random.choice(_TYPES), "fortran_order": False}
        text = repr(said | {"shape": random.choice(_SHAPES)}).encode()
        members[name] = b"\x93NUMPY\x01\0" + len(text).to_bytes(2, "little") + text + bytes(80)
        return
    with contextlib.suppress(Exception):  # damaged by an earlier change, or words
        values = np.load(io.BytesIO(members[name]))
        changes = [values[:-1], values.T, values.astype("i4"), values * np.nan, values[:0]]
        members[name] = _npy(random.choice(changes))


def _bytes(members, name, random):
    members[name] = spliced(members[name], random, BYTES) or b"\0"


def _drop(members, name, random):
    del members[name]


def _copy(members, name, random):
    others = (*members, "more.npy", "coef.npy", "../up.npy", "header", "x" * 300 + ".npy")
    members[random.choice(others)] = members[name]


def _npy(values) -> bytes:
    out = io.BytesIO()
    np.lib.format.write_array(out, values, allow_pickle=False)
    return out.getvalue()


def fuzz(cases: int, seed: int) -> int:
    """How many of `cases` mutated models could be used."""
    wholes = [path.read_bytes() for path in sorted(MODELS.glob("*.npz"))]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "m.npz"
        make = lambda random: mutated(random.choice(wholes), random)
        return count("model", cases, seed, make, lambda content, _: one(path, content))
