"""What runs leave behind: results files, the keys of runs, and traces.

`result` has the typed record of a row; `results` reads and appends the file, `sheet` its CSV form;
`keys` tells runs apart; `traces` keeps what solvers report. CSV cells exist in this package only:
they are checked once, when they are read.
"""
