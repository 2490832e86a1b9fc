"""Phrases that no text of the project contains. Each was found there once, and its reader had to
guess the meaning.
"""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PHRASES = [
    "says a score",
    "is told by its name",
    "may be away",
    "the like of",
    "going on takes",
    "is none; mend",
    "leave the curve away",
    "for there are too few",
    "mend that",
    "made anew",
    "without a word",
]
PATHS = [
    *(ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md")),
    *(ROOT / "docs").glob("*.md"),
    *(path for name in ("rfx", "benchmarks", "tests") for path in (ROOT / name).rglob("*.py")),
]
PATHS.remove(Path(__file__).resolve())


def phrases_in(text):
    """Phrases may be split by a line end: in the text itself, in a comment, or in a string of
    several parts.
    """
    whole = re.sub(r"""["']?[ \t]*\n[ \t]*(?:#[ \t]*|[bfr]*["'])?""", " ", text)
    whole = re.sub(r"\s+", " ", whole).lower()
    return [phrase for phrase in PHRASES if re.search(rf"\b{re.escape(phrase)}\b", whole)]


def test_no_text_has_them():
    found = {str(path.relative_to(ROOT)): phrases_in(path.read_text("utf-8")) for path in PATHS}
    assert len(found) > 300 and {name: one for name, one in found.items() if one} == {}
