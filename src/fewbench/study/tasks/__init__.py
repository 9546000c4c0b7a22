"""Judge chosen tasks on models with known results."""

from fewbench.study.tasks.analysis import TaskAnalysis
from fewbench.study.tasks.judgement import Judgement, TaskResults, Weigh, judge

__all__ = ["Judgement", "TaskAnalysis", "TaskResults", "Weigh", "judge"]
