"""Analyses of TailoredBench: which sources are native, and how useful they are."""
