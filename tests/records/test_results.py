"""The results file: columns, keys, appending under a lock, torn lines, files written by other
programs.
"""

import csv
import errno
import io
import json
import multiprocessing
import os
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rfx import env, lazy
from rfx.errors import DataError, LockedError
from rfx.records import results, sheet

HEADER = (",".join(results.COLUMNS) + "\n").encode()


def row(**more):
    return {
        "key": "k1",
        "status": "ok",
        "dataset": "cpu",
        "method": "rf",
        "score": 0.0375,
        "n_train": 6554,
        "converged": True,
        "params": {"gamma": 0.5},
    } | more


def test_columns_end_with_what_the_environment_describes():
    described = list(env.describe())
    assert list(results.COLUMNS[-len(described) :]) == described
    assert results.COLUMNS[:5] == ("key", "created", "status", "message", "dataset")
    assert len(set(results.COLUMNS)) == len(results.COLUMNS)


def test_append_and_read_round_trip(tmp_path):
    path = tmp_path / "new" / "results.csv"
    results.append(path, row())
    values = {"score": None, "converged": np.bool_(False), "message": 'two\nlines, "quoted"'}
    results.append(path, row(key="k2", lam=np.int64(10), params={"b": [np.float32(0.5)]}, **values))
    first, second = results.read(path)
    expected = row() | {"message": None, "lam": None, "n_train": 6554}
    assert {name: first[name] for name in expected} == expected
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00", first["created"])
    expected = values | {"message": 'two lines, "quoted"', "lam": 10.0, "params": {"b": [0.5]}}
    assert {name: second[name] for name in expected} == expected
    with path.open(newline="") as file:
        header, _, record = csv.reader(file)
    assert header == list(results.COLUMNS)
    assert json.loads(record[header.index("params")]) == {"b": [0.5]}


_floats = st.floats(-1e100, 1e100)
_names = st.text(max_size=5)
_params = st.dictionaries(_names, _floats, max_size=4)
_rows = st.lists(st.tuples(st.text(max_size=40), st.none() | _floats, _params), max_size=4)


@settings(max_examples=60, deadline=None)
@given(_rows)
def test_any_text_and_number_survives(tmp_path_factory, items):
    path = tmp_path_factory.mktemp("r") / "r.csv"
    for number, (text, score, params) in enumerate(items):
        results.append(path, row(key=str(number), message=text, score=score, params=params))
    if not items:
        return
    rows = results.read(path)
    assert [item["score"] for item in rows] == [score for _, score, _ in items]
    assert [item["params"] for item in rows] == [params for *_, params in items]
    # what can't be written as one line of UTF-8 is replaced; the rest is kept
    plain = re.compile(r"[^ -~]")
    kept = [plain.sub("", " ".join(text.replace("\0", " ").splitlines())) for text, *_ in items]
    assert [plain.sub("", item["message"] or "").replace("?", "") for item in rows] == [
        text.replace("?", "") for text in kept
    ]


def test_later_row_of_a_key_wins(tmp_path):
    path = tmp_path / "r.csv"
    for key, score in [("a", 1.0), ("b", 2.0), ("a", 3.0)]:
        results.append(path, row(key=key, score=score))
    assert [(item["key"], item["score"]) for item in results.read(path)] == [("b", 2.0), ("a", 3.0)]


def test_unknown_column_is_a_programming_error(tmp_path):
    with pytest.raises(ValueError, match="no such column: colour"):
        results.append(tmp_path / "r.csv", row(colour="red"))


def test_a_file_torn_anywhere_keeps_every_finished_row(tmp_path):
    """As left by a killed writer: cut at every third byte; read at once, then appended to, then
    read again.
    """
    path = tmp_path / "r.csv"
    for number in range(2):
        results.append(
            path, row(key=f"k{number}", message='says "no", twice', git_revision="0123456789ab")
        )
    whole = path.read_bytes()
    ends = [place + 1 for place, byte in enumerate(whole) if byte == ord("\n")]
    for cut in range(0, len(whole) + 1, 3):
        finished = max(0, sum(end <= cut for end in ends) - 1)
        path.write_bytes(whole[:cut])
        keys = [item["key"] for item in results.read(path)]
        assert keys[:finished] == [f"k{number}" for number in range(finished)]
        results.append(path, row(key="new"))
        rows = results.read(path)
        assert [item["key"] for item in rows] == [*keys, "new"]
        assert all(item["score"] == 0.0375 and item["params"] == {"gamma": 0.5} for item in rows)
        if cut >= len(HEADER):
            assert path.read_bytes().startswith(whole[:cut])
        # other CSV readers count as many records as there are lines
        with path.open(newline="") as file:
            assert len(list(csv.reader(file))) == path.read_bytes().count(b"\n")


@pytest.mark.parametrize("content", ["a,b\n1,2\n", "\x00\x01\x02", "key,created\n", "1 1:0.5\n"])
def test_another_file_is_refused_and_left_alone(tmp_path, content):
    path = tmp_path / "other.csv"
    path.write_text(content)
    with pytest.raises(DataError, match="or another program rearranged it"):
        results.append(path, row())
    with pytest.raises(DataError, match="other.csv is not an rfx results file"):
        results.read(path)
    assert path.read_text() == content


@pytest.mark.parametrize("name", ["", ".", "other.csv", "other.csv/r.csv"])
def test_a_path_that_is_no_results_file_is_found_before_anything_is_made(
    tmp_path, monkeypatch, name
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "other.csv").write_text("a,b\n")
    with pytest.raises(DataError, match="results file"):
        results.check(name)
    with pytest.raises(DataError, match="results file"), results.exclusive(name):
        pass
    results.check("new/folder/r.csv")
    assert [path.name for path in tmp_path.iterdir()] == ["other.csv"]


