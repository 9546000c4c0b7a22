"""Columns chosen for how well they predict an output."""
