"""A program as an ONNX graph of float64 numbers, with operators that onnxruntime supports on
CPUs.
"""

from __future__ import annotations

import json
import operator
from collections.abc import Callable
from functools import partial, reduce
from typing import Any

import numpy as np

from rfx import lazy
from rfx import steps as told
from rfx.exporting.program import CENTRAL, Column, Program, polynomials
from rfx.features.partition import Partition
from rfx.kernels.distances import SCALES

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
LABEL, PROBABILITIES, DECISION, VARIABLE = "label", "probabilities", "decision", "variable"
_INPUT = "X"


def written(program: Program) -> bytes:
    """The ONNX file of a program; needs the package onnx."""
    helper, graph = lazy.onnx.helper, _Graph()
    inputs, X = _encoded(graph, program)
    # nan if an input is missing or infinite: the sum of x - x
    values = _carried_out(program.steps, X, program.n_inputs) + (X - X).sum()
    outputs = _outputs(graph, program, values)
    made = helper.make_graph(graph.nodes, "rfx", inputs, outputs, graph.constants)
    model = helper.make_model(
        made,
        producer_name="rfx",
        opset_imports=[helper.make_opsetid("", OPSET)],
        ir_version=IR_VERSION,
    )
    columns = {"columns": json.dumps([column.name for column in program.columns])}
    facts = program.facts | {"precision": "float64", "inputs": _told(program)} | columns
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


class Value(np.lib.mixins.NDArrayOperatorsMixin):
    """The result of a node of a graph.

    Arithmetic and comparisons add nodes, and so do the methods of `_METHODS`. Numbers and arrays
    become constants, whole ones of 64 bits and others float64.
    """

    def __init__(self, graph: _Graph, name: str) -> None:
        self.graph, self.name = graph, name

    def __getattr__(self, name: str) -> Callable[..., Value]:
        if name not in _METHODS:
            raise AttributeError(name)
        return partial(self.graph.node, name.capitalize(), self)

    def __array_ufunc__(self, function: np.ufunc, method: str, *inputs: Any) -> Value:
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
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self._prefix, self._count = prefix, 0

    def name(self) -> str:
        """An unused name."""
        self._count += 1
        return f"{self._prefix}/{self._count}"

    def constant(self, values: Any) -> Value:
        """An array: text, or numbers of 64 bits."""
        made = np.asarray(values)
        if made.dtype.kind in "SUO":
            made = made.astype(object)
        elif made.dtype.kind in "iu":
            made = made.view(np.int64) if made.dtype == np.uint64 else made.astype(np.int64)
        else:
            made = made.astype(np.float64)
        name = self.name()
        self.constants.append(lazy.onnx.numpy_helper.from_array(made, name))
        return Value(self, name)

    def node(
        self, operator: str, *inputs: Any, output: str | None = None, **attributes: Any
    ) -> Value:
        """An operator's output; inputs that are not values become constants."""
        name = self.name() if output is None else output
        names = [(x if isinstance(x, Value) else self.constant(x)).name for x in inputs]
        self.nodes.append(lazy.onnx.helper.make_node(operator, names, [name], **attributes))
        return Value(self, name)

    def rows(self, x: Value, width: int, value: Any) -> Value:
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
        inner, helper = _Graph(f"{self.name()}/"), lazy.onnx.helper
        kinds = [lazy.onnx.TensorProto.DOUBLE, lazy.onnx.TensorProto.INT64]
        whole, each = integers
        types = [whole, *(each or [False] * len(scanned))]
        before, *slices = (Value(inner, inner.name()) for _ in types)
        after = inner.node("Identity", body(before, slices))
        ins = [
            helper.make_tensor_value_info(value.name, kinds[own], None)
            for value, own in zip([before, *slices], types)
        ]
        outs = [helper.make_tensor_value_info(after.name, kinds[whole], None)]
        made = helper.make_graph(inner.nodes, inner.name(), ins, outs, inner.constants)
        return self.node("Scan", state, *scanned, body=made, num_scan_inputs=len(scanned))


# ---------------------------------------------------------------------- inputs and outputs


