"""Learn a schema from the rows of tables: numeric and categorical columns, replacements of missing
cells, labels.
"""

import itertools
import logging
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from copy import copy
from dataclasses import dataclass, field, fields, replace

import numpy as np

from rfx import lazy
from rfx.data.reading import Reading, typed
from rfx.data.tabular import labelwords, number_formats
from rfx.data.tabular.readers import numbers_of
from rfx.data.tabular.schema import MISSING_CATEGORY, Input, Schema
from rfx.data.tabular.table import Table, Words, abbreviated, words_of
from rfx.errors import DataError, UsageError

log = logging.getLogger(__name__)
# More distinct words than this, in more than half of the rows, are names rather than categories.
MOST_NAMES = 20
# At most so many values, in so many rows each on average, may be categories although most of them
# are numbers.
FEW_VALUES, ROWS_OF_EACH = 10, 5
# Words that mark a missing cell or an error, besides those that are always read as missing.
_MARKS = frozenset(
    "unknown missing none nil err error invalid undefined unspecified n.a. n.d. nd".split()
)
# Fewer rows than this may count up by chance.
LEAST_COUNTED = 10
_ZERO_OR_ONE = ("0", "1", "0.0", "1.0")
# Singular and plural of column types in the summary, and what their inputs are called.
_KINDS = {
    "number": ("number", "numbers", ""),
    "category": ("category", "categories", "value"),
    "encoded": ("target-encoded", "target-encoded", "value"),
    "date": ("date", "dates", "input"),
    "constant": ("constant", "constant", ""),
    "ignored": ("ignored", "ignored", ""),
}
# Common names of row-number columns.
_ID_NAME = re.compile(
    r"(?:.*[ _.-])?(?:id|ID|Id|idx|uuid|UUID)|(?:index|row|rowid|row["
    r" _.-]?(?:number|num|nr|no|index)|"
    r"record|record[ _.-]?(?:number|no)|no\.?|nr\.?|number|#|sno|s\.no\.?|serial(?:["
    r" _.-]?(?:number|no))?)"
    r"|[A-Za-z]*[a-z](?:Id|ID)",
)


@dataclass(eq=False)
class KindChanged(Exception):
    """Columns, by position, are words in one part of the rows and numbers in another: read all
    rows again with these columns as words.
    """

    columns: frozenset[int]


@dataclass(frozen=True)
class _Asked:
    """The positions of the columns that each option names."""

    ignore: set[int]
    categorical: set[int]
    dates: set[int]
    groups: set[int]
    time: set[int]

    @property
    def no_inputs(self) -> set[int]:
        """Columns that are no inputs."""
        return self.ignore | self.groups | self.time

    @property
    def words(self) -> set[int]:
        """Inputs that are read as words whatever their cells."""
        return self.categorical | self.dates


