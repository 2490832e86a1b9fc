"""Mutated LIBSVM text: the compiled parser, the parser that explains errors and the scan in pieces
agree on every line.
"""

import numpy as np
from fuzz.mutations import count, spliced

from rfx.data import libsvm, textfiles

_WHOLES = [
    (
        b"+1 1:0.5 3:-2e-3\n# a comment\n\n-1 2:1\n0.5 1:.5 2:3 10:0\n2 1:1.25e-3"
        b" 7:123456789012345678901 8:1\n-3.5 4:0.1\n"
    ),
    b"1\n-1 1:1\t2:2 \r\n3 4:-.5e+10 5:1.e-5 999999999999999999:1",
]
_PIECES = [
    b"nan",
    b"inf",
    b":",
    b" ",
    b"\t",
    b"\r",
    b"\n",
    b"#",
    b"-",
    b"+",
    b".",
    b"e",
    b"1e999",
    b"1e-999",
    b"0:1",
    b"1:1 ",
    b"\0",
    b"\xff",
    b"1" * 19,
    b"9" * 400,
    b"0" * 400 + b"1",
    b"qid:3",
    b"1,2",
    b"2147483648:1 ",
    b"0.1000000000000000055511151231257827",
]


def one(content: bytes, zero_based: bool) -> bool:
    """Whether the text is valid; AssertionError if the readers differ."""
    lines = content.split(b"\n")
    starts = np.cumsum([0] + [len(line) + 1 for line in lines]).tolist()
    explained = [list(libsvm.line_problems(line, zero_based)) for line in lines]
    bad = [start for start, problems in zip(starts, explained) if problems]
    found = libsvm.parse(content, zero_based)
    assert found.bad.tolist() == bad, content
    if not bad:
        rows = [words for line in lines if (words := line.partition(b"#")[0].split())]
        entries = [word.split(b":") for words in rows for word in words[1:]]
        assert found.y.tolist() == [float(words[0]) for words in rows], content
        assert np.diff(found.indptr).tolist() == [len(words) - 1 for words in rows], content
        assert found.indices.tolist() == [int(index) - (not zero_based) for index, _ in entries]
        assert found.values.tolist() == [float(value) for _, value in entries], content
    scan = libsvm.Scan(textfiles.Text("f", content=content), zero_based)
    told = [(line, column) for line, column, _ in scan.problems()]
    places = [(number, column) for number, own in enumerate(explained, 1) for column, _ in own]
    if bad:
        assert told == ([(1, 1)] if b"\0" in content else places), content
        return False
    assert scan.rows == len(found.y) and bool(told) == (not scan.rows), content
    return not told


def fuzz(cases: int, seed: int) -> int:
    """How many of `cases` mutated texts were valid."""
    make = lambda random: spliced(random.choice(_WHOLES), random, _PIECES)
    return count("libsvm", cases, seed, make, lambda text, random: one(text, random.random() < 0.2))
