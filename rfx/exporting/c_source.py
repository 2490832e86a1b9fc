"""A program as one C99 file that needs only the standard library."""

import json
from functools import partial

import numpy as np

from rfx import lazy
from rfx import steps as told
from rfx.exporting.program import CENTRAL, Column, Program, polynomials
from rfx.kernels.distances import SCALES

# Numbers of an array per line.
_LINE = 6

_TEMPLATE = """\
/*
{%- for fact in facts %}
 * {{ fact | comment }}
{%- endfor %}
 *
 * int {{ p }}_predict(const double *x, double *out)
 *     x: {{ P }}_COLUMNS numbers, the columns below; NAN for a missing one.
 *     out: {{ P }}_OUTPUTS numbers, {{ outputs }}.
 *     Returns 0, 1 if memory allocation fails, or 2 if a number is infinite, or missing
 *     without a replacement.
{%- if labels %}
 *
 * int {{ p }}_label(const double *out)
 *     The index of the predicted label in {{ p }}_labels, from the output of {{ p }}_predict
 {{- "; -1 if memory allocation fails" if program.most_probable }}.
{%- endif %}
{%- if probabilities %}
 *
 * int {{ p }}_probabilities(const double *out, double *shares)
 *     shares: {{ P }}_LABELS probabilities, in the order of {{ p }}_labels, from the output of
 *     {{ p }}_predict. Returns 0, or 1 if memory allocation fails.
{%- endif %}
{%- if program.has_categories %}
 *
 * double {{ p }}_category(int column, const char *text)
 *     The code of a category in x; -1 for a category absent in training, NAN for empty text
 *     (missing).
{%- endif %}
 *
 * Columns of x, from 0:
{%- for column in program.columns %}
 *     {{ loop.index0 }}: {{ (column | described) | comment }}
{%- endfor %}
 */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#if defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__
#error "missing and infinite inputs get lost: compile without -ffast-math and -ffinite-math-only"
#endif
#ifdef __cplusplus
extern "C" {
#endif

#define {{ P }}_COLUMNS {{ program.columns | length }}
#define {{ P }}_OUTPUTS {{ program.n_outputs }}

{{ helpers }}
static int encode(const double *x, double *y)
{
    int j;
{%- for line in encoding %}
    {{ line }}
{%- endfor %}
    for (j = 0; j < {{ program.n_inputs }}; j++)
        if (!isfinite(y[j]))
            return 2;
    return 0;
}
{% for name, given, result, lines, place, n, size in functions %}
int {{ p }}_{{ name }}(const double *{{ given }}, double *{{ result }})
{
    double *v = (double *)malloc({{ [size, 1] | max }} * sizeof *v);
    if (v == NULL)
        return 1;
{%- for line in lines %}
    {{ line }}
{%- endfor %}
    memcpy({{ result }}, {{ place }}, {{ n }} * sizeof *{{ result }});
    free(v);
    return 0;
}
{% endfor %}
{%- if labels %}
{%- set kind = "const char *const" if program.labels[0] is string else "const double" %}
#define {{ P }}_LABELS {{ labels | length }}
/* without a declaration C++ hides constants from other files */
extern {{ kind }} {{ p }}_labels[{{ P }}_LABELS];
{{ kind }} {{ p }}_labels[{{ P }}_LABELS] = { {{- labels | join(", ") -}} };

int {{ p }}_label(const double *out)
{
    int j, best = 0;
{%- if program.most_probable %}
    double shares[{{ P }}_LABELS];
    if ({{ p }}_probabilities(out, shares) != 0)
        return -1;
    for (j = 1; j < {{ P }}_LABELS; j++)
        if (shares[j] > shares[best])
            best = j;
{%- else %}
    if ({{ P }}_OUTPUTS == 1)
        return out[0] > 0 ? {{ P }}_LABELS - 1 : 0;
    for (j = 1; j < {{ P }}_OUTPUTS; j++)
        if (out[j] > out[best])
            best = j;
{%- endif %}
    return best;
}
{% endif %}
{%- if program.has_categories %}
{%- for place, words in categories %}
static const char *const categories_{{ place }}[{{ words | length }}] = {
    {{ words | map("text") | join(",\n    ") }}
};
{% endfor %}
double {{ p }}_category(int column, const char *text)
{
    const char *const *words = NULL;
    int j, spellings = 1, count = 0;
    if (text == NULL || *text == 0)
        return NAN;
    switch (column) {
{%- for place, words in categories %}
    case {{ place }}:
        words = categories_{{ place }};
        count = {{ program.columns[place].categories | length }};
        spellings = {{ (words | length) // (program.columns[place].categories | length) }};
        break;
{%- endfor %}
    }
    for (j = 0; j < spellings * count; j++)
        if (strcmp(words[j], text) == 0)
            return j % count;
    return -1;
}
{% endif %}
#ifdef __cplusplus
}
#endif
"""

