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
reports step by step), cv and holdout (evaluate on held-out training rows: see rfx.runs.held_out),
groups and time (a column of a table for held-out splits), and the dict options of the method. The
reading of a table is defined by target, ignore (a list is several columns, not an axis), missing,
and id (a column that identifies the rows and is ignored). `repetitions = 5` means seed = [0, 1, 2,
3, 4]; in a file's plan, deterministic runs get one seed. Files are searched next to the plan's
file, then in the current folder. `example()` is a runnable plan with all of this.
"""

import itertools
import json
import math
import os
import tomllib
from dataclasses import dataclass, field, replace
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import NoReturn

from rfx import env, methods, numerals
from rfx.data import encodings
from rfx.data.loading import check_split
from rfx.data.reading import MISSING, Reading
from rfx.data.registry import registry
from rfx.errors import UsageError, or_near, quoted
from rfx.options import Names
from rfx.plans import catalogue
from rfx.records import chance, keys
from rfx.records.run import Run

FIELDS = (
    "dataset",
    "split",
    "test",
    "method",
    "seed",
    "threads",
    "label",
    "timeout",
    "zero_based",
    "train_score",
    "fixed_threads",
    "curve",
    "trace",
    "cv",
    "holdout",
    "target",
    "ignore",
    "missing",
    "id",
    "groups",
    "time",
)
# Fields that define how to read a table: of the run's `reading`.
_READING = ("target", "ignore", "missing", "id")
# Fields that accept several names, so that their lists are not axes.
_LISTS = ("ignore",)
_SHORT = (
    ("n_features", "D"),
    ("n_grids", "R"),
    ("block_size", "R"),
    ("gamma", "gamma"),
    ("lam", "lam"),
)
MOST_RUNS = 100_000
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
_QUICK = ("keep", "set", "skip")
_TYPES: dict[str, type | tuple[type, ...]] = {
    "seed": int,
    "threads": int,
    "timeout": (int, float),
    "zero_based": bool,
    "train_score": bool,
    "fixed_threads": bool,
    "trace": bool,
    "repetitions": int,
    "cv": int,
    "holdout": (int, float),
}
_LOWEST: dict[str, float] = {
    "seed": 0,
    "threads": 1,
    "repetitions": 1,
    "timeout": 1e-3,
    "cv": 2,
    "holdout": 1e-9,
}
_HIGHEST = 2**63 - 1


@dataclass(frozen=True)
class Plan:
    """A named list of runs; `table` is the name of the table for their results, or empty. notes:
    messages before the runs; has_quick: it is not the small form, but has one; sources: the origin
    of values, by the option, or by a data set, method or label, a slash and the option.
    """

    name: str
    title: str
    description: str
    table: str
    runs: list[Run] = field(default_factory=list)
    notes: tuple[str, ...] = ()
    has_quick: bool = False
    sources: dict[str, str] = field(default_factory=dict)

    def source(self, run: Run, option: str) -> str | None:
        """The origin of the value of a run's option; None if the plan does not state it.

        The last entry for the run's data set, method or label has precedence over the one for every
        run. A word that selects a value needs no entry.
        """
        if run.options.get(option) in _HELD_OUT:
            return "held-out rows: chosen in each run"
        found = None
        for name, text in self.sources.items():
            scope, _, named = name.rpartition("/")
            if named == option and scope in (run.dataset, run.method, run.label):
                found = text
        return self.sources.get(option) if found is None else found

    def only(self, filters) -> "Plan":
        """The runs that match every filter `name=value[,value…]`; repeated names mean either value.
        A value may contain commas, such as sphere:n=4000,d=5.

        Raises UsageError for a name that no run has and for filters without a match.
        """
        wanted: dict[str, list[str]] = {}
        for text in filters:
            name, equals, values = text.partition("=")
            if not equals or not name:
                raise UsageError(f"--only {text}: expected NAME=VALUE, such as dataset=cpu")
            # a plan has options as options.NAME
            name = name.strip().removeprefix("options.")
            wanted.setdefault(name, []).extend(self._split(name, values))
        runs = self.runs
        for name, values in wanted.items():
            there = sorted(
                {str(_get(run, name)) for run in self.runs if _get(run, name) is not None}
            )
            if not there:
                names = sorted({name for run in self.runs for name in names_of(run)})
                raise UsageError(
                    f"--only {name}=…: no run of plan {self.name} has this field (available:"
                    f" {', '.join(names)})"
                )
            if not any(matches(run, {name: values}) for run in self.runs):
                raise UsageError(
                    f"--only {name}={','.join(values)}: no run of plan {self.name} has this value"
                    f" (available: {', '.join(there)})"
                )
            runs = [run for run in runs if matches(run, {name: values})]
        if not runs:
            raise UsageError(
                f"--only {' --only '.join(filters)}: no run of plan {self.name} matches all of them"
            )
        return replace(self, runs=runs)

    def _split(self, name: str, text: str) -> list[str]:
        """The values separated by commas, joining pieces that together form a run's value."""
        there = {_get(run, name) for run in self.runs}
        pieces, found = text.split(","), []
        while pieces:
            ends = (n for n in range(len(pieces), 1, -1) if ",".join(pieces[:n]).strip() in there)
            taken = next(ends, 1)
            found.append(",".join(pieces[:taken]).strip())
            del pieces[:taken]
        return found


