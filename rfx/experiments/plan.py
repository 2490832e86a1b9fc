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
the training rows too), fixed_threads (threads are what the run is about: they tell it from other runs, and runs with more
threads than there are cores are left out), and the dict options, which holds what the method is given.
"""

import itertools
import tomllib
from dataclasses import dataclass, field
from importlib.resources.abc import Traversable
from pathlib import Path

from rfx import env, methods
from rfx.errors import UsageError
from rfx.experiments import catalogue, keys

FIELDS = (
    "dataset", "split", "test", "method", "seed", "threads", "label", "timeout", "zero_based", "train_score", "fixed_threads",
)  # fmt: skip
_TOP = ("title", "description", "table", "defaults", "run", "set", "skip", "quick")
_QUICK = ("keep", "set", "skip")
_SHORT = (("n_features", "D"), ("n_grids", "R"), ("block_size", "R"), ("gamma", "gamma"), ("lam", "lam"))
_TYPES = {"seed": int, "threads": int, "timeout": (int, float), "zero_based": bool, "train_score": bool, "fixed_threads": bool}


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
                names = sorted({name for run in self.runs for name in _names(run)})
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
    for anything that is not understood.
    """
    known = catalogue.plans() if known is None else known
    name, path = str(name_or_path), Path(name_or_path)
    if name not in known and name.removesuffix("-quick") in known:
        name, quick = name.removesuffix("-quick"), True
    if name in known:
        path = known[name]
    elif not path.is_file():
        raise UsageError(f"{name} is neither a plan ({', '.join(known)}) nor a TOML file")
    else:
        name = path.name.removesuffix(".toml")
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} is not a TOML file: {error}") from None
    except OSError as error:
        raise UsageError(f"{path} can't be read: {error.strerror}") from None
    return _Reader(str(path)).plan(content, name, quick)


def matches(run: dict, when: dict) -> bool:
    """Does every name of `when` (a field or an option) have, in `run`, the value or one of the values given?"""
    for name, wanted in when.items():
        value = _get(run, name)
        if not any(_same(value, item) for item in (wanted if isinstance(wanted, list) else [wanted])):
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


def _names(run):
    return [name for name in run if name != "options"] + list(run["options"])


def _get(run, name):
    return run.get(name) if name in FIELDS else run["options"].get(name)


def _same(value, wanted) -> bool:
    if isinstance(wanted, str) and value is not None and not isinstance(value, (str, bool)):
        try:
            return float(wanted) == float(value)
        except ValueError:
            return False
    if isinstance(value, bool) and isinstance(wanted, str):
        return str(value).lower() == wanted.lower()
    return value == wanted and isinstance(value, bool) == isinstance(wanted, bool)


