"""The schema learnt from the training rows of a table: columns, categories, replacements of missing
cells, labels.

It is stored in the model file, so that other rows are read by their column names, in any order and
among other columns.
"""

from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace

import numpy as np
import scipy.sparse

from rfx.data.reading import FileFormat
from rfx.data.tabular import labelwords, number_formats
from rfx.data.tabular.table import Table, Words, abbreviated, words_of
from rfx.errors import DataError, warn, warn_once
from rfx.types import Inputs

# Number of encoded columns above which mostly zero rows are stored as CSR.
_SPARSE_WIDTH = 256
_SHOWN = 5
# The category of missing cells, beside the words of a column.
MISSING_CATEGORY = "(missing)"
# The treatment of unknown categories, for messages.
_AS_MEAN = "encoded by the mean of the targets"
# The treatment of rows with unknown labels, for messages.
NEVER_SEEN = "rows with them count as wrong"


@dataclass(frozen=True)
class TargetMeans:
    """The encoding of each category of a column.

    Parameters
    ----------
    values : list of list of float, (n_categories, n_outputs)
        The smoothed means of the targets; for classes, the fractions of each class.
    default : list of float, (n_outputs,)
        The overall means, for an unknown or missing category.
    titles : list of str
        The names of the outputs, the classes if there are more than two; else empty.
    """

    values: list[list[float]]
    default: list[float]
    titles: list[str]

    def of(self, codes: np.ndarray) -> np.ndarray:
        """(n, k) for category numbers (n,), -1 for unknown or missing."""
        return np.array([*self.values, self.default], np.float64)[codes]


@dataclass
class Input:
    """An input column: its name, its position in the training table, its categories (None:
    numbers), the replacement of missing cells (a number or a category; None: an error), the
    conversion of its text to numbers (None: unchanged), and the target means of its categories
    (None: one-hot). complete: no training row lacked a cell.
    """

    name: str
    position: int
    categories: list[str] | None = None
    fill: float | str | None = None
    form: number_formats.Form | None = None
    means: TargetMeans | None = None
    complete: bool = False

    @property
    def kind(self) -> str:
        """encoded (by target means), category (one-hot), date, or number."""
        if self.categories is not None:
            return "category" if self.means is None else "encoded"
        return "date" if self.form is not None and self.form.kind == "dates" else "number"

    @property
    def width(self) -> int:
        """Its number of columns of X."""
        return len(self.titles())

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
        return self.categories is not None or self.form is not None

    @property
    def words(self) -> list[str]:
        """The categories of cells with a word, which precede that of missing cells."""
        categories = self.categories or []
        return categories[:-1] if categories[-1:] == [MISSING_CATEGORY] else categories

    def places(self, words) -> list[int]:
        """The number of each word's category, -1 for none: the same text, else the only one with
        the same value.
        """
        texts = list(words)
        places = number_formats.matched(texts, self.words)
        if self.words == (self.categories or []):
            return places
        # new rows may name the category of missing cells, too
        last = len(self.words)
        return [last if text == MISSING_CATEGORY else n for text, n in zip(texts, places)]


