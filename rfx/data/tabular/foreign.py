"""Unsupported formats, recognised by their first bytes, so that error messages name them instead of
treating them as CSV.
"""

import re

from rfx.errors import DataError

_FORMATS = [
    (re.compile(pattern, re.IGNORECASE), name)
    for pattern, name in (
        (rb"PK\x03\x04(?s:.)*(?:\[Content_Types\]\.xml|xl/)", "an Excel workbook (.xlsx)"),
        (rb"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an Excel workbook (.xls)"),
        (rb"\x89HDF\r\n\x1a\n", "an HDF5 file"),
        (rb"ARROW1|FEA1", "a Feather or Arrow file"),
        (rb"ORC", "an ORC file"),
        (rb"Obj\x01", "an Avro file"),
        (rb"SQLite format 3\0", "an SQLite database"),
        (rb"MATLAB 5\.0 MAT-file", "a MATLAB file"),
        (rb"\$FL2", "an SPSS file"),
        (rb"<stata_dta>", "a Stata file"),
        (rb"%PDF-", "a PDF document"),
        (rb"\x80[\x02-\x05]", "a pickle"),
        (rb"(?:\s|[%#].*\n)*@relation\b", "ARFF"),
        (rb"\s*<(?:!doctype html|html|\?xml)", "a page of HTML or XML"),
        (
            rb"""\s*(?:\{\s*(?:"[^"\n]*"\s*:|\}|\Z)|\[\s*(?:[{\["\]]|-?[0-9][-+.0-9e]*\s*,|\n|\Z))""",
            "JSON",
        ),
        # labels, weight and tag, then features in a namespace after the bar
        (rb"[-+.0-9e \t]*(?:'[^ \t|]*+)?[ \t]\|[A-Za-z_][^ \t|]*[ \t]", "Vowpal Wabbit text"),
    )
]


def recognised(head: bytes) -> str | None:
    """The format of a file that begins with these bytes, in UTF-8 if it is text; None for formats
    that rfx may read.
    """
    return next((name for pattern, name in _FORMATS if pattern.match(head)), None)


def check(head: bytes, name: str) -> None:
    """Raise DataError with the name of an unsupported format."""
    kind = recognised(head)
    if kind is not None:
        raise DataError(
            f"{name} is {kind}, which rfx can't read; save its rows as CSV, Parquet or LIBSVM text"
        )
