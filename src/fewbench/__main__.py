"""python -m fewbench: the command line."""

from fewbench.cli import main

main()
