"""What the documents say is true: commands parse, options, targets, files and links exist, Python
and plans in them run.
"""

import os
import re
import runpy
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import docs_numbers
import docs_tables
import numpy as np
import pandas
import pytest
from click.testing import CliRunner
from sklearn.datasets import dump_svmlight_file

from rfx import methods, papers
from rfx.cli import COMMANDS, cli
from rfx.cli.flags import given_options
from rfx.data import registry
from rfx.measures import MEASURES
from rfx.plans import plan
from rfx.records import results

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text()
PATHS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])
DOCS = {str(path.relative_to(ROOT)): path.read_text() for path in PATHS}
EVERY = pytest.mark.parametrize("name", DOCS)


def blocks(language):
    """(document, text) of every code block of that language."""
    return [
        (name, text)
        for name, doc in DOCS.items()
        for text in re.findall(rf"^ *```{language}\n(.*?)^ *```$", doc, re.S | re.M)
    ]


NUMBERS = tomllib.loads((ROOT / "docs" / "numbers.toml").read_text())["command"]
LINES = [
    line
    for _, block in blocks("sh")
    for line in block.replace("\\\n", " ").splitlines()
    if line.strip()
]
RFX = [line.strip() for line in LINES if re.match(r" *(\w+=\S+ )*(\.venv/bin/)?rfx ", line)]


def words(line):
    """The arguments of the first command of a shell line, without pipes, redirections and
    comments.
    """
    found = shlex.split(line, comments=True)
    while "=" in found[0]:
        found.pop(0)
    for number, word in enumerate(found):
        if word in ("|", ">", "<", ">>", "&&", ";", "&"):
            found = found[:number]
            break
    return found[1:]


@pytest.mark.parametrize("line", dict.fromkeys([*RFX, *(entry["command"] for entry in NUMBERS)]))
def test_rfx_line_parses(line):
    arguments = words(line)
    command = cli.get_command(None, arguments[0])
    assert command is not None, f"there is no command {arguments[0]}"
    context = command.make_context(arguments[0], arguments[1:])
    if arguments[0] == "train":
        methods.create(
            context.params["method"], **given_options(context.params["method"], context.params)
        )
    if arguments[0] in ("run", "table", "figure"):
        known = {"run": papers.plans, "table": papers.tables, "figure": papers.figures}[
            arguments[0]
        ]()
        name = context.params.get("plan") or context.params.get("name")
        assert name is None or name in known or name.endswith(".toml")


def test_every_command_is_described():
    assert [name for name in COMMANDS if f"rfx {name}" not in DOCS["docs/commands.md"]] == []


def test_every_measure_is_described():
    titles = {measure.title for measure in MEASURES.values()}
    told = " ".join(cli.get_command(None, "eval").help.split())
    assert {title for title in titles if title not in told} == set()
    assert {title for title in titles if title not in DOCS["docs/commands.md"]} == set()


def test_the_readme_is_short():
    assert len(README.split()) <= 750


def test_the_pages_are_short():
    """The hand-written text: all of docs/ except the generated tables; 300 words on GPUs."""
    made = r"<!-- (?:benchmark|rfx) .*?<!-- end -->"
    pages = [re.sub(made, "", text, flags=re.S) for name, text in DOCS.items() if "docs/" in name]
    assert sum(len(page.split()) for page in pages) <= 24_000


def options():
    """Every option of every command of rfx, of the benchmarks and of the other programs in the
    documents.
    """
    known = {"--help"} | {option.flag for option in methods.options_of(None)}
    for name in COMMANDS:
        command = cli.get_command(None, name)
        known |= {
            flag
            for parameter in command.params
            for flag in parameter.opts + parameter.secondary_opts
        }
    known |= {flag for parameter in cli.params for flag in parameter.opts}
    for path in (ROOT / "benchmarks").glob("*.py"):
        known |= set(re.findall(r'add_argument\(\s*"(--[\w-]+)"', path.read_text()))
    return known


