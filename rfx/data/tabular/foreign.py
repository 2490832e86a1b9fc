"""Unsupported formats, recognised by their first bytes, so that error messages name them instead of
treating them as CSV.
"""

import re
from pathlib import Path

from rfx.errors import DataError

_MAGIC = (
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an Excel workbook (.xls)"),
    (b"\x89HDF\r\n\x1a\n", "an HDF5 file"),
    (b"ARROW1", "a Feather or Arrow file"),
    (b"FEA1", "a Feather file"),
    (b"ORC", "an ORC file"),
    (b"Obj\x01", "an Avro file"),
    (b"SQLite format 3\0", "an SQLite database"),
    (b"MATLAB 5.0 MAT-file", "a MATLAB file"),
    (b"$FL2", "an SPSS file"),
    (b"<stata_dta>", "a Stata file"),
    (b"%PDF-", "a PDF document"),
)
_ZIP = b"PK\x03\x04"
_PICKLE = re.compile(rb"\x80[\x02-\x05]")
_MARKUP = re.compile(rb"\s*<(?:!doctype html|html|\?xml)", re.IGNORECASE)
_ARFF = re.compile(rb"@relation\b", re.IGNORECASE)
_JSON = re.compile(
    rb"""\s*(?:\{\s*(?:"[^"\n]*"\s*:|\}|\Z)|\[\s*(?:[{\["\]]|-?[0-9][-+.0-9eE]*\s*,|\n|\Z))"""
)
# Labels, weight and tag, then features in a namespace after the bar, or features with values after
# a colon.
_VW_LINE = re.compile(
    rb"(?:[-+.0-9eE]++(?:[ \t]++[-+.0-9eE]++){0,2})?(?:[ \t]++'?[^ \t|:]*+)?[ \t]*+\|.+"
)
_VW_FEATURES = re.compile(
    rb"(?:^|[ \t])\|(?:[A-Za-z_][^ \t|]*[ \t]+[^ \t|]|[ \t]*[^ \t|:]+:[-+.0-9])"
)
_SUFFIXES = {
    ".vw": "Vowpal Wabbit text",
    ".pkl": "a pickle",
    ".pickle": "a pickle",
    ".joblib": "a pickle",
}
_TEXTS = ("Vowpal Wabbit text", "JSON", "ARFF", "a page of HTML or XML")


def recognised(head: bytes, path="") -> str | None:
    """The format of a file that begins with these bytes, in UTF-8 if it is text; None for formats
    that rfx may read.
    """
    if head.startswith(_ZIP):
        workbook = b"[Content_Types].xml" in head or b"xl/" in head[:4096]
        return "an Excel workbook (.xlsx)" if workbook else None
    return _binary(head) or _text(head) or _SUFFIXES.get(Path(str(path)).suffix.lower())


def _binary(head: bytes) -> str | None:
    """The binary format with these first bytes, or None."""
    found = next((name for magic, name in _MAGIC if head.startswith(magic)), None)
    if found is None and _PICKLE.match(head):
        return "a pickle"
    return found


def _text(head: bytes) -> str | None:
    """The text format that begins with these bytes, or None."""
    lines = [line.strip() for line in head.splitlines() if line.strip()]
    content = [line for line in lines if not line.startswith((b"%", b"#"))]
    if content and _ARFF.match(content[0]):
        return "ARFF"
    if _MARKUP.match(head):
        return "a page of HTML or XML"
    if _JSON.match(head):
        return "JSON"
    content = content[:-1] if len(content) > 1 and not head.endswith(b"\n") else content
    if content and all(
        b"|" in line and _VW_LINE.fullmatch(line) and _VW_FEATURES.search(line) for line in content
    ):
        return "Vowpal Wabbit text"
    return None


def check(head: bytes, name: str, path="") -> None:
    """Raise DataError with the name of an unsupported format."""
    found = recognised(head, path)
    if found is not None:
        raise DataError(
            f"{name} is {found}, which rfx can't read; save its rows as CSV, Parquet or LIBSVM text"
        )
