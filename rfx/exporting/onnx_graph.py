"""A program as an ONNX graph of float64 numbers, with operators that onnxruntime supports on
CPUs.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from rfx import lazy
from rfx import steps as told
from rfx.errors import UsageError
from rfx.exporting.curves import CENTRAL, polynomials
from rfx.exporting.program import Column, Program
from rfx.kernels.distances import SCALES

# Supported by onnxruntime 1.15 and later; from 19 on texts can be compared.
OPSET, IR_VERSION = 19, 9
# Maximum inputs for squared distances as sums; above, they are computed from inner products, as in
# rfx.kernels.blocks.
_MOST_SUMMED = 64
# Maximum size of a file.
_MOST_BYTES = 2**31 - 2**20
# Cells beyond are in no bin.
_FARTHEST = float(2**51)
# Yeo-Johnson powers treated as 0.
_NO_POWER = 1e-8
# The names of the outputs, which no input may have.
LABEL, PROBABILITIES, DECISION, VARIABLE = "label", "probabilities", "decision", "variable"
_INPUT = "X"


def check() -> None:
    """Raise UsageError if the package onnx is missing."""
    try:
        lazy.onnx  # noqa: B018
    except ModuleNotFoundError:
        raise UsageError(
            "--to onnx needs the package onnx, which is not installed; pip install"
            " 'rfx-kernels[onnx]'"
        ) from None


def written(program: Program) -> bytes:
    """The ONNX file of a program.

    Raises
    ------
    UsageError
        If the package onnx is missing, and for a model that is too large.
    """
    check()
    helper, graph = lazy.onnx.helper, _Graph()
    inputs, X = _encoded(graph, program)
    # nan if an input is missing or infinite: the sum of x - x
    checked = graph.node("ReduceSum", graph.node("Sub", X, X), graph.ints([1]), keepdims=1)
    values = _carried_out(graph, program.steps, X, program.n_inputs)
    values = graph.node("Add", values, checked)
    outputs = _outputs(graph, program, values)
    made = helper.make_graph(graph.nodes, "rfx", inputs, outputs, graph.constants)
    if graph.size > _MOST_BYTES:
        raise UsageError(
            f"the model needs {graph.size / 2**20:,.0f} MiB, more than an ONNX file supports; use"
            " --to c or json, or train a smaller model"
        )
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


class _Graph:
    """The nodes and constants collected so far."""

    def __init__(self, prefix: str = "rfx") -> None:
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.size = 0
        self._prefix, self._count = prefix, 0

    def name(self) -> str:
        """An unused name."""
        self._count += 1
        return f"{self._prefix}/{self._count}"

    def constant(self, values: Any) -> str:
        """The name of an array: text, or numbers of 64 bits."""
        made = np.asarray(values)
        if made.dtype.kind in "SUO":
            made = made.astype(object)
        elif made.dtype.kind in "iu":
            made = made.view(np.int64) if made.dtype == np.uint64 else made.astype(np.int64)
        else:
            made = made.astype(np.float64)
        name = self.name()
        self.constants.append(lazy.onnx.numpy_helper.from_array(made, name))
        self.size += made.size * 8
        return name

    def ints(self, values: Iterable[int]) -> str:
        """The name of a list of whole numbers."""
        return self.constant(np.array(list(values), np.int64))

    def node(
        self, operator: str, *inputs: str, output: str | None = None, **attributes: Any
    ) -> str:
        """The name of an operator's output."""
        name = self.name() if output is None else output
        self.nodes.append(lazy.onnx.helper.make_node(operator, list(inputs), [name], **attributes))
        return name

    def number(self, operator: str, x: str, value: float) -> str:
        """An operator of x and a number."""
        return self.node(operator, x, self.constant(np.float64(value)))

    def cast(self, x: str, kind: str) -> str:
        """x as FLOAT, DOUBLE or INT64."""
        return self.node("Cast", x, to=getattr(lazy.onnx.TensorProto, kind))

    def rows(self, x: str, width: int, value: Any) -> str:
        """An array of one value with the rows of x."""
        count = self.node("Shape", x, start=0, end=1)
        shape = self.node("Concat", count, self.ints([width]), axis=0)
        return self.node("Expand", self.constant(np.full((1, 1), value)), shape)

    def scan(
        self,
        body: Callable[[_Graph, str, list[str]], str],
        state: str,
        scanned: list[str],
        integers: tuple[bool, list[bool]] = (False, []),
    ) -> str:
        """The final state of a loop: body(graph, state, slices) returns the next state.

        scanned: arrays whose first axis is iterated over. integers: whether the state, and each of
        these, is integer.
        """
        inner, helper = _Graph(f"{self.name()}/"), lazy.onnx.helper
        kinds = [lazy.onnx.TensorProto.DOUBLE, lazy.onnx.TensorProto.INT64]
        whole, each = integers
        each = each or [False] * len(scanned)
        before, slices = inner.name(), [inner.name() for _ in scanned]
        after = inner.node("Identity", body(inner, before, slices))
        ins = [helper.make_tensor_value_info(before, kinds[whole], None)]
        ins += [
            helper.make_tensor_value_info(name, kinds[own], None) for name, own in zip(slices, each)
        ]
        outs = [helper.make_tensor_value_info(after, kinds[whole], None)]
        made = helper.make_graph(inner.nodes, inner.name(), ins, outs, inner.constants)
        self.size += inner.size
        return self.node("Scan", state, *scanned, body=made, num_scan_inputs=len(scanned))


