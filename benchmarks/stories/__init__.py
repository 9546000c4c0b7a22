"""Stories of the field study, one per file, with the number of their worlds."""

from .agents import agents
from .board import board
from .living import living
from .logs import logs
from .ordinary import ordinary
from .outages import outages
from .reruns import reruns
from .restarts import restarts
from .seams import seams
from .training import training
from .year import year

STORIES = {
    "training": (training, 20),
    "reruns": (reruns, 12),
    "board": (board, 3),
    "agents": (agents, 40),
    "restarts": (restarts, 10),
    "logs": (logs, 3),
    "outages": (outages, 15),
    "ordinary": (ordinary, 200),
    "living": (living, 5),
    "year": (year, 8),
    "seams": (seams, 20),
}
