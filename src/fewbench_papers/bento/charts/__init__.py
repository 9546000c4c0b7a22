"""Charts of selections of tasks."""
