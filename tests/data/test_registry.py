"""datasets.toml: every entry is complete and consistent; names and near matches; papers; a user's
own registries; built-in data.
"""

import re
from urllib.parse import urlsplit

import numpy as np
import pytest

from rfx.data import convert, load, registry, splits, synthetic, textfiles
from rfx.errors import DataError, UsageError

INFOS = {name: registry.get(name) for name in registry.names()}
FILES = [(name, entry) for name, info in INFOS.items() for entry in info.files]


@pytest.mark.parametrize("name", INFOS)
def test_an_entry_is_complete(name):
    info = INFOS[name]
    assert re.fullmatch(r"[A-Za-z0-9_-]+", name)
    assert info.task in ("binary", "multiclass", "regression")
    assert info.classes == {"binary": 2, "regression": 0}.get(info.task, info.classes)
    assert info.task != "multiclass" or info.classes > 2
    assert info.n > 0 and info.d > 0 and len(info.title) > 10
    assert info.builtin == (not info.files)
    if info.substitute_for:
        assert info.substitute_for in INFOS
        assert re.search("SUBSTITUTE|SUBSET|GENERATED", info.title)
        assert info.builtin or re.search("not comparable", info.note)
    if not info.builtin:
        assert all(entry.sources for entry in info.files) != bool(info.obtain), (
            "a URL for every file, or how to get them"
        )


@pytest.mark.parametrize(
    "name, entry", FILES, ids=[f"{name}-{entry.role}" for name, entry in FILES]
)
def test_a_file_is_complete(name, entry):
    assert entry.role in ("train", "test", "tr", "val")
    assert (
        re.fullmatch(r"[A-Za-z0-9._-]+", entry.filename)
        and textfiles.plain_name(entry.filename) == entry.filename
    )
    assert entry.rows > 0
    assert entry.sha256 is None or re.fullmatch("[0-9a-f]{64}", entry.sha256)
    # a text with the same numbers may be longer
    assert not (entry.copies and entry.bytes)
    assert entry.convert is None or (entry.convert in convert.CONVERTERS and entry.sources)
    assert entry.convert or len(entry.sources) <= 1
    for source in entry.sources:
        parts = urlsplit(source.url)
        assert (
            parts.scheme in ("http", "https") and "." in parts.netloc and parts.path.count("/") > 1
        )
        assert re.fullmatch(r"[A-Za-z0-9._-]+", source.filename)
        assert source.sha256 is None or re.fullmatch("[0-9a-f]{64}", source.sha256)
        assert source.md5 is None or re.fullmatch("[0-9a-f]{32}", source.md5)
        assert entry.convert or textfiles.plain_name(source.filename) == entry.filename


@pytest.mark.parametrize("name", [name for name, info in INFOS.items() if info.files])
def test_splits_add_up(name):
    info = INFOS[name]
    rows = {entry.role: entry.rows for entry in info.files}
    assert len(rows) == len(info.files)
    if not info.labels:
        assert info.n == sum(rows[role] for role in ("train", "test") if role in rows)
    for paper, spec in info.splits.items():
        assert paper in registry.PAPERS
        assert set(spec.roles) <= set(rows) and bool(spec.pool) != bool(spec.train and spec.test)
        if spec.pool:
            assert spec.n_train + spec.n_test == sum(rows[role] for role in spec.pool)
        elif not info.labels:
            assert 0 < spec.n_train <= sum(rows[role] for role in spec.train)
            assert 0 < spec.n_test <= sum(rows[role] for role in spec.test)


PRINTED = {
    "yen2014": {
        "cod-rna": (59535, 10000, 8),
        "ijcnn1": (127591, 14100, 22),
        "covtype": (464810, 116202, 54),
        "cpu": (6554, 819, 21),
        "census": (18186, 2273, 119),
        "YearPredictionMSD": (463715, 51630, 90),
    },
    "wu2016": {
        "cadata": (16512, 4128, 8),
        "census": (18186, 2273, 119),
        "ijcnn1": (35000, 91701, 22),
        "cod_rna": (49437, 271617, 8),
        "covtype": (464809, 116203, 54),
        "SUSY": (4000000, 1000000, 18),
        "mnist": (60000, 10000, 780),
        "acoustic": (78823, 19705, 50),
        "letter": (10500, 5000, 16),
    },
    "sinha2016": {
        "adult": (32561, 16281, 123),
        "reuters": (23149, 781265, 47236),
        "buzz": (105530, 35177, 77),
    },
}


