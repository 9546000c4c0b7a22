"""The cells of a row that are not known, from those that are."""
