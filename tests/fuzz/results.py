"""Mutated results files: each is read, or refused in one sentence; one that is read can be appended
to.
"""

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

from fuzz.mutations import check_sentence, count, spliced

from rfx.errors import RfxError
from rfx.records import results

_PIECES = [
    b",",
    b";",
    b"\t",
    b'"',
    b'""',
    b"\n",
    b"\r\n",
    b"\r",
    b"\0",
    b"\xff",
    b"\xef\xbb\xbf",
    b"'=1+1",
    b"-",
    b"nan",
    b"inf",
    b"1e999",
    b"9" * 50,
    b"9" * 5000,
    b"0x10",
    b"{",
    b"[" * 5000,
    b'{"columns": 3}',
    b'{"columns": {"lam": "x", "gap": [1]}}',
    b"null",
    b"true",
    b"key",
    b"status",
    b"ok",
    b"message",
    b"a" * 3000,
    b"x," * 100,
    "１２".encode(),
    b",,,,,,",
]


def start(path) -> list[bytes]:
    """Valid files to start from: as rfx writes them, and with few columns."""
    for number in range(3):
        results.append(
            path,
            {
                "key": f"k{number}",
                "status": ("ok", "failed", "ok")[number],
                "dataset": "cpu",
                "method": "rf",
                "score": 0.1 * number,
                "message": ('says "no", twice', "=cmd|' /C calc'!A0", None)[number],
                "converged": True,
                "n_train": 5,
                "params": {"gamma": 0.5},
            },
        )
    ours = Path(path).read_bytes()
    return [ours, ours, b"method,dataset,status,key\nrf,cpu,ok,a\nrf,cpu,ok,b"]


def one(path: Path, content: bytes) -> bool:
    """Whether a results file with this content was read. RfxError means that it was refused; any
    other exception is a fault.
    """
    path.write_bytes(content)
    try:
        rows = results.read(path)
    except RfxError as error:
        check_sentence(error)
        return False
    for row in rows:
        assert set(results.COLUMNS) <= set(row) and isinstance(row["params"], Mapping)
    new = {"key": "new", "status": "ok", "dataset": "-d", "method": "rf", "params": {"a": 1}}
    try:
        results.append(path, new)
    except RfxError as error:
        assert "has other columns" in str(error)
        return True
    after = results.read(path)
    old = [row for row in rows if row["key"] != "new"]
    assert after[: len(old)] == old or any(
        value != value for row in old for value in row.values()
    ), "a row was lost or changed"
    assert (after[-1]["key"], after[-1]["dataset"]) == ("new", "-d")
    return True


def fuzz(cases: int, seed: int) -> int:
    """How many of `cases` mutated files were read."""
    # every row is synchronised to disk, which is replaced here because it takes time
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        path = Path(folder) / "r.csv"
        wholes = start(path)
        make = lambda random: spliced(
            random.choice(wholes), random, _PIECES, most=5, lengths=(1, 3, 40, 400)
        )
        return count("results", cases, seed, make, lambda content, _: one(path, content))
