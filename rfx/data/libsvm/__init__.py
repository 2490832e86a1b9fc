"""LIBSVM text: reading and writing it, its binary copy, pieces of bounded memory, and
sequences of letters in the same files.
"""