@EVERY
def test_options_exist(name):
    # pip, git and others have their own options; they are in blocks, while text is about rfx
    text = re.sub(r"^ *```.*?^ *```$", "", DOCS[name], flags=re.S | re.M)
    used = set(re.findall(r"(?<![\w-])--[a-z][a-z0-9-]*", text))
    assert used - options() == set()


@pytest.fixture
def houses(tmp_path, monkeypatch):
    """A folder with the table of the first page, as its script writes it."""
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(ROOT / "docs/houses.py"))
    return tmp_path


def begins(lines):
    """The first word of each line, without its numbers, which differ between machines."""
    return sorted(re.sub(r"[\d.]+", "#", line.split()[0]) for line in lines if line.strip())


@pytest.mark.slow
def test_the_walkthrough_runs(houses):
    """Run each command of the page in order. Its output must begin like the lines of the page."""
    text = DOCS["docs/walkthrough.md"]
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = os.environ | {"PATH": path, "PYTHONPATH": str(ROOT)}
    (use,) = re.findall(r"```python\n(.*?)```", text, re.S)
    found = re.findall(r"```console\n\$ (.*?)```", text, re.S)
    assert found.pop(0).strip() == "python docs/houses.py"
    assert len(found) == 9
    for block in found:
        command, _, printed = block.replace("\\\n", " ").partition("\n")
        done = subprocess.run(
            re.sub("^rfx ", f"{shlex.quote(sys.executable)} -m rfx ", command),
            shell=True,
            cwd=houses,
            env=environment,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        lines = (done.stderr + done.stdout).splitlines()
        assert begins(lines) == begins(printed.splitlines()), command
        for name in ("rmse", "RMSE"):
            assert numbers_after(name, lines) == pytest.approx(
                numbers_after(name, printed.splitlines()), rel=0.03
            )
    done = subprocess.run(
        [sys.executable, "-c", use], cwd=houses, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0 and done.stdout.startswith("["), done.stderr


def numbers_after(name, lines):
    """The first number of each line that begins with the name of a score."""
    return [float(line.split()[1]) for line in lines if line.startswith(f"{name} ")]


@pytest.mark.parametrize("name", ["README.md", "docs/index.md"])
def test_the_first_screen_is_the_walkthrough(name):
    """What it prints is what the walk-through prints, whose commands are run."""
    (block,) = re.findall(r"```console\n(.*?)```", DOCS[name], re.S)
    lines = [line.partition(" -o ")[0] for line in DOCS["docs/walkthrough.md"].splitlines()]
    for line in block.splitlines():
        words = line.partition("  #")[0].rstrip()
        assert words in ("…", "$ pip install .", *lines), line


def test_make_targets_exist():
    makefile = (ROOT / "Makefile").read_text()
    targets = set(re.findall(r"^([a-z0-9-]+):", makefile, re.M))
    (phony,) = re.findall(r"^\.PHONY: (.*?[^\\])$", makefile, re.M | re.S)
    used = set(re.findall(r"`make ([a-z0-9-]+[a-z0-9])`", "".join(DOCS.values())))
    used |= {line.split()[1] for line in LINES if line.split()[0] == "make"}
    made = {name.removeprefix("reproduce-") for name in used - targets - set(phony.split())}
    known = {*papers.tables(), *papers.figures()}
    known |= {name.removeprefix("yen2014-") for name in known}
    assert len(made) > 3
    assert {name.removesuffix("-quick") for name in made} <= known


def test_make_asks_rfx_for_what_its_target_is_called():
    words = ["make", "-n", "reproduce-table1", "reproduce-wu2016-fig3-quick", "FULL=1"]
    said = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True)
    asked = [
        line.split("rfx reproduce ")[1].split()[0]
        for line in said.stdout.splitlines()
        if "rfx reproduce" in line
    ]
    assert asked == ["yen2014-table1", "wu2016-fig3-quick"] and "--full" in said.stdout


@EVERY
def test_paths_exist(name):
    for path in re.findall(r"(?<![\w/.-])((?:rfx|tests|benchmarks|docs)/[\w/.-]*\w)", DOCS[name]):
        assert (ROOT / path).exists() or path.startswith("docs/_build/"), path
    for path in re.findall(r"\b(bench_\w+\.py)\b", DOCS[name]):
        assert (ROOT / "benchmarks" / path).exists(), path


def slug(heading):
    """The anchor of a heading in rendered Markdown: lower case, no punctuation, hyphens for
    spaces.
    """
    return re.sub(r"[^\w -]", "", heading.strip().lower()).replace(" ", "-")


@EVERY
def test_links_resolve(name):
    anchors = {
        document: {slug(heading) for heading in re.findall(r"^#+ (.*)$", text, re.M)}
        for document, text in DOCS.items()
    }
    for target in re.findall(r"\]\(([^)\s]+)\)", DOCS[name]):
        if re.match(r"https?://|mailto:", target):
            continue
        path, _, anchor = target.partition("#")
        found = (ROOT / name).parent / path if path else ROOT / name
        assert found.exists(), target
        if anchor:
            assert anchor in anchors[str(found.resolve().relative_to(ROOT))], target


def test_every_document_is_in_a_table_of_contents():
    listed = {
        f"docs/{line}.md"
        for text in DOCS.values()
        for block in re.findall(r"```{toctree}\n(.*?)```", text, re.S)
        for line in block.splitlines()
    }
    pages = {name for name in DOCS if name.startswith("docs/")}
    assert pages - listed == {"docs/index.md"}


def test_every_other_document_is_linked_from_the_readme():
    for name in DOCS:
        if not name.startswith("docs/") and name != "README.md":
            assert f"]({name})" in README, name


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", sorted({name for name, _ in blocks("python")} - {"docs/walkthrough.md"})
)
def test_python_runs(name, houses):
    """The blocks of a document are one session."""
    shutil.copy(ROOT / "tests/fixtures/results.csv", houses)
    session = {"__name__": "__main__"}
    for own, code in blocks("python"):
        if own == name:
            exec(compile(code, name, "exec"), session)