@dataclass
class Schema:
    """How rows become X and y. inputs None: columns are found by index, as in LIBSVM text, and only
    the labels are learnt.

    named: columns are found by name. size: columns of the training table. target: name and position
    of the target column. labels: the words of the targets 0, 1, …, ascending; None for numbers.
    target_form: the conversion of the targets' text to numbers, None: unchanged. format: the format
    of the training file; None without a file. refuses_gaps: a missing cell is an error even in a
    column of target means, which otherwise replace it by the mean of all targets.
    """

    inputs: list[Input] | None = None
    named: bool = False
    size: int = 0
    target: tuple[str, int] | None = None
    ignored: tuple[str, ...] = ()
    labels: list[str] | None = None
    target_form: number_formats.Form | None = None
    format: FileFormat | None = None
    refuses_gaps: bool = False

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
        places = ([], table.own_target) if self.inputs is None else self.places_in(table, False)
        positions, target = places
        words = {p for p, column in zip(positions, self.inputs or ()) if column.is_text()}
        if target is not None and (self.labels or self.target_form):
            words.add(target)
        return frozenset(words)

    @property
    def has_numeric_labels(self) -> bool:
        """Whether the labels are words that spell numbers."""
        return self.labels is not None and labelwords.are_numbers(self.labels)

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
        positions, target = self.places_in(table, targets == "needed")
        table.check_read({*positions, *([] if target is None else [target])})
        self._check_others(table, positions, target, strict)
        parts = []
        for position, column in zip(positions, self.columns):
            parts.append(self._column(table, position, column, strict))
        X = self._assembled(parts)
        if target is None or targets != "needed":
            return X, None
        return X, self.targets_of(table, target)

    def tell_filled(self, table: Table, only_new: bool = False) -> None:
        """Warn of the missing cells that `encode` replaces; only_new: of columns that were complete
        in training, whose replacement no earlier message named.
        """
        filled = {}
        positions, _ = self.places_in(table, needed=False)
        for position, column in zip(positions, self.columns):
            count = int(np.count_nonzero(table.gaps(position)))
            if count and (column.complete or not only_new):
                filled[column.name] = count
        if filled and table.in_memory:
            warn_once(filled_in_memory(filled))
        elif filled:
            warn(filled_words(table.name, filled))

    def inputs_of(self, table: Table, computed: dict[int, np.ndarray]):
        """X (n, width) of the rows of the training table; computed: columns of X, (n, k) by the
        position among the inputs."""
        parts = []
        for place, column in enumerate(self.columns):
            if place in computed:
                parts.append(computed[place])
            else:
                parts.append(self._column(table, column.position, column, False))
        return self._assembled(parts)

    def _assembled(self, parts: list[np.ndarray]) -> Inputs:
        """X (n, width) of the cells of each input: category numbers (n,), or numbers (n, k)."""
        n_rows = len(parts[0])
        dense = self.width <= max(_SPARSE_WIDTH, 4 * len(parts))
        blocks = []
        for part, column in zip(parts, self.columns):
            if column.kind == "category":
                block = _one_hot(part, column.width)
                blocks.append(block.toarray() if dense else block)
            elif dense:
                blocks.append(part.reshape(n_rows, -1))
            else:
                numbers = part.reshape(n_rows, -1)
                blocks.append(scipy.sparse.csr_matrix(numbers, dtype=np.float64))
        if dense:
            return np.ascontiguousarray(np.hstack(blocks))
        return scipy.sparse.hstack(blocks, "csr")

    def targets_of(self, table: Table, position: int) -> np.ndarray:
        """y (n,) of the target column at a position of a table."""
        if self.target_form is not None:
            columns = list(table.columns)
            columns[position] = _numbers(table, position, self.target_form)
            table = replace(table, columns=columns)
        return encode_labels(table, position, self.labels)

    def places_in(self, table: Table, needed: bool) -> tuple[list[int], int | None]:
        """The positions of the input columns and the target column in a table, which may have no
        rows yet; needed: whether targets are.
        """
        if not (self.named and table.named):
            return self._places_by_order(table, needed)
        places = {name: position for position, name in enumerate(table.names)}
        away = [column for column in self.columns if column.name not in places]
        if away:
            names = abbreviated(f"{column.name!r:.80}" for column in away)
            advice = ""
            if all(column.fill is not None for column in away):
                advice = "; to mark a column as missing, add it with empty cells"
            raise DataError(
                f"{table.name} has no column {names}, which the model needs; its columns are"
                f" {', '.join(table.names):.300}{advice}"
            )
        target = places.get(self.target[0]) if self.target else None
        target = table.own_target if target is None else target
        if target is None and needed:
            column = f"column {self.target[0]!r}, which holds the " if self.target else ""
            raise DataError(f"{table.name} has no {column}targets")
        return [places[column.name] for column in self.columns], target

    def _places_by_order(self, table: Table, needed: bool) -> tuple[list[int], int | None]:
        """`places_in` if the columns are in the order of the training table, except the targets."""
        n_columns, positions = len(table.names), [column.position for column in self.columns]
        target = self.target[1] if self.target else table.own_target
        behind = self.target is None and table.own_target == self.size
        if n_columns == self.size or (behind and n_columns == self.size + 1):
            return positions, target
        lacks_target = n_columns == self.size - 1
        if lacks_target and target is not None and not needed:
            return [position - (position > target) for position in positions], None
        why = ", and targets are required" if lacks_target and needed else ""
        raise DataError(
            f"{table.name} has {n_columns} unnamed columns, but the model was trained on"
            f" {self.size}{why}"
        )

    def _check_others(
        self, table: Table, inputs: list[int], target: int | None, strict: bool
    ) -> None:
        """Warn of columns that were absent in training, or raise an error if `strict`."""
        if not (self.named and table.named):
            return
        others = []
        for position in sorted(set(range(len(table.names))) - {*inputs, target}):
            name = table.names[position]
            known = name in self.ignored or table.is_index(position) or table.unnamed(position)
            if not known:
                others.append(name)
        if others:
            _left_out(f"{table.name} has columns that were absent in training", others, strict)

    def _column(self, table: Table, position: int, column: Input, strict: bool) -> np.ndarray:
        """Numbers (n,), those of a date (n, 4), target means (n, k), or category numbers (n,), -1
        for an unseen category.
        """
        if column.means is not None:
            gaps = not self.refuses_gaps
            return column.means.of(self.codes(table, position, column, strict, gaps))
        if column.categories is not None:
            return self.codes(table, position, column, strict)
        numbers = _numbers(table, position, column.form)
        missing = np.isnan(numbers)
        if missing.any():
            if column.fill is None:
                raise _missing(table, position)
            numbers = np.where(missing, column.fill, numbers)
        if column.form is not None and column.form.kind == "dates":
            return column.form.spread(numbers)
        return numbers

    def codes(
        self, table: Table, position: int, column: Input, strict: bool = False, gaps: bool = False
    ) -> np.ndarray:
        """The category numbers (n,) of a column of a table, -1 for an unseen category.

        gaps: a missing cell without a replacement category is -1 too; otherwise it raises an error.
        """
        categories, cells = column.categories or [], _words(table, position)
        codes = category_numbers(table, position, column)
        unseen = (codes < 0) & ~cells.missing
        if unseen.any():
            what = "has categories that were absent in training"
            fate = "ignored" if column.means is None else _AS_MEAN
            title, place = table.title(position), table.place(int(np.argmax(unseen)))
            new = [cells.values[code] for code in np.unique(cells.codes[unseen])]
            if table.in_memory:
                warn_once(f"{title} of X {what}, which are {fate}")
            else:
                _left_out(f"{place}: {title} {what}", new, strict, fate)
        if cells.missing.any() and column.fill is None and not gaps:
            raise _missing(table, position)
        codes[cells.missing] = -1 if column.fill is None else categories.index(str(column.fill))
        return codes

    # ------------------------------------------------------------------ the model file

    def to_dict(self) -> dict:
        return asdict(self)

    @classmethod
    def from_dict(cls, saved: dict) -> "Schema":
        """Read from a model file's header."""
        inputs, target, form = saved["inputs"], saved["target"], saved.get("format")
        parts = {
            "inputs": None if inputs is None else [_input(column) for column in inputs],
            "target": None if target is None else (target[0], target[1]),
            "ignored": tuple(saved["ignored"]),
            "target_form": _form(saved["target_form"]),
            "format": None if form is None else FileFormat(**form),
        }
        return cls(**saved | parts)

    @classmethod
    def of_header(cls, header: dict) -> "Schema | None":
        """Read from a model file; None if it has none. DataError if it does not match the model's
        inputs.
        """
        if header.get("schema") is None:
            return None
        schema = cls.from_dict(header["schema"])
        if schema.inputs is not None and schema.width != header["info"]["n_inputs"]:
            raise DataError("its schema and its inputs have different numbers of columns")
        return schema


