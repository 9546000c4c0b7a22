"""Stories of the field study, one per file, with the number of their worlds."""

from .agents import agents
from .board import board
from .logs import logs
from .ordinary import ordinary
from .outages import outages
from .reruns import reruns
from .restarts import restarts
from .training import training

STORIES = {"training": (training, 40), "reruns": (reruns, 40), "board": (board, 20), "agents": (agents, 60),
    "restarts": (restarts, 20), "logs": (logs, 10),
    "outages": (outages, 30), "ordinary": (ordinary, 240)}