class Learner:
    """Learns a Schema from consecutive tables of rows.

    bounded: use bounded memory, for a stream; medians and most frequent numbers then raise an
    error. task: as requested; `finish` infers it if the spelling of the targets shows it.
    """

    def __init__(self, reading: Reading, bounded: bool = False, task: str | None = None):
        self.reading, self.bounded, self.task, self.target = reading, bounded, task, -1
        self.as_words: frozenset[int] = frozenset()
        self.restart()

    # ------------------------------------------------------------------ names and options

    def begin(self, table: Table) -> frozenset[int]:
        """Decide by names and options what the columns of a table are, which may have no rows yet;
        the result is the positions of the columns to read as words.
        """
        if self.target >= 0:
            return self.as_words
        self.table, reading = table, self.reading
        self.asked = self._find_asked()
        no_inputs = self.asked.no_inputs
        positions = {*range(len(table.names))}
        # row numbers, according to the file or to a name that only programs use
        index = {p for p in positions if table.is_index(p)} - no_inputs - self.asked.words
        target = table.own_target
        if reading.target is not None:
            target = table.find(reading.target, "--target")
        if target in no_inputs | self.asked.dates:
            raise UsageError(
                f"{table.title(target)} holds the targets, so --ignore, --dates, --groups and"
                " --time can't name it; --target selects another column"
            )
        if target is None:
            possible = sorted(positions - index - no_inputs)
            target = self._guessed_target(possible)
        self.target = target
        self._say_left_out(index - {target}, "the index of the saved data frame")
        left_out = (index | no_inputs) - {target}
        self.ignored = tuple(table.names[position] for position in sorted(left_out))
        self.kept = sorted(positions - left_out)
        if len(self.kept) < 2:
            raise DataError(
                f"{table.name} has one column, but needs a target and an input; does it use another"
                " separator?"
            )
        as_words = self.asked.words | self.asked.groups
        if self.task != "regression":
            as_words.add(target)
        self.as_words = frozenset(as_words)
        return self.as_words

    def _find_asked(self) -> _Asked:
        """The positions of the columns that each option names; UsageError for one named twice."""
        asked: dict[str, set[int]] = {}
        for one in fields(_Asked):
            names = getattr(self.reading, one.name) or ()
            names = (names,) if isinstance(names, str) else names
            asked[one.name] = {self.table.find(name, f"--{one.name}") for name in names}
        for (option, places), (other, more) in itertools.combinations(asked.items(), 2):
            if (option, other) in (("ignore", "groups"), ("ignore", "time")):
                continue
            both = places & more
            if both:
                title = self.table.title(min(both))
                raise UsageError(
                    f"--{option} and --{other} both name {title}; use only one of them"
                )
        return _Asked(**asked)

    def _guessed_target(self, positions: list[int]) -> int:
        """The most likely target column if none is named, with a warning: the last that has a name
        and is not a row number.
        """
        table = self.table
        named = [p for p in positions if not table.unnamed(p)]
        last = len(table.names) - 1
        target = (named or positions or [last])[-1]
        place = "the last" if target == last else "the last that may be one"
        log.warning(
            "the targets of %s are %s, %s; --target selects another column",
            table.name,
            table.title(target),
            place,
        )
        return target

    # ------------------------------------------------------------------ rows

    def update(self, table: Table) -> "Learner":
        """Learn from more rows. KindChanged if they have words where others have numbers."""
        self.begin(table)
        if not self.columns:
            self._begin_columns(table)
        changed = set()
        for position, column in self.columns.items():
            if isinstance(table.columns[position], Words) != column.as_words:
                changed.add(position)
        if changed:
            raise KindChanged(frozenset(changed))
        self.n_rows += table.n_rows
        self._note(table)
        for position, column in self.columns.items():
            column.update(table, position)
        return self

    def restart(self) -> None:
        """Forget all rows."""
        self.columns: dict[int, _Column] = {}
        # what cells show about dots and zeros, see Table
        self.dotted: dict[int, str] = {}
        self.padded: dict[int, str] = {}
        self.n_rows = 0

    def _begin_columns(self, table: Table) -> None:
        self.table = table
        unread = sorted(table.unread.keys() & set(self.kept))
        table.check_read(unread, f"; ignore it with {self._option('ignore', unread)}")
        forgets = self.bounded or self.task in (None, labelwords.KEPT, "regression")
        for p in self.kept:
            name = table.names[p]
            self.columns[p] = _Column(
                as_words=isinstance(table.columns[p], Words),
                values=None if self.bounded else [],
                declared=name in table.categorical or p in self.asked.categorical,
                typed=name in table.typed,
                target=p == self.target,
                forgets=forgets,
            )

    def _note(self, other: "Table | Learner") -> None:
        for position, cell in other.dotted.items():
            self.dotted[position] = cell and self.dotted.get(position, cell)
        self.padded = other.padded | self.padded

    @property
    def word_columns(self) -> frozenset[int]:
        """The positions of the columns of words."""
        return frozenset(p for p, column in self.columns.items() if column.as_words)

    def merge(self, other: "Learner") -> "Learner":
        """Merge another learner that has seen later rows; both are bounded, with the same column
        types. Returns this one.
        """
        if self.table.names != other.table.names:
            raise DataError(
                f"{other.table.name} has other columns than {self.table.name}; all files need the"
                " same columns"
            )
        self.n_rows += other.n_rows
        self._note(other)
        for position, column in self.columns.items():
            column.merge(other.columns[position])
        return self

    @property
    def has_gaps(self) -> bool:
        """Whether cells are missing and replaced."""
        gaps = any(column.count < self.n_rows for column in self.columns.values())
        return self.reading.missing != "refuse" and gaps

    # ------------------------------------------------------------------ the schema

    def finish(self) -> Schema:
        """The schema of all rows seen.

        Guesses are logged. DataError for words that are not categories (all columns at once), a
        target that is a row number, one without rows, or one with a missing cell.
        """
        table = self.table
        self._leave_out_unnamed()
        self._leave_out_empty()
        if len(self.columns) < 2:
            raise DataError(
                f"{table.name} has no input column, only {table.title(self.target)} with the"
                " targets"
            )
        labels, target_form = self._targets()
        inputs, troubles = [], {}
        for position in [p for p in self.columns if p != self.target]:
            try:
                inputs.append(self._input(position))
            except _Trouble as error:
                troubles[position] = error
        if not inputs or any(not trouble.names for trouble in troubles.values()):
            raise self._refusal(troubles)
        for position, trouble in troubles.items():  # columns that identify rows
            self.tell(
                f"{table.title(position)} of {table.name} is ignored: it has {trouble.reason};"
                f" {self.kept_by(position)} keeps it"
            )
            self._ignore([position])
        self._say_how(inputs, labels or ())
        place = (table.names[self.target], self.target)
        return Schema(
            inputs,
            table.named,
            len(table.names),
            place,
            self.ignored,
            labels,
            target_form,
            refuses_gaps=self.reading.missing == "refuse",
        )

    def _input(self, position: int) -> Input:
        """An input column. _Trouble if it is neither numbers nor categories."""
        column, as_dates = self.columns[position], position in self.asked.dates
        categories, form = column.settled(self.n_rows, self.table.decimal, as_dates)
        complete = column.count == self.n_rows
        if categories and not complete and self._marks_gaps:
            words = [word for word in categories if word != MISSING_CATEGORY]
            categories = [*words, MISSING_CATEGORY]
        name = self.table.names[position]
        learnt = Input(name, position, categories, form=form, complete=complete)
        fill = self._fill(learnt, column, self.reading.missing or "mean")
        return replace(learnt, fill=fill)

    def _ignore(self, positions: list[int]) -> None:
        self.ignored += tuple(self.table.names[position] for position in positions)
        for position in positions:
            del self.columns[position]

    def _targets(self) -> tuple[list[str] | None, number_formats.Form | None]:
        """(labels or None, Form or None) of the targets. DataError if they are invalid."""
        table, column = self.table, self.columns[self.target]
        whose = f"{table.title(self.target)} of {table.name}"
        if self.reading.target is None and table.own_target is None:
            self._check_guessed_target(column, whose)
        try:
            labels, form, self.task = column.targets(self.n_rows, table, self.task)
        except _Trouble as trouble:
            raise DataError(
                f"{trouble.sentence(table, self.target)}; correct the cells, or name another column"
                " with --target"
            ) from None
        if form is not None:
            example = number_formats.example(column.words or (), form)
            log.warning("%s: the targets are read as numbers: %s", table.name, example)
        return labels, form

    def _check_guessed_target(self, column: "_Column", whose: str) -> None:
        """DataError for a target that nobody named and that has no name or counts the rows; a
        warning if it looks like a row number. whose: the column, for messages.
        """
        counts = self.n_rows >= LEAST_COUNTED and column.span(self.n_rows) == self.n_rows - 1
        if self.table.unnamed(self.target) or counts:
            what = "looks like a row number" if counts else "has no name"
            raise DataError(f"{whose}, the last, {what}; name the target column with --target")
        if self._numbers_rows(self.target):
            log.warning(
                "%s looks like a row number, but is the target; --target selects another column",
                whose,
            )

    def _leave_out_unnamed(self) -> None:
        """Ignore unnamed columns that are empty, or that number or identify the rows."""
        table, asked = self.table, self.asked.words | {self.target}
        unnamed = [p for p in self.columns if table.unnamed(p) and p not in asked]
        empty = [p for p in unnamed if not self.columns[p].count]
        different = [p for p in unnamed if self.columns[p].all_different(self.n_rows)]
        self._say_left_out(empty, "no name and no value")
        self._say_left_out(different, "no name, and contains row numbers or row names")
        self._ignore(empty + different)

    def _leave_out_empty(self) -> None:
        """Ignore input columns without a value in any training row, unless missing cells are
        refused."""
        kept = self.asked.words | {self.target}
        empty = [p for p in self.columns if p not in kept and not self.columns[p].count]
        if self.reading.missing != "refuse":
            self._say_left_out(empty, "no value in any training row")
            self._ignore(empty)

    @property
    def _marks_gaps(self) -> bool:
        """Whether missing cells among words become a category of their own."""
        return self.reading.missing not in ("refuse", "most_frequent")

    def _fill(self, learnt: Input, column: "_Column", how: str) -> float | str | None:
        """The replacement of a column's missing cells; how: one of MISSING."""
        words = column.words
        if how == "refuse":
            return None
        if self._marks_gaps and MISSING_CATEGORY in (learnt.categories or ()):
            return MISSING_CATEGORY
        if words is None and how == "mean":
            return float(column.total / column.count)
        if words is None and column.values is None:
            raise UsageError(
                f"--missing is {how}, which needs all rows at once; with --stream use --missing"
                " mean"
            )
        if words is None:
            numbers = np.concatenate(column.values or [])
        elif learnt.categories is None:
            values = number_formats.read(words, learnt.form, self.table.decimal)
            numbers = np.repeat(values, [*words.values()])
        else:
            places = learnt.places(words)
            counts = np.bincount(places, [*words.values()], len(learnt.categories))
            return learnt.categories[int(np.argmax(counts))]
        if how == "most_frequent":
            return float(lazy.pandas.Series(numbers).mode()[0])
        numbers = numbers[~np.isnan(numbers)]
        return float(numbers.mean() if how == "mean" else np.median(numbers))

    def relearnt(self, schema: Schema, table: Table) -> Schema:
        """`refilled` from these rows alone."""
        again = copy(self)
        again.restart()
        return again.update(table).refilled(schema)

    def refilled(self, schema: Schema) -> Schema:
        """A schema of these columns with replacements of missing cells learnt from the rows seen.

        A column without a value keeps its replacement; a column of target means is unchanged.
        """
        inputs, how = [], self.reading.missing or "mean"
        for learnt in schema.columns:
            if learnt.means is None and learnt.fill is not None:
                column = self.columns[learnt.position]
                fill = self._fill(learnt, column, how) if column.count else learnt.fill
                learnt = replace(learnt, fill=fill)
            inputs.append(learnt)
        return replace(schema, inputs=inputs)

    # ------------------------------------------------------------------ messages

    def tell(self, message: str) -> None:
        """Log the treatment of a column."""
        log.warning("%s", message)

    def with_gaps(self, name: str, count: int) -> str:
        """How a message names a column with that many missing cells."""
        return f"{name} ({count:,})"

    def kept_by(self, *positions: int) -> str:
        """The option that reads columns as categories."""
        return self._option("categorical", positions)

    def _say_left_out(self, positions, why: str) -> None:
        if not positions:
            return
        are = "are" if len(positions) > 1 else "is"
        titles = abbreviated(map(self.table.title, sorted(positions)))
        self.tell(f"{titles} of {self.table.name} {are} ignored: {why}")

    def _say_how(self, inputs: list[Input], labels: Iterable[str]) -> None:
        """Log how cells were read that may mean something else."""
        self._say_types(inputs)
        similar = []
        for learnt in inputs:
            similar += [(learnt.position, same) for same in _alike(learnt.categories or ())]
        self._say_of_columns("similar categories, read as different", similar)
        same_labels = [(self.target, same) for same in _alike(labels, _folded)]
        self._say_of_columns("similar labels, read as different", same_labels)
        self._say_digits({learnt.position for learnt in inputs if learnt.kind == "number"})
        self._warn_of_ids()

    def _say_types(self, inputs: list[Input]) -> None:
        """Log which columns with words are categories, numbers or dates."""
        mixed, amounts, dates = [], [], {}
        for learnt in inputs:
            position, column = learnt.position, self.columns[learnt.position]
            if learnt.categories and not column.declared:
                word = word_among_numbers(column.words or {})
                if word:
                    mixed.append((position, f"{word!r:.80}"))
            if learnt.form and learnt.form.kind == "numbers":
                example = number_formats.example(column.words or (), learnt.form)
                amounts.append((position, example))
            if learnt.kind == "date" and position not in self.asked.dates:
                dates[position] = ""
        self._say_of_columns("read as categories, because a frequent value is a word", mixed)
        self._say_of_columns("read as numbers", amounts)
        advice = f"; {self.kept_by(*dates)} reads {_them(dates)} as words"
        self._say_of_columns("read as dates", dates.items(), advice)

    def _say_digits(self, plain: set[int]) -> None:
        """Log which columns of plain numbers have dots before three digits, or leading zeros."""
        dotted = []
        for position, cell in self.dotted.items():
            if cell and position in plain and self.columns[position].words is None:
                dotted.append((position, cell))
        self._say_of_columns(
            "read as decimals, because the separator is ; although each dot precedes three digits",
            dotted,
            "; remove dots that mark thousands",
        )
        padded = {p: cell for p, cell in self.padded.items() if p in plain}
        advice = f"; {self.kept_by(*padded)} reads {_them(padded)} as codes"
        self._say_of_columns("read as numbers, without leading zeros", padded.items(), advice)

    def _say_of_columns(self, what: str, examples: Collection[tuple], advice: str = "") -> None:
        """Log how some columns were read; examples: (position, cell, or empty)."""
        if not examples:
            return
        shown = []
        for position, example in examples:
            title = self.table.title(position)
            shown.append(f"{title} ({example})" if example else title)
        self.tell(f"{self.table.name}: {what}: {abbreviated(shown)}{advice}")

    def _warn_of_ids(self) -> None:
        """Warn about inputs that look like row numbers."""
        ids = [p for p in self.columns if p != self.target and self._numbers_rows(p)]
        if not ids:
            return
        log.warning(
            "%s of %s: each is an input that looks like a row number; %s ignores it",
            abbreviated(map(self.table.title, ids)),
            self.table.name,
            self._option("ignore", ids),
        )

    def _numbers_rows(self, position: int) -> bool:
        """Whether the numbers of a column are probably row numbers."""
        column, table = self.columns[position], self.table
        if column.as_words and not column.target or self.n_rows < LEAST_COUNTED:
            return False
        if table.unnamed(position):
            return column.whole
        if column.span(self.n_rows) < 2 * self.n_rows:  # half of the integers of the range
            return True
        named_as_id = table.named and _ID_NAME.fullmatch(table.names[position]) is not None
        return named_as_id and column.words is None and column.all_different(self.n_rows)

    def say(self, schema: Schema, summary: bool = True) -> None:
        """Log which columns have missing cells that are filled, and a summary of all columns;
        schema: the result of `finish`, or with target means.
        """
        filled = []
        for learnt in schema.columns:
            missing = self.n_rows - self.columns[learnt.position].count
            if missing and learnt.fill is not None:
                filled.append(self.with_gaps(learnt.name, missing))
        if filled and self.reading.missing is None:
            self.tell(
                f"{self.table.name}: missing cells are filled, numbers by the mean and words by a"
                f" category of their own: {abbreviated(filled)}; see --missing"
            )
        if summary:
            log.warning("%s", self.summary(schema))

    def summary(self, schema: Schema) -> str:
        """The number of inputs from the columns of a schema, by type."""
        kinds: Counter[str] = Counter()
        values: Counter[str] = Counter()
        for learnt in schema.columns:
            kind = "constant" if self.columns[learnt.position].constant else learnt.kind
            kinds[kind] += 1
            values[kind] += learnt.width if kind == "date" else len(learnt.categories or ())
        n_columns = len(self.table.names) - 1
        kinds["ignored"] = n_columns - len(schema.columns)
        parts = []
        for kind, (one, several, value) in _KINDS.items():
            if kinds[kind]:
                part = _counted(kinds[kind], one, several)
                if value:
                    part += f" ({_counted(values[kind], value, f'{value}s')})"
                parts.append(part)
        columns = _counted(n_columns, "column", "columns")
        width = _counted(schema.width, "input", "inputs")
        return f"{self.table.name}: {width} from {columns}: {', '.join(parts)}"

    def _option(self, option: str, positions) -> str:
        """An option that lists these columns and those it listed before."""
        asked = getattr(self.reading, option)
        before = [self.table.find(name, f"--{option}") for name in asked]
        more = [p for p in sorted(positions) if p not in before]
        names = [self.table.names[position] for position in [*before, *more]]
        return typed(option, names)

    def advice(self, troubles) -> list[str]:
        """Advice about columns that are neither numbers nor categories, one clause each."""
        them = _them(troubles)
        return [
            f"correct {them} (an empty cell marks a missing value)",
            f"read {them} as categories with {self._option('categorical', troubles)}",
            f"ignore {them} with {self._option('ignore', troubles)}",
        ]

    def _refusal(self, troubles) -> DataError:
        *others, last = self.advice(troubles)
        each = [trouble.sentence(self.table, position) for position, trouble in troubles.items()]
        error = DataError(f"{'; '.join(each)}; {', '.join(others)}, or {last}")
        if len(troubles) < len(self.columns) - 1:
            error.remedy = self._option("ignore", troubles)
        return error