class _Reader:
    """Turns the parsed TOML of one file into a plan; every refusal names the file and the key."""

    def __init__(self, path):
        self.path = path

    def fail(self, message):
        raise UsageError(f"{self.path}: {message}")

    def plan(self, content, name, quick) -> Plan:
        self.check_names(content, _TOP, "the plan")
        for key in ("title", "description", "table"):
            if not isinstance(content.get(key, ""), str):
                self.fail(f"{key} must be text")
        defaults = self.section(content.get("defaults", {}), "[defaults]")
        tables = self.tables(content, "run")
        if not tables:
            self.fail("there is no [[run]]")
        runs = []
        for number, table in enumerate(tables, start=1):
            runs += self.grid(defaults, self.section(table, f"[[run]] {number}"), f"[[run]] {number}")
        runs = self.adjust(runs, content, "")
        small = self.quick(runs, content) if "quick" in content else None
        if quick:
            if small is None:
                self.fail("there is no [quick], so it has no small form")
            runs = small
        runs = [run for run in runs if not run.get("fixed_threads") or run.get("threads", 1) <= env.threads()]
        unique = {keys.key(run): run for run in reversed(runs)}
        runs = list(reversed(unique.values()))
        self.check_runs(runs)
        name += "-quick" if quick else ""
        return Plan(name, content.get("title", name), content.get("description", ""), content.get("table", ""), runs)

    def quick(self, runs, content):
        table = content["quick"]
        if not isinstance(table, dict):
            self.fail("quick must be a table: [quick]")
        self.check_names(table, _QUICK, "[quick]")
        keep = self.condition(table.get("keep", {}), "[quick] keep", runs)
        return self.adjust([run for run in runs if matches(run, keep)], table, "quick.")

    def check_names(self, table, known, where):
        for key in table:
            if key not in known:
                self.fail(f"{where} has the unknown key '{key}' (known: {', '.join(known)})")

    def tables(self, content, key):
        value = content.get(key, [])
        if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
            self.fail(f"{key} must be an array of tables: [[{key}]]")
        return value

    def section(self, table, where, extra=()) -> dict:
        """Check names and types of the fields of one table; lists are allowed here and refused later where they can't be."""
        if not isinstance(table, dict):
            self.fail(f"{where} must be a table")
        self.check_names(table, (*FIELDS, "options", *extra), where)
        options = table.get("options", {})
        if not isinstance(options, dict):
            self.fail(f"{where} options must be a table, such as options.lam = 1")
        fields = [(name, value, False) for name, value in table.items() if name not in ("options", *extra)]
        for name, value, option in fields + [(name, value, True) for name, value in options.items()]:
            if value == []:
                self.fail(f"{where} {name} is an empty list")
            for item in value if isinstance(value, list) else [value]:
                self.check_value(name, item, where, option)
        return table

    def check_value(self, name, value, where, option):
        kinds = (str, int, float, bool) if option else _TYPES.get(name, str)
        if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in (kinds if option else [kinds])):
            kind = {str: "text", int: "a whole number", bool: "true or false"}.get(kinds, "a number")
            self.fail(f"{where} {name} = {value!r}: must be {'text, a number, true or false' if option else kind}")

    def grid(self, defaults, table, where) -> list[dict]:
        fields = {name: value for name, value in (defaults | table).items() if name != "options"}
        options = defaults.get("options", {}) | table.get("options", {})
        for name in ("dataset", "method"):
            if name not in fields:
                self.fail(f"{where} has no {name}")
        axes = [(name, False, value) for name, value in fields.items()]
        axes += [(name, True, value) for name, value in options.items()]
        runs = []
        for values in itertools.product(*(value if isinstance(value, list) else [value] for _, _, value in axes)):
            run = {"seed": 0, "options": {}}
            for (name, option, _), value in zip(axes, values):
                (run["options"] if option else run)[name] = value
            runs.append(run)
        return runs

    def adjust(self, runs, content, prefix):
        """Apply the [[set]] tables in their order, then drop what a [[skip]] names."""
        for number, table in enumerate(self.tables(content, "set"), start=1):
            where = f"[[{prefix}set]] {number}"
            self.section(table, where, extra=("when",))
            when = self.condition(table.get("when", {}), where, runs)
            options = table.get("options", {})
            fields = {name: value for name, value in table.items() if name not in ("when", "options")}
            for name, value in [*fields.items(), *options.items()]:
                if isinstance(value, list):
                    self.fail(f"{where} {name} is a list; only [[run]] and [defaults] lay out a grid")
            runs = [run | fields | {"options": run["options"] | options} if matches(run, when) else run for run in runs]
        for number, table in enumerate(self.tables(content, "skip"), start=1):
            where = f"[[{prefix}skip]] {number}"
            self.check_names(table, ("when",), where)
            if not table.get("when"):
                self.fail(f"{where} has no when, so it would leave nothing")
            when = self.condition(table["when"], where, runs)
            runs = [run for run in runs if not matches(run, when)]
        return runs

    def condition(self, when, where, runs) -> dict:
        if not isinstance(when, dict):
            self.fail(f'{where}: when must be a table such as {{dataset = "cpu"}}')
        known = sorted({name for run in runs for name in _names(run)})
        self.check_names(when, known, f"{where} when")
        return when

    def check_runs(self, runs):
        if not runs:
            self.fail("every run is skipped, so nothing is left")
        for run in runs:
            try:
                method = methods.get(run["method"])
            except UsageError as error:
                self.fail(error)
            for name, value in run["options"].items():
                try:
                    method.converted({name: value})
                except UsageError as error:
                    self.fail(f"options.{name}: {error}")
