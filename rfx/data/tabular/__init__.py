"""Tables: CSV, Parquet, numpy files and data frames; which row is a header, what columns
are, and what training learns of them.
"""