# ---------------------------------------------------------------------- inputs and outputs


def _encoded(graph: _Graph, program: Program) -> tuple[list[Any], str]:
    """(the graph's inputs, the encoded columns of a row)."""
    helper, kinds = lazy.onnx.helper, lazy.onnx.TensorProto
    if not program.has_categories:
        made = helper.make_tensor_value_info(_INPUT, kinds.DOUBLE, [None, len(program.columns)])
        fills = [np.nan if c.fill is None else float(c.fill) for c in program.columns]
        if np.isnan(fills).all():
            return [made], _INPUT
        missing = graph.node("IsNaN", _INPUT)
        return [made], graph.node("Where", missing, graph.constant(np.array(fills)), _INPUT)
    inputs, parts, used = [], [], {LABEL, PROBABILITIES, DECISION, VARIABLE, ""}
    for column in program.columns:
        name = column.name
        while name in used:
            name += "_"
        used.add(name)
        kind = kinds.DOUBLE if column.categories is None else kinds.STRING
        inputs.append(helper.make_tensor_value_info(name, kind, [None, 1]))
        parts.append(_cell(graph, column, name))
    return inputs, graph.node("Concat", *parts, axis=1)


def _cell(graph: _Graph, column: Column, name: str) -> str:
    """The encoded cells of a column."""
    if column.categories is None:
        if column.fill is None:
            return graph.node("Identity", name)
        fill = graph.constant(np.float64(column.fill))
        return graph.node("Where", graph.node("IsNaN", name), fill, name)
    words = np.array([column.categories], dtype=object)
    if column.fill is not None:
        missing = graph.node("Equal", name, graph.constant(np.array([[""]], dtype=object)))
        fill = graph.constant(words[:, int(column.fill)][:, None])
        name = graph.node("Where", missing, fill, name)
    own = graph.cast(graph.node("Equal", name, graph.constant(words)), "DOUBLE")
    if column.values is None:
        return own
    *values, default = column.values
    product = graph.node("MatMul", own, graph.constant(np.array(values) - default))
    return graph.node("Add", product, graph.constant(default))


