"""How far a score may be off: held-out errors, intervals, contrasts; knows no evaluation."""
