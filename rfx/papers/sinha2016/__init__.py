"""A. Sinha and J. Duchi: Learning Kernels with Random Features, NIPS 2016."""
