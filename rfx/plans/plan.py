"""Plans: a TOML file that describes a grid of runs.

    title = "…"                     # required; description and table are optional
    [defaults]                      # fields of every run
    split = "yen2014"
    options.scaling = "minmax01"
    [[run]]                         # a list is an axis of the grid, anything else is fixed
    dataset = ["cpu", "census"]
    method = "sparse-rf"
    options.lam = [1, 10, 100, 1000]
    [[set]]                         # changes fields of matching runs of the grid
    when = {dataset = "cpu", kernel = "gaussian"}
    options.gamma = 0.5
    [[skip]]                        # removes matching runs
    when = {kernel = "perceptron", label = "tuned"}
    [quick]                         # the small form: runs to keep, then its set and skip
    keep = {dataset = "cpu"}
    [sources]                       # optional: the origin of option values
    lam = "printed: section 5"      # for all runs; NAME/ limits it to a data set, method or label
    "tuned/gamma" = "held-out rows: chosen in each run"

A run (`rfx.records.run.Run`) has the fields dataset, split, test, method, seed, threads, label,
timeout, zero_based, train_score (also evaluate on the training rows), curve (the error on the test
rows during training: in its row, or in the trace), fixed_threads (the plan compares threads: they
are part of the key, and runs with more threads than cores are skipped), trace (store the solver's
reports step by step), timings (fit again so many times for the processor seconds and memory of the
fit alone), cv and holdout (evaluate on held-out training rows: see rfx.fitting.assessment),
groups and time (a column of a table for held-out splits), device, and the dict options of the
method. The reading of a table is defined by target, ignore (a list is several columns, not an
axis), missing, and id (a column that identifies the rows and is ignored). `repetitions = 5` means
seed = [0, 1, 2, 3, 4]; in a file's plan, deterministic runs get one seed. Files are searched next
to the plan's file, then in the current folder. `example()` is a runnable plan with all of this.
"""

import itertools
import json
import math
import os
import tomllib
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, NoReturn, TypeAlias, get_args, get_type_hints

from rfx import env, methods, numerals
from rfx.data import registry
from rfx.data.loading import check_split
from rfx.data.reading import Reading
from rfx.errors import UsageError, or_near, quoted
from rfx.fitting.options import SEED, TIMEOUT
from rfx.options import Names, Option, options_of
from rfx.plans import catalogue
from rfx.records import keys
from rfx.records.run import DEFAULTS, Run

# A run by the names of its fields and options, such as {"dataset": "cpu", "options.lam": 1}.
Entries: TypeAlias = dict[str, Any]

# Fields that define how to read a table: of the run's `reading`.
_READING = ("target", "ignore", "missing", "id")
# Fields of a run that only commands set.
_COMMANDS = (
    "options",
    "reading",
    "strict",
    "sample_weight",
    "calibrate",
    "fail_below",
    "stream",
    "n_inputs",
    "checkpoint",
    "every",
    "resume",
    "scheduler",
    "parts",
)
MOST_RUNS = 100_000
# The fields of a run of a plan.
_HINTS = {name: kind for name, kind in get_type_hints(Run).items() if name not in _COMMANDS}
FIELDS = (*_HINTS, *_READING)
# The values of the fields and of `repetitions`: those of commands, and others.
_VALUES = {name: Option(name, (*get_args(kind), kind)[0], "") for name, kind in _HINTS.items()}
_VALUES |= options_of(Run)
_VALUES |= {name: Option(name, str, "") for name in ("target", "ignore", "id")}
_VALUES |= {"missing": options_of(Reading)["missing"], "seed": SEED, "timeout": TIMEOUT}
_VALUES |= {"repetitions": Option("repetitions", int, "", low=1, high=MOST_RUNS)}
# Fields that accept several names, so that their lists are not axes.
_LISTS = ("ignore",)
_SHORT_NAMES = (
    ("n_features", "D"),
    ("n_grids", "R"),
    ("block_size", "R"),
    ("gamma", "gamma"),
    ("lam", "lam"),
)
_TOP = ("title", "description", "table", "defaults", "run", "set", "skip", "quick", "sources")
# The prefixes of a source: the origin of an option's value.
SOURCES = (
    "printed",
    "authors' program",
    "held-out rows",
    "test rows",
    "inferred",
    "recalled",
    "ours",
)
# Words that a run replaces by the best value on held-out training rows.
_HELD_OUT = ("validation", "tuned", "loo", "match-rf")


