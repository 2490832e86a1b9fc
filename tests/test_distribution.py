"""What is packaged: the files of the wheel and of the sdist, and lower bounds of requirements. If
another distribution's package rfx is installed, the command says so in one sentence. The source
distribution is built, installed outside the tree, and trains and predicts there.
"""

import configparser
import os
import shutil
import subprocess
import sys
import tarfile
import venv
from importlib import metadata
from pathlib import Path

import oldest
import pytest

import rfx

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parent.parent
REPAIR = "`pip install --force-reinstall --no-deps rfx-kernels`"


def test_the_name_is_the_same_everywhere():
    assert config()["metadata"]["name"] == rfx.__distribution__ == "rfx-kernels"
    assert config()["options.entry_points"]["console_scripts"].strip() == "rfx = rfx_kernels:main"


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


def add_libraries(site):
    """Put the libraries of this environment on a later path, like a system's packages."""
    libraries = {
        str(Path(str(metadata.distribution(name).locate_file(""))).resolve())
        for name in ("click", "numpy", "numba")
    }
    (site / "libraries.pth").write_text("".join(f"{path}\n" for path in sorted(libraries)))


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
    add_libraries(site)
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
        {"rfx/errors.py": "class Error(Exception): ...\n"},
    ],
    ids=["init", "module"],
)
def test_another_distribution_has_replaced_files_of_ours(environment, files):
    site, run = environment
    install(site, "rfx", files)
    code, out, err = run("datasets")
    assert (code, out) == (1, "") and err.count("\n") == 1
    assert err.startswith("rfx: rfx has files in the same package rfx as rfx-kernels")
    assert err.endswith(f"then {REPAIR}\n")


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


TABLE = "a,b,y\n" + "".join(
    f"{i},{i * i % 17},{'yes' if i % 40 > 20 else 'no'}\n" for i in range(99)
)


def run(folder, *words, check=True):
    """The output of a command, in a folder that has nothing of this checkout."""
    known = {name: text for name, text in os.environ.items() if not name.startswith("PYTHON")}
    known |= {"RFX_CACHE": str(folder / "cache"), "HOME": str(folder)}
    known.pop("NUMBA_CACHE_DIR", None)
    done = subprocess.run(words, cwd=folder, env=known, capture_output=True, text=True)
    assert not check or done.returncode == 0, done.stderr
    return done


def pip(folder, *words, **more):
    """pip for the environment in the folder, which has no pip of its own."""
    python = folder / "venv" / "bin" / "python"
    # the user's pip cache, with the packages of the checkout's own environment
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "pip"
    command = [sys.executable, "-m", "pip", "--python", python, "--cache-dir", cache]
    return run(folder, *command, "--disable-pip-version-check", *words, **more)


def test_the_sdist_is_installed_trains_and_predicts(tmp_path):
    source = tmp_path / "source"
    for name in tracked():
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, source / name)
    venv.create(tmp_path / "venv", with_pip=False, symlinks=True)
    quick = ("--retries", "0", "--timeout", "15")
    if pip(tmp_path, "install", "-q", *quick, "setuptools>=68", check=False).returncode:
        pytest.skip("pip reaches no index")
    python, command = (tmp_path / "venv" / "bin" / name for name in ("python", "rfx"))
    build = "import os, sys, setuptools.build_meta as b; os.chdir(sys.argv[1]); b.build_sdist('..')"
    run(tmp_path, python, "-c", build, source)
    (packed,) = tmp_path.glob("*.tar.gz")
    assert packed.name == f"rfx_kernels-{rfx.__version__}.tar.gz"
    with tarfile.open(packed) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert set(tracked()) - names == {".gitignore"}
    shutil.rmtree(source)
    # a download of all libraries takes minutes, so that they are those of this environment
    add_libraries(next((tmp_path / "venv").glob("lib/*/site-packages")))
    alone = ("--no-compile", "--no-deps", "--no-build-isolation", "--ignore-installed")
    pip(tmp_path, "install", "-q", *alone, packed)
    assert run(tmp_path, command, "--version").stdout == f"rfx, version {rfx.__version__}\n"
    (tmp_path / "rows.csv").write_text(TABLE)
    words = "train --method rf --n-features 20 --lam 1 --kernel gaussian --metric none".split()
    run(tmp_path, command, *words, "--data", "rows.csv", "--target", "y", "--model", "m.npz")
    told = run(tmp_path, command, "predict", "m.npz", "rows.csv").stdout.split()
    assert len(told) == 99 and set(told) == {"yes", "no"}


def config():
    parser = configparser.ConfigParser()
    parser.read(ROOT / "setup.cfg")
    return parser


def listed():
    """The names of the project's files according to git; an unpacked sdist has no git."""
    if not (ROOT / ".git").exists():
        pytest.skip("not a checkout")
    done = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def tracked():
    """The project's files that exist, according to git."""
    return [name for name in listed() if (ROOT / name).exists()]


def test_every_symbolic_link_leads_to_a_file():
    links = [name for name in listed() if (ROOT / name).is_symlink()]
    assert "datasets.toml" in links
    for name in links:
        assert (ROOT / name).read_bytes(), name


def test_the_wheel_holds_every_file_of_the_package():
    patterns = [
        f"{package.replace('.', '/')}/{pattern.strip()}"
        for package, text in config()["options.package_data"].items()
        for pattern in text.split(",")
    ]
    files = [name for name in tracked() if name.startswith("rfx/") and not name.endswith(".py")]
    left_out = [name for name in files if not any(map(Path(name).match, patterns))]
    assert left_out == [], "setup.cfg, package_data"


def test_every_package_has_an_init():
    for name in tracked():
        if name.startswith("rfx/") and name.endswith(".py"):
            assert (ROOT / name).with_name("__init__.py").exists(), name


def test_the_sdist_holds_every_file_of_the_project():
    known = {"rfx", "README.md", "setup.cfg", "pyproject.toml"}
    known |= {f"{config()['options']['py_modules']}.py"}
    for line in (ROOT / "MANIFEST.in").read_text().splitlines():
        if line.startswith(("include ", "graft ")):
            known |= set(line.split()[1:])
    assert [name for name in tracked() if name.split("/")[0] not in known] == [".gitignore"]


def test_every_requirement_has_a_lower_bound():
    assert len(oldest.oldest("test")) > 10
    assert all("==" in pin for pin in oldest.oldest("test"))
