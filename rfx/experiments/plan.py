"""Plans: a TOML file that describes a grid of runs.

    title = "…"                     # what it is; description and table (the table it fills) are optional
    [defaults]                      # fields of every run
    split = "yen2014"
    options.scaling = "minmax01"
    [[run]]                         # a list is an axis of the grid, anything else is fixed
    dataset = ["cpu", "census"]
    method = "sparse-rf"
    options.lam = [1, 10, 100, 1000]
    [[set]]                         # after the grid is laid out: fields of the runs that match
    when = {dataset = "cpu", kernel = "gaussian"}
    options.gamma = 0.5
    [[skip]]                        # runs that are left out
    when = {kernel = "perceptron", label = "tuned"}
    [quick]                         # the small form: what is kept of the above, then its own set and skip
    keep = {dataset = "cpu"}

A run is a flat dict ("spec"): dataset, split, test, method, seed, threads, label, timeout, zero_based, train_score (score
the training rows too), curve (the error on the test rows as training goes on: in its row, or in the trace), fixed_threads (threads
are what the run is about: they tell it from other runs, and runs with more threads than there are cores are left out), trace
(keep what the solver reports step by step), cv and holdout (score on training rows that were held out: see rfx.experiments.heldout),
and the dict options, which holds what the method is given. `repetitions = 5`
stands for seed = [0, 1, 2, 3, 4]. Files are looked for beside the plan's file, then in the current folder. `example()` is a
plan with all of this that runs.
"""

import tomllib
from dataclasses import dataclass, field
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

from rfx.data import encodings
from rfx.errors import UsageError, or_near
from rfx.experiments import catalogue

FIELDS = (
    "dataset", "split", "test", "method", "seed", "threads", "label", "timeout", "zero_based", "train_score", "fixed_threads", "curve",
    "trace", "cv", "holdout",
)  # fmt: skip
_SHORT = (("n_features", "D"), ("n_grids", "R"), ("block_size", "R"), ("gamma", "gamma"), ("lam", "lam"))
# A plan is written by hand: what is larger is no plan, and reading it could take long.
_MOST_BYTES = 256 * 1024
_MOST_PARTS = 200  # of a dotted key, on which the parser's work grows as the square


@dataclass(frozen=True)
class Plan:
    """A named list of runs; `table` is the name of the table that they fill, or empty."""

    name: str
    title: str
    description: str
    table: str
    runs: list[dict] = field(default_factory=list)

    def only(self, filters) -> "Plan":
        """The runs for which every filter `name=value[,value…]` holds; one name given twice means either value.

        Raises UsageError for a name that no run has and for filters that leave nothing.
        """
        wanted = {}
        for text in filters:
            name, equals, values = text.partition("=")
            if not equals or not name:
                raise UsageError(f"--only {text}: expected NAME=VALUE, such as dataset=cpu")
            wanted.setdefault(name.strip(), []).extend(value.strip() for value in values.split(","))
        runs = self.runs
        for name, values in wanted.items():
            there = sorted({str(_get(run, name)) for run in self.runs if _get(run, name) is not None})
            if not there:
                names = sorted({name for run in self.runs for name in names_of(run)})
                raise UsageError(f"--only {name}=…: no run of plan {self.name} has it (they have {', '.join(names)})")
            if not any(matches(run, {name: values}) for run in self.runs):
                raise UsageError(f"--only {name}={','.join(values)}: no run of plan {self.name} has that (there are: {', '.join(there)})")
            runs = [run for run in runs if matches(run, {name: values})]
        if not runs:
            raise UsageError(f"--only {' --only '.join(filters)}: no run of plan {self.name} meets all of them")
        return Plan(self.name, self.title, self.description, self.table, runs)


