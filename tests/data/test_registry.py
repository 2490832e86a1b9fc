"""datasets.toml: every entry is complete and consistent; names and near matches; papers."""

import re
from urllib.parse import urlsplit

import pytest

from rfx.data import convert, registry, textfiles
from rfx.errors import UsageError

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
    spellings = [
        alias.lower().replace("_", "-")
        for info in INFOS.values()
        for alias in (info.name, *info.aliases)
    ]
    duplicates = {spelling for spelling in spellings if spellings.count(spelling) > 1}
    assert all(len({registry.get(spelling).name}) == 1 for spelling in duplicates)
    assert not registry.has("nothing")


def test_an_unknown_name_gets_near_matches():
    with pytest.raises(UsageError, match="no data set called 'cod-rn'; did you mean cod-rna"):
        registry.get("cod-rn")
    with pytest.raises(UsageError, match="'qqqqqq'; `rfx datasets` lists them"):
        registry.get("qqqqqq")
