"""Compressed files are read to the last byte or refused."""

import bz2
import gzip
import io
import lzma
import os
import tarfile
import zipfile

import pytest

from rfx.data import archives, stream
from rfx.data.registry import convert
from rfx.errors import DataError

pytestmark = pytest.mark.usefixtures("own_folders")
ROWS = b"".join(b"%d 1:%d 2:0.%d\n" % (number % 2, number, number) for number in range(1, 51))
FIRST, SECOND = ROWS[: ROWS.index(b"\n", 300) + 1], ROWS[ROWS.index(b"\n", 300) + 1 :]
PACK = {"gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress}


def two(kind) -> tuple[bytes, bytes]:
    """The two compressed parts of a file of the 50 rows."""
    return PACK[kind](FIRST), PACK[kind](SECOND)


def flipped(content, place) -> bytes:
    changed = bytearray(content)
    changed[place] ^= 0x10
    return bytes(changed)


def changed(kind) -> dict[str, tuple[bytes, bool]]:
    """By the change to a file of two parts: its bytes, and whether all rows are intact."""
    first, second = two(kind)
    both = first + second
    cases = {
        "as it was made": (both, True),
        "a third, empty part": (both + PACK[kind](b""), True),
        "without the second's beginning": (first + second[1:], False),
        "garbage behind": (both + b"xyz", False),
        "a part of another kind behind": (
            both + PACK["gz" if kind == "xz" else "xz"](b"1 1:1\n"),
            False,
        ),
        "cut off in the second": (both[: len(first) + 20], False),
        "the last byte missing": (both[:-1], False),
        "zeros behind": (both + b"\0" * 512, True),
        "zeros and garbage behind": (both + b"\0" * 4 + b"x", False),
    }
    for place in (0, 1, 2, len(second) // 2, len(second) - 5):
        cases[f"bit of byte {place} of the second"] = (flipped(both, len(first) + place), False)
    return cases


CASES = [(kind, what) for kind in PACK for what in changed(kind)]


@pytest.mark.parametrize("kind, what", CASES)
def test_a_compressed_file_is_whole_or_refused(kind, what, tmp_path):
    content, whole = changed(kind)[what]
    for source in (tmp_path / f"data.{kind}", io.BytesIO(content)):
        (tmp_path / f"data.{kind}").write_bytes(content)
        if whole:
            assert archives.read_plain(source, "the file") == ROWS
        else:
            with pytest.raises(
                DataError, match="^the file is damaged or truncated .*; download it again$"
            ):
                archives.read_plain(source, "the file")


def of_stream(path):
    return sum(len(y) for _, y, _ in stream.Stream(stream.LibsvmSource(path, n_inputs=2), 10))


def test_a_stream_reads_a_pipe_from_its_first_byte(tmp_path):
    for content in (ROWS, gzip.compress(ROWS)):
        read, write = os.pipe()
        os.write(write, content)
        os.close(write)
        assert of_stream(f"/dev/fd/{read}") == 50
        os.close(read)


def test_a_file_of_a_tar_archive(tmp_path):
    with tarfile.open(tmp_path / "a.tar.gz", mode="w:gz") as archive:
        member = tarfile.TarInfo("x.data")
        member.size = len(ROWS)
        archive.addfile(member, io.BytesIO(ROWS))
    assert convert._member(tmp_path / "a.tar.gz", "x.data") == ROWS


def zipped(content=ROWS) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("data", content)
    return packed.getvalue()


@pytest.mark.parametrize("pipe", [False, True])
def test_a_zip_archive_is_whole_or_refused(pipe, tmp_path):
    def read(content):
        (tmp_path / "data.zip").write_bytes(content)
        if not pipe:
            return archives.read_plain(tmp_path / "data.zip", "f")
        descriptor, write = os.pipe()
        os.write(write, content)
        os.close(write)
        with os.fdopen(descriptor, "rb") as handle:
            return archives.read_plain(handle, "f")

    whole = zipped()
    assert read(whole) == ROWS
    for damaged in (whole[:-1], flipped(whole, 60)):
        with pytest.raises(DataError, match="damaged or truncated"):
            read(damaged)
