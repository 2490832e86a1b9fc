"""Learn a schema from the rows of tables: numeric and categorical columns, replacements of missing
cells, labels.
"""

import itertools
import logging
import re
from collections.abc import Callable, Iterable
from dataclasses import replace

import numpy as np

from rfx.data.reading import MISSING, Reading, typed
from rfx.data.tabular import labelwords, written
from rfx.data.tabular.csvtext import numbers_of
from rfx.data.tabular.schema import Input, Schema
from rfx.data.tabular.table import Table, Words, check_finite, is_code_among, words_of_numbers
from rfx.errors import DataError, UsageError

log = logging.getLogger(__name__)
# More distinct words than this, in more than half of the rows, are names rather than categories.
MOST_NAMES = 20
# Fewer rows than this may count up by chance.
LEAST_COUNTED = 10
_SHOWN, _MOST_TROUBLES = 5, 12
# Singular and plural of column types in the summary.
_KINDS = {
    "number": ("number", "numbers"),
    "category": ("category", "categories"),
    "encoded": ("target-encoded", "target-encoded"),
    "date": ("date", "dates"),
    "constant": ("constant", "constant"),
    "ignored": ("ignored", "ignored"),
}
# Common names of row-number columns.
_ID_NAME = re.compile(
    r"(?:.*[ _.-])?(?:id|ID|Id|idx|uuid|UUID)|(?:index|row|rowid|row["
    r" _.-]?(?:number|num|nr|no|index)|"
    r"record|record[ _.-]?(?:number|no)|no\.?|nr\.?|number|#|sno|s\.no\.?|serial(?:["
    r" _.-]?(?:number|no))?)"
    r"|[A-Za-z]*[a-z](?:Id|ID)",
)


class KindChanged(Exception):
    """Columns, by position, are words in one part of the rows and numbers in another: read all
    rows again with these columns as words.
    """

    def __init__(self, columns):
        super().__init__(columns)
        self.columns = frozenset(columns)


