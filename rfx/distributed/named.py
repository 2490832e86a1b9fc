"""The data of a run as files that workers read: its own, or those of a named data set."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rfx.data.libsvm import svmlight
from rfx.data.ranges import Arrays, Taken
from rfx.data.reading import Reading
from rfx.data.registry import fetch, registry
from rfx.errors import UsageError
from rfx.records.run import Run


@dataclass(frozen=True)
class Given:
    """Files of training rows, and their properties.

    path: a file, a pattern or a folder. test: a file of test rows, or (X, y), None for none. name,
    split, task: of a data set. labels: {label: value}; rows with other labels are dropped. width:
    minimum number of columns. numbers: labels are numbers, however they are spelled.
    """

    path: str
    reading: Reading
    test: Any = None
    name: str | None = None
    split: str = "all"
    task: str | None = None
    labels: Mapping[float, float] = field(default_factory=dict)
    width: int = 0
    numbers: bool = False


def check(run: Run) -> None:
    """Raise UsageError for data that is not in files, or that is split by the seed."""
    path = str(run.dataset)
    if path == "-":
        raise UsageError(
            "--data is -, standard input; with --scheduler use files that the workers can read"
        )
    info = _info(path)
    if info is None:
        return
    if info.own is not None:
        if run.how_to_read() != Reading():
            raise UsageError(
                f"{info.name} is a data set of {info.own.registry}, which defines how to read it;"
                " set this option there"
            )
        return
    if info.builtin:
        raise UsageError(
            f"--data is {path}, which rfx generates in one process; omit --scheduler, or use files"
            " that the workers can read"
        )
    if path.partition(":")[2]:
        raise UsageError(
            f"{info.name} is a fixed data set without settings (got {path.partition(':')[2]!r:.80})"
        )
    if "test" not in {entry.role for entry in info.files}:
        raise UsageError(
            f"--data is {info.name}, which has no test part and is split 80/20 in one process; with"
            f" --scheduler use its file, --data {fetch.place(info.file('train'))} (from rfx fetch"
            f" {info.name}), and --holdout 0.2"
        )


def given(run: Run) -> Given:
    """The files of a run accepted by `check`; those of a data set are fetched."""
    info = _info(str(run.dataset))
    if info is None:
        return Given(str(run.dataset), run.how_to_read())
    own = info.own
    if own is not None:
        return Given(own.train, own.reading, own.test, info.name, task=own.task)
    paths = fetch.fetch(info.name, roles=("train", "test"))
    X, y = svmlight.read(paths["test"])
    test = Taken(Arrays(X, y), labels=info.labels, width=info.d)
    return Given(
        str(paths["train"]),
        Reading(),
        next(test.chunks()),
        info.name,
        "default",
        info.task,
        info.labels,
        max(info.d, X.shape[1]),
        True,
    )


def _info(path: str) -> registry.DatasetInfo | None:
    """The entry of a data set, None for files."""
    name = path.partition(":")[0]
    return registry.get(name) if registry.has(name) and not os.path.exists(path) else None
