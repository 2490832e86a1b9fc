"""Records of runs: results files, the keys of runs, and traces.

`run` has a run and the typed record of its row; `results` reads and appends the CSV files of rows,
and of the reports of solvers; `keys` identifies runs. CSV cells exist only in this package: they
are checked once, when they are read.
"""
