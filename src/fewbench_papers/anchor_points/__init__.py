"""Anchor Points (Vivek et al. 2023): medoids of the items, weighted by cluster."""
