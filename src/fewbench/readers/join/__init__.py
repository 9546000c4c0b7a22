"""Runs of all harnesses joined into one table: which run counts, which item is which."""