def load(name_or_path, quick: bool = False, known: dict[str, Traversable] | None = None) -> Plan:
    """The plan of that name, or in that TOML file; its small form with `quick`, or when the name ends in `-quick`.

    known: the plans that have names, and their files; default: the general ones. Raises UsageError, with the file and the key,
    for anything that is not understood, an option that a method does not have, a data set or file that is not there.
    """
    from rfx.experiments.plan_reader import Reader

    known = catalogue.plans() if known is None else known
    name, path, folder = str(name_or_path), Path(name_or_path), None
    if name not in known and name.removesuffix("-quick") in known:
        name, quick = name.removesuffix("-quick"), True
    if name in known:
        path = known[name]
    elif not path.is_file():
        raise UsageError(f"{name} is neither a plan nor a TOML file{or_near(name, known, 'the plans are')}")
    else:
        name, folder = path.name.removesuffix(".toml"), path.parent
    return Reader(str(path), folder).plan(_content(path), name, quick)


def small(name: str, known: dict[str, Traversable]) -> Plan | None:
    """The small form of one of the known plans, None of one that has none."""
    return load(name, True, known) if "quick" in _content(known[name]) else None


def title(name: str, known: dict[str, Traversable]) -> str:
    """The title of one of the known plans; its runs are not laid out."""
    return _content(known[name]).get("title", name)


def example() -> str:
    """A plan with comments that runs: the format by what it does."""
    return (resources.files(__package__) / "example.toml").read_text(encoding="utf-8")


def _content(path) -> dict:
    """The parsed TOML of a file, perhaps a stranger's: refused before it can take long."""
    try:
        with path.open("rb") as file:
            raw = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise UsageError(f"{path} can't be read: {error.strerror}") from None
    if len(raw) > _MOST_BYTES:
        raise UsageError(f"{path} is larger than {_MOST_BYTES:,} bytes, so it is no plan")
    try:
        text = bytes(encodings.text(raw, str(path))).decode()
        for line in text.splitlines():
            ends = line.split("=")[:-1] + ([line] if line.lstrip().startswith("[") else [])
            if any(end.count(".") > _MOST_PARTS for end in ends):
                raise UsageError(f"{path}: a key has more than {_MOST_PARTS} parts")
        return tomllib.loads(text)
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not a TOML file: {error}") from None
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{path} is not a TOML file: {str(error)[:300]}") from None
    except RecursionError:
        raise UsageError(f"{path} is nested too deeply for a plan") from None
    except ValueError as error:
        # of a whole number with thousands of digits, or a date that there is not
        raise UsageError(f"{path} holds a value that can't be read: {str(error)[:100]}") from None


def matches(run: dict, when: dict) -> bool:
    """Does every name of `when` (a field or an option) have, in `run`, the value or one of the values given?"""
    for name, wanted in when.items():
        value = _get(run, name)
        for item in wanted if isinstance(wanted, list) else [wanted]:
            if _same(value, item):
                break
        else:
            return False
    return True


def describe(run: dict) -> str:
    """One short line that tells the run from its neighbours, for progress and --dry-run."""
    options = run["options"]
    words = [run["dataset"], run["method"], options.get("kernel"), run.get("label")]
    words += [f"{short}={options[name]}" for name, short in _SHORT if name in options]
    words += [f"seed={run['seed']}"] if run["seed"] else []
    words += [f"threads={run['threads']}"] if run.get("fixed_threads") else []
    return " ".join(str(word) for word in words if word)


def names_of(run: dict) -> list[str]:
    """What conditions on the run may name: its fields and its options."""
    return [name for name in run if name != "options"] + list(run["options"])


def _get(run, name):
    return run.get(name) if name in FIELDS else run["options"].get(name)


def _same(value, wanted) -> bool:
    if type(value) is type(wanted):
        return value == wanted
    if isinstance(wanted, str) and value is not None and not isinstance(value, (str, bool)):
        try:
            return float(wanted) == float(value)
        except ValueError:
            return False
    if isinstance(value, bool) and isinstance(wanted, str):
        return str(value).lower() == wanted.lower()
    return value == wanted and isinstance(value, bool) == isinstance(wanted, bool)
