"""Methods that choose further items for each target after seeing its answers."""
