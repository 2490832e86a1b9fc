"""Random CSV texts: the cells of each record equal those of Python's csv module, for any pieces in
which the text is read.
"""

import csv
import io
import random

from rfx.data import pieces
from rfx.data.tabular import csvtext
from rfx.errors import RfxError

_PARTS = [
    "",
    " ",
    "a",
    "1",
    '"',
    '""',
    ",",
    ";",
    "\t",
    "|",
    "\n",
    "\r",
    "\r\n",
    "é",
    "x y",
    " b",
    "2.50",
    "007",
    "#",
    "NaN?",
]
_ENDS = ["\n", "\r\n", "\r"]


def _text(generator, separator) -> str:
    """A text of records: as a writer writes it, with blank lines between them, or of random
    parts.
    """
    if generator.random() < 0.4:
        most = generator.choice([6, 12, 30])
        parts = [separator, separator, '"', *_PARTS, *_ENDS]
        return "".join(generator.choice(parts) for _ in range(generator.randint(1, most)))
    end, width = generator.choice(_ENDS), generator.randint(1, 5)
    quoting = generator.choice([csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC])
    text = io.StringIO()
    writer = csv.writer(text, delimiter=separator, quoting=quoting, lineterminator=end)
    for _ in range(generator.randint(1, 12)):
        cells = [
            "".join(generator.choice(_PARTS) for _ in range(generator.randint(0, 3)))
            for _ in range(width)
        ]
        if end != "\r" and quoting != csv.QUOTE_ALL:
            # a writer that ends lines with another character does not quote this one
            cells = [cell.replace("\r", "") for cell in cells]
        writer.writerow(cells)
        text.write(
            "".join(generator.choice([*_ENDS, " \n"]) for _ in range(generator.randrange(3)))
            if generator.random() < 0.2
            else ""
        )
    whole = text.getvalue()
    return whole.removesuffix(end) if generator.random() < 0.3 else whole


def _theirs(text, separator) -> list[list[str]]:
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=separator, skipinitialspace=True)
    return [row for row in ([cell.strip() for cell in row] for row in rows if row)]


def one(text: str, separator: str, generator) -> bool:
    """Whether the text was read; AssertionError if cells differ from those of Python's csv
    module.
    """
    raw = text.replace("\r\n", "\n").replace("\r", "\n").encode()
    found = [cells for _, _, cells in csvtext.records(raw, separator)]
    if None in found:
        return False
    theirs = [row for row in _theirs(raw.decode(), separator) if row != [""]]
    ours = [[cell.strip() for cell in row] for row in found]
    assert [row for row in ours if row != [""]] == theirs, text
    widths = {len(row) for row in found}
    if len(widths) != 1 or widths == {1}:
        return False
    (width,) = widths
    shape = csvtext.Dialect(separator, False, tuple(map(str, range(width))), "f")
    chunk = 1 << 20 if generator.random() < 0.9 else generator.randint(1, 9)
    words, whole = frozenset(range(width)), lambda raw: csvtext.whole_records(raw, separator)
    try:
        parts = [
            table
            for piece in pieces.pieces(io.BytesIO(raw).read, "f", chunk, whole=whole)
            if (table := csvtext.parse(piece.raw, shape, piece.line, words, not piece.start))
        ]
    except RfxError as error:
        assert "ambiguous" in str(error), text
        return False
    columns = [
        [
            "" if code < 0 else part.columns[place].values[code]
            for part in parts
            for code in part.columns[place].codes
        ]
        for place in range(width)
    ]
    absent = [["" if cell in csvtext.ABSENT else cell for cell in row] for row in theirs]
    assert [list(row) for row in zip(*columns)] == absent, text
    return True


def fuzz(cases: int, seed: int) -> int:
    """How many of `cases` random texts were read."""
    generator, read = random.Random(seed), 0
    for _ in range(cases):
        separator = generator.choice([",", ",", ";", "\t", "|"])
        read += one(_text(generator, separator), separator, generator)
    return read
