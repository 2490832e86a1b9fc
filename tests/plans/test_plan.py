"""Plans: grids, settings, filters, the small form, errors; every plan that rfx contains is
valid.
"""

import json
from dataclasses import replace

import pytest

from rfx import env, papers
from rfx.data import registry
from rfx.data.reading import Reading
from rfx.errors import UsageError
from rfx.papers.yen2014 import tables
from rfx.plans import plan
from rfx.records import keys
from rfx.records.run import Run

GRID = """
title = "a title"
table = "yen2014-table1"
[defaults]
split = "yen2014"
options.kernel = ["gaussian", "perceptron"]
[[run]]
dataset = ["cpu", "census"]
method = "rf"
label = ["paper", "tuned"]
options.n_features = 100
options.lam = [1, 10]
[[set]]
when = {label = "tuned", kernel = "gaussian"}
options.gamma = "tuned"
[[set]]
when = {dataset = "census"}
options.n_features = 50
seed = 3
[[skip]]
when = {label = "tuned", kernel = "perceptron"}
[quick]
keep = {dataset = "census"}
[[quick.set]]
options.n_features = 5
[[quick.skip]]
when = {lam = [1, 7]}
"""


@pytest.fixture
def write(tmp_path):
    def write(text):
        path = tmp_path / "p.toml"
        path.write_text(text)
        return path

    return write


def test_a_plan_may_have_the_long_names_of_methods(write):
    text = GRID.replace('method = "rf"', 'method = ["random-features", "random-binning"]')
    text = text.replace("n_features = 100", "task = 'binary'").replace("n_features = 50", "lam = 2")
    text += "[[skip]]\nwhen = {method = 'random-binning'}\n"
    loaded = plan.load(write(text.replace("options.n_features = 5\n", "seed = 5\n")))
    assert {run.method for run in loaded.runs} == {"rf"}
    assert loaded.only(["method=random-features"]).runs == loaded.runs


def test_grid_set_and_skip(write):
    loaded = plan.load(write(GRID))
    assert (loaded.name, loaded.title, loaded.table) == ("p", "a title", "yen2014-table1")
    assert len(loaded.runs) == 2 * 2 * 2 * 2 - 4
    first = loaded.runs[0]
    options = {"kernel": "gaussian", "n_features": 100, "lam": 1}
    assert first == Run(dataset="cpu", split="yen2014", method="rf", label="paper", options=options)
    for run in loaded.runs:
        assert run.options["n_features"] == (50 if run.dataset == "census" else 100)
        assert run.seed == (3 if run.dataset == "census" else 0)
        assert ("gamma" in run.options) == (run.label == "tuned")
        assert Run.of(json.loads(json.dumps(run.as_dict()))) == run

    small = plan.load(write(GRID), quick=True)
    assert small.name == "p-quick"
    assert {(run.dataset, run.options["n_features"], run.options["lam"]) for run in small.runs} == {
        ("census", 5, 10)
    }


def test_only(write):
    loaded = plan.load(write(GRID))
    assert {run.dataset for run in loaded.only(["dataset=cpu"]).runs} == {"cpu"}
    assert loaded.only(["options.lam=10"]).runs == loaded.only(["lam=10"]).runs
    chosen = loaded.only(["lam=10.0", "kernel=gaussian", "label=paper,tuned"]).runs
    assert {(run.options["lam"], run.options["kernel"]) for run in chosen} == {(10, "gaussian")}
    assert len(loaded.only(["dataset=cpu", "dataset=census"]).runs) == len(loaded.runs)
    assert len(loaded.only(["seed=3"]).runs) == len(loaded.runs) / 2


SPHERES = '[[run]]\ndataset = ["sphere:n=10000,d=5", "sphere:n=200,d=5", "cpu"]\nmethod = "rf"'


@pytest.mark.parametrize(
    "filters, names",
    [
        (["dataset=sphere:n=10000,d=5"], ["sphere:n=10000,d=5"]),
        (["dataset=cpu", "dataset=sphere:n=200,d=5"], ["sphere:n=200,d=5", "cpu"]),
    ],
)
def test_only_takes_values_with_commas_and_equals_signs(write, filters, names):
    assert [run.dataset for run in plan.load(write(SPHERES)).only(filters).runs] == names


