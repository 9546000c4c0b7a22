"""tinyBenchmarks (Polo et al. 2024): anchors and predictors by item response models."""