def _encoded(graph: _Graph, program: Program) -> tuple[list[Any], Value]:
    """(the graph's inputs, the encoded columns of a row)."""
    helper, kinds = lazy.onnx.helper, lazy.onnx.TensorProto
    if not program.has_categories:
        made = helper.make_tensor_value_info(_INPUT, kinds.DOUBLE, [None, len(program.columns)])
        X = Value(graph, _INPUT)
        fills = np.array([np.nan if c.fill is None else float(c.fill) for c in program.columns])
        return [made], X if np.isnan(fills).all() else graph.node("IsNaN", X).where(fills, X)
    inputs, parts, used = [], [], {LABEL, PROBABILITIES, DECISION, VARIABLE, ""}
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
        return x if column.fill is None else x.graph.node("IsNaN", x).where(float(column.fill), x)
    words = np.array([column.categories], dtype=object)
    for number, spelling in enumerate(column.spellings()[words.size :]):
        written = x.equal(np.array([[spelling]], dtype=object))
        x = written.where(words[:, number % words.size][:, None], x)
    if column.fill is not None:
        missing = x.equal(np.array([[""]], dtype=object))
        x = missing.where(words[:, int(column.fill)][:, None], x)
    codes = x.equal(words).cast("DOUBLE")
    if column.values is None:
        return codes
    *values, default = column.values
    return codes @ (np.array(values) - default) + default


def _outputs(graph: _Graph, program: Program, values: Value) -> list[Any]:
    """The graph's outputs."""
    helper, kinds = lazy.onnx.helper, lazy.onnx.TensorProto
    shape = [None, program.n_outputs]
    if program.labels is None:
        graph.node("Identity", values, output=VARIABLE)
        return [helper.make_tensor_value_info(VARIABLE, kinds.DOUBLE, shape)]
    labels = np.array(program.labels, dtype=object if isinstance(program.labels[0], str) else None)
    kind = kinds.STRING
    if labels.dtype != object:
        whole = bool(np.all(labels == np.rint(labels)) and np.abs(labels).max() < 2**53)
        labels, kind = (labels.astype(np.int64), kinds.INT64) if whole else (labels, kinds.DOUBLE)
    found, ranked = [helper.make_tensor_value_info(LABEL, kind, [None])], values
    if program.probabilities is not None:
        shares = _carried_out(program.probabilities, values, program.n_outputs)
        graph.node("Identity", shares, output=PROBABILITIES)
        ranked = shares if program.most_probable else values
        own = [None, len(labels)]
        found.append(helper.make_tensor_value_info(PROBABILITIES, kinds.DOUBLE, own))
    graph.node("Gather", labels, _place(program, ranked), output=LABEL)
    graph.node("Identity", values, output=DECISION)
    return [*found, helper.make_tensor_value_info(DECISION, kinds.DOUBLE, shape)]


def _place(program: Program, values: Value) -> Value:
    """(rows,) the indices of the labels of decision values, or of probabilities."""
    if program.n_outputs > 1 or program.most_probable:
        return values.graph.node("ArgMax", values, axis=1, keepdims=0)
    last = (values > 0.0).cast("INT64") * (len(program.labels or ()) - 1)
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
    last, columns = step.knots.shape[1] - 1, []
    for j in range(n):
        column = x.gather(np.array([j]), axis=1)
        knots, left, at, right = (
            x.graph.constant(part[j]) for part in (step.knots, step.left, step.at, step.right)
        )
        count = (column >= knots).cast("INT64").sum()
        k = (count - 1).max(0)
        following = (k + 1).min(last)
        low, start = knots.gather(k), right.gather(k)
        share = (column - low) / _or_one(knots.gather(following) - low)
        between = start + share * (left.gather(following) - start)
        outside = (count < 1) | k.equal(int(step.sizes[j] - 1))
        columns.append((outside | column.equal(low)).where(at.gather(k), between))
    return x.graph.node("Concat", *columns, axis=1)


def _compare(step: told.Compare, x: Value, n: int) -> Value:
    if step.how == "squared" and n > _MOST_SUMMED:
        return _squared_by_product(step.rows, x)
    joined, start, term = _COMPARISONS[step.how]

    def body(state: Value, slices: list[Value]) -> Value:
        own, other = (
            state.graph.node("Unsqueeze", part, np.array([axis]))
            for axis, part in zip((1, 0), slices)
        )
        added = _chi2(own, other) if step.how == "chi2" else term(abs(own - other))
        return state.graph.node(joined, state, added)

    columns = x.graph.node("Transpose", x, perm=[1, 0])
    first = x.graph.rows(x, len(step.rows), start)
    return x.graph.scan(body, first, [columns, x.graph.constant(step.rows.T)])