# Lines of shell blocks that no test runs, and why. Lines with the address of a cluster are not run
# either.
NOT_RUN = {
    "cd ": "of the shell",
    "ulimit": "it limits this process",
    "pip ": "another program",
    "make ": "test_make_targets_exist",
    "dask ": "a cluster",
    "srun ": "a cluster",
    "python benchmarks/": "hours",
    ".venv/bin/python tests/": "it compares rows that take minutes",
    "rfx run demo": "a minute; tests/test_compatibility.py runs its rows",
    "rfx fetch ": "a data set, tests/data/test_fetch.py",
    "rfx reproduce ": "test_make_asks_rfx_for_what_its_target_is_called",
    "rfx report --results docs/rows": "a minute; the report has tests of its own",
}
# Data sets that must be fetched, and plans that take minutes: generated rows replace them.
STAND_INS = {
    r"--data (cod-rna|ijcnn1|letter|a9a|cpusmall)": "--data rows.svm",
    r"--split (yen2014|wu2016) ": "",
    r"rfx run (yen2014-table1|wu2016-fig4)\b(?!.*--dry-run)": r"rfx run \1 --dry-run",
    r"(rfx figure wu2016-fig4 --results) \S+": r"\1 docs/rows/wu2016-fig4.csv",
    r"--paper (yen2014|wu2016)": "--paper sinha2016",
    r"docs/rows/": f"{ROOT}/docs/rows/",
    r"rfx tune ": "rfx tune --trials 2 ",
}


