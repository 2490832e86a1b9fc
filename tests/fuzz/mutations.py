"""Random changes of bytes, which the targets of this folder use."""


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
