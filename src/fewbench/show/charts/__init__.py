"""Charts of results as Altair charts: for notebooks, pictures, and report pages."""