def files_of_the_pages(folder):
    """The files that the pages name, with 60 rows each, and a model of people.csv."""
    runpy.run_path(str(ROOT / "docs/houses.py"))
    rng = np.random.default_rng(0)
    made = pandas.DataFrame({"id": range(60), "age": rng.integers(18, 80, 60)})
    made["patient"], made["day"] = made["id"] // 3, pandas.date_range("2026-01-01", periods=60)
    made["job"] = np.array(["clerk", "smith", "baker"])[rng.integers(0, 3, 60)]
    made["income"] = made["age"] * 100.0 + rng.normal(size=60)
    made["outcome"] = np.where(made["age"] > 50, "ill", "well")
    people = made[["id", "age", "job", "income"]]
    for name in ("people", "others", "new", "held-out"):
        people.to_csv(folder / f"{name}.csv", index=False)
    made[["patient", "age", "job", "outcome"]].to_csv(folder / "visits.csv", index=False)
    sales = made[["age", "job", "income", "day"]]
    sales.set_axis(["age", "job", "total", "day"], axis=1).to_csv(folder / "sales.csv", index=False)
    made[["id", "job", "income", "day"]].set_axis(
        ["Invoice ID", "Branch", "Total", "Order Date"], axis=1
    ).to_csv(folder / "invoices.csv", index=False)
    for name in ("rows", "results"):
        (folder / name).mkdir()
    X, y = rng.normal(size=(60, 4)), rng.integers(0, 2, 60) * 2 - 1
    for name in (
        "rows.svm",
        "rows/1.svm",
        *(f"{n}.libsvm" for n in ("data", "train", "test", "new")),
    ):
        dump_svmlight_file(X, y, str(folder / name), zero_based=False)
    np.savetxt(folder / "weights.txt", np.ones(60))
    for name in ("results.csv", "before.csv", "results/plan.csv"):
        shutil.copy(ROOT / "tests/fixtures/results.csv", folder / name)
    keys = ['dataset = "breast_cancer"', 'method = "rf"', "options.lam = 1", "seed = [0, 1]"]
    # nothing is chosen of the inputs, which takes most of the time
    keys += ['options.kernel = "gaussian"', 'options.scaling = "standard"']
    keys += ['options.metric = "none"']
    (folder / "plan.toml").write_text("\n".join(["[[run]]", *keys]))
    train = "rfx train --method rf --data people.csv --target income --ignore id --loss squared"
    inputs = "--n-features 50 --kernel gaussian --scaling standard --metric none"
    run(f"{train} {inputs} --no-baseline --model m.npz", folder)


def run(line, out):
    """Run a line of a shell block; redirected output is written to the folder `out`."""
    for pattern, other in STAND_INS.items():
        line = re.sub(pattern, other, line)
    found = shlex.split(line, comments=True)
    arguments = words(line)
    done = CliRunner().invoke(cli, arguments)
    assert done.exit_code == 0, (arguments, done.output, done.exception)
    if ">" in found:
        (out / found[found.index(">") + 1]).write_bytes(done.stdout_bytes)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted({name for name, _ in blocks("sh")} - {"README.md"}))
def test_shell_blocks_run(name, tmp_path, monkeypatch):
    """The blocks of a page are one session, in a folder with the files that the pages name."""
    monkeypatch.chdir(tmp_path)
    files_of_the_pages(tmp_path)
    block_lines = [
        line.strip()
        for own, block in blocks("sh")
        if own == name
        for line in block.replace("\\\n", " ").splitlines()
        if line.strip() and not line.startswith("#")
    ]
    for line in block_lines:
        if not line.startswith(tuple(NOT_RUN)) and "--scheduler tcp:" not in line:
            assert line.startswith("rfx "), line
            run(line, tmp_path)


