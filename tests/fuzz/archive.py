"""Mutated archives (xz, bz2, gzip, zip, tar): unpacked within the limit, or refused as damaged;
never a traceback.
"""

import bz2
import gzip
import io
import lzma
import tarfile
import tempfile
import zipfile
from pathlib import Path

from fuzz.mutations import count, mutated

from rfx.data import archives
from rfx.data.registry import convert
from rfx.errors import DataError

_TEXT = b"1 1:0.5 2:3\n-1 2:7\n" * 20
_LIMIT = 100_000


def _zip():
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("folder/data", _TEXT)
    return packed.getvalue()


def _tar(mode):
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode=mode) as archive:
        for name, kind in (
            ("a/../../cpu.mat", tarfile.REGTYPE),
            ("link", tarfile.SYMTYPE),
            ("x.data", tarfile.REGTYPE),
        ):
            member = tarfile.TarInfo(name)
            member.type, member.linkname, member.size = (
                kind,
                "/etc/passwd",
                len(_TEXT) * (kind == tarfile.REGTYPE),
            )
            archive.addfile(member, io.BytesIO(_TEXT))
    return packed.getvalue()


_WHOLES = [
    lzma.compress(_TEXT),
    bz2.compress(_TEXT),
    gzip.compress(_TEXT),
    gzip.compress(b"1\n" * _LIMIT),
    _zip(),
]
_TARS = [_tar("w"), _tar("w:gz")]


def one(content: bytes, name: str) -> bool:
    """Whether the archive was unpacked."""
    try:
        with archives.open_plain(io.BytesIO(content), _LIMIT) as plain:
            assert len(plain.read()) <= _LIMIT
        assert len(archives.read_plain(io.BytesIO(content), name)) >= 0
    except (DataError, *archives.DAMAGE) as error:
        assert not isinstance(error, RecursionError)
        return False
    return True


def one_tar(path: Path, content: bytes) -> bool:
    """Whether the tar archive had the member."""
    path.write_bytes(content)
    before = sorted(path.parent.iterdir())
    try:
        convert._member(path, "x.data")
    except (DataError, *archives.DAMAGE):
        return False
    finally:
        assert sorted(path.parent.iterdir()) == before
    return True


def fuzz(cases: int, seed: int) -> int:
    """How many of `cases` mutated archives were unpacked."""
    with tempfile.TemporaryDirectory() as folder:

        def make(random):
            whole = random.random() < 0.75
            return whole, mutated(random.choice(_WHOLES if whole else _TARS), random)

        def read(given, _):
            whole, content = given
            return one(content, "a") if whole else one_tar(Path(folder) / "a.tar", content)

        return count("archive", cases, seed, make, read)
