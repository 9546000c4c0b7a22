"""How answers become full scores; one idea a file."""
