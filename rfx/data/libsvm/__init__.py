"""LIBSVM text: reading and writing, reading in pieces of bounded memory, and
sequences of letters in the same files.
"""