def _one_hot(codes: np.ndarray, width: int) -> Inputs:
    """CSR (n, width) with a 1 at the category number of each row, -1 for none."""
    seen = np.flatnonzero(codes >= 0)
    entries = np.ones(len(seen)), (seen, codes[seen])
    return scipy.sparse.csr_matrix(entries, (len(codes), width))


def shown(method, labels) -> list:
    """The words of the labels (n,) of a trained method, if they are words; else the labels as
    numbers.
    """
    if method.schema is None or method.schema.labels is None or method.task == "regression":
        return np.asarray(labels).tolist()
    return [label_text(method.schema, label) for label in labels]


def label_text(schema: Schema | None, label: float) -> str:
    """A label of encoded targets for messages: its word, or the number in its shortest form."""
    if schema is None or schema.labels is None:
        return labelwords.number_text(label)
    return schema.labels[int(label)] if label < len(schema.labels) else "unknown"


def filled_words(name: str, filled: dict[str, int]) -> str:
    """The message about the missing cells that were replaced, by column, in the rows `name`."""
    total = sum(filled.values())
    cells = "1 missing cell is" if total == 1 else f"{total:,} missing cells are"
    listed = abbreviated(f"{column} ({count:,})" for column, count in filled.items())
    return f"{name}: {cells} filled as in training: {listed}"


