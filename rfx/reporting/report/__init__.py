"""The report: one page of the papers' tables and figures, from results files and traces alone, and
the figures as files beside it.

`sources` finds the rows, `coverage` says what was run, `tally` counts how cells came out, `svg` and
`colours` put figures into a page, `grids` tables; `page` puts all together. The same files give the
same bytes.
"""
