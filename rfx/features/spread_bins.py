"""Random binning features of rows that lie on workers: each numbers the bins of its own rows, and the bins' keys are merged."""

import numpy as np

from rfx.features.binning import BinningMap, Bins, merged
from rfx.operators.spread.matrix import Binned, PartsMatrix
from rfx.operators.spread.rows import SpreadRows


def number_parts(grids: BinningMap, rows: SpreadRows) -> tuple[Bins, PartsMatrix]:
    """The bins that the rows are in, the same as if they were in one process, and the features.

    Keys and numbers of the bins travel, which have the size of D.
    """
    workers = rows.workers
    shared = workers.shared(grids)
    found = workers.each(_number, rows.data, common=(shared,))
    bins, tables = merged(workers.results(workers.each(_bins, found)))
    wide = np.uint16 if int(np.diff(bins.starts).max()) < 2**16 else np.int32
    ids = workers.each(_renumbered, found, [workers.shared(table) for table in tables], common=(wide,))
    return bins, PartsMatrix(workers, ids, Binned(bins.starts, 1.0 / np.sqrt(grids.n_grids)), rows.counts)


def _number(grids, data):
    ids, bins = grids.number(data[0])
    return ids, bins.keys, bins.starts


def _bins(found):
    return Bins(*found[1:])


def _renumbered(kind, found, table):
    ids, _, starts = found
    out = np.empty(ids.shape, kind)
    for grid in range(len(ids)):
        out[grid] = table[starts[grid] : starts[grid + 1]][ids[grid]]
    return out
