"""metabench (Kipnis et al. 2024): informative items, and splines in ability and score."""
