"""What may be wrong or peculiar in a table of scores."""
