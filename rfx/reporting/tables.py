"""Tables: the rows of a results file in the layout of a paper, our number next to the printed one.

`Comparison` builds every table with data sets, kernels and methods. `rfx.plans.catalogue` finds the
tables, `cells` defines the cells, and `tables_render` writes the tables.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from rfx.errors import UsageError, or_near
from rfx.plans import catalogue
from rfx.records.result import picker
from rfx.reporting import seeds
from rfx.reporting.builders import choose
from rfx.reporting.cells import Around, Cell, Section, Table, words
from rfx.reporting.printed import Printed, printed

# (data set, kernel, method, field) -> the printed number
Book = Mapping[tuple[str, str, str, str], Printed]
# (kernel, method) -> its rows, one per seed
Picked = dict[tuple[str, str], list]


@dataclass(frozen=True)
class Field:
    """One printed quantity: its name in papers/*.csv, its heading, our number from a row, and its
    format.
    """

    name: str
    heading: str
    ours: Callable[[dict], float | None]
    write: Callable[[float], str]
    scored: bool = False  # meaningless on generated data
    # "high" or "low" if "better than the paper" is meaningful on another machine
    best: str = ""
    unit: str = "relative"  # unit of the margin of equivalence (rfx.reporting.seeds.MARGINS)
    chosen: bool = False  # a setting chosen by each run, not an outcome

    @property
    def around(self) -> Around:
        """What is written with the mean of several runs: the standard deviation, or the lowest and
        highest value of a setting.
        """
        return "extremes" if self.chosen else "deviation"


@dataclass(frozen=True)
class DataRow:
    """One data set of a table: the paper's, a substitute for one of them, or generated data of its
    size.
    """

    name: str
    stands_for: str = ""
    generated: bool = False

    @property
    def title(self) -> str:
        if self.generated:
            return (
                f"{self.name}: generated data of the size of {self.stands_for}, for time and memory"
                " only"
            )
        return (
            f"{self.name}: substitute for {self.stands_for}, not comparable"
            if self.stands_for
            else self.name
        )


@dataclass(frozen=True)
class Comparison:
    """Builder of a table with data sets as sections, kernels and fields as lines, and methods as
    columns.

    Rows that differ only in the seed are combined in one cell: their mean with its standard
    deviation. For a field with a preferred direction, the cell is better than, equal to or worse
    than the printed number, judged by this noise. The noise of a single run is unknown.

    package: the paper's, such as "rfx.papers.yen2014"; table: the table's name in its printed.csv.
    """

    title: str
    package: str
    table: str
    data: tuple[DataRow, ...]
    kernels: tuple[str, ...]
    methods: dict[str, str]
    fields: tuple[Field, ...]
    settings: dict[str, str]
    differs: tuple[str, ...] = ()
    # method -> method whose score selects among rows that differ in lam
    closest_to: dict[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The table's name on the command line, such as yen2014-table1."""
        return f"{self.package.rpartition('.')[2]}-{self.table}"

    def __call__(self, rows: Sequence[Mapping], setting: str | None = None) -> Table:
        by_data: dict[str, list] = {data.name: [] for data in self.data}
        rows = [row for row in rows if row["dataset"] in by_data]
        for row in rows:
            by_data[row["dataset"]].append(row)
        setting = choose(self.name, {name: name for name in self.settings}, rows, setting) or ""
        book = printed(self.package, self.table)
        made = Table(self.name, f"{self.title}; setting: {setting}", [], [], [])
        used: list[list] = []
        tidy: list[dict] = []
        for data in self.data:
            picked = self.pick(by_data[data.name], setting)
            if not picked and data.stands_for:
                continue
            used += picked.values()
            section, cells = self.section(data, picked, book)
            made.sections.append(section)
            made.compared += [cell for cell, _ in cells if cell.paper is not None]
            tidy += [{"table": self.name, "setting": setting} | line for _, line in cells]
        made.cells = tidy
        made.notes = self.notes(used, rows, book, setting)
        return made

    def unrun(self) -> list[Cell]:
        """The cells with a printed number if there are no runs."""
        return self([]).compared

    def section(
        self, data: DataRow, picked: Picked, book: Book
    ) -> tuple[Section, list[tuple[Cell, dict]]]:
        """The section of one data set, and its cells with their lines of CSV and JSON."""
        section = Section(
            _size_title(data, picked, book),
            ["kernel", "", *self.methods.values()],
            [],
            2,
            data.name,
        )
        section.methods = {title: method for method, title in self.methods.items()}
        lines, cells = [], []
        for kernel in self.kernels:
            for item in self.fields:
                line = [
                    self.cell(data, kernel, method, item, picked, book) for method in self.methods
                ]
                label = kernel if item is self.fields[0] else ""
                lines.append([words(label), words(item.heading), *line])
                for method, cell in zip(self.methods, line):
                    of = {
                        "dataset": data.name,
                        "stands_for": data.stands_for or None,
                        "kernel": kernel,
                        "method": method,
                    }
                    cells.append(
                        (
                            cell,
                            of
                            | {"field": item.name}
                            | _tidy(cell, picked.get((kernel, method), [])),
                        )
                    )
        section.lines = lines
        return section, cells

    def pick(self, rows: Sequence[Mapping], setting: str) -> Picked:
        """Select the rows of one data set for each (kernel, method), one per seed: those with the
        most features, and of these the newest.
        """
        picked: Picked = {}
        there: dict[tuple[str, str], list] = {}
        for row in rows:
            if row["status"] == "ok" and row["params"].get("label") == setting:
                there.setdefault((row["method"], self.line(row)), []).append(row)
        # Methods whose lam depends on another method's score come last.
        for method in sorted(self.methods, key=lambda name: name in self.closest_to):
            for kernel in self.kernels:
                found = there.get((method, kernel), [])
                if not found:
                    continue
                if "n_features" in seeds.options_of(method):
                    most = max(row["n_features"] or 0 for row in found)
                    found = [row for row in found if (row["n_features"] or 0) == most]
                groups = seeds.variants(found)
                reference = picked.get((kernel, self.closest_to.get(method, "")))
                picked[kernel, method] = (
                    _closest(groups, reference) if method in self.closest_to else groups[-1]
                )
        return picked

    def line(self, row: Mapping) -> str:
        """The entry of `kernels` for a row; a paper may have several lines for one kernel."""
        return row["kernel"]

    def cell(
        self, data: DataRow, kernel: str, method: str, item: Field, picked: Picked, book: Book
    ) -> Cell:
        """The cell of one quantity: the mean over its rows, and the printed number."""
        group = picked.get((kernel, method), [])
        ours = (
            None if item.scored and data.generated else seeds.mean(item.ours(row) for row in group)
        )
        paper = None if data.stands_for else book.get((data.name, kernel, method, item.name))
        converged = all(row["converged"] is not False for row in group) if group else None
        verdict = seeds.verdict(ours, paper, item.best, item.unit)
        pair = ours is not None or paper is not None
        return Cell(ours, item.write, item.around, paper, pair, verdict, converged)

    def notes(
        self, groups: Sequence[list], rows: Sequence[Mapping], book: Book, setting: str
    ) -> list[str]:
        used = [row for group in groups for row in group]
        notes = [
            "Every cell is ours / paper; a dash: not run, or not printed; *: the solver did not"
            " converge."
        ]
        notes += seeds.noise([len(group) for group in groups])
        notes.append(f"Setting {setting}: {self.settings[setting]}")
        gammas: dict[tuple[str, str], list[float]] = {}
        names: dict[tuple[str, str], list[str]] = {}
        for row in used:
            width = gamma(row)
            if width is not None:
                gammas.setdefault((row["kernel"] or "no kernel", row["dataset"]), []).append(width)
        for (kernel, dataset), values in gammas.items():
            text = " to ".join(
                f"{value:.4g}" for value in dict.fromkeys((min(values), max(values)))
            )
            names.setdefault((kernel, text), []).append(dataset)
        notes += [
            f"gamma of {kernel} = {text}: {', '.join(found)}"
            for (kernel, text), found in sorted(names.items())
        ]
        for method, reference in self.closest_to.items():
            # params: the values that each run chose
            if any(row["method"] == method and "lam" not in row["params"] for row in used):
                notes.append(
                    f"lambda of {method}: of those run, the one whose score is closest to"
                    f" {reference}'s."
                )
        notes += self.sizes(used, book) + [
            f"Differs from the paper: {text}" for text in self.differs
        ]
        return notes + failures(rows) + machines(used)

    def sizes(self, used: Sequence[Mapping], book: Book) -> list[str]:
        """The notes on numbers of random features that differ from the paper's (printed as its rf's
        model size).
        """
        others: dict[tuple[str, int, float], set[str]] = {}
        for row in used:
            paper = book.get((row["dataset"], row["kernel"], "rf", "model_size"))
            if row["n_features"] and paper and row["n_features"] != paper:
                others.setdefault((row["method"], row["n_features"], paper), set()).add(
                    row["dataset"]
                )
        return [
            f"{method} has D = {ours:,} where the paper has {paper:,.0f}:"
            f" {', '.join(sorted(names))}"
            for (method, ours, paper), names in sorted(others.items())
        ]


def _tidy(cell: Cell, group: list) -> dict:
    """A cell as a line of CSV and JSON, with the common values of its runs."""

    def alike(name):
        return group[0][name] if group and len({row[name] for row in group}) == 1 else None

    ours = cell.ours
    found: dict[str, object] = {
        "ours": cell.value,
        "sd": cell.sd,
        "low": ours and ours.low,
        "high": ours and ours.high,
        "n": ours.n if ours else 0,
    }
    found |= {"paper": cell.paper, "verdict": cell.verdict, "converged": cell.converged}
    return found | {"lam": alike("lam"), "n_features": alike("n_features")}


def _closest(groups: list[list], reference: list | None) -> list:
    """The group whose score is closest to the reference's (of two, the one with the smaller model).
    Without a reference, the group with the best score.

    A group's score is the mean over its seeds; one seed is enough for the comparison.
    """
    scored = [
        (found.value, group)
        for group in groups
        if (found := seeds.mean(row["score"] for row in group)) is not None
    ]
    if not scored:
        return groups[-1]
    wanted = seeds.mean(row["score"] for row in reference or ())
    if wanted is not None:
        return min(scored, key=lambda one: (abs(one[0] - wanted.value), _size(one[1])))[1]
    sign = -1 if scored[0][1][0]["metric"] == "accuracy" else 1
    return min(scored, key=lambda one: sign * one[0])[1]


def _size(group: list) -> float:
    found = seeds.mean(row["model_size"] for row in group)
    return found.value if found else 0


def _size_title(data: DataRow, picked: Picked, book: Book) -> str:
    sizes = [
        f"N {row['n_train']:,}, test {row['n_test']:,}, d {row['n_inputs']:,}"
        for group in picked.values()
        for row in group
        if None not in (row["n_train"], row["n_test"], row["n_inputs"])
    ]
    numbers = [book.get((data.name, "", "", name)) for name in ("n_train", "n_test", "n_inputs")]
    known = [number for number in numbers if number is not None]
    paper = "N {:,.0f}, test {:,.0f}, d {:,.0f}".format(*known) if len(known) == 3 else ""
    ours = ", ".join(dict.fromkeys(sizes))
    if ours and paper and ours != paper:
        return f"{data.title} ({ours}; paper: {paper})"
    return f"{data.title} ({ours or paper})" if ours or paper else data.title


def gamma(row: Mapping) -> float | None:
    """The bandwidth in use, also if it was chosen; None for a kernel without a bandwidth."""
    return (row["params"].get("kernel_params") or {}).get("gamma")


def failures(rows: Iterable[Mapping]) -> list[str]:
    """The runs that failed and the reasons, one line per reason."""
    ways: dict[tuple, list[str]] = {}
    for row in rows:
        if row["status"] != "ok":
            ways.setdefault((row["dataset"], row["status"], row["message"]), []).append(
                row["method"]
            )
    return [
        f"No result: {dataset}, {', '.join(dict.fromkeys(runs))} ({status}, runs: {len(runs)}):"
        f" {message}"
        for (dataset, status, message), runs in ways.items()
    ]


def machines(rows: Iterable[Mapping]) -> list[str]:
    """The processors, threads and versions of the rows, one line each."""
    lines = {}
    for cpu, threads, *found in dict.fromkeys(map(_made_with, rows)):
        versions = ", ".join(
            f"{name} {version}" for name, version in zip(_PROGRAMS, found) if version
        )
        lines[f"Machine: {cpu or 'unknown'}, {threads or 'all'} threads; {versions}"] = True
    return list(lines)


_PROGRAMS = ("rfx", "python", "numpy", "scipy", "numba", "liblinear", "libsvm", "blas")
_made_with = picker("cpu", "threads", *_PROGRAMS)


def memory_gb(row: Mapping) -> float | None:
    """The run's peak memory in GB of 10^9 bytes, the papers' unit."""
    return None if row["peak_rss_mb"] is None else row["peak_rss_mb"] * 2**20 / 1e9


def build(
    name: str,
    rows: Sequence[Mapping],
    setting: str | None = None,
    known: dict[str, Callable] | None = None,
    **more,
) -> Table:
    """The table `name` from result rows. Raises UsageError if there is no such table.

    known: the tables, name to builder; default: the general ones. more: further arguments of
    `summary`. Raises UsageError if another table receives any of them.
    """
    known = catalogue.tables() if known is None else known
    if name not in known:
        raise UsageError(f"there is no table {name}{or_near(name, known)}")
    more = {option: value for option, value in more.items() if value is not None}
    if more and name != "summary":
        option, value = next(iter(more.items()))
        raise UsageError(
            f"--{option.replace('_', '-')} {value} applies to the table summary, not to {name}"
        )
    return known[name](rows, setting, **more)
