"""The report: one page with the papers' tables and figures, made only from results files and
traces, and the figures as separate files.

`page` finds the rows, lists the executed and missing runs, and makes the page of the papers and
that of any results file. The same files result in the same bytes.
"""