_SUM_OF_SCALES = " + ".join(f"exp({-scale!r} * t)" for scale in SCALES)
# The one-argument functions available in C, and the bodies of the others.
_OF_C = ("exp", "sqrt")
_FUNCTIONS = {
    "cos_turns": "return cos(6.283185307179586 * (t - rint(t)));",
    "cube": "return t * t * t;",
    "exp_minus": "return exp(-t);",
    "log_positive": "return t > 0 ? log(t) : 0.0;",
    "matern3": "return (1 + t) * exp(-t);",
    "matern5": "return (1 + t + t * t / 3) * exp(-t);",
    "multiscale": f"return ({_SUM_OF_SCALES}) / {len(SCALES)};",
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
        return q * polynomial(q * q, {a.low!r}, {a.high!r}, central, {count});
    size = polynomial(sqrt(-log(tail)), {b.low!r}, {b.high!r}, tails, {count});
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
    told.Sum: """\
static void add(const double *x, int n, double *y)
{
    int j;
    for (j = 0; j < n; j++)
        y[j] += x[j];
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
    told.Branch: """\
static int leaf(const double *x, int n, int cuts, const double *directions,
                const double *thresholds, const int *children)
{
    int j, place = cuts > 0 ? 0 : -1;
    while (place >= 0) {
        const double *direction = directions + (size_t)place * n;
        double total = 0;
        for (j = 0; j < n; j++)
            total += x[j] * direction[j];
        place = children[2 * place + (total > thresholds[place])];
    }
    return -1 - place;
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
    """The C text of a program; prefix: of the names of its functions and, in capitals, macros."""
    return _Writer(program, prefix).text().encode()


# The helpers of steps with their arguments between x and y: the numbers n of x and m of y, and
# attributes of the step. `_Writer._helper_call` has the others.
_CALLS: dict[type, tuple[str, ...]] = {
    told.Select: ("take", "m", "columns"),
    told.Scale: ("scale", "n", "centre", "factor"),
    told.Linear: ("linear", "n", "m", "matrix", "offset"),
    told.Round: ("to_float32", "n"),
    told.Clip: ("clip", "n", "low", "high"),
    told.Sign: ("sign", "n", "thresholds"),
    told.YeoJohnson: ("yeo_johnson", "n", "powers"),
    told.Unit: ("unit", "n"),
    told.ArcCosine: ("arc_cosine", "n", "m", "rows", "order"),
    told.Softmax: ("softmax", "n"),
    told.Shares: ("shares_of", "n"),
}
# The helpers that combine the results of several lists of steps.
_COMBINE = {told.Product: "multiply", told.Sum: "add", told.ComplexProduct: "multiply_complex"}


class _Writer:
    """Collects the helpers and constant arrays needed by the functions of a program."""

    def __init__(self, program: Program, prefix: str) -> None:
        self.program = program
        self.prefix = prefix
        self._helpers: dict[str, str] = {}
        self._arrays: list[str] = []

    def text(self) -> str:
        program = self.program
        labels = self.program.labels
        columns = self.program.columns
        facts = ["rfx export"]
        for name, value in program.facts.items():
            words = name.replace("_", " ")
            facts.append(f"{words}: {value}")
        outputs = "the predicted targets"
        if labels is not None:
            positive = "above 0 for the last label" if program.n_outputs == 1 else "one per label"
            outputs = f"decision values ({positive})"
        # arrays and helpers are numbered as they are needed: encoding, prediction, probabilities
        encoding = self._encoding()
        functions = [self._predict()]
        if program.probabilities is not None:
            functions.append(self._probabilities(program.probabilities))
        helpers = [*self._helpers.values(), *self._arrays]
        constants = [_text(one) if isinstance(one, str) else float(one) for one in labels or ()]
        categories = [(n, own.spellings()) for n, own in enumerate(columns) if own.categories]
        environment = lazy.jinja2.Environment(keep_trailing_newline=True)
        described = partial(_described, prefix=self.prefix)
        environment.filters |= {"comment": _comment, "described": described, "text": _text}
        template = environment.from_string(_TEMPLATE)
        return template.render(
            p=self.prefix,
            P=self.prefix.upper(),
            program=program,
            facts=facts,
            outputs=outputs,
            labels=constants,
            probabilities=program.probabilities is not None,
            categories=categories,
            encoding=encoding,
            functions=functions,
            helpers="\n".join(helpers),
        )

    def _predict(self) -> tuple[str | list[str] | int, ...]:
        """The name, parameters, lines, result and scratch numbers of the prediction."""
        n = self.program.n_inputs
        lines = ["if (encode(x, v) != 0) {", "    free(v);", "    return 2;", "}"]
        result = self._steps(self.program.steps, "v", n, n, lines)
        return "predict", "x", "out", lines, *result

    def _probabilities(self, steps: told.Steps) -> tuple[str | list[str] | int, ...]:
        """The same of the probabilities."""
        lines: list[str] = []
        result = self._steps(steps, "out", self.program.n_outputs, 0, lines)
        return "probabilities", "out", "shares", lines, *result

    def _encoding(self) -> list[str]:
        """The lines that turn the columns x into the encoded numbers y."""
        lines, at = [], 0
        for place, column in enumerate(self.program.columns):
            cell = f"x[{place}]"
            if column.fill is not None:
                fill = float(column.fill)
                cell = f"(isnan({cell}) ? {fill!r} : {cell})"
            count = len(column.categories or ())
            if column.categories is None:
                lines.append(f"y[{at}] = {cell};")
            elif column.values is None:
                self._helpers["one_hot"] = _ONE_HOT
                lines.append(f"one_hot({cell}, {count}, y + {at});")
            else:
                self._helpers["look_up"] = _LOOK_UP
                name = self._array(column.values)
                sizes = f"{count}, {column.width}"
                lines.append(f"look_up({cell}, {sizes}, {name}, y + {at});")
            at += column.width
        if all(c.categories is None and c.fill is None for c in self.program.columns):
            return [f"memcpy(y, x, {self.prefix.upper()}_COLUMNS * sizeof *y);"]
        return lines

    # ------------------------------------------------------------------ steps

    def _steps(
        self, steps: told.Steps, x: str, n: int, size: int, lines: list[str]
    ) -> tuple[str, int, int]:
        """Append the calls for steps of the n numbers at x; returns (position of the result, its
        length, used scratch numbers).
        """
        for step in steps:
            y = f"v + {size}"
            m = step.width(n)
            size += m
            copy = f"memcpy({y}, %s, {m} * sizeof *v);"
            if isinstance(step, told.Branch):
                size = self._branch(step, x, n, size, lines, copy)
            elif isinstance(step, told.Combined):
                combine = _COMBINE[type(step)]
                for number, part in enumerate(step.parts):
                    found, _, size = self._steps(part, x, n, size, lines)
                    if number == 0:
                        lines.append(copy % found)
                        continue
                    self._need(type(step))
                    lines.append(f"{combine}({found}, {m}, {y});")
            else:
                lines.append(self._call(step, x, n, m, y))
            x, n = y, m
        return x, n, size

    def _branch(
        self, step: told.Branch, x: str, n: int, size: int, lines: list[str], copy: str
    ) -> int:
        """Append the calls for the leaf of x; all leaves use the same scratch numbers."""
        self._need(told.Branch)
        tree = ", ".join(map(self._array, (step.directions, step.thresholds, step.children)))
        cuts = len(step.thresholds)
        lines.append(f"switch (leaf({x}, {n}, {cuts}, {tree})) {{")
        most = size
        for number, part in enumerate(step.parts):
            lines.append(f"case {number}:")
            found, _, end = self._steps(part, x, n, size, lines)
            lines += [copy % found, "break;"]
            most = max(most, end)
        lines.append("}")
        return most

    def _call(self, step: told.Step, x: str, n: int, m: int, y: str) -> str:
        """The call of a step's helper."""
        self._need(type(step))
        function, arguments = self._helper_call(step, n, m)
        words = ", ".join(map(str, [x, *arguments, y]))
        return f"{function}({words});"

    def _helper_call(self, step: told.Step, n: int, m: int) -> tuple[str, list[object]]:
        """(the name of a step's helper, its arguments between x and y)."""
        if isinstance(step, told.Function):
            return "each", [n, self._function(step.name)]
        if isinstance(step, told.Compare):
            return self._comparison(step.how), [n, m, self._array(step.rows)]
        if isinstance(step, told.Interpolate):
            curves = step.sizes, step.knots, step.left, step.at, step.right
            tables = map(self._array, curves)
            return "interpolate", [n, step.knots.shape[1], *tables]
        if isinstance(step, told.Bins):
            sizes = [n, len(step.offsets), m]
            keys = self._array(step.keys)
            starts = self._array(step.starts, "int64_t")
            grids = map(self._array, (step.offsets, step.inverses, step.multipliers))
            base = f"{step.base}u"
            return "bins", [*sizes, *grids, base, keys, starts, self._array(step.weights)]
        function, *names = _CALLS[type(step)]
        known = {"n": n, "m": m}
        arguments: list[object] = []
        for name in names:
            value = known[name] if name in known else getattr(step, name)
            arguments.append(self._array(value) if isinstance(value, np.ndarray) else value)
        return function, arguments

    def _need(self, kind: type) -> None:
        if kind in _BODIES:
            self._helpers[kind.__name__] = _BODIES[kind]

    def _comparison(self, how: str) -> str:
        start, then = _COMPARISONS[how]
        self._helpers[how] = _COMPARE.format(how=how, start=start, then=then)
        return f"compare_{how}"

    def _function(self, name: str) -> str:
        if name == "normal_quantile":
            a = polynomials().central
            b = polynomials().tail
            count = len(a.coefficients)
            self._helpers["polynomial"] = _POLYNOMIAL
            tables = _constants("double", "central", a.coefficients)
            tables += _constants("double", "tails", b.coefficients)
            body = _NORMAL_QUANTILE.format(central=CENTRAL, a=a, b=b, count=count)
            self._helpers[name] = f"{tables}\n{body}"
            return name
        if name not in _OF_C:
            body = _FUNCTIONS[name]
            self._helpers[name] = f"static double {name}(double t)\n{{\n    {body}\n}}\n"
        return name

    def _array(self, values: np.ndarray, kind: str | None = None) -> str:
        """The name of an array of constants."""
        name = f"a{len(self._arrays)}"
        kinds = {"f": "double", "u": "uint64_t", "i": "int"}
        kind = kind or kinds[values.dtype.kind]
        self._arrays.append(_constants(kind, name, values))
        return name


def _constants(kind: str, name: str, values: np.ndarray) -> str:
    """The definition of an array; an empty one has an unused zero."""
    flat = np.ravel(values)
    texts = [repr(number) for number in flat.tolist()] or ["0"]
    if kind == "uint64_t":
        texts = [f"{text}u" for text in texts]
    starts = range(0, len(texts), _LINE)
    lines = [", ".join(texts[start : start + _LINE]) for start in starts]
    body = ",\n    ".join(lines)
    left = f"static const {kind} {name}[{len(texts)}]"
    return f"{left} = {{\n    {body}\n}};\n"


def _described(column: Column, prefix: str) -> str:
    """A line about a column."""
    name = json.dumps(column.name)
    if column.categories is None:
        number = f"{name}, a number"
        if column.fill is None:
            return number
        return f"{number}; {column.fill!r} if missing"
    number = f"{name}, the number of a category ({prefix}_category)"
    if column.fill is None:
        return number
    return f"{number}; {int(column.fill)} if missing"


def _comment(text: str) -> str:
    """Text that stays within a comment and a line."""
    plain = text.replace("*/", "* /").replace("/*", "/ *").replace("??/", "?? /")
    return " ".join(plain.split()).rstrip("\\")


def _text(word: str) -> str:
    """A C string: non-ASCII characters, and those that end a string or begin a trigraph, in
    octal.
    """
    plain = ""
    for byte in word.encode():
        character = chr(byte)
        is_plain = 32 <= byte < 127 and character not in '"\\?'
        plain += character if is_plain else f"\\{byte:03o}"
    return f'"{plain}"'