@pytest.mark.parametrize(
    "text, filters, message",
    [
        (GRID, ["dataset=cpux"], r"no run of plan p has this value \(available: census, cpu\)"),
        (GRID, ["datset=cpu"], "no run of plan p has this field .available: dataset, gamma"),
        (GRID, ["cpu"], "expected NAME=VALUE"),
        (GRID, ["dataset=cpu", "n_features=50"], "no run of plan p matches all of the filters"),
        (SPHERES, ["dataset=sphere:n=3,d=5"], "no run of plan p has this value"),
    ],
)
def test_filters_that_match_nothing_are_refused(write, text, filters, message):
    loaded = plan.load(write(text))
    with pytest.raises(UsageError, match=message):
        loaded.only(filters)


SOURCES = """
[sources]
lam = "printed: section 5"
"tuned/lam" = "ours"
"census/n_features" = "authors' program"
"rf/kernel" = "held-out rows: a command"
"""


def test_sources_of_the_values(write):
    loaded = plan.load(write(GRID + SOURCES))
    assert loaded.runs == plan.load(write(GRID)).runs, "they change no run"
    for run in loaded.runs:
        tuned, census = run.label == "tuned", run.dataset == "census"
        assert loaded.source(run, "lam") == ("ours" if tuned else "printed: section 5")
        assert loaded.source(run, "n_features") == ("authors' program" if census else None)
        assert loaded.source(run, "kernel") == "held-out rows: a command"
        chosen = loaded.source(run, "gamma")
        assert chosen == ("held-out rows: chosen in each run" if tuned else None)
    assert plan.load(write(GRID + SOURCES), quick=True).sources == loaded.sources


TABLE = """
[[run]]
dataset = "people.csv"
method = "rf"
seed = [0, 1]
target = "income"
ignore = ["city", "zip, code"]
id = "name"
[[set]]
when = {seed = 1}
missing = "median"
"""


def test_a_table_is_read_as_the_plan_says(tmp_path, write):
    (tmp_path / "people.csv").write_text("name,city,income\n")
    first, second = plan.load(write(TABLE)).runs
    columns = ("city", "zip, code", "name")
    assert first.reading == Reading(target="income", ignore=columns)
    assert second.reading == Reading(target="income", ignore=columns, missing="median")
    assert first.told() == {"target": "income", "ignore": 'city,"zip, code",name'}
    assert Run.of(json.loads(json.dumps(second.as_dict()))) == second
    same_seed = replace(second, seed=0)
    assert keys.key(first) != keys.key(same_seed), "how a table is read is part of the run"
    as_text = TABLE.replace('["city", "zip, code"]', "'city,\"zip, code\"'")
    assert plan.load(write(as_text)).runs == [first, second]
    assert plan.load(write(TABLE)).only(["missing=median"]).runs == [second]
    plain = TABLE.replace('target = "income"\n', "").replace('id = "name"\n', "")
    plain = plain.replace('ignore = ["city", "zip, code"]\n', "")
    assert plan.load(write(plain)).runs[0].reading is None, "the key of before"


ONCE = """
[defaults]
seed = [0, 1, 2]
options.scaling = "minmax01"
options.kernel = "gaussian"
options.metric = "none"
[[run]]
dataset = "a.libsvm"
test = "b.libsvm"
method = "kernel"
options.gamma = 0.5
options.lam = [1, 10]
"""


def test_one_seed_where_nothing_is_random(tmp_path, write):
    for name in "ab":
        (tmp_path / f"{name}.libsvm").write_text("1 1:1\n")
    loaded = plan.load(write(ONCE))
    assert [(run.seed, run.options["lam"]) for run in loaded.runs] == [(0, 1), (0, 10)]
    (note,) = loaded.notes
    assert note.startswith("kernel on ") and note.endswith("one seed is run; 4 runs skipped")
    for before, after in [
        ('method = "kernel"', 'method = "rf"'),
        ("options.gamma = 0.5", 'options.gamma = "median"'),
        ("options.lam = [1, 10]", 'options.lam = [1, "validation"]'),
        ('options.scaling = "minmax01"', 'options.scaling = "auto"'),
        ('options.metric = "none"', 'options.metric = "diagonal"'),
        ("options.gamma = 0.5", 'options.gamma = 0.5\noptions.solver = "libsvm"'),
        ('test = "b.libsvm"', "holdout = 0.2"),
        ('test = "b.libsvm"', "cv = 2"),
        ('test = "b.libsvm"', 'split = "80/20"'),
        ('"a.libsvm"\ntest = "b.libsvm"', '"sphere:n=100,d=3"'),
        ('"a.libsvm"\ntest = "b.libsvm"', '"breast_cancer"'),
    ]:
        assert before in ONCE
        runs = plan.load(write(ONCE.replace(before, after))).runs
        assert {run.seed for run in runs} == {0, 1, 2}, after


