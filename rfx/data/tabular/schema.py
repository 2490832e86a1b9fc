"""The schema learnt from the training rows of a table: columns, categories, replacements of missing
cells, labels.

It is stored in the model file, so that other rows are read by their column names, in any order and
among other columns.
"""

import warnings
from dataclasses import asdict, dataclass, replace

import numpy as np
import scipy.sparse

from rfx.data.reading import FileFormat
from rfx.data.tabular import labelwords, written
from rfx.data.tabular.table import Table, Words, check_finite, words_of_numbers
from rfx.data.tabular.targetmeans import TargetMeans
from rfx.data.tasks import number_text
from rfx.errors import DataError, RfxWarning

# Number of encoded columns above which mostly zero rows are stored as CSR.
_SPARSE_WIDTH = 256
_SHOWN = 5
# The treatment of unknown categories, for messages.
_AS_MEAN = "encoded by the mean of the targets"
# The treatment of rows with unknown labels, for messages.
NEVER_SEEN = "rows with them count as wrong"


@dataclass
class Input:
    """An input column: its name, its position in the training table, its categories (None:
    numbers), the replacement of missing cells (a number or a category; None: an error), the
    conversion of its text to numbers (None: unchanged), and the target means of its categories
    (None: one-hot).
    """

    name: str
    position: int
    categories: list[str] | None = None
    fill: float | str | None = None
    form: written.Form | None = None
    means: TargetMeans | None = None

    @property
    def one_hot(self) -> bool:
        """Whether it is one-hot encoded."""
        return self.categories is not None and self.means is None

    @property
    def width(self) -> int:
        """Its number of columns of X."""
        if self.means is not None:
            return self.means.width
        if self.categories is not None:
            return len(self.categories)
        return 1 if self.form is None else self.form.width

    def titles(self) -> list[str]:
        """A name for each column of X: the column's own, column=category, column.part of a date, or
        column.class for class means.
        """
        if self.means is not None:
            return [f"{self.name}.{title}" for title in self.means.titles] or [self.name]
        if self.categories is not None:
            return [f"{self.name}={word}" for word in self.categories]
        return [self.name] if self.form is None else self.form.titles(self.name)

    def is_text(self) -> bool:
        """Whether the cells are read as text."""
        return self.categories is not None or (self.form is not None and self.form.kind != "truth")

    def places(self, words) -> list[int]:
        """The number of each word's category, -1 for none: the same text, else the only one with
        the same value.
        """
        assert self.categories is not None
        own = {word: place for place, word in enumerate(self.categories)}
        found = [own.get(word, -1) for word in words]
        if -1 not in found:
            return found
        truths = own.keys() <= {"True", "False"}
        values: dict = {}
        for word, place in own.items():
            values.setdefault(written.same(word), []).append(place)

        def by_value(word):
            value = written.same(word)
            if truths and value in (0, 1):
                value = str(value == 1)
            places = values.get(value, ())
            return places[0] if len(places) == 1 else -1

        return [by_value(word) if place < 0 else place for word, place in zip(words, found)]