@pytest.mark.parametrize(
    "content, column",
    [
        (HEADER.decode() + "," * 90 + "x\n", ""),
        ("key,status,dataset,method,n_train\nk,ok,cpu,rf,6.554\n", "n_train holds '6.554'"),
    ],
)
def test_a_wrong_field_is_named(tmp_path, content, column):
    (tmp_path / "r.csv").write_text(content)
    with pytest.raises(DataError, match=f"line 2: the column .*{column}"):
        results.read(tmp_path / "r.csv")


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize("start", [b"", b"\xef\xbb\xbf"])
def test_a_file_that_another_program_rearranged_is_refused(tmp_path, delimiter, start):
    path = tmp_path / "r.csv"
    results.append(path, row())
    out = io.StringIO()
    with path.open(newline="") as file:
        csv.writer(out, delimiter=delimiter).writerows(csv.reader(file))
    path.write_bytes(start + out.getvalue().encode())
    before = path.read_bytes()
    for use in (results.read, lambda path: results.append(path, row())):
        with pytest.raises(DataError, match="another program rearranged it: its first line"):
            use(path)
    assert path.read_bytes() == before


def test_a_file_with_some_of_the_columns_is_read_and_not_appended_to(tmp_path):
    path = tmp_path / "r.csv"
    path.write_text("status,key,dataset,method,lam\nok,k,cpu,rf,2.0\n")
    (first,) = results.read(path)
    assert (first["lam"], first["score"], first["params"]) == (2.0, None, {})
    with pytest.raises(DataError, match="its columns differ from those that rfx writes"):
        results.append(path, row())
    assert len(results.read(path)) == 1


HEAD, LINE = (
    "key,status,dataset,method,score,params\n",
    'k{0},ok,cpu,rf,{0}.5,"{{""samples"": {0}}}"\n',
)


def test_torn_lines_are_told(tmp_path):
    path, torn = tmp_path / "r.csv", []
    path.write_text(
        HEAD
        + LINE.format(1)
        + "k2,ok,cp\n"
        + '\nk3,ok,cpu,rf,"x\n'
        + LINE.format(4) * 600
        + "k5,ok"
    )
    assert [item["key"] for item in results.read(path, torn=torn)] == ["k1", "k4"]
    assert torn == [3, 5, 606]


def test_a_full_disk_takes_back_what_it_took(tmp_path, monkeypatch):
    path = tmp_path / "r.csv"
    results.append(path, row())
    before = path.read_bytes()

    class Full(io.FileIO):
        def write(self, data):
            return super().write(data[: len(data) // 2])

    monkeypatch.setattr(sheet, "open", lambda path, mode, **_: Full(path, "a+"), raising=False)
    with pytest.raises(DataError, match="can't be written as a results file: No space left"):
        results.append(path, row(key="k2"))
    assert path.read_bytes() == before


_TEXTS = [
    "=cmd|' /C calc'!A0",
    "+1",
    "-1",
    "@x",
    "\tx",
    "'=1",
    "''",
    "'",
    "-",
    "＝1",
    "'plain'",
    "a=1",
]


@pytest.mark.parametrize("text", _TEXTS)
def test_no_cell_of_text_is_run_by_a_spreadsheet(tmp_path, text):
    path = tmp_path / "r.csv"
    results.append(path, row(dataset=text, message=text, score=-0.5, params={"=a": "=b"}))
    with path.open(newline="") as file:
        (record,) = csv.DictReader(file)
    assert record["dataset"][0] not in "=+-@\t\r＝" and record["score"] == "-0.5"
    (read,) = results.read(path)
    assert (read["dataset"], read["message"], read["score"], read["params"]) == (
        text,
        text,
        -0.5,
        {"=a": "=b"},
    )


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet="'=+-@\tax", max_size=5))
def test_text_made_safe_reads_back(text):
    assert sheet.plain(sheet.safe(text)) == text and sheet.safe(text)[:1] not in set("=+-@\t")


# ---------------------------------------------------------------------------------- files and locks


def test_missing_and_unwritable_files_are_one_sentence(tmp_path):
    with pytest.raises(DataError, match="there is no such results file"):
        results.read(tmp_path / "none.csv")
    with pytest.raises(DataError, match="can't be written as a results file: Is a directory"):
        results.append(tmp_path, row())
    with pytest.raises(DataError, match="can't be read as a results file"):
        results.read(tmp_path)


def _append_many(path, name):
    for number in range(25):
        results.append(path, row(key=f"{name}-{number}", message="x" * 300))


def test_several_writers_at_once(tmp_path):
    path = tmp_path / "r.csv"
    context = multiprocessing.get_context("fork")
    writers = [context.Process(target=_append_many, args=(path, name)) for name in "abcd"]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert len(results.read(path)) == 100
    assert path.read_bytes().count(b"\n") == 101


def test_exclusive_is_held_by_one_and_freed(tmp_path):
    path = tmp_path / "r.csv"
    with results.exclusive(path):
        with pytest.raises(LockedError, match="in use by another rfx run"):
            with results.exclusive(path):
                pass
        results.append(path, row())
    with results.exclusive(path):
        assert Path(f"{path}.lock").exists()


def test_a_lock_on_a_full_disk_is_one_sentence(tmp_path, monkeypatch):
    def full(*_, **__):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(lazy.filelock.FileLock, "acquire", full)
    with (
        pytest.raises(DataError, match="No space left on device; free some space there"),
        results.exclusive(tmp_path / "r.csv"),
    ):
        pass
