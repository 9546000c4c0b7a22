"""Items or models that are alike: distances, k-medoids, k-means."""
