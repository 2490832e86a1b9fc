"""rfx reproduce: what it announces and skips, and that it resumes; every plan states its cost."""

import subprocess
import sys
from pathlib import Path

import pytest
from shell import called

from rfx import env, papers
from rfx.errors import LockedError
from rfx.plans import catalogue, plan
from rfx.records import results
from rfx.runs import runner

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
PLAN = """
title = "Small"
[defaults]
dataset = "breast_cancer"
method = "rf"
options.kernel = "gaussian"
options.scaling = "standard"
options.metric = "none"
options.lam = 1
[[run]]
seed = [0, 1]
options.n_features = {size}
{quick}
"""
COSTS = """# of this machine
plan,form,processor_seconds,memory_mb,basis,hours
one,quick,30,100,measured,
one,full,120,200,measured,
long,full,1e5,100,estimated,yes
new,full,10,400,estimated,
"""


@pytest.fixture
def folder(tmp_path):
    """A paper with three plans: one has a small form, long takes hours."""
    for name, size, quick in (
        ("one", 20, "[quick]\nkeep = {seed = 0}"),
        ("long", 30, ""),
        ("new", 40, ""),
    ):
        (tmp_path / f"{name}.toml").write_text(PLAN.format(size=size, quick=quick))
    (tmp_path / "costs.csv").write_text(COSTS)
    plans = {f"p-{name}": tmp_path / f"{name}.toml" for name in ("one", "long", "new")}
    return catalogue.Folder("p", "A paper", plans, {}, {}, tmp_path / "costs.csv")


def by_name(steps):
    return {step.plan.name: step for step in steps}


def test_what_lies_ahead(folder, tmp_path):
    quick = runner.steps_ahead([folder], "quick", tmp_path)
    assert [(step.plan.name, len(step.todo), step.path.name) for step in quick] == [
        ("p-one-quick", 1, "p-one-quick.csv")
    ]
    assert quick[0].cost == runner.Cost(30, 100, "measured") and quick[0].seconds == 30
    most, full = (
        by_name(runner.steps_ahead([folder], form, tmp_path)) for form in ("most", "full")
    )
    assert set(most) == set(full) == {"p-one", "p-long", "p-new"}
    assert most["p-long"].without == "it takes hours; use make reproduce-full"
    assert full["p-long"].without == ""
    assert most["p-one"].seconds == 120
    assert runner.minutes(list(most.values()), 1) == pytest.approx((120 + 10) / 60)


def test_it_says_so_beforehand(folder, tmp_path, free_memory):
    free_memory(150.0)
    env.set_threads(2)
    head, *lines, total = runner.announced(runner.steps_ahead([folder], "full", tmp_path), 2)
    said = "\n".join(lines)
    assert "p-one " in said and "skipped: it needs 200 MB of memory, but 150 MB are free" in said
    assert "p-long " in said and "1,666.7 min    100 MB  estimated: breast_cancer" in said
    assert total.startswith("2 runs, 2 at a time: about 833 minutes")
    assert "skipped" in said.partition("p-new")[2]


def test_a_plan_whose_data_no_command_can_get_is_left_out(folder, tmp_path, monkeypatch):
    monkeypatch.delenv("RFX_MIRROR", raising=False)
    monkeypatch.setenv("RFX_CACHE", str(tmp_path / "cache"))
    steps = {
        name: by_name(runner.steps_ahead([papers.folder(name)], "quick", tmp_path))
        for name in ("dai2014", "yen2014")
    }
    left = steps["dai2014"]["dai2014-fig1-cifar10-quick"]
    assert left.without == "its data must be obtained by hand; see rfx fetch cifar10-features"
    assert steps["dai2014"]["dai2014-fig1-qm7-quick"].without == ""
    # some of its data sets have URLs
    some = steps["yen2014"]["yen2014-table1-quick"]
    assert some.by_hand and not some.without
    monkeypatch.setenv("RFX_MIRROR", str(tmp_path))
    for role in ("train", "test"):
        (tmp_path / f"cifar10-features.{role}").write_text("1 1:1\n")
    again = by_name(runner.steps_ahead([papers.folder("dai2014")], "quick", tmp_path))
    assert again["dai2014-fig1-cifar10-quick"].without == ""


