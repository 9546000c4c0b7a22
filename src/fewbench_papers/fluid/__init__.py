"""Fluid Benchmarking (Hofmann et al. 2025): items with most information at the ability."""