def word_among_numbers(words: Mapping[str, int]) -> str | None:
    """The most frequent word of a column of categories most of which are whole numbers, such as 1,
    2, 3 and more; None if its words may mark missing cells or errors.

    These are categories if there are few values, the word has at least half of an equal share of
    the cells, and no other word has less than a tenth of one. words: the number of cells of each
    value.
    """
    n_cells = sum(words.values())
    if len(words) > FEW_VALUES or n_cells < ROWS_OF_EACH * len(words):
        return None
    others = {word: count for word, count in words.items() if not word.lstrip("+-").isdigit()}
    if not others or 2 * sum(others.values()) >= n_cells:
        return None
    if any(number_formats.kind(word) != "word" or _is_mark(word) for word in others):
        return None
    most, equal_share = max(others, key=others.__getitem__), n_cells / len(words)
    frequent = others[most] >= max(ROWS_OF_EACH, equal_share / 2)
    return most if frequent and min(others.values()) >= equal_share / 10 else None


def _is_mark(word: str) -> bool:
    """Whether a word may mark a missing cell, or an error such as #REF! of a spreadsheet."""
    return word.casefold() in _MARKS or word.startswith("#") or not any(map(str.isalnum, word))


def _counted(count: int, one: str, several: str) -> str:
    """A count with the matching word."""
    return f"{count:,} {one if count == 1 else several}"


