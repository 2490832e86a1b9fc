"""Parse numbers, dates and booleans in common formats: the kind of a cell's text, and the
conversion of a column to numbers.

A column is judged as a whole: `1,234` alone is ambiguous, but next to `1,234.50` it is not.
"""

import datetime
import re
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal

import numpy as np

from rfx.numerals import is_number

_TRUTHS = {"true": "True", "false": "False"}
_LONGEST = 60  # maximum characters of a text parsed as a number or a date
# Currency signs and codes. A code is not followed by another letter.
_CURRENCY = (
    r"[A-Z]{0,3}\$|[€£¥₹₽₩₺₫₴₪฿₦₱¢]|R\$|kr\.?|zł|Kč|Ft|lei|"
    r"(?:USD|EUR|GBP|JPY|CHF|CNY|INR|CAD|AUD|NZD|SEK|NOK|DKK|PLN|CZK|HUF|RON|BRL|RUB|KRW|MXN|ZAR|"
    r"SGD|HKD|TRY|ILS|THB)(?![A-Za-z])"
)
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
    mark = re.escape(group)
    # thousands and, with commas, lakhs and crores (12,34,567)
    grouped = rf"[1-9][0-9]{{0,2}}(?:{mark}[0-9]{{3}})+"
    if group == ",":
        grouped = rf"(?:{grouped}|[1-9][0-9]?(?:,[0-9]{{2}})+,[0-9]{{3}})"
    return re.compile(rf"{grouped}{fraction}|{_pattern(decimal, '').pattern}")


