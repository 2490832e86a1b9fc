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
from rfx.data.tabular.schema import Input, Schema
from rfx.data.tabular.table import (
    Table,
    Words,
    add_dotted,
    check_finite,
    is_code_among,
    words_of_numbers,
)
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


class Learner:
    """Learns a Schema from consecutive tables of rows.

    bounded: use bounded memory, for a stream; medians and most frequent numbers then raise an
    error. regression: the targets must be numbers.
    """

    def __init__(self, reading: Reading, bounded: bool = False, regression: bool = False):
        if reading.missing not in MISSING:
            raise UsageError(
                f"--missing is {reading.missing!r:.80}; it must be one of {', '.join(MISSING)}"
            )
        self.reading, self.bounded, self.regression, self.n_rows = reading, bounded, regression, 0
        self.target: int | None = None
        self.behind: frozenset[int] = frozenset()
        self.columns: dict[int, _Seen] | None = None
        self.dotted: dict[int, str] = {}
        self.padded: dict[int, str] = {}

    def update(self, table: Table) -> "Learner":
        if self.columns is None:
            self._begin(table)
        self.n_rows += table.n_rows
        add_dotted(self.dotted, table.dotted)
        self.padded = table.padded | self.padded
        for position, seen in self._known.items():
            seen.update(table, position)
        return self

    @property
    def _known(self) -> "dict[int, _Seen]":
        """The columns, after some rows."""
        assert self.columns is not None
        return self.columns

    def _begin(self, table):
        reading, names = self.reading, table.names
        self.table = table
        asked = {
            option: self._found(table, option) for option in ("ignore", "categorical", "dates")
        }
        asked |= {
            option: {table.find(name, f"--{option}")}
            for option in ("groups", "time")
            if (name := getattr(reading, option)) is not None
        }
        self.asked = asked
        self._check_named_once()
        ignored, mentioned = asked["ignore"], asked["categorical"] | asked["dates"]
        ignored = ignored.union(*(asked.get(option, ()) for option in ("groups", "time")))
        target = (
            table.find(reading.target, "--target")
            if reading.target is not None
            else table.own_target
        )
        self._check_not_ignored(target)
        # row numbers, according to the file or to a name that only programs use
        index = {p for p in range(len(names)) if table.numbers_rows(p) and not table.unnamed(p)}
        self.index = index - ignored - mentioned - {target}
        if target is None:
            target = self._guessed_target()
        if target in asked["dates"]:
            raise UsageError(
                f"--dates names {table.title(target)}, which holds the targets; only inputs can be"
                " dates"
            )
        self.target = target
        if self.index:
            self._say_left_out(self.index, "the index of the saved data frame")
        left_out = ignored | self.index
        self.ignored = tuple(names[position] for position in sorted(left_out))
        kept = [position for position in range(len(names)) if position not in left_out]
        if len(kept) < 2:
            raise DataError(
                f"{table.name} has one column, but needs a target and an input; does it use another"
                " separator?"
            )
        unread = sorted(table.unread.keys() & set(kept))
        table.check_read(unread, f"; ignore it with {self._option('ignore', unread)}")
        declared = {p for p in kept if names[p] in table.categorical} | asked["categorical"]
        self.columns = {
            p: _Seen(
                isinstance(table.columns[p], Words) or p in declared or p in asked["dates"],
                not self.bounded,
                p in declared,
                names[p] in table.typed,
                table.unnamed(p) or self._named_as_id(p),
            )
            for p in kept
        }

    def _check_named_once(self):
        """Raise an error for a column named by two options."""
        for one, other in itertools.combinations(self.asked, 2):
            if one == "ignore" and other in ("groups", "time"):
                continue
            if both := self.asked[one] & self.asked[other]:
                raise UsageError(
                    f"--{one} and --{other} both name {self.table.title(min(both))}; use only one"
                    " of them"
                )

    def _check_not_ignored(self, target):
        """Raise an error if the target column is to be ignored."""
        for option in ("ignore", "groups", "time"):
            if target in self.asked.get(option, ()):
                raise UsageError(
                    f"--{option} names {self.table.title(target)}, which holds the targets; use"
                    " --target to name it"
                )

    def _guessed_target(self) -> int:
        """The most likely target column if none is named, with a warning: the last that has a name
        and is not a row number. `behind` becomes the columns after it.
        """
        table, size = self.table, len(self.table.names)
        left = [p for p in range(size) if p not in self.index]
        named = [p for p in left if not table.unnamed(p)]
        target = (named or left or [size - 1])[-1]
        # from a separator at the end of each row; known to be empty after all rows
        self.behind = frozenset(p for p in left if p > target)
        self._check_not_ignored(target)
        place = "the last" if target == size - 1 else "the last that is not a row number"
        place = "the last that has a name" if self.behind else place
        log.warning(
            "the targets of %s are %s, %s; --target selects another column",
            table.name,
            table.title(target),
            place,
        )
        return target

    def _found(self, table, option):
        return {table.find(name, f"--{option}") for name in getattr(self.reading, option)}

    def _say_left_out(self, positions, why):
        table, many = self.table, len(positions) > 1
        titles = [table.title(position) for position in sorted(positions)]
        log.warning(
            "%s of %s %s ignored: %s", _some(titles), table.name, "are" if many else "is", why
        )

    @property
    def word_columns(self) -> frozenset[int]:
        """The positions of the columns of words."""
        return frozenset(
            position for position, seen in self._known.items() if seen.words is not None
        )

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
        add_dotted(self.dotted, other.dotted)
        self.padded = other.padded | self.padded
        for position, seen in self._known.items():
            seen.merge(other._known[position])

    def finish(self) -> Schema:
        """The schema of all rows seen.

        Guesses are logged. DataError for words that are not categories (all columns at once), a
        target that is a row number, one without rows, or one with a missing cell.
        """
        table, inputs, troubles, said, alike = self.table, [], {}, [], []
        self._settle_doubtful()
        self._leave_out_unnamed()
        if len(self._known) < 2:
            raise DataError(
                f"{table.name} has no input column, only {table.title(self.target)} with the"
                " targets"
            )
        target = self._target()
        for position, seen in self._known.items():
            if position == self.target:
                continue
            try:
                categories, form = seen.settled(
                    self.n_rows, table.decimal, position in self.asked["dates"]
                )
            except _Trouble as trouble:
                troubles[position] = trouble
                continue
            if form is not None and form.kind == "numbers":
                said.append(f"{table.title(position)} ({seen.example(form)})")
            if categories is not None:
                alike += [
                    f"{table.title(position)} ({' and '.join(map(repr, same))})"
                    for same in _alike(categories)
                ]
            column = Input(table.names[position], position, categories, None, form)
            inputs.append(replace(column, fill=self._fill(table, column, seen)))
        if not inputs or any(not trouble.names for trouble in troubles.values()):
            raise self._refusal(troubles)
        self._leave_out_names(troubles)
        if said:
            self.tell(f"{table.name}: read as numbers: {_some(said)}")
        if alike:
            self.tell(f"{table.name}: similar categories, read as different: {_some(alike)}")
        self._warn_of_ids()
        self._warn_of_dots()
        self._warn_of_zeros(inputs)
        labels, form = target
        assert self.target is not None
        place = (table.names[self.target], self.target)
        return Schema(inputs, table.named, len(table.names), place, self.ignored, labels, form)

    def _settle_doubtful(self):
        """Keep the word that may mean a missing cell if it is one of two-letter codes, with a
        warning; elsewhere count its cells as missing.
        """
        word, kept = self.table.doubtful, []
        for position, seen in self._known.items():
            if word not in (seen.words or ()):
                continue
            if is_code_among(word, seen.words):
                kept.append(self.table.title(position))
            else:
                seen.forget(word)
        if kept:
            log.warning(
                "%s: %s is read as a word (a two-letter code) in %s; if it means a missing value,"
                " leave the cell empty",
                self.table.name,
                word,
                _some(kept),
            )

    def _warn_of_dots(self):
        """Warn about decimals that may be integers with a dot for thousands."""
        found = [
            position
            for position in self._known
            if self.dotted.get(position) and self._known[position].words is None
        ]
        if found:
            each = [f"{self.table.title(position)} ({self.dotted[position]})" for position in found]
            log.warning(
                "%s: read as decimals, because the separator is ; although each dot precedes three"
                " digits: %s; remove dots that mark thousands",
                self.table.name,
                _some(each),
            )

    def _warn_of_zeros(self, inputs: list[Input]) -> None:
        """Warn about numbers with leading zeros, which may be codes, such as postcodes."""
        found = {
            column.position: self.padded[column.position]
            for column in inputs
            if column.position in self.padded
            and column.categories is None
            and (column.form is None or column.form.kind != "dates")
        }
        if found:
            each = [f"{self.table.title(position)} ({cell})" for position, cell in found.items()]
            them = "it" if len(found) == 1 else "them"
            self.tell(
                f"{self.table.name}: read as numbers, without leading zeros: {_some(each)};"
                f" {self._option('categorical', found)} reads {them} as codes"
            )

    def say(self, schema: Schema) -> None:
        """Log the treatment of the columns of all rows seen; schema: the result of `finish`, or
        with target means.
        """
        log.warning("%s", self.summary(schema))

    def summary(self, schema: Schema) -> str:
        """The number of inputs from the columns of a schema, by type."""
        counts = dict.fromkeys(("number", "category", "encoded", "date", "constant"), 0)
        values = dict.fromkeys(counts, 0)
        for column in schema.columns:
            kind = self._kind(column)
            counts[kind] += 1
            values[kind] += len(column.categories or ())
        more = {
            "category": f" ({_counted(values['category'], 'value', 'values')})",
            "encoded": f" ({_counted(values['encoded'], 'value', 'values')})",
            "date": f" ({_counted(len(written.DATE_PARTS) * counts['date'], 'input', 'inputs')})",
        }
        counts["ignored"] = len(self.table.names) - 1 - len(schema.columns)
        parts = [
            _counted(count, *_KINDS[kind]) + more.get(kind, "")
            for kind, count in counts.items()
            if count
        ]
        inputs = _counted(schema.width, "input", "inputs")
        columns = _counted(len(self.table.names) - 1, "column", "columns")
        return f"{self.table.name}: {inputs} from {columns}: {', '.join(parts)}"

    def _kind(self, column: Input) -> str:
        """The type of a column in the summary."""
        if self._known[column.position].constant:
            return "constant"
        if column.categories is not None:
            return "category" if column.one_hot else "encoded"
        return "date" if column.form is not None and column.form.kind == "dates" else "number"

    # ------------------------------------------------------------------ numbers of rows

    def _leave_out_names(self, troubles):
        """Ignore columns that identify rows, and log how to keep them."""
        for position, trouble in troubles.items():
            self.tell(
                f"{self.table.title(position)} of {self.table.name} is ignored: it has"
                f" {trouble.reason}; {self.kept_by(position)} keeps it"
            )
            self.ignored += (self.table.names[position],)
            del self._known[position]

    def tell(self, message: str) -> None:
        """Log the treatment of a column."""
        log.warning("%s", message)

    def kept_by(self, position: int) -> str:
        """The option that keeps a column as an input."""
        return self._option("categorical", [position])

    def _leave_out_unnamed(self):
        """Ignore unnamed columns that are empty, or that number or identify the rows."""
        asked = self.asked["categorical"] | self.asked["dates"] | {self.target}
        for position in sorted(self.behind & self._known.keys()):
            if self._known[position].count:
                whose = f"{self.table.title(position)} of {self.table.name}"
                raise DataError(
                    f"{whose}, the last, has no name; name the target column with --target"
                )
        unnamed = [p for p in self._known if self.table.unnamed(p) and p not in asked]
        empty = [p for p in unnamed if not self._known[p].count]
        different = [p for p in unnamed if self._known[p].all_different(self.n_rows)]
        unknown = [p for p in unnamed if self._known[p].all_different(self.n_rows) is None]
        if unknown:
            raise DataError(
                f"{self.table.title(unknown[0])} of {self.table.name} has no name and may be a row"
                " number, which can't be checked when rows are read in parts; ignore it with"
                f" {self._option('ignore', unknown)}, or name it"
            )
        for found, why in (
            (empty, "no name and no value"),
            (different, "no name, and contains row numbers or row names"),
        ):
            if found:
                self._say_left_out(found, why)
                self.ignored += tuple(self.table.names[p] for p in found)
                for position in found:
                    del self._known[position]

    def _numbers_rows(self, position) -> bool:
        """Whether the numbers of a column are probably row numbers."""
        seen = self._known[position]
        if seen.words is not None or self.n_rows < LEAST_COUNTED:
            return False
        if self.table.unnamed(position):
            return seen.whole
        return seen.counting.dense(self.n_rows) or (
            self._named_as_id(position) and seen.all_different(self.n_rows) is not False
        )

    def _named_as_id(self, position) -> bool:
        return self.table.named and _ID_NAME.fullmatch(self.table.names[position]) is not None

    def _warn_of_ids(self):
        """Warn about inputs that look like row numbers."""
        found = [
            position
            for position in self._known
            if position != self.target and self._numbers_rows(position)
        ]
        if found:
            titles, option = (
                _some([self.table.title(position) for position in found]),
                self._option("ignore", found),
            )
            them = "is an input that looks like a row number; {} ignores it"
            if len(found) > 1:
                them = "are inputs that look like row numbers; {} ignores them"
            log.warning("%s of %s %s", titles, self.table.name, them.format(option))

    def _target(self):
        """(labels or None, Form or None) of the targets. DataError if they are invalid."""
        assert self.target is not None
        table, seen = self.table, self._known[self.target]
        guessed, whose = (
            self.reading.target is None and table.own_target is None,
            f"{table.title(self.target)} of {table.name}",
        )
        if guessed and table.unnamed(self.target):
            raise DataError(f"{whose}, the last, has no name; name the target column with --target")
        if guessed and self.n_rows >= LEAST_COUNTED and seen.words is None and seen.counting.by_one:
            raise DataError(
                f"{whose}, the last, looks like a row number; name the target column with --target"
            )
        if guessed and self._numbers_rows(self.target):
            log.warning(
                "%s looks like a row number, but is the target; --target selects another column",
                whose,
            )
        try:
            labels, form = seen.labels(self.n_rows, table.decimal)
        except _Trouble as trouble:
            raise DataError(
                f"{trouble.sentence(table, self.target)}; correct the cells, or name another column"
                " with --target"
            ) from None
        if form is not None and self.regression:
            say_targets(form, seen.words or (), table.name)
        if labels is not None and self.regression:
            seen.check_numbers(table.name)
            labels = None
        self._say_alike(labels or ())
        return labels, form

    def _say_alike(self, labels) -> None:
        """Warn about labels that differ only by case or blanks."""
        alike = _alike(labels, lambda word: word.strip().casefold())
        if alike:
            each = [" and ".join(map(repr, group)) for group in alike]
            log.warning(
                "%s: similar labels, read as different: %s (%s)",
                self.table.name,
                self.table.title(self.target),
                _some(each),
            )

    # ------------------------------------------------------------------ unusable columns

    def _option(self, option, positions):
        """An option that lists these columns and those it listed before."""
        table = self.table
        before = [table.find(name, f"--{option}") for name in getattr(self.reading, option)]
        return typed(
            option,
            map(self._typed_name, [*before, *(p for p in sorted(positions) if p not in before)]),
        )

    def _typed_name(self, position):
        """A column's name, or its number from 1 if the name is hard to type."""
        name = self.table.names[position]
        good = (
            self.table.named and name.isprintable() and name == name.strip() and 0 < len(name) <= 80
        )
        return name if good else str(position + 1)

    def advice(self, troubles) -> list[str]:
        """Advice about columns that are neither numbers nor categories, one clause each."""
        them = "it" if len(troubles) == 1 else "them"
        advice = [f"ignore {them} with {self._option('ignore', troubles)}"]
        if len(troubles) == len(self._known) - 1:
            advice = [f"{advice[0]}, but that leaves no input"]
        dates = [position for position, trouble in troubles.items() if trouble.dates]
        (trouble, *others) = troubles.values()
        if not others and (trouble.odd or trouble.names or trouble.dates):
            as_words = self._option("categorical", troubles)
            advice.insert(0, f"read the column as categories with {as_words}")
        if dates:
            them = "it" if len(troubles) == 1 else "dates"
            advice.insert(0, f"convert {them} to numbers with {self._option('dates', dates)}")
        if not others and trouble.odd:
            advice.insert(0, "correct it (or leave the cell empty if it marks a missing value)")
        return advice

    def _refusal(self, troubles) -> DataError:
        table, advice = self.table, _either(self.advice(troubles))
        if len(troubles) == 1:
            ((position, trouble),) = troubles.items()
            return DataError(f"{trouble.sentence(table, position)}; {advice}")
        shown = list(troubles.items())[:_MOST_TROUBLES]
        each = "; ".join(
            trouble.sentence(table, position, among=True) for position, trouble in shown
        )
        if len(troubles) > len(shown):
            each += f"; and so on for {len(troubles) - len(shown):,} more"
        return DataError(
            f"{table.name} has {len(troubles)} columns that are neither numbers nor categories:"
            f" {each}; {advice}"
        )

    def seen(self, position: int) -> "_Seen":
        """The statistics of a column that is not ignored."""
        return self._known[position]

    @property
    def has_gaps(self) -> bool:
        """Whether cells are missing and replaced."""
        whole = all(seen.count == self.n_rows for seen in self._known.values())
        return self.reading.missing != "refuse" and not whole

    def filled(self, table: Table, column: Input, seen: "_Seen") -> Input:
        """A column with its replacement of missing cells; unchanged if it has no value."""
        if (
            seen.words is not None
            and table.doubtful is not None
            and table.doubtful not in (column.categories or ())
        ):
            seen.forget(table.doubtful)
        return replace(column, fill=self._fill(table, column, seen)) if seen.count else column

    def _fill(self, table, column, seen):
        how = self.reading.missing
        if how == "refuse":
            return None
        if column.categories is not None:
            counts = np.bincount(
                column.places(seen.words), [*seen.words.values()], len(column.categories)
            )
            return column.categories[int(np.argmax(counts))]
        values = None
        if column.form is not None and seen.words is not None:
            values, counts = column.form.read(seen.words), np.array([*seen.words.values()])
        if how == "mean":
            return float(
                seen.total / seen.count if values is None else (values * counts).sum() / seen.count
            )
        if values is not None:
            values = np.repeat(values, counts)
        elif seen.kept is None:
            raise UsageError(
                f"--missing is {how}, which needs all rows at once; with --stream use --missing"
                " mean"
            )
        else:
            values = np.concatenate(seen.kept)
            values = values[~np.isnan(values)]
        if how == "median":
            return float(np.median(values))
        numbers, counts = np.unique(values, return_counts=True)
        return float(numbers[np.argmax(counts)])