@dataclass(frozen=True)
class Plan:
    """A named list of runs; `table` is the name of the table for their results, or empty. notes:
    messages before the runs; sources: the origin of values, by the option, or by a data set, method
    or label, a slash and the option.
    """

    name: str
    title: str
    description: str
    table: str
    runs: list[Run] = field(default_factory=list)
    notes: tuple[str, ...] = ()
    sources: dict[str, str] = field(default_factory=dict)

    def source(self, run: Run, option: str) -> str | None:
        """The origin of the value of a run's option; None if the plan does not state it.

        The last entry for the run's data set, method or label has precedence over the one for every
        run. A word that selects a value needs no entry.
        """
        if run.options.get(option) in _HELD_OUT:
            return "held-out rows: chosen in each run"
        places = {f"{scope}/{option}" for scope in (run.dataset, run.method, run.label)}
        scoped = [text for name, text in self.sources.items() if name in places]
        if scoped:
            return scoped[-1]
        return self.sources.get(option)

    def with_runs(self, **fields: Any) -> "Plan":
        """The plan with other values of these fields of every run."""
        return replace(self, runs=[replace(run, **fields) for run in self.runs])

    def only(self, filters) -> "Plan":
        """The runs that match every filter `name=value[,value…]`; repeated names mean either value.
        A value may contain commas, such as sphere:n=4000,d=5.

        Raises UsageError for a name or a value that no run has.
        """
        runs = [(run, entries_of(run)) for run in self.runs]
        wanted = _wanted(filters)
        for name, values in wanted.items():
            condition = Condition.of({name: values})
            if not any(condition.holds(entries) for _, entries in runs):
                self._fail_without(name, [entries for _, entries in runs])
        condition = Condition.of(wanted)
        chosen = [run for run, entries in runs if condition.holds(entries)]
        if not chosen:
            raise UsageError(f"--only: no run of plan {self.name} matches all of the filters")
        return replace(self, runs=chosen)

    def _fail_without(self, name: str, runs: list[Entries]) -> NoReturn:
        """Say which values of a field there are, or which fields."""
        what, there = "value", {str(entries[name]) for entries in runs if name in entries}
        if not there:
            what, there = "field", {name for entries in runs for name in entries}
        available = ", ".join(sorted(there))
        raise UsageError(
            f"--only {name}: no run of plan {self.name} has this {what} (available: {available})"
        )


def _wanted(filters: Iterable[str]) -> dict[str, list[str]]:
    """Name -> the values of the filters `name=value[,value…]`."""
    wanted: dict[str, list[str]] = {}
    for text in filters:
        name, equals, values = text.partition("=")
        if not equals or not name:
            raise UsageError(f"--only {text}: expected NAME=VALUE, such as dataset=cpu")
        # a plan has options as options.NAME
        name = name.strip().removeprefix("options.")
        # a value may have commas
        own = wanted.setdefault(name, [])
        own += map(str.strip, (values, *values.split(",")))
    return wanted


def load(name_or_path, quick: bool = False, known: dict[str, Traversable] | None = None) -> Plan:
    """The plan of that name, or in that TOML file; its small form with `quick`, or if the name ends
    in `-quick`.

    known: the named plans and their files; default: the general ones. Raises UsageError, with the
    file and the key, for invalid content, an option that a method does not have, or a missing data
    set or file.
    """
    known = catalogue.plans() if known is None else known
    name, file = str(name_or_path), Path(name_or_path)
    if name not in known and name.removesuffix("-quick") in known:
        name, quick = name.removesuffix("-quick"), True
    if name in known:
        return Reader(str(known[name])).plan(_content(known[name]), name, quick)
    if not file.is_file():
        near = or_near(name, known, "the plans are")
        raise UsageError(f"{name} is neither a plan nor a TOML file{near}")
    reader = Reader(str(file), file.parent)
    return reader.plan(_content(file), file.name.removesuffix(".toml"), quick)