# (decimal mark, thousands mark), simplest first, with the pattern of a number.
_STYLES = [
    (decimal, group, _pattern(decimal, group))
    for decimal, group in [
        (".", ""), (",", ""), (".", ","), (",", "."), (".", " "), (",", " "), (".", "'"), (",", "'")
    ]
]  # fmt: skip
_PLAIN_STYLE = 1  # the bit of the first one

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
_WEEKDAY = r"(?:(?:mon|tue|wed|thu|fri|sat|sun)[a-z]*,? )?"
_DATES = [
    re.compile(_WEEKDAY + day + _TIME, re.IGNORECASE)
    for day in (
        r"(?P<year>[0-9]{4})(?P<mark>[-/.])(?P<month>[0-9]{1,2})(?P=mark)(?P<day>[0-9]{1,2})",
        r"(?P<a>[0-9]{1,2})(?P<mark>[-/.])(?P<b>[0-9]{1,2})(?P=mark)(?P<year>[0-9]{4})",
        r"(?P<year>[0-9]{4})[-/](?P<month>[0-9]{1,2})",
        r"(?P<month>[0-9]{1,2})[-/](?P<year>[0-9]{4})",
        r"(?P<year>[0-9]{4})[-/ ]?Q(?P<quarter>[1-4])",
        r"Q(?P<quarter>[1-4])[-/ ](?P<year>[0-9]{4})",
        rf"(?P<name>{_MONTH})\.?[-/ ,]+(?P<year>[0-9]{{4}})",
        rf"(?P<year>[0-9]{{4}})[-/ ](?P<name>{_MONTH})",
        rf"(?P<name>{_MONTH})[-/ ](?P<short>[0-9]{{2}})",
        r"(?P<year>[0-9]{4})(?P<month>[0-9]{2})(?P<day>[0-9]{2})",
        (
            rf"(?P<day>[0-9]{{1,2}})(?:st|nd|rd|th)?[-/ .](?P<name>{_MONTH})\.?[-/"
            r" ,]+(?P<year>[0-9]{4})"
        ),
        rf"(?P<name>{_MONTH})\.? (?P<day>[0-9]{{1,2}})(?:st|nd|rd|th)?,? (?P<year>[0-9]{{4}})",
        rf"(?P<year>[0-9]{{4}})[-/ ](?P<name>{_MONTH})[-/ ](?P<day>[0-9]{{1,2}})",
        r"(?P<a>[0-9]{1,2})/(?P<b>[0-9]{1,2})/(?P<short>[0-9]{2})",
        rf"(?P<day>[0-9]{{1,2}})[- ](?P<name>{_MONTH})[- ](?P<short>[0-9]{{2}})",
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

    kind: `numbers`, `dates` or `truth` (true and false in any case become 1 and 0). For numbers:
    the decimal mark, the thousands mark, and a currency sign or `%`, each possibly empty. For
    dates: the order of day and month if both are numbers (`dmy`, `mdy`, or `ymd` if not needed),
    and the day from which elapsed days count.
    """

    kind: str
    decimal: str = "."
    group: str = ""
    sign: str = ""
    order: str = ""
    origin: str = ""

    @property
    def width(self) -> int:
        """The number of columns of X."""
        return len(DATE_PARTS) if self.kind == "dates" else 1

    def titles(self, name: str) -> list[str]:
        """A name for each column of X."""
        return [f"{name}.{part}" for part in DATE_PARTS] if self.kind == "dates" else [name]

    def read(self, words: Iterable[str]) -> np.ndarray:
        """The numbers (n,) float64 of the texts, nan for a text in another form.

        Dates are days since `origin`, with the time of day as a fraction, in UTC if the text has an
        offset.
        """
        one = {"numbers": self._number, "dates": self._date, "truth": _truth_number}[self.kind]
        return np.array([one(word) for word in words], np.float64)

    def spread(self, days: np.ndarray) -> np.ndarray:
        """(n, 4) year, month, weekday (Monday is 0) and elapsed days of days (n,)."""
        whole = np.floor(days).astype("datetime64[D]")
        months = whole.astype("datetime64[M]").astype(np.int64)
        weekday = (whole.astype(np.int64) + 3) % 7  # 1970-01-01 was a Thursday
        return np.column_stack([months // 12 + 1970, months % 12 + 1, weekday, days]).astype(float)

    def _number(self, word):
        if is_number(word) and self.decimal == "." and self.sign != "%":
            return float(word)
        parts = _parts(word)
        if (
            parts is None
            or (parts.sign and parts.sign != self.sign)
            or (self.sign == "%" and not parts.sign and parts.body.strip("0.,"))
            or not parts.styles & _bit(self.decimal, self.group)
        ):
            return np.nan
        return parts.value(self.decimal, self.group)

    def _date(self, word):
        date = _Date.of(word)
        return np.nan if date is None else date.days(self.order)


def _bit(decimal, group):
    return 1 << next(i for i, style in enumerate(_STYLES) if style[:2] == (decimal, group))


@dataclass(frozen=True)
class _Parts:
    """A written number: its sign, digits and marks, its unit, and the styles in which it is
    valid.
    """

    negative: bool
    body: str
    sign: str
    styles: int

    def value(self, decimal, group) -> float:
        text = self.body.replace(group, "") if group else self.body
        return (-1.0 if self.negative else 1.0) * float(text.replace(decimal, "."))


def _parts(word) -> _Parts | None:
    if len(word) > _LONGEST:
        return None
    found = _WRITTEN.fullmatch(word.translate(_PLAIN_CELL))
    if found is None:
        return None
    around = found["open"] is not None
    signs = [mark for mark in (found["before"], found["after"]) if mark]
    minus = [mark for mark in (found["minus"], found["after_sign"]) if mark]
    # parentheses around an amount mean a negative number
    if around != (found["close"] is not None) or len(signs) > 1 or len(minus) + around > 1:
        return None
    body = found["body"].strip()
    styles = sum(1 << i for i, style in enumerate(_STYLES) if style[2].fullmatch(body))
    return _Parts(around or minus == ["-"], body, "".join(signs), styles) if styles else None


def truth(text: str) -> str | None:
    """`True` or `False` for a boolean in any case, else None."""
    return _TRUTHS.get(text.lower()) if 4 <= len(text) <= 5 else None


def truth_text(word: str) -> str:
    """`True` or `False` for a boolean, or for 0 or 1."""
    return truth(word) or str(float(word) == 1)


def amount(text: str) -> tuple[str, float] | None:
    """The sign, such as `%`, and the value of an unambiguous text with a sign."""
    parts = _parts(text)
    if parts is None or not parts.sign:
        return None
    read = {parts.value(*style[:2]) for i, style in enumerate(_STYLES) if parts.styles >> i & 1}
    return (parts.sign, read.pop()) if len(read) == 1 else None


def example(words: Iterable[str], form: Form) -> str:
    """An example text of a column of that form, and its value; preferably with a sign or marks."""
    words = list(words)
    word = next((word for word in words if kind(word) == "written"), words[0])
    return f"{word!r:.80} is {shortest(float(form.read([word])[0]))}"


def _truth_number(word):
    if is_number(word):
        return float(word)
    found = truth(word)
    return np.nan if found is None else float(found == "True")


def kind(text: str) -> str:
    """The kind of a single text: `number`, `truth`, `date`, `written` (another number), or
    `word`.
    """
    if is_number(text):
        return "number"
    if len(text) > _LONGEST or not any(character.isdigit() for character in text):
        return "word" if truth(text) is None else "truth"
    if _Date.of(text) is not None:
        return "date"
    return "word" if _parts(text) is None else "written"


def shortest(value: float) -> str:
    """The shortest text that reads back as this number; integers without a point."""
    return str(int(value)) if float(value).is_integer() else repr(float(value))


def same(text: str):
    """The common key of texts with one value: booleans in any case, and numbers; numbers with a
    leading zero, such as 007, are codes with a single spelling."""
    found = truth(text)
    if found is not None:
        return found
    if is_number(text) and not re.match(r"[+-]?0[0-9]", text):
        return Decimal(text)
    return text.strip()


# ---------------------------------------------------------------------- columns


def read(words: Iterable[str], form: Form | None, decimal: str | None = None) -> np.ndarray:
    """The numbers (n,) of the texts of a column, nan for a text in another form.

    form: None for plain numbers, which may have the file's decimal mark `decimal`.
    """
    if form is not None:
        return form.read(words)
    comma = Form("numbers", ",")

    def number(word):
        return float(word) if is_number(word) else comma.read([word])[0] if decimal else np.nan

    decimal = decimal if decimal == "," else None
    return np.array([number(word) for word in words], np.float64)


def numbers(words: Iterable[str], decimal: str | None = None) -> Form:
    """The Form of a column whose texts are all numbers.

    decimal: the decimal mark implied by the file's separator, or None; it resolves ambiguous
    numbers, such as 1,234. Raises Unclear.
    """
    words = list(words)
    found = [parts for word in words if (parts := _parts(word)) is not None]
    if len(found) < len(words):
        raise Unclear("numbers in no common format")
    sign = _common_sign(found)
    left = _common_styles(found)
    if not left:
        raise Unclear(f"numbers whose separators disagree, such as {_disagree(words, found)}")
    return Form("numbers", *_only_style(words, found, left, decimal), sign)


def _common_sign(found: list[_Parts]) -> str:
    """The sign of the numbers of a column, or empty. Raises Unclear if they are not comparable."""
    signs = {parts.sign for parts in found if parts.sign}
    if len(signs) > 1:
        raise Unclear(f"amounts in {' and '.join(sorted(signs))}, which can't be compared")
    sign = next(iter(signs), "")
    bare = next((parts.body for parts in found if not parts.sign and parts.body.strip("0.,")), None)
    if sign == "%" and bare is not None:
        raise Unclear(f"numbers with and without %, such as {bare!r}")
    return sign


def _common_styles(found: list[_Parts]) -> list[tuple[str, str]]:
    """The (decimal mark, thousands mark) with which the whole column is numeric."""
    common = -1
    for parts in found:
        common &= parts.styles
    return [style[:2] for i, style in enumerate(_STYLES) if common >> i & 1]


def _only_style(words, found: list[_Parts], left, decimal: str | None) -> tuple[str, str]:
    """The first of the remaining styles. Raises Unclear if they give different values, even if only
    among texts with the file's decimal mark.
    """
    marked = [
        i for i, parts in enumerate(found) if not parts.styles & _PLAIN_STYLE or "." in parts.body
    ]
    read = {style: tuple(found[i].value(*style) for i in marked) for style in left}
    if len(set(read.values())) > 1:
        left = [style for style in left if style[0] == decimal] or left
        values = {read[style] for style in left}
        if len(values) > 1:
            i = next(i for i in range(len(marked)) if len({value[i] for value in values}) > 1)
            either = " or ".join(sorted({shortest(value[i]) for value in values}, key=len))
            raise Unclear(f"{words[marked[i]]!r:.80}, which may be {either}")
    return left[0]


def _disagree(words, found):
    """Two texts that share no style, else the first three."""
    for word, parts in zip(words, found):
        if not parts.styles & found[0].styles:
            return f"{words[0]!r:.80} and {word!r:.80}"
    return ", ".join(f"{word!r:.80}" for word in words[:3])


def dates(words: Iterable[str]) -> Form:
    """The Form of a column whose texts are all dates. Raises Unclear if day and month can't be
    distinguished.
    """
    orders: dict[str, str] = {}
    both = None
    for word in words:
        date = _Date.of(word)
        if date is None:
            raise Unclear(f"{word!r:.80}, which is not a date")
        if date.short:
            raise Unclear(f"{word!r:.80}, which has a two-digit year")
        if len(date.orders) == 2:
            both = both or word
        elif date.orders != {"ymd"}:
            (order,) = date.orders
            orders.setdefault(order, word)
    if len(orders) > 1:
        shown = " and ".join(f"{word!r:.80}" for word in orders.values())
        raise Unclear(f"dates with the day first and with the month first, {shown}")
    if both is not None and not orders:
        raise Unclear(f"{both!r:.80} and other dates with an ambiguous order of day and month")
    return Form("dates", order=next(iter(orders), "ymd"), origin=ORIGIN)


@dataclass(frozen=True)
class _Date:
    """A written date. orders: the valid orders of day and month; short: whether its year has two
    digits.
    """

    groups: dict
    orders: frozenset
    short: bool

    @classmethod
    def of(cls, text: str) -> "_Date | None":
        if len(text) > _LONGEST:
            return None
        for pattern in _DATES:
            found = pattern.fullmatch(text)
            if found is not None:
                break
        else:
            return None
        groups = found.groupdict()
        short = groups.get("short") is not None
        orders = {"ymd"}
        if groups.get("a") is not None:
            a, b = int(groups["a"]), int(groups["b"])
            # dates with points have the day first everywhere
            orders = {"dmy"} if groups.get("mark") == "." else {"ymd"} if a == b else {"dmy", "mdy"}
        made = cls(groups, frozenset(orders), short)
        good = frozenset(order for order in orders if made._day(order) is not None)
        if not good or made._time() is None:
            return None
        return cls(groups, good, short)

    def _day(self, order):
        groups = self.groups
        year = int(groups["year"]) if groups.get("year") else 2000 + int(groups["short"])
        if groups.get("a") is not None:
            day, month = (
                (groups["b"], groups["a"]) if order == "mdy" else (groups["a"], groups["b"])
            )
        else:
            day = groups.get("day") or 1
            month = groups.get("month") or 3 * int(groups.get("quarter") or 1) - 2
            month = _MONTHS[groups["name"].lower()] if groups.get("name") else month
        try:
            return datetime.date(year, int(month), int(day)).toordinal() - _EPOCH
        except ValueError:
            return None

    def _time(self):
        """The fraction of a day, minus the offset; None if there is no valid time."""
        groups = self.groups
        if groups["hour"] is None:
            return 0.0
        hour, minute, second = (int(groups[name] or 0) for name in ("hour", "minute", "second"))
        if groups["half"]:
            if not 1 <= hour <= 12:
                return None
            hour = hour % 12 + 12 * (groups["half"][0] in "pP")
        if hour > 23 or minute > 59 or second > 60:
            return None
        seconds = 3600 * hour + 60 * minute + second + float(f"0.{groups['fraction'] or 0}")
        zone = groups["zone"]
        if zone and zone[0] in "+-":
            digits = zone[1:].replace(":", "")
            offset = 3600 * int(digits[:2]) + 60 * int(digits[2:] or 0)
            seconds -= offset if zone[0] == "+" else -offset
        return seconds / 86400

    def days(self, order: str) -> float:
        """Days since the origin; nan if the year is short, or the date has another order."""
        if order not in self.orders:
            if len(self.orders) > 1 or (
                self.groups.get("mark") != "." and "ymd" not in self.orders
            ):
                return np.nan
            (order,) = self.orders
        return np.nan if self.short else self._day(order) + self._time()
