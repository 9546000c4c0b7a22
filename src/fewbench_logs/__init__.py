"""Log formats of harnesses, and public tables of single sites, for fewbench."""
