"""Recompute the quick numbers of the documents: `make docs-numbers` fails if one differs by more
than its noise.

For each command, docs/numbers.toml names the document with its numbers. Each number has the field
of the row that `--json` prints, the value, the text in the document, and the largest difference of
a new run. `tests/test_docs.py` checks that the texts are present and the commands parse. Only this
script runs them.

Usage: docs_numbers.py [WORD]: all commands, or those that contain WORD.
"""

import json
import shlex
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LIST = ROOT / "docs" / "numbers.toml"


def entries() -> list[dict]:
    """The commands: command, document, numbers (a list of field, value, text, within)."""
    return tomllib.loads(LIST.read_text(encoding="utf-8"))["command"]


def row_of(command: str) -> dict:
    """The row that an rfx command prints as JSON, run in an empty folder; RuntimeError with its
    message if it fails.
    """
    words = [sys.executable, "-m", *shlex.split(command), "--json"]
    with tempfile.TemporaryDirectory(prefix="rfx-") as folder:
        done = subprocess.run(words, cwd=folder, capture_output=True, text=True)
    # 3: not converged, which may be what the document states
    if done.returncode not in (0, 3):
        raise RuntimeError(
            f"it ended with {done.returncode}: {' '.join(done.stderr.split()[-40:])}"
        )
    return json.loads(done.stdout)


def compare(entry: dict, row: dict) -> list[tuple[bool, str]]:
    """(whether it is unchanged, a line that says so) for each number of a command."""
    found = []
    for number in entry["numbers"]:
        now = row[number["field"]]
        good = abs(now - number["value"]) <= number["within"]
        found.append(
            (
                good,
                (
                    f"{number['field']} {now:.6g}, then {number['value']:g} ± {number['within']:g}:"
                    f" {'ok' if good else 'DIFFERS'}"
                ),
            )
        )
    return found


def main(word: str = "") -> int:
    bad = 0
    for entry in entries():
        if word not in entry["command"]:
            continue
        print(f"{entry.get('document', 'no document')}: {entry['command']}", flush=True)
        try:
            outcome = compare(entry, row_of(entry["command"]))
        except RuntimeError as error:
            outcome = [(False, str(error))]
        bad += sum(not good for good, _ in outcome)
        for _, line in outcome:
            print(f"    {line}", flush=True)
    print(f"{bad} numbers differ" if bad else "all numbers are as the documents say")
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
