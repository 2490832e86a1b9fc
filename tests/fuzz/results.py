"""Mutated results files: each is read, or refused in one sentence; one that is read can be appended
to.

By hand: `python tests/fuzz/results.py [CASES [SEED]]`.
"""

import os
import random
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

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


def mutated(content: bytes, random: random.Random) -> bytes:
    """`content` with one to five pieces inserted, deleted, doubled or moved."""
    for _ in range(random.randint(1, 5)):
        at, end = sorted(random.randrange(len(content) + 1) for _ in range(2))
        end = min(end, at + random.choice((1, 3, 40, 400)))
        piece = random.choice(
            (
                random.choice(_PIECES),
                bytes([random.randrange(256)]),
                content[at:end] * random.choice((1, 2, 20)),
            )
        )
        at = random.randrange(len(content) + 1) if random.random() < 0.3 else at
        content = content[:at] + piece + content[random.choice((at, end)) :]
        content = (
            content[: random.randrange(len(content) + 1)] if random.random() < 0.05 else content
        )
    return content


def one(path: Path, content: bytes) -> bool:
    """Whether a results file with this content was read. RfxError means that it was refused; any
    other exception is a fault.
    """
    path.write_bytes(content)
    try:
        rows = results.read(path)
    except RfxError as error:
        assert len(str(error)) < 1000 and "\n" not in str(error), f"no sentence: {error}"
        return False
    for row in rows:
        assert set(results.COLUMNS) <= set(row) and isinstance(row["params"], Mapping)
    new = {"key": "new", "status": "ok", "dataset": "-d", "method": "rf", "params": {"a": 1}}
    try:
        results.append(path, new)
    except RfxError as error:
        assert "its columns differ" in str(error)
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
    generator = random.Random(seed)
    # every row is synchronised to disk, which is replaced here because it takes time
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        path = Path(folder) / "r.csv"
        wholes = start(path)
        return sum(one(path, mutated(generator.choice(wholes), generator)) for _ in range(cases))


if __name__ == "__main__":
    cases, seed = [int(word) for word in [*sys.argv[1:], *("10000", "0")[len(sys.argv) - 1 :]]]
    print(f"{fuzz(cases, seed)} of {cases} were read, the others refused")
