"""Random changes of bytes and text, and the loop over them, for the targets of this folder."""

import random
import sys
import tempfile
from pathlib import Path

BYTES = [bytes([code]) for code in range(256)]


def spliced(content, random, pieces, letters=BYTES, most=6, lengths=(0, 1, 8), times=(1, 2, 3)):
    """`content`, text or bytes, with one to `most` pieces or letters inserted, or parts replaced,
    deleted, repeated or moved, or cut off.
    """
    for _ in range(random.randint(1, most)):
        at = random.randrange(len(content) + 1)
        end = min(len(content), at + random.choice(lengths))
        repeated = content[at:end] * random.choice(times)
        piece = random.choice((random.choice(pieces), random.choice(letters), repeated))
        at = random.randrange(len(content) + 1) if random.random() < 0.3 else at
        content = content[:at] + piece + content[random.choice((at, max(at, end))) :]
    return content[: random.randrange(len(content) + 1)] if random.random() < 0.1 else content


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
