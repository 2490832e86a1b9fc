"""The version and the distribution's name, alone in a file so that setup.cfg can read it
without importing rfx.
"""

__version__ = "0.1.0"
# on a package index the name rfx belongs to another project
__distribution__ = "rfx-kernels"
