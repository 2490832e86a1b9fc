"""LIBSVM text: reading and writing, binary cache, reading in pieces of bounded memory, and
sequences of letters in the same files.
"""