class Learner:
    """Learns a Schema from consecutive tables of rows.

    bounded: use bounded memory, for a stream; medians and most frequent numbers then raise an
    error. task: as requested; `finish` infers it if the spelling of the targets shows it.
    """

    def __init__(self, reading: Reading, bounded: bool = False, task: str | None = None):
        if reading.missing not in (None, *MISSING):
            raise UsageError(
                f"--missing is {reading.missing!r:.80}; it must be one of {', '.join(MISSING)}"
            )
        self.reading, self.bounded, self.task, self.target = reading, bounded, task, -1
        self.columns: dict[int, _Seen]
        self.dotted: dict[int, str]
        self.padded: dict[int, str]
        self.as_words: frozenset[int] = frozenset()
        self.restart()

    # ------------------------------------------------------------------ names and options

    def begin(self, table: Table) -> frozenset[int]:
        """Decide by names and options what the columns of a table are, which may have no rows yet;
        the result is the positions of the columns to read as words.
        """
        if self.target >= 0:
            return self.as_words
        reading, self.table = self.reading, table
        self.asked = {
            option: {table.find(name, f"--{option}") for name in getattr(reading, option)}
            for option in ("ignore", "categorical", "dates")
        } | {
            option: {table.find(name, f"--{option}")}
            for option in ("groups", "time")
            if (name := getattr(reading, option)) is not None
        }
        for one, other in itertools.combinations(self.asked, 2):
            both = self.asked[one] & self.asked[other]
            if both and (one, other) not in (("ignore", "groups"), ("ignore", "time")):
                raise UsageError(
                    f"--{one} and --{other} both name {table.title(min(both))}; use only one of"
                    " them"
                )
        positions = range(len(table.names))
        target = table.own_target
        if reading.target is not None:
            target = table.find(reading.target, "--target")
        # row numbers, according to the file or to a name that only programs use
        named = self.asked["ignore"] | self.asked["categorical"] | self.asked["dates"]
        self.index = {
            p for p in positions if table.numbers_rows(p) and not table.unnamed(p) and p != target
        } - named
        self.behind: list[int] = []
        if target is None:
            target = self._guessed_target()
        for option in self.asked.keys() - {"categorical"}:
            if target in self.asked[option]:
                raise UsageError(
                    f"--{option} names {table.title(target)}, which holds the targets; use"
                    " --target to name it"
                )
        self.target = target
        if self.index:
            self._say_left_out(self.index, "the index of the saved data frame")
        left_out = self.index.union(*(self.asked.get(o, ()) for o in ("ignore", "groups", "time")))
        self.ignored = tuple(table.names[position] for position in sorted(left_out))
        self.kept = [position for position in positions if position not in left_out]
        if len(self.kept) < 2:
            raise DataError(
                f"{table.name} has one column, but needs a target and an input; does it use another"
                " separator?"
            )
        words = self.asked["categorical"] | self.asked["dates"] | self.asked.get("groups", set())
        self.as_words = frozenset(words if self.task == "regression" else words | {target})
        return self.as_words

    def _guessed_target(self) -> int:
        """The most likely target column if none is named, with a warning: the last that has a name
        and is not a row number. `behind` becomes the columns after it.
        """
        table, last = self.table, len(self.table.names) - 1
        left = [p for p in range(last + 1) if p not in self.index]
        target = ([p for p in left if not table.unnamed(p)] or left or [last])[-1]
        # from a separator at the end of each row; known to be empty after all rows
        self.behind = [p for p in left if p > target]
        place = "the last" if target == last else "the last that is not a row number"
        place = "the last that has a name" if self.behind else place
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
        changed = {
            position
            for position, seen in self.columns.items()
            if isinstance(table.columns[position], Words) != seen.as_words
        }
        if changed:
            raise KindChanged(changed)
        self.n_rows += table.n_rows
        self._note(table)
        for position, seen in self.columns.items():
            seen.update(table, position)
        return self

    def restart(self) -> None:
        """Forget all rows."""
        self.columns, self.dotted, self.padded, self.n_rows = {}, {}, {}, 0

    def _begin_columns(self, table: Table) -> None:
        self.table = table
        unread = sorted(table.unread.keys() & set(self.kept))
        table.check_read(unread, f"; ignore it with {self._option('ignore', unread)}")
        for p in self.kept:
            declared = table.names[p] in table.categorical or p in self.asked["categorical"]
            self.columns[p] = _Seen(
                isinstance(table.columns[p], Words),
                not self.bounded,
                declared,
                table.names[p] in table.typed,
                p == self.target,
                self.bounded or self.task in (None, labelwords.KEPT, "regression"),
            )

    def _note(self, other: "Table | Learner") -> None:
        """Add what further rows show about dots and zeros in cells, see Table."""
        for position, cell in other.dotted.items():
            self.dotted[position] = cell and self.dotted.get(position, cell)
        self.padded = other.padded | self.padded

    @property
    def word_columns(self) -> frozenset[int]:
        """The positions of the columns of words."""
        return frozenset(position for position, seen in self.columns.items() if seen.as_words)

    def merge(self, other: "Learner") -> None:
        """Merge another learner that has seen later rows; both are bounded, with the same column
        types.
        """
        if self.table.names != other.table.names:
            raise DataError(
                f"{other.table.name} has other columns than {self.table.name}; all files need the"
                " same columns"
            )
        self.n_rows += other.n_rows
        self._note(other)
        for position, seen in self.columns.items():
            seen.merge(other.columns[position])

    @property
    def has_gaps(self) -> bool:
        """Whether cells are missing and replaced."""
        gaps = any(seen.count < self.n_rows for seen in self.columns.values())
        return self.reading.missing != "refuse" and gaps

    # ------------------------------------------------------------------ the schema

    def finish(self) -> Schema:
        """The schema of all rows seen.

        Guesses are logged. DataError for words that are not categories (all columns at once), a
        target that is a row number, one without rows, or one with a missing cell.
        """
        table = self.table
        self._leave_out_unnamed()
        if len(self.columns) < 2:
            raise DataError(
                f"{table.name} has no input column, only {table.title(self.target)} with the"
                " targets"
            )
        labels, form = self._targets()
        inputs, troubles = [], {}
        for position, seen in self.columns.items():
            if position == self.target:
                continue
            try:
                as_dates = position in self.asked["dates"]
                categories, own_form = seen.settled(self.n_rows, table.decimal, as_dates)
            except _Trouble as refused:
                troubles[position] = refused
                continue
            column = Input(table.names[position], position, categories, None, own_form)
            how = self.reading.missing or ("mean" if seen.count < self.n_rows else "refuse")
            inputs.append(replace(column, fill=self._fill(column, seen, how)))
        if not inputs or any(not trouble.names for trouble in troubles.values()):
            raise self._refusal(troubles)
        for position, trouble in troubles.items():  # columns that identify rows
            self.tell(
                f"{table.title(position)} of {table.name} is ignored: it has {trouble.reason};"
                f" {self.kept_by(position)} keeps it"
            )
            self.ignored += (table.names[position],)
            del self.columns[position]
        self._say_how(inputs, labels or ())
        place = (table.names[self.target], self.target)
        return Schema(inputs, table.named, len(table.names), place, self.ignored, labels, form)

    def _targets(self) -> tuple[list[str] | None, written.Form | None]:
        """(labels or None, Form or None) of the targets. DataError if they are invalid."""
        table, seen = self.table, self.columns[self.target]
        self._settle_doubtful()
        whose = f"{table.title(self.target)} of {table.name}"
        if self.reading.target is None and table.own_target is None:
            counts = self.n_rows >= LEAST_COUNTED and seen.counting.by_one
            if table.unnamed(self.target) or (counts and seen.counting.first is not None):
                what = "looks like a row number" if counts else "has no name"
                raise DataError(f"{whose}, the last, {what}; name the target column with --target")
            if self._numbers_rows(self.target):
                log.warning(
                    "%s looks like a row number, but is the target; --target selects another"
                    " column",
                    whose,
                )
        try:
            labels, form, self.task = seen.targets(self.n_rows, table, self.task)
        except _Trouble as trouble:
            raise DataError(
                f"{trouble.sentence(table, self.target)}; correct the cells, or name another column"
                " with --target"
            ) from None
        if form is not None:
            example = written.example(seen.words or (), form)
            log.warning("%s: the targets are read as numbers: %s", table.name, example)
        return labels, form

    def _settle_doubtful(self) -> None:
        """Keep the word that may mean a missing cell if it is one of two-letter codes, with a
        warning; elsewhere count its cells as missing.
        """
        word, kept = self.table.doubtful, []
        for position, seen in self.columns.items():
            if word in (seen.words or ()) and is_code_among(word, seen.words):
                kept.append(position)
            elif word is not None:
                seen.forget(word)
        if kept:
            log.warning(
                "%s: %s is read as a word (a two-letter code) in %s; if it means a missing value,"
                " leave the cell empty",
                self.table.name,
                word,
                self._titles(kept),
            )

    def _leave_out_unnamed(self) -> None:
        """Ignore unnamed columns that are empty, or that number or identify the rows."""
        for position in self.behind:
            if position in self.columns and self.columns[position].count:
                raise DataError(
                    f"{self.table.title(position)} of {self.table.name}, the last, has no name;"
                    " name the target column with --target"
                )
        asked = self.asked["categorical"] | self.asked["dates"] | {self.target}
        unnamed = [p for p in self.columns if self.table.unnamed(p) and p not in asked]
        empty = [p for p in unnamed if not self.columns[p].count]
        different = [p for p in unnamed if self.columns[p].all_different(self.n_rows)]
        for positions, why in (
            (empty, "no name and no value"),
            (different, "no name, and contains row numbers or row names"),
        ):
            if positions:
                self._say_left_out(positions, why)
                self.ignored += tuple(self.table.names[p] for p in positions)
                for position in positions:
                    del self.columns[position]

    def _fill(self, column: Input, seen: "_Seen", how: str) -> float | str | None:
        """The replacement of a column's missing cells; how: one of MISSING."""
        if how == "refuse":
            return None
        if column.categories is not None:
            assert seen.words is not None
            places = column.places(seen.words)
            counts = np.bincount(places, [*seen.words.values()], len(column.categories))
            return column.categories[int(np.argmax(counts))]
        if how == "mean" and seen.words is None:
            return float(seen.total / seen.count)
        if seen.words is not None:
            numbers = written.read(seen.words, column.form, self.table.decimal)
            values = np.repeat(numbers, [*seen.words.values()])
        elif seen.kept is None:
            raise UsageError(
                f"--missing is {how}, which needs all rows at once; with --stream use --missing"
                " mean"
            )
        else:
            values = np.concatenate(seen.kept)
            values = values[~np.isnan(values)]
        if how != "most_frequent":
            return float(values.mean() if how == "mean" else np.median(values))
        numbers, counts = np.unique(values, return_counts=True)
        return float(numbers[np.argmax(counts)])

    def refilled(self, schema: Schema) -> Schema:
        """A schema of these columns with replacements of missing cells learnt from the rows seen.

        A column without a value keeps its replacement; a column of target means is unchanged.
        """
        inputs = []
        for column in schema.columns:
            if column.means is None:
                seen, doubtful = self.columns[column.position], self.table.doubtful
                if doubtful is not None and doubtful not in (column.categories or ()):
                    seen.forget(doubtful)
                if seen.count and column.fill is not None:
                    how = self.reading.missing or "mean"
                    column = replace(column, fill=self._fill(column, seen, how))
            inputs.append(column)
        return replace(schema, inputs=inputs)

    # ------------------------------------------------------------------ messages

    def tell(self, message: str) -> None:
        """Log the treatment of a column."""
        log.warning("%s", message)

    def kept_by(self, *positions: int) -> str:
        """The option that reads columns as categories."""
        return self._option("categorical", positions)

    def _titles(self, positions) -> str:
        return _some([self.table.title(position) for position in positions])

    def _say_left_out(self, positions, why: str) -> None:
        are = "are" if len(positions) > 1 else "is"
        titles = self._titles(sorted(positions))
        log.warning("%s of %s %s ignored: %s", titles, self.table.name, are, why)

    def _say_how(self, inputs: list[Input], labels: Iterable[str]) -> None:
        """Log how cells were read that may mean something else."""
        name, title = self.table.name, self.table.title
        forms = {column.position: column.form for column in inputs}
        numbers = [
            f"{title(p)} ({written.example(self.columns[p].words or (), form)})"
            for p, form in forms.items()
            if form is not None and form.kind == "numbers"
        ]
        categories = [
            f"{title(column.position)} ({' and '.join(map(repr, same))})"
            for column in inputs
            for same in _alike(column.categories or ())
        ]
        similar = [
            f"{title(self.target)} ({' and '.join(map(repr, same))})"
            for same in _alike(labels, lambda word: word.strip().casefold())
        ]
        plain = {
            column.position
            for column in inputs
            if column.categories is None and (column.form is None or column.form.kind != "dates")
        }
        padded = {p: cell for p, cell in self.padded.items() if p in plain}
        dotted = {p: cell for p, cell in self.dotted.items() if cell and p in plain - {*numbers}}
        dotted = {p: cell for p, cell in dotted.items() if self.columns[p].words is None}
        dates = [p for p, form in forms.items() if form is not None and form.kind == "dates"]
        dates = [p for p in dates if p not in self.asked["dates"]]
        for what, advice, parts in (
            ("read as numbers", "", numbers),
            (
                "read as dates",
                f"; {self.kept_by(*dates)} reads {_them(dates)} as words",
                list(map(title, dates)),
            ),
            ("similar categories, read as different", "", categories),
            ("similar labels, read as different", "", similar),
            (
                "read as decimals, because the separator is ; although each dot precedes three"
                " digits",
                "; remove dots that mark thousands",
                [f"{title(p)} ({cell})" for p, cell in dotted.items()],
            ),
            (
                "read as numbers, without leading zeros",
                f"; {self.kept_by(*padded)} reads {_them(padded)} as codes",
                [f"{title(p)} ({cell})" for p, cell in padded.items()],
            ),
        ):
            if parts:
                self.tell(f"{name}: {what}: {_some(parts)}{advice}")
        self._warn_of_ids()

    def _warn_of_ids(self) -> None:
        """Warn about inputs that look like row numbers."""
        ids = [p for p in self.columns if p != self.target and self._numbers_rows(p)]
        if ids:
            log.warning(
                "%s of %s: each is an input that looks like a row number; %s ignores it",
                self._titles(ids),
                self.table.name,
                self._option("ignore", ids),
            )

    def _numbers_rows(self, position: int) -> bool:
        """Whether the numbers of a column are probably row numbers."""
        seen, table = self.columns[position], self.table
        if seen.as_words and not seen.target or self.n_rows < LEAST_COUNTED:
            return False
        if table.unnamed(position):
            return seen.whole
        named_as_id = table.named and _ID_NAME.fullmatch(table.names[position]) is not None
        return seen.counting.dense(self.n_rows) or (
            named_as_id and seen.words is None and seen.all_different(self.n_rows)
        )

    def say(self, schema: Schema, summary: bool = True) -> None:
        """Log which columns have missing cells that are filled, and a summary of all columns;
        schema: the result of `finish`, or with target means.
        """
        gone = {c.name: self.n_rows - self.columns[c.position].count for c in schema.columns}
        filled = [
            f"{c.name} ({gone[c.name]:,})"
            for c in schema.columns
            if gone[c.name] and c.fill is not None
        ]
        if filled and self.reading.missing is None:
            self.tell(
                f"{self.table.name}: missing cells are filled, numbers by the mean and words by the"
                f" most frequent: {_some(filled)}; see --missing"
            )
        if summary:
            log.warning("%s", self.summary(schema))

    def summary(self, schema: Schema) -> str:
        """The number of inputs from the columns of a schema, by type."""
        counts = dict.fromkeys(_KINDS, 0)
        values = dict.fromkeys(_KINDS, 0)
        for column in schema.columns:
            kind = "number"
            if self.columns[column.position].constant:
                kind = "constant"
            elif column.categories is not None:
                kind = "category" if column.one_hot else "encoded"
            elif column.form is not None and column.form.kind == "dates":
                kind = "date"
            counts[kind] += 1
            values[kind] += len(column.categories or ())
        n_columns = len(self.table.names) - 1
        counts["ignored"] = n_columns - len(schema.columns)
        more = {
            kind: f" ({_counted(values[kind], 'value', 'values')})"
            for kind in ("category", "encoded")
        }
        more["date"] = f" ({_counted(len(written.DATE_PARTS) * counts['date'], 'input', 'inputs')})"
        parts = [
            _counted(count, *_KINDS[kind]) + more.get(kind, "")
            for kind, count in counts.items()
            if count
        ]
        inputs = _counted(schema.width, "input", "inputs")
        columns = _counted(n_columns, "column", "columns")
        return f"{self.table.name}: {inputs} from {columns}: {', '.join(parts)}"

    def _option(self, option: str, positions) -> str:
        """An option that lists these columns and those it listed before."""
        before = [self.table.find(name, f"--{option}") for name in getattr(self.reading, option)]
        more = [p for p in sorted(positions) if p not in before]
        return typed(option, map(self._typed_name, [*before, *more]))

    def _typed_name(self, position: int) -> str:
        """A column's name, or its number from 1 if the name is hard to type."""
        name = self.table.names[position]
        good = name.isprintable() and name == name.strip() and 0 < len(name) <= 80
        return name if self.table.named and good else str(position + 1)

    def advice(self, troubles) -> list[str]:
        """Advice about columns that are neither numbers nor categories, one clause each."""
        (trouble, *others), advice = troubles.values(), []
        them = "them" if others else "it"
        if not others and trouble.odd:
            advice.append("correct it (or leave the cell empty if it marks a missing value)")
        if not others and (trouble.odd or trouble.names or trouble.dates):
            as_words = self._option("categorical", troubles)
            advice.append(f"read the column as categories with {as_words}")
        none_left = len(troubles) == len(self.columns) - 1
        ignored = f"ignore {them} with {self._option('ignore', troubles)}"
        return [*advice, ignored + ", but that leaves no input" * none_left]

    def _refusal(self, troubles) -> DataError:
        table = self.table
        *others, last = self.advice(troubles)
        advice = f"{', '.join(others)}, or {last}" if others else last
        if len(troubles) == 1:
            ((position, trouble),) = troubles.items()
            return self._with_remedy(f"{trouble.sentence(table, position)}; {advice}", troubles)
        shown = list(troubles.items())[:_MOST_TROUBLES]
        each = "; ".join(trouble.sentence(table, p, among=True) for p, trouble in shown)
        if len(troubles) > len(shown):
            each += f"; and so on for {len(troubles) - len(shown):,} more"
        return self._with_remedy(
            f"{table.name} has {len(troubles)} columns that are neither numbers nor categories:"
            f" {each}; {advice}",
            troubles,
        )

    def _with_remedy(self, message: str, troubles) -> DataError:
        error = DataError(message)
        if len(troubles) < len(self.columns) - 1:
            error.remedy = self._option("ignore", troubles)
        return error


