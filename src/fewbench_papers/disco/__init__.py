"""DISCO (Rubinstein et al. 2025): items on which source models disagree, and signatures."""
