"""Parse numbers, dates and booleans in common formats: the kind of a cell's text, and the
conversion of a column to numbers.

A column is judged as a whole: `1,234` alone is ambiguous, but next to `1,234.50` it is not.
"""

import contextlib
import datetime
import re
from collections.abc import Callable, Collection, Hashable, Iterable
from dataclasses import dataclass
from decimal import Decimal
from typing import NamedTuple

import numpy as np

from rfx.numerals import is_number

_TRUTHS = {"true": "True", "false": "False"}
_LONGEST = 60  # maximum characters of a text parsed as a number or a date
_CURRENCY = "[$€£¥]"  # amounts of money are recognised, but not read
_BLANKS = "\u00a0\u202f\u2009"  # replacements of a blank between thousands
_WRITTEN = re.compile(
    rf"(?P<open>\()?(?P<minus>[+-])? ?(?P<before>{_CURRENCY})? ?(?P<after_sign>[+-])? ?"
    rf"(?P<body>[0-9.,][0-9.,' ]*?(?:[eE][+-]?[0-9]+)?) ?(?P<after>%|{_CURRENCY})?(?P<close>\))?"
)
_PLAIN_CELL = str.maketrans({"−": "-", "’": "'", **dict.fromkeys(_BLANKS, " ")})


def _pattern(decimal, group):
    exponent = "(?:[eE][+-]?[0-9]+)?"
    fraction = rf"(?:{re.escape(decimal)}[0-9]*)?"
    if not group:
        tail = rf"{re.escape(decimal)}[0-9]+"
        return re.compile(rf"(?:[0-9]+{fraction}|{tail}){exponent}")
    grouped = rf"[1-9][0-9]{{0,2}}(?:{re.escape(group)}[0-9]{{3}})+"
    return re.compile(rf"{grouped}{fraction}|{_pattern(decimal, '').pattern}")


# (decimal mark, thousands mark), simplest first, with the pattern of a number.
_STYLES = {
    (decimal, group): _pattern(decimal, group)
    for decimal, group in [
        (".", ""), (",", ""), (".", ","), (",", "."), (".", " "), (",", " "), (".", "'"), (",", "'")
    ]
}  # fmt: skip

_MONTHS = {
    name: number
    for number, names in enumerate(
        "jan january|feb february|mar march|apr april|may|jun june|jul july|aug august|"
        "sep sept september|oct october|nov november|dec december".split("|"),
        1,
    )
    for name in names.split()
}
_MONTH = "|".join(sorted(_MONTHS, key=len, reverse=True))
_TIME = (
    r"(?:(?:T|t|,? +)(?P<hour>[0-9]{1,2}):(?P<minute>[0-9]{2})(?::(?P<second>[0-9]{2})"
    r"(?:[.,](?P<fraction>[0-9]+))?)? ?(?P<half>[AaPp]\.?[Mm]\.?)?"
    r" ?(?P<zone>Z|z|UTC|GMT|[+-][0-9]{2}:?(?:[0-9]{2})?)?)?"
)
_DATES = [
    re.compile(day + _TIME, re.IGNORECASE)
    for day in (
        r"(?P<year>[0-9]{4})(?P<mark>[-/.])(?P<month>[0-9]{1,2})(?P=mark)(?P<day>[0-9]{1,2})",
        r"(?P<a>[0-9]{1,2})(?P<mark>[-/.])(?P<b>[0-9]{1,2})(?P=mark)(?P<year>[0-9]{4})",
        r"(?P<year>[0-9]{4})[-/](?P<month>[0-9]{1,2})",
        rf"(?P<name>{_MONTH})\.?[-/ ,]+(?P<year>[0-9]{{4}})",
        r"(?P<year>[0-9]{4})(?P<month>[0-9]{2})(?P<day>[0-9]{2})",
        (
            rf"(?P<day>[0-9]{{1,2}})[-/ .](?P<name>{_MONTH})\.?[-/"
            r" ,]+(?P<year>[0-9]{4})"
        ),
        rf"(?P<name>{_MONTH})\.? (?P<day>[0-9]{{1,2}}),? (?P<year>[0-9]{{4}})",
    )
]
_EPOCH = datetime.date(1970, 1, 1).toordinal()
ORIGIN = "1970-01-01"
DATE_PARTS = ("year", "month", "weekday", "days")


