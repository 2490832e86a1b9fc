"""Learning a schema from the rows of tables: which columns are numbers and which categories, what replaces missing cells, the labels."""

import logging
from dataclasses import replace

import numpy as np

from rfx.data.csvtext import is_number
from rfx.data.reading import MISSING, Reading
from rfx.data.schema import Input, Schema
from rfx.data.table import Table, Words, check_finite
from rfx.errors import DataError, UsageError

log = logging.getLogger(__name__)
# More different words than this, in more than half of the rows, are names rather than categories.
MOST_NAMES = 20


class Learner:
    """A Schema from the rows of tables, one after the other.

    bounded: keep nothing that grows with the number of rows, for a stream; medians and most frequent numbers are then refused.
    """

    def __init__(self, reading: Reading, bounded: bool = False):
        if reading.missing not in MISSING:
            raise UsageError(f"--missing is {reading.missing!r:.80}; it must be one of {', '.join(MISSING)}")
        self.reading, self.bounded, self.n_rows = reading, bounded, 0
        self.target = self.columns = None

    def update(self, table: Table) -> "Learner":
        if self.columns is None:
            self._begin(table)
        self.n_rows += table.n_rows
        for position, seen in self.columns.items():
            seen.update(table, position)
        return self

    def _begin(self, table):
        reading = self.reading
        self.table, self.target = table, len(table.names) - 1 if table.own_target is None else table.own_target
        if reading.target is not None:
            self.target = table.find(reading.target, "--target")
        elif table.own_target is None:
            log.warning("the targets of %s are %s, the last; --target names another", table.name, table.title(self.target))
        ignored = {table.find(name, "--ignore") for name in reading.ignore}
        if self.target in ignored:
            raise UsageError(f"--ignore names {table.title(self.target)}, which has the targets; name these with --target")
        self.ignored = tuple(table.names[position] for position in sorted(ignored))
        kept = [position for position in range(len(table.names)) if position not in ignored]
        if len(kept) < 2:
            raise DataError(f"{table.name} has one column, but a target and an input are needed; is it separated by something else?")
        self.columns = {position: _Seen(isinstance(table.columns[position], Words), not self.bounded) for position in kept}

    @property
    def word_columns(self) -> frozenset[int]:
        """The positions of the columns that are words."""
        return frozenset(position for position, seen in self.columns.items() if seen.words is not None)

    def merge(self, other: "Learner") -> None:
        """Learn what another learner has seen, of rows behind those of this one; both are bounded, with the same kinds of columns."""
        if self.table.names != other.table.names:
            raise DataError(f"{other.table.name} has other columns than {self.table.name}; give files of the same columns")
        self.n_rows += other.n_rows
        for position, seen in self.columns.items():
            seen.merge(other.columns[position])

    def finish(self) -> Schema:
        """The schema of all rows seen. DataError for words that are no categories, a target without rows or with a missing cell."""
        table, inputs = self.table, []
        for position, seen in self.columns.items():
            if position == self.target:
                continue
            seen.check_words(table, position, self.n_rows)
            inputs.append(Input(table.names[position], position, seen.categories(), self._fill(table, position, seen)))
        labels = self.columns[self.target].labels(table, self.target, self.n_rows)
        return Schema(inputs, table.named, len(table.names), (table.names[self.target], self.target), self.ignored, labels)

    def _fill(self, table, position, seen):
        how = self.reading.missing
        if how == "refuse":
            return None
        if not seen.count:
            raise DataError(f"{table.title(position)} of {table.name} has no value in any training row; leave it out with --ignore")
        if seen.words is not None:
            return min(seen.words, key=lambda word: (-seen.words[word], word))
        if how == "mean":
            return float(seen.total / seen.count)
        if seen.kept is None:
            raise UsageError(f"--missing is {how}, which needs all rows at once; with --stream give --missing mean")
        values = np.concatenate(seen.kept)
        values = values[~np.isnan(values)]
        if how == "median":
            return float(np.median(values))
        numbers, counts = np.unique(values, return_counts=True)
        return float(numbers[np.argmax(counts)])


class _Seen:
    """What was seen of a column."""

    def __init__(self, words: bool, keep: bool):
        self.words: dict[str, int] | None = {} if words else None
        self.kept: list | None = [] if keep else None
        self.count, self.total, self.odd = 0, 0.0, None

    def update(self, table, position):
        values = table.columns[position]
        check_finite(table, position)
        if self.words is None:
            self.count += int(np.count_nonzero(~np.isnan(values)))
            self.total += float(np.nansum(values))
            if self.kept is not None:
                self.kept.append(values)
            return
        counts = np.bincount(values.codes + 1, minlength=len(values.values) + 1)[1:]
        self.count += int(counts.sum())
        for word, count in zip(values.values, counts.tolist()):
            if count:
                self.words[word] = self.words.get(word, 0) + count
        if self.odd is None:
            odd = np.array([not is_number(word) for word in values.values] + [False])[values.codes]
            if odd.any():
                row = int(np.argmax(odd))
                self.odd = f"{table.place(row)}: {table.title(position)} has {values.values[values.codes[row]]!r:.80}"

    def merge(self, other: "_Seen"):
        self.count, self.total, self.odd = self.count + other.count, self.total + other.total, self.odd or other.odd
        for word, count in (other.words or {}).items():
            self.words[word] = self.words.get(word, 0) + count

    def categories(self):
        return None if self.words is None else sorted(self.words)

    def check_words(self, table, position, n_rows):
        """Refuse words that are misspelt numbers, and those that are different in nearly every row."""
        if self.words is None:
            return
        if not self.count:
            raise DataError(f"{table.title(position)} of {table.name} has no value in any training row; leave it out with --ignore")
        numbers = sum(count for word, count in self.words.items() if is_number(word))
        if 2 * numbers > self.count:
            raise DataError(
                f"{self.odd}, which is not a number as most of its cells are; correct it, or leave the column out with --ignore"
            )
        if len(self.words) > max(MOST_NAMES, n_rows // 2):
            raise DataError(
                f"{table.title(position)} of {table.name} has {len(self.words):,} different words in {n_rows:,} rows, which are no "
                f"categories; leave it out with --ignore {table.names[position]}"
            )

    def labels(self, table, position, n_rows):
        """The labels, None for numbers."""
        if self.words is None:
            return None
        self.check_words(table, position, n_rows)
        return sorted(self.words)


def refilled(schema: Schema, table: Table, reading: Reading) -> Schema:
    """The schema with what stands for missing cells learnt anew from the rows of a table that is part of the one it was learnt from.

    A column without a value in these rows keeps what it has.
    """
    learner, inputs = Learner(reading), []
    for column in schema.inputs:
        seen = _Seen(column.categories is not None, True)
        seen.update(table, column.position)
        inputs.append(replace(column, fill=learner._fill(table, column.position, seen)) if seen.count else column)
    return replace(schema, inputs=inputs)


def learn(table: Table, reading: Reading) -> Schema:
    """The schema of a table's rows."""
    return Learner(reading).update(table).finish()
