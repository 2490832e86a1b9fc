"""Turns the parsed TOML of a plan into its runs, and checks all of it before anything is run."""

import itertools
import math
import os

from rfx import env, methods
from rfx.data import registry
from rfx.data.loading import SHARE
from rfx.errors import UsageError, or_near, quoted
from rfx.experiments.plan import FIELDS, Plan, matches, names_of
from rfx.records import keys

MOST_RUNS = 100_000
_MOST_WORK = 10_000_000  # comparisons of conditions with runs, some seconds
_MOST_TEXT = 4096  # characters of a value
_MOST_OPTIONS = 200
_MOST_SAID = 1000
_TOP = ("title", "description", "table", "defaults", "run", "set", "skip", "quick")
_QUICK = ("keep", "set", "skip")
_TYPES = {"seed": int, "threads": int, "timeout": (int, float), "zero_based": bool, "train_score": bool, "fixed_threads": bool,
          "trace": bool, "repetitions": int, "cv": int, "holdout": (int, float)}  # fmt: skip
_LOWEST = {"seed": 0, "threads": 1, "repetitions": 1, "timeout": 1e-3, "cv": 2, "holdout": 1e-9}
_HIGHEST = 2**63 - 1


def _values(table) -> list:
    """Everything in a table, however deep: the work that it makes for each run."""
    if isinstance(table, dict):
        return [item for value in table.values() for item in _values(value)] or [None]
    return [item for value in table for item in _values(value)] if isinstance(table, list) else [table]