def _outputs(graph: _Graph, program: Program, values: str) -> list[Any]:
    """The graph's outputs."""
    helper, kinds = lazy.onnx.helper, lazy.onnx.TensorProto
    shape = [None, program.n_outputs]
    if program.labels is None:
        graph.node("Identity", values, output=VARIABLE)
        return [helper.make_tensor_value_info(VARIABLE, kinds.DOUBLE, shape)]
    labels = np.array(program.labels, dtype=object if _are_words(program.labels) else None)
    kind = kinds.STRING
    if labels.dtype != object:
        whole = bool(np.all(labels == np.rint(labels)) and np.abs(labels).max() < 2**53)
        labels, kind = (labels.astype(np.int64), kinds.INT64) if whole else (labels, kinds.DOUBLE)
    found, ranked = [helper.make_tensor_value_info(LABEL, kind, [None])], values
    if program.probabilities is not None:
        shares = _carried_out(graph, program.probabilities, values, program.n_outputs)
        graph.node("Identity", shares, output=PROBABILITIES)
        ranked = shares if program.most_probable else values
        own = [None, len(labels)]
        found.append(helper.make_tensor_value_info(PROBABILITIES, kinds.DOUBLE, own))
    graph.node("Gather", graph.constant(labels), _place(graph, program, ranked), output=LABEL)
    graph.node("Identity", values, output=DECISION)
    return [*found, helper.make_tensor_value_info(DECISION, kinds.DOUBLE, shape)]


def _are_words(labels: list[Any]) -> bool:
    return isinstance(labels[0], str)


def _place(graph: _Graph, program: Program, values: str) -> str:
    """(rows,) the indices of the labels of decision values, or of probabilities."""
    if program.n_outputs > 1 or program.most_probable:
        return graph.node("ArgMax", values, axis=1, keepdims=0)
    above = graph.cast(graph.number("Greater", values, 0.0), "INT64")
    last = graph.constant(np.int64(len(program.labels or ()) - 1))
    return graph.node("Squeeze", graph.node("Mul", above, last), graph.ints([1]))


# ---------------------------------------------------------------------- steps


def _carried_out(graph: _Graph, steps: told.Steps, x: str, n: int) -> str:
    """Apply the steps to x (rows, n)."""
    for step in steps:
        x = _STEPS[type(step)](graph, step, x, n)
        n = step.width(n)
    return x


def _select(graph: _Graph, step: told.Select, x: str, n: int) -> str:
    return graph.node("Gather", x, graph.constant(step.columns), axis=1)


def _scale(graph: _Graph, step: told.Scale, x: str, n: int) -> str:
    if step.centre.any():
        x = graph.node("Sub", x, graph.constant(step.centre))
    return graph.node("Mul", x, graph.constant(step.factor))


def _linear(graph: _Graph, step: told.Linear, x: str, n: int) -> str:
    product = graph.node("MatMul", x, graph.constant(step.matrix))
    return graph.node("Add", product, graph.constant(step.offset))


def _round(graph: _Graph, step: told.Round, x: str, n: int) -> str:
    return graph.cast(graph.cast(x, "FLOAT"), "DOUBLE")


def _clip(graph: _Graph, step: told.Clip, x: str, n: int) -> str:
    return graph.node(
        "Min", graph.node("Max", x, graph.constant(step.low)), graph.constant(step.high)
    )


def _function(graph: _Graph, step: told.Function, x: str, n: int) -> str:
    return _FUNCTIONS[step.name](graph, x)


def _sign(graph: _Graph, step: told.Sign, x: str, n: int) -> str:
    reached = graph.node("GreaterOrEqual", x, graph.constant(step.thresholds))
    return graph.node("Where", reached, graph.constant(1.0), graph.constant(-1.0))


def _yeo_johnson(graph: _Graph, step: told.YeoJohnson, x: str, n: int) -> str:
    size = graph.node("Log", graph.number("Add", graph.node("Abs", x), 1.0))

    def powered(powers: np.ndarray) -> str:
        none = np.abs(powers) < _NO_POWER
        power = graph.constant(np.where(none, 1.0, powers))
        raised = graph.number("Sub", graph.node("Exp", graph.node("Mul", size, power)), 1.0)
        found = graph.node("Div", raised, power)
        zero = graph.constant(none.astype(np.float64))
        return graph.node("Where", graph.number("Greater", zero, 0.5), size, found)

    below = graph.number("Less", x, 0.0)
    negative = graph.node("Neg", powered(2.0 - step.powers))
    return graph.node("Where", below, negative, powered(step.powers))