@dataclass
class Schema:
    """How rows become X and y. inputs None: columns are found by index, as in LIBSVM text, and only
    the labels are learnt.

    named: columns are found by name. size: columns of the training table. target: name and position
    of the target column. labels: the words of the targets 0, 1, …, ascending; None for numbers.
    target_form: the conversion of the targets' text to numbers, None: unchanged. format: the format
    of the training file; None without a file.
    """

    inputs: list[Input] | None = None
    named: bool = False
    size: int = 0
    target: tuple[str, int] | None = None
    ignored: tuple[str, ...] = ()
    labels: list[str] | None = None
    target_form: written.Form | None = None
    format: FileFormat | None = None

    # ------------------------------------------------------------------ properties

    @property
    def columns(self) -> list[Input]:
        """The inputs of a schema that has some."""
        assert self.inputs is not None
        return self.inputs

    @property
    def width(self) -> int:
        """Columns of X."""
        return sum(column.width for column in self.columns)

    def titles(self) -> list[str]:
        """A name for each column of X."""
        return [title for column in self.columns for title in column.titles()]

    def words_in(self, table: Table) -> frozenset[int]:
        """The positions of the columns of a table, which may have no rows yet, read as text."""
        if self.inputs is None:
            return (
                frozenset()
                if table.own_target is None or not self.labels
                else frozenset({table.own_target})
            )
        positions, target = self._found(table, False)
        words = {p for p, column in zip(positions, self.columns) if column.is_text()}
        if target is not None and (self.labels or self.target_form):
            words.add(target)
        return frozenset(words)

    def task(self) -> str | None:
        """The task of the labels; None for numbers."""
        return None if self.labels is None else "binary" if len(self.labels) == 2 else "multiclass"

    # ------------------------------------------------------------------ rows

    def encode(self, table: Table, strict: bool = False, targets: str = "needed"):
        """X (n, width), array or, if it is wide and mostly zeros, CSR, and y (n,), None if the
        table has none.

        targets: required, or else ignored. Unseen columns and categories are ignored with one
        warning, or raise an error if `strict`. Raises DataError for absent columns, missing cells,
        and words among numbers.
        """
        found, target = self._found(table, targets == "needed")
        table.check_read({*found, *([] if target is None else [target])})
        self._check_others(table, found, target, strict)
        parts = [
            self._column(table, position, column, strict)
            for position, column in zip(found, self.columns)
        ]
        X = _assembled(parts, self.inputs, table.n_rows)
        if target is None or targets != "needed":
            return X, None
        return X, self.targets_of(table, target)

    def inputs_of(self, table: Table, known: dict[int, np.ndarray]):
        """X (n, width) of the rows of the training table; known: columns already computed, (n, k)
        by their position among the inputs."""
        parts = [
            known[place] if place in known else self._column(table, column.position, column, False)
            for place, column in enumerate(self.columns)
        ]
        return _assembled(parts, self.inputs, table.n_rows)

    def targets_of(self, table: Table, position: int) -> np.ndarray:
        """y (n,) of the target column at a position of a table."""
        if self.target_form is not None:
            columns = list(table.columns)
            columns[position] = _numbers(table, position, table.cells(position), self.target_form)
            table = replace(table, columns=columns)
        return encode_labels(table, position, self.labels)

    def _found(self, table, needed):
        """The positions of the input columns and the target column in a table."""
        if self.named and table.named:
            return self._found_by_name(table, needed)
        return self._found_by_place(table, needed)

    def _found_by_name(self, table, needed):
        """`_found` if the columns have names."""
        places = {name: position for position, name in enumerate(table.names)}
        away = [column for column in self.columns if column.name not in places]
        if away:
            filled = all(column.fill is not None for column in away)
            raise DataError(
                f"{table.name} has no column {_listed([column.name for column in away])},"
                " which the model needs; its columns are"
                f" {', '.join(table.names):.300}"
                + ("; to mark a column as missing, add it with empty cells" * filled)
            )
        target = places.get(self.target[0]) if self.target else None
        if target is None:
            target = table.own_target
        if target is None and needed:
            which = (
                f"column {self.target[0]!r}, which holds the targets" if self.target else "targets"
            )
            raise DataError(f"{table.name} has no {which}")
        return [places[column.name] for column in self.columns], target

    def _found_by_place(self, table, needed):
        """`_found` if the columns are in the order of the training table, except the targets."""
        target = self.target[1] if self.target else table.own_target
        if len(table.names) == self.size:
            return [column.position for column in self.columns], target
        if len(table.names) == self.size - 1 and target is not None and not needed:
            return [column.position - (column.position > target) for column in self.columns], None
        if (
            self.target is None
            and table.own_target == self.size
            and len(table.names) == self.size + 1
        ):
            return [column.position for column in self.columns], table.own_target
        raise DataError(
            f"{table.name} has {len(table.names)} unnamed columns, but the model was trained on"
            f" {self.size}"
            + (", and targets are required" if needed and len(table.names) == self.size - 1 else "")
        )

    def _check_others(self, table, found, target, strict):
        if not (self.named and table.named):
            return
        known = {*found, target} | {
            position for position, name in enumerate(table.names) if name in self.ignored
        }
        others = [
            name
            for position, name in enumerate(table.names)
            if position not in known and not table.numbers_rows(position)
        ]
        if others:
            _left_out(f"{table.name} has columns that were absent in training", others, strict)

    def _column(self, table, position, column, strict):
        """Numbers (n,), those of a date (n, 4), target means (n, k), or category numbers (n,), -1
        for an unseen category.
        """
        if column.means is not None:
            return column.means.of(self.codes(table, position, column, strict, gaps=True))
        if column.categories is not None:
            return self.codes(table, position, column, strict)
        values = table.cells(position)
        check_finite(table, position)
        numbers = _filled(
            _numbers(table, position, values, column.form), column.fill, table, position
        )
        return column.form.spread(numbers) if column.width > 1 else numbers

    def codes(
        self, table: Table, position: int, column: Input, strict: bool = False, gaps: bool = False
    ) -> np.ndarray:
        """The category numbers (n,) of a column of a table, -1 for an unseen category.

        gaps: a missing cell without a replacement category is -1 too; otherwise it raises an error.
        """
        assert column.categories is not None
        values = table.cells(position, column.categories)
        check_finite(table, position)
        if not isinstance(values, Words):
            values = words_of_numbers(values)
        places = column.places(values.values)
        codes = np.array([*places, 0], np.int64)[values.codes]
        new = [word for word, place in zip(values.values, places) if place < 0]
        if new and (codes[values.codes >= 0] < 0).any():
            row = int(np.argmax((codes < 0) & (values.codes >= 0)))
            what = (
                f"{table.place(row)}: {table.title(position)} has categories that were absent in"
                " training"
            )
            like = {word.casefold(): word for word in column.categories}
            _left_out(what, new, strict, like, "ignored" if column.one_hot else _AS_MEAN)
        fill = None if column.fill is None else column.categories.index(str(column.fill))
        gone = values.codes < 0
        if gone.any() and fill is None and not gaps:
            raise _missing(table, position, int(np.argmax(gone)))
        codes[gone] = -1 if fill is None else fill
        return codes

    # ------------------------------------------------------------------ the model file

    def to_dict(self) -> dict:
        return asdict(self)

    @classmethod
    def from_dict(cls, saved: dict) -> "Schema":
        """Read from a model file's header; DataError if it is invalid."""
        try:
            inputs = saved["inputs"]
            found = cls(
                (None if inputs is None else [_input(column) for column in inputs]),
                bool(saved["named"]),
                int(saved["size"]),
                None if saved["target"] is None else (saved["target"][0], saved["target"][1]),
                tuple(saved["ignored"]),
                saved["labels"],
                _form(saved["target_form"]),
                None if saved.get("format") is None else FileFormat.from_dict(saved["format"]),
            )
        except (
            TypeError,
            KeyError,
            ValueError,
            IndexError,
            AttributeError,
            OverflowError,
        ) as error:
            raise DataError(
                f"its schema is damaged ({type(error).__name__}: {error!s:.100})"
            ) from None
        return found

    @classmethod
    def of_header(cls, header: dict) -> "Schema | None":
        """Read from a model file; None if it has none. DataError if it does not match the model's
        inputs.
        """
        found = None if header.get("schema") is None else cls.from_dict(header["schema"])
        if (
            found is not None
            and found.inputs is not None
            and found.width != header["info"]["n_inputs"]
        ):
            raise DataError("its schema and its inputs have different numbers of columns")
        return found


