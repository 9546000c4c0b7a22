"""DISCO (Rubinstein et al. 2025): its tables."""

from papers.record import Paper, Section

SECTIONS: tuple[Section, ...] = ()
PAPER = Paper("disco", "DISCO: printed figures and those of fewbench", SECTIONS)
