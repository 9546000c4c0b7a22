"""Two-Stage Collaborative Filtering (2025): items in rounds, by similar source models."""
