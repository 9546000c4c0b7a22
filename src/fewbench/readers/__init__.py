"""Result files of harnesses and plain tables, read into Scores."""