def load(name_or_path, quick: bool = False, known: dict[str, Traversable] | None = None) -> Plan:
    """The plan of that name, or in that TOML file; its small form with `quick`, or if the name ends
    in `-quick`.

    known: the named plans and their files; default: the general ones. Raises UsageError, with the
    file and the key, for invalid content, an option that a method does not have, or a missing data
    set or file.
    """
    known = catalogue.plans() if known is None else known
    name, folder, file = str(name_or_path), None, Path(name_or_path)
    path: Traversable | Path = file
    if name not in known and name.removesuffix("-quick") in known:
        name, quick = name.removesuffix("-quick"), True
    if name in known:
        path = known[name]
    elif not file.is_file():
        raise UsageError(
            f"{name} is neither a plan nor a TOML file{or_near(name, known, 'the plans are')}"
        )
    else:
        name, folder = file.name.removesuffix(".toml"), file.parent
    return Reader(str(path), folder).plan(_content(path), name, quick)


def small(name: str, known: dict[str, Traversable]) -> Plan | None:
    """The small form of one of the known plans, None if it has none."""
    return load(name, True, known) if "quick" in _content(known[name]) else None


def title(name: str, known: dict[str, Traversable]) -> str:
    """The title of one of the known plans, without expanding its runs."""
    return _content(known[name]).get("title", name)


def _content(path) -> dict:
    """The parsed TOML of a file."""
    try:
        return tomllib.loads(bytes(encodings.text(path.read_bytes(), str(path))).decode())
    except OSError as error:
        raise UsageError(f"{path} can't be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path} is not a TOML file: {str(error)[:300]}") from None


def example() -> str:
    """A runnable plan with comments that illustrates the format."""
    return (resources.files(__package__) / "example.toml").read_text(encoding="utf-8")


def matches(run: Run, when: dict) -> bool:
    """Whether every name of `when` (a field or an option) has, in `run`, the value or one of the
    values given.
    """
    for name, wanted in when.items():
        value = _get(run, name)
        for item in wanted if isinstance(wanted, list) else [wanted]:
            if _same(value, methods.short(item) if name == "method" else item):
                break
        else:
            return False
    return True


def describe(run: Run) -> str:
    """A short line that distinguishes the run from its neighbours, for progress and --dry-run."""
    options = run.options
    words = [run.dataset, run.method, options.get("kernel"), run.label]
    words += [f"{short}={options[name]}" for name, short in _SHORT if name in options]
    words += [f"seed={run.seed}"] if run.seed else []
    words += [f"threads={run.threads}"] if run.fixed_threads else []
    return " ".join(str(word) for word in words if word)


def names_of(run: Run) -> list[str]:
    """The names available in conditions on the run: its fields and its options."""
    fields = [name for name in run.as_dict() if name not in ("options", "reading")]
    reading = [name for name in ("target", "ignore", "missing") if _get(run, name) is not None]
    return [*fields, *reading, *run.options]


