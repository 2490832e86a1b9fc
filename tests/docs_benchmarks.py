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


def renewed(text: str, command: str, output: str, made_at: str) -> str:
    """The document with this output in the block of a command."""
    block = f"\n`python benchmarks/{command}`, at commit {made_at}:\n\n{output.strip()}\n\n"
    return MADE.sub(
        lambda found: found[1] + block + found[3] if found[2] == command else found[0], text
    )


def main(only: str = "") -> int:
    code = 0
    for command in [match[2] for match in MADE.finditer(DOCUMENT.read_text(encoding="utf-8"))]:
        if command.startswith(only):
            # one after the other, so that an interrupt keeps the finished ones, and edits made
            # meanwhile are kept, too
            made_at, output = commit(), printed(command)
            if output is None:
                code = 1
            else:
                text = DOCUMENT.read_text(encoding="utf-8")
                DOCUMENT.write_text(renewed(text, command, output, made_at), encoding="utf-8")
    return code


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
