"""A folder per paper is found by its presence and is complete in the wheel; methods have distinct
styles; nothing of a paper is elsewhere.
"""

import configparser
import sys
from pathlib import Path

import pytest

from rfx import methods, papers
from rfx.papers.dai2014 import curves as dai2014
from rfx.plans import catalogue, plan
from rfx.reporting import seeds, style, tables
from rfx.reporting.printed import curves

ROOT = Path(__file__).resolve().parents[2]


def test_what_is_there():
    assert {"wu2016", "yen2014"} <= set(papers.names())
    assert {"demo", "yen2014-table1", "wu2016-fig5"} <= set(papers.plans())
    assert {"summary", "yen2014-table2", "wu2016-fig6"} <= set(papers.tables())
    assert {"wu2016-fig3"} <= set(papers.figures())
    for found in (papers.plans(), papers.tables(), papers.figures()):
        assert list(found) == sorted(found)


def test_what_is_general_has_no_name_of_a_paper():
    for found in (catalogue.plans(), catalogue.tables(), catalogue.figures()):
        assert not any(name.startswith(tuple(papers.names())) for name in found)


@pytest.fixture
def new_paper(tmp_path, monkeypatch):
    """A new folder, with a plan, a table in its own module and a figure; no list is edited."""
    folder = tmp_path / "nobody1999"
    (folder / "plans").mkdir(parents=True)
    (folder / "__init__.py").write_text("")
    (folder / "plans" / "fig1.toml").write_text(
        'table = "nobody1999-first"\n[[run]]\ndataset = "digits"\nmethod = "rf"\n'
    )
    (folder / "printed.csv").write_text(
        "# a comment\ntable,dataset,kernel,method,field,value\nfirst,digits,,,n_train,1500\n"
    )
    (folder / "tables_first.py").write_text(
        "from rfx.reporting.printed import printed\nfrom rfx.reporting.tables import Table\ndef"
        " first(rows, setting=None):\n    return Table('first', printed(__package__,"
        " 'first')['digits', '', '', 'n_train'].text, [], [], [])\nTABLES = {'first': first}\n"
    )
    (folder / "figures.py").write_text("FIGURES = {'fig1': print}\n")
    monkeypatch.setattr(papers, "__path__", [*papers.__path__, str(tmp_path)])
    yield
    for name in [name for name in sys.modules if name.startswith("rfx.papers.nobody1999")]:
        del sys.modules[name]
        vars(papers).pop("nobody1999", None)


def test_a_folder_is_found_by_its_presence(new_paper):
    assert plan.load("nobody1999-fig1", known=papers.plans()).table == "nobody1999-first"
    assert tables.build("nobody1999-first", [], None, papers.tables()).title == "1,500"
    assert papers.figures()["nobody1999-fig1"] is print


def test_every_file_of_the_rooms_is_in_the_wheel():
    """Each file that is not a module matches a pattern of package_data, read from its package's
    folder.
    """
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg")
    data = {
        name: text.replace(",", " ").split()
        for name, text in config["options.package_data"].items()
    }
    packed = {
        file
        for name, patterns in data.items()
        for pattern in patterns
        for file in (ROOT / name.replace(".", "/")).glob(pattern)
    }
    there = {file for file in (ROOT / "rfx").rglob("*") if file.suffix in (".csv", ".toml")}
    assert there and there <= packed
    for folder in {file.parent for file in (ROOT / "rfx").rglob("*.py")}:
        assert (folder / "__init__.py").exists(), f"{folder} would not be packed"


def test_methods_are_told_apart_without_colour():
    marks = [style.look(name)["marker"] for name in methods.names()]
    assert len(set(marks)) == len(marks)
    mine, theirs = style.look("rf"), style.look("rf", "authors")
    assert mine["color"] == theirs["color"] and mine["linestyle"] != theirs["linestyle"]


def test_a_printed_number_keeps_the_digits_that_its_column_has():
    """The authors' plot data have .9 for .9000; ours at .9344 +- .0035 is not equal to it."""
    points = curves("rfx.papers.wu2016", "fig5")
    (point,) = [
        point
        for point in points
        if (point["dataset"], point["method"], point["n_features"]) == ("letter", "block", 1024)
    ]
    assert point["test"].text == "0.9" and point["test"].decimals == 4
    ours = seeds.mean_of([0.9300, 0.9320, 0.9344, 0.9368, 0.9388])
    assert seeds.verdict(ours, point["test"], "high", "share") == "better"


def test_the_quoted_errors_of_dai_are_those_of_the_methods_that_have_them():
    """Section 7: for CIFAR 10 only the network has this, for ImageNet three."""
    assert dai2014.quoted("cifar10", "doubly-sgd") is None
    assert dai2014.quoted("cifar10", "mlp") == 11
    assert dai2014.quoted("imagenet", "doubly-sgd") == 44.5
    assert (
        dai2014.quoted("imagenet", "mlp") == 42
        and dai2014.quoted("imagenet", "fixed-network") == 46
    )