@pytest.mark.parametrize(
    "paper, name", [(paper, name) for paper, sets in PRINTED.items() for name in sets]
)
def test_sizes_are_the_ones_that_the_papers_print(paper, name):
    info = registry.get(name)
    spec = info.splits[paper]
    assert (spec.n_train, spec.n_test, info.d) == PRINTED[paper][name]


def test_every_paper_has_its_sets():
    for paper in registry.PAPERS:
        infos = registry.for_paper(paper)
        assert infos and all(paper in info.papers for info in infos)
        for name in PRINTED.get(paper, ()):
            assert registry.get(name) in infos
    dai = {info.name for info in registry.for_paper("dai2014") if not info.substitute_for}
    assert dai == {
        "a9a",
        "mnist8m-8vs6",
        "mnist-features",
        "covtype",
        "mnist8m",
        "cifar10-features",
        "imagenet-features",
        "qm7",
        "molecularspace",
        "ripple",
    }
    with pytest.raises(UsageError, match="'rahimi2007' is unknown; there are yen2014"):
        registry.for_paper("rahimi2007")


def test_names_are_found_whatever_their_spelling():
    assert registry.get("COD_RNA").name == registry.get("codrna").name == "cod-rna"
    assert registry.get("adult").name == "a9a" and registry.get("Forest").name == "covtype"
    assert not registry.has("nothing")
    with pytest.raises(UsageError, match="there is no data set called 'xxx") as told:
        registry.get("x" * 200_000)
    assert len(str(told.value)) < 200


# ----------------------------------------------------------------------- a user's own registries


