"""Methods that choose items for the target at hand, asking again when they have seen answers."""