def _interpolate(graph: _Graph, step: told.Interpolate, x: str, n: int) -> str:
    """One column at a time; each iteration appends one."""
    last, columns = step.knots.shape[1] - 1, []
    for j in range(n):
        column = graph.node("Gather", x, graph.ints([j]), axis=1)
        knots, left, at, right = (
            graph.constant(part[j]) for part in (step.knots, step.left, step.at, step.right)
        )
        passed = graph.cast(graph.node("LessOrEqual", knots, column), "INT64")
        count = graph.node("ReduceSum", passed, graph.ints([1]), keepdims=1)
        zero, one, top = (graph.constant(np.int64(k)) for k in (0, 1, last))
        k = graph.node("Max", graph.node("Sub", count, one), zero)
        following = graph.node("Min", graph.node("Add", k, one), top)
        low, high = graph.node("Gather", knots, k), graph.node("Gather", knots, following)
        gap, start = graph.node("Sub", high, low), graph.node("Gather", right, k)
        some = graph.node("Where", graph.number("Greater", gap, 0.0), gap, graph.constant(1.0))
        share = graph.node("Div", graph.node("Sub", column, low), some)
        rise = graph.node("Sub", graph.node("Gather", left, following), start)
        between = graph.node("Add", start, graph.node("Mul", share, rise))
        outside = graph.node(
            "Or",
            graph.node("Less", count, one),
            graph.node("Equal", k, graph.constant(np.int64(step.sizes[j] - 1))),
        )
        met = graph.node("Or", outside, graph.node("Equal", column, low))
        columns.append(graph.node("Where", met, graph.node("Gather", at, k), between))
    return graph.node("Concat", *columns, axis=1)


def _unit(graph: _Graph, step: told.Unit, x: str, n: int) -> str:
    length = graph.node("Sqrt", _squares(graph, x))
    there = graph.number("Greater", length, 0.0)
    return graph.node("Div", x, graph.node("Where", there, length, graph.constant(1.0)))


def _squares(graph: _Graph, x: str) -> str:
    """(rows, 1) squared lengths."""
    return graph.node("ReduceSum", graph.node("Mul", x, x), graph.ints([1]), keepdims=1)


def _compare(graph: _Graph, step: told.Compare, x: str, n: int) -> str:
    if step.how == "squared" and n > _MOST_SUMMED:
        return _squared_by_product(graph, step.rows, x)
    joined, start, term = _COMPARISONS[step.how]

    def body(inner: _Graph, state: str, slices: list[str]) -> str:
        own, other = (
            inner.node("Unsqueeze", part, inner.ints([axis])) for axis, part in zip((1, 0), slices)
        )
        if step.how == "chi2":
            return inner.node(joined, state, _chi2(inner, own, other))
        t = inner.node("Abs", inner.node("Sub", own, other))
        return inner.node(joined, state, term(inner, t))

    columns = graph.node("Transpose", x, perm=[1, 0])
    first = graph.rows(x, len(step.rows), start)
    return graph.scan(body, first, [columns, graph.constant(step.rows.T)])


def _squared_by_product(graph: _Graph, rows: np.ndarray, x: str) -> str:
    """Squared distances about the rows' mean; rounding errors of equal rows become 0."""
    centre = rows.mean(axis=0) if len(rows) else np.zeros(rows.shape[1])
    rows = rows - centre
    x = graph.node("Sub", x, graph.constant(centre))
    lengths = graph.constant((rows**2).sum(axis=1))
    total = graph.node("Add", _squares(graph, x), lengths)
    product = graph.node("MatMul", x, graph.constant(2 * rows.T))
    found = graph.node("Sub", total, product)
    noise = graph.number("Mul", total, 8 * np.finfo(np.float64).eps)
    return graph.node("Where", graph.node("Greater", found, noise), found, graph.constant(0.0))


