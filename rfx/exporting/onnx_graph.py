"""A program as an ONNX graph of float64 numbers, with operators that onnxruntime supports on
CPUs.
"""

from __future__ import annotations

import itertools
import json
import operator
from collections.abc import Callable
from functools import partial, reduce
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from rfx import lazy
from rfx import steps as told
from rfx.exporting.program import CENTRAL, Column, Polynomial, Program, polynomials
from rfx.features.partition import Partition
from rfx.kernels.distances import SCALES

if TYPE_CHECKING:
    from onnx import NodeProto, TensorProto, ValueInfoProto

# Supported by onnxruntime 1.15 and later; from 19 on texts can be compared.
OPSET, IR_VERSION = 19, 9
# Maximum inputs for squared distances as sums; above, they are computed from inner products, as in
# rfx.kernels.blocks.
_MOST_SUMMED = 64
# Cells beyond are in no bin.
_FARTHEST = float(2**51)
# Yeo-Johnson powers treated as 0.
_NO_POWER = 1e-8
# The names of the outputs, which no input may have.
LABEL = "label"
PROBABILITIES = "probabilities"
DECISION = "decision"
VARIABLE = "variable"
_INPUT = "X"


def written(program: Program) -> bytes:
    """The ONNX file of a program; needs the package onnx."""
    helper = lazy.onnx.helper
    graph = _Graph()
    inputs, X = _encoded(graph, program)
    # nan if an input is missing or infinite: the sum of x - x
    values = _carried_out(program.steps, X, program.n_inputs) + (X - X).sum()
    outputs = _outputs(graph, program, values)
    made = helper.make_graph(graph.nodes, "rfx", inputs, outputs, graph.constants)
    operators = [helper.make_opsetid("", OPSET)]
    model = helper.make_model(
        made, producer_name="rfx", opset_imports=operators, ir_version=IR_VERSION
    )
    facts = program.facts | {"precision": "float64", "inputs": _told(program)}
    facts["columns"] = json.dumps([column.name for column in program.columns])
    helper.set_model_props(model, facts)
    lazy.onnx.checker.check_model(model)
    text: bytes = model.SerializeToString()
    return text


def _told(program: Program) -> str:
    """The format of the input rows."""
    if program.has_categories:
        return (
            "one (rows, 1) array per column: text for categories, empty if missing, float64 for"
            " numbers, nan if missing"
        )
    return "X: float64 (rows, columns), nan if missing"


_METHODS = (
    "cos",
    "equal",
    "exp",
    "floor",
    "gather",
    "log",
    "max",
    "min",
    "round",
    "sqrt",
    "where",
)


_OPERATORS = {
    np.add: "Add",
    np.subtract: "Sub",
    np.multiply: "Mul",
    np.true_divide: "Div",
    np.matmul: "MatMul",
    np.negative: "Neg",
    np.absolute: "Abs",
    np.less: "Less",
    np.greater: "Greater",
    np.less_equal: "LessOrEqual",
    np.greater_equal: "GreaterOrEqual",
    np.bitwise_and: "And",
    np.bitwise_or: "Or",
}


# Inputs of a node: results of others, and constants.
Operand: TypeAlias = "Value | ArrayLike"


class Value(np.lib.mixins.NDArrayOperatorsMixin):
    """The result of a node of a graph.

    Arithmetic and comparisons add nodes, and so do the methods of `_METHODS`. Numbers and arrays
    become constants, whole ones of 64 bits and others float64.
    """

    def __init__(self, graph: _Graph, name: str) -> None:
        self.graph = graph
        self.name = name

    def __getattr__(self, name: str) -> Callable[..., Value]:
        if name not in _METHODS:
            raise AttributeError(name)
        return partial(self.graph.node, name.capitalize(), self)

    def __array_ufunc__(self, function: np.ufunc, method: str, *inputs: Operand) -> Value:
        return self.graph.node(_OPERATORS[function], *inputs)

    def sum(self) -> Value:
        """(rows, 1) the sum of each row."""
        return self.graph.node("ReduceSum", self, np.array([1]), keepdims=1)

    def cast(self, kind: str) -> Value:
        """As FLOAT, DOUBLE or INT64."""
        return self.graph.node("Cast", self, to=getattr(lazy.onnx.TensorProto, kind))


