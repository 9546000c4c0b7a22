"""Published systems, a folder each: their methods, algorithms and commands, for fewbench."""