def _arc_cosine(graph: _Graph, step: told.ArcCosine, x: str, n: int) -> str:
    lengths = graph.constant(np.linalg.norm(step.rows, axis=1))
    product = graph.node("Mul", graph.node("Sqrt", _squares(graph, x)), lengths)
    there = graph.number("Greater", product, 0.0)
    some = graph.node("Where", there, product, graph.constant(1.0))
    cosine = graph.node("Div", graph.node("MatMul", x, graph.constant(step.rows.T)), some)
    cosine = graph.number("Min", graph.number("Max", cosine, -1.0), 1.0)
    theta = _arccos(graph, cosine)
    rest = graph.node("Sub", graph.constant(np.pi), theta)
    square = graph.node("Mul", cosine, cosine)
    sine = graph.node("Sqrt", graph.node("Sub", graph.constant(1.0), square))
    if step.order == 0:
        inner = rest
    elif step.order == 1:
        inner = graph.node("Add", sine, graph.node("Mul", rest, cosine))
    else:
        more = graph.number("Add", graph.number("Mul", square, 2.0), 1.0)
        inner = graph.node(
            "Add",
            graph.number("Mul", graph.node("Mul", sine, cosine), 3.0),
            graph.node("Mul", rest, more),
        )
    for _ in range(step.order):
        inner = graph.node("Mul", inner, product)
    found = graph.number("Div", inner, np.pi)
    return graph.node("Where", there, found, graph.constant(0.0))


def _bins(graph: _Graph, step: told.Bins, x: str, n: int) -> str:
    grids, count = len(step.offsets), len(step.keys)
    # signed numbers have another order, which is the search order
    keys = step.keys.view(np.int64)
    order = np.lexsort((keys, np.repeat(np.arange(grids), np.diff(step.starts))))
    key = _keys(graph, step, x)
    # after the last one, an entry that is never requested, with weights zero
    ordered = graph.constant(np.append(keys[order], np.int64(0)))
    one, two = graph.constant(np.int64(1)), graph.constant(np.int64(2))
    shape = graph.node("Shape", key)
    low, end = (
        graph.node("Expand", graph.constant(part[None]), shape)
        for part in (step.starts[:-1], step.starts[1:])
    )
    high = end
    for _ in range(int(np.diff(step.starts).max(initial=0)).bit_length()):
        middle = graph.node("Div", graph.node("Add", low, high), two)
        less = graph.node("Less", graph.node("Gather", ordered, middle), key)
        less = graph.node("And", less, graph.node("Less", low, high))
        low = graph.node("Where", less, graph.node("Add", middle, one), low)
        high = graph.node("Where", less, high, middle)
    met = graph.node("Equal", graph.node("Gather", ordered, low), key)
    met = graph.node("And", met, graph.node("Less", low, end))
    place = graph.node("Where", met, low, graph.constant(np.int64(count)))
    weights = np.vstack([np.asarray(step.weights)[order], np.zeros((1, step.weights.shape[1]))])
    sums = [
        graph.node(
            "ReduceSum",
            graph.node("Gather", graph.constant(own), place),
            graph.ints([1]),
            keepdims=1,
        )
        for own in weights.T
    ]
    return graph.node("Concat", *sums, axis=1)


def _keys(graph: _Graph, step: told.Bins, x: str) -> str:
    """(rows, grids) the keys of the rows' bins."""

    def body(inner: _Graph, state: str, slices: list[str]) -> str:
        own, offsets, inverses, multiplier = slices
        own = inner.node("Unsqueeze", own, inner.ints([1]))
        cell = inner.node("Floor", inner.node("Mul", inner.node("Sub", own, offsets), inverses))
        near = inner.number("Min", inner.number("Max", cell, -_FARTHEST), _FARTHEST)
        whole = inner.node("Add", inner.cast(near, "INT64"), inner.constant(np.int64(step.base)))
        return inner.node("Add", state, inner.node("Mul", whole, multiplier))

    scanned = [
        graph.node("Transpose", x, perm=[1, 0]),
        *(graph.constant(np.ascontiguousarray(part.T)) for part in (step.offsets, step.inverses)),
        graph.constant(step.multipliers),
    ]
    first = graph.rows(x, len(step.offsets), np.int64(0))
    return graph.scan(body, first, scanned, (True, [False, False, False, True]))


