"""Choose tasks that represent all tasks of a benchmark, by what tasks are compared by."""
