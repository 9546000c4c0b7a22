"""How far a score may be off: held-out errors, intervals, contrasts. Independent of evaluations."""