@pytest.fixture
def place(tmp_path, own_folders, monkeypatch):
    """A registry, named by RFX_DATASETS, and a data file next to it."""
    (tmp_path / "rows.csv").write_text("1,2\n3,4\n")
    monkeypatch.setenv("RFX_DATASETS", str(tmp_path / "own.toml"))
    return tmp_path / "own.toml"


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
    "no list": (GOOD + "ignore = 1\n", "ignore of people is 1; it must be a list of columns"),
    "a sub-table": (GOOD + "\n[people.more]\nx = 1\n", "people has an unknown field 'more'"),
    "a name of rfx's": (
        '\n[heart]\ntrain = "rows.csv"\n',
        "heart is the name of a data set of rfx itself; choose another",
    ),
    "a value": ("\npeople = 3\n", "people is 3; it must be a table [people] with train"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_wrong_is_one_sentence_with_the_data_set(place, name):
    content, expected = BAD[name]
    place.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(UsageError, match=re.escape(expected)) as told:
        registry.has("people")
    assert str(told.value).startswith(f"{place}") and "\n" not in str(told.value)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
def test_a_registry_may_have_a_byte_order_mark(place, encoding):
    place.write_text(GOOD, encoding)
    own = registry.get("people").own
    assert own.train == str(place.parent / "rows.csv") and own.paths == [own.train]


def test_one_name_in_two_registries(place, monkeypatch, tmp_path):
    for name in ("a.toml", "b.toml"):
        (tmp_path / name).write_text("# mine\n" + GOOD)
    monkeypatch.setenv("RFX_DATASETS", str(tmp_path))
    with pytest.raises(UsageError, match=r"b\.toml: people .*a\.toml"):
        registry.has("people")


# --------------------------------------------------------------------------------- built-in data

PROBLEMS = ["sphere", "linear-selection", "motifs", "ripple", "covtype-sized", "yearpred-sized"]


def test_sphere():
    data = load("sphere:n=3000,n_test=500,d=5,seed=1")
    assert (
        data.X_train.shape == (3000, 5) and data.X_test.shape == (500, 5) and data.task == "binary"
    )
    np.testing.assert_array_equal(
        data.y_train, np.sign(np.linalg.norm(data.X_train, axis=1) - np.sqrt(5))
    )
    np.testing.assert_allclose(data.X_train.mean(axis=0), 0, atol=0.1)
    np.testing.assert_allclose(np.cov(data.X_train.T), np.eye(5), atol=0.1)


def test_ripple():
    data = load("ripple:n=20000,n_test=100")
    X, y = data.X_train, data.y_train
    assert X.shape == (20000, 2) and data.task == "regression" and np.abs(X).max() <= 5
    radius = np.linalg.norm(X, axis=1)
    noise = y - np.cos(0.5 * np.pi * radius) * np.exp(-0.1 * np.pi * radius)
    assert abs(noise.mean()) < 0.005 and abs(noise.std() - 0.1) < 0.005
    np.testing.assert_allclose(X.var(axis=0), 100 / 12, rtol=0.05)


def test_linear_selection():
    data = load("linear-selection:n=4000,n_test=50,d=100")
    X, y = data.X_train, data.y_train
    assert X.shape == (4000, 100)
    assert set(np.argsort(np.abs(X.T @ y))[-10:]) == set(range(10))  # only the first tenth matters
    assert ((X[:, :10].sum(axis=1) > 0) == (y > 0)).mean() > 0.9


def test_motifs():
    data = load("motifs:n=3000,n_test=500,seed=3")
    assert data.X_train.shape == (3000, 81) and data.task == "binary"
    assert (
        set(np.unique(data.X_train)) == set(map(float, b"ACGT"))
        and abs(np.mean(data.y_train)) < 0.1
    )
    words = synthetic._planted_words(splits.generator(3, synthetic._NO_ROLE), 81)
    assert len(words) == 6
    for place, word in words:
        found = (data.X_train[:, place : place + len(word)] == list(word.encode())).all(axis=1)
        assert abs(found[data.y_train > 0].mean() - 0.5) < 0.1
        assert found[data.y_train < 0].mean() < 0.1
    assert len(synthetic._planted_words(splits.generator(0, synthetic._NO_ROLE), 3)) == 1 and load(
        "motifs:n=20,n_test=5,d=3"
    ).X_train.shape == (20, 3)


def test_default_sizes_are_the_registrys():
    for name in PROBLEMS:
        problem, info = synthetic._PROBLEMS[name], registry.get(name)
        assert (problem.n + problem.n_test, problem.d) == (info.n, info.d)
        for spec in info.splits.values():
            assert (problem.n, problem.n_test) == (spec.n_train, spec.n_test)


@pytest.mark.parametrize("name", PROBLEMS)
def test_seed_and_size(name):
    first, again = load(f"{name}:n=1500,n_test=40"), load(f"{name}:n=1500,n_test=40")
    longer, other = load(f"{name}:n=2500,n_test=50"), load(f"{name}:n=1500,n_test=40,seed=1")
    assert first.name == f"{name}:n=1500,n_test=40" and first.X_train.shape == (1500, first.info.d)
    for rows in ("X_train", "y_train", "X_test", "y_test"):
        np.testing.assert_array_equal(getattr(first, rows), getattr(again, rows))
        np.testing.assert_array_equal(
            getattr(first, rows), getattr(longer, rows)[: len(getattr(first, rows))]
        )
    assert not np.array_equal(first.X_train, other.X_train)
    assert not np.array_equal(first.X_train[:40], first.X_test)
    by_argument = load(name, seed=1, n_train=1500, n_test=40)
    np.testing.assert_array_equal(by_argument.X_train, other.X_train)
    np.testing.assert_array_equal(by_argument.y_test, other.y_test)


@pytest.mark.parametrize(
    "name, shape, task",
    [
        ("digits", (1797, 64), "multiclass"),
        ("breast_cancer", (569, 30), "binary"),
        ("diabetes-sklearn", (442, 10), "regression"),
    ],
)
def test_bundled_sets(name, shape, task):
    data, again = load(name), load(name, seed=9)
    assert data.task == task and data.X_train.dtype == data.y_train.dtype == np.float64
    assert len(data.y_train) + len(data.y_test) == shape[0] and data.X_train.shape[1] == shape[1]
    assert len(data.y_test) == round(0.2 * shape[0])
    np.testing.assert_array_equal(data.X_test, again.X_test)  # one split, for any seed
    assert load(name, n_train=50, n_test=20).X_train.shape == (50, shape[1])


@pytest.mark.parametrize(
    "spec, message",
    [
        ("sphere:k=3", "sphere has no setting 'k'; it has d, n, n_test, seed"),
        ("ripple:d=3", "ripple has no setting 'd'"),
        ("digits:n=30", "digits has no setting 'n'; it has seed"),
        ("sphere:n=0", "n must be a whole number of 1 or more, not '0'"),
        ("sphere:n", "n must be a whole number of 1 or more, not ''"),
        ("sphere:d=2.5", "d must be a whole number"),
        ("sphere:seed=-1", "seed must be a whole number of 0 or more"),
    ],
)
def test_refusals(spec, message):
    with pytest.raises(UsageError, match=message):
        load(spec)


def test_an_unknown_data_set_is_missing_data():
    with pytest.raises(DataError, match="did you mean sphere"):
        load("spher:n=3")
