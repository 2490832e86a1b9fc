"""The distribution is named rfx-kernels. If another distribution's package rfx is installed, the
command says so in one sentence.
"""

import os
import re
import shutil
import subprocess
import venv
from importlib import metadata
from pathlib import Path

import pytest
from test_package import config, tracked

import rfx

ROOT = Path(__file__).resolve().parent.parent
OLD_NAMES = (
    r"pip3? install\b[^\n]*['\" ]rfx(?![\w./-])",
    r"\brfx\[[a-z]",
    r"\brfx *(?:==|>=|~=)",
    r"dependencies = \[[^\]]*[\"']rfx[\"']",
    r"(?:version|distribution|requires|metadata|files)\([\"']rfx[\"']\)",
    r"packages=\[[\"']rfx[\"']",
)
REPAIR = "`pip install --force-reinstall --no-deps rfx-kernels`"


def test_the_name_is_the_same_everywhere():
    assert config()["metadata"]["name"] == rfx.__distribution__ == "rfx-kernels"
    assert config()["options.entry_points"]["console_scripts"].strip() == "rfx = rfx_kernels:main"


def test_nothing_installs_or_asks_for_the_old_name():
    own = Path(__file__).name
    found = []
    for name in tracked():
        if Path(name).name == own or Path(name).suffix not in (
            "",
            ".py",
            ".md",
            ".toml",
            ".cfg",
            ".in",
            ".html",
        ):
            continue
        text = (ROOT / name).read_text("utf-8")
        found += [
            f"{name}: {match[0]}" for pattern in OLD_NAMES for match in re.finditer(pattern, text)
        ]
    assert found == []


@pytest.mark.parametrize(
    "text",
    [
        "pip install rfx\n",
        "pip install 'rfx[parquet]'",
        "rfx>=0.1",
        'dependencies = ["rfx"]',
        'metadata.version("rfx")',
    ],
)
def test_the_search_finds_the_old_name(text):
    assert any(re.search(pattern, text) for pattern in OLD_NAMES)


def install(site, name, files):
    """Put a distribution into a folder as pip does: overwrite files, and write a list of them."""
    info = site / f"{name.replace('-', '_')}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    for path, text in files.items():
        (site / path).parent.mkdir(parents=True, exist_ok=True)
        (site / path).write_text(text)
    (info / "RECORD").write_text(
        "".join(f"{path},,\n" for path in [*files, f"{info.name}/METADATA", f"{info.name}/RECORD"])
    )


@pytest.fixture
def environment(tmp_path):
    """A fresh virtual environment with rfx-kernels; (its site-packages, a function that runs the
    command).
    """
    venv.create(tmp_path / "venv", with_pip=False, symlinks=True)
    site = next((tmp_path / "venv").glob("lib/*/site-packages"))
    sources = [
        path.relative_to(ROOT)
        for path in (ROOT / "rfx").rglob("*")
        if path.suffix not in (".pyc", "") and path.is_file()
    ]
    install(site, "rfx-kernels", {str(path): (ROOT / path).read_text("utf-8") for path in sources})
    shutil.copy(ROOT / "rfx_kernels.py", site)
    libraries = {
        str(Path(str(metadata.distribution(name).locate_file(""))).resolve())
        for name in ("click", "numpy", "numba")
    }
    # on a later path, like a system's packages
    (site / "libraries.pth").write_text("".join(f"{path}\n" for path in sorted(libraries)))
    code = "from rfx_kernels import main; main()"

    def run(*words, path=""):
        known = os.environ | {"PYTHONPATH": path, "RFX_CACHE": str(tmp_path / "cache")}
        python = tmp_path / "venv" / "bin" / "python"
        line = [python, "-P", "-c", code, *words]
        done = subprocess.run(
            line, cwd=tmp_path, env=known, capture_output=True, text=True, timeout=120
        )
        assert "Traceback" not in done.stderr, done.stderr
        return done.returncode, done.stdout, done.stderr

    return site, run


def test_alone_in_its_environment(environment):
    _, run = environment
    assert run("--version") == (0, f"rfx, version {rfx.__version__}\n", "")


def test_files_of_another_distribution_beside_ours(environment):
    site, run = environment
    install(site, "Rfx", {"rfx/action.py": "", "rfx_client.py": ""})
    code, out, err = run("--version")
    assert (code, out) == (0, f"rfx, version {rfx.__version__}\n")
    told = (
        "rfx: Rfx has files in the same package rfx as rfx-kernels, so that neither can be relied"
        " on; `pip uninstall Rfx`, then"
    )
    assert err == f"{told} {REPAIR}\n"


@pytest.mark.parametrize(
    "files",
    [
        {"rfx/__init__.py": "__version__ = '1807.8'\n"},
        {"rfx/__init__.py": "import absent_dependency\n"},
        {"rfx/__init__.py": "print 'of Python 2'\n"},
        {"rfx/errors.py": "class Error(Exception): ...\n"},
        {"rfx/__main__.py": "raise RuntimeError('of another program')\n"},
    ],
    ids=["init", "import", "syntax", "module", "main"],
)
def test_another_distribution_has_replaced_files_of_ours(environment, files):
    site, run = environment
    install(site, "rfx", files)
    code, out, err = run("datasets")
    assert (code, out) == (1, "") and err.count("\n") == 1
    assert err.startswith(
        "rfx: rfx has files in the same package rfx as rfx-kernels"
    ) and err.endswith(f"then {REPAIR}\n")


def test_another_package_hides_ours(environment, tmp_path):
    _, run = environment
    hiding = tmp_path / "elsewhere" / "rfx.py"
    hiding.parent.mkdir()
    hiding.write_text("value = 1\n")
    code, out, err = run("datasets", path=str(hiding.parent))
    told = (
        f"rfx: {hiding} is imported in the place of the package rfx of rfx-kernels; rename it, or"
        " remove its distribution\n"
    )
    assert (code, out, err) == (1, "", told)


def test_what_another_distribution_took_with_it_when_it_was_removed(environment):
    site, run = environment
    (site / "rfx" / "__init__.py").unlink()
    assert run("datasets") == (
        1,
        "",
        f"rfx: the package rfx in {site} is damaged; {REPAIR} mends it\n",
    )
