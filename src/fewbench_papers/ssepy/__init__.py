"""SSEPY (Fogliato et al. 2024): strata of similar difficulty, and a difference estimator."""
