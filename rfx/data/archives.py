"""Reading files that may be compressed: recognised by their first bytes, never by their name."""

import bz2
import gzip
import io
import lzma
import zipfile
import zlib
from pathlib import Path

from rfx.errors import DataError

SUFFIXES = (".xz", ".bz2", ".gz", ".zip")
DAMAGE = (EOFError, lzma.LZMAError, zlib.error, zipfile.BadZipFile, OSError, ValueError)


class _Zip:
    """A zip archive of one file, with the two functions that bz2, gzip and lzma have."""

    @staticmethod
    def open(path, mode="rb"):
        archive = zipfile.ZipFile(path)
        members = [member for member in archive.infolist() if not member.is_dir()]
        if len(members) != 1:
            raise ValueError(f"a zip archive of {len(members)} files instead of one")
        return archive.open(members[0])

    @staticmethod
    def decompress(data):
        return _Zip.open(io.BytesIO(data)).read()


_MAGIC = {b"\xfd7zXZ\x00": lzma, b"BZh": bz2, b"\x1f\x8b": gzip, b"PK\x03\x04": _Zip}


def codec(head: bytes):
    """What opens a file that starts with these bytes (open, decompress), or None when it is plain."""
    return next((module for magic, module in _MAGIC.items() if head.startswith(magic)), None)


def open_plain(path):
    """A binary handle on the plain content of the file at `path`; reading it may raise one of DAMAGE."""
    with open(path, "rb") as handle:
        module = codec(handle.read(8))
    return module.open(path, "rb") if module else open(path, "rb")


def decompress(data: bytes, name: str) -> bytes:
    """The plain content of bytes that may be compressed; DataError, with `name`, when they are damaged."""
    module = codec(data[:8])
    if module is None:
        return data
    try:
        return module.decompress(data)
    except DAMAGE as error:
        raise DataError(f"{name} is damaged or cut off ({error}); get it again") from None


def plain_name(path) -> str:
    """The last part of `path` without a compression suffix."""
    name = Path(path).name
    return name.removesuffix(next((suffix for suffix in SUFFIXES if name.endswith(suffix)), ""))