class _Graph:
    """The nodes and constants collected so far."""

    def __init__(self, prefix: str = "rfx") -> None:
        self.nodes: list[NodeProto] = []
        self.constants: list[TensorProto] = []
        self._prefix = prefix
        self._count = 0

    def name(self) -> str:
        """An unused name."""
        self._count += 1
        return f"{self._prefix}/{self._count}"

    def constant(self, values: ArrayLike) -> Value:
        """An array: text, or numbers of 64 bits."""
        made = np.asarray(values)
        if made.dtype.kind in "SUO":
            made = made.astype(object)
        elif made.dtype == np.uint64:
            made = made.view(np.int64)
        elif made.dtype.kind in "iu":
            made = made.astype(np.int64)
        else:
            made = made.astype(np.float64)
        name = self.name()
        self.constants.append(lazy.onnx.numpy_helper.from_array(made, name))
        return Value(self, name)

    def node(
        self, operator: str, *inputs: Operand, output: str | None = None, **attributes: object
    ) -> Value:
        """An operator's output; inputs that are not values become constants."""
        name = self.name() if output is None else output
        values = [x if isinstance(x, Value) else self.constant(x) for x in inputs]
        names = [value.name for value in values]
        made = lazy.onnx.helper.make_node(operator, names, [name], **attributes)
        self.nodes.append(made)
        return Value(self, name)

    def rows(self, x: Value, width: int, value: float | np.int64) -> Value:
        """An array of one value with the rows of x."""
        count = self.node("Shape", x, start=0, end=1)
        shape = self.node("Concat", count, np.array([width]), axis=0)
        return self.node("Expand", np.full((1, 1), value), shape)

    def scan(
        self,
        body: Callable[[Value, list[Value]], Value],
        state: Value,
        scanned: list[Value],
        integers: tuple[bool, list[bool]] = (False, []),
    ) -> Value:
        """The final state of a loop: body(state, slices) returns the next state.

        scanned: arrays whose first axis is iterated over. integers: whether the state, and each of
        these, is integer.
        """
        inner = _Graph(f"{self.name()}/")
        helper = lazy.onnx.helper
        kinds = [lazy.onnx.TensorProto.DOUBLE, lazy.onnx.TensorProto.INT64]
        whole, each = integers
        types = [whole, *(each or [False] * len(scanned))]
        before, *slices = (Value(inner, inner.name()) for _ in types)
        after = inner.node("Identity", body(before, slices))
        ins = []
        for value, own in zip([before, *slices], types):
            ins.append(helper.make_tensor_value_info(value.name, kinds[own], None))
        outs = [helper.make_tensor_value_info(after.name, kinds[whole], None)]
        made = helper.make_graph(inner.nodes, inner.name(), ins, outs, inner.constants)
        return self.node("Scan", state, *scanned, body=made, num_scan_inputs=len(scanned))


# ---------------------------------------------------------------------- inputs and outputs


def _encoded(graph: _Graph, program: Program) -> tuple[list[ValueInfoProto], Value]:
    """(the graph's inputs, the encoded columns of a row)."""
    helper = lazy.onnx.helper
    kinds = lazy.onnx.TensorProto
    if not program.has_categories:
        made = helper.make_tensor_value_info(_INPUT, kinds.DOUBLE, [None, len(program.columns)])
        X = Value(graph, _INPUT)
        given = [column.fill for column in program.columns]
        fills = np.array([np.nan if fill is None else float(fill) for fill in given])
        if np.isnan(fills).all():
            return [made], X
        return [made], graph.node("IsNaN", X).where(fills, X)
    inputs = []
    parts = []
    used = {LABEL, PROBABILITIES, DECISION, VARIABLE, ""}
    for column in program.columns:
        name = column.name
        while name in used:
            name += "_"
        used.add(name)
        kind = kinds.DOUBLE if column.categories is None else kinds.STRING
        inputs.append(helper.make_tensor_value_info(name, kind, [None, 1]))
        parts.append(_cell(column, Value(graph, name)))
    return inputs, graph.node("Concat", *parts, axis=1)


