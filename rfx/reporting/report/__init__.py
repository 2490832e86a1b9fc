"""The report: one page with the papers' tables and figures, made only from results files and
traces, and the figures as separate files.

`sources` finds the rows, and lists the executed and missing runs. `page` makes the page of the
papers, `experiment` that of any results file. The same files result in the same bytes.
"""
