"""Records of runs: results files, the keys of runs, and traces.

`result` has the typed record of a row; `results` reads and appends the file, `sheet` its CSV form;
`keys` identifies runs; `traces` stores the reports of solvers. CSV cells exist only in this
package: they are checked once, when they are read.
"""
