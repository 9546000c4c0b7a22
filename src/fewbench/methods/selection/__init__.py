"""How items are chosen before any target is run; one idea per file."""
