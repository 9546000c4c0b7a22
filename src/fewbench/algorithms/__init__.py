"""Numerical engines on plain arrays; they know nothing of methods or files."""
