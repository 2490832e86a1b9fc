"""Data sets by name: what is known of each, fetching and checking it, people's own sets,
and problems that are made.
"""
