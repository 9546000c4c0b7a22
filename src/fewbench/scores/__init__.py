"""Benchmark and Scores: the labeled tables that everything else takes and returns."""

from fewbench.scores.benchmark import Average, Benchmark
from fewbench.scores.build import from_arrays, from_long, from_wide
from fewbench.scores.costs import read_costs
from fewbench.scores.files import open_saved, save_scores
from fewbench.scores.probabilities import OptionProbabilities
from fewbench.scores.scale import Scale, Unit
from fewbench.scores.table import Scores

__all__ = [
    "Average",
    "Benchmark",
    "OptionProbabilities",
    "Scale",
    "Scores",
    "Unit",
    "from_arrays",
    "from_long",
    "from_wide",
    "open_saved",
    "read_costs",
    "save_scores",
]