def _them(parts) -> str:
    return "it" if len(parts) == 1 else "them"


def _common(category: str):
    """The common key of categories that differ only by case, by surrounding blanks, or in how a
    number is written.
    """
    key = number_formats.same(category)
    return key.casefold() if isinstance(key, str) else key


def _folded(word: str) -> str:
    return word.strip().casefold()


def _alike(words: Iterable[str], common: Callable = _common) -> list[str]:
    """Groups of words with the same key, each as a text."""
    return [" and ".join(map(repr, group)) for group in number_formats.alike(words, common)]


@dataclass(eq=False)
class _Trouble(Exception):
    """Why a column is neither numbers nor categories: its content, the place of an odd cell,
    whether it contains row names.
    """

    reason: str
    place: str | None = None
    names: bool = False

    def sentence(self, table: Table, position: int) -> str:
        if self.place is not None:
            return f"{self.place}: {table.title(position)} has {self.reason}"
        return f"{table.title(position)} of {table.name} has {self.reason}"


@dataclass(frozen=True)
class _Cells:
    """The number of cells of each kind in a column of words, see `number_formats.kind`."""

    number: int = 0
    truth: int = 0
    date: int = 0
    written: int = 0
    word: int = 0


@dataclass
class _Column:
    """The statistics of a column.

    as_words: it is read as words. values: the numbers, None if they are not kept. declared: it is
    categorical, whatever its cells; typed: the file declares words. target: it holds the targets;
    forgets: if these are more than labelwords.MOST plain numbers, their spelling does not matter.
    """

    as_words: bool
    values: list[np.ndarray] | None
    declared: bool = False
    typed: bool = False
    target: bool = False
    forgets: bool = False
    words: dict[str, int] | None = None  # the number of cells
    places: dict[str, str] = field(default_factory=dict)  # of the first cell of each word
    count: int = 0
    many: bool = False
    # of numbers: whether all are integers, and whether a part repeats one
    total: float = 0.0
    low: float = np.inf
    high: float = -np.inf
    whole: bool = True
    repeated: bool = False

    def __post_init__(self) -> None:
        self.words = {} if self.as_words or self.declared else None

    @property
    def constant(self) -> bool:
        """Whether all cells with a value have the same value."""
        return self.low == self.high if self.words is None else len(self.words) == 1

    def span(self, n_rows: int) -> float:
        """The difference of the largest and the smallest of different integers, one in each row;
        infinity for other cells.
        """
        different = self.count == n_rows and self.whole and not self.repeated
        span = self.high - self.low
        return span if different and span + 1 >= n_rows else np.inf

    def update(self, table: Table, position: int) -> None:
        values = table.cells(position)
        if self.words is None:
            assert not isinstance(values, Words)
            self._add_numbers(values)
            return
        values = values if isinstance(values, Words) else words_of(values)
        if self.target and self._are_many(values, table):
            return
        codes, rows, counts = np.unique(values.codes, return_index=True, return_counts=True)
        for code, row, count in zip(codes.tolist(), rows.tolist(), counts.tolist()):
            if code >= 0:
                word = values.values[code]
                self.count += count
                self.words[word] = self.words.get(word, 0) + count
                self.places.setdefault(word, table.place(row))

    def _are_many(self, values: Words, table: Table) -> bool:
        """Whether targets are certainly numbers, because there are so many; they are added as
        such, and their spelling is forgotten.
        """
        numbers = number_formats.read(values.values, None, table.decimal)
        column = np.append(numbers, np.nan)[values.codes]
        self._note(column)
        many = self.forgets and len(numbers) + len(self.words or ()) > labelwords.MOST
        if not (self.many or many) or np.isnan(numbers).any():
            return False
        self.many = True
        self.count += int(np.count_nonzero(~np.isnan(column)))
        return True

    def _add_numbers(self, values: np.ndarray) -> None:
        self.count += int(np.count_nonzero(~np.isnan(values)))
        self.total += float(np.nansum(values))
        self._note(values)
        if self.values is not None:
            self.values.append(values)

    def _note(self, values: np.ndarray) -> None:
        self.low = min(self.low, np.fmin.reduce(values, initial=np.inf))
        self.high = max(self.high, np.fmax.reduce(values, initial=-np.inf))
        whole = (values == np.floor(values)) | np.isnan(values)
        self.whole = self.whole and bool(whole.all())
        self.repeated = self.repeated or (self.whole and len(np.unique(values)) < len(values))

    def merge(self, other: "_Column") -> None:
        self.count += other.count
        self.total += other.total
        self.low, self.high = min(self.low, other.low), max(self.high, other.high)
        self.whole = self.whole and other.whole
        self.repeated = self.repeated or other.repeated
        self.places = other.places | self.places
        self.many = self.many or other.many
        if self.words is not None:
            self.words = dict(Counter(self.words) + Counter(other.words or {}))

    def all_different(self, n_rows: int) -> bool:
        """Whether each row has a distinct integer or word, as far as is known."""
        if self.count < n_rows or n_rows < 2 or self.declared:
            return False
        if self.words is not None:
            return len(self.words) == n_rows
        return self.span(n_rows) < np.inf

    # ------------------------------------------------------------------ type of the column

    def settled(self, n_rows: int, decimal: str | None, as_dates: bool = False):
        """(categories or None, Form or None); _Trouble if the column is neither numbers nor
        categories.
        """
        if not self.count:
            raise _Trouble("no value in any training row")
        if self.words is None:
            return None, None
        if self.declared:
            return sorted(self.words), None
        kinds = {word: number_formats.kind(word) for word in self.words}
        counts: Counter[str] = Counter()
        for word, kind in kinds.items():
            counts[kind] += self.words[word]
        cells = _Cells(**counts)
        if cells.truth and not as_dates and _are_truths(kinds):
            truths = {number_formats.truth(word) or str(float(word) == 1) for word in self.words}
            return sorted(truths), None
        try:
            is_number, form = self._numeric(cells, decimal, as_dates)
        except number_formats.Unclear as unclear:
            raise _Trouble(str(unclear)) from None
        if is_number:
            return None, form
        self._check_categories(kinds, cells, n_rows)
        return sorted(self.words), None

    def _numeric(
        self, cells: "_Cells", decimal: str | None, as_dates: bool
    ) -> tuple[bool, number_formats.Form | None]:
        """(whether the words are numbers or dates, their Form or None). Raises Unclear."""
        words = self.words or {}
        if as_dates:
            return True, number_formats.dates(words)
        if not self.typed and numbers_of(words, decimal == ",") is not None:
            return True, None
        if cells.written and cells.number + cells.written == self.count:
            return True, number_formats.numbers(words, decimal)
        if cells.date == self.count and not self.target:
            return True, number_formats.dates(words)
        return False, None

    def _odd(self, kinds: dict[str, str], *usual: str) -> tuple[str, str]:
        """The first word that is of none of the usual kinds, and its place."""
        word = next(word for word, kind in kinds.items() if kind not in usual)
        return word, self.places[word]

    def _check_categories(self, kinds: dict[str, str], cells: "_Cells", n_rows: int) -> None:
        """_Trouble if the words are not categories; kinds: of words."""
        numbers, number = cells.number + cells.written, ("number", "written")
        distinct = [word for word, kind in kinds.items() if kind in number]
        # too many or too fine for categories, so that the others may mark missing cells
        fine = any("." in word or "," in word for word in distinct) or len(distinct) > MOST_NAMES
        marked = 2 * len(distinct) > len(kinds) and fine
        doubtful = numbers < self.count and (2 * numbers > self.count or marked)
        if doubtful and word_among_numbers(self.words or {}) is None:
            word, place = self._odd(kinds, *number)
            others = "most of its cells" if 2 * numbers > self.count else "most of its other values"
            raise _Trouble(f"{word!r:.80}, which is not a number, unlike {others}", place)
        if cells.date == self.count:
            raise _Trouble(f"dates such as {next(iter(kinds))!r:.80}, which can't be targets")
        if 2 * cells.date > self.count:
            word, place = self._odd(kinds, "date")
            raise _Trouble(f"{word!r:.80}, which is not a date, unlike most of its cells", place)
        if len(kinds) > max(MOST_NAMES, n_rows // 2):
            raise _Trouble(
                f"{len(kinds):,} different words in {n_rows:,} rows, too many for categories",
                names=True,
            )

    def targets(self, n_rows: int, table: Table, task: str | None):
        """(labels, None for numbers; Form or None; task) of a target column."""
        words = self.words or {}
        if self.many:
            self._check_many_targets(table, task)
            return None, None, task or "regression"
        try:
            categories, form = self.settled(n_rows, table.decimal)
        except _Trouble as trouble:
            if task not in ("binary", "multiclass") or trouble.place is None:
                raise
            categories, form = sorted(words), None  # odd words are labels, as the task says
        if self.words is None:
            return None, None, task
        if categories is not None:
            if task != "regression":
                return sorted(words), None, task
            for word in words:
                if labelwords.value(word) is None:
                    raise DataError(
                        f"{self.places[word]}: the target {word!r:.80} is a word, but --task"
                        " regression needs numbers; correct it, or omit --task"
                    )
            return None, None, task
        numbers = number_formats.read(words, form, table.decimal).tolist()
        labels, task = labelwords.decided(words, numbers, task, table.name)
        return labels, form if labels is None else None, task

    def _check_many_targets(self, table: Table, task: str | None) -> None:
        """Raise an error if very many distinct targets are not numbers of a regression."""
        for word in self.words or {}:
            if number_formats.kind(word) != "number":
                why = f"{word!r:.80}, which is not a number, unlike most cells"
                raise _Trouble(why, self.places[word])
        if task not in (None, labelwords.KEPT, "regression"):
            raise DataError(
                f"the labels of {table.name} have more than {labelwords.MOST:,} distinct"
                " values, too many for classes; set --task regression"
            )


def _are_truths(kinds: dict[str, str]) -> bool:
    """Whether all words are true, false, 1 or 0; kinds: of the words."""
    return all(kind == "truth" or word in _ZERO_OR_ONE for word, kind in kinds.items())


def targets_of(table: Table, task: str | None):
    """(labels, None for numbers; Form or None; task) of a table with one column, the targets."""
    learner = Learner(Reading(), task=task)
    learner.table, learner.target, learner.n_rows = table, 0, table.n_rows
    learner.columns[0] = _Column(isinstance(table.columns[0], Words), [], target=True)
    learner.columns[0].update(table, 0)
    return *learner._targets(), learner.task