def _cell(column: Column, x: Value) -> Value:
    """The encoded cells of a column."""
    if column.categories is None:
        if column.fill is None:
            return x
        return x.graph.node("IsNaN", x).where(float(column.fill), x)
    words = _text_array(*column.categories)
    for number, spelling in enumerate(column.spellings()[words.size :]):
        written = x.equal(_text_array(spelling))
        category = column.categories[number % words.size]
        x = written.where(_text_array(category), x)
    if column.fill is not None:
        missing = x.equal(_text_array(""))
        x = missing.where(_text_array(column.categories[int(column.fill)]), x)
    codes = x.equal(words).cast("DOUBLE")
    if column.values is None:
        return codes
    *values, default = column.values
    return codes @ (np.array(values) - default) + default


def _text_array(*words: str) -> np.ndarray:
    """(1, len(words)) an array of text."""
    return np.array([words], dtype=object)


def _outputs(graph: _Graph, program: Program, values: Value) -> list[ValueInfoProto]:
    """The graph's outputs."""
    helper = lazy.onnx.helper
    kinds = lazy.onnx.TensorProto
    shape = [None, program.n_outputs]
    if program.labels is None:
        graph.node("Identity", values, output=VARIABLE)
        return [helper.make_tensor_value_info(VARIABLE, kinds.DOUBLE, shape)]
    labels = _label_array(program.labels)
    kind = {"O": kinds.STRING, "i": kinds.INT64, "f": kinds.DOUBLE}[labels.dtype.kind]
    found = [helper.make_tensor_value_info(LABEL, kind, [None])]
    ranked = values
    if program.probabilities is not None:
        shares = _carried_out(program.probabilities, values, program.n_outputs)
        graph.node("Identity", shares, output=PROBABILITIES)
        if program.most_probable:
            ranked = shares
        own = [None, len(labels)]
        found.append(helper.make_tensor_value_info(PROBABILITIES, kinds.DOUBLE, own))
    graph.node("Gather", labels, _place(program, ranked), output=LABEL)
    graph.node("Identity", values, output=DECISION)
    return [*found, helper.make_tensor_value_info(DECISION, kinds.DOUBLE, shape)]


def _label_array(labels: list[str] | list[float]) -> np.ndarray:
    """The labels as text, int64 or float64."""
    if isinstance(labels[0], str):
        return np.array(labels, dtype=object)
    numbers = np.array(labels)
    is_whole = np.all(numbers == np.rint(numbers)) and np.abs(numbers).max() < 2**53
    return numbers.astype(np.int64) if is_whole else numbers


def _place(program: Program, values: Value) -> Value:
    """(rows,) the indices of the labels of decision values, or of probabilities."""
    if program.n_outputs > 1 or program.most_probable:
        return values.graph.node("ArgMax", values, axis=1, keepdims=0)
    last_label = len(program.labels or ()) - 1
    last = (values > 0.0).cast("INT64") * last_label
    return values.graph.node("Squeeze", last, np.array([1]))


# ---------------------------------------------------------------------- steps


def _carried_out(steps: told.Steps, x: Value, n: int) -> Value:
    """Apply the steps to x (rows, n)."""
    for step in steps:
        x = _STEPS[type(step)](step, x, n)
        n = step.width(n)
    return x


def _or_one(x: Value) -> Value:
    """x where it is above 0, else 1."""
    return (x > 0.0).where(x, 1.0)


def _shares(step: told.Shares, x: Value, n: int) -> Value:
    total = x.sum()
    return (total > 0.0).where(x / _or_one(total), 1.0 / n)


def _yeo_johnson(step: told.YeoJohnson, x: Value, n: int) -> Value:
    size = (abs(x) + 1.0).log()

    def powered(powers: np.ndarray) -> Value:
        none = np.abs(powers) < _NO_POWER
        power = np.where(none, 1.0, powers)
        raised = ((size * power).exp() - 1.0) / power
        return (x.graph.constant(none) > 0.5).where(size, raised)

    return (x < 0.0).where(-powered(2.0 - step.powers), powered(step.powers))