RUN = '[[run]]\ndataset = "cpu"\nmethod = "rf"\n'


@pytest.mark.parametrize(
    "text, message",
    [
        ("", "there is no .*run"),
        ("x = [", "is not a TOML file"),
        ("sources = 3" + GRID, r"\[sources\] must be a table"),
        (RUN + "target = 'y'", "target: cpu is not a table with named columns"),
        (RUN + "missing = 'zero'", "--missing is 'zero'; it must be one of refuse, mean, median"),
        (RUN + "target = 3", "target: --target is 3; it must be text"),
        ("colour = 1\n" + RUN, "the plan has the unknown key 'colour'"),
        (RUN + "mehtod = 'x'", r"\[\[run\]\] 1 has the unknown key 'mehtod'; did you mean method"),
        (RUN.replace('"rf"', '"rff"'), "method 'rff' is unknown; did you mean rf"),
        (RUN.replace('"rf"', '"random-feature"'), "is unknown; did you mean random-features or"),
        ('[[run]]\ndataset = "cpu"', r"\[\[run\]\] 1 has no method"),
        (RUN + "seed = 'x'", "seed: --seed is 'x'; it must be a whole number"),
        (RUN + "split = 3", "split: --split is 3; it must be text"),
        (RUN + "timeout = true", "timeout: --timeout is True; it must be a number"),
        (RUN + "options.lam = []", r"lam = \[\]: must be a value"),
        (RUN + "options.lam = {a = 1}", "lam = .*must be text, a number, true or false"),
        (RUN + "options.lam = -1", "--lam is -1; it must be"),
        (RUN + "options.lamda = 1", "method rf has no option --lamda"),
        (RUN + "options = 1", "options must be a table"),
        (
            RUN + "[[set]]\nwhen = {coluor = 1}\nseed = 1",
            "set.*1 when has the unknown key 'coluor' .known: dataset, method, seed",
        ),
        (RUN + "[[set]]\noptions.lam = [1, 2]", "lam is a list; only"),
        (RUN + "[[skip]]\nseed = 1", "skip.*1 has the unknown key 'seed'"),
        (RUN + "[[skip]]", "every run is skipped"),
        (RUN + "[[skip]]\nwhen = {dataset = 'cpu'}", "every run is skipped"),
        (RUN + "[quick]\nonly = 1", "quick.* has the unknown key 'only'"),
        ("run = 3", r"run must be an array of tables"),
        (RUN + "options.seed = 1", "options.seed: the seed is a field of the run; write seed = 1"),
        (RUN + "repetitions = 0", "--repetitions is 0; it must be a whole number 1 or more"),
        (RUN + "repetitions = [1, 2]", r"repetitions = \[1, 2\]: must be a value"),
        (RUN + "options.n_grids = 3", "method rf has no option --n-grids"),
        (RUN + "options.max_iter = 'validation'", "method rf of the plan: --max-iter is 'valid"),
        (
            RUN + "options.lam = 1\noptions.lam_path = '9:1:3'",
            "--lam is 1.0, which has no effect with --lam-path",
        ),
        (
            RUN.replace("cpu", "cup"),
            "'cup' is not a file, and there is no data set called 'cup'; did you mean cpu",
        ),
        (RUN + "test = 'none.libsvm'", "'none.libsvm' is not a file"),
        (
            RUN + "split = '1.5'",
            "split 1.5 is not a fraction of the rows to train on; use a number",
        ),
        (RUN + "split = 'wu2061'", "data set cpu has no split 'wu2061'; it has yen2014, 80/20"),
        (RUN + "options.lam = " + "[" * 20_000, "is not a TOML file"),
        (
            RUN
            + "".join(
                f"options.{name} = [{'1,' * 1000}]\n"
                for name in ("lam", "tol", "gamma", "n_features")
            ),
            (
                r"\[\[run\]\] 1 expands to 1,000,000,000,000 runs, which exceeds the maximum of"
                r" 100,000 per plan"
            ),
        ),
        (
            RUN + "repetitions = 60000\n" + RUN + "repetitions = 60000",
            r"\[\[run\]\] 2 expands to 60,000 runs",
        ),
    ],
    ids=lambda value: value[-60:],
)
def test_refusals_name_the_file_and_the_key(write, text, message):
    path = write(text)
    with pytest.raises(UsageError, match=message) as refusal:
        plan.load(path)
    assert str(refusal.value).startswith(str(path)) and "\n" not in str(refusal.value).strip()


