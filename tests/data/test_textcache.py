"""The binary cache of a text is used if it belongs to the text, and rewritten if the reader could
not have written it.
"""

import json
import os
import time
import zlib

import numpy as np
import pytest

from rfx.data.libsvm import svmlight, svmtext, textcache
from rfx.errors import DataError

GOOD = "+1 1:0.5 3:-2e-3\n# a comment\n\n-1 2:1\n0.5 1:.5 2:3 10:0\n"


def put(path, content, settled=True):
    path.write_text(content)
    if settled:  # old enough for the cache to trust the modification time
        os.utime(path, (time.time() - 3600, time.time() - 3600))
    return path


@pytest.fixture
def text(tmp_path, monkeypatch):
    monkeypatch.setattr(textcache, "SMALLEST", 0)
    monkeypatch.setenv("RFX_CACHE", str(tmp_path / "cache"))
    (tmp_path / "mine").mkdir()
    return put(tmp_path / "mine" / "data.libsvm", GOOD)


def without_parsing(monkeypatch, path, **options):
    with monkeypatch.context() as patch:
        patch.setattr(svmtext, "parse", lambda *_: pytest.fail("the cache was not used"))
        return svmlight.read(path, **options)


def test_the_second_read_takes_the_copy(text, monkeypatch):
    X, y = svmlight.read(text)
    cache = textcache.place(text)
    assert (
        cache.exists()
        and list(text.parent.iterdir()) == [text]
        and cache.stat().st_mode & 0o777 == 0o600
    )
    again, labels = without_parsing(monkeypatch, text)
    assert (X != again).nnz == 0 and X.nnz == again.nnz and labels.tolist() == y.tolist()
    assert again.indices.dtype == np.int32
    with pytest.raises(DataError, match="feature 10 on line 5"):
        without_parsing(monkeypatch, text, n_features=9)


def test_no_copy_of_small_or_fresh_files_or_unasked(text, monkeypatch):
    svmlight.read(put(text, GOOD, settled=False))
    svmlight.read(put(text, GOOD), cache=False)
    monkeypatch.setattr(textcache, "SMALLEST", 1 << 16)
    svmlight.read(text)
    assert not textcache.place(text).exists()


