"""How well chosen tasks stand for a benchmark, on models whose results are known."""

from fewbench.study.tasks.analysis import TaskAnalysis
from fewbench.study.tasks.judgement import Judgement, TaskResults, Weigh, judge

__all__ = ["Judgement", "TaskAnalysis", "TaskResults", "Weigh", "judge"]