def _squared_by_product(rows: np.ndarray, x: Value) -> Value:
    """Squared distances about the rows' mean; rounding errors of equal rows become 0."""
    centre = rows.mean(axis=0) if len(rows) else np.zeros(rows.shape[1])
    rows = rows - centre
    x = x - centre
    total = (x * x).sum() + (rows**2).sum(axis=1)
    found = total - x @ (2 * rows.T)
    return (found > total * (8 * np.finfo(np.float64).eps)).where(found, 0.0)


def _arc_cosine(step: told.ArcCosine, x: Value, n: int) -> Value:
    product = (x * x).sum().sqrt() * np.linalg.norm(step.rows, axis=1)
    cosine = ((x @ step.rows.T) / _or_one(product)).max(-1.0).min(1.0)
    rest, square = np.pi - _arccos(cosine), cosine * cosine
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
    graph, grids, count = x.graph, len(step.offsets), len(step.keys)
    # signed numbers have another order, which is the search order
    keys = step.keys.view(np.int64)
    order = np.lexsort((keys, np.repeat(np.arange(grids), np.diff(step.starts))))
    key = _keys(step, x)
    # after the last one, an entry that is never requested, with weights zero
    ordered = graph.constant(np.append(keys[order], np.int64(0)))
    shape = graph.node("Shape", key)
    low, end = (
        graph.node("Expand", part[None], shape) for part in (step.starts[:-1], step.starts[1:])
    )
    high = end
    for _ in range(int(np.diff(step.starts).max(initial=0)).bit_length()):
        middle = (low + high) / 2
        less = (ordered.gather(middle) < key) & (low < high)
        low, high = less.where(middle + 1, low), less.where(high, middle)
    place = (ordered.gather(low).equal(key) & (low < end)).where(low, count)
    weights = np.vstack([np.asarray(step.weights)[order], np.zeros((1, step.weights.shape[1]))])
    sums = [graph.constant(own).gather(place).sum() for own in weights.T]
    return graph.node("Concat", *sums, axis=1)


def _keys(step: told.Bins, x: Value) -> Value:
    """(rows, grids) the keys of the rows' bins."""

    def body(state: Value, slices: list[Value]) -> Value:
        own, offsets, inverses, multiplier = slices
        own = state.graph.node("Unsqueeze", own, np.array([1]))
        cell = ((own - offsets) * inverses).floor().max(-_FARTHEST).min(_FARTHEST)
        return state + (cell.cast("INT64") + int(step.base)) * multiplier

    scanned = [
        x.graph.node("Transpose", x, perm=[1, 0]),
        *(x.graph.constant(np.ascontiguousarray(part.T)) for part in (step.offsets, step.inverses)),
        x.graph.constant(step.multipliers),
    ]
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
        return [both.gather(np.arange(first, first + m), axis=1) for first in (0, m)]

    re, im = parts(step.parts[0])
    for steps in step.parts[1:]:
        a, b = parts(steps)
        re, im = re * a - im * b, re * b + im * a
    return x.graph.node("Concat", re, im, axis=1)


def _branch(step: told.Branch, x: Value, n: int) -> Value:
    tree = Partition(step.directions, step.thresholds, step.children)
    leaves = _carried_out(tree.steps(), x, n)
    each = (
        _carried_out(part, x, n) * leaves.gather(np.array([leaf]), axis=1)
        for leaf, part in enumerate(step.parts)
    )
    return reduce(operator.add, each)


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


def _polynomial(name: str, t: Value) -> Value:
    low, high, coefficients = polynomials()[name]
    u = t * (2 / (high - low)) - (low + high) / (high - low)
    total = u.graph.constant(coefficients[-1])
    for c in coefficients[-2::-1]:
        total = total * u + c
    return total


def _normal_quantile(x: Value) -> Value:
    q = x - 0.5
    below = q < 0.0
    size = _polynomial("tail", (-below.where(x, 1.0 - x).log()).sqrt())
    inner = q * _polynomial("central", q * q)
    return (abs(q) <= CENTRAL).where(inner, below.where(-size, size))


def _arccos(c: Value) -> Value:
    size = abs(c)
    found = (1.0 - size).sqrt() * _polynomial("arccos", size)
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
    return (x + 1.0 + x * x * (1 / 3)) * (-x).exp()


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
