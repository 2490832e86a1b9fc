"""Files of labelled sequences are read as codes of letters, or refused by line and column."""

import gzip

import numpy as np
import pytest
from click.testing import CliRunner

from rfx.cli import cli
from rfx.data import load
from rfx.data.libsvm import svmlight
from rfx.errors import DataError

TEXT = "# aptamers\n+1 ACGT\n\n-1 ttga # weak\n0.5   CCCC\r\n"


def test_read(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text(TEXT)
    X, y = svmlight.read(path)
    np.testing.assert_array_equal(X, [list(b"ACGT"), list(b"TTGA"), list(b"CCCC")])
    np.testing.assert_array_equal(y, [1, -1, 0.5])
    (tmp_path / "a.gz").write_bytes(gzip.compress(TEXT.encode()))
    np.testing.assert_array_equal(svmlight.read(tmp_path / "a.gz")[0], X)
    assert load(path).X_train.shape == (3, 4)


@pytest.mark.parametrize(
    "text, message",
    [
        (
            "1 ACGT\n1 ACNT\n",
            "line 2: 'N' is not a known letter; the letters are A, C, G, T",
        ),
        ("1 ACGT\n1 AC3T\n", "line 2: '3' is not a known letter"),
        (
            "1 ACGT\n\n1 ACG\n",
            ("line 3: the sequence has 3 letters, but 4 are expected in every row"),
        ),
        (
            "1 ACGT\n-1\n",
            ("line 2: a row needs a label and one sequence of letters, but this one has 1 words"),
        ),
        ("1 ACGT\n-1 AC GT\n", "this one has 3 words"),
        ("1 ACGT\nnan ACGT\n", "line 2: the label 'nan' is not a finite number"),
    ],
)
def test_refusals(tmp_path, text, message):
    path = tmp_path / "bad.txt"
    path.write_text(text)
    with pytest.raises(
        DataError, match=f"bad.txt, {message}" if message.startswith("line") else message
    ):
        svmlight.read(path, letters=b"ACGT")


def test_check_says_what_is_wrong(tmp_path):
    path = tmp_path / "rows"
    path.write_text("1 ACGT\n-1 AC\n")
    done = CliRunner().invoke(cli, ["check", str(path)])
    assert done.exit_code == 1 and "line 2: the sequence has 2 letters" in str(done.exception)
    path.write_text("1 ACGT\n-1 ACCC\n")
    assert (
        "2 rows, 4 columns, labels -1 (1), 1 (1)"
        in CliRunner().invoke(cli, ["check", str(path)]).output
    )


def test_a_model_refuses_letters_that_it_never_saw(tmp_path):
    """Train, save and predict through the shell: the message names the file and the line of the
    first unseen letter.
    """
    rng = np.random.default_rng(0)
    train, test, model = tmp_path / "train", tmp_path / "test", tmp_path / "m.npz"
    rows = ["".join(rng.choice(list("ACGT"), 8)) for _ in range(60)]
    train.write_text("".join(f"{1 if row[2] in 'AC' else -1} {row}\n" for row in rows))
    words = [
        "--method",
        "lkrf",
        "--kernel",
        "kmers",
        "--scaling",
        "none",
        "--k",
        "2",
        "--rho-share",
        "0.1",
        "--model",
        str(model),
    ]
    done = CliRunner().invoke(cli, ["train", "--data", str(train), *words])
    assert done.exit_code == 0, done.output
    test.write_text("1 ACGTACGT\n\n1 ACGTNCGT\n")
    done = CliRunner().invoke(cli, ["predict", str(model), str(test)])
    assert "test, line 3: 'N' is not a known letter; the letters are A, C, G, T" in str(
        done.exception
    )
    test.write_text("1 ACGTACGT\n-1 acttacgt\n")
    done = CliRunner().invoke(cli, ["predict", str(model), str(test)])
    assert done.exit_code == 0 and len(done.stdout.split()) == 2
