"""rfx fetch, rfx datasets and rfx check, through click's runner and as real processes."""

import json
import lzma
import os
import re
import subprocess
import sys

import click.testing
import pytest

from rfx import cli
from rfx.data.registry import registry

GOOD = "+1 1:0.5 3:2\n-1 2:1\n+1 1:3\n"
SHA256 = registry.get("heart_scale").files[0].sha256


@pytest.fixture(autouse=True)
def mirror(own_folders, tmp_path, monkeypatch):
    monkeypatch.setenv("RFX_MIRROR", str(tmp_path / "mirror"))
    (tmp_path / "mirror").mkdir()


@pytest.fixture
def mirrored(tmp_path, monkeypatch):
    """Put files with the names of real sets into the mirror, and register their checksums."""

    def put(*names):
        for name in names:
            for entry in registry.get(name).files:
                for field, value in {"sha256": None, "bytes": None, "rows": 3}.items():
                    monkeypatch.setitem(entry.__dict__, field, value)
                (tmp_path / "mirror" / f"{entry.filename}.xz").write_bytes(
                    lzma.compress(GOOD.encode())
                )

    return put


def rfx(*words, **options):
    return click.testing.CliRunner().invoke(cli.cli, words, **options)


def run(*words, **options):
    """Run `rfx` as a real process."""
    return subprocess.run(
        [sys.executable, "-m", "rfx", *words], capture_output=True, text=True, timeout=60, **options
    )


# fetch
# --------------------------------------------------------------------------------------------------


def test_fetch_prints_where_the_files_are(tmp_path, mirrored):
    mirrored("heart_scale", "cod-rna")
    done = rfx("fetch", "heart", "cod_rna")
    data = tmp_path / "data"
    expected = [
        ("heart_scale", "train", "heart_scale"),
        ("cod-rna", "train", "cod-rna"),
        ("cod-rna", "test", "cod-rna.t"),
    ]
    assert done.exit_code == 0
    assert done.stdout == "".join(
        f"{name}\t{role}\t{data / file}\n" for name, role, file in expected
    )
    assert (data / "cod-rna.t").read_text() == GOOD
    found = json.loads(rfx("fetch", "heart_scale", "--offline", "--json").stdout)
    assert found == [{"dataset": "heart_scale", "role": "train", "path": str(data / "heart_scale")}]


def test_fetch_says_that_some_could_not_be_had(mirrored):
    mirrored("heart_scale")
    done = rfx("fetch", "census", "heart_scale", "cod-rna", "--offline")
    assert done.exit_code == 3
    assert done.stdout.startswith("heart_scale\ttrain\t") and done.stdout.count("\n") == 1
    assert (
        "census.train has no public download" in done.stderr
        and "2 of 3 data sets could not be fetched" in done.stderr
    )


def test_fetch_a_paper_or_everything(mirrored):
    mirrored("census16h")
    done = rfx("fetch", "--paper", "yen2014", "--offline")
    assert done.exit_code == 3 and done.stdout.count("census16h") == 4  # two lines of name and path
    assert "covtype-sized is built in" in done.stderr
    done = rfx("fetch", "--all", "--offline")
    assert done.exit_code == 3 and "census16h" in done.stdout and "census:" not in done.stderr


@pytest.mark.parametrize("words", [(), ("cpu", "--all"), ("--all", "--paper", "yen2014")])
def test_fetch_wants_to_know_what(words):
    done = rfx("fetch", *words)
    assert done.exit_code == 2 and "data set names, --all, or --paper" in done.stderr


def test_fetch_exit_codes_of_a_real_process():
    done = run("fetch", "cod-rnn", "--offline")
    assert (done.returncode, done.stdout) == (2, "") and "did you mean cod-rna?" in done.stderr
    done = run("fetch", "cod-rna", "--offline")
    assert (done.returncode, done.stdout) == (1, "") and done.stderr.count("\n") == 1
    done = run("fetch", "--paper", "nobody")
    assert done.returncode == 2 and "there are yen2014, wu2016, sinha2016, dai2014" in done.stderr
    done = run("fetch", "sphere")
    assert (done.returncode, done.stdout, done.stderr) == (
        0,
        "",
        "sphere is built in: nothing to fetch\n",
    )


def test_a_fetched_file_must_have_the_right_content(tmp_path):
    (tmp_path / "mirror" / "heart_scale").write_text(GOOD)
    done = run("fetch", "heart_scale", "--offline")
    assert (
        done.returncode == 1 and SHA256 in done.stderr and "the file was discarded" in done.stderr
    )
    assert "Traceback" not in done.stderr
    assert "Traceback" in run("--debug", "fetch", "heart_scale", "--offline").stderr


def test_fetch_trust(tmp_path, mirrored):
    mirrored("heart_scale")
    assert rfx("fetch", "heart_scale").exit_code == 0
    (tmp_path / "data" / "heart_scale").write_text("1 1:1\n")
    done = run("fetch", "heart_scale", "--offline")
    # a process knows only these
    assert (done.returncode, done.stdout) == (1, "") and SHA256 in done.stderr
    done = rfx("fetch", "heart_scale")
    assert (
        done.exit_code == 1
        and "has changed" in str(done.exception)
        and "rfx fetch --trust heart_scale" in str(done.exception)
    )
    assert (
        rfx("fetch", "heart_scale", "--trust").exit_code == 0
        and rfx("fetch", "heart_scale").exit_code == 0
    )