def _interpolate(step: told.Interpolate, x: Value, n: int) -> Value:
    """One column at a time; each iteration appends one."""
    last = step.knots.shape[1] - 1
    columns = []
    for j in range(n):
        column = x.gather(np.array([j]), axis=1)
        constant = x.graph.constant
        knots = constant(step.knots[j])
        left = constant(step.left[j])
        at = constant(step.at[j])
        right = constant(step.right[j])
        count = (column >= knots).cast("INT64").sum()
        k = (count - 1).max(0)
        following = (k + 1).min(last)
        low = knots.gather(k)
        start = right.gather(k)
        share = (column - low) / _or_one(knots.gather(following) - low)
        between = start + share * (left.gather(following) - start)
        outside = (count < 1) | k.equal(int(step.sizes[j] - 1))
        is_at_knot = outside | column.equal(low)
        columns.append(is_at_knot.where(at.gather(k), between))
    return x.graph.node("Concat", *columns, axis=1)


def _compare(step: told.Compare, x: Value, n: int) -> Value:
    if step.how == "squared" and n > _MOST_SUMMED:
        return _squared_by_product(step.rows, x)
    joined, start, term = _COMPARISONS[step.how]

    def body(state: Value, slices: list[Value]) -> Value:
        of_rows, of_others = slices
        own = state.graph.node("Unsqueeze", of_rows, np.array([1]))
        other = state.graph.node("Unsqueeze", of_others, np.array([0]))
        added = _chi2(own, other) if step.how == "chi2" else term(abs(own - other))
        return state.graph.node(joined, state, added)

    columns = x.graph.node("Transpose", x, perm=[1, 0])
    first = x.graph.rows(x, len(step.rows), start)
    return x.graph.scan(body, first, [columns, x.graph.constant(step.rows.T)])


def _squared_by_product(rows: np.ndarray, x: Value) -> Value:
    """Squared distances about the rows' mean; rounding errors of equal rows become 0."""
    centre = np.zeros(rows.shape[1])
    if len(rows):
        centre = rows.mean(axis=0)
    rows = rows - centre
    x = x - centre
    total = (x * x).sum() + (rows**2).sum(axis=1)
    found = total - x @ (2 * rows.T)
    rounding = 8 * np.finfo(np.float64).eps
    return (found > total * rounding).where(found, 0.0)


def _arc_cosine(step: told.ArcCosine, x: Value, n: int) -> Value:
    lengths = np.linalg.norm(step.rows, axis=1)
    product = (x * x).sum().sqrt() * lengths
    quotient = (x @ step.rows.T) / _or_one(product)
    cosine = quotient.max(-1.0).min(1.0)
    rest = np.pi - _arccos(cosine)
    square = cosine * cosine
    sine = (1.0 - square).sqrt()
    inner = (
        rest,
        sine + rest * cosine,
        sine * cosine * 3.0 + rest * (square * 2.0 + 1.0),
    )[step.order]
    for _ in range(step.order):
        inner = inner * product
    return (product > 0.0).where(inner / np.pi, 0.0)


def _bins(step: told.Bins, x: Value, n: int) -> Value:
    graph = x.graph
    grids = len(step.offsets)
    count = len(step.keys)
    # signed numbers have another order, which is the search order
    keys = step.keys.view(np.int64)
    sizes = np.diff(step.starts)
    grid = np.repeat(np.arange(grids), sizes)
    order = np.lexsort((keys, grid))
    key = _keys(step, x)
    # after the last one, an entry that is never requested, with weights zero
    ordered = graph.constant(np.append(keys[order], np.int64(0)))
    shape = graph.node("Shape", key)
    low = graph.node("Expand", step.starts[None, :-1], shape)
    end = graph.node("Expand", step.starts[None, 1:], shape)
    high = end
    for _ in range(int(sizes.max(initial=0)).bit_length()):
        middle = (low + high) / 2
        less = (ordered.gather(middle) < key) & (low < high)
        low = less.where(middle + 1, low)
        high = less.where(high, middle)
    is_found = ordered.gather(low).equal(key) & (low < end)
    place = is_found.where(low, count)
    weights = np.asarray(step.weights)[order]
    weights = np.vstack([weights, np.zeros((1, weights.shape[1]))])
    sums = [graph.constant(own).gather(place).sum() for own in weights.T]
    return graph.node("Concat", *sums, axis=1)


