"""Run the benchmarks and put their output into docs/benchmarks.md: `make benchmark`, or for one
script `make benchmark ONLY=bench_l1.py`.

The text between a line `<!-- benchmark bench_….py … -->` and the next `<!-- end -->` is the output
of `python benchmarks/bench_….py …`, with its commit. If a benchmark fails, its block stays
unchanged and the exit code is 1.
"""

import re
import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DOCUMENT = ROOT / "docs" / "benchmarks.md"
MADE = re.compile(r"(<!-- benchmark ([^\n]*?) -->\n).*?(<!-- end -->)", re.S)


def printed(command: str) -> str | None:
    """The standard output of a benchmark, None if it fails."""
    print(f"== {command}", file=sys.stderr, flush=True)
    script, *words = shlex.split(command)
    done = subprocess.run(
        [sys.executable, ROOT / "benchmarks" / script, *words],
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    return done.stdout if done.returncode == 0 else None


def commit() -> str:
    """The current commit, with + if files other than the document differ from it."""
    name = subprocess.run(
        ["git", "rev-parse", "--short=7", "HEAD"], capture_output=True, text=True, cwd=ROOT
    ).stdout.strip()
    others = f":!{DOCUMENT.relative_to(ROOT)}"
    differs = subprocess.run(
        ["git", "diff", "--quiet", "HEAD", "--", ".", others], cwd=ROOT
    ).returncode
    return name + "+" * differs if name else "unknown"


def renewed(text: str, only: str, make, made_at: str) -> tuple[str, list[str]]:
    """The document with new blocks of the script `only` (of all scripts without it), and the
    commands that failed.
    """
    failed = []

    def one(match):
        if only and not match[2].startswith(only):
            return match[0]
        found = make(match[2])
        if found is None:
            failed.append(match[2])
            return match[0]
        return (
            f"{match[1]}\n`python benchmarks/{match[2]}`, at commit"
            f" {made_at}:\n\n{found.strip()}\n\n{match[3]}"
        )

    return MADE.sub(one, text), failed


def main() -> int:
    only = sys.argv[1] if len(sys.argv) > 1 else ""
    code = 0
    for command in [match[2] for match in MADE.finditer(DOCUMENT.read_text(encoding="utf-8"))]:
        if command.startswith(only):
            # one after the other, so that an interrupt keeps the finished ones, and edits made
            # meanwhile are kept, too
            made_at, found = commit(), printed(command)
            text, failed = renewed(
                DOCUMENT.read_text(encoding="utf-8"), command, lambda _, found=found: found, made_at
            )
            DOCUMENT.write_text(text, encoding="utf-8")
            code = 1 if failed else code
    return code


if __name__ == "__main__":
    sys.exit(main())
