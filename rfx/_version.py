"""The version, alone in a file so that setup.cfg can read it without importing rfx."""

__version__ = "0.1.0"
