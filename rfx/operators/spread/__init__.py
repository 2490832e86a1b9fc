"""Matrices whose rows lie on the workers of a Dask cluster: what has a row for each row stays there, what travels has the size of D."""
