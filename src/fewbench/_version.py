"""The version, where everything that is written down takes it from."""

__version__ = "0.1.0"
