"""A user's own registries: a mistake gives a sentence with the file and the line, soon."""

import pytest

from rfx.data import registry
from rfx.errors import UsageError


@pytest.fixture
def place(tmp_path, own_folders, monkeypatch):
    """A registry, named by RFX_DATASETS, and a data file next to it."""
    (tmp_path / "rows.csv").write_text("1,2\n3,4\n")
    monkeypatch.setenv("RFX_DATASETS", str(tmp_path / "own.toml"))
    return tmp_path / "own.toml"


def refused(place, content) -> str:
    place.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(UsageError) as told:
        registry.has("people")
    message = str(told.value)
    assert "\n" not in message and len(message) < 600 and str(place) in message
    return message.removeprefix(f"{place}, ")


GOOD = '[people]\ntrain = "rows.csv"\n'
BAD = {
    "twice": (GOOD + GOOD, "is not TOML: Cannot declare ('people',) twice (at line 3"),
    "not closed": (GOOD + 'title = "x\n', "is not TOML: "),
    "Latin-1": (GOOD.encode() + b'title = "caf\xe9"\n', "is not TOML: "),
    "an array of tables": (
        '[[people]]\ntrain = "rows.csv"\n',
        "people is [{'train': 'rows.csv'}]; it must be a table [people] with train",
    ),
    "a list of files": (
        '[people]\ntrain = ["rows.csv"]\n',
        "train of people is ['rows.csv']; it must be words",
    ),
    "a date": (
        GOOD + "title = 1979-05-27\n",
        "title of people is datetime.date(1979, 5, 27); it must be words",
    ),
    "no words": ('[people]\ntrain = ""\n', "train of people is ''; it must be words"),
    "numbers of columns": (
        GOOD + "ignore = [1, 2]\n",
        "ignore of people is [1, 2]; it must be a list of columns",
    ),
    "a sub-table": (GOOD + "\n[people.more]\nx = 1\n", "people has an unknown field 'more'"),
    "a name like an option": (
        '[--data]\ntrain = "rows.csv"\n',
        "a data set can't be called '--data'",
    ),
    "a long name": (
        f'\n[{"n" * 5000}]\ntrain = "rows.csv"\n',
        "a data set can't be called 'nnn",
    ),
    "a name of rfx's": (
        '\n[heart]\ntrain = "rows.csv"\n',
        "heart is the name of a data set of rfx itself; choose another",
    ),
    "a value": ("\npeople = 3\n", "people is 3; it must be a table [people] with train"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_wrong_is_one_sentence_with_the_data_set(place, name):
    content, expected = BAD[name]
    assert expected in refused(place, content)


@pytest.mark.parametrize(
    "how", ["plain", "byte order mark", "line ends of Windows", "quoted", "inline", "dots in words"]
)
def test_forms_of_one_registry(place, how):
    text = {
        "quoted": '["people"]\n"train" = \'rows.csv\'\n',
        "inline": 'people = {train = "rows.csv"}\n',
        "dots in words": GOOD + 'title = "' + "." * 200 + '"\nignore = [' + '"a.b", ' * 200 + "]\n",
    }.get(how, GOOD)
    raw = text.replace("\n", "\r\n").encode() if how == "line ends of Windows" else text.encode()
    place.write_bytes(b"\xef\xbb\xbf" + raw if how == "byte order mark" else raw)
    own = registry.get("people").own
    assert own.train == str(place.parent / "rows.csv") and own.paths == [own.train]


def test_one_name_in_two_registries(place, monkeypatch, tmp_path):
    for name in ("a.toml", "b.toml"):
        (tmp_path / name).write_text("# mine\n" + GOOD)
    monkeypatch.setenv("RFX_DATASETS", str(tmp_path))
    with pytest.raises(
        UsageError,
        match=r"b\.toml: people is the name of a data set of .*a\.toml; choose another",
    ):
        registry.has("people")


def test_a_name_of_any_length_that_there_is_not(place):
    place.write_text(GOOD)
    with pytest.raises(UsageError, match="there is no data set called 'xxx") as told:
        registry.get("x" * 200_000)
    assert len(str(told.value)) < 200
    with pytest.raises(UsageError, match="did you mean people"):
        registry.get("peple")


@pytest.mark.parametrize("kind", ["folder", "link to nothing"])
def test_a_registry_that_is_no_file(tmp_path, own_folders, monkeypatch, kind):
    place = tmp_path / "config" / "rfx" / "datasets.toml"
    place.parent.mkdir(parents=True)
    if kind == "folder":
        place.mkdir()
    else:
        place.symlink_to(tmp_path / "nothing")
    with pytest.raises(UsageError, match="datasets.toml can't be read"):
        registry.has("people")