def _counted(count: int, one: str, several: str) -> str:
    """A count with the matching word."""
    return f"{count:,} {one if count == 1 else several}"


def _them(parts) -> str:
    return "it" if len(parts) == 1 else "them"


def _some(parts) -> str:
    more = f" and {len(parts) - _SHOWN:,} more" if len(parts) > _SHOWN else ""
    return ", ".join(parts[:_SHOWN]) + more


def _common(category: str):
    """The common key of categories that differ only by case, by surrounding blanks, or in how a
    number is written.
    """
    key = written.same(category)
    return key.casefold() if isinstance(key, str) else key


def _alike(words: Iterable[str], common: Callable = _common) -> list[list[str]]:
    """Groups of words with the same key."""
    groups: dict = {}
    for word in words:
        groups.setdefault(common(word), []).append(word)
    return [group for group in groups.values() if len(group) > 1]


class _Trouble(Exception):
    """Why a column is neither numbers nor categories: its content, the position of an odd cell,
    whether it contains dates or row names.
    """

    def __init__(
        self, reason: str, odd: str | None = None, dates: bool = False, names: bool = False
    ):
        super().__init__(reason)
        self.reason, self.odd, self.dates, self.names = reason, odd, dates, names

    def sentence(self, table, position, among=False) -> str:
        if self.odd is not None:
            place = self.odd.rpartition(", ")[2] if among else self.odd
            return f"{place}: {table.title(position)} has {self.reason}"
        return f"{table.title(position)}{'' if among else f' of {table.name}'} has {self.reason}"


