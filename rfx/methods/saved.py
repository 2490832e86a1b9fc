"""Whether the header and the arrays of a model file belong together: names, kinds, shapes and ranges."""

import numpy as np

from rfx.errors import DataError

# Kind of numbers and axes of every array: d inputs, k outputs, m weights (features, support vectors or bins), c classes, r grids,
# b cuts of a partition, t two sides, s starts (of blocks or grids), z and p the entries and row ends of CSR.
FORMS = {
    "scaler_shift": ("f", "d"),
    "scaler_scale": ("f", "d"),
    "classes": ("f", "c"),
    "coef": ("f", "mk"),
    "intercept": ("f", "k"),
    "map_frequencies": ("f", "dm"),
    "map_phases": ("f", "m"),
    "map_directions": ("f", "dm"),
    "map_thresholds": ("f", "m"),
    "map_scales": ("f", "m"),
    "map_columns": ("i", "m"),
    "support": ("f", "md"),
    "support_data": ("f", "z"),
    "support_indices": ("i", "z"),
    "support_indptr": ("i", "p"),
    "kernel_gamma": ("f", ""),
    "kernel_radius": ("f", ""),
    "kernel_lo": ("f", "d"),
    "kernel_hi": ("f", "d"),
    "partition_directions": ("f", "bd"),
    "partition_thresholds": ("f", "b"),
    "partition_children": ("i", "bt"),
    "starts": ("i", "s"),
    "widths": ("f", "rd"),
    "offsets": ("f", "rd"),
    "keys": ("u", "m"),
}
# Arrays of places, and the axis that they are places in; of ends, and the axis that they cut.
PLACES = {"map_columns": "d", "support_indices": "d"}
ENDS = {"starts": "m", "support_indptr": "z"}


def check(header: dict, arrays: dict) -> None:
    """Refuse a model that would fail, or predict nonsense: DataError, or KeyError for what is missing."""
    sizes = {"d": header["info"]["n_inputs"], "t": 2, "k": 1}
    if header["task"] not in ("regression", "binary", "multiclass"):
        raise DataError(f"its task is {header['task']!r}")
    if header["task"] != "regression":
        count = arrays["classes"].size
        sizes["k"] = count if count > 2 else 1
    coef = arrays["coef"]
    sizes["m"] = len(coef) if coef.ndim else 0
    known = {name: values for name, values in arrays.items() if name in FORMS}
    for name, values in known.items():
        _check_form(name, values, sizes)
    for name in PLACES.keys() & known:
        _check_within(name, known[name], 0, sizes[PLACES[name]])
    for name in ENDS.keys() & known:
        ends = known[name]
        if not (len(ends) and ends[0] == 0 and ends[-1] == sizes[ENDS[name]] and np.all(np.diff(ends) >= 0)):
            raise DataError(f"array {name} does not rise from 0 to {sizes[ENDS[name]]}")
    _check_counts(header, known, sizes)


def _check_form(name, values, sizes):
    kind, axes = FORMS[name]
    if values.dtype.kind != kind:
        raise DataError(f"array {name} holds {values.dtype}")
    if values.ndim != len(axes) or any(size != sizes.setdefault(axis, size) for axis, size in zip(axes, values.shape)):
        raise DataError(f"array {name} has the shape {values.shape}, which does not fit the others")
    if not np.isfinite(values).all():
        raise DataError(f"array {name} has values that are not finite")


def _check_within(name, values, low, high):
    if np.any((values < low) | (values >= high)):
        raise DataError(f"array {name} has values outside {low} .. {high - 1}")


def _check_counts(header, arrays, sizes):
    """What the axes' sizes have to do with one another."""
    inputs = header.get("map", header).get("n_inputs", sizes["d"])
    parts = {"p": sizes["m"] + 1, "s": sizes["r"] + 1 if "r" in sizes else sizes.get("b", 0) + 2 if "b" in sizes else None}
    if inputs != sizes["d"] or any(axis in sizes and size not in (None, sizes[axis]) for axis, size in parts.items()):
        raise DataError("the sizes of its arrays do not fit one another")
    if "classes" in arrays and not sizes["c"]:
        raise DataError("it has no classes")
    if "partition_children" in arrays:
        children = arrays["partition_children"]
        _check_within("partition_children", children, -sizes["b"] - 1, sizes["b"])
        if np.any((children >= 0) & (children <= np.arange(len(children))[:, None])):
            raise DataError("array partition_children goes round in circles")