def test_fixed_threads_tell_runs_apart_up_to_the_cores_there_are(write):
    path = write(RUN.replace('"rf"', '"rf"\nthreads = [1, 2, 4]\nfixed_threads = [true, false]'))
    env.set_threads(2)
    runs = plan.load(path).runs
    assert [run.threads for run in runs if run.fixed_threads] == [1, 2]
    assert len([run for run in runs if not run.fixed_threads]) == 1, (
        "threads alone can't be written another run"
    )
    assert {plan.describe(run) for run in runs} == {
        "cpu rf threads=1",
        "cpu rf threads=2",
        "cpu rf",
    }
    env.set_threads(16)
    assert len({keys.key(run) for run in plan.load(path).runs}) == 4


def test_repetitions_are_seeds(write):
    seeds = lambda text: [run.seed for run in plan.load(write(text)).runs]
    assert seeds(RUN + "repetitions = 3") == [0, 1, 2]
    assert seeds("[defaults]\nrepetitions = 2\n" + RUN) == [0, 1]
    assert seeds("[defaults]\nrepetitions = 2\n" + RUN + "seed = 7") == [7], "a run says otherwise"
    assert seeds("[defaults]\nseed = 7\n" + RUN + "repetitions = 2") == [0, 1]


def test_files_are_looked_for_beside_the_plan_then_in_the_current_folder(tmp_path, monkeypatch):
    (tmp_path / "plans").mkdir()
    (tmp_path / "plans" / "p.toml").write_text(
        '[[run]]\ndataset = ["a.libsvm", "b.libsvm"]\nmethod = "rf"\n'
    )
    for name in ("plans/a.libsvm", "a.libsvm", "b.libsvm"):
        (tmp_path / name).write_text(f"1 1:{len(name)}\n-1 1:2\n")
    monkeypatch.chdir(tmp_path)
    assert [run.dataset for run in plan.load("plans/p.toml").runs] == ["plans/a.libsvm", "b.libsvm"]
    monkeypatch.chdir(tmp_path / "plans")
    with pytest.raises(UsageError, match="'b.libsvm' is not a file"):
        plan.load("p.toml")
    (tmp_path / "plans" / "b.libsvm").write_text("1 1:8\n-1 1:2\n")
    again = plan.load("p.toml").runs
    assert [run.dataset for run in again] == ["a.libsvm", "b.libsvm"]
    assert keys.key(again[0]) != keys.key(again[1])
    monkeypatch.chdir(tmp_path)
    assert [keys.key(run) for run in plan.load("plans/p.toml").runs] == [
        keys.key(replace(run, dataset=f"plans/{run.dataset}")) for run in again
    ]


def test_the_example_has_every_part_of_the_format(write):
    loaded = plan.load(write(plan.example()))
    assert (
        len(loaded.runs) == 2 * 3 * 2 + 3
        and len(plan.load(write(plan.example()), quick=True).runs) == 5
    )
    text = plan.example()
    for part in (
        "title",
        "description",
        "table",
        "[defaults]",
        "[[run]]",
        "[[set]]",
        "[[skip]]",
        "[quick]",
        "when",
        "repetitions",
    ):
        assert part in text
    assert all(
        f"{name} = " in text
        for name in plan.FIELDS
        if name
        not in ("zero_based", "fixed_threads", "curve", "timings", "groups", "time", "device")
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", papers.plans())
def test_plans_that_come_with_rfx(name):
    known = papers.plans()
    loaded = plan.load(name, known=known)
    assert loaded.title and loaded.table in papers.tables()
    assert all(text.startswith(plan.SOURCES) for text in loaded.sources.values())
    assert len({keys.key(run) for run in loaded.runs}) == len(loaded.runs)
    for run in loaded.runs:
        dataset, _, parameters = run.dataset.partition(":")
        info = registry.get(dataset)
        assert info.name == dataset and (info.builtin or not parameters)
        assert run.split is None or run.split in info.splits
    small = plan.small(name, known)
    assert small is None or 0 < len(small.runs) <= len(loaded.runs)
    assert small is None or plan.load(f"{name}-quick", known=known) == small


@pytest.mark.parametrize("table", [tables.TABLE1, tables.TABLE2], ids=["1", "2"])
def test_every_run_of_the_plans_has_a_place_in_its_table(table):
    for run in plan.load(table.builder.name, known=papers.plans()).runs:
        assert run.dataset in {data.name for data in table.data}
        assert run.method in tables.METHODS and run.options["kernel"] in tables.KERNELS
        assert run.label in {*table.settings, "inference", "published"}