class _Counting:
    """Whether the numbers of a column count up, processed in parts."""

    def __init__(self):
        self.first = self.last = None
        self.grows = self.by_one = True

    def update(self, values):
        if not self.grows or not len(values):
            return
        for part in (values[:32], values):  # most columns fail here
            steps = np.diff(part, prepend=[] if self.last is None else [self.last])
            self.grows = bool((steps >= 1).all() and (part == np.floor(part)).all())
            self.by_one = self.by_one and self.grows and bool((steps == 1).all())
            if not self.grows:
                return
        self.first = float(values[0]) if self.first is None else self.first
        self.last = float(values[-1])

    def merge(self, other):
        step = 0 if None in (self.first, other.first) else other.first - self.last
        self.by_one = self.by_one and other.by_one and step == 1
        self.grows = self.grows and other.grows and step >= 1
        self.last = other.last

    def dense(self, n_rows) -> bool:
        """Whether they increase and include more than half of the integers between the first and
        the last.
        """
        return self.grows and self.first is not None and self.last - self.first < 2 * n_rows


class _Seen:
    """The statistics of a column.

    as_words: it is read as words. declared: it is categorical, whatever its cells; typed: the file
    declares words. target: it holds the targets; forgets: if these are more than labelwords.MOST
    plain numbers, their spelling does not matter.
    """

    def __init__(
        self, as_words: bool, keep: bool, declared=False, typed=False, target=False, forgets=False
    ):
        self.as_words, self.declared, self.typed, self.target = as_words, declared, typed, target
        self.forgets = forgets
        self.words: dict[str, int] | None = {} if as_words or declared else None
        self.kinds: dict[str, str] = {}  # of words
        self.places: dict[str, tuple[str, str]] = {}  # of the first word of a kind
        self.kept: list | None = [] if keep else None
        self.counting = _Counting()
        self.count, self.total = 0, 0.0
        # of numbers: whether all are integers, and whether a part repeats one
        self.low, self.high, self.whole, self.repeated = np.inf, -np.inf, True, False
        self.many = False

    @property
    def constant(self) -> bool:
        """Whether all cells with a value have the same value."""
        return self.low == self.high if self.words is None else len(self.words) == 1

    def update(self, table: Table, position: int) -> None:
        values = table.columns[position]
        check_finite(table, position)
        if self.words is None:
            self._add_numbers(values)
            return
        if not isinstance(values, Words):
            values = words_of_numbers(values)
        if self.target and self._are_many(values, table):
            return
        counts = np.bincount(values.codes + 1, minlength=len(values.values) + 1)[1:]
        self.count += int(counts.sum())
        for code in np.flatnonzero(counts).tolist():
            word = values.values[code]
            self.words[word] = self.words.get(word, 0) + int(counts[code])
            if word not in self.kinds and not self.declared:
                kind = self.kinds[word] = written.kind(word)
                if kind not in self.places and word != table.doubtful:
                    self.places[kind] = table.place(int(np.argmax(values.codes == code))), word

    def _are_many(self, values: Words, table: Table) -> bool:
        """Whether targets are certainly numbers, because there are so many; they are added as
        such, and their spelling is forgotten.
        """
        numbers = written.read(values.values, None, table.decimal)
        column = np.append(numbers, np.nan)[values.codes]
        self.counting.update(column)
        many = len(numbers) + len(self.words or ()) > labelwords.MOST
        if not (self.many or (many and self.forgets)) or np.isnan(numbers).any():
            return False
        self.many, self.count = True, self.count + int(np.count_nonzero(~np.isnan(column)))
        return True

    def _add_numbers(self, values: np.ndarray) -> None:
        self.count += int(np.count_nonzero(~np.isnan(values)))
        self.low = min(self.low, np.fmin.reduce(values, initial=np.inf))
        self.high = max(self.high, np.fmax.reduce(values, initial=-np.inf))
        self.total += float(np.nansum(values))
        self.counting.update(values)
        for part in (values[:32], values):
            self.whole = self.whole and bool(((part == np.floor(part)) | np.isnan(part)).all())
        if self.kept is not None:
            self.kept.append(values)
        elif self.whole:
            self.repeated = self.repeated or len(np.unique(values)) < len(values)

    def forget(self, word: str) -> None:
        """Count the cells of a word as missing."""
        if self.words is not None:
            self.count -= self.words.pop(word, 0)
            self.kinds.pop(word, None)

    def merge(self, other: "_Seen") -> None:
        self.count, self.total = self.count + other.count, self.total + other.total
        self.low, self.high = min(self.low, other.low), max(self.high, other.high)
        self.counting.merge(other.counting)
        self.whole, self.repeated = self.whole and other.whole, self.repeated or other.repeated
        self.kinds, self.places = other.kinds | self.kinds, other.places | self.places
        self.many = self.many or other.many
        for word, count in (other.words or {}).items():
            assert self.words is not None  # both have the same types of columns
            self.words[word] = self.words.get(word, 0) + count

    def all_different(self, n_rows: int) -> bool:
        """Whether each row has a distinct integer or word, as far as is known."""
        if self.count < n_rows or n_rows < 2:
            return False
        if self.words is not None:
            return not self.declared and len(self.words) == n_rows
        if self.kept is None:
            return self.whole and not self.repeated and self.high - self.low + 1 >= self.count
        return self.whole and len(np.unique(np.concatenate(self.kept))) == n_rows

    # ------------------------------------------------------------------ type of the column

    def settled(self, n_rows: int, decimal: str | None, as_dates: bool = False):
        """(categories or None, Form or None); _Trouble if the column is neither numbers nor
        categories.
        """
        if not self.count:
            raise _Trouble("no value in any training row")
        if self.words is None:
            truth = self.whole and self.low >= 0 and self.high <= 1
            return None, written.Form("truth") if truth else None
        if self.declared:
            return sorted(self.words), None
        cells = dict.fromkeys(("number", "written", "truth", "date", "word"), 0)
        for word, kind in self.kinds.items():
            cells[kind] += self.words[word]
        numbers = cells["number"] + cells["written"]
        try:
            if as_dates:
                return None, written.dates(self.words)
            if cells["truth"] and all(
                kind == "truth" or word in ("0", "1", "0.0", "1.0")
                for word, kind in self.kinds.items()
            ):
                return sorted({written.truth_text(word) for word in self.words}), None
            if not self.typed and numbers_of(self.words, decimal == ",") is not None:
                return None, None
            if cells["written"] and numbers == self.count:
                return None, written.numbers(self.words, decimal)
            if cells["date"] == self.count and not self.target:
                return None, written.dates(self.words)
        except written.Unclear as unclear:
            ambiguous = cells["date"] == self.count and not as_dates
            raise _Trouble(str(unclear), dates=ambiguous) from None
        self._check_categories(cells, n_rows)
        return sorted(self.words), None

    def _check_categories(self, cells: dict[str, int], n_rows: int) -> None:
        """_Trouble if the words are not categories; cells: the number of cells of each kind of
        word.
        """
        assert self.words is not None
        numbers = cells["number"] + cells["written"]
        distinct = [word for word, kind in self.kinds.items() if kind in ("number", "written")]
        # too many or too fine for categories, so that the others may mark missing cells
        fine = any("." in word or "," in word for word in distinct) or len(distinct) > MOST_NAMES
        marked = 2 * len(distinct) > len(self.kinds) and fine
        if numbers < self.count and (2 * numbers > self.count or marked):
            place, word = next(
                self.places[kind] for kind in ("word", "date", "truth") if kind in self.places
            )
            others = "most of its cells" if 2 * numbers > self.count else "most of its other values"
            raise _Trouble(f"{word!r:.80}, which is not a number, unlike {others}", place)
        if 2 * cells["date"] > self.count:
            place, word = self.places["date"]
            if cells["date"] == self.count:
                raise _Trouble(f"dates such as {word!r:.80}, which can't be targets")
            place, word = next(own for kind, own in self.places.items() if kind != "date")
            raise _Trouble(f"{word!r:.80}, which is not a date, unlike most of its cells", place)
        if len(self.words) > max(MOST_NAMES, n_rows // 2):
            raise _Trouble(
                f"{len(self.words):,} different words in {n_rows:,} rows, too many for categories",
                names=True,
            )

    def targets(self, n_rows: int, table: Table, task: str | None):
        """(labels, None for numbers; Form or None; task) of a target column."""
        if self.many:
            odd = next((kind for kind in self.places if kind != "number"), None)
            if odd is not None:
                place, word = self.places[odd]
                raise _Trouble(f"{word!r:.80}, which is not a number, unlike most cells", place)
            return None, None, labelwords.task_of_many(task, table.name)
        categories, form = self.settled(n_rows, table.decimal)
        if self.words is None:
            return None, None, task
        if categories is not None and task != "regression":
            return sorted(self.words), None, task
        if categories is not None:
            odd = next((word for word in self.words if labelwords.value(word) is None), None)
            if odd is not None:
                place, odd = self.places.get(self.kinds.get(odd, ""), (table.name, odd))
                raise labelwords.no_number(place, odd, "the target")
            return None, None, task
        numbers = written.read(self.words, form, table.decimal).tolist()
        counts = labelwords.Spellings()
        counts.count(zip(self.words, self.words.values(), numbers))
        labels, task = counts.decided(task, table.name)
        return labels, form if labels is None else None, task


def refilled(schema: Schema, table: Table, reading: Reading) -> Schema:
    """The schema with replacements of missing cells learnt again from some rows of its table."""
    learner = Learner(reading)
    learner.table = table
    for column in schema.columns:
        if column.means is None:
            as_words = (
                isinstance(table.columns[column.position], Words) or column.categories is not None
            )
            seen = learner.columns[column.position] = _Seen(as_words, True, declared=as_words)
            seen.update(table, column.position)
    return learner.refilled(schema)


def targets_of(table: Table, task: str | None):
    """(labels, None for numbers; Form or None; task) of a table with one column, the targets."""
    learner = Learner(Reading(), task=task)
    learner.table, learner.target, learner.n_rows = table, 0, table.n_rows
    seen = learner.columns[0] = _Seen(isinstance(table.columns[0], Words), True, target=True)
    seen.update(table, 0)
    return *learner._targets(), learner.task
