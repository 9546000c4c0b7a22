"""The methods of published systems, by system."""

from fewbench_papers.bento.methods import METHODS as BENTO

METHODS = {"bento": BENTO}