def shown(method, labels) -> list:
    """The words of the labels (n,) of a trained method, if they are words; else the labels as
    numbers.
    """
    known = (
        method.schema.labels if method.schema is not None and method.task != "regression" else None
    )
    return (
        np.asarray(labels).tolist()
        if known is None
        else [label_text(method.schema, label) for label in labels]
    )


def label_text(schema: Schema | None, label: float) -> str:
    """A label of encoded targets for messages: its word, or the number in its shortest form."""
    if schema is None or schema.labels is None:
        return number_text(label)
    return schema.labels[int(label)] if label < len(schema.labels) else "unknown"


def _input(saved: dict) -> Input:
    """A column from a model file's header; TypeError if it is invalid."""
    means = saved.get("means")
    means = None if means is None else TargetMeans(**means)
    return Input(**saved | {"form": _form(saved["form"]), "means": means})


def _form(saved) -> written.Form | None:
    """The Form from a model file's header; TypeError if it is invalid."""
    return None if saved is None else written.Form(**saved)


def _listed(names, like=()) -> str:
    """Names in a sentence; like: the model's names by their text in lower case."""

    def shown(name):
        near = like[name.strip().casefold()] if name.strip().casefold() in like else None
        return f"{name!r:.80}" + ("" if near is None else f" (the model has {near!r:.80})")

    text = ", ".join(map(shown, names[:_SHOWN]))
    return text + (f" and {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else "")


def _left_out(what, names, strict, like=(), fate="ignored"):
    if strict:
        raise DataError(f"{what}: {_listed(names, like)}; without --strict they are {fate}")
    warnings.warn(f"{what}, which are {fate}: {_listed(names, like)}", RfxWarning, stacklevel=2)


def _missing(table, position, row, hint=True):
    advice = f"; {table.for_gaps}" if hint else ""
    return DataError(f"{table.place(row)}: {table.title(position)} has no value{advice}")


def _numbers(table, position, values, form=None):
    """The numbers (n,) of a column, nan for missing cells; DataError, with the row, for a cell that
    is not a number of its form.
    """
    if not isinstance(values, Words):
        if form is None or form.kind == "truth" or (form.kind == "numbers" and form.sign != "%"):
            return values
        values = words_of_numbers(values)
    numbers = written.read(values.values, form, table.decimal)
    bad = np.append(np.isnan(numbers), False)[values.codes]
    if bad.any():
        row = int(np.argmax(bad))
        what = "a number"
        if form is not None and form.kind != "truth":
            what = (
                f"a {'date' if form.kind == 'dates' else 'number'} in the format of the training"
                " rows"
            )
        word = values.values[values.codes[row]]
        raise DataError(
            f"{table.place(row)}: {table.title(position)} has {word!r:.80}, which is not {what}"
        )
    return np.append(numbers, np.nan)[values.codes]


def _filled(values, fill, table, position):
    gone = np.isnan(values)
    if not gone.any():
        return values
    if fill is None:
        raise _missing(table, position, int(np.argmax(gone)))
    return np.where(gone, fill, values)


def _assembled(parts, inputs, n_rows):
    width = sum(column.width for column in inputs)
    if width <= max(_SPARSE_WIDTH, 4 * len(inputs)):
        X, at = np.zeros((n_rows, width)), 0
        for part, column in zip(parts, inputs):
            if not column.one_hot:
                X[:, at : at + column.width] = part.reshape(n_rows, -1)
            else:
                known = np.flatnonzero(part >= 0)
                X[known, at + part[known]] = 1.0
            at += column.width
        return X
    blocks = []
    for part, column in zip(parts, inputs):
        block = part.reshape(n_rows, -1)
        if column.one_hot:
            known = np.flatnonzero(part >= 0)
            entries = np.ones(len(known)), (known, part[known])
            block = scipy.sparse.csr_matrix(entries, (n_rows, column.width))
        blocks.append(scipy.sparse.csr_matrix(block, dtype=np.float64))
    return scipy.sparse.hstack(blocks, "csr")


def encode_labels(table: Table, position: int, labels: list[str] | None):
    """y (n,) of a target column: numbers, or the positions of words among `labels`; unknown words
    get later positions.

    Raises DataError for a missing cell, for text instead of a number, or if no label is known.
    """
    values = table.cells(position, labels or ())
    check_finite(table, position)
    if labels is None:
        return _numbers_known(table, position, values)
    if not isinstance(values, Words):
        values = labelwords.of_numbers(_numbers_known(table, position, values))
    if (values.codes < 0).any():
        raise _missing(table, position, int(np.argmax(values.codes < 0)), hint=False)
    return places(values, labels, table.name)


def places(values: Words, labels: list[str], name: str) -> np.ndarray:
    """(n,) float64 positions of words among the labels; unknown words get later positions, with one
    warning.

    A word is found by its spelling, else by its value if that is unique. DataError if none is
    found. With OpenLabels, new words are added.
    """
    found = labelwords.matched(values.values, labels)
    known = {word: place for word, place in zip(values.values, found) if place >= 0}
    new = [
        word
        for number, word in enumerate(values.values)
        if word not in known and (values.codes == number).any()
    ]
    extra = {word: len(labels) + place for place, word in enumerate(new)}
    if isinstance(labels, labelwords.OpenLabels):
        labels.extend(new)
    elif new and len(new) == len(values.values):
        raise DataError(
            f"none of the labels of {name} ({', '.join(new[:_SHOWN]):.200}) is among the model's"
            f" ({', '.join(labels[:_SHOWN]):.200})"
        )
    elif new:
        message = (
            f"{name} has labels that were absent in training: {', '.join(new[:_SHOWN]):.200};"
            f" {NEVER_SEEN}"
        )
        warnings.warn(message, RfxWarning, stacklevel=2)
    return np.array([known.get(word, extra.get(word, -1)) for word in values.values], np.float64)[
        values.codes
    ]


def _numbers_known(table, position, values):
    truths = isinstance(values, Words) and all(
        written.truth(word) is not None for word in values.values
    )
    numbers = _numbers(table, position, values, written.Form("truth") if truths else None)
    if np.isnan(numbers).any():
        raise _missing(table, position, int(np.argmax(np.isnan(numbers))), hint=False)
    return numbers