def _keys(step: told.Bins, x: Value) -> Value:
    """(rows, grids) the keys of the rows' bins."""

    def body(state: Value, slices: list[Value]) -> Value:
        own, offsets, inverses, multiplier = slices
        own = state.graph.node("Unsqueeze", own, np.array([1]))
        cell = ((own - offsets) * inverses).floor()
        cell = cell.max(-_FARTHEST).min(_FARTHEST)
        return state + (cell.cast("INT64") + int(step.base)) * multiplier

    columns = x.graph.node("Transpose", x, perm=[1, 0])
    offsets = x.graph.constant(np.ascontiguousarray(step.offsets.T))
    inverses = x.graph.constant(np.ascontiguousarray(step.inverses.T))
    scanned = [columns, offsets, inverses, x.graph.constant(step.multipliers)]
    first = x.graph.rows(x, len(step.offsets), np.int64(0))
    return x.graph.scan(body, first, scanned, (True, [False, False, False, True]))


def _joined(
    join: Callable[[Value, Value], Value], step: told.Product | told.Sum, x: Value, n: int
) -> Value:
    """The results of several lists of steps, joined two by two."""
    return reduce(join, (_carried_out(part, x, n) for part in step.parts))


def _complex_product(step: told.ComplexProduct, x: Value, n: int) -> Value:
    m = step.width(n) // 2

    def parts(steps: told.Steps) -> list[Value]:
        both = _carried_out(steps, x, n)
        real = both.gather(np.arange(m), axis=1)
        imaginary = both.gather(np.arange(m, 2 * m), axis=1)
        return [real, imaginary]

    re, im = parts(step.parts[0])
    for steps in step.parts[1:]:
        a, b = parts(steps)
        re, im = re * a - im * b, re * b + im * a
    return x.graph.node("Concat", re, im, axis=1)


def _branch(step: told.Branch, x: Value, n: int) -> Value:
    tree = Partition(step.directions, step.thresholds, step.children)
    leaves = _carried_out(tree.steps(), x, n)

    def of_leaf(leaf: int, part: told.Steps) -> Value:
        return _carried_out(part, x, n) * leaves.gather(np.array([leaf]), axis=1)

    return reduce(operator.add, itertools.starmap(of_leaf, enumerate(step.parts)))


def _select(step: told.Select, x: Value, n: int) -> Value:
    return x.gather(step.columns, axis=1)


def _scale(step: told.Scale, x: Value, n: int) -> Value:
    return (x - step.centre if step.centre.any() else x) * step.factor


def _linear(step: told.Linear, x: Value, n: int) -> Value:
    return x @ step.matrix + step.offset


def _round(step: told.Round, x: Value, n: int) -> Value:
    return x.cast("FLOAT").cast("DOUBLE")


def _clip(step: told.Clip, x: Value, n: int) -> Value:
    return x.max(step.low).min(step.high)


def _function(step: told.Function, x: Value, n: int) -> Value:
    return _FUNCTIONS[step.name](x)


def _sign(step: told.Sign, x: Value, n: int) -> Value:
    return (x >= step.thresholds).where(1.0, -1.0)


def _unit(step: told.Unit, x: Value, n: int) -> Value:
    return x / _or_one((x * x).sum().sqrt())


def _softmax(step: told.Softmax, x: Value, n: int) -> Value:
    return x.graph.node("Softmax", x, axis=1)


_STEPS: dict[type, Callable[[Any, Value, int], Value]] = {
    told.Select: _select,
    told.Scale: _scale,
    told.Linear: _linear,
    told.Round: _round,
    told.Clip: _clip,
    told.Function: _function,
    told.Sign: _sign,
    told.YeoJohnson: _yeo_johnson,
    told.Interpolate: _interpolate,
    told.Unit: _unit,
    told.Compare: _compare,
    told.ArcCosine: _arc_cosine,
    told.Bins: _bins,
    told.Product: partial(_joined, operator.mul),
    told.Sum: partial(_joined, operator.add),
    told.ComplexProduct: _complex_product,
    told.Branch: _branch,
    told.Softmax: _softmax,
    told.Shares: _shares,
}


# ---------------------------------------------------------------------- functions of a number


