"""The key of a run: a hash of everything that determines it, with resolved options; and the
selection of rows per run.
"""

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from rfx import methods
from rfx.data import loading, registry
from rfx.errors import NoData
from rfx.kernels import KERNELS
from rfx.records.run import NOT_IN_KEY, Result, Run
from rfx.types import JsonObject

SCHEMA = 1
# Defaults of fields.
_FIELDS = {"seed": 0, "zero_based": False, "train_score": False, "fixed_threads": False}
# Files identified by their content.
FILES = ("dataset", "test", "sample_weight")


def key(run: Run, **more: object) -> str:
    """Hash of everything that determines a run, and of `more`: the schema's number, then 16
    hexadecimal digits.

    The method's defaults enter as if they had been given, so a changed default makes another run.
    `threads` (unless they are fixed_threads), `timeout` and output paths are excluded; a missing
    entry equals None, 1 equals 1.0. A data set given as a file enters by its content and file name,
    wherever it is, so an edited file makes another run.
    """
    left_out = NOT_IN_KEY - {"threads"} if run.fixed_threads else NOT_IN_KEY
    asked: JsonObject = _FIELDS | run.as_dict() | more | {"schema": SCHEMA}
    known = {name: value for name, value in asked.items() if name not in left_out}
    declared = methods.get(run.method).declared()
    options = resolved(run)
    # so that the rows in docs/rows remain valid
    known["options"] = {
        name: value
        for name, value in (options | _unscaled(run, options)).items()
        if name not in NOT_IN_KEY and (name not in declared or declared[name].before != value)
    }
    known["files"] = {name: digest for name in FILES if (digest := _digest(getattr(run, name)))}
    known |= {name: os.path.basename(known[name]) for name in known["files"]}
    if run.seed and _drawn(run):
        known["drawn"] = True  # earlier, the seed did not affect the rows of a paper's split
    return f"v{SCHEMA}-{_short(canonical(known))}"


def evaluated(trained: str | None, dataset: str, split: str | None) -> str:
    """The key of the evaluation of the model of a run, by the run's key, on a data set or a file,
    by its content and file name. Empty for standard input, or a model without a run: such rows are
    all different.
    """
    if not trained or dataset == "-":
        return ""
    digest = _digest(dataset)
    test = os.path.basename(dataset) if digest else dataset
    known = {"trained": trained, "files": digest, "split": split, "test": test}
    return f"v{SCHEMA}-{_short(known)}"


def content(run: Run) -> str | None:
    """What identifies the content of the files of a run's rows, eight hexadecimal digits; None
    without a file.
    """
    digests = {name: digest for name in FILES if (digest := _digest(getattr(run, name)))}
    return _short(digests)[:8] if digests else None


def check(run: Run, wanted: str) -> None:
    """Raise NoData if the run requested by another machine with the key `wanted` would be different
    here.
    """
    for name in FILES:
        path = str(getattr(run, name) or "")
        if os.path.isabs(path) and not os.access(path, os.R_OK):
            raise NoData(
                f"{path} {'may not be read' if os.path.exists(path) else 'is not'} here; put it"
                " where every machine can read it"
            )
    if key(run) != wanted:
        raise NoData(
            f"{run.dataset} differs between this machine and the one that requested the run; use"
            " the same data on every machine"
        )


def _drawn(run: Run) -> bool:
    """Whether the seed draws the rows of a paper's split."""
    if run.split is None or not registry.has(run.dataset):
        return False
    info = registry.get(run.dataset)
    return not info.builtin and run.split in info.splits and info.draws(run.split)


def resolved(run: Run) -> JsonObject:
    """The options of a run with the defaults of its method for missing or None values."""
    given = run.given()
    # of one lambda of a path, `along` is the path
    declared = {name: value for name, value in given.items() if name != "along"}
    given |= methods.get(run.method).converted(declared)
    of = tuple((name, given[name]) for name in ("kernel", "gamma") if name in given)
    return _defaults(run.method, of) | given


def seed_decides(run: Run) -> bool:
    """Whether the outcome of a run depends on its seed, through its rows or its fit."""
    held_out = run.cv is not None or run.holdout is not None or run.calibrate is not None
    if held_out or run.stream or loading.is_drawn(run.dataset, run.split, run.test):
        return True
    return bool(methods.get(run.method).is_random(resolved(run)))


def _unscaled(run: Run, options: Mapping[str, object]) -> JsonObject:
    """The former default of the targets' scaling, which enters the key of a run in memory unless
    the run is known to be a regression: classes are never scaled.
    """
    name, scaling = run.dataset.partition(":")[0], options.get("target_scaling")
    task = options.get("task") or (registry.has(name) and registry.get(name).task)
    in_batches = methods.get(run.method).incremental
    if task == "regression" or scaling not in (None, "none") or in_batches:
        return {}
    # a table whose task is not given may be a regression, to which none is no default
    return {"target_scaling": "given" if scaling and not task else "none"}


@lru_cache
def _defaults(method: str, given: tuple[tuple[str, object], ...]) -> JsonObject:
    """For a given kernel and bandwidth."""
    asked: JsonObject = dict(given)
    found = {
        name: value
        for name, value in methods.get(method).defaults(asked).items()
        if value is not None and name != "seed"
    }
    kernel = asked.get("kernel") or found.get("kernel")
    if "gamma" in found and lacks_gamma(kernel):
        found["gamma"] = "paper"  # in keys, that of a kernel without a bandwidth
    return found


def lacks_gamma(kernel: str | None) -> bool:
    """Whether a bandwidth word is irrelevant because this kernel has none."""
    return kernel is not None and kernel in KERNELS and "gamma" not in KERNELS[kernel].parameters


def _short(known: JsonObject) -> str:
    return hashlib.sha256(json.dumps(known, sort_keys=True).encode()).hexdigest()[:16]


def canonical(value: Any) -> Any:
    """`value` in normalised form: without numpy types and None entries, 1 instead of 1.0, paths as
    text.
    """
    value = value.item() if hasattr(value, "item") else value
    if isinstance(value, dict):
        return {str(name): canonical(item) for name, item in value.items() if item is not None}
    if isinstance(value, (list, tuple)):
        return [canonical(item) for item in value]
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)
    return str(value) if isinstance(value, Path) else value


def _digest(name: str | Path | None) -> str | None:
    base = str(name or "").partition(":")[0]
    if base and registry.has(base) and (own := registry.get(base).own):
        return " ".join(filter(None, map(_digest, own.paths)))
    if not name or not os.path.isfile(name):
        return None
    stat = os.stat(name)
    return _content_digest(os.path.abspath(name), stat.st_size, stat.st_mtime_ns)


@lru_cache
def _content_digest(path: str, size: int, mtime_ns: int) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def rows_of(names: Iterable[str], rows: list[Result]) -> dict[str, Result]:
    """The newest row of each run, by the run's key; names: the keys of the runs."""
    newest = {row["key"]: row for row in rows}
    return {name: newest[name] for name in names if name in newest}
