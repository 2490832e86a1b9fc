"""A program as one C99 file that needs only the standard library."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from rfx import steps as told
from rfx.errors import UsageError
from rfx.exporting.curves import CENTRAL, polynomials
from rfx.exporting.program import Column, Program
from rfx.kernels.distances import SCALES

# Numbers of an array per line.
_LINE = 6

_HEAD = """\
/*
{facts}
 *
 * int {p}_predict(const double *x, double *out)
 *     x: {P}_COLUMNS numbers, the columns below; NAN for a missing one.
 *     out: {P}_OUTPUTS numbers, {outputs}.
 *     Returns 0, 1 if memory allocation fails, or 2 if a number is infinite, or missing
 *     without a replacement.
{more} *
 * Columns of x, from 0:
{columns}
 */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#if defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__
#error "missing and infinite inputs get lost: compile without -ffast-math and -ffinite-math-only"
#endif
#ifdef __cplusplus
extern "C" {{
#endif

#define {P}_COLUMNS {n_columns}
#define {P}_OUTPUTS {n_outputs}
"""
_FOOT = """\
#ifdef __cplusplus
}
#endif
"""
_CLASSES = """\
 *
 * int {p}_label(const double *out)
 *     The index of the predicted label in {p}_labels, from the output of {p}_predict{how}.
"""
_PROBABILITIES = """\
 *
 * int {p}_probabilities(const double *out, double *shares)
 *     shares: {P}_LABELS probabilities, in the order of {p}_labels, from the output of {p}_predict.
 *     Returns 0, or 1 if memory allocation fails.
"""
_CATEGORIES = """\
 *
 * double {p}_category(int column, const char *text)
 *     The code of a category in x; -1 for a category absent in training, NAN for empty text
 *     (missing).
"""

# The one-argument functions available in C, and the bodies of the others.
_OF_C = ("exp", "sqrt")
_FUNCTIONS = {
    "cos_turns": "return cos(6.283185307179586 * (t - rint(t)));",
    "cube": "return t * t * t;",
    "exp_minus": "return exp(-t);",
    "log_positive": "return t > 0 ? log(t) : 0.0;",
    "matern3": "return (1 + t) * exp(-t);",
    "matern5": "return (1 + t + t * t / 3) * exp(-t);",
    "multiscale": (
        f"return ({' + '.join(f'exp({-scale!r} * t)' for scale in SCALES)}) / {len(SCALES)};"
    ),
    "positive": "return t > 0 ? 1.0 : 0.0;",
    "ramp": "return t > 0 ? t : 0.0;",
    "sigmoid": "return 1 / (1 + exp(-t));",
    "soft_clip": "return t / hypot(1, t / 3);",
    "square": "return t * t;",
}
# Comparisons of inputs: the initial value of `total`, and its update; t is |x - s|, s the input of
# the row.
_COMPARISONS = {
    "squared": ("0", "total += t * t;"),
    "l1": ("0", "total += t;"),
    "hat": ("1", "total *= t < 1 ? 1 - t : 0.0;"),
    "rational": ("1", "total /= 1 + t;"),
    "erlang": ("1", "total *= (1 + t / 2) * exp(-t);"),
    "sech": ("1", "total /= cosh(t);"),
    "chi2": ("0", "total += x[j] + s > 0 ? (x[j] + s - t * t / (x[j] + s)) / 2 : 0.0;"),
    "differing": ("0", "total += t > 0 ? 1 : 0;"),
}
_POLYNOMIAL = """\
static double polynomial(double t, double low, double high, const double *c, int count)
{
    double u = (2 * t - (low + high)) / (high - low), total = 0;
    while (count-- > 0)
        total = total * u + c[count];
    return total;
}
"""
_NORMAL_QUANTILE = """\
static double normal_quantile(double t)
{{
    double q = t - 0.5, tail = q < 0 ? t : 1 - t, size;
    if (fabs(q) <= {central!r})
        return q * polynomial(q * q, {a[0]!r}, {a[1]!r}, central, {count});
    size = polynomial(sqrt(-log(tail)), {b[0]!r}, {b[1]!r}, tails, {count});
    return q < 0 ? -size : size;
}}
"""
_BODIES = {
    told.Select: """\
static void take(const double *x, int m, const int *columns, double *y)
{
    int j;
    for (j = 0; j < m; j++)
        y[j] = x[columns[j]];
}
""",
    told.Scale: """\
static void scale(const double *x, int n, const double *centre, const double *factor, double *y)
{
    int j;
    for (j = 0; j < n; j++)
        y[j] = (x[j] - centre[j]) * factor[j];
}
""",
    told.Linear: """\
static void linear(const double *x, int n, int m, const double *matrix, const double *offset,
                   double *y)
{
    int i, j;
    for (j = 0; j < m; j++)
        y[j] = 0;
    for (i = 0; i < n; i++)
        for (j = 0; j < m; j++)
            y[j] += x[i] * matrix[(size_t)i * m + j];
    for (j = 0; j < m; j++)
        y[j] += offset[j];
}
""",
    told.Round: """\
static void to_float32(const double *x, int n, double *y)
{
    int j;
    for (j = 0; j < n; j++)
        y[j] = (double)(float)x[j];
}
""",
    told.Clip: """\
static void clip(const double *x, int n, const double *low, const double *high, double *y)
{
    int j;
    for (j = 0; j < n; j++)
        y[j] = x[j] < low[j] ? low[j] : x[j] > high[j] ? high[j] : x[j];
}
""",
    told.Function: """\
static void each(const double *x, int n, double (*function)(double), double *y)
{
    int j;
    for (j = 0; j < n; j++)
        y[j] = function(x[j]);
}
""",
    told.Sign: """\
static void sign(const double *x, int n, const double *thresholds, double *y)
{
    int j;
    for (j = 0; j < n; j++)
        y[j] = x[j] >= thresholds[j] ? 1.0 : -1.0;
}
""",
    told.YeoJohnson: """\
static void yeo_johnson(const double *x, int n, const double *powers, double *y)
{
    int j;
    for (j = 0; j < n; j++) {
        double power = x[j] < 0 ? 2 - powers[j] : powers[j], size = log1p(fabs(x[j]));
        double found = power == 0 ? size : expm1(power * size) / power;
        y[j] = x[j] < 0 ? -found : found;
    }
}
""",
    told.Interpolate: """\
static void interpolate(const double *x, int n, int most, const int *sizes, const double *knots,
                        const double *left, const double *at, const double *right, double *y)
{
    int j;
    for (j = 0; j < n; j++) {
        size_t start = (size_t)j * most;
        const double *own = knots + start;
        int low = 0, high = sizes[j], k;
        while (low < high) {
            int middle = (low + high) / 2;
            if (own[middle] <= x[j])
                low = middle + 1;
            else
                high = middle;
        }
        k = low - 1;
        if (k < 0 || x[j] == own[k] || k == sizes[j] - 1) {
            y[j] = at[start + (k < 0 ? 0 : k)];
        } else {
            double share = (x[j] - own[k]) / (own[k + 1] - own[k]);
            y[j] = right[start + k] + share * (left[start + k + 1] - right[start + k]);
        }
    }
}
""",
    told.Unit: """\
static void unit(const double *x, int n, double *y)
{
    double length = 0;
    int j;
    for (j = 0; j < n; j++)
        length += x[j] * x[j];
    length = length > 0 ? sqrt(length) : 1;
    for (j = 0; j < n; j++)
        y[j] = x[j] / length;
}
""",
    told.ArcCosine: """\
static void arc_cosine(const double *x, int n, int m, const double *rows, int order, double *y)
{
    const double pi = 3.141592653589793;
    int i, j;
    for (i = 0; i < m; i++) {
        const double *row = rows + (size_t)i * n;
        double dot = 0, own = 0, other = 0, product, c, theta, s, value;
        for (j = 0; j < n; j++) {
            dot += x[j] * row[j];
            own += x[j] * x[j];
            other += row[j] * row[j];
        }
        product = sqrt(own) * sqrt(other);
        if (!(product > 0)) {
            y[i] = 0;
            continue;
        }
        c = dot / product;
        c = c < -1 ? -1 : c > 1 ? 1 : c;
        theta = acos(c);
        s = sqrt(1 - c * c);
        value = order == 0 ? pi - theta
              : order == 1 ? product * (s + (pi - theta) * c)
              : product * product * (3 * s * c + (pi - theta) * (1 + 2 * c * c));
        y[i] = value / pi;
    }
}
""",
    told.Bins: """\
static void bins(const double *x, int n, int grids, int m, const double *offsets,
                 const double *inverses, const uint64_t *multipliers, uint64_t base,
                 const uint64_t *keys, const int64_t *starts, const double *weights, double *y)
{
    int g, j;
    for (j = 0; j < m; j++)
        y[j] = 0;
    for (g = 0; g < grids; g++) {
        int64_t low = starts[g], high = starts[g + 1], end = high;
        uint64_t key = 0;
        int near = 1;
        for (j = 0; j < n; j++) {
            size_t place = (size_t)g * n + j;
            double cell = floor((x[j] - offsets[place]) * inverses[place]);
            if (!(fabs(cell) < 2251799813685248.0)) {
                near = 0;
                break;
            }
            key += (base + (uint64_t)(int64_t)cell) * multipliers[j];
        }
        while (low < high) {
            int64_t middle = low + (high - low) / 2;
            if (keys[middle] < key)
                low = middle + 1;
            else
                high = middle;
        }
        if (near && low < end && keys[low] == key)
            for (j = 0; j < m; j++)
                y[j] += weights[(size_t)low * m + j];
    }
}
""",
    told.Product: """\
static void multiply(const double *x, int n, double *y)
{
    int j;
    for (j = 0; j < n; j++)
        y[j] *= x[j];
}
""",
    told.ComplexProduct: """\
static void multiply_complex(const double *x, int n, double *y)
{
    int j, m = n / 2;
    for (j = 0; j < m; j++) {
        double re = y[j] * x[j] - y[m + j] * x[m + j];
        y[m + j] = y[j] * x[m + j] + y[m + j] * x[j];
        y[j] = re;
    }
}
""",
    told.Softmax: """\
static void softmax(const double *x, int n, double *y)
{
    double most = x[0], total = 0;
    int j;
    for (j = 1; j < n; j++)
        most = x[j] > most ? x[j] : most;
    for (j = 0; j < n; j++)
        total += y[j] = exp(x[j] - most);
    for (j = 0; j < n; j++)
        y[j] /= total;
}
""",
    told.Shares: """\
static void shares_of(const double *x, int n, double *y)
{
    double total = 0;
    int j;
    for (j = 0; j < n; j++)
        total += x[j];
    for (j = 0; j < n; j++)
        y[j] = total > 0 ? x[j] / total : 1.0 / n;
}
""",
}
_COMPARE = """\
static void compare_{how}(const double *x, int n, int m, const double *rows, double *y)
{{
    int i, j;
    for (i = 0; i < m; i++) {{
        double total = {start};
        for (j = 0; j < n; j++) {{
            double s = rows[(size_t)i * n + j], t = fabs(x[j] - s);
            {then}
        }}
        y[i] = total;
    }}
}}
"""
_ONE_HOT = """\
static void one_hot(double code, int count, double *y)
{
    int j, place = code >= 0 && code < count ? (int)code : -1;
    for (j = 0; j < count; j++)
        y[j] = j == place ? 1.0 : 0.0;
}
"""
_LOOK_UP = """\
static void look_up(double code, int count, int width, const double *values, double *y)
{
    int place = code >= 0 && code < count ? (int)code : count;
    memcpy(y, values + (size_t)place * width, width * sizeof *y);
}
"""


def written(program: Program, prefix: str = "rfx") -> bytes:
    """The C text of a program; prefix: of the names of its functions and, in capitals, macros.

    Raises
    ------
    UsageError
        If the prefix can't begin a name in C.
    """
    if re.fullmatch("[A-Za-z][A-Za-z0-9_]*", prefix) is None:
        raise UsageError(f"--prefix is {prefix!r:.80}, which can't begin a name in C; use letters")
    return _Writer(program, prefix).text().encode()


class _Writer:
    """Collects the helpers and constant arrays needed by the functions of a program."""

    def __init__(self, program: Program, prefix: str) -> None:
        self.program, self.prefix = program, prefix
        self._helpers: dict[str, str] = {}
        self._arrays: list[str] = []

    def text(self) -> str:
        program = self.program
        parts = [self._encode(), self._predict()]
        if program.probabilities is not None:
            parts.append(self._probabilities(program.probabilities))
        if program.labels is not None:
            parts.append(self._labels(program.labels))
        if program.has_categories:
            parts.append(self._categories())
        return "\n".join([self._head(), *self._helpers.values(), *self._arrays, *parts, _FOOT])

    # ------------------------------------------------------------------ comments

    def _head(self) -> str:
        program = self.program
        facts = [f"{name.replace('_', ' ')}: {value}" for name, value in program.facts.items()]
        what = "the predicted targets" if program.labels is None else "decision values"
        if program.labels is not None:
            positive = "above 0 for the last label" if program.n_outputs == 1 else "one per label"
            what = f"{what} ({positive})"
        more = _CLASSES if program.labels is not None else ""
        more += _PROBABILITIES if program.probabilities is not None else ""
        more += _CATEGORIES if program.has_categories else ""
        names = {"p": self.prefix, "P": self.prefix.upper()}
        most = "; -1 if memory allocation fails" if program.most_probable else ""
        return _HEAD.format(
            **names,
            facts="\n".join(f" * {_comment(fact)}" for fact in ("rfx export", *facts)),
            outputs=what,
            more=more.format(**names, how=most),
            columns="\n".join(
                f" *     {place}: {_comment(_described(column, self.prefix))}"
                for place, column in enumerate(program.columns)
            ),
            n_columns=len(program.columns),
            n_outputs=program.n_outputs,
        )

    def _labels(self, labels: list[Any]) -> str:
        words = isinstance(labels[0], str)
        kind = "const char *const" if words else "const double"
        values = [_text(label) if words else repr(float(label)) for label in labels]
        p, P = self.prefix, self.prefix.upper()
        found = (
            f"#define {P}_LABELS {len(labels)}\n"
            # without a declaration C++ hides constants from other files
            f"extern {kind} {p}_labels[{P}_LABELS];\n"
            f"{kind} {p}_labels[{P}_LABELS] = {{{', '.join(values)}}};\n\n"
            f"int {p}_label(const double *out)\n{{\n"
        )
        ranked, count = ("shares", "LABELS") if self.program.most_probable else ("out", "OUTPUTS")
        if self.program.most_probable:
            found += f"    double shares[{P}_LABELS];\n    int j, best = 0;\n"
            found += f"    if ({p}_probabilities(out, shares) != 0)\n        return -1;\n"
        else:
            found += f"    int j, best = 0;\n    if ({P}_OUTPUTS == 1)\n"
            found += f"        return out[0] > 0 ? {P}_LABELS - 1 : 0;\n"
        return (
            f"{found}    for (j = 1; j < {P}_{count}; j++)\n"
            f"        if ({ranked}[j] > {ranked}[best])\n"
            "            best = j;\n"
            "    return best;\n}\n"
        )

    # ------------------------------------------------------------------ columns

    def _encode(self) -> str:
        """The function `encode`: from columns to numbers; returns 2 if one is not finite."""
        lines, at = [], 0
        for place, column in enumerate(self.program.columns):
            cell = f"x[{place}]"
            if column.fill is not None:
                cell = f"(isnan(x[{place}]) ? {float(column.fill)!r} : x[{place}])"
            if column.categories is None:
                lines.append(f"y[{at}] = {cell};")
            elif column.values is None:
                self._helpers["one_hot"] = _ONE_HOT
                lines.append(f"one_hot({cell}, {len(column.categories)}, y + {at});")
            else:
                self._helpers["look_up"] = _LOOK_UP
                name, count = self._array(column.values), len(column.categories)
                lines.append(f"look_up({cell}, {count}, {column.width}, {name}, y + {at});")
            at += column.width
        plain = all(c.categories is None and c.fill is None for c in self.program.columns)
        if plain:
            lines = [f"memcpy(y, x, {self.prefix.upper()}_COLUMNS * sizeof *y);"]
        body = "\n".join(f"    {line}" for line in lines)
        return (
            "static int encode(const double *x, double *y)\n{\n    int j;\n"
            f"{body}\n    for (j = 0; j < {at}; j++)\n        if (!isfinite(y[j]))\n"
            "            return 2;\n    return 0;\n}\n"
        )

    def _categories(self) -> str:
        found, cases = [], []
        for place, column in enumerate(self.program.columns):
            if column.categories is None:
                continue
            words = ",\n    ".join(_text(word) for word in column.categories)
            count = len(column.categories)
            found.append(
                f"static const char *const categories_{place}[{count}] = {{\n    {words}\n}};\n"
            )
            cases.append(
                f"    case {place}:\n        words = categories_{place};\n"
                f"        count = {count};\n        break;\n"
            )
        found.append(
            f"double {self.prefix}_category(int column, const char *text)\n{{\n"
            "    const char *const *words = NULL;\n    int j, count = 0;\n"
            "    if (text == NULL || *text == 0)\n        return NAN;\n"
            f"    switch (column) {{\n{''.join(cases)}    }}\n"
            "    for (j = 0; j < count; j++)\n        if (strcmp(words[j], text) == 0)\n"
            "            return j;\n    return -1;\n}\n"
        )
        return "\n".join(found)

    # ------------------------------------------------------------------ steps

    def _predict(self) -> str:
        """rfx_predict: maps the columns x to the encoded numbers and these to the result."""
        n = self.program.n_inputs
        lines = [
            "if (encode(x, v) != 0) {",
            "    free(v);",
            "    return 2;",
            "}",
        ]
        found = self._steps(self.program.steps, "v", n, n, lines)
        return _row_function(f"{self.prefix}_predict", "x", "out", lines, *found)

    def _probabilities(self, steps: told.Steps) -> str:
        lines: list[str] = []
        found = self._steps(steps, "out", self.program.n_outputs, 0, lines)
        return _row_function(f"{self.prefix}_probabilities", "out", "shares", lines, *found)

    def _steps(
        self, steps: told.Steps, x: str, n: int, size: int, lines: list[str]
    ) -> tuple[str, int, int]:
        """Append the calls for steps of the n numbers at x; returns (position of the result, its
        length, used scratch numbers).
        """
        for step in steps:
            y, m = f"v + {size}", step.width(n)
            size += m
            if isinstance(step, told.Product | told.ComplexProduct):
                multiply = "multiply" if isinstance(step, told.Product) else "multiply_complex"
                for number, part in enumerate(step.parts):
                    found, _, size = self._steps(part, x, n, size, lines)
                    if number == 0:
                        lines.append(f"memcpy({y}, {found}, {m} * sizeof *v);")
                        continue
                    self._need(type(step))
                    lines.append(f"{multiply}({found}, {m}, {y});")
            else:
                lines.append(self._call(step, x, n, m, y))
            x, n = y, m
        return x, n, size

    def _call(self, step: told.Step, x: str, n: int, m: int, y: str) -> str:
        """The call of a step's helper."""
        a = self._array
        arguments: dict[type, Callable[[Any], tuple[str, list[Any]]]] = {
            told.Select: lambda s: ("take", [m, a(s.columns)]),
            told.Scale: lambda s: ("scale", [n, a(s.centre), a(s.factor)]),
            told.Linear: lambda s: ("linear", [n, m, a(s.matrix), a(s.offset)]),
            told.Round: lambda s: ("to_float32", [n]),
            told.Clip: lambda s: ("clip", [n, a(s.low), a(s.high)]),
            told.Function: lambda s: ("each", [n, self._function(s.name)]),
            told.Sign: lambda s: ("sign", [n, a(s.thresholds)]),
            told.YeoJohnson: lambda s: ("yeo_johnson", [n, a(s.powers)]),
            told.Interpolate: lambda s: (
                "interpolate",
                [n, s.knots.shape[1], a(s.sizes), a(s.knots), a(s.left), a(s.at), a(s.right)],
            ),
            told.Unit: lambda s: ("unit", [n]),
            told.Compare: lambda s: (self._comparison(s.how), [n, m, a(s.rows)]),
            told.ArcCosine: lambda s: ("arc_cosine", [n, m, a(s.rows), s.order]),
            told.Bins: lambda s: (
                "bins",
                [n, len(s.offsets), m, a(s.offsets), a(s.inverses), a(s.multipliers)]
                + [f"{s.base}u", a(s.keys), a(s.starts, "int64_t"), a(s.weights)],
            ),
            told.Softmax: lambda s: ("softmax", [n]),
            told.Shares: lambda s: ("shares_of", [n]),
        }
        self._need(type(step))
        function, more = arguments[type(step)](step)
        return f"{function}({', '.join(map(str, [x, *more, y]))});"

    def _need(self, kind: type) -> None:
        if kind in _BODIES:
            self._helpers[kind.__name__] = _BODIES[kind]

    def _comparison(self, how: str) -> str:
        start, then = _COMPARISONS[how]
        self._helpers[how] = _COMPARE.format(how=how, start=start, then=then)
        return f"compare_{how}"

    def _function(self, name: str) -> str:
        if name == "normal_quantile":
            a, b = polynomials()["central"], polynomials()["tail"]
            self._helpers["polynomial"] = _POLYNOMIAL
            self._helpers[name] = (
                _constants("double", "central", a[2])
                + _constants("double", "tails", b[2])
                + "\n"
                + _NORMAL_QUANTILE.format(central=CENTRAL, a=_ends(a), b=_ends(b), count=len(a[2]))
            )
            return name
        if name not in _OF_C:
            body = _FUNCTIONS[name]
            self._helpers[name] = f"static double {name}(double t)\n{{\n    {body}\n}}\n"
        return name

    def _array(self, values: np.ndarray, kind: str | None = None) -> str:
        """The name of an array of constants."""
        name = f"a{len(self._arrays)}"
        kinds = {"f": "double", "u": "uint64_t", "i": "int"}
        self._arrays.append(_constants(kind or kinds[values.dtype.kind], name, values))
        return name


def _row_function(
    name: str, given: str, result: str, lines: list[str], place: str, n: int, size: int
) -> str:
    """A function of a row, with these lines and `size` scratch numbers; the result is the n numbers
    at `place`.
    """
    body = "".join(f"    {line}\n" for line in lines)
    return (
        f"int {name}(const double *{given}, double *{result})\n{{\n"
        f"    double *v = (double *)malloc({max(size, 1)} * sizeof *v);\n"
        "    if (v == NULL)\n        return 1;\n"
        f"{body}    memcpy({result}, {place}, {n} * sizeof *{result});\n"
        "    free(v);\n    return 0;\n}\n"
    )


def _ends(polynomial: tuple[float, float, np.ndarray]) -> tuple[float, float]:
    return float(polynomial[0]), float(polynomial[1])


def _constants(kind: str, name: str, values: np.ndarray) -> str:
    """The definition of an array; an empty one has an unused zero."""
    flat = np.ravel(values)
    texts = [repr(number) for number in flat.tolist()] or ["0"]
    if kind == "uint64_t":
        texts = [f"{text}u" for text in texts]
    lines = [", ".join(texts[at : at + _LINE]) for at in range(0, len(texts), _LINE)]
    body = ",\n    ".join(lines)
    return f"static const {kind} {name}[{len(texts)}] = {{\n    {body}\n}};\n"


def _described(column: Column, prefix: str) -> str:
    """A line about a column."""
    name = json.dumps(column.name)
    if column.categories is None:
        missing = "" if column.fill is None else f"; {column.fill!r} if missing"
        return f"{name}, a number{missing}"
    missing = "" if column.fill is None else f"; {int(column.fill)} if missing"
    return f"{name}, the number of a category ({prefix}_category){missing}"


def _comment(text: str) -> str:
    """Text that stays within a comment and a line."""
    plain = text.replace("*/", "* /").replace("/*", "/ *").replace("??/", "?? /")
    return " ".join(plain.split()).rstrip("\\")


def _text(word: str) -> str:
    """A C string: non-ASCII characters, and those that end a string or begin a trigraph, in
    octal.
    """
    plain = (
        chr(b) if 32 <= b < 127 and chr(b) not in '"\\?' else f"\\{b:03o}" for b in word.encode()
    )
    return f'"{"".join(plain)}"'
