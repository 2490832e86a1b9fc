"""Transforms of inputs and targets: scaling, principal components, virtual examples."""
