"""The version and the distribution's name, in a separate file that setup.cfg reads without
importing rfx.
"""

__version__ = "0.1.0"
# on the package index, the name rfx belongs to another project
__distribution__ = "rfx-kernels"
