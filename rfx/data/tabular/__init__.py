"""Tables: CSV, Parquet, numpy files and data frames; detection of headers and column types, and the
schema learnt in training.
"""