def test_a_changed_text_is_read_anew(text):
    svmlight.read(text)
    status = text.stat()
    text.write_text(GOOD.replace("+1", "+7"))
    # like `cp -p`: same size, same time
    os.utime(text, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert svmlight.read(text)[1][0] == 7
    assert svmlight.read(text)[1][0] == 7  # from the new cache
    put(text, GOOD + "4\n")
    assert len(svmlight.read(text)[1]) == 4


def test_a_copy_is_for_one_base_of_indices(text):
    put(text, "1 1:1\n")
    assert svmlight.read(text)[0].shape[1] == 1
    assert svmlight.read(text, zero_based=True)[0].shape[1] == 2


def test_copies_of_texts_that_are_gone_are_removed(text):
    other = put(text.with_name("other"), "1 1:1\n")
    svmlight.read(other)
    other.unlink()
    (textcache.place(text).parent / "old.rfxcache").write_bytes(b"of another version")
    svmlight.read(text)
    assert list(textcache.place(text).parent.iterdir()) == [textcache.place(text)]


def rewritten(cache, arrays=None, **header):
    """Rewrite the cache with other arrays or header fields, and matching checksums."""
    with open(cache, "rb") as handle:
        known = textcache._header(handle)
        kept = dict(zip(textcache._TYPES, textcache._arrays(handle, known)))
    kept |= arrays or {}
    known |= {
        name: (array.dtype.str, len(array), zlib.crc32(array)) for name, array in kept.items()
    } | header
    content = json.dumps(known).encode()
    with open(cache, "wb") as handle:
        handle.write(textcache._MAGIC + len(content).to_bytes(4, "little") + content)
        for array in kept.values():
            handle.write(array.tobytes())


def i4(*values):
    return {"indices": np.array(values, np.int32)}


def ends(*values):
    return {"indptr": np.array(values, np.int32)}


# what an attacker could write; GOOD has indptr 0 2 3 6 and indices 0 2 1 0 1 9
HOSTILE = {
    "an index below zero": i4(0, 2, -1, 0, 1, 9),
    "indices that do not ascend": i4(2, 0, 1, 0, 1, 9),
    "an index twice": i4(0, 0, 1, 0, 1, 9),
    "too few indices": i4(0, 2),
    "an index beyond the reader's": {
        "indices": np.array([0, 2, 1, 0, 1, 1 << 62]),
        "indptr": np.array([0, 2, 3, 6]),
    },
    "two types of index": {"indices": np.array([0, 2, 1, 0, 1, 9])},
    "pointers beyond the entries": ends(0, 2, 3, 1000),
    "a pointer beyond the entries in the middle": ends(0, 2**31 - 1, 3, 6),
    "pointers that fall": ends(0, 3, 2, 6),
    "pointers from below zero": ends(0, -5, 3, 6),
    "pointers that do not begin at 0": ends(1, 2, 3, 6),
    "fewer pointers than rows": ends(0, 6),
    "no rows": ends(0) | {"labels": np.zeros(0)},
    "no pointers": {"indptr": np.zeros(0, np.int32)},
    "a value that is not finite": {"values": np.array([1, 2, np.nan, 4, 5, 6])},
    "a label that is not finite": {"labels": np.array([1, np.inf, 2])},
    "labels of another type": {"labels": np.array([1, 2, 3])},
    "values of another type": {"values": np.arange(6, dtype=np.int64)},
}


@pytest.mark.parametrize("name", HOSTILE)
def test_arrays_that_no_text_gives_are_not_believed(text, monkeypatch, name):
    expected, labels = svmlight.read(text)
    cache = textcache.place(text)
    good = cache.read_bytes()
    rewritten(cache, HOSTILE[name])
    assert cache.read_bytes() != good
    X, y = svmlight.read(text)
    assert (X != expected).nnz == 0 and y.tolist() == labels.tolist()
    assert cache.read_bytes() == good  # rewritten
    without_parsing(monkeypatch, text)


def test_a_rewritten_cache_would_be_believed_were_it_sound(text, monkeypatch):
    svmlight.read(text)
    rewritten(textcache.place(text), i4(0, 2, 1, 0, 1, 8))
    assert without_parsing(monkeypatch, text)[0].shape[1] == 9


@pytest.mark.parametrize(
    "damage",
    [
        "truncate",
        "garbage",
        "header",
        "flip",
        "empty",
        "long header",
        "brackets",
        "counts",
        "list",
        "more",
    ],
)
def test_a_damaged_copy_is_ignored_and_rewritten(text, monkeypatch, damage):
    expected, _ = svmlight.read(text)
    cache = textcache.place(text)
    content = bytearray(cache.read_bytes())
    head = textcache._MAGIC
    if damage == "truncate":
        del content[-3:]
    elif damage == "garbage":
        content[:] = b"\x00" * 50
    elif damage == "header":
        content[30:40] = b"9" * 10
    elif damage == "flip":
        content[-9] ^= 64
    elif damage == "long header":
        content[:] = head + b"\xff\xff\xff\xff" + b" " * 1000
    elif damage == "brackets":
        content[:] = head + (60000).to_bytes(4, "little") + b"[" * 60000
    elif damage == "list":
        content[:] = head + (2).to_bytes(4, "little") + b"[]"
    elif damage == "empty":
        content.clear()
    cache.write_bytes(content)
    if damage == "counts":
        rewritten(cache, values=["<f8", 1e18, 0])
    elif damage == "more":
        rewritten(cache, values=["<f8", 10**30, 0])
    assert (svmlight.read(text)[0] != expected).nnz == 0
    assert (without_parsing(monkeypatch, text)[0] != expected).nnz == 0


@pytest.mark.parametrize("how", ["writable", "link", "pipe"])
def test_only_a_file_of_ones_own_is_believed(text, how):
    svmlight.read(text)
    cache = textcache.place(text)
    rewritten(cache, {"labels": np.array([7.0, 7, 7])})
    assert svmlight.read(text)[1].tolist() == [7, 7, 7]
    if how == "writable":
        cache.chmod(0o666)
    elif how == "link":
        cache.rename(cache.with_name("elsewhere"))
        cache.symlink_to("elsewhere")
    else:
        cache.unlink()
        os.mkfifo(cache)
    assert svmlight.read(text)[1].tolist() == [1, -1, 0.5]


def test_a_cache_that_can_not_be_written_is_passed_over_with_a_warning(text, monkeypatch, caplog):
    blocked = text.parent / "blocked"
    blocked.write_text("a file where a folder is wanted")
    monkeypatch.setenv("RFX_CACHE", str(blocked))
    assert len(svmlight.read(text)[1]) == 3
    assert (
        f"no binary cache of {text} is written: {textcache.place(text)} can't be written"
        in caplog.text
        and "RFX_CACHE" in caplog.text
    )
    assert sorted(text.parent.iterdir()) == [blocked, text]


def test_an_interrupt_leaves_no_half_written_copy(text, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(textcache, "_write", interrupt)
    with pytest.raises(KeyboardInterrupt):
        svmlight.read(text)
    assert not list(textcache.place(text).parent.iterdir())


@pytest.mark.parametrize("where", ["folder", "file", "dangling"])
def test_a_link_in_the_place_of_the_copy_is_never_followed(text, tmp_path, where):
    X, _ = svmlight.read(text, cache=False)
    place, victim = textcache.place(text), tmp_path / "victim"
    victim.mkdir()
    (victim / place.name).write_text("precious")
    before = {path.name for path in victim.iterdir()}
    place.parent.parent.mkdir()
    if where == "folder":
        place.parent.symlink_to(victim)
    else:
        place.parent.mkdir()
        place.symlink_to(victim / (place.name if where == "file" else "new"))
    for _ in range(2):
        assert (svmlight.read(text)[0] != X).nnz == 0
    assert (victim / place.name).read_text() == "precious" and {
        path.name for path in victim.iterdir()
    } == before
    assert where == "folder" or (place.is_file() and not place.is_symlink())