def _either(advice) -> str:
    return ", or ".join([", ".join(advice[:-1]), advice[-1]] if len(advice) > 1 else advice)


def _counted(count: int, one: str, several: str) -> str:
    """A count with the matching word."""
    return f"{count:,} {one if count == 1 else several}"


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
            if not ((steps >= 1).all() and (part == np.floor(part)).all()):
                self.grows = self.by_one = False
                return
        self.by_one = self.by_one and bool((steps == 1).all())
        self.first, self.last = (
            float(values[0]) if self.first is None else self.first,
            float(values[-1]),
        )

    def merge(self, other):
        if self.first is None or other.first is None:
            self.grows = self.by_one = self.grows and other.grows
            return
        step = other.first - self.last
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

    declared: it is categorical, whatever its cells; typed: the file declares words; watched: it has
    no name, or that of a row number.
    """

    def __init__(self, words: bool, keep: bool, declared=False, typed=False, watched=False):
        self.words: dict[str, int] | None = {} if words else None
        self.kinds: dict[str, str] = {}  # of words
        self.places: dict[str, tuple[str, str]] = {}  # of the first word of a kind
        self.kept: list | None = [] if keep else None
        self.counting = _Counting()
        self.count, self.total, self.flags, self.declared, self.typed = (
            0,
            0.0,
            True,
            declared,
            typed,
        )
        # of a watched column: whether its numbers are integers, and whether a part repeats one
        self.watched, self.whole, self.repeated = watched, True, False
        self.low, self.high = np.inf, -np.inf  # of numbers

    @property
    def constant(self) -> bool:
        """Whether all cells with a value have the same value."""
        return self.low == self.high if self.words is None else len(self.words) == 1

    def update(self, table, position):
        values = table.columns[position]
        check_finite(table, position)
        if self.words is None:
            self.count += int(np.count_nonzero(~np.isnan(values)))
            self.low = min(self.low, np.fmin.reduce(values, initial=np.inf))
            self.high = max(self.high, np.fmax.reduce(values, initial=-np.inf))
            self.total += float(np.nansum(values))
            self.counting.update(values)
            self.flags = self.flags and all(_flags(part) for part in (values[:32], values))
            if self.watched and self.whole and len(values):
                self.whole = bool((values == np.floor(values)).all())
                self.repeated = self.repeated or len(np.unique(values)) < len(values)
            if self.kept is not None:
                self.kept.append(values)
            return
        if not isinstance(values, Words):
            values = words_of_numbers(values)
        counts = np.bincount(values.codes + 1, minlength=len(values.values) + 1)[1:]
        self.count += int(counts.sum())
        for code, (word, count) in enumerate(zip(values.values, counts.tolist())):
            if not count:
                continue
            self.words[word] = self.words.get(word, 0) + count
            if word not in self.kinds and not self.declared:
                kind = self.kinds[word] = written.kind(word)
                if kind not in self.places and word != table.doubtful:
                    self.places[kind] = table.place(int(np.argmax(values.codes == code))), word

    def forget(self, word: str):
        """Count the cells of a word as missing."""
        assert self.words is not None
        self.count -= self.words.pop(word, 0)
        self.kinds.pop(word, None)

    def merge(self, other: "_Seen"):
        self.count, self.total, self.flags = (
            self.count + other.count,
            self.total + other.total,
            self.flags and other.flags,
        )
        self.low, self.high = min(self.low, other.low), max(self.high, other.high)
        self.counting.merge(other.counting)
        self.whole, self.repeated = self.whole and other.whole, self.repeated or other.repeated
        self.kinds, self.places = other.kinds | self.kinds, other.places | self.places
        for word, count in (other.words or {}).items():
            assert self.words is not None  # both have the same types of columns
            self.words[word] = self.words.get(word, 0) + count

    # ------------------------------------------------------------------ numbers of rows

    def all_different(self, n_rows) -> bool | None:
        """Whether each row has a distinct integer or word, as far as known; None if it may be
        so.
        """
        if self.count < n_rows or n_rows < 2:
            return False
        if self.words is not None:
            return not self.declared and len(self.words) == n_rows
        if self.counting.grows:
            return True
        if self.kept is None:
            room = self.high - self.low + 1
            if not (self.watched and self.whole) or self.repeated or room < self.count:
                return False
            return True if room == self.count else None  # parts may share a number
        if not all((values == np.floor(values)).all() for values in self.kept):
            return False
        return len(np.unique(np.concatenate(self.kept))) == n_rows

    # ------------------------------------------------------------------ type of the column

    def settled(self, n_rows, decimal, as_dates=False):
        """(categories or None, Form or None); _Trouble if the column is neither numbers nor
        categories.
        """
        if not self.count:
            raise _Trouble("no value in any training row")
        if self.words is None:
            return None, written.Form("truth") if self.flags else None
        if self.declared:
            return sorted(self.words), None
        found = dict.fromkeys(("number", "written", "truth", "date", "word"), 0)
        for word, count in self.words.items():
            found[self.kinds[word]] += count
        numbers = found["number"] + found["written"]
        try:
            if as_dates:
                return None, written.dates(self.words)
            if found["truth"] and self._are_truths():
                return sorted({_truth_text(word) for word in self.words}), None
            if found["written"] and numbers == self.count:
                return None, written.numbers(self.words, decimal)
        except written.Unclear as unclear:
            raise _Trouble(str(unclear)) from None
        if numbers == self.count and not self.typed:
            return None, None
        self._check_categories(found, n_rows)
        return sorted(self.words), None

    def _are_truths(self) -> bool:
        """Whether all words are booleans, or 0 or 1."""
        return all(
            kind == "truth" or word in ("0", "1", "0.0", "1.0") for word, kind in self.kinds.items()
        )

    def _check_categories(self, found: dict[str, int], n_rows: int) -> None:
        """_Trouble if the words are not categories; found: the cells of each kind of word."""
        assert self.words is not None
        numbers = found["number"] + found["written"]
        if numbers < self.count and (2 * numbers > self.count or self._are_marked_numbers()):
            place, word = next(
                self.places[kind] for kind in ("word", "date", "truth") if kind in self.places
            )
            others = "most of its cells" if 2 * numbers > self.count else "most of its other values"
            raise _Trouble(f"{word!r:.80}, which is not a number, unlike {others}", place)
        if 2 * found["date"] > self.count:
            raise _Trouble(
                f"dates such as {self.places['date'][1]!r:.80}, which can't be categories",
                None,
                True,
            )
        if len(self.words) > max(MOST_NAMES, n_rows // 2):
            raise _Trouble(
                f"{len(self.words):,} different words in {n_rows:,} rows, too many for categories",
                names=True,
            )

    def _are_marked_numbers(self) -> bool:
        """Whether most distinct values are numbers, too many or too fine for categories, so that
        the others may mark missing cells.
        """
        numbers = [word for word, kind in self.kinds.items() if kind in ("number", "written")]
        fine = any("." in word or "," in word for word in numbers)
        return 2 * len(numbers) > len(self.kinds) and (fine or len(numbers) > MOST_NAMES)

    def labels(self, n_rows, decimal):
        """(labels, None for numbers; Form or None) of a target column."""
        categories, form = self.settled(n_rows, decimal)
        if self.words is None:
            return None, None
        return (None, form) if categories is None else (sorted(self.words), None)

    def check_numbers(self, name) -> None:
        """Raise DataError for words among regression targets, other than numeric words."""
        assert self.words is not None
        word = next((word for word in self.words if labelwords.value(word) is None), None)
        if word is not None:
            place, word = self.places.get(self.kinds.get(word, ""), (name, word))
            raise labelwords.no_number(place, word, "the target")

    def example(self, form) -> str:
        """A text of the column and its numeric value."""
        return written.example(self.words or (), form)


def say_targets(form: written.Form, words: Iterable[str], name: str) -> None:
    """Log that targets written as such words became numbers."""
    log.warning("%s: the targets are read as numbers: %s", name, written.example(words, form))


def _truth_text(word: str) -> str:
    """`True` or `False` for a boolean, or for 0 or 1."""
    return written.truth(word) or str(float(word) == 1)


def _flags(values) -> bool:
    """Whether all numbers are 0 or 1, ignoring missing ones."""
    return bool(((values == 0) | (values == 1) | np.isnan(values)).all())


def refilled(schema: Schema, table: Table, reading: Reading) -> Schema:
    """The schema with replacements of missing cells learnt again from some rows of its table.

    A column without a value in these rows keeps its replacement; a column of target means is
    unchanged.
    """
    learner, inputs = Learner(reading), []
    for column in schema.columns:
        if column.means is not None:
            inputs.append(column)
            continue
        as_words = (
            isinstance(table.columns[column.position], Words) or column.categories is not None
        )
        seen = _Seen(as_words, True, declared=True)
        seen.update(table, column.position)
        inputs.append(learner.filled(table, column, seen))
    return replace(schema, inputs=inputs)


def refilled_by(schema: Schema, learner: Learner) -> Schema:
    """`refilled` by a learner that has seen exactly these rows."""
    inputs = [
        column
        if column.means is not None
        else learner.filled(learner.table, column, learner.seen(column.position))
        for column in schema.columns
    ]
    return replace(schema, inputs=inputs)