def _product(graph: _Graph, step: told.Product, x: str, n: int) -> str:
    found = _carried_out(graph, step.parts[0], x, n)
    for part in step.parts[1:]:
        found = graph.node("Mul", found, _carried_out(graph, part, x, n))
    return found


def _complex_product(graph: _Graph, step: told.ComplexProduct, x: str, n: int) -> str:
    m = step.width(n) // 2
    halves = graph.ints([0]), graph.ints([m]), graph.ints([2 * m]), graph.ints([1])

    def parts(steps: told.Steps) -> list[str]:
        found = _carried_out(graph, steps, x, n)
        start, middle, end, axis = halves
        return [
            graph.node("Slice", found, start, middle, axis),
            graph.node("Slice", found, middle, end, axis),
        ]

    re, im = parts(step.parts[0])
    for steps in step.parts[1:]:
        a, b = parts(steps)
        re, im = (
            graph.node("Sub", graph.node("Mul", re, a), graph.node("Mul", im, b)),
            graph.node("Add", graph.node("Mul", re, b), graph.node("Mul", im, a)),
        )
    return graph.node("Concat", re, im, axis=1)


def _softmax(graph: _Graph, step: told.Softmax, x: str, n: int) -> str:
    return graph.node("Softmax", x, axis=1)


def _shares(graph: _Graph, step: told.Shares, x: str, n: int) -> str:
    total = graph.node("ReduceSum", x, graph.ints([1]), keepdims=1)
    there = graph.number("Greater", total, 0.0)
    some = graph.node("Where", there, total, graph.constant(1.0))
    return graph.node("Where", there, graph.node("Div", x, some), graph.constant(1.0 / n))


_STEPS: dict[type, Callable[[_Graph, Any, str, int], str]] = {
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
    told.Product: _product,
    told.ComplexProduct: _complex_product,
    told.Softmax: _softmax,
    told.Shares: _shares,
}


# ---------------------------------------------------------------------- functions of a number


def _cos_turns(graph: _Graph, x: str) -> str:
    part = graph.node("Sub", x, graph.node("Round", x))
    return graph.node("Cos", graph.number("Mul", part, 2 * np.pi))


def _cube(graph: _Graph, x: str) -> str:
    return graph.node("Mul", x, graph.node("Mul", x, x))


def _exp_minus(graph: _Graph, x: str) -> str:
    return graph.node("Exp", graph.node("Neg", x))


def _matern(graph: _Graph, x: str, squared: float) -> str:
    factor = graph.number("Add", x, 1.0)
    if squared:
        more = graph.number("Mul", graph.node("Mul", x, x), squared)
        factor = graph.node("Add", factor, more)
    return graph.node("Mul", factor, _exp_minus(graph, x))


def _multiscale(graph: _Graph, x: str) -> str:
    parts = [_exp_minus(graph, graph.number("Mul", x, scale)) for scale in SCALES]
    return graph.number("Div", graph.node("Sum", *parts), float(len(SCALES)))


def _log_positive(graph: _Graph, x: str) -> str:
    there, one = graph.number("Greater", x, 0.0), graph.constant(1.0)
    return graph.node("Log", graph.node("Where", there, x, one))


def _soft_clip(graph: _Graph, x: str) -> str:
    # from 1e9 on the square root is |x| / 3 to rounding, and farther the square overflows
    x = graph.number("Max", graph.number("Min", x, 1e9), -1e9)
    square = graph.number("Div", graph.node("Mul", x, x), 9.0)
    return graph.node("Div", x, graph.node("Sqrt", graph.number("Add", square, 1.0)))


def _ramp(graph: _Graph, x: str) -> str:
    return graph.number("Max", x, 0.0)


def _positive(graph: _Graph, x: str) -> str:
    return graph.cast(graph.number("Greater", x, 0.0), "DOUBLE")


def _polynomial(graph: _Graph, name: str, t: str) -> str:
    low, high, coefficients = polynomials()[name]
    u = graph.number("Sub", graph.number("Mul", t, 2 / (high - low)), (low + high) / (high - low))
    total = graph.constant(coefficients[-1])
    for c in coefficients[-2::-1]:
        total = graph.number("Add", graph.node("Mul", total, u), c)
    return total


