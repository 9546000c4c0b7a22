"""How many items of each group, and which, with known probabilities."""
