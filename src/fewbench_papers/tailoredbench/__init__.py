"""TailoredBench (Yuan et al. 2025): items tailored to each target."""