class Reader:
    """Reads one file; every refusal names the file and the key. folder: where its files are looked for first, None for no such."""

    def __init__(self, path, folder=None):
        self.path, self.folder = path, folder

    def fail(self, message):
        text = " ".join(str(message).split())
        raise UsageError(f"{self.path}: {text if len(text) <= _MOST_SAID else text[:_MOST_SAID] + '…'}")

    def plan(self, content, name, quick) -> Plan:
        self.check_names(content, _TOP, "the plan")
        for key in ("title", "description", "table"):
            if not isinstance(content.get(key, ""), str):
                self.fail(f"{key} must be text")
        defaults = self.repeated(content.get("defaults", {}), "[defaults]")
        tables = self.tables(content, "run")
        if not tables:
            self.fail("there is no [[run]]")
        runs = []
        for number, table in enumerate(tables, start=1):
            where = f"[[run]] {number}"
            runs += self.grid(defaults, self.repeated(table, where), where, MOST_RUNS - len(runs))
        runs = self.adjust(runs, content, "")
        small = self.quick(runs, content) if "quick" in content else None
        if quick:
            if small is None:
                self.fail("there is no [quick], so it has no small form")
            runs = small
        runs = [run for run in runs if not run.get("fixed_threads") or run.get("threads", 1) <= env.threads()]
        if not runs:
            self.fail("every run is skipped, so nothing is left")
        runs = self.checked(runs)
        unique = {keys.key(run): run for run in reversed(runs)}
        runs = list(reversed(unique.values()))
        name += "-quick" if quick else ""
        return Plan(name, content.get("title", name), content.get("description", ""), content.get("table", ""), runs)

    def quick(self, runs, content):
        table = content["quick"]
        if not isinstance(table, dict):
            self.fail("quick must be a table: [quick]")
        self.check_names(table, _QUICK, "[quick]")
        keep = self.condition(table.get("keep", {}), "[quick] keep", runs)
        self.limit(runs, _values(keep))
        return self.adjust([run for run in runs if matches(run, keep)], table, "quick.")

    def repeated(self, table, where) -> dict:
        """A section in which `repetitions = 5` may stand for the seeds 0 to 4."""
        table = dict(self.section(table, where, ("repetitions",)))
        count = table.pop("repetitions", None)
        if count is None:
            return table
        self.check_value("repetitions", count, where, False)
        if "seed" in table:
            self.fail(f"{where} has both seed and repetitions, which stands for the seeds from 0 on; give one of the two")
        if count > MOST_RUNS:
            self.fail(f"{where} repetitions = {count}: at most {MOST_RUNS:,}")
        return table | {"seed": list(range(count))}

    def check_names(self, table, known, where):
        for key in table:
            if key not in known:
                self.fail(f"{where} has the unknown key {quoted(key)}{or_near(key, known, 'known')}")

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
        if not isinstance(options, dict) or len(options) > _MOST_OPTIONS:
            self.fail(f"{where} options must be a table, such as options.lam = 1")
        for name in options:
            if len(name) > 60:
                self.fail(f"{where} options.{quoted(name)} is not an option")
        if "seed" in options:
            self.fail(f"{where} options.seed: the seed is a field of the run; write seed = {quoted(options['seed'])}")
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
            self.fail(f"{where} {name} = {quoted(value)}: must be {'text, a number, true or false' if option else kind}")
        if isinstance(value, str) and len(value) > _MOST_TEXT:
            self.fail(f"{where} {name} = {quoted(value)}: must be at most {_MOST_TEXT:,} characters")
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if number and not (_LOWEST.get(name, -math.inf) <= value <= _HIGHEST and value >= -_HIGHEST):
            low = f"{_LOWEST[name]} or more" if name in _LOWEST else "finite"
            self.fail(f"{where} {name} = {quoted(value)}: must be {low} and less than 2^63")

    def grid(self, defaults, table, where, most) -> list[dict]:
        fields = {name: value for name, value in (defaults | table).items() if name != "options"}
        options = defaults.get("options", {}) | table.get("options", {})
        for name in ("dataset", "method"):
            if name not in fields:
                self.fail(f"{where} has no {name}")
        axes = [(name, False, value) for name, value in fields.items()]
        axes += [(name, True, value) for name, value in options.items()]
        count = math.prod(len(value) for _, _, value in axes if isinstance(value, list))
        if count > most:
            self.fail(f"{where} lays out {count:,} runs, which makes more than the {MOST_RUNS:,} of the largest plan")
        runs = []
        for values in itertools.product(*(value if isinstance(value, list) else [value] for _, _, value in axes)):
            run = {"seed": 0, "options": {}}
            for (name, option, _), value in zip(axes, values):
                (run["options"] if option else run)[name] = value
            runs.append(run)
        return runs

    def adjust(self, runs, content, prefix):
        """Apply the [[set]] tables in their order, then drop what a [[skip]] names."""
        conditions = [item for key in ("set", "skip") for table in self.tables(content, key) for item in _values(table)]
        self.limit(runs, conditions)
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

    def limit(self, runs, conditions):
        if len(runs) * len(conditions) > _MOST_WORK:
            self.fail(f"{len(conditions):,} conditions on {len(runs):,} runs are too many; make it several plans")

    def condition(self, when, where, runs) -> dict:
        if not isinstance(when, dict):
            self.fail(f'{where}: when must be a table such as {{dataset = "cpu"}}')
        if not all(any(name in run["options"] or (name in run and name != "options") for run in runs) for name in when):
            known = sorted({name for run in runs for name in names_of(run)})
            self.check_names(when, known, f"{where} when")
        return when

    # ------------------------------------------------------------------------------------ before the first run

    def checked(self, runs) -> list[dict]:
        """The runs, their files found; refused where a method, an option, a data set, a split or a file is not there."""
        good: set = set()
        for run in runs:
            made = (run["method"], *sorted(run["options"].items()))
            if made not in good:
                self.check_options(run)
                good.add(made)
            rows = (run["dataset"], run.get("test"), run.get("split"))
            if rows not in good:
                self.check_data(*rows)
                good.add(rows)
        return [run | {name: self.found(run[name]) for name in ("dataset", "test") if run.get(name)} for run in runs]

    def check_options(self, run):
        try:
            method = methods.get(run["method"])
        except UsageError as error:
            self.fail(error)
        for name, value in run["options"].items():
            try:
                method.converted({name: value})
            except UsageError as error:
                self.fail(f"options.{name}: {error}")
        try:
            methods.create(run["method"], seed=run["seed"], **run["options"])
        except UsageError as error:
            self.fail(error)

    def check_data(self, dataset, test, split):
        for name in (dataset, test):
            base = name and name.partition(":")[0]
            if name and not registry.has(base) and not os.path.isfile(self.found(name)):
                try:
                    registry.get(base)
                except UsageError as error:
                    self.fail(f"{quoted(name)} is no file, and {error}")
        base = dataset.partition(":")[0]
        if split is not None and registry.has(base):
            known = [*registry.get(base).splits, SHARE]
            if split not in known:
                self.fail(f"data set {base} has no split {quoted(split)}{or_near(split, known, 'it has')}")

    def found(self, name) -> str:
        """A data set's name as it is; a file's path: beside the plan, else as it is, from the current folder."""
        if self.folder is None or registry.has(name.partition(":")[0]) or "\0" in name:
            return name
        beside = os.path.join(self.folder, name)
        return os.path.normpath(beside) if os.path.isfile(beside) else name
