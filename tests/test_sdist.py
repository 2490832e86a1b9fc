"""The source distribution for a user: it is built, installed by pip into a bare virtual environment
outside the tree, and trains and predicts there. Skipped if pip can't reach an index.
"""

import os
import shutil
import subprocess
import sys
import tarfile
import venv
from pathlib import Path

import pytest
from test_package import tracked

import rfx

ROOT = Path(__file__).resolve().parent.parent
ROWS = "a,b,y\n" + "".join(
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
    pip(tmp_path, "install", "-q", "--no-compile", packed)
    assert run(tmp_path, command, "--version").stdout == f"rfx, version {rfx.__version__}\n"
    (tmp_path / "rows.csv").write_text(ROWS)
    words = "train --method rf --n-features 20 --lam 1 --kernel gaussian --metric none".split()
    run(tmp_path, command, *words, "--data", "rows.csv", "--target", "y", "--model", "m.npz")
    told = run(tmp_path, command, "predict", "m.npz", "rows.csv").stdout.split()
    assert len(told) == 99 and set(told) == {"yes", "no"}