def _soft_clip(x: Value) -> Value:
    # from 1e9 on the square root is |x| / 3 to rounding, and farther the square overflows
    x = x.min(1e9).max(-1e9)
    return x / (x * x / 9.0 + 1.0).sqrt()


def _polynomial(function: Polynomial, t: Value) -> Value:
    width = function.high - function.low
    u = t * (2 / width) - (function.low + function.high) / width
    *coefficients, last = function.coefficients
    total = u.graph.constant(last)
    for c in reversed(coefficients):
        total = total * u + c
    return total


def _normal_quantile(x: Value) -> Value:
    q = x - 0.5
    below = q < 0.0
    tail = below.where(x, 1.0 - x)
    size = _polynomial(polynomials().tail, (-tail.log()).sqrt())
    inner = q * _polynomial(polynomials().central, q * q)
    return (abs(q) <= CENTRAL).where(inner, below.where(-size, size))


def _arccos(c: Value) -> Value:
    size = abs(c)
    root = (1.0 - size).sqrt()
    found = root * _polynomial(polynomials().arccos, size)
    return (c < 0.0).where(np.pi - found, found)


def _cos_turns(x: Value) -> Value:
    return ((x - x.round()) * (2 * np.pi)).cos()


def _cube(x: Value) -> Value:
    return x * (x * x)


def _exp_minus(x: Value) -> Value:
    return (-x).exp()


def _log_positive(x: Value) -> Value:
    return _or_one(x).log()


def _matern3(x: Value) -> Value:
    return (x + 1.0) * (-x).exp()


def _matern5(x: Value) -> Value:
    rising = x + 1.0 + x * x * (1 / 3)
    return rising * (-x).exp()


def _multiscale(x: Value) -> Value:
    terms = [(-(x * scale)).exp() for scale in SCALES]
    return x.graph.node("Sum", *terms) / float(len(SCALES))


def _positive(x: Value) -> Value:
    return (x > 0.0).cast("DOUBLE")


def _ramp(x: Value) -> Value:
    return x.max(0.0)


def _sigmoid(x: Value) -> Value:
    return x.graph.node("Sigmoid", x)


def _square(x: Value) -> Value:
    return x * x


_FUNCTIONS: dict[str, Callable[[Value], Value]] = {
    "cos_turns": _cos_turns,
    "cube": _cube,
    "exp": operator.methodcaller("exp"),
    "exp_minus": _exp_minus,
    "log_positive": _log_positive,
    "matern3": _matern3,
    "matern5": _matern5,
    "multiscale": _multiscale,
    "normal_quantile": _normal_quantile,
    "positive": _positive,
    "ramp": _ramp,
    "sigmoid": _sigmoid,
    "soft_clip": _soft_clip,
    "sqrt": operator.methodcaller("sqrt"),
    "square": _square,
}


# ---------------------------------------------------------------------- comparisons of an input


def _chi2(x: Value, s: Value) -> Value:
    """2 x s / (x + s), 0 where the sum is 0."""
    total = x + s
    return (total > 0.0).where(x * s * 2.0 / _or_one(total), 0.0)


def _distance(t: Value) -> Value:
    return t


def _hat(t: Value) -> Value:
    return (1.0 - t).max(0.0)


def _rational(t: Value) -> Value:
    return 1.0 / (t + 1.0)


def _erlang(t: Value) -> Value:
    return (t * 0.5 + 1.0) * (-t).exp()


def _sech(t: Value) -> Value:
    return 2.0 / (t.exp() + (-t).exp())


# how -> (operator that joins the terms, initial value, the term of |x_j - s_j|)
_COMPARISONS: dict[str, tuple[str, float, Callable[[Value], Value]]] = {
    "squared": ("Add", 0.0, _square),
    "l1": ("Add", 0.0, _distance),
    "hat": ("Mul", 1.0, _hat),
    "rational": ("Mul", 1.0, _rational),
    "erlang": ("Mul", 1.0, _erlang),
    "sech": ("Mul", 1.0, _sech),
    "differing": ("Add", 0.0, _positive),
    # its term is of x_j and s_j: `_chi2`
    "chi2": ("Add", 0.0, _distance),
}
