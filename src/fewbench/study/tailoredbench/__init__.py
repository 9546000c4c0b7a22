"""Analyses of TailoredBench: which sources are native, and how useful they are."""

from fewbench.study.tailoredbench.analysis import NativeAnalysis, analyze

__all__ = ["NativeAnalysis", "analyze"]