def _normal_quantile(graph: _Graph, x: str) -> str:
    q = graph.number("Sub", x, 0.5)
    below = graph.number("Less", q, 0.0)
    tail = graph.node("Where", below, x, graph.node("Sub", graph.constant(1.0), x))
    size = _polynomial(
        graph, "tail", graph.node("Sqrt", graph.node("Neg", graph.node("Log", tail)))
    )
    outer = graph.node("Where", below, graph.node("Neg", size), size)
    inner = graph.node("Mul", q, _polynomial(graph, "central", graph.node("Mul", q, q)))
    central = graph.number("LessOrEqual", graph.node("Abs", q), CENTRAL)
    return graph.node("Where", central, inner, outer)


def _arccos(graph: _Graph, c: str) -> str:
    size = graph.node("Abs", c)
    root = graph.node("Sqrt", graph.node("Sub", graph.constant(1.0), size))
    found = graph.node("Mul", root, _polynomial(graph, "arccos", size))
    other = graph.node("Sub", graph.constant(np.pi), found)
    return graph.node("Where", graph.number("Less", c, 0.0), other, found)


_FUNCTIONS: dict[str, Callable[[_Graph, str], str]] = {
    "cos_turns": _cos_turns,
    "cube": _cube,
    "exp": lambda graph, x: graph.node("Exp", x),
    "exp_minus": _exp_minus,
    "log_positive": _log_positive,
    "matern3": lambda graph, x: _matern(graph, x, 0.0),
    "matern5": lambda graph, x: _matern(graph, x, 1 / 3),
    "multiscale": _multiscale,
    "normal_quantile": _normal_quantile,
    "positive": _positive,
    "ramp": _ramp,
    "sigmoid": lambda graph, x: graph.node("Sigmoid", x),
    "soft_clip": _soft_clip,
    "sqrt": lambda graph, x: graph.node("Sqrt", x),
    "square": lambda graph, x: graph.node("Mul", x, x),
}


# ---------------------------------------------------------------------- comparisons of an input


def _hat(graph: _Graph, t: str) -> str:
    return _ramp(graph, graph.node("Sub", graph.constant(1.0), t))


def _rational(graph: _Graph, t: str) -> str:
    return graph.node("Div", graph.constant(1.0), graph.number("Add", t, 1.0))


def _erlang(graph: _Graph, t: str) -> str:
    factor = graph.number("Add", graph.number("Mul", t, 0.5), 1.0)
    return graph.node("Mul", factor, _exp_minus(graph, t))


def _sech(graph: _Graph, t: str) -> str:
    both = graph.node("Add", graph.node("Exp", t), _exp_minus(graph, t))
    return graph.node("Div", graph.constant(2.0), both)


def _differing(graph: _Graph, t: str) -> str:
    return graph.cast(graph.number("Greater", t, 0.0), "DOUBLE")


def _chi2(graph: _Graph, x: str, s: str) -> str:
    """2 x s / (x + s), 0 where the sum is 0."""
    total = graph.node("Add", x, s)
    there = graph.number("Greater", total, 0.0)
    some = graph.node("Where", there, total, graph.constant(1.0))
    found = graph.node("Div", graph.number("Mul", graph.node("Mul", x, s), 2.0), some)
    return graph.node("Where", there, found, graph.constant(0.0))


# how -> (operator that joins the terms, initial value, the term of |x_j - s_j|)
_COMPARISONS: dict[str, tuple[str, float, Callable[[_Graph, str], str]]] = {
    "squared": ("Add", 0.0, lambda graph, t: graph.node("Mul", t, t)),
    "l1": ("Add", 0.0, lambda graph, t: t),
    "hat": ("Mul", 1.0, _hat),
    "rational": ("Mul", 1.0, _rational),
    "erlang": ("Mul", 1.0, _erlang),
    "sech": ("Mul", 1.0, _sech),
    "differing": ("Add", 0.0, _differing),
    # its term is of x_j and s_j: `_chi2`
    "chi2": ("Add", 0.0, lambda graph, t: t),
}
