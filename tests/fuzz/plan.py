"""Mutated plans: each is read, or refused in one sentence, without a traceback."""

import tempfile
from pathlib import Path

from fuzz.mutations import check_sentence, count, spliced

from rfx import papers
from rfx.errors import RfxError
from rfx.plans import plan

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


def one(path: Path, text: str) -> bool:
    """Whether a plan with this text was read. RfxError means that it was refused; any other
    exception is a fault.
    """
    path.write_text(text, encoding="utf-8", errors="replace")
    try:
        loaded = plan.load(path, quick=len(text) % 5 == 0)
    except RfxError as error:
        check_sentence(error)
        return False
    assert loaded.runs and all(run.dataset and run.method for run in loaded.runs)
    return True


def fuzz(cases: int, seed: int) -> int:
    """How many of `cases` mutated plans were read."""
    letters = [chr(code) for code in range(1, 300)]
    files = papers.plans().values()
    wholes = [plan.example(), *(file.read_text(encoding="utf-8") for file in files)]
    with tempfile.TemporaryDirectory() as folder:

        def make(random):
            text = random.choice(wholes)
            return spliced(text, random, _PIECES, letters, 4, (0, 1, 5, 60, 400), (0, 1, 2, 9))

        return count("plan", cases, seed, make, lambda text, _: one(Path(folder) / "p.toml", text))
