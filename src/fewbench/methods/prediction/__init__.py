"""How answers become full scores; one idea per file."""