def _get(run, name):
    if name in _READING:
        return run.told().get("ignore" if name == "id" else name)
    return getattr(run, name) if name in FIELDS else run.options.get(name)


def _with(run: Run | None, fields: dict, options: dict) -> Run:
    """A run with these fields and options; None if they are unknown."""
    given = {name: value for name, value in fields.items() if name not in _READING}
    told = {name: value for name, value in fields.items() if name in _READING}
    if told:
        before = Reading() if run is None or run.reading is None else run.reading
        ignore = _columns(told.get("ignore", list(before.ignore)))
        given["reading"] = replace(
            before,
            target=told.get("target", before.target),
            missing=told.get("missing", before.missing),
            ignore=tuple(dict.fromkeys(ignore + _columns(told.get("id", [])))),
        )
        if given["reading"] == Reading():
            given["reading"] = None
    if run is None:
        return Run(options=options, **given)
    return replace(run, **given, options={**run.options, **options})


def _columns(value: str | list[str]) -> list[str]:
    """Columns given by a list, or by comma-separated text."""
    return list(value) if isinstance(value, list) else list(Names.values(value))


def _same(value, wanted) -> bool:
    if type(value) is type(wanted):
        return value == wanted
    if isinstance(wanted, str) and value is not None and not isinstance(value, (str, bool)):
        try:
            return numerals.real(wanted) == float(value)
        except ValueError:
            return False
    if isinstance(value, bool) and isinstance(wanted, str):
        return str(value).lower() == wanted.lower()
    return value == wanted and isinstance(value, bool) == isinstance(wanted, bool)


def once(runs: list[Run]) -> tuple[list[Run], list[str]]:
    """The runs with only one seed for deterministic ones, and a message about this."""
    seeds: dict[str, list[Run]] = {}
    for run in runs:
        seeds.setdefault(json.dumps(run.as_dict() | {"seed": 0}, sort_keys=True), []).append(run)
    dropped: dict[str, list[Run]] = {}
    for own in seeds.values():
        if len(own) > 1 and not chance.decides(own[0]):
            dropped.setdefault(f"{own[0].method} on {own[0].dataset}", []).extend(own[1:])
    left_out = {id(run) for own in dropped.values() for run in own}
    notes = [
        f"{words} is deterministic, so only one seed is run; {len(own):,}"
        f" run{'s' * (len(own) != 1)}"
        " skipped"
        for words, own in dropped.items()
    ]
    return [run for run in runs if id(run) not in left_out], notes


