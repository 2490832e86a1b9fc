"""Data sets by name: the registry, fetching and checking, user registries, and synthetic
problems.
"""
