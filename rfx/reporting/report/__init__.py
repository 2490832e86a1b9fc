"""The report: one page with the papers' tables and figures, made only from results files and
traces, and the figures as separate files.

`sources` finds the rows. `coverage` lists the executed and missing runs. `tally` counts the
outcomes of cells. `svg` and `colours` embed figures in a page, and `grids` tables. `page` assembles
them. The same files result in the same bytes.
"""
