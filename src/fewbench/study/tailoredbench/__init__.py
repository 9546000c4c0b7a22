"""TailoredBench's own analyses: which sources are native, and what they are good for."""

from fewbench.study.tailoredbench.analysis import NativeAnalysis, analyze

__all__ = ["NativeAnalysis", "analyze"]
