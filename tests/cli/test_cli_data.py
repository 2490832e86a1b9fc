"""rfx fetch, rfx datasets and rfx check, through click's runner and as real processes."""

import json
import lzma
import re

import click.testing
import pytest
from shell import refused, run

from rfx import cli
from rfx.data import registry

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


# fetch
# --------------------------------------------------------------------------------------------------


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (("cod-rnn", "--offline"), 2, "did you mean cod-rna?"),
        (("cod-rna", "--offline"), 1, "cod-rna"),
        (("--paper", "nobody"), 2, "there are yen2014, wu2016, sinha2016, dai2014"),
        (("sphere",), 0, "sphere is built in: nothing to fetch\n"),
    ],
)
def test_fetch_exit_codes(words, code, says, capfd):
    found, out, err = run(capfd, "fetch", *words)
    assert (found, out, err.count("\n")) == (code, "", 1) and says in err


def test_a_fetched_file_must_have_the_right_content(tmp_path, capfd):
    (tmp_path / "mirror" / "heart_scale").write_text(GOOD)
    said = refused(capfd, "fetch", "heart_scale", "--offline")
    assert SHA256 in said and "the file was discarded" in said and "Traceback" not in said
    assert "Traceback" in refused(capfd, "--debug", "fetch", "heart_scale", "--offline")


def test_fetch_trust(tmp_path, mirrored):
    mirrored("heart_scale")
    assert rfx("fetch", "heart_scale").exit_code == 0
    (tmp_path / "data" / "heart_scale").write_text("1 1:1\n")
    done = rfx("fetch", "heart_scale")
    assert done.exit_code == 1 and "but was first" in str(done.exception)
    assert "rfx fetch --trust heart_scale" in str(done.exception)
    assert rfx("fetch", "heart_scale", "--trust").exit_code == 0
    assert rfx("fetch", "heart_scale").exit_code == 0


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


# check
# --------------------------------------------------------------------------------------------------


BAD = "1 1:x 1:2 0:3\n1 1:1\nx 2:nan\n1 2:nan 3:1 2:1\n# ok\n1 1:1e999\n1 0:3 0:3\n1 4:"
PLACES = "1:5 1:7 1:11 3:1 3:5 4:5 4:13 6:5 7:3 7:7 8:5".split()


def test_check_prints_every_problem(tmp_path):
    path = tmp_path / "bad"
    path.write_text(BAD)
    done = rfx("check", str(path))
    assert done.exit_code == 1
    found = [line.split(": ")[0] for line in done.stdout.splitlines()]
    assert found == [f"{path}:{place}" for place in PLACES]
    assert done.stderr == f"rfx: {len(PLACES)} problems in {path}\n"
    assert rfx("check", str(path), "--zero-based").stdout.count("index is 0") == 0


COMMENTS = "+1 1:0.5 3:-2e-3 # a comment with 9:9\n\n-1\t2:1.\r\n   # only a comment\n"
NUMBERS = "".join(f"{number} 1:1\n" for number in range(30))


@pytest.mark.parametrize(
    ("words", "text", "code", "says"),
    [
        ((), GOOD, 0, ": 3 rows, 3 columns, labels -1 (1), 1 (2)\n"),
        ((), COMMENTS, 0, ": 2 rows, 3 columns, labels -1 (1), 1 (1)\n"),
        ((), NUMBERS, 0, ": 30 rows, 1 column, 30 different labels from 0 to 29, mean 14.5\n"),
        ((), "1 ACGT\n-1 ACCC\n", 0, ": 2 rows, 4 columns, labels -1 (1), 1 (1)\n"),
        ((), "1 ACGT\n-1 AC\n", 1, ", line 2: the sequence has 2 letters"),
        ((), "1 0:5\n", 1, ":1:3: the index is 0"),
        (("--zero-based",), "1 0:5\n", 0, ": 1 row, 1 column, labels 1 (1)\n"),
        ((), "", 1, ":1:1: the file is empty\n"),
    ],
)
def test_check_standard_input(words, text, code, says, capfd, monkeypatch):
    more = {"stdin": text.encode(), "monkeypatch": monkeypatch}
    found, out, err = run(capfd, "check", "-", *words, **more)
    assert found == code
    assert f"standard input{says}" in out + err
