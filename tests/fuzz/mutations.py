"""Random changes of bytes and text, and the loop over them, for the targets of this folder."""

import random
import sys
import tempfile
from pathlib import Path


def mutated(content: bytes, random, pieces=(), most: int = 6) -> bytes:
    """`content` with one to `most` changes: bytes replaced, inserted, deleted or repeated, pieces
    inserted, the end cut off.
    """
    content = bytearray(content)
    for _ in range(random.randint(1, most)):
        at = random.randrange(len(content) + 1)
        how = random.randrange(7)
        if how == 0 and at < len(content):
            content[at] = random.randrange(256)
        elif how == 1 and at < len(content):
            content[at] ^= 1 << random.randrange(8)
        elif how == 2:
            content[at:at] = random.randbytes(random.randint(1, 4))
        elif how == 3:
            del content[at : at + random.randint(1, 8)]
        elif how == 4 and pieces:
            content[at:at] = random.choice(pieces)
        elif how == 5:
            content[at:at] = content[at : at + random.randint(1, 16)] * random.randint(1, 3)
        elif how == 6 and random.random() < 0.2:
            del content[at:]
    return bytes(content)


def spliced(content, random, pieces, letters, most, lengths, times):
    """`content`, text or bytes, with one to `most` pieces or letters inserted, or parts deleted,
    repeated or moved.
    """
    for _ in range(random.randint(1, most)):
        at = random.randrange(len(content) + 1)
        end = min(len(content), at + random.choice(lengths))
        repeated = content[at:end] * random.choice(times)
        piece = random.choice((random.choice(pieces), random.choice(letters), repeated))
        at = random.randrange(len(content) + 1) if random.random() < 0.3 else at
        content = content[:at] + piece + content[random.choice((at, max(at, end))) :]
    return content


def check_sentence(error) -> None:
    """AssertionError unless an error is one line of a reasonable length."""
    assert len(str(error)) < 2000 and "\n" not in str(error), f"no sentence: {error}"


def count(name, cases, seed, make, read) -> int:
    """How many of the inputs `make(random)` are read; one that fails is kept in a file."""
    generator, good = random.Random(seed), 0
    for case in range(cases):
        given = make(generator)
        try:
            good += read(given, generator)
        except BaseException:
            kept = Path(tempfile.gettempdir()) / f"rfx-fuzz-{name}-{seed}-{case}"
            kept.write_text(repr(given))
            print(f"case {case} of seed {seed} is kept as {kept}", file=sys.stderr)
            raise
    return good
