"""Stories of the field study, one per file, with the number of their worlds."""

from .reruns import reruns
from .training import training

STORIES = {"training": (training, 40), "reruns": (reruns, 40)}
