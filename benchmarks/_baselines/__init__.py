"""The parts of baselines.py: tables, cells and their cache, figures, the data files."""