def filled_in_memory(columns: Iterable[str]) -> str:
    """`filled_words` for rows of an estimator, without numbers."""
    return f"X: missing cells are filled as in training: {abbreviated(columns)}"


def _input(saved: dict) -> Input:
    """A column from a model file's header; TypeError if it is invalid."""
    means = saved.get("means")
    means = None if means is None else TargetMeans(**means)
    return Input(**saved | {"form": _form(saved["form"]), "means": means})


def _form(saved) -> number_formats.Form | None:
    """The Form from a model file's header; TypeError if it is invalid."""
    return None if saved is None else number_formats.Form(**saved)


def _left_out(what: str, names: list[str], strict: bool, fate: str = "ignored") -> None:
    """Warn of what is ignored, or raise an error if `strict`."""
    listed = abbreviated(f"{name!r:.80}" for name in names)
    if strict:
        raise DataError(f"{what}: {listed}; without --strict they are {fate}")
    warn(f"{what}, which are {fate}: {listed}")


def _missing(table: Table, position: int, hint: bool = True) -> DataError:
    """The error for the first missing cell of a column."""
    advice = f"; {table.advice_on_gaps}" if hint else ""
    row = int(np.argmax(table.gaps(position)))
    return DataError(f"{table.place(row)}: {table.title(position)} has no value{advice}")


def category_numbers(table: Table, position: int, column: Input) -> np.ndarray:
    """The category numbers (n,) int64 of a column of a table, -1 for a missing cell and for an
    unseen category.
    """
    cells = _words(table, position)
    numbers = np.array([*column.places(cells.values), -1], np.int64)
    return numbers[cells.codes]


def _words(table: Table, position: int) -> Words:
    """A column as words."""
    cells = table.cells(position)
    return cells if isinstance(cells, Words) else words_of(cells)


def _numbers(table: Table, position: int, form: number_formats.Form | None = None) -> np.ndarray:
    """The numbers (n,) of a column, nan for missing cells; DataError, with the row, for a cell that
    is not a number of its form.
    """
    cells = table.cells(position)
    plain = form is None or (form.kind == "numbers" and form.sign != "%")
    if plain and not isinstance(cells, Words):
        return cells
    words = _words(table, position)
    values = number_formats.read(words.values, form, table.decimal)
    numbers = np.append(values, np.nan)[words.codes]
    bad = np.isnan(numbers) & ~words.missing
    if bad.any():
        row = int(np.argmax(bad))
        cell = words.values[words.codes[row]]
        what = "a date" if form is not None and form.kind == "dates" else "a number"
        like = "" if form is None else " in the format of the training rows"
        raise DataError(
            f"{table.place(row)}: {table.title(position)} has {cell!r:.80}, which is not"
            f" {what}{like}"
        )
    return numbers


def encode_labels(table: Table, position: int, labels: list[str] | None):
    """y (n,) of a target column: numbers, or the positions of words among `labels`; unknown words
    get later positions.

    Raises DataError for a missing cell, for text instead of a number, or if no label is known.
    """
    cells = table.cells(position)
    if table.gaps(position).any():
        raise _missing(table, position, hint=False)
    if labels is None:
        return _numbers(table, position)
    words = cells if isinstance(cells, Words) else labelwords.words_of_numbers(cells)
    return places(words, labels, table.name)


def places(values: Words, labels: list[str], name: str) -> np.ndarray:
    """(n,) float64 positions of words among the labels; unknown words get later positions, with one
    warning.

    A word is found by its spelling, else by its value if that is unique. DataError if none is
    found. With OpenLabels, new words are added.
    """
    positions, used = labelwords.matched(values.values, labels), {*values.codes.tolist()}
    unknown = [code for code, place in enumerate(positions) if place < 0 and code in used]
    for place, code in enumerate(unknown, len(labels)):
        positions[code] = place
    new = [values.values[code] for code in unknown]
    if isinstance(labels, labelwords.OpenLabels):
        labels.extend(new)
    elif new and len(new) == len(positions):
        raise DataError(
            f"none of the labels of {name} ({', '.join(new[:_SHOWN]):.200}) is among the model's"
            f" ({', '.join(labels[:_SHOWN]):.200})"
        )
    elif new:
        warn(
            f"{name} has labels that were absent in training: {', '.join(new[:_SHOWN]):.200};"
            f" {NEVER_SEEN}"
        )
    return np.array(positions, np.float64)[values.codes]