def small(name: str, known: dict[str, Traversable]) -> Plan | None:
    """The small form of one of the known plans, None if it has none."""
    return load(name, True, known) if "quick" in _content(known[name]) else None


def title(name: str, known: dict[str, Traversable]) -> str:
    """The title of one of the known plans, without expanding its runs."""
    return _content(known[name]).get("title", name)


def _content(path) -> dict:
    """The parsed TOML of a file."""
    try:
        return tomllib.loads(path.read_text("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path} is not a TOML file: {str(error)[:300]}") from None


def example() -> str:
    """A runnable plan with comments that illustrates the format."""
    return (resources.files(__package__) / "example.toml").read_text(encoding="utf-8")


def entries_of(run: Run) -> Entries:
    """The names available in conditions on the run, without "options.", and their values."""
    told = run.told()
    named = run.as_dict() | {name: told[name] for name in _READING if name in told}
    known = {name: value for name, value in named.items() if name in FIELDS}
    return known | dict(run.options)


@dataclass(frozen=True)
class Condition:
    """What a run must have: for each name one of these values."""

    wanted: dict[str, list[Any]]

    @classmethod
    def of(cls, when: Entries) -> "Condition":
        """From a table of names, without "options.", and values or lists of values."""
        wanted = {name: _axis(value) for name, value in when.items()}
        if "method" in wanted:
            wanted["method"] = [methods.short(value) for value in wanted["method"]]
        return cls(wanted)

    def holds(self, entries: Entries) -> bool:
        """Whether a run has these entries, whose options may begin with "options."."""
        for name, values in self.wanted.items():
            if not any(_same(_value_of(entries, name), value) for value in values):
                return False
        return True


def _value_of(entries: Entries, name: str) -> Any:
    """The value of a field or an option, or its default."""
    if name in entries:
        return entries[name]
    return entries.get(f"options.{name}", DEFAULTS.get(name))


def _same(value, wanted) -> bool:
    if value is None or isinstance(value, str) or not isinstance(wanted, str):
        return value == wanted and isinstance(value, bool) == isinstance(wanted, bool)
    if isinstance(value, bool):
        return str(value).lower() == wanted.lower()
    try:
        return numerals.real(wanted) == float(value)
    except ValueError:
        return False


def describe(run: Run) -> str:
    """A short line that distinguishes the run from its neighbours, for progress and --dry-run."""
    options = run.options
    words = [run.dataset, run.method, options.get("kernel"), run.label]
    words += [f"{short}={options[name]}" for name, short in _SHORT_NAMES if name in options]
    if run.seed:
        words.append(f"seed={run.seed}")
    if run.fixed_threads:
        words.append(f"threads={run.threads}")
    return " ".join(str(word) for word in words if word)


def _run(entries: Entries) -> Run:
    """The run with these entries."""
    ignore = [*_columns(entries.get("ignore", [])), *_columns(entries.get("id", []))]
    reading = Reading(
        target=entries.get("target"),
        missing=entries.get("missing"),
        ignore=tuple(dict.fromkeys(ignore)),
    )
    options, fields = {}, {}
    for name, value in entries.items():
        if name.startswith("options."):
            options[name.removeprefix("options.")] = value
        elif name in _HINTS:
            fields[name] = value
    return Run(options=options, reading=None if reading == Reading() else reading, **fields)


def _columns(value: str | list[str]) -> list[str]:
    """Columns given by a list, or by comma-separated text."""
    if isinstance(value, list):
        return value
    return list(Names.values(value))


def once(runs: list[Run]) -> tuple[list[Run], list[str]]:
    """The runs with only one seed for deterministic ones, and a message about this."""
    kept: dict[str, Run] = {}
    counts: Counter[str] = Counter()
    for run in runs:
        alike = json.dumps(run.as_dict() | {"seed": 0}, sort_keys=True)
        if alike not in kept:
            kept[alike] = run
        elif keys.seed_decides(kept[alike]):
            kept[f"{alike} {run.seed}"] = run
        else:
            counts[f"{run.method} on {run.dataset}"] += 1
    notes = []
    for words, count in counts.items():
        skipped = "1 run" if count == 1 else f"{count:,} runs"
        notes.append(f"{words} is deterministic, so only one seed is run; {skipped} skipped")
    return list(kept.values()), notes


def _fits(run: Run) -> bool:
    """Whether the machine has the threads of a run that compares threads."""
    return not run.fixed_threads or (run.threads or 1) <= env.threads()


class Reader:
    """Reads one file; every error names the file and the key. folder: searched first for its files,
    None for no folder.
    """

    def __init__(self, path, folder=None):
        self.path, self.folder = path, folder

    def fail(self, message: object) -> NoReturn:
        words = " ".join(str(message).split())
        raise UsageError(f"{self.path}: {words:.1000}")

    def plan(self, content, name, quick) -> Plan:
        self.check_names(content, _TOP, "the plan")
        defaults = self.section(content.get("defaults", {}), "[defaults]")
        runs: list[Entries] = []
        for table, where in self.tables(content, "run"):
            entries = defaults | self.section(table, where)
            runs += self.grid(entries, where, MOST_RUNS - len(runs))
        runs = self.adjust(runs, content, "")
        sources = self.table(content.get("sources", {}), "[sources]")
        small = self.quick(runs, content) if "quick" in content else None
        if quick:
            if small is None:
                self.fail("there is no [quick], so it has no small form")
            name, runs = f"{name}-quick", small
        kept = [run for run in map(_run, runs) if _fits(run)]
        if not kept:
            self.fail("there is no [[run]], or every run is skipped")
        # of runs with one key the first, in the place of the last
        by_key = {keys.key(run): run for run in reversed(self.checked(kept))}
        unique, notes = list(by_key.values())[::-1], list[str]()
        # the built-in plans keep their existing rows
        if self.folder is not None:
            unique, notes = once(unique)
        title, table = content.get("title", name), content.get("table", "")
        description = content.get("description", "")
        return Plan(name, title, description, table, unique, tuple(notes), sources=sources)

    def quick(self, runs, content) -> list[Entries]:
        table = self.table(content["quick"], "[quick]", ("keep", "set", "skip"))
        keep = self.condition(table, "keep", "[quick]", runs)
        return self.adjust([run for run in runs if keep.holds(run)], table, "quick.")

    def table(self, value, where, names=None) -> dict:
        """A value that must be a table, with these names if they are given."""
        if not isinstance(value, dict):
            self.fail(f"{where} must be a table")
        if names is not None:
            self.check_names(value, names, where)
        return value

    def check_names(self, names, known, where):
        for name in names:
            if name not in known:
                near = or_near(name, known, "known")
                self.fail(f"{where} has the unknown key {quoted(name)}{near}")

    def tables(self, content, key, prefix="") -> list[tuple[dict, str]]:
        """The tables of an array of tables, each with its name for messages."""
        value = content.get(key, [])
        is_array = isinstance(value, list) and all(isinstance(item, dict) for item in value)
        if not is_array:
            self.fail(f"{key} must be an array of tables: [[{key}]]")
        return [(table, f"[[{prefix}{key}]] {number}") for number, table in enumerate(value, 1)]

    def section(self, table, where, extra=(), lists=True) -> Entries:
        """The entries of one table, after a check of their names and types; `repetitions = 5` are
        the seeds 0 to 4. lists: whether a value may be a list, an axis.
        """
        self.table(table, where, (*FIELDS, "options", "repetitions", *extra))
        options = self.table(table.get("options", {}), f"{where} options")
        if "seed" in options:
            seed = quoted(options["seed"])
            self.fail(f"{where} options.seed: the seed is a field of the run; write seed = {seed}")
        entries = {name: value for name, value in table.items() if name not in ("options", *extra)}
        entries |= {f"options.{name}": value for name, value in options.items()}
        for name, value in entries.items():
            place, is_list = f"{where} {name}", isinstance(value, list)
            if is_list and name not in _LISTS and not lists:
                self.fail(f"{place} is a list; only [[run]] and [defaults] may contain lists")
            if value == [] or (is_list and name == "repetitions"):
                self.fail(f"{place} = {value}: must be a value, or a list of some")
            values = [self.value(name, item, where) for item in _axis(value)]
            entries[name] = values if is_list else values[0]
        count = entries.pop("repetitions", None)
        if count is None:
            return entries
        return entries | {"seed": list(range(count))}

    def value(self, name: str, value: Any, where: str) -> Any:
        """The value of an entry, converted to its type; that of an option is converted later."""
        if not isinstance(value, (str, int, float, bool)):
            self.fail(f"{where} {name} = {quoted(value)}: must be text, a number, true or false")
        if name not in _VALUES:
            return value
        try:
            converted = _VALUES[name].convert(value)
        except UsageError as error:
            self.fail(f"{where} {name}: {error}")
        return methods.short(converted) if name == "method" else converted

    def grid(self, entries: Entries, where, most) -> list[Entries]:
        for name in ("dataset", "method"):
            if name not in entries:
                self.fail(f"{where} has no {name}")
        # fields are the outer axes
        names = sorted(entries, key=lambda name: name.startswith("options."))
        axes = [[entries[name]] if name in _LISTS else _axis(entries[name]) for name in names]
        count = math.prod(map(len, axes))
        if count > most:
            maximum = f"the maximum of {MOST_RUNS:,} per plan"
            self.fail(f"{where} expands to {count:,} runs, which exceeds {maximum}")
        return [dict(zip(names, values)) for values in itertools.product(*axes)]

    def adjust(self, runs, content, prefix) -> list[Entries]:
        """Apply the [[set]] tables in order, then drop the runs of each [[skip]]."""
        for table, where in self.tables(content, "set", prefix):
            changes = self.section(table, where, ("when",), lists=False)
            when = self.condition(table, "when", where, runs)
            runs = [run | changes if when.holds(run) else run for run in runs]
        for table, where in self.tables(content, "skip", prefix):
            self.check_names(table, ("when",), where)
            when = self.condition(table, "when", where, runs)
            runs = [run for run in runs if not when.holds(run)]
        return runs

    def condition(self, table, name, where, runs) -> Condition:
        names = {entry.removeprefix("options.") for entry in set().union(*runs)}
        known = sorted(names | {"seed"})
        return Condition.of(self.table(table.get(name, {}), f"{where} {name}", known))

    # ------------------------------------------------------------------------- before the first run

    def checked(self, runs: list[Run]) -> list[Run]:
        """The runs with resolved files; errors if a method, an option, a data set, a split or a
        file does not exist.
        """
        for run in {(run.method, *sorted(run.options.items())): run for run in runs}.values():
            self.check_method(run)
        for rows in dict.fromkeys((run.dataset, run.test, run.split) for run in runs):
            self.check_data(*rows)
        found = []
        for run in runs:
            if run.reading is not None and registry.has(run.dataset.partition(":")[0]):
                names = ", ".join(name for name in _READING if name in run.told())
                self.fail(f"{names}: {run.dataset} is not a table with named columns")
            test = run.test and self.found(run.test)
            found.append(replace(run, dataset=self.found(run.dataset), test=test))
        return found

    def check_method(self, run: Run) -> None:
        try:
            methods.create(run.method, seed=run.seed, **run.options)
        except UsageError as error:
            named = f"method {run.method} "
            self.fail(error if named in str(error) else f"{named}of the plan: {error}")

    def check_data(self, dataset, test, split):
        for name in filter(None, (dataset, test)):
            base = name.partition(":")[0]
            if not registry.has(base) and not os.path.isfile(self.found(name)):
                try:
                    registry.get(base)
                except UsageError as error:
                    self.fail(f"{quoted(name)} is not a file, and {error}")
        base = dataset.partition(":")[0]
        if split is not None and registry.has(base):
            try:
                check_split(f"data set {base}", split, registry.get(base).splits)
            except UsageError as error:
                self.fail(error)

    def found(self, name) -> str:
        """A data set's name unchanged; a file's path relative to the plan, else to the current
        folder.
        """
        if self.folder is None or registry.has(name.partition(":")[0]) or "\0" in name:
            return name
        path = os.path.join(self.folder, name)
        if os.path.isfile(path):
            return os.path.normpath(path)
        return name


def _axis(value: object) -> list:
    """The values of an entry: a list is an axis of the grid."""
    if isinstance(value, list):
        return value
    return [value]
