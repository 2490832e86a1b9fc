"""Compressed text against a separate walker and the command-line tools: the same bytes, or refused
by both.

The walker goes over the streams of a gzip, bzip2 or xz file by the formats' specifications. Its
verdict is that of `gzip -t`, `bzip2 -t` and `xz -t`. If these tools are installed, they check one
case in some hundreds.
"""

import bz2
import gzip
import io
import lzma
import random
import shutil
import struct
import subprocess
import zlib

from fuzz.mutations import mutated

from rfx.data import archives
from rfx.errors import DataError

TOOLS = {"gz": "gzip", "bz2": "bzip2", "xz": "xz"}
MAGIC = {"gz": b"\x1f\x8b", "bz2": b"BZh", "xz": b"\xfd7zXZ\0"}
ONE_IN = 250  # one in this many cases is checked with the tool
_CHECKS = (lzma.CHECK_NONE, lzma.CHECK_CRC32, lzma.CHECK_CRC64, lzma.CHECK_SHA256)


class Refused(Exception):
    pass


def walked(kind: str, content: bytes) -> bytes:
    """The plain bytes of a file; Refused if the tool would complain."""
    return {"gz": _gzip, "bz2": _bzip2, "xz": _xz}[kind](content)


def _gzip(content):
    plain, at = b"", 0
    while at < len(content):
        if at and not content[at:].strip(b"\0"):
            return plain
        head, at = content[at : at + 10], at + 10
        if len(head) < 10 or head[:3] != b"\x1f\x8b\x08" or head[3] & 0xE0:
            raise Refused("header")
        begin, flags = at - 10, head[3]
        if flags & 4:
            at += 2 + struct.unpack("<H", _part(content, at, 2))[0]
        for flag in (8, 16):
            if flags & flag:
                at = content.find(b"\0", at) + 1
                if not at:
                    raise Refused("name")
        if flags & 2:
            if (
                struct.unpack("<H", _part(content, at, 2))[0]
                != zlib.crc32(content[begin:at]) & 0xFFFF
            ):
                raise Refused("checksum of a header")
            at += 2
        inflate = zlib.decompressobj(-15)
        try:
            own = inflate.decompress(content[at:])
        except zlib.error as error:
            raise Refused(str(error)) from None
        if not inflate.eof:
            raise Refused("cut off")
        at = len(content) - len(inflate.unused_data)
        if struct.unpack("<II", _part(content, at, 8)) != (zlib.crc32(own), len(own) & 0xFFFFFFFF):
            raise Refused("checksum")
        plain, at = plain + own, at + 8
    return plain


def _part(content, at, size):
    if at + size > len(content):
        raise Refused("cut off")
    return content[at : at + size]


def _stream(new, content):
    unpack = new()
    try:
        plain = unpack.decompress(content)
    except (OSError, lzma.LZMAError) as error:
        raise Refused(str(error)) from None
    if not unpack.eof or getattr(unpack, "check", 0) not in _CHECKS:
        raise Refused("cut off, or an unknown checksum")
    return plain, len(content) - len(unpack.unused_data)


def _bzip2(content):
    plain = b""
    while content:
        own, size = _stream(bz2.BZ2Decompressor, content)
        plain, content = plain + own, content[size:]
    return plain


def _xz(content):
    plain = b""
    while content:
        own, size = _stream(lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ), content)
        plain, content = plain + own, content[size:]
        zeros = len(content) - len(content.lstrip(b"\0"))
        if zeros % 4:
            raise Refused("padding")
        content = content[zeros:]
    return plain


def _packed(kind, plain, generator):
    """One stream."""
    if kind == "bz2":
        return bz2.compress(plain, generator.randint(1, 9))
    if kind == "xz":
        return lzma.compress(plain, check=generator.choice(_CHECKS), preset=generator.randint(0, 1))
    whole = gzip.compress(plain, generator.randint(0, 9))
    flags, more = generator.choice([0, 0, 0, 1, 2, 4, 8, 16, 31]), b""
    if flags & 4:
        more += b"\x03\x00abc"
    more += b"name\0" * (flags >> 3 & 1) + b"comment\0" * (flags >> 4 & 1)
    head = whole[:3] + bytes([flags]) + whole[4:10] + more
    if flags & 2:
        head += (zlib.crc32(head) & 0xFFFF).to_bytes(2, "little")
    return head + whole[10:]


def case(generator) -> tuple[str, bytes]:
    """(kind, content) of a file of some streams, most of them with bytes between or after them, or
    changed.
    """
    kind = generator.choice(list(TOOLS))
    streams = [
        _packed(kind, b"1 1:0.5 2:3\n" * generator.choice([0, 1, 7, 90]), generator)
        for _ in range(generator.randint(1, 4))
    ]
    for number in range(len(streams)):
        how = generator.randrange(10)
        if how == 0:
            streams[number] += b"\0" * generator.choice([1, 2, 3, 4, 5, 8, 12, 512])
        elif how == 1:
            streams[number] += generator.choice(
                [
                    b"x",
                    b"BZh",
                    b"\x1f\x8b",
                    b"\xfd7zXZ\0",
                    b"\n",
                    streams[0][: generator.randint(1, 20)],
                ]
            )
        elif how == 2 and (number or generator.random() < 0.2):
            streams[number] = mutated(streams[number], generator, most=2)
        elif how == 3 and number:
            streams[number] = streams[number][generator.randint(1, 8) :]
    content = b"".join(streams)
    return kind, content[: -generator.randint(1, 12)] if generator.random() < 0.1 else content


def asked(kind: str, content: bytes) -> bytes | None:
    """The plain bytes of a file by the command-line tool; None if it prints a message."""
    done = subprocess.run([TOOLS[kind], "-dc"], input=content, capture_output=True, timeout=60)
    return None if done.returncode or done.stderr else done.stdout


def one(kind: str, content: bytes, generator, ask: bool) -> bool:
    """Whether the file was read; AssertionError if rfx, the walker and the tool differ."""
    if not content.startswith(MAGIC[kind]):
        return False
    try:
        expected = walked(kind, content)
    except Refused:
        expected = None
    found, size = bytearray(), generator.choice([1, 100, 5000, 1 << 20])
    try:
        with archives.open_plain(io.BytesIO(content), 1 << 24) as plain:
            while piece := plain.read(size):
                found += piece
    except (DataError, *archives.DAMAGE):
        found = None
    assert found == expected, (kind, content)
    if ask and shutil.which(TOOLS[kind]):
        assert asked(kind, content) == expected, (kind, content)
    return found is not None


def fuzz(cases: int, seed: int) -> int:
    """How many of `cases` files were read."""
    generator, read = random.Random(seed), 0
    for number in range(cases):
        read += one(*case(generator), generator, number % ONE_IN == 0)
    return read