def test_it_resumes_and_keeps_the_code(folder, tmp_path):
    said = []
    steps = runner.steps_ahead([folder], "quick", tmp_path)
    assert runner.run_steps(steps, 1, said.append) == 0
    again = runner.steps_ahead([folder], "quick", tmp_path)
    assert [(step.todo, step.seconds) for step in again] == [([], 0)]
    assert "all is done" in runner.announced(again, 1)[1]
    (row,) = results.read(tmp_path / "p-one-quick.csv")
    assert row["status"] == "ok"
    with results.exclusive(tmp_path / "p-one-quick.csv"), pytest.raises(LockedError):
        runner.run_steps(again, 1, said.append)


def test_papers_are_cited_as_texts_do():
    other = catalogue.Folder("p", "A. Reader: A paper, 1999 and 2001.", {}, {}, {}, None)
    assert [folder.citation for folder in (*papers.folders(), other)] == [
        "Dai et al. 2014",
        "Yen et al. 2014",
        "Sinha and Duchi 2016",
        "Wu et al. 2016",
        "Reader 2001",
    ]


@pytest.mark.parametrize("paper", papers.names())
def test_costs_are_of_plans_that_there_are(paper):
    folder = papers.folder(paper)
    known = runner.costs(folder)
    small = [
        name
        for name in folder.plans
        if not name.endswith("-full") and plan.small(name, folder.plans)
    ]
    wanted = {(name, "full") for name in folder.plans} | {(name, "quick") for name in small}
    assert set(known) == wanted
    assert all(cost.seconds > 0 and cost.memory_mb > 100 and cost.basis for cost in known.values())


def test_the_small_forms_are_quick_by_their_costs():
    quick = [
        cost
        for folder in papers.folders()
        for (_, form), cost in runner.costs(folder).items()
        if form == "quick"
    ]
    assert sum(cost.seconds for cost in quick) / 2 < 15 * 60
    assert max(cost.memory_mb for cost in quick) < 8000


def test_command(tmp_path):
    words = "reproduce --quick --dry-run --paper sinha2016 --jobs 2 --results".split()
    said = called(*words, tmp_path).stdout
    names = {f"sinha2016-{name}-quick" for name in ("table1", "fig1", "fig2", "joint")}
    assert names <= set(said.split()) and "2 at a time" in said
    assert list(tmp_path.iterdir()) == []
    assert "no such paper" in str(called("reproduce", "--paper", "x").exception)


CRON = """\
PATH=/usr/bin:/bin
cd {folder} || exit 1
{rfx} run plan.toml --results results.csv --log rfx.log --quiet 2>>rfx.log; code=$?
test $code -eq 0 -o $code -eq 4 || echo "rfx run plan.toml: exit code $code, see $PWD/rfx.log"
exit $code
"""


def cron(tmp_path):
    """The script of docs/report.md, run as by cron: an environment with little more than HOME, sh,
    no terminal, no input.
    """
    script = tmp_path / "rfx-cron.sh"
    script.write_text(CRON.format(folder=tmp_path, rfx=f"{sys.executable} -m rfx"))
    known = {"HOME": str(tmp_path), "LOGNAME": "nobody", "SHELL": "/bin/sh"}
    # with an empty cache everything would be compiled again
    known |= {"PYTHONPATH": str(ROOT), "RFX_CACHE": str(env.cache_dir())}
    return subprocess.run(
        ["/bin/sh", "-c", f"/bin/sh {script}"],
        env=known,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        start_new_session=True,
        cwd="/",
    )


