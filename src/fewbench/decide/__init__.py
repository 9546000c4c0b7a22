"""Decisions from estimates: which model is better, which are best, whether one passes."""

from fewbench.decide.best import best
from fewbench.decide.best_result import BestResult, Candidate
from fewbench.decide.gate import Check, Gate, gate
from fewbench.decide.live import run_versus
from fewbench.decide.rank import rank
from fewbench.decide.rank_result import Place, Ranked, Ranking, TaskRanking
from fewbench.decide.track import track
from fewbench.decide.track_folder import add_checkpoint
from fewbench.decide.track_result import Change, Point, Track
from fewbench.decide.verify import Verification, verify
from fewbench.decide.versus import versus
from fewbench.decide.versus_result import TaskDifference, Versus

__all__ = [
    "BestResult",
    "Candidate",
    "Change",
    "Check",
    "Gate",
    "Place",
    "Point",
    "Ranked",
    "Ranking",
    "TaskDifference",
    "TaskRanking",
    "Track",
    "Verification",
    "Versus",
    "add_checkpoint",
    "best",
    "gate",
    "rank",
    "run_versus",
    "track",
    "verify",
    "versus",
]
