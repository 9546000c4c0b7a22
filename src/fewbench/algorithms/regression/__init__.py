"""From features to outputs: ridge regression, neighbours, splines."""