class Unclear(Exception):
    """The text of a column is ambiguous; str(error) ends a sentence: `has …`."""


@dataclass(frozen=True)
class Form:
    """How the text of a column becomes numbers.

    kind: `numbers` or `dates`. For numbers: the decimal mark, the thousands mark, and `%`, each
    possibly empty. For dates: the order of day and month if both are numbers
    (`dmy`, `mdy`, or `ymd` if not needed), and the day from which elapsed days count.
    """

    kind: str
    decimal: str = "."
    group: str = ""
    sign: str = ""
    order: str = ""
    origin: str = ""

    def titles(self, name: str) -> list[str]:
        """A name for each column of X."""
        return [f"{name}.{part}" for part in DATE_PARTS] if self.kind == "dates" else [name]

    def read(self, words: Iterable[str]) -> np.ndarray:
        """The numbers (n,) float64 of the texts, nan for a text in another form.

        Dates are days since `origin`, with the time of day as a fraction, in UTC if the text has an
        offset.
        """
        one = self._date if self.kind == "dates" else self._number
        return np.array([one(word) for word in words], np.float64)

    def spread(self, days: np.ndarray) -> np.ndarray:
        """(n, 4) year, month, weekday (Monday is 0) and elapsed days of days (n,)."""
        whole = np.floor(days).astype("datetime64[D]")
        months = whole.astype("datetime64[M]").astype(np.int64)
        weekday = (whole.astype(np.int64) + 3) % 7  # 1970-01-01 was a Thursday
        return np.column_stack([months // 12 + 1970, months % 12 + 1, weekday, days]).astype(float)

    def _number(self, word: str) -> float:
        if is_number(word) and self.decimal == "." and self.sign != "%":
            return float(word)
        amount = _amount(word)
        if amount is None or amount.sign not in ("", self.sign):
            return np.nan
        if self.sign == "%" and not amount.sign and not amount.is_zero:
            return np.nan
        return amount.values.get((self.decimal, self.group), np.nan)

    def _date(self, word: str) -> float:
        days = _date(word)
        return days.get(self.order, days.get("", np.nan))


class _Amount(NamedTuple):
    """A written number.

    sign: of money, % or empty. body: its digits and marks. values: the number by each style that
    its marks may have.
    """

    sign: str
    body: str
    values: dict[tuple[str, str], float]

    @property
    def is_zero(self) -> bool:
        """Whether it is 0, which needs no sign."""
        return not self.body.strip("0.,")


def _amount(word: str) -> _Amount | None:
    """A text as a written number; None for other texts."""
    if len(word) > _LONGEST:
        return None
    match = _WRITTEN.fullmatch(word.translate(_PLAIN_CELL))
    if match is None:
        return None
    opened, minus, before, after_sign, body, after, closed = match.groups()
    signs = [mark for mark in (before, after) if mark]
    minuses = [mark for mark in (opened, minus, after_sign) if mark]
    # parentheses around an amount mean a negative number
    if bool(opened) != bool(closed) or len(signs) > 1 or len(minuses) > 1:
        return None
    body = body.strip()
    factor = -1.0 if minuses and minuses[0] in "(-" else 1.0
    values = {}
    for (decimal, group), pattern in _STYLES.items():
        if pattern.fullmatch(body):
            plain = body.replace(group, "").replace(decimal, ".")
            values[decimal, group] = factor * float(plain)
    return _Amount("".join(signs), body, values) if values else None


def truth(text: str) -> str | None:
    """`True` or `False` for a boolean in any case, else None."""
    return _TRUTHS.get(text.lower()) if 4 <= len(text) <= 5 else None


def example(words: Iterable[str], form: Form) -> str:
    """An example text of a column of that form, and its value; preferably with a sign or marks."""
    words = list(words)
    word = next((word for word in words if kind(word) == "written"), words[0])
    return f"{word!r:.80} is {shortest(float(form.read([word])[0]))}"


def kind(text: str) -> str:
    """The kind of a single text: `number`, `truth`, `date`, `written` (another number), or
    `word`.
    """
    if is_number(text):
        return "number"
    if len(text) > _LONGEST or not any(character.isdigit() for character in text):
        return "word" if truth(text) is None else "truth"
    if _date(text):
        return "date"
    return "word" if _amount(text) is None else "written"


def shortest(value: float) -> str:
    """The shortest text that reads back as this number; integers without a point."""
    return str(int(value)) if float(value).is_integer() else repr(float(value))


def same(text: str) -> Hashable:
    """The common key of texts with one value: booleans in any case, and numbers; numbers with a
    leading zero, such as 007, are codes with a single spelling."""
    if is_number(text) and not re.match(r"[+-]?0[0-9]", text):
        return Decimal(text)
    return truth(text) or text.strip()


def alike(words: Iterable[str], key: Callable[[str], Hashable]) -> list[list[str]]:
    """The groups of several words with the same key."""
    groups: dict[Hashable, list[str]] = {}
    for word in words:
        groups.setdefault(key(word), []).append(word)
    return [group for group in groups.values() if len(group) > 1]


def matched(words: Iterable[str], choices: Iterable[str]) -> list[int]:
    """The position of each word among the choices, or -1: of the same text, else of the only one
    with the same value. 1 and 0 match if all choices are booleans.
    """
    places = {word: place for place, word in enumerate(choices)}
    by_key: dict[Hashable, list[int]] = {}
    for word, place in places.items():
        by_key.setdefault(same(word), []).append(place)
    if all(map(truth, places)):
        by_key[0] = by_key.get("False", [])
        by_key[1] = by_key.get("True", [])
    found = []
    for word in words:
        if word in places:
            found.append(places[word])
        else:
            alike = by_key.get(same(word), [])
            found.append(alike[0] if len(alike) == 1 else -1)
    return found


# ---------------------------------------------------------------------- columns


def read(words: Iterable[str], form: Form | None, decimal: str | None = None) -> np.ndarray:
    """The numbers (n,) of the texts of a column, nan for a text in another form.

    form: None for plain numbers, which may have the file's decimal mark `decimal`.
    """
    if form is not None:
        return form.read(words)
    comma = Form("numbers", ",")

    def number(word: str) -> float:
        if is_number(word):
            return float(word)
        return comma._number(word) if decimal == "," else np.nan

    return np.array([number(word) for word in words], np.float64)


def numbers(words: Iterable[str], decimal: str | None = None) -> Form:
    """The Form of a column whose texts are all numbers.

    decimal: the decimal mark implied by the file's separator, or None; it resolves ambiguous
    numbers, such as 1,234. Raises Unclear.
    """
    amounts: dict[str, _Amount] = {}
    for word in words:
        amount = _amount(word)
        if amount is None:
            raise Unclear("numbers in no common format")
        amounts[word] = amount
    for word, amount in amounts.items():
        if amount.sign not in ("", "%"):
            raise Unclear(f"amounts of money, such as {word!r:.80}; write plain numbers")
    sign = _common_sign(amounts.values())
    styles = _common_styles(amounts)
    if _ambiguous(amounts, styles):
        # the file's separator decides
        styles = [style for style in styles if style[0] == decimal] or styles
        if unclear := _ambiguous(amounts, styles):
            raise Unclear(unclear)
    return Form("numbers", *styles[0], sign)


def _common_sign(amounts: Collection[_Amount]) -> str:
    """% if amounts have it, else empty. Raises Unclear for numbers with and without %."""
    bare = [amount for amount in amounts if not amount.sign]
    if len(bare) == len(amounts):
        return ""
    for amount in bare:
        if not amount.is_zero:
            raise Unclear(f"numbers with and without %, such as {amount.body!r}")
    return "%"


def _common_styles(amounts: dict[str, _Amount]) -> list[tuple[str, str]]:
    """The styles that all amounts, by their texts, may have. Raises Unclear if there are none."""
    texts, parsed = list(amounts), list(amounts.values())
    shared = set(_STYLES).intersection(*(amount.values for amount in parsed))
    styles = [style for style in _STYLES if style in shared]
    if styles:
        return styles
    first = parsed[0].values.keys()
    other = [text for text, amount in amounts.items() if first.isdisjoint(amount.values)]
    pair = " and ".join(f"{text!r:.80}" for text in (texts[0], (other or texts[-1:])[0]))
    raise Unclear(f"numbers whose separators disagree, such as {pair}")


def _ambiguous(amounts: dict[str, _Amount], styles: list[tuple[str, str]]) -> str:
    """What to say of the first text with different values in these styles; empty if none has."""
    for word, amount in amounts.items():
        texts = sorted({shortest(amount.values[style]) for style in styles}, key=len)
        if len(texts) > 1:
            return f"{word!r:.80}, which may be {' or '.join(texts)}"
    return ""


def dates(words: Iterable[str]) -> Form:
    """The Form of a column whose texts are all dates. Raises Unclear if day and month can't be
    distinguished.
    """
    orders: dict[str, str] = {}  # the first word in each order
    both = None
    for word in words:
        days = _date(word)
        if not days:
            raise Unclear(f"{word!r:.80}, which is not a date")
        ordered = set(days) - {""}
        both = both or (word if len(ordered) > 1 else None)
        if len(ordered) == 1:
            orders.setdefault(ordered.pop(), word)
    if len(orders) > 1:
        shown = " and ".join(f"{word!r:.80}" for word in orders.values())
        raise Unclear(f"dates with the day first and with the month first, {shown}")
    if both is not None and not orders:
        raise Unclear(f"{both!r:.80} and other dates with an ambiguous order of day and month")
    return Form("dates", order=next(iter(orders), "ymd"), origin=ORIGIN)


def _date(text: str) -> dict[str, float]:
    """The days since the origin by each valid order of day and month, "" for any order. Empty for
    texts that are no dates.
    """
    written = _written_date(text)
    time = None if written is None else written.time()
    if written is None or time is None:
        return {}
    year, by_order = int(written.year), {}
    for order, (month, day) in written.months_and_days().items():
        with contextlib.suppress(ValueError):
            date = datetime.date(year, month, day)
            by_order[order] = date.toordinal() - _EPOCH + time
    return by_order


def _written_date(text: str) -> "_WrittenDate | None":
    """The parts of a date; None for other texts."""
    if len(text) > _LONGEST:
        return None
    for pattern in _DATES:
        match = pattern.fullmatch(text)
        if match is not None:
            return _WrittenDate(**match.groupdict(""))
    return None


class _WrittenDate(NamedTuple):
    """The parts of a date, empty if it lacks them: `name` of the month, `a` and `b` for day and
    month in an unknown order, `mark` between numbers, `half` of the day.
    """

    year: str
    month: str = ""
    day: str = ""
    name: str = ""
    a: str = ""
    b: str = ""
    mark: str = ""
    hour: str = ""
    minute: str = ""
    second: str = ""
    fraction: str = ""
    half: str = ""
    zone: str = ""

    def months_and_days(self) -> dict[str, tuple[int, int]]:
        """(month, day) by each possible order, "" for any order."""
        if not self.a:
            month = _MONTHS[self.name.lower()] if self.name else int(self.month)
            return {"": (month, int(self.day or 1))}
        a, b = int(self.a), int(self.b)
        if self.mark == ".":  # with points, the day is first everywhere
            return {"dmy": (b, a), "": (b, a)}
        if a == b:
            return {"": (a, b)}
        return {"dmy": (b, a), "mdy": (a, b)}

    def time(self) -> float | None:
        """The fraction of a day, minus the offset of the zone; None if there is no valid time."""
        hour, minute, second = int(self.hour or 0), int(self.minute or 0), int(self.second or 0)
        if self.half:
            if not 1 <= hour <= 12:
                return None
            hour = hour % 12 + (12 if self.half[0] in "pP" else 0)
        if hour > 23 or minute > 59 or second > 60:
            return None
        seconds = 3600 * hour + 60 * minute + second + float(f"0.{self.fraction or 0}")
        sign, digits = self.zone[:1], self.zone[1:].replace(":", "")
        if sign in ("+", "-"):
            offset = 3600 * int(digits[:2]) + 60 * int(digits[2:] or 0)
            seconds -= offset if sign == "+" else -offset
        return seconds / 86400
