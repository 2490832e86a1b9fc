"""Mutated plans: each is read, or refused in one sentence, without a traceback, a hang or much
memory.

By hand: `python tests/fuzz/plan.py [CASES [SEED]]`.
"""

import random
import resource
import signal
import sys
import tempfile
from pathlib import Path

from rfx import papers
from rfx.errors import RfxError
from rfx.plans import plan

# memory for one plan, far above any real use, and for all of them
SECONDS, MEGABYTES = 60, 500
_PIECES = [
    "[",
    "]",
    "[[",
    "]]",
    "{",
    "}",
    '"',
    "'",
    '"""',
    "=",
    ".",
    ",",
    "\n",
    "#",
    "\0",
    "﻿",
    "é",
    "true",
    "false",
    "nan",
    "-inf",
    "1e999",
    "-1",
    "0",
    "1" * 19,
    "1" * 5000,
    "0x" + "f" * 5000,
    "1979-05-27T07:32:00Z",
    "1979-99-99",
    "[" * 20_000,
    "{a=" * 3000,
    "a." * 3000 + "b = 1\n",
    "[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]",
    "[" + "1," * 3000 + "1]",
    '"' + "x" * 9000 + '"',
    "repetitions = 100000\n",
    "seed = [0, 1]\n",
    "[[run]]\n",
    "[quick]\n",
    "[[set]]\nwhen = {}\n",
    'dataset = "cpu"\n',
    "options = 3\n",
    "options.seed = 1\n",
    "../../../../etc/passwd",
    'method = "kernel"\n',
    "threads = [1, 2, 4]\nfixed_threads = true\n",
    "trace = true\n",
    "\\u0000",
]


def mutated(text: str, random: random.Random) -> str:
    """`text` with one to four pieces inserted, deleted, doubled or moved."""
    for _ in range(random.randint(1, 4)):
        at = random.randrange(len(text) + 1)
        end = min(len(text), at + random.choice((0, 1, 5, 60, 400)))
        piece = random.choice(
            (
                random.choice(_PIECES),
                chr(random.randrange(1, 300)),
                text[at:end] * random.choice((0, 1, 2, 9)),
            )
        )
        at = random.randrange(len(text) + 1) if random.random() < 0.3 else at
        text = text[:at] + piece + text[random.choice((at, max(at, end))) :]
    return text


def one(path: Path, text: str) -> bool:
    """Whether a plan with this text was read. RfxError means that it was refused; any other
    exception is a fault.
    """
    path.write_text(text, encoding="utf-8", errors="replace")
    try:
        loaded = plan.load(path, quick=len(text) % 5 == 0)
    except RfxError as error:
        assert len(str(error)) < 2000 and "\n" not in str(error), f"no sentence: {error}"
        return False
    assert loaded.runs and all(run.dataset and run.method for run in loaded.runs)
    return True


def _too_long(*_):
    raise AssertionError(f"a plan took more than {SECONDS} seconds")


def fuzz(cases: int, seed: int) -> int:
    """How many of `cases` mutated plans were read."""
    generator, read = random.Random(seed), 0
    wholes = [
        plan.example(),
        *(file.read_text(encoding="utf-8") for file in papers.plans().values()),
    ]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    old = signal.signal(signal.SIGALRM, _too_long)
    try:
        with tempfile.TemporaryDirectory() as folder:
            for _ in range(cases):
                signal.alarm(SECONDS)
                read += one(Path(folder) / "p.toml", mutated(generator.choice(wholes), generator))
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, old)
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    assert grown < MEGABYTES, f"{grown:.0f} MB more"
    return read


if __name__ == "__main__":
    cases, seed = [int(word) for word in [*sys.argv[1:], *("10000", "0")[len(sys.argv) - 1 :]]]
    print(f"{fuzz(cases, seed)} of {cases} were read, the others refused")