class Reader:
    """Reads one file; every error names the file and the key. folder: searched first for its files,
    None for no folder.
    """

    def __init__(self, path, folder=None):
        self.path, self.folder = path, folder

    def fail(self, message: object) -> NoReturn:
        raise UsageError(f"{self.path}: {' '.join(str(message).split()):.1000}")

    def plan(self, content, name, quick) -> Plan:
        self.check_names(content, _TOP, "the plan")
        for key in ("title", "description", "table"):
            if not isinstance(content.get(key, ""), str):
                self.fail(f"{key} must be text")
        defaults = self.repeated(content.get("defaults", {}), "[defaults]")
        tables = self.tables(content, "run")
        if not tables:
            self.fail("there is no [[run]]")
        runs: list[Run] = []
        for number, table in enumerate(tables, start=1):
            where = f"[[run]] {number}"
            runs += self.grid(defaults, self.repeated(table, where), where, MOST_RUNS - len(runs))
        runs = self.adjust(runs, content, "")
        sources = self.sources(content, runs)
        small = self.quick(runs, content) if "quick" in content else None
        if quick:
            if small is None:
                self.fail("there is no [quick], so it has no small form")
            runs = small
        runs = [run for run in runs if not run.fixed_threads or (run.threads or 1) <= env.threads()]
        if not runs:
            self.fail("every run is skipped, so nothing is left")
        runs = self.checked(runs)
        unique = {keys.key(run): run for run in reversed(runs)}
        runs = list(reversed(unique.values()))
        # the built-in plans keep their existing rows
        runs, notes = (runs, []) if self.folder is None else once(runs)
        name += "-quick" if quick else ""
        return Plan(
            name,
            content.get("title", name),
            content.get("description", ""),
            content.get("table", ""),
            runs,
            tuple(notes),
            small is not None and not quick,
            sources,
        )

    def sources(self, content, runs) -> dict[str, str]:
        """The origin of values; errors for an option or a scope that no run has."""
        table = content.get("sources", {})
        if not isinstance(table, dict):
            self.fail("sources must be a table: [sources]")
        options = {name for run in runs for name in run.options}
        scopes = {str(name) for run in runs for name in (run.dataset, run.method, run.label)}
        for name, text in table.items():
            scope, slash, option = name.rpartition("/")
            self.check_names([option], sorted(options), "[sources]")
            if slash and scope not in scopes:
                self.fail(
                    f"[sources] {quoted(name)}: {quoted(scope)} is not a data set, method or label"
                    " of its runs"
                )
            if not isinstance(text, str) or not text.startswith(SOURCES):
                self.fail(
                    f"[sources] {quoted(name)} = {quoted(text)}: must begin with one of"
                    f" {', '.join(SOURCES)}"
                )
        return table

    def quick(self, runs, content):
        table = content["quick"]
        if not isinstance(table, dict):
            self.fail("quick must be a table: [quick]")
        self.check_names(table, _QUICK, "[quick]")
        keep = self.condition(table.get("keep", {}), "[quick] keep", runs)
        return self.adjust([run for run in runs if matches(run, keep)], table, "quick.")

    def repeated(self, table, where) -> dict:
        """A section in which `repetitions = 5` may replace the seeds 0 to 4."""
        table = dict(self.section(table, where, ("repetitions",)))
        count = table.pop("repetitions", None)
        if count is None:
            return table
        self.check_value("repetitions", count, where, False)
        if "seed" in table:
            self.fail(
                f"{where} has both seed and repetitions (seeds 0, 1, …); use only one of them"
            )
        if count > MOST_RUNS:
            self.fail(f"{where} repetitions = {count}: at most {MOST_RUNS:,}")
        return table | {"seed": list(range(count))}

    def check_names(self, table, known, where):
        for key in table:
            if key not in known:
                self.fail(
                    f"{where} has the unknown key {quoted(key)}{or_near(key, known, 'known')}"
                )

    def tables(self, content, key):
        value = content.get(key, [])
        if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
            self.fail(f"{key} must be an array of tables: [[{key}]]")
        return value

    def section(self, table, where, extra=()) -> dict:
        """Check names and types of the fields of one table; lists are allowed here and rejected
        later if invalid.
        """
        if not isinstance(table, dict):
            self.fail(f"{where} must be a table")
        self.check_names(table, (*FIELDS, "options", *extra), where)
        options = table.get("options", {})
        if not isinstance(options, dict):
            self.fail(f"{where} options must be a table, such as options.lam = 1")
        if "seed" in options:
            self.fail(
                f"{where} options.seed: the seed is a field of the run; write seed ="
                f" {quoted(options['seed'])}"
            )
        fields = [
            (name, value, False) for name, value in table.items() if name not in ("options", *extra)
        ]
        for name, value, option in fields + [
            (name, value, True) for name, value in options.items()
        ]:
            if value == []:
                self.fail(f"{where} {name} is an empty list")
            for item in value if isinstance(value, list) else [value]:
                self.check_value(name, item, where, option)
        return table

    def check_value(self, name, value, where, option):
        kinds = (str, int, float, bool) if option else _TYPES.get(name, str)
        if not isinstance(value, kinds) or (
            isinstance(value, bool) and not (option or kinds is bool)
        ):
            words: dict[object, str] = {str: "text", int: "a whole number", bool: "true or false"}
            kind = words.get(kinds, "a number")
            self.fail(
                f"{where} {name} = {quoted(value)}: must be"
                f" {'text, a number, true or false' if option else kind}"
            )
        if name == "missing" and not option and value not in MISSING:
            self.fail(f"{where} missing = {quoted(value)}: must be one of {', '.join(MISSING)}")
        if not isinstance(value, (int, float)) or isinstance(value, bool):
            return
        if not (_LOWEST.get(name, -math.inf) <= value <= _HIGHEST and value >= -_HIGHEST):
            low = f"{_LOWEST[name]} or more" if name in _LOWEST else "finite"
            self.fail(f"{where} {name} = {quoted(value)}: must be {low} and less than 2^63")

    def grid(self, defaults, table, where, most) -> list[Run]:
        fields = {name: value for name, value in (defaults | table).items() if name != "options"}
        options = defaults.get("options", {}) | table.get("options", {})
        for name in ("dataset", "method"):
            if name not in fields:
                self.fail(f"{where} has no {name}")
        axes = [
            (name, False, [value] if name in _LISTS else value) for name, value in fields.items()
        ]
        axes += [(name, True, value) for name, value in options.items()]
        count = math.prod(len(value) for _, _, value in axes if isinstance(value, list))
        if count > most:
            self.fail(
                f"{where} expands to {count:,} runs, which exceeds the maximum of {MOST_RUNS:,} per"
                " plan"
            )
        runs = []
        for values in itertools.product(
            *(value if isinstance(value, list) else [value] for _, _, value in axes)
        ):
            own: tuple[dict, dict] = {}, {}
            for (name, option, _), value in zip(axes, values):
                own[option][name] = value
            runs.append(_with(None, *own))
        return runs

    def adjust(self, runs, content, prefix):
        """Apply the [[set]] tables in order, then drop the runs of each [[skip]]."""
        for number, table in enumerate(self.tables(content, "set"), start=1):
            where = f"[[{prefix}set]] {number}"
            self.section(table, where, extra=("when",))
            when = self.condition(table.get("when", {}), where, runs)
            options = table.get("options", {})
            fields = {
                name: value for name, value in table.items() if name not in ("when", "options")
            }
            for name, value in [*fields.items(), *options.items()]:
                if isinstance(value, list) and name not in _LISTS:
                    self.fail(
                        f"{where} {name} is a list; only [[run]] and [defaults] may contain lists"
                    )
            runs = [_with(run, fields, options) if matches(run, when) else run for run in runs]
        for number, table in enumerate(self.tables(content, "skip"), start=1):
            where = f"[[{prefix}skip]] {number}"
            self.check_names(table, ("when",), where)
            if not table.get("when"):
                self.fail(f"{where} has no when, so it would exclude every run")
            when = self.condition(table["when"], where, runs)
            runs = [run for run in runs if not matches(run, when)]
        return runs

    def condition(self, when, where, runs) -> dict:
        if not isinstance(when, dict):
            self.fail(f'{where}: when must be a table such as {{dataset = "cpu"}}')
        if not all(any(name in names for names in map(names_of, runs)) for name in when):
            known = sorted({name for run in runs for name in names_of(run)})
            self.check_names(when, known, f"{where} when")
        return when

    # ------------------------------------------------------------------------- before the first run

    def checked(self, runs: list[Run]) -> list[Run]:
        """The runs with resolved files; errors if a method, an option, a data set, a split or a
        file does not exist.
        """
        good: set = set()
        for run in runs:
            made = (run.method, *sorted(run.options.items()))
            if made not in good:
                self.check_options(run)
                good.add(made)
            rows = (run.dataset, run.test, run.split)
            if rows not in good:
                self.check_data(*rows)
                good.add(rows)
            if run.reading is not None and registry.has(run.dataset.partition(":")[0]):
                told = ", ".join(name for name in _READING if _get(run, name) is not None)
                self.fail(f"{told}: {run.dataset} is not a table with named columns")
        return [
            replace(run, dataset=self.found(run.dataset), test=run.test and self.found(run.test))
            for run in runs
        ]

    def check_options(self, run):
        try:
            method = methods.get(run.method)
        except UsageError as error:
            self.fail(error)
        for name, value in run.options.items():
            try:
                method.converted({name: value})
            except UsageError as error:
                self.fail(f"options.{name}: {error}")
        try:
            methods.create(run.method, seed=run.seed, **run.options)
        except UsageError as error:
            self.fail(error)

    def check_data(self, dataset, test, split):
        for name in (dataset, test):
            base = name and name.partition(":")[0]
            if name and not registry.has(base) and not os.path.isfile(self.found(name)):
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
        beside = os.path.join(self.folder, name)
        return os.path.normpath(beside) if os.path.isfile(beside) else name