# datasets
# --------------------------------------------------------------------------------------------------


def test_datasets_lists_every_set_with_its_status(mirrored):
    mirrored("heart_scale")
    rfx("fetch", "heart_scale")
    done = rfx("datasets")
    lines = done.stdout.splitlines()
    assert done.exit_code == 0 and len(lines) == len(registry.names()) + 1
    rows = {line.split()[0]: line for line in lines}
    assert lines[0].split()[:7] == ["name", "task", "n", "d", "classes", "papers", "status"]
    assert re.search(r"331,152 +8 +2 +yen2014 wu2016 +not fetched +sha256$", rows["cod-rna"])
    assert re.search(r"20,459 +16 +0 +yen2014 wu2016 +by hand +sha256 +census$", rows["census16h"])
    assert rows["heart_scale"].endswith(" fetched      first copy") and rows["sphere"].endswith(
        "built in"
    )


def test_datasets_of_a_paper_as_json():
    found = json.loads(rfx("datasets", "--paper", "sinha2016", "--json").stdout)
    assert [row["name"] for row in found] == [
        "a9a",
        "reuters",
        "reuters-money-fx",
        "buzz",
        "sphere",
        "linear-selection",
        "motifs",
    ]
    assert [row["checked"] for row in found[:4]] == ["sha256", "source", "sha256", "size"]
    assert found[0]["files"] == {"a9a": "sha256", "a9a.t": "sha256"}
    assert (
        found[0]["n"] == 48842
        and found[0]["aliases"] == ["adult"]
        and found[0]["status"] == "not fetched"
    )
    assert "mirror" in json.loads(rfx("datasets", "--json").stdout)[3]["obtain"].lower()
    assert run("datasets", "--paper", "nobody").returncode == 2


# check
# --------------------------------------------------------------------------------------------------


def test_check_a_good_file(tmp_path):
    path = tmp_path / "good"
    path.write_text(GOOD)
    done = rfx("check", str(path))
    assert (done.exit_code, done.stdout) == (
        0,
        f"{path}: 3 rows, 3 columns, labels -1 (1), 1 (2)\n",
    )
    path.write_text("".join(f"{number} 1:1\n" for number in range(30)))
    assert (
        rfx("check", str(path)).stdout
        == f"{path}: 30 rows, 1 column, 30 different labels from 0 to 29, mean 14.5\n"
    )


def test_check_prints_every_problem(tmp_path):
    path = tmp_path / "bad"
    path.write_text("1 1:2\n1 0:3 0:3\nx 2:nan\n1 3:1 2:")
    done = rfx("check", str(path))
    assert done.exit_code == 1
    assert [line.split(": ")[0] for line in done.stdout.splitlines()] == [
        f"{path}:{place}" for place in ("2:3", "2:7", "3:1", "3:5", "4:7")
    ]
    assert done.stderr == f"rfx: 5 problems in {path}\n"
    assert rfx("check", str(path), "--zero-based").stdout.count("index is 0") == 0


def test_check_standard_input_as_a_real_process():
    done = run("check", "-", input=GOOD)
    assert (done.returncode, done.stderr) == (0, "") and done.stdout.startswith(
        "standard input: 3 rows"
    )
    done = run("check", "-", input="1 0:5\n")
    assert done.returncode == 1 and done.stdout.startswith("standard input:1:3: the index is 0")
    assert (
        run("check", "-", "--zero-based", input="1 0:5\n").stdout
        == "standard input: 1 row, 1 column, labels 1 (1)\n"
    )
    assert run("check", "-", input="").stdout == "standard input:1:1: the file is empty\n"


def test_check_what_can_not_be_read(tmp_path):
    done = run("check", str(tmp_path / "none"))
    assert (done.returncode, done.stdout) == (
        1,
        "",
    ) and "none can't be read: No such file or directory" in done.stderr
    (tmp_path / "z.xz").write_bytes(lzma.compress(GOOD.encode() * 99)[:60])
    done = run("check", str(tmp_path / "z.xz"))
    assert done.returncode == 1 and "damaged or truncated" in done.stderr


@pytest.mark.parametrize("name", ["fetch", "datasets", "check"])
def test_help_describes_every_option(name):
    done = rfx(name, "--help")
    command = cli.cli.get_command(None, name)
    assert done.exit_code == 0 and len(command.help) > 40
    for option in command.params:
        assert isinstance(option, click.Argument) or option.help and option.opts[0] in done.stdout


def test_a_command_starts_without_numpy():
    program = (
        "import sys; from rfx import cli\ntry: cli.main(['datasets'])\nfinally: print('numpy' in"
        " sys.modules, file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, env=os.environ
    )
    assert done.stderr.endswith("False\n") and done.stdout.startswith("name")