def test_as_cron_runs_it(tmp_path):
    """No output if everything is done or another run is working on it, so that cron sends no mail;
    a line if rows failed.
    """
    one = PLAN.format(size=20, quick="").replace("[0, 1]", "0")
    (tmp_path / "plan.toml").write_text(one)
    done = cron(tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    log = (tmp_path / "rfx.log").read_text().splitlines()
    assert len(log) >= 3
    assert all(line[:2] == "20" and line[10] in "T " for line in log), "every line has its time"
    assert len(results.read(tmp_path / "results.csv")) == 1
    with results.exclusive(tmp_path / "results.csv"):
        locked = cron(tmp_path)
    assert (locked.returncode, locked.stdout) == (4, "")
    (tmp_path / "plan.toml").write_text(
        one + '[[run]]\nmethod = "kernel"\ntimeout = 0.001\noptions.solver = "rfx"\n'
    )
    failed = cron(tmp_path)
    said = f"rfx run plan.toml: exit code 3, see {tmp_path}/rfx.log\n"
    assert (failed.returncode, failed.stdout, failed.stderr) == (3, said, "")


def test_the_recipe_is_the_one_of_the_documents():
    text = (ROOT / "docs" / "report.md").read_text()
    lines = [line.replace("{rfx}", "rfx") for line in CRON.splitlines() if "{folder}" not in line]
    assert [line for line in lines if line not in text] == []


@pytest.fixture
def a_paper(tmp_path, monkeypatch, add_paper):
    """A paper whose plan trains within a second, with a table and a figure of its rows."""
    folder = tmp_path / "papers" / "nobody1998"
    (folder / "plans").mkdir(parents=True)
    (folder / "__init__.py").write_text('"""A. Nobody: Nothing, NIPS 1998."""\n')
    run = '[[run]]\ndataset = "sphere:n=200,d=3"\nmethod = "rf"\noptions.lam = 1\n'
    run += 'options.kernel = "gaussian"\noptions.scaling = "standard"\noptions.metric = "none"\n'
    (folder / "plans" / "fig1.toml").write_text(
        f"{run}options.n_features = [8, 16]\n[quick]\nkeep = {{n_features = 8}}\n"
    )
    (folder / "plans" / "fig1-full.toml").write_text(f"{run}options.n_features = 32\n")
    (folder / "tables.py").write_text(
        "from rfx.reporting.tables import Table\nTABLES = {'fig1': lambda rows, setting=None:"
        " Table('fig1', f'{len(rows)} rows', [], [], [])}\n"
    )
    (folder / "figures.py").write_text(
        "from rfx.reporting.figures import Chart, Curve, Panel\n"
        "def fig1(rows, setting=None):\n"
        "    return Chart('fig1', [], [[Panel('p', 'x', 'y', [Curve([1, 2], [3, 4], {}, 'a')])]])\n"
        "FIGURES = {'fig1': fig1}\n"
    )
    add_paper(folder)
    monkeypatch.chdir(tmp_path)


def test_one_name_runs_its_plan_prints_its_table_and_draws_its_figure(a_paper):
    lines = called("reproduce", "nobody1998-fig1", "--dry-run").stdout.splitlines()
    assert len(lines) == 3 and lines[1].split()[:3] == ["nobody1998-fig1", "2", "0.2"]
    assert lines[2].startswith("2 runs, 1 at a time") and not Path("results").exists()
    quick = called("reproduce", "nobody1998-fig1-quick")
    assert quick.return_value == 0 and "1 rows" in quick.stdout
    assert {"nobody1998-fig1-quick.csv", "nobody1998-fig1-quick.png"} <= {
        path.name for path in Path("results").iterdir()
    }
    whole = called("reproduce", "nobody1998-fig1", "--full")
    assert "3 rows" in whole.stdout and len(results.read("results/nobody1998-fig1.csv")) == 3
    refused = str(called("reproduce", "nobody1998-fig2").exception)
    assert "no table or figure 'nobody1998-fig2'" in refused and "nobody1998-fig1" in refused
