"""What is packaged: every file below rfx/ is in the wheel, every file of the project is in the
sdist, and every requirement has a lower bound.
"""

import configparser
import fnmatch
import subprocess
from pathlib import Path

import oldest
import pytest

ROOT = Path(__file__).resolve().parent.parent


def config():
    parser = configparser.ConfigParser()
    parser.read(ROOT / "setup.cfg")
    return parser


def tracked():
    """The project's files according to git; an unpacked sdist has no git."""
    if not (ROOT / ".git").exists():
        pytest.skip("not a checkout")
    done = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return [name for name in done.stdout.splitlines() if (ROOT / name).exists()]


def test_the_wheel_holds_every_file_of_the_package():
    patterns = []
    for package, text in config()["options.package_data"].items():
        patterns += [
            f"{package.replace('.', '/')}/{pattern.strip()}" for pattern in text.split(",")
        ]
    left_out = [name for name in tracked() if name.startswith("rfx/") and not name.endswith(".py")]
    left_out = [
        name for name in left_out if not any(_matches(name, pattern) for pattern in patterns)
    ]
    assert left_out == [], "setup.cfg, package_data"


def _matches(name, pattern):
    """Whether the pattern matches as in setuptools, where * stays within one folder or file
    name.
    """
    names, patterns = name.split("/"), pattern.split("/")
    return len(names) == len(patterns) and all(map(fnmatch.fnmatch, names, patterns))


def test_every_package_has_an_init():
    for name in tracked():
        if name.startswith("rfx/") and name.endswith(".py"):
            assert (ROOT / name).with_name("__init__.py").exists(), name


def test_the_sdist_holds_every_file_of_the_project():
    included = {
        "README.md",
        "setup.cfg",
        "pyproject.toml",
        f"{config()['options']['py_modules']}.py",
    }
    grafted = {"rfx"}
    for line in (ROOT / "MANIFEST.in").read_text().splitlines():
        words = line.split()
        if words and words[0] == "include":
            included |= set(words[1:])
        if words and words[0] == "graft":
            grafted |= set(words[1:])
    left_out = [
        name for name in tracked() if name not in included and name.split("/")[0] not in grafted
    ]
    assert left_out == [".gitignore"]


def test_every_requirement_has_a_lower_bound():
    assert len(oldest.oldest("test")) > 10
    assert all("==" in pin for pin in oldest.oldest("test"))
