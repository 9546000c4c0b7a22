"""The tables of the papers: one file for each, with what the paper prints and what is run."""

from papers import bento, collaborative, disco, tailoredbench

PAPERS = {one.PAPER.name: one.PAPER for one in (tailoredbench, disco, collaborative, bento)}