@pytest.mark.slow
def test_the_pipes_work(houses):
    """The page is one session of bash."""
    page = "".join(block for name, block in blocks("bash") if name == "docs/pipes.md")
    rfx = f'rfx() {{ {shlex.quote(sys.executable)} -m rfx "$@"; }}\n'
    done = subprocess.run(
        ["bash", "-e", "-o", "pipefail", "-c", rfx + page],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "R2  " in done.stdout and "3,000 rows x 17 inputs" in done.stdout


@pytest.mark.parametrize("name, text", [block for block in blocks("toml") if "[[run]]" in block[1]])
def test_plans_in_the_documents_are_read(name, text, tmp_path):
    (tmp_path / "p.toml").write_text(text)
    whole, quick = plan.load(tmp_path / "p.toml"), plan.load(tmp_path / "p.toml", quick=True)
    assert 0 < len(quick.runs) < len(whole.runs)


@pytest.mark.parametrize(
    "entry", [one for one in NUMBERS if "document" in one], ids=lambda entry: entry["command"]
)
def test_the_quick_numbers_are_those_of_the_documents(entry):
    """`make docs-numbers` recomputes them; this test checks that the document has them."""
    for number in entry["numbers"]:
        assert number["text"] in DOCS[entry["document"]]
        assert number["field"] in results.COLUMNS and number["within"] > 0
        # an accuracy may be written as an error, and in percent
        ways = [
            scale * share for scale in (1, 100) for share in (number["value"], 1 - number["value"])
        ]
        decimals = len(number["text"].partition(".")[2])
        assert number["text"].replace(",", "") in {f"{way:.{decimals}f}" for way in ways}


def generated(entry):
    """Whether a command's data set is generated, not fetched."""
    given = words(entry["command"])
    return not registry.get(given[given.index("--data") + 1]).files


@pytest.mark.slow
@pytest.mark.parametrize(
    "entry",
    [one for one in NUMBERS if generated(one) and "linear-selection" not in one["command"]],
    ids=lambda entry: entry["command"],
)
def test_the_quick_numbers_of_generated_data_are_still_so(entry):
    """A changed default is noticed here; `make docs-numbers` also recomputes those for data sets
    that must be fetched, and one that takes half a minute.
    """
    assert all(
        same for same, _ in docs_numbers.compare(entry, docs_numbers.row_of(entry["command"]))
    )


@pytest.mark.slow
def test_tables_in_documents_are_those_of_the_rows_beside_them():
    made = {
        name: docs_tables.renewed(text) for name, text in DOCS.items() if "<!-- rfx table" in text
    }
    assert made and all(text == DOCS[name] for name, text in made.items())


@pytest.mark.slow
def test_the_readme_counts_the_claims_of_each_paper():
    for text in (README, DOCS["docs/results.md"]):
        assert docs_tables.counted(text) == text


def test_rows_of_a_plan_run_in_part_are_added_to_those_kept(tmp_path):
    """Of each run the newest row that succeeded is kept, else the newest, with its trace."""

    def run_in_part(name, *rows):
        path = tmp_path / name
        for key, created, status in rows:
            row = {"dataset": "cpu", "method": "rf", "params": {"label": "a, b"}, "message": name}
            results.append(path, row | {"key": key, "created": created, "status": status})
            results.append_steps(results.trace_path(path), key, [{"objective": 1.0}])
        docs_tables.keep(path, kept)
        return path

    kept = tmp_path / "rows" / "t.csv"
    first = run_in_part("first.csv", ("a", "2026-01-01", "ok"), ("b", "2026-01-01", "failed"))
    run_in_part("second.csv", ("a", "2026-01-02", "failed"), ("b", "2026-01-02", "ok"))
    before = [path.read_bytes() for path in (kept, results.trace_path(kept))]
    docs_tables.keep(first, kept)
    assert [path.read_bytes() for path in (kept, results.trace_path(kept))] == before
    assert {row["key"]: row["message"] for row in results.read(kept)} == {
        "a": "first.csv",
        "b": "second.csv",
    }
    assert results.read_steps(results.trace_path(kept)).keys() == {"a", "b"}


def named(document):
    """What the first column of the document's tables names in code."""
    return {
        word
        for line in DOCS[document].splitlines()
        if line.startswith("| `")
        for word in re.findall(r"`([^`]+)`", line.split(" | ")[0])
    }


@pytest.mark.parametrize(
    "document, names",
    [
        ("docs/results-file.md", results.COLUMNS),
        ("docs/plans.md", (*plan.FIELDS, "options.NAME")),
        ("docs/methods.md", methods.names()),
    ],
)
def test_a_table_describes_every_column_field_and_method(document, names):
    assert set(names) <= named(document)


def test_every_room_is_described():
    built = DOCS["docs/architecture.md"]
    for path in (ROOT / "rfx").iterdir():
        if path.is_dir() and (path / "__init__.py").exists():
            assert f"`rfx/{path.name}/`" in built, path.name
        elif path.suffix == ".py" and not path.name.startswith("_"):
            assert f"`{path.name}`" in built or f"`rfx/{path.name}`" in built, path.name
